"""A program that starts processes, and has no guard, is told so; nothing is started without end."""

import subprocess
import sys
from pathlib import Path

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import contest, entry, forecast, opened, resolution

REPLAYED = """
import forecast_ledger
with open("runs", "a") as runs:
    runs.write("run ")
{guard}
    print(len(forecast_ledger.replay("season.db", engine="processes").table("leaderboard")), "rows")
"""
APPENDED = """
import forecast_ledger
from forecast_ledger.replay.writing import append, read_ahead
with open("runs", "a") as runs:
    runs.write("run ")
append.FIRST_BATCH, read_ahead.LONG, read_ahead.processors = 1, 1, lambda: 2
{guard}
    with forecast_ledger.open("season.db") as ledger, open("lines.jsonl", "rb") as file:
        class Waiting(read_ahead.ReadAhead):
            def take(self, count):
                self._pool.begun.exception()
                return super().take(count)
        read_ahead.ReadAhead = Waiting
        print(forecast_ledger.append(ledger, file, read_ahead=True)["accepted"], "accepted")
"""
AGAIN = """
import forecast_ledger
with open("runs", "a") as runs:
    runs.write("run ")
while True:
    try:
        forecast_ledger.replay("season.db", engine="processes")
    except forecast_ledger.LedgerError:
        pass
"""
GUARD = 'if __name__ == "__main__":'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a log, and a file of commands."""
    story: list[AnyCommand] = [contest(), opened(), entry(), forecast(), resolution()]
    with Ledger.open(tmp_path / "season.db") as ledger:
        for number, command in enumerate(story):
            ledger.handle(command, f"c{number}")
    (tmp_path / "lines.jsonl").write_text(
        '{"id": "c0", "type": "finalize_contest", "at": "2026-04-01T00:00:00Z"}\n' * 9
    )
    return tmp_path


def run(folder: Path, program: str) -> "subprocess.CompletedProcess[str]":
    """Run a program that is a file in a folder; it ends by itself."""
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-W", "ignore", "program.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("program", [REPLAYED, APPENDED], ids=["replay", "append"])
def test_a_program_without_a_guard_is_told_to_have_one(folder: Path, program: str) -> None:
    """The first process that is started ends where it would start processes itself, and no other is started."""
    ended = run(folder, program.format(guard="if True:"))
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("RuntimeError: each process that is started imports the main")
    assert ended.stderr.splitlines()[-1].endswith('under `if __name__ == "__main__":`')
    assert (folder / "runs").read_text() == "run run "


def test_a_program_that_tries_again_after_every_error_of_a_ledger_ends(folder: Path) -> None:
    """The mistake is the program's, and no error that another try could mend."""
    ended = run(folder, AGAIN)
    assert (ended.returncode, (folder / "runs").read_text()) == (1, "run run ")


@pytest.mark.parametrize(
    ("program", "done"), [(REPLAYED, "1 rows\n"), (APPENDED, "0 accepted\n")], ids=["replay", "append"]
)
def test_a_program_with_a_guard_starts_processes(folder: Path, program: str, done: str) -> None:
    """Each imports the main module, and does not do what is guarded."""
    ended = run(folder, program.format(guard=GUARD))
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", done)
    assert len((folder / "runs").read_text().split()) > 1
