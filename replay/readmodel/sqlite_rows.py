"""Rows written to an SQLite table, many with one statement, which takes SQLite less time than as many statements."""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

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
