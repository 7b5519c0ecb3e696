"""Rows of a read model are written many at a time, and read back as they were given."""

from contextlib import closing

import pytest

from forecast_ledger.replay.readmodel.part_store import LOG_INDEX, PARTS, StoredTables
from forecast_ledger.replay.readmodel.sqlite_tables import SQLiteTables


@pytest.mark.parametrize("count", [1, 248, 249, 250, 498, 499])  # a statement has at most 999 values, four in a row
def test_every_row_of_a_part_is_stored_whether_or_not_rows_fill_their_statements(count: int, tmp_path: object) -> None:
    """A part is read back row by row as it was given, and a row that changes later replaces the one before it."""
    rows = [("rain", "", number, str(number)) for number in range(count)]
    with closing(SQLiteTables(f"{tmp_path}/tables.db")) as database:
        stored = StoredTables(database)
        for name in (PARTS, LOG_INDEX):
            stored.make(name)
        stored.put(LOG_INDEX, ("rain", ""), rows)
        assert stored.rows(LOG_INDEX) == rows
        changed = [*rows[:-1], ("rain", "", count - 1, "changed")]
        stored.put(LOG_INDEX, ("rain", ""), changed)
        assert [*stored.parts(LOG_INDEX)] == [(("rain", ""), changed)]
