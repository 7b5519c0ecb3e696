"""Tests of unknown names in a map: at every level, the refusal has the place and the nearest name."""

import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.mapping.csv_mapping import parse_map

MAP = """{top}
[[command]]
type = "submit_forecast"
id = "{{a}}"
{beside}
[command.fields]
at = "{{t}}"
question = "{{q}}"
participant = "{{a}}"
{within}
"""
OPENS = """
[[command]]
type = "open_question"
id = "{q}"
[command.fields]
at = "{t}"
question = "{q}"
kind = "numeric"
opens_at = "{t}"
closes_at = "{t}"
"""
RULES = """
[[command]]
type = "open_contest"
id = "{q}"
[command.fields]
at = "{t}"
contest = "c"
"""


def submits(top: str = "", beside: str = "", within: str = "") -> str:
    """A map of forecasts, with lines of its own."""
    return MAP.format(top=top, beside=beside, within=within)


SUBMITS = submits()
LONG = 'probabilities = { level = "{l}", value = "{p}", lvels = [] }'


def refusal(text: str) -> Refused:
    """The refusal of a map."""
    with pytest.raises(Refused) as refused:
        parse_map(text.encode())
    assert refused.value.code == "bad_map"
    return refused.value


@pytest.mark.parametrize(
    ("text", "place", "near"),
    [
        (submits('encodng = "x"'), "", "encoding"),
        (submits(beside='colums = ["a"]'), "command[0]", "columns"),
        (SUBMITS + submits(beside='presnt = ["a"]'), "command[1]", "present"),
        (submits(beside='where = { a = { match = "x" } }'), "command[0].where.a", "matches"),
        (submits(beside="columns = { emty = true }"), "command[0].columns", "empty"),
        (submits(beside="normalize = { with = 0.01 }"), "command[0].normalize", "within"),
        (submits(within='probabilty = "{p}"'), "command[0].fields.probabilty", "probability"),
        (SUBMITS.replace("submit_forecast", "submit_forcast"), "command[0].type", "submit_forecast"),
        (SUBMITS.replace('"{q}"', '{ from = "{q}", match = "x" }'), "command[0].fields.question", "matches"),
        (SUBMITS.replace('"{t}"', '{ form = "{t}" }'), "command[0].fields.at.form", "from"),
        (
            submits(within='probabilities = { red = { from = "{r}", percnt = true } }'),
            "command[0].fields.probabilities.red",
            "percent",
        ),
        (
            submits(beside='group = ["q"]', within=LONG),
            "command[0].fields.probabilities",
            "levels",
        ),
        (submits(within="points = { quantils = [] }"), "command[0].fields.points.quantils", "quantiles"),
        (OPENS + 'range = { lower = "{l}", uper = "{u}" }', "command[0].fields.range.uper", "upper"),
        (OPENS + 'range = { lower = { from = "{l}", nmber = "1,5" } }', "command[0].fields.range.lower", "number"),
        (RULES + 'rules = { name = "x", kernl = "ln" }', "command[0].fields.rules.kernl", "kernel"),
        (RULES + "rules = { trading = { leg = 1 } }", "command[0].fields.rules.trading.leg", "legs"),
    ],
)
def test_an_unknown_name_of_a_map_is_refused_with_its_place_and_the_nearest(text: str, place: str, near: str) -> None:
    """Before a row is read, at every level of a map."""
    refused = refusal(text)
    assert refused.field == place
    assert f"; the nearest is {near}; " in refused.detail


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (SUBMITS.replace('"{t}"', '{ zone = "Europe/Berlin" }'), "command[0].fields.at.from"),
        ('offset = "CET"' + SUBMITS, "offset"),
        ('instant = "%Q"' + SUBMITS, "instant"),
        (SUBMITS.replace('"{t}"', '{ from = "{t}", offset = "CET" }'), "command[0].fields.at.offset"),
        (SUBMITS.replace('"{t}"', '{ from = "{t}", instant = "%Q" }'), "command[0].fields.at.instant"),
        (SUBMITS.replace('id = "{a}"', 'id = "{a"'), "command[0].id"),
    ],
)
def test_a_fault_of_a_map_has_its_place(text: str, place: str) -> None:
    """A default of the whole map has its fault there, a field of a command in the field."""
    assert refusal(text).field == place


def test_names_that_a_map_chooses_itself_are_not_checked() -> None:
    """Outcomes are named as anybody likes, also in a field whose parts have names of their own."""
    parse_map(submits(within='probabilities = { kernl = "{p}", uper = "{n}" }').encode())
    parse_map((RULES + 'rules = { name = "x", kernel = "ln" }').encode())
