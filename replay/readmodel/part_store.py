"""Rows in an SQLite file, part by part, with a digest of each part: a part that something else changed is found."""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.projections.incremental.deltas import Key, Parts
from forecast_ledger.replay.readmodel.layouts import PARTS, Group, Layout, Row, apart, digest, layout, paired, printed

REMEDY = "delete the file with its -wal and -shm files, and follow the log again"
_AT_ONCE = 10_000  # rows that are written together


class Stored:
    """The tables of a read model, through a connection to its file. Whoever calls begins and ends the transactions."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path

    def check_file(self) -> None:
        """Raises Unavailable if SQLite finds that tables and indexes do not fit together."""
        [(said, *_)] = self._connection.execute("PRAGMA integrity_check(1)")
        if said != "ok":
            raise Unavailable(f"{self._path}: the file is damaged, SQLite says: {said}; {REMEDY}")

    def made(self) -> dict[str, str]:
        """The statements that made what there is, by name."""
        return dict(self._connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))

    def has(self, *names: str) -> bool:
        """Whether these tables exist and are made as today."""
        return not self.lacking(names)

    def lacking(self, names: Iterable[str]) -> list[str]:
        """The tables among these that do not exist, or are not made as today, or lack an index."""
        made = self.made().items()
        return [name for name in names if not {name: layout(name).made_by(), **layout(name).indexes()}.items() <= made]

    def drop(self, name: str) -> None:
        """Remove a table, its rows and the digests of its parts."""
        self._connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        if name != PARTS:
            self._connection.execute(f"DELETE FROM {PARTS} WHERE name = ?", [name])  # noqa: S608 - a constant

    def make(self, name: str) -> None:
        """Make a table without rows; one of this name is removed first."""
        self.drop(name)
        self._connection.execute(layout(name).made_by())

    def index(self, name: str) -> None:
        """Make a table's indexes, which is faster after its rows are written."""
        for said in layout(name).indexes().values():
            self._connection.execute(said)

    def digests(self, name: str, key: Key = ()) -> dict[Key, str]:
        """The digests of what was written in the parts whose keys begin so."""
        query = f"SELECT first, second, digest FROM {PARTS} WHERE name = ?"  # noqa: S608 - a constant
        query += "".join(f" AND {column} = ?" for column, _ in zip(("first", "second"), key, strict=False))
        width = layout(name).part
        return {tuple(both[:width]): said for *both, said in self._connection.execute(query, (name, *key))}

    def divided(self, name: str) -> set[Key]:
        """The parts that have rows."""
        of = layout(name)
        columns = ", ".join(f'"{column}"' for column in of.key_names()[: of.part]) or "NULL"
        query = f'SELECT DISTINCT {columns} FROM "{name}"'  # noqa: S608 - names of layouts
        return {row[: of.part] for row in self._connection.execute(query)}

    def rows(self, name: str, key: Key = ()) -> list[Row]:
        """The rows of the parts whose keys begin so, in order; their digests are not compared."""
        return self._rows(layout(name), key).fetchall()

    def parts(self, name: str, key: Key = ()) -> Iterator[Group]:
        """The parts whose keys begin so, in order. Raises Unavailable at the first that does not match its digest."""
        of = layout(name)
        kept = self.digests(name, key)
        for part, rows in of.grouped(self._rows(of, key)):
            if kept.pop(part, None) != digest(rows):
                raise self._differs(name, part)
            yield part, rows
        for part in kept:
            raise self._differs(name, part)

    def put(self, name: str, key: Key, rows: list[Row]) -> int:
        """Write the rows of a part that differ from these; returns how many. Raises what `parts` raises."""
        return self._exchange(layout(name), self.parts(name, key), iter([(key, sorted(rows))] if rows else []))

    def replace(self, parts: Parts) -> int:
        """Do the same with parts of a projection's table."""
        of = layout(parts.table.name)
        before = chain.from_iterable(self.parts(of.name, key) for key in parts.keys)
        now = ((key, sorted(rows)) for key, rows in of.grouped(printed(parts.table)))  # as text, as SQLite has them
        return self._exchange(of, before, now)

    def _rows(self, of: Layout, key: Key) -> sqlite3.Cursor:
        columns, order = (
            ", ".join(f'"{name}"' for name in names) for names in ([n for n, _ in of.columns], of.key_names())
        )
        where = " AND ".join(f'"{name}" = ?' for name, _ in zip(of.key_names(), key, strict=False)) or "1"
        query = f'SELECT {columns} FROM "{of.name}" WHERE {where} ORDER BY {order}'  # noqa: S608 - names of layouts
        return self._connection.execute(query, key)

    def _exchange(self, of: Layout, before: Iterator[Group], now: Iterator[Group]) -> int:
        """Replace parts, and write only the rows that differ."""
        changed, gone, come, digests = 0, list[Row](), list[Row](), list[Row]()
        for key, old, new in paired(before, now):
            if old != new:
                removed, put = apart(of, old, new)
                gone += removed
                come += put
                digests.append((of.name, *(*key, "", "")[:2], digest(new) if new else None))
            if len(gone) + len(come) >= _AT_ONCE:  # all of them lie before those that are yet to be read
                changed += self._written(of, gone, come, digests)
                gone, come, digests = [], [], []
        return changed + self._written(of, gone, come, digests)

    def _written(self, of: Layout, gone: list[Row], come: list[Row], digests: list[Row]) -> int:
        self._remove(of, gone)
        self._add(of, come)
        self._remove(layout(PARTS), [row[:3] for row in digests if row[3] is None])
        self._add(layout(PARTS), [row for row in digests if row[3] is not None])
        return len(gone) + len(come)

    def _remove(self, of: Layout, keys: Iterable[Row]) -> None:
        where = " AND ".join(f'"{name}" = ?' for name in of.key_names())
        self._connection.executemany(f'DELETE FROM "{of.name}" WHERE {where}', keys)  # noqa: S608 - names of layouts

    def _add(self, of: Layout, rows: Iterable[Row]) -> None:
        values = ", ".join("?" * len(of.columns))
        self._connection.executemany(f'REPLACE INTO "{of.name}" VALUES ({values})', rows)  # noqa: S608 - likewise

    def _differs(self, name: str, key: Key) -> Unavailable:
        which = " of " + ", ".join(map(repr, key)) if key else ""
        said = f"the rows{which} in {name} are not those that were written: changed by hand, or damaged"
        return Unavailable(f"{self._path}: {said}; {REMEDY}")
