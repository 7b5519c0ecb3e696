"""Honest timings: python -m tests.bench prints ratios within one run, since machines differ and are shared.

200,000 binary forecasts on 200 questions by 2,000 participants, with seeded random times and probabilities; five times
as many on 1,000 questions; single questions of the sizes at which the published backend's own times are known; and a
week in which 1,000 participants trade on 500 binary questions, quoted every ten minutes.
"""

import gc
import random
import re
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from decimal import Decimal
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from eventsourcing.persistence import ApplicationRecorder, StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore
from msgspec import json, structs

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import CUMULATIVE, PROBABILITY, format_instant
from forecast_ledger.ledger.deciding.decider import decide, evolve
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AnyCommand,
    Bet,
    EnrolParticipant,
    OpenContest,
    OpenQuestion,
    Prices,
    Quote,
    Range,
    RecordDecision,
    ResolveQuestion,
    RevokeResolution,
    SubmitForecast,
    read,
)
from forecast_ledger.ledger.model.events import ForecastMade, NumericRange, PricesQuoted, QuestionOpened
from forecast_ledger.ledger.model.log import decode_rows, unseal_pages
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.store import Store
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.core.arrays import Int64Array, half_even_many
from forecast_ledger.projections.facts.columns import Facts, Forecasts
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.range_kernels import Numbers
from forecast_ledger.projections.scores.scored_questions import scored_questions
from forecast_ledger.projections.scores.time_weighted import SLICE, scores
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.projections.trading.mark_prices import Marks
from forecast_ledger.projections.trading.portfolios import snapshots
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.explain import explain_scores
from forecast_ledger.replay.files import export
from forecast_ledger.replay.files.export import seal
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.reading.replay import replay, summarize_tables
from forecast_ledger.replay.readmodel.runner import Runner, check_model
from tests.support.crowds import crowd
from tests.support.servers import PG_CTL, postgres
from tests.system.test_crowds import beside

with warnings.catch_warnings():  # its import warns
    warnings.simplefilter("ignore")
    import scoringrules  # type: ignore[import-untyped]

_LOWER = (10, 25, *range(50, 500, 50))  # 1e-3
LEVELS = tuple(level * 10**6 for level in (*_LOWER, 500, *(1_000 - level for level in reversed(_LOWER))))
START = 1_767_225_600_000_000  # µs
DAY = 86_400 * 10**6
BATCH = 10_000
RUNS = 3
FOUR = ("baseline", "peer-2024-03", "spot-peer", "relative-2022-04")
MARKETS, TRADERS, TICKS, TICK, DECISIONS, LEGS = 500, 1_000, 1_008, 600 * 10**6, 10, 5
ARENA = structs.replace(PRESETS["arena-v1"], trading=Trading(period_days=0))
RULES = {
    **PRESETS,
    "recency": structs.replace(PRESETS["relative-2022-04"], consensus="community", consensus_weights="recency"),
}


def opening(questions: int, *, numeric: bool = False) -> list[AnyCommand]:
    """A contest over so many questions of 30 days."""
    at, closes_at = format_instant(START), format_instant(START + 30 * DAY)
    commands: list[AnyCommand] = [OpenContest(id="c", at=at, contest="c", rules="relative-2022-04", pool=10_000)]
    for q in range(questions):
        fields: dict[str, Any] = {"question": f"q{q}", "opens_at": at, "closes_at": closes_at}
        kind: dict[str, Any] = (
            {"kind": "numeric", "range": Range(lower=0, upper=100)} if numeric else {"kind": "binary"}
        )
        commands.append(OpenQuestion(id=f"o{q}", at=at, **kind, **fields))
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


def cdfs(count: int, participants: int) -> list[AnyCommand]:
    """Forecasts of a numeric question: 201 points each."""
    chance = random.Random(2)
    step = 29 * DAY // count
    commands: list[AnyCommand] = []
    for i in range(count):
        inner = sorted(chance.randrange(10**10) for _ in range(199))
        cdf = tuple(Decimal(height).scaleb(-10) for height in (0, *inner, 10**10))
        at, who = format_instant(START + 1 + i * step), f"p{chance.randrange(participants)}"
        commands.append(SubmitForecast(id=f"f{i}", at=at, question="q0", participant=who, cdf=cdf))
    return commands


def resolutions(questions: int, *, numeric: bool = False, after: int = 31 * DAY) -> list[AnyCommand]:
    """Every other question resolves yes; a numeric one as 28.4."""
    at = format_instant(START + after)
    return [
        ResolveQuestion(id=f"r{q}", at=at, question=f"q{q}", value="28.4")
        if numeric
        else ResolveQuestion(id=f"r{q}", at=at, question=f"q{q}", outcome=("yes", "no")[q % 2])
        for q in range(questions)
    ]


def handle_all(ledger: Ledger, commands: list[AnyCommand]) -> None:
    """Append in batches; every command must be accepted."""
    for i in range(0, len(commands), BATCH):
        if not all(isinstance(outcome, Receipt) for outcome in ledger.handle_many(commands[i : i + BATCH])):
            raise AssertionError("a command of the benchmark was refused")


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    """Append the seconds that the block takes; garbage is collected before it starts."""
    gc.collect()
    before = time.perf_counter()
    yield
    into.append(time.perf_counter() - before)


def rows_of(log: Path) -> list[StoredEvent]:
    """The rows of a log as the library's recorder takes them."""
    store = Store.open(str(log), "main", read_only=True)
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


def appending(folder: Path, commands: list[AnyCommand]) -> dict[str, float]:
    """Measure batches and single commands against the recorder's inserts of the same rows."""
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
    subprocess.run(
        [sys.executable, "-c", f"from tests.bench import write_lines; write_lines({str(lines)!r})"], check=True
    )
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


def reading(folder: Path, count: int) -> dict[str, float]:
    """Measure the way from the log to the leaderboard against the recorder's reading of the rows."""
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(RUNS):
        with timed(theirs):
            read_rows(str(folder / "log0.db"))
        with timed(ours), Ledger.open(folder / "log0.db") as ledger, gc_pause.paused():
            log_facts = facts(ledger.read())
            Projections(log_facts).prizes("c")
    return {
        "log to leaderboard: events/s": count / median(ours),
        "log to leaderboard: ratio to the recorder's reading (aim 0.5)": median(theirs) / median(ours),
    }


def sealed(folder: Path) -> dict[str, float]:
    """Measure segments of a million events against their log, in the processor's time.

    One per cent of tail: a log of which all rows but the last hundredth are sealed.
    """
    place, most, part = str(folder / "million.db"), folder / "sealed", folder / "sealed99"
    found = seal(place, most)
    export.export(place, part, "segments", as_of=found.checkpoint.position * 99 // 100)
    times = {
        name: cpu(step)
        for name, step in {
            "log": lambda: replay(place),
            "segments": lambda: replay(most, trust="files"),
            "tail": lambda: replay(place, segments=part, trust="files"),
            "verified": lambda: read_rebuilt(most),
            "read": lambda: read_checked(place),
            "writer": lambda: open_writer(place),
            "writer from segments": lambda: open_writer(place, most),
        }.items()
    }
    return {
        "1,000,000 events, segments to facts, digests of files checked: log to facts over it (aim 25)": times["log"]
        / times["segments"],
        "the same with 1 % of tail (aim 10)": times["log"] / times["tail"],
        "1,000,000 events, size of segments over the SQLite file (aim 0.08)": found.bytes / Path(place).stat().st_size,
        "1,000,000 events, full verification of segments over reading and hashing the log (aim 1)": times["verified"]
        / times["read"],
        "1,000,000 events, a writer from the log over one from segments": times["writer"]
        / times["writer from segments"],
    }


def cpu(step: Callable[[], Any]) -> float:
    """The least seconds of the processor of a few runs."""
    taken = []
    for _ in range(RUNS):
        begun = time.process_time()
        step()
        taken.append(time.process_time() - begun)
    return min(taken)


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
    """Rebuild every row of segments; each is hashed, and the chain is compared with the digests of the manifest."""
    with Log(segments).opened() as store:
        for _ in store.pages():
            pass


def every_table(log: str) -> list[str]:
    """The digest of every table except those made only on request."""
    return [summary.digest for summary in summarize_tables(replay(log).projections.facts).values()]


def million(log: str) -> None:
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
    log, model, seconds = str(folder / "million.db"), str(folder / "model.db"), dict[str, list[float]]()
    script = f"from tests.bench import million; million({log!r})"  # in a process of its own, for its garbage
    subprocess.run([sys.executable, "-c", script], check=True)
    with Ledger.open(log) as ledger:
        events = (recorded.event for page in ledger.read() for recorded in page)
        who = next(event.participant for event in events if isinstance(event, ForecastMade) and event.question == "q0")
    source = Log(log)
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
        "replay to the leaderboard": lambda: replay(log).projections.board("c"),
        "replay of every table, with its digest": lambda: every_table(log),
        "explain of one score, with a read model": lambda: explain_scores.score(source, "c", "q0", who, model=model),
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
    aims = {"verify": 2, "replay of every table, with its digest": 2.5, "explain of one score, with a read model": 0.05}
    aims |= {"refresh of a read model after one event": 0.01, "start of a runner from segments": 0.2}
    aims |= {"first tables of a read model, from segments": 2}
    aim = {name: f" (aim {aims[name]})" if name in aims else "" for name in seconds}
    ratios = {
        f"1,000,000 events, {name}: ratio to reading{aim[name]}": median(runs) / read for name, runs in seconds.items()
    }
    return ratios | {"1,000,000 events, bytes that a writer holds for an old command (aim 16)": held_bytes(log)}


def scored(facts: Facts, names: tuple[str, ...]) -> float:
    """The seconds of this process to score a contest under each of these presets; the median of several runs."""
    seconds: list[float] = []
    contest = facts.contests["c"]
    opened = contest.opened
    for _ in range(RUNS):
        gc.collect()
        before = time.process_time()
        for name in names:
            contest.opened = structs.replace(opened, rules=RULES[name])
            Projections(facts).scored("c")
        seconds.append(time.process_time() - before)
    contest.opened = opened
    return median(seconds)


def scoring(log: Path, count: int) -> dict[str, float]:
    """Measure the scoring of a season under each rule set, and of one binary and one numeric question."""
    with Ledger.open(log) as ledger:
        season = facts(ledger.read())
    binary, numeric = _one_question(10_000, 1_000), _one_question(2_000, 200, numeric=True)
    return {
        "scoring, baseline: events/s (aim 1,000,000)": count / scored(season, ("baseline",)),
        "scoring, peer: events/s (aim 1,000,000)": count / scored(season, ("peer-2024-03",)),
        "scoring, relative to the median: events/s (aim 1,000,000)": count / scored(season, ("relative-2022-04",)),
        "scoring, relative to recency-weighted medians: events/s (aim 100,000)": count / scored(season, ("recency",)),
        "one binary question, 1,000 forecasters, 10,000 forecasts, all four scores: ms (aim 100)": 1e3
        * scored(binary, FOUR),
        "one numeric question, 200 forecasters, 2,000 cdfs of 201 points, all four scores: ms": 1e3
        * scored(numeric, FOUR),
    }


def quantile_commands(count: int) -> list[AnyCommand]:
    """Forecasts of 23 quantiles of up to four decimals."""
    chance, commands = random.Random(3), list[AnyCommand]()
    for i in range(count):
        quantiles = tuple(Decimal(number).scaleb(-4) for number in sorted(chance.choices(range(10**7), k=len(LEVELS))))
        at = format_instant(START + 1 + i)
        commands.append(SubmitForecast(id=f"f{i}", at=at, question="w", participant=f"p{i % 50}", quantiles=quantiles))
    return commands


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


def plain_pinball(quantiles: Int64Array, answers: Int64Array) -> Int64Array:
    """The losses of `pinball` on quantiles of four decimals, without its checks for overflow."""
    gaps = quantiles - answers[:, None]
    slopes = np.where(gaps > 0, PROBABILITY, 0) - np.array(LEVELS)
    return half_even_many((gaps * slopes).sum(axis=1), len(LEVELS) * PROBABILITY // 20_000)


def plain_crps(heights: Int64Array, at: Int64Array) -> Int64Array:
    """The arithmetic of `crps` for answers at the lower edge of a bin; its sums may wrap here."""
    row, bins = np.arange(len(heights)), heights.shape[1] - 1
    gaps = np.where(np.arange(bins + 1) > at[:, None], CUMULATIVE - heights, heights)
    before, after = gaps[:, :-1], gaps[:, 1:]
    pieces = before * before + before * after + after * after
    low, high = CUMULATIVE - heights[row, at], CUMULATIVE - heights[row, at + 1]
    pieces[row, at] = low * low + low * high + high * high
    return half_even_many(pieces.sum(axis=1), 3 * bins * 10**8)


def fastest(step: Callable[[], Any]) -> float:
    """The seconds of the fastest of several runs."""
    seconds: list[float] = []
    for _ in range(2 * RUNS):
        with timed(seconds):
            step()
    return min(seconds)


def kernels() -> dict[str, float]:
    """Measure 241,933 forecasts of 23 quantiles and 20,000 cdfs of 201 points against plain NumPy and scoringrules."""
    chance = np.random.default_rng(4)
    question, count = np.sort(chance.integers(0, 2_000, 241_933)), len(LEVELS)
    quantiles = np.sort(chance.integers(0, 10**7, (len(question), count)), axis=1)
    units = chance.integers(0, 10**3, 2_000)
    span = NumericRange(lower="0", upper="1000000", levels=LEVELS, decimals=4)
    start, ones = np.arange(len(question)) * count, np.ones(len(question), np.int64)
    pinball_numbers = Numbers(
        quantiles.reshape(-1), start, count * ones, ones, question, [span] * 2_000, list(map(str, units))
    )
    answers = (units * 10**4)[question]
    if not (KERNELS["pinball"].of_numbers(pinball_numbers) == plain_pinball(quantiles, answers)).all():  # type: ignore[misc]
        raise AssertionError("plain NumPy gives other losses")
    values, floats, levels = answers / 10**4, quantiles / 10**4, np.array(LEVELS) / PROBABILITY
    pinball = fastest(lambda: KERNELS["pinball"].of_numbers(pinball_numbers))  # type: ignore[misc]
    heights = np.sort(chance.integers(0, CUMULATIVE, (20_000, 201)), axis=1)
    at, ones = np.arange(20_000) % 200, np.ones(20_000, np.int64)
    bins = NumericRange(lower="0", upper="200", open_lower=True, open_upper=True, bins=200)
    places = list(map(str, range(200)))
    crps_numbers = Numbers(heights.reshape(-1), np.arange(20_000) * 201, 201 * ones, ones, at, [bins] * 200, places)
    crps = fastest(lambda: KERNELS["crps"].of_numbers(crps_numbers))  # type: ignore[misc]
    parts, shares = np.clip(at[:, None] - np.arange(200), 0, 1), heights / CUMULATIVE
    ends = shares[:, :-1], 1 - shares[:, 1:]
    return {
        "241,933 forecasts of 23 quantiles, pinball: time over plain NumPy's (aim 1.5)": pinball
        / fastest(lambda: plain_pinball(quantiles, answers)),
        "the same: time over scoringrules'": pinball
        / fastest(lambda: scoringrules.crps_quantile(values, floats, levels)),
        "20,000 cdfs of 201 points, crps: time over plain NumPy's (aim 1.5)": crps
        / fastest(lambda: plain_crps(heights, at)),
        "the same: time over scoringrules', bin by bin": crps
        / fastest(lambda: scoringrules.crps_uniform(parts, 0.0, 1.0, *ends).mean(axis=1)),
    }


def growing() -> dict[str, float]:
    """Measure the scoring of one question with 10,000 and with 1,000,000 forecasts under all four rules."""
    few, many = (scored(_one_question(count, count // 5), FOUR) for count in (10_000, 1_000_000))
    n_log_n = 100 * np.log2(1_000_000) / np.log2(10_000)
    busy = _one_question(1_000_000, 2_000)
    contest = busy.contests["c"]
    questions = scored_questions(busy, contest)  # under the preset relative-2022-04
    sliced, whole = (fastest(partial(scores, busy, [contest], questions, slice_size=size)) for size in (SLICE, 0))
    return {
        "one question, 1,000,000 forecasts by 2,000 participants, in slices of time: time over whole (aim 1)": sliced
        / whole,
        "one question, 1,000,000 forecasts, all four scores: ms": many * 1e3,
        "growth from 10,000 to 1,000,000, over that of n log n (aim 1 or less)": many / few / float(n_log_n),
    }


def _one_question(count: int, participants: int, *, numeric: bool = False) -> Facts:
    with Ledger.open(":memory:") as ledger:
        handle_all(ledger, opening(1, numeric=numeric))
        handle_all(ledger, cdfs(count, participants) if numeric else forecasts(count, 1, participants))
        handle_all(ledger, resolutions(1, numeric=numeric))
        return facts(ledger.read())


def many_contests() -> dict[str, float]:
    """Measure the tables of 2,000 contests of one question each against those of one contest of 2,000 questions."""
    one, few, many = (_seconds_of_tables(_season(*size)) for size in ((2_000, 1), (500, 500), (2_000, 2_000)))
    return {
        "2,000 contests of one question, every table, over one contest of 2,000 (aim 5)": many / one,
        "the same: growth from 500 contests to 2,000 (aim 4)": many / few,
    }


def unlike_lengths() -> dict[str, float]:
    """Measure a board of one row on questions that are all open for different times, against scoring them."""
    measured = {}
    for count in (10_000, 40_000):
        projections = Projections(_season(count, 1, unlike=True))
        scoring: list[float] = []
        board: list[float] = []
        with timed(scoring):
            projections.scored("c0")
        with timed(board):
            projections.table("leaderboard")
        measured[count] = (scoring[0], board[0])
    return {
        "board of one row, 40,000 questions of unlike lengths, over scoring them (aim 5)": measured[40_000][1]
        / measured[40_000][0],
        "the same: growth from 10,000 questions to 40,000 (aim 4)": measured[40_000][1] / measured[10_000][1],
    }


def unlike_sums() -> dict[str, float]:
    """Measure the sums and the board of 2,000 participants on 4,000 questions of unlike lengths, against scoring."""
    projections = Projections(_crowd(4_000, 2_000, 1_000_000))
    seconds: dict[str, list[float]] = {"scored": [], "tally": [], "board": [], "prizes": []}
    for name, into in seconds.items():
        with timed(into):
            getattr(projections, name)("c0")
    [scoring], [tally], [board], [prizes] = seconds.values()
    return {
        "tally of 2,000 participants on 4,000 questions of unlike lengths, over scoring them (aim 1.5)": tally
        / scoring,
        "the same: board": board / scoring,
        "the same: prizes": prizes / scoring,
    }


def _crowd(questions: int, participants: int, count: int) -> Facts:
    """The season of `_season`, unlike, with so many forecasts of many participants in place of its own."""
    facts, chance = _season(questions, 1, unlike=True), np.random.default_rng(4)
    for number in range(participants):
        facts.participant_codes.add(f"p{number}")
    own, numbers = np.arange(count), chance.integers(10**6, 999 * 10**6, count)
    question = np.sort(chance.integers(0, questions, count))
    at = START + 1 + chance.permutation(count) * (28 * DAY // count)
    at = at[np.lexsort((at, question))]
    position = facts.as_of + 1 + np.argsort(np.argsort(at))
    facts.held = Forecasts(
        position=position,
        at=at,
        recorded_at=at,
        question=question,
        participant=chance.integers(0, participants, count),
        made=np.ones(count, bool),
        until=np.full(count, facts.forecasts.until[0]),
        retracted=np.full(count, facts.forecasts.retracted[0]),
        start=2 * own,
        chances=np.stack([numbers, PROBABILITY - numbers], axis=1).reshape(-1),
    )
    facts.as_of = int(position.max())
    facts.statuses.clear()
    return facts


def drawing_again() -> dict[str, float]:
    """Measure the intervals of 100 participants on 1,000 questions, 1,999 replicates with ranks and prizes."""
    facts = _crowd(1_000, 100, 400_000)
    contest = facts.contests["c0"]
    contest.opened = structs.replace(contest.opened, rules=PRESETS["peer-2024-03"])
    projections = Projections(facts)
    projections.prizes("c0")
    seconds: list[float] = []
    with timed(seconds):
        projections.table("intervals")
    return {"intervals of 100 participants on 1,000 questions, 1,999 replicates: s (aim 2)": seconds[0]}


def refusing() -> dict[str, float]:
    """Measure the refusal of a score_parts table that would have 8 million rows."""
    projections = Projections(_one_question(4_000, 10**9))
    projections.scored("c")
    seconds: list[float] = []
    refused = False
    with timed(seconds):
        try:
            projections.table("score_parts")
        except Refused:
            refused = True
    if not refused:
        raise AssertionError("the table was not refused")
    return {"score_parts of one question with 4,000 forecasters, refused: ms": 1_000 * seconds[0]}


def _season(questions: int, contests: int, *, unlike: bool = False) -> Facts:
    """A forecast on each question, these divided among contests; unlike: no two questions are open equally long."""
    chance, at = random.Random(4), format_instant(START)
    commands: list[AnyCommand] = [
        OpenContest(id=f"c{c}", at=at, contest=f"c{c}", rules="relative-2022-04", pool=100) for c in range(contests)
    ]
    for q in range(questions):
        closes_at = format_instant(START + 30 * DAY - unlike * chance.randrange(DAY))
        fields: dict[str, Any] = {"question": f"q{q}", "kind": "binary", "opens_at": at, "closes_at": closes_at}
        commands.append(OpenQuestion(id=f"o{q}", at=at, **fields))
        commands.append(AddQuestion(id=f"a{q}", at=at, contest=f"c{q % contests}", question=f"q{q}"))
        forecast: dict[str, Any] = {"question": f"q{q}", "participant": "ada", "probability": Decimal("0.7")}
        commands.append(SubmitForecast(id=f"f{q}", at=at, **forecast))
    with Ledger.open(":memory:", clock=lambda: START) as ledger:  # what is drawn depends on the instants
        handle_all(ledger, [*commands, *resolutions(questions)])
        return facts(ledger.read())


def _seconds_of_tables(facts: Facts) -> float:
    seconds: list[float] = []
    with timed(seconds):
        summarize_tables(facts)
    return seconds[0]


def peak(log: Path, count: int) -> dict[str, float]:
    """Measure the peak memory of a process that goes from the log to the leaderboard, less one that only imports."""
    bytes_of = {}
    for name, work in (("import", "pass"), ("board", f"replay({str(log)!r}).projections.board('c')")):
        script = (
            f"from forecast_ledger.replay.reading.replay import replay; {work}; print(open('/proc/self/status').read())"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        bytes_of[name] = int(re.search(r"VmHWM:\s+(\d+) kB", done.stdout)[1]) * 1_024  # type: ignore[index]
    return {"peak memory from log to leaderboard: bytes an event": (bytes_of["board"] - bytes_of["import"]) / count}


def arena() -> list[AnyCommand]:
    """A trading contest on questions that are open for more than the week."""
    at, closes_at = format_instant(START), format_instant(START + 8 * DAY)
    commands: list[AnyCommand] = [OpenContest(id="c", at=at, contest="c", rules=ARENA)]
    for q in range(MARKETS):
        fields: dict[str, Any] = {"kind": "binary", "opens_at": at, "closes_at": closes_at}
        commands.append(OpenQuestion(id=f"o{q}", at=at, question=f"q{q}", **fields))
        commands.append(AddQuestion(id=f"a{q}", at=at, contest="c", question=f"q{q}"))
    return commands + [EnrolParticipant(id=f"e{p}", at=at, contest="c", participant=f"p{p}") for p in range(TRADERS)]


def quotes(ticks: range) -> list[AnyCommand]:
    """The prices of every question at each of these ticks."""
    chance = random.Random(ticks.start)
    commands: list[AnyCommand] = []
    for tick in ticks:
        at = format_instant(START + tick * TICK)
        drawn = [Decimal(chance.randrange(300, 700)).scaleb(-3) for _ in range(MARKETS)]
        every = tuple(Prices(question=f"q{q}", prices={"yes": price}) for q, price in enumerate(drawn))
        commands.append(Quote(id=f"t{tick}", at=at, source="bench", quoted_at=at, quotes=every))
    return commands


def decided(number: int, tick: int) -> list[AnyCommand]:
    """Everybody bets on five more questions."""
    chance, at = random.Random(number), format_instant(START + tick * TICK)
    commands: list[AnyCommand] = []
    for p in range(TRADERS):
        markets = [f"q{(p + 7 * (number * LEGS + leg)) % MARKETS}" for leg in range(LEGS)]
        bets = tuple(
            Bet(market_id=q, side=chance.choice(("yes", "no")), amount=chance.randrange(50, 100)) for q in markets
        )
        fields: dict[str, Any] = {"period": number + 1, "action": "BET", "bets": bets, "reasoning": "bench"}
        commands.append(RecordDecision(id=f"d{number}.{p}", at=at, contest="c", participant=f"p{p}", **fields))
    return commands


def trading(folder: Path) -> dict[str, float]:
    """Measure a week of quotes; everybody decides ten times on the first day, and half of the questions resolve."""
    ours: list[float] = []
    theirs: list[float] = []
    with Ledger.open(folder / "arena.db") as ledger:
        handle_all(ledger, arena())
        for number, ticks in enumerate([*(range(n, n + 10) for n in range(0, 100, 10)), range(100, TICKS)]):
            for begin in range(ticks.start, ticks.stop, 100):
                commands = quotes(range(begin, min(begin + 100, ticks.stop)))
                with timed(ours):
                    _ = [ledger.handle(command) for command in commands]
            if number < DECISIONS:
                handle_all(ledger, decided(number, ticks[-1]))
        handle_all(ledger, resolutions(MARKETS // 2, after=(TICKS - 6) * TICK))
        log_facts = facts(ledger.read())
    rows = [row for row in rows_of(folder / "arena.db") if b'"prices_quoted.v1"' in row.state]
    target = recorder(folder / "arena_rows.db")
    with timed(theirs):
        for row in rows:
            target.insert_events([row])
    return {
        "quotes of 500 questions in one command, one at a time: quotes/s": MARKETS * TICKS / sum(ours),
        "the same: ratio to the recorder's inserts of as many rows": sum(theirs) / sum(ours),
        "trades decided, five a decision, without the store: trades/s (aim 50,000)": DECISIONS
        * TRADERS
        * LEGS
        / trades(),
        **_quotes_read(folder / "arena.db"),
        **portfolios(log_facts),
    }


def _quotes_read(log: Path) -> dict[str, float]:
    """Measure the reading of the rows with quotes, and the memory that facts then hold of them."""
    rows = decode_rows([row.state for row in rows_of(log)])
    records = [recorded for recorded in rows if type(recorded.event) in {QuestionOpened, PricesQuoted}]
    seconds: list[float] = []
    for _ in range(RUNS):
        gc.collect()
        with timed(seconds):
            facts([records])
    tracemalloc.start()
    found = facts([records])
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    quoted = sum(map(found.books.quotes.count, found.books.quotes))
    return {
        "the same, from decoded rows to facts: quotes/s (aim 144,000)": quoted / median(seconds),
        "the same: bytes held a quote (aim 40)": held / quoted,
    }


def trades() -> float:
    """The seconds to decide everybody's bets and to evolve the state; the median of several runs."""
    runs: list[float] = []
    for _ in range(RUNS):
        state, seconds, position = State(), 0.0, 0
        pages = [arena(), *(page for n in range(DECISIONS) for page in (quotes(range(n, n + 1)), decided(n, n)))]
        for page in pages:
            gc.collect()
            before = time.process_time()
            with gc_pause.paused():
                for command in page:
                    for event in decide(command, state, 0):
                        position += 1
                        for table, key, value in evolve(event, state, position):
                            table[key] = value
            seconds += (time.process_time() - before) * isinstance(page[0], RecordDecision)
        runs.append(seconds)
    return median(runs)


def portfolios(facts: Facts) -> dict[str, float]:
    """Measure snapshots with all their figures: rows a second, and memory."""
    seconds: list[float] = []
    for _ in range(RUNS):
        gc.collect()
        before = time.process_time()
        with gc_pause.paused():
            table = snapshots(facts, Marks(facts), "c")
            _ = table.positions_value, table.total, table.profit, table.unrealised, table.profit_percent
        seconds.append(time.process_time() - before)
    rows = len(table.at)
    del table
    tracemalloc.start()
    snapshots(facts, Marks(facts), "c")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "snapshots of 1,000 portfolios of 50 positions: rows/s (aim 500,000)": rows / median(seconds),
        "the same: peak memory, bytes a row": peak_bytes / rows,
    }


def crowded(folder: Path) -> dict[str, float]:
    """Measure eight writers of one ledger against one, and single commands beside a large append, on each store."""
    stores: dict[str, AbstractContextManager[str]] = {"SQLite": nullcontext(str(folder / "crowd.db"))}
    if PG_CTL:
        stores["PostgreSQL"] = postgres()
    measured: dict[str, float] = {}
    for store, started in stores.items():
        with started as location:
            pairs = [(crowd(location, f"one {n}", 1, 800), crowd(location, f"all {n}", 8, 200)) for n in range(RUNS)]
            counts, trickle = beside(location, "beside", 20_000, rate=20)
        if counts["accepted"] != 20_000 or trickle.found.errors or any(crowd_run.errors for _, crowd_run in pairs):
            raise AssertionError("a command of the benchmark was not recorded")
        measured |= {
            f"{store}, eight writers: ratio to one writer's rate (aim 0.5)": median(
                eight.rate / one.rate for one, eight in pairs
            ),
            f"{store}, eight writers: ms that 99 of 100 commands take at most (aim 1,000)": 1e3
            * median(eight.percentile(99) for _, eight in pairs),
            f"{store}, 20 commands a second beside 20,000 lines: ms that 99 of 100 take at most (aim 1,000)": 1e3
            * trickle.found.percentile(99),
        }
    return measured


def main() -> None:
    """Print the rows of docs/benchmarks.md as they are measured, of all steps or of those that the arguments name."""
    count = 200_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        steps: dict[str, Callable[[], dict[str, float]]] = {
            "using": lambda: using(folder),
            "bulk": lambda: bulk(folder),
            "appending": lambda: appending(folder, forecasts(count, 200, 2_000)),
            "reading": lambda: reading(folder, count),  # this, scoring and peak read the log that appending leaves
            "sealed": lambda: sealed(folder),  # reads the log that using leaves
            "scoring": lambda: scoring(folder / "log0.db", count),
            "growing": growing,
            "many_contests": many_contests,
            "unlike_lengths": unlike_lengths,
            "unlike_sums": unlike_sums,
            "drawing_again": drawing_again,
            "refusing": refusing,
            "recording": lambda: recording(folder),
            "kernels": kernels,
            "peak": lambda: peak(folder / "log0.db", count),
            "trading": lambda: trading(folder),
            "crowded": lambda: crowded(folder),
        }
        print("| measured | value |\n| --- | --- |")
        for step in sys.argv[1:] or steps:
            for row, value in steps[step]().items():
                digits = 0 if value >= 100 else 2 if value >= 0.1 else 4
                print(f"| {row} | {value:,.{digits}f} |", flush=True)


if __name__ == "__main__":
    main()
