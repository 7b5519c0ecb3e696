"""Tests of record_trade: trades that happened elsewhere, and what follows from them for cash and positions."""

from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.deciding.state import PositionState
from forecast_ledger.ledger.deciding.trades import cost_change
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.facts.accounts import postings
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.forging import audited
from tests.support.given import (
    AFTER,
    NOW,
    annulment,
    bet,
    cancellation,
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
    quote,
    resolution,
    revocation,
    sold,
    traded,
    trading_floor,
)

MILLION = 10**6
COVERED = RuleSet(name="covered", trading=Trading(recorded_trades=True))
SHORT = RuleSet(name="short", trading=Trading(recorded_trades=True, short_sales=True))
OWING = RuleSet(name="owing", trading=Trading(recorded_trades=True, overdrafts=True, starting_cash_micros=0))
FLOOR = trading_floor("ada", "bob", rules=COVERED)
TRADED = trading_floor("ada", "bob", rules=structs.replace(COVERED, name="x", trading=Trading()))
DONE: list[AnyCommand] = [*FLOOR, finalization("week")]
CUP: list[AnyCommand] = [*FLOOR, contest(), entry("cup", "rain"), enrolment()]
LARGEST = 10**12
RICH = trading_floor(rules=RuleSet(name="rich", trading=Trading(recorded_trades=True, recapitalisation=True)))

REFUSED: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("malformed", "all_but", FLOOR, traded(all_but="no")),
    *[("out_of_range", "shares", FLOOR, traded(shares)) for shares in (0, -1, "0.0000005", LARGEST + 1)],
    *[("out_of_range", "amount", FLOOR, traded(1, amount)) for amount in (-1, "-0.000001", LARGEST + 1)],
    ("out_of_range", "fee", FLOOR, traded(fee="-0.01")),
    ("unknown_contest", "contest", FLOOR, traded(contest="month")),
    ("unknown_question", "question", FLOOR, traded(question="hail")),
    ("wrong_fields_for_kind", "question", [*FLOOR, numeric()], traded(question="depth")),
    *[("unknown_outcome", "outcome", FLOOR, traded(outcome=name)) for name in ("YES", "red", "")],
    ("unknown_outcome", "all_but", FLOOR, traded(question="colour", outcome=None, all_but="pink")),
    ("question_resolved", "question", [*FLOOR, resolution()], traded()),
    ("question_resolved", "question", [*FLOOR, annulment()], traded()),
    ("before_opening", "at", FLOOR, traded(at="2026-02-28T23:59:59Z")),
    ("contest_finalized", "contest", DONE, traded()),
    ("question_not_in_contest", "question", [*FLOOR, market("snow")], traded(question="snow")),
    ("not_trading", "contest", CUP, traded(contest="cup")),
    ("not_enrolled", "participant", FLOOR, traded(participant="cyd")),
    ("no_recorded_trades", "contest", TRADED, traded()),
    ("not_enough_shares", "shares", FLOOR, sold(1)),
    ("not_enough_shares", "shares", [*FLOOR, traded()], sold("100.000001")),
    ("not_enough_shares", "shares", [*FLOOR, traded()], sold(1, outcome="no")),
    ("not_enough_shares", "shares", [*FLOOR, traded()], sold(1, outcome=None)),
    ("too_much_traded", "shares", [*FLOOR, traded(LARGEST, 1)], traded("0.000001", 0)),
    ("too_much_traded", "shares", FLOOR, traded(LARGEST, 1, outcome=None)),
    ("too_much_traded", "shares", FLOOR, traded(1, LARGEST, fee="0.000001")),
    ("not_enough_cash", "amount", FLOOR, traded(amount="10000.000001")),
    ("not_enough_cash", "amount", FLOOR, traded(amount=10_000, fee="0.000001")),
    ("not_enough_cash", "amount", [*FLOOR, traded(amount=10_000)], sold(1, 0, fee=1)),
]


FUNCTIONS = ["record_trade"]


ORDER: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("malformed", "out_of_range", FLOOR, traded(0, all_but="no")),
    ("out_of_range", "unknown_contest", FLOOR, traded(0, contest="month")),
    ("unknown_contest", "unknown_question", FLOOR, traded(contest="month", question="hail")),
    ("unknown_outcome", "question_resolved", [*FLOOR, resolution()], traded(outcome="maybe")),
    ("question_resolved", "before_opening", [*FLOOR, resolution()], traded(at="2026-02-01T00:00:00Z")),
    ("before_opening", "contest_finalized", DONE, traded(at="2026-02-01T00:00:00Z")),
    ("contest_finalized", "question_not_in_contest", [*DONE, market("snow")], traded(question="snow")),
    ("question_not_in_contest", "not_trading", [*CUP, market("snow")], traded(contest="cup", question="snow")),
    ("not_trading", "not_enrolled", CUP, traded(contest="cup", participant="cyd")),
    ("not_enrolled", "no_recorded_trades", TRADED, traded(participant="cyd")),
    ("no_recorded_trades", "not_enough_shares", TRADED, sold()),
    ("not_enough_shares", "too_much_traded", [*FLOOR, traded(LARGEST, 1)], sold(5, outcome="no")),
    ("too_much_traded", "not_enough_cash", [*FLOOR, traded(LARGEST, 1)], traded(1, 10_000)),
]


def trades_of(history: list[AnyCommand], command: AnyCommand) -> list[events.TradeRecorded]:
    """Return the events of a trade that is accepted."""
    outcome = given(*history).when(command).outcome
    assert isinstance(outcome, list)
    trades = [event for event in outcome if isinstance(event, events.TradeRecorded)]
    assert len(trades) == len(outcome)
    return trades


OF: dict[str, Any] = {"at": micros(2), "contest": "week", "participant": "ada", "question": "rain"}


def test_a_purchase_and_a_sale_are_recorded_at_average_cost() -> None:
    """Of 100 shares that cost 40, 25 are sold: they cost 10. The fee is no part of the cost."""
    given(*FLOOR).when(traded(fee="0.5")).records(
        events.TradeRecorded(
            **OF, outcome=0, position=1, shares=100 * MILLION, amount=40 * MILLION, cost=40 * MILLION, fee=500_000
        )
    )
    given(*FLOOR, traded()).when(sold(25, 20)).records(
        events.TradeRecorded(**OF, outcome=0, position=1, shares=-25 * MILLION, amount=20 * MILLION, cost=-10 * MILLION)
    )


def test_a_trade_of_complete_sets_is_one_of_every_outcome() -> None:
    """Ten sets for ten: each of three outcomes has a third of the amount, the first one what is left over."""
    trades = trades_of(FLOOR, traded(10, 10, outcome=None, question="colour", fee=1))
    assert [(trade.outcome, trade.position, trade.parts) for trade in trades] == [(0, 1, 3), (1, 2, 3), (2, 3, 3)]
    assert [trade.amount for trade in trades] == [3_333_334, 3_333_333, 3_333_333]
    assert [trade.fee for trade in trades] == [MILLION, 0, 0]
    assert {trade.shares for trade in trades} == {10 * MILLION}


def test_all_but_one_outcome_is_a_share_of_each_other() -> None:
    """No of red is a share of green and one of blue."""
    trades = trades_of(FLOOR, traded(10, 5, outcome=None, all_but="red", question="colour"))
    assert [(trade.outcome, trade.amount, trade.parts) for trade in trades] == [(1, 2_500_000, 2), (2, 2_500_000, 2)]


@pytest.mark.parametrize(
    ("shares", "cost", "traded_shares", "amount", "change"),
    [
        (0, 0, 4, 3, 3),
        (0, 0, -4, 3, -3),
        (4, 10, 2, 3, 3),
        (4, 10, -1, 9, -2.5),
        (4, 10, -4, 9, -10),
        (4, 10, -6, 12, -10 - 12 * 2 / 6),
        (-4, -10, -2, 3, -3),
        (-4, -10, 1, 9, 2.5),
        (-4, -10, 4, 9, 10),
        (-4, -10, 6, 12, 10 + 12 * 2 / 6),
    ],
)
def test_what_a_trade_adds_to_the_cost(shares: int, cost: int, traded_shares: int, amount: int, change: float) -> None:
    """What is bought adds what is paid, what is owed takes off what came in; what is closed takes its average cost."""
    held = PositionState("rain", 0, shares=shares * MILLION, cost=cost * MILLION)
    assert cost_change(held, traded_shares * MILLION, amount * MILLION) == change * MILLION


def books(*story: AnyCommand, rules: RuleSet = COVERED, who: str = "ada") -> tuple[float, float]:
    """Return the cash and the realised profit of a participant after a story.

    After every movement the postings sum to 0, the writer and the tables agree, and the log is decided again.
    """
    told = [*trading_floor("ada", "bob", rules=rules), *story]
    history = oracle.history(*told)
    audited(history)
    facts = oracle.facts_in(history)
    for movement in facts.books.movements:
        assert sum(side.amount for side in postings(movement)) == 0
    account = facts.books.accounts["week", who]
    assert account.cash + account.cost() - account.deposits == account.realised
    with oracle.telling(":memory:", oracle.with_ids(told), NOW) as (ledger, _):
        assert ledger._known.state.accounts["week", who].cash == account.cash
    return account.cash / MILLION, account.realised / MILLION


SEVENTY = resolution(payouts={"yes": "0.7", "no": "0.3"})
# A story, and what is then in the account of 10,000, by hand.
STORIES: list[tuple[list[AnyCommand], str]] = [
    ([traded(), resolution()], "10060"),  # - 40 + 100
    ([traded(), resolution(outcome="no")], "9960"),
    ([traded(fee="0.25"), sold(50, 30, fee="0.5"), resolution()], "10039.25"),  # - 40.25 + 29.50 + 50
    ([traded(), SEVENTY], "10030"),
    ([traded(outcome="no"), SEVENTY], "9990"),
    ([traded(outcome=None, amount=100), SEVENTY], "10000"),  # a set is worth 1
    ([traded(), traded(outcome="no", amount=70), sold(100, 100, outcome=None), resolution()], "9990"),
    ([traded(), annulment()], "10000"),
    ([traded(), sold(50, 30), annulment()], "10010"),  # 20 of the cost is given back; the gain of 10 stays
    ([traded(fee=2), sold(50, 30), cancellation()], "10000"),
    ([traded(), resolution(), revocation(), resolution(outcome="no")], "9960"),
    ([traded(10, 5, None, all_but="red", question="colour"), resolution("colour", outcome="red")], "9995"),
    ([traded(10, 5, None, all_but="red", question="colour"), resolution("colour", outcome="blue")], "10005"),
    (
        [
            traded(10, 5, None, all_but="red", question="colour"),
            resolution("colour", payouts={"red": "0.25", "green": "0.25", "blue": "0.5"}),
        ],
        "10002.5",  # 10 x (1 - 0.25)
    ),
    ([traded(at=day(30)), resolution(at=day(31))], "10060"),  # after the close of the 29th
]


@pytest.mark.parametrize(("story", "cash"), STORIES)
def test_the_cash_after_a_resolution_is_what_the_market_would_pay(story: list[AnyCommand], cash: str) -> None:
    """Cash = 10,000 - paid + received - fees + shares x payout."""
    after, realised = books(*story)
    assert after == float(cash)
    assert realised == after - 10_000


def test_shares_that_are_owed_are_paid_for_at_the_resolution() -> None:
    """100 shares are sold for 40, 30 of them bought back for 15, and yes pays 70: 10,000 + 40 - 15 - 70."""
    story = [sold(), traded(30, 15)]
    assert books(*story, rules=SHORT) == (10_025, -3)  # 30 of the shares brought 12, and cost 15
    assert books(*story, resolution(), rules=SHORT) == (9_955, -45)
    assert books(*story, resolution(outcome="no"), rules=SHORT) == (10_025, 25)
    assert books(*story, annulment(), rules=SHORT) == (9_997, -3)  # the 28 that came in for the 70 goes back
    assert books(*story, cancellation(), rules=SHORT) == (10_000, 0)
    assert books(sold(), traded(130, 65), resolution(), rules=SHORT) == (10_005, 5)  # + 40 - 65 + 30


def test_an_account_may_owe_cash_where_the_rules_say_so() -> None:
    """It starts with nothing, owes the 40 that it paid, and is not in debt by the board: profit is what counts."""
    assert books(traded(), rules=OWING) == (-40, 0)
    assert books(traded(), resolution(), rules=OWING) == (60, 60)
    history = oracle.history(*trading_floor("ada", rules=OWING), traded(), resolution(outcome="no"))
    [row] = Projections(oracle.facts_in(history)).table("arena_leaderboard").rows()
    assert (row["profit"], row["state"], row["n"], row["brier"]) == ("-40.00", "active", 0, None)


def test_a_position_is_valued_at_its_mark() -> None:
    """70 shares of yes are owed at a mark of 0.60: cash 10,040 - 15, value -42."""
    history = oracle.history(
        *trading_floor("ada", rules=SHORT), sold(), traded(30, 15), quote(prices={"yes": "0.6"}, at=day(3))
    )
    projections = Projections(oracle.facts_in(history))
    [account] = projections.table("accounts").rows()
    assert (account["cash"], account["invested"], account["value"], account["total"]) == (
        "10025.00",
        "-28.00",
        "-42.00",
        "9983.00",
    )
    [position] = projections.table("positions").rows()
    assert (position["status"], position["shares"], position["average_entry"]) == ("open", "-70.00", "0.400000000")
    assert (position["realised"], position["unrealised"]) == ("-3.00", "-14.00")
    last = list(projections.table("portfolio_snapshots").rows())[-1]
    assert (last["total"], last["profit"]) == ("9983.00", "-17.00")


def test_the_table_of_trades_shows_them_without_a_decision() -> None:
    """Their price is what was paid for a share; a sale realises its amount less its cost."""
    history = oracle.history(*FLOOR, traded(3, 2), sold(1, "0.9"))
    bought, given_up = Projections(oracle.facts_in(history)).table("trades").rows()
    assert [bought[name] for name in ("type", "price", "amount", "shares", "cost", "realised")] == [
        "buy",
        "0.666666667",
        "2.00",
        "3.00",
        "2.00",
        "0.00",
    ]
    assert [given_up[name] for name in ("type", "price", "amount", "shares", "cost", "realised")] == [
        "sell",
        "0.900000000",
        "0.90",
        "1.00",
        "0.666666",  # a third of 2, rounded down
        "0.233334",
    ]
    assert {bought[name] for name in ("period", "attempt", "leg", "quote", "quoted_at", "cap", "confidence")} == {None}


def test_decisions_and_recorded_trades_share_a_position() -> None:
    """A bet of 500 at 0.40 adds 1,250 shares to the 100 that were recorded; only the bet is scored."""
    history = oracle.history(*FLOOR, traded(), decision(bet(500)), sold(1_350, 900), resolution())
    audited(history)
    projections = Projections(oracle.facts_in(history))
    [position] = projections.table("positions").rows()
    assert (position["position"], position["status"], position["realised"]) == (1, "closed", "360.00")
    assert [row["log_position"] for row in projections.table("bet_brier").rows()] == [
        14
    ]  # eleven rows before, the trade, the decision
    own = [row for row in projections.table("portfolio_snapshots").rows() if row["participant"] == "ada"]
    assert own[-1]["resolved_bets"] == 1


def test_a_contest_of_recorded_trades_ends_without_decisions() -> None:
    """It can be finalized as soon as no position is open; before, it cannot."""
    given(*FLOOR, traded()).when(finalization("week")).refuses("contest_not_complete", "contest")
    assert isinstance(given(*FLOOR, traded(), resolution()).when(finalization("week", at=AFTER)).outcome, list)
    given(*TRADED).when(finalization("week")).refuses("contest_not_complete", "contest")


def test_a_position_that_is_sold_out_is_another_one_when_it_is_bought_again() -> None:
    """As with bets, a position that is closed stays closed."""
    assert [trade.position for trade in trades_of([*FLOOR, traded(), sold()], traded(at=day(3)))] == [2]


FORGED: list[tuple[dict[str, Any], str]] = [
    ({"cost": 1}, "cost"),
    ({"amount": 39 * MILLION}, "cost"),
    ({"position": 2}, "position"),
    ({"parts": 2}, "parts"),
    ({"outcome": 1}, "outcome"),
    ({"at": micros(1) - 1}, "before_opening"),
]


@pytest.mark.parametrize(("change", "word"), FORGED)
def test_a_trade_that_does_not_follow_from_its_command_is_found(change: dict[str, Any], word: str) -> None:
    """An audit decides each trade again, so that no number of it can be changed alone."""
    history = oracle.history(*FLOOR, traded(), sold(25, 20))
    place = next(i for i, entry in enumerate(history) if isinstance(entry.event, events.TradeRecorded))
    forged = structs.replace(history[place], event=structs.replace(history[place].event, **change))
    with pytest.raises(Corrupt) as stopped:
        audited([*history[:place], forged, *history[place + 1 :]])
    assert stopped.value.position >= place + 1


@pytest.mark.parametrize("change", [{"shares": 0}, {"amount": -1}, {"cost": 10**19}, {"fee": -1}, {"outcome": 2}])
def test_tables_of_a_log_with_a_trade_that_cannot_be_stop_with_its_position(change: dict[str, Any]) -> None:
    """A log that another program wrote can hold any number; a table is not built of such a one."""
    history = oracle.history(*FLOOR, traded())
    forged = structs.replace(history[-1], event=structs.replace(history[-1].event, **change))
    with pytest.raises(Corrupt) as stopped:
        oracle.facts_in([*history[:-1], forged])
    assert stopped.value.position == len(history)


def test_a_log_that_ends_within_a_trade_of_sets_can_be_read() -> None:
    """Its first part says how many follow, so that an audit knows that it was cut."""
    history = oracle.history(*FLOOR, traded(10, 10, outcome=None, question="colour"))
    for end in (len(history) - 2, len(history) - 1):
        audited(history[:end], cut=True)


def test_deposits_are_counted_beside_recorded_trades() -> None:
    """A deposit of 50 makes a purchase of 10,050 possible."""
    assert isinstance(given(*RICH, deposit(50)).when(traded(1, 10_050)).outcome, list)
