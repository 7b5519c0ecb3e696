"""Many processes that write to one ledger: they take turns, nobody waits long, and nobody is sent away."""

import io
import itertools
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused, Unavailable, Uncertain
from forecast_ledger.ledger.deciding.decider import evolve
from forecast_ledger.ledger.deciding.questions import unsettled_question
from forecast_ledger.ledger.deciding.state import State, Write
from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.events import AnyEvent
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.sqlite_files import execute_when_free
from forecast_ledger.ledger.storing.stored_log import StoredLog, Turn
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.cli.main import FINE, UNCERTAIN, main
from forecast_ledger.replay.writing.append import append_lines
from tests.support.crowds import QUESTION, Trickle, crowd, forecast
from tests.support.given import cash_out, deposit, trading_floor

MOST = 1.0  # s, that 99 of 100 commands take at most among eight writers
TRIES = ("a", "b", "c")  # a machine at work on other things holds everybody up now and then, an unfair lock always
LINES = 6_000  # of an append beside a trickle; the benchmark sends 20,000


def lines(count: int) -> io.BytesIO:
    """A file of forecasts."""
    said = ({"type": "submit_forecast", **each} for each in map(_said, range(count)))
    return io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in said))


def _said(number: int) -> dict[str, object]:
    command = forecast("file", number)
    fields = ("id", "at", "question", "participant", "probability")
    return {name: getattr(command, name) for name in fields}


def beside(location: str, name: str, count: int, rate: float) -> tuple[dict[str, int], Trickle]:
    """Append a file while another process sends single commands; return the results of both."""
    with Ledger.open(location, name) as ledger:
        ledger.handle(QUESTION)
        with Trickle(location, name, rate) as trickle:
            counts = append_lines(ledger, lines(count), lambda *_: None, lambda _: None)
    return counts, trickle


def longest_beside(location: str, name: str) -> float:
    """The longest time that a single command takes beside an append, in s, but for one in a hundred; all succeed."""
    counts, trickle = beside(location, name, LINES, rate=20)
    assert (counts, trickle.found.errors) == ({"accepted": LINES, "duplicate": 0, "refused": 0}, [])
    assert verify(location, name).position == 1 + LINES + trickle.found.commands
    return trickle.found.percentile(99)


def test_eight_writers_take_turns(tmp_path: Path) -> None:
    """No writer is refused or waits long, and each command is recorded once; the benchmark measures their rate."""

    def longest(name: str) -> float:
        path = str(tmp_path / name)
        eight = crowd(path, "main", 8, 50)
        assert (eight.errors, verify(path).position) == ([], 1 + 8 * 50)
        return eight.percentile(99)

    assert any(longest(name) < MOST for name in TRIES)


def test_a_large_append_and_a_trickle_leave_each_other_room(tmp_path: Path) -> None:
    """A writer of single commands waits for a part of the append, not for all of it; both succeed."""
    assert any(longest_beside(str(tmp_path / name), "main") < MOST for name in TRIES)


def test_a_writer_decides_once_and_against_the_newest_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer reads again only the events that another writer has appended in the meantime."""
    path = tmp_path / "a.db"
    with Ledger.open(path) as one, Ledger.open(path) as other:
        one.handle(QUESTION)
        for number in range(3):
            other.handle(forecast("other", number))
        read: list[int] = []

        def watched(event: AnyEvent, state: State, position: int) -> tuple[Write, ...]:
            read.append(position)
            return evolve(event, state, position)

        monkeypatch.setattr("forecast_ledger.ledger.batching.writer_state.evolve", watched)
        one.handle(forecast("one", 0))
        one.handle(forecast("one", 1))
        assert read == [2, 3, 4]  # those of the other, once


def test_much_that_is_new_is_read_before_ones_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nobody waits for a writer that has been away; what comes after is read in its turn."""
    path = tmp_path / "a.db"
    monkeypatch.setattr("forecast_ledger.ledger.storing.writer.FAR_BEHIND", 10)
    with Ledger.open(path) as one, Ledger.open(path) as other, closing(sqlite3.connect(path)) as looking:
        one.handle(QUESTION)
        other.handle_many([forecast("other", number) for number in range(30)])
        looking.execute("PRAGMA busy_timeout = 0")
        locked: list[bool] = []

        def look() -> None:
            try:
                looking.execute("BEGIN IMMEDIATE")
                looking.rollback()
                locked.append(False)
            except sqlite3.OperationalError:
                locked.append(True)

        def read(event: AnyEvent, state: State, position: int) -> tuple[Write, ...]:
            look()
            return evolve(event, state, position)

        def decided(*arguments: Any) -> Any:
            look()
            return unsettled_question(*arguments)

        monkeypatch.setattr("forecast_ledger.ledger.batching.writer_state.evolve", read)
        monkeypatch.setattr("forecast_ledger.ledger.batching.batch.unsettled_question", decided)
        assert one.handle(forecast("one", 0)).first == 32
        assert locked == [False] * 30 + [True]


def test_a_turn_that_does_not_come_is_told_in_time(tmp_path: Path) -> None:
    """If another program keeps the file longer than the timeout, the ledger is unavailable and nothing is recorded."""
    path = tmp_path / "a.db"
    with Ledger.open(path, turn=0.2) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as holder:
        ledger.handle(QUESTION)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match=r"held the lock for 0\.2 s"):
            ledger.handle(forecast("one", 0))
        holder.execute("ROLLBACK")
        assert ledger.handle(forecast("one", 0)).first == 2


def test_threads_of_one_ledger_and_others_on_its_file_take_turns(tmp_path: Path) -> None:
    """Six threads on two ledgers record each command once, in one order, while readers read."""
    path = tmp_path / "a.db"
    with Ledger.open(path) as one, Ledger.open(path) as other:
        one.handle(QUESTION)
        received: list[Receipt] = []

        def write(ledger: Ledger, who: str) -> None:
            for number in range(20):
                received.append(ledger.handle(forecast(who, number)))
                assert sum(len(page) for page in ledger.read()) > 1

        threads = [threading.Thread(target=write, args=(ledger, f"t{n}")) for n, ledger in enumerate([one, other] * 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(receipt.first for receipt in received) == [*range(2, 122)]
        assert one.head() == other.head()


def fail_commits(patched: pytest.MonkeyPatch, error: sqlite3.Error, *, committed: bool = False) -> None:
    """Let each commit of a turn end with an error, after it has committed or before."""

    def failing(cursor: sqlite3.Cursor, statement: str, limit: float) -> None:
        if statement != "COMMIT" or committed:
            execute_when_free(cursor, statement, limit)
        if statement == "COMMIT":
            raise error

    patched.setattr("forecast_ledger.ledger.storing.sqlite.execute_when_free", failing)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_when_the_disk_fails_at_a_commit_the_outcome_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool, many: bool
) -> None:
    """The rows may be there or not. The ledger reads again before it decides; sent again, all is recorded once."""
    path, said = tmp_path / "a.db", "disk I/O error: it is not known whether this was recorded; send it again"
    batch = [forecast("one", number) for number in range(3 if many else 1)]
    with Ledger.open(path) as ledger:
        ledger.handle(QUESTION)
        with monkeypatch.context() as patched:
            fail_commits(patched, sqlite3.OperationalError("disk I/O error"), committed=committed)
            with pytest.raises(Uncertain, match=said):
                ledger.handle_many(batch) if many else ledger.handle(batch[0])
        assert ledger.head().position == 1 + len(batch) * committed
        receipts = [ledger.handle(command) for command in batch]
        assert [(each.first, each.duplicate) for each in receipts] == [(n + 2, committed) for n in range(len(batch))]
        assert ledger.handle(forecast("one", 9)).first == 2 + len(batch)
    assert verify(str(path)).position == 2 + len(batch)


def test_what_interrupts_the_end_of_a_turn_after_the_commit_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are there, so that the ledger reads them: 1,000 more than 10,000 can be withdrawn, and no more."""
    path, turn = tmp_path / "a.db", StoredLog.turn
    rules = RuleSet(name="open", trading=Trading(recapitalisation=True))

    @contextmanager
    def interrupted(self: StoredLog) -> Iterator[Turn]:
        with turn(self) as mine:
            yield mine
        raise KeyboardInterrupt

    with Ledger.open(path) as ledger:
        for number, command in enumerate(trading_floor(rules=rules)):
            ledger.handle(command, f"c{number}")
        monkeypatch.setattr(StoredLog, "turn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.handle(deposit(1_000), "in")
        monkeypatch.setattr(StoredLog, "turn", turn)
        last = ledger.head().position
        assert ledger.handle(deposit(1_000), "in") == Receipt("in", last, last, duplicate=True)
        with pytest.raises(Refused, match="not_enough_cash"):
            ledger.handle(cash_out(11_001), "too much")
        assert ledger.handle(cash_out(11_000), "out").first == last + 1
    assert verify(str(path)).position == last + 1


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY])
def test_a_full_disk_is_no_unknown_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """SQLite has not written the end of the transaction then, so nothing was recorded."""
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = code
    with Ledger.open(tmp_path / "a.db") as ledger:
        ledger.handle(QUESTION)
        with monkeypatch.context() as patched:
            fail_commits(patched, error)
            with pytest.raises(Unavailable):
                ledger.handle(forecast("one", 0))
        assert ledger.head().position == 1
        assert ledger.handle(forecast("one", 0)).first == 2


def test_an_unknown_outcome_has_an_exit_code_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 5, and stderr says what to do; sent again, the file is recorded completely, once."""
    path, file = str(tmp_path / "a.db"), tmp_path / "file.jsonl"
    with Ledger.open(path) as ledger:
        ledger.handle(QUESTION)
    file.write_bytes(lines(3).getvalue())

    with monkeypatch.context() as patched:
        fail_commits(patched, sqlite3.OperationalError("disk I/O error"), committed=True)
        failed = CliRunner().invoke(main, ["append", path, str(file)])
        result = CliRunner().invoke(main, ["append", path, str(file), "--errors", "json"])
    assert (failed.exit_code, failed.stdout) == (UNCERTAIN, "") == (5, "")
    said = "disk I/O error: it is not known whether this was recorded; send it again, which is safe"
    assert failed.stderr == f"forecast-ledger: {path}: {said}\n"
    assert result.exit_code == FINE  # nothing is left to be recorded
    again = CliRunner().invoke(main, ["append", path, str(file), "--format", "json"])
    assert [(row["accepted"], row["duplicate"], row["log_position"]) for row in json.loads(again.stdout)] == [(0, 3, 4)]


def test_a_command_that_says_more_than_a_row_can_hold_is_refused(tmp_path: Path) -> None:
    """The refusal comes before any decision, so the log has no row that readers would refuse."""
    texts = tuple("x" * 190 + str(number) for number in range(100_000))
    long = OpenQuestion(
        id="long", at=QUESTION.at, question="long", kind="multiple_choice", outcomes=texts,
        opens_at=QUESTION.opens_at, closes_at=QUESTION.closes_at,
    )  # fmt: skip
    with Ledger.open(tmp_path / "a.db") as ledger:
        with pytest.raises(Refused, match="its content has more than 16777216 bytes; split it into several commands"):
            ledger.handle(long)
        assert ledger.head().position == 0


@pytest.mark.parametrize(("seconds", "sizes"), [(0.0, [1_000, 2_000]), (1.0, [1_000, 50, 2, 1, 1])])
def test_a_transaction_of_an_append_is_as_large_as_others_can_wait_for(
    monkeypatch: pytest.MonkeyPatch, seconds: float, sizes: list[int]
) -> None:
    """A twentieth of a second's work, which is measured: commands that take long come few at a time, but all come."""
    now = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: next(now) * seconds)
    taken: list[int] = []
    handle = Ledger.handle_many

    def watched(self: Ledger, commands: list[AnyCommand], **options: Any) -> list[Receipt | Refused]:
        taken.append(len(commands))
        return handle(self, commands, **options)

    monkeypatch.setattr(Ledger, "handle_many", watched)
    with Ledger.open(":memory:") as ledger:
        ledger.handle(QUESTION)
        counts = append_lines(ledger, lines(sum(sizes)), lambda *_: None, lambda _: None)
    assert (counts["accepted"], taken) == (sum(sizes), sizes)
