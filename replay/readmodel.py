"""A read model: the tables of the catalogue in an SQLite file, as published, with the checkpoint that they speak of."""

import os
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlite_utils import Database

from ledger.errors import Conflict, Unavailable
from ledger.log import Checkpoint
from ledger.values import format_instant
from projections.catalogue import BUILT, CATALOGUE
from projections.parts import Part
from projections.schemas import Projection
from projections.table import Table, printed

TRACKING, VERSIONS, PLACES = "_tracking", "_projections", "_places"
ROW = "row"  # place within its contest, of a table whose rows are in an order of their own
_LOCK_TIMEOUT = 30  # s, to wait for whoever else writes to the file
_MOST_ROWS = 200_000  # that are remembered, so that they need not be read again to be compared
Row = tuple[Any, ...]
_Rows = tuple[str, tuple[tuple[str, str], ...]]
Places = dict[tuple[str, str], "array[int]"]  # question and contest, "" for none -> log positions, rising


class Tracking(NamedTuple):
    """What a read model speaks of: which ledger, the digest of its first row, and how far it has been followed."""

    ledger: str
    first: str
    reached: Checkpoint
    recorded_at: int  # µs, of the last event


class Change(NamedTuple):
    """What a read model is to hold from now on: parts of tables; places, where new rows of the log speak of what; and
    which tables are to be made again, from the parts that are here.
    """

    parts: Iterable[Part]
    places: Places
    anew: Sequence[str] = ()


class ReadModel:
    """The tables, which change together with the checkpoint they speak of, or not at all."""

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        """Open a file, or start one. Raises Unavailable: it cannot be opened, or holds something else."""
        self.path = path
        self._remembered: dict[_Rows, Table] = {}
        location = f"file:{quote(os.path.abspath(path))}?mode={'ro' if read_only else 'rwc'}"  # noqa: PTH100 - as the store's
        with self._told():
            self._connection = sqlite3.connect(location, timeout=_LOCK_TIMEOUT, isolation_level=None, uri=True)
            try:
                self._database = Database(self._connection)
                others = set(self._database.table_names())
                if others and not {TRACKING, VERSIONS} <= others:
                    raise Unavailable(f"{path}: not a read model: it has tables of something else")
                if not read_only:
                    self._connection.execute("PRAGMA journal_mode=WAL")  # who reads never waits
                    self._connection.execute("PRAGMA synchronous=NORMAL")  # what power takes is whole refreshes
            except BaseException:
                self._connection.close()
                raise

    def tracking(self) -> Tracking | None:
        """What the tables speak of; None if there are none yet. Raises Unavailable."""
        with self._told():
            if TRACKING not in self._database.table_names():
                return None
            [(ledger, first, position, digest, recorded_at)] = self._connection.execute(
                f"SELECT ledger, first, position, digest, recorded_micros FROM {TRACKING}"  # noqa: S608 - a constant
            )
        return Tracking(ledger, first, Checkpoint(position, digest), recorded_at)

    def outdated(self) -> list[str]:
        """The projections that have no table here, or one of another version. Raises Unavailable."""
        with self._told():
            found = self._versions() if self.placed() else {}
        return [name for name in BUILT if found.get(name) != _shape(name)]

    def places(self, ledger: str, question: str, contest: str) -> tuple[Checkpoint, list[int]]:
        """How far the tables have followed a log, and where up to there it speaks of a question in a contest.

        Raises Unavailable: it cannot be read, or follows another ledger, or none yet.
        """
        with self._told():
            self._connection.execute("BEGIN")  # both are of one moment
            tracking = self.tracking()
            if tracking is None or tracking.ledger != ledger or not self.placed():
                raise Unavailable(f"{self.path}: no read model of {ledger!r}: `forecast-ledger follow` makes one")
            about = "question = ? AND contest IN ('', ?) OR question = '' AND contest = ?"
            query = f"SELECT position FROM {PLACES} WHERE {about} ORDER BY position"  # noqa: S608 - a constant
            rows = self._connection.execute(query, (question, contest, contest)).fetchall()
            self._connection.execute("COMMIT")
        return tracking.reached, [position for (position,) in rows]

    def placed(self) -> bool:
        """Whether it knows where the log speaks of what. Raises Unavailable."""
        with self._told():
            return PLACES in self._database.table_names()

    def write(self, before: Tracking | None, now: Tracking, change: Change) -> int:
        """Replace parts of tables and say what they speak of now, in one transaction; returns how many rows changed.

        Raises, first that applies: Conflict (another runner has written since `before`), Unavailable. Then nothing has
        changed.
        """
        try:
            with self._told(), self._transaction():
                if self.tracking() != before:
                    raise Conflict(f"{self.path}: somebody else keeps this read model up to date; nothing was changed")
                self._make(change.anew)
                changed = sum(self._replace(part) for part in change.parts)
                self._index(change.anew)
                self._place(change.places)
                self._track(now)
        except BaseException:
            self._remembered.clear()
            raise
        return changed

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise Unavailable(f"{self.path}: {error}") from None

    def _versions(self) -> dict[str, str]:
        if VERSIONS not in self._database.table_names():
            return {}
        return dict(self._connection.execute(f"SELECT name, shape FROM {VERSIONS}"))  # noqa: S608 - a constant

    def _make(self, anew: Sequence[str]) -> None:
        """Empty tables for these projections; those of projections that are no more go."""
        known = self._versions()
        for name in {*anew, *known} - (set(BUILT) - set(anew)):
            self._connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        if anew or known.keys() - set(BUILT):
            self._connection.execute(f"DROP TABLE IF EXISTS {VERSIONS}")
            self._database.table(VERSIONS).create({"name": str, "version": int, "shape": str}, pk="name")
            rows = [(name, CATALOGUE[name].version, _shape(name)) for name in BUILT]
            self._connection.executemany(f"INSERT INTO {VERSIONS} VALUES (?, ?, ?)", rows)  # noqa: S608 - a constant
        for name in anew:
            columns: dict[str, type] = {ROW: int} if not CATALOGUE[name].key else {}
            columns |= {each.name: int if each.kind == "count" else str for each in CATALOGUE[name].columns}
            self._database.table(name).create(columns, pk=_key(CATALOGUE[name]))

    def _index(self, anew: Sequence[str]) -> None:
        """Once the rows are there, which is faster."""
        for name in anew:
            there = {column.name for column in CATALOGUE[name].columns}
            for by in sorted({"contest", "question"} & there - {_key(CATALOGUE[name])[0]}):
                self._database.table(name).create_index([by])

    def _place(self, places: Places) -> None:
        self._connection.execute(
            f"CREATE TABLE IF NOT EXISTS {PLACES} (question TEXT, contest TEXT, position INTEGER, "
            "PRIMARY KEY (question, contest, position)) WITHOUT ROWID"
        )
        rows = ((*about, position) for about in sorted(places) for position in places[about])
        self._connection.executemany(f"INSERT INTO {PLACES} VALUES (?, ?, ?)", rows)  # noqa: S608 - a constant

    def _track(self, now: Tracking) -> None:
        columns = {"ledger": str, "first": str, "position": int, "digest": str, "recorded_at": str}
        self._database.table(TRACKING).create(columns | {"recorded_micros": int}, if_not_exists=True)
        self._connection.execute(f"DELETE FROM {TRACKING}")  # noqa: S608 - a constant
        row = (now.ledger, now.first, *now.reached, format_instant(now.recorded_at), now.recorded_at)
        self._connection.execute(f"INSERT INTO {TRACKING} VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608 - a constant

    def _replace(self, part: Part) -> int:
        """Bring the rows of a part to what they should be, touching none that is right; returns how many were not."""
        table, rows = part.table, (part.table.name, part.ids)
        before = None if part.is_change else self._remembered.pop(rows, None)
        if before is None and part.before is not None:
            before = part.before()
        if before is not None:
            gone, come = _apart(*_middles(before, table))
            added = _printed(_kinds(table), come)
            removed = set(_printed([_kinds(table)[column] for column in _key_columns(table)], _keys(table, gone)))
        elif stored := self._stored(part):
            gone, added = _apart(stored, list(_numbered(table, Table.printed)))
            removed = set(_keys(table, gone))
        else:
            return self._change(table, set(), _numbered(table, Table.printed))
        if not part.is_change:
            if sum(map(len, self._remembered.values())) + len(table) > _MOST_ROWS:
                self._remembered.clear()
            self._remembered[rows] = table
        return self._change(table, removed, added)

    def _stored(self, part: Part) -> list[Row]:
        name = part.table.name
        where = " AND ".join(f'"{column}" = ?' for column, _ in part.ids) or "1"
        order = ", ".join(f'"{column}"' for column in _key(CATALOGUE[name]))
        query = f'SELECT * FROM "{name}" WHERE {where} ORDER BY {order}'  # noqa: S608 - names of the catalogue
        return self._connection.execute(query, [label for _, label in part.ids]).fetchall()

    def _change(self, table: Table, removed: set[Row], added: Iterable[Row]) -> int:
        """Take out the rows of these keys and put rows in; returns how many keys that concerns."""
        values = f"""INTO "{table.name}" VALUES ({", ".join("?" * len(_names(table)))})"""
        if not removed:
            return max(self._connection.executemany(f"INSERT {values}", added).rowcount, 0)
        new = list(added)
        keys = set(_keys(table, new))
        where = " AND ".join(f'"{column}" = ?' for column in _key(CATALOGUE[table.name]))
        delete = f'DELETE FROM "{table.name}" WHERE {where}'  # noqa: S608 - names of the catalogue
        self._connection.executemany(delete, removed - keys)
        self._connection.executemany(f"REPLACE {values}", new)
        return len(removed | keys)


def _shape(name: str) -> str:
    """What a table here looks like: of another version or other columns, it has to be made again."""
    projection = CATALOGUE[name]
    columns = " ".join(f"{column.name}:{column.kind}" for column in projection.columns)
    return f"v{projection.version} ({', '.join(_key(projection))}) {columns}"


def _key(projection: Projection) -> tuple[str, ...]:
    return projection.key or ("contest", ROW)


def _names(table: Table) -> list[str]:
    return [ROW] * (not CATALOGUE[table.name].key) + [column.name for column in table.columns]


def _kinds(table: Table) -> list[str]:
    return ["count"] * (not CATALOGUE[table.name].key) + [column.kind for column in table.columns]


def _key_columns(table: Table) -> list[int]:
    """Where in a row its key is."""
    names = _names(table)
    return [names.index(column) for column in _key(CATALOGUE[table.name])]


def _keys(table: Table, rows: list[Row]) -> list[Row]:
    columns = _key_columns(table)
    return [tuple(row[column] for column in columns) for row in rows]


def _numbered(table: Table, rows_of: Callable[[Table], Iterator[Row]]) -> Iterator[Row]:
    """The rows, numbered within their contest if that is their order. rows_of: as they are inside, or as published."""
    if CATALOGUE[table.name].key:
        return rows_of(table)
    return (
        (number, *row) for _, rows in sorted(table.by("contest").items()) for number, row in enumerate(rows_of(rows), 1)
    )


def _printed(kinds: list[str], rows: list[Row]) -> list[Row]:
    """Rows as published, of rows as they are inside, with columns of these kinds."""
    columns = zip(kinds, zip(*rows, strict=True), strict=True) if rows else []
    return list(zip(*(printed(values, kind) for kind, values in columns), strict=True))


def _middles(before: Table, after: Table) -> tuple[list[Row], list[Row]]:
    """The rows of two tables between those that are the same at the beginning and at the end."""
    least = min(len(before), len(after))
    if not CATALOGUE[after.name].key and len(before) != len(after):
        least = 0  # the numbers of the rows differ, too
    first = before.common(after, least)
    last = before.common(after, least - first, backwards=True)
    old, new = (list(islice(_numbered(each, Table.plain), first, len(each) - last)) for each in (before, after))
    return old, new


def _apart(old: list[Row], new: list[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that only the old have and those that only the new have, each once.

    >>> _apart([(1, "a"), (2, "b"), (3, "c")], [(1, "a"), (2, "x"), (3, "c"), (4, "d")])
    ([(2, 'b')], [(2, 'x'), (4, 'd')])
    """
    if not old or not new:
        return old, new
    before, after = set(old), set(new)
    return [row for row in old if row not in after], [row for row in new if row not in before]
