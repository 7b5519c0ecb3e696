"""Logs: how fast they are written, read, verified, exported and sealed, against a recorder that keeps the same rows."""

import gc
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

from eventsourcing.persistence import ApplicationRecorder, StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore
from msgspec import json

from forecast_ledger.bench.inputs import (
    BATCH,
    COUNT,
    DAY,
    LEVELS,
    START,
    forecasts,
    handle_all,
    opening,
    quantile_commands,
    resolutions,
)
from forecast_ledger.bench.timing import RUNS, cpu, timed
from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import OpenQuestion, Range, RevokeResolution, SubmitForecast, read
from forecast_ledger.ledger.model.events import ForecastMade
from forecast_ledger.ledger.model.log import unseal_pages
from forecast_ledger.ledger.segments.segment_manifest import read_manifest
from forecast_ledger.ledger.storing.segment_rows import check_rows
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.audit.verify import run_checks, verify
from forecast_ledger.replay.explain.numbers import explain
from forecast_ledger.replay.files import export
from forecast_ledger.replay.files.export import seal
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.replay import replay, summarize_tables
from forecast_ledger.replay.readmodel.runner import Runner, check_model


def rows_of(log: Path) -> list[StoredEvent]:
    """The rows of a log as the library's recorder takes them."""
    store = StoredLog.open(str(log), "main", read_only=True)
    rows = (row for page in store.pages() for row in page)
    stored = [StoredEvent("main", position, "forecast_made.v1", row) for position, row in enumerate(rows, 1)]
    store.close()
    return stored


def read_rows(log: str) -> None:
    """Read the rows of a log with the library's recorder."""
    theirs, after = recorder(Path(log)), 0
    with gc_pause.paused():
        while rows := theirs.select_events("main", gt=after, limit=2_000):
            after = rows[-1].originator_version


def recorder(log: Path) -> ApplicationRecorder:
    """The library's recorder with its defaults, on a file that may be new."""
    recorder = SQLiteApplicationRecorder(SQLiteDatastore(str(log), originator_id_type="text"))
    recorder.create_table()
    return recorder


def appending(folder: Path) -> dict[str, float]:
    """Measure batches and single commands against the recorder's inserts of the same rows."""
    commands = forecasts(COUNT, 200, 2_000)
    ours: list[float] = []
    theirs: list[float] = []
    single: list[float] = []
    theirs_single: list[float] = []
    for run in range(RUNS):
        with Ledger.open(folder / f"log{run}.db") as ledger:
            handle_all(ledger, opening(200))
            with timed(ours):
                handle_all(ledger, commands)
            handle_all(ledger, resolutions(200))
        rows = rows_of(folder / f"log{run}.db")[401 : 401 + len(commands)]
        target = recorder(folder / f"rows{run}.db")
        with timed(theirs), gc_pause.paused():
            for i in range(0, len(rows), BATCH):
                target.insert_events(rows[i : i + BATCH])
        target = recorder(folder / f"single_rows{run}.db")
        with Ledger.open(folder / f"single{run}.db") as ledger:
            handle_all(ledger, opening(200))
            for i in range(0, 2_000, 100):  # alternating, since a disk's speed drifts
                with timed(single):
                    for command in commands[i : i + 100]:
                        ledger.handle(command)
                with timed(theirs_single):
                    for row in rows[i : i + 100]:
                        target.insert_events([row])
    return {
        "append, batches of 10,000: events/s": len(commands) / median(ours),
        "append, batches: ratio to the recorder's inserts (aim 0.35)": median(theirs) / median(ours),
        "append, one at a time: events/s": 100 / median(single),
        "append, one at a time: ratio to the recorder's inserts (aim 0.6)": median(theirs_single) / median(single),
    }


def write_lines(path: str) -> None:
    """A file of a million forecasts on a thousand questions."""
    with Path(path).open("wb") as file:
        file.writelines(json.encode(command) + b"\n" for command in forecasts(1_000_000, 1_000, 2_000))


def bulk(folder: Path) -> dict[str, float]:
    """Measure the command line with a long file against the recorder's inserts of the same rows."""
    ours: list[float] = []
    theirs: list[float] = []
    lines = folder / "forecasts.jsonl"
    _alone("write_lines", lines)
    for run in range(RUNS):
        log = folder / f"bulk{run}.db"
        with Ledger.open(log) as ledger:
            handle_all(ledger, opening(1_000))
        command = [sys.executable, "-m", "forecast_ledger", "append", str(log), str(lines)]
        with timed(ours):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        rows, target = rows_of(log)[2_001:], recorder(folder / f"bulk_rows{run}.db")
        with timed(theirs), gc_pause.paused():
            for i in range(0, len(rows), BATCH):
                target.insert_events(rows[i : i + BATCH])
        del rows
        log.unlink()
    name = "1,000,000 events, append of a file of JSON lines: ratio to the recorder's inserts (aim 0.55)"
    return {name: median(theirs) / median(ours)}


def reading(folder: Path) -> dict[str, float]:
    """Measure the way from the log to the leaderboard against the recorder's reading of the rows."""
    log = season_log(folder)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(RUNS):
        with timed(theirs):
            read_rows(str(log))
        with timed(ours), Ledger.open(log) as ledger, gc_pause.paused():
            log_facts = facts(ledger.read())
            Projections(log_facts).prizes("c")
    return {
        "log to leaderboard: events/s": COUNT / median(ours),
        "log to leaderboard: ratio to the recorder's reading (aim 0.5)": median(theirs) / median(ours),
    }


def sealed(folder: Path) -> dict[str, float]:
    """Measure segments of a million events against their log, in the processor's time.

    One per cent of tail: a log of which all rows but the last hundredth are sealed.
    """
    log, most, part = million_log(folder), folder / "sealed", folder / "sealed99"
    result = seal(log, most)
    export.export(log, part, "segments", as_of=result.checkpoint.position * 99 // 100)
    times = {
        name: cpu(step)
        for name, step in {
            "log": lambda: replay(log),
            "segments": lambda: replay(most, trust="files"),
            "tail": lambda: replay(log, segments=part, trust="files"),
            "verified": lambda: read_rebuilt(most),
            "read": lambda: read_checked(log),
            "writer": lambda: open_writer(log),
            "writer from segments": lambda: open_writer(log, most),
        }.items()
    }
    return {
        "1,000,000 events, segments to facts, digests of files checked: log to facts over it (aim 25)": times["log"]
        / times["segments"],
        "the same with 1 % of tail (aim 10)": times["log"] / times["tail"],
        "1,000,000 events, size of segments over the SQLite file (aim 0.08)": result.bytes / Path(log).stat().st_size,
        "1,000,000 events, full verification of segments over reading and hashing the log (aim 1)": times["verified"]
        / times["read"],
        "1,000,000 events, a writer from the log over one from segments": times["writer"]
        / times["writer from segments"],
    }


def read_checked(log: str | Path) -> None:
    """Read every row of a log, and check its digest."""
    with Log(log).opened() as store:
        for _ in unseal_pages(store.pages()):
            pass


def open_writer(log: str, segments: Path | None = None) -> None:
    """Open a ledger to write, with what it has to know of its log."""
    with Ledger.open(log, segments=segments) as ledger:
        ledger.head()


def read_rebuilt(segments: Path) -> None:
    """Hash every row of segments as it is rebuilt, and compare the chain with the digests of the manifest.

    So `replay(segments, trust="rows")` checks them, on one processor.
    """
    with gc_pause.paused():
        for segment in read_manifest(segments).segments:
            check_rows(segments, segment, segment.before.position, segment.last)


def every_table(log: str) -> list[str]:
    """The digest of every table except those made only on request."""
    return [summary.digest for summary in summarize_tables(replay(log).projections.facts).values()]


def season_log(folder: Path) -> Path:
    """The log of a season, which is written unless a step before has left it."""
    log = folder / "log0.db"
    if not log.exists():
        with Ledger.open(log) as ledger:
            for commands in (opening(200), forecasts(COUNT, 200, 2_000), resolutions(200)):
                handle_all(ledger, commands)
    return log


def million_log(folder: Path) -> str:
    """The log of a million forecasts, which is written unless a step before has left it."""
    log = folder / "million.db"
    if not log.exists():
        _alone("write_million", log)
    return str(log)


def _alone(function: str, path: Path) -> None:
    """Call a function of this module in a process of its own, so that its garbage is not in ours."""
    script = f"from {__name__} import {function}; {function}({str(path)!r})"
    subprocess.run([sys.executable, "-c", script], check=True)


def write_million(log: str) -> None:
    """A log of a million forecasts on a thousand questions."""
    with Ledger.open(log) as ledger:
        for commands in (opening(1_000), forecasts(1_000_000, 1_000, 2_000), resolutions(1_000)):
            handle_all(ledger, commands)


def held_bytes(log: str) -> float:
    """The bytes that a writer holds for a command of a log whose questions are resolved."""
    tracemalloc.start()
    with Ledger.open(log) as ledger:
        before, _ = tracemalloc.get_traced_memory()
        count = ledger.head().position
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / count


def using(folder: Path) -> dict[str, float]:
    """Measure the work of auditors, researchers and backends on a million events against reading the rows."""
    log, model, seconds = million_log(folder), str(folder / "model.db"), dict[str, list[float]]()
    with Ledger.open(log) as ledger:
        events = (recorded.event for page in ledger.read() for recorded in page)
        who = next(event.participant for event in events if isinstance(event, ForecastMade) and event.question == "q0")
    segments = folder / "million-segments"
    seal(log, segments)
    large = ("consensus", "scores", "standing")
    models: dict[str, dict[str, Any]] = {
        "first tables of a read model, with a row for each forecast too": {"optional": large},
        "first tables of a read model, from segments": {"segments": segments},
        "first tables of a read model": {},
    }
    for name, options in models.items():
        for path in folder.glob("model.db*"):
            path.unlink()
        with timed(seconds.setdefault(name, [])), Runner(log, model, **options) as runner:
            runner.refresh()
    steps: dict[str, Callable[[], Any]] = {
        "reading": lambda: read_rows(log),
        "verify": lambda: verify(log),
        "verify by every processor": lambda: run_checks(Log(log), side_by_side=True),
        "verify of segments by every processor": lambda: run_checks(Log(segments), side_by_side=True),
        "replay to the leaderboard": lambda: replay(log).projections.board("c"),
        "the command leaderboard, from start to end": lambda: subprocess.run(
            [sys.executable, "-m", "forecast_ledger", "leaderboard", log, "c"], check=True, capture_output=True
        ),
        "replay of every table, with its digest": lambda: every_table(log),
        "explain of one score, with a read model": lambda: explain(log, "score", "c", "q0", who, model=model),
        "export to CSV": lambda: export.export(log, folder / "out-csv"),
        "export to SQLite": lambda: export.export(log, folder / "out.db", "sqlite"),
        "export to Parquet": lambda: export.export(log, folder / "out", "parquet"),
    }
    for name, step in steps.items():
        for _ in range(1 if name.startswith("export") else RUNS):
            with timed(seconds.setdefault(name, [])):
                step()
    with timed(seconds.setdefault("check of a read model", [])):
        check_model(Log(log), model)
    with timed(seconds.setdefault("start of a runner", [])), Runner(log, model) as runner:
        runner.refresh()
    with (
        timed(seconds.setdefault("start of a runner from segments", [])),
        Runner(log, model, segments=segments) as runner,
    ):
        runner.refresh()
    with Ledger.open(log) as ledger, Runner(log, model) as runner:
        ledger.handle(RevokeResolution(id="u", at=format_instant(START + 40 * DAY), question="q0", reason="bench"))
        runner.refresh()
        for number in range(6):
            at = format_instant(START + 29 * DAY + number)
            command = SubmitForecast(id=f"u{number}", at=at, question="q0", participant="late", probability="0.5")
            ledger.handle(command)
            with timed(seconds.setdefault("refresh of a read model after one event", [])):
                runner.refresh()
    read = median(seconds.pop("reading"))
    aims = {"verify": 2, "verify by every processor": 3, "replay of every table, with its digest": 2.5}
    aims |= {"explain of one score, with a read model": 0.05}
    aims |= {"refresh of a read model after one event": 0.01, "start of a runner from segments": 0.2}
    aims |= {"first tables of a read model, from segments": 2}
    aim = {name: f" (aim {aims[name]})" if name in aims else "" for name in seconds}
    ratios = {
        f"1,000,000 events, {name}: ratio to reading{aim[name]}": median(runs) / read for name, runs in seconds.items()
    }
    return ratios | {"1,000,000 events, bytes that a writer holds for an old command (aim 16)": held_bytes(log)}


def recording(folder: Path) -> dict[str, float]:
    """Measure forecasts of 23 quantiles against binary ones in batches: in memory, on a file, from lines of JSON."""
    at, closes_at = format_instant(START), format_instant(START + 30 * DAY)
    span = Range(lower=0, upper=10**6, levels=tuple(Decimal(level).scaleb(-9) for level in LEVELS), decimals=4)
    question = OpenQuestion(id="w", at=at, question="w", kind="numeric", range=span, opens_at=at, closes_at=closes_at)
    encode, pages = json.Encoder(decimal_format="number").encode, (forecasts(2_000, 1, 50), quantile_commands(2_000))
    lines = [[*map(encode, page)] for page in pages]
    ratios: dict[str, float] = {}
    for store in ("in memory", "on a file"):
        seconds = [[list[float](), list[float]()] for _ in pages]
        for run in range(4 * RUNS):  # alternating, and each at its fastest, since the machine is shared
            for width, page in enumerate(lines):
                path = ":memory:" if store == "in memory" else folder / f"recording{run}.{width}.db"
                with Ledger.open(path) as ledger:
                    handle_all(ledger, [*opening(1), question])
                    with timed(seconds[width][0]):
                        commands = [*map(read, page)]
                    with timed(seconds[width][1]):
                        handle_all(ledger, commands)
        few, many = ([min(part) for part in parts] for parts in seconds)
        ratios[f"recording 23 quantiles, {store}: ratio to recording a probability (aim 2)"] = many[1] / few[1]
        ratios[f"the same with its line of JSON read, {store}"] = sum(many) / sum(few)
    return ratios


def peak(folder: Path) -> dict[str, float]:
    """Measure the peak memory of a process that goes from the log to the leaderboard, less one that only imports."""
    log, bytes_of = season_log(folder), {}
    for name, work in (("import", "pass"), ("board", f"replay({str(log)!r}).projections.board('c')")):
        script = (
            f"from forecast_ledger.replay.reading.replay import replay; {work}; print(open('/proc/self/status').read())"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        bytes_of[name] = int(re.search(r"VmHWM:\s+(\d+) kB", done.stdout)[1]) * 1_024  # type: ignore[index]
    return {"peak memory from log to leaderboard: bytes an event": (bytes_of["board"] - bytes_of["import"]) / COUNT}
