"""A week in which 1,000 participants trade on 500 binary questions, quoted every ten minutes."""

import gc
import random
import time
import tracemalloc
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import structs

from forecast_ledger.bench.inputs import DAY, START, handle_all, resolutions
from forecast_ledger.bench.logs import recorder, rows_of
from forecast_ledger.bench.timing import RUNS, timed
from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.values import format_instant
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
    RecordDecision,
)
from forecast_ledger.ledger.model.events import PricesQuoted, QuestionOpened
from forecast_ledger.ledger.model.log import decode_rows
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.trading.mark_prices import Marks
from forecast_ledger.projections.trading.portfolios import snapshots

MARKETS, TRADERS, TICKS, TICK, DECISIONS, LEGS = 500, 1_000, 1_008, 600 * 10**6, 10, 5
ARENA = structs.replace(PRESETS["arena-v1"], trading=Trading(period_days=0))


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
    read = facts([records])
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    quoted = sum(map(read.books.quotes.count, read.books.quotes))
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
