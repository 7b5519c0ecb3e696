"""Results of a benchmark as JSON: its rows, and the code, date, processor and packages that they were measured with."""

import os
import platform
import re
import sqlite3
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
from msgspec import Struct

from forecast_ledger.replay.files.manifest import move_into_place, scratch_folder

PACKAGES = ("eventsourcing", "forecast-ledger", "msgspec", "numpy", "pyarrow", "scoringrules")


class Row(Struct, frozen=True, kw_only=True):
    """One row of the table: the step that measured it, its words, its value."""

    step: str
    measured: str
    value: float


class Machine(Struct, frozen=True, kw_only=True):
    """What a result was measured with; None is not known.

    commit: that of the clone, with -dirty behind it if files differ from it; None outside of a clone.
    packages: the version of each that is installed, and of SQLite.
    """

    commit: str | None
    date: str
    processor: str | None
    cores: int | None
    system: str | None
    python: str
    packages: dict[str, str]


class Result(Struct, frozen=True, kw_only=True):
    """The rows of one run."""

    measured_on: Machine
    rows: list[Row]


def machine() -> Machine:
    """Describe this machine, this code, and the packages that it uses."""
    return Machine(
        commit=_commit(Path(__file__).resolve().parent),
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        processor=_processor(Path("/proc/cpuinfo")),
        cores=os.cpu_count(),
        system=platform.platform(),
        python=platform.python_version(),
        packages=_versions() | {"sqlite": sqlite3.sqlite_version},
    )


def _commit(folder: Path) -> str | None:
    """The commit of the clone to which a folder belongs; None if git does not keep it, or is not there."""
    git = ["git", "-C", str(folder)]
    try:
        subprocess.run([*git, "ls-files", "--error-unmatch", __file__], check=True, capture_output=True)
        named = subprocess.run(
            [*git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return named.stdout.strip()


def _processor(described: Path) -> str | None:
    """The name of the processor, from the file in which Linux describes it; elsewhere as Python knows it."""
    text = described.read_text(encoding="utf-8") if described.exists() else ""
    named = re.search(r"(?m)^model name\s*: (.*)$", text)
    return named[1] if named else platform.processor() or None


def _versions() -> dict[str, str]:
    """The version of each package that is installed."""
    versions = dict[str, str]()
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def shown(row: Row) -> str:
    """Return a row of the table, its value with as many digits as its size needs.

    >>> shown(Row(step="reading", measured="log to leaderboard: events/s", value=96440.3))
    '| log to leaderboard: events/s | 96,440 |'
    """
    digits = 0 if row.value >= 100 else 2 if row.value >= 0.1 else 4
    return f"| {row.measured} | {row.value:,.{digits}f} |"


def table(result: Result) -> str:
    """Return the table in Markdown, as it is printed while it is measured."""
    return "\n".join(["| measured | value |", "| --- | --- |", *map(shown, result.rows)]) + "\n"


def write(result: Result, path: Path) -> None:
    """Write a result as JSON, complete under its name or not at all."""
    with scratch_folder(path) as folder:
        new = folder / path.name
        new.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
        move_into_place(new, path)


def read(path: Path) -> Result:
    """Read a result. Raises msgspec.ValidationError."""
    return msgspec.json.decode(path.read_bytes(), type=Result)
