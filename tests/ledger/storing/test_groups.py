"""Tests of groups: commands of several threads are decided in one order and recorded once, with few commits."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from forecast_ledger.ledger.batching.batch import Receipt, Requests
from forecast_ledger.ledger.core.errors import Conflict, Corrupt, LedgerError, Refused, Unavailable, Uncertain
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing import database, groups
from forecast_ledger.ledger.storing.groups import Groups, _Waiting
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import closing, opened, payment
from tests.support.waiting import PATIENCE, wait_until

THREADS = 8


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody give up because the machine stands still."""
    monkeypatch.setattr(database, "LOCK_TIMEOUT", PATIENCE)


def led(waits: Groups, calls: Sequence[Callable[[], Any]], go: Callable[[], object]) -> list[Future[Any]]:
    """Make calls in as many threads: the first leads, `go` lets it go on when all others wait; return when all end."""
    with ThreadPoolExecutor(THREADS) as threads:
        futures = [threads.submit(calls[0])]
        wait_until(lambda: waits._is_led)
        futures += map(threads.submit, calls[1:])
        wait_until(lambda: len(waits._waiting) == len(calls) - 1)
        go()
        return futures


def together(ledger: Ledger, commands: Sequence[tuple[AnyCommand, str]]) -> list[Future[Receipt]]:
    """Handle commands in as many threads, in one group."""
    ledger._lock.acquire()
    return led(ledger._groups, [partial(ledger.handle, *command) for command in commands], ledger._lock.release)


def outcomes(futures: Sequence[Future[Receipt]]) -> list[Any]:
    """The receipt of each, or the code of its refusal, or the class of its error."""
    found: list[Any] = []
    for future in futures:
        error = future.exception(PATIENCE)
        found.append(future.result() if error is None else error.code if isinstance(error, Refused) else type(error))
    return found


@contextmanager
def counted(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the turns in which a ledger writes."""
    turns: list[int] = []
    turn = ledger._turn

    def counting() -> Any:
        turns.append(1)
        return turn()

    monkeypatch.setattr(ledger, "_turn", counting)
    yield turns


def test_commands_that_come_together_are_recorded_in_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader takes all that have come when it has the ledger: eight commands, one turn, eight rows."""
    with Ledger.open(tmp_path / "log.db") as ledger, counted(ledger, monkeypatch) as turns:
        ledger.handle(opened("q"), "c")
        futures = together(ledger, [(opened(f"q{number}"), f"c{number}") for number in range(THREADS)])
        assert sorted(receipt.first for receipt in outcomes(futures)) == [*range(2, THREADS + 2)]
        assert len(turns) == 2


def test_a_refusal_concerns_one_command_and_each_sees_the_state_after_the_one_before(tmp_path: Path) -> None:
    """Eight commands open the same question: one does, and seven are refused, whatever their order."""
    with Ledger.open(tmp_path / "log.db") as ledger:
        found = outcomes(together(ledger, [(opened("q"), f"c{number}") for number in range(THREADS)]))
        assert sorted(map(str, found))[1:] == ["duplicate_question"] * (THREADS - 1)
        assert ledger.head().position == 1


def test_a_command_that_several_threads_send_is_recorded_once(tmp_path: Path) -> None:
    """One of the receipts is not a duplicate, and all name the same row."""
    with Ledger.open(tmp_path / "log.db") as ledger:
        found = outcomes(together(ledger, [(opened("q"), "c")] * THREADS))
        assert sorted((receipt.first, receipt.duplicate) for receipt in found) == [(1, False)] + [(1, True)] * 7


def test_many_threads_lose_and_double_nothing_and_keep_their_order(tmp_path: Path) -> None:
    """Each thread sends its commands one after the other; the log has each once, in the order of its thread."""
    each = 25

    def send(ledger: Ledger, thread: int) -> list[Receipt]:
        return [ledger.handle(opened(f"q{thread}-{number}"), f"c{thread}-{number}") for number in range(each)]

    with Ledger.open(tmp_path / "log.db") as one, Ledger.open(tmp_path / "log.db") as other:
        with ThreadPoolExecutor(THREADS) as threads:
            sent = [*threads.map(lambda thread: send(one if thread % 2 else other, thread), range(THREADS))]
        at = {row.command_id: row.position for page in one.read() for row in page}
        assert len(at) == one.head().position == THREADS * each
    for thread, receipts in enumerate(sent):
        assert [receipt.first for receipt in receipts] == [at[f"c{thread}-{number}"] for number in range(each)]
        assert all(earlier.first < later.first for earlier, later in pairwise(receipts))


@pytest.mark.parametrize("error", [Uncertain("no answer"), Unavailable("no server"), Conflict("taken")])
def test_an_error_of_the_store_is_raised_for_each_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: LedgerError
) -> None:
    """Each thread gets an error of its own of the same class and text, and a retry records each command once."""
    commands: list[tuple[AnyCommand, str]] = [(opened(f"q{number}"), f"c{number}") for number in range(THREADS)]
    with Ledger.open(tmp_path / "log.db") as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(ledger, "_in_turn", failing(error))
            futures = together(ledger, commands)
            errors = [future.exception(PATIENCE) for future in futures]
        assert {(type(each), str(each)) for each in errors} == {(type(error), str(error))}
        assert len({*map(id, errors)}) == THREADS
        assert [receipt.duplicate for receipt in outcomes(together(ledger, commands))] == [False] * THREADS


def failing(error: BaseException) -> Callable[..., Any]:
    """Return a function that raises an error."""

    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("error", [Corrupt(1, "damaged"), TypeError("wrong"), KeyboardInterrupt()])
def test_after_any_other_error_each_command_is_decided_alone(error: BaseException) -> None:
    """What is wrong with one command, or an interrupt of the thread that leads, does not concern the others."""
    taken, go = list[int](), Event()

    def decide(requests: Callable[[], Requests]) -> list[Receipt | Refused]:
        go.wait(PATIENCE)
        asked = requests()
        taken.append(len(asked))
        if len(asked) > 1 or asked.ids == ["c0"]:
            raise error
        return [Receipt(asked.ids[0], 1, 1)]

    waits = Groups(decide)
    first, *others = led(waits, [partial(waits.outcome, opened(f"q{n}"), f"c{n}") for n in range(THREADS)], go.set)
    assert type(first.exception()) is type(error)
    assert [future.result() for future in others] == [Receipt(f"c{n}", 1, 1) for n in range(1, THREADS)]
    assert taken[0] == THREADS
    assert not waits._is_led


def test_a_command_waits_no_longer_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that no leader has taken is not recorded; of one that is taken, it is not known."""
    monkeypatch.setattr(database, "LOCK_TIMEOUT", 0.1)
    taken, go = list[str](), Event()

    def decide(requests: Callable[[], Requests]) -> list[Receipt | Refused]:
        if taken:
            go.wait(PATIENCE)
        asked = requests()
        taken.extend(asked.ids)
        go.wait(PATIENCE)
        return [Receipt(each, 1, 1) for each in asked.ids]

    waits = Groups(decide)
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(waits.outcome, opened(), "c1")
        wait_until(lambda: taken == ["c1"])
        with pytest.raises(Unavailable, match=r"used the ledger for 0.1 s; nothing was recorded, try again"):
            waits.outcome(opened(), "c2")
        monkeypatch.setattr(database, "LOCK_TIMEOUT", PATIENCE)
        second, third = (threads.submit(waits.outcome, opened(), name) for name in ("c3", "c4"))
        wait_until(lambda: len(waits._waiting) == 2)
        go.set()
        assert {type(future.result(PATIENCE)) for future in (first, second, third)} == {Receipt}
    assert sorted(taken) == ["c1", "c3", "c4"]
    monkeypatch.setattr(database, "LOCK_TIMEOUT", 0.1)
    with pytest.raises(Uncertain, match="have not ended: it is not known whether this was recorded"):
        waits._wait(_Waiting(opened(), "c5"))  # no longer among those that wait: a leader has taken it


def test_a_thread_that_is_interrupted_while_it_waits_is_not_in_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its command is not recorded, and the other commands are."""
    begun, go, done = Event(), Event(), list[str]()

    def decide(requests: Callable[[], Requests]) -> list[Receipt | Refused]:
        begun.set()
        go.wait(PATIENCE)
        asked = requests()
        done.extend(asked.ids)
        return [Receipt(each, 1, 1) for each in asked.ids]

    class Bell:
        def acquire(self, timeout: float) -> bool:
            assert timeout
            raise KeyboardInterrupt

    def interrupted(command: AnyCommand, command_id: str) -> _Waiting:
        own = _Waiting(command, command_id)
        own.bell = Bell()  # type: ignore[assignment]
        return own

    waits = Groups(decide)
    with ThreadPoolExecutor(1) as threads:
        leader = threads.submit(waits.outcome, opened(), "c1")
        begun.wait(PATIENCE)
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(groups, "_Waiting", interrupted)
            waits.outcome(opened(), "c2")
        go.set()
        leader.result(PATIENCE)
    assert (done, waits._waiting, waits._is_led) == (["c1"], [], False)


def test_a_payment_does_not_let_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prizes are computed outside of a group, so that other commands go on."""
    with Ledger.open(tmp_path / "log.db") as ledger:
        monkeypatch.setattr(ledger._groups, "outcome", failing(AssertionError("a payment was in a group")))
        with pytest.raises(Refused, match="unknown_contest"):
            ledger.handle(payment(), "c1")
        with pytest.raises(AssertionError):
            ledger.handle(closing(), "c2")
