"""Shares against one of several outcomes: bought by a bet on `not NAME`, and worth 1 less what the outcome is worth."""

from fractions import Fraction
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.facts.accounts import postings
from tests.support import oracle
from tests.support.forging import audited
from tests.support.given import (
    SUNDAY,
    addition,
    annulment,
    bet,
    cancellation,
    day,
    decision,
    entry,
    palette,
    quote,
    ran,
    resolution,
    revocation,
    sale,
    sold,
    traded,
    trading_floor,
)

MILLION, BILLION = 10**6, 10**9
FREE = Trading(least_bet_micros=1, cap_divisor=1, period_days=0, stale_after_seconds=10**9, shares_against=True)
NOT_RED = bet(100, "not red", "colour")  # 200 shares at 1 - 0.50
HALF = decision(sale(50), period=2, at=day(9))
DEARER = quote("colour", at=day(9), prices={"red": "0.2", "green": "0.5", "blue": "0.3"})  # not red is at 0.80
THIRDS = resolution("colour", payouts={"red": "1/3", "green": "1/3", "blue": "1/3"})


def floor(**rules: Any) -> list[AnyCommand]:
    """Red is at 0.50, green at 0.30 and blue at nothing, and shares against them can be held."""
    return trading_floor("ada", "bob", rules=RuleSet(name="free", trading=structs.replace(FREE, **rules)))


def legs(*said: AnyCommand) -> list[Any]:
    """What became of the legs of all decisions: shares bought or sold, or the code with which they are refused."""
    done = [event for event in ran(*said) if isinstance(event, events.LegEvent)]
    return [event.code if isinstance(event, events.LegRefused) else event for event in done]


def cash(*said: AnyCommand, **rules: Any) -> Fraction:
    """Return Ada's cash after a story. Its postings sum to 0, and the log is decided again."""
    history = oracle.history(*floor(**rules), *said)
    audited(history)
    facts = oracle.facts_in(history)
    for movement in facts.books.movements:
        assert sum(side.amount for side in postings(movement)) == 0
    account = facts.books.accounts["week", "ada"]
    assert account.cash + account.cost() - account.deposits == account.realised
    return Fraction(account.cash, MILLION)


def rows(table: str, *said: AnyCommand, **rules: Any) -> list[dict[str, Any]]:
    """Return the printed rows of a table after a story."""
    return list(oracle.projected(*floor(**rules), *said).table(table).rows())


def test_a_bet_on_not_red_buys_shares_at_what_is_left_of_one() -> None:
    """100 at 1 - 0.50 are 200 shares; the event names red, and that it is against it."""
    [bought] = legs(*floor(), decision(NOT_RED))
    assert (bought.outcome, bought.against, bought.price) == (0, True, BILLION // 2)
    assert (bought.shares, bought.amount) == (200 * MILLION, 100 * MILLION)
    [green] = legs(*floor(), decision(bet(7, "not green", "colour")))
    assert (green.price, green.shares) == (7 * BILLION // 10, 10 * MILLION)


def test_shares_of_an_outcome_and_against_it_are_two_positions() -> None:
    """A second bet on the same side adds to its position."""
    bought = legs(*floor(), decision(bet(100, "red", "colour"), NOT_RED, bet(50, "red", "colour"), NOT_RED))
    assert [(each.position, each.against) for each in bought] == [(1, False), (2, True), (1, False), (2, True)]


@pytest.mark.parametrize(
    "side", ["Not red", "not Red", "not  red", "not pink", "not", "not ", "NO", "no", "not not red", " not red"]
)
def test_other_sides_are_unknown(side: str) -> None:
    """It is `not`, one space, and an outcome of the question as it is written."""
    assert legs(*floor(), decision(bet(100, side, "colour"))) == ["unknown_side"]


def test_a_binary_question_has_no_and_no_not_yes() -> None:
    """What is against yes is no."""
    assert legs(*floor(), decision(bet(100, "not yes"))) == ["unknown_side"]
    assert legs(*floor(), decision(bet(100, "NO")))[0].outcome == 1


def test_without_the_rule_the_side_is_unknown() -> None:
    """Logs from before the rule are decided as before."""
    assert legs(*floor(shares_against=False), decision(NOT_RED)) == ["unknown_side"]


def test_the_name_of_an_outcome_comes_first() -> None:
    """Where an outcome is called `not red`, the side is that outcome."""
    asked: list[AnyCommand] = [
        palette("hue", outcomes=("red", "not red", "blue"), at=SUNDAY),
        entry("week", "hue", at=SUNDAY),
    ]
    prices = quote("hue", prices={"red": "0.5", "not red": "0.1"})
    [bought] = legs(*floor(), *asked, prices, decision(bet(100, "not red", "hue")))
    assert (bought.outcome, bought.against, bought.price) == (1, False, BILLION // 10)


def test_at_bid_and_ask_one_buys_at_what_the_bid_leaves_and_sells_at_what_the_ask_leaves() -> None:
    """Who buys not red sells red to somebody who bids 0.40 for it; who sells it buys red at 0.60."""
    book = quote("colour", at=day(9), prices=None, bids={"red": "0.4"}, asks={"red": "0.6", "green": "0.3"})
    said = [*floor(fills="bid_ask"), book, decision(NOT_RED, bet(7, "not green", "colour"), at=day(9)),
            decision(sale(100), period=2, at=day(9))]  # fmt: skip
    bought, code, gone = legs(*said)
    assert (bought.price, code, gone.price) == (6 * BILLION // 10, "no_ask", 4 * BILLION // 10)
    assert gone.shares == bought.shares == 166_666_666  # 100 / 0.6, rounded down


def test_a_price_of_one_leaves_nothing_to_pay() -> None:
    """Nothing can be bought at 0."""
    sure = quote("colour", at=day(9), prices={"red": 1})
    assert legs(*floor(), sure, decision(NOT_RED, at=day(9))) == ["no_price"]


def test_shares_against_an_outcome_take_from_its_bids_and_give_to_its_asks() -> None:
    """60 can be sold of red, 25 are sold: 35 of not red are left, as many as there are bids; 30 can be sold of it."""
    sizes = {"bid_sizes": {"red": 60}, "ask_sizes": {"red": 30}}
    book = quote("colour", at=day(9), prices={"red": "0.5"}, **sizes)
    said = [*floor(depth="partial"), decision(bet(25, "red", "colour"), at=day(8)), book]
    bought, given, part, sale_of_it = legs(
        *said, decision(sale(50), at=day(9), period=2), decision(NOT_RED, at=day(9), period=3),
        decision(sale(100, "2"), at=day(9), period=4),
    )  # fmt: skip
    assert (bought.shares, given.shares) == (50 * MILLION, 25 * MILLION)
    assert (part.shares, part.requested) == (35 * MILLION, 100 * MILLION)
    assert (sale_of_it.shares, sale_of_it.requested) == (30 * MILLION, 35 * MILLION)


# A story after 200 shares of not red were bought for 100, and what is then in the account of 10,000, by hand.
STORIES: list[tuple[list[AnyCommand], Fraction]] = [
    ([resolution("colour", outcome="red")], Fraction(9_900)),
    ([resolution("colour", outcome="blue")], Fraction(10_100)),
    ([THIRDS], Fraction("10033.333333")),  # 200 x 2/3, rounded down to 1e-6
    ([resolution("colour", payouts={"red": "0.25", "green": "0.75", "blue": 0})], Fraction(10_050)),
    ([DEARER, HALF], Fraction(9_980)),  # 100 x 0.80
    ([DEARER, HALF, resolution("colour", outcome="green")], Fraction(10_080)),
    ([DEARER, HALF, annulment("colour")], Fraction(10_030)),  # half of the cost; the gain of 30 stays
    ([DEARER, HALF, cancellation("colour")], Fraction(10_000)),
    ([DEARER, HALF, cancellation("colour", policy="refund_stake")], Fraction(10_000)),  # 100 - 80 are given back
    ([resolution("colour", outcome="green"), revocation("colour")], Fraction(9_900)),
    ([resolution("colour", outcome="green"), revocation("colour"), THIRDS], Fraction("10033.333333")),
    ([THIRDS, annulment("colour"), revocation("colour")], Fraction("10033.333333")),
]  # fmt: skip


@pytest.mark.parametrize(("story", "left"), STORIES)
def test_the_cash_after_a_bet_against_red(story: list[AnyCommand], left: Fraction) -> None:
    """A share pays 1 less the payout of red; sales, refunds and reversals are those of any position."""
    assert cash(decision(NOT_RED), *story) == left


@pytest.mark.parametrize(("against", "left"), [(True, 10_005), (False, 9_995)])
def test_an_outcome_that_comes_later_pays_shares_against_another(against: bool, left: int) -> None:
    """10 shares for 5: without the rule they are shares of the other outcomes that there were."""
    asked: list[AnyCommand] = [
        palette("hue", at=SUNDAY),
        entry("week", "hue", at=SUNDAY),
        traded(10, 5, None, all_but="red", question="hue"),
    ]
    said = [*asked, addition("pink", question="hue"), resolution("hue", outcome="pink")]
    assert cash(*said, recorded_trades=True, shares_against=against) == left


def test_the_tables_name_the_side() -> None:
    """Its mark is what is left of 1. 100 of 10,000 is a confidence of 0.01: scores are (0.01 - 2/3)², (1/2 - 2/3)²."""
    [held] = rows("positions", decision(NOT_RED), DEARER)
    assert (held["outcome"], held["mark"], held["value"], held["unrealised"]) == (
        "not red", "0.800000000", "160.00", "60.00",
    )  # fmt: skip
    [scored] = rows("bet_brier", decision(NOT_RED), THIRDS)
    assert (scored["outcome"], scored["side_won"], scored["f_yes"]) == ("not red", "0.666666667", None)
    assert (scored["brier"], scored["market_brier"]) == ("0.431211111", "0.027777778")
    [leg] = rows("trades", decision(NOT_RED), THIRDS)
    assert (leg["outcome"], leg["price"], leg["side_won"]) == ("not red", "0.500000000", "0.666666667")


@pytest.mark.parametrize(
    ("asks", "mark"), [({"red": "0.6"}, "0.400000000"), ({"green": "0.6"}, "0.500000000"), ({}, "0.500000000")]
)
def test_a_mark_at_the_bid_is_what_the_ask_leaves(asks: dict[str, str], mark: str) -> None:
    """It is what the shares could be sold for; without an ask, what the price of 0.50 leaves."""
    book = quote("colour", at=day(9), prices={"red": "0.5"}, bids={"red": "0.1"}, asks=asks)
    [held] = rows("positions", decision(NOT_RED), book, marks="bid")
    assert held["mark"] == mark


def test_a_trade_of_elsewhere_in_all_but_one_outcome_is_against_it() -> None:
    """It is one position, and pays as a bet does: 10 shares for 5, of which 4 were sold for 3, and 6 pay 2/3."""
    rules = {"recorded_trades": True}
    bought = traded(10, 5, None, all_but="red", question="colour")
    gone = sold(4, 3, None, all_but="red", question="colour")
    trades = [event for event in ran(*floor(**rules), bought, gone) if isinstance(event, events.TradeRecorded)]
    assert [(each.outcome, each.against, each.position, each.parts) for each in trades] == [(0, True, 1, 1)] * 2
    assert cash(bought, gone, THIRDS, **rules) == 10_002
    [held] = rows("positions", bought, gone, THIRDS, **rules)
    assert (held["outcome"], held["status"]) == ("not red", "settled")


def test_of_a_binary_question_all_but_no_is_yes() -> None:
    """Shares of yes are bought, with the rule or without."""
    for against in (True, False):
        rules = {"recorded_trades": True, "shares_against": against}
        [trade] = [
            e for e in ran(*floor(**rules), traded(outcome=None, all_but="no")) if isinstance(e, events.TradeRecorded)
        ]
        assert (trade.outcome, trade.against) == (0, False)
        assert cash(traded(outcome=None, all_but="no"), resolution(), **rules) == 10_060
