"""Tables of money, compared with the journal that they add up."""

from fractions import Fraction
from pathlib import Path

import pytest

from forecast_ledger.ledger.model.commands import read
from forecast_ledger.projections.facts.accounts import postings
from forecast_ledger.projections.tables import accounts
from forecast_ledger.replay.cli.main import FINDINGS, FINE
from tests.replay.cli.test_main import run
from tests.support import oracle
from tests.support.paths import DATA


@pytest.mark.parametrize("story", ["arena-week", "exchange-fees", "metaculus-2022"])
def test_a_trial_balance_adds_up_the_journal(story: str) -> None:
    """By contest and account, with what was added and taken apart; the balances of each contest add up to 0."""
    projections = oracle.projected(*map(read, (DATA / story / "commands.jsonl").read_bytes().splitlines()))
    expected: dict[tuple[str, str], list[Fraction]] = {}
    for row in projections.table("journal").rows():
        expected.setdefault((row["contest"], row["account"]), []).append(Fraction(row["amount"]))
    rows = [*projections.table("trial_balance").rows()]
    assert [(row["contest"], row["account"]) for row in rows] == sorted(expected)
    totals: dict[str, Fraction] = {}
    for row in rows:
        amounts = expected[row["contest"], row["account"]]
        assert row["postings"] == len(amounts)
        assert Fraction(row["added"]) == sum(amount for amount in amounts if amount > 0)
        assert Fraction(row["taken"]) == -sum(amount for amount in amounts if amount < 0)
        assert Fraction(row["balance"]) == sum(amounts)
        totals[row["contest"]] = totals.get(row["contest"], Fraction(0)) + Fraction(row["balance"])
    assert set(totals.values()) == {Fraction(0)}


def test_the_command_prints_balances_and_says_where_they_do_not_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postings that do not add up cannot come from a log; here one is left out of the journal."""
    log = str(tmp_path / "season.db")
    assert run("append", log, str(DATA / "arena-week" / "commands.jsonl")).exit_code == FINE
    result = run("balance", log)
    assert (result.exit_code, "the balances of each of 2 contests add up to 0" in result.stderr) == (FINE, True)
    assert result.stdout.splitlines()[1].split()[:3] == ["week-1", "cash", "24"]
    monkeypatch.setattr(accounts, "postings", lambda movement: [*postings(movement)][1:])
    result = run("balance", log)
    assert (result.exit_code, "do not add up to 0 in: week-1, week-2" in result.stderr) == (FINDINGS, True)
