"""Results of trading accounts: profit, Brier scores of the probabilities that stakes imply, and skill.

Source: Forecaster Arena, Scoring Methodology, "Brier Score" and "Portfolio Returns".
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import NEVER, PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.book import share_of, share_payout
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import Clock
from forecast_ledger.ledger.model.trading_rules import Trading, bet_cap
from forecast_ledger.projections.boards.brier import EVEN_ODDS_BRIER
from forecast_ledger.projections.core.columns import POINTS, round_to_points
from forecast_ledger.projections.core.powers import root_half_even
from forecast_ledger.projections.facts.accounts import FINE_PER_MICRO, Account, AccountKey, Trade
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.facts.quotes import NO_PRICE
from forecast_ledger.projections.scores.sampling import at_one_instant
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import Questions, scored_questions
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
        _stake(trade, share_payout(share_of(trade.event), payouts))
        for trade in trades
        if isinstance(trade.event, events.SharesBought)
        and (payouts := facts.payouts_of(trade.event.contest, trade.question))
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
        holding.shares * max(marks.last(trading, holding.question, holding.share, clock)[0], 0)
        for holding in facts.books.accounts[key].holdings.values()
        if holding.is_open()
    )


def payable_units(profit: int, unit: int) -> int:
    """Return a profit, 1e-15, in payable units of `unit` x 1e-6, rounded half-even once: ranks go by it.

    Nobody is paid less than a payable unit. The remainder of rounding a number of shares, a millionth or less, gives
    nobody a better rank.

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
        trading, account_trades = facts.trading(key[0]), trades[key]
        cash = trading.starting_cash_micros
        turned = sum(
            e.proceeds if isinstance(e := trade.event, events.SharesSold) else e.amount for trade in account_trades
        )
        record = TradingRecord(
            key=key,
            account=account,
            profit=(account.cash - account.deposits) * FINE_PER_MICRO + open_value(facts, marks, key),
            stakes=resolved_stakes(facts, account_trades),
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


# --- What forecasts would have earned at the prices of their time: returns that they imply, and Brier scores of both.
#
# Sources: Yang et al. (2026), the average return of Prophet Arena, with a stake on one outcome or divided between all;
# Kelly (1956), the stake; Foresight Arena (2026), alpha.


NAMED_KINDS = ("binary", "multiple_choice")


class Returns(NamedTuple):
    """The returns of a forecast at prices, all exact. A return of 0.5 is a profit of half the stake.

    bought: the outcome whose probability is the largest multiple of its price; of equals, the first. all_in: the return
    of a stake on it alone. proportional: of a stake divided between all outcomes as the forecast divides probability.
    kelly_stake: the share of money that Kelly's rule stakes on the bought outcome, 0 if its price is not below its
    probability. kelly: the return, on all the money, of that stake. brier, market_brier: the mean over outcomes of
    (probability - o)² and of (price - o)², with o what a share of the outcome is paid.
    """

    bought: int
    all_in: Fraction
    proportional: Fraction
    kelly_stake: Fraction
    kelly: Fraction
    brier: Fraction
    market_brier: Fraction

    @property
    def alpha(self) -> Fraction:
        """By how much the forecast beats the prices: the Brier score of these less that of the forecast."""
        return self.market_brier - self.brier


class MeanReturns(NamedTuple):
    """The means over one participant's forecasts, exact, None without any: of a return each, Brier scores and alpha.

    participant: code. n: forecasts that have returns. left_out: those that have none.
    """

    participant: int
    n: int
    left_out: int
    means: tuple[Fraction, ...] | None


class ImpliedReturn(NamedTuple):
    """The returns that one participant's forecast on one question implies.

    question, participant: codes. forecast_at, quoted_at: µs, the instants of the forecast and of the oldest of its
    prices, or of the forecast if that is earlier. chances, prices: by outcome, 1e-9, NO_PRICE without a price.
    left_out: why `returns` is None.
    """

    question: int
    participant: int
    forecast_at: int
    quoted_at: int
    chances: Sequence[int]
    prices: Sequence[int]
    left_out: str
    returns: Returns | None


def returns_at(chances: Sequence[int], prices: Sequence[int], paid: Sequence[Fraction]) -> Returns:
    """Return what a forecast earns at prices, both 1e-9 by outcome. paid: what a share of each outcome is paid.

    Raises ZeroDivisionError if an outcome that is not impossible by the forecast has the price 0.

    >>> yes_at_60 = returns_at([800_000_000, 200_000_000], [600_000_000, 400_000_000], [Fraction(1), Fraction(0)])
    >>> yes_at_60.all_in, yes_at_60.proportional, yes_at_60.kelly_stake, yes_at_60.kelly
    (Fraction(2, 3), Fraction(1, 3), Fraction(1, 2), Fraction(1, 3))
    """
    multiples = [
        Fraction(chance, price) if chance else Fraction(0) for chance, price in zip(chances, prices, strict=True)
    ]
    bought = max(range(len(chances)), key=lambda outcome: (multiples[outcome], -outcome))
    all_in = Fraction(paid[bought] * PROBABILITY, prices[bought]) - 1
    proportional = sum((each * pays for each, pays in zip(multiples, paid, strict=True)), Fraction(-1))
    edge = max(chances[bought] - prices[bought], 0)
    stake = Fraction(edge, PROBABILITY - prices[bought]) if edge else Fraction(0)
    return Returns(bought, all_in, proportional, stake, stake * all_in, _brier(chances, paid), _brier(prices, paid))


def _brier(shares: Sequence[int], paid: Sequence[Fraction]) -> Fraction:
    unit = lcm(PROBABILITY, *(pays.denominator for pays in paid))
    missed = (share * (unit // PROBABILITY) - int(pays * unit) for share, pays in zip(shares, paid, strict=True))
    return Fraction(sum(each**2 for each in missed), len(paid) * unit**2)


def implied_returns(facts: Facts, contest: Contest) -> Iterator[ImpliedReturn]:
    """Yield the returns of the forecasts from which Brier scores are computed, by question and participant.

    They are those on questions with named outcomes that have a quote. A forecast is compared with the last price of
    each outcome that was known when it was made; prices that were recorded after the boards of the contest were final
    do not count. Under the rules of a trading contest, a price can be too old.
    """
    rules = contest.opened.rules
    [spot] = at_one_instant(
        facts,
        [contest],
        lambda question: _is_quoted(facts, question),
        kernel="brier",
        cdf_kernel="none",
        quantile_kernel="none",
        payouts="scored",
    )
    questions = scored_questions(facts, spot)
    markets = [_Market(facts, rules.clock, questions, number) for number in range(len(questions.code))]
    longest = NEVER if rules.trading is None else rules.trading.stale_after_seconds * 10**6
    for first, _, forecasts, standing in standing_in_chunks(facts, [spot], questions):
        rows = zip(standing.question.tolist(), standing.participant.tolist(), standing.row.tolist(), strict=True)
        for number, participant, row in rows:
            market, at, start = markets[first + number], int(forecasts.at[row]), int(forecasts.start[row])
            chances = forecasts.chances[start : start + len(market.paid)].tolist()
            prices, quoted_at = market.at(at)
            left_out = _left_out(chances, prices, at - quoted_at > longest)
            returns = None if left_out else returns_at(chances, prices, market.paid)
            code = int(questions.code[first + number])
            yield ImpliedReturn(code, participant, at, quoted_at, chances, prices, left_out, returns)


def _is_quoted(facts: Facts, question: QuestionOpened) -> bool:
    return question.kind in NAMED_KINDS and facts.question_codes.codes[question.question] in facts.books.quotes


def mean_returns(rows: Iterable[ImpliedReturn]) -> Iterator[MeanReturns]:
    """Yield the means of the returns of each participant: all in, proportional, Kelly, Brier scores, alpha."""
    by_participant: dict[int, list[Returns | None]] = {}
    for row in rows:
        by_participant.setdefault(row.participant, []).append(row.returns)
    for participant, every in by_participant.items():
        columns = [
            (each.all_in, each.proportional, each.kelly, each.brier, each.market_brier, each.alpha)
            for each in every
            if each is not None
        ]
        means = tuple(sum(column, Fraction(0)) * Fraction(1, len(columns)) for column in zip(*columns, strict=True))
        yield MeanReturns(participant, len(columns), len(every) - len(columns), means or None)


def _left_out(chances: Sequence[int], prices: Sequence[int], stale: bool) -> str:
    """Return why a forecast has no returns at these prices: "" or the code of the refusal of a trade at them."""
    if min(chances) < 0:
        return "outcomes_changed"
    if NO_PRICE in prices:
        return "no_quote"
    if stale:
        return "stale_quote"
    return "no_price" if any(chance and not price for chance, price in zip(chances, prices, strict=True)) else ""


class _Market:
    """The prices of one question, and what a share of each of its outcomes is paid."""

    def __init__(self, facts: Facts, clock: Clock, questions: Questions, number: int) -> None:
        answer = questions.answers[number]
        outcomes = range(len(answer.question.outcomes))
        self.paid = answer.payouts or tuple(Fraction(outcome == answer.outcome) for outcome in outcomes)
        quotes = facts.books.quotes.of(int(questions.code[number]))
        known_from = np.maximum.accumulate(quotes.recorded_at) if clock == "recorded" else quotes.known_from
        upto = int(np.searchsorted(quotes.position, questions.as_of[number], "right"))
        known_from, quoted_at, prices = known_from[:upto], quotes.quoted_at[:upto], quotes.prices[:upto]
        if answer.question.kind == "binary":
            no = np.where(prices[:, 0] == NO_PRICE, NO_PRICE, PROBABILITY - prices[:, 0])
            prices = np.column_stack([prices[:, 0], no])
        self._series = []  # of each outcome: from when each price is known, the prices, and when they were quoted
        for price in prices.T:
            priced = price != NO_PRICE
            self._series.append([column[priced].tolist() for column in (known_from, price, quoted_at)])

    def at(self, instant: int) -> tuple[list[int], int]:
        """Return the last known price of each outcome, NO_PRICE without one, and when the oldest of them was quoted."""
        prices, quoted_at = [], instant
        for known_from, price, quoted in self._series:
            index = bisect_right(known_from, instant) - 1
            prices.append(NO_PRICE if index < 0 else price[index])
            quoted_at = quoted_at if index < 0 else min(quoted_at, quoted[index])
        return prices, quoted_at
