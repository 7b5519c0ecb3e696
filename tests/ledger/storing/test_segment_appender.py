"""Commands that go straight into segments leave the files that sealing the log of the same commands leaves."""

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching.batch import Batch, Receipt
from forecast_ledger.ledger.core.errors import Absent, Corrupt, Refused, Unavailable
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import PrizePaid
from forecast_ledger.ledger.segments import sealing, segment_manifest
from forecast_ledger.ledger.segments.sealing import seal
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, join, to_columns
from forecast_ledger.ledger.segments.segment_files import read_columns, write_table
from forecast_ledger.ledger.segments.segment_manifest import MANIFEST, describe_file, read_manifest
from forecast_ledger.ledger.storing import kept_states, segment_appender, segment_rows
from forecast_ledger.ledger.storing.segment_appender import appended
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.ledger.auditing.test_audit import of_season, of_trading
from tests.support.effort import times
from tests.support.exports import export_commands
from tests.support.given import (
    DAY,
    NOW,
    choices,
    contest,
    day,
    ensemble,
    forecast,
    micros,
    numeric,
    opened,
    payment,
    quartiles,
    won,
)
from tests.support.logs import commands_of, rows
from tests.support.processes import Command
from tests.support.seasons import Season
from tests.support.waiting import PATIENCE

SIZE = 40  # rows of a segment


class Ticking:
    """A clock that goes on by a millisecond a call."""

    def __init__(self) -> None:
        self.now = NOW + 99 * DAY

    def __call__(self) -> int:
        """The time, µs."""
        self.now += 1_000
        return self.now


def split(commands: Sequence[AnyCommand], dice: Random) -> Iterator[list[AnyCommand]]:
    """Commands in batches of random sizes; now and then one that was sent already, or one that is refused."""
    sent: list[AnyCommand] = []
    while len(sent) < len(commands):
        batch = [*commands[len(sent) : len(sent) + dice.choice([1, 2, 9, 60])]]
        sent += batch
        again = [dice.choice(sent)] if dice.random() < 0.5 else []
        yield batch + again + ([opened(id="")] if dice.random() < 0.2 else [])


def files_of(folder: Path) -> dict[str, bytes]:
    """The bytes of every file."""
    return {file.name: file.read_bytes() for file in folder.iterdir()} if folder.exists() else {}


def sealed(log: Path, folder: Path) -> dict[str, bytes]:
    """The files of a log that is sealed."""
    store = StoredLog.open(log, "main", read_only=True)
    seal(store.pages, "main", folder, SIZE)
    store.close()
    return files_of(folder)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of a few rows, so that a short log has several parts."""
    monkeypatch.setattr(sealing, "_PART", 7)
    monkeypatch.setattr(sealing, "_MANY", 3)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("seed", range(times(18)))
def test_a_folder_has_the_files_of_a_log_that_is_sealed(seed: int, tmp_path: Path) -> None:
    """Whenever it is closed and opened again between two batches; rows are those of the log after every batch."""
    dice = Random(seed)
    commands = dice.choice([export_commands(), Season(dice, "baseline", "peer-2025-06").commands])
    log, folder, outcomes = tmp_path / "log.db", tmp_path / "s", list[str]()
    batches = [*split(commands, dice)]
    with Ledger.open(log, clock=Ticking()) as ledger:
        for batch in batches:
            outcomes.append(str(ledger.handle_many(batch)))
    every = rows(str(log))
    clock, remaining, found = Ticking(), iter(batches), list[str]()
    while len(found) < len(batches):
        with appended(folder, clock=clock, size=SIZE) as ledger:
            for batch in remaining:
                found.append(str(ledger.handle_many(batch)))
                recorded = [row for page in ledger._store.pages() for row in page]
                assert recorded == every[: ledger.head().position]
                assert [*ledger._store.at(range(1, len(recorded) + 1, 5))] == recorded[::5]
                if dice.random() < 0.3:
                    break
        if files_of(folder):
            assert rows(str(folder)) == every[: read_manifest(folder).end.position]
    assert found == outcomes
    assert files_of(folder) == sealed(log, tmp_path / "sealed")


@pytest.mark.usefixtures("small_parts")
def test_forecasts_go_into_columns_as_they_were_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every form, stamped or not, also where a batch ends one segment and begins the next: the files are those of a
    sealed log, and no row of a forecast was decoded.
    """
    dice, made = Random(5), list[AnyCommand]()
    forms: list[tuple[str, dict[str, Any]]] = [
        ("flow", {"quantiles": ("1.5", "2", "3.25")}),
        ("depth", {"cdf": ("0", "0.25", "0.5", "0.75", "1")}),
        ("depths", {"samples": ("3", "1", "2")}),
        ("colour", {"probabilities": {"blue": "0.25", "green": "0.125", "red": "0.625"}}),
    ]
    for number in range(3 * SIZE):
        chance = {"probability": f"0.{dice.randrange(1, 999):03}"}
        question, fields = ("rain", chance) if number % 50 < 30 else dice.choice(forms)
        at, who = day(11 + number // 40, number % 40 // 2), dice.choice(["ada", "bob", 'c"y', "d\\e"])
        made.append(structs.replace(forecast(question, who, at=at if number < 90 else None, **fields), id=f"f{number}"))
    story: list[AnyCommand] = [opened(), quartiles(), numeric(), ensemble(), choices()]
    batches = [story, made[:7], made[7:50], made[50:90], made[90:]]
    batches[0] = [structs.replace(command, id=f"o{number}") for number, command in enumerate(batches[0])]
    with Ledger.open(tmp_path / "log.db", clock=lambda: micros(14)) as ledger:
        expected = [str(ledger.handle_many(batch)) for batch in batches]
    read = list[int]()

    def counted(rows: Sequence[bytes], records: Any) -> Any:
        read.append(len(rows))
        return to_columns(rows, records)

    monkeypatch.setattr(sealing, "to_columns", counted)
    with appended(tmp_path / "s", clock=lambda: micros(14), size=SIZE) as ledger:
        assert [str(ledger.handle_many(batch)) for batch in batches] == expected
        assert [row for page in ledger._store.pages() for row in page] == rows(str(tmp_path / "log.db"))
    assert read == [len(story)]
    assert files_of(tmp_path / "s") == sealed(tmp_path / "log.db", tmp_path / "sealed")


def test_rows_of_a_segment_that_is_not_full_are_not_made_into_columns_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have their columns in the folder; a long segment would take longer to make than all else that is read."""
    story: list[AnyCommand] = [contest(), opened(), opened("snow")]
    with appended(tmp_path / "s") as ledger:
        for number, command in enumerate(story):
            ledger.handle(command, f"c{number}")
    made = list[int]()

    def counted(rows: Sequence[bytes], records: Any) -> Any:
        made.append(len(rows))
        return to_columns(rows, records)

    monkeypatch.setattr(sealing, "to_columns", counted)
    with appended(tmp_path / "s") as ledger:
        ledger.handle(opened("hail"), "c3")
    assert made == [1]
    assert len(rows(str(tmp_path / "s"))) == 4


@pytest.mark.parametrize(
    ("kind", "name"),
    [("forecasts", "command_id"), ("forecasts", "participant"), ("others", "event"), ("quotes", "prices")],
)
def test_rows_that_change_while_their_segment_is_replaced_are_noticed(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were listed have the columns of the segment that is replaced; the folder stays as it was."""
    folder = tmp_path / "s"
    with appended(folder) as ledger:
        ledger.handle_many(export_commands())
    before = files_of(folder)

    def joined(parts: list[SegmentColumns]) -> SegmentColumns:
        columns = join(parts)
        table = getattr(columns, kind)
        changed = table[name].take([1, 0, *range(2, len(table))])
        assert changed != table[name]
        return columns._replace(
            **{kind: table.set_column(table.schema.names.index(name), table.schema.field(name), changed)}
        )

    monkeypatch.setattr(sealing, "join", joined)
    with pytest.raises(Corrupt), appended(folder) as ledger:
        ledger.handle(contest("another"), "another")
    assert files_of(folder) == before


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were read as a whole. The states of short logs are kept, in a folder of this test."""
    read, known_before_last = list[Path](), segment_appender._known_before_last

    def noted(folder: Path, *given: Any) -> Any:
        read.append(folder)
        return known_before_last(folder, *given)

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "states"))
    monkeypatch.setattr(kept_states, "LEAST", 1)
    monkeypatch.setattr(segment_appender, "_known_before_last", noted)
    return read


@pytest.mark.parametrize("seed", range(times(3)))
def test_a_writer_with_a_kept_state_decides_as_one_that_reads_the_folder(
    seed: int, tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was sent before is a duplicate. A folder is read as a whole only if nothing was kept."""
    dice, commands = Random(seed), export_commands()
    ends = sorted({0, *dice.sample(range(1, len(commands)), 4), len(commands)})
    outcomes: dict[int, list[str]] = {1: [], 10**6: []}
    for least, found in outcomes.items():
        monkeypatch.setattr(kept_states, "LEAST", least)
        for begin, end in pairwise(ends):
            with appended(tmp_path / f"{least}", clock=lambda: NOW + 99 * DAY, size=SIZE) as ledger:
                found.append(str(ledger.handle_many(commands[max(begin - 9, 0) : end])))
    assert outcomes[1] == outcomes[10**6]
    assert files_of(tmp_path / "1") == files_of(tmp_path / "1000000")
    assert [folder.name for folder in reads] == ["1000000"] * 4


def damaged(folder: Path, kind: str, how: str) -> None:
    """Damage a file of the first or of the last segment of a folder, or what it says."""
    number = 0 if kind == "first" else -1
    manifest = read_manifest(folder)
    segment = manifest.segments[number]
    path = folder / segment.others.name
    if how == "lost":
        path.unlink()
    elif how == "changed":
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    else:  # all digests but those of rows are right
        others = read_columns(folder, segment).others
        ids = others["command_id"].take([*range(len(others))][::-1])
        assert ids != others["command_id"]
        path.unlink()
        write_table(path, others.set_column(others.schema.names.index("command_id"), "command_id", ids))
        other = structs.replace(segment, others=describe_file(path, len(others)))
        sealing._write_manifest(folder, manifest.up_to(segment.first - 1).with_segment(other))


@pytest.mark.parametrize(
    ("kind", "how"),
    [("first", "lost"), ("last", "lost"), ("first", "changed"), ("last", "changed"), ("last", "forged"), ("", "")],
)
def test_a_kept_state_is_not_used_if_the_folder_was_changed(
    kind: str, how: str, tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is damaged is refused as without it; another folder at its place is read."""
    folder = tmp_path / "s"
    with appended(folder, size=SIZE) as ledger:
        ledger.handle_many(export_commands())
    if kind:
        damaged(folder, kind, how)
    else:
        with appended(tmp_path / "other", size=SIZE) as ledger:
            ledger.handle_many(export_commands()[1:])
        expected = read_manifest(tmp_path / "other").end
        folder.rename(tmp_path / "before")
        (tmp_path / "other").rename(folder)
        with appended(folder, size=SIZE) as ledger:
            assert ledger.head() == expected
        assert reads == [folder]
        return
    faults = list[str]()
    for states in (tmp_path / "states", tmp_path / "none"):
        monkeypatch.setenv("XDG_STATE_HOME", str(states))
        with pytest.raises(Corrupt) as fault, appended(folder, size=SIZE):
            pass
        faults.append(str(fault.value))
    assert faults[0] == faults[1]
    assert reads == [folder, folder]


def test_no_state_is_kept_of_rows_that_were_not_checked(
    tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a full segment are not rebuilt when a folder is opened; they are, once it is to have more of them."""
    for module in (segment_manifest, segment_rows, sealing):
        monkeypatch.setattr(module, "MARKED", 5)
    folder, size = tmp_path / "s", 20
    commands = [structs.replace(contest(f"c{number}"), id=f"open-{number}") for number in range(size)]
    with appended(folder, size=size) as ledger:
        ledger.handle_many(commands)
    manifest = read_manifest(folder)
    [segment] = manifest.segments
    others = read_columns(folder, segment).others
    ids = others["command_id"].take([1, 0, *range(2, size)])
    path = folder / segment.others.name
    path.unlink()
    write_table(path, others.set_column(others.schema.names.index("command_id"), "command_id", ids))
    other = structs.replace(segment, others=describe_file(path, size))
    sealing._write_manifest(folder, manifest.up_to(0).with_segment(other))
    with appended(folder, size=size) as ledger:
        ledger.handle_many(commands[-1:])
    assert reads == [folder]
    with pytest.raises(Corrupt, match="log position 1: the columns"), appended(folder, size=2 * size):
        pass
    assert reads == [folder] * 2


def test_a_state_of_another_log_position_is_not_used(
    tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if it says that it is of this manifest."""
    folder, commands = tmp_path / "s", export_commands()
    monkeypatch.setattr(kept_states, "_version", lambda _: "the same")
    with appended(folder) as ledger:
        ledger.handle_many(commands[:9])
    monkeypatch.setattr(kept_states, "LEAST", 10**6)
    with appended(folder) as ledger:
        ledger.handle_many(commands[9:])
    assert reads == []
    with appended(folder) as ledger:
        assert ledger.head() == read_manifest(folder).end
    assert reads == [folder]


def test_a_closed_ledger_keeps_no_state(tmp_path: Path, reads: list[Path]) -> None:
    """What it knows may be in files that are closed."""
    folder = tmp_path / "s"
    with appended(folder) as ledger:
        ledger.handle_many(export_commands())
        ledger.close()
    with appended(folder):
        pass
    assert reads == [folder]


def test_a_state_of_other_code_or_of_an_interrupt_is_not_used(
    tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other code may check more; what an interrupt left may not be the state of its position."""
    folder = tmp_path / "s"
    with appended(folder) as ledger:
        ledger.handle_many(export_commands())
    for name, value in (("code_digest", lambda: "other"), ("pyarrow", lambda: SimpleNamespace(__version__="1"))):
        with monkeypatch.context() as patched:
            patched.setattr(kept_states, name, value)
            with appended(folder):
                pass
    assert len(reads) == 2
    with appended(folder) as ledger:
        ledger.handle(contest("another"), "another")
        monkeypatch.setattr(Batch, "decide_all", lambda *_, **__: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            ledger.handle(contest("third"), "third")
    with appended(folder):
        pass
    assert len(reads) == 3


@pytest.mark.usefixtures("small_parts")
def test_prizes_are_paid_from_rows_that_are_listed_and_not(tmp_path: Path) -> None:
    """The amounts are those of the log."""
    made = [*won(chances={"ada": "0.5", "bob": "0.8", "cyd": "0.2"}), payment()]
    commands = [structs.replace(command, id=f"c{number}") for number, command in enumerate(made)]
    with Ledger.open(tmp_path / "log.db", clock=Ticking(), prizes=prizes_from_log) as ledger:
        ledger.handle_many(commands)
    expected = events_of(tmp_path / "log.db")
    assert isinstance(expected[-1], PrizePaid)
    for place in range(0, len(commands), 3):
        folder, clock = tmp_path / f"s{place}", Ticking()
        for part in (commands[:place], commands[place:]):
            with appended(folder, clock=clock, prizes=prizes_from_log, size=5) as ledger:
                ledger.handle_many(part)
        assert events_of(folder) == expected


def events_of(location: Path) -> list[Any]:
    """The events in a log or a folder."""
    return [log.unseal_row(row, position).event for position, row in enumerate(rows(str(location)), 1)]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("many", [1, 50])
def test_a_block_that_fails_keeps_whole_transactions(many: int, tmp_path: Path) -> None:
    """At every step, the folder ends where a transaction does; all is sent again, and it is that of a log."""
    commands = [*commands_of("metaculus-2022")[:8], *commands_of("arena-week")[: times(96)]]  # of up to 5 events
    folder, clock = tmp_path / "s", lambda: NOW + 99 * DAY
    ends, listed = [0], {0}
    entered = appended(folder, clock=clock, size=3)
    ledger = entered.__enter__()
    for begin in range(0, len(commands), many):
        ledger.handle_many(commands[begin : begin + many])
        ends.append(ledger.head().position)
        listed.add(read_manifest(folder).end.position if files_of(folder) else 0)
    assert not entered.__exit__(ValueError, ValueError(), None)
    assert listed <= {*ends}
    assert len(listed) > len({*ends}) / 4
    with appended(folder, clock=clock, size=3) as ledger:
        outcomes = ledger.handle_many(commands)
    assert sum(isinstance(each, Receipt) and each.duplicate for each in outcomes) > max(listed) / 2
    with Ledger.open(tmp_path / "log.db", clock=clock) as ledger:
        ledger.handle_many(commands)
    assert events_of(folder) == events_of(tmp_path / "log.db")
    assert {file.name for file in folder.iterdir()} == read_manifest(folder).names()


def test_a_folder_that_is_none_of_segments_is_left_alone(tmp_path: Path) -> None:
    """Files of others, a folder of another ledger, one that another process writes, a name that is no id."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(Unavailable, match="it has other files"), appended(tmp_path / "notes"):
        pass
    assert files_of(tmp_path / "notes") == {"a.txt": b"mine"}
    with appended(tmp_path / "s", "spring") as ledger:
        ledger.handle(contest(), "c")
        with pytest.raises(Unavailable, match="another process writes to it"), appended(tmp_path / "s", "spring"):
            pass
    with pytest.raises(Unavailable, match="of the ledger 'spring'"), appended(tmp_path / "s"):
        pass
    with pytest.raises(Refused, match="id"), appended(tmp_path / "other", "\0"):
        pass
    with appended(tmp_path / "other") as ledger:
        assert isinstance(ledger.handle_many([opened(id="")])[0], Refused)
    assert not (tmp_path / "other").exists()


def test_nothing_recorded_leaves_an_empty_folder_as_it_was(tmp_path: Path) -> None:
    """All commands are refused, or there are none."""
    (tmp_path / "s").mkdir()
    with appended(tmp_path / "s") as ledger:
        assert isinstance(ledger.handle_many([opened(id="")])[0], Refused)
    assert files_of(tmp_path / "s") == {}
    with pytest.raises(Absent):
        read_manifest(tmp_path / "s")


@pytest.mark.parametrize("kind", ["forecasts", "others"])
def test_a_segment_that_is_damaged_is_not_added_to(kind: str, tmp_path: Path) -> None:
    """Its files are compared with their SHA-256 before a row is taken."""
    with appended(tmp_path / "s", size=10**4) as ledger:
        ledger.handle_many(export_commands())
    [file] = (tmp_path / "s").glob(f"*.{kind}.parquet")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    before = files_of(tmp_path / "s")
    with pytest.raises(Corrupt), appended(tmp_path / "s", size=10**4):
        pass
    assert files_of(tmp_path / "s") == before


@pytest.mark.parametrize("seed", range(times(6)))
def test_a_folder_that_ends_in_the_middle_of_a_command_is_not_added_to(seed: int, tmp_path: Path) -> None:
    """At log positions at which it could be cut; where it ends with a command, it goes on."""
    dice = Random(seed)
    recorded = of_season(seed) if seed % 2 else of_trading(seed, 20)
    every, ids = [log.seal(each)[0] for each in recorded], [each.command_id for each in recorded]
    within = [end for end in range(1, len(every)) if ids[end - 1] == ids[end]]
    after = [end for end in range(1, len(every) + 1) if end not in within]
    for end in [*dice.sample(within, min(times(24), len(within))), *dice.sample(after, times(24))]:
        folder = tmp_path / f"s{end}"
        seal(lambda begin, end=end: iter([every[begin:end]] if begin < end else []), "main", folder, 30)  # type: ignore[misc]
        before = files_of(folder)
        if end in within:
            with pytest.raises(Unavailable, match="in the middle of a command"), appended(folder):
                pass
            assert files_of(folder) == before
        else:
            with appended(folder) as ledger:
                assert ledger.handle(contest("another"), "another").first == end + 1


@pytest.mark.parametrize("paid", [1, 2, 3])
def test_a_folder_that_ends_between_two_prizes_is_not_added_to(paid: int, tmp_path: Path) -> None:
    """A command pays the whole pool."""
    made = [*won(chances={"ada": "0.5", "bob": "0.8", "cyd": "0.6"}), payment()]
    commands = [structs.replace(command, id=f"c{number}") for number, command in enumerate(made)]
    prizes = {"ada": 5 * 10**6, "bob": 3 * 10**6, "cyd": 2 * 10**6}  # of a pool of 10
    with Ledger.open(tmp_path / "log.db", clock=Ticking(), prizes=lambda *_: prizes) as ledger:
        ledger.handle_many(commands)
    assert isinstance(events_of(tmp_path / "log.db")[-3], PrizePaid)
    every = rows(str(tmp_path / "log.db"))
    end = len(every) - 3 + paid
    seal(lambda begin: iter([every[begin:end]] if begin < end else []), "main", tmp_path / "s", 30)
    if paid == 3:
        with appended(tmp_path / "s") as ledger:
            assert ledger.handle(contest("another"), "another").first == len(every) + 1
    else:
        with pytest.raises(Unavailable, match="in the middle of a command"), appended(tmp_path / "s"):
            pass


def test_threads_may_share_the_ledger(tmp_path: Path) -> None:
    """One reads all of it while another appends: always a beginning of the log."""
    commands = [opened(f"q{number}", id=f"c{number}") for number in range(150)]
    faults, ended = list[BaseException](), Event()

    def read(ledger: Ledger) -> None:
        try:
            while not ended.is_set():
                positions = [recorded.position for page in ledger.read() for recorded in page]
                assert positions == [*range(1, len(positions) + 1)]
        except BaseException as fault:
            faults.append(fault)

    with appended(tmp_path / "s", size=60) as ledger:
        reader = Thread(target=read, args=[ledger])
        reader.start()
        for begin in range(0, len(commands), 9):
            ledger.handle_many(commands[begin : begin + 9])
        ended.set()
        reader.join()
    assert not faults


def test_after_a_full_disk_nothing_more_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is listed stays, nothing else does, and the commands can be sent again."""
    commands, folder = export_commands(), tmp_path / "s"
    with appended(folder, size=40) as ledger:
        ledger.handle_many(commands[:30])
    before = files_of(folder)

    def full(path: Path, _: Any) -> None:
        path.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    entered = appended(folder, size=40)
    ledger = entered.__enter__()
    ledger.handle_many(commands[30:33])
    with monkeypatch.context() as patched:
        patched.setattr(sealing, "write_table", full)
        with pytest.raises(Unavailable, match="No space left on device; the rows after the listed ones are not rec"):
            ledger.handle_many(commands[33:])
    for again in (lambda: ledger.handle_many(commands[33:]), ledger.head, lambda: entered.__exit__(None, None, None)):
        with pytest.raises(Unavailable, match="a segment could not be written"):
            again()
    assert files_of(folder) == before
    with appended(folder, size=40) as ledger:
        ledger.handle_many(commands)
    with Ledger.open(tmp_path / "log.db") as ledger:
        ledger.handle_many(commands)
    assert events_of(folder) == events_of(tmp_path / "log.db")


def test_segments_without_their_manifest_are_not_removed(tmp_path: Path) -> None:
    """They may be all there is of a log. A folder in which nothing was listed yet has an empty manifest."""
    with appended(tmp_path / "s") as ledger:
        assert read_manifest(tmp_path / "s").segments == ()
        ledger.handle_many(export_commands())
    (tmp_path / "s" / MANIFEST).unlink()
    before = files_of(tmp_path / "s")
    with pytest.raises(Unavailable, match="there are files of segments, and no"), appended(tmp_path / "s"):
        pass
    assert files_of(tmp_path / "s") == before


KILLED = """
import sys
from pathlib import Path
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.segments import sealing, segment_files
from forecast_ledger.ledger.storing.segment_appender import appended
from tests.support.exports import export_commands
sealing._PART = 7
commands = export_commands()
with appended(Path(sys.argv[1]), size=20) as ledger:
    print("open", flush=True)
    for command in commands:
        ledger.handle_many([command])
"""


@pytest.mark.parametrize("seed", range(times(6)))
def test_a_process_that_is_killed_leaves_whole_segments(seed: int, tmp_path: Path) -> None:
    """Whatever is listed can be read, and the folder goes on from there."""
    folder = tmp_path / "s"
    process = Command(str(folder), program=KILLED)
    assert process.stdout.readline() == "open\n"
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=Random(seed).random() * 0.3)
    process.kill()
    process.ended(PATIENCE)
    if (folder / MANIFEST).exists():
        assert len(rows(str(folder))) == read_manifest(folder).end.position
    with appended(folder, size=20) as ledger:
        ledger.handle_many(export_commands())
    with Ledger.open(tmp_path / "log.db") as ledger:
        ledger.handle_many(export_commands())
    assert events_of(folder) == events_of(tmp_path / "log.db")
    assert {file.name for file in folder.iterdir()} == read_manifest(folder).names()
