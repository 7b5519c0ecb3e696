"""Tables that are updated part by part equal tables built from the whole log, wherever the log is divided."""

from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
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
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.incremental import incremental_parts
from forecast_ledger.projections.incremental.refresh import FOLLOWED, IncrementalTables
from forecast_ledger.projections.tables import catalogue
from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE, Projections, TableUpdate, tables_with
from forecast_ledger.projections.tables.schemas import ALWAYS, DIVISIONS, INPUTS, kinds_of
from tests.projections.tables.test_catalogue import TRADING
from tests.support import logs, oracle, seasons
from tests.support.effort import times
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
    renaming,
    rescheduling,
    resolution,
    restatement,
    revocation,
    trading_floor,
    withdrawal,
)
from tests.support.seasons import drawn_rules
from tests.support.trading_seasons import Season
from tests.system.test_determinism import QUESTIONS, lines

EVEN = {"red": "0.5", "green": "0.3", "blue": "0.2"}
Rows = list[tuple[Any, ...]]


class RefreshedTables:
    """The rows of all tables, updated part by part."""

    def __init__(self) -> None:
        self.rows: dict[str, Rows] = {name: [] for name in BUILT}

    def apply(self, update: TableUpdate) -> None:
        """Replace the rows of the parts of an update; its rows belong to these parts and are in order."""
        name, new = update.table.name, list(update.table.plain())
        assert update.keys == sorted(update.keys)
        assert [row for row in new if self.belongs(row, update)] == new, name
        self.rows[name] = [row for row in self.rows[name] if not self.belongs(row, update)] + new

    def belongs(self, row: tuple[Any, ...], update: TableUpdate) -> bool:
        """Return whether a row belongs to one of the parts of an update."""
        return any(row[: len(key)] == key for key in update.keys)


@cache
def trading(seed: int) -> list[Recorded]:
    """The log of a random trading season."""
    return logs.recorded(Season(seed, 60, fees=True, sides=True).commands(), refused=True)


def refresh(incremental: IncrementalTables, tables: RefreshedTables) -> list[TableUpdate]:
    """Apply the updates after new events, and return them."""
    updates = list(incremental.updates())
    for update in updates:
        tables.apply(update)
    incremental.forget()
    return updates


def refreshed(recorded: Sequence[Recorded], cuts: Sequence[int], lost: frozenset[int] = frozenset()) -> RefreshedTables:
    """The tables after a refresh at each of these positions; at the positions in `lost` the updates are not stored, as
    when a disk is full.
    """
    tables, incremental = RefreshedTables(), IncrementalTables()
    for number, (first, end) in enumerate(zip([0, *cuts], [*cuts, len(recorded)], strict=True)):
        if recorded[first:end]:
            incremental.add(recorded[first:end])
        updates = list(incremental.updates())
        if end not in lost or number == len(cuts):
            for update in updates:
                tables.apply(update)
            incremental.forget()
    return tables


@lru_cache(128)
def rebuilt(recorded: tuple[Recorded, ...]) -> dict[str, Rows]:
    """The rows of every table, built whole; several tests compare their updates of the same log with them."""
    projections = Projections(facts([recorded] if recorded else []))
    return {name: list(projections.table(name).plain()) for name in BUILT}


def assert_equal_after_each_event(recorded: Sequence[Recorded], begin: int = 0) -> None:
    """Check that the tables equal a rebuild after every event; up to `begin` they are built whole."""
    tables, incremental = RefreshedTables(), IncrementalTables()
    if begin:
        tables.rows = dict(rebuilt(tuple(recorded[:begin])))
        for first, end in ((0, begin - 2), (begin - 2, begin)):
            incremental.add(recorded[first:end])
            assert first or list(incremental.updates())
            incremental.forget()
    for number in range(begin, len(recorded)):
        incremental.add(recorded[number : number + 1])
        refresh(incremental, tables)
        assert_equal_a_rebuild(tables, recorded[: number + 1])


@pytest.fixture(params=[0, 2], ids=["one by one", "together"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Score questions again one by one, or all when most of a contest's questions changed."""
    monkeypatch.setattr(incremental_parts, "_MOST", request.param)


def assert_equal_a_rebuild(tables: RefreshedTables, recorded: Sequence[Recorded]) -> None:
    """Check that each table has the rows of a rebuild; within a contest, a leaderboard keeps its order."""
    for name, expected in rebuilt(tuple(recorded)).items():
        if not CATALOGUE[name].as_built:
            assert Counter(tables.rows[name]) == Counter(expected), name
        else:
            assert sorted(tables.rows[name], key=lambda row: str(row[0])) == expected, name


@given(oracle.logs(), st.data())
@settings(max_examples=times(25), deadline=None)
def test_updates_equal_a_rebuild_of_any_tournament(commands: list[AnyCommand], data: st.DataObject) -> None:
    """Questions of every kind and contests at random, refreshed at random positions; some updates are lost."""
    recorded, _ = oracle.attempted(commands)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(recorded)), max_size=8)))
    lost = data.draw(st.sets(st.sampled_from(cuts))) if cuts else set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incremental_parts, "_MOST", data.draw(st.sampled_from([0, 2])))
        assert_equal_a_rebuild(refreshed(recorded, cuts, frozenset(lost)), recorded)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("seed", range(times(4)))
def test_updates_equal_a_rebuild_of_any_trading_season(seed: int) -> None:
    """Quotes, decisions, resolutions, corrections and seals, refreshed at random positions; some updates are lost."""
    recorded, random = trading(seed), Random(seed)
    cuts = sorted(random.sample(range(len(recorded)), 12))
    assert_equal_a_rebuild(refreshed(recorded, cuts, frozenset(random.sample(cuts, 3))), recorded)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("seed", range(times(8)))
def test_updates_equal_a_rebuild_at_every_position(seed: int) -> None:
    """The tables are refreshed after every event and compared with a rebuild after every 13th."""
    recorded, tables, incremental = trading(seed)[: times(8 * 130)], RefreshedTables(), IncrementalTables()
    for number, event in enumerate(recorded, 1):
        incremental.add([event])
        for update in incremental.updates():
            tables.apply(update)
        incremental.forget()
        if number % 13 == 0:
            assert_equal_a_rebuild(tables, recorded[:number])


@pytest.mark.parametrize("seed", range(times(8)))
def test_updates_equal_a_rebuild_of_any_season(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions whose outcomes and times change, of weight 0 and of several spots, with prices, payouts and forecasts
    that end by themselves, under rules drawn field by field; some updates are lost.
    """
    random = Random(seed)
    monkeypatch.setattr(incremental_parts, "_MOST", random.choice([0, 2]))
    rules, some = [drawn_rules(random) for _ in range(2)], random.random
    drawn = seasons.Season(
        random,
        *rules,
        ending=some(),
        uncounted=0.6,
        quoted=some(),
        paid=0.3,
        moved=0.4,
        changing=random.choice([0, 1]),
        restated=0.5,
        renamed=0.6,
    )
    recorded = drawn.recorded()
    cuts = sorted(random.choices(range(len(recorded)), k=8))
    assert_equal_a_rebuild(refreshed(recorded, cuts, frozenset(random.sample(cuts, 2))), recorded)


def test_updates_equal_a_rebuild_for_every_rule_set() -> None:
    """The contests use every kernel, reference, average, sampling and total; some require attestations."""
    recorded = logs.recorded([read(msgspec.json.encode(line)) for line in lines(1)], refused=True)
    random, answers = Random(1), len(recorded) - QUESTIONS
    cuts = sorted(random.sample(range(answers), 5))
    tables, incremental = RefreshedTables(), IncrementalTables()
    late = sorted(random.sample(range(answers, len(recorded)), 3))
    for first, end in pairwise([0, *cuts, answers, *late, len(recorded)]):
        if first < end:
            incremental.add(recorded[first:end])
            refresh(incremental, tables)
        if end == answers:
            assert_equal_a_rebuild(tables, recorded[:answers])
    assert_equal_a_rebuild(tables, recorded)


FEW = 39  # replicates of a bootstrap
RELATIVE = structs.replace(
    PRESETS["relative-2022-04"], bots="scored_only", scored_only_levels=("no_prize",), replicates=FEW
)
DAILY = structs.replace(PRESETS["brier-daily"], replicates=FEW)


def tournament() -> list[Recorded]:
    """The log of two contests that share questions, with every kind of event that can change scores."""
    names, people = [f"q{number}" for number in range(5)], ("ada", "bob", "dan")
    commands: list[Any] = [opened(name, group="five") for name in names]
    commands += [contest(rules=RELATIVE, pool=100), contest("league", rules=DAILY)]
    commands += [entry("cup", name, weight=weight) for name, weight in zip(names[:4], (1, 2, 1, 3), strict=True)]
    commands += [entry("league", name) for name in names[1:]]
    commands += [
        forecast(name, who, probability=f"0.{place}{number}")
        for number, name in enumerate(names)
        for place, who in enumerate(people, 3)
    ]
    commands += [resolution("q0"), resolution("q1"), enrolment(participant="dan", bot=True)]
    commands += [
        forecast("q2", "zoe"),
        forecast("q4", "eve"),
        resolution("q2", outcome="no"),
        exclusion(participant="bob"),
    ]
    commands += [exclusion(participant="ada", level="hidden"), exclusion("league", "zoe"), resolution("q4")]
    commands += [entry("cup", "q4"), revocation("q4"), revocation("q0"), forecast("q0", "eve"), withdrawal("q0", "bob")]
    commands += [resolution("q0", outcome="no"), resolution("q3"), revocation("q3"), annulment("q3"), resolution("q4")]
    commands += [opened("late"), forecast("late", "[consensus]"), revocation("q1"), resolution("q1", outcome="no")]
    commands += [contest("proof", rules=structs.replace(DAILY, attested=True)), entry("proof", "q2")]
    commands += [finalization("cup"), revocation("q1"), payment("cup"), entry("proof", "q0")]
    return oracle.history(*commands, annulment("q1"), revocation("q2"), forecast("q2", "kim"), resolution("q2"))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("few", "begin"), [(2, 0), (0, 43)], indirect=["few"])
def test_scores_are_right_after_each_event_of_a_tournament(begin: int) -> None:
    """Bots and exclusions change the members; questions and forecasters come late; answers are revoked and annulled."""
    assert_equal_after_each_event(tournament(), begin)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("few", "step"), [(0, 3), (2, 20)], indirect=["few"])
def test_updates_do_not_depend_on_the_size_of_pages(step: int) -> None:
    """One page may hold a question's whole life, or a seal with the events before and after it."""
    recorded = tournament()
    for first in range(1, min(step, 3) + 1):
        cuts = range(first, len(recorded), step)
        assert_equal_a_rebuild(refreshed(recorded, cuts, frozenset(cuts[::2]) if first % 2 else frozenset()), recorded)


def renamed_season() -> list[Recorded]:
    """The log of two contests on three questions, in which participants get other ids, also back, and become one.

    Kim, who never forecasts, is an entrant; as ken, of two submissions.
    """
    names, people = ("q0", "q1", "q2"), ("ada", "bob", "dan", "eve")
    commands: list[AnyCommand] = [opened(name) for name in names]
    league = structs.replace(DAILY, best_of_entrant=True)
    commands += [contest(rules=RELATIVE, pool=100), contest("league", rules=league)]
    commands += [entry(each, name) for each in ("cup", "league") for name in names]
    commands += [
        forecast(name, who, probability=f"0.{place}{number}", at=day(10 + (place + number) % 4))
        for number, name in enumerate(names)
        for place, who in enumerate(people, 3)
    ]
    commands += [enrolment(participant="dan", bot=True), exclusion(participant="bob"), resolution("q0")]
    commands += [enrolment("league", "kim"), enrolment("league", "eve", entrant="kim")]
    commands += [enrolment("league", "bob", entrant="ken"), renaming("kim", "ken")]
    commands += [renaming("bob", "rob"), renaming("rob", "bob"), renaming("dan", "dee")]
    commands += [enrolment("league", "dee", entrant="ada"), renaming("ada", "al"), renaming("eve", "bob")]
    commands += [withdrawal("q1", "bob", at=day(15)), resolution("q1"), restatement(participant="bob", question="q2")]
    commands += [resolution("q2"), renaming("bob", "al"), finalization("cup"), renaming("al", "ada")]
    commands += [renaming("dee", "ada"), revocation("q1"), payment("cup"), resolution("q1", outcome="no")]
    return oracle.history(*commands)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("few", "begin"), [(2, 0), (0, 25)], indirect=["few"])
def test_tables_are_right_after_each_other_id_of_a_participant(begin: int) -> None:
    """There and back, one who is excluded, a bot, an entrant, two who are one, and after a seal."""
    assert_equal_after_each_event(renamed_season(), begin)


def played(*commands: AnyCommand) -> list[Recorded]:
    """The log of these commands after Ada and Bob joined a contest with two markets; Ada holds rain, bought at 0.40."""
    start = [*trading_floor("ada", "bob"), decision(bet()), decision(participant="bob")]
    return oracle.history(*start, *commands)


@pytest.mark.parametrize("begin", [0, 14, 15])
def test_a_drawdown_is_updated_at_the_first_tick_after_a_fall(begin: int) -> None:
    """The price of rain fell earlier; later events move only the clock, past the next tick."""
    fall = quote(at="2026-03-02T00:05:00Z", prices={"yes": "0.1"})
    instants = ("2026-03-02T00:07:00Z", "2026-03-02T00:12:00Z", day(2, 3))
    later = [quote("colour", at=at, prices={"red": "0.5"}) for at in instants]
    assert_equal_after_each_event(played(fall, *later), begin)


@pytest.mark.parametrize("begin", [0, 14])
def test_the_pending_time_of_a_position_grows_with_the_clock(begin: int) -> None:
    """A question that closed early, then one that reached its close, each until it is resolved."""
    later = [quote("colour", at=at, prices={"red": "0.5"}) for at in (day(4), "2026-03-04T00:01:00Z", day(28, 23))]
    after = [quote("snow", at=at) for at in (day(29, 1), "2026-03-29T01:01:00Z")]
    commands: list[AnyCommand] = [
        closing(at=day(3)),
        *later,
        market("snow", closes_at=day(30)),
        *after,
        resolution(at=day(29, 3)),
    ]
    assert_equal_after_each_event(played(*commands, quote("snow", at=day(29, 4))), begin)


def test_a_forecast_moves_the_clock_of_trading_too() -> None:
    """A forecast moves the clock past a tick, lengthens the pending time and ages each mark."""
    fall = quote(at="2026-03-02T00:05:00Z", prices={"yes": "0.1"})
    instants = ("2026-03-02T00:07:00Z", "2026-03-02T00:12:00Z", day(4), day(5))
    forecasts: list[AnyCommand] = [forecast("colour", probability=None, probabilities=EVEN, at=at) for at in instants]
    assert_equal_after_each_event(
        played(fall, *forecasts[:2], closing(at=day(3)), *forecasts[2:], market("snow", at=day(6)))
    )


def test_an_early_close_recorded_late_does_not_change_earlier_movements() -> None:
    """The movement on the 5th was recorded before the close of the 3rd and uses the price 0.90; no tick uses it."""
    bought = decision(bet(50, "red", "colour"), at=day(5), period=1)
    dear, red = quote(at=day(4), prices={"yes": "0.9"}), quote("colour", at=day(5), prices={"red": "0.5"})
    rules = structs.replace(PRESETS["arena-v1"], trading=Trading(period_days=0))
    commands = [*trading_floor("ada", rules=rules), decision(bet()), dear, red, structs.replace(bought, period=2)]
    commands += [closing(at=day(3)), quote("colour", at=day(6), prices={"red": "0.4"}), closing(at=day(2, 12))]
    assert_equal_after_each_event(oracle.history(*commands))


@pytest.mark.parametrize("begin", [0, 14])
def test_other_times_of_a_question_change_its_marks_and_its_pending_time(begin: int) -> None:
    """Closed early, open again, and closed by a close set back: marks and pending times follow the close in force."""
    later = [quote("colour", at=day(number), prices={"red": "0.5"}) for number in (4, 5, 7, 9)]
    commands: list[AnyCommand] = [
        closing(at=day(3)),
        later[0],
        rescheduling(at=day(4), closes_at=day(20)),
        later[1],
        quote(at=day(6), prices={"yes": "0.8"}),
        later[2],
        rescheduling(at=day(8), closes_at=day(5)),
        later[3],
        resolution(at=day(10)),
    ]
    assert_equal_after_each_event(played(*commands), begin)


def test_other_times_of_a_question_change_what_is_admitted() -> None:
    """The cut-off of an attested contest follows the close, before and after the board of another is finalized."""
    told: list[Any] = [opened(), contest(rules="autocast-2022"), contest("sealed", rules="autocast-2022")]
    told += [entry(), entry("sealed"), forecast(at=day(12)), forecast(participant="bob", at=day(18))]
    told += [rescheduling(closes_at=day(15)), finalization("sealed"), rescheduling(closes_at=day(24))]
    told += [forecast(at=day(22)), rescheduling(opens_at=day(9)), resolution(), revocation()]
    told += [rescheduling(closes_at=day(13)), resolution()]
    assert_equal_after_each_event(oracle.history(*told))


@pytest.mark.parametrize("late", ["zoe", "[consensus]"])
def test_a_late_participant_changes_no_leaderboard_except_by_the_name_of_the_consensus(late: str) -> None:
    """The participant code is before that of the consensus; a participant with the consensus's name renames it."""
    scored: list[Any] = [opened(), contest(rules="brier-daily" if late == "zoe" else "relative-2022-04"), entry()]
    scored += [forecast(), forecast(participant="bob"), resolution()]
    later: list[Any] = [opened("snow"), contest("other"), entry("other", "snow"), forecast("snow", late)]
    recorded = oracle.history(*scored, *later, resolution("snow"))
    assert_equal_a_rebuild(refreshed(recorded, range(len(recorded))), recorded)


def test_the_columns_of_the_division_come_first_in_a_table_and_its_key() -> None:
    """The rows of a part are then adjacent; a leaderboard, which keeps its own order, is divided by contest."""
    for name in BUILT:
        columns = tuple(column.name for column in CATALOGUE[name].columns)
        key = ("contest",) if CATALOGUE[name].as_built else CATALOGUE[name].key
        assert columns[: len(key)] == key, name
        assert key[: len(CATALOGUE[name].part)] == CATALOGUE[name].part, name
    assert all(CATALOGUE[name].part == ("contest",) for name in BUILT if CATALOGUE[name].as_built)


def test_every_division_is_updated() -> None:
    """The two histories together update every table that is always kept; these have every division but two.

    No table has the division log now, and portfolios are computed again whole.
    """
    updates = dict.fromkeys(BUILT, 0)
    for recorded in (tournament(), trading(0)):
        incremental = IncrementalTables()
        for begin in range(0, len(recorded), 20):
            incremental.add(recorded[begin : begin + 20])
            for update in incremental.updates():
                updates[update.table.name] += 1
            incremental.forget()
    assert 0 not in updates.values()
    assert {CATALOGUE[name].division for name in BUILT} | {"log", "portfolios"} == {*DIVISIONS}
    assert {name for name, table in CATALOGUE.items() if table.division == "portfolios"} == {"portfolio_snapshots"}


def test_only_the_tables_that_are_kept_are_updated() -> None:
    """Their updates are the same whichever the others are; each is kept alone through the history that updates it."""
    traded = {name for name in BUILT if name in TRADING}
    for recorded, names in ((tournament(), {*BUILT} - traded), (trading(0)[:99], traded)):
        every, alone = IncrementalTables(), {name: IncrementalTables([name]) for name in sorted(names)}
        for begin in range(0, len(recorded), 33):
            page = recorded[begin : begin + 33]
            every.add(page)
            updates = list(every.updates())
            every.forget()
            for name, incremental in alone.items():
                incremental.add(page)
                own = [(update.keys, [*update.table.plain()]) for update in updates if update.table.name == name]
                found = [*incremental.updates()]
                assert [(update.keys, [*update.table.plain()]) for update in found] == own
                assert {update.table.name for update in found} <= {name}
                incremental.forget()


@pytest.mark.usefixtures("few")
def test_a_table_with_the_division_log_is_rebuilt_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole rebuild costs more but is correct for every table."""
    monkeypatch.setattr(
        catalogue, "CATALOGUE", {name: each._replace(division="log") for name, each in CATALOGUE.items()}
    )
    monkeypatch.setattr("forecast_ledger.projections.tables.catalogue.CATALOGUE", catalogue.CATALOGUE)
    recorded = tournament()
    assert tables_with("log") == [*BUILT]
    assert_equal_a_rebuild(refreshed(recorded, range(3, len(recorded), 5)), recorded)


class Postponed(events.Event, frozen=True, kw_only=True, tag="postponed.v1"):
    """An event about a question that no table reads, such as a new command may record."""

    question: str


POSTPONED: Any = Postponed(at=1, question="rain")


def test_an_event_of_a_new_type_that_no_table_reads_changes_nothing() -> None:
    """It needs neither a contest nor an entry in FOLLOWED."""
    recorded = oracle.history(opened(), forecast())
    followed = oracle.followed(recorded, POSTPONED)
    tables, incremental = RefreshedTables(), IncrementalTables()
    incremental.add(recorded)
    refresh(incremental, tables)
    incremental.add(followed[-1:])
    assert refresh(incremental, tables) == []
    assert_equal_a_rebuild(tables, recorded)


def test_an_event_that_tables_read_must_be_in_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise refreshed tables would silently differ from rebuilt ones."""
    types: Any = (*INPUTS["questions"].types, Postponed)
    monkeypatch.setitem(INPUTS, "questions", INPUTS["questions"]._replace(types=types))
    with pytest.raises(TypeError, match="Postponed changes questions: add a case for it to IncrementalTables"):
        IncrementalTables().add(oracle.followed([*oracle.history(opened())], POSTPONED)[-1:])


@pytest.mark.parametrize("kind", events.TAGS, ids=lambda kind: kind.__name__)
def test_every_event_that_tables_read_is_in_followed(kind: type[events.Event]) -> None:
    """An event that is not in FOLLOWED changes only the clock."""
    assert issubclass(kind, FOLLOWED) or kinds_of([kind]) == ALWAYS


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("happened", ["made", "withdrawn"])
def test_a_forecast_recorded_on_an_answered_question_is_scored(happened: str) -> None:
    """A ledger refuses such a forecast; a log from another writer has the same tables, refreshed or rebuilt."""
    scored: list[Any] = [opened(), opened("snow"), contest(), entry(), entry("cup", "snow"), forecast()]
    recorded = oracle.history(*scored, forecast("snow"), forecast(participant="bob"), resolution(), resolution("snow"))
    late: dict[str, Any] = {
        "made": oracle.history(opened(), forecast(participant="zoe", probability="0.9"))[-1].event,
        "withdrawn": oracle.history(opened(), forecast(), withdrawal())[-1].event,
    }
    assert_equal_after_each_event(oracle.followed(recorded, late[happened]))


def test_a_forecast_updates_only_its_question() -> None:
    """The question is not resolved: neither other questions nor scores are computed again."""
    commands: list[Any] = [
        opened(),
        opened("snow"),
        contest(),
        entry(),
        entry(question="snow"),
        forecast(),
        resolution("snow"),
    ]
    recorded = oracle.history(*commands, forecast(participant="bob"))
    incremental = IncrementalTables()
    incremental.add(recorded[:-1])
    incremental.forget()
    incremental.add(recorded[-1:])
    updated = {update.table.name: update.keys for update in incremental.updates()}
    expected = {"standing": [("rain",)], "consensus": [("rain",)]}
    assert updated == expected, (
        "if a new table has rows of a forecast on a question without an answer, name it here with the parts that are "
        "made again; if not, its row reads too much, or its division does not follow what it reads (tables/schemas.py)"
    )
