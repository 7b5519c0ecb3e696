"""What commands have in common: where a log can be, and what is said where it cannot."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from replay.cli import UNREADABLE, USAGE, main
from tests.exports import commands_of, exported, written

COMMANDS = str(Path(__file__).parent.parent / "data" / "metaculus-2022" / "commands.jsonl")


def run(*arguments: str) -> Result:
    """The command line in this process; a traceback would be its exception."""
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def log(tmp_path: Path) -> str:
    """The story's log."""
    return written(tmp_path / "log.db", commands_of("metaculus-2022"))


@pytest.mark.parametrize("where", ["", ":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_what_would_be_kept_nowhere_is_wrong_usage(log: str, tmp_path: Path, where: str) -> None:
    """A log in memory is gone when the command ends: nothing that is recorded or followed goes there."""
    exported(log, tmp_path / "out", "csv")
    for arguments in (
        ["append", where, COMMANDS],
        ["follow", log, where, "--once"],
        ["follow", where, str(tmp_path / "tables.db"), "--once"],
        ["import", str(tmp_path / "out"), where],
        ["pay", where, "plain"],
        ["leaderboard", where, "plain"],
        ["explain", log, "score", "plain", "olympics-2021", "A", "--model", where],
    ):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (USAGE, ""), arguments
        assert "keeps nothing; give the path of a file" in result.stderr


def test_a_database_of_something_else_is_not_written_into(log: str, tmp_path: Path) -> None:
    """A read model, an export, anybody's tables: one line, the exit code 3, and every byte as it was."""
    tables, export, own = (tmp_path / name for name in ("tables.db", "export.sqlite", "own.db"))
    assert run("follow", log, str(tables), "--once").exit_code == 0
    exported(log, export, "sqlite")
    exported(log, tmp_path / "out", "csv")
    with closing(sqlite3.connect(own)) as database, database:
        database.execute("CREATE TABLE people (name TEXT)")
    for path in (tables, export, own):
        before = path.read_bytes()
        for arguments in (
            ["append", str(path), COMMANDS],
            ["append", str(path), COMMANDS, "--dry-run"],
            ["import", str(tmp_path / "out"), str(path)],
            ["log", str(path)],
        ):
            result = run(*arguments)
            assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (UNREADABLE, "", 1), arguments
            assert f"{path}: not a ledger: the database has no table of stored events, but others: " in result.stderr
        assert path.read_bytes() == before
