"""What a share is taken to be worth: the last price of its outcome that counts, and whether that is stale."""

from typing import Any

import numpy as np
import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, QuotePrices
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import facts, note
from forecast_ledger.projections.trading.mark_prices import NO_PRICE, Marks, Series
from tests.support.given import NOW, closing, day, market, micros, palette, quote

SECOND, HOUR = 10**6, 3_600 * 10**6  # µs
PRIOR, LAST = Trading(), Trading(closed_marks="last")


def marks(*commands: AnyCommand) -> Marks:
    """Of a binary and a multiple-choice question, which are questions 0 and 1, open from the 1st to the 29th."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        for number, command in enumerate([market(), palette(), *commands]):
            ledger.handle(command, f"c{number}")
        return Marks(facts(ledger.read()))


def yes(price: str, at: str, **fields: Any) -> QuotePrices:
    """A price of yes."""
    return quote(prices={"yes": price}, at=at, **fields)


def told(series: Series) -> list[list[int]]:
    """Its columns as lists."""
    return [each.tolist() for each in series]


def seen(found: Marks, trading: Trading, *instants: int, **fields: Any) -> list[tuple[int, int]]:
    """Price of yes and when it was quoted, at each instant."""
    price, quoted_at = found.at(trading, 0, 0, int64_array(instants), **fields)
    return list(zip(price.tolist(), quoted_at.tolist(), strict=True))


def test_a_series_has_the_quotes_that_have_a_price() -> None:
    """A quote of other outcomes leaves an outcome's series as it was; questions are log positions 1 and 2.

    The columns are price, since when it is known, when it was quoted, which quote it is, and its log position.
    """
    found = marks(
        quote("colour", prices={"red": "0.5", "green": 0}, at=day(2)),
        yes("0.4", day(2)),
        quote("colour", prices={"red": "0.25"}, at=day(3), quoted_at=day(2, 5)),
    )
    red, green = found.series(1, 0), found.series(1, 1)
    known, quoted = [micros(2), micros(3)], [micros(2), micros(2, 5)]
    assert told(red) == [[500_000_000, 250_000_000], known, quoted, [0, 1], [3, 5]]
    assert told(green) == [[0], [micros(2)], [micros(2)], [0], [3]]
    assert told(found.series(1, 2)) == [[], [], [], [], []]


def test_a_question_never_quoted_has_no_marks() -> None:
    """There is nothing that a share could be taken to be worth."""
    found = marks()
    assert told(found.series(0, 1)) == [[], [], [], [], []]
    assert seen(found, PRIOR, micros(1), micros(5)) == [(NO_PRICE, NO_PRICE)] * 2
    assert found.last(PRIOR, 0, 0, micros(5)) == (NO_PRICE, NO_PRICE)


def test_a_price_counts_from_the_instant_it_is_told() -> None:
    """Not from when it was quoted: nobody knew it then."""
    found = marks(yes("0.4", day(2), quoted_at=day(1, 12)), yes("0.5", day(3)))
    first, second = (400_000_000, micros(1, 12)), (500_000_000, micros(3))
    instants = micros(2) - 1, micros(2), micros(3) - 1, micros(3), micros(9)
    assert seen(found, PRIOR, *instants) == [(NO_PRICE, NO_PRICE), first, first, second, second]
    assert found.last(PRIOR, 0, 0, micros(3) - 1) == first
    assert found.last(PRIOR, 0, 1, micros(9)) == (500_000_000, micros(3))


def test_a_price_that_claims_to_be_told_before_the_one_before_it_counts_with_that() -> None:
    """Of the 6th, and then one of the 4th: the log had it second, and until the 6th it had none of them."""
    found = marks(yes("0.4", day(2)), yes("0.5", day(6), quoted_at=day(3)), yes("0.6", day(4), quoted_at=day(3)))
    assert [price for price, _ in seen(found, PRIOR, micros(4), micros(6) - 1)] == [400_000_000] * 2
    assert seen(found, PRIOR, micros(6)) == [(600_000_000, micros(3))]


def test_of_two_quotes_of_one_instant_the_last_counts() -> None:
    """A source may correct itself."""
    found = marks(yes("0.4", day(2)), yes("0.45", day(2)))
    assert found.last(PRIOR, 0, 0, micros(2)) == (450_000_000, micros(2))


def test_what_was_recorded_later_can_be_left_out() -> None:
    """A quote of the same instant that the log has only later is not known before; positions 3 and 4 are quotes."""
    found = marks(yes("0.4", day(2)), yes("0.5", day(3)))
    assert seen(found, PRIOR, *[micros(4)] * 3, upto=int64_array([2, 3, 4])) == [
        (NO_PRICE, NO_PRICE),
        (400_000_000, micros(2)),
        (500_000_000, micros(3)),
    ]


@pytest.mark.parametrize(("trading", "price"), [(PRIOR, 400_000_000), (LAST, 900_000_000)], ids=["prior", "last"])
def test_quotes_from_the_close_on_count_by_one_rule_only(trading: Trading, price: int) -> None:
    """At the very instant of the close it is too late: a question is open on [opens_at, closes_at)."""
    found = marks(market("snow", closes_at=day(3)), quote("snow"), quote("snow", at=day(3), prices={"yes": "0.9"}))
    assert found.last(trading, 2, 0, micros(3))[0] == price
    assert found.last(trading, 2, 0, micros(3) - 1)[0] == 400_000_000


def test_an_early_close_is_the_close() -> None:
    """From when it was recorded on: the close of the 3rd is log position 5."""
    found = marks(yes("0.4", day(2)), yes("0.9", day(4)), closing(at=day(3)))
    assert found.closed_at(0) == micros(3)
    assert found.last(PRIOR, 0, 0, micros(9)) == (400_000_000, micros(2))
    assert seen(found, PRIOR, *[micros(9)] * 2, upto=int64_array([4, 5])) == [
        (900_000_000, micros(4)),
        (400_000_000, micros(2)),
    ]
    at = int64_array([micros(4)] * 2)
    assert found.stale(PRIOR, 0, at, at, int64_array([4, 5])).tolist() == [False, True]


def test_of_two_early_closes_the_last_recorded_counts() -> None:
    """Positions 4 and 5 close the question ever earlier."""
    found = marks(yes("0.4", day(2)), closing(at=day(8)), closing(at=day(5)))
    at, upto = int64_array([micros(6)] * 3), int64_array([3, 4, 5])
    assert found.stale(Trading(stale_after_seconds=10**9), 0, at, at, upto).tolist() == [False, False, True]


def test_a_close_before_every_quote_leaves_no_mark() -> None:
    """A close told of late may be of an instant before a quote at which one has traded."""
    found = marks(yes("0.4", day(2)), closing(at=day(1, 12)))
    assert found.last(PRIOR, 0, 0, micros(9)) == (NO_PRICE, NO_PRICE)
    assert found.last(LAST, 0, 0, micros(9)) == (400_000_000, micros(2))


def test_a_mark_is_stale_where_it_is_too_old_to_trade_at_or_the_question_is_closed() -> None:
    """An hour is not too old, a microsecond more is; at the close everything is stale."""
    found = marks(market("snow", closes_at=day(3)), quote("snow"))
    quoted_at = int64_array([micros(2), micros(2), micros(3) - 1, micros(3) - 1])
    instants = int64_array([micros(2) + HOUR, micros(2) + HOUR + 1, micros(3) - 1, micros(3)])
    assert found.stale(PRIOR, 2, quoted_at, instants).tolist() == [False, True, False, True]
    patient = structs.replace(PRIOR, stale_after_seconds=3_601)
    assert found.stale(patient, 2, quoted_at, instants).tolist() == [False, False, False, True]


def test_a_price_of_nothing_is_a_price() -> None:
    """Nor is an instant before 1970 a missing one."""
    early = "1969-12-31T23:59:59.999999Z"
    old = market("old", at=early, opens_at=early, closes_at="1970-02-01T00:00:00Z")
    found = marks(old, quote("old", at=early, prices={"yes": 0}))
    price, quoted_at = found.at(PRIOR, 2, 0, np.array([-2, -1, 0]))
    assert price.tolist() == [NO_PRICE, 0, 0]
    assert quoted_at[1:].tolist() == [-1, -1]


def test_marks_follow_a_log_that_grows() -> None:
    """What has been asked for is asked again after a quote, an early close, and a correction of that."""
    told_of: list[AnyCommand] = [market(), palette(), yes("0.4", day(2)), yes("0.9", day(4))]
    told_of += [closing(at=day(3)), closing(at=day(2, 12)), yes("0.1", day(9))]
    at, upto, last = int64_array([micros(2, 18)] * 7), int64_array(range(1, 8)), []
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        found = Facts()
        growing = Marks(found)
        for number, command in enumerate(told_of):
            ledger.handle(command, f"c{number}")
            note(found, next(iter(ledger.read(found.as_of))))
            stale, afresh = (each.stale(PRIOR, 0, at, at, upto).tolist() for each in (growing, Marks(found)))
            assert stale == afresh
            last.append(growing.last(PRIOR, 0, 0, micros(10))[0])
    assert afresh == [False] * 5 + [True] * 2  # open until the correction, position 6, says that it closed before
    assert last == [NO_PRICE, NO_PRICE, 400_000_000, 900_000_000, 400_000_000, 400_000_000, 400_000_000]
