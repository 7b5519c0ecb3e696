"""What a forecast is compared with: the consensus, the median of the members' scores, and reference forecasters.

The consensus has a probability and a kernel score in every step of a timeline. Reference forecasters, which boards show
beside participants, are scored like any participant who is not a member.

Source of the median of scores: Good Judgment Open, FAQ, "How are my forecasts scored for accuracy?": the accuracy score
is the mean daily Brier score minus the mean of the medians of each day, times the share of days with a forecast. The
page does not say on which days medians are averaged; here they are those on which the participant had a forecast, so
that scores add up over time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import CUMULATIVE, NEVER, PROBABILITY
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import REFERENCE_ROWS, RuleSet
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, half_even_many, int64_array
from forecast_ledger.projections.core.proportions import apportion
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import (
    CHANCE,
    DOUBLED,
    ChangedOutcomes,
    Facts,
    ForecastPage,
    Forecasts,
    Intervals,
    join_pages,
)
from forecast_ledger.projections.facts.outcomes import missing
from forecast_ledger.projections.facts.quotes import NO_PRICE
from forecast_ledger.projections.scores import community
from forecast_ledger.projections.scores.community import Aged
from forecast_ledger.projections.scores.consensus import (
    Changes,
    Consensus,
    LeaveOneOut,
    leave_one_out,
    medians,
    neighbours,
)
from forecast_ledger.projections.scores.kernels import KERNELS, Kernel
from forecast_ledger.projections.scores.range_kernels import value_at
from forecast_ledger.projections.scores.reference_kinds import HALF_BITS, Against, Steps, latest, refined
from forecast_ledger.projections.scores.scored_questions import NAMED, UNORDERED, Questions, kernel_of
from forecast_ledger.projections.scores.terms import Layout, Terms, Timeline, forms, layouts, numbers, rebased


def median_scores(members: Intervals, kernel_scores: Int64Array, ordered: Changes | None = None) -> Consensus:
    """Return the two middle kernel scores of members over time; 0 where no member stands. O(n log n).

    members: when their forecasts stand, questions apart. kernel_scores: of each, shape (n,). ordered: the changes of
    these intervals, if they have been computed.

    >>> standing = Intervals(*(np.array(column) for column in ([0, 1], [0, 0], [4, 5], [0, 1], [3, 2])))
    >>> middle = median_scores(standing, np.array([-7, 20]))
    >>> middle.low.tolist(), middle.high.tolist()
    ([-7, -7, -7, 0], [-7, 20, -7, 0])
    """
    if not len(kernel_scores):
        return Consensus(*[kernel_scores] * 6)
    levels, level = np.unique(kernel_scores, return_inverse=True)
    middle = medians(members.start, members.end, members.question, level, ordered)
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


_NAMED = (NAMED, UNORDERED)


class _ConsensusGroup(NamedTuple):
    """Questions whose consensus is computed together: their form and kernel, and a mask, shape (q,).

    width: numbers of a forecast that are averaged; 0 for the probability of the outcome alone. squeezed: see
    `community.SQUEEZED`. layout: if outcomes of the one question changed, the forecasts that give the same outcomes.
    """

    form: int
    kernel: Kernel
    questions: BoolArray
    width: int
    squeezed: bool
    layout: Layout | None = None


def _consensus_groups(rules: RuleSet, forecasts: Forecasts, terms: Terms) -> Iterator[_ConsensusGroup]:
    """Yield the groups of all questions that the rule set scores."""
    questions, every = terms.questions, np.arange(len(terms.questions.code))
    for group in _groups_without_changes(rules, questions):
        yield group._replace(questions=group.questions & (questions.catch_all < 0))
        start = forecasts.start[terms.standing.row]
        for layout in layouts(questions, forecasts.chances, start, terms.standing.question):
            if group.questions[layout.number]:
                width = len(layout.given) if group.width else 0
                yield group._replace(questions=every == layout.number, width=width, layout=layout)


def _groups_without_changes(rules: RuleSet, questions: Questions) -> Iterator[_ConsensusGroup]:
    """Yield the groups as they are if no outcomes change."""
    aggregation = community.AGGREGATIONS[rules.consensus]
    for form, name in forms(rules):
        kernel, of_form = KERNELS[name], questions.form == form
        parts = [(of_form, False)]
        if form in _NAMED and aggregation.normalized:
            whole = np.array([answer.question.kind in aggregation.normalized for answer in questions.answers], bool)
            parts = [(of_form & ~whole, False), (of_form & whole, True)]
        for mask, normalized in parts:
            squeezed = normalized and aggregation.squeezed
            if kernel.of_numbers is None and not normalized:
                yield _ConsensusGroup(form, kernel, mask, 0, squeezed)
                continue
            for width in np.unique(questions.width[mask]).tolist():
                yield _ConsensusGroup(form, kernel, mask & (questions.width == width), width, squeezed)


def consensus(rules: RuleSet, forecasts: Forecasts, terms: Terms, timeline: Timeline) -> tuple[Int64Array, Int64Array]:
    """Return twice the consensus's probability of the outcome, 1e-10, and its kernel score, in each step.

    They are -1 and 0 where no member has a standing forecast. Logarithms are taken of the average to 1e-18, not of the
    rounded probability that is shown.
    """
    questions, owner = terms.questions, timeline.question
    doubled, kernels = np.full(len(owner), -1), np.zeros(len(owner), np.int64)
    for group in _consensus_groups(rules, forecasts, terms):
        rows, at_steps = _where(group, terms, timeline)
        if not len(at_steps):
            continue
        averages, finer = _averages(rules, forecasts, terms, timeline, (group, rows, at_steps))
        outcome, kernel, width = questions.outcome[owner[at_steps]], group.kernel, group.width
        if group.layout is not None:
            outcome = np.full(len(at_steps), group.layout.answer.outcome)
        if kernel.of_chance is not None:
            fine = averages[0]
            if width:
                fine, finer = community.share(averages, outcome, squeezed=group.squeezed), community.FINER
            doubled[at_steps] = half_even_many(fine, finer)
            kernels[at_steps] = kernel.of_chance(fine, 2 * CHANCE * finer)
        elif kernel.of_numbers is not None:
            named = group.form in _NAMED
            table = community.distributions(averages, named=named, squeezed=group.squeezed)
            shown = table[np.arange(len(at_steps)), np.maximum(outcome, 0)] * DOUBLED if named else -1
            doubled[at_steps] = np.where(outcome < 0, -1, shown)
            if group.layout is not None:
                table = _spread(table, group.layout, questions)
            start = np.arange(len(at_steps)) * table.shape[1]
            kernels[at_steps] = kernel.of_numbers(numbers(questions, table.reshape(-1), start, owner[at_steps]))
        if group.layout is not None:
            kernels[at_steps] = rebased(rules, questions, group.layout, kernels[at_steps])
    return doubled, kernels


def _where(group: _ConsensusGroup, terms: Terms, timeline: Timeline) -> tuple[Int64Array, Int64Array]:
    """Return the intervals of members on the questions of a group, and the steps in which one of them stands."""
    steps, of_group = timeline.steps, group.questions[timeline.question]
    if group.layout is None:
        rows = np.flatnonzero(terms.member & group.questions[terms.standing.question])
        return rows, np.flatnonzero(of_group & (steps.stand > 0))
    rows = group.layout.rows[terms.member[group.layout.rows]]
    stand = np.zeros(len(timeline.question), np.int64)
    np.add.at(stand, steps.begins[rows], 1)
    np.subtract.at(stand, steps.ends[rows], 1)
    return rows, np.flatnonzero(of_group & (np.cumsum(stand) > 0))


def _spread(table: Int64Array, layout: Layout, questions: Questions) -> Int64Array:
    """Return distributions over the outcomes that are given as `Forecasts` has them, over all of the question."""
    absent = missing(int(questions.catch_all[layout.number]))
    spread = np.full((len(table), int(questions.width[layout.number])), absent)
    spread[:, layout.given] = table
    return spread


def _averages(
    rules: RuleSet,
    forecasts: Forecasts,
    terms: Terms,
    timeline: Timeline,
    at: tuple[_ConsensusGroup, Int64Array, Int64Array],
) -> tuple[list[Int64Array], int]:
    """Return twice the average of each number, of some intervals in some steps, and how fine its unit is.

    The second value is how many of the units make 1e-10 (for probabilities of the outcome) or one unit of the numbers.
    """
    (group, rows, at_steps), questions = at, terms.questions
    standing, by_chance = timeline.standing.of(rows), group.kernel.of_chance is not None
    columns = [terms.doubled[rows] // 2]
    if group.width:
        indices = range(group.width) if group.layout is None else group.layout.given.tolist()
        columns = _columns(forecasts, standing, indices, questions if by_chance else None)
    ordered = timeline.changes if len(rows) == len(timeline.standing.row) else None
    averaged = community.average(rules, named=group.form in _NAMED, fine=by_chance, ordered=ordered)
    aged = Aged(standing.start, standing.end, standing.question, timeline.age[rows])
    return community.average_columns(averaged, aged, timeline.steps, columns, at_steps), averaged.finer


def against_others(rules: RuleSet, terms: Terms, timeline: Timeline) -> LeaveOneOut:
    """Return the reference of each member: the median of the other members."""
    rows = np.flatnonzero(terms.member)
    standing = timeline.standing.of(rows)
    ordered = timeline.changes if len(rows) == len(timeline.standing.row) else None
    chance = terms.doubled[rows] // 2
    near = neighbours(standing.start, standing.end, standing.question, chance, ordered)
    near = near.at(latest(near.instant, timeline.steps))
    [logarithm] = {of_chance for _, name in forms(rules) if (of_chance := KERNELS[name].of_chance) is not None}
    return leave_one_out(timeline.steps.stand, timeline.steps.lasts, timeline.question, near, logarithm)


def _columns(
    forecasts: Forecasts, standing: Intervals, indices: Iterable[int], questions: Questions | None
) -> list[Int64Array]:
    """Return each number of the forecasts; where a kernel scores probabilities, in 1e-10 and limited as scored."""
    start, unit = forecasts.start[standing.row], CHANCE // PROBABILITY
    columns = (forecasts.chances[start + index] for index in indices)
    if questions is None:
        return list(columns)
    return [questions.as_scored(column * unit, standing.question) for column in columns]


_PPM = 10**6


class _Request(NamedTuple):
    """What a reference forecaster knows: the facts, and one question, by its number."""

    facts: Facts
    rules: RuleSet
    questions: Questions
    number: int

    @property
    def code(self) -> int:
        return int(self.questions.code[self.number])

    @property
    def opens(self) -> int:
        return int(self.questions.opens[self.number])


class _Statement(NamedTuple):
    """A forecast: the log position of the event that it follows from, when it is made by each clock, its numbers."""

    position: int
    at: int
    recorded_at: int
    numbers: Sequence[int]


def code_of(facts: Facts, name: str) -> int:
    """Return the participant code of a reference forecaster: they come after all participants.

    >>> code_of(Facts(), "consensus"), code_of(Facts(), "market")
    (0, 3)
    """
    return len(facts.participant_codes.codes) + REFERENCE_ROWS.index(name)


def reference_forecasts(facts: Facts, rules: RuleSet, questions: Questions, names: Sequence[str]) -> Forecasts:
    """Return the forecasts of these reference forecasters, but not of the consensus.

    question: index into the questions. participant: see `code_of`. A statement before the opening is moved to it, since
    the quote that stands then is the market's forecast, whatever the rules say about early forecasts.
    """
    rows, lengths, numbers = list[tuple[int, ...]](), list[int](), list[int]()
    for name in names:
        if name == "consensus":
            continue
        code = code_of(facts, name)
        for number in range(len(questions.code)):
            request = _Request(facts, rules, questions, number)
            for statement in FORECASTERS[name].forecasts(request):
                at, recorded_at = max(statement.at, request.opens), max(statement.recorded_at, request.opens)
                rows.append((statement.position, at, recorded_at, number, code))
                lengths.append(len(statement.numbers))
                numbers += statement.numbers
    columns = int64_array([value for row in rows for value in row]).reshape(len(rows), 5).T
    made, until = np.ones(len(rows), np.int64), np.full(len(rows), NEVER)
    return join_pages([ForecastPage._make([*columns, made, until, int64_array(lengths), int64_array(numbers)])])[0]


def _always_half(request: _Request) -> Iterator[_Statement]:
    """Yield one half for yes, from the opening; nothing on questions that are not binary."""
    if request.questions.answers[request.number].question.kind == "binary":
        yield _from_opening(request, [PROBABILITY // 2] * 2)


def _uniform(request: _Request) -> Iterator[_Statement]:
    """Yield the uniform distribution, from the opening: that of the reference `uniform`; on levels, its quantiles.

    Kernels of the probability of the outcome give an open end `open_end_ppm`; the others, which measure distances on
    the range, have all probability inside it.
    """
    question = request.questions.answers[request.number].question
    if question.range is None:
        yield from _uniform_of_named(request)
    else:
        by_chance = KERNELS[kernel_of(request.rules, question)].of_chance is not None
        yield _from_opening(request, uniform_numbers(question.range, request.rules.open_end_ppm if by_chance else 0))


def _uniform_of_named(request: _Request) -> Iterator[_Statement]:
    """Yield the uniform distribution of the named outcomes; if they change, again once forecasts give others."""
    outcomes = request.questions.answers[request.number].question.outcomes
    changed = request.facts.changed.get(request.code)
    if changed is None:
        yield _from_opening(request, apportion(PROBABILITY, [1] * len(outcomes)))
        return
    as_of = int(request.questions.as_of[request.number])
    changes = [change for change in changed.changes if change.position <= as_of]
    counted_from = changed._replace(changes=tuple(changes)).counted_from()
    for number in range(len(changes) + 1):
        given = changed._replace(changes=tuple(changes[:number])).given()
        numbers = _laid_out(changed, given, apportion(PROBABILITY, [1] * len(given)))
        if not number:
            yield _from_opening(request, numbers)
            continue
        change = changes[number - 1]
        yield _Statement(change.position, change.ends_at, counted_from[number - 1], numbers)


def _laid_out(changed: ChangedOutcomes, given: Sequence[int], numbers: Sequence[int]) -> list[int]:
    """Return numbers of the outcomes that are given as `Forecasts` has them, one for every outcome there ever was."""
    every = [missing(changed.catch_all)] * changed.width
    for outcome, number in zip(given, numbers, strict=True):
        every[outcome] = number
    return every


def uniform_numbers(span: NumericRange, open_end_ppm: int) -> list[int]:
    """Return the uniform distribution on a range: heights at the edges of bins, 1e-10, or quantiles in its unit.

    Each open end has the probability open_end_ppm; bins share what remains equally. Quantiles are those of the range
    without open ends, and samples are its quantiles at the middles of equal shares. Rounded half-even once.

    >>> uniform_numbers(NumericRange(lower="0", upper="4", bins=2, open_upper=True), 50_000)
    [0, 4750000000, 9500000000]
    >>> uniform_numbers(NumericRange(lower="0", upper="4", levels=(250_000_000, 500_000_000), decimals=1), 50_000)
    [10, 20]
    """
    if span.measures:
        fractions = [Fraction(level, PROBABILITY) for level in span.levels]
        fractions = fractions or [Fraction(2 * number + 1, 2 * span.samples) for number in range(span.samples)]
        values = (value_at(fraction, span) * 10**span.decimals for fraction in fractions)
        return [half_even(value.numerator, value.denominator) for value in values]
    below, above = Fraction(open_end_ppm * span.open_lower, _PPM), Fraction(open_end_ppm * span.open_upper, _PPM)
    heights = (CUMULATIVE * (below + (1 - below - above) * Fraction(edge, span.bins)) for edge in range(span.bins + 1))
    return [half_even(height.numerator, height.denominator) for height in heights]


def _from_opening(request: _Request, numbers: Sequence[int]) -> _Statement:
    return _Statement(request.facts.opened[request.code], request.opens, request.opens, numbers)


def _market(request: _Request) -> Iterator[_Statement]:
    """Yield the prices of the last quote of each outcome, from when it is known; nothing on a numeric question.

    A binary question has the price of yes, and 1 less it for no. The prices of three or more outcomes are divided by
    their sum, by largest remainder, once all have a price; while all are 0, the forecast before stands.
    """
    question, as_of = request.questions.answers[request.number].question, int(request.questions.as_of[request.number])
    if question.range is not None:
        return
    last: list[int | None] = [None] * len(question.outcomes)
    quotes = request.facts.books.quotes.of(request.code)
    recorded = np.maximum.accumulate(quotes.recorded_at).tolist()
    times = zip(quotes.position.tolist(), quotes.known_from.tolist(), recorded, strict=True)
    for (position, known_from, recorded_at), prices in zip(times, quotes.prices.tolist(), strict=True):
        if position > as_of:
            return
        last = [before if price == NO_PRICE else price for before, price in zip(last, prices, strict=True)]
        changed = request.facts.changed.get(request.code)
        given = range(len(last)) if changed is None else changed.given()
        shares = _shares([last[outcome] for outcome in given], binary=question.kind == "binary")
        if shares:
            numbers = shares if changed is None else _laid_out(changed, given, shares)
            yield _Statement(position, known_from, recorded_at, numbers)


def _shares(prices: Sequence[int | None], *, binary: bool) -> list[int]:
    """Return the prices as probabilities, 1e-9; empty if some are missing, or all are 0."""
    if binary:
        return [] if prices[0] is None else [prices[0], PROBABILITY - prices[0]]
    known = [price for price in prices if price is not None]
    return apportion(PROBABILITY, known) if len(known) == len(prices) and any(known) else []


class Forecaster(NamedTuple):
    """A reference forecaster: its words for the reference, what it forecasts on one question, and the source."""

    words: str
    forecasts: Callable[[_Request], Iterator[_Statement]]
    source: str


def _elsewhere(_: _Request) -> Iterator[_Statement]:
    """Yield nothing: the consensus is made from the forecasts as they are scored."""
    yield from ()


FORECASTERS: dict[str, Forecaster] = {
    "consensus": Forecaster(
        "the consensus of the members", _elsewhere, "Metaculus's published code: aggregates are scored and listed"
    ),
    "always_half": Forecaster(
        "one half for yes; only on binary questions", _always_half, 'ForecastBench\'s leaderboard, "Always 0.5"'
    ),
    "uniform": Forecaster("the uniform distribution", _uniform, 'Metaculus, Scores FAQ, "What is the Baseline score?"'),
    "market": Forecaster(
        "the last quote that is known; only on named outcomes",
        _market,
        "ForecastBench's leaderboard, where the market's own Brier score is the difficulty of a market question",
    ),
}
