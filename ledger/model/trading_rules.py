"""Trading rules: starting cash, limits of bets, and the periods of decisions, as data."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from forecast_ledger.ledger.core.values import DAY, LARGEST_CASH

MICROS = "_micros"  # the end of the name of an amount in 1e-6
PERCENT = 10**6  # units in a percent
WHOLE = 100 * PERCENT
_SECOND = 10**6  # µs
_WEEK = 7 * DAY
_FIRST_SUNDAY = 3 * DAY  # the epoch was a Thursday

# Why a reply is not a decision, in order of precedence.
REPLY_FAULTS = {
    "unreadable": "the reply is not one JSON object of action, bets, sells and reasoning, read by the rule `replies`, "
    "or its lists and objects have more than 500 levels",
    "unknown_action": "the action is not BET, SELL or HOLD",
    "no_reasoning": "the reasoning is missing or blank",
    "no_legs": "the action is BET without bets, or SELL without sells",
    "mixed_legs": "there are bets without BET, or sells without SELL",
    "blank_leg": "a bet has no market_id or no side, or a sale has no position_id",
    "bad_amount": "an amount is not a number, or beyond every limit",
    "below_least_bet": "a bet is less than least_bet",
    "above_cap": "a bet is more than the cap of the cash before the decision",
    "above_sum_cap": "the bets together are more than the cap of the cash before the decision",
    "bad_percentage": "a percentage is not a number, or out of range",
}
# Why a leg is refused, in order of precedence.
LEG_CODES = {
    "unknown_market": "the contest has no such question",
    "unknown_side": "the question has no such outcome; against one of several, bet on each of the others or, "
    "with the rule `shares_against`, on the side `not NAME`",
    "no_position": "no such position is open",
    "market_closed": "the question is not open, or it is resolved or annulled",
    "no_quote": "the outcome has no price",
    "quote_too_new": "the price was quoted after the decision",
    "stale_quote": "the price is too old",
    "no_bid": "the rules sell at the bid, and the last quote has none for the outcome",
    "no_ask": "the rules buy at the ask, and the last quote has none for the outcome",
    "no_price": "the price is 0, at which nothing can be bought",
    "above_cap": "the bet is more than the cap of the cash that the earlier legs left",
    "no_shares": "the amount or the percentage is less than 0.000001 shares",
    "not_enough_depth": "fewer shares are left at the quote than the leg needs, or none if it may be filled in part",
    "not_enough_cash": "the cash does not cover the bet and its fee, or a fee of a sale that exceeds its proceeds",
    "too_many_shares": "the account would have bought more shares than the limit of an account",
    "sibling_refused": "another leg was refused, and the rules carry out all legs or none",
}

CURRENCY = {"unit": "the contest's currency"}
Seconds = Annotated[int, Meta(ge=0, le=10**9, extra={"unit": "seconds"})]
Replies = Literal["strict", "lenient"]
MarkRule = Literal["price", "bid"]
FeeRounding = Literal["up", "half_even", "down", "cash"]


def encoded_name(field: str) -> str:
    """Return the name of a field in JSON: that of an amount has no `_micros`; in an event its unit is 1e-6.

    >>> encoded_name("least_bet_micros"), encoded_name("attempts")
    ('least_bet', 'attempts')
    """
    return field.removesuffix(MICROS)


def encoded_fields(rules: Struct) -> dict[str, object]:
    """Return the values of the fields of a rule set, or of trading rules, by their names in JSON."""
    return dict(zip(rules.__struct_encode_fields__, structs.astuple(rules), strict=True))


class Trading(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=encoded_name):
    """The trading rules of a contest. The defaults are those of Forecaster Arena's first methodology.

    `forecast-ledger help trading` says what each field means, and each of its values.
    Source: Forecaster Arena, Methodology v1, "Starting Capital and Constraints", "Decision Protocol" and "Snapshot
    Methodology"; it does not say how old a price may be.
    """

    starting_cash_micros: Annotated[int, Meta(ge=0, le=LARGEST_CASH, extra=CURRENCY)] = 10_000 * 10**6
    least_bet_micros: Annotated[int, Meta(ge=1, le=LARGEST_CASH, extra=CURRENCY)] = 50 * 10**6
    cap_divisor: Annotated[int, Meta(ge=1, le=1_000, extra={"unit": "a divisor of cash"})] = 4
    least_percentage_micros: Annotated[int, Meta(ge=1, le=WHOLE, extra={"unit": "percent"})] = PERCENT
    legs: Literal["independent", "all_or_nothing"] = "independent"
    sum_capped: bool = False
    attempts: Annotated[int, Meta(ge=1, le=100, extra={"unit": "attempts"})] = 2
    stale_after_seconds: Seconds = 3_600
    snapshot_seconds: Annotated[int, Meta(ge=60, le=10**9, extra={"unit": "seconds"})] = 600
    period_days: Annotated[int, Meta(ge=0, le=36_525, extra={"unit": "days"})] = 7
    cohorts: Literal["weekly", "none"] = "weekly"
    deciding_cohorts: Annotated[int, Meta(ge=0, le=1_000, extra={"unit": "contests"})] = 0
    recapitalisation: bool = False
    closed_marks: Literal["prior", "last"] = "prior"
    replies: Replies = "strict"
    completed_by: Literal["all", "shown"] = "all"
    fee_rate_ppm: Annotated[int, Meta(ge=0, le=1_000_000, extra={"unit": "1e-6"})] = 0
    fee_exponent: Annotated[int, Meta(ge=1, le=4, extra={"unit": "an exponent"})] = 1
    fee_unit_micros: Annotated[int, Meta(ge=1, le=10**9, extra=CURRENCY)] = 1
    fee_rounding: FeeRounding = "up"
    fills: Literal["price", "bid_ask"] = "price"
    marks: MarkRule = "price"
    depth: Literal["unlimited", "refuse", "partial"] = "unlimited"
    recorded_trades: bool = False
    short_sales: bool = False
    overdrafts: bool = False
    shares_against: bool = False


# Fields that were added later. They are left out of the log at their defaults, as LATER_FIELDS of a rule set are.
LATER_TRADING_FIELDS = (
    "replies",
    "completed_by",
    "fee_rate_ppm",
    "fee_exponent",
    "fee_unit",
    "fee_rounding",
    "fills",
    "marks",
    "depth",
    "recorded_trades",
    "short_sales",
    "overdrafts",
    "shares_against",
)
_DEFAULTS = encoded_fields(Trading())


def recorded_trading(trading: Trading) -> dict[str, object]:
    """Return the trading rules as the log holds them: all, except LATER_TRADING_FIELDS that have their defaults.

    >>> list(recorded_trading(Trading(replies="lenient")))[-2:]
    ['closed_marks', 'replies']
    """
    fields = encoded_fields(trading)
    return {
        field: value
        for field, value in fields.items()
        if field not in LATER_TRADING_FIELDS or value != _DEFAULTS[field]
    }


def bet_cap(trading: Trading, cash: int) -> int:
    """Return the largest bet that the cash allows, 1e-6, rounded down; 0 if the cash is negative.

    >>> bet_cap(Trading(), 7_333_350_000)
    1833337500
    """
    return max(cash, 0) // trading.cap_divisor


def latest_sunday(at: int) -> int:
    """Return the latest Sunday 00:00 UTC at or before an instant, µs.

    >>> latest_sunday(3 * DAY - 1) // DAY, latest_sunday(3 * DAY) // DAY
    (-4, 3)
    """
    return at - (at - _FIRST_SUNDAY) % _WEEK


def period_number(trading: Trading, starts_at: int, at: int) -> int:
    """Return the number, from 1, of the period that an instant is in, in days of UTC; at >= starts_at.

    >>> period_number(Trading(), DAY - 1, DAY), period_number(Trading(), 0, 7 * DAY)
    (1, 2)
    """
    return (at // DAY - starts_at // DAY) // trading.period_days + 1


def is_stale(trading: Trading, quoted_at: int, at: int) -> bool:
    """Return whether a quote is too old for a trade.

    >>> is_stale(Trading(), 0, 3_600 * 10**6), is_stale(Trading(), 0, 3_600 * 10**6 + 1)
    (False, True)
    """
    return at - quoted_at > trading.stale_after_seconds * _SECOND


def broken_trading_rules(trading: Trading) -> dict[str, bool]:
    """Return the rules about trading, each with whether it is broken."""
    fee = (trading.fee_exponent, trading.fee_unit_micros, trading.fee_rounding)
    return {
        "fee_exponent, fee_unit and fee_rounding need fee_rate_ppm above 0": not trading.fee_rate_ppm
        and fee != (1, 1, "up"),
        "short_sales and overdrafts need recorded_trades": not trading.recorded_trades
        and (trading.short_sales or trading.overdrafts),
    }
