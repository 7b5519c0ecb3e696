"""The mark of a share: the last price of its outcome that counts, and whether it is stale."""

from typing import Any

import numpy as np
import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, Quote
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import file_page
from forecast_ledger.projections.facts.quotes import NO_PRICE
from forecast_ledger.projections.trading.mark_prices import Marks, Series
from tests.support import oracle
from tests.support.given import closing, day, market, micros, palette, quote

SECOND, HOUR = 10**6, 3_600 * 10**6  # µs
PRIOR, LAST = Trading(), Trading(closed_marks="last")


def marks_after(*commands: AnyCommand) -> Marks:
    """The marks of a binary and a multiple-choice question, numbers 0 and 1, open from the 1st to the 29th."""
    return Marks(oracle.projected(market(), palette(), *commands).facts)


def yes(price: str, at: str, **fields: Any) -> Quote:
    """A quote of the price of yes."""
    return quote(prices={"yes": price}, at=at, **fields)


def columns(series: Series) -> list[list[int]]:
    """Return the columns of a series as lists."""
    return [column.tolist() for column in series]


def marks_of_yes(marks: Marks, trading: Trading, *instants: int, **fields: Any) -> list[tuple[int, int]]:
    """Return the mark of yes and when it was quoted, at each instant."""
    price, quoted_at = marks.at(trading, 0, 0, int64_array(instants), **fields)
    return list(zip(price.tolist(), quoted_at.tolist(), strict=True))


def test_a_series_has_the_quotes_of_its_outcome() -> None:
    """A quote of other outcomes does not change it; the questions are log positions 1 and 2.

    The columns are the price, the instants from which it is known and of which it is, and its log position.
    """
    marks = marks_after(
        quote("colour", prices={"red": "0.5", "green": 0}, at=day(2)),
        yes("0.4", day(2)),
        quote("colour", prices={"red": "0.25"}, at=day(3), quoted_at=day(2, 5)),
    )
    red, green = marks.series(1, 0), marks.series(1, 1)
    known, quoted = [micros(2), micros(3)], [micros(2), micros(2, 5)]
    assert columns(red) == [[500_000_000, 250_000_000], known, quoted, [3, 5]]
    assert columns(green) == [[0], [micros(2)], [micros(2)], [3]]
    assert columns(marks.series(1, 2)) == [[], [], [], []]


def test_a_question_never_quoted_has_no_marks() -> None:
    """Neither a series nor an instant has a price."""
    marks = marks_after()
    assert columns(marks.series(0, 1)) == [[], [], [], []]
    assert marks_of_yes(marks, PRIOR, micros(1), micros(5)) == [(NO_PRICE, NO_PRICE)] * 2
    assert marks.last(PRIOR, 0, 0, micros(5)) == (NO_PRICE, NO_PRICE)


def test_a_price_counts_from_the_instant_at_which_it_is_known() -> None:
    """It does not count from the instant of the quote, because nobody knew it then."""
    marks = marks_after(yes("0.4", day(2), quoted_at=day(1, 12)), yes("0.5", day(3)))
    first, second = (400_000_000, micros(1, 12)), (500_000_000, micros(3))
    instants = micros(2) - 1, micros(2), micros(3) - 1, micros(3), micros(9)
    assert marks_of_yes(marks, PRIOR, *instants) == [(NO_PRICE, NO_PRICE), first, first, second, second]
    assert marks.last(PRIOR, 0, 0, micros(3) - 1) == first
    assert marks.last(PRIOR, 0, 1, micros(9)) == (500_000_000, micros(3))


def test_a_quote_recorded_later_is_known_no_earlier_than_the_quote_before_it() -> None:
    """A quote at the 6th is followed in the log by one at the 4th: both are known from the 6th on."""
    marks = marks_after(yes("0.4", day(2)), yes("0.5", day(6), quoted_at=day(3)), yes("0.6", day(4), quoted_at=day(3)))
    assert [price for price, _ in marks_of_yes(marks, PRIOR, micros(4), micros(6) - 1)] == [400_000_000] * 2
    assert marks_of_yes(marks, PRIOR, micros(6)) == [(600_000_000, micros(3))]


def test_of_two_quotes_of_one_instant_the_last_counts() -> None:
    """A source may correct itself."""
    marks = marks_after(yes("0.4", day(2)), yes("0.45", day(2)))
    assert marks.last(PRIOR, 0, 0, micros(2)) == (450_000_000, micros(2))


def test_quotes_recorded_later_can_be_left_out() -> None:
    """A quote of the same instant at a later log position does not count; positions 3 and 4 are quotes."""
    marks = marks_after(yes("0.4", day(2)), yes("0.5", day(3)))
    assert marks_of_yes(marks, PRIOR, *[micros(4)] * 3, upto=int64_array([2, 3, 4])) == [
        (NO_PRICE, NO_PRICE),
        (400_000_000, micros(2)),
        (500_000_000, micros(3)),
    ]


@pytest.mark.parametrize(("trading", "price"), [(PRIOR, 400_000_000), (LAST, 900_000_000)], ids=["prior", "last"])
def test_quotes_from_the_close_on_count_only_under_the_rule_last(trading: Trading, price: int) -> None:
    """A quote at the close itself is too late: a question is open on [opens_at, closes_at)."""
    marks = marks_after(
        market("snow", closes_at=day(3)), quote("snow"), quote("snow", at=day(3), prices={"yes": "0.9"})
    )
    assert marks.last(trading, 2, 0, micros(3))[0] == price
    assert marks.last(trading, 2, 0, micros(3) - 1)[0] == 400_000_000


def test_an_early_close_is_the_close() -> None:
    """It counts from its log position on: the close of the 3rd is position 5."""
    marks = marks_after(yes("0.4", day(2)), yes("0.9", day(4)), closing(at=day(3)))
    assert marks.closed_at(0) == micros(3)
    assert marks.last(PRIOR, 0, 0, micros(9)) == (400_000_000, micros(2))
    assert marks_of_yes(marks, PRIOR, *[micros(9)] * 2, upto=int64_array([4, 5])) == [
        (900_000_000, micros(4)),
        (400_000_000, micros(2)),
    ]
    at = int64_array([micros(4)] * 2)
    assert marks.stale(PRIOR, 0, at, at, int64_array([4, 5])).tolist() == [False, True]


def test_of_two_early_closes_the_last_recorded_counts() -> None:
    """Positions 4 and 5 close the question, the second one earlier."""
    marks = marks_after(yes("0.4", day(2)), closing(at=day(8)), closing(at=day(5)))
    at, upto = int64_array([micros(6)] * 3), int64_array([3, 4, 5])
    assert marks.stale(Trading(stale_after_seconds=10**9), 0, at, at, upto).tolist() == [False, False, True]


def test_a_close_before_every_quote_leaves_no_mark() -> None:
    """An early close recorded late may be before a quote that was traded at."""
    marks = marks_after(yes("0.4", day(2)), closing(at=day(1, 12)))
    assert marks.last(PRIOR, 0, 0, micros(9)) == (NO_PRICE, NO_PRICE)
    assert marks.last(LAST, 0, 0, micros(9)) == (400_000_000, micros(2))


def test_a_mark_is_stale_if_it_is_too_old_or_the_question_is_closed() -> None:
    """An hour is not too old, one microsecond more is; from the close on every mark is stale."""
    marks = marks_after(market("snow", closes_at=day(3)), quote("snow"))
    quoted_at = int64_array([micros(2), micros(2), micros(3) - 1, micros(3) - 1])
    instants = int64_array([micros(2) + HOUR, micros(2) + HOUR + 1, micros(3) - 1, micros(3)])
    assert marks.stale(PRIOR, 2, quoted_at, instants).tolist() == [False, True, False, True]
    patient = structs.replace(PRIOR, stale_after_seconds=3_601)
    assert marks.stale(patient, 2, quoted_at, instants).tolist() == [False, False, False, True]


def test_a_price_of_0_is_a_price() -> None:
    """Likewise, an instant before 1970 is not a missing one."""
    early = "1969-12-31T23:59:59.999999Z"
    old = market("old", at=early, opens_at=early, closes_at="1970-02-01T00:00:00Z")
    marks = marks_after(old, quote("old", at=early, prices={"yes": 0}))
    price, quoted_at = marks.at(PRIOR, 2, 0, np.array([-2, -1, 0]))
    assert price.tolist() == [NO_PRICE, 0, 0]
    assert quoted_at[1:].tolist() == [-1, -1]


def test_marks_follow_a_log_that_grows() -> None:
    """Marks already computed change after a quote, an early close, and a correction of the close."""
    commands: list[AnyCommand] = [market(), palette(), yes("0.4", day(2)), yes("0.9", day(4))]
    commands += [closing(at=day(3)), closing(at=day(2, 12)), yes("0.1", day(9))]
    at, upto, last = int64_array([micros(2, 18)] * 7), int64_array(range(1, 8)), []
    log_facts = Facts()
    updated = Marks(log_facts)
    for row in oracle.history(*commands):
        file_page(log_facts, [row])
        stale, rebuilt = (marks.stale(PRIOR, 0, at, at, upto).tolist() for marks in (updated, Marks(log_facts)))
        assert stale == rebuilt
        last.append(updated.last(PRIOR, 0, 0, micros(10))[0])
    assert rebuilt == [False] * 5 + [True] * 2  # the correction, position 6, closes the question earlier
    assert last == [NO_PRICE, NO_PRICE, 400_000_000, 900_000_000, 400_000_000, 400_000_000, 400_000_000]


def test_under_the_rule_bid_a_mark_is_the_bid_or_the_price_of_a_quote_without_one() -> None:
    """Yes: 0.38, then a price of 0.5 without a bid, then an ask alone, which is no mark. No: 1 - the ask of yes."""
    bid = Trading(marks="bid")
    sided = quote(prices=None, bids={"yes": "0.38"}, asks={"yes": "0.42"}, at=day(2))
    marks = marks_after(sided, yes("0.5", day(3)), quote(prices=None, asks={"yes": "0.6"}, at=day(4)))
    instants = micros(2), micros(3), micros(4)
    assert [price for price, _ in marks_of_yes(marks, bid, *instants)] == [380_000_000, 500_000_000, 500_000_000]
    assert [price for price, _ in marks_of_yes(marks, PRIOR, *instants)] == [400_000_000, 500_000_000, 500_000_000]
    price, _ = marks.at(bid, 0, 1, int64_array(instants))
    assert price.tolist() == [580_000_000, 500_000_000, 400_000_000]
    assert marks.last(bid, 0, 1, micros(4)) == (400_000_000, micros(4))
    assert marks.last(PRIOR, 0, 1, micros(4)) == (500_000_000, micros(3))


def test_marks_at_bids_follow_a_log_whose_first_quotes_have_none() -> None:
    """The series of a question is read again when its first bid comes, and both rules keep their own last mark."""
    commands: list[AnyCommand] = [market(), palette(), yes("0.4", day(2)), quote(bids={"yes": "0.3"}, at=day(3))]
    log_facts, last = Facts(), []
    marks = Marks(log_facts)
    for row in oracle.history(*commands):
        file_page(log_facts, [row])
        last.append([marks.last(rules, 0, 0, micros(9))[0] for rules in (Trading(marks="bid"), PRIOR)])
    assert last[1:] == [[NO_PRICE, NO_PRICE], [400_000_000, 400_000_000], [300_000_000, 400_000_000]]


def test_marks_of_shares_against_an_outcome_follow_a_log_that_grows() -> None:
    """They are what the price of red leaves of 1: none before a price, then 0.60, then 0.75."""
    commands: list[AnyCommand] = [market(), palette()]
    commands += [quote("colour", prices={"red": price}, at=at) for price, at in (("0.4", day(2)), ("0.25", day(3)))]
    log_facts, last = Facts(), []
    marks = Marks(log_facts)
    for row in oracle.history(*commands):
        file_page(log_facts, [row])
        last.append([marks.last(PRIOR, 1, share, micros(9))[0] for share in (0, ~0)] if row.position > 1 else [])
    assert last[1:] == [[NO_PRICE, NO_PRICE], [400_000_000, 600_000_000], [250_000_000, 750_000_000]]
