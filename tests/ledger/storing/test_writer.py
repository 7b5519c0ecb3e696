"""Tests of the writer: commands are recorded once, all or nothing, in one order, with any other writers and faults."""

import inspect
import random
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import count, pairwise
from multiprocessing.synchronize import Barrier
from pathlib import Path
from queue import Queue
from types import FrameType
from typing import Any, NamedTuple, cast

import msgspec
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from forecast_ledger.ledger.batching import writer_state
from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Conflict, Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.commands import AnyCommand, Command
from forecast_ledger.ledger.model.log import START, Checkpoint
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.storing.sqlite_files import Files
from forecast_ledger.ledger.storing.stored_log import PAGE, StoredLog, TakenError, Turn
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.ledger.model.test_log import sealed
from tests.support.effort import times
from tests.support.given import (
    NOW,
    annulment,
    bet,
    choices,
    cohort,
    contest,
    day,
    decision,
    enrolment,
    entry,
    finalization,
    forecast,
    micros,
    numeric,
    opened,
    payment,
    quartiles,
    quote,
    replied,
    resolution,
    revocation,
    sale,
    trading_floor,
    withdrawal,
    won,
)
from tests.support.given import closing as early_close
from tests.support.oracle import events_of
from tests.support.processes import Command as AnotherProcess
from tests.support.processes import forking
from tests.support.waiting import PATIENCE


def with_id(command_id: str, command: Command) -> AnyCommand:
    """Return the command with an id."""
    return cast("AnyCommand", msgspec.structs.replace(command, id=command_id))


def ids(ledger: Ledger) -> list[str]:
    """Return the command ids in the log, in its order."""
    return [row.command_id for row in events_of(ledger)]


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """Return a ledger in memory with a constant clock."""
    with Ledger.open(":memory:", clock=lambda: NOW, prizes=prizes_from_log) as memory:
        yield memory


def test_a_receipt_has_the_positions_of_the_events(ledger: Ledger) -> None:
    """Positions count from 1, without gaps."""
    assert ledger.head() == START
    assert ledger.handle(opened(), "c1") == Receipt("c1", 1, 1, duplicate=False)
    assert ledger.handle(with_id("c2", forecast())) == Receipt("c2", 2, 2, duplicate=False)
    assert [(row.position, row.command_id) for row in events_of(ledger)] == [(1, "c1"), (2, "c2")]
    assert ledger.head() == Checkpoint(2, events_of(ledger)[-1].digest)


def test_a_command_needs_an_id(ledger: Ledger) -> None:
    """A command uses its own id, or the one passed to `handle`, which takes precedence."""
    with pytest.raises(Refused, match="id_empty: id"):
        ledger.handle(opened())
    with pytest.raises(Refused, match="id_empty: id"):
        ledger.handle(with_id("c1", opened()), "")
    assert ledger.handle(with_id("c1", opened()), "c2").command_id == "c2"
    [unnamed] = ledger.handle_many([opened("snow")])
    assert isinstance(unnamed, Refused)


def test_a_retry_returns_the_first_receipt(ledger: Ledger) -> None:
    """The receipt does not depend on how the retry is written or what was recorded since."""
    ledger.handle(opened(), "c1")
    first = ledger.handle(forecast(probability="0.70", at="2026-03-11T00:00:00Z"), "c2")
    ledger.handle(resolution(), "c3")
    again = ledger.handle(forecast(probability=0.7, at="2026-03-11T01:00:00+01:00"), "c2")
    assert again == Receipt("c2", first.first, first.last, duplicate=True)
    assert ids(ledger) == ["c1", "c2", "c3"]


SEALED = won(chances={"eve": "0.2", "bob": "0.5", "ada": "0.8"})  # eight rows
PAID: list[AnyCommand] = [with_id(f"c{number}", command) for number, command in enumerate([*SEALED, payment()], 1)]


def test_a_command_of_several_events_has_one_receipt(tmp_path: Path) -> None:
    """The receipt has the first and last log position; a retry in another form returns it, also after a restart."""
    with Ledger.open(tmp_path / "a.db", prizes=prizes_from_log) as first:
        receipts = first.handle_many(PAID)
        assert receipts == [*(Receipt(f"c{n}", n, n) for n in range(1, 9)), Receipt("c9", 9, 11)]
        assert ids(first)[7:] == ["c8", "c9", "c9", "c9"]
        assert len({row.command for row in events_of(first, 8)}) == 1
    with Ledger.open(tmp_path / "a.db", prizes=prizes_from_log) as second:
        again = second.handle(payment(at="2026-03-25T01:00:00+01:00"), "c9")
        assert again == Receipt("c9", 9, 11, duplicate=True)
        with pytest.raises(Refused, match="command_id_reused"):
            second.handle(payment(at=day(26)), "c9")
        with pytest.raises(Refused, match="prizes_paid"):
            second.handle(payment(), "c10")
        assert second.head().position == 11


def test_a_command_whose_events_fall_on_two_pages_has_one_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that catches up page by page still knows where the command begins and ends."""
    store = StoredLog.open(":memory:", "main")
    pages = store.pages
    with Ledger(store, lambda: NOW, prizes_from_log) as first:
        first.handle_many(PAID)
        for limit in range(1, 12):
            monkeypatch.setattr(store, "pages", lambda after=0, limit=limit: pages(after, limit))
            late = Ledger(store, lambda: NOW)
            assert late.handle(payment(), "c9") == Receipt("c9", 9, 11, duplicate=True)


def test_the_events_of_one_command_are_recorded_together_or_not_at_all(tmp_path: Path) -> None:
    """If the third winner's row cannot be written, nobody is paid, and a retry pays all."""
    path = tmp_path / "a.db"
    with (
        Ledger.open(path, prizes=prizes_from_log) as ledger,
        closing(sqlite3.connect(path, isolation_level=None)) as database,
    ):
        ledger.handle_many(PAID[:-1])
        database.execute(
            "CREATE TRIGGER stop BEFORE INSERT ON stored_events WHEN NEW.originator_version = 11 "
            "BEGIN SELECT RAISE(ABORT, 'no eleventh row'); END"
        )
        with pytest.raises((Conflict, Unavailable)):
            ledger.handle(PAID[-1])
        assert ids(ledger) == [command.id for command in PAID[:-1]]
        database.execute("DROP TRIGGER stop")
        assert ledger.handle(PAID[-1]) == Receipt("c9", 9, 11)


def test_a_refused_batch_takes_all_the_events_of_a_command_back(ledger: Ledger) -> None:
    """A prize paid in an atomic batch that fails is not paid, and can be paid later."""
    batch = [*PAID, with_id("c10", forecast("snow"))]
    codes = [outcome.code for outcome in ledger.handle_many(batch, atomic=True) if isinstance(outcome, Refused)]
    assert codes == ["batch_refused"] * 9 + ["unknown_question"]
    assert ids(ledger) == []
    assert ledger.handle_many(batch[:-1], atomic=True)[-1] == Receipt("c9", 9, 11)


RETRIES: list[
    tuple[list[AnyCommand], AnyCommand, AnyCommand, AnyCommand]
] = [  # history, command, retry in another notation, another command
    ([], numeric(bins=200), numeric(bins=None), numeric(bins=199)),
    ([], quartiles(), quartiles(levels=[0.25, "0.50", 0.75], lower="0.0"), quartiles(levels=("0.25", "0.5", "0.76"))),
    ([], quartiles(decimals=6), quartiles(decimals=None), quartiles(decimals=3)),
    (
        [quartiles()],
        forecast("flow", quantiles=(1, 2, 3)),
        forecast("flow", quantiles=["1.0", 2.0, "3e0"]),
        forecast("flow", quantiles=(1, 2, "3.5")),
    ),
    (
        [opened()],
        forecast(attestation=events.Attestation(newest_source="2026-03")),
        forecast(probability=0.70, attestation=events.Attestation(newest_source="2026-03", note="")),
        forecast(attestation=events.Attestation(newest_source="2026-03-01")),
    ),
    ([opened()], forecast(), forecast(attestation=None), forecast(attestation=events.Attestation())),
    (
        [opened(), contest()],
        entry(spot_at=day(12)),
        entry(spot_at="2026-03-12T01:00:00+01:00"),
        entry(spot_at="2026-03-12T00:00:00.000001Z"),
    ),
    ([opened(), contest()], entry(), entry(spot_at=None), entry(spot_at=day(20))),
    ([contest()], enrolment(), enrolment(entrant=None, bot=False), enrolment(entrant="ada")),
    (trading_floor(), quote(at=day(3)), quote(at=day(3), prices={"yes": 0.40}), quote(at=day(3), prices={"yes": 0.41})),
    (
        trading_floor(),
        decision(bet(500)),
        decision(bet("5e2"), at="2026-03-02T01:00:00+01:00"),
        decision(bet(500, "yes")),
    ),
    (trading_floor(), replied("No."), replied("No.", attempt=1), replied("No")),
    ([], cohort(), cohort(starts_at=None), cohort(starts_at=day(1))),  # it would start at the same instant
    (
        trading_floor(),
        resolution(payouts={"yes": "0.5", "no": "0.5"}),
        resolution(payouts={"no": 0.50, "yes": 0.5}),
        resolution(payouts={"yes": "0.25", "no": "0.75"}),
    ),
    (won(), payment(), payment(at="2026-03-25T01:00:00+01:00"), payment(at=day(26))),
    (
        [],
        contest(rules=RuleSet(name="own", kernel="ln")),
        contest(rules=RuleSet(name="own", kernel="ln", cdf_kernel="none", least_density_ppm=10_000)),
        contest(rules=RuleSet(name="own", kernel="ln", cdf_kernel="ln")),
    ),
]


@pytest.mark.parametrize(("before", "command", "again", "other"), RETRIES)
def test_a_retry_may_write_its_fields_in_another_notation(
    ledger: Ledger, before: list[AnyCommand], command: AnyCommand, again: AnyCommand, other: AnyCommand
) -> None:
    """Equal content with the same id returns the first receipt; other content is refused."""
    for number, earlier in enumerate(before):
        ledger.handle(earlier, f"before-{number}")
    first = ledger.handle(command, "c")
    assert ledger.handle(again, "c") == Receipt("c", first.first, first.last, duplicate=True)
    with pytest.raises(Refused, match="command_id_reused"):
        ledger.handle(other, "c")
    assert ledger.head().position == first.last


def test_an_id_is_never_used_for_something_else(ledger: Ledger) -> None:
    """The same id with other content is refused, even if the command itself would be accepted."""
    ledger.handle(opened(), "c1")
    others: list[AnyCommand] = [opened("snow"), opened(title="Rain?"), forecast()]
    for other in others:
        with pytest.raises(Refused) as caught:
            ledger.handle(other, "c1")
        assert (caught.value.code, caught.value.field, caught.value.value) == ("command_id_reused", "id", "c1")
    assert ids(ledger) == ["c1"]


def test_a_refused_command_leaves_its_id_free(ledger: Ledger) -> None:
    """A refused command leaves nothing in the log, so its id can be used."""
    with pytest.raises(Refused, match="unknown_question"):
        ledger.handle(forecast(), "c1")
    assert ledger.handle(opened(), "c1") == Receipt("c1", 1, 1)
    assert ledger.handle(forecast(), "c2") == Receipt("c2", 2, 2)


def test_a_retry_is_known_after_a_restart(tmp_path: Path) -> None:
    """The writer recognizes a retry from the log alone."""
    path = tmp_path / "a.db"
    with Ledger.open(path) as first:
        first.handle_many([with_id("c1", opened()), with_id("c2", forecast())])
    with Ledger.open(path) as second:
        assert second.handle(forecast(probability="0.700"), "c2") == Receipt("c2", 2, 2, duplicate=True)
        with pytest.raises(Refused, match="command_id_reused"):
            second.handle(forecast(probability="0.701"), "c2")
        assert ids(second) == ["c1", "c2"]


def test_each_command_of_a_batch_is_decided_after_the_one_before(ledger: Ledger) -> None:
    """A refusal affects only that command; the others are decided as if it had not been sent."""
    outcomes = ledger.handle_many(
        [
            with_id("c1", forecast()),  # not open yet
            with_id("c2", opened()),
            with_id("c3", forecast(at=day(12))),
            with_id("c4", forecast(at=day(11))),  # earlier than c3
            with_id("c5", withdrawal(at=day(13))),
            with_id("c6", withdrawal(at=day(14))),  # nothing stands after c5
            with_id("c7", resolution()),
        ]
    )
    codes = [outcome.code if isinstance(outcome, Refused) else (outcome.first, outcome.last) for outcome in outcomes]
    assert codes == ["unknown_question", (1, 1), (2, 2), "out_of_order", (3, 3), "nothing_standing", (4, 4)]
    assert ids(ledger) == ["c2", "c3", "c5", "c7"]


def test_a_batch_may_hold_a_command_twice(ledger: Ledger) -> None:
    """The second is a retry, or, with other content, a reuse of the id."""
    twice = with_id("c1", opened())
    one, two, three = ledger.handle_many([twice, twice, with_id("c1", opened("snow"))])
    assert one == Receipt("c1", 1, 1)
    assert two == Receipt("c1", 1, 1, duplicate=True)
    assert isinstance(three, Refused)
    assert three.code == "command_id_reused"
    assert ids(ledger) == ["c1"]


def test_a_batch_may_be_empty_or_come_from_a_generator(ledger: Ledger) -> None:
    """An empty batch records nothing, and any iterable is accepted."""
    assert ledger.handle_many([]) == []
    assert ledger.handle_many([], atomic=True) == []
    assert ledger.head() == START
    receipts = ledger.handle_many(with_id(f"c{number}", opened(f"q{number}")) for number in range(3))
    assert receipts == [Receipt("c0", 1, 1), Receipt("c1", 2, 2), Receipt("c2", 3, 3)]


@pytest.mark.parametrize("count", [15, 16, 1_001])
def test_rows_of_a_batch_are_stored_whole_if_a_name_is_not_ascii(ledger: Ledger, count: int) -> None:
    """Such a row has more bytes than characters; every digest is checked when the rows are read."""
    ledger.handle(opened(), "c0")
    who = ["ada" if number % 3 else "zoë" for number in range(count)]
    ledger.handle_many([with_id(f"f{number}", forecast(participant=name)) for number, name in enumerate(who)])
    made = [recorded.event for page in ledger.read() for recorded in page][1:]
    assert [getattr(event, "participant", None) for event in made] == who


GOOD, BETTER, BAD = with_id("c1", opened()), with_id("c2", forecast()), with_id("c3", forecast("snow"))


@pytest.mark.parametrize("batch", [[GOOD, BETTER, BAD], [BAD, GOOD, BETTER], [GOOD, BAD, BETTER]])
def test_an_atomic_batch_is_recorded_whole_or_not_at_all(ledger: Ledger, batch: list[AnyCommand]) -> None:
    """The faulty command says why, the others that they were refused with it; afterwards nothing has changed."""
    outcomes = ledger.handle_many(batch, atomic=True)
    codes = [outcome.code for outcome in outcomes if isinstance(outcome, Refused)]
    assert codes == ["unknown_question" if command is BAD else "batch_refused" for command in batch]
    assert (ledger.head(), events_of(ledger)) == (START, [])
    assert ledger.handle_many([GOOD, BETTER], atomic=True) == [Receipt("c1", 1, 1), Receipt("c2", 2, 2)]
    assert ids(ledger) == ["c1", "c2"]


def test_after_a_refused_atomic_batch_the_log_goes_on_without_a_gap(tmp_path: Path) -> None:
    """The next command takes the next position, and the log verifies, also after a restart."""
    path = tmp_path / "a.db"
    with Ledger.open(path) as first:
        first.handle(opened("snow"), "c0")
        first.handle_many([GOOD, BETTER, with_id("c4", forecast("hail"))], atomic=True)
        assert first.handle(GOOD).first == 2
        assert ids(first) == ["c0", "c1"]
    with Ledger.open(path) as second:
        assert second.handle(BETTER).first == 3
        assert ids(second) == ["c0", "c1", "c2"]


def test_a_refused_atomic_batch_acknowledges_only_what_is_in_the_log(ledger: Ledger) -> None:
    """A retry of an earlier command keeps its receipt; a command that is in the batch twice gets none."""
    ledger.handle(with_id("c0", opened("hail")))
    outcomes = ledger.handle_many([with_id("c0", opened("hail")), GOOD, GOOD, BAD], atomic=True)
    assert outcomes[0] == Receipt("c0", 1, 1, duplicate=True)
    codes = [outcome.code for outcome in outcomes[1:] if isinstance(outcome, Refused)]
    assert codes == ["batch_refused", "batch_refused", "unknown_question"]


def test_an_atomic_batch_of_retries_and_new_commands_is_accepted(ledger: Ledger) -> None:
    """A retry does not count as a refusal."""
    ledger.handle(GOOD)
    assert ledger.handle_many([GOOD, BETTER], atomic=True) == [Receipt("c1", 1, 1, duplicate=True), Receipt("c2", 2, 2)]


STORY: list[AnyCommand] = [
    with_id(f"c{number}", command)
    for number, command in enumerate(
        [
            opened(),
            opened(),  # refused
            choices(),
            numeric(),
            quartiles(),
            contest(pool=10),
            entry(spot_at=day(12)),
            entry(question="flow"),  # refused
            enrolment(entrant="team"),
            enrolment("league"),  # refused
            forecast(),
            forecast("flow", quantiles=(1, 2, 3), attestation=events.Attestation(newest_source="2026-03")),
            forecast("flow", quantiles=(3, 2, 1)),  # refused
            forecast("colour", probabilities={"red": 1, "green": 0, "blue": 0}),
            forecast("colour"),  # refused
            forecast(participant="bob", probability=0),
            withdrawal(),
            withdrawal(),  # refused
            early_close(),
            resolution(),
            revocation(),
            annulment("colour"),
            forecast("depth", cdf=(0, "0.4", "0.6", "0.9", 1)),
            forecast("depth", "bob", cdf=(0, "0.3", "0.7", "0.9", 1)),
            resolution("depth", value=2),
            entry("cup", "depth"),
            payment(),  # refused
            finalization(),
            entry("cup", "colour"),  # refused
            payment(),
            payment(),  # refused
            resolution("flow", value="1.5"),
        ]
    )
]
STORY += [STORY[3], STORY[11], STORY[29]]  # retried
STAKING: list[AnyCommand] = [
    with_id(f"c{number}", command)
    for number, command in enumerate(
        [
            *trading_floor("ada", "bob"),
            decision(bet(500), bet(50, "no"), prompt="Decide."),  # a text, the decision and two legs
            decision(bet(50)),  # refused: that attempt is recorded
            replied("No.", "bob", prompt="Decide."),
            replied("No.", "bob", attempt=2),  # the default HOLD follows
            quote(at=day(9), prices={"yes": "0.8"}),
            decision(sale(50), period=2, at=day(9)),
            finalization("week"),  # refused: a position is open
            resolution(),  # settles two positions
            revocation(),
            annulment(),
            finalization("week"),
            decision(bet("500.0"), bet(50, "no"), prompt="Decide."),  # under another id
        ]
    )
]


def send_both_ways(story: list[AnyCommand], cuts: list[int]) -> tuple[list[Receipt | Refused], int]:
    """Check that batches leave the same bytes as single commands; return the outcomes and the number of rows."""
    one, other = StoredLog.open(":memory:", "main"), StoredLog.open(":memory:", "main")
    with Ledger(one, lambda: NOW, prizes_from_log) as single, Ledger(other, lambda: NOW, prizes_from_log) as batched:
        singly = [single.handle_many([command])[0] for command in story]
        batches = [story[start:stop] for start, stop in pairwise([0, *cuts, len(story)])]
        together = [outcome for batch in batches for outcome in batched.handle_many(batch)]
        assert list(map(repr, together)) == list(map(repr, singly))
        assert other.read(0) == one.read(0)
        return singly, len(one.read(0))


@examples(st.lists(st.integers(0, len(STORY)), max_size=6).map(sorted))
def test_a_batch_leaves_the_same_bytes_as_its_commands_one_by_one(cuts: list[int]) -> None:
    """A story cut into batches at any point gives the same rows, receipts and refusals."""
    singly, rows = send_both_ways(STORY, cuts)
    assert rows == 24
    assert singly[-3:] == [
        Receipt("c3", 3, 3, duplicate=True),
        Receipt("c11", 9, 9, duplicate=True),
        Receipt("c29", 22, 23, duplicate=True),
    ]


@examples(st.lists(st.integers(0, len(STAKING)), max_size=6).map(sorted))
def test_a_batch_of_trades_leaves_the_same_bytes_as_its_commands_one_by_one(cuts: list[int]) -> None:
    """Decisions, settlements and corrections are included; an attempt sent again is recognized in any batch."""
    singly, rows = send_both_ways(STAKING, cuts)
    assert rows == 11 + 4 + 2 + 2 + 1 + 2 + 3 + 3 + 3 + 1
    refused = [outcome.code for outcome in singly if isinstance(outcome, Refused)]
    assert refused == ["decision_taken", "contest_not_complete"]
    assert singly[-1] == Receipt("c20", 12, 15, duplicate=True)


def test_reading_from_a_position_begins_there(tmp_path: Path) -> None:
    """Only the row at the position is read before those after it, which must follow it; what is before it is not."""
    path = tmp_path / "a.db"
    with Ledger.open(path) as ledger:
        ledger.handle_many([with_id(f"c{number}", opened(f"q{number}")) for number in range(5)])
        assert [row.position for row in events_of(ledger, 3)] == [4, 5]
        assert events_of(ledger, -1) == events_of(ledger)
        assert list(ledger.read(5)) == list(ledger.read(99)) == []
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE stored_events SET state = x'7b7d' WHERE originator_version = 2")
        assert [row.position for row in events_of(ledger, 3)] == [4, 5]
        with pytest.raises(Corrupt, match="log position 2: "):
            events_of(ledger, 2)
        with pytest.raises(Corrupt, match="log position 2: "):
            events_of(ledger, 1)
        forged, _ = log.with_digest(
            b'{"position":3,"recorded_at":1,"command_id":"x","command":"","previous":"","event":'
            b'{"type":"question_closed.v1","at":1,"question":"q1"}'
        )
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE stored_events SET state = ? WHERE originator_version = 3", [forged])
        with pytest.raises(Corrupt, match="log position 4: the row before has digest"):
            events_of(ledger, 3)


@pytest.mark.parametrize("recent", [2**12, 2])
def test_the_events_of_a_command_are_found_by_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recent: int
) -> None:
    """All its events, also of a command that another process recorded, or that is known by the hash of its id alone."""
    monkeypatch.setattr(writer_state, "RECENT", recent)
    path = tmp_path / "a.db"
    with Ledger.open(path, clock=lambda: NOW, prizes=prizes_from_log) as ledger, Ledger.open(path) as other:
        assert ledger.events_of("c0") == []
        for number, command in enumerate([*SEALED, payment()]):
            ledger.handle(command, f"c{number}")
        every = events_of(ledger)
        for reader in (ledger, other):
            for number in range(len(SEALED) + 1):
                found = reader.events_of(f"c{number}")
                assert found == [row for row in every if row.command_id == f"c{number}"]
            assert len(found) == 3
            assert reader.events_of("c") == reader.events_of("") == []


def test_the_ledgers_own_clock_stamps_each_row(ledger: Ledger) -> None:
    """The instant that a command claims and the recorded instant are separate."""
    ledger.handle(opened(), "c1")
    [row] = events_of(ledger)
    assert (row.recorded_at, row.event.at) == (NOW, micros(5))


def test_recorded_time_never_decreases_though_the_clock_jumps_back(tmp_path: Path) -> None:
    """It does not decrease within a process, after a restart, or after another writer with a faster clock."""
    path = tmp_path / "a.db"
    times = iter([100, 50, 200, 199])
    with Ledger.open(path, clock=lambda: next(times)) as first:
        for number in range(4):
            first.handle(opened(f"a{number}"), f"a{number}")
    with Ledger.open(path, clock=lambda: 10) as second, Ledger.open(path, clock=lambda: 300) as ahead:
        second.handle(opened("b"), "b")
        ahead.handle(opened("c"), "c")
        second.handle(opened("d"), "d")
        assert [row.recorded_at for row in events_of(second)] == [100, 100, 200, 200, 200, 300, 300]


def test_without_a_clock_the_systems_is_used() -> None:
    """The system clock gives µs since the epoch."""
    with Ledger.open(":memory:") as ledger:
        before = time.time_ns() // 1_000
        ledger.handle(opened(), "c1")
        assert before <= events_of(ledger)[0].recorded_at <= time.time_ns() // 1_000


def test_two_ledgers_on_one_file_see_each_others_commands(tmp_path: Path) -> None:
    """Each decision is made against the newest state, where an older one would decide otherwise."""
    path = tmp_path / "a.db"
    with Ledger.open(path) as one, Ledger.open(path) as other:
        one.handle(opened(), "c1")
        other.handle(forecast(), "c2")
        one.handle(withdrawal(), "c3")  # withdraws a forecast that only the other ledger has read
        with pytest.raises(Refused, match="nothing_standing"):
            other.handle(withdrawal(), "c4")
        one.handle(resolution(), "c5")
        with pytest.raises(Refused, match="question_resolved"):
            other.handle(forecast(), "c6")
        other.handle(revocation(), "c7")
        assert one.handle(forecast(at=day(14)), "c8").first == 6
        assert one.head() == other.head()
        assert other.handle(opened(), "c1") == Receipt("c1", 1, 1, duplicate=True)
        assert one.handle(forecast(), "c2") == Receipt("c2", 2, 2, duplicate=True)
        assert other.handle(forecast(at=day(14)), "c8").duplicate


class Held(NamedTuple):
    """A turn in which the append is replaced by another action."""

    turn: Turn
    append: Callable[[Any], None]

    def read(self, after: int, limit: int = PAGE) -> list[bytes]:
        """See `Turn`."""
        return self.turn.read(after, limit)

    def pages(self, after: int = 0, limit: int = PAGE) -> Iterator[list[bytes]]:
        """See `Turn`."""
        return self.turn.pages(after, limit)


class LosingStore(StoredLog):
    """A store in which a writer without turns is faster a number of times."""

    losses = 0
    tried = 0

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Return a turn whose append loses, until all losses are used up."""
        with super().turn() as turn:

            def append(rows: Any) -> None:
                self.tried += 1
                if self.losses:
                    self.losses -= 1
                    raise TakenError("taken")
                turn.append(rows)

            yield Held(turn, append)


def test_a_lost_race_is_run_again() -> None:
    """The batch is decided again, up to a limit; the command is recorded once."""
    store = LosingStore.open(":memory:", "main")
    with Ledger(store, lambda: NOW) as ledger:
        store.losses = 5
        assert ledger.handle(opened(), "c1") == Receipt("c1", 1, 1)
        assert store.tried == 6
        assert ids(ledger) == ["c1"]


def test_races_lost_without_end_are_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a limited number of attempts, nothing is recorded and a retry is safe."""
    monkeypatch.setattr("forecast_ledger.ledger.storing.writer.MAX_TRIES", 4)
    store = LosingStore.open(":memory:", "main")
    with Ledger(store, lambda: NOW) as ledger:
        ledger.handle(opened(), "c1")
        store.losses, store.tried = 10**9, 0
        with pytest.raises(Conflict):
            ledger.handle(forecast(), "c2")
        assert store.tried == 4
        store.losses = 0
        assert ledger.handle(forecast(), "c2") == Receipt("c2", 2, 2)
        assert ids(ledger) == ["c1", "c2"]


class FailingStore(StoredLog):
    """A store that fails to write while it has a reason."""

    reason: BaseException | None = None

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Return a turn whose append fails if there is a reason."""
        with super().turn() as turn:

            def append(rows: Any) -> None:
                if self.reason:
                    raise self.reason
                turn.append(rows)

            yield Held(turn, append)


@pytest.mark.parametrize("reason", [Unavailable("full"), OSError("gone"), MemoryError(), KeyboardInterrupt()])
@pytest.mark.parametrize("many", [False, True])
def test_a_failed_append_leaves_everything_as_it_was(reason: BaseException, many: bool) -> None:
    """After any failure, the ids and positions are free, and the next command is decided against the old state."""
    store = FailingStore.open(":memory:", "main")
    with Ledger(store, lambda: NOW) as ledger:
        ledger.handle(opened(), "c1")
        batch = [with_id("c2", forecast()), with_id("c3", resolution())]
        store.reason = reason
        with pytest.raises(type(reason)):
            ledger.handle_many(batch) if many else ledger.handle(batch[0])
        store.reason = None
        assert ledger.head().position == 1
        with pytest.raises(Refused, match="nothing_standing"):
            ledger.handle(withdrawal(), "c4")
        assert ledger.handle_many(batch) == [Receipt("c2", 2, 2), Receipt("c3", 3, 3)]
        assert ids(ledger) == ["c1", "c2", "c3"]


def test_a_batch_is_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the database refuses the third of five rows, none of the five is recorded."""
    monkeypatch.setattr("forecast_ledger.ledger.storing.writer.MAX_TRIES", 2)
    path = tmp_path / "a.db"
    batch = [with_id(f"c{number}", opened(f"q{number}")) for number in range(5)]
    with Ledger.open(path) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(
            "CREATE TRIGGER stop BEFORE INSERT ON stored_events WHEN NEW.originator_version = 3 "
            "BEGIN SELECT RAISE(ABORT, 'no third row'); END"
        )
        with pytest.raises((Conflict, Unavailable)):
            ledger.handle_many(batch)
        assert events_of(ledger) == []
        database.execute("DROP TRIGGER stop")
        assert [receipt.first for receipt in ledger.handle_many(batch) if isinstance(receipt, Receipt)] == [
            1,
            2,
            3,
            4,
            5,
        ]


OPENED = events.QuestionOpened(at=1, question="q", kind="binary", outcomes=("yes", "no"), opens_at=1, closes_at=9)
FOUNDED = events.ContestOpened(at=1, contest="k", rules=PRESETS["relative-2022-04"], payable_unit=1)
ENTERED = events.QuestionAdded(at=2, contest="k", question="q", weight=1)
STAKED = events.ContestOpened(at=1, contest="w", rules=PRESETS["arena-v1"], payable_unit=1, starts_at=0)
OF_ADA: dict[str, Any] = {"at": 2, "contest": "w", "participant": "ada"}
GRANTED = events.CashGranted(**OF_ADA, amount=100)
LEG: dict[str, Any] = OF_ADA | {"period": 1, "attempt": 1, "leg": 1, "question": "q", "outcome": 0, "position": 1}
BOUGHT = events.SharesBought(**LEG, price=5, quote=1, cash=100, amount=50, shares=100, confidence=1)
SOLD = events.SharesSold(**LEG, price=5, quote=1, shares=100, cost=50, proceeds=50)
OF_FIRST: dict[str, Any] = OF_ADA | {"question": "q", "outcome": 0, "position": 1}
TRIED: dict[str, Any] = OF_ADA | {"period": 1, "attempt": 1}
ADDED = events.QuestionAdded(at=2, contest="w", question="q", weight=1)
FLOOR: list[events.AnyEvent] = [OPENED, STAKED, ADDED, GRANTED]
MISFITS: dict[str, list[events.AnyEvent]] = {
    "quote": [events.PricesQuoted(at=2, source="", quoted_at=2, quotes=(events.Quote(question="q", prices=(1, 2)),))],
    "cash without contest": [GRANTED],
    "cash granted twice": [STAKED, GRANTED, GRANTED],
    "deposit without account": [STAKED, events.CashDeposited(**OF_ADA, amount=1, reason="")],
    "withdrawal without account": [STAKED, events.CashWithdrawn(**OF_ADA, amount=1, reason="")],
    "decision without account": [STAKED, events.DecisionRecorded(**TRIED, action="HOLD", reasoning="")],
    "fault without account": [STAKED, events.DecisionMalformed(**TRIED, fault="unreadable", response="")],
    "default without attempt": [STAKED, GRANTED, events.DecisionDefaulted(**OF_ADA, period=1)],
    "failed call without account": [STAKED, events.CallFailed(**OF_ADA, period=1, error="503")],
    "refused leg without account": [STAKED, events.LegRefused(**TRIED, leg=1, code="no_quote")],
    "purchase without account": [OPENED, STAKED, BOUGHT],
    "purchase of a question of no contest": [OPENED, STAKED, GRANTED, BOUGHT],
    "sale without position": [*FLOOR, SOLD],
    "settlement without position": [*FLOOR, events.PositionSettled(**OF_FIRST, shares=1, cost=1, payout=1, proceeds=1)],
    "refund without position": [*FLOOR, events.PositionRefunded(**OF_FIRST, shares=1, cost=1)],
    "void without position": [*FLOOR, events.TradesVoided(**OF_FIRST, shares=1, cost=1, amount=1)],
    "reversal without position": [*FLOOR, events.SettlementReversed(**OF_FIRST, reverses=1, amount=1)],
    "forecast": [events.ForecastMade(at=2, question="q", participant="ada", probabilities=(1, 10**9 - 1))],
    "withdrawal": [OPENED, events.ForecastWithdrawn(at=2, question="q", participant="ada")],
    "close": [events.QuestionClosed(at=2, question="q")],
    "resolution": [events.QuestionResolved(at=2, question="q", outcome=0, known_at=2)],
    "annulment": [events.QuestionAnnulled(at=2, question="q", reason="")],
    "revocation": [events.ResolutionRevoked(at=2, question="q", reason="")],
    "entry without contest": [OPENED, events.QuestionAdded(at=2, contest="k", question="q", weight=1)],
    "entry without question": [FOUNDED, events.QuestionAdded(at=2, contest="k", question="q", weight=1)],
    "enrolment": [events.ParticipantEnrolled(at=2, contest="k", participant="ada", bot=True)],
    "prize": [events.PrizePaid(at=2, contest="k", participant="ada", amount=1)],
    "question added twice": [OPENED, FOUNDED, ENTERED, ENTERED],
    "exclusion": [events.ParticipantExcluded(at=2, contest="k", participant="ada", level="hidden", reason="")],
    "finalization": [events.ContestFinalized(at=2, contest="k")],
    "question opened twice": [OPENED, OPENED],
    "contest opened twice": [FOUNDED, FOUNDED],
}


@pytest.mark.parametrize("happened", MISFITS.values(), ids=MISFITS.keys())
def test_an_event_that_cannot_follow_what_came_before_is_damage(happened: list[events.AnyEvent]) -> None:
    """Such an event is never skipped, although it is sealed and in order; every use of the writer fails."""
    store = StoredLog.open(":memory:", "main")
    store.append([(position, "t", row) for position, row in enumerate(sealed(*happened), 1)])
    with Ledger(store, lambda: NOW) as ledger:
        for _ in range(2):
            with pytest.raises(Corrupt) as caught:
                ledger.handle(opened("new"), "new")
            assert caught.value.position == len(happened)


def test_eight_threads_share_one_ledger(tmp_path: Path) -> None:
    """Each sends fifty commands, ten of which all send: none is lost or doubled, and each thread's order is kept."""

    def work(thread: int) -> list[Receipt]:
        own = [shared.handle(forecast(participant=f"p{thread}-{n}"), f"t{thread}-{n}") for n in range(40)]
        return own + [shared.handle(forecast(participant=f"all-{n}"), f"all-{n}") for n in range(10)]

    with Ledger.open(tmp_path / "a.db") as shared:
        shared.handle(opened(), "c1")
        with ThreadPoolExecutor(8) as threads:
            receipts = [receipt for batch in threads.map(work, range(8)) for receipt in batch]
        rows = events_of(shared)
        at = {row.command_id: row.position for row in rows}
        assert len(at) == len(rows) == 1 + 8 * 40 + 10
        assert Counter(receipt.duplicate for receipt in receipts) == {False: 330, True: 70}
        assert all(at[receipt.command_id] == receipt.first == receipt.last for receipt in receipts)
        assert all(at[f"t{thread}-{n}"] < at[f"t{thread}-{n + 1}"] for thread in range(8) for n in range(39))


Answers = Queue[list[tuple[str, int, bool]] | Exception]


def working(work: Callable[[], list[Receipt]], start: Barrier, answers: Answers) -> None:
    """Run work in another process and report its result; an error ends the other processes too."""
    try:
        answers.put([(receipt.command_id, receipt.first, receipt.duplicate) for receipt in work()])
    except Exception as error:
        answers.put(error)
        start.abort()


def send(path: Path, number: int, start: Barrier, answers: Answers) -> None:
    """Open the ledger in another process, wait for the others, and send fifty commands one by one."""

    def work() -> list[Receipt]:
        with Ledger.open(path) as ledger:
            start.wait(PATIENCE)
            numbers = range(25 * number, 25 * number + 50)
            return [ledger.handle(forecast(participant=f"p{n}"), f"c{n}") for n in numbers]

    working(work, start, answers)


def open_and_send(path: Path, number: int, start: Barrier, answers: Answers) -> None:
    """Open new ledgers in another process at the same moment as the others, and send the commands that all send."""

    def work() -> list[Receipt]:
        receipts = []
        for file in range(20):
            start.wait(PATIENCE)
            with Ledger.open(path / f"{file}.db") as ledger:
                receipts += [ledger.handle(opened(), "same"), ledger.handle(opened(f"q{number}"), f"c{number}")]
        return receipts

    working(work, start, answers)


def in_four_processes(work: Callable[[Path, int, Barrier, Answers], None], path: Path) -> list[tuple[str, int, bool]]:
    """Return the results of four processes that work on one file."""
    forked = forking(__name__)
    start, answers = forked.Barrier(4), forked.Queue()
    workers = [forked.Process(target=work, args=(path, number, start, answers)) for number in range(4)]
    for worker in workers:
        worker.start()
    results = [answers.get(timeout=PATIENCE) for _ in workers]
    for worker in workers:
        worker.join(PATIENCE)
    for answer in results:
        if isinstance(answer, Exception):
            raise answer
    return [receipt for answer in results for receipt in answer]


def test_four_processes_write_to_one_file(tmp_path: Path) -> None:
    """Each sends fifty commands, half of which its neighbour sends too: every id is recorded once, and every receipt is
    right.
    """
    path = tmp_path / "a.db"
    with Ledger.open(path) as ledger:
        ledger.handle(opened(), "c-open")
        receipts = in_four_processes(send, path)
        positions = {row.command_id: row.position for row in events_of(ledger)}
        assert set(positions) == {"c-open", *(f"c{number}" for number in range(125))}
        assert ledger.head().position == len(positions) == 126
        assert all(positions[command_id] == first for command_id, first, _ in receipts)
        firsts = sorted(command_id for command_id, _, duplicate in receipts if not duplicate)
        assert firsts == sorted(positions.keys() - {"c-open"})


def test_four_processes_may_start_the_same_ledger(tmp_path: Path) -> None:
    """The file is created once, and the command that all send is recorded once; twenty times, so that the processes
    meet.
    """
    receipts = in_four_processes(open_and_send, tmp_path)
    for path in tmp_path.glob("*.db"):
        with Ledger.open(path) as ledger:
            assert sorted(ids(ledger)) == ["c0", "c1", "c2", "c3", "same"]
    firsts = Counter(command_id for command_id, _, duplicate in receipts if not duplicate)
    assert firsts == dict.fromkeys(["c0", "c1", "c2", "c3", "same"], 20)


def test_a_reader_is_not_blocked_by_a_writer(tmp_path: Path) -> None:
    """During a writer's transaction, a reader can read the recorded rows, and a ledger can be opened: what waited for
    the transaction would be unavailable in the end.
    """
    path = tmp_path / "a.db"
    with Ledger.open(path) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as writer:
        ledger.handle(opened(), "c1")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO stored_events VALUES ('main', 2, 't', x'00')")
        assert ids(ledger) == ["c1"]
        assert ledger.head().position == 1
        assert ledger.handle(opened(), "c1").duplicate
        with Ledger.open(path) as other, closing(StoredLog.open(str(path), "main", read_only=True)) as reader:
            assert ids(other) == ["c1"]
            assert len(reader.read(0)) == 1
        writer.execute("ROLLBACK")
        assert ledger.handle(forecast(), "c2") == Receipt("c2", 2, 2)


def test_a_writer_is_not_blocked_by_a_reader(tmp_path: Path) -> None:
    """A reader in the middle of the log sees it with the new rows or without them, never with a part of them."""
    path = tmp_path / "a.db"
    with Ledger.open(path) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as reader:
        ledger.handle(opened(), "c1")
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM stored_events").fetchone() == (1,)
        pages = ledger.read()
        assert [row.command_id for row in next(pages)] == ["c1"]
        assert ledger.handle(forecast(), "c2") == Receipt("c2", 2, 2)
        assert reader.execute("SELECT count(*) FROM stored_events").fetchone() == (1,)
        assert [row.command_id for page in pages for row in page] in ([], ["c2"])


WRITER = """
import sys
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import forecast
number = int(sys.argv[2])
with Ledger.open(sys.argv[1]) as ledger:
    while True:
        batch = [forecast(participant=f"p{number}", id=f"c{number}-{part}") for part in range(number % 4 + 1)]
        ledger.handle_many(batch)
        print(number, flush=True)
        number += 1
"""


def killed_writer(path: Path, first: int, chance: random.Random) -> list[int]:
    """Return the batches that a process acknowledged before it was killed."""
    process = AnotherProcess(str(path), str(first), program=WRITER)
    acknowledged = [process.stdout.readline() for _ in range(chance.randint(1, 40))]
    time.sleep(chance.random() / 100)
    process.kill()
    acknowledged += process.ended(PATIENCE).stdout.splitlines(keepends=True)
    return [int(line) for line in acknowledged if line.endswith("\n")]


@pytest.mark.parametrize("seed", range(times(8)))
def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path: Path, seed: int) -> None:
    """The process is killed twice; each acknowledged batch is recorded, each batch is whole, and the log verifies."""
    path, chance = tmp_path / "a.db", random.Random(seed)
    with Ledger.open(path) as ledger:
        ledger.handle(opened(), "c-open")
    acknowledged = killed_writer(path, 0, chance)
    acknowledged += killed_writer(path, acknowledged[-1] + 2, chance)
    with Ledger.open(path) as ledger:
        parts = Counter(int(name[1:].partition("-")[0]) for name in ids(ledger)[1:])
        assert set(acknowledged) <= set(parts)
        assert len(parts) - len(acknowledged) <= 2  # at most one each that was recorded but not acknowledged
        assert all(count == number % 4 + 1 for number, count in parts.items())
        assert ledger.handle(resolution(), "c-next").first == sum(parts.values()) + 2
        assert len(events_of(ledger)) == ledger.head().position


def test_the_head_is_the_digest_of_the_last_row(tmp_path: Path) -> None:
    """A checkpoint kept now can be compared with the log at any later time."""
    path = tmp_path / "a.db"
    with Ledger.open(path) as ledger:
        ledger.handle(opened(), "c1")
        head = ledger.head()
        ledger.handle(forecast(), "c2")
        assert events_of(ledger)[head.position - 1].digest == head.digest
        with closing(StoredLog.open(str(path), "main", read_only=True)) as store:
            assert [row.position for row in log.unseal(store.read(head.position), head)] == [2]


@pytest.mark.parametrize("taking", [Ledger._alone, inspect.unwrap(Files.writing)])
def test_an_interrupt_as_a_lock_is_taken_leaves_it_free(taking: Callable[..., object]) -> None:
    """Python looks for signals whenever its code has called a function; the lock is not taken by such a call."""

    def interrupt(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_return" and frame.f_code is taking.__code__ and called.__name__ == "acquire":
            sys.setprofile(None)
            raise KeyboardInterrupt

    with Ledger.open(":memory:", turn=0.2) as ledger:
        before = sys.getprofile()
        sys.setprofile(interrupt)
        try:
            with suppress(KeyboardInterrupt):
                ledger.handle(opened("c1"), "c1")
        finally:
            sys.setprofile(before)
        for name in ("c1", "c2"):
            ledger.handle(opened(name), name)


def test_an_interrupt_as_a_function_is_called_leaves_the_lock_free() -> None:
    """Whichever function of the writer it is: Python looks for signals as one begins, before its first line."""
    for number in count(1):
        left, ledger = number, Ledger.open(":memory:", clock=lambda: NOW)

        def interrupt(frame: FrameType, event: str, _: object) -> None:
            nonlocal left
            if event == "call" and frame.f_code.co_filename == Ledger._alone.__code__.co_filename:
                left -= 1
                if not left:
                    sys.setprofile(None)
                    raise KeyboardInterrupt

        before = sys.getprofile()
        sys.setprofile(interrupt)
        try:
            ledger.handle(opened("c1"), "c1")
        except KeyboardInterrupt:
            sys.setprofile(before)
            assert not ledger._lock.locked()
            ledger.handle(opened("c1"), "c1")
        else:
            sys.setprofile(before)
            assert number > 5
            return
        ledger.close()
