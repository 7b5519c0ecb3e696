"""A forecast that is recorded long after the instant it claims counts from its recording, if the rules say so."""

from fractions import Fraction

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.rules import RuleSet
from tests.support import oracle
from tests.support.given import contest, entry, forecast, opened, resolution, withdrawal

HOUR = 3_600 * 10**6
OPENS = 0
RULES = RuleSet(name="x", kernel="brier", reference="none", period="covered", total="mean", least_probability_ppm=0)


def at(hours: float) -> str:
    """An instant so many hours after the opening."""
    return format_instant(OPENS + int(hours * HOUR))


def coverage(rules: RuleSet, *said: tuple[float, float, str]) -> Fraction:
    """The share of ten hours that ada's forecasts cover. said: hours claimed and recorded, and the probability."""
    asked = opened(at=at(0), opens_at=at(0), closes_at=at(10)), contest(at=at(0), rules=rules), entry(at=at(0))
    made = [
        forecast(probability=chance, at=at(claimed)) if chance else withdrawal(at=at(claimed))
        for claimed, _, chance in said
    ]
    hours = [0, 0, 0, *(hour for _, hour, _ in said), 20]
    instants = [OPENS + int(hour * HOUR) for hour in hours]
    tables = oracle.projected(*asked, *made, resolution(at=at(11), known_at=at(10)), at=instants)
    rows = [row for row in tables.table("scores").rows() if row["participant"] == "ada"]
    return sum((Fraction(row["coverage"]) for row in rows), Fraction(0))


@pytest.mark.parametrize(
    ("minutes", "recorded", "tenths"), [(60, 2, 9), (60, 2.0001, 8), (0, 1, 9), (0, 3, 7), (10**10, 9, 9), (60, 15, 0)]
)
def test_a_forecast_counts_from_its_recording_once_it_is_later_than_the_limit(
    minutes: int, recorded: float, tenths: int
) -> None:
    """It claims hour 1 of ten: at the limit it counts as claimed; beyond, when recorded; after the close, never."""
    covered = coverage(structs.replace(RULES, late_minutes=minutes), (1, recorded, "0.7"))
    assert round(covered * 1_000) == tenths * 100


def test_a_late_forecast_never_counts_if_a_newer_one_was_in_time() -> None:
    """The first claims hour 1, and is recorded at 6; the second claims 5.5, is recorded at 6.1, and replaces it."""
    rules = structs.replace(RULES, late_minutes=60)
    assert coverage(rules, (1, 6, "0.7"), (5.5, 6.1, "0.9")) == Fraction(45, 100)


def test_a_late_withdrawal_counts_from_its_recording() -> None:
    """It claims hour 2, and is recorded at 5: the forecast of hour 1 covers four hours of ten."""
    rules = structs.replace(RULES, late_minutes=60)
    assert coverage(rules, (1, 1, "0.7"), (2, 5, "")) == Fraction(4, 10)
