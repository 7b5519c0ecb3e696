"""Portfolios over time, compared with figures by hand and with a slow definition in fractions on random seasons."""

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
from forecast_ledger.ledger.model.commands import AnyCommand, Bet, Command, OpenQuestion, Quote
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.projections.trading import account_histories
from forecast_ledger.projections.trading.mark_prices import Marks
from forecast_ledger.projections.trading.portfolios import MISSING, Snapshots, drawdowns, snapshots
from tests.support import logs, oracle
from tests.support.effort import times
from tests.support.given import (
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
    """The rules of arena-v1 with other numbers; a decision may have any period."""
    preset = PRESETS["arena-v1"]
    assert preset.trading is not None
    return structs.replace(preset, trading=structs.replace(preset.trading, period_days=0, **trading))


def facts_after(*commands: Command) -> Facts:
    """The facts of a log of these commands."""
    return oracle.projected(*cast("tuple[AnyCommand, ...]", commands)).facts


def portfolios(log_facts: Facts, name: str = "week") -> Snapshots:
    """The snapshots of a contest."""
    return snapshots(log_facts, Marks(log_facts), name)


def lines(snapshot_rows: Snapshots, participant: str = "ada", *, ticks: bool = True) -> list[Line]:
    """The rows of one account; without ticks, those of movements."""
    chosen = snapshot_rows.participant == snapshot_rows.participants.index(participant)
    rows = np.flatnonzero(chosen if ticks else chosen & (snapshot_rows.log_position != MISSING))
    names = ("at", "log_position", *FIELDS)
    given = [getattr(snapshot_rows, name) for name in names]  # lists have numbers of any size
    columns = ((np.array(each, object) if isinstance(each, list) else each)[rows].tolist() for each in given)
    return [dict(zip(names, map(int, values), strict=True)) for values in zip(*columns, strict=True)]


def tick(snapshot_rows: Snapshots, at: int, participant: str = "ada") -> Line:
    """The row at a tick."""
    [line] = [line for line in lines(snapshot_rows, participant) if (line["at"], line["log_position"]) == (at, MISSING)]
    return line


def movement_lines(snapshot_rows: Snapshots, participant: str = "ada") -> list[Line]:
    """The rows of movements."""
    return lines(snapshot_rows, participant, ticks=False)


def money(amount: str) -> int:
    """An amount in 1e-6."""
    return int(Fraction(amount) * MONEY)


# --- one account, by hand: 500 at 0.40 on March 2 buy 1,250 shares


def test_a_portfolio_is_cash_and_positions_at_their_last_price() -> None:
    """1,250 shares at 0.50 are worth 625: 9,500 + 625 - 10,000 = +125, 1.25 %; none of it is realised."""
    snapshot_rows = portfolios(facts_after(*trading_floor(), decision(bet()), quote(at=day(3), prices={"yes": "0.5"})))
    expected = {"cash": money("9500"), "positions_value": money("625"), "total": money("10125")}
    expected |= {"profit": money("125"), "unrealised": money("125"), "realised": 0, "profit_percent": 1_250_000_000}
    expected |= {"brier": MISSING, "resolved_bets": 0, "stale_marks": 0, "stale_age": 0}
    assert tick(snapshot_rows, micros(3)) == {"at": micros(3), "log_position": MISSING} | expected
    assert tick(snapshot_rows, micros(3) - TICK)["profit"] == 0


def test_a_tick_at_the_instant_of_a_movement_includes_the_movement() -> None:
    """Rows of one instant are in order of log position, the tick last; the tick before does not include it."""
    snapshot_rows = portfolios(facts_after(*trading_floor(), decision(bet(), bet(100, "NO"))))
    rows = [line for line in lines(snapshot_rows) if line["at"] == micros(2)]
    assert [line["log_position"] for line in rows] == [11, 12, MISSING]
    assert [line["cash"] for line in rows] == [money("9500"), money("9400"), money("9400")]
    assert tick(snapshot_rows, micros(2) - TICK)["cash"] == money("10000")


def test_a_movement_between_two_ticks_has_a_row_of_its_own() -> None:
    """The row is at its instant; the next tick includes the movement."""
    at = "2026-03-02T00:07:00Z"
    snapshot_rows = portfolios(facts_after(*trading_floor(), decision(bet(), at=at), quote(at=day(3))))
    rows = [(line["at"], line["cash"]) for line in lines(snapshot_rows) if micros(2) <= line["at"] <= micros(2) + TICK]
    cash, left = money("10000"), money("9500")
    assert rows == [(micros(2), cash), (micros(2) + 7 * 60 * SECOND, left), (micros(2) + TICK, left)]
    assert tick(snapshot_rows, micros(2) + TICK)["stale_age"] == TICK


def test_ticks_go_from_the_start_to_the_clock() -> None:
    """Ticks come every ten minutes from Sunday to March 2 at 00:00, the instant of the last quote: 145 in all. Every
    event with an instant moves the clock: a quote (by the instant at which it is known), a forecast, a new question.
    """
    snapshot_rows = portfolios(facts_after(*trading_floor()))
    ticks = [line["at"] for line in lines(snapshot_rows) if line["log_position"] == MISSING]
    assert ticks == list(range(micros(1), micros(2) + 1, TICK))
    at = "2026-03-02T00:19:59.999999Z"
    for later in (
        quote(at=at, quoted_at=day(2)),
        forecast(at=at),
        market("snow", at=at),
        enrolment("week", "bo", at=at),
    ):
        late = portfolios(facts_after(*trading_floor(), later))
        assert [line["at"] for line in lines(late)][-1] == micros(2) + TICK


def test_the_rules_set_the_time_between_ticks() -> None:
    """The rules have a tick every 7,777 seconds."""
    log_facts = facts_after(*trading_floor(rules=rules(snapshot_seconds=7_777, cohorts="none"), at=day(1, 5)))
    ticks = [line["at"] for line in lines(portfolios(log_facts)) if line["log_position"] == MISSING]
    assert ticks == list(range(micros(1, 5), micros(2) + 1, 7_777 * SECOND))


def test_more_ticks_than_fit_in_a_table_are_refused() -> None:
    """A quote in the year 2199 would need a tick every minute until then: 91 million rows of one portfolio."""
    far = quote(at="2199-01-01T00:00:00Z")
    with pytest.raises(Refused, match="contest 'week' would have 90,9"):
        portfolios(facts_after(*trading_floor(rules=rules(snapshot_seconds=60)), far))
    assert len(portfolios(facts_after(*trading_floor(rules=rules(snapshot_seconds=10**9)), far)).at) > 1


def test_ticks_of_all_contests_together_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two contests of two accounts each have a tick every ten minutes of a day and at its end: 145 for each account."""
    floor = trading_floor("ada", "bo", rules=rules(cohorts="none"))
    again = [command for command in floor if not isinstance(command, OpenQuestion | Quote)]
    again = [structs.replace(command, contest="month") for command in again]
    log_facts = facts_after(*floor, *again, quote(at=day(2)))
    for most, refused in ((4 * 145 - 1, True), (4 * 145, False)):
        monkeypatch.setattr(account_histories, "MOST_TICK_ROWS", most)
        with pytest.raises(Refused, match=r"580 rows at ticks, 290 of them for") if refused else nullcontext():
            assert len(Projections(log_facts).table("portfolio_snapshots")) >= 4 * 145


def test_a_leaderboard_skips_ticks_without_a_change() -> None:
    """Yes goes from 0.40 to 0.20 in the year 2199: 500 of 10,000 become 250, a drawdown of 2.5 %."""
    far = quote(at="2199-01-01T00:00:00Z", prices={"yes": "0.2"})
    story = trading_floor(rules=rules(snapshot_seconds=60, closed_marks="last"))
    [row] = Projections(facts_after(*story, decision(bet(500)), far)).table("arena_leaderboard").rows()
    assert (row["profit"], row["drawdown"]) == ("-250.00", "0.025000000")


@pytest.mark.parametrize("seed", range(times(12)))
def test_drawdowns_are_the_same_when_ticks_without_a_change_are_left_out(seed: int) -> None:
    """Between two changes every tick has the same total."""
    log_facts = facts([season(seed)[1]])
    for name, contest_facts in log_facts.contests.items():
        if contest_facts.opened.rules.trading is not None:
            every, few = portfolios(log_facts, name), snapshots(log_facts, Marks(log_facts), name, changes=True)
            assert drawdowns(few) == drawdowns(every)
            assert len(few.at) <= len(every.at)


def test_an_account_has_no_tick_before_its_first_movement() -> None:
    """An account enrolled on the 2nd at 00:05 has a row then, and at the tick after."""
    late = enrolment("week", "bo", at="2026-03-02T00:05:00Z")
    snapshot_rows = portfolios(facts_after(*trading_floor(), late, quote(at="2026-03-02T00:15:00Z")))
    five = micros(2) + 5 * 60 * SECOND
    assert [(line["at"], line["log_position"]) for line in lines(snapshot_rows, "bo")] == [
        (five, 11),
        (micros(2) + TICK, MISSING),
    ]


def test_rows_are_in_order_of_participant() -> None:
    """Participants are in order of id as text, not of enrolment."""
    snapshot_rows = portfolios(facts_after(*trading_floor("bo", "Zoe", "ada", "ad")))
    assert snapshot_rows.participants == ["Zoe", "ad", "ada", "bo"]
    assert snapshot_rows.participant.tolist() == sorted(snapshot_rows.participant.tolist())
    assert [lines(snapshot_rows, participant)[0]["log_position"] for participant in snapshot_rows.participants] == [
        9,
        13,
        11,
        7,
    ]


def test_ticks_end_when_the_contest_is_complete() -> None:
    """All have decided and no position is open from 00:05 on the 3rd: the tick of 00:00 is the last."""
    end = "2026-03-03T00:05:00Z"
    story = [*trading_floor(), decision(bet()), resolution(at=end), quote("colour", prices={"red": 1}, at=day(9))]
    for commands in (story, [*story, finalization("week")]):
        snapshot_rows = portfolios(facts_after(*commands))
        assert lines(snapshot_rows)[-2]["at"] == micros(3)
        last = lines(snapshot_rows)[-1]
        assert (last["at"], last["cash"], last["stale_age"]) == (micros(3) + TICK // 2, money("10750"), MISSING)


def test_ticks_go_on_if_a_complete_contest_is_reopened() -> None:
    """The revoked resolution leaves an open position again, so that ticks go on until the clock."""
    story = [*trading_floor(), decision(bet()), resolution(at=day(3)), revocation(at=day(4)), quote(at=day(5))]
    snapshot_rows = portfolios(facts_after(*story))
    assert tick(snapshot_rows, micros(3))["cash"] == money("10750")
    assert (lines(snapshot_rows)[-1]["at"], lines(snapshot_rows)[-1]["total"]) == (micros(5), money("10000"))


def test_ticks_end_when_all_participants_hold() -> None:
    """The contest is complete at once."""
    snapshot_rows = portfolios(facts_after(*trading_floor(), HOLD, quote("colour", prices={"red": 1}, at=day(9))))
    assert max(snapshot_rows.at) == micros(2)


def test_quotes_after_the_seal_change_nothing() -> None:
    """A quote recorded late would be the mark of the 3rd, but the contest was sealed without it."""
    story = [*trading_floor(), decision(bet()), resolution(at=day(4)), finalization("week")]
    late = quote(at=day(5), quoted_at=day(3), prices={"yes": "0.9"})
    assert lines(portfolios(facts_after(*story, late))) == lines(portfolios(facts_after(*story)))


def test_resolutions_after_the_seal_change_nothing() -> None:
    """Scores are those of the sealed log position, also for a position sold at the instant of the resolution."""
    sold = decision(sale(), at=day(9), period=2)
    story = [*trading_floor(), decision(bet()), quote(at=day(9)), sold]
    before = lines(portfolios(facts_after(*story, finalization("week"))))
    assert lines(portfolios(facts_after(*story, finalization("week"), resolution(at=day(9))))) == before
    assert before[-1]["brier"] == MISSING
    assert (
        tick(portfolios(facts_after(*story, resolution(at=day(9)), finalization("week"))), micros(9))["brier"]
        == 640_000_000
    )


# --- marks


def test_a_mark_is_stale_after_more_than_an_hour() -> None:
    """An hour is not too old, ten minutes more are; stale_age is the age of the oldest mark of an open position."""
    story = [*trading_floor(), decision(bet(), bet(100, "red", "colour")), quote(at=day(2, 1)), quote(at=day(3))]
    snapshot_rows = portfolios(facts_after(*story))
    hour = micros(2, 1)
    ticks = [tick(snapshot_rows, at) for at in (hour, hour + TICK, hour + 6 * TICK, hour + 7 * TICK, micros(3))]
    assert [line["stale_marks"] for line in ticks] == [0, 1, 1, 2, 1]
    ages = [3_600, 4_200, 7_200, 7_800, 86_400]
    assert [line["stale_age"] for line in ticks] == [age * SECOND for age in ages]


def test_a_sold_position_has_no_stale_mark() -> None:
    """Only open positions count."""
    story = [*trading_floor(), decision(bet()), quote(at=day(9)), decision(sale(), at=day(9), period=2)]
    snapshot_rows = portfolios(facts_after(*story))
    assert (
        tick(snapshot_rows, micros(9) - TICK)["stale_marks"],
        tick(snapshot_rows, micros(9) - TICK)["stale_age"] > 0,
    ) == (1, True)
    assert (tick(snapshot_rows, micros(9))["stale_marks"], tick(snapshot_rows, micros(9))["stale_age"]) == (0, MISSING)


@pytest.mark.parametrize(("marked", "value"), [("prior", "500"), ("last", "1125")])
def test_the_rule_closed_marks_decides_the_value_of_a_closed_question(marked: str, value: str) -> None:
    """1,250 shares are valued at 0.40, from before the close, or at 0.90, from after it; either mark is stale."""
    story = [*trading_floor(rules=rules(closed_marks=marked)), decision(bet()), closing(at=day(3))]
    snapshot_rows = portfolios(facts_after(*story, quote(at=day(4), prices={"yes": "0.9"})))
    line = tick(snapshot_rows, micros(4))
    assert (line["positions_value"], line["stale_marks"]) == (money(value), 1)
    assert line["stale_age"] == (0 if marked == "last" else micros(4) - micros(2))


def test_a_purchase_has_a_mark_whenever_the_market_closed() -> None:
    """The earliest possible close is right after the purchase, whose price stays the mark; an answer known before the
    purchase changes no mark until it is recorded.
    """
    story = [*trading_floor(), decision(bet()), closing(at="2026-03-02T00:00:00.000001Z")]
    line = tick(portfolios(facts_after(*story, quote(at=day(3), prices={"yes": "0.9"}))), micros(3))
    assert (line["positions_value"], line["stale_marks"], line["stale_age"]) == (money("500"), 1, 86_400 * SECOND)
    known = resolution(at=day(9), known_at=day(1, 12))
    snapshot_rows = portfolios(facts_after(*trading_floor("ada", "bo"), decision(bet()), quote(at=day(3)), known))
    assert (tick(snapshot_rows, micros(3))["positions_value"], tick(snapshot_rows, micros(9))["cash"]) == (
        money("500"),
        money("10750"),
    )


@pytest.mark.parametrize("seed", range(times(12)))
def test_an_open_position_with_a_cost_has_a_mark(seed: int) -> None:
    """The rule holds in random seasons."""
    log_facts = facts([season(seed)[1]])
    for name in trading_contests(log_facts):
        snapshot_rows = portfolios(log_facts, name)
        assert not np.any((snapshot_rows.cost > 0) & (snapshot_rows.stale_age == MISSING))


def test_a_movement_is_valued_with_the_quotes_recorded_before_it() -> None:
    """A quote of the same instant that is later in the log counts at the tick, not at the movement."""
    snapshot_rows = portfolios(facts_after(*trading_floor(), decision(bet()), quote(prices={"yes": "0.8"})))
    [_, bought] = movement_lines(snapshot_rows)
    assert (bought["total"], tick(snapshot_rows, micros(2))["total"]) == (money("10000"), money("10500"))


@pytest.mark.parametrize("marked", ["prior", "last"])
def test_a_quote_recorded_later_changes_no_earlier_row(marked: str) -> None:
    """A quote of 00:09 recorded at 00:11 does not count at 00:10, neither at the tick nor at the movement that is later
    in the log: both have 1,250 shares at 0.40 and cash of 9,500 less 100.
    """
    floor = [*trading_floor(rules=rules(closed_marks=marked)), decision(bet())]
    ten, eleven, nine = (f"2026-03-02T00:{minute}:00Z" for minute in ("10", "11", "09"))
    late = quote(at=eleven, quoted_at=nine, prices={"yes": "0.8"})
    red = decision(bet(100, "red", "colour"), at=ten, period=2)
    snapshot_rows = portfolios(facts_after(*floor, late, red))
    assert tick(snapshot_rows, micros(2) + TICK)["total"] == money("10000")
    [*_, moved] = movement_lines(snapshot_rows)
    last = tick(snapshot_rows, micros(2) + TICK)
    assert {name: moved[name] for name in FIELDS} == {name: last[name] for name in FIELDS}
    assert (moved["cash"], moved["total"]) == (money("9400"), money("10000"))
    whole = portfolios(
        facts_after(*floor, late, red, quote("colour", at="2026-03-02T00:20:00Z", prices={"red": "0.5"}))
    )
    assert tick(whole, micros(2) + 2 * TICK)["total"] == money("10500")


def test_a_trade_takes_effect_when_its_price_is_known() -> None:
    """A decision at 00:10 at a price of 00:09 that was recorded at 00:11 takes effect at 00:11."""
    ten, eleven, nine = (f"2026-03-02T00:{minute}:00Z" for minute in ("10", "11", "09"))
    snapshot_rows = portfolios(
        facts_after(*trading_floor(), quote(at=eleven, quoted_at=nine, prices={"yes": "0.8"}), decision(bet(), at=ten))
    )
    [_, moved] = movement_lines(snapshot_rows)
    assert (moved["at"], moved["total"], moved["stale_age"]) == (
        micros(2) + 11 * 60 * SECOND,
        money("10000"),
        120 * SECOND,
    )
    assert tick(snapshot_rows, micros(2) + TICK)["cash"] == money("10000")


def test_an_account_without_positions_is_worth_its_cash() -> None:
    """A contest without participants has no rows."""
    snapshot_rows = portfolios(facts_after(cohort(), enrolment("week", "ada", at=day(1))))
    assert [(line["total"], line["stale_age"]) for line in lines(snapshot_rows)] == [(money("10000"), MISSING)] * 2
    nobody = portfolios(facts_after(cohort()))
    assert (len(nobody.at), nobody.participants, drawdowns(nobody)) == (0, [], {})
    assert list(nobody.profit_percent) == list(nobody.total) == []


def test_a_contest_of_forecasts_has_no_portfolios() -> None:
    """The function raises KeyError."""
    log_facts = facts_after(contest("cup"))
    with pytest.raises(KeyError):
        portfolios(log_facts, "cup")


# --- Brier scores


def test_a_bet_is_scored_from_its_settlement_on() -> None:
    """500 of 2,500 is 0.2: (0.2 - 1)² = 0.64. The second, 475 of 2,375, is 0.2 again and lost. Source: Forecaster
    Arena, Scoring Methodology, "Brier Score".
    """
    story = [*trading_floor(), decision(bet(), bet(475, "red", "colour")), resolution(at=day(3))]
    snapshot_rows = portfolios(facts_after(*story, resolution("colour", outcome="green", at=day(4))))
    assert tick(snapshot_rows, micros(3) - TICK)["brier"] == MISSING
    assert (tick(snapshot_rows, micros(3))["brier"], tick(snapshot_rows, micros(3))["resolved_bets"]) == (
        640_000_000,
        1,
    )
    assert (tick(snapshot_rows, micros(4))["brier"], tick(snapshot_rows, micros(4))["resolved_bets"]) == (
        340_000_000,
        2,
    )


def test_a_bet_sold_before_is_scored_from_the_resolution_on() -> None:
    """It has no movement at the resolution; a revocation removes the score, and an annulment gives none."""
    sold = decision(sale(), at=day(9), period=2)
    story = [*trading_floor("ada", "bo"), decision(bet()), quote(at=day(9)), sold]
    ends = [resolution(at=day(10)), revocation(at=day(11)), cancellation(at=day(12), policy="refund_cost")]
    snapshot_rows = portfolios(facts_after(*story, *ends, quote("colour", prices={"red": 1}, at=day(13))))
    scores = [
        tick(snapshot_rows, at)["brier"]
        for at in (micros(10) - TICK, micros(10), micros(11) - TICK, micros(11), micros(12))
    ]
    assert scores == [MISSING, 640_000_000, 640_000_000, MISSING, MISSING]
    assert [line["brier"] for line in movement_lines(snapshot_rows)] == [MISSING] * 3


def test_a_resolution_counts_from_the_accounts_previous_movement_at_the_earliest() -> None:
    """The resolution claims the 5th, but in the log it is after the account's sale of the 9th."""
    sold = decision(sale(), at=day(9), period=2)
    snapshot_rows = portfolios(
        facts_after(*trading_floor("ada", "bo"), decision(bet()), quote(at=day(9)), sold, resolution(at=day(5)))
    )
    assert [tick(snapshot_rows, at)["brier"] for at in (micros(5), micros(9) - TICK, micros(9))] == [
        MISSING,
        MISSING,
        640_000_000,
    ]


def test_a_payout_of_one_half() -> None:
    """(0.2 - 0.5)² = 0.09, and 1,250 x 0.50 = 625: +125."""
    story = [
        *trading_floor(),
        decision(bet()),
        resolution(payouts={"yes": "0.5", "no": "0.5"}, outcome=None, at=day(3)),
    ]
    line = movement_lines(portfolios(facts_after(*story)))[-1]
    assert (line["brier"], line["realised"], line["cash"]) == (90_000_000, money("125"), money("10125"))


def test_several_positions_of_one_question_are_scored_one_by_one() -> None:
    """Each is scored by the movement that settles it: yes (0.2 - 1)² = 0.64; no, 475 of 2,375, (0.2 - 0)² = 0.04."""
    story = [*trading_floor(), decision(bet(), bet(475, "NO")), resolution(at=day(3))]
    [*_, yes, no] = movement_lines(portfolios(facts_after(*story)))
    assert (yes["brier"], yes["resolved_bets"]) == (640_000_000, 1)
    assert (no["brier"], no["resolved_bets"]) == (340_000_000, 2)


# --- corrections, and instants out of order


def test_a_correction_may_leave_debt() -> None:
    """2,500 at 0.40 pay 6,250: 13,750. All but 3,862.5 is bet again; after the correction the cash is -449.21875.

    Bets are a quarter of the cash: 3,437.5; 2,578.125; 1,933.59375. The total falls from 13,750 to 7,500.
    """
    legs = [bet(amount, "red", "colour") for amount in ("3437.5", "2578.125", "1933.59375")]
    again = [quote("colour", prices={"red": "0.5"}, at=day(9)), decision(*legs, at=day(9), period=2)]
    ends = [revocation(at=day(10)), resolution(outcome="no", at=day(11))]
    floor = trading_floor("ada", "bo", rules=rules(cohorts="none"))
    snapshot_rows = portfolios(facts_after(*floor, decision(bet(2_500)), resolution(at=day(3)), *again, *ends))
    won, *_, undone, lost = movement_lines(snapshot_rows)[2:]
    assert (won["cash"], won["brier"]) == (money("13750"), 0)
    assert (undone["cash"], undone["brier"]) == (-money("449.21875"), MISSING)
    assert undone["positions_value"] == money("2500") + money("7949.21875")
    assert (lost["cash"], lost["total"], lost["realised"]) == (-money("449.21875"), money("7500"), -money("2500"))
    assert (lost["profit_percent"], lost["brier"]) == (-25 * UNIT, UNIT)
    assert drawdowns(snapshot_rows) == {("week", "ada"): 454_545_455, ("week", "bo"): 0}  # 6,250 / 13,750 = 5 / 11


def test_a_movement_takes_effect_no_earlier_than_the_one_before_it() -> None:
    """A resolution of the 5th is recorded after one of the 10th: both settlements take effect on the 10th."""
    story = [*trading_floor(), decision(bet(), bet(475, "red", "colour")), resolution(at=day(10))]
    snapshot_rows = portfolios(facts_after(*story, resolution("colour", outcome="red", at=day(5)), quote(at=day(11))))
    assert [line["at"] for line in movement_lines(snapshot_rows)[-2:]] == [micros(10)] * 2
    assert (tick(snapshot_rows, micros(5))["resolved_bets"], tick(snapshot_rows, micros(5))["cash"]) == (
        0,
        money("9025"),
    )


def test_a_void_undoes_the_trades_of_a_position() -> None:
    """Half is sold at 0.80 for 500, and with the 9,500 the cash is 10,000; the void returns 500 - 500 = 0 more."""
    half = decision(sale(50), at=day(9), period=2)
    snapshot_rows = portfolios(
        facts_after(
            *trading_floor(), decision(bet()), quote(at=day(9), prices={"yes": "0.8"}), half, cancellation(at=day(10))
        )
    )
    sold, voided = movement_lines(snapshot_rows)[-2:]
    assert (sold["realised"], sold["unrealised"], sold["total"]) == (money("250"), money("250"), money("10500"))
    assert (voided["realised"], voided["unrealised"], voided["total"]) == (0, 0, money("10000"))


def test_a_deposit_is_not_a_profit() -> None:
    """A value of 625 is +125 on 10,000, and on 20,000 after a deposit of 10,000: 0.625 %."""
    story = [
        *trading_floor(rules=rules(recapitalisation=True)),
        decision(bet()),
        quote(at=day(3), prices={"yes": "0.5"}),
    ]
    snapshot_rows = portfolios(facts_after(*story, deposit(10_000, at=day(3, 1))))
    assert [line["profit"] for line in movement_lines(snapshot_rows)] == [0, 0, money("125")]
    assert movement_lines(snapshot_rows)[-1]["profit_percent"] == 625_000_000


def test_the_percentage_is_0_without_net_deposits() -> None:
    """9,500 are withdrawn, then 500 of the 625 that a sale brings: net 0; 100 more: net -100, and -125 %."""
    story = [
        *trading_floor(rules=rules(recapitalisation=True)),
        decision(bet()),
        quote(at=day(3), prices={"yes": "0.5"}),
    ]
    ends = [cash_out(9_500, at=day(3)), decision(sale(), at=day(3), period=2), cash_out(500, at=day(3))]
    *_, none, less = movement_lines(portfolios(facts_after(*story, *ends, cash_out(100, at=day(3)))))
    assert (none["profit"], none["profit_percent"]) == (money("125"), 0)
    assert (less["profit"], less["profit_percent"]) == (money("125"), -125 * UNIT)


# --- large numbers


def test_values_of_very_many_shares_are_exact() -> None:
    """1,000 at 0.000000001 buys 1e12 shares, worth 1e12 at 1; in percent of 10,000 with nine decimals, that is 1e19."""
    penny = quote(prices={"yes": "0.000000001"})
    snapshot_rows = portfolios(
        facts_after(*trading_floor(), penny, decision(bet(1_000)), quote(at=day(3), prices={"yes": 1}))
    )
    line = tick(snapshot_rows, micros(3))
    total = 10**12 * MONEY + money("9000")
    assert (line["positions_value"], line["total"]) == (10**12 * MONEY, total)
    assert line["profit_percent"] == (total - money("10000")) * 100 * UNIT // money("10000") > 2**63
    assert tick(snapshot_rows, micros(3) - TICK)["total"] == money("10000")


def test_a_contest_of_large_numbers_does_not_change_another_contest() -> None:
    """One percentage is 1e19 with nine decimals; the other is a loss of 1,000 of 10,000."""
    penny, at = quote(prices={"yes": "0.000000001"}), {"at": SUNDAY}
    league = [cohort("league", series="league"), entry("league", "rain", **at), enrolment("league", "bob", **at)]
    bets = [decision(bet(1_000)), decision(bet(1_000, side="NO"), participant="bob", contest="league")]
    log_facts = facts_after(*trading_floor(), *league, penny, *bets, quote(at=day(3), prices={"yes": 1}))
    rows = Projections(log_facts).table("portfolio_snapshots").rows()
    assert {row["profit_percent"] for row in rows if row["contest"] == "league"} == {"0.000000000", "-10.000000000"}


def test_the_sum_of_many_positions_does_not_wrap() -> None:
    """140 outcomes at 1, 134.217727 shares of each: 2^27 - 1 in 1e-6, the largest part added before a carry."""
    names = tuple(f"o{number:03}" for number in range(140))
    many = choices("many", names, at=day(1), opens_at=day(1), closes_at=day(29))
    rich = cohort(rules=rules(starting_cash_micros=10**14, cap_divisor=1))
    opening = [many, rich, entry("week", "many", at=day(1)), enrolment("week", "ada", at=day(1))]
    legs = [Bet(market_id="many", side=name, amount="134.217727") for name in names]
    priced = quote("many", prices=dict.fromkeys(names, 1))
    half = quote("many", prices=dict.fromkeys(names, "0.5"), at=day(3))
    snapshot_rows = portfolios(facts_after(*opening, priced, decision(*legs), half))
    value = 140 * (2**27 - 1)
    assert movement_lines(snapshot_rows)[-1]["positions_value"] == value
    assert tick(snapshot_rows, micros(3))["positions_value"] == value // 2
    assert tick(snapshot_rows, micros(3))["profit"] == -value // 2


@pytest.mark.parametrize("amount", [2**62, -(2**62), 2**70])
def test_an_amount_beyond_the_limits_of_a_log_raises_overflow_error(amount: int) -> None:
    """No sum wraps silently."""
    log_facts = facts_after(*trading_floor())
    log_facts.books.movements[0] = log_facts.books.movements[0]._replace(cash=amount)
    with pytest.raises(OverflowError):
        portfolios(log_facts)


# --- rounding, against fractions


def snapshots_of(rows: list[tuple[int, int, int, int, int]]) -> Snapshots:
    """The snapshots of one account: cash, worth, remainder, net deposits and cost of each row."""
    cash, worth, remainder, net_deposits, cost = (int64_array([row[i] for row in rows]) for i in range(5))
    none = np.zeros(len(rows), np.int64)
    columns = {"cash": cash, "net_deposits": net_deposits, "cost": cost, "worth": worth, "remainder": remainder}
    names = ("participant", "at", "log_position", "realised", "brier", "resolved_bets", "stale_marks", "stale_age")
    return Snapshots("week", ["ada"], **columns, **dict.fromkeys(names, none))


MICROS = st.integers(-(10**18), 10**18) | st.integers(-(10**6), 10**6)
REMAINDERS = st.integers(0, UNIT - 1) | st.just(UNIT // 2)
DEPOSITS = st.sampled_from([0, 1, -1, 3, 10**10, 2**53 - 1, 2**53, 10**17]) | st.integers(-(10**15), 10**15)
ROWS = st.tuples(MICROS, st.integers(0, 10**18), REMAINDERS, DEPOSITS, st.integers(0, 10**15))


@given(st.lists(ROWS, min_size=1, max_size=20))
def test_every_figure_is_rounded_once(rows: list[tuple[int, int, int, int, int]]) -> None:
    """Figures are rounded half-even from the exact sum, also if the cash is odd and the value ends in a half."""
    snapshot_rows = snapshots_of(rows)
    for row, (cash, worth, remainder, net, cost) in enumerate(rows):
        value = worth + Fraction(remainder, UNIT)
        profit = cash + value - net
        assert snapshot_rows.positions_value[row] == round(value)
        assert (snapshot_rows.total[row], snapshot_rows.profit[row]) == (round(cash + value), round(profit))
        assert snapshot_rows.unrealised[row] == round(value - cost)
        assert snapshot_rows.profit_percent[row] == (round(profit / net * 100 * UNIT) if net else 0)


def test_half_a_unit_goes_to_the_even_total() -> None:
    """1.5 is rounded to 2, and 0.5 to 0."""
    snapshot_rows = snapshots_of([(1, 0, UNIT // 2, 0, 1)])
    assert (snapshot_rows.positions_value[0], snapshot_rows.total[0], snapshot_rows.unrealised[0]) == (0, 2, 0)


@given(st.lists(st.tuples(st.integers(-50, 50), st.sampled_from([0, 1, UNIT // 2])), min_size=1, max_size=30))
def test_a_drawdown_is_the_largest_of_all_falls(totals: list[tuple[int, int]]) -> None:
    """At every row the fall is measured from the largest total so far, if that is positive."""
    exact = [whole + Fraction(remainder, UNIT) for whole, remainder in totals]
    falls = [(peak - total) / peak for peak, total in zip(accumulate(exact, max), exact, strict=True) if peak > 0]
    by_account = drawdowns(snapshots_of([(whole, 0, remainder, 0, 0) for whole, remainder in totals]))
    assert by_account == {("week", "ada"): round(max(falls, default=Fraction(0)) * UNIT)}


FREE = rules(recapitalisation=True)


@pytest.mark.parametrize("amount", [1, 5_000, "9999.999999", 10_000])
def test_deposits_and_withdrawals_do_not_change_the_drawdown(amount: Any) -> None:
    """A withdrawal of a part or all of 10,000 is no loss, and a deposit after a loss recovers nothing."""
    floor = trading_floor(rules=FREE)
    [row] = Projections(facts_after(*floor, cash_out(amount, at=day(3)), deposit(7, at=day(4)))).table(BOARD).rows()
    assert (row["profit"], row["drawdown"]) == ("0.00", "0.000000000")
    lost = [*floor, decision(bet()), quote(at=day(3), prices={"yes": "0.2"})]  # 250 of 10,000
    for more in ([], [deposit(20_000, at=day(4))], [cash_out(9_000, at=day(4))]):
        [row] = Projections(facts_after(*lost, *more)).table(BOARD).rows()
        assert row["drawdown"] == "0.025000000"


def test_a_fall_after_a_withdrawal_is_measured_from_the_scaled_peak() -> None:
    """10,000 fall to 9,750, a fall of 2.5 %. 4,875 are withdrawn: half remains, and half of the peak, 5,000. 125 more
    are lost: from 5,000 to 4,750 is a fall of 5 %. Without the withdrawal, from 10,000 to 9,625 is a fall of 3.75 %.
    """
    story = [*trading_floor(rules=FREE), decision(bet()), quote(at=day(3), prices={"yes": "0.2"})]
    end = quote(at=day(5), prices={"yes": "0.1"})
    for commands, fall in (([cash_out(4_875, at=day(4)), end], Fraction(1, 20)), ([end], Fraction(3, 80))):
        [row] = Projections(facts_after(*story, *commands)).table(BOARD).rows()
        assert row["drawdown"] == format_fixed(round(fall * UNIT), UNIT, least=9)


@given(
    st.lists(
        st.tuples(st.integers(-20, 50), st.sampled_from([0, 1, UNIT // 2]), st.sampled_from([0, 0, 0, 5, -5, 50])),
        min_size=1,
        max_size=20,
    )
)
def test_a_drawdown_is_that_of_the_price_of_a_fund_unit(steps: list[tuple[int, int, int]]) -> None:
    """Deposits buy units at the current price and withdrawals sell them; at a price of 0 the units start anew."""
    units, peak, deepest, net = Fraction(0), Fraction(0), Fraction(0), 0
    rows = []
    for whole, remainder, inflow in steps:
        total = whole + Fraction(remainder, UNIT)
        net += inflow
        rows.append((whole, 0, remainder, net, 0))
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
    assert drawdowns(snapshots_of(rows)) == {("week", "ada"): round(deepest * UNIT)}


def test_many_flows_do_not_change_the_drawdown() -> None:
    """A third of the total is deposited or withdrawn 20,000 times; the fall of a tenth before stays a tenth."""
    rows, net, total = [(10**12, 0, 0, 10**12, 0), (9 * 10**11, 0, 0, 10**12, 0)], 10**12, 9 * 10**11
    for turn in range(20_000):
        flow = total // 3 if turn % 2 else -total // 3
        net, total = net + flow, total + flow
        rows.append((total, 0, 0, net, 0))
    assert drawdowns(snapshots_of(rows)) == {("week", "ada"): UNIT // 10}


def test_falls_are_compared_exactly() -> None:
    """One fall is a third, the other larger by 1e-15 of 3e18: the larger counts, and no product wraps at 2^63."""
    third = 10**18
    snapshot_rows = snapshots_of([(3 * third, 0, 0, 0, 0), (2 * third, 0, 0, 0, 0), (0, 2 * third - 1, UNIT - 1, 0, 0)])
    assert drawdowns(snapshot_rows) == {("week", "ada"): 333_333_333}
    snapshot_rows = snapshots_of([(30, 0, 0, 0, 0), (20, 0, 0, 0, 0), (60, 0, 0, 0, 0), (39, 0, 999_999_991, 0, 0)])
    assert drawdowns(snapshot_rows) == {("week", "ada"): round(Fraction(20 * UNIT + 9, 60 * UNIT) * UNIT)}


# --- the slow definition, on random seasons


class Priced(NamedTuple):
    """A quote of one question: its log position, instants and prices."""

    number: int
    known_from: int
    quoted_at: int
    prices: tuple[int | None, ...]
    bids: tuple[int | None, ...]
    asks: tuple[int | None, ...]


class SlowDefinition:
    """The rows of portfolios, computed anew from the model's log for each row."""

    def __init__(self, book: Book, commands: list[Told]) -> None:
        self.book = book
        self.quotes: dict[str, list[Priced]] = {}
        for number, event in enumerate(book.log, 1):
            for quoted in event.get("quotes", []):
                before = self.quotes.setdefault(quoted["question"], [])
                known_from = max([event["at"], *(quote.known_from for quote in before)])
                sides = (quoted["prices"], quoted.get("bids"), quoted.get("asks"))
                before.append(Priced(number, known_from, event["quoted_at"], *sides))
        self.scheduled = {
            command["question"]: micros_of(command["closes_at"]) for command in commands if "closes_at" in command
        }

    def closes(self, question: str, upto: int) -> int:
        """The close of a question, as recorded up to a log position."""
        closed = [
            event["at"]
            for event in self.book.log[:upto]
            if (event["type"], event.get("question")) == ("question_closed.v1", question)
        ]
        return closed[-1] if closed else self.scheduled[question]

    def mark(self, rules: Told, position: Position, at: int, upto: int) -> Priced | None:
        """The last quote of the outcome that counts, with the price that counts."""
        place, against = self.book.questions[position.question].place(position.outcome)

        def worth(quote: Priced) -> int | None:
            sold_at = quote.asks if against else quote.bids
            bid = sold_at[place] if rules["marks"] == "bid" and sold_at else None
            price = quote.prices[place] if bid is None else bid
            return UNIT - price if against and price is not None else price

        closes = self.closes(position.question, upto)
        counting = [
            quote
            for quote in self.quotes.get(position.question, [])
            if worth(quote) is not None
            and quote.number <= upto
            and quote.known_from <= at
            and not (rules["closed_marks"] == "prior" and quote.quoted_at >= closes)
        ]
        return counting[-1]._replace(prices=(worth(counting[-1]),)) if counting else None

    def scores(self, own: list[tuple[int, int, Told]], divisor: int, at: int | None, upto: int) -> list[Fraction]:
        """The scores of purchases whose resolution counts at an instant or is in the log."""
        scores = []
        for number, _, bought in own:
            if bought["type"] == "shares_bought.v1" and number <= upto:
                own_verdicts = [verdict for verdict in self.verdicts(number, bought, own) if verdict[0] <= upto]
                counting = [payout for _, since, payout in own_verdicts if at is None or since <= at]
                if counting and counting[-1] is not None:
                    confidence = Fraction(bought["amount"], bought["cash"] // divisor)
                    scores.append((confidence - Fraction(counting[-1], UNIT)) ** 2)
        return scores

    def verdicts(
        self, after: int, bought: Told, own: list[tuple[int, int, Told]]
    ) -> Iterator[tuple[int, int, int | None]]:
        """Yield log position, instant of effect, and the payout of a purchase, or None if its score ends."""
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
                before = [at for earlier, at, _ in own if earlier < number][-1]
                paid = {name: UNIT * (name == event.get("outcome")) for name in outcomes}
                paid |= dict(zip(outcomes, event.get("payouts") or (), strict=False))
                paid |= {f"not {name}": UNIT - share for name, share in paid.items()}
                resolved = event["type"] == "question_resolved.v1"
                yield number, max(event["at"], before), paid[bought["outcome"]] if resolved else None

    def _moves(self, number: int, moves: dict[int, tuple[int, Told]]) -> bool:
        """Return whether a ruling is followed by a movement of the position."""
        follow = {"position_settled.v1", "position_refunded.v1", "trades_voided.v1", "settlement_reversed.v1"}
        for place in range(number + 1, len(self.book.log) + 1):
            if self.book.log[place - 1]["type"] not in follow:
                return False
            if place in moves and self.book.log[place - 1]["type"] in {"position_settled.v1", "settlement_reversed.v1"}:
                return True
        return False

    def row(
        self, name: str, own: list[tuple[int, int, Told]], account: Account, at: int, upto: int, *, tick: bool
    ) -> Line:
        """The expected row of an account."""
        rules = self.book.contests[name].trading
        assert rules is not None
        marked = [(position, self.mark(rules, position, at, upto)) for position in account.open()]
        value = sum((Fraction(p.shares * (m.prices[0] or 0), UNIT) for p, m in marked if m), Fraction(0))
        profit, net = account.cash + value - account.net_deposits, account.net_deposits
        scores = self.scores(own, rules["cap_divisor"], at if tick else None, upto)
        old = rules["stale_after_seconds"] * SECOND
        stale = [m is None or at - m.quoted_at > old or at >= self.closes(p.question, upto) for p, m in marked]
        return {
            "cash": account.cash,
            "positions_value": round(value),
            "total": round(account.cash + value),
            "profit": round(profit),
            "profit_percent": round(profit / net * 100 * UNIT) if net else 0,
            "brier": round(sum(scores, Fraction(0)) / len(scores) * UNIT) if scores else MISSING,
            "resolved_bets": len(scores),
            "realised": sum(position.realised for position in account.positions),
            "unrealised": round(value - sum(position.cost for position in account.open())),
            "stale_marks": sum(stale),
            "stale_age": max((at - m.quoted_at for _, m in marked if m), default=MISSING),
        }


@cache
def season(seed: int) -> tuple[Season, list[Recorded]]:
    """A random trading season and its log."""
    random_season = Season(seed, sides=seed % 2 == 1, later=seed >= 24)
    return random_season, logs.recorded(random_season.commands(), refused=True)


@pytest.mark.parametrize("seed", [*range(times(8)), 32, 47, 49])
def test_rows_equal_the_slow_definition(seed: int) -> None:
    """All movements and some ticks of every account, in seasons with corrections and instants out of order."""
    random_season, log = season(seed)
    log_facts, random, book = facts([log]), Random(seed), random_season.book
    slow = SlowDefinition(book, [command for command, _ in random_season.attempts])
    for name in (name for name, contest_model in book.contests.items() if contest_model.trading is not None):
        actual = portfolios(log_facts, name)
        sealed = log_facts.contests[name].as_of(log_facts)
        assert actual.participants == sorted(book.contests[name].participants)
        for participant in actual.participants:
            own, rows = list(book.movements(name, participant)), lines(actual, participant)
            assert [(line["log_position"], line["at"]) for line in rows if line["log_position"] != MISSING] == [
                (number, at) for number, at, _ in own
            ]
            ticks = [line for line in rows if line["log_position"] == MISSING]
            for line in [*movement_lines(actual, participant), *random.sample(ticks, min(len(ticks), 12))]:
                tick, at = line["log_position"] == MISSING, line["at"]
                latest = [number for number, since, _ in own if since <= at][-1] if tick else line["log_position"]
                account = book.account(name, participant, latest)
                expected_row = slow.row(name, own, account, at, sealed if tick else latest, tick=tick)
                assert {field: line[field] for field in FIELDS} == expected_row, (name, participant, line)


@pytest.mark.parametrize("seed", range(times(24)))
def test_ticks_are_at_the_instants_of_the_rules(seed: int) -> None:
    """Ticks go from an account's first movement to the end of the contest or the latest instant, in order and each
    once.
    """
    random_season, log = season(seed)
    log_facts = facts([log])
    for name, contest_model in random_season.book.contests.items():
        if contest_model.trading is None:
            continue
        last = log_facts.books.progress(name).completed_at
        expected = range(
            contest_model.start,
            (log_facts.books.clock if last is None else last) + 1,
            contest_model.trading["snapshot_seconds"] * SECOND,
        )
        snapshot_rows = portfolios(log_facts, name)
        for participant in snapshot_rows.participants:
            rows = lines(snapshot_rows, participant)
            since = next(random_season.book.movements(name, participant))[1]
            assert [line["at"] for line in rows if line["log_position"] == MISSING] == [
                at for at in expected if at >= since
            ]
            order = [(line["at"], line["log_position"] == MISSING, line["log_position"]) for line in rows]
            assert order == sorted(set(order))


@pytest.mark.parametrize("seed", [*range(times(8)), None])
def test_later_events_do_not_change_the_row_of_a_movement(seed: int | None) -> None:
    """A log that ends between any two commands has the same rows of movements up to there."""
    log = recorded("arena-week") if seed is None else season(seed)[1]
    whole = facts([log])
    rows = {
        name: {
            participant: movement_lines(portfolios(whole, name), participant)
            for participant in portfolios(whole, name).participants
        }
        for name in trading_contests(whole)
    }
    ends = [a.position for a, b in pairwise(log) if a.command_id != b.command_id]
    for end in ends[:: max(len(ends) // times(40), 1)]:
        log_facts = facts([log[:end]])
        for name in trading_contests(log_facts):
            snapshot_rows = portfolios(log_facts, name)
            for participant in snapshot_rows.participants:
                assert movement_lines(snapshot_rows, participant) == [
                    line for line in rows[name][participant] if line["log_position"] <= end
                ]


def trading_contests(log_facts: Facts) -> list[str]:
    """The ids of the trading contests."""
    return [
        name for name, contest_facts in log_facts.contests.items() if contest_facts.opened.rules.trading is not None
    ]
