"""Updates of parts of tables. The catalogue says how each table is divided into parts."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE
from forecast_ledger.projections.tables.projection import Projections

PartKey = tuple[str | int, ...]  # values of the columns that a table is divided by, or of the first of them


class TableUpdate(NamedTuple):
    """The current rows of some parts of a table, and the keys of these parts, in order.

    keys: a key with only the first columns stands for all parts that begin with it; () is the whole table.
    """

    table: Table
    keys: list[PartKey]


def tables_with(division: str, tables: Collection[str] = BUILT) -> list[str]:
    """Return those of the tables that a refresh updates by this division.

    >>> tables_with("forecasts"), tables_with("forecasts", ["consensus", "leaderboard"])
    (['standing', 'consensus'], ['consensus'])
    """
    return [name for name in BUILT if name in tables and CATALOGUE[name].refresh_division == division]


def table_updates(
    projections: Projections, division: str, keys: Iterable[PartKey], tables: Collection[str] = BUILT
) -> Iterator[TableUpdate]:
    """Yield the parts with these keys of each of the tables that has this division."""
    if in_order := sorted(keys):
        yield from (TableUpdate(projections.table(name), in_order) for name in tables_with(division, tables))
