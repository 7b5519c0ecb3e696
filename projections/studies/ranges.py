"""Ranges: where answers fall in numeric forecasts, coverages of their intervals, and the parts of interval scores.

A forecast F gives an answer y the probability from F(y-), of what is below y, to F(y), of what is at most y. The two
differ if F puts probability on y itself: on a value of a discrete question, on all that lies beyond an open end of the
range, or where several quantiles are equal. Then the answer is not at one level of the forecast, but spread evenly over
all between the two, so that whoever forecasts what is true has a tenth of the answers in each tenth.

Source: Czado, Gneiting and Held (2009), doi:10.1111/j.1541-0420.2009.01191.x, "Probability integral transform"; of
samples Hamill (2001), doi:10.1175/1520-0493(2001)129<0550:IORHFV>2.0.CO;2, "Interpretation of rank histograms".
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.values import CUMULATIVE, PROBABILITY
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array, run_starts
from forecast_ledger.projections.core.late_fractions import sum_of_terms
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Contest, Facts, Intervals
from forecast_ledger.projections.scores import range_kernels
from forecast_ledger.projections.scores.range_kernels import Numbers, fraction_of, units_around
from forecast_ledger.projections.scores.sampling import at_one_instant
from forecast_ledger.projections.scores.score_terms import standing_in_chunks
from forecast_ledger.projections.scores.scored_questions import Questions, scored_questions
from forecast_ledger.projections.scores.terms import numbers, quantile_numbers
from forecast_ledger.projections.scores.time_weighted import Scores

HALF_UNITS = 2 * CUMULATIVE  # in probability 1; even numbers are cumulative probabilities, odd ones lie between two
LEVEL = HALF_UNITS // PROBABILITY  # half units in a level of 1e-9


class AnswerSpans(NamedTuple):
    """Where the answers of n forecasts fall, from F(y-) to F(y), in half units; shape (n,).

    low, high: equal if the forecast puts no probability on the answer. An even number is exact; the odd one above it
    is for every level between it and the next.
    """

    low: Int64Array
    high: Int64Array

    def within(self, low: Int64Array | int, high: Int64Array | int) -> Int64Array:
        """Return the part of each span between two levels, as a numerator over `width`; an answer at an end is within.

        >>> AnswerSpans(np.array([4, 4, 6]), np.array([4, 8, 6])).within(0, 5).tolist()
        [1, 1, 0]
        """
        is_point = self.low == self.high
        inside = (low <= self.low) & (self.high <= high)
        part = np.minimum(self.high, high) - np.maximum(self.low, low)
        within: Int64Array = np.where(is_point, inside, np.maximum(part, 0))
        return within

    @property
    def width(self) -> Int64Array:
        """The width of each span in half units; 1 if it is a point."""
        width: Int64Array = np.maximum(self.high - self.low, 1)
        return width


class Sampled(NamedTuple):
    """Numeric forecasts that count, one for each question and participant. contest: index; participant: code."""

    contest: Int64Array
    participant: Int64Array
    made: Numbers
    spans: AnswerSpans


def sampled(facts: Facts, contests: Sequence[Contest], chunk: int) -> Iterator[Sampled]:
    """Yield the numeric forecasts that count in contests of one rule set, some questions at a time.

    As in Brier aggregates, these are the ones that stood at the spot or, without a spot, when scored time ended. A
    single sample is a point, which says nothing about a distribution, and is left out.
    """
    chosen = at_one_instant(
        facts,
        contests,
        lambda question: question.range is not None,
        kernel="none",
        cdf_kernel="crps",  # kernels only select questions
        quantile_kernel="pinball",
        score_consensus=False,
    )
    questions = scored_questions(facts, *chosen)
    for _, part, forecasts, every in standing_in_chunks(facts, chosen, questions, chunk):
        is_point = [answer.question.range is not None and answer.question.range.samples == 1 for answer in part.answers]
        standing = every.of(np.flatnonzero(~np.array(is_point, bool)[every.question]))
        made = numbers(part, forecasts.chances, forecasts.start[standing.row], standing.question)
        discrete = np.array([answer.question.kind == "discrete" for answer in part.answers], bool)
        yield Sampled(part.contest[standing.question], standing.participant, made, answer_spans(made, discrete))


def answer_spans(made: Numbers, discrete: BoolArray) -> AnswerSpans:
    """Return where the answers of forecasts fall. discrete: whether each question has one value in each bin.

    A cdf F is linear in each bin, and jumps at the value of a discrete question. Beyond an open end lies all that F
    leaves there. A forecast by quantiles says F only at its levels: an answer that several quantiles are equal to has
    the probability between their levels, at one quantile it is at its level, and between two it is between them. The
    n + 1 gaps of n samples have the same probability each, and the answer lies in one of them, or in those beside the
    samples that it equals.

    >>> from forecast_ledger.ledger.model.events import NumericRange
    >>> span, cdf = NumericRange(lower="0", upper="4", bins=2, open_upper=True), np.array([0, 3 * 10**9, 9 * 10**9])
    >>> for outcome, answer, kind in ((2, "3", False), (2, "3", True), (3, "5", False)):
    ...     one = Numbers(cdf, *(np.array([each]) for each in (0, 3, outcome, 0)), [span], [answer])
    ...     spans = answer_spans(one, np.array([kind]))
    ...     print(spans.low / HALF_UNITS, spans.high / HALF_UNITS)
    [0.6] [0.6]
    [0.3] [0.9]
    [0.9] [1.]
    """
    low, high = np.zeros((2, len(made.width)), np.int64)
    by_quantiles, by_samples = is_by_quantiles(made), _is_by_samples(made)
    quantiles, cdfs = np.flatnonzero(by_quantiles), np.flatnonzero(~by_quantiles & ~by_samples)
    samples = np.flatnonzero(by_samples)
    low[quantiles], high[quantiles] = _of_quantiles(made.rows(quantiles))
    low[samples], high[samples] = _of_samples(made.rows(samples))
    low[cdfs], high[cdfs] = _of_cdfs(made.rows(cdfs), discrete)
    return AnswerSpans(low, high)


def is_by_quantiles(made: Numbers) -> BoolArray:
    """Return whether each forecast is one by quantiles; the others are cdfs or samples."""
    return np.array([span is not None and bool(span.levels) for span in made.spans], bool)[made.question]


def _is_by_samples(made: Numbers) -> BoolArray:
    return np.array([span is not None and span.samples > 0 for span in made.spans], bool)[made.question]


def _of_quantiles(made: Numbers) -> AnswerSpans:
    low, high = np.zeros((2, len(made.width)), np.int64)
    levels: dict[tuple[int, ...], int] = {}
    form = np.full(len(made.spans), -1)
    before, from_ = np.zeros((2, len(made.spans)), np.int64)  # the units next to each answer
    for number, span in made.numeric_questions():
        form[number] = levels.setdefault(span.levels, len(levels))
        before[number], from_[number] = units_around(made.values[number], span)
    by_form = [LEVEL * int64_array([0, *one_form, PROBABILITY]) for one_form in levels]
    for rows, quantiles in made.tables(form[made.question]):
        question = made.question[rows]
        edges = by_form[form[question[0]]]
        first = (quantiles < from_[question][:, None]).sum(axis=1) + 1  # of the levels at or above the answer
        last = (quantiles <= before[question][:, None]).sum(axis=1)  # of the levels at or below it
        between = (edges[last] + edges[np.minimum(last + 1, len(edges) - 1)]) // 2
        low[rows] = np.where(first > last, between, edges[np.minimum(first, len(edges) - 1)])
        high[rows] = np.where(first > last, between, edges[last])
    return AnswerSpans(low, high)


def _of_samples(made: Numbers) -> AnswerSpans:
    low, high = np.zeros((2, len(made.width)), np.int64)
    before, from_ = np.zeros((2, len(made.spans)), np.int64)  # the units next to each answer
    for number, span in made.numeric_questions():
        before[number], from_[number] = units_around(made.values[number], span)
    for rows, samples in made.tables(made.width):
        question, gaps = made.question[rows], samples.shape[1] + 1
        first = CUMULATIVE * (samples < from_[question][:, None]).sum(axis=1)
        last = CUMULATIVE * ((samples <= before[question][:, None]).sum(axis=1) + 1)
        low[rows], high[rows] = (edge // gaps - (-edge // gaps) for edge in (first, last))
    return AnswerSpans(low, high)


def _of_cdfs(made: Numbers, discrete: BoolArray) -> AnswerSpans:
    steps = made.width - 1
    at, inside = made.outcome, (made.outcome > 0) & (made.outcome <= steps)
    below = np.where(at > 0, made.flat[made.start + np.clip(at - 1, 0, steps)], 0)
    upto = np.where(at <= steps, made.flat[made.start + np.clip(at, 0, steps)], CUMULATIVE)
    low, high = below * (HALF_UNITS // CUMULATIVE), upto * (HALF_UNITS // CUMULATIVE)
    points = np.flatnonzero(inside & ~discrete[made.question])
    low[points] = high[points] = [
        CUMULATIVE * height // over - (-CUMULATIVE * height // over)
        for height, over in heights_at_answers(made.rows(points))
    ]
    return AnswerSpans(low, high)


def heights_at_answers(made: Numbers) -> list[tuple[int, int]]:
    """Return F at the answer of each forecast by cdf, exactly, as numerator and denominator; F is linear in each bin.

    >>> from fractions import Fraction
    >>> from forecast_ledger.ledger.model.events import NumericRange
    >>> span, cdf = NumericRange(lower="0", upper="4", bins=2), np.array([0, 3 * 10**9, 10**10])
    >>> made = Numbers(cdf, *(np.array([each]) for each in (0, 3, 2, 0)), [span], ["3"])
    >>> [Fraction(*height) for height in heights_at_answers(made)]
    [Fraction(13, 20)]
    """
    at: dict[int, tuple[int, int, int]] = {}
    for number, span in made.numeric_questions():
        offset = fraction_of(made.values[number], span) * span.bins
        within = min(int(offset // 1), span.bins - 1)
        at[number] = within, *(offset - within).as_integer_ratio()
    heights = []
    for start, question in zip(made.start.tolist(), made.question.tolist(), strict=True):
        within, share, over = at[question]
        low, high = (int(height) for height in made.flat[start + within : start + within + 2])
        heights.append((low * over + (high - low) * share, CUMULATIVE * over))
    return heights


class SharesSummed:
    """Sums of shares, exact, by what they are of: shares with the same denominator are added as integers."""

    def __init__(self) -> None:
        self._numerators: dict[tuple[int, ...], dict[int, int]] = {}

    def add(self, keys: Sequence[Int64Array], numerators: Int64Array, over: Int64Array) -> None:
        """Add shares. keys: what each is of, one column or several. numerators, over: below 2^36; shape (n,)."""
        columns = np.stack([*keys, over])
        order = np.lexsort(columns)
        columns = columns[:, order]
        first = np.flatnonzero(np.append(True, (columns[:, 1:] != columns[:, :-1]).any(axis=0))[: len(order)])
        totals = np.add.reduceat(numerators[order], first) if len(order) else numerators
        for (*key, width), total in zip(columns[:, first].T.tolist(), totals.tolist(), strict=True):
            sums = self._numerators.setdefault(tuple(key), {})
            sums[width] = sums.get(width, 0) + total

    def sums(self) -> tuple[list[tuple[int, ...]], list[Fraction]]:
        """Return what there are shares of, in order, and the sum of each."""
        keys = sorted(self._numerators)
        sums = [sum_of_terms((total, width) for width, total in self._numerators[key].items() if total) for key in keys]
        return keys, sums


CDF_INTERVALS = (500_000_000, 800_000_000, 900_000_000, 950_000_000)  # 1e-9; a cdf has intervals of every probability


class Coverage(NamedTuple):
    """How often a participant's intervals of one probability hold the answer.

    contest: index. participant: code. probability: 1e-9. forecasts: how many have such an interval. covered: how many
    answers these hold: whole answers, and parts of others; exact.
    """

    contest: int
    participant: int
    probability: int
    forecasts: int
    covered: Fraction


def central_levels(levels: Sequence[int]) -> list[tuple[int, int]]:
    """Return the indices of the two levels of each central interval, the widest first. levels: 1e-9, increasing.

    >>> central_levels((100_000_000, 250_000_000, 500_000_000, 750_000_000))
    [(1, 3)]
    """
    index_of = {level: index for index, level in enumerate(levels)}
    mirrored = ((index, index_of.get(PROBABILITY - level)) for level, index in index_of.items())
    return [(index, other) for index, other in mirrored if other is not None and index < other]


def interval_coverages(facts: Facts, contests: Sequence[Contest], chunk: int) -> list[Coverage]:
    """Count how often the central intervals of numeric forecasts hold the answer, for contests of one rule set.

    In order of contest, participant and probability. The interval of probability 1 - 2a reaches from the quantile of a
    to that of 1 - a, both included: it holds an answer y if a <= F(y) <= 1 - a. Where the forecast puts probability on
    y itself, it holds the part of y's probability, F(y-) to F(y), that lies between a and 1 - a; see `answer_spans`.
    Forecasts by quantiles have the intervals of their levels, cdfs those of `CDF_INTERVALS`. The same forecasts count
    as in `pit_counts`, also those by quantiles without the levels 0.1, 0.2 … 0.9.

    Source: scoringutils, interval_coverage, for answers that have no probability of their own; for the others, the
    interval of the probability integral transform of Czado, Gneiting and Held (2009),
    doi:10.1111/j.1541-0420.2009.01191.x.
    """
    inside, forecasts = SharesSummed(), SharesSummed()
    for contest, participant, made, spans in sampled(facts, contests, chunk):
        for rows, low, high in _intervals(made):
            answers = AnswerSpans(spans.low[rows], spans.high[rows])
            key = contest[rows], participant[rows], np.full_like(rows, high - low)
            inside.add(key, answers.within(low * (LEVEL // 2), high * (LEVEL // 2)), answers.width)
            forecasts.add(key, np.ones_like(rows), np.ones_like(rows))
    (keys, sums), (_, counts) = inside.sums(), forecasts.sums()
    return [
        Coverage(contest, participant, twice // 2, int(count), covered)
        for (contest, participant, twice), count, covered in zip(keys, counts, sums, strict=True)
    ]


def _intervals(made: Numbers) -> Iterator[tuple[Int64Array, int, int]]:
    """Yield the intervals of some forecasts: their rows, and twice the levels at both ends, 1e-9."""
    by_quantiles = is_by_quantiles(made)
    levels = [() if span is None else span.levels for span in made.spans]
    form = {each: number for number, each in enumerate(dict.fromkeys(levels))}
    of_row = np.array([form[each] for each in levels], np.int64)[made.question]
    for form_levels, number in form.items():
        rows = np.flatnonzero(by_quantiles & (of_row == number))
        for low, high in central_levels(form_levels) if len(rows) else []:
            yield rows, 2 * form_levels[low], 2 * form_levels[high]
    rows = np.flatnonzero(~by_quantiles)
    for share in CDF_INTERVALS if len(rows) else ():
        yield rows, PROBABILITY - share, PROBABILITY + share


BINS = 10
_INNER = frozenset(PROBABILITY // BINS * tenth for tenth in range(1, BINS))  # the levels between bins, 1e-9
_EDGES = HALF_UNITS // BINS * np.arange(BINS + 1)


class PitCount(NamedTuple):
    """How many answers fell in a tenth of a participant's forecasts: whole answers, and parts of others.

    contest: index. participant: code. tenth: 0 to 9. answers: exact.
    """

    contest: int
    participant: int
    tenth: int
    answers: Fraction


def pit_counts(facts: Facts, contests: Sequence[Contest], chunk: int) -> list[PitCount]:
    """Count in which tenth of each participant's forecasts the answers fell, for contests of one rule set.

    In order of contest, participant and tenth; all ten for everyone with a forecast that counts. A forecast by
    quantiles counts if it has the levels 0.1, 0.2 … 0.9.

    Source: Dawid (1984), doi:10.2307/2981683; Czado, Gneiting and Held (2009), doi:10.1111/j.1541-0420.2009.01191.x,
    "Nonrandomized PIT histogram".
    """
    shares = SharesSummed()
    for contest, participant, made, spans in sampled(facts, contests, chunk):
        rows = np.flatnonzero(_has_tenths(made))
        answers = AnswerSpans(spans.low[rows], spans.high[rows])
        for tenth, parts in enumerate(tenths(answers).T):
            shares.add((contest[rows], participant[rows], np.full_like(rows, tenth)), parts, answers.width)
    keys, sums = shares.sums()
    return [PitCount(contest, who, tenth, count) for (contest, who, tenth), count in zip(keys, sums, strict=True)]


def tenths(spans: AnswerSpans) -> Int64Array:
    """Return the part of each answer that fell in each tenth, as a numerator over the width of its span; shape (n, 10).

    A tenth has its upper end, and the first has 0 too. A span is divided in proportion to what lies in each tenth.

    >>> tenth = HALF_UNITS // 10
    >>> tenths(AnswerSpans(np.array([0, tenth, 2 * tenth]), np.array([0, tenth, 5 * tenth])))[:2, :2]
    array([[1, 0],
           [1, 0]])
    """
    low, high = _EDGES[:-1], _EDGES[1:]
    point = (low < spans.low[:, None]) & (spans.low[:, None] <= high)
    point[:, 0] |= spans.low == 0
    part = np.minimum(spans.high[:, None], high) - np.maximum(spans.low[:, None], low)
    is_point = (spans.low == spans.high)[:, None]
    parts: Int64Array = np.where(is_point, point, np.maximum(part, 0))
    return parts


def _has_tenths(made: Numbers) -> BoolArray:
    """Return whether each forecast says in which tenth the answer fell."""
    says = [span is not None and (not span.levels or {*span.levels} >= _INNER) for span in made.spans]
    return np.array(says, bool)[made.question]


class IntervalScores(NamedTuple):
    """The parts of the weighted interval score of each question and participant, in order of both; shape (n,).

    whole: the score as it is without a reference. dispersion, overprediction and underprediction: its numerators,
    which add up to the numerator of the whole. median_error: the numerator of the median's absolute error. has_median:
    whether 0.5 is a level of the question; if not, there is no such error.
    """

    whole: Scores
    dispersion: WideInt
    overprediction: WideInt
    underprediction: WideInt
    median_error: WideInt
    has_median: BoolArray


@lru_cache(maxsize=1_024)
def is_symmetric(levels: tuple[int, ...]) -> bool:
    """Return whether levels, 1e-9, are those of central intervals: symmetric about 0.5, which may be one of them.

    >>> is_symmetric((250_000_000, 500_000_000, 750_000_000)), is_symmetric((250_000_000, 500_000_000))
    (True, False)
    """
    return all(low + high == PROBABILITY for low, high in zip(levels, reversed(levels), strict=True))


def interval_score_rules(rules: RuleSet) -> RuleSet:
    """Return the rules of the weighted interval score by itself: a mean over time, without a reference.

    >>> interval_score_rules(RuleSet(name="x", quantile_kernel="pinball", reference="peers")).period
    'covered'
    """
    return structs.replace(rules, reference="none", period="covered")


def interval_scores(
    facts: Facts, contests: Sequence[Contest], questions: Questions, chunk: int, chosen: BoolArray | None = None
) -> Iterator[IntervalScores]:
    """Yield the parts of the weighted interval scores of contests of one rule set, some questions at a time.

    chosen: whether each participant, by code, is among them; everybody is if it is None.

    WIS = 1 / (K + 1/2) x (1/2 |y - m| + Σ (a (u - l) + (l - y)⁺ + (y - u)⁺)), y the answer, m the median, and Σ over
    the K central intervals [l, u] of the levels a and 1 - a. Σ a (u - l) is the dispersion. Overprediction is what
    (l - y)⁺ adds, with what the median adds if the answer is below it; underprediction is what remains. At most one of
    the two is above 0, since no answer is below one central interval and above another.

    Each forecast's score is rounded once, as the kernel `pinball` rounds it, and so is its dispersion; the penalty is
    what is left. So the parts add up exactly. Questions whose levels are not symmetric about 0.5 are left out.

    Source: Bracher, Ray, Gneiting and Reich (2021), doi:10.1371/journal.pcbi.1008618.
    """
    rules = contests[0].opened.rules
    for first, part, forecasts, standing in standing_in_chunks(facts, contests, questions, chunk):
        central = np.array([_is_central(answer.question.range) for answer in part.answers], bool)
        counted = central[standing.question]
        rows = np.flatnonzero(counted if chosen is None else counted & chosen[standing.participant])
        if len(rows):
            stood = standing.of(rows)
            made = quantile_numbers(rules, part, forecasts.chances, forecasts.start[stood.row], stood.question)
            yield _summed(first, part, made, stood)


def _is_central(span: NumericRange | None) -> bool:
    return span is not None and bool(span.levels) and is_symmetric(span.levels)


def _summed(first: int, questions: Questions, made: Numbers, standing: Intervals) -> IntervalScores:
    """Return the parts of forecasts, summed over time for each question and participant."""
    whole, width, above = range_kernels.pinball(made), range_kernels.dispersion(made), range_kernels.overpredicts(made)
    has_median = questions.width % 2 == 1
    middle = np.flatnonzero(has_median[standing.question])
    error = np.zeros_like(whole)
    error[middle] = range_kernels.median_error(made.rows(middle))
    question, participant = standing.question, standing.participant
    starts, length = run_starts(question, participant), standing.end - standing.start
    total, dispersion, over, under, median = (
        WideInt.product(part, length).run_sums(starts)
        for part in (whole, width, np.where(above, whole - width, 0), np.where(above, 0, whole - width), error)
    )
    covered = np.add.reduceat(length, starts)
    scores = Scores(question[starts] + first, participant[starts], total, covered, np.zeros_like(covered))
    return IntervalScores(scores, dispersion, over, under, median, has_median[question[starts]])
