"""What rests on the forecasts on some questions: the parts of all questions make every table, however divided."""

import pickle
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from random import Random
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, Range
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.projections.boards import added_scores, estimates, score_sums, totals
from forecast_ledger.projections.boards.added_scores import MOST_WAITING, AddedScores, SumRows
from forecast_ledger.projections.core import wide_int
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.core.late_fractions import FEW
from forecast_ledger.projections.core.wide_int import QUOTIENT_BITS
from forecast_ledger.projections.facts.columns import Facts, Forecasts
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.facts.question_facts import FactsByQuestion, with_questions, without_questions
from forecast_ledger.projections.tables import question_parts
from forecast_ledger.projections.tables.analysis import CachedResults
from forecast_ledger.projections.tables.catalogue import BUILT
from forecast_ledger.projections.tables.question_parts import BOUNDS, SAMPLES, SUMS, QuestionPart, finish, needed, score
from forecast_ledger.replay.reading.replay import summarize_tables
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import asked, contest, day, entry, forecast, opened, resolution, revocation
from tests.support.logs import STORIES, VARIED
from tests.system.test_stories import recorded

NONE = Facts().forecasts
Sent = TypeVar("Sent")


def divided(facts: Facts, random: Random, most: int) -> list[Int64Array]:
    """The questions in up to so many parts, each in some order; also empty ones."""
    part = np.array([random.randrange(most) for _ in facts.questions], np.int64)
    found = [np.flatnonzero(part == number) for number in range(most)]
    return [np.array(random.sample(codes.tolist(), len(codes)), np.int64) for codes in found]


def forecasts_on(facts: Facts, codes: Int64Array) -> Forecasts:
    """All forecasts on some questions, renumbered in their order; those that are retracted count before a seal."""
    place = np.full(len(facts.questions), -1)
    place[codes] = np.arange(len(codes))
    number = place[facts.forecasts.question]
    index = np.flatnonzero(number >= 0)
    index = index[np.argsort(number[index], kind="stable")]
    return replace(facts.forecasts.rows(index), question=number[index])


def in_parts(
    facts: Facts, parts: list[Int64Array], random: Random, tables: tuple[str, ...] = BUILT, *, bounded: bool = False
) -> CachedResults:
    """The results of parts that come in some order; facts and results were pickled, and each has its own alone."""
    shared, by_question = pickled(without_questions(facts)), FactsByQuestion(facts)

    def found(wanted: frozenset[str]) -> list[QuestionPart]:
        each = []
        for codes in parts:
            here = by_question.on(codes.tolist())
            assert pickled(here)[:-1] == here[:-1]  # all but the quotes, which are arrays
            own = with_questions(shared, pickled(here))
            each.append(pickled(score(replace(own, held=forecasts_on(facts, codes)), wanted).numbered(codes)))
        return random.sample(each, len(each))

    wanted = needed(tables) | ({BOUNDS} if bounded else set())
    return finish(replace(facts, held=NONE), found(wanted), wanted, lambda: found(frozenset({SUMS})))


def pickled(sent: Sent) -> Sent:
    """The same after it was pickled."""
    received: Sent = pickle.loads(pickle.dumps(sent))  # noqa: S301 - ours
    return received


def check(facts: Facts, random: Random, most: int, *, bounded: bool = False) -> None:
    """Every table of a replay is the same without any forecast but in the parts."""
    cached = in_parts(facts, divided(facts, random, most), random, bounded=bounded)
    assert summarize_tables(replace(facts, held=NONE), cached) == summarize_tables(facts)


@given(oracle.logs(), st.randoms(use_true_random=False), st.integers(1, 4), st.sampled_from([0, 5, MOST_WAITING]))
@settings(max_examples=times(8), deadline=None)
def test_every_table_of_any_log_is_made_of_its_parts(
    commands: list[AnyCommand], random: Random, most: int, sums: int
) -> None:
    """Several contests, rule sets, references and kinds of questions; sums are added up at any time."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (question_parts, added_scores):
            patch.setattr(module, "MOST_WAITING", sums)
        check(oracle.facts_in(oracle.attempted(commands)[0]), random, most)


@given(
    oracle.logs(),
    st.randoms(use_true_random=False),
    st.integers(1, 4),
    st.sampled_from([0, 5, MOST_WAITING]),
    st.sampled_from([0, 1, 2, FEW]),
    st.sampled_from([0, 6, QUOTIENT_BITS]),
)
@settings(max_examples=times(12), deadline=None)
def test_boards_of_any_log_are_made_of_sums_with_bounds(  # noqa: PLR0917 - what is drawn
    commands: list[AnyCommand], random: Random, most: int, waiting: int, few: int, places: int
) -> None:
    """However few sums one has to have, and however far apart the bounds are: a doubt has all computed again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(added_scores, "MOST_WAITING", waiting)
        patch.setattr(score_sums, "FEW", few)
        for module in (totals, score_sums, estimates, wide_int):
            patch.setattr(module, "QUOTIENT_BITS", places)
        check(oracle.facts_in(oracle.attempted(commands)[0]), random, most, bounded=True)


def test_sums_of_many_parts_are_added_up_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where questions are alike, no more rows wait than there are participants, besides those that may wait.

    Ada and bo forecast on each of twenty questions, which are as many parts with two rows each.
    """
    monkeypatch.setattr(added_scores, "MOST_WAITING", 6)
    said: list[AnyCommand] = [contest()]
    for question in [f"q{number:02}" for number in range(20)]:
        said += asked(question, {"ada": "0.7", "bo": "0.7"})
    facts = oracle.facts_in(oracle.attempted(said)[0])
    held = list[int]()
    add_up = AddedScores._add_up

    def counted(sums: AddedScores) -> None:
        held.append(sums._waits + len(sums._sums.over))
        add_up(sums)

    monkeypatch.setattr(AddedScores, "_add_up", counted)
    check(facts, Random(1), 20)
    assert max(held) <= 6 + 2 + 2  # those that may wait, those of one part more, and those added up before
    assert len(held) >= 4


def unlike(*alike: str) -> Facts:
    """Thirty questions of fifteen lengths. These participants make the same forecasts, and cy and di others.

    One contest has the sum of the scores, the other one their weighted mean.
    """
    means = structs.replace(PRESETS["peer-2024-03"], name="means", take="none", rank_by="total", total="mean")
    said: list[AnyCommand] = [contest(rules="peer-2024-03", pool=100), contest("means", rules=means)]
    for number in range(30):
        question, closes_at = f"q{number:02}", day(15 + number % 15 // 3, number % 15)
        said += [opened(question, closes_at=closes_at), entry(question=question)]
        said.append(entry("means", question, weight=("0.5", "1")[number % 15 > 8]))
        said += [forecast(question, who, probability=f"0.{Random(number).randrange(10, 99)}") for who in alike]
        said += [forecast(question, who, probability=f"0.{number + 21}{who == 'cy':d}1") for who in ("cy", "di")]
        said.append(resolution(question, at=day(28)))
    recorded, refused = oracle.attempted(said)
    assert not refused
    return oracle.facts_in(recorded)


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """An entry for each time that `finish` has all scores computed again."""
    finished, counted = question_parts.finish, list[object]()

    def finish_counting(facts: Facts, parts: Iterable[QuestionPart], wanted: set[str], more: Any) -> CachedResults:
        def counting() -> Any:
            counted.append(wanted)
            return more()

        return finished(facts, parts, wanted, counting)

    monkeypatch.setattr(sys.modules[__name__], "finish", finish_counting)
    return counted


@pytest.mark.parametrize(
    ("alike", "places", "computed"),
    [(["ada"], QUOTIENT_BITS, {0}), (["ada", "bo"], QUOTIENT_BITS, {1}), (["ada", "bo"], 36, {1, 2})],
)
def test_scores_are_computed_again_where_bounds_leave_a_doubt(
    alike: list[str], places: int, computed: set[int], again: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never if there is none, once for those who are equal, whose sums alone are kept, and seldom more than once."""
    facts = unlike(*alike)
    expected = summarize_tables(facts)
    for module in (totals, score_sums, estimates, wide_int):
        monkeypatch.setattr(module, "QUOTIENT_BITS", places)
    read_again, kept = AddedScores.read_again, set[int]()

    def read_counting(sums: AddedScores, parts: Iterable[SumRows]) -> None:
        read_again(sums, parts)
        kept.update(*(each.rows.participant.tolist() for each in sums._exact))

    monkeypatch.setattr(AddedScores, "read_again", read_counting)
    monkeypatch.setattr(score_sums, "FEW", 6)  # more than anyone has in one of these parts
    parts = [np.array([*range(12), *range(15, 27)]), np.array([12, 13, 14, 27, 28, 29])]
    cached = in_parts(facts, parts, Random(4), bounded=True)
    assert summarize_tables(replace(facts, held=NONE), cached) == expected
    assert len(again) in computed
    if places == QUOTIENT_BITS:
        assert {facts.participant_codes.labels[code] for code in kept} == ({*alike} if len(alike) > 1 else set())


def test_a_doubt_that_no_board_has_left_is_settled_late(again: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Here none was looked for: who is equal is still found to be, from scores that are computed again."""
    facts = unlike("ada", "bo")
    expected = summarize_tables(facts)
    monkeypatch.setattr(AddedScores, "has_doubts", lambda *_: False)
    monkeypatch.setattr(score_sums, "FEW", 6)
    cached = in_parts(facts, divided(facts, Random(3), 2), Random(4), bounded=True)
    assert again == []
    assert summarize_tables(replace(facts, held=NONE), cached) == expected
    assert again


def test_totals_of_kind_means_leave_no_doubt(again: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums with bounds of three kinds, and worst scores for the forecasts that are missing, are added without terms."""
    said: list[AnyCommand] = [contest(rules="autocast-2022")]
    medians = {"kind": "numeric", "range": Range(lower=0, upper=4, levels=("0.5",), decimals=3)}
    kinds: list[dict[str, Any]] = [{}, {"kind": "multiple_choice", "outcomes": ("red", "green", "blue")}, medians]
    for number in range(18):
        question, closes_at, chance = f"q{number:02}", day(15 + number % 5, number), Random(number).randrange(100, 400)
        said += [opened(question, closes_at=closes_at, **kinds[number % 3]), entry(question=question)]
        for place, who in enumerate(("ada", "bo", "cy")):
            mine = f"0.{chance + 7 * place}"
            rest = f"0.{1_000 - 2 * (chance + 7 * place):03}"
            given: list[dict[str, Any]] = [
                {"probability": mine},
                {"probabilities": {"red": mine, "green": mine, "blue": rest}},
                {"quantiles": (mine,)},
            ]
            said += [forecast(question, who, **given[number % 3])] * (number % 7 != place)
        answers: list[dict[str, Any]] = [{"outcome": "yes"}, {"outcome": "red"}, {"value": "1.5"}]
        said.append(resolution(question, at=day(28), **answers[number % 3]))
    recorded, refused = oracle.attempted(said)
    assert not refused
    monkeypatch.setattr(score_sums, "FEW", 0)
    check(oracle.facts_in(recorded), Random(3), 3, bounded=True)
    assert again == []


@pytest.mark.parametrize(
    ("story", "forecasts", "most"),
    [
        (partial(unlike, "ada"), 3, 180),  # one sum for each forecast in each contest
        (partial(unlike, "ada"), 1_000, 210),  # three participants, four reference forecasters, on fifteen lengths each
        (lambda: oracle.facts_in(recorded("metaculus-2022")), 1_000, 48),  # eight on three unlike questions of two
    ],
)
def test_bounds_are_for_sums_that_can_be_many(
    story: Callable[[], Facts], forecasts: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than the forecasts, and no more than each participant can have."""
    questions = story()
    counts = np.full(len(questions.questions), forecasts)
    for kept, has_many in ((most, False), (most - 1, True)):
        monkeypatch.setattr(added_scores, "MOST_KEPT", kept)
        scored = added_scores.questions_by_rules(questions)
        assert added_scores.has_many_sums(questions, scored, counts) == has_many


def test_columns_of_equal_rows_are_held_once() -> None:
    """Of very many questions, most columns have one value: the questions of a log are in memory until its end."""
    facts = unlike("ada")
    (_, scored), *_ = added_scores.questions_by_rules(facts)
    for kept in (vars(scored).values(), status(facts)):
        columns = [each for each in kept if isinstance(each, np.ndarray)]
        held_once = [column.strides[0] == 0 for column in columns]
        assert held_once == [bool((column == column[:1]).all()) for column in columns]
        assert {*held_once} == {True, False}


@pytest.mark.parametrize(
    ("module", "name", "fails"),
    [
        (score_sums, "wide_quotient_sums", lambda _: True),  # in all parts
        (score_sums, "wide_quotient_sums", lambda count: count > 4),  # after some parts had bounds
        (score_sums, "wide_quotient_sums", lambda count: count == 3),  # in one part, whose sums get bounds later
        (added_scores, "joined_bounds", lambda count: count == 3),  # where parts are added up, before others are
    ],
)
def test_sums_that_are_too_large_for_bounds_are_computed_again(
    module: ModuleType, name: str, fails: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every table is the same, whenever the first one of them is found."""
    facts, counts, failed = unlike("ada", "bo"), iter(range(1, 1000)), list[int]()
    expected, whole = summarize_tables(facts), getattr(module, name)

    def overflow(*arguments: Any) -> Any:
        if fails(count := next(counts)):
            failed.append(count)
            raise OverflowError
        return whole(*arguments)

    monkeypatch.setattr(module, name, overflow)
    monkeypatch.setattr(score_sums, "FEW", 2)
    monkeypatch.setattr(added_scores, "MOST_WAITING", 0)
    cached = in_parts(facts, divided(facts, Random(3), 4), Random(4), bounded=True)
    assert summarize_tables(replace(facts, held=NONE), cached) == expected
    assert failed


def test_the_varied_stories_have_what_any_story_has() -> None:
    """Every type of event and every kind of question."""

    def met(stories: list[str]) -> set[Any]:
        events_of = [each.event for story in stories for each in recorded(story)]
        return {type(event) for event in events_of} | {getattr(event, "kind", None) for event in events_of}

    assert met(VARIED) == met(STORIES)


@pytest.mark.parametrize("story", VARIED)
def test_every_table_of_every_story_is_made_of_its_parts(story: str) -> None:
    """Changed outcomes, sealed boards, attestations, markets, trades; also if all sums of scores have bounds."""
    facts = oracle.facts_in(recorded(story))
    check(facts, Random(story), 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_sums, "FEW", 0)
        check(facts, Random(story), 3, bounded=True)


@pytest.mark.parametrize("table", BUILT)
def test_a_table_alone_is_made_of_what_it_needs(table: str) -> None:
    """Without any forecast, and without what other tables need: this holds for each table of a replay."""
    facts = oracle.facts_in(recorded("metaculus-2022"))
    cached = in_parts(facts, divided(facts, Random(1), 2), Random(2), (table,))
    found = summarize_tables(replace(facts, held=NONE), cached, [table])
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


def test_an_answer_that_was_revoked_settles_nothing() -> None:
    """Nor after it was pickled; one that came back does."""
    revoked: list[AnyCommand] = [resolution(), revocation()]
    for said, settled in ((revoked, []), ([*revoked, resolution()], [0])):
        here = FactsByQuestion(oracle.facts_in(oracle.history(opened(), *said))).on([0])
        assert [*here.settled] == [*pickled(here).settled] == settled
        assert len(pickled(here).settlements) == len(said)


def test_no_part_makes_empty_tables() -> None:
    """A log without questions."""
    assert summarize_tables(Facts(), finish(Facts(), [], needed(BUILT), list)) == summarize_tables(Facts())
