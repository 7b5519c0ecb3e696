"""The quotes of a log as typed columns: one row for each event, and one for each question that it quotes."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.ledger.model import events
from forecast_ledger.projections.core.arrays import Codes, Int64Array

NO_PRICE = -1
Prices = NDArray[np.int32]  # 1e-9, NO_PRICE where an outcome has none; a price of 1 fits
Sides = tuple[int | None, ...]  # prices, bids or asks by outcome, 1e-9
_SMALLEST = 16  # rows
_POSITION, _CLAIMED, _QUOTED, _RECORDED, _SOURCE = range(5)


class QuoteColumns(NamedTuple):
    """The quotes of one question in log order.

    position: in the log. known_from: the instant from which each is known, µs: the one that its command claims, or that
    of the quote before it if that is later. quoted_at: µs, the instant of its prices. recorded_at: µs, by the ledger's
    clock. source: codes in `Quotes.sources`. All of shape (n,). prices, bids, asks: shape (n, outcomes); bids and asks
    are None if no quote of the question has one.
    """

    position: Int64Array
    known_from: Int64Array
    quoted_at: Int64Array
    recorded_at: Int64Array
    source: Int64Array
    prices: Prices
    bids: Prices | None
    asks: Prices | None


class LastQuote(NamedTuple):
    """The last quote of a question before a log position; instants in µs."""

    known_from: int
    quoted_at: int
    source: str


class _QuestionRows:
    """The rows of one question: the number of the event of each, from when it is known, and prices row after row."""

    __slots__ = ("asks", "bids", "event", "known_from", "outcomes", "prices")

    def __init__(self, outcomes: int) -> None:
        self.outcomes = outcomes
        self.event, self.known_from, self.prices = array("i"), array("q"), array("i")
        self.bids: array[int] | None = None
        self.asks: array[int] | None = None

    def append(self, event: int, at: int, quote: events.Quote) -> None:
        """Append a quote of the question, which an event claims at an instant, µs."""
        if self.bids is not None or quote.bids:
            self.bids = self._side(self.bids, quote.bids)
        if self.asks is not None or quote.asks:
            self.asks = self._side(self.asks, quote.asks)
        self.event.append(event)
        self.known_from.append(max(at, self.known_from[-1]) if self.known_from else at)
        self.prices.extend(_known(quote.prices) if None in quote.prices else quote.prices)  # type: ignore[arg-type]

    def of_events(self, event: Int64Array) -> "_QuestionRows":
        """Return the same rows, whose events have other numbers."""
        rows = copy(self)
        rows.event = array("i", event.tolist())
        return rows

    def _side(self, before: "array[int] | None", prices: Sides) -> "array[int]":
        """Return the bids or asks of all rows and the next; rows without one have none of any outcome."""
        side = array("i", [NO_PRICE]) * len(self.prices) if before is None else before
        side.extend(_known(prices or (None,) * self.outcomes))
        return side

    def by_outcome(self, side: "array[int]") -> Prices:
        """Return prices, bids or asks, shape (n, outcomes)."""
        return np.array(side, np.int32).reshape(-1, self.outcomes)


def _known(prices: Sides) -> Iterable[int]:
    return (NO_PRICE if price is None else price for price in prices)


class Quotes:
    """The quotes of a log. A binary question takes 20 bytes a quote, 36 with bids and asks; an event about 45."""

    def __init__(self) -> None:
        self.sources = Codes()
        self._events = np.empty((_SMALLEST, 5), np.int64)
        self._count = 0  # of events
        self._questions: dict[int, _QuestionRows] = {}  # by code, in order of their first quote

    def enter(self, position: int, recorded_at: int, event: events.PricesQuoted, codes: Mapping[str, int]) -> None:
        """Enter the quotes of an event, which were checked. codes: of questions. Raises KeyError."""
        if self._count == len(self._events):
            self._events = np.concatenate([self._events, np.empty((max(self._count >> 3, _SMALLEST), 5), np.int64)])
        number, questions = self._count, self._questions
        self._events[number] = position, event.at, event.quoted_at, recorded_at, self.sources.add(event.source)
        self._count += 1
        for quote in event.quotes:
            code = codes[quote.question]
            rows = questions.get(code)
            if rows is None:
                rows = questions[code] = _QuestionRows(len(quote.prices))
            rows.append(number, event.at, quote)

    def __contains__(self, question: int) -> bool:
        """Return whether a question, by code, has a quote."""
        return question in self._questions

    def __iter__(self) -> Iterator[int]:
        """Yield the codes of the questions that have quotes, in order of their first."""
        return iter(self._questions)

    def count(self, question: int) -> int:
        """Return the number of quotes of a question."""
        rows = self._questions.get(question)
        return 0 if rows is None else len(rows.event)

    def of(self, question: int) -> QuoteColumns:
        """Return the quotes of a question, none if it was never quoted.

        >>> quotes = Quotes()
        >>> rain = events.Quote(question="rain", prices=(400_000_000, None))
        >>> quotes.enter(7, 2, events.PricesQuoted(at=1, source="gamma", quoted_at=0, quotes=(rain,)), {"rain": 0})
        >>> quotes.of(0).prices.tolist(), quotes.of(0).known_from.tolist(), quotes.of(1).position.tolist()
        ([[400000000, -1]], [1], [])
        """
        rows = self._questions.get(question) or _QuestionRows(1)
        position, _, quoted_at, recorded_at, source = self._events[np.array(rows.event, np.int32)].T
        return QuoteColumns(
            position.copy(),
            np.array(rows.known_from, np.int64),
            quoted_at.copy(),
            recorded_at,
            source,
            rows.by_outcome(rows.prices),
            None if rows.bids is None else rows.by_outcome(rows.bids),
            None if rows.asks is None else rows.by_outcome(rows.asks),
        )

    def on(self, numbers: Mapping[int, int]) -> "Quotes":
        """Return the quotes of some questions. numbers: by code, what each is numbered instead.

        >>> quotes, codes = Quotes(), {"rain": 0, "snow": 1}
        >>> for position, name in enumerate(("rain", "snow"), 7):
        ...     quote = events.Quote(question=name, prices=(position, None))
        ...     event = events.PricesQuoted(at=1, source="gamma", quoted_at=0, quotes=(quote,))
        ...     quotes.enter(position, 2, event, codes)
        >>> snow = quotes.on({1: 0})
        >>> [*snow], snow.of(0).prices.tolist(), snow.of(0).position.tolist()
        ([0], [[8, -1]], [8])
        """
        by_question = {new: self._questions[code] for code, new in numbers.items() if code in self._questions}
        chosen = Quotes()
        if not by_question:
            return chosen
        used = np.unique(np.concatenate([np.zeros(0, np.int32), *(rows.event for rows in by_question.values())]))
        chosen.sources, chosen._events, chosen._count = self.sources, self._events[used], len(used)
        chosen._questions = {
            new: rows.of_events(np.searchsorted(used, rows.event)) for new, rows in by_question.items()
        }
        return chosen

    def last(self, question: int, before: int) -> LastQuote:
        """Return the last quote of a question before a log position. Raises KeyError if there is none."""
        rows, positions = self._questions[question], self._events[:, _POSITION]
        index = len(rows.event) - 1
        if positions[rows.event[index]] >= before:
            index = bisect_left(rows.event, before, key=positions.__getitem__) - 1
        if index < 0:
            raise KeyError(f"a quote of question {question} before log position {before}")
        event = self._events[rows.event[index]]
        return LastQuote(rows.known_from[index], int(event[_QUOTED]), self.sources.labels[event[_SOURCE]])
