"""Random trades, resolutions and corrections, alone and in batches: what must hold of cash and positions after each."""

import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec import structs

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand, Command
from forecast_ledger.ledger.model.events import AnyEvent
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.writer import Ledger
from tests.ledger.deciding.test_accounts import CASH
from tests.support.effort import times
from tests.support.given import (
    NOW,
    TRADES,
    annulment,
    bet,
    cancellation,
    cash_out,
    cohort,
    day,
    decision,
    deposit,
    enrolment,
    entry,
    finalization,
    market,
    palette,
    quote,
    remembered,
    replied,
    resolution,
    revocation,
    sale,
)

FREE = Trading(period_days=0, cohorts="none", recapitalisation=True, stale_after_seconds=10**9, least_bet_micros=1)
RULES = {"v1": FREE, "v2": structs.replace(FREE, legs="all_or_nothing", sum_capped=True, attempts=1)}
SETTING = [
    market(),
    palette(),
    *[cohort(name, rules=RuleSet(name=name, trading=rules), series=name) for name, rules in RULES.items()],
    *[entry(name, question) for name in RULES for question in ("rain", "colour")],
    *[enrolment(name, who) for name in RULES for who in ("ada", "bob")],
    quote(),
    quote("colour", prices={"red": "0.5", "green": "0.3", "blue": 0}),
]
CONTESTS, WHO = st.sampled_from(list(RULES)), st.sampled_from(["ada", "bob"])
QUESTIONS = st.sampled_from(["rain", "colour"])
SIDES = [("yes", "rain"), ("NO", "rain"), ("red", "colour"), ("green", "colour"), ("blue", "colour"), ("up", "rain")]
AMOUNTS = st.sampled_from(["0.000001", "33.333333", 100, 625, 1_250, "1250.000001", 2_500, 2_501, 0])
BETS = st.tuples(AMOUNTS, st.sampled_from(SIDES)).map(lambda drawn: bet(drawn[0], *drawn[1]))
SALES = st.builds(sale, st.sampled_from(["33.3333", 50, 100, 100, 1, 101]), st.integers(1, 4))
LEGS = st.lists(BETS, max_size=3) | st.lists(SALES, min_size=1, max_size=2)
OF_KEY: dict[str, Any] = {
    "contest": CONTESTS,
    "participant": WHO,
    "period": st.sampled_from([1, 1, 2, 3]),
    "attempt": st.sampled_from([1, 1, 1, 2]),
    "at": st.sampled_from([TRADES, TRADES, day(3), day(1)]),
}
DECISIONS = st.one_of(
    st.tuples(LEGS, st.fixed_dictionaries(OF_KEY)).map(lambda drawn: decision(*drawn[0], **drawn[1])),
    st.builds(replied, st.sampled_from(["?", '{"action": "HOLD", "reasoning": "."}']), **OF_KEY),
)
PRICES: list[Command] = [
    *[quote(prices={"yes": price}, at=day(3)) for price in ("0.1", "0.333333333", "0.9", 0, 1)],
    *[quote("colour", prices=prices, at=day(3)) for prices in ({"red": "0.7", "green": "0.2"}, {"blue": "0.000001"})],
]
FATES: list[Command] = [
    *[resolution(outcome=outcome) for outcome in ("yes", "no")],
    *[resolution("colour", outcome=outcome) for outcome in ("red", "blue")],
    resolution(payouts={"yes": "0.333333333", "no": "0.666666667"}),
    resolution("colour", payouts={"red": "0.2", "green": "0.5", "blue": "0.3"}),
    *[fate(name) for name in ("rain", "colour") for fate in (annulment, cancellation, revocation, revocation)],
]
MONEY: list[Command] = [
    *[move(amount, contest=name) for move in (deposit, cash_out) for amount in ("0.01", 9_000) for name in RULES],
    *[finalization(name) for name in RULES],
]
ANY = st.one_of(DECISIONS, DECISIONS, st.sampled_from(PRICES), st.sampled_from(FATES), st.sampled_from(MONEY))


class AccountsMachine(RuleBasedStateMachine):
    """Commands go to one ledger; whatever is recorded must add up, and be the same for who reads it anew."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger.db"
        self.ledger = Ledger.open(self.path, clock=lambda: NOW)
        self.decisions: dict[str, AnyCommand] = {}  # those recorded, by id
        self.sent = 0

    def teardown(self) -> None:
        """Leave nothing behind."""
        self.ledger.close()
        self.folder.cleanup()

    def send(self, *commands: Any, atomic: bool = False) -> list[Receipt | Refused]:
        """Under new ids, in one batch; what is refused leaves no trace."""
        named = []
        for command in commands:
            self.sent += 1
            named.append(structs.replace(command, id=f"c{self.sent}"))
        before, state = self.ledger.head(), remembered(self.ledger)
        outcomes = self.ledger.handle_many(named, atomic=atomic)
        new = [outcome for outcome in outcomes if isinstance(outcome, Receipt) and not outcome.duplicate]
        rows = sum(receipt.last - receipt.first + 1 for receipt in new)
        assert self.ledger.head().position == before.position + rows
        if not new:
            assert remembered(self.ledger) == state
        if atomic and any(isinstance(outcome, Refused) for outcome in outcomes):
            assert not new
        kept = {receipt.command_id for receipt in new}
        self.decisions |= {each.id: each for each in named if each.id in kept and hasattr(each, "attempt")}
        return outcomes

    @initialize()
    def begins(self) -> None:
        """Two contests on the same two questions, under either methodology."""
        assert not any(isinstance(outcome, Refused) for outcome in self.send(*SETTING))

    @rule(command=DECISIONS)
    def decides(self, command: AnyCommand) -> None:
        """Somebody decides."""
        self.send(command)

    @rule(command=st.sampled_from(PRICES) | st.sampled_from(FATES) | st.sampled_from(MONEY))
    def happens(self, command: AnyCommand) -> None:
        """A price, a resolution or its correction, cash in or out, a seal."""
        self.send(command)

    @rule(commands=st.lists(ANY, min_size=2, max_size=5), atomic=st.booleans())
    def batches(self, commands: list[AnyCommand], atomic: bool) -> None:
        """Several at once."""
        self.send(*commands, atomic=atomic)

    @rule(data=st.data())
    def repeats(self, data: st.DataObject) -> None:
        """A decision that was recorded is sent again under another id: a duplicate, whatever has happened since."""
        if self.decisions:
            first = self.decisions[data.draw(st.sampled_from(sorted(self.decisions)))]
            [again, receipt] = [self.send(first)[0], self.ledger.handle(first)]
            assert isinstance(again, Receipt)
            assert again.duplicate
            assert (again.first, again.last) == (receipt.first, receipt.last)

    @rule()
    def restarts(self) -> None:
        """The ledger is closed and opened again."""
        self.ledger.close()
        self.ledger = Ledger.open(self.path, clock=lambda: NOW)

    @invariant()
    def a_new_reader_knows_what_the_writer_knows(self) -> None:
        """Table by table."""
        self.ledger.head()
        with Ledger.open(self.path) as fresh:
            fresh.head()
            assert remembered(fresh) == remembered(self.ledger)

    @invariant()
    def everything_adds_up(self) -> None:
        """Cash, shares, cost and the counts of a contest, each from the events alone; and what is sealed stays so."""
        happened = [cast("Any", recorded.event) for page in self.ledger.read() for recorded in page]
        state = self.ledger._known.state
        assert {key: account.cash for key, account in state.accounts.items()} == cash_of(happened)
        held = holdings(happened)
        assert {key: (of.shares, of.cost, of.ended > 0) for key, of in state.positions.items()} == held
        assert all(shares >= 0 and cost >= 0 for shares, cost, _ in held.values())
        for name, contest in state.contests.items():
            still = [1 for (of, *_), (shares, _, ended) in held.items() if of == name and shares and not ended]
            taken = {who for of, who, _ in taken_keys(happened) if of == name}
            assert (contest.open, contest.decided, contest.enrolled) == (len(still), len(taken), 2)
        for (name, *_), of in state.positions.items():
            settled = state.questions[of.question].settled and not state.contests[name].finalized
            assert not (settled and of.is_open())
        assert untouched_since_sealed(happened)


def cash_of(happened: list[Any]) -> dict[tuple[str, str], int]:
    """The cash that the events leave in each account."""
    cash: dict[tuple[str, str], int] = defaultdict(int)
    for event in happened:
        if type(event) in CASH:
            cash[event.contest, event.participant] += CASH[type(event)](event)
    return dict(cash)


def holdings(happened: list[Any]) -> dict[tuple[str, str, int], tuple[int, int, bool]]:
    """The shares of each position, what they have cost, and whether it is settled, refunded or void."""
    held: dict[tuple[str, str, int], tuple[int, int, bool]] = {}
    for event in happened:
        if not hasattr(event, "position"):
            continue
        key = event.contest, event.participant, event.position
        shares, cost, ended = held.get(key, (0, 0, False))
        match event:
            case events.SharesBought():
                held[key] = shares + event.shares, cost + event.amount, ended
            case events.SharesSold():
                held[key] = shares - event.shares, cost - event.cost, ended
            case events.SettlementReversed():
                assert ended
                held[key] = shares, cost, False
            case _:
                assert (event.shares, event.cost, ended) == (shares, cost, False)
                held[key] = shares, cost, True
    return held


def taken_keys(happened: list[AnyEvent]) -> list[tuple[str, str, int]]:
    """The decisions that are taken: each once."""
    taken = [
        (event.contest, event.participant, event.period)
        for event in happened
        if isinstance(event, events.DecisionDefaulted)
        or (isinstance(event, events.DecisionRecorded) and (event.action == "HOLD" or event.executed))
    ]
    assert max(Counter(taken).values(), default=1) == 1
    return taken


def untouched_since_sealed(happened: list[Any]) -> bool:
    """Return whether no event of a contest follows its finalization."""
    sealed = set[str]()
    for event in happened:
        if getattr(event, "contest", None) in sealed:
            return False
        if isinstance(event, events.ContestFinalized):
            sealed.add(event.contest)
    return True


TestAccounts = AccountsMachine.TestCase
TestAccounts.settings = settings(max_examples=times(20), stateful_step_count=30, deadline=None)
