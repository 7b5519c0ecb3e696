"""Writers, runners and the server are killed, frozen and cut off at random: nothing acknowledged is lost or doubled.

A run takes 4 s for each store, times LONG: LONG=300 is twenty minutes. `python -m tests.system.test_chaos SECONDS SEED`
does one on PostgreSQL, and prints what it counted.
"""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from forecast_ledger.ledger.core.errors import LedgerError
from forecast_ledger.ledger.model.commands import OpenContest, OpenQuestion, SubmitForecast
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.readmodel.runner import check_model
from forecast_ledger.replay.readmodel.runners import Runners
from forecast_ledger.replay.writing.store import Store, open_ledger
from tests.support import servers
from tests.support.cutting import Proxy, proxied
from tests.support.effort import LONG
from tests.support.processes import forking
from tests.support.waiting import PATIENCE, wait_until

SECONDS = 4 * LONG
LEDGERS = ("north", "south")
WRITERS = 4
PAUSE = 0.02 / LONG  # s, between two commands of a writer: a short run leaves the processors to other tests
OPENING = OpenQuestion(
    id="open", question="rain", kind="binary", opens_at="2026-03-01T00:00:00Z", closes_at="2126-03-01T00:00:00Z"
)


def write(location: str, folder: str, writer: int) -> None:
    """Send commands until the file `stop` is there, each until it is acknowledged; go on after the last one noted.

    A line of the writer's file has the number and the log position of a command that was acknowledged.
    """
    noted = Path(folder, f"writer-{writer}")
    noted.touch()
    number = len(noted.read_bytes().splitlines())
    with noted.open("ab", buffering=0) as file:
        while True:
            try:
                with Store.open(location, connect=2, turn=3, statement=1) as store:
                    ledger = store.ledger(LEDGERS[writer % len(LEDGERS)])
                    while True:
                        said = SubmitForecast(question="rain", participant=f"p{writer}", probability=_said(number))
                        receipt = ledger.handle(said, f"{writer}.{number}")
                        file.write(f"{number} {receipt.last} {receipt.duplicate:d}\n".encode())
                        number += 1
                        time.sleep(PAUSE)
                        if Path(folder, "stop").exists():  # nothing is left that may have been recorded
                            return
            except LedgerError as error:
                if not error.retryable:
                    raise
                with Path(folder, "errors").open("a", encoding="utf-8") as errors:
                    errors.write(f"{error.kind}\n")
                time.sleep(0.02)


def run(location: str, folder: str) -> None:
    """Keep the boards of all ledgers until the process is ended; begin again while the store is away."""
    while True:
        with suppress(LedgerError), Runners(location, f"{folder}/{{name}}.db") as runners:
            runners.follow(lambda *_: None, lambda *_: None)
        time.sleep(0.2)


def _said(number: int) -> str:
    return f"0.{10 + number % 80}"


class Members:
    """The processes of a run. A member that was killed is started again."""

    def __init__(self, targets: dict[str, tuple[Callable[..., None], tuple[Any, ...]]]) -> None:
        self._targets, self._context = targets, forking(__name__)
        self.processes: dict[str, Any] = {}

    def start(self, name: str) -> None:
        """Start a member, after its process has ended."""
        function, arguments = self._targets[name]
        self.processes[name] = process = self._context.Process(target=function, args=arguments)
        process.start()

    def kill(self, name: str) -> None:
        """Kill a member at once."""
        self.processes[name].kill()
        self.processes[name].join(PATIENCE)

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """Let a member hang."""
        os.kill(self.processes[name].pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.processes[name].pid, signal.SIGCONT)

    def close(self) -> None:
        """Kill all."""
        for name in self.processes:
            self.kill(name)


class Counts(NamedTuple):
    """What a run did: troubles by name, errors that writers saw by kind, acknowledged commands, retries among them."""

    troubles: Counter[str]
    errors: Counter[str]
    acknowledged: int
    retried: int


def chaos(location: str, folder: Path, seconds: float, seed: int, url: str = "") -> Counts:
    """Run writers and runners, and do them harm; check what is left.

    location: of the store. url: of the server, if there is one, which the location leads to through a proxy.
    """
    random, troubles = Random(seed), Counter[str]()
    with Store.open(url or location) as store:
        for name in LEDGERS:
            store.ledger(name).handle(OpenContest(contest="main", rules="baseline"), "contest")
            store.ledger(name).handle(OPENING)
    with ExitStack() as stack:
        proxy = stack.enter_context(proxied(url)) if url else None
        through = proxy.url if proxy else location
        targets = {f"writer {number}": (write, (through, str(folder), number)) for number in range(WRITERS)}
        members = Members({**targets, "runners": (run, (through, str(folder)))})
        stack.callback(members.close)
        for name in members._targets:
            members.start(name)
        until = time.monotonic() + seconds
        while time.monotonic() < until or (time.monotonic() < until + PATIENCE and not _is_enough(folder, troubles)):
            time.sleep(random.uniform(0.05, 0.6))
            troubles[_trouble(random, members, proxy, url)] += 1
        (folder / "stop").touch()
        for name in targets:
            members.processes[name].join(PATIENCE)
            assert members.processes[name].exitcode == 0, name
        _until_fresh(url or location, folder)
    if proxy:
        troubles["cut after COMMIT"] = proxy.cut
    return _checked(url or location, folder, troubles)


def _is_enough(folder: Path, troubles: Counter[str]) -> bool:
    """Return whether as much has happened as a run is to show; on a busy machine, that takes longer."""
    acknowledged = sum(len(noted.read_bytes().splitlines()) for noted in folder.glob("writer-*"))
    return acknowledged > SECONDS and troubles.total() > SECONDS // 2


def _trouble(random: Random, members: Members, proxy: Proxy | None, url: str) -> str:
    """Make one, end it, and return its name."""
    member, length = random.choice([*members.processes]), random.uniform(0.1, 2)
    kinds = ["kill", "kill", "freeze"]
    if proxy:
        kinds += ["cut after COMMIT"] * 4 + ["cut all"] * 2 + ["freeze server", "restart server"]
    match kind := random.choice(kinds):
        case "kill":
            members.kill(member)
            members.start(member)
        case "freeze":
            with members.frozen(member):
                time.sleep(length)
        case "cut after COMMIT" if proxy:
            proxy.cut_next_commit()
        case "cut all" if proxy:
            proxy.cut_all()
        case "freeze server":
            with servers.frozen(url):
                time.sleep(length)
        case _:
            with servers.stopped(url, "immediate"):
                time.sleep(length / 4)
    return f"{kind} {member.partition(' ')[0]}" if kind in {"kill", "freeze"} else kind


def _until_fresh(location: str, folder: Path) -> None:
    """Wait until the boards have every event."""
    with Runners(location, f"{folder}/{{name}}.db") as runners:
        wait_until(lambda: all(runners._reached(name, head) is not None for name, head in runners._store.heads()))


def _checked(location: str, folder: Path, troubles: Counter[str]) -> Counts:
    """Compare what was acknowledged with the logs, and the boards with a rebuild."""
    count = retried = 0
    recorded: dict[str, list[int]] = {}
    for name in LEDGERS:
        with open_ledger(location, name) as ledger:
            for row in (row for page in ledger.read() for row in page):
                recorded.setdefault(row.command_id, []).append(row.position)
            assert verify(location, name).position == ledger.head().position
        assert check_model(Log(location, name), str(folder / f"{name}.db")).total == 0
    for writer in range(WRITERS):
        lines = [[*map(int, line.split())] for line in (folder / f"writer-{writer}").read_bytes().splitlines()]
        assert [number for number, *_ in lines] == [*range(len(lines))]
        positions = [position for _, position, _ in lines]
        assert positions == sorted({*positions})  # in the order in which they were sent
        assert [recorded.pop(f"{writer}.{number}") for number in range(len(lines))] == [[each] for each in positions]
        count, retried = count + len(lines), retried + sum(duplicate for *_, duplicate in lines)
    assert {*recorded} == {"contest", "open"}  # nothing else was recorded
    errors = folder / "errors"
    return Counts(troubles, Counter(errors.read_text().split() if errors.exists() else ()), count, retried)


@pytest.mark.parametrize("kind", ["file", "server"])
def test_nothing_is_lost_or_doubled_whatever_happens(kind: str, tmp_path: Path) -> None:
    """Acknowledged commands are in the log once, in their order, and boards equal a rebuild."""
    if kind == "server" and not servers.PG_CTL:
        pytest.skip("needs a PostgreSQL server's pg_ctl, which is not installed here")
    with servers.postgres() if kind == "server" else nullcontext("") as url:
        counts = chaos(str(tmp_path / "log.db"), tmp_path, SECONDS, LONG, url)
    assert counts.acknowledged > SECONDS
    assert counts.troubles.total() > SECONDS // 2


if __name__ == "__main__":
    with TemporaryDirectory() as name, servers.postgres() as server:
        print(chaos("", Path(name), float(sys.argv[1]), int(sys.argv[2]), server))  # noqa: T201
