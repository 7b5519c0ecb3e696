"""What a projection is, how its table is divided, and the columns that many have in common."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from forecast_ledger.projections.catalogue.analysis import Analysis
from forecast_ledger.projections.catalogue.inputs import INPUTS, SCORED
from forecast_ledger.projections.core.column_values import Column, Values


class Division(NamedTuple):
    """A way to divide a table into parts: the smallest units that are worked out again, compared, written and checked.

    part: the columns that say which part a row belongs to; without any the whole table is one part. follows: the kinds
    of facts whose changes are followed to the parts that they touch; a table that reads others is made again whole.
    aside: whether a replay builds such a table in its second thread, beside all others.
    """

    part: tuple[str, ...]
    follows: frozenset[str]
    aside: bool = False


_FORECASTS = frozenset({"forecasts", "own_forecasts"})
_ACCOUNT = frozenset({"own_account", "resolutions"})
_VALUES = _ACCOUNT | {"accounts", "questions", "quotes", "contests", "clock"}
_SCORED = frozenset(SCORED)
DIVISIONS: dict[str, Division] = {
    "log": Division((), frozenset(INPUTS)),  # made again whenever something that it reads is recorded
    "forecasts": Division(("question",), _FORECASTS | {"questions", "resolutions"}),
    "receipts": Division(("contest", "question"), _FORECASTS | {"entries"}),
    "contests": Division(("contest",), frozenset({"contests", "entries", "accounts"})),
    "scores": Division(("contest", "question"), _SCORED, aside=True),
    "boards": Division(("contest",), _SCORED, aside=True),
    "judgements": Division(("contest", "participant"), _SCORED),
    "judgements_overall": Division(("participant",), _SCORED),
    "dealings": Division(("contest", "participant"), _ACCOUNT),
    "holdings": Division(("contest", "participant"), _VALUES - {"accounts"}),
    "trading_boards": Division(("contest",), _VALUES),
    "trading_overall": Division((), _VALUES),
    "movements": Division(("log_position",), frozenset({"accounts", "contests"})),  # whose rows never change
    "quotes": Division((), frozenset({"quotes", "questions", "resolutions", "clock"})),  # each row has its age
}


class Projection(NamedTuple):
    """A named, versioned pure function from facts to a table.

    key: the columns that tell rows apart, by which they are sorted. build: the values of the columns, in their order.
    reads: the kinds of facts, of INPUTS, that its rows depend on. divided: how, one of DIVISIONS, whose columns come
    first in the key. as_built: whether the rows keep the order in which they are built, contest by contest, instead.
    final: whether each row is as the event at its log position made it, for ever. asked_for: whether it is built only
    when asked for, because it can have far more rows than the log.
    """

    version: int
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    build: Callable[[Analysis], Iterable[Values]]
    reads: tuple[str, ...]
    divided: str = "log"
    as_built: bool = False
    final: bool = False
    asked_for: bool = False

    @property
    def part(self) -> tuple[str, ...]:
        """The columns that say which part of the table a row belongs to."""
        return DIVISIONS[self.divided].part

    @property
    def kept_up(self) -> str:
        """The division by which new events are followed to its parts: "log" if its own does not follow all it reads."""
        return self.divided if DIVISIONS[self.divided].follows.issuperset(self.reads) else "log"


CONTEST = Column("contest", "id", "the contest")
QUESTION = Column("question", "id", "the question")
PARTICIPANT = Column("participant", "id", "the forecaster")
