"""Adding a table: a row of the catalogue and a builder are all that it takes."""

from pathlib import Path

from forecast_ledger.projections.catalogue import catalogue
from forecast_ledger.projections.tables import analytics_tables
from tests.support import copies
from tests.support.paths import ROOT
from tests.system.test_stories import METACULUS

ROW = """    "openings": Projection(
        1,
        "when each question opens",
        ("question",),
        (QUESTION, Column("opens_at", "instant", "first instant")),
        analytics_tables.openings_values,
        reads=("questions",),
    ),
"""
BUILDER = '''def openings_values(of: Analysis) -> list[Values]:
    """One row a question."""
    return [ids([each.question for each in of.facts.questions]), [each.opens_at for each in of.facts.questions]]


'''


FIRST = "CATALOGUE: dict[str, Projection] = {\n"
BEFORE = "def contests_values("


def test_a_table_is_a_row_and_a_builder(tmp_path: Path) -> None:
    """A new table is printed, replayed, exported, refreshed, compared and blamed, and is in the lists of tables."""
    folder = copies.copied(tmp_path / "program")
    copies.edit(folder, catalogue, FIRST, FIRST + ROW)
    copies.edit(folder, analytics_tables, BEFORE, BUILDER + BEFORE)

    def run(*arguments: str, code: int = 0) -> str:
        return copies.run(folder, *arguments, code=code)

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
    assert "openings" in run("table", log, "fame", code=2)
    assert "question_opened" in run("blame", log, "openings", questions[0])
    assert "question_opened" in run("diff", log, "@0", "@34", "--table", "openings")
    run("export", log, out, "--format", "csv")
    assert (Path(out) / "openings.csv").read_text(encoding="utf-8").count("\n") == len(questions) + 1
