"""Signals end a command wherever they arrive."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable

import pytest

from forecast_ledger.replay.cli import signals
from forecast_ledger.replay.cli.shell import report_errors
from forecast_ledger.replay.cli.signals import terminable
from tests.support.waiting import PATIENCE


class Interrupted:
    """An object during whose destruction a signal arrives."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_arrives_in_a_destructor_ends_the_command(
    number: signal.Signals, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python drops what a destructor raises; the command must not go on, and nothing but the reason is printed."""

    def work() -> None:
        Interrupted(number)
        time.sleep(4 * PATIENCE)

    signals.reported.clear()
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # restored at the end of the test
    started = time.monotonic()
    with pytest.raises(SystemExit) as ended:
        report_errors(work)()
    assert time.monotonic() - started < PATIENCE
    assert ended.value.code == 128 + number
    assert capsys.readouterr().err == f"forecast-ledger: stopped by {number.name}\n"
    assert signals.reported.is_set()


@pytest.mark.parametrize("is_reported", [False, True])
def test_a_process_that_does_not_end_by_itself_names_the_signal_once(
    is_reported: bool, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that has named it may still take longer to end than it is given."""
    (signals.reported.set if is_reported else signals.reported.clear)()
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.delitem(sys.modules, "multiprocessing", raising=False)  # processes of other tests are not ended
    told, telling = socket.socketpair()
    with told, telling:
        telling.send(bytes([signal.SIGTERM, signal.SIGTERM]))
        signals._end_process(told)
    assert codes == [128 + signal.SIGTERM]
    assert capfd.readouterr().err == ("" if is_reported else "forecast-ledger: stopped by SIGTERM\n")


class Failing:
    """An object whose destruction fails."""

    def __del__(self) -> None:
        raise ValueError("a destructor's own error")


def test_other_errors_of_destructors_are_reported_as_python_reports_them(capsys: pytest.CaptureFixture[str]) -> None:
    """They end nothing, and are not hidden; the hook before is back afterwards."""
    before: Callable[..., object] = sys.unraisablehook
    with terminable():
        Failing()
    assert "a destructor's own error" in capsys.readouterr().err
    assert sys.unraisablehook is before


class Naming:
    """A descriptor at whose naming a signal arrives, or another error is raised."""

    def __init__(self, raised: signal.Signals | Exception) -> None:
        self.raised = raised

    def __set_name__(self, owner: type, name: str) -> None:
        if isinstance(self.raised, Exception):
            raise self.raised
        signal.raise_signal(self.raised)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_arrives_while_a_class_is_made_ends_the_command(
    number: signal.Signals, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.11 makes a RuntimeError of it; modules that a command imports make many classes."""

    def work() -> None:
        type("Made", (), {"name": Naming(number)})

    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    with pytest.raises(SystemExit) as ended:
        report_errors(work)()
    assert ended.value.code == 128 + number
    assert capsys.readouterr().err == f"forecast-ledger: stopped by {number.name}\n"


def test_other_errors_while_a_class_is_made_are_no_interrupts() -> None:
    """A fault of a program must not look like the end that its user asked for."""
    with pytest.raises((RuntimeError, ValueError), match=r"__set_name__|a fault"), terminable():
        type("Made", (), {"name": Naming(ValueError("a fault"))})
