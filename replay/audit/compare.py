"""Compare two logs: the first event that differs, and the projections that differ."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import NamedTuple

import msgspec

from forecast_ledger.ledger.core.errors import Corrupt, Unavailable
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.core.regular_files import open_regular
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.storing.database import MAX_ROW_BYTES
from forecast_ledger.ledger.storing.store import PAGE
from forecast_ledger.projections.facts import from_log
from forecast_ledger.replay.files.manifest import Manifest, is_segments, read_manifest
from forecast_ledger.replay.files.restore import exported_pages as exported
from forecast_ledger.replay.reading.event_text import OutcomeNames, Outcomes, unnamed
from forecast_ledger.replay.reading.log import AsOf, Cut, Log, OnProgress
from forecast_ledger.replay.reading.replay import TableSummary, summarize_tables

COMPARISON_COLUMNS = ["projection", "same", "rows", "digest", "other_rows", "other_digest"]


class ComparedLog(NamedTuple):
    """A log as of a cut: a ledger in a store, an export, or a file of rows as JSON lines."""

    location: str
    name: str = "main"
    as_of: AsOf = None

    def __str__(self) -> str:
        """Return the location and cut, without a password."""
        cut = "" if self.as_of is None else f"@{self.as_of}"
        return redacted(self.location) + cut


class FirstDifference(NamedTuple):
    """The first log position at which two logs differ, and the event of each there; None if the log ends before it.

    outcomes: the names of the outcomes of the questions opened before it.
    """

    position: int
    one: Recorded | None
    other: Recorded | None
    outcomes: Outcomes = unnamed

    def fields(self) -> list[str]:
        """Return the fields that differ, if both logs have a row at this position."""
        one, other = self.one, self.other
        if one is None or other is None:
            return []
        names = [
            name for name in ("recorded_at", "command_id", "command") if getattr(one, name) != getattr(other, name)
        ]
        if type(one.event) is not type(other.event):
            return [*names, "type"]
        inside = one.event.__struct_fields__
        return [*names, *(f"event.{name}" for name in inside if getattr(one.event, name) != getattr(other.event, name))]


class LogComparison(NamedTuple):
    """The first difference between two logs, the end of each, and the projections of each that are built by default."""

    first_difference: FirstDifference | None
    heads: tuple[Checkpoint, Checkpoint]
    built: tuple[dict[str, TableSummary], dict[str, TableSummary]]

    def apart(self) -> list[str]:
        """Return the projections that differ."""
        one, other = self.built
        return [name for name in one if one[name] != other[name]]


def parse_log(text: str, name: str = "main", as_of: AsOf = None) -> ComparedLog:
    """Return the log that LOG or LOG@POSITION names; as_of applies if there is no position.

    >>> parse_log("season.db@34", as_of=7), parse_log("ada@db.example/season")[::2]
    (ComparedLog(location='season.db', name='main', as_of=34), ('ada@db.example/season', None))
    """
    location, _, position = text.rpartition("@")
    if location and position.isdecimal() and position.isascii() and len(position) < 19 and not Path(text).exists():
        return ComparedLog(location, name, int(position))
    return ComparedLog(text, name, as_of)


def compare_logs(one: ComparedLog, other: ComparedLog, on_progress: OnProgress = lambda _: None) -> LogComparison:
    """Compare two logs event by event, and their projections.

    Raises, first that applies: Refused (a cut is not valid, or beyond its log), Unavailable, Corrupt.
    """
    cuts = Cut(one.as_of, on_progress), Cut(other.as_of)
    with _events(one, cuts[0]) as ours, _events(other, cuts[1]) as theirs:
        first_difference = _first_difference(ours, theirs)
    if first_difference is None:
        head, built = _summarize(one, on_progress)
        return LogComparison(None, (head, cuts[1].reached()), (built, built))
    (head, built), (other_head, other_built) = _summarize(one, on_progress), _summarize(other, on_progress)
    return LogComparison(first_difference, (head, other_head), (built, other_built))


def _first_difference(ours: Iterator[Recorded], theirs: Iterator[Recorded]) -> FirstDifference | None:
    """Return the first difference. A digest covers all rows before it: equal digests mean equal logs so far."""
    names = OutcomeNames()
    for position, (one, other) in enumerate(zip_longest(ours, theirs), 1):
        if one is None or other is None or one.digest != other.digest:
            return FirstDifference(position, one, other, names.of)
        names.learn(one.event)
    return None


def _summarize(compared: ComparedLog, on_progress: OnProgress) -> tuple[Checkpoint, dict[str, TableSummary]]:
    cut = Cut(compared.as_of, on_progress)
    with _rows(compared) as pages:
        facts = from_log.facts(_name_log(compared, cut.pages(log.unseal_pages(pages))))
    return cut.reached(), summarize_tables(facts)


@contextmanager
def _events(compared: ComparedLog, cut: Cut) -> Iterator[Iterator[Recorded]]:
    with _rows(compared) as pages:
        yield chain.from_iterable(_name_log(compared, cut.pages(log.unseal_pages(pages))))


def _name_log(compared: ComparedLog, pages: Iterator[Sequence[Recorded]]) -> Iterator[Sequence[Recorded]]:
    """Pass the pages on; name the log in the message of a Corrupt."""
    try:
        yield from pages
    except Corrupt as damage:
        raise Corrupt(damage.position, f"{compared}: {damage.args[1]}", damage.check) from None


@contextmanager
def _rows(compared: ComparedLog) -> Iterator[Iterator[Sequence[bytes]]]:
    """Return the rows of a log, page by page."""
    if not _is_text(compared.location):
        manifest = _manifest(Path(compared.location))
        if manifest is not None:
            with closing(_export_rows(compared.location, manifest)) as pages:
                yield pages
            return
        with Log(compared.location, compared.name).opened() as store:
            yield store.pages()
        return
    with open_regular(Path(compared.location).resolve()) as file:
        lines = (line.strip() for line in iter(lambda: file.readline(MAX_ROW_BYTES), b""))
        rows = (_row(line) for line in lines if line)
        yield iter(lambda: list(islice(rows, PAGE)), [])


def _manifest(path: Path) -> Manifest | None:
    """Return the manifest of an export, or None for a store. Raises Unavailable: another folder or a FIFO."""
    if path.is_dir():
        return None if is_segments(path) else read_manifest(path)
    if path.exists() and not path.is_file():
        raise Unavailable(f"{path}: not a regular file")
    try:
        return read_manifest(path) if path.is_file() else None
    except Unavailable:
        return None


def _export_rows(location: str, manifest: Manifest) -> Generator[list[bytes], None, None]:
    """Return the rows of the log in an export, page by page. Raises Unavailable: rows are missing."""
    count = 0
    with closing(exported(Path(location), manifest)) as pages:
        for rows in pages:
            count += len(rows)
            yield rows
    if count != manifest.log_position:
        raise Unavailable(f"{location}: not a complete export: it has {count} events of {manifest.log_position}")


def _is_text(location: str) -> bool:
    """Return whether it is a file that starts like JSON lines."""
    try:
        with open_regular(Path(location).resolve()) as file:
            return file.read(1) == b"{"
    except (OSError, ValueError):
        return False


class _Line(msgspec.Struct):
    """The row of the log in a line of an export; other fields are ignored."""

    row: str | None = None


_line = msgspec.json.Decoder(_Line)


def _row(line: bytes) -> bytes:
    """Return the row in a line: the line itself, or its field `row` if it is from an export."""
    try:
        row = _line.decode(line).row
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return line  # the check of the row reports what is wrong
    return line if row is None else row.encode("utf-8", "replace")
