"""Contests with the same rule set are scored together: the numbers are those of single contests, for less work."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings

from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.boards import contest_groups
from forecast_ledger.projections.boards.contest_groups import contests_by_rules
from forecast_ledger.projections.boards.totals import NO_SCORES, Tally
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.incremental.refresh import IncrementalTables
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.tables import analysis
from forecast_ledger.projections.tables.catalogue import Projections
from tests.projections.boards.test_brier_sample import seasons
from tests.projections.incremental.test_refresh import RefreshedTables, assert_equal_a_rebuild, refresh
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    asked,
    closing,
    contest,
    day,
    enrolment,
    entry,
    exclusion,
    finalization,
    forecast,
    opened,
    resolution,
    revocation,
)

NAMES = ("one", "two", "three", "four")


@settings(max_examples=times(36), deadline=None)
@given(seasons())
def test_contests_scored_together_have_the_scores_of_single_contests(recorded: list[Recorded]) -> None:
    """Contests share questions, differ in their members, and some are sealed."""
    facts = oracle.facts_in(recorded)
    every = Projections(facts)
    every.score_all()
    for name in every.contests:
        alone = Projections(facts)
        assert every.tally(name) == alone.tally(name)
        only = Projections(replace(facts, contests={name: facts.contests[name]}))
        for table in ("brier", "calibration"):
            assert every.rows_of(table, name) == [*only.table(table)]
    for group in every.scored_groups:
        for number, name in enumerate(group.names):
            questions, rows = group.of(number)
            own_questions, own_rows = Projections(facts).scored(name)
            assert questions.code.tolist() == own_questions.code.tolist()
            assert [column.tolist() for column in rows if not isinstance(column, tuple)] == [
                column.tolist() for column in own_rows if not isinstance(column, tuple)
            ]
            assert rows.numerator.integers() == own_rows.numerator.integers()


def test_a_contest_that_was_scored_is_not_scored_again_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no other contest has its rule set; two that share one are scored together."""
    commands: list[Any] = [opened("rain"), contest("one", rules="baseline"), *(contest(name) for name in NAMES[1:3])]
    commands += [*(entry(name, "rain") for name in NAMES[:3]), forecast("rain", "ada", probability="0.8")]
    projections, scored = oracle.projected(*commands, resolution("rain")), list[list[str]]()
    score_group = contest_groups.score_group

    def noted(facts: Facts, names: list[str], chunk: int) -> contest_groups.ScoredGroup:
        scored.append(names)
        return score_group(facts, names, chunk)

    monkeypatch.setattr(analysis, "score_group", noted)
    projections.scored("one")
    projections.scored("two")
    assert len(projections.table("scores"))
    assert scored == [["one"], ["two"], ["three", "two"]]


def test_contests_sealed_at_different_positions_keep_their_answers() -> None:
    """A later revocation or closing does not change a sealed board; by hand."""
    commands: list[Any] = [opened("rain"), *(contest(name) for name in NAMES), *(entry(name, "rain") for name in NAMES)]
    commands += [forecast("rain", "ada", probability="0.8"), forecast("rain", "bob", probability="0.5")]
    commands += [resolution("rain"), finalization("one")]
    commands += [revocation("rain"), finalization("two"), resolution("rain", outcome="no"), finalization("three")]
    projections = oracle.projected(*commands)
    outcomes = [projections.scored(name).questions.outcome.tolist() for name in NAMES]
    assert outcomes == [[0], [], [1], [1]]
    projections.score_all()
    assert [len(projections.tally(name).by_code) for name in NAMES] == [2, 0, 2, 2]
    assert projections.tally("two") == Tally({}, NO_SCORES, {})


def test_contests_have_members_of_their_own() -> None:
    """A participant who is scored only in one contest is a peer in another."""
    commands: list[Any] = [opened("rain"), *(contest(name, rules="peer-2024-03") for name in NAMES[:2])]
    commands += [
        *(entry(name, "rain") for name in NAMES[:2]),
        enrolment("one", "bot"),
        enrolment("two", "bot", bot=True),
    ]
    commands += [forecast("rain", who, probability=p) for who, p in (("ada", "0.8"), ("bob", "0.5"), ("bot", "0.1"))]
    commands += [resolution("rain"), exclusion("two", "bob", level="hidden")]
    projections = oracle.projected(*commands)
    rows = {(row["contest"], row["participant"]): row["score"] for row in projections.table("scores").rows()}
    alone = {
        (name, row["participant"]): row["score"]
        for name in NAMES[:2]
        for row in oracle.projected(*(command for command in commands if getattr(command, "contest", name) == name))
        .table("scores")
        .rows()
    }
    assert rows == alone
    assert rows["one", "ada"] != rows["two", "ada"]


def test_a_hundred_contests_are_scored_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables that depend on scores are built with one scoring call for each rule set."""
    calls, real = list[int](), time_weighted.scores

    def counting(*arguments: Any) -> Any:
        calls.append(len(arguments[1]))
        return real(*arguments)

    commands: list[Any] = []
    for number in range(100):
        commands.append(contest(f"c{number}", rules="baseline" if number % 4 else "peer-2024-03"))
        commands += asked(f"q{number}", {"ada": "0.6"}, under=f"c{number}")
    projections = oracle.projected(*commands)
    monkeypatch.setattr(time_weighted, "scores", counting)
    for name in ("scores", "leaderboard", "kind_means", "prizes", "score_parts"):
        projections.table(name)
    assert sorted(calls) == [25, 75]
    assert [len(names) for names in contests_by_rules(projections.facts, projections.contests)] in ([25, 75], [75, 25])


def _one_of_many(number: int) -> list[Any]:
    """Return a contest that differs from others with the same rule set in one thing at most, which the number says."""
    name = f"c{number:02}"
    spot = {"spot_at": day(15)} if number % 7 == 3 else {}
    commands: list[Any] = [contest(name, rules="peer-2024-03", pool=number)]
    commands += [entry(name, "rain"), entry(name, "snow", weight="0.5" if number % 7 == 1 else "1", **spot)]
    commands += [entry(name, "hail")] * (number % 7 == 2)
    commands += [enrolment(name, "bot", bot=number % 7 == 4), exclusion(name, "bob", level="no_prize")]
    return commands


def test_contests_that_are_alike_are_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contests are alike but for the prize pool; others differ in a weight, a question, a spot, a member or a seal."""
    scored, real = list[list[str]](), time_weighted.scores

    def counting(facts: Any, contests: Any, *others: Any) -> Any:
        scored.append([each.opened.contest for each in contests])
        return real(facts, contests, *others)

    names = [f"c{number:02}" for number in range(14)]
    commands: list[Any] = [opened(name) for name in ("rain", "snow", "hail")]
    commands += [command for number in range(14) for command in _one_of_many(number)]
    for who, chance in (("ada", "0.8"), ("bob", "0.5"), ("bot", "0.1")):
        commands += [forecast(question, who, probability=chance) for question in ("rain", "snow", "hail")]
    commands += [resolution("rain"), resolution("snow", outcome="no"), finalization("c05"), finalization("c12")]
    commands += [resolution("hail")]
    together = oracle.projected(*commands)
    alone = {}
    for name in names:
        own = [command for command in commands if getattr(command, "contest", name) == name]
        alone[name] = oracle.projected(*own)
    monkeypatch.setattr(time_weighted, "scores", counting)
    for table in ("scores", "leaderboard", "prizes", "brier", "calibration", "score_parts"):
        rows = [*together.table(table).rows()]
        for name in names:
            assert [row for row in rows if row["contest"] == name] == [*alone[name].table(table).rows()], (table, name)
    assert scored[0] == ["c00", "c01", "c02", "c03", "c04", "c05", "c12"]
    assert len(scored) == 1 + len(names)


def test_closing_early_counts_from_when_it_was_recorded() -> None:
    """A board sealed before it goes by the scheduled close."""
    commands: list[Any] = [opened("rain"), *(contest(name, rules="baseline") for name in NAMES[:2])]
    commands += [*(entry(name, "rain") for name in NAMES[:2]), forecast("rain", "ada", probability="0.8")]
    commands += [finalization("one"), closing("rain", at=day(12)), resolution("rain")]
    projections = oracle.projected(*commands)
    assert [len(projections.scored(name).questions.code) for name in NAMES[:2]] == [0, 1]


def _many_contests(questions: int) -> list[Any]:
    """Return ten contests with this number of questions each, and two forecasts on each question."""
    commands: list[Any] = []
    for c in range(10):
        commands.append(contest(f"c{c}", rules="baseline" if c % 2 else "peer-2024-03"))
        for q in (f"q{c}.{number}" for number in range(questions)):
            commands += [opened(q), entry(f"c{c}", q)]
            commands += [forecast(q, "ada", probability="0.6"), forecast(q, f"bob{c}", probability="0.3")]
    return commands


@pytest.mark.parametrize("questions", [1, 5])
def test_contests_that_change_together_are_scored_together(questions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one question each, or with five of which one changes, there is one call for each rule set."""
    first = [*_many_contests(questions), *(resolution(f"q{c}.0") for c in range(10))]
    later: list[Any] = [revocation(f"q{c}.0") for c in range(10)]
    later += [resolution(f"q{c}.0", outcome="no") for c in range(10)]
    recorded = oracle.history(*first, *later)
    grows, rows = IncrementalTables(), RefreshedTables()
    end = len(recorded) - len(later)
    grows.add(recorded[:end])
    refresh(grows, rows)
    calls: list[str] = []

    def count(module: ModuleType, name: str) -> None:
        real = getattr(module, name)

        def counting(*given: Any) -> Any:
            calls.append(name)
            return real(*given)

        monkeypatch.setattr(module, name, counting)

    count(time_weighted, "scores")
    count(contest_groups, "sample_contests")
    grows.add(recorded[end:])
    refresh(grows, rows)
    monkeypatch.undo()
    assert len(calls) <= 2 * 2 * 2  # scores and judgements, before and after, of two rule sets
    assert_equal_a_rebuild(rows, recorded)


def test_a_resolution_concerns_only_participants_with_a_forecast_on_the_question() -> None:
    """It also holds for Brier scores over all contests, with or without other questions in the contest."""
    commands = [*_many_contests(1), *(resolution(f"q{c}.0") for c in range(9))]
    recorded = oracle.history(*commands, resolution("q9.0"))
    grows, rows = IncrementalTables(), RefreshedTables()
    grows.add(recorded[:-2])
    refresh(grows, rows)
    grows.add(recorded[-2:])
    [keys] = [update.keys for update in refresh(grows, rows) if update.table.name == "brier_overall"]
    assert keys == [("[consensus]",), ("ada",), ("bob8",), ("bob9",)]
    assert_equal_a_rebuild(rows, recorded)
