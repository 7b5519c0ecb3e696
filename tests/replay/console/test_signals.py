"""Signals end a command wherever they arrive."""

import signal
import sys
import time
from collections.abc import Callable

import pytest

from forecast_ledger.replay.console.shell import report_errors
from forecast_ledger.replay.console.signals import terminable


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
        time.sleep(30)

    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # restored at the end of the test
    started = time.monotonic()
    with pytest.raises(SystemExit) as ended:
        report_errors(work)()
    assert time.monotonic() - started < 10
    assert ended.value.code == 128 + number
    assert capsys.readouterr().err == f"forecast-ledger: stopped by {number.name}\n"


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
