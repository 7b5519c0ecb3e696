"""Amounts of a new contest that make no sense beside each other are refused; a ledger that has them goes on."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger import Ledger, Refused, verify
from forecast_ledger.ledger.batching import batch
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from tests.support import oracle
from tests.support.given import cohort, contest, entry, finalization, forecast, opened, payment, resolution

MONEY = 10**6
LEAST_50: dict[str, Any] = {"rules": "peer-2025-06"}  # least_prize 50
RELATIVE_50 = structs.replace(PRESETS["relative-2022-04"], least_prize_micros=50 * MONEY)


def outcome(command: AnyCommand) -> str:
    """The code and the text of a refusal in a new ledger, or nothing."""
    with Ledger.open(":memory:") as ledger:
        [found] = ledger.handle_many(oracle.with_ids([command]))
    return str(found) if isinstance(found, Refused) else ""


def traded(**trading: Any) -> AnyCommand:
    """A contest with these trading rules; the defaults are 10,000 in cash, a quarter a bet, 50 at least."""
    return cohort(rules=RuleSet(name="own", trading=Trading(**trading)))


@pytest.mark.parametrize("pool", ["0.01", "49.99"])
def test_a_pool_below_the_least_prize_is_refused(pool: str) -> None:
    """No prize could be paid; the message names both amounts and the way out."""
    refused = outcome(contest(pool=pool, **LEAST_50))
    assert refused.startswith("pool_not_payable: pool")
    assert f"the pool is {pool}, and least_prize is 50.00" in refused
    assert "a smaller least_prize" in refused


@pytest.mark.parametrize("pool", [None, 0, 50, 1_000])
def test_a_pool_that_can_be_paid_and_none_at_all_are_accepted(pool: int | None) -> None:
    """Without a pool there is nothing to pay, whatever the least prize of the preset is."""
    assert not outcome(contest(pool=pool, **LEAST_50))


def test_rules_under_which_nobody_can_ever_bet_are_refused() -> None:
    """A quarter of 199.99 is 49.9975, less than the least bet; the message names the three amounts."""
    refused = outcome(traded(starting_cash_micros=199_990_000))
    assert refused.startswith("rules_not_consistent: rules")
    assert "with starting_cash 199.99, the largest is 49.9975; least_bet is 50.00" in refused


@pytest.mark.parametrize(
    "trading",
    [
        {"starting_cash_micros": 200 * MONEY},
        {"starting_cash_micros": 50 * MONEY, "cap_divisor": 1},
        {"starting_cash_micros": 0, "recapitalisation": True},  # deposits bring the cash
        {"starting_cash_micros": 4, "least_bet_micros": 1},
    ],
)
def test_rules_under_which_a_bet_is_possible_are_accepted(trading: dict[str, Any]) -> None:
    """The largest bet may be the least one."""
    assert not outcome(traded(**trading))


def test_an_old_ledger_with_such_amounts_verifies_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command is decided again as it was decided, a retry is a retry, and only a new contest is refused."""
    path, sent = tmp_path / "old.db", contest(pool=10, rules=RELATIVE_50)
    with monkeypatch.context() as before, Ledger.open(path) as ledger:
        before.setattr(batch, "check_new_contests", lambda _: None)
        ledger.handle(sent, "cup")
    with Ledger.open(path) as ledger:
        assert ledger.handle(sent, "cup").duplicate
        told: list[AnyCommand] = [opened(), entry(), forecast(), resolution(), finalization()]
        for number, command in enumerate(told):
            ledger.handle(command, f"c{number}")
        with pytest.raises(Refused, match="pool_not_payable"):
            ledger.handle(contest("cap", pool=10, rules=RELATIVE_50), "cap")
        with pytest.raises(Refused, match="nobody_wins"):
            ledger.handle(payment(), "pay")
    assert verify(path).position == 6
