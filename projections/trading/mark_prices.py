"""The mark of a share at an instant: the last quote of its outcome that is known by then.

A share against an outcome has 1 - the price of the outcome, and its bid is 1 - the ask.
"""

from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.trading_rules import MarkRule, Trading
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.quotes import NO_PRICE, Prices, QuoteColumns


class Series(NamedTuple):
    """The quotes that have a price for one share, in log order; shape (n,).

    price: 1e-9; under the rule marks `bid` the bid, or the price of a quote that has no bid. known_from: µs, the
    instant from which each quote is known. quoted_at: µs, the instant of its price.
    Neither decreases. position: in the log.
    """

    price: Prices
    known_from: Int64Array
    quoted_at: Int64Array
    position: Int64Array


class Marks:
    """The quotes of a log by share. The quotes of a question are read on first use, and again when new ones exist."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._series: dict[tuple[int, int, MarkRule], Series] = {}
        self._read: dict[tuple[int, bool], int] = {}  # question, shares against its outcomes -> number of quotes read
        self._closings: dict[int, list[tuple[int, int]]] = {}  # question -> log position, instant
        self._closed = 0  # number of closings read
        self._last: dict[tuple[int, int, str, str], tuple[tuple[int, int, int], tuple[int, int]]] = {}

    def series(self, question: int, share: int, marks: MarkRule = "price") -> Series:
        """Return the quotes of a share."""
        count, read = self._facts.books.quotes.count(question), (question, share < 0)
        if self._read.get(read, 0) < count:
            self._read[read] = count
            self._add(question, self._facts.books.quotes.of(question), against=share < 0)
        quotes = self._series.get((question, share, marks)) or self._series.get((question, share, "price"))
        return quotes or Series(np.zeros(0, np.int32), *[int64_array([])] * 3)

    def _add(self, question: int, quotes: QuoteColumns, *, against: bool) -> None:
        """Add the series of each outcome, or against each; those without gaps share all columns but the price."""
        sides: dict[MarkRule, Prices] = {"price": quotes.prices}
        sold_at = quotes.asks if against else quotes.bids
        if sold_at is not None:
            sides["bid"] = np.where(sold_at == NO_PRICE, quotes.prices, sold_at)
        if against:
            sides = {
                side: np.where(prices == NO_PRICE, NO_PRICE, PROBABILITY - prices).astype(np.int32)
                for side, prices in sides.items()
            }
        shared = quotes.known_from, quotes.quoted_at, quotes.position
        for side, prices in sides.items():
            for outcome, price in enumerate(np.ascontiguousarray(prices.T)):
                priced = price != NO_PRICE
                self._series[question, ~outcome if against else outcome, side] = (
                    Series(price, *shared)
                    if priced.all()
                    else Series(price[priced], *(column[priced] for column in shared))
                )

    def closed_at(self, question: int) -> int:
        """Return the instant at which a question closes or closed early, µs."""
        return self._facts.books.closed.get(question, self._facts.questions[question].closes_at)

    def at(
        self, trading: Trading, question: int, share: int, instants: Int64Array, upto: Int64Array | None = None
    ) -> tuple[Int64Array, Int64Array]:
        """Return the mark of a share at each instant, 1e-9, and when it was quoted, µs; NO_PRICE if there is no mark.

        The mark is the last quote known by then; it may have been quoted for an earlier instant.
        upto: log positions; quotes and closings recorded after them are left out.
        Under the rule "prior", quotes at or after the close do not count.
        """
        price, known_from, quoted_at, position = self.series(question, share, trading.marks)
        if not len(price):
            return np.full(len(instants), NO_PRICE), np.full(len(instants), NO_PRICE)
        until = np.searchsorted(known_from, instants, "right")
        if upto is not None:
            until = np.minimum(until, np.searchsorted(position, upto, "right"))
        if trading.closed_marks == "prior":
            until = np.minimum(until, np.searchsorted(quoted_at, self._closes(question, upto)))
        none = until == 0
        return np.where(none, NO_PRICE, price[until - 1].astype(np.int64)), np.where(
            none, NO_PRICE, quoted_at[until - 1]
        )

    def last(self, trading: Trading, question: int, share: int, instant: int) -> tuple[int, int]:
        """Return the mark of a share at one instant, 1e-9, and when it was quoted, µs; NO_PRICE if there is no mark."""
        key = question, share, trading.closed_marks, trading.marks
        count = self._facts.books.quotes.count(question)
        state = (instant, count, self.closed_at(question))  # all holders of a share ask for the same mark
        cached = self._last.get(key)
        if cached is None or cached[0] != state:
            price, quoted_at = self.at(trading, question, share, int64_array([instant]))
            cached = self._last[key] = (state, (int(price[0]), int(quoted_at[0])))
        return cached[1]

    def stale(
        self,
        trading: Trading,
        question: int,
        quoted_at: Int64Array,
        instants: Int64Array,
        upto: Int64Array | None = None,
    ) -> BoolArray:
        """Return whether marks quoted at `quoted_at` are stale at each instant: too old, or of a closed question."""
        old: BoolArray = instants - quoted_at > trading.stale_after_seconds * 10**6
        return old | (instants >= self._closes(question, upto))

    def _closes(self, question: int, upto: Int64Array | None) -> Int64Array:
        """Return when a question closes, as recorded up to each of these log positions, µs."""
        for position, code, at in self._facts.closings[self._closed :]:
            self._closings.setdefault(code, []).append((position, at))
        self._closed = len(self._facts.closings)
        closings = self._closings.get(question, [])
        if upto is None or not closings:
            return int64_array([self.closed_at(question)])
        ends = int64_array([self._facts.question_as_of(question, 0).closes_at, *(at for _, at in closings)])
        return ends[np.searchsorted(int64_array([position for position, _ in closings]), upto, "right")]
