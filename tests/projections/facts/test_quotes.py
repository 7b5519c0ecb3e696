"""Quotes are kept as typed columns, and these say what a list of the quotes would say."""

import gc
import random
import tracemalloc
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LAST_INSTANT, PROBABILITY
from forecast_ledger.ledger.model.events import PricesQuoted, Quote
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.facts.quotes import NO_PRICE, LastQuote, QuoteColumns, Quotes
from tests.support.effort import times
from tests.support.given import market, quote
from tests.support.logs import recorded

CODES = {"rain": 0, "wind": 3, "never": 7}
HALF = PROBABILITY // 2


def quoted(*quotes: Quote, at: int = 0, quoted_at: int = 0, source: str = "gamma") -> PricesQuoted:
    """An event that quotes questions."""
    return PricesQuoted(at=at, source=source, quoted_at=quoted_at, quotes=quotes)


def rain(*prices: int | None, **sides: Any) -> Quote:
    """A quote of rain."""
    return Quote(question="rain", prices=prices, **sides)


def columns(quotes: Quotes, question: int = 0) -> dict[str, Any]:
    """The columns of a question's quotes as lists; None for those that it does not have."""
    found = quotes.of(question)
    return {
        name: None if column is None else column.tolist()
        for name, column in zip(QuoteColumns._fields, found, strict=True)
    }


def test_a_quote_is_a_row_of_each_column() -> None:
    """A missing price is -1; a question without bids and asks has no columns of them; sources are codes."""
    quotes = Quotes()
    quotes.enter(4, 30, quoted(rain(HALF, None), at=20, quoted_at=10), CODES)
    quotes.enter(9, 31, quoted(rain(0, PROBABILITY), at=21, quoted_at=11, source="delta"), CODES)
    assert columns(quotes) == {
        "position": [4, 9],
        "known_from": [20, 21],
        "quoted_at": [10, 11],
        "recorded_at": [30, 31],
        "source": [0, 1],
        "prices": [[HALF, NO_PRICE], [0, PROBABILITY]],
        "bids": None,
        "asks": None,
    }
    assert quotes.sources.labels == ["gamma", "delta"]


def test_bids_that_come_later_leave_the_quotes_before_without() -> None:
    """So does a quote without bids after one with them; bids and asks are independent of each other."""
    quotes = Quotes()
    for position, own in enumerate(
        [rain(1, 2), rain(3, 4, bids=(2, None)), rain(5, None), rain(None, None, asks=(9, 8))]
    ):
        quotes.enter(position, 0, quoted(own), CODES)
    none = [NO_PRICE, NO_PRICE]
    assert columns(quotes)["bids"] == [none, [2, NO_PRICE], none, none]
    assert columns(quotes)["asks"] == [none, none, none, [9, 8]]
    assert columns(quotes)["prices"] == [[1, 2], [3, 4], [5, NO_PRICE], none]


def test_a_quote_claimed_for_an_earlier_instant_is_known_with_the_one_before() -> None:
    """known_from does not fall; the instants of a question do not depend on those of others."""
    quotes = Quotes()
    for position, at in enumerate([5, 5, 3, 4, 8]):
        quotes.enter(position, 0, quoted(rain(1, 2), at=at), CODES)
        quotes.enter(position, 0, quoted(Quote(question="wind", prices=(1,)), at=1), CODES)
    assert columns(quotes)["known_from"] == [5, 5, 5, 5, 8]
    assert columns(quotes, 3)["known_from"] == [1] * 5


def test_the_ends_of_each_range_fit() -> None:
    """Prices of 0 and 1, the first and last instants of the calendar, and the largest log position of 64 bits."""
    quotes, sides = Quotes(), (0, PROBABILITY)
    first = quoted(rain(*sides, bids=sides, asks=sides), at=FIRST_INSTANT, quoted_at=FIRST_INSTANT)
    quotes.enter(1, -(2**63), first, CODES)
    quotes.enter(2**63 - 1, 2**63 - 1, structs.replace(first, at=LAST_INSTANT, quoted_at=LAST_INSTANT), CODES)
    found = columns(quotes)
    assert found["position"] == [1, 2**63 - 1]
    assert found["known_from"] == found["quoted_at"] == [FIRST_INSTANT, LAST_INSTANT]
    assert found["recorded_at"] == [-(2**63), 2**63 - 1]
    assert found["prices"] == found["bids"] == found["asks"] == [[*sides]] * 2


def test_the_last_quote_before_a_log_position() -> None:
    """A quote at the position itself does not count; before the first there is none."""
    quotes = Quotes()
    for position in (3, 5, 9):
        quotes.enter(
            position, 0, quoted(rain(1, 2), at=10 * position, quoted_at=position, source=f"s{position}"), CODES
        )
    assert quotes.last(0, 100) == quotes.last(0, 10) == LastQuote(90, 9, "s9")
    assert quotes.last(0, 9) == quotes.last(0, 6) == LastQuote(50, 5, "s5")
    assert quotes.last(0, 4) == LastQuote(30, 3, "s3")
    for question, before in ((0, 3), (0, 0), (3, 100)):
        with pytest.raises(KeyError):
            quotes.last(question, before)


def test_a_question_without_quotes_has_none() -> None:
    """Its columns are empty, and it is not among the questions that were quoted."""
    quotes = Quotes()
    quotes.enter(1, 0, quoted(rain(1, 2)), CODES)
    assert (0 in quotes, 7 in quotes, [*quotes], quotes.count(7)) == (True, False, [0], 0)
    assert {name: column for name, column in columns(quotes, 7).items() if column} == {}


@pytest.mark.parametrize("seed", range(times(6)))
def test_columns_are_those_of_a_list(seed: int) -> None:
    """Random quotes of two questions, read after each event: the columns are those of a plain list of rows."""
    chance, quotes = random.Random(seed), Quotes()
    model: dict[str, list[Any]] = {"rain": [], "wind": []}

    def side(outcomes: int) -> tuple[int | None, ...]:
        return tuple(chance.choice([None, 0, HALF, PROBABILITY]) for _ in range(outcomes))

    for position in range(60):
        asked = chance.sample([("rain", 2), ("wind", 3)], chance.randrange(1, 3))
        every = [
            Quote(question=name, prices=side(n), bids=side(n) * chance.randrange(2), asks=side(n) * chance.randrange(2))
            for name, n in asked
        ]
        event = quoted(*every, at=chance.randrange(40), quoted_at=chance.randrange(40), source=chance.choice("abc"))
        quotes.enter(position, 100 + position, event, CODES)
        for (name, n), own in zip(asked, every, strict=True):
            known = max([event.at, *(row[1] for row in model[name][-1:])])
            sides = [[NO_PRICE if price is None else price for price in given or (None,) * n]
                     for given in (own.prices, own.bids, own.asks)]  # fmt: skip
            model[name].append([position, known, event.quoted_at, 100 + position, event.source, *sides])
        for name, rows in model.items():
            found = columns(quotes, CODES[name])
            found["source"] = [quotes.sources.labels[code] for code in found["source"]]
            for number, column in enumerate(found.values()):
                expected = [row[number] for row in rows]
                missing = column is None and {price for prices in expected for price in prices} <= {NO_PRICE}
                assert missing or column == expected


def test_a_quote_takes_few_bytes() -> None:
    """A binary quote takes at most 32 bytes in events of many questions, and one that is alone in its event 72.

    4 of its event's number, 8 of its instant, 8 of two prices; 40 of each event; columns have room for an eighth more.
    """
    codes = {f"q{number}": number for number in range(200)}
    for questions, events, most in ((200, 50, 32), (1, 4_000, 72)):
        every = tuple(Quote(question=f"q{number}", prices=(HALF, HALF)) for number in range(questions))
        event, quotes = quoted(*every), Quotes()
        gc.collect()
        tracemalloc.start()
        try:
            for position in range(events):
                quotes.enter(position, position, event, codes)
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert held <= most * questions * events


def test_a_time_beyond_64_bits_stops_the_reader_at_its_row() -> None:
    """A row of another program states when it was recorded as it likes."""
    opened, row = recorded([market(), quote()])
    for beyond in (2**63, -(2**63) - 1):
        with pytest.raises(Corrupt, match="64 bits") as stopped:
            facts([[opened, structs.replace(row, recorded_at=beyond)]])
        assert stopped.value.position == 2
