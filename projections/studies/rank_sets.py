"""Sets of ranks: which ranks the data allow each participant, all at once, given what units contribute to totals."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import KIND_TOTALS, RuleSet
from forecast_ledger.projections.boards.leaderboard import TOTALS, BoardRow
from forecast_ledger.projections.boards.totals import kernel_of_kind, worst_score
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.core.estimates import Floats
from forecast_ledger.projections.core.powers import root_half_even
from forecast_ledger.projections.facts.columns import Contest
from forecast_ledger.projections.scores.question_groups import QUESTION_KINDS
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.clusters import units_of
from forecast_ledger.projections.studies.estimates import (
    QUANTILES,
    Near,
    above_root,
    least_sums,
    ratios,
    rough,
    rows_of_floats,
    square_of,
    squares_apart,
    squares_beside,
)
from forecast_ledger.projections.studies.flips import FLIPS, UNIT, statistic, statistics, step_down
from forecast_ledger.projections.studies.replicates import MOST_NUMBERS, Draws, Integers, Rows, draws_of, rows_of
from forecast_ledger.projections.studies.resampling import LEAST_CLUSTERS, Drawn, order_statistics

GRAIN = 10**18  # contributions in a point
_FINE = 10**9  # of what a weighted score is rounded to in 1e-15: 1e-24
_SCALE = 10**6  # of the two
_ONE = {"weight": WEIGHT, "covered": GRAIN * _SCALE, "questions": 1}  # of the sums that are divisors
_NUMBERS = 1 << 18  # in an array: pairs of a row at a time x replicates
_CELLS = 1 << 19  # in an array: some rows x all rows; or of pairs in replicates that are kept
_EXTREMES = 4  # rows with the largest sums, and as many with the smallest
_LEAST = GRAIN // POINTS  # of the root of a sum of squares: 1e-9 points, so that roundings are no differences


class RankSets(NamedTuple):
    """The best and the worst rank that participants may have, by row of the board.

    critical: the critical value of all pairs, 1e-6; None if there are no sets.
    """

    allowed: dict[int, tuple[int, int]]
    critical: int | None


NO_SETS = RankSets({}, None)


class Resolution(NamedTuple):
    """The difference of totals, 1e-9, from which on one would be significant.

    pairs: the number of these. needed: the least, the middle and the greatest of all pairs; empty if there is no pair,
    or none could be significant.
    """

    pairs: int
    needed: list[int]


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
    if not _ranked_by_total(contest.opened.rules):
        return NO_SETS
    compared = compared_rows(contest, scored, board, board_row, seed)
    if len(compared.rows) < 2:
        return NO_SETS
    sets = rank_sets(compared.parts, compared.flips, contest.opened.rules.level_ppm, compared.ranked)
    return sets._replace(allowed={row: sets.allowed[number] for number, row in enumerate(compared.rows)})


def board_marginal_sets(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], board_row: Int64Array, seed: bytes
) -> list[MarginalSet]:
    """Return the marginal sets of ranks of the rows of a board that have a rank, in its order.

    board_row: as of `board_rank_sets`, which also says who is compared.
    """
    rules, compared = contest.opened.rules, compared_rows(contest, scored, board, board_row, seed)
    allowed = dict[int, tuple[int, int]]()
    if len(compared.rows) > 1 and _ranked_by_total(rules):
        sets = marginal_sets(compared.parts, compared.flips, rules.level_ppm, compared.ranked)
        allowed = dict(zip(compared.rows, sets, strict=True))
    return [
        MarginalSet(row, clusters, allowed.get(number))
        for number, (row, clusters) in enumerate(zip(board, compared.clusters, strict=True))
        if row.rank is not None
    ]


class Compared(NamedTuple):
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


def compared_rows(
    contest: Contest, scored: ContestScores, board: Sequence[BoardRow], board_row: Int64Array, seed: bytes
) -> Compared:
    """Return what `board_rank_sets` compares; arguments as there."""
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
    return Compared(reached.tolist(), compared.tolist(), parts, flips, sum(ranked))


def _ranked_by_total(rules: RuleSet) -> bool:
    return rules.rank_by == "total" or rules.take == "positive_square"


def _counts(owner: Int64Array, cluster: Int64Array, people: int) -> Int64Array:
    """Return in how many clusters each row of the board has a score, shape (p,)."""
    met = np.zeros((people, int(cluster.max(initial=-1)) + 1), bool)
    met[owner, cluster] = True
    counts: Int64Array = np.count_nonzero(met, axis=1)
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
    pairs, alike = _Pairs(distinct, flips, _order(flips, level_ppm)), np.bincount(same)
    first = critical = pairs.critical(None)
    above, better, worse = pairs.above(critical, alike)
    while above and (lower := pairs.critical(critical)) < critical:
        critical, before = lower, above
        above, better, worse = pairs.above(critical, alike)
        if above == before:
            break
    allowed = {row: (1 + int(better[index]), ranked - int(worse[index])) for row, index in enumerate(same.tolist())}
    return RankSets(allowed, first)


def resolution(parts: Integers, flips: Int64Array, level_ppm: int, critical: int | None = None) -> Resolution:
    """Return the resolution of participants; arguments as of `rank_sets`. critical: of their sets, if it is known."""
    distinct, _ = _distinct(parts)
    if len(distinct) < 2:
        return Resolution(0, [])
    pairs = _Pairs(distinct, flips, _order(flips, level_ppm))
    return Resolution(pairs.count, pairs.needed(pairs.critical(None) if critical is None else critical))


def _order(flips: Int64Array, level_ppm: int) -> int:
    return -(-level_ppm * (len(flips.T) + 1) // 10**6)


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
        self._totals = self._rows.turned(self._plain)
        self._known: tuple[Any, list[_Cells]] = (0, [])

    @cached_property
    def _turned(self) -> Near:
        return self._rows.turned(self._flips)

    def _statistics(self, first: int, second: int, times: Int64Array) -> list[int]:
        """Return the exact statistics of a pair with the signs in each column of `times`."""
        apart = self._parts[first] - self._parts[second]
        squares = max(int(apart @ apart), _LEAST**2)
        return [statistic(total, squares) for total in (apart @ times.astype(object)).tolist()]

    def _of(self, one: int, others: Int64Array, norm: Near, sums: Near, times: Int64Array) -> Int64Array:
        """Return the statistics of a row and some others, shape (m, b). sums: of all rows with the signs `times`."""
        columns = np.arange(times.shape[1])
        apart = sums.cross(others, columns).less(sums.cross(np.array([one]), columns))

        def exact(row: int, at: Int64Array) -> list[int]:
            return self._statistics(one, int(others[row]), times[:, at])

        return statistics(apart, norm, exact)

    def beside(self, one: int, most: int) -> tuple[Int64Array, Int64Array]:
        """Return the rows that are significantly better, and worse, than a row, by the tests of its pairs alone.

        most: the largest adjusted p-value that is significant, in 1 / (1 + b).
        """
        others = np.delete(np.arange(self.people), one)
        norm = self._rows.distances_of(np.full_like(others, one), others, _LEAST)

        def turned(at: Int64Array) -> Int64Array:
            return self._of(one, others[at], norm.take(at), self._turned, self._flips)

        observed = self._of(one, others, norm, self._totals, self._plain)[:, 0]
        _, adjusted = step_down(observed, turned, max(_NUMBERS // self._flips.shape[1], 1))
        certain = others[adjusted <= most]
        ahead = self._totals.value[certain, 0] > self._totals.value[one, 0]
        return certain[ahead], certain[~ahead]

    def _blocks(self) -> Iterator[slice]:
        size = max(_CELLS // self.people, 1)
        return (slice(begin, min(begin + size, self.people)) for begin in range(0, self.people, size))

    def _above(self, ones: Int64Array, others: Int64Array, norm: Near, critical: int) -> BoolArray:
        """Return which observed statistics are larger. ones, others: the rows of pairs; all have the shape of norm."""
        value, guard = self._totals.value[:, 0], self._totals.guard[:, 0]
        apart = Near(value[others], guard[others]).less(Near(value[ones], guard[ones]))
        low, high = (np.rint(ends) for ends in ratios(apart, norm, UNIT))
        above = low > critical
        for cell in zip(*np.nonzero(~above & (high > critical)), strict=True):
            one, other = (int(np.broadcast_to(rows, above.shape)[cell]) for rows in (ones, others))
            above[cell] = one != other and self._statistics(one, other, self._plain)[0] > critical
        return above

    def _cells(self, below: int | None, least: "_Largest") -> Iterator[tuple[Int64Array, Int64Array, Int64Array, Near]]:
        """Yield ones, others, replicates and distances of pairs in replicates in which their statistic may be critical.

        below: only of pairs whose observed statistic is not above this one. Those left out cannot be above
        `least.floor`. By the inequality of Cauchy and Schwarz, (s - t)² <= (s² / x² + t² / y²) (x² + y²), so that a
        large statistic needs a row whose own sum is large beside its size, or rows that are near each other.
        """
        size = np.maximum(self._rows.size, _LEAST)
        own = squares_beside(self._turned, size)
        look, everywhere, every = rough(self._turned), np.arange(len(self._flips.T)), np.arange(self.people)
        for block in self._blocks():
            rows = every[block]
            norm = self._rows.distances_from(block, _LEAST)
            apart = squares_apart(norm, size[block], size.T)
            kept = np.ones(apart.shape, bool)
            if below is not None:
                kept = ~self._above(rows[:, None], every, norm, below)
            kept[rows - block.start, rows] = False
            cuts = np.quantile(apart, QUANTILES, axis=1, method="lower").T
            for number, one in enumerate(rows.tolist()):
                need = square_of(least.floor, UNIT)
                far = (2 * own[one] >= need * cuts[number][:, None]).sum(axis=1) * self.people
                cut = cuts[number][np.argmin(far + QUANTILES * (self.people * len(own[one])))]
                wide = kept[number] & (apart[number] >= cut)
                for others, columns in (
                    (wide, np.flatnonzero(2 * own[one] >= need * cut)),
                    (kept[number] & ~wide, everywhere),
                ):
                    chosen = np.flatnonzero(others)
                    if not len(chosen) or not len(columns):
                        continue
                    near = Near(norm.value[number, chosen, None], norm.guard[number, chosen, None])
                    reached = look.may_reach(one, chosen, columns, least_sums(near, UNIT, least.floor))
                    row, column = np.nonzero(reached)
                    if len(row):
                        yield np.full(len(row), one), chosen[row], columns[column], near.take(row)

    def _turns(self, below: int | None, least: "_Largest") -> Iterator["_Cells"]:
        """Yield what `_cells` yields, with bounds of the statistics in place of distances.

        First come pairs of rows with large and small sums, so that the floor is soon high.
        """
        yield from (self._bounded(*cells) for cells in self._extremes(below))
        for cells in self._cells(below, least):
            yield self._bounded(*cells)

    def _bounded(self, ones: Int64Array, others: Int64Array, columns: Int64Array, norm: Near) -> "_Cells":
        value, guard = self._turned
        apart = Near(value[others, columns], guard[others, 0]).less(Near(value[ones, columns], guard[ones, 0]))
        low, high = ratios(apart, Near(norm.value[:, 0], norm.guard[:, 0]), UNIT)
        return _Cells(ones, others, columns, low, high)

    def _extremes(self, below: int | None) -> Iterator[tuple[Int64Array, Int64Array, Int64Array, Near]]:
        """Yield what `_cells` yields, of pairs of a row with a large and one with a small sum beside its size."""
        beside = self._turned.beside(np.maximum(self._rows.size, _LEAST))
        most = min(_EXTREMES, self.people // 2)
        order = np.argpartition(beside, (most - 1, self.people - most), axis=0) if most else np.zeros((0, 0), np.int64)
        for low in range(most):
            for high in range(most):
                ones, others, columns = order[low], order[self.people - 1 - high], np.arange(order.shape[1])
                norm = self._rows.distances_of(ones, others, _LEAST)
                if below is not None:
                    kept = np.flatnonzero(~self._above(ones, others, Near(norm.value[:, 0], norm.guard[:, 0]), below))
                    ones, others, columns, norm = ones[kept], others[kept], columns[kept], norm.take(kept)
                yield ones, others, columns, norm

    def critical(self, below: int | None) -> int:
        """Return the critical value of the pairs whose observed statistic is not above this one; None for all pairs.

        Pairs that could not be critical among all of some pairs cannot be among fewer, unless the value falls.
        """
        largest, (floor, every) = _Largest(self._flips.shape[1], self._order), self._known
        known = [] if below is None else [self._not_above(below, cells) for cells in every]
        for cells in known:
            largest.add(*cells[2:])
        if not known or largest.floor < floor:
            largest, known, count = _Largest(self._flips.shape[1], self._order), [], 0
            for cells in self._turns(below, largest):
                largest.add(*cells[2:])
                near = np.flatnonzero(cells.high >= largest.floor)
                if (count := count + len(near)) <= _CELLS:
                    known.append(_Cells._make(column[near] for column in cells))
            known = known if count <= _CELLS else []
            self._known = largest.floor, known
        low, high = largest.ends()
        if np.rint(low) == np.rint(high):
            return int(np.rint(low))
        exact = np.where(largest.low > high, int(np.rint(high)) + 1, 0)  # above it, or below
        for ones, others, columns, lows, highs in known or self._turns(below, largest):
            for cell in np.flatnonzero((highs >= low) & (lows <= high)).tolist():
                at = columns[[cell]]
                [number] = self._statistics(int(ones[cell]), int(others[cell]), self._flips[:, at])
                exact[at] = max(int(exact[at[0]]), number)
        return int(np.sort(exact)[self._order - 1])

    def _not_above(self, critical: int, cells: "_Cells") -> "_Cells":
        """Return the cells of pairs whose observed statistic is not larger."""
        norm = self._rows.distances_of(cells.ones, cells.others, _LEAST)
        above = self._above(cells.ones, cells.others, Near(norm.value[:, 0], norm.guard[:, 0]), critical)
        return _Cells._make(column[~above] for column in cells)

    def above(self, critical: int, alike: Int64Array) -> tuple[int, Int64Array, Int64Array]:
        """Return how many pairs have a larger statistic, twice, and how many are then better and worse than each.

        alike: how many participants have the parts of each row.
        """
        total, (better, worse), every = 0, np.zeros((2, self.people), np.int64), np.arange(self.people)
        value = self._totals.value[:, 0]
        for block in self._blocks():
            rows = every[block]
            above = self._above(rows[:, None], every, self._rows.distances_from(block, _LEAST), critical)
            ahead = value > value[rows, None]
            total += int(above.sum())
            better[block], worse[block] = (above & ahead) @ alike, (above & ~ahead) @ alike
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
        near = self._varied(Fraction(critical**2 * units, over * _LEAST**2))
        starts = [first * (2 * self.people - first - 1) // 2 for first in range(self.people)]

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

    def _varied(self, share: Fraction) -> Near:
        """Return the roots of share x Σ (d - mean)² of all pairs, each row with the later ones, shape (1, pairs)."""
        rows, parts = self._rows.centred(), list[tuple[Floats, Floats]]()
        for block in self._blocks():
            norm, later = rows.distances_from(block, 0), np.arange(self.people) > np.arange(self.people)[block, None]
            parts.append((norm.value[later], norm.guard[later]))
        value, guard = (np.concatenate(each)[None] for each in zip(*parts, strict=True))
        return Near(value, guard).scaled(share)


class _Cells(NamedTuple):
    """Pairs in replicates in which their statistic may be critical, and bounds of it; shape (k,)."""

    ones: Int64Array
    others: Int64Array
    columns: Int64Array
    low: Floats
    high: Floats


class _Largest:
    """Bounds of the largest statistic of each replicate, as far as it may be critical."""

    def __init__(self, replicates: int, order: int) -> None:
        """order: number of the critical one, from 1."""
        self.low, self.high, self._order = np.zeros(replicates), np.zeros(replicates), order
        self.floor = self.low[0]

    def add(self, columns: Int64Array, low: Floats, high: Floats) -> None:
        """Add statistics in replicates, shape (k,) each."""
        np.maximum.at(self.low, columns, low)
        np.maximum.at(self.high, columns, high)
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
