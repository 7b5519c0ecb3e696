"""Nothing in the books is taken on trust: a log in which any number of the trading book is another is refused."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from ledger import Corrupt, events
from ledger.log import Recorded
from projections.books import postings
from projections.projection import Projections
from tests import oracle
from tests.test_stories import recorded

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
    """Change any amount, price, share, position, leg or name by one, and the reader stops there or soon after."""
    log = recorded(STORY)
    oracle.told(log)
    missed = []
    for what, _, changed in mutants(log):
        try:
            oracle.told(changed)
        except Corrupt:
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
            with pytest.raises(Corrupt):
                oracle.told(renumbered)


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
