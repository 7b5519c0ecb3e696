"""Imports of sources in tests: a source into a ledger in memory, and what came of it."""

import json
import zipfile
from collections.abc import Callable
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.files.sheet_cells import read_sheet
from forecast_ledger.replay.importing.kinds import KINDS
from forecast_ledger.replay.importing.map_copy import table_copy
from forecast_ledger.replay.importing.published_results import compare_published
from forecast_ledger.replay.importing.question_forecasts import Following
from forecast_ledger.replay.importing.record_copy import FollowedCopy, record_copy
from forecast_ledger.replay.importing.source_files import SourceFiles
from forecast_ledger.replay.importing.source_items import Source
from forecast_ledger.replay.mapping.csv_mapping import map_records, parse_map
from forecast_ledger.replay.mapping.csv_reader import read_sources
from tests.support.oracle import events_of


class Imported(NamedTuple):
    """What an import counted; refused: where and why, in words; left_out: reason -> number; changes: what -> number.

    compared: what is said of published results. others: how many events another writer recorded meanwhile.
    """

    counts: dict[str, int]
    refused: list[str]
    left_out: dict[str, int]
    changes: dict[str, int]
    compared: list[str]
    others: int


def ticking() -> Ledger:
    """A ledger in memory whose clock counts, so that the same commands make the same log."""
    ticks = count(1_800_000_000_000_000)
    return Ledger.open(":memory:", clock=lambda: next(ticks))


def import_into(
    ledger: Ledger,
    kind: str,
    path: Path,
    rules: str | None = None,
    *,
    now: str = "2026-06-01T00:00:00Z",
    keep_missing: bool = False,
    take_back: bool = False,
    trades: bool = False,
) -> Imported:
    """Import as the command line does. now: the instant of the import."""
    files = SourceFiles(path)
    try:
        following = Following(read_instant(now), keep_missing=keep_missing, take_back=take_back)
        read = KINDS[kind].traded if trades else KINDS[kind].read
        assert read is not None
        return _recorded(ledger, read(files, rules), following)
    finally:
        files.close()


def import_table(
    ledger: Ledger,
    map_: str,
    table: bytes,
    *,
    now: str = "2026-06-01T00:00:00Z",
    keep_missing: bool = False,
    take_back: bool = False,
) -> Imported:
    """Append a CSV or a workbook by a map that names its source, as the command line does."""
    mapping, file = parse_map(map_.encode()), BytesIO(table)
    packed = table.startswith(b"PK")
    records = read_sheet(file, "", mapping.reads, ",") if packed else read_sources(file, mapping.delimiter)
    source = table_copy(mapping.description, map_records(mapping, records).commands)
    return _recorded(ledger, source, Following(read_instant(now), keep_missing=keep_missing, take_back=take_back))


def _recorded(ledger: Ledger, source: Source, following: Following) -> Imported:
    refused, copy = list[str](), FollowedCopy(source, following)

    def on_refusal(place: Any, error: Refused) -> None:
        refused.append(f"{place.where()}: {error.code} {error.field}: {error.detail}")

    counts = record_copy(ledger, copy, on_refusal)
    compared = compare_published(ledger.read(), source.published).lines()
    return Imported(counts, refused, copy.left_out.counts, copy.changes, compared, copy.others)


def table(ledger: Ledger, name: str, *columns: str) -> list[tuple[str, ...]]:
    """Columns of a table, as they are printed."""
    return tables(ledger, (name, *columns))[0]


def tables(ledger: Ledger, *named: tuple[str, ...]) -> list[list[tuple[str, ...]]]:
    """For each table that is named with columns of it, these columns, as they are printed; the log is read once."""
    projections = Projections(facts(ledger.read()))
    return [
        [tuple(str(row[column]) for column in columns) for row in projections.table(name).rows()]
        for name, *columns in named
    ]


def scores(ledger: Ledger) -> list[tuple[str, ...]]:
    """Every score."""
    return sorted(table(ledger, "scores", "contest", "question", "participant", "score", "coverage"))


def told(ledger: Ledger) -> list[Any]:
    """All events."""
    return [recorded.event for recorded in events_of(ledger)]


def saved(folder: Path, **contents: Any) -> Path:
    """A folder with files of JSON by their names; a text is written as it is."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def zipped(folder: Path, to: Path, prefix: str = "") -> Path:
    """A folder as a zip."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, prefix + path.relative_to(folder).as_posix())
    return to


def edit(path: Path, change: Callable[[str], str]) -> None:
    """Change the text of a file; it must differ."""
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before
    path.write_text(after, encoding="utf-8")
