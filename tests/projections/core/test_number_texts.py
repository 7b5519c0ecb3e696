"""The texts of many numbers at once: those of each alone, digit by digit."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT
from forecast_ledger.projections.core import number_texts
from forecast_ledger.projections.core.number_texts import (
    decimal_characters,
    instant_characters,
    integer_characters,
    lines,
    text_characters,
    wide_characters,
)
from forecast_ledger.projections.core.wide_int import WideInt
from tests.support.effort import times

SMALL, LARGE = st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1)


@given(
    st.lists(SMALL | LARGE | st.builds(lambda digits, zeros: digits * 10**zeros, SMALL, st.integers(0, 17))), st.data()
)
@example([0], None)
@settings(max_examples=times(100), deadline=None)
def test_decimals_have_the_digits_that_they_need(numbers: list[int], data: st.DataObject | None) -> None:
    """Their value is exact, and zeros are only before the point and, up to the least number of decimals, at the end."""
    places = data.draw(st.integers(1, 16)) if data else 6
    least = data.draw(st.integers(0, places)) if data else 0
    texts = lines(decimal_characters(np.array(numbers, np.int64), places, least))
    assert [*map(Fraction, texts)] == [Fraction(number, 10**places) for number in numbers]
    for text in texts:
        whole, point, decimals = text.removeprefix("-").partition(".")
        assert whole == str(int(whole))
        assert least <= len(decimals) <= places
        assert len(decimals) == least or decimals[-1] != "0"
        assert bool(point) == bool(decimals)


@given(st.lists(st.integers(FIRST_INSTANT, LAST_INSTANT) | SMALL.map(lambda seconds: seconds * 10**6)))
@example([FIRST_INSTANT, LAST_INSTANT, 0, 1, -1, LAST_INSTANT])
@settings(max_examples=times(50), deadline=None)
def test_instants_are_those_of_the_calendar(instants: list[int]) -> None:
    """As Python's datetime writes them, with six decimals unless they are whole seconds."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    expected = [(epoch + timedelta(microseconds=each)).isoformat().replace("+00:00", "Z") for each in instants]
    assert lines(instant_characters(np.array(instants, np.int64))) == expected


@pytest.mark.parametrize("outside", [FIRST_INSTANT - 1, LAST_INSTANT + 1])
def test_an_instant_outside_the_calendar_is_not_written(outside: int) -> None:
    """No other instant is written either."""
    with pytest.raises(OverflowError):
        instant_characters(np.array([0, outside]))


@given(st.lists(SMALL | LARGE))
@example([0, -(2**63), 2**63 - 1, 9_999, 10_000, -10])
@settings(max_examples=times(50), deadline=None)
def test_integers_are_written_as_python_writes_them(numbers: list[int]) -> None:
    """Without leading zeros; 0 has one digit."""
    assert lines(integer_characters(np.array(numbers, np.int64))) == [*map(str, numbers)]


@given(st.lists(SMALL | st.integers(-(2**130), 2**130)))
@example([0, -1, 10**8, -(10**8), 10**16 - 1, 2**72, -(2**130)])
@example([2**72, 2**72, 2**72, 5, 5, 2**72 + 1, 2**72 + 1])
@settings(max_examples=times(50), deadline=None)
def test_wide_integers_are_written_as_python_writes_them(numbers: list[int]) -> None:
    """Also those whose words have carries that are not propagated."""
    wide = WideInt.from_integers(numbers)
    above = WideInt(wide.low - (1 << 36), wide.middle + 1, wide.high)
    assert lines(wide_characters(wide)) == lines(wide_characters(above)) == [*map(str, numbers)]


def test_texts_are_rows_of_characters_if_these_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows have as many bytes as the longest text: 雨 has three."""
    for most, expected in ((9, ["a", "雨", "bc"]), (8, None)):
        monkeypatch.setattr(number_texts, "MOST_CHARACTERS", most)
        characters = text_characters(["a", "雨", "bc"])
        assert (None if characters is None else lines(characters)) == expected
