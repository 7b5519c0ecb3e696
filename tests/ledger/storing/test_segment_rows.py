"""A folder of segments is read as a log is, and every damaged byte of it is found."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Absent, Corrupt, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import ForecastMade, PricesQuoted
from forecast_ledger.ledger.segments import arrow_arrays, segment_columns, segment_manifest
from forecast_ledger.ledger.segments.forecast_counts import counts_schema
from forecast_ledger.ledger.segments.sealing import seal
from forecast_ledger.ledger.segments.segment_files import read_columns, write_table
from forecast_ledger.ledger.segments.segment_manifest import (
    MANIFEST,
    SegmentFile,
    SegmentManifest,
    check_file,
    describe_file,
    read_manifest,
)
from forecast_ledger.ledger.storing import segment_rows
from forecast_ledger.ledger.storing.segment_rows import SegmentRows
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.audit.verify import run_checks, verify
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.replay import replay, summarize_tables
from tests.support.effort import times
from tests.support.exports import export_log
from tests.support.logs import commands_of, rows, written
from tests.support.paths import ROOT

GUIDE = ROOT / "docs" / "segments.md"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log of the stories."""
    return export_log(tmp_path_factory.mktemp("rows") / "log.db")


@pytest.fixture
def small_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest in the manifest for each of eight rows, and five rows rebuilt at once."""
    for module in (segment_manifest, segment_rows):
        monkeypatch.setattr(module, "MARKED", 8)
    monkeypatch.setattr("forecast_ledger.ledger.segments.sealing.MARKED", 8)
    monkeypatch.setattr(segment_columns, "AT_ONCE", 5)


def sealed(path: str, folder: Path, size: int = 37) -> Path:
    """The segments of a log."""
    store = StoredLog.open(path, "main", read_only=True)
    seal(store.pages, "main", folder, size)
    store.close()
    return folder


def copied(path: str, folder: Path, size: int = 37) -> Path:
    """A copy of the segments of the log of the stories, which are made once for each size."""
    made = Path(f"{path}-{size}")
    if not made.exists():
        sealed(path, made, size)
    return Path(shutil.copytree(made, folder))


def restate(folder: Path) -> None:
    """Make the manifest state the files as they are, as somebody would who changed them."""
    manifest = SegmentManifest("main")
    for segment in read_manifest(folder).segments:
        files = {
            kind: describe_file(folder / file.name, file.rows)
            for kind in ("forecasts", "others", "quotes")
            if (file := getattr(segment, kind)) is not msgspec.UNSET
        }
        manifest = manifest.with_segment(structs.replace(segment, **files))
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))


@pytest.mark.usefixtures("small_marks")
@pytest.mark.parametrize(
    ("story", "size"), [("metaculus-2022", 5), ("bids-and-asks", 8), ("metaculus-2022", 11), ("bids-and-asks", 1_000)]
)
def test_any_rows_are_those_of_the_log(tmp_path: Path, story: str, size: int) -> None:
    """From any position, as many as are asked for, in any order."""
    path = written(tmp_path / "log.db", commands_of(story))
    random, whole = Random(size), StoredLog.open(path, "main", read_only=True)
    segments = StoredLog.open(sealed(path, tmp_path / "s", size), "main", read_only=True)
    newest, every = whole.newest(), [*chain(*whole.pages())]
    assert segments.newest() == newest
    for _ in range(times(25)):
        after, limit = random.randrange(newest + 3), random.choice([1, 2, 7, 40, 500])
        assert segments.read(after, limit) == whole.read(after, limit)
        some = sorted({random.randrange(1, newest + 1) for _ in range(3)})
        assert segments.at(some) == whole.at(some)
        bounded = segments.pages_with_types(limit, after, some[-1])
        assert [row for page, _ in bounded for row in page] == every[after : some[-1]]
    assert [*segments.pages(3, 11)] == [*whole.pages(3, 11)]
    assert [page for page, _ in segments.pages_with_types(50)] == [*whole.pages(0, 50)]
    assert segments.faults() == []


def test_a_search_for_faults_hashes_each_file_once(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of the segment whose columns are kept: they may have changed since they were read."""
    folder, hashed = copied(path, tmp_path / "s"), list[str]()
    files = [file.name for segment in read_manifest(folder).segments for file in segment.files]

    def check(folder: Path, entry: SegmentFile, position: int) -> None:
        hashed.append(entry.name)
        check_file(folder, entry, position)

    monkeypatch.setattr(segment_rows, "check_file", check)
    segments = SegmentRows(folder, "main")
    first = segments.manifest.segments[0]
    for search in ("nothing is kept", "the first segment is kept"):
        hashed.clear()
        assert [*segments.faults()] == [], search
        assert hashed == files, search
        segments.columns(first)
    (folder / files[0]).write_bytes(b"x")
    assert [fault.position for fault in segments.faults()] == [1]


def test_a_folder_has_the_numbers_of_its_log(path: str, tmp_path: Path) -> None:
    """Every check of `verify` passes, and every table has the digest that it has from the log."""
    folder = copied(path, tmp_path / "s")
    assert verify(str(folder)) == verify(path)
    assert summarize_tables(replay(str(folder)).projections.facts) == summarize_tables(replay(path).projections.facts)
    assert replay(folder, as_of=50).checkpoint == replay(path, as_of=50).checkpoint


def test_a_folder_cannot_be_appended_to(path: str, tmp_path: Path) -> None:
    """Neither by a ledger that opens it for writing, nor through a store that reads it."""
    folder = copied(path, tmp_path / "s")
    with pytest.raises(Unavailable, match="segments take files, not single commands"):
        Ledger.open(folder)
    with pytest.raises(Unavailable, match="segments take files"):
        StoredLog.open(folder, "main", read_only=True).append([(1, "x", b"")])


def test_a_folder_without_segments_is_no_ledger(tmp_path: Path) -> None:
    """It says what is missing."""
    with pytest.raises(Absent, match=f"there is no {MANIFEST} in it"):
        StoredLog.open(tmp_path, "main", read_only=True)


@pytest.mark.usefixtures("small_marks")
@pytest.mark.parametrize("story", ["metaculus-2022", "bids-and-asks"])
def test_every_changed_byte_of_a_file_is_found(tmp_path: Path, story: str) -> None:
    """One bit of any file, of the manifest too, changed anywhere: `verify` finds it."""
    path = written(tmp_path / "log.db", commands_of(story))
    whole, random = sealed(path, tmp_path / "s", 20), Random(3)
    names = sorted(file.name for file in whole.iterdir())
    for turn in range(times(25)):
        name, folder = names[turn % len(names)], tmp_path / f"s{turn}"
        shutil.copytree(whole, folder)
        content = bytearray((folder / name).read_bytes())
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        (folder / name).write_bytes(content)
        with pytest.raises((Corrupt, Unavailable)) as found:
            verify(str(folder))
        if name != MANIFEST:
            assert isinstance(found.value, Corrupt)
            assert found.value.position == int(name[:12])  # the first row that the file can concern
        shutil.rmtree(folder)


def test_rows_before_a_damaged_segment_are_read(path: str, tmp_path: Path) -> None:
    """Also those on the same page as the damage, which each further reading of its rows finds again."""
    folder = copied(path, tmp_path / "segments")
    second = read_manifest(folder).segments[1]
    (folder / second.others.name).write_bytes(b"")
    every, store = rows(path), StoredLog.open(folder, "main", read_only=True)
    assert store.read(0, 100) == every[: second.first - 1]
    for _ in range(2):
        with pytest.raises(Corrupt) as damage:
            store.read(second.first - 1)
        assert damage.value.position == second.first
    assert store.read(3, 2) == every[3:5]
    assert run_checks(Log(folder)).head.position == second.first - 1


def test_a_changed_price_is_found_where_it_is(tmp_path: Path) -> None:
    """If the file's SHA-256 in the manifest is also that of the changed file: the rows have other digests."""
    from pyarrow import array, parquet  # noqa: PLC0415 - late: optional

    folder = sealed(written(tmp_path / "log.db", commands_of("bids-and-asks")), tmp_path / "s", 1_000)
    [file] = folder.glob("*.quotes.parquet")
    table = parquet.read_table(file)
    prices = table["prices"].to_pylist()
    prices[-1][0] += 1
    at = table.schema.names.index("prices")
    parquet.write_table(table.set_column(at, "prices", array(prices, table.schema.field(at).type)), file)
    restate(folder)
    with pytest.raises(Corrupt, match="columns of the segment") as corrupt:
        rows(str(folder))
    assert corrupt.value.check == "store"


def test_a_changed_column_is_found_where_it_is(path: str, tmp_path: Path) -> None:
    """If the file's SHA-256 in the manifest is also that of the changed file: the rows have other digests."""
    from pyarrow import parquet  # noqa: PLC0415 - late: optional

    folder = copied(path, tmp_path / "s", 1_000)
    [file] = folder.glob("*.forecasts.parquet")
    table = parquet.read_table(file)
    people = table["participant"].to_pylist()
    people[0], people[1] = "eve", people[0]
    changed = table.set_column(table.schema.names.index("participant"), "participant", [people])
    parquet.write_table(changed, file)
    restate(folder)
    with pytest.raises(Corrupt, match="columns of the segment") as corrupt:
        rows(str(folder))
    assert corrupt.value.check == "store"


REPEATED: dict[str, tuple[str, str, Callable[[Any], Any]]] = {  # a column of a file, and another value in it
    "made": ("forecasts", "made", lambda made: not made),
    "type": ("others", "type", lambda _: "question_closed.v1"),
    "instant": ("others", "claimed_at", lambda at: at.replace(year=2001)),
    "digest": ("others", "digest", lambda _: bytes(32)),
    "no digest": ("others", "digest", lambda _: None),
}


@pytest.mark.parametrize("change", REPEATED)
def test_a_column_that_says_something_else_than_its_row_is_found(tmp_path: Path, change: str) -> None:
    """Rows are not made of these columns: their digests are right, and a reader of the files would be misled."""
    kind, name, other = REPEATED[change]
    folder = sealed(written(tmp_path / "log.db", commands_of("autocast-2022")), tmp_path / "s", 1_000)
    [segment] = read_manifest(folder).segments
    table = getattr(read_columns(folder, segment), kind)
    values, at = table[name].to_pylist(), table.schema.names.index(name)
    place = max(number for number, value in enumerate(values) if value is not None)
    values[place] = other(values[place])
    column = arrow_arrays.pyarrow().array(values, getattr(table[name].type, "value_type", table[name].type))
    path = folder / getattr(segment, kind).name
    path.unlink()
    write_table(path, table.set_column(at, table.schema.field(at), column.cast(table[name].type)))
    restate(folder)
    for read in (rows, verify, partial(replay, trust="rows")):
        with pytest.raises(Corrupt, match=f"{name}.* of the segment says something else") as found:
            read(str(folder))
        assert found.value.position == table["position"][place].as_py()


@pytest.mark.parametrize("change", ["missing", "cut", "swapped", "dropped", "reordered", "later version", "no JSON"])
def test_a_folder_that_is_not_whole_is_refused(path: str, tmp_path: Path, change: str) -> None:
    """With the file, or the entry of the manifest, that is wrong."""
    folder = copied(path, tmp_path / "s")
    files, manifest = sorted(folder.glob("*.forecasts.parquet")), json.loads((folder / MANIFEST).read_bytes())
    match change:
        case "missing":
            files[1].unlink()
        case "cut":
            files[1].write_bytes(files[1].read_bytes()[:-9])
        case "swapped":
            shutil.copy(files[0], files[1])
        case "dropped":
            del manifest["segments"][1]
        case "reordered":
            manifest["segments"].reverse()
        case "later version":
            manifest["segments"][0]["version"] = 99
    (folder / MANIFEST).write_text("{" if change == "no JSON" else json.dumps(manifest))
    with pytest.raises((Corrupt, Unavailable)):
        rows(str(folder))


def test_a_manifest_that_was_made_to_harm_is_refused(path: str, tmp_path: Path) -> None:
    """Its chain is right, so that only the values are wrong; no file outside of the folder is opened."""
    folder = copied(path, tmp_path / "s", 1_000)
    whole = read_manifest(folder)
    [segment], other = whole.segments, tmp_path / "outside.parquet"
    shutil.copy(next(folder.glob("*.forecasts.parquet")), other)
    file, last = segment.forecasts, segment.last
    harmful = [
        *(
            structs.replace(segment, forecasts=structs.replace(file, name=name))
            for name in ("../outside.parquet", "/x")
        ),
        *(structs.replace(segment, forecasts=structs.replace(file, name=name)) for name in ("", ".", MANIFEST)),
        structs.replace(segment, last=10**18),
        structs.replace(segment, last=10**18, others=structs.replace(file, rows=10**18 - file.rows)),
        structs.replace(segment, forecasts=structs.replace(file, rows=-1), others=structs.replace(file, rows=last + 1)),
        structs.replace(segment, first=0),
        structs.replace(segment, marks=("0" * 64,)),
        structs.replace(segment, digest="x"),
        structs.replace(segment, quotes=structs.replace(file, rows=0)),
        structs.replace(segment, quotes=structs.replace(file, rows=7)),
        structs.replace(segment, quotes=structs.replace(file, name="../outside.parquet")),
    ]
    for each in harmful:
        manifest = SegmentManifest("main").with_segment(each)
        (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))
        with pytest.raises(Corrupt, match="restore the folder"):
            rows(str(folder))


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_only_regular_files_are_read(path: str, tmp_path: Path, kind: str) -> None:
    """A link may lead anywhere, and a FIFO would wait for ever."""
    for pattern in (MANIFEST, "*.others.parquet"):
        folder = copied(path, tmp_path / pattern.strip("*."), 1_000)
        [file] = folder.glob(pattern)
        file.rename(tmp_path / "moved")
        match kind:
            case "link":
                file.symlink_to(tmp_path / "moved")
            case "fifo":
                os.mkfifo(file)
            case "folder":
                file.mkdir()
        with pytest.raises((Corrupt, Unavailable), match="not a regular file"):
            rows(str(folder))


def test_a_folder_that_is_sealed_further_while_it_is_read_is_no_damage(path: str, tmp_path: Path) -> None:
    """Its last segment was replaced; whoever reads is asked to read again."""
    store = StoredLog.open(path, "main", read_only=True)
    first = store.read(0, 50)
    seal(lambda after: iter([first[after:]] if first[after:] else []), "main", tmp_path / "s", 1_000)
    reader = StoredLog.open(tmp_path / "s", "main", read_only=True)
    sealed(path, tmp_path / "s", 1_000)
    with pytest.raises(Unavailable, match="more rows were sealed while it was read; try again"):
        reader.read(0)


def test_other_readers_of_parquet_read_the_files(path: str, tmp_path: Path) -> None:
    """Pandas and Polars count the forecasts of each participant as the table `forecasts` does."""
    import pandas  # noqa: PLC0415 - late: optional
    import polars  # noqa: PLC0415

    files = sorted(copied(path, tmp_path / "s", 50).glob("*.forecasts.parquet"))  # the first has every column
    expected = Counter(
        recorded.event.participant
        for position, row in enumerate(rows(path), 1)
        if isinstance((recorded := log.decode_row(row, position)).event, ForecastMade)
    )
    frame = pandas.concat(map(pandas.read_parquet, files))
    assert dict(frame[frame["made"]]["participant"].astype(str).value_counts()) == expected
    counts = polars.read_parquet(files).filter("made").group_by("participant").len()
    assert dict(counts.rows()) == expected


def test_duckdb_reads_the_files(path: str, tmp_path: Path) -> None:
    """By the name of the folder, in SQL."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not one of the test extras")
    folder = copied(path, tmp_path / "s", 50)
    query = f"SELECT count(*), max(claimed_at) IS NOT NULL FROM '{folder}/*.forecasts.parquet' WHERE made"  # noqa: S608
    made = [log.decode_row(row, 1).event for row in rows(path)]
    assert duckdb.sql(query).fetchall() == [(sum(isinstance(event, ForecastMade) for event in made), True)]


def test_duckdb_reads_quotes_with_their_instants(tmp_path: Path) -> None:
    """By a join of two files, as the guide says."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not one of the test extras")
    path = written(tmp_path / "log.db", commands_of("bids-and-asks"))
    folder = sealed(path, tmp_path / "s", 20)
    query = f"""SELECT question, epoch_us(claimed_at), prices[1]
        FROM '{folder}/*.quotes.parquet' JOIN '{folder}/*.others.parquet' USING (position)"""  # noqa: S608
    events = [log.decode_row(row, 1).event for row in rows(path)]
    quoted = [each for each in events if isinstance(each, PricesQuoted)]
    expected = [(quote.question, each.at, quote.prices[0]) for each in quoted for quote in each.quotes]
    assert expected
    assert sorted(duckdb.sql(query).fetchall(), key=str) == sorted(expected, key=str)


def test_the_guide_lists_every_column() -> None:
    """In their order, with their types."""
    guide = re.findall(
        r"^\| `(forecasts|others|quotes|counts)` \| `(\w+)` \| `([^`]+)` \|", GUIDE.read_text("utf-8"), re.MULTILINE
    )
    schemas = (*segment_columns.schemas(), counts_schema())
    columns = zip(("forecasts", "others", "quotes", "counts"), schemas, strict=True)
    assert guide == [(file, field.name, str(field.type)) for file, schema in columns for field in schema]
