"""Tests of the normal form of commands: what is recorded, however it was written, and what was changed after that."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import UNSET, structs

from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.model.commands import AnyCommand, ModelCall, Prices, read
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import given, oracle
from tests.support.forging import audited, chained, in_first_form, written
from tests.support.given import day
from tests.system.test_stories import DATA

STORY = [read(line) for line in (DATA / "metaculus-2022" / "commands.jsonl").read_bytes().splitlines()]
THIRDS = {"red": 1 / 3, "green": 1 / 3, "blue": 1 / 3}
ROUNDED_THIRDS = {"red": "0.333333334", "green": "0.333333333", "blue": "0.333333333"}
# What must be recorded before, a command, and the same one with other digits of its numbers, or other ways to say it.
SAME: dict[str, tuple[list[AnyCommand], AnyCommand, AnyCommand]] = {
    "digits": ([given.opened()], given.forecast(probability="0.5"), given.forecast(probability="0.50")),
    "beyond the unit": ([given.opened()], given.forecast(probability=1 / 3), given.forecast(probability="0.333333333")),
    "thirds": (
        [given.choices()],
        given.forecast("colour", probabilities=THIRDS),
        given.forecast("colour", probabilities=ROUNDED_THIRDS),
    ),
    "cdf": (
        [given.numeric(bins=2)],
        given.forecast("depth", cdf=(0, 0.1 + 0.2, 1)),
        given.forecast("depth", cdf=(0, "0.3", "1.0")),
    ),
    "quantiles": (
        [given.quartiles()],
        given.forecast("flow", quantiles=(1, "1.99951", 3)),
        given.forecast("flow", quantiles=("1.0004", 2, "3.000")),
    ),
    "a digit far behind": (
        [given.quartiles()],
        given.forecast("flow", quantiles=("1", f"2.{'0' * 60}1", "3")),
        given.forecast("flow", quantiles=("1", "2", "3")),
    ),
    "samples in another order": (
        [given.ensemble()],
        given.forecast("depths", samples=("3", "1", "2")),
        given.forecast("depths", samples=("1", "2", "3")),
    ),
    "samples": (
        [given.ensemble()],
        given.forecast("depths", samples=(3, "1.0004", 2)),
        given.forecast("depths", samples=("1", 2, "3.000")),
    ),
    "decimals of samples": ([], given.ensemble(decimals=None), given.ensemble(decimals=6)),
    "empty": ([], given.opened(tags=(), url="", source=""), given.opened()),
    "levels": ([], given.quartiles(levels=("0.25", "0.5", "0.7500000001")), given.quartiles()),
    "pool": ([], given.contest(pool="0.0000001"), given.contest(pool=None)),
    "weight": ([given.opened(), given.contest()], given.entry(weight="0.3333333"), given.entry(weight="0.333333")),
    "payouts": (
        [given.opened()],
        given.resolution(outcome=None, payouts={"yes": "0.24999999999", "no": "0.75"}),
        given.resolution(outcome=None, payouts={"yes": "0.25", "no": "0.750"}),
    ),
    "payouts of a third": (
        [given.choices()],
        given.resolution("colour", payouts=dict.fromkeys(given.COLOURS, "0.333333333")),
        given.resolution("colour", payouts=dict.fromkeys(given.COLOURS, "2/6")),
    ),
    "fractions": (
        [given.opened()],
        given.resolution(outcome=None, payouts={"yes": "1/4", "no": "3/4"}),
        given.resolution(outcome=None, payouts={"yes": "0.25", "no": "0.75"}),
    ),
    "quotes": (
        [given.opened()],
        given.quote(prices={"yes": "0.3333333333"}),
        given.quotes(Prices(question="rain", prices={"yes": "0.333333333"})),
    ),
    "means": (
        [given.opened()],
        given.quote(prices=None, bids={"yes": "0.4"}, asks={"yes": "0.5"}),
        given.quote(prices={"yes": "0.45"}, bids={"yes": "0.4"}, asks={"yes": "0.5"}),
    ),
    "action": (given.trading_floor(), given.decision(action="hold"), given.decision(action="HOLD")),
    "cost": (
        given.trading_floor(),
        given.failed_call(call=ModelCall(cost="0.00000012")),
        given.failed_call(call=ModelCall(cost=0)),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_a_command_that_is_recorded_alike_is_the_same_command(name: str) -> None:
    """A retry with other digits of the same numbers is a duplicate, and the log verifies without a remainder."""
    before, one, other = SAME[name]
    with Ledger.open(":memory:", clock=lambda: given.NOW) as ledger:
        for outcome in ledger.handle_many(oracle.with_ids(before)):
            assert not isinstance(outcome, Refused), str(outcome)
        assert not ledger.handle(one, "sent").duplicate
        assert ledger.handle(other, "sent").duplicate
        rows = [row for page in ledger.read() for row in page]
    assert audited(rows).lossy_commands == 0


def test_a_forecast_of_outcomes_that_have_changed_since_is_still_the_same_command() -> None:
    """The normal form rests on facts of the question that never change, such as the order of its outcomes."""
    with Ledger.open(":memory:", clock=lambda: given.NOW) as ledger:
        ledger.handle(given.choices(), "open")
        sent = given.forecast("colour", probabilities=THIRDS)
        ledger.handle(sent, "sent")
        ledger.handle(given.removal("red"), "removed")
        assert ledger.handle(sent, "sent").duplicate


def test_a_retry_of_a_command_that_was_recorded_before_normal_forms_is_a_duplicate(tmp_path: Any) -> None:
    """A ledger that was begun before goes on; its first rows keep their digests, and later ones have the new form."""
    commands: list[AnyCommand] = [given.opened(), given.forecast(probability="0.1234567891")]
    path = written(tmp_path / "old.db", in_first_form(oracle.history(*commands), commands))
    with Ledger.open(path, clock=lambda: given.NOW) as ledger:
        assert [ledger.handle(command, f"c{n}").duplicate for n, command in enumerate(commands)] == [True, True]
        with pytest.raises(Refused, match="command_id_reused"):
            ledger.handle(given.forecast(probability="0.2"), "c1")
        ledger.handle(given.forecast(at=day(12)), "new")
        rows = [row for page in ledger.read() for row in page]
    audit = audited(rows)
    assert (audit.first_forms, audit.lossy_commands) == ((2, 2), 1)
    assert [row.normal for row in rows] == [UNSET, UNSET, True]


def changed(rows: Sequence[Recorded], place: int, **fields: Any) -> list[Recorded]:
    """The log with fields of an event changed, and every digest of a row made anew."""
    other = structs.replace(rows[place], event=structs.replace(rows[place].event, **fields))
    return chained([*rows[:place], other, *rows[place + 1 :]])


FORGED: dict[str, dict[str, Any]] = {
    "question_opened.v1": {"title": "another"},
    "contest_opened.v1": {"pool": 2_000_000_000},
    "forecast_made.v1": {"probabilities": (1, 999_999_999)},
    "question_resolved.v1": {"outcome": 0},
    "question_added.v1": {"weight": 2_000_000},
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_value_that_was_changed_is_a_fault_with_its_position(kind: str) -> None:
    """Each event of a published tournament in turn, though every digest of a row was made anew."""
    rows = oracle.history(*STORY)
    of_kind = [place for place, row in enumerate(rows) if row.event.__struct_config__.tag == kind]
    assert of_kind
    for place in of_kind:
        forged = changed(rows, place, **FORGED[kind])
        if [row.event for row in forged] == [row.event for row in rows]:
            continue
        with pytest.raises(Corrupt) as caught:
            audited(forged)
        assert caught.value.position == place + 1


def test_an_instant_and_a_name_that_were_changed_are_faults() -> None:
    """Also in the first row, of a command whose digest was not compared by the first form."""
    rows = oracle.history(given.contest(), given.opened(), given.forecast())
    for place, fields in ((0, {"pool": 7 * 10**6}), (2, {"at": rows[2].event.at + 1}), (2, {"participant": "eve"})):
        with pytest.raises(Corrupt, match="expected the command digest") as caught:
            audited(changed(rows, place, **fields))
        assert caught.value.position == place + 1


def test_a_row_of_the_first_form_after_one_of_the_normal_form_is_a_fault() -> None:
    """Nobody can make a row less than it was in the middle of a log."""
    commands: list[AnyCommand] = [given.opened(), given.forecast(), given.forecast(at=day(12))]
    rows = oracle.history(*commands)
    old = in_first_form(rows, commands)
    for place in (1, 2):
        with pytest.raises(Corrupt, match="expected a digest of the normal form") as caught:
            audited(chained([*rows[:place], old[place], *rows[place + 1 :]]))
        assert caught.value.position == place + 1
    assert audited(chained([*old[:1], *rows[1:]])).first_forms == (1, 1)


def test_a_digest_of_the_normal_form_is_none_of_the_first() -> None:
    """A row from which only the mark was taken does not pass."""
    rows = oracle.history(given.opened())
    with pytest.raises(Corrupt, match="expected the command digest"):
        audited(chained([structs.replace(rows[0], normal=UNSET)]))
