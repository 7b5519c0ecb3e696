"""The catalogue of projections: the schema of each table and the function that builds it from the facts."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.core.values import Instant, read_instant
from forecast_ledger.projections.core.columns import Values
from forecast_ledger.projections.core.table import Table, TableParts
from forecast_ledger.projections.tables import (
    accounts,
    arena,
    boards,
    calibration,
    forecasts,
    questions,
    ranges,
    scores,
)
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.schemas import Projection
from forecast_ledger.projections.trading.account_histories import Selection

CATALOGUE: dict[str, Projection] = {  # in the order in which tables are listed
    **questions.QUESTIONS,
    **forecasts.FORECASTS,
    **scores.SCORES,
    **boards.BOARDS,
    **boards.UNCERTAINTY,
    **boards.PRIZES,
    **calibration.BRIER,
    **ranges.RANGES,
    **calibration.CALIBRATION,
    **forecasts.ADMISSIONS,
    **scores.DIFFICULTY,
    **arena.MARKET,
    **accounts.BALANCE,
    **accounts.ACCOUNTS,
    **arena.ARENA,
    **accounts.DECISIONS,
    **accounts.JOURNAL,
    **questions.PRICES,
}
BUILT = tuple(name for name, projection in CATALOGUE.items() if not projection.on_request)  # a replay builds these
EXPORTED = tuple(name for name, projection in CATALOGUE.items() if name in BUILT or projection.exported)

Row = dict[str, Any]  # of a table, as printed


# --- All tables of one set of facts.


@checked("since", "until")
class Projections(Analysis):
    """All tables of one set of facts; each is computed on first use.

    >>> from forecast_ledger import Projections, commands, facts, open_ledger
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline", pool=100)
    >>> with open_ledger(":memory:") as ledger:
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
        columns = self.cached.columns.get(name)
        return _as_table(name, CATALOGUE[name].build(self) if columns is None else columns)

    def rows_of(self, name: str, contest: str) -> list[Row]:
        """Return the rows of a contest in a table, as printed."""
        return [*self.table(name).only("contest", contest).rows()]

    def parts(self, name: str) -> TableParts:
        """Return the table of a projection in parts, in order of its key.

        Raises KeyError: there is no such projection; its message lists those that there are.

        >>> from forecast_ledger import open_ledger, replay
        >>> with open_ledger(":memory:") as ledger:
        ...     parts = replay(ledger).projections.parts("scores")
        >>> [len(table) for table in parts], parts.rows
        ([0], 0)
        """
        return TableParts([self.table(name)])

    def score_parts(
        self, participant: str | None = None, *, contest: str | None = None, question: str | None = None
    ) -> Table:
        """Return the rows of `score_parts` of a participant or reference forecaster, a contest, and a question.

        Only the forecasts on that question, or on questions of that contest, are scored. Raises, first that applies:
        ValueError (no such contest, question or participant; its message lists some that there are),
        Refused(out_of_range): too many rows.

        >>> from pathlib import Path
        >>> from forecast_ledger import append, open_ledger, replay
        >>> with open_ledger(":memory:") as ledger, Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
        ...     counts = append(ledger, file)
        ...     projections = replay(ledger).projections
        >>> [row["reference"] for row in projections.score_parts("A", contest="plain", question="olympics-2021").rows()]
        ['0.15', '0.25', '0.55']
        """
        names = scores.names_in_parts(self.facts)
        for kind, name in (("contest", contest), ("question", question), ("participant", participant)):
            if name is not None and name not in names[kind]:
                raise ValueError(f"no {kind} named {name!r}; there are {listed(name, names[kind])}")
        owner = None if participant is None else names["participant"].index(participant)
        analysis: Analysis = self
        if contest is not None or question is not None:
            analysis = Analysis(scores.facts_on(self.facts, contest, question), self.chunk)
        return self.as_table("score_parts", scores.score_parts_values(analysis, owner))

    def pairwise(self, contest: str, first: int | None = None) -> Table:
        """Return the rows of `pairwise` of a contest, or of those who come first on its board.

        The adjusted p-values are those of the pairs that are returned. Raises, first that applies: ValueError (no such
        contest; its message lists some that there are), Refused(out_of_range): too many participants or questions, or
        scores too large.

        >>> from pathlib import Path
        >>> from forecast_ledger import append, open_ledger, replay
        >>> with open_ledger(":memory:") as ledger, Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
        ...     counts = append(ledger, file)
        ...     projections = replay(ledger).projections
        >>> [(row["participant"], row["other"]) for row in projections.pairwise("plain", first=2).rows()]
        [('B', 'A')]
        """
        if contest not in self.facts.contests:
            raise ValueError(f"no contest named {contest!r}; there are {listed(contest, self.facts.contests)}")
        return self.as_table("pairwise", boards.pairwise_values(self, contest, first))

    def portfolio_snapshots(
        self,
        *,
        contest: str | None = None,
        participant: str | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
    ) -> Table:
        """Return the rows of `portfolio_snapshots` of a contest, a participant, and the instants in [since, until).

        Computes only the selected portfolios. Raises, first that applies: ValueError (no such trading contest, or no
        participant with an account; its message lists some that there are), Refused (not an instant; too many ticks).

        >>> from forecast_ledger import Projections, commands, facts, open_ledger
        >>> start = {"at": "2026-03-01T00:00:00Z", "contest": "week"}
        >>> cohort = commands.OpenContest(**start, rules="arena-v1", series="arena", title="a week")
        >>> ada = commands.EnrolParticipant(**start, participant="ada")
        >>> with open_ledger(":memory:") as ledger:
        ...     receipts = [ledger.handle(command, command_id=type(command).__name__) for command in (cohort, ada)]
        ...     projections = Projections(facts(ledger.read()))
        >>> rows = projections.portfolio_snapshots(participant="ada", until="2026-03-02T00:00:00Z").rows()
        >>> [(row["at"], row["log_position"], row["total"]) for row in rows]
        [('2026-03-01T00:00:00Z', 3, '10000.00'), ('2026-03-01T00:00:00Z', None, '10000.00')]
        """
        for kind, name, names in (
            ("trading contest", contest, self.traded),
            ("participant with an account", participant, self.traders),
        ):
            if name is not None and name not in names:
                raise ValueError(f"no {kind} named {name!r}; there are {listed(name, names)}")
        begin = None if since is None else read_instant(since, "since")
        end = None if until is None else read_instant(until, "until")
        return self.selected_portfolios(Selection(contest, participant, begin, end))

    def selected_portfolios(self, selection: Selection) -> Table:
        """Return the selected rows of `portfolio_snapshots`, perhaps none. Raises Refused: too many ticks."""
        return self.as_table("portfolio_snapshots", accounts.snapshots_values(self, selection))

    def as_table(self, name: str, values: Iterable[Values]) -> Table:
        """Return the table of a projection with these values of its columns, in order of its key."""
        return _as_table(name, values)


def _as_table(name: str, values: Iterable[Values]) -> Table:
    projection = CATALOGUE[name]
    table = Table(name, projection.version, projection.columns, tuple(values))
    return table if projection.as_built else table.sorted_by(*projection.key)


# --- Updates of parts of tables. The catalogue says how each table is divided into parts.


PartKey = tuple[str | int, ...]  # values of the columns that a table is divided by, or of the first of them


class TableUpdate(NamedTuple):
    """The current rows of some parts of a table, and the keys of these parts, in order.

    keys: a key with only the first columns means all parts that begin with it; () is the whole table.
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
