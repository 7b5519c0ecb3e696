"""Portfolios over time, against figures worked out by hand and a slow definition in fractions on random seasons."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from random import Random
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.ledger.model.commands import AnyCommand, Bet, Command, OpenQuestion, QuotePrices, read
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.trading import account_histories
from forecast_ledger.projections.trading.mark_prices import Marks
from forecast_ledger.projections.trading.portfolios import MISSING, Snapshots, drawdowns, snapshots
from tests.support.given import (
    NOW,
    SUNDAY,
    bet,
    cancellation,
    cash_out,
    choices,
    closing,
    cohort,
    contest,
    day,
    decision,
    deposit,
    enrolment,
    entry,
    finalization,
    forecast,
    market,
    micros,
    quote,
    resolution,
    revocation,
    sale,
    trading_floor,
)
from tests.support.trading_model import Book
from tests.support.trading_parts import Account, Position
from tests.support.trading_seasons import Season, Told, micros_of
from tests.system.test_stories import recorded

UNIT, MONEY, SECOND, TICK = 10**9, 10**6, 10**6, 600 * 10**6
HOLD = decision()
FIELDS = [
    *("cash", "positions_value", "total", "profit", "profit_percent", "brier", "resolved_bets"),
    *("realised", "unrealised", "stale_marks", "stale_age"),
]
BOARD = "arena_leaderboard"
Line = dict[str, Any]


def rules(**trading: Any) -> RuleSet:
    """The first methodology with other numbers; a period is just a number."""
    preset = PRESETS["arena-v1"]
    assert preset.trading is not None
    return structs.replace(preset, trading=structs.replace(preset.trading, period_days=0, **trading))


def played(*commands: Command) -> Facts:
    """What a log says that has these commands."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        for number, command in enumerate(commands):
            ledger.handle(cast("AnyCommand", command), f"c{number}")
        return facts(ledger.read())


def looks(found: Facts, name: str = "week") -> Snapshots:
    """The snapshots of a contest."""
    return snapshots(found, Marks(found), name)


def lines(of: Snapshots, participant: str = "ada") -> list[Line]:
    """The rows of one account."""
    columns = {name: np.array(getattr(of, name), object) for name in ("at", "log_position", *FIELDS)}
    rows = np.flatnonzero(of.participant == of.participants.index(participant)).tolist()
    return [{name: int(values[row]) for name, values in columns.items()} for row in rows]


def tick(of: Snapshots, at: int, participant: str = "ada") -> Line:
    """The row at a tick."""
    [line] = [line for line in lines(of, participant) if (line["at"], line["log_position"]) == (at, MISSING)]
    return line


def moves(of: Snapshots, participant: str = "ada") -> list[Line]:
    """The rows at movements."""
    return [line for line in lines(of, participant) if line["log_position"] != MISSING]


def money(amount: str) -> int:
    """An amount in 1e-6."""
    return int(Fraction(amount) * MONEY)


# --- one account, by hand: 500 at 0.40 on March 2 buy 1,250 shares


def test_a_portfolio_is_cash_and_positions_at_their_last_price() -> None:
    """1,250 shares at 0.50 are worth 625: 9,500 + 625 - 10,000 = +125, 1.25 %; nothing of it is realised."""
    of = looks(played(*trading_floor(), decision(bet()), quote(at=day(3), prices={"yes": "0.5"})))
    expected = {"cash": money("9500"), "positions_value": money("625"), "total": money("10125")}
    expected |= {"profit": money("125"), "unrealised": money("125"), "realised": 0, "profit_percent": 1_250_000_000}
    expected |= {"brier": MISSING, "resolved_bets": 0, "stale_marks": 0, "stale_age": 0}
    assert tick(of, micros(3)) == {"at": micros(3), "log_position": MISSING} | expected
    assert tick(of, micros(3) - TICK)["profit"] == 0


def test_a_tick_at_the_instant_of_a_movement_has_the_movement() -> None:
    """At one instant rows are in order of log position, the tick last; the tick before does not have it."""
    of = looks(played(*trading_floor(), decision(bet(), bet(100, "NO"))))
    there = [line for line in lines(of) if line["at"] == micros(2)]
    assert [line["log_position"] for line in there] == [11, 12, MISSING]
    assert [line["cash"] for line in there] == [money("9500"), money("9400"), money("9400")]
    assert tick(of, micros(2) - TICK)["cash"] == money("10000")


def test_a_movement_between_two_ticks_has_a_row_of_its_own() -> None:
    """At its instant; the next tick has it."""
    at = "2026-03-02T00:07:00Z"
    of = looks(played(*trading_floor(), decision(bet(), at=at), quote(at=day(3))))
    rows = [(line["at"], line["cash"]) for line in lines(of) if micros(2) <= line["at"] <= micros(2) + TICK]
    cash, left = money("10000"), money("9500")
    assert rows == [(micros(2), cash), (micros(2) + 7 * 60 * SECOND, left), (micros(2) + TICK, left)]
    assert tick(of, micros(2) + TICK)["stale_age"] == TICK


def test_ticks_go_from_the_start_to_the_clock() -> None:
    """Every ten minutes from Sunday to the last quote's instant, March 2 at 00:00: 145 and no more. Whatever claims an
    instant moves the clock: a price by when it is told, a forecast, a question opened.
    """
    of = looks(played(*trading_floor()))
    ticks = [line["at"] for line in lines(of) if line["log_position"] == MISSING]
    assert ticks == list(range(micros(1), micros(2) + 1, TICK))
    at = "2026-03-02T00:19:59.999999Z"
    for later in (
        quote(at=at, quoted_at=day(2)),
        forecast(at=at),
        market("snow", at=at),
        enrolment("week", "bo", at=at),
    ):
        late = looks(played(*trading_floor(), later))
        assert [line["at"] for line in lines(late)][-1] == micros(2) + TICK


def test_other_rules_look_at_other_times() -> None:
    """Every 7,777 seconds."""
    found = played(*trading_floor(rules=rules(snapshot_seconds=7_777, cohorts="none"), at=day(1, 5)))
    ticks = [line["at"] for line in lines(looks(found)) if line["log_position"] == MISSING]
    assert ticks == list(range(micros(1, 5), micros(2) + 1, 7_777 * SECOND))


def test_more_ticks_than_fit_in_a_table_are_refused() -> None:
    """A quote of the year 2199 asks for one every minute until then: 91 million rows of one portfolio."""
    far = quote(at="2199-01-01T00:00:00Z")
    with pytest.raises(Refused, match="contest 'week' would have 90,9"):
        looks(played(*trading_floor(rules=rules(snapshot_seconds=60)), far))
    assert len(looks(played(*trading_floor(rules=rules(snapshot_seconds=10**9)), far)).at) > 1


def test_ticks_of_all_contests_together_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two contests of two accounts each: every ten minutes of a day and at its end, 145 times, at each of the four."""
    floor = trading_floor("ada", "bo", rules=rules(cohorts="none"))
    again = [each for each in floor if not isinstance(each, OpenQuestion | QuotePrices)]
    again = [structs.replace(each, contest="month") for each in again]
    found = played(*floor, *again, quote(at=day(2)))
    for most, refused in ((4 * 145 - 1, True), (4 * 145, False)):
        monkeypatch.setattr(account_histories, "MOST_TICK_ROWS", most)
        with pytest.raises(Refused, match=r"580 rows at ticks, 290 of them for") if refused else nullcontext():
            assert len(Projections(found).table("portfolio_snapshots")) >= 4 * 145


def test_a_board_skips_ticks_without_a_change() -> None:
    """Yes goes from 0.40 to 0.20 in the year 2199: 500 of 10,000 become 250, which is a fall of 2.5 %."""
    far = quote(at="2199-01-01T00:00:00Z", prices={"yes": "0.2"})
    story = trading_floor(rules=rules(snapshot_seconds=60, closed_marks="last"))
    [row] = Projections(played(*story, decision(bet(500)), far)).table("arena_leaderboard").rows()
    assert (row["profit"], row["drawdown"]) == ("-250.00", "0.025000000")


@pytest.mark.parametrize("seed", range(12))
def test_falls_are_the_same_where_only_changes_are_looked_at(seed: int) -> None:
    """Between a change and the next every tick sees the same total."""
    found = facts([season(seed)[1]])
    for name, each in found.contests.items():
        if each.opened.rules.trading is not None:
            every, few = looks(found, name), snapshots(found, Marks(found), name, changes=True)
            assert drawdowns(few) == drawdowns(every)
            assert len(few.at) <= len(every.at)


def test_nobody_is_looked_at_before_the_first_movement() -> None:
    """Who enrols on the 2nd at 00:05 is first seen then, and at the tick after."""
    late = enrolment("week", "bo", at="2026-03-02T00:05:00Z")
    of = looks(played(*trading_floor(), late, quote(at="2026-03-02T00:15:00Z")))
    five = micros(2) + 5 * 60 * SECOND
    assert [(line["at"], line["log_position"]) for line in lines(of, "bo")] == [(five, 11), (micros(2) + TICK, MISSING)]


def test_rows_are_in_order_of_participant() -> None:
    """By id as text, whoever enrolled first."""
    of = looks(played(*trading_floor("bo", "Zoe", "ada", "ad")))
    assert of.participants == ["Zoe", "ad", "ada", "bo"]
    assert of.participant.tolist() == sorted(of.participant.tolist())
    assert [lines(of, who)[0]["log_position"] for who in of.participants] == [9, 13, 11, 7]


def test_looks_end_when_the_contest_is_complete() -> None:
    """Everybody has decided and nothing is open from 00:05 on the 3rd: the tick of 00:00 is the last."""
    end = "2026-03-03T00:05:00Z"
    story = [*trading_floor(), decision(bet()), resolution(at=end), quote("colour", prices={"red": 1}, at=day(9))]
    for commands in (story, [*story, finalization("week")]):
        of = looks(played(*commands))
        assert lines(of)[-2]["at"] == micros(3)
        last = lines(of)[-1]
        assert (last["at"], last["cash"], last["stale_age"]) == (micros(3) + TICK // 2, money("10750"), MISSING)


def test_looks_go_on_when_a_complete_contest_is_so_no_longer() -> None:
    """The resolution is revoked: there is an open position again, to be looked at until the clock."""
    story = [*trading_floor(), decision(bet()), resolution(at=day(3)), revocation(at=day(4)), quote(at=day(5))]
    of = looks(played(*story))
    assert tick(of, micros(3))["cash"] == money("10750")
    assert (lines(of)[-1]["at"], lines(of)[-1]["total"]) == (micros(5), money("10000"))


def test_a_hold_by_everybody_ends_the_looks_at_once() -> None:
    """There is nothing more to come."""
    of = looks(played(*trading_floor(), HOLD, quote("colour", prices={"red": 1}, at=day(9))))
    assert max(of.at) == micros(2)


def test_what_is_quoted_after_the_seal_changes_nothing() -> None:
    """A price told of late would have been the mark of the 3rd, but the contest was sealed without it."""
    story = [*trading_floor(), decision(bet()), resolution(at=day(4)), finalization("week")]
    late = quote(at=day(5), quoted_at=day(3), prices={"yes": "0.9"})
    assert lines(looks(played(*story, late))) == lines(looks(played(*story)))


def test_what_is_resolved_after_the_seal_changes_nothing() -> None:
    """Scores are those of the sealed log position: also of what was sold on the 9th and is said to be known since."""
    sold = decision(sale(), at=day(9), period=2)
    story = [*trading_floor(), decision(bet()), quote(at=day(9)), sold]
    before = lines(looks(played(*story, finalization("week"))))
    assert lines(looks(played(*story, finalization("week"), resolution(at=day(9))))) == before
    assert before[-1]["brier"] == MISSING
    assert tick(looks(played(*story, resolution(at=day(9)), finalization("week"))), micros(9))["brier"] == 640_000_000


# --- marks


def test_a_mark_is_stale_when_one_could_not_trade_at_it() -> None:
    """An hour is not yet too old, ten minutes more are; the oldest mark of what is open says how old."""
    story = [*trading_floor(), decision(bet(), bet(100, "red", "colour")), quote(at=day(2, 1)), quote(at=day(3))]
    of = looks(played(*story))
    hour = micros(2, 1)
    seen = [tick(of, at) for at in (hour, hour + TICK, hour + 6 * TICK, hour + 7 * TICK, micros(3))]
    assert [line["stale_marks"] for line in seen] == [0, 1, 1, 2, 1]
    ages = [3_600, 4_200, 7_200, 7_800, 86_400]
    assert [line["stale_age"] for line in seen] == [age * SECOND for age in ages]


def test_a_sold_position_has_no_mark_to_be_stale() -> None:
    """Only open ones count."""
    story = [*trading_floor(), decision(bet()), quote(at=day(9)), decision(sale(), at=day(9), period=2)]
    of = looks(played(*story))
    assert (tick(of, micros(9) - TICK)["stale_marks"], tick(of, micros(9) - TICK)["stale_age"] > 0) == (1, True)
    assert (tick(of, micros(9))["stale_marks"], tick(of, micros(9))["stale_age"]) == (0, MISSING)


@pytest.mark.parametrize(("marked", "value"), [("prior", "500"), ("last", "1125")])
def test_a_closed_question_is_valued_by_the_rule(marked: str, value: str) -> None:
    """1,250 shares at the 0.40 of before the close, or the 0.90 of after; either is stale."""
    story = [*trading_floor(rules=rules(closed_marks=marked)), decision(bet()), closing(at=day(3))]
    of = looks(played(*story, quote(at=day(4), prices={"yes": "0.9"})))
    line = tick(of, micros(4))
    assert (line["positions_value"], line["stale_marks"]) == (money(value), 1)
    assert line["stale_age"] == (0 if marked == "last" else micros(4) - micros(2))


def test_what_was_bought_has_a_mark_whenever_the_market_closed() -> None:
    """The earliest close there can be is right after the purchase, whose price stays the mark; an answer known from
    before the purchase moves no mark either, until it is recorded.
    """
    story = [*trading_floor(), decision(bet()), closing(at="2026-03-02T00:00:00.000001Z")]
    line = tick(looks(played(*story, quote(at=day(3), prices={"yes": "0.9"}))), micros(3))
    assert (line["positions_value"], line["stale_marks"], line["stale_age"]) == (money("500"), 1, 86_400 * SECOND)
    known = resolution(at=day(9), known_at=day(1, 12))
    of = looks(played(*trading_floor("ada", "bo"), decision(bet()), quote(at=day(3)), known))
    assert (tick(of, micros(3))["positions_value"], tick(of, micros(9))["cash"]) == (money("500"), money("10750"))


@pytest.mark.parametrize("seed", range(12))
def test_whoever_has_paid_has_a_mark(seed: int) -> None:
    """Where something is open that has cost money, a mark is known."""
    found = facts([season(seed)[1]])
    for name in traded(found):
        of = looks(found, name)
        assert not np.any((of.cost > 0) & (of.stale_age == MISSING))


def test_a_movement_is_valued_with_what_was_recorded_by_then() -> None:
    """A price of the same instant that comes after it in the log is the tick's, not the movement's."""
    of = looks(played(*trading_floor(), decision(bet()), quote(prices={"yes": "0.8"})))
    [_, bought] = moves(of)
    assert (bought["total"], tick(of, micros(2))["total"]) == (money("10000"), money("10500"))


@pytest.mark.parametrize("marked", ["prior", "last"])
def test_a_price_told_later_rewrites_no_look_before(marked: str) -> None:
    """Told at 00:11 for 00:09, it is not in the looks at 00:10, neither at the tick nor at the movement of then that
    the log has after it; both say what was known, 1,250 shares at 0.40 and cash of 9,500 less 100.
    """
    floor = [*trading_floor(rules=rules(closed_marks=marked)), decision(bet())]
    ten, eleven, nine = (f"2026-03-02T00:{minute}:00Z" for minute in ("10", "11", "09"))
    late = quote(at=eleven, quoted_at=nine, prices={"yes": "0.8"})
    red = decision(bet(100, "red", "colour"), at=ten, period=2)
    of = looks(played(*floor, late, red))
    assert tick(of, micros(2) + TICK)["total"] == money("10000")
    [*_, moved] = moves(of)
    last = tick(of, micros(2) + TICK)
    assert {name: moved[name] for name in FIELDS} == {name: last[name] for name in FIELDS}
    assert (moved["cash"], moved["total"]) == (money("9400"), money("10000"))
    whole = looks(played(*floor, late, red, quote("colour", at="2026-03-02T00:20:00Z", prices={"red": "0.5"})))
    assert tick(whole, micros(2) + 2 * TICK)["total"] == money("10500")


def test_a_trade_at_a_price_told_later_counts_from_when_it_is_told() -> None:
    """Decided at 00:10 at a price of 00:09 that the log was told at 00:11: the movement is of 00:11."""
    ten, eleven, nine = (f"2026-03-02T00:{minute}:00Z" for minute in ("10", "11", "09"))
    of = looks(
        played(*trading_floor(), quote(at=eleven, quoted_at=nine, prices={"yes": "0.8"}), decision(bet(), at=ten))
    )
    [_, moved] = moves(of)
    assert (moved["at"], moved["total"], moved["stale_age"]) == (
        micros(2) + 11 * 60 * SECOND,
        money("10000"),
        120 * SECOND,
    )
    assert tick(of, micros(2) + TICK)["cash"] == money("10000")


def test_who_holds_nothing_is_worth_the_cash() -> None:
    """And a contest without participants, or prices, has no rows, or rows of cash."""
    of = looks(played(cohort(), enrolment("week", "ada", at=day(1))))
    assert [(line["total"], line["stale_age"]) for line in lines(of)] == [(money("10000"), MISSING)] * 2
    nobody = looks(played(cohort()))
    assert (len(nobody.at), nobody.participants, drawdowns(nobody)) == (0, [], {})
    assert list(nobody.profit_percent) == list(nobody.total) == []


def test_where_one_does_not_trade_there_are_no_portfolios() -> None:
    """A contest of forecasts."""
    found = played(contest("cup"))
    with pytest.raises(KeyError):
        looks(found, "cup")


# --- Brier scores


def test_a_bet_is_scored_from_its_settlement_on() -> None:
    """500 of 2,500 is 0.2: (0.2 - 1)² = 0.64. Forecaster Arena, Scoring Methodology, "Brier Score"; the second, 475 of
    2,375, is 0.2 again, lost.
    """
    story = [*trading_floor(), decision(bet(), bet(475, "red", "colour")), resolution(at=day(3))]
    of = looks(played(*story, resolution("colour", outcome="green", at=day(4))))
    assert tick(of, micros(3) - TICK)["brier"] == MISSING
    assert (tick(of, micros(3))["brier"], tick(of, micros(3))["resolved_bets"]) == (640_000_000, 1)
    assert (tick(of, micros(4))["brier"], tick(of, micros(4))["resolved_bets"]) == (340_000_000, 2)


def test_a_bet_sold_before_is_scored_from_the_resolution_on() -> None:
    """No movement says so; a revocation takes it away again, an annulment gives nothing."""
    sold = decision(sale(), at=day(9), period=2)
    story = [*trading_floor("ada", "bo"), decision(bet()), quote(at=day(9)), sold]
    ends = [resolution(at=day(10)), revocation(at=day(11)), cancellation(at=day(12), policy="refund_cost")]
    of = looks(played(*story, *ends, quote("colour", prices={"red": 1}, at=day(13))))
    seen = [tick(of, at)["brier"] for at in (micros(10) - TICK, micros(10), micros(11) - TICK, micros(11), micros(12))]
    assert seen == [MISSING, 640_000_000, 640_000_000, MISSING, MISSING]
    assert [line["brier"] for line in moves(of)] == [MISSING] * 3


def test_a_resolution_counts_for_an_account_from_its_movement_before_at_the_earliest() -> None:
    """Said to be of the 5th, but in the log after the account's sale of the 9th."""
    sold = decision(sale(), at=day(9), period=2)
    of = looks(played(*trading_floor("ada", "bo"), decision(bet()), quote(at=day(9)), sold, resolution(at=day(5))))
    assert [tick(of, at)["brier"] for at in (micros(5), micros(9) - TICK, micros(9))] == [MISSING, MISSING, 640_000_000]


def test_half_a_payout_is_half_a_win() -> None:
    """(0.2 - 0.5)² = 0.09, and 1,250 x 0.50 = 625: +125."""
    story = [
        *trading_floor(),
        decision(bet()),
        resolution(payouts={"yes": "0.5", "no": "0.5"}, outcome=None, at=day(3)),
    ]
    line = moves(looks(played(*story)))[-1]
    assert (line["brier"], line["realised"], line["cash"]) == (90_000_000, money("125"), money("10125"))


def test_several_positions_of_one_question_are_scored_one_by_one() -> None:
    """Each by the movement that settles it: yes (0.2 - 1)² = 0.64; no, 475 of 2,375, (0.2 - 0)² = 0.04."""
    story = [*trading_floor(), decision(bet(), bet(475, "NO")), resolution(at=day(3))]
    [*_, yes, no] = moves(looks(played(*story)))
    assert (yes["brier"], yes["resolved_bets"]) == (640_000_000, 1)
    assert (no["brier"], no["resolved_bets"]) == (340_000_000, 2)


# --- corrections, and instants out of order


def test_a_correction_may_leave_debt() -> None:
    """2,500 at 0.40 pay 6,250: 13,750. All but 3,862.5 are bet again; taken back and lost, that is -449.21875.

    Caps of a quarter: 3,437.5; 2,578.125; 1,933.59375. The total falls from 13,750 to 7,500 while colours are at cost.
    """
    legs = [bet(amount, "red", "colour") for amount in ("3437.5", "2578.125", "1933.59375")]
    again = [quote("colour", prices={"red": "0.5"}, at=day(9)), decision(*legs, at=day(9), period=2)]
    ends = [revocation(at=day(10)), resolution(outcome="no", at=day(11))]
    floor = trading_floor("ada", "bo", rules=rules(cohorts="none"))
    of = looks(played(*floor, decision(bet(2_500)), resolution(at=day(3)), *again, *ends))
    won, *_, undone, lost = moves(of)[2:]
    assert (won["cash"], won["brier"]) == (money("13750"), 0)
    assert (undone["cash"], undone["brier"]) == (-money("449.21875"), MISSING)
    assert undone["positions_value"] == money("2500") + money("7949.21875")
    assert (lost["cash"], lost["total"], lost["realised"]) == (-money("449.21875"), money("7500"), -money("2500"))
    assert (lost["profit_percent"], lost["brier"]) == (-25 * UNIT, UNIT)
    assert drawdowns(of) == {("week", "ada"): 454_545_455, ("week", "bo"): 0}  # 6,250 / 13,750 = 5 / 11


def test_a_movement_never_counts_before_the_one_that_precedes_it() -> None:
    """Settled by a resolution said to be of the 5th, after one of the 10th: both count from the 10th."""
    story = [*trading_floor(), decision(bet(), bet(475, "red", "colour")), resolution(at=day(10))]
    of = looks(played(*story, resolution("colour", outcome="red", at=day(5)), quote(at=day(11))))
    assert [line["at"] for line in moves(of)[-2:]] == [micros(10)] * 2
    assert (tick(of, micros(5))["resolved_bets"], tick(of, micros(5))["cash"]) == (0, money("9025"))


def test_what_was_voided_is_as_if_it_had_not_been() -> None:
    """Half is sold at 0.80 for 500, which with the 9,500 makes 10,000; voided, 500 - 500 = 0 more come back."""
    half = decision(sale(50), at=day(9), period=2)
    of = looks(
        played(
            *trading_floor(), decision(bet()), quote(at=day(9), prices={"yes": "0.8"}), half, cancellation(at=day(10))
        )
    )
    sold, voided = moves(of)[-2:]
    assert (sold["realised"], sold["unrealised"], sold["total"]) == (money("250"), money("250"), money("10500"))
    assert (voided["realised"], voided["unrealised"], voided["total"]) == (0, 0, money("10000"))


def test_cash_from_outside_is_no_profit() -> None:
    """625 of value is +125 on 10,000, as on 20,000 after 10,000 more: 0.625 %."""
    story = [
        *trading_floor(rules=rules(recapitalisation=True)),
        decision(bet()),
        quote(at=day(3), prices={"yes": "0.5"}),
    ]
    of = looks(played(*story, deposit(10_000, at=day(3, 1))))
    assert [line["profit"] for line in moves(of)] == [0, 0, money("125")]
    assert moves(of)[-1]["profit_percent"] == 625_000_000


def test_the_percentage_of_no_deposits_is_none() -> None:
    """9,500 are left and taken out, then 500 of the 625 that a sale brings: net 0; 100 more: net -100, and -125 %."""
    story = [
        *trading_floor(rules=rules(recapitalisation=True)),
        decision(bet()),
        quote(at=day(3), prices={"yes": "0.5"}),
    ]
    ends = [cash_out(9_500, at=day(3)), decision(sale(), at=day(3), period=2), cash_out(500, at=day(3))]
    *_, none, less = moves(looks(played(*story, *ends, cash_out(100, at=day(3)))))
    assert (none["profit"], none["profit_percent"]) == (money("125"), 0)
    assert (less["profit"], less["profit_percent"]) == (money("125"), -125 * UNIT)


# --- large numbers


def test_as_many_shares_as_an_account_may_buy_are_worth_what_they_are() -> None:
    """1,000 at 0.000000001 buy 1e12 shares, worth 1e12 at 1; in percent of 10,000, with nine decimals, that is 1e19."""
    penny = quote(prices={"yes": "0.000000001"})
    of = looks(played(*trading_floor(), penny, decision(bet(1_000)), quote(at=day(3), prices={"yes": 1})))
    line = tick(of, micros(3))
    total = 10**12 * MONEY + money("9000")
    assert (line["positions_value"], line["total"]) == (10**12 * MONEY, total)
    assert line["profit_percent"] == (total - money("10000")) * 100 * UNIT // money("10000") > 2**63
    assert tick(of, micros(3) - TICK)["total"] == money("10000")


def test_beside_a_contest_of_large_numbers_another_is_printed_as_ever() -> None:
    """Of one 1e19 with nine decimals is printed, of the other a loss of 1,000 of 10,000."""
    penny, at = quote(prices={"yes": "0.000000001"}), {"at": SUNDAY}
    league = [cohort("league", series="league"), entry("league", "rain", **at), enrolment("league", "bob", **at)]
    bets = [decision(bet(1_000)), decision(bet(1_000, side="NO"), participant="bob", contest="league")]
    found = played(*trading_floor(), *league, penny, *bets, quote(at=day(3), prices={"yes": 1}))
    rows = Projections(found).table("portfolio_snapshots").rows()
    assert {row["profit_percent"] for row in rows if row["contest"] == "league"} == {"0.000000000", "-10.000000000"}


def test_the_sum_of_many_positions_does_not_wrap() -> None:
    """140 outcomes at 1, of each 134.217727 shares: 2^27 - 1 in 1e-6, the most that is added up before a carry."""
    names = tuple(f"o{number:03}" for number in range(140))
    many = choices("many", names, at=day(1), opens_at=day(1), closes_at=day(29))
    rich = cohort(rules=rules(starting_cash=10**14, cap_divisor=1))
    opening = [many, rich, entry("week", "many", at=day(1)), enrolment("week", "ada", at=day(1))]
    legs = [Bet(market_id="many", side=name, amount="134.217727") for name in names]
    priced = quote("many", prices=dict.fromkeys(names, 1))
    half = quote("many", prices=dict.fromkeys(names, "0.5"), at=day(3))
    of = looks(played(*opening, priced, decision(*legs), half))
    value = 140 * (2**27 - 1)
    assert moves(of)[-1]["positions_value"] == value
    assert tick(of, micros(3))["positions_value"] == value // 2
    assert tick(of, micros(3))["profit"] == -value // 2


@pytest.mark.parametrize("amount", [2**62, -(2**62), 2**70])
def test_an_account_beyond_what_a_log_allows_is_no_account(amount: int) -> None:
    """Nothing wraps in silence."""
    found = played(*trading_floor())
    found.books.movements[0] = found.books.movements[0]._replace(cash=amount)
    with pytest.raises(OverflowError):
        looks(found)


# --- rounding, against fractions


def made(rows: list[tuple[int, int, int, int, int]]) -> Snapshots:
    """Looks at one account: cash, worth, rest, net deposits, cost of each."""
    cash, worth, rest, net_deposits, cost = (int64_array([row[i] for row in rows]) for i in range(5))
    none = np.zeros(len(rows), np.int64)
    known = {"cash": cash, "net_deposits": net_deposits, "cost": cost, "worth": worth, "rest": rest}
    names = ("participant", "at", "log_position", "realised", "brier", "resolved_bets", "stale_marks", "stale_age")
    return Snapshots("week", ["ada"], **known, **dict.fromkeys(names, none))


MICROS = st.integers(-(10**18), 10**18) | st.integers(-(10**6), 10**6)
RESTS = st.integers(0, UNIT - 1) | st.just(UNIT // 2)
DEPOSITS = st.sampled_from([0, 1, -1, 3, 10**10, 2**53 - 1, 2**53, 10**17]) | st.integers(-(10**15), 10**15)
ROWS = st.tuples(MICROS, st.integers(0, 10**18), RESTS, DEPOSITS, st.integers(0, 10**15))


@given(st.lists(ROWS, min_size=1, max_size=20))
def test_every_figure_is_rounded_once(rows: list[tuple[int, int, int, int, int]]) -> None:
    """From the exact sum, half-even: also where cash is odd and what the positions are worth ends in a half."""
    of = made(rows)
    for row, (cash, worth, rest, net, cost) in enumerate(rows):
        value = worth + Fraction(rest, UNIT)
        profit = cash + value - net
        assert of.positions_value[row] == round(value)
        assert (of.total[row], of.profit[row]) == (round(cash + value), round(profit))
        assert of.unrealised[row] == round(value - cost)
        assert of.profit_percent[row] == (round(profit / net * 100 * UNIT) if net else 0)


def test_half_a_unit_goes_to_the_even_total() -> None:
    """1.5 is 2 although 0.5 is 0."""
    of = made([(1, 0, UNIT // 2, 0, 1)])
    assert (of.positions_value[0], of.total[0], of.unrealised[0]) == (0, 2, 0)


@given(st.lists(st.tuples(st.integers(-50, 50), st.sampled_from([0, 1, UNIT // 2])), min_size=1, max_size=30))
def test_a_drawdown_is_the_largest_of_all_falls(totals: list[tuple[int, int]]) -> None:
    """At every row what is missing of the greatest total until then, if that is above 0, over it."""
    exact = [whole + Fraction(rest, UNIT) for whole, rest in totals]
    falls = [(peak - total) / peak for peak, total in zip(accumulate(exact, max), exact, strict=True) if peak > 0]
    found = drawdowns(made([(whole, 0, rest, 0, 0) for whole, rest in totals]))
    assert found == {("week", "ada"): round(max(falls, default=Fraction(0)) * UNIT)}


FREE = rules(recapitalisation=True)


@pytest.mark.parametrize("amount", [1, 5_000, "9999.999999", 10_000])
def test_cash_that_is_taken_out_or_put_in_is_no_loss_and_no_gain(amount: Any) -> None:
    """10,000 less a withdrawal, all of it too: nothing is lost. More cash after a loss wins nothing back."""
    floor = trading_floor(rules=FREE)
    [row] = Projections(played(*floor, cash_out(amount, at=day(3)), deposit(7, at=day(4)))).table(BOARD).rows()
    assert (row["profit"], row["drawdown"]) == ("0.00", "0.000000000")
    lost = [*floor, decision(bet()), quote(at=day(3), prices={"yes": "0.2"})]  # 250 of 10,000
    for more in ([], [deposit(20_000, at=day(4))], [cash_out(9_000, at=day(4))]):
        [row] = Projections(played(*lost, *more)).table(BOARD).rows()
        assert row["drawdown"] == "0.025000000"


def test_a_fall_after_a_withdrawal_is_one_of_what_was_left() -> None:
    """10,000 fall to 9,750, which is 2.5 %; 4,875 go out, so that 4,875 stand where 5,000 would have been; 125 more are
    lost: 4,750 of 5,000 is a fall of 5 %. Without the withdrawal 9,625 of 10,000 would be one of 3.75 %.
    """
    story = [*trading_floor(rules=FREE), decision(bet()), quote(at=day(3), prices={"yes": "0.2"})]
    end = quote(at=day(5), prices={"yes": "0.1"})
    for commands, fall in (([cash_out(4_875, at=day(4)), end], Fraction(1, 20)), ([end], Fraction(3, 80))):
        [row] = Projections(played(*story, *commands)).table(BOARD).rows()
        assert row["drawdown"] == format_fixed(round(fall * UNIT), UNIT, least=9)


@given(
    st.lists(
        st.tuples(st.integers(-20, 50), st.sampled_from([0, 1, UNIT // 2]), st.sampled_from([0, 0, 0, 5, -5, 50])),
        min_size=1,
        max_size=20,
    )
)
def test_a_drawdown_is_that_of_an_index_which_cash_from_outside_does_not_move(
    steps: list[tuple[int, int, int]],
) -> None:
    """By fractions: units of a fund, bought and sold at what one is worth then; anew where one is worth nothing."""
    units, peak, deepest, net = Fraction(0), Fraction(0), Fraction(0), 0
    rows = []
    for whole, rest, inflow in steps:
        total = whole + Fraction(rest, UNIT)
        net += inflow
        rows.append((whole, 0, rest, net, 0))
        if inflow and units and total - inflow > 0 and total > 0:
            price = (total - inflow) / units
            deepest = max(deepest, (peak - price) / peak if peak else Fraction(0))
            peak = max(peak, price)
            units = total / price
        elif inflow:
            price = (total - inflow) / units if units else Fraction(0)
            deepest = max(
                deepest, (max(peak, price) - price) / max(peak, price) if max(peak, price) > 0 else Fraction(0)
            )
            units, peak = Fraction(1), Fraction(0)
        units = units or Fraction(1)
        peak = max(peak, total / units)
        deepest = max(deepest, (peak - total / units) / peak if peak else Fraction(0))
    assert drawdowns(made(rows)) == {("week", "ada"): round(deepest * UNIT)}


def test_many_flows_cost_little_and_move_no_digit() -> None:
    """20,000 times a third more is put in, or a third of it taken out, and the fall of a tenth before stays a tenth."""
    rows, net, total = [(10**12, 0, 0, 10**12, 0), (9 * 10**11, 0, 0, 10**12, 0)], 10**12, 9 * 10**11
    for turn in range(20_000):
        flow = total // 3 if turn % 2 else -total // 3
        net, total = net + flow, total + flow
        rows.append((total, 0, 0, net, 0))
    assert drawdowns(made(rows)) == {("week", "ada"): UNIT // 10}


def test_falls_are_compared_exactly() -> None:
    """A third, and a third and one in 1e-15 of 3e18: the greater is not lost, nor does 2^63 wrap."""
    third = 10**18
    of = made([(3 * third, 0, 0, 0, 0), (2 * third, 0, 0, 0, 0), (0, 2 * third - 1, UNIT - 1, 0, 0)])
    assert drawdowns(of) == {("week", "ada"): 333_333_333}
    of = made([(30, 0, 0, 0, 0), (20, 0, 0, 0, 0), (60, 0, 0, 0, 0), (39, 0, 999_999_991, 0, 0)])
    assert drawdowns(of) == {("week", "ada"): round(Fraction(20 * UNIT + 9, 60 * UNIT) * UNIT)}


# --- the slow definition, on random seasons


class Quote(NamedTuple):
    """One question's prices, and where the log has them."""

    number: int
    told_at: int
    quoted_at: int
    prices: tuple[int | None, ...]


class Slow:
    """What every look at an account sees, worked out anew from the model's log each time."""

    def __init__(self, book: Book, said: list[Told]) -> None:
        self.book = book
        self.quotes: dict[str, list[Quote]] = {}
        for number, event in enumerate(book.log, 1):
            for each in event.get("quotes", []):
                before = self.quotes.setdefault(each["question"], [])
                told_at = max([event["at"], *(quote.told_at for quote in before)])
                before.append(Quote(number, told_at, event["quoted_at"], each["prices"]))
        self.scheduled = {each["question"]: micros_of(each["closes_at"]) for each in said if "closes_at" in each}

    def closes(self, question: str, upto: int) -> int:
        """The close, by what was recorded by then."""
        closed = [
            event["at"]
            for event in self.book.log[:upto]
            if (event["type"], event.get("question")) == ("question_closed.v1", question)
        ]
        return closed[-1] if closed else self.scheduled[question]

    def mark(self, rules: Told, position: Position, at: int, upto: int) -> Quote | None:
        """The last quote of the outcome that counts."""
        place = self.book.questions[position.question].outcomes.index(position.outcome)
        closes = self.closes(position.question, upto)
        counting = [
            quote
            for quote in self.quotes.get(position.question, [])
            if quote.prices[place] is not None
            and quote.number <= upto
            and quote.told_at <= at
            and not (rules["closed_marks"] == "prior" and quote.quoted_at >= closes)
        ]
        return counting[-1]._replace(prices=(counting[-1].prices[place],)) if counting else None

    def scores(self, own: list[tuple[int, int, Told]], divisor: int, at: int | None, upto: int) -> list[Fraction]:
        """Of every purchase whose question is resolved, by what has begun to count at an instant, or is in the log."""
        found = []
        for number, _, bought in own:
            if bought["type"] == "shares_bought.v1" and number <= upto:
                told = [each for each in self.verdicts(number, bought, own) if each[0] <= upto]
                counting = [payout for _, since, payout in told if at is None or since <= at]
                if counting and counting[-1] is not None:
                    confidence = Fraction(bought["amount"], bought["cash"] // divisor)
                    found.append((confidence - Fraction(counting[-1], UNIT)) ** 2)
        return found

    def verdicts(
        self, after: int, bought: Told, own: list[tuple[int, int, Told]]
    ) -> Iterator[tuple[int, int, int | None]]:
        """Log position, instant as it counts, and the payout of a purchase, or None where it is taken away."""
        outcomes = self.book.questions[bought["question"]].outcomes
        moves = {number: (at, move) for number, at, move in own if move.get("position") == bought["position"]}
        for number, event in enumerate(self.book.log[after:], after + 1):
            if number in moves:
                if event["type"] == "position_settled.v1":
                    yield number, moves[number][0], event["payout"]
                if event["type"] == "settlement_reversed.v1":
                    yield number, moves[number][0], None
            ended = event["type"] in {"question_resolved.v1", "question_annulled.v1", "resolution_revoked.v1"}
            if ended and event["question"] == bought["question"] and not self._moves(number, moves):
                before = [at for each, at, _ in own if each < number][-1]
                paid = {name: UNIT * (name == event.get("outcome")) for name in outcomes}
                paid |= dict(zip(outcomes, event.get("payouts") or (), strict=False))
                resolved = event["type"] == "question_resolved.v1"
                yield number, max(event["at"], before), paid[bought["outcome"]] if resolved else None

    def _moves(self, number: int, moves: dict[int, tuple[int, Told]]) -> bool:
        """Whether a ruling moves a position: an event that follows from it, before anything else, is a movement."""
        follow = {"position_settled.v1", "position_refunded.v1", "trades_voided.v1", "settlement_reversed.v1"}
        for place in range(number + 1, len(self.book.log) + 1):
            if self.book.log[place - 1]["type"] not in follow:
                return False
            if place in moves and self.book.log[place - 1]["type"] in {"position_settled.v1", "settlement_reversed.v1"}:
                return True
        return False

    def look(
        self, name: str, own: list[tuple[int, int, Told]], account: Account, at: int, upto: int, *, tick: bool
    ) -> Line:
        """What a row has."""
        rules = self.book.contests[name].trading
        assert rules is not None
        seen = [(position, self.mark(rules, position, at, upto)) for position in account.open()]
        value = sum((Fraction(p.shares * (m.prices[0] or 0), UNIT) for p, m in seen if m), Fraction(0))
        profit, net = account.cash + value - account.net_deposits, account.net_deposits
        scores = self.scores(own, rules["cap_divisor"], at if tick else None, upto)
        old = rules["stale_after_seconds"] * SECOND
        stale = [m is None or at - m.quoted_at > old or at >= self.closes(p.question, upto) for p, m in seen]
        return {
            "cash": account.cash,
            "positions_value": round(value),
            "total": round(account.cash + value),
            "profit": round(profit),
            "profit_percent": round(profit / net * 100 * UNIT) if net else 0,
            "brier": round(sum(scores, Fraction(0)) / len(scores) * UNIT) if scores else MISSING,
            "resolved_bets": len(scores),
            "realised": sum(each.realised for each in account.positions),
            "unrealised": round(value - sum(each.cost for each in account.open())),
            "stale_marks": sum(stale),
            "stale_age": max((at - m.quoted_at for _, m in seen if m), default=MISSING),
        }


@cache
def season(seed: int) -> tuple[Season, list[Recorded]]:
    """A random history, and the log it leads to."""
    drawn = Season(seed)
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle_many([read(json.dumps(command)) for command, _ in drawn.said])
        return drawn, [each for page in ledger.read() for each in page]


@pytest.mark.parametrize("seed", range(24))
def test_every_look_is_what_the_slow_definition_sees(seed: int) -> None:
    """All movements of every account, and some ticks, of histories with corrections and instants in disorder."""
    drawn, log = season(seed)
    found, random, book = facts([log]), Random(seed), drawn.book
    slow = Slow(book, [command for command, _ in drawn.said])
    for name in (name for name, each in book.contests.items() if each.trading is not None):
        of = looks(found, name)
        sealed = found.contests[name].as_of(found)
        assert of.participants == sorted(book.contests[name].participants)
        for participant in of.participants:
            own, rows = list(book.movements(name, participant)), lines(of, participant)
            assert [(line["log_position"], line["at"]) for line in rows if line["log_position"] != MISSING] == [
                (number, at) for number, at, _ in own
            ]
            ticks = [line for line in rows if line["log_position"] == MISSING]
            for line in [*moves(of, participant), *random.sample(ticks, min(len(ticks), 12))]:
                tick, at = line["log_position"] == MISSING, line["at"]
                latest = [number for number, since, _ in own if since <= at][-1] if tick else line["log_position"]
                account = book.account(name, participant, latest)
                seen = slow.look(name, own, account, at, sealed if tick else latest, tick=tick)
                assert {field: line[field] for field in FIELDS} == seen, (name, participant, line)


@pytest.mark.parametrize("seed", range(24))
def test_ticks_are_at_the_instants_of_the_rules(seed: int) -> None:
    """From an account's first movement to the end of the contest, or the clock of the books; in order, each once."""
    drawn, log = season(seed)
    found = facts([log])
    for name, each in drawn.book.contests.items():
        if each.trading is None:
            continue
        last = found.books.progress(name).completed_at
        every = range(
            each.start,
            (found.books.clock if last is None else last) + 1,
            each.trading["snapshot_seconds"] * SECOND,
        )
        of = looks(found, name)
        for participant in of.participants:
            rows = lines(of, participant)
            since = next(drawn.book.movements(name, participant))[1]
            assert [line["at"] for line in rows if line["log_position"] == MISSING] == [
                at for at in every if at >= since
            ]
            order = [(line["at"], line["log_position"] == MISSING, line["log_position"]) for line in rows]
            assert order == sorted(set(order))


@pytest.mark.parametrize("seed", [0, 1, 2, None], ids=["0", "1", "2", "arena-week"])
def test_the_row_of_a_movement_stays_whatever_comes_after_it(seed: int | None) -> None:
    """It is as of its log position: a log cut off anywhere between two commands has the same rows up to there."""
    log = recorded("arena-week") if seed is None else season(seed)[1]
    whole = facts([log])
    rows = {
        name: {who: moves(looks(whole, name), who) for who in looks(whole, name).participants} for name in traded(whole)
    }
    ends = [a.position for a, b in pairwise(log) if a.command_id != b.command_id]
    for end in ends[:: max(len(ends) // 12, 1)]:
        found = facts([log[:end]])
        for name in traded(found):
            of = looks(found, name)
            for who in of.participants:
                assert moves(of, who) == [line for line in rows[name][who] if line["log_position"] <= end]


def traded(found: Facts) -> list[str]:
    """Contests in which one trades."""
    return [name for name, each in found.contests.items() if each.opened.rules.trading is not None]
