"""Payouts: the exact share of each outcome that a resolution pays, and how its event records them."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.distributions import TOLERANCE, check_outcomes
from forecast_ledger.ledger.model.mismatch import share_text

_REMEDY = "give payouts that sum to exactly 1, as decimals with up to nine places or as fractions such as 1/3"


def read_payouts(given: Mapping[str, Any]) -> dict[str, Fraction]:
    """Return the share of each outcome: a decimal, rounded half-even to 1e-9, or a fraction; each over their sum.

    So the order of the outcomes decides nothing. A sum that differs from 1 by more than 1e-6, which is refused later,
    divides nothing. Refuses: out_of_range (a share, or the common denominator of all).

    >>> read_payouts({"a": "0.333333333", "b": "0.333333333", "c": "0.333333333"})["a"]
    Fraction(1, 3)
    """
    shares = {name: _share(number, f"payouts.{name}") for name, number in given.items()}
    total = sum(shares.values(), Fraction(0))
    if not _is_one(total):
        return shares
    shares = {name: Fraction(share, total) for name, share in shares.items()}
    if (unit := _unit(shares.values())) > values.MOST_PAYOUT_UNITS:
        detail = f"their common denominator is {unit:,}, and the largest is {values.MOST_PAYOUT_UNITS:,}"
        raise Refused("out_of_range", "payouts", None, detail, remedy=_REMEDY)
    return shares


def paid_outcomes(shares: Mapping[str, Fraction], outcomes: Sequence[str]) -> list[Fraction]:
    """Return shares in the question's order of outcomes.

    Refuses, first that applies: unknown_outcome, wrong_length, not_summing_to_one.
    """
    row, unit = check_outcomes(shares, outcomes, "payouts"), values.PROBABILITY
    if not _is_one(total := sum(row, Fraction(0))):
        raise Refused("not_summing_to_one", "payouts", values.format_fixed(round(total * unit), unit), remedy=_REMEDY)
    return row


def recorded_payouts(shares: Sequence[Fraction]) -> tuple[int, tuple[int, ...], int]:
    """Return the fields of the event: outcome, payouts, payout_unit.

    They are the outcome that is paid alone, or -1 and the payouts: in 1e-9, with the unit 0, if that is exact.

    >>> recorded_payouts([Fraction(1, 4), Fraction(3, 4)]), recorded_payouts([Fraction(1, 3), Fraction(2, 3)])
    ((-1, (250000000, 750000000), 0), (-1, (1, 2), 3))
    """
    if 1 in shares:
        return shares.index(Fraction(1)), (), 0
    unit = _unit(shares)
    unit = unit if values.PROBABILITY % unit else 0
    return -1, tuple(int(share * (unit or values.PROBABILITY)) for share in shares), unit


def normal_payouts(given: Mapping[str, Any]) -> dict[str, str]:
    """Return payouts as they are recorded: decimals of up to nine places, or fractions. Refuses: out_of_range.

    >>> normal_payouts({"a": 0.25, "b": "3/4"}), normal_payouts({"a": "0.333333333", "b": "0.666666666"})
    ({'a': '0.25', 'b': '0.75'}, {'a': '1/3', 'b': '2/3'})
    """
    return {name: share_text(share) for name, share in read_payouts(given).items()}


def _share(number: Any, field: str) -> Fraction:
    if not values.is_fraction(number):
        return Fraction(values.read_probability(number, field), values.PROBABILITY)
    share = Fraction(number)
    if share > 1:
        raise Refused("out_of_range", field, number, "must lie between 0 and 1")
    return share


def _is_one(total: Fraction) -> bool:
    return abs(total - 1) * values.PROBABILITY <= TOLERANCE


def _unit(shares: Iterable[Fraction]) -> int:
    return lcm(*(share.denominator for share in shares))
