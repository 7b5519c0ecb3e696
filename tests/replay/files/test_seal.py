"""`seal`: a log as a folder of segments, in Python and on the command line."""

import json
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Absent, Refused
from forecast_ledger.replay.cli.main import DAMAGED, FINE, UNREADABLE, USAGE
from forecast_ledger.replay.files.seal import seal
from forecast_ledger.replay.reading.replay import replay
from tests.replay.cli.test_main import run
from tests.support.exports import commands_of, written


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A log of 34 events."""
    return written(tmp_path_factory.mktemp("seal") / "log.db", commands_of("metaculus-2022"))


def test_a_log_is_sealed_in_segments(path: str, tmp_path: Path) -> None:
    """The folder has its last row; the bytes are those of the files that are listed."""
    seen: list[int] = []
    found = seal(path, tmp_path / "s", rows=10, watch=seen.append)
    assert (found.checkpoint, found.segments, seen[-1]) == (replay(path).checkpoint, 4, 34)
    assert found.bytes == sum(file.stat().st_size for file in (tmp_path / "s").glob("*.parquet"))
    assert seal(path, tmp_path / "s", rows=10) == found


def test_what_cannot_be_sealed_leaves_no_folder(path: str, tmp_path: Path) -> None:
    """A size out of range, a name that is no id, a ledger without events, a log that is not there."""
    for rows in (0, -1, 2**24 + 1):
        with pytest.raises(ValueError, match="1 to 16,777,216"):
            seal(path, tmp_path / "s", rows=rows)
    with pytest.raises(Refused):
        seal(path, tmp_path / "s", name="\0")
    with pytest.raises(Absent, match="no ledger named 'other'"):
        seal(path, tmp_path / "s", name="other")
    with pytest.raises(Absent, match="no such ledger"):
        seal(tmp_path / "none.db", tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_every_command_that_reads_a_log_reads_a_folder(path: str, tmp_path: Path) -> None:
    """It prints what it prints of the log."""
    folder = str(tmp_path / "s")
    assert run("seal", path, folder, "--rows", "10").exit_code == FINE
    for name, *arguments in (
        ("leaderboard", "plain"),
        ("table", "scores", "--as-of", "30"),
        ("replay", "--as-of-claimed", "2022-03-03"),
        ("log",),
        ("show", "3"),
        ("verify",),
        ("checkpoint",),
        ("explain", "prize", "plain", "A"),
        ("diff", "@33", "@34"),
        ("blame", "leaderboard", "plain", "A"),
    ):
        expected, found = (run(name, log, *arguments, "--format", "json") for log in (path, folder))
        if name == "checkpoint":
            expected, found = (run(name, log, *arguments) for log in (path, folder))
        assert (found.exit_code, found.stdout) == (expected.exit_code, expected.stdout), found.stderr
        assert found.exit_code == FINE, found.stderr
    assert run("replay", path, "--compare", folder).exit_code == FINE
    assert run("replay", folder, "--compare", path).exit_code == FINE
    assert run("export", folder, str(tmp_path / "out"), "--format", "jsonl").exit_code == FINE
    assert run("follow", folder, str(tmp_path / "tables.db"), "--once").exit_code == FINE
    assert run("follow", folder, str(tmp_path / "tables.db"), "--check").exit_code == FINE


def test_a_folder_is_not_written_by_commands(path: str, tmp_path: Path) -> None:
    """They are refused before anything is read, and say what to do."""
    seal(path, tmp_path / "s")
    (tmp_path / "more.jsonl").write_bytes(b"")
    before = {file: file.read_bytes() for file in (tmp_path / "s").iterdir()}
    found = run("append", str(tmp_path / "s"), str(tmp_path / "more.jsonl"))
    assert (found.exit_code, "segments cannot be appended to; `forecast-ledger import" in found.stderr) == (
        UNREADABLE,
        True,
    )
    assert {file: file.read_bytes() for file in (tmp_path / "s").iterdir()} == before


def test_the_command_says_what_it_sealed(path: str, tmp_path: Path) -> None:
    """As a row; an impossible size is wrong usage; another folder without segments is unreadable."""
    [row] = json.loads(run("seal", path, str(tmp_path / "s"), "--format", "json").stdout)
    assert (row["segments"], row["log_position"], row["digest"]) == (1, 34, replay(path).checkpoint.digest)
    assert run("seal", path, str(tmp_path / "s"), "--rows", "0").exit_code == USAGE
    assert run("seal", path, str(tmp_path)).exit_code == UNREADABLE
    found = run("leaderboard", str(tmp_path), "plain")
    assert (found.exit_code, "there is no segments.json in it" in found.stderr) == (UNREADABLE, True)


def test_a_damaged_folder_is_told_with_its_file_and_a_remedy(path: str, tmp_path: Path) -> None:
    """On one line, with the first log position that it can concern."""
    seal(path, tmp_path / "s", rows=10)
    file = tmp_path / "s" / "000000000011-000000000020.others.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    found = run("leaderboard", str(tmp_path / "s"), "plain")
    assert found.exit_code == DAMAGED
    assert "log position 11" in found.stderr
    assert file.name in found.stderr
    assert "restore the folder from a copy" in found.stderr
