"""The books of a log: every movement of cash and shares, and the double entry it stands for."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.mismatch import mismatch, money_text

EXTERNAL = frozenset({"granted", "deposited", "withdrawn"})
ENDS = frozenset({"settled", "refunded", "voided"})
Key = tuple[str, str]  # contest, participant
Change = tuple[int, int, int, int, int, int, int | None]  # of a movement, from `question` on
LARGEST_SUM = 2**62  # 1e-6: that no account can come to
FINE = PROBABILITY  # postings are counted in 1e-15: money, 1e-6, times this


class Quoted(NamedTuple):
    """A quote of one question; position is of the log, prices 1e-9 by outcome.

    told_at: the instant from which it is known, µs: that its command claims, or that of the question's quote before it
    if that is later.
    """

    position: int
    told_at: int
    quoted_at: int
    source: str
    prices: tuple[int | None, ...]


class Movement(NamedTuple):
    """What one event changes in an account; amounts in 1e-6, signed.

    at: the instant from which it counts, µs: the latest of its own, of that of the account's movement before it, and of
    that from which the quote of a trade is known.
    number: the position's, 0 if none; question by code, -1 if none. cash, shares, cost: what is added to each, cost
    being what the shares held have cost. price: of a share, 1e-9, where shares were sold or settled; else None.
    """

    position: int
    at: int
    key: Key
    kind: str
    question: int
    outcome: int
    number: int
    cash: int
    shares: int
    cost: int
    price: int | None

    @property
    def realised(self) -> int:
        """What is won or lost for good; nothing by cash from or to the outside."""
        return 0 if self.kind in EXTERNAL else self.cash + self.cost


class Trade(NamedTuple):
    """A leg carried out, with the quote it was at; cap: the largest bet then, 1e-6, 0 for a sale."""

    position: int
    event: events.SharesBought | events.SharesSold
    question: int
    quoted: Quoted
    cap: int


@dataclass(slots=True)
class Holding:
    """A position as it now stands; shares and cost of a settled or refunded one are those it had."""

    question: int
    outcome: int
    opened: int
    shares: int = 0
    cost: int = 0
    paid: int = 0
    received: int = 0
    realised: int = 0
    status: str = "open"

    def is_open(self) -> bool:
        """Whether shares are held."""
        return self.status == "open"


@dataclass(slots=True)
class Account:
    """A participant's cash in a contest, 1e-6, and its positions by number."""

    enrolled: events.ParticipantEnrolled
    cash: int = 0
    deposits: int = 0  # less withdrawals
    realised: int = 0
    counts_from: int = -(2**63)  # the instant of its last movement
    decided: int = 0  # how many decisions are taken
    holdings: dict[int, Holding] = field(default_factory=dict)

    def cost(self) -> int:
        """What the open positions have cost."""
        return sum(holding.cost for holding in self.holdings.values() if holding.is_open())


class Attempt(NamedTuple):
    """One attempt at a decision, and the log position that has it; defaulted: whether HOLD by default followed."""

    position: int
    event: events.DecisionRecorded | events.DecisionMalformed
    defaulted: bool = False


class Ruling(NamedTuple):
    """What a question's resolution pays for a share of each outcome, 1e-9; () where it is annulled or revoked."""

    position: int
    at: int
    question: int
    payouts: tuple[int, ...]


@dataclass(slots=True)
class Progress:
    """How far a contest in which one trades has come; completed_at: µs, since it has been complete."""

    enrolled: int = 0
    decided: int = 0
    open: int = 0
    completed_at: int | None = None

    def complete(self) -> bool:
        """Whether everybody has taken a decision and nothing is open."""
        return 0 < self.enrolled == self.decided and not self.open

    def note(self, opened: int, at: int) -> None:
        """Positions have been opened, or closed."""
        self.open += opened
        before = at if self.completed_at is None else self.completed_at
        self.completed_at = max(before, at) if self.complete() else None


@dataclass(slots=True)
class Books:
    """Everything a log says of quotes, decisions and money, with what keeping them needs to remember."""

    accounts: dict[Key, Account] = field(default_factory=dict)
    quotes: dict[int, list[Quoted]] = field(default_factory=dict)  # by question, in log order
    movements: list[Movement] = field(default_factory=list)
    trades: list[Trade] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    refusals: list[tuple[int, events.LegRefused]] = field(default_factory=list)
    payouts: dict[int, tuple[int, ...]] = field(default_factory=dict)  # of settled questions, 1e-9 by outcome
    rulings: list[Ruling] = field(default_factory=list)
    sealed: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)  # payouts as of a contest's seal
    closed: dict[int, int] = field(default_factory=dict)  # question -> its early close, µs
    holders: dict[int, set[tuple[str, str, int]]] = field(default_factory=dict)  # question -> its positions
    contests: dict[str, Progress] = field(default_factory=dict)
    ends: dict[int, Movement] = field(default_factory=dict)  # by log position: what settled, refunded, voided
    clock: int = -(2**63)  # the latest instant that an event claims, whichever it is

    def payouts_of(self, contest: str, question: int) -> tuple[int, ...] | None:
        """What a share of each outcome pays, 1e-9, if the question is resolved; of a sealed contest as of its seal."""
        return self.sealed.get(contest, self.payouts).get(question)

    def progress(self, contest: str) -> Progress:
        """How far a contest has come."""
        return self.contests.setdefault(contest, Progress())

    def enter(
        self, position: int, event: events.AccountEvent, kind: str, change: Change, known_from: int = -(2**63)
    ) -> None:
        """Enter a movement; known_from: since when what it rests on is known, µs."""
        account = self.accounts[event.contest, event.participant]
        account.counts_from = max(account.counts_from, event.at, known_from)
        movement = Movement(position, account.counts_from, (event.contest, event.participant), kind, *change)
        account.cash += movement.cash
        account.realised += movement.realised
        if movement.number:
            account.holdings[movement.number].realised += movement.realised
        if kind in ENDS:
            self.ends[position] = movement
        progress = self.contests.get(event.contest)
        if progress is not None and progress.completed_at is not None:
            progress.completed_at = max(progress.completed_at, movement.at)
        if max(abs(account.cash), abs(account.realised), abs(account.deposits)) > LARGEST_SUM:
            raise Corrupt(position, mismatch(f"sums within {money_text(LARGEST_SUM)}", money_text(account.cash)))
        self.movements.append(movement)


class Posting(NamedTuple):
    """One side of an entry, 1e-15 of the contest's currency; participant "" where it is nobody's."""

    position: int
    account: str
    contest: str
    participant: str
    amount: int


def postings(movement: Movement) -> Iterator[Posting]:
    """The sides of a movement, which sum to 0; none of them is 0.

    What shares are exactly worth is the house's to pay, what rounding down keeps back is booked as rounding.
    """
    contest, participant = movement.key
    cash, cost = movement.cash * FINE, movement.cost * FINE
    exact = cash if movement.price is None else -movement.shares * movement.price
    other = "external" if movement.kind in EXTERNAL else "house"
    for account, owner, amount in (
        ("cash", participant, cash),
        (other, "", -cost - exact),
        ("positions", participant, cost),
        ("rounding", "", exact - cash),
    ):
        if amount:
            yield Posting(movement.position, account, contest, owner, amount)
