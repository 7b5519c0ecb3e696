"""Shares whose sum is not quite 1, such as 33%, 33% and 33%: they are divided by it."""

from collections.abc import Sequence
from decimal import Decimal

from forecast_ledger.ledger.core.errors import Refused

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
