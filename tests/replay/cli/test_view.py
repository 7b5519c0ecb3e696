"""The options of every command that prints a table: which columns, which rows, how many, in every form."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from forecast_ledger.replay.cli.main import FINE, USAGE
from forecast_ledger.replay.cli.terminal import Condition, Selected, View, without_zeros
from tests.replay.cli.test_main import COMMANDS, run
from tests.support.menu import loaded
from tests.support.paths import ROOT

STORY = ROOT / "data" / "metaculus-2022"
PRINTERS = {
    "leaderboard": ["leaderboard", "LOG", "plain"],
    "table": ["table", "LOG", "scores"],
    "columns": ["columns", "scores"],
    "replay": ["replay", "LOG"],
    "compare": ["replay", "LOG", "--compare", "LOG"],
    "verify": ["verify", "LOG"],
    "show": ["show", "LOG", "12"],
    "log": ["log", "LOG"],
    "diff": ["diff", "LOG", "@33", "@34"],
    "blame": ["blame", "LOG", "leaderboard", "plain", "A"],
    "what-if": ["what-if", "LOG", str(STORY / "what-if.jsonl"), "--show", "leaderboard"],
    "append": ["append", "LOG", str(STORY / "sealed.jsonl"), "--dry-run"],
    "explain": ["explain", "LOG", "score", "plain", "olympics-2021", "A"],
}


def typed(log: str, command: str, *options: str) -> Result:
    """A command that prints a table, with these options."""
    return run(*(log if word == "LOG" else word for word in PRINTERS[command]), *options)


def rows(log: str, command: str, *options: str) -> list[dict[str, Any]]:
    """The rows that it prints, as JSON; of `explain` its parts."""
    found = json.loads(typed(log, command, *options, "--format", "json").stdout)
    parts: list[dict[str, Any]] = found["parts"] if isinstance(found, dict) else found
    return parts


def cells(log: str, command: str, *options: str) -> list[dict[str, str]]:
    """The same as CSV."""
    return list(csv.DictReader(io.StringIO(typed(log, command, *options, "--format", "csv").stdout)))


@pytest.mark.parametrize("command", PRINTERS)
def test_columns_are_printed_in_the_order_asked_for(log: str, command: str) -> None:
    """The order holds in every format; the rows do not change otherwise."""
    whole = rows(log, command)
    names = list(reversed(whole[0]))[:2]
    chosen = rows(log, command, "--columns", " , ".join(names))
    assert [list(row.items()) for row in chosen] == [[(name, row[name]) for name in names] for row in whole]
    texts = cells(log, command)
    names = list(reversed(texts[0]))[:2]
    expected = [{name: row[name] for name in names} for row in texts]
    assert cells(log, command, "--columns", ",".join(names)) == expected
    if command != "explain":
        assert typed(log, command, "--columns", ",".join(names)).stdout.splitlines()[0].split() == names


@pytest.mark.parametrize("command", PRINTERS)
def test_rows_are_chosen_by_a_value_as_it_is_printed(log: str, command: str) -> None:
    """COLUMN=VALUE keeps the rows with the value, COLUMN!=VALUE those without; several hold together."""
    whole = cells(log, command)
    (name, value), *_, (last, value_of_last) = whole[-1].items()
    with_it, without = [each for each in whole if each[name] == value], [each for each in whole if each[name] != value]
    assert cells(log, command, "--where", f"{name}={value}") == with_it != []
    assert cells(log, command, "--where", f"{name}!={value}") == without
    both = [each for each in with_it if each[last] == value_of_last]
    assert cells(log, command, "--where", f"{name}={value}", "--where", f"{last}={value_of_last}") == both != []
    if command not in {"diff", "explain"}:  # of the former, JSON has an object a row
        assert len(rows(log, command, "--where", f"{name}={value}")) == len(with_it)


@pytest.mark.parametrize("command", [name for name in PRINTERS if name not in {"log", "append"}])
def test_a_limit_says_how_many_rows_there_are(log: str, command: str) -> None:
    """The first ones are printed; the number of all of them is on stderr."""
    every = typed(log, command, "--format", "csv").stdout
    whole = list(csv.DictReader(io.StringIO(every)))
    one = typed(log, command, "--limit", "1", "--format", "csv")
    assert list(csv.DictReader(io.StringIO(one.stdout))) == whole[:1]
    assert f"1 of {len(whole)} rows are shown\n" in one.stderr
    beyond = typed(log, command, "--limit", str(len(whole)), "--format", "csv")
    assert (beyond.stdout, "shown" in beyond.stderr) == (every, False)


@pytest.mark.parametrize("command", PRINTERS)
@pytest.mark.parametrize("option", [["--columns", "partcipant"], ["--where", "partcipant=A"]])
def test_an_unknown_column_is_wrong_usage(log: str, command: str, option: list[str]) -> None:
    """The nearest and all columns are named, and nothing is printed."""
    result = typed(log, command, *option)
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert "no column named 'partcipant'; " in result.stderr
    if command in {"leaderboard", "table", "what-if"}:
        assert "the nearest is participant; there are: contest, " in result.stderr


@pytest.mark.parametrize("given", [["append", "LOG", str(COMMANDS)], ["pay", "LOG", "plain"], ["import", "OUT", "LOG"]])
def test_nothing_is_recorded_when_a_column_is_unknown(log: str, tmp_path: Path, given: list[str]) -> None:
    """A command that writes checks the columns first."""
    new = tmp_path / "new.db"
    assert run("export", log, str(tmp_path / "out"), "--format", "csv").exit_code == FINE
    words = (str({"LOG": new, "OUT": tmp_path / "out"}.get(word, word)) for word in given)
    result = run(*words, "--columns", "nothing")
    assert (result.exit_code, new.exists()) == (USAGE, False)
    assert "no column named 'nothing'" in result.stderr


def test_rows_that_do_not_exist_are_said_not_to(log: str) -> None:
    """An empty table has its header in each form, and a line on stderr says that it has no rows."""
    empty = run("table", log, "admissions")
    assert (empty.stdout.splitlines()[0].split()[0], empty.stderr.splitlines()[0]) == ("contest", "no rows")
    assert run("table", log, "admissions", "--format", "json").stdout == "[\n]\n"
    none = run("table", log, "scores", "--where", "participant=nobody")
    said = f"no rows meet --where; there are {len(rows(log, 'table'))} in all"
    assert (len(none.stdout.splitlines()), none.stderr.splitlines()[0]) == (1, said)


@pytest.mark.parametrize(
    ("printed", "asked", "holds"),
    [
        ("0.500000000", "0.500000000", True),
        ("0.500000000", "0.5", True),
        ("0.500000000", "0.50", False),
        ("10", "1", False),
        (3, "3", True),
        (None, "", True),
        (None, "None", False),
        ("a=b", "a=b", True),
        ("a", "A", False),
    ],
)
def test_a_value_is_compared_as_text(printed: Any, asked: str, holds: bool) -> None:
    """The text is as printed, or as on a terminal, without trailing zeros; nothing is rounded or case-folded."""
    assert Condition("c", asked).holds({"c": printed}) is holds
    assert Condition("c", asked, negated=True).holds({"c": printed}) is not holds


def test_a_condition_without_a_sign_is_wrong_usage(log: str) -> None:
    """The message says how it is written; a value may hold further signs."""
    wrong = run("table", log, "scores", "--where", "participant")
    assert (wrong.exit_code, "write COLUMN=VALUE" in wrong.stderr) == (USAGE, True)
    assert "no rows meet" in run("table", log, "scores", "--where", "participant=a=b").stderr


def test_rows_past_the_limit_are_read_all_the_same() -> None:
    """The source of the rows may count them, as `append --dry-run` does."""
    handed = []
    source = ({"n": handed.append(number) or number} for number in range(5))  # type: ignore[func-returns-value]
    selected = Selected(View(limit=2, where=(Condition("n", "0", negated=True),)), source)
    assert [row["n"] for row in selected] == [1, 2]
    assert (handed, selected.note()) == ([*range(5)], "2 of 4 rows that meet --where are shown, of 5 in all")


def test_only_decimals_lose_zeros() -> None:
    """No id, fraction, instant or whole number does."""
    for text in ("100", "1.0.0", "v1.0", "3/10", "2021-07-20T00:00:00.10Z", "", ".", ".0", "1.", "$5.00"):
        assert without_zeros(text) == text
    assert [without_zeros(text) for text in ("1.0", "-0.10", "0.001000")] == ["1", "-0.1", "0.001"]


def test_every_command_that_prints_a_table_has_the_options() -> None:
    """One set, in one place: none has lost one; `log` has a limit of its own."""
    own, found = {"explain", "log"}, loaded()
    for name, command in found.items():
        options = {option for parameter in command.params for option in parameter.opts}
        if "--columns" in options or name in own:
            assert {"--format", "--columns", "--where", "--limit", "--wide"} <= options, name
    assert sum("--columns" in {o for p in command.params for o in p.opts} for command in found.values()) == 23
