"""Sets of ranks: which ranks the data allow each participant, all at once, given what units contribute to totals."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import KIND_TOTALS, RuleSet
from forecast_ledger.projections.boards.leaderboard import TOTALS, BoardRow
from forecast_ledger.projections.boards.totals import kernel_of_kind, worst_score
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.core.estimates import Floats
from forecast_ledger.projections.core.powers import root_half_even
from forecast_ledger.projections.facts.columns import Contest
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.scores.time_weighted import QUESTION_KINDS, ContestScores
from forecast_ledger.projections.studies.clusters import units_of
from forecast_ledger.projections.studies.estimates import Near, above_root, least_sums, ratios, rough, rows_of_floats
from forecast_ledger.projections.studies.flips import FLIPS, UNIT, statistic, statistics, step_down
from forecast_ledger.projections.studies.replicates import MOST_NUMBERS, Draws, Integers, Rows, draws_of, rows_of
from forecast_ledger.projections.studies.resampling import LEAST_CLUSTERS, Drawn, order_statistics

GRAIN = 10**18  # contributions in a point
_FINE = 10**9  # of what a weighted score is rounded to in 1e-15: 1e-24
_SCALE = 10**6  # of the two
_ONE = {"weight": WEIGHT, "covered": GRAIN * _SCALE, "questions": 1}  # of the sums that are divisors
_NUMBERS = 1 << 18  # in an array: pairs of a row at a time x replicates
_LEAST = GRAIN // POINTS  # of the root of a sum of squares: 1e-9 points, so that roundings are no differences


class RankSets(NamedTuple):
    """The best and the worst rank that participants may have, by row of the board.

    needed: the difference of totals, 1e-9, from which on one would be significant: the least, the middle and the
    greatest of all pairs; empty if there is no pair, or none could be significant. pairs: the number of these.
    """

    allowed: dict[int, tuple[int, int]]
    pairs: int
    needed: list[int]


NO_SETS = RankSets({}, 0, [])


class MarginalSet(NamedTuple):
    """A row of a board with a rank, in how many clusters it has a score, and the ranks that it alone may have.

    ranks: the best and the worst; None if it has scores in fewer than LEAST_CLUSTERS clusters, or cannot be compared.
    """

    row: BoardRow
    clusters: int
    ranks: tuple[int, int] | None


def board_rank_sets(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], board_row: Int64Array, seed: bytes
) -> RankSets:
    """Return the sets of ranks of a board's rows that have a rank and scores in at least LEAST_CLUSTERS clusters.

    board_row: the row of the board of each participant code, -1 without one, shape (c,). The others are compared with
    nobody, and may have any rank. If ranks follow takes that depend on coverage, there are no sets: a take is no sum of
    what the units contribute.
    """
    compared = _compared(contest, scored, board, board_row, seed)
    if len(compared.rows) < 2:
        return NO_SETS
    sets = rank_sets(compared.parts, compared.flips, contest.opened.rules.level_ppm, compared.ranked)
    by_total = _ranked_by_total(contest.opened.rules)
    allowed = {row: sets.allowed[number] for number, row in enumerate(compared.rows)} if by_total else {}
    return sets._replace(allowed=allowed)


def board_marginal_sets(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], board_row: Int64Array, seed: bytes
) -> list[MarginalSet]:
    """Return the marginal sets of ranks of the rows of a board that have a rank, in its order.

    board_row: as of `board_rank_sets`, which also says who is compared.
    """
    rules, compared = contest.opened.rules, _compared(contest, scored, board, board_row, seed)
    allowed = dict[int, tuple[int, int]]()
    if len(compared.rows) > 1 and _ranked_by_total(rules):
        sets = marginal_sets(compared.parts, compared.flips, rules.level_ppm, compared.ranked)
        allowed = dict(zip(compared.rows, sets, strict=True))
    return [
        MarginalSet(row, clusters, allowed.get(number))
        for number, (row, clusters) in enumerate(zip(board, compared.clusters, strict=True))
        if row.rank is not None
    ]


class _Compared(NamedTuple):
    """What the sets of ranks of a board are made of.

    clusters: in which each row of the board has a score. rows: of those that are compared. parts: what units contribute
    to their totals, the larger the better, shape (p, u). flips: see `Units.turns`, shape (u, b). ranked: the number of
    rows with a rank.
    """

    clusters: list[int]
    rows: list[int]
    parts: Integers
    flips: Int64Array
    ranked: int


def _compared(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], board_row: Int64Array, seed: bytes
) -> _Compared:
    rules, units = contest.opened.rules, units_of(contest.opened.rules, scored)
    rows = rows_of(rules, scored, units, board_row)
    reached = np.min([_counts(rows.owner, cluster_of[rows.unit], len(board)) for cluster_of in units.clusters], axis=0)
    ranked = [row.rank is not None for row in board]
    compared = np.flatnonzero(ranked & (reached >= LEAST_CLUSTERS))
    kept = np.full(len(board), -1)
    kept[compared] = np.arange(len(compared))
    kept_rows = rows.take(np.flatnonzero(kept[rows.owner] >= 0))
    draws = draws_of(scored, units, np.zeros((0, units.size), np.int64), len(compared))
    parts, flips = np.zeros((0, units.size), object), np.zeros((units.size, 0), np.int64)
    if len(compared) > 1:
        sign = -1 if lower_is_better(rules) else 1
        parts = contributions(rules, kept_rows._replace(owner=kept[kept_rows.owner]), draws) * sign
        flips = units.turns(seed, FLIPS).T
    return _Compared(reached.tolist(), compared.tolist(), parts, flips, sum(ranked))


def _ranked_by_total(rules: RuleSet) -> bool:
    return rules.rank_by == "total" or rules.take == "positive_square"


def _counts(owner: Int64Array, cluster: Int64Array, people: int) -> Int64Array:
    """Return in how many clusters each row of the board has a score, shape (p,)."""
    met = np.unique(np.stack([owner, cluster]), axis=1)[0]
    counts: Int64Array = np.bincount(met, minlength=people)
    return counts


def rank_sets(parts: Integers, flips: Int64Array, level_ppm: int, ranked: int) -> RankSets:
    """Return the sets of ranks of participants whose totals, the larger the better, are sums of these parts.

    parts: shape (p, u). flips: see `Units.turns`, shape (u, b). ranked: the number of participants
    with a rank, p or more.

    The statistic of a pair is that of `flips`, of the differences of their parts; the root is at least 1e-9 points. The
    critical value is the order statistic at level x (b + 1), rounded up, of the largest statistic of all pairs. Pairs
    above it are significant; then it is that of the other pairs, until no further pair is significant. The best rank
    is 1 + the number who are significantly better, the worst is `ranked` - the number who are significantly worse.

    Source: Mogstad et al. (2023), Review of Economic Studies 91(1):476-518, doi:10.1093/restud/rdad006, with steps;
    Romano and Wolf (2005), Journal of the American Statistical Association 100(469):94-108,
    doi:10.1198/016214504000000539.
    """
    distinct, same = _distinct(parts)
    pairs, alike = _Pairs(distinct, flips, -(-level_ppm * (flips.shape[1] + 1) // 10**6)), np.bincount(same)
    first = critical = pairs.critical(None)
    above, better, worse = pairs.above(critical, alike)
    while above:
        critical = pairs.critical(critical)
        before, (above, better, worse) = above, pairs.above(critical, alike)
        if above == before:
            break
    allowed = {row: (1 + int(better[index]), ranked - int(worse[index])) for row, index in enumerate(same.tolist())}
    return RankSets(allowed, pairs.count, pairs.needed(first))


def marginal_sets(parts: Integers, flips: Int64Array, level_ppm: int, ranked: int) -> list[tuple[int, int]]:
    """Return the best and the worst rank that each participant alone may have; arguments as of `rank_sets`.

    Each participant has a family of tests of its own: its pairs with all others, of which the p-values are adjusted by
    the largest statistic, step by step. Pairs with one of at most 1 - level are significant: those whose statistic is
    above the critical value that `rank_sets` would find for these pairs. The set of a participant is within that of
    `rank_sets`, as the largest statistic of fewer pairs is not larger.

    Source: as of `rank_sets`: Mogstad et al. (2023), section 3.2, with steps.
    """
    distinct, same = _distinct(parts)
    pairs, alike = _Pairs(distinct, flips, 1), np.bincount(same)
    most = (10**6 - level_ppm) * (flips.shape[1] + 1) // 10**6
    ranges = []
    for index in range(len(distinct)):
        better, worse = (int(alike[rows].sum()) for rows in pairs.beside(index, most))
        ranges.append((1 + better, ranked - worse))
    return [ranges[index] for index in same.tolist()]


def _distinct(parts: Integers) -> tuple[Integers, Int64Array]:
    """Return the rows that differ, in the order in which they come first, and which of them each row is."""
    rows: dict[tuple[int, ...], int] = {}
    same = np.array([rows.setdefault(tuple(row), len(rows)) for row in parts.tolist()], np.int64)
    return np.array([*rows], object), same


class _Pairs:
    """The pairs of participants whose parts differ; rows of floats are in 1e-18 points."""

    def __init__(self, parts: Integers, flips: Int64Array, order: int) -> None:
        """order: number of the order statistic, from 1. Raises Refused(out_of_range): too many pairs."""
        self.people = len(parts)
        self.count = self.people * (self.people - 1) // 2
        if self.count > MOST_NUMBERS:
            raise Refused("out_of_range", "intervals", None, f"{self.people:,} participants are too many to compare")
        self._parts, self._flips, self._order = parts - parts.sum(axis=0) // len(parts), flips, order
        self._rows = rows_of_floats(self._parts)
        self._plain = np.ones((len(flips), 1), np.int64)
        self._turned, self._totals = (self._rows.turned(times) for times in (flips, self._plain))
        guard = self._turned.guard.max(keepdims=True)
        extremes = self._turned.value.max(axis=0), self._turned.value.min(axis=0)
        self._ends = [Near(end[None], guard) for end in extremes]
        self._rough = rough(self._turned)

    def _apart(self, sums: Near, first: int, later: Int64Array, columns: Int64Array) -> Near:
        """Return the differences of sums of a row and some later ones."""
        return sums.cross(later, columns).less(sums.cross(np.array([first]), columns))

    def _norm(self, first: int) -> Near:
        return self._rows.distances(first, slice(first + 1, None), _LEAST)

    def _statistics(self, first: int, second: int, times: Int64Array) -> list[int]:
        """Return the exact statistics of a pair with the signs in each column of `times`."""
        apart = self._parts[first] - self._parts[second]
        squares = max(int(apart @ apart), _LEAST**2)
        return [statistic(total, squares) for total in (apart @ times.astype(object)).tolist()]

    def observed(self, first: int, norm: Near) -> Int64Array:
        """Return the statistics of a row and each later one."""
        return self._of(first, np.arange(first + 1, self.people), norm, self._totals, self._plain)[:, 0]

    def _of(self, one: int, others: Int64Array, norm: Near, sums: Near, times: Int64Array) -> Int64Array:
        """Return the statistics of a row and some others, shape (m, b). sums: of all rows with the signs `times`."""
        apart = self._apart(sums, one, others, np.arange(times.shape[1]))

        def exact(row: int, at: Int64Array) -> list[int]:
            return self._statistics(one, int(others[row]), times[:, at])

        return statistics(apart, norm, exact)

    def beside(self, one: int, most: int) -> tuple[Int64Array, Int64Array]:
        """Return the rows that are significantly better, and worse, than a row, by the tests of its pairs alone.

        most: the largest adjusted p-value that is significant, in 1 / (1 + b).
        """
        others = np.delete(np.arange(self.people), one)
        norm = self._rows.distances(one, others, _LEAST)

        def turned(at: Int64Array) -> Int64Array:
            return self._of(one, others[at], norm.take(at), self._turned, self._flips)

        observed = self._of(one, others, norm, self._totals, self._plain)[:, 0]
        _, adjusted = step_down(observed, turned, max(_NUMBERS // self._flips.shape[1], 1))
        certain = others[adjusted <= most]
        ahead = self._totals.value[certain, 0] > self._totals.value[one, 0]
        return certain[ahead], certain[~ahead]

    def _turns(
        self, below: int | None, least: "_Largest"
    ) -> Iterator[tuple[int, Int64Array, Int64Array, Floats, Floats]]:
        """Yield bounds of statistics of replicates: row, later rows, replicates, and the bounds.

        below: only of pairs whose observed statistic is not above this one. Bounds that cannot be above `least.floor`
        are left out.
        """
        for first in range(self.people - 1):
            norm = self._norm(first)
            kept = np.arange(self.people - first - 1)
            if below is not None:
                kept = np.flatnonzero(self.observed(first, norm) <= below)
            if not len(kept):
                continue
            turned = self._turned.take(np.array([first]))
            nearest = norm.take(kept[[np.argmin(norm.low[kept, 0])]])
            most = np.maximum(*(ratios(end.less(turned), nearest, UNIT)[1] for end in self._ends))
            columns = np.flatnonzero(most[0] >= least.floor)
            later = kept + first + 1
            reached = self._rough.may_reach(first, later, columns, least_sums(norm.take(kept), UNIT, least.floor))
            chosen, columns = np.flatnonzero(reached.any(axis=1)), columns[reached.any(axis=0)]
            if len(columns):
                apart = self._apart(self._turned, first, later[chosen], columns)
                yield first, later[chosen], columns, *ratios(apart, norm.take(kept[chosen]), UNIT)

    def critical(self, below: int | None) -> int:
        """Return the critical value of the pairs whose observed statistic is not above this one; None for all pairs."""
        largest = _Largest(self._flips.shape[1], self._order)
        for _, _, columns, low, high in self._turns(below, largest):
            largest.add(columns, low, high)
        low, high = largest.ends()
        if np.rint(low) == np.rint(high):
            return int(np.rint(low))
        exact = np.where(largest.low > high, int(np.rint(high)) + 1, 0)  # above it, or below
        for first, later, columns, lows, highs in self._turns(below, largest):
            for row, column in np.argwhere((highs >= low) & (lows <= high)).tolist():
                at = columns[[column]]
                exact[at] = max(int(exact[at[0]]), *self._statistics(first, int(later[row]), self._flips[:, at]))
        return int(np.sort(exact)[self._order - 1])

    def above(self, critical: int, alike: Int64Array) -> tuple[int, Int64Array, Int64Array]:
        """Return how many pairs have a larger statistic, and how many are then better and worse than each.

        alike: how many participants have the parts of each row.
        """
        total, (better, worse) = 0, np.zeros((2, self.people), np.int64)
        for first in range(self.people - 1):
            certain = np.flatnonzero(self.observed(first, self._norm(first)) > critical)
            later = certain + first + 1
            ahead = self._totals.value[first, 0] > self._totals.value[later, 0]
            total += len(later)
            for group, count, sums in ((later[ahead], worse, better), (later[~ahead], better, worse)):
                count[first] += alike[group].sum()
                sums[group] += alike[first]
        return total, better, worse

    def needed(self, critical: int) -> list[int]:
        """Return the least, the middle and the greatest difference, 1e-9, at which a pair is significant.

        It is the difference at which its statistic is the critical value, if the differences of units varied around
        their mean as they do: critical x the root of (u Σ d² - (Σ d)²) / (u - critical²), for u units with the
        differences d. Pairs whose differences vary by no more than 1e-9 points, the root of Σ (d - mean)², are left
        out.
        """
        units = len(self._flips)
        over = units * UNIT**2 - critical**2
        if not self.count or over <= 0:
            return []
        starts = [first * (2 * self.people - first - 1) // 2 for first in range(self.people)]
        share = Fraction(critical**2 * units, over * _LEAST**2)
        every = [self._rows.distances(first, slice(first + 1, None), 0, share) for first in range(self.people - 1)]
        near = Near(*(np.concatenate(ends).T for ends in zip(*every, strict=True)))

        def varied(index: int) -> int:
            first = int(np.searchsorted(starts, index, side="right")) - 1
            apart = self._parts[first] - self._parts[first + 1 + index - starts[first]]
            return units * int(apart @ apart) - int(apart.sum()) ** 2

        (varies,), (doubtful,) = above_root(near, Fraction(critical**2 * units, over))
        for index in np.flatnonzero(doubtful).tolist():
            varies[index] = varied(index) > units * _LEAST**2
        kept = np.flatnonzero(varies)
        if not len(kept):
            return []

        def exact(_: int, at: Int64Array) -> list[Fraction]:
            every = (Fraction(critical**2 * varied(index), over * _LEAST**2) for index in kept[at].tolist())
            return [Fraction(root_half_even(square)) for square in every]

        indices = (0, (len(kept) - 1) // 2, len(kept) - 1)
        drawn = Drawn(Near(near.value[:, kept], near.guard[:, kept]), np.ones((1, len(kept)), bool), exact)
        least, middle, greatest = order_statistics(drawn, indices)[0].tolist()
        return [least, middle, greatest]


class _Largest:
    """Bounds of the largest statistic of each replicate, as far as it may be critical."""

    def __init__(self, replicates: int, order: int) -> None:
        """order: number of the critical one, from 1."""
        self.low, self.high, self._order = np.zeros(replicates), np.zeros(replicates), order
        self.floor = self.low[0]

    def add(self, columns: Int64Array, low: Floats, high: Floats) -> None:
        """Add statistics of some replicates, shape (k, columns)."""
        self.low[columns] = np.maximum(self.low[columns], low.max(axis=0))
        self.high[columns] = np.maximum(self.high[columns], high.max(axis=0))
        self.floor = self.ends()[0]

    def ends(self) -> tuple[Floats, Floats]:
        """Return bounds of the critical value."""
        low, high = (np.partition(ends, self._order - 1)[self._order - 1] for ends in (self.low, self.high))
        return low, np.maximum(low, high)


def contributions(rules: RuleSet, rows: Rows, draws: Draws) -> Integers:
    """Return what each unit contributes to the total of each row of a board, 1e-18 points, shape (p, u).

    Their sums are the totals, less what all have in common. A total is a sum of contributions if its divisor is a
    number. If it is a quotient N / D, such as the mean over the questions that a participant has forecast on,
    N / D = t + Σ (n - t d) / D over the units for every number t, where n and d are what a unit adds to N and D. With t
    the quotient of all participants together, nothing is added where a participant has no forecast.

    Each weighted score, and each weighted coverage, is rounded half-even to 1e-24; contributions, and the number that
    totals have in common, are rounded down. A total whose divisor is the least that the rules allow is a sum; what is
    common is then shared out by the weights of the units.
    """
    _, _, divisor, floored = TOTALS[rules.total]
    if rules.total in KIND_TOTALS:
        return _of_kinds(rules, rows, draws)
    scores = _by_unit(rows, "score", draws)
    if isinstance(divisor, int):
        plain: Integers = scores // (divisor * _SCALE)
        return plain
    one, parts = _ONE[divisor], _by_unit(rows, divisor, draws)
    whole = parts.sum(axis=1)
    if floored:
        least, weights = rules.least_coverage * one, draws.weights.sum(axis=0).astype(object)
        small = np.flatnonzero(whole < least)
        parts[small], whole[small] = weights * least // weights.sum(), least
    common = int(scores.sum()) * one // (int(whole.sum()) * _SCALE)
    result: Integers = (scores * one - parts * (common * _SCALE)) // (whole * _SCALE)[:, None]
    return result


def _by_unit(rows: Rows, name: str, draws: Draws) -> Integers:
    """Return the sums of a column of rows by unit: of scores and coverages, 1e-24; of weights, 1e-6; or questions."""
    sums: Integers = np.zeros((draws.people, draws.times.shape[1]), object)
    values: list[int] = [1] * len(rows.owner)
    if name == "weight":
        values = rows.weight.tolist()
    elif name != "questions":
        values = [half_even(top * _FINE, below) for top, below in getattr(rows, name).quotients()]
    np.add.at(sums, (rows.owner, rows.unit), np.array(values, object))
    return sums


def _of_kinds(rules: RuleSet, rows: Rows, draws: Draws) -> Integers:
    """Return contributions to the sum of the means of each kind, in percent; a missing score is the worst one."""
    total: Integers = np.zeros((draws.people, draws.times.shape[1]), object)
    for number, kind in enumerate(QUESTION_KINDS):
        weights = draws.weights[number].astype(object)
        if weights.any():
            kind_rows, worst = rows.of_kind(number), worst_score(kernel_of_kind(rules, kind)) * GRAIN
            missing = weights - _by_unit(kind_rows, "weight", draws)
            over = int(weights.sum()) * int(TOTALS[rules.total].divisor)
            total += 100 * (_by_unit(kind_rows, "score", draws) + missing * worst) // over
    return total
