"""Tests of fees of trades: the figures that exchanges print, and every rounding against exact fractions."""

from fractions import Fraction
from math import ceil, floor
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from forecast_ledger.ledger.deciding.trades import ROUNDINGS, trade_fee
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.model.trading_rules import Trading

MONEY = SHARES = 10**6
ONE = 10**9
# Kalshi, Fee Schedule, "General Trading Fees": price in cents, fee of 1 contract, fee of 100, in cents.
KALSHI = [(1, 1, 7), (5, 1, 34), (10, 1, 63), (25, 2, 132), (50, 2, 175), (75, 2, 132), (90, 1, 63), (99, 1, 7)]
# Polymarket, documentation, "Fees", the table of 100 shares of crypto markets, whose rate is 0.07: price and fee, in
# cents; printed with two decimals.
POLYMARKET = [(1, 7), (5, 33), (10, 63), (15, 89), (20, 112), (25, 131), (30, 147), (35, 159), (40, 168), (45, 173)]
POLYMARKET += [(50, 175), (55, 173), (60, 168), (75, 131), (90, 63), (95, 33), (99, 7)]
AMOUNTS, PRICES = st.integers(0, 10**18), st.integers(0, ONE)


def preset(name: str) -> Trading:
    """Return the trading rules of a preset."""
    trading = PRESETS[name].trading
    assert trading is not None
    return trading


@pytest.mark.parametrize(("cents", "one", "hundred"), KALSHI)
def test_kalshis_table_of_fees(cents: int, one: int, hundred: int) -> None:
    """Round up to the next cent of 0.07 C P (1 - P), for a purchase and for a sale alike."""
    for contracts, fee in ((1, one), (100, hundred)):
        value = contracts * cents * 10_000
        for change in (-value, value):
            paid = trade_fee(preset("arena-v1-kalshi"), contracts * SHARES, cents * ONE // 100, change)
            assert paid == fee * 10_000


@pytest.mark.parametrize(("cents", "fee"), POLYMARKET)
def test_polymarkets_table_of_fees(cents: int, fee: int) -> None:
    """C feeRate p (1 - p); the table has cents."""
    rules = Trading(fee_rate_ppm=70_000, fee_unit_micros=10, fee_rounding="down")
    paid = trade_fee(rules, 100 * SHARES, cents * ONE // 100, -cents * MONEY)
    assert round(Fraction(paid, 10_000)) == fee


def test_polymarkets_smallest_fee() -> None:
    """Fees have five decimals; anything smaller than 0.00001 is 0: 0.05 x 0.0016 x 0.25 = 0.00002, of 0.0004 half
    that, of 0.000799 it is 0.0000099875.
    """
    rules = preset("arena-v1-polymarket")
    assert [trade_fee(rules, shares, ONE // 2, -shares // 2) for shares in (1_600, 800, 799)] == [20, 10, 0]


# Kalshi, API documentation, "Fee Rounding", "Worked Examples": paid, fee that is due, net fee of the first fill; 1e-6.
FIRST_FILLS = [(55_000, 8_500, 15_000), (150_000, 4_100, 10_000), (9_903, 500, 10_097)]


@pytest.mark.parametrize(("paid", "due", "net"), FIRST_FILLS)
def test_kalshi_keeps_balances_in_whole_cents(paid: int, due: int, net: int) -> None:
    """The fee is rounded up until the change of cash is in whole cents: 0.055 + 0.0085 takes 0.07 from the account."""
    assert ROUNDINGS["cash"](due, 1, 10_000, -paid) == net
    assert (paid + net) % 10_000 == 0


def test_a_sale_brings_whole_cents_too() -> None:
    """1 share at 0.055 brings 0.055; 0.0085 is due, and floor(0.0465) = 0.04 is paid: the fee is 0.015."""
    assert ROUNDINGS["cash"](8_500, 1, 10_000, 55_000) == 15_000


@pytest.mark.parametrize(("rounding", "fee"), [("up", 20_000), ("half_even", 20_000), ("down", 10_000)])
def test_roundings_of_a_tie(rounding: Any, fee: int) -> None:
    """0.015 in cents lies halfway; the even one of 1 and 2 is 2."""
    assert ROUNDINGS[rounding](15_000, 1, 10_000, -1) == fee


def exact_fee(rules: Trading, shares: int, price: int) -> Fraction:
    """Return the fee before rounding, in 1e-6."""
    chance = Fraction(price, ONE)
    return Fraction(rules.fee_rate_ppm, 10**6) * shares * (chance * (1 - chance)) ** rules.fee_exponent


@examples(st.data(), AMOUNTS, PRICES, st.sampled_from(sorted(ROUNDINGS)), st.sampled_from([1, 10, 100, 10_000, 10**9]))
def test_a_fee_is_the_exact_one_rounded_once(data: Any, shares: int, price: int, rounding: Any, unit: int) -> None:
    """Every rounding, rate and exponent agrees with arithmetic in fractions."""
    rate, exponent = data.draw(st.integers(1, 10**6)), data.draw(st.integers(1, 4))
    change = data.draw(st.integers(-(10**18), 10**18))
    rules = Trading(fee_rate_ppm=rate, fee_exponent=exponent, fee_unit_micros=unit, fee_rounding=rounding)
    fee, exact = trade_fee(rules, shares, price, change), exact_fee(rules, shares, price)
    expected = {
        "up": ceil(exact / unit) * unit,
        "half_even": round(exact / unit) * unit,
        "down": floor(exact / unit) * unit,
        "cash": change - floor((change - exact) / unit) * unit,
    }
    assert fee == expected[rounding] >= 0
    assert rounding != "cash" or (change - fee) % unit == 0


@pytest.mark.parametrize("price", [0, ONE])
def test_a_certain_price_has_no_fee(price: int) -> None:
    """P (1 - P) is 0 at both ends."""
    assert trade_fee(preset("arena-v1-kalshi"), 100 * SHARES, price, -price // ONE * 100 * MONEY) == 0


def test_no_rate_no_fee() -> None:
    """Without a rate nothing is rounded either."""
    assert trade_fee(Trading(), 10**18, ONE // 2, -1) == 0
