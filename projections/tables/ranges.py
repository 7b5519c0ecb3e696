"""The tables of numeric forecasts: parts of interval scores, coverages of intervals, PIT histograms."""

from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY, WEIGHT
from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.boards.contest_groups import ScoredGroup
from forecast_ledger.projections.boards.score_sums import counted, joined_sums
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.columns import (
    POINTS,
    Ids,
    Values,
    columns_of_rows,
    join_numbers,
    plain_values,
    round_to_points,
)
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.studies.ranges import (
    BINS,
    Coverage,
    IntervalScores,
    PitCount,
    interval_coverages,
    interval_score_rules,
    interval_scores,
    pit_counts,
)
from forecast_ledger.projections.tables.analysis import Analysis, codes_of
from forecast_ledger.projections.tables.schemas import ANSWERED, Projection, schema

_Column = Int64Array | WideInt | list[Any]


_NONE = np.zeros(0, np.int64)


_WIS_PARTS = schema("""
    the weighted interval score of each participant on each question, split into the width of the forecasts and the
    penalties for answers above or below their intervals

    contest*
    question*
    participant*
    wis                        points   the weighted interval score, in the question's unit; without a reference
    dispersion                 points   dispersion_numerator / denominator: how wide the intervals are. This is the
                                        sharpness of a forecast: a narrow one keeps it small
    overprediction             points   the same for answers below intervals, or below the median
    underprediction            points   the same for answers above intervals, or above the median
    median_error               points   absolute error of the median; empty if 0.5 is not a level
    dispersion_numerator       integer  the three numerators add up to that of the score
    overprediction_numerator   integer  exactly 0 if every answer is within or above the intervals
    underprediction_numerator  integer  exactly 0 if every answer is within or below them
    median_error_numerator     integer  its share of the score is this / number of levels
    denominator                integer  what all numerators are divided by; as in `scores` without a reference
""")


def wis_parts_values(analysis: Analysis) -> list[Values]:
    """One row for each question and participant whose forecasts are scored by weighted interval score."""
    codes: list[Int64Array] = [_NONE]
    columns: list[tuple[_Column, ...]] = [
        ((_NONE,) * 6 + ([],) + (WideInt.from_integers([]),) * 3 + ([], WideInt.from_integers([])))
    ]
    for group in analysis.scored_groups:
        if group.rules.quantile_kernel == "pinball":
            contests = codes_of(analysis, group.names)
            for parts in interval_scores(analysis.facts, group.contests, group.questions, analysis.chunk):
                codes.append(contests[group.questions.contest[parts.whole.question]])
                columns.append(_columns(group, parts))
    question, participant, *numbers = (join_numbers(pages) for pages in zip(*columns, strict=True))
    return [
        Ids(np.concatenate(codes), analysis.contests),
        Ids(np.asarray(question), analysis.facts.question_codes.labels),
        Ids(np.asarray(participant), totals.score_labels(analysis.facts)),
        *numbers,
    ]


def _columns(group: ScoredGroup, parts: IntervalScores) -> tuple[_Column, ...]:
    """Return the columns of some rows, from the question on."""
    rules, rows = interval_score_rules(group.rules), parts.whole
    wis = time_weighted.points(rules, group.questions, rows)
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
        divisors.take(wis.divisor_of),
    )


class MeanParts(NamedTuple):
    """The means of the parts of a participant's weighted interval scores, exact, in points; see `interval_scores`.

    questions: how many have such a score. Questions are weighted as on the board.
    """

    questions: int
    dispersion: Fraction
    underprediction: Fraction
    overprediction: Fraction

    @property
    def wis(self) -> Fraction:
        """The mean score, without a reference: the sum of the three."""
        return self.dispersion + self.underprediction + self.overprediction


def mean_wis_parts(analysis: Analysis, contest: str, participants: Collection[str]) -> dict[str, MeanParts]:
    """Return the means of each of these participants of a contest scored by weighted interval score, by id."""
    facts, opened, questions = analysis.facts, analysis.facts.contests[contest], analysis.scored(contest).questions
    labels, consensus = totals.score_labels(facts), len(facts.participant_codes.labels)
    chosen = np.array([label in participants for label in labels], bool)
    pages = [*interval_scores(facts, [opened], questions, analysis.chunk, chosen)]
    if not pages:
        return {}
    rules, means = interval_score_rules(opened.opened.rules), []
    for part in ("dispersion", "underprediction", "overprediction"):
        pieces = [counted(questions, page.whole._replace(numerator=getattr(page, part))) for page in pages]
        [tally] = totals.tallies_of_sums(rules, questions, joined_sums(pieces), consensus, questions.contest)
        means.append({code: sums.score * Fraction(WEIGHT, sums.weight) for code, sums in tally.by_code.items()})
    return {
        labels[code if code >= 0 else consensus + totals.CONSENSUS_CODE - code]: MeanParts(
            sums.questions, *(mean[code] for mean in means)
        )
        for code, sums in tally.by_code.items()
    }


def _where(has_value: BoolArray, numbers: _Column) -> list[Any]:
    """Return numbers, None where there is none."""
    pairs = zip(plain_values(numbers), has_value.tolist(), strict=True)
    return [number if has else None for number, has in pairs]


_INTERVAL_COVERAGE = schema("""
    how often answers fell within the central intervals of numeric forecasts; as often as their probability says, if
    forecasts are calibrated

    contest*
    participant*
    probability*  share   of the interval: 0.5 for that from the quantile of 0.25 to that of 0.75; a cdf or samples have
                          those of 0.5, 0.8, 0.9 and 0.95
    n             count   number of forecasts with such an interval
    covered       points  how many answers these hold: 1 for an answer within or at an end; if the forecast puts
                          probability on the answer itself (a discrete value, all beyond an open end, several equal
                          quantiles), the share of this probability that the interval has. Of n samples, each of the n +
                          1 gaps has the same probability
    coverage      share   covered / n
""")


def interval_coverage_values(analysis: Analysis) -> list[Values]:
    """One row for each central interval, for each participant of a contest with a numeric forecast that counts."""
    labels, unit = analysis.facts.participant_codes.labels, POINTS // PROBABILITY
    rows = []
    for name, row in _by_contest(analysis, interval_coverages):
        share = row.covered * Fraction(1, row.forecasts)
        numbers = (row.forecasts, round_to_points(row.covered), round_to_points(share))
        rows.append((name, labels[row.participant], row.probability * unit, *numbers))
    return columns_of_rows(rows, _INTERVAL_COVERAGE.columns)


_PIT_COUNTS = schema("""
    in which tenth of their numeric forecasts answers fell: a tenth of them in each, if forecasts are calibrated

    contest*
    participant*
    from_probability*  share   lower end of the tenth, excluded unless it is 0
    to_probability     share   upper end, included: an answer at a quantile is in the tenth that it ends
    n                  points  how many answers fell in it; quantiles need the levels 0.1 to 0.9, and samples count as
                               in `interval_coverage`. If the forecast puts probability on the answer itself (a discrete
                               value, all beyond an open end, several equal quantiles), the answer counts in each tenth
                               by the share of this probability that the tenth has
""")


def pit_counts_values(analysis: Analysis) -> list[Values]:
    """One row for each tenth, for each participant of a contest with a numeric forecast that counts."""
    labels, width = analysis.facts.participant_codes.labels, POINTS // BINS
    rows = [
        (name, labels[row.participant], row.tenth * width, (row.tenth + 1) * width, round_to_points(row.answers))
        for name, row in _by_contest(analysis, pit_counts)
    ]
    return columns_of_rows(rows, _PIT_COUNTS.columns)


_Counted = TypeVar("_Counted", PitCount, Coverage)


def _by_contest(
    analysis: Analysis, count: Callable[[Facts, Sequence[Contest], int], list[_Counted]]
) -> Iterator[tuple[str, _Counted]]:
    """Yield what is counted in all contests, each with the name of its contest."""
    facts = analysis.facts
    for group in analysis.by_rules:
        for row in count(facts, [facts.contests[name] for name in group], analysis.chunk):
            yield group[row.contest], row


RANGES: dict[str, Projection] = {
    "wis_parts": Projection(
        1, _WIS_PARTS, wis_parts_values, reads=(*ANSWERED, "reference_names"), division="scores", on_request=True
    ),
    "interval_coverage": Projection(3, _INTERVAL_COVERAGE, interval_coverage_values, reads=ANSWERED, on_request=True),
    "pit_counts": Projection(2, _PIT_COUNTS, pit_counts_values, reads=ANSWERED, on_request=True),
}
