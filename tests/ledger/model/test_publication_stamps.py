"""Tests of publication stamps and their spans."""

from calendar import isleap
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT
from forecast_ledger.ledger.model.publication_stamps import StampSpan, stamp_span
from tests.support.given import DAY, HOUR, MARCH

MOMENTS = st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31))
YEARS = st.integers(1, 9999)
MINUTES = st.integers(-12 * 60, 14 * 60)  # the offsets that clocks on Earth keep today
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59)  # every offset that can be written


def at_offset(moment: datetime, minutes: int) -> int:
    """Return a local time, so many minutes ahead of UTC, in µs since the epoch."""
    local = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    return (local - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def utc(*fields: int) -> int:
    """Return a time in UTC, in µs since the epoch, by Python's calendar."""
    year, month, day, hour, minute, second, micros = (*fields, 0, 0, 0, 0)[:7]
    return at_offset(datetime(year, month, day, hour, minute, second, micros), 0)


def offset(minutes: int) -> str:
    """Return an offset as RFC 3339 writes it."""
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"


def holds(wide: StampSpan, narrow: StampSpan) -> bool:
    """Return True if every instant of one span is in the other."""
    return wide.earliest <= narrow.earliest <= narrow.latest <= wide.latest


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2022-03-22T23:59:59Z", utc(2022, 3, 22, 23, 59, 59)),
        ("2022-03-22 23:59:59z", utc(2022, 3, 22, 23, 59, 59)),
        ("2022-03-22t23:59:59.999999Z", utc(2022, 3, 22, 23, 59, 59, 999_999)),
        ("2022-03-23T02:00:00+02:00", utc(2022, 3, 23)),
        ("2022-03-22T18:30:00-05:30", utc(2022, 3, 23)),
        ("2022-03-22T23:59:59-00:00", utc(2022, 3, 22, 23, 59, 59)),
        ("2022-03-22T00:00:00+23:59", utc(2022, 3, 21, 0, 1)),
        ("1970-01-01T00:00:00.0000015Z", 2),
        ("1970-01-01T00:00:00.0000025Z", 2),
        ("0001-01-01T00:00:00Z", FIRST_INSTANT),
        ("9999-12-31T23:59:59.999999Z", LAST_INSTANT),
    ],
)
def test_an_instant_with_an_offset_is_that_instant_alone(text: str, at: int) -> None:
    """A stamp with seconds is their first instant, not the whole second; finer fractions round half-even."""
    assert stamp_span(text, "published") == StampSpan(at, at)


@pytest.mark.parametrize(
    ("text", "earliest", "latest"),
    [
        ("2022-03-22 12:00:00", utc(2022, 3, 21, 22), utc(2022, 3, 23)),
        ("2022-03-22T12:00:00", utc(2022, 3, 21, 22), utc(2022, 3, 23)),
        ("2022-03-22T11:59:59", utc(2022, 3, 21, 21, 59, 59), utc(2022, 3, 22, 23, 59, 59)),
        ("2022-03-22t11:59:59.5", utc(2022, 3, 21, 21, 59, 59, 500_000), utc(2022, 3, 22, 23, 59, 59, 500_000)),
    ],
)
def test_a_moment_without_an_offset_may_be_of_any_zone(text: str, earliest: int, latest: int) -> None:
    """The earliest reading is at UTC+14, the latest at UTC-12 (Anywhere on Earth): 12:00 there is the next midnight in
    UTC.
    """
    assert stamp_span(text, "published") == StampSpan(earliest, latest)


@pytest.mark.parametrize(
    ("text", "earliest", "latest"),
    [
        ("2022-03-22", utc(2022, 3, 21, 10), utc(2022, 3, 23, 11, 59, 59, 999_999)),
        ("2022-03", utc(2022, 2, 28, 10), utc(2022, 4, 1, 11, 59, 59, 999_999)),
        ("2021-02", utc(2021, 1, 31, 10), utc(2021, 3, 1, 11, 59, 59, 999_999)),
        ("2022-12", utc(2022, 11, 30, 10), utc(2023, 1, 1, 11, 59, 59, 999_999)),
        ("2022", utc(2021, 12, 31, 10), utc(2023, 1, 1, 11, 59, 59, 999_999)),
    ],
)
def test_a_bare_date_month_or_year_is_all_of_it_in_any_zone(text: str, earliest: int, latest: int) -> None:
    """The span is from its first instant at UTC+14 to its last microsecond at UTC-12, where it ends at 11:59:59 UTC."""
    assert stamp_span(text, "published") == StampSpan(earliest, latest)


@pytest.mark.parametrize(
    ("text", "earliest", "latest"),
    [
        ("2022-03-22Z", utc(2022, 3, 22), utc(2022, 3, 22, 23, 59, 59, 999_999)),
        ("2022-03-22z", utc(2022, 3, 22), utc(2022, 3, 22, 23, 59, 59, 999_999)),
        ("2022-03-22+02:00", utc(2022, 3, 21, 22), utc(2022, 3, 22, 21, 59, 59, 999_999)),
        ("2022-03-22-05:30", utc(2022, 3, 22, 5, 30), utc(2022, 3, 23, 5, 29, 59, 999_999)),
        ("2022-03-22-12:00", utc(2022, 3, 22, 12), utc(2022, 3, 23, 11, 59, 59, 999_999)),
        ("2022-03-22+23:59", utc(2022, 3, 21, 0, 1), utc(2022, 3, 22, 0, 0, 59, 999_999)),
        ("2022-03Z", utc(2022, 3, 1), utc(2022, 3, 31, 23, 59, 59, 999_999)),
        ("2022-03+01:00", utc(2022, 2, 28, 23), utc(2022, 3, 31, 22, 59, 59, 999_999)),
        ("2022Z", utc(2022, 1, 1), utc(2022, 12, 31, 23, 59, 59, 999_999)),
        ("2022-01:00", utc(2022, 1, 1, 1), utc(2023, 1, 1, 0, 59, 59, 999_999)),
    ],
)
def test_a_date_month_or_year_with_an_offset_is_all_of_it_in_that_zone(text: str, earliest: int, latest: int) -> None:
    """With an offset, the start is known, and the span is as long as the date, month or year."""
    assert stamp_span(text, "published") == StampSpan(earliest, latest)


def test_a_span_is_counted_in_microseconds_since_the_epoch() -> None:
    """2026-03-01 is 20,513 days after 1970-01-01; a day is 86,400,000,000 µs."""
    assert stamp_span("2026-03-01", "published") == StampSpan(MARCH - 14 * HOUR, MARCH + DAY + 12 * HOUR - 1)


@pytest.mark.parametrize(
    ("text", "earliest", "latest"),
    [
        ("0001", FIRST_INSTANT, FIRST_INSTANT + 365 * DAY + 12 * HOUR - 1),
        ("0001-01-01", FIRST_INSTANT, FIRST_INSTANT + 36 * HOUR - 1),
        ("0001-01-01T00:00:00", FIRST_INSTANT, FIRST_INSTANT + 12 * HOUR),
        ("0001-01-01+23:59", FIRST_INSTANT, FIRST_INSTANT + 60 * 10**6 - 1),
        ("0001-01-01Z", FIRST_INSTANT, FIRST_INSTANT + DAY - 1),
        ("9999", LAST_INSTANT + 1 - 365 * DAY - 14 * HOUR, LAST_INSTANT),
        ("9999-12", LAST_INSTANT + 1 - 31 * DAY - 14 * HOUR, LAST_INSTANT),
        ("9999-12-31", LAST_INSTANT + 1 - 38 * HOUR, LAST_INSTANT),
        ("9999-12-31T23:59:59.999999", LAST_INSTANT - 14 * HOUR, LAST_INSTANT),
        ("9999-12-31-23:59", LAST_INSTANT + 1 - 60 * 10**6, LAST_INSTANT),
        ("9999-12-31Z", LAST_INSTANT + 1 - DAY, LAST_INSTANT),
    ],
)
def test_a_span_ends_with_the_calendar(text: str, earliest: int, latest: int) -> None:
    """The part of a span before the year 1 or after 9999 is cut off; the rest is never empty."""
    assert stamp_span(text, "published") == StampSpan(earliest, latest)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "22",
        "202",
        "20222",
        "-2022",
        "+2022",
        "0000",
        "0000-12",
        "0000-12-31",
        "2022-3",
        "2022-00",
        "2022-13",
        "2022-03-",
        "2022-03-00",
        "2022-03-32",
        "2022-04-31",
        "2021-02-29",
        "1900-02-29",
        "2022-02-30T12:00:00",
        "2022-02-30T12:00:00Z",
        "20220322",
        "2022/03/22",
        "22.03.2022",
        "2022-W12",
        "2022-081",
        "2022-03-22T",
        "2022-03-22T12",
        "2022-03-22T12:00",
        "2022-03-22T12:00Z",
        "2022-03-22T24:00:00",
        "2022-03-22T24:00:00Z",
        "2022-03-22T12:60:00",
        "2022-03-22T12:00:60",
        "2022-12-31T23:59:60Z",
        "2022-03-22T12:00:00.",
        "2022-03-22T12:00:00." + "0" * 41,
        "2022-03-22T12:00:00,5",
        "2022-03-22T120000",
        "2022-03-22_12:00:00",
        "2022-03T12:00:00",
        "2022T12:00:00Z",
        "2022-03-22+2:00",
        "2022-03-22+0200",
        "2022-03-22+24:00",
        "2022-03-22+29:00",
        "2022-03-22+02:60",
        "2022-03-22 Z",
        "2022-03-22ZZ",
        "2022-03-22 UTC",
        "2022-03-22T12:00:00+24:00",
        "2022-03-22T12:00:00 Europe/Berlin",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "9999-12-31T23:59:59.9999999",
        " 2022",
        "2022 ",
        "2022\n",
        "2022-03-22\n",
        "2022-03-22T12:00:00\n",
        "\u0662\u0660\u0662\u0662",  # ARABIC-INDIC DIGITS
        "2022\u221203",  # MINUS SIGN
        "2022-03-22\x00",
        "\ud800",
        "2" * 100_000,
        "2022-03-22T" + "0" * 100_000,
        "1647993599",
        None,
        2022,
        20.22,
        b"2022",
        datetime(2022, 3, 22, tzinfo=UTC),
        ["2022"],
        object(),
    ],
    ids=lambda text: ascii(text).partition(" at ")[0][:30],  # without the address of an object
)
def test_any_other_text_is_refused(text: Any) -> None:
    """Other notations, days that do not exist, and instants before the year 1 or after 9999 are refused."""
    with pytest.raises(Refused) as caught:
        stamp_span(text, "published")
    assert (caught.value.code, caught.value.field, caught.value.value) == ("bad_instant", "published", text)


def test_a_leap_day_is_a_date() -> None:
    """February has 29 days in 2020 and 2000, and its span ends with them."""
    for year in (2000, 2020):
        assert stamp_span(f"{year}-02-29Z", "published").latest == stamp_span(f"{year}-02Z", "published").latest


@given(MOMENTS, MINUTES)
def test_every_zone_on_earth_lies_within_the_span_of_a_naive_stamp(moment: datetime, minutes: int) -> None:
    """A clock between UTC-12 and UTC+14 that wrote the stamp meant an instant within the span."""
    earliest, latest = stamp_span(moment.isoformat(), "published")
    assert earliest <= at_offset(moment, minutes) <= latest
    assert (earliest, latest) == (at_offset(moment, 14 * 60), at_offset(moment, -12 * 60))


@given(MOMENTS, OFFSETS)
def test_a_stamp_with_an_offset_is_read_as_every_other_instant(moment: datetime, minutes: int) -> None:
    """Commands and stamps read instants in the same way."""
    text = moment.isoformat() + offset(minutes)
    assert (
        stamp_span(text, "published")
        == StampSpan(*[values.read_instant(text)] * 2)
        == StampSpan(*[at_offset(moment, minutes)] * 2)
    )


@given(st.one_of(MOMENTS, st.datetimes()))
def test_less_precision_is_a_wider_span(moment: datetime) -> None:
    """A year contains its months, a month its days, a day its times; in a zone as without one."""
    text = moment.isoformat()
    for zone in ("", "Z"):
        spans = [stamp_span(part + zone, "published") for part in (text[:4], text[:7], text[:10], text)]
        assert all(holds(*pair) for pair in pairwise(spans))


@given(MOMENTS, MINUTES)
def test_less_knowledge_of_the_zone_is_a_wider_span(moment: datetime, minutes: int) -> None:
    """A stamp without an offset contains the same stamp with any offset that is in use on Earth."""
    text = moment.isoformat()
    for part in (text[:4], text[:7], text[:10], text):
        assert holds(stamp_span(part, "published"), stamp_span(part + offset(minutes), "published"))


@given(YEARS, st.integers(0, 12), OFFSETS)
def test_months_and_years_in_one_zone_follow_one_another(year: int, month: int, minutes: int) -> None:
    """A span starts one microsecond after the one before ends: in one zone there is no gap and no overlap."""
    zone = offset(minutes)
    this = f"{year:04}-{month:02}" if month else f"{year:04}"
    after = f"{year + (month == 12):04}-{month % 12 + 1:02}" if month else f"{year + 1:04}"
    if year < 9998:
        assert stamp_span(this + zone, "published").latest + 1 == stamp_span(after + zone, "published").earliest


@given(st.integers(2, 9998))
def test_a_year_lasts_as_long_as_its_days(year: int) -> None:
    """A year has 365 or 366 days, and 26 hours more if the zone is unknown."""
    known, unknown = stamp_span(f"{year:04}Z", "published"), stamp_span(f"{year:04}", "published")
    assert known.latest + 1 - known.earliest == (365 + isleap(year)) * DAY
    assert unknown.latest + 1 - unknown.earliest == (365 + isleap(year)) * DAY + 26 * HOUR


@given(st.from_regex(r"[0-9]{4}(-[0-9]{2}){0,2}([T ][0-9:.]{5,12})?(Z|[+-][0-9]{2}:[0-9]{2})?", fullmatch=True))
@example("9999-12-31")
@example("0001-01-01T00:00:00")
def test_a_text_is_a_span_on_the_calendar_or_refused(text: str) -> None:
    """Any text gives a span or a refusal, and no other exception."""
    code, ends = "", StampSpan(FIRST_INSTANT, FIRST_INSTANT)
    try:
        ends = stamp_span(text, "published")
    except Refused as refused:
        code = refused.code
    assert code in ("", "bad_instant")
    assert FIRST_INSTANT <= ends.earliest <= ends.latest <= LAST_INSTANT
