"""The catalogue: every projection, its schema, and how its table follows from the facts."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

from projections import brier, builders, leaderboard, prizes, reports, scores, terms
from projections.columns import Facts
from projections.entries import Questions, scored_questions
from projections.judged import Judged, judged
from projections.standing import Intervals, intervals
from projections.table import Column, Table, Values
from projections.tables import status


class Scored(NamedTuple):
    """A contest's scores and the questions they are for."""

    questions: Questions
    rows: scores.Scores


class Projections:
    """Every table that follows from one set of facts; each is worked out when first asked for."""

    def __init__(self, facts: Facts, chunk: int = terms.CHUNK) -> None:
        """chunk: how many forecasts are scored at a time; it changes memory and speed, never a number."""
        self.facts = facts
        self.chunk = chunk
        self._scored: dict[str, Scored] = {}
        self._boards: dict[str, list[leaderboard.Place]] = {}
        self._judged: dict[str, Judged] = {}
        self._aggregates: dict[str, list[brier.Aggregate]] = {}

    def table(self, name: str) -> Table:
        """The table of a projection in the catalogue, in order of its key. Raises KeyError."""
        projection = CATALOGUE[name]
        table = Table(name, projection.version, projection.columns, tuple(projection.build(self)))
        return table.sorted_by(*projection.key)

    def scored(self, contest: str) -> Scored:
        """A contest's scores."""
        if contest not in self._scored:
            questions = scored_questions(self.facts, self.facts.contests[contest])
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

    def judged(self, contest: str) -> Judged:
        """What a contest's Brier aggregates are computed from."""
        if contest not in self._judged:
            self._judged[contest] = judged(self.facts, self.facts.contests[contest], self.chunk)
        return self._judged[contest]

    def aggregates(self, contest: str) -> list[brier.Aggregate]:
        """A contest's Brier aggregates, by participant code, the consensus last."""
        if contest not in self._aggregates:
            self._aggregates[contest] = brier.aggregates(*self.judged(contest))
        return self._aggregates[contest]

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
    asked_for: whether it is built only when asked for, because it can have far more rows than the log.
    """

    version: int
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    build: Callable[[Projections], Iterable[Values]]
    asked_for: bool = False


_CONTEST = Column("contest", "id", "the contest")
_QUESTION = Column("question", "id", "the question")
_PARTICIPANT = Column("participant", "id", "who forecast")
_FROM = Column("from_at", "instant", "first instant")
_TO = Column("to_at", "instant", "first instant after it")

CATALOGUE: dict[str, Projection] = {
    "contests": Projection(
        1,
        "every contest, its rules, and the checkpoint that seals its board",
        ("contest",),
        (
            _CONTEST,
            Column("title", "text", "its title"),
            Column("rules", "text", "the name of its rule set"),
            Column("pool", "money", "what there is to be won"),
            Column("currency", "text", "in what"),
            Column("sealed_at", "count", "log position that sealed its board; empty while it is open"),
            Column("sealed_digest", "text", "digest of the log there: with sealed_at, the board's checkpoint"),
            Column("paid", "money", "prizes paid so far"),
        ),
        reports.contests_values,
    ),
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
        builders.standing_values,
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
        builders.consensus_values,
    ),
    "score_parts": Projection(
        2,
        "what each score is the sum of: one row while a forecast and what it is compared with both stay the same",
        ("contest", "question", "participant", "from_at"),
        (
            _CONTEST,
            _QUESTION,
            _PARTICIPANT,
            _FROM,
            _TO,
            Column("probability", "probability", "the forecast's probability of the outcome, as scored"),
            Column("reference", "probability", "the consensus's, where it is compared with that"),
            Column("peers", "count", "how many members stand, where it is compared with them"),
            Column("term", "term", "the forecast's kernel less that of what it is compared with"),
            Column("weight", "count", "units of time from from_at to to_at: µs, days, or the one instant"),
            Column("contribution", "integer", "term x weight, exact; sums to the score's numerator"),
        ),
        builders.score_parts_values,
        asked_for=True,
    ),
    "scores": Projection(
        2,
        "the score and coverage of each participant on each question of a contest",
        ("contest", "question", "participant"),
        (
            _CONTEST,
            _QUESTION,
            _PARTICIPANT,
            Column("score", "points", "numerator / denominator"),
            Column("coverage", "share", "share of the period covered, by the contest's weights"),
            Column("attainable", "share", "that of a forecast which stood until scored time ended"),
            Column("numerator", "integer", "sum of the contributions of the score's parts"),
            Column("denominator", "integer", "the contributions of one point over the period"),
        ),
        builders.scores_values,
    ),
    "leaderboard": Projection(
        2,
        "a contest's board, best first",
        (),
        (
            _CONTEST,
            Column("rank", "count", "1, 2, 2, 4; empty for who is left out of the ranking"),
            _PARTICIPANT,
            Column("score", "points", "the contest's total: a sum or mean of the scores, by its rules"),
            Column("coverage", "share", "weighted mean of the coverages over all resolved questions"),
            Column("attainable", "share", "that of somebody who stood all the time that was scored"),
            Column("take", "take", "what prizes are proportional to; empty where there are none"),
            Column("share", "share", "take / sum of the takes of those who can win"),
            Column("prize", "money", "what of the pool that pays"),
            Column("completion", "text", "questions forecast on / resolved questions"),
            Column("submissions", "count", "how many submissions its entrant has"),
            Column("excluded", "text", "why it has no rank or prize: no_prize, no_rank, consensus, not_best"),
        ),
        builders.leaderboard_values,
    ),
    "kind_means": Projection(
        1,
        "what a board's total is the sum of, where that is a mean for each kind of question",
        ("contest", "participant", "kind"),
        (
            _CONTEST,
            _PARTICIPANT,
            Column("kind", "id", "the kind of question"),
            Column("mean", "points", "100 x the weighted mean, a question without a forecast counting as the worst"),
            Column("forecast_on", "count", "questions of the kind forecast on"),
            Column("questions", "count", "questions of the kind that are resolved"),
        ),
        reports.kind_means_values,
    ),
    "prizes": Projection(
        2,
        "what each contest pays to whom",
        ("contest", "participant"),
        (
            _CONTEST,
            _PARTICIPANT,
            Column("prize", "money", "what the board is worth to them, in the contest's currency"),
            Column("paid", "money", "what has been paid"),
        ),
        builders.prizes_values,
    ),
    "brier": Projection(
        1,
        "Brier scores of binary questions, 0..1, at the spot or as scored time ended, and what they are made of",
        ("contest", "participant"),
        (
            _CONTEST,
            _PARTICIPANT,
            Column("n", "count", "questions forecast on"),
            Column("brier", "points", "mean of (p - o)², 0 is perfect"),
            Column("base_rate", "share", "share of these questions that came true"),
            Column("reliability", "points", "what forecasts are off the frequency of what they forecast; 0 is best"),
            Column("resolution_term", "points", "how far those frequencies are from the base rate; more is better"),
            Column("uncertainty", "points", "brier = reliability - resolution_term + uncertainty"),
            Column("consensus_brier", "points", "the consensus's mean on the same questions"),
            Column("skill_against_even_odds", "points", "1 - brier / 0.25"),
            Column("skill_against_consensus", "points", "1 - brier / consensus_brier; empty if that is 0"),
            Column("skill_against_base_rate", "points", "1 - brier / uncertainty; empty if that is 0"),
            Column("interpretation", "text", "what such a Brier score is called"),
        ),
        reports.brier_values,
    ),
    "brier_overall": Projection(
        1,
        "Brier scores over all contests",
        ("participant",),
        (
            _PARTICIPANT,
            Column("contests", "count", "contests with a question forecast on"),
            Column("n", "count", "questions forecast on, once a contest"),
            Column("pooled_brier", "points", "mean over all of them"),
            Column("mean_of_contest_means", "points", "mean of the contests' means"),
        ),
        reports.brier_overall_values,
    ),
    "calibration": Projection(
        1,
        "how often what was forecast came true, by bins of the probability",
        ("contest", "participant", "from_probability"),
        (
            _CONTEST,
            _PARTICIPANT,
            Column("from_probability", "share", "the bin, with its lower end"),
            Column("to_probability", "share", "its upper end, which belongs to the next bin, but for 1"),
            Column("n", "count", "forecasts in the bin"),
            Column("happened", "count", "how many came true"),
            Column("mean_forecast", "share", "their mean probability"),
            Column("observed_frequency", "share", "happened / n"),
            Column("wilson_low", "share", "lower end of the 95% Wilson interval"),
            Column("wilson_high", "share", "upper end"),
        ),
        reports.calibration_values,
    ),
    "admissions": Projection(
        1,
        "what each forecast of an attested contest may have known of the future, and when it was received",
        ("contest", "question", "participant", "log_position"),
        (
            _CONTEST,
            _QUESTION,
            _PARTICIPANT,
            Column("log_position", "count", "where the log has it"),
            Column("cutoff_at", "instant", "the last second of the day before the close date, UTC"),
            Column("receipt", "text", "in_time or late, by the ledger's own clock"),
            Column("receipt_margin", "seconds", "from the receipt to the cut-off; up to a second over is in time"),
            Column("earliest_at", "instant", "the earliest that the newest source or training can mean, if anything"),
            Column("latest_at", "instant", "the latest, anywhere on Earth, if anything"),
            Column("information", "text", "certain, possible or clean of a leak, or undeclared"),
            Column("information_margin", "seconds", "from latest_at to the cut-off; up to a second over is clean"),
            Column("restricted", "text", "restricted, clean or undeclared"),
            Column("window", "text", "open, or empty if the question opened after its cut-off"),
        ),
        reports.admissions_values,
    ),
}
