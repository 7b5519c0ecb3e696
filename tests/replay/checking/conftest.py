"""Logs of any length, checked in parts of seven rows, in this process."""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partialmethod
from typing import Any

import pytest

from forecast_ledger.ledger.auditing import taken_forecasts
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.replay.audit import verify
from forecast_ledger.replay.checking import row_parts, side_by_side
from forecast_ledger.replay.checking.side_by_side import Beginning, verified_beginning


class Alone:
    """In place of a pool: its tasks are done at once, in this process."""

    def __init__(self, _: int, begin: Callable[[Any], None], given: Any, **_how: bool) -> None:
        begin(given)

    def submit(self, task: Callable[..., Any], *given: Any) -> "Future[Any]":
        """Do a task."""
        done = Future[Any]()
        done.set_result(task(*given))
        return done

    def close(self) -> None:
        """Close what a process would have open."""
        side_by_side._reader.pop().store.close()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Beginning | None]:
    """The beginnings verified side by side, of logs of any length, in parts of seven rows, read three at a time.

    None if in doubt.
    """
    found: list[Beginning | None] = []

    def noted(*log: Any, side_by_side: bool, **how: Any) -> Beginning | None:
        if not side_by_side:  # as the expected verdict is found: row after row
            return None
        found.append(verified_beginning(*log, **how))
        return found[-1]

    monkeypatch.setattr(verify, "verified_beginning", noted)
    monkeypatch.setattr(side_by_side, "start", Alone)
    monkeypatch.setattr(side_by_side, "processors", lambda: 2)
    monkeypatch.setattr(side_by_side, "MANY", 1)
    monkeypatch.setattr(side_by_side, "LEAST", 1)
    monkeypatch.setattr(side_by_side, "PART", 7)
    monkeypatch.setattr(side_by_side, "_TOGETHER", 2)
    monkeypatch.setattr(StoredLog, "pages_with_types", partialmethod(StoredLog.pages_with_types, 3))
    monkeypatch.setattr(row_parts, "_TOGETHER", 4)
    monkeypatch.setattr(taken_forecasts, "_FEW", 2)  # so that forecasts are taken row by row, and as columns
    monkeypatch.setattr(taken_forecasts, "_OF_EACH", 1)
    return found
