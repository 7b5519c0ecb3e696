"""All tables of one set of facts."""

from collections.abc import Iterable

from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.catalogue import score_tables
from forecast_ledger.projections.catalogue.analysis import Analysis
from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
from forecast_ledger.projections.core.column_values import Values
from forecast_ledger.projections.core.table import Table

__all__ = ["CATALOGUE", "Projections"]


class Projections(Analysis):
    """All tables of one set of facts; each is computed on first use.

    >>> from forecast_ledger import Projections, commands, facts, open
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline", pool=100)
    >>> with open(":memory:") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     projections = Projections(facts(ledger.read()))
    >>> [(row["contest"], row["rules"], row["pool"]) for row in projections.table("contests").rows()]
    [('spring', 'baseline', '100.00')]
    """

    def table(self, name: str) -> Table:
        """Return the table of a projection, in order of its key.

        Raises KeyError: there is no such projection; its message lists those that there are.
        """
        if name not in CATALOGUE:
            raise KeyError(f"no table named {name!r}; there are {listed(name, CATALOGUE, len(CATALOGUE))}")
        return self._table(name, CATALOGUE[name].build(self))

    def score_parts(self, participant: str) -> Table:
        """Return the rows of `score_parts` of a participant or the consensus.

        Raises ValueError: there is no such participant; its message lists some that there are.
        """
        names = [*totals.score_labels(self.facts)]
        if participant not in names:
            raise ValueError(f"no participant named {participant!r}; there are {listed(participant, names)}")
        owner = names.index(participant)
        return self._table("score_parts", score_tables.score_parts_values(self, owner))

    def _table(self, name: str, values: Iterable[Values]) -> Table:
        projection = CATALOGUE[name]
        table = Table(name, projection.version, projection.columns, tuple(values))
        return table if projection.as_built else table.sorted_by(*projection.key)
