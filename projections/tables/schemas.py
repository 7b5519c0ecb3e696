"""What a table is made of: its schema, its row of the catalogue, and its division into parts."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from forecast_ledger.projections.core.column_values import Column, Values
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.inputs import INPUTS, SCORED


class Division(NamedTuple):
    """A way to divide a table into parts: the smallest units that are rebuilt, compared, written and checked.

    part: the columns that identify the part of a row; if empty, the whole table is one part. follows: the kinds of
    facts whose changes are followed to the parts that they touch; a table that reads another kind is rebuilt whole.
    second_thread: whether a replay builds such a table in its second thread.
    """

    part: tuple[str, ...]
    follows: frozenset[str]
    second_thread: bool = False


_FORECASTS = frozenset({"forecasts", "own_forecasts"})
_ACCOUNT = frozenset({"own_account", "resolutions"})
_VALUES = _ACCOUNT | {"accounts", "questions", "quotes", "contests", "clock"}
_SCORED = frozenset(SCORED)
DIVISIONS: dict[str, Division] = {
    "log": Division((), frozenset(INPUTS)),  # rebuilt when any kind of facts that the table reads changes
    "forecasts": Division(("question",), _FORECASTS | {"questions", "resolutions"}),
    "questions": Division(("question",), frozenset({"questions", "resolutions"})),
    "receipts": Division(("contest", "question"), _FORECASTS | {"entries"}),
    "contests": Division(("contest",), frozenset({"contests", "entries", "accounts"})),
    "scores": Division(("contest", "question"), _SCORED, second_thread=True),
    "boards": Division(("contest",), _SCORED, second_thread=True),
    "brier_scores": Division(("contest", "participant"), _SCORED),
    "brier_overall": Division(("participant",), _SCORED),
    "account_entries": Division(("contest", "participant"), _ACCOUNT),
    "holdings": Division(("contest", "participant"), _VALUES - {"accounts"}),
    "trading_boards": Division(("contest",), _VALUES),
    "trading_overall": Division((), _VALUES),
    "portfolios": Division(("contest", "participant"), _VALUES),  # every tick changes all of them: rebuilt whole
    "movements": Division(("log_position",), frozenset({"accounts", "contests"})),  # rows change with an id alone
    "quotes": Division((), frozenset({"quotes", "questions", "resolutions", "clock"})),  # every row has an age
}


class Schema(NamedTuple):
    """What a table says, the columns that identify a row, and all columns."""

    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]


_COMMON = {
    "contest": Column("contest", "id", "the contest"),
    "question": Column("question", "id", "the question"),
    "participant": Column("participant", "id", "the forecaster"),
}


def schema(text: str) -> Schema:
    """Return the schema that a text describes: the meaning of the table, an empty line, and a line for each column.

    A line has the name, kind and meaning of a column, or the name of a common column alone. An asterisk marks a column
    of the key. A line that is indented further continues the one before it.

    >>> schema('''
    ...     the price of each contest
    ...
    ...     contest*
    ...     price     money  what it costs to take part,
    ...                      without taxes
    ... ''').columns[1]
    Column(name='price', kind='money', meaning='what it costs to take part, without taxes')
    """
    meaning, _, lines = text.strip().partition("\n\n")
    key, columns = [], []
    for line in re.sub(r"\n {5,}", " ", lines).splitlines():
        starred, *rest = line.split(None, 2)
        name = starred.removesuffix("*")
        columns.append(Column(name, *rest) if rest else _COMMON[name])
        key += [name] if name != starred else []
    return Schema(" ".join(meaning.split()), tuple(key), tuple(columns))


class Projection(NamedTuple):
    """A named, versioned pure function from facts to a table.

    build: returns the values of the columns, in their order. reads: the kinds of facts, of INPUTS, that its rows depend
    on. division: the name of its division, of DIVISIONS, whose columns come first in the key. as_built: if true, rows
    keep the order in which they are built, contest by contest. final: if true, only the participant of a row ever
    changes after the event at its log position. on_request: if true, the table is built only on request, because it can
    have far more rows than the log, or take long. exported: if true, every export has it all the same. whole: if true,
    a row also depends on questions and contests that its key does not have.
    """

    version: int
    schema: Schema
    build: Callable[[Analysis], Iterable[Values]]
    reads: tuple[str, ...]
    division: str = "log"
    as_built: bool = False
    final: bool = False
    on_request: bool = False
    exported: bool = False
    whole: bool = False

    @property
    def meaning(self) -> str:
        """What the table says."""
        return self.schema.meaning

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row; rows are sorted by them."""
        return self.schema.key

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, in their order."""
        return self.schema.columns

    @property
    def part(self) -> tuple[str, ...]:
        """The columns that identify the part of a row."""
        return DIVISIONS[self.division].part

    @property
    def refresh_division(self) -> str:
        """The division by which a refresh updates the table: "log" if its own does not follow all that it reads."""
        return self.division if DIVISIONS[self.division].follows.issuperset(self.reads) else "log"
