"""The texts of many instants or decimals at once: a matrix has a row of characters for each, and becomes one text."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.values import DAY, FIRST_INSTANT, LAST_INSTANT
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, run_lengths, run_starts
from forecast_ledger.projections.core.wide_int import WORD_BITS, WideInt

_SECOND = 10**6  # µs
_INSTANT = np.dtype(  # 2026-03-01T00:00:00.000000Z; one item for as many digits as one look-up gives
    [("date", "S10"), ("T", "S1"), ("time", "S8"), ("point", "S1"), ("1e-4", "S4"), ("1e-6", "S2"), ("Z", "S1")]
)
_FRACTION = slice(19, 26)  # columns of an instant: the point and what follows
_GROUP = 4  # digits of a decimal that one look-up gives
_EIGHT_DIGITS = 10**8
_ZERO = ord("0")
_LONGEST = 96  # characters of a text in a matrix, whose rows are all of one length
MOST_CHARACTERS = 2**26  # bytes of a matrix of texts

Characters = np.ndarray[Any, np.dtype[np.uint8]]  # a row for each number, ASCII; 0 is none


def instant_characters(instants: Int64Array, *, fractions: bool = False) -> Characters:
    """Return the characters of instants, as `format_instant` writes them. Raises OverflowError as that does.

    fractions: also of whole seconds, so that all texts are of one length, and sort as the instants do.

    >>> lines(instant_characters(np.array([10**15, 1])))
    ['2001-09-09T01:46:40Z', '1970-01-01T00:00:00.000001Z']
    >>> lines(instant_characters(np.array([10**15]), fractions=True))
    ['2001-09-09T01:46:40.000000Z']
    """
    if not len(instants):
        return np.zeros((0, _INSTANT.itemsize), np.uint8)
    if instants.min() < FIRST_INSTANT or instants.max() > LAST_INSTANT:
        raise OverflowError("an instant outside the years 1 to 9999")
    days, within = _divided(instants, DAY)
    seconds, fraction = _divided(within, _SECOND)
    high, low = _divided(fraction, 100)
    rows = np.empty(len(instants), _INSTANT)
    rows["date"], rows["time"] = _dates(days), _times().take(seconds)
    rows["1e-4"], rows["1e-6"] = _numerals(4).take(high), _numerals(2).take(low)
    rows["T"], rows["point"], rows["Z"] = b"T", b".", b"Z"
    characters = rows.view(np.uint8).reshape(len(rows), -1)
    if not fractions and not fraction.all():
        characters[:, _FRACTION] *= (fraction != 0)[:, None]
    return characters


def decimal_characters(numbers: Int64Array, places: int, least: int = 0) -> Characters:
    """Return the characters of integers in 10^-places with `least` decimals or more, as `format_fixed` writes them.

    places: from 1 to 16.

    >>> lines(decimal_characters(np.array([-1_500_000, 7]), 6, least=2))
    ['-1.50', '0.000007']
    """
    if not len(numbers):
        return np.zeros((0, 1), np.uint8)
    magnitudes = np.abs(numbers).view(np.uint64)  # that of -2^63 has 64 bits
    whole, fraction = (part.view(np.int64) for part in _divided(magnitudes, np.uint64(10**places)))
    before, after = (-(-digits // _GROUP) for digits in (len(str(whole.max())), places))
    point = 1 + _GROUP * before
    end = point + 1 + places
    characters = np.zeros((len(numbers), point + 1 + _GROUP * after), np.uint8)
    characters[:, 0] = (numbers < 0) * ord("-")
    _write_digits(characters[:, 1:point], whole)
    characters[:, point] = ord(".")
    _write_digits(characters[:, point + 1 :], fraction * 10 ** (_GROUP * after - places))
    _remove_zeros(characters, range(1, point - 1))
    written = _remove_zeros(characters, range(end - 1, point + least, -1))
    if not least:
        characters[:, point] *= written
    return characters[:, :end]


def integer_characters(numbers: Int64Array) -> Characters:
    """Return the characters of integers, as `str` writes them.

    >>> lines(integer_characters(np.array([-15, 0, 123_456])))
    ['-15', '0', '123456']
    """
    magnitudes = np.abs(numbers).view(np.uint64)
    groups = -(-len(str(magnitudes.max(initial=0))) // _GROUP)
    characters = np.zeros((len(numbers), 1 + _GROUP * groups), np.uint8)
    characters[:, 0] = (numbers < 0) * ord("-")
    _write_digits(characters[:, 1:], magnitudes)
    _remove_zeros(characters, range(1, characters.shape[1] - 1))
    return characters


def wide_characters(numbers: WideInt) -> Characters:
    """Return the characters of integers, as `str` writes them.

    >>> lines(wide_characters(WideInt.from_integers([-(10**30), 7, 0])))
    ['-1000000000000000000000000000000', '7', '0']
    """
    starts, rows = run_starts(*numbers), len(numbers.low)
    if 2 * len(starts) < rows:
        return wide_characters(numbers.take(starts)).repeat(run_lengths(starts, rows), axis=0)
    is_negative = numbers.carried().high < 0
    low, middle, high = WideInt(*(word * (1 - 2 * is_negative) for word in numbers)).carried()
    groups = list[Int64Array]()  # of eight digits, the last first
    while not groups or (low | middle | high).any():
        high, rest = _divided(high, _EIGHT_DIGITS)
        middle, rest = _divided((rest << WORD_BITS) + middle, _EIGHT_DIGITS)
        low, rest = _divided((rest << WORD_BITS) + low, _EIGHT_DIGITS)
        groups.append(rest)
    characters = np.empty((len(low), 1 + 8 * len(groups)), np.uint8)
    characters[:, 0] = is_negative * ord("-")
    for index, group in enumerate(reversed(groups)):
        _write_digits(characters[:, 1 + 8 * index : 9 + 8 * index], group)
    _remove_zeros(characters, range(1, characters.shape[1] - 1))
    return characters


def text_characters(texts: Sequence[str]) -> Characters | None:
    r"""Return the characters of texts in UTF-8, or None.

    None: one is long, or has a character that no row can have, or the rows have more bytes than `MOST_CHARACTERS`.

    >>> text_characters(["ada", "é"]).shape, text_characters(["a\nb"]), text_characters(["a" * 100])
    ((2, 3), None, None)
    """
    joined = "\n".join(texts)
    if max(map(len, texts), default=0) > _LONGEST or "\0" in joined or joined.count("\n") >= max(len(texts), 1):
        return None
    encoded = [text.encode() for text in texts]
    if max(map(len, encoded), default=0) * len(texts) > MOST_CHARACTERS:
        return None
    return np.array(encoded, bytes).view(np.uint8).reshape(len(texts), -1)


def join_characters(parts: Sequence[Characters | bytes], count: int) -> bytes:
    """Return the characters of so many rows, each made of parts; one of bytes is the same in all rows.

    >>> join_characters([b"n=", integer_characters(np.array([7, 10])), b";"], 2)
    b'n=7;n=10;'
    """
    return join_parts(parts, count).tobytes().translate(None, b"\0")


def join_parts(parts: Sequence[Characters | bytes], count: int) -> Characters:
    """Return the characters of so many rows, each made of parts, side by side."""
    rows = np.empty((count, sum(map(_width, parts))), np.uint8)
    end = 0
    for part in parts:
        begin, end = end, end + _width(part)
        rows[:, begin:end] = np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part
    return rows


def lines(characters: Characters) -> list[str]:
    """Return the text of each row of characters."""
    return join_characters([characters, b"\n"], len(characters)).decode().split("\n")[:-1]


def _width(part: Characters | bytes) -> int:
    return len(part) if isinstance(part, bytes) else part.shape[1]


def _write_digits(characters: Characters, numbers: Any) -> None:
    """Write numbers with as many digits as there are columns, a multiple of a group."""
    groups = characters.view(f"S{_GROUP}")
    for column in reversed(range(groups.shape[1])):
        numbers, group = _divided(numbers, 10**_GROUP)
        groups[:, column] = _numerals(_GROUP).take(group.view(np.int64))


def _remove_zeros(characters: Characters, columns: range) -> BoolArray:
    """Remove the zeros in these columns before the first other digit, and return which rows have another digit."""
    written = np.zeros(len(characters), bool)
    for column in columns:
        written |= characters[:, column] != _ZERO
        if written.all():
            break
        characters[:, column] *= written
    return written


def _divided(numbers: Any, by: Any) -> tuple[Any, Any]:
    """Return quotients and remainders as `np.divmod`, in half of its time."""
    quotients = numbers // by
    return quotients, numbers - quotients * by


@cache
def _numerals(digits: int) -> "np.ndarray[Any, Any]":
    """Return the numbers of so many digits, each with all of them."""
    return np.array([f"{number:0{digits}}" for number in range(10**digits)], f"S{digits}")


@cache
def _times() -> "np.ndarray[Any, Any]":
    """Return the times of a day, second by second."""
    two = [f"{number:02}" for number in range(60)]
    return np.array([f"{hour}:{minute}:{second}" for hour in two[:24] for minute in two for second in two], "S8")


def _dates(days: Int64Array) -> "np.ndarray[Any, Any]":
    """Return the date of each day since the epoch; that of a day that recurs is written once."""
    first = days.min()
    is_there = np.zeros(days.max() - first + 1, bool)
    is_there[days - first] = True
    dates = np.datetime_as_string((first + np.flatnonzero(is_there)).astype("datetime64[D]")).astype("S10")
    each: np.ndarray[Any, Any] = dates.take((np.cumsum(is_there) - 1)[days - first])
    return each
