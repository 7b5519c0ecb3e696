"""Answers: names beyond the ends of a range, numbers that stand for dates, and shares of outcomes.

A date question counts seconds since the epoch, as Metaculus's data downloads do, and records its answer as an instant.
"""

from collections.abc import Iterable
from fractions import Fraction

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.events import NumericRange, QuestionKind

BELOW, ABOVE = "below_lower_bound", "above_upper_bound"  # the answers beyond an open end whose value is not known


def named_outcome(value: str, span: NumericRange) -> int | None:
    """Return the outcome that a name of an answer beyond an end stands for; None if it is no such name.

    >>> span = NumericRange(lower="0", upper="1", bins=4)
    >>> named_outcome("above_upper_bound", span), named_outcome("0.5", span)
    (5, None)
    """
    return {BELOW: 0, ABOVE: max(span.bins, 1) + 1}.get(value)


def exact_share(payout: int, payout_unit: int) -> Fraction:
    """Return a recorded payout as a part of 1. payout_unit: of its event.

    >>> exact_share(250_000_000, 0), exact_share(1, 3)
    (Fraction(1, 4), Fraction(1, 3))
    """
    return Fraction(payout, payout_unit or values.PROBABILITY)


def exact_shares(payouts: Iterable[int], payout_unit: int) -> tuple[Fraction, ...]:
    """Return `exact_share` of each payout of an event."""
    return tuple(exact_share(payout, payout_unit) for payout in payouts)


def number_of_answer(kind: QuestionKind, span: NumericRange | None, value: str) -> str:
    """Return the number, as decimal text, that a recorded answer is on the range of its question; empty if it is none.

    An answer that is beyond an end by name is at that end, as every kernel counts an answer beyond it.
    Raises ValueError: the answer of a date question is not an instant.

    >>> span = NumericRange(lower="0", upper="86400", bins=4, open_upper=True)
    >>> [number_of_answer("date", span, value) for value in ("1970-01-01T12:00:00Z", "above_upper_bound")]
    ['43200', '86400']
    """
    if span is None or not value:
        return ""
    if value in {BELOW, ABOVE}:
        return span.lower if value == BELOW else span.upper
    if kind != "date":
        return value
    try:
        return values.exact_text(values.read_seconds(value, "value"))
    except Refused as refused:
        raise ValueError(refused.code) from None
