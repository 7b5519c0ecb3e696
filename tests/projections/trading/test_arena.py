"""Results of trading: profit, Brier scores of stakes, skill, win rate, turnover and ranks."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.commands import AnyCommand, read
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.projections.facts.accounts import Account, Holding
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.projections.trading import arena
from tests.support import oracle
from tests.support.given import contest, enrolment, entry, opened
from tests.system.test_stories import ARENA, expected, rows

START = "2026-03-01T00:00:00Z"
LATER = "2026-03-01T01:00:00Z"
END = "2026-03-20T00:00:00Z"
LEVELS = ("hidden", "no_rank", "no_prize")


def projected(*commands: dict[str, Any], names: str = "ada", unit: str = "0.01") -> Projections:
    """Build the tables of these commands, after a contest with questions q1 to q4 and these participants was opened."""
    opening: list[AnyCommand] = [contest(rules="arena-v1", payable_unit=unit, at=START)]
    opening += [enrolment(participant=name, family=name[0], at=START) for name in names.split()]
    for name in ("q1", "q2", "q3", "q4"):
        opening += [opened(name, at=START, opens_at=START, closes_at=END), entry(question=name, at=START)]
    lines = [msgspec.json.encode({"id": "c", "at": START, **command}) for command in commands]
    return oracle.projected(*opening, *map(read, lines))


def quote(question: str, yes: float, at: str = START) -> dict[str, Any]:
    """A quote of the price of yes."""
    return {"type": "quote", "question": question, "prices": {"yes": yes}, "source": "x", "quoted_at": at, "at": at}


def bet(participant: str, *bets: tuple[str, str, float], period: int = 1) -> dict[str, Any]:
    """A decision to bet: question, side and amount of each leg."""
    legs = [{"market_id": question, "side": side, "amount": amount} for question, side, amount in bets]
    own = {"contest": "cup", "participant": participant, "period": period, "reasoning": "."}
    return {"type": "record_decision", "action": "BET", "bets": legs, **own}


def resolved(question: str, outcome: str) -> dict[str, Any]:
    """A resolution at the end."""
    return {"type": "resolve_question", "question": question, "outcome": outcome, "at": END}


def board(projections: Projections) -> dict[str, dict[str, Any]]:
    """Return the leaderboard by participant."""
    return {row["participant"]: row for row in projections.table("arena_leaderboard").rows()}


def test_portfolio_return_of_the_methodology() -> None:
    """Cash of 7,500 and positions worth 3,200 after a start with 10,000: 10,700, +700, +7.0%.

    Source: Forecaster Arena, Scoring Methodology, "Portfolio Calculations".
    """
    row = board(projected(quote("q1", 0.5), bet("ada", ("q1", "YES", 2500)), quote("q1", 0.64, LATER)))["ada"]
    assert (row["total"], row["profit"], row["return_percent"]) == ("10700.00", "700.00", "7.000000000")
    assert row["turnover"] == "0.250000000"


@pytest.mark.parametrize("row", expected(ARENA, "published_confidences"), ids=lambda row: row["amount"])
def test_confidences_of_the_methodology(row: dict[str, str]) -> None:
    """Source: Forecaster Arena, Scoring Methodology, "Deriving Confidence from Bet Size"."""
    [trade] = [
        trade
        for trade in rows(ARENA, "trades", contest=row["contest"], participant=row["participant"])
        if str(trade["log_position"]) == row["log_position"]
    ]
    assert Decimal(trade["amount"]) == Decimal(row["amount"])
    assert Decimal(trade["cap"]) == Decimal(row["cap"])
    assert 100 * Decimal(trade["confidence"]) == Decimal(row["confidence"].strip("%"))


@pytest.mark.parametrize("row", expected(ARENA, "published_bet_brier"), ids=lambda row: row["outcome"] + row["brier"])
def test_brier_scores_of_the_methodology(row: dict[str, str]) -> None:
    """Source: Forecaster Arena, Scoring Methodology, "Handling YES vs NO Bets"."""
    [stake] = [
        stake
        for stake in rows(ARENA, "bet_brier", contest=row["contest"], participant=row["participant"])
        if str(stake["log_position"]) == row["log_position"]
    ]
    assert {name: Decimal(stake[name]) for name in ("confidence", "f_yes", "brier")} == {
        name: Decimal(row[name]) for name in ("confidence", "f_yes", "brier")
    }
    assert stake["outcome"] == row["outcome"]


@pytest.mark.parametrize("row", expected(ARENA, "published_positions"), ids=lambda row: row["shares"])
def test_shares_and_profit_of_the_methodology(row: dict[str, str]) -> None:
    """500 on yes at 0.40 buys 1,250 shares, a profit of 750. Source: Forecaster Arena, Scoring Methodology, "Settlement
    (Market Resolution)".
    """
    [position] = [
        position
        for position in rows(ARENA, "positions", contest=row["contest"], participant=row["participant"])
        if str(position["position"]) == row["position"]
    ]
    numbers = {name: Decimal(position[name]) for name in ("shares", "cost", "realised")}
    assert numbers == {name: Decimal(row[name]) for name in ("shares", "cost", "realised")}


def test_skill_of_the_methodology_and_without_a_reference() -> None:
    """0.15 against 0.25 is 0.40; against a reference of 0, or without a score, there is no skill.

    Source: Forecaster Arena, Scoring Methodology, "Brier Skill Score".
    """
    assert arena.skill(Fraction("0.15"), Fraction("0.25")) == Fraction("0.40")
    assert arena.skill(Fraction(0), Fraction(0)) is None
    assert arena.skill(None, Fraction(1)) is None


def test_skill_against_the_market_is_a_ratio_of_means() -> None:
    """Two bets on yes at 0.5 and 0.9, of all cash (confidence 1) and of half of what is left (0.5); both win.

    Brier 0 and 0.25, mean 0.125; the market's 0.25 and 0.01, mean 0.13; 1 - 0.125 / 0.13 = 0.038461538.
    The mean of ratios would be 1 - (0 + 25) / 2.
    """
    made = (quote("q1", 0.5), quote("q2", 0.9), bet("ada", ("q1", "yes", 2500), ("q2", "yes", 937.5)))
    row = board(projected(*made, resolved("q1", "yes"), resolved("q2", "yes")))["ada"]
    assert (row["n"], row["brier"], row["skill_against_market"]) == (2, "0.125000000", "0.038461538")
    assert (row["skill_against_even_odds"], row["win_rate"]) == ("0.500000000", "1.000000000")


def test_there_is_no_skill_against_a_market_that_was_certain() -> None:
    """A share bought at 1 pays 1: the reference is 0."""
    row = board(projected(quote("q1", 1), bet("ada", ("q1", "yes", 500)), resolved("q1", "yes")))["ada"]
    assert (row["brier"], row["skill_against_market"]) == ("0.640000000", None)


def test_an_account_without_resolved_purchases_has_no_score() -> None:
    """A mean of nothing is empty, and so is the rank by it."""
    row = board(projected(quote("q1", 0.5), bet("ada", ("q1", "yes", 500))))["ada"]
    names = ("n", "brier", "brier_rank", "skill_against_even_odds", "skill_against_market", "win_rate")
    assert [row[name] for name in names] == [0, None, None, None, None, None]


def test_a_payout_of_one_half_is_not_a_win() -> None:
    """The Brier score is (0.2 - 0.5)² = 0.09."""
    halves = {"type": "resolve_question", "question": "q1", "payouts": {"yes": 0.5, "no": 0.5}, "at": END}
    row = board(projected(quote("q1", 0.5), bet("ada", ("q1", "yes", 500)), halves))["ada"]
    assert (row["n"], row["brier"], row["win_rate"]) == (1, "0.090000000", "0.000000000")


def test_equal_profits_share_a_rank() -> None:
    """Ranks are 1, 2, 2, 4: the same exact profit gives the same rank; ids order equal rows."""
    sides = {"d": "yes", "c": "no", "b": "no", "a": "no"}
    commands = [quote("q1", 0.5), *(bet(participant, ("q1", side, 100)) for participant, side in sides.items())]
    leaderboard = board(projected(*commands, bet("e", ("q1", "no", 50)), resolved("q1", "yes"), names="a b c d e"))
    assert [(row["rank"], participant) for participant, row in leaderboard.items()] == [
        (1, "d"),
        (2, "e"),
        (3, "a"),
        (3, "b"),
        (3, "c"),
    ]
    assert [row["brier_rank"] for row in leaderboard.values()] == [5, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("unit", "ranks"),
    [("0.01", [(1, "a"), (1, "b"), (1, "d"), (4, "c")]), ("0.000001", [(1, "b"), (1, "d"), (3, "a"), (4, "c")])],
)
def test_less_than_a_payable_unit_decides_no_rank(unit: str, ranks: list[tuple[int, str]]) -> None:
    """What rounding shares leaves over gives nobody a better rank, where no such amount can be paid.

    At 0.97, a's 500 buy 515.463917 shares, worth 499.99999949; at 0.245, d's buy 2,040.816326, worth 499.99999987. So
    a loses a millionth, rounded, and d nothing; b has not traded, and c lost 100.
    """
    commands = [quote("q1", 0.97), quote("q2", 0.245), quote("q3", 0.5)]
    bets = [bet("a", ("q1", "yes", 500)), bet("d", ("q2", "yes", 500)), bet("c", ("q3", "yes", 100))]
    tables = projected(*commands, *bets, resolved("q3", "no"), names="a b c d", unit=unit)
    assert [(row["rank"], participant) for participant, row in board(tables).items()] == ranks
    for table in ("arena_overall", "arena_series"):
        found = [row for row in tables.table(table).rows() if row["by"] == "family"]
        assert sorted((row["rank"], row["name"]) for row in found) == ranks


def test_an_excluded_participant_is_hidden_or_has_no_rank() -> None:
    """The best is hidden, the next has no rank: the third is first by profit and by Brier score."""
    exclude = {"type": "exclude_participant", "contest": "cup", "reason": "staff"}
    commands = [
        quote("q1", 0.5),
        *(bet(participant, ("q1", "yes", 300 - 50 * i)) for i, participant in enumerate("abcd")),
    ]
    levels = [
        exclude | {"participant": participant, "level": level} for participant, level in zip("abc", LEVELS, strict=True)
    ]
    leaderboard = board(projected(*commands, resolved("q1", "yes"), *levels, names="a b c d"))
    rows = [(participant, row["rank"], row["brier_rank"], row["excluded"]) for participant, row in leaderboard.items()]
    assert rows == [("b", None, None, "no_rank"), ("c", 1, 1, "no_prize"), ("d", 2, 2, "")]


def test_means_over_contests() -> None:
    """A family has a score of 0.64 in one contest, and 0.04 and 0.09 in another.

    Pooled 0.77 / 3 = 0.256667; mean of means (0.64 + 0.065) / 2 = 0.3525; weighted by stakes of 500, 2,000 and 1,400
    (320 + 80 + 126) / 3,900 = 0.134872.
    """
    projections = projected(
        {"type": "open_contest", "contest": "two", "rules": "arena-v1", "series": "other"},
        {"type": "add_question", "contest": "two", "question": "q1"},
        {"type": "add_question", "contest": "two", "question": "q2"},
        {"type": "enrol_participant", "contest": "two", "participant": "ann", "family": "a"},
        quote("q1", 0.5),
        quote("q2", 0.5),
        bet("ada", ("q1", "yes", 500)),
        bet("ann", ("q1", "yes", 2000), ("q2", "no", 1400)) | {"contest": "two"},
        resolved("q1", "yes"),
        resolved("q2", "no"),
    )
    [row] = [row for row in projections.table("arena_overall").rows() if row["by"] == "family"]
    assert (row["contests"], row["participants"], row["n"]) == (2, 2, 3)
    assert (row["pooled_brier"], row["mean_of_contest_means"]) == ("0.256666667", "0.352500000")
    assert row["stake_weighted_brier"] == "0.134871795"
    # 500 + 2,000 + 1,400 won at even prices; 20,000 deposited
    assert (row["profit"], row["return_percent"], row["win_rate"]) == ("3900.00", "19.500000000", "1.000000000")


@pytest.mark.parametrize(
    ("cash", "is_open", "state"),
    [(200, False, "active"), (199, False, "ruined"), (199, True, "active"), (-1, False, "debt"), (-1, True, "debt")],
)
def test_an_account_is_ruined_if_no_bet_is_possible_and_no_position_is_open(
    cash: int, is_open: bool, state: str
) -> None:
    """A least bet of 50 needs 200 of cash."""
    trading = PRESETS["arena-v1"].trading
    assert trading is not None
    account = Account(enrolled=None, cash=cash * 10**6)  # type: ignore[arg-type]
    account.holdings[1] = Holding(0, 0, 0, status="open" if is_open else "settled")
    assert arena.account_state(trading, account) == state


def test_implied_probability_of_yes_of_both_sides() -> None:
    """A bet on no with confidence 0.8 implies 0.2 for yes; the scores of the side and of yes are equal."""
    for confidence in map(Fraction, ("0", "0.3", "0.8", "1")):
        for won in (0, PROBABILITY):
            paid = Fraction(won, PROBABILITY)
            no = (arena.yes_probability(confidence, 1) - arena.yes_probability(paid, 1)) ** 2
            assert no == (confidence - paid) ** 2


def test_an_account_without_its_starting_cash_is_on_the_leaderboard() -> None:
    """A log can be read up to any event, also between an enrolment and the grant that follows it."""
    recorded = oracle.history(contest(rules="arena-v1"), enrolment())
    [row] = Projections(facts([recorded[:2]])).table("arena_leaderboard").rows()
    assert (row["participant"], row["total"], row["drawdown"], row["state"]) == ("ada", "0.00", "0.000000000", "ruined")
