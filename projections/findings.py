"""What was expected and what was found, in the forms in which numbers, instants and ids are printed."""

from collections.abc import Iterable

from ledger.values import FIRST_INSTANT, LAST_INSTANT, MONEY, PROBABILITY, format_fixed, format_instant

_LONGEST = 40  # characters of an id, a text or a list: a log that anything wrote holds any
_LARGEST = 10**30


def unlike(expected: str, found: str) -> str:
    """What is wrong, in the one form it is told in.

    >>> unlike("an amount of 500.00, the bet that was asked for", money(500_000_001))
    'expected an amount of 500.00, the bet that was asked for; found 500.000001'
    """
    return f"expected {expected}; found {found}"


def named(text: object, most: int = _LONGEST) -> str:
    """An id, a text or a whole number as it stands in a message: escaped, and shortened.

    >>> named("cup"), named(7), named("an id of a contest that is as long as an id may be")
    ("'cup'", '7', "'an id of a contest that is as long as a…")
    """
    if isinstance(text, int) and abs(text) > _LARGEST:
        return "a number of more than 30 digits"
    return short(repr(text), most)


def several(values: Iterable[object]) -> str:
    """Ids and whole numbers.

    >>> several(["week", "ada", 1])
    "'week', 'ada', 1"
    """
    return ", ".join(map(named, values))


def short(text: str, most: int = _LONGEST) -> str:
    """The beginning of a text."""
    return text if len(text) <= most else f"{text[:most]}…"


def fixed(value: int, unit: int, least: int = 0) -> str:
    """An integer in 1/unit as a decimal.

    >>> fixed(-1, 10**9)
    '-0.000000001'
    """
    return format_fixed(value, unit, least) if abs(value) <= _LARGEST else named(value)


def money(value: int) -> str:
    """An amount or shares, 1e-6."""
    return fixed(value, MONEY, least=2)


def chance(value: int | None) -> str:
    """A probability, a price or a payout, 1e-9; none where there is none."""
    return "none" if value is None else fixed(value, PROBABILITY)


def instant(micros: int) -> str:
    """RFC 3339, or what no calendar has.

    >>> instant(0), instant(2**62)
    ('1970-01-01T00:00:00Z', '4611686018427387904 µs since 1970')
    """
    inside = FIRST_INSTANT <= micros <= LAST_INSTANT
    return format_instant(micros) if inside else f"{named(micros)} µs since 1970"
