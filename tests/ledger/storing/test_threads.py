"""Threads end wherever they are shut down."""

import gc
from collections.abc import Iterator
from concurrent.futures import Future
from threading import Event
from typing import Any

import pytest

from forecast_ledger.ledger.storing.threads import Threads
from tests.support.waiting import PATIENCE


def test_a_generator_that_is_collected_in_one_of_its_threads_ends_them() -> None:
    """Python would print that a thread cannot wait for itself, and the other tasks would be done."""
    dropped, ended, tasks = Event(), Event(), list[Future[Any]]()

    def collect() -> None:
        assert dropped.wait(PATIENCE)
        gc.collect()
        ended.set()

    def working() -> Iterator[None]:
        threads = Threads(1)
        try:
            tasks.extend([threads.submit(collect), threads.submit(pytest.fail)])
            yield
        finally:
            threads.shutdown(cancel_futures=True)

    cycle: list[Any] = [working()]
    next(cycle[0])
    cycle.append(cycle)
    del cycle
    dropped.set()
    assert ended.wait(PATIENCE)
    assert (tasks[0].result(PATIENCE), tasks[1].cancelled()) == (None, True)


def test_whoever_else_shuts_them_down_waits_for_them() -> None:
    """What they use may be closed then."""
    begun, going_on, done = Event(), Event(), list[int]()

    def work() -> None:
        begun.set()
        assert going_on.wait(PATIENCE)
        done.append(1)

    with Threads(1) as threads:
        threads.submit(work)
        assert begun.wait(PATIENCE)
        going_on.set()
    assert done == [1]
