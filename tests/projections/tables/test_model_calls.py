"""Tests of the table of model calls, and of its refresh."""

from typing import Any

from forecast_ledger.ledger.model.commands import ModelCall
from forecast_ledger.projections.incremental.refresh import IncrementalTables
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.given import decision, failed_call, replied, trading_floor

CALL = ModelCall(input_tokens=5_200, output_tokens=310, cost="0.0187", latency_ms=8_250, settings={"t": 0.7, "n": 2})
STORY = [
    *trading_floor("ada", "bob"),
    failed_call(error="503", call=ModelCall(latency_ms=40_000)),
    replied("?", call=CALL),
    decision(attempt=2),
    decision(participant="bob"),
]


def test_each_attempt_and_each_failed_call_has_a_row() -> None:
    """What was not recorded is empty; a failed call has no attempt."""
    table = oracle.projected(*STORY).table("model_calls")
    columns = ["participant", "attempt", "outcome", "error", "input_tokens", "cost", "latency", "settings"]
    assert [[row[column] for column in columns] for row in table.rows()] == [
        ["ada", None, "failed", "503", None, None, "40", ""],
        ["ada", 1, "malformed", "", 5_200, "0.0187", "8.25", "n=2, t=0.7"],
        ["ada", 2, "HOLD", "", None, None, None, ""],
        ["bob", 1, "HOLD", "", None, None, None, ""],
    ]


def test_a_refresh_gives_the_same_rows_as_a_rebuild() -> None:
    """After each event, the rows of the accounts that it touched are those of the whole table."""
    log = oracle.history(*STORY)
    kept: dict[Any, list[dict[str, Any]]] = {}
    refreshed = IncrementalTables()
    for end, recorded in enumerate(log, 1):
        refreshed.add([recorded])
        for update in refreshed.updates():
            if update.table.name == "model_calls":
                rows = [*update.table.rows()]
                kept |= {
                    key: [row for row in rows if (row["contest"], row["participant"]) == key] for key in update.keys
                }
        refreshed.forget()
        whole = [*Projections(oracle.facts_in(log[:end])).table("model_calls").rows()]
        assert [row for key in sorted(kept) for row in kept[key]] == whole
    assert len(whole) == 4
