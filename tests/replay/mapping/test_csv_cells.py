"""Cells: a list without items, a part of a text, and numbers by a named rule."""

import io
import tomllib
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand, OpenQuestion, Range, SubmitForecast
from forecast_ledger.replay.mapping.csv_cells import CellFormat, field_value
from forecast_ledger.replay.mapping.csv_mapping import parse_map, read_rows

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
