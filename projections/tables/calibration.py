"""The tables of Brier scores and calibration: how often what was forecast happened."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards import brier, totals
from forecast_ledger.projections.boards.contest_groups import ScoredGroup, contests_by_rules
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.core.columns import (
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
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.studies.calibration import (
    MOST_FORECASTS,
    PARTS,
    Place,
    Recalibrated,
    affordable,
    agreeing_counts,
    consistency_band,
    edges_in_nanos,
    murphy_curves,
    option_bins,
    recalibrate,
    timed_bins,
)
from forecast_ledger.projections.studies.intervals import contest_seed
from forecast_ledger.projections.studies.ranges import (
    BINS,
    Coverage,
    IntervalScores,
    PitCount,
    interval_coverages,
    interval_scores,
    own_rules,
    pit_counts,
)
from forecast_ledger.projections.studies.resampling import seed_for
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.schemas import ANSWERED, SAMPLED, Projection, schema

_BRIER = schema("""
    Brier scores of binary questions, 0..1, at the spot instant or the end of scored time, and their parts

    contest*
    participant*
    n                        count   number of questions forecast on
    brier                    points  mean of (p - o)², 0 is perfect
    base_rate                share   share of these questions that resolved yes
    reliability              points  mean squared distance of forecasts from observed frequencies; 0 is perfect
    resolution_term          points  mean squared distance of these frequencies from the base rate; higher is better
    uncertainty              points  brier = reliability - resolution_term + uncertainty
    consensus_brier          points  mean Brier score of the consensus on the same questions
    skill_against_even_odds  points  1 - brier / 0.25
    skill_against_consensus  points  1 - brier / consensus_brier; empty if that is 0
    skill_against_base_rate  points  1 - brier / uncertainty; empty if that is 0
    interpretation           text    a word for the Brier score
""")


def brier_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of a contest with a binary question that counts, and one for the consensus."""
    analysis.aggregate_all()
    rows, labels = [], totals.score_labels(analysis.facts)
    for name in analysis.contests:
        for owner, scores in analysis.aggregates(name).items():
            if scores.n and scores.brier is not None:
                numbers = map(_published_or_none, scores[1:])
                rows.append((name, labels[owner], scores.n, *numbers, brier.interpretation(scores.brier)))
    return columns_of_rows(rows, _BRIER.columns)


def _published_or_none(number: Fraction | None) -> int | None:
    return None if number is None else round_to_points(number)


_BRIER_OVERALL = schema("""
    Brier scores over all contests

    participant*
    contests               count   number of contests with a question forecast on
    n                      count   number of questions forecast on; a question counts once for each contest
    pooled_brier           points  mean Brier score over all these questions
    mean_of_contest_means  points  mean of the contests' mean Brier scores
""")


def brier_overall_values(analysis: Analysis) -> list[Values]:
    """One row for each participant, over all contests."""
    analysis.aggregate_all()
    by_owner: dict[int, list[brier.Aggregate]] = {}
    for name in analysis.contests:
        for owner, scores in analysis.aggregates(name).items():
            if scores.n:
                by_owner.setdefault(owner, []).append(scores)
    rows, labels = [], totals.score_labels(analysis.facts)
    for owner, contests in by_owner.items():
        means = map(_published_or_none, brier.brier_means(contests))
        rows.append((labels[owner], len(contests), sum(scores.n for scores in contests), *means))
    return columns_of_rows(rows, _BRIER_OVERALL.columns)


_CALIBRATION = schema("""
    observed frequency by forecast probability, in bins

    contest*
    participant*
    from_probability*   share  lower end of the bin, included
    to_probability      share  upper end of the bin, excluded unless it is 1
    n                   count  number of forecasts in the bin
    happened            count  number of these forecasts whose question resolved yes
    mean_forecast       share  mean probability of these forecasts
    observed_frequency  share  happened / n
    wilson_low          share  lower end of the 95% Wilson interval
    wilson_high         share  upper end of the 95% Wilson interval
""")


def calibration_values(analysis: Analysis) -> list[Values]:
    """One row for each bin that contains a forecast of a participant of a contest."""
    analysis.calibrate_all()
    return _binned(analysis, [(name, row) for name in analysis.contests for row in analysis.calibration(name)])


def _binned(analysis: Analysis, bins: list[tuple[str, brier.Bin]]) -> list[Values]:
    """Return the columns of calibration bins, each with its contest."""
    rows, labels = [], totals.score_labels(analysis.facts)
    for contest, row in bins:
        mean, frequency = half_even(row.total_forecast, row.n), half_even(row.happened * POINTS, row.n)
        counts = (row.lower, row.upper, row.n, row.happened)
        rows.append((contest, labels[row.owner], *counts, mean, frequency, *row[-2:]))
    return columns_of_rows(rows, _CALIBRATION.columns)


_CORP = schema("""
    the Brier score as miscalibration - discrimination + uncertainty, by isotonic regression, without bins

    contest*
    participant*
    n               count   number of questions forecast on
    brier           points  mean of (p - o)², 0 is perfect; as in the table `brier`
    miscalibration  points  what recalibrated forecasts would take off it; 0 is perfect
    discrimination  points  by how much recalibrated forecasts beat the base rate
    uncertainty     points  the score of the base rate itself
""")


def corp_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of a contest who has a forecast in its Brier scores."""
    rows = [
        (*of, own.n, *map(round_to_points, (own.brier, own.miscalibration, own.discrimination, own.uncertainty)))
        for of, own in _recalibrated(analysis)
    ]
    return columns_of_rows(rows, _CORP.columns)


_CORP_BLOCKS = schema("""
    how often forecasts came true, where isotonic regression gives them the same probability

    contest*
    participant*
    from_probability*  share  the least forecast of the block
    to_probability     share  the greatest forecast of the block
    n                  count  number of forecasts in the block
    happened           count  number of these forecasts whose question resolved yes
    recalibrated       share  happened / n: what these forecasts should have been
""")


def corp_blocks_values(analysis: Analysis) -> list[Values]:
    """One row for each block of forecasts with the same recalibrated probability."""
    rows = [
        (*of, *block, half_even(block.happened * POINTS, block.n))
        for of, own in _recalibrated(analysis)
        for block in own.blocks
    ]
    return columns_of_rows(rows, _CORP_BLOCKS.columns)


def _recalibrated(analysis: Analysis) -> Iterator[tuple[tuple[str, str], Recalibrated]]:
    """Yield the recalibrated forecasts of each participant of each contest, with the names of both."""
    analysis.sample_all()
    labels = totals.score_labels(analysis.facts)
    for name in analysis.contests:
        for own in recalibrate(analysis.brier_sample(name).sample):
            yield (name, labels[own.owner]), own


_CALIBRATION_BY_OPTION = schema("""
    observed frequency by forecast probability, in bins, of the outcomes of multiple-choice questions

    contest*
    participant*
    from_probability*   share  lower end of the bin, included
    to_probability      share  upper end of the bin, excluded unless it is 1
    n                   count  number of probabilities in the bin: one for each outcome of each forecast
    happened            count  number of these outcomes that happened
    mean_forecast       share  mean of these probabilities
    observed_frequency  share  happened / n
    wilson_low          share  lower end of the 95% Wilson interval, as if outcomes were independent
    wilson_high         share  upper end
""")


def calibration_by_option_values(analysis: Analysis) -> list[Values]:
    """One row for each bin that contains a probability of an option, for a participant of a contest."""
    found = []
    for group in contests_by_rules(analysis.facts, analysis.contests):
        contests = [analysis.facts.contests[name] for name in group]
        for number, row in option_bins(analysis.facts, contests, analysis.chunk):
            found.append((group[number], row))
    return _binned(analysis, found)


_CALIBRATION_TIME_WEIGHTED = schema("""
    observed frequency by forecast probability, in the 21 bins that Metaculus draws; every forecast on a binary question
    counts, by the share of its open time that the forecast stood

    contest*
    participant*
    from_probability*   share   lower end of the bin, included; a 24th is rounded up
    to_probability      share   upper end of the bin, excluded unless it is 1
    n                   count   number of forecasts in the bin, several of a question among them
    weight              points  sum over them of the share of the question's open time that each stood
    mean_forecast       share   weighted mean probability of these forecasts
    observed_frequency  share   weighted share of these forecasts whose question resolved yes
    band_low            share   5% place of n events that have the lower end as their probability, / n
    expected            share   50% place with the middle of the bin
    band_high           share   95% place with the upper end; outside the band, forecasts are miscalibrated
""")


def calibration_time_weighted_values(analysis: Analysis) -> list[Values]:
    """One row for each bin that contains a forecast on a binary question, for a participant of a contest."""
    rows, labels, edges = [], analysis.facts.participant_codes.labels, edges_in_nanos()
    for group in contests_by_rules(analysis.facts, analysis.contests):
        contests = [analysis.facts.contests[name] for name in group]
        for own in timed_bins(analysis.facts, contests, analysis.chunk):
            weight, mean = half_even(own.weight * POINTS, own.over), half_even(own.forecast, own.weight)
            frequency = half_even(own.happened * POINTS, own.weight)
            agreeing = [half_even(count * POINTS, own.n) for count in agreeing_counts(own.bin, own.n)]
            place = (group[own.contest], labels[own.participant], edges[own.bin], edges[own.bin + 1], own.n)
            rows.append((*place, weight, mean, frequency, *agreeing))
    return columns_of_rows(rows, _CALIBRATION_TIME_WEIGHTED.columns)


_CORP_BAND = schema("""
    where recalibrated probabilities would be if forecasts were calibrated, by drawing what happens again

    contest*
    participant*
    probability*  share  a probability that the participant has forecast
    n             count  number of forecasts with it
    recalibrated  share  what these forecasts should have been; as in `corp_blocks`
    band_low      share  lower end of the band, at the level_ppm of the rules
    band_high     share  upper end; calibrated forecasts are seldom outside
    replicates    count  number of replicates; in each, p comes true with probability p. As in the rules; in a contest
                         of very many forecasts the most for which forecasts x replicates is at most 40,000,000, but at
                         least 199
    seed          text   seed of the draws: SHA-256 of digest, `corp_band`, contest and participant
""")


def corp_band_values(analysis: Analysis) -> list[Values]:
    """One row for each probability that a participant of a contest has forecast. Raises Refused(out_of_range)."""
    analysis.sample_all()
    rows, labels = [], totals.score_labels(analysis.facts)
    for name in analysis.contests:
        sampled = analysis.brier_sample(name).sample.owner
        if len(sampled) > MOST_FORECASTS:
            detail = f"{name} has {len(sampled):,} forecasts that count; the limit is {MOST_FORECASTS:,}"
            raise Refused("out_of_range", "corp_band", None, detail)
        replicates = affordable(len(sampled), analysis.facts.contests[name].opened.rules.replicates)
        for owner in np.unique(sampled).tolist():
            seed, band = owner_band(analysis, name, owner)
            rows += [(name, labels[owner], *place, replicates, seed.hex()) for place in band]
    return columns_of_rows(rows, _CORP_BAND.columns)


def owner_band(analysis: Analysis, contest: str, owner: int) -> tuple[bytes, list[Place]]:
    """Return the seed and the consistency band of one owner's forecasts in a contest, by participant code."""
    sample, rules = analysis.brier_sample(contest).sample, analysis.facts.contests[contest].opened.rules
    mine = np.flatnonzero(sample.owner == owner)
    mine = mine[np.argsort(sample.probability[mine], kind="stable")]
    digest, _ = contest_seed(analysis.facts, contest)
    seed = seed_for(digest, "corp_band", contest, totals.score_labels(analysis.facts)[owner])
    made, happened = sample.probability[mine], sample.happened[mine]
    replicates = affordable(len(sample.owner), rules.replicates)
    return seed, consistency_band(made, happened, seed, replicates, rules.level_ppm)


_MURPHY_CURVE = schema("""
    the mean elementary score of probabilities at each threshold of action; its integral is half the Brier score

    contest*
    participant*
    threshold*    share   t: whoever acts if a forecast is above it
    n             count   number of questions forecast on
    false_alarms  count   forecasts above t of what did not happen; each costs t
    misses        count   forecasts of t or less of what happened; each costs 1 - t
    score         points  (t x false_alarms + (1 - t) x misses) / n; 0 is perfect
""")


def murphy_curve_values(analysis: Analysis) -> list[Values]:
    """One row for each threshold, for each participant of a contest who has a forecast in its Brier scores."""
    analysis.sample_all()
    rows, labels = [], totals.score_labels(analysis.facts)
    for name in analysis.contests:
        for own in murphy_curves(analysis.brier_sample(name).sample):
            for place, (alarms, misses) in enumerate(zip(own.false_alarms, own.misses, strict=True), 1):
                score = half_even((place * alarms + (PARTS - place) * misses) * POINTS, PARTS * own.n)
                rows.append((name, labels[own.owner], place * POINTS // PARTS, own.n, alarms, misses, score))
    return columns_of_rows(rows, _MURPHY_CURVE.columns)


BRIER: dict[str, Projection] = {
    "brier": Projection(2, _BRIER, brier_values, reads=SAMPLED, division="brier_scores"),
    "brier_overall": Projection(2, _BRIER_OVERALL, brier_overall_values, reads=SAMPLED, division="brier_overall"),
    "calibration": Projection(2, _CALIBRATION, calibration_values, reads=SAMPLED, division="brier_scores"),
    "corp": Projection(1, _CORP, corp_values, reads=SAMPLED, on_request=True),
    "corp_blocks": Projection(1, _CORP_BLOCKS, corp_blocks_values, reads=SAMPLED, on_request=True),
}


CALIBRATION: dict[str, Projection] = {
    "calibration_by_option": Projection(
        1, _CALIBRATION_BY_OPTION, calibration_by_option_values, reads=ANSWERED, on_request=True
    ),
    "calibration_time_weighted": Projection(
        1, _CALIBRATION_TIME_WEIGHTED, calibration_time_weighted_values, reads=ANSWERED, on_request=True
    ),
    "corp_band": Projection(2, _CORP_BAND, corp_band_values, reads=(*SAMPLED, "digest"), on_request=True),
    "murphy_curve": Projection(1, _MURPHY_CURVE, murphy_curve_values, reads=SAMPLED, on_request=True),
}


# --- The tables of numeric forecasts: parts of interval scores, coverages of intervals, PIT histograms.


_Column = Int64Array | WideInt | list[Any]


_NONE = np.zeros(0, np.int64)


_WIS_PARTS = schema("""
    the weighted interval score of each participant on each question, split into the width of the forecasts and the
    penalties for answers above or below their intervals

    contest*
    question*
    participant*
    wis                        points   the weighted interval score, in the question's unit; without a reference
    dispersion                 points   dispersion_numerator / denominator: how wide the intervals are
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


def _columns(group: ScoredGroup, parts: IntervalScores) -> tuple[_Column, ...]:
    """Return the columns of some rows, from the question on."""
    rules, rows = own_rules(group.rules), parts.whole
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
        divisors.take(wis.place),
    )


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
    for group in contests_by_rules(facts, analysis.contests):
        for row in count(facts, [facts.contests[name] for name in group], analysis.chunk):
            yield group[row.contest], row


RANGES: dict[str, Projection] = {
    "wis_parts": Projection(
        1, _WIS_PARTS, wis_parts_values, reads=(*ANSWERED, "reference_names"), division="scores", on_request=True
    ),
    "interval_coverage": Projection(3, _INTERVAL_COVERAGE, interval_coverage_values, reads=ANSWERED, on_request=True),
    "pit_counts": Projection(2, _PIT_COUNTS, pit_counts_values, reads=ANSWERED, on_request=True),
}
