"""Adding a table: a row of the catalogue and a builder are all that it takes."""

import subprocess
import sys
from pathlib import Path
from shutil import copytree

import projections
from forecast_ledger.projections.catalogue import analytics_tables, catalogue
from forecast_ledger.replay.cli import main
from tests.support.paths import ROOT
from tests.system.test_stories import METACULUS

ROOMS = {Path(str(each.__file__)).relative_to(ROOT).parts[0] for each in (projections, ledger, cli)}
ROW = """    "openings": Projection(
        1,
        "when each question opens",
        ("question",),
        (QUESTION, Column("opens_at", "instant", "first instant")),
        {builders}.openings_values,
        reads=("questions",),
    ),
"""
BUILDER = '''

def openings_values(of: Analysis) -> list[Values]:
    """One row a question."""
    return [ids([each.question for each in of.facts.questions]), [each.opens_at for each in of.facts.questions]]
'''


def copied(folder: Path) -> Path:
    """The program with one more table; two of its files are other than they were."""
    for room in {*ROOMS, "data"}:
        copytree(ROOT / room, folder / room, ignore=lambda *_: {"__pycache__"})
    rows, builders = (folder / Path(str(each.__file__)).relative_to(ROOT) for each in (catalogue, reports))
    first = "CATALOGUE: dict[str, Projection] = {\n"
    text = rows.read_text(encoding="utf-8")
    assert text.count(first) == 1
    row = ROW.format(builders=analytics_tables.__name__.rpartition(".")[2])
    rows.write_text(text.replace(first, first + row), encoding="utf-8")
    builders.write_text(builders.read_text(encoding="utf-8") + BUILDER, encoding="utf-8")
    return folder


def test_a_table_is_a_row_and_a_builder(tmp_path: Path) -> None:
    """It is then printed, replayed, exported, kept up, compared and blamed, and named where tables are listed."""
    folder = copied(tmp_path / "program")

    def run(*arguments: str, expected: int = 0) -> str:
        command = [sys.executable, "-c", f"from {main.__name__} import main; main()", *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == expected, done.stderr
        return done.stdout + done.stderr

    log, model, out = (str(tmp_path / name) for name in ("log.db", "model.db", "out"))
    lines = (ROOT / "data" / METACULUS / "commands.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    for name, part in (("first", lines[:1]), ("rest", lines[1:])):
        (tmp_path / name).write_text("".join(part), encoding="utf-8")
        run("append", log, str(tmp_path / name))
        run("follow", log, model, "--once")
    run("follow", log, model, "--check")
    table = run("table", log, "openings", "--format", "csv").splitlines()
    questions = [line.split(",")[0] for line in table[1:] if line.endswith("Z")]
    assert len(questions) > 1
    assert "openings" in run("replay", log)
    assert "openings" in run("columns", "openings")
    assert "openings" in run("table", log, "fame", expected=2)
    assert "question_opened" in run("blame", log, "openings", questions[0])
    assert "question_opened" in run("diff", log, "@0", "@34", "--table", "openings")
    run("export", log, out, "--format", "csv")
    assert (Path(out) / "openings.csv").read_text(encoding="utf-8").count("\n") == len(questions) + 1
