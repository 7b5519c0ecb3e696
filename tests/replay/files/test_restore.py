"""Imports: a damaged or partial export is refused and leaves nothing; a ledger only ever goes on as the export does."""

import json
import shutil
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Conflict, Corrupt, LedgerError, Refused, Unavailable
from forecast_ledger.ledger.storing.stored_log import StoredLog, TakenError
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.files import restore as module
from forecast_ledger.replay.files.export import export
from forecast_ledger.replay.files.manifest import MANIFEST_FILE, read_manifest
from forecast_ledger.replay.files.restore import restore
from tests.support import forging, oracle
from tests.support.exports import FORMS, exported, resealed
from tests.support.given import NOW, forecast, opened, resolution
from tests.support.logs import commands_of, rows, written

FILES = [form for form in FORMS if form != "sqlite"]


@pytest.fixture(scope="module")
def outs(log: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of an export in each format, of those tables that tests change."""
    base = tmp_path_factory.mktemp("outs")
    for form in FORMS:
        exported(log, base / form, form, tables=[name for name in CHANGES if name in CATALOGUE])
    return base


@pytest.fixture
def damaged(outs: Path, tmp_path: Path) -> Path:
    """A copy of them all, to be damaged."""
    return Path(shutil.copytree(outs, tmp_path / "outs"))


def refused(out: Path, tmp_path: Path) -> LedgerError:
    """Return the message of an import that is refused; no ledger exists afterwards."""
    with pytest.raises(LedgerError) as error:
        restore(out, str(tmp_path / "copy.db"))
    assert not list(tmp_path.glob("copy.db*"))
    return error.value


def resaid(folder: Path, name: str) -> None:
    """Make the manifest say that a file is as it is now."""
    manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
    part = manifest["tables"][name]
    part["sha256"] = sha256((folder / part["file"]).read_bytes()).hexdigest()
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")


def test_an_imported_ledger_can_be_written_on(log: str, outs: Path, tmp_path: Path) -> None:
    """It verifies; recorded commands are duplicates, and new ones are appended."""
    location = str(tmp_path / "copy.db")
    restore(outs / "csv", location)
    assert verify(location) == verify(log)
    with Ledger.open(location, clock=lambda: NOW) as ledger:
        [again, new] = ledger.handle_many([commands_of("metaculus-2022")[0], opened("new", id="new")])
    assert not isinstance(again, Refused)
    assert not isinstance(new, Refused)
    assert (again.duplicate, new.first) == (True, len(rows(log)) + 1)


@pytest.mark.parametrize("form", FILES)
def test_any_changed_byte_of_any_file_is_found(damaged: Path, tmp_path: Path, form: str) -> None:
    """The first, a middle or the last byte of each file is changed; of the manifest the first."""
    for number, path in enumerate(sorted(path for path in (damaged / form).iterdir() if path.stat().st_size)):
        whole = path.read_bytes()
        place = (0, len(whole) // 2, len(whole) - 1)[number % 3] if path.name != MANIFEST_FILE else 0
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refused(damaged / form, tmp_path)
        path.write_bytes(whole)
    assert restore(damaged / form, str(tmp_path / "copy.db"))


@pytest.mark.parametrize("form", FILES)
def test_a_missing_or_cut_file_is_found(damaged: Path, tmp_path: Path, form: str) -> None:
    """Whichever it is."""
    for path in sorted((damaged / form).iterdir()):
        whole = path.read_bytes()
        path.unlink()
        assert isinstance(refused(damaged / form, tmp_path), Unavailable)
        if whole:
            path.write_bytes(whole[: len(whole) // 2])
            refused(damaged / form, tmp_path)
        path.write_bytes(whole)


def test_a_cut_database_is_found(damaged: Path, tmp_path: Path) -> None:
    """A database with fewer rows than its manifest states, or that is not a database, is refused too."""
    path = damaged / "sqlite"
    whole = path.read_bytes()
    for cut in (0, 100, len(whole) // 2, len(whole) - 4_096):
        path.write_bytes(whole[:cut])
        refused(path, tmp_path)
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM scores WHERE rowid = 1")
    assert "scores" in str(refused(path, tmp_path))


CHANGES = {
    "scores": "UPDATE scores SET score = '9.000000000' WHERE rowid = 3",
    "brier": "UPDATE brier SET brier_real = brier_real + 0.25 WHERE rowid = 1",
    "leaderboard": "UPDATE leaderboard SET rowid = rowid + 1000 WHERE rowid = 1",
    "contests": "UPDATE contests SET title = 'Winter' WHERE contest = 'plain'",
    "questions": "UPDATE questions SET opens_at = NULL WHERE rowid = 1",
    "participants": "UPDATE participants SET kind = 'consensus'",
    "events": "UPDATE events SET command_id = 'x' WHERE position = 1",
    "cash": "ALTER TABLE cash RENAME COLUMN amount TO sum",
    "data_dictionary": "UPDATE data_dictionary SET unit = 'percent' WHERE rowid = 1",
    "positions": "UPDATE manifest SET manifest = replace(manifest, (SELECT json_extract(manifest, "
    "'$.tables.positions.digest') FROM manifest), 'other')",
}


@pytest.mark.parametrize("table", CHANGES)
def test_whatever_is_changed_in_a_database_is_found(damaged: Path, tmp_path: Path, table: str) -> None:
    """A value, its float, an order, a name, what the manifest says: each table is what the log in it makes of it."""
    path = damaged / "sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(CHANGES[table])
    assert str(refused(path, tmp_path)) == f"{path}: not a complete export, or changed since: {table}"


def test_a_table_of_another_version_is_not_worked_out_again(damaged: Path, tmp_path: Path) -> None:
    """An older version may have computed another table from the same log."""
    path = damaged / "sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        [text] = db.execute("SELECT manifest FROM manifest").fetchone()
        manifest = json.loads(text)
        manifest["tables"]["scores"]["version"] += 1
        db.execute("UPDATE manifest SET manifest = ?", [json.dumps(manifest)])
        db.execute(CHANGES["scores"])
    assert restore(path, str(tmp_path / "copy.db")) == manifest["log_position"]


@pytest.mark.parametrize(
    ("change", "position"),
    [
        (lambda told: told[:9] + told[10:], 10),
        (lambda told: [*told[:9], told[10], told[9], *told[11:]], 10),
        (lambda told: [*told[:9], told[9].replace(b'"recorded_at":', b'"recorded_at": '), *told[10:]], 10),
        (lambda told: [*told[:9], b"{}", *told[10:]], 10),
        (lambda told: resealed([*told[:9], told[9].replace(b'"recorded_at":', b'"recorded_at": '), *told[10:]]), 10),
        (lambda told: resealed([*told[:9], told[9].replace(b'"recorded_at":', b'"recorded_at":9'), *told[10:]]), 11),
        (lambda told: resealed([row.replace(b"gdp-next-year", b"gdp-last-year", 1) for row in told[:20]]), 2),
        (lambda told: told[:-1], None),
    ],
    ids=["gap", "swapped", "edited", "no event", "not canonical", "back in time", "another log", "short"],
)
def test_rows_that_are_no_log_are_refused(damaged: Path, tmp_path: Path, change: Any, position: int | None) -> None:
    """The manifest was made to match the changed rows; the message names the log position, if there is one."""
    path = damaged / "jsonl" / "events.jsonl"
    before = [json.loads(line)["row"].encode() for line in path.read_bytes().splitlines()]
    after = change(before)
    assert after != before
    path.write_text("".join(json.dumps({"row": row.decode()}) + "\n" for row in after), encoding="utf-8")
    resaid(damaged / "jsonl", "events")
    error = refused(damaged / "jsonl", tmp_path)
    assert isinstance(error, Corrupt if position else Unavailable)
    assert position is None or error.args[0] == position


@pytest.mark.parametrize(
    "line",
    ["[]", "5", "{}", '{"row": 5}', '{"row": null}', "not JSON", "[" * 100_000, '{"row": "\\ud800"}', '{"row": ""}'],
)
def test_lines_that_are_none_are_refused(damaged: Path, tmp_path: Path, line: str) -> None:
    """Never with a traceback."""
    (damaged / "jsonl" / "events.jsonl").write_text(line + "\n", encoding="utf-8")
    resaid(damaged / "jsonl", "events")
    refused(damaged / "jsonl", tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"export": 2},
        {"format": "xlsx"},
        {"tables": {}},
        {"tables": {"events": {"rows": 1, "digest": "", "version": 1, "file": "../../etc/passwd"}}},
        {"surprise": 1},
        {"log_position": "many"},
        {"log_digest": "0" * 64},
        {"whole": False},
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(damaged: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    """Another version, format or log, no events, a file elsewhere."""
    path = damaged / "csv" / MANIFEST_FILE
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change), encoding="utf-8")
    assert isinstance(refused(damaged / "csv", tmp_path), Unavailable)


def test_what_is_no_export_is_refused(log: str, tmp_path: Path) -> None:
    """A missing path, an empty folder and a log are not exports."""
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "nothing", tmp_path / "empty", Path(log)):
        assert isinstance(refused(path, tmp_path), Unavailable)
    with pytest.raises(Refused):
        restore(tmp_path / "nothing", str(tmp_path / "copy.db"), "")


@pytest.mark.parametrize("form", FORMS)
def test_a_ledger_that_is_the_beginning_is_continued(log: str, outs: Path, tmp_path: Path, form: str) -> None:
    """The import continues where the log ends; a second import changes nothing."""
    location = str(tmp_path / "copy.db")
    export(log, tmp_path / "part", "jsonl", as_of=33)
    assert restore(tmp_path / "part", location) == 33
    assert restore(outs / form, location) == len(rows(log)) - 33
    assert rows(location) == rows(log)
    assert restore(outs / form, location) == 0


def test_another_ledger_is_not_written_to(log: str, outs: Path, tmp_path: Path) -> None:
    """Not one that parts from the export, nor one that goes on after it."""
    other = written(tmp_path / "other.db", commands_of("arena-week"))
    longer = str(tmp_path / "longer.db")
    restore(outs / "jsonl", longer)
    written(longer, [opened("new", id="new")])
    for location, says in ((other, "log position 1: "), (longer, f"log position {len(rows(log)) + 1}: ")):
        before = rows(location)
        with pytest.raises(FileExistsError, match=says):
            restore(outs / "jsonl", location)
        assert rows(location) == before


def test_a_cut_within_a_command_is_exported_but_not_imported(log: str, tmp_path: Path) -> None:
    """A writer records all events of a command or none, and so does an import."""
    commands = [json.loads(row)["command_id"] for row in rows(log)]
    within = next(place for place in range(1, len(commands)) if commands[place - 1] == commands[place])
    export(log, tmp_path / "part", "csv", as_of=within)
    assert not read_manifest(tmp_path / "part").whole
    assert "earlier" in str(refused(tmp_path / "part", tmp_path))


def test_an_interrupted_import_is_continued(
    log: str, outs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The imported rows are whole commands from the beginning; a second import appends the rest."""
    monkeypatch.setattr(module, "ROWS_PER_TRANSACTION", 1)
    location, done = str(tmp_path / "copy.db"), []

    def interrupted(position: int) -> None:
        done.append(position)
        if position > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(outs / "parquet", location, on_progress=interrupted)
    commands = [json.loads(row)["command_id"] for row in rows(log)]
    assert rows(location) == rows(log)[: done[-1]]
    assert all(commands[position - 1] != commands[position] for position in done)
    assert restore(outs / "parquet", location) == len(commands) - done[-1]
    assert rows(location) == rows(log)


def test_a_race_that_is_lost_is_a_conflict(outs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else wrote to the ledger meanwhile."""

    def taken(*_: Any) -> None:
        raise TakenError

    monkeypatch.setattr(StoredLog, "append", taken)
    with pytest.raises(Conflict):
        restore(outs / "csv", str(tmp_path / "copy.db"))


@pytest.mark.parametrize("form", FORMS)
def test_what_no_decider_can_have_written_is_not_imported(tmp_path: Path, form: str) -> None:
    """Every digest is right, and tables can be made of it, so that it can be exported; nothing is left behind."""
    rows = oracle.history(opened(), forecast(), resolution())
    forged = [*rows[:1], *rows[2:], rows[1]]  # the forecast comes after the answer
    out = tmp_path / "export"
    exported(forging.written(tmp_path / "forged.db", forged), out, form)
    with pytest.raises(Corrupt, match=r"log position 3: .* found question_resolved: "):
        restore(out, str(tmp_path / "copy.db"))
    assert not (tmp_path / "copy.db").exists()
