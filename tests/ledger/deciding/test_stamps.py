"""Tests of commands without `at`, which the ledger stamps with the instant at which it records them."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.auditing.audit import Audit
from forecast_ledger.ledger.batching.forecasts import ForecastColumns
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.commands import AnyCommand, SubmitForecast, read
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import given
from tests.support.forging import audited, chained
from tests.support.given import day, micros
from tests.support.servers import PG_CTL, postgres

NOON = micros(13, 12)


def recorded(*batches: Sequence[AnyCommand], clock: int = NOON) -> list[Any]:
    """The rows of batches of commands, each a second after the one before."""
    ticks = count(clock, 10**6)
    with Ledger.open(":memory:", clock=ticks.__next__) as ledger:
        for batch in batches:
            for outcome in ledger.handle_many(batch):
                assert not isinstance(outcome, Refused), str(outcome)
        return [row for page in ledger.read() for row in page]


def numbered(*commands: AnyCommand) -> list[AnyCommand]:
    """The same commands, each with an id."""
    return [structs.replace(command, id=f"n{place}") for place, command in enumerate(commands)]


@pytest.mark.parametrize("number", ["0.7", 0.7, "0.1234567891"])
def test_a_command_without_an_instant_claims_that_of_its_recording(number: Any) -> None:
    """Also if it goes the quick way of forecasts."""
    rows = recorded(numbered(given.opened(at=None)), [given.forecast(at=None, probability=number, id="f")])
    assert [(row.recorded_at, row.event.at) for row in rows] == [(NOON, NOON), (NOON + 10**6, NOON + 10**6)]
    assert audited(rows).is_cut is False


def test_a_retry_without_an_instant_is_the_same_command_and_one_with_an_instant_is_not() -> None:
    """The digest of the command has no instant."""
    bare, dated = given.forecast(at=None), given.forecast(at=format_instant(NOON))
    with Ledger.open(":memory:", clock=count(NOON, 10**6).__next__) as ledger:
        ledger.handle(given.opened(), "o")
        first = ledger.handle(bare, "f")
        assert ledger.handle(bare, "f") == structs.replace(first, duplicate=True)
        with pytest.raises(Refused, match="command_id_reused"):
            ledger.handle(dated, "f")
        with pytest.raises(Refused, match="command_id_reused"):
            ledger.handle(given.forecast(at=None, probability="0.71"), "f")


def test_every_way_in_records_the_same_row() -> None:
    """A command, a line of JSON, and columns without instants, one by one or many at once."""
    line = {"id": "f", "type": "submit_forecast", "question": "rain", "participant": "ada", "probability": "0.7"}
    asked = {"id": ["f"], "question": ["rain"], "participant": ["ada"], "probability": ["0.7"]}
    ways: list[Any] = [
        [given.forecast(at=None, id="f")],
        [read(json.dumps(line))],
        [read(json.dumps(line | {"at": None}))],
        ForecastColumns(**asked),
        ForecastColumns(**asked, at=[None]),
    ]
    assert len({tuple(row.digest for row in recorded(numbered(given.opened()), way)) for way in ways}) == 1


def test_columns_are_stamped_anew_in_each_turn() -> None:
    """The columns stay as they are: a batch that has to be decided again gets the instant of its own turn."""
    columns = ForecastColumns(id=["f"], question=["rain"], participant=["ada"], probability=["0.7"])
    ends = [recorded(numbered(given.opened()), columns, clock=clock)[-1] for clock in (NOON, NOON + 60)]
    assert [row.event.at for row in ends] == [NOON + 10**6, NOON + 60 + 10**6]


FUTURE = day(14)
LATER_FACTS: dict[str, tuple[list[AnyCommand], AnyCommand, int]] = {
    "forecast": ([given.opened(), given.forecast(at=FUTURE)], given.forecast(at=None), micros(14)),
    "withdrawal": ([given.opened(), given.forecast(at=FUTURE)], given.withdrawal(at=None), micros(14)),
    "forecast after a withdrawal": (
        [given.opened(), given.forecast(), given.withdrawal(at=FUTURE)],
        given.forecast(at=None),
        micros(14),
    ),
    "outcomes": (
        [given.choices(), given.forecast("colour", at=FUTURE, probabilities={"red": 1, "green": 0, "blue": 0})],
        given.removal("red", at=None),
        micros(14),
    ),
    "outcomes again": (
        [given.choices(), given.addition(at=day(11), grace_ends_at=FUTURE)],
        given.removal("red", at=None),
        micros(14),
    ),
    "forecast after a change": (
        [given.choices(), given.removal("red", at=FUTURE)],
        given.forecast("colour", at=None, probabilities={"green": 1, "blue": 0}),
        micros(14),
    ),
    "answer": ([given.opened(), given.resolution(at=day(25))], given.revocation(at=None), NOON + 10**6),
}


@pytest.mark.parametrize("name", LATER_FACTS)
def test_a_stamped_command_is_not_refused_because_an_earlier_one_claims_a_later_instant(name: str) -> None:
    """It takes that instant if the order of its subject needs it, and the log verifies."""
    before, command, at = LATER_FACTS[name]
    rows = recorded(numbered(*before), [structs.replace(command, id="stamped")])
    assert rows[-1].event.at == at
    audited(rows)


def test_the_instant_of_a_stamped_command_is_that_of_its_row() -> None:
    """A withdrawal whose instant was changed, in a log whose digests are all right, is found with its position."""
    rows = recorded(numbered(given.opened(), given.forecast()), [structs.replace(given.withdrawal(at=None), id="w")])
    changed = structs.replace(rows[-1], event=structs.replace(rows[-1].event, at=rows[-1].event.at - 1))
    with pytest.raises(Corrupt, match="expected at 2026-03-13T12:00:01Z") as caught:
        audited(chained([*rows[:-1], changed]))
    assert caught.value.position == 3


def test_a_time_of_receipt_is_the_instant_of_an_imported_command_that_has_none() -> None:
    """A history that has only times of receipt needs no column of instants."""
    with Ledger.open(":memory:", clock=lambda: NOON) as ledger:
        made = numbered(given.opened(at=None), given.forecast(at=None))
        ledger.handle_many(made, recorded_at=[micros(9), micros(11)])
        assert [row.event.at for page in ledger.read() for row in page] == [micros(9), micros(11)]


def honest(first: Ledger, second: Ledger) -> Counter[str]:
    """The outcomes of 200 forecasts of one participant, by four threads of two ledgers on one store."""
    outcomes: Counter[str] = Counter()

    def send(ledger: Ledger, thread: int) -> None:
        for number in range(50):
            try:
                ledger.handle(
                    SubmitForecast(question="rain", participant="ada", probability="0.5"), f"{thread}-{number}"
                )
                outcomes["recorded"] += 1
            except Refused as refused:
                outcomes[refused.code] += 1

    now = time.time_ns() // 1_000
    opens, closes = format_instant(now - given.DAY), format_instant(now + given.DAY)
    first.handle(given.opened(at=None, opens_at=opens, closes_at=closes), "open")
    threads = [
        threading.Thread(target=send, args=each) for each in zip((first, second, first, second), range(4), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def opened_twice(make: Callable[[], Ledger]) -> Counter[str]:
    """The outcomes with two ledgers on one store, whose log is then audited."""
    with make() as first, make() as second:
        outcomes = honest(first, second)
        for _ in Audit().pages(first.read(), cut=False):
            pass
        return outcomes


def test_forecasts_of_threads_are_never_out_of_order_in_sqlite(tmp_path: Path) -> None:
    """The instant is that of the writer's turn."""
    assert opened_twice(lambda: Ledger.open(tmp_path / "season.db")) == {"recorded": 200}


@pytest.mark.skipif(not PG_CTL, reason="needs a PostgreSQL server")
def test_forecasts_of_threads_are_never_out_of_order_in_postgresql() -> None:
    """The instant is that of the writer's turn."""
    with postgres() as url:
        assert opened_twice(lambda: Ledger.open(url)) == {"recorded": 200}
