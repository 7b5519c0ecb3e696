"""The engine spark: the same tables, from Spark and Sail where they are installed, and from a stand-in everywhere."""

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow
import pytest

from forecast_ledger.ledger.core.errors import Corrupt, Refused, Unavailable
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.replay.engines import engines
from forecast_ledger.replay.reading.log import WithSegments
from forecast_ledger.replay.reading.replay import replay, summarize_parts, summarize_tables
from tests.support.paths import ROOT


def check(season: Path) -> None:
    """Every table is that of a replay without an engine, from segments and from the log."""
    expected = summarize_tables(replay(season).projections.facts)
    remote = WithSegments(season, f"file://{season}.segments")  # each process opens the URL
    for location in (WithSegments(season), remote, season):
        projections = replay(location, engine="spark").projections
        assert summarize_tables(projections.facts, projections.cached) == expected
    parts = replay(WithSegments(season), engine="spark", memory=1 << 30).projections
    assert summarize_parts(parts, ["scores", "standing"]) == {name: expected[name] for name in ("scores", "standing")}


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")  # it is not used here
@pytest.mark.skipif(not find_spec("py4j") or not which("java"), reason="Apache Spark and Java are not installed")
def test_spark_makes_the_same_tables(season: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In local mode, with two processes."""
    from pyspark.sql import SparkSession  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - optional

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    try:
        check(season)
    finally:
        session.stop()


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")  # it is not used here
@pytest.mark.parametrize("mode", ["local", "local-cluster"])
def test_sail_makes_the_same_tables(season: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session that the program has begun, of a server in this process, as one machine and as a cluster."""
    sail = pytest.importorskip("pysail.spark", reason="Sail is not installed")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - optional

    monkeypatch.setenv("SAIL_MODE", mode)
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # otherwise PySpark sets it, also for later tests
    server = sail.SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()
    try:
        check(season)
    finally:
        session.stop()
        server.stop()


class Session:
    """What the engine uses of a Spark session, in this process: a range of numbers, mapped partition by partition."""

    def range(self, begin: int, end: int, step: int, partitions: int) -> SimpleNamespace:
        """The numbers, of which each partition has one."""
        assert (begin, step, partitions) == (0, 1, max(end, 1))

        def mapped(function: Callable[[Iterator[Any]], Iterator[Any]], schema: str) -> SimpleNamespace:
            names = [name for name, _ in map(str.split, schema.split(", "))]
            batches = [pyarrow.RecordBatch.from_pydict({"id": [number]}) for number in range(end)]
            made = [out for batch in batches for out in function(iter([batch]))]
            assert all(out.schema.names == names for out in made)
            rows = [row for out in reversed(made) for row in out.to_pylist()]  # Spark promises no order
            assert all(len(row["sent"]) <= engines._PIECE for row in rows)
            return SimpleNamespace(collect=lambda: [SimpleNamespace(**row) for row in rows])

        return SimpleNamespace(mapInArrow=mapped)


class PySparkException(Exception):
    """The class from which PySpark derives its errors."""


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """PySpark's modules with that session; it is what they have as `SparkSession`."""
    modules = {name: ModuleType(name) for name in ("pyspark", "pyspark.sql", "pyspark.errors")}
    builder = SimpleNamespace(appName=lambda _: SimpleNamespace(getOrCreate=Session))
    found = SimpleNamespace(builder=builder, getActiveSession=lambda: None)
    modules["pyspark.sql"].SparkSession = found  # type: ignore[attr-defined]
    modules["pyspark.errors"].PySparkException = PySparkException  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return found


@pytest.mark.usefixtures("stand_in")
def test_the_job_is_a_task_in_each_partition(season: Path) -> None:
    """Its results are those of the other engines."""
    check(season)


@pytest.mark.usefixtures("stand_in")
def test_a_part_travels_in_pieces(season: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines of Sail refuse messages of more than 4 MiB; the pieces are put in order, whatever order they come in."""
    monkeypatch.setattr(engines, "_PIECE", 100)
    check(season)


def test_the_session_of_the_program_is_used(season: Path, stand_in: SimpleNamespace) -> None:
    """One that was begun with an address cannot be found by a builder without it."""
    stand_in.builder, stand_in.getActiveSession = None, Session
    check(season)


def test_an_error_of_spark_says_why_nothing_was_scored(season: Path, stand_in: SimpleNamespace) -> None:
    """Such as a machine without this package, or a client that the server does not take."""

    def refuse() -> None:
        raise PySparkException("unsupported PySpark version: 4.3.0")

    stand_in.getActiveSession = refuse
    with pytest.raises(Unavailable, match=r"Spark did not score the questions: unsupported PySpark version: 4\.3\.0"):
        replay(season, engine="spark")


@pytest.mark.usefixtures("stand_in")
def test_damage_that_a_machine_finds_is_reported_here(season: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its log position; Spark alone would report its own error, with a trace of Java."""

    def damaged(*_: object) -> None:
        raise Corrupt(7, "a file was changed")

    monkeypatch.setattr(engines, "read_forecasts_on", damaged)
    with pytest.raises(Corrupt, match="log position 7: a file was changed"):
        replay(season, engine="spark")
    assert pickle.loads(pickle.dumps(Corrupt(7, "x", "digests"))).check == "digests"  # noqa: S301 - ours


@pytest.mark.usefixtures("stand_in")
def test_a_table_that_is_too_large_on_a_machine_is_refused_here(season: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is without an engine: with its code and its remedy."""
    monkeypatch.setattr(time_weighted, "MOST_PARTS", 3)
    parts = replay(WithSegments(season), engine="spark", memory=1 << 30).projections.parts("score_parts")
    with pytest.raises(Refused, match="the limit is 3; ask for a question") as refused:
        list(parts)
    assert refused.value.code == "out_of_range"


def test_without_pyspark_the_engine_says_what_to_install(season: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is scored."""
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(Unavailable, match=r"run pip install 'forecast-ledger\[spark\]'"):
        replay(season, engine="spark")
