"""The table of questions: what was asked, by which schedule, in which state."""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model.commands import AddQuestion, AnyCommand, OpenQuestion
from forecast_ledger.ledger.model.events import QuestionAdded
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    AFTER,
    CLOSES,
    OPENS,
    annulment,
    choices,
    closing,
    contest,
    day,
    entry,
    exclusion,
    finalization,
    forecast,
    numeric,
    opened,
    resolution,
    revocation,
)
from tests.support.seasons import Season, drawn_rules


def rows(*asked: AnyCommand) -> dict[str, dict[str, Any]]:
    """The rows of the table, by question."""
    return {row["question"]: row for row in oracle.projected(*asked).table("questions").rows()}


def test_a_question_says_whether_its_outcomes_have_an_order() -> None:
    """Yes or no as it was opened; nothing if it does not say."""
    asked = [choices(str(said), ordered=said) for said in (True, False, None)]
    assert {name: row["ordered"] for name, row in rows(*asked).items()} == {"True": "yes", "False": "no", "None": ""}


def test_a_question_has_a_row_with_all_that_it_was_opened_with() -> None:
    """Details that were not given are empty; lists are JSON, so that a comma in a tag stays one."""
    details: dict[str, Any] = {
        "group": "west",
        "category": "weather",
        "tags": ("wet", "a, b", 'c "d"'),
        "url": "https://e.org/1",
    }
    asked = opened(title="Will it rain?", reveals_at=day(12), source="gauge", **details)
    common = {"opens_at": OPENS, "closes_at": CLOSES, "closed_at": CLOSES, "state": "unresolved"}
    assert rows(asked, numeric()) == {
        "depth": {
            **common,
            **dict.fromkeys(["title", "ordered", "group", "category", "url", "source"], ""),
            "question": "depth",
            "kind": "numeric",
            "outcomes": "[]",
            "reveals_at": None,
            "log_position": 2,
            "outcome": None,
            "value": None,
            "tags": "[]",
        },
        "rain": {
            **common,
            **details,
            "question": "rain",
            "kind": "binary",
            "title": "Will it rain?",
            "outcomes": '["yes", "no"]',
            "ordered": "",
            "reveals_at": day(12),
            "log_position": 1,
            "outcome": None,
            "value": None,
            "tags": '["wet", "a, b", "c \\"d\\""]',
            "source": "gauge",
        },
    }


def test_a_question_shows_its_state_and_its_answer() -> None:
    """An early close, an answer, an annulment, and an answer that was revoked."""
    asked = [opened(), choices(), numeric(), opened("snow")]
    told = rows(
        *asked,
        closing(),
        resolution(),
        resolution("colour", outcome="blue"),
        resolution("depth", value="1.5"),
        annulment("snow"),
        revocation("colour", at=AFTER),
    )
    columns = ("closed_at", "state", "outcome", "value")
    assert {name: tuple(row[column] for column in columns) for name, row in told.items()} == {
        "rain": (day(15), "resolved", "yes", None),
        "colour": (CLOSES, "unresolved", None, None),
        "depth": (CLOSES, "resolved", "2", "1.5"),
        "snow": (CLOSES, "annulled", None, None),
    }


BRIER = RuleSet(name="brier", kernel="brier", period="covered", total="mean")
EAST: dict[str, Any] = {"group": "east", "category": "weather"}


def boards(*asked: AnyCommand) -> list[tuple[Any, ...]]:
    """Board, rank, participant, score and completion, in the order of the table."""
    columns = ("contest", "by", "name", "rank", "participant", "score", "completion")
    table = oracle.projected(*asked).table("leaderboard_by_group")
    return [tuple(row[column] for column in columns) for row in table.rows()]


def grouped_story() -> list[AnyCommand]:
    """Two questions in the west, one in the east, one in no group; a later contest has the east alone."""
    west: dict[str, Any] = {"group": "west", "category": "weather"}
    asked: list[AnyCommand] = [opened("a", **west), opened("b", group="west"), opened("c", **EAST), opened("d")]
    asked += [contest(rules=BRIER), contest("later", rules=BRIER), entry("later", "c")]
    for name, chance in (("a", "0.7"), ("b", "0.9"), ("c", "0.5"), ("d", "0.2")):
        asked += [entry(question=name), forecast(name, at=OPENS, probability=chance)]
    asked.append(forecast("c", "bob", at=OPENS, probability="0.6"))
    return [*asked, *map(resolution, "abcd")]


def test_a_board_by_group_counts_only_the_questions_of_the_group() -> None:
    """West: the mean of 0.3² and 0.1² is 0.05. East: 0.5² = 0.25, and 0.4² = 0.16 is better. Weather: a and c, of which
    Ada's mean is (0.09 + 0.25) / 2 = 0.17. Question d has neither group nor category, and counts on no such board.
    """
    expected = [
        ("cup", "category", "weather", 1, "bob", "0.160000000", "1/2"),
        ("cup", "category", "weather", 2, "ada", "0.170000000", "2/2"),
        ("cup", "group", "east", 1, "bob", "0.160000000", "1/1"),
        ("cup", "group", "east", 2, "ada", "0.250000000", "1/1"),
        ("cup", "group", "west", 1, "ada", "0.050000000", "2/2"),
        ("later", "category", "weather", 1, "bob", "0.160000000", "1/1"),
        ("later", "category", "weather", 2, "ada", "0.250000000", "1/1"),
        ("later", "group", "east", 1, "bob", "0.160000000", "1/1"),
        ("later", "group", "east", 2, "ada", "0.250000000", "1/1"),
    ]
    assert boards(*grouped_story()) == expected


def test_a_board_of_one_group_with_all_questions_is_the_board_of_the_contest() -> None:
    """Exclusions and the seal of the contest hold on the boards by group too."""
    asked: list[AnyCommand] = [
        opened("a", **EAST),
        opened("b", **EAST),
        contest(rules=BRIER),
        contest("none", rules=BRIER),
    ]
    for name in ("a", "b"):
        asked += [entry(question=name), *[forecast(name, who, at=OPENS) for who in ("ada", "bob", "cy")]]
    asked += [
        exclusion(participant="bob", level="hidden"),
        exclusion(participant="cy", level="no_rank"),
        resolution("a"),
    ]
    projections = oracle.projected(*asked, finalization(), resolution("b"))
    whole = {row["participant"]: row for row in projections.table("leaderboard").rows()}
    rows = list(projections.table("leaderboard_by_group").rows())
    assert [(row["by"], row["name"]) for row in rows] == [("category", "weather")] * 2 + [("group", "east")] * 2
    assert {row["participant"] for row in rows} == {"ada", "cy"} == whole.keys()
    for row in rows:
        columns = ("rank", "score", "coverage", "attainable", "completion", "excluded")
        assert [row[column] for column in columns] == [whole[row["participant"]][column] for column in columns]


@settings(max_examples=times(6), deadline=None)
@given(st.integers(0, 2**64).map(Random))
def test_a_board_by_group_is_that_of_a_contest_with_only_these_questions(random: Random) -> None:
    """In any season under any rules, each board by group equals the board of such a contest, to the digit."""
    season = Season(random, drawn_rules(random))
    groups = {each.question: random.choice([None, "x", "y"]) for each in season.questions}
    asked = [
        structs.replace(each, group=groups[each.question]) if isinstance(each, OpenQuestion) else each
        for each in season.commands
    ]
    recorded, _ = oracle.attempted(asked)
    for group in ("x", "y"):
        only = [each for each in asked if not isinstance(each, AddQuestion) or groups[each.question] == group]
        expected = list(Projections(oracle.facts_in(oracle.attempted(only)[0])).table("leaderboard").rows())
        rows = list(Projections(oracle.facts_in(recorded)).table("leaderboard_by_group").rows())
        found = [row for row in rows if row["name"] == group]
        columns = ("rank", "participant", "score", "coverage", "attainable", "completion", "excluded")
        alone = any(groups[each.question] == group for each in recorded_entries(recorded))
        assert [[row[c] for c in columns] for row in found] == [[row[c] for c in columns] for row in expected if alone]


def recorded_entries(recorded: list[Recorded]) -> list[QuestionAdded]:
    """The entries that a log has."""
    return [each.event for each in recorded if isinstance(each.event, QuestionAdded)]
