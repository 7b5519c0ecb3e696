"""Intervals: boards whose questions are drawn again, compared with the definition in fractions."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.boards.prizes import PASSES
from forecast_ledger.projections.boards.totals import score_labels
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.proportions import apportion
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.studies import intervals, replicates
from forecast_ledger.projections.studies.estimates import Near, above_least, divided, drawn_estimates
from forecast_ledger.projections.studies.replicates import Draws, Rows, Weighted
from forecast_ledger.projections.studies.resampling import Drawn, drawn_ends, drawn_limits
from forecast_ledger.projections.tables.catalogue import Projections
from tests.projections.studies.test_expansion import expanded
from tests.projections.studies.test_resampling import drawn
from tests.support import oracle, rules_oracle
from tests.support.effort import LONG, times
from tests.support.given import (
    COLOURS,
    OPENS,
    choices,
    contest,
    entry,
    exclusion,
    forecast,
    numeric,
    opened,
    resolution,
)
from tests.support.rules_oracle import Case, Place
from tests.support.seeds import seed_of

Found = Mapping[tuple[str, str], tuple[Fraction, Fraction]]  # scores and coverages by question and participant

PEOPLE = ("ada", "bob", "cyd", "dan", "eve")
SHARE = 800_000
REPLICATES, LEVEL = 39, 900_000  # the 2nd and the 38th order statistics: (39 + 1) x 5% = 2
BRIER: dict[str, Any] = {"kernel": "brier", "period": "covered", "least_probability_ppm": 0}
RULES: dict[str, RuleSet] = {
    "sum": PRESETS["baseline"],
    "shares": PRESETS["peer-2024-03"],
    "squares": structs.replace(PRESETS["peer-2024-03"], rank_by="take"),
    "least prize": structs.replace(PRESETS["peer-2024-03"], least_prize_micros=20 * 10**6),
    "powers": PRESETS["relative-2022-04"],
    "mean": RuleSet(name="mean", total="mean", **BRIER),
    "per_coverage": structs.replace(PRESETS["peer-average"], least_coverage=2),
    "per_question": structs.replace(PRESETS["peer-average-2023"], least_coverage=3),
    "kind_means": RuleSet(name="kinds", total="kind_means", **BRIER),
    "kind_means_third": RuleSet(name="thirds", total="kind_means_third", **BRIER),
    "worst imputed": RuleSet(name="worst", total="mean", imputation="worst", **BRIER),
    "half imputed": RuleSet(
        name="half", total="mean", imputation="always_half", reference_rows=("always_half",), **BRIER
    ),
    "consensus imputed": structs.replace(PRESETS["baseline"], imputation="consensus", score_consensus=True),
}


WEIGHTS = {"plain": ("1", "1", "2", "0"), "thirds": ("0.333333", "0.333333", "1"), "tiny": ("0.000001",)}
SEEDS = {("powers", "far apart"): (3,)}  # who may not win a prize has e^417 times the take of the others
WEIGHTS["far apart"] = ("0.000001", "0.333333", "1", "1000")
CASES = [  # each rule set with half of the weights, in a long run with all
    (name, weights)
    for number, name in enumerate(RULES)
    for place, weights in enumerate(WEIGHTS)
    if LONG > 1 or (number + place) % 2 == 0 or (name, weights) in SEEDS
]


def season(rules: RuleSet, seed: int, weights: str = "plain", level_ppm: int = LEVEL) -> list[AnyCommand]:
    """Return a contest over questions of several kinds, some in groups, some weighted, some without a forecast.

    Unless weights are plain, each question is open for another time, to the microsecond, and forecasts are replaced.
    """
    random = Random(seed)
    rules = structs.replace(rules, replicates=REPLICATES, level_ppm=level_ppm)
    story: list[AnyCommand] = [contest(rules=rules, pool=100 if rules.take != "none" else 0)]
    for number in range(9):
        name, group = f"q{number}", random.choice((None, None, "east", "west"))
        kind = ("binary", "multiple_choice", "binary" if rules.cdf_kernel == "none" else "numeric")[number % 3]
        question = asked(kind, name, group)
        weight = random.choice(WEIGHTS[weights])
        who = [who for who in PEOPLE if random.random() < 0.7]
        told = [forecast(name, each, at=OPENS, **said(kind, random)) for each in who]
        if weights != "plain":
            question = structs.replace(question, closes_at=odd(random.randrange(20, 60)))
            told += [forecast(name, each, at=odd(random.randrange(20)), **said(kind, random)) for each in who]
        story += [question, entry(question=name, weight=weight), *told, resolution(name, **answer(kind, random))]
    story.append(exclusion(participant="eve", level=random.choice(("no_rank", "no_prize"))))
    return story


def odd(hours: int) -> str:
    """Return an instant some hours after the opening, and a few microseconds."""
    return (datetime.fromisoformat(OPENS) + timedelta(hours=hours, microseconds=hours * 7_919 + 1)).isoformat()


def asked(kind: str, name: str, group: str | None) -> OpenQuestion:
    """Return a question of a kind."""
    if kind == "numeric":
        return structs.replace(numeric(name), group=group)
    return opened(name, group=group) if kind == "binary" else choices(name, group=group)


def said(kind: str, random: Random) -> dict[str, Any]:
    """Return what a forecast says."""
    cut = random.randrange(1, 100)
    if kind == "binary":
        return {"probability": f"0.{cut:03}"}
    if kind == "numeric":
        return {"cdf": ["0", "0.1", f"0.{cut + 100}", "0.3", "1"]}
    return {"probabilities": {"red": f"0.{cut:02}", "green": f"0.{99 - cut:02}", "blue": "0.01"}}


def answer(kind: str, random: Random) -> dict[str, Any]:
    """Return what a question resolves to."""
    if kind == "numeric":
        return {"value": "1.5"}
    return {"outcome": random.choice(("yes", "no") if kind == "binary" else COLOURS)}


def grouped(of: Mapping[str, Case]) -> dict[str, tuple[int, str]]:
    """Return the weight and the group of each question."""
    return {name: (case.entry.weight, case.opened.group) for name, case in of.items()}


def units(of: Mapping[str, Case]) -> list[list[list[str]]]:
    """Return the questions of each unit of each stratum: single questions by id, then groups by name."""
    by_unit: dict[tuple[bool, str], list[str]] = {}
    for name, case in of.items():
        by_unit.setdefault((case.opened.group != "", case.opened.group or name), []).append(name)
    strata: dict[tuple[str, ...], list[list[str]]] = {}
    for _, members in sorted(by_unit.items()):
        strata.setdefault(tuple(sorted({of[name].opened.kind for name in members})), []).append(members)
    return [strata[kinds] for kinds in sorted(strata)]


def redrawn(seed: bytes, replicate: int, strata: list[list[list[str]]]) -> Counter[str]:
    """Return how often each question is drawn in a replicate."""
    times: Counter[str] = Counter()
    for stratum, members in enumerate(strata):
        limit = 2**32 // len(members) * len(members)
        for unit, count in drawn(seed, stratum, replicate, len(members), limit).items():
            times.update(dict.fromkeys(members[unit], count))
    return times


def replicate_board(
    here: events.ContestOpened, of: Mapping[str, Case], found: Found, times: Counter[str], board: list[Place]
) -> dict[str, Place | None]:
    """Return the places of everyone on a board if each question were asked so many times; None without a total."""
    rules = here.rules
    copies = {(name, copy) for name in of for copy in range(times[name])}
    by_name = {f"{name}#{copy}": of[name] for name, copy in copies}
    every = sum((Fraction(of[name].entry.weight, 10**6) for name, _ in copies), Fraction(0))
    copied = {(f"{n}#{copy}", who): shares for (n, who), shares in found.items() for copy in range(times[n])}
    places: dict[str, Place | None] = {}
    for place in board:
        own = {f"{n}#{copy}": found[n, place.participant] for n, copy in copies if (n, place.participant) in found}
        counted = {**rules_oracle.imputed(rules, by_name, copied, place.participant), **own}
        if rules.total == "mean" and not counted:
            places[place.participant] = None
            continue
        score = rules_oracle.total(rules, by_name, counted)
        shares = (Fraction(by_name[name].entry.weight, 10**6) * share for name, (_, share) in own.items())
        covered = sum(shares, Fraction(0)) / every
        take = rules_oracle.take(rules, score, covered)
        places[place.participant] = place._replace(score=score, coverage=covered, take=take)
    totals = [place for place in places.values() if place is not None]
    ranked = rules_oracle._ranked(rules, totals, {place.participant: place.participant for place in totals})
    return places | {place.participant: place for place in rules_oracle._paid(here, ranked)}


def middle(values: list[Any]) -> tuple[Any, Any]:
    """Return the ends of the 90% in the middle: of 39 values the 2nd and the 38th."""
    ordered, outside = sorted(values), (len(values) + 1) // 20 or 1
    return ordered[outside - 1], ordered[-outside]


def expanded_middle(values: list[Any], clusters: int, strata: int) -> tuple[Any, Any]:
    """Return the ends of the 80% in the middle, or more if there are few clusters: of 39 values, up to the 4th."""
    share = expanded(SHARE / 10**6, clusters, strata)
    ordered, outside = sorted(values), int((1 - share) / 2 * (len(values) + 1)) or 1
    return ordered[outside - 1], ordered[-outside]


def reached(
    here: events.ContestOpened, of: Mapping[str, Case], found: Found, who: str, strata: list[list[list[str]]]
) -> int:
    """Return in how many clusters a participant has a score."""
    own = {name for name, each in found if each == who}
    own |= {*rules_oracle.imputed(here.rules, of, dict(found.items()), who)}
    return sum(bool(own & {*members}) for stratum in strata for members in stratum)


def exact_scores(projections: Projections, contest: str = "cup") -> dict[tuple[str, str], tuple[Fraction, Fraction]]:
    """Return scores and coverages before they are rounded, by question and participant."""
    scored, names = projections.scored(contest), score_labels(projections.facts)
    rules, (questions, rows) = projections.facts.contests[contest].opened.rules, scored
    columns = (time_weighted.points(rules, questions, rows).exact(), time_weighted.coverages(questions, rows).exact())
    keys = zip(rows.question.tolist(), rows.participant.tolist(), strict=True)
    return {
        (questions.answers[question].question.question, names[who]): shares
        for (question, who), shares in zip(keys, zip(*columns, strict=True), strict=True)
    }


@pytest.mark.usefixtures("little_is_enough")
@pytest.mark.parametrize(("name", "weights"), CASES)
def test_intervals_are_those_of_the_definition(name: str, weights: str) -> None:
    """Each replicate is the board of a contest in which a question is asked as many times as it is drawn.

    Nothing is rounded but what is printed, so that ranks and prizes are those of exact totals.
    """
    for seed in {*range(times(4)), *SEEDS.get((name, weights), ())}:
        commands = season(RULES[name], seed, weights, SHARE)
        recorded = oracle.history(*commands)
        projections = Projections(oracle.facts_in(recorded))
        here, rules = projections.facts.contests["cup"].opened, projections.facts.contests["cup"].opened.rules
        of = {each: case for each, case in rules_oracle.cases(recorded, "cup").items() if case.entry.weight}
        found = exact_scores(projections)
        board = rules_oracle.board(recorded, "cup", found)
        drawn_by = seed_of("intervals", grouped(of), projections.table("scores").rows())
        strata = units(of)
        replicated = [
            replicate_board(here, of, found, redrawn(drawn_by, number, strata), board) for number in range(REPLICATES)
        ]
        rows = [*projections.table("intervals").rows()]
        assert [row["participant"] for row in rows] == [place.participant for place in board]
        for row, place in zip(rows, board, strict=True):
            own = [places[place.participant] for places in replicated]
            scores = [each.score for each in own if each is not None]
            clusters = reached(here, of, found, place.participant, strata)
            ends = [Fraction(oracle.nine(end)) for end in expanded_middle(scores, clusters, len(strata))]
            assert (row["clusters"], row["withheld"]) == (clusters, "constant_score" * (ends[0] == ends[1]))
            if row["withheld"]:
                assert row["score_low"] is row["first"] is row["prize_low"] is None
                continue
            assert [Fraction(row["score_low"]), Fraction(row["score_high"])] == ends
            last = sum(each.rank is not None for each in board)
            ranks = [last if each is None else each.rank for each in own]
            if place.rank is None:
                assert row["rank"] is row["first"] is row["best_5_percent"] is None
            elif len(scores) == len(own):
                assert row["best_5_percent"] == row["first"]  # of up to 20 places
                assert Fraction(row["first"]) == Fraction(oracle.nine(Fraction(ranks.count(1), REPLICATES)))
            if rules.take == "none" or place.excluded:
                assert row["prize"] is row["prize_low"] is row["prize_high"] is None
            else:
                assert Fraction(row["prize"]) == Fraction(place.prize, 10**6)
                amounts = [Fraction(each.prize, 10**6) for each in own if each is not None]
                ends = [*expanded_middle(amounts, clusters, len(strata))]
                assert [Fraction(row["prize_low"]), Fraction(row["prize_high"])] == ends


def test_large_weights_are_added_up_exactly() -> None:
    """Sums of numbers whose bound is beyond 64 bits are exact as long as they fit; else they are refused."""
    random = Random(7)
    drawn_times = [[random.randrange(3) for _ in range(40)] for _ in range(5)]
    values = [random.randrange(-(2**57), 2**57) for _ in range(40)]
    unit = int64_array([*range(40)])
    none = Weighted(time_weighted.Quotients(WideInt.from_int64(unit), [Fraction(1)], unit * 0), unit)
    rows = Rows(unit * 0, unit, unit * 0, none, none, unit)
    draws = Draws(np.array(drawn_times), np.zeros((3, 40), np.int64), 1)
    expected = [sum(times * value for times, value in zip(own, values, strict=True)) for own in drawn_times]
    assert draws.sums(rows, int64_array(values))[0].tolist() == expected
    with pytest.raises(Refused, match="too large"):
        draws.sums(rows, int64_array([2**59] * 40))


def test_a_board_that_is_too_large_is_refused() -> None:
    """Before memory is taken for it."""
    with pytest.raises(Refused, match="50,001 questions are too many for 2,000 replicates"):
        replicates.check_size(3, 50_001, 2_000)


def test_a_score_without_a_total_in_any_replicate_has_no_limits() -> None:
    """It is possible, if seldom, for who forecast on one question of many."""
    never = Drawn(Near(np.zeros((1, 19)), np.zeros((1, 1))), np.zeros((1, 19), bool), lambda _, __: [])
    assert (drawn_limits(never, 0, 900_000), drawn_ends(never, np.array([900_000]))) == (None, [None])


@pytest.mark.parametrize(("part", "needs_exact"), [(Fraction(1, 4), False), (Fraction(1, 2), True)])
def test_ends_are_rounded_from_closer_numbers_where_these_leave_no_doubt(part: Fraction, needs_exact: bool) -> None:
    """Exact numbers cost much more, and are asked for only if a closer one may be on either side of a half."""
    numbers, asked = [number * 7 % 40 + part for number in range(40)], list[int]()

    def exact(row: int, at: Int64Array) -> list[Fraction]:
        asked.append(row)
        return [sign * numbers[each] for each in at.tolist() for sign in [2 * row - 1]]

    def closer(row: int, at: Int64Array) -> Near:
        value = np.array([[float((2 * row - 1) * numbers[each]) for each in at.tolist()]])
        return Near(value + 0.03, np.full((1, 1), 0.05))

    value = np.array([[float(-each) for each in numbers], [float(each) for each in numbers]])
    drawn = Drawn(Near(value + 0.9, np.full((2, 1), 1.1)), np.ones((2, 40), bool), exact, closer)
    least, greatest = 1 + part, 38 + part  # of 40 numbers, at a level of 90%
    assert drawn_ends(drawn.take(np.array([1, 0])), np.array([900_000, 900_000])) == [
        (round(least), round(greatest)),
        (round(-greatest), round(-least)),
    ]
    assert bool(asked) is needs_exact
    some = np.arange(0, 40)[::-1]
    assert drawn_ends(drawn.at(some), np.array([900_000, 900_000]))[1] == (round(least), round(greatest))


@pytest.mark.parametrize(
    ("told", "places", "expected"),
    [
        ((0, 1, 2, 3), 3, (1, 3)),
        ((0, 1, 2, 3), 2, (1, 2)),
        ((2,), 3, (2, 3)),
        ((1,), 3, (1, 4)),
        ((), 3, (2, 4)),
    ],
)
def test_who_is_among_the_first_is_decided_exactly_where_somebody_is_told_of_it(
    told: tuple[int, ...], places: int, expected: tuple[int, int]
) -> None:
    """Floats say that two are about 3 and two about 1; the exact numbers are 3, 2.9, 1.1 and 1."""
    exact = [Fraction(3), Fraction("2.9"), Fraction("1.1"), Fraction(1)]
    near = Near(np.array([[3.0], [3.0], [1.0], [1.0]]), np.full((4, 1), 0.25))
    worth = Drawn(near, np.ones((4, 1), bool), lambda row, at: [exact[row]] * len(at))
    found = intervals.leading(worth, np.arange(4), np.isin(np.arange(4), told), (1, places))
    assert [each[:, 0].tolist() for each in found] == [[row < count for row in range(4)] for count in expected]


@pytest.mark.parametrize(("passes", "least"), [("many", 0), ("many", 9), ("one", 9), ("one_by_one", 9)])
def test_pools_are_divided_by_floats_as_by_integers_where_that_is_certain(passes: str, least: int) -> None:
    """Of small integers, often equal, so that remainders are equal, and numbers at the edge of a least prize."""
    random, sure = Random(least), 0
    takes = [[random.randrange(12) for _ in range(6)] for _ in range(times(300))]
    near = Near(np.array(takes, np.float64), np.full((len(takes), 1), 2.0**-30))
    kept, is_kept = above_least(near, 100, least, at_once=passes == "one")
    counts, is_divided = divided(Near(np.where(kept, near.value, 0), near.guard), 100)
    for row, own in enumerate(takes):
        if is_kept[row]:
            worth = PASSES[passes]([*own], 100, least)
            assert [each > 0 for each in worth] == [
                bool(use and each) for use, each in zip(kept[row], own, strict=True)
            ]
            if is_divided[row]:
                assert counts[row].tolist() == apportion(100, worth)
                sure += 1
    assert len(takes) // 9 < sure < len(takes)


def test_estimates_of_drawn_sums_are_within_their_guards() -> None:
    """Beside exact sums of the same floats, of which a few are far larger than the others and cancel."""
    random = Random(5)
    values = [random.uniform(-1, 1) * 10 ** random.randrange(12) for _ in range(60)]
    owner, unit = np.arange(60) % 2, np.array([random.randrange(9) for _ in range(60)])
    often = np.array([[random.randrange(4) for _ in range(5)] for _ in range(9)])
    near = drawn_estimates(owner, unit, np.array(values), 2, often)
    off = 0
    for who, replicate in product(range(2), range(5)):
        exact = sum(Fraction(values[row]) * int(often[unit[row], replicate]) for row in range(who, 60, 2))
        error = abs(Fraction(near.value[who, replicate]) - exact)
        assert error <= Fraction(near.guard[who, replicate]) <= Fraction(10**12) / 2**40
        off += error > 0
    assert off
