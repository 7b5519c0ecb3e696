"""What every decider refuses: each rule that one command can break, and the order of precedence."""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding import decider
from forecast_ledger.ledger.model.commands import AnyCommand
from tests.support.given import given, promised

EVERY = {each.__name__ for each in decider._DECIDE.values()}
# The tests beside this one whose tables REFUSED have what the deciders named in FUNCTIONS refuse.
_BESIDE = [path.stem for path in sorted(Path(__file__).parent.glob("test_*.py")) if path.stem != "test_refusals"]
TABLES = [table for stem in _BESIDE if hasattr(table := import_module(f"{__package__}.{stem}"), "FUNCTIONS")]
NAMES: list[tuple[ModuleType, ModuleType, str]] = [
    (room, table, name)
    for table in TABLES
    for name in table.FUNCTIONS
    for room in decider._ROOMS
    if getattr(getattr(room, name, None), "__module__", "") == room.__name__
]
DECIDERS: list[Any] = [getattr(room, name) for room, _, name in NAMES]
REFUSED = [  # code, field, history and command; a table of several deciders has the name of each first
    pytest.param(*row[-4:], id=f"{name}-{row[-4]}-{number}")
    for _, table, name in NAMES
    for number, row in enumerate(table.REFUSED)
    if row[0] == name or len(row) == 4
]
# Two faults at once: the two codes, the one to report first, the history and the command.
ORDER = [(table, *row) for table in TABLES for row in getattr(table, "ORDER", ())]
# Refusals of a ledger without prizes, tested in test_contests, and of a forged log, tested in test_pay.
ELSEWHERE = {"pay_prizes": {"prizes_unknown", "prizes_differ"}}


def test_what_every_decider_refuses_is_in_a_table() -> None:
    """A requirement of a version is refused for nothing but how it is written."""
    assert EVERY - {name for *_, name in NAMES} == {"require_version"}, (
        "its test in tests/ledger/deciding needs FUNCTIONS, the names of its deciders, and REFUSED, a row for each code"
    )


@pytest.mark.parametrize(("code", "field", "history", "command"), REFUSED)
def test_a_command_that_breaks_one_rule_is_refused_for_it(
    code: str, field: str, history: list[AnyCommand], command: AnyCommand
) -> None:
    """The refusal has the code and field of that rule, and the log does not change."""
    given(*history).when(command).refuses(code, field)


@pytest.mark.parametrize(("room", "table", "name"), NAMES, ids=[name for *_, name in NAMES])
def test_every_refusal_a_docstring_promises_is_tested_above_and_no_other(
    room: ModuleType, table: ModuleType, name: str
) -> None:
    """A docstring lists exactly the refusals that can happen."""
    tested = {row[-4] for row in table.REFUSED if row[0] == name or len(row) == 4} | ELSEWHERE.get(name, set())
    promises = set(promised(getattr(room, name)))
    assert tested == promises, f"after 'Refuses, first that applies:', the docstring of {name} lists {sorted(promises)}"


@pytest.mark.parametrize(("table", "first", "second", "history", "command"), ORDER)
def test_the_earlier_of_two_broken_rules_is_reported(
    table: ModuleType, first: str, second: str, history: list[AnyCommand], command: AnyCommand
) -> None:
    """The rules apply in the order of a docstring's list."""
    orders = [promised(getattr(room, name)) for room, other, name in NAMES if other is table]
    assert any(first in order and second in order[order.index(first) + 1 :] for order in orders)
    outcome = given(*history).when(command).outcome
    assert isinstance(outcome, Refused)
    assert outcome.code == first
