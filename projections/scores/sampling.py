"""Sampling: which instants of a question's period count: every instant, the end of each day, or single instants.

Time is counted in units from the opening, 0, 1, 2 …: microseconds, days, or single instants, each as many units as its
weight. A forecast that stands on [start, end) stands from the unit of `start` to just before the unit of `end`. So
every sampling uses the same code.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.values import DAY
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array, spread
from forecast_ledger.projections.core.wide_int import LARGEST_COUNT
from forecast_ledger.projections.facts.columns import Contest, Entry, Facts, Intervals

_MINUTE = 60 * 10**6


class Ruler(NamedTuple):
    """The period of each question, µs, shape (q,), and how it is cut into days.

    until: when scored time ends. spot, spot_weight: the single instants that count, where these do, in order, and the
    weight of each, 0 where a question has fewer; shape (q, most). east: µs by which the days are ahead of UTC.
    edges: the field `day_edges` of the rule set, which says whether a first or last day counts that
    the opening or the end cuts short.
    """

    opens: Int64Array
    until: Int64Array
    spot: Int64Array
    spot_weight: Int64Array
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
    ends: returns the instants at which units end; None if each ends when the next one begins.
    """

    words: str
    units: Callable[[Ruler, Int64Array, Int64Array], Int64Array]
    instants: Callable[[Ruler, Int64Array, Int64Array], Int64Array]
    source: str
    ends: Callable[[Ruler, Int64Array, Int64Array], Int64Array] | None = None


def ruler(
    opens: Int64Array, until: Int64Array, spot: Int64Array, rules: RuleSet, spot_weight: Int64Array | None = None
) -> Ruler:
    """Return the ruler for a rule set. spot: shape (q, most), or (q,) if each question has one, of weight 1."""
    spot = spot if spot.ndim > 1 else spot[:, None]
    weight = np.ones_like(spot) if spot_weight is None else spot_weight
    return Ruler(opens, until, spot, weight, rules.day_minutes * _MINUTE, rules.day_edges)


def _micros(periods: Ruler, at: Int64Array, question: Int64Array) -> Int64Array:
    return at - spread(periods.opens, question)


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


def in_units(sampling: str, periods: Ruler, standing: Intervals) -> Intervals:
    """Return intervals, µs, in units of time: without those of no unit, and cut at each of several single instants."""
    start, end = (SAMPLINGS[sampling].units(periods, at, standing.question) for at in (standing.start, standing.end))
    standing = standing._replace(start=start, end=end)
    if sampling == "time":
        return standing
    standing = standing.of(np.flatnonzero(start < end))
    if sampling != "spot" or periods.spot.shape[1] == 1:
        return standing
    owner, start, end = each_spot(periods, standing.start, standing.end, standing.question)
    return standing.of(owner)._replace(start=start, end=end)


def each_spot(
    periods: Ruler, start: Int64Array, end: Int64Array, question: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Cut intervals of units at every single instant that counts.

    Return the index of each part's interval, and where the part starts and ends. Instants at or after the end of scored
    time are one.

    >>> two = Ruler(*np.array([[0], [9], [9]]), np.array([[3, 1]]), 0, "both")
    >>> [column.tolist() for column in each_spot(two._replace(spot=np.array([[2, 5]])), *np.array([[0], [4], [0]]))]
    [[0, 0], [0, 3], [3, 4]]
    """
    upto = _weight_upto(periods)
    indices = range(periods.spot.shape[1])
    first = sum((upto[question, index + 1] <= start for index in indices), np.zeros_like(start))
    parts = sum((upto[question, index] < end for index in indices), np.zeros_like(start)) - first
    owner = np.repeat(np.arange(len(start)), parts)
    index = first[owner] + np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)
    start, end = upto[question[owner], index], upto[question[owner], index + 1]
    some = np.flatnonzero(start < end)
    return owner[some], start[some], end[some]


def _spot(periods: Ruler, at: Int64Array, question: Int64Array) -> Int64Array:
    """A forecast counts if it stands at the instant or, if scored time ends by then, at its end."""
    ticks, units = _ticks(periods), np.zeros_like(at)
    for index in range(ticks.shape[1]):
        units += periods.spot_weight[:, index][question] * (at >= ticks[:, index][question])
    return units


def _spot_at(periods: Ruler, unit: Int64Array, question: Int64Array) -> Int64Array:
    whole = _weight_upto(periods)[question, -1]
    at: Int64Array = _spot_end(periods, np.minimum(unit + 1, whole), question) - (unit < whole)
    return at


def _spot_end(periods: Ruler, unit: Int64Array, question: Int64Array) -> Int64Array:
    """Return the first instant after the one that has the unit before this one."""
    upto, ticks = _weight_upto(periods), _ticks(periods)
    index = sum((upto[question, index + 1] < unit for index in range(ticks.shape[1])), np.zeros_like(unit))
    at: Int64Array = ticks[question, index]
    return at


def _ticks(periods: Ruler) -> Int64Array:
    """Return the first instant after each one that counts, shape (q, most)."""
    ticks: Int64Array = np.minimum(periods.spot + 1, periods.until[:, None])
    return ticks


def _weight_upto(periods: Ruler) -> Int64Array:
    """Return the units before each instant that counts, and those of all, shape (q, most + 1).

    If several instants count as one, the last has all their units.
    """
    ticks = _ticks(periods)
    last = np.pad(ticks[:, 1:] > ticks[:, :-1], ((0, 0), (0, 1)), constant_values=True)
    upto = np.maximum.accumulate(np.where(last, np.cumsum(periods.spot_weight, axis=1), 0), axis=1)
    return np.pad(upto, ((0, 0), (1, 0)))


SAMPLINGS: dict[str, Sampling] = {
    "time": Sampling(
        "weighted by the time that each forecast stands",
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
        "counted at single instants",
        _spot,
        _spot_at,
        "Metaculus's published code, spot scores; of several instants, those of its command for custom leaderboards",
        _spot_end,
    ),
}


def at_one_instant(
    facts: Facts, contests: Sequence[Contest], counts: Callable[[QuestionOpened], bool], **others: Any
) -> list[Contest]:
    """Return contests with some of their questions that count, under rules that sample them at one instant.

    There is no reference, and no row of a reference forecaster. contests: of one rule set. counts: says which questions
    these are. others: fields of the rule set, and their values.
    """
    at_once = {"reference": "none", "sampling": "spot", "scale": "plain", "reference_rows": (), "payouts": "unscored"}
    rules = structs.replace(contests[0].opened.rules, **at_once | others)
    return [_sampled(facts, contest, rules, counts) for contest in contests]


def _sampled(facts: Facts, contest: Contest, rules: RuleSet, counts: Callable[[QuestionOpened], bool]) -> Contest:
    has_spots, last = contest.opened.rules.sampling == "spot", contest.as_of(facts)
    entries = {
        code: Entry(entry.position, code, entry.weight, entry.hidden_coverage_weight, at)
        for code, entry in contest.entries.items()
        if entry.weight and counts(facts.questions[code])
        for at in [_last_spot(entry) if has_spots else facts.question_as_of(code, last).closes_at]
    }
    opened = structs.replace(contest.opened, rules=rules)
    return Contest(opened, entries, contest.enrolments, contest.levels, contest.sealed, position=contest.position)


def _last_spot(entry: Entry) -> int | None:
    """Return the spot of a question, the last one of several; None for the reveal, else the close."""
    return entry.spots[-1][0] if entry.spots else entry.spot_at


# --- A common timeline: questions are laid one after another, so that one pass computes them all.


LONGEST_TIMELINE = 1 << 61  # µs


def shifts(opens: Int64Array, closes: Int64Array) -> Int64Array:
    """Return the shift that puts each question after the one before it, µs, shape (questions,).

    After the shift no two questions share an instant, closing instants included.

    >>> shifts(np.array([10, 10]), np.array([14, 12])).tolist()
    [-10, -5]
    """
    lengths = closes - opens + 1
    shift: Int64Array = np.cumsum(lengths) - lengths - opens
    return shift


def chunks(
    sizes: Int64Array, opens: Int64Array, closes: Int64Array, most: int, largest: int = LARGEST_COUNT - 1
) -> Iterator[slice]:
    """Yield slices of consecutive questions that fit on one timeline and have at most `most` forecasts in all.

    A single question may have more. sizes: how many forecasts each question has.

    Raises OverflowError if one question has more than `largest`.

    >>> list(chunks(np.array([3, 4, 9]), np.zeros(3, int), np.ones(3, int), most=7))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    begin, rows, length = 0, 0, 0
    for i, (size, lasts) in enumerate(zip(sizes.tolist(), (closes - opens + 1).tolist(), strict=True)):
        if size > largest:
            raise OverflowError(f"{size} forecasts on one question; {largest} can be scored at once")
        if i > begin and (rows + size > most or length + lasts > LONGEST_TIMELINE):
            yield slice(begin, i)
            begin, rows, length = i, 0, 0
        rows, length = rows + size, length + lasts
    if begin < len(sizes):
        yield slice(begin, len(sizes))
