"""The community forecast: averages of the members' forecasts on every kind of question."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model.events import QuestionKind
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import Int64Array, half_even_many
from forecast_ledger.projections.facts.columns import CHANCE
from forecast_ledger.projections.scores import recency
from forecast_ledger.projections.scores.consensus import Changes, Consensus, medians
from forecast_ledger.projections.scores.recency import Aged
from forecast_ledger.projections.scores.reference_kinds import Steps, refined

FINER = 10**8  # units of 1e-18, to which a mean or share is rounded before its logarithm is taken, in 1e-10
_DIGITS = 18
# The consensus "squeezed" of K named outcomes: subtract 1 / SQUEEZED from each median, but not below 0; divide by the
# sum (if it is 0, all are equal); multiply by 1 - K / SQUEEZED and add 1 / SQUEEZED. So no probability is below 0.001.
SQUEEZED = 1_000


class Aggregation(NamedTuple):
    """The definition of one kind of consensus.

    words: its name in explanations. of_named, of_ranges: the average of forecasts on named outcomes and on numeric
    ranges, "median" or "mean". normalized: the kinds of question on which all outcomes are averaged and the averages
    divided by their sum; on others, only the outcome that happened is averaged. squeezed: whether the normalized
    averages are also kept away from 0; see SQUEEZED.
    """

    words: str
    of_named: str
    of_ranges: str
    normalized: tuple[QuestionKind, ...]
    squeezed: bool
    source: str


_CODE = "Metaculus's published code, utils/the_math/aggregations.py"
AGGREGATIONS: dict[str, Aggregation] = {
    "median": Aggregation(
        words="median",
        of_named="median",
        of_ranges="median",
        normalized=(),
        squeezed=False,
        source='Metaculus, Scores FAQ, "What is the Relative score?"',
    ),
    "community": Aggregation(
        words="community",
        of_named="median",
        of_ranges="mean",
        normalized=("binary", "multiple_choice"),
        squeezed=False,
        source=_CODE,
    ),
    "mean": Aggregation(
        words="mean",
        of_named="mean",
        of_ranges="mean",
        normalized=(),
        squeezed=False,
        source="Stone (1961), The Opinion Pool, doi:10.1214/aoms/1177704873",
    ),
    "squeezed": Aggregation(
        words="squeezed community",
        of_named="median",
        of_ranges="mean",
        normalized=("multiple_choice",),
        squeezed=True,
        source=f"{_CODE}, MedianAggregator.calculate_forecast_values, multiple choice, since October 2024",
    ),
}


def _medians(rows: Aged, value: Int64Array, **ordered: Changes) -> Consensus:
    return medians(rows.start, rows.end, rows.group, value, **ordered)


Average = Callable[..., Consensus]  # takes intervals and the value of each
AVERAGES: dict[tuple[str, str], Average] = {
    ("median", "equal"): _medians,
    ("median", "recency"): recency.medians,
    ("mean", "equal"): recency.plain_means,
    ("mean", "recency"): recency.means,
}


class Averaged(NamedTuple):
    """An average, and how many units of its results make one unit of the values."""

    average: Average
    finer: int


def average(rules: RuleSet, *, named: bool, fine: bool = False, ordered: Changes | None = None) -> Averaged:
    """Return the average by which a rule set combines the probabilities of one outcome.

    named: for named outcomes, not for a range. fine: for an average of which a logarithm is taken: a mean is rounded to
    1e-18 then; a median is exact in any case. ordered: the changes of the intervals, if they have been computed.

    >>> average(RuleSet(name="x", consensus="mean"), named=True).average is AVERAGES["mean", "equal"]
    True
    """
    aggregation = AGGREGATIONS[rules.consensus]
    kind = aggregation.of_named if named else aggregation.of_ranges
    function = AVERAGES[kind, rules.consensus_weights]
    if kind == "mean" and fine:
        return Averaged(partial(function, finer=FINER), FINER)
    if function is _medians and ordered is not None:
        return Averaged(partial(function, ordered=ordered), 1)
    return Averaged(function, 1)


def average_columns(
    average: Average, members: Aged, timeline: Steps, columns: list[Int64Array], at: Int64Array
) -> list[Int64Array]:
    """Return twice the average of each column in some steps, 0 where no member stands; shape (m,) each.

    members: their intervals on the timeline. columns: one number of each interval, 0..1e10, shape (n,). at: the indices
    of the steps, shape (m,); only their averages are stored, since there may be many columns.
    """
    doubled = []
    for column in columns:
        consensus = refined(average(members, column), timeline, at)
        doubled.append(consensus.low + consensus.high)
    return doubled


def share(doubled: list[Int64Array], outcome: Int64Array, *, squeezed: bool = False) -> Int64Array:
    """Return twice the share of an outcome's average in the sum of all averages, the share rounded half-even to 1e-18.

    doubled: twice the average of each outcome, 1e-10, shape (m,). outcome: its index in each step. squeezed: see
    SQUEEZED.

    >>> share([np.array([2]), np.array([6])], np.array([1])).tolist()
    [1500000000000000000]
    """
    if squeezed:
        doubled = [np.maximum(column - 2 * CHANCE // SQUEEZED, 0) for column in doubled]
    own = np.choose(outcome, doubled) if len(doubled) <= 32 else np.stack(doubled)[outcome, np.arange(len(outcome))]
    total: Int64Array = sum(doubled[1:], doubled[0])
    if squeezed:
        own, total = own + (total == 0), np.where(total == 0, len(doubled), total)
        own, total = own * (SQUEEZED - len(doubled)) + total, total * SQUEEZED
    total = np.maximum(total, 1)
    above, rest = np.divmod(own, total)
    for _ in range(_DIGITS // 2 - 1):  # two digits at a time: with very many outcomes the total leaves no room for more
        digits, rest = np.divmod(rest * 100, total)
        above = above * 100 + digits
    shares: Int64Array = 2 * (above * 100 + half_even_many(rest * 100, total))
    return shares


def distributions(doubled: list[Int64Array], *, named: bool, squeezed: bool = False) -> Int64Array:
    """Return averages as forecasts; shape (m, width).

    The averages of named outcomes are divided by their sum, and the largest takes the rounding error, so that they sum
    to 1; if all of them are 0, the outcomes are equally probable. squeezed: see SQUEEZED.

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
    if squeezed:  # `total` is at most 2: a median is at most twice the mean
        table, unit = table * (SQUEEZED - table.shape[1]) + total, PROBABILITY // SQUEEZED
    shares = half_even_many(table * unit, np.broadcast_to(total, table.shape))
    shares[np.arange(len(shares)), shares.argmax(axis=1)] += PROBABILITY - shares.sum(axis=1)
    return shares
