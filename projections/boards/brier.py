"""Brier scores of many binary questions: aggregates with their parts, skill, calibration, words; all exact."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.sorting import run_starts, stable_order
from forecast_ledger.projections.core.wide_int import WideInt

DECILES = tuple(range(0, PROBABILITY + 1, PROBABILITY // 10))  # 1e-9
EVEN_ODDS = Fraction(1, 4)  # the Brier score of always saying 50%
NORMAL_QUANTILE = Decimal("1.959963984540054")  # 97.5% of the standard normal: OEIS A220510, to 15 decimals
_DIGITS = Context(prec=80, rounding=ROUND_HALF_EVEN)
_VALUE_BITS = 30  # 1e9 < 2^30
_COUNT_BITS = 27  # what limbs can sum is at most 2^26 rows


class Sample(NamedTuple):
    """One row for each owner and question, in any order; shape (n,), n <= 2^26.

    owner: codes, below 2^33. probability: of yes, 1e-9. consensus: likewise, what the owner is measured against; -1
    where there is none. happened: whether the answer was yes.
    """

    owner: Int64Array
    probability: Int64Array
    consensus: Int64Array
    happened: BoolArray

    def take(self, index: Int64Array) -> "Sample":
        """The rows at these places."""
        return Sample(self.owner[index], self.probability[index], self.consensus[index], self.happened[index])


class Aggregate(NamedTuple):
    """One owner's mean Brier score, from 0 (perfect) to 1, and what it is made of and measured against.

    brier == reliability - resolution_term + uncertainty, exactly. Skill is above 0 where the owner beats the reference.
    None: nothing to take a mean of; for the consensus also where a row lacks one; for a skill also where the reference
    is perfect.
    """

    n: int
    brier: Fraction | None = None
    base_rate: Fraction | None = None
    reliability: Fraction | None = None
    resolution_term: Fraction | None = None
    uncertainty: Fraction | None = None
    consensus_brier: Fraction | None = None
    skill_against_even_odds: Fraction | None = None
    skill_against_consensus: Fraction | None = None
    skill_against_base_rate: Fraction | None = None


class Means(NamedTuple):
    """Two means over contests, which differ where contests differ in size; None over nothing."""

    pooled_brier: Fraction | None
    mean_of_contest_means: Fraction | None


class Bin(NamedTuple):
    """One owner's forecasts in [lower, upper), in the last bin in [lower, upper], of which there are n > 0.

    lower, upper: 1e-9. happened: how many came true. said: the sum of the forecasts, 1e-9. wilson_low, wilson_high: 95%
    interval of the frequency, 1e-9.
    """

    owner: int
    lower: int
    upper: int
    n: int
    happened: int
    said: int
    wilson_low: int
    wilson_high: int

    @property
    def mean_forecast(self) -> Fraction:
        """The mean of the forecasts."""
        return Fraction(self.said, self.n * PROBABILITY)

    @property
    def observed_frequency(self) -> Fraction:
        """How often they came true."""
        return Fraction(self.happened, self.n)


class Reading(NamedTuple):
    """What a Brier score in [lower, upper) is called; only `lower` itself if the two are equal; None: no upper end."""

    lower: Fraction
    upper: Fraction | None
    words: str


# Source: Forecaster Arena, Scoring Methodology, "Appendix B: Reference Values". Its rows share their ends; each belongs
# to the row that begins with it, as in its own "0.40+", and 0 to "Perfect" alone.
INTERPRETATION = (
    Reading(Fraction(0), Fraction(0), "Perfect"),
    Reading(Fraction(0), Fraction(10, 100), "Excellent"),
    Reading(Fraction(10, 100), Fraction(20, 100), "Good"),
    Reading(Fraction(20, 100), Fraction(25, 100), "Fair (at or near random)"),
    Reading(Fraction(25, 100), Fraction(40, 100), "Poor"),
    Reading(Fraction(40, 100), None, "Very Poor"),
)


def aggregates(sample: Sample, owners: int) -> list[Aggregate]:
    """The aggregate of each owner 0 … owners - 1; n = 0 for who has no row. O(n log n).

    brier = 1/n Σ (p - o)², o = 1 if it happened, else 0. base_rate: mean of o, b. With the m forecasts that say one
    value p, of which k happened: reliability = 1/n Σ m (p - k/m)², resolution_term = 1/n Σ m (k/m - b)²,
    uncertainty = b (1 - b). Skill = 1 - brier / reference, a ratio of means over the same rows; the reference is
    0.25, the Brier score of the consensus, or that of the base rate, which is the uncertainty.

    Raises:  ValueError if an owner or a probability is out of range.
    Source:  Forecaster Arena, Scoring Methodology, "1.4 Aggregate Brier Score" and "1.5 Brier Skill Score"; Murphy
    (1973), Journal of Applied Meteorology 12(4):595-600, doi:10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2.

    >>> columns = [np.array(column) for column in ([0, 0], [800_000_000, 400_000_000], [-1, -1], [True, False])]
    >>> found = aggregates(Sample(*columns), owners=1)[0]
    >>> found.brier, found.resolution_term, found.skill_against_even_odds
    (Fraction(1, 10), Fraction(1, 4), Fraction(3, 5))
    """
    _check(sample, owners)
    found = [Aggregate(0)] * owners
    for owner, counts in counted(sample).items():
        found[owner] = aggregate(counts)
    return found


class Counts(NamedTuple):
    """Sums over an owner's n rows, exact; those over other rows can be added or taken away, but for `mixed`.

    happened: how many came true. squares, consensus: Σ (p - o)², 1e-18, where there is no consensus as if it said 0.
    lacking: how often there is none. mixed: Σ k (m - k) / m, the part of Σ (p - o)² and of n · uncertainty that lies
    within m forecasts of equal value; what is left of the two is reliability and resolution.
    """

    n: int = 0
    happened: int = 0
    squares: int = 0
    consensus: int = 0
    lacking: int = 0
    mixed: Fraction = Fraction(0)


def counted(sample: Sample) -> dict[int, Counts]:
    """The counts of each owner who has a row."""
    order = stable_order(grouped(sample))
    sample = sample.take(order)
    groups, starts = run_starts(grouped(sample)), run_starts(sample.owner)
    rows = zip(
        sample.owner[starts].tolist(),
        np.diff(starts, append=len(sample.owner)).tolist(),
        _totals(sample.happened.astype(np.int64), starts),
        _squares(sample.probability, sample.happened, starts),
        _squares(np.maximum(sample.consensus, 0), sample.happened, starts),
        _totals((sample.consensus < 0).astype(np.int64), starts),
        strict=True,
    )
    within = _mixed(sample, groups)
    return {owner: Counts._make([*sums, within[owner]]) for owner, *sums in rows}


def grouped(sample: Sample) -> Int64Array:
    """A number for each owner and probability, in order of both."""
    key: Int64Array = (sample.owner << _VALUE_BITS) | sample.probability
    return key


def owners(groups: Int64Array) -> Int64Array:
    """The owners of such numbers."""
    return groups >> _VALUE_BITS


def mixed(m: int, k: int) -> Fraction:
    """What m forecasts of equal value, of which k came true, add to an owner's `mixed`."""
    return Fraction(k * (m - k), m) if m else Fraction(0)


def means(contests: Iterable[Aggregate]) -> Means:
    """Of one owner's aggregates, one a contest: the mean of all scores, and the mean of the contests' means.

    Contests without a score count in neither.
    Source: Forecaster Arena, Scoring Methodology, "1.4 Aggregate Brier Score", "Across Cohorts", is the pooled one.

    >>> means([Aggregate(3, Fraction(1, 10)), Aggregate(1, Fraction(1, 2)), Aggregate(0)])
    Means(pooled_brier=Fraction(1, 5), mean_of_contest_means=Fraction(3, 10))
    """
    scored = [(contest.n, contest.brier) for contest in contests if contest.brier is not None]
    if not scored:
        return Means(None, None)
    pooled = Fraction(sum(n * brier for n, brier in scored), sum(n for n, _ in scored))
    return Means(pooled, Fraction(sum(brier for _, brier in scored), len(scored)))


def calibration(sample: Sample, owners: int, bins: Sequence[int] = DECILES) -> list[Bin]:
    """How often what was forecast came true, in order of owner and bin; bins nobody forecast in are left out.

    bins: the edges, 1e-9, rising from 0 to 1e9.
    Raises:  ValueError if an owner, a probability or the edges are out of range or order.

    >>> columns = [np.array(column) for column in ([0, 0], [100_000_000, 199_999_999], [-1, -1], [False, True])]
    >>> [(found.lower, found.upper, found.n, found.happened) for found in calibration(Sample(*columns), owners=1)]
    [(100000000, 200000000, 2, 1)]
    """
    _check(sample, owners)
    if list(bins) != sorted({0, *bins, PROBABILITY}) or bins[0] or bins[-1] != PROBABILITY:
        raise ValueError("bins: rise from 0 to 1e9")
    return filled(binned(sample, bins), bins)


def binned(sample: Sample, bins: Sequence[int] = DECILES) -> dict[tuple[int, int], tuple[int, ...]]:
    """By owner and bin: how many forecasts, how many came true, and their sum, 1e-9, which can all be added up."""
    last = len(bins) - 1
    key = sample.owner * last + np.searchsorted(np.array(bins[1:last], np.int64), sample.probability, "right")
    order = stable_order(key)
    sample, key = sample.take(order), key[order]
    starts = run_starts(key)
    sums = zip(
        np.diff(starts, append=len(key)).tolist(),
        _totals(sample.happened.astype(np.int64), starts),
        _totals(sample.probability, starts),
        strict=True,
    )
    return {divmod(place, last): each for place, each in zip(key[starts].tolist(), sums, strict=True)}


def filled(sums: Mapping[tuple[int, int], tuple[int, ...]], bins: Sequence[int] = DECILES) -> list[Bin]:
    """The bins that such sums make, in order of owner and bin."""
    limits = {pair: wilson(*pair) for pair in dict.fromkeys((k, n) for n, k, _ in sums.values())}
    return [
        Bin(owner, bins[begin], bins[begin + 1], n, k, said, *limits[k, n])
        for (owner, begin), (n, k, said) in sorted(sums.items())
    ]


def wilson(happened: int, n: int) -> tuple[int, int]:
    """Wilson's score interval of a frequency, k = happened of n <= 2^26, at 95%: low and high in 1e-9.

    The t at which n (t - k/n)² = z² t (1 - t): (2k + z² ± z √(z² + 4k (n - k)/n)) / (2 (n + z²)); no correction for
    continuity. Each is rounded half-even once, and 80 digits decide which way: at a tie, an odd multiple of 5e-10, the
    two sides of that equation differ by a multiple of 1 / (4e48 n), and by 0 at none below n = 2e11, so that no limit
    comes nearer to one than 5e-65.

    Raises:  ValueError if not 0 <= happened <= n, 1 <= n.
    Source:  Wilson (1927), Journal of the American Statistical Association 22(158):209-212,
             doi:10.1080/01621459.1927.10502953.

    >>> wilson(0, 1)
    (0, 793450686)
    """
    if not 0 <= happened <= n or not n:
        raise ValueError(f"{happened} of {n}")
    square = _DIGITS.multiply(NORMAL_QUANTILE, NORMAL_QUANTILE)
    radicand = _DIGITS.multiply(n, _DIGITS.add(_DIGITS.multiply(n, square), 4 * happened * (n - happened)))
    spread = _DIGITS.multiply(NORMAL_QUANTILE, _DIGITS.sqrt(radicand))
    middle = _DIGITS.multiply(n, _DIGITS.add(square, 2 * happened))
    width = _DIGITS.multiply(2 * n, _DIGITS.add(square, n))
    return _nanos(_DIGITS.subtract(middle, spread), width), _nanos(_DIGITS.add(middle, spread), width)


def interpretation(brier: Fraction) -> str:
    """What a mean Brier score from 0 to 1 is called in INTERPRETATION; always saying 50% scores 0.25, "Poor".

    Raises:  ValueError if it is outside [0, 1].

    >>> [interpretation(Fraction(percent, 100)) for percent in (0, 9, 10, 40)]
    ['Perfect', 'Excellent', 'Good', 'Very Poor']
    """
    if not 0 <= brier <= 1:
        raise ValueError(f"a Brier score of {brier}")
    fitting = (row for row in INTERPRETATION if brier == row.lower or row.upper is None or brier < row.upper)
    return next(fitting).words


def _check(sample: Sample, owners: int) -> None:
    ranges = {
        "owner": (sample.owner, 0, owners - 1),
        "probability": (sample.probability, 0, PROBABILITY),
        "consensus": (sample.consensus, -1, PROBABILITY),
    }
    for name, (given, least, most) in ranges.items():
        if len(given) and not least <= int(given.min()) <= int(given.max()) <= most:
            raise ValueError(f"{name}: outside [{least}, {most}]")


def aggregate(of: Counts) -> Aggregate:
    """What counts come to."""
    if not of.n:
        return Aggregate(0)
    scale = of.n * PROBABILITY * PROBABILITY
    brier, base_rate, within = Fraction(of.squares, scale), Fraction(of.happened, of.n), Fraction(of.mixed, of.n)
    uncertainty = base_rate * (1 - base_rate)
    consensus_brier = None if of.lacking else Fraction(of.consensus, scale)
    return Aggregate(
        n=of.n,
        brier=brier,
        base_rate=base_rate,
        reliability=brier - within,
        resolution_term=uncertainty - within,
        uncertainty=uncertainty,
        consensus_brier=consensus_brier,
        skill_against_even_odds=_skill(brier, EVEN_ODDS),
        skill_against_consensus=_skill(brier, consensus_brier),
        skill_against_base_rate=_skill(brier, uncertainty),
    )


def _skill(brier: Fraction, reference: Fraction | None) -> Fraction | None:
    return 1 - Fraction(brier, reference) if reference else None


def _squares(probability: Int64Array, happened: BoolArray, starts: Int64Array) -> list[int]:
    """Σ (p - o)² over runs, 1e-18: ten rows can pass 2^63."""
    distance = np.where(happened, PROBABILITY - probability, probability)
    return WideInt.product(distance, distance).run_sums(starts).integers()


def _mixed(sample: Sample, groups: Int64Array) -> defaultdict[int, Fraction]:
    """By owner, Σ k (m - k) / m over groups of m rows of equal forecasts, of which k happened; 0 if absent.

    groups: where each begins. Groups of one size are summed as integers; those all alike, or of one row, add nothing.
    """
    m: Int64Array = np.diff(groups, append=len(sample.owner))
    k = np.add.reduceat(sample.happened.astype(np.int64), groups) if len(groups) else m
    products = k * (m - k)
    some = np.flatnonzero(products)
    key = (sample.owner[groups] << _COUNT_BITS) | m
    some = some[stable_order(key[some])]
    key, products = key[some], products[some]
    starts = run_starts(key)
    found: defaultdict[int, Fraction] = defaultdict(Fraction)
    for place, total in zip(key[starts].tolist(), _totals(products, starts), strict=True):
        owner, size = divmod(place, 1 << _COUNT_BITS)
        found[owner] += Fraction(total, size)
    return found


def _totals(values: Int64Array, starts: Int64Array) -> list[int]:
    """Sums over runs, of numbers whose sum over 2^26 rows fits in 64 bits."""
    totals: list[int] = np.add.reduceat(values, starts).tolist() if len(starts) else []
    return totals


def _nanos(numerator: Decimal, denominator: Decimal) -> int:
    ratio = _DIGITS.divide(numerator, denominator)
    return int(_DIGITS.multiply(ratio, PROBABILITY).to_integral_value(ROUND_HALF_EVEN))
