"""Levels that are expanded for few clusters, compared with tables and with integrals."""

from decimal import Decimal
from functools import cache
from math import gamma, pi, sqrt, tan
from statistics import NormalDist

import pytest

from forecast_ledger.projections.studies.expansion import MOST_DEGREES, expanded_level, normal_share, student_edge

STEPS = 4_000


def height(edge: float, degrees: int) -> float:
    """Return the density of Student's t, twice: that of its size."""
    whole = 2 * gamma((degrees + 1) / 2) / gamma(degrees / 2) / sqrt(degrees * pi)
    return whole * float((1 + edge**2 / degrees) ** (-(degrees + 1) / 2))


def share(edge: float, degrees: int) -> float:
    """Return the share of Student's t within -edge and edge, by Simpson's rule."""
    width, power = edge / STEPS, -(degrees + 1) / 2
    heights: list[float] = [(1 + (number * width) ** 2 / degrees) ** power for number in range(STEPS + 1)]
    whole = heights[0] + heights[-1] + 4 * sum(heights[1::2]) + 2 * sum(heights[2:-1:2])
    return height(0, degrees) * whole * width / 3


@cache
def expanded(level: float, clusters: int, strata: int) -> float:
    """Return the expanded level by its definition, with the quantile by Newton's method.

    The steps stay below the quantile, because the density falls.
    """
    degrees = max(clusters - strata, 1)
    edge, step = 0.0, 1.0
    while step > 1e-12 * edge:
        step = (level - share(edge, degrees)) / height(edge, degrees)
        edge += step
    return 2 * NormalDist().cdf(edge * sqrt((degrees + strata) / degrees)) - 1


@pytest.mark.parametrize(
    ("level", "degrees", "edge"),
    [
        ("0.95", 1, "12.706"),
        ("0.95", 2, "4.303"),
        ("0.95", 9, "2.262"),
        ("0.95", 19, "2.093"),
        ("0.95", 100, "1.984"),
        ("0.90", 4, "2.132"),
        ("0.90", 30, "1.697"),
        ("0.98", 13, "2.650"),
        ("0.99", 8, "3.355"),
        ("0.998", 5, "5.893"),
    ],
)
def test_quantiles_are_those_of_the_printed_tables(level: str, degrees: int, edge: str) -> None:
    """NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2, critical values of Student's t."""
    assert round(student_edge(Decimal(level), degrees), 3) == Decimal(edge)


def test_a_far_quantile_takes_few_terms() -> None:
    """With one degree of freedom it is tan(π level / 2), here 636.6; a series in t² alone has ten million terms."""
    assert float(student_edge(Decimal("0.999"), 1)) == pytest.approx(tan(pi * 0.4995), rel=1e-9)
    assert expanded_level(999_000, 2) == 10**6


def test_the_normal_share_is_that_of_the_printed_tables() -> None:
    """Abramowitz and Stegun (1964), table 26.1: P(x) = 0.97724 98680 51821 at 2, 0.84134 47460 68543 at 1."""
    for edge, below in ((1, "0.841344746068543"), (2, "0.977249868051821")):
        assert abs(normal_share(Decimal(edge)) - (2 * Decimal(below) - 1)) < Decimal("2e-15")


@pytest.mark.parametrize("clusters", [5, 20, 21, 50, 150])
@pytest.mark.parametrize("strata", [1, 3])
@pytest.mark.parametrize("level", [800_000, 950_000])
def test_levels_are_those_of_the_definition(clusters: int, strata: int, level: int) -> None:
    """To a millionth, rounded up."""
    assert expanded_level(level, clusters, strata) == pytest.approx(
        1e6 * expanded(level / 1e6, clusters, strata), abs=1
    )
    assert expanded_level(level, clusters, strata) > 1e6 * expanded(level / 1e6, clusters, strata) - 1e-3


def test_more_clusters_than_most_change_no_level() -> None:
    """With fewer the level is higher, down to one degree of freedom."""
    levels = [expanded_level(950_000, clusters) for clusters in (2, 20, 200, MOST_DEGREES + 1, 10 * MOST_DEGREES)]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == levels[-2] > 950_000
    assert expanded_level(950_000, 3, 3) == expanded_level(950_000, 4, 3)
