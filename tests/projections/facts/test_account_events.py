"""Nothing in the books is taken on trust: a log in which any number of the trading book is another is found."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.facts.accounts import postings
from tests.ledger.auditing.test_audit import stops
from tests.ledger.model.test_mismatch import SAYS_BOTH
from tests.support import oracle
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
# What a reader cannot work out again: what was said, when, by whom and why; the action is held to the schema.
SAID = {"source", "reasoning", "quoted_at", "quotes", "fault", "code", "prompt", "response", "side", "action"}


def unheld(event: events.Event) -> set[str]:
    """A decision, a quote and a text say when they happened; what follows from something happens at its instant."""
    said = (events.PricesQuoted, events.DecisionRecorded, events.DecisionMalformed, events.TextKept)
    return {"at"} if isinstance(event, said) else set()


def others(value: Any) -> list[Any]:
    """Values near another."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, -value or 7]
    if isinstance(value, tuple):
        return [value[:-1]] if value else []
    return [value + "x", ""] if isinstance(value, str) and value else []


def mutants(log: list[Recorded]) -> Iterator[tuple[str, int, list[Recorded]]]:
    """The log with one field of one event of trading changed, under the name of that change."""
    for place, each in enumerate(log):
        if not isinstance(each.event, TRADING):
            continue
        for name in each.event.__struct_fields__:
            for other in others(getattr(each.event, name)) if name not in SAID | unheld(each.event) else ():
                changed = structs.replace(each, event=structs.replace(each.event, **{name: other}))
                what = f"{events.TAGS[type(each.event)]} {name} {getattr(each.event, name)!r} -> {other!r}"
                yield what, each.position, [*log[:place], changed, *log[place + 1 :]]


def test_every_number_of_the_books_is_worked_out_again() -> None:
    """Change any amount, price, share, position, leg or name by one, and the reader stops there or soon after, and
    says what was expected and what was found.
    """
    log = recorded(STORY)
    audited(log)
    missed = []
    for what, _, changed in mutants(log):
        try:
            audited(changed)
        except Corrupt as stopped:
            if SAYS_BOTH.fullmatch(str(stopped)):
                continue
        missed.append(what)
    assert missed == []


@pytest.mark.parametrize("kind", [each for each in TRADING if each is not events.PricesQuoted], ids=events.TAGS.get)
def test_an_event_left_out_or_said_twice_is_refused(kind: type[events.Event]) -> None:
    """What follows from a decision or a resolution is there once, in its place."""
    log = recorded(STORY)
    places = [place for place, each in enumerate(log) if type(each.event) is kind]
    assert places
    for place in places:
        for forged in ([*log[:place], *log[place + 1 :]], [*log[: place + 1], *log[place:]]):
            renumbered = [structs.replace(each, position=i) for i, each in enumerate(forged, 1)]
            with pytest.raises(Corrupt) as stopped:
                audited(renumbered)
            assert SAYS_BOTH.fullmatch(str(stopped.value))


def test_a_log_may_be_cut_anywhere() -> None:
    """An auditor reads as of any position, also in the middle of a decision or a settlement."""
    log = recorded(STORY)
    for end in range(len(log) + 1):
        found = oracle.told(log[:end])
        assert found.as_of == end
        assert len(Projections(found).table("arena_leaderboard")) == len(found.books.accounts)


def test_every_entry_sums_to_zero_and_so_do_the_books() -> None:
    """Cash and positions at cost, less what came from outside, is what has been won or lost for good."""
    found = oracle.told(recorded(STORY))
    for movement in found.books.movements:
        sides = list(postings(movement))
        assert sum(side.amount for side in sides) == 0
        assert all(side.amount for side in sides)
    for account in found.books.accounts.values():
        assert account.cash + account.cost() - account.deposits == account.realised
        assert account.realised == sum(holding.realised for holding in account.holdings.values())


def under(log: list[Recorded], **rules: Any) -> list[Recorded]:
    """The same log with other trading rules, or another start, in its contest."""
    changed = []
    for each in log:
        event = each.event
        if isinstance(event, events.ContestOpened):
            assert event.rules.trading is not None
            start = rules.get("starts_at", event.starts_at)
            said = {name: value for name, value in rules.items() if name != "starts_at"}
            trading = structs.replace(event.rules.trading, **said)
            event = structs.replace(event, rules=structs.replace(event.rules, trading=trading), starts_at=start)
        changed.append(structs.replace(each, event=event))
    return changed


TWO_BETS = decision(bet(2_500), bet(1_875))
ONE_REFUSED = decision(bet(2_500), bet(2_500))


@pytest.mark.parametrize(
    ("made", "rules"),
    [
        pytest.param(TWO_BETS, {"sum_capped": True}, id="sum_capped"),
        pytest.param(ONE_REFUSED, {"legs": "all_or_nothing"}, id="all_or_nothing"),
        pytest.param(ONE_REFUSED, {"cap_divisor": 5}, id="above_cap"),
        pytest.param(decision(bet(100)), {"least_bet": 100_000_001}, id="below_least_bet"),
        pytest.param(decision(sale(1, position_id="7")), {"least_percentage": 1_000_001}, id="bad_percentage"),
    ],
)
def test_a_decision_beyond_its_rules_is_found(made: AnyCommand, rules: dict[str, Any]) -> None:
    """What makes a reply malformed cannot be recorded as a decision, be its legs refused or not; bets that are all or
    nothing are all carried out, or none.
    """
    log = enveloped(each.event for each in oracle.history(*trading_floor(), made))
    audited(under(log))
    position, said = stops(under(log, **rules))
    assert (position, said.startswith("decision_recorded.v1: expected ")) == (10, True), said


def under_again(log: list[Recorded], **rules: Any) -> list[Recorded]:
    """The same events under other rules, in envelopes of their own."""
    return enveloped(each.event for each in under(log, **rules))


def test_a_cohort_starts_on_its_sunday_and_decides_while_it_is_new() -> None:
    """Weekly cohorts start on a Sunday, one a week; of a series only so many of the newest decide."""
    later = cohort("next", at="2026-03-08T00:00:00Z")
    log = oracle.history(*trading_floor(), later, decision())
    audited(log)
    first, other = (each.event.starts_at for each in log if isinstance(each.event, events.ContestOpened))
    assert first is not None
    assert other is not None
    assert "found duplicate_cohort: " in stops(under_again(log, starts_at=first))[1]
    day_after = stops(under_again(log, starts_at=first + 86_400 * 10**6))[1]
    assert "expected starts_at 2026-03-01T00:00:00Z; found 2026-03-02T00:00:00Z" in day_after
    assert "expected starts_at 2026-03-01T00:00:00Z; found none" in stops(under_again(log, starts_at=None))[1]
    assert "found cohort_not_deciding: " in stops(under_again(log, deciding_cohorts=1))[1]
    audited(under_again(log, deciding_cohorts=2))


def test_nobody_is_enrolled_in_a_contest_that_is_complete() -> None:
    """Everybody has decided and nothing is open: cash granted then would be of a contest that is over."""
    log = oracle.history(*trading_floor(), decision())
    [granted] = [each.event for each in log if isinstance(each.event, events.CashGranted)]
    enrolled = events.ParticipantEnrolled(at=granted.at, contest="week", participant="bo", entrant="", bot=False)
    cash = structs.replace(granted, participant="bo")
    assert "found contest_complete: " in stops(enveloped([enrolled, cash], after=log))[1]
