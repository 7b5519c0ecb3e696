"""Sampling: which instants of a question's period count: every instant, the end of each day, or one instant.

Time is counted in units from the opening, 0, 1, 2 …: microseconds, days, or the single instant. A forecast that stands
on [start, end) stands from the unit of `start` to just before the unit of `end`. So every sampling uses the same code.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import DAY
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array

_MINUTE = 60 * 10**6


class Ruler(NamedTuple):
    """The period of each question, µs, shape (q,), and how it is cut into days.

    until: when scored time ends. spot: the single instant that counts, where only one does. east: µs by which the days
    are ahead of UTC. edges: the field `day_edges` of the rule set, which says whether a first or last day counts that
    the opening or the end cuts short.
    """

    opens: Int64Array
    until: Int64Array
    spot: Int64Array
    east: int
    edges: str

    def first_day(self, question: Int64Array) -> Int64Array:
        """Return the number of each question's first day that counts, from the epoch."""
        day, into = np.divmod(self.opens[question] + self.east, DAY)
        first: Int64Array = day + (into > 0) if self.edges == "none" else day
        return first


class Sampling(NamedTuple):
    """One sampling.

    words: as `explain` prints them. units: returns the units of instants in [opens, until], by question. instants:
    returns the instants at which units begin; of the unit after the last one, the instant at which the last one ends.
    """

    words: str
    units: Callable[[Ruler, Int64Array, Int64Array], Int64Array]
    instants: Callable[[Ruler, Int64Array, Int64Array], Int64Array]
    source: str


def ruler(opens: Int64Array, until: Int64Array, spot: Int64Array, rules: RuleSet) -> Ruler:
    """Return the ruler for the days of a rule set."""
    return Ruler(opens, until, spot, rules.day_minutes * _MINUTE, rules.day_edges)


def _micros(periods: Ruler, at: Int64Array, question: Int64Array) -> Int64Array:
    return at - periods.opens[question]


def _micros_at(periods: Ruler, unit: Int64Array, question: Int64Array) -> Int64Array:
    return periods.opens[question] + unit


def _days(periods: Ruler, at: Int64Array, question: Int64Array) -> Int64Array:
    """A day counts with the forecast that stands at its end, or when scored time ends if that day counts too."""
    days: Int64Array = (at + periods.east) // DAY - periods.first_day(question)
    if periods.edges == "both":
        days += (at >= periods.until[question]) & ((at + periods.east) % DAY > 0)  # the day on which scored time ends
    return days if periods.edges != "none" else np.maximum(days, 0)


def _days_at(periods: Ruler, unit: Int64Array, question: Int64Array) -> Int64Array:
    midnight = (periods.first_day(question) + unit) * DAY - periods.east
    within: Int64Array = np.clip(midnight, periods.opens[question], periods.until[question])
    return within


def _spot(periods: Ruler, at: Int64Array, question: Int64Array) -> Int64Array:
    """A forecast counts if it stands at the instant or, if scored time ends by then, at its end."""
    return (at >= _tick(periods, question)).astype(np.int64)


def _spot_at(periods: Ruler, unit: Int64Array, question: Int64Array) -> Int64Array:
    at: Int64Array = _tick(periods, question) - (unit == 0)
    return at


def _tick(periods: Ruler, question: Int64Array) -> Int64Array:
    """Return the first instant after the one that counts."""
    ticks: Int64Array = np.minimum(periods.spot + 1, periods.until)[question]
    return ticks


SAMPLINGS: dict[str, Sampling] = {
    "time": Sampling(
        "weighted by the time in µs that each forecast stands",
        _micros,
        _micros_at,
        'Metaculus, Scores FAQ, "Do all my predictions on a question count toward my score?"',
    ),
    "day": Sampling(
        "counted at the end of each day",
        _days,
        _days_at,
        'Cultivate Labs, Forecasts, support article "Why didn\'t I receive a score in a question I forecasted?": full '
        "days only; the other edges are those of the platforms that carry forecasts forward by date",
    ),
    "spot": Sampling(
        "counted at one instant",
        _spot,
        _spot_at,
        "Metaculus's published code, spot scores",
    ),
}
