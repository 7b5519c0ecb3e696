"""Answers: names beyond the ends of a range, numbers that stand for dates, shares, and whether rules can score them.

A date question counts seconds since the epoch, as Metaculus's data downloads do, and records its answer as an instant.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.ledger.model.events import NumericRange, QuestionKind
from forecast_ledger.ledger.model.rules import ABSOLUTES, RuleSet

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
    return tuple([exact_share(payout, payout_unit) for payout in payouts])


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


_SQUEEZABLE = 1_000  # outcomes of 0.001 each
_FURTHEST = 500_000_000  # of two values whose difference is squared: 64 bits hold the square
_FURTHEST_ROOTED = 40_000_000_000  # of two values whose roots are taken: 64 bits hold twice its root in 1e-12
_NARROWER = "close the range, or give more decimals"
_FROM_ZERO, _ABOVE_ZERO = frozenset({"log_shifted", "sqrt"}), frozenset({"log", "log2", "log10"})  # transforms
_POINT = (500_000_000,)  # 1e-9: the level of a point forecast


def why_unscorable(span: NumericRange | None, rules: RuleSet, outcomes: int = 0) -> str:
    """Return why a rule set cannot score a question with this range or number of named outcomes; empty if it can.

    >>> why_unscorable(None, RuleSet(name="x", cdf_kernel="ln"))
    'its rule set has no kernel for named outcomes'
    """
    if span is None:
        if rules.consensus == "squeezed" and outcomes >= _SQUEEZABLE:
            return f"its rule set's consensus squeezed is limited to fewer than {_SQUEEZABLE} outcomes"
        return "its rule set has no kernel for named outcomes" * (rules.kernel == "none" and rules.trading is None)
    if not span.measures:
        return "its rule set has no cdf_kernel" * (rules.cdf_kernel == "none")
    return _why_unscorable_measures(span, rules)


@lru_cache
def _why_unscorable_measures(span: NumericRange, rules: RuleSet) -> str:
    """Return the first reason, in this order, why quantiles or samples cannot be scored; empty if there is none.

    Many questions of a contest have the same range.
    """
    kernel, transform, is_open = rules.quantile_kernel, rules.transform, span.open_lower or span.open_upper
    lower = None if span.open_lower else Fraction(span.lower)
    one = format_fixed(1, 10**span.decimals)  # unit
    broken = {
        "the squared error needs a range of one sample": kernel == "squared" and span.samples != 1,
        f"the squared error needs values at most {_FURTHEST:,} apart: {_NARROWER}": kernel == "squared"
        and span.furthest > _FURTHEST,
        "the absolute error needs 0.5 as the only level": kernel in ABSOLUTES and span.levels != _POINT,
        "the absolute error needs a range closed at both ends; absolute_clipped does not": kernel == "absolute"
        and is_open,
        f"the transform {transform} needs a range that is closed below, at 0 or above": transform in _FROM_ZERO
        and (lower is None or lower < 0),
        f"the transform {transform} needs a range that is closed below, at {one} or above": transform in _ABOVE_ZERO
        and (lower is None or lower < Fraction(one)),
        f"the transform sqrt needs values at most {_FURTHEST_ROOTED:,} apart: {_NARROWER}": transform == "sqrt"
        and span.furthest > _FURTHEST_ROOTED,
        "its rule set has no quantile_kernel": kernel == "none",
    }
    return next((reason for reason, is_broken in broken.items() if is_broken), "")
