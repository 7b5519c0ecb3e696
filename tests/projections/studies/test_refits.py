"""Intervals of adjusted scores: the fit of a contest in which each question is asked as often as it is drawn."""

from collections import Counter
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.studies import estimates, refits
from forecast_ledger.projections.studies.adjusted_ranks import FINE
from forecast_ledger.projections.studies.estimates import Design, Quotient
from forecast_ledger.projections.studies.two_way import Cells, fit, fit_exactly
from forecast_ledger.projections.tables.catalogue import Projections
from tests.projections.studies.test_adjusted_ranks import by_definition
from tests.projections.studies.test_expansion import expanded
from tests.projections.studies.test_intervals import (
    REPLICATES,
    RULES,
    SHARE,
    exact_scores,
    grouped,
    redrawn,
    season,
    units,
)
from tests.support import oracle, rules_oracle
from tests.support.effort import times
from tests.support.given import asked, contest
from tests.support.seeds import seed_of


def refitted(
    scores: dict[tuple[str, str], Fraction], weights: dict[str, int], drawn: Counter[str]
) -> dict[str, Fraction]:
    """Return the adjusted scores of a replicate; none if it has several parts. scores: by question and participant."""
    rows = [(who, name, score, weights[name] * drawn[name]) for (name, who), score in scores.items() if drawn[name]]
    people, questions = sorted({row[0] for row in rows}), sorted({row[1] for row in rows})
    common = lcm(*(row[2].denominator for row in rows))
    codes = [np.array([people.index(row[0]) for row in rows]), np.array([questions.index(row[1]) for row in rows])]
    whole = [int(row[2] * common) for row in rows]
    cells = Cells(codes[0], codes[1], whole, np.array([row[3] for row in rows], np.int64))
    if not rows or len(fit(cells)) > 1:
        return {}
    part = fit_exactly(cells)
    own = {who: cells.take(np.flatnonzero(codes[0] == number)) for number, who in enumerate(people)}
    return {who: part.adjusted(each) / common for who, each in own.items()}


@pytest.mark.usefixtures("little_is_enough")
@pytest.mark.parametrize(("name", "weights"), [("mean", "plain"), ("shares", "thirds"), ("kind_means", "far apart")])
def test_intervals_are_those_of_fits_to_what_is_drawn(name: str, weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those replicates in which all who have a score are connected; the last two digits are doubtful nowhere."""
    monkeypatch.setattr(refits, "_SELDOM", 1)
    for number in range(times(2)):
        recorded = oracle.history(*season(RULES[name], number, weights, SHARE))
        projections = Projections(oracle.facts_in(recorded))
        of = {each: case for each, case in rules_oracle.cases(recorded, "cup").items() if case.entry.weight}
        rows = [*projections.table("adjusted_intervals").rows()]
        fitted = {row["participant"] for row in rows}
        assert "ada" in fitted
        scores = {
            key: score for key, (score, _) in exact_scores(projections).items() if key[0] in of and key[1] in fitted
        }
        seed = seed_of("adjusted_intervals", grouped(of), projections.table("scores").rows())
        strata = units(of)
        every = [
            refitted(scores, {each: case.entry.weight for each, case in of.items()}, redrawn(seed, replicate, strata))
            for replicate in range(REPLICATES)
        ]
        board = projections.table("adjusted_scores").only("by", "contest").rows()
        adjusted = {row["participant"]: row["adjusted_score"] for row in board if not row["excluded"]}
        for row in rows:
            who = row["participant"]
            found = sorted(each[who] for each in every if who in each)
            asked = {each for each, whose in scores if whose == who}
            clusters = sum(bool(asked & {*members}) for stratum in strata for members in stratum)
            share = expanded(SHARE / 10**6, clusters, len(strata))
            outside = int((1 - share) / 2 * (len(found) + 1)) or 1
            assert (row["clusters"], row["seed"]) == (clusters, seed.hex())
            assert row["adjusted_score"] == adjusted[who]
            if not row["withheld"]:
                ends = [Fraction(oracle.nine(end)) for end in (found[outside - 1], found[-outside])]
                assert [Fraction(row["adjusted_low"]), Fraction(row["adjusted_high"])] == ends
        sign, told = (1 if name == "shares" else -1), [row for row in rows if not row["withheld"]]
        plain = refitted(scores, {each: case.entry.weight for each, case in of.items()}, Counter([*of]))
        drawn = [plain, *(each for each in every if each.keys() >= {row["participant"] for row in told})]
        numbers = [[round(sign * each[row["participant"]] * 10**24) for each in drawn] for row in told]
        together, alone = by_definition(
            numbers, [row["clusters"] for row in told], len(strata), Fraction(SHARE, 10**6), len(rows)
        )
        assert [(row["rank_set_low"], row["rank_set_high"]) for row in told] == together
        assert [(row["rank_low"], row["rank_high"]) for row in told] == alone
        assert told
        assert {row["rank_set_low"] for row in rows if row["withheld"]} <= {None}


def _random_design(rng: np.random.Generator, scale: int, over: int) -> tuple[Design, list[Quotient]]:
    """Return a design of four people, and scores of a scale; the weights of questions differ by up to a thousand."""
    answered = [(who, number) for number in range(24) for who in range(4) if rng.random() < 0.7]
    owner, question = (np.array(column, np.int64) for column in zip(*answered, strict=True))
    codes, question = np.unique(question, return_inverse=True)
    weight = rng.choice([1, 3, 1_000], len(codes))
    design = Design(owner, question.astype(np.int64), rng.integers(0, 5, len(codes)), weight, 4)
    scores = [(int(rng.integers(-scale, scale + 1)), int(rng.integers(1, 1_000)) * over) for _ in answered]
    return design, scores


@pytest.mark.parametrize(("scale", "over"), [(0, 1), (1, 1), (10**6, 1), (10**14, 1), (10**6, 10**28)])
def test_no_adjusted_score_is_farther_off_than_its_guard(scale: int, over: int) -> None:
    """Least squares in fractions, for each replicate; and the guards are of the size of a few hundred roundings."""
    rng = np.random.default_rng(scale + 1)
    for _ in range(times(16)):
        design, scores = _random_design(rng, scale, over)
        drawn = rng.integers(0, 3, (12, 5))
        near, defined = estimates.refitted(design, scores, drawn)
        largest = max(abs(Fraction(*score)) for score in scores)
        for column in np.flatnonzero(defined.any(axis=0)).tolist():
            exact = refits._adjusted(design, scores, tuple(drawn[column].tolist()))
            assert [*exact] == np.flatnonzero(defined[:, column]).tolist()
            for row, number in exact.items():
                guard = Fraction(near.guard[row, column])
                assert abs(Fraction(near.value[row, column]) - number) <= guard
                assert guard <= (largest + 1) * 2**-32


def test_a_replicate_is_fitted_if_common_questions_connect_all_who_are_in_it() -> None:
    """Each question has two scores: some replicates are a star of people, some a chain, and some fall into parts."""
    rng, chains = np.random.default_rng(1), 0
    for _ in range(times(4)):
        pairs = np.array([rng.choice(6, 2, replace=False) for _ in range(9)])
        design = Design(pairs.ravel(), np.repeat(np.arange(9), 2), np.arange(9), np.ones(9, np.int64), 6)
        drawn = rng.integers(0, 2, (40, 9))
        _, defined = estimates.refitted(design, [(number, 1) for number in range(18)], drawn)
        for column, often in enumerate(drawn):
            links = [{*pair} for pair in pairs[often > 0].tolist()]
            parts = list[set[int]]()
            for link in links:
                met = [part for part in parts if part & link]
                parts = [part for part in parts if part not in met] + [link.union(*met)]
            people = {*parts[0]} if len(parts) == 1 else set[int]()
            assert {*np.flatnonzero(defined[:, column]).tolist()} == people
            reached = [set[int]().union(*(link for link in links if who in link)) for who in people]
            chains += bool(people) and people not in reached
    assert chains


@pytest.mark.usefixtures("little_is_enough")
def test_what_bounds_leave_open_is_fitted_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With floats that err by a thousandth of themselves, and a few replicates at a time, the digits are the same."""
    facts = oracle.facts_in(oracle.history(*season(RULES["mean"], 3)))
    certain = Projections(facts).table("adjusted_intervals").digest()
    monkeypatch.setattr(estimates, "_ROUNDING", 2.0**-10)
    monkeypatch.setattr(estimates, "_NUMBERS", 100)
    assert Projections(facts).table("adjusted_intervals").digest() == certain
    monkeypatch.setattr(refits, "_FINER", FINE)  # no guard digits
    assert Projections(facts).table("adjusted_intervals").digest() == certain


@pytest.mark.usefixtures("little_is_enough")
def test_replicates_that_draw_the_same_are_fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two questions, any number of replicates draws both, or one twice. Who has a score on each has their mean."""
    story: list[AnyCommand] = [contest(rules=structs.replace(RULES["mean"], replicates=199))]
    for name in ("q0", "q1"):
        story += asked(name, {"ada": "0.7", "bob": "0.1"} | ({"cid": "0.2"} if name == "q0" else {}))
    monkeypatch.setattr(estimates, "_ROUNDING", 2.0**-10)
    fitted, rounded = list[tuple[int, ...]](), refits._rounded

    def counted(design: Design, scores: list[Quotient], finer: Any, times: tuple[int, ...]) -> dict[int, int]:
        fitted.append(times)
        return rounded(design, scores, finer, times)

    monkeypatch.setattr(refits, "_rounded", counted)
    assert len(oracle.projected(*story).table("adjusted_intervals")) == 3
    assert sorted(fitted) == [(1, 1), (2, 0)]


def rows_of(links: int, **rules: Any) -> list[dict[str, Any]]:
    """Return the rows of a contest of 40 questions: ada has the even ones, bob the odd ones, and both the first few."""
    ruled = RuleSet(name="mean", kernel="brier", total="mean", period="covered", replicates=199, **rules)
    story: list[AnyCommand] = [contest(rules=ruled)]
    for number in range(40):
        own = ["ada", "bob"] if number < links else [("ada", "bob")[number % 2]]
        story += asked(f"q{number:02}", dict.fromkeys(own, f"0.{number + 30}"), ("yes", "no")[number // 2 % 2])
    return [*oracle.projected(*story).table("adjusted_intervals").rows()]


@pytest.mark.parametrize(
    ("links", "reasons"), [(0, ["", ""]), (2, ["apart"] * 2), (8, ["", ""]), (1, ["apart", "apart"])]
)
def test_scores_that_few_questions_connect_have_no_interval(links: int, reasons: list[str]) -> None:
    """Two of 40 are missing in one replicate of eight, eight hardly ever. With none, each is a part of its own."""
    rows = rows_of(links)
    assert [row["withheld"] for row in rows] == reasons
    assert [row["part"] for row in rows] == ([1, 2] if not links else [1, 1])
    assert all((row["adjusted_low"] is None) == bool(row["withheld"]) for row in rows)


def test_the_index_has_the_ends_of_the_score_and_many_are_not_fitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 (1 - √score), so that the high end is that of the low score."""
    for row in rows_of(8):
        for end, other in (("low", "high"), ("high", "low")):
            index = 100 * (1 - float(row[f"adjusted_{other}"]) ** 0.5)
            assert float(row[f"brier_index_{end}"]) == pytest.approx(index, abs=1e-8)
    monkeypatch.setattr(refits, "MOST_PEOPLE", 1)
    assert {row["withheld"] for row in rows_of(8)} == {"many_participants"}
