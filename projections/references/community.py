"""The consensus as a forecaster of its own: averages of what the members forecast, of every kind of question."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.events import QuestionKind
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array, half_even_many
from forecast_ledger.projections.facts.columns import CHANCE
from forecast_ledger.projections.references import recency
from forecast_ledger.projections.references.consensus import Changes, Consensus, medians
from forecast_ledger.projections.references.kinds import Steps, refined
from forecast_ledger.projections.references.recency import Aged

FINER = 10**8  # what a mean or a share is rounded to before its logarithm is taken, 1e-18, is finer than 1e-10
_DIGITS = 18
# The consensus "squeezed" of K named outcomes: 1 / SQUEEZED off each median, none below 0; of what is left, each one's
# share (all alike of nothing); 1 - K / SQUEEZED of that, and 1 / SQUEEZED. So none is below 0.001.
SQUEEZED = 1_000


class Aggregation(NamedTuple):
    """What a rule set's consensus is made of; words: as a rule set is explained.

    of_named, of_ranges: "median" or "mean", of the forecasts on named outcomes and on ranges. brought_to_one: the kinds
    of question of which every outcome is averaged, and the averages are then brought to one; of others it is the
    outcome alone. squeezed: whether these are also kept from 0: see SQUEEZED.
    """

    words: str
    of_named: str
    of_ranges: str
    brought_to_one: tuple[QuestionKind, ...]
    squeezed: bool
    source: str


_CODE = "Metaculus's published code, utils/the_math/aggregations.py"
AGGREGATIONS: dict[str, Aggregation] = {
    "median": Aggregation(
        words="median",
        of_named="median",
        of_ranges="median",
        brought_to_one=(),
        squeezed=False,
        source='Metaculus, Scores FAQ, "What is the Relative score?"',
    ),
    "community": Aggregation(
        words="community",
        of_named="median",
        of_ranges="mean",
        brought_to_one=("binary", "multiple_choice"),
        squeezed=False,
        source=_CODE,
    ),
    "mean": Aggregation(
        words="mean",
        of_named="mean",
        of_ranges="mean",
        brought_to_one=(),
        squeezed=False,
        source="Stone (1961), The Opinion Pool, doi:10.1214/aoms/1177704873",
    ),
    "squeezed": Aggregation(
        words="squeezed community",
        of_named="median",
        of_ranges="mean",
        brought_to_one=("multiple_choice",),
        squeezed=True,
        source=f"{_CODE}, MedianAggregator.calculate_forecast_values, multiple choice, since October 2024",
    ),
}


def _medians(of: Aged, value: Int64Array, **known: Changes) -> Consensus:
    return medians(of.start, of.end, of.group, value, **known)


Average = Callable[..., Consensus]  # given intervals and the value of each
AVERAGES: dict[tuple[str, str], Average] = {
    ("median", "equal"): _medians,
    ("median", "recency"): recency.medians,
    ("mean", "equal"): recency.plain_means,
    ("mean", "recency"): recency.means,
}


class Averaged(NamedTuple):
    """How numbers are averaged, and by how much finer than they are its unit is."""

    average: Average
    finer: int


def average(rules: RuleSet, *, named: bool, fine: bool = False, known: Changes | None = None) -> Averaged:
    """How a rule set averages the probabilities of one outcome; known: the changes of the intervals, if they are.

    fine: where the average feeds a logarithm; then a mean is rounded to 1e-18. A median is exact in any case.

    >>> average(RuleSet(name="x", consensus="mean"), named=True).average is AVERAGES["mean", "equal"]
    True
    """
    aggregation = AGGREGATIONS[rules.consensus]
    kind = aggregation.of_named if named else aggregation.of_ranges
    averaged = AVERAGES[kind, rules.consensus_weights]
    if kind == "mean" and fine:
        return Averaged(partial(averaged, finer=FINER), FINER)
    if averaged is _medians and known is not None:
        return Averaged(partial(averaged, known=known), 1)
    return Averaged(averaged, 1)


def of_columns(
    average: Average, members: Aged, found: Steps, columns: list[Int64Array], some: Int64Array
) -> list[Int64Array]:
    """The average of each column in some steps, doubled, 0 where no member stands; shape (m,) each.

    members: on the axis of `found`. columns: one number of each interval, 0..1e10, shape (n,). some: indices of steps,
    shape (m,): of those alone is anything kept, since columns are many where steps are few.
    """
    doubled = []
    for column in columns:
        fine = refined(average(members, column), found, some)
        doubled.append(fine.low + fine.high)
    return doubled


def share(doubled: list[Int64Array], outcome: Int64Array, *, squeezed: bool = False) -> Int64Array:
    """Twice the share that an outcome's average has of all outcomes' averages, the share rounded half-even to 1e-18.

    doubled: 1e-10, shape (m,) for each outcome. outcome: index in each step. squeezed: see SQUEEZED.

    >>> share([np.array([2]), np.array([6])], np.array([1])).tolist()
    [1500000000000000000]
    """
    if squeezed:
        doubled = [np.maximum(each - 2 * CHANCE // SQUEEZED, 0) for each in doubled]
    own = np.choose(outcome, doubled) if len(doubled) <= 32 else np.stack(doubled)[outcome, np.arange(len(outcome))]
    total: Int64Array = sum(doubled[1:], doubled[0])
    if squeezed:
        own, total = own + (total == 0), np.where(total == 0, len(doubled), total)
        own, total = own * (SQUEEZED - len(doubled)) + total, total * SQUEEZED
    total = np.maximum(total, 1)
    above, rest = np.divmod(own, total)
    for _ in range(_DIGITS // 2 - 1):  # two digits at a time: of very many outcomes the total leaves no room for more
        digits, rest = np.divmod(rest * 100, total)
        above = above * 100 + digits
    shares: Int64Array = 2 * (above * 100 + half_even_many(rest * 100, total))
    return shares


def distributions(doubled: list[Int64Array], *, named: bool, squeezed: bool = False) -> Int64Array:
    """Averages as forecasts, shape (m, width): named outcomes brought to one, what is missing to the largest; where all
    of them are 0 they are equal. squeezed: see SQUEEZED.

    >>> distributions([np.array([1]), np.array([1]), np.array([1])], named=True).tolist()
    [[333333334, 333333333, 333333333]]
    """
    table = np.stack(doubled, axis=1) if doubled else np.zeros((0, 0), np.int64)
    if not named:
        return half_even_many(table, 2)
    if squeezed:
        table = np.maximum(table - 2 * PROBABILITY // SQUEEZED, 0)
    table = table + (table.sum(axis=1, keepdims=True) == 0)
    total, unit = table.sum(axis=1, keepdims=True), PROBABILITY
    if squeezed:  # what sums to `total` is at most 2: a median is at most twice the mean
        table, unit = table * (SQUEEZED - table.shape[1]) + total, PROBABILITY // SQUEEZED
    shares = half_even_many(table * unit, np.broadcast_to(total, table.shape))
    shares[np.arange(len(shares)), shares.argmax(axis=1)] += PROBABILITY - shares.sum(axis=1)
    return shares
