"""The forecasts of reference forecasters, which boards show beside those of participants.

They are made here and scored like any forecast of a participant who is not a member. The consensus, which depends on
the forecasts of members, is a reference forecaster as well; `score_terms` makes it.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import CUMULATIVE, NEVER, PROBABILITY
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.rules import REFERENCE_ROWS, RuleSet, shown_references
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.powers import apportion
from forecast_ledger.projections.facts.columns import ChangedOutcomes, Facts, Forecasts, join_pages
from forecast_ledger.projections.facts.outcomes import missing
from forecast_ledger.projections.facts.quotes import NO_PRICE
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.range_kernels import value_at
from forecast_ledger.projections.scores.score_policies import kernel_of
from forecast_ledger.projections.scores.scored_questions import Questions

_PPM = 10**6


class _Asked(NamedTuple):
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


def reference_forecasts(facts: Facts, rules: RuleSet, questions: Questions) -> Forecasts:
    """Return the forecasts of all reference forecasters but the consensus.

    question: index into the questions. participant: see `code_of`. A statement before the opening is moved to it, since
    the quote that stands then is the market's forecast, whatever the rules say about early forecasts.
    """
    rows, lengths, numbers = list[tuple[int, ...]](), list[int](), list[int]()
    for name in shown_references(rules):
        if name == "consensus":
            continue
        code = code_of(facts, name)
        for number in range(len(questions.code)):
            asked = _Asked(facts, rules, questions, number)
            for statement in FORECASTERS[name].forecasts(asked):
                at, recorded_at = max(statement.at, asked.opens), max(statement.recorded_at, asked.opens)
                rows.append((statement.position, at, recorded_at, number, code))
                lengths.append(len(statement.numbers))
                numbers += statement.numbers
    columns = int64_array([value for row in rows for value in row]).reshape(len(rows), 5).T
    made, until = np.ones(len(rows), np.int64), np.full(len(rows), NEVER)
    return join_pages([(*columns, made, until, int64_array(lengths), int64_array(numbers))])[0]


def _always_half(asked: _Asked) -> Iterator[_Statement]:
    """Yield one half for yes, from the opening; nothing on questions that are not binary."""
    if asked.questions.answers[asked.number].question.kind == "binary":
        yield _from_opening(asked, [PROBABILITY // 2] * 2)


def _uniform(asked: _Asked) -> Iterator[_Statement]:
    """Yield the uniform distribution, from the opening: that of the reference `uniform`; on levels, its quantiles.

    Kernels of the probability of the outcome give an open end `open_end_ppm`; the others, which measure distances on
    the range, have all probability inside it.
    """
    question = asked.questions.answers[asked.number].question
    if question.range is None:
        yield from _uniform_of_named(asked)
    else:
        by_chance = KERNELS[kernel_of(asked.rules, question)].of_chance is not None
        yield _from_opening(asked, uniform_numbers(question.range, asked.rules.open_end_ppm if by_chance else 0))


def _uniform_of_named(asked: _Asked) -> Iterator[_Statement]:
    """Yield the uniform distribution of the named outcomes; if they change, again once forecasts give others."""
    outcomes = asked.questions.answers[asked.number].question.outcomes
    changed = asked.facts.changed.get(asked.code)
    if changed is None:
        yield _from_opening(asked, apportion(PROBABILITY, [1] * len(outcomes)))
        return
    as_of = int(asked.questions.as_of[asked.number])
    changes = [change for change in changed.changes if change.position <= as_of]
    counted_from = changed._replace(changes=tuple(changes)).counted_from()
    for number in range(len(changes) + 1):
        given = changed._replace(changes=tuple(changes[:number])).given()
        numbers = _laid_out(changed, given, apportion(PROBABILITY, [1] * len(given)))
        if not number:
            yield _from_opening(asked, numbers)
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

    Each open end has the probability open_end_ppm; the bins share the rest equally. Quantiles are those of the range
    without open ends, and samples are its quantiles at the middles of equal shares. Rounded half-even once.

    >>> uniform_numbers(NumericRange(lower="0", upper="4", bins=2, open_upper=True), 50_000)
    [0, 4750000000, 9500000000]
    >>> uniform_numbers(NumericRange(lower="0", upper="4", levels=(250_000_000, 500_000_000), decimals=1), 50_000)
    [10, 20]
    """
    if span.measures:
        places = [Fraction(level, PROBABILITY) for level in span.levels]
        places = places or [Fraction(2 * number + 1, 2 * span.samples) for number in range(span.samples)]
        values = (value_at(place, span) * 10**span.decimals for place in places)
        return [half_even(value.numerator, value.denominator) for value in values]
    below, above = Fraction(open_end_ppm * span.open_lower, _PPM), Fraction(open_end_ppm * span.open_upper, _PPM)
    heights = (CUMULATIVE * (below + (1 - below - above) * Fraction(edge, span.bins)) for edge in range(span.bins + 1))
    return [half_even(height.numerator, height.denominator) for height in heights]


def _from_opening(asked: _Asked, numbers: Sequence[int]) -> _Statement:
    return _Statement(asked.facts.opened[asked.code], asked.opens, asked.opens, numbers)


def _market(asked: _Asked) -> Iterator[_Statement]:
    """Yield the prices of the last quote of each outcome, from when it is known; nothing on a numeric question.

    A binary question has the price of yes, and 1 less it for no. The prices of three or more outcomes are divided by
    their sum, by largest remainder, once all have a price; while all are 0, the forecast before stands.
    """
    question, as_of = asked.questions.answers[asked.number].question, int(asked.questions.as_of[asked.number])
    if question.range is not None:
        return
    last: list[int | None] = [None] * len(question.outcomes)
    quotes = asked.facts.books.quotes.of(asked.code)
    recorded = np.maximum.accumulate(quotes.recorded_at).tolist()
    times = zip(quotes.position.tolist(), quotes.known_from.tolist(), recorded, strict=True)
    for (position, known_from, recorded_at), prices in zip(times, quotes.prices.tolist(), strict=True):
        if position > as_of:
            return
        last = [before if price == NO_PRICE else price for before, price in zip(last, prices, strict=True)]
        changed = asked.facts.changed.get(asked.code)
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
    forecasts: Callable[[_Asked], Iterator[_Statement]]
    source: str


def _elsewhere(_: _Asked) -> Iterator[_Statement]:
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
