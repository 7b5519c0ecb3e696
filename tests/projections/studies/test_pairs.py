"""Pairs of participants, compared with the definitions in fractions."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from hashlib import sha256
from itertools import combinations, product
from math import ceil, lcm, log, sqrt
from operator import mul
from random import Random
from typing import Any, NamedTuple

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand, Range, ResolveQuestion
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.studies import estimates, intervals, replicates
from forecast_ledger.projections.studies import pairs as module
from forecast_ledger.projections.tables.boards import pairwise_values
from forecast_ledger.projections.tables.catalogue import Projections
from tests.projections.studies.test_intervals import (
    CASES,
    REPLICATES,
    RULES,
    WEIGHTS,
    exact_scores,
    expanded_middle,
    grouped,
    redrawn,
    season,
    units,
)
from tests.projections.studies.test_rank_sets import nearest_root
from tests.support import mixtures, oracle, rules_oracle
from tests.support.effort import LONG, times
from tests.support.given import contest, entry, forecast, opened, resolution
from tests.support.rules_oracle import Case
from tests.support.seeds import seed_of

TABLES = ("intervals", "resolution", "pairwise")
POSSIBLE = 1  # the largest Brier score
RHO = 10 / (2 * log(1 / 0.1) + log(1 + 2 * log(1 / 0.1)))  # tightest after 10 questions, at 90%


class Common(NamedTuple):
    """A question that two participants have forecast on: the difference of their scores, and its weight."""

    name: str
    difference: Fraction
    weight: Fraction


def told(rules: str, seed: int, weights: str = "plain") -> list[AnyCommand]:
    """Return a season whose questions are resolved in another order than that in which they were opened."""
    commands = season(RULES[rules], seed, weights)
    answers = [command for command in commands if isinstance(command, ResolveQuestion)]
    return [command for command in commands if command not in answers] + answers[::-1]


@cache
def turned(seed: bytes, replicate: int, count: int) -> list[int]:
    """Return the signs of units in a replicate, by definition: the bits of SHA-256, the highest first."""
    digest = sha256(seed + b"sign" + replicate.to_bytes(4, "big") + bytes(4)).digest()
    bits = "".join(f"{byte:08b}" for byte in digest)
    return [1 if bit == "1" else -1 for bit in bits[:count]]


def turns_of(seed: bytes, count: int) -> list[list[int]]:
    """Return the signs of all replicates: 999 as drawn, or, if there are no more, every way but that with 1 alone."""
    if 2**count <= 1000:
        return [*map(list, product((1, -1), repeat=count))][1:]
    return [turned(seed, replicate, count) for replicate in range(999)]


def mean(common: Sequence[Common], drawn: Any) -> Fraction | None:
    """Return the weighted mean of differences, each as often as its question is drawn."""
    weight = sum(each.weight * drawn[each.name] for each in common)
    return sum(each.weight * each.difference * drawn[each.name] for each in common) / weight if weight else None


def statistics(common: Sequence[Common], strata: list[list[list[str]]], seed: bytes) -> tuple[int, list[int]]:
    """Return |sum| / the root of the sum of squares of a pair, 1e-6, as observed and with the signs of replicates."""
    members = [unit for stratum in strata for unit in stratum]
    by_name = {each.name: each.weight * each.difference for each in common}
    sums = [sum((by_name.get(name, Fraction(0)) for name in unit), Fraction(0)) for unit in members]
    unit = lcm(*(each.denominator for each in sums))
    exact = [int(each * unit) for each in sums]  # in parts of the least common denominator
    squares = sum(each**2 for each in exact)

    @cache
    def rounded(signs: tuple[int, ...]) -> int:
        total = sum(map(mul, signs, exact))
        return nearest_root(Fraction(10**12 * total**2, squares)) if squares else 0

    return rounded((1,) * len(exact)), [rounded(tuple(each)) for each in turns_of(seed, len(exact))]


def adjusted(pairs: Sequence[tuple[int, list[int]]]) -> list[Fraction]:
    """Return the p-values of pairs, each beside those whose statistic is not larger, and none below a larger one's."""
    beside = []
    for own, _ in pairs:
        turns = [turns for other, turns in pairs if other <= own]
        beside.append(1 + sum(max(each) >= own for each in zip(*turns, strict=True)))
    return [
        Fraction(max(p for p, (other, _) in zip(beside, pairs, strict=True) if other >= own), 1 + len(turns))
        for own, turns in pairs
    ]


def hoeffding(common: Sequence[Common], largest: Fraction) -> float:
    """Return the radius of the mean by the two-sided normal mixture."""
    time = float(sum((each.weight / largest) ** 2 for each in common))
    bound = sqrt((time + RHO) * (log(1 + time / RHO) + 2 * log(1 / 0.1)))
    return bound * float(largest / sum(each.weight for each in common))


def bernstein(common: Sequence[Common], largest: Fraction) -> float:
    """Return the radius of the mean by the gamma-exponential mixture, each difference predicted by those before it."""
    time, total = Fraction(0), Fraction(0)
    for number, each in enumerate(common):
        own = each.weight * each.difference / largest
        time += (own - (total / number if number else 0)) ** 2
        total += own
    unit = Fraction(1, 1024)
    while ceil(time / unit) >= 2048:  # times are rounded up to ten bits below the highest
        unit *= 2
    bound = mixtures.bound(ceil(time / unit) * unit, Fraction(1, 10))
    return float(bound) * float(largest / sum(each.weight for each in common))


@pytest.mark.usefixtures("little_is_enough")
@pytest.mark.parametrize(
    ("name", "weights"), [case for case in CASES if case[0] in {"sum", "squares", "mean", "kind_means"}]
)
def test_pairs_are_those_of_the_definition(name: str, weights: str) -> None:
    """Whoever has the better scores on the common questions has a difference above 0; only printing rounds."""
    for number in range(times(3)):
        recorded = oracle.history(*told(name, number, weights))
        projections = Projections(oracle.facts_in(recorded))
        of: dict[str, Case] = {
            each: case for each, case in rules_oracle.cases(recorded, "cup").items() if case.entry.weight
        }
        sign = -1 if RULES[name].kernel == "brier" else 1
        scores = {key: sign * score for key, (score, _) in exact_scores(projections).items()}
        seed = seed_of("pairwise", grouped(of), projections.table("scores").rows())
        strata = units(of)
        draws = [redrawn(seed, replicate, strata) for replicate in range(REPLICATES)]
        largest = max(Fraction(case.entry.weight, 10**6) for case in of.values())
        board = [row["participant"] for row in projections.table("leaderboard").rows()]
        rows = {(row["participant"], row["other"]): row for row in projections.table("pairwise").rows()}
        expected, tested = [], []
        for first, second in combinations(board, 2):
            common = [
                Common(each, scores[each, first] - scores[each, second], Fraction(of[each].entry.weight, 10**6))
                for each in [f"q{index}" for index in range(8, -1, -1)]  # in the order of their answers
                if each in of and {(each, first), (each, second)} <= scores.keys()
            ]
            if not common:
                assert (first, second) not in rows
                continue
            row = rows[first, second]
            expected.append((first, second))
            won, lost = (sum(way * each.difference > 0 for each in common) for way in (1, -1))
            assert (row["questions"], row["won"], row["lost"]) == (len(common), won, lost)
            share = Fraction(won - lost, 2 * len(common)) + Fraction(1, 2)
            assert Fraction(row["won_share"]) == Fraction(oracle.nine(share))
            plain = mean(common, dict.fromkeys(of, 1))
            assert plain is not None
            assert Fraction(row["difference"]) == Fraction(oracle.nine(plain))
            means = [mean(common, drawn) for drawn in draws]
            asked = {each.name for each in common}
            clusters = sum(bool(asked & {*members}) for stratum in strata for members in stratum)
            defined = [each for each in means if each is not None]
            ends = [Fraction(oracle.nine(end)) for end in expanded_middle(defined, clusters, len(strata))]
            assert (row["clusters"], row["withheld"]) == (clusters, "constant_score" * (ends[0] == ends[1]))
            shown = [row[f"difference_{end}"] for end in ("low", "high")]
            assert shown == [None, None] if row["withheld"] else [*map(Fraction, shown)] == ends
            tested.append(statistics(common, strata, seed))
            own, turns = tested[-1]
            assert Fraction(row["p"]) == Fraction(1 + sum(each >= own for each in turns), 1 + len(turns))
            for bound, radius in (("hoeffding", hoeffding), ("bernstein", bernstein)):
                ends = [row[f"{bound}_{end}"] for end in ("low", "high")]
                if name in {"mean", "kind_means"}:
                    wide = radius(common, largest)
                    assert float(ends[0]) == pytest.approx(max(float(plain) - wide, -POSSIBLE), abs=2e-9)
                    assert float(ends[1]) == pytest.approx(min(float(plain) + wide, POSSIBLE), abs=2e-9)
                else:
                    assert ends == [None, None]
        assert [*rows] == expected
        assert [Fraction(row["p_adjusted"]) for row in rows.values()] == adjusted(tested)
        first = projections.pairwise("cup", 3).rows()
        assert [Fraction(row["p_adjusted"]) for row in first] == adjusted(
            [own for own, pair in zip(tested, expected, strict=True) if {*pair} <= {*board[:3]}]
        )


@pytest.mark.parametrize("count", [1, 2, 9])
def test_every_way_to_turn_few_signs_is_tried(count: int) -> None:
    """Of whoever is better on each of n questions, 2 of the 2^n ways are as far from 0: all as observed, and none."""
    story: list[AnyCommand] = [contest(rules=RULES["mean"])]
    for number in range(count):
        name, worse = f"q{number}", f"0.{number}5"
        story += [opened(name), entry(question=name), forecast(name, "ada", probability="0.9")]
        story += [forecast(name, "bob", probability=worse), resolution(name)]
    [row] = oracle.projected(*story).table("pairwise").rows()
    assert {Fraction(row["p"]), Fraction(row["p_adjusted"])} == {Fraction(2, 2**count)}


@pytest.mark.parametrize("rules", ["sum", "mean"])
def test_tests_can_be_made_without_intervals(rules: str) -> None:
    """All else is the same: pages of a contest show no intervals of pairs."""
    projections = Projections(oracle.facts_in(oracle.history(*told(rules, 1))))
    alone = projections.as_table("pairwise", pairwise_values(projections, "cup", tests_only=True))
    untold = {column.name: None for column in alone.columns if column.name.endswith(("_low", "_high", "withheld"))}
    every = [*projections.table("pairwise").rows()]
    assert [row | untold for row in alone.rows()] == [row | untold for row in every]
    assert {row["difference_low"] or row["hoeffding_low"] for row in alone.rows()} == {None}


def test_the_bounds_of_many_questions_follow_the_order_of_their_answers() -> None:
    """Ninety questions with large differences of both signs, so that what is predicted from those before counts."""
    random = Random(9)
    story: list[AnyCommand] = [contest(rules=structs.replace(RULES["mean"], replicates=REPLICATES, level_ppm=900_000))]
    said, answers = {}, []
    for number in range(90):
        name, weight = f"q{number}", random.choice(("1", "2"))
        said[name] = random.choice((("0.1", "0.9"), ("0.2", "0.6"), ("0.9", "0.3"))), Fraction(weight)
        story += [opened(name), entry(question=name, weight=weight)]
        story += [forecast(name, who, probability=p) for who, p in zip(("ada", "bob"), said[name][0], strict=True)]
        answers.append(resolution(name))
    random.shuffle(answers)
    [row] = oracle.projected(*story, *answers).table("pairwise").rows()
    sign = 1 if row["participant"] == "ada" else -1
    common = []
    for answer in answers:
        (ada, bob), weighs = said[answer.question]
        difference = sign * ((1 - Fraction(bob)) ** 2 - (1 - Fraction(ada)) ** 2)
        common.append(Common(answer.question, difference, weighs))
    for bound, radius in (("hoeffding", hoeffding), ("bernstein", bernstein)):
        wide = radius(common, Fraction(2))
        assert wide != radius(common[::-1], Fraction(2)) or bound == "hoeffding"
        for end, way in (("low", -1), ("high", 1)):
            expected = float(Fraction(row["difference"])) + way * wide
            assert float(row[f"{bound}_{end}"]) == pytest.approx(expected, abs=2e-9)


def test_a_contest_with_too_many_pairs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of computing for hours."""
    monkeypatch.setattr(module, "MOST_PRODUCTS", 1_000)
    with pytest.raises(Refused) as refused:
        list(Projections(oracle.facts_in(oracle.history(*told("sum", 0)))).table("pairwise").rows())
    assert refused.value.code == "out_of_range"


def test_weights_with_many_digits_leave_room_for_large_scores() -> None:
    """Scores of up to 900,000 points with weights of a third: the mean difference is that of its definition."""
    rules = RuleSet(name="x", quantile_kernel="pinball", period="covered", total="mean")
    story: list[AnyCommand] = [contest(rules=rules)]
    span = Range(lower=0, upper=10**6, levels=("0.5",), decimals=0)
    for number in range(60):
        name, weight = f"q{number}", "0.333333" if number % 2 else "1"
        story += [opened(name, kind="numeric", range=span), entry(question=name, weight=weight)]
        story += [forecast(name, who, quantiles=[at]) for who, at in (("ada", 9 * 10**5), ("bob", 10**5 + number))]
        story.append(resolution(name, value=10**6))
    [row] = oracle.projected(*story).table("pairwise").rows()
    weights = [Fraction(333_333, 10**6) if number % 2 else Fraction(1) for number in range(60)]
    summed = sum((weight * (800_000 - number) for number, weight in enumerate(weights)), Fraction(0))
    assert abs(Fraction(row["difference"])) == Fraction(oracle.nine(summed / sum(weights, Fraction(0))))


@pytest.mark.parametrize(
    ("name", "seed", "weights"),
    [
        ("mean", 1, "plain"),
        ("squares", 2, "thirds"),
        ("shares", 2, "tiny"),
        ("powers", 3, "far apart"),
        ("per_coverage", 1, "thirds"),
    ],
)
def test_what_bounds_leave_open_is_computed_exactly(
    name: str, seed: int, weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With floats that err by a thousandth of themselves, and one guard digit or two, tables have the same digits."""
    for each in [weights] if LONG == 1 else WEIGHTS:
        facts = oracle.facts_in(oracle.history(*told(name, seed, each)))
        certain = [Projections(facts).table(table).digest() for table in TABLES]
        with monkeypatch.context() as patched:
            for share in ("_ROUNDING", "_INPUT", "_SLACK"):
                patched.setattr(estimates, share, 2.0**-10)
            for module in (replicates, intervals):
                patched.setattr(module, "FRACTION_BITS", 1)
            assert [Projections(facts).table(table).digest() for table in TABLES] == certain


def test_pairs_divided_into_chunks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pair at a time, or all at once."""
    facts = oracle.facts_in(oracle.history(*told("mean", 1)))
    whole = Projections(facts).table("pairwise").digest()
    monkeypatch.setattr(module, "_NUMBERS", 1)
    assert Projections(facts).table("pairwise").digest() == whole
