"""The service of the guide for backends runs as it is printed there, and loses nothing when it is killed."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.readmodel.runner import check_model
from forecast_ledger.replay.writing.store import open_ledger
from tests.support.page_runner import blocks, command_folder
from tests.support.paths import ROOT
from tests.support.servers import PG_CTL, postgres
from tests.support.waiting import PATIENCE

PAGE = (ROOT / "docs" / "backend.md").read_text(encoding="utf-8")
[FILE] = [block.text for block in blocks(PAGE) if block.name == "service.py"]
FOLDER, SERVICE, BOARDS = re.findall(r"(?m)^    \$ (.*)$", PAGE)
MOST_LINES = 40
CLIENTS = 8
OPENING = {"type": "open_question", "question": "rain", "kind": "binary", "opens_at": "2026-03-01T00:00:00Z"}
OPENING |= {"closes_at": "2126-03-01T00:00:00Z"}


class Answer(NamedTuple):
    """The status of an answer, its type, and its JSON; the text, if it has another type."""

    status: int
    type: str
    content: Any


class Service(NamedTuple):
    """Where the service is, and where its store."""

    port: int
    folder: Path
    location: str

    def ask(self, method: str, path: str, body: Any = None, who: str = "ada", key: str = "") -> Answer:
        """Send a request. Raises OSError and HTTPException: there is no answer."""
        headers = {"Authorization": f"Bearer token-of-{who}"} | ({"Idempotency-Key": key} if key else {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            kind, text = response.headers["Content-Type"], response.read()
        finally:
            connection.close()
        return Answer(response.status, kind, json.loads(text) if "json" in kind else text.decode())

    def ask_until_answered(self, method: str, path: str, body: Any = None, who: str = "ada", key: str = "") -> Answer:
        """Send a request again, as a client does, until there is an answer that is not 503."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with suppress(OSError, http.client.HTTPException):
                answer = self.ask(method, path, body, who, key)
                if answer.status != 503:
                    return answer
            time.sleep(0.05)
        printed = (self.folder / "printed").read_text(encoding="utf-8", errors="replace")
        raise AssertionError(f"{method} {path} is not answered; the processes printed {printed[-4000:]}")

    def command(self, key: str, **command: Any) -> Answer:
        """Send a command as the organiser."""
        return self.ask_until_answered("POST", "/spring/commands", command, "the-organiser", key)

    def forecast(self, who: str, key: str, probability: str) -> Answer:
        """Send a forecast as a participant."""
        said = {"type": "submit_forecast", "question": "rain", "probability": probability}
        return self.ask_until_answered("POST", "/spring/commands", said, who, key)

    @contextmanager
    def running(self, command: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a command of the page; kill it in the end, with its workers."""
        arguments = ["bash", "-c", f"exec {command.replace('8080', str(self.port))}"]
        paths = {
            name: os.pathsep.join([str(first), *filter(None, [os.environ.get(name)])])
            for name, first in (("PATH", self.folder / "bin"), ("PYTHONPATH", ROOT))
        }
        environment = os.environ | {"LEDGERS": self.location} | paths
        with (self.folder / "printed").open("ab") as printed:
            process = subprocess.Popen(
                arguments, cwd=self.folder, env=environment, stdout=printed, stderr=printed, start_new_session=True
            )
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @contextmanager
    def started(self, command: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a command when the service is ready."""
        assert self.ask_until_answered("GET", "/ready").content == {"ready": True}
        with self.running(command) as process:
            yield process


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """The file of the page in a folder, and a store, on a server if there is one."""
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    (tmp_path / "service.py").write_text(FILE, encoding="utf-8")
    command_folder(tmp_path / "bin")
    subprocess.run(FOLDER.split(), cwd=tmp_path, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if PG_CTL:
        with postgres() as url:
            yield Service(port, tmp_path, url)
    else:
        yield Service(port, tmp_path, str(tmp_path / "ledgers.db"))


def workers(supervisor: int) -> list[int]:
    """The processes that uvicorn has started to answer requests."""
    shown = subprocess.check_output(["ps", "-ww", "-o", "pid=,args=", "--ppid", str(supervisor)], text=True)
    return [int(line.split()[0]) for line in shown.splitlines() if "spawn_main" in line]


def test_the_glue_of_a_service_is_short() -> None:
    """Lines of the file that are neither empty nor imports."""
    lines = [line for line in FILE.splitlines() if line and not line.startswith(("import ", "from "))]
    assert len(lines) < MOST_LINES


def test_a_service_answers_as_the_guide_says_and_loses_nothing(service: Service) -> None:
    """Requests of every kind; then clients that send while processes are killed; then a start from what is there."""
    with service.running(SERVICE) as serving, service.started(BOARDS) as boards:
        _answers(service)
        acknowledged = dict[str, int]()
        with ThreadPoolExecutor(CLIENTS) as pool:
            sent = [pool.submit(_send, service, client) for client in range(CLIENTS)]
            time.sleep(0.3)
            [first, _] = workers(serving.pid)
            os.kill(first, signal.SIGKILL)
            boards.kill()
            for client in sent:
                acknowledged |= client.result()
    with service.running(SERVICE), service.started(BOARDS):
        for key, position in list(acknowledged.items())[::40]:
            assert service.forecast("bo", key, _probability(key)).content == {"log_position": position}
        last = service.command("resolve", type="resolve_question", question="rain", outcome="yes").content
        board = service.ask_until_answered("GET", f"/spring/boards/main?at_least={last['log_position']}").content
        assert sorted(row["participant"] for row in board) == ["ada", "bo"]
    with open_ledger(service.location, "spring") as ledger:
        recorded = [(row.command_id, row.position) for page in ledger.read() for row in page]
    assert [(f"from bo: {key}", at) for key, at in sorted(acknowledged.items(), key=lambda item: item[1])] == [
        each for each in recorded if each[0].startswith("from bo: ")
    ]
    assert check_model(Log(service.location, "spring"), str(service.folder / "boards" / "spring.db")).total == 0


def _answers(service: Service) -> None:
    """Every row of the page's table of answers."""
    for key, command in {
        "open": OPENING,
        "contest": {"type": "open_contest", "contest": "main", "rules": "baseline"},
        "add": {"type": "add_question", "contest": "main", "question": "rain"},
    }.items():
        assert service.command(key, **command).status == 201
    answer = Answer(201, "application/json", {"log_position": 4})
    assert [service.forecast("ada", "r1", "0.8"), service.forecast("ada", "r1", "0.8")] == [answer] * 2
    for refused, code, pointer in (
        (service.forecast("ada", "r1", "0.7"), "command_id_reused", "/id"),
        (service.forecast("ada", "r2", "1.7"), "out_of_range", "/probability"),
        (service.ask("POST", "/spring/commands", OPENING, "ada", "r3"), "malformed", "/type"),
    ):
        assert (refused.status, refused.type) == (422, "application/problem+json")
        content = refused.content
        assert (content["status"], content["code"], content.get("pointer")) == (422, code, pointer)
        assert content["title"]
        assert content["remedy"]
    said = {"type": "submit_forecast", "question": "rain", "probability": "0.5"}
    assert service.ask("POST", "/spring/commands", said, "ada").status == 400
    assert service.ask("POST", "/spring/commands", said, "nobody", "r4").status == 401
    board = service.ask_until_answered("GET", "/spring/boards/main?at_least=4")
    assert (board.status, board.type) == (200, "application/json")
    late = service.ask("GET", "/spring/boards/main?at_least=99")
    assert (late.status, late.content["retryable"]) == (503, True)
    assert late.content["title"].startswith("the tables are behind the log")


def _probability(key: str) -> str:
    return f"0.{10 + int(key.rpartition('-')[2]) % 80}"


def _send(service: Service, client: int) -> dict[str, int]:
    """Send commands one after another, each until it is acknowledged; return the log position of each."""
    keys = [f"client {client}-{number}" for number in range(20)]
    answers = {key: service.forecast("bo", key, _probability(key)) for key in keys}
    assert {answer.status for answer in answers.values()} == {201}
    return {key: answer.content["log_position"] for key, answer in answers.items()}
