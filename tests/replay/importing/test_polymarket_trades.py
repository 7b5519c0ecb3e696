"""Trades of Polymarket's wallets: profits at average cost, worked out by hand, compared with published positions."""

from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.core.values import read_instant
from forecast_ledger.ledger.model import events
from forecast_ledger.replay.importing.polymarket import NO_MARKET_OF_TRADE, NOT_ASKED, REDEEMED
from tests.replay.importing.test_polymarket import CLOSED, OPEN, prices
from tests.support.forging import audited
from tests.support.oracle import events_of
from tests.support.sources import import_into, saved, table, ticking, told

RAIN = OPEN | {"conditionId": "0xc"}
YES = CLOSED | {"conditionId": "0xc", "outcomePrices": '["1", "0"]'}
HALF = YES | {"outcomePrices": '["0.5", "0.5"]'}


def at(day: int) -> int:
    """A day of March 2026, in seconds since 1970."""
    return read_instant(f"2026-03-{day:02}T00:00:00Z") // 10**6


def activity(day: int, size: Any, money: Any, **extra: Any) -> dict[str, Any]:
    """What a wallet did, in the form of /activity: it bought yes."""
    said = {"proxyWallet": "0xa", "timestamp": at(day), "conditionId": "0xc", "type": "TRADE", "size": size}
    said |= {"usdcSize": money, "transactionHash": f"0x{day}", "price": 0.5, "asset": "11", "side": "BUY"}
    return said | {"outcomeIndex": 0, "outcome": "Yes", "name": "Ada", "title": "Rain?"} | extra


SETS: dict[str, Any] = {"asset": "", "side": "", "outcome": "", "outcomeIndex": 999}
STORY = [
    activity(2, 100, 40),
    activity(3, 50, 30),  # 150 for 70
    activity(4, 60, 42, side="SELL"),  # they cost 28: a gain of 14
    activity(5, 20, 20, type="SPLIT", **SETS),  # 20 of yes and 20 of no, for 10 each: 110 of yes cost 52
    activity(6, 5, 5, type="MERGE", **SETS),  # 2.5 each; 5 of yes cost 52 x 5 / 110 = 2.363636
]
COST = 52 - 52 * 5 / 110  # of 105 shares of yes: 49.636364
SOLD = 14 + 2.5 - 52 * 5 / 110  # 14.136364


def position(outcome: str, size: Any, realized: Any, **extra: Any) -> dict[str, Any]:
    """A position as /positions publishes it, with numbers of four decimals."""
    token = {"Yes": "11", "No": "12"}[outcome]
    said = {"proxyWallet": "0xa", "asset": token, "conditionId": "0xc", "size": size, "realizedPnl": round(realized, 4)}
    return said | {"outcome": outcome, "totalBought": 170, "avgPrice": 0.4727} | extra


# The market, the published positions, and the profit of the wallet.
CASES = {
    "open": (
        RAIN,
        [
            position("Yes", 105, SOLD, curPrice=0.8, cashPnl=round(105 * 0.8 - COST, 4)),
            position("No", 15, 0, curPrice=0.2, cashPnl=15 * 0.2 - 7.5),
        ],
        -40 - 30 + 42 - 20 + 5 + 105 * 0.8 + 15 * 0.2,
    ),
    "not redeemed": (
        YES,
        [
            position("Yes", 105, SOLD, curPrice=1, cashPnl=round(105 - COST, 4), redeemable=True),
            position("No", 15, 0, curPrice=0, cashPnl=-7.5, redeemable=True),
        ],
        -40 - 30 + 42 - 20 + 5 + 105,
    ),
    "closed": (
        YES,
        [
            {k: v for k, v in position("Yes", 0, SOLD + 105 - COST).items() if k != "size"},  # 69.5
            {k: v for k, v in position("No", 0, -7.5).items() if k != "size"},
        ],
        62,
    ),
    "half and half": (
        HALF,
        [position("Yes", 105, SOLD, curPrice=0.5, cashPnl=round(52.5 - COST, 4))],
        -43 + 105 / 2 + 15 / 2,
    ),
}


@pytest.mark.parametrize(("market", "published", "profit"), CASES.values(), ids=CASES.keys())
def test_profits_are_what_polymarket_publishes(market: Any, published: Any, profit: float, tmp_path: Path) -> None:
    """Realised at average cost, and what is held at the price that the position states."""
    quoted = {"market": "0xc"} | prices(("09", 0.8))
    with ticking() as ledger:
        folder = saved(tmp_path / "p", markets=[market], activity=STORY[::-1], positions=published, prices=quoted)
        found = import_into(ledger, "polymarket", folder, trades=True)
        assert (found.refused, found.left_out) == ([], {})
        assert found.compared[-1].endswith(" agree, 0 differ"), found.compared
        [board] = table(ledger, "arena_leaderboard", "participant", "profit")
        assert (board[0], round(float(board[1]), 4)) == ("0xa", round(profit, 4))
        audited(events_of(ledger))
        again = import_into(ledger, "polymarket", folder, trades=True)
        assert (again.counts["accepted"], again.counts["refused"]) == (0, 0)


def test_a_published_profit_that_does_not_come_out_is_named(tmp_path: Path) -> None:
    """By the outcome, with the difference."""
    published = [position("Yes", 105, SOLD + 1, curPrice=1, cashPnl=round(105 - COST, 4))]
    with ticking() as ledger:
        folder = saved(tmp_path / "p", markets=[YES], activity=STORY, positions=published)
        lines = import_into(ledger, "polymarket", folder, trades=True).compared
    assert lines == [
        "differs: 0xa on polymarket 1, yes: realizedPnl 15.1364 is published, 14.136364 is here: -1.000036 apart",
        "published results: 2 agree, 1 differ",
    ]


def test_a_trade_in_two_files_is_one_and_its_money_is_that_of_the_activity(tmp_path: Path) -> None:
    """/trades has a size and a price, /activity the money: 71.905 for 36.50, of which a part is a fee."""
    one = activity(2, 71.905, 36.5)
    other = {name: value for name, value in one.items() if name not in {"usdcSize", "type"}}
    for names in (("a", "b"), ("b", "a")):
        with ticking() as ledger:
            files: dict[str, Any] = {names[0]: [one], names[1]: [other]}
            found = import_into(ledger, "polymarket", saved(tmp_path / names[0], markets=[RAIN], **files), trades=True)
            assert (found.refused, found.left_out) == ([], {})
            [trade] = [each for each in told(ledger) if isinstance(each, events.TradeRecorded)]
            assert (trade.shares, trade.amount) == (71_905_000, 36_500_000)


def test_without_the_money_it_is_size_times_price(tmp_path: Path) -> None:
    """33.333332 at 0.9700000288 are 32.333333."""
    trade = activity(2, 33.333332, None, price=0.9700000288000011, side="BUY")
    with ticking() as ledger:
        import_into(ledger, "polymarket", saved(tmp_path / "p", markets=[RAIN], trades=[trade]), trades=True)
        [found] = [each for each in told(ledger) if isinstance(each, events.TradeRecorded)]
    assert (found.shares, found.amount) == (33_333_332, 32_333_333)


def test_a_trade_after_the_answer_was_known_counts(tmp_path: Path) -> None:
    """The market was closed on the 11th and traded on the 12th, when it settles; the answer was known before."""
    with ticking() as ledger:
        folder = saved(tmp_path / "p", markets=[YES], activity=[activity(12, 10, 9.9)])
        found = import_into(ledger, "polymarket", folder, trades=True)
        assert found.refused == []
        [resolved] = [each for each in told(ledger) if isinstance(each, events.QuestionResolved)]
        assert (resolved.at, resolved.known_at) == (at(12) * 10**6, at(11) * 10**6)
        assert table(ledger, "arena_leaderboard", "profit") == [("0.10",)]


def test_what_is_no_trade_is_named(tmp_path: Path) -> None:
    """Redemptions, rewards, conversions, and what is of no market."""
    rows = [
        activity(2, 1, 1, type="REDEEM", **SETS),
        activity(3, 1, 1, type="REWARD", **SETS),
        activity(4, 1, 1, type="CONVERSION", **SETS),
        activity(5, 1, 1, conditionId="0xd"),
        activity(6, 1, 1, asset="77", outcome="Maybe"),
    ]
    with ticking() as ledger:
        lost = position("Yes", 1, 1) | {"conditionId": "0xd"}
        found = import_into(
            ledger, "polymarket", saved(tmp_path / "p", markets=[RAIN], activity=rows, positions=[lost]), trades=True
        )
    assert found.left_out == {
        REDEEMED: 1,
        "an activity of the type REWARD, which is no trade": 1,
        "an activity of the type CONVERSION, which is no trade": 1,
        NO_MARKET_OF_TRADE: 3,
    }


@pytest.mark.parametrize(
    "change",
    [{"side": "HOLD"}, {"timestamp": None}, {"transactionHash": ""}, {"size": 0}, {"size": "much"}, {"usdcSize": -1}],
)
def test_a_trade_that_cannot_be_read_is_named_and_the_others_count(change: Any, tmp_path: Path) -> None:
    """The refusal says the field."""
    with ticking() as ledger:
        folder = saved(tmp_path / "p", markets=[RAIN], activity=[activity(2, 1, 1) | change, activity(3, 1, 1)])
        found = import_into(ledger, "polymarket", folder, trades=True)
        assert len(found.refused) == 1
        assert next(iter(change)) in found.refused[0] or "size" in found.refused[0]
        assert len(table(ledger, "trades", "participant")) == 1


def test_without_trades_activities_and_positions_are_not_carried_over(tmp_path: Path) -> None:
    """They are of accounts, which are opened if trades are asked for."""
    with ticking() as ledger:
        folder = saved(tmp_path / "p", markets=[RAIN], activity=STORY, positions=[position("Yes", 1, 1)])
        found = import_into(ledger, "polymarket", folder)
        assert found.left_out == {NOT_ASKED: 6}
