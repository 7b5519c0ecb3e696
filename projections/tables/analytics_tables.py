"""Builders of the tables of contests, means by kind, Brier aggregates, calibration and admissions."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT
from forecast_ledger.ledger.model import publication_stamps
from forecast_ledger.ledger.model.events import Attestation
from forecast_ledger.ledger.model.rules import KIND_TOTALS
from forecast_ledger.projections.boards import admission, brier, leaderboard, totals
from forecast_ledger.projections.boards.boards_over_time import answered_at, tallies_over_time
from forecast_ledger.projections.boards.contest_groups import contests_by_rules
from forecast_ledger.projections.calibration import corp
from forecast_ledger.projections.calibration.consistency import MOST_FORECASTS, Place, affordable, consistency_band
from forecast_ledger.projections.calibration.murphy import PARTS, murphy_curves
from forecast_ledger.projections.calibration.open_time import agreeing_counts, edges_in_nanos, timed_bins
from forecast_ledger.projections.calibration.options import option_bins
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.column_values import POINTS, Ids, Values, ids, round_to_points, transpose
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.uncertainty.draws import seed_for
from forecast_ledger.projections.uncertainty.intervals import contest_seed


def contests_values(analysis: Analysis) -> list[Values]:
    """One row for each contest."""
    rows = [_contest(analysis.facts, analysis.facts.contests[name]) for name in analysis.contests]
    return [Ids(np.arange(len(analysis.contests)), analysis.contests), *transpose(rows, 10)]


def kind_means_values(analysis: Analysis) -> list[Values]:
    """One row for each participant and kind of question, for contests whose total is made of means by kind."""
    analysis.tally_all()
    codes, rows = [], []
    for code, name in enumerate(analysis.contests):
        contest = analysis.facts.contests[name]
        if contest.opened.rules.total not in KIND_TOTALS:
            continue
        for own in totals.participant_sums(analysis.facts, contest, analysis.tally(name)):
            if own.reference or contest.level_of(own.participant) != "hidden":
                codes += [code] * len(own.kinds)
                rows += [
                    [own.participant, kind.kind, round_to_points(kind.mean), kind.forecast_on, kind.questions]
                    for kind in own.kinds
                ]
    participants, kinds, *numbers = transpose(rows, 5)
    return [Ids(int64_array(codes), analysis.contests), ids(participants), ids(kinds), *numbers]


def score_over_time_values(analysis: Analysis) -> list[Values]:
    """One row for each participant after each answer of each contest, best first."""
    codes, rows = [], []
    for code, name in enumerate(analysis.contests):
        contest, scored = analysis.facts.contests[name], analysis.scored(name)
        answered = answered_at(analysis.facts, contest, scored.questions)
        tallies = tallies_over_time(analysis.facts, contest, scored)
        for number, (question, tally) in enumerate(tallies, start=1):
            board = leaderboard.board(analysis.facts, contest, tally)
            codes += [code] * len(board)
            added = (int(scored.questions.code[question]), int(answered[question]))
            rows += [
                (
                    number,
                    place.participant,
                    place.rank,
                    round_to_points(place.score),
                    round_to_points(place.coverage),
                    *added,
                )
                for place in board
            ]
    numbers, participants, rank, score, coverage, questions, positions = transpose(rows, 7)
    asked = Ids(int64_array(questions), analysis.facts.question_codes.labels)
    contests = Ids(int64_array(codes), analysis.contests)
    return [contests, numbers, rank, ids(participants), score, coverage, asked, positions]


def brier_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of a contest with a binary question that counts, and one for the consensus."""
    analysis.aggregate_all()
    codes, owners, rows = [], [], []
    for code, name in enumerate(analysis.contests):
        for owner, scores in analysis.aggregates(name).items():
            if scores.n and scores.brier is not None:
                codes.append(code)
                owners.append(owner)
                rows.append([scores.n, *map(_published_or_none, scores[1:]), brier.interpretation(scores.brier)])
    return [
        Ids(int64_array(codes), analysis.contests),
        Ids(int64_array(owners), totals.score_labels(analysis.facts)),
        *transpose(rows, 11),
    ]


def brier_overall_values(analysis: Analysis) -> list[Values]:
    """One row for each participant, over all contests."""
    analysis.aggregate_all()
    by_owner: dict[int, list[brier.Aggregate]] = {}
    for name in analysis.contests:
        for owner, scores in analysis.aggregates(name).items():
            if scores.n:
                by_owner.setdefault(owner, []).append(scores)
    rows = [
        [len(contests), sum(scores.n for scores in contests), *map(_published_or_none, brier.brier_means(contests))]
        for contests in by_owner.values()
    ]
    return [Ids(int64_array(list(by_owner)), totals.score_labels(analysis.facts)), *transpose(rows, 4)]


def calibration_values(analysis: Analysis) -> list[Values]:
    """One row for each bin that contains a forecast of a participant of a contest."""
    analysis.calibrate_all()
    return _binned(
        analysis, [(code, row) for code, name in enumerate(analysis.contests) for row in analysis.calibration(name)]
    )


def calibration_by_option_values(analysis: Analysis) -> list[Values]:
    """One row for each bin that contains a probability of an option, for a participant of a contest."""
    found = []
    for group in contests_by_rules(analysis.facts, analysis.contests):
        contests = [analysis.facts.contests[name] for name in group]
        for number, row in option_bins(analysis.facts, contests, analysis.chunk):
            found.append((analysis.contest_codes[group[number]], row))
    return _binned(analysis, found)


def calibration_time_weighted_values(analysis: Analysis) -> list[Values]:
    """One row for each bin that contains a forecast on a binary question, for a participant of a contest."""
    codes, owners, rows = [], [], []
    edges = edges_in_nanos()
    for group in contests_by_rules(analysis.facts, analysis.contests):
        contests = [analysis.facts.contests[name] for name in group]
        for own in timed_bins(analysis.facts, contests, analysis.chunk):
            codes.append(analysis.contest_codes[group[own.contest]])
            owners.append(own.participant)
            weight, mean = half_even(own.weight * POINTS, own.over), half_even(own.forecast, own.weight)
            frequency = half_even(own.happened * POINTS, own.weight)
            agreeing = [half_even(count * POINTS, own.n) for count in agreeing_counts(own.bin, own.n)]
            rows.append([edges[own.bin], edges[own.bin + 1], own.n, weight, mean, frequency, *agreeing])
    return [
        Ids(int64_array(codes), analysis.contests),
        Ids(int64_array(owners), analysis.facts.participant_codes.labels),
        *transpose(rows, 9),
    ]


def _binned(analysis: Analysis, bins: list[tuple[int, brier.Bin]]) -> list[Values]:
    """Return the columns of calibration bins, each with the code of its contest."""
    codes, owners, rows = [], [], []
    for code, row in bins:
        codes.append(code)
        owners.append(row.owner)
        mean, frequency = half_even(row.total_forecast, row.n), half_even(row.happened * POINTS, row.n)
        rows.append([row.lower, row.upper, row.n, row.happened, mean, frequency, *row[-2:]])
    return [
        Ids(int64_array(codes), analysis.contests),
        Ids(int64_array(owners), totals.score_labels(analysis.facts)),
        *transpose(rows, 8),
    ]


def corp_values(analysis: Analysis) -> list[Values]:
    """One row for each participant of a contest who has a forecast in its Brier scores."""
    return _recalibrated(
        analysis,
        lambda own: [
            (own.n, *map(round_to_points, (own.brier, own.miscalibration, own.discrimination, own.uncertainty)))
        ],
        5,
    )


def corp_blocks_values(analysis: Analysis) -> list[Values]:
    """One row for each block of forecasts with the same recalibrated probability."""
    return _recalibrated(
        analysis, lambda own: [(*block, half_even(block.happened * POINTS, block.n)) for block in own.blocks], 5
    )


def _recalibrated(
    analysis: Analysis, columns: Callable[[corp.Recalibrated], list[tuple[int, ...]]], width: int
) -> list[Values]:
    analysis.sample_all()
    codes, owners, rows = [], [], []
    for code, name in enumerate(analysis.contests):
        for own in corp.recalibrate(analysis.brier_sample(name).sample):
            found = columns(own)
            codes += [code] * len(found)
            owners += [own.owner] * len(found)
            rows += found
    return [
        Ids(int64_array(codes), analysis.contests),
        Ids(int64_array(owners), totals.score_labels(analysis.facts)),
        *transpose(rows, width),
    ]


def corp_band_values(analysis: Analysis) -> list[Values]:
    """One row for each probability that a participant of a contest has forecast. Raises Refused(out_of_range)."""
    analysis.sample_all()
    codes, owners, rows = [], [], []
    for code, name in enumerate(analysis.contests):
        sampled = analysis.brier_sample(name).sample.owner
        if len(sampled) > MOST_FORECASTS:
            detail = f"{name} has {len(sampled):,} forecasts that count; the limit is {MOST_FORECASTS:,}"
            raise Refused("out_of_range", "corp_band", None, detail)
        replicates = affordable(len(sampled), analysis.facts.contests[name].opened.rules.replicates)
        for owner in np.unique(sampled).tolist():
            seed, band = owner_band(analysis, name, owner)
            codes += [code] * len(band)
            owners += [owner] * len(band)
            rows += [(*place, replicates, seed.hex()) for place in band]
    labels = totals.score_labels(analysis.facts)
    return [Ids(int64_array(codes), analysis.contests), Ids(int64_array(owners), labels), *transpose(rows, 7)]


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


def murphy_curve_values(analysis: Analysis) -> list[Values]:
    """One row for each threshold, for each participant of a contest who has a forecast in its Brier scores."""
    analysis.sample_all()
    codes, owners, rows = [], [], []
    for code, name in enumerate(analysis.contests):
        for own in murphy_curves(analysis.brier_sample(name).sample):
            codes += [code] * (PARTS - 1)
            owners += [own.owner] * (PARTS - 1)
            for place, (alarms, misses) in enumerate(zip(own.false_alarms, own.misses, strict=True), 1):
                score = half_even((place * alarms + (PARTS - place) * misses) * POINTS, PARTS * own.n)
                rows.append((place * POINTS // PARTS, own.n, alarms, misses, score))
    return [
        Ids(int64_array(codes), analysis.contests),
        Ids(int64_array(owners), totals.score_labels(analysis.facts)),
        *transpose(rows, 5),
    ]


def admissions_values(analysis: Analysis) -> list[Values]:
    """One row for each forecast on a question of an attested contest."""
    facts, forecasts = analysis.facts, analysis.facts.forecasts
    codes, index, rows, counted_until = [], [], [], []
    for code, name in enumerate(analysis.contests):
        if facts.contests[name].opened.rules.attested:
            for number in _forecasts_of(facts, facts.contests[name]):
                position, question = int(forecasts.position[number]), int(forecasts.question[number])
                asked = facts.question_as_of(question, facts.contests[name].as_of(facts))
                cutoff = admission.cutoff(asked.closes_at)
                codes.append(code)
                index.append(number)
                counted_until.append(facts.contests[name].as_of(facts))
                receipt = admission.receipt_verdict(int(forecasts.recorded_at[number]), cutoff)
                attestation = facts.attestations.get(position) or Attestation()
                empty = "empty" if admission.empty_window(asked.opens_at, cutoff) else "open"
                rows.append([position, cutoff, *receipt, *_declared_columns(attestation, cutoff), empty])
    row_numbers = int64_array(index)
    return [
        Ids(int64_array(codes), analysis.contests),
        Ids(forecasts.question[row_numbers], facts.question_codes.labels),
        Ids(forecasts.rows(row_numbers).named(int64_array(counted_until)).participant, facts.participant_codes.labels),
        *transpose(rows, 10),
    ]


def _contest(facts: Facts, contest: Contest) -> list[Any]:
    opened, sealed = contest.opened, contest.sealed
    seal = (None, None) if sealed is None else sealed
    progress = facts.books.contests.get(opened.contest)
    complete = progress is not None and progress.complete()
    state = "sealed" if sealed is not None else "complete" if complete else "open"
    own = (opened.title, opened.rules.name, opened.pool, opened.currency)
    return [*own, *seal, contest.paid_total, opened.series, opened.starts_at, state]


def _forecasts_of(facts: Facts, contest: Contest) -> Iterator[int]:
    """Yield the rows of the forecasts that a contest admits or refuses, question after question."""
    forecasts, last = facts.forecasts, contest.as_of(facts)
    for question in sorted(contest.entries):
        first, end = np.searchsorted(forecasts.question, [question, question + 1])
        own = slice(first, end)
        counting = (forecasts.position[own] <= last) & (last < forecasts.retracted[own])
        yield from (np.flatnonzero(forecasts.made[own] & counting) + first).tolist()


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


def _published_or_none(number: Fraction | None) -> int | None:
    return None if number is None else round_to_points(number)
