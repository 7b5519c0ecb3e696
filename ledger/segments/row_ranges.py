"""Ranges of the rows of a segment, by log position."""

from typing import Any, NamedTuple, Self

import numpy as np

from forecast_ledger.ledger.segments.arrow_arrays import integers, log_order, row_numbers
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns


def between(columns: SegmentColumns, after: int | None, end: int | None) -> SegmentColumns:
    """Return the rows after a log position up to another. None: those before, or after, whatever their positions."""
    if after is None and end is None:
        return columns
    least, most = -(2**63) if after is None else after + 1, 2**63 - 1 if end is None else end
    positions = (integers(table["position"]) for table in columns)
    rows_of = (np.flatnonzero((position >= least) & (position <= most)) for position in positions)
    return SegmentColumns(
        *(
            table if len(rows) == len(table) else table.take(row_numbers(rows))
            for table, rows in zip(columns, rows_of, strict=True)
        )
    )


class InLogOrder(NamedTuple):
    """The columns of a segment, whose log positions are consecutive, from which ranges are taken in log order.

    first: the first position. rows: the row of each position, those of forecasts first. quotes: rows of quotes in order
    of their positions, which are quoted.
    """

    columns: SegmentColumns
    first: int
    rows: Any
    quotes: Any
    quoted: Any

    @classmethod
    def of(cls, columns: SegmentColumns, first: int, last: int) -> Self | None:
        """Return the rows of a segment; None if their positions are not those from the first one to the last."""
        position, of_quotes = np.concatenate([integers(table["position"]) for table in columns.rows]), columns.quotes
        rows = log_order(position)
        if not np.array_equal(position[rows], np.arange(first, last + 1)):
            return None
        quoted = integers(of_quotes["position"])
        quotes = np.argsort(quoted, kind="stable")
        tables = (table.combine_chunks() for table in columns)  # of which rows are taken quickly
        return cls(SegmentColumns(*tables), first, rows, quotes, quoted[quotes])

    def row(self, position: int) -> Any:
        """Return the row at a log position, as a table."""
        row, made = int(self.rows[position - self.first]), len(self.columns.forecasts)
        return self.columns.forecasts.slice(row, 1) if row < made else self.columns.others.slice(row - made, 1)

    def between(self, after: int, end: int) -> SegmentColumns:
        """Return the rows after a log position up to another, of the segment; at its ends also the quotes beyond it."""
        rows, made = self.rows[after + 1 - self.first : end + 1 - self.first], len(self.columns.forecasts)
        begin = np.searchsorted(self.quoted, after, "right") if after >= self.first else 0
        last = np.searchsorted(self.quoted, end, "right") if end < self.first + len(self.rows) - 1 else None
        each = rows[rows < made], rows[rows >= made] - made, self.quotes[begin:last]
        return SegmentColumns(
            *(table.take(row_numbers(chosen)) for table, chosen in zip(self.columns, each, strict=True))
        )
