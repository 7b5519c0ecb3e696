"""Cells: a list without items, a part of a text, and numbers by a named rule."""

import io
import tomllib
from decimal import Decimal
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AmendQuestion, AnyCommand, OpenQuestion, Range, SubmitForecast
from forecast_ledger.replay.mapping.csv_cells import CellFormat, field_value
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from tests.support.maps import read_rows

QUESTION = """
[[command]]
type = "open_question"
id = "{q}"
[command.fields]
at = "2026-03-01T00:00:00Z"
question = "{q}"
kind = "{kind}"
opens_at = "2026-03-01T00:00:00Z"
closes_at = "2026-03-05T00:00:00Z"
outcomes = { from = "{options}", WAY }
tags = { from = "{tags}", split = "," }
range = { lower = "{low}", upper = "{high}", levels = { from = "{levels}", split = "," } }
"""
FORECAST = """
[[command]]
type = "submit_forecast"
id = "{q} {who}"
[command.fields]
at = "2026-03-01T00:00:00Z"
question = "{q}"
participant = "{who}"
probability = "{p}"
probabilities = { from = "{each}", json = true, names = NAMES }
cdf = { from = "{cdf}", split = "," }
"""


def made(said: str, **row: str) -> Any:
    """Return the value that a field of a map makes from a row."""
    return field_value(tomllib.loads(f"x = {said}")["x"], "x", CellFormat("")).read(row)


def read(map_: str, table: str) -> list[AnyCommand | Refused]:
    """The commands of a CSV."""
    return [said for _, said in read_rows(parse_map(map_.encode()), io.BytesIO(table.encode())).commands]


@pytest.mark.parametrize("way", ['split = ","', "json = true"])
@pytest.mark.parametrize("options", ["[]", "[ ]", ""])
def test_a_list_without_items_is_an_empty_cell_where_a_list_may_be_left_out(way: str, options: str) -> None:
    """So a question with two answers has no outcomes, a range has no levels, and no list is given as empty."""
    header = "q,kind,options,tags,low,high,levels\n"
    yes, depth = read(
        QUESTION.replace("WAY", way), f"{header}a,binary,{options},[],,,[]\nb,numeric,{options},,0,9,[]\n"
    )
    given: dict[str, Any] = {
        "at": "2026-03-01T00:00:00Z",
        "opens_at": "2026-03-01T00:00:00Z",
        "closes_at": "2026-03-05T00:00:00Z",
    }
    assert yes == OpenQuestion(id="a", question="a", kind="binary", **given)
    assert depth == OpenQuestion(id="b", question="b", kind="numeric", range=Range(lower="0", upper="9"), **given)


@pytest.mark.parametrize("names", ['["x", "y"]', '"{options}"'])
@pytest.mark.parametrize("options", ["", "[]", '"[""x"", ""y""]"'])
def test_values_by_name_without_items_are_left_out(names: str, options: str) -> None:
    """A forecast of one probability has a cell `[]` for those of the outcomes, whatever names the map knows."""
    table = f"q,who,p,each,cdf,options\na,ada,0.8,[],[],{options}\n"
    at = "2026-03-01T00:00:00Z"
    assert read(FORECAST.replace("NAMES", names), table) == [
        SubmitForecast(id="a ada", at=at, question="a", participant="ada", probability="0.8")
    ]


def test_a_question_is_amended_to_have_no_tags_by_a_list_without_items() -> None:
    """There, `[]` is not as if nothing was said: an empty cell leaves the tags, and an empty list takes them away."""
    map_ = '[[command]]\ntype = "amend_question"\nid = "{q}"\n[command.fields]\nat = "2026-03-01T00:00:00Z"\n'
    map_ += 'question = "{q}"\ntitle = "x"\ntags = { from = "{tags}", split = "," }\n'
    found = read(map_, "q,tags\na,[]\nb,\nc,[y]\n")
    assert [each.tags for each in found if isinstance(each, AmendQuestion)] == [(), None, ("y",)]


@pytest.mark.parametrize(
    ("said", "cell", "expected"),
    [
        (r"{from = '{a}', matches = '(Q\d+) .*'}", "Q08 - Will it rain?", "Q08"),
        (r"{from = '{a}', matches = '.*\((\w+)\)'}", "Will it (really) rain? (oslo)", "oslo"),
        (r"{from = 'no {a}', matches = '(?:no )?(Q\d+)'}", "Q08", "Q08"),
        (r"{from = '{a}', matches = 'Q\d+'}", "Q08", "Q08"),
        (r"{from = '{a}', matches = '(\d+).*', map = {7 = 'rain'}}", "7: rain", "rain"),
        (r"{from = '{a}', matches = 'p = (.+)', number = '1.234,5%'}", "p = 12,5%", "12.5e-2"),
        (r"{from = '{a}', matches = '\w+: (.*)', split = ';'}", "odds: 1; 2", ["1", "2"]),
        (r"{from = '{a}', matches = '(Q\d+)'}", "", None),
    ],
)
def test_a_field_is_the_part_of_a_cell_that_a_pattern_takes(said: str, cell: str, expected: Any) -> None:
    """The whole cell matches; its group, if there is one, is then read as a cell of this text would be."""
    assert made(said, a=cell) == expected


@pytest.mark.parametrize("cell", ["08 - Will it rain?", "Will Q08 rain?", "Q08", " - ", "Q08 " + "x" * 997])
def test_a_cell_that_a_pattern_does_not_match_is_refused(cell: str) -> None:
    """The pattern is anchored, a group must have a text, and a cell has at most 1,000 characters."""
    with pytest.raises(Refused) as refused:
        made(r"{from = '{a}', matches = '(Q\d+)? .*'}", a=cell)
    assert (refused.value.code, refused.value.field, refused.value.value) == ("bad_csv", "x", cell)


@pytest.mark.parametrize("pattern", ["(a)(b)", "(", "(a+)+", r"(a)\1"])
def test_a_pattern_of_a_field_that_says_nothing_clear_is_a_fault_of_the_map(pattern: str) -> None:
    """One group says which part it takes; the limits are those of `where`."""
    with pytest.raises(Refused) as refused:
        field_value({"from": "{a}", "matches": pattern}, "x", CellFormat(""))
    assert (refused.value.code, refused.value.field) == ("bad_map", "x.matches")


@pytest.mark.parametrize(
    ("said", "cell", "expected"),
    [
        ("{from = '{a}', percent = true}", "35", "0.35"),
        ("{from = '{a}', percent = true}", "35%", "0.35"),
        ("{from = '{a}', percent = true}", "35 %", "0.35"),
        ("{from = '{a}', percent = true}", "35\u00a0%", "0.35"),
        ("{from = '{a}', percent = true}", "0.35", "0.0035"),
        ("{from = '{a}', percent = true}", "100.0", "1"),
        ("{from = '{a}', percent = true, number = '1234,5'}", "62,5", "0.625"),
        ("{from = '{a}', percent = true, number = '1234,5%'}", "62,5", "0.625"),
        ("{from = '{a}', percent = true, number = '1.234,5'}", "1.062,5 %", "10.625"),
        ("{from = '{a}', percent = true, number = '1.234,5'}", ",5 %", "0.005"),
        ("{from = '{a}', number = '1234.5'}", ".8", "0.8"),
        ("{from = '{a}', number = '1234.5'}", "-.8", "-0.8"),
        ("{from = '{a}', number = '1234.5'}", "+8.", "8"),
        ("{from = '{a}', number = '1,234.5%'}", "8. %", "0.08"),
        ("{from = '{a}', percent = true, round = 2}", "62.5 %", "0.62"),
        ("{from = '{a}', percent = true, round = 2}", "63.5", "0.64"),
        ("{from = '{a}', round = 2}", "0.625", "0.62"),
        ("{from = '{a}', round = 2}", "0.62500000000000000001", "0.63"),
        ("{from = '{a}', round = 2}", "-0.635", "-0.64"),
        ("{from = '{a}', round = 0}", "2.5", "2"),
        ("{from = '{a}', round = 3}", "5e-4", "0"),
        ("{from = '{a}', round = 3}", "1e-999999999", "0"),
        ("{from = '{a}', round = 3}", "9" * 400 + ".0005", "9" * 400),
        ("{from = '{a}', round = 3}", "12", "12"),
        ("{from = '{a}', round = 1, number = '1.234,5'}", "1.234,25", "1234.2"),
        ("{from = '{a}', round = 3, number = '+150'}", "-200", "0.667"),
    ],
)
def test_numbers_are_in_percent_or_rounded_by_a_named_rule(said: str, cell: str, expected: str) -> None:
    """A hundredth of the number, with the sign or without; of two numbers equally near, the even one."""
    assert Decimal(made(said, a=cell)) == Decimal(expected)


def test_each_number_of_a_list_is_in_percent_and_rounded() -> None:
    """As a number alone is: 12.55 percent is 0.1255, or 0.126."""
    found = made("{from = '{a}', split = ';', percent = true, round = 3}", a="12.55; 80 %; 7")
    assert [*map(Decimal, found)] == [Decimal("0.126"), Decimal("0.8"), Decimal("0.07")]


@pytest.mark.parametrize(
    ("said", "cell"),
    [
        ("{from = '{a}', percent = true}", "35 percent"),
        ("{from = '{a}', percent = true}", "%"),
        ("{from = '{a}', percent = true}", "35,5"),
        ("{from = '{a}', number = '1234.5'}", "."),
        ("{from = '{a}', number = '1234.5'}", "+."),
        ("{from = '{a}', round = 2}", "0,625"),
        ("{from = '{a}', round = 2}", "NaN"),
    ],
)
def test_what_is_not_such_a_number_is_refused(said: str, cell: str) -> None:
    """The refusal has the text of the cell."""
    with pytest.raises(Refused) as refused:
        made(said, a=cell)
    assert (refused.value.code, refused.value.value) == ("bad_number", cell)


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("{from = '{a}', percent = true, number = '+150'}", "x"),
        ("{from = '{a}', percent = true, map = {x = 1}}", "x"),
        ("{from = '{a}', round = 2, json = true}", "x"),
        ("{from = '{a}', round = -1}", "x.round"),
        ("{from = '{a}', round = 31}", "x.round"),
        ("{from = '{a}', round = true}", "x.round"),
        ("{from = '{a}', percent = 'yes'}", "x.percent"),
    ],
)
def test_a_number_that_says_nothing_clear_is_a_fault_of_the_map(said: str, place: str) -> None:
    """What cannot be read together is refused before a row is read."""
    with pytest.raises(Refused) as refused:
        made(said, a="1")
    assert (refused.value.code, refused.value.field) == ("bad_map", place)
