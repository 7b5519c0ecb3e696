"""Honest timings: python -m tests.bench prints ratios within one run, since machines differ and are shared.

200,000 binary forecasts on 200 questions by 2,000 participants, with seeded random times and probabilities.
"""

import gc
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from eventsourcing.persistence import ApplicationRecorder, StoredEvent

from ledger import Ledger, Receipt, collector
from ledger.commands import AddQuestion, AnyCommand, OpenContest, OpenQuestion, ResolveQuestion, SubmitForecast
from ledger.store import Store
from ledger.values import format_instant
from projections.columns import Facts
from projections.projection import Projections
from projections.tables import facts

START = 1_767_225_600_000_000  # µs
DAY = 86_400 * 10**6
BATCH = 10_000
RUNS = 3


def opening(questions: int) -> list[AnyCommand]:
    """A contest over so many questions of 30 days."""
    at, closes_at = format_instant(START), format_instant(START + 30 * DAY)
    commands: list[AnyCommand] = [OpenContest(id="c", at=at, contest="c", rules="relative-2022-04", pool=10_000)]
    for q in range(questions):
        fields: dict[str, Any] = {"question": f"q{q}", "kind": "binary", "opens_at": at, "closes_at": closes_at}
        commands.append(OpenQuestion(id=f"o{q}", at=at, **fields))
        commands.append(AddQuestion(id=f"a{q}", at=at, contest="c", question=f"q{q}"))
    return commands


def forecasts(count: int, questions: int, participants: int) -> list[AnyCommand]:
    """Forecasts in order of time, each by a random participant on a random question."""
    chance = random.Random(1)
    step = 29 * DAY // count
    return [
        SubmitForecast(
            id=f"f{i}",
            at=format_instant(START + 1 + i * step),
            question=f"q{chance.randrange(questions)}",
            participant=f"p{chance.randrange(participants)}",
            probability=Decimal(chance.randrange(1_000, 999_000)) / 10**6,
        )
        for i in range(count)
    ]


def resolutions(questions: int) -> list[AnyCommand]:
    """Every other question resolves yes."""
    at = format_instant(START + 31 * DAY)
    return [
        ResolveQuestion(id=f"r{q}", at=at, question=f"q{q}", outcome=("yes", "no")[q % 2]) for q in range(questions)
    ]


def handled(ledger: Ledger, commands: list[AnyCommand]) -> None:
    """Append in batches; every command must be accepted."""
    for i in range(0, len(commands), BATCH):
        if not all(isinstance(outcome, Receipt) for outcome in ledger.handle_many(commands[i : i + BATCH])):
            raise AssertionError("a command of the benchmark was refused")


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    """Seconds of the block, the garbage of what came before left aside."""
    gc.collect()
    before = time.perf_counter()
    yield
    into.append(time.perf_counter() - before)


def rows_of(log: Path) -> list[StoredEvent]:
    """A log's rows as its recorder wants them."""
    store = Store(str(log), "main", read_only=True)
    rows = (row for page in store.pages() for row in page)
    stored = [StoredEvent("main", position, "forecast_made.v1", row) for position, row in enumerate(rows, 1)]
    store.close()
    return stored


def recorder(log: Path) -> ApplicationRecorder:
    """The library's recorder on a new file."""
    return Store(str(log), "main")._recorder


def appending(folder: Path, made: list[AnyCommand]) -> dict[str, float]:
    """Batches and single commands against the recorder's own inserts of the same rows."""
    ours: list[float] = []
    theirs: list[float] = []
    single: list[float] = []
    theirs_single: list[float] = []
    for run in range(RUNS):
        with Ledger.open(folder / f"log{run}.db") as ledger:
            handled(ledger, opening(200))
            with timed(ours):
                handled(ledger, made)
            handled(ledger, resolutions(200))
        rows = rows_of(folder / f"log{run}.db")[401:-200]
        target = recorder(folder / f"rows{run}.db")
        with timed(theirs), collector.paused():
            for i in range(0, len(rows), BATCH):
                target.insert_events(rows[i : i + BATCH])
        target = recorder(folder / f"single_rows{run}.db")
        with Ledger.open(folder / f"single{run}.db") as ledger:
            handled(ledger, opening(200))
            for i in range(0, 2_000, 100):  # in turn, since a disk's speed drifts
                with timed(single):
                    for command in made[i : i + 100]:
                        ledger.handle(command)
                with timed(theirs_single):
                    for row in rows[i : i + 100]:
                        target.insert_events([row])
    return {
        "append, batches of 10,000: events/s": len(made) / median(ours),
        "append, batches: ratio to the recorder's inserts (aim 0.35)": median(theirs) / median(ours),
        "append, one at a time: events/s": 100 / median(single),
        "append, one at a time: ratio to the recorder's inserts (aim 0.6)": median(theirs_single) / median(single),
    }


def reading(folder: Path, count: int) -> dict[str, float]:
    """From the log to the leaderboard, against the recorder merely reading the rows."""
    ours: list[float] = []
    theirs: list[float] = []
    scoring: list[float] = []
    store = Store(str(folder / "log0.db"), "main", read_only=True)
    for _ in range(RUNS):
        with timed(theirs), collector.paused():
            after = 0
            while rows := store._recorder.select_events("main", gt=after, limit=2_000):
                after = rows[-1].originator_version
        with timed(ours), Ledger.open(folder / "log0.db") as ledger, collector.paused():
            found = facts(ledger.read())
            Projections(found).prizes("c")
        with timed(scoring):
            Projections(found).scored("c")
    store.close()
    return {
        "log to leaderboard: events/s": count / median(ours),
        "log to leaderboard: ratio to the recorder's reading (aim 0.5)": median(theirs) / median(ours),
        "scoring alone: events/s (aim 1,000,000)": count / median(scoring),
    }


def growing() -> dict[str, float]:
    """Seconds to score one question with 1,000, 10,000 and 100,000 forecasts."""
    seconds = {}
    for count in (1_000, 10_000, 100_000):
        found = _one_question(count)
        taken: list[float] = []
        for _ in range(RUNS):
            with timed(taken):
                Projections(found).scored("c")
        seconds[count] = median(taken)
    measured = seconds[100_000] / seconds[1_000]
    n_log_n = 100 * np.log2(100_000) / np.log2(1_000)
    return {
        "one question, 1,000 forecasts: ms": seconds[1_000] * 1e3,
        "one question, 100,000 forecasts: ms": seconds[100_000] * 1e3,
        "growth from 1,000 to 100,000, over that of n log n (aim 1 or less)": measured / float(n_log_n),
    }


def _one_question(count: int) -> Facts:
    with Ledger.open(":memory:") as ledger:
        handled(ledger, opening(1))
        handled(ledger, forecasts(count, 1, max(count // 5, 1)))
        handled(ledger, resolutions(1))
        return facts(ledger.read())


def peak(log: Path, count: int) -> dict[str, float]:
    """Peak memory of a process that goes from the log to the leaderboard, over one that only imports."""
    bytes_of = {}
    for name, work in (("import", "pass"), ("board", f"replay({str(log)!r}).projections.board('c')")):
        script = f"from replay.replay import replay; {work}; print(open('/proc/self/status').read())"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        bytes_of[name] = int(re.search(r"VmHWM:\s+(\d+) kB", done.stdout)[1]) * 1_024  # type: ignore[index]
    return {"peak memory from log to leaderboard: bytes an event": (bytes_of["board"] - bytes_of["import"]) / count}


def main() -> None:
    """Print the table that the README carries."""
    count = 200_000
    made = forecasts(count, 200, 2_000)
    measured: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        steps: list[Callable[[], dict[str, float]]] = [
            lambda: appending(folder, made),
            lambda: reading(folder, count),
            growing,
            lambda: peak(folder / "log0.db", count),
        ]
        for step in steps:
            measured |= step()
    print("| measured | value |\n| --- | --- |")
    for what, value in measured.items():
        print(f"| {what} | {value:,.0f} |" if value >= 100 else f"| {what} | {value:.2f} |")


if __name__ == "__main__":
    main()
