"""Paying a contest's winners what its sealed board says."""

from ledger import Ledger, Receipt, Refused
from ledger.commands import PayPrizes
from ledger.values import MONEY, Instant, Number, format_fixed
from projections.projection import Projections
from projections.tables import facts


def pay(ledger: Ledger, contest: str, at: Instant) -> Receipt | None:
    """Record the prizes of a finalized contest, once; None if they are recorded already, or by another writer just now.

    Raises, first that applies: Refused (unknown_contest, contest_not_finalized, payouts_miss_pool: nobody wins
    anything), and what `Ledger.handle` raises.
    """
    found = facts(ledger.read())
    if contest not in found.contests:
        there = ", ".join(sorted(found.contests)) or "none"
        raise Refused("unknown_contest", "contest", contest, f"no such contest here; there are: {there}")
    sealed = found.contests[contest].sealed
    if sealed is None:
        raise Refused("contest_not_finalized", "contest", contest)
    if found.contests[contest].paid:
        return None
    prizes = Projections(found).prizes(contest)
    payouts: dict[str, Number] = {
        prize.participant: format_fixed(prize.prize, MONEY) for prize in prizes if prize.prize
    }
    if not payouts:
        raise Refused("payouts_miss_pool", "contest", contest, "its sealed board gives nobody a prize")
    try:
        receipt = ledger.handle(PayPrizes(at=at, contest=contest, payouts=payouts), f"pay {sealed.digest}")
    except Refused:
        if facts(ledger.read()).contests[contest].paid:  # another writer was faster
            return None
        raise
    return None if receipt.duplicate else receipt
