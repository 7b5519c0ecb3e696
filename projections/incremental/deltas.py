"""Parts of tables, the units of a refresh. The catalogue tells how each table is divided."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from forecast_ledger.projections.catalogue.catalogue import BUILT, CATALOGUE
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.core.table import Table

Key = tuple[str | int, ...]  # values of the columns that a table is divided by, or of the first of them


class Parts(NamedTuple):
    """The current rows of some parts of a table, and the keys of these parts, in order.

    keys: a key with only the first columns stands for all parts that begin with it; () is the whole table.
    """

    table: Table
    keys: list[Key]


def divided(division: str) -> list[str]:
    """Return the projections whose tables a refresh updates by this division.

    >>> divided("forecasts")
    ['standing', 'consensus']
    """
    return [name for name in BUILT if CATALOGUE[name].kept_up == division]


def parts(of: Projections, division: str, keys: Iterable[Key]) -> Iterator[Parts]:
    """Yield the parts with these keys of each table that has this division."""
    if due := sorted(keys):
        yield from (Parts(of.table(name), due) for name in divided(division))
