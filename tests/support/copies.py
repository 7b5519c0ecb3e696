"""A copy of the package, to be changed and run: what it takes to add something to it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from types import ModuleType

from tests.support.paths import ROOT


def copied(folder: Path) -> Path:
    """A folder in which the package stands as a whole, its links followed, with what is compiled of it."""
    halves = shutil.ignore_patterns("*.pyc.*")  # being written by another process
    shutil.copytree(ROOT / "forecast_ledger", folder / "forecast_ledger", ignore=halves)
    return folder


def edit(folder: Path, module: ModuleType, old: str, new: str) -> None:
    """Replace a text that stands in a module's copy once."""
    path = folder.joinpath(*module.__name__.split(".")).with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} in {path.name}"
    path.write_text(text.replace(old, new), encoding="utf-8")


SERVING = """
import json, sys
from click.testing import CliRunner
from forecast_ledger.replay.cli.main import main
for line in sys.stdin:
    done = CliRunner().invoke(main, json.loads(line))
    print(json.dumps([done.exit_code, done.stdout, done.stderr, repr(done.exception)]), flush=True)
"""


@contextmanager
def command_line(folder: Path) -> Iterator[Callable[..., str]]:
    """The copy's command line, in one process for all commands: `run(*arguments, code=0)` returns its output.

    The messages are last in it, unless the command succeeds.
    """
    command = [sys.executable, "-W", "error", "-c", SERVING]
    with subprocess.Popen(command, cwd=folder, stdin=PIPE, stdout=PIPE, encoding="utf-8") as process:
        asked, told = process.stdin, process.stdout
        assert asked
        assert told

        def run(*arguments: str, code: int = 0) -> str:
            asked.write(json.dumps(arguments) + "\n")
            asked.flush()
            found, stdout, stderr, fault = json.loads(told.readline())
            assert found == code, (stderr, fault)
            return str(stdout if code == 0 else stdout + stderr)

        yield run
