"""Forecasts taken as columns change what stands as forecasts that are decided one by one."""

from collections.abc import Sequence
from itertools import islice

import numpy as np
import pytest
from msgspec import structs

from forecast_ledger.ledger.auditing import taken_forecasts
from forecast_ledger.ledger.auditing.audit import Audit
from forecast_ledger.ledger.auditing.taken_forecasts import PlainForecasts, TakenIds, bytes_of
from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model.commands import AnyCommand
from tests.support.forging import audited
from tests.support.given import closing, day, forecast, micros, opened, renaming, resolution
from tests.support.logs import recorded

QUESTIONS: list[AnyCommand] = [opened(), opened("snow")]
WHO = ("ada", "bob")
Row = tuple[int, int, int, str]  # question, participant, day, and id of a forecast
ROWS: list[Row] = [(0, 0, 11, "a"), (1, 1, 11, "b"), (0, 1, 12, "c"), (0, 0, 12, "d"), (1, 1, 13, "e")]


def begun(commands: Sequence[AnyCommand] = QUESTIONS) -> Audit:
    """An audit of these commands, the last of which may go on."""
    audit = Audit()
    audit.decide(recorded(commands))
    return audit


def taken(rows: Sequence[Row]) -> PlainForecasts:
    """Forecasts as columns."""
    question, participant, days, ids = zip(*rows, strict=True)
    at = np.array([micros(each) for each in days])
    columns = np.array(question), np.array(participant), at, bytes_of(ids), np.arange(3, 3 + len(rows))
    return PlainForecasts(("rain", "snow"), WHO, *columns)


@pytest.fixture(autouse=True, params=[1, 3, 32])
def _few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taken_forecasts, "_FEW", request.param)  # all as columns, some, or none
    monkeypatch.setattr(taken_forecasts, "_OF_EACH", 1)


@pytest.mark.parametrize("end", [1, 2, 4])
def test_what_stands_is_what_decided_forecasts_leave(end: int) -> None:
    """Taken at once or in two turns."""
    audit = begun()
    for rows in (ROWS[:end], ROWS[end:]):
        assert audit.take(taken(rows)) is not None
    audit.check_taken()
    names = [("rain", "snow")[question] for question, *_ in ROWS]
    made = [forecast(name, WHO[who], at=day(number)) for name, (_, who, number, _) in zip(names, ROWS, strict=True)]
    decided = audited(recorded([*QUESTIONS, *made]))
    for name in ("rain", "snow"):
        assert audit.state.standing_on(name) == decided.state.standing_on(name)


REFUSED: dict[str, tuple[list[AnyCommand], list[Row]]] = {
    "an id twice": (QUESTIONS, [*ROWS, (0, 0, 14, "a")]),
    "an id of another command": (QUESTIONS, [*ROWS, (0, 0, 14, "c0")]),
    "back in time": (QUESTIONS, [*ROWS, (0, 1, 11, "f")]),
    "at the close": (QUESTIONS, [*ROWS, (0, 0, 20, "f")]),
    "after an early close": ([*QUESTIONS, closing(at=day(13))], [*ROWS, (0, 0, 13, "f")]),
    "after an answer": ([*QUESTIONS, closing(at=day(14)), resolution(at=day(14))], [(1, 0, 11, "g"), *ROWS]),
    "on a question that is none": (QUESTIONS[:1], ROWS),
    "of a participant with several ids": ([*QUESTIONS, forecast(), renaming("ada", "bo")], ROWS),
}


@pytest.mark.parametrize(("before", "rows"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("turns", [[6], [5, 1], [3, 1, 2]], ids=str)
def test_forecasts_that_the_decider_might_not_record_are_in_doubt(
    before: list[AnyCommand], rows: list[Row], turns: list[int]
) -> None:
    """Whether they are taken in one turn or in several, at the latest when all are checked."""
    audit, left = begun(before), iter(rows)
    turns_taken = [audit.take(taken(some)) for count in turns if (some := [*islice(left, count)])]
    if None not in turns_taken:
        with pytest.raises(Corrupt):
            audit.check_taken()


def test_what_stands_is_checked_when_it_is_loaded() -> None:
    """Before another command is decided by it."""
    audit = begun()
    if audit.take(taken([*ROWS, (0, 1, 11, "f")])) is not None:
        with pytest.raises(Corrupt):
            audit.state.standing_on("rain")
    assert audit.state.standing_on("snow") == {"bob": micros(13)}


def test_a_forecast_is_decided_against_those_taken_before() -> None:
    """Though one on the same question was decided before these."""
    first, *_, last = recorded([*QUESTIONS, *(forecast(at=day(number)) for number in (11, 12, 12))])[2:]
    audit = begun()
    audit.decide([first])
    assert audit.take(taken([(0, 0, 13, "a"), (0, 1, 13, "b"), (1, 1, 13, "c")])) is not None
    with pytest.raises(Corrupt, match="out_of_order"):
        audit.decide([last, structs.replace(last, command_id="next")])


def test_forecasts_taken_are_compared_with_one_decided_before() -> None:
    """When all are checked, or when they are taken."""
    audit = begun()
    audit.decide(recorded([*QUESTIONS, forecast(at=day(14))])[2:])
    later = [(0, 0, 13, "a"), (0, 1, 13, "b"), (1, 1, 13, "c")]
    if audit.take(taken(later)) is not None:
        with pytest.raises(Corrupt):
            audit.check_taken()


def test_few_forecasts_on_each_question_are_taken_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """There columns for each question take longer."""
    monkeypatch.setattr(taken_forecasts, "_FEW", 2)
    monkeypatch.setattr(taken_forecasts, "_OF_EACH", 3)
    rows = [(question, 0, 11 + n, f"{question} {n}") for n in range(3) for question in range(2)]
    assert [taken(rows[:count]).are_few() for count in range(1, 7)] == [True, True, True, True, True, False]
    assert not taken(rows[::2]).are_few()


@pytest.mark.parametrize("same_hash", [False, True])
def test_ids_are_found_whatever_was_taken_with_them(same_hash: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short and long ones; others may have the same number of 64 bits, and then all are in doubt, but none is found."""
    if same_hash:
        monkeypatch.setattr(taken_forecasts, "_MIX", np.uint64(0))
    ids, long = TakenIds(), "x" * 100
    ids.take(bytes_of(["f1", long]), np.array([3, 4]))
    ids.take(bytes_of(["f2", "\N{SNOWMAN}", "f1 and more"]), np.array([5, 6, 7]))
    assert (ids.check() is not None) == same_hash
    asked = ["f1", "f3", "\N{SNOWMAN}", long, long[1:], "f1 and", "x"]
    assert [*ids.among(asked)] == [0, 2, 3]
    assert [ids.position(each) for each in asked] == [3, None, 6, 4, None, None, None]
    ids.take(bytes_of(["f1"]), np.array([8]))
    assert ids.check() == 8


def test_ids_are_looked_for_until_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many other commands have ids of forecasts: each look takes as long as there are forecasts."""
    audit, looked, position = begun(), list[str](), TakenIds.position

    def noted(ids: TakenIds, command_id: str) -> int | None:
        looked.append(command_id)
        return position(ids, command_id)

    monkeypatch.setattr(TakenIds, "position", noted)
    monkeypatch.setattr(taken_forecasts, "_FEW", 1)
    audit.take(taken(ROWS))
    with pytest.raises(Corrupt, match="that of another command"):
        audit._forecasts.check_taken([name for *_, name in ROWS])
    assert {*looked} == {ROWS[0][-1]}
