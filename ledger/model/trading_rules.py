"""Trading rules: what a contest grants, what a bet may be, and when what it earns is looked at, as data."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from forecast_ledger.ledger.core.values import DAY, LARGEST_CASH

PERCENT = 10**6  # units in a percent
WHOLE = 100 * PERCENT
_SECOND = 10**6  # µs
_WEEK = 7 * DAY
_FIRST_SUNDAY = 3 * DAY  # the epoch was a Thursday

# Why a reply is no decision, in order of precedence; the reading itself comes first, what money allows last.
REPLY_FAULTS = {
    "unreadable": "not one JSON object of the form",
    "unknown_action": "the action is none of BET, SELL and HOLD",
    "no_reasoning": "the reasoning is missing or blank",
    "no_legs": "BET without bets, or SELL without sells",
    "mixed_legs": "legs that do not belong to the action",
    "blank_leg": "a leg without market_id and side, or without position_id",
    "bad_amount": "an amount is no number, or beyond every limit",
    "below_least_bet": "a bet of less than the least",
    "above_cap": "one bet of more than the cap at the start",
    "above_sum_cap": "all bets together are more than the cap at the start",
    "bad_percentage": "a percentage is no number, or out of range",
}
# Why a leg is refused, in order of precedence.
LEG_CODES = {
    "unknown_market": "the contest has no such question",
    "unknown_side": "the question has no such outcome",
    "no_position": "no such position is open",
    "market_closed": "the question is not open, or is settled",
    "no_quote": "the outcome has no price",
    "quote_too_new": "the price is of a later instant",
    "stale_quote": "the price is too old",
    "no_price": "nothing can be bought at a price of 0",
    "above_cap": "more than the cap of the cash that the legs before left",
    "no_shares": "not one unit of a share",
    "too_many_shares": "more shares than one account may ever buy",
    "sibling_refused": "all or nothing: another leg was refused",
}

Seconds = Annotated[int, Meta(ge=0, le=10**9)]


class Trading(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a contest's participants trade; the defaults are those of Forecaster Arena's first methodology.

    `forecast-ledger help trading` says what each field means, and each of its values.
    Source: Forecaster Arena, Methodology v1, "Starting Capital and Constraints", "Decision Protocol" and "Snapshot
    Methodology"; it does not say how old a price may be.
    """

    starting_cash: Annotated[int, Meta(ge=0, le=LARGEST_CASH)] = 10_000 * 10**6
    least_bet: Annotated[int, Meta(ge=1, le=LARGEST_CASH)] = 50 * 10**6
    cap_divisor: Annotated[int, Meta(ge=1, le=1_000)] = 4
    least_percentage: Annotated[int, Meta(ge=1, le=WHOLE)] = PERCENT
    legs: Literal["independent", "all_or_nothing"] = "independent"
    sum_capped: bool = False
    attempts: Annotated[int, Meta(ge=1, le=100)] = 2
    stale_after_seconds: Seconds = 3_600
    snapshot_seconds: Annotated[int, Meta(ge=60, le=10**9)] = 600
    period_days: Annotated[int, Meta(ge=0, le=36_525)] = 7
    cohorts: Literal["weekly", "none"] = "weekly"
    deciding_cohorts: Annotated[int, Meta(ge=0, le=1_000)] = 0
    recapitalisation: bool = False
    closed_marks: Literal["prior", "last"] = "prior"


def bet_cap(trading: Trading, cash: int) -> int:
    """The largest bet that cash allows, 1e-6, rounded down; 0 in debt.

    >>> bet_cap(Trading(), 7_333_350_000)
    1833337500
    """
    return max(cash, 0) // trading.cap_divisor


def latest_sunday(at: int) -> int:
    """The latest Sunday 00:00 UTC not after an instant, µs.

    >>> latest_sunday(3 * DAY - 1) // DAY, latest_sunday(3 * DAY) // DAY
    (-4, 3)
    """
    return at - (at - _FIRST_SUNDAY) % _WEEK


def period_number(trading: Trading, starts_at: int, at: int) -> int:
    """The number of the period that an instant from the start on is in, by days of UTC.

    >>> period_number(Trading(), DAY - 1, DAY), period_number(Trading(), 0, 7 * DAY)
    (1, 2)
    """
    return (at // DAY - starts_at // DAY) // trading.period_days + 1


def is_stale(trading: Trading, quoted_at: int, at: int) -> bool:
    """Whether a quote is too old to trade at.

    >>> is_stale(Trading(), 0, 3_600 * 10**6), is_stale(Trading(), 0, 3_600 * 10**6 + 1)
    (False, True)
    """
    return at - quoted_at > trading.stale_after_seconds * _SECOND
