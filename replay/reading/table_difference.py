"""What is other between two tables of one projection, row by row."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
from forecast_ledger.projections.core.table import Table


class Difference(NamedTuple):
    """A row that is only in one of two tables, or has other values in them: column -> (old, new), as printed; None for
    a row that is not there. row: "changed", "new" or "gone".
    """

    key: dict[str, Any]
    columns: dict[str, tuple[Any, Any]]
    row: str = "changed"


def differences(old: Table, new: Table) -> Iterator[Difference]:
    """The rows that differ, in order of their first appearance in the new table, then those that are gone."""
    names = CATALOGUE[new.name].key
    before, after = _by_key(old, names), _by_key(new, names)
    for key in [*after, *(key for key in before if key not in after)]:
        one, other = before.get(key, {}), after.get(key, {})
        named = dict(zip(names, key, strict=True))
        changed = {
            column.name: (one.get(column.name), other.get(column.name))
            for column in new.columns
            if column.name not in names and one.get(column.name) != other.get(column.name)
        }
        if changed or not one or not other:
            yield Difference(named, changed, "changed" if one and other else "new" if other else "gone")


def _by_key(table: Table, names: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in names): row for row in table.rows()}
