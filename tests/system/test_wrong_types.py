"""Every public function and every field of a command, given a value of each wrong type: only documented errors."""

import io
import math
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, structs

from forecast_ledger import Ledger, Receipt, Refused, commands
from forecast_ledger.replay.reference.examples import LINES
from forecast_ledger.replay.writing.pay import prizes_from_log

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
    """In atomic batches with a command that is always refused, so that nothing is kept of what is accepted."""
    tried, found = set[tuple[str, str]](), []
    with Ledger.open(":memory:", prizes=prizes_from_log) as ledger:
        for line in LINES:
            command = commands.read(line)
            batch = []
            for what, changed in variants(command):
                if (case := (type(command).__name__, what)) not in tried:
                    tried.add(case)
                    is_id = what.startswith("id:")
                    batch.append((case, changed if is_id else structs.replace(changed, id=f"variant {len(tried)}")))
            found += faults(ledger, batch)
            ledger.handle(command)
    assert found == []
    assert len(tried) > 8_000


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
