"""Parts of tables, from which tables are kept up; how a table is divided is in its row of the catalogue."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from forecast_ledger.projections.catalogue.catalogue import BUILT, CATALOGUE
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.core.table import Table

Key = tuple[str | int, ...]  # values of the columns that a table is divided by, or of the first of these


class Parts(NamedTuple):
    """Parts of a projection's table as they now are: all their rows, and which parts they are, in order.

    keys: one that names only the first columns stands for all the parts that begin so; () is the whole table.
    """

    table: Table
    keys: list[Key]


def divided(division: str) -> list[str]:
    """The projections whose tables are kept up by this division.

    >>> divided("forecasts")
    ['standing', 'consensus']
    """
    return [name for name in BUILT if CATALOGUE[name].kept_up == division]


def parts(of: Projections, division: str, keys: Iterable[Key]) -> Iterator[Parts]:
    """The same parts of each table that is divided in this way."""
    if due := sorted(keys):
        yield from (Parts(of.table(name), due) for name in divided(division))
