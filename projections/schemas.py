"""What a projection is, and the columns that many have in common."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from projections.table import Column, Values

if TYPE_CHECKING:
    from projections.projection import Projections


class Projection(NamedTuple):
    """A named, versioned pure function from facts to a table.

    build: the values of the columns, in their order. key: the columns the rows are sorted by; none if built in order.
    asked_for: whether it is built only when asked for, because it can have far more rows than the log.
    """

    version: int
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    build: "Callable[[Projections], Iterable[Values]]"
    asked_for: bool = False


CONTEST = Column("contest", "id", "the contest")
QUESTION = Column("question", "id", "the question")
PARTICIPANT = Column("participant", "id", "who forecast")
