"""Tests of the numbers of forecasts, read for many at once."""

import random
from array import array
from decimal import Decimal
from fractions import Fraction

import pytest

from forecast_ledger.ledger.batching import measures
from forecast_ledger.ledger.batching.measures import Measures, read_measures, takes
from forecast_ledger.ledger.model.canonical import numbers_text
from forecast_ledger.ledger.model.forms import NumericRange


def random_decimal(dice: random.Random) -> Decimal:
    """A decimal of 1 to 25 digits, mostly few, that is up to 1e12 times as large or as small."""
    digits = dice.choice([1, 2, 5, 5, 9, 17, 18, 25])
    return Decimal(dice.randrange(-(10**digits), 10**digits)).scaleb(dice.randrange(-12, 13) // dice.choice([1, 2, 9]))


@pytest.mark.parametrize("many", [1, 10**6])
def test_numbers_that_are_read_are_those_that_were_written(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As fractions. Those of up to 18 digits in the finest unit of a forecast are read, if they do not decrease."""
    monkeypatch.setattr(measures, "_MANY", many)
    dice, taken, too_long = random.Random(5), 0, 0
    given = [[random_decimal(dice) for _ in range(dice.choice([1, 2, 3]))] for _ in range(3_000)]
    given = [sorted(each) if dice.random() < 0.9 else each for each in given]
    text = numbers_text("quantiles", [number for each in given for number in each])
    for numbers, (own, read) in zip(given, read_measures("quantiles", text, given, least=2), strict=True):
        assert own.encode() == numbers_text("quantiles", numbers)
        exponents = [int(number.normalize().as_tuple().exponent) for number in numbers]
        decimals = max(2, -min(exponents))
        units = [Fraction(number) * 10**decimals for number in numbers]
        if read is not None:
            assert (read.decimals, [*read.units], units) == (decimals, units, sorted(units))
            taken += 1
        elif units == sorted(units) and "E" not in own:
            assert max(len(f"{abs(number):.{decimals}f}") for number in numbers) > 18 + len(".")
            too_long += 1
    assert taken > 1_000
    assert too_long > 100 or many > 1


def test_numbers_that_all_have_decimals_are_read_together() -> None:
    """As are most; then no number has to be found for a point."""
    numbers = [Decimal("-1.25"), Decimal("0.5")]
    read = read_measures("quantiles", numbers_text("quantiles", numbers * 64), [numbers] * 64)
    assert [*read] == [('["-1.25","0.5"]', Measures("quantiles", 2, array("q", [-125, 50])))] * 64


def test_numbers_at_a_bound_between_two_units_are_left_to_the_long_way() -> None:
    """The bounds, 0.3 and 1.7, are 0 and 2 in whole units: 0 and 2 would be outside, and 1 is inside."""
    taken = takes(NumericRange(lower="0.3", upper="1.7", levels=(1, 2), decimals=0))
    assert [taken.units(Measures("quantiles", 0, units)) for units in ([0, 1], [1, 2], [1, 1])] == [None, None, [1, 1]]
