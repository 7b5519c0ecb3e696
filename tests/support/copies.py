"""A copy of the package, to be changed and run: what it takes to add something to it."""

import shutil
import subprocess
import sys
from pathlib import Path
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


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    """The output of the copy's command line, messages last."""
    command = [sys.executable, "-m", "forecast_ledger", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 and not done.stderr.startswith("{") else done.stdout + done.stderr
