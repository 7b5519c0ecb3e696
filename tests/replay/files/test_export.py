"""Exports: whole or not there, the same bytes for the same log, and complete."""

import csv
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import ipc, parquet

from forecast_ledger.bench.inputs import DAY, START, forecasts, handle_all, opening
from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion, SubmitForecast, WithdrawForecast
from forecast_ledger.ledger.model.log import encode_row
from forecast_ledger.ledger.storing.stored_log import PAGE, StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.core.columns import KINDS, Column, Values, ids, transpose
from forecast_ledger.projections.core.table import Table, TableParts
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.files import export as module
from forecast_ledger.replay.files.event_table import EVENT_COLUMNS
from forecast_ledger.replay.files.export import default_tables, export
from forecast_ledger.replay.files.formats import (
    FILE_FORMATS,
    UNITS,
    ExportTable,
    ReplayedEvents,
    StoredEvents,
    export_tables,
)
from forecast_ledger.replay.files.manifest import MANIFEST_FILE, read_manifest
from forecast_ledger.replay.files.restore import restore
from forecast_ledger.replay.reading.blocks import escape_formula
from forecast_ledger.replay.reading.log import Cut
from forecast_ledger.replay.reading.replay import Replay, replay
from tests.support import oracle
from tests.support.effort import LONG, times
from tests.support.exports import EVERYTHING, FORMS, TITLES, contents, digests, exported
from tests.support.logs import commands_of, rows, written
from tests.support.processes import Command
from tests.support.waiting import PATIENCE

FILES = [form for form in FORMS if form != "sqlite"]


@pytest.fixture(scope="module")
def folders(log: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Everything, in each format that has a file a table."""
    base = tmp_path_factory.mktemp("folders")
    for form in FILES:
        exported(log, base / form, form)
    return {form: base / form for form in FILES}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_log_gives_the_same_bytes(log: str, tmp_path: Path, form: str) -> None:
    """Whenever and wherever it is exported, every file; also tables that are asked for by name.

    A third of the tables in each format; in a long run, all.
    """
    names = EVERYTHING[FORMS.index(form) % 3 :: 3] if LONG == 1 else EVERYTHING
    for place in ("one", "other"):
        (tmp_path / place).mkdir()
        exported(log, tmp_path / place / "out", form, tables=names)
    one, other = contents(tmp_path / "one"), contents(tmp_path / "other")
    assert one == other
    files = {*names, "contests", "events", "questions", "participants", "data_dictionary", "manifest"}
    assert len(one) == (2 if form == "sqlite" else len(files))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", [False, True], ids=["new", "replaced"])
def test_an_export_is_on_the_disk_before_it_has_its_name(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, before: bool
) -> None:
    """Every file of it, and the folder that they are in; then the folder in which it got its name."""
    if before:
        exported(log, tmp_path / "out", form, tables=["scores", "cash"])
    synced: list[int] = []
    named: list[tuple[str, set[int]]] = []
    fsync, replace = os.fsync, Path.replace

    def watched(opened: int) -> None:
        synced.append(os.fstat(opened).st_ino)
        fsync(opened)

    def renamed(self: Path, target: Path) -> Path:
        inside = {path.stat().st_ino for path in (self, *self.rglob("*"))}
        named.append((target.name, inside - {*synced}))
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(Path, "replace", renamed)
    exported(log, tmp_path / "out", form, force=before, tables=["scores", "cash"])
    given = [(name, missing) for name, missing in named if name != "old"]
    assert [name for name, _ in given] == (["out", "out.metadata.json"] if form == "sqlite" else ["out"])
    assert [missing for _, missing in given] == [set()] * len(given)
    assert synced[-1] == tmp_path.stat().st_ino


@pytest.mark.parametrize("form", FORMS)
def test_an_export_is_complete(log: str, tmp_path: Path, form: str) -> None:
    """Imported into a new ledger of any name, the rows are the same bytes."""
    exported(log, tmp_path / "out", form, tables=["scores"])
    assert restore(tmp_path / "out", str(tmp_path / "copy.db"), "other") == len(rows(log))
    assert rows(str(tmp_path / "copy.db"), "other") == rows(log)
    restore(tmp_path / "out", str(tmp_path / "copy.db"))
    assert rows(str(tmp_path / "copy.db")) == rows(log)


@settings(max_examples=times(12), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(oracle.logs())
def test_random_logs_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, asked: list[AnyCommand]) -> None:
    """Through every format, and through one after another; one of them has the other tables, too."""
    base = tmp_path_factory.mktemp("random")
    location = written(base / "log.db", asked, refused=True)
    first, whole = location, FORMS[len(rows(location)) % len(FORMS)]
    for form in FORMS:
        exported(location, base / f"out.{form}", form, tables=None if form == whole else ["scores"])
        restore(base / f"out.{form}", str(base / f"{form}.db"))
        location = str(base / f"{form}.db")
    assert rows(location) == rows(first)


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_log_is_exported_and_imported(tmp_path: Path, form: str) -> None:
    """Every table is there, without rows."""
    with Ledger.open(tmp_path / "log.db"):
        pass
    manifest = exported(str(tmp_path / "log.db"), tmp_path / "out", form)
    assert manifest.log_position == sum(part.rows for name, part in manifest.tables.items() if name in CATALOGUE) == 0
    assert restore(tmp_path / "out", str(tmp_path / "copy.db")) == 0
    assert rows(str(tmp_path / "copy.db")) == []


def test_the_manifest_says_what_the_export_is_of(log: str, folders: dict[str, Path]) -> None:
    """Ledger, log position, digest, and of each table what a replay says; the events' digest is the log's."""
    found, manifest = replay(log), read_manifest(folders["csv"])
    assert (manifest.ledger, manifest.format, manifest.whole) == ("main", "csv", True)
    assert (manifest.log_position, manifest.log_digest) == found.checkpoint
    assert (manifest.tables["events"].rows, manifest.tables["events"].digest) == found.checkpoint
    for name in default_tables():
        part, table = manifest.tables[name], found.table(name)
        assert (part.rows, part.digest, part.version) == (len(table), table.digest(), CATALOGUE[name].version)
    assert {"questions", "participants", "data_dictionary"} <= manifest.tables.keys()
    assert not {"score_parts", "portfolio_snapshots"} & manifest.tables.keys()


@pytest.mark.parametrize("form", FILES)
def test_every_column_is_in_the_dictionary(folders: dict[str, Path], form: str) -> None:
    """The dictionary has the kind, unit and meaning of each column of each table, in the order of the files."""
    said = read(folders[form], "data_dictionary", form)
    for path in folders[form].glob(f"*.{form}"):
        if path.stem != "data_dictionary":
            described = [row for row in said if row["table"] == path.stem]
            found = read(folders[form], path.stem, form)
            assert not found or [row["column"] for row in described] == list(found[0])
            assert all(row["kind"] in KINDS and row["unit"] and row["meaning"] for row in described)
    assert UNITS.keys() == KINDS.keys()


def read(folder: Path, table: str, form: str) -> list[dict[str, Any]]:
    """The rows of a table, by whoever reads such files."""
    path = folder / f"{table}.{form}"
    if form == "csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, strict=True))
    if form == "jsonl":
        return [json.loads(line) for line in path.read_bytes().splitlines()]
    if form == "parquet":
        return list(parquet.ParquetFile(path).read().to_pylist())
    with ipc.open_file(path) as file:
        return list(file.read_all().to_pylist())


@pytest.fixture(scope="module")
def season(log: str) -> Replay:
    """A replay of the log."""
    return replay(log)


@pytest.mark.parametrize("name", default_tables())
def test_files_hold_what_the_tables_print(season: Replay, folders: dict[str, Path], name: str) -> None:
    """The same rows in the same order. JSON is as printed; in CSV all is text, and nothing what is missing; in Parquet
    and Arrow decimals and instants are values.
    """
    kinds = {column.name: column.kind for column in CATALOGUE[name].columns}
    printed = list(season.table(name).rows())
    assert read(folders["jsonl"], name, "jsonl") == printed
    assert read(folders["csv"], name, "csv") == [{key: in_csv(value) for key, value in row.items()} for row in printed]
    valued = [{key: in_arrow(value, kinds[key]) for key, value in row.items()} for row in printed]
    assert read(folders["parquet"], name, "parquet") == read(folders["arrow"], name, "arrow") == valued


def in_csv(value: str | int | None) -> str:
    """Return a text as a cell, with an apostrophe before a formula."""
    text = "" if value is None else str(value)
    number = text[1:2].isdigit() and text[0] == "-"
    return f"'{text}" if text[:1] in set("=+-@") and not number else text


def in_arrow(value: Any, kind: str) -> Any:
    """The value that a printed text stands for."""
    if value is None or kind in {"id", "text", "count", "integer", "take"}:
        return value
    return datetime.fromisoformat(value) if kind == "instant" else Decimal(value)


def test_events_say_what_the_log_says(log: str, folders: dict[str, Path]) -> None:
    """One row a row of the log, its bytes as text, and its parts beside them."""
    for form in FILES:
        said = read(folders[form], "events", form)
        assert [row["row"].encode() for row in said] == rows(log)
        for row in said:
            whole = json.loads(row["row"])
            assert json.loads(row["event"]) == whole["event"]
            assert (str(row["position"]), row["digest"]) == (str(whole["position"]), whole["digest"])
            assert row["type"] == whole["event"]["type"]
            for name in ("contest", "question", "participant"):
                own = whole["event"].get(name, "")
                assert row[name] == (in_csv(own) if form == "csv" else own)
            at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=whole["event"]["at"])
            assert datetime.fromisoformat(str(row["at"])) == at
        assert list(said[0]) == [column.name for column in EVENT_COLUMNS]


@pytest.mark.parametrize("size", [1, 60, 500])
def test_events_are_the_same_whatever_pages_they_are_read_in(size: int) -> None:
    """Forecasts are written from their columns, and the events between them one by one, in the order of the log."""
    made = forecasts(400, 3, 20)
    first = made[0]
    assert isinstance(first, SubmitForecast)
    who: dict[str, Any] = {"question": first.question, "participant": first.participant}
    who["at"] = format_instant(START + 29 * DAY)
    ended, again = WithdrawForecast(id="end", **who), SubmitForecast(id="again", probability="0.3", **who)
    late = OpenQuestion(id='"é', question="é", kind="binary", opens_at=who["at"], closes_at=who["at"][:-1] + ".5Z")
    with Ledger.open(":memory:") as ledger:
        handle_all(ledger, [*opening(3), *made[:200], late, *made[200:], ended, again])
        every = [encode_row(recorded) for page in ledger.read() for recorded in page]
        season = replay(ledger)

    class Store:
        name = "main"

        def pages(self) -> Iterator[list[bytes]]:
            return (every[begin : begin + size] for begin in range(0, len(every), size))

    replayed, encoded = (
        Table.joined([*ReplayedEvents(Store(), Cut(None), encoded=encoded)])  # type: ignore[arg-type]
        for encoded in (False, True)
    )
    assert [*replayed.rows()] == [*Table.joined([*StoredEvents(Store(), season)]).rows()]
    assert encoded.to_arrow().equals(replayed.to_arrow())
    for said, whole in zip(replayed.rows(), map(json.loads, every), strict=True):
        assert (said["position"], said["command_id"]) == (whole["position"], whole["command_id"])
        assert json.loads(said["event"]) == whole["event"]
        assert said["type"] == whole["event"]["type"]
        for name in ("contest", "question", "participant"):
            assert said[name] == whole["event"].get(name, "")


def test_odd_texts_come_through(folders: dict[str, Path]) -> None:
    """Line breaks, quotation marks, other scripts; in CSV alone a formula gets an apostrophe before it."""
    for form in FILES:
        titles = {row["question"]: row["title"] for row in read(folders[form], "questions", form)}
        for question, title in TITLES.items():
            name = f"'{question}" if form == "csv" and question == "@at" else question
            guarded = form == "csv" and title[0] in "=@"
            assert titles[name] == (f"'{title}" if guarded else title)


def test_a_negative_number_stays_a_number_in_csv(folders: dict[str, Path]) -> None:
    """The guard against formulas is for texts."""
    scores = [row["score"] for row in read(folders["csv"], "scores", "csv")]
    amounts = [row["amount"] for row in read(folders["csv"], "journal", "csv")]
    assert any(Decimal(score) < 0 for score in scores)
    assert any(Decimal(amount) < 0 for amount in amounts)


def test_a_log_is_read_once(log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables are computed from the rows that are written; the row at its end is looked at again."""
    counts, read = list[int](), StoredLog.read

    def counted(store: StoredLog, after: int, limit: int = PAGE) -> list[bytes]:
        found = read(store, after, limit)
        counts.append(len(found))
        return found

    monkeypatch.setattr(StoredLog, "read", counted)
    manifest = exported(log, tmp_path / "out", "jsonl", tables=["scores"])
    assert sum(counts) == manifest.log_position + 1


def test_no_export_to_arrow_imports_pandas(tmp_path: Path) -> None:
    """Where it is installed, this would take a third of a second."""
    location = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    program = (
        "import sys; from forecast_ledger import export; log = sys.argv[1]\n"
        "for form in ('arrow', 'parquet'): export(log, f'{log}.{form}', form, tables=['scores'])\n"
        "sys.exit('pandas' in sys.modules)"
    )
    assert Command(location, program=program).ended(PATIENCE).returncode == 0


def test_an_export_can_be_cut(log: str, tmp_path: Path) -> None:
    """An export as of a log position imports as the log up to there."""
    manifest = export(log, tmp_path / "out", "csv", as_of=30)
    assert manifest.log_position == 30
    restore(tmp_path / "out", str(tmp_path / "copy.db"))
    assert rows(str(tmp_path / "copy.db")) == rows(log)[:30]
    assert digests(str(tmp_path / "copy.db")) == digests(log, 30)


@pytest.mark.parametrize(("then", "options"), [("manifest_of", {}), ("StoredEvents", {"memory": 2**30})])
def test_events_that_others_append_meanwhile_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, options: dict[str, int]
) -> None:
    """The export has the log as it was when it was first read; given a bound of memory, it reads the log twice."""
    location, commands = str(tmp_path / "log.db"), commands_of("metaculus-2022")
    written(tmp_path / "log.db", commands[:20])
    before = rows(location)
    called = getattr(module, then)
    appending = lambda *of, **more: (written(tmp_path / "log.db", commands), called(*of, **more))[1]  # noqa: E731 - as short
    monkeypatch.setattr(module, then, appending)
    exported(location, tmp_path / "out", "jsonl", **options)
    restore(tmp_path / "out", str(tmp_path / "copy.db"))
    assert len(rows(location)) > len(before)
    assert rows(str(tmp_path / "copy.db")) == before


@pytest.mark.parametrize(
    ("form", "error"),
    [*zip(FORMS, cycle([OSError("disk full"), KeyboardInterrupt(), Corrupt(3, "changed meanwhile")]), strict=False)],
)
def test_what_fails_leaves_nothing(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, error: BaseException
) -> None:
    """No file, no folder, nothing hidden; and what was there before is as it was."""

    def failing(*of: Any, **options: Any) -> Any:
        for number, sheet in enumerate(export_tables(*of, **options)):
            if number == 5:
                raise error
            yield sheet

    exported(log, tmp_path / "old", form, tables=["scores"])
    there = contents(tmp_path)
    monkeypatch.setattr(module, "export_tables", failing)
    for name, force in (("new", False), ("old", True)):
        with pytest.raises(type(error)):
            exported(log, tmp_path / name, form, force=force)
    assert contents(tmp_path) == there
    assert {path.name for path in tmp_path.iterdir()} <= {"old", "old.metadata.json"}


@pytest.mark.parametrize("form", FORMS)
def test_an_export_is_replaced_only_by_force(log: str, tmp_path: Path, form: str) -> None:
    """Then all of it is the new one, whatever its format was."""
    exported(log, tmp_path / "out", "csv", tables=["scores"])
    with pytest.raises(FileExistsError, match="force"):
        exported(log, tmp_path / "out", form)
    manifest = exported(log, tmp_path / "out", form, force=True, tables=["cash"])
    assert read_manifest(tmp_path / "out").format == form
    if form != "sqlite":
        assert {path.name for path in (tmp_path / "out").iterdir()} == {
            MANIFEST_FILE,
            *(part.file for part in manifest.tables.values()),
        }
    exported(log, tmp_path / "out", "csv", force=True, tables=["cash"])
    assert read_manifest(tmp_path / "out").format == "csv"
    assert {path.name for path in tmp_path.iterdir()} <= {"out", "out.metadata.json"}


@pytest.mark.parametrize("form", FORMS)
def test_nothing_but_an_export_is_ever_replaced(tmp_path: Path, form: str) -> None:
    """Not the log itself, nor a folder of other things, nor what a link leads to."""
    log = written(tmp_path / "log.db", commands_of("metaculus-2022"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").write_text("years of work", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "x.metadata.json").write_text("{}", encoding="utf-8")
    for name in ("log.db", "folder", "link", *(["x"] if form == "sqlite" else [])):
        with pytest.raises(FileExistsError):
            exported(log, tmp_path / name, form, force=True)
    assert (tmp_path / "folder" / "thesis.txt").read_text(encoding="utf-8") == "years of work"
    with pytest.raises(FileExistsError):
        exported(log, Path("/"), form, force=True)
    assert len(rows(log)) == 34


@pytest.mark.parametrize("form", FORMS)
def test_a_path_that_is_no_text_is_refused(log: str, tmp_path: Path, form: str) -> None:
    """A path with bytes that are not UTF-8 is neither written nor read."""
    out = Path(os.fsdecode(os.fsencode(tmp_path) + b"/out\xff"))
    with pytest.raises(OSError, match="the path cannot be encoded"):
        exported(log, out, form)
    with pytest.raises(Unavailable, match="not a complete export"):
        restore(out, str(tmp_path / "copy.db"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_that_holds_more_than_an_export_is_not_replaced(log: str, tmp_path: Path, form: str) -> None:
    """A notebook beside the tables is nothing that an export left."""
    exported(log, tmp_path / "out", "csv")
    (tmp_path / "out" / "analysis.ipynb").write_text("years of work", encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"analysis\.ipynb: is not part of the export"):
        exported(log, tmp_path / "out", form, force=True)
    assert (tmp_path / "out" / "analysis.ipynb").read_text(encoding="utf-8") == "years of work"
    assert read_manifest(tmp_path / "out").format == "csv"


@pytest.mark.parametrize("form", FORMS)
def test_what_a_format_cannot_hold_is_refused(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """A count of more than 64 bits, in what has types; by name, and nothing is left. As text it is exported."""
    of = CATALOGUE["prizes"]
    values: list[Values] = [ids(["cup"]), ids(["ada"]), [2**63]]
    schema = of.schema._replace(columns=(*of.columns[:2], Column("n", "count", "more than fits")))
    monkeypatch.setitem(CATALOGUE, "prizes", of._replace(schema=schema, build=lambda _: values))
    if form in {"csv", "jsonl"}:
        exported(log, tmp_path / "out", form)
        assert str(read(tmp_path / "out", "prizes", form)[0]["n"]) == str(2**63)
        return
    with pytest.raises(Refused, match="out_of_range"):
        exported(log, tmp_path / "out", form)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_must_be_there(log: str, tmp_path: Path) -> None:
    """A missing folder is not created."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        exported(log, tmp_path / "nowhere" / "out", "csv")


_CELLS = st.text("ab =-+@1,.;\"'\n\r\té＝\x00", max_size=4)  # noqa: RUF001


@settings(deadline=None)
@given(st.lists(st.tuples(_CELLS, _CELLS, st.none() | st.integers(-(10**12), 10**12)), max_size=6), st.booleans())
def test_any_text_is_written_as_the_libraries_write_it(rows: list[tuple[str, str, int | None]], floats: bool) -> None:
    """CSV as by the module `csv` after formulas are marked, JSON lines as by `json`; a repeated row like any other."""
    rows += rows[:1]
    columns = (Column("who", "id", ""), Column("s\n,aid", "text", ""), Column("won", "money", ""))
    who, said, won = transpose([*rows], 3)
    table = Table("t", 1, columns, (ids(who), said, won))
    sheet = ExportTable("t", "", ("who",), columns, 1, TableParts([table]), floats)
    printed = [None if number is None else format(Decimal(number).scaleb(-6), "f") for number in won]
    numbers: list[Any] = [None if text is None else float(text) for text in printed]
    with TemporaryDirectory() as folder:
        for form in ("csv", "jsonl"):
            FILE_FORMATS[form].write(Path(folder, form), sheet)
        lines = [json.loads(line) for line in Path(folder, "jsonl").read_bytes().splitlines()]
        found = Path(folder, "csv").read_bytes().decode()
    if not floats:
        numbers = [None if text is None else _two_decimals_at_least(text) for text in printed]
    assert lines == [
        dict(zip(("who", "s\n,aid", "won"), row, strict=True)) for row in zip(who, said, numbers, strict=True)
    ]
    expected = ""
    for row in [("who", "s\n,aid", "won"), *zip(who, said, numbers, strict=True)]:
        line = StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(map(escape_formula, row))
        expected += line.getvalue().removesuffix("\r\n") + "\n"
    assert found == expected


def _two_decimals_at_least(text: str) -> str:
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"


def test_an_empty_cell_alone_is_a_row(tmp_path: Path) -> None:
    """A line without a character would be none."""
    column = Column("said", "text", "")
    table = Table("t", 1, (column,), (["", "a"],))
    FILE_FORMATS["csv"].write(tmp_path / "t.csv", ExportTable("t", "", ("said",), (column,), 1, TableParts([table])))
    assert (tmp_path / "t.csv").read_text() == 'said\n""\na\n'
