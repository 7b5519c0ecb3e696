"""Tests of connections to a server: their number, their time limits, and a server that gives no sign."""

import time
from contextlib import ExitStack, suppress
from threading import Thread

import psycopg
import pytest

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Unavailable, Uncertain
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing.connections import LimitedConnection, SilentError
from forecast_ledger.ledger.storing.database import TimeLimits
from forecast_ledger.ledger.storing.stored_log import StoredLog, rows_at
from forecast_ledger.ledger.storing.writer import Ledger, system_clock
from tests.support.crowds import QUESTION
from tests.support.crowds import forecast as line
from tests.support.servers import PG_CTL, frozen

pytestmark = pytest.mark.skipif(not PG_CTL, reason="needs a PostgreSQL server's pg_ctl, which is not installed here")
SHORT = TimeLimits(connect=2, turn=1, statement=1)


def opened(url: str, name: str, limits: TimeLimits | None = SHORT) -> Ledger:
    """Open a ledger with short time limits, and two connections."""
    return Ledger(StoredLog(rows_at(url, name, limits=limits, connections=2), name), system_clock)


def recorded(ledger: Ledger, command: AnyCommand) -> Receipt:
    """Record a command: at once, unless the machine stands still for longer than the short limits."""
    while True:
        begun = time.monotonic()
        try:
            return ledger.handle(command)
        except (Unavailable, Uncertain):
            if time.monotonic() - begun < 1:
                raise


def test_a_frozen_server_makes_each_call_fail_in_time(server: str) -> None:
    """Writing, reading and opening end by their limits; when it goes on, the next call succeeds."""
    with opened(server, "frozen") as ledger:
        recorded(ledger, QUESTION)
        with frozen(server):
            with pytest.raises(Unavailable, match=r"no answer from the server for 2 s"):
                ledger.handle(line("one", 0))
            with pytest.raises(Unavailable, match="timeout"):  # a new connection
                list(ledger.read())
        assert recorded(ledger, line("one", 0)).first == 2


def test_a_server_that_freezes_at_a_commit_leaves_the_outcome_unknown(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows were sent when it froze: it records them when it goes on, and the command sent again is a duplicate."""
    sync, cold = psycopg.Pipeline.sync, ExitStack()

    def freezing(self: psycopg.Pipeline) -> None:
        cold.enter_context(frozen(server))
        sync(self)

    with opened(server, "frozen commit") as ledger, cold:
        recorded(ledger, QUESTION)
        with monkeypatch.context() as patched:
            patched.setattr(psycopg.Pipeline, "sync", freezing)
            with pytest.raises(Uncertain, match=r"no answer from the server for 1 s"):
                ledger.handle(line("one", 0))
        cold.close()
        assert recorded(ledger, line("one", 0)) == Receipt("one.0", 2, 2, duplicate=True)


def test_a_statement_is_given_up_when_the_server_is_silent(server: str) -> None:
    """Rows that arrive one after the other may take longer than the limit together."""

    def is_answered(asked: str) -> bool:
        with LimitedConnection.connect(server) as connection:
            connection.limit = 0.3
            with suppress(SilentError):
                return len(connection.execute(asked).fetchall()) == 6
            return not connection.closed

    rows = "SELECT repeat('x', 10000), pg_sleep({}) FROM generate_series(1, 6)"
    assert any(is_answered(rows.format(0.1)) for _ in range(5))  # the machine may stand still
    assert not is_answered(rows.format(600))


def test_threads_share_the_connections_of_their_process(server: str) -> None:
    """Eight threads that read use two connections at most, and each gets one."""
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'forecast-ledger'"
    with opened(server, "shared", None) as ledger, psycopg.connect(server, autocommit=True) as owner:
        ledger.handle(QUESTION)
        [(before,)] = owner.execute(count).fetchall()
        read: list[int] = []

        def reading() -> None:
            read.extend(len(ledger._store.read(0)) for _ in range(20))

        threads = [Thread(target=reading) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [(after,)] = owner.execute(count).fetchall()
    assert (read, before, after <= 2) == ([1] * 160, 1, True)
