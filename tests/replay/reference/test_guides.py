"""The topics for newcomers: they name what there is, and nothing else."""

import click
import pytest
from msgspec import structs

from forecast_ledger.replay.cli.main import FINE, USAGE, main
from forecast_ledger.replay.mapping.csv_cells import CellFormat
from forecast_ledger.replay.mapping.csv_mapping import CommandMap, CsvMap, parse_map
from forecast_ledger.replay.reading.blocks import Block, Code, Table
from forecast_ledger.replay.reference import topics
from tests.replay.cli.test_main import run


def _rows(blocks: tuple[Block, ...], header: str) -> list[str]:
    """The first cells of the table that has this header, without marks."""
    [table] = [block for block in blocks if isinstance(block, Table) and block.columns[0] == header]
    return [row[0].strip("`") for row in table.rows]


@pytest.mark.parametrize(
    ("header", "kind"), [("key", CsvMap), ("key of a command", CommandMap), ("key of a field", CellFormat)]
)
def test_the_keys_of_a_map_are_those_that_it_may_have(header: str, kind: type) -> None:
    """Each key once, none that a map does not take, and none is missing."""
    keys = _rows(topics.maps(), header)
    assert sorted(keys) == sorted(field.encode_name for field in structs.fields(kind))


def test_the_example_of_a_map_is_one() -> None:
    """It is read as a map."""
    [example] = [block.text for block in topics.maps() if isinstance(block, Code)]
    assert [reader.type for reader in parse_map(example.encode()).readers] == ["submit_forecast"]


def test_the_first_steps_are_commands() -> None:
    """Each is a command of the command line, and its words in capitals are arguments of it."""
    for step in _rows(topics.getting_started(), "command"):
        _, name, *words = step.replace("[", "").replace("]", "").split()
        command = main.get_command(click.Context(main), name)
        assert command is not None
        most = sum(100 if part.nargs < 0 else 1 for part in command.params if isinstance(part, click.Argument))
        options = [word for word in words if word.startswith("--")]
        assert len(words) - 2 * len(options) <= most
        assert {*options} <= {each for part in command.params for each in part.opts}


@pytest.mark.parametrize("topic", ["getting-started", "csv", "map"])
def test_help_has_the_topics(topic: str) -> None:
    """`help` lists them, and prints each."""
    assert topic in run("help").stdout
    assert run("help", topic).exit_code == FINE
    assert run("help", topic[:-1] + "xyz").exit_code == USAGE
