"""Conditions on cells: what each of them asks, and rows divided among commands by them."""

import io
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import ResolveQuestion
from forecast_ledger.replay.mapping.csv_mapping import NOTHING, MappedCommands, parse_map
from tests.support.maps import read_rows

MAP = """
[[command]]
type = "resolve_question"
id = "value {{q}}"
where = {{ {value} }}
[command.fields]
at = "2026-03-02T00:00:00Z"
question = "{{q}}"
value = "{{answer}}"

[[command]]
type = "resolve_question"
id = "end {{q}}"
where = {{ {outcome} }}
[command.fields]
at = "2026-03-02T00:00:00Z"
question = "{{q}}"
outcome = "{{answer}}"
"""
ROWS = b"q,answer\na,12.5\nb,below_lower_bound\nc,\nd,NULL\ne,-3\n"
NEVER = 'q = { not = ["a", "b", "c", "d", "e"] }'


def rows(value: str, outcome: str = NEVER, table: bytes = ROWS, map_: str = MAP) -> MappedCommands:
    """The commands of a table of answers, by a map with these conditions."""
    return read_rows(parse_map(map_.format(value=value, outcome=outcome).encode()), io.BytesIO(table))


@pytest.mark.parametrize(
    ("where", "taken"),
    [
        ('answer = "12.5"', "a"),
        ('answer = ["12.5", ""]', "ac"),
        ('answer = { not = "" }', "abde"),
        ('answer = { not = ["", "below_lower_bound"] }', "ade"),
        ('answer = { not = ["", "below_lower_bound", "NULL"] }', "ae"),
        ('answer = { not = ["null"] }', "abcde"),
        ("answer = { not = [] }", "abcde"),
        ("answer = { empty = true }", "c"),
        ("answer = { empty = false }", "abde"),
        (r"answer = { matches = '-?\d+' }", "e"),
        (r"answer = { matches = '-?\d+(\.\d+)?' }", "ae"),
        ("answer = { matches = '' }", "c"),
        ("answer = { matches = '.*', not = ['-3', 'NULL'], empty = false }", "ab"),
        ("answer = { empty = false }, q = { matches = '[a-c]' }", "ab"),
        ('"#" = { matches = "[45]" }', "de"),
    ],
)
def test_a_condition_takes_the_rows_that_it_describes(where: str, taken: str) -> None:
    """Texts allowed, texts forbidden, empty or not, a pattern; NULL is a text like others; all that is given holds."""
    of_any_cell = MAP.replace("resolve_question", "annul_question").replace('value = "{{answer}}"', 'reason = "why"')
    of_any_cell = of_any_cell.replace('outcome = "{{answer}}"', 'reason = "why"')
    assert [getattr(said, "question", said) for _, said in rows(where, map_=of_any_cell).commands] == [*taken]


def test_a_row_without_an_answer_gives_none() -> None:
    """It is counted, or refused if no row may be without a command; a text that `where` asks for is no exception."""
    found = rows('answer = ["12.5", "", "NULL"]')
    assert [getattr(said, "question", said) for _, said in found.commands] == ["a"]
    assert found.left_out.words("line") == (
        "the map makes no command of 4 rows, which fail `where`, `present` or `above` of every command, or have no "
        "forecast or answer: line 3, 4, 5, 6"
    )
    description = parse_map(MAP.format(value="q = 'c'", outcome=NEVER).encode())
    [*_, (_, refused), _, _] = read_rows(description, io.BytesIO(ROWS), strict=True).commands
    assert isinstance(refused, Refused)
    assert (refused.code, refused.detail) == ("no_command", NOTHING)


def test_a_column_of_numbers_and_of_words_is_divided_between_two_commands() -> None:
    """No row is refused, each answer is of one kind, and the row without an answer is the one that is counted."""
    found = rows('answer = { not = ["", "NULL", "below_lower_bound"] }', 'answer = "below_lower_bound"')
    said: dict[str, Any] = {
        command.id: command for _, command in found.commands if isinstance(command, ResolveQuestion)
    }
    assert {name: (each.value, each.outcome) for name, each in said.items()} == {
        "value a": ("12.5", None),
        "end b": (None, "below_lower_bound"),
        "value e": ("-3", None),
    }
    assert (found.left_out.rows, found.left_out.first) == (2, [4, 5])


@pytest.mark.parametrize(
    ("where", "field", "says"),
    [
        ("answer = {}", "command[0].where.answer", "a condition has `not`, `empty` or `matches`"),
        ("answer = { is = '' }", "command[0].where.answer", "unknown field `is`"),
        ("answer = { empty = 'no' }", "command[0].where.answer.empty", "Expected `bool"),
        ("answer = 7", "command[0].where.answer", "Expected"),
        ("answer = { matches = '(' }", "command[0].where.answer.matches", "no regular expression"),
        ("answer = { matches = '(a+)+' }", "command[0].where.answer.matches", "ways to try it"),
    ],
)
def test_a_condition_that_says_nothing_clear_is_a_fault_of_the_map(where: str, field: str, says: str) -> None:
    """It is refused before a row is read."""
    with pytest.raises(Refused) as refused:
        rows(where)
    assert (refused.value.code, refused.value.field) == ("bad_map", field)
    assert says in refused.value.detail


def test_a_cell_too_long_for_a_pattern_is_refused_in_its_row_alone() -> None:
    """The refusal names the column; the next row is read."""
    found = rows("answer = { matches = '.*' }", table=b"q,answer\na," + b"x" * 1_001 + b"\nb,1\n")
    (place, refused), (_, good) = found.commands
    assert isinstance(refused, Refused)
    assert (place.line, refused.code, place.columns) == (2, "bad_csv", {"answer": ["answer"]})
    assert isinstance(good, ResolveQuestion)
