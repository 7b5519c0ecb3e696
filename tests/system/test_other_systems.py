"""Every command on a system without POSIX: `tests.support.other_system` says what such a system lacks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from forecast_ledger.replay.cli import main
from tests.support.effort import LONG
from tests.support.paths import DATA, ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the other system is emulated on Linux")

FINE, FINDINGS, USAGE, UNREADABLE = range(4)
TABLE = "question,forecaster,probability,outcome\nrain,ada,0.8,yes\nrain,bo,0.4,yes\n"
# In a short run, pictures are specifications, and the report has none: a library of others draws them.
PICTURE, FEW = ("json", ("--as-of", "1")) if LONG == 1 else ("svg", ())
LOG = f"{DATA}/metaculus-2022/commands.jsonl"
MAP = ("--map", f"{DATA}/csv-import/forecasts.toml")
LINES: list[tuple[int, tuple[str, ...]]] = [  # the exit code of each, and its arguments
    (FINE, ("append", "season.db", LOG)),
    *((FINE, ("append", "season-folder/", LOG)),) * 2,
    (FINDINGS, ("append", "form.db", f"{DATA}/csv-import/forecasts.csv", *MAP, "--refused", "rest.csv")),
    (UNREADABLE, ("append", "form.db", "rest.csv", *MAP, "--refused", "rest.csv")),
    (FINE, ("append", "arena.db", f"{DATA}/arena-week/commands.jsonl")),
    *((FINE, ("audit", "season.db", "paper.md")),) * 2,
    (FINE, ("balance", "arena.db")),
    (FINE, ("blame", "season.db", "leaderboard", "plain", "A")),
    (FINE, ("checkpoint", "season.db")),
    (FINE, ("columns", "leaderboard")),
    (FINE, ("compare", "season.db", f"{DATA}/metaculus-2022/expected/prizes.csv", "--table", "prizes")),
    (FINE, ("completion", "bash")),
    (FINE, ("demo", "--keep", "guides")),
    (FINE, ("diff", "season.db", "@33", "@34", "--table", "prizes")),
    (FINE, ("explain", "season.db", "prize", "plain", "A")),
    *(
        (FINE, ("export", "season.db", f"season-{form}", "--format", form, *again))
        for form in ("sqlite", "csv", "segments")
        for again in ((), ("--force",))
    ),
    (FINE, ("follow", "season.db", "tables.db", "--once")),
    (FINE, ("follow", "season.db", "tables.db", "--check")),
    (FINE, ("help", "rules")),
    *((FINE, ("import", f"season-{form}", f"from-{form}.db")) for form in ("sqlite", "csv", "segments")),
    (FINE, ("import-from", "metaculus", "metaculus.db", f"{DATA}/metaculus-import")),
    (FINE, ("leaderboard", "season.db", "plain")),
    (FINE, ("ledgers", "season.db")),
    (FINE, ("log", "season.db")),
    (FINE, ("pack", "season.db", "season.zip")),
    (FINE, ("pack", "season.zip", "--check")),
    (USAGE, ("pay", "arena.db", "week-1")),  # nobody wins there
    (FINE, ("plot", "season.db", "board", f"board.{PICTURE}", "--contest", "plain")),
    (FINE, ("replay", "season.db", "--engine", "processes")),
    (FINE, ("replay", "season.db", "--format", "json")),
    (FINE, ("report", "season.db", "page.html", *FEW)),
    (FINE, ("rules", "peer-2024-03")),
    (FINE, ("sample", "season.db", "--size", "3")),
    (FINE, ("schema", "commands")),
    (FINE, ("score", "forecasts.csv", "--log", "scored.db", "--write-map", "map.toml")),
    (FINE, ("seal", "season.db", "season-segments", "--rows", "8")),
    (FINE, ("append", "season.db", "late.jsonl")),
    (FINE, ("seal", "season.db", "season-segments", "--rows", "8")),
    (FINE, ("show", "season.db", "3")),
    (FINE, ("table", "season.db", "scores", "--format", "csv")),
    (FINE, ("tie-out", "season.db", "plain")),
    (FINE, ("verify", "season.db")),
    (FINE, ("what-if", "season.db", "--rules", "peer-2024-03", "--contest", "plain", "--show", "prizes")),
]
LATE = '{"id": "late", "type": "open_contest", "at": "2022-05-01T00:00:00Z", "contest": "late", "rules": "baseline"}\n'


def on_other_system(folder: Path, *arguments: str) -> str:
    """What a program prints that runs in a folder, in a process of its own; it must end well."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNDEFAULTENCODING": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_command_runs_without_posix(tmp_path: Path) -> None:
    """Each has a line above and does what it should; the digests of all tables are those that this system computes."""
    assert {arguments[0] for _, arguments in LINES} == {*main.main.list_commands(click.Context(main.main))}
    (tmp_path / "forecasts.csv").write_text(TABLE)
    (tmp_path / "late.jsonl").write_text(LATE)
    (tmp_path / "commands.jsonl").write_text("".join(json.dumps(line) + "\n" for _, line in LINES))
    printed = on_other_system(tmp_path, "-m", "tests.support.other_system")
    answers: list[tuple[int, str]] = [tuple(json.loads(line)) for line in printed.splitlines()]
    found = {" ".join(line): answer for (_, line), answer in zip(LINES, answers, strict=True)}
    wrong = {" ".join(line): answer for (code, line), answer in zip(LINES, answers, strict=True) if answer[0] != code}
    assert not wrong, "\n".join(f"{line}\n{text}" for line, (_, text) in wrong.items())
    assert not [path.name for path in tmp_path.rglob(".*")]
    runner = CliRunner()
    assert runner.invoke(main.main, ["append", str(tmp_path / "here.db"), LOG]).exit_code == FINE
    here = runner.invoke(main.main, ["replay", str(tmp_path / "here.db"), "--format", "json"])
    there = found["replay season.db --format json"][1]
    assert there.partition("as of")[0] == here.output.partition("as of")[0] != ""  # rows say when they were recorded


STEPS = """
import os
import sys
from pathlib import Path
from tests.support import other_system

other_system.become_other()


def refused(step, *given):
    try:
        step(*given)
    except (OSError, ImportError) as error:
        return type(error).__name__
    return None


Path("folder").mkdir()
Path("folder", "file").write_bytes(b"1")
with Path("folder", "file").open("rb") as file:
    print(refused(os.open, "folder", os.O_RDONLY), refused(__import__, "fcntl"), refused(os.fsync, file.fileno()))
    print(refused(Path("folder", "file").unlink), refused(Path("folder").rename, "other"))
    Path("new").write_bytes(b"2")
    print(refused(Path("new").replace, "folder/file"), refused(Path("a:b").write_bytes, b""), hasattr(os, "fork"))
Path("new").replace("folder/file")

from forecast_ledger.ledger.core.systems import FolderLock, sync_path
from forecast_ledger.replay.files.manifest import clear_leftovers, scratch_folder

first, second = FolderLock(Path("folder")), FolderLock(Path("folder"))
print(first.take(), first.is_there(), second.take())
first.close()
print(second.take(), sorted(path.name for path in Path("folder").iterdir()))
second.close()
sync_path(Path("folder"))
sync_path(Path("folder", "file"))
print(sorted(path.name for path in Path("folder").iterdir()))
left = Path(f".out.{'0' * 32}.part")
left.mkdir()
Path(left, "old").write_bytes(b"3")
with scratch_folder(Path("out")) as part:
    clear_leftovers(Path("out"))
    print(part.exists(), left.exists(), Path("out").read_bytes())
print(part.exists())
"""


def test_the_other_system_refuses_what_windows_refuses_and_locks_work_there(tmp_path: Path) -> None:
    """Folders are not files, what is open stays where it is; a lock is one process's, and leaves no file behind."""
    assert on_other_system(tmp_path, "-c", STEPS).splitlines() == [
        "PermissionError ModuleNotFoundError OSError",
        "PermissionError PermissionError",
        "PermissionError OSError False",
        "True True False",
        "True ['.lock', 'file']",
        "['file']",
        "True False b'3'",
        "False",
    ]


def test_output_has_the_same_bytes_on_every_system() -> None:
    """A command whose output goes to a file writes UTF-8 and LF, also where lines end otherwise."""
    program = "import io, sys\nsys.stdout = io.TextIOWrapper(io.BytesIO(), 'cp1252', newline='\\r\\n')\n"
    program += "from forecast_ledger.replay.cli.signals import prepare_streams\nprepare_streams()\n"
    program += "print('\\u96e8')\nsys.stdout.flush()\nsys.stderr.write(repr(sys.stdout.buffer.getvalue()))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == repr(b"\xe9\x9b\xa8\n")
