"""Bets of Manifold as trades: profits by its documented rules, worked out by hand, and compared with published ones.

A constant product market maker with pools of y and n shares gives, for m paid on yes, m + y - y n / (n + m) shares.
Source: Manifold, "Maniswap"; `common/src/calculate-cpmm.ts` with p = 1/2.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import RenameParticipant
from forecast_ledger.replay.importing.follow_copy import TRADE_MISSED, TRADE_UNREAD
from forecast_ledger.replay.importing.manifold import NO_RESULTS, NO_TRADE, ONE_ANSWER
from forecast_ledger.replay.importing.record_copy import REPLACED
from forecast_ledger.replay.importing.source_items import TRADE_CHANGED
from tests.replay.cli.test_main import run
from tests.replay.importing.test_manifold import RAIN, SEVERAL, bet, ms
from tests.support import given
from tests.support.forging import audited
from tests.support.oracle import events_of
from tests.support.sources import import_into, saved, table, ticking, told

YES = RAIN | {"isResolved": True, "resolution": "YES", "resolutionTime": ms(9)}
NA = YES | {"resolution": "CANCEL"}
MKT = YES | {"resolution": "MKT", "resolutionProbability": 0.25}


def shares(pool: tuple[Fraction, Fraction], paid: int, no: bool = False) -> Fraction:
    """What the market maker gives for money, of yes or of no."""
    own, other = reversed(pool) if no else pool
    return paid + own - own * other / (other + paid)


def traded(day: int, name: str, user: str, *numbers: Any, **extra: Any) -> dict[str, Any]:
    """A bet with its shares, its money, and its side if that is no; what it does to the price does not matter here."""
    count, amount, side = (*numbers, "YES")[:3]
    said = {"id": name, "outcome": side, "shares": float(count), "amount": float(amount), "userUsername": user}
    return bet(day, 0.5, 0.5, f"u-{user}", **(said | extra))


def position(user: str, profit: Any, payout: Any, invested: Any, **extra: Any) -> dict[str, Any]:
    """A position as /v0/market/ID/positions publishes it."""
    said = {"contractId": "r", "userId": f"u-{user}", "userUsername": user, "hasShares": True, "loan": 3}
    return said | {"profit": float(profit), "payout": float(payout), "invested": float(invested)} | extra


POOL = (Fraction(100), Fraction(100))
ADA = shares(POOL, 10)  # 10 + 100 - 10,000 / 110 = 19.0909...
AFTER_ADA = (POOL[0] + 10 - ADA, POOL[1] + 10)
BO = shares(AFTER_ADA, 20, no=True)  # 20 + 110 - 10,000 / 110.90909... = 39.836...


def test_the_market_maker_gives_what_the_formula_says() -> None:
    """The product of the pools stays 10,000."""
    assert Fraction(210, 11) == ADA
    assert AFTER_ADA[0] * AFTER_ADA[1] == 10_000
    assert (AFTER_ADA[0] + 20) * (AFTER_ADA[1] + 20 - BO) == 10_000


HALF = ADA / 2
BETS = [
    traded(2, "b1", "ada", ADA, 10),
    traded(3, "b2", "bo", BO, 20, "NO"),
    traded(4, "b3", "ada", -HALF, -4),
    traded(5, "b4", "ada", 6, 3, "NO"),
    traded(5, "b5", "ada", -6, -2.5, isRedemption=True),
    traded(5, "b6", "ada", -6, -3.5, "NO", isRedemption=True),
]
LEFT = HALF - 6  # of ada's shares of yes
COST = 10 * (LEFT / ADA)  # at average cost
# The market, what ada's and bo's shares are paid, and so their profit = paid + received - given.
MARKETS = [
    (YES, LEFT, Fraction(0)),
    (YES | {"resolution": "NO"}, Fraction(0), BO),
    (MKT, LEFT / 4, BO * 3 / 4),
    (NA, Fraction(10 + 3 - 4 - 6), Fraction(20)),  # everything is given back
    (RAIN, LEFT / 2, BO / 2),  # the last price is a half
]


@pytest.mark.parametrize(("market", "ada", "bo"), MARKETS, ids=["yes", "no", "share", "N/A", "open"])
def test_profits_are_what_manifold_computes(market: Any, ada: Fraction, bo: Fraction, tmp_path: Path) -> None:
    """Profit = payout + sold + redeemed - invested; the published numbers agree."""
    published = [position("ada", ada + 4 + 6 - 13, ada, COST), position("bo", bo - 20, bo, 20)]
    with ticking() as ledger:
        folder = saved(tmp_path / "m", markets=[market], bets=BETS[::-1], positions=published)
        found = import_into(ledger, "manifold", folder, trades=True)
        assert (found.refused, found.left_out) == ([], {})
        assert found.compared == ["published results: 6 agree, 0 differ"]
        profits = table(ledger, "arena_leaderboard", "participant", "profit")
        expected = {"ada": ada + 4 + 6 - 13, "bo": bo - 20}
        assert {who: round(float(profit), 4) for who, profit in profits} == {
            who: round(float(profit), 4) for who, profit in expected.items()
        }
        audited(events_of(ledger))
        again = import_into(ledger, "manifold", folder, trades=True)
        assert (again.counts["accepted"], again.counts["refused"]) == (0, 0)


def test_a_published_profit_that_does_not_come_out_is_named_with_the_difference(tmp_path: Path) -> None:
    """A position of somebody whose bets are not there, and one that is 0.5 off."""
    published = [position("ada", LEFT + 10 - 13 + Fraction(1, 2), LEFT, COST), position("cy", 1, 1, 1)]
    with ticking() as ledger:
        folder = saved(tmp_path / "m", markets=[YES], bets=BETS, positions=published)
        lines = import_into(ledger, "manifold", folder, trades=True).compared
    assert lines[0] == "differs: ada on manifold r: profit 1.045455 is published, 0.545455 is here: -0.50 apart"
    assert lines[1] == "differs: cy on manifold r: profit 1.00 is published, and no trade of it is there"
    there = (
        "3 of these come from trades that are not there: save them in PATH, too"  # profit, payout and invested of cy
    )
    assert lines[-1] == f"published results: 2 agree, 4 differ; {there}"


ANSWERS = [{"id": "a", "text": "Owls", "createdTime": ms(1)}, {"id": "b", "text": "Foxes", "createdTime": ms(1)}]
THREE = [*ANSWERS, {"id": "c", "text": "Bears", "createdTime": ms(1)}]


def of_three(resolution: dict[str, Any]) -> dict[str, Any]:
    """A resolved market of three answers of which one is right."""
    return SEVERAL | {"answers": THREE, "isResolved": True, "resolutionTime": ms(9)} | resolution


@pytest.mark.parametrize(
    ("resolution", "owls"),
    [
        ({"resolution": "a"}, 1),
        ({"resolution": "c"}, 0),
        ({"resolution": "MKT", "resolutions": {"a": 40, "b": 60}}, Fraction(2, 5)),
    ],
)
def test_no_of_an_answer_is_a_share_of_every_other(resolution: Any, owls: Any, tmp_path: Path) -> None:
    """30 shares of no of the Owls for 18, of which 10 are sold for 7: 20 (1 - owls) + 7 - 18."""
    bets = [
        traded(2, "b1", "ada", 30, 18, "NO", answerId="a", probAfter=0.4, betGroupId="g"),
        traded(2, "b2", "ada", 0, 0, "YES", answerId="b", isRedemption=True, probAfter=0.3, betGroupId="g"),
        traded(2, "b3", "ada", 0, 0, "YES", answerId="c", isRedemption=True, probAfter=0.3, betGroupId="g"),
        traded(3, "b4", "ada", -10, -7, "NO", answerId="a", probBefore=0.4, probAfter=0.4, betGroupId="h"),
    ]
    profit = 20 * (1 - owls) + 7 - 18
    summary = position("ada", profit, 20 * (1 - owls), 12, answerId=None)
    with ticking() as ledger:
        folder = saved(
            tmp_path / "m",
            markets=[of_three(resolution)],
            bets=bets,
            positions=[summary, position("ada", profit, 0, 0, answerId="a")],
        )
        found = import_into(ledger, "manifold", folder, trades=True)
        assert found.refused == []
        assert found.left_out == {ONE_ANSWER: 1}
        assert found.compared == ["published results: 2 agree, 0 differ"]
        first = [each for each in told(ledger) if isinstance(each, events.TradeRecorded)][:2]
        assert [(each.outcome, each.shares, each.amount) for each in first] == [
            (1, 30_000_000, 9_000_000),
            (2, 30_000_000, 9_000_000),
        ]


def test_answers_that_are_questions_have_positions_of_their_own(tmp_path: Path) -> None:
    """Yes of one answer and no of another, each with its published numbers, and the sum of both."""
    market = SEVERAL | {"shouldAnswersSumToOne": False, "isResolved": True, "resolutionTime": ms(9)}
    given = [each | {"resolution": "YES"} for each in ANSWERS]
    bets = [traded(2, "b1", "ada", 10, 4, answerId="a"), traded(3, "b2", "ada", 20, 5, "NO", answerId="b")]
    published = [
        position("ada", 6, 10, 4, answerId="a"),
        position("ada", -5, 0, 5, answerId="b"),
        position("ada", 1, 10, 9, answerId=None),
    ]
    with ticking() as ledger:
        folder = saved(tmp_path / "m", markets=[market | {"answers": given}], bets=bets, positions=published)
        found = import_into(ledger, "manifold", folder, trades=True)
        assert (found.refused, found.compared) == ([], ["published results: 8 agree, 0 differ"])


def test_a_limit_order_is_a_trade_at_each_of_its_fills(tmp_path: Path) -> None:
    """Five shares at once, and five a day later; a fill that a newer copy has is one more trade."""
    fills = [
        {"amount": 2, "shares": 5, "timestamp": ms(2), "matchedBetId": None},
        {"amount": 2, "shares": 5, "timestamp": ms(3), "matchedBetId": "x"},
    ]
    order = {"limitProb": 0.4, "orderAmount": 10, "isFilled": False}
    with ticking() as ledger:
        first = traded(2, "b1", "ada", 5, 2, **order, fills=fills[:1])
        import_into(ledger, "manifold", saved(tmp_path / "m", markets=[RAIN], bets=[first]), trades=True)
        second = traded(2, "b1", "ada", 10, 4, **order, fills=fills)
        found = import_into(ledger, "manifold", saved(tmp_path / "m", markets=[RAIN], bets=[second]), trades=True)
        assert found.refused == []
        trades = [each for each in told(ledger) if isinstance(each, events.TradeRecorded)]
    assert [(each.at, each.shares) for each in trades] == [(ms(2) * 1_000, 5_000_000), (ms(3) * 1_000, 5_000_000)]


def test_an_answer_in_whose_place_the_market_is_cancelled_counts_as_replaced(tmp_path: Path) -> None:
    """Once: it is revoked, and the trades are undone."""
    bets = [traded(2, "b1", "ada", 10, 4)]
    with ticking() as ledger:
        for market, changes in ((YES, {}), (NA, {REPLACED: 1}), (NA, {}), (YES, {REPLACED: 1})):
            folder = saved(tmp_path / "m", markets=[market], bets=bets)
            assert import_into(ledger, "manifold", folder, trades=True).changes == changes


def test_shares_that_are_sold_out_leave_nothing_however_they_are_rounded(tmp_path: Path) -> None:
    """Three thirds are bought, each rounded to 0.333333, and one share is sold."""
    third = "0.3333333333333333"
    bets = [traded(2, f"b{number}", "ada", third, "0.1666666666") for number in (1, 2, 3)]
    bets.append(traded(3, "b4", "ada", -1, "-0.5"))
    with ticking() as ledger:
        found = import_into(ledger, "manifold", saved(tmp_path / "m", markets=[RAIN], bets=bets), trades=True)
        assert found.refused == []
        assert table(ledger, "positions", "status", "shares") == [("closed", "0.00")]


def test_a_sale_without_its_purchase_is_refused_and_named(tmp_path: Path) -> None:
    """A copy that does not have all bets of somebody cannot have the right profit."""
    with ticking() as ledger:
        bets = [traded(2, "b1", "ada", -1, "-0.5")]
        found = import_into(ledger, "manifold", saved(tmp_path / "m", markets=[RAIN], bets=bets), trades=True)
    assert found.counts["refused"] == 1
    assert "not_enough_shares shares" in found.refused[0]


def test_bets_that_are_no_trades_are_named(tmp_path: Path) -> None:
    """Without a user, an id, a side or shares, or with shares and money of two signs."""
    bad: list[dict[str, Any]] = [{"userId": ""}, {"id": ""}, {"outcome": "MAYBE"}, {"shares": 0}, {"shares": -1}]
    bets = [traded(2, f"b{number}", "ada", 1, 1) | change for number, change in enumerate(bad)]
    with ticking() as ledger:
        found = import_into(ledger, "manifold", saved(tmp_path / "m", markets=[RAIN], bets=bets), trades=True)
    assert found.left_out == {NO_TRADE: 5}
    assert found.refused == []


def test_without_trades_published_results_are_not_carried_over(tmp_path: Path) -> None:
    """They are of accounts, which are opened if trades are asked for."""
    with ticking() as ledger:
        folder = saved(tmp_path / "m", markets=[YES], bets=BETS, positions=[position("ada", 1, 1, 1)])
        found = import_into(ledger, "manifold", folder)
        assert (found.left_out, found.compared) == ({NO_RESULTS: 1}, [])
        assert table(ledger, "accounts", "participant") == []


def test_movements_of_an_account_are_in_order_of_time_over_all_markets(tmp_path: Path) -> None:
    """A market that opens later has an earlier trade than the last one of the first."""
    other = RAIN | {"id": "s", "createdTime": ms(2)}
    bets = [traded(7, "b1", "ada", 1, "0.5"), traded(3, "b2", "ada", 1, "0.5", contractId="s")]
    with ticking() as ledger:
        import_into(ledger, "manifold", saved(tmp_path / "m", markets=[RAIN, other], bets=bets), trades=True)
        moved = table(ledger, "cash", "movement", "at", "question")
    assert [row for row in moved if row[0] == "bought"] == [
        ("bought", "2026-03-03T00:00:00Z", "manifold s"),
        ("bought", "2026-03-07T00:00:00Z", "manifold r"),
    ]


NUMBER = RAIN | {"outcomeType": "PSEUDO_NUMERIC", "min": 100, "max": 300, "isLogScale": False}


@pytest.mark.parametrize(
    ("scale", "title"),
    [
        ({}, "Rain? (share of the way from 100 to 300)"),
        (
            {"isLogScale": True, "min": -0.5},
            "Rain? (share of the way from -0.5 to 300, in the logarithm of the number - min + 1)",
        ),
    ],
)
def test_a_market_of_a_number_pays_the_share_of_its_scale(scale: Any, title: str, tmp_path: Path) -> None:
    """150 of 100 to 300 is a quarter of the way: 45 shares for 25 are paid 11.25."""
    ended = NUMBER | scale | {"isResolved": True, "resolution": "MKT", "resolutionTime": ms(9)}
    ended |= {"resolutionProbability": 0.25, "resolutionValue": 150}
    with ticking() as ledger:
        folder = saved(tmp_path / "m", markets=[ended], bets=[traded(2, "b1", "ada", 45, 25)])
        found = import_into(ledger, "manifold", folder, trades=True)
        assert (found.refused, found.left_out) == ([], {})
        assert table(ledger, "arena_leaderboard", "profit") == [("-13.75",)]
        assert table(ledger, "questions", "title") == [(title,)]


def test_a_market_of_ranges_is_one_of_answers(tmp_path: Path) -> None:
    """One range is right: its shares are paid 1."""
    ranges = [each | {"text": text} for each, text in zip(THREE, ("0-9", "10-19", "20-29"), strict=True)]
    ended = {"answers": ranges, "isResolved": True, "resolutionTime": ms(9), "resolution": "b"}
    for kind in ("NUMBER", "MULTI_NUMERIC"):
        with ticking() as ledger:
            market = SEVERAL | ended | {"outcomeType": kind, "min": 0, "max": 29}
            bets = [traded(2, "b1", "ada", 10, 4, answerId="b"), traded(3, "b2", "ada", 5, 3, "NO", answerId="b")]
            found = import_into(ledger, "manifold", saved(tmp_path / kind, markets=[market], bets=bets), trades=True)
            assert found.refused == []
            assert table(ledger, "arena_leaderboard", "profit") == [("3.00",)]  # 10 - 4 - 3


@pytest.mark.parametrize("change", [{"min": None}, {"max": "many"}])
def test_a_market_of_a_number_without_its_scale_is_refused(change: Any, tmp_path: Path) -> None:
    """Its probability would say nothing."""
    with ticking() as ledger:
        found = import_into(ledger, "manifold", saved(tmp_path / "m", markets=[RAIN | {"id": "s"}, NUMBER | change]))
    assert len(found.refused) == 1


def test_trades_of_somebody_with_another_id_are_recorded_under_it(tmp_path: Path) -> None:
    """Ada is ada.l in this ledger; a newer copy with one more bet, which still says ada, adds that one alone."""
    bets = [traded(2, "b1", "ada", 10, 4), traded(3, "b2", "ada", -5, -3)]
    with ticking() as ledger:
        ledger.handle(given.opened("other"), "q")
        ledger.handle(given.forecast("other"), "f")
        ledger.handle(RenameParticipant(at=given.day(12), participant="ada", to="ada.l", reason=""), "r")
        for upto in (1, 2, 2):
            folder = saved(tmp_path / "m", markets=[RAIN], bets=bets[:upto])
            assert import_into(ledger, "manifold", folder, trades=True).refused == []
        trades = [each for each in told(ledger) if isinstance(each, events.TradeRecorded)]
    assert [(each.participant, each.shares) for each in trades] == [("ada.l", 10_000_000), ("ada.l", -5_000_000)]


def test_trades_that_a_newer_copy_does_not_have_are_named_and_stay(tmp_path: Path) -> None:
    """Money moved. A file that cannot be read may have them; without --trades, nothing is said of them."""
    bets = [traded(2, "b1", "ada", 10, 4), traded(3, "b2", "bo", 5, 2)]
    with ticking() as ledger:
        import_into(ledger, "manifold", saved(tmp_path / "m", markets=[RAIN], bets=bets), trades=True)
        newer = saved(tmp_path / "m", markets=[RAIN], bets=bets[:1])
        for dry in (newer, newer):
            found = import_into(ledger, "manifold", dry, trades=True, take_back=True)
            assert (found.refused, found.left_out) == ([], {TRADE_MISSED: 1})
        assert len(table(ledger, "positions", "participant")) == 2
        (newer / "more.json").write_text("[{", encoding="utf-8")
        assert TRADE_UNREAD in import_into(ledger, "manifold", newer, trades=True).left_out


def test_a_trade_with_another_amount_is_refused_in_words_that_say_what_can_be_done(tmp_path: Path) -> None:
    """The first copy's stays; so does the number of trades."""
    with ticking() as ledger:
        for amount in (4, 5):
            folder = saved(tmp_path / "m", markets=[RAIN], bets=[traded(2, "b1", "ada", 10, amount)])
            found = import_into(ledger, "manifold", folder, trades=True)
        assert [line.partition(": ")[2] for line in found.refused] == [f"command_id_reused id: {TRADE_CHANGED}"]
        assert table(ledger, "positions", "participant", "cost") == [("ada", "4.00")]


@pytest.mark.parametrize(("profit", "code"), [(6, 0), (7, 1)])
def test_published_results_that_do_not_come_out_are_an_error_if_asked(profit: int, code: int, tmp_path: Path) -> None:
    """With --strict; ten shares for 4 are paid 10."""
    market = [YES]
    folder = saved(
        tmp_path / "m", markets=market, bets=[traded(2, "b1", "ada", 10, 4)], positions=[position("ada", profit, 10, 4)]
    )
    for number, (options, expected) in enumerate(
        [(["--trades"], 0), (["--trades", "--strict"], code), (["--strict"], 2)]
    ):
        found = run("import-from", "manifold", str(tmp_path / f"{number}.db"), str(folder), *options)
        assert found.exit_code == expected, found.output
        assert (f"profit {profit}.00 is published, 6.00 is here" in found.stderr) == (expected < 2 and profit == 7)
