"""The differences between two tables of one projection, row by row."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import CATALOGUE


class Difference(NamedTuple):
    """A row that differs between two tables: column -> (old value, new value), as printed; None if the row is missing.

    row: "changed", "new" or "gone".
    """

    key: dict[str, Any]
    columns: dict[str, tuple[Any, Any]]
    row: str = "changed"


def differences(old: Table, new: Table) -> Iterator[Difference]:
    """Return the rows that differ: in the order of the new table, then the rows that only the old table has."""
    names = CATALOGUE[new.name].key
    before, after = _by_key(old, names), _by_key(new, names)
    for key in [*after, *(key for key in before if key not in after)]:
        old_row, new_row = before.get(key, {}), after.get(key, {})
        changed = {
            column.name: (old_row.get(column.name), new_row.get(column.name))
            for column in new.columns
            if column.name not in names and old_row.get(column.name) != new_row.get(column.name)
        }
        if changed or not old_row or not new_row:
            row = "changed" if old_row and new_row else "new" if new_row else "gone"
            yield Difference(dict(zip(names, key, strict=True)), changed, row)


def _by_key(table: Table, names: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in names): row for row in table.rows()}
