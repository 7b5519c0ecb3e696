"""The index of recorded commands: what it finds is what a dictionary of the log would hold."""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from forecast_ledger.ledger.batching import writer_state
from forecast_ledger.ledger.batching.batch import Batch, Receipt
from forecast_ledger.ledger.batching.forecasts import ForecastColumns
from forecast_ledger.ledger.batching.writer_state import CommandIndex, RecordedCommand
from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model.commands import Prices, SubmitForecast
from forecast_ledger.ledger.model.log import NewRows
from forecast_ledger.ledger.storing import sqlite
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.effort import times
from tests.support.given import DAY, NOW, day, forecast, market, opened, quotes, remembered

MARKETS = [f"market {number}" for number in range(9)]


@pytest.fixture(autouse=True)
def _few_are_recent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three commands are recent and many, and two rows are read at once, so that short logs have all cases."""
    monkeypatch.setattr(writer_state, "RECENT", 3)
    monkeypatch.setattr(writer_state, "FEW", 3)
    monkeypatch.setattr(writer_state, "PAGE", 2)


def in_the_log(ledger: Ledger) -> dict[str, RecordedCommand]:
    """The commands of a log, from all its rows."""
    found: dict[str, RecordedCommand] = {}
    for recorded in (recorded for page in ledger.read() for recorded in page):
        first = found[recorded.command_id].first if recorded.command_id in found else recorded.position
        found[recorded.command_id] = RecordedCommand(recorded.command, first, recorded.position)
    return found


def commands_of_a_history(dice: random.Random) -> Iterator[object]:
    """Commands with one event and with many, some of them refused."""
    yield from (opened(), *(market(name) for name in MARKETS))
    for number in count():
        yield dice.choice(
            [
                forecast(participant=f"p{number % 4}", at=day(1)),
                quotes(
                    *(Prices(question=dice.choice(MARKETS), prices={"yes": "0.5"}) for _ in range(dice.randrange(1, 7)))
                ),
            ]
        )


@pytest.mark.parametrize("seed", range(times(16)))
def test_every_command_is_found_after_every_step_and_no_other(seed: int) -> None:
    """Whatever the order and the size of batches; and a retry has the receipt of the first time."""
    dice = random.Random(seed)
    source, ids = commands_of_a_history(dice), count()
    with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as ledger:
        sent: list[Any] = []
        for _ in range(25):
            batch = [structs.replace(next(source), id=f"c{next(ids)}") for _ in range(dice.randrange(1, 4))]  # type: ignore[type-var]
            batch += dice.choices(sent, k=dice.randrange(3)) if sent else []
            dice.shuffle(batch)
            before = in_the_log(ledger)
            for command, outcome in zip(batch, ledger.handle_many(batch), strict=True):  # type: ignore[arg-type]
                recorded = in_the_log(ledger).get(command.id)  # type: ignore[attr-defined]
                assert (recorded is None) == isinstance(outcome, Refused)
                if isinstance(outcome, Receipt):
                    assert recorded is not None
                    assert (outcome.first, outcome.last) == (recorded.first, recorded.last)
                    assert outcome.duplicate or outcome.command_id not in before
            sent += batch
            assert remembered(ledger)["commands"] == in_the_log(ledger)
            known = ledger._known.commands
            assert known.older(["unknown", *in_the_log(ledger)], ledger._store.read).keys().isdisjoint(known.recent)
        assert len(known.recent) <= 3 + 12
        assert len(in_the_log(ledger)) > 20


@pytest.mark.parametrize("seed", range(times(16)))
def test_batches_of_forecasts_alone_are_found_and_undone(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After every step, a writer knows what one that reads the log knows: if all commands of a batch are new, if some
    are retries, repeated or refused, if one refuses all, and if nothing could be recorded.
    """
    dice, ids, insert = random.Random(seed), count(), sqlite._Turn.insert
    is_full = False

    def insert_or_fail(turn: sqlite._Turn, rows: Sequence[NewRows]) -> None:
        if is_full:
            raise Unavailable("the disk is full")
        insert(turn, rows)

    monkeypatch.setattr(sqlite._Turn, "insert", insert_or_fail)
    recorded: list[SubmitForecast] = []
    seen = set[str]()
    with Ledger.open(tmp_path / "log.db", clock=lambda: NOW + 99 * DAY) as ledger:
        for name in ("rain", "snow"):
            ledger.handle(opened(name), f"open {name}")
        for _ in range(30):
            batch = [
                forecast(dice.choice(["rain", "snow"]), f"p{dice.randrange(5)}", at=day(11 + dice.randrange(3)))
                for _ in range(dice.randrange(1, 9))
            ]
            batch = [structs.replace(command, id=f"c{next(ids)}") for command in batch]
            if dice.random() < 0.3:
                batch += dice.choices(batch + recorded, k=2)
            is_full, is_atomic = dice.random() < 0.2, dice.random() < 0.3
            sent: Any = batch
            if dice.random() < 0.5:
                fields = ("id", "at", "question", "participant", "probability")
                sent = ForecastColumns(**{name: [getattr(each, name) for each in batch] for name in fields})
            try:
                outcomes = ledger.handle_many(sent, atomic=is_atomic)
            except Unavailable:
                assert is_full
                seen.add("full")
                outcomes = []
            accepted = [each for each in outcomes if isinstance(each, Receipt)]
            seen |= {str(getattr(each, "code", each)) for each in outcomes if isinstance(each, Refused)}
            seen |= {"duplicate" if each.duplicate else "new" for each in accepted}
            seen |= {"whole"} if len(accepted) == len(batch) > writer_state.RECENT else set()
            known = in_the_log(ledger)
            assert [(each.first, each.last) for each in accepted] == [
                (known[each.command_id].first, known[each.command_id].last) for each in accepted
            ]
            recorded += [command for command in batch if command.id in known]
            assert remembered(ledger)["commands"] == known
            with Ledger.open(tmp_path / "log.db") as other:
                other.head()
                assert remembered(other) == remembered(ledger)
    assert seen == {"full", "new", "duplicate", "whole", "out_of_order", "batch_refused"}


def test_ids_of_one_hash_are_told_apart_by_the_log() -> None:
    """A hash only says where to look."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "question")
        for number in range(9):
            ledger.handle(forecast(participant=f"p{number}", at=day(1)), f"c{number}")
        index, known = CommandIndex(), in_the_log(ledger)
        vars(index)["_factors"] = np.zeros(200, np.uint64)  # so that every id has the same hash
        for command_id, command in known.items():
            index.recent[command_id] = command
            index.settle()
        assert {*index.runs[0][0].tolist()} == {0}
        assert index.recent | index.older([*known, "another"], ledger._store.read) == known
        alone = [index.older([each], ledger._store.read) for each in (*known, "another")]
        assert index.recent | {found: command for each in alone for found, command in each.items()} == known


@pytest.mark.parametrize("command_id", ["c", "", "ab", "ba", "é😀", "x" * 200, "y" * 300, "\ud800", "\0a"])
def test_an_id_is_found_alone_as_it_is_among_many(command_id: str) -> None:
    """Both ways compute one hash, whatever characters an id has."""
    index = CommandIndex()
    index.add(index.hashed(["a", "b", command_id, "d"]), np.arange(1, 5, dtype=np.uint64))
    assert [*index._places([command_id])] == [(3, command_id)]
    assert [*index._places(["unknown"])] == []


def test_other_content_under_an_older_id_is_refused() -> None:
    """As it is under a recent one."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "question")
        for number in range(9):
            ledger.handle(forecast(participant=f"p{number}", at=day(1)), f"c{number}")
        assert "c1" not in ledger._known.commands.recent
        with pytest.raises(Refused, match="command_id_reused"):
            ledger.handle(forecast(participant="p1", at=day(1), probability="0.9"), "c1")
        assert ledger.handle(forecast(participant="p1", at=day(1)), "c1") == Receipt("c1", 3, 3, duplicate=True)


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_damage_to_an_older_command_is_found_when_it_is_looked_up(damage: str) -> None:
    """A receipt never comes from a row that is not what was sealed."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "question")
        for number in range(9):
            ledger.handle(forecast(participant=f"p{number}", at=day(1)), f"c{number}")
        index, read = ledger._known.commands, ledger._store.read

        def damaged(after: int, limit: int) -> list[bytes]:
            rows = read(after, limit)
            return [] if damage == "missing" else [row.replace(b'"c1"', b'"c7"') for row in rows]

        with pytest.raises(Corrupt):
            index.older(["c1"], damaged)


def test_an_older_command_takes_twelve_bytes() -> None:
    """Four of them for its log position, as long as it is below 2**32; there are few runs."""
    index = CommandIndex()
    for number in range(1, 2_000):
        index.recent[f"c{number}"] = RecordedCommand("", number, number)
        index.settle()
    size = sum(hashes.nbytes + positions.nbytes for hashes, positions in index.runs)
    assert size == 12 * (1_999 - len(index.recent))
    assert len(index.runs) <= 10
    index.recent.update({f"later {number}": RecordedCommand("", 2**32 + number, 2**32 + number) for number in range(5)})
    index.settle()
    assert [positions.dtype for _, positions in index.runs][-1] == "uint64"
    assert index.runs[-1][1].max() == 2**32 + 3


@contextmanager
def interrupted_at(line: int, *functions: Callable[..., object]) -> Iterator[None]:
    """Interrupt what runs as these functions begin that line, counted from 1 over all of them."""
    lines, traced = count(1), {function.__code__ for function in functions}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code not in traced:
            return None
        if event == "line" and next(lines) == line:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def test_an_interrupt_as_commands_are_added_loses_none_that_were_there() -> None:
    """Runs that are joined are found until the one that replaces them is there."""
    for line in count(1):
        index = CommandIndex()
        for first in (1, 2):
            index.add(index.hashed([f"c{first}"]), np.array([first], np.uint64))
        try:
            with interrupted_at(line, CommandIndex.add):
                index.add(index.hashed(["c3"]), np.array([3], np.uint64))
        except KeyboardInterrupt:
            assert {*index._places(["c1", "c2"])} == {(1, "c1"), (2, "c2")}
        else:
            assert line > 5
            assert {*index._places(["c1", "c2", "c3"])} == {(1, "c1"), (2, "c2"), (3, "c3")}
            return


@pytest.mark.parametrize("size", [1, 9])
def test_an_interrupt_of_a_batch_doubles_no_command(size: int) -> None:
    """Wherever it comes, also between the commit and what the writer notes of it: the log is then read again."""
    deciding: list[Callable[..., object]] = [Batch.decide_all, Batch._record_quick, Batch.undo, Batch.settle]
    noting: list[Callable[..., object]] = [Ledger._handle_locked, CommandIndex.settle, CommandIndex.add]
    new = [forecast(participant=f"p{number}", at=day(2), id=f"new {number}") for number in range(size)]
    for line in count(1):
        with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
            ledger.handle(opened(), "question")
            ledger.handle_many([forecast(participant=f"p{number}", at=day(1), id=f"c{number}") for number in range(9)])
            was_interrupted = True
            try:
                with interrupted_at(line, *deciding, *noting):
                    ledger.handle_many(new)
                was_interrupted = False
            except KeyboardInterrupt:
                ledger.handle_many(new)
            ledger.handle_many(new)
            ids = [recorded.command_id for page in ledger.read() for recorded in page]
            assert ids == ["question", *(f"c{number}" for number in range(9)), *(command.id for command in new)]
            found = remembered(ledger)
            ledger._forget()
            assert ledger.head().position == 10 + size
            assert remembered(ledger) == found
            if not was_interrupted:
                assert line > 30
                return
