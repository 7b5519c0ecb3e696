"""Fills of an account of Kalshi as trades: what contracts cost and pay, worked out by hand, against its settlements."""

from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.model import events
from forecast_ledger.replay.importing.kalshi import NO_MARKET, NOT_ASKED, SUBACCOUNTS
from tests.replay.importing.test_kalshi import RAIN
from tests.support.forging import audited
from tests.support.oracle import events_of
from tests.support.paths import DATA
from tests.support.sources import import_into, saved, table, ticking, told

ENDED = RAIN | {"status": "finalized", "settlement_ts": "2026-03-12T00:00:00Z"}


def fill(day: int, acquired: str, count: Any, yes: str, **extra: Any) -> dict[str, Any]:
    """A fill as /portfolio/fills answers it; `acquired` is the outcome that there is more of, or less of the other."""
    said: dict[str, Any] = {
        "fill_id": f"f{day}",
        "trade_id": f"f{day}",
        "order_id": "o",
        "ticker": "R",
        "market_ticker": "R",
    }
    said |= {"outcome_side": acquired, "book_side": "bid" if acquired == "yes" else "ask", "is_taker": True}
    said |= {"count_fp": str(count), "yes_price_dollars": yes, "no_price_dollars": f"{1 - float(yes):.4f}"}
    return said | {"fee_cost": "0.1", "created_time": f"2026-03-{day:02}T00:00:00Z"} | extra


def legacy(fill: dict[str, Any], action: str) -> dict[str, Any]:
    """A fill as it was answered until May 2026: its side is the outcome acquired, whatever the order did."""
    side = fill["outcome_side"]
    return {name: each for name, each in fill.items() if not name.endswith("_side")} | {"side": side, "action": action}


def settled(result: str, revenue: int, yes: str, no: str, fee: str) -> dict[str, Any]:
    """A settlement as /portfolio/settlements answers it: revenue in cents, costs in dollars."""
    said = {"ticker": "R", "event_ticker": "E", "market_result": result, "revenue": revenue, "fee_cost": fee}
    return said | {"yes_total_cost_dollars": yes, "no_total_cost_dollars": no, "settled_time": "2026-03-12T00:00:00Z"}


FILLS = [
    fill(2, "yes", "10.00", "0.40"),  # 10 of yes for 4
    fill(3, "no", "4.00", "0.50"),  # 4 of yes are sold for 2, which cost 1.6: 6 of yes cost 2.4
    fill(4, "no", "10.00", "0.70"),  # takes the 6 of yes off at 0.70, for 4.2, and buys 4 of no for 1.2
    fill(5, "yes", "1.00", "0.60"),  # takes one of no off at 0.40: 3 of no cost 0.9
]
LEGACY = [legacy(each, action) for each, action in zip(FILLS, ("buy", "sell", "buy", "buy"), strict=True)]
# In a settlement, all fills of yes cost 10 x 0.4 + 0.6, and all of no 4 x 0.5 + 10 x 0.3.
YES_COST, NO_COST = "4.6", "5"
PAID = -4 + 2 + 4.2 - 1.2 + 0.4 - 0.4  # with the fees of four fills
# The record of the market, its settlement, and the profit.
CASES = {
    "no": ({"result": "no"}, settled("no", 300, YES_COST, NO_COST, "0.4"), PAID + 3),
    "yes": ({"result": "yes"}, settled("yes", 0, YES_COST, NO_COST, "0.4"), PAID),
    "share": (
        {"result": "scalar", "settlement_value_dollars": "0.25"},
        settled("scalar", 225, YES_COST, NO_COST, "0.4") | {"value": 25},
        PAID + 3 * 0.75,
    ),
    "void": ({"result": "void"}, settled("void", 90, YES_COST, NO_COST, "0.4"), PAID + 0.9),  # at original cost
}


@pytest.mark.parametrize("fills", [FILLS, LEGACY], ids=["", "legacy"])
@pytest.mark.parametrize(("record", "settlement", "profit"), CASES.values(), ids=CASES.keys())
def test_profits_are_what_the_settlement_says(
    record: Any, settlement: Any, profit: float, fills: Any, tmp_path: Path
) -> None:
    """Contracts of yes and no take each other off, and what is left is paid; revenue, cost and fees agree."""
    with ticking() as ledger:
        folder = saved(
            tmp_path / "k",
            markets={"markets": [ENDED | record]},
            fills={"fills": fills[::-1], "cursor": ""},
            more={"fills": fills[:1]},
            settlements={"settlements": [settlement]},
        )
        found = import_into(ledger, "kalshi", folder, trades=True)
        assert (found.refused, found.left_out) == ([], {})
        assert found.compared == ["published results: 3 agree, 0 differ"]
        [row] = table(ledger, "arena_leaderboard", "participant", "profit", "fees")
        assert (row[0], round(float(row[1]), 6), row[2]) == ("account", round(profit, 6), "0.40")
        trades = [each for each in told(ledger) if isinstance(each, events.TradeRecorded)]
        assert [(each.outcome, each.shares // 10**6) for each in trades] == [(0, 10), (0, -4), (0, -6), (1, 4), (1, -1)]
        audited(events_of(ledger))
        again = import_into(ledger, "kalshi", folder, trades=True)
        assert (again.counts["accepted"], again.counts["refused"]) == (0, 0)


def test_older_fills_are_in_cents_and_whole_contracts(tmp_path: Path) -> None:
    """Fields without a point are cents; a time in seconds counts if there is no other."""
    old = {"trade_id": "t", "ticker": "R", "side": "no", "action": "buy", "count": 3, "yes_price": 40, "no_price": 60}
    old |= {"is_taker": False, "ts": 1_772_409_600}
    with ticking() as ledger:
        found = import_into(ledger, "kalshi", saved(tmp_path / "k", markets=[RAIN], fills=[old]), trades=True)
        assert found.refused == []
        [trade] = [each for each in told(ledger) if isinstance(each, events.TradeRecorded)]
    assert (trade.outcome, trade.shares, trade.amount, trade.fee) == (1, 3_000_000, 1_800_000, 0)


def test_who_sells_all_before_the_end_has_a_settlement_without_revenue(tmp_path: Path) -> None:
    """20 of yes for 0.3 are sold for 0.8: the settlement has 20 of both, which cost 6 and 4, and pays nothing."""
    fills = [fill(2, "yes", "20.00", "0.30"), fill(3, "no", "20.00", "0.80")]
    with ticking() as ledger:
        settlement = settled("yes", 0, "6", "4", "0.2")
        markets = [ENDED | {"result": "yes"}]
        folder = saved(tmp_path / "k", markets=markets, fills=fills, settlements=[settlement])
        found = import_into(ledger, "kalshi", folder, trades=True)
        assert (found.refused, found.compared) == ([], ["published results: 3 agree, 0 differ"])
        assert table(ledger, "arena_leaderboard", "profit") == [("9.80",)]  # 16 - 6 - 0.2


def test_a_settlement_that_does_not_come_out_is_named(tmp_path: Path) -> None:
    """By what it says, and by how much."""
    with ticking() as ledger:
        folder = saved(
            tmp_path / "k",
            markets=[ENDED | {"result": "no"}],
            fills=FILLS,
            settlements=[settled("no", 400, YES_COST, NO_COST, "0.4")],
        )
        lines = import_into(ledger, "kalshi", folder, trades=True).compared
    assert lines[0] == "differs: account on kalshi R: revenue 4.00 is published, 3.00 is here: -1.00 apart"


def test_the_settlement_of_the_sample_has_no_fills() -> None:
    """10 contracts for 600 cents and a fee of 0.1, given back as the market is void; the last line has the remedy."""
    with ticking() as ledger:
        lines = import_into(ledger, "kalshi", DATA / "kalshi-import", trades=True).compared
    said = {"revenue": "6.00", "total_cost": "6.00", "fee_cost": "0.10"}
    on = "differs: account on kalshi KXGAME-26-OWL"
    assert lines == [
        *(f"{on}: {name} {number} is published, and no trade of it is there" for name, number in said.items()),
        "published results: 0 agree, 3 differ; 3 of these come from trades that are not there: save them in PATH, too",
    ]


def test_subaccounts_are_participants_and_a_settlement_is_not_divided(tmp_path: Path) -> None:
    """Each holds its own contracts."""
    fills = [FILLS[0], fill(3, "no", 10, "0.40", subaccount_number=2)]
    with ticking() as ledger:
        folder = saved(
            tmp_path / "k", markets=[ENDED | {"result": "no"}], fills=fills, s=[settled("no", 0, "4", "0", "0.1")]
        )
        found = import_into(ledger, "kalshi", folder, trades=True)
        assert found.left_out == {SUBACCOUNTS: 1}
        assert sorted(table(ledger, "accounts", "participant", "profit")) == [
            ("account", "-4.10"),
            ("account 2", "3.90"),
        ]


@pytest.mark.parametrize(
    "change",
    [
        {"outcome_side": "no"},
        {"book_side": "maybe"},
        {"side": "no"},
        {"count_fp": "0"},
        {"fill_id": "", "trade_id": ""},
    ],
)
def test_a_fill_that_cannot_be_read_is_named(change: Any, tmp_path: Path) -> None:
    """The others count."""
    with ticking() as ledger:
        folder = saved(tmp_path / "k", markets=[RAIN], fills=[FILLS[0] | change, FILLS[1]])
        found = import_into(ledger, "kalshi", folder, trades=True)
        assert (len(found.refused), len(table(ledger, "trades", "participant"))) == (1, 1)


def test_fills_of_no_market_and_those_that_nobody_asked_for_are_named(tmp_path: Path) -> None:
    """A fill is no price of the platform."""
    with ticking() as ledger:
        lost = saved(tmp_path / "k", markets=[RAIN], fills=[FILLS[0] | {"ticker": "S"}])
        assert import_into(ledger, "kalshi", lost, trades=True).left_out == {NO_MARKET: 1}
    with ticking() as ledger:
        folder = saved(tmp_path / "k", markets=[RAIN], fills=FILLS)
        assert import_into(ledger, "kalshi", folder).left_out == {NOT_ASKED: 4}
        assert table(ledger, "quotes", "price") == []
