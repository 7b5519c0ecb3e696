"""Compare results that a platform publishes of trades with those of the ledger's accounts."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.book import share_name, share_payout
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.mismatch import money_text
from forecast_ledger.projections.facts.accounts import Holding, Movement
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.trading.mark_prices import Marks
from forecast_ledger.replay.importing.source_items import Published

MOST_LISTED = 20
_NEAR = 10  # 1e-6: how far numbers may be apart that are rounded in other places
_FINEST = 10**9  # a price is rounded to 1e-9
_KEPT = ("open", "settled", "refunded")  # positions with shares that were not sold


class Difference(NamedTuple):
    """A published result that the ledger does not reproduce, 1e-6; here is None if it has no such account."""

    published: Published
    name: str
    said: int
    here: int | None

    def line(self) -> str:
        """Return it in words."""
        on = ", ".join(filter(None, (self.published.questions[0], self.published.outcome)))
        others = len(self.published.questions) - 1
        on += f" and {others} more" * bool(others)
        what = f"{self.published.who} on {on}: {self.name} {money_text(self.said)} is published"
        if self.here is None:
            return f"{what}, and no trade of it is there"
        return f"{what}, {money_text(self.here)} is here: {money_text(self.here - self.said)} apart"


class _Worth(NamedTuple):
    """The holdings of somebody on some questions, each with what its shares are worth, or were paid, 1e-6.

    movements: those of their trades.
    """

    holdings: Sequence[tuple[Holding, int]]
    movements: Sequence[Movement] = ()

    def sum_of(self, number: Callable[[Holding, int], int]) -> int:
        return sum(number(*each) for each in self.holdings)

    def profit(self) -> int:
        """The realised profit and that of open positions at their marks, 1e-6."""
        return self.sum_of(lambda each, worth: each.realised + each.is_open() * (worth - each.cost))

    def of_unsold(self) -> int:
        """Return what the shares that were not sold are worth, or were paid, less their cost, 1e-6."""
        return self.sum_of(lambda each, worth: (each.status in _KEPT) * (worth - each.cost))

    def of_sold(self) -> int:
        """The profit of the shares that were sold, 1e-6."""
        return self.profit() - self.of_unsold()

    def size(self) -> int:
        """The shares that were not sold, 1e-6."""
        return self.sum_of(lambda each, _: (each.status in _KEPT) * each.shares)

    def payout(self) -> int:
        """What shares that were not sold were paid, or are worth at their marks, 1e-6."""
        return self.profit() + self.sum_of(lambda each, _: each.paid - each.received)

    def revenue(self) -> int:
        """What the shares that were not sold are worth, or were paid, 1e-6."""
        return self.sum_of(lambda each, worth: (each.status in _KEPT) * worth)

    def cost_of_trades(self) -> int:
        """The cost of all trades, 1e-6, if whoever sells a share of yes buys one of no, at 1 less the price."""
        bought = sum(-each.cash - each.fee for each in self.movements if each.kind == "bought")
        return bought + sum(-each.shares - each.cash - each.fee for each in self.movements if each.kind == "sold")

    def all_fees(self) -> int:
        """The fees of all trades, 1e-6."""
        return sum(each.fee for each in self.movements)

    def invested(self) -> int:
        """The cost of the shares that were not sold before the end, 1e-6."""
        return self.sum_of(lambda each, _: each.cost)


# By the name of a published result, what it is here.
RESULTS: dict[str, Callable[[_Worth], int]] = {
    "profit": _Worth.profit,
    "payout": _Worth.payout,
    "invested": _Worth.invested,
    "cashPnl": _Worth.of_unsold,
    "realizedPnl": _Worth.of_sold,
    "closed realizedPnl": _Worth.profit,
    "size": _Worth.size,
    "revenue": _Worth.revenue,
    "total_cost": _Worth.cost_of_trades,
    "fee_cost": _Worth.all_fees,
}


class Comparison(NamedTuple):
    """How many published results the ledger reproduces, and the others."""

    agree: int
    differences: Sequence[Difference]

    def lines(self) -> list[str]:
        """Return it in words; nothing if nothing is published."""
        if not self.agree and not self.differences:
            return []
        more = len(self.differences) - MOST_LISTED
        listed = [f"differs: {each.line()}" for each in self.differences[:MOST_LISTED]]
        count = f"published results: {self.agree:,} agree, {len(self.differences):,} differ"
        without = sum(each.here is None for each in self.differences)
        count += f"; {without:,} of these come from trades that are not there: save them in PATH, too" * bool(without)
        return [*listed, *([f"differs: and {more:,} more"] if more > 0 else []), count]


def compare_published(pages: Iterable[Sequence[Recorded]], published: Sequence[Published]) -> Comparison:
    """Return which published results the ledger's accounts reproduce.

    Numbers agree that are at most 0.00001 apart, and what a price rounded to 1e-9 makes of the shares.
    """
    agree, differ = 0, list[Difference]()
    known = facts(pages if published else ())
    marks = Marks(known)
    for result in published:
        worth = _worth(known, marks, result)
        near = _NEAR + result.near + worth.sum_of(lambda held, _: abs(held.shares)) // _FINEST
        for name, said in result.results.items():
            here = RESULTS[name](worth) if worth.holdings else None
            if here is not None and abs(here - said) <= near:
                agree += 1
            else:
                differ.append(Difference(result, name, said, here))
    return Comparison(agree, differ)


def _worth(known: Facts, marks: Marks, published: Published) -> _Worth:
    account = known.books.accounts.get((published.contest, published.who))
    if account is None:
        return _Worth(())
    codes = {known.question_codes.codes.get(name) for name in published.questions}
    trading, clock = known.trading(published.contest), known.books.clock
    holdings = []
    for holding in account.holdings.values():
        name = share_name(holding.share, known.questions[holding.question].outcomes)
        if holding.question in codes and published.outcome in {"", name}:
            paid = known.payouts_of(published.contest, holding.question)
            price = share_payout(holding.share, paid) * PROBABILITY if paid else published.mark
            if price is None:
                price = max(marks.last(trading, holding.question, holding.share, clock)[0], 0)
            refunded = holding.status == "refunded"
            worth = holding.cost if refunded else round(holding.shares * Fraction(price) / PROBABILITY)
            holdings.append((holding, worth))
    key = published.contest, published.who
    return _Worth(holdings, [each for each in known.books.movements if each.key == key and each.question in codes])
