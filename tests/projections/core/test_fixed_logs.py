"""Logarithms in fixed point, against a series of integers and 60 digits."""

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from hashlib import sha256
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.fixed_logs import ln_many, log2_many, log10_many
from forecast_ledger.projections.core.powers import QUANTUM, ln_fixed, log2_fixed, log10_fixed
from tests.support.oracle import EXACT

PPM = 10**6
BITS = 128  # binary places of the recurrence
Log = Callable[[Int64Array, int], Int64Array]
Exactly = Callable[[int, int], int]
EACH = pytest.mark.parametrize(
    ("many", "one"), [(ln_many, ln_fixed), (log2_many, log2_fixed), (log10_many, log10_fixed)]
)
ESTIMATES: dict[Exactly, Callable[..., NDArray[Any]]] = {ln_fixed: np.log, log2_fixed: np.log2, log10_fixed: np.log10}
NAMES: dict[Exactly, str] = {ln_fixed: "log", log2_fixed: "log2", log10_fixed: "log10"}
BASES: dict[Exactly, int] = {log2_fixed: 2, log10_fixed: 10}


@cache
def table() -> tuple[int, ...]:
    """ln(k / 10^6) for k = 1 … 999,999 in 2^-128, by ln(k + 1) = ln k + 2 · atanh(1 / (2k + 1))."""
    steps, running = [0], 0
    for k in range(1, PPM):
        odd = 2 * k + 1
        power, square, divisor = (2 << BITS) // odd, odd * odd, 1
        while power:
            running += power // divisor
            power //= square
            divisor += 2
        steps.append(running)
    return tuple(step - steps[-1] for step in steps[:-1])


def rounded(quantum: int) -> Int64Array:
    """The table in 1 / quantum; no value lies nearer to a tie than the recurrence errs."""
    return int64_array([half_even(value * quantum, 1 << BITS) for value in table()])


def digest(values: Int64Array) -> str:
    """The first twelve digits of the SHA-256 of the little-endian table."""
    return sha256(values.astype("<i8").tobytes()).hexdigest()[:12]


def points(unit: int, count: int, seed: int) -> Int64Array:
    """Random k below the unit, of every size."""
    choose = Random(seed)
    top = unit.bit_length() - 1
    return int64_array([1, unit, *(min(choose.getrandbits(choose.randint(1, top)) or 1, unit) for _ in range(count))])


def nearest_to_ties(unit: int, count: int, logarithm: Callable[..., NDArray[Any]]) -> Int64Array:
    """Of 200,000 random k, those whose logarithm, to 64 bits where the machine has them, is nearest to a rounding tie.

    Also k = unit - odd · unit / 10^6: ln(1 - odd · 10^-6) is half a quantum, less some 3e-7 · odd^3 quanta.
    """
    near_one = unit - np.arange(1, 100, 2) * (unit // PPM)
    k = np.random.default_rng(5).integers(1, unit, 200_000)
    along = logarithm(k.astype(np.longdouble) / np.longdouble(unit)) * np.longdouble(QUANTUM)
    return np.append(near_one, k[np.argsort(np.abs(along - np.floor(along) - 0.5))[:count]])


def noisy(logarithm: Callable[..., NDArray[np.float64]], seed: int) -> Callable[..., NDArray[np.float64]]:
    """A float logarithm that errs by up to four units in the last place."""
    noise = np.random.default_rng(seed)

    def perturbed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        right = logarithm(values)
        return right + noise.integers(-4, 5, len(right)) * np.spacing(right)

    return perturbed


def test_every_logarithm_of_a_millionth_is_the_published_one() -> None:
    """All ln(k / 10^6), k = 1 … 999,999, in 1e-12: by a digest of the table, and by an integer series."""
    logarithms = ln_many(np.arange(1, PPM), PPM)
    assert digest(logarithms) == "210df61b8d5c"
    assert np.array_equal(logarithms, rounded(QUANTUM))


def test_the_table_in_billionths_is_the_published_one() -> None:
    """The same in 1e-9, where the scalar is compared on every 400th point and on both ends."""
    billionths = rounded(10**9)
    assert digest(billionths) == "b9c80c440b4b"
    sample = [1, 2, 3, *range(400, PPM, 400), PPM - 2, PPM - 1]
    assert [ln_fixed(k, PPM, 10**9) for k in sample] == billionths[np.array(sample) - 1].tolist()


@EACH
@pytest.mark.parametrize("unit", [10**9, 10**10, 2 * 10**10])
def test_many_logarithms_are_those_of_one(many: Log, one: Exactly, unit: int) -> None:
    """The array function equals the scalar one on random points of every size, the smallest and the largest."""
    k = points(unit, 3_000, seed=unit)
    assert many(k, unit).tolist() == [one(number, unit) for number in k.tolist()]


@EACH
@pytest.mark.parametrize("unit", [10**9, 10**10])
def test_logarithms_near_a_rounding_tie_are_rounded_the_right_way(many: Log, one: Exactly, unit: int) -> None:
    """A float cannot decide these roundings; 60 digits can."""
    k = nearest_to_ties(unit, 300, ESTIMATES[one]).tolist()
    scale = EXACT.divide(QUANTUM, EXACT.ln(Decimal(BASES[one])) if one in BASES else 1)
    logarithms = [EXACT.multiply(EXACT.ln(EXACT.divide(number, unit)), scale) for number in k]
    slow = [int(EXACT.quantize(number, Decimal(1))) for number in logarithms]
    assert many(int64_array(k), unit).tolist() == slow == [one(number, unit) for number in k]


@EACH
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_less_exact_float_logarithm_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, many: Log, one: Exactly, seed: int
) -> None:
    """A platform's logarithm may err by four units in the last place, the most that any vendor documents."""
    k = np.append(points(10**10, 20_000, seed), nearest_to_ties(10**10, 100, np.log))
    right = many(k, 10**10)
    name = NAMES[one]
    monkeypatch.setattr(np, name, noisy(getattr(np, name), seed))
    assert np.array_equal(many(k, 10**10), right)


def test_no_logarithms_of_no_numbers() -> None:
    """An empty array gives an empty array."""
    assert ln_many(int64_array([]), PPM).tolist() == log2_many(int64_array([]), PPM).tolist() == []
