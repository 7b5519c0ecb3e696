"""Brier scores of binary questions: their forecasts, exact sums of these, aggregates, and calibration by bins."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards.estimates import near_brier
from forecast_ledger.projections.core.arrays import (
    BoolArray,
    Int64Array,
    Totals,
    distinct,
    int64_array,
    join_columns,
    run_lengths,
    run_starts,
    stable_order,
)
from forecast_ledger.projections.core.columns import POINTS, Values, transpose
from forecast_ledger.projections.core.estimates import Estimated
from forecast_ledger.projections.core.late_fractions import sum_of_terms
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import DOUBLED, Contest, Facts, named_tuples
from forecast_ledger.projections.scores.sampling import at_one_instant
from forecast_ledger.projections.scores.score_terms import terms_in_chunks
from forecast_ledger.projections.scores.scored_questions import scored_questions

DECILES = tuple(range(0, PROBABILITY + 1, PROBABILITY // 10))  # 1e-9
_VALUE_BITS = 30  # 1e9 < 2^30
_VALUE = (1 << _VALUE_BITS) - 1
_COUNT_BITS = 27  # of an owner's rows
_AT_ONCE = 1 << 20  # groups of equal forecasts
_NONE = Fraction(0)


class Sample(NamedTuple):
    """One row for each owner and question, in any order; shape (n,). An owner has at most 2^26 rows.

    owner: codes, below 2^33. probability: of yes, 1e-9. consensus: probability that the consensus gives to yes, 1e-9;
    -1 if there is none. happened: whether the answer was yes.
    """

    owner: Int64Array
    probability: Int64Array
    consensus: Int64Array
    happened: BoolArray

    def take(self, index: Int64Array) -> "Sample":
        """Return the rows at these indices."""
        return Sample(self.owner[index], self.probability[index], self.consensus[index], self.happened[index])


class GroupSums(NamedTuple):
    """The equal forecasts of each owner: how many, and how many came true.

    key: as of `owner_probability_keys`, distinct and rising. All of shape (n,).
    """

    key: Int64Array
    n: Int64Array
    happened: Int64Array


class OwnerSums(NamedTuple):
    """How many rows of each owner lack a consensus, and Σ (p - o)² of the consensus, 1e-18, a missing one being 0.

    owner: distinct and rising. All of shape (n,).
    """

    owner: Int64Array
    lacking: Int64Array
    consensus: WideInt


class BrierSums(NamedTuple):
    """The sums of a sample, from which Brier aggregates and calibration are computed; `added` adds them up."""

    groups: GroupSums
    owners: OwnerSums

    def renumbered(self, numbers: Int64Array) -> "BrierSums":
        """Return the sums with other numbers of the owners. numbers: of each, by its number so far."""
        key = numbers[owners_of_keys(self.groups.key)] << _VALUE_BITS | self.groups.key & _VALUE
        return BrierSums(self.groups._replace(key=key), self.owners._replace(owner=numbers[self.owners.owner]))

    def negated(self) -> "BrierSums":
        """Return what takes these rows out of sums to which it is added."""
        groups, owners = self
        consensus = WideInt(*(-word for word in owners.consensus)).carried()
        return BrierSums(
            GroupSums(groups.key, -groups.n, -groups.happened), OwnerSums(owners.owner, -owners.lacking, consensus)
        )

    def of(self, owners: Int64Array) -> "BrierSums":
        """Return the sums of some owners, distinct and rising."""
        begins, ends = (np.searchsorted(self.groups.key, owners + more << _VALUE_BITS) for more in (0, 1))
        before = np.cumsum(ends - begins) - (ends - begins)  # how many groups the owners before it have
        groups = np.repeat(begins - before, ends - begins) + np.arange((ends - begins).sum())
        chosen = np.flatnonzero(np.isin(self.owners.owner, owners))
        return BrierSums(
            GroupSums(*(column[groups] for column in self.groups)),
            OwnerSums(self.owners.owner[chosen], self.owners.lacking[chosen], self.owners.consensus.take(chosen)),
        )


class Counts(NamedTuple):
    """Exact sums over an owner's n rows.

    happened: how many came true. squares, consensus: Σ (p - o)² of the owner and of the consensus, 1e-18; a missing
    consensus counts as probability 0. lacking: how many rows lack a consensus. mixed: Σ k (m - k) / m over groups of m
    equal forecasts of which k came true: the variance within the groups. Subtracting it from `squares` leaves n times
    the reliability, and from n times the uncertainty, n times the resolution.
    """

    n: int = 0
    happened: int = 0
    squares: int = 0
    consensus: int = 0
    lacking: int = 0
    mixed: Fraction = _NONE


def sums_of(sample: Sample) -> BrierSums:
    """Return the sums of a sample.

    >>> columns = [np.array(column) for column in ([0, 0], [800_000_000, 800_000_000], [-1, -1], [True, False])]
    >>> groups, owners = sums_of(Sample(*columns))
    >>> groups.n.tolist(), groups.happened.tolist(), owners.lacking.tolist()
    ([2], [1], [2])
    """
    rows = np.sort(owner_probability_keys(sample).astype(np.uint64) << np.uint64(1) | sample.happened)
    key, happened = (rows >> np.uint64(1)).astype(np.int64), (rows & np.uint64(1)).astype(np.int64)
    starts, consensus = run_starts(key), np.maximum(sample.consensus, 0)
    groups = GroupSums(key[starts], run_lengths(starts, len(key)), _totals(happened, starts))
    distance = np.where(sample.happened, PROBABILITY - consensus, consensus)
    lacking = (sample.consensus < 0).astype(np.int64)
    return BrierSums(groups, _by_owner(sample.owner, lacking, WideInt.product(distance, distance)))


def added(parts: Sequence[BrierSums]) -> BrierSums:
    """Return the sums of samples of different questions together; owners without rows are left out.

    parts: at least one; keys may be unsorted. One that is negated has rows of the others.

    >>> one = sums_of(Sample(*(np.array(column) for column in ([0], [800_000_000], [-1], [True]))))
    >>> [len(sums.groups.key) for sums in (added([one, one]), added([one, one.negated()]))]
    [1, 0]
    """
    key, n, happened = map(np.concatenate, zip(*(part.groups for part in parts), strict=True))
    order = stable_order(key)
    key = key[order]
    starts = run_starts(key)
    groups = GroupSums(key[starts], _totals(n[order], starts), _totals(happened[order], starts))
    owner, lacking = (np.concatenate(column) for column in zip(*(part.owners[:2] for part in parts), strict=True))
    consensus = WideInt(*map(np.concatenate, zip(*(part.owners.consensus for part in parts), strict=True)))
    owners = _by_owner(owner, lacking, consensus)
    left = groups.n > 0
    if left.all():
        return BrierSums(groups, owners)
    groups = GroupSums(*(column[left] for column in groups))
    return BrierSums(groups, owners).of(np.unique(owners_of_keys(groups.key)))


def _by_owner(owner: Int64Array, lacking: Int64Array, consensus: WideInt) -> OwnerSums:
    """Return the sums of rows, in any order, of each owner."""
    owner, which = distinct(owner)
    totals = Totals(which, np.bincount(which))
    return OwnerSums(owner, totals.of(lacking), consensus.totals(totals))


def counts_by_owner(sums: BrierSums) -> dict[int, Counts]:
    """Return the counts of each owner who has a row."""
    owner, *columns = count_columns(sums)
    return dict(zip(owner.tolist(), named_tuples(Counts, *columns), strict=True))


def count_columns(sums: BrierSums) -> tuple[Int64Array, *tuple[list[Any], ...]]:
    """Return the owners who have a row, and the columns of their counts."""
    parts, mixed = list[tuple[Int64Array, ...]](), dict[int, Fraction]()
    for key, n, happened in _some_owners(sums.groups):
        probability, owner = key & _VALUE, owners_of_keys(key)
        missed = PROBABILITY - probability
        squares = WideInt.product(missed * missed, happened) + WideInt.product(probability * probability, n - happened)
        starts = run_starts(owner)
        parts.append((_totals(n, starts), _totals(happened, starts), *squares.carried().run_sums(starts)))
        mixed |= _mixed(owner, n, happened)
    n, happened, *words = join_columns(parts, 5)
    owner, lacking, consensus = sums.owners
    within = [mixed.get(number, _NONE) for number in owner.tolist()] if mixed else [_NONE] * len(owner)
    both = WideInt(*words).integers(), consensus.integers()
    return owner, n.tolist(), happened.tolist(), *both, lacking.tolist(), within


def _some_owners(groups: GroupSums) -> Iterator[GroupSums]:
    """Yield the groups of some owners at a time, all of each owner together."""
    starts, size = run_starts(owners_of_keys(groups.key)), len(groups.key)
    begins = starts[np.searchsorted(starts, np.arange(0, size, _AT_ONCE), "right") - 1] if size else starts
    for begin, end in pairwise([*dict.fromkeys(begins.tolist()), size]):
        yield GroupSums(*(column[begin:end] for column in groups))


def owner_probability_keys(sample: Sample) -> Int64Array:
    """Return one number for each pair of owner and probability, which sorts by owner, then probability."""
    key: Int64Array = (sample.owner << _VALUE_BITS) | sample.probability
    return key


def owners_of_keys(groups: Int64Array) -> Int64Array:
    """Return the owners in the numbers of `owner_probability_keys`."""
    return groups >> _VALUE_BITS


def _mixed(owner: Int64Array, m: Int64Array, k: Int64Array) -> dict[int, Fraction]:
    """Return, by owner, Σ k (m - k) / m over groups of m equal forecasts of which k came true, unless it is 0.

    Groups of the same size are summed as integers. Groups in which all or none came true add nothing.
    """
    products = k * (m - k)
    mixed = np.flatnonzero(products)
    key, products = (owner[mixed] << _COUNT_BITS) | m[mixed], products[mixed]
    order = stable_order(key)
    key, products = key[order], products[order]
    starts = run_starts(key)
    by_owner: dict[int, Fraction] = {}
    for group_key, total in zip(key[starts].tolist(), _totals(products, starts).tolist(), strict=True):
        number, size = divmod(group_key, 1 << _COUNT_BITS)
        by_owner[number] = by_owner.get(number, _NONE) + Fraction(total, size)
    return by_owner


def _totals(values: Int64Array, starts: Int64Array) -> Int64Array:
    """Return sums over runs of numbers; each fits in 64 bits."""
    sums: Int64Array = np.add.reduceat(values, starts) if len(starts) else values
    return sums


class ContestSample(NamedTuple):
    """The sample of one contest. owners: the number of participant codes, and one more for the consensus.

    question: code of each row, shape (n,).
    """

    sample: Sample
    owners: int
    question: Int64Array


def sample_contests(
    facts: Facts, contests: Sequence[Contest], chunk: int
) -> tuple[Int64Array, Int64Array, Sample, int]:
    """Return the forecasts on binary questions that stood at the spot, with the consensus of that instant.

    If the rule set does not sample at a spot, the forecasts are those that stood when scored time ended.
    Returns the index of the contest and the question code of each row, the sample, and the number of owners.
    """
    spot = _binary(facts, contests)
    consensus = len(facts.participant_codes.codes)
    questions = scored_questions(facts, *spot)
    parts = [
        _answered(rows.standing.question + first, rows.standing.participant, rows.doubled, questions.outcome)
        for first, rows in terms_in_chunks(facts, spot, questions, chunk)
    ]
    question, owner, probability, happened = _columns(parts)
    consensus_probability = np.full(len(questions.code), -1)
    is_consensus = owner == consensus
    consensus_probability[question[is_consensus]] = probability[is_consensus]
    return (
        questions.contest[question],
        questions.code[question],
        Sample(owner, probability, consensus_probability[question], happened),
        consensus + 1,
    )


def _binary(facts: Facts, contests: Sequence[Contest]) -> list[Contest]:
    """Return contests with their binary questions that count, at one instant, scored by Brier score.

    So is the consensus.
    """
    return at_one_instant(
        facts,
        contests,
        lambda question: question.kind == "binary",
        kernel="brier",
        cdf_kernel="none",
        quantile_kernel="none",
        score_consensus=True,
        least_probability_ppm=0,
    )


def _answered(
    question: Int64Array, owner: Int64Array, doubled: Int64Array, outcome: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array, BoolArray]:
    """Return question, owner, probability of yes in 1e-9, and whether the answer was yes; the first outcome is yes."""
    happened = outcome[question] == 0
    chance = doubled // DOUBLED
    return question, owner, np.where(happened, chance, PROBABILITY - chance), happened


def _columns(
    parts: list[tuple[Int64Array, Int64Array, Int64Array, BoolArray]],
) -> tuple[Int64Array, Int64Array, Int64Array, BoolArray]:
    none = np.zeros(0, np.int64)
    question, owner, probability, happened = zip(*[*parts, (none, none, none, np.zeros(0, bool))], strict=True)
    return np.concatenate(question), np.concatenate(owner), np.concatenate(probability), np.concatenate(happened)


EVEN_ODDS_BRIER = Fraction(1, 4)  # the Brier score of a forecaster who always gives 50%
NORMAL_QUANTILE = Decimal("1.959963984540054")  # 97.5% of the standard normal: OEIS A220510, to 15 decimals
_DIGITS = Context(prec=80, rounding=ROUND_HALF_EVEN)


class Aggregate(NamedTuple):
    """One owner's mean Brier score, from 0 (perfect) to 1, with its decomposition and its skill against references.

    brier == reliability - resolution_term + uncertainty, exactly. Skill is above 0 if the owner beats the reference.
    The fields about the consensus are None if a row lacks a consensus, and a skill is None if the reference scores 0.
    """

    n: int
    brier: Fraction
    base_rate: Fraction
    reliability: Fraction
    resolution_term: Fraction
    uncertainty: Fraction
    consensus_brier: Fraction | None
    skill_against_even_odds: Fraction | None
    skill_against_consensus: Fraction | None
    skill_against_base_rate: Fraction | None


class Means(NamedTuple):
    """Two means over contests, which can differ if contests differ in size."""

    pooled_brier: Fraction
    mean_of_contest_means: Fraction


class Bin(NamedTuple):
    """One owner's n > 0 forecasts in [lower, upper); in the last bin, in [lower, upper].

    lower, upper: 1e-9. happened: how many came true. total_forecast: their sum, 1e-9. wilson_low, wilson_high: 95%
    interval of the frequency, 1e-9.
    """

    owner: int
    lower: int
    upper: int
    n: int
    happened: int
    total_forecast: int
    wilson_low: int
    wilson_high: int


class BrierBand(NamedTuple):
    """The words for Brier scores in [lower, upper), or for `lower` alone if the two are equal; None: no upper end."""

    lower: Fraction
    upper: Fraction | None
    words: str


# Source: Forecaster Arena, Scoring Methodology, "Appendix B: Reference Values". Adjacent rows share an end; it belongs
# to the row that begins with it, as in "0.40+", and 0 belongs to "Perfect" alone.
INTERPRETATION = (
    BrierBand(Fraction(0), Fraction(0), "Perfect"),
    BrierBand(Fraction(0), Fraction(10, 100), "Excellent"),
    BrierBand(Fraction(10, 100), Fraction(20, 100), "Good"),
    BrierBand(Fraction(20, 100), Fraction(25, 100), "Fair (at or near random)"),
    BrierBand(Fraction(25, 100), Fraction(40, 100), "Poor"),
    BrierBand(Fraction(40, 100), None, "Very Poor"),
)
_LOWER = [int(band.lower * PROBABILITY**2) for band in INTERPRETATION[2:]]  # 1e-18


def published(columns: Sequence[Sequence[Any]]) -> list[Values]:
    """Return columns of the fields of aggregates that follow n, each number rounded half-even once, 1e-9, or None.

    columns: those of the counts of owners who have a row. Floats decide a digit where they are certain.

    >>> published([[field] for field in Counts(n=2, happened=1, squares=2 * 10**17, lacking=1)])[:4]
    [[100000000], [500000000], [100000000], [250000000]]
    """
    *numbers, mixed = columns
    near, guards, missing = near_brier([*numbers, [0 if each is _NONE else each for each in mixed]])
    size = len(mixed)

    def exact(numbers: Int64Array) -> list[Any]:
        places = zip(*map(np.ndarray.tolist, np.divmod(numbers, size)), strict=True)
        return [aggregate(Counts(*(each[row] for each in columns)))[1 + field] for field, row in places]

    rounded: list[int | None] = [*Estimated(near.reshape(-1), guards.reshape(-1), exact).rounded(POINTS)]
    for number in np.flatnonzero(missing).tolist():
        rounded[number] = None
    return [rounded[field * size : (field + 1) * size] for field in range(len(near))]


def brier_means(scored: Sequence[tuple[int, int]]) -> Means:
    """Return the mean of all scores of one owner, and the mean of the means of the contests.

    scored: `squares` and n > 0 of the owner's counts in each contest, at least one.
    Source: the pooled mean is in Forecaster Arena, Scoring Methodology, "1.4 Aggregate Brier Score", "Across Cohorts".

    >>> brier_means([(3 * 10**17, 3), (5 * 10**17, 1)])
    Means(pooled_brier=Fraction(1, 5), mean_of_contest_means=Fraction(3, 10))
    """
    pooled = Fraction(sum(squares for squares, _ in scored), sum(n for _, n in scored) * PROBABILITY**2)
    if len(scored) == 1:
        return Means(pooled, pooled)
    return Means(pooled, sum_of_terms(scored) * Fraction(1, len(scored) * PROBABILITY**2))


def calibration_bins(sums: BrierSums, bins: Sequence[int] = DECILES) -> list[Bin]:
    """Return how often forecasts came true, by owner and bin. Bins without a forecast are left out.

    bins: the edges, 1e-9, increasing from 0 to 1e9.

    >>> columns = [np.array(column) for column in ([0, 0], [100_000_000, 199_999_999], [-1, -1], [False, True])]
    >>> [(row.lower, row.upper, row.n, row.happened) for row in calibration_bins(sums_of(Sample(*columns)))]
    [(100000000, 200000000, 2, 1)]
    """
    number, *others = bin_columns(sums, bins)
    return [*named_tuples(Bin, number.tolist(), *others)]


def bin_columns(sums: BrierSums, bins: Sequence[int] = DECILES) -> tuple[Int64Array, *tuple[list[int], ...]]:
    """Return the columns of `calibration_bins`; the first one, the owner, is an array."""
    last, edges, parts = len(bins) - 1, int64_array(bins), list[tuple[Int64Array, ...]]()
    for key, n, happened in _some_owners(sums.groups):
        probability = key & _VALUE
        bin_key = owners_of_keys(key) * last + np.searchsorted(edges[1:-1], probability, "right")  # rising, as key
        starts = run_starts(bin_key)
        parts.append((bin_key[starts], *(_totals(column, starts) for column in (n, happened, n * probability))))
    key, n, happened, total = join_columns(parts, 4)
    owner, place = np.divmod(key, last)
    pairs, which = distinct(happened << _COUNT_BITS | n)
    limits = transpose([wilson(*divmod(pair, 1 << _COUNT_BITS)) for pair in pairs.tolist()], 2)
    columns = (edges[place], edges[place + 1], n, happened, total, *(int64_array(each)[which] for each in limits))
    return owner, *(column.tolist() for column in columns)


def wilson(happened: int, n: int, squares: int | None = None) -> tuple[int, int]:
    """Return Wilson's 95% score interval of a frequency, k = happened of n <= 2^26: low and high in 1e-9.

    squares: s = Σ m² over clusters of m of the n, the answers of each of which may all be alike; n, if each is alone.
    A frequency then varies at most as that of n² / s answers that are independent.

    The limits are the solutions t of (n t - k)² = s z² t (1 - t), which are
    (2kn + s z² ± z √(s² z² + 4 s k (n - k))) / (2 (n² + s z²)), without a continuity correction. Each is rounded
    half-even once, and 80 digits are enough to round correctly: at a tie, an odd multiple of 5e-10, the two sides of
    the equation differ by a multiple of 1 / 4e48, which is never 0 below s = 1e14. So no limit is closer to a tie than
    5e-66.

    Raises:  ValueError if not 0 <= happened <= n, 1 <= n.
    Source:  Wilson (1927), Journal of the American Statistical Association 22(158):209-212,
             doi:10.1080/01621459.1927.10502953.

    >>> wilson(0, 1)
    (0, 793450686)
    """
    if not 0 <= happened <= n or not n:
        raise ValueError(f"{happened} of {n}: expected 0 <= happened <= n and n >= 1")
    s = n if squares is None else squares
    square = _DIGITS.multiply(s, _DIGITS.multiply(NORMAL_QUANTILE, NORMAL_QUANTILE))
    radicand = _DIGITS.multiply(s, _DIGITS.add(square, 4 * happened * (n - happened)))
    spread = _DIGITS.multiply(NORMAL_QUANTILE, _DIGITS.sqrt(radicand))
    middle = _DIGITS.add(square, 2 * happened * n)
    width = _DIGITS.multiply(2, _DIGITS.add(square, n * n))
    return _nanos(_DIGITS.subtract(middle, spread), width), _nanos(_DIGITS.add(middle, spread), width)


def interpretation(squares: int, n: int) -> str:
    """Return the words of INTERPRETATION for the mean of n > 0 Brier scores, of which the sum is given, 1e-18.

    A forecaster who always gives 50% scores 0.25, "Poor".
    Raises:  ValueError if the mean is outside [0, 1].

    >>> [interpretation(percent * 10**16, 1) for percent in (0, 9, 10, 40)]
    ['Perfect', 'Excellent', 'Good', 'Very Poor']
    """
    if not 0 <= squares <= n * PROBABILITY**2:
        raise ValueError(f"a Brier score must be from 0 to 1, not {Fraction(squares, n * PROBABILITY**2)}")
    return INTERPRETATION[bisect_right(_LOWER, squares // n) + 1 if squares else 0].words


def aggregate(counts: Counts) -> Aggregate:
    """Return the aggregate of the counts of an owner who has a row.

    brier = 1/n Σ (p - o)², o = 1 if it happened, else 0. base_rate: b, the mean of o. For the m forecasts of one
    value p, of which k came true: reliability = 1/n Σ m (p - k/m)², resolution_term = 1/n Σ m (k/m - b)²,
    uncertainty = b (1 - b). Skill = 1 - brier / reference, a ratio of means over the same rows; the reference is
    0.25, the Brier score of the consensus, or that of the base rate, which is the uncertainty.

    Source:  Forecaster Arena, Scoring Methodology, "1.4 Aggregate Brier Score" and "1.5 Brier Skill Score"; Murphy
    (1973), Journal of Applied Meteorology 12(4):595-600, doi:10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2.

    >>> columns = [np.array(column) for column in ([0, 0], [800_000_000, 400_000_000], [-1, -1], [True, False])]
    >>> result = aggregate(counts_by_owner(sums_of(Sample(*columns)))[0])
    >>> result.brier, result.resolution_term, result.skill_against_even_odds
    (Fraction(1, 10), Fraction(1, 4), Fraction(3, 5))
    """
    scale = counts.n * PROBABILITY * PROBABILITY
    brier, base_rate, within = (
        Fraction(counts.squares, scale),
        Fraction(counts.happened, counts.n),
        Fraction(counts.mixed, counts.n),
    )
    uncertainty = base_rate * (1 - base_rate)
    consensus_brier = None if counts.lacking else Fraction(counts.consensus, scale)
    return Aggregate(
        n=counts.n,
        brier=brier,
        base_rate=base_rate,
        reliability=brier - within,
        resolution_term=uncertainty - within,
        uncertainty=uncertainty,
        consensus_brier=consensus_brier,
        skill_against_even_odds=_skill(brier, EVEN_ODDS_BRIER),
        skill_against_consensus=_skill(brier, consensus_brier),
        skill_against_base_rate=_skill(brier, uncertainty),
    )


def _skill(brier: Fraction, reference: Fraction | None) -> Fraction | None:
    return 1 - Fraction(brier, reference) if reference else None


def _nanos(numerator: Decimal, denominator: Decimal) -> int:
    ratio = _DIGITS.divide(numerator, denominator)
    return int(_DIGITS.multiply(ratio, PROBABILITY).to_integral_value(ROUND_HALF_EVEN))
