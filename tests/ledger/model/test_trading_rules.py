"""Tests of trading rules: defaults, limits of the fields, caps of bets, and periods."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from forecast_ledger.ledger.model.trading_rules import (
    LEG_CODES,
    REPLY_FAULTS,
    Trading,
    bet_cap,
    encoded_name,
    is_stale,
    latest_sunday,
    period_number,
)
from forecast_ledger.replay.reference.rule_fields import RULES
from tests.support.given import DAY, HOUR, micros

SECOND = 10**6
MONEY = 10**6
INSTANTS = st.integers(-6 * 10**16, 2 * 10**17)  # about 7,000 years
# Forecaster Arena, Methodology v1, "Starting Capital and Constraints", "Schedule", "Decision Protocol", "Snapshot
# Methodology"; no document says how old a price may be, or what a closed question is worth.
PUBLISHED: dict[str, Any] = {
    "starting_cash_micros": 10_000 * MONEY,
    "least_bet_micros": 50 * MONEY,
    "cap_divisor": 4,
    "least_percentage_micros": 1 * MONEY,
    "legs": "independent",
    "sum_capped": False,
    "attempts": 2,
    "stale_after_seconds": 3_600,
    "snapshot_seconds": 600,
    "period_days": 7,
    "cohorts": "weekly",
    "deciding_cohorts": 0,
    "recapitalisation": False,
    "closed_marks": "prior",
    "replies": "strict",
    "completed_by": "all",
    "fee_rate_ppm": 0,
    "fee_exponent": 1,
    "fee_unit_micros": 1,
    "fee_rounding": "up",
    "fills": "price",
    "marks": "price",
    "depth": "unlimited",
    "recorded_trades": False,
    "short_sales": False,
    "overdrafts": False,
    "shares_against": False,
}
LIMITS: dict[str, tuple[int, int]] = {
    "starting_cash_micros": (0, 10**15),
    "least_bet_micros": (1, 10**15),
    "cap_divisor": (1, 1_000),
    "least_percentage_micros": (1, 10**8),
    "attempts": (1, 100),
    "stale_after_seconds": (0, 10**9),
    "snapshot_seconds": (60, 10**9),
    "period_days": (0, 36_525),
    "deciding_cohorts": (0, 1_000),
    "fee_rate_ppm": (0, 10**6),
    "fee_exponent": (1, 4),
    "fee_unit_micros": (1, 10**9),
}
HINTS = get_type_hints(Trading)
CHOSEN = {field: get_args(hint) for field, hint in HINTS.items() if get_origin(hint) is Literal}
FLAGS = [field for field, hint in HINTS.items() if hint is bool]


def read(**fields: Any) -> Trading:
    """Return trading rules as read from an event."""
    return msgspec.json.decode(msgspec.json.encode(fields), type=Trading)


def test_the_rules_that_are_not_given_are_those_of_the_first_methodology() -> None:
    """Every default has the value of the document."""
    assert msgspec.structs.asdict(Trading()) == PUBLISHED
    assert read() == Trading()


def test_those_are_all_the_fields_and_each_is_described() -> None:
    """A field is a number with limits, a choice, or a truth value, and has a meaning in the table of fields."""
    assert {*LIMITS, *CHOSEN, *FLAGS} == set(Trading.__struct_fields__)
    assert RULES.keys() >= {*Trading.__struct_encode_fields__}


@pytest.mark.parametrize(("field", "limits"), LIMITS.items())
def test_a_number_of_the_rules_keeps_within_its_limits(field: str, limits: tuple[int, int]) -> None:
    """Both limits are allowed, and values beyond them are not."""
    least, most = limits
    name = encoded_name(field)
    assert [getattr(read(**{name: number}), field) for number in limits] == [least, most]
    wrong: list[Any] = [least - 1, most + 1, -(10**18), 10**18, 0.5, "1", None, True, []]
    for number in wrong:
        with pytest.raises(msgspec.ValidationError, match=name):
            read(**{name: number})


@pytest.mark.parametrize("field", CHOSEN)
def test_a_choice_of_the_rules_is_one_of_its_names(field: str) -> None:
    """A choice must be spelt exactly like one of its names."""
    assert {getattr(read(**{field: name}), field) for name in CHOSEN[field]} == set(CHOSEN[field])
    wrong: list[Any] = ["", CHOSEN[field][0].upper(), CHOSEN[field][0] + " ", None, 1, [CHOSEN[field][0]]]
    for name in wrong:
        with pytest.raises(msgspec.ValidationError, match=field):
            read(**{field: name})


def test_an_unknown_rule_is_not_passed_over() -> None:
    """A misspelt limit would be no limit."""
    for field in ("fee", "Legs", "sum_caped"):
        with pytest.raises(msgspec.ValidationError):
            read(**{field: 1})


def test_every_code_of_a_fault_and_of_a_leg_says_what_is_wrong() -> None:
    """Every code has one plain phrase; the codes are in the order in which they apply."""
    assert list(REPLY_FAULTS) == [
        *["unreadable", "unknown_action", "no_reasoning", "no_legs", "mixed_legs", "blank_leg"],
        *["bad_amount", "below_least_bet", "above_cap", "above_sum_cap", "bad_percentage"],
    ]
    assert list(LEG_CODES)[:2] == ["unknown_market", "unknown_side"]
    for phrase in [*REPLY_FAULTS.values(), *LEG_CODES.values()]:
        assert phrase.isprintable()
        assert phrase
        assert not phrase.endswith(".")


@pytest.mark.parametrize(
    ("cash", "most"),
    [
        ("10000", "2500"),
        ("8000", "2000"),
        ("7333.35", "1833.3375"),  # 1,833.34, as a rounded prompt shows it, would be too much
        ("8975.87", "2243.9675"),
        ("0.000003", "0"),
        ("0.000004", "0.000001"),
        ("0", "0"),
        ("-0.000001", "0"),
        ("-5000", "0"),  # a participant in debt may not bet
    ],
)
def test_the_cap_is_a_quarter_of_the_cash_rounded_down(cash: str, most: str) -> None:
    """The cap is never rounded up, and is never below 0.

    Source: Forecaster Arena, Scoring Methodology, "Deriving Confidence from Bet Size".
    """
    assert bet_cap(Trading(), int(Fraction(cash) * MONEY)) == Fraction(most) * MONEY


@examples(st.integers(-(10**15), 10**18), st.integers(1, 1_000))
def test_the_cap_is_the_largest_amount_that_is_no_more_than_its_part_of_the_cash(cash: int, divisor: int) -> None:
    """An amount of one unit more would exceed it."""
    most = bet_cap(Trading(cap_divisor=divisor), cash)
    assert most * divisor <= max(cash, 0) < (most + 1) * divisor


@examples(INSTANTS)
def test_a_week_starts_on_the_latest_sunday_at_midnight(at: int) -> None:
    """The weekday agrees with Python's calendar."""
    start = latest_sunday(at)
    assert at - 7 * DAY < start <= at
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=start)
    assert (when.strftime("%A"), when.time().isoformat()) == ("Sunday", "00:00:00")


@pytest.mark.parametrize(
    ("at", "number"),
    [
        (micros(1), 1),
        (micros(1, 0) + 5 * 60 * SECOND, 1),  # Sunday 00:05, when the first decisions are due
        (micros(8) - 1, 1),
        (micros(8), 2),
        (micros(15), 3),
        (micros(29, 23), 5),
    ],
)
def test_a_period_is_a_week_from_the_start(at: int, number: int) -> None:
    """It is the days since the start, divided by seven and rounded down, plus 1. Source: Forecaster Arena's published
    code.
    """
    assert period_number(Trading(), micros(1), at) == number


@pytest.mark.parametrize(
    ("hour", "at", "number"),
    [(23, micros(2), 1), (23, micros(3) - 1, 1), (23, micros(3), 2), (0, micros(2), 1), (12, micros(4, 23), 2)],
)
def test_periods_are_counted_in_days_of_utc_whatever_the_hour_of_the_start(hour: int, at: int, number: int) -> None:
    """Days run from midnight to midnight: a contest that starts at 23:00 has one hour of its first day."""
    assert period_number(Trading(period_days=2), micros(1, hour), at) == number


@examples(INSTANTS, st.integers(0, 10**15), st.integers(1, 36_525))
def test_periods_follow_one_another_without_a_gap(start: int, later: int, days: int) -> None:
    """Each period has as many days of UTC as the rules say, and the first begins on the day of the start."""
    rules = Trading(period_days=days)
    number = period_number(rules, start, start + later)
    first = start - start % DAY
    assert first + (number - 1) * days * DAY <= start + later < first + number * days * DAY


@pytest.mark.parametrize(("age", "old"), [(0, False), (HOUR, False), (HOUR + 1, True), (-1, False)])
def test_a_price_is_stale_when_it_is_older_than_the_rules_allow(age: int, old: bool) -> None:
    """By default, a price is stale after an hour; the last µs still counts."""
    assert is_stale(Trading(), micros(2), micros(2) + age) is old
    assert is_stale(Trading(stale_after_seconds=0), micros(2), micros(2)) is False
    assert is_stale(Trading(stale_after_seconds=0), micros(2), micros(2) + 1) is True
