"""Tests of the legs of a decision: purchases and sales to the last unit, and the reasons why a leg is refused."""

from fractions import Fraction
from math import floor
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, Bet, Prices, Sale
from forecast_ledger.ledger.model.events import DecisionRecorded, LegEvent, LegRefused, SharesBought, SharesSold
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import LEG_CODES, Trading
from tests.support.effort import times
from tests.support.given import (
    OPENS,
    annulment,
    bet,
    closing,
    cohort,
    day,
    decision,
    enrolment,
    entry,
    given,
    market,
    micros,
    numeric,
    opened,
    palette,
    quote,
    quotes,
    ran,
    resolution,
    revocation,
    sale,
    trading_floor,
)

MONEY = SHARES = 10**6
ONE = 10**9  # a price or confidence of 1
FREE = Trading(least_bet_micros=1, cap_divisor=1, least_percentage_micros=1, period_days=0, stale_after_seconds=10**9)
TRADED = trading_floor("ada", "bob")
NOON = day(2, 12)


def millionths(number: str | Fraction) -> int:
    """Return money or shares as recorded, in 1e-6; the number must not have more decimals."""
    units = Fraction(number) * 10**6
    assert units.denominator == 1
    return units.numerator


def carried_out(history: list[AnyCommand], *legs: Bet | Sale, **fields: Any) -> list[Any]:
    """Return the result of each leg of a decision: shares bought or sold, or the code with which it is refused."""
    outcome = given(*history).when(decision(*legs, **fields)).outcome
    assert isinstance(outcome, list), outcome
    done = [event for event in outcome if isinstance(event, LegEvent)]
    [recorded] = [event for event in outcome if isinstance(event, DecisionRecorded)]
    assert [event.leg for event in done] == list(range(1, len(legs) + 1))
    assert recorded.executed == sum(not isinstance(event, LegRefused) for event in done)
    return [event.code if isinstance(event, LegRefused) else event for event in done]


def free(*prices: AnyCommand, **fields: Any) -> list[AnyCommand]:
    """Return the commands of a contest in which any stake may be bet and any part sold, at these prices."""
    rules = RuleSet(name="free", trading=structs.replace(FREE, **fields))
    return [*trading_floor(rules=rules), *prices]


def written(units: int, unit: int) -> str:
    """Return a number of units as decimal text."""
    places = len(str(unit)) - 1
    return f"{units // unit}.{units % unit:0{places}}"


def test_five_hundred_at_forty_cents_are_1_250_shares() -> None:
    """The event has the log position of the price, and the cash before.

    Source: Forecaster Arena, Scoring Methodology, "Position Mechanics".
    """
    [bought] = carried_out(TRADED, bet(500))
    assert bought == SharesBought(
        at=micros(2),
        contest="week",
        participant="ada",
        period=1,
        attempt=1,
        leg=1,
        question="rain",
        outcome=0,
        position=1,
        price=400_000_000,
        quote=10,  # two questions, the contest, two entries, and for each participant an enrolment and the cash
        cash=10_000 * MONEY,
        amount=500 * MONEY,
        shares=1_250 * SHARES,
        confidence=200_000_000,
    )


# Forecaster Arena, Scoring Methodology, "Deriving Confidence from Bet Size": cash, amount, confidence in percent.
CONFIDENCES = [(10_000, 2_500, 100), (10_000, 1_250, 50), (10_000, 500, 20), (10_000, 50, 2)]
CONFIDENCES += [(8_000, 2_000, 100), (8_000, 500, 25), (200, 50, 100)]


@pytest.mark.parametrize(("cash", "amount", "percent"), CONFIDENCES)
def test_confidence_is_the_stake_over_the_largest_that_the_cash_allows(cash: int, amount: int, percent: int) -> None:
    """The values are those of the document's table."""
    rules = RuleSet(name="own", trading=Trading(starting_cash_micros=cash * MONEY))
    [bought] = carried_out(trading_floor(rules=rules), bet(amount))
    assert Fraction(bought.confidence, ONE) == Fraction(percent, 100)


@pytest.mark.parametrize(
    ("amounts", "confidences"),
    [
        ((1_250, 1_250), (Fraction(1, 2), Fraction(4, 7))),
        ((2_500, 1_875), (Fraction(1), Fraction(1))),
        ((2_500, 1_250), (Fraction(1), Fraction(2, 3))),
    ],
)
def test_confidence_depends_on_the_order_of_the_bets(
    amounts: tuple[int, int], confidences: tuple[Fraction, Fraction]
) -> None:
    """Each bet starts from the cash that earlier bets left; confidence is rounded half-even to 1e-9.

    Source: Forecaster Arena's published code.
    """
    bought = carried_out(TRADED, *map(bet, amounts))
    assert [leg.confidence for leg in bought] == [round(confidence * ONE) for confidence in confidences]
    assert [leg.cash for leg in bought] == [10_000 * MONEY, (10_000 - amounts[0]) * MONEY]


@pytest.mark.parametrize(
    ("prices", "side", "amount", "shares"),
    [
        ({"yes": "0.3"}, "yes", 500, "1666.666666"),
        ({"yes": "0.7"}, "YES", 100, "142.857142"),
        ({"yes": "0.9"}, "no", 500, "5000"),  # 1 - 0.9 is exactly 0.1
        ({"yes": "0.123456789"}, "NO", 500, "570.422534"),  # 500 / 0.876543211
        ({"yes": 1}, "yes", 50, "50"),
        ({"yes": 0}, "no", 50, "50"),
        ({"yes": "0.999999999"}, "yes", "50.000001", "50.000001"),
        ({"yes": "0.000001"}, "yes", 50, "50000000"),
    ],
)
def test_shares_are_rounded_down(prices: dict[str, Any], side: str, amount: Any, shares: str) -> None:
    """Shares are rounded down to 1e-6, at the price of the side; the price of no is exactly 1 - yes."""
    [bought] = carried_out([*TRADED, quote(prices=prices)], bet(amount, side))
    assert bought.shares == millionths(shares)
    assert bought.outcome == (side.lower() == "no")


@settings(max_examples=times(30), deadline=None)
@examples(st.integers(1, ONE), st.integers(1, 2_500 * MONEY))
def test_no_share_is_given_that_was_not_paid_for(price: int, amount: int) -> None:
    """The shares are the largest number of units whose price is at most the amount; confidence is rounded half-even."""
    price_of = quote(prices={"yes": written(price, ONE)})
    [bought] = carried_out(free(price_of, cap_divisor=4), bet(written(amount, MONEY)))
    if bought == "too_many_shares":
        assert Fraction(amount, price) * ONE >= 10**18
        return
    assert bought.shares == floor(Fraction(amount, price) * ONE)
    assert bought.confidence == round(Fraction(amount * ONE, 2_500 * MONEY))


def test_a_second_bet_on_an_outcome_adds_to_the_position() -> None:
    """Shares and cost add up, within a decision and later; the average price is cost / shares.

    Source: Forecaster Arena's published code.
    """
    history: list[AnyCommand] = [*TRADED, decision(bet(500), bet(400)), quote(prices={"yes": "0.8"}, at=day(9))]
    [third] = carried_out(history, bet(800), period=2, at=day(9))
    assert third.position == 1
    story = ran(*history, decision(bet(800), period=2, at=day(9)), resolution(outcome="yes"))
    settled: Any = story[-1]
    assert (settled.shares, settled.cost) == (3_250 * SHARES, 1_700 * MONEY)  # 1,250 + 1,000 + 1,000


def test_each_outcome_is_a_position_of_its_own() -> None:
    """Positions are numbered in order of opening; yes and no of one question are two, and are never netted.

    Source: Forecaster Arena's published code.
    """
    legs = [bet(50, "no"), bet(50, "red", "colour"), bet(50, "NO"), bet(50, "yes"), bet(50, "green", "colour")]
    bought = carried_out(TRADED, *legs)
    assert [(leg.question, leg.outcome, leg.position) for leg in bought] == [
        *[("rain", 1, 1), ("colour", 0, 2), ("rain", 1, 1), ("rain", 0, 3), ("colour", 1, 4)]
    ]


def test_positions_are_numbered_within_contest_and_participant() -> None:
    """The numbers of another participant, or of the same one in another contest, start at 1."""
    other: list[AnyCommand] = [cohort("other", series="b"), entry("other"), enrolment("other")]
    history = [*trading_floor("ada", "bob"), *other, decision(bet())]
    assert [leg.position for leg in carried_out(history, bet(), participant="bob")] == [1]
    assert [leg.position for leg in carried_out(history, bet(), contest="other")] == [1]


BOUGHT = [*TRADED, decision(bet(500)), quote(at=day(9), prices={"yes": "0.6"})]  # 1,250 shares at 0.40, now at 0.60
NEXT: dict[str, Any] = {"period": 2, "at": day(9)}


def test_all_of_a_position_is_sold() -> None:
    """Every share and the whole cost are sold at the price of the side; the event has that price's log position."""
    [sold] = carried_out(BOUGHT, sale(100), **NEXT)
    assert sold == SharesSold(
        at=micros(9),
        contest="week",
        participant="ada",
        period=2,
        attempt=1,
        leg=1,
        question="rain",
        outcome=0,
        position=1,
        price=600_000_000,
        quote=14,  # after the quote of colour, a decision and its leg
        shares=1_250 * SHARES,
        cost=500 * MONEY,
        proceeds=750 * MONEY,
    )


def test_a_percentage_is_of_the_shares_that_are_held_now() -> None:
    """Twice fifty percent leaves a quarter; the cost decreases in proportion. Source: Forecaster Arena's published
    code.
    """
    sold = carried_out(BOUGHT, sale(50), sale(50), **NEXT)
    assert [(leg.shares, leg.cost, leg.proceeds) for leg in sold] == [
        (625 * SHARES, 250 * MONEY, 375 * MONEY),
        (millionths("312.5"), 125 * MONEY, millionths("187.5")),
    ]
    history = [*BOUGHT, decision(sale(50), sale(50), **NEXT), quote(at=day(15))]
    [rest] = carried_out(history, sale(100), period=3, at=day(15))
    assert (rest.shares, rest.cost, rest.proceeds) == (millionths("312.5"), 125 * MONEY, 125 * MONEY)


def test_a_sale_of_no_is_at_the_price_of_no() -> None:
    """The price of no is 1 - yes."""
    history = [*TRADED, decision(bet(300, "no")), quote(at=day(9), prices={"yes": "0.9"})]  # 500 shares at 0.60
    [sold] = carried_out(history, sale(), **NEXT)
    assert (sold.price, sold.shares, sold.proceeds) == (100_000_000, 500 * SHARES, 50 * MONEY)


def test_three_times_a_third_leaves_dust_and_an_open_position() -> None:
    """A position is closed only at exactly 0 shares. Source: Forecaster Arena's published code."""
    sold = carried_out(BOUGHT, *[sale("33.3333")] * 3, **NEXT)
    shares, cost = 1_250 * SHARES, 500 * MONEY
    for leg in sold:
        part = floor(shares * Fraction("0.333333"))
        paid = floor(cost * Fraction(part, shares))
        assert (leg.shares, leg.cost, leg.proceeds) == (part, paid, floor(part * Fraction(3, 5)))
        shares, cost = shares - part, cost - paid
    assert shares == 1_250_000_000 - 416_666_250 - 277_777_638 - 185_185_185 == 370_370_927
    assert cost == 500_000_000 - 166_666_500 - 111_111_055 - 74_074_074 == 148_148_371
    again = [*BOUGHT, decision(*[sale("33.3333")] * 3, **NEXT), quote(at=day(15))]
    [last] = carried_out(again, sale(100), period=3, at=day(15))
    assert (last.position, last.shares, last.cost) == (1, shares, cost)


@settings(max_examples=times(40), deadline=None)
@examples(
    st.integers(1, 5_000 * MONEY),
    st.integers(1, ONE),
    st.integers(0, ONE),
    st.lists(st.integers(1, 10**8), min_size=1, max_size=4),
)
def test_sales_give_no_more_than_there_is(amount: int, bought_at: int, sold_at: int, parts: list[int]) -> None:
    """Shares, their cost and the proceeds are rounded down; 100 percent sells the rest, to the last unit."""
    first, second = (quote(prices={"yes": written(price, ONE)}) for price in (bought_at, sold_at))
    stake = bet(written(amount, MONEY))
    [bought] = carried_out(free(first), stake)
    if bought == "too_many_shares":
        return
    history = [*free(first), decision(stake), second]
    legs = [sale(written(part, 10**6)) for part in parts]
    shares, cost = bought.shares, amount
    for part, leg in zip([*parts, 10**8], carried_out(history, *legs, sale(100), period=2), strict=True):
        sold_part = Fraction(part, 10**8)
        count = floor(shares * sold_part)
        if not count:
            assert leg == ("no_shares" if shares else "no_position")
            continue
        assert (leg.shares, leg.cost) == (count, floor(cost * Fraction(count, shares)))
        assert leg.proceeds == floor(count * Fraction(sold_at, ONE))
        shares, cost = shares - leg.shares, cost - leg.cost
    assert (shares, cost) == (0, 0)


def test_after_a_full_exit_the_same_outcome_opens_a_new_position() -> None:
    """The new position has the next number; the old one stays closed."""
    history = [*BOUGHT, decision(sale(), **NEXT), quote(at=day(15))]
    third: dict[str, Any] = {"period": 3, "at": day(15)}
    [bought] = carried_out(history, bet(400), **third)
    assert (bought.position, bought.shares) == (2, 1_000 * SHARES)
    fourth: dict[str, Any] = {"period": 4, "at": day(22)}
    history += [decision(bet(400), **third), quote(at=day(22))]
    old, new = carried_out(history, sale(100, 1), sale(100, 2), **fourth)
    assert (old, new.shares) == ("no_position", 1_000 * SHARES)


def test_at_a_price_of_nothing_one_may_sell_and_not_buy() -> None:
    """The sale removes the shares and their cost. Source: Forecaster Arena's published code."""
    history = [*TRADED, decision(bet(500)), quote(at=day(9), prices={"yes": 0})]
    assert carried_out(history, bet(), **NEXT) == ["no_price"]
    [sold] = carried_out(history, sale(), **NEXT)
    assert (sold.price, sold.shares, sold.cost, sold.proceeds) == (0, 1_250 * SHARES, 500 * MONEY, 0)


SNOW: list[AnyCommand] = [opened("snow", closes_at=day(28)), quote("snow")]  # opens on the tenth; in no contest
EARLY = [*TRADED, opened("snow"), entry("week", "snow"), quote("snow")]
DEPTHS = RuleSet(name="depths", cdf_kernel="crps", period="covered", total="mean", trading=FREE)
DEEP: list[AnyCommand] = [numeric(), cohort(rules=DEPTHS), entry("week", "depth"), enrolment("week")]
EMPTY: list[AnyCommand] = [market(), cohort(), entry("week"), enrolment("week")]
PARTIAL = [*TRADED, quote("colour", prices={"red": "0.5"})]
LATE = [*TRADED, quote(at=day(3))]
LATE_RED = quote("colour", at=day(3), prices={"red": 1})
GREEN = [*TRADED, decision(bet(50, "green", "colour")), quote("colour", at=day(9), prices={"red": 1})]
OLD = {"at": "2026-03-02T01:00:00.000001Z"}  # an hour and a µs after the price
CENT = "0.000000001"

# Fees of whole thousands: 2,000 for 2,000 and for 2,500, and 1,000 for 400; a cash of 100 is left.
COSTLY = [
    *free(quote(prices={"yes": "0.4"}), fee_rate_ppm=10**6, fee_unit_micros=10**9),
    decision(bet(2_000), bet(2_500), bet(400)),
]
# Each code of a bet: the history, the bet, other fields of the decision.
SIDED = trading_floor(rules=RuleSet(name="sided", trading=Trading(fills="bid_ask", marks="bid")))
BETS: list[tuple[str, list[AnyCommand], Bet, dict[str, Any]]] = [
    ("unknown_market", TRADED, bet(market_id="hail"), {}),
    ("unknown_market", TRADED, bet(market_id="Rain"), {}),
    ("unknown_market", TRADED, bet(market_id="rain "), {}),
    ("unknown_market", [*TRADED, *SNOW], bet(market_id="snow"), {}),  # it exists, but not in the contest
    *[("unknown_side", TRADED, bet(side=side), {}) for side in ("maybe", "y", "yes ", "0", "red", "ye\u017f")],
    *[("unknown_side", TRADED, bet(50, side, "colour"), {}) for side in ("Red", "RED", "yes", "no", "0")],
    ("unknown_side", DEEP, bet(50, "1", "depth"), {}),  # a numeric question has no outcomes to name
    ("market_closed", EARLY, bet(market_id="snow"), {}),  # not open yet
    ("market_closed", [*TRADED, closing(at=day(2))], bet(), {}),
    ("market_closed", [*TRADED, quote(at=day(29))], bet(), {"period": 5, "at": day(29)}),
    ("market_closed", [*TRADED, resolution(at=day(2), known_at=day(2))], bet(), {}),
    ("market_closed", [*TRADED, annulment(at=day(2))], bet(), {}),
    ("no_quote", EMPTY, bet(), {}),
    ("no_quote", PARTIAL, bet(50, "green", "colour"), {}),  # it had a price, in an earlier quote
    ("quote_too_new", LATE, bet(), {"at": "2026-03-02T23:59:59.999999Z"}),
    ("stale_quote", TRADED, bet(), OLD),
    ("stale_quote", [*TRADED, quote(at=day(3), quoted_at=day(2))], bet(), {"at": day(3)}),
    ("no_ask", SIDED, bet(), {}),  # it has a price
    ("no_ask", [*SIDED, quote(prices=None, bids={"yes": "0.4"})], bet(), {}),
    ("no_price", TRADED, bet(50, "blue", "colour"), {}),
    ("no_price", [*SIDED, quote(asks={"yes": 0})], bet(), {}),
    ("no_price", [*TRADED, quote(prices={"yes": 1})], bet(50, "no"), {}),
    ("not_enough_cash", free(quote(), fee_rate_ppm=1), bet(10_000), {}),
    ("too_many_shares", [*TRADED, quote(prices={"yes": CENT})], bet("1000.000001"), {}),
]
SALES: list[tuple[str, list[AnyCommand], Sale, dict[str, Any]]] = [
    ("no_position", TRADED, sale(), {}),
    *[("no_position", BOUGHT, sale(position_id=name), NEXT) for name in (2, 0, -1, "one", "1.0", "01", "+1", "1e0")],
    ("no_position", [*TRADED, decision(bet())], sale(), {"participant": "bob"}),
    ("no_position", [*BOUGHT, resolution(at=day(9))], sale(), NEXT),
    ("market_closed", [*BOUGHT, closing(at=day(9))], sale(), NEXT),
    ("market_closed", [*BOUGHT, quote(at=day(29))], sale(), {"period": 5, "at": day(29)}),
    ("no_quote", GREEN, sale(), NEXT),
    ("quote_too_new", [*BOUGHT, quote(at=day(10))], sale(), NEXT),
    ("stale_quote", BOUGHT, sale(), {"period": 2, "at": "2026-03-09T01:00:00.000001Z"}),
    ("no_bid", [*SIDED, quote(asks={"yes": "0.4"}), decision(bet()), quote(at=day(9))], sale(), NEXT),
    ("no_shares", [*free(quote(prices={"yes": 1})), decision(bet("0.000001"))], sale(50), {"period": 2}),
    ("not_enough_cash", COSTLY, sale(1), {"period": 2}),
]


@pytest.mark.parametrize(("code", "history", "leg", "fields"), [*BETS, *SALES])
def test_a_leg_that_cannot_be_carried_out_is_refused(
    code: str, history: list[AnyCommand], leg: Bet | Sale, fields: dict[str, Any]
) -> None:
    """The event has its code; the decision is recorded, but is not taken."""
    assert carried_out(history, leg, **fields) == [code]


def test_every_code_of_a_leg_is_reached() -> None:
    """Every code occurs above, or below if it needs other legs."""
    reached = {code for code, *_ in [*BETS, *SALES]} | {"above_cap", "not_enough_depth", "sibling_refused"}
    assert reached == set(LEG_CODES)


# Two codes at once: the recorded one, the history, the leg, other fields of the decision.
PAIRS: list[tuple[str, str, list[AnyCommand], Bet | Sale, dict[str, Any]]] = [
    ("unknown_market", "unknown_side", TRADED, bet(side="up", market_id="hail"), {}),
    ("unknown_side", "market_closed", EARLY, bet(side="up", market_id="snow"), {}),
    ("unknown_side", "no_quote", EMPTY, bet(side="up"), {}),
    ("unknown_side", "stale_quote", TRADED, bet(side="up"), OLD),
    ("market_closed", "no_quote", [*EMPTY, closing(at=day(2))], bet(), {}),
    ("market_closed", "quote_too_new", [*LATE, closing(at=day(2))], bet(), {}),
    ("market_closed", "stale_quote", [*TRADED, closing(at=day(2))], bet(), OLD),
    ("no_quote", "quote_too_new", [*TRADED, LATE_RED], bet(50, "blue", "colour"), {}),
    ("no_quote", "stale_quote", PARTIAL, bet(50, "green", "colour"), OLD),
    ("quote_too_new", "no_price", [*TRADED, quote(at=day(3), prices={"yes": 0})], bet(), {}),
    ("no_quote", "no_ask", SIDED[:-2], bet(), {}),
    ("stale_quote", "no_ask", SIDED, bet(), OLD),
    ("stale_quote", "no_price", TRADED, bet(50, "blue", "colour"), OLD),
    ("no_position", "market_closed", [*BOUGHT, closing(at=day(9))], sale(position_id=2), NEXT),
    ("no_position", "stale_quote", TRADED, sale(), OLD),
    ("market_closed", "stale_quote", [*BOUGHT, closing(at=day(9))], sale(), NEXT | {"at": day(9, 2)}),
    (
        "stale_quote",
        "no_shares",
        [*free(quote(prices={"yes": 1}), stale_after_seconds=60), decision(bet("0.000001"))],
        sale(50),
        {"period": 2, "at": day(3)},
    ),
]


@pytest.mark.parametrize(("first", "second", "history", "leg", "fields"), PAIRS)
def test_the_earlier_of_two_codes_of_a_leg_is_recorded(
    first: str, second: str, history: list[AnyCommand], leg: Bet | Sale, fields: dict[str, Any]
) -> None:
    """The codes apply in the order of the table."""
    order = list(LEG_CODES)
    assert order.index(first) < order.index(second)
    assert carried_out(history, leg, **fields) == [first]


def test_the_last_instants_and_prices_that_a_rule_allows_are_allowed() -> None:
    """A price may be an hour old or of the same instant; a bet may be at the opening, before the close, or reach 1e12
    shares.
    """
    assert carried_out(TRADED, bet(), at="2026-03-02T01:00:00Z")[0].shares
    last = "2026-03-28T23:59:59.999999Z"
    assert carried_out([*TRADED, quote(at=last)], bet(), period=4, at=last)[0].shares
    assert carried_out([*EARLY, quote("snow", at=OPENS)], bet(50, "yes", "snow"), period=2, at=OPENS)[0].shares
    cheap = [*TRADED, quote(prices={"yes": CENT})]
    legs = carried_out(cheap, bet(1_000), bet(50), bet(50, "no"))
    assert [getattr(leg, "shares", leg) for leg in legs] == [10**18, "too_many_shares", "too_many_shares"]


def test_a_bet_above_the_cap_of_the_remaining_cash_is_refused() -> None:
    """After 2,500, the next bet may be at most 1,875, and so on. Source: Forecaster Arena's published code."""
    legs = carried_out(TRADED, bet(2_500), bet(2_500), bet("1875.000001"), bet(1_875), bet(2_500, "up"))
    assert [leg if isinstance(leg, str) else leg.amount // MONEY for leg in legs] == [
        *[2_500, "above_cap", "above_cap", 1_875, "unknown_side"]
    ]


def test_of_a_price_of_nothing_and_a_bet_above_the_cap_the_price_is_recorded() -> None:
    """If a bet exceeds the cap and the limit of shares, the cap is recorded."""
    cheap = [*TRADED, quote(prices={"yes": CENT})]
    assert carried_out(cheap, bet(2_500, "red", "colour"), bet(2_500, "blue", "colour"), bet(2_500))[1:] == [
        *["no_price", "above_cap"]
    ]


def test_the_proceeds_of_a_sale_are_cash_for_later_bets() -> None:
    """In the next decision, cash is 10,000 - 2,500 + 3,750 = 11,250, a quarter of which is 2,812.50."""
    history = [*TRADED, decision(bet(2_500)), quote(at=day(9), prices={"yes": "0.6"}), decision(sale(), **NEXT)]
    [bought] = carried_out([*history, quote(at=day(15))], bet("2812.5"), period=3, at=day(15))
    assert (bought.cash, bought.confidence, bought.position) == (11_250 * MONEY, ONE, 2)


@pytest.mark.parametrize(
    ("amounts", "last", "more"),
    [
        (["1024.13"], "2243.9675", "2243.967501"),
        (["1576.11", "1575.09"], "1712.20", "1712.200001"),
        (["2500", "166.65"], "1833.3375", "1833.34"),
    ],
)
def test_the_exact_cap_is_never_refused(amounts: list[str], last: str, more: str) -> None:
    """Floats would be slightly below some of these amounts."""
    legs = carried_out(TRADED, *map(bet, amounts), bet(last))
    assert (legs[-1].amount, legs[-1].confidence) == (millionths(last), ONE)
    assert legs[-1].cash == millionths(Fraction(10_000) - sum(map(Fraction, amounts)))
    assert carried_out(TRADED, *map(bet, amounts), bet(more))[-1] == "above_cap"


def test_always_losing_the_exact_cap_ruins_after_fourteen_weeks() -> None:
    """The cap is rounded down to cents each time; then a quarter is less than 50."""
    cash, amounts = 1_000_000, []  # in cents
    while cash >= 4 * 5_000:
        amounts.append(cash // 4)
        cash -= amounts[-1]
    assert len(amounts) == 14
    legs = carried_out(TRADED, *[bet(written(amount, 100)) for amount in amounts])
    assert [leg.amount for leg in legs] == [amount * 10_000 for amount in amounts]
    assert legs[-1].cash - legs[-1].amount == cash * 10_000 < 200 * MONEY


ALL_OR_NOTHING = trading_floor(rules="arena-v2")
UNCAPPED = trading_floor(rules=RuleSet(name="own", trading=Trading(legs="all_or_nothing")))


def test_the_legs_of_the_first_methodology_are_independent() -> None:
    """A refused leg does not undo earlier legs or stop later ones.

    Source: Forecaster Arena, Methodology v1, "BET execution".
    """
    legs = carried_out(TRADED, bet(100), bet(100, "up"), bet(100, "no"))
    assert [leg if isinstance(leg, str) else leg.shares for leg in legs] == [
        *[250 * SHARES, "unknown_side", millionths("166.666666")]
    ]


def test_the_bets_of_the_second_methodology_are_all_carried_out_or_none() -> None:
    """If one bet is refused, all bets before and after it are refused."""
    legs = carried_out(ALL_OR_NOTHING, bet(100), bet(100, "up"), bet(100, "no"))
    assert legs == ["sibling_refused", "unknown_side", "sibling_refused"]
    assert [type(leg) for leg in carried_out(ALL_OR_NOTHING, bet(100), bet(100, "no"))] == [SharesBought] * 2


def test_a_sibling_that_would_fail_itself_has_its_own_code() -> None:
    """It is checked as if the earlier legs that pass had been carried out: after 2,500, the cap is 1,875."""
    legs = carried_out(UNCAPPED, bet(2_500), bet(1_876), bet(1_875), bet(50, "up"), bet(1_407))
    assert legs == ["sibling_refused", "above_cap", "sibling_refused", "unknown_side", "above_cap"]


def test_bets_refused_together_leave_everything_as_it_was() -> None:
    """Another attempt finds the same cash, positions and numbers."""
    history = [*ALL_OR_NOTHING, decision(bet(1_000), bet(100, "up"))]
    [bought] = carried_out(history, bet(2_500, "no"), attempt=2)
    assert (bought.position, bought.cash, bought.confidence) == (1, 10_000 * MONEY, ONE)


def test_sales_are_independent_in_both_methodologies() -> None:
    """Only bets are all or nothing. Source: Forecaster Arena's published code."""
    history = [*ALL_OR_NOTHING, decision(bet(500)), quote(at=day(9))]
    legs = carried_out(history, sale(50, 2), sale(50), sale(50, "x"), **NEXT)
    assert [leg if isinstance(leg, str) else leg.shares for leg in legs] == [
        *["no_position", 625 * SHARES, "no_position"]
    ]


def test_a_revoked_resolution_opens_the_market_again() -> None:
    """Bets and sales are possible again, on the position that existed before."""
    history = [*BOUGHT, resolution(at=day(9)), revocation(at=day(9))]
    [bought] = carried_out(history, bet(600), **NEXT)
    assert (bought.position, bought.shares) == (1, 1_000 * SHARES)
    [sold] = carried_out(history, sale(), **NEXT)
    assert sold.shares == 1_250 * SHARES


def test_the_price_is_that_of_the_last_quote_and_no_earlier_one() -> None:
    """The last quote in the log counts, whatever instant it claims."""
    history = [*TRADED, quotes(Prices(question="rain", prices={"yes": "0.5"}), quoted_at=day(2), at=NOON)]
    [bought] = carried_out(history, bet(500))
    assert (bought.price, bought.quote) == (500_000_000, 12)


def test_a_question_called_yes_and_no_of_another_kind_takes_its_outcomes_exactly() -> None:
    """A question is binary by its kind, not by the names of its outcomes."""
    vote = palette("vote", outcomes=("No", "yes", "no"))
    history = [*TRADED, vote, entry("week", "vote"), quote("vote", prices={"No": "0.2", "yes": "0.3", "no": "0.5"})]
    legs = carried_out(history, bet(100, "No", "vote"), bet(100, "no", "vote"), bet(100, "NO", "vote"))
    assert [leg if isinstance(leg, str) else (leg.outcome, leg.price) for leg in legs] == [
        *[(0, 200_000_000), (2, 500_000_000), "unknown_side"]
    ]


# --- depth


def deep(rule: str, *prices: AnyCommand, **fields: Any) -> list[AnyCommand]:
    """Return the commands of a contest of two under a rule of depth, at prices of which 0.40 is the last."""
    rules = RuleSet(name="deep", trading=structs.replace(FREE, depth=rule, **fields))
    return [*trading_floor("ada", "bob", rules=rules), *(prices or [sized()])]


def sized(at: str = day(2), yes: Any = "0.4", **sizes: Any) -> AnyCommand:
    """Return a price of yes with 1,000 shares to buy and 300 to sell."""
    return quote(at=at, prices={"yes": yes}, **{"ask_sizes": {"yes": 1_000}, "bid_sizes": {"yes": 300}} | sizes)


def test_a_bet_beyond_the_depth_is_filled_in_part_or_refused() -> None:
    """500 at 0.40 would be 1,250 shares: 1,000 cost 400. Confidence is that of the bet: 500 of 10,000."""
    [part] = carried_out(deep("partial"), bet(500))
    assert (part.shares, part.amount, part.requested) == (1_000 * SHARES, 400 * MONEY, 500 * MONEY)
    assert Fraction(part.confidence, ONE) == Fraction(500, 10_000)
    assert carried_out(deep("refuse"), bet(500)) == ["not_enough_depth"]
    [whole] = carried_out(deep("unlimited"), bet(500))
    assert (whole.shares, whole.requested) == (1_250 * SHARES, 0)


@pytest.mark.parametrize("rule", ["partial", "refuse"])
def test_what_is_within_the_depth_is_filled_whole(rule: str) -> None:
    """400 at 0.40 are just the 1,000 shares; nothing is left for the next bet, and nothing says that it was cut."""
    first, second = carried_out(deep(rule), bet(400), bet(1))
    assert (first.shares, first.amount, first.requested, second) == (1_000 * SHARES, 400 * MONEY, 0, "not_enough_depth")


def test_an_account_uses_up_a_quote_over_its_decisions_and_others_do_not() -> None:
    """Ada buys 750 of 1,000 shares, and later gets 250; Bob gets all 1,000. A new quote has its own shares."""
    history = [*deep("partial"), decision(bet(300))]
    [later] = carried_out(history, bet(300), period=2)
    assert (later.shares, later.amount) == (250 * SHARES, 100 * MONEY)
    [others] = carried_out(history, bet(500), participant="bob")
    assert others.shares == 1_000 * SHARES
    [new] = carried_out([*history, decision(bet(300), period=2), sized(day(3))], bet(500), period=3, at=day(3))
    assert new.shares == 1_000 * SHARES


def test_who_buys_no_takes_from_the_bids_of_yes() -> None:
    """300 shares can be sold as yes or bought as no, at 0.60; both together are no more than 300."""
    bought = carried_out(deep("partial"), bet(60, "no"), bet(300, "no"), bet(1, "no"), bet(400))
    assert [getattr(leg, "shares", leg) for leg in bought] == [
        *[100 * SHARES, 200 * SHARES, "not_enough_depth", 1_000 * SHARES]
    ]
    [sold] = carried_out([*deep("partial"), decision(bet(400), bet(60, "no"))], sale(), period=2)
    assert (sold.shares, sold.requested) == (200 * SHARES, 1_000 * SHARES)


def test_a_sale_beyond_the_depth_is_filled_in_part_or_refused() -> None:
    """Of 1,000 shares that cost 400, 300 can be sold: cost 120, proceeds 120."""
    [part] = carried_out([*deep("partial"), decision(bet(400))], sale(), period=2)
    assert (part.shares, part.cost, part.proceeds, part.requested) == (
        *(300 * SHARES, 120 * MONEY, 120 * MONEY),
        1_000 * SHARES,
    )
    assert carried_out([*deep("refuse"), decision(bet(400))], sale(), period=2) == ["not_enough_depth"]


def test_a_quote_that_does_not_say_its_size_is_not_limited() -> None:
    """Neither one without sizes, nor one without that of the side."""
    missing: list[dict[str, Any]] = [{"ask_sizes": None, "bid_sizes": None}, {"ask_sizes": None}]
    for sizes in missing:
        [bought] = carried_out(deep("refuse", sized(**sizes)), bet(500))
        assert (bought.shares, bought.requested) == (1_250 * SHARES, 0)


def test_a_part_of_a_bet_is_paid_for_to_the_last_unit() -> None:
    """0.000007 shares at 1/3 are worth 0.0000023…, rounded up: no share is given that was not paid for."""
    [bought] = carried_out(deep("partial", sized(yes="0.333333333", ask_sizes={"yes": "0.000007"})), bet(1))
    assert (bought.shares, bought.amount, bought.requested) == (7, 3, MONEY)


def test_what_a_refused_leg_did_not_take_is_left() -> None:
    """A bet that the cash does not cover takes nothing from the quote."""
    history = deep("partial", sized(ask_sizes={"yes": 10**6}), fee_rate_ppm=10**6)
    first, second = carried_out(history, bet(10_000), bet(5_000))
    assert (first, second.shares) == ("not_enough_cash", 12_500 * SHARES)


def test_a_fee_is_that_of_the_shares_that_were_filled() -> None:
    """Kalshi's of 1,000 shares at 0.40, not of 1,250: 0.07 x 1,000 x 0.24 = 16.80."""
    kalshi = {"fee_rate_ppm": 70_000, "fee_unit_micros": 10_000, "fee_rounding": "cash"}
    [bought] = carried_out(deep("partial", **kalshi), bet(500))
    assert (bought.amount, bought.fee) == (400 * MONEY, millionths("16.8"))
