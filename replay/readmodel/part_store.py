"""The tables of a read model: columns, keys, rows part by part, and the digest of each part."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from msgspec import msgpack

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.projections.core.columns import Column
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE, PartKey, TableUpdate

TRACKING, VERSIONS, LOG_INDEX, PARTS = "_tracking", "_projections", "_places", "_parts"
_POSITIONS_IN_ROW = 512  # log positions in a row of the log index
ROW = "row"  # the number of a row within its part, in a table whose rows have an order of their own
# The tables that a read model has on request: they have a row for each forecast, quote or tick. Others that a replay
# builds on request are never in it, because a key of theirs can be empty.
OPTIONAL = ("consensus", "portfolio_snapshots", "quotes", "scores", "standing")
StoredRow = tuple[Any, ...]
Group = tuple[PartKey, list[StoredRow]]  # a part's key and its rows, in order
_encode = msgpack.Encoder().encode


def sql_type(column: Column) -> str:
    """Return the SQL type of a column of a table: counts are integers, and all other values text, as published.

    >>> sql_type(Column("rank", "count", "the rank")), sql_type(Column("take", "take", "the take"))
    ('INTEGER', 'TEXT')
    """
    return "INTEGER" if column.kind == "count" else "TEXT"


class Layout(NamedTuple):
    """A table. columns: names and kinds, which are TEXT, INTEGER, or BLOB for either of them; the first `key` columns
    are the key of a row, and the first `part` of these are the key of the part that the row belongs to.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    key: int
    part: int

    def key_names(self) -> list[str]:
        """Return the names of the columns of the key."""
        return [name for name, _ in self.columns[: self.key]]

    def indexed(self) -> list[str]:
        """Return the columns with an index of their own: queries select rows by contest and question."""
        others = {name for name, _ in self.columns} - set(self.key_names()[:1])
        return [] if self.name.startswith("_") else [name for name in ("contest", "question") if name in others]

    def group_parts(self, rows: Iterable[StoredRow]) -> Iterator[Group]:
        """Yield rows, in order of their keys, part by part."""
        for key, group in groupby(rows, itemgetter(slice(self.part))):
            yield key, list(group)


_SYSTEM = {
    table.name: table
    for table in (
        Layout(
            TRACKING,
            (
                ("ledger", "TEXT"),
                ("first", "TEXT"),
                ("position", "INTEGER"),
                ("digest", "TEXT"),
                ("recorded_at", "TEXT"),
                ("recorded_micros", "INTEGER"),
            ),
            key=1,
            part=0,
        ),
        Layout(VERSIONS, (("name", "TEXT"), ("version", "INTEGER"), ("shape", "TEXT")), key=1, part=0),
        Layout(
            LOG_INDEX,
            (("question", "TEXT"), ("contest", "TEXT"), ("first", "INTEGER"), ("positions", "TEXT")),
            key=3,
            part=2,
        ),
        Layout(PARTS, (("name", "TEXT"), ("first", "BLOB"), ("second", "BLOB"), ("digest", "TEXT")), key=3, part=1),
    )
}
SYSTEM = (
    TRACKING,
    VERSIONS,
    LOG_INDEX,
)  # the tables of a read model that are not projections; PARTS has the digests of the parts of every other table


def layout(name: str) -> Layout:
    """Return the layout of a projection's table, or of one of the read model's own tables."""
    if name in _SYSTEM:
        return _SYSTEM[name]
    projection = CATALOGUE[name]
    columns = [(column.name, sql_type(column)) for column in projection.columns]
    key = len(projection.key)
    if projection.as_built:
        key = _numbered_within(name) + 1
        columns.insert(key - 1, (ROW, "INTEGER"))
    return Layout(name, tuple(columns), key, len(projection.part))


def index_rows(key: tuple[str, str], positions: Sequence[int]) -> list[StoredRow]:
    """Return the rows of the log index for a question and a contest: its log positions, so many in a row.

    >>> index_rows(("rain", ""), [3, 5])
    [('rain', '', 3, '3 5')]
    """
    runs = (positions[begin : begin + _POSITIONS_IN_ROW] for begin in range(0, len(positions), _POSITIONS_IN_ROW))
    return [(*key, run[0], " ".join(map(str, run))) for run in runs]


def positions_in(row: StoredRow) -> list[int]:
    """Return the log positions in a row of the log index."""
    return [*map(int, row[-1].split())]


def kept_tables(optional: Iterable[str]) -> list[str]:
    """Return the tables of a read model that has these optional ones, in the catalogue's order.

    >>> [name for name in kept_tables(["quotes"]) if name in OPTIONAL]
    ['quotes']
    """
    kept = {*BUILT} - {*OPTIONAL} | {*OPTIONAL} & {*optional}
    return [name for name in CATALOGUE if name in kept]


def table_versions(names: Iterable[str]) -> list[StoredRow]:
    """Return the name, version and shape of these tables; a table with another version or shape is made again."""
    return sorted((name, CATALOGUE[name].version, _shape(name)) for name in names)


def _numbered_within(name: str) -> int:
    """Return how many columns, the first ones, have the same values in rows that are numbered together."""
    return max(len(CATALOGUE[name].part), 1)


def _shape(name: str) -> str:
    columns = " ".join(f"{column.name}:{column.kind}" for column in CATALOGUE[name].columns)
    table = layout(name)
    return f"v{CATALOGUE[name].version} ({', '.join(table.key_names())}) by {table.part} {columns}"


def stored_rows(table: Table) -> Iterator[StoredRow]:
    """Yield the rows of a table as they are stored: as published, and those with an order of their own numbered."""
    if not CATALOGUE[table.name].as_built:
        yield from table.printed()
        return
    width = _numbered_within(table.name)
    for within, rows in groupby(table.printed(), itemgetter(slice(width))):
        yield from ((*within, number, *row[width:]) for number, row in enumerate(rows, 1))


def rows_digest(rows: list[StoredRow]) -> str:
    r"""Return the SHA-256 of rows in MessagePack, which distinguishes the types of values.

    >>> rows_digest([("a", 1)]) == sha256(b"\x91\x92\xa1a\x01").hexdigest() != rows_digest([("a", "1")])
    True
    """
    return sha256(_encode(rows)).hexdigest()


def pair_parts(
    old: Iterator[Group], new: Iterator[Group]
) -> Iterator[tuple[PartKey, list[StoredRow], list[StoredRow]]]:
    """Yield the key, the old rows and the new rows of each part; no rows if there was or is no such part.

    old, new: in order of their keys.

    >>> list(pair_parts(iter([(("a",), [("a", 1)])]), iter([(("b",), [("b", 2)])])))
    [(('a',), [('a', 1)], []), (('b',), [], [('b', 2)])]
    """
    was, now = next(old, None), next(new, None)
    while was or now:
        if now is None or (was is not None and was[0] < now[0]):
            assert was is not None  # noqa: S101 - one of the two is there
            yield was[0], was[1], []
            was = next(old, None)
        elif was is None or now[0] < was[0]:
            yield now[0], [], now[1]
            now = next(new, None)
        else:
            yield was[0], was[1], now[1]
            was, now = next(old, None), next(new, None)


def row_changes(table: Layout, old: list[StoredRow], new: list[StoredRow]) -> tuple[list[StoredRow], list[StoredRow]]:
    """Return the rows that no longer exist or have changed, as they were, and those that are new or have changed.

    >>> row_changes(Layout("t", (), 1, 0), [("a", 1), ("b", 2), ("c", 3)], [("b", 2), ("c", 4), ("d", 5)])
    ([('a', 1), ('c', 3)], [('c', 4), ('d', 5)])
    """
    if not old:
        return [], new
    before = {row[: table.key]: row for row in old}
    same = {row[: table.key] for row in new if before.get(row[: table.key]) == row}
    return [row for key, row in before.items() if key not in same], [row for row in new if row[: table.key] not in same]


_BATCH_ROWS = 10_000  # rows that are written together


class Database(Protocol):
    """Where the tables of a read model are: an SQLite file, or a schema of a PostgreSQL database.

    Its methods raise the errors of its library, which `errors` translates. location: without a password. remedy: what
    to do if it is damaged.
    """

    location: str
    remedy: str

    def errors(self) -> AbstractContextManager[None]:
        """Raise Unavailable in place of the errors of the library."""

    def transaction(self, *, writing: bool, tables: Sequence[str] = ()) -> AbstractContextManager[None]:
        """Begin a transaction; commit it in the end, or undo it if an error is raised.

        What one that does not write reads is of one instant. tables: those that it reads, if they are known.
        """

    def hold(self) -> bool:
        """Keep other runners away until `close`, or return that another runner has it. The system ends it if killed."""

    def close(self) -> None:
        """Close it, and let another runner have it."""

    def structure(self) -> dict[str, str]:
        """Return the tables that exist, and other parts of the structure, each with a text that says how it is made."""

    def exists(self, name: str) -> bool:
        """Return whether there is a table of this name."""

    def expected(self, table: Layout) -> dict[str, str]:
        """Return the part of the structure that a table of this layout has."""

    def make(self, table: Layout) -> None:
        """Create a table without rows in place of one of this name, which others see until the transaction ends."""

    def drop(self, name: str) -> None:
        """Remove a table if it exists."""

    def finish(self) -> None:
        """Complete the tables that were made in this transaction; it is the last thing that the transaction does."""

    def start_over(self) -> None:
        """Act as if there were no tables; others see those there are until the next transaction that writes ends."""

    def select(self, table: Layout, key: Sequence[Any]) -> Iterator[StoredRow]:
        """Yield the rows whose key begins with these values, in order of their keys."""

    def where(self, table: Layout, equal: Mapping[str, Any]) -> Iterable[StoredRow]:
        """Return the rows that have these values in these columns, None for NULL, in order of their keys."""

    def keys(self, table: Layout) -> Iterable[StoredRow]:
        """Return the keys of parts that have rows."""

    def insert(self, table: Layout, rows: list[StoredRow]) -> None:
        """Write new rows."""

    def delete(self, table: Layout, keys: list[StoredRow]) -> None:
        """Remove the rows whose keys begin with these values, all of which have the same length."""

    def is_checked(self) -> bool:
        """Return whether nobody else has written since `note_checked`. A transaction is open."""

    def note_checked(self) -> None:
        """Note that all that this transaction sees was checked."""

    def check_file(self) -> None:
        """Run the database's own check, if it has one. Raises Unavailable if it fails."""


class Changes:
    """What was written to projections: the number of rows, the tables they are in, the contests they are about."""

    def __init__(self) -> None:
        self.rows = 0
        self.tables: set[str] = set()
        self.contests: set[str] = set()

    def add(self, table: Layout, gone: list[StoredRow], come: list[StoredRow]) -> None:
        """Add rows that are gone, as they were, and rows that are new or have changed."""
        if (gone or come) and not table.name.startswith("_"):
            vanished = {row[: table.key] for row in gone}
            if vanished:
                vanished -= {row[: table.key] for row in come}
            self.rows += len(come) + len(vanished)
            self.tables.add(table.name)
            for index, (name, _) in enumerate(table.columns):
                if name == "contest":
                    self.contests |= {row[index] for row in chain(gone, come)} - {None, ""}


class StoredTables:
    """The tables of a read model in a database. The caller begins and ends transactions.

    changes: what was written since the caller last replaced it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.changes = Changes()

    def has(self, *names: str) -> bool:
        """Return whether these tables exist, with the layout of this version."""
        return not self.missing(names)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the tables among these that do not exist, have another layout, or lack an index."""
        present = self._database.structure().items()
        return [name for name in names if not self._database.expected(layout(name)).items() <= present]

    def drop(self, name: str) -> None:
        """Remove a table, its rows and the digests of its parts."""
        self._database.drop(name)
        self._database.delete(layout(PARTS), [(name,)])

    def make(self, name: str) -> None:
        """Create a table without rows in place of one of this name."""
        self._database.make(layout(name))
        if name != PARTS:
            self._database.delete(layout(PARTS), [(name,)])

    def digests(self, name: str, key: PartKey = ()) -> dict[PartKey, str]:
        """Return the stored digests of the parts whose keys begin with `key`."""
        width = layout(name).part
        return {tuple(both[:width]): digest for _, *both, digest in self._database.select(layout(PARTS), (name, *key))}

    def part_keys(self, name: str) -> set[PartKey]:
        """Return the keys of the parts that have rows."""
        return {*self._database.keys(layout(name))}

    def rows(self, name: str, key: PartKey = ()) -> list[StoredRow]:
        """Return the rows of the parts whose keys begin with `key`, in order; digests are not compared."""
        return [*self._database.select(layout(name), key)]

    def selected(self, name: str, equal: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the rows of a projection that have these values in these columns, in order of their keys."""
        table = layout(name)
        names = [column for column, _ in table.columns]
        return (dict(zip(names, row, strict=True)) for row in self._database.where(table, equal))

    def parts(self, name: str, key: PartKey = ()) -> Iterator[Group]:
        """Yield the parts whose keys begin with `key`, in order.

        Raises Unavailable at the first part that does not match its digest.
        """
        table = layout(name)
        digests = self.digests(name, key)
        for part, rows in table.group_parts(self._database.select(table, key)):
            if digests.pop(part, None) != rows_digest(rows):
                raise self._differs(name, part)
            yield part, rows
        for part in digests:
            raise self._differs(name, part)

    def put(self, name: str, key: PartKey, rows: list[StoredRow]) -> None:
        """Replace the rows of a part, writing only those that differ. Raises what `parts` raises."""
        self._exchange(layout(name), self.parts(name, key), iter([(key, sorted(rows))] if rows else []))

    def replace(self, update: TableUpdate) -> None:
        """Replace parts of a projection's table, likewise."""
        table = layout(update.table.name)
        before = chain.from_iterable(self.parts(table.name, key) for key in update.keys)
        now = ((key, sorted(rows)) for key, rows in table.group_parts(stored_rows(update.table)))  # as they are stored
        self._exchange(table, before, now)

    def _exchange(self, table: Layout, before: Iterator[Group], now: Iterator[Group]) -> None:
        """Replace parts, writing only the rows that differ."""
        rows, digests = (list[StoredRow](), list[StoredRow]()), (list[StoredRow](), list[StoredRow]())
        for key, old, new in pair_parts(before, now):
            if old != new:
                part = (table.name, *(*key, "", "")[:2])
                for side, changed in enumerate(row_changes(table, old, new)):
                    rows[side].extend(changed)
                for side, group in enumerate((old, new)):
                    digests[side].extend([(*part, rows_digest(group))] if group else [])
            if sum(map(len, rows)) >= _BATCH_ROWS:  # all of them precede the rows that are not read yet
                self._write_batch(table, rows, digests)
        self._write_batch(table, rows, digests)

    def _write_batch(
        self,
        table: Layout,
        rows: tuple[list[StoredRow], list[StoredRow]],
        digests: tuple[list[StoredRow], list[StoredRow]],
    ) -> None:
        """Write what is gone and what has come, of rows and of digests, and empty the lists."""
        self.changes.add(table, *rows)
        for target, (gone, come) in ((table, rows), (layout(PARTS), digests)):
            self._database.delete(target, [row[: target.key] for row in gone])
            self._database.insert(target, come)
            gone.clear()
            come.clear()

    def _differs(self, name: str, key: PartKey) -> Unavailable:
        which = " of " + ", ".join(map(repr, key)) if key else ""
        wrong = f"the rows{which} in {name} differ from those that were written: changed by hand, or damaged"
        return Unavailable(f"{self._database.location}: {wrong}; {self._database.remedy}")
