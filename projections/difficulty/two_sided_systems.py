"""Exact solutions of the equations of a two-way design, digit by digit in powers of a prime.

Source: Dixon (1982), Exact solution of linear equations using p-adic expansions, Numerische Mathematik 40:137-141,
doi:10.1007/BF01459082; the numbers from their residues by Wang (1981), doi:10.1145/800206.806398.
"""

from collections.abc import Iterator, Sequence
from math import isqrt, lcm, prod
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.core.arrays import Int64Array, int64_array

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
        numerator = _centred(residue * common % modulus, modulus)
        if abs(numerator) > most:
            numerator, more = _reconstructed(residue * common % modulus, modulus, most)
            numerators, common = [each * more for each in numerators], common * more
        numerators.append(numerator)
    return numerators, common


def _centred(residue: int, modulus: int) -> int:
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
