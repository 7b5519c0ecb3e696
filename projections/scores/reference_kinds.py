"""References over time: what a standing forecast earns against its peers or against the consensus.

A step is the time between two consecutive changes of the standing forecasts. In each step a forecast with the kernel
score L earns L x weight - level. Both are integers that depend on the step alone, so prefix sums serve every interval,
and the parts of an interval add up to it exactly.
"""

from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.model.rules import UNBOUNDED, RuleSet, kernels_of
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, half_even_many
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.scores.consensus import Changes, Consensus, LeaveOneOut, changes

# Fraction bits of a time weight against peers, as n / (n - 1) is not an integer. A century still fits in a WideInt.
_FINE_BITS = {"time": 24, "day": 60, "spot": 60}
HALF_BITS = 1  # of the mean of two middle scores
_ROOM = 4  # bits less for a kernel without a bound, whose scores are larger than those of any other
_FRACTION_BITS = 30  # of a fraction, computed at a time
_HALF_BITS = 32
_HALF_MASK = (1 << _HALF_BITS) - 1


class Steps(NamedTuple):
    """Steps of a timeline: each runs from one instant of change until the next; shape (m,).

    instant: increasing. stand: the number of members with a standing forecast. lasts: units until the next instant.
    begins and ends, shape (n,): the index of the instant at which each interval begins and ends.
    """

    instant: Int64Array
    stand: Int64Array
    lasts: Int64Array
    begins: Int64Array
    ends: Int64Array


class Against(NamedTuple):
    """The weight and level of each step; shape (m,).

    weight: units of time x 2^fine; 64 bits hold it if fine is 0, since a timeline has at most 2^61 units. level: the
    kernel's quanta x units of time x 2^fine.
    """

    weight: WideInt | Int64Array
    level: WideInt

    def earned(self, kernel_scores: Int64Array, begins: Int64Array, ends: Int64Array) -> WideInt:
        """Return what forecasts with these kernel scores earn from each begin to each end; shape (n,)."""
        level = self.level.prefix_sums()
        imputed = level.take(ends) - level.take(begins)
        if isinstance(self.weight, WideInt):
            wide = self.weight.prefix_sums()
            return (wide.take(ends) - wide.take(begins)).times(kernel_scores) - imputed
        weight = np.append(0, np.cumsum(self.weight))
        return WideInt.product(kernel_scores, weight[ends] - weight[begins]) - imputed


class Scored(NamedTuple):
    """Scored forecasts; shape (n,).

    doubled: twice the probability of the outcome, 1e-10. member: whether members made them.
    """

    kernel_scores: Int64Array
    doubled: Int64Array
    member: BoolArray

    def of(self, index: Int64Array) -> "Scored":
        """Return the forecasts at these indices."""
        return Scored(self.kernel_scores[index], self.doubled[index], self.member[index])


class Compared(NamedTuple):
    """The reference of forecasts on one timeline, and the steps in which each forecast stands.

    members, outsiders: the reference of members and of participants who are not members. doubled, kernel: if the
    reference is the consensus, twice its probability of the outcome and its kernel score in each step. leave_one_out:
    if the reference of members is the median of the other members, that reference, in use instead of `members`.
    """

    steps: Steps
    members: Against
    outsiders: Against
    doubled: Int64Array | None = None
    kernel: Int64Array | None = None
    leave_one_out: LeaveOneOut | None = None

    def earned(self, rows: Scored, begins: Int64Array, ends: Int64Array) -> WideInt:
        """Return what forecasts earn from each begin to each end; shape (n,)."""
        scores = rows.kernel_scores
        if self.leave_one_out is not None:
            earned = self.leave_one_out.earned(scores, rows.doubled // 2, begins, ends)
        else:
            earned = self.members.earned(scores, begins, ends)
        if rows.member.all() or (self.outsiders is self.members and self.leave_one_out is None):
            return earned
        return _by_member(rows.member, earned, self.outsiders.earned(scores, begins, ends))

    def earned_between_changes(self, rows: Scored, begins: Int64Array, ends: Int64Array) -> WideInt:
        """Return what `earned` does, if none of `changes` lies between a begin and its end; shape (n,)."""
        if self.leave_one_out is None:
            return self.earned(rows, begins, ends)
        earned = self.leave_one_out.earned_in(rows.kernel_scores, rows.doubled // 2, begins)
        return _by_member(rows.member, earned, self.outsiders.earned(rows.kernel_scores, begins, ends))

    def reference(self, rows: Scored, step: Int64Array) -> Int64Array:
        """Return twice the probability, 1e-10, of each forecast's consensus in each step; -1 without a consensus."""
        if self.doubled is None:
            return np.full(len(step), -1)
        consensus = self.doubled[step]
        if self.leave_one_out is None:
            return consensus
        return np.where(rows.member, self.leave_one_out.reference(rows.doubled // 2, step), consensus)

    def changes(self) -> Int64Array:
        """Return the steps at which the reference changes: all, if it is the peers or the other members."""
        if self.doubled is None or self.kernel is None or self.leave_one_out is not None:
            return np.arange(len(self.steps.instant))
        empty = self.steps.stand == 0
        same = (self.doubled[1:] == self.doubled[:-1]) & (self.kernel[1:] == self.kernel[:-1])
        return np.flatnonzero(np.append(True, ~same | empty[1:] | empty[:-1])[: len(empty)])


def _by_member(member: BoolArray, of_members: WideInt, of_outsiders: WideInt) -> WideInt:
    """Return the first for members, the second for everybody else."""
    return WideInt(*(np.where(member, *pair) for pair in zip(of_members, of_outsiders, strict=True)))


def steps(start: Int64Array, end: Int64Array, member: BoolArray, ordered: Changes | None = None) -> Steps:
    """Return the steps of intervals [start, end), shape (n,), one or more; only members count as standing.

    ordered: the changes of the intervals, if they have been computed.

    >>> columns = steps(np.array([0, 1]), np.array([3, 2]), np.array([True, True]))
    >>> [column.tolist() for column in columns]
    [[0, 1, 2, 3], [1, 2, 1, 0], [1, 1, 1, 0], [0, 1], [3, 2]]
    """
    ordered = ordered or changes(start, end)
    sign = np.where(ordered.order < len(start), 1, -1) * np.concatenate([member, member])[ordered.order]
    lasts = np.diff(ordered.instant, append=ordered.instant[-1:])
    return Steps(ordered.instant, np.cumsum(sign)[ordered.last], lasts, ordered.begins, ordered.ends)


def against_consensus(timeline: Steps, reference: Int64Array) -> Against:
    """Compare with a consensus that has these kernel scores in each step; forecasts earn 0 while no member stands.

    >>> start, end, member = np.array([0]), np.array([3]), np.array([True])
    >>> against = against_consensus(steps(start, end, member), np.array([-5, 0]))
    >>> against.earned(np.array([-2]), np.array([0]), np.array([1])).integers()
    [9]
    """
    lasts = np.where(timeline.stand > 0, timeline.lasts, 0)
    return Against(lasts, WideInt.product(reference, lasts))


def fine_bits(rules: RuleSet) -> int:
    """Return the bits by which numerators are finer than quantum x unit: a median may be a half.

    >>> [fine_bits(RuleSet(name="x", kernel="ln", reference=name)) for name in ("peers", "median_score", "none")]
    [24, 1, 0]
    """
    if rules.reference not in {"peers", "mean_score"}:
        return HALF_BITS * (rules.reference == "median_score")
    return _FINE_BITS[rules.sampling] - _ROOM * bool(kernels_of(rules) & {*UNBOUNDED})


def against_peers(
    timeline: Steps, kernel_scores: Int64Array, member: BoolArray, fine: int, *, leave_out_self: bool
) -> Against:
    """Compare with the mean of members: n / (n - 1) x (L - mean of all n) for a member, else L - mean of all n.

    n / (n - 1) and the fraction of the mean are rounded half-even once in each step, to 2^-fine of a unit of time and
    of quantum x unit; everything else is exact, and members with equal forecasts earn exactly 0.
    A member earns 0 while no other member has a standing forecast: n / (n - 1) has no value then. A participant who is
    not a member earns 0 only while no member has a standing forecast.
    Source: Metaculus, Scores FAQ, "What is the Peer score?".
    """
    enough = timeline.stand > leave_out_self
    count = np.where(enough, timeline.stand - leave_out_self, 1)
    lasts = np.where(enough, timeline.lasts, 0)
    mean, remainder = _means(timeline, kernel_scores, member, np.where(enough, timeline.stand, 1))
    wholes, left = np.divmod(lasts, count)
    weight = WideInt.from_int64(lasts).shifted(fine)
    if leave_out_self:  # n / (n - 1) is 1 + 1 / (n - 1)
        weight = (weight + WideInt.from_int64(wholes).shifted(fine) + _fractions(left, count, fine)).carried()
    # remainder x lasts / count = remainder x wholes + remainder x left / count
    above, below = np.divmod(remainder * left, count)
    beyond = WideInt.from_int64(remainder * wholes + above).shifted(fine) + _fractions(below, count, fine)
    return Against(weight, (weight.times(mean) + beyond).carried())


def _fractions(part: Int64Array, whole: Int64Array, fine: int) -> WideInt:
    """Return part / whole, 0 <= part < whole, in 2^-fine, rounded half-even once; fine up to 60."""
    first = min(fine, _FRACTION_BITS)
    further = fine - first
    high, remainder = np.divmod(part << first, whole)
    return WideInt.from_int64(high).shifted(further) + WideInt.from_int64(half_even_many(remainder << further, whole))


def _means(
    timeline: Steps, kernel_scores: Int64Array, member: BoolArray, count: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Divide Σ L over the standing members of each step by count: quotient and remainder.

    It is done in two halves, since Σ L may not fit in 64 bits.
    """
    halves = []
    for half in (kernel_scores >> _HALF_BITS, kernel_scores & _HALF_MASK):
        change = np.zeros_like(timeline.instant)
        np.add.at(change, timeline.begins[member], half[member])
        np.subtract.at(change, timeline.ends[member], half[member])
        halves.append(np.cumsum(change))
    above, remainder = np.divmod(halves[0], count)
    below, remainder = np.divmod((remainder << _HALF_BITS) + halves[1], count)
    return (above << _HALF_BITS) + below, remainder


def refined(consensus: Consensus, timeline: Steps, at: Int64Array | slice = slice(None)) -> Consensus:
    """Return the consensus at every instant of the steps, or at some, where the steps include all of its instants."""
    index = latest(consensus.instant, timeline, at)
    before = index < 0
    stand, low, high = (np.where(before, 0, column[index]) for column in consensus[1:4])
    return Consensus(timeline.instant[at], stand, low, high, timeline.begins, timeline.ends)


def latest(instant: Int64Array, timeline: Steps, at: Int64Array | slice = slice(None)) -> Int64Array:
    """Return the index of the last of these instants as of each step; -1 before the first.

    Each of these instants begins a step.
    """
    if len(instant) == len(timeline.instant):  # the same instants
        return np.arange(len(timeline.instant))[at]
    index: Int64Array = np.searchsorted(instant, timeline.instant[at], "right") - 1
    return index
