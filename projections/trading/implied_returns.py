"""What forecasts would have earned at the prices of their time: returns that they imply, and Brier scores of both.

Sources: Yang et al. (2026), the average return of Prophet Arena, with a stake on one outcome or divided between all;
Kelly (1956), the stake; Foresight Arena (2026), alpha.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.values import NEVER, PROBABILITY
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import Clock
from forecast_ledger.projections.boards.brier import at_one_instant
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.facts.quotes import NO_PRICE
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import Questions, scored_questions

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
        """By how much the forecast beats the prices: the Brier score of these less its own."""
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
    spot = at_one_instant(facts, contest, lambda question: _is_quoted(facts, question))
    rules = structs.replace(
        spot.opened.rules, kernel="brier", cdf_kernel="none", quantile_kernel="none", payouts="scored"
    )
    spot = replace(spot, opened=structs.replace(spot.opened, rules=rules))
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
    """Yield the means of the returns of each participant: all in, proportional, Kelly, own and market Brier, alpha."""
    own: dict[int, list[Returns | None]] = {}
    for row in rows:
        own.setdefault(row.participant, []).append(row.returns)
    for participant, every in own.items():
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
            place = bisect_right(known_from, instant) - 1
            prices.append(NO_PRICE if place < 0 else price[place])
            quoted_at = quoted_at if place < 0 else min(quoted_at, quoted[place])
        return prices, quoted_at
