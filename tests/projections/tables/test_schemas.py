"""What the text of a schema says."""

from collections.abc import Container, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple, get_args

import pytest
from msgspec import structs

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.core.columns import KINDS, Column
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.projections.tables.schemas import ALWAYS, DIVISIONS, INPUTS, Projection, schema
from forecast_ledger.replay.explain.diff import AnsweredQuestions, Scope, can_change, touches
from tests.projections.incremental.test_refresh import EVEN, tournament
from tests.support import logs, oracle
from tests.support.effort import LONG, times
from tests.support.given import (
    SUNDAY,
    bet,
    choices,
    closing,
    contest,
    day,
    decision,
    enrolment,
    entry,
    exclusion,
    forecast,
    micros,
    opened,
    quartiles,
    quote,
    resolution,
    trading_floor,
)
from tests.support.logs import commands_of, light
from tests.support.seasons import Season, drawn_rules
from tests.support.trading_seasons import Season as TradingSeason

# --- The kinds of facts that each table reads, compared with the events that change the table.


pytestmark = pytest.mark.usefixtures("little_is_enough", "few_draws")  # sets of ranks, with few questions too
STORIES = ("autocast-2022",)
SEEDS = range(times(1))
# The log positions of the events that a short run looks at. They are of every type, and change every table that an
# event of the same type changes; a long run looks at all events, and compares.
LOOKED_AT = {
    "autocast-2022": {35, 86},
    "tournament": {33, 37, 41, 42, 45, 49, 59},
    "late": {9, 10, 11, 12, 14, 15, 16, 17},
    "quantiles": {9, 10, 11, 12},
    "options": {55, 56, 57},
    "floor": {6, 7, 13, 14, 15, 16, 18, 20, 21},
    "scored 0": {4, 18, 28, 38, 39, 40, 42, 46, 54, 57},
    "traded 0": {46, 53, 61, 68, 80, 92, 99},
}


def story(name: str) -> list[Recorded]:
    """The log of a worked example."""
    return oracle.history(*map(light, commands_of(name)))


def scored(seed: int) -> list[Recorded]:
    """The log of a random season under rules drawn field by field."""
    random = Random(seed)
    season = Season(
        random,
        *(drawn_rules(random) for _ in range(2)),
        uncounted=0.2,
        quoted=0.5,
        paid=0.3,
        moved=0.4,
        changing=0.5,
        restated=0.5,
    )
    return oracle.attempted([light(command) for command in season.commands])[0]


def traded(seed: int) -> list[Recorded]:
    """The log of a random trading season."""
    return logs.recorded(TradingSeason(seed + 2, 16).commands(), refused=True)


def late_events() -> list[Recorded]:
    """A log in which entries and the name of the consensus come after an answer, with events that no writer records."""
    relative = structs.replace(PRESETS["relative-2022-04"], name="ours", score_consensus=True, replicates=39)
    kinds = structs.replace(PRESETS["autocast-2022"], name="kinds", quantile_kernel="none", score_consensus=True)
    kinds = structs.replace(kinds, reference_rows=("market", "uniform"), replicates=39)
    commands: list[AnyCommand] = [
        opened(group="weather"),
        opened("snow", group="weather"),
        contest(rules=relative, pool=100),
        contest("kinds", rules=kinds),
    ]
    commands += [entry(), forecast(), forecast(participant="bob", probability="0.9"), resolution()]
    commands += [quote(at=day(10)), entry("kinds"), entry(question="snow"), forecast("snow", "[consensus]")]
    commands += [quote("snow", at=day(10)), quote(at=day(12), prices={"yes": "0.9"}), resolution("snow")]
    late_forecast = events.ForecastMade(
        at=micros(11), question="rain", participant="kim", probabilities=(10**8, 9 * 10**8)
    )
    return oracle.followed(
        oracle.history(*commands), late_forecast, events.QuestionClosed(at=micros(12), question="rain")
    )


def quantile_log() -> list[Recorded]:
    """A log of forecasts by quantiles in which an entry, a name in brackets and a forecast come after an answer."""
    levels = tuple(f"0.{tenth}" for tenth in range(1, 10))
    rules = RuleSet(name="wis", quantile_kernel="pinball", period="covered", total="mean", reference_rows=("uniform",))
    made = tuple(range(1, 10))
    commands: list[AnyCommand] = [contest(rules=rules), contest("cap", rules=rules)]
    for name in ("flow", "tide"):
        asked = quartiles(name, levels=levels, decimals=0, upper=10)
        commands += [asked, entry(question=name), forecast(name, quantiles=made)]
    commands += [resolution("flow", value=3), entry("cap", "flow"), forecast("tide", "[uniform]", quantiles=made)]
    late = events.ForecastMade(at=micros(11), question="flow", participant="ada", quantiles=(2,) * 9)
    return oracle.followed(oracle.history(*commands), late)


def option_log() -> list[Recorded]:
    """A log of forecasts on three colours in which an entry and a forecast come after an answer."""
    rules = RuleSet(name="mean", kernel="brier", period="covered", total="mean")
    made = forecast("colour", probabilities={"red": "0.2", "green": "0.5", "blue": "0.3"})
    commands: list[AnyCommand] = [
        contest(rules=rules),
        contest("cap", rules=rules),
        choices(),
        entry(question="colour"),
    ]
    other = forecast("colour", "bob", probabilities=EVEN)
    for number in range(8):  # so many that a difference can be significant
        each, chance = f"q{number}", f"0.{number + 1}"
        commands += [opened(each), entry(question=each), entry("cap", each), forecast(each, probability=chance)]
        commands += [forecast(each, "bob", probability="0.5"), resolution(each)]
    commands += [made, other, resolution("colour", outcome="green"), entry("cap", "colour")]
    late = events.ForecastMade(
        at=micros(11), question="colour", participant="ada", probabilities=(10**8, 10**8, 8 * 10**8)
    )
    return oracle.followed(oracle.history(*commands), late)


def trading_story() -> list[AnyCommand]:
    """Trading, an early close recorded late, forecasts on the same questions, an exclusion and a resolution."""
    rules = structs.replace(PRESETS["arena-v1"], trading=Trading(period_days=0, fee_rate_ppm=10_000))
    commands: list[AnyCommand] = [
        *trading_floor("ada", "bob", rules=rules),
        decision(bet()),
        decision(participant="bob"),
    ]
    commands = [*commands[:5], enrolment("week", "ada", family="f", release="r", at=SUNDAY), *commands[6:]]
    commands += [quote(at=day(4), prices={"yes": "0.9"}), exclusion("week", "bob", level="no_rank")]
    commands += [forecast("colour", probability=None, probabilities=EVEN, at=day(5)), closing(at=day(3))]
    commands += [forecast("colour", probability=None, probabilities=EVEN, at=day(6)), resolution(at=day(7))]
    return commands


def trading_log() -> list[Recorded]:
    """The log of the trading story."""
    return oracle.history(*trading_story())


LOGS = {
    "tournament": tournament,
    "late": late_events,
    "quantiles": quantile_log,
    "options": option_log,
    "floor": trading_log,
}
CASES = (*STORIES, *LOGS, *(f"{sort} {seed}" for sort in ("scored", "traded") for seed in SEEDS))
# Read, but never change a row by themselves: a resolved question cannot be traded; the consensus wins no prize.
UNSEEN = {("bet_brier", "own_account"), ("prizes", "reference_names"), ("resolution", "scored_quotes")}


class Change(NamedTuple):
    """An event, its log position, whether its question had an answer, and a table before and after the event."""

    recorded: Recorded
    position: int
    answered: bool
    before: Table
    after: Table


@cache
def changes(case: str) -> tuple[list[Recorded], list[Change]]:
    """Return a log and the changes of all tables by each of its events; tables are built anew after each event."""
    if case in LOGS:
        recorded = LOGS[case]()
    elif case in STORIES:
        recorded = story(case)
    else:
        sort, seed = case.split()
        recorded = {"scored": scored, "traded": traded}[sort](int(seed))
    return recorded, list(table_changes(recorded, LOOKED_AT[case] if LONG == 1 else range(1, len(recorded) + 1)))


def table_changes(recorded: Sequence[Recorded], positions: Container[int]) -> Iterator[Change]:
    """Yield the changes of tables by the events at these log positions."""
    answered_questions, at = AnsweredQuestions(), 0
    before, digests = dict[str, Table](), dict[str, str]()
    for position, recorded_event in enumerate(recorded, 1):
        answered = answered_questions.take_in(recorded_event)
        if position not in positions:
            continue
        if at != position - 1 or not before:
            before = tables(recorded[: position - 1])
            digests = {name: table.digest() for name, table in before.items()}
        after, at = tables(recorded[:position]), position
        for name, table in after.items():
            if (digest := table.digest()) != digests[name]:
                yield Change(recorded_event, position, answered, before[name], table)
                digests[name] = digest
        before = after


def tables(recorded: Sequence[Recorded]) -> dict[str, Table]:
    """Build every table from these events."""
    projections = Projections(facts([recorded] if recorded else []))
    return {name: projections.table(name) for name in CATALOGUE}


def changed_keys(changed: Change) -> Iterator[dict[str, Any]]:
    """Yield the keys of rows that came, went or changed."""
    names = CATALOGUE[changed.after.name].key
    before, after = ({tuple(row[name] for name in names): row for row in table.rows()} for table in changed[3:])
    for key in before.keys() | after.keys():
        if before.get(key) != after.get(key):
            yield dict(zip(names, key, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_table_reads_every_kind_of_facts_that_changes_its_rows(case: str) -> None:
    """If a kind were missing, `blame` and `diff` would be incomplete; every table is tested."""
    recorded, changed_tables = changes(case)
    last = facts([recorded])
    labels = last.question_codes.labels
    questions = {name: {labels[code] for code in contest.entries} for name, contest in last.contests.items()}
    assert changed_tables
    for change in changed_tables:
        name, event = change.after.name, change.recorded.event
        assert touches(name, event, answered=change.answered), (name, event)
        for key in changed_keys(change):
            scope = Scope(name, key, questions)
            assert can_change(scope, change.recorded, answered=change.answered), (name, key, event)


def test_every_table_is_changed_by_every_kind_of_facts_that_it_reads() -> None:
    """Each pair occurs in one of the logs above; a kind that never changes the table would not need to be read."""
    changed_by = {
        (change.after.name, kind)
        for case in CASES
        for change in changes(case)[1]
        for kind in CATALOGUE[change.after.name].reads
        if INPUTS[kind].has(change.recorded.event, answered=change.answered)
    }
    assert {(name, kind) for name, row in CATALOGUE.items() for kind in row.reads} - changed_by == UNSEEN


@pytest.mark.skipif(LONG == 1, reason="a short run looks at these events alone")
def test_the_events_of_a_short_run_change_every_table_that_another_changes() -> None:
    """A type of event, before or after an answer, and a table that it changes: none occurs in a long run alone."""
    looked_at, others = set[tuple[type, bool, str]](), set[tuple[type, bool, str]]()
    for case, positions in LOOKED_AT.items():
        for change in changes(case)[1]:
            group = looked_at if change.position in positions else others
            group.add((type(change.recorded.event), change.answered, change.after.name))
    assert others - looked_at == set()


def missing_parts(name: str, row: Projection) -> list[str]:
    """Return what is missing or inconsistent in a row of the catalogue."""
    columns = [column.name for column in row.columns]
    order = [column for column in columns if column in row.key] if row.as_built else columns[: len(row.key)]
    faults = {
        "a version": row.version < 1,
        "a meaning": not row.meaning or not all(column.meaning for column in row.columns),
        "kinds of columns": not {column.kind for column in row.columns} <= {*KINDS},
        "a key of its first columns": not row.key or [*row.key] != order or len({*columns}) < len(columns),
        "a builder": not callable(row.build) or not row.build.__doc__,
        "what it reads": not row.reads or not {*row.reads} <= {*INPUTS},
        "a division": row.division not in DIVISIONS,
    }
    if not any(faults.values()):
        faults["a key that begins with its part"] = row.key[: len(row.part)] != row.part
        faults["a division that follows what it reads"] = row.refresh_division != row.division
        faults["the log position of rows that are final"] = row.final and "log_position" not in row.key
        faults["a contest for rows in an order of their own"] = (
            row.as_built and not row.on_request and row.key[0] != "contest"
        )
    return [f"{name} lacks {fault}" for fault, is_so in faults.items() if is_so]


def test_every_row_of_the_catalogue_is_complete() -> None:
    """Each row has columns, key, builder, kinds of facts and division, with meanings."""
    assert [fault for name, row in CATALOGUE.items() for fault in missing_parts(name, row)] == []


@pytest.mark.parametrize(
    ("part", "value", "fault"),
    [
        ("version", 0, "a version"),
        ("meaning", "", "a meaning"),
        ("key", (), "a key of its first columns"),
        ("key", ("question", "contest"), "a key of its first columns"),
        ("reads", (), "what it reads"),
        ("reads", ("weather",), "what it reads"),
        ("build", lambda _: [], "a builder"),
        ("division", "by hand", "a division"),
        ("division", "movements", "a key that begins with its part"),
        ("reads", ("quotes",), "a division that follows what it reads"),
        ("final", True, "the log position of rows that are final"),
    ],
)
def test_an_incomplete_row_is_reported(part: str, value: Any, fault: str) -> None:
    """Each part in turn is missing from a row that is otherwise complete."""
    row = CATALOGUE["scores"]
    changed = {part: value} if part in row._fields else {"schema": row.schema._replace(**{part: value})}
    assert f"scores lacks {fault}" in missing_parts("scores", row._replace(**changed))


def test_every_event_but_two_changes_a_kind_of_facts_other_than_the_clock() -> None:
    """Every kind of facts is read by some table."""
    types = {*get_args(events.AnyEvent)}
    covered = {
        event for event in types for name, kind in INPUTS.items() if name not in ALWAYS if issubclass(event, kind.types)
    }
    assert types - covered == {events.TextKept, events.VersionRequired}, (
        "an event that a table reads belongs to a kind of facts in INPUTS of projections/tables/schemas.py; one that "
        "no table reads is named here"
    )
    assert {kind for row in CATALOGUE.values() for kind in row.reads} == {*INPUTS}


TEXT = """
    what each stall
    takes in a day

    contest*
    day*      count  the day, the first is 1
    taken     money  what it takes, before what it
                     has to pay
    question
"""


def test_a_schema_has_the_meaning_the_key_and_the_columns_of_its_text() -> None:
    """Lines that continue are joined, an asterisk marks the key, and a name alone is a column that many tables have."""
    meaning, key, columns = schema(TEXT)
    assert meaning == "what each stall takes in a day"
    assert key == ("contest", "day")
    assert columns == (
        Column("contest", "id", "the contest"),
        Column("day", "count", "the day, the first is 1"),
        Column("taken", "money", "what it takes, before what it has to pay"),
        Column("question", "id", "the question"),
    )


@pytest.mark.parametrize(("line", "error"), [("price", KeyError), ("price  money", TypeError)])
def test_a_column_without_a_meaning_is_an_error(line: str, error: type[Exception]) -> None:
    """A name alone that no other table shares, and a name with a kind alone: found when the module is imported."""
    with pytest.raises(error):
        schema(f"what it is\n\n    contest*\n    {line}\n")
