"""Results of trading accounts: profit, Brier scores of the probabilities that stakes imply, and skill.

Source: Forecaster Arena, Scoring Methodology, "Brier Score" and "Portfolio Returns".
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.trading_rules import Trading, bet_cap
from forecast_ledger.projections.boards.brier import EVEN_ODDS_BRIER
from forecast_ledger.projections.core.column_values import POINTS, round_to_points
from forecast_ledger.projections.core.powers import root_half_even
from forecast_ledger.projections.facts.accounts import FINE_PER_MICRO, Account, AccountKey, Trade
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.trading.mark_prices import Marks

_ENDED = ("closed", "settled")  # positions with a return: of a refunded or voided one, everything is given back
_WORST_POOR = -20
_RETURNS = (  # above how many percent
    (50, "Exceptional"),
    (20, "Excellent"),
    (5, "Good"),
    (-5, "Neutral"),
    (_WORST_POOR, "Poor"),
)


class Stake(NamedTuple):
    """A purchase on a resolved question.

    amount: 1e-6. confidence, paid: the payout of a share; 0..1. brier, market: Brier scores of the confidence and of
    the price.
    """

    trade: Trade
    amount: int
    confidence: Fraction
    paid: Fraction
    brier: Fraction
    market: Fraction


@dataclass(frozen=True)
class TradingRecord:
    """The results of one account. profit: 1e-15. drawdown: 1e-9. turnover: (amounts bought + sold) / starting cash."""

    key: AccountKey
    account: Account
    profit: int
    stakes: list[Stake]
    turnover: Fraction | None
    drawdown: int
    defaulted: int
    state: str

    @cached_property
    def scores(self) -> list[Any]:
        """The number of stakes, mean Brier score, skill against even odds and against the market, and share of wins."""
        return stake_scores(self.stakes)

    @cached_property
    def brier(self) -> Fraction | None:
        """The mean Brier score of the stakes, exact."""
        return mean_of([stake.brier for stake in self.stakes])

    @property
    def sharpe_ratio(self) -> int | None:
        """The Sharpe ratio of the positions that have ended, in 1e-9; see `sharpe_ratio`."""
        holdings = self.account.holdings.values()
        ended = [each for each in holdings if each.status in _ENDED and each.paid]
        return sharpe_ratio([Fraction(each.realised, each.paid) for each in ended])

    @property
    def decided(self) -> int:
        """The number of decisions taken."""
        return self.account.decided


def resolved_stakes(facts: Facts, trades: Iterable[Trade]) -> list[Stake]:
    """Return the purchases among trades whose questions are resolved.

    The confidence c is amount / largest bet; its Brier score is (c - w)², where w is the payout of a share. For a
    binary question this equals (f_yes - o_yes)² for either side.
    Source: Forecaster Arena, Scoring Methodology, "Deriving Confidence from Bet Size" and "Handling YES vs NO Bets".
    """
    return [
        _stake(trade, payouts[trade.event.outcome])
        for trade in trades
        if isinstance(trade.event, events.SharesBought)
        and (payouts := facts.books.payouts_of(trade.event.contest, trade.question))
    ]


def _stake(trade: Trade, paid: Fraction) -> Stake:
    assert isinstance(trade.event, events.SharesBought)  # noqa: S101 - only purchases are stakes
    confidence, price = confidence_of(trade), Fraction(trade.event.price, PROBABILITY)
    return Stake(trade, trade.event.amount, confidence, paid, (confidence - paid) ** 2, (price - paid) ** 2)


def confidence_of(purchase: Trade) -> Fraction:
    """Return the amount of a bet, also of one that was filled in part, over the largest bet.

    Source: Forecaster Arena, Scoring Methodology, "Deriving Confidence from Bet Size".
    """
    event = purchase.event
    assert isinstance(event, events.SharesBought)  # noqa: S101 - only purchases are bets
    return Fraction(event.requested or event.amount, purchase.cap)


def yes_probability(of_outcome: Fraction, outcome: int) -> Fraction:
    """Return the probability of yes that corresponds to a probability of the outcome 0 (yes) or 1 (no).

    >>> yes_probability(Fraction(4, 5), 1)
    Fraction(1, 5)
    """
    return 1 - of_outcome if outcome else of_outcome


def open_value(facts: Facts, marks: Marks, key: AccountKey) -> int:
    """Return the value of an account's open positions at the latest instant in the log, 1e-15."""
    trading, clock = facts.trading(key[0]), facts.books.clock
    return sum(
        holding.shares * max(marks.last(trading, holding.question, holding.outcome, clock)[0], 0)
        for holding in facts.books.accounts[key].holdings.values()
        if holding.is_open()
    )


def payable_units(profit: int, unit: int) -> int:
    """Return a profit, 1e-15, in payable units of `unit` x 1e-6, rounded half-even once: ranks go by it.

    Less than a payable unit is nothing that anybody is paid. What rounding a number of shares leaves over, a millionth
    or less, gives nobody a better rank.

    >>> payable_units(-124_999_870_000_000, 10_000), payable_units(-130_000_000, 10_000)
    (-12, 0)
    """
    return half_even(profit, unit * FINE_PER_MICRO)


def account_state(trading: Trading, account: Account) -> str:
    """Return "debt", "ruined" (no bet is possible and no position is open) or "active"; with overdrafts, active."""
    if trading.overdrafts:
        return "active"
    if account.cash < 0:
        return "debt"
    waits = any(holding.is_open() for holding in account.holdings.values())
    return "active" if waits or bet_cap(trading, account.cash) >= trading.least_bet_micros else "ruined"


def trading_records(facts: Facts, marks: Marks, drawdowns: dict[AccountKey, int]) -> dict[str, list[TradingRecord]]:
    """Return the results of every account, by trading contest."""
    books = facts.books
    trades: dict[AccountKey, list[Trade]] = {key: [] for key in books.accounts}
    for trade in books.trades:
        trades[trade.event.contest, trade.event.participant].append(trade)
    defaulted = Counter((event.contest, event.participant) for _, event, by_default in books.attempts if by_default)
    by_contest: dict[str, list[TradingRecord]] = {}
    for key, account in sorted(books.accounts.items(), key=lambda item: item[0]):
        trading, own_trades = facts.trading(key[0]), trades[key]
        cash = trading.starting_cash_micros
        turned = sum(
            e.proceeds if isinstance(e := trade.event, events.SharesSold) else e.amount for trade in own_trades
        )
        record = TradingRecord(
            key=key,
            account=account,
            profit=(account.cash - account.deposits) * FINE_PER_MICRO + open_value(facts, marks, key),
            stakes=resolved_stakes(facts, own_trades),
            turnover=None if trading.overdrafts and not cash else Fraction(turned, cash or 1),
            drawdown=drawdowns.get(key, 0),  # an account has no tick before its cash is granted
            defaulted=defaulted[key],
            state=account_state(trading, account),
        )
        by_contest.setdefault(key[0], []).append(record)
    return by_contest


def return_words(percent: Fraction) -> str:
    """Return the word for a return in percent of net deposits.

    The document puts 20, 5 and -5 percent in two rows; the worse one applies, as for Brier scores.
    Source: Forecaster Arena, Scoring Methodology, "Appendix B: Reference Values".

    >>> [return_words(Fraction(percent)) for percent in (51, 50, 20, 5, -5, -20, -21)]
    ['Exceptional', 'Excellent', 'Good', 'Neutral', 'Poor', 'Poor', 'Very Poor']
    """
    above = next((words for least, words in _RETURNS if percent > least), None)
    return above or ("Poor" if percent == _WORST_POOR else "Very Poor")


def mean_of(numbers: list[Fraction]) -> Fraction | None:
    """Return the mean, or None for an empty list.

    >>> mean_of([]), mean_of([Fraction(1), Fraction(0)])
    (None, Fraction(1, 2))
    """
    return Fraction(sum(numbers, Fraction(0)), len(numbers)) if numbers else None


def sharpe_ratio(returns: list[Fraction]) -> int | None:
    """Return the mean of some returns over their sample standard deviation, in 1e-9, rounded half-even once.

    None if there are fewer than two, or if all are equal. It is the ratio of bets, not of periods of a year; what the
    cash would have earned elsewhere is not taken off.

    Source: Sharpe (1994), The Journal of Portfolio Management 21(1):49-58, doi:10.3905/jpm.1994.409501.

    >>> sharpe_ratio([Fraction(1, 2), Fraction(-1, 10), Fraction(1, 5)])  # 0.2 / 0.3
    666666667
    """
    n, total = len(returns), sum(returns, Fraction(0))
    spread = n * sum(each**2 for each in returns) - total**2  # n (n - 1) x the sample variance
    if not spread:
        return None
    root = root_half_even(Fraction(total**2 * (n - 1) * POINTS**2, n * spread))
    return root if total > 0 else -root


def skill(brier: Fraction | None, reference: Fraction | None) -> Fraction | None:
    """Return 1 - brier / reference, or None if either is missing or the reference is 0."""
    return None if brier is None or not reference else 1 - Fraction(brier, reference)


def stake_scores(stakes: list[Stake]) -> list[Any]:
    """Return n, the mean Brier score, skill against even odds and against the market, and the share of wins."""
    brier = mean_of([stake.brier for stake in stakes])
    numbers = (
        brier,
        skill(brier, EVEN_ODDS_BRIER),
        skill(brier, mean_of([stake.market for stake in stakes])),
        mean_of([Fraction(stake.paid == 1) for stake in stakes]),
    )
    return [len(stakes), *(None if number is None else round_to_points(number) for number in numbers)]
