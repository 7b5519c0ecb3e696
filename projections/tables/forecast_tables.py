"""The builder of the table of forecasts: what each of them says, an outcome, level or sample at a time."""

from itertools import chain

import numpy as np

from forecast_ledger.ledger.core.values import NEVER, PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.core.codes import Codes
from forecast_ledger.projections.core.column_values import MEASURE, PROBABILITIES, Ids, Values
from forecast_ledger.projections.facts.columns import CHANCE, Facts
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.facts.renames import time_order
from forecast_ledger.projections.facts.standing import ENDINGS, spans
from forecast_ledger.projections.tables.analysis import Analysis


def forecasts_values(analysis: Analysis) -> list[Values]:
    """One row for each outcome, level or sample of each forecast."""
    facts = analysis.facts
    forecasts, questions = facts.forecasts.named(facts.as_of), facts.questions
    made = np.flatnonzero(forecasts.made)
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
        own = forecasts.rows(kept)
        kept = kept[time_order(own.renames, own.question, own.participant, own.at, own.position)]
    found = spans(forecasts.rows(kept), grace[kept], now.opens_at, now.closed_at)
    place = np.full(len(forecasts.at), len(kept))  # the last one is of retracted rows
    place[kept] = np.arange(len(kept))
    stood, start, end = (np.append(column, 0)[place[row]] for column in found[:3])
    endings = np.append(found.ending, ENDINGS.index("retracted"))[place[row]].tolist()
    return [_where(stood > 0, start), _where(stood > 0, end), [ENDINGS[ending] for ending in endings]]


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
    flat, found = int64_array([*chain.from_iterable(levels)]), np.zeros(len(question), np.int64)
    found[quantile] = flat[begins[question[quantile]] + number[quantile]] * (PROBABILITIES // PROBABILITY)
    return found


def _probabilities(facts: Facts, row: Int64Array, number: Int64Array, measured: BoolArray) -> Int64Array:
    """Return the probability of each row that has one, 1e-11."""
    bins = int64_array([question.range.bins if question.range else 0 for question in facts.questions])
    row, found = row[~measured], np.zeros(len(row), np.int64)
    of_bins = bins[facts.forecasts.question[row]]
    found[~measured] = facts.forecasts.chance(row, number[~measured], of_bins) * (PROBABILITIES // CHANCE)
    return found


def _measures(facts: Facts, row: Int64Array, number: Int64Array, measured: BoolArray) -> Values:
    """Return the value of each row of quantiles or samples, 1e-12, in Python integers: 64 bits may be too few."""
    forecasts = facts.forecasts
    units = [MEASURE // 10**question.range.decimals if question.range else 0 for question in facts.questions]
    row, found = row[measured], [None] * len(row)
    measures = forecasts.chances[forecasts.start[row] + number[measured]].tolist()
    values = [
        value * units[question] for value, question in zip(measures, forecasts.question[row].tolist(), strict=True)
    ]
    for place, value in zip(np.flatnonzero(measured).tolist(), values, strict=True):
        found[place] = value
    return found


def _where(present: BoolArray, numbers: Int64Array) -> Values:
    """Return the numbers with None where there is none."""
    if present.all():
        return numbers
    return [number if there else None for number, there in zip(numbers.tolist(), present.tolist(), strict=True)]
