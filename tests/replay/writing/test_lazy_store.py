"""A ledger that is started by the first command it accepts."""

import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused, Unavailable
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.cli.main import FINDINGS, FINE, USAGE, main
from forecast_ledger.replay.writing.provisional_stores import open_lazily as to_append
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.support.given import forecast, opened
from tests.support.logs import rows
from tests.support.paths import ROOT

COMMANDS = ROOT / "data" / "metaculus-2022" / "commands.jsonl"


def heard(ledger: Ledger, *commands: AnyCommand) -> list[str | int]:
    """The log position of each command, or the code of its refusal."""
    outcomes = ledger.handle_many(commands)
    return [each.code if isinstance(each, Refused) else each.first for each in outcomes]


@pytest.mark.parametrize("options", [[], ["--atomic"]], ids=["each", "atomic"])
@pytest.mark.parametrize("given", [b"no JSON\n" * 35, COMMANDS.read_bytes().splitlines()[-1], b"\n"])
def test_a_file_of_which_nothing_is_accepted_starts_no_ledger(tmp_path: Path, given: bytes, options: list[str]) -> None:
    """Unreadable lines, refused commands or an empty file create no file at all."""
    result = CliRunner().invoke(main, ["append", str(tmp_path / "log.db"), "-", "--format", "csv", *options], given)
    assert result.exit_code == (FINDINGS if given.strip() else FINE)
    assert result.stdout.splitlines()[1].split(",")[3] == "0"
    assert not list(tmp_path.iterdir())


def test_the_first_command_that_is_accepted_starts_it(tmp_path: Path) -> None:
    """Any batch may have it; then the ledger is like any other, and a second process can append to it."""
    path = str(tmp_path / "log.db")
    with to_append(path, "main", prizes_from_log) as ledger:
        assert heard(ledger, forecast(id="f1")) == ["unknown_question"]
        assert not list(tmp_path.iterdir())
        assert heard(ledger, opened("rain", id="q1"), forecast("rain", id="f1")) == [1, 2]
        assert ledger.head().position == len(rows(path)) == 2
    with to_append(path, "main", prizes_from_log) as ledger:
        assert ledger.handle(opened("rain", id="q1")) == Receipt("q1", 1, 1, duplicate=True)


def test_one_that_somebody_else_has_started_meanwhile_is_gone_on_with(tmp_path: Path) -> None:
    """Neither loses a row; and a refusal stands against what the other has recorded."""
    path = str(tmp_path / "log.db")
    with to_append(path, "main", prizes_from_log) as ledger, to_append(path, "main", prizes_from_log) as second:
        assert (ledger.head().position, second.head().position) == (0, 0)
        assert heard(ledger, opened("rain", id="q1")) == [1]
        assert heard(second, opened("rain", id="q2"), forecast("rain", id="f1")) == ["duplicate_question", 2]
        assert heard(ledger, forecast("rain", id="f2")) == [3]
    assert len(rows(path)) == 3


def test_many_that_start_it_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each records its command, once."""
    path, together = str(tmp_path / "log.db"), threading.Barrier(6)

    def start(number: int) -> None:
        with to_append(path, "main", prizes_from_log) as ledger:
            together.wait()
            ledger.handle(opened(f"q{number}", id=f"c{number}"))

    threads = [threading.Thread(target=start, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Ledger.open(path) as ledger:
        assert {each.command_id for page in ledger.read() for each in page} == {f"c{number}" for number in range(6)}


def test_where_none_can_be_started_it_is_said_at_once(tmp_path: Path) -> None:
    """Not with the first command that is accepted."""
    with pytest.raises(Unavailable, match=r"the folder .* does not exist"):
        to_append(str(tmp_path / "no" / "log.db"), "main", prizes_from_log)
    with pytest.raises(Refused, match="id_empty"):
        to_append(str(tmp_path / "log.db"), "", prizes_from_log)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--atomic"]], ids=["append", "dry run", "atomic"])
def test_a_file_in_another_encoding_is_told_once(tmp_path: Path, encoding: str, options: list[str]) -> None:
    """The request is refused in one line, not each line of the file; no ledger is started."""
    given = COMMANDS.read_text(encoding="utf-8").encode(encoding)
    result = CliRunner().invoke(main, ["append", str(tmp_path / "log.db"), "-", *options], given)
    assert (result.exit_code, result.stdout) == (USAGE, "")
    [line] = result.stderr.splitlines()
    assert line.endswith("the file looks like UTF-16 or UTF-32, not UTF-8; save it as UTF-8")
    assert not list(tmp_path.iterdir())
