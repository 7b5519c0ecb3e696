"""A store that has ledgers, and none of the name that is asked for: every reader says so, and names those it has."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import forecast_ledger
from forecast_ledger import Checkpoint, Runner, Unavailable, audit, explain, export, replay, report, seal, verify
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.replay.cli.main import FINE, UNREADABLE, main
from tests.support.given import contest
from tests.support.servers import PG_CTL, postgres

READERS: dict[str, Callable[[str, str, Path], object]] = {
    "replay": lambda log, name, _: replay(log, name),
    "engine": lambda log, name, _: replay(log, name, engine="local"),
    "verify": lambda log, name, _: verify(log, name),
    "Runner": lambda log, name, out: Runner(log, out / "tables.db", name),
    "export": lambda log, name, out: export(log, out / "tables", "csv", name),
    "report": lambda log, name, out: report(log, out / "page.html", name=name),
    "audit": lambda log, name, out: audit(log, out / "paper.html", name=name),
    "seal": lambda log, name, out: seal(log, out / "segments", name),
    "explain": lambda log, name, _: explain(log, "score", "cup", "rain", "ada", name=name),
    "store": lambda log, name, _: StoredLog.open(log, name, read_only=True),
}
COMMANDS = ("verify", "replay", "log", "checkpoint", "export", "follow", "seal")


@pytest.fixture(scope="module", params=["file", "server"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store with two ledgers."""
    if request.param == "server":
        if not PG_CTL:
            pytest.skip("needs a PostgreSQL server's pg_ctl, which is not installed here")
        with postgres() as url:
            yield begun(url)
    else:
        yield begun(str(tmp_path_factory.mktemp("store") / "ledgers.db"))


def begun(location: str) -> str:
    """Begin two ledgers in a store."""
    for name in ("spring", "autumn"):
        with forecast_ledger.open(location, name) as ledger:
            ledger.handle(contest(), command_id="c")
    return location


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_names_the_ledgers_that_there_are(store: str, reader: str, tmp_path: Path) -> None:
    """It leaves nothing behind; a mistyped name was read as a ledger without events."""
    with pytest.raises(Unavailable, match=r"there is no ledger named 'sprang'; there is 'autumn', 'spring'$"):
        READERS[reader](store, "sprang", tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_the_ledgers_of_a_store_are_listed(store: str) -> None:
    """Each with the number of its events, its last digest and when that row was recorded."""
    found = CliRunner().invoke(main, ["ledgers", store, "--format", "json"])
    expected = []
    for name in ("autumn", "spring"):
        with forecast_ledger.open(store, name) as ledger:
            [[row]] = ledger.read()
            at = format_instant(row.recorded_at)
            expected.append({"name": name, "events": 1, "digest": ledger.head().digest, "recorded_at": at})
    assert (found.exit_code, json.loads(found.stdout)) == (FINE, expected), found.stderr
    assert "2 ledgers" in found.stderr


def test_a_folder_of_segments_has_one_ledger_and_a_file_that_is_not_there_none(tmp_path: Path) -> None:
    """The ledger of a folder is listed whatever its name is, and nothing is created."""
    log = begun(str(tmp_path / "log.db"))
    seal(log, tmp_path / "segments", "spring")
    found = CliRunner().invoke(main, ["ledgers", str(tmp_path / "segments"), "--format", "json"])
    assert [(each["name"], each["events"]) for each in json.loads(found.stdout)] == [("spring", 1)]
    assert CliRunner().invoke(main, ["ledgers", str(tmp_path / "none.db")]).exit_code == UNREADABLE
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_the_ledgers_that_there_are(store: str, command: str, tmp_path: Path) -> None:
    """It ends with the exit code of a log that cannot be read."""
    outputs = {"export": ["--format", "csv"], "follow": ["--once"]}
    out = [str(tmp_path / "out")] if command in {"export", "follow", "seal"} else []
    result = CliRunner().invoke(main, [command, store, *out, *outputs.get(command, []), "--name", "sprang"])
    assert (result.exit_code, "no ledger named 'sprang'; there is 'autumn', 'spring'" in result.stderr) == (
        UNREADABLE,
        True,
    )


def test_a_writer_begins_a_ledger_of_a_new_name(store: str) -> None:
    """It is there once it has an event; a trial run on a name that is not there yet is fine."""
    with forecast_ledger.open(store, "winter") as ledger:
        assert ledger.head() == Checkpoint(0, "0" * 64)
        with pytest.raises(Unavailable, match=r"no ledger named 'winter'"):
            replay(store, "winter")
    lines = '{"id": "c", "type": "open_contest", "at": "2026-03-01T00:00:00Z", "contest": "cup", "rules": "baseline"}\n'
    asked = ["append", store, "-", "--name", "summer", "--dry-run"]
    assert CliRunner().invoke(main, asked, input=lines).exit_code == FINE


def test_a_store_without_ledgers_is_an_empty_ledger_of_any_name(tmp_path: Path) -> None:
    """A service that has begun nothing yet has tables without rows; a name cannot be wrong there."""
    with forecast_ledger.open(tmp_path / "new.db"):
        pass
    assert replay(tmp_path / "new.db", "any").checkpoint.position == 0


def test_at_most_ten_names_are_listed(tmp_path: Path) -> None:
    """A store may have thousands; they are in order, and the rest is an ellipsis."""
    for number in range(12):
        with forecast_ledger.open(tmp_path / "many.db", f"week {number:02}") as ledger:
            ledger.handle(contest(), command_id="c")
    with pytest.raises(Unavailable) as caught:
        replay(tmp_path / "many.db")
    names = ", ".join(f"'week {number:02}'" for number in range(10))
    assert str(caught.value).endswith(f"there is no ledger named 'main'; there is {names}, …")
