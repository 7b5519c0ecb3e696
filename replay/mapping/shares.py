"""Shares whose sum is not quite 1, such as 33%, 33% and 33%: they are divided by it."""

from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.mapping.csv_cells import number_of

AS_ONE = Decimal("1e-6")  # the ledger takes probabilities whose sum differs from 1 by at most this
MOST = 1_000  # more than any share, also in percent


def divided_by_sum(shares: Sequence[Decimal], within: Decimal) -> Sequence[Decimal]:
    """Return shares divided by their sum, to 28 digits, or as they are if the ledger takes their sum for 1.

    If one is no share, or all are 0, also as they are: the ledger refuses them.
    Refuses: not_summing_to_one (the sum differs from 1 by more than `within`).

    >>> [*map(str, divided_by_sum([Decimal("0.36"), Decimal("0.54")], Decimal("0.1")))]
    ['0.4', '0.6']
    """
    if any(not 0 <= share <= MOST for share in shares):
        return shares
    total = sum(shares, Decimal(0))
    if abs(total - 1) > within:
        detail = f"the sum differs from 1 by more than {within:f}"
        raise Refused("not_summing_to_one", "probabilities", str(total), detail)
    return shares if not total or abs(total - 1) <= AS_ONE else [share / total for share in shares]


class Normalize(Struct, frozen=True, forbid_unknown_fields=True):
    """Probabilities are divided by their sum, if it is within this of 1."""

    within: Decimal


def within_of(normalize: Normalize | None, fields: Collection[str], path: str) -> Decimal | None:
    """Return how far a sum may be from 1. Refuses: bad_map."""
    if normalize is None:
        return None
    if "probabilities" not in fields:
        raise Refused("bad_map", path, None, "the command has no field `probabilities`")
    within = normalize.within
    if not within.is_finite() or not 0 < within < (1 if "normalized" not in fields else MOST):
        raise Refused("bad_map", f"{path}.within", str(within), "give a number between 0 and 1, such as 0.01")
    return within


def normalized(shares: dict[str, Any], within: Decimal) -> dict[str, Any]:
    """Return shares divided by their sum; as they are if one is no number, which is refused later.

    Refuses: not_summing_to_one.
    """
    try:
        numbers = [number_of(str(share), "") for share in shares.values()]
    except Refused:
        return shares
    return dict(zip(shares, divided_by_sum(numbers, within), strict=True))
