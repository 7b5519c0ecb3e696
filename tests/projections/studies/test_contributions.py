"""Contributions to totals, and the sets of ranks and the resolution made of them, compared with the definition."""

from collections.abc import Mapping
from fractions import Fraction

import pytest

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.studies import rank_sets
from forecast_ledger.projections.tables.catalogue import Projections
from tests.projections.studies.test_intervals import CASES, RULES, Found, exact_scores, grouped, season, units
from tests.projections.studies.test_pairs import turned
from tests.projections.studies.test_rank_sets import by_definition, marginal_by_definition
from tests.support import oracle, rules_oracle
from tests.support.effort import times
from tests.support.rules_oracle import Case
from tests.support.seeds import seed_of

Unit = list[str]
Scores = Mapping[str, tuple[Fraction, Fraction]]
GRAIN, FINE = 10**18, 10**24
FLIPS = 99  # replicates with signs turned, of which a contest has 999
BY_KIND = {"kind_means": 1, "kind_means_third": 3}


def floor(number: Fraction) -> int:
    """Return a number rounded down."""
    return number.numerator // number.denominator


def parts(rules: RuleSet, of: Mapping[str, Case], own: list[Scores], members: list[Unit]) -> list[list[int]]:
    """Return the contributions of units to the totals of participants, 1e-18, by definition."""
    weight = {name: Fraction(case.entry.weight, 10**6) for name, case in of.items()}

    def summed(unit: Unit, scores: Scores, place: int) -> Fraction:
        return Fraction(sum(round(weight[name] * scores[name][place] * FINE) for name in unit if name in scores), FINE)

    if rules.total in BY_KIND:
        return [[_by_kind(rules, of, weight, scores, unit) for unit in members] for scores in own]
    n = [[summed(unit, scores, 0) for unit in members] for scores in own]
    if rules.total == "sum":
        return [[floor(each * GRAIN) for each in row] for row in n]
    d = [
        [
            {
                "mean": sum((weight[name] for name in unit if name in scores), Fraction(0)),
                "per_coverage": summed(unit, scores, 1),
                "per_question": Fraction(sum(name in scores for name in unit)),
            }[rules.total]
            for unit in members
        ]
        for scores in own
    ]
    least, every = Fraction(rules.least_coverage), sum(weight.values(), Fraction(0))
    spread = [sum((weight[name] for name in unit), Fraction(0)) / every for unit in members]
    if rules.total != "mean":
        one = FINE if rules.total == "per_coverage" else 1
        rounded = [Fraction(floor(share * least * one), one) for share in spread]
        d = [row if sum(row) >= least else rounded for row in d]
    divisors = [sum(row, Fraction(0)) if rules.total == "mean" else max(least, sum(row, Fraction(0))) for row in d]
    common = floor(sum(map(sum, n), Fraction(0)) / sum(divisors, Fraction(0)) * GRAIN)
    return [
        [floor((score * GRAIN - part * common) / over) for score, part in zip(*row, strict=True)]
        for row, over in zip(zip(n, d, strict=True), divisors, strict=True)
    ]


def _by_kind(rules: RuleSet, of: Mapping[str, Case], weight: Mapping[str, Fraction], scores: Scores, unit: Unit) -> int:
    total = 0
    for kind in {case.opened.kind for case in of.values()}:
        every = sum((weight[name] for name, case in of.items() if case.opened.kind == kind), Fraction(0))
        own = [name for name in unit if of[name].opened.kind == kind]
        got = Fraction(sum(round(weight[name] * scores[name][0] * FINE) for name in own if name in scores), FINE)
        missed = sum((weight[name] for name in own if name not in scores), Fraction(0))  # 1 is the worst score
        total += floor(100 * (got + missed) * GRAIN / every / BY_KIND[rules.total])
    return total


def counted(rules: RuleSet, of: Mapping[str, Case], found: Found, who: str) -> Scores:
    """Return the scores of a participant, imputed ones as well, which have no coverage."""
    imputed = {name: (score, Fraction(0)) for name, (score, _) in rules_oracle.imputed(rules, of, found, who).items()}
    return {**imputed, **{name: shares for (name, each), shares in found.items() if each == who and name in of}}


@pytest.mark.parametrize(("name", "weights"), CASES)
def test_sets_of_ranks_and_the_resolution_are_those_of_the_definition(
    name: str, weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the total is; the sums of contributions are as far apart as totals are, to 1e-15."""
    monkeypatch.setattr(rank_sets, "LEAST_CLUSTERS", 2)
    monkeypatch.setattr(rank_sets, "FLIPS", FLIPS)
    for number in range(times(2)):
        recorded = oracle.history(*season(RULES[name], number, weights))
        projections = Projections(oracle.facts_in(recorded))
        rules = projections.facts.contests["cup"].opened.rules
        of = {each: case for each, case in rules_oracle.cases(recorded, "cup").items() if case.entry.weight}
        members, found = [unit for stratum in units(of) for unit in stratum], exact_scores(projections)
        board, rows = projections.board("cup"), [*projections.table("intervals").rows()]
        scores = [counted(rules, of, found, row.participant) for row in board]
        reached = [sum(any(each in own for each in unit) for unit in members) for own in scores]
        ranked = [row.rank is not None for row in board]
        kept = [each for each, own in enumerate(reached) if ranked[each] and own >= 2]
        if len(kept) < 2:
            assert {row["rank_set_low"] for row in rows} <= {None}
            continue
        sign = -1 if RULES[name].kernel == "brier" else 1
        own = parts(rules, of, [scores[each] for each in kept], members)
        for one, other in zip(kept, own, strict=True):
            apart = (board[one].score - board[kept[0]].score) * GRAIN - (sum(other) - sum(own[0]))
            assert abs(apart) < 1000 * max(rules.least_coverage, 1) * len(members)
        seed = seed_of("intervals", grouped(of), projections.table("scores").rows())
        flips = [turned(seed, replicate, len(members)) for replicate in range(FLIPS)]
        expected, needs = by_definition([[sign * each for each in row] for row in own], flips, sum(ranked))
        by_total = rules.rank_by == "total" or rules.take == "positive_square"
        for each, row in enumerate(rows):
            sets = expected.allowed[kept.index(each)] if each in kept and by_total else (None, None)
            assert (row["rank_set_low"], row["rank_set_high"]) == sets
        table = [*projections.table("resolution").rows()]
        assert len(table) == bool(needs.needed)
        for row in table:
            amounts = [Fraction(each, 10**9) for each in needs.needed]
            assert [Fraction(row[column]) for column in ("smallest", "middle", "largest")] == amounts
            assert (row["ranked"], row["pairs"]) == (sum(ranked), needs.pairs)
        if weights != "plain" or number:  # the same contributions
            continue
        alone = marginal_by_definition([[sign * each for each in row] for row in own], flips, sum(ranked))
        for row in projections.table("marginal_ranks").rows():
            each = [place.participant for place in board].index(row["participant"])
            sets = alone[kept.index(each)] if each in kept and by_total else (None, None)
            assert (row["rank_low"], row["rank_high"], row["clusters"]) == (*sets, reached[each])


def test_who_has_few_clusters_may_have_any_rank() -> None:
    """With nine questions, there is no set."""
    projections = oracle.projected(*season(RULES["mean"], 1))
    assert {row["rank_set_low"] for row in projections.table("intervals").rows()} == {None}
    alone = [*projections.table("marginal_ranks").rows()]
    assert {(row["rank_low"], row["rank_high"]) for row in alone} == {(None, None)}
    assert max(row["clusters"] for row in alone) < 20
    assert [*projections.table("resolution").rows()] == []
