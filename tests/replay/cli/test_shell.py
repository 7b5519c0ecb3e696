"""The parts that all commands share: the location of a log, and messages about wrong names and values."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from forecast_ledger.replay.cli.main import UNREADABLE, USAGE
from forecast_ledger.replay.cli.shell import report_errors
from tests.replay.cli.test_main import run
from tests.support.exports import exported
from tests.support.paths import ROOT

COMMANDS = str(ROOT / "data" / "metaculus-2022" / "commands.jsonl")


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
        assert "would not be kept; give the path of a file" in result.stderr


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (
            "explain LOG score plain olympics-2021 NOPE",
            "no such participant made a forecast on it; there are: A, B, C, bot; `table LOG scores` lists",
        ),
        ("explain LOG score plain NOPE A", "the question is not in the contest 'plain'; `table LOG scores` lists"),
        ("explain LOG score NOPE olympics-2021 A", "it has: hidden-only, plain; use the id of a contest in the log"),
        (
            "explain LOG score plain olympics-2021 A --as-of 31",
            "counts in the contest, so it has no scores; ask again once",
        ),
        (
            "explain LOG rank plain NOPE",
            "no such participant made a forecast; on the board are: A, B, C, bot; `table LOG leaderboard` lists",
        ),
        ("explain LOG balance plain A", "has no trading; `table LOG accounts` lists the accounts"),
        ("leaderboard LOG NOPE", "it has: hidden-only, plain; use the id of a contest in the log"),
        ("pay LOG NOPE", "it has: hidden-only, plain; use the id of a contest in the log"),
        (
            "what-if LOG --show prizes --rules peer-2024-03 --contest NOPE",
            "it has: hidden-only, plain; use the id of a contest in the log",
        ),
        ("show LOG 35", "the log ends at position 34; use that log position or an earlier one"),
        ("log LOG --after 35", "the log ends at position 34; use that log position or an earlier one"),
    ],
)
def test_a_question_about_what_is_not_there_is_told_what_is(log: str, question: str, says: str) -> None:
    """A remedy fits who asks: it names what there is, or what lists it; nothing is to be opened or enrolled."""
    result = run(*(log if each == "LOG" else each for each in question.split()))
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (USAGE, "", 1)
    assert says in result.stderr


def test_a_cell_that_is_not_as_the_map_says_is_told_of_the_map(tmp_path: Path) -> None:
    """The remedy is about the cell or the map, not about how commands write numbers and instants."""
    (tmp_path / "map.toml").write_text(
        """
        instant = "%d.%m.%Y"
        offset = "Z"
        [[command]]
        type = "submit_forecast"
        id = "{No}"
        [command.fields]
        at = "{Day}"
        question = "rain"
        participant = "ada"
        probability = { from = "{Chance}", number = "1234,5" }
        """,
        encoding="utf-8",
    )
    (tmp_path / "rows.csv").write_text("No,Day,Chance\n1,2026-03-01,0\n2,01.03.2026,0.5\n", encoding="utf-8")
    result = run("append", str(tmp_path / "log.db"), "--map", str(tmp_path / "map.toml"), str(tmp_path / "rows.csv"))
    one, other = result.stderr.splitlines()
    assert one.endswith("not in the format %d.%m.%Y; correct the cell, or `instant` in the map")
    assert other.endswith("1234.5 as 1234,5; correct the cell, or the field's `number` in the map")


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
            assert f"{path}: not a ledger: the database has no table stored_events; its tables are: " in result.stderr
        assert path.read_bytes() == before


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_lack_of_memory_is_one_line(capsys: pytest.CaptureFixture[str], form: str) -> None:
    """Whatever was computed; the exit code is that of a store that cannot be read."""

    def work(errors: str) -> None:
        raise MemoryError(errors)

    with pytest.raises(SystemExit) as ended:
        report_errors(work)(errors=form)
    [line] = capsys.readouterr().err.splitlines()
    assert (ended.value.code, "there is not enough memory for this" in line) == (UNREADABLE, True)
    assert form == "text" or json.loads(line)["error"] == "unavailable"


@pytest.mark.parametrize("text", ["can't start new thread", "Unknown error: Failed to launch worker thread: Resource"])
def test_where_no_thread_can_be_started_one_line_says_so(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of Python or of pyarrow; any other error is a fault of ours, and has a traceback."""

    def work(errors: str) -> None:
        raise RuntimeError(errors)

    with pytest.raises(SystemExit) as ended:
        report_errors(work)(errors=text)
    assert (ended.value.code, "raise the limit (ulimit -u)" in capsys.readouterr().err) == (UNREADABLE, True)
    with pytest.raises(RuntimeError, match="another"):
        report_errors(work)(errors="another")
