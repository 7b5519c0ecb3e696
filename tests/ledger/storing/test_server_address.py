"""Tests of the addresses of PostgreSQL databases: as libpq reads them, and what the server itself says."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.crowds import QUESTION
from tests.support.servers import PG_CTL, folder_of

pytestmark = pytest.mark.skipif(not PG_CTL, reason="needs a PostgreSQL server's pg_ctl, which is not installed here")
TABLES = "SELECT schemaname FROM pg_tables WHERE tablename = 'stored_events' ORDER BY 1"


@pytest.fixture
def owner(server: str) -> Iterator[psycopg.Connection]:
    """Return a connection of the owner of the database."""
    with psycopg.connect(server, autocommit=True) as connection:
        yield connection


def socket_of(server: str) -> tuple[Path, str]:
    """Return the folder of the server's socket, and its port."""
    return folder_of(server), server.rpartition(":")[2].partition("/")[0]


def test_a_database_is_reached_as_libpq_reaches_it(server: str) -> None:
    """Over its socket, as the second of two hosts, and with libpq's options: it is always the same ledger."""
    folder, port = socket_of(server)
    urls = (
        server,
        f"postgresql://ledger@/postgres?host={folder}&port={port}",
        f"postgresql://ledger@127.0.0.1:1,127.0.0.1:{port}/postgres?target_session_attrs=read-write&sslmode=prefer",
        f"postgres://127.0.0.1:{port}/?user=ledger&dbname=postgres&options=-cstatement_timeout%3D9s",
    )
    found = []
    for number, url in enumerate(urls):
        with Ledger.open(url, "reached") as ledger:
            assert ledger.handle(QUESTION).duplicate == bool(number)
            found.append(ledger.head().position)
    assert found == [1, 1, 1, 1]


def test_a_schema_has_ledgers_of_its_own(server: str, owner: psycopg.Connection) -> None:
    """It is named by `schema`, or by the search path of libpq's options; one that the role has set changes nothing."""
    owner.execute('CREATE SCHEMA "North {Sea"; CREATE SCHEMA south; ALTER ROLE ledger SET search_path = south')
    try:
        names = ("", "?schema=North%20%7BSea", "?options=-csearch_path%3Dsouth")
        for url in (server + name for name in names):
            with Ledger.open(url, "own") as ledger:
                assert ledger.handle(QUESTION).first == 1
        assert owner.execute(TABLES).fetchall() == [("North {Sea",), ("public",), ("south",)]
    finally:
        owner.execute("ALTER ROLE ledger RESET search_path")
    with pytest.raises(Unavailable, match="no schema nowhere; CREATE SCHEMA makes one"):
        opening(server + "?schema=nowhere")


def opening(url: str) -> None:
    """Open a URL that cannot be opened."""
    StoredLog.open(url, "main").close()


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ("id int", "no column originator_id text"),
        (
            "originator_id text, originator_version int, topic text, state bytea, notification_id bigserial",
            "no column originator_version bigint",
        ),
        (
            "originator_id text, originator_version bigint, topic text, state bytea, notification_id bigserial",
            "no unique key of originator_id and originator_version",
        ),
    ],
)
def test_a_table_of_another_program_is_refused(
    server: str, owner: psycopg.Connection, columns: str, wrong: str
) -> None:
    """Nothing is read from it or written to it; the message says where ledgers can be instead."""
    owner.execute(f"CREATE SCHEMA theirs; CREATE TABLE theirs.stored_events ({columns})")
    try:
        with pytest.raises(Unavailable, match=rf"theirs\.stored_events has {wrong}; .* add \?schema=NAME to the URL"):
            opening(server + "?schema=theirs")
    finally:
        owner.execute("DROP SCHEMA theirs CASCADE")


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("?sslmode=require", "server does not support SSL, but SSL was required"),
        ("?colour=red", 'invalid URI query parameter: "colour"; the parameters are libpq\'s'),
        ("?schema=a&schema=b", "the URL is malformed"),
        ("?host=/run,./run", r"the host \./run is no server; for a socket, give the absolute path of its folder"),
        ("?host=one..two", "has a host that is not a name of the internet"),
        ("?host=ss@127.0.0.1", "the URL is malformed"),
        ("?host=@one", r"the host @one is a socket without a file; name it .* service=NAME"),
        ("?host=@one,@ss@127.0.0.1", "the URL is malformed"),
        ("?host=one,%40ss@127.0.0.1", "the URL is malformed"),
        ("x", 'database "postgresx" does not exist'),
        ("?options=-cdatestyle%3Dx", "invalid value for parameter"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_postgresql(server: str, rest: str, words: str) -> None:
    """The message of the server or of libpq is passed on."""
    with pytest.raises(Unavailable, match=words):
        opening(server + rest)


def test_a_server_without_room_says_so(server: str, owner: psycopg.Connection) -> None:
    """The message is that of the server; nobody is told to look at the user or the database."""
    owner.execute("CREATE ROLE one LOGIN CONNECTION LIMIT 1; GRANT ALL ON SCHEMA public TO one")
    url = server.replace("ledger@", "one@")
    with psycopg.connect(url), pytest.raises(Unavailable, match='too many connections for role "one"'):
        opening(url)
