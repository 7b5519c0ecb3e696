"""What trading has come to: profit, Brier scores of what stakes imply, skill, and the boards made of them.

Source: seed 002_2cb2458c25e356ad, "Brier Score" and "Portfolio Returns".
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.trading_rules import Trading, cap
from forecast_ledger.projections.core.column_values import Values, from_rows, published
from forecast_ledger.projections.facts.accounts import FINE, Account, Key, Trade
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.trading.mark_prices import Marks

if TYPE_CHECKING:
    from forecast_ledger.projections.catalogue.projection import Projections

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
        return _scores(self.stakes)

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
    Source: seed 002_2cb2458c25e356ad, "Deriving Confidence from Bet Size" and "Handling YES vs NO Bets".
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
    return "active" if waits or cap(trading, account.cash) >= trading.least_bet else "ruined"


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


def bet_brier_values(of: "Projections") -> list[Values]:
    """One row a purchase of a resolved question."""
    rows = []
    for stake in stakes(of.facts, of.facts.books.trades):
        event, question = stake.trade.event, of.facts.questions[stake.trade.question]
        yes = [published(of_yes(each, event.outcome)) for each in (stake.confidence, stake.paid)]
        row = [event.contest, event.participant, stake.trade.position, question.question]
        row += [question.outcomes[event.outcome], published(stake.confidence)]
        row += yes if question.kind == "binary" else [None, None]
        rows.append([*row, *map(published, (stake.paid, stake.brier, stake.market))])
    return from_rows(rows, "id id count id id share share share share points points")


def leaderboard_values(of: "Projections") -> list[Values]:
    """One row an account that is not hidden, contest by contest, the largest profit first; ranks of who has one."""
    rows: list[list[Any]] = []
    for contest in of.traded:
        levels = of.facts.contests[contest].levels
        shown = [record for record in of.records.get(contest, []) if levels.get(record.key[1]) != "hidden"]
        board = sorted(shown, key=lambda record: (-record.profit, record.key))
        ranked = [record for record in board if levels.get(record.key[1]) != "no_rank"]
        places = [-record.profit for record in ranked]
        scored = sorted(brier for record in ranked if (brier := record.brier) is not None)
        for record in board:
            level = levels.get(record.key[1], "")
            by_profit, by_brier = bisect_left(places, -record.profit) + 1, _place(record.brier, scored)
            both = (None, None) if level == "no_rank" else (by_profit, by_brier)
            rows.append([contest, both[0], *_row(record, both[1]), level])
    kinds = (
        "id count id id id money money points count points count points points share points share count count text text"
    )
    return from_rows(rows, kinds)


def _place(brier: Fraction | None, scored: list[Fraction]) -> int | None:
    """The rank of a Brier score among those in order; None of none."""
    return None if brier is None else bisect_left(scored, brier) + 1


def _row(record: Record, by_brier: int | None) -> list[Any]:
    account = record.account
    deposits = account.deposits * FINE
    return [
        record.key[1],
        account.enrolled.family,
        account.enrolled.release,
        half_even(record.profit + deposits, FINE),
        half_even(record.profit, FINE),
        _percent(record.profit, account.deposits),
        *record.scores[:2],
        by_brier,
        *record.scores[2:],
        published(record.turnover),
        record.drawdown,
        record.decided,
        record.defaulted,
        record.state,
    ]


def _scores(made: list[Stake]) -> list[Any]:
    """n, the mean Brier score, skill against even odds and the market, and the share of wins."""
    brier = mean([stake.brier for stake in made])
    numbers = (
        brier,
        skill(brier, EVEN_ODDS),
        skill(brier, mean([stake.market for stake in made])),
        mean([Fraction(stake.paid == 1) for stake in made]),
    )
    return [len(made), *(None if number is None else published(number) for number in numbers)]


def _percent(profit: int, deposits: int) -> int | None:
    """A profit, 1e-15, of deposits, 1e-6; None of nothing."""
    return published(Fraction(100 * profit, deposits * FINE)) if deposits > 0 else None


def overall_values(of: "Projections") -> list[Values]:
    """One row a family and one a release, over all contests."""
    every = [record for contest in of.traded for record in of.records.get(contest, [])]
    rows: list[list[Any]] = []
    for by in ("family", "release"):
        groups: dict[str, list[Record]] = {}
        for record in every:
            groups.setdefault(getattr(record.account.enrolled, by), []).append(record)
        groups.pop("", None)
        profits = sorted(-_profit(group) for group in groups.values())
        rows += [
            [by, name, bisect_left(profits, -_profit(group)) + 1, *_together(group)] for name, group in groups.items()
        ]
    return from_rows(rows, "id id count count count money points count points points points points points share")


def _stake_weighted(made: list[Stake]) -> Fraction:
    """The mean Brier score, each purchase counting as much as was paid for it."""
    return Fraction(sum(stake.amount * stake.brier for stake in made), sum(stake.amount for stake in made))


def _profit(group: list[Record]) -> int:
    return sum(record.profit for record in group)


def _together(group: list[Record]) -> list[Any]:
    """The columns of several accounts; the mean of contest means leaves out contests without a score."""
    pooled = [stake for record in group for stake in record.stakes]
    n, brier, *others = _scores(pooled)
    by_contest: dict[str, list[Fraction]] = {}
    for record in group:
        by_contest.setdefault(record.key[0], []).extend(stake.brier for stake in record.stakes)
    of_means = mean([each for scores in by_contest.values() if (each := mean(scores)) is not None])
    return [
        len(by_contest),
        len(group),
        half_even(_profit(group), FINE),
        _percent(_profit(group), sum(record.account.deposits for record in group)),
        n,
        brier,
        None if of_means is None else published(of_means),
        None if not pooled else published(_stake_weighted(pooled)),
        *others,
    ]
