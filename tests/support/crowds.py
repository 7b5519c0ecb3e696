"""Several processes that write to one ledger at the same time, and how long each of their commands took."""

import time
from multiprocessing.synchronize import Barrier, Event
from queue import Empty
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import LedgerError
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import OpenQuestion, SubmitForecast
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.processes import forking
from tests.support.waiting import PATIENCE

START = 1_767_225_600_000_000  # µs
DAY = 86_400 * 10**6
TIMEOUT = PATIENCE  # after which a process that has not ended is a failure
QUESTION = OpenQuestion(
    id="open", at=format_instant(START), question="q", kind="binary", opens_at=format_instant(START),
    closes_at=format_instant(START + 30 * DAY),
)  # fmt: skip


class Crowd(NamedTuple):
    """commands: how many were recorded. seconds: from the first writer's start to the last one's end.

    latencies: of each command, in s, rising. errors: what was raised, as text.
    """

    commands: int
    seconds: float
    latencies: list[float]
    errors: list[str]

    @property
    def rate(self) -> float:
        """Commands a second, of all writers together."""
        return self.commands / self.seconds

    def percentile(self, hundredths: int) -> float:
        """The latency, in s, that so many in a hundred commands do not exceed."""
        return self.latencies[(len(self.latencies) - 1) * hundredths // 100]


def forecast(writer: str, number: int) -> SubmitForecast:
    """A command that only this writer sends."""
    at = format_instant(START + 1 + number)
    probability = f"0.{number % 900 + 50:03}"
    return SubmitForecast(id=f"{writer}.{number}", at=at, question="q", participant=writer, probability=probability)


def crowd(location: str, name: str, writers: int, commands: int, pause: float = 0.0) -> Crowd:
    """Let so many processes send so many commands each, one at a time; pause: s between two of one writer."""
    with Ledger.open(location, name) as ledger:
        ledger.handle(QUESTION)
    context = forking(__name__)
    barrier, queue = context.Barrier(writers), context.Queue()
    ids = [f"{name}.{writers}.{number}" for number in range(writers)]
    asked = [((location, name, writer), commands, pause, barrier, queue) for writer in ids]
    processes = [context.Process(target=_written, args=each) for each in asked]
    for process in processes:
        process.start()
    try:
        results = [queue.get(timeout=TIMEOUT) for _ in processes]
    finally:
        _end(processes)
    begun, ended = min(begun for begun, *_ in results), max(ended for _, ended, *_ in results)
    latencies = sorted(each for _, _, taken, _ in results for each in taken)
    return Crowd(len(latencies), ended - begun, latencies, [each for *_, errors in results for each in errors])


class Trickle:
    """Within the block, a process of its own sends single commands at a steady rate; afterwards `found` is there."""

    found: Crowd

    def __init__(self, location: str, name: str, rate: float) -> None:
        self._asked = (location, name, rate)

    def __enter__(self) -> "Trickle":
        context = forking(__name__)
        self._started, self._stop, self._told = context.Event(), context.Event(), context.Queue()
        asked = (self._asked, self._started, self._stop, self._told)
        self._process = context.Process(target=_trickled, args=asked)
        self._process.start()
        if not self._started.wait(TIMEOUT):
            raise TimeoutError("the trickle does not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        try:
            begun, ended, taken, errors = self._told.get(timeout=TIMEOUT)
        except Empty:
            raise TimeoutError("the trickle does not end") from None
        finally:
            _end([self._process])
        self.found = Crowd(len(taken), ended - begun, sorted(taken), errors)


def _end(processes: list[Any]) -> None:
    for process in processes:
        process.join(TIMEOUT)
        if process.is_alive():
            process.kill()


def _written(who: tuple[str, str, str], commands: int, pause: float, barrier: Barrier, queue: Any) -> None:
    (location, name, writer), taken, errors = who, list[float](), list[str]()
    with Ledger.open(location, name) as ledger:
        ledger.head()
        barrier.wait()
        begun = time.monotonic()
        for number in range(commands):
            _timed(ledger, forecast(writer, number), taken, errors)
            time.sleep(pause)
        queue.put((begun, time.monotonic(), taken, errors))


def _trickled(asked: tuple[str, str, float], started: Event, stop: Event, queue: Any) -> None:
    (location, name, rate), taken, errors, number = asked, list[float](), list[str](), 0
    with Ledger.open(location, name) as ledger:
        begun = time.monotonic()
        while not stop.is_set():
            _timed(ledger, forecast("trickle", number), taken, errors)
            number += 1
            started.set()
            time.sleep(max(0.0, begun + number / rate - time.monotonic()))
        queue.put((begun, time.monotonic(), taken, errors))


def _timed(ledger: Ledger, command: SubmitForecast, taken: list[float], errors: list[str]) -> None:
    before = time.monotonic()
    try:
        ledger.handle(command)
    except LedgerError as error:
        errors.append(f"{type(error).__name__}: {error}")
    else:
        taken.append(time.monotonic() - before)
