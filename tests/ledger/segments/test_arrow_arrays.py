"""Arrays of pyarrow from Python's lists and NumPy's arrays: the same values, and null where one is missing."""

from fractions import Fraction

import numpy as np
import pytest

from forecast_ledger.ledger.segments import arrow_arrays
from forecast_ledger.ledger.segments.arrow_arrays import (
    array_of_bytes,
    array_of_decimals,
    array_of_integers,
    array_of_lists,
    array_of_texts,
    fixed_texts,
    log_order,
    text_array,
)

pyarrow = pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    "texts", [[], ["ab", "", "c"], ["ab", None, "", "雨", "\U0001f327"], [None] * 9, ["a\0b", *[None] * 8, "d"]]
)
def test_texts_are_as_they_were(monkeypatch: pytest.MonkeyPatch, texts: list[str | None]) -> None:
    """Of one byte a character or of more, empty or missing; and if they are too long for the offsets of 32 bits."""
    for most in (2**31 - 1, 1):
        monkeypatch.setattr(arrow_arrays, "MOST_BYTES", most)
        array = array_of_texts(texts)
        array.validate(full=True)
        assert (array.type, array.to_pylist()) == (pyarrow.string(), texts)


def test_texts_beyond_the_offsets_of_an_array_are_refused() -> None:
    """Their sizes are added up in 64 bits, whatever their type: no array has offsets that have wrapped."""
    for size, kind in ((2**30, np.int32), (2**31, np.int64)):
        with pytest.raises(OverflowError, match="are more than the 2,147,483,647 bytes or items of one array"):
            text_array(np.array([size, size], kind), b"")


@pytest.mark.parametrize("numbers", [[], [3, -1], [None, 2**63 - 1, -(2**63), 0, None]])
def test_integers_are_as_they_were(numbers: list[int | None]) -> None:
    """Also those of an array whose values do not follow one another in memory."""
    assert array_of_integers(numbers, pyarrow.int64()).to_pylist() == numbers
    spread = np.array([[1, 2], [3, 4], [5, 6]])[:, 1]
    assert array_of_integers(spread, pyarrow.int64()).to_pylist() == [2, 4, 6]


def test_bytes_have_the_length_of_their_type() -> None:
    """No value takes bytes of the next one."""
    given: list[list[bytes | None]] = [[], [b"ab", None, b"\0\xff"]]
    for values in given:
        array = array_of_bytes(values, 2)
        array.validate(full=True)
        assert (array.type, array.to_pylist()) == (pyarrow.binary(2), values)
    for wrong in ([b"a", b"bcd"], [b""], [b"abc"]):
        with pytest.raises(ValueError, match="a value has not 2 bytes"):
            array_of_bytes(wrong, 2)


def test_lists_are_as_they_were() -> None:
    """Without items, missing, or with items that are missing, if they may be."""
    whole = pyarrow.list_(pyarrow.field("item", pyarrow.int64(), nullable=False))
    given: list[list[list[int] | None]] = [
        [],
        [[]],
        [[1, 2**63 - 1], [], [3]],
        [None, [-(2**63)], None, []],
        [None] * 9,
    ]
    for lists in given:
        array = array_of_lists(lists, whole)
        array.validate(full=True)
        assert (array.type, array.to_pylist()) == (whole, lists)
    lacking = [[None, 5], None, [None]]
    assert array_of_lists(lacking, pyarrow.list_(pyarrow.int64())).to_pylist() == lacking
    with pytest.raises(OverflowError):
        array_of_lists([[2**63]], whole)


def test_decimals_have_as_many_digits_as_their_type() -> None:
    """Those of 64 bits are extended by their sign; of the others each is written by itself."""
    kind = pyarrow.decimal128(38, 9)
    for numbers in ([0, -1, 2**63 - 1, -(2**63)], [None, 2**64, -(2**64), 10**38 - 1, 1 - 10**38]):
        array = array_of_decimals(numbers, kind)
        array.validate(full=True)
        assert [each and Fraction(each) * 10**9 for each in array.to_pylist()] == numbers
    for number in (10**38, -(10**38), 10**39, 2**127):
        with pytest.raises(OverflowError):
            array_of_decimals([number], kind)


@pytest.mark.parametrize(
    ("position", "order"),
    [
        ([], []),
        ([7], [0]),
        ([12, 10, 11], [1, 2, 0]),
        ([12, 9, 11], [1, 2, 0]),
        ([5, 3, 3, 6], [1, 2, 0, 3]),
        ([2**63 - 1, -(2**63)], [1, 0]),
    ],
)
def test_log_positions_come_in_order(position: list[int], order: list[int]) -> None:
    """Also with one missing, and with one missing and another twice, as in rows that were changed."""
    assert log_order(np.array(position, np.int64)).tolist() == order


def test_texts_of_fixed_length_are_the_texts() -> None:
    """Also in a part of an array, of an array of none, and of bytes that are not ASCII."""
    array = pyarrow.array(["before", "a", "", "\N{SNOWMAN}", "abc"])
    for part in (array, array.slice(1), array.slice(1, 2), array.slice(5)):
        assert [text.decode() for text in fixed_texts(part, 6).tolist()] == part.to_pylist()
    with pytest.raises(ValueError, match="6 bytes"):
        fixed_texts(array, 5)
