"""Tests of a ledger on asyncio: what it records, in how many commits, and what cancelling leaves."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Corrupt, LedgerError, Refused, Unavailable, Uncertain
from forecast_ledger.ledger.model.log import GENESIS, Checkpoint
from forecast_ledger.ledger.storing import consumer
from forecast_ledger.ledger.storing.async_ledger import AsyncLedger
from forecast_ledger.ledger.storing.subscription import POLL
from forecast_ledger.ledger.storing.writer import Ledger
from tests.ledger.storing.test_consumer import HOUR, cursor
from tests.ledger.storing.test_groups import counted, failing
from tests.ledger.storing.test_subscription import ANOTHER
from tests.support.effort import times
from tests.support.given import opened, payment
from tests.support.processes import Command
from tests.support.waiting import PATIENCE


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Ledger]:
    """An open ledger in a file, without rows."""
    with Ledger.open(tmp_path / "log.db") as ledger:
        yield ledger


def run(log: Ledger, main: Callable[[AsyncLedger], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine with a ledger, for PATIENCE at most."""

    async def bounded() -> Any:
        async with asyncio.timeout(PATIENCE), AsyncLedger(log) as ledger:
            return await main(ledger)

    return asyncio.run(bounded())


def test_a_thousand_tasks_need_few_threads_and_commits(log: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own receipt, in the order in which they were sent; a group has 500 commands at most."""
    before = threading.active_count()

    async def main(ledger: AsyncLedger) -> tuple[list[int], int]:
        receipts = await asyncio.gather(*(ledger.handle(opened(f"q{n}"), f"c{n}") for n in range(1_000)))
        return [receipt.first for receipt in receipts], threading.active_count()

    with counted(log, monkeypatch) as turns:
        firsts, threads = run(log, main)
    assert firsts == [*range(1, 1_001)]
    assert len(turns) == 2
    assert threads - before <= 2


def test_a_refusal_concerns_one_task(log: Ledger) -> None:
    """Of three commands that open a question, the first is recorded, a retry is a duplicate, another is refused."""

    async def main(ledger: AsyncLedger) -> list[Any]:
        sent = [(opened("q"), "c1"), (opened("q"), "c1"), (opened("q"), "c2"), (opened("r"), "c3")]
        return await asyncio.gather(*(ledger.handle(*each) for each in sent), return_exceptions=True)

    first, retry, refused, last = run(log, main)
    assert (first.first, first.duplicate, retry.first, retry.duplicate, last.first) == (1, False, 1, True, 2)
    assert isinstance(refused, Refused)
    assert refused.code == "duplicate_question"


@pytest.mark.parametrize("error", [Uncertain("no answer"), Unavailable("no server"), Corrupt(1, "damaged")])
def test_an_error_reaches_each_task(log: Ledger, monkeypatch: pytest.MonkeyPatch, error: LedgerError) -> None:
    """Each has the class and text of the error of the store, and the commands can be sent again."""
    commands = [(opened(f"q{number}"), f"c{number}") for number in range(3)]

    async def main(ledger: AsyncLedger) -> list[Any]:
        with monkeypatch.context() as patch:
            patch.setattr(log, "_in_turn", failing(error))
            found = await asyncio.gather(*(ledger.handle(*each) for each in commands), return_exceptions=True)
        receipts = await asyncio.gather(*(ledger.handle(*each) for each in commands))
        return [(type(each), str(each)) for each in found] + [receipt.duplicate for receipt in receipts]

    assert run(log, main) == [(type(error), str(error))] * 3 + [False] * 3


def test_a_wrong_command_concerns_one_task(log: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that is not one of the store is that of the command alone: the others are decided each alone."""
    handle = log._handle_group

    def fragile(requests: Any) -> Any:
        assert "c1" not in requests().ids, "c1 is wrong"
        return handle(requests)

    async def main(ledger: AsyncLedger) -> list[Any]:
        monkeypatch.setattr(log, "_handle_group", fragile)
        sent = (ledger.handle(opened(f"q{n}"), f"c{n}") for n in range(3))
        return await asyncio.gather(*sent, return_exceptions=True)

    first, wrong, last = run(log, main)
    assert (first.first, last.first, str(wrong).partition("\n")[0]) == (1, 2, "c1 is wrong")


def test_a_cancelled_command_is_not_recorded_before_it_is_taken_and_may_be_afterwards(log: Ledger) -> None:
    """While the first is decided, two wait, and the first and the second are cancelled: a retry says what is so."""

    async def main(ledger: AsyncLedger) -> list[bool]:
        log._lock.acquire()
        tasks = [asyncio.create_task(ledger.handle(opened("q0"), "c0"))]
        await asyncio.sleep(0.05)
        tasks += [asyncio.create_task(ledger.handle(opened(f"q{n}"), f"c{n}")) for n in (1, 2)]
        await asyncio.sleep(0.05)
        for task in tasks[:2]:
            task.cancel()
        await asyncio.wait(tasks[:2])
        log._lock.release()
        await tasks[2]
        return [(await ledger.handle(opened(f"q{n}"), f"c{n}")).duplicate for n in range(3)]

    assert run(log, main) == [True, False, True]


def test_the_end_of_the_event_loop_leaves_no_task(log: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """`asyncio.run` cancels what waits; the command of the thread is recorded all the same."""
    begun, handle = threading.Event(), log._handle_group
    monkeypatch.setattr(log, "_handle_group", lambda requests: begun.set() or handle(requests))  # type: ignore[func-returns-value]

    async def main() -> None:
        ledger = AsyncLedger(log)
        sent = asyncio.create_task(ledger.handle(opened("q"), "c"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert begun.wait(PATIENCE)
        assert not sent.done()

    asyncio.run(main())
    assert [row.command_id for page in log.read() for row in page] == ["c"]


def test_a_subscription_returns_what_there_is_and_then_new_events(log: Ledger, tmp_path: Path) -> None:
    """Events of this ledger arrive at once, those of other processes within a fifth of a second, each once."""
    log.handle(opened("q0"), "c0")

    async def main(ledger: AsyncLedger) -> list[list[int]]:
        async def listen(after: int | Checkpoint) -> list[int]:
            heard: list[int] = []
            async for recorded in ledger.subscribe(after):
                heard.append(recorded.position)
                if recorded.position == 4:
                    break
            return heard

        listeners = [asyncio.create_task(listen(after)) for after in (0, 1, 1, log.head())]
        await asyncio.sleep(0.05)
        await ledger.handle(opened("q1"), "c1")
        another = Command(str(tmp_path / "log.db"), "2", "4", program=ANOTHER)
        assert (await asyncio.to_thread(another.ended, PATIENCE)).returncode == 0
        return [await listener for listener in listeners]

    assert run(log, main) == [[1, 2, 3, 4], *[[2, 3, 4]] * 3]


def test_many_subscriptions_share_one_look_at_the_log(log: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred that wait ask the store together, once in each interval."""
    looks, newest = list[float](), log._store.newest
    monkeypatch.setattr(log._store, "newest", lambda: looks.append(time.monotonic()) or newest())  # type: ignore[func-returns-value]

    async def main(ledger: AsyncLedger) -> None:
        waiting = [asyncio.create_task(anext(ledger.subscribe())) for _ in range(100)]
        while len(looks) < 3:
            await asyncio.sleep(0.01)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)

    run(log, main)
    assert looks[2] - looks[0] > 1.9 * POLL


def test_a_cancelled_subscription_goes_on_where_it_was(log: Ledger) -> None:
    """Nothing is skipped or repeated, whether it was cancelled while it read or while it waited."""
    for number in range(3):
        log.handle(opened(f"q{number}"), f"c{number}")

    async def main(ledger: AsyncLedger) -> list[int]:
        subscription, heard = ledger.subscribe(), list[int]()
        for _ in range(3):
            for pause in (0, 0.001, 0.01):
                task = asyncio.create_task(anext(subscription))
                await asyncio.sleep(pause)
                if not task.done():
                    task.cancel()
                    await asyncio.wait([task])
                if not task.cancelled():
                    heard.append(task.result().position)
        while len(heard) < 3:
            heard.append((await anext(subscription)).position)
        assert subscription.reached == log.head()
        return heard

    assert run(log, main) == [1, 2, 3]


def test_closing_ends_subscriptions_and_waits_for_commands(log: Ledger) -> None:
    """A loop over a subscription ends; a command that was sent is recorded; one sent afterwards is refused."""

    async def main() -> list[int]:
        async with asyncio.timeout(PATIENCE):
            ledger, heard = AsyncLedger(log), list[int]()

            async def listen() -> None:
                async for recorded in ledger.subscribe():
                    heard.append(recorded.position)

            listener = asyncio.create_task(listen())
            await ledger.handle(opened("q0"), "c0")
            while not heard:
                await asyncio.sleep(0.01)
            sent = asyncio.create_task(ledger.handle(opened("q1"), "c1"))
            await asyncio.sleep(0)
            await ledger.close()
            await listener
            assert (await sent).first == 2
            with pytest.raises(Unavailable, match="the ledger is closed"):
                await ledger.handle(opened("q2"), "c2")
            return heard

    assert asyncio.run(main())[0] == 1


def test_a_subscription_says_what_is_wrong(log: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A position that the log does not have is refused, another digest is damage, and so is an error of the store."""
    log.handle(opened("q0"), "c0")

    async def main(ledger: AsyncLedger) -> None:
        with pytest.raises(Refused, match=r"out_of_range: after = 2: the log ends at position 1"):
            await anext(ledger.subscribe(2))
        with pytest.raises(Corrupt, match="the checkpoint has"):
            await anext(ledger.subscribe(Checkpoint(1, GENESIS)))
        monkeypatch.setattr(log._store, "newest", failing(Unavailable("no server")))
        found = await asyncio.gather(*(anext(ledger.subscribe(1)) for _ in range(2)), return_exceptions=True)
        assert [str(error) for error in found] == ["no server"] * 2

    run(log, main)


def test_other_calls_are_those_of_the_ledger(log: Ledger) -> None:
    """`handle_many`, `read`, `events_of`, `head` and `name` return what those of the ledger return."""

    async def main(ledger: AsyncLedger) -> None:
        many = await ledger.handle_many([opened("q", id="c1"), opened("q", id="c2")])
        assert [type(outcome).__name__ for outcome in many] == ["Receipt", "Refused"]
        assert [page async for page in ledger.read()] == [*log.read()] == [await ledger.events_of("c1")]
        assert (await ledger.head(), ledger.name) == (log.head(), "main")
        with pytest.raises(Refused, match="unknown_contest"):
            await ledger.handle(payment(), "c3")

    run(log, main)


async def heard(ledger: AsyncLedger, count: int, name: str = "mailer", after: int = 0) -> list[int]:
    """The positions of the next events; the loop ends while the last of them is being handled."""
    positions: list[int] = []
    async for recorded in ledger.subscribe(after, name=name):
        positions.append(recorded.position)
        if len(positions) == count:
            break
    return positions


def filled(log: Ledger, count: int = 4) -> Ledger:
    """The ledger, with so many events."""
    log.handle_many([opened(f"q{number}", id=f"c{number}") for number in range(count)])
    return log


def test_a_named_subscription_moves_its_cursor_when_the_next_event_is_asked_for(log: Ledger, tmp_path: Path) -> None:
    """A loop that ends in the middle of an event returns it again; so does a loop that is not on asyncio."""

    async def main(ledger: AsyncLedger) -> list[list[int]]:
        found = [await heard(ledger, 2), await heard(ledger, 1), await heard(ledger, 2, "archive", after=2)]
        async with AsyncLedger(Ledger.open(tmp_path / "log.db")) as other:
            return [*found, await heard(other, 2), await heard(other, 1, "archive")]

    assert run(filled(log), main) == [[1, 2], [2], [3, 4], [2, 3], [4]]
    with Ledger.open(tmp_path / "log.db") as again:
        assert next(iter(again.subscribe(name="mailer"))).position == 3


def test_a_named_subscription_waits_while_another_has_the_events(
    log: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on when the other one is cancelled, or its ledger is closed, with the event that was being handled."""
    monkeypatch.setattr(consumer, "TRY", 0.05)
    monkeypatch.setattr(consumer, "HELD", HOUR)

    async def handle_slowly(ledger: AsyncLedger, seen: list[int]) -> None:
        async for recorded in ledger.subscribe(name="mailer"):
            seen.append(recorded.position)
            await asyncio.sleep(600 if recorded.position in {2, 3} else 0)

    async def main(ledger: AsyncLedger) -> list[list[int]]:
        one, two, three = list[int](), list[int](), list[int]()
        other = AsyncLedger(Ledger.open(tmp_path / "log.db"))
        first = asyncio.create_task(handle_slowly(ledger, one))
        while one != [1, 2]:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(handle_slowly(other, two))
        await asyncio.sleep(0.3)
        assert (one, two) == ([1, 2], [])
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        while two != [2]:
            await asyncio.sleep(0.01)
        await other.close()  # while the event is being handled
        three = await heard(ledger, 2)
        second.cancel()
        return [one, two, three]

    assert run(filled(log), main) == [[1, 2], [2], [2, 3]]


def test_a_named_subscription_that_waits_gives_signs(
    log: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other loop takes its cursor; closing the ledger ends it."""
    monkeypatch.setattr(consumer, "TRY", 0.05)
    monkeypatch.setattr(consumer, "SIGN", 0.05)
    monkeypatch.setattr(consumer, "HELD", HOUR)
    location, seen = str(tmp_path / "log.db"), list[int]()

    async def follow(ledger: AsyncLedger) -> None:
        async for recorded in ledger.subscribe(name="mailer"):
            seen.append(recorded.position)

    async def main(ledger: AsyncLedger) -> list[int]:
        async with AsyncLedger(Ledger.open(location)) as other:
            one = asyncio.create_task(heard(ledger, 5))
            while cursor(location)[0] < 4:
                await asyncio.sleep(0.01)
            two = asyncio.create_task(heard(other, 1))
            for _ in range(3):
                before = cursor(location)[1]
                while cursor(location)[1] <= before:
                    await asyncio.sleep(0.01)
            await ledger.handle(opened("late"), "c-late")
            positions = await one
            assert await two == [5]
            waiting = asyncio.create_task(follow(ledger))
            while not seen:
                await asyncio.sleep(0.01)
            await ledger.close()
            await waiting
            assert seen == [5]
            return positions

    assert run(filled(log), main) == [1, 2, 3, 4, 5]


def test_a_named_subscription_that_took_too_long_is_told(log: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another loop has its events by then."""
    monkeypatch.setattr(consumer, "HELD", 100_000)

    async def main(ledger: AsyncLedger) -> None:
        async for recorded in ledger.subscribe(name="mailer"):
            await asyncio.sleep(0.2)
            assert await heard(ledger, 1) == [recorded.position]

    with pytest.raises(Unavailable, match="another process has taken over 'mailer'"):
        run(filled(log), main)


def test_an_id_names_a_cursor_and_it_begins_in_the_log(log: Ledger) -> None:
    """As `Ledger.subscribe` has it."""

    async def main(ledger: AsyncLedger) -> list[str]:
        codes = []
        with pytest.raises(Refused) as refused:
            ledger.subscribe(name=" ")
        codes.append(refused.value.code)
        with pytest.raises(Refused) as refused:
            await heard(ledger, 1, after=9)
        return [*codes, refused.value.code]

    assert run(filled(log), main) == ["id_not_plain", "out_of_range"]


@pytest.mark.parametrize("seed", range(times(16)))
def test_whenever_its_task_is_cancelled_each_event_is_handled_at_least_once(log: Ledger, seed: int) -> None:
    """In order, without a gap: a loop begins with the event in which the last one was cancelled, or with the next."""
    random, count = Random(seed), 40
    handled = [0]

    async def main(ledger: AsyncLedger) -> int:
        loops = 0
        subscription = ledger.subscribe(name="mailer")

        async def handle() -> None:
            async for recorded in subscription:
                assert handled[-1] <= recorded.position <= handled[-1] + 1
                await asyncio.sleep(0.001 * random.random())
                handled.append(recorded.position)

        while handled[-1] < count:
            loops += 1
            task = asyncio.create_task(handle())
            await asyncio.sleep(0.02 * random.random() * (1 + loops / 20))  # a slow machine needs longer for an event
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        return loops

    loops = run(filled(log, count), main)
    assert loops > 2
    assert sorted({*handled}) == [*range(count + 1)]
