"""Forecasts by samples: their CRPS and the squared error of a single one, against definitions in fractions."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.values import LARGEST_MEASURE
from forecast_ledger.ledger.model.commands import AnyCommand, Range
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.scores.range_kernels import quantum, squares
from forecast_ledger.projections.scores.reference_terms import uniform_numbers
from forecast_ledger.replay.reading.descriptions import describe_score
from tests.projections.scores.test_kernels import BLOCKS, Case, kernel_scores
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, entry, forecast, opened, resolution

FAR = st.integers(-LARGEST_MEASURE, LARGEST_MEASURE)
NEAR = st.integers(-9, 9)
CRPS = RuleSet(name="x", quantile_kernel="pinball", period="covered", total="mean")


def crps(samples: list[int], answer: Fraction, decimals: int) -> Fraction:
    """1 / n x Σ |x_i - y| - 1 / (2 n²) x Σ Σ |x_i - x_j|: Gneiting and Raftery (2007), section 4.2."""
    made, n = [Fraction(each, 10**decimals) for each in samples], len(samples)
    spread = sum((abs(one - other) for one, other in product(made, made)), Fraction(0))
    return sum((abs(each - answer) for each in made), Fraction(0)) / n - spread / (2 * n * n)


@st.composite
def sampled(draw: st.DrawFn) -> Case:
    """A forecast of one to seven samples, near or far, often equal, and an answer that may lie between two units."""
    decimals = draw(st.integers(0, 12))
    samples = sorted(draw(st.lists(draw(st.sampled_from([NEAR, FAR])), min_size=1, max_size=7)))
    answer = Fraction(draw(NEAR | FAR), 10**decimals)
    answer += Fraction(draw(st.integers(-9, 9)), 10 ** (decimals + 2))
    span = NumericRange(lower="0", upper="1", open_lower=True, open_upper=True, decimals=decimals, samples=len(samples))
    return Case(tuple(samples), 1, span, str(answer))


@settings(max_examples=times(200), deadline=None)
@given(cases=st.lists(sampled(), min_size=1, max_size=6), block=BLOCKS)
@example([Case((3, 6), 1, NumericRange(lower="0", upper="9", samples=2), "5")], 1)
def test_the_loss_of_samples_is_their_crps(cases: list[Case], block: int) -> None:
    """Rounded half-even once, to four digits beyond the unit, whatever the number of samples of the others."""
    expected = []
    for case in cases:
        assert case.span is not None
        exact = crps([*case.numbers], Fraction(case.value), case.span.decimals) * quantum(case.span)
        expected.append(round(exact))
    assert kernel_scores("pinball", *cases, block=block) == expected


@settings(max_examples=times(200), deadline=None)
@given(
    point=NEAR | FAR,
    answer=NEAR | FAR,
    beyond=st.integers(0, 99),
    decimals=st.integers(5, 12),
    lower=st.sampled_from(["0", "-3"]),
)
def test_the_squared_error_is_rounded_once(point: int, answer: int, beyond: int, decimals: int, lower: str) -> None:
    """(x - y)² in the finest power of ten with which 64 bits hold the largest."""
    span = NumericRange(lower=lower, upper="9", open_lower=True, open_upper=True, decimals=decimals, samples=1)
    y = Fraction(answer, 10**decimals) + Fraction(beyond, 10 ** (decimals + 2))
    expected = round((Fraction(point, 10**decimals) - y) ** 2 * squares(span))
    assert kernel_scores("squared", Case((point,), 1, span, str(y))) == [expected]


@pytest.mark.parametrize(
    ("fields", "unit"),
    [
        ({"lower": "0", "upper": "100", "decimals": 4}, 10**12),  # 10^4 x 10^12 = 10^16
        ({"lower": "0", "upper": "1000", "decimals": 9}, 10**11),  # 10^6 x 10^11 = 10^17; 10^18 is more than 4 x 10^17
        ({"lower": "0", "upper": "1", "open_upper": True, "decimals": 6}, 10**3),  # 10^14 x 10^3
        ({"lower": "0", "upper": "1", "open_lower": True, "open_upper": True, "decimals": 6}, 10**3),  # 4 x 10^17
        ({"lower": "0", "upper": "500000000", "decimals": 0}, 1),  # 2.5 x 10^17
    ],
)
def test_the_unit_of_a_squared_error_is_the_finest_that_64_bits_hold(fields: dict[str, object], unit: int) -> None:
    """The largest product is 4 x 10^17, as that of other losses."""
    assert squares(NumericRange(**fields, samples=1)) == unit  # type: ignore[arg-type]


def test_a_contest_of_samples_scores_as_worked_out_by_hand() -> None:
    """Samples 1, 2 and 6 of the answer 3: (2 + 1 + 3) / 3 - (1 + 5 + 4) x 2 / 18 = 8 / 9; in any order, and by a bot.

    Its peer, who gave 3 three times, scores 0.
    """
    asked = opened("depth", kind="numeric", range=Range(lower=0, upper=9, samples=3, decimals=2))
    log: list[AnyCommand] = [
        asked,
        contest(rules=CRPS),
        entry(question="depth"),
        forecast("depth", samples=(6, 1, 2)),
        forecast("depth", participant="bob", samples=("3", "3.00", 3)),
        resolution("depth", value=3),
    ]
    scores = {(row["participant"], row["score"]) for row in oracle.projected(*log).table("scores").rows()}
    assert scores == {("ada", "0.888889000"), ("bob", "0.000000000")}, "rounded to 1e-6"
    assert "which is the CRPS of samples" in describe_score(CRPS, "pinball")


def test_samples_of_the_uniform_distribution_are_in_the_middle_of_equal_shares() -> None:
    """Four of 0 to 8 are 1, 3, 5 and 7; a single one is the mean."""
    span = NumericRange(lower="0", upper="8", samples=4, decimals=1)
    assert uniform_numbers(span, 50_000) == [10, 30, 50, 70]
    assert uniform_numbers(NumericRange(lower="0", upper="8", samples=1, decimals=1), 0) == [40]
