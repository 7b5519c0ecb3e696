"""The digest of a read model's file lets a start skip the comparison of rows, and hides no change."""

import hashlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.replay.readmodel import sqlite_tables
from forecast_ledger.replay.readmodel.part_store import StoredTables
from forecast_ledger.replay.readmodel.runner import Runner
from forecast_ledger.replay.readmodel.sqlite_tables import BESIDE
from tests.replay.readmodel.test_runner import SAID, assert_up_to_date, record
from tests.support import oracle
from tests.support.given import forecast

HISTORY = oracle.attempted([*SAID, *(forecast(participant=f"p{n}") for n in range(5))])[0]


@pytest.fixture
def followed(tmp_path: Path) -> tuple[str, str]:
    """A log and its read model, whose runner has ended."""
    log, tables = str(tmp_path / "log.db"), str(tmp_path / "tables.db")
    record(log, HISTORY[:-2])
    with Runner(log, tables, optional=["standing"]) as runner:
        runner.refresh()
    return log, tables


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables whose rows are compared with the digests of their parts, as they are."""
    names: list[str] = []
    parts = StoredTables.parts

    def listed(self: StoredTables, name: str, *key: Any) -> Any:
        names.append(name)
        return parts(self, name, *key)

    monkeypatch.setattr(StoredTables, "parts", listed)
    return names


def test_it_is_the_sha256_of_the_file(followed: tuple[str, str]) -> None:
    """In the form of `sha256sum`, which can check it."""
    _, tables = followed
    expected = hashlib.sha256(Path(tables).read_bytes()).hexdigest()
    assert Path(tables + BESIDE).read_text() == f"{expected}  tables.db\n"


def test_a_file_that_nobody_changed_is_not_compared_row_by_row(followed: tuple[str, str], compared: list[str]) -> None:
    """Its runner can still refresh it, end, and start again."""
    log, tables = followed
    for end in (len(HISTORY) - 1, len(HISTORY)):
        compared.clear()
        with Runner(log, tables) as runner:
            assert "standing" not in compared
            record(log, HISTORY[end - 1 : end])
            runner.refresh()
        assert_up_to_date(tables, HISTORY[:end])
    assert sqlite_tables.is_unchanged(tables)


def changed_in_the_log_of_writes(tables: str) -> sqlite3.Connection:
    """Change a value through a connection that stays open, so that the file itself is as it was."""
    connection = sqlite3.connect(tables)
    connection.execute("UPDATE standing SET question = 'other' WHERE participant = 'p0'")
    connection.commit()
    return connection


def changed_back(tables: str) -> None:
    """Change a value, then write what was there; the file may have other bytes."""
    with closing(sqlite3.connect(tables)) as connection:
        for name in ("other", "rain"):
            with connection:
                connection.execute("UPDATE standing SET question = ? WHERE participant = 'p0'", [name])


def test_a_change_that_is_not_in_the_file_yet_is_found(followed: tuple[str, str]) -> None:
    """It is in the write-ahead log of another connection."""
    log, tables = followed
    with closing(changed_in_the_log_of_writes(tables)):
        assert sqlite_tables.is_unchanged(tables) is False
        with pytest.raises(Unavailable, match="in standing differ from those that were written"):
            Runner(log, tables)
    with pytest.raises(Unavailable, match="in standing differ from those that were written"):
        Runner(log, tables)


def remove(beside: Path) -> None:
    """No digest, as of a runner that was killed."""
    beside.unlink()


def cut(beside: Path) -> None:
    """A digest that was half written."""
    beside.write_bytes(beside.read_bytes()[:20])


def folder(beside: Path) -> None:
    """A folder in its place."""
    beside.unlink()
    beside.mkdir()


def huge(beside: Path) -> None:
    """A long file in its place."""
    beside.write_bytes(beside.read_bytes() * 1_000)


@pytest.mark.parametrize("spoil", [remove, cut, folder, huge])
def test_without_a_digest_every_row_is_compared(
    followed: tuple[str, str], compared: list[str], spoil: Callable[[Path], None]
) -> None:
    """The runner starts, for nothing is wrong with the file."""
    log, tables = followed
    spoil(Path(tables + BESIDE))
    compared.clear()
    with Runner(log, tables) as runner:
        assert "standing" in compared
        runner.refresh()
    assert_up_to_date(tables, HISTORY[:-2])


def test_a_digest_of_an_earlier_file_is_none(followed: tuple[str, str], compared: list[str], tmp_path: Path) -> None:
    """A file that another program changed, and one that was restored from a copy, are compared row by row."""
    log, tables = followed
    copy(tables, tmp_path / "copy.db")
    record(log, HISTORY[-2:])
    with Runner(log, tables) as runner:
        runner.refresh()
    copy(tmp_path / "copy.db", tables)
    compared.clear()
    with Runner(log, tables) as runner:
        assert "standing" in compared
        assert runner.refresh().events == 2
    assert_up_to_date(tables, HISTORY)
    changed_back(tables)
    with Runner(log, tables) as runner:
        runner.refresh()
    assert_up_to_date(tables, HISTORY)


def test_a_change_under_a_runner_is_not_taken_over(followed: tuple[str, str]) -> None:
    """What another program wrote meanwhile gets no digest when the runner ends, so the next one finds it."""
    log, tables = followed
    record(log, HISTORY[-2:-1])
    with Runner(log, tables) as runner:
        assert runner.refresh().rows
        changed_in_the_log_of_writes(tables).close()
    with pytest.raises(Unavailable, match="in standing differ from those that were written"):
        Runner(log, tables)


def delete(tables: Path) -> None:
    """The file is gone."""
    tables.unlink()


def replace(tables: Path) -> None:
    """Another file of the same bytes has its name, as one that was restored from a backup."""
    Path(copy(tables, tables.with_name("copy"))).replace(tables)


@pytest.mark.skipif(os.name == "nt", reason="Windows does not delete a file that is open")
@pytest.mark.parametrize("change", [delete, replace])
@pytest.mark.parametrize("is_within", [False, True])
def test_a_file_that_is_not_there_any_more_is_not_written(
    followed: tuple[str, str], monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], is_within: bool
) -> None:
    """A refresh into it would be lost: it is refused, also if it happens meanwhile, and no digest is written."""
    log, tables = followed
    beside = Path(tables + BESIDE)
    with Runner(log, tables) as runner:
        before = beside.read_bytes()
        record(log, HISTORY[-2:-1])
        if is_within:
            insert = sqlite_tables.SQLiteTables.insert
            changes = iter([change])

            def inserted(self: sqlite_tables.SQLiteTables, *given: Any) -> None:
                insert(self, *given)
                for each in changes:
                    each(Path(tables))

            monkeypatch.setattr(sqlite_tables.SQLiteTables, "insert", inserted)
        else:
            change(Path(tables))
        with pytest.raises(Unavailable, match="the file that was opened is not there any more"):
            runner.refresh()
    assert beside.read_bytes() == before
    for end in ("", "-wal", "-shm"):
        Path(tables + end).unlink(missing_ok=True)
    with Runner(log, tables, optional=["standing"]) as runner:
        runner.refresh()
    assert_up_to_date(tables, HISTORY[:-1])
