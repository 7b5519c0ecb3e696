"""The README is true: its tables are the code's, its commands run, its example is a doctest."""

import re
import shlex
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from click.testing import CliRunner

from forecast_ledger.ledger.core.errors import REFUSALS, Refused
from forecast_ledger.ledger.model import commands, events
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import FAULTS, LEG_CODES, Trading
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
from forecast_ledger.projections.core.column_values import KINDS
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.replay.audit.verify import CHECKS
from forecast_ledger.replay.cli import main
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def _tables() -> dict[str, list[str]]:
    """The README's tables by their header line."""
    tables = re.findall(r"(?m)^(\|.*\|)\n\|[ \-|]+\|\n((?:\|.*\|\n)*)", README)
    return {header: rows.splitlines() for header, rows in tables}


def _command_rows() -> list[str]:
    rows = []
    for kind in get_args(commands.AnyCommand):
        fields = [field for field in msgspec.structs.fields(kind) if field.name not in {"id", "at"}]
        named = ", ".join(f"`{field.name}`" + "?" * (not field.required) for field in fields)
        rows.append(f"| `{kind.__struct_config__.tag}` | {named} |")
    return rows


def _event_rows() -> list[str]:
    named = {
        tag: ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(kind) if field.name != "at")
        for kind, tag in events.TAGS.items()
    }
    return [f"| `{tag}` | {fields} |" for tag, fields in named.items()]


def _projection_rows() -> list[str]:
    return [
        f"| `{name}` | {projection.meaning} | {', '.join(f'`{column.name}`' for column in projection.columns)} |"
        for name, projection in CATALOGUE.items()
    ]


def _preset_rows() -> list[str]:
    rows = []
    for name, rules in PRESETS.items():
        own = _own(rules, RuleSet(name=name))
        if rules.trading is not None:
            own["trading"] = _own(rules.trading, Trading())
        rows.append(f"| `{name}` | `{msgspec.json.encode(own).decode()}` |")
    return rows


def _own(rules: RuleSet | Trading, default: RuleSet | Trading) -> dict[str, object]:
    """What is not the default."""
    plain, usual = msgspec.to_builtins(rules), msgspec.to_builtins(default)
    return {field: value for field, value in plain.items() if value != usual[field]}


def _field_rows(of: type[RuleSet | Trading]) -> list[str]:
    rows = []
    for field in msgspec.structs.fields(of):
        named = ", ".join(f"`{value}`" for value in get_args(field.type) if isinstance(value, str))
        kinds = {bool: "`true`, `false`", int: "integer", tuple: "list of levels", type(None): "trading fields"}
        values = named or kinds[type(field.default)] if not field.required else ""
        if values:
            rows.append(f"| `{field.name}` | {values} | `{msgspec.json.encode(field.default).decode()}` |")
    return rows


def _kernel_rows() -> list[str]:
    rows = []
    for name, kernel in KERNELS.items():
        best, worst = (
            "least" if kernel.lower_is_better else "greatest",
            "none" if kernel.worst is None else kernel.worst,
        )
        parts = (f"`{name}`", ", ".join(kernel.takes), best, worst, kernel.unit.words, kernel.words, kernel.source)
        rows.append(f"| {' | '.join(map(str, parts))} |")
    return rows


def _code_rows(codes: dict[str, str]) -> list[str]:
    return [f"| `{code}` | {meaning} |" for code, meaning in codes.items()]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("| type | fields |", _command_rows()),
        ("| event | fields |", _event_rows()),
        ("| code | what is wrong | what to do |", [f"| `{code}` | {a} | {b} |" for code, (a, b) in REFUSALS.items()]),
        ("| preset | rule set, where it is not the default |", _preset_rows()),
        ("| field | values | default |", _field_rows(RuleSet)),
        ("| kernel | scores | best | worst | unit | what it is | source |", _kernel_rows()),
        ("| trading field | values | default |", _field_rows(Trading)),
        ("| a reply's fault | means |", _code_rows(FAULTS)),
        ("| a leg's code | means |", _code_rows(LEG_CODES)),
        ("| projection | what it is | columns |", _projection_rows()),
        ("| kind | inside |", [f"| {name} | {kind.unit} |" for name, kind in KINDS.items()]),
    ],
)
def test_every_table_of_the_readme_is_the_codes(header: str, expected: list[str]) -> None:
    """Commands, events, refusal codes in their order, presets and projection columns are listed as they are."""
    assert expected == _tables()[header]


def test_the_readme_names_every_check_exit_code_and_module() -> None:
    """What `verify` looks at, what the command line exits with, and where things are."""
    assert [f"| {name} | {meaning} |" for name, meaning in CHECKS.items()] == _tables()["| check | what holds |"]
    codes = [row.split("|")[1].strip() for row in _tables()["| exit code | means |"]]
    exits = (main.FINE, main.FINDINGS, main.USAGE, main.UNREADABLE, main.DAMAGED, main.UNCERTAIN)
    assert codes == [str(code) for code in exits]
    rooms = README[README.index("```text") :]
    modules = [path.stem for room in ("ledger", "projections", "replay") for path in (ROOT / room).glob("[a-z]*.py")]
    assert [name for name in modules if not re.search(rf"\b{name}\b", rooms)] == []


def test_the_commands_of_the_readme_run_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `forecast-ledger` line of the README, in an empty folder that has the data beside it."""
    lines = re.findall(r"(?m)^forecast-ledger (.*)$", README)
    assert len(lines) >= 7
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    for line in lines:
        result = CliRunner().invoke(main.main, shlex.split(line))
        assert (result.exit_code, result.output != "") == (0, True), f"{line}\n{result.output}"


def test_the_example_lines_are_accepted_all() -> None:
    """Each form of question and forecast, a rule set of one's own, answers and a seal; on one empty ledger."""
    [block] = re.findall(r"```jsonl\n(.*?)```", README, re.DOTALL)
    lines = block.splitlines()
    with Ledger.open(":memory:") as ledger:
        outcomes = ledger.handle_many([commands.read(line) for line in lines])
    assert len(lines) >= 12
    assert [outcome for outcome in outcomes if isinstance(outcome, Refused)] == []


def test_the_setup_commands_are_the_ones_that_the_checks_run() -> None:
    """`.ci/run` takes its two set-up commands from the README itself, so they must be there, each once."""
    for command in (
        "pip install -q . && .venv/bin/forecast-ledger demo",
        "pip install -q '.[test]' && .venv/bin/pytest",
    ):
        assert README.count(f"python3 -m venv .venv && .venv/bin/{command}\n") == 1
