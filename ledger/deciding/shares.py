"""Shares: numbers of a forecast that need not sum to 1, and the rules that make probabilities of them."""

from collections.abc import Callable, Sequence

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.forms import Normalizing


def divided_by_sum(shares: Sequence[int]) -> tuple[int, ...]:
    """Return probabilities, 1e-9, that are proportional to shares and sum to exactly 1.

    Each share is divided by the sum of all and rounded half-even; what is then missing is added to the largest, to the
    first of several that are equal. Refuses: not_summing_to_one (all are 0).

    >>> divided_by_sum([330_000_000] * 3)
    (333333334, 333333333, 333333333)
    """
    total = sum(shares)
    if not total:
        remedy = "give one of them a number above 0"
        raise Refused(
            "not_summing_to_one", "probabilities", "0", "all are 0, so that no sum divides them", remedy=remedy
        )
    row = [half_even(share * PROBABILITY, total) for share in shares]
    row[row.index(max(row))] += PROBABILITY - sum(row)
    return tuple(row)


NORMALIZING: dict[Normalizing, Callable[[Sequence[int]], tuple[int, ...]]] = {"by_sum": divided_by_sum}
