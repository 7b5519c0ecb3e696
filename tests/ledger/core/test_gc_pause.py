"""Tests of the pause of the garbage collector."""

import gc

import pytest

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import NOW, opened


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
