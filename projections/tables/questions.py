"""The tables of contests, of questions, and of their prices: the last of each outcome, and every quote."""

import json
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.projections.core.arrays import Codes, Int64Array, int64_array, join_columns
from forecast_ledger.projections.core.columns import (
    Ids,
    Values,
    columns_of_rows,
    round_to_points,
)
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.facts.quotes import NO_PRICE
from forecast_ledger.projections.facts.settlements import Settlement
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.schemas import Projection, schema

_CONTESTS = schema("""
    every contest, its rules, and the checkpoint that seals its leaderboard

    contest*
    title          text     the title of the contest
    rules          text     the name of its rule set
    pool           money    the prize money of the contest
    currency       text     the currency of the pool
    sealed_at      count    log position at which the leaderboard was sealed; empty before
    sealed_digest  text     digest of the log at sealed_at; both form the leaderboard's checkpoint
    paid           money    prizes paid so far
    series         text     the series of weekly contests that the contest belongs to
    starts_at      instant  start of the first period of a trading contest
    state          text     open, sealed, or complete (trading: all decisions taken and no position open)
""")


def contests_values(analysis: Analysis) -> list[Values]:
    """One row for each contest."""
    rows = [(name, *_contest(analysis.facts, analysis.facts.contests[name])) for name in analysis.contests]
    return columns_of_rows(rows, _CONTESTS.columns)


def _contest(facts: Facts, contest: Contest) -> list[Any]:
    opened, sealed = contest.opened, contest.sealed
    seal = (None, None) if sealed is None else sealed
    progress = facts.books.contests.get(opened.contest)
    complete = progress is not None and progress.complete()
    state = "sealed" if sealed is not None else "complete" if complete else "open"
    described = (opened.title, opened.rules.name, opened.pool, opened.currency)
    return [*described, *seal, contest.paid_total, opened.series, opened.starts_at, state]


_ORDERED = {None: "", True: "yes", False: "no"}


_QUESTIONS = schema("""
    every question, and its state

    question*
    kind          text     binary, multiple_choice, numeric, date or discrete
    title         text     its title
    outcomes      text     JSON: the possible outcomes, in the order of a forecast's probabilities; empty if it has a
                           range
    ordered       text     whether the outcomes have an order: yes or no; empty if it does not say, which counts as yes
    opens_at      instant  first instant at which forecasts are accepted
    closes_at     instant  scheduled end: first instant at which forecasts are refused
    closed_at     instant  actual end, which an early close can make earlier
    reveals_at    instant  end of the hidden period, if there is one
    log_position  count    log position of the event that opened it
    state         text     unresolved, resolved or annulled
    outcome       text     the outcome that occurred; for a question with a range the index of its bin
    value         text     the answer on a range: a number, an instant, or the name beyond an end
    group         text     the group that it belongs to
    category      text     its category
    tags          text     JSON: further words about it
    url           text     where it is described
    source        text     who asked it, or the text that its answer is taken from
""")


def questions_values(analysis: Analysis) -> list[Values]:
    """One row for each question."""
    facts = analysis.facts
    now, questions = status(facts), facts.questions
    codes = range(len(questions))
    return [
        Ids(int64_array(codes), facts.question_codes.labels),
        [question.kind for question in questions],
        [question.title for question in questions],
        [_json(_outcomes(facts, code)) for code in codes],
        [_ORDERED[question.ordered] for question in questions],
        now.opens_at,
        now.closes_at,
        now.closed_at,
        [question.reveals_at for question in questions],
        int64_array(facts.opened),
        [_state(facts.settled.get(code)) for code in codes],
        [_outcome(question, outcome) for question, outcome in zip(questions, now.outcome.tolist(), strict=True)],
        [value or None for value in now.values],
        [question.group for question in questions],
        [question.category for question in questions],
        [_json(question.tags) for question in questions],
        [question.url for question in questions],
        [question.source for question in questions],
    ]


def _state(answer: Settlement | None) -> str:
    return "unresolved" if answer is None else "resolved" if answer.is_answer else "annulled"


def _outcomes(facts: Facts, code: int) -> tuple[str, ...]:
    """Return the outcomes that a question has, without those that were removed."""
    names, changed = facts.questions[code].outcomes, facts.changed.get(code)
    return names if changed is None else tuple([names[outcome] for outcome in changed.given()])


@lru_cache
def _json(texts: tuple[str, ...]) -> str:
    """Return texts as JSON; many questions have the same outcomes, or no tags."""
    return json.dumps(texts, ensure_ascii=False)


def _outcome(question: events.QuestionOpened, outcome: int) -> str | None:
    if outcome < 0:
        return None
    return question.outcomes[outcome] if question.outcomes else str(outcome)


QUESTIONS: dict[str, Projection] = {
    "contests": Projection(2, _CONTESTS, contests_values, reads=("contests", "accounts"), division="contests"),
    "questions": Projection(3, _QUESTIONS, questions_values, reads=("questions", "resolutions"), division="questions"),
}


# --- The tables of prices: the last of each outcome, and every quote.


_MARKS = schema("""
    the last price of each outcome

    question*
    outcome*      id       the outcome
    price         points   price of a share
    quoted_at     instant  when the price was quoted
    age           seconds  time since quoted_at
    source        text     source of the quote
    log_position  count    log position of the event
    brier         points   (price - payout)²; empty until the question is resolved
""")


def marks_values(analysis: Analysis) -> list[Values]:
    """One row for each outcome that ever had a price: the last price, regardless of a contest's rules."""
    facts, rows = analysis.facts, []
    for code in facts.books.quotes:
        question, payouts = facts.questions[code], facts.payouts(code)
        for outcome, label in enumerate(question.outcomes):
            series = analysis.marks.series(code, outcome)
            if len(series.price):
                price, _, quoted_at, position = (int(column[-1]) for column in series)
                source = facts.books.quotes.last(code, position + 1).source
                brier = round_to_points((Fraction(price, PROBABILITY) - payouts[outcome]) ** 2) if payouts else None
                age = facts.books.clock - quoted_at
                rows.append([question.question, label, price, quoted_at, age, source, position, brier])
    return columns_of_rows(rows, _MARKS.columns)


_QUOTES = schema("""
    every quote of every outcome

    question*
    outcome*       id       the outcome
    log_position*  count    log position of the event
    known_from     instant  from when the quote counts: not before the question's quote before it
    quoted_at      instant  when the price was quoted
    source         text     source of the quote
    price          points   price of a share; like bid and ask empty if the quote has none
    bid            points   price at which a share can be sold
    ask            points   price at which a share can be bought
""")


def quotes_values(analysis: Analysis) -> list[Values]:
    """One row for each outcome of each quote that has a price, a bid or an ask for it."""
    facts, labels = analysis.facts, Codes()
    pages = [_quotes_of(facts, code, labels) for code in facts.books.quotes]
    question, outcome, *times, source, price, bid, ask = join_columns(pages, 9)
    sources = facts.books.quotes.sources.labels
    return [
        Ids(question, [opened.question for opened in facts.questions]),
        Ids(outcome, labels.labels),
        *(column.tolist() for column in times),  # lists, of which the table's digest was first computed
        [sources[code] for code in source.tolist()],
        *([None if number == NO_PRICE else number for number in side.tolist()] for side in (price, bid, ask)),
    ]


def _quotes_of(facts: Facts, code: int, labels: Codes) -> list[Int64Array]:
    """Return the rows of a question's quotes: its code, that of the outcome's label, and the columns that follow."""
    quotes, names = facts.books.quotes.of(code), facts.questions[code].outcomes
    none = np.full_like(quotes.prices, NO_PRICE)
    sides = np.stack([none if side is None else side for side in (quotes.prices, quotes.bids, quotes.asks)])
    row, outcome = np.nonzero((sides != NO_PRICE).any(axis=0))
    label = int64_array([labels.add(name) for name in names])[outcome]
    columns = (quotes.position, quotes.known_from, quotes.quoted_at, quotes.source)
    prices = sides[:, row, outcome].astype(np.int64)
    return [np.full(len(row), code), label, *(column[row] for column in columns), *prices]


PRICES: dict[str, Projection] = {
    "marks": Projection(2, _MARKS, marks_values, reads=("quotes", "resolutions", "clock"), division="quotes"),
    "quotes": Projection(1, _QUOTES, quotes_values, reads=("quotes",), final=True, on_request=True, exported=True),
}
