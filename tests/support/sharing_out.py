"""How a run of all tests is shared out among processes: a file at a time, with few messages and no searches."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class Files(LoadFileScheduling):  # type: ignore[misc] # without types
    """A process is given the tests of the next file when it has two left.

    The class that this one extends searches all tests for each one, and counts those of all files after each one, which
    takes seconds.
    """

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Keep the tests that a process has found."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = _Places(collection)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a test that has ended, and give the process more if it has little left."""
        super().mark_test_complete(node, item_index, duration)
        test, files = self.registered_collections[node][item_index], self.assigned_work[node]
        file = self._split_scope(test)
        del files[file][test]
        if not files[file]:
            del files[file]


class _Places(list[str]):
    """The names of tests, with the place of each."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._places = {name: place for place, name in enumerate(names)}

    def index(self, name: str, *_: object) -> int:
        return self._places[name]


class Receiver:
    """A plugin of the process that prints: a report of a `Sender` may say that its test has ended, too."""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Tell xdist what a message of its own would."""
        if hasattr(report, "ended"):
            session: Any = report.node.config.pluginmanager.getplugin("dsession")
            session.worker_runtest_protocol_complete(report.node, report.item_index, report.duration)


class Sender:
    """Send what happened to the process that prints it, in one message for a test that passed.

    That a test began or ended, or that nothing went wrong before or after it, is not sent by itself: nobody is told of
    it, but to send and read it takes longer than most tests. The keywords of a test that passed are not printed either.
    """

    def __init__(self, send: Callable[..., None]) -> None:
        self._send = send
        self._passed: dict[str, Any] | None = None  # the report of a test that has not ended

    def __call__(self, name: str, **details: Any) -> None:
        """Send an event, unless it is one of those."""
        report = details.get("data", {})
        passed = name == "testreport" and report["outcome"] == "passed"
        if name in {"logstart", "logfinish"} or (passed and report["when"] != "call" and not report["sections"]):
            return
        waiting, self._passed = self._passed, None
        if passed and report["when"] == "call":
            self._passed = report | {"keywords": {}}
        elif waiting and name == "runtest_protocol_complete":
            self._send("testreport", data=waiting | {"ended": True})
        else:
            if waiting:
                self._send("testreport", data=waiting)
            self._send(name, **details)
