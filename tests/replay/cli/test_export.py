"""`export` and `import` on the command line: what they print where, and what they exit with."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from forecast_ledger.replay.cli.main import DAMAGED, FINE, UNREADABLE, USAGE, main
from forecast_ledger.replay.files.export import default_tables
from forecast_ledger.replay.reading.blocks import as_csv
from tests.replay.cli.test_main import run
from tests.support.exports import FORMS
from tests.support.logs import commands_of, written
from tests.support.processes import Command
from tests.support.waiting import PATIENCE


@pytest.mark.parametrize("form", FORMS)
def test_there_and_back(log: str, tmp_path: Path, form: str) -> None:
    """Each format; both say on stderr what they speak about, as a replay does, and a replay of the copy is the same."""
    replayed = run("replay", log)
    out, copy = str(tmp_path / "out"), str(tmp_path / "copy.db")
    exported = run("export", log, out, "--format", form)
    assert (exported.exit_code, exported.stderr) == (FINE, replayed.stderr)
    said, expected = ({tuple(line.split()) for line in of.stdout.splitlines()[1:]} for of in (exported, replayed))
    assert expected <= said  # projection, rows, digest
    imported = run("import", out, copy, "--format", "json")
    assert (imported.exit_code, imported.stderr) == (FINE, replayed.stderr)
    assert json.loads(imported.stdout)[0]["appended"] == 34
    assert (run("replay", copy).stdout, run("verify", copy).exit_code) == (replayed.stdout, FINE)


@pytest.mark.parametrize(("name", "kind"), [("out.csv", ".csv"), ("out.db", ".db"), ("out.JSONL", ".jsonl")])
def test_the_name_of_an_export_says_its_format(log: str, tmp_path: Path, name: str, kind: str) -> None:
    """A folder has one file for each table, and is said to be none itself, because its name is that of a file."""
    out = tmp_path / name
    found = run("export", log, str(out), "--tables", "events")
    assert found.exit_code == FINE, found.stderr
    written = [*out.iterdir()] if out.is_dir() else [out]
    assert {path.suffix for path in written} - {".json", ".md"} == {kind}
    assert (f"{name} is a folder with a file for each table" in found.stderr) == out.is_dir()
    assert (
        json.loads(run("import", str(out), str(tmp_path / "copy.db"), "--format", "json").stdout)[0]["appended"] == 34
    )


def test_an_export_to_sqlite_does_not_import_pandas(log: str, tmp_path: Path) -> None:
    """It would take most of the time of a short export; a program that goes on can import it all the same."""
    (tmp_path / "pandas.py").write_text("imported = True")
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from click.testing import CliRunner
from forecast_ledger.__main__ import main
exported = CliRunner().invoke(main, ["export", *sys.argv[2:]])
assert (exported.exit_code, "pandas" in sys.modules, "sqlite_utils" in sys.modules) == (0, False, True)
import pandas
assert pandas.imported
"""
    assert Command(str(tmp_path), log, str(tmp_path / "out.db"), program=program).ended(PATIENCE).returncode == 0


def test_tables_are_chosen_by_name(log: str, tmp_path: Path) -> None:
    """`all` stands for those that there are anyway; what the tables are about is always there."""
    always = {"events", "contests", "questions", "participants", "data_dictionary"}
    for named, expected in (("scores", {"scores"}), ("all, score_parts", {*default_tables(), "score_parts"})):
        result = run("export", log, str(tmp_path / named), "--format", "csv", "--tables", named)
        assert result.exit_code == FINE
        assert {path.stem for path in (tmp_path / named).glob("*.csv")} == always | expected


def test_what_every_export_has_may_be_named(log: str, tmp_path: Path) -> None:
    """The log and what its tables are about; alone, nothing but they is there, and the log can be put back."""
    out, anyway = tmp_path / "out", ["contests", "data_dictionary", "events", "participants", "questions"]
    assert run("export", log, str(out), "--format", "csv", "--tables", "events").exit_code == FINE
    assert sorted(path.stem for path in out.iterdir() if path.suffix == ".csv") == anyway
    assert run("export", log, str(out), "--format", "csv", "--tables", ",".join(anyway), "--force").exit_code == FINE
    assert sorted(path.stem for path in out.iterdir() if path.suffix == ".csv") == anyway
    assert run("import", str(out), str(tmp_path / "copy.db")).exit_code == FINE


def test_csv_is_what_table_prints(log: str, tmp_path: Path) -> None:
    """The same bytes."""
    run("export", log, str(tmp_path / "out"), "--format", "csv")
    for name in default_tables():
        assert (tmp_path / "out" / f"{name}.csv").read_text(encoding="utf-8") == run(
            "table", log, name, "--format", "csv"
        ).stdout


def test_a_line_break_in_a_text_is_within_its_cell(tmp_path: Path) -> None:
    """The CSV that `table` prints quotes such a text, and escapes a lone carriage return, which would hide text."""
    title = "one\ntwo\rthree\r\nfour"
    said = {"type": "open_contest", "id": "c", "at": "2026-03-01T00:00:00Z", "contest": "cup", "title": title}
    line = json.dumps(said | {"rules": "relative-2022-04"}).encode()
    assert CliRunner().invoke(main, ["append", str(tmp_path / "log.db"), "-"], input=line).exit_code == FINE
    printed = run("table", str(tmp_path / "log.db"), "contests", "--format", "csv").stdout_bytes.decode()
    [row] = csv.DictReader(io.StringIO(printed, newline=""), strict=True)
    assert row["title"] == "one\ntwo\\rthree\r\nfour"


@pytest.mark.parametrize("title", ["\t=1+1", "\r=1+1", "\n@A1", " +1+1", "\xa0-1+1", "＝1+1"])  # noqa: RUF001
def test_a_formula_behind_white_space_is_one_too(title: str) -> None:
    """Spreadsheets pass over what stands before it, and take the wide signs for the narrow ones."""
    assert list(as_csv(["title"], [{"title": title}]))[1].strip('"') == f"'{title}"


def test_what_is_there_is_not_replaced(log: str, tmp_path: Path) -> None:
    """Wrong usage without --force; the log never."""
    out = str(tmp_path / "out")
    assert run("export", log, out, "--format", "csv").exit_code == FINE
    again = run("export", log, out, "--format", "jsonl")
    assert (again.exit_code, "--force" in again.stderr) == (USAGE, True)
    assert run("export", log, out, "--format", "jsonl", "--force").exit_code == FINE
    assert run("export", log, log, "--format", "sqlite", "--force").exit_code == USAGE
    assert run("verify", log).exit_code == FINE


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (
            ["export", "LOG", "DIR/out"],
            USAGE,
            "out: its name does not say what to write, as out.db or out.csv do; give",
        ),
        (["export", "LOG", "DIR/out", "--format", "xlsx"], USAGE, "sqlite"),
        (["export", "LOG", "DIR/out", "--format", "csv", "--tables", "scores,nothing"], USAGE, "there are: contests"),
        (["export", "LOG", "DIR/out", "--format", "csv", "--as-of", "35"], USAGE, "the log ends at position 34"),
        (["export", "DIR/nothing", "DIR/out", "--format", "csv"], UNREADABLE, "no such ledger"),
        (["export", "LOG", "DIR/no/out", "--format", "csv"], UNREADABLE, "does not exist"),
        (["export", "LOG", "DIR/" + "x" * 250, "--format", "csv"], UNREADABLE, f"/{'x' * 250}: File name too long\n"),
        (["export", "LOG", "DIR/" + "x" * 250, "--format", "sqlite"], UNREADABLE, f"{'x' * 250}: File name too long\n"),
        (["export", "LOG", "/proc/out", "--format", "csv"], UNREADABLE, "forecast-ledger: /proc/out: "),
        (["import", "DIR/nothing", "DIR/copy.db"], UNREADABLE, "not a complete export"),
        (["import", "LOG", "DIR/copy.db"], UNREADABLE, "not a complete export"),
        (["import", "DIR/nothing", "DIR/copy.db", "--name", ""], USAGE, "id_empty"),
    ],
)
def test_faults_say_what_is_wrong_and_leave_nothing(
    log: str, tmp_path: Path, arguments: list[str], code: int, says: str
) -> None:
    """One line, the exit code, and no file."""
    result = run(*(each.replace("LOG", log).replace("DIR", str(tmp_path)) for each in arguments))
    assert (result.exit_code, says in result.stderr) == (code, True), result.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"story.db", "story.db-wal", "story.db-shm"}


def test_a_damaged_export_is_located(log: str, tmp_path: Path) -> None:
    """The message names the log position; the exit code is 4."""
    run("export", log, str(tmp_path / "out"), "--format", "csv")
    path = tmp_path / "out" / "events.csv"
    path.write_bytes(path.read_bytes().replace(b"bot", b"bat"))
    result = run("import", str(tmp_path / "out"), str(tmp_path / "copy.db"))
    assert (result.exit_code, "log position" in result.stderr) == (DAMAGED, True), result.stderr
    assert not (tmp_path / "copy.db").exists()


def test_an_export_is_not_imported_into_itself(log: str, tmp_path: Path) -> None:
    """A file is an export or a log, not both."""
    out = tmp_path / "out.sqlite"
    assert run("export", log, str(out), "--format", "sqlite").exit_code == FINE
    before = out.read_bytes()
    result = run("import", str(out), str(tmp_path / "." / "out.sqlite"))
    assert (result.exit_code, "this is the export itself" in result.stderr) == (USAGE, True)
    assert out.read_bytes() == before


def test_an_export_is_not_added_to_another_ledger(log: str, tmp_path: Path) -> None:
    """Wrong usage; the message names ledger and log position."""
    other = written(tmp_path / "other.db", commands_of("arena-week"))
    run("export", log, str(tmp_path / "out"), "--format", "parquet")
    result = run("import", str(tmp_path / "out"), other)
    assert (result.exit_code, f"{other}: log position 1: " in result.stderr) == (USAGE, True)


def test_without_pyarrow_it_is_said_what_to_install(log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the formats need pyarrow; the others do not."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for form in FORMS:
        result = run("export", log, str(tmp_path / form), "--format", form)
        assert result.exit_code == (UNREADABLE if form in {"parquet", "arrow"} else FINE)
        assert ("forecast-ledger[columnar]" in result.stderr) == (form in {"parquet", "arrow"})
