"""What deciding needs to remember of the past."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ledger.events import Kind, NumericRange
from ledger.rules import RuleSet

Write = tuple[dict[Any, Any], Any, Any]  # table, key, new value


class Question(NamedTuple):
    """A question as it now stands; closed_at is the early close, if there was one."""

    kind: Kind
    outcomes: tuple[str, ...]
    range: NumericRange | None
    opens_at: int
    closes_at: int
    reveals_at: int | None
    closed_at: int
    settled: bool
    annulled: bool


class Contest(NamedTuple):
    """A contest as it now stands; pool, payable_unit and what has been paid in 1e-6 of its currency."""

    rules: RuleSet
    pool: int
    payable_unit: int
    finalized: bool
    paid: int


Standing = tuple[int, bool]  # the last thing a participant did on a question: at, and whether a forecast stands since


class State:
    """Flat tables with values that are replaced, never changed.

    prizes: what the board of a finalized contest is worth, participant -> amount in 1e-6; None where nobody can say. It
    comes in to a decision as the clock does, and is asked last, for it can take as long as reading the log.
    """

    def __init__(self) -> None:
        self.questions: dict[str, Question] = {}
        self.standing: dict[tuple[str, str], Standing] = {}
        self.contests: dict[str, Contest] = {}
        self.entries: dict[tuple[str, str], bool] = {}  # (contest, question) -> True
        self.prizes: Callable[[str], Mapping[str, int]] | None = None
