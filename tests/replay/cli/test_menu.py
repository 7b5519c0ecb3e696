"""The first page of help: every command in a group, on a line of its own."""

from importlib import import_module
from itertools import chain
from pkgutil import iter_modules

import click
import pytest
from click.testing import CliRunner

from forecast_ledger.replay import cli
from forecast_ledger.replay.cli.main import USAGE, WIDTH, main
from tests.replay.cli.test_main import run
from tests.support.menu import loaded
from tests.support.terminals import seen
from tests.support.waiting import quick


def test_every_command_is_in_one_group() -> None:
    """Record, read, audit, research, operate; none is there twice, and each is a command of this name."""
    assert [*main.groups] == ["Record", "Read", "Audit", "Research", "Operate"]
    names = [*chain(*main.groups.values())]
    assert sorted(names) == main.list_commands(click.Context(main))
    assert names == [loaded()[name].name for name in names]


def test_every_command_of_a_module_is_in_the_menu() -> None:
    """A command that no row of the menu names could not be run."""
    modules = [import_module(f"{cli.__name__}.{module.name}") for module in iter_modules(cli.__path__)]
    made = {each.name for module in modules for each in vars(module).values() if isinstance(each, click.Command)}
    assert made - {main.name} == {*chain(*main.groups.values())}


@pytest.mark.parametrize("name", [*chain(*main.groups.values())])
def test_a_summary_is_a_whole_sentence_on_one_line(name: str) -> None:
    """The first line of a command's help is a whole sentence, followed by an empty line."""
    first, *rest = (loaded()[name].help or "").splitlines()
    assert (first[-1], rest[:1] in ([], [""])) == (".", True)
    [line] = [line for line in run("--help").stdout.splitlines() if line.startswith(f"  {name} ")]
    assert line.split(maxsplit=1)[1] == first[:-1]
    assert len(line) <= WIDTH


def test_help_is_the_same_on_every_terminal() -> None:
    """On a narrow terminal click would break the lines elsewhere."""
    pages = {seen("--help", columns=columns).stdout for columns in (40, 60, 80, 200)}
    assert pages == {run("--help").stdout.replace("Usage: main", "Usage: forecast-ledger")}
    assert len({seen("table", "--help", columns=columns).stdout for columns in (40, 200)}) == 1
    assert max(map(len, run("table", "--help").stdout.splitlines())) <= WIDTH


def test_help_takes_little_time() -> None:
    """Help itself takes far less than 150 ms, without the start of Python."""
    run("--help")
    quick(0.15)(run)("--help")


@pytest.mark.parametrize(
    "words",
    [
        ["\x1b[2J"],
        ["--\x1b[2J"],
        ["append", "log.db", "\x1b[2J\u202e"],
        ["append", "\x1b[2J", "\x1b[2J"],
        ["explain", "log.db", "\x1b[2J"],
        ["table", "log.db", "\x1b[2J"],
        ["table", "log.db", "scores", "--format", "\x1b[2J"],
        ["table", "log.db", "scores", "--limit", "\x1b[2J"],
        ["table", "log.db", "scores", "--\x1b[2J"],
    ],
)
def test_no_error_repeats_what_a_terminal_obeys(words: list[str]) -> None:
    """Arguments may come from others; wrong usage shows them escaped."""
    result = CliRunner().invoke(main, words, color=True)
    assert (result.exit_code, {"\x1b", "\u202e"} & {*result.output}) == (USAGE, set())


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (
            "report s.db --output s.html",
            "No such option '--output'. Name what is to be written as the last argument.\n",
        ),
        ("pack s.db -o s.zip", "No such option '-o'. Name what is to be written as the last argument.\n"),
        (
            "leaderboard s.db --output s.csv",
            "No such option '--output'. To write what is printed to a file, add: > FILE\n",
        ),
        ("--output s.db", "No such option '--output'.\n"),
        ("report s.db s.html --contests x", "No such option '--contests'. Did you mean '--contest'?\n"),
    ],
)
def test_an_option_for_output_that_no_command_has_is_answered(command: str, remedy: str) -> None:
    """With where the name of the file goes, not with the option whose letters are most alike."""
    result = run(*command.split())
    assert (result.exit_code, result.stderr.partition("Error: ")[2]) == (USAGE, remedy)
