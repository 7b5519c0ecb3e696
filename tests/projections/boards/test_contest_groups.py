"""Contests of one rule set are scored together: the same numbers as one by one, and work as of one."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings

from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.boards import contest_groups
from forecast_ledger.projections.boards.contest_groups import contests_by_rules
from forecast_ledger.projections.boards.totals import NO_SCORES, Tally
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.incremental.refresh import IncrementalTables
from forecast_ledger.projections.scores import time_weighted
from tests.projections.boards.test_brier_sample import seasons
from tests.projections.incremental.test_refresh import RefreshedTables, assert_equal_a_rebuild, refresh
from tests.support import oracle
from tests.support.given import (
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


@settings(max_examples=60, deadline=None)
@given(seasons())
def test_together_is_one_by_one(recorded: list[Recorded]) -> None:
    """Over logs in which contests share questions, differ in their members, and some are sealed."""
    facts = oracle.told(recorded)
    every = Projections(facts)
    every.tally_all()
    every.aggregate_all()
    every.calibrate_all()
    for name in every.contests:
        alone = Projections(facts)
        assert every.cached.tallies[name] == alone.tally(name)
        assert every.cached.aggregates[name] == alone.aggregates(name)
        assert every.cached.calibration[name] == alone.calibration(name)
    for each in every.scored_groups:
        for number, name in enumerate(each.names):
            questions, rows = each.of(number)
            own_questions, own_rows = Projections(facts).scored(name)
            assert questions.code.tolist() == own_questions.code.tolist()
            assert [column.tolist() for column in rows if not isinstance(column, tuple)] == [
                column.tolist() for column in own_rows if not isinstance(column, tuple)
            ]
            assert rows.numerator.integers() == own_rows.numerator.integers()


def test_contests_sealed_at_different_positions_keep_their_answers() -> None:
    """What was revoked and closed since is as it was to whoever had sealed a board before; by hand."""
    asked: list[Any] = [opened("rain"), *(contest(name) for name in NAMES), *(entry(name, "rain") for name in NAMES)]
    asked += [forecast("rain", "ada", probability="0.8"), forecast("rain", "bob", probability="0.5")]
    asked += [resolution("rain"), finalization("one")]
    asked += [revocation("rain"), finalization("two"), resolution("rain", outcome="no"), finalization("three")]
    found = oracle.projected(*asked)
    outcomes = [found.scored(name).questions.outcome.tolist() for name in NAMES]
    assert outcomes == [[0], [], [1], [1]]
    found.tally_all()
    assert [len(found.cached.tallies[name].own) for name in NAMES] == [2, 0, 2, 2]
    assert found.cached.tallies["two"] == Tally({}, NO_SCORES)


def test_members_are_each_contests_own() -> None:
    """Who is scored only in one contest counts among the peers of another."""
    asked: list[Any] = [opened("rain"), *(contest(name, rules="peer-2024-03") for name in NAMES[:2])]
    asked += [*(entry(name, "rain") for name in NAMES[:2]), enrolment("one", "bot"), enrolment("two", "bot", bot=True)]
    asked += [forecast("rain", who, probability=p) for who, p in (("ada", "0.8"), ("bob", "0.5"), ("bot", "0.1"))]
    asked += [resolution("rain"), exclusion("two", "bob", level="hidden")]
    found = oracle.projected(*asked)
    rows = {(row["contest"], row["participant"]): row["score"] for row in found.table("scores").rows()}
    alone = {
        (name, row["participant"]): row["score"]
        for name in NAMES[:2]
        for row in oracle.projected(*(each for each in asked if getattr(each, "contest", name) == name))
        .table("scores")
        .rows()
    }
    assert rows == alone
    assert rows["one", "ada"] != rows["two", "ada"]


def test_a_hundred_contests_are_scored_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table that follows from scores is built with one call of what scores, a rule set."""
    calls, real = list[int](), time_weighted.scores

    def counting(*arguments: Any) -> Any:
        calls.append(len(arguments[1]))
        return real(*arguments)

    asked: list[Any] = []
    for number in range(100):
        asked += [opened(f"q{number}"), contest(f"c{number}", rules="baseline" if number % 4 else "peer-2024-03")]
        asked += [entry(f"c{number}", f"q{number}"), forecast(f"q{number}", probability="0.6")]
        asked += [resolution(f"q{number}")]
    found = oracle.projected(*asked)
    monkeypatch.setattr(time_weighted, "scores", counting)
    for name in ("scores", "leaderboard", "kind_means", "prizes", "score_parts"):
        found.table(name)
    assert sorted(calls) == [25, 75]
    assert [len(names) for names in contests_by_rules(found.facts, found.contests)] in ([25, 75], [75, 25])


def test_closing_early_counts_from_when_it_was_recorded() -> None:
    """A board that was sealed before goes by the scheduled close."""
    asked: list[Any] = [opened("rain"), *(contest(name, rules="baseline") for name in NAMES[:2])]
    asked += [*(entry(name, "rain") for name in NAMES[:2]), forecast("rain", "ada", probability="0.8")]
    asked += [finalization("one"), closing("rain", at=day(12)), resolution("rain")]
    found = oracle.projected(*asked)
    assert [len(found.scored(name).questions.code) for name in NAMES[:2]] == [0, 1]


def _many_contests(questions: int) -> list[Any]:
    """Ten contests of as many questions each, with two forecasts on each question."""
    asked: list[Any] = []
    for c in range(10):
        asked.append(contest(f"c{c}", rules="baseline" if c % 2 else "peer-2024-03"))
        for q in (f"q{c}.{number}" for number in range(questions)):
            asked += [opened(q), entry(f"c{c}", q)]
            asked += [forecast(q, "ada", probability="0.6"), forecast(q, f"bob{c}", probability="0.3")]
    return asked


@pytest.mark.parametrize("questions", [1, 5])
def test_contests_that_change_together_are_scored_together(questions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one question each, of which all change, or with five, of which one does: as many calls as rule sets."""
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


def test_a_resolution_concerns_who_forecast_on_the_question_alone() -> None:
    """In Brier scores over all contests, too, whether its contest has other questions or not."""
    asked = [*_many_contests(1), *(resolution(f"q{c}.0") for c in range(9))]
    recorded = oracle.history(*asked, resolution("q9.0"))
    grows, rows = IncrementalTables(), RefreshedTables()
    grows.add(recorded[:-2])
    refresh(grows, rows)
    grows.add(recorded[-2:])
    [keys] = [each.keys for each in refresh(grows, rows) if each.table.name == "brier_overall"]
    assert keys == [("[consensus]",), ("ada",), ("bob8",), ("bob9",)]
    assert_equal_a_rebuild(rows, recorded)
