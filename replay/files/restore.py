"""Import an exported log into a ledger: the same rows, byte for byte."""

import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from hashlib import file_digest
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from forecast_ledger.ledger.auditing.audit import Audit
from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Conflict, Corrupt, Unavailable
from forecast_ledger.ledger.core.files import folder_at
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import TAGS
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing.database import NewRow
from forecast_ledger.ledger.storing.segment_rows import SegmentRows
from forecast_ledger.ledger.storing.stored_log import PAGE, StoredLog, TakenError
from forecast_ledger.projections.facts import from_log
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.checking.side_by_side import PART, verified_beginning
from forecast_ledger.replay.files.formats import FILE_FORMATS, READ_ERRORS, StoredEvents, export_tables
from forecast_ledger.replay.files.manifest import (
    SEGMENTS,
    SQLITE,
    Manifest,
    ManifestEntry,
    check_ordinary,
    open_database,
    open_table,
    read_manifest,
)
from forecast_ledger.replay.reading.log import Log, OnProgress
from forecast_ledger.replay.reading.replay import Replay

ROWS_PER_TRANSACTION = 20 * PAGE  # rows per transaction
PAGE_BYTES = 2**24  # a page has fewer rows if they are this long


@checked("name")
def restore(
    export: str | PathLike[str],
    location: str | PathLike[str],
    name: str = "main",
    on_progress: OnProgress = lambda _: None,
    *,
    side_by_side: bool = False,
) -> int:
    """Append the rows of an export, or of a folder of segments, that a ledger does not have; return their number.

    export: also the URL of a folder of segments. The whole export is checked before anything is written, and each
    command is decided again, as in `verify`. An interrupted import can be run again. side_by_side: many rows of
    segments are checked by every processor; only for a program whose main module can be imported again. Raises, first
    that applies: Refused (the name is not an id), Unavailable (the export is not complete, or the store cannot be
    opened), Corrupt (the exported log), FileExistsError (the ledger is the export's own file, or not the beginning of
    the export), Conflict (another process is writing).

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import commands, export, open_ledger, restore
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     manifest = export(f"{folder}/season.db", f"{folder}/season-csv")
    ...     restore(f"{folder}/season-csv", f"{folder}/copy.db")
    1
    """
    values.check_id(name, "name")
    export = folder_at(export)
    manifest = read_manifest(export)
    if isinstance(export, Path) and os.path.exists(location) and export.samefile(location):  # noqa: PTH110 - location may be a URL
        raise FileExistsError("this is the export itself; name another file for the ledger")
    if manifest.format in FILE_FORMATS:  # the file of events last, because its rows say where it was changed
        _check_digests(export, [part for name, part in manifest.tables.items() if name != "events"])
    segments = _checked_segments(export, manifest, side_by_side=side_by_side) if manifest.format == SEGMENTS else None
    audit = segments or Audit()
    if segments is None:
        with closing(_check_rows(export, manifest)) as checked:
            facts = from_log.facts(audit.pages(checked, cut=not manifest.whole))
        _check_files(export, manifest, facts)
    if not manifest.whole and (audit.is_cut or manifest.format != SEGMENTS):
        remedy = "seal the log again" if manifest.format == SEGMENTS else "export the log as of an earlier position"
        raise Unavailable(f"{redacted(export)}: the export ends in the middle of a command; {remedy}")
    with closing(StoredLog.open(location, name)) as store:
        with closing(exported_pages(export, manifest)) as read:
            there = _check_beginning(read, store)
        last = there.position
        with closing((_rows_after if segments is None else _segment_rows_after)(export, manifest, there)) as rows:
            for batch in _batches(rows):
                try:
                    store.append(batch)
                except TakenError:
                    taken = f"log position {batch[0][0]} was taken by another writer during the import"
                    raise Conflict(taken) from None
                last, *_ = batch[-1]
                on_progress(last)
    return last - there.position


def _checked_segments(export: Path, manifest: Manifest, *, side_by_side: bool) -> Audit | None:
    """Check all rows and files of many segments, and return the audit of their commands; None if any is in doubt."""
    source = Log(str(export), manifest.ledger)
    with source.opened() as store, suppress(Corrupt):  # whoever reads row after row says where
        begun = verified_beginning(source, store, Audit(), files=True, side_by_side=side_by_side)
        if begun is not None and begun.rows.last == (manifest.log_position, manifest.log_digest):
            from_log.facts_after(begun.facts, [], begun.audit.pages(iter(()), cut=not manifest.whole))
            return begun.audit
    return None


def _check_rows(export: Path, manifest: Manifest) -> Generator[Sequence[Recorded], None, None]:
    """Return the events of an export up to its checkpoint; check each row against its bytes and the row before."""
    last, recorded_at, is_imported = log.START, -(2**63), True
    with closing(exported_pages(export, manifest)) as read:
        for rows in read:
            page = log.unseal(rows, last)
            clock = [recorded_at, *(recorded.recorded_at for recorded in page)]
            imported = [is_imported, *(recorded.imported is True for recorded in page)]
            is_right = clock == sorted(clock) and imported == sorted(imported, reverse=True)
            if not is_right or [*map(log.encode_row, page)] != rows:
                _check_each(rows, page, recorded_at, is_imported=is_imported)
            recorded_at, is_imported = clock[-1], imported[-1]
            last = Checkpoint(page[-1].position, page[-1].digest)
            yield page
    if last != (manifest.log_position, manifest.log_digest):
        end = f"at log position {manifest.log_position}, digest {manifest.log_digest}"
        raise Unavailable(
            f"{redacted(export)}: not a complete export: "
            f"it should end {end}, but ends at {last.position}, {last.digest}"
        )


def _check_each(rows: Sequence[bytes], page: Sequence[Recorded], recorded_at: int, *, is_imported: bool) -> None:
    """Raise Corrupt at the first row that is not canonical, or does not follow the one before by its times.

    recorded_at, is_imported: of the row before the page.
    """
    for row, recorded in zip(rows, page, strict=True):
        if log.encode_row(recorded) != row:
            raise Corrupt(recorded.position, "the row is not in canonical bytes")
        if recorded.recorded_at < recorded_at:
            raise Corrupt(recorded.position, "recorded_at is earlier than in the row before")
        if recorded.imported is True and not is_imported:
            raise Corrupt(recorded.position, "the row was imported, and follows one of the ledger's clock")
        recorded_at, is_imported = recorded.recorded_at, recorded.imported is True


def _check_files(export: Path, manifest: Manifest, facts: Facts) -> None:
    """Raise Unavailable unless the events are as they were written; in a database, every table as the log's facts."""
    if manifest.format == SQLITE:
        _check_database(export, manifest, facts)
        return
    if manifest.format == SEGMENTS:
        with closing(StoredLog.open(str(export), manifest.ledger, read_only=True)) as segments:
            for fault in segments.faults():
                raise Corrupt(fault.position or 1, fault.message, "store")
    else:
        _check_digests(export, [manifest.tables["events"]])


def _check_digests(export: Path, parts: Iterable[ManifestEntry]) -> None:
    """Raise Unavailable unless each table is as it was written."""
    for part in parts:
        try:
            with open_table(export, part) as file:
                digest = file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise Unavailable(f"{export}: not a complete export: {error}") from None
        if digest != part.sha256:
            raise Unavailable(f"{export}: {part.file} has changed: its SHA-256 is {digest}, was {part.sha256}")


def _check_database(path: Path, manifest: Manifest, facts: Facts) -> None:
    """Raise Unavailable unless the database is sound and has the rows that follow from the log's facts."""
    from forecast_ledger.replay.files.sqlite_export import changed_tables  # noqa: PLC0415 - late: for one format

    try:
        with closing(open_database(path)) as database:
            for name in manifest.tables:
                check_ordinary(database, name)
            [verdict] = database.execute("PRAGMA integrity_check").fetchone()
            counts = {
                name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608 - as the export names it
                for name in manifest.tables
            }
            wrong = [name for name, part in manifest.tables.items() if counts[name] != part.rows]
            if verdict == "ok" and not wrong:
                projections = [name for name in manifest.tables if name in CATALOGUE]
                until = Checkpoint(manifest.log_position, manifest.log_digest)
                rows = _Exported(path, manifest)
                events = StoredEvents(rows, Replay(until, Projections(facts)))
                rebuilt = export_tables(events, projections, floats=manifest.floats)
                wrong += changed_tables(database, rebuilt, manifest)
    except (sqlite3.Error, OSError, KeyError, ValueError, TypeError) as error:
        raise Unavailable(f"{path}: not a complete export: {error}") from None
    if verdict != "ok" or wrong:
        raise Unavailable(f"{path}: not a complete export, or changed since: {', '.join(wrong) or verdict}")


class _Exported(NamedTuple):
    """An export that is read like a store."""

    path: Path
    manifest: Manifest

    def pages(self) -> Iterator[list[bytes]]:
        """Return the rows of its log."""
        return exported_pages(self.path, self.manifest)


def _check_beginning(pages: Iterator[list[bytes]], store: StoredLog) -> Checkpoint:
    """Return the end of a ledger. Raises FileExistsError unless its log is the beginning of the exported one."""
    position, row = 0, b""
    exported = chain.from_iterable(pages)
    for there in store.pages():
        here = [*islice(exported, len(there))]
        for stored, exported_row in zip(there, here, strict=False):
            position += 1
            if stored != exported_row:
                raise FileExistsError(f"log position {position}: the ledger and the export have different rows")
        if len(there) > len(here):
            raise FileExistsError(f"log position {position + 1}: the ledger has more rows than the export")
        row = there[-1]
    return Checkpoint(position, log.stated_digest(row)) if row else log.START


def _batches(rows: Iterator[tuple[str, NewRow]]) -> Iterator[list[NewRow]]:
    """Return rows, each with the id of its command, in batches; all rows of a command are in one batch."""
    batch, command = list[NewRow](), ""
    for command_id, row in rows:
        if len(batch) >= ROWS_PER_TRANSACTION and command_id != command:
            yield batch
            batch = []
        command = command_id
        batch.append(row)
    if batch:
        yield batch


def _rows_after(export: Path, manifest: Manifest, after: Checkpoint) -> Generator[tuple[str, NewRow], None, None]:
    """Return the rows after a checkpoint, with their types, each with the id of its command. Raises Corrupt."""
    skipped = after.position
    with closing(exported_pages(export, manifest)) as read:
        for rows in read:
            page, skipped = log.unseal(rows[skipped:], after), max(skipped - len(rows), 0)
            for row, recorded in zip(rows[len(rows) - len(page) :], page, strict=True):
                yield recorded.command_id, (recorded.position, TAGS[type(recorded.event)], row)
            if page:
                after = Checkpoint(page[-1].position, page[-1].digest)


def _segment_rows_after(
    export: Path, manifest: Manifest, after: Checkpoint
) -> Generator[tuple[str, NewRow], None, None]:
    """Return what `_rows_after` does of segments that were checked: types and commands are read from their columns."""
    with closing(SegmentRows(export, manifest.ledger)) as segments:
        while after.position < manifest.log_position:
            for part in segments.parts(after.position, min(after.position + PART, manifest.log_position)):
                if part.before != after:
                    raise Corrupt(after.position + 1, f"{redacted(export)}: the segments have changed", "digests")
                position, rows = range(after.position + 1, part.end.position + 1), part.rows(range(len(part.digests)))
                yield from zip(
                    part.command_ids().to_pylist(), zip(position, part.types(), rows, strict=True), strict=True
                )
                after = part.end


def exported_pages(export: Path, manifest: Manifest) -> Generator[list[bytes], None, None]:
    """Return the rows of the log in an export, page by page. Raises Unavailable: they cannot be read."""
    if manifest.format == SEGMENTS:
        with closing(StoredLog.open(str(export), manifest.ledger, read_only=True)) as segments:
            yield from segments.pages()
        return
    if manifest.format != SQLITE and manifest.format not in FILE_FORMATS:
        raise Unavailable(f"{export}: this version cannot read the format {manifest.format!r}")
    faults = (sqlite3.Error, *READ_ERRORS) if manifest.format == SQLITE else FILE_FORMATS[manifest.format].faults()
    try:
        with closing(_rows(export, manifest)) as rows:
            page, size = list[bytes](), 0
            for row in rows:
                page.append(row)
                size += len(row)
                if len(page) == PAGE or size > PAGE_BYTES:
                    yield page
                    page, size = [], 0
            if page:
                yield page
    except faults as error:
        raise Unavailable(f"{export}: its events cannot be read: {error}") from None


def _rows(export: Path, manifest: Manifest) -> Generator[bytes, None, None]:
    if manifest.format == SQLITE:
        yield from _database_rows(export)
        return
    with open_table(export, manifest.tables["events"]) as file:
        yield from FILE_FORMATS[manifest.format].rows(file)


def _database_rows(path: Path) -> Generator[bytes, None, None]:
    with closing(open_database(path)) as database:
        check_ordinary(database, "events")
        for (row,) in database.execute("SELECT row FROM events ORDER BY position"):
            yield row.encode()
