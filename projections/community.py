"""The consensus as a forecaster of its own: averages of what the members forecast, of every kind of question."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ledger.rules import RuleSet
from ledger.values import PROBABILITY
from projections import recency
from projections.consensus import Changes, Consensus, medians
from projections.limbs import Int64Array, half_even_many
from projections.references import Steps, refined


def _medians(
    start: Int64Array,
    end: Int64Array,
    group: Int64Array,
    value: Int64Array,
    _: Int64Array,
    known: Changes | None = None,
) -> Consensus:
    return medians(start, end, group, value, known)


Average = Callable[[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array], Consensus]
AVERAGES: dict[tuple[str, str], Average] = {
    ("median", "equal"): _medians,
    ("median", "recency"): recency.medians,
    ("mean", "equal"): recency.plain_means,
    ("mean", "recency"): recency.means,
}


def average(rules: RuleSet, *, named: bool, known: Changes | None = None) -> Average:
    """How a rule set averages the probabilities of one outcome; known: the changes of the intervals, if they are.

    >>> average(RuleSet(name="x", consensus="mean"), named=True) is AVERAGES["mean", "equal"]
    True
    """
    mean = rules.consensus == "mean" or (rules.consensus == "community" and not named)
    averaged = AVERAGES["mean" if mean else "median", rules.consensus_weights]
    return partial(_medians, known=known) if averaged is _medians and known is not None else averaged


class Members(NamedTuple):
    """Intervals of members on the axis of steps, and which of two that begin together is the older; shape (n,)."""

    start: Int64Array
    end: Int64Array
    group: Int64Array
    order: Int64Array


def of_columns(
    averaged: Average, members: Members, found: Steps, columns: list[Int64Array], some: Int64Array
) -> list[Int64Array]:
    """The average of each column in some steps, doubled, 0 where no member stands; shape (m,) each.

    columns: one number of each interval, 0..1e10, shape (n,). some: indices of steps, shape (m,): of those alone is
    anything kept, since columns are many where steps are few.
    """
    doubled = []
    for column in columns:
        over_time = averaged(members.start, members.end, members.group, column, members.order)
        fine = refined(over_time, found, some)
        doubled.append(fine.low + fine.high)
    return doubled


def brought_to_one(doubled: list[Int64Array], outcome: Int64Array) -> Int64Array:
    """Twice the share that an outcome's average has of all outcomes' averages, the share rounded half-even to 1e-10.

    doubled: shape (m,) for each outcome. outcome: index in each step.

    >>> brought_to_one([np.array([2]), np.array([6])], np.array([1])).tolist()
    [15000000000]
    """
    total = np.maximum(sum(doubled[1:], doubled[0]), 1)
    own = np.choose(outcome, doubled) if len(doubled) <= 32 else np.stack(doubled)[outcome, np.arange(len(outcome))]
    above, rest = np.divmod(own, total)
    for _ in range(4):  # two digits of ten at a time: of very many outcomes the total leaves no room for more
        digits, rest = np.divmod(rest * 100, total)
        above = above * 100 + digits
    share: Int64Array = 2 * (above * 100 + half_even_many(rest * 100, total))
    return share


def distributions(doubled: list[Int64Array], *, named: bool) -> Int64Array:
    """Averages as forecasts, shape (m, width): named outcomes brought to one, what is missing to the largest; where all
    of them are 0 they are equal.

    >>> distributions([np.array([1]), np.array([1]), np.array([1])], named=True).tolist()
    [[333333334, 333333333, 333333333]]
    """
    table = np.stack(doubled, axis=1) if doubled else np.zeros((0, 0), np.int64)
    if not named:
        return half_even_many(table, 2)
    table = table + (table.sum(axis=1, keepdims=True) == 0)
    total = table.sum(axis=1, keepdims=True)
    shares = half_even_many(table * PROBABILITY, np.broadcast_to(total, table.shape))
    shares[np.arange(len(shares)), shares.argmax(axis=1)] += PROBABILITY - shares.sum(axis=1)
    return shares
