"""Exact Brier aggregates of binary questions: mean, decomposition, skill, calibration and interpretation."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.boards.brier_sums import DECILES, Counts, Sample, bin_sums, counts_by_owner, sums_of

EVEN_ODDS_BRIER = Fraction(1, 4)  # the Brier score of a forecaster who always gives 50%
NORMAL_QUANTILE = Decimal("1.959963984540054")  # 97.5% of the standard normal: OEIS A220510, to 15 decimals
_DIGITS = Context(prec=80, rounding=ROUND_HALF_EVEN)


class Aggregate(NamedTuple):
    """One owner's mean Brier score, from 0 (perfect) to 1, with its decomposition and its skill against references.

    brier == reliability - resolution_term + uncertainty, exactly. Skill is above 0 if the owner beats the reference. A
    field is None if the owner has no row. The fields about the consensus are also None if a row lacks a consensus, and
    a skill is also None if the reference scores 0.
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
    """Two means over contests, which can differ if contests differ in size; None without any score."""

    pooled_brier: Fraction | None
    mean_of_contest_means: Fraction | None


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

    @property
    def mean_forecast(self) -> Fraction:
        """The mean of the forecasts."""
        return Fraction(self.total_forecast, self.n * PROBABILITY)

    @property
    def observed_frequency(self) -> Fraction:
        """The share of the forecasts that came true."""
        return Fraction(self.happened, self.n)


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


def aggregates(sample: Sample, owners: int) -> list[Aggregate]:
    """Return the aggregate of each owner 0 … owners - 1; n = 0 if the owner has no row. O(n log n).

    brier = 1/n Σ (p - o)², o = 1 if it happened, else 0. base_rate: b, the mean of o. For the m forecasts of one
    value p, of which k came true: reliability = 1/n Σ m (p - k/m)², resolution_term = 1/n Σ m (k/m - b)²,
    uncertainty = b (1 - b). Skill = 1 - brier / reference, a ratio of means over the same rows; the reference is
    0.25, the Brier score of the consensus, or that of the base rate, which is the uncertainty.

    Raises:  ValueError if an owner or a probability is out of range.
    Source:  Forecaster Arena, Scoring Methodology, "1.4 Aggregate Brier Score" and "1.5 Brier Skill Score"; Murphy
    (1973), Journal of Applied Meteorology 12(4):595-600, doi:10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2.

    >>> import numpy as np
    >>> columns = [np.array(column) for column in ([0, 0], [800_000_000, 400_000_000], [-1, -1], [True, False])]
    >>> own = aggregates(Sample(*columns), owners=1)[0]
    >>> own.brier, own.resolution_term, own.skill_against_even_odds
    (Fraction(1, 10), Fraction(1, 4), Fraction(3, 5))
    """
    _check(sample, owners)
    by_owner = [Aggregate(0)] * owners
    for owner, counts in counts_by_owner(sums_of(sample)).items():
        by_owner[owner] = aggregate(counts)
    return by_owner


def brier_means(contests: Iterable[Aggregate]) -> Means:
    """Return the mean of all scores of one owner, and the mean of the means of the contests.

    contests: one aggregate for each contest. Contests without a score count in neither mean.
    Source: the pooled mean is in Forecaster Arena, Scoring Methodology, "1.4 Aggregate Brier Score", "Across Cohorts".

    >>> brier_means([Aggregate(3, Fraction(1, 10)), Aggregate(1, Fraction(1, 2)), Aggregate(0)])
    Means(pooled_brier=Fraction(1, 5), mean_of_contest_means=Fraction(3, 10))
    """
    scored = [(contest.n, contest.brier) for contest in contests if contest.brier is not None]
    if not scored:
        return Means(None, None)
    pooled = Fraction(sum(n * brier for n, brier in scored), sum(n for n, _ in scored))
    return Means(pooled, Fraction(sum(brier for _, brier in scored), len(scored)))


def calibration(sample: Sample, owners: int, bins: Sequence[int] = DECILES) -> list[Bin]:
    """Return how often forecasts came true, by owner and bin. Bins without a forecast are left out.

    bins: the edges, 1e-9, increasing from 0 to 1e9.
    Raises:  ValueError if an owner or a probability is out of range, or the edges are not as described.

    >>> import numpy as np
    >>> columns = [np.array(column) for column in ([0, 0], [100_000_000, 199_999_999], [-1, -1], [False, True])]
    >>> [(row.lower, row.upper, row.n, row.happened) for row in calibration(Sample(*columns), owners=1)]
    [(100000000, 200000000, 2, 1)]
    """
    _check(sample, owners)
    if list(bins) != sorted({0, *bins, PROBABILITY}) or bins[0] or bins[-1] != PROBABILITY:
        raise ValueError("bins: the edges must increase from 0 to 1e9")
    return calibration_bins(bin_sums(sums_of(sample), bins), bins)


def calibration_bins(sums: Mapping[tuple[int, int], tuple[int, ...]], bins: Sequence[int] = DECILES) -> list[Bin]:
    """Return the bins for the sums of `bin_sums`, by owner and bin."""
    limits = {pair: wilson(*pair) for pair in dict.fromkeys((k, n) for n, k, _ in sums.values())}
    return [
        Bin(owner, bins[begin], bins[begin + 1], n, k, total, *limits[k, n])
        for (owner, begin), (n, k, total) in sorted(sums.items())
    ]


def wilson(happened: int, n: int) -> tuple[int, int]:
    """Return Wilson's 95% score interval of a frequency, k = happened of n <= 2^26: low and high in 1e-9.

    The limits are the solutions t of n (t - k/n)² = z² t (1 - t), which are
    (2k + z² ± z √(z² + 4k (n - k)/n)) / (2 (n + z²)), without a continuity correction. Each is rounded half-even once,
    and 80 digits are enough to round correctly: at a tie, an odd multiple of 5e-10, the two sides of the equation
    differ by a multiple of 1 / (4e48 n), which is never 0 below n = 2e11. So no limit is closer to a tie than 5e-65.

    Raises:  ValueError if not 0 <= happened <= n, 1 <= n.
    Source:  Wilson (1927), Journal of the American Statistical Association 22(158):209-212,
             doi:10.1080/01621459.1927.10502953.

    >>> wilson(0, 1)
    (0, 793450686)
    """
    if not 0 <= happened <= n or not n:
        raise ValueError(f"{happened} of {n}: expected 0 <= happened <= n and n >= 1")
    square = _DIGITS.multiply(NORMAL_QUANTILE, NORMAL_QUANTILE)
    radicand = _DIGITS.multiply(n, _DIGITS.add(_DIGITS.multiply(n, square), 4 * happened * (n - happened)))
    spread = _DIGITS.multiply(NORMAL_QUANTILE, _DIGITS.sqrt(radicand))
    middle = _DIGITS.multiply(n, _DIGITS.add(square, 2 * happened))
    width = _DIGITS.multiply(2 * n, _DIGITS.add(square, n))
    return _nanos(_DIGITS.subtract(middle, spread), width), _nanos(_DIGITS.add(middle, spread), width)


def interpretation(brier: Fraction) -> str:
    """Return the words of INTERPRETATION for a mean Brier score. A forecaster who always gives 50% scores 0.25, "Poor".

    Raises:  ValueError if the score is outside [0, 1].

    >>> [interpretation(Fraction(percent, 100)) for percent in (0, 9, 10, 40)]
    ['Perfect', 'Excellent', 'Good', 'Very Poor']
    """
    if not 0 <= brier <= 1:
        raise ValueError(f"a Brier score must be from 0 to 1, not {brier}")
    fitting = (row for row in INTERPRETATION if brier == row.lower or row.upper is None or brier < row.upper)
    return next(fitting).words


def _check(sample: Sample, owners: int) -> None:
    ranges = {
        "owner": (sample.owner, 0, owners - 1),
        "probability": (sample.probability, 0, PROBABILITY),
        "consensus": (sample.consensus, -1, PROBABILITY),
    }
    for name, (column, least, most) in ranges.items():
        if len(column) and not least <= int(column.min()) <= int(column.max()) <= most:
            raise ValueError(f"{name}: must be from {least} to {most}")


def aggregate(counts: Counts) -> Aggregate:
    """Return the aggregate of these counts."""
    if not counts.n:
        return Aggregate(0)
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
