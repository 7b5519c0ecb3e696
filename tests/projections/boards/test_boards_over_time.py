"""The board after each answer is the board of a log without the later answers."""

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand, ResolveQuestion
from forecast_ledger.projections.boards import estimates, leaderboard
from forecast_ledger.projections.boards.contest_groups import standings_over_time, tallies_over_time
from forecast_ledger.projections.boards.score_sums import Rated, sums_by_owner
from forecast_ledger.projections.core.wide_int import WideInt
from tests.projections.studies.test_intervals import RULES, season
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import AFTER, annulment, finalization, resolution, revocation

COLUMNS = ("rank", "participant", "score", "coverage")


def told(rules: str, seed: int) -> tuple[list[AnyCommand], list[ResolveQuestion]]:
    """Return a season without its answers, and the answers in another order than that of the questions."""
    commands = season(structs.replace(RULES[rules], least_questions=2), seed)
    answers = [command for command in commands if isinstance(command, ResolveQuestion)]
    Random(seed).shuffle(answers)
    return [command for command in commands if command not in answers], answers


def board_of(commands: list[AnyCommand]) -> list[tuple[Any, ...]]:
    """Return the leaderboard."""
    return [tuple(row[name] for name in COLUMNS) for row in oracle.projected(*commands).table("leaderboard").rows()]


def over_time(commands: list[AnyCommand]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the board after each answer, by question, in their order; each has the right number."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in oracle.projected(*commands).table("score_over_time").rows():
        found.setdefault(row["question"], []).append(tuple(row[name] for name in COLUMNS))
        assert row["answered"] >= len(found)
    return found


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", range(times(2)))
def test_a_board_is_that_of_a_log_without_later_answers(rules: str, seed: int) -> None:
    """To the last digit, with ranks, exclusions and the least number of forecasts, by every kind of total."""
    story, answers = told(rules, seed)
    found, expected = over_time([*story, *answers]), dict[str, list[tuple[Any, ...]]]()
    weightless = {row["question"] for row in oracle.projected(*story).table("questions").rows()} - found.keys()
    for number, answer in enumerate(answers, start=1):
        if answer.question not in weightless and (board := board_of([*story, *answers[:number]])):
            expected[answer.question] = board
    assert found == expected
    assert [*found] == [*expected]  # in the order of the answers
    assert len(found) > 2


def test_the_answer_that_counts_is_the_one_that_was_not_revoked() -> None:
    """A question that is answered again comes where its last answer is; one that is annulled is not there."""
    story, answers = told("mean", 0)
    first, second, third, *others = answers
    again: ResolveQuestion = resolution(
        first.question, **{"outcome": first.outcome} if first.outcome else {"value": first.value}
    )
    changes: list[AnyCommand] = [revocation(first.question), annulment(third.question)]
    commands: list[AnyCommand] = [*story, first, second, *changes, *others, again, finalization(at=AFTER)]
    assert [*over_time(commands)] == [
        name for name in over_time([*story, second, *others, again]) if name != third.question
    ]
    assert over_time(commands)[first.question] == board_of(commands)


@pytest.mark.parametrize("size", [2, 3, 100])
def test_the_board_can_be_looked_at_after_some_answers_at_a_time(size: int) -> None:
    """After every `size` of them, and after the last, as if each had been added by itself."""
    story, answers = told("mean", 0)
    analysis = oracle.projected(*story, *answers)
    [name] = analysis.contests
    scored, contest = analysis.scored(name), analysis.facts.contests[name]
    each = [*tallies_over_time(analysis.facts, contest, scored)]
    assert len(each) % 2
    assert len(each) % 3
    assert [*tallies_over_time(analysis.facts, contest, scored, size)] == [*each[size - 1 : -1 : size], each[-1]]


@pytest.mark.parametrize("rules", RULES)
def test_standings_over_time_are_those_of_the_tallies(rules: str) -> None:
    """Exactly, whether floats are added up or fractions: numbers, ranks and order of all boards at once."""
    story, answers = told(rules, 1)
    analysis = oracle.projected(*story, *answers)
    [name] = analysis.contests
    facts, contest, scored = analysis.facts, analysis.facts.contests[name], analysis.scored(name)
    for size in (1, 3):
        tallies = [tally for _, tally in tallies_over_time(facts, contest, scored, size)]
        boards = leaderboard.boards(facts, standings_over_time(facts, contest, scored, size))
        each = [leaderboard.standings_of(facts, [name], [contest], [tally]) for tally in tallies]
        assert [boards.rows_of(number) for number in range(len(tallies))] == [
            leaderboard.boards(facts, standings).rows_of(0) for standings in each
        ]


def test_exact_sums_over_time_add_each_score_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all places of 4 people on 30 boards, some without a new score; then up to the last one that is asked for."""
    people, boards, random = 4, 30, Random(1)
    owners = sorted(random.randrange(people * boards) for _ in range(300))
    numbers, rate_of = ([random.randrange(limit) for _ in owners] for limit in (1000, 3))
    rates = [(1, 3), (2, 7), (5, 11)]
    asked = list[int]()

    def counted(count: int, owner: Any, *others: Any) -> list[Fraction]:
        asked.append(len(owner))
        return sums_by_owner(count, owner, *others)

    monkeypatch.setattr(estimates, "sums_by_owner", counted)
    columns = [Rated(WideInt.from_integers(numbers), rates)]
    sums = estimates.running_sums(np.array(owners), boards, np.array(rate_of), columns)

    def expected(place: int) -> Fraction:
        terms = zip(owners, numbers, rate_of, strict=True)
        up_to = range(place - place % boards, place + 1)
        return sum((number * Fraction(*rates[rate]) for owner, number, rate in terms if owner in up_to), Fraction(0))

    every = [*range(people * boards)]
    random.shuffle(every)
    assert sums.exact(np.array(every)) == [expected(place) for place in every]
    some = [boards + 9, 3 * boards, boards + 4]
    assert sums.exact(np.array(some)) == [expected(place) for place in some]
    assert asked == [300, sum(boards <= owner < boards + 10 or owner == 3 * boards for owner in owners)]
