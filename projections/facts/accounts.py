"""The accounts of a log: every movement of cash and shares, and its postings in double entry."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.book import Change, TradeEvent
from forecast_ledger.ledger.model.mismatch import mismatch, money_text
from forecast_ledger.projections.facts.quotes import LastQuote, Quotes

EXTERNAL_KINDS = frozenset({"granted", "deposited", "withdrawn"})
ENDING_KINDS = frozenset({"settled", "refunded", "voided"})
AccountKey = tuple[str, str]  # contest, participant
BEFORE_ALL = -(2**63)  # µs
LARGEST_SUM = 2**62  # 1e-6; no account that follows the rules reaches it
FINE_PER_MICRO = PROBABILITY  # units of 1e-15, in which postings are counted, in one of 1e-6


class Movement(NamedTuple):
    """The change that one event makes to an account; amounts in 1e-6, signed.

    at: the instant from which it counts, µs: the latest of the event's, of that of the account's movement before it,
    and of that from which the quote of a trade is known.
    number: of the position, 0 if none. question: code, -1 if none. share: the outcome, or ~outcome if against it. cash,
    shares, cost: the change of each; cost is the amount paid for the shares held, without fees. price: of a share,
    1e-9, exact, if shares were sold or settled, else None. fee: the part of the cash that is a fee,
    above 0 if it was paid and below 0 if it was given back.
    """

    position: int
    at: int
    key: AccountKey
    kind: str
    question: int
    share: int
    number: int
    cash: int
    shares: int
    cost: int
    price: Fraction | int | None
    fee: int = 0

    @property
    def realised(self) -> int:
        """The realised profit after fees, 1e-6; 0 for cash that is granted, deposited or withdrawn."""
        return 0 if self.kind in EXTERNAL_KINDS else self.cash + self.cost


class MovedShares(NamedTuple):
    """The shares that a movement changes: question, share and number of the position, and the price of a share.

    They are as in a Movement.
    """

    question: int = -1
    share: int = -1
    number: int = 0
    price: Fraction | int | None = None


NO_SHARES = MovedShares()


class Trade(NamedTuple):
    """An executed leg and the quote that it was executed at, or a trade of elsewhere, which has none.

    cap: the largest bet allowed then, 1e-6; 0 unless it is a bet.
    """

    position: int
    event: TradeEvent
    question: int
    quote: LastQuote | None
    cap: int


@dataclass(slots=True)
class Holding:
    """The current state of a position; a settled or refunded one keeps its last shares and cost."""

    question: int
    share: int
    opened: int
    shares: int = 0
    cost: int = 0
    paid: int = 0
    received: int = 0
    realised: int = 0
    status: str = "open"

    def is_open(self) -> bool:
        """Return True if shares are held."""
        return self.status == "open"


@dataclass(slots=True)
class Account:
    """A participant's cash in a contest, 1e-6, and its positions by number."""

    enrolled: events.ParticipantEnrolled
    cash: int = 0
    deposits: int = 0  # less withdrawals
    realised: int = 0
    fees: int = 0  # less those given back
    counts_from: int = BEFORE_ALL  # µs, the instant of its last movement
    decided: int = 0  # number of decisions
    holdings: dict[int, Holding] = field(default_factory=dict)

    def cost(self) -> int:
        """Return the cost of the open positions, 1e-6."""
        return sum(holding.cost for holding in self.holdings.values() if holding.is_open())


class Attempt(NamedTuple):
    """An attempt at a decision and its log position; defaulted: a HOLD by default followed."""

    position: int
    event: events.DecisionRecorded | events.DecisionMalformed
    defaulted: bool = False


@dataclass(slots=True)
class Progress:
    """The progress of a trading contest: counts of participants, of those with a decision, and of open positions.

    Under the rule completed_by `shown`, hidden participants are not counted.
    completed_at: the instant from which the contest is complete, µs; None while it is not.
    """

    enrolled: int = 0
    decided: int = 0
    open: int = 0
    completed_at: int | None = None

    def complete(self) -> bool:
        """Return True if every participant has taken a decision and no position is open."""
        return 0 < self.enrolled == self.decided and not self.open

    def count_positions(self, opened: int, at: int) -> None:
        """Count positions opened, or closed if negative, at an instant, µs."""
        self.open += opened
        before = at if self.completed_at is None else self.completed_at
        self.completed_at = max(before, at) if self.complete() else None


@dataclass(slots=True)
class Books:
    """The quotes, decisions, accounts and movements of a log, and the state needed to enter further events."""

    accounts: dict[AccountKey, Account] = field(default_factory=dict)
    quotes: Quotes = field(default_factory=Quotes)
    movements: list[Movement] = field(default_factory=list)
    trades: list[Trade] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    refusals: list[tuple[int, events.LegRefused]] = field(default_factory=list)
    failures: list[tuple[int, events.CallFailed]] = field(default_factory=list)
    sealed: dict[str, dict[int, tuple[Fraction, ...]]] = field(
        default_factory=dict
    )  # by contest: payouts when it was finalized
    closed: dict[int, int] = field(default_factory=dict)  # question -> its early close, µs
    moved: dict[AccountKey, AccountKey] = field(default_factory=dict)  # former key -> present one; see `settle_moves`
    holders: dict[int, set[tuple[str, str, int]]] = field(default_factory=dict)  # question -> its positions
    contests: dict[str, Progress] = field(default_factory=dict)
    ends: dict[int, Movement] = field(default_factory=dict)  # by log position: settlements, refunds and voided trades
    clock: int = BEFORE_ALL  # the latest instant that any event claims, µs

    def move(self, old: AccountKey, new: AccountKey) -> None:
        """Give an account to another participant. What is entered already follows with `settle_moves`."""
        account = self.accounts.pop(old)
        account.enrolled = structs.replace(account.enrolled, participant=new[1])
        self.accounts[new] = account
        self.moved = {was: new if now == old else now for was, now in self.moved.items()} | {old: new}

    def settle_moves(self) -> None:
        """Enter all that is recorded of accounts under the participants who have them now."""
        if not self.moved:
            return
        moved, self.moved = self.moved, {}
        of_event = {old: new[1] for old, new in moved.items()}

        def renamed(event: Any) -> Any:
            new = of_event.get((event.contest, event.participant))
            return event if new is None else structs.replace(event, participant=new)

        self.movements = [each._replace(key=moved.get(each.key, each.key)) for each in self.movements]
        self.trades = [each._replace(event=renamed(each.event)) for each in self.trades]
        self.attempts = [each._replace(event=renamed(each.event)) for each in self.attempts]
        self.refusals = [(position, renamed(event)) for position, event in self.refusals]
        self.failures = [(position, renamed(event)) for position, event in self.failures]
        for question, holders in self.holders.items():
            self.holders[question] = {(*moved.get(key[:2], key[:2]), key[2]) for key in holders}

    def progress(self, contest: str) -> Progress:
        """Return the progress of a contest."""
        return self.contests.setdefault(contest, Progress())

    def enter(
        self,
        position: int,
        event: events.AccountEvent,
        change: Change,
        shares: MovedShares = NO_SHARES,
        known_from: int = BEFORE_ALL,
    ) -> None:
        """Enter a movement; known_from: the instant from which the quote of a trade is known, µs."""
        key = event.contest, event.participant
        account = self.accounts[key]
        account.counts_from = max(account.counts_from, event.at, known_from)
        counts_from, kind = account.counts_from, change.kind
        added = change.cash, change.shares, change.cost
        movement = Movement(position, counts_from, key, kind, *shares[:3], *added, shares.price, change.fee)
        account.cash += movement.cash
        account.realised += movement.realised
        account.fees += movement.fee
        if movement.number:
            account.holdings[movement.number].realised += movement.realised
        if kind in ENDING_KINDS:
            self.ends[position] = movement
        progress = self.contests.get(event.contest)
        if progress is not None and progress.completed_at is not None:
            progress.completed_at = max(progress.completed_at, movement.at)
        if max(abs(account.cash), abs(account.realised), abs(account.deposits)) > LARGEST_SUM:
            raise Corrupt(position, mismatch(f"sums within {money_text(LARGEST_SUM)}", money_text(account.cash)))
        self.movements.append(movement)


class Posting(NamedTuple):
    """One side of an entry, 1e-15 of the contest's currency; participant is "" if the account has no owner."""

    position: int
    account: str
    contest: str
    participant: str
    amount: int


def postings(movement: Movement) -> Iterator[Posting]:
    """Yield the postings of a movement; they sum to 0 and none is 0.

    The house pays the worth of shares, exact but for less than 1e-15; the part that rounding down withholds is posted
    as rounding.
    """
    contest, participant = movement.key
    cash, cost = movement.cash * FINE_PER_MICRO, movement.cost * FINE_PER_MICRO
    fee = movement.fee * FINE_PER_MICRO
    exact = cash + fee if movement.price is None else -int(movement.shares * movement.price)
    counterparty = "external" if movement.kind in EXTERNAL_KINDS else "house"
    for account, owner, amount in (
        ("cash", participant, cash),
        (counterparty, "", -cost - exact),
        ("positions", participant, cost),
        ("fees", "", fee),
        ("rounding", "", exact - cash - fee),
    ):
        if amount:
            yield Posting(movement.position, account, contest, owner, amount)
