"""The guide to operating a service: its files run as they are."""

from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.storing.instrumentation import Metric
from forecast_ledger.replay.writing.store import Store
from tests.support.given import forecast, opened
from tests.support.page_runner import blocks
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


def saved(folder: Path, name: str) -> dict[str, Any]:
    """What a file of the page defines."""
    [text] = [block.text for block in blocks(PAGE) if block.name == name]
    (folder / name).write_text(text, encoding="utf-8")
    return run_path(str(folder / name))


def measured(on_metric: Callable[[Metric], None]) -> None:
    """Report a command that is accepted, one that is refused, a batch of three, and a lag."""
    with Store.open(":memory:", on_metric=on_metric) as store:
        ledger = store.ledger("north")
        ledger.handle(opened(), "c1")
        with pytest.raises(Refused):
            ledger.handle(forecast("snow"), "c2")
        ledger.handle_many([opened(f"q{number}", id=f"q{number}") for number in range(3)])
    on_metric(Metric("lag_positions", 7, "north"))
    on_metric(Metric("lag_seconds", 1.5, "north"))


def test_the_hook_for_prometheus_counts_what_happens(tmp_path: Path) -> None:
    """As a scrape shows it."""
    library = pytest.importorskip("prometheus_client")
    measured(saved(tmp_path, "prometheus_hook.py")["on_metric"])
    lines = library.generate_latest().decode().splitlines()
    assert {line for line in lines if line.startswith("ledger_") and "_count" in line} == {
        'ledger_command_seconds_count{outcome="accepted",type="open_question"} 1.0',
        'ledger_command_seconds_count{outcome="unknown_question",type="submit_forecast"} 1.0',
        "ledger_batch_seconds_count 1.0",
        "ledger_turn_seconds_count 3.0",
    }
    for line in (
        'ledger_batch_commands_total{outcome="accepted"} 3.0',
        'ledger_lag_positions{ledger="north"} 7.0',
        'ledger_lag_seconds{ledger="north"} 1.5',
    ):
        assert line in lines


def test_the_hook_for_opentelemetry_counts_what_happens(tmp_path: Path) -> None:
    """As a reader of its SDK collects it."""
    api, sdk = pytest.importorskip("opentelemetry.metrics"), pytest.importorskip("opentelemetry.sdk.metrics")
    reader = pytest.importorskip("opentelemetry.sdk.metrics.export").InMemoryMetricReader()
    api.set_meter_provider(sdk.MeterProvider([reader]))
    measured(saved(tmp_path, "opentelemetry_hook.py")["on_metric"])
    [resource] = reader.get_metrics_data().resource_metrics
    points = {
        (metric.name, point.attributes.get("type"), point.attributes.get("outcome")): point
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }
    assert {key: point.count for key, point in points.items() if hasattr(point, "count")} == {
        ("ledger.command_seconds", "open_question", "accepted"): 1,
        ("ledger.command_seconds", "submit_forecast", "unknown_question"): 1,
        ("ledger.batch_seconds", None, None): 1,
        ("ledger.turn_seconds", None, None): 3,
        ("ledger.lag_positions", None, None): 1,
        ("ledger.lag_seconds", None, None): 1,
    }
    assert points["ledger.batch_commands", None, "accepted"].value == 3
    assert points["ledger.lag_positions", None, None].sum == 7
