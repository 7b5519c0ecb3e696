"""Imported times of receipt: a new ledger keeps them, marks their rows, and takes no others."""

from itertools import count
from pathlib import Path

import pytest
from msgspec import UNSET, structs

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.audit.verify import run_checks, verify
from forecast_ledger.replay.files.export import export
from forecast_ledger.replay.files.restore import restore
from forecast_ledger.replay.reading.log import Log
from tests.support.forging import chained, written
from tests.support.given import DAY, NOW, day, forecast, opened

START = NOW


def numbered(*commands: object) -> list[object]:
    """The commands under ids of their own."""
    return [structs.replace(command, id=f"c{number}") for number, command in enumerate(commands, 1)]  # type: ignore[type-var]


def ledger(path: Path | str = ":memory:", now: int = START + 30 * DAY) -> Ledger:
    """A ledger whose clock counts µs from an instant."""
    ticks = count(now)
    return Ledger.open(path, clock=lambda: next(ticks))


def rows(of: Ledger) -> list[Recorded]:
    """The rows of a ledger."""
    return [recorded for page in of.read() for recorded in page]


COMMANDS = numbered(opened(), forecast(participant="ada", at=day(1)), forecast(participant="bob", at=day(1)))


def test_rows_have_the_times_that_were_given_and_say_so() -> None:
    """Equal times are in order; what is recorded afterwards has the time of the clock, and no mark."""
    with ledger() as book:
        outcomes = book.handle_many(COMMANDS[:2], recorded_at=[START, START])  # type: ignore[arg-type]
        assert all(isinstance(outcome, Receipt) for outcome in outcomes)
        book.handle_many(COMMANDS[2:])  # type: ignore[arg-type]
        found = rows(book)
        assert [row.recorded_at for row in found[:2]] == [START, START]
        assert [row.imported for row in found] == [True, True, UNSET]
        assert found[2].recorded_at >= START + 30 * DAY


def test_the_bytes_of_other_rows_do_not_change(tmp_path: Path) -> None:
    """The mark is in the row of an imported time only, after that time."""
    with ledger(tmp_path / "log.db") as book:
        book.handle_many(COMMANDS[:1], recorded_at=[START])  # type: ignore[arg-type]
        book.handle_many(COMMANDS[1:])  # type: ignore[arg-type]
        [stored] = list(book._store.pages())
    assert b'"recorded_at":%d,"imported":true,"normal":true,"command_id":' % START in stored[0]
    assert not any(b"imported" in row for row in stored[1:])


@pytest.mark.parametrize(
    ("time", "code"),
    [(START - 1, "out_of_order"), *((time, "out_of_range") for time in (START + 31 * DAY, -(2**63), 2**80))],
)
def test_a_time_that_falls_or_is_of_the_future_is_refused(time: int, code: str) -> None:
    """That command alone; the next one is compared with the last that was recorded."""
    with ledger() as book:
        _, refused, receipt = book.handle_many(COMMANDS, recorded_at=[START, time, START])  # type: ignore[arg-type]
        assert isinstance(refused, Refused)
        assert (refused.code, refused.field) == (code, "recorded_at")
        assert isinstance(receipt, Receipt)
        assert str(refused).isprintable()


def test_a_fault_of_the_command_that_comes_first_is_told_first() -> None:
    """By the order of the codes, as for every other refusal."""
    unknown = structs.replace(forecast(participant="ada", at=day(1)), id="x")
    with ledger() as book:
        book.handle_many(COMMANDS[:1], recorded_at=[START])  # type: ignore[arg-type]
        [late] = book.handle_many([unknown], recorded_at=[START - 1])
        [elsewhere] = book.handle_many([structs.replace(unknown, question="none")], recorded_at=[START - 1])
        [future] = book.handle_many([structs.replace(unknown, question="none")], recorded_at=[START + 31 * DAY])
    assert [each.code for each in (late, elsewhere, future) if isinstance(each, Refused)] == [
        "out_of_order",
        "unknown_question",
        "out_of_range",
    ]


def test_a_ledger_that_its_own_clock_has_stamped_takes_no_times(tmp_path: Path) -> None:
    """Also if another process has stamped it; commands that are recorded already count as duplicates."""
    path = tmp_path / "log.db"
    with ledger(path) as book, ledger(path) as other:
        book.handle_many(COMMANDS[:1], recorded_at=[START])  # type: ignore[arg-type]
        other.handle_many(COMMANDS[1:2], recorded_at=[START + 1])  # type: ignore[arg-type]
        book.handle_many(COMMANDS[2:])  # type: ignore[arg-type]
        again = other.handle_many(COMMANDS, recorded_at=[START] * 3)  # type: ignore[arg-type]
        assert [outcome.duplicate for outcome in again if isinstance(outcome, Receipt)] == [True] * 3
        new = structs.replace(forecast(participant="cyd", at=day(1)), id="new")
        for each in (book, other):
            [refused] = each.handle_many([new], recorded_at=[START + 31 * DAY])
            assert isinstance(refused, Refused)
            assert refused.code == "ledger_in_use"
            assert each.head().position == 3
    assert verify(path).position == 3


def test_an_atomic_import_that_is_refused_leaves_no_time_behind() -> None:
    """The next import may begin where this one did, and the ledger's own clock too."""
    with ledger() as book:
        outcomes = book.handle_many(COMMANDS, recorded_at=[START + DAY, START + DAY, START], atomic=True)  # type: ignore[arg-type]
        codes = [outcome.code for outcome in outcomes if isinstance(outcome, Refused)]
        assert (codes, book.head().position) == (["batch_refused", "batch_refused", "out_of_order"], 0)
        assert isinstance(book.handle_many(COMMANDS[:1], recorded_at=[START])[0], Receipt)  # type: ignore[arg-type]


def forged(path: Path, *marks: bool) -> str:
    """A log with these marks at its rows, one for each command; no mark where it is False."""
    with ledger() as book:
        book.handle_many(COMMANDS[: len(marks)], recorded_at=[START] * len(marks))  # type: ignore[arg-type]
        found = rows(book)
    marked = [structs.replace(row, imported=mark or UNSET) for row, mark in zip(found, marks, strict=True)]
    return written(path, chained(marked))


@pytest.mark.parametrize(
    ("marks", "position"),
    [((True, True, False), None), ((False, False), None), ((False, True), 2), ((True, False, True), 3)],
)
def test_an_imported_row_after_one_of_the_clock_is_damage(
    tmp_path: Path, marks: tuple[bool, ...], position: int | None
) -> None:
    """No writer records it: a time that was put in later would otherwise pass for one that was received."""
    log = forged(tmp_path / "log.db", *marks)
    if position is None:
        assert verify(log).position == len(marks)
    else:
        with pytest.raises(Corrupt, match="follows a row that the ledger's clock has stamped") as damage:
            verify(log)
        assert (damage.value.position, damage.value.check) == (position, "clock")


def test_an_export_with_such_a_row_is_not_restored(tmp_path: Path) -> None:
    """Nothing of it is written; one with imported rows in their place is restored to the same digest."""
    export(forged(tmp_path / "good.db", True, True, False), tmp_path / "good")
    assert restore(tmp_path / "good", tmp_path / "again.db") == 3
    assert verify(tmp_path / "again.db") == verify(tmp_path / "good.db")
    export(forged(tmp_path / "bad.db", False, True), tmp_path / "bad")
    with pytest.raises(Corrupt, match="the row was imported, and follows one of the ledger's clock"):
        restore(tmp_path / "bad", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_verify_says_up_to_where_times_are_imported(tmp_path: Path) -> None:
    """An auditor sees that these times are the word of whoever imported them."""
    [clock] = run_checks(Log(forged(tmp_path / "log.db", True, True, False)), only=["clock"]).results
    assert (clock.found, "imported up to log position 2" in clock.says) == ("ok", True)
    [clock] = run_checks(Log(forged(tmp_path / "none.db", False, False)), only=["clock"]).results
    assert "up to log position" not in clock.says
