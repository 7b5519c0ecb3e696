"""Long tables: rows of one forecast, each with a level and a value, put together."""

import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import Points, SubmitForecast
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.cli.main import FINDINGS, FINE
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from tests.replay.cli.test_main import opened, run
from tests.support.maps import read_rows

# The columns are those of a hub's model output.
MAP = b"""
[[command]]
type = "submit_forecast"
id = "{model} {place}"
where = { type = "quantile" }
group = ["model", "place"]
[command.fields]
at = "{at}"
question = "{place}"
participant = "{model}"
quantiles = { level = "{id}", value = "{value}", levels = [0.1, 0.5, 0.9] }

[[command]]
type = "submit_forecast"
id = "{model} {place}"
where = { type = "pmf" }
group = ["model", "place"]
[command.fields]
at = "{at}"
question = "{place}"
participant = "{model}"
probabilities = { level = { from = "{id}", map = { up = "rise", down = "fall" } }, value = "{value}" }
"""
HEADER = b"model,place,at,type,id,value\n"
AT = "2026-03-01T00:00:00Z"


def quantile(model: str, level: str, value: str, place: str = "oslo", at: str = AT) -> bytes:
    """A row that has a quantile."""
    return f"{model},{place},{at},quantile,{level},{value}\n".encode()


def read(*rows: bytes) -> list[tuple[InputLocation, SubmitForecast | Refused]]:
    """The commands of these rows, with their places."""
    found = []
    for place, said in read_rows(parse_map(MAP), io.BytesIO(HEADER + b"".join(rows))).commands:
        assert isinstance(said, SubmitForecast | Refused)
        found.append((place, said))
    return found


def test_samples_of_a_group_need_no_levels() -> None:
    """Each row has one, under an id of its own; an id that is there twice is refused with its lines."""
    described = MAP.replace(
        b'quantiles = { level = "{id}", value = "{value}", levels = [0.1, 0.5, 0.9] }',
        b'samples = { level = "{id}", value = "{value}" }',
    )
    rows = [quantile("north", "s1", "14"), quantile("south", "s1", "9"), quantile("north", "s2", "12.5")]
    rows.append(quantile("south", "s1", "8"))
    commands = read_rows(parse_map(described), io.BytesIO(HEADER + b"".join(rows))).commands
    [north, south] = [said for _, said in commands]
    assert isinstance(north, SubmitForecast)
    assert [str(each) for each in north.samples or ()] == ["14", "12.5"]
    assert isinstance(south, Refused)
    assert "line 3 and line 5 both have the level s1" in str(south)


def test_rows_of_a_group_are_points_in_the_order_of_their_levels() -> None:
    """Each forecast has the levels that its rows have; the map names the method."""
    fields = b'points = { level = "{id}", value = "{value}", method = "linear" }'
    by_points = MAP.replace(b'quantiles = { level = "{id}", value = "{value}", levels = [0.1, 0.5, 0.9] }', fields)
    rows = [quantile("north", "0.9", "31"), quantile("south", "0.50", "20"), quantile("north", "1e-1", "14")]
    found = [said for _, said in read_rows(parse_map(by_points), io.BytesIO(HEADER + b"".join(rows))).commands]
    assert all(isinstance(said, SubmitForecast) for said in found)
    assert [said.points for said in found if isinstance(said, SubmitForecast)] == [
        Points(levels=("1e-1", "0.9"), quantiles=("14", "31"), method="linear"),
        Points(levels=("0.50",), quantiles=("20",), method="linear"),
    ]
    [(place, refused)] = read_rows(
        parse_map(by_points), io.BytesIO(HEADER + quantile("north", "0.1", "14") + quantile("north", "mean", "20"))
    ).commands
    assert isinstance(refused, Refused)
    assert (refused.code, refused.field) == ("bad_csv", "points")
    assert "the level 'mean' is not a number" in place.describe(refused)


@pytest.mark.parametrize(
    ("long", "says"),
    [
        (b'points = { level = "{id}", value = "{value}" }', "give `method`"),
        (b'quantiles = { level = "{id}", value = "{value}", levels = [0.5], method = "linear" }', "only `points` have"),
        (b'points = { level = "{id}", value = "{value}", levels = [0.5, 0.50], method = "linear" }', "there twice"),
    ],
)
def test_only_points_have_a_method_in_a_map(long: bytes, says: str) -> None:
    """The map is refused before a row is read."""
    fields = b'quantiles = { level = "{id}", value = "{value}", levels = [0.1, 0.5, 0.9] }'
    with pytest.raises(Refused, match=says) as refused:
        parse_map(MAP.replace(fields, long))
    assert refused.value.code == "bad_map"


def test_rows_of_a_group_are_one_command_in_the_order_of_its_levels() -> None:
    """The rows may be apart and in any order; a level is the same number however it is written."""
    rows = [
        quantile("b", "0.9", "30"),
        quantile("a", "0.500", "2"),
        b"a,rome,2026-03-01T00:00:00Z,pmf,up,0.75\n",
        quantile("b", "5e-1", "20"),
        quantile("a", "0.1", "1"),
        b"a,rome,2026-03-01T00:00:00Z,mean,,7\n",
        quantile("b", ".1".rjust(3, "0"), "10"),
        b"a,rome,2026-03-01T00:00:00Z,pmf,down,0.25\n",
        quantile("a", "0.9", "3"),
    ]
    (first, b), (second, a), (third, rome) = read(*rows)
    assert [place.where() for place in (first, second, third)] == [
        "line 2 and 2 more",
        "line 3 and 2 more",
        "line 4 and 1 more",
    ]
    assert b == SubmitForecast(id="b oslo", at=AT, question="oslo", participant="b", quantiles=("10", "20", "30"))
    assert a == SubmitForecast(id="a oslo", at=AT, question="oslo", participant="a", quantiles=("1", "2", "3"))
    assert isinstance(rome, SubmitForecast)
    assert rome.probabilities == {"rise": "0.75", "fall": "0.25"}


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([("0.1", "1"), ("0.9", "3")], "lines 2-3: no level 0.5"),
        ([("0.1", "1")], "line 2: no level 0.5, 0.9"),
        ([("0.1", "1"), ("0.5", "2"), ("0.50", "2"), ("0.9", "3")], "line 3 and line 4 both have the level 0.50"),
        ([("0.1", "1"), ("0.5", "2"), ("0.7", "2"), ("0.9", "3")], "line 4 has the level 0.7, which the map's"),
        ([("0.1", "1"), ("median", "2"), ("0.9", "3")], "line 3 has the level median"),
        ([("0.1", "1"), ("0.5", ""), ("0.9", "3")], "line 3 has no value"),
        ([("0.1", "1"), ("", "2"), ("0.9", "3")], "line 3 has no level"),
        ([("0.1", "1"), ("NaN", "2"), ("sNaN", "3")], "line 3 has the level NaN"),
        ([("0.1", "1"), ("1e999999999", "2")], "line 3 has the level 1e999999999"),
    ],
)
def test_a_group_that_is_not_whole_is_refused_with_its_lines(rows: list[tuple[str, str]], says: str) -> None:
    """A level is missing, unknown or there twice, or has no value; the other groups count."""
    whole = [quantile("z", level, "1") for level in ("0.1", "0.5", "0.9")]
    (place, refused), (_, other) = read(*(quantile("a", level, value) for level, value in rows), *whole)
    assert isinstance(refused, Refused)
    assert (place.line, refused.code, says in refused.detail) == (2, "bad_csv", True), refused.detail
    assert isinstance(other, SubmitForecast)


def test_rows_of_a_group_say_the_same_beside_level_and_value() -> None:
    """Otherwise the first row would decide without a word."""
    rows = [quantile("a", "0.1", "1"), quantile("a", "0.5", "2", at="2026-03-02T00:00:00Z"), quantile("a", "0.9", "3")]
    [(_, refused)] = read(*rows)
    assert isinstance(refused, Refused)
    assert (refused.code, refused.field) == ("bad_csv", "at")
    assert "line 3 has another value than line 2" in str(refused)


def test_a_cell_of_a_group_is_refused_with_its_line() -> None:
    """The place is the group's first line, so that the message names the row at fault."""
    [(_, refused)] = read(b"a,rome,2026-03-01T00:00:00Z,pmf,up,1\n", b"a,rome,2026-03-01T00:00:00Z,pmf,sideways,0\n")
    assert isinstance(refused, Refused)
    assert (refused.code, "line 3: the field's `map` has only" in str(refused)) == ("unmapped_value", True)


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ('probability = { level = "{id}", value = "{value}" }', "takes neither a list nor values by name"),
        ('quantiles = { level = "{id}", value = "{value}" }', "give `levels`"),
        ('quantiles = { level = "{id}", value = "{value}", levels = [0.5, "0.50"] }', "a level is there twice"),
        ('quantiles = { level = "{id}", value = "{value}", levels = 3 }', "Expected `array"),
        ('quantiles = { level = "{id}", value = "{value}", names = [] }', "names"),
        ('quantiles = { level = "{", value = "{value}", levels = [] }', "{ is alone"),
    ],
)
def test_a_long_field_that_says_nothing_clear_is_refused(field: str, says: str) -> None:
    """Before a row is read."""
    lines = MAP.decode().split("[[command]]")[1].splitlines()
    lines = [field if line.startswith("quantiles") else line for line in lines]
    with pytest.raises(Refused) as refused:
        parse_map("\n".join(["[[command]]", *lines]).encode())
    assert (refused.value.code, says in str(refused.value)) == ("bad_map", True), str(refused.value)


def test_all_rows_of_a_refused_group_are_kept(tmp_path: Path) -> None:
    """Mended and sent again, the group is recorded."""
    log, map_, kept = str(tmp_path / "log.db"), tmp_path / "map.toml", tmp_path / "kept.csv"
    map_.write_bytes(MAP)
    levels = {"lower": 0, "upper": 100, "levels": [0.1, 0.5, 0.9]}
    assert run("append", log, "-", given=opened("o", question="oslo", kind="numeric", range=levels)).exit_code == FINE
    bad = [quantile("a", level, "9") for level in ("0.1", "0.9")]
    good = [quantile("b", level, "8") for level in ("0.1", "0.5", "0.9")]
    falls = [quantile("c", level, value) for level, value in (("0.1", "3"), ("0.5", "2"), ("0.9", "1"))]
    table = HEADER + bad[0] + b"".join(good) + bad[1] + b"".join(falls)
    result = run("append", log, "-", "--map", str(map_), "--refused", str(kept), given=table)
    assert (result.exit_code, kept.read_bytes()) == (FINDINGS, HEADER + b"".join(bad + falls))
    assert "line 7 and 2 more, submit_forecast" in result.stderr
    kept.write_bytes(HEADER + b"".join(bad) + quantile("a", "0.5", "9"))
    assert run("append", log, str(kept), "--map", str(map_)).exit_code == FINE


def test_a_row_of_a_long_table_takes_less_memory_than_promised() -> None:
    """About 300 bytes, since a group may end at the end of the file."""
    rows = 3_000

    def table() -> Iterator[bytes]:
        yield HEADER
        for number in range(rows):
            yield quantile(f"model{number // 3}", ("0.1", "0.5", "0.9")[number % 3], f"{number}.5")

    text = io.BytesIO(b"".join(table()))
    tracemalloc.start()
    found = list(read_rows(parse_map(MAP), text).commands)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == rows / 3
    assert peak < 900 * rows  # with the commands themselves
