"""Filing many questions together: those that are opened, added to contests and resolved, as most events of a frame are.

A check that gives the same answer for many of these events is made once, the others are made column by column. If one
event has a fault, none is filed; to file them one by one then names the fault.
"""

from collections.abc import Callable, Sequence
from itertools import compress, repeat
from operator import lt, sub
from typing import Any

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LARGEST_WEIGHT, LAST_INSTANT, LONGEST_PERIOD
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.answers import exact_shares
from forecast_ledger.projections.facts.account_events import enter_answers
from forecast_ledger.projections.facts.columns import Entry, Facts, Settlement
from forecast_ledger.projections.facts.event_checks import check_event


class _FaultError(Exception):
    """An event has a fault."""


def file_together(facts: Facts, position: Sequence[int], several: Sequence[Any]) -> bool:
    """File consecutive events of the types of TOGETHER, or, if one has a fault, none; return whether they are filed.

    position: the log position of each.
    """
    kinds = events.QuestionOpened, events.QuestionAdded, events.QuestionResolved
    opened, added, resolved = (_of(kind, position, several) for kind in kinds)
    before = len(facts.questions)
    try:
        _check_openings(facts, *opened)
        file_openings(facts, *opened)
        _check_entries(facts, *added)
        _check_answers(facts, *resolved)
    except (_FaultError, Corrupt, KeyError):
        for question in facts.questions[before:]:
            del facts.question_codes.codes[question.question]
        del facts.questions[before:], facts.opened[before:]
        return False
    file_entries(facts, *added)
    file_answers(facts, *resolved)
    return True


def _of(kind: type, position: Sequence[int], several: Sequence[Any]) -> tuple[Sequence[int], Sequence[Any]]:
    """Return the events of a type, with the log position of each."""
    chosen = [type(event) is kind for event in several]
    return [*compress(position, chosen)], [*compress(several, chosen)]


def _check_openings(facts: Facts, position: Sequence[int], opened: Sequence[events.QuestionOpened]) -> None:
    names = {event.question for event in opened}
    opens_at, closes_at = [event.opens_at for event in opened], [event.closes_at for event in opened]
    _require(len(names) == len(opened) and facts.question_codes.codes.keys().isdisjoint(names))
    _require(all(map(lt, opens_at, closes_at)) and max(map(sub, closes_at, opens_at), default=0) <= LONGEST_PERIOD)
    for instants in (opens_at, closes_at, [event.at for event in opened]):
        _require(_are_within(instants))
    rows = [*zip(position, opened, strict=True)]
    alike = {(event.kind, event.range, event.outcomes): (at, event) for at, event in rows}
    for at, event in (*alike.values(), *(row for row in rows if row[1].reveals_at is not None)):
        check_event(facts, at, event)


def _check_entries(facts: Facts, position: Sequence[int], added: Sequence[events.QuestionAdded]) -> None:
    _require(_are_within([event.at for event in added]))
    _require(_are_within([event.weight for event in added], 0, LARGEST_WEIGHT))
    alike = dict[object, tuple[int, Any]]()
    for at, event, question in zip(position, added, _questions(facts, position, added), strict=True):
        alike[event.contest, question.range, len(question.outcomes)] = at, event
        if event.spots or event.hidden_coverage_weight is not None:
            check_event(facts, at, event)
        elif event.spot_at is not None and not question.opens_at <= event.spot_at <= question.closes_at:
            raise _FaultError
    for at, event in alike.values():
        check_event(facts, at, event)


def _check_answers(facts: Facts, position: Sequence[int], resolved: Sequence[events.QuestionResolved]) -> None:
    for instants in ([event.at for event in resolved], [event.known_at for event in resolved]):
        _require(_are_within(instants))
    questions = _questions(facts, position, resolved)
    for at, event, question in zip(position, resolved, questions, strict=True):
        if event.payouts or event.payout_unit or question.range is not None:
            check_event(facts, at, event)
        elif not (0 <= event.outcome < len(question.outcomes) and question.opens_at <= event.known_at):
            raise _FaultError


def _questions(facts: Facts, position: Sequence[int], named: Sequence[Any]) -> list[events.QuestionOpened]:
    """Return the questions that events name. Raises KeyError, _FaultError: one was not opened before."""
    codes = _codes(facts, named)
    _require(all(map(lt, map(facts.opened.__getitem__, codes), position)))
    return [*map(facts.questions.__getitem__, codes)]


def _codes(facts: Facts, named: Sequence[Any]) -> list[int]:
    codes = facts.question_codes.codes
    return [codes[event.question] for event in named]


def _are_within(numbers: Sequence[int], least: int = FIRST_INSTANT, greatest: int = LAST_INSTANT) -> bool:
    return not numbers or (least <= min(numbers) and max(numbers) <= greatest)


def _require(holds: bool) -> None:
    if not holds:
        raise _FaultError


def file_openings(facts: Facts, position: Sequence[int], opened: Sequence[events.QuestionOpened]) -> None:
    """File questions that are opened, and were checked."""
    codes = facts.question_codes.codes
    codes.update(zip([event.question for event in opened], range(len(codes), len(codes) + len(opened)), strict=True))
    facts.questions += opened
    facts.opened += position


def file_entries(facts: Facts, position: Sequence[int], added: Sequence[events.QuestionAdded]) -> None:
    """File questions that are added to contests, and were checked."""
    codes = _codes(facts, added)
    entries = map(
        Entry,
        position,
        codes,
        [event.weight for event in added],
        [event.hidden_coverage_weight for event in added],
        [event.spot_at for event in added],
        [tuple([(spot.at, spot.weight) for spot in event.spots]) if event.spots else () for event in added],
    )
    for code, entry, event in zip(codes, entries, added, strict=True):
        facts.contests[event.contest].entries[code] = entry


def file_answers(facts: Facts, position: Sequence[int], resolved: Sequence[events.QuestionResolved]) -> None:
    """File answers that were checked."""
    codes = _codes(facts, resolved)
    facts.settled.update(zip(codes, repeat(events.QuestionResolved)))
    facts.settlements += map(
        Settlement,
        position,
        codes,
        [event.outcome for event in resolved],
        [event.known_at for event in resolved],
        [event.value for event in resolved],
        repeat(True),
        [exact_shares(event.payouts, event.payout_unit) if event.payouts else () for event in resolved],
    )
    enter_answers(facts, position, codes, resolved)


TOGETHER: dict[type, Callable[[Facts, Sequence[int], Sequence[Any]], None]] = {
    events.QuestionOpened: file_openings,
    events.QuestionAdded: file_entries,
    events.QuestionResolved: file_answers,
}
