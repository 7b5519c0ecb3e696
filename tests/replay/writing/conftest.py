"""Fixtures of the tests of appending files."""

from collections.abc import Iterator

import pytest

from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import DAY, NOW


@pytest.fixture
def two_ledgers() -> Iterator[tuple[Ledger, Ledger]]:
    """Two empty ledgers with the same clock."""
    with (
        Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as one,
        Ledger.open(":memory:", clock=lambda: NOW + 99 * DAY) as two,
    ):
        yield one, two
