"""Tests of clocks and times of receipt: what is no instant is refused, and rows are read back before they are kept."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from forecast_ledger.ledger.core.errors import Refused, Unavailable
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing.segment_appender import appended
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import given
from tests.support.given import NOW, micros
from tests.support.logs import written
from tests.support.servers import PG_CTL, postgres

NO_INSTANTS = [
    float(NOW), Decimal(NOW), float("nan"), float("inf"), True, str(NOW), None, 2**63, 10**30, -(2**63) - 1,
    NOW * 1_000, FIRST_INSTANT - 1, LAST_INSTANT + 1,
]  # fmt: skip
HISTORY: list[AnyCommand] = [given.opened(), given.forecast(), given.withdrawal()]


def numbered() -> list[AnyCommand]:
    """The history, with ids."""
    return [msgspec.structs.replace(command, id=f"c{place}") for place, command in enumerate(HISTORY)]


def refuses_bad_clocks(open_at: Callable[[Callable[[], Any]], Ledger]) -> None:
    """Check that a clock that returns no instant raises Unavailable, on the first row and later; nothing is recorded.

    The ledger remains usable: the next command is recorded when the clock is right again.
    """
    for place, command in enumerate(HISTORY):
        times: list[Any] = [*NO_INSTANTS, NOW]
        with open_at(lambda: times.pop(0)) as ledger:  # noqa: B023 - it is called before the next one is made
            for _ in NO_INSTANTS:
                with pytest.raises(Unavailable, match="clock returned"):
                    ledger.handle(command, f"c{place}")
                assert ledger.head().position == place
            assert ledger.handle(command, f"c{place}").last == place + 1
            assert [row.recorded_at for page in ledger.read() for row in page] == [NOW] * (place + 1)


def test_a_clock_that_returns_no_instant_is_refused_in_sqlite(tmp_path: Path) -> None:
    """An int of µs, within the years 1 to 9999, and nothing else."""
    refuses_bad_clocks(lambda clock: Ledger.open(tmp_path / "season.db", clock=clock))


@pytest.mark.skipif(not PG_CTL, reason="needs a PostgreSQL server")
def test_a_clock_that_returns_no_instant_is_refused_in_postgresql() -> None:
    """As in SQLite."""
    with postgres() as url:
        refuses_bad_clocks(lambda clock: Ledger.open(url, clock=clock))


def test_a_clock_that_returns_no_instant_is_refused_in_segments(tmp_path: Path) -> None:
    """As in SQLite; the folder has no row then."""
    with appended(tmp_path / "segments", "main", clock=lambda: time.time() * 1e6) as ledger:  # type: ignore[arg-type, return-value]
        with pytest.raises(Unavailable, match="clock returned"):
            ledger.handle(given.opened(), "c0")
        assert ledger.head() == log.START


def test_a_bad_clock_is_refused_when_the_log_is_ahead_of_it(tmp_path: Path) -> None:
    """A value that would not be used, because the last row is later, is no better."""
    written(tmp_path / "season.db", [given.opened()])
    with (
        Ledger.open(tmp_path / "season.db", clock=lambda: 0.5) as ledger,  # type: ignore[arg-type, return-value]
        pytest.raises(Unavailable, match=r"clock returned 0\.5, a float"),
    ):
        ledger.handle(given.forecast(), "c1")


@pytest.mark.parametrize("bad", NO_INSTANTS, ids=repr)
@pytest.mark.parametrize("place", range(3))
def test_a_time_of_receipt_that_is_no_instant_is_refused(bad: Any, place: int) -> None:
    """On the first row, in the middle and on the last one; an atomic batch then records nothing."""
    times = [micros(9), micros(11), micros(13)]
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        outcomes = ledger.handle_many(numbered(), recorded_at=[*times[:place], bad, *times[place + 1 :]], atomic=True)
        assert isinstance(refused := outcomes[place], Refused)
        assert (refused.code, refused.field) in {("malformed", "recorded_at"), ("out_of_range", "recorded_at")}
        assert ledger.head() == log.START
        undated = [msgspec.structs.replace(command, at=None) for command in numbered()]
        refused = ledger.handle_many(undated[place:], recorded_at=[bad, *times[place + 1 :]])[0]
        assert isinstance(refused, Refused)
        ledger.handle_many(undated, recorded_at=times)
        assert [row.recorded_at for page in ledger.read() for row in page] == times


@pytest.mark.parametrize("times", [[], [NOW], [NOW] * 4])
def test_there_is_a_time_of_receipt_for_each_command(times: list[int]) -> None:
    """Too few or too many are wrong usage, and nothing is recorded."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        with pytest.raises(ValueError, match="for 3 commands"):
            ledger.handle_many(numbered(), recorded_at=times)
        assert ledger.head() == log.START


@pytest.mark.parametrize("name", ["seal", "seal_texts"])
def test_a_row_that_cannot_be_read_again_is_not_recorded(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever has made it so: the log stays as it was, and takes the next command."""
    file = tmp_path / "season.db"
    with Ledger.open(file, clock=lambda: NOW) as ledger:
        ledger.handle(given.opened(), "c0")
        forecast = given.forecast() if name == "seal_texts" else given.withdrawal()
        if name == "seal":
            ledger.handle(given.forecast(), "f")
        head, made = ledger.head(), getattr(log, name)

        def spoilt(*arguments: Any) -> Any:
            if name == "seal_texts":
                return (row.replace('"recorded_at":', '"recorded_at":0.') for row in made(*arguments))
            row, digest = made(*arguments)
            return row.replace(b'"recorded_at":', b'"recorded_at":0.'), digest

        with monkeypatch.context() as patch:
            patch.setattr(log, name, spoilt)
            with pytest.raises(Unavailable, match="could not be read again"):
                ledger.handle(forecast, "c1")
        assert ledger.head() == head
        assert ledger.handle(forecast, "c1").last == head.position + 1
    with closing(sqlite3.connect(file)) as rows:
        assert rows.execute("SELECT count(*) FROM stored_events").fetchone() == (head.position + 1,)
    store = StoredLog.open(file, "main", read_only=True)
    assert [len(page) for page in log.unseal_pages(store.pages())] == [head.position + 1]
    store.close()
