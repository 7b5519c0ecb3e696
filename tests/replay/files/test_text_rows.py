"""Rows of CSV and JSON lines, many at once: those of each cell alone."""

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecast_ledger.projections.core.columns import KINDS, Column, Ids, Values, plain_values
from forecast_ledger.projections.core.table import Table, TableParts
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.replay.files.formats import FILE_FORMATS, ExportTable

COUNT = 4_096 + 70  # rows: those that are written together, and some more
NUMBERS = np.arange(COUNT, dtype=np.int64) * 999_999_937 - 10**12
SOME = [None if number % 3 else number for number in NUMBERS.tolist()]
LABELS = ["ada", "", "雨", 'a"b', "a,b", "=1"]
TEXTS = [f"text {number % 7}" if number % 2 else None for number in range(COUNT)]


def _table(labels: list[str]) -> Table:
    codes = np.arange(COUNT) % len(labels)
    wide = WideInt.from_integers([number * 10**20 for number in NUMBERS.tolist()])
    columns: list[tuple[str, Values]] = [
        *(("id", Ids(codes, labels)), ("instant", NUMBERS), ("instant", SOME), ("count", NUMBERS), ("count", SOME)),
        *(("count", [2**70, *SOME[1:]]), ("points", NUMBERS), ("money", SOME), ("measure", [None] * COUNT)),
        *(("integer", wide), ("integer", NUMBERS), ("text", TEXTS), ("text", [None] * COUNT), ("seconds", NUMBERS)),
    ]
    named = tuple(Column(f"{kind} {number}", kind, "") for number, (kind, _) in enumerate(columns))
    return Table("all", 1, named, tuple(values for _, values in columns))


def _printed(table: Table) -> list[list[Any]]:
    """The rows, each value printed alone."""
    columns = [
        [None if value is None else KINDS[column.kind].printed(value) for value in plain_values(values)]
        for column, values in zip(table.columns, table.values, strict=True)
    ]
    return [[*row] for row in zip(*columns, strict=True)]


def _written(path: Path, form: str, table: Table) -> str:
    FILE_FORMATS[form].write(path, ExportTable("all", "", (), table.columns, 1, TableParts([table])))
    return path.read_bytes().decode()


@pytest.mark.parametrize(
    ("rows", "odd"), [(1, "plain"), (COUNT, "plain"), (100, "a\nb"), (100, "a\0b"), (100, "long " * 40)]
)
def test_rows_have_the_texts_of_their_cells(tmp_path: Path, rows: int, odd: str) -> None:
    """Of ids with any character, numbers of every size, and values that are missing, or all missing."""
    table = _table([*LABELS, odd]).slice(0, rows)
    expected = _printed(table)
    lines = _written(tmp_path / "all.jsonl", "jsonl", table).split("\n")
    assert [[*json.loads(line).values()] for line in lines[:-1]] == expected
    assert lines[-1] == ""
    text = _written(tmp_path / "all.csv", "csv", table)
    for row in expected:
        row[0] = "'=1" if row[0] == "=1" else row[0]  # no formula
    names = [column.name for column in table.columns]
    as_texts = [["" if value is None else str(value) for value in row] for row in expected]
    assert [*csv.reader(StringIO(text, newline=""))] == [names, *as_texts]
