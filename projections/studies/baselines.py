"""Differences from a baseline: everybody compared with one participant, and the test of Diebold and Mariano beside."""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from re import fullmatch
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.task_ids import HORIZON, task_values
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.core.powers import root_half_even
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.dependence import days_of
from forecast_ledger.projections.studies.expansion import student_share
from forecast_ledger.projections.studies.pairs import Differences, Pair, Season, pairs_of, season_of, with_p_values
from forecast_ledger.projections.studies.resampling import LEAST_CLUSTERS


class EqualAccuracy(NamedTuple):
    """The test of Diebold and Mariano that two are equally good.

    horizon: how many steps ahead forecasts are. periods: that differences are added up in. statistic, p: 1e-9.
    """

    horizon: int
    periods: int
    statistic: int
    p: int

    def turned(self) -> "EqualAccuracy":
        """Return the test of the same two, the other first."""
        return self._replace(statistic=-self.statistic)


class Compared(NamedTuple):
    """A participant compared with a baseline, rows of the board.

    pair: the numbers of the two, above 0 if the participant is better; its `adjusted` is for all who are compared with
    this baseline. test: None if nothing is said.
    """

    baseline: int
    participant: int
    pair: Pair
    test: EqualAccuracy | None


def diebold_mariano(sums: Sequence[int], weights: Sequence[int], horizon: int = 1) -> tuple[int, int] | None:
    """Return the statistic and the p-value of the test of Diebold and Mariano, 1e-9, as corrected for few periods.

    sums: of weighted differences in each of n periods, in order of time, in any unit. weights: the sums of weights.
    None if horizon >= n, or if the variance is not above 0.

    The mean difference is m = Σ sums / Σ weights, and e = (sum - m x weight) n / Σ weights is what a period deviates
    by, the difference less m if all weights are the same. With v = Σ e², and twice Σ e(t) e(t - k) for each lag k below
    the horizon h, the statistic is m √((n - h) (n - h + 1) / v), rounded half-even. The p-value is the share of
    Student's t with n - 1 degrees of freedom beyond it on both sides, rounded half-even. For h = 1 it is the t-test.

    Source: Diebold and Mariano (1995), Journal of Business & Economic Statistics 13(3):253-263,
    doi:10.1080/07350015.1995.10524599; Harvey, Leybourne and Newbold (1997), International Journal of Forecasting
    13(2):281-291, doi:10.1016/S0169-2070(96)00719-4, equation 9.

    >>> diebold_mariano([1, 2, 3, 6], [1, 1, 1, 1])  # 3 / √(14 / 3 / 4), three degrees of freedom
    (2777460299, 69136869)
    """
    count, total, whole = len(sums), sum(sums), sum(weights)
    apart = [period_sum * whole - total * weight for period_sum, weight in zip(sums, weights, strict=True)]
    varied = sum(each * each for each in apart)
    for lag in range(1, min(horizon, count)):
        varied += 2 * sum(one * other for one, other in zip(apart, apart[lag:], strict=False))
    if horizon >= count or varied <= 0:
        return None
    square = Fraction((total * whole) ** 2 * (count - horizon) * (count - horizon + 1), count**2 * varied)
    statistic = root_half_even(square * POINTS**2) * (1 if total > 0 else -1)
    with localcontext(WIDE):
        edge = WIDE.divide(Decimal(square.numerator), Decimal(square.denominator)).sqrt()
        p = (1 - student_share(edge, count - 1)) * POINTS
        return statistic, max(int(p.to_integral_value()), 0)


def baseline_differences(
    rules: RuleSet, scored: ContestScores, board_row: Int64Array, settled: Int64Array, seed: bytes
) -> list[Compared]:
    """Return each row of a board as a baseline, and the others with a common question; arguments as of `pairs`.

    Raises Refused(out_of_range) as `pairs` does. The test is of the differences by cluster, at the horizon that all
    questions share, else 1; if it is more than 1, by day. It is left out where the interval is, with clusters by two
    fields, and with fewer than LEAST_CLUSTERS periods.
    """
    people = int(board_row.max(initial=-1)) + 1
    if people < 2 or not (scored.questions.weight > 0).any():
        return []
    season = season_of(rules, scored, board_row, settled, seed, replicates=rules.replicates)
    every, tests = pairs_of(season), _Tests(season, scored)
    made = {pair[:2]: tests.of(pair) for pair in every}
    compared = []
    for baseline in range(people):
        for tested in with_p_values(season, [pair for pair in every if baseline in pair[:2]]):
            test, pair = made[tested[:2]], tested
            if tested.first == baseline:
                test, pair = test and test.turned(), tested.turned()
            compared.append(Compared(baseline, pair.first, pair, test))
    return compared


class _Tests:
    """The tests of the pairs of a season."""

    def __init__(self, season: Season, scored: ContestScores) -> None:
        units = season.standards.units
        self._season, self._alone = season, len(units.counts) == 1
        self._horizon = _horizon(scored, units.unit)
        period = np.arange(units.size)
        if self._horizon > 1:  # a cluster is of the last day of its questions
            np.maximum.at(period := np.zeros(units.size, np.int64), units.unit, days_of(season.rules, scored))
        self._period = period

    def of(self, pair: Pair) -> EqualAccuracy | None:
        """Return the test of a pair; None if nothing is said."""
        if pair.withheld or not self._alone:
            return None
        season, rows = self._season, (np.array([pair.first]), np.array([pair.second]))
        [apart], [both] = (differences := Differences(season, *rows)).apart, differences.both
        weights = np.add.reduceat((both * season.weight)[season.units], season.begins)
        common = np.flatnonzero(weights)
        _, period = np.unique(self._period[common], return_inverse=True)
        sums = np.zeros((2, int(period.max()) + 1), object)
        by_unit = np.zeros(len(weights), object)
        by_unit[apart.by_unit.units] = apart.by_unit.numerators
        for each, values in zip(sums, (by_unit, weights.astype(object)), strict=True):
            np.add.at(each, period, values[common])
        result = diebold_mariano(sums[0].tolist(), sums[1].tolist(), self._horizon)
        if result is None or sums.shape[1] < LEAST_CLUSTERS:
            return None
        return EqualAccuracy(self._horizon, sums.shape[1], *result)


def _horizon(scored: ContestScores, unit: Int64Array) -> int:
    """Return the horizon that all questions that count share, as a task id of a hub; 1 if there is none, or it is 0."""
    ids = (scored.questions.answers[number].question.question for number in np.flatnonzero(unit >= 0).tolist())
    horizons = {(task_values(question) or {}).get(HORIZON, "") for question in ids}
    text = horizons.pop() if len(horizons) == 1 else ""
    return max(int(text), 1) if fullmatch("[0-9]{1,4}", text) else 1
