"""Tables kept up by parts equal tables built from the whole log, after any history and wherever it is divided."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand, read
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.catalogue import catalogue
from forecast_ledger.projections.catalogue.catalogue import BUILT, CATALOGUE
from forecast_ledger.projections.catalogue.inputs import INPUTS, kinds_of
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.catalogue.schemas import DIVISIONS
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.incremental import incremental_scores
from forecast_ledger.projections.incremental.deltas import TableUpdate, tables_with
from forecast_ledger.projections.incremental.refresh import FOLLOWED, IncrementalTables
from tests.support import oracle
from tests.support.given import (
    annulment,
    bet,
    closing,
    contest,
    day,
    decision,
    enrolment,
    entry,
    exclusion,
    finalization,
    forecast,
    market,
    opened,
    payment,
    quote,
    resolution,
    revocation,
    trading_floor,
    withdrawal,
)
from tests.support.trading_seasons import Season
from tests.system.test_determinism import QUESTIONS, lines

EVEN = {"red": "0.5", "green": "0.3", "blue": "0.2"}
Rows = list[tuple[Any, ...]]


class Kept:
    """Tables to which parts are applied: whatever had their keys goes, what they have comes."""

    def __init__(self) -> None:
        self.rows: dict[str, Rows] = {name: [] for name in BUILT}

    def apply(self, parts: TableUpdate) -> None:
        """Replace the rows of parts; they have no rows of other parts, and are in order."""
        name, new = parts.table.name, list(parts.table.plain())
        assert parts.keys == sorted(parts.keys)
        assert [row for row in new if self.belongs(row, parts)] == new, name
        self.rows[name] = [row for row in self.rows[name] if not self.belongs(row, parts)] + new

    def belongs(self, row: tuple[Any, ...], parts: TableUpdate) -> bool:
        """Whether a row is of one of these parts."""
        return any(row[: len(key)] == key for key in parts.keys)


@cache
def trading(seed: int) -> list[Recorded]:
    """What the engine records of a season of trading."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle_many([read(msgspec.json.encode(command)) for command, _ in Season(seed, 60).said])
        return [recorded for page in ledger.read() for recorded in page]


def told(grows: IncrementalTables, kept: Kept) -> list[TableUpdate]:
    """Whatever has changed, which is applied."""
    parts = list(grows.updates())
    for part in parts:
        kept.apply(part)
    grows.forget()
    return parts


def grown(recorded: Sequence[Recorded], cuts: Sequence[int], lost: frozenset[int] = frozenset()) -> Kept:
    """The tables kept up over a log that is read up to these positions, one after another; what is told at those that
    are lost comes to nothing, as where a disk is full.
    """
    kept, grows = Kept(), IncrementalTables()
    for number, (first, end) in enumerate(zip([0, *cuts], [*cuts, len(recorded)], strict=True)):
        if recorded[first:end]:
            grows.add(recorded[first:end])
        parts = list(grows.updates())
        if end not in lost or number == len(cuts):
            for part in parts:
                kept.apply(part)
            grows.forget()
    return kept


def assert_right_after_each(recorded: Sequence[Recorded], begin: int = 0) -> None:
    """The tables equal a rebuild after every event; begin: up to where what is told comes from elsewhere, but once."""
    kept, grows = Kept(), IncrementalTables()
    if begin:
        every = Projections(facts([recorded[:begin]]))
        kept.rows = {name: list(every.table(name).plain()) for name in BUILT}
        for first, end in ((0, begin - 2), (begin - 2, begin)):
            grows.add(recorded[first:end])
            assert first or list(grows.updates())
            grows.forget()
    for number in range(begin, len(recorded)):
        grows.add(recorded[number : number + 1])
        told(grows, kept)
        assert_equal_a_rebuild(kept, recorded[: number + 1])


@pytest.fixture(params=[0, 2], ids=["one by one", "together"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether even most of a contest's questions are worked out by themselves."""
    monkeypatch.setattr(incremental_scores, "_MOST", request.param)


def assert_equal_a_rebuild(kept: Kept, recorded: Sequence[Recorded]) -> None:
    """Each table has the rows of the whole log's; a board, contest by contest, in its order."""
    every = Projections(facts([recorded] if recorded else []))
    for name in BUILT:
        expected = list(every.table(name).plain())
        if not CATALOGUE[name].as_built:
            assert Counter(kept.rows[name]) == Counter(expected), name
        else:
            assert sorted(kept.rows[name], key=lambda row: str(row[0])) == expected, name


@given(oracle.logs(), st.data())
@settings(max_examples=60, deadline=None)
def test_parts_add_up_to_a_rebuild_of_any_tournament(asked: list[AnyCommand], data: st.DataObject) -> None:
    """Random questions of every kind and contests, divided at random positions, of which some come to nothing."""
    recorded, _ = oracle.attempted(asked)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(recorded)), max_size=8)))
    lost = data.draw(st.sets(st.sampled_from(cuts))) if cuts else set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incremental_scores, "_MOST", data.draw(st.sampled_from([0, 2])))
        assert_equal_a_rebuild(grown(recorded, cuts, frozenset(lost)), recorded)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("seed", range(8))
def test_parts_add_up_to_a_rebuild_of_any_season_of_trading(seed: int) -> None:
    """Quotes, decisions, resolutions, corrections and seals, divided at random positions, some of them lost."""
    recorded, random = trading(seed), Random(seed)
    cuts = sorted(random.sample(range(len(recorded)), 12))
    assert_equal_a_rebuild(grown(recorded, cuts, frozenset(random.sample(cuts, 3))), recorded)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("seed", range(2))
def test_parts_add_up_at_every_single_position(seed: int) -> None:
    """An event at a time, compared after each of the last."""
    recorded, kept, grows = trading(seed)[:260], Kept(), IncrementalTables()
    for number, each in enumerate(recorded, 1):
        grows.add([each])
        for part in grows.updates():
            kept.apply(part)
        grows.forget()
        if number % 13 == 0:
            assert_equal_a_rebuild(kept, recorded[:number])


def test_parts_add_up_for_a_season_with_every_rule_set() -> None:
    """Between its contests every kernel, reference, average, sampling and total, and attested forecasts."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle_many([read(msgspec.json.encode({"id": f"s{n}"} | line)) for n, line in enumerate(lines(1))])
        recorded = [each for page in ledger.read() for each in page]
    random, answers = Random(1), len(recorded) - QUESTIONS
    cuts = sorted(random.sample(range(answers), 5))
    assert_equal_a_rebuild(grown(recorded[:answers], cuts), recorded[:answers])
    cuts += sorted(random.sample(range(answers, len(recorded)), 3))
    assert_equal_a_rebuild(grown(recorded, cuts), recorded)


RELATIVE = structs.replace(PRESETS["relative-2022-04"], bots="scored_only", scored_only_levels=("no_prize",))


def tournament() -> list[Recorded]:
    """Two contests that share questions, and everything that can happen to their scores."""
    names, people = [f"q{number}" for number in range(5)], ("ada", "bob", "dan")
    asked: list[Any] = [opened(name) for name in names]
    asked += [contest(rules=RELATIVE, pool=100), contest("league", rules="brier-daily")]
    asked += [entry("cup", name, weight=weight) for name, weight in zip(names[:4], (1, 2, 1, 3), strict=True)]
    asked += [entry("league", name) for name in names[1:]]
    asked += [
        forecast(name, who, probability=f"0.{place}{number}")
        for number, name in enumerate(names)
        for place, who in enumerate(people, 3)
    ]
    asked += [resolution("q0"), resolution("q1"), enrolment(participant="dan", bot=True)]
    asked += [
        forecast("q2", "zoe"),
        forecast("q4", "eve"),
        resolution("q2", outcome="no"),
        exclusion(participant="bob"),
    ]
    asked += [exclusion(participant="ada", level="hidden"), exclusion("league", "zoe"), resolution("q4")]
    asked += [entry("cup", "q4"), revocation("q4"), revocation("q0"), forecast("q0", "eve"), withdrawal("q0", "bob")]
    asked += [resolution("q0", outcome="no"), resolution("q3"), revocation("q3"), annulment("q3"), resolution("q4")]
    asked += [opened("late"), forecast("late", "[consensus]"), revocation("q1"), resolution("q1", outcome="no")]
    asked += [contest("proof", rules=structs.replace(PRESETS["brier-daily"], attested=True)), entry("proof", "q2")]
    asked += [finalization("cup"), revocation("q1"), payment("cup"), entry("proof", "q0")]
    return oracle.history(*asked, annulment("q1"), revocation("q2"), forecast("q2", "kim"), resolution("q2"))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("begin", [0, 43])
def test_scores_are_right_after_each_event_of_a_tournament(begin: int) -> None:
    """Bots and exclusions that change who is a member, late entries and forecasters, revocations, annulments, seals."""
    assert_right_after_each(tournament(), begin)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("step", [2, 3, 7, 20])
def test_questions_that_change_together_are_right_however_they_are_divided(step: int) -> None:
    """Where a page has a question's whole life, or a seal and what comes before and after it."""
    recorded = tournament()
    for first in range(1, min(step, 3) + 1):
        cuts = range(first, len(recorded), step)
        assert_equal_a_rebuild(grown(recorded, cuts), recorded)
        assert_equal_a_rebuild(grown(recorded, cuts, frozenset(cuts[::2])), recorded)


def played(*commands: AnyCommand) -> list[Recorded]:
    """What is recorded after two markets have been opened in which Ada and Bob trade; Ada holds rain, at 0.40."""
    asked = [*trading_floor("ada", "bob"), decision(bet()), decision(participant="bob"), *commands]
    return oracle.history(*asked)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("begin", [0, 14, 15])
def test_a_fall_is_told_when_the_tick_has_come_that_sees_it(begin: int) -> None:
    """Nothing of Ada's is quoted then: the price of rain fell before, and only the clock moves on over the tick."""
    fall = quote(at="2026-03-02T00:05:00Z", prices={"yes": "0.1"})
    instants = ("2026-03-02T00:07:00Z", "2026-03-02T00:12:00Z", day(2, 3))
    later = [quote("colour", at=at, prices={"red": "0.5"}) for at in instants]
    assert_right_after_each(played(fall, *later), begin)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("begin", [0, 14])
def test_what_is_pending_waits_longer_with_every_instant_told_of(begin: int) -> None:
    """Of a question closed early, and then of one that has come to its close; until it is resolved."""
    later = [quote("colour", at=at, prices={"red": "0.5"}) for at in (day(4), "2026-03-04T00:01:00Z", day(28, 23))]
    after = [quote("snow", at=at) for at in (day(29, 1), "2026-03-29T01:01:00Z")]
    asked: list[AnyCommand] = [
        closing(at=day(3)),
        *later,
        market("snow", closes_at=day(30)),
        *after,
        resolution(at=day(29, 3)),
    ]
    assert_right_after_each(played(*asked, quote("snow", at=day(29, 4))), begin)


@pytest.mark.usefixtures("few")
def test_a_forecast_moves_the_clock_of_trading_too() -> None:
    """The tick comes that sees a fall, what is pending waits longer, and each mark is older; nothing else was told."""
    fall = quote(at="2026-03-02T00:05:00Z", prices={"yes": "0.1"})
    instants = ("2026-03-02T00:07:00Z", "2026-03-02T00:12:00Z", day(4), day(5))
    said: list[AnyCommand] = [forecast("colour", probability=None, probabilities=EVEN, at=at) for at in instants]
    assert_right_after_each(played(fall, *said[:2], closing(at=day(3)), *said[2:], market("snow", at=day(6))))


@pytest.mark.usefixtures("few")
def test_an_early_close_told_of_late_leaves_what_was_known_before_it() -> None:
    """At the movement of the 5th, recorded before the close of the 3rd, rain was at 0.90; at the ticks it never was."""
    bought = decision(bet(50, "red", "colour"), at=day(5), period=1)
    dear, red = quote(at=day(4), prices={"yes": "0.9"}), quote("colour", at=day(5), prices={"red": "0.5"})
    rules = structs.replace(PRESETS["arena-v1"], trading=Trading(period_days=0))
    asked = [*trading_floor("ada", rules=rules), decision(bet()), dear, red, structs.replace(bought, period=2)]
    asked += [closing(at=day(3)), quote("colour", at=day(6), prices={"red": "0.4"}), closing(at=day(2, 12))]
    assert_right_after_each(oracle.history(*asked))


@pytest.mark.parametrize("late", ["zoe", "[consensus]"])
def test_who_comes_late_changes_no_board_but_may_take_the_name_of_the_consensus(late: str) -> None:
    """It comes before the consensus in all that is remembered; of its name, the consensus gets another."""
    scored: list[Any] = [opened(), contest(rules="brier-daily" if late == "zoe" else "relative-2022-04"), entry()]
    scored += [forecast(), forecast(participant="bob"), resolution()]
    later: list[Any] = [opened("snow"), contest("other"), entry("other", "snow"), forecast("snow", late)]
    recorded = oracle.history(*scored, *later, resolution("snow"))
    assert_equal_a_rebuild(grown(recorded, range(len(recorded))), recorded)


def test_the_columns_that_a_table_is_divided_by_come_first_in_it_and_in_its_key() -> None:
    """So that its rows lie part by part; a board, which is in an order of its own, is divided by its contests."""
    for name in BUILT:
        columns = tuple(column.name for column in CATALOGUE[name].columns)
        key = ("contest",) if CATALOGUE[name].as_built else CATALOGUE[name].key
        assert columns[: len(key)] == key, name
        assert key[: len(CATALOGUE[name].part)] == CATALOGUE[name].part, name
    assert all(CATALOGUE[name].part == ("contest",) for name in BUILT if CATALOGUE[name].as_built)


def test_every_way_of_dividing_a_table_is_followed() -> None:
    """Between them, two histories make a part of each table; none of them is left as it was."""
    made = dict.fromkeys(BUILT, 0)
    for recorded in (tournament(), trading(0)):
        grows = IncrementalTables()
        for each in recorded:
            grows.add([each])
            for parts in grows.updates():
                made[parts.table.name] += 1
            grows.forget()
    assert 0 not in made.values()
    assert {CATALOGUE[name].division for name in BUILT} | {"log"} == {*DIVISIONS}


@pytest.mark.usefixtures("few")
def test_a_table_that_nobody_classified_is_made_again_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs more, and is right: every one of them, whatever it follows from."""
    monkeypatch.setattr(
        catalogue, "CATALOGUE", {name: each._replace(division="log") for name, each in CATALOGUE.items()}
    )
    monkeypatch.setattr("forecast_ledger.projections.incremental.deltas.CATALOGUE", catalogue.CATALOGUE)
    recorded = tournament()
    assert tables_with("log") == [*BUILT]
    assert_equal_a_rebuild(grown(recorded, range(3, len(recorded), 5)), recorded)


class Postponed(events.Event, frozen=True, kw_only=True, tag="postponed.v1"):
    """An event of a question that no table reads, such as a new command may record."""

    question: str


POSTPONED: Any = Postponed(at=1, question="rain")


def test_an_event_of_a_new_type_that_no_table_reads_changes_nothing() -> None:
    """It needs neither a contest nor a place in FOLLOWED."""
    recorded = oracle.history(opened(), forecast())
    followed = oracle.followed(recorded, POSTPONED)
    kept, grows = Kept(), IncrementalTables()
    grows.add(recorded)
    told(grows, kept)
    grows.add(followed[-1:])
    assert told(grows, kept) == []
    assert_equal_a_rebuild(kept, recorded)


def test_an_event_that_tables_read_and_nothing_follows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise tables that are kept up would silently differ from those that are rebuilt."""
    types: Any = (*INPUTS["questions"].types, Postponed)
    monkeypatch.setitem(INPUTS, "questions", INPUTS["questions"]._replace(types=types))
    with pytest.raises(TypeError, match="Postponed changes questions: add a case for it to IncrementalTables"):
        IncrementalTables().add(oracle.followed([*oracle.history(opened())], POSTPONED)[-1:])


@pytest.mark.parametrize("kind", events.TAGS, ids=lambda kind: kind.__name__)
def test_every_event_that_tables_read_is_followed(kind: type[events.Event]) -> None:
    """An event that is not in FOLLOWED changes nothing but the clock."""
    assert issubclass(kind, FOLLOWED) or kinds_of([kind]) == {"clock"}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("happened", ["made", "withdrawn"])
def test_a_forecast_recorded_on_an_answered_question_is_scored(happened: str) -> None:
    """A ledger refuses it; a log written otherwise has the same tables however it is read."""
    scored: list[Any] = [opened(), opened("snow"), contest(), entry(), entry("cup", "snow"), forecast()]
    recorded = oracle.history(*scored, forecast("snow"), forecast(participant="bob"), resolution(), resolution("snow"))
    late: dict[str, Any] = {
        "made": oracle.history(opened(), forecast(participant="zoe", probability="0.9"))[-1].event,
        "withdrawn": oracle.history(opened(), forecast(), withdrawal())[-1].event,
    }
    assert_right_after_each(oracle.followed(recorded, late[happened]))


def test_a_forecast_touches_its_question_alone() -> None:
    """On a question not yet resolved: neither other questions nor scores are worked out again."""
    asked: list[Any] = [
        opened(),
        opened("snow"),
        contest(),
        entry(),
        entry(question="snow"),
        forecast(),
        resolution("snow"),
    ]
    recorded = oracle.history(*asked, forecast(participant="bob"))
    grows = IncrementalTables()
    grows.add(recorded[:-1])
    grows.forget()
    grows.add(recorded[-1:])
    assert [(parts.table.name, parts.keys) for parts in grows.updates()] == [
        ("standing", [("rain",)]),
        ("consensus", [("rain",)]),
    ]
