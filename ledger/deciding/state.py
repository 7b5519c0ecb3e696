"""The state that commands are decided against."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import NEVER
from forecast_ledger.ledger.model.events import AnyEvent, NumericRange, QuestionKind, QuestionResolved
from forecast_ledger.ledger.model.rules import RuleSet

Write = tuple[dict[Any, Any], Any, Any]  # table, key, new value


class QuestionState(NamedTuple):
    """The state of a question; instants in µs.

    closed_at: the early close if there was one, else closes_at. resolution: the current one; after an annulment, the
    one that revoking the annulment restores. traded_at: the latest instant of a trade on the question. outcomes: all
    that the question ever had, in the order in which they came. removed: those of them that it has no more. catch_all:
    the one that stands for all that are not named. changed_at: when outcomes last changed. grace_ends_at: the
    latest end of a grace period.
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
    removed: frozenset[str] = frozenset()
    catch_all: str = ""
    changed_at: int = -(2**63)
    grace_ends_at: int = -(2**63)

    @property
    def current(self) -> tuple[str, ...]:
        """The outcomes that the question has now."""
        if not self.removed:
            return self.outcomes
        return tuple(outcome for outcome in self.outcomes if outcome not in self.removed)

    def side(self, share: int, *, bought: bool) -> tuple[int, bool]:
        """Return an outcome, and whether trades meet its asks; who buys no, or against an outcome, meets the bids."""
        if share < 0:
            return ~share, not bought
        return (0, not bought) if self.kind == "binary" and share else (share, bought)

    @property
    def has_changed(self) -> bool:
        """Whether its outcomes ever changed."""
        return self.changed_at > -(2**63)


class EntryState(NamedTuple):
    """A question in a contest. first_spot: its earliest spot, µs; NEVER if it has none. split: whether its hidden
    period makes up a part of its coverage that is not all of it.
    """

    first_spot: int = NEVER
    split: bool = False


class ContestState(Struct, frozen=True, array_like=True, gc=False):
    """The state of a contest; pool, payable_unit and paid, the prizes paid so far, in 1e-6 of its currency.

    Of a trading contest also: starts_at, µs; series, of which it is a cohort; enrolled, the number of participants;
    decided, how many of them have taken a decision; open, the number of open positions. Under the rule completed_by
    `shown`, hidden participants are not counted.
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

    @property
    def is_paid(self) -> bool:
        """Whether the whole pool is paid."""
        return self.paid >= self.pool > 0

    def complete(self) -> bool:
        """Return whether every participant has taken a decision and no position is open."""
        return 0 < self.enrolled == self.decided and not self.open

    def can_end(self) -> bool:
        """Return whether it is complete; where trades of elsewhere are recorded, nobody needs to take a decision."""
        trading = self.rules.trading
        return self.complete() or (trading is not None and trading.recorded_trades and not self.open)


class LastQuote(Struct, frozen=True, array_like=True, gc=False):
    """The last prices of a question, 1e-9 by outcome, and the log position of their event; bids, asks: () if none.

    bid_sizes, ask_sizes: the shares that can be sold and bought, 1e-6; () if the quote does not say.
    """

    position: int
    quoted_at: int
    prices: tuple[int | None, ...]
    bids: tuple[int | None, ...] = ()
    asks: tuple[int | None, ...] = ()
    bid_sizes: tuple[int | None, ...] = ()
    ask_sizes: tuple[int | None, ...] = ()


class AccountState(Struct, frozen=True, array_like=True, gc=False):
    """The account of a participant in a trading contest.

    cash, 1e-6. positions: the number opened so far. bought: shares bought so far, 1e-6; of recorded trades, also those
    sold, or the money if it is more. deposited: cash beyond the
    first grant, 1e-6. taken: the number of decisions taken. decided_at: the instant of the last decision, µs.
    """

    cash: int
    positions: int = 0
    bought: int = 0
    deposited: int = 0
    taken: int = 0
    decided_at: int = -(2**63)


class AttemptCounts(Struct, frozen=True, array_like=True, gc=False):
    """The attempts at one decision: how many, how many of them malformed, and whether it is taken."""

    made: int = 0
    malformed: int = 0
    taken: bool = False


class PositionState(Struct, frozen=True, array_like=True, gc=False):
    """A position: the shares that are held, 1e-6, and their cost, 1e-6; below 0 if they are owed.

    share: the outcome, or ~outcome if they are against it. paid, received, fees: the sums of all its trades, 1e-6.
    ended: the log position of the event that settled, refunded or voided it; 0 until then. brought: the cash of that
    event, 1e-6.
    """

    question: str
    share: int
    shares: int = 0
    cost: int = 0
    paid: int = 0
    received: int = 0
    ended: int = 0
    brought: int = 0
    fees: int = 0

    def is_open(self) -> bool:
        """Return whether shares are held, or owed if they are below 0."""
        return self.shares != 0 and not self.ended


# When a participant's last forecast or withdrawal was made, µs: one integer for most forecasts, in a third of the
# memory of a tuple. The second instant, if there is one, is that at which the forecast ends by itself. A withdrawal
# ends at its own instant, so that nothing stands after it.
Standing = int | tuple[int, int]
StandingOf = dict[str, Standing]  # by participant, on one question


def to_standing(made: int, ends: int) -> Standing:
    """Return what stands after a forecast. ends: NEVER, unless it ends by itself.

    >>> to_standing(5, NEVER), to_standing(5, 9)
    (5, (5, 9))
    """
    return made if ends == NEVER else (made, ends)


def instants(standing: Standing) -> tuple[int, int]:
    """Return when a forecast or withdrawal was made, and when it ends; NEVER if it does not end by itself.

    >>> instants(5) == (5, NEVER), instants((5, 9))
    (True, (5, 9))
    """
    return (standing, NEVER) if isinstance(standing, int) else standing


class PendingForecasts(Protocol):
    """Forecasts that stand, and are not yet added to those of `State.applied`."""

    def stand(self, standing: "dict[str, StandingOf | Unloaded]") -> None:
        """Add them to what stands on each question."""


class Unloaded(Protocol):
    """The forecasts that stand on a resolved or annulled question, which are not in memory."""

    def load(self) -> StandingOf:
        """Return it; the caller may change what it gets."""


def keep_loaded(standing: StandingOf) -> StandingOf:
    """Return what stands on a question as it is."""
    return standing


NOT_EXCLUDED = (0, False)  # in `State.hidden`


class State:
    """Flat tables, whose values are replaced and never mutated; each begins empty.

    prizes: a function from a finalized contest to the prizes of its leaderboard, participant -> amount in 1e-6; None if
    there is none. Like the clock, it is an input of a decision. It may read the whole log, so it is called last.
    null_lists: whether a reply may have null lists. It is False only while an audit decides a reply that is recorded
    as unreadable, because earlier versions did not read such replies.
    unload: moves the forecasts that stand on a resolved or annulled question out of memory; no command needs them
    before the resolution is revoked.
    pending: forecasts that stand, too; they are added to `applied` when `standing` is read.
    """

    questions: dict[str, QuestionState]
    applied: dict[str, StandingOf | Unloaded]  # by question, without the pending ones; see `standing`
    contests: dict[str, ContestState]
    entries: dict[tuple[str, str], EntryState]  # by contest and question
    paid: dict[tuple[str, str], int]  # prizes by contest and winner, 1e-6
    cohorts: dict[str, dict[int, str]]  # series -> start -> contest
    quotes: dict[str, LastQuote]
    # Here and in the next five tables, the participant is the id under which the account was opened.
    accounts: dict[tuple[str, str], AccountState]  # by contest and participant
    attempts: dict[tuple[str, str, int], AttemptCounts]  # by contest, participant and period
    positions: dict[tuple[str, str, int], PositionState]  # by contest, participant and number
    held: dict[tuple[str, str, str, int], int]  # contest, participant, question, share -> number of the newest position
    holders: dict[str, dict[tuple[str, str, int], bool]]  # question -> all its positions, as a set
    # contest, participant, question, outcome, whether asks -> log position of a quote, shares taken from it, 1e-6
    taken_shares: dict[tuple[str, str, str, int, bool], tuple[int, int]]
    opened_as: dict[tuple[str, str], str]  # (contest, participant) -> another id that opened its account
    # (contest, participant) -> log position of its last exclusion, and whether that is as hidden
    hidden: dict[tuple[str, str], tuple[int, bool]]
    enrolled: dict[str, bool]  # every participant who was ever enrolled, as a set
    renamed: dict[str, str]  # former id of a participant -> the present one; "" if it is one again
    former: dict[str, tuple[str, ...]]  # present id -> the others that the participant has had
    texts: dict[str, int]  # digest -> log position, of each text in the log
    required: dict[str, tuple[str, int]]  # "version" -> the least one that may write, and where the log says so

    def __init__(self) -> None:
        for table in State.__annotations__:
            setattr(self, table, {})
        self.prizes: Callable[[str], Mapping[str, int]] | None = None
        self.null_lists = True
        self.unload: Callable[[StandingOf], StandingOf | Unloaded] = keep_loaded
        self.pending: PendingForecasts | None = None

    @property
    def standing(self) -> dict[str, StandingOf | Unloaded]:
        """Forecasts that stand, by question; see `standing_on`. Raises Unavailable: a temporary file cannot be read."""
        if self.pending is not None:
            self.pending.stand(self.applied)
            self.pending = None  # not before: they would be lost if that raises
        return self.applied

    def question(self, name: str) -> QuestionState:
        """Return the question of this id. Refuses: unknown_question."""
        question = self.questions.get(name)
        if question is None:
            raise Refused("unknown_question", "question", name)
        return question

    def standing_on(self, question: str) -> StandingOf:
        """Return what stands on a question. Raises KeyError: it was never opened."""
        standing = self.standing[question]
        if type(standing) is not dict:
            standing = self.standing[question] = self.peek_standing(question)
        return standing

    def peek_standing(self, question: str) -> StandingOf:
        """Return what stands on a question, only to be looked at now. Raises KeyError: it was never opened."""
        standing = self.standing[question]
        return standing if isinstance(standing, dict) else standing.load()

    def last_of(self, question: str, participant: str) -> Standing | None:
        """Return what stands of a participant, under whichever id it was recorded; None if nothing was ever forecast.

        It is the last in time; of a forecast and a withdrawal of one instant under two ids, the forecast. Raises
        KeyError: the question was never opened.
        """
        standing = self.peek_standing(question)
        if not (former := self.former.get(participant)):
            return standing.get(participant)
        lasts = [instants(standing[name]) for name in (participant, *former) if name in standing]
        return to_standing(*max(lasts)) if lasts else None

    def several_ids(self) -> set[str]:
        """Return the present and the former ids of all participants who were renamed."""
        return {*self.former, *self.renamed}

    def takes_part(self, participant: str) -> bool:
        """Return whether anything is recorded of a participant under this id; this may read every question."""
        entered = (who for table in (self.accounts, self.hidden) for _, who in table)
        return (
            participant in self.enrolled
            or participant in entered
            or any(participant in self.peek_standing(name) for name in self.standing)
        )

    def contest(self, name: str) -> ContestState:
        """Return the contest of this id, finalized or not. Refuses: unknown_contest."""
        contest = self.contests.get(name)
        if contest is None:
            raise Refused("unknown_contest", "contest", name)
        return contest

    def completes(self, contest: str, participant: str) -> bool:
        """Return whether a trading contest waits for a participant before it is complete."""
        trading = self.contests[contest].rules.trading
        return trading is None or trading.completed_by == "all" or not self.is_hidden(contest, participant)

    def is_hidden(self, contest: str, participant: str) -> bool:
        """Return whether a participant is excluded as hidden."""
        return self.hidden.get((contest, participant), NOT_EXCLUDED)[1]

    def sealed_with(
        self, questions: Mapping[str, int], participants: Mapping[str, int], seals: Mapping[str, int]
    ) -> list[str]:
        """Return, in order, the finalized contests that one of these questions or participants is part of.

        A participant, under any id, is if it has a forecast on one of the questions, or an account or exclusion. Each
        has a log position; in a contest that has one among `seals`, only what has a later one counts.
        """
        ids = dict[str, int]()
        for who, position in participants.items():
            present = self.renamed.get(who) or who
            for name in (present, *self.former.get(present, ())):
                ids[name] = max(position, ids.get(name, 0))
        people = {seal: {who for who in ids if ids[who] > seal} for seal in {0, *seals.values()}}
        found = set[str]()
        for contest, question in self.entries:
            if contest not in found and self.contests[contest].finalized:
                seal = seals.get(contest, 0)
                if questions.get(question, 0) > seal or self._has_any(contest, question, people[seal]):
                    found.add(contest)
        return sorted(found)

    def _has_any(self, contest: str, question: str, participants: Collection[str]) -> bool:
        """Return whether one of these ids has a forecast on a question, or an account or exclusion in a contest."""
        return bool(participants) and (
            any((contest, who) in table for table in (self.accounts, self.hidden) for who in participants)
            or not self.peek_standing(question).keys().isdisjoint(participants)
        )

    def account_key(self, contest: str, participant: str) -> tuple[str, str]:
        """Return the key of a participant's account, if there is one: the contest, and the id that opened it."""
        return contest, self.opened_as.get((contest, participant), participant)

    def open_contest(self, name: str) -> ContestState:
        """Return the contest of this id. Refuses, first that applies: unknown_contest, contest_finalized."""
        contest = self.contest(name)
        if contest.finalized:
            raise Refused("contest_finalized", "contest", name)
        return contest


# A function that decides the commands of one type, and one that returns the changes of an event at its log position.
Decide = Callable[[Any, State], AnyEvent | tuple[AnyEvent, ...]]
Evolve = Callable[[Any, State, int], tuple[Write, ...]]
