"""The gallery is true: its counts are those of the compared files, its numbers those that the tests compare."""

import ast
import csv
import re
from pathlib import Path

import pytest

from tests.support.paths import DATA, ROOT
from tests.system.test_pages import tables

PAGE = ROOT / "docs/gallery.md"
OVERVIEW = tables(PAGE)["| source | compared | agree | differ |"]
COMPARED = {  # files of published figures, and their columns that are only keys or counts
    "Tournament Scoring": ("metaculus-2022", ["daily", "scores", "leaderboard"], {"day", "completion"}),
    "Scores FAQ": ("metaculus-faq", ["scores", "totals", "daily", "coverage", "errors"], {"day", "exact"}),
    "hubEvals": ("hub-scores", ["wis", "mean_wis"], {"horizon"}),
}
KEYS = {"contest", "question", "participant"}


def figures(story: str, name: str, keys: set[str]) -> int:
    """The number of published figures in a file of a story."""
    with (DATA / story / f"expected/published_{name}.csv").open(encoding="utf-8", newline="") as file:
        return sum(1 for row in csv.DictReader(file) for column in row if column not in KEYS | keys)


@pytest.mark.parametrize("source", COMPARED)
def test_the_overview_counts_the_figures_that_are_compared(source: str) -> None:
    """Those that agree and those that differ: the ten figures that the FAQ has in error."""
    [cells] = [row.strip("| ").split(" | ") for row in OVERVIEW if source in row]
    story, names, keys = COMPARED[source]
    count = sum(figures(story, name, keys) for name in names)
    errors = figures(story, "errors", keys) if "errors" in names else 0
    assert [int(re.match(r"\d+", cell)[0]) for cell in cells[1:]] == [count, count - errors, errors]  # type: ignore[index]


def test_the_overview_counts_the_rows_of_the_arena() -> None:
    """Of the tables of its methodology."""
    files = [DATA / f"arena-week/expected/published_{name}.csv" for name in ("bet_brier", "positions", "confidences")]
    files += [DATA / f"brier-tables/expected/published_{name}.csv" for name in ("scores", "totals")]
    count = sum(len(file.read_text(encoding="utf-8").splitlines()) - 1 for file in files)
    [row] = [row for row in OVERVIEW if "Forecaster Arena" in row]
    assert f"| {count} rows | {count}, " in row


def constants(name: str) -> set[str]:
    """The numbers and texts that the source of a module of tests has."""
    module = ast.parse((ROOT / "tests" / name).read_text(encoding="utf-8"))
    return {str(node.value) for node in ast.walk(module) if isinstance(node, ast.Constant)}


@pytest.mark.parametrize(
    ("heading", "modules"),
    [
        ("Markets on replications", ["system/test_replication.py"]),
        ("FluSight, season 2025-26", ["system/test_flusight.py", "system/test_hub_season.py"]),
    ],
)
def test_numbers_of_real_data_are_those_that_the_tests_compare(
    heading: str, modules: list[str], tmp_path: Path
) -> None:
    """Each number in the tables of these sections, and each large one in their text."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (tmp_path / "section.md").write_text(section, encoding="utf-8")
    cells = [cell for rows in tables(tmp_path / "section.md").values() for row in rows for cell in row.split(" | ")]
    found = {cell.strip("| ").replace(",", "") for cell in cells if re.fullmatch(r"[| ]*[\d.,]+%?[| ]*", cell)}
    assert len(found) >= 8
    assert found - {number for name in modules for number in constants(name)} == set()
