"""What a table reads, as its row of the catalogue says, against what changes it."""

from collections.abc import Iterator, Sequence
from functools import cache
from os import environ
from random import Random
from typing import Any, NamedTuple, get_args

import msgspec
import pytest
from msgspec import structs

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand, read
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
from forecast_ledger.projections.catalogue.inputs import INPUTS
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.catalogue.schemas import DIVISIONS, Projection
from forecast_ledger.projections.core.column_values import KINDS
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.replay.explain.dependencies import AnsweredQuestions, Scope, can_change, touches
from tests.projections.incremental.test_refresh import EVEN, tournament
from tests.support import oracle
from tests.support.given import (
    SUNDAY,
    bet,
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
    quote,
    resolution,
    trading_floor,
)
from tests.support.paths import ROOT
from tests.support.seasons import Season, drawn_rules
from tests.support.trading_seasons import Season as TradingSeason

DATA = ROOT / "data"
STORIES = ("metaculus-2022", "autocast-2022")
SEEDS = range(int(environ.get("FORECAST_LEDGER_SEASONS", "1")))


def story(name: str) -> list[Recorded]:
    """A worked example."""
    lines = (DATA / name / "commands.jsonl").read_text(encoding="utf-8").splitlines()
    return oracle.history(*map(read, lines))


def scored(seed: int) -> list[Recorded]:
    """A random season under rules drawn field by field."""
    random = Random(seed)
    return oracle.attempted(Season(random, *(drawn_rules(random) for _ in range(2))).asked)[0]


def traded(seed: int) -> list[Recorded]:
    """A random season of trading."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle_many([read(msgspec.json.encode(command)) for command, _ in TradingSeason(seed + 2, 24).said])
        return [recorded for page in ledger.read() for recorded in page]


def late() -> list[Recorded]:
    """Entries, and the name of the consensus, after an answer; then events on what is answered, as of no writer."""
    relative = structs.replace(PRESETS["relative-2022-04"], name="ours", score_consensus=True)
    kinds = structs.replace(PRESETS["autocast-2022"], name="kinds", quantile_kernel="none", score_consensus=True)
    asked: list[AnyCommand] = [
        opened(),
        opened("snow"),
        contest(rules=relative, pool=100),
        contest("kinds", rules=kinds),
    ]
    asked += [entry(), forecast(), forecast(participant="bob", probability="0.9"), resolution()]
    asked += [entry("kinds"), entry(question="snow"), forecast("snow", "[consensus]")]
    said = events.ForecastMade(at=micros(11), question="rain", participant="kim", probabilities=(10**8, 9 * 10**8))
    return oracle.followed(oracle.history(*asked), said, events.QuestionClosed(at=micros(12), question="rain"))


def floor() -> list[AnyCommand]:
    """Trading, an early close that is told late, forecasts on the same questions, somebody left out, a resolution."""
    rules = structs.replace(PRESETS["arena-v1"], trading=Trading(period_days=0))
    asked: list[AnyCommand] = [*trading_floor("ada", "bob", rules=rules), decision(bet()), decision(participant="bob")]
    asked = [*asked[:5], enrolment("week", "ada", family="f", release="r", at=SUNDAY), *asked[6:]]
    asked += [quote(at=day(4), prices={"yes": "0.9"}), exclusion("week", "bob", level="no_rank")]
    asked += [forecast("colour", probability=None, probabilities=EVEN, at=day(5)), closing(at=day(3))]
    asked += [forecast("colour", probability=None, probabilities=EVEN, at=day(6)), resolution(at=day(7))]
    return asked


def dealt() -> list[Recorded]:
    """What a ledger records of that."""
    return oracle.history(*floor())


LOGS = {"tournament": tournament, "late": late, "floor": dealt}
CASES = (*STORIES, *LOGS, *(f"{sort} {seed}" for sort in ("scored", "traded") for seed in SEEDS))
# Read, and yet changing nothing by itself: what is resolved cannot be bought; the consensus wins no prize.
UNSEEN = {("bet_brier", "own_account"), ("prizes", "consensus_name")}


class Changed(NamedTuple):
    """An event, whether its question had an answer, and a table that it changed, before and after."""

    recorded: Recorded
    answered: bool
    before: Table
    after: Table


@cache
def changes(case: str) -> tuple[list[Recorded], list[Changed]]:
    """A log, and what each of its events changed, every table built from nothing after each."""
    if case in LOGS:
        recorded = LOGS[case]()
    elif case in STORIES:
        recorded = story(case)
    else:
        sort, seed = case.split()
        recorded = {"scored": scored, "traded": traded}[sort](int(seed))
    return recorded, list(followed(recorded))


def followed(recorded: Sequence[Recorded]) -> Iterator[Changed]:
    """What each event changes."""
    settled, before = AnsweredQuestions(), tables([])
    digests = {name: table.digest() for name, table in before.items()}
    for number, each in enumerate(recorded, 1):
        answered, after = settled.take_in(each), tables(recorded[:number])
        for name, table in after.items():
            if (digest := table.digest()) != digests[name]:
                yield Changed(each, answered, before[name], table)
                digests[name] = digest
        before = after


def tables(recorded: Sequence[Recorded]) -> dict[str, Table]:
    """Every table over these events."""
    every = Projections(facts([recorded] if recorded else []))
    return {name: every.table(name) for name in CATALOGUE}


def rows_that_differ(changed: Changed) -> Iterator[dict[str, Any]]:
    """The keys of rows that came, went or have other values."""
    names = CATALOGUE[changed.after.name].key
    one, other = ({tuple(row[name] for name in names): row for row in table.rows()} for table in changed[2:])
    for key in one.keys() | other.keys():
        if one.get(key) != other.get(key):
            yield dict(zip(names, key, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_whatever_changes_a_row_is_admitted_by_what_its_table_reads(case: str) -> None:
    """Of every table and every event: a table that read less than it does would leave `blame` and `diff` incomplete."""
    recorded, found = changes(case)
    last = facts([recorded])
    labels = last.question_codes.labels
    questions = {name: {labels[code] for code in contest.entries} for name, contest in last.contests.items()}
    assert found
    for each in found:
        name, event = each.after.name, each.recorded.event
        assert touches(name, event, answered=each.answered), (name, event)
        for key in rows_that_differ(each):
            scope = Scope(name, key, questions)
            assert can_change(scope, each.recorded, answered=each.answered), (name, key, event)


def test_every_table_is_changed_by_every_kind_of_facts_that_it_reads() -> None:
    """In one of the logs above: what is never seen to change is not tested, and what never changes need not be read."""
    seen = {
        (each.after.name, kind)
        for case in CASES
        for each in changes(case)[1]
        for kind in CATALOGUE[each.after.name].reads
        if INPUTS[kind].has(each.recorded.event, answered=each.answered)
    }
    assert {(name, kind) for name, row in CATALOGUE.items() for kind in row.reads} - seen == UNSEEN


def lacking(name: str, row: Projection) -> list[str]:
    """What a row of the catalogue lacks or what in it does not fit together."""
    columns = [column.name for column in row.columns]
    order = [each for each in columns if each in row.key] if row.as_built else columns[: len(row.key)]
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
        faults["a contest for rows in an order of their own"] = row.as_built and row.key[0] != "contest"
    return [f"{name} lacks {fault}" for fault, is_so in faults.items() if is_so]


def test_every_row_of_the_catalogue_is_complete() -> None:
    """Columns, key, builder, what it reads and how it is divided; names that mean something."""
    assert [fault for name, row in CATALOGUE.items() for fault in lacking(name, row)] == []


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
def test_a_row_that_lacks_a_part_is_found(part: str, value: Any, fault: str) -> None:
    """Each part in turn, of a row that is complete otherwise."""
    assert f"scores lacks {fault}" in lacking("scores", CATALOGUE["scores"]._replace(**{part: value}))


def test_every_event_but_a_kept_text_changes_some_kind_of_facts_beside_the_clock() -> None:
    """And is of no other by its type alone than of those that its kind of rows agree with."""
    types = {*get_args(events.AnyEvent)}
    known = {each for each in types for name, kind in INPUTS.items() if name != "clock" if issubclass(each, kind.types)}
    assert types - known == {events.TextKept}
    assert {kind for row in CATALOGUE.values() for kind in row.reads} == {*INPUTS}
