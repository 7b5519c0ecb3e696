"""What a projection is, how its table is divided, and the columns that many have in common."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from forecast_ledger.projections.catalogue.analysis import Analysis
from forecast_ledger.projections.core.column_values import Column, Values

# What the rows of a table follow from -> the columns that say which part of the table a row belongs to. A part is the
# smallest unit that is worked out again, compared, written and checked; without columns the whole table is one part.
DIVISIONS: dict[str, tuple[str, ...]] = {
    "log": (),  # anything at all: made again whenever something is recorded
    "forecasts": ("question",),
    "receipts": ("contest", "question"),
    "contests": ("contest",),
    "scores": ("contest", "question"),
    "boards": ("contest",),
    "judgements": ("contest", "participant"),
    "judgements_overall": ("participant",),
    "dealings": ("contest", "participant"),
    "holdings": ("contest", "participant"),
    "trading_boards": ("contest",),
    "trading_overall": (),
    "movements": ("log_position",),  # whose rows never change
    "quotes": (),  # each row has its age
}


class Projection(NamedTuple):
    """A named, versioned pure function from facts to a table.

    build: the values of the columns, in their order. key: the columns the rows are sorted by; none if built in order,
    contest by contest. divided: how, one of DIVISIONS, whose columns come first in the key. asked_for: whether it is
    built only when asked for, because it can have far more rows than the log.
    """

    version: int
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    build: Callable[[Analysis], Iterable[Values]]
    divided: str = "log"
    asked_for: bool = False

    @property
    def part(self) -> tuple[str, ...]:
        """The columns that say which part of the table a row belongs to."""
        return DIVISIONS[self.divided]


CONTEST = Column("contest", "id", "the contest")
QUESTION = Column("question", "id", "the question")
PARTICIPANT = Column("participant", "id", "who forecast")
