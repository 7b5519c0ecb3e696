"""Tests of the version that a ledger requires of its writers."""

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching import checks
from forecast_ledger.ledger.core.errors import Corrupt, NewerVersion, Refused
from forecast_ledger.ledger.deciding.decider import decide, evolve
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import NOW, forecast, given, micros, opened, requirement


def test_a_requirement_is_recorded_whatever_the_program() -> None:
    """A decision is the same in every version of the program, so that an older one can audit it."""
    event = events.VersionRequired(at=micros(2), version="99.1rc1")
    assert decide(requirement("99.1rc1"), State(), NOW) == (event,)
    given().when(requirement("v1")).refuses("malformed", "version")
    with pytest.raises(Corrupt, match="which is none"):
        evolve(structs.replace(event, version="v1"), State(), 7)


@pytest.mark.parametrize(
    ("own", "stated", "code"),
    [
        ("0.10.0", "0.9", ""),
        ("0.9", "0.9.0", ""),
        ("0.9", "0.10.0", "version_too_new"),
        ("unknown", "0.9", "version_too_new"),
    ],
)
def test_a_program_states_no_version_that_is_newer_than_its_own(
    own: str, stated: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would lock itself out."""
    monkeypatch.setattr(checks, "code_version", lambda: own)
    with Ledger.open(":memory:") as ledger:
        [outcome] = ledger.handle_many([structs.replace(requirement(stated), id="c1")])
        assert (outcome.code if isinstance(outcome, Refused) else "") == code


def test_a_batch_after_the_requirement_is_not_decided_by_an_older_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the row that requires the version, and nothing is recorded."""
    with Ledger.open(":memory:") as ledger:
        ledger.handle_many([opened(id="c1"), requirement("0.2.0", id="c2")])
        monkeypatch.setattr(checks, "code_version", lambda: "0.2.0rc1")
        with pytest.raises(NewerVersion, match=r"of version 0\.2\.0 or newer, and this process is 0\.2\.0rc1") as newer:
            ledger.handle_many([forecast(id="c3"), forecast(participant="bo", id="c4")])
        assert (newer.value.position, ledger.head().position) == (2, 2)
