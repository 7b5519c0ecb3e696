"""The benchmark as a program: what it prints, the file that it writes, and the page that is made from such a file."""

import json
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy
import pytest
from click.testing import CliRunner

from forecast_ledger.bench import results
from forecast_ledger.bench.__main__ import STEPS, Step, command
from tests.bench import ALL
from tests.pages import BENCHMARKS, benchmarks
from tests.scale import PROGRAMS, agree, write
from tests.support.paths import ROOT


def quick(folder: Path) -> dict[str, float]:
    """A step: half a second, and a count of the files that were there before."""
    count = len([*folder.iterdir()])
    (folder / "left").touch()
    return {"half: s": 0.5, "files: count": 1_000.0 * count}


def long(_: Path) -> dict[str, float]:
    """A step that is not asked for."""
    raise AssertionError


HERE = {
    "quick": Step(__name__, "what is measured"),
    "long": Step(__name__, "what is not"),
    "lacking": Step("", "", "no_such_package"),
}


def test_the_rows_are_printed_and_written_with_what_they_were_measured_with(tmp_path: Path) -> None:
    """Only the named steps are measured; the file has unrounded values, versions, and the commit of a clone."""
    path = tmp_path / "measured.json"
    ran = CliRunner().invoke(command(HERE), ["quick", "--json", str(path)])
    assert (ran.exit_code, ran.stdout) == (
        0,
        "| measured | value |\n| --- | --- |\n| half: s | 0.50 |\n| files: count | 0.0000 |\n",
    )
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["rows"] == [
        {"step": "quick", "measured": "half: s", "value": 0.5},
        {"step": "quick", "measured": "files: count", "value": 0.0},
    ]
    about = written["measured_on"]
    assert about["python"] == ".".join(map(str, sys.version_info[:3]))
    assert (about["packages"]["numpy"], about["packages"]["eventsourcing"]) == (
        numpy.__version__,
        version("eventsourcing"),
    )
    assert about["date"].endswith("Z")
    if (ROOT / ".git").exists():
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert about["commit"].removesuffix("-dirty") == head.strip()
    assert [*tmp_path.iterdir()] == [path]


def test_a_step_without_its_package_is_left_out_and_says_so() -> None:
    """So that the program works with the core alone."""
    ran = CliRunner().invoke(command(HERE), ["lacking"])
    assert (ran.exit_code, ran.stderr) == (0, "lacking: left out, since no_such_package is not installed\n")


def test_an_unknown_step_is_refused_with_the_steps_that_there_are() -> None:
    """Before anything is measured."""
    ran = CliRunner().invoke(command(HERE), ["quick", "slow"])
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "'slow' is not one of 'quick', 'long', 'lacking'" in ran.stderr


@pytest.mark.parametrize("name", ALL)
def test_every_step_has_its_function(name: str) -> None:
    """In the module that its row names; the benchmark of a clone has those of the package, and more."""
    assert callable(getattr(import_module(ALL[name].module), name))
    assert {*STEPS} < {*ALL}


def test_help_imports_nothing_that_measures() -> None:
    """The help is printed at once, and lists the steps."""
    script = (
        "import sys; from click.testing import CliRunner; from forecast_ledger.bench.__main__ import STEPS, command;"
        "said = CliRunner().invoke(command(STEPS), ['--help']).stdout;"
        "print('kernels' in said, sorted({'numpy', 'eventsourcing', 'msgspec'} & {*sys.modules}))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "True []\n"


def test_the_page_has_the_rows_of_the_file_beside_it() -> None:
    """If this fails, the file was measured again: `python -m tests.pages`."""
    assert BENCHMARKS.read_text(encoding="utf-8") == benchmarks()
    steps = {row.step for row in results.read(BENCHMARKS.with_suffix(".json")).rows}
    assert steps == {*ALL}, "a step is missing in the file, or is no longer measured"


def test_programs_that_are_compared_compute_the_same_board(tmp_path: Path) -> None:
    """DuckDB and Polars, in floats, from the files that our engines read; a board with another sign is found."""
    folder = write(tmp_path, 2_000)
    boards = [program(folder, 1)[1] for program in PROGRAMS.values()]
    assert len(boards[0]) > 1_000
    assert all(agree(boards[0], board) for board in boards)
    assert not agree(boards[0], {who: -score for who, score in boards[0].items()})
