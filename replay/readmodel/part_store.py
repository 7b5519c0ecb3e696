"""Rows in an SQLite file, part by part, with a digest of each part, so that a foreign change is detected."""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.projections.incremental.deltas import PartKey, TableUpdate
from forecast_ledger.replay.readmodel.layouts import (
    PARTS,
    Group,
    Layout,
    StoredRow,
    layout,
    pair_parts,
    row_changes,
    rows_digest,
    stored_rows,
)
from forecast_ledger.replay.readmodel.sqlite_rows import insert_rows

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
