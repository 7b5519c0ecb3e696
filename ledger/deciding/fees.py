"""The fee of a trade, by the trading rules of its contest."""

from collections.abc import Callable

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.trading_rules import FeeRounding, Trading

_MILLION = 10**6  # a rate is in parts per million


def trade_fee(trading: Trading, shares: int, price: int, change: int) -> int:
    """Return the fee of a purchase or a sale: rate x shares x (price x (1 - price))^exponent, rounded by the rules.

    shares: bought or sold, 1e-6. price: of a share, 1e-9. change: of cash, without the fee, 1e-6; below 0 for a
    purchase. The fee is in 1e-6, at least 0, and 0 if the rules have no rate.

    Source: Kalshi, Fee Schedule, "General Trading Fees" (rate 0.07), and API documentation, "Fee Rounding";
    Polymarket, documentation, "Fees", "Fee Structure" and "Fee Precision".

    Kalshi's price for 100 contracts at 0.25, which is rounded up to a cent:

    >>> kalshi = Trading(fee_rate_ppm=70_000, fee_unit_micros=10_000, fee_rounding="cash")
    >>> trade_fee(kalshi, 100 * 10**6, PROBABILITY // 4, -25 * 10**6)
    1320000
    """
    if not trading.fee_rate_ppm:
        return 0
    curve = (price * (PROBABILITY - price)) ** trading.fee_exponent
    divisor = _MILLION * PROBABILITY ** (2 * trading.fee_exponent)
    rounded = ROUNDINGS[trading.fee_rounding]
    return rounded(trading.fee_rate_ppm * shares * curve, divisor, trading.fee_unit_micros, change)


def _up(numerator: int, divisor: int, unit: int, _: int) -> int:
    return -(-numerator // (divisor * unit)) * unit


def _half_even(numerator: int, divisor: int, unit: int, _: int) -> int:
    return half_even(numerator, divisor * unit) * unit


def _down(numerator: int, divisor: int, unit: int, _: int) -> int:
    return numerator // (divisor * unit) * unit


def _cash(numerator: int, divisor: int, unit: int, change: int) -> int:
    """Round up until the change of cash is a multiple of the unit.

    The first fill of Kalshi's example "Fractional contracts": 0.15 is paid, 0.0041 is due, and 0.16 leaves the account.

    >>> _cash(4_100, 1, 10_000, -150_000)
    10000
    """
    return change + _up(numerator - change * divisor, divisor, unit, 0)


# Each function takes the fee as a fraction, numerator and divisor, in 1e-6; the unit; and the change of cash.
ROUNDINGS: dict[FeeRounding, Callable[[int, int, int, int], int]] = {
    "up": _up,
    "half_even": _half_even,
    "down": _down,
    "cash": _cash,
}
