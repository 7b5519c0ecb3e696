"""The layout of tables in a read model: their columns, keys and parts, and the digest of a part."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import msgpack

from forecast_ledger.projections.catalogue.catalogue import BUILT, CATALOGUE
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.incremental.deltas import Key

TRACKING, VERSIONS, PLACES, PARTS = "_tracking", "_projections", "_places", "_parts"
ROW = "row"  # place within its contest, of a table whose rows are in an order of their own
Row = tuple[Any, ...]
Group = tuple[Key, list[Row]]  # a part's key and its rows, in order
_encode = msgpack.Encoder().encode


class Layout(NamedTuple):
    """A table as SQLite has it. columns: names and types, of which the first `key` tell rows apart, and the first
    `part` of these say which part a row belongs to.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    key: int
    part: int

    def key_names(self) -> list[str]:
        """The names of the columns that tell rows apart."""
        return [name for name, _ in self.columns[: self.key]]

    def made_by(self) -> str:
        """The statement that makes it; SQLite keeps its text."""
        columns = ", ".join(f'"{name}" {kind}' for name, kind in self.columns)
        keys = ", ".join(f'"{name}"' for name in self.key_names())
        return f'CREATE TABLE "{self.name}" ({columns}, PRIMARY KEY ({keys})) WITHOUT ROWID'

    def indexes(self) -> dict[str, str]:
        """The statements that make its indexes, by name: rows are asked for by contest and question."""
        there = {name for name, _ in self.columns} - set(self.key_names()[:1])
        found = {f"{self.name} by {by}": by for by in ("contest", "question") if by in there}
        if self.name.startswith("_"):
            return {}
        return {name: f'CREATE INDEX "{name}" ON "{self.name}" ("{by}")' for name, by in found.items()}

    def grouped(self, rows: Iterable[Row]) -> Iterator[Group]:
        """Rows in order of their keys, part by part."""
        for key, group in groupby(rows, itemgetter(slice(self.part))):
            yield key, list(group)


_SYSTEM = {
    each.name: each
    for each in (
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
        Layout(PLACES, (("question", "TEXT"), ("contest", "TEXT"), ("position", "INTEGER")), key=3, part=2),
        Layout(PARTS, (("name", "TEXT"), ("first", "BLOB"), ("second", "BLOB"), ("digest", "TEXT")), key=3, part=1),
    )
}
SYSTEM = (
    TRACKING,
    VERSIONS,
    PLACES,
)  # what a read model holds beside its tables; PARTS has the digests of all of these


def layout(name: str) -> Layout:
    """The layout of a projection's table, or of one of a read model's own."""
    if name in _SYSTEM:
        return _SYSTEM[name]
    projection = CATALOGUE[name]
    columns = [(each.name, "INTEGER" if each.kind == "count" else "TEXT") for each in projection.columns]
    if projection.as_built:
        columns.insert(1, (ROW, "INTEGER"))
    return Layout(name, tuple(columns), 2 if projection.as_built else len(projection.key), len(projection.part))


def versions() -> list[Row]:
    """Name, version and shape of every table: of another version or shape, it has to be made again."""
    return sorted((name, CATALOGUE[name].version, _shape(name)) for name in BUILT)


def _shape(name: str) -> str:
    columns = " ".join(f"{column.name}:{column.kind}" for column in CATALOGUE[name].columns)
    of = layout(name)
    return f"v{CATALOGUE[name].version} ({', '.join(of.key_names())}) by {of.part} {columns}"


def printed(table: Table) -> Iterator[Row]:
    """The rows as published and stored, those of a board numbered within their contest."""
    if not CATALOGUE[table.name].as_built:
        yield from table.printed()
        return
    for contest, rows in groupby(table.printed(), lambda row: row[0]):
        yield from ((contest, number, *row[1:]) for number, row in enumerate(rows, 1))


def digest(rows: list[Row]) -> str:
    r"""SHA-256 of rows in MessagePack, which tells the types of values apart.

    >>> digest([("a", 1)]) == sha256(b"\x91\x92\xa1a\x01").hexdigest() != digest([("a", "1")])
    True
    """
    return sha256(_encode(rows)).hexdigest()


def paired(old: Iterator[Group], new: Iterator[Group]) -> Iterator[tuple[Key, list[Row], list[Row]]]:
    """The parts that there were and that there are, both in order of their keys; no rows where one has no such part.

    >>> list(paired(iter([(("a",), [("a", 1)])]), iter([(("b",), [("b", 2)])])))
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


def apart(of: Layout, old: list[Row], new: list[Row]) -> tuple[list[Row], list[Row]]:
    """The keys of rows that are no more, and the rows that are new or other than they were.

    >>> apart(Layout("t", (), 1, 0), [("a", 1), ("b", 2), ("c", 3)], [("b", 2), ("c", 4), ("d", 5)])
    ([('a',)], [('c', 4), ('d', 5)])
    """
    before = {row[: of.key]: row for row in old}
    put = [row for row in new if before.pop(row[: of.key], None) != row]
    return list(before), put
