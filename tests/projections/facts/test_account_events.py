"""The audit computes every number of the accounts again and finds any that was changed."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.facts.accounts import postings
from forecast_ledger.projections.tables.catalogue import Projections
from tests.ledger.auditing.test_audit import stops
from tests.ledger.model.test_mismatch import SAYS_BOTH
from tests.support import oracle
from tests.support.effort import LONG
from tests.support.forging import audited, enveloped
from tests.support.given import bet, cohort, decision, sale, trading_floor
from tests.system.test_stories import recorded

STORY = "arena-week"
TRADING = (
    events.PricesQuoted,
    events.CashGranted,
    events.DecisionRecorded,
    events.DecisionMalformed,
    events.DecisionDefaulted,
    events.SharesBought,
    events.SharesSold,
    events.LegRefused,
    events.PositionSettled,
    events.PositionRefunded,
    events.SettlementReversed,
    events.TextKept,
)
# Fields that a reader cannot compute again: statements, their source and reasons; the action is checked by the schema.
STATED = {"source", "reasoning", "quoted_at", "quotes", "fault", "code", "prompt", "response", "side", "action"}


def instants_not_checked(event: events.Event) -> set[str]:
    """The instants of decisions, quotes and texts are statements; other events have the instant of their cause."""
    stating = (events.PricesQuoted, events.DecisionRecorded, events.DecisionMalformed, events.TextKept)
    return {"at"} if isinstance(event, stating) else set()


def near_values(value: Any) -> list[Any]:
    """Values near this one, of its type."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, -value or 7]
    if isinstance(value, tuple):
        return [value[:-1]] if value else []
    return [value + "x", ""] if isinstance(value, str) and value else []


def mutants(log: list[Recorded]) -> Iterator[tuple[str, list[Recorded]]]:
    """Copies of the log with one field of one trading event changed: the change, and the copy.

    Every field of every type of event is changed in every way, in one of its events; with LONG, in all of them.
    """
    changes = defaultdict[tuple[str, str, int], list[tuple[int, Any]]](list)  # type, field, way: place, value
    for place, entry in enumerate(log):
        if isinstance(entry.event, TRADING):
            for name in {*entry.event.__struct_fields__} - STATED - instants_not_checked(entry.event):
                for way, value in enumerate(near_values(getattr(entry.event, name))):
                    changes[events.TAGS[type(entry.event)], name, way].append((place, value))
    for (tag, name, _), each in sorted(changes.items()):
        for place, value in each if LONG > 1 else each[:1]:
            entry = log[place]
            changed = structs.replace(entry, event=structs.replace(entry.event, **{name: value}))
            change = f"{tag} {name} {getattr(entry.event, name)!r} -> {value!r}"
            yield change, [*log[:place], changed, *log[place + 1 :]]


def test_every_number_of_the_books_is_worked_out_again() -> None:
    """If any amount, price, share, position, leg or name is changed, the audit stops there or soon after.

    The message states what was expected and what was found.
    """
    log = recorded(STORY)
    audited(log)
    missed = []
    for change, changed in mutants(log):
        try:
            audited(changed)
        except Corrupt as stopped:
            if SAYS_BOTH.fullmatch(str(stopped)):
                continue
        missed.append(change)
    assert missed == []


@pytest.mark.parametrize("kind", [entry for entry in TRADING if entry is not events.PricesQuoted], ids=events.TAGS.get)
def test_an_event_left_out_or_said_twice_is_refused(kind: type[events.Event]) -> None:
    """Each event that follows from a decision or a resolution is recorded once, in its place."""
    log = recorded(STORY)
    places = [place for place, entry in enumerate(log) if type(entry.event) is kind]
    assert places
    for place in places:
        for forged in ([*log[:place], *log[place + 1 :]], [*log[: place + 1], *log[place:]]):
            renumbered = [structs.replace(entry, position=i) for i, entry in enumerate(forged, 1)]
            with pytest.raises(Corrupt) as stopped:
                audited(renumbered)
            assert SAYS_BOTH.fullmatch(str(stopped.value))


def test_a_log_may_be_cut_anywhere() -> None:
    """Tables can be made as of any position, even in the middle of a decision or a settlement."""
    log = recorded(STORY)
    for end in range(len(log) + 1):
        facts = oracle.facts_in(log[:end])
        assert facts.as_of == end
        assert len(Projections(facts).table("arena_leaderboard")) == len(facts.books.accounts)


def test_every_entry_sums_to_zero_and_so_do_the_books() -> None:
    """Postings sum to 0, and cash plus positions at cost less net deposits is the realised profit."""
    facts = oracle.facts_in(recorded(STORY))
    for movement in facts.books.movements:
        sides = list(postings(movement))
        assert sum(side.amount for side in sides) == 0
        assert all(side.amount for side in sides)
    for account in facts.books.accounts.values():
        assert account.cash + account.cost() - account.deposits == account.realised
        assert account.realised == sum(holding.realised for holding in account.holdings.values())


def under(log: list[Recorded], **rules: Any) -> list[Recorded]:
    """The same log with other trading rules, or another start, in its contest."""
    changed = []
    for entry in log:
        event = entry.event
        if isinstance(event, events.ContestOpened):
            assert event.rules.trading is not None
            start = rules.get("starts_at", event.starts_at)
            fields = {name: value for name, value in rules.items() if name != "starts_at"}
            trading = structs.replace(event.rules.trading, **fields)
            event = structs.replace(event, rules=structs.replace(event.rules, trading=trading), starts_at=start)
        changed.append(structs.replace(entry, event=event))
    return changed


TWO_BETS = decision(bet(2_500), bet(1_875))
ONE_REFUSED = decision(bet(2_500), bet(2_500))


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        pytest.param(TWO_BETS, {"sum_capped": True}, id="sum_capped"),
        pytest.param(ONE_REFUSED, {"legs": "all_or_nothing"}, id="all_or_nothing"),
        pytest.param(ONE_REFUSED, {"cap_divisor": 5}, id="above_cap"),
        pytest.param(decision(bet(100)), {"least_bet_micros": 100_000_001}, id="below_least_bet"),
        pytest.param(decision(sale(1, position_id="7")), {"least_percentage_micros": 1_000_001}, id="bad_percentage"),
    ],
)
def test_a_decision_beyond_its_rules_is_found(command: AnyCommand, rules: dict[str, Any]) -> None:
    """A malformed reply cannot be recorded as a decision, even if its legs are refused.

    Under all_or_nothing, either every bet is executed or none.
    """
    log = enveloped(entry.event for entry in oracle.history(*trading_floor(), command))
    audited(under(log))
    position, message = stops(under(log, **rules))
    assert (position, message.startswith("decision_recorded.v1: expected ")) == (10, True), message


def under_again(log: list[Recorded], **rules: Any) -> list[Recorded]:
    """The same events under other rules, in envelopes of their own."""
    return enveloped(entry.event for entry in under(log, **rules))


def test_a_cohort_starts_on_its_sunday_and_decides_while_it_is_new() -> None:
    """Weekly cohorts start on a Sunday, one a week; only the newest cohorts of a series may decide."""
    later = cohort("next", at="2026-03-08T00:00:00Z")
    log = oracle.history(*trading_floor(), later, decision())
    audited(log)
    first, second = (entry.event.starts_at for entry in log if isinstance(entry.event, events.ContestOpened))
    assert first is not None
    assert second is not None
    assert "found duplicate_cohort: " in stops(under_again(log, starts_at=first))[1]
    day_after = stops(under_again(log, starts_at=first + 86_400 * 10**6))[1]
    assert "expected starts_at 2026-03-01T00:00:00Z; found 2026-03-02T00:00:00Z" in day_after
    assert "expected starts_at 2026-03-01T00:00:00Z; found none" in stops(under_again(log, starts_at=None))[1]
    assert "found cohort_not_deciding: " in stops(under_again(log, deciding_cohorts=1))[1]
    audited(under_again(log, deciding_cohorts=2))


def test_nobody_is_enrolled_in_a_contest_that_is_complete() -> None:
    """A contest is complete when everybody has decided and nothing is open; nobody can join it then."""
    log = oracle.history(*trading_floor(), decision())
    [granted] = [entry.event for entry in log if isinstance(entry.event, events.CashGranted)]
    enrolled = events.ParticipantEnrolled(at=granted.at, contest="week", participant="bo", entrant="", bot=False)
    cash = structs.replace(granted, participant="bo")
    assert "found contest_complete: " in stops(enveloped([enrolled, cash], after=log))[1]
