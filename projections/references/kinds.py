"""What a forecast is compared with while it stands: nothing, the uniform distribution, its peers, or the consensus.

In each step between changes of what stands, a forecast whose kernel is L earns L x weight - level, both integers of
the step alone; so that running sums serve every interval, and its parts add up to it exactly.
"""

from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.model.rules import UNBOUNDED, RuleSet, kernels_of
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, half_even_many
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.references.consensus import Changes, Consensus, changes
from forecast_ledger.projections.references.leave_one_out import Others

# By how much time against peers is finer than a unit, because n / (n - 1) is no whole number: a century still fits.
_FINE_BITS = {"time": 24, "day": 60, "spot": 60}
_ROOM = 4  # bits by which it is less fine with a kernel without bound, which is larger than any other
_FRACTION_BITS = 30  # of a fraction at a time
_HALF_BITS = 32
_HALF_MASK = (1 << _HALF_BITS) - 1


class Steps(NamedTuple):
    """What stands from each instant of change until the next; shape (m,), increasing on one axis.

    stand: how many members do. lasts: units until the next instant. begins and ends, shape (n,): at which instant each
    interval begins and ends.
    """

    instant: Int64Array
    stand: Int64Array
    lasts: Int64Array
    begins: Int64Array
    ends: Int64Array


class Against(NamedTuple):
    """The two integers of each step, shape (m,): weight in units x 2^fine, level in the kernel's quanta x that.

    Weights of whole units need no limbs: an axis has at most 2^61.
    """

    weight: WideInt | Int64Array
    level: WideInt

    def earned(self, own: Int64Array, begins: Int64Array, ends: Int64Array) -> WideInt:
        """What kernels `own` earn from each begin to each end; shape (n,)."""
        level = self.level.prefix_sums()
        imputed = level.take(ends) - level.take(begins)
        if isinstance(self.weight, WideInt):
            wide = self.weight.prefix_sums()
            return (wide.take(ends) - wide.take(begins)).times(own) - imputed
        weight = np.append(0, np.cumsum(self.weight))
        return WideInt.product(own, weight[ends] - weight[begins]) - imputed


class Scored(NamedTuple):
    """What forecasts are worth: their kernels, twice their chance, 1e-10, and whether they are members'; shape (n,)."""

    own: Int64Array
    doubled: Int64Array
    member: BoolArray

    def of(self, index: Int64Array) -> "Scored":
        """These forecasts."""
        return Scored(self.own[index], self.doubled[index], self.member[index])


class Compared(NamedTuple):
    """What forecasts are compared with, on one axis of time, and the steps in which each forecast stands.

    members, others: what those who count among the peers are compared with, and what others are. doubled, kernel: of
    the consensus, twice its chance and its kernel in each step, where that is what they are compared with. apart: what
    members are compared with instead, where that is the median of the other members.
    """

    steps: Steps
    members: Against
    others: Against
    doubled: Int64Array | None = None
    kernel: Int64Array | None = None
    apart: Others | None = None

    def earned(self, rows: Scored, begins: Int64Array, ends: Int64Array) -> WideInt:
        """What forecasts earn from each begin to each end; shape (n,)."""
        own = rows.own
        if self.apart is not None:
            earned = self.apart.earned(own, rows.doubled // 2, begins, ends)
        else:
            earned = self.members.earned(own, begins, ends)
        if rows.member.all() or (self.others is self.members and self.apart is None):
            return earned
        return _by_member(rows.member, earned, self.others.earned(own, begins, ends))

    def earned_between_changes(self, rows: Scored, begins: Int64Array, ends: Int64Array) -> WideInt:
        """The same where no begin and end have one of `changes` between them; shape (n,)."""
        if self.apart is None:
            return self.earned(rows, begins, ends)
        earned = self.apart.earned_in(rows.own, rows.doubled // 2, begins)
        return _by_member(rows.member, earned, self.others.earned(rows.own, begins, ends))

    def reference(self, rows: Scored, step: Int64Array) -> Int64Array:
        """Twice the chance, 1e-10, of the consensus that forecasts are compared with in each step; -1 for none."""
        if self.doubled is None:
            return np.full(len(step), -1)
        of_all = self.doubled[step]
        if self.apart is None:
            return of_all
        return np.where(rows.member, self.apart.reference(rows.doubled // 2, step), of_all)

    def changes(self) -> Int64Array:
        """The steps at which what forecasts are compared with changes; against peers or other members, every one."""
        if self.doubled is None or self.kernel is None or self.apart is not None:
            return np.arange(len(self.steps.instant))
        none = self.steps.stand == 0
        same = (self.doubled[1:] == self.doubled[:-1]) & (self.kernel[1:] == self.kernel[:-1])
        return np.flatnonzero(np.append(True, ~same | none[1:] | none[:-1])[: len(none)])


def _by_member(member: BoolArray, one: WideInt, other: WideInt) -> WideInt:
    """The one of members, the other of everybody else."""
    return WideInt(*(np.where(member, *pair) for pair in zip(one, other, strict=True)))


def steps(start: Int64Array, end: Int64Array, member: BoolArray, known: Changes | None = None) -> Steps:
    """The steps of intervals [start, end), shape (n,), one or more; only members count as standing.

    known: their changes, if they are.

    >>> found = steps(np.array([0, 1]), np.array([3, 2]), np.array([True, True]))
    >>> [column.tolist() for column in found]
    [[0, 1, 2, 3], [1, 2, 1, 0], [1, 1, 1, 0], [0, 1], [3, 2]]
    """
    known = known or changes(start, end)
    sign = np.where(known.order < len(start), 1, -1) * np.concatenate([member, member])[known.order]
    lasts = np.diff(known.instant, append=known.instant[-1:])
    return Steps(known.instant, np.cumsum(sign)[known.last], lasts, known.begins, known.ends)


def of_consensus(found: Steps, reference: Int64Array) -> Against:
    """Against a reference that has these kernels in each step; nothing is earned while no member stands.

    >>> one = np.array([0]), np.array([3])
    >>> against = of_consensus(steps(*one, np.array([True])), np.array([-5, 0]))
    >>> against.earned(np.array([-2]), np.array([0]), np.array([1])).integers()
    [9]
    """
    lasts = np.where(found.stand > 0, found.lasts, 0)
    return Against(lasts, WideInt.product(reference, lasts))


def fine_bits(rules: RuleSet) -> int:
    """By how many bits numerators are finer than quantum x unit.

    >>> fine_bits(RuleSet(name="x", kernel="ln", reference="peers")), fine_bits(RuleSet(name="x", kernel="ln"))
    (24, 0)
    """
    if rules.reference != "peers":
        return 0
    return _FINE_BITS[rules.sampling] - _ROOM * bool(kernels_of(rules) & {*UNBOUNDED})


def of_peers(found: Steps, own: Int64Array, member: BoolArray, fine: int, *, one_of_them: bool) -> Against:
    """Against the mean of members: n / (n - 1) x (L - mean of all n) for one of them, else L - mean of all n.

    n / (n - 1) and what is left of the mean beyond a whole number are rounded half-even once in each step, to 2^-fine
    of a unit of time and of quantum x unit; the rest is exact, and members who all say the same earn exactly 0.
    One of them earns nothing while nobody else of them stands: there is nobody to be compared with, and n / (n - 1) has
    no value. Who is none of them earns nothing only while none of them stands.
    Source: Metaculus, Scores FAQ, "What is the Peer score?".
    """
    enough = found.stand > one_of_them
    count = np.where(enough, found.stand - one_of_them, 1)
    lasts = np.where(enough, found.lasts, 0)
    mean, rest = _means(found, own, member, np.where(enough, found.stand, 1))
    wholes, left = np.divmod(lasts, count)
    weight = WideInt.from_int64(lasts).shifted(fine)
    if one_of_them:  # n / (n - 1) is 1 + 1 / (n - 1)
        weight = (weight + WideInt.from_int64(wholes).shifted(fine) + _fractions(left, count, fine)).carried()
    # rest x lasts / count = rest x wholes + rest x left / count
    above, below = np.divmod(rest * left, count)
    beyond = WideInt.from_int64(rest * wholes + above).shifted(fine) + _fractions(below, count, fine)
    return Against(weight, (weight.times(mean) + beyond).carried())


def _fractions(part: Int64Array, whole: Int64Array, fine: int) -> WideInt:
    """Part / whole, 0 <= part < whole, in 2^-fine, rounded half-even once; fine up to 60."""
    first = min(fine, _FRACTION_BITS)
    further = fine - first
    high, rest = np.divmod(part << first, whole)
    return WideInt.from_int64(high).shifted(further) + WideInt.from_int64(half_even_many(rest << further, whole))


def _means(found: Steps, own: Int64Array, member: BoolArray, count: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Quotient and remainder of Σ L over the members that stand in each step, by count; in two halves, for Σ L may not
    fit in 64 bits.
    """
    halves = []
    for half in (own >> _HALF_BITS, own & _HALF_MASK):
        change = np.zeros_like(found.instant)
        np.add.at(change, found.begins[member], half[member])
        np.subtract.at(change, found.ends[member], half[member])
        halves.append(np.cumsum(change))
    above, rest = np.divmod(halves[0], count)
    below, rest = np.divmod((rest << _HALF_BITS) + halves[1], count)
    return (above << _HALF_BITS) + below, rest


def refined(consensus: Consensus, found: Steps, some: Int64Array | slice = slice(None)) -> Consensus:
    """The consensus of members at every instant, or some, at which anybody's forecast begins or ends."""
    place = latest(consensus.instant, found, some)
    before = place < 0
    stand, low, high = (np.where(before, 0, each[place]) for each in (consensus.stand, consensus.low, consensus.high))
    return Consensus(found.instant[some], stand, low, high, found.begins, found.ends)


def latest(instant: Int64Array, found: Steps, some: Int64Array | slice = slice(None)) -> Int64Array:
    """Which of these instants, all of which are of steps too, was the last as of each step; -1 before the first."""
    if len(instant) == len(found.instant):  # these are some of those
        return np.arange(len(found.instant))[some]
    place: Int64Array = np.searchsorted(instant, found.instant[some], "right") - 1
    return place
