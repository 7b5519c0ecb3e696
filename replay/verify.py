"""Checking a log that somebody else may have written: read-only eyes on every row."""

from collections.abc import Iterator

from ledger import log
from ledger.errors import Corrupt
from ledger.log import Checkpoint, Recorded
from ledger.store import Store
from ledger.values import MONEY, format_fixed
from projections.columns import Facts, Payment
from projections.projection import Projections
from projections.tables import facts
from replay.replay import AsOf, Cut, Watch, opened

CHECKS = {
    "positions": "1, 2, 3 … without a gap, each row in its place",
    "digests": "each row matches its digest and follows the row before",
    "schemas": "each row is an event of a known type, in its canonical bytes",
    "clock": "recorded_at never decreases",
    "contents": "each event fits what came before it: nothing unknown, twice, out of order or out of range",
    "books": "every amount of cash and shares is what the rules make of what came before it, down to the last unit",
    "payouts": "each prize paid is what the contest's sealed board is worth to the winner, and no winner is left out",
}


def verify(location: str, name: str = "main", as_of: AsOf = None, watch: Watch = lambda _: None) -> Checkpoint:
    """Run every check over a log as of a cut; returns where the reading ended.

    Raises, first that applies: Refused (as_of is no instant, or beyond the log), Unavailable, Corrupt.
    """
    cut = Cut(as_of)
    with opened(location, name) as store:
        _check_payouts(facts(cut.pages(_looked_at(store), watch)), cut_short=isinstance(as_of, int))
    return cut.reached()


def _check_payouts(found: Facts, *, cut_short: bool) -> None:
    """Raise Corrupt at the first payment that the sealed board does not say, or after which a winner is left unpaid.

    cut_short: whether the reading may have ended between the payments of one contest, which are recorded together.
    """
    projections = Projections(found)
    wrong: list[tuple[int, str]] = []
    for name, contest in found.contests.items():
        if contest.paid:
            worth = {prize.participant: prize.prize for prize in projections.prizes(name)}
            last = max(payment.position for payment in contest.paid.values())
            whole = not (cut_short and last == found.as_of)
            unpaid = {winner: Payment(last, 0) for winner in worth if whole and winner not in contest.paid}
            for winner, (position, amount) in (contest.paid | unpaid).items():
                if amount != worth.get(winner, 0):
                    paid, board = (format_fixed(each, MONEY, least=2) for each in (amount, worth.get(winner, 0)))
                    said = f"contest {name!r}: {winner!r} is paid {paid} where the sealed board says {board}"
                    wrong.append((position, said))
    if wrong:
        raise Corrupt(*min(wrong, key=lambda each: each[0]))  # of one position, the first: whom the row itself pays


def _looked_at(store: Store) -> Iterator[list[Recorded]]:
    """Each page of the log, every row of it checked against its bytes and the row before."""
    last, recorded_at = log.START, -(2**63)
    for rows in store.pages():
        page = log.unseal(rows, last)
        for row, recorded in zip(rows, page, strict=True):
            if log.seal(recorded)[0] != row:
                raise Corrupt(recorded.position, "the row is not in canonical bytes")
            if recorded.recorded_at < recorded_at:
                raise Corrupt(recorded.position, "recorded_at is earlier than in the row before")
            recorded_at = recorded.recorded_at
        last = Checkpoint(page[-1].position, page[-1].digest)
        yield page
