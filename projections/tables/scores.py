"""The tables of scores, and of the parts that each is the sum of."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.boards.contest_groups import ScoredGroup
from forecast_ledger.projections.core.arrays import Int64Array, int64_array, join_columns
from forecast_ledger.projections.core.column_values import (
    Ids,
    Values,
    concatenate,
    none_where_negative,
    round_to_points,
)
from forecast_ledger.projections.core.powers import QUANTUM
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores import reference_kinds, score_terms, time_weighted
from forecast_ledger.projections.scores.scored_questions import Questions
from forecast_ledger.projections.scores.terms import Terms
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.inputs import SCORED
from forecast_ledger.projections.tables.schemas import Projection, schema

_HALF_UNIT = 5  # units of 1e-11 in half a unit of 1e-10


_SCORE_PARTS = schema("""
    the parts of each score: one row for each interval in which a forecast and its reference stay the same

    contest*
    question*
    participant*
    from_at*      instant      the first instant
    to_at         instant      the first instant after the end
    probability   probability  the forecast's probability of the outcome, as scored
    reference     probability  the probability of the consensus, if that is the reference
    peers         count        number of members with a standing forecast, if these are the reference
    term          term         kernel of the forecast - kernel of its reference
    weight        count        time from from_at to to_at: in µs, in days, or 1 for a single instant
    contribution  integer      term x weight, exact; the sum of a score's contributions is its numerator
""")


def score_parts_values(analysis: Analysis, owner: int | None = None) -> list[Values]:
    """One row for each part; the terms are Python integers, because they may need more than 64 bits.

    owner: if given, return only the parts of this participant code. Raises Refused(out_of_range): too many rows.
    """
    facts = analysis.facts
    _check_parts(analysis, owner)
    codes: list[Int64Array] = [np.zeros(0, np.int64)]
    columns: list[tuple[Int64Array, ...]] = [(np.zeros(0, np.int64),) * 8]
    term: list[int] = []
    contributions = [WideInt.from_integers([])]
    for group in analysis.scored_groups:
        questions, fine = group.questions, reference_kinds.fine_bits(group.rules)
        to_term = [QUANTUM // unit for unit in questions.unit.tolist()]
        for first, terms in _terms(analysis, group, owner):
            rows = time_weighted.score_parts(first, terms, group.contests[0])
            codes.append(_contest_codes(analysis, group)[questions.contest[rows.question]])
            columns.append((questions.code[rows.question], *rows[1:8]))
            contributions.append(_contributions(questions, rows.question, rows.earned))
            term += [
                half_even(earned * to_term[question], units << fine)
                for question, units, earned in zip(
                    rows.question.tolist(), rows.units.tolist(), rows.earned.integers(), strict=True
                )
            ]
    question, participant, start, end, units, doubled, reference, peers = join_columns(columns, 8)
    return [
        Ids(np.concatenate(codes), analysis.contests),
        Ids(question, facts.question_codes.labels),
        Ids(participant, totals.score_labels(facts)),
        start,
        end,
        _probabilities(doubled),
        _probabilities(reference),
        none_where_negative(peers),
        term,
        units,
        concatenate(contributions),
    ]


def names_in_parts(facts: Facts) -> dict[str, list[str]]:
    """Return the names of contests, questions and participants, reference forecasters included."""
    labels = {"contest": sorted(facts.contests), "question": facts.question_codes.labels}
    return labels | {"participant": totals.score_labels(facts)}


def facts_on(facts: Facts, contest: str | None, question: str | None) -> Facts:
    """Return facts in which only this contest has questions, and only this one."""
    chosen = {*range(len(facts.questions))} if question is None else {facts.question_codes.codes[question]}
    contests = {
        name: replace(each, entries={code: entry for code, entry in each.entries.items() if code in own})
        for name, each in facts.contests.items()
        for own in [chosen if contest in {None, name} else set[int]()]
    }
    return replace(facts, contests=contests)


def _terms(analysis: Analysis, group: ScoredGroup, owner: int | None) -> Iterator[tuple[int, Terms]]:
    """Yield the terms of a group of contests, of all participants or of one."""
    for first, terms in score_terms.terms_in_chunks(analysis.facts, group.contests, group.questions, analysis.chunk):
        yield first, terms if owner is None else terms.of(np.flatnonzero(terms.standing.participant == owner))


_PART_BYTES = 250  # of a row, at the most while the table is made


def _check_parts(analysis: Analysis, owner: int | None) -> None:
    count = sum(
        time_weighted.count_score_parts(terms)
        for group in analysis.scored_groups
        for _, terms in _terms(analysis, group, owner)
    )
    if count > time_weighted.MOST_PARTS:
        size = f"{count:,} rows, about {count * _PART_BYTES >> 20:,} MiB in memory"
        detail = f"the table would have {size}; the limit is {time_weighted.MOST_PARTS:,}"
        remedy = (
            "ask for a question or a participant: `table LOG score_parts --where question=…`, or in Python "
            "`score_parts(question=…)`; `export LOG OUT --tables score_parts --memory 2GiB` writes all of them"
        )
        raise Refused("out_of_range", "score_parts", None, detail, remedy=remedy)


def _probabilities(doubled: Int64Array) -> Values:
    """Return probabilities in 1e-11 from twice 1e-10; negative means missing."""
    return none_where_negative(doubled * _HALF_UNIT)


_SCORES = schema("""
    the score and coverage of each participant on each question of a contest

    contest*
    question*
    participant*
    score        points   numerator / denominator
    coverage     share    share of the period with a standing forecast, by the contest's weights
    attainable   share    coverage of a forecast that stood from the opening to the end of scored time
    numerator    integer  sum of the contributions in score_parts
    denominator  integer  the sum of contributions that scores one point
""")


def scores_values(analysis: Analysis) -> list[Values]:
    """One row for each question and participant of each contest."""
    facts = analysis.facts
    codes: list[Int64Array] = [np.zeros(0, np.int64)]
    columns: list[tuple[Int64Array | WideInt | list[int], ...]] = [
        (np.zeros(0, np.int64),) * 5 + (WideInt.from_integers([]),) * 2
    ]
    for group in analysis.scored_groups:
        questions, rows = group.questions, group.rows
        score = time_weighted.points(group.rules, questions, rows)
        share = time_weighted.coverages(questions, rows)
        most = int64_array([round_to_points(share) for share in time_weighted.attainable_shares(questions)])
        codes.append(_contest_codes(analysis, group)[questions.contest[rows.question]])
        columns.append((
            questions.code[rows.question],
            rows.participant,
            score.published(),
            share.published(),
            most[rows.question],
            _contributions(questions, rows.question, rows.numerator),
            _denominators(questions, rows.question, score),
        ))  # fmt: skip
    question, participant, *numbers = (concatenate(pages) for pages in zip(*columns, strict=True))
    return [
        Ids(np.concatenate(codes), analysis.contests),
        Ids(np.asarray(question), facts.question_codes.labels),
        Ids(np.asarray(participant), totals.score_labels(facts)),
        *numbers,
    ]


def _contest_codes(analysis: Analysis, group: ScoredGroup) -> Int64Array:
    """Return the codes of the contests of a group."""
    return int64_array([analysis.contest_codes[name] for name in group.names])


def _contributions(questions: Questions, question: Int64Array, earned: WideInt) -> WideInt:
    """Scale earned terms to a unit in which one point is a whole number."""
    return earned.scaled(int64_array([point.denominator for point in questions.per_point])[question])


def _denominators(questions: Questions, question: Int64Array, score: time_weighted.Quotients) -> WideInt:
    """Return the value of one point in that unit."""
    factors = np.ones(len(score.divisors), np.int64)
    # the denominator is the same for all questions with one divisor
    factors[score.place] = int64_array([point.denominator for point in questions.per_point])[question]
    distinct = [int(divisor * factor) for divisor, factor in zip(score.divisors, factors.tolist(), strict=True)]
    return WideInt.from_integers(distinct).take(score.place)


SCORES: dict[str, Projection] = {
    "score_parts": Projection(4, _SCORE_PARTS, score_parts_values, reads=SCORED, division="scores", on_request=True),
    "scores": Projection(5, _SCORES, scores_values, reads=SCORED, division="scores"),
}
