"""The tables of scores, and of the parts that each is the sum of."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards import totals
from forecast_ledger.projections.boards.contest_groups import ScoredGroup
from forecast_ledger.projections.boards.leaderboard import TOTALS
from forecast_ledger.projections.core.arrays import Int64Array, int64_array, join_columns
from forecast_ledger.projections.core.columns import (
    POINTS,
    Ids,
    Values,
    columns_of_rows,
    join_numbers,
    none_where_negative,
)
from forecast_ledger.projections.core.powers import QUANTUM
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores import reference_kinds, score_terms, time_weighted
from forecast_ledger.projections.scores.scored_questions import Questions, lower_is_better
from forecast_ledger.projections.scores.terms import Terms
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.difficulty import (
    CONTEST,
    brier_index,
    relative_skills,
    scaled,
    scored_cells,
)
from forecast_ledger.projections.studies.reviews import review_ends, reviews
from forecast_ledger.projections.tables.analysis import Analysis, codes_of
from forecast_ledger.projections.tables.schemas import ANSWERED, DRAWN, SCORED, Projection, schema

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
    known = _checked_parts(analysis, owner)
    codes: list[Int64Array] = [np.zeros(0, np.int64)]
    columns: list[tuple[Int64Array, ...]] = [(np.zeros(0, np.int64),) * 8]
    term: list[int] = []
    contributions = [WideInt.from_integers([])]
    for number, group in enumerate(analysis.scored_groups):
        questions, fine = group.questions, reference_kinds.fine_bits(group.rules)
        to_term = [QUANTUM // unit for unit in questions.unit.tolist()]
        for first, terms in known[number] if known else _terms(analysis, group, owner):
            rows = time_weighted.score_parts(first, terms, group.contests[0])
            codes.append(codes_of(analysis, group.names)[questions.contest[rows.question]])
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
        join_numbers(contributions),
    ]


def names_in_parts(facts: Facts) -> dict[str, list[str]]:
    """Return the names of contests, questions and participants, reference forecasters included."""
    labels = {"contest": sorted(facts.contests), "question": facts.question_codes.labels}
    return labels | {"participant": totals.score_labels(facts)}


def facts_on(facts: Facts, contest: str | None, question: str | None) -> Facts:
    """Return facts in which only this contest has questions, and only this one."""
    chosen = {*range(len(facts.questions))} if question is None else {facts.question_codes.codes[question]}
    contests = {
        name: replace(each, entries={code: entry for code, entry in each.entries.items() if code in kept})
        for name, each in facts.contests.items()
        for kept in [chosen if contest in {None, name} else set[int]()]
    }
    return replace(facts, contests=contests)


def _terms(analysis: Analysis, group: ScoredGroup, owner: int | None) -> Iterator[tuple[int, Terms]]:
    """Yield the terms of a group of contests, of all participants or of one."""
    for first, terms in score_terms.terms_in_chunks(analysis.facts, group.contests, group.questions, analysis.chunk):
        yield first, terms if owner is None else terms.of(np.flatnonzero(terms.standing.participant == owner))


_PART_BYTES = 250  # of a row, at the most while the table is made


_FEW_PARTS = 10_000  # rows whose terms are kept meanwhile


def _checked_parts(analysis: Analysis, owner: int | None) -> list[list[tuple[int, Terms]]]:
    """Return the terms of each group, or nothing if they are many. Raises Refused(out_of_range)."""
    count, known = 0, list[list[tuple[int, Terms]]]()
    for group in analysis.scored_groups:
        known.append([])
        for first, terms in _terms(analysis, group, owner):
            count += time_weighted.count_score_parts(terms)
            if count <= _FEW_PARTS:
                known[-1].append((first, terms))
    if count > time_weighted.MOST_PARTS:
        size = f"{count:,} rows, about {count * _PART_BYTES >> 20:,} MiB in memory"
        detail = f"the table would have {size}; the limit is {time_weighted.MOST_PARTS:,}"
        remedy = (
            "ask for a question or a participant: `table LOG score_parts --where question=…`, or in Python "
            "`score_parts(question=…)`; `export LOG OUT --tables score_parts --memory 2GiB` writes all of them"
        )
        raise Refused("out_of_range", "score_parts", None, detail, remedy=remedy)
    return known if count <= _FEW_PARTS else []


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
        codes.append(codes_of(analysis, group.names)[questions.contest[rows.question]])
        columns.append((
            questions.code[rows.question],
            rows.participant,
            score.published(),
            share.published(),
            time_weighted.attainable_shares(questions)[rows.question],
            _contributions(questions, rows.question, rows.numerator),
            _denominators(questions, rows.question, score),
        ))  # fmt: skip
    question, participant, *numbers = (join_numbers(pages) for pages in zip(*columns, strict=True))
    return [
        Ids(np.concatenate(codes), analysis.contests),
        Ids(np.asarray(question), facts.question_codes.labels),
        Ids(np.asarray(participant), totals.score_labels(facts)),
        *numbers,
    ]


def _contributions(questions: Questions, question: Int64Array, earned: WideInt) -> WideInt:
    """Scale earned terms to a unit in which one point is a whole number."""
    return earned.scaled(int64_array([point.denominator for point in questions.per_point])[question])


def _denominators(questions: Questions, question: Int64Array, score: time_weighted.Quotients) -> WideInt:
    """Return the value of one point in that unit."""
    factors = np.ones(len(score.divisors), np.int64)
    # the denominator is the same for all questions with one divisor
    factors[score.divisor_of] = int64_array([point.denominator for point in questions.per_point])[question]
    distinct = [int(divisor * factor) for divisor, factor in zip(score.divisors, factors.tolist(), strict=True)]
    return WideInt.from_integers(distinct).take(score.divisor_of)


SCORES: dict[str, Projection] = {
    "score_parts": Projection(4, _SCORE_PARTS, score_parts_values, reads=SCORED, division="scores", on_request=True),
    "scores": Projection(5, _SCORES, scores_values, reads=SCORED, division="scores"),
}


# --- The tables of difficulty: effects of questions, adjusted scores, relative skill, and reviews.


_DIFFICULTY = schema("""
    how much each question raises or lowers scores, whoever forecasts on it: its effect, fitted by least squares

    by*           id      contest or category: what the scores of one fit have in common
    name*         id      the contest; or the category, of which questions are in several contests with the same rules
    part*         count   1 for the part with most scores; only scores within a part can be compared
    contest*
    question*
    participants  count   number of participants whose scores are fitted
    mean_score    points  mean of their scores
    effect        points  what the question adds to a score; the weighted mean of a part's effects is 0
""")


def difficulty_values(analysis: Analysis) -> list[Values]:
    """One row for each question of each part of a design."""
    ids = analysis.facts.question_codes.labels
    rows = [
        (part.by, part.name, part.number, contest, ids[question], *numbers)
        for part in analysis.design_parts
        for contest, question, *numbers in part.questions
    ]
    return columns_of_rows(rows, _DIFFICULTY.columns)


_ADJUSTED_SCORES = schema("""
    mean scores adjusted for the difficulty of the questions that each participant forecast on, best first

    by*             id      contest or category: what the scores of one fit have in common
    name*           id      the contest; or the category, of which questions are in several contests with the same rules
    part*           count   1 for the part with most scores; only scores within a part can be compared
    rank            count   1, 2, 2, 4 by adjusted score; empty if the scores are not fitted
    participant*
    questions       count   number of questions of the part that the participant forecast on; a question without a
                            fitted score is in no part
    mean_score      points  weighted mean of the scores on these questions of the part
    adjusted_score  points  weighted mean of score - effect of the question, on the same questions
    brier_index     points  100 x (1 - √adjusted_score), if the scores are Brier scores; always ½ has 50; empty below 0
    excluded        text    why the scores are not fitted: no_rank, consensus or reference
""")


def adjusted_scores_values(analysis: Analysis, contest: str | None = None) -> list[Values]:
    """One row for each participant of each part of a design, best first. contest: only of its design."""
    parts = analysis.design_parts if contest is None else analysis.contest_parts(contest)
    rows = [(part.by, part.name, part.number, *scores) for part in parts for scores in part.participants]
    return columns_of_rows(rows, _ADJUSTED_SCORES.columns)


_ADJUSTED_INTERVALS = schema("""
    how far adjusted scores move if questions are resampled, and their effects fitted again each time; best first

    contest*
    part*             count   as in the table `adjusted_scores`
    participant*
    clusters          count   number of clusters of the part in which the participant has a score
    withheld          text    why there is no interval: as in the table `intervals`, or apart or many_participants
    rank              count   as in the table `adjusted_scores`
    adjusted_score    points  as there
    adjusted_low      points  lower end of its interval, at the level_ppm of the rules
    adjusted_high     points  upper end
    rank_set_low      count   the best rank by adjusted scores that replicates allow, for all participants at once
    rank_set_high     count   the worst rank that they allow
    rank_low          count   the best rank that they allow this participant, by itself
    rank_high         count   the worst one
    brier_index       points  as there
    brier_index_low   points  that of adjusted_high
    brier_index_high  points  that of adjusted_low
    replicates        count   number of replicates
    seed              text    seed of the draws: SHA-256 of the digest of what is scored and `adjusted_intervals`
""")


def adjusted_intervals_values(analysis: Analysis, contest: str | None = None) -> list[Values]:
    """One row for each participant whose scores are fitted in a contest, by part, best first.

    contest: only this one.
    """
    rows = []
    for part in analysis.design_parts if contest is None else analysis.contest_parts(contest):
        if part.by != CONTEST:
            continue
        fitted = [each for each in part.participants if not each.excluded]
        replicates = analysis.facts.contests[part.name].opened.rules.replicates
        seed = analysis.seed(part.name, "adjusted_intervals")
        index = any(each.brier_index is not None for each in fitted)
        for each, interval in zip(fitted, analysis.adjusted_intervals(part), strict=True):
            low, high = interval.ends or (None, None)
            ranks = (*(interval.rank_set or (None, None)), *(interval.ranks or (None, None)))
            scores = (each.rank, each.adjusted, low, high, *ranks)
            indices = [
                None if score is None or not index else brier_index(Fraction(score, POINTS)) for score in (high, low)
            ]
            key = (part.name, part.number, each.participant, interval.clusters, interval.withheld)
            rows.append((*key, *scores, each.brier_index, *indices, replicates, seed.hex()))
    return columns_of_rows(rows, _ADJUSTED_INTERVALS.columns)


_RELATIVE_SKILL = schema("""
    mean scores beside those of others on the same questions; only of rules by which 0 is the best score

    contest*
    baseline*              id      the participant whose relative skill is 1 in scaled_relative_skill
    participant*
    compared               count   number of participants in the geometric mean, themselves included
    relative_skill         points  geometric mean of the ratios of the own mean score to each other's, on common
                                   questions; lower is better; empty if a mean is 0
    scaled_relative_skill  points  relative_skill / that of the baseline
    excluded               text    why nobody else is compared with them: no_rank, consensus or reference
""")


def relative_skill_values(analysis: Analysis, contest: str | None = None, *, first: bool = False) -> list[Values]:
    """One row for each participant of each contest and each baseline, by baseline.

    contest: only this one. first: only with the first baseline; the others change scaled_relative_skill alone.
    """
    return columns_of_rows([*_relative_skills(analysis, contest, first=first)], _RELATIVE_SKILL.columns)


def _relative_skills(analysis: Analysis, only: str | None, *, first: bool) -> Iterator[tuple[Any, ...]]:
    for group in analysis.scored_groups:
        if not lower_is_better(group.rules) or group.rules.reference != "none":
            continue  # scores may be below 0
        if only is not None and only not in group.names:
            continue
        scored = scored_cells(analysis.facts, group)
        contest = group.questions.contest[scored.cells.question]
        for number in np.unique(contest).tolist():
            if only is not None and group.names[number] != only:
                continue
            rows = np.flatnonzero(contest == number)
            cells = scored.cells.take(rows)
            excluded = {int(cells.participant[index]): scored.excluded[row] for index, row in enumerate(rows.tolist())}
            skills = relative_skills(cells, {code for code, reason in excluded.items() if not reason})
            for baseline, skill in product(skills[:1] if first else skills, skills):
                names = (group.names[number], scored.names[baseline.participant], scored.names[skill.participant])
                yield *names, skill.compared, scaled(skill), scaled(skill, baseline), excluded[skill.participant]


_PARTICIPANT_REVIEW = schema("""
    the questions of each participant, the best first, beside the others, with what a missed question cost

    contest*
    participant*
    place*       count   1 for the question that gained most, times its weight
    question
    score        points  the score; empty without a forecast
    rank         count   rank of the score on this question; empty without a forecast
    forecasters  count   number of participants on the leaderboard with a forecast on it
    coverage     share   share of the period with a standing forecast
    attainable   share   coverage of a forecast that stood all the time that is scored
    median       points  median of the scores of these participants
    counted      points  the score or, without a forecast, what the rules count; empty if they count nothing
    gained       points  by how much counted is better than the median; below 0, what it cost
""")


def participant_review_values(
    analysis: Analysis, contest: str | None = None, only: Collection[str] | None = None
) -> list[Values]:
    """One row for each participant on a board and each question of the contest that one of them forecast on.

    contest: only this one. only: only these participants, compared with all.
    """
    analysis.score_all()
    rows: list[tuple[object, ...]] = []
    for name in analysis.contests if contest is None else [contest]:
        rows += _reviewed(analysis, name, _people(analysis, name, only))
    return columns_of_rows(rows, _PARTICIPANT_REVIEW.columns)


def participant_review_ends(
    analysis: Analysis, contest: str, only: Collection[str], most: int
) -> tuple[list[Values], dict[str, int]]:
    """Return rows of `participant_review`, and how many questions count, by participant.

    contest, only: as there. The rows include the first and the last `most` that count of each participant.
    """
    analysis.score_all()
    people, names = _people(analysis, contest, only), totals.score_labels(analysis.facts)
    floored, compared = _floored(analysis, contest), _people(analysis, contest)
    ends = review_ends(*_review(analysis, contest, people), most, floored=floored, compared=compared)
    rows = [*_reviewed(analysis, contest, people, ends.questions)]
    counted = {names[code]: number for code, number in ends.counted.items()}
    return columns_of_rows(rows, _PARTICIPANT_REVIEW.columns), counted


def _people(analysis: Analysis, contest: str, only: Collection[str] | None = None) -> list[int]:
    """Return the codes of the participants on a board, in order of their ids; only: of these."""
    names, on_board = totals.score_labels(analysis.facts), {row.participant for row in analysis.board(contest)}
    every = [person for person, label in enumerate(analysis.facts.participant_codes.labels) if label in on_board]
    return sorted((person for person in every if only is None or names[person] in only), key=names.__getitem__)


def _review(analysis: Analysis, contest: str, people: list[int]) -> tuple[RuleSet, ContestScores, list[int], int]:
    """Return the first arguments of `reviews` and `review_ends`."""
    facts = analysis.facts
    rules, consensus = facts.contests[contest].opened.rules, len(facts.participant_codes.labels)
    return rules, analysis.scored(contest), people, consensus


def _reviewed(
    analysis: Analysis, contest: str, people: list[int], questions: Mapping[int, Collection[int]] | None = None
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a contest. people: codes of participants. questions: indices of some of each; None is all."""
    scored, names = analysis.scored(contest), totals.score_labels(analysis.facts)
    floored, compared = _floored(analysis, contest), _people(analysis, contest)
    for row in reviews(*_review(analysis, contest, people), floored=floored, compared=compared, only=questions):
        question = analysis.facts.question_codes.labels[scored.questions.code[row.question]]
        yield (contest, names[row.participant], row.place, question, *row[3:])


def _floored(analysis: Analysis, contest: str) -> set[int]:
    """Return the codes of the participants whose total is divided by least_coverage: they have forecast on less."""
    opened, codes = analysis.facts.contests[contest], analysis.facts.participant_codes.codes
    rules = opened.opened.rules
    if not TOTALS[rules.total].floored:
        return set()
    divisor = attrgetter(str(TOTALS[rules.total].divisor))
    every = totals.participant_sums(analysis.facts, opened, analysis.tally(contest))
    return {codes[sums.participant] for sums in every if not sums.reference and divisor(sums) < rules.least_coverage}


DIFFICULTY: dict[str, Projection] = {
    "difficulty": Projection(
        2, _DIFFICULTY, difficulty_values, reads=(*ANSWERED, "contests"), on_request=True, whole=True
    ),
    "adjusted_scores": Projection(
        2, _ADJUSTED_SCORES, adjusted_scores_values, reads=SCORED, as_built=True, on_request=True, whole=True
    ),
    "adjusted_intervals": Projection(
        2, _ADJUSTED_INTERVALS, adjusted_intervals_values, reads=DRAWN, as_built=True, on_request=True, whole=True
    ),
    "relative_skill": Projection(2, _RELATIVE_SKILL, relative_skill_values, reads=SCORED, on_request=True),
    "participant_review": Projection(
        2, _PARTICIPANT_REVIEW, participant_review_values, reads=(*ANSWERED, "contests"), on_request=True
    ),
}
