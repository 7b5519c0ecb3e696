"""Which instants of a question's period count: all of them, the end of each day, or one.

Time is counted in units from the opening, 0, 1, 2 …: µs, days, or the one instant. A forecast that stands on [start,
end) stands for the units from that of `start` to before that of `end`; so one machinery serves every sampling.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import DAY
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array

_MINUTE = 60 * 10**6


class Ruler(NamedTuple):
    """The period of each question, µs, shape (q,); `east`, µs: how far east of UTC its days are.

    until: when scored time ends. spot: the one instant, where only one counts. edges: which of the days count that the
    opening or the end cuts short, as in a rule set.
    """

    opens: Int64Array
    until: Int64Array
    spot: Int64Array
    east: int
    edges: str

    def first_day(self, question: Int64Array) -> Int64Array:
        """The number of each question's first day that counts, from the epoch."""
        day, into = np.divmod(self.opens[question] + self.east, DAY)
        first: Int64Array = day + (into > 0) if self.edges == "none" else day
        return first


class Sampling(NamedTuple):
    """words: as a rule set is explained. units: of instants in [opens, until], by question. instants: where units
    begin, or for the last, end.
    """

    words: str
    units: Callable[[Ruler, Int64Array, Int64Array], Int64Array]
    instants: Callable[[Ruler, Int64Array, Int64Array], Int64Array]
    source: str


def ruler(opens: Int64Array, until: Int64Array, spot: Int64Array, rules: RuleSet) -> Ruler:
    """A ruler of a rule set's days."""
    return Ruler(opens, until, spot, rules.day_minutes * _MINUTE, rules.day_edges)


def _micros(of: Ruler, at: Int64Array, question: Int64Array) -> Int64Array:
    return at - of.opens[question]


def _micros_at(of: Ruler, unit: Int64Array, question: Int64Array) -> Int64Array:
    return of.opens[question] + unit


def _days(of: Ruler, at: Int64Array, question: Int64Array) -> Int64Array:
    """A day counts with the forecast that stands as it ends, or, where that day counts, as scored time ends on it."""
    days: Int64Array = (at + of.east) // DAY - of.first_day(question)
    if of.edges == "both":
        days += (at >= of.until[question]) & ((at + of.east) % DAY > 0)  # the day on which scored time ends
    return days if of.edges != "none" else np.maximum(days, 0)


def _days_at(of: Ruler, unit: Int64Array, question: Int64Array) -> Int64Array:
    midnight = (of.first_day(question) + unit) * DAY - of.east
    within: Int64Array = np.clip(midnight, of.opens[question], of.until[question])
    return within


def _spot(of: Ruler, at: Int64Array, question: Int64Array) -> Int64Array:
    """A forecast counts if it stands at the instant; at or after the end of scored time, if it stands as that ends."""
    return (at >= _tick(of, question)).astype(np.int64)


def _spot_at(of: Ruler, unit: Int64Array, question: Int64Array) -> Int64Array:
    at: Int64Array = _tick(of, question) - (unit == 0)
    return at


def _tick(of: Ruler, question: Int64Array) -> Int64Array:
    """The first instant after the one that counts."""
    ticks: Int64Array = np.minimum(of.spot + 1, of.until)[question]
    return ticks


SAMPLINGS: dict[str, Sampling] = {
    "time": Sampling(
        "times the µs it stands",
        _micros,
        _micros_at,
        'Metaculus, Scores FAQ, "Do all my predictions on a question count toward my score?"',
    ),
    "day": Sampling(
        "on each day",
        _days,
        _days_at,
        'Cultivate Labs, Forecasts, support article "Why didn\'t I receive a score in a question I forecasted?": full '
        "days only; the other edges are those of the platforms that carry forecasts forward by date",
    ),
    "spot": Sampling(
        "at one instant",
        _spot,
        _spot_at,
        "Metaculus's published code, spot scores",
    ),
}
