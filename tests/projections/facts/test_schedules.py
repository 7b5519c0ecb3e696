"""The times of questions in force, as tables of trading read them.

`tests/ledger/deciding/test_schedules.py` has what the times in force mean for scores.
"""

from forecast_ledger.ledger.model.commands import AnyCommand
from tests.support import oracle
from tests.support.given import bet, closing, day, decision, quote, rescheduling, trading_floor

EARLY, AGAIN = closing(at=day(3)), rescheduling(at=day(4), closes_at=day(20))
NINTH = quote("colour", at=day(9), prices={"red": "0.5"})  # the latest instant of the log


def waiting(*told: AnyCommand) -> tuple[str, float | None]:
    """The status of Ada's position on `rain`, of March 2nd, and how many days it has waited for an answer."""
    [row] = oracle.projected(*trading_floor(), decision(bet()), *told, NINTH).table("positions").rows()
    seconds = row["pending_for"]
    return row["status"], None if seconds is None else float(seconds) / 86_400


def test_a_position_waits_for_an_answer_from_the_close_in_force() -> None:
    """On the 9th: 6 days after an early close on the 3rd, 4 after a close set back to the 5th, none if it is open."""
    assert waiting(EARLY) == ("pending", 6)
    assert waiting(EARLY, AGAIN) == ("open", None)
    assert waiting(EARLY, AGAIN, rescheduling(at=day(8), closes_at=day(5))) == ("pending", 4)
    assert waiting(EARLY, rescheduling(at=day(4), opens_at=day(1))) == ("pending", 6)
