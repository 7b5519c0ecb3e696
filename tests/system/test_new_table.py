"""Adding a table: its schema, its builder and its row, in one file, are all that it takes."""

from pathlib import Path

from forecast_ledger.projections.tables import questions
from tests.support import copies
from tests.support.paths import ROOT
from tests.system.test_stories import METACULUS

TABLE = '''_OPENINGS = schema("""
    when each question opens

    question*
    opens_at   instant  first instant
""")


def openings_values(of: Analysis) -> list[Values]:
    """One row a question."""
    return columns_of_rows([(each.question, each.opens_at) for each in of.facts.questions], _OPENINGS.columns)


'''
ROW = """    "openings": Projection(1, _OPENINGS, openings_values, reads=("questions",)),
"""
FIRST = "QUESTIONS: dict[str, Projection] = {\n"


def test_a_table_is_a_schema_a_builder_and_a_row_in_one_file(tmp_path: Path) -> None:
    """A new table is printed, replayed, exported, refreshed, compared and blamed, and is in the lists of tables."""
    folder = copies.copied(tmp_path / "program")
    copies.edit(folder, questions, FIRST, TABLE + FIRST + ROW)
    log, model, out = (str(tmp_path / name) for name in ("log.db", "model.db", "out"))
    lines = (ROOT / "data" / METACULUS / "commands.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    with copies.command_line(folder) as run:
        for name, part in (("first", lines[:1]), ("rest", lines[1:])):
            (tmp_path / name).write_text("".join(part), encoding="utf-8")
            run("append", log, str(tmp_path / name))
            run("follow", log, model, "--once")
        run("follow", log, model, "--check")
        table = run("table", log, "openings", "--format", "csv").splitlines()
        opened = [line.split(",")[0] for line in table[1:] if line.endswith("Z")]
        assert len(opened) > 1
        assert "openings" in run("replay", log)
        assert "openings" in run("columns", "openings")
        assert "openings" in run("table", log, "fame", code=2)
        assert "question_opened" in run("blame", log, "openings", opened[0])
        assert "question_opened" in run("diff", log, "@0", "@34", "--table", "openings")
        run("export", log, out, "--format", "csv")
        assert (Path(out) / "openings.csv").read_text(encoding="utf-8").count("\n") == len(opened) + 1
