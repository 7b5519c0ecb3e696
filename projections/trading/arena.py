"""What trading has come to: profit, Brier scores of what stakes imply, and skill.

Source: Forecaster Arena, Scoring Methodology, "Brier Score" and "Portfolio Returns".
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.trading_rules import Trading, bet_cap
from forecast_ledger.projections.core.column_values import published
from forecast_ledger.projections.facts.accounts import FINE, Account, Key, Trade
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.trading.mark_prices import Marks

EVEN_ODDS = Fraction(1, 4)  # the Brier score of always saying one half


class Stake(NamedTuple):
    """A purchase of a resolved question: the amount, 1e-6, confidence and what a share paid, 0..1, and the Brier scores
    of both the confidence and the price.
    """

    trade: Trade
    amount: int
    confidence: Fraction
    paid: Fraction
    brier: Fraction
    market: Fraction


@dataclass(frozen=True)
class Record:
    """One account's; profit in 1e-15, deposits, bought and sold in 1e-6; drawdown 1e-9."""

    key: Key
    account: Account
    profit: int
    stakes: list[Stake]
    turnover: Fraction
    drawdown: int
    defaulted: int
    state: str

    @cached_property
    def scores(self) -> list[Any]:
        """How many stakes, their mean Brier score, skill against even odds and the market, and the share of wins."""
        return scores_of(self.stakes)

    @cached_property
    def brier(self) -> Fraction | None:
        """The mean Brier score of the stakes, exact."""
        return mean([stake.brier for stake in self.stakes])

    @property
    def decided(self) -> int:
        """How many decisions are taken."""
        return self.account.decided


def stakes(found: Facts, trades: Iterable[Trade]) -> list[Stake]:
    """The purchases among trades whose questions are resolved.

    The confidence is the amount over the largest bet; its Brier score is (c - w)², w being what a share paid, which for
    a binary question is (f_yes - o_yes)², whichever side was bought.
    Source: Forecaster Arena, Scoring Methodology, "Deriving Confidence from Bet Size" and "Handling YES vs NO Bets".
    """
    return [
        _stake(trade, payouts[trade.event.outcome])
        for trade in trades
        if isinstance(trade.event, events.SharesBought)
        and (payouts := found.books.payouts_of(trade.event.contest, trade.question))
    ]


def _stake(trade: Trade, payout: int) -> Stake:
    assert isinstance(trade.event, events.SharesBought)  # noqa: S101 - no other is a stake
    confidence, paid = Fraction(trade.event.amount, trade.cap), Fraction(payout, PROBABILITY)
    price = Fraction(trade.event.price, PROBABILITY)
    return Stake(trade, trade.event.amount, confidence, paid, (confidence - paid) ** 2, (price - paid) ** 2)


def of_yes(of_side: Fraction, outcome: int) -> Fraction:
    """The probability of yes that one of a side is.

    >>> of_yes(Fraction(4, 5), 1)
    Fraction(1, 5)
    """
    return 1 - of_side if outcome else of_side


def value(found: Facts, marks: Marks, key: Key) -> int:
    """What an account's open positions are worth at the clock of the books, 1e-15."""
    trading, clock = found.trading(key[0]), found.books.clock
    return sum(
        holding.shares * max(marks.last(trading, holding.question, holding.outcome, clock)[0], 0)
        for holding in found.books.accounts[key].holdings.values()
        if holding.is_open()
    )


def state(trading: Trading, account: Account) -> str:
    """Whether an account is in debt, ruined (it can neither bet nor wait for anything) or active."""
    if account.cash < 0:
        return "debt"
    waits = any(holding.is_open() for holding in account.holdings.values())
    return "active" if waits or bet_cap(trading, account.cash) >= trading.least_bet else "ruined"


def records(found: Facts, marks: Marks, drawdowns: dict[Key, int]) -> dict[str, list[Record]]:
    """What everybody has made of each contest in which one trades, by id."""
    books = found.books
    trades: dict[Key, list[Trade]] = {key: [] for key in books.accounts}
    for trade in books.trades:
        trades[trade.event.contest, trade.event.participant].append(trade)
    defaulted = Counter((event.contest, event.participant) for _, event, by_default in books.attempts if by_default)
    made: dict[str, list[Record]] = {}
    for key, account in sorted(books.accounts.items(), key=lambda item: item[0]):
        trading, own = found.trading(key[0]), trades[key]
        turned = sum(e.amount if isinstance(e := each.event, events.SharesBought) else e.proceeds for each in own)
        record = Record(
            key=key,
            account=account,
            profit=(account.cash - account.deposits) * FINE + value(found, marks, key),
            stakes=stakes(found, own),
            turnover=Fraction(turned, trading.starting_cash or 1),
            drawdown=drawdowns.get(key, 0),  # nobody has looked at an account before its cash is granted
            defaulted=defaulted[key],
            state=state(trading, account),
        )
        made.setdefault(key[0], []).append(record)
    return made


def mean(numbers: list[Fraction]) -> Fraction | None:
    """None of none.

    >>> mean([]), mean([Fraction(1), Fraction(0)])
    (None, Fraction(1, 2))
    """
    return Fraction(sum(numbers, Fraction(0)), len(numbers)) if numbers else None


def skill(brier: Fraction | None, reference: Fraction | None) -> Fraction | None:
    """1 - brier / reference; None where there is neither or the reference is 0."""
    return None if brier is None or not reference else 1 - Fraction(brier, reference)


def scores_of(made: list[Stake]) -> list[Any]:
    """n, the mean Brier score, skill against even odds and the market, and the share of wins."""
    brier = mean([stake.brier for stake in made])
    numbers = (
        brier,
        skill(brier, EVEN_ODDS),
        skill(brier, mean([stake.market for stake in made])),
        mean([Fraction(stake.paid == 1) for stake in made]),
    )
    return [len(made), *(None if number is None else published(number) for number in numbers)]
