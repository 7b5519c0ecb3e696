"""Long maps of values are in a CSV beside the map: found there alone, and refused where they are not clear."""

import io
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import SubmitForecast
from forecast_ledger.replay.cli.main import FINDINGS
from forecast_ledger.replay.mapping import csv_reader
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from tests.replay.cli.test_main import run
from tests.support.maps import read_rows

MAP = """
[[command]]
type = "submit_forecast"
id = "{who}"
[command.fields]
at = "2026-03-01T00:00:00Z"
question = { from = "{place}", map = "places.csv" }
participant = "{who}"
attestation = { note = { from = "{place}", map = "places.csv" }, restricted_sources = false }
probability = "0.5"
"""
TABLE = b"who,place\nada,Oslo (NO)\nbo,Bergen\n"


def mapped(folder: Path, map_: str = MAP) -> list[object]:
    """Question and note of each forecast, or the code of its refusal."""
    found = read_rows(parse_map(map_.encode(), folder), io.BytesIO(TABLE)).commands
    return [
        (made.question, made.attestation.note) if isinstance(made, SubmitForecast) and made.attestation else str(made)
        for _, made in found
    ]


def test_values_are_read_from_a_csv_beside_the_map(tmp_path: Path) -> None:
    """A row of the file for each text; with a mark of its encoding and quotes, as spreadsheets write it."""
    (tmp_path / "places.csv").write_bytes('\ufefftext,value\r\n"Oslo (NO)",oslo\r\n"Bergen", bergen \r\n'.encode())
    assert mapped(tmp_path) == [("oslo", "oslo"), ("bergen", "bergen")]


def test_values_of_the_items_of_a_list_are_read_too(tmp_path: Path) -> None:
    """Wherever in a field a `map` is, it may be a file."""
    (tmp_path / "places.csv").write_text("text,value\nOslo (NO),oslo\nBergen,bergen\n")
    listed = MAP.replace('probability = "0.5"', 'cdf = [{ from = "{place}", map = "places.csv" }]')
    found = read_rows(parse_map(listed.encode(), tmp_path), io.BytesIO(TABLE)).commands
    assert [made.cdf for _, made in found if isinstance(made, SubmitForecast)] == [("oslo",), ("bergen",)]


def test_a_text_that_the_file_lacks_is_refused_and_few_are_named(tmp_path: Path) -> None:
    """Twenty of the texts are named, and the others counted: a message is for a person."""
    (tmp_path / "places.csv").write_text("text,value\n" + "".join(f"p{n},x\n" for n in range(3000)))
    said = str(mapped(tmp_path)[0])
    assert said.startswith("unmapped_value: question = 'Oslo (NO)'")
    assert "'p19' and 2,980 more" in said
    assert "p20" not in said


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("text,value\na,1\nb,2\na,1\n", "lines 2 and 4 both have the text 'a'"),
        ("a,1\nb,2\n", "its first line is not text,value"),
        ("", "its first line is not text,value"),
        ("text,value\n", "the file has no rows"),
        ("text,value\na,\n", "line 2 does not have a text and a value"),
        ("text,value\na,1,2\n", "line 2 does not have a text and a value"),
        ('text,value\na,"1\n', "line 2: unexpected end of data"),
        (None, "No such file or directory"),
    ],
)
def test_a_file_that_is_not_clear_is_refused(content: str | None, says: str, tmp_path: Path) -> None:
    """A text twice, another header, an empty cell, no file: refused before anything is recorded, with the place."""
    if content is not None:
        (tmp_path / "places.csv").write_text(content)
    with pytest.raises(Refused) as refused:
        mapped(tmp_path)
    assert says in str(refused.value)
    assert str(refused.value).startswith("bad_map: command[0].fields.question.map = 'places.csv'")


@pytest.mark.parametrize(
    "name", ["../places.csv", "/etc/passwd", "sub/places.csv", "..", ".", "", "C:places.csv", "a\\\\b"]
)
def test_a_file_outside_the_folder_is_not_read(name: str, tmp_path: Path) -> None:
    """The name is that of a file in the folder of the map: a map that somebody sends reads nothing else."""
    folder = tmp_path / "maps"
    (folder / "sub").mkdir(parents=True)
    for place in (tmp_path, folder / "sub"):
        (place / "places.csv").write_text("text,value\nOslo (NO),oslo\nBergen,bergen\n")
    with pytest.raises(Refused, match="not the name of a file in the folder of the map"):
        mapped(folder, MAP.replace("places.csv", name))
    with pytest.raises(Refused, match="not the name of a file"):
        parse_map(MAP.encode())


def test_a_link_or_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link would lead out of the folder; the size is bounded."""
    elsewhere = tmp_path / "elsewhere.csv"
    elsewhere.write_text("text,value\nOslo (NO),oslo\nBergen,bergen\n")
    folder = tmp_path / "maps"
    folder.mkdir()
    (folder / "places.csv").symlink_to(elsewhere)
    with pytest.raises(Refused, match="not a regular file"):
        mapped(folder)
    (folder / "places.csv").unlink()
    (folder / "places.csv").write_bytes(elsewhere.read_bytes())
    assert mapped(folder)[0] == ("oslo", "oslo")
    monkeypatch.setattr(csv_reader, "LARGEST_VALUE_MAP", 20)
    with pytest.raises(Refused, match="at most 20 are allowed"):
        mapped(folder)


def test_the_command_finds_it_beside_the_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the command runs, the file is in the folder of the map, not in the working folder."""
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "m.toml").write_text(MAP.replace("attestation", "# attestation"))
    (tmp_path / "maps" / "places.csv").write_text("text,value\nOslo (NO),oslo\nBergen,bergen\n")
    (tmp_path / "t.csv").write_bytes(TABLE)
    monkeypatch.chdir(tmp_path)
    result = run("append", "a.db", "--map", "maps/m.toml", "t.csv", "--dry-run")
    assert result.exit_code == FINDINGS
    assert "unknown_question: question = 'oslo'" in result.stderr
