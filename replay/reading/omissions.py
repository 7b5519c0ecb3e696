"""Replays without some participants or questions, or without the last hours before the close: as if there were none."""

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.core.values import read_duration
from forecast_ledger.projections.core.arrays import BoolArray, int64_array
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.columns import Contest, Facts, present
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.reading.log import find_contest
from forecast_ledger.replay.reading.studies import DETAILS

BOTS = "bots"  # of all contests, unless a participant has this id


def without(projections: Projections, names: Collection[str], before_close: str | None = None) -> Projections:
    """Return the projections of the same log as `Replay.without` says."""
    facts = projections.facts
    people, questions = _left_out(facts, names)
    contests = {name: _narrowed(contest, people, questions) for name, contest in facts.contests.items()}
    keep = ~_made_by(facts, people)
    if before_close is not None:
        keep &= _made_before(facts, read_duration(before_close))
    return Projections(replace(facts, contests=contests, held=facts.forecasts.rows(np.flatnonzero(keep))))


def _left_out(facts: Facts, names: Collection[str]) -> tuple[set[str], set[int]]:
    """Return the participants and the codes of the questions that names stand for."""
    people, questions = set[str](), set[int]()
    for name in names:
        detail, equals, value = name.partition("=")
        if name in _people(facts):
            people.add(_name_now(facts, name))
        elif name == BOTS:
            people |= _bots(facts)
        elif equals and detail in DETAILS:
            questions |= _with_detail(facts, detail, value)
        else:
            known = {*_people(facts), BOTS}
            details = ", ".join(f"{each}=…" for each in DETAILS)
            raise ValueError(
                f"no participant named {name!r}; there are {listed(name, known)}; for questions: {details}"
            )
    return people, questions


def _people(facts: Facts) -> set[str]:
    enrolled = {who for contest in facts.contests.values() for who in contest.enrolments}
    return {*facts.participant_codes.codes, *enrolled}


def _name_now(facts: Facts, name: str) -> str:
    """Return the id of now of a participant who may have had another."""
    if name not in facts.participant_codes.codes:
        return name
    codes = facts.participant_codes
    [code] = present(facts.renames, int64_array([codes.codes[name]]), facts.as_of)
    return codes.labels[int(code)]


def _bots(facts: Facts) -> set[str]:
    enrolled = (each for contest in facts.contests.values() for each in contest.enrolments.items())
    if found := {who for who, enrolment in enrolled if enrolment.bot}:
        return found
    raise ValueError("nobody is enrolled as a bot: name the participants")


def _with_detail(facts: Facts, detail: str, value: str) -> set[int]:
    values = [{*DETAILS[detail](question)} for question in facts.questions]
    if found := {code for code, own in enumerate(values) if value in own}:
        return found
    raise ValueError(f"no question has the {detail} {value!r}; there are {listed(value, set[str]().union(*values))}")


def _narrowed(contest: Contest, people: set[str], questions: set[int]) -> Contest:
    return replace(
        contest,
        entries={code: entry for code, entry in contest.entries.items() if code not in questions},
        enrolments={who: each for who, each in contest.enrolments.items() if who not in people},
    )


def _made_by(facts: Facts, people: set[str]) -> BoolArray:
    codes = [facts.participant_codes.codes[who] for who in people if who in facts.participant_codes.codes]
    found: BoolArray = np.isin(facts.forecasts.named(facts.as_of).participant, codes)
    return found


def _made_before(facts: Facts, duration: int) -> BoolArray:
    """Return which forecasts and withdrawals were made so long before the close, by the clock of the rules."""
    forecasts, rules = facts.forecasts, [(contest.opened.rules, contest.entries) for contest in facts.contests.values()]
    recorded = int64_array([code for own, entries in rules if own.clock == "recorded" for code in entries])
    at = np.where(np.isin(forecasts.question, recorded), forecasts.recorded_at, forecasts.at)
    found: BoolArray = at <= status(facts).closed_at[forecasts.question] - duration
    return found


def leave_one_out(projections: Projections, contest: str, table: str) -> Iterator[tuple[str, Table]]:
    """Yield each participant of a contest's board, in its order, and a table as it would be without them."""
    facts = projections.facts
    alone = Projections(replace(facts, contests={contest: find_contest(facts, contest)}))
    for row in alone.board(contest):
        if row.participant in _people(facts):
            yield row.participant, without(alone, [row.participant]).table(table).only("contest", contest)
