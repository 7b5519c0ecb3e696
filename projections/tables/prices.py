"""The tables of prices: the last of each outcome, and every quote."""

from fractions import Fraction

import numpy as np

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.arrays import Int64Array, int64_array, join_columns
from forecast_ledger.projections.core.codes import Codes
from forecast_ledger.projections.core.column_values import (
    Ids,
    Values,
    columns_of_rows,
    round_to_points,
)
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.quotes import NO_PRICE
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.schemas import Projection, schema

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
        question, payouts = facts.questions[code], facts.books.payouts.get(code)
        for outcome, label in enumerate(question.outcomes):
            series = analysis.marks.series(code, outcome)
            if len(series.price):
                price, _, quoted_at, position = (int(column[-1]) for column in series)
                source = facts.books.quotes.last(code, position + 1).source
                brier = payouts and round_to_points((Fraction(price, PROBABILITY) - payouts[outcome]) ** 2)
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
        Ids(question, [asked.question for asked in facts.questions]),
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
    own = (quotes.position, quotes.known_from, quotes.quoted_at, quotes.source)
    prices = sides[:, row, outcome].astype(np.int64)
    return [np.full(len(row), code), label, *(column[row] for column in own), *prices]


PRICES: dict[str, Projection] = {
    "marks": Projection(2, _MARKS, marks_values, reads=("quotes", "resolutions", "clock"), division="quotes"),
    "quotes": Projection(1, _QUOTES, quotes_values, reads=("quotes",), final=True, on_request=True, exported=True),
}
