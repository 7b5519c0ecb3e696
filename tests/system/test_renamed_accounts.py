"""Accounts follow people to other ids: all tables are those of the same history under the last ids alone."""

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import read
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.incremental.refresh import IncrementalTables
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.engines.engines import divided
from forecast_ledger.replay.files.export import seal
from forecast_ledger.replay.reading.log import Cut, Log, WithSegments
from forecast_ledger.replay.reading.replay import summarize_tables
from tests.projections.incremental.test_refresh import RefreshedTables, assert_equal_a_rebuild, refresh, refreshed
from tests.support.effort import LONG, times
from tests.support.oracle import events_of
from tests.support.other_ids import Disguise, Outcome, Told, opened, sent
from tests.support.trading_seasons import PEOPLE, Season
from tests.system.test_readmodel_histories import Followed, compared

SEEDS = range(times(8))
OVERALL = {"brier_overall", "arena_series"}  # of several contests, of which some keep the ids of their seals
CUP = {  # forecasts and accounts in one contest, with prizes
    "name": "cup",
    "kernel": "ln",
    "reference": "peers",
    "take": "positive_square",
    "trading": {"cohorts": "none", "period_days": 0, "completed_by": "shown", "recorded_trades": True},
}


def history(seed: int, steps: int = 90) -> list[Told]:
    """A season of trading, with forecasts, exclusions and prizes, in which everybody always has one id."""
    random, said, binary, last = Random(seed), list[Told](), list[str](), dict[str, str]()
    for command, _ in Season(seed, steps, fees=seed % 2 == 1, sides=seed % 4 == 3).attempts:
        said.append(command)
        at, contest = command["at"], random.choice(["cup", "cup", *(f"k{number}" for number in range(4))])
        who: Told = {"at": at, "participant": random.choice(PEOPLE)}
        if len(said) == 1:
            said.append({"type": "open_contest", "at": at, "contest": "cup", "rules": CUP, "pool": 100})
        if command["type"] == "open_question":
            said.append({"type": "add_question", "at": at, "contest": "cup", "question": command["question"]})
            binary += [command["question"]] * (command["kind"] == "binary")
        if binary and random.random() < 0.7:
            forecast = {"type": "submit_forecast", "probability": f"0.{random.randint(1, 9)}"}
            withdraws = random.random() < 0.1 and at > last.get(who["participant"], at)
            said.append(({"type": "withdraw_forecast"} if withdraws else forecast) | who)
            last[who["participant"]] = at
            said[-1]["question"] = random.choice(binary[-3:])
        if random.random() < 0.08:
            level = random.choice(["hidden", "no_rank", "no_prize"])
            said.append({"type": "exclude_participant", "contest": contest, "level": level, "reason": "-", **who})
        if random.random() < 0.1:
            said.append({"type": "enrol_participant", "contest": "cup", **who})
        if binary and random.random() < 0.3:
            trade = {"type": "record_trade", "action": random.choice(["buy", "buy", "sell"]), "contest": "cup"}
            trade |= {"question": random.choice(binary[-3:]), "outcome": random.choice(["yes", "no"])}
            said.append(trade | {"shares": random.randint(1, 9), "amount": random.randint(0, 9)} | who)
        if random.random() < 0.1:
            hold = {"type": "record_decision", "period": random.randint(1, 9), "action": "HOLD", "reasoning": "-"}
            said.append({"contest": "cup", **hold, **who})
    for kind in ("finalize_contest", "pay_prizes"):
        said.append({"type": kind, "at": said[-1]["at"], "contest": "cup"})
    return [{"id": f"m{number}"} | command for number, command in enumerate(said)]


def person(name: str) -> str:
    """Whose an id is: it is the last id, or begins with it and a point."""
    return name.partition(".")[0]


def same(event: Any) -> str:
    """What an event says, but for the log positions in it and the id of its participant."""
    fields = structs.asdict(event) | {"quote": 0, "reverses": 0, "type": type(event).__name__}
    return repr(fields | {"participant": person(fields.get("participant", ""))})


def positions(one: list[Outcome], other: list[Outcome], logs: list[list[Recorded]]) -> dict[int, int]:
    """The log position in one log of each event of another; answers settle the positions of all people by id."""
    found: dict[int, int] = {}
    for outcomes in zip(one, other, strict=True):
        if not any(isinstance(outcome, Refused) for outcome in outcomes):
            rows = [
                sorted(log[outcome.first - 1 : outcome.last], key=lambda row: same(row.event))
                for outcome, log in zip(outcomes, logs, strict=True)
                if isinstance(outcome, Receipt)
            ]
            for first, second in zip(*rows, strict=True):
                assert same(first.event) == same(second.event)
                found[first.position] = second.position
    return found


Rows = list[tuple[str, ...]]


def rows_of(projections: Projections, name: str, places: dict[int, int], sealed: dict[str, dict[str, str]]) -> Rows:
    """The rows of a table without digests, with log positions and ids of sealed contests as in the other log."""
    columns = CATALOGUE[name].columns
    places_in = {column.name for column in columns if "log position" in column.meaning}
    rows = []
    for row in projections.table(name).rows():
        ids = sealed.get(row.get("contest", row.get("name", "")), {})
        told = {key: value for key, value in row.items() if "digest" not in key}
        told |= {key: places.get(value, value) for key, value in told.items() if key in places_in}
        told |= {key: ids.get(value, value) for key, value in told.items() if isinstance(value, str)}
        rows.append(tuple(map(str, told.values())))
    return sorted(rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_table_is_that_of_the_history_under_the_last_ids(seed: int) -> None:
    """Chains of renames, merges, ids that are taken again; a sealed contest keeps the ids of its seal."""
    said = history(seed)
    with opened() as plain, opened() as ledger:
        expected = [sent(plain, command) for command in said]
        told = Disguise(ledger, said, PEOPLE, Random(seed))
        logs = [events_of(plain), events_of(ledger)]
    refused = [[isinstance(outcome, Refused) for outcome in outcomes] for outcomes in (expected, told.outcomes)]
    assert refused[0] == refused[1]
    assert set(told.strays) == {"participant_renamed"}
    places = positions(expected, told.outcomes, logs)
    one, other = (Projections(facts([log])) for log in logs)
    for name in CATALOGUE:
        if name not in OVERALL:
            assert rows_of(one, name, places, told.sealed) == rows_of(other, name, {}, {}), name


@cache
def disguised(seed: int, steps: int = 90) -> tuple[list[Told], list[Recorded]]:
    """The lines of a history under ids that change, and its log."""
    with opened() as ledger:
        return Disguise(ledger, history(seed, steps), PEOPLE, Random(seed)).lines, events_of(ledger)


@pytest.mark.parametrize("seed", range(times(8)))
def test_tables_that_are_refreshed_step_by_step_equal_a_rebuild(seed: int) -> None:
    """After renames alone, and after several events at once; some updates are lost. With LONG, after twice as many."""
    recorded, random, count = disguised(seed)[1], Random(seed), 3 if LONG == 1 else 6
    renames = [row.position for row in recorded if isinstance(row.event, events.ParticipantRenamed)]
    cuts = sorted({*random.sample(renames, 2 * count), *(each - 1 for each in random.sample(renames, count))})
    assert_equal_a_rebuild(refreshed(recorded, cuts, frozenset(random.sample(cuts, 3))), recorded)
    tables, incremental = RefreshedTables(), IncrementalTables()
    for first, end in pairwise([0, *cuts]):
        incremental.add(recorded[first:end])
        refresh(incremental, tables)
        assert_equal_a_rebuild(tables, recorded[:end])


@pytest.mark.parametrize("seed", range(times(8)))
def test_a_log_in_segments_and_all_engines_give_the_same_tables(seed: int, tmp_path: Path) -> None:
    """The writer goes on from segments, which end anywhere; the engine `processes` has tasks of any size."""
    lines, recorded = disguised(seed)
    path, folder, half = tmp_path / "log.db", tmp_path / "log.db.segments", len(lines) // 2
    for begin, end in ((0, half), (half, len(lines))):
        with opened(str(path), segments=folder if begin else None) as ledger:
            for line in lines[begin:end]:
                sent(ledger, line)
        if not begin:
            seal(path, folder, rows=30)
    expected = summarize_tables(facts([recorded]))
    for location, forecasts in ((WithSegments(path), 1), (path, 7)):
        projections = divided(Log(location).frame(Cut(None)), "processes", forecasts=forecasts)
        assert summarize_tables(projections.facts, projections.cached) == expected
    assert verify(path).position == len(recorded)


@pytest.mark.parametrize("seed", range(times(8)))
def test_a_read_model_is_a_rebuild_after_every_command(seed: int, tmp_path: Path) -> None:
    """Every table in the file, and its index of the log; in a short run, after a sixth of the commands."""
    asked = [read(json.dumps(line)) for line in disguised(seed, 10)[0]]
    assert Followed(str(tmp_path), Random(seed), seldom=0 if LONG > 1 else 0.85).through(asked, compared) > 10
