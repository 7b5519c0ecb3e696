"""Cells of CSV, many at once."""

import pytest

from forecast_ledger.replay.reading.blocks import csv_cell, csv_cells

PLAIN = ["ada", "", "雨", "a=1", "a b", "#"]


@pytest.mark.parametrize(
    "odd",
    ["=1+1", " =1", "\t-x", "\x1c+x", "-0.5", "＝1", "a,b", 'a"b', '"', "a\nb", "a\rb", "\n=1", "\x00", None],  # noqa: RUF001
)
def test_cells_are_those_of_one_at_a_time(odd: str | None) -> None:
    """What a spreadsheet would run and what needs quotation marks, alone and among others."""
    for cells in ([odd], [odd, *PLAIN], [*PLAIN, odd], [odd, odd, 'a,"b"'], PLAIN):
        assert csv_cells(cells) == [*map(csv_cell, cells)]
