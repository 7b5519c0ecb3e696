"""A board, as its questions become one after another what they were before, is that of a log that ends there."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.model.commands import AddQuestion, OpenQuestion
from forecast_ledger.projections.boards import leaderboard
from forecast_ledger.projections.boards.leaderboard import BoardRow
from forecast_ledger.projections.boards.owner_sums import BoardSums, adds_in_floats
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.tables.catalogue import Projections
from tests.projections.boards.test_boards_over_time import told
from tests.projections.studies.test_intervals import RULES
from tests.support import oracle
from tests.support.given import day


def scored_on(every: Projections, name: str, codes: list[int]) -> ContestScores:
    """Return the scores on some questions of a contest."""
    contest = every.facts.contests[name]
    some = replace(contest, entries={code: contest.entries[code] for code in codes})
    return Projections(replace(every.facts, contests={name: some})).scored(name)


def boards_between(first: Projections, last: Projections, codes: list[int]) -> list[list[BoardRow]]:
    """Return the boards while questions become what they are in the last one, the first of all before that."""
    [name] = first.contests
    facts, rules = first.facts, first.facts.contests[name].opened.rules
    sums, both = (
        BoardSums.of(facts, rules, first.scored(name)),
        [scored_on(each, name, codes) for each in (first, last)],
    )
    each = [sums, *sums.replaced(facts, rules, codes, (both[0], both[1]))]
    again = [*each[-1].replaced(facts, rules, codes[::-1], (both[1], both[0]))]  # and back
    boards = [leaderboard.boards(facts, moved.standings(facts, name)).rows_of(0) for moved in (*each, *again)]
    assert boards[len(codes) + 1 :] == boards[len(codes) - 1 :: -1][: len(codes)]
    return boards[: len(codes) + 1]


@pytest.mark.parametrize("rules", [name for name, rules in RULES.items() if adds_in_floats(rules)])
@pytest.mark.parametrize("left", [0, 2])
def test_a_board_with_fewer_answers_is_that_of_a_log_without_them(rules: str, left: int) -> None:
    """To the last digit, with every row: answers are taken away, the last first, and come back in their order.

    The first days of each question are hidden, so that coverage weighs them otherwise than the others.
    """
    story, answers = told(rules, 1)
    hidden: dict[type, dict[str, Any]] = {
        OpenQuestion: {"reveals_at": day(12, 7)},
        AddQuestion: {"hidden_coverage_weight": "0.7"},
    }
    story = [structs.replace(each, **hidden.get(type(each), {})) for each in story]
    logs = [oracle.projected(*story, *answers[:count]) for count in range(left, len(answers) + 1)]
    [name], codes = logs[-1].contests, logs[-1].facts.question_codes.codes
    taken = [codes[answer.question] for answer in answers[left:]]
    entered = [code for code in taken[::-1] if code in logs[-1].facts.contests[name].entries]
    boards = boards_between(logs[-1], logs[0], entered)
    expected = [log.board(name) for log in logs[::-1]]
    assert [board for number, board in enumerate(expected) if not number or taken[-number] in entered] == boards
    assert len({*map(str, boards)}) > 3
