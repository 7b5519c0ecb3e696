"""Tests of columns of texts that are read at once."""

import random
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from forecast_ledger.ledger.batching.text_columns import read_fractions, read_utc
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import UTC_INSTANT, read_instant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
GOOD = "2026-03-01T09:30:00Z"
SIGNS = "0123456789-:.TZz +/;\0é٣"  # digits, their neighbours, and a digit that is not ASCII


def test_instants_are_those_of_the_calendar() -> None:
    """Of every length, at the ends of years and months, from the year 1 to 9999."""
    chance = random.Random(1)
    for _ in range(300):
        first = datetime(
            chance.choice([1, 4, 1900, 1969, 2000, 2024, 2026, 9999]), chance.randint(1, 12), 28, tzinfo=UTC
        )
        at = first + timedelta(0, chance.choice([0, 86_399, chance.randrange(4 * 86_400)]))
        digits = chance.randrange(7)
        fraction = f"{chance.randrange(10**digits):0{digits}}" if digits else ""
        text = at.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0").replace("T", chance.choice("T ")) + "." * bool(digits)
        micros = (at - EPOCH) // timedelta(microseconds=1) + int(fraction.ljust(6, "0"))
        read = read_utc([GOOD, f"{text}{fraction}Z", GOOD])
        assert read is not None
        assert read.tolist() == [1_772_357_400_000_000, micros, 1_772_357_400_000_000]


@pytest.mark.parametrize("seed", range(3))
def test_instants_in_another_form_are_not_read(seed: int) -> None:
    """Nothing is read but what the pattern allows and `read_instant` reads, whichever characters change."""
    chance = random.Random(seed)
    for _ in range(1_500):
        text = [*chance.choice([GOOD, "2024-02-29T23:59:59.5Z", "2026-12-31T00:00:00.123456Z"])]
        for _ in range(chance.choice([1, 1, 2])):
            place = chance.randrange(len(text))
            text[place : place + chance.choice([0, 1, 1, 1])] = chance.choice(SIGNS)
        changed = "".join(text)
        try:
            expected = read_instant(changed) if re.fullmatch(UTC_INSTANT, changed, re.ASCII) else None
        except Refused:
            expected = None
        for others in ([], [GOOD]):
            read = read_utc([changed, *others])
            assert (None if read is None else read.tolist()[0]) == expected, changed


def test_fractions_are_those_of_decimals() -> None:
    """Of one digit or more."""
    texts = ["0.1", "0.123456789", "0.000000001", "0.0", "0.50", "0.999999999"]
    read = read_fractions(texts, 9)
    assert read is not None
    assert read.tolist() == [int(Decimal(text).scaleb(9)) for text in texts]


OTHER = ["", "0", "0.", "1.5", ".5", "00.5", "0.1234567890", "0.5 ", " 0.5", "-0.5", "0,5", "5E-7", "0.5:", "0.5/"]
OTHER += ["0.5é", "0.٣", "0.\ud800", "0.5\0", "0.\0005", "\0\0", "0.5\0\0\0\0\0\0\0\0\0"]


@pytest.mark.parametrize("text", OTHER)
def test_fractions_in_another_form_are_not_read(text: str) -> None:
    """Alone, or beside another."""
    assert read_fractions([text], 9) is None
    assert read_fractions(["0.5", text], 9) is None


@pytest.mark.parametrize(
    "text", ["", "0000-01-01T00:00:00Z", "2026-03-01T00:00:00.Z", "2026-03-01T00:00:00.1234567Z", "2026-03-01"]
)
def test_instants_of_no_year_or_of_another_length_are_not_read(text: str) -> None:
    """The calendar begins with the year 1; a fraction has 1 to 6 digits."""
    assert read_utc([text]) is read_utc([GOOD, text]) is None
