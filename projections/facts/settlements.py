"""Settlements of questions, and what they pay for a share of each outcome."""

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple


class Settlement(NamedTuple):
    """A resolution, annulment or revocation; question: code.

    outcome, known_at: -1 and the scheduled close if it is an annulment or revocation. value: exact decimal text of a
    numeric answer. settles: False for a revocation. payouts: what a share of each outcome is paid, if no single
    outcome happened. at: µs, as claimed.
    """

    position: int
    question: int
    outcome: int
    known_at: int
    value: str = ""
    settles: bool = True
    payouts: tuple[Fraction, ...] = ()
    at: int = 0

    @property
    def is_answer(self) -> bool:
        """Whether the question is resolved by it."""
        return self.outcome >= 0 or bool(self.payouts)

    def paid(self, outcomes: int) -> tuple[Fraction, ...]:
        """Return what a share of each of so many outcomes is paid; () if the question is not resolved by it.

        >>> Settlement(6, question=0, outcome=1, known_at=9).paid(2)
        (Fraction(0, 1), Fraction(1, 1))
        """
        return self.payouts or (_paid_alone(self.outcome, outcomes) if self.outcome >= 0 else ())


@lru_cache
def _paid_alone(outcome: int, outcomes: int) -> tuple[Fraction, ...]:
    """Return what shares of outcomes are paid of which one happened."""
    return tuple(Fraction(number == outcome) for number in range(outcomes))
