"""Every table that follows from one set of facts."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from projections import arena, brier, builders, leaderboard, portfolios, prizes, scores, sums, terms
from projections.books import Key
from projections.catalogue import CATALOGUE
from projections.columns import Facts
from projections.entries import Questions, scored_questions
from projections.judged import Judged, judged
from projections.marks import Marks
from projections.standing import Intervals, intervals
from projections.table import Table, Values
from projections.tables import status

__all__ = ["CATALOGUE", "Projections"]


class Scored(NamedTuple):
    """A contest's scores and the questions they are for."""

    questions: Questions
    rows: scores.Scores


@dataclass(slots=True)
class Known:
    """What is known of contests, by id, however it was worked out."""

    tallies: dict[str, sums.Tally] = field(default_factory=dict)
    aggregates: dict[str, list[brier.Aggregate]] = field(default_factory=dict)
    calibration: dict[str, list[brier.Bin]] = field(default_factory=dict)


class Projections:
    """Every table that follows from one set of facts; each is worked out when first asked for."""

    def __init__(self, facts: Facts, chunk: int = terms.CHUNK, known: Known | None = None) -> None:
        """chunk: how many forecasts are scored at a time; it changes memory and speed, never a number.

        known: what need not be worked out.
        """
        self.facts = facts
        self.chunk = chunk
        self.known = Known() if known is None else known
        self._scored: dict[str, Scored] = {}
        self._boards: dict[str, list[leaderboard.Place]] = {}
        self._prizes: dict[str, list[prizes.Prize]] = {}
        self._judged: dict[str, Judged] = {}

    def table(self, name: str) -> Table:
        """The table of a projection in the catalogue, in order of its key. Raises KeyError."""
        return self._table(name, CATALOGUE[name].build(self))

    def score_parts(self, participant: str) -> Table:
        """The rows of `score_parts` that one participant, or the consensus, has. Raises ValueError: there is none."""
        owner = sums.labels(self.facts).index(participant)
        return self._table("score_parts", builders.score_parts_values(self, owner))

    def _table(self, name: str, values: Iterable[Values]) -> Table:
        projection = CATALOGUE[name]
        return Table(name, projection.version, projection.columns, tuple(values)).sorted_by(*projection.key)

    def scored(self, contest: str) -> Scored:
        """A contest's scores."""
        if contest not in self._scored:
            questions = scored_questions(self.facts, self.facts.contests[contest])
            rows = scores.scores(self.facts, self.facts.contests[contest], questions, self.chunk)
            self._scored[contest] = Scored(questions, rows)
        return self._scored[contest]

    def tally(self, contest: str) -> sums.Tally:
        """What a contest's scores add up to."""
        if contest not in self.known.tallies:
            rules, consensus = self.facts.contests[contest].opened.rules, len(self.facts.participant_codes.codes)
            [self.known.tallies[contest]] = sums.tallies(rules, *self.scored(contest), consensus)
        return self.known.tallies[contest]

    def board(self, contest: str) -> list[leaderboard.Place]:
        """A contest's board, best first."""
        if contest not in self._boards:
            self._boards[contest] = leaderboard.board(self.facts, self.facts.contests[contest], self.tally(contest))
        return self._boards[contest]

    def prizes(self, contest: str) -> list[prizes.Prize]:
        """A contest's prizes, by id."""
        if contest not in self._prizes:
            self._prizes[contest] = prizes.prizes(self.facts.contests[contest], self.board(contest))
        return self._prizes[contest]

    def judged(self, contest: str) -> Judged:
        """What a contest's Brier aggregates are computed from."""
        if contest not in self._judged:
            self._judged[contest] = judged(self.facts, self.facts.contests[contest], self.chunk)
        return self._judged[contest]

    def aggregates(self, contest: str) -> list[brier.Aggregate]:
        """A contest's Brier aggregates, by participant code, the consensus last."""
        if contest not in self.known.aggregates:
            self.known.aggregates[contest] = brier.aggregates(*self.judged(contest))
        return self.known.aggregates[contest]

    def calibration(self, contest: str) -> list[brier.Bin]:
        """How often what was forecast in a contest came true, by owner, as in its Brier aggregates, and probability."""
        if contest not in self.known.calibration:
            self.known.calibration[contest] = brier.calibration(*self.judged(contest))
        return self.known.calibration[contest]

    def snapshots(self, contest: str) -> portfolios.Snapshots:
        """Portfolios of a contest in which one trades, over time; not kept, for all of them may not fit in memory."""
        return portfolios.snapshots(self.facts, self.marks, contest)

    @cached_property
    def records(self) -> dict[str, list[arena.Record]]:
        """What everybody has made of each contest in which one trades, by id."""
        drawdowns: dict[Key, int] = {}
        for contest in self.traded:
            seen = portfolios.snapshots(self.facts, self.marks, contest, changes=True)
            drawdowns |= portfolios.drawdowns(seen)
        return arena.records(self.facts, self.marks, drawdowns)

    @cached_property
    def marks(self) -> Marks:
        """What shares are worth."""
        return Marks(self.facts)

    @cached_property
    def traded(self) -> list[str]:
        """Contests in which one trades, in order of id."""
        return [name for name in self.contests if self.facts.contests[name].opened.rules.trading is not None]

    @cached_property
    def contests(self) -> list[str]:
        """Contests in order of id."""
        return sorted(self.facts.contests)

    @cached_property
    def standing(self) -> Intervals:
        """When every forecast stood, whatever became of its question."""
        now = status(self.facts)
        return intervals(self.facts.forecasts, now.opens_at, now.closed_at)
