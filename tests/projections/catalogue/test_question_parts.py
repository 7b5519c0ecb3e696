"""What rests on the forecasts on some questions: the parts of all questions make every table, however divided."""

import pickle
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.projections.catalogue.catalogue import BUILT, CATALOGUE
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.catalogue.question_parts import BY_QUESTION, finish, score
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.tables.analysis import CachedResults
from forecast_ledger.replay.reading.replay import summarize_tables
from tests.support import oracle
from tests.support.effort import times
from tests.system.test_stories import STORIES, recorded

NONE = Facts().forecasts


def divided(facts: Facts, random: Random, most: int) -> list[Int64Array]:
    """The questions in up to so many parts, each in some order; also empty ones."""
    part = np.array([random.randrange(most) for _ in facts.questions], np.int64)
    found = [np.flatnonzero(part == number) for number in range(most)]
    return [np.array(random.sample(codes.tolist(), len(codes)), np.int64) for codes in found]


def in_parts(facts: Facts, parts: list[Int64Array], random: Random) -> CachedResults:
    """The results of parts that were pickled, and that come in some order; each sees its own forecasts alone."""
    made = facts.forecasts
    owned = [replace(facts, forecasts=made.rows(np.flatnonzero(np.isin(made.question, part)))) for part in parts]
    found = [pickle.loads(pickle.dumps(score(*each))) for each in zip(owned, parts, strict=True)]  # noqa: S301 - ours
    return finish(replace(facts, forecasts=NONE), random.sample(found, len(found)))


def check(facts: Facts, random: Random, most: int) -> None:
    """Every table of a replay is the same without any forecast but in the parts."""
    cached = in_parts(facts, divided(facts, random, most), random)
    assert summarize_tables(replace(facts, forecasts=NONE), cached) == summarize_tables(facts)


@given(oracle.logs(), st.randoms(use_true_random=False), st.integers(1, 4))
@settings(max_examples=times(8), deadline=None)
def test_every_table_of_any_log_is_made_of_its_parts(commands: list[AnyCommand], random: Random, most: int) -> None:
    """Several contests, rule sets, references and kinds of questions."""
    check(oracle.facts_in(oracle.attempted(commands)[0]), random, most)


@pytest.mark.parametrize("story", STORIES)
def test_every_table_of_every_story_is_made_of_its_parts(story: str) -> None:
    """Changed outcomes, sealed boards, attestations, markets, trades."""
    check(oracle.facts_in(recorded(story)), Random(story), 3)


def test_the_results_of_a_contest_come_from_the_parts() -> None:
    """Its scores and its Brier sample too, which intervals and comparisons of pairs are made of."""
    facts = oracle.facts_in(recorded("metaculus-2022"))
    cached = in_parts(facts, divided(facts, Random(1), 2), Random(2))
    without, whole = Projections(replace(facts, forecasts=NONE), cached=cached), Projections(facts)
    for name in facts.contests:
        assert [*map(repr, without.scored(name))] == [*map(repr, whole.scored(name))]
    for table in ("intervals", "pairwise", "difficulty"):
        assert len(whole.table(table))
        assert without.table(table).digest() == whole.table(table).digest()
    samples = [repr(sorted(zip(*map(np.ndarray.tolist, each.brier_sample("plain").sample), strict=True)))
               for each in (without, whole)]  # fmt: skip
    assert samples[0] == samples[1]


def test_no_part_makes_empty_tables() -> None:
    """A log without questions."""
    assert summarize_tables(Facts(), finish(Facts(), [])) == summarize_tables(Facts())


def test_tables_by_question_are_those_that_read_forecasts_but_no_scores() -> None:
    """All others are made of scores and samples, or of no forecast: a new table is one or the other."""
    assert BY_QUESTION == ("standing", "consensus", "admissions")
    others = {kind for name in BUILT if name not in BY_QUESTION for kind in CATALOGUE[name].reads}
    assert not {"forecasts", "own_forecasts"} & others
