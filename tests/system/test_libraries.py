"""Scores against scikit-learn and scoringrules, which know nothing of this project: kernels, aggregates, whole logs.

Both count in floats of 16 digits. Where their conventions are not ours: scikit-learn takes columns in sorted order of
their labels, whatever order `labels` has, and closes its bins at the upper end; scoringrules counts outcomes from 1.
Its `weighted_interval_score` depends on the backend and is off on NumPy's; interval scores are added up here instead.
"""

import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from itertools import accumulate, pairwise
from math import log
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from forecast_ledger.ledger.core.values import CUMULATIVE, LARGEST_MEASURE, PROBABILITY
from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion, Range
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.brier import (
    Aggregate,
    Sample,
    aggregate,
    calibration_bins,
    counts_by_owner,
    sums_of,
)
from forecast_ledger.projections.core.powers import QUANTUM
from forecast_ledger.projections.scores.kernels import KERNELS, Uniform
from forecast_ledger.projections.scores.range_kernels import Numbers, quantum
from forecast_ledger.projections.studies.calibration import recalibrate
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import replication
from tests.support.effort import times
from tests.support.given import COLOURS, contest, entry, forecast, opened, resolution
from tests.support.oracle import projected

Row = Sequence[float]
Library = Callable[[Sequence[Row], Sequence[int], Row | None], float]  # distributions, outcomes, weights

ROUNDED = 6e-13  # ours is rounded to 1e-12; theirs, sums of up to 40 squares or logarithms, errs by less than 1e-13
FLOATS = 1e-12  # ours is exact: of means of up to 40 terms, and relative to it of quotients of two such
PUBLISHED = 1e-9  # a scale of 100 on top, or nine decimals


@cache
def library(name: str) -> Any:
    """A library, which takes a second to import: only the process that runs these tests does, not all that collect."""
    with warnings.catch_warnings():  # what it calls on while it is imported is its to mend
        warnings.simplefilter("ignore")
        return import_module(name)


metrics = partial(library, "sklearn.metrics")
calibrated = partial(library, "sklearn.calibration")
isotonic = partial(library, "sklearn.isotonic")
scoringrules = partial(library, "scoringrules")


def near(expected: Any, tolerance: float = ROUNDED) -> Any:
    """Equal to one number, or to each of several, within an absolute tolerance."""
    return pytest.approx(expected, rel=0, abs=tolerance)


def shares(counts: Sequence[int], unit: int = PROBABILITY) -> list[float]:
    """Integers as the floats nearest to what they stand for."""
    return [count / unit for count in counts]


# --- kernels of named outcomes


def half_brier(rows: Sequence[Row], outcomes: Sequence[int], weights: Row | None) -> float:
    """Labels are the columns' numbers, hence in order; by default only two columns would be halved."""
    labels = range(len(rows[0]))
    return float(metrics().brier_score_loss(outcomes, rows, labels=labels, sample_weight=weights, scale_by_half=True))


def whole_brier(rows: Sequence[Row], outcomes: Sequence[int], weights: Row | None) -> float:
    """The sum over outcomes, of two as of more."""
    labels = range(len(rows[0]))
    return float(metrics().brier_score_loss(outcomes, rows, labels=labels, sample_weight=weights, scale_by_half=False))


def mean_brier(rows: Sequence[Row], outcomes: Sequence[int], weights: Row | None) -> float:
    """That sum over the number of outcomes."""
    return whole_brier(rows, outcomes, weights) / len(rows[0])


def ranked(rows: Sequence[Row], outcomes: Sequence[int], weights: Row | None) -> float:
    """2 RPS / (K - 1)."""
    losses = scoringrules().rps_score(np.array(outcomes) + 1, np.array(rows))
    return float(np.average(2 * losses / (len(rows[0]) - 1), weights=weights))


def natural(rows: Sequence[Row], outcomes: Sequence[int], weights: Row | None) -> float:
    """The library's log loss as a gain."""
    return -float(metrics().log_loss(outcomes, rows, labels=range(len(rows[0])), sample_weight=weights))


def in_bits(rows: Sequence[Row], outcomes: Sequence[int], weights: Row | None) -> float:
    """The same by the logarithm base 2."""
    return natural(rows, outcomes, weights) / log(2)


NAMED: dict[str, Library] = {
    "brier": half_brier,
    "brier_sum": whole_brier,
    "brier_mean": mean_brier,
    "ordered_brier": ranked,
    "ln": natural,
    "log2": in_bits,
}


class Named(NamedTuple):
    """A distribution over named outcomes, 1e-9, and which one happened; it had been given a chance."""

    chances: tuple[int, ...]
    outcome: int


class Ranged(NamedTuple):
    """A forecast on a range, its numbers as they are recorded, and the answer's exact text."""

    span: NumericRange
    numbers: tuple[int, ...]
    value: str


@st.composite
def named(draw: st.DrawFn, most: int = 40) -> Named:
    """Two outcomes up to so many, some of them sure, impossible or of 1e-9."""
    cut = st.sampled_from([0, 1, PROBABILITY // 2, PROBABILITY - 1, PROBABILITY]) | st.integers(0, PROBABILITY)
    inner = draw(st.lists(cut, min_size=1, max_size=most - 1))
    chances = tuple(after - before for before, after in pairwise([0, *sorted(inner), PROBABILITY]))
    return Named(chances, draw(st.sampled_from([k for k, chance in enumerate(chances) if chance])))


def columns(rows: Sequence[Named] | Sequence[Ranged]) -> Numbers:
    """Forecasts as kernels take them, each on a question of its own."""
    numbers = [row.chances if isinstance(row, Named) else row.numbers for row in rows]
    width = np.array(list(map(len, numbers)), np.int64)
    return Numbers(
        flat=np.array([number for each in numbers for number in each], np.int64),
        start=np.cumsum(width) - width,
        width=width,
        outcome=np.array([row.outcome if isinstance(row, Named) else 1 for row in rows], np.int64),
        question=np.arange(len(rows)),
        spans=[row.span if isinstance(row, Ranged) else None for row in rows],
        values=[row.value if isinstance(row, Ranged) else "" for row in rows],
    )


def worth(kernel: str, rows: Sequence[Named] | Sequence[Ranged]) -> list[int]:
    """The value of a kernel for each forecast, in the kernel's unit."""
    formula, asked = KERNELS[kernel], columns(rows)
    if formula.of_chance is not None:
        hits = asked.flat[asked.start + asked.outcome]
        return [int(score) for score in formula.of_chance(hits, PROBABILITY)]
    assert formula.of_numbers is not None
    return [int(score) for score in formula.of_numbers(asked)]


@pytest.mark.parametrize(
    ("kernel", "percent", "outcome", "score"),
    [
        ("brier", (80, 20), 0, 0.04),
        ("brier", (80, 20), 1, 0.64),
        ("brier", (50, 30, 20), 1, 0.39),
        ("brier_sum", (50, 30, 20), 1, 0.78),
        ("brier_sum", (25, 25, 50, 0), 1, 0.875),
        ("brier_sum", (25, 25, 30, 20), 1, 0.755),
        ("ordered_brier", (25, 25, 50, 0), 1, 0.625 / 3),
        ("ordered_brier", (25, 25, 30, 20), 1, 0.235),
        ("ordered_brier", (0, 50, 25, 25), 1, 0.625 / 3),
        ("ordered_brier", (20, 30, 40, 10), 1, 0.2),
        ("ln", (80, 20), 0, -0.22314355131420976),
        ("ln", (80, 20), 1, -1.6094379124341003),
        ("log2", (75, 25), 1, -2),
    ],
)
def test_kernels_and_libraries_both_give_the_worked_examples(
    kernel: str, percent: tuple[int, ...], outcome: int, score: float
) -> None:
    """Brier (1950) on 0..1 and on 0..2, Jose, Nau and Winkler (2009) on 0..2, ln 0.8, ln 0.2, log2 0.25: the libraries
    are asked for these formulas and no others.
    """
    row = Named(tuple(each * PROBABILITY // 100 for each in percent), outcome)
    assert shares(worth(kernel, [row]), QUANTUM) == near([score])
    assert NAMED[kernel]([shares(row.chances)], [outcome], None) == near(score)


@pytest.mark.parametrize("kernel", NAMED)
@given(rows=st.lists(named(), min_size=1, max_size=4))
@settings(max_examples=times(30), deadline=None)
def test_a_kernel_of_named_outcomes_is_the_formula_of_a_library(kernel: str, rows: list[Named]) -> None:
    """Questions with two to forty outcomes are scored together."""
    expected = [NAMED[kernel]([shares(row.chances)], [row.outcome], None) for row in rows]
    assert shares(worth(kernel, rows), QUANTUM) == near(expected)


@pytest.mark.parametrize("kernel", NAMED)
@pytest.mark.parametrize("outcomes", [2, 3, 7, 40])
def test_the_uniform_reference_is_what_a_library_gives_a_uniform_forecast(kernel: str, outcomes: int) -> None:
    """1/K each, also where 1e-9 cannot say it; of ordered outcomes it matters which one happens."""
    uniforms = [Uniform(outcomes, outcome, (1, outcomes)) for outcome in range(outcomes)]
    scores = [KERNELS[kernel].uniform(each) for each in uniforms]  # type: ignore[misc]
    uniform = [[1 / outcomes] * outcomes]
    assert shares(scores, QUANTUM) == near([NAMED[kernel](uniform, [outcome], None) for outcome in range(outcomes)])


@given(st.lists(named(most=2), min_size=1, max_size=8))
@settings(deadline=None)
def test_of_two_outcomes_the_halved_score_is_that_of_one_probability(rows: list[Named]) -> None:
    """(p - o)², p that of the first outcome; the one split of ordered outcomes is scored on both sides, twice that."""
    first = [row.chances[0] / PROBABILITY for row in rows]
    expected = scoringrules().brier_score([int(row.outcome == 0) for row in rows], first)
    assert shares(worth("brier", rows), QUANTUM) == near(expected)
    assert shares(worth("ordered_brier", rows), QUANTUM) == near(2 * expected)


# --- kernels of ranges


@st.composite
def spans(draw: st.DrawFn, /, **form: Any) -> NumericRange:
    """A range between whole numbers, linear, or logarithmic from below it or from above it."""
    lower, beyond = draw(st.integers(-1_000, 1_000)), draw(st.integers(1, 300))
    upper = lower + draw(st.integers(1, 5_000))
    zero = draw(st.sampled_from([None, str(lower - beyond), str(upper + beyond)]))
    return NumericRange(lower=str(lower), upper=str(upper), zero_point=zero, open_lower=True, open_upper=True, **form)


@st.composite
def answers(draw: st.DrawFn, span: NumericRange) -> str:
    """An answer inside, at an end of, or a little beyond a range, to three decimals."""
    lower, upper = int(span.lower) * 1_000, int(span.upper) * 1_000
    thousandths = st.sampled_from([lower, upper]) | st.integers(lower - 500, upper + 500)
    return str(Decimal(draw(thousandths)).scaleb(-3))


def scaled(value: float, span: NumericRange) -> float:
    """The place of a value between the ends of a range; beyond them, the end.

    With s = (value - lower) / (upper - lower): s, or ln(1 + s (r - 1)) / ln r on a logarithmic range, r the ratio of
    how far upper and lower lie from the zero point.
    """
    lower, upper = float(span.lower), float(span.upper)
    share = min(max((value - lower) / (upper - lower), 0.0), 1.0)
    if span.zero_point is None:
        return share
    ratio = (upper - float(span.zero_point)) / (lower - float(span.zero_point))
    return float(np.log1p(share * (ratio - 1)) / np.log(ratio))


@st.composite
def cdfs(draw: st.DrawFn) -> Ranged:
    """Heights at the edges of up to 30 bins, with or without chances beyond the range."""
    span = draw(spans(bins=draw(st.integers(1, 30))))
    height = st.sampled_from([0, 1, CUMULATIVE]) | st.integers(0, CUMULATIVE)
    heights = draw(st.lists(height, min_size=span.bins + 1, max_size=span.bins + 1))
    return Ranged(span, tuple(sorted(heights)), draw(answers(span)))


def piecewise(heights: Sequence[int], place: float) -> float:
    """The CRPS of a cdf bin by bin: in each a uniform distribution, what lies below it or above it at its ends."""
    level, bins = np.array(heights) / CUMULATIVE, len(heights) - 1
    within = np.clip(place * bins - np.arange(bins), 0, 1)
    return float(scoringrules().crps_uniform(within, 0.0, 1.0, level[:-1], 1 - level[1:]).mean())


@given(st.lists(cdfs(), min_size=1, max_size=4))
@settings(max_examples=times(50), deadline=None)
def test_the_crps_of_a_cdf_is_that_of_uniform_pieces(rows: list[Ranged]) -> None:
    """On linear and logarithmic ranges, for answers in them, at their ends and beyond."""
    expected = [piecewise(row.numbers, scaled(float(row.value), row.span)) for row in rows]
    assert shares(worth("crps", rows), QUANTUM) == near(expected)


@given(cdfs())
@settings(deadline=None)
def test_the_uniform_reference_of_a_range_is_the_crps_of_a_uniform_distribution(row: Ranged) -> None:
    """The distribution is uniform from the lower end to the upper, without probability beyond."""
    uniform = Uniform(row.span.bins, 1, (1, row.span.bins), row.span, row.value)
    score = KERNELS["crps"].uniform(uniform)  # type: ignore[misc]
    assert score / QUANTUM == near(float(scoringrules().crps_uniform(scaled(float(row.value), row.span), 0, 1)))


@st.composite
def quantiles(draw: st.DrawFn, levels: tuple[int, ...] = ()) -> Ranged:
    """Quantiles at these levels or up to ten others, of 0 to 12 decimals, far apart or all but equal to the answer,
    which has two decimals more.
    """
    level = st.sampled_from([1, PROBABILITY // 2, PROBABILITY - 1]) | st.integers(1, PROBABILITY - 1)
    asked = levels or tuple(sorted(draw(st.sets(level, min_size=1, max_size=10))))
    decimals, largest = draw(st.integers(0, 12)), draw(st.sampled_from([10, 10**6, LARGEST_MEASURE]))
    amount = st.integers(-largest, largest)
    answer, rest = draw(amount), draw(st.integers(0, 99))
    made = sorted(draw(st.lists(amount | st.just(answer), min_size=len(asked), max_size=len(asked))))
    span = NumericRange(lower="0", upper="1", open_lower=True, open_upper=True, levels=asked, decimals=decimals)
    return Ranged(span, tuple(made), str(Decimal(100 * answer + rest).scaleb(-decimals - 2)))


def pinball(row: Ranged) -> float:
    """Our kernel, in units of the question."""
    return worth("pinball", [row])[0] / quantum(row.span)


def as_floats(row: Ranged) -> tuple[Any, Any, Any]:
    """Answer, quantiles and levels, in units of the question."""
    made = np.array(shares(row.numbers, 10**row.span.decimals))
    return np.array(float(row.value)), made, np.array(shares(row.span.levels))


def in_units(row: Ranged) -> float:
    """Half of what a score by quantiles is rounded to, and what floats lose: some last digits of the largest number,
    of which a score can be four times as large.
    """
    answer, made, _ = as_floats(row)
    return 0.5 / quantum(row.span) + 16 * float(np.spacing(max(abs(answer), *abs(made))))


def weighted_intervals(row: Ranged) -> float:
    """Σ a/2 · (score of the interval at 1 - a) + half the median's error, over the number of intervals and a half."""
    answer, made, levels = as_floats(row)
    half = len(made) // 2
    alphas = 2 * levels[:half]
    scores = scoringrules().interval_score(answer, made[:half], made[:half:-1], alphas).ravel()
    return float((np.dot(alphas / 2, scores) + abs(answer - made[half]) / 2) / (half + 0.5))


_LOWER = (10, 25, 50, 100, 150, 200, 250, 300, 350, 400, 450)  # 1e-3
MIRRORED = tuple(level * 10**6 for level in (*_LOWER, 500, *(1_000 - level for level in reversed(_LOWER))))
_SMALL = NumericRange(lower="0", upper="20", levels=(10**8, 5 * 10**8, 9 * 10**8), decimals=6)
WORKED = Ranged(_SMALL, (4_000_000, 7_000_000, 8_000_000), "10")


@given(quantiles())
@example(WORKED)
@settings(max_examples=times(50), deadline=None)
def test_pinball_is_the_crps_from_quantiles(row: Ranged) -> None:
    """The kernel is twice the mean quantile score."""
    assert pinball(row) == near(float(scoringrules().crps_quantile(*as_floats(row))), in_units(row))
    assert pinball(row) == near(2 * float(scoringrules().quantile_score(*as_floats(row)).mean()), in_units(row))


@given(quantiles(MIRRORED))
@example(WORKED)
@settings(deadline=None)
def test_pinball_at_mirrored_levels_is_the_weighted_interval_score(row: Ranged) -> None:
    """Bracher, Ray, Gneiting and Reich (2021), at the 23 levels of forecast hubs."""
    assert pinball(row) == near(weighted_intervals(row), in_units(row))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_season_of_quantiles_scores_as_scoringrules_scores_it(seed: int) -> None:
    """5,000 forecasts at the 23 levels of forecast hubs, counted to four decimals, on 100 questions."""
    chance = np.random.default_rng(seed)
    made, answers = np.sort(chance.integers(0, 10**8, (5_000, 23)), axis=1), chance.integers(0, 10**8, 100)
    span = NumericRange(lower="0", upper="1", open_upper=True, levels=MIRRORED, decimals=4)
    values = [str(Decimal(answer).scaleb(-4)) for answer in answers.tolist()]
    rows = [Ranged(span, tuple(row), values[n % 100]) for n, row in enumerate(made.tolist())]
    expected = scoringrules().crps_quantile(np.resize(answers, 5_000) / 10**4, made / 10**4, shares(MIRRORED))
    assert shares(worth("pinball", rows), quantum(span)) == pytest.approx(expected, rel=1e-9, abs=1e-8)


def test_the_worked_weighted_interval_score_is_two_and_six_tenths() -> None:
    """4 to 8 at 80% with 10 come true scores 4 + 2 / 0.2 · 2 = 24; with a median of 7, (0.5 · 3 + 0.1 · 24) / 1.5."""
    assert scoringrules().interval_score(10.0, 4.0, 8.0, 0.2) == near(24, FLOATS)
    assert (pinball(WORKED), weighted_intervals(WORKED)) == (2.6, near(2.6, FLOATS))


@st.composite
def points(draw: st.DrawFn) -> Ranged:
    """A point in a range, to three decimals, and an answer."""
    span = draw(spans(levels=(PROBABILITY // 2,), decimals=3))
    return Ranged(span, (draw(st.integers(int(span.lower) * 1_000, int(span.upper) * 1_000)),), draw(answers(span)))


def one_member(row: Ranged) -> float:
    """The CRPS of an ensemble of one, on the range as 0..1."""
    point = row.numbers[0] / 10**row.span.decimals
    places = np.array(scaled(float(row.value), row.span)), np.array([scaled(point, row.span)])
    return float(scoringrules().crps_ensemble(*places))


FAR = st.integers(-(10**6), 10**6)


@settings(max_examples=times(50), deadline=None)
@given(samples=st.lists(FAR, min_size=1, max_size=40).map(sorted), answer=FAR)
@example(samples=[7] * 20, answer=7)
def test_the_loss_of_samples_is_the_crps_of_an_ensemble(samples: list[int], answer: int) -> None:
    """By the definition as a mean of distances, which the library computes in another way than this project."""
    span = NumericRange(lower="0", upper="1", open_lower=True, open_upper=True, decimals=2, samples=len(samples))
    start, width, outcome, question = (np.array([each]) for each in (0, len(samples), 1, 0))
    row = Numbers(np.array(samples), start, width, outcome, question, [span], [str(answer / 100)])
    kernel = KERNELS["pinball"].of_numbers
    assert kernel
    [score] = kernel(row).tolist()
    expected = scoringrules().crps_ensemble(answer / 100, np.array(samples) / 100, estimator="nrg")
    assert score / 10**6 == near(float(expected), 1e-6)


@given(st.lists(points(), min_size=1, max_size=4))
@example([Ranged(NumericRange(lower="0", upper="1", levels=(5 * 10**8,), decimals=2), (55,), "0.7")])
@settings(max_examples=times(50), deadline=None)
def test_the_absolute_error_of_a_point_is_the_crps_of_one_member(rows: list[Ranged]) -> None:
    """0.55 against 0.7 is 0.15. Along the logarithmic scale where there is one; an answer beyond counts as the end."""
    assert shares(worth("absolute", rows), QUANTUM) == near([one_member(row) for row in rows])


# --- aggregates of binary questions


class Said(NamedTuple):
    """A probability of yes, 1e-9, that of the consensus, in percent, and whether it happened."""

    probability: int
    consensus: int
    happened: bool


EDGES = sorted({step * PROBABILITY // bins for bins in (10, 16) for step in range(bins + 1)})
SAID = st.builds(Said, st.sampled_from(EDGES) | st.integers(0, PROBABILITY), st.integers(0, 100), st.booleans())


def sample(rows: Sequence[Said]) -> Sample:
    """A Brier sample with a single owner."""
    probability = np.array([row.probability for row in rows], np.int64)
    consensus = np.array([row.consensus * PROBABILITY // 100 for row in rows], np.int64)
    return Sample(np.zeros(len(rows), np.int64), probability, consensus, np.array([row.happened for row in rows]))


def only(rows: Sequence[Said]) -> Aggregate:
    """The one owner's aggregate."""
    return aggregate(counts_by_owner(sums_of(sample(rows)))[0])


def said(rows: Sequence[Said]) -> tuple[list[int], list[float]]:
    """The outcomes and their probabilities."""
    return [int(row.happened) for row in rows], shares([row.probability for row in rows])


@given(st.lists(SAID, min_size=1, max_size=40))
@settings(deadline=None)
def test_mean_brier_scores_and_skills_are_those_of_scikit_learn(rows: list[Said]) -> None:
    """Skill is 1 - brier / reference; against the base rate it is called D²."""
    (happened, chances), brier = said(rows), only(rows)
    own = metrics().brier_score_loss(happened, chances)
    consensus = metrics().brier_score_loss(happened, shares([row.consensus for row in rows], 100))
    assert brier.brier == near(own, FLOATS)
    assert brier.skill_against_even_odds == near(
        1 - own / metrics().brier_score_loss(happened, [0.5] * len(rows)), FLOATS
    )
    if consensus:
        assert brier.skill_against_consensus == pytest.approx(1 - own / consensus, rel=FLOATS, abs=FLOATS)
    if len(set(happened)) == 2:
        assert brier.skill_against_base_rate == pytest.approx(
            metrics().d2_brier_score(happened, chances), rel=FLOATS, abs=FLOATS
        )


TENTHS = st.builds(
    Said, st.integers(0, 9).map(lambda tenth: (2 * tenth + 1) * PROBABILITY // 20), st.just(0), st.booleans()
)


@given(st.lists(TENTHS, min_size=2, max_size=40))
@settings(deadline=None)
def test_reliability_is_what_recalibration_gains_and_resolution_what_it_leaves(rows: list[Said]) -> None:
    """Murphy (1973): if each of ten values is replaced by how often it came true, reliability is gone, and the rest is
    uncertainty less resolution; the skill of that against the base rate is resolution / uncertainty.
    """
    (happened, chances), brier = said(rows), only(rows)
    frequency, value = calibrated().calibration_curve(happened, chances, n_bins=10)
    recalibrated = frequency[abs(np.subtract.outer(chances, value)).argmin(axis=1)]
    left, uncertainty = (
        metrics().brier_score_loss(happened, each) for each in (recalibrated, [np.mean(happened)] * len(rows))
    )
    assert brier.reliability == near(metrics().brier_score_loss(happened, chances) - left, FLOATS)
    assert brier.resolution_term == near(uncertainty - left, FLOATS)
    assert brier.uncertainty == near(uncertainty, FLOATS)
    if brier.uncertainty:
        assert brier.resolution_term / brier.uncertainty == near(
            metrics().d2_brier_score(happened, recalibrated), FLOATS
        )


@pytest.mark.parametrize("bins", [2, 10, 16])
@given(rows=st.lists(SAID, min_size=1, max_size=40))
@settings(deadline=None)
def test_the_calibration_table_is_a_calibration_curve(bins: int, rows: list[Said]) -> None:
    """Its bins are closed at the upper end, ours at the lower: they agree on 1 - p of what did not happen."""
    curve = calibration_bins(sums_of(sample(rows)), range(0, PROBABILITY + 1, PROBABILITY // bins))[::-1]
    against = shares([PROBABILITY - row.probability for row in rows])
    missed, value = calibrated().calibration_curve([int(not row.happened) for row in rows], against, n_bins=bins)
    assert [row.happened / row.n for row in curve] == near(1 - missed, FLOATS)
    assert [row.total_forecast / (row.n * PROBABILITY) for row in curve] == near(1 - value, FLOATS)


# --- whole logs


OPENING = datetime(2026, 3, 10, tzinfo=UTC)
MEAN = RuleSet(name="mean", period="covered", total="mean")  # over the time during which a forecast stands


class Timeline(NamedTuple):
    """Forecasts of three outcomes, one after the other, and how many hours each stands."""

    hours: list[int]
    rows: list[list[float]]


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Up to four forecasts, in whole percents from 1 on."""
    hours = draw(st.lists(st.integers(1, 60), min_size=1, max_size=4))
    cuts = [sorted(draw(st.sets(st.integers(1, 99), min_size=2, max_size=2))) for _ in hours]
    return Timeline(hours, [shares([low, high - low, 100 - high], 100) for low, high in cuts])


def asked(
    name: str, hours: Sequence[int], made: Sequence[dict[str, Any]], answer: dict[str, Any], **fields: Any
) -> list[AnyCommand]:
    """A question, its forecasts, the first as it opens and each for so many hours, and its answer after its close."""
    *starts, closes = [OPENING + timedelta(hours=passed) for passed in accumulate(hours, initial=0)]
    question = opened(name, **({"opens_at": OPENING, "closes_at": closes} | fields))
    forecasts = [forecast(name, at=at, **numbers) for at, numbers in zip(starts, made, strict=True)]
    return [question, *forecasts, resolution(name, **answer)]


def colour(timeline: Timeline) -> list[AnyCommand]:
    """A question of three outcomes, the second of which happens."""
    made = [{"probabilities": dict(zip(COLOURS, row, strict=True))} for row in timeline.rows]
    answer = {"outcome": COLOURS[1]}
    return asked("colour", timeline.hours, made, answer, kind="multiple_choice", outcomes=COLOURS)


def judged(kernel: str, timeline: Timeline) -> float:
    """A library's mean of the same, by hours."""
    return NAMED[kernel](timeline.rows, [1] * len(timeline.rows), timeline.hours)


def under(rules: str | RuleSet, *logs: list[AnyCommand]) -> Projections:
    """The projections of a log with one contest over all these questions."""
    log = [command for each in logs for command in each]
    entries = [entry(question=command.question) for command in log if isinstance(command, OpenQuestion)]
    return projected(*log, contest(rules=rules), *entries)


def scores(rules: str | RuleSet, *logs: list[AnyCommand]) -> dict[str, float]:
    """The one participant's, by question."""
    rows = under(rules, *logs).table("scores").rows()
    return {row["question"]: float(Fraction(int(row["numerator"]), int(row["denominator"]))) for row in rows}


@pytest.mark.parametrize("kernel", NAMED)
@given(timeline=timelines())
@settings(max_examples=times(15), deadline=None)
def test_a_score_over_time_is_the_weighted_mean_of_a_library(kernel: str, timeline: Timeline) -> None:
    """The weights are the times for which forecasts stand."""
    assert scores(replace(MEAN, kernel=kernel), colour(timeline)) == {"colour": near(judged(kernel, timeline))}


@given(timelines())
@settings(max_examples=times(15), deadline=None)
def test_a_baseline_score_is_what_is_saved_of_the_uniform_log_loss(timeline: Timeline) -> None:
    """On a scale of 100, a third for each outcome scores 0 and certainty scores 100."""
    saved = 1 - judged("ln", timeline) / natural([[1 / 3] * 3], [0], None)
    assert scores("baseline", colour(timeline)) == {"colour": near(100 * saved, PUBLISHED)}


@pytest.mark.parametrize(
    ("sampling", "weights", "score"), [("time", (18, 60, 162), 0.034375), ("day", (0, 3, 7), 0.02575)]
)
def test_time_and_days_differ_in_the_weights_alone(sampling: str, weights: Row, score: float) -> None:
    """Yes after ten days, 60% for 18 hours, 75% for 60, 90% for 162: of days, the first is nobody's last forecast."""
    chances = (0.6, 0.75, 0.9)
    log = asked("rain", (18, 60, 162), [{"probability": chance} for chance in chances], {"outcome": "yes"})
    assert metrics().brier_score_loss([1, 1, 1], chances, sample_weight=weights) == near(score)
    assert scores(replace(MEAN, kernel="brier", sampling=sampling), log) == {"rain": near(score)}


@given(timelines(), st.integers(0, 40).map(lambda tenths: tenths / 10))
@settings(max_examples=times(30), deadline=None)
def test_scores_on_ranges_are_weighted_means_of_scoringrules(timeline: Timeline, value: float) -> None:
    """From 0 to 4: the shares as the cdf of three bins; four times their sums as quantiles at three levels."""
    levels, sums = (0.1, 0.5, 0.75), [[round(part, 2) for part in accumulate(row)] for row in timeline.rows]
    heights, marks = [[0, *row] for row in sums], [[round(4 * part, 2) for part in row] for row in sums]
    logs = [
        asked(form, timeline.hours, [{form: row} for row in made], {"value": value}, kind="numeric", range=span)
        for form, made, span in (
            ("cdf", heights, Range(lower=0, upper=4, bins=3)),
            ("quantiles", marks, Range(lower=0, upper=4, levels=levels)),
        )
    ]
    crps = [piecewise([round(height * CUMULATIVE) for height in row], value / 4) for row in heights]
    quantile = [scoringrules().crps_quantile(np.array(value), np.array(row), levels) for row in marks]
    assert scores(replace(MEAN, cdf_kernel="crps", quantile_kernel="pinball"), *logs) == {
        "cdf": near(np.average(crps, weights=timeline.hours)),
        "quantiles": near(np.average(quantile, weights=timeline.hours), 6e-11),  # rounded to 1e-10
    }


@given(*[st.integers(0, 100).map(lambda percent: percent / 100)] * 4, timelines())
@settings(max_examples=times(30), deadline=None)
def test_the_combined_score_of_a_competition_is_the_sum_of_three_means(
    rain: float, snow: float, point: float, value: float, timeline: Timeline
) -> None:
    """Times 100: halved Brier scores of yes-or-no questions, the last forecast of a choice, the distance of a point. An
    unanswered question counts like certainty of what did not happen. By label: no before yes, blue before green.
    """
    span = Range(lower=0, upper=1, levels=(0.5,))
    logs = [
        asked("rain", [24], [{"probability": rain}], {"outcome": "yes"}),
        asked("snow", [24], [{"probability": snow}], {"outcome": "no"}),
        asked("hail", [], [], {"outcome": "yes"}, closes_at=OPENING + timedelta(days=1)),
        asked("depth", [24], [{"quantiles": [point]}], {"value": value}, kind="numeric", range=span),
        colour(timeline),
    ]
    either = [[1 - rain, rain], [1 - snow, snow], [1, 0]]
    choice = [dict(zip(COLOURS, timeline.rows[-1], strict=True))[name] for name in sorted(COLOURS)]
    total = (
        metrics().brier_score_loss(["yes", "no", "yes"], either, labels=["no", "yes"], scale_by_half=True)
        + metrics().brier_score_loss([COLOURS[1]], [choice], labels=sorted(COLOURS), scale_by_half=True)
        + float(scoringrules().crps_ensemble(np.array(value), np.array([point])))
    )
    (place,) = under("autocast-2022", *logs).table("leaderboard").rows()
    assert float(place["score"]) == near(100 * total, PUBLISHED)


# --- recalibration by isotonic regression


def judged_by_scikit_learn(said: Sequence[int], came: Sequence[bool]) -> tuple[list[float], list[float]]:
    """Return the recalibrated probability of each forecast, then Brier score, MCB, DSC and UNC, by scikit-learn."""
    made = shares(said)
    fitted = isotonic().IsotonicRegression().fit(made, came).predict(made)
    base = [sum(came) / len(came)] * len(came)
    raw, new, flat = (float(metrics().mean_squared_error(came, each)) for each in (made, fitted, base))
    return [float(each) for each in fitted], [raw, raw - new, flat - new, flat]


def judged_here(said: Sequence[int], came: Sequence[bool]) -> tuple[list[float], list[float]]:
    """Return the same by our own recalibration."""
    nobody, nothing = np.zeros(len(said), np.int64), np.full(len(said), -1)
    [own] = recalibrate(Sample(nobody, np.array(said), nothing, np.array(came)))
    parts = own.brier, own.miscalibration, own.discrimination, own.uncertainty
    starts = [block.lower for block in own.blocks]
    blocks = [own.blocks[bisect_right(starts, place) - 1] for place in said]
    return [block.happened / block.n for block in blocks], [float(part) for part in parts]


def agree(said: Sequence[int], came: Sequence[bool]) -> None:
    """Check all numbers; those of scikit-learn are sums of thousands of floats."""
    for ours, theirs in zip(judged_here(said, came), judged_by_scikit_learn(said, came), strict=True):
        assert ours == near(theirs, PUBLISHED)


@pytest.mark.parametrize("seed", range(times(10)))
def test_random_forecasts_are_recalibrated_as_by_scikit_learn(seed: int) -> None:
    """Up to five hundred forecasts, in steps of a hundredth or of a billionth; some calibrated, some too sure."""
    random = Random(seed)
    step, sure = random.choice([1, PROBABILITY // 100]), random.choice([0.5, 1, 2])
    said = [random.randrange(PROBABILITY // step + 1) * step for _ in range(random.randint(2, 500))]
    came = [random.random() < 0.5 + (each / PROBABILITY - 0.5) * sure for each in said]
    agree(said, came)


@pytest.mark.skipif(not replication.SOURCE.is_file(), reason=f"needs {replication.SOURCE.name}, which is not here")
def test_real_forecasts_are_recalibrated_as_by_scikit_learn() -> None:
    """Of replications of published studies: all answers of the survey together, and the prices that trades left."""
    rows = replication.rows()
    answers = {row["qid"]: row["outcome"] == "yes" for row in rows if row["kind"] == "resolution"}
    said: dict[str, list[tuple[int, bool]]] = {"survey": [], "prices": []}
    for row in rows:
        if row["kind"] == "forecast":
            said["survey"].append((int(row["probs"]["yes"] * PROBABILITY), answers[row["qid"]]))
        elif row["kind"] == "trade":
            said["prices"].append((int(row["price_after"] * PROBABILITY), answers[row["qid"]]))
    assert {name: len(each) for name, each in said.items()} == {"survey": 7_377, "prices": 7_849}
    for each in said.values():
        made, came = zip(*each, strict=True)
        agree(made, came)
