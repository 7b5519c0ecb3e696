"""From commands to a log, and from a log to its rows and the printed rows of its tables."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, OpenContest, read
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.storing.stored_log import StoredLog
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import oracle
from tests.support.effort import LONG
from tests.support.given import NOW
from tests.support.oracle import Instants, events_of
from tests.support.paths import DATA

STORIES = sorted(path.parent.name for path in DATA.glob("*/commands.jsonl"))
SOME = "arena-week autocast-2022 changed-outcomes exchange-fees hub-scores metaculus-2022 moved-times question-groups"
VARIED = STORIES if LONG > 1 else SOME.split()  # what any story has, these have between them
REPLICATES = 39  # of a contest whose samples are few


def commands_of(story: str) -> list[AnyCommand]:
    """The commands of a worked example; portfolios are valued every sixth hour, not every ten minutes."""
    return [_opened(read(line)) for line in (DATA / story / "commands.jsonl").read_bytes().splitlines()]


def light(command: AnyCommand) -> AnyCommand:
    """The command; a contest that it opens draws few samples, so that its tables are built in a fraction of the time.

    It is another command than the one in the file of a story: a log that has one refuses the other.
    """
    return _opened(command, replicates=REPLICATES)


def _opened(command: AnyCommand, **fields: Any) -> AnyCommand:
    if not isinstance(command, OpenContest):
        return command
    rules = PRESETS[command.rules] if isinstance(command.rules, str) else command.rules
    assert isinstance(rules, RuleSet)
    if rules.trading is not None:
        fields |= {"trading": structs.replace(rules.trading, snapshot_seconds=6 * 3_600)}
    return structs.replace(command, rules=structs.replace(rules, **fields)) if fields else command


def written(
    path: Path | str, commands: Iterable[AnyCommand], name: str = "main", *, at: Instants = NOW, refused: bool = False
) -> str:
    """The path of a log that holds what these commands lead to; one without an id gets its number.

    at: when they are recorded. refused: whether some may be refused, but not all.
    """
    with _told(path, commands, name, at, refused=refused):
        return str(path)


def recorded(commands: Iterable[AnyCommand], *, at: Instants = NOW, refused: bool = False) -> list[Recorded]:
    """The events of such a log, in memory."""
    with _told(":memory:", commands, "main", at, refused=refused) as ledger:
        return events_of(ledger)


@contextmanager
def _told(
    path: Path | str, commands: Iterable[AnyCommand], name: str, at: Instants, *, refused: bool
) -> Iterator[Ledger]:
    told = [each if each.id else structs.replace(each, id=f"c{number}") for number, each in enumerate(commands)]
    with oracle.telling(path, told, at, name) as (ledger, refusals):
        assert len(refusals) < len(told) if refused else not refusals, refusals
        yield ledger


def log_fixture(
    commands: Iterable[AnyCommand] | Callable[[], Iterable[AnyCommand]],
    scope: Literal["function", "module", "session"] = "function",
    then: Callable[[str], Any] = str,
    **how: Any,
) -> Any:
    """A fixture: the path of a log of these commands, written anew for each test, module or run.

    commands: or a function that makes them when the log is written. then: what is made of the path.
    """

    def path(tmp_path_factory: pytest.TempPathFactory) -> Any:
        told = commands() if callable(commands) else commands
        return then(written(tmp_path_factory.mktemp("log") / "log.db", told, **how))

    def own_path(tmp_path: Path) -> Any:
        told = commands() if callable(commands) else commands
        return then(written(tmp_path / "log.db", told, **how))

    return pytest.fixture(own_path if scope == "function" else path, scope=scope)


def rows(location: str, name: str = "main") -> list[bytes]:
    """Every row of a log, byte for byte."""
    store = StoredLog.open(location, name, read_only=True)
    try:
        return [row for page in store.pages() for row in page]
    finally:
        store.close()


def printed(table: str, *commands: AnyCommand, **where: Any) -> list[dict[str, Any]]:
    """The printed rows of a table of what these commands lead to; where: only those with these values."""
    found = oracle.projected(*commands).table(table).rows()
    return [row for row in found if where.items() <= row.items()]
