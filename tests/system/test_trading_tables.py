"""The tables of trading are what the plain model of the trading book reads from the same history."""

from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import pytest

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support import trading_readings as readings
from tests.support.effort import times
from tests.support.given import bet, day, decision, resolution, sale, trading_floor
from tests.support.logs import recorded
from tests.support.trading_model import Book
from tests.support.trading_seasons import Season

SEEDS = (*range(8), 36, 47, 51)
MONEY, POINTS = 10**6, 10**9
NAMES: tuple[str, ...] = (
    "total",
    "profit",
    "return_percent",
    "n",
    "brier",
    "skill_against_even_odds",
    "skill_against_market",
)
NAMES += ("fees", "interpretation", "win_rate", "turnover", "drawdown", "sharpe_ratio", "decided", "defaulted", "state")
Row = dict[str, Any]


@cache
def played(seed: int) -> tuple[Book, Projections]:
    """A history: the model of it, and the projections of what the engine recorded."""
    season = Season(seed, fees=seed % 2 == 1, sides=seed % 4 == 3, later=seed >= 24)
    return season.book, Projections(facts([recorded(season.commands(), refused=True)]))


def money(number: Fraction | int) -> str:
    """As tables print money that is given in 1e-6."""
    exact = Fraction(number)
    return format_fixed(half_even(exact.numerator, exact.denominator), MONEY, least=2)


def points(number: Fraction | None) -> str | None:
    """As tables print points and shares."""
    if number is None:
        return None
    return format_fixed(half_even(number.numerator * POINTS, number.denominator), POINTS, least=9)


def accounts(book: Book) -> list[tuple[str, str]]:
    """The accounts, in order: contest and participant."""
    return sorted((e["contest"], e["participant"]) for e in book.log if e["type"] == "cash_granted.v1")


def test_the_histories_have_everything_in_them() -> None:
    """The seasons have accounts and contests in every state and positions of every status."""
    states = {row["state"] for seed in SEEDS for row in played(seed)[1].table("accounts").rows()}
    statuses = {row["status"] for seed in SEEDS for row in played(seed)[1].table("positions").rows()}
    seals = {row["state"] for seed in SEEDS for row in played(seed)[1].table("contests").rows()}
    assert states >= {"active", "debt"}
    assert statuses >= {"open", "pending", "closed", "settled", "refunded", "voided"}
    assert seals >= {"open", "sealed"}


@pytest.mark.parametrize("seed", SEEDS)
def test_positions(seed: int) -> None:
    """Every position that was ever opened has its shares, cost and gain."""
    book, projections = played(seed)
    rows = [
        (contest, who, each.number, each.question, each.outcome, each.status, money(each.realised))
        for contest, who in accounts(book)
        for each in book.account(contest, who).positions
    ]
    names = ("contest", "participant", "position", "question", "outcome", "status", "realised")
    open_ = {"pending": "open"}  # of which the model does not speak
    ours = [tuple(open_.get(row[name], row[name]) for name in names) for row in projections.table("positions").rows()]
    assert ours == rows


@pytest.mark.parametrize("seed", SEEDS)
def test_accounts(seed: int) -> None:
    """Cash, deposits, value and profit are those at the clock of the log."""
    book, projections = played(seed)
    for row in projections.table("accounts").rows():
        own = book.account(row["contest"], row["participant"])
        seen = readings.snapshot(book, row["contest"], row["participant"], readings.clock(book), len(book.log))
        assert row["cash"] == money(own.cash)
        assert row["net_deposits"] == money(own.net_deposits)
        assert (row["value"], row["total"]) == (money(seen.value), money(seen.total))
        assert (row["realised"], row["profit"]) == (money(seen.realised), money(seen.profit))


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_of_purchases(seed: int) -> None:
    """Each purchase of a resolved question has a row; in a sealed contest, as of the seal."""
    book, projections = played(seed)
    expected = [
        (
            contest,
            who,
            row.number,
            *map(points, (row.confidence, row.f_yes, row.o_yes, row.side_won, row.brier, row.market)),
        )
        for contest, who in accounts(book)
        for row in readings.brier_rows(book, contest, who)
    ]
    names = (
        "contest",
        "participant",
        "log_position",
        "confidence",
        "f_yes",
        "o_yes",
        "side_won",
        "brier",
        "market_brier",
    )
    assert [tuple(row[name] for name in names) for row in projections.table("bet_brier").rows()] == expected


PAYABLE = 10**4  # 0.01 of the currency, in 1e-6: ranks by profit go by whole ones


@pytest.mark.parametrize("seed", SEEDS)
def test_boards(seed: int) -> None:
    """Every column is compared, with the ranks by profit and by Brier score."""
    book, projections = played(seed)
    boards: dict[str, list[Row]] = {}
    for row in projections.table("arena_leaderboard").rows():
        boards.setdefault(row["contest"], []).append(row)
    for contest, rows in boards.items():
        lines = {row["participant"]: readings.figures(book, contest, row["participant"]) for row in rows}
        profits = [Fraction(round(lines[row["participant"]]["profit"] / PAYABLE)) for row in rows]
        assert [row["rank"] for row in rows] == readings.ranks(profits)
        scores = [-line["brier"] for line in lines.values() if line["brier"] is not None]
        ranked = [row["brier_rank"] for row in rows if row["brier_rank"] is not None]
        assert ranked == readings.ranks(scores)
        for row in rows:
            line = lines[row["participant"]]
            printed = {name: points(line[name]) if isinstance(line[name], Fraction) else line[name] for name in NAMES}
            printed |= {name: money(line[name]) for name in ("total", "profit", "fees")}
            assert {name: row[name] for name in NAMES} == printed


@pytest.mark.parametrize("seed", SEEDS)
def test_the_journal(seed: int) -> None:
    """Every posting is equal, to the last 1e-15."""
    book, projections = played(seed)
    expected = [
        (number, *posting[:3], posting[3])
        for number in range(1, len(book.log) + 1)
        for posting in readings.postings(book, number)
        if posting[3]
    ]
    ours = [
        (row["log_position"], row["account"], row["contest"], row["participant"], int(Fraction(row["amount"]) * 10**15))
        for row in projections.table("journal").rows()
    ]
    assert ours == sorted(expected)


def decisions_of(who: str, chance: Random) -> list[AnyCommand]:
    """Ten decisions of one participant, in order: bets of some size on either market, sales of part of a position."""
    made: list[AnyCommand] = []
    for period in range(1, 11):
        side, question = chance.choice([("YES", "rain"), ("NO", "rain"), ("red", "colour"), ("green", "colour")])
        bets = [bet(chance.randrange(50, 900), side, question) for _ in range(chance.randrange(1, 4))]
        sells = [sale(chance.randrange(1, 101), chance.randrange(1, 4))]
        legs = bets if period == 1 or chance.random() < 0.6 else sells
        made.append(decision(*legs, participant=who, period=period, id=f"{who}{period}"))
    return made


@pytest.mark.parametrize("seed", range(times(10)))
def test_any_interleaving_of_independent_participants_gives_the_same_books(seed: int) -> None:
    """Each decides on what is its own: only log positions depend on who came first."""
    rules = RuleSet(name="own", trading=Trading(period_days=0))
    floor = trading_floor("ada", "bob", "cy", rules=rules)
    queues = [decisions_of(who, Random(f"{who} {seed}")) for who in ("ada", "bob", "cy")]
    one_by_one = [each for queue in queues for each in queue]
    chance, left, mixed = Random(seed), [list(queue) for queue in queues], list[AnyCommand]()
    while any(left):
        mixed.append(chance.choice([queue for queue in left if queue]).pop(0))
    end = [resolution("rain", at=day(29)), resolution("colour", outcome="red", at=day(29))]
    tables = []
    for order in (one_by_one, mixed):
        projections = oracle.projected(*floor, *order, *end)
        names = ("accounts", "positions", "arena_leaderboard", "cash", "trades", "bet_brier", "decisions", "journal")
        rows = {name: [{**row, "log_position": 0} for row in projections.table(name).rows()] for name in names}
        rows["journal"] = sorted(rows["journal"], key=str)
        tables.append(rows)
    assert tables[0] == tables[1]
    assert len(tables[0]["trades"]) > 20
