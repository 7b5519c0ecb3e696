"""Sums of scores by owner, of which standings are made; and boards as questions become what they were, one by one."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import KIND_TOTALS, REFERENCE_ROWS, RuleSet
from forecast_ledger.projections.boards.estimates import running_sums
from forecast_ledger.projections.boards.leaderboard import TOTALS, Standings
from forecast_ledger.projections.boards.score_sums import (
    SummedScores,
    counted,
    coverage_terms,
    joined_sums,
    score_terms,
    weights_of,
)
from forecast_ledger.projections.core.arrays import Int64Array, distinct, int64_array, run_starts, stable_order
from forecast_ledger.projections.core.estimates import Estimated
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores.question_groups import QuestionGroups
from forecast_ledger.projections.scores.time_weighted import ContestScores, Scores


class OwnerSums(NamedTuple):
    """Sums over questions: Σ weight x score, Σ weight x coverage, Σ weight in 1e-6, and how many; shape (n,).

    key: contest x people + participant; see `score_sums.owners_of`. It rises in sums that standings are made of.
    """

    key: Int64Array
    score: Estimated
    covered: Estimated
    weight: Int64Array
    questions: Int64Array

    def rows(self, index: Int64Array) -> "OwnerSums":
        """Return the sums at these indices."""
        return OwnerSums(
            self.key[index], self.score.rows(index), self.covered.rows(index), self.weight[index], self.questions[index]
        )

    def negated(self) -> "OwnerSums":
        """Return the sums that, added to others, take these away."""
        return OwnerSums(self.key, self.score.negated(), self.covered.negated(), -self.weight, -self.questions)

    def plus(self, *others: "OwnerSums") -> "OwnerSums":
        """Return these sums and others, those of one owner added up."""
        every = (self, *others)
        score, covered = self.score, self.covered
        for other in others:
            score, covered = score.followed_by(other.score), covered.followed_by(other.covered)
        key, weight, questions = (np.concatenate([each[column] for each in every]) for column in (0, 3, 4))
        order = stable_order(key)
        starts = run_starts(key[order])
        score, covered = (sums.rows(order).run_sums(starts).remembered() for sums in (score, covered))
        weight, questions = (np.add.reduceat(sums[order], starts) for sums in (weight, questions))
        return OwnerSums(key[order][starts], score, covered, weight, questions)


def standings_of_sums(
    facts: Facts, names: Sequence[str], sums: OwnerSums, every: tuple[Estimated, Int64Array, Int64Array]
) -> Standings:
    """Return the standings in contests of one rule set that follow from these sums.

    every: of all questions of each contest that count, Σ weight x coverage of a forecast that stands all the time that
    is scored, Σ weight in 1e-6, and how many they are.
    """
    contests, (attainable, weight, count) = [facts.contests[name] for name in names], every
    contest, person = np.divmod(sums.key, count_people(facts))
    whole_weight = Estimated.of_integers(np.maximum(weight, 1), WEIGHT)
    divisors = {"weight": Estimated.of_integers(sums.weight, WEIGHT), "covered": sums.covered}
    rules, score = contests[0].opened.rules, sums.score
    _, _, divisor, floored = TOTALS[rules.total]
    if divisor != 1:
        over = divisors.get(str(divisor), Estimated.of_integers(sums.questions, 1))
        score = score.divided_by(over.at_least(rules.least_coverage) if floored else over)
    return Standings(
        names,
        contests,
        contest,
        person,
        score,
        sums.covered.divided_by(whole_weight.rows(contest)),
        sums.questions,
        count,
        attainable.divided_by(whole_weight),
    )


def adds_in_floats(rules: RuleSet) -> bool:
    """Return whether boards by a rule set are made of nothing but sums of scores and coverages."""
    return rules.imputation == "none" and rules.total not in KIND_TOTALS


def added_by_owner(owner: Int64Array, numbers: Int64Array, owners: int) -> Int64Array:
    """Return the sum of the numbers of each owner."""
    sums = np.zeros(owners, np.int64)
    np.add.at(sums, owner, numbers)
    return sums


def count_people(facts: Facts) -> int:
    """Return how many can have a score: participants and reference forecasters."""
    return len(facts.participant_codes.codes) + len(REFERENCE_ROWS)


def owners_over_time(rules: RuleSet, groups: QuestionGroups, rows: Scores, parts: tuple[Int64Array, int]) -> OwnerSums:
    """Return the sums of each participant over the questions of part 0, of parts 0 and 1, and so on.

    parts: of each question, and their number. The key of a sum is the participant's code x this number + the part.
    """
    part_of, count = parts
    rows = rows.rows(stable_order(rows.participant * count + part_of[rows.question]))
    people, person = distinct(rows.participant)
    owner = person * count + part_of[rows.question]

    def until(numbers: Int64Array) -> Int64Array:
        sums: Int64Array = added_by_owner(owner, numbers, len(people) * count).reshape(-1, count).cumsum(axis=1).ravel()
        return sums

    score, covered = (
        running_sums(owner, count, *terms) for terms in (score_terms(rules, groups, rows), coverage_terms(groups, rows))
    )
    key = (people[:, None] * count + np.arange(count)).ravel()
    return OwnerSums(key, score, covered, until(weights_of(groups)[rows.question]), until(np.ones_like(owner)))


class BoardSums(NamedTuple):
    """The sums of the scores in a contest that adds in floats, in which those on single questions can be replaced.

    sums: by participant code. The greatest, `count_people`, is of a forecast that stands all the time that is scored on
    every question.
    """

    sums: OwnerSums

    @classmethod
    def of(cls, facts: Facts, rules: RuleSet, scored: ContestScores) -> "BoardSums":
        """Return the sums of the scores in a contest."""
        none, no_sum = np.zeros(1, np.int64), Estimated.of_integers(np.zeros(1, np.int64), 1)
        empty = OwnerSums(np.array([count_people(facts)]), no_sum, no_sum, none, none)
        return cls(empty.plus(*_running(facts, rules, scored, [0] * len(scored.questions.code))))

    def replaced(
        self, facts: Facts, rules: RuleSet, codes: Sequence[int], scored: tuple[ContestScores, ContestScores]
    ) -> Iterator["BoardSums"]:
        """Yield the sums with the scores on the first of some questions replaced, then on the first two, and so on.

        codes: of the questions. scored: their scores as they are in these sums, and those in their place.
        """
        place, parts = {code: number for number, code in enumerate(codes)}, len(codes)
        less, more = (
            [*_running(facts, rules, each, [place[code] for code in each.questions.code.tolist()], parts)]
            for each in scored
        )
        running = [*more, *map(OwnerSums.negated, less)]
        for part in range(parts):
            changes = (sums.rows(np.arange(part, len(sums.key), parts)) for sums in running)
            yield BoardSums(self.sums.plus(*(sums._replace(key=sums.key // parts) for sums in changes)))

    def standings(self, facts: Facts, name: str) -> Standings:
        """Return the standings in the contest. name: its id."""
        sums, last = self.sums.rows(np.flatnonzero(self.sums.questions[:-1])), np.array([len(self.sums.key) - 1])
        every = self.sums.rows(last)
        return standings_of_sums(facts, [name], sums, (every.covered, every.weight, every.questions))


def _running(
    facts: Facts, rules: RuleSet, scored: ContestScores, part_of: Sequence[int], parts: int = 1
) -> Iterator[OwnerSums]:
    """Yield what `owners_over_time` returns, with a forecast on each question that counts as of `BoardSums`.

    Nothing is yielded if no question counts. part_of: of each question.
    """
    questions, rows = scored
    counting = np.flatnonzero(questions.weight > 0)
    if not len(counting):
        return
    reached, people = questions.reached[counting], np.full(len(counting), count_people(facts))
    numerator, hidden = WideInt.from_int64(np.zeros_like(reached)), np.minimum(questions.hidden[counting], reached)
    every = SummedScores(Scores(counting, people, numerator, reached, hidden), np.ones_like(reached))
    both = joined_sums([counted(questions, rows), every]).rows
    yield owners_over_time(rules, questions.groups, both, (int64_array(part_of), parts))
