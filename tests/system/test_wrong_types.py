"""Every public function and every field of a command, given a value of each wrong type: only documented errors."""

import asyncio
import inspect
import io
import math
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import Struct, structs

import forecast_ledger as f
from forecast_ledger import Ledger, LedgerError, Receipt, Refused, commands
from forecast_ledger.projections.trading.account_histories import Selection
from forecast_ledger.replay.reference.fields import LINES
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.support.effort import LONG
from tests.support.paths import ROOT

WRONG: dict[str, Any] = {
    "none": None, "true": True, "zero": 0, "minus": -1, "long": 10**400, "2^63": 2**63, "float": 0.5, "nan": math.nan,
    "infinity": math.inf, "decimal": Decimal("sNaN"), "fraction": Fraction(1, 3), "complex": 1j, "empty": "",
    "text": "x", "nul": "\0", "surrogate": "\ud800", "bytes": b"\xff", "bytearray": bytearray(b"x"), "list": [],
    "nested": [[1], None], "texts": ["a", "b"], "tuple": (), "pair": ("a", 1), "set": {1}, "dict": {},
    "keys": {1: None, "a": []}, "object": object(), "class": int, "function": len, "date": date(2026, 1, 1),
    "naive": datetime(2026, 1, 1), "numpy": np.int64(1), "array": np.zeros(2), "path": Path("no/such/file"),
    "file": io.BytesIO(b"x"), "struct": commands.Range(lower=0, upper=1),
    "command": commands.PayPrizes(at="", contest=""), "module": math, "range": range(3),
}  # fmt: skip
POISON = commands.CloseQuestion(id="poison", at="2026-03-01T00:00:00Z", question="nowhere")


def variants(part: Any) -> Iterator[tuple[str, Any]]:
    """A struct with each field replaced by each wrong value, and by itself with each of its parts replaced."""
    for field in part.__struct_fields__:
        value = getattr(part, field)
        for kind, wrong in WRONG.items():
            yield f"{field}: {kind}", structs.replace(part, **{field: wrong})
        for within, changed in nested(value):
            yield f"{field}.{within}", structs.replace(part, **{field: changed})


def nested(value: Any) -> Iterator[tuple[str, Any]]:
    """The value of a field with each of its parts replaced, and as a list where it is a tuple."""
    if isinstance(value, Struct):
        yield from variants(value)
    elif isinstance(value, dict):
        for kind, wrong in WRONG.items():
            yield f"item: {kind}", {**value, next(iter(value)): wrong}
            with suppress(TypeError):  # it cannot be a key
                yield f"key: {kind}", {**value, wrong: next(iter(value.values()))}
    elif isinstance(value, tuple) and value:
        yield "as a list", [*value]
        for kind, wrong in WRONG.items():
            yield f"first: {kind}", (wrong, *value[1:])
        if isinstance(value[0], Struct):
            yield from ((f"first.{within}", (changed, *value[1:])) for within, changed in variants(value[0]))


def test_a_command_with_any_value_in_any_field_is_recorded_or_refused() -> None:
    """In atomic batches with a command that is always refused, so that nothing is kept of what is accepted.

    In a short run, every other value of each field, which are others of the next.
    """
    tried, found = set[tuple[str, str]](), []
    with Ledger.open(":memory:", prizes=prizes_from_log) as ledger:
        for line in LINES:
            command = commands.read(line)
            batch = []
            for number, (what, changed) in enumerate(variants(command)):
                if LONG == 1 and number % 2:
                    continue
                if (case := (type(command).__name__, what)) not in tried:
                    tried.add(case)
                    is_id = what.startswith("id:")
                    batch.append((case, changed if is_id else structs.replace(changed, id=f"variant {len(tried)}")))
            found += faults(ledger, batch)
            ledger.handle(command)
    assert found == []
    assert len(tried) > (16_000 if LONG > 1 else 8_000)


def faults(ledger: Ledger, batch: list[tuple[tuple[str, str], Any]]) -> list[tuple[str, ...]]:
    """The errors of commands that are neither recorded nor refused; a batch is divided until it has one command."""
    try:
        outcomes = ledger.handle_many([*(command for _, command in batch), POISON], atomic=True)
        assert {type(outcome) for outcome in outcomes} <= {Refused, Receipt}
        assert all(str(outcome).isprintable() for outcome in outcomes)
    except Exception as error:
        if len(batch) == 1:
            return [(*batch[0][0], repr(error)[:90])]
        half = len(batch) // 2
        return faults(ledger, batch[:half]) + faults(ledger, batch[half:])
    return []


STORY = ROOT / "data" / "metaculus-2022" / "commands.jsonl"
NAMES = {
    "open": "Ledger.open",
    "open_ledger": "Ledger.open",
    "append": "append_lines",
    "Projections": "Analysis",
}  # those in a message
CALLBACKS = {"on_progress", "on_refusal", "on_message", "clock", "prizes"}  # whose errors are those of the caller
Call = tuple[Callable[..., Any], Callable[[], dict[str, Any]]]  # a function, and the arguments of a call that is right


@pytest.fixture
def offers(tmp_path: Path) -> Iterator[dict[str, Call]]:
    """The calls, as long as what they need is open."""
    with ExitStack() as opened:
        yield calls(tmp_path, opened)


def calls(folder: Path, opened: ExitStack) -> dict[str, Call]:
    """Every function that the package offers, and every method with arguments of its classes, with a call each."""
    log, segments, exported = folder / "season.db", folder / "segments", folder / "exported"
    short = folder / "short.db"  # for what is made of a log row by row
    with f.open(short) as ledger:
        ledger.handle(commands.read(STORY.read_bytes().splitlines()[0]))
    with f.open(log) as ledger, STORY.open("rb") as file:
        f.append(ledger, file)
        pages = [*ledger.read()]
    f.seal(log, segments)
    f.export(log, exported, tables=[])
    model = folder / "tables.db"
    with f.Runner(log, model) as runner:
        runner.refresh()
    ledger, season, number = opened.enter_context(f.open(":memory:")), f.replay(log), iter(range(10**6))
    projections, board = season.projections, season.table("leaderboard")
    which = {"name": "main", "as_of": None, "on_progress": lambda _: None}
    columns = {name: ["a"] for name in ("id", "question", "participant", "probability", "at")}
    own_map = folder / "own.toml"
    own_map.write_text('[[command]]\ntype = "pay_prizes"\nid = "{q}"\nfields = { contest = "{q}" }\n', encoding="utf-8")
    forecasts = [{"question": "rain", "user": "ada", "p": 0.5, "outcome": True}]
    texts = (
        "rules",
        "contest",
        "columns_are",
        "forecaster",
        "number",
        "normalize",
        "instant",
        "zone",
        "opens",
        "closes",
    )
    scoring: dict[str, Any] = dict.fromkeys((*texts, "made_at"), "") | {
        "columns": None,
        "meanings": None,
        "percent": False,
        "day_first": None,
        "location": ":memory:",
        "on_message": lambda _: None,
        "on_refusal": None,
    }
    contest, selection = {"contest": "plain"}, {"contest": "plain", "selection": Selection()}

    def new(suffix: str = "") -> Path:
        return folder / f"{next(number)}{suffix}"

    def opening() -> dict[str, Any]:
        own = {"location": ":memory:", "name": "main", "clock": None, "segments": None, "claims": None}
        return own | {"connect": 1, "turn": 1.5, "statement": 1}

    def storing() -> dict[str, Any]:
        limits = {"connections": 1, "held": 1, "connect": 1, "turn": 1.5, "statement": 1}
        return {"location": ":memory:", **limits, "clock": None, "prizes": None, "claims": None, "on_metric": None}

    store = opened.enter_context(f.Store.open(":memory:"))
    return {
        "open": (f.open, opening),
        "open_ledger": (f.open_ledger, opening),
        "Ledger.open": (f.Ledger.open, lambda: {**opening(), "prizes": None}),
        "Ledger.handle": (ledger.handle, lambda: {"command": POISON, "command_id": "x"}),
        "Ledger.handle_many": (
            ledger.handle_many,
            lambda: {"commands": iter([POISON]), "atomic": False, "recorded_at": None},
        ),
        "Ledger.read": (lambda **given: [*ledger.read(**given)], lambda: {"after": 0}),
        "Ledger.events_of": (ledger.events_of, lambda: {"command_id": "x"}),
        "Ledger.subscribe": (ledger.subscribe, lambda: {"after": 0, "name": None}),
        "AsyncLedger.handle": (awaited(ledger, "handle"), lambda: {"command": POISON, "command_id": "x"}),
        "AsyncLedger.handle_many": (
            awaited(ledger, "handle_many"),
            lambda: {"commands": [POISON], "atomic": False, "recorded_at": None},
        ),
        "AsyncLedger.read": (awaited(ledger, "read"), lambda: {"after": 0}),
        "AsyncLedger.events_of": (awaited(ledger, "events_of"), lambda: {"command_id": "x"}),
        "AsyncLedger.subscribe": (f.AsyncLedger(ledger).subscribe, lambda: {"after": 0}),
        "Store.open": (f.Store.open, storing),
        "Store.ledger": (store.ledger, lambda: {"name": "main"}),
        "Store.ping": (store.ping, lambda: {"timeout": 1.0}),
        "append": (
            f.append,
            lambda: {
                "ledger": ledger,
                "file": io.BytesIO(b"{}"),
                "on_refusal": lambda *_: None,
                "on_progress": lambda _: None,
                "atomic": False,
                "read_ahead": False,
            },
        ),
        "append_frame": (
            f.append_frame,
            lambda: {
                "ledger": ledger,
                "frame": [{"q": "rain"}],
                "map": own_map,
                "on_refusal": lambda *_: None,
                "on_progress": lambda _: None,
                "atomic": False,
            },
        ),
        "score": (f.score, lambda: {"forecasts": forecasts, "answers": None, **scoring}),
        "verify": (f.verify, lambda: {"location": log, **which}),
        "replay": (
            f.replay,
            lambda: {
                "log": log,
                **which,
                "segments": None,
                "trust": "rows",
                "engine": None,
                "tables": ["contests"],
                "memory": None,
            },
        ),
        "explain": (
            lambda log, number, key, **rest: f.explain(log, number, "plain", key, **rest),
            lambda: {"log": log, "number": "prize", "key": "B", **which, "model": None, "every_part": False},
        ),
        "export": (
            f.export,
            lambda: {
                "log": log,
                "out": new(),
                "form": "csv",
                **which,
                "tables": [],
                "force": False,
                "floats": False,
                "memory": None,
            },
        ),
        "restore": (
            f.restore,
            lambda: {"export": exported, "location": new(), "name": "main", "on_progress": lambda _: None},
        ),
        "seal": (
            f.seal,
            lambda: {"log": short, "segments": new(), "name": "main", "rows": 1_024, "on_progress": lambda _: None},
        ),
        "report": (
            f.report,
            lambda: {"log": short, "out": new(".html"), "contests": ("none",), "specs": None, **which},
        ),
        "plot": (f.plot, lambda: {"log": log, "kind": "board", "out": new(".svg"), "contest": "none", **which}),
        "audit": (f.audit, lambda: {"log": log, "out": new(".html"), "late": 1, "checkpoint": None, **which}),
        "facts": (f.facts, lambda: {"pages": pages}),
        "under_rules": (
            f.under_rules,
            lambda: {"projections": projections, **contest, "rules": f.PRESETS["baseline"]},
        ),
        "Runner": (
            f.Runner,
            lambda: {
                "location": log,
                "path": new(),
                "name": "main",
                "on_progress": lambda _: None,
                "segments": None,
                "optional": (),
                "standby": False,
                "rebuild": False,
            },
        ),
        "Runners": (
            f.Runners,
            lambda: {"location": log, "models": f"{new()}{{name}}", "names": None, "optional": (), "held": 1},
        ),
        "ReadModel.open": (f.ReadModel.open, lambda: {"location": model}),
        "ReadModel.rows": (
            opened.enter_context(f.ReadModel.open(model)).rows,
            lambda: {"table": "contests", "at_least": 0, "timeout": 0.1},
        ),
        "WithSegments": (
            f.WithSegments,
            lambda: {"log": log, "segments": segments, "trust": "files", "on_message": None},
        ),
        "ForecastColumns": (f.ForecastColumns, lambda: columns),
        "Projections": (f.Projections, lambda: {"facts": projections.facts, "chunk": 1, "cached": None}),
        "Projections.table": (projections.table, lambda: {"name": "cash"}),
        "Projections.parts": (projections.parts, lambda: {"name": "cash"}),
        "Projections.rows_of": (projections.rows_of, lambda: contest | {"name": "cash"}),
        "Projections.as_table": (projections.as_table, lambda: {"name": "cash", "values": season.table("cash").values}),
        "Projections.score_parts": (
            projections.score_parts,
            lambda: {"participant": "A", "contest": None, "question": None},
        ),
        "Projections.pairwise": (projections.pairwise, lambda: contest | {"first": 2}),
        "Projections.portfolio_snapshots": (
            projections.portfolio_snapshots,
            lambda: {"contest": None, "participant": None, "since": None, "until": None},
        ),
        "Projections.selected_portfolios": (projections.selected_portfolios, lambda: {"selection": Selection()}),
        "Projections.snapshots": (projections.snapshots, lambda: selection),
        **{
            f"Projections.{name}": (getattr(projections, name), lambda: contest)
            for name in (
                "board",
                "boards",
                "brier_sample",
                "contest_parts",
                "implied_returns",
                "intervals",
                "mean_returns",
                "prizes",
                "rank_sets",
                "resolution",
                "shares",
            )
        },
        **{
            f"Projections.{name}": (getattr(projections, name), lambda: contest)
            for name in ("scored", "scored_digest", "tally")
        },
        "Projections.adjusted_intervals": (
            projections.adjusted_intervals,
            lambda: {"part": projections.contest_parts("plain")[0]},
        ),
        "Projections.seed": (projections.seed, lambda: contest | {"table": "intervals"}),
        "Replay.leave_one_out": (season.leave_one_out, lambda: {"contest": "plain", "table": "leaderboard"}),
        "Replay.standing_at": (season.standing_at, lambda: {"at": "close"}),
        "Replay.study": (season.study, lambda: {"table": "brier", "contest": "plain", "by": "tag", "cluster": "group"}),
        "Replay.without": (
            lambda **given: season.without(given["names"], before_close=given["before_close"]),
            lambda: {"names": "A", "before_close": "1h"},
        ),
        "Replay.table": (season.table, lambda: {"name": "cash"}),
        "Table.between": (season.table("questions").between, lambda: {"column": "opens_at", "since": 0, "until": 1}),
        "Table.by": (board.by, lambda: {"column": "contest"}),
        "Table.chart": (board.chart, lambda: {"value": "", "by": ""}),
        "Table.common": (board.common, lambda: {"other": board, "most": 1, "backwards": False}),
        "Table.ids": (board.ids, lambda: {"column": "contest"}),
        "Table.joined": (f.Table.joined, lambda: {"tables": [board]}),
        "Table.numbers": (board.numbers, lambda: {"column": "score"}),
        "Table.only": (board.only, lambda: {"column": "contest", "label": "plain"}),
        "Table.rows_at": (board.rows_at, lambda: {"index": np.zeros(1, np.int64)}),
        "Table.slice": (board.slice, lambda: {"begin": 0, "end": 1}),
        "Table.sorted_by": (lambda **given: board.sorted_by(*given.values()), lambda: {"names": "contest"}),
        "Table.to_arrow": (board.to_arrow, lambda: {"floats": False}),
        "Table.to_polars": (board.to_polars, lambda: {"floats": False}),
        "Table.to_pandas": (board.to_pandas, lambda: {"floats": False}),
        "read": (commands.read, lambda: {"line": "{}"}),
        "read_from": (commands.read_from, lambda: {"participant": "ada", "body": "{}"}),
    }


def awaited(ledger: Ledger, method: str) -> Callable[..., Any]:
    """A method of a ledger on asyncio as a function, which runs it to its end."""

    async def call(given: dict[str, Any]) -> Any:
        made = getattr(f.AsyncLedger(ledger), method)(**given)
        return await made if inspect.isawaitable(made) else [page async for page in made]

    return lambda **given: asyncio.run(call(given))


def fault_of(name: str, argument: str, call: Callable[[], Any]) -> str:
    """The error of a call that is not documented: one that is of no known class, or does not name the argument."""
    try:
        made = call()
        getattr(made, "close", lambda: None)()
    except (LedgerError, ValueError, LookupError, OSError, OverflowError):
        return ""
    except TypeError as error:
        defined = NAMES.get(name, name).replace("Projections.", "(Projections|Analysis).")
        is_named = re.match(rf"{defined}(.__init__)?: {argument} takes ", str(error))
        return "" if is_named else repr(error)
    except Exception as error:
        return repr(error)
    return ""


def test_a_function_with_a_value_of_any_type_for_any_argument_says_which_is_wrong(
    offers: dict[str, Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its result, a documented error, or a TypeError that names the function, the argument and what it takes.

    In a short run, every other value for each argument, which are others for the next.
    """
    monkeypatch.chdir(tmp_path)
    found, tried = [], 0
    for name, (function, right) in offers.items():
        for number, (argument, (kind, wrong)) in enumerate(product(right(), WRONG.items())):
            if (LONG == 1 and number % 2) or (argument in CALLBACKS and callable(wrong)):
                continue
            tried += 1
            if fault := fault_of(name, argument, partial(function, **right() | {argument: wrong})):
                found.append((name, argument, kind, fault[:90]))
    assert found == []
    assert tried > 2_500


def offered() -> set[str]:
    """The functions of the door, and the methods of its classes that have arguments."""
    found = set[str]()
    for name in f.__all__:
        thing = getattr(f, name)
        if inspect.isclass(thing):
            is_data = issubclass(thing, Exception | Struct | tuple)
            methods = [] if is_data else inspect.getmembers(thing, callable)
            named = {method: len(inspect.signature(part).parameters) for method, part in methods if method[0] != "_"}
            bound = {method for method, _ in methods if inspect.ismethod(getattr(thing, method))}
            found |= {f"{name}.{method}" for method, count in named.items() if count > (method not in bound)}
        elif callable(thing):
            found.add(name)
    return found


def test_every_function_and_method_of_the_door_is_in_the_test(offers: dict[str, Call]) -> None:
    """But for what runs without end, and what only the package itself calls."""
    ours = {"Runner.follow", "Runners.follow", "WithSegments.sealed", "ForecastColumns.of_quick", "Ledger.record_sent"}
    assert offered() - {*offers} == ours | {"ForecastColumns.count", "ForecastColumns.index"}
