"""The amounts of a new contest that make no sense beside each other.

A ledger may already have such a contest, from before these rules. It stays as it is: only what is new is checked, and
only when it is recorded, so that an audit decides an old command as it was decided.
"""

from collections.abc import Iterable

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.events import AnyEvent, ContestOpened
from forecast_ledger.ledger.model.mismatch import money_text
from forecast_ledger.ledger.model.trading_rules import Trading, bet_cap


def check_new_contests(events: Iterable[AnyEvent]) -> None:
    """Refuses, first that applies: rules_not_consistent (no bet is possible), pool_not_payable (no prize is)."""
    for event in events:
        if isinstance(event, ContestOpened):
            if event.rules.trading is not None:
                _check_bets(event.rules.trading, event.rules.name)
            _check_prizes(event.pool, event.rules.least_prize_micros)


def _check_bets(trading: Trading, name: str) -> None:
    """Without deposits or recorded trades, the largest bet of all is the first one of somebody who has lost nothing."""
    most = bet_cap(trading, trading.starting_cash_micros)
    if most < trading.least_bet_micros and not trading.recapitalisation and not trading.recorded_trades:
        cash, least = money_text(trading.starting_cash_micros), money_text(trading.least_bet_micros)
        detail = (
            f"no bet is possible: with starting_cash {cash}, the largest is {money_text(most)}; least_bet is {least}"
        )
        remedy = "write a smaller least_bet, more starting_cash, a smaller cap_divisor, or recapitalisation true"
        raise Refused("rules_not_consistent", "rules", name, detail, remedy=remedy)


def _check_prizes(pool: int, least_prize: int) -> None:
    """A contest without a pool pays nothing, whatever the least prize of its rule set is."""
    if 0 < pool < least_prize:
        detail = f"no prize can be paid: the pool is {money_text(pool)}, and least_prize is {money_text(least_prize)}"
        remedy = "give a larger pool or none, or a rule set with a smaller least_prize"
        raise Refused("pool_not_payable", "pool", money_text(pool), detail, remedy=remedy)
