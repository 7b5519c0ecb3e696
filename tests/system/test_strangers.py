"""Files and texts from strangers: refused in bounded time and memory, with the reason; no terminal obeys them."""

import csv
import io
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from msgspec import structs

from forecast_ledger.ledger.core import parquet_files
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.files import open_regular
from forecast_ledger.ledger.segments.segment_manifest import MANIFEST, SegmentManifest, describe_file, read_manifest
from forecast_ledger.ledger.storing.database import MAX_ROW_BYTES
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.projections.core.text_table import as_table
from forecast_ledger.replay.cli.append import LARGEST_MAP
from forecast_ledger.replay.cli.main import main
from forecast_ledger.replay.files import manifest
from forecast_ledger.replay.files.export import export
from forecast_ledger.replay.files.manifest import MANIFEST_BYTES, MANIFEST_FILE
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from forecast_ledger.replay.reading.blocks import as_json, as_terminal_csv
from forecast_ledger.replay.reference.exit_codes import DAMAGED, FINDINGS, FINE, UNREADABLE, USAGE
from tests.support.effort import LONG
from tests.support.exports import FORMS, resealed
from tests.support.given import contest, entry, forecast, opened, resolution
from tests.support.logs import log_fixture, rows, written
from tests.support.paths import DATA
from tests.support.processes import Command
from tests.support.waiting import PATIENCE

SECONDS, MEMORY = PATIENCE, 2**31  # that an attack may take: far more than a refusal needs
GIGANTIC = 2**40  # bytes: a file with nothing in it, which takes no room on a disk


log = log_fixture(
    [opened(title="Rain?"), contest(title="Rain?"), entry(), forecast(), resolution()],
    "module",
)


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for an export in each format, which is made when a test first asks for it."""
    return tmp_path_factory.mktemp("exports")


@pytest.fixture
def made(log: str, exports: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A function that gives an export of the log in a format, to be forged."""

    def make(form: str) -> Path:
        if not (exports / form).exists():
            (exports / form).mkdir()
            export(log, exports / form / f"out-{form}", form)
        shutil.copytree(exports / form, tmp_path, dirs_exist_ok=True)
        return tmp_path / f"out-{form}"

    return make


def ran(*args: object, memory: int = MEMORY) -> "subprocess.CompletedProcess[str]":
    """Run the command line in a process with a time limit and a memory limit."""
    return Command(*map(str, args), memory=memory).ended(SECONDS)


@contextmanager
def in_time(seconds: float = SECONDS) -> Iterator[None]:
    """End the block by force if it takes too long."""

    def end(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def invoke(*args: object) -> Any:
    """Run the command line in this process, with a time limit."""
    with in_time():
        return CliRunner().invoke(main, [*map(str, args)])


def refused(export: Path, log: str, tmp_path: Path) -> str:
    """Check that `import` and `compare` refuse an export and leave no ledger; return the message of `import`."""
    into = tmp_path / "copy.db"
    imported, compared = invoke("import", export, into), invoke("replay", log, "--compare", export)
    for done in (imported, compared):
        assert done.exit_code in {UNREADABLE, USAGE}, done.exception
    assert not list(tmp_path.glob("copy.db*"))
    return str(imported.stderr)


def resaid(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the manifest of an export."""
    manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
    change(manifest)
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")


def fifo(path: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


def link(path: Path) -> None:
    """A link to a device that never ends."""
    path.symlink_to("/dev/zero")


def device(path: Path) -> None:
    """A device that never ends."""
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")


def bound(path: Path) -> None:
    """A socket."""
    before = Path.cwd()
    os.chdir(path.parent)  # its own name is short enough for one
    try:
        with closing(socket.socket(socket.AF_UNIX)) as unix:
            unix.bind(path.name)
    finally:
        os.chdir(before)


def sparse(path: Path) -> None:
    """A file larger than any memory."""
    with path.open("wb") as file:
        file.truncate(GIGANTIC)


KINDS = [fifo, link, device, Path.mkdir, bound, sparse]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", [MANIFEST_FILE, "events.csv", "scores.csv"])
def test_only_regular_files_of_an_export_are_read(
    made: Callable[[str], Path], log: str, tmp_path: Path, name: str, kind: Callable[[Path], None]
) -> None:
    """A link, FIFO, device, folder, socket or far too large file in an export is refused before a byte is read."""
    out = made("csv")
    (out / name).unlink()
    kind(out / name)
    if kind is link or name == "scores.csv":
        with pytest.raises(OSError, match=r"not a regular file|at most"):
            open_regular(out / name, MAX_ROW_BYTES)
    if name != "scores.csv":  # which a comparison does not read
        said = refused(out, log, tmp_path)
        assert "not a regular file" in said or ("at most" in said and kind is sparse)
    else:
        assert invoke("import", out, tmp_path / "copy.db").exit_code == UNREADABLE


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "arrow"])
def test_a_link_to_events_is_not_followed(made: Callable[[str], Path], log: str, tmp_path: Path, form: str) -> None:
    """A link in an export is refused even if it leads to the original file."""
    out = made(form)
    (out / f"events.{form}").rename(tmp_path / "elsewhere")
    (out / f"events.{form}").symlink_to(tmp_path / "elsewhere")
    assert "not a regular file" in refused(out, log, tmp_path)


@pytest.mark.parametrize("kind", [fifo, device, sparse, bound], ids=lambda kind: kind.__name__)
def test_what_is_compared_or_imported_is_a_regular_file(log: str, tmp_path: Path, kind: Callable[[Path], None]) -> None:
    """The command does not wait for a FIFO, nor read a device to its end."""
    kind(tmp_path / "given")
    assert invoke("import", tmp_path / "given", tmp_path / "copy.db").exit_code == UNREADABLE
    assert invoke("replay", log, "--compare", tmp_path / "given").exit_code == UNREADABLE


def test_a_link_that_somebody_gives_is_followed(made: Callable[[str], Path], tmp_path: Path) -> None:
    """A link on the command line is the user's own; only links inside an export are a stranger's."""
    for form in FORMS:
        link_to = tmp_path / f"latest-{form}"
        link_to.symlink_to(made(form))
        assert invoke("import", link_to, tmp_path / f"{form}.db").exit_code == FINE


FILES = {
    "outside": "../events.csv",
    "absolute": "/etc/passwd",
    "nul": "events\0.csv",
    "surrogate": "events\udc80.csv",
    "another table's": "scores.csv",
    "none": "",
    "itself": ".",
}


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_a_manifest_names_the_files_of_its_tables_and_no_others(
    made: Callable[[str], Path], log: str, tmp_path: Path, file: str
) -> None:
    """A file has the name of its table."""
    out = made("csv")
    resaid(out, lambda said: said["tables"]["events"].update(file=file))
    assert "not a complete export" in refused(out, log, tmp_path)


MANIFESTS: dict[str, Callable[[bytes], bytes]] = {
    "nested": lambda _: b'{"tables":' * 100_000,
    "digits": lambda text: text.replace(b'"log_position": ', b'"log_position": ' + b"9" * 4_400),
    "long": lambda text: text + b" " * MANIFEST_BYTES,
    "empty": lambda _: b"",
    "binary": lambda _: b"\xff\0" * 100,
    "table": lambda text: text.replace(b'"scores": {', b'"../scores": {').replace(b'"scores.csv"', b'"../scores.csv"'),
    "quoted": lambda text: text.replace(b'"scores": {', b'"x\\" UNION SELECT 1": {'),
    "negative": lambda text: text.replace(b'"rows": ', b'"rows": -1'),
    "no events": lambda text: text.replace(b'"events": {', b'"event": {'),
}


@pytest.mark.parametrize("change", MANIFESTS.values(), ids=MANIFESTS)
def test_a_forged_manifest_is_no_manifest(
    made: Callable[[str], Path], log: str, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    """A manifest with any other JSON, or with none, is refused, and the reason is one line."""
    out = made("csv")
    (out / MANIFEST_FILE).write_bytes(change((out / MANIFEST_FILE).read_bytes()))
    assert "not a complete export" in refused(out, log, tmp_path)


def long_row(text: bytes) -> bytes:
    """The events with a row longer than the limit."""
    return text + b'{"row":"' + b"x" * MAX_ROW_BYTES


EVENTS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "csv field": ("csv", lambda text: text + b'1,2,3,4,5,"' + b"x" * MAX_ROW_BYTES + b'",6\n'),
    "csv line": ("csv", long_row),
    "csv fields": ("csv", lambda text: text + b"1,\n" * 10 + b'"' + b'a",\n"' * (MAX_ROW_BYTES // 5)),
    "csv nul": ("csv", lambda text: text + b"1,2,\0,4,5,6,7\n"),
    "jsonl line": ("jsonl", long_row),
    "jsonl nested": ("jsonl", lambda text: text + b'{"row":' + b"[" * 100_000 + b"\n"),
    "jsonl digits": ("jsonl", lambda text: text + b'{"position":' + b"9" * 5_000 + b',"row":"{}"}\n'),
    "jsonl row is a number": ("jsonl", lambda text: text + b'{"row":' + b"9" * 5_000 + b"}\n"),
    "jsonl row nests": ("jsonl", lambda text: text + json.dumps({"row": "[" * 100_000}).encode() + b"\n"),
    "jsonl row has digits": ("jsonl", lambda text: text + json.dumps({"row": '{"a":' + "9" * 5_000 + "}"}).encode()),
}


@pytest.mark.parametrize(("form", "change"), EVENTS.values(), ids=EVENTS)
def test_forged_events_are_refused(
    made: Callable[[str], Path], log: str, tmp_path: Path, form: str, change: Callable[[bytes], bytes]
) -> None:
    """If a line, field, number or depth exceeds every limit, the rows before it are not imported either."""
    out = made(form)
    path = out / f"events.{form}"
    path.write_bytes(change(path.read_bytes()))
    said = sha256(path.read_bytes()).hexdigest()
    resaid(out, lambda manifest: manifest["tables"]["events"].update(sha256=said))
    done = ran("import", out, tmp_path / "copy.db")
    assert (done.returncode in {UNREADABLE, DAMAGED}, "Traceback" in done.stderr) == (True, False), done.stderr
    assert not list(tmp_path.glob("copy.db*"))


def test_parquet_that_unpacks_to_more_than_it_says_anything_is_refused(
    made: Callable[[str], Path], log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few kilobytes of one letter, packed, are 300 megabytes in memory; in a short run 5, and any file may give 4."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet  # noqa: PLC0415

    out = made("parquet")
    free = 2**22 if LONG == 1 else parquet_files.FREE_BYTES
    monkeypatch.setattr(parquet_files, "FREE_BYTES", free)
    bomb = pyarrow.table({"row": ["x" * 2**20] * (free // 2**20 * 5 // 4)})
    parquet.write_table(bomb, out / "events.parquet", compression="zstd", use_dictionary=False)
    assert f"take more than {free:,} bytes" in refused(out, log, tmp_path)


BOMB_ROWS, BOMB_TEXT = 20_000, "x" * 2**20
BOMB_NUMBERS = 25_000_000
BOMB_MAP = """
[[command]]
type = "submit_forecast"
id = "{row}"
[command.fields]
at = "2026-03-01T00:00:00Z"
question = "rain"
participant = "{who}"
probability = "{p}"
"""


def bomb(path: Path, **columns: object) -> None:
    """A Parquet file in which each column has one value in every row: gigabytes in a few kilobytes."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    first = pa.repeat(pa.scalar(0, pa.int32()), BOMB_ROWS)
    table = {name: pa.DictionaryArray.from_arrays(first, pa.array([value])) for name, value in columns.items()}
    parquet.write_table(pa.table(table), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 10_000


def of_a_map(tmp_path: Path, _: str) -> list[object]:
    """A file for a map."""
    bomb(tmp_path / "rows.parquet", row="1", who=BOMB_TEXT, p="0.5")
    (tmp_path / "map.toml").write_text(BOMB_MAP, encoding="utf-8")
    return ["append", tmp_path / "new.db", tmp_path / "rows.parquet", "--map", tmp_path / "map.toml"]


def with_rows(tmp_path: Path, log: str, form: str, forge: Callable[[Path], None]) -> list[object]:
    """An export whose rows are forged, and whose manifest agrees with them."""
    out = tmp_path / "out"
    export(log, out, form)
    path = out / f"events.{form}"
    forge(path)
    said = {"sha256": sha256(path.read_bytes()).hexdigest(), "rows": BOMB_ROWS}

    def change(manifest: dict[str, Any]) -> None:
        manifest["tables"]["events"].update(said)
        manifest["log_position"] = BOMB_ROWS

    resaid(out, change)
    return ["import", out, tmp_path / "new.db"]


def of_an_export(tmp_path: Path, log: str) -> list[object]:
    """The rows of a log, in an export."""
    return with_rows(tmp_path, log, "parquet", lambda path: bomb(path, row=BOMB_TEXT))


def arrow_bomb(path: Path, column: Any, **options: Any) -> None:
    """An Arrow file with one column: half a gigabyte or more in a megabyte."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import ipc  # noqa: PLC0415

    batch = pa.record_batch({"row": column})
    with ipc.new_file(str(path), batch.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch)
    assert path.stat().st_size < 2 * 2**20


def of_packed_arrow(tmp_path: Path, log: str) -> list[object]:
    """The rows of a log as Arrow: packed texts of a megabyte, in a short run few of them, as any are refused."""
    import pyarrow as pa  # noqa: PLC0415

    texts = pa.array([BOMB_TEXT] * (2**4 if LONG == 1 else 2**9))
    return with_rows(tmp_path, log, "arrow", lambda path: arrow_bomb(path, texts, compression="zstd"))


def of_labels(tmp_path: Path, log: str) -> list[object]:
    """The rows of a log as Arrow: a text of a megabyte in each, once in a dictionary."""
    import pyarrow as pa  # noqa: PLC0415

    labels = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), BOMB_ROWS), pa.array([BOMB_TEXT]))
    return with_rows(tmp_path, log, "arrow", lambda path: arrow_bomb(path, labels))


def of_runs(tmp_path: Path, log: str) -> list[object]:
    """The rows of a log as Arrow: one run of a text."""
    import pyarrow as pa  # noqa: PLC0415

    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2**30], pa.int32()), pa.array([BOMB_TEXT]))
    return with_rows(tmp_path, log, "arrow", lambda path: arrow_bomb(path, runs))


def of_a_hub(tmp_path: Path, _: str) -> list[object]:
    """A forecast of a team in a hub."""
    hub = Path(shutil.copytree(DATA / "hub-import", tmp_path / "hub"))
    file = min(hub.glob("model-output/*/*.csv"))
    names = file.read_text(encoding="utf-8").partition("\n")[0].split(",")
    bomb(file.with_suffix(".parquet"), **dict.fromkeys(names, BOMB_TEXT))
    file.unlink()
    return ["import-from", "hubverse", tmp_path / "new.db", hub]


def of_segments(tmp_path: Path, log: str) -> list[object]:
    """The numbers of a forecast, in a folder of segments."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    folder = tmp_path / "segments"
    assert invoke("seal", log, folder).exit_code == FINE
    [segment] = read_manifest(folder).segments
    path = folder / segment.forecasts.name
    table = parquet.read_table(path)
    numbers = pa.repeat(pa.scalar(5, pa.int64()), BOMB_NUMBERS)
    field = table.schema.field("numbers")
    lists = pa.ListArray.from_arrays(pa.array([0, BOMB_NUMBERS], pa.int32()), numbers).cast(field.type)
    table = table.set_column(table.schema.get_field_index("numbers"), field, lists)
    parquet.write_table(table, path, compression="zstd", write_statistics=False)
    assert path.stat().st_size < 50_000
    forged = structs.replace(segment, forecasts=describe_file(path, 1))
    (folder / MANIFEST).write_bytes(msgspec.json.encode(SegmentManifest("main").with_segment(forged)))
    return ["verify", folder]


LIMIT = "rows take more than 268,435,456 bytes, and the file has "
REFUSED = [  # the first row of the export is no row, which ends it before the limit
    (of_a_map, USAGE, LIMIT),
    (of_an_export, DAMAGED, "the log is damaged: log position 1"),
    (of_packed_arrow, UNREADABLE, "events cannot be read: its rows are compressed"),
    (of_labels, UNREADABLE, "events cannot be read: the column 'row' has the type dictionary"),
    (of_runs, UNREADABLE, "events cannot be read: the column 'row' has the type run_end_encoded"),
    (of_a_hub, FINDINGS, LIMIT),
    (of_segments, DAMAGED, LIMIT),
]


@pytest.mark.parametrize(("made_of", "code", "says"), REFUSED)
def test_memory_is_in_proportion_to_a_file(
    log: str, tmp_path: Path, made_of: Callable[[Path, str], list[object]], code: int, says: str
) -> None:
    """As SECURITY.md says: a file of kilobytes that decodes to gigabytes is refused in a limited memory."""
    pytest.importorskip("pyarrow")
    done = ran(*made_of(tmp_path, log))
    told = done.stdout + done.stderr
    assert (done.returncode, says in told, "Traceback" in told) == (code, True, False), told
    assert not list(tmp_path.glob("new.db*")) or made_of is of_a_hub


SCHEMAS = {  # a value of 68 MB is longer than a row may be
    "endless view": """
        ALTER TABLE events RENAME TO other;
        CREATE VIEW events AS WITH RECURSIVE n(position) AS (SELECT 1 UNION ALL SELECT position + 1 FROM n)
        SELECT position, 'x' AS row FROM n;
    """,
    "view in other case": """
        ALTER TABLE events RENAME TO other; CREATE VIEW EVENTS AS SELECT * FROM other;
    """,
    "generated column": """
        CREATE TABLE forged (position INTEGER PRIMARY KEY, row TEXT GENERATED ALWAYS AS (hex(zeroblob(34000000))));
        INSERT INTO forged (position) SELECT position FROM events;
        DROP TABLE events; ALTER TABLE forged RENAME TO events;
    """,
    "virtual table": """
        CREATE VIRTUAL TABLE forged USING fts5(position, row);
        DROP TABLE events; ALTER TABLE forged RENAME TO events;
    """,
    "long value": "UPDATE events SET row = hex(zeroblob(34000000)) WHERE position = 2",
    "endless manifest": """
        DROP TABLE manifest; CREATE VIEW manifest AS WITH RECURSIVE n(manifest) AS (SELECT 1 UNION ALL
        SELECT manifest + 1 FROM n) SELECT max(manifest) AS manifest FROM n;
    """,
    "long manifest": "UPDATE manifest SET manifest = manifest || hex(zeroblob(2000000))",
    "generated manifest": """
        DROP TABLE manifest; CREATE TABLE manifest (id, manifest GENERATED ALWAYS AS (hex(zeroblob(34000000))));
    """,
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_forged_database_is_refused(made: Callable[[str], Path], log: str, tmp_path: Path, schema: str) -> None:
    """Only ordinary tables are read, and no value longer than a row may be."""
    out = made("sqlite")
    with closing(sqlite3.connect(out)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA legacy_alter_table = ON")
        for (view,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall():
            connection.execute(f"DROP VIEW {view}")
        connection.executescript(schema)
    done = ran("import", out, tmp_path / "copy.db")
    assert (done.returncode, "Traceback" in done.stderr) == (UNREADABLE, False), done.stderr
    assert not list(tmp_path.glob("copy.db*"))


def test_work_out_of_proportion_to_a_database_is_ended(
    made: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that would read without end is interrupted; in a short run, after a hundredth of the work."""
    for name in ("_STEPS", "_STEPS_PER_BYTE") if LONG == 1 else ():
        monkeypatch.setattr(manifest, name, getattr(manifest, name) // 100)
    with (
        closing(manifest.open_database(made("sqlite"))) as connection,
        pytest.raises(sqlite3.OperationalError, match="interrupted"),
    ):
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        ).fetchone()


MAPS = {
    "digits": b"x = " + b"1" * 4_400,
    "nested": b"x = " + b"[" * 100_000,
    "tables": b"x = " + b"{a=" * 50_000,
    "bytes": b"\xff\0",
}


@pytest.mark.parametrize("text", MAPS.values(), ids=MAPS)
def test_a_forged_map_is_refused(text: bytes) -> None:
    """The code is that of every mistake in a map."""
    with pytest.raises(Refused) as error:
        parse_map(text)
    assert error.value.code == "bad_map"


def test_a_map_is_not_longer_than_a_map(tmp_path: Path) -> None:
    """An endless map is not read to its end."""
    done = ran("append", tmp_path / "log.db", "/dev/null", "--map", "/dev/zero")
    assert (done.returncode, f"{LARGEST_MAP:,} bytes" in done.stderr) == (USAGE, True)


def test_a_line_that_never_ends_is_refused_as_it_comes(tmp_path: Path) -> None:
    """A pipe is read line by line, and a line longer than the limit is not kept in memory."""
    os.mkfifo(tmp_path / "pipe")
    written = f"open({str(tmp_path / 'pipe')!r}, 'wb')"
    with subprocess.Popen([sys.executable, "-c", f"pipe = {written}; [pipe.write(b'x' * 2**20) for _ in range(550)]"]):
        done = ran("append", tmp_path / "log.db", tmp_path / "pipe", memory=2**29)
    assert (done.returncode, "longer than" in done.stderr) == (FINDINGS, True)


FORGED = "a\x1b[2J\x9b2J\x07\r\x7f\u202eb\u2066c\u061cd\u200f\u2028"
OBEYED = {chr(code) for code in [*range(32), *range(127, 160)]} | set("\u061c\u200e\u200f\u2028\u202e\u2066")


@pytest.mark.parametrize("form", [as_table, as_json, as_terminal_csv], ids=lambda form: form.__name__)
def test_no_format_prints_what_a_terminal_obeys(form: Callable[..., Any]) -> None:
    """Control codes of both sets and changes of direction are escaped; the text stays recoverable."""
    printed = "\n".join(form(["title"], [{"title": FORGED}]))
    assert not OBEYED & {*printed.replace("\n", "")}
    if form is as_json:
        assert json.loads(printed) == [{"title": FORGED}]
    if form is as_terminal_csv:
        [row] = csv.DictReader(io.StringIO(printed, newline=""))
        assert row["title"].encode("latin-1").decode("unicode_escape") == FORGED


def test_a_forged_title_reaches_no_terminal(log: str, tmp_path: Path) -> None:
    """Every command and format that prints texts escapes those of a log that no decider wrote."""
    forged = [row.replace(b'"title":"Rain?"', b'"title":"\\u001b[2J\\u009b2J\\u202e"') for row in rows(log)]
    forged = resealed(forged)
    assert forged != rows(log)
    path = str(tmp_path / "forged.db")
    store = StoredLog.open(path, "main")
    store.append([(number, "forged", row) for number, row in enumerate(forged, 1)])
    store.close()
    for form in ("table", "json", "csv"):
        for command in (["table", path, "contests"], ["log", path], ["show", path, "1"]):
            done = invoke(*command, "--format", form)
            assert (done.exit_code, OBEYED & {*(done.stdout + done.stderr).replace("\n", "")}) == (FINE, set()), command


def test_an_export_keeps_a_text_as_it_is(tmp_path: Path) -> None:
    """Files of an export are for programs; only printed text is escaped."""
    path = written(tmp_path / "log.db", [structs.replace(contest("cup", title=FORGED.replace("\r", "")), id="c")])
    export(path, tmp_path / "out", "csv")
    with (tmp_path / "out" / "contests.csv").open(encoding="utf-8", newline="") as file:
        assert [row["title"] for row in csv.DictReader(file)] == [FORGED.replace("\r", "")]


def test_the_limits_of_these_tests_hold() -> None:
    """The memory limit and the time limit of these tests take effect."""
    script = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY},) * 2); bytearray({MEMORY})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=SECONDS)
    assert "MemoryError" in done.stderr
    with pytest.raises(TimeoutError), in_time(0.2):
        time.sleep(SECONDS)
