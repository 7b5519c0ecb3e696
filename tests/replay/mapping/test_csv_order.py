"""The order of the rows of a CSV: a file in falling order is refused whole, or sorted as its map says."""

import io
import json
import random
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from tests.replay.cli.test_main import opened, run
from tests.support.maps import read_rows

MAP = b"""
offset = "Z"
[[command]]
type = "submit_forecast"
id = "{who} {start} {p}"
[command.fields]
at = "{start}"
question = "rain"
participant = "{who}"
probability = "{p}"

[[command]]
type = "withdraw_forecast"
id = "end {who} {start}"
present = ["end"]
[command.fields]
at = "{end}"
question = "rain"
participant = "{who}"
"""
SORTED = b'sort = "at"\n' + MAP
HEADER = b"who,start,end,p\n"
# Newest first, as a data download may be: each forecast of a participant ends when the next begins.
FALLING = b"""bo,2026-03-03,,0.7
ada,2026-03-03,,0.3
ada,2026-03-02,2026-03-03,0.2
bo,2026-03-02,2026-03-03,0.6
ada,2026-03-01,2026-03-02,0.1
"""


def ids(map_: bytes, rows: bytes) -> list[str]:
    """The ids of the commands that are read, in their order; the code of a refusal."""
    found: list[AnyCommand | Refused] = [said for _, said in read_rows(parse_map(map_), io.BytesIO(rows)).commands]
    return [each.code if isinstance(each, Refused) else each.id for each in found]


def test_a_file_that_mostly_falls_is_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    """Otherwise only the newest forecasts would stand: of 4 steps from one command to the next, 3 + 1 fall."""
    log, map_ = tmp_path / "log.db", tmp_path / "map.toml"
    map_.write_bytes(MAP)
    result = run("append", str(log), "-", "--map", str(map_), given=HEADER + FALLING)
    assert result.exit_code == USAGE
    assert "4 of its first 4 commands" in result.stderr
    assert 'write sort = "at" at the top of the map' in result.stderr
    assert not log.exists()


def test_a_sorted_file_is_recorded_as_the_rising_file_is(tmp_path: Path) -> None:
    """Each command goes by its own instant; the withdrawal of a row comes before the forecast that begins with it."""
    expected = [
        "ada 2026-03-01 0.1",
        "end ada 2026-03-01",
        "bo 2026-03-02 0.6",
        "ada 2026-03-02 0.2",
        "end bo 2026-03-02",
        "end ada 2026-03-02",
        "ada 2026-03-03 0.3",
        "bo 2026-03-03 0.7",
    ]
    assert ids(SORTED, HEADER + FALLING) == expected
    rising = b"".join(reversed(FALLING.splitlines(keepends=True)))
    assert ids(SORTED, HEADER + rising) == expected
    assert sorted(ids(MAP, HEADER + rising)) == sorted(expected)
    log, map_ = str(tmp_path / "log.db"), tmp_path / "map.toml"
    map_.write_bytes(SORTED)
    assert run("append", log, "-", given=opened("o", question="rain")).exit_code == FINE
    result = run("append", log, "-", "--map", str(map_), "--format", "json", given=HEADER + FALLING)
    assert (json.loads(result.stdout)[0]["accepted"], json.loads(result.stdout)[0]["refused"]) == (8, 0)
    rows = json.loads(run("log", log, "--format", "json").stdout)
    assert [row["says"] for row in rows if row["type"] == "forecast_made.v1"][-1] == "bo on rain: yes 0.7, no 0.3"


def test_equal_instants_keep_their_order_unless_the_file_falls() -> None:
    """Of two forecasts at one instant the later one stands: the second in a rising file, the first in a falling one."""
    rising = b"ada,2026-03-01,,0.1\nada,2026-03-01,,0.2\nada,2026-03-02,,0.3\n"
    falling = b"ada,2026-03-02,,0.3\nada,2026-03-01,,0.2\nada,2026-03-01,,0.1\n"
    expected = ["ada 2026-03-01 0.1", "ada 2026-03-01 0.2", "ada 2026-03-02 0.3"]
    assert ids(SORTED, HEADER + rising) == ids(SORTED, HEADER + falling) == expected


@pytest.mark.parametrize("map_", [MAP, SORTED])
@pytest.mark.parametrize(
    "rows",
    [
        b"",
        b"ada,2026-03-01,,0.1\n",
        b"ada,2026-03-02,,0.1\nbo,2026-03-01,,0.2\n",  # nobody goes back
        b"ada,2026-03-01,,0.1\nada,2026-03-01,,0.2\n",
        b"ada,2026-03-02,,0.1\nada,2026-03-01,,0.2\nada,2026-03-03,,0.3\n",  # as many steps rise as fall
        b"ada,yesterday,,0.1\nada,today,,0.2\n",
        b"ada,2026-03-02\nada,2026-03-01\n",
    ],
)
def test_a_file_that_does_not_mostly_fall_is_read(map_: bytes, rows: bytes) -> None:
    """Few rows, ties, several participants, and instants that the ledger refuses with their lines."""
    assert len(ids(map_, HEADER + rows)) == rows.count(b"\n")


def test_sorting_goes_by_the_instant_not_by_its_text() -> None:
    """Offsets differ; a row whose instant cannot be read is refused with its line, before the others."""
    rows = b"""ada,2026-03-01T02:00:00+05:00,,0.2
ada,2026-02-28T22:00:00Z,,0.3
ada,2026-02-28T15:00:00-05,,0.1
ada,soon,,0.4
short
"""
    assert ids(SORTED, HEADER + rows) == [
        "ada soon 0.4",
        "bad_csv",
        "ada 2026-02-28T15:00:00-05 0.1",
        "ada 2026-03-01T02:00:00+05:00 0.2",
        "ada 2026-02-28T22:00:00Z 0.3",
    ]


def test_a_command_never_comes_before_an_earlier_one_of_its_row() -> None:
    """An end before its beginning, as a mistaken row has it, stays behind it."""
    rows = b"ada,2026-03-03,2026-03-01,0.1\nbo,2026-03-02,,0.2\n"
    assert ids(SORTED, HEADER + rows) == ["bo 2026-03-02 0.2", "ada 2026-03-03 0.1", "end ada 2026-03-03"]


def test_any_shuffle_of_a_file_is_recorded_in_one_order() -> None:
    """With no two rows at one instant, nothing depends on the order of the file."""
    rows = [b"ada,2026-03-%02d,,0.%d\n" % (day, day) for day in range(1, 29)]
    expected = ids(SORTED, HEADER + b"".join(rows))
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        assert ids(SORTED, HEADER + b"".join(rows)) == expected


def test_what_is_refused_of_a_sorted_file_is_kept(tmp_path: Path) -> None:
    """Under the header, with the bytes of the row."""
    log, map_, kept = str(tmp_path / "log.db"), tmp_path / "map.toml", tmp_path / "kept.csv"
    map_.write_bytes(SORTED)
    assert run("append", log, "-", given=opened("o", question="rain")).exit_code == FINE
    bad = b'"ada","2026-03-01",,7\r\n'
    result = run("append", log, "-", "--map", str(map_), "--refused", str(kept), given=HEADER + FALLING + bad)
    assert (result.exit_code, kept.read_bytes()) == (FINDINGS, HEADER + bad)
