"""Sums of scores in contests of one rule set, of which boards and tallies are made.

Boards are made of floats that estimate the sums. A sum is computed exactly only where these leave a doubt.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.rules import KIND_TOTALS, REFERENCE_ROWS
from forecast_ledger.projections.boards.estimates import bounded_estimates, estimated_sums
from forecast_ledger.projections.boards.leaderboard import TOTALS, Standings, standings_of
from forecast_ledger.projections.boards.score_sums import (
    COVERAGE,
    SLOTS,
    BoundedScores,
    Rated,
    SummedScores,
    coverage_terms,
    owners_of,
    score_terms,
    weights_of,
)
from forecast_ledger.projections.boards.totals import (
    NO_SCORES,
    Tally,
    TermsOf,
    sums_within,
    tallies_of_bounds,
    tallies_of_sums,
)
from forecast_ledger.projections.core.arrays import Int64Array, distinct, run_starts
from forecast_ledger.projections.core.estimates import Estimated
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.scores.scored_questions import Questions
from forecast_ledger.projections.scores.time_weighted import QuestionGroups, group_questions


class ContestSums(NamedTuple):
    """The sums of all scores in contests of one rule set, of which no participant in a contest has both kinds.

    people: see `score_sums.owners_of`. terms: computes the terms of a sum with bounds if these leave a doubt.
    """

    facts: Facts
    names: Sequence[str]
    questions: Questions
    sums: SummedScores
    bounds: BoundedScores
    people: int
    terms: TermsOf

    @property
    def contests(self) -> list[Contest]:
        """The contests."""
        return [self.facts.contests[name] for name in self.names]

    def tallies(self) -> dict[str, Tally]:
        """Return the exact tally of each contest."""
        questions, consensus = self.questions, len(self.facts.participant_codes.codes)
        rules = self.contests[0].opened.rules
        exact = tallies_of_sums(rules, questions, self.sums, consensus, questions.contest)
        # The last contests may have no question, and then no tally yet.
        exact += [Tally({}, NO_SCORES, {})] * (len(self.names) - len(exact))
        tallies = dict(zip(self.names, exact, strict=True))
        for number, tally in tallies_of_bounds(self.bounds, consensus, self.people, self.terms).items():
            tallies[self.names[number]] = tallies[self.names[number]].plus(tally)
        return tallies

    def standings(self) -> Standings:
        """Return the standings in the contests."""
        rules = self.contests[0].opened.rules
        if rules.imputation == "none" and rules.total not in KIND_TOTALS:
            return self._standings()
        return standings_of(self.facts, self.names, self.contests, [*self.tallies().values()])

    def _standings(self) -> Standings:
        contests, groups = self.contests, group_questions(self.questions)
        rules, (keys, score, covered, weight, count) = contests[0].opened.rules, self._by_owner(groups)
        contest, person = np.divmod(keys, self.people)
        counting = np.flatnonzero(self.questions.weight > 0)
        contest_of, group_of = self.questions.contest[counting], groups.group_of[counting]
        whole = np.maximum(_added(contest_of, self.questions.weight[counting], len(contests)), 1)
        shares = [(each.weight * each.attainable).as_integer_ratio() for each in groups.groups]
        ones = Rated(WideInt.from_int64(np.ones_like(counting)), [(above, below * WEIGHT) for above, below in shares])
        attainable = estimated_sums(len(contests), contest_of, group_of, [ones])
        whole_weight = Estimated.of_integers(whole, WEIGHT)
        divisors = {"weight": Estimated.of_integers(weight, WEIGHT), "covered": covered}
        _, _, divisor, floored = TOTALS[rules.total]
        if divisor != 1:
            over = divisors.get(str(divisor), Estimated.of_integers(count, 1))
            score = score.divided_by(over.at_least(rules.least_coverage) if floored else over)
        return Standings(
            self.names,
            contests,
            contest,
            person,
            score,
            covered.divided_by(whole_weight.rows(contest)),
            count,
            np.bincount(contest_of, minlength=len(contests)),
            attainable.divided_by(whole_weight),
        )

    def _by_owner(self, groups: QuestionGroups) -> tuple[Int64Array, Estimated, Estimated, Int64Array, Int64Array]:
        """Return the owners, rising, and of each the sums of scores and coverages, of weights and of questions."""
        rules, (rows, over) = self.contests[0].opened.rules, self.sums
        keys, owner = distinct(owners_of(self.questions, rows, self.people))
        score, covered = (
            estimated_sums(len(keys), owner, *terms)
            for terms in (score_terms(rules, groups, rows), coverage_terms(groups, rows))
        )
        weight = _added(owner, weights_of(groups)[rows.question] * over, len(keys))
        count = _added(owner, over, len(keys))
        if not len(self.bounds.key):
            return keys, score, covered, weight, count
        more, slot = np.divmod(self.bounds.key, SLOTS)
        owners, number = distinct(more)
        late = Estimated(*bounded_estimates(self.bounds.sums), partial(sums_within, self.bounds, self.terms))
        both = np.concatenate([keys, owners])
        order = np.argsort(both)
        weight = np.concatenate([weight, _added(number, self.bounds.weight, len(owners))])[order]
        count = np.concatenate([count, _added(number, self.bounds.over, len(owners))])[order]
        scores, coverages = np.flatnonzero(slot != COVERAGE), np.flatnonzero(slot == COVERAGE)
        score = score.followed_by(late.rows(scores).run_sums(run_starts(number[scores]))).rows(order)
        covered = covered.followed_by(late.rows(coverages)).rows(order)
        return both[order], score, covered, weight, count


def _added(owner: Int64Array, numbers: Int64Array, owners: int) -> Int64Array:
    """Return the sum of the numbers of each owner."""
    sums = np.zeros(owners, np.int64)
    np.add.at(sums, owner, numbers)
    return sums


def count_people(facts: Facts) -> int:
    """Return how many can have a score: participants and reference forecasters."""
    return len(facts.participant_codes.codes) + len(REFERENCE_ROWS)


def no_terms(owner: int, slot: int) -> list[tuple[int, int]]:
    """Return the terms of a sum with bounds where none has them."""
    raise KeyError((owner, slot))
