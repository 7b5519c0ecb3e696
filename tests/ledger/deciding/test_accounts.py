"""Tests of quotes and cash, and of the events for positions after a resolution, a cancellation or a correction."""

from fractions import Fraction
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand, Prices
from forecast_ledger.ledger.model.events import (
    AnyEvent,
    PositionRefunded,
    PositionSettled,
    QuestionResolved,
    SettlementReversed,
    TradesVoided,
)
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import oracle
from tests.support.given import (
    AFTER,
    NOW,
    annulment,
    bet,
    cancellation,
    cash_out,
    closing,
    cohort,
    contest,
    day,
    decision,
    deposit,
    enrolment,
    entry,
    finalization,
    given,
    market,
    micros,
    numeric,
    palette,
    quote,
    quotes,
    ran,
    remembered,
    resolution,
    revocation,
    sale,
    trading_floor,
)

MONEY = SHARES = 10**6
ONE = 10**9  # a price or payout of 1
OPEN = RuleSet(name="open", trading=Trading(recapitalisation=True))
TRADED, OPEN_FLOOR = trading_floor("ada", "bob"), trading_floor("ada", "bob", rules=OPEN)
DONE: list[AnyCommand] = [*trading_floor(rules=OPEN), decision(), finalization("week")]
CUP: list[AnyCommand] = [contest(), enrolment()]
RAIN: AnyCommand = market()
COLOUR: AnyCommand = palette()
IMPOSSIBLE = ("1.000000001", "-0.000000001", 7, "1e31")


def of_rain(prices: dict[str, Any], question: str = "rain") -> Prices:
    """Return the prices of a question, for a command that quotes several."""
    return Prices(question=question, prices=prices)


CROSSED: dict[str, Any] = {"bids": {"red": "0.1", "blue": 1}, "asks": {"red": "0.1", "blue": "0.5"}}
NO_QUOTES: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("malformed", "quotes", [RAIN], quotes()),
    ("malformed", "quotes", [RAIN], structs.replace(quote(), question=None)),
    ("malformed", "quotes", [RAIN], structs.replace(quote(), prices=None)),
    ("malformed", "quotes", [RAIN], structs.replace(quotes(of_rain({"yes": 1})), bids={"yes": 0})),
    ("malformed", "quotes", [RAIN], structs.replace(quote(), quotes=(of_rain({"yes": 1}),))),
    ("malformed", "quotes", [RAIN], structs.replace(quotes(of_rain({"yes": 1})), question="rain")),
    *[("out_of_range", "prices.yes", [RAIN], quote(prices={"yes": price})) for price in IMPOSSIBLE],
    ("unknown_question", "question", [RAIN], quote("hail")),
    ("unknown_question", "question", [RAIN], quotes(of_rain({"yes": 1}), of_rain({"yes": 1}, "hail"))),
    ("duplicate_question", "quotes", [RAIN], quotes(of_rain({"yes": 1}), of_rain({"yes": 1}))),
    ("wrong_fields_for_kind", "prices", [numeric()], quote("depth")),
    ("wrong_fields_for_kind", "prices", [RAIN], quote(prices={})),
    ("wrong_fields_for_kind", "prices", [COLOUR], quote("colour", prices={})),
    *[("unknown_outcome", "prices", [RAIN], quote(prices={name: "0.4"})) for name in ("no", "YES", "red")],
    ("unknown_outcome", "prices", [RAIN], quote(prices={"yes": "0.4", "no": "0.6"})),
    *[("unknown_outcome", "prices", [COLOUR], quote("colour", prices={name: 1})) for name in ("yes", "Red", "pink")],
    ("out_of_range", "bids.yes", [RAIN], quote(bids={"yes": "-0.1"}, asks={"yes": 2})),
    ("out_of_range", "asks.yes", [RAIN], quotes(Prices(question="rain", asks={"yes": 2}))),
    ("wrong_fields_for_kind", "prices", [RAIN], quotes(Prices(question="rain"))),
    ("wrong_fields_for_kind", "prices", [RAIN], quote(prices=None, ask_sizes={"yes": 1})),
    ("out_of_range", "ask_sizes.yes", [RAIN], quote(ask_sizes={"yes": "-0.000001"})),
    ("out_of_range", "bid_sizes.yes", [RAIN], quote(bid_sizes={"yes": "1000000000000.000001"})),
    ("unknown_outcome", "bid_sizes", [RAIN], quote(bid_sizes={"no": 1})),
    ("wrong_fields_for_kind", "prices", [numeric()], quote("depth", prices=None, bids={"1": 1})),
    ("unknown_outcome", "bids", [RAIN], quote(bids={"no": "0.5"})),
    ("unknown_outcome", "asks", [COLOUR], quote("colour", prices=None, asks={"pink": "0.5"})),
    ("crossed_quote", "bids", [RAIN], quote(bids={"yes": "0.400000001"}, asks={"yes": "0.4"})),
    ("crossed_quote", "bids", [COLOUR], quotes(Prices(question="colour", **CROSSED))),
    ("wrong_order_of_instants", "quoted_at", [RAIN], quote(quoted_at="2026-03-02T00:00:00.000001Z")),
    ("out_of_order", "quoted_at", [RAIN, quote(at=day(3))], quote(at=day(3), quoted_at="2026-03-02T23:59:59.999999Z")),
    ("out_of_order", "quoted_at", [RAIN, quote(at=day(3))], quote()),
    (
        "out_of_order",
        "quoted_at",
        [RAIN, COLOUR, quote(at=day(3))],
        quotes(of_rain({"red": 1}, "colour"), of_rain({"yes": 1})),
    ),
]
NO_CASH: list[tuple[str, str, list[AnyCommand], dict[str, Any]]] = [
    *[("out_of_range", "amount", OPEN_FLOOR, {"amount": amount}) for amount in (0, -1, "0.0000005", "1e31")],
    ("unknown_contest", "contest", OPEN_FLOOR, {"contest": "month"}),
    ("contest_finalized", "contest", DONE, {}),
    ("not_trading", "contest", CUP, {"contest": "cup"}),
    ("not_enrolled", "participant", OPEN_FLOOR, {"participant": "cyd"}),
    ("no_recapitalisation", "contest", TRADED, {}),
]
Promise = tuple[str, str, str, list[AnyCommand], AnyCommand]
REFUSED: list[Promise] = [
    *[("quote_prices", *row) for row in NO_QUOTES],
    *[("deposit_cash", code, field, history, deposit(**fields)) for code, field, history, fields in NO_CASH],
    ("deposit_cash", "out_of_range", "amount", OPEN_FLOOR, deposit("1000000000.000001")),
    ("deposit_cash", "no_recapitalisation", "amount", [*OPEN_FLOOR, deposit(10**9)], deposit("0.000001")),
    *[("withdraw_cash", code, field, history, cash_out(**fields)) for code, field, history, fields in NO_CASH],
    ("withdraw_cash", "not_enough_cash", "amount", OPEN_FLOOR, cash_out("10000.000001")),
    ("withdraw_cash", "not_enough_cash", "amount", [*OPEN_FLOOR, decision(bet(500))], cash_out(9_501)),
    ("withdraw_cash", "not_enough_cash", "amount", [*OPEN_FLOOR, cash_out(10_000)], cash_out("0.000001")),
    *[("trading_account", *row[:3], deposit(**row[3])) for row in NO_CASH[4:8]],
]
FUNCTIONS = sorted({function for function, *_ in REFUSED})


# Two faults at once: the two codes, the one to report first, the history and the command.
ORDER: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("malformed", "out_of_range", [RAIN], structs.replace(quote(prices={"yes": 2}), quotes=())),
    ("out_of_range", "unknown_question", [], quote(prices={"yes": 2})),
    ("unknown_question", "duplicate_question", [RAIN], quotes(*[of_rain({"yes": 1}, "hail")] * 2)),
    ("unknown_question", "wrong_order_of_instants", [], quote(quoted_at=day(9))),
    ("duplicate_question", "wrong_fields_for_kind", [RAIN], quotes(of_rain({}), of_rain({}))),
    ("wrong_fields_for_kind", "unknown_outcome", [numeric()], quote("depth", prices={"1": 1})),
    ("unknown_outcome", "wrong_order_of_instants", [RAIN], quote(prices={"no": 1}, quoted_at=day(9))),
    ("unknown_outcome", "crossed_quote", [COLOUR], quote("colour", **CROSSED | {"prices": {"pink": 1}})),
    ("crossed_quote", "wrong_order_of_instants", [COLOUR], quote("colour", prices={}, **CROSSED, quoted_at=day(9))),
    ("wrong_order_of_instants", "out_of_order", [RAIN, quote(at=day(9))], quote(quoted_at=day(3))),
    ("out_of_range", "unknown_contest", [], deposit(0)),
    ("contest_finalized", "not_enrolled", DONE, cash_out(participant="cyd")),
    ("not_trading", "not_enrolled", CUP, deposit(contest="cup", participant="cyd")),
    ("not_enrolled", "no_recapitalisation", TRADED, cash_out(participant="cyd")),
    ("no_recapitalisation", "not_enough_cash", TRADED, cash_out(10_001)),
]


def quoted(*quotes: tuple[str, tuple[int | None, ...]], at: int = micros(2), quoted_at: int = micros(2)) -> AnyEvent:
    """Return the event of a quote."""
    recorded = tuple(events.Quote(question=question, prices=prices) for question, prices in quotes)
    return events.PricesQuoted(at=at, source="feed", quoted_at=quoted_at, quotes=recorded)


@pytest.mark.parametrize(
    ("price", "yes"),
    [("0.4", 400_000_000), (0, 0), (1, ONE), ("0.1", 100_000_000), (0.9, 900_000_000), ("0.1234567895", 123_456_790)],
)
def test_the_price_of_no_is_one_less_that_of_yes(price: Any, yes: int) -> None:
    """Prices are rounded half-even to 1e-9, so that both sum to exactly 1."""
    given(RAIN).when(quote(prices={"yes": price})).records(quoted(("rain", (yes, ONE - yes))))


def booked(question: str, *sides: tuple[int | None, ...]) -> AnyEvent:
    """Return the event of a quote with prices, bids and asks, in hundredths."""
    prices, bids, asks = (tuple(None if side is None else side * ONE // 100 for side in row) for row in sides)
    quote = events.Quote(question=question, prices=prices, bids=bids, asks=asks)
    return events.PricesQuoted(at=micros(2), source="feed", quoted_at=micros(2), quotes=(quote,))


@pytest.mark.parametrize(
    ("fields", "sides"),
    [
        ({"prices": None, "bids": {"yes": "0.38"}, "asks": {"yes": "0.42"}}, ((40, 60), (38, 58), (42, 62))),
        ({"prices": {"yes": "0.45"}, "bids": {"yes": "0.38"}, "asks": {"yes": "0.42"}}, ((45, 55), (38, 58), (42, 62))),
        ({"prices": {"yes": "0.45"}, "bids": {"yes": "0.38"}}, ((45, 55), (38, None), (None, 62))),
        ({"prices": None, "asks": {"yes": "0.42"}}, ((None, None), (None, 58), (42, None))),
        ({"prices": None, "bids": {"yes": 0}, "asks": {"yes": 1}}, ((50, 50), (0, 0), (100, 100))),
    ],
)
def test_who_buys_no_at_its_ask_sells_yes_at_its_bid(fields: dict[str, Any], sides: Any) -> None:
    """In a binary question, the bid of no is 1 - the ask of yes, and its ask 1 - the bid of yes; a price that is not
    given is the mean of bid and ask.
    """
    given(RAIN).when(quote(**fields)).records(booked("rain", *sides))


def test_each_named_outcome_has_its_own_bid_and_ask() -> None:
    """The price is given, or the mean of bid and ask, or missing; a bid may equal its ask."""
    fields: dict[str, Any] = {"bids": {"red": "0.2", "green": "0.3"}, "asks": {"red": "0.2", "blue": "0.5"}}
    sides = ((20, 10, None), (20, 30, None), (20, None, 50))
    given(COLOUR).when(quote("colour", prices={"green": "0.1"}, **fields)).records(booked("colour", *sides))
    only = quote("colour", prices={"green": "0.1"}, asks={"red": "0.2"})
    recorded = booked("colour", (None, 10, None), (), (20, None, None))
    given(COLOUR).when(only).records(recorded)


def test_the_bids_of_no_are_the_asks_of_yes_in_size() -> None:
    """Sizes are in 1e-6 shares; a named outcome has its own, or none."""
    [event] = given(RAIN).when(quote(ask_sizes={"yes": 5}, bid_sizes={"yes": "0.5"})).outcome  # type: ignore[misc]
    [row] = event.quotes  # type: ignore[union-attr]
    assert (row.bid_sizes, row.ask_sizes) == ((500_000, 5_000_000), (5_000_000, 500_000))
    [event] = given(RAIN).when(quote(ask_sizes={"yes": 5})).outcome  # type: ignore[misc]
    [row] = event.quotes  # type: ignore[union-attr]
    assert (row.bid_sizes, row.ask_sizes) == ((None, 5_000_000), (5_000_000, None))
    prices = {"red": "0.5"}
    [event] = given(COLOUR).when(quote("colour", prices=prices, bid_sizes={"green": 0})).outcome  # type: ignore[misc]
    [row] = event.quotes  # type: ignore[union-attr]
    assert (row.bid_sizes, row.ask_sizes) == ((None, 0, None), ())


def test_the_mean_of_bid_and_ask_is_rounded_half_even_once() -> None:
    """Between 0.000000001 and 0.000000002 is 0.0000000015, which becomes 0.000000002; no is exactly 1 - it."""
    bids, asks = {"yes": "0.000000001"}, {"yes": "0.000000002"}
    [event] = given(RAIN).when(quote(prices=None, bids=bids, asks=asks)).outcome  # type: ignore[misc]
    assert event.quotes[0].prices == (2, ONE - 2)  # type: ignore[union-attr]


def test_prices_of_named_outcomes_are_recorded_in_their_order_and_some_may_be_missing() -> None:
    """Prices of named outcomes need not sum to 1."""
    given(COLOUR).when(quote("colour", prices={"blue": "0.5", "red": "0.7"})).records(
        quoted(("colour", (700_000_000, None, 500_000_000)))
    )


def test_one_command_may_quote_many_questions() -> None:
    """The event has the questions in the order of the command, with one source and instant."""
    both = quotes(of_rain({"red": 0}, "colour"), of_rain({"yes": "0.4"}), at=day(3), quoted_at="2026-03-02T12:00:00Z")
    given(RAIN, COLOUR).when(both).records(
        quoted(("colour", (0, None, None)), ("rain", (400_000_000, 600_000_000)), at=micros(3), quoted_at=micros(2, 12))
    )


def test_a_question_may_be_quoted_at_the_instant_of_the_last_quote() -> None:
    """Only the instants of the prices must be in order, question by question; the question may be settled or not yet
    open.
    """
    late = quote(at=day(9), quoted_at=day(3))
    story = [RAIN, COLOUR, late, quote(at=day(4), quoted_at=day(3)), quote("colour", prices={"red": 1}), resolution()]
    given(*story).when(quote(at=AFTER)).records(
        quoted(("rain", (400_000_000, 600_000_000)), at=micros(25), quoted_at=micros(25))
    )
    given(RAIN).when(quote(at="2026-02-01T00:00:00Z")).records(
        quoted(("rain", (400_000_000, 600_000_000)), at=micros(1) - 28 * 86_400 * MONEY, quoted_at=micros(-27))
    )


# The change of the participant's cash by each event.
CASH: dict[type[AnyEvent], Any] = {
    events.CashGranted: lambda event: event.amount,
    events.CashDeposited: lambda event: event.amount,
    events.CashWithdrawn: lambda event: -event.amount,
    events.SharesBought: lambda event: -event.amount,
    events.SharesSold: lambda event: event.proceeds,
    events.PositionSettled: lambda event: event.proceeds,
    events.PositionRefunded: lambda event: event.cost,
    events.TradesVoided: lambda event: event.amount,
    events.SettlementReversed: lambda event: -event.amount,
}


def _account_of(event: Any) -> tuple[str, str]:
    return event.contest, event.participant


def cash(*story: AnyCommand, who: str = "ada") -> Fraction:
    """Return the cash of a participant of the week after a story, from its events and from the writer's state."""
    with oracle.telling(":memory:", oracle.with_ids(story), NOW) as (ledger, refused):
        assert not refused, refused
        events = [each.event for each in oracle.events_of(ledger) if type(each.event) in CASH]
        moved = [CASH[type(event)](event) for event in events if _account_of(event) == ("week", who)]
        assert ledger._known.state.accounts["week", who].cash == sum(moved)
        return Fraction(sum(moved), MONEY)


def test_cash_is_paid_in_and_out_where_the_rules_allow_it() -> None:
    """Cash is in 1e-6, with the reason; all of it may be withdrawn."""
    who: dict[str, Any] = {"at": micros(2), "contest": "week", "participant": "ada"}
    given(*OPEN_FLOOR).when(deposit("0.000001")).records(events.CashDeposited(**who, amount=1, reason="more"))
    given(*OPEN_FLOOR).when(cash_out("10000.00")).records(
        events.CashWithdrawn(**who, amount=10_000 * MONEY, reason="less")
    )
    assert cash(*OPEN_FLOOR, deposit(2_000), cash_out(500), deposit(), cash_out(12_500)) == 0
    assert cash(*OPEN_FLOOR, deposit(2_000), who="bob") == 10_000


def test_cash_paid_in_raises_the_cap() -> None:
    """With 12,000 in cash, a bet may be 3,000."""
    assert cash(*OPEN_FLOOR, deposit(2_000), decision(bet(3_000))) == 9_000


HELD = [*TRADED, decision(bet(500))]  # 1,250 shares of yes at 0.40, cash 9,500


def of_yes(kind: Any, **fields: Any) -> Any:
    """Return an event about Ada's first position, after the close."""
    position = {"contest": "week", "participant": "ada", "question": "rain", "outcome": 0, "position": 1}
    return kind(**({"at": micros(25)} | position | fields))


ALL: dict[str, Any] = {"shares": 1_250 * SHARES, "cost": 500 * MONEY}
YES, NO = (QuestionResolved(at=micros(25), question="rain", outcome=index, known_at=micros(25)) for index in (0, 1))
EVEN = QuestionResolved(at=micros(25), question="rain", outcome=-1, known_at=micros(25), payouts=(ONE // 2, ONE // 2))
HALVES = resolution(payouts={"yes": "0.5", "no": "0.5"})


def test_a_winning_share_pays_one_and_a_losing_one_nothing() -> None:
    """1,250 shares bought for 500 pay 1,250, a profit of 750.

    Source: Forecaster Arena, Scoring Methodology, "Settlement (Market Resolution)".
    """
    won, lost = (of_yes(PositionSettled, **ALL, payout=ONE * win, proceeds=1_250 * SHARES * win) for win in (1, 0))
    given(*HELD).when(resolution()).records(YES, won)
    given(*HELD).when(resolution(outcome="no")).records(NO, lost)
    assert cash(*HELD, resolution()) == 10_750
    assert cash(*HELD, resolution(outcome="no")) == 9_500


def test_a_share_pays_its_part_where_the_payouts_say_so() -> None:
    """Each outcome pays its part, in order of the outcomes; here half."""
    given(*HELD).when(HALVES).records(EVEN, of_yes(PositionSettled, **ALL, payout=ONE // 2, proceeds=625 * MONEY))
    assert cash(*HELD, HALVES) == 10_125
    quarter = resolution(payouts={"no": "0.75", "yes": "0.25"})
    assert cash(*HELD, quarter) == Fraction("9812.5")
    three = resolution("colour", payouts={"red": "0.2", "green": "0.5", "blue": "0.3"})
    colours = [*TRADED, decision(bet(500, "red", "colour"), bet(300, "green", "colour"))]  # 1,000 shares of each
    assert cash(*colours, three) == 9_200 + 200 + 500


def test_payouts_of_one_outcome_alone_settle_as_the_outcome_does() -> None:
    """The events are the same."""
    assert ran(*HELD, resolution(payouts={"yes": 1, "no": 0})) == ran(*HELD, resolution())


def test_what_a_settlement_pays_is_rounded_down() -> None:
    """166.666666 shares of no at a third pay 55.555555(3)."""
    history = [*TRADED, decision(bet(100, "no"))]
    third = resolution(payouts={"yes": "0.666666667", "no": "0.333333333"})
    settled = ran(*history, third)[-1]
    assert isinstance(settled, PositionSettled)
    assert settled.proceeds == 166_666_666 * 333_333_333 // ONE == 55_555_555


THIRDS = resolution("colour", payouts=dict.fromkeys(("red", "green", "blue"), "1/3"))


def test_three_shares_that_pay_a_third_pay_one() -> None:
    """600 shares of red at a third pay 200, exactly; 1,000 of green pay 333.333333, rounded down."""
    history = [*TRADED, decision(bet(300, "red", "colour"), bet(300, "green", "colour"))]
    red, green = ran(*history, THIRDS)[-2:]
    assert isinstance(red, PositionSettled)
    assert isinstance(green, PositionSettled)
    assert (red.shares, red.payout, red.payout_unit, red.proceeds) == (600 * SHARES, 1, 3, 200 * MONEY)
    assert (green.shares, green.proceeds) == (1_000 * SHARES, 333_333_333)
    other = resolution("colour", outcome="blue")
    assert cash(*history, THIRDS) == 9_400 + 200 + Fraction("333.333333")
    assert cash(*history, THIRDS, revocation("colour"), other) == cash(*history, other) == 9_400
    assert cash(*history, other, revocation("colour"), THIRDS) == cash(*history, THIRDS)
    assert cash(*history, THIRDS, annulment("colour"), revocation("colour")) == cash(*history, THIRDS)


def test_every_open_position_is_settled_in_order_of_contest_participant_and_number() -> None:
    """The settlements are in the transaction of the resolution; positions in other questions and closed ones are
    unchanged.
    """
    second: list[AnyCommand] = [cohort("a week", series="b"), entry("a week"), enrolment("a week", "zoe")]
    story = [*trading_floor("cyd", "bob"), *second]
    story += [decision(bet(50, "red", "colour"), bet(60, "no"), bet(70), participant="cyd")]
    story += [decision(bet(80, "no"), bet(90), participant="bob"), decision(bet(), contest="a week", participant="zoe")]
    story += [quote(at=day(9)), decision(sale(100, 2), participant="bob", period=2, at=day(9))]
    settled = [event for event in ran(*story, resolution()) if isinstance(event, PositionSettled)]
    assert [(event.contest, event.participant, event.position, event.outcome, event.payout) for event in settled] == [
        ("a week", "zoe", 1, 0, ONE),
        ("week", "bob", 1, 1, 0),
        ("week", "cyd", 2, 1, 0),
        ("week", "cyd", 3, 0, ONE),
    ]


def test_a_resolution_without_open_positions_is_a_single_event() -> None:
    """The resolution is then the only event."""
    given(*TRADED).when(resolution()).records(YES)


SOLD = [*HELD, quote(at=day(9), prices={"yes": "0.8"})]


def part_sold(percentage: Any) -> list[AnyCommand]:
    """Return the commands that sell a part of the position at twice its price."""
    return [*SOLD, decision(sale(percentage), period=2, at=day(9))]


ANNULLED = events.QuestionAnnulled(at=micros(25), question="rain", reason="no source")
VOID = structs.replace(ANNULLED, policy="void_trades")


def test_a_cancelled_market_refunds_the_cost_of_open_positions() -> None:
    """Earlier sales stand, and closed positions get nothing. Source: Forecaster Arena's published code."""
    given(*HELD).when(annulment()).records(ANNULLED, of_yes(PositionRefunded, **ALL))
    left = of_yes(PositionRefunded, shares=625 * SHARES, cost=250 * MONEY)
    given(*part_sold(50)).when(cancellation(policy="refund_cost")).records(ANNULLED, left)
    given(*part_sold(100)).when(annulment()).records(ANNULLED)
    assert [cash(*story, annulment()) for story in (HELD, part_sold(50), part_sold(100))] == [10_000, 10_250, 10_500]


def test_voided_trades_leave_the_cash_as_it_was_before_them() -> None:
    """The amount is all that was paid less all that was received, also for closed positions, and may be negative.

    Source: Manifold, where a cancelled market does the same.
    """
    given(*HELD).when(cancellation()).records(VOID, of_yes(TradesVoided, **ALL, amount=500 * MONEY))
    half = of_yes(TradesVoided, shares=625 * SHARES, cost=250 * MONEY, amount=0)
    given(*part_sold(50)).when(cancellation()).records(VOID, half)
    closed = of_yes(TradesVoided, shares=0, cost=0, amount=-500 * MONEY)
    given(*part_sold(100)).when(cancellation()).records(VOID, closed)
    assert [cash(*story, cancellation()) for story in (HELD, part_sold(50), part_sold(100))] == [10_000] * 3


@pytest.mark.parametrize(("percentage", "refunded", "left"), [(50, 250, 10_000), (90, 0, 10_110)])
def test_a_stake_is_what_was_bought_less_what_was_sold_and_nothing_is_taken(
    percentage: int, refunded: int, left: int
) -> None:
    """700 buy 1,000 shares at 0.70; half of them are sold at 0.90 for 450, or nine in ten for 810."""
    history = [
        *trading_floor(),
        quote(prices={"yes": "0.7"}),
        decision(bet(700)),
        quote(at=day(9), prices={"yes": "0.9"}),
    ]
    history += [decision(sale(percentage), period=2, at=day(9)), resolution(outcome="no")]
    story = ran(*history, cancellation(policy="refund_stake"))
    assert isinstance(story[-1], TradesVoided)
    assert (story[-1].amount, story[-1].fee) == (refunded * MONEY, 0)
    assert cash(*history, cancellation(policy="refund_stake")) == left


def test_a_position_sold_for_8_more_than_it_had_cost_is_voided_for_minus_8() -> None:
    """125 shares were bought at 0.40 for 50 and sold at 0.464 for 58."""
    history = [*TRADED, decision(bet(50)), quote(at=day(9), prices={"yes": "0.464"})]
    voided = ran(*history, decision(sale(), period=2, at=day(9)), cancellation())[-1]
    assert voided == of_yes(TradesVoided, shares=0, cost=0, amount=-8 * MONEY)


def test_every_position_ever_opened_is_voided() -> None:
    """The position that was sold out is voided, and so is the one that was opened after it."""
    history = [*part_sold(100), quote(at=day(15)), decision(bet(400), period=3, at=day(15))]
    assert ran(*history, cancellation())[-2:] == [
        of_yes(TradesVoided, shares=0, cost=0, amount=-500 * MONEY),
        of_yes(TradesVoided, position=2, shares=1_000 * SHARES, cost=400 * MONEY, amount=400 * MONEY),
    ]
    assert ran(*history, annulment())[-1] == of_yes(
        PositionRefunded, position=2, shares=1_000 * SHARES, cost=400 * MONEY
    )
    assert [cash(*history, undone) for undone in (cancellation(), annulment())] == [10_000, 10_500]


REVOKED = events.ResolutionRevoked(at=micros(25), question="rain", reason="misread")
FIRST = len(ran(*HELD)) + 2  # the log position of the first settlement after it


def test_a_revoked_resolution_reverses_its_settlements() -> None:
    """Each reversal has the log position of its settlement; the position is open again, and is settled later."""
    back = of_yes(SettlementReversed, reverses=FIRST, amount=1_250 * MONEY)
    given(*HELD, resolution()).when(revocation()).records(REVOKED, back)
    lost = of_yes(PositionSettled, **ALL, payout=0, proceeds=0)
    given(*HELD, resolution(), revocation()).when(resolution(outcome="no")).records(NO, lost)
    nothing = of_yes(SettlementReversed, reverses=FIRST, amount=0)
    given(*HELD, resolution(outcome="no")).when(revocation()).records(REVOKED, nothing)
    assert cash(*HELD, resolution(), revocation()) == 9_500


def test_a_corrected_resolution_leaves_the_same_cash_as_the_right_one() -> None:
    """There may be any number of corrections, made in any way."""
    once: list[AnyCommand] = [resolution(), revocation()]
    twice: list[AnyCommand] = [HALVES, revocation(), annulment(), revocation(), cancellation()]
    lasts: list[AnyCommand] = [resolution(outcome="no"), resolution(), HALVES, annulment()]
    for last, left in zip(lasts, (9_500, 10_750, 10_125, 10_000), strict=True):
        assert cash(*HELD, last) == left
        assert cash(*HELD, *once, last) == left
        assert cash(*HELD, *once, *twice, revocation(), last) == left


def test_an_annulled_resolution_is_first_reversed() -> None:
    """In one transaction, the settlement is reversed; then the cost, or all that was paid, is refunded."""
    back = of_yes(SettlementReversed, reverses=FIRST, amount=1_250 * MONEY)
    given(*HELD, resolution()).when(annulment()).records(ANNULLED, back, of_yes(PositionRefunded, **ALL))
    void = of_yes(TradesVoided, **ALL, amount=500 * MONEY)
    given(*HELD, resolution()).when(cancellation()).records(VOID, back, void)
    assert cash(*HELD, resolution(), annulment()) == cash(*HELD, resolution(), cancellation()) == 10_000


def test_an_annulled_resolution_also_voids_positions_closed_before_it() -> None:
    """The resolution did not settle the closed position, so no settlement is reversed."""
    half = of_yes(TradesVoided, shares=0, cost=0, amount=-500 * MONEY)
    given(*part_sold(100), resolution()).when(cancellation()).records(VOID, half)


def test_a_revoked_annulment_opens_the_positions_again() -> None:
    """The question was not resolved before the annulment; afterwards it can be."""
    history: list[AnyCommand] = [*HELD, annulment()]
    back = of_yes(SettlementReversed, reverses=FIRST, amount=500 * MONEY)
    given(*history).when(revocation()).records(REVOKED, back)
    won = of_yes(PositionSettled, **ALL, payout=ONE, proceeds=1_250 * MONEY)
    given(*history, revocation()).when(resolution()).records(YES, won)


def test_a_revoked_annulment_of_a_resolved_question_settles_the_positions_again() -> None:
    """In one transaction, the refund is reversed, and the resolution stands again and pays 1,250 as before."""
    back = of_yes(SettlementReversed, reverses=FIRST + 3, amount=500 * MONEY)
    won = of_yes(PositionSettled, **ALL, payout=ONE, proceeds=1_250 * MONEY)
    given(*HELD, resolution(), annulment()).when(revocation()).records(REVOKED, back, YES, won)
    half = of_yes(PositionSettled, **ALL, payout=ONE // 2, proceeds=625 * MONEY)
    given(*HELD, HALVES, annulment()).when(revocation()).records(REVOKED, back, EVEN, half)


@pytest.mark.parametrize("undone", [annulment(), cancellation()], ids=["refund", "void"])
def test_an_annulment_that_is_revoked_leaves_the_cash_of_the_resolution(undone: AnyCommand) -> None:
    """Partly sold and closed positions are included; a second revocation gives the state before the resolution."""
    for story in (HELD, part_sold(50), part_sold(100)):
        for resolved in (resolution(), resolution(outcome="no"), HALVES):
            again = [*story, resolved, undone, revocation()]
            assert cash(*again) == cash(*story, resolved)
            assert cash(*again, undone, revocation()) == cash(*story, resolved)
            assert cash(*again, revocation()) == cash(*story)


def test_a_market_cannot_have_closed_before_a_trade_in_it() -> None:
    """A sale counts too; the refusal names the last trade's instant, after which the market may close."""
    refused = given(*part_sold(50)).when(closing(at=day(9)))
    refused.refuses("out_of_order", "at")
    assert "traded at 2026-03-09T00:00:00Z" in str(refused.outcome)
    assert isinstance(given(*part_sold(50)).when(closing(at="2026-03-09T00:00:00.000001Z")).outcome, list)


def test_a_revoked_void_restores_open_and_closed_positions() -> None:
    """A negative amount is reversed too; sold positions stay sold."""
    back = of_yes(SettlementReversed, reverses=FIRST + 3, amount=-500 * MONEY)
    given(*part_sold(100), cancellation()).when(revocation()).records(REVOKED, back)
    given(*part_sold(100), cancellation(), revocation()).when(resolution()).records(YES)
    assert cash(*part_sold(100), cancellation(), revocation()) == 10_500
    half = [*part_sold(50), cancellation(), revocation()]
    assert cash(*half) == 9_750 + 250  # 9,500 and 625 shares sold at 0.80
    assert cash(*half, resolution()) == 10_000 + 625


def test_a_settled_position_that_is_open_again_may_grow_and_is_settled_as_it_then_is() -> None:
    """Shares bought after the correction count in the next settlement."""
    early: dict[str, Any] = {"at": day(9), "known_at": day(9)}
    history = [*HELD, resolution(**early), revocation(at=day(9)), quote(at=day(9))]
    history += [decision(bet(400), period=2, at=day(9))]
    settled = ran(*history, resolution())[-1]
    assert settled == of_yes(
        PositionSettled, shares=2_250 * SHARES, cost=900 * MONEY, payout=ONE, proceeds=2_250 * MONEY
    )


BROKE = [
    *trading_floor("ada", "bob", rules=OPEN),
    quote(at=day(2, 1), prices={"yes": "0.1"}),
    decision(bet(2_500), at=day(2, 1)),  # 25,000 shares; cash 7,500
    resolution(at=day(8), known_at=day(8)),  # cash 32,500
    quote("colour", at=day(9), prices={"red": "0.5"}),
    decision(bet(8_125, "red", "colour"), period=2, at=day(9)),  # 16,250 shares; cash 24,375
    revocation(at=day(9)),
]


def test_a_correction_may_leave_a_debt() -> None:
    """Cash may be below 0 and is never clamped; later winnings pay the debt."""
    assert cash(*BROKE) == -625
    assert cash(*BROKE, resolution(outcome="no")) == -625
    assert cash(*BROKE, resolution(outcome="no"), resolution("colour", outcome="red")) == 15_625
    assert cash(*BROKE, resolution()) == 24_375


def test_a_participant_in_debt_may_sell_and_deposit_but_not_bet_or_withdraw() -> None:
    """With negative cash, the cap of a bet is 0."""
    given(*BROKE).when(cash_out("0.000001")).refuses("not_enough_cash", "amount")
    assert cash(*BROKE, deposit(700)) == 75
    third: dict[str, Any] = {"period": 3, "at": day(15)}
    outcome = given(*BROKE, quote(at=day(15))).when(decision(bet(50), **third)).outcome
    assert isinstance(outcome, list)
    assert isinstance(outcome[-1], events.DecisionMalformed)
    assert outcome[-1].fault == "above_cap"
    paid = [*BROKE, quote("colour", at=day(15), prices={"red": "0.25"}), decision(sale(100, 2), **third)]
    assert cash(*paid) == Fraction("3437.5")  # 16,250 shares at 0.25, less 625


def test_a_sealed_contest_is_not_touched_by_a_correction() -> None:
    """The board of a finalized contest stays; in other contests, the correction moves cash."""
    other: list[AnyCommand] = [cohort("open", series="b"), entry("open"), enrolment("open")]
    story = [*trading_floor(), *other, decision(bet(500)), decision(bet(100), contest="open"), resolution()]
    sealed = [*story, finalization("week")]
    moved = [of_yes(SettlementReversed, contest="open", reverses=len(ran(*story)) - 1, amount=250 * MONEY)]
    given(*sealed).when(revocation()).records(REVOKED, *moved)
    refund = of_yes(PositionRefunded, contest="open", shares=250 * SHARES, cost=100 * MONEY)
    given(*sealed).when(annulment()).records(ANNULLED, *moved, refund)
    lost = of_yes(PositionSettled, contest="open", shares=250 * SHARES, cost=100 * MONEY, payout=0, proceeds=0)
    given(*sealed, revocation()).when(resolution(outcome="no")).records(NO, lost)
    assert cash(*sealed, revocation(), resolution(outcome="no")) == 10_750


UNDONE: dict[str, tuple[list[AnyCommand], list[AnyCommand]]] = {
    "a contest, its first position and its end": (
        [],
        [*trading_floor(), decision(bet(500)), resolution(), finalization("week")],
    ),
    "prices": ([], [RAIN, COLOUR, quote(), quote(at=day(3))]),
    "cash": (OPEN_FLOOR, [deposit(), cash_out(), deposit(participant="bob")]),
    "a second position": (SOLD, [decision(bet(500, "no"), sells=None, period=2, at=day(9))]),
    "an exit and another position": (SOLD, [decision(sale(), period=2, at=day(9)), quote(at=day(15))]),
    "a resolution": (part_sold(50), [resolution(), revocation(), HALVES]),
    "a cancellation": (part_sold(50), [resolution(), annulment(), revocation(), cancellation()]),
    "a reversal": ([*part_sold(100), cancellation()], [revocation(), resolution()]),
    "a debt": (BROKE[:-1], [BROKE[-1], resolution(outcome="no")]),
}


@pytest.mark.parametrize(("before", "batch"), UNDONE.values(), ids=UNDONE.keys())
def test_a_refused_atomic_batch_leaves_the_whole_state_as_it_was(
    before: list[AnyCommand], batch: list[AnyCommand]
) -> None:
    """Every table is as before, also for a writer that opens the ledger again; afterwards the batch is accepted."""
    bad: AnyCommand = structs.replace(quote("hail"), id="bad")
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle_many([structs.replace(command, id=f"b{number}") for number, command in enumerate(before)])
        state, head = remembered(ledger), ledger.head()
        commands_sent = [structs.replace(command, id=f"c{number}") for number, command in enumerate(batch)]
        assert all(isinstance(outcome, Refused) for outcome in ledger.handle_many([*commands_sent, bad], atomic=True))
        assert (remembered(ledger), ledger.head()) == (state, head)
        assert not any(isinstance(outcome, Refused) for outcome in ledger.handle_many(commands_sent, atomic=True))
        assert remembered(ledger) != state


def test_a_state_read_from_the_log_is_that_of_its_writer(tmp_path: Any) -> None:
    """Every table is equal, so the next decision does not depend on which writer makes it."""
    story = [*BROKE, resolution(outcome="no"), deposit(5_000), cohort("next", at=day(8)), annulment("colour")]
    with Ledger.open(tmp_path / "a.db", clock=lambda: NOW) as ledger:
        ledger.handle_many([structs.replace(command, id=f"c{number}") for number, command in enumerate(story)])
        state = remembered(ledger)
    with Ledger.open(tmp_path / "a.db", clock=lambda: NOW) as reader:
        reader.head()
        assert remembered(reader) == state
