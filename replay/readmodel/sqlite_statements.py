"""Tables of SQLite files, the same for exports and read models: the statements that make them, and the rows in them."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

NULL = float("nan")  # SQLite writes NULL for it, and sqlite3 takes a tenth of the time that None takes
_PARAMETERS = 999  # of a statement, the most that every version of SQLite takes


def create_table(
    name: str,
    columns: Sequence[tuple[str, str]],
    key: Sequence[str],
    references: Mapping[str, tuple[str, str]] | None = None,
    *,
    rowid: bool,
) -> str:
    """Return the statement that creates a table of ours; SQLite stores its text, laid out as by sqlite-utils.

    columns: names and types. references: of a column, the table and column that it refers to. rowid: whether rows stay
    in the order in which they are written, as `export` has them; a read model looks them up by their keys alone.

    >>> print(create_table("cash", [("who", "TEXT"), ("n", "INTEGER")], ["who"], {"n": ("log", "n")}, rowid=False))
    CREATE TABLE "cash" (
       "who" TEXT PRIMARY KEY,
       "n" INTEGER REFERENCES "log"("n")
    ) WITHOUT ROWID
    """
    lines = [f'"{column}" {kind}' + " PRIMARY KEY" * ([column] == [*key]) for column, kind in columns]
    for number, (column, _) in enumerate(columns):
        if references and column in references:
            lines[number] += ' REFERENCES "{}"("{}")'.format(*references[column])
    if len(key) > 1:
        lines.append(f"PRIMARY KEY ({', '.join(map(_quoted, key))})")
    return f"CREATE TABLE {_quoted(name)} (\n   " + ",\n   ".join(lines) + "\n)" + " WITHOUT ROWID" * (not rowid)


def create_indexes(name: str, columns: Iterable[str]) -> dict[str, str]:
    """Return the statements that create an index for each of these columns of a table, by the name of the index."""
    names = {f"idx_{name}_{column}": column for column in columns}
    return {
        index: f"CREATE INDEX {_quoted(index)}\n    ON {_quoted(name)} ({_quoted(column)})"
        for index, column in names.items()
    }


def _quoted(name: str) -> str:
    return f'"{name}"'


def insert_values(connection: sqlite3.Connection, table: str, width: int, pages: Iterable[list[Any]]) -> None:
    """Write rows of this width to a table of ours, in their order. pages: the values row after row, NULL for None.

    >>> from contextlib import closing
    >>> with closing(sqlite3.connect(":memory:")) as connection:
    ...     made = connection.execute("CREATE TABLE pairs (a, b)")
    ...     insert_values(connection, "pairs", 2, ([n, n * n, n + 1, NULL] for n in range(0, 1_000, 2)))
    ...     connection.execute("SELECT count(*), count(b), max(b) FROM pairs").fetchall()
    [(1000, 500, 996004)]
    """
    row = f"({', '.join('?' * width)})"
    at_once = max(_PARAMETERS // width, 1)
    statement, rest = f'INSERT INTO "{table}" VALUES ', list[Any]()  # noqa: S608 - a name of ours

    def groups() -> Iterator[list[Any]]:
        for page in pages:
            rest.extend(page)
            yield from _taken(rest, at_once * width)

    connection.executemany(statement + ", ".join([row] * at_once), groups())
    connection.executemany(statement + row, _taken(rest, width))


def _taken(values: list[Any], size: int) -> Iterator[list[Any]]:
    """Take values from the beginning of a list, so many at a time, until fewer are left."""
    end = len(values) // size * size
    for begin in range(0, end, size):
        yield values[begin : begin + size]
    del values[:end]
