"""Tests of an upgrade: a worker that is older, or knows one event less, runs beside one of today, on one store.

One of them is a worker of 0.1.0, from the history of this repository.
"""

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from forecast_ledger.ledger.model.commands import AnyCommand, RequireVersion
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.audit.verify import verify
from tests.support.given import amendment, closing, forecast, opened
from tests.support.paths import ROOT

# The last commit of version 0.1.0, and its packages.
RELEASED, PACKAGES = "ecf15521ad932e8a6e0298cc341df18a8b51e4dc", ("forecast_ledger", "ledger", "projections", "replay")
# It knows all events but one, and is of a version.
KNOWS_LESS = """
from functools import reduce
from operator import or_
from typing import get_args
from forecast_ledger.ledger.model import events
_, _, unknown, version = sys.argv
events.AnyEvent = reduce(or_, [kind for kind in get_args(events.AnyEvent) if kind.__name__ != unknown])
from forecast_ledger.ledger.batching import checks
checks.code_version = lambda: version
"""
# Each line is a command; the answer is a receipt, or what is wrong.
WORKER = """
import json
from forecast_ledger import LedgerError, commands, open as open_ledger
with open_ledger(sys.argv[1]) as ledger:
    for line in sys.stdin:
        try:
            if line == "read\\n":
                answer = {"read": sum(len(page) for page in ledger.read())}
            else:
                receipt = ledger.handle(commands.read(line))
                answer = {"first": receipt.first, "duplicate": receipt.duplicate}
        except LedgerError as error:
            answer = error.to_dict()
        print(json.dumps(answer), flush=True)
"""


class Older:
    """A worker of the version before."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, line: str) -> dict[str, Any]:
        """Send a line, and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def handle(self, command: AnyCommand) -> dict[str, Any]:
        """Send a command, and return the answer."""
        return self.ask(msgspec.json.encode(command).decode())


@contextmanager
def older(location: Path, unknown: str = "", version: str = "0.1.9") -> Iterator[Older]:
    """Start a worker of the version before, which does not know an event; it ends when nothing more is sent."""
    with _worker(ROOT, KNOWS_LESS, str(location), unknown, version) as worker:
        yield worker


@contextmanager
def _worker(root: Path, knows: str, *arguments: str) -> Iterator[Older]:
    """Start a worker with the packages of a folder."""
    call = [sys.executable, "-c", f"import sys{knows}{WORKER}", *arguments]
    with subprocess.Popen(call, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Older(process)
        finally:
            process.terminate()


def test_two_versions_write_one_log_until_the_newer_records_what_the_older_does_not_know(tmp_path: Path) -> None:
    """From then on the older one refuses to read and to write, records nothing, and says that it is to be upgraded."""
    with older(tmp_path / "log.db", "QuestionAmended") as before, Ledger.open(tmp_path / "log.db") as today:
        assert before.handle(opened(id="c1")) == {"first": 1, "duplicate": False}
        assert today.handle(forecast(id="c2")).first == 2
        assert before.handle(forecast(participant="bo", id="c3")) == {"first": 3, "duplicate": False}
        assert today.handle(forecast(participant="bo", id="c3")).duplicate, "a retry may reach the other version"

        assert today.handle(amendment(title="Rain?", id="c4")).first == 4
        late = forecast(participant="cy", at=None, id="c5")
        for answer in (before.handle(late), before.ask("read")):
            assert (answer["error"], answer["position"], answer["remedy"]) == (
                "newer_version", 4, "upgrade this process",
            )  # fmt: skip
        assert before.handle(opened(id="c1")) == {"first": 1, "duplicate": True}, "what it knows it still answers"
        assert today.head().position == 4

    with Ledger.open(tmp_path / "log.db") as upgraded:
        assert upgraded.handle(closing(), "c6").first == 5
        assert [page[-1].position for page in upgraded.read()] == [5]


def test_a_ledger_states_the_least_version_that_may_write(tmp_path: Path) -> None:
    """An older writer is refused at once, also one that has the ledger open; it reads, and answers what is recorded.

    A version that does not know the event is refused like any other that does not know one. The last statement counts.
    """
    log = tmp_path / "log.db"
    with older(log) as before, older(log, "VersionRequired") as oldest, Ledger.open(log) as today:
        assert before.handle(opened(id="c1"))["first"] == oldest.handle(forecast(id="c2"))["first"] - 1 == 1
        assert today.handle(RequireVersion(version="0.2.0", id="c3")).first == 3
        late = forecast(participant="cy", id="c4")
        with older(log) as restarted:
            for worker in (before, oldest, restarted):
                answer = worker.handle(late)
                assert (answer["error"], answer["position"], answer["remedy"]) == (
                    "newer_version", 3, "upgrade this process",
                )  # fmt: skip
        assert before.handle(opened(id="c1")) == {"first": 1, "duplicate": True}
        assert before.ask("read") == {"read": 3}
        assert oldest.ask("read")["error"] == "newer_version"
        assert today.handle(late).first == 4
        assert before.handle(RequireVersion(version="0.1.0", id="c5"))["error"] == "newer_version"
        assert today.handle(RequireVersion(version="0.1.9", id="c5")).first == 5
        assert before.handle(forecast(participant="dan", id="c6"))["first"] == 6
        assert before.handle(RequireVersion(version="0.1.10", id="c7"))["code"] == "version_too_new"


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """Return a folder with the packages of version 0.1.0."""
    packed = subprocess.run(["git", "archive", RELEASED, *PACKAGES], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip("needs the history of the repository, with the last commit of version 0.1.0")
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as files:
        files.extractall(tmp_path / "released", filter="data")
    return tmp_path / "released"


def test_the_released_version_writes_beside_todays_until_the_first_row_of_todays(
    released: Path, tmp_path: Path
) -> None:
    """Version 0.1.0 has no NewerVersion: it calls the row corrupt. It records nothing, and the log is sound."""
    log = tmp_path / "log.db"
    with _worker(released, "", str(log)) as before, Ledger.open(log) as today:
        assert before.handle(opened(id="c1")) == {"first": 1, "duplicate": False}
        assert today.handle(opened(id="c1")).duplicate
        assert before.handle(forecast(id="c2"))["first"] == 2
        assert today.head().position == 2, "today's reads what the released one writes meanwhile"

        assert today.handle(forecast(participant="bo", id="c3")).first == 3
        late = forecast(participant="cy", id="c4")
        for answer in (before.handle(late), before.ask("read")):
            assert (answer["error"], answer["position"]) == ("corrupt", 3)
        assert before.handle(forecast(id="c2")) == {"first": 2, "duplicate": True}
        assert today.handle(late).first == 4
    assert verify(str(log)).position == 4
