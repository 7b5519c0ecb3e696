"""What a service grows by: the table of docs/operating.md, measured: `python -m tests.growth`.

Each figure is of a process that does nothing else; the time of a processor leaves out that of a server.
"""

# ruff: noqa: T201 - it prints
import os
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from forecast_ledger.ledger.model.commands import AnyCommand, OpenContest, OpenQuestion, SubmitForecast
from forecast_ledger.replay.readmodel.runner import Runner
from forecast_ledger.replay.writing.store import Store
from tests.support.servers import PG_CTL, postgres

QUESTIONS, PARTICIPANTS = 100, 200
SINGLE, THREADS, BATCH = 1_000, 32, 1_000
FORECASTS = 20_000
LEDGERS, EACH = 100, 1_000
OPENS, CLOSES = "2026-03-01T00:00:00Z", "2126-03-01T00:00:00Z"


def forecast(number: int) -> SubmitForecast:
    """One of many, each with an id of its own."""
    question, participant = f"question-{number % QUESTIONS}", f"participant-{number // QUESTIONS % PARTICIPANTS}"
    said = f"0.{100 + number % 800}"
    return SubmitForecast(id=f"request-{number}", question=question, participant=participant, probability=said)


def openings() -> list[AnyCommand]:
    """What comes before the forecasts."""
    opened = [
        OpenQuestion(id=f"open-{n}", question=f"question-{n}", kind="binary", opens_at=OPENS, closes_at=CLOSES)
        for n in range(QUESTIONS)
    ]
    return [OpenContest(id="contest", contest="main", rules="baseline"), *opened]


@contextmanager
def processor_time(name: str, count: int) -> Iterator[None]:
    """Print the processor time of this process for each of so many, µs."""
    begun, clock = time.process_time(), time.perf_counter()
    yield
    used, took = time.process_time() - begun, time.perf_counter() - clock
    print(f"{name}: {used / count * 1e6:.0f} µs of a processor, {count / took:.0f} a second")


def resident() -> int:
    """The memory of this process, bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def record(location: str, kind: str, folder: str) -> None:
    """Print what recording takes."""
    with Store.open(location) as store, ThreadPoolExecutor(THREADS) as pool:
        ledger = store.ledger()
        ledger.handle_many(openings())
        with processor_time(f"{kind}, a command alone", SINGLE):
            for number in range(SINGLE):
                ledger.handle(forecast(number))
        with processor_time(f"{kind}, a command of {THREADS} threads", 4 * SINGLE):
            list(pool.map(ledger.handle, map(forecast, range(SINGLE, 5 * SINGLE))))
        with processor_time(f"{kind}, a command of a batch of {BATCH:,}", FORECASTS - 5 * SINGLE):
            for first in range(5 * SINGLE, FORECASTS, BATCH):
                ledger.handle_many([forecast(number) for number in range(first, first + BATCH)])
    print(f"{kind}, a forecast in the log: {_size(location) / FORECASTS:.0f} bytes")
    with Store.open(location) as store:
        for number in range(LEDGERS):
            store.ledger(f"ledger {number}").handle_many([*openings(), *map(forecast, range(EACH))])


def follow(location: str, kind: str, folder: str) -> None:
    """Print what a read model takes."""
    tables, before = Path(folder, f"{kind}-tables.db"), resident()
    with Runner(location, tables) as runner:
        with processor_time(f"{kind}, a forecast in the first refresh", FORECASTS):
            runner.refresh()
        print(f"{kind}, a runner: {(resident() - before) / FORECASTS:.0f} bytes of memory a forecast")
    print(f"{kind}, a forecast in the read model: {tables.stat().st_size / FORECASTS:.0f} bytes")


def hold(location: str, kind: str, folder: str) -> None:
    """Print what many ledgers take."""
    with Store.open(location, connections=20) as store, ThreadPoolExecutor(THREADS) as pool:
        store.ledger().head()
        before = resident()
        list(pool.map(lambda number: store.ledger(f"ledger {number}").head(), range(LEDGERS)))
        used = (resident() - before) / LEDGERS
        print(f"{kind}, a ledger of {EACH:,} forecasts that is held: {used / 1e3:.0f} kB of memory")
        if "://" in location:
            with closing(psycopg.connect(location)) as server:
                query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'forecast-ledger'"
                print(f"{kind}, {LEDGERS} ledgers: {server.execute(query).fetchall()[0][0]} connections")


def _size(location: str) -> int:
    if "://" not in location:
        return os.path.getsize(location)  # noqa: PTH202
    with closing(psycopg.connect(location)) as server:
        [(size,)] = server.execute("SELECT pg_total_relation_size('stored_events')").fetchall()
    return int(size)


if __name__ == "__main__":
    with TemporaryDirectory() as name, postgres() if PG_CTL else nullcontext("") as url:
        for store, at in (("file", f"{name}/log.db"), ("server", url)):
            for measure in (record, follow, hold) if at else ():
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                    process.submit(measure, at, store, name).result()
