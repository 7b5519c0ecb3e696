"""What deciding needs to remember of the past."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.events import AnyEvent, NumericRange, QuestionKind, QuestionResolved
from forecast_ledger.ledger.model.rules import RuleSet

Write = tuple[dict[Any, Any], Any, Any]  # table, key, new value


class Question(NamedTuple):
    """A question as it now stands; closed_at is the early close, if there was one.

    resolution: the one that stands, or that stands again once an annulment is revoked. traded_at: the latest instant of
    a trade in it, µs.
    """

    kind: QuestionKind
    outcomes: tuple[str, ...]
    range: NumericRange | None
    opens_at: int
    closes_at: int
    reveals_at: int | None
    closed_at: int
    settled: bool
    annulled: bool
    resolution: QuestionResolved | None = None
    traded_at: int = -(2**63)


class Contest(NamedTuple):
    """A contest as it now stands; pool, payable_unit and what has been paid in 1e-6 of its currency.

    Where one trades: when it starts, the series of its cohort, how many are enrolled, how many of them have taken a
    decision, and how many positions are open.
    """

    rules: RuleSet
    pool: int
    payable_unit: int
    finalized: bool
    paid: int
    starts_at: int = 0
    series: str = ""
    enrolled: int = 0
    decided: int = 0
    open: int = 0

    def complete(self) -> bool:
        """Whether everybody has taken a decision and nothing is open."""
        return 0 < self.enrolled == self.decided and not self.open


class Quoted(NamedTuple):
    """A question's last prices, 1e-9 by outcome, and the log position that has them."""

    position: int
    quoted_at: int
    prices: tuple[int | None, ...]


class Account(NamedTuple):
    """A participant's cash, 1e-6; how many positions it ever opened, shares it ever bought, 1e-6, what was deposited
    beyond the grant and how many decisions are taken; its last decision's at.
    """

    cash: int
    positions: int = 0
    bought: int = 0
    deposited: int = 0
    taken: int = 0
    decided_at: int = -(2**63)


class Attempts(NamedTuple):
    """What came of the attempts at one decision."""

    made: int = 0
    malformed: int = 0
    taken: bool = False


class Position(NamedTuple):
    """Shares of one outcome and what those still held cost; paid and received: by all trades in it, 1e-6.

    ended: the log position of what settled, refunded or voided it, and what that brought to cash; 0 while nothing has.
    """

    question: str
    outcome: int
    shares: int = 0
    cost: int = 0
    paid: int = 0
    received: int = 0
    ended: int = 0
    brought: int = 0

    def is_open(self) -> bool:
        """Whether shares are held."""
        return self.shares > 0 and not self.ended


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
        self.paid: dict[tuple[str, str], int] = {}  # prizes by contest and winner, 1e-6
        self.cohorts: dict[str, dict[int, str]] = {}  # series -> start -> contest
        self.quotes: dict[str, Quoted] = {}
        self.accounts: dict[tuple[str, str], Account] = {}  # by contest and participant
        self.attempts: dict[tuple[str, str, int], Attempts] = {}  # by contest, participant and period
        self.positions: dict[tuple[str, str, int], Position] = {}  # by contest, participant and number
        self.held: dict[tuple[str, str, str, int], int] = {}  # contest, participant, question, outcome -> newest number
        self.holders: dict[str, dict[tuple[str, str, int], bool]] = {}  # question -> its positions, whenever opened
        self.texts: dict[str, bool] = {}  # by digest
        self.prizes: Callable[[str], Mapping[str, int]] | None = None

    def question(self, name: str) -> Question:
        """The question of this id. Refuses: unknown_question."""
        found = self.questions.get(name)
        if found is None:
            raise Refused("unknown_question", "question", name)
        return found

    def contest(self, name: str) -> Contest:
        """The contest of this id, also a finalized one. Refuses: unknown_contest."""
        found = self.contests.get(name)
        if found is None:
            raise Refused("unknown_contest", "contest", name)
        return found

    def open_contest(self, name: str) -> Contest:
        """The contest of this id, which can still change. Refuses, first that applies: unknown_contest,
        contest_finalized.
        """
        found = self.contest(name)
        if found.finalized:
            raise Refused("contest_finalized", "contest", name)
        return found


# How a command of one kind is decided, and what an event of one kind changes at its log position.
Decide = Callable[[Any, State], AnyEvent | tuple[AnyEvent, ...]]
Evolve = Callable[[Any, State, int], tuple[Write, ...]]
