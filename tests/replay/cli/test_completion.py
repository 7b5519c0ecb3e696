"""Completion in a shell: names of tables, ids of the log on the line; a log is only read, and for a short time."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from forecast_ledger.ledger.model.commands import read
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.cli import completion
from forecast_ledger.replay.cli.main import FINE, USAGE, main
from tests.replay.cli.test_main import opened, run, said
from tests.support.processes import Command
from tests.support.waiting import PATIENCE, quick


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a log be read to its end, however slow the machine is."""
    monkeypatch.setattr(completion, "_SECONDS", PATIENCE)


def completed(*words: str) -> list[str]:
    """Return what bash is offered for the last of these words; stderr stays empty."""
    done = CliRunner().invoke(main, [], env=asked(*words), prog_name="forecast-ledger")
    assert (done.exit_code, done.stderr) == (FINE, ""), done.exception
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def asked(*words: str) -> dict[str, str]:
    """Return the variables by which bash asks how to complete the last of these words."""
    typed = {"COMP_WORDS": " ".join(["forecast-ledger", *words]), "COMP_CWORD": str(len(words))}
    return {**typed, "_FORECAST_LEDGER_COMPLETE": "bash_complete"}


def test_a_process_that_a_shell_starts_completes(log: str) -> None:
    """It prints what is offered, each with its kind, and nothing else."""
    done = [Command(environment=asked("leaderboard", log, "pl")).ended(PATIENCE) for _ in range(2)]
    assert {(each.returncode, each.stderr) for each in done} == {(FINE, "")}
    assert "plain,plain\n" in [each.stdout for each in done]  # not half a second late


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("table LOG sco", ["score_parts", "scores", "score_over_time"]),
        (
            "columns cal",
            [
                "calibration",
                "calibration_by_option",
                "calibration_time_weighted",
                "calibration_by_cluster",
                "calibration_test",
            ],
        ),
        ("what-if LOG --show priz", ["prizes"]),
        ("diff LOG @1 @2 --table priz", ["prizes"]),
        ("leaderboard LOG pl", ["plain"]),
        ("leaderboard LOG h", ["hidden-only"]),
        ("pay LOG pl", ["plain"]),
        ("log LOG --question o", ["olympics-2021"]),
        ("log LOG --participant b", ["bot"]),
        ("log LOG --type forecast", ["forecast_made", "forecast_withdrawn", "forecasts_retracted"]),
        ("explain LOG score pl", ["plain"]),
        ("explain LOG score plain sp", ["sp500-4500"]),
        ("explain LOG score plain sp500-4500 bo", ["bot"]),
        ("explain LOG rank plain bo", ["bot"]),
        ("blame LOG scores plain gdp", ["gdp-next-year"]),
        ("blame LOG leaderboard plain bo", ["bot"]),
        ("blame LOG nothing pl", []),
        ("verify LOG --only di", ["digests"]),
        ("ver", ["verify"]),
    ],
)
def test_names_and_ids_are_completed(log: str, typed: str, offered: list[str]) -> None:
    """Tables, checks and types come from the code; contests, questions and participants from the log on the line."""
    assert completed(*(log if word == "LOG" else word for word in typed.split())) == offered


def test_what_cannot_be_read_completes_nothing(tmp_path: Path) -> None:
    """No log, no ledger, a folder, another program's database, a pipe: nothing is offered, said, made or waited for."""
    (tmp_path / "text").write_text("no database" * 100, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with closing(sqlite3.connect(tmp_path / "other")) as database, database:
        database.execute("CREATE TABLE people (name TEXT)")
    before = sorted(path.name for path in tmp_path.iterdir())
    for name in ("missing", "text", "folder", "pipe", "other"):
        assert completed("leaderboard", str(tmp_path / name), "p") == []
    assert completed("leaderboard", "postgresql://nobody@192.0.2.1/none", "p") == []
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_log_that_is_locked_or_written_to_is_not_waited_for(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment later the shell goes on, and the writer never had to wait: its transaction commits."""
    with closing(sqlite3.connect(log, isolation_level=None)) as writer:
        writer.execute("PRAGMA locking_mode = EXCLUSIVE")
        writer.execute("BEGIN EXCLUSIVE")
        with monkeypatch.context() as patched:
            patched.setattr(completion, "_SECONDS", 0.5)
            quick(15, time.monotonic)(completed)("leaderboard", log, "p")  # the store itself would wait for 30 s
        writer.execute("COMMIT")
    before = Path(log).read_bytes()
    assert completed("leaderboard", log, "pl") == ["plain"]
    assert Path(log).read_bytes() == before


def test_an_id_that_a_shell_would_obey_is_not_offered(tmp_path: Path) -> None:
    """A log may be a stranger's: completing its ids puts nothing on the line that runs or becomes an option."""
    names = ["$(reboot)", "`id`", "a;b", "--force", "a b", "plain-1", "ada@x.org"]
    lines = [
        opened("o", question="rain"),
        *(said(f"f{n}", "open_contest", contest=n, rules="peer-2024-03") for n in names),
    ]
    with Ledger.open(tmp_path / "log.db") as ledger:
        ledger.handle_many([read(line) for line in lines])
    assert completed("leaderboard", str(tmp_path / "log.db"), "") == ["ada@x.org", "plain-1"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_printed(shell: str) -> None:
    """The script calls the command by its installed name; another shell is wrong usage."""
    result = run("completion", shell)
    assert (result.exit_code, result.stderr) == (FINE, "")
    assert f"_FORECAST_LEDGER_COMPLETE={shell}_complete" in result.stdout
    assert run("completion", "ksh").exit_code == USAGE
