"""Contests with the same rule set, scored together: a pass over few questions costs about as much as one over many.

Boards as the answers came follow from them: after each answer, what the board would be without later ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards import brier, totals
from forecast_ledger.projections.boards.brier import ContestSample, sample_contests
from forecast_ledger.projections.boards.totals import NO_SCORES, Tally
from forecast_ledger.projections.core.arrays import Int64Array, distinct, int64_array, stable_order
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.scored_questions import Questions, scored_questions


class ContestScores(NamedTuple):
    """The scores of one contest and the questions that they are for."""

    questions: Questions
    rows: time_weighted.Scores


class ScoredGroup(NamedTuple):
    """The scores of several contests with the same rule set, in the order of `names`, their ids."""

    names: list[str]
    contests: list[Contest]
    questions: Questions
    rows: time_weighted.Scores

    @property
    def rules(self) -> RuleSet:
        """The rule set of the contests."""
        return self.contests[0].opened.rules

    def of(self, number: int) -> ContestScores:
        """Return the scores of one contest, by its index."""
        part = slice(*np.searchsorted(self.questions.contest, [number, number + 1]).tolist())
        own = self.questions.of(part)
        return ContestScores(replace(own, contest=np.zeros_like(own.contest)), self.rows.on(part))

    def contests_with_questions(self) -> list[str]:
        """Return the ids of the contests with a question that counts."""
        return [self.names[number] for number in np.unique(self.questions.contest).tolist()]

    def tallies(self, consensus: int) -> dict[str, totals.Tally]:
        """Return the tally of each contest. consensus: the participant code of the consensus."""
        tallies = totals.tallies(self.rules, self.questions, self.rows, consensus, self.questions.contest)
        return by_contest(self.names, tallies)


def by_contest(names: list[str], tallies: list[totals.Tally]) -> dict[str, totals.Tally]:
    """Return the tally of each contest; the last ones may have no question, and then no tally yet."""
    without = [totals.Tally({}, totals.NO_SCORES, {})] * (len(names) - len(tallies))
    return dict(zip(names, [*tallies, *without], strict=True))


def contests_by_rules(facts: Facts, names: Iterable[str]) -> list[list[str]]:
    """Group contest ids by rule set."""
    groups: dict[RuleSet, list[str]] = {}
    for name in names:
        groups.setdefault(facts.contests[name].opened.rules, []).append(name)
    return [*groups.values()]


def score_group(facts: Facts, names: list[str], chunk: int) -> ScoredGroup:
    """Score contests with the same rule set."""
    contests = [facts.contests[name] for name in names]
    questions = scored_questions(facts, *contests)
    return ScoredGroup(names, contests, questions, time_weighted.scores(facts, contests, questions, chunk))


def sample_group(facts: Facts, names: list[str], chunk: int) -> "SampledGroup":
    """Return the Brier samples of contests with the same rule set."""
    return SampledGroup(names, *sample_contests(facts, [facts.contests[name] for name in names], chunk))


class SampledGroup(NamedTuple):
    """The Brier samples of several contests. names: their ids. contest: index of the contest of each row."""

    names: list[str]
    contest: Int64Array
    sample: brier.Sample
    owners: int

    def samples(self) -> dict[str, ContestSample]:
        """Return the sample of each contest."""
        order = stable_order(self.contest)
        limits = np.searchsorted(self.contest[order], np.arange(len(self.names) + 1)).tolist()
        return {
            name: ContestSample(self.sample.take(order[first:end]), self.owners)
            for name, first, end in zip(self.names, limits, limits[1:], strict=False)
        }

    def summed(self) -> "SummedSamples":
        """Return the sums from which Brier aggregates and calibration are computed."""
        pairs, owner = distinct(self.contest * self.owners + self.sample.owner)
        return SummedSamples(self.names, self.owners, pairs, brier.sums_of(self.sample._replace(owner=owner)))


class SummedSamples(NamedTuple):
    """The sums of the Brier samples of several contests. names: their ids. owners: how many owners there may be.

    pairs: at i, contest * owners + owner of the owner that the sums number i; distinct and rising. contest: its index.
    """

    names: list[str]
    owners: int
    pairs: Int64Array
    sums: brier.BrierSums

    def aggregates(self) -> dict[str, dict[int, brier.Aggregate]]:
        """Return the Brier aggregates of each contest, by owner, for owners who have a row."""
        by_contest: dict[str, dict[int, brier.Aggregate]] = {name: {} for name in self.names}
        for number, counts in brier.counts_by_owner(self.sums).items():
            contest, owner = divmod(int(self.pairs[number]), self.owners)
            by_contest[self.names[contest]][owner] = brier.aggregate(counts)
        return by_contest

    def calibration(self) -> dict[str, list[brier.Bin]]:
        """Return the calibration bins of each contest, by owner and bin."""
        by_contest: dict[str, list[brier.Bin]] = {name: [] for name in self.names}
        for row in brier.calibration_bins(brier.bin_sums(self.sums)):
            contest, owner = divmod(int(self.pairs[row.owner]), self.owners)
            by_contest[self.names[contest]].append(row._replace(owner=owner))
        return by_contest


def add_samples(names: list[str], parts: Sequence[SummedSamples]) -> SummedSamples:
    """Return the sums of samples of different questions together, of which there is at least one.

    names: the ids of contests that have all those of the parts.
    """
    index, owners = {name: number for number, name in enumerate(names)}, parts[0].owners
    pairs = [
        int64_array([index[name] for name in part.names])[part.pairs // owners] * owners + part.pairs % owners
        for part in parts
    ]
    every = np.unique(np.concatenate(pairs))
    sums = [part.sums.renumbered(np.searchsorted(every, own)) for part, own in zip(parts, pairs, strict=True)]
    return SummedSamples(names, owners, every, brier.added(sums))


def tallies_over_time(facts: Facts, contest: Contest, scored: ContestScores) -> Iterator[tuple[int, Tally]]:
    """Yield each question that counts, as an index, and the tally of the questions answered up to it.

    Questions are added in the order of the answers that count. Their scores are as they are now; `leaderboard.board`
    makes a board of a tally.
    """
    order = np.argsort(answered_at(facts, contest, scored.questions), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    consensus = len(facts.participant_codes.labels)
    whole = Tally({}, NO_SCORES, {})
    each = totals.tallies(contest.opened.rules, scored.questions, scored.rows, consensus, place)
    for question, more in zip(order.tolist(), each, strict=True):
        if scored.questions.weight[question] > 0:
            whole = whole.plus(more)
            yield question, whole


def answered_at(facts: Facts, contest: Contest, questions: Questions) -> Int64Array:
    """Return the log position of the answer that counts for each scored question of a contest, shape (q,)."""
    last, settled = contest.as_of(facts), np.zeros(len(facts.questions), np.int64)
    for row in facts.settlements:
        if row.position <= last:
            settled[row.question] = row.position
    answered: Int64Array = settled[questions.code]
    return answered
