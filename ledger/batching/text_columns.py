"""Columns of instants or probabilities as texts, read at once if they are written as most are."""

from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PARTS = [(0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19)]  # year, month, day, hour, minute, second
_SECONDS, _MICROS = len("2026-03-01T00:00:00Z"), len("2026-03-01T00:00:00.000000Z")
_LENGTHS = {_SECONDS, *range(_SECONDS + 2, _MICROS + 1)}
_BETWEEN, _SIGNS = [4, 7, 13, 16, -1], np.frombuffer(b"--::Z", np.uint8)[:, None]
_T, _SPACE, _POINT, _ZERO, _COMMA = b"T .0,"


def read_utc(texts: Sequence[str]) -> "NDArray[np.int64] | None":
    """Return instants in µs; None if one of them is not written as UTC_INSTANT, or is in no calendar.

    >>> read_utc(["1970-01-01T00:00:01Z", "1970-01-02 00:00:00.5Z"]).tolist(), read_utc(["2026-02-29T00:00:00Z"])
    ([1000000, 86400500000], None)
    """
    lengths = {*map(len, texts)}
    if not lengths <= _LENGTHS:
        return None
    if len(lengths) == 1:
        return _read_alike(texts)
    micros, length_of = np.zeros(len(texts), np.int64), np.fromiter(map(len, texts), np.int64, len(texts))
    for length in lengths:
        has_length = length_of == length
        part = _read_alike([*compress(texts, has_length.tolist())])
        if part is None:
            return None
        micros[has_length] = part
    return micros


def _read_alike(texts: Sequence[str]) -> "NDArray[np.int64] | None":
    """As `read_utc`, of texts of one length."""
    joined = "".join(texts)
    if not joined.isascii():
        return None
    return read_utc_signs(np.frombuffer(joined.encode(), np.uint8).reshape(len(texts), len(texts[0])).T)


def read_utc_signs(signs: "NDArray[np.uint8]") -> "NDArray[np.int64] | None":
    """As `read_utc`, of the bytes of texts of one length, shape (bytes, n)."""
    length = len(signs)
    if length not in _LENGTHS:
        return None
    digits = signs - np.uint8(_ZERO)  # any other sign is above 9
    are_written = (signs[_BETWEEN] == _SIGNS).all() and ((signs[10] == _T) | (signs[10] == _SPACE)).all()
    if not are_written or (length > _SECONDS and (signs[_SECONDS - 1] != _POINT).any()):
        return None
    spans = [*_PARTS, (_SECONDS, length - 1)]
    if any((digits[begin:end] > 9).any() for begin, end in spans):
        return None
    year, month, day, hour, minute, second, fraction = (_number(digits[begin:end]) for begin, end in spans)
    months = (year - 1970) * 12 + month - 1
    begins, ends = (each.view("M8[M]").astype("M8[D]").view(np.int64) for each in (months, months + 1))
    is_day = (year > 0) & (month > 0) & (month <= 12) & (day > 0) & (begins + day <= ends)
    if not (is_day & (hour < 24) & (minute < 60) & (second < 60)).all():
        return None
    seconds = (((begins + day - 1) * 24 + hour) * 60 + minute) * 60 + second
    micros: NDArray[np.int64] = seconds * 10**6 + fraction * 10 ** (_MICROS - length)
    return micros


def _number(digits: "NDArray[np.uint8]") -> "NDArray[np.int64]":
    """Return the numbers of digits, shape (digits, numbers); 0 of no digits."""
    number = np.zeros(digits.shape[1], np.int64)
    for digit in digits:
        number = number * 10 + digit
    return number


def read_fractions(texts: Sequence[str], decimals: int) -> "NDArray[np.int64] | None":
    """Return numbers in 10^-decimals; None if one of them is not written as 0. and 1 to so many digits.

    >>> read_fractions(["0.7", "0.025"], 9).tolist(), read_fractions(["0.7", ".025"], 9)
    ([700000000, 25000000], None)
    """
    joined, most = ",".join(texts), len("0.") + decimals
    if not joined.isascii() or joined.count(",") != len(texts) - 1:
        return None
    signs = np.frombuffer(f"{joined},{' ' * most}".encode(), np.uint8)
    ends = np.flatnonzero(signs == _COMMA)
    begins = np.concatenate([[0], ends[:-1] + 1])
    return read_fraction_signs(signs, begins, ends - begins, decimals)


def read_fraction_signs(
    signs: "NDArray[np.uint8]", begins: "NDArray[np.int64]", lengths: "NDArray[np.int64]", decimals: int
) -> "NDArray[np.int64] | None":
    """As `read_fractions`, of texts that begin somewhere among bytes, and are so long; enough bytes follow the last."""
    most = len("0.") + decimals
    if lengths.min() < len("0.0") or lengths.max() > most:
        return None
    if not ((signs[begins] == _ZERO) & (signs[begins + 1] == _POINT)).all():
        return None
    number = np.zeros(len(begins), np.int64)
    for place in range(len("0."), most):
        digit = signs[begins + place] - np.uint8(_ZERO)
        digit[lengths <= place] = 0  # what comes after a shorter text
        if digit.max() > 9:
            return None
        number = number * 10 + digit
    return number
