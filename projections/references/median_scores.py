"""The median of the members' scores as a reference, as Good Judgment Open prints it.

Source: Good Judgment Open, FAQ, "How are my forecasts scored for accuracy?": the accuracy score is the mean daily Brier
score minus the mean of the medians of each day, times the share of days with a forecast. The page does not say on which
days medians are averaged; here they are those on which the participant had a forecast, so that scores add up over time.
"""

import numpy as np

from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.standing import Intervals
from forecast_ledger.projections.references.consensus import Changes, Consensus, medians
from forecast_ledger.projections.references.kinds import HALF_BITS, Against, Steps, refined


def median_scores(members: Intervals, own: Int64Array, ordered: Changes | None = None) -> Consensus:
    """Return the two middle kernel scores of members over time; 0 where no member stands. O(n log n).

    members: when their forecasts stand, questions apart. own: the kernel score of each, shape (n,). ordered: the
    changes of these intervals, if they have been computed.

    >>> standing = Intervals(*(np.array(column) for column in ([0, 1], [0, 0], [4, 5], [0, 1], [3, 2])))
    >>> middle = median_scores(standing, np.array([-7, 20]))
    >>> middle.low.tolist(), middle.high.tolist()
    ([-7, -7, -7, 0], [-7, 20, -7, 0])
    """
    if not len(own):
        return Consensus(*[own] * 6)
    levels, place = np.unique(own, return_inverse=True)
    middle = medians(members.start, members.end, members.question, place, ordered)
    low, high = (np.where(middle.stand > 0, levels[column], 0) for column in (middle.low, middle.high))
    return middle._replace(low=low, high=high)


def against_median(timeline: Steps, middle: Consensus) -> Against:
    """Compare with the mean of the two middle scores; whoever has a forecast earns 0 while no member stands.

    >>> timeline = Steps(*(np.array(column) for column in ([0, 2, 3], [2, 2, 0], [2, 1, 0], [0], [2])))
    >>> middle = Consensus(timeline.instant, timeline.stand, np.array([1, 5, 0]), np.array([4, 5, 0]), *timeline[3:])
    >>> against_median(timeline, middle).earned(np.array([7]), np.array([0]), np.array([2])).integers()
    [22]
    """
    lasts = np.where(timeline.stand > 0, timeline.lasts, 0)
    if len(middle.instant):
        middle = refined(middle, timeline)
    else:
        middle = middle._replace(low=np.zeros_like(lasts), high=np.zeros_like(lasts))
    level = WideInt.product(middle.low, lasts) + WideInt.product(middle.high, lasts)
    return Against(lasts << HALF_BITS, level.carried())
