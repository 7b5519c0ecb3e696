"""A runner that reads from segments what its read model has already."""

from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Absent, Corrupt, Unavailable
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.replay.cli.main import FINE, USAGE
from forecast_ledger.replay.files.export import seal
from forecast_ledger.replay.reading.log import Log
from forecast_ledger.replay.readmodel.runner import Runner, check_model
from tests.replay.cli.test_main import run
from tests.replay.readmodel.test_runner import PER_FORECAST, assert_up_to_date, crashing, record
from tests.support import oracle
from tests.support.exports import export_commands
from tests.support.given import opened
from tests.support.logs import written

pytestmark = pytest.mark.usefixtures("quickly_sealed")


@pytest.fixture(scope="module")
def history() -> list[Recorded]:
    """Stories of forecasting and trading, of which the last events change what was said before."""
    return oracle.attempted(export_commands())[0]


@pytest.mark.parametrize(("sealed", "followed"), [(60, 60), (60, 100), (100, 1)])
def test_it_goes_on_as_from_the_log(history: list[Recorded], tmp_path: Path, sealed: int, followed: int) -> None:
    """Whether the segments end before, where or after the read model does; each refresh equals a rebuild."""
    log, model, folder = str(tmp_path / "log.db"), str(tmp_path / "tables.db"), tmp_path / "s"
    record(log, history[: min(sealed, followed)])
    if sealed <= followed:
        seal(log, folder, rows=40)
    else:
        with Runner(log, model, optional=PER_FORECAST) as runner:
            runner.refresh()
    record(log, history[min(sealed, followed) : max(sealed, followed)])
    if sealed <= followed:
        with Runner(log, model, optional=PER_FORECAST) as runner:
            runner.refresh()
    else:
        seal(log, folder, rows=40)
    seen: list[int] = []
    with Runner(log, model, on_progress=seen.append, segments=folder) as runner:
        assert seen[-1] == min(sealed, followed)
        assert runner.refresh().reached.position == max(sealed, followed)
        assert_up_to_date(model, history[: max(sealed, followed)])
        for end in (max(sealed, followed) + 1, len(history) - 30, len(history)):
            record(log, history[runner.refresh().reached.position : end])
            runner.refresh()
        assert_up_to_date(model, history)


@pytest.mark.parametrize("sealed", [1, 60])
def test_a_new_read_model_starts_from_segments(history: list[Recorded], tmp_path: Path, sealed: int) -> None:
    """Tables and log index are those that the log gives, then and after each refresh; a failed one is made up for."""
    log, model = str(tmp_path / "log.db"), str(tmp_path / "tables.db")
    record(log, history[:sealed])
    seal(log, tmp_path / "s", rows=40)
    record(log, history[sealed:-2])
    with Runner(log, model, segments=tmp_path / "s", optional=PER_FORECAST) as runner:
        crashing(runner._model, 3)
        with pytest.raises(RuntimeError, match="crashed"):
            runner.refresh()
        vars(runner._model._stored).pop("_write_batch")
        assert runner.refresh().events == len(history) - 2
        assert_up_to_date(model, history[:-2])
        assert check_model(Log(log), model).drifts == []
        record(log, history[-2:])
        assert runner.refresh().events == 2
    assert_up_to_date(model, history)
    assert check_model(Log(log), model).drifts == []


def test_segments_that_do_not_fit_are_refused(history: list[Recorded], tmp_path: Path) -> None:
    """Of another log, ahead of it, damaged, or not there; the read model stays as it was, and can be followed."""
    log, model = str(tmp_path / "log.db"), str(tmp_path / "tables.db")
    record(log, history[:60])
    with Runner(log, model) as runner:
        runner.refresh()
    other, longer = written(tmp_path / "other.db", [opened(id="x")]), str(tmp_path / "longer.db")
    record(longer, history)
    seal(other, tmp_path / "other")
    seal(longer, tmp_path / "longer")
    seal(log, tmp_path / "damaged")
    file = next((tmp_path / "damaged").glob("*.others.parquet"))
    file.write_bytes(file.read_bytes()[:-1])
    for folder, error in (("other", Unavailable), ("longer", Unavailable), ("damaged", Corrupt), ("none", Absent)):
        with pytest.raises(error):
            Runner(log, model, segments=tmp_path / folder)
    with Runner(log, model) as runner:
        runner.refresh()
    assert_up_to_date(model, history[:60])


def test_follow_takes_a_folder(history: list[Recorded], tmp_path: Path) -> None:
    """`--check` compares with the log, and takes none."""
    log, model, folder = str(tmp_path / "log.db"), str(tmp_path / "tables.db"), str(tmp_path / "s")
    record(log, history[:60])
    seal(log, folder)
    assert run("follow", log, model, "--once").exit_code == FINE
    record(log, history[60:])
    found = run("follow", log, model, "--once", "--segments", folder)
    assert (found.exit_code, f"{len(history) - 60} events" in found.stderr) == (FINE, True)
    assert run("follow", log, model, "--check", "--segments", folder).exit_code == USAGE
    assert_up_to_date(model, history)
