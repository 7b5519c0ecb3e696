"""Tests of the table of numbers that people write."""

from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_type_hints

import click
import pytest
from msgspec import Meta, Struct

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import MICROS, Trading, encoded_name
from forecast_ledger.replay.cli.main import main
from forecast_ledger.replay.reference import schema
from forecast_ledger.replay.reference.schema import OTHERS

FOUND = {(where.strip("`"), field.strip("`")): unit for where, field, unit in schema.written_numbers()}
NUMERIC = {int, float, Any}  # a decoder returns Any for a number that may be a text


def test_every_number_says_its_unit() -> None:
    """A field of a command, of its parts, of a rule set or of trading rules that takes a number has a unit."""
    assert [place for place, unit in FOUND.items() if not unit] == []


def leaves(hint: Any) -> Iterator[Any]:
    """The plain types within a type hint."""
    if hasattr(hint, "__metadata__"):
        yield from leaves(hint.__origin__)
    elif get_args(hint) and not isinstance(get_args(hint)[0], str):
        for part in get_args(hint):
            yield from leaves(part)
    else:
        yield hint


def test_no_number_is_left_out() -> None:
    """The table has every field whose type hints hold a number, found in another way: by the hints alone."""
    kinds: list[tuple[type[Struct], str]] = [(RuleSet, "rules"), (Trading, "rules.trading")]
    kinds += [(kind, str(kind.__struct_config__.tag or kind.__name__)) for kind in get_args(commands.AnyCommand)]
    kinds += [(kind, kind.__name__) for kind in schema.PARTS]
    expected = {
        (where, encoded_name(field))
        for kind, where in kinds
        for field, hint in get_type_hints(kind).items()
        if NUMERIC & {*leaves(hint)}
    }
    assert {*FOUND} == expected


def test_amounts_are_in_the_currency_or_in_percent() -> None:
    """A field that the log holds in 1e-6 of its unit is written in that unit."""
    for kind, where in ((RuleSet, "rules"), (Trading, "rules.trading")):
        for field in kind.__struct_fields__:
            if field.endswith(MICROS):
                unit = "percent" if "percentage" in field else "the contest's currency"
                assert FOUND[where, encoded_name(field)] == unit


Unsaid = Annotated[values.Number, Meta(extra_json_schema={"type": ["number", "string"]})]


class _Unsaid(Struct):
    """A command whose numbers say no unit."""

    amount: Unsaid
    count: int = 0
    several: tuple[Unsaid, ...] | None = None
    said: Annotated[int, Meta(extra={"unit": "days"})] = 0
    text: str = ""


def test_a_number_without_a_unit_is_seen() -> None:
    """A new field without a unit is in the table, with an empty unit, so that the test above fails."""
    found = {field: unit for _, field, unit in schema._numbers_of(_Unsaid, "new")}
    assert found == {"`amount`": "", "`count`": "", "`several`": "", "`said`": "days"}


def numeric_options() -> Iterator[str]:
    """The options and arguments of all commands that take a number."""
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        for option in command.params:
            if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType) or (
                option.type.name == "size"
            ):
                yield option.opts[0]


@pytest.mark.parametrize("option", sorted({*numeric_options()}))
def test_every_number_of_the_command_line_says_its_unit(option: str) -> None:
    """An option or an argument that takes a number is in the table."""
    assert f"`{option}`" in {field for where, field, unit in OTHERS if where == "options" and unit}
