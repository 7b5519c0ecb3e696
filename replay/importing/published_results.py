"""Compare results that a platform publishes of trades with those of the ledger's accounts."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import MONEY, PROBABILITY, format_fixed
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.facts.accounts import Holding
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.trading.mark_prices import Marks
from forecast_ledger.replay.importing.source_items import Published

MOST_LISTED = 20
_NEAR = 10  # 1e-6: how far numbers may be apart that are rounded in other places
_FINEST = 10**9  # a price is rounded to 1e-9


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
        what = f"{self.published.who} on {on}: {self.name} {_money(self.said)} is published"
        if self.here is None:
            return f"{what}, and no trade of it is there"
        return f"{what}, {_money(self.here)} is here: {_money(self.here - self.said)} apart"


class _Worth(NamedTuple):
    """The holdings of somebody on some questions, each with its mark, 1e-9."""

    holdings: Sequence[tuple[Holding, int]]

    def sum_of(self, number: Callable[[Holding, int], int]) -> int:
        return sum(number(*each) for each in self.holdings)

    def value(self) -> int:
        """What open positions are worth at their marks, 1e-6."""
        return half_even(self.sum_of(lambda each, mark: each.is_open() * each.shares * mark), PROBABILITY)

    def cost(self) -> int:
        """What open positions cost, 1e-6."""
        return self.sum_of(lambda each, _: each.is_open() * each.cost)

    def realised(self) -> int:
        """The realised profit, 1e-6."""
        return self.sum_of(lambda each, _: each.realised)

    def profit(self) -> int:
        """The realised profit and that of open positions at their marks, 1e-6."""
        return self.realised() + self.value() - self.cost()

    def payout(self) -> int:
        """What shares that were not sold were paid, or are worth at their marks, 1e-6."""
        return self.profit() + self.sum_of(lambda each, _: each.paid - each.received)

    def invested(self) -> int:
        """The cost of the shares that were not sold before the end, 1e-6."""
        return self.sum_of(lambda each, _: each.cost)

    def unrealised(self) -> int:
        """The value of open positions less their cost, 1e-6."""
        return self.value() - self.cost()


# By the name of a published result, what it is here.
RESULTS: dict[str, Callable[[_Worth], int]] = {
    "profit": _Worth.profit,
    "payout": _Worth.payout,
    "invested": _Worth.invested,
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
        return [*listed, *([f"differs: and {more:,} more"] if more > 0 else []), count]


def compare_published(pages: Iterable[Sequence[Recorded]], published: Sequence[Published]) -> Comparison:
    """Return which published results the ledger's accounts reproduce.

    Numbers agree that are at most 0.00001 apart, and what a price rounded to 1e-9 makes of the shares.
    """
    agree, differ = 0, list[Difference]()
    known = facts(pages if published else ())
    marks = Marks(known)
    for each in published:
        worth = _worth(known, marks, each)
        near = _NEAR + worth.sum_of(lambda held, _: abs(held.shares)) // _FINEST
        for name, said in each.results.items():
            here = RESULTS[name](worth) if worth.holdings else None
            if here is not None and abs(here - said) <= near:
                agree += 1
            else:
                differ.append(Difference(each, name, said, here))
    return Comparison(agree, differ)


def _worth(known: Facts, marks: Marks, published: Published) -> _Worth:
    account = known.books.accounts.get((published.contest, published.who))
    if account is None:
        return _Worth(())
    codes = {known.question_codes.codes.get(name) for name in published.questions}
    trading, clock = known.trading(published.contest), known.books.clock
    found = []
    for holding in account.holdings.values():
        outcome = known.questions[holding.question].outcomes[holding.outcome]
        if holding.question in codes and published.outcome in {"", outcome}:
            mark = marks.last(trading, holding.question, holding.outcome, clock)[0]
            found.append((holding, max(mark, 0)))
    return _Worth(found)


def _money(micros: int) -> str:
    return format_fixed(micros, MONEY, least=2)
