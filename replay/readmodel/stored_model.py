"""A read model as it is stored: the tables of the catalogue, as published, and the checkpoint that they are as of."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Conflict, Unavailable, installing
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.projections.tables.catalogue import TableUpdate
from forecast_ledger.replay.readmodel.part_store import (
    LOG_INDEX,
    OPTIONAL,
    PARTS,
    SYSTEM,
    TRACKING,
    VERSIONS,
    Changes,
    Database,
    StoredRow,
    StoredTables,
    index_rows,
    kept_tables,
    layout,
    positions_in,
    table_versions,
)
from forecast_ledger.replay.readmodel.sqlite_tables import SQLiteTables

Positions = dict[tuple[str, str], list[int]]  # question and contest, "" for none -> log positions, rising


class Tracking(NamedTuple):
    """What a read model is made from: the ledger, the digest of its first row, and the checkpoint reached."""

    ledger: str
    first: str
    reached: Checkpoint
    recorded_at: int  # µs; when the last event was recorded

    def row(self) -> StoredRow:
        """Return the row that is stored."""
        return self.ledger, self.first, *self.reached, format_instant(self.recorded_at), self.recorded_at


class Update(NamedTuple):
    """An update of a read model.

    tables: the parts of tables to replace. positions: the new entries of the log index. rebuilt: the tables to make
    again, all of whose parts are in `tables`.
    """

    tables: Iterable[TableUpdate]
    positions: Positions
    rebuilt: Sequence[str] = ()


def _sqlite(location: str, read_only: bool) -> Database:
    return SQLiteTables(location, read_only=read_only)


def _postgres(location: str, _: bool) -> Database:
    try:
        from forecast_ledger.replay.readmodel.postgres_tables import PostgresTables  # noqa: PLC0415 - an extra
    except ImportError:
        raise Unavailable(f"{redacted(location)}: psycopg[pool] is not installed; {installing('postgres')}") from None
    return PostgresTables(location)


# The scheme of a location -> what opens the database there; a location without a scheme is the path of an SQLite file.
DATABASES: dict[str, Callable[[str, bool], Database]] = {"": _sqlite, "postgresql": _postgres, "postgres": _postgres}


def open_database(location: str, *, read_only: bool) -> Database:
    """Open the database at a path or URL; create a file unless read_only. Raises Unavailable."""
    scheme, separator, _ = location.partition("://")
    return DATABASES.get(scheme if separator else "", _sqlite)(location, read_only)


class StoredModel:
    """The tables and their checkpoint, which change in one transaction.

    The database has a digest of each part of a table, which is compared when the part is replaced.
    """

    def __init__(self, location: str, *, read_only: bool = False, optional: Sequence[str] = ()) -> None:
        """Open or create a read model; read_only: neither create nor check it. `hold` comes before any change.

        optional: tables to keep beside those that every read model has, and beside those that it has already.
        Raises, first that applies: ValueError (no such table is optional), Unavailable (the database cannot be opened,
        is not a read model, or is damaged).
        """
        if wrong := [optional] if isinstance(optional, str) else [name for name in optional if name not in OPTIONAL]:
            raise ValueError(f"not a list of optional tables: {wrong[0]!r}; they are {', '.join(OPTIONAL)}")
        self._optional = {*optional}
        self._database = open_database(location, read_only=read_only)
        self.location = self._database.location
        self._stored = StoredTables(self._database)
        try:
            with self._database.errors():
                there = self._database.structure()
            if there and not {TRACKING, VERSIONS} <= there.keys():
                raise Unavailable(f"{self.location}: not a read model: it has other tables")
        except BaseException:
            self.close()
            raise

    def hold(self) -> bool:
        """Keep other runners away until `close`, or return that another runner has it. Raises Unavailable."""
        with self._database.errors():
            return self._database.hold()

    def close(self) -> None:
        """Close the database, and let another runner have it."""
        self._database.close()

    def start_over(self) -> None:
        """Forget the tables, but not which of them are optional; readers see them until the next `write` has ended.

        Raises Unavailable.
        """
        with self._database.errors():
            self._optional.update(set(self.names()) & set(OPTIONAL))
            self._database.start_over()

    @contextmanager
    def reading(self, tables: Sequence[str] = ()) -> Iterator[StoredTables]:
        """Read the tables in one transaction. tables: those that are read, if they are known."""
        with self._database.errors(), self._database.transaction(writing=False, tables=tables):
            yield self._stored

    def tracking(self) -> Tracking | None:
        """Return what the tables are made from; None if there are no tables yet. Raises Unavailable."""
        with self._database.errors():
            if not self._database.exists(TRACKING):
                return None
            if self._stored.has(PARTS, TRACKING):
                deque(self._stored.parts(TRACKING), maxlen=0)
            rows = self._stored.rows(TRACKING)
        if [[*map(type, row)] for row in rows] != [[str, str, int, str, str, int]]:
            raise Unavailable(f"{self.location}: the table {TRACKING} is damaged; {self._database.remedy}")
        [(ledger, first, position, digest, _, recorded_at)] = rows
        return Tracking(ledger, first, Checkpoint(position, digest), recorded_at)

    def position(self) -> int:
        """Return the log position that the tables are as of; 0 if there are none yet. Raises Unavailable."""
        with self._database.errors():
            return int(self._stored.rows(TRACKING)[0][2]) if self._database.exists(TRACKING) else 0

    def keeps(self, table: str) -> bool:
        """Return whether there is a table of this name. Raises Unavailable."""
        with self._database.errors():
            return self._database.exists(table)

    def names(self) -> list[str]:
        """Return the projections that the read model has or gets, in the catalogue's order. Raises Unavailable."""
        return kept_tables([*self._optional, *(row[0] for row in self._versions())])

    def _versions(self) -> list[StoredRow]:
        with self._database.errors():
            return self._stored.rows(VERSIONS) if self._database.exists(VERSIONS) else []

    def outdated(self) -> list[str]:
        """Return the projections without a table, or with one of another version or shape. Raises Unavailable."""
        with self.reading():
            return self._outdated()

    def _outdated(self) -> list[str]:
        names = self.names()
        if not self.is_indexed():
            return names
        stored = self._versions()
        changed = {row[0] for row in table_versions(names) if row not in stored}
        missing = self._stored.missing(names)
        return [name for name in names if name in changed or name in missing]

    def positions(self, ledger: str, question: str, contest: str) -> tuple[Checkpoint, list[int]]:
        """Return the checkpoint reached, and the positions up to it of the rows about a question or a contest.

        Raises Unavailable: the database cannot be read, or follows another ledger, or none yet.
        """
        with self.reading() as stored:
            tracking = self.tracking()
            if tracking is None or tracking.ledger != ledger or not self.is_indexed():
                raise Unavailable(f"{self.location}: no read model of {ledger!r}; `forecast-ledger follow` makes one")
            keys = {("", ""), (question, ""), (question, contest), ("", contest)}
            rows = [row for key in keys for _, part in stored.parts(LOG_INDEX, key) for row in part]
            positions = [position for row in rows for position in positions_in(row)]
        return tracking.reached, sorted(positions)

    def is_indexed(self) -> bool:
        """Return whether the read model has a log index, and digests of its parts. Raises Unavailable."""
        with self._database.errors():
            return self._stored.has(PARTS, *SYSTEM)

    def write(self, before: Tracking | None, now: Tracking, update: Update) -> Changes:
        """Replace parts of tables and the tracking in one transaction; return what changed.

        Raises, first that applies: Unavailable (also if a part differs from what was written), Conflict (another
        process has changed the tracking since `before`). If it raises, nothing has changed.
        """
        stored, stored.changes = self._stored, Changes()
        with self._database.errors(), self._database.transaction(writing=True):
            self._check()
            if self.tracking() != before:
                raise Conflict(f"{self.location}: another process has updated this read model; nothing was changed")
            self._make(update.rebuilt)
            for table in update.tables:
                stored.replace(table)
            for key in sorted(update.positions):
                rows = [row for _, part in stored.parts(LOG_INDEX, key) for row in part]
                last = positions_in(rows[-1]) if rows else []
                stored.put(LOG_INDEX, key, [*rows[:-1], *index_rows(key, [*last, *update.positions[key]])])
            stored.put(TRACKING, (), [now.row()])
            self._database.finish()
        return stored.changes

    def check(self) -> None:
        """Compare every part with its digest, unless nobody else has written since the last check.

        Raises Unavailable: the database is damaged, or a part does not match its digest.
        """
        with self.reading():
            self._check()

    def check_file(self) -> None:
        """Run the database's own check. Raises Unavailable if it fails."""
        with self._database.errors():
            self._database.check_file()

    def expected(self, table: str) -> str:
        """Return how a table is made."""
        return self._database.expected(layout(table))[table]

    def _check(self) -> None:
        if not self._database.is_checked():
            self._database.check_file()
            if self.is_indexed():
                outdated = self._outdated()
                for name in (*SYSTEM, *(name for name in self.names() if name not in outdated)):
                    deque(self._stored.parts(name), maxlen=0)
            self._database.note_checked()

    def _make(self, rebuilt: Sequence[str]) -> None:
        """Create empty tables for these projections, and drop the tables of projections that no longer exist."""
        stored, names, kept = self._stored, [name for name, *_ in self._versions()], self.names()
        if not self.is_indexed():
            for name in (PARTS, *SYSTEM):
                stored.make(name)
        for name in {*names} - {*kept}:
            stored.drop(name)
        for name in rebuilt:
            stored.make(name)
        stored.put(VERSIONS, (), table_versions(kept))
