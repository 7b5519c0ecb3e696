"""A writer that begins with a kept state knows and decides what one that has read the whole log does."""

import os
import random
import signal
import stat
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger import seal
from forecast_ledger.ledger.batching import writer_state
from forecast_ledger.ledger.batching.writer_state import StandingInFile, WriterState
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.storing import kept_states, writer
from forecast_ledger.ledger.storing.kept_states import _MARK, kept_bytes, kept_state
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.ledger.batching.test_command_index import commands_of_a_history
from tests.support.effort import times
from tests.support.given import DAY, NOW, day, forecast, opened, remembered
from tests.support.paths import ROOT
from tests.support.servers import PG_CTL, postgres

STORIES = sorted(path for path in ROOT.glob("data/*/commands.jsonl") if path.stat().st_size < 100_000)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The states of this test are in a folder of its own, and are kept after every row."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "states"))
    monkeypatch.setattr(kept_states, "LEAST", 1)
    monkeypatch.setattr(writer_state, "RECENT", 3)
    monkeypatch.setattr(writer_state, "PAGE", 2)
    return tmp_path / "states" / "forecast-ledger"


def whole(known: WriterState) -> dict[str, Any]:
    """All of a state, with the order of every table, which decides the order of events."""
    tables = {name: [*table.items()] for name, table in vars(known.state).items() if isinstance(table, dict)}
    tables["applied"] = [(name, [*known.state.peek_standing(name).items()]) for name in known.state.standing]
    unloaded = [name for name, stands in known.state.standing.items() if isinstance(stands, StandingInFile)]
    index = [*known.commands.recent.items()], [[*map(list, run)] for run in known.commands.runs], known.commands.seed
    rest = known.head, known.recorded_at, known.is_imported, [*known.attempts.items()]
    return tables | {"unloaded": unloaded, "index": index, "rest": rest}


def story(path: Path) -> Iterator[Any]:
    """The commands of a worked example."""
    return map(commands.read, path.read_bytes().splitlines())


def random_history(seed: int) -> Iterator[Any]:
    """Forecasts and quotes, some of them refused."""
    history = islice(commands_of_a_history(random.Random(seed)), 60)
    return (structs.replace(each, id=f"c{number}") for number, each in enumerate(history))  # type: ignore[type-var]


HISTORIES: dict[str, Callable[[], Iterator[Any]]] = {
    **{path.parent.name: lambda path=path: story(path) for path in STORIES},  # type: ignore[misc]
    **{f"seed {seed}": lambda seed=seed: random_history(seed) for seed in range(4)},  # type: ignore[misc]
}


@pytest.mark.parametrize("name", HISTORIES)
def test_what_is_kept_is_the_whole_state_after_every_step(name: str) -> None:
    """Every table in its order, what is in the temporary file, the index of commands, the head and the times."""
    with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY, prizes=prizes_from_log) as ledger:
        for command in HISTORIES[name]():
            ledger.handle_many([command])
            again = kept_state(kept_bytes(ledger._known, "main", "this"), "main", "this")
            assert again is not None
            assert whole(again) == whole(ledger._known)
            again.close()
        assert ledger.head().position > 5


@pytest.mark.parametrize("name", HISTORIES)
def test_a_writer_with_a_kept_state_decides_as_one_that_reads_the_log(name: str, tmp_path: Path) -> None:
    """Each command is sent to a new writer, and to one that has all of the log in memory: the logs are the same."""
    path, begun = str(tmp_path / "log.db"), 0
    with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY, prizes=prizes_from_log) as reading:
        for command in islice(HISTORIES[name](), times(120)):
            with Ledger.open(path, clock=lambda: NOW + 99 * DAY, prizes=prizes_from_log) as writer:
                outcomes = [writer.handle_many([command]), writer.handle_many([command])]
                begun += bool(writer._kept)
            expected = [reading.handle_many([command]), reading.handle_many([command])]
            assert [str(each) for each in outcomes[0] + outcomes[1]] == [
                str(each) for each in expected[0] + expected[1]
            ]
            assert writer._known.head == reading.head()
    assert begun > 5


def begin(location: str, name: str = "main", count: int = 9) -> None:
    """Record some forecasts, whose state is kept at the end."""
    with Ledger.open(location, name, clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "question")
        for number in range(count):
            ledger.handle(forecast(participant=f"p{number}", at=day(1)), f"c{number}")


def rows_read(location: str, name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many events a new writer applies before it knows the head."""
    applied: list[int] = []
    apply = WriterState.apply

    def counted(known: WriterState, page: Sequence[Recorded]) -> None:
        applied.append(len(page))
        apply(known, page)

    with monkeypatch.context() as patch, Ledger.open(location, name) as ledger:
        patch.setattr(WriterState, "apply", counted)
        ledger.head()
    return sum(applied)


@pytest.fixture(scope="module", params=["file", "server"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store of each kind."""
    if request.param == "server":
        if not PG_CTL:
            pytest.skip("needs a PostgreSQL server's pg_ctl, which is not installed here")
        with postgres() as url:
            yield url
    else:
        yield str(tmp_path_factory.mktemp("store") / "ledgers.db")


def test_only_rows_after_the_kept_position_are_read(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each ledger of a store for itself; what another writer has recorded since is read."""
    for name in ("one", "two"):
        begin(store, name)
        assert rows_read(store, name, monkeypatch) == 0
    monkeypatch.setattr(kept_states, "LEAST", 99)
    with Ledger.open(store, "one") as other:
        other.handle(forecast(participant="late", at=day(1)), "late")
    assert (rows_read(store, "one", monkeypatch), rows_read(store, "two", monkeypatch)) == (1, 0)


def sealed(body: bytes) -> bytes:
    """A file whose digest is that of its bytes."""
    return _MARK + sha256(body).digest() + body


def forged(data: bytes) -> bytes:
    """A state in which a participant's forecast is another's, with a digest of its own."""
    body = data[len(_MARK) + 32 :]
    assert b"p3" in body
    return sealed(body.replace(b"p3", b"px"))


def of_another_digest(data: bytes) -> bytes:
    """A state that says that the log has another digest at its position."""
    known = kept_state(data, "main", kept_states.code_digest())
    assert known is not None
    known.head = known.head._replace(digest="f" * 64)
    return kept_bytes(known, "main", kept_states.code_digest())


def of_other_code(data: bytes) -> bytes:
    """A state that another version has written."""
    known = kept_state(data, "main", kept_states.code_digest())
    assert known is not None
    return kept_bytes(known, "main", "another")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b" ",
        lambda data: data[:-9] + b"\0" + data[-8:],
        lambda _: b"",
        lambda _: sealed(b"\xc1"),
        lambda _: sealed(b"\x90"),
        of_another_digest,
        of_other_code,
    ],
)
def test_what_is_damaged_or_of_another_version_or_log_is_not_used(
    damage: Callable[[bytes], bytes], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is read, and the state kept anew."""
    path = str(tmp_path / "log.db")
    begin(path)
    [file] = folder.iterdir()
    data = file.read_bytes()
    file.write_bytes(damage(data))
    assert rows_read(path, "main", monkeypatch) == 10
    assert rows_read(path, "main", monkeypatch) == 0


def test_the_state_of_a_log_that_was_replaced_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter or other logs at the same place are read."""
    path = tmp_path / "log.db"
    for count, shift in ((9, "p"), (3, "p"), (9, "q")):
        path.unlink(missing_ok=True)
        with Ledger.open(path, clock=lambda: NOW) as ledger:
            ledger.handle(opened(), "question")
            for number in range(count):
                ledger.handle(forecast(participant=f"{shift}{number}", at=day(1)), f"c{number}")
            with pytest.raises(Refused):
                ledger.handle(opened(), "again")
            assert ledger._known.state.standing_on("rain").keys() == {f"{shift}{number}" for number in range(count)}
        with Ledger.open(path) as again, Ledger.open(path) as other:
            other._kept = None
            assert (again.head(), remembered(again)) == (other.head(), remembered(other))


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no permissions of other users")
def test_a_folder_that_others_can_use_is_not_used(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write there could make a writer believe anything: a forged state has a digest of its own."""
    path = str(tmp_path / "log.db")
    begin(path)
    [file] = folder.iterdir()
    assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(file.stat().st_mode)) == (0o700, 0o600)
    file.write_bytes(forged(file.read_bytes()))
    folder.chmod(0o770)
    assert rows_read(path, "main", monkeypatch) == 10
    folder.chmod(0o700)


def test_what_an_interrupt_left_is_not_kept(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event may be applied in part, so that the state is not that of its position."""
    path = str(tmp_path / "log.db")
    monkeypatch.setattr(kept_states, "LEAST", 99)
    begin(path)
    monkeypatch.setattr(kept_states, "LEAST", 1)
    monkeypatch.setattr(WriterState, "evolve", lambda *_: signal.raise_signal(signal.SIGINT))
    with Ledger.open(path) as ledger, pytest.raises(KeyboardInterrupt):
        ledger.head()
    ledger.close()
    assert [*folder.iterdir()] == []


def test_without_a_folder_the_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that cannot be written to is no error, nor one that there is not."""
    path = str(tmp_path / "log.db")
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    begin(path)
    assert rows_read(path, "main", monkeypatch) == 10


def test_a_state_that_cannot_be_put_in_its_place_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here, a folder has its name; the log is read, as without a state."""
    path = str(tmp_path / "log.db")
    begin(path)
    [state] = folder.iterdir()
    state.unlink()
    state.mkdir()
    assert rows_read(path, "main", monkeypatch) == 10
    assert [*folder.iterdir()] == [state]


def test_states_that_nobody_uses_are_deleted(folder: Path, tmp_path: Path) -> None:
    """After thirty days; others stay."""
    begin(str(tmp_path / "one.db"))
    [old] = folder.iterdir()
    begin(str(tmp_path / "two.db"))
    assert len([*folder.iterdir()]) == 2
    os.utime(old, (1, 1))
    begin(str(tmp_path / "three.db"))
    assert (old.exists(), len([*folder.iterdir()])) == (False, 2)


def test_a_writer_with_segments_reads_them_only_if_no_state_is_kept_from_their_end_on(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kept state is the log's, as without segments; one that ends before the segments is left, and kept again."""
    path, sealed, read = str(tmp_path / "log.db"), tmp_path / "sealed", writer.known_at_end
    ends = list[int]()

    def noted(*given: Any) -> WriterState:
        known = read(*given)
        ends.append(known.head.position)
        return known

    monkeypatch.setattr(writer, "known_at_end", noted)

    def open_again() -> int:
        with Ledger.open(path, clock=lambda: NOW, segments=sealed) as ledger:
            return ledger.head().position

    with Ledger.open(path, clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "c1")
    [state] = folder.iterdir()
    early = state.read_bytes()
    with Ledger.open(path, clock=lambda: NOW) as ledger:
        ledger.handle_many([forecast(participant=f"p{n}", at=day(11), id=f"f{n}") for n in range(5)])
    seal(path, sealed)
    assert (open_again(), ends) == (6, [])
    for data in (early, b"", state.read_bytes()[:-1]):
        state.write_bytes(data)
        assert (open_again(), open_again(), ends) == (6, 6, [6])
        ends.clear()
