"""Read models of both kinds, looked into with SQL by other means than our own."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any
from urllib.parse import unquote

Found = list[tuple[Any, ...]]


def queried(location: str, query: str) -> Found:
    """The rows of a query in an SQLite file, or in the schema of a PostgreSQL URL; what it changes is committed."""
    [found] = all_queried(location, [query])
    return found


def all_queried(location: str, queries: Sequence[str]) -> list[Found]:
    """The rows of each query."""
    if "://" not in location:
        with closing(sqlite3.connect(location)) as connection, connection:
            return [connection.execute(query).fetchall() for query in queries]
    import psycopg  # noqa: PLC0415 - an extra

    url, _, schema = location.partition("?schema=")
    with psycopg.connect(url) as server:
        quoted = unquote(schema).replace('"', '""')
        server.execute(f'SET search_path TO "{quoted}"')
        cursors = [server.execute(query) for query in queries]
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]
