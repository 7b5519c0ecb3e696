"""The limit of this process for integers and texts does not decide what a log says."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.events import DecisionMalformed
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.audit.verify import verify
from forecast_ledger.replay.importing.json_files import read_json_text
from tests.support.given import replied, trading_floor
from tests.support.logs import written

LEAST = 640  # digits: Python allows no lower limit
READ = "import sys; from forecast_ledger import commands; print(sys.get_int_max_str_digits())"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The limit of this process is set back."""
    before = sys.get_int_max_str_digits()
    yield
    sys.set_int_max_str_digits(before)


@pytest.mark.parametrize(("given", "then"), [("640", "4300"), ("4299", "4300"), ("4301", "4301"), ("0", "0")])
def test_a_limit_below_pythons_default_is_raised_to_it(given: str, then: str) -> None:
    """As commands are imported; a higher one, or none, stays as the user set it."""
    program = [sys.executable, "-c", READ]
    environment = os.environ | {"PYTHONINTMAXSTRDIGITS": given}
    assert subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout.strip() == then


def fault_of(path: str) -> str:
    """Return the fault of the last decision of a log."""
    with Ledger.open(path) as ledger:
        *_, page = ledger.read()
        assert isinstance(page[-1].event, DecisionMalformed)
        return page[-1].event.fault


@pytest.mark.parametrize(("digits", "fault"), [(4_300, "bad_amount"), (4_301, "unreadable")])
def test_a_reply_with_a_long_number_has_one_meaning(tmp_path: Path, digits: int, fault: str) -> None:
    """It is a number, too large for an amount, up to the digits that Python reads by default; beyond, no JSON."""
    reply = '{"action": "BET", "bets": [{"market_id": "rain", "side": "YES", "amount": %s}], "reasoning": "."}'
    asked = [*trading_floor(), replied(reply % ("7" * digits))]
    path = written(tmp_path / "by_default.db", asked)
    assert fault_of(path) == fault
    head = verify(path)
    sys.set_int_max_str_digits(LEAST)
    limited = written(tmp_path / "limited.db", asked)
    sys.set_int_max_str_digits(LEAST)
    assert fault_of(limited) == fault
    for read in (path, limited):
        sys.set_int_max_str_digits(LEAST)
        assert verify(read) == head


@pytest.mark.parametrize("limit", [0, 4_300, 100_000])
def test_an_integer_of_a_source_has_at_most_the_digits_of_pythons_default(limit: int) -> None:
    """JSON that is imported is refused alike where the process allows more."""
    sys.set_int_max_str_digits(limit)
    assert read_json_text(f"[-{'7' * 4_300}]", "a.json") == [-7 * (10**4_300 - 1) // 9]
    with pytest.raises(Refused, match="an integer has 4,301 digits; at most 4,300 are read"):
        read_json_text(f"[-{'7' * 4_301}]", "a.json")
