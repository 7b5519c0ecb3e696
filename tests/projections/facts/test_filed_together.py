"""Questions that are filed together, and one by one."""

import pickle
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

import msgspec
import pytest

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LARGEST_WEIGHT, LAST_INSTANT, LONGEST_PERIOD
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.events import AnyEvent
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.facts import from_log
from forecast_ledger.projections.facts.columns import Entry, Facts
from forecast_ledger.projections.facts.event_checks import check_event
from forecast_ledger.projections.facts.filed_together import file_together
from forecast_ledger.projections.facts.from_log import file_page
from forecast_ledger.projections.facts.settlements import Settlement
from tests.projections.facts.test_event_checks import (
    CLOSES,
    HALF,
    OPENS,
    added,
    annulled,
    binary,
    contest,
    flow,
    forecast,
    named,
    numeric,
    read,
    rescheduled,
    resolved,
    revoked,
)
from tests.support.effort import times

ALONE: list[AnyEvent] = [binary("wind"), added(), resolved()]
ODD: dict[str, list[Any]] = {
    "outcomes": [(), ("yes",), ("yes", "yes"), ("yes", "no", "no"), ("yes", "no", "maybe")],
    "kind": ["numeric", "date", "multiple_choice"],
    "range": [events.NumericRange(lower="0", upper="1", bins=2), events.NumericRange(lower="1", upper="0", bins=2)],
    "question": ["rain", "depth", "flow", "none", "snow"],
    "contest": ["numbers", "none"],
    "spots": [(events.Spot(at=OPENS),), (events.Spot(at=OPENS - 1),), (events.Spot(at=OPENS, weight=0),)],
    "payouts": [(0, 2 * HALF), (1, 2, 3), (-1, 1)],
    "value": ["1", "1e9"],
}
NUMBERS = [-(2**63), FIRST_INSTANT - 1, FIRST_INSTANT, -1, 0, 1, 2, OPENS - 1, OPENS, OPENS + 1, CLOSES, CLOSES + 1]
NUMBERS += [
    10**12,
    10**12 + 1,
    OPENS + LONGEST_PERIOD,
    OPENS + LONGEST_PERIOD + 1,
    LAST_INSTANT,
    LAST_INSTANT + 1,
    LARGEST_WEIGHT,
    LARGEST_WEIGHT + 1,
    2**63,
]


@pytest.mark.parametrize("alone", ALONE, ids=lambda event: type(event).__name__)
def test_what_is_filed_together_is_that_in_which_nothing_is_found(alone: AnyEvent) -> None:
    """With one or two of the fields of an event changed: it is filed with others, of which one is much like it, if and
    only if no check of the event finds a fault; and none of them leaves a trace if they are not filed.
    """
    alike = [msgspec.structs.replace(alone, question="sleet" if isinstance(alone, events.QuestionOpened) else "snow")]
    alike += [added(contest="numbers", question="depth")] * isinstance(alone, events.QuestionAdded)
    changes = [
        {name: value}
        for name in alone.__struct_fields__
        for value in (ODD[name] if name in ODD else [] if isinstance(getattr(alone, name), str | tuple) else NUMBERS)
    ]
    changed = [msgspec.structs.replace(alone, **one) for one in changes]
    changed += [
        msgspec.structs.replace(alone, **one, **other)
        for one, other in combinations(changes, 2)
        if one.keys() != other.keys()
    ]
    only_numbers = contest(contest="numbers", rules=RuleSet(name="numbers", kernel="none", cdf_kernel="ln"))
    first: list[AnyEvent] = [binary(), numeric(), flow(), contest(), only_numbers]
    kept, known = pickle.dumps(read(*first)), read(*first, binary("snow"))
    before, unchanged, filed = pickle.loads(kept), shown(pickle.loads(kept)), 0  # noqa: S301 - ours
    for event in changed:
        is_right = not has_fault(known, event)
        assert file_together(before, range(7, 9 + len(alike)), [binary("snow"), event, *alike]) == is_right, event
        if is_right:
            before, filed = pickle.loads(kept), filed + 1  # noqa: S301 - ours
        else:
            assert shown(before) == unchanged
    assert 0 < filed < len(changed)


def has_fault(before: Facts, event: AnyEvent) -> bool:
    """Whether something is wrong with an event."""
    try:
        check_event(before, 8, event)
    except (Corrupt, KeyError):
        return True
    return False


def shown(facts: Facts) -> list[object]:
    """What events of questions and contests change, with the order in which tables that are dicts have it."""
    books, contests = facts.books, facts.contests.items()
    return [
        *(facts.as_of, facts.questions, facts.opened, facts.former, facts.closings, facts.settlements),
        *([*each.items()] for each in (facts.question_codes.codes, facts.settled)),
        *(books.clock, [(name, [*each.entries.items()], each.opened) for name, each in contests]),
    ]


def test_what_is_filed_of_each_event() -> None:
    """Of two questions: one counts at two instants of a contest and pays halves, the other is resolved to its second
    outcome.
    """
    spots = (events.Spot(at=OPENS + 1, weight=2), events.Spot(at=OPENS + 3))
    several = [
        binary("snow"),
        binary("sleet", opens_at=OPENS + 1),
        added(question="sleet", weight=7, spot_at=OPENS + 2),
    ]
    several += [added(question="snow", spots=spots), resolved("sleet", outcome=1, value="")]
    several += [resolved("snow", outcome=-1, value="", payouts=(1, 1), payout_unit=2, known_at=OPENS + 4)]
    facts, half = read(contest()), Fraction(1, 2)
    assert file_together(facts, range(2, 8), several)
    assert (facts.questions, facts.opened, facts.question_codes.codes) == (several[:2], [2, 3], {"snow": 0, "sleet": 1})
    counted = ((OPENS + 1, 2), (OPENS + 3, 1))
    entries = {1: Entry(4, 1, 7, None, OPENS + 2), 0: Entry(5, 0, 1_000_000, None, None, counted)}
    assert [*facts.contests["cup"].entries.items()] == [*entries.items()]
    answers = [
        Settlement(6, 1, 1, CLOSES, "", True, (), at=CLOSES),
        Settlement(7, 0, -1, OPENS + 4, "", True, (half, half), at=CLOSES),
    ]
    assert facts.settlements == answers
    assert facts.settled == {1: answers[0], 0: answers[1]}
    assert [facts.payouts(question) for question in (0, 1)] == [(half, half), (0, 1)]


def test_equal_values_of_different_questions_are_held_once() -> None:
    """A log can have very many questions, and most have the outcomes, the range and the times of others."""
    names, decode = [f"q{number}" for number in range(300)], msgspec.json.Decoder(AnyEvent).decode
    several: list[Any] = [msgspec.structs.replace(numeric(), question=name) for name in ("n0", "n1")]
    several += [each for name in names for each in (binary(name), added(question=name), resolved(name, value=""))]
    facts = read(contest())
    assert file_together(facts, range(2, 904), [*map(decode, map(msgspec.json.encode, several))])
    for name in ("at", "opens_at", "closes_at", "outcomes", "range"):
        assert len({id(getattr(question, name)) for question in facts.questions}) == 1 + (name in {"outcomes", "range"})
    for name in ("at", "known_at"):
        assert len({id(getattr(answer, name)) for answer in facts.settlements}) == 1
    codes, entries, settled = facts.question_codes.codes, facts.contests["cup"].entries, facts.settled
    last = [[*table][-1] for table in (codes.values(), entries, settled)]
    last += [entries[301].question, settled[301].question]
    assert {*map(id, last)} == {id(last[0])}


KERNELS: dict[str, Any] = {"kernel": "brier", "cdf_kernel": "crps", "quantile_kernel": "pinball"}
RULES = RuleSet(name="any", **KERNELS, period="covered", total="mean")
ENTRIES: list[dict[str, Any]] = [{}, {}, {"spot_at": OPENS + 1}, {"spots": (events.Spot(at=OPENS + 1),)}, {"weight": 7}]
ANSWERS: list[dict[str, Any]] = [{}, {"outcome": 1}, {"outcome": -1, "payouts": (HALF, HALF)}, {"known_at": OPENS}]
SELDOM: list[AnyEvent] = [annulled(), revoked(), rescheduled(closes_at=CLOSES + 1)]


def about(question: str, chance: Random) -> list[AnyEvent]:
    """Events about a question in their order: most fit those before them."""
    opened = chance.choice([binary(), binary(), named(), numeric(), flow()])
    answer = {"value": "0.5", "outcome": 1} if opened.range else {"value": "", **chance.choice(ANSWERS)}
    if len(opened.outcomes) > 2:
        answer = {"value": ""}
    later: list[AnyEvent] = [
        added(contest=cup, **chance.choice(ENTRIES)) for cup in ("cup", "shield") if chance.random() < 0.8
    ]
    later += [resolved(**answer)] * chance.choice([0, 1, 1, 1, 2])
    if chance.random() < 0.2:
        later.insert(chance.randrange(len(later) + 1), chance.choice(SELDOM))
    hidden = {"reveals_at": OPENS + 5} if chance.random() < 0.2 else {}
    return [
        msgspec.structs.replace(each, question=question) for each in (msgspec.structs.replace(opened, **hidden), *later)
    ]


def season(chance: Random) -> list[Recorded]:
    """Two contests, and events about some questions at once; in half of all seasons one is out of place or has a number
    of another, or the question of another.
    """
    waiting = [about(f"q{number}", chance) for number in range(chance.randrange(1, 12))]
    written: list[AnyEvent] = [binary(), *(contest(contest=name, rules=RULES) for name in ("cup", "shield"))]
    while waiting:
        events_of = chance.choice(waiting)
        written.append(events_of.pop(0))
        waiting = [each for each in waiting if each]
    at = chance.randrange(3, len(written))
    if chance.random() < 0.25:
        numbers = [name for name in written[at].__struct_fields__ if type(getattr(written[at], name)) is int]
        odd = {chance.choice(numbers): chance.choice(NUMBERS)} if chance.random() < 0.8 else {"question": "q0"}
        written[at] = msgspec.structs.replace(written[at], **odd)
    elif chance.random() < 0.33:
        written.insert(chance.randrange(3, len(written)), written.pop(at))
    for _ in range(chance.randrange(3)):
        written.insert(chance.randrange(1, len(written) + 1), forecast(probabilities=(HALF, HALF)))
    envelope: dict[str, Any] = {"recorded_at": 0, "command_id": "", "command": "", "previous": ""}
    return [Recorded(position=at, event=event, **envelope) for at, event in enumerate(written, 1)]


def filed(pages: list[list[Recorded]]) -> list[object] | str:
    """What the events of pages make, or the first fault."""
    facts = Facts()
    try:
        for page in pages:
            file_page(facts, page)
    except Corrupt as fault:
        return str(fault)
    return shown(facts)


def test_pages_filed_together_are_those_filed_event_by_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same facts in the same order, or the same fault at the same position, for whatever pages."""
    chance, made = Random(5), []
    for _ in range(times(2_000)):
        events_of, size = season(chance), chance.choice([1, 2, 5, 100])
        made.append([events_of[begin : begin + size] for begin in range(0, len(events_of), size)])
    one_by_one = [filed([[row] for page in pages for row in page]) for pages in made]
    faults = sum(isinstance(each, str) for each in one_by_one)
    assert len(made) // 10 < faults < len(made) - len(made) // 10
    monkeypatch.setattr(from_log, "_ENOUGH", 2)
    assert [*map(filed, made)] == one_by_one
