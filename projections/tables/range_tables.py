"""Builders of the tables of numeric forecasts: parts of interval scores, coverages of intervals, PIT histograms."""

from typing import Any

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.boards.contest_groups import ScoredGroup, contests_by_rules
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, half_even_many, int64_array
from forecast_ledger.projections.core.column_values import POINTS, Ids, Values, concatenate, plain_values
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.ranges.interval_coverages import interval_coverages
from forecast_ledger.projections.ranges.interval_scores import IntervalScores, interval_scores, own_rules
from forecast_ledger.projections.ranges.pit_histograms import BINS, pit_counts
from forecast_ledger.projections.scores import coverage
from forecast_ledger.projections.tables.analysis import Analysis

_Column = Int64Array | WideInt | list[Any]
_NONE = np.zeros(0, np.int64)


def wis_parts_values(analysis: Analysis) -> list[Values]:
    """One row for each question and participant whose forecasts are scored by weighted interval score."""
    codes: list[Int64Array] = [_NONE]
    columns: list[tuple[_Column, ...]] = [
        ((_NONE,) * 6 + ([],) + (WideInt.from_integers([]),) * 3 + ([], WideInt.from_integers([])))
    ]
    for group in analysis.scored_groups:
        if group.rules.quantile_kernel == "pinball":
            contests = int64_array([analysis.contest_codes[name] for name in group.names])
            for parts in interval_scores(analysis.facts, group.contests, group.questions, analysis.chunk):
                codes.append(contests[group.questions.contest[parts.whole.question]])
                columns.append(_columns(group, parts))
    question, participant, *numbers = (concatenate(pages) for pages in zip(*columns, strict=True))
    return [
        Ids(np.concatenate(codes), analysis.contests),
        Ids(np.asarray(question), analysis.facts.question_codes.labels),
        Ids(np.asarray(participant), totals.score_labels(analysis.facts)),
        *numbers,
    ]


def pit_counts_values(analysis: Analysis) -> list[Values]:
    """One row for each tenth, for each participant of a contest with a numeric forecast that counts."""
    names: list[int] = []
    owners, counts = [_NONE], [np.zeros((0, BINS), np.int64)]
    for group in contests_by_rules(analysis.facts, analysis.contests):
        found = pit_counts(analysis.facts, [analysis.facts.contests[name] for name in group], analysis.chunk)
        names += [analysis.contest_codes[group[number]] for number in found.contest.tolist()]
        owners.append(found.participant)
        counts.append(found.counts)
    count = np.concatenate(counts)
    lower = np.tile(np.arange(BINS) * (POINTS // BINS), len(count))
    return [
        Ids(np.repeat(int64_array(names), BINS), analysis.contests),
        Ids(np.repeat(np.concatenate(owners), BINS), analysis.facts.participant_codes.labels),
        lower,
        lower + POINTS // BINS,
        count.reshape(-1),
    ]


def interval_coverage_values(analysis: Analysis) -> list[Values]:
    """One row for each central interval, for each participant of a contest with a numeric forecast that counts."""
    names: list[int] = []
    pages = [(_NONE,) * 4]
    for group in contests_by_rules(analysis.facts, analysis.contests):
        contests = [analysis.facts.contests[name] for name in group]
        contest, *columns = interval_coverages(analysis.facts, contests, analysis.chunk)
        names += [analysis.contest_codes[group[number]] for number in contest.tolist()]
        pages.append((columns[0], columns[1], columns[2], columns[3]))
    participant, probability, forecasts, covered = (np.concatenate(column) for column in zip(*pages, strict=True))
    return [
        Ids(int64_array(names), analysis.contests),
        Ids(participant, analysis.facts.participant_codes.labels),
        probability * (POINTS // PROBABILITY),
        forecasts,
        covered,
        half_even_many(covered * POINTS, forecasts),
    ]


def _columns(group: ScoredGroup, parts: IntervalScores) -> tuple[_Column, ...]:
    """Return the columns of some rows, from the question on."""
    rules, rows = own_rules(group.rules), parts.whole
    wis = coverage.points(rules, group.questions, rows)
    added = (parts.dispersion, parts.overprediction, parts.underprediction)
    divisors = WideInt.from_integers([int(divisor) for divisor in wis.divisors])  # whole: one point is whole units
    return (
        group.questions.code[rows.question],
        rows.participant,
        wis.published(),
        *(wis._replace(numerators=part).published() for part in added),
        _where(parts.has_median, wis._replace(numerators=parts.median_error).published()),
        *added,
        _where(parts.has_median, parts.median_error),
        divisors.take(wis.place),
    )


def _where(has_value: BoolArray, numbers: _Column) -> list[Any]:
    """Return numbers, None where there is none."""
    pairs = zip(plain_values(numbers), has_value.tolist(), strict=True)
    return [number if has else None for number, has in pairs]
