"""What rests on the forecasts on some questions: the parts of all questions make every table, however divided."""

import pickle
from dataclasses import replace
from random import Random
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.projections.catalogue import question_parts
from forecast_ledger.projections.catalogue.catalogue import BUILT
from forecast_ledger.projections.catalogue.question_parts import SAMPLES, SUMS, finish, needed, score
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.question_facts import FactsByQuestion, with_questions, without_questions
from forecast_ledger.projections.tables.analysis import CachedResults
from forecast_ledger.replay.reading.replay import summarize_tables
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, entry, forecast, opened, resolution
from tests.system.test_stories import STORIES, recorded

NONE = Facts().forecasts
Sent = TypeVar("Sent")


def divided(facts: Facts, random: Random, most: int) -> list[Int64Array]:
    """The questions in up to so many parts, each in some order; also empty ones."""
    part = np.array([random.randrange(most) for _ in facts.questions], np.int64)
    found = [np.flatnonzero(part == number) for number in range(most)]
    return [np.array(random.sample(codes.tolist(), len(codes)), np.int64) for codes in found]


def in_parts(facts: Facts, parts: list[Int64Array], random: Random, tables: tuple[str, ...] = BUILT) -> CachedResults:
    """The results of parts that come in some order; facts and results were pickled, and each has its own alone."""
    wanted, shared, by_question = needed(tables), pickled(without_questions(facts)), FactsByQuestion(facts)
    found = []
    for codes in parts:
        own = with_questions(shared, pickled(by_question.on(codes.tolist())))
        forecasts = facts.forecasts.on(codes, facts.as_of)
        found.append(pickled(score(replace(own, forecasts=forecasts), wanted).numbered(codes)))
    return finish(replace(facts, forecasts=NONE), random.sample(found, len(found)), wanted)


def pickled(sent: Sent) -> Sent:
    """The same after it was pickled."""
    received: Sent = pickle.loads(pickle.dumps(sent))  # noqa: S301 - ours
    return received


def check(facts: Facts, random: Random, most: int) -> None:
    """Every table of a replay is the same without any forecast but in the parts."""
    cached = in_parts(facts, divided(facts, random, most), random)
    assert summarize_tables(replace(facts, forecasts=NONE), cached) == summarize_tables(facts)


@given(
    oracle.logs(),
    st.randoms(use_true_random=False),
    st.integers(1, 4),
    st.sampled_from([0, 5, question_parts.MOST_SUMS]),
)
@settings(max_examples=times(8), deadline=None)
def test_every_table_of_any_log_is_made_of_its_parts(
    commands: list[AnyCommand], random: Random, most: int, sums: int
) -> None:
    """Several contests, rule sets, references and kinds of questions; sums are added up at any time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question_parts, "MOST_SUMS", sums)
        check(oracle.facts_in(oracle.attempted(commands)[0]), random, most)


def test_sums_of_many_parts_are_added_up_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where questions are alike, no more rows wait than there are participants, besides those that may wait.

    Ada and bo forecast on each of twenty questions, which are as many parts with two rows each.
    """
    monkeypatch.setattr(question_parts, "MOST_SUMS", 6)
    said: list[AnyCommand] = [contest()]
    for question in [f"q{number:02}" for number in range(20)]:
        said += [opened(question), entry(question=question)]
        said += [*(forecast(question, who) for who in ("ada", "bo")), resolution(question)]
    facts = oracle.facts_in(oracle.attempted(said)[0])
    held = list[int]()
    add_up = question_parts._Sums._add_up

    def counted(sums: question_parts._Sums) -> None:
        held.append(sums._rows + len(sums._sums.over))
        add_up(sums)

    monkeypatch.setattr(question_parts._Sums, "_add_up", counted)
    check(facts, Random(1), 20)
    assert max(held) <= 6 + 2 + 2  # those that may wait, those of one part more, and those added up before
    assert len(held) >= 4


@pytest.mark.parametrize("story", STORIES)
def test_every_table_of_every_story_is_made_of_its_parts(story: str) -> None:
    """Changed outcomes, sealed boards, attestations, markets, trades."""
    check(oracle.facts_in(recorded(story)), Random(story), 3)


@pytest.mark.parametrize("table", BUILT)
def test_a_table_alone_is_made_of_what_it_needs(table: str) -> None:
    """Without any forecast, and without what other tables need: this holds for each table of a replay."""
    facts = oracle.facts_in(recorded("metaculus-2022"))
    cached = in_parts(facts, divided(facts, Random(1), 2), Random(2), (table,))
    found = summarize_tables(replace(facts, forecasts=NONE), cached, [table])
    assert found == {table: SUMMARIES[table]}


SUMMARIES = summarize_tables(oracle.facts_in(recorded("metaculus-2022")))


def test_only_what_tables_need_is_computed() -> None:
    """Boards need sums of scores, and no row of them."""
    facts = oracle.facts_in(recorded("metaculus-2022"))
    one_each = {"prizes": {SUMS}, "brier": {SAMPLES}, "scores": {"scores"}, "contests": set()}
    assert {name: needed([name]) for name in one_each} == one_each
    part = score(facts, needed(["leaderboard", "prizes"]))
    assert (part.samples, part.tables, len(part.sums)) == ([], {}, 1)
    part = score(facts, needed(["consensus"]))
    assert (part.sums, part.samples, [*part.tables]) == ([], [], ["consensus"])


def test_no_part_makes_empty_tables() -> None:
    """A log without questions."""
    assert summarize_tables(Facts(), finish(Facts(), [], needed(BUILT))) == summarize_tables(Facts())
