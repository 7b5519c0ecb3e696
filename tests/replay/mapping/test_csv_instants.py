"""Local times of a zone whose clocks change: https://www.iana.org/time-zones has when."""

import sys
import zoneinfo
from collections.abc import Iterator

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.mapping.csv_cells import CellFormat, field_value
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from forecast_ledger.replay.mapping.csv_texts import InstantFormat, instant_reader

AMERICAN = "%m/%d/%Y %H:%M:%S"
MAP = b"""
[[command]]
type = "submit_forecast"
id = "{who}"
[command.fields]
at = "{at}"
question = "a"
participant = "{who}"
probability = "{p}"
"""


@pytest.mark.parametrize(
    ("zone", "form", "text", "expected"),
    [  # summer time ends on October 25 of 2026 in the European Union, on November 1 in the United States
        ("Europe/Berlin", AMERICAN, "10/26/2026 12:30:00", "2026-10-26T11:30:00Z"),
        ("Europe/Berlin", AMERICAN, "10/24/2026 12:30:00", "2026-10-24T10:30:00Z"),
        ("America/New_York", AMERICAN, "10/26/2026 12:30:00", "2026-10-26T16:30:00Z"),
        ("Europe/Berlin", "", "2026-03-29T03:59:59.9999995", "2026-03-29T02:00:00Z"),
        ("Europe/Berlin", "", "2026-03-29 03:00:00.5", "2026-03-29T01:00:00.500000Z"),
        ("Europe/Berlin", "", "2026-10-25 01:59:59", "2026-10-24T23:59:59Z"),
        ("Europe/Berlin", "", "2026-10-25 03:00:00", "2026-10-25T02:00:00Z"),
        ("Europe/Berlin", "", "2026-03-29", "2026-03-28T23:00:00Z"),
        ("Asia/Kathmandu", "", "2026-03-29 12:00:00", "2026-03-29T06:15:00Z"),
        ("Europe/Berlin", "", "2026-10-25 02:30:00+01:00", "2026-10-25 02:30:00+01:00"),
        ("Europe/Berlin", "", "2026-10-25 02:30:00Z", "2026-10-25 02:30:00Z"),
        ("Europe/Berlin", "%Y-%m-%d %H:%M %z", "2026-10-25 02:30 +0100", "2026-10-25T02:30:00+01:00"),
        ("Europe/Berlin", "unix", "0", "1970-01-01T00:00:00Z"),
    ],
)
def test_a_local_time_is_read_by_the_clock_of_its_zone(zone: str, form: str, text: str, expected: str) -> None:
    """Its offset is the one on that day; a time that has an offset of its own keeps it."""
    assert instant_reader(InstantFormat(form, "", zone), "at")(text) == expected


@pytest.mark.parametrize(
    ("zone", "text", "says"),
    [
        ("Europe/Berlin", "2026-10-25 02:00:00", "twice"),
        ("Europe/Berlin", "2026-10-25 02:59:59.999999", "twice"),
        ("Europe/Berlin", "2026-03-29 02:00:00", "never"),
        ("Europe/Berlin", "2026-03-29 02:59:59", "never"),
        ("America/New_York", "2026-11-01 01:30:00", "twice"),
        ("Australia/Lord_Howe", "2026-10-04 02:15:00", "never"),  # by half an hour
        ("Pacific/Apia", "2011-12-30", "never"),  # a whole day
        ("Europe/Berlin", "2026-02-30 12:00:00", "not an RFC 3339 instant"),
        ("Europe/Berlin", "2026-03-02 12:00", "not an RFC 3339 instant"),  # which has seconds
        ("Asia/Tokyo", "0001-01-01 00:00:00", ""),
    ],
)
def test_a_time_that_clocks_show_twice_or_never_is_refused(zone: str, text: str, says: str) -> None:
    """The message names the zone and what to write instead."""
    with pytest.raises(Refused) as refused:
        instant_reader(InstantFormat("", "", zone), "at")(text)
    assert refused.value.code == "bad_instant"
    assert says in str(refused.value)
    if says in {"twice", "never"}:
        assert f"clocks in {zone} show this time {says}" in str(refused.value)
        assert "write the offset behind the time" in str(refused.value)


def test_the_zone_or_offset_of_a_cell_comes_before_that_of_the_map() -> None:
    """Whichever of the two the map has."""
    in_zone, by_offset = CellFormat("", zone="Europe/Berlin"), CellFormat("", offset="-05:00")
    cases = [
        ({}, in_zone, "2026-10-26T11:30:00Z"),
        ({"offset": "+02:00"}, in_zone, "2026-10-26 12:30:00+02:00"),
        ({"zone": "Europe/Berlin"}, by_offset, "2026-10-26T11:30:00Z"),
        ({"zone": "Europe/Athens"}, in_zone, "2026-10-26T10:30:00Z"),
    ]
    for own, usual, expected in cases:
        assert field_value({"from": "{a}", **own}, "at", usual).read({"a": "2026-10-26 12:30:00"}) == expected
    assert field_value("2026-10-26 12:30:00", "at", in_zone).read({}) == "2026-10-26T11:30:00Z"


@pytest.fixture
def no_database(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a database of time zones, and without the package that has one."""
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([])
    zoneinfo.ZoneInfo.clear_cache()
    with monkeypatch.context() as without:
        for name in ("tzdata", "tzdata.zoneinfo", "tzdata.zoneinfo.Europe"):
            without.setitem(sys.modules, name, None)
        yield
    zoneinfo.reset_tzpath(before)


@pytest.mark.parametrize("zone", ["Europe/Berlyn", "Europe", "../etc", "/etc/localtime", "CET\0", "x" * 300, "\udc80"])
def test_a_zone_that_is_none_is_refused_when_the_map_is_read(zone: str) -> None:
    """Before any row; the message says how to get the database."""
    with pytest.raises(Refused, match="pip install tzdata") as refused:
        instant_reader(InstantFormat("", "", zone), "at")
    assert (refused.value.code, refused.value.field) == ("bad_map", "at.zone")


def test_a_machine_without_time_zones_says_so(no_database: None) -> None:
    """Windows has no database of its own."""
    with pytest.raises(Refused, match="pip install tzdata"):
        parse_map(b'zone = "Europe/Berlin"' + MAP)


@pytest.mark.parametrize(
    "text",
    [
        b'zone = "Europe/Berlin"\noffset = "+01:00"' + MAP,
        MAP.replace(b'"{at}"', b'{ from = "{at}", zone = "Europe/Berlin", offset = "Z" }'),
    ],
)
def test_offset_and_zone_exclude_each_other(text: bytes) -> None:
    """At the top of a map or in a description."""
    with pytest.raises(Refused, match="give offset or zone, not both"):
        parse_map(text)
