"""The tables of forecasts: what each says, when it stood, the median of all, and when each was received."""

from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT, NEVER, PROBABILITY
from forecast_ledger.ledger.model import events, publication_stamps
from forecast_ledger.ledger.model.events import Attestation
from forecast_ledger.projections.boards import admission
from forecast_ledger.projections.core.arrays import BoolArray, Codes, Int64Array, int64_array, join_columns
from forecast_ledger.projections.core.columns import (
    MEASURE,
    PROBABILITIES,
    Ids,
    Values,
    ids,
    transpose,
)
from forecast_ledger.projections.core.table import row_order
from forecast_ledger.projections.facts.columns import CHANCE, ENDINGS, Contest, Facts, spans, time_order
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.scores import consensus
from forecast_ledger.projections.tables.analysis import Analysis, contests_with
from forecast_ledger.projections.tables.schemas import Projection, schema

_FORECASTS = schema("""
    what each forecast says: one row for each outcome, quantile or sample

    question*
    participant*
    log_position*  count        log position of the forecast
    number*        count        number of the outcome, level or sample: 1, 2, 3 … in order
    made_at        instant      when it was made, by the forecaster's account
    recorded_at    instant      when it was recorded, by the ledger's clock
    until          instant      when it ends by itself; empty if it does not
    from_at        instant      the first instant at which it stood; empty if it never stood
    to_at          instant      the first instant after the end, at the latest the question's
    ended_by       text         empty if it stands until its question closes, so that these are the last word of each
                                participant; replaced, withdrawn, expired (at until), outcomes_added, closed (before it
                                began), or retracted (it counts as never made)
    outcome        id           the outcome; for a question with bins, the bin; empty for a quantile or sample
    level          probability  the level of the quantile; empty for an outcome or sample
    probability    probability  the probability of the outcome; empty for a quantile or sample
    value          measure      the quantile or sample, in the unit of the question; empty for an outcome
""")


def forecasts_values(analysis: Analysis) -> list[Values]:
    """One row for each outcome, level or sample of each forecast."""
    facts = analysis.facts
    forecasts, questions = facts.forecasts.named(facts.as_of), facts.questions
    made = np.flatnonzero(forecasts.made)
    who = Ids(forecasts.participant[made], facts.participant_codes.labels)
    about = Ids(forecasts.question[made], facts.question_codes.labels)
    made = made[row_order([about, who, forecasts.position[made]])]  # here, where there is one row for all outcomes
    names = [_outcomes(question) for question in questions]
    counts = int64_array([len(each) for each in names])[forecasts.question[made]]
    row, number = np.repeat(made, counts), np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    row, number = _given(facts, row, number)
    question = forecasts.question[row]
    measured = np.array([bool(each.range and each.range.measures) for each in questions], bool)[question]
    quantile = np.array([bool(each.range and each.range.levels) for each in questions], bool)[question]
    codes = Codes()
    labels = int64_array([codes.add(name) for name in chain.from_iterable(names)])
    begins = np.cumsum([0, *map(len, names)])
    return [
        Ids(question, facts.question_codes.labels),
        Ids(forecasts.participant[row], facts.participant_codes.labels),
        forecasts.position[row],
        number + 1,
        forecasts.at[row],
        forecasts.recorded_at[row],
        _where(forecasts.until[row] != NEVER, forecasts.until[row]),
        *_spans(facts, row),
        Ids(labels[begins[question] + number], codes.labels),
        _where(quantile, _levels(facts, question, number, quantile)),
        _where(~measured, _probabilities(facts, row, number, measured)),
        _measures(facts, row, number, measured),
    ]


def _given(facts: Facts, row: Int64Array, number: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the rows without those of outcomes that the question did not have when the forecast was recorded."""
    forecasts = facts.forecasts
    if not facts.changed:
        return row, number
    changed = np.flatnonzero(np.isin(forecasts.question[row], [*facts.changed]))
    given = np.ones(len(row), bool)
    given[changed] = forecasts.chances[forecasts.start[row[changed]] + number[changed]] >= 0
    return row[given], number[given]


def _spans(facts: Facts, row: Int64Array) -> list[Values]:
    """Return the columns from_at, to_at and ended_by of these forecasts."""
    forecasts, now = facts.forecasts.named(facts.as_of), status(facts)
    grace = np.full(len(forecasts.at), NEVER)
    for code, outcomes in facts.changed.items():
        for change in reversed(outcomes.changes):
            if change.added:
                grace[(forecasts.question == code) & (forecasts.position < change.position)] = change.ends_at
    kept = np.flatnonzero(facts.as_of < forecasts.retracted)
    if forecasts.renames:
        rows = forecasts.rows(kept)
        kept = kept[time_order(rows.renames, rows.question, rows.participant, rows.at, rows.position)]
    intervals = spans(forecasts.rows(kept), grace[kept], now.opens_at, now.closed_at)
    index = np.full(len(forecasts.at), len(kept))  # the last one is of retracted rows
    index[kept] = np.arange(len(kept))
    stood, start, end = (np.append(column, 0)[index[row]] for column in intervals[:3])
    endings = np.append(intervals.ending, ENDINGS.index("retracted"))[index[row]]
    return [_where(stood > 0, start), _where(stood > 0, end), np.array(ENDINGS, object)[endings].tolist()]


def _outcomes(question: events.QuestionOpened) -> list[str]:
    """Return the names of a question's outcomes: the numbers of bins, and an empty name for each level or sample."""
    if question.range is None:
        return [*question.outcomes]
    measures = question.range.measures
    return [""] * measures if measures else [str(number) for number in range(question.range.bins + 2)]


def _levels(facts: Facts, question: Int64Array, number: Int64Array, quantile: BoolArray) -> Int64Array:
    """Return the level of each row of quantiles, 1e-11."""
    levels = [question.range.levels if question.range else () for question in facts.questions]
    begins = np.cumsum([0, *map(len, levels)])
    flat, level = int64_array([*chain.from_iterable(levels)]), np.zeros(len(question), np.int64)
    level[quantile] = flat[begins[question[quantile]] + number[quantile]] * (PROBABILITIES // PROBABILITY)
    return level


def _probabilities(facts: Facts, row: Int64Array, number: Int64Array, measured: BoolArray) -> Int64Array:
    """Return the probability of each row that has one, 1e-11."""
    bins = int64_array([question.range.bins if question.range else 0 for question in facts.questions])
    row, probability = row[~measured], np.zeros(len(row), np.int64)
    of_bins = bins[facts.forecasts.question[row]]
    probability[~measured] = facts.forecasts.chance(row, number[~measured], of_bins) * (PROBABILITIES // CHANCE)
    return probability


def _measures(facts: Facts, row: Int64Array, number: Int64Array, measured: BoolArray) -> Values:
    """Return the value of each row of quantiles or samples, 1e-12, in Python integers: 64 bits may be too few."""
    forecasts = facts.forecasts
    units = [MEASURE // 10**question.range.decimals if question.range else 0 for question in facts.questions]
    row, result = row[measured], [None] * len(row)
    measures = forecasts.chances[forecasts.start[row] + number[measured]].tolist()
    values = [
        value * units[question] for value, question in zip(measures, forecasts.question[row].tolist(), strict=True)
    ]
    for index, value in zip(np.flatnonzero(measured).tolist(), values, strict=True):
        result[index] = value
    return result


def _where(present: BoolArray, numbers: Int64Array) -> Values:
    """Return the numbers with None where there is none."""
    if present.all():
        return numbers
    if not present.any():
        return [None] * len(numbers)
    return [number if there else None for number, there in zip(numbers.tolist(), present.tolist(), strict=True)]


_STANDING = schema("""
    when each forecast stood

    question*
    participant*
    from_at*      instant  the first instant
    to_at         instant  the first instant after the end
    made_at       instant  when it was made; earlier than from_at if made before the question opened
    log_position  count    log position of the forecast, or of a removal of outcomes that changed it
""")


def standing_values(analysis: Analysis) -> list[Values]:
    """One row for each interval of a forecast."""
    facts, forecasts, standing = analysis.facts, analysis.counted, analysis.standing
    return [
        Ids(standing.question, facts.question_codes.labels),
        Ids(standing.participant, facts.participant_codes.labels),
        standing.start,
        standing.end,
        forecasts.at[standing.row],
        forecasts.position[standing.row],
    ]


_CONSENSUS = schema("""
    the median of the standing forecasts over time

    question*
    outcome*  id           the outcome; for a numeric question, the bin that contains the answer
    from_at*  instant      the first instant
    to_at     instant      the first instant after the end
    count     count        number of standing forecasts
    median    probability  their median probability of the outcome
""")


def consensus_values(analysis: Analysis) -> list[Values]:
    """One row for each interval of the median of an outcome; the rows of an outcome are adjacent and in order."""
    facts = analysis.facts
    medians = [
        (facts.questions[question].question, _outcome(facts, question, outcome), question, part[2:])
        for page in consensus.medians_over_time(
            facts, analysis.counted, analysis.standing, status(facts), analysis.chunk
        )
        for question, outcome, part in page.apart()
    ]
    medians.sort(key=itemgetter(0, 1))
    _, outcomes, questions, parts = transpose(medians, 4)
    counts = int64_array([len(start) for start, *_ in parts])
    outcome = ids(outcomes)
    return [
        Ids(np.repeat(int64_array(questions), counts), facts.question_codes.labels),
        Ids(np.repeat(outcome.codes, counts), outcome.labels),
        *join_columns(parts, 4),
    ]


def _outcome(facts: Facts, question: int, outcome: int) -> str:
    """Return the name of an outcome; for a numeric question, the number of its bin."""
    names = facts.questions[question].outcomes
    return names[outcome] if names else str(outcome)


_ADMISSIONS = schema("""
    each forecast of an attested contest: when it was received, and whether it could know the answer

    contest*
    question*
    participant*
    log_position*       count    log position of the forecast
    cutoff_at           instant  the last second of the day before the close date, UTC
    receipt             text     in_time or late, by the ledger's clock
    receipt_margin      seconds  cut-off - receipt; one second after the cut-off is still in time
    earliest_at         instant  earliest instant that the newest source or training date can mean, if bounded
    latest_at           instant  latest instant that it can mean in any time zone, if bounded
    information         text     a leak of later information: certain, possible, clean (none) or undeclared
    information_margin  seconds  cut-off - latest_at; one second after the cut-off is still clean
    restricted          text     use of restricted sources: restricted, clean or undeclared
    window              text     open, or empty if the question opened after the cut-off
""")


def admissions_values(analysis: Analysis) -> list[Values]:
    """One row for each forecast on a question of an attested contest."""
    facts, forecasts = analysis.facts, analysis.facts.forecasts
    codes, index, rows, counted_until = [], [], [], []
    for name in contests_with(analysis, lambda rules: rules.attested):
        for number in _forecasts_of(facts, facts.contests[name]):
            position, question = int(forecasts.position[number]), int(forecasts.question[number])
            opened = facts.question_as_of(question, facts.contests[name].as_of(facts))
            cutoff = admission.cutoff(opened.closes_at)
            codes.append(analysis.contest_codes[name])
            index.append(number)
            counted_until.append(facts.contests[name].as_of(facts))
            receipt = admission.receipt_verdict(int(forecasts.recorded_at[number]), cutoff)
            attestation = facts.attestations.get(position) or Attestation()
            empty = "empty" if admission.empty_window(opened.opens_at, cutoff) else "open"
            rows.append([position, cutoff, *receipt, *_declared_columns(attestation, cutoff), empty])
    row_numbers = int64_array(index)
    return [
        Ids(int64_array(codes), analysis.contests),
        Ids(forecasts.question[row_numbers], facts.question_codes.labels),
        Ids(forecasts.rows(row_numbers).named(int64_array(counted_until)).participant, facts.participant_codes.labels),
        *transpose(rows, 10),
    ]


def _forecasts_of(facts: Facts, contest: Contest) -> Iterator[int]:
    """Yield the rows of the forecasts that a contest admits or refuses, question after question."""
    forecasts, last = facts.forecasts, contest.as_of(facts)
    for question in sorted(contest.entries):
        first, end = np.searchsorted(forecasts.question, [question, question + 1])
        of_question = slice(first, end)
        counting = (forecasts.position[of_question] <= last) & (last < forecasts.retracted[of_question])
        yield from (np.flatnonzero(forecasts.made[of_question] & counting) + first).tolist()


def _declared_columns(attestation: Attestation, cutoff: int) -> list[Any]:
    """Return the columns earliest_at, latest_at, information, information_margin and restricted."""
    stamps = (attestation.newest_source, attestation.training_cutoff, attestation.model_released)
    source, trained, released = (
        None if text is None else publication_stamps.stamp_span(text, "attestation") for text in stamps
    )
    newest = admission.newest_information(source, trained, released)
    verdict, margin = admission.information_verdict(newest, cutoff)
    restricted = admission.source_verdict(attestation.restricted_sources, attestation.restricted_list)
    return [*_ends(newest), verdict, margin, restricted]


def _ends(newest: publication_stamps.StampSpan | None) -> tuple[int | None, int | None]:
    """Return the earliest and the latest instant, None for an end without a bound."""
    earliest, latest = newest or admission.UNDECLARED
    return None if earliest <= FIRST_INSTANT else earliest, None if latest >= LAST_INSTANT else latest


FORECASTS: dict[str, Projection] = {
    "forecasts": Projection(
        2,
        _FORECASTS,
        forecasts_values,
        reads=("own_forecasts", "questions"),
        division="forecasts",
        on_request=True,
        exported=True,
    ),
    "standing": Projection(1, _STANDING, standing_values, reads=("own_forecasts", "questions"), division="forecasts"),
    "consensus": Projection(
        1, _CONSENSUS, consensus_values, reads=("forecasts", "questions", "resolutions"), division="forecasts"
    ),
}


ADMISSIONS: dict[str, Projection] = {
    "admissions": Projection(
        1, _ADMISSIONS, admissions_values, reads=("own_forecasts", "entries"), division="receipts"
    ),
}
