"""Exports with floats, as pandas, Polars, SQLite and R read them: the nearest ones; exact digests all the same."""

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import ipc, parquet

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.projections.core.columns import DECIMALS
from forecast_ledger.projections.tables.catalogue import CATALOGUE
from forecast_ledger.replay.cli.main import FINE, USAGE
from forecast_ledger.replay.files.export import export
from forecast_ledger.replay.files.formats import nearest_floats
from forecast_ledger.replay.files.manifest import read_manifest
from forecast_ledger.replay.files.restore import restore
from forecast_ledger.replay.reading.replay import Replay, replay
from tests.replay.cli.test_main import run
from tests.support.effort import times
from tests.support.exports import FORMS
from tests.support.late import pandas, polars

TABLES = ["scores", "leaderboard", "journal", "marks"]  # with every kind of decimal but terms, and takes
Column = list[Any]


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(2**53 - 9, 2**53 + 9) | st.integers(-9, 9)))
@example([-(2**53) - 1, -(2**53) - 3])
@settings(max_examples=times(50), deadline=None)
def test_a_float_is_the_nearest_one_of_any_number(numbers: list[int]) -> None:
    """As Python divides integers, which it rounds once; also above 2^53, where not every integer is a float."""
    for kind, places in DECIMALS.items():
        near = nearest_floats(np.array(numbers, np.int64), kind, [f"{number}E-{places}" for number in numbers])
        assert near == [number / 10**places for number in numbers]


@pytest.fixture(scope="module")
def season(log: str) -> Replay:
    """Its replay."""
    return replay(log)


@pytest.fixture(scope="module")
def exports(log: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tables with floats in each format."""
    base = tmp_path_factory.mktemp("exports")
    for form in FORMS:
        export(log, base / form, form, tables=TABLES, floats=True)
    return {form: base / form for form in FORMS}


def expected(season: Replay, table: str) -> dict[str, Column]:
    """The columns of decimals and takes, each text as Python reads it as a float."""
    columns = [column.name for column in CATALOGUE[table].columns if column.kind in {*DECIMALS, "take"}]
    texts = {name: season.table(table)[name] for name in columns}
    return {name: [None if text is None else float(text) for text in texts[name]] for name in columns}


def in_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of JSON lines."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def _in_sqlite(file: Path, name: str) -> Any:
    with closing(sqlite3.connect(file)) as database:
        return pandas.read_sql(f'SELECT * FROM "{name}" ORDER BY rowid', database)  # noqa: S608 - a name of the catalogue


READERS: dict[str, Any] = {
    "csv": lambda folder, name: pandas.read_csv(folder / f"{name}.csv"),
    "jsonl": lambda folder, name: pandas.DataFrame(in_lines(folder / f"{name}.jsonl")),
    "parquet": lambda folder, name: parquet.read_table(folder / f"{name}.parquet").to_pandas(),
    "arrow": lambda folder, name: ipc.open_file(folder / f"{name}.arrow").read_all().to_pandas(),
    "sqlite": _in_sqlite,
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("form", FORMS)
def test_decimals_are_the_nearest_floats(season: Replay, exports: dict[str, Path], form: str, table: str) -> None:
    """In every format pandas has numbers to compute with, and what is missing stays so."""
    frame = READERS[form](exports[form], table)
    for name, floats in expected(season, table).items():
        read = [None if pandas.isna(value) else value for value in frame[name]]
        assert read == floats, (table, name)
        assert frame[name].dtype == "float64" or not any(value is not None for value in floats)


def test_counts_and_whole_numbers_of_any_size_are_as_before(exports: dict[str, Path]) -> None:
    """They are no decimals: counts are integers, and numerators are text, because they have no bound."""
    schema = parquet.read_schema(exports["parquet"] / "scores.parquet")
    types = [str(schema.field(name).type) for name in ("score", "coverage", "numerator")]
    assert types == ["double", "double", "string"]


def test_frames_have_floats_by_the_same_word(season: Replay) -> None:
    """`floats=True` in pandas, Polars and Arrow."""
    board = season.table("leaderboard")
    floats = expected(season, "leaderboard")["score"]
    assert [*board.to_pandas(floats=True)["score"]] == floats
    assert board.to_polars(floats=True)["score"].to_list() == floats
    assert board.to_polars(floats=True).schema["score"] == polars.Float64
    assert board.to_arrow(floats=True)["score"].to_pylist() == floats
    assert str(board.to_arrow().schema.field("score").type) == "decimal128(38, 9)"


@pytest.mark.parametrize("form", FORMS)
def test_digests_are_of_the_exact_numbers(log: str, season: Replay, exports: dict[str, Path], form: str) -> None:
    """The manifest says that floats were written, and has the digests of the tables; the log can be imported."""
    manifest = read_manifest(exports[form])
    assert manifest.floats
    assert {name: manifest.tables[name].digest for name in TABLES} == {
        name: season.table(name).digest() for name in TABLES
    }
    copy = exports[form].parent / f"{form}-copy.db"
    restore(exports[form], str(copy))
    assert replay(str(copy)).checkpoint == season.checkpoint


def test_a_float_that_was_changed_is_found(exports: dict[str, Path], tmp_path: Path) -> None:
    """A database is compared with what its log says, floats too."""
    changed = tmp_path / "changed"
    shutil.copy(exports["sqlite"], changed)
    with closing(sqlite3.connect(changed)) as database, database:
        database.execute("UPDATE scores SET score = score + 1 WHERE score_real IS NOT NULL")
    with pytest.raises(Unavailable, match="changed since: scores"):
        restore(changed, str(tmp_path / "copy.db"))


def test_the_dictionary_says_so(exports: dict[str, Path]) -> None:
    """The unit of a column of floats is not called exact."""
    units = {(row["table"], row["column"]): row["unit"] for row in in_lines(exports["jsonl"] / "data_dictionary.jsonl")}
    assert units["scores", "score"] == "9 decimals; the nearest float"
    assert units["leaderboard", "prize"] == "the contest's currency; the nearest float"
    assert units["scores", "numerator"] == "whole number of any size, exact"


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r_reads_the_numbers(season: Replay, exports: dict[str, Path]) -> None:
    """By read.csv of base R: the column is numeric, and each number the float of its text."""
    code = 'x <- read.csv("scores.csv"); stopifnot(is.numeric(x$score)); cat(sprintf("%.17g", x$score), sep = "\n")'
    done = subprocess.run(["Rscript", "-e", code], cwd=exports["csv"], capture_output=True, text=True, check=True)
    assert [*map(float, done.stdout.split())] == pytest.approx(expected(season, "scores")["score"], rel=1e-15, abs=0)


def test_the_command_has_the_option(log: str, tmp_path: Path) -> None:
    """Of a hub or of segments, which have no tables, it is wrong usage."""
    done = run("export", log, str(tmp_path / "out"), "--format", "csv", "--tables", "scores", "--floats")
    assert (done.exit_code, read_manifest(tmp_path / "out").floats) == (FINE, True)
    for form in ("hub", "segments"):
        refused = run("export", log, str(tmp_path / form), "--format", form, "--floats")
        assert (refused.exit_code, (tmp_path / form).exists()) == (USAGE, False)
    with pytest.raises(ValueError, match="leave floats out"):
        export(log, tmp_path / "segments", "segments", floats=True)
