"""Explain a score: the parts that add up to it exactly, and the events that it depends on."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.core.values import format_fixed, format_instant
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.model.mismatch import share_text
from forecast_ledger.ledger.model.plain_rows import ReadPage
from forecast_ledger.ledger.model.rules import REFERENCE_ROWS, shown_references
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns
from forecast_ledger.ledger.storing.sealed_log import UNTOLD, SealedPart
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.facts import from_log
from forecast_ledger.projections.facts.columns import ChangedOutcomes, Contest, Facts, Forecasts
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.facts.from_segments import facts_of_segments, segment_events
from forecast_ledger.projections.scores import score_terms
from forecast_ledger.projections.scores.scored_questions import Answer, Questions, kernel_of, members, scored_questions
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.reading.board_notes import (
    changed_since,
    ids_of,
    says_ids,
    says_present_id,
    unsealed,
)
from forecast_ledger.replay.reading.descriptions import describe_order, describe_rules, describe_score
from forecast_ledger.replay.reading.event_text import event_summary
from forecast_ledger.replay.reading.log import Cut, Log, find_contest, find_entry, outcome_names

OTHERS_LISTED = 10  # participants that are listed, of those that a number depends on


class Explanation(NamedTuple):
    """A number and its origin.

    number: its kind, its key, its value, and amounts that are not in the parts. parts: rows whose `contribution`, or a
    similar column, adds up to it. rule: how it is computed, with the source of the rule. others: the other
    participants that it depends on. events: the events that it depends on, in log order. since: answers that it depends
    on and that changed after the contest was sealed, and what it would be with the answers of now, in words;
    before them, under which other ids its forecasts are recorded. subsequent: the events after the seal of the board
    that it is on, which do not count, each after the seal or after the payment of prizes.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import Explanation, append, explain, open_ledger
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     explained = explain(f"{folder}/season.db", "prize", "plain", "B")
    >>> isinstance(explained, Explanation), explained.checkpoint.position
    (True, 34)
    """

    number: dict[str, Any]
    rule: dict[str, Any]
    parts: list[dict[str, Any]]
    others: dict[str, Any]
    events: list[dict[str, Any]]
    checkpoint: Checkpoint
    since: tuple[str, ...] = ()
    subsequent: tuple[dict[str, Any], ...] = ()


class LogReading(NamedTuple):
    """The facts of a log, its checkpoint, and the events that were selected."""

    checkpoint: Checkpoint
    facts: Facts
    selected: list[Recorded]

    def summary(self, recorded: Recorded) -> dict[str, Any]:
        """Return an event as a row, with the names of outcomes."""
        return event_summary(recorded, partial(outcome_names, self.facts))


Select = Callable[[Any], bool]  # whether an event is selected
Pages = Callable[[StoredLog, Cut], Iterator[Sequence[Recorded]]]  # reads some rows of a log, up to the cut


def read_log(
    source: Log, select: Select, question: str = "", *, only: bool = False, pages: Pages | None = None
) -> LogReading:
    """Read a log and select events; only: make the facts from the selected events only; pages: read only these rows.

    question: forecasts on other questions are not selected. Raises, first that applies: Refused (as_of is not an
    instant, or beyond the log), Unavailable, Corrupt.
    """
    cut, selected = source.cut(), list[Recorded]()

    def filtered(pages: Iterable[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
        """Yield the pages, or with `only` the selected rows of each, and keep the selected rows."""
        for page in pages:
            events = page.on(question) if isinstance(page, ReadPage) else page
            some = [recorded for recorded in events if select(recorded.event)]
            selected.extend(some)
            if some or not only:
                yield some if only else page

    if pages is not None:
        with source.opened() as store:
            facts = from_log.facts(filtered(pages(store, cut)))
        return LogReading(cut.reached(), facts, selected)
    with source.parts(cut, UNTOLD, question=question if only else None) as parts:
        rest = parts.columns if parts.columns and (only or not question) else parts.pages
        if only:
            sealed = (segment_events(part.columns, question) for part in parts.segments)
            facts = from_log.facts(filtered(chain(sealed, rest)))
        else:
            facts = facts_of_segments(_selecting(parts.segments, filtered, question), filtered(rest))
    return LogReading(cut.reached(), facts, selected)


def _selecting(
    segments: Iterable[SealedPart], filtered: Callable[[Iterable[Sequence[Recorded]]], Iterable[Any]], question: str
) -> Iterator[tuple[SegmentColumns, Checkpoint]]:
    """Select events of segments, and pass on their columns."""
    for part in segments:
        deque(filtered([segment_events(part.columns, question)]), maxlen=0)
        yield part.columns, part.end


def score(  # noqa: PLR0913 - what has a default is named
    source: Log,
    contest: str,
    question: str,
    participant: str,
    *,
    pages: Pages | None = None,
    every_part: bool = False,
) -> Explanation:
    """Explain a score, by interval of each forecast, or by every part of the score.

    pages: reads the rows about the question and the contest, as an index lists them; by default all rows are read.

    Raises, first that applies: what `read_log` raises; Refused: unknown_contest, unknown_question (or not in
    the contest), not_resolved, nothing_standing.
    """
    reading = _read_question(source, contest, question, pages)
    facts = reading.facts
    narrowed, questions = _narrowed(facts, contest, question)
    facts.contests = {contest: narrowed}
    projections = Projections(facts)
    row = next(projections.table("scores").only("participant", participant).rows(), None)
    if row is None:
        labels = facts.participant_codes.labels
        wrong = says_present_id(facts, participant, narrowed.as_of(facts)) or (
            "no forecast of the participant stood in scored time"
            if participant in labels
            else f"no such participant made a forecast on it; there are: {listed(participant, labels)}"
        )
        remedy = "`table LOG scores` lists the participants that have a score"
        raise Refused("nothing_standing", "participant", participant, wrong, remedy=remedy)
    parts_of_score = list(projections.score_parts(participant).rows())
    intervals = _standing(facts, narrowed, questions, participant)
    rows = [
        row
        for number, parts in _parts_by_interval(parts_of_score, intervals.weights)
        for row in _interval_rows(intervals, number, parts, every_part)
    ]
    whole = Fraction(int(row["numerator"]), int(row["denominator"]))
    shown = rounded_parts([Fraction(int(part["contribution"]), int(row["denominator"])) for part in rows], whole)
    rows = [part | {"points": points} for part, points in zip(rows, shown, strict=True)]
    answer, rules = questions.answers[0], narrowed.opened.rules
    kernel = kernel_of(rules, answer.question)
    words = [describe_score(rules, kernel), describe_order(rules, [answer.question])]
    outcome = _outcome(answer) or intervals.resolved.value
    names = ids_of(facts, participant, narrowed.as_of(facts))
    about = [recorded for recorded in reading.selected if _concerns(recorded.event, names, participant, facts)]
    return Explanation(
        number={"explained": "score", **row, "outcome": outcome, "resolved": intervals.resolved.position},
        rule=describe_rules(rules, narrowed.position, "; ".join(filter(None, words)), kernel),
        parts=rows,
        others=_others(facts, narrowed, facts.forecasts.on(questions.code, questions.as_of), participant),
        events=[*map(reading.summary, about)],
        checkpoint=reading.checkpoint,
        since=(
            *says_ids(facts, participant, narrowed.as_of(facts)),
            *_since(projections, contest, participant, row["score"]),
        ),
    )


def _since(projections: Projections, contest: str, participant: str, score: str) -> tuple[str, ...]:
    """Say if the answer or forecasts changed after the contest was sealed, and what the score would be now."""
    facts = projections.facts
    sealed = facts.contests[contest]
    changed, restated, renamed = since = changed_since(facts, sealed)
    if not any(since):
        return ()
    now = next(unsealed(projections, contest).table("scores").only("participant", participant).rows(), None)
    told = "there would be no score" if now is None else f"score {now['score']} for {score}"
    words = [f"the answer changed after {contest} was sealed: {each.words(facts)}" for each in changed]
    words += [f"forecasts were restated after {contest} was sealed: {', '.join(restated)}"] if restated else []
    words += [f"ids of participants changed after {contest} was sealed: {', '.join(renamed)}"] if renamed else []
    return (*words, f"with the {since.what('answer')} of now, if {contest} were not sealed: {told}")


def _outcome(answer: Answer) -> str:
    """Return the outcome that happened, or what a share of each is paid; "" for a numeric question."""
    if answer.payouts:
        paid = zip(answer.question.outcomes, answer.payouts, strict=True)
        return ", ".join(f"{outcome} {share_text(share)}" for outcome, share in paid)
    return answer.question.outcomes[answer.outcome] if answer.question.outcomes else ""


def rounded_parts(parts: Sequence[Fraction], whole: Fraction) -> list[str]:
    """Round the parts of a number to nine decimals, so that they add up to the number as it is published.

    By largest remainder; ties go to the first.

    >>> rounded_parts([Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)], Fraction(1))
    ['0.333333334', '0.333333333', '0.333333333']
    """
    scaled = [divmod(part.numerator * POINTS, part.denominator) for part in parts]
    units = [quotient for quotient, _ in scaled]
    left = [Fraction(remainder, part.denominator) for (_, remainder), part in zip(scaled, parts, strict=True)]
    for i in sorted(range(len(parts)), key=lambda i: (-left[i], i))[: round(whole * POINTS) - sum(units)]:
        units[i] += 1
    return [format_fixed(unit, POINTS, least=9) for unit in units]


class _OnQuestion:
    """Selects the events about one question in one contest, until it is known that the contest needs all events.

    needs_all: whether the contest has trading or the market as a row, for which accounts and quotes are needed.
    """

    def __init__(self, contest: str, question: str) -> None:
        self._question, self._about = question, (("question", question), ("contest", contest))
        self.needs_all = False

    def __call__(self, event: Any) -> bool:
        if self.needs_all or isinstance(event, events.PricesQuoted) or not self.concerns(event):
            return False
        if isinstance(event, events.ContestOpened):
            self.needs_all = event.rules.trading is not None or "market" in shown_references(event.rules)
        return not self.needs_all

    def concerns(self, event: Any) -> bool:
        """Return whether an event is about the question, the contest or the ids of participants."""
        if isinstance(event, events.AccountEvent):
            return False
        if isinstance(event, events.ParticipantRenamed):
            return True
        if isinstance(event, events.PricesQuoted):
            return any(quote.question == self._question for quote in event.quotes)
        about = [(name, value) for name, value in self._about if hasattr(event, name)]
        return bool(about) and all(getattr(event, name) == value for name, value in about)


def _read_question(source: Log, contest: str, question: str, pages: Pages | None) -> LogReading:
    """Read the events about one question in one contest; all events, if the contest needs them.

    pages: reads only some rows, with all of these.
    """
    select = _OnQuestion(contest, question)
    reading = read_log(source, select, question, only=True, pages=pages)
    exists = contest in reading.facts.contests
    if exists and not select.needs_all:
        return reading
    return read_log(source, select.concerns, question)  # the refusal lists the contests there are


def _narrowed(facts: Facts, contest: str, question: str) -> tuple[Contest, Questions]:
    """Return the contest with this question only, and the question as it is scored."""
    whole = find_contest(facts, contest)
    entry = find_entry(facts, whole, question)
    narrowed = replace(whole, entries={entry.question: entry})
    questions = scored_questions(facts, narrowed)
    if not len(questions.code):
        wrong = "the question has no answer that counts in the contest, so it has no scores"
        raise Refused("not_resolved", "question", question, wrong, remedy="ask again once it is resolved")
    return narrowed, questions


class _Intervals(NamedTuple):
    """The intervals during which a participant's forecasts stood on one question.

    rows: the row of each among the forecasts; -1 for the consensus. weights: its length in units of time. ended: what
    ended it. resolved: the settlement that the score uses.
    """

    forecasts: Forecasts
    rows: list[int]
    weights: list[int]
    ended: list[str]
    resolved: Any


def _standing(facts: Facts, contest: Contest, questions: Questions, participant: str) -> _Intervals:
    last, code, rules = contest.as_of(facts), int(questions.code[0]), contest.opened.rules
    forecasts = score_terms.scored_forecasts(facts, rules, questions, shown_references(rules))
    owner = totals.score_labels(facts).index(participant)
    both = [terms.standing for _, terms in score_terms.terms_in_chunks(facts, [contest], questions)]
    [standing] = [rows for each in both if len((rows := each.of(np.flatnonzero(each.participant == owner))).row)]
    resolved = [row for row in facts.settlements if row.question == code and row.position <= last][-1]
    closings = [position for position, which, _ in facts.closings if which == code and position <= last]
    now = status(facts, last)
    early = f"closed by #{closings[-1]}" if closings and now.closed_at[code] < now.closes_at[code] else "close"
    end = f"answer known, #{resolved.position}" if now.known_at[code] < now.closed_at[code] else early
    theirs = np.flatnonzero(forecasts.participant == owner).tolist()
    clock = forecasts.recorded_at if rules.clock == "recorded" else forecasts.at
    ended = []
    for index, row in enumerate(standing.row.tolist()):
        if row >= 0 and row in standing.row[index + 1 :]:
            ended.append("counts again")  # at a later one of several single instants
            continue
        later = theirs[theirs.index(row) + 1 :] if row >= 0 else []
        after = min(later, key=clock.__getitem__, default=None)
        replaced_at = questions.until[0] if after is None else min(clock[after], questions.until[0])
        if row >= 0 and forecasts.until[row] < replaced_at:
            ended.append("ended by itself")
        elif row < 0 or after is None or clock[after] >= questions.until[0]:
            ended.append("" if row < 0 else end)
        else:
            ended.append(_successor(facts.changed.get(code), forecasts, row, after))
    return _Intervals(forecasts, standing.row.tolist(), (standing.end - standing.start).tolist(), ended, resolved)


def _successor(changed: ChangedOutcomes | None, forecasts: Forecasts, row: int, after: int) -> str:
    """Say what ended a forecast, given the row that came after it."""
    position, made = forecasts.position[after], forecasts.made[after]
    if changed is not None and position in {change.position for change in changed.changes}:
        return f"outcomes removed by #{position}" if made else f"end of the grace period, #{position}"
    if position == forecasts.position[row]:
        return "end of the grace period"  # from then on it counts with the new outcomes
    return f"{'replaced' if made else 'withdrawn'} by #{position}"


def _parts_by_interval(parts: list[dict[str, Any]], weights: list[int]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield the number of each interval with its parts, which fill the interval one after another."""
    left = iter(parts)
    for number, weight in enumerate(weights):
        parts_of_interval, filled = list[dict[str, Any]](), 0
        while filled < weight:
            parts_of_interval.append(next(left))
            filled += parts_of_interval[-1]["weight"]
        yield number, parts_of_interval


def _interval_rows(
    intervals: _Intervals, number: int, parts: list[dict[str, Any]], every_part: bool
) -> list[dict[str, Any]]:
    """Return the rows of one interval of a forecast: one row, or one for each part."""
    row = intervals.rows[number]
    forecast: dict[str, Any] = {"forecast": None, "made_at": None, "recorded_at": None}
    if row >= 0:
        forecast = {
            "forecast": int(intervals.forecasts.position[row]),
            "made_at": format_instant(int(intervals.forecasts.at[row])),
            "recorded_at": format_instant(int(intervals.forecasts.recorded_at[row])),
        }
    groups = [[part] for part in parts] if every_part else [parts]
    return [
        {
            **forecast,
            "from_at": group[0]["from_at"],
            "to_at": group[-1]["to_at"],
            "ended": intervals.ended[number] if group[-1] is parts[-1] else "compared otherwise",
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
    """Return one value, or the least and the greatest of several; None if there are none."""
    distinct = sorted({value for value in values if value is not None}, key=key)
    if not distinct:
        return None
    return str(distinct[0]) if len(distinct) == 1 else f"{distinct[0]}..{distinct[-1]}"


def _others(facts: Facts, contest: Contest, forecasts: Forecasts, participant: str) -> dict[str, Any]:
    """Describe the other participants that count among the peers or in the consensus, if the reference uses them."""
    reference = contest.opened.rules.reference
    if reference in {"none", "uniform"}:
        return {"compared_with": reference, "count": 0, "forecasts": 0, "first": None, "last": None, "named": []}
    labels, counts = facts.participant_codes.labels, members(facts, contest)
    participant_code = facts.participant_codes.codes.get(participant, -1)
    rows = np.flatnonzero(counts[forecasts.participant] & (forecasts.participant != participant_code) & forecasts.made)
    position = forecasts.position[rows]
    participants = sorted(labels[code] for code in np.unique(forecasts.participant[rows]).tolist())
    return {
        "compared_with": reference,
        "count": len(participants),
        "forecasts": len(rows),
        "first": int(position.min()) if len(rows) else None,
        "last": int(position.max()) if len(rows) else None,
        "named": participants[:OTHERS_LISTED],
    }


def _concerns(event: Any, names: set[str], participant: str, facts: Facts) -> bool:
    """Return whether an event is about this participant, or about no participant; quotes are about the market.

    names: all ids of the participant.
    """
    if isinstance(event, events.PricesQuoted):
        return participant == totals.reference_labels(facts)[REFERENCE_ROWS.index("market")]
    return getattr(event, "participant", participant) in names and not isinstance(event, events.PrizePaid)
