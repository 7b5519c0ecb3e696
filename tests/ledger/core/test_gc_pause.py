"""Tests of the pause of the garbage collector."""

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest
from msgspec import structs

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import NOW, opened
from tests.support.waiting import PATIENCE


def test_the_collector_is_off_until_the_outer_pause_ends() -> None:
    """A pause in it does not end it."""
    seen = [gc.isenabled()]
    with gc_pause.paused():
        with gc_pause.paused():
            seen.append(gc.isenabled())
        seen.append(gc.isenabled())
    assert [*seen, gc.isenabled()] == [True, False, False, True]


def test_a_single_command_is_decided_in_a_pause() -> None:
    """The clock is read as it is decided; a refusal ends the pause, too."""
    seen = list[bool]()

    def clock() -> int:
        seen.append(gc.isenabled())
        return NOW

    with Ledger.open(":memory:", clock=clock) as ledger:
        ledger.handle(opened("rain"), command_id="c1")
        with pytest.raises(Refused):
            ledger.handle(opened("rain"), command_id="c2")
    assert (seen, gc.isenabled()) == ([False, False], True)


@pytest.mark.parametrize("handle", [Ledger.handle, lambda ledger, command: ledger.handle_many([command])])
def test_the_collector_is_on_while_a_command_waits_for_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handle: Callable[[Ledger, object], object]
) -> None:
    """Whether a thread or another writer has the turn: other threads of the program make garbage meanwhile."""
    path, seen = tmp_path / "a.db", list[bool]()
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        ledger.handle(opened("rain"), command_id="c1")
        alone = ledger._alone

        def waiting(act: Callable[[], object]) -> object:
            seen.append(gc.isenabled())
            return alone(act)

        def sleep(_: float) -> None:
            seen.append(gc.isenabled())
            turn.__exit__(None, None, None)

        monkeypatch.setattr(ledger, "_alone", waiting)
        monkeypatch.setattr(time, "sleep", sleep)
        turn = other._store.turn()
        turn.__enter__()
        handle(ledger, structs.replace(opened("snow"), id="c2"))
        assert ledger.head().position == 2
    assert (len(seen) >= 2, {*seen}) == (True, {True})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_child_that_is_forked_in_a_pause_of_another_thread_has_the_collector_on() -> None:
    """The thread that would end the pause is not in the child."""
    began, forked = Event(), Event()

    def pause() -> None:
        with gc_pause.paused():
            began.set()
            forked.wait(PATIENCE)

    thread = Thread(target=pause)
    thread.start()
    assert began.wait(PATIENCE)
    assert not gc.isenabled()
    child = os.fork()
    if not child:
        os._exit(gc.isenabled())
    forked.set()
    thread.join()
    assert (os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), gc.isenabled()) == (1, True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_child_of_a_program_that_has_disabled_the_collector_has_it_off() -> None:
    """A pause has not disabled it."""
    gc.disable()
    try:
        with gc_pause.paused():
            child = os.fork()
            if not child:
                os._exit(gc.isenabled())
    finally:
        gc.enable()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
