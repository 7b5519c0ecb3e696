"""The tables of Brier scores and calibration: how often what was forecast happened."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.boards import brier, totals
from forecast_ledger.projections.core.arrays import half_even_many, int64_array
from forecast_ledger.projections.core.columns import (
    POINTS,
    Ids,
    Values,
    columns_of_rows,
    ids,
    join_values,
    round_to_points,
    transpose,
)
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.studies.calibration import (
    PARTS,
    Recalibrated,
    clustered_bins,
    murphy_curves,
    option_bins,
    recalibrate,
)
from forecast_ledger.projections.studies.clusters import clusters_of
from forecast_ledger.projections.studies.consistency import (
    MOST_FORECASTS,
    TEST_REPLICATES,
    BandPoint,
    Forecasts,
    affordable,
    as_miscalibrated,
    consistency_band,
)
from forecast_ledger.projections.studies.open_time import TimedBin, edges_in_nanos, timed_bands, timed_bins
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.schemas import ANSWERED, DRAWN, SAMPLED, SCORED, Projection, schema

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
    contest, owner, *counts = _joined(analysis, analysis.brier_counts, brier.Counts._fields)
    n, _, squares, *_ = counts
    return [contest, owner, n, *brier.published(counts), [*map(brier.interpretation, squares, n)]]


def _joined(analysis: Analysis, groups: Iterable[list[Any]], fields: Sequence[str]) -> list[Any]:
    """Return the columns of groups of contests together: contest, owner, and a list for each of these fields."""
    labels = totals.score_labels(analysis.facts)
    pages = [[contest, Ids(owner, labels), *columns] for contest, owner, *columns in groups]
    return [*map(join_values, zip(*pages or [[ids([]), ids([]), *[[]] * len(fields)]], strict=True))]


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
    _, owner, n, _, squares, *_ = _joined(analysis, analysis.brier_counts, brier.Counts._fields)
    return overall_values(analysis.facts, zip(owner.codes.tolist(), squares, n, strict=True))


def overall_values(facts: Facts, scored: Iterable[tuple[int, int, int]]) -> list[Values]:
    """Return the columns of `brier_overall`. scored: owner, `squares` and n > 0 of the counts in each contest."""
    by_owner: dict[int, list[tuple[int, int]]] = {}
    for owner, squares, n in scored:
        by_owner.setdefault(owner, []).append((squares, n))
    rows, labels = [], totals.score_labels(facts)
    for owner, contests in by_owner.items():
        means = map(round_to_points, brier.brier_means(contests))
        rows.append((labels[owner], len(contests), sum(n for _, n in contests), *means))
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
    return _bin_values(*_joined(analysis, (each.bins() for each in analysis.summed_samples), brier.Bin._fields[1:]))


def _binned(analysis: Analysis, bins: list[tuple[str, brier.Bin]]) -> list[Values]:
    """Return the columns of calibration bins, each with its contest."""
    contests, rows = transpose(bins, 2)
    owner, *columns = transpose(rows, len(brier.Bin._fields))
    return _bin_values(ids(contests), Ids(int64_array(owner), totals.score_labels(analysis.facts)), *columns)


def _bin_values(contest: Ids, participant: Ids, *columns: list[int]) -> list[Values]:
    lower, upper, *counts, low, high = columns
    n, happened, total = map(int64_array, counts)
    mean, frequency = half_even_many(total, n).tolist(), half_even_many(happened * POINTS, n).tolist()
    return [contest, participant, lower, upper, *counts[:2], mean, frequency, low, high]


_CALIBRATION_BY_CLUSTER = schema("""
    observed frequency by forecast probability, in bins, with intervals that allow for clusters of questions

    contest*
    participant*
    from_probability*   share  lower end of the bin, included
    to_probability      share  upper end of the bin, excluded unless it is 1
    n                   count  number of forecasts in the bin
    happened            count  number of these forecasts whose question resolved yes
    mean_forecast       share  mean probability of these forecasts
    observed_frequency  share  happened / n
    wilson_low          share  lower end of the 95% Wilson interval, as if the answers of a cluster were all alike
    wilson_high         share  upper end; with clusters of m questions, it is that of n² / Σ m² independent ones
    clusters            count  number of clusters, by the first field in the rules' `clusters`, of their questions
""")


def calibration_by_cluster_values(analysis: Analysis) -> list[Values]:
    """One row for each bin that contains a forecast of a participant of a contest."""
    analysis.sample_all()
    bins, counts = [], []
    for name in analysis.contests:
        sample, _, question = analysis.brier_sample(name)
        cluster = clusters_of(analysis.facts, analysis.facts.contests[name].opened.rules, question)
        for row, clusters in clustered_bins(sample, cluster):
            bins.append((name, row))
            counts.append(clusters)
    return [*_binned(analysis, bins), counts]


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
        (
            *of,
            result.n,
            *map(round_to_points, (result.brier, result.miscalibration, result.discrimination, result.uncertainty)),
        )
        for of, result in _recalibrated(analysis)
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
        for of, result in _recalibrated(analysis)
        for block in result.blocks
    ]
    return columns_of_rows(rows, _CORP_BLOCKS.columns)


def _recalibrated(analysis: Analysis) -> Iterator[tuple[tuple[str, str], Recalibrated]]:
    """Yield the recalibrated forecasts of each participant of each contest, with the names of both."""
    analysis.sample_all()
    labels = totals.score_labels(analysis.facts)
    for name in analysis.contests:
        for result in recalibrate(analysis.brier_sample(name).sample):
            yield (name, labels[result.owner]), result


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
    bins = []
    for group in analysis.by_rules:
        contests = [analysis.facts.contests[name] for name in group]
        for number, row in option_bins(analysis.facts, contests, analysis.chunk):
            bins.append((group[number], row))
    return _binned(analysis, bins)


_CALIBRATION_TIME_WEIGHTED = schema("""
    observed frequency by forecast probability, in the 21 bins that Metaculus draws; every forecast on a binary question
    counts, by the share of its open time that the forecast stood

    contest*
    participant*
    from_probability*   share   lower end of the bin, included; a 24th is rounded up
    to_probability      share   upper end of the bin, excluded unless it is 1
    n                   count   number of forecasts in the bin, several of a question among them
    questions           count   number of their questions
    weight              points  sum over them of the share of the question's open time that each stood
    mean_forecast       share   weighted mean probability of these forecasts
    observed_frequency  share   weighted share of these forecasts whose question resolved yes
    band_low            share   lower end, at the level_ppm of the rules, of where the observed frequency would be if
                                forecasts were calibrated; all forecasts on a question come true or not together
    band_high           share   upper end; calibrated forecasts are seldom outside
    replicates          count   number of replicates; in each, a question comes true with the mean probability that it
                                was given in the bin, by one random number for a cluster of questions. As in `corp_band`
    seed                text    seed of the draws: SHA-256 of the digest of what is scored and the table's name
""")


def calibration_time_weighted_values(analysis: Analysis) -> list[Values]:
    """One row for each bin that contains a forecast on a binary question, for a participant of a contest.

    Raises Refused(out_of_range).
    """
    rows = list[tuple[Any, ...]]()
    for group in analysis.by_rules:
        contests = [analysis.facts.contests[name] for name in group]
        every = [*timed_bins(analysis.facts, contests, analysis.chunk)]
        for contest, bins in groupby(every, attrgetter("contest")):
            rows += _timed(analysis, group[contest], [*bins])
    return columns_of_rows(rows, _CALIBRATION_TIME_WEIGHTED.columns)


def _timed(analysis: Analysis, contest: str, bins: Sequence[TimedBin]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a contest."""
    rules, edges = analysis.facts.contests[contest].opened.rules, edges_in_nanos()
    counted = sum(len(timed_bin.questions) for timed_bin in bins)
    _check_size("calibration_time_weighted", contest, counted)
    replicates, seed = affordable(counted, rules.replicates), analysis.seed(contest, "calibration_time_weighted")
    for owner, each in groupby(bins, attrgetter("participant")):
        name, mine = analysis.facts.participant_codes.labels[owner], [*each]
        codes = int64_array([stood.question for timed_bin in mine for stood in timed_bin.questions])
        bands = timed_bands(mine, clusters_of(analysis.facts, rules, codes), seed, replicates, rules.level_ppm)
        for timed_bin, band in zip(mine, bands, strict=True):
            n = sum(stood.n for stood in timed_bin.questions)
            weight = half_even(timed_bin.weight * POINTS, timed_bin.over)
            mean = half_even(timed_bin.forecast, timed_bin.weight)
            frequency = half_even(timed_bin.happened * POINTS, timed_bin.weight)
            key = (contest, name, edges[timed_bin.bin], edges[timed_bin.bin + 1], n, len(timed_bin.questions))
            yield (*key, weight, mean, frequency, *band, replicates, seed.hex())


def _check_size(table: str, contest: str, forecasts: int) -> None:
    if forecasts > MOST_FORECASTS:
        detail = f"{contest} has {forecasts:,} forecasts that count; the limit is {MOST_FORECASTS:,}"
        raise Refused("out_of_range", table, None, detail)


_CORP_BAND = schema("""
    where recalibrated probabilities would be if forecasts were calibrated, by drawing what happens again

    contest*
    participant*
    probability*  share  a probability that the participant has forecast
    n             count  number of forecasts with it
    recalibrated  share  what these forecasts should have been; as in `corp_blocks`
    band_low      share  lower end of the band, at the level_ppm of the rules
    band_high     share  upper end; calibrated forecasts are seldom outside
    replicates    count  number of replicates; in each, p comes true with probability p, by one random number for a
                         cluster of questions. As in the rules; in a contest of very many forecasts the most for which
                         forecasts x replicates is at most 40,000,000, but at least 199
    seed          text   seed of the draws: SHA-256 of the digest of what is scored and `corp_band`
""")


def corp_band_values(analysis: Analysis) -> list[Values]:
    """One row for each probability that a participant of a contest has forecast. Raises Refused(out_of_range)."""
    rows = []
    for name, who, owner in _owners(analysis, "corp_band"):
        seed, replicates, band = owner_band(analysis, name, owner)
        rows += [(name, who, *point, replicates, seed.hex()) for point in band]
    return columns_of_rows(rows, _CORP_BAND.columns)


def _owners(analysis: Analysis, table: str) -> Iterator[tuple[str, str, int]]:
    """Yield contest, participant and code of each who has forecasts. Raises Refused(out_of_range)."""
    analysis.sample_all()
    labels = totals.score_labels(analysis.facts)
    for name in analysis.contests:
        owners = analysis.brier_sample(name).sample.owner
        _check_size(table, name, len(owners))
        yield from ((name, labels[owner], owner) for owner in np.unique(owners).tolist())


def _forecasts(analysis: Analysis, contest: str, owner: int) -> Forecasts:
    """Return one owner's forecasts in a contest, by participant code."""
    sample, _, question = analysis.brier_sample(contest)
    mine = np.flatnonzero(sample.owner == owner)
    mine = mine[np.argsort(sample.probability[mine], kind="stable")]
    cluster = clusters_of(analysis.facts, analysis.facts.contests[contest].opened.rules, question[mine])
    return Forecasts(sample.probability[mine], sample.happened[mine], cluster)


def owner_band(analysis: Analysis, contest: str, owner: int) -> tuple[bytes, int, list[BandPoint]]:
    """Return the seed, the replicates and the consistency band of one owner's forecasts, by participant code."""
    rules = analysis.facts.contests[contest].opened.rules
    replicates = affordable(len(analysis.brier_sample(contest).sample.owner), rules.replicates)
    seed, forecasts = analysis.seed(contest, "corp_band"), _forecasts(analysis, contest, owner)
    return seed, replicates, consistency_band(forecasts, seed, replicates, rules.level_ppm)


_CALIBRATION_TEST = schema("""
    whether forecasts on binary questions are calibrated: how often calibrated ones would be as miscalibrated by chance

    contest*
    participant*
    n               count   number of questions forecast on
    clusters        count   number of their clusters, by the first field in the rules' `clusters`
    miscalibration  points  what recalibrated forecasts would take off the Brier score; as in `corp`
    p               share   p-value: (1 + replicates that are at least as miscalibrated) / (1 + replicates); not
                            corrected for the number of participants
    replicates      count   999, or fewer in a contest of very many forecasts, as in `corp_band`; in each, p comes true
                            with probability p, by one random number for a cluster of questions
    seed            text    seed of the draws: SHA-256 of the digest of what is scored and `calibration_test`
""")


class CalibrationTest(NamedTuple):
    """The test of one owner's forecasts. as_far: of how many replicates the miscalibration is as large."""

    n: int
    clusters: int
    as_far: int
    replicates: int
    seed: bytes

    @property
    def p(self) -> Fraction:
        """The p-value."""
        return Fraction(1 + self.as_far, 1 + self.replicates)


def calibration_test_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of a contest who has a forecast in its Brier scores.

    Raises Refused(out_of_range).
    """
    every, rows = _owners(analysis, "calibration_test"), []
    tested = {(name, who): owner_test(analysis, name, owner) for name, who, owner in every}
    for of, result in _recalibrated(analysis):
        test = tested[of]
        numbers = map(round_to_points, (result.miscalibration, test.p))
        rows.append((*of, test.n, test.clusters, *numbers, test.replicates, test.seed.hex()))
    return columns_of_rows(rows, _CALIBRATION_TEST.columns)


def owner_test(analysis: Analysis, contest: str, owner: int) -> CalibrationTest:
    """Return the test of one owner's forecasts in a contest, by participant code."""
    replicates = affordable(len(analysis.brier_sample(contest).sample.owner), TEST_REPLICATES)
    seed, forecasts = analysis.seed(contest, "calibration_test"), _forecasts(analysis, contest, owner)
    as_far = as_miscalibrated(forecasts, seed, replicates)
    return CalibrationTest(len(forecasts.cluster), int(forecasts.cluster.max()) + 1, as_far, replicates, seed)


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
        for curves in murphy_curves(analysis.brier_sample(name).sample):
            for threshold, (alarms, misses) in enumerate(zip(curves.false_alarms, curves.misses, strict=True), 1):
                score = half_even((threshold * alarms + (PARTS - threshold) * misses) * POINTS, PARTS * curves.n)
                rows.append((name, labels[curves.owner], threshold * POINTS // PARTS, curves.n, alarms, misses, score))
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
        3, _CALIBRATION_TIME_WEIGHTED, calibration_time_weighted_values, reads=DRAWN, on_request=True
    ),
    "calibration_by_cluster": Projection(
        1, _CALIBRATION_BY_CLUSTER, calibration_by_cluster_values, reads=SAMPLED, on_request=True
    ),
    "calibration_test": Projection(2, _CALIBRATION_TEST, calibration_test_values, reads=SCORED, on_request=True),
    "corp_band": Projection(4, _CORP_BAND, corp_band_values, reads=SCORED, on_request=True),
    "murphy_curve": Projection(1, _MURPHY_CURVE, murphy_curve_values, reads=SAMPLED, on_request=True),
}
