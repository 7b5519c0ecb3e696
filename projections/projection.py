"""The catalogue: every projection, its schema, and how its table follows from the facts."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ledger.exact import QUANTUM, half_even
from projections import consensus, leaderboard, prizes, scores
from projections.columns import Codes, Facts
from projections.limbs import Int64Array, Limbs
from projections.standing import Intervals, intervals
from projections.table import Column, Ids, Table, Values
from projections.tables import status

_POINTS = 10**9  # published units in 1
_CHANCE_DIGITS = 10  # 1e-11 in 1e-10


class Scored(NamedTuple):
    """A contest's scores and the questions they are for."""

    questions: scores.Questions
    rows: scores.Scores


class Projections:
    """Every table that follows from one set of facts; each is worked out when first asked for."""

    def __init__(self, facts: Facts, chunk: int = scores.CHUNK) -> None:
        """chunk: how many forecasts are scored at a time; it changes memory and speed, never a number."""
        self.facts = facts
        self.chunk = chunk
        self._scored: dict[str, Scored] = {}
        self._boards: dict[str, list[leaderboard.Place]] = {}

    def table(self, name: str) -> Table:
        """The table of a projection in the catalogue, in order of its key. Raises KeyError."""
        projection = CATALOGUE[name]
        table = Table(name, projection.version, projection.columns, tuple(projection.build(self)))
        return table.sorted_by(*projection.key)

    def scored(self, contest: str) -> Scored:
        """A contest's scores."""
        if contest not in self._scored:
            questions = scores.scored_questions(self.facts, self.facts.contests[contest])
            rows = scores.scores(self.facts, self.facts.contests[contest], questions, self.chunk)
            self._scored[contest] = Scored(questions, rows)
        return self._scored[contest]

    def board(self, contest: str) -> list[leaderboard.Place]:
        """A contest's board, best first."""
        if contest not in self._boards:
            self._boards[contest] = leaderboard.board(self.facts, self.facts.contests[contest], *self.scored(contest))
        return self._boards[contest]

    def prizes(self, contest: str) -> list[prizes.Prize]:
        """A contest's prizes, by id."""
        return prizes.prizes(self.facts.contests[contest], self.board(contest))

    @cached_property
    def contests(self) -> list[str]:
        """Contests in order of id."""
        return sorted(self.facts.contests)

    @cached_property
    def standing(self) -> Intervals:
        """When every forecast stood, whatever became of its question."""
        now = status(self.facts)
        return intervals(self.facts.forecasts, now.opens_at, now.closed_at)


class Projection(NamedTuple):
    """A named, versioned pure function from facts to a table.

    build: the values of the columns, in their order. key: the columns the rows are sorted by; none if built in order.
    """

    version: int
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    build: Callable[[Projections], Iterable[Values]]


def _standing(of: Projections) -> list[Values]:
    facts, standing = of.facts, of.standing
    return [
        Ids(standing.question, facts.question_codes.labels),
        Ids(standing.participant, facts.participant_codes.labels),
        standing.start,
        standing.end,
        facts.forecasts.at[standing.row],
        facts.forecasts.position[standing.row],
    ]


def _consensus(of: Projections) -> list[Values]:
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


def _score_parts(of: Projections) -> list[Values]:
    facts = of.facts
    codes, found = [np.zeros(0, np.int64)], [scores.Parts(*[np.zeros(0, np.int64)] * 7)]
    for code, contest in enumerate(of.contests):
        questions = of.scored(contest).questions
        for first, made_of in scores.terms(facts, facts.contests[contest], questions, of.chunk):
            rows = scores.parts(first, made_of)
            codes.append(np.full(len(rows.question), code))
            found.append(rows._replace(question=questions.code[rows.question]))
    question, participant, start, end, chance, doubled, term = _joined(found, 7)
    return [
        Ids(np.concatenate(codes), of.contests),
        Ids(question, facts.question_codes.labels),
        Ids(participant, facts.participant_codes.labels),
        start,
        end,
        chance * _CHANCE_DIGITS,
        doubled * (_CHANCE_DIGITS // 2),
        term,
        end - start,
        Limbs.product(term, end - start).integers(),
    ]


def _scores(of: Projections) -> list[Values]:
    facts = of.facts
    codes: list[int] = []
    rows: list[tuple[int, ...]] = []
    for code, contest in enumerate(of.contests):
        found = _contest_scores(*of.scored(contest))
        codes += [code] * len(found)
        rows += found
    question, participant, score, coverage, numerator, denominator = zip(*rows, strict=True) if rows else [()] * 6
    return [
        Ids(np.array(codes, np.int64), of.contests),
        Ids(np.array(question, np.int64), facts.question_codes.labels),
        Ids(np.array(participant, np.int64), facts.participant_codes.labels),
        list(score),
        np.array(coverage, np.int64),
        list(numerator),
        list(denominator),
    ]


def _contest_scores(questions: scores.Questions, rows: scores.Scores) -> list[tuple[int, ...]]:
    """question, participant, score, coverage, numerator, denominator."""
    period = (questions.closes - questions.opens).tolist()
    coverage = leaderboard.coverages(questions, rows)
    columns = (rows.question.tolist(), rows.participant.tolist(), rows.numerator.integers(), coverage)
    return [
        (
            int(questions.code[question]),
            participant,
            half_even(numerator * _POINTS, period[question] * QUANTUM),
            half_even(covered.numerator * _POINTS, covered.denominator),
            numerator,
            period[question] * QUANTUM,
        )
        for question, participant, numerator, covered in zip(*columns, strict=True)
    ]


def _leaderboard(of: Projections) -> list[Values]:
    rows: list[list[Any]] = []
    for code, contest in enumerate(of.contests):
        paid = {prize.participant: prize for prize in of.prizes(contest)}
        for place in of.board(contest):
            prize = paid.get(place.participant, prizes.Prize(place.participant, 0, 0))
            rows.append([
                code,
                place.rank,
                place.participant,
                half_even(place.score.numerator * _POINTS, place.score.denominator),
                half_even(place.coverage.numerator * _POINTS, place.coverage.denominator),
                leaderboard.published(place.take),
                prize.share,
                prize.prize,
                f"{place.forecast_on}/{place.questions}",
                place.level or "",
            ])  # fmt: skip
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(10)]
    contest_column, rank, participant, *numbers, completion, level = columns
    return [
        Ids(np.array(contest_column, np.int64), of.contests),
        rank,
        _ids(participant),
        *numbers,
        completion,
        level,
    ]


def _prizes(of: Projections) -> list[Values]:
    rows = [(code, prize) for code, contest in enumerate(of.contests) for prize in of.prizes(contest)]
    return [
        Ids(np.array([code for code, _ in rows], np.int64), of.contests),
        _ids([prize.participant for _, prize in rows]),
        np.array([prize.prize for _, prize in rows], np.int64),
    ]


def _ids(texts: list[str]) -> Ids:
    codes = Codes()
    return Ids(np.array([codes.add(text) for text in texts], np.int64), codes.labels)


def _outcome_ids(facts: Facts, question: Int64Array, outcome: Int64Array) -> Ids:
    """Outcomes by name; those of a numeric question by the number of their bin."""
    codes = Codes()
    pairs, inverse = np.unique(np.stack([question, outcome], axis=1), axis=0, return_inverse=True)
    named = [codes.add((facts.questions[q].outcomes or _Numbers())[o]) for q, o in pairs.tolist()]
    return Ids(np.array(named, np.int64)[inverse.reshape(-1)], codes.labels)


class _Numbers:
    """The names of bins."""

    def __getitem__(self, outcome: int) -> str:
        return str(outcome)


def _joined(found: Iterable[tuple[Int64Array, ...]], width: int) -> list[Int64Array]:
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    return columns or [np.zeros(0, np.int64)] * width


_CONTEST = Column("contest", "id", "the contest")
_QUESTION = Column("question", "id", "the question")
_PARTICIPANT = Column("participant", "id", "who forecast")
_FROM = Column("from_at", "instant", "first instant")
_TO = Column("to_at", "instant", "first instant after it")

CATALOGUE: dict[str, Projection] = {
    "standing": Projection(
        1,
        "when each forecast stood",
        ("question", "participant", "from_at"),
        (
            _QUESTION,
            _PARTICIPANT,
            _FROM,
            _TO,
            Column("made_at", "instant", "when it was made; before from_at if made before the opening"),
            Column("log_position", "count", "where the log has it"),
        ),
        _standing,
    ),
    "consensus": Projection(
        1,
        "the median of the standing forecasts over time",
        ("question", "outcome", "from_at"),
        (
            _QUESTION,
            Column("outcome", "id", "the outcome; of a numeric question, the number of the bin the answer is in"),
            _FROM,
            _TO,
            Column("count", "count", "how many forecasts stand"),
            Column("median", "probability", "their median probability of the outcome"),
        ),
        _consensus,
    ),
    "score_parts": Projection(
        1,
        "what each score is the sum of: one row while forecast and median both stay the same",
        ("contest", "question", "participant", "from_at"),
        (
            _CONTEST,
            _QUESTION,
            _PARTICIPANT,
            _FROM,
            _TO,
            Column("probability", "probability", "the forecast's probability of the outcome, as scored"),
            Column("reference", "probability", "the median's"),
            Column("term", "term", "logarithm of the one less that of the other"),
            Column("weight", "micros", "to_at - from_at, in µs"),
            Column("contribution", "integer", "term x weight, in 1e-12 x µs; sums to the score's numerator"),
        ),
        _score_parts,
    ),
    "scores": Projection(
        1,
        "the score and coverage of each participant on each question of a contest",
        ("contest", "question", "participant"),
        (
            _CONTEST,
            _QUESTION,
            _PARTICIPANT,
            Column("score", "points", "numerator / denominator"),
            Column("coverage", "share", "share of the period covered, by the contest's weights"),
            Column("numerator", "integer", "sum of term x weight over the score's parts, in 1e-12 x µs"),
            Column("denominator", "integer", "the scheduled period, in 1e-12 x µs"),
        ),
        _scores,
    ),
    "leaderboard": Projection(
        1,
        "a contest's board, best first",
        (),
        (
            _CONTEST,
            Column("rank", "count", "1, 2, 2, 4 by take; empty for who is excluded from ranking"),
            _PARTICIPANT,
            Column("score", "points", "weighted sum of the scores"),
            Column("coverage", "share", "weighted mean of the coverages over all resolved questions"),
            Column("take", "take", "coverage x e (or 2) to the power of score"),
            Column("share", "share", "take / sum of the takes of those who can win"),
            Column("prize", "money", "what of the pool that pays"),
            Column("completion", "text", "questions forecast on / resolved questions"),
            Column("excluded", "text", "no_prize or no_rank, where that is so"),
        ),
        _leaderboard,
    ),
    "prizes": Projection(
        1,
        "what each contest pays to whom",
        ("contest", "participant"),
        (_CONTEST, _PARTICIPANT, Column("prize", "money", "what is paid, in the contest's currency")),
        _prizes,
    ),
}
