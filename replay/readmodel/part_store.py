"""The tables of a read model in an SQLite file: columns, keys, rows part by part, and the digest of each part."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import msgpack

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.projections.core.columns import Column
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE, PartKey, TableUpdate

_PARAMETERS = 999  # of a statement, the most that every version of SQLite takes


def insert_rows(
    connection: sqlite3.Connection, table: str, width: int, rows: Iterable[tuple[Any, ...]], verb: str = "INSERT"
) -> None:
    """Write rows of this width to a table of ours, in their order. verb: `REPLACE` replaces rows with the same key.

    >>> with sqlite3.connect(":memory:") as connection:
    ...     made = connection.execute("CREATE TABLE pairs (a, b)")
    ...     insert_rows(connection, "pairs", 2, ((n, n * n) for n in range(1_000)))
    ...     connection.execute("SELECT count(*), max(b) FROM pairs").fetchall()
    [(1000, 998001)]
    """
    at_once = max(_PARAMETERS // width, 1)
    values = f"({', '.join('?' * width)})"
    statement, reading = f'{verb} INTO "{table}" VALUES ', iter(rows)
    many, rest = statement + ", ".join([values] * at_once), list[tuple[Any, ...]]()

    def whole() -> Iterator[list[Any]]:
        while len(group := [*islice(reading, at_once)]) == at_once:
            yield [*chain.from_iterable(group)]
        rest.extend(group)

    connection.executemany(many, whole())
    connection.executemany(statement + values, rest)


TRACKING, VERSIONS, PLACES, PARTS = "_tracking", "_projections", "_places", "_parts"
_PLACES_IN_ROW = 512  # log positions in a row of the log index
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
    """A table in SQLite. columns: names and types; the first `key` columns are the key of a row, and the first `part`
    of these are the key of the part that the row belongs to.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    key: int
    part: int

    def key_names(self) -> list[str]:
        """Return the names of the columns of the key."""
        return [name for name, _ in self.columns[: self.key]]

    def create_statement(self) -> str:
        """Return the statement that creates the table; SQLite stores its text."""
        columns = ", ".join(f'"{name}" {kind}' for name, kind in self.columns)
        keys = ", ".join(f'"{name}"' for name in self.key_names())
        return f'CREATE TABLE "{self.name}" ({columns}, PRIMARY KEY ({keys})) WITHOUT ROWID'

    def indexes(self) -> dict[str, str]:
        """Return the statements that create the indexes, by name: queries select rows by contest and question."""
        if self.name.startswith("_"):
            return {}
        others = {name for name, _ in self.columns} - set(self.key_names()[:1])
        indexed = {f"{self.name} by {column}": column for column in ("contest", "question") if column in others}
        return {name: f'CREATE INDEX "{name}" ON "{self.name}" ("{column}")' for name, column in indexed.items()}

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
            PLACES,
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
    PLACES,
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


def place_rows(key: tuple[str, str], positions: Sequence[int]) -> list[StoredRow]:
    """Return the rows of the log index for a question and a contest: its log positions, so many in a row.

    >>> place_rows(("rain", ""), [3, 5])
    [('rain', '', 3, '3 5')]
    """
    runs = (positions[begin : begin + _PLACES_IN_ROW] for begin in range(0, len(positions), _PLACES_IN_ROW))
    return [(*key, run[0], " ".join(map(str, run))) for run in runs]


def places_of(row: StoredRow) -> list[int]:
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
    """Return the keys of the rows that no longer exist, and the rows that are new or changed.

    >>> row_changes(Layout("t", (), 1, 0), [("a", 1), ("b", 2), ("c", 3)], [("b", 2), ("c", 4), ("d", 5)])
    ([('a',)], [('c', 4), ('d', 5)])
    """
    if not old:
        return [], new
    before = {row[: table.key]: row for row in old}
    put = [row for row in new if before.pop(row[: table.key], None) != row]
    return list(before), put


REMEDY = "delete the file with its -wal and -shm files, and follow the log again; name its optional tables with --with"
_BATCH_ROWS = 10_000  # rows that are written together


class StoredTables:
    """The tables of a read model, through a connection to its file. The caller begins and ends transactions."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path

    def check_file(self) -> None:
        """Run SQLite's integrity check. Raises Unavailable if it fails."""
        [(result, *_)] = self._connection.execute("PRAGMA integrity_check(1)")
        if result != "ok":
            raise Unavailable(f"{self._path}: the file is damaged: SQLite reports {result}; {REMEDY}")

    def statements(self) -> dict[str, str]:
        """Return the statements that created the tables and indexes of the file, by name."""
        return dict(self._connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))

    def has(self, *names: str) -> bool:
        """Return whether these tables exist, with the layout of this version."""
        return not self.missing(names)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the tables among these that do not exist, have another layout, or lack an index."""
        present = self.statements().items()
        needed = {name: {name: layout(name).create_statement(), **layout(name).indexes()} for name in names}
        return [name for name, statements in needed.items() if not statements.items() <= present]

    def drop(self, name: str) -> None:
        """Remove a table, its rows and the digests of its parts."""
        self._connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        if name != PARTS:
            self._connection.execute(f"DELETE FROM {PARTS} WHERE name = ?", [name])  # noqa: S608 - a constant

    def make(self, name: str) -> None:
        """Create a table without rows; a table of this name is removed first."""
        self.drop(name)
        self._connection.execute(layout(name).create_statement())

    def index(self, name: str) -> None:
        """Create the indexes of a table, which is faster after its rows are written."""
        for statement in layout(name).indexes().values():
            self._connection.execute(statement)

    def digests(self, name: str, key: PartKey = ()) -> dict[PartKey, str]:
        """Return the stored digests of the parts whose keys begin with `key`."""
        query = f"SELECT first, second, digest FROM {PARTS} WHERE name = ?"  # noqa: S608 - a constant
        query += "".join(f" AND {column} = ?" for column, _ in zip(("first", "second"), key, strict=False))
        width = layout(name).part
        return {tuple(both[:width]): digest for *both, digest in self._connection.execute(query, (name, *key))}

    def part_keys(self, name: str) -> set[PartKey]:
        """Return the keys of the parts that have rows."""
        table = layout(name)
        columns = ", ".join(f'"{column}"' for column in table.key_names()[: table.part]) or "NULL"
        query = f'SELECT DISTINCT {columns} FROM "{name}"'  # noqa: S608 - names of layouts
        return {row[: table.part] for row in self._connection.execute(query)}

    def rows(self, name: str, key: PartKey = ()) -> list[StoredRow]:
        """Return the rows of the parts whose keys begin with `key`, in order; digests are not compared."""
        return self._rows(layout(name), key).fetchall()

    def parts(self, name: str, key: PartKey = ()) -> Iterator[Group]:
        """Yield the parts whose keys begin with `key`, in order.

        Raises Unavailable at the first part that does not match its digest.
        """
        table = layout(name)
        digests = self.digests(name, key)
        for part, rows in table.group_parts(self._rows(table, key)):
            if digests.pop(part, None) != rows_digest(rows):
                raise self._differs(name, part)
            yield part, rows
        for part in digests:
            raise self._differs(name, part)

    def put(self, name: str, key: PartKey, rows: list[StoredRow]) -> int:
        """Replace the rows of a part, writing only those that differ; returns how many. Raises what `parts` raises."""
        return self._exchange(layout(name), self.parts(name, key), iter([(key, sorted(rows))] if rows else []))

    def replace(self, update: TableUpdate) -> int:
        """Replace parts of a projection's table, likewise."""
        table = layout(update.table.name)
        before = chain.from_iterable(self.parts(table.name, key) for key in update.keys)
        now = ((key, sorted(rows)) for key, rows in table.group_parts(stored_rows(update.table)))  # in SQLite's order
        return self._exchange(table, before, now)

    def _rows(self, table: Layout, key: PartKey) -> sqlite3.Cursor:
        columns, order = (
            ", ".join(f'"{name}"' for name in names) for names in ([n for n, _ in table.columns], table.key_names())
        )
        where = " AND ".join(f'"{name}" = ?' for name, _ in zip(table.key_names(), key, strict=False)) or "1"
        query = f'SELECT {columns} FROM "{table.name}" WHERE {where} ORDER BY {order}'  # noqa: S608 - names of layouts
        return self._connection.execute(query, key)

    def _exchange(self, table: Layout, before: Iterator[Group], now: Iterator[Group]) -> int:
        """Replace parts, writing only the rows that differ; returns their number."""
        changed, gone, come, digests = 0, list[StoredRow](), list[StoredRow](), list[StoredRow]()
        for key, old, new in pair_parts(before, now):
            if old != new:
                removed, put = row_changes(table, old, new)
                gone += removed
                come += put
                digests.append((table.name, *(*key, "", "")[:2], rows_digest(new) if new else None))
            if len(gone) + len(come) >= _BATCH_ROWS:  # all of them precede the rows that are not read yet
                changed += self._write_batch(table, gone, come, digests)
                gone, come, digests = [], [], []
        return changed + self._write_batch(table, gone, come, digests)

    def _write_batch(
        self, table: Layout, gone: list[StoredRow], come: list[StoredRow], digests: list[StoredRow]
    ) -> int:
        self._remove(table, gone)
        self._add(table, come)
        self._remove(layout(PARTS), [row[:3] for row in digests if row[3] is None])
        self._add(layout(PARTS), [row for row in digests if row[3] is not None])
        return len(gone) + len(come)

    def _remove(self, table: Layout, keys: Iterable[StoredRow]) -> None:
        where = " AND ".join(f'"{name}" = ?' for name in table.key_names())
        self._connection.executemany(f'DELETE FROM "{table.name}" WHERE {where}', keys)  # noqa: S608 - names of layouts

    def _add(self, table: Layout, rows: list[StoredRow]) -> None:
        insert_rows(self._connection, table.name, len(table.columns), rows, "REPLACE")

    def _differs(self, name: str, key: PartKey) -> Unavailable:
        which = " of " + ", ".join(map(repr, key)) if key else ""
        wrong = f"the rows{which} in {name} differ from those that were written: changed by hand, or damaged"
        return Unavailable(f"{self._path}: {wrong}; {REMEDY}")
