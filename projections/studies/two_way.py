"""Effects of participants and questions on scores: score = effect of the participant + effect of the question + rest.

The effects are those with the least sum of squares of the rest, each weighted by its question. Questions that the same
participants have a score on share an equation, and so do participants with scores on the same questions. The equations
are solved exactly, digit by digit in powers of a prime.

Source: two-way analysis of variance with unequal numbers, Yates (1934), doi:10.1080/01621459.1934.10502686; as
ForecastBench adjusts Brier scores for difficulty, Karger et al. (2025), arXiv:2409.19839. For the solutions, Dixon
(1982), Exact solution of linear equations using p-adic expansions, Numerische Mathematik 40:137-141,
doi:10.1007/BF01459082; the numbers from their residues by Wang (1981), doi:10.1145/800206.806398.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import gcd, isqrt, lcm, prod
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.core.arrays import Int64Array, distinct, int64_array, run_starts

MOST_WORK = 20 * 10**9  # products of 64-bit integers; about half a minute
_PRIMES_BELOW, _LEAST_PRIME = 1 << 26, 1 << 10
_FITS = 1 << 62  # sums below this fit in 64 bits


class TwoSidedSystem(NamedTuple):
    """Equations for x of each row and y of each column, where `present` connects all rows and columns.

    Row i: degree_i x_i + Σ_j present_ij column_weight_j y_j = row_total_i, degree_i = Σ_j present_ij column_weight_j;
    the equations of columns likewise. They determine x and y up to a number that is added to every x and taken from
    every y. present: shape (rows, columns), 0 or 1. weights: > 0. The totals are such that there is a solution.
    """

    present: Int64Array
    row_weight: Int64Array
    column_weight: Int64Array
    row_total: list[int]
    column_total: list[int]

    def transposed(self) -> "TwoSidedSystem":
        """Return the same equations with rows and columns exchanged."""
        weights, totals = (self.column_weight, self.row_weight), (self.column_total, self.row_total)
        return TwoSidedSystem(self.present.T.copy(), *weights, *totals)

    @property
    def row_degree(self) -> Int64Array:
        """The factor of x in the equation of each row."""
        return self.present @ self.column_weight

    @property
    def column_degree(self) -> Int64Array:
        """The factor of y in the equation of each column."""
        return self.row_weight @ self.present


class TwoSidedSolution(NamedTuple):
    """The numerators of x and y, over one denominator; the first of the longer side's counterpart is 0."""

    x: list[int]
    y: list[int]
    denominator: int


def solve(system: TwoSidedSystem) -> TwoSidedSolution:
    """Return the solution in which the first x is 0; the first y, if there are more rows than columns.

    Raises Refused (out_of_range): the system is too large.

    >>> both = TwoSidedSystem(np.ones((1, 2), np.int64), np.ones(1, np.int64), np.ones(2, np.int64), [3], [1, 2])
    >>> solve(both)
    TwoSidedSolution(x=[0], y=[1, 2], denominator=1)
    """
    rows, columns = system.present.shape
    if rows > columns:
        y, x, denominator = solve(system.transposed())
        return TwoSidedSolution(x, y, denominator)
    x, denominator = _short_side(system)
    sums = (
        system.present.T @ np.array([w * each for w, each in zip(system.row_weight.tolist(), x, strict=True)], object)
    ).tolist()
    degrees = system.column_degree.tolist()
    common = lcm(*degrees)
    y = [
        (total * denominator - each) * (common // degree)
        for total, each, degree in zip(system.column_total, sums, degrees, strict=True)
    ]
    return TwoSidedSolution([each * common for each in x], y, denominator * common)


def _short_side(system: TwoSidedSystem) -> tuple[list[int], int]:
    """Return the numerators of x and their denominator; the first x is 0."""
    if len(system.row_total) == 1:
        return [0], 1
    reduced = _Reduced(system)
    numerators, common = [0], 1
    modulus, most, least = reduced.residues()
    for residue in least:
        numerator = _signed(residue * common % modulus, modulus)
        if abs(numerator) > most:
            numerator, more = _reconstructed(residue * common % modulus, modulus, most)
            numerators, common = [each * more for each in numerators], common * more
        numerators.append(numerator)
    return numerators, common


def _signed(residue: int, modulus: int) -> int:
    return residue - modulus if 2 * residue > modulus else residue


def _reconstructed(residue: int, modulus: int, most: int) -> tuple[int, int]:
    """Return the fraction with this residue whose numerator is at most `most`, by Euclid's algorithm."""
    before, now, factor_before, factor = modulus, residue, 0, 1
    while now > most:
        quotient, rest = divmod(before, now)
        before, now = now, rest
        factor_before, factor = factor, factor_before - quotient * factor
    return (now, factor) if factor > 0 else (-now, -factor)


class _Reduced:
    """The system without its first row and first x, so that it has one solution."""

    def __init__(self, system: TwoSidedSystem) -> None:
        self.present = system.present[1:]
        self.across = np.ascontiguousarray(self.present.T)
        self.row_weight, self.row_degree = system.row_weight[1:], system.row_degree[1:]
        self.column_weight, self.column_degree = system.column_weight, system.column_degree
        self.totals = system.row_total[1:], system.column_total

    def bounds(self) -> tuple[int, int]:
        """Return what no numerator and no denominator of the solution exceeds, by Hadamard's inequality."""
        rows = zip(self.row_degree.tolist(), self.row_weight.tolist(), self.present.sum(1).tolist(), strict=True)
        columns = zip(
            self.column_degree.tolist(), self.column_weight.tolist(), self.present.sum(0).tolist(), strict=True
        )
        squares = [degree**2 + count * weight**2 for side in (rows, columns) for degree, weight, count in side]
        every, total = prod(squares), sum(each**2 for side in self.totals for each in side)
        return isqrt(every * total) + 1, isqrt(every) + 1

    def residues(self) -> tuple[int, int, Iterator[int]]:
        """Return a modulus, what no numerator exceeds, and the residue of each x but the first."""
        most, least = self.bounds()
        for prime in _primes(self._prime_below()):
            digits = -(-(2 * most * least + 1).bit_length() // (prime.bit_length() - 1))
            self._check_work(digits)
            lifted = _Lifted.of(self, prime)
            if lifted is not None:
                return prime**digits, most, iter(_joined([*lifted.digits(digits)], prime))
        raise _too_large("its weights need more than 64 bits")

    def _prime_below(self) -> int:
        """Return a number such that sums of residues below it fit in 64 bits."""
        degree = max(int(self.row_degree.max()), int(self.column_degree.max()))
        return min(_PRIMES_BELOW, isqrt(_FITS // max(self.present.shape)), _FITS // (4 * degree))

    def _check_work(self, digits: int) -> None:
        rows, columns = self.present.shape
        work = 2 * rows**3 + digits * (4 * rows * columns + rows**2)
        if work > MOST_WORK:
            raise _too_large(f"it has {rows + 1:,} and {columns:,} that differ in whom they have scores with")


def _too_large(detail: str) -> Refused:
    remedy = "fewer participants or questions that differ in this way"
    return Refused("out_of_range", "difficulty", None, f"the exact fit would take too long: {detail}", remedy=remedy)


class _Lifted(NamedTuple):
    """The system modulo a prime. inverse: of the system of x alone, after y is eliminated."""

    system: _Reduced
    prime: int
    inverse: Int64Array
    column_inverse: Int64Array

    @classmethod
    def of(cls, system: _Reduced, prime: int) -> "_Lifted | None":
        """Return the system modulo a prime; None if it has no single solution there."""
        if not (system.column_degree % prime).all():
            return None
        inverses = int64_array([pow(degree, -1, prime) for degree in system.column_degree.tolist()])
        shares = system.column_weight % prime * inverses % prime
        alone = (system.present * shares % prime) @ system.across % prime * (system.row_weight % prime) % prime
        inverse = _inverse((np.diag(system.row_degree % prime) - alone) % prime, prime)
        return None if inverse is None else cls(system, prime, inverse, inverses)

    def digits(self, count: int) -> Iterator[Int64Array]:
        """Yield the digits of x in base `prime`, the lowest first; shape (rows,)."""
        system, prime = self.system, self.prime
        shares = system.column_weight % prime * self.column_inverse % prime
        row, column = (_compact(np.array(totals, object)) for totals in system.totals)
        for _ in range(count):
            row_rest, column_rest = ((rest % prime).astype(np.int64) for rest in (row, column))
            x = self.inverse @ ((row_rest - system.present @ (shares * column_rest % prime)) % prime) % prime
            across = system.across @ (system.row_weight * x)
            y = self.column_inverse * ((column_rest - across) % prime) % prime
            yield x
            row = _compact((row - system.row_degree * x - system.present @ (system.column_weight * y)) // prime)
            column = _compact((column - system.column_degree * y - across) // prime)


def _compact(numbers: Any) -> Any:
    """Return Python integers as an array of 64-bit integers, if they are small enough to be added to sums."""
    if numbers.dtype != object or max(abs(numbers.min()), abs(numbers.max())) >= _FITS // 2:
        return numbers
    return numbers.astype(np.int64)


def _joined(digits: Sequence[Int64Array], prime: int) -> list[int]:
    """Return the numbers with these digits, the lowest first."""
    parts: list[Any] = [each.astype(object) for each in digits]
    power = prime
    while len(parts) > 1:
        odd = parts[len(parts) & ~1 :]
        parts = [low + high * power for low, high in zip(parts[::2], parts[1::2], strict=False)] + odd
        power *= power
    return list(parts[0].tolist())


def _inverse(matrix: Int64Array, prime: int) -> Int64Array | None:
    """Return the inverse modulo a prime, by Gauss-Jordan elimination; None if there is none."""
    size = len(matrix)
    work = np.concatenate([matrix, np.eye(size, dtype=np.int64)], axis=1)
    for column in range(size):
        pivots = np.flatnonzero(work[column:, column])
        if not len(pivots):
            return None
        work[[column, column + pivots[0]]] = work[[column + pivots[0], column]]
        work[column] = work[column] * pow(int(work[column, column]), -1, prime) % prime
        factors = work[:, column].copy()
        factors[column] = 0
        work[:, column:] -= np.outer(factors, work[column, column:])
        work[:, column:] %= prime
    return np.ascontiguousarray(work[:, size:])


def _primes(below: int) -> Iterator[int]:
    """Yield the primes below a number, the largest first, down to _LEAST_PRIME."""
    for number in range(below - 1, _LEAST_PRIME, -1):
        if number % 2 and all(number % each for each in range(3, isqrt(number) + 1, 2)):
            yield number


class Cells(NamedTuple):
    """Scores, at most one for each participant and question; shape (n,).

    participant, question: codes. score: integers, of any size. weight: of the question, > 0.
    """

    participant: Int64Array
    question: Int64Array
    score: list[int]
    weight: Int64Array

    def take(self, index: Int64Array) -> "Cells":
        """Return the cells at these indices."""
        score = [self.score[i] for i in index.tolist()]
        return Cells(self.participant[index], self.question[index], score, self.weight[index])


class Part(NamedTuple):
    """Effects of the questions of one part of a design, whose weighted mean is 0.

    cells: the scores that they are fitted to. effects: numerators over `denominator`, by question; what the question
    adds to a score, in the unit of the scores.
    """

    cells: Cells
    effects: dict[int, int]
    denominator: int

    @property
    def sensitivity(self) -> int:
        """The most by which an effect can move if no score moves by more than 1.

        The fit is a projection: the weighted sum of squares by which fitted scores move is at most that of the scores,
        so that none moves by more than the root of the sum of weights over the least one. Effects of two questions of
        one participant move apart by at most twice that, and a chain of such pairs connects every two questions.
        """
        weights = self.cells.weight.tolist()
        return 2 * len(self.effects) * (isqrt(sum(weights) // min(weights)) + 1)

    def adjusted(self, cells: Cells) -> Fraction:
        """Return the weighted mean of scores less the effects of their questions; for a participant in the part.

        If the part is fitted to them, this is the participant's own effect plus the mean effect of all questions.
        """
        total = sum(
            weight * (score * self.denominator - self.effects[question])
            for question, score, weight in zip(cells.question.tolist(), cells.score, cells.weight.tolist(), strict=True)
        )
        return Fraction(total, self.denominator * int(cells.weight.sum()))


def fit(cells: Cells) -> list[Part]:
    """Return the effects of questions, apart for each part of the design: scores compare only within a part.

    Two scores are in one part if they have the participant or the question in common, and if a third score is in one
    part with both. Raises Refused (out_of_range): the fit would take too long.

    >>> codes = [np.array(each) for each in ([0, 0, 1], [0, 1, 1], [1, 1, 1])]
    >>> [part] = fit(Cells(codes[0], codes[1], [10, 30, 50], codes[2]))  # question 1 adds 20 more than question 0
    >>> {question: Fraction(effect, part.denominator) for question, effect in part.effects.items()}
    {0: Fraction(-10, 1), 1: Fraction(10, 1)}
    """
    place = _part_of(cells)
    return [_fit_part(cells.take(np.flatnonzero(place == number))) for number in np.unique(place).tolist()]


def _part_of(cells: Cells) -> Int64Array:
    """Return the part of each cell: the least participant code that a chain of scores connects it with."""
    participants, who = distinct(cells.participant)
    questions, which = distinct(cells.question)
    part = np.arange(len(participants))
    while True:
        of_question = np.full(len(questions), len(participants))
        np.minimum.at(of_question, which, part[who])
        least = part.copy()
        np.minimum.at(least, who, of_question[which])
        least = least[least]
        if (least == part).all():
            return part[who]
        part = least


class _Groups(NamedTuple):
    """Owners in groups whose members have the same items. group: of each cell. sizes: members of each group."""

    group: Int64Array
    sizes: list[int]


def _groups(owner: Int64Array, item: Int64Array) -> _Groups:
    """Group owners by their items; owner, item: shape (n,)."""
    order = np.lexsort((item, owner))
    starts = [*run_starts(owner[order]).tolist(), len(owner)]
    codes: dict[bytes, int] = {}
    sizes: list[int] = []
    group = np.empty(len(owner), np.int64)
    for first, end in pairwise(starts):
        rows = order[first:end]
        code = codes.setdefault(item[rows].tobytes(), len(sizes))
        if code == len(sizes):
            sizes.append(0)
        sizes[code] += 1
        group[rows] = code
    return _Groups(group, sizes)


def _fit_part(cells: Cells) -> Part:
    """Return the effects of a part that is connected."""
    weight = cells.weight // gcd(*cells.weight.tolist())
    rows, columns = _groups(cells.participant, cells.question), _groups(cells.question, cells.participant)
    sums = _Sums.of(cells.question, columns.group, cells.score, weight)
    by_row = [0] * len(rows.sizes)
    for row, score, times in zip(rows.group.tolist(), cells.score, weight.tolist(), strict=True):
        by_row[row] += score * times
    present = np.zeros((len(rows.sizes), len(columns.sizes)), np.int64)
    present[rows.group, columns.group] = 1
    scale = lcm(*rows.sizes, *sums.group_weight)
    solution = solve(
        TwoSidedSystem(
            present,
            int64_array(rows.sizes),
            int64_array(sums.group_weight),
            [total * (scale // size) for total, size in zip(by_row, rows.sizes, strict=True)],
            [total * (scale // size) for total, size in zip(sums.group_total, sums.group_weight, strict=True)],
        )
    )
    return Part(cells, *_centred(sums, solution.y, solution.denominator * scale))


class _Sums(NamedTuple):
    """Sums over questions and over groups of them.

    group, total, counts: of each question its group, the sum of its scores, and their number. group_weight,
    group_total: Σ weight and Σ weight x total over the questions of each group.
    """

    group: dict[int, int]
    total: dict[int, int]
    counts: dict[int, int]
    group_weight: list[int]
    group_total: list[int]

    @classmethod
    def of(cls, question: Int64Array, group: Int64Array, score: list[int], weight: Int64Array) -> "_Sums":
        """Return the sums; question, group, score, weight: of each cell."""
        groups = dict(zip(question.tolist(), group.tolist(), strict=True))
        weights = dict(zip(question.tolist(), weight.tolist(), strict=True))
        total, count = dict.fromkeys(sorted(groups), 0), dict.fromkeys(sorted(groups), 0)
        for number, one in zip(question.tolist(), score, strict=True):
            total[number] += one
            count[number] += 1
        group_weight, group_total = ([0] * (max(groups.values()) + 1) for _ in range(2))
        for number, place in groups.items():
            group_weight[place] += weights[number]
            group_total[place] += weights[number] * total[number]
        return cls(groups, total, count, group_weight, group_total)


def _centred(sums: _Sums, means: list[int], denominator: int) -> tuple[dict[int, int], int]:
    """Return the effects of questions less their weighted mean, as numerators, and their denominator.

    means: numerators of the mean effect of each group, over `denominator`. A question's effect differs from it by what
    its mean score differs from the mean of its group: they have the same participants.
    """
    whole = sum(sums.group_weight)
    mean = sum(each * weight for each, weight in zip(means, sums.group_weight, strict=True))
    divisors = {number: count * sums.group_weight[sums.group[number]] for number, count in sums.counts.items()}
    common = lcm(*divisors.values())
    base = [(each * whole - mean) * common for each in means]
    factor = denominator * whole
    effects = {}
    for number, group in sums.group.items():
        apart = sums.total[number] * sums.group_weight[group] - sums.group_total[group]
        effects[number] = base[group] + apart * (common // divisors[number]) * factor
    return effects, factor * common
