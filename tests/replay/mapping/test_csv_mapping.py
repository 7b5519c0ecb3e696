"""Any CSV as commands: what a map can say, what it does with cells, and what becomes of files that are no CSV."""

import io
import json
import os
import pty
import re
import tomllib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model import canonical, canonical_fields, commands
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import Attestation
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from forecast_ledger.replay.mapping import csv_reader
from forecast_ledger.replay.mapping.csv_cells import CellFormat, field_value, parse_template
from forecast_ledger.replay.mapping.csv_mapping import COMMAND_TYPES, parse_map
from forecast_ledger.replay.mapping.csv_reader import read_records, with_line_feeds
from forecast_ledger.replay.writing.command_lines import LONGEST_LINE
from tests.replay.cli.test_main import run
from tests.support.maps import read_rows
from tests.support.paths import ROOT
from tests.support.processes import started
from tests.support.waiting import quick

DATA = ROOT / "data" / "csv-import"
FORECASTS = b"""
[[command]]
type = "submit_forecast"
id = "{n}"
[command.fields]
at = "2026-03-01T00:00:00Z"
question = "rain"
participant = "{who}"
probability = { from = "{p}", number = "1.234,5%" }
"""


def made(said: str, **row: str) -> Any:
    """Return the value that a field of a map makes from a row."""
    return field_value(tomllib.loads(f"x = {said}")["x"], "x", CellFormat("")).read(row)


def read(map_: bytes, table: bytes) -> list[AnyCommand | Refused]:
    """The commands of a CSV."""
    return [said for _, said in read_rows(parse_map(map_), io.BytesIO(table)).commands]


@pytest.mark.parametrize(
    ("said", "row", "expected"),
    [
        ('"{a}"', {"a": "x"}, "x"),
        ('"constant"', {}, "constant"),
        ('"{a} of {b c}"', {"a": "1", "b c": "2"}, "1 of 2"),
        ('"{{{a}}}"', {"a": "1"}, "{1}"),
        ('"{a}"', {"a": "{b}"}, "{b}"),
        ('"{a}"', {"a": ""}, None),
        ('"q-{a}"', {"a": ""}, None),
        ('"{a}{b}"', {"a": "", "b": "y"}, "y"),
        ("7", {}, 7),
        ("true", {}, True),
        ("2026-03-01T00:00:00Z", {}, "2026-03-01T00:00:00+00:00"),
        ('{from = "{a}", map = {Yes = "yes"}}', {"a": "Yes"}, "yes"),
        ('{from = "{a}", map = {Yes = true}}', {"a": "Yes"}, True),
        ('{from = "{a}", number = "1.234,5"}', {"a": "-1.234.567,25"}, "-1234567.25"),
        ('{from = "{a}", number = "1.234,5"}', {"a": "1234,5"}, "1234.5"),
        ('{from = "{a}", number = "1,234.5"}', {"a": "1,234"}, "1234"),
        ('{from = "{a}", number = "1 234,5"}', {"a": "12 345"}, "12345"),
        ('{from = "{a}", number = "1234.5%"}', {"a": "62.5 %"}, "62.5e-2"),
        ('{from = "{a}", number = "+150"}', {"a": "+150"}, "0.400000000"),  # 100 / (100 + 150)
        ('{from = "{a}", number = "+150"}', {"a": "-200"}, "0.666666667"),  # 200 / (200 + 100)
        ('{from = "{a}", number = "+150"}', {"a": "100"}, "0.500000000"),
        ('{from = "{a}", number = "+150"}', {"a": "-99999999"}, "0.999999000"),
        ('{from = "{a}", number = "+150", split = "/"}', {"a": "-110/-110"}, ["0.523809524", "0.523809524"]),
        ('{from = "{a}", instant = "%d.%m.%Y", offset = "+01:00"}', {"a": "1.3.2026"}, "2026-03-01T00:00:00+01:00"),
        ('{from = "{a}", instant = "%Y-%m-%d %H %z"}', {"a": "2026-03-01 09 +0200"}, "2026-03-01T09:00:00+02:00"),
        ('{from = "{a}", offset = "-05:00"}', {"a": "2026-03-01 09:05:00"}, "2026-03-01 09:05:00-05:00"),
        ('{from = "{a}", offset = "-05:00"}', {"a": "2026-03-01 09:05:00+00:00"}, "2026-03-01 09:05:00+00:00"),
        ('{from = "{a}", split = ","}', {"a": "['red', \"green\", blue]"}, ["red", "green", "blue"]),
        ('{from = "{a}", split = ";"}', {"a": "0.1;0.9"}, ["0.1", "0.9"]),
        ('{from = "{a}", split = ";", number = "1234,5"}', {"a": "0,1; 0,9"}, ["0.1", "0.9"]),
        ('{from = "{a}", split = ",", names = ["x", "y"]}', {"a": "[0.1, 0.9]"}, {"x": "0.1", "y": "0.9"}),
        ('{from = "{a}", split = ","}', {"a": "['red, dark', \"Bo's, c\", Al's]"}, ["red, dark", "Bo's, c", "Al's"]),
        ('{from = "{a}", split = ","}', {"a": '["a\\"b", "\\u00e9\\ud83d\\ude00", "\\x41"]'}, ['a"b', "é😀", "A"]),
        ('{from = "{a}", split = ","}', {"a": "['a]', '[b', '']"}, ["a]", "[b", ""]),
        ('{from = "{a}", split = ";"}', {"a": "x (y); z (w)"}, ["x (y)", "z (w)"]),
        ('{from = "{a}", split = ";"}', {"a": "(x) y; z (w)"}, ["(x) y", "z (w)"]),
        ('{from = "{a}", split = ","}', {"a": '{a,"b, c"}'}, ["a", "b, c"]),
        ('{from = "{a}", split = ","}', {"a": "[]"}, []),
        ('{from = "{a}", split = ","}', {"a": "a,,b,"}, ["a", "", "b", ""]),
        ('{from = "{a}", split = "; "}', {"a": "'a; b'; c"}, ["a; b", "c"]),
        ('{from = "{a}", json = true}', {"a": '["a, b", 0.10, 1e-3, 7, true]'}, ["a, b", "0.10", "1e-3", "7", True]),
        ('{from = "{a}", json = true}', {"a": '{"red": 0.25, "blue": 0.75}'}, {"red": "0.25", "blue": "0.75"}),
        ('{from = "{a}", json = true}', {"a": ""}, None),
        ('{from = "{a}", json = true, names = "{b}"}', {"a": "[0.1]", "b": '["x, y"]'}, {"x, y": "0.1"}),
        ('{from = "{a}", split = ",", names = "{b}"}', {"a": "1, 2", "b": "['x', 'y, z']"}, {"x": "1", "y, z": "2"}),
        ('{from = "{a}", split = ",", names = "{b}"}', {"a": "", "b": "x"}, None),
        ('["{a}", 0, "{b}"]', {"a": "1", "b": ""}, ["1", 0, ""]),
        ('["{a}"]', {"a": ""}, None),
        ('{lower = "{a}", upper = "{b}", bins = 7}', {"a": "1", "b": "2"}, {"lower": "1", "upper": "2", "bins": 7}),
        ('{lower = "{a}", upper = "{b}", bins = 7}', {"a": "", "b": ""}, None),
        ('{lower = "{a}", upper = "{b}"}', {"a": "1", "b": ""}, {"lower": "1"}),
    ],
)  # fmt: skip
def test_a_field_is_made_of_columns_constants_and_templates(said: str, row: dict[str, str], expected: Any) -> None:
    """A text with columns in braces; or how such a text is read; what is made of empty columns alone is left out."""
    assert made(said, **row) == expected


@pytest.mark.parametrize(
    ("said", "text", "code"),
    [
        ('{from = "{a}", number = "1.234,5"}', "0.7", "bad_number"),  # a point stands between thousands there
        ('{from = "{a}", number = "1.234,5"}', "1.23,5", "bad_number"),
        ('{from = "{a}", number = "1,234.5"}', "1,2345", "bad_number"),
        ('{from = "{a}", number = "1234.5%"}', "0.7", "bad_number"),
        ('{from = "{a}", number = "1234,5"}', "1e5", "bad_number"),
        ('{from = "{a}", number = "+150"}', "0.4", "bad_number"),
        ('{from = "{a}", number = "+150"}', "99", "bad_number"),
        ('{from = "{a}", number = "+150"}', "0150", "bad_number"),
        ('{from = "{a}", number = "+150"}', "EVEN", "bad_number"),
        ('{from = "{a}", number = "+150"}', "+1٣0", "bad_number"),
        ('{from = "{a}", number = "1234,5"}', "٣", "bad_number"),
        ('{from = "{a}", instant = "%d.%m.%Y", offset = "Z"}', "2026-03-01", "bad_instant"),
        ('{from = "{a}", map = {Yes = "yes"}}', "yes", "unmapped_value"),
        ('{from = "{a}", split = ",", names = ["x", "y"]}', "[1]", "bad_csv"),
        ('{from = "{a}", split = ",", names = ["x", "x"]}', "[1, 2]", "bad_csv"),
        ('{from = "{a}", json = true, names = ["x", "y"]}', '{"x": 1, "y": 2}', "bad_csv"),
        ('{from = "{a}", split = ","}', "['a, b", "bad_csv"),  # as a spreadsheet cuts a long cell
        ('{from = "{a}", split = ","}', "[0.1, 0.2", "bad_csv"),
        ('{from = "{a}", split = ","}', "[0.1], [0.2]", "bad_csv"),
        ('{from = "{a}", split = ","}', "['a' 'b', 'c']", "bad_csv"),
        ('{from = "{a}", split = ","}', "'a', 'b", "bad_csv"),
        ('{from = "{a}", split = ","}', r"['\q']", "bad_csv"),
        ('{from = "{a}", split = ","}', r"['\U00110000']", "bad_csv"),
        ('{from = "{a}", split = ","}', r"['\ud83d']", "bad_csv"),
        ('{from = "{a}", split = ","}', "['a\\", "bad_csv"),
        ('{from = "{a}", json = true}', "['a']", "bad_csv"),
        ('{from = "{a}", json = true}', "[NaN]", "bad_csv"),
        ('{from = "{a}", json = true}', '{"x": 1, "x": 2}', "bad_csv"),
        ('{from = "{a}", json = true}', "[" * 100_000, "bad_csv"),
        ('{from = "{a}", json = true}', r'["\ud83d"]', "bad_csv"),
    ],
)
def test_a_cell_that_is_not_as_the_map_says_is_refused(said: str, text: str, code: str) -> None:
    """Nothing is guessed, because a number in another notation would be another number."""
    with pytest.raises(Refused) as refused:
        made(said, a=text)
    assert (refused.value.code, refused.value.field, refused.value.value) == (code, "x", text)


@pytest.mark.parametrize(
    ("said", "text", "expected"),
    [
        ("{at}", "2026-03-01 09:05:00.25+00", "2026-03-01 09:05:00.25+00:00"),  # as PostgreSQL writes it
        ("{at}", "2026-03-01 09:05:00+05:30", "2026-03-01 09:05:00+05:30"),
        ("{at}", "2026-03-01 09:05:00-0330", "2026-03-01 09:05:00-03:30"),
        ("{at}", "2026-03-01T09:05:00z", "2026-03-01T09:05:00Z"),
        ("{at}", "2026-03-01 09:05:00 UTC", "2026-03-01 09:05:00Z"),
        ("{at}", "2026-03-01 09:05:00", "2026-03-01 09:05:00+01:00"),
        ("{at}", "2026-03-01", "2026-03-01T00:00:00+01:00"),
        ('{from = "{at}", end_of_day = true}', "2026-02-28", "2026-03-01T00:00:00+01:00"),
        ('{from = "{at}", end_of_day = true}', "2026-02-28 09:05:00", "2026-02-28 09:05:00+01:00"),
        ('{from = "{at}", end_of_day = true, instant = "%d.%m.%Y"}', "28.2.2026", "2026-03-01T00:00:00+01:00"),
        ("2026-03-01", "", "2026-03-01T00:00:00+01:00"),
        ("2026-03-01 09:05:00", "", "2026-03-01T09:05:00+01:00"),
    ],
)  # fmt: skip
def test_an_instant_may_be_a_date_or_have_a_short_offset(said: str, text: str, expected: str) -> None:
    """A date is the beginning of its day or, if the map says so, the beginning of the next."""
    description = tomllib.loads(f"x = {said if said[0] in '{2' and said != '{at}' else repr(said)}")["x"]
    read = field_value(description, "at", CellFormat("", offset="+01:00")).read
    assert read({"at": text}) == expected


@pytest.mark.parametrize(
    ("said", "text", "code"),
    [
        ('{from = "{at}", end_of_day = true}', "9999-12-31", "bad_instant"),
        ('{from = "{at}", end_of_day = true}', "2026-02-30", "bad_instant"),
        ('{from = "{at}", end_of_day = true, instant = "%Y-%m-%d"}', "9999-12-31", "bad_instant"),
        ('{from = "{at}", end_of_day = true, instant = "%Y-%m-%d %H"}', "", "bad_map"),
    ],
)
def test_a_day_that_does_not_exist_is_refused(said: str, text: str, code: str) -> None:
    """A format with a time of day has no end of day."""
    with pytest.raises(Refused) as refused:
        field_value(tomllib.loads(f"x = {said}")["x"], "at", CellFormat("")).read({"at": text})
    assert refused.value.code == code


def test_a_date_without_an_offset_is_refused() -> None:
    """It is another day elsewhere; the map says where."""
    map_ = FORECASTS.replace(b'"2026-03-01T00:00:00Z"', b'"{n}"')
    [command] = read(map_, b"n,who,p\n2026-03-01,ada,70%\n")
    assert not isinstance(command, Refused)
    with pytest.raises(Refused, match="naive_instant"):
        canonical.canonical_content(command)


def test_a_range_without_ends_is_left_out() -> None:
    """Of other questions, a data download says only whether the ends are open; one end alone is refused."""
    map_ = b"""
[[command]]
type = "open_question"
id = "{n}"
[command.fields]
at = 2026-03-01T00:00:00Z
question = "{n}"
kind = "{kind}"
opens_at = 2026-03-01T00:00:00Z
closes_at = 2026-03-02T00:00:00Z
range = { lower = "{low}", upper = "{up}", open_lower = "{open}", bins = "{bins}" }
"""
    whole, none, half = read(
        map_, b"n,kind,low,up,open,bins\n1,numeric,0,9,True,\n2,binary,,,False,\n3,numeric,0,,,9\n"
    )
    assert isinstance(whole, commands.OpenQuestion)
    assert whole.range == commands.Range(lower="0", upper="9", open_lower=True)
    assert isinstance(none, commands.OpenQuestion)
    assert none.range is None
    assert isinstance(half, Refused)
    assert "missing required field `upper`" in str(half)


def test_rows_are_numbered() -> None:
    """From 1, blank lines not counted; if the file has a column of this name, it is that column."""
    map_ = FORECASTS.replace(b'"{n}"', b'"row {#}"')
    table = b"n,who,p\n9,ada,70%\n\n8,bo\n7,cy,70%\n"
    assert [said.id for said in read(map_, table) if not isinstance(said, Refused)] == ["row 1", "row 3"]
    assert [said.id for said in read(map_, b"#,who,p\nx,ada,70%\n") if not isinstance(said, Refused)] == ["row x"]


def test_percent_is_exact() -> None:
    """A hundredth, by the exponent: no float, no rounding."""
    assert values.read_decimal(
        made('{from = "{a}", number = "1234.5%"}', a="12.3456789%"), "p"
    ) * 100 == values.read_decimal("12.3456789", "p")


def test_the_fields_that_are_instants_are_those_of_the_commands() -> None:
    """Instants are recognised by field name, so that the map's format and offset apply to every one."""
    by_name = canonical_fields._BY_NAME | canonical_fields._ADDED
    instants = {name for name, convert in by_name.items() if convert is values.read_instant}
    assert instants == {name for name in by_name if values.is_instant(name)} >= {"at", "spot_at"}


def test_every_command_can_be_mapped() -> None:
    """Each command has the name that it has in JSON lines."""
    assert [*COMMAND_TYPES.values()] == [*get_args(AnyCommand)]


def mistaken(**parts: str) -> bytes:
    """A map in which parts of the whole are replaced."""
    text = FORECASTS.decode()
    for part, other in parts.items():
        old = next(line for line in text.splitlines() if line.startswith(part.replace("_", " ").strip()))
        text = text.replace(old, other)
    return text.encode()


@pytest.mark.parametrize(
    ("map_", "field", "says"),
    [
        (b"", "", "missing required field `command`"),
        (b"command = []", "command", "at least one"),
        (b"\xff", "", "not TOML"),
        (b"[[command]\n", "", "not TOML"),
        (b'delimiter = ";;"\n' + FORECASTS, "delimiter", "one character"),
        (b'delimiter = "\\""\n' + FORECASTS, "delimiter", "one character"),
        (b'colour = "red"\n' + FORECASTS, "", "unknown field `colour`"),
        (b'offset = "CET"\n' + FORECASTS, "offset", "write an offset as"),
        (mistaken(type='type = "forecast"'), "command[0].type", "the commands are: open_question, submit_forecast"),
        (mistaken(id=""), "command[0]", "missing required field `id`"),
        (mistaken(question=""), "command[0].fields.question", "submit_forecast needs this field"),
        (mistaken(question='topic = "rain"'), "command[0].fields.topic", "the fields are: at, question, participant"),
        (mistaken(participant='participant = "{who"'), "command[0].fields.participant", "{ is alone"),
        (mistaken(participant='participant = "who}"'), "command[0].fields.participant", "} is alone"),
        (mistaken(participant='participant = { from = "{who}", maps = {} }'), "command[0].fields.participant", "maps"),
        (
            mistaken(probability='probability = { from = "{p}", number = "1,5" }'),
            "command[0].fields.probability",
            "write 1234.5 as",
        ),
        (
            mistaken(probability='probability = { from = "{p}", map = {}, split = "," }'),
            "command[0].fields.probability",
            "exclude each other",
        ),
        (
            mistaken(probability='probability = { from = "{p}", names = ["a"] }'),
            "command[0].fields.probability",
            "names needs split",
        ),
        (b'sort = "question"\n' + FORECASTS, "sort", "an instant, such as at, in every command"),
        (b'sort = "closes_at"\n' + FORECASTS, "sort", "submit_forecast lacks it"),
        (b'encoding = "utf-16"\n' + FORECASTS, "encoding", "use one such as cp1252, latin-1 or mac_roman"),
        *[
            (b'encoding = "%s"\n' % name + FORECASTS, "encoding", "no encoding of text")
            for name in (b"rot13", b"unicode_escape", b"utf-7", b"hz", b"hex", b"../etc/passwd", b"x" * 1000)
        ],
        (mistaken(id='id = "{n}"\nabove = { n = "{" }'), "command[0].above.n", "{ is alone"),
        (mistaken(id='id = "{n}"\nabove = { n = 0.5 }'), "command[0].above[...]", "Expected `int | str`"),
        (mistaken(id='id = "{n}"\ngroup = ["n"]'), "command[0].group", "a group needs one field"),
        (
            mistaken(probability='probability = { from = "{p}", json = true, map = {} }'),
            "command[0].fields.probability",
            "exclude each",
        ),
        (
            mistaken(probability='probability = { from = "{p}", split = ",", names = "{" }'),
            "command[0].fields.probability",
            "{ is alone",
        ),
    ],
)
def test_a_map_that_says_nothing_clear_is_refused_before_a_row_is_read(map_: bytes, field: str, says: str) -> None:
    """The message names the place in the map, and the valid names."""
    with pytest.raises(Refused) as refused:
        parse_map(map_)
    assert (refused.value.code, refused.value.field, says in str(refused.value)) == ("bad_map", field, True), str(
        refused.value
    )


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"n,who\n1,ada\n", "column = 'p': the column is missing; the columns are: n, who"),
        (b"n,who,p,p\n", "the column appears twice"),
        (b"n,who,\xff\n", "not UTF-8"),
        (b'n,who,"p\n', "unexpected end of data"),
        ("n,who,p\n".encode("utf-16"), "NUL byte: is the file a CSV in UTF-8?"),
        (b"n\0,who,p\n", "NUL"),
    ],
)
def test_a_csv_whose_header_does_not_fit_is_refused_whole(table: bytes, says: str) -> None:
    """No row is read; a column that the map does not use may appear twice."""
    with pytest.raises(Refused) as refused:
        read(FORECASTS, table)
    assert (refused.value.code, says in str(refused.value)) == ("bad_csv", True), str(refused.value)
    assert len(read(FORECASTS, b"x,n,x,who,p\n,1,,ada,70%\n")) == 1


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (b"2,bo,0%,", "4 cells, the header has 3"),
        (b"2,bo", "2 cells, the header has 3"),
        (b'2,"b"o,0%', "expected after"),
        (b"2,bo\0,0%", "NUL"),
        (b"2,\xff,0%", "not UTF-8"),
        (b"2," + b"x" * 200_000 + b",0%", "field larger than field limit"),
        (b"2,bo," + b"x" * (LONGEST_LINE + 1), f"a line has more than {LONGEST_LINE} bytes"),
        (b'2,"bo\r2,bo', "unexpected end of data"),
        (b"2,b\ro,0%", "new-line character"),
        (b"\xef\xbb\xbf2,bo,x", "bad_number"),
    ],
)
def test_a_hostile_row_is_refused_with_its_line(row: bytes, says: str) -> None:
    """If the end of a record cannot be found, reading stops with a message; otherwise the later rows count."""
    table = b"\xef\xbb\xbfn,who,p\r\n1,ada,70%\r\n" + row + b"\r\n3,cy,30%\r\n"
    found = list(read_rows(parse_map(FORECASTS), io.BytesIO(table)).commands)
    assert found[1][0].line == 3
    assert isinstance(found[1][1], Refused)
    assert says in str(found[1][1])
    assert str(found[1][1]).isprintable()
    goes_on = any(word in says for word in ("cells", "bad_number"))
    assert (len(found), "are not read" in str(found[1][1])) == (3 if goes_on else 2, not goes_on)


def test_blank_lines_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to a million may follow each other; where there are more, reading stops, and the message names the limit."""
    monkeypatch.setattr(csv_reader, "MOST_BLANK", 50)
    for count in (50, 51):
        found = read(FORECASTS, b"n,who,p\n1,ada,70%\n" + count * b"\r\n" + b"2,bo,30%\n")
        assert (len(found), isinstance(found[1], Refused)) == (2, count == 51)
    assert "more than 50 blank lines follow each other; the lines after 53 are not read" in str(found[1])


@quick(10)
def test_a_quote_that_is_never_closed_is_given_up_soon() -> None:
    """Not after the rest of the file, however long: after a cell, or a row, of more than can be meant."""

    class Endless(io.BytesIO):
        """A header, then lines that each end a quoted cell and begin another."""

        def readline(self, size: int | None = -1, /) -> bytes:
            return super().readline(size) or b'x","' + b"y" * 50_000 + b"\n"

    [header, (line, refused)] = read_records(Endless(b'n,who\n1,"\n'))
    assert (header, line) == ((1, ["n", "who"]), 2)
    assert "is a quotation mark missing?" in str(refused)


def test_cells_lose_their_outer_spaces_and_may_hold_lines() -> None:
    """A row is told by its first line, whatever it holds."""
    found = list(read_records(io.BytesIO(b'n , who\n 1 ,"a\nb"\n\n2, ada\n')))
    assert found == [(1, ["n", "who"]), (2, ["1", "a\nb"]), (5, ["2", "ada"])]


@pytest.mark.parametrize("begin", [b"PK\x03\x04\x14\0", b"\x1f\x8b\x08\0"])
def test_a_packed_file_is_said_to_be_packed(begin: bytes) -> None:
    """The remedy is a command."""
    [(line, refused)] = read_records(io.BytesIO(begin + b"\n" * 9))
    assert line == 1
    assert "the file is packed; unpack it, or pipe it: unzip -p FILE" in str(refused)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b"a,b\r1,2\r", [["a", "b"], ["1", "2"]]),
        (b'a,b\r1,"2\n3"\r4,5', [["a", "b"], ["1", "2\n3"], ["4", "5"]]),
        (b"a,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]]),
        (b"a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
        (b"\xef\xbb\xbfa,b\r1,2", [["a", "b"], ["1", "2"]]),
        (b"", []),
    ],
)
def test_a_line_ends_as_the_header_does(text: bytes, rows: list[list[str]]) -> None:
    """Line feeds, both, or carriage returns alone, which end every line of such a file."""
    assert [cells for _, cells in read_records(with_line_feeds(io.BufferedReader(io.BytesIO(text))))] == rows
    assert with_line_feeds(without := io.BytesIO(text)) is without  # nothing can be looked into


def test_a_row_can_be_several_commands_or_none() -> None:
    """`where` names the texts a column may have, `present` the columns that must have one."""
    map_, table = ((DATA / f"forecasts.{ending}").read_bytes() for ending in ("toml", "csv"))
    found = list(read_rows(parse_map(map_), io.BytesIO(table)).commands)
    assert [(place.line, place.command) for place, _ in found] == [
        (2, "submit_forecast"),
        (3, "submit_forecast"),
        (3, "withdraw_forecast"),
        (4, "submit_forecast"),
        (4, "withdraw_forecast"),
        *((line, "submit_forecast") for line in range(5, 9)),
    ]


@pytest.mark.parametrize("errors", ["text", "json"])
def test_a_refusal_names_the_line_the_command_the_column_and_the_field(tmp_path: Path, errors: str) -> None:
    """The map, the parser or the ledger may refuse; the other commands are recorded."""
    log, map_ = str(tmp_path / "log.db"), tmp_path / "map.toml"
    map_.write_bytes(FORECASTS)
    table = b"n,who,p\n1,ada,70%\n2,,70%\n3,cy,0.7\n,di,70%\n5,ed,170%\n"
    opened = (
        b'{"id": "o", "type": "open_question", "at": "2026-03-01T00:00:00Z", "question": "rain", "kind": "binary",'
        b' "opens_at": "2026-03-01T00:00:00Z", "closes_at": "2026-03-05T00:00:00Z"}'
    )
    assert run("append", log, "-", given=opened).exit_code == FINE
    result = run("append", log, "-", "--map", str(map_), "--errors", errors, "--format", "json", given=table)
    counts = json.loads(result.stdout)[0]
    assert (result.exit_code, counts["accepted"], counts["refused"]) == (FINDINGS, 1, 4)
    expected = [
        (3, "", "malformed", ""),
        (4, "'p'", "bad_number", "probability"),
        (5, "'n'", "id_empty", "id"),
        (6, "'p'", "out_of_range", "probability"),
    ]
    if errors == "json":
        told = [json.loads(line) for line in result.stderr.splitlines()]
        assert [each["line"] for each in told] == [line for line, *_ in expected]
        assert [each["code"] for each in told] == [code for _, _, code, _ in expected]
        assert [each.get("columns") for each in told] == [None, ["p"], ["n"], ["p"]]
        assert {each["command"] for each in told} == {"submit_forecast"}
    else:
        for line, column, code, field in expected:
            where = f"line {line}, submit_forecast{column and f', column {column}'}: {code}: {field}"
            assert where in result.stderr


def test_a_part_of_a_field_is_of_the_fields_columns() -> None:
    """`range.lower` of what the map says of `range`, `cdf[3]` of `cdf`."""
    place = InputLocation(1, "open_question", {"range": ["Lower", "Upper"], "cdf": ["CDF"]})
    assert place.columns_of(Refused("bad_number", "range.lower")) == ["Lower", "Upper"]
    assert place.columns_of(Refused("bad_number", "cdf[3]")) == ["CDF"]
    assert not place.columns_of(Refused("bad_number", "other"))
    assert "column 'Lower', 'Upper': bad_number" in place.describe(Refused("bad_number", "range.lower"))


def test_what_a_map_makes_is_what_a_line_of_json_says(tmp_path: Path) -> None:
    """Numbers, true and false are read from text; so the two have one content, and one is a duplicate of the other."""
    enrol = b'[[command]]\ntype = "enrol_participant"\nid = "{n}"\n[command.fields]\nat = "{t}"\ncontest = "cup"\n'
    enrol += b'participant = "{who}"\nbot = "{bot}"\n'
    [mapped_one] = read(b'offset = "Z"\n' + enrol, b"n,t,who,bot\n1,2026-03-01 00:00:00,ada,True\n")
    line = b'{"id": "1", "type": "enrol_participant", "at": "2026-03-01T00:00:00Z", "contest": "cup",'
    line += b' "participant": "ada", "bot": true}'
    assert not isinstance(mapped_one, Refused)
    assert canonical.canonical_content(mapped_one) == canonical.canonical_content(commands.read(line))
    naive = read(enrol, b"n,t,who,bot\n1,2026-03-01 00:00:00,ada,True\n")[0]
    assert isinstance(naive, commands.EnrolParticipant)
    with pytest.raises(Refused, match="naive_instant"):
        canonical.canonical_content(naive)


def test_the_example_gives_the_scores_that_its_story_tells(tmp_path: Path) -> None:
    """Baseline scores, 100 x (1 + log2 p) for yes: 0.8 all the time; 0.4 for half of it; 0.5, then 0.9."""
    log = str(tmp_path / "log.db")
    assert run("append", log, str(DATA / "contest.jsonl")).exit_code == FINE
    for name, table in (("questions", "questions"), ("forecasts", "forecasts"), ("resolutions", "questions")):
        arguments = ("append", log, "--map", str(DATA / f"{name}.toml"), str(DATA / f"{table}.csv"), "--format", "json")
        first = json.loads(run(*arguments).stdout)[0]
        again = json.loads(run(*arguments).stdout)[0]
        assert (first["refused"], again["accepted"], again["duplicate"]) == (0, 0, first["accepted"])
    rows = json.loads(run("table", log, "scores", "--format", "json").stdout)
    scores = {(row["question"], row["participant"]): row["score"] for row in rows}
    assert scores["101", "ada"] == "67.807190511"
    assert scores["101", "bo"] == "-16.096404744"
    assert scores["101", "cy"] == "42.399845328"
    assert {question for question, _ in scores} == {"101", "102", "103"}  # the fourth is annulled


def test_a_map_may_begin_with_the_mark_of_its_encoding() -> None:
    """Some editors write a byte order mark, and their own line ends."""
    map_ = b"\xef\xbb\xbf" + FORECASTS.replace(b"\n", b"\r\n")
    assert read(map_, b"n,who,p\n1,ada,70%\n") == read(FORECASTS, b"n,who,p\n1,ada,70%\n")


def test_a_map_or_a_csv_that_is_no_use_is_told_with_exit_code_two(tmp_path: Path) -> None:
    """No ledger is created."""
    map_ = tmp_path / "map.toml"
    assert run("append", str(tmp_path / "a.db"), "-", "--map", str(map_)).exit_code == USAGE
    map_.write_bytes(b"nothing")
    assert "bad_map" in run("append", str(tmp_path / "a.db"), "-", "--map", str(map_)).stderr
    map_.write_bytes(FORECASTS)
    result = run("append", str(tmp_path / "a.db"), "-", "--map", str(map_), "--errors", "json", given=b"a,b\n")
    assert (result.exit_code, json.loads(result.stderr)["code"]) == (USAGE, "bad_csv")
    assert not (tmp_path / "a.db").exists()


def test_a_large_csv_is_read_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row by row: three thousand take no more than the thousand from which the order of the file is judged here."""
    monkeypatch.setattr(csv_reader, "LOOKED_AT", 1_000)

    class Many(io.RawIOBase):
        """A header and rows."""

        def __init__(self) -> None:
            self.rows = iter([b"n,who,p\n"])
            self.left = 3_000

        def readline(self, _size: int | None = -1, /) -> bytes:
            self.left -= 1
            return next(self.rows, b"%d,ada,70%%\n" % self.left if self.left > 0 else b"")

    def through() -> Iterator[int]:
        for _, said in read_rows(parse_map(FORECASTS), Many()).commands:  # type: ignore[arg-type]
            assert not isinstance(said, Refused)
            yield 1

    tracemalloc.start()
    count = sum(through())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 2_998
    assert peak < 2**20


def test_braces_alone_are_refused_with_what_to_write() -> None:
    """Doubled they are themselves."""
    with pytest.raises(Refused, match=r"write \{\{ for the character itself"):
        parse_template("{", "id")
    assert msgspec.json.decode(parse_template('{{"a": {a}}}', "response").read({"a": "1"})) == {"a": 1}


def test_the_map_of_the_guide_says_what_it_says_it_does() -> None:
    """Two rows are worked out by hand: formats of the map and of one field, a constant, a list, parts."""
    guide = (DATA.parent.parent / "docs" / "csv.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```toml tips.toml\n(.*?)```", guide, re.DOTALL)
    table = """Sheet;No;Kind;Given;Question;Who;Yes;Chances;Note
s;1;binary;02.03.2026 09:30;rain;Ada L.;62,5%;;
s;2;binary;02.03.2026 09:30;rain;Bo;;;
s;3;colours;02.03.2026 09:30;;Cy;;[0.25 / 0.75];seen
s;4;binary;02.03.2026 09:30;rain;Di;1.000%;;
"""
    one, two, three = read(block.encode(), table.encode())
    assert one == commands.SubmitForecast(
        id="s/1", at="2026-03-02T09:30:00+01:00", question="rain", participant="ada", probability="62.5e-2"
    )
    assert isinstance(two, commands.SubmitForecast)
    assert (two.id, two.at, two.question, two.participant) == ("s/3", "2026-03-02T09:30:00+02:00", "colour", "Cy")
    assert two.probabilities == {"red": "0.25", "blue": "0.75"}
    assert two.attestation == Attestation(note="seen", restricted_sources=False)
    assert isinstance(three, Refused)
    assert (three.code, three.field, three.value) == ("unmapped_value", "participant", "Di")


def test_a_csv_is_read_once_beside_a_bar(tmp_path: Path) -> None:
    """On a terminal the lines are counted first."""
    assert run("append", str(tmp_path / "log.db"), str(DATA / "contest.jsonl")).exit_code == FINE
    asked = ["append", str(tmp_path / "log.db"), "--map", str(DATA / "questions.toml"), str(DATA / "questions.csv")]
    (leader, follower), (reading, writing) = pty.openpty(), os.pipe()
    child = started([*asked, "--format", "json"], [writing, follower])
    child.join()
    os.close(leader)
    assert child.exitcode == FINE
    with os.fdopen(reading) as printed:
        [counts] = json.load(printed)
    assert (counts["accepted"], counts["refused"]) == (8, 0)


@pytest.mark.parametrize("at", ['"1999-01-01T00:00:00Z"', "1999-01-01T00:00:00Z", '"1999-01-01"', "1999-01-01"])
def test_a_constant_instant_is_written_as_in_rfc_3339_whatever_the_cells_are(at: str) -> None:
    """In quotes or not; a date has the offset of the map."""
    map_ = f"""
instant = "%d.%m.%Y"
offset = "Z"
[[command]]
type = "open_contest"
id = "{{n}}"
[command.fields]
at = {at}
contest = "c"
rules = "baseline"
"""
    [(_, command)] = read_rows(parse_map(map_.encode()), io.BytesIO(b"n\n1\n")).commands
    assert not isinstance(command, Refused)
    assert read_instant(command.at) == read_instant("1999-01-01T00:00:00Z")


def test_a_row_of_which_the_map_makes_no_command_is_counted(tmp_path: Path) -> None:
    """Each command of the map asks for a cell that the row does not have: five lines are named, the others counted."""
    map_ = '[[command]]\ntype = "close_question"\nid = "{n}"\npresent = ["a"]\n'
    map_ += '[command.fields]\nat = "{at}"\nquestion = "{a}"\n'
    rows = b"n,at,a\n1,2026-03-01T00:00:00Z,q\n" + b"".join(b"%d,,\n" % number for number in range(2, 9))
    (tmp_path / "map.toml").write_text(map_)
    (tmp_path / "rows.csv").write_bytes(rows)
    done = run("append", str(tmp_path / "log.db"), str(tmp_path / "rows.csv"), "--map", str(tmp_path / "map.toml"))
    assert "the map makes no command of 7 rows, which fail `where`, `present` or `above` of every" in done.stderr
    assert "command: line 3, 4, 5, 6, 7 and 2 more" in done.stderr
    one = read_rows(parse_map(map_.encode()), io.BytesIO(rows[: rows.index(b"2,,")]))
    assert len(list(one.commands)) == 1
    assert one.left_out.rows == 0
