"""The layout of the tables in a read model: their columns, keys and parts, and the digest of a part."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import msgpack

from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.incremental.deltas import PartKey
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE

TRACKING, VERSIONS, PLACES, PARTS = "_tracking", "_projections", "_places", "_parts"
_PLACES_IN_ROW = 512  # log positions in a row of the log index
ROW = "row"  # the number of a row within its part, in a table whose rows have an order of their own
# The tables that a read model has on request: they have a row for each forecast, quote or tick. Others that a replay
# builds on request are never in it, because a key of theirs can be empty.
OPTIONAL = ("consensus", "portfolio_snapshots", "quotes", "scores", "standing")
StoredRow = tuple[Any, ...]
Group = tuple[PartKey, list[StoredRow]]  # a part's key and its rows, in order
_encode = msgpack.Encoder().encode


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
    columns = [(column.name, "INTEGER" if column.kind == "count" else "TEXT") for column in projection.columns]
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
