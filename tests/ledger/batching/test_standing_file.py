"""What stands on resolved questions is in a temporary file, and comes back when a resolution is revoked."""

import random
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching import writer_state
from forecast_ledger.ledger.batching.writer_state import StandingFile
from forecast_ledger.ledger.core.errors import Refused, Unavailable
from forecast_ledger.ledger.deciding.state import StandingOf, State
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import (
    DAY,
    NOW,
    annulment,
    day,
    forecast,
    opened,
    remembered,
    resolution,
    revocation,
    withdrawal,
)


@pytest.fixture(params=[0, 2**20], ids=["in a file", "in memory"], autouse=True)
def _threshold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file begins in memory; both are tried."""
    monkeypatch.setattr(writer_state, "IN_MEMORY", request.param or 1)


def test_what_is_written_is_read() -> None:
    """Each question has a place of its own; who changes what was read does not change the file."""
    file = StandingFile()
    tables: list[StandingOf] = [{}, {"ada": -(2**63), "eve": (1, 2**63 - 1)}, {"é" * 50: (1, 2), "bob": (3, 3)}]
    places = [file.unload(table) for table in tables]
    places[1].load()["eve"] = (0, 0)
    assert [place.load() for place in places] == tables
    file.close()


@pytest.mark.parametrize("seed", range(4))
def test_a_writer_decides_as_one_that_keeps_all_in_memory(seed: int) -> None:
    """After every step of random histories in which questions are resolved, revoked and resolved again."""
    dice, names = random.Random(seed), ("rain", "snow")
    with Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as ledger, Ledger.open(":memory:") as plain:
        plain._clock = ledger._clock
        plain._known.state.unload = State().unload
        for number in range(60):
            name, who = dice.choice(names), dice.choice(("ada", "bob"))
            command: Any = dice.choice(
                [
                    opened(question=name),
                    forecast(question=name, participant=who, at=day(dice.randrange(1, 4))),
                    withdrawal(question=name, participant=who, at=day(dice.randrange(1, 4))),
                    resolution(question=name),
                    annulment(question=name),
                    revocation(question=name),
                ]
            )
            outcomes = []
            for one in (ledger, plain):
                try:
                    outcomes.append(str(one.handle(command, f"c{number}")))
                except Refused as refused:
                    outcomes.append(str(refused))
            assert outcomes[0] == outcomes[1]
            assert remembered(ledger) == remembered(plain)
        settled = [name for name, question in ledger._known.state.questions.items() if question.settled]
        assert all(not isinstance(ledger._known.state.standing[name], dict) for name in settled)


def test_a_batch_that_is_taken_back_has_its_forecasts_again() -> None:
    """The resolution in it is undone, and the forecast of before stands."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "c1")
        ledger.handle(forecast(participant="ada", at=day(1)), "c2")
        before = remembered(ledger)
        commands: list[Any] = [
            resolution(id="c3"),
            structs.replace(revocation(), id="c4"),
            forecast(participant="bob", at=day(2), id="c5"),
        ]
        refused = ledger.handle_many([*commands, opened(id="c6")], atomic=True)
        assert all(isinstance(outcome, Refused) for outcome in refused)
        assert remembered(ledger) == before


def test_a_full_temporary_folder_is_reported_and_nothing_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The remedy is in the message; with space, the command is accepted."""

    class Full:
        def seek(self, *_: int) -> int:
            return 0

        def write(self, _: bytes) -> int:
            raise OSError(28, "No space left on device")

    with Ledger.open(tmp_path / "log.db", clock=lambda: NOW) as ledger:
        ledger.handle(opened(), "c1")
        ledger.handle(forecast(participant="ada", at=day(1)), "c2")
        before = remembered(ledger)
        file = ledger._known.standing_file
        with monkeypatch.context() as patched:
            patched.setattr(file, "_file", Full())
            with pytest.raises(Unavailable, match="No space left on device; set TMPDIR to a folder that has space"):
                ledger.handle(resolution(), "c3")
        assert remembered(ledger) == before
        assert ledger.handle(resolution(), "c3").last == 3
