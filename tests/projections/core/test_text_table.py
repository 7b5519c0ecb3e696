"""Tables as text: what `print` shows of one."""

from itertools import repeat

import numpy as np

from forecast_ledger.projections.core.columns import Column, ids
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.core.text_table import SHOWN_ROWS, SHOWN_WIDTH

BOARD = (Column("who", "id", "who"), Column("rank", "count", "place"), Column("score", "points", "the score"))


def board(*names: str) -> Table:
    """A table with a row for each name, all with the rank 1 and a score of 0.25."""
    return Table("board", 1, BOARD, (ids([*names]), np.ones(len(names), np.int64), [250_000_000] * len(names)))


def test_a_printed_table_has_decimals_under_the_names_of_its_columns() -> None:
    """Numbers are to the right, and the first line counts the rows; `repr` shows the same."""
    shown = ["board: 2 rows", "who  rank        score", "ada     1  0.250000000", "bo      1  0.250000000"]
    assert str(board("ada", "bo")).splitlines() == repr(board("ada", "bo")).splitlines() == shown


def test_only_the_first_rows_are_printed_and_the_others_counted() -> None:
    """A table may have millions of rows."""
    first, *_, last, more = str(board(*map(str, range(1_234)))).splitlines()
    assert (first, last.split()[0], more) == (
        "board: 1,234 rows",
        str(SHOWN_ROWS - 1),
        f"{1_234 - SHOWN_ROWS:,} more rows",
    )
    assert str(board(*map(str, range(SHOWN_ROWS + 1)))).splitlines()[-1] == "1 more row"
    assert "more" not in str(board(*map(str, range(SHOWN_ROWS))))


def test_columns_that_do_not_fit_are_named() -> None:
    """No line is wider than a page; a column is shown whole or not at all, but for texts beyond forty characters."""
    columns = tuple(Column(f"column_{number:02}", "text", "") for number in range(9))
    wide = str(Table("wide", 1, columns, tuple(repeat(["x" * 50], 9))))
    assert max(map(len, wide.splitlines())) <= SHOWN_WIDTH
    _, names, row, *more = wide.splitlines()
    assert names.split() == ["column_00", "column_01"]
    assert row.split() == ["x" * 39 + "…"] * 2
    assert " ".join(more) == "7 more columns: " + ", ".join(column.name for column in columns[2:])


def test_a_name_cannot_command_a_terminal() -> None:
    """What cannot be printed is escaped, and an empty table shows its columns."""
    assert "a\\x1b[2J" in str(board("a\x1b[2J"))
    assert str(board()).splitlines() == ["board: 0 rows", "who  rank  score"]
