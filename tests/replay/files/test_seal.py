"""`seal`: a log as a folder of segments, in Python and on the command line."""

import json
from itertools import pairwise
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Absent, Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.replay.cli.main import DAMAGED, FINDINGS, FINE, UNREADABLE, USAGE
from forecast_ledger.replay.files.export import export, seal
from forecast_ledger.replay.files.restore import restore
from forecast_ledger.replay.reading.replay import replay, summarize_tables
from tests.replay.cli.test_main import run
from tests.support.exports import export_log
from tests.support.logs import commands_of, log_fixture, rows
from tests.support.paths import DATA

path = log_fixture(lambda: commands_of("metaculus-2022"), "module")  # 34 events


def test_a_log_is_sealed_in_segments(path: str, tmp_path: Path) -> None:
    """The folder has its last row; the bytes are those of the files that are listed."""
    seen: list[int] = []
    found = seal(path, tmp_path / "s", rows=10, on_progress=seen.append)
    assert (found.checkpoint, found.segments, seen[-1]) == (replay(path).checkpoint, 4, 34)
    assert found.bytes == sum(file.stat().st_size for file in (tmp_path / "s").glob("*.parquet"))
    assert seal(path, tmp_path / "s", rows=10) == found


def test_what_cannot_be_sealed_leaves_no_folder(path: str, tmp_path: Path) -> None:
    """A size out of range, a name that is no id, a ledger without events, a log that is not there."""
    for size in (0, -1, 2**24 + 1):
        with pytest.raises(ValueError, match="1 to 16,777,216"):
            seal(path, tmp_path / "s", rows=size)
    with pytest.raises(Refused):
        seal(path, tmp_path / "s", name="\0")
    with pytest.raises(Absent, match="no ledger named 'other'"):
        seal(path, tmp_path / "s", name="other")
    with pytest.raises(Absent, match="no such ledger"):
        seal(tmp_path / "none.db", tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_a_log_that_was_deleted_is_made_again_from_its_segments(path: str, tmp_path: Path) -> None:
    """No command begins another under its name; each says how to read the folder, or to import it and carry on."""
    log_, folder, made = str(tmp_path / "log.db"), tmp_path / "log.db.segments", run("show", path, "34").stdout
    seal(path, folder)
    sealed = str(DATA / "metaculus-2022" / "sealed.jsonl")
    for refused in (("leaderboard", log_, "plain"), ("append", log_, sealed), ("append", log_, sealed, "--dry-run")):
        found = run(*refused)
        assert found.exit_code == UNREADABLE
        assert f"forecast-ledger import {folder} {log_}" in found.stderr
    new = str(tmp_path / "new.db")
    assert f"import {folder} {new}" in run("append", new, sealed, "--segments", str(folder)).stderr
    assert {each.name for each in tmp_path.iterdir()} == {folder.name}
    assert run("import", str(folder), log_).exit_code == FINE
    assert run("append", log_, sealed, "--segments", str(folder)).exit_code == FINE
    assert run("show", log_, "34").stdout == made
    assert run("seal", log_).exit_code == FINE
    assert replay(folder).checkpoint == replay(log_).checkpoint
    assert replay(folder).checkpoint.position == 35


def test_a_folder_that_is_not_there_is_named(path: str, tmp_path: Path) -> None:
    """With the command that makes one."""
    found = run("leaderboard", path, "plain", "--segments", str(tmp_path / "none"))
    assert f"{tmp_path / 'none'}: no such folder; `forecast-ledger seal LOG {tmp_path / 'none'}`" in found.stderr
    assert (
        run("seal", path, path).stderr
        == f"forecast-ledger: {path}: it is not a folder, and segments need one; name another folder\n"
    )


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


def test_a_file_is_appended_to_a_folder_as_to_the_log(path: str, tmp_path: Path) -> None:
    """With the same output, refusals and exit code; the folder is then that of the log, if it is sealed again."""
    path = str(copy(path, tmp_path / "log.db"))
    folder, more = str(tmp_path / "s"), tmp_path / "more.jsonl"
    seal(path, folder)
    contest = {"type": "open_contest", "at": "2026-09-01T00:00:00Z", "contest": "new", "rules": "baseline"}
    more.write_text("".join(json.dumps(contest | {"id": name}) + "\n" for name in ("a", "a", "b")), encoding="utf-8")
    outputs = [run("append", log, str(more), "--format", "json") for log in (path, folder)]
    shown = [[json.loads(found.stdout)[0] | {"digest": ""}, found.stderr, found.exit_code] for found in outputs]
    assert shown[0] == shown[1]
    assert (shown[0][0]["accepted"], shown[0][0]["duplicate"], shown[0][0]["refused"]) == (1, 1, 1)
    assert tables_of(folder) == tables_of(path)
    assert run("append", folder, str(more), "--segments", folder).exit_code == USAGE
    assert run("append", f"{tmp_path}/new/", str(more)).exit_code == FINDINGS
    assert rows(str(tmp_path / "new"))[0].startswith(b'{"position":1,')
    for log_, place in ((path, path), (folder, f"{folder}/refused.jsonl")):
        assert "is a file of LOG" in run("append", log_, str(more), "--refused", place).stderr
    seal(path)
    assert "append to that, then seal it" in run("append", f"{path}.segments", str(more)).stderr
    trial = run("append", folder, str(more), "--dry-run", "--format", "json")
    assert [row["outcome"] for row in json.loads(trial.stdout)] == ["duplicate", "duplicate", "refused"]


def tables_of(log: str) -> dict[str, Any]:
    """The digest and the number of rows of every table."""
    return summarize_tables(replay(log).projections.facts)


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


def test_a_new_ledger_goes_on_where_a_folder_ends(path: str, tmp_path: Path) -> None:
    """The rows are those of the log; what is appended follows them, and the folder takes it."""
    seal(path, tmp_path / "s", rows=10)
    assert restore(tmp_path / "s", tmp_path / "copy.db") == 34
    assert rows(str(tmp_path / "copy.db")) == rows(path)
    assert restore(tmp_path / "s", tmp_path / "copy.db") == 0
    assert run("append", str(tmp_path / "copy.db"), str(DATA / "metaculus-2022" / "sealed.jsonl")).exit_code == FINE
    assert seal(tmp_path / "copy.db", tmp_path / "s", rows=10).checkpoint.position == 35
    assert rows(str(tmp_path / "s")) == rows(str(tmp_path / "copy.db"))
    with pytest.raises(FileExistsError, match="more rows than the export"):
        restore(sealed_up_to(path, tmp_path, 20), tmp_path / "copy.db")


def sealed_up_to(path: str, tmp_path: Path, position: int) -> Path:
    """The beginning of a log as segments."""
    export(path, tmp_path / f"to {position}", "segments", as_of=position)
    return tmp_path / f"to {position}"


def test_a_damaged_folder_is_not_imported(path: str, tmp_path: Path) -> None:
    """Also if a byte that no row is made from is another one; no ledger is left."""
    seal(path, tmp_path / "s")
    for file in (tmp_path / "s").glob("*.parquet"):
        whole = file.read_bytes()
        for place in (1, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(Corrupt):
                restore(tmp_path / "s", tmp_path / "copy.db")
        file.write_bytes(whole)
    with pytest.raises(FileExistsError, match="the export itself"):
        restore(tmp_path / "s", tmp_path / "s")
    assert not (tmp_path / "copy.db").exists()


def test_an_export_of_segments_is_what_seal_writes(path: str, tmp_path: Path) -> None:
    """The same bytes; as of any cut, in its place only when complete, and replaced only by force."""
    seal(path, tmp_path / "s")
    manifest = export(path, tmp_path / "out", "segments")
    assert (manifest.log_position, manifest.whole) == (34, True)
    files = {file.name: file.read_bytes() for file in (tmp_path / "s").iterdir()}
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == files
    for as_of in (1, 20, 33, "2030-01-01T00:00:00Z"):
        with pytest.raises(FileExistsError, match="--force replaces"):
            export(path, tmp_path / "out", "segments", as_of=as_of)
        manifest = export(path, tmp_path / "out", "segments", as_of=as_of, force=True)
        assert replay(tmp_path / "out").checkpoint == replay(path, as_of=as_of).checkpoint
        assert manifest.log_position == replay(path, as_of=as_of).checkpoint.position
    for as_of in (0, "2000-01-01T00:00:00Z"):
        with pytest.raises(Absent, match="no events"):
            export(path, tmp_path / "none", "segments", as_of=as_of)
    with pytest.raises(Refused):
        export(path, tmp_path / "none", "segments", as_of=35)
    with pytest.raises(ValueError, match="segments have no tables"):
        export(path, tmp_path / "none", "segments", tables=["scores"])
    assert run("export", path, str(tmp_path / "none"), "--format", "segments", "--tables", "all").exit_code == USAGE
    assert run("export", path, str(tmp_path / "cli"), "--format", "segments").exit_code == FINE
    assert not (tmp_path / "none").exists()


def test_segments_that_end_within_a_command_are_read_but_not_imported(tmp_path: Path) -> None:
    """Prizes are paid together: half of them are no command that anybody gave."""
    path = export_log(tmp_path / "log.db")
    events = [log.decode_row(row, position) for position, row in enumerate(rows(path), 1)]
    inside = next(one.position for one, other in pairwise(events) if one.command_id == other.command_id)
    assert not export(path, tmp_path / "half", "segments", as_of=inside).whole
    assert replay(tmp_path / "half").checkpoint.position == inside
    with pytest.raises(Unavailable, match="ends in the middle of a command; seal the log again"):
        restore(tmp_path / "half", tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
