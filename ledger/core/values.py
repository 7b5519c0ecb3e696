"""Units and their conversion: decimals and RFC 3339 text outside, integers inside; other values are refused."""

import re
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, DecimalException, InvalidOperation, Overflow, Rounded
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import WIDE, half_even
from forecast_ledger.ledger.core.integer_digits import allow_digits
from forecast_ledger.ledger.core.visible import is_plain, not_plain

if TYPE_CHECKING:  # the types that a caller may pass
    Number = Decimal | float | int | str
    Instant = str | datetime
else:  # the types that a JSON decoder uses: a number keeps its decimal digits, an instant its text; both checked here
    Number = Any
    Instant = str

allow_digits()  # for whatever reads units

PROBABILITY = 10**9  # units in 1: probabilities, prices
CUMULATIVE = 10**10  # units in 1: the cumulative probabilities of a numeric forecast
MONEY = 10**6  # units in 1: money, shares
MOST_PAYOUT_UNITS = 2 * 10**9  # units in 1: payouts; more than the sum of any payouts in 1e-9 that counts as 1
MOST_SPOTS = 365  # instants that count of one question in a contest
LARGEST_SPOT_WEIGHT = 100  # so all weights together are fewer than the days of a century
WEIGHT = 10**6  # units in 1: a question's weight in a contest

FIRST_INSTANT = -62_135_596_800 * 10**6  # µs: 0001-01-01T00:00:00Z
LAST_INSTANT = 253_402_300_800 * 10**6 - 1  # the end of the year 9999
NEVER = 2**63 - 1  # in place of an instant, in columns of instants that may be missing
DAY = 86_400 * 10**6  # µs
LONGEST_PERIOD = 36_525 * DAY  # a question's period is a century at most
MOST_TAGS = 100  # of a question
MOST_BINS = 10_000
MOST_DECIMALS = 12
MOST_POINTS = 1_000  # of a forecast that is given as quantiles and a method
LARGEST_MEASURE = 10**13  # the largest quantile, in the unit of its question
LARGEST_POOL = 10**12 * MONEY
LARGEST_WEIGHT = 10**6 * WEIGHT
LARGEST_CASH = 10**9 * MONEY  # in one grant, deposit or stake
LARGEST_HOLDING = 10**12 * MONEY  # shares that one account buys in all

ID_LENGTH = 200
LINE_LENGTH = 1_000  # for a name, an address, or the id of another program
TEXT_LENGTH = 10_000
LONG_TEXT_LENGTH = 1_000_000  # for a prompt or a reply
MOST_WRITTEN_DECIMALS = 1_000  # decimals of a number as it is written
LARGEST_NUMBER = Decimal("1e30")  # as it is written
_SURROGATE = re.compile("[\ud800-\udfff]")
_WHOLE = 10**30
_SMALL = Decimal(1).__sizeof__()  # bytes of a decimal of up to 38 digits
WRITTEN_FRACTION = "[0-9]{1,20}/[1-9][0-9]{0,19}"
WRITTEN_NUMBER = r"[+-]?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,9})?"
_DECIMAL = re.compile(WRITTEN_NUMBER, re.ASCII)
_WRITTEN_FRACTION = re.compile(WRITTEN_FRACTION)
_DECIMALS = re.compile(f"{WRITTEN_NUMBER}(?:,{WRITTEN_NUMBER})*", re.ASCII)
# For numbers of units below 1e30, with at most 60 digits; other numbers are read one by one.
_COMMON = Context(prec=60, Emax=29, traps=[InvalidOperation, Overflow, Rounded])
_CLOCK = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}"
_FRACTION, _OFFSET = r"\.[0-9]{1,40}", r"[Zz]|[+-][0-2][0-9]:[0-5][0-9]"
_RFC_3339 = re.compile(f"{_CLOCK}(?P<fraction>{_FRACTION})?(?P<offset>{_OFFSET})?", re.ASCII)
WRITTEN_INSTANT = f"^{_CLOCK}({_FRACTION})?({_OFFSET})$"  # in the form of a JSON Schema pattern
UTC_INSTANT = "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,6})?Z"  # as most are written
WRITTEN_URL = r"[Hh][Tt][Tt][Pp][Ss]?://[^\s/][^\s]*"
WRITTEN_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATED = re.compile(WRITTEN_DATE, re.ASCII)
_UTC_END = re.compile(r"(\.[0-9]+)?Z\Z", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = _EPOCH.replace(tzinfo=None)  # formatting a naive datetime takes half the time


def read_decimal(number: Number, field: str) -> Decimal:
    """Return a number as a decimal; a float becomes the shortest decimal that stands for it.

    Refuses, first that applies: bad_number, not_finite.

    >>> read_decimal(0.1, "weight") == read_decimal("0.10", "weight") == Decimal("0.1")
    True
    """
    if type(number) is Decimal and number.is_finite():
        return number
    if isinstance(number, bool) or not isinstance(number, int | float | str | Decimal):
        raise Refused("bad_number", field, number)
    if isinstance(number, str):
        if number.strip("+-").lower() in {"nan", "inf", "infinity"}:
            raise Refused("not_finite", field, number)
        if not _DECIMAL.fullmatch(number):
            raise Refused("bad_number", field, number)
    try:
        value = Decimal(float.__repr__(number) if isinstance(number, float) else number)
    except InvalidOperation:  # an exponent of absurd size
        raise Refused("bad_number", field, number) from None
    if not value.is_finite():
        raise Refused("not_finite", field, str(number))
    return value


def read_decimals(numbers: Collection[Number], field: str) -> Collection[Decimal]:
    """Return `read_decimal` of every number, in a third of the time; decimals are returned unchanged.

    >>> read_decimals((0.5, 2.0), "quantiles"), read_decimals(("0.5", 2), "quantiles")
    ([Decimal('0.5'), Decimal('2.0')], [Decimal('0.5'), Decimal('2')])
    """
    given: Collection[Any] = numbers
    try:
        if all(map(Decimal.is_finite, given)):
            return given
    except TypeError:  # not all are decimals
        decimals = _converted([*given])
        if decimals is not None and all(map(Decimal.is_finite, decimals)):
            return decimals
    return [read_decimal(number, field) for number in given]


def _converted(given: list[Any]) -> list[Decimal] | None:
    """Convert floats, texts, or a mix of integers and decimals; None for other types or a text that is not a number."""
    kinds = {*map(type, given)}
    if kinds == {float}:
        return [*map(Decimal, map(float.__repr__, given))]
    written = ",".join(given) if kinds == {str} else ""
    if kinds <= {Decimal, int} or (_DECIMALS.fullmatch(written) and written.count(",") < len(given)):
        with suppress(InvalidOperation):  # an exponent of absurd size
            return [*map(Decimal, given)]
    return None


def is_fraction(value: object) -> bool:
    """Return whether a value is the text of a fraction of two whole numbers.

    >>> is_fraction("1/3"), is_fraction("1/0"), is_fraction("0.5")
    (True, False, False)
    """
    return isinstance(value, str) and _WRITTEN_FRACTION.fullmatch(value) is not None


def read_measure(number: Number, field: str) -> Decimal:
    """Return a decimal within 1e30 with at most 1,000 decimals; one below 1e-60 counts as 0.

    Refuses, first that applies: bad_number, not_finite, out_of_range.

    >>> read_measure("2.50", "value"), read_measure("1e-999999", "value")
    (Decimal('2.50'), Decimal('0'))
    """
    value = read_decimal(number, field)
    if not value or value.adjusted() < -60:  # far below half of every unit
        return Decimal(0)
    exponent = value.as_tuple().exponent
    if (
        value.adjusted() > 30
        or value.copy_abs() > LARGEST_NUMBER
        or (isinstance(exponent, int) and exponent < -MOST_WRITTEN_DECIMALS)
    ):
        raise Refused(
            "out_of_range", field, str(value), f"must lie within 1e30, with at most {MOST_WRITTEN_DECIMALS:,} decimals"
        )
    return value


def read_measures(numbers: Collection[Number], unit: int, field: str) -> list[int]:
    """Return `read_measure` of every number in 1/unit (a power of ten), rounded half-even.

    >>> read_measures(("0.25", "0.35", "1e-999999"), 10, "quantiles")
    [2, 4, 0]
    """
    try:
        scaled = map(_COMMON.multiply, read_decimals(numbers, field), repeat(Decimal(unit)))
        return [*map(Decimal.__round__, scaled)]  # to the nearest integer, half-even, in every context
    except (DecimalException, Refused):  # an uncommon number, or one that is refused below
        ratios = [read_measure(number, field).as_integer_ratio() for number in numbers]
        return [half_even(numerator * unit, denominator) for numerator, denominator in ratios]


def read_fixed(number: Number, unit: int, field: str, low: int, high: int) -> int:
    """Return a number in 1/unit, rounded half-even; low and high bound the result, in 1/unit.

    Refuses, first that applies: bad_number, not_finite, out_of_range.

    >>> read_fixed("0.12345678950", PROBABILITY, "probability", 0, PROBABILITY)
    123456790
    """
    if type(number) is int and -_WHOLE < number < _WHOLE:
        numerator, denominator = number, 1
    else:
        if (
            type(number) is not Decimal
            or not number.is_finite()
            or not -60 < number.adjusted() < 30
            or number.__sizeof__() > _SMALL
        ):
            number = read_measure(number, field)
        numerator, denominator = number.as_integer_ratio()
    value, remainder = divmod(numerator * unit, denominator)
    if remainder:
        value = half_even(numerator * unit, denominator)
    if not low <= value <= high:
        bounds = f"between {format_fixed(low, unit)} and {format_fixed(high, unit)}"
        raise Refused("out_of_range", field, str(number), f"must lie {bounds}")
    return value


def read_each_fixed(numbers: Collection[Number], unit: int, field: str, low: int, high: int) -> list[int]:
    """Return `read_fixed` of every number, in less time.

    >>> read_each_fixed(("0.5", "0.12345678950"), PROBABILITY, "probability", 0, PROBABILITY)
    [500000000, 123456790]
    """
    try:
        measures = read_measures(numbers, unit, field)
    except Refused:
        measures = []
    if measures and low <= min(measures) and max(measures) <= high:
        return measures
    return [read_fixed(number, unit, field, low, high) for number in numbers]


def read_probability(number: Number, field: str) -> int:
    """Return a probability or price, from 0 to 1, in 1e-9.

    >>> read_probability("0.7", "probability")
    700000000
    """
    return read_fixed(number, PROBABILITY, field, 0, PROBABILITY)


_DURATION = re.compile(r"(?a:([0-9]{1,6})(s|m|h|d))")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def is_instant(field: str) -> bool:
    """Return True if a field of a command or an event is an instant by its name: `at`, `until` or *_at.

    >>> is_instant("closes_at"), is_instant("format")
    (True, False)
    """
    return field in {"at", "until"} or field.endswith("_at")


def is_micros(value: object) -> bool:
    """Return whether a value is an instant in µs since 1970: an int, and no bool, within the years 1 to 9999.

    >>> is_micros(0), is_micros(0.0), is_micros(True), is_micros(2**63)
    (True, False, False, False)
    """
    return type(value) is int and FIRST_INSTANT <= value <= LAST_INSTANT


def read_duration(text: str) -> int:
    """Return a duration in µs: a number and s, m, h or d. Raises ValueError: it is none.

    >>> read_duration("90m")
    5400000000
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no duration: give a number and s, m, h or d, such as 90m")
    return int(match[1]) * _SECONDS[match[2]] * 10**6


def read_instant(value: Instant | None, field: str = "at") -> int:
    """Return an RFC 3339 text or an aware datetime in µs since the epoch, UTC; finer fractions round half-even.

    Refuses, first that applies: bad_instant, naive_instant.

    >>> read_instant("1970-01-01T01:00:00.0000015+01:00")
    2
    """
    try:
        if isinstance(value, datetime):
            return _micros(value)
        return _parsed(value)
    except (ValueError, OverflowError):
        raise Refused("bad_instant", field, str(value)) from None
    except LookupError:
        raise Refused("naive_instant", field, str(value)) from None
    except TypeError:  # a datetime without an offset, or another type
        naive = isinstance(value, datetime) and value.utcoffset() is None
        raise Refused("naive_instant" if naive else "bad_instant", field, str(value)) from None


@lru_cache(maxsize=65_536)
def _parsed(text: str) -> int:
    """Return an instant in µs. Raises TypeError, ValueError, OverflowError (no instant), LookupError (no offset)."""
    if text[11:13] >= "24":  # some versions of Python read it as the next day
        raise ValueError(text)
    if text[4:17:3] == "--T::" and len(text) <= 27 and text.isascii() and _UTC_END.match(text, 19):
        return _micros(datetime.fromisoformat(text))
    matched = _RFC_3339.fullmatch(text)
    if matched is None:
        raise ValueError(text)
    if matched["offset"] is None:
        raise LookupError(text)
    fraction = matched["fraction"] or ""
    if len(fraction) <= 7:
        return _micros(datetime.fromisoformat(text.upper()))
    whole = _micros(datetime.fromisoformat(text[:19] + matched["offset"].upper()))
    return _in_calendar(whole + half_even(int(fraction[1:]) * 10**6, 10 ** (len(fraction) - 1)))


def is_dated(value: object) -> bool:
    """Return whether a value is a date, an instant or a text that begins like one; no number does.

    >>> is_dated("2026-03-01"), is_dated("2026-03-01T09:30:00Z"), is_dated("2026")
    (True, True, False)
    """
    return isinstance(value, datetime) or (isinstance(value, str) and _DATED.match(value) is not None)


def read_seconds(value: Number | Instant, field: str) -> Decimal:
    """Return a date (its beginning in UTC), an instant, or a number of seconds, as seconds since the epoch.

    They are rounded half-even to µs. Refuses, first that applies: bad_instant, naive_instant, bad_number, not_finite,
    out_of_range (outside the years 1 to 9999).

    >>> read_seconds("1970-01-02", "value"), read_seconds("1970-01-01T00:00:01.5Z", "value"), read_seconds(2.5, "value")
    (Decimal('86400.000000'), Decimal('1.500000'), Decimal('2.500000'))
    """
    if isinstance(value, datetime):
        micros = read_instant(value, field)
    elif isinstance(value, str) and is_dated(value):
        micros = read_instant(f"{value}T00:00:00Z" if len(value) == len("2026-03-01") else value, field)
    else:
        numerator, denominator = read_measure(value, field).as_integer_ratio()
        micros = half_even(numerator * 10**6, denominator)
    if not FIRST_INSTANT <= micros <= LAST_INSTANT:
        raise Refused("out_of_range", field, str(value), "outside the years 1 to 9999")
    return Decimal(micros).scaleb(-6, WIDE)


def format_instant(micros: int) -> str:
    """Return an instant as RFC 3339 text in UTC, with a fraction only if it is not 0.

    >>> format_instant(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    return (_NAIVE_EPOCH + timedelta(0, 0, micros)).isoformat() + "Z"


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Return a number of things. plural: of the noun; with an s, if it is not given.

    >>> format_count(1, "question"), format_count(1_000, "question"), format_count(2, "entry", "entries")
    ('1 question', '1,000 questions', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_fixed(value: int, unit: int, least: int = 0) -> str:
    """Return an integer in 1/unit (a power of ten) as decimal text with `least` decimals or more.

    Zeros at the end are left out, except for the first `least` decimals.

    >>> format_fixed(-1_500_000, MONEY, least=2), format_fixed(750_000_000, PROBABILITY)
    ('-1.50', '0.75')
    """
    places = len(str(unit)) - 1
    whole, fraction = divmod(abs(value), 10**places)
    digits = f"{fraction:0{places}d}".rstrip("0") if places else ""
    digits = digits.ljust(least, "0")
    return "-" * (value < 0) + (f"{whole}.{digits}" if digits else str(whole))


def check_id(text: str, field: str) -> str:
    """Check an id: 1 to 200 characters that are plain (`visible.is_plain`), without a space at either end; return it.

    Refuses, first that applies: malformed (not a text), id_empty, id_too_long, id_not_plain.
    """
    if type(text) is not str:
        raise Refused("malformed", field, text, "not a text")
    if text == "":
        raise Refused("id_empty", field)
    if len(text) > ID_LENGTH:
        raise Refused("id_too_long", field, text)
    if " " in (text[0], text[-1]) or not is_plain(text):
        raise Refused("id_not_plain", field, text, not_plain(text))
    return text


check_id_cached = lru_cache(maxsize=65_536)(check_id)  # the same check, for ids that occur often


def check_text(text: str, field: str, most: int = TEXT_LENGTH) -> str:
    """Check a title or reason: up to 10,000 characters, or `most`, that UTF-8 can encode; return it.

    Refuses, first that applies: malformed (not a text), text_too_long, id_not_plain (lone surrogates).
    """
    if type(text) is not str:
        raise Refused("malformed", field, text, "not a text")
    if len(text) > most:
        raise Refused("text_too_long", field, text)
    if not text.isascii() and _SURROGATE.search(text):
        raise Refused("id_not_plain", field, text)
    return text


def exact_text(value: Decimal) -> str:
    """Return the shortest decimal text of a value, without an exponent; equal values have the same text.

    >>> exact_text(Decimal("1.50E+2")), exact_text(Decimal("-0.0"))
    ('150', '0')
    """
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in {"-0", ""} else text


def _micros(value: datetime) -> int:
    passed = value - _EPOCH
    return _in_calendar((passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds)


def _in_calendar(micros: int) -> int:
    if not FIRST_INSTANT <= micros <= LAST_INSTANT:
        raise ValueError(micros)
    return micros
