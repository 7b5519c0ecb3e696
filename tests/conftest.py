"""Settings of pytest and Hypothesis that take code, and what makes a run of all tests quick."""

import atexit
import gc
import logging
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from shutil import disk_usage
from typing import Any

import pytest

from tests.support.effort import LONG, times
from tests.support.servers import postgres

# The tests start hundreds of Python processes, which would each compile our modules again. The folders __pycache__ are
# written even where PYTHONDONTWRITEBYTECODE asks for none.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Files of tests are in memory where there is room: a test that records waits for the disk at every commit. TMPDIR or
# --basetemp name another place.
MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30  # noqa: S108 - pytest makes folders there that only the user can read
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and disk_usage(MEMORY).free >= ROOM:
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None

# What writers keep of logs is not to be found in the home of whoever runs the tests.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="ledger-states-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# A script's background job ignores interrupts, and so would the processes that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # not threads in each of hundreds of processes


class _Read(logging.Handler):
    """Make the message of each record, so that one that cannot be made is an error.

    While the root logger has a handler, commands that run in this process do not configure logging for good.
    """

    def emit(self, record: logging.LogRecord) -> None:
        record.getMessage()


logging.getLogger().addHandler(_Read())


class _Examples:
    """A plugin, because a hook of this file would be called for files of this folder alone."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Look for doctests only in files that have some; the search visits every object of a module."""
        found = yield
        return found if b">>> " in file_path.read_bytes() else [each for each in found if type(each) is pytest.Module]


def pytest_configure(config: pytest.Config) -> None:
    """Prepare a process that runs tests, or the one that prints what others run."""
    config.pluginmanager.register(_Examples())
    if config.getoption("dist", "no") != "no":  # this process runs no tests, and does without Hypothesis
        config.pluginmanager.register(import_module("tests.support.sharing_out").Receiver())
        return
    hypothesis = import_module("hypothesis")
    # A loaded machine may take longer for an example than another, and stand still while one is made. A short run has
    # the same examples everywhere, so that it does not fail by chance; a long one looks for others.
    hypothesis.settings.register_profile(
        "any machine",
        deadline=None,
        max_examples=times(100),
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        derandomize=LONG == 1,
    )
    hypothesis.settings.load_profile("any machine")
    if config.option.durations is None:
        for worker in (each for each in config.pluginmanager.get_plugins() if hasattr(each, "sendevent")):
            worker.sendevent = import_module("tests.support.sharing_out").Sender(worker.sendevent)
    _import_tests(config)


def _import_tests(config: pytest.Config) -> None:
    """Make a worker compile its share of the test modules first, so that it finds the others compiled.

    Every worker imports all test modules, because it collects all tests. Each begins at another one of them.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers == 1 or config.args != config.getini("testpaths"):
        return
    names = [".".join(path.with_suffix("").parts) for path in sorted(Path("tests").rglob("test_*.py"))]
    first = len(names) * int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")) // workers
    with warnings.catch_warnings(action="error"):
        for name in [*names[first:], *names[:first]]:  # the collection imports what failed again, and reports it
            with suppress(Exception, pytest.skip.Exception):
                import_module(name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share out files by our own class, which takes less time."""
    if config.getoption("dist") != "loadfile":
        return None
    return import_module("tests.support.sharing_out").Files(config, log)


class _Writer:
    """In the place of what prints reports: a process that sends them prints none, but failures are formatted for it."""

    def __init__(self, reporter: Any) -> None:
        self._tw = reporter._tw


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let a worker print nothing, which goes nowhere."""
    manager = session.config.pluginmanager
    reporter = manager.get_plugin("terminalreporter")
    if reporter and hasattr(session.config, "workerinput"):
        manager.unregister(reporter)
        manager.register(_Writer(reporter), "terminalreporter")


def pytest_collection(session: pytest.Session) -> None:
    """Collect without looking for garbage: hardly any of the objects that are made is."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what was collected, millions of objects, out of all later searches for garbage, also as Python ends.

    The searches are fewer than Python's, which take a twentieth of the time of all tests.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave what tests kept out of the ten searches with which pytest ends."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server of PostgreSQL for all tests of a module."""
    with postgres() as url:
        yield url


@pytest.fixture
def little_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals and sets of ranks are given with any number of clusters and rare answers: small contests show how."""
    from forecast_ledger.projections.studies import grounds, rank_sets  # noqa: PLC0415 - conftest comes before all else

    for module in (grounds, rank_sets):
        monkeypatch.setattr(module, "LEAST_CLUSTERS", 1)
    monkeypatch.setattr(grounds, "LEAST_OUTCOMES", 0)
    monkeypatch.setattr(grounds, "LEAST_HEAVY", {})


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of calibration draws 39 times, not 999: for tests of what changes a row, whatever its numbers are."""
    from forecast_ledger.projections.tables import calibration  # noqa: PLC0415 - conftest comes before all else

    monkeypatch.setattr(calibration, "TEST_REPLICATES", 39)
