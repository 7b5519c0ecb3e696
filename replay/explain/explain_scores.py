"""A published number taken apart, down to the events it stands on; its parts add up to it exactly."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import format_fixed, format_instant
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.core.column_values import POINTS
from forecast_ledger.projections.facts import from_log
from forecast_ledger.projections.facts.columns import Contest, Facts, Forecasts
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.scores import score_terms
from forecast_ledger.projections.scores.score_policies import kernel_of
from forecast_ledger.projections.scores.scored_questions import Questions, members, scored_questions
from forecast_ledger.replay.reading import lookup
from forecast_ledger.replay.reading.descriptions import rule, score_words
from forecast_ledger.replay.reading.event_text import occurrence
from forecast_ledger.replay.reading.replay import AsOf, Cut, Watch, opened
from forecast_ledger.replay.readmodel import log_index
from forecast_ledger.replay.readmodel.log_index import IndexQuery

NAMED = 10  # of those a number depends on, how many are named


class Source(NamedTuple):
    """A log, and up to where it is read; model: a read model of it, from which to know what rows a score stands on."""

    location: str
    name: str = "main"
    as_of: AsOf = None
    watch: Watch = lambda _: None
    model: str | None = None


class Explained(NamedTuple):
    """A number and what it is made of.

    number: what it is, of what, its value, and what of it is not in the parts. parts: rows whose `contribution`, or
    column of that sort, add up to it. rule: how it comes about, and where that is said. others: whom else it depends
    on. events: what of the log it stands on, in log order.
    """

    number: dict[str, Any]
    rule: dict[str, Any]
    parts: list[dict[str, Any]]
    others: dict[str, Any]
    events: list[dict[str, Any]]
    checkpoint: Checkpoint


class Reading(NamedTuple):
    """What a log says, its checkpoint, and the events that were asked for."""

    checkpoint: Checkpoint
    facts: Facts
    kept: list[Recorded]


Wanted = Callable[[Any], bool]  # of an event


def read(source: Source, wanted: Wanted, *, alone: bool = False, query: IndexQuery | None = None) -> Reading:
    """Read a log, keeping the events that are wanted; alone: whether its facts are to be of those alone; query: what
    of a log to read alone.

    Raises, first that applies: Refused (as_of is no instant, or beyond the log), Unavailable, Corrupt.
    """
    cut, kept = Cut(source.as_of), list[Recorded]()

    def passed(pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
        for page in pages:
            some = [recorded for recorded in page if wanted(recorded.event)]
            kept.extend(some)
            if some or not alone:
                yield some if alone else page

    with opened(source.location, source.name) as store:
        if query is None:
            pages = cut.pages(log.unseal_pages(store.pages()), source.watch)
        else:
            pages = log_index.indexed_pages(store, query, cut, source.watch)
        facts = from_log.facts(passed(pages))
    return Reading(cut.reached(), facts, kept)


def score(source: Source, contest: str, question: str, participant: str, *, every_part: bool = False) -> Explained:
    """A score, by interval of a forecast, or by every part of the score.

    Raises, first that applies: what `read` raises; Refused: unknown_contest, unknown_question (or not in the contest),
    not_resolved, nothing_standing.
    """
    reading = _of_question(source, contest, question)
    found = reading.facts
    narrowed, questions = _narrowed(found, contest, question)
    found.contests = {contest: narrowed}
    projections = Projections(found)
    row = next(projections.table("scores").only("participant", participant).rows(), None)
    if row is None:
        forecast = participant in found.participant_codes.codes
        said = "no forecast of theirs stood while it was scored" if forecast else "nobody of that id forecast on it"
        raise Refused(
            "nothing_standing", "participant", participant, said, remedy="`table LOG scores` lists who has one"
        )
    own = list(projections.score_parts(participant).rows())
    about = _standing(found, narrowed, questions, participant)
    rows = [part for each, parts in _shared(own, about.weights) for part in _lines(about, each, parts, every_part)]
    whole = Fraction(int(row["numerator"]), int(row["denominator"]))
    shown = fitted([Fraction(int(part["contribution"]), int(row["denominator"])) for part in rows], whole)
    rows = [part | {"points": each} for part, each in zip(rows, shown, strict=True)]
    answer, rules = questions.answers[0], narrowed.opened.rules
    kernel = kernel_of(rules, answer.question)
    outcome = answer.question.outcomes[answer.outcome] if answer.question.outcomes else answer.value
    return Explained(
        number={"explained": "score", **row, "outcome": outcome, "resolved": about.resolved.position},
        rule=rule(rules, narrowed.position, score_words(rules, kernel), kernel),
        parts=rows,
        others=_others(found, narrowed, about.forecasts, participant),
        events=[occurrence(each) for each in reading.kept if _concerns(each.event, participant)],
        checkpoint=reading.checkpoint,
    )


def fitted(parts: Sequence[Fraction], whole: Fraction) -> list[str]:
    """Parts of a number to nine decimals, which add up to it as it is published: by largest remainder, ties in order.

    >>> fitted([Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)], Fraction(1))
    ['0.333333334', '0.333333333', '0.333333333']
    """
    scaled = [divmod(part.numerator * POINTS, part.denominator) for part in parts]
    units = [quotient for quotient, _ in scaled]
    left = [Fraction(rest, part.denominator) for (_, rest), part in zip(scaled, parts, strict=True)]
    for i in sorted(range(len(parts)), key=lambda i: (-left[i], i))[: round(whole * POINTS) - sum(units)]:
        units[i] += 1
    return [format_fixed(unit, POINTS, least=9) for unit in units]


def _of_question(source: Source, contest: str, question: str) -> Reading:
    """What the log says of one question in one contest; where one trades, of everything, for the books need it all.

    With a read model, of the rows it knows of and those after it.
    """
    trades = False

    def wanted(event: Any) -> bool:
        if isinstance(event, events.AccountEvent):
            return False
        if getattr(event, "question", question) != question or getattr(event, "contest", contest) != contest:
            return False
        return hasattr(event, "question") or hasattr(event, "contest")

    def until_it_trades(event: Any) -> bool:
        nonlocal trades
        found = not trades and wanted(event)
        if found and isinstance(event, events.ContestOpened):
            trades = event.rules.trading is not None
        return found and not trades

    query = None if source.model is None else IndexQuery(source.model, question, contest)
    reading = read(source, until_it_trades, alone=True, query=query)
    there = contest in reading.facts.contests
    return reading if there and not trades else read(source, wanted)  # else to say which there are


def _narrowed(facts: Facts, contest: str, question: str) -> tuple[Contest, Questions]:
    """The contest with this question alone, and that as it counts."""
    whole = lookup.contest(facts, contest)
    entry = lookup.entry(facts, whole, question)
    narrowed = replace(whole, entries={entry.question: entry})
    questions = scored_questions(facts, narrowed)
    if not len(questions.code):
        said = "without an answer that counts in the contest, no score"
        raise Refused("not_resolved", "question", question, said, remedy="ask again once it is resolved")
    return narrowed, questions


class _About(NamedTuple):
    """When a participant's forecasts stood on one question: row of the forecasts (-1 for the consensus) and units of
    time of each interval; what ended each, and the settlement that the score is by.
    """

    forecasts: Forecasts
    rows: list[int]
    weights: list[int]
    ended: list[str]
    resolved: Any


def _standing(facts: Facts, contest: Contest, questions: Questions, participant: str) -> _About:
    last, code = contest.as_of(facts), int(questions.code[0])
    forecasts = facts.forecasts.on(questions.code, questions.as_of)
    [(_, made_of)] = score_terms.terms(facts, [contest], questions)
    owner = totals.labels(facts).index(participant)
    own = made_of.standing.of(np.flatnonzero(made_of.standing.participant == owner))
    resolved = [each for each in facts.settlements if each.question == code and each.position <= last][-1]
    closings = [position for position, which, _ in facts.closings if which == code and position <= last]
    now = status(facts, last)
    early = f"closed by #{closings[-1]}" if closings else "close"
    end = f"answer known, #{resolved.position}" if now.known_at[code] < now.closed_at[code] else early
    of_theirs = np.flatnonzero(forecasts.participant == owner).tolist()
    clock = forecasts.recorded_at if contest.opened.rules.clock == "recorded" else forecasts.at
    ended = []
    for row in own.row.tolist():
        after = of_theirs[of_theirs.index(row) + 1] if row >= 0 and row != of_theirs[-1] else None
        if row < 0 or after is None or clock[after] >= questions.until[0]:
            ended.append("" if row < 0 else end)
        else:
            ended.append(f"{'replaced' if forecasts.made[after] else 'withdrawn'} by #{forecasts.position[after]}")
    return _About(forecasts, own.row.tolist(), (own.end - own.start).tolist(), ended, resolved)


def _shared(parts: list[dict[str, Any]], weights: list[int]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The parts of each interval, which fill it one after another."""
    left = iter(parts)
    for number, weight in enumerate(weights):
        own, filled = list[dict[str, Any]](), 0
        while filled < weight:
            own.append(next(left))
            filled += own[-1]["weight"]
        yield number, own


def _lines(about: _About, each: int, parts: list[dict[str, Any]], every_part: bool) -> list[dict[str, Any]]:
    """The rows of one interval of a forecast: one, or one a part."""
    row = about.rows[each]
    forecast: dict[str, Any] = {"forecast": None, "made_at": None, "recorded_at": None}
    if row >= 0:
        forecast = {
            "forecast": int(about.forecasts.position[row]),
            "made_at": format_instant(int(about.forecasts.at[row])),
            "recorded_at": format_instant(int(about.forecasts.recorded_at[row])),
        }
    groups = [[part] for part in parts] if every_part else [parts]
    return [
        {
            **forecast,
            "from_at": group[0]["from_at"],
            "to_at": group[-1]["to_at"],
            "ended": about.ended[each] if group[-1] is parts[-1] else "compared otherwise",
            "probability": group[0]["probability"],
            "reference": _span([part["reference"] for part in group], Fraction),
            "peers": _span([part["peers"] for part in group], int),
            "parts": len(group),
            "weight": sum(part["weight"] for part in group),
            "contribution": str(sum(int(part["contribution"]) for part in group)),
        }
        for group in groups
    ]


def _span(values: list[Any], key: Callable[[Any], Any]) -> str | None:
    """One value, or the least and the greatest of several; None where there are none."""
    known = sorted({value for value in values if value is not None}, key=key)
    if not known:
        return None
    return str(known[0]) if len(known) == 1 else f"{known[0]}..{known[-1]}"


def _others(facts: Facts, contest: Contest, forecasts: Forecasts, participant: str) -> dict[str, Any]:
    """Who else forecast on the question and counts among the peers or in the consensus, if that is compared with."""
    reference = contest.opened.rules.reference
    if reference in {"none", "uniform"}:
        return {"compared_with": reference, "count": 0, "forecasts": 0, "first": None, "last": None, "named": []}
    labels, counts = facts.participant_codes.labels, members(facts, contest)
    own = facts.participant_codes.codes.get(participant, -1)
    rows = np.flatnonzero(counts[forecasts.participant] & (forecasts.participant != own) & forecasts.made)
    position = forecasts.position[rows]
    who = sorted(labels[code] for code in np.unique(forecasts.participant[rows]).tolist())
    return {
        "compared_with": reference,
        "count": len(who),
        "forecasts": len(rows),
        "first": int(position.min()) if len(rows) else None,
        "last": int(position.max()) if len(rows) else None,
        "named": who[:NAMED],
    }


def _concerns(event: Any, participant: str) -> bool:
    """Whether an event is about nobody in particular, or about this participant."""
    return getattr(event, "participant", participant) == participant and not isinstance(event, events.PrizePaid)
