"""Parts of tables, from which tables are kept up."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from projections.projection import Projections
from projections.table import Table

Ids = tuple[tuple[str, str], ...]  # column, id


class Part(NamedTuple):
    """The rows of a projection's table that have these ids in these columns, or all of them.

    before: what they were, where that is known without reading it; without ids it says which rows are meant.
    """

    table: Table
    ids: Ids = ()
    before: Callable[[], Table] | None = None

    @property
    def is_change(self) -> bool:
        """Whether it is some rows in place of others, whatever ids they have."""
        return self.before is not None and not self.ids


def changed(name: str, before: Projections, after: Projections) -> Part:
    """The rows of one in place of those of the other."""
    return Part(after.table(name), before=lambda: before.table(name))


def divided(of: Projections, names: Iterable[str], by: str, ids: list[str]) -> Iterator[Part]:
    """A part of each table for each id, also where it has no rows."""
    for name in names:
        table = of.table(name)
        parts = table.by(by)
        for each in ids:
            yield Part(parts[each] if each in parts else table.only(by, each), ((by, each),))
