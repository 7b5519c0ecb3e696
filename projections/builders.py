"""The tables' values, column by column: what each projection of the catalogue is built from."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ledger.exact import QUANTUM, half_even
from projections import consensus, leaderboard, prizes, references, scores, shares, sums, terms
from projections.columns import Codes, Facts
from projections.limbs import Int64Array, column
from projections.table import Ids, Values, concatenated, ids, known, published, transposed
from projections.tables import status

if TYPE_CHECKING:
    from projections.projection import Projections

_CHANCE_DIGITS = 5  # 1e-11 in half of 1e-10


def standing_values(of: "Projections") -> list[Values]:
    """One row an interval of a forecast."""
    facts, standing = of.facts, of.standing
    return [
        Ids(standing.question, facts.question_codes.labels),
        Ids(standing.participant, facts.participant_codes.labels),
        standing.start,
        standing.end,
        facts.forecasts.at[standing.row],
        facts.forecasts.position[standing.row],
    ]


def consensus_values(of: "Projections") -> list[Values]:
    """One row an interval of the median of an outcome."""
    facts = of.facts
    found = consensus.medians_over_time(facts, of.standing, status(facts), of.chunk)
    question, outcome, start, end, count, median = _joined(found, 6)
    return [
        Ids(question, facts.question_codes.labels),
        _outcome_ids(facts, question, outcome),
        start,
        end,
        count,
        median,
    ]


def score_parts_values(of: "Projections", owner: int | None = None) -> list[Values]:
    """One row a part; contributions and terms in Python integers, which may need more than 64 bits.

    owner: the code of the only participant whose parts are asked for.
    """
    facts = of.facts
    codes: list[Int64Array] = [np.zeros(0, np.int64)]
    columns: list[tuple[Int64Array, ...]] = [(np.zeros(0, np.int64),) * 8]
    term: list[int] = []
    contribution: list[int] = []
    for code, name in enumerate(of.contests):
        contest, questions = facts.contests[name], of.scored(name).questions
        fine, factor = references.fine_bits(contest.opened.rules), [each.denominator for each in questions.per_point]
        to_term = [QUANTUM // unit for unit in questions.unit.tolist()]
        for first, made_of in terms.terms(facts, contest, questions, of.chunk):
            own = made_of if owner is None else made_of.of(np.flatnonzero(made_of.standing.participant == owner))
            rows = scores.parts(first, own, contest)
            codes.append(np.full(len(rows.question), code))
            columns.append((questions.code[rows.question], *rows[1:8]))
            for question, units, earned in zip(
                rows.question.tolist(), rows.units.tolist(), rows.earned.integers(), strict=True
            ):
                term.append(half_even(earned * to_term[question], units << fine))
                contribution.append(earned * factor[question])
    question, participant, start, end, units, doubled, reference, peers = _joined(columns, 8)
    return [
        Ids(np.concatenate(codes), of.contests),
        Ids(question, facts.question_codes.labels),
        Ids(participant, sums.labels(facts)),
        start,
        end,
        _chances(doubled),
        _chances(reference),
        known(peers),
        term,
        units,
        contribution,
    ]


def scores_values(of: "Projections") -> list[Values]:
    """One row a question and participant of each contest."""
    facts = of.facts
    codes: list[Int64Array] = [np.zeros(0, np.int64)]
    columns: list[tuple[Int64Array | list[int], ...]] = [(np.zeros(0, np.int64),) * 5 + ([], [])]
    for code, contest in enumerate(of.contests):
        questions, rows = of.scored(contest)
        rules = facts.contests[contest].opened.rules
        score, share = shares.points(rules, questions, rows), shares.coverages(questions, rows)
        most = column([published(each) for each in shares.attainable_shares(questions)])
        factor = column([each.denominator for each in questions.per_point])[rows.question]
        factors = np.ones(len(score.divisors), np.int64)
        factors[score.which] = factor  # of one divisor they are one
        denominators = [int(each * by) for each, by in zip(score.divisors, factors.tolist(), strict=True)]
        codes.append(np.full(len(rows.question), code))
        columns.append((
            questions.code[rows.question],
            rows.participant,
            score.published(),
            share.published(),
            most[rows.question],
            [earned * by for earned, by in zip(rows.numerator.integers(), factor.tolist(), strict=True)],
            [denominators[place] for place in score.which.tolist()],
        ))  # fmt: skip
    question, participant, *numbers = (concatenated(pages) for pages in zip(*columns, strict=True))
    return [
        Ids(np.concatenate(codes), of.contests),
        Ids(np.asarray(question), facts.question_codes.labels),
        Ids(np.asarray(participant), sums.labels(facts)),
        *numbers,
    ]


def leaderboard_values(of: "Projections") -> list[Values]:
    """One row a participant of each contest, best first."""
    rows: list[list[Any]] = []
    for code, contest in enumerate(of.contests):
        paid = {prize.participant: prize for prize in of.prizes(contest)}
        for place in of.board(contest):
            prize = paid.get(place.participant, prizes.Prize(place.participant, 0, 0))
            rows.append([
                code,
                place.rank,
                place.participant,
                published(place.score),
                published(place.coverage),
                published(place.attainable),
                None if place.take is None else leaderboard.published(place.take),
                prize.share,
                prize.prize,
                f"{place.forecast_on}/{place.questions}",
                place.submissions,
                place.excluded,
            ])  # fmt: skip
    codes, rank, participant, *others = transposed(rows, 12)
    return [Ids(column(codes), of.contests), rank, ids(participant), *others]


def prizes_values(of: "Projections") -> list[Values]:
    """One row a participant who can win, or has been paid."""
    codes, rows = [], []
    for code, name in enumerate(of.contests):
        paid = {winner: payment.amount for winner, payment in of.facts.contests[name].paid.items()}
        worth = {prize.participant: prize.prize for prize in of.prizes(name)}
        for participant in worth | paid:
            codes.append(code)
            rows.append((participant, worth.get(participant, 0), paid.get(participant, 0)))
    participants, *amounts = transposed(rows, 3)
    return [Ids(column(codes), of.contests), ids(participants), *amounts]


def _outcome_ids(facts: Facts, question: Int64Array, outcome: Int64Array) -> Ids:
    """Outcomes by name; those of a numeric question by the number of their bin."""
    codes, width = Codes(), int(outcome.max(initial=0)) + 1
    pairs, inverse = np.unique(question * width + outcome, return_inverse=True)
    named = [
        codes.add((facts.questions[q].outcomes or _Numbers())[o]) for q, o in (divmod(p, width) for p in pairs.tolist())
    ]
    return Ids(column(named)[inverse], codes.labels)


class _Numbers:
    """The names of bins."""

    def __getitem__(self, outcome: int) -> str:
        return str(outcome)


def _joined(found: Iterable[tuple[Int64Array, ...]], width: int) -> list[Int64Array]:
    columns = [np.concatenate(pages) for pages in zip(*found, strict=True)]
    return columns or [np.zeros(0, np.int64)] * width


def _chances(doubled: Int64Array) -> Values:
    """Probabilities in 1e-11 from twice 1e-10, none where negative."""
    return known(doubled * _CHANCE_DIGITS)
