"""Tests of the completion of a trading contest with hidden participants, in the decider and in the tables."""

from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.incremental.refresh import IncrementalTables
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.given import (
    bet,
    day,
    decision,
    enrolment,
    exclusion,
    finalization,
    given,
    renaming,
    resolution,
    trading_floor,
)


def floor(*participants: str, completed_by: Any = "shown") -> list[AnyCommand]:
    """Return a cohort under a rule of completion."""
    rules = RuleSet(name="own", kernel="brier", period="covered", total="mean", least_probability_ppm=0,
                    trading=Trading(completed_by=completed_by))  # fmt: skip
    return trading_floor(*participants, rules=rules)


def hidden(participant: str, level: Any = "hidden", at: str = day(4)) -> AnyCommand:
    """Return an exclusion from the cohort."""
    return exclusion("week", participant, level=level, at=at)


# Commands after the enrolment of ada, who holds by HOLD, and bob; whether the contest is then complete by `shown`.
CASES: dict[str, tuple[list[AnyCommand], bool]] = {
    "bob has not decided": ([decision()], False),
    "bob is hidden without a decision": ([decision(), hidden("bob")], True),
    "bob is hidden first": ([hidden("bob"), decision()], True),
    "bob is not ranked": ([decision(), hidden("bob", "no_rank")], False),
    "bob is shown again": ([decision(), hidden("bob"), hidden("bob", "no_prize")], False),
    "bob is hidden twice": ([decision(), hidden("bob"), hidden("bob")], True),
    "bob holds a position": ([decision(), decision(bet(), participant="bob")], False),
    "bob holds a position and is hidden": ([decision(), decision(bet(), participant="bob"), hidden("bob")], True),
    "bob is hidden and buys": ([hidden("bob"), decision(bet(), participant="bob"), decision()], True),
    "bob is hidden, buys, and is shown again": (
        [hidden("bob"), decision(bet(), participant="bob"), decision(), hidden("bob", "no_rank")],
        False,
    ),
    "bob's position is settled while he is hidden": (
        [
            hidden("bob"),
            decision(bet(), participant="bob"),
            decision(),
            resolution(at=day(8)),
            hidden("bob", "no_rank"),
        ],
        True,
    ),
    "bob has another id and decides": ([decision(), renaming("bob", "zoe"), decision(participant="zoe")], True),
    "bob buys, and his position is settled under another id": (
        [decision(), decision(bet(), participant="bob"), renaming("bob", "zoe"), resolution(at=day(8))],
        True,
    ),
    "bob has the id of somebody who is hidden": ([decision(), hidden("zoe"), renaming("bob", "zoe")], True),
    "bob is hidden, and has an id that was shown later": (
        [decision(), hidden("bob"), hidden("zoe", "no_prize"), renaming("bob", "zoe")],
        False,
    ),
    "somebody who is hidden turns out to be bob": ([decision(), hidden("yan"), renaming("yan", "bob")], True),
    "bob was shown later than somebody who turns out to be bob was hidden": (
        [decision(), hidden("yan"), hidden("bob", "no_rank"), renaming("yan", "bob")],
        False,
    ),
    "bob is hidden, has another id, and has his own again, where he is shown": (
        [decision(), hidden("bob"), renaming("bob", "zoe"), hidden("zoe", "no_rank"), renaming("zoe", "bob")],
        False,
    ),
    "everybody is hidden": ([hidden("bob"), hidden("ada")], False),
    "a stranger is hidden": ([decision(), hidden("zoe")], False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_contest_waits_for_those_who_are_shown(case: str) -> None:
    """The decider accepts the finalization exactly if the table `contests` says that the contest is complete."""
    commands, complete = CASES[case]
    story = [*floor("ada", "bob"), *commands]
    [row] = oracle.projected(*story).table("contests").rows()
    assert row["state"] == ("complete" if complete else "open")
    outcome = given(*story).when(finalization("week")).outcome
    assert (outcome.code if isinstance(outcome, Refused) else "") == ("" if complete else "contest_not_complete")


@pytest.mark.parametrize("case", CASES)
def test_by_default_a_contest_waits_for_everybody(case: str) -> None:
    """Under the rule `all`, which earlier logs have, exclusions change nothing."""
    commands = [
        command
        for command in CASES[case][0]
        if command.__struct_config__.tag != "exclude_participant" and getattr(command, "participant", "") != "yan"
    ]
    with_exclusions = [*floor("ada", "bob", completed_by="all"), *CASES[case][0]]
    without = [*floor("ada", "bob", completed_by="all"), *commands]
    states = [
        [row["state"] for row in oracle.projected(*story).table("contests").rows()]
        for story in (without, with_exclusions)
    ]
    assert states[0] == states[1]


def test_a_participant_who_is_hidden_before_it_is_enrolled_is_not_waited_for() -> None:
    """An exclusion may come before the enrolment."""
    story = [*floor("ada"), hidden("bob"), enrolment("week", "bob", at=day(4)), decision()]
    given(*story).when(decision(participant="bob")).refuses("contest_complete", "contest")


@pytest.mark.parametrize("case", CASES)
def test_a_refresh_gives_the_boards_of_a_rebuild(case: str) -> None:
    """After every event of the case, the boards that a refresh yields are those of all events so far."""
    log, start = oracle.history(*floor("ada", "bob"), *CASES[case][0]), len(oracle.history(*floor("ada", "bob")))
    refreshed, boards = IncrementalTables(), ("arena_leaderboard", "arena_series", "contests")
    kept: dict[str, list[dict[str, Any]]] = {name: [] for name in boards}
    for end, recorded in enumerate(log, 1):
        refreshed.add([recorded])
        kept |= {
            update.table.name: [*update.table.rows()] for update in refreshed.updates() if update.table.name in boards
        }
        refreshed.forget()
        assert end < start or kept == {
            name: [*Projections(oracle.facts_in(log[:end])).table(name).rows()] for name in boards
        }
