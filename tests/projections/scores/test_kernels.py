"""Every kernel against its definition in fractions, and worked examples."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, pairwise, product
from random import Random
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import ABSOLUTES, GAINS, LOGARITHMS, UNBOUNDED, RuleSet
from forecast_ledger.projections.core.proportions import apportion
from forecast_ledger.projections.scores import range_kernels
from forecast_ledger.projections.scores.kernels import KERNELS, OF_QUESTION, OF_SQUARES, Kernel, Uniform, Unit
from forecast_ledger.projections.scores.range_kernels import Numbers, fraction_of, quantum
from tests.support.effort import times
from tests.support.oracle import EXACT, logarithm, picos

PICO = 10**12
BILLION = 10**9
CDF = 10**10
BLOCKS = st.sampled_from([1, 2, 3, 7, 40, 1 << 21])
NAMED = ("brier", "brier_sum", "brier_mean", "ordered_brier", "error", "spherical")
FIELDS = {"chances": "kernel", "cdf": "cdf_kernel"}
FIELDS |= dict.fromkeys(["quantiles", "point", "samples", "sample"], "quantile_kernel")
UNITS = {"pinball": OF_QUESTION, "squared": OF_SQUARES}


class Case(NamedTuple):
    """One recorded forecast and the answer to its question."""

    numbers: tuple[int, ...]
    outcome: int = 0
    span: NumericRange | None = None
    value: str = ""
    payouts: tuple[Fraction, ...] = ()


def numbers_of(cases: Sequence[Case]) -> Numbers:
    """Return the forecasts as columns, each on a question of its own; in `flat` they are in reverse and with gaps.

    One more question has no forecast and no range.
    """
    flat: list[int] = [7]
    start = []
    for case in reversed(cases):
        start.append(len(flat))
        flat += [*case.numbers, -5]
    column = np.array
    return Numbers(
        flat=column(flat, np.int64),
        start=column(start[::-1], np.int64),
        width=column([len(case.numbers) for case in cases], np.int64),
        outcome=column([case.outcome for case in cases], np.int64),
        question=np.arange(len(cases)),
        spans=[*(case.span for case in cases), None],
        values=[*(case.value for case in cases), ""],
        payouts=[*(case.payouts for case in cases), ()],
    )


def kernel_scores(name: str, *cases: Case, block: int = 1 << 21) -> list[int]:
    """Return the scores of forecasts by a kernel that reads `block` numbers at a time."""
    kernel = KERNELS[name].of_numbers
    assert kernel
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(range_kernels, "_BLOCK", block)
        scores: list[int] = kernel(numbers_of(cases)).tolist()
    return scores


def uniform(name: str, distribution: Uniform) -> int:
    """Return the score of the uniform distribution by a kernel."""
    score = KERNELS[name].uniform
    assert score
    return score(distribution)


def chances(*probabilities: str | int) -> tuple[int, ...]:
    """Return probabilities in 1e-9."""
    return tuple(int(Fraction(probability) * BILLION) for probability in probabilities)


# --- the slow definitions


def shares(numbers: Sequence[int]) -> list[Fraction]:
    """Return probabilities as fractions."""
    return [Fraction(number, BILLION) for number in numbers]


def hits(case: Case) -> list[Fraction]:
    """Return 1 for the outcome that happened, 0 for the others; or what a share of each is paid."""
    return [*case.payouts] or [Fraction(place == case.outcome) for place in range(len(case.numbers))]


def whole_brier(case: Case) -> Fraction:
    """Return Σ (p - o)²."""
    return sum(((p - o) ** 2 for p, o in zip(shares(case.numbers), hits(case), strict=True)), Fraction(0))


def mean_brier(case: Case) -> Fraction:
    """Return the mean of (p - o)² over the outcomes."""
    return whole_brier(case) / len(case.numbers)


def ordered(case: Case) -> Fraction:
    """Return the mean of the Brier scores of the K - 1 binary questions that splits of the outcomes make."""
    below, happened = list(accumulate(shares(case.numbers))), list(accumulate(hits(case)))
    splits = [(f - o) ** 2 + ((1 - f) - (1 - o)) ** 2 for f, o in zip(below[:-1], happened[:-1], strict=True)]
    return sum(splits, Fraction(0)) / len(splits)


def share_of_length(case: Case) -> int:
    """Return p / √Σp² in 1e-12: the n with (n - 1/2)² Σp² <= p² <= (n + 1/2)² Σp², the even one of two."""
    p, square = shares(case.numbers)[case.outcome] * PICO, sum(share**2 for share in shares(case.numbers))
    low, high = 0, PICO + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**2 * square <= p**2 else (low, middle)
    beyond = p**2 - (low + Fraction(1, 2)) ** 2 * square
    return low + (beyond > 0 or (beyond == 0 and low % 2 == 1))


def placed(value: Fraction, span: NumericRange) -> Fraction:
    """Return the place of a value on its range, 0..1, to 60 digits on a logarithmic range."""
    lower, upper = Fraction(span.lower), Fraction(span.upper)
    value = min(max(value, lower), upper)
    if span.zero_point is None:
        return (value - lower) / (upper - lower)
    zero = Fraction(span.zero_point)
    part, whole = logarithm("ln", (value - zero) / (lower - zero)), logarithm("ln", (upper - zero) / (lower - zero))
    return Fraction(EXACT.divide(part, whole))


def squared_gap(case: Case, answer: Fraction) -> Iterator[Fraction]:
    """Yield ∫ (F - 1{x >= y})² between adjacent edges and the answer, by Simpson's rule, exact for a square."""
    assert case.span
    bins, heights = case.span.bins, [Fraction(height, CDF) for height in case.numbers]

    def height_at(x: Fraction) -> Fraction:
        edge = min(int(x * bins), bins - 1)
        return heights[edge] + (heights[edge + 1] - heights[edge]) * (x * bins - edge)

    for left, right in pairwise(sorted({Fraction(edge, bins) for edge in range(bins + 1)} | {answer})):
        step = int(left >= answer)
        ends = (height_at(left) - step) ** 2 + (height_at(right) - step) ** 2
        yield (right - left) / 6 * (ends + 4 * (height_at((left + right) / 2) - step) ** 2)


def integral(case: Case) -> Fraction:
    """Return the continuous ranked probability score."""
    assert case.span
    return sum(squared_gap(case, placed(Fraction(case.value), case.span)), Fraction(0))


def twice_mean_loss(case: Case) -> Fraction:
    """Return 2 · mean over levels of (1{y < q} - level)(q - y)."""
    assert case.span
    y, unit = Fraction(case.value), 10**case.span.decimals
    losses = [
        ((y < Fraction(q, unit)) - Fraction(level, BILLION)) * (Fraction(q, unit) - y)
        for level, q in zip(case.span.levels, case.numbers, strict=True)
    ]
    return 2 * sum(losses, Fraction(0)) / len(losses)


def distance(case: Case) -> Fraction:
    """Return |x - y| on the range."""
    assert case.span
    point = Fraction(case.numbers[0], 10**case.span.decimals)
    return abs(placed(point, case.span) - placed(Fraction(case.value), case.span))


# --- random cases


@st.composite
def named_outcomes(draw: st.DrawFn) -> Case:
    """Draw a forecast on two to forty outcomes: some certain, impossible, of a billionth, or near a tie."""
    cut = st.sampled_from([0, 1, 500, 1_500, 2_500, BILLION // 2, BILLION - 1_500, BILLION - 1, BILLION])
    inner = draw(st.lists(cut | st.integers(0, BILLION), min_size=1, max_size=39))
    edges = [0, *sorted(inner), BILLION]
    numbers = tuple(after - before for before, after in pairwise(edges))
    return Case(numbers, draw(st.integers(0, len(numbers) - 1)))


BOUNDS = st.sampled_from(
    [("0", "1"), ("-3", "4"), ("0.1", "0.25"), ("1", "1000"), ("-1000000", "1000000.5"), ("2", "5")]
)


@st.composite
def ranges(draw: st.DrawFn, /, *, logarithmic: bool = False, **fields: int | tuple[int, ...]) -> NumericRange:
    """Draw a range open at both ends; a logarithmic one has its zero point below or above."""
    lower, upper = draw(BOUNDS)
    zero = draw(st.sampled_from([str(Decimal(lower) - 1), str(Decimal(upper) + 2)])) if logarithmic else None
    return NumericRange(lower=lower, upper=upper, zero_point=zero, open_lower=True, open_upper=True, **fields)  # type: ignore[arg-type]


@st.composite
def values(draw: st.DrawFn, span: NumericRange, bins: int) -> str:
    """Draw an answer: anywhere, at an edge of a bin, at a bound, or beyond."""
    lower, upper = Decimal(span.lower), Decimal(span.upper)
    edge = (upper - lower) * draw(st.integers(-1, bins + 1)) / bins + lower
    anywhere = lower + (upper - lower) * draw(st.integers(-10, 1_010)) / 1_000
    return format(draw(st.sampled_from([lower, upper, edge, anywhere])), "f")


@st.composite
def cdfs(draw: st.DrawFn, *, logarithmic: bool = False) -> Case:
    """Draw a cdf over one to twelve bins."""
    bins = draw(st.integers(1, 12))
    height = st.sampled_from([0, 1, CDF // 2, CDF - 1, CDF]) | st.integers(0, CDF)
    heights = sorted(draw(st.lists(height, min_size=bins + 1, max_size=bins + 1)))
    span = draw(ranges(logarithmic=logarithmic, bins=bins))
    return Case(tuple(heights), 0, span, draw(values(span, bins)))


@st.composite
def quantiles(draw: st.DrawFn) -> Case:
    """Draw quantiles at one to nine levels, with any number of decimals; the answer may have more."""
    level = st.sampled_from([1, BILLION // 2, BILLION - 1]) | st.integers(1, BILLION - 1)
    levels = tuple(sorted(draw(st.sets(level, min_size=1, max_size=9))))
    decimals = draw(st.integers(0, 12))
    most = draw(st.sampled_from([10, 10**6, 10**13]))
    amount = st.integers(-most, most)
    made = tuple(sorted(draw(st.lists(amount, min_size=len(levels), max_size=len(levels)))))
    finer = draw(st.sampled_from([0, 1, 5]))
    answer = draw(st.sampled_from([made[0] * 10**finer, draw(amount) * 10**finer, draw(amount)]))
    value = format(Decimal(answer).scaleb(-decimals - finer), "f")
    span = NumericRange(lower="0", upper="1", open_lower=True, open_upper=True, levels=levels, decimals=decimals)
    return Case(made, 1, span, value)


@st.composite
def points(draw: st.DrawFn, *, logarithmic: bool = False) -> Case:
    """Draw a point: the level 0.5 alone."""
    decimals = draw(st.integers(0, 6))
    span = draw(ranges(logarithmic=logarithmic, levels=(BILLION // 2,), decimals=decimals))
    point = Decimal(draw(values(span, 7))).quantize(Decimal(1).scaleb(-decimals))
    return Case((int(point.scaleb(decimals)),), 1, span, draw(values(span, 7)))


# --- kernels of named outcomes


TIE = Case((1_500, BILLION - 1_500, 0, 0), 1)  # ordered: 2 · 1500² / 3 = 1.5e-12


@settings(max_examples=times(75), deadline=None)
@given(st.lists(named_outcomes(), min_size=1, max_size=6), BLOCKS)
@example([TIE, Case((500, BILLION - 500), 1), Case((BILLION - 1_500, 1_500), 0)], 1 << 21)
@example([Case((BILLION,) + (0,) * 39, 39), Case((0,) * 39 + (BILLION,), 39)], 1 << 21)
def test_kernels_of_named_outcomes_are_their_definitions_rounded_once(cases: list[Case], block: int) -> None:
    """Python's round of a fraction is half-even; the size of a block changes nothing."""
    assert kernel_scores("brier", *cases, block=block) == [round(whole_brier(case) / 2 * PICO) for case in cases]
    assert kernel_scores("brier_sum", *cases, block=block) == [round(whole_brier(case) * PICO) for case in cases]
    assert kernel_scores("brier_mean", *cases, block=block) == [round(mean_brier(case) * PICO) for case in cases]
    assert kernel_scores("ordered_brier", *cases, block=block) == [round(ordered(case) * PICO) for case in cases]
    assert kernel_scores("spherical", *cases, block=block) == [share_of_length(case) for case in cases]


@pytest.mark.parametrize("chance", [578_028_900, 574_800_861, 448_875_908, 472_455_862, 554_971_863])
def test_a_spherical_score_that_floats_round_wrongly_is_exact(chance: int) -> None:
    """The exact score is so near to halfway between two quanta that the nearest float lies on the other side."""
    case = Case((chance, BILLION - chance), 0)
    assert kernel_scores("spherical", case) == [share_of_length(case)]


@pytest.mark.parametrize(("moved", "score"), [((0,), 0), ((0, 1, 2), 2), ((0, 0, 1), 2), ((0, 0, 0, 1, 1), 6)])
def test_a_tie_between_two_quanta_goes_to_the_even_one(moved: tuple[int, ...], score: int) -> None:
    """Five outcomes, 1e-6 moved up over these splits: 0.5, 1.5, 2.5 and 2 (3² + 2²) / 4 = 6.5 of 1e-12."""
    upto = [BILLION - 1_000 * moved.count(split) for split in range(4)]
    case = Case(tuple(after - before for before, after in pairwise([0, *upto, BILLION])), 0)
    assert ordered(case) * PICO % 1 == Fraction(1, 2)
    assert kernel_scores("ordered_brier", case) == [score]


@pytest.mark.parametrize(
    ("name", "forecast", "outcome", "score"),
    [
        ("brier", ("0.8", "0.2"), 0, "0.04"),
        ("brier", ("0.8", "0.2"), 1, "0.64"),
        ("brier", ("0.5", "0.3", "0.2"), 1, "0.39"),
        ("brier_sum", ("0.5", "0.3", "0.2"), 1, "0.78"),
        ("brier_sum", ("0.25", "0.25", "0.5", "0"), 1, "0.875"),
        ("brier_sum", ("0.25", "0.25", "0.3", "0.2"), 1, "0.755"),
        ("brier_sum", ("0", "0.5", "0.25", "0.25"), 1, "0.375"),
        ("brier_sum", ("0.2", "0.3", "0.4", "0.1"), 1, "0.70"),
        ("brier_mean", ("0.5", "0.3", "0.2"), 1, "0.26"),
        ("brier_mean", ("0.25", "0.25", "0.5", "0"), 1, "0.21875"),
        ("brier_mean", ("0.8", "0.2"), 1, "0.64"),
        ("ordered_brier", ("0.25", "0.25", "0.5", "0"), 1, "0.208333"),
        ("ordered_brier", ("0.25", "0.25", "0.3", "0.2"), 1, "0.235"),
        ("ordered_brier", ("0", "0.5", "0.25", "0.25"), 1, "0.208333"),
        ("ordered_brier", ("0.2", "0.3", "0.4", "0.1"), 1, "0.20"),
        ("ordered_brier", ("0.8", "0.2"), 0, "0.08"),
        ("spherical", ("0.5", "0.3", "0.2"), 1, "0.486664"),
        ("error", ("0.5", "0.3", "0.2"), 0, "0"),
        ("error", ("0.5", "0.3", "0.2"), 1, "1"),
        ("error", ("0.4", "0.4", "0.2"), 0, "0"),
        ("error", ("0.4", "0.4", "0.2"), 1, "1"),
        ("error", ("0.2", "0.4", "0.4"), 1, "0"),
        ("error", ("0.5", "0.5"), 1, "1"),
    ],
)
def test_the_worked_examples_of_named_outcomes(name: str, forecast: tuple[str, ...], outcome: int, score: str) -> None:
    """The scores agree with scikit-learn 1.9.1 and with scoringrules 0.10.0 to the digits printed.

    Brier scores: `brier_score_loss`; of ordered outcomes: 2 / (K - 1) x `rps_score`. By hand: errors, and 0.3 / √0.38.
    """
    [exact] = kernel_scores(name, Case(chances(*forecast), outcome))
    assert Decimal(exact).scaleb(-12).quantize(Decimal(score)) == Decimal(score)


@pytest.mark.parametrize(
    ("name", "chance", "score"),
    [
        ("ln", "0.8", "-0.223144"),
        ("ln", "0.2", "-1.609438"),
        ("ln", "0.3", "-1.203973"),
        ("log2", "0.5", "-1"),
        ("log2", "0.125", "-3"),
        ("ln", "1", "0"),
    ],
)
def test_the_worked_examples_of_logarithms(name: str, chance: str, score: str) -> None:
    """Natural logarithms to six decimals, and logarithms base 2 of powers of two, by hand."""
    kernel = KERNELS[name].of_chance
    assert kernel
    [exact] = kernel(np.array([int(Fraction(chance) * CDF)]), CDF).tolist()
    assert Decimal(exact).scaleb(-12).quantize(Decimal(score)) == Decimal(score)


@pytest.mark.parametrize("name", ["ln", "log2"])
@given(st.lists(st.integers(1, CDF), min_size=1), st.sampled_from([CDF, 2 * CDF]))
def test_a_logarithmic_kernel_reads_only_the_probability_of_the_outcome(name: str, k: list[int], unit: int) -> None:
    """The score is in 1e-12, rounded half-even once."""
    kernel = KERNELS[name].of_chance
    assert kernel
    assert kernel(np.array(k), unit).tolist() == [picos(name, Fraction(chance, unit)) for chance in k]


@st.composite
def beliefs(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw two distributions over the same outcomes, none of which is impossible."""
    size = draw(st.integers(2, 6))

    def distribution() -> tuple[int, ...]:
        inner = draw(st.lists(st.integers(1, BILLION - 1), min_size=size - 1, max_size=size - 1, unique=True))
        return tuple(after - before for before, after in pairwise([0, *sorted(inner), BILLION]))

    return distribution(), distribution()


@pytest.mark.parametrize("name", [*NAMED, "ln", "log2"])
@given(beliefs())
def test_the_believed_distribution_has_the_best_expected_score(
    name: str, both: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    """Every kernel is proper: if outcomes are as likely as believed, no other forecast is better on average."""
    kernel = KERNELS[name]

    def expected(numbers: tuple[int, ...]) -> Fraction:
        if kernel.of_chance:
            scores = kernel.of_chance(np.array(numbers), BILLION).tolist()
        else:
            scores = kernel_scores(name, *(Case(numbers, outcome) for outcome in range(len(numbers))))
        return sum((p * score for p, score in zip(shares(both[0]), scores, strict=True)), Fraction(0))

    gain = expected(both[0]) - expected(both[1])
    assert (-gain if kernel.lower_is_better else gain) >= -1  # 1e-12: each of the two may be rounded


@pytest.mark.parametrize("name", NAMED)
def test_a_certain_forecast_scores_best_if_it_comes_true_and_worst_if_not(name: str) -> None:
    """With ordered outcomes only the farthest outcome scores worst; spherical scores run from 0 to 1."""
    sure = Case((BILLION, 0, 0), 0)
    scores = kernel_scores(name, sure, sure._replace(outcome=1), sure._replace(outcome=2))
    expected: dict[str, list[int | Fraction]] = {
        "brier": [0, 1, 1],
        "brier_sum": [0, 2, 2],
        "brier_mean": [0, Fraction(2, 3), Fraction(2, 3)],  # 1 is the score of two outcomes
        "error": [0, 1, 1],
        "ordered_brier": [0, 1, 2],
        "spherical": [1, 0, 0],
    }
    assert scores == [round(score * PICO) for score in expected[name]]


# --- kernels of ranges


@settings(max_examples=times(50), deadline=None)
@given(st.lists(cdfs(), min_size=1, max_size=5), BLOCKS)
def test_the_crps_is_its_integral_rounded_once(cases: list[Case], block: int) -> None:
    """The answer may be at an edge of a bin, at either end, or beyond."""
    assert kernel_scores("crps", *cases, block=block) == [round(integral(case) * PICO) for case in cases]


@settings(max_examples=times(50), deadline=None)
@given(st.lists(cdfs(logarithmic=True), min_size=1, max_size=3), BLOCKS)
def test_the_crps_of_a_logarithmic_range_is_taken_along_its_scale(cases: list[Case], block: int) -> None:
    """The oracle has the answer's place to 60 digits, the kernel to 30."""
    assert kernel_scores("crps", *cases, block=block) == [round(integral(case) * PICO) for case in cases]


UNIT = NumericRange(lower="0", upper="1", bins=1)


@pytest.mark.parametrize(
    ("value", "score"), [("0", "1/3"), ("0.5", "1/12"), ("1", "1/3"), ("0.25", "7/48"), ("-9", "1/3"), ("9", "1/3")]
)
def test_the_crps_of_a_uniform_forecast_has_a_closed_form(value: str, score: str) -> None:
    """It is y³/3 + (1 - y)³/3."""
    assert kernel_scores("crps", Case((0, CDF), 1, UNIT, value)) == [round(Fraction(score) * PICO)]


def test_the_crps_of_a_point_mass_is_its_distance_and_that_of_an_ensemble_agrees_with_libraries() -> None:
    """The ensemble {1, 2, 3} has 0.388889 for 2.5, as scoringrules 0.10.0 and properscoring 0.1 compute it.

    A point mass at 0.55 has 0.15 for 0.7, the absolute error.
    """
    bins = 4_000  # each member lies within one bin, so a result is exact to about a thousandth
    heights = [CDF * sum(edge > 1_000 * member for member in (1, 2, 3)) // 3 for edge in range(bins + 1)]
    span = NumericRange(lower="0", upper="4", bins=bins)
    [ensemble] = kernel_scores("crps", Case(tuple(heights), 1, span, "2.5"))
    assert abs(Fraction(4 * ensemble, PICO) - Fraction("0.388889")) < Fraction(1, 1_000)
    point = tuple(CDF * (edge > 2_200) for edge in range(bins + 1))
    [alone] = kernel_scores("crps", Case(point, 1, NumericRange(lower="0", upper="1", bins=bins), "0.7"))
    assert abs(Fraction(alone, PICO) - Fraction("0.15")) < Fraction(1, 1_000)


def test_the_worst_crps_is_one() -> None:
    """All of the probability is below an open end, and the answer is at the other."""
    span = NumericRange(lower="0", upper="1", bins=2, open_lower=True, open_upper=True)
    assert kernel_scores("crps", Case((CDF, CDF, CDF), 2, span, "1"), Case((0, 0, 0), 1, span, "0")) == [PICO, PICO]


@pytest.mark.parametrize(
    ("heights", "doubled"), [((0, 0, 30_000), 999_997_000_003), ((0, 60_000, 90_000), 999_985_000_069)]
)
def test_a_crps_halfway_between_two_quanta_goes_to_the_even_one(heights: tuple[int, ...], doubled: int) -> None:
    """The ties are at 499,998,500,001.5 and at 499,992,500,034.5."""
    case = Case(heights, 2, NumericRange(lower="0", upper="2", bins=2, open_upper=True), "1")
    assert integral(case) * PICO == Fraction(doubled, 2)
    assert kernel_scores("crps", case) == [round(Fraction(doubled, 2))]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_crps_of_ten_thousand_bins_is_exact(seed: int) -> None:
    """Sums have 83 bits; heights are random, all 1 or all 0; answers have hundreds of decimals."""
    choose, bins = Random(seed), 10_000
    spans = [
        NumericRange(lower="0", upper="3", bins=bins, open_lower=True, open_upper=True, zero_point=zero)
        for zero in (None, "-0.001")
    ]
    answers = ("0", "3", "1.0002", f"2.{'3' * 300}", f"0.{'0' * 200}1", "2.9999999999999999")
    anywhere = tuple(sorted(choose.randrange(CDF + 1) for _ in range(bins + 1)))
    rows = [anywhere, (CDF,) * (bins + 1), (0,) * (bins + 1), (0,) * bins + (CDF,)]
    cases = [Case(row, 1, span, answer) for row in rows for span in spans for answer in answers]
    assert kernel_scores("crps", *cases) == [round(crps_by_sides(case) * PICO) for case in cases]


def crps_by_sides(case: Case) -> Fraction:
    """Return the CRPS from the two sides of the answer; a piece from a to b adds (a² + ab + b²) / 3."""
    assert case.span
    bins, place = case.span.bins, placed(Fraction(case.value), case.span) * case.span.bins
    at = min(int(place), bins - 1)
    low, high = case.numbers[at : at + 2]
    middle = low + (high - low) * (place - at)
    below = sum(a * a + a * b + b * b for a, b in pairwise(case.numbers[: at + 1]))
    above = sum(a * a + a * b + b * b for a, b in pairwise([CDF - height for height in case.numbers[at + 1 :]]))
    left, right = (low, middle, place - at), (CDF - middle, CDF - high, 1 - (place - at))
    ends = sum((a * a + a * b + b * b) * share for a, b, share in (left, right))
    return Fraction(below + above + ends) / (3 * bins * CDF**2)


@pytest.mark.parametrize(("seed", "finest"), [(1, 1), (2, 10**6)])
def test_the_pinball_loss_is_exact_for_the_largest_numbers(finest: int, seed: int) -> None:
    """There are up to 200 levels, quantiles and answers up to 10^13 units, and answers with up to 900 decimals.

    Products have 88 bits.
    """
    choose, cases = Random(seed), []
    for width in (1, 2, 23, 200):
        levels = tuple(sorted(finest * level for level in choose.sample(range(1, BILLION // finest), width)))
        for decimals in (0, 4, 9, 12):
            span = NumericRange(lower="0", upper="1", levels=levels, decimals=decimals)
            for most in (1, 10**4, 10**9, 10**13):
                made = tuple(sorted(choose.choice([-most, most, choose.randint(-most, most)]) for _ in range(width)))
                for rest in ("", "5", "1", "3" * 20, f"{'0' * 899}1"):
                    answer = Decimal(choose.choice([0, most - 1, choose.randrange(most)]))
                    units = f"{answer}.{rest}" if rest else str(answer)
                    with localcontext(prec=2_000):
                        cases.append(Case(made, 1, span, format(Decimal(units).scaleb(-decimals), "f")))
    choose.shuffle(cases)
    expected = [round(twice_mean_loss(case) * quantum(case.span)) for case in cases if case.span]
    assert kernel_scores("pinball", *cases) == expected


@pytest.mark.parametrize(
    ("answer", "score"), [("0.5", 0), ("1.5", 2), ("2.5", 2), ("-0.5", 0), ("-1.5", 2), ("4.5", 4)]
)
def test_a_loss_halfway_between_two_quanta_goes_to_the_even_one(answer: str, score: int) -> None:
    """At the level 0.5 alone the loss is the distance, here in 1e-12, the unit of rounding."""
    span = NumericRange(lower="0", upper="1", open_lower=True, levels=(BILLION // 2,), decimals=12)
    assert kernel_scores("pinball", Case((0,), 1, span, format(Decimal(answer).scaleb(-12), "f"))) == [score]


@settings(max_examples=times(75), deadline=None)
@given(st.lists(quantiles(), min_size=1, max_size=6), BLOCKS)
def test_the_pinball_loss_is_its_definition_rounded_once(cases: list[Case], block: int) -> None:
    """It has four digits more than the question's unit, twelve at most; the answer is not rounded to that unit."""
    expected = [round(twice_mean_loss(case) * 10 ** min(12, case.span.decimals + 4)) for case in cases if case.span]
    assert kernel_scores("pinball", *cases, block=block) == expected


@pytest.mark.parametrize(
    ("levels", "made", "value", "score"),
    [
        ((900,), (10,), "12", "3.6"),
        ((100, 500, 900), (4, 7, 8), "10", "2.6"),
        ((500,), (7,), "10", "3"),
        ((500,), (7,), "7", "0"),
        ((500,), (7,), "7.25", "0.25"),
        ((500,), (7,), "6.75", "0.25"),
        ((250, 750), (2, 6), "4", "1"),
    ],
)
def test_the_worked_examples_of_quantiles(
    levels: tuple[int, ...], made: tuple[int, ...], value: str, score: str
) -> None:
    """By hand: 2 · 0.9 · (12 - 10) = 3.6, and the weighted interval score (0.5 · 3 + 0.1 · 24) / 1.5 = 2.6.

    Source of that score: Bracher, Ray, Gneiting and Reich (2021), doi:10.1371/journal.pcbi.1008618.
    """
    nanos = tuple(level * BILLION // 1_000 for level in levels)
    span = NumericRange(lower="0", upper="20", levels=nanos)
    assert kernel_scores("pinball", Case(made, 1, span, value)) == [int(Fraction(score) * 10**4)]


@settings(max_examples=times(50), deadline=None)
@given(st.lists(points() | points(logarithmic=True), min_size=1, max_size=6))
def test_the_absolute_error_is_the_distance_on_the_range_rounded_once(cases: list[Case]) -> None:
    """A point or answer beyond a bound counts as the bound."""
    assert kernel_scores("absolute", *cases) == [round(distance(case) * PICO) for case in cases]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_absolute_error_is_exact_for_the_largest_numbers(seed: int) -> None:
    """Points go up to 10^13 units; ends and answers have few decimals or hundreds."""
    choose, cases = Random(seed), []
    ends = [("0", "10"), ("-9999999", "9999999"), ("-0.25", "0.5"), ("0", f"0.{'3' * 500}"), ("-7", "0.000000001")]
    for (lower, upper), decimals in product(ends, (0, 2, 6)):
        fields: dict[str, Any] = {"levels": (BILLION // 2,), "decimals": decimals}
        span = NumericRange(lower=lower, upper=upper, open_lower=True, open_upper=True, **fields)
        for answer in (lower, upper, "0.1", "0.333333333333", f"0.{'1' * 300}", "-3.5"):
            most = choose.choice([10, 10**decimals, 10**13])
            cases.append(Case((choose.randint(-most, most),), 1, span, answer))
    assert kernel_scores("absolute", *cases) == [round(distance(case) * PICO) for case in cases]


def test_the_worked_example_of_a_point() -> None:
    """The distance of 0.55 from 0.7 is 0.15, and that of 1/3 from 2/3 is 0.333333333333, not 0.333333333334."""
    span = NumericRange(lower="0", upper="1", levels=(BILLION // 2,), decimals=2)
    assert kernel_scores("absolute", Case((55,), 1, span, "0.7")) == [15 * 10**10]
    thirds = NumericRange(lower="0", upper="3", levels=(BILLION // 2,))
    assert kernel_scores("absolute", Case((1,), 1, thirds, "2")) == [333_333_333_333]


@pytest.mark.parametrize(
    ("point", "value", "score"),
    [(13, "0.9", "0.1"), (9, "1.3", "0.1"), (-4, "0.3", "0.3"), (-4, "1.3", "1"), (13, "1.2", "0"), (5, "0.5", "0")],
)
def test_a_point_or_answer_beyond_an_open_end_counts_as_that_end(point: int, value: str, score: str) -> None:
    """The distance of 1.3 from 0.9 is 0.1, not 0.4.

    Source: Autocast competition of 2022, "Evaluation": the L1 distance is bounded between 0% and 100%.
    """
    levels = (BILLION // 2,)
    span = NumericRange(lower="0", upper="1", open_lower=True, open_upper=True, levels=levels, decimals=1)
    assert kernel_scores("absolute_clipped", Case((point,), 1, span, value)) == [int(Fraction(score) * PICO)]


def test_a_place_on_a_logarithmic_range_is_the_inverse_of_its_scale() -> None:
    """It is ln(1 + (value - min) / (max - min) · (r - 1)) / ln r; from 1 to 100, r is 100 and 10 is halfway.

    Source: Autocast competition of 2022 (github.com/andyzoujm/autocast), numerical questions, `deriv_ratio`.
    """
    span = NumericRange(lower="1", upper="100", zero_point="0")
    assert [fraction_of(value, span) for value in ("0.5", "1", "10", "100", "101")] == [0, 0, Fraction(1, 2), 1, 1]
    r, value = Fraction(100), Fraction(37)
    inverse = logarithm("ln", 1 + (value - 1) / 99 * (r - 1)) / logarithm("ln", r)
    assert round(fraction_of("37", span) * PICO) == round(inverse * PICO)


def test_a_logarithmic_range_far_from_its_zero_keeps_its_digits() -> None:
    """Between bounds that differ in their 31st digit the scale is nearly linear."""
    span = NumericRange(lower="1" + "0" * 30, upper="1" + "0" * 29 + "4", zero_point="0")
    places = [fraction_of("1" + "0" * 29 + str(step), span) for step in (1, 2, 3)]
    assert [round(place * PICO) for place in places] == [PICO // 4, PICO // 2, PICO * 3 // 4]


@pytest.mark.parametrize(("decimals", "units"), [(0, 4), (6, 10), (8, 12), (9, 12), (12, 12)])
def test_quantile_scores_have_four_digits_more_than_quantiles_but_at_most_twelve(decimals: int, units: int) -> None:
    """The unit is 10^-units of the question's own unit."""
    assert quantum(NumericRange(lower="0", upper="1", levels=(1,), decimals=decimals)) == 10**units


def missed(case: Case) -> Fraction:
    """Return 1 unless the most probable outcome, the first of equals, happened."""
    return Fraction(case.numbers.index(max(case.numbers)) != case.outcome)


@given(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=6), min_size=1, max_size=9), st.data())
def test_a_forecast_errs_if_its_first_most_probable_outcome_did_not_happen(
    rows: list[list[int]], data: st.DataObject
) -> None:
    """Many outcomes are equally probable, and blocks have any size."""
    cases = [Case(tuple(row), data.draw(st.integers(0, len(row) - 1))) for row in rows]
    assert kernel_scores("error", *cases, block=data.draw(BLOCKS)) == [int(missed(case) * PICO) for case in cases]


# --- payouts


@pytest.mark.parametrize(
    ("name", "numbers", "payouts", "score"),
    [
        ("brier", ("0.6", "0.4"), ("0.3", "0.7"), "0.09"),  # (0.6 - 0.3)²
        ("brier_sum", ("0.6", "0.4"), ("0.3", "0.7"), "0.18"),
        ("brier_mean", ("0.6", "0.4"), ("0.3", "0.7"), "0.09"),
        ("brier_mean", ("0.5", "0.3", "0.1", "0.1"), ("0.5", "0.5", "0", "0"), "0.015"),  # (0.2² + 2 x 0.1²) / 4
        ("ordered_brier", ("0.6", "0.4"), ("0.3", "0.7"), "0.18"),
        ("brier", ("0.5", "0.3", "0.2"), ("0.5", "0.5", "0"), "0.04"),  # (0² + 0.2² + 0.2²) / 2
        ("ordered_brier", ("0.5", "0.3", "0.2"), ("0.5", "0.5", "0"), "0.04"),  # 2 (0² + 0.2²) / 2
        ("brier_sum", ("0.5", "0.3", "0.2"), ("1/3", "1/3", "1/3"), "0.046666666667"),  # (5² + 1² + 4²) / 900
        ("ordered_brier", ("0.5", "0.3", "0.2"), ("1/3", "1/3", "1/3"), "0.045555555556"),  # (5² + 4²) / 900
        ("brier", (1, 0), ("0.000000001", "0.999999999"), "0.999999998"),  # 1 - 2e-9 + 1e-18
    ],
)
def test_payouts_are_shares_of_an_outcome(
    name: str, numbers: tuple[str | int, ...], payouts: tuple[str, ...], score: str
) -> None:
    """A forecast of the payouts scores 0. Worked out by hand."""
    paid = tuple(map(Fraction, payouts))
    assert kernel_scores(name, Case(chances(*numbers), -1, payouts=paid)) == [int(Decimal(score) * PICO)]
    as_paid = chances(*payouts)
    assert kernel_scores(name, Case(as_paid, -1, payouts=tuple(shares(as_paid)))) == [0]


SPLITS = st.integers(2, 6).flatmap(
    lambda size: st.tuples(*[st.lists(st.integers(0, 9), min_size=size, max_size=size)] * 2)
)


@given(st.lists(SPLITS, min_size=1, max_size=6), st.data())
def test_payouts_among_other_answers_score_as_defined(
    rows: list[tuple[list[int], list[int]]], data: st.DataObject
) -> None:
    """Blocks have any size, and questions any number of outcomes; an answer is an outcome or payouts, exact or not."""
    cases = []
    for weights, paid in rows:
        numbers = tuple(apportion(BILLION, [each + 1 for each in weights]))
        unit = data.draw(st.sampled_from([BILLION, sum(paid) + len(paid)]))
        payouts = tuple(Fraction(each, unit) for each in apportion(unit, [each + 1 for each in paid]))
        outcome = data.draw(st.integers(-1, len(numbers) - 1))
        cases.append(Case(numbers, outcome, payouts=payouts if outcome < 0 else ()))
    block = data.draw(BLOCKS)
    assert kernel_scores("brier", *cases, block=block) == [round(whole_brier(case) / 2 * PICO) for case in cases]
    assert kernel_scores("brier_sum", *cases, block=block) == [round(whole_brier(case) * PICO) for case in cases]
    assert kernel_scores("brier_mean", *cases, block=block) == [round(mean_brier(case) * PICO) for case in cases]
    assert kernel_scores("ordered_brier", *cases, block=block) == [round(ordered(case) * PICO) for case in cases]


@pytest.mark.parametrize("name", ["brier", "brier_sum", "brier_mean", "ordered_brier"])
def test_the_uniform_distribution_of_payouts_scores_as_a_uniform_forecast_does(name: str) -> None:
    """Of four outcomes, whose probabilities are exact."""
    paid = tuple(map(Fraction, ("1/6", "0.2", "0.3", "1/3")))
    [even] = kernel_scores(name, Case(chances(*["0.25"] * 4), -1, payouts=paid))
    assert uniform(name, Uniform(4, -1, (1, 4), payouts=paid)) == even


# --- all kernels


@given(st.integers(2, 40), st.data())
def test_the_uniform_distribution_scores_as_a_uniform_forecast_does(size: int, data: st.DataObject) -> None:
    """The definitions with 1 / K for each outcome; for the halved Brier score, (1 - 1/K) / 2."""
    outcome = data.draw(st.integers(0, size - 1))
    missed = [Fraction(place, size) - (place > outcome) for place in range(1, size)]
    scores = {name: uniform(name, Uniform(size, outcome, (1, size))) for name in (*NAMED, "ln", "log2")}
    assert scores["brier"] == round((1 - Fraction(1, size)) / 2 * PICO)
    assert scores["brier_sum"] == round((1 - Fraction(1, size)) * PICO)
    assert scores["brier_mean"] == round((1 - Fraction(1, size)) / size * PICO)
    assert scores["ordered_brier"] == round(2 * sum(miss**2 for miss in missed) / (size - 1) * PICO)
    assert scores["error"] == (outcome != 0) * PICO
    assert scores["spherical"] == int((EXACT.divide(1, EXACT.sqrt(Decimal(size))) * PICO).to_integral_value())
    assert [scores["ln"], scores["log2"]] == [picos(name, Fraction(1, size)) for name in ("ln", "log2")]


@pytest.mark.parametrize("value", ["-1", "0", "0.123456789012", "1", "1.5", "2", "3", "4"])
def test_the_uniform_distribution_of_a_range_scores_as_a_straight_cdf_does(value: str) -> None:
    """The place of the answer is exact, also if it is a third."""
    span = NumericRange(lower="0", upper="3", bins=1, open_lower=True, open_upper=True)
    [straight] = kernel_scores("crps", Case((0, CDF), 1, span, value))
    assert uniform("crps", Uniform(200, 1, (1, 200), span, value)) == straight


def test_a_crps_or_a_measure_without_a_range_is_refused() -> None:
    """Neither has a meaning for named outcomes."""
    with pytest.raises(ValueError, match="range"):
        uniform("crps", Uniform(2, 0, (1, 2)))
    with pytest.raises(ValueError, match="range"):
        OF_QUESTION.in_one(None)
    with pytest.raises(ValueError, match="range"):
        OF_SQUARES.in_one(None)


def incomplete(rows: dict[str, Kernel], by_field: dict[str, set[str]]) -> Iterator[str]:
    """Yield the faults of the table of kernels; by_field: the kernels that each field of a rule set can name."""
    every = set().union(*by_field.values())
    yield from (f"{name} has no row in KERNELS" for name in sorted(every - set(rows)))
    yield from (f"no rule set can name {name}" for name in sorted(set(rows) - every))
    for name in sorted(every & set(rows)):
        yield from (f"{name}: {what}" for what, is_wrong in _faults(name, rows[name], by_field).items() if is_wrong)


def _faults(name: str, row: Kernel, by_field: dict[str, set[str]]) -> dict[str, bool]:
    """Return all possible faults of a row, and whether it has them."""
    fields = {field for field, names in by_field.items() if name in names}
    return {
        "no words": not row.words,
        "no source that can be looked up": not row.source or "seed" in row.source or ".md" in row.source,
        "no words for the unit": not row.unit.words,
        "other forms than those of the fields that name it": {FIELDS[form] for form in row.takes} != fields,
        "another direction than in Gain of ledger/model/rules.py": row.lower_is_better == (name in GAINS),
        "a worst score, or none, unlike Unbounded": row.lower_is_better and (row.worst is None) != (name in UNBOUNDED),
        "the question's unit, or another, unlike Unbounded": (row.unit in UNITS.values()) != (name in UNBOUNDED),
        "the unit of another kernel": row.unit is not UNITS.get(name, row.unit),
        "a point, or none, unlike Absolute": (row.takes == ("point",)) != (name in ABSOLUTES),
        "a logarithm that does not read a chance": name in LOGARITHMS and row.of_chance is None,
        "not one function": (row.of_chance is None) == (row.of_numbers is None),
        "quantiles alone have no uniform distribution": (row.uniform is None) != (fields == {"quantile_kernel"}),
    }


def named_kernels() -> dict[str, set[str]]:
    """Return the kernels that each field of a rule set can name."""
    hints = get_type_hints(RuleSet)
    return {field: set(get_args(hints[field])) - {"none"} for field in dict.fromkeys(FIELDS.values())}


def test_every_kernel_that_a_rule_set_can_name_has_a_complete_row() -> None:
    """Each name has a row, each row a name, and no row lacks a part or contradicts the decider."""
    assert list(incomplete(KERNELS, named_kernels())) == []


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        ("brier", {"words": ""}, "no words"),
        ("brier", {"source": ""}, "no source"),
        ("brier", {"source": "seed 1"}, "no source"),
        ("brier", {"unit": Unit("", KERNELS["brier"].unit.in_one)}, "no words for the unit"),
        ("brier", {"takes": ("chances", "cdf")}, "other forms"),
        ("brier", {"takes": ()}, "other forms"),
        ("brier", {"lower_is_better": False}, "another direction"),
        ("spherical", {"lower_is_better": True}, "another direction"),
        ("brier", {"worst": None}, "a worst score"),
        ("pinball", {"worst": 1}, "a worst score"),
        ("brier", {"unit": OF_QUESTION}, "the question's unit"),
        ("squared", {"unit": OF_QUESTION}, "the unit of another"),
        ("absolute", {"takes": ("quantiles",)}, "a point"),
        ("ln", {"of_chance": None, "of_numbers": KERNELS["brier"].of_numbers}, "a logarithm"),
        ("brier", {"of_numbers": None}, "not one function"),
        ("brier", {"of_chance": KERNELS["ln"].of_chance}, "not one function"),
        ("brier", {"uniform": None}, "quantiles alone"),
    ],
)
def test_a_row_that_lacks_a_part_is_found(name: str, change: dict[str, Any], what: str) -> None:
    """One part at a time is removed or changed."""
    faults = list(incomplete(KERNELS | {name: KERNELS[name]._replace(**change)}, named_kernels()))
    assert len(faults) == 1
    assert faults[0].startswith(f"{name}: {what}")


def test_a_name_without_a_row_and_a_row_without_a_name_are_found() -> None:
    """Each of them alone is half of a kernel."""
    by_field = named_kernels()
    more = by_field | {"kernel": by_field["kernel"] | {"missed"}}
    assert list(incomplete(KERNELS, more)) == ["missed has no row in KERNELS"]
    assert list(incomplete(KERNELS | {"missed": KERNELS["error"]}, by_field)) == ["no rule set can name missed"]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_a_kernel_returns_no_scores_for_no_forecasts(kernel: Kernel) -> None:
    """Empty columns are allowed."""
    if kernel.of_numbers:
        assert kernel.of_numbers(numbers_of([])).tolist() == []
    if kernel.of_chance:
        assert kernel.of_chance(np.zeros(0, np.int64), BILLION).tolist() == []


@given(st.lists(st.integers(1, 5), max_size=12), st.integers(1, 9))
def test_blocks_hold_every_forecast_once_in_order_and_are_as_long_as_allowed(widths: list[int], most: int) -> None:
    """A block has at most the given count of numbers, or one forecast."""
    cases = [Case((1,) * width, number) for number, width in enumerate(widths)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(range_kernels, "_BLOCK", most)
        blocks = list(numbers_of(cases).blocks())
    assert [number for block in blocks for number in block.outcome.tolist()] == list(range(len(widths)))
    for block, following in pairwise([*blocks, None]):
        assert block
        assert int(block.width.sum()) <= most or len(block.width) == 1
        assert following is None or int(block.width.sum()) + int(following.width[0]) > most


def test_the_decimal_context_of_a_program_changes_nothing() -> None:
    """Neither a low precision nor a small range of exponents has an effect."""
    bins = NumericRange(lower="1", upper="1000", zero_point="0", bins=2)
    median = NumericRange(lower="1", upper="1000", zero_point="0", levels=(500_000_000,), decimals=6)
    ranged = [Case((123_456_789,), 1, median, "7"), Case((0, CDF // 3, CDF), 1, bins, "31")]
    names = ("absolute", "crps")
    before = [kernel_scores(name, case) for name, case in zip(names, ranged, strict=True)]
    fraction_of.cache_clear()
    with localcontext(Context(prec=2, Emin=-3, Emax=3)):
        assert [kernel_scores(name, case) for name, case in zip(names, ranged, strict=True)] == before


@pytest.mark.parametrize("seed", range(times(8)))
def test_many_forecasts_are_scored_as_each_alone(seed: int) -> None:
    """They have two to forty outcomes and are read in blocks of a thousand numbers."""
    choose = Random(seed)
    cases = []
    for _ in range(500):
        cut = sorted(choose.randrange(BILLION + 1) for _ in range(choose.randrange(1, 40)))
        numbers = tuple(after - before for before, after in pairwise([0, *cut, BILLION]))
        cases.append(Case(numbers, choose.randrange(len(numbers))))
    slow: dict[str, Callable[[Case], Fraction]] = {"brier_sum": whole_brier, "ordered_brier": ordered, "error": missed}
    for name, definition in slow.items():
        assert kernel_scores(name, *cases, block=1_000) == [round(definition(case) * PICO) for case in cases]
