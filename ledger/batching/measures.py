"""The numbers of a forecast of quantiles, samples or a cdf, read for many forecasts at once, in integers."""

import re
from array import array
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, json

from forecast_ledger.ledger.core.values import CUMULATIVE
from forecast_ledger.ledger.deciding.distributions import limits
from forecast_ledger.ledger.model.forms import NumericRange

if TYPE_CHECKING:
    import numpy as np

_MANY = 64  # forecasts are worth the import of NumPy
_WITH_EXPONENT = re.compile(b'E[^"]*')
_SHORT_EXPONENT = re.compile("[^E]+(?:E.[0-9])?").fullmatch
_DIGITS = 18  # that any integer of 64 bits has
_QUOTE, _MINUS, _POINT, _ZERO, _EXPONENT = b'"-.0E'


class Measures(Struct, frozen=True, gc=False):
    """The numbers of a forecast, in increasing order, in 10^-decimals, and the field that they were given in."""

    field: str
    decimals: int
    units: Sequence[int]


def read_measures(
    field: str, text: bytes, given: Sequence[Sequence[object]], least: int = 0
) -> Iterator[tuple[str, Measures | None]]:
    """Yield the JSON and the numbers of each forecast; None if they decrease, or one of them has too many digits.

    text: a JSON array of the numbers of all forecasts, each the shortest text of a decimal. given: these numbers by
    forecast, of each one or more. least: the decimals of each forecast, unless its numbers have more.

    >>> [*read_measures("quantiles", b'["-0.5","2","1.5E+2","1E+20"]', [("-0.5", 2, 150), ("1e20",)])]
    [('["-0.5","2","1.5E+2"]', Measures(field='quantiles', decimals=1, units=[-5, 20, 1500])), ('["1E+20"]', None)]
    """
    return (_read_few if len(given) < _MANY else _read_many)(field, text, given, least)


def _read_few(
    field: str, text: bytes, given: Sequence[Sequence[object]], least: int
) -> Iterator[tuple[str, Measures | None]]:
    """As `read_measures`, one by one."""
    texts = iter(json.decode(text))
    for numbers in given:
        own = [*islice(texts, len(numbers))]
        yield json.encode(own).decode(), _measures(field, own, least)


def _measures(field: str, texts: Sequence[str], least: int) -> Measures | None:
    if any("E" in each for each in texts):
        if not all(_SHORT_EXPONENT(each) for each in texts):
            return None
        texts = [f"{Decimal(each):f}" for each in texts]
    decimals = [len(each) - each.index(".") - 1 if "." in each else 0 for each in texts]
    most = max(least, *decimals)
    units = [int(each.replace(".", "")) * 10 ** (most - own) for each, own in zip(texts, decimals, strict=True)]
    return Measures(field, most, units) if units == sorted(units) else None


def _read_many(
    field: str, text: bytes, given: Sequence[Sequence[object]], least: int
) -> Iterator[tuple[str, Measures | None]]:
    """As `read_measures`, all at once."""
    import numpy as np  # noqa: PLC0415 - short logs do without

    signs = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(signs == _QUOTE)
    begins, ends = quotes[::2] + 1, quotes[1::2]
    counts = np.fromiter(map(len, given), np.int64, len(given))
    lasts, owners = np.cumsum(counts), np.repeat(np.arange(len(counts)), counts)
    firsts = lasts - counts
    exponents, are_sound, mantissas = _exponents(text, begins, ends)
    units, digits, decimals = _integers(text, begins, mantissas)
    scales = np.maximum(np.maximum.reduceat(decimals - exponents, firsts), least)  # of each forecast
    shifts = scales[owners] - decimals + exponents
    are_sound &= digits + shifts <= _DIGITS
    units *= (10 ** np.arange(_DIGITS + 1))[np.minimum(shifts, _DIGITS)]
    are_sound[1:] &= (units[1:] >= units[:-1]) | (owners[1:] != owners[:-1])
    sound, numbers, written = np.logical_and.reduceat(are_sound, firsts).tolist(), array("q"), text.decode()
    numbers.frombytes(units.tobytes())  # in lists, the garbage collector would visit every number
    spans = (begins[firsts] - 1).tolist(), (ends[lasts - 1] + 1).tolist(), firsts.tolist(), lasts.tolist()
    for is_sound, each, begin, end, first, last in zip(sound, scales.tolist(), *spans, strict=True):
        yield f"[{written[begin:end]}]", Measures(field, each, numbers[first:last]) if is_sound else None


def _exponents(text: bytes, begins: "np.ndarray", ends: "np.ndarray") -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """Return the exponent of each number, whether it can be read, as one of a digit can, and the end before it."""
    import numpy as np  # noqa: PLC0415 - short logs do without

    exponents, are_sound, ends = np.zeros(len(begins), np.int64), np.ones(len(begins), bool), ends.copy()
    if b"E" in text:  # and after it a sign and one digit or more
        signs = np.frombuffer(text, np.uint8)
        at = np.flatnonzero(signs == _EXPONENT)
        numbers = np.searchsorted(begins, at, "right") - 1
        are_sound[numbers] = ends[numbers] - at == len("E+1")
        exponents[numbers] = np.where(signs[at + 1] == _MINUS, -1, 1) * (signs[at + 2].astype(np.int64) - _ZERO)
        ends[numbers] = at
    return exponents, are_sound, ends


def _integers(text: bytes, begins: "np.ndarray", ends: "np.ndarray") -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """Return the digits from each beginning to its end as an integer, how many they are, and how many are decimals.

    Integers of more than 18 digits may be wrong.
    """
    import numpy as np  # noqa: PLC0415 - short logs do without

    signs, decimals = np.frombuffer(text, np.uint8), np.zeros(len(begins), np.int64)
    points = np.flatnonzero(signs == _POINT)
    pointed = slice(None) if len(points) == len(begins) else np.searchsorted(begins, points, "right") - 1
    decimals[pointed] = ends[pointed] - points - 1
    written = _WITH_EXPONENT.sub(b"", text) if b"E" in text else text
    integers = np.fromstring(written.translate(None, b'[".]'), np.int64, sep=",")
    return integers, ends - begins - (signs[begins] == _MINUS) - (decimals > 0), decimals


class Takes(NamedTuple):
    """What a range takes: so many numbers in a field, in 10^-decimals, of which none is refused between limits.

    first, last: the least and the greatest that the smallest number may be, and the largest.
    """

    field: str
    many: int
    decimals: int
    first: tuple[int, int]
    last: tuple[int, int]

    def units(self, given: object) -> Sequence[int] | None:
        """Return the numbers of a forecast in the unit of the range; None if it may refuse them, or has fewer decimals.

        >>> span = NumericRange(lower="0", upper="10", levels=(250_000_000, 750_000_000), decimals=2)
        >>> [takes(span).units(Measures("quantiles", 1, units)) for units in ([15, 20], [15, 200])]
        [[150, 200], None]
        """
        if type(given) is not Measures:
            return None
        field, many, decimals, (least, below), (above, most) = self
        units = given.units
        if given.field != field or len(units) != many or given.decimals > decimals:
            return None
        if given.decimals < decimals:
            factor = 10 ** (decimals - given.decimals)
            units = [each * factor for each in units]
        return units if least <= units[0] <= below and above <= units[-1] <= most else None


def takes(span: NumericRange) -> Takes:
    """Return what a range takes."""
    least, most = limits(span)
    if span.measures:
        field = "samples" if span.samples else "quantiles"
        return Takes(field, span.measures, span.decimals, (least + 1, most), (least, most - 1))
    below, above = CUMULATIVE if span.open_lower else 0, 0 if span.open_upper else CUMULATIVE
    return Takes("cdf", span.bins + 1, len(str(CUMULATIVE)) - 1, (0, below), (above, CUMULATIVE))
