"""Builders of the tables of numeric forecasts: parts of interval scores, coverages of intervals, PIT histograms."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.boards.contest_groups import ScoredGroup, contests_by_rules
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.core.column_values import (
    POINTS,
    Ids,
    Values,
    columns_of_rows,
    concatenate,
    plain_values,
    round_to_points,
)
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.ranges.interval_coverages import Coverage, interval_coverages
from forecast_ledger.projections.ranges.interval_scores import IntervalScores, interval_scores, own_rules
from forecast_ledger.projections.ranges.pit_histograms import BINS, PitCount, pit_counts
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
    labels, width = analysis.facts.participant_codes.labels, POINTS // BINS
    rows = [
        (name, labels[row.participant], row.tenth * width, (row.tenth + 1) * width, round_to_points(row.answers))
        for name, row in _by_contest(analysis, pit_counts)
    ]
    return columns_of_rows(rows, "id id share share points")


def interval_coverage_values(analysis: Analysis) -> list[Values]:
    """One row for each central interval, for each participant of a contest with a numeric forecast that counts."""
    labels, unit = analysis.facts.participant_codes.labels, POINTS // PROBABILITY
    rows = []
    for name, row in _by_contest(analysis, interval_coverages):
        share = row.covered * Fraction(1, row.forecasts)
        numbers = (row.forecasts, round_to_points(row.covered), round_to_points(share))
        rows.append((name, labels[row.participant], row.probability * unit, *numbers))
    return columns_of_rows(rows, "id id share count points share")


_Counted = TypeVar("_Counted", PitCount, Coverage)


def _by_contest(
    analysis: Analysis, count: Callable[[Facts, Sequence[Contest], int], list[_Counted]]
) -> Iterator[tuple[str, _Counted]]:
    """Yield what is counted in all contests, each with the name of its contest."""
    facts = analysis.facts
    for group in contests_by_rules(facts, analysis.contests):
        for row in count(facts, [facts.contests[name] for name in group], analysis.chunk):
            yield group[row.contest], row


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
