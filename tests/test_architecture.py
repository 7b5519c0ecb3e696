"""Imports go one way, and pure modules name nothing that could make two runs differ."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STORES = {"ledger.store", "ledger.sqlite", "ledger.postgres"}  # what knows the library that keeps the rows
SHELL = {"ledger.collector", "ledger.ledger", "ledger.subscription", "ledger.telling"} | STORES
# What projections may see.
PURE = {"values", "exact", "bounded", "events", "findings", "rules", "log", "errors", "spans", "trading"}
IMPURE = {"time", "random", "secrets", "os", "socket", "threading", "subprocess", "pathlib", "sqlite3", "uuid", "math"}
INTEGER_MATH = {"floor", "gcd", "isqrt", "lcm"}  # of integers and fractions: no float comes in or out
WRITERS = {"replay.append", "replay.demo", "replay.pay", "replay.cli", "replay.unstarted"}
ON_A_BRANCH = {"replay.branch"}  # decides as a writer would, on rows that stay in memory
MODULES = sorted(path for room in ("ledger", "projections", "replay") for path in (ROOT / room).glob("*.py"))


def _name(path: Path) -> str:
    return f"{path.parent.name}.{path.stem}"


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _pure() -> list[Path]:
    return [path for path in MODULES if path.parent.name != "replay" and _name(path) not in SHELL | {"ledger.__init__"}]


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_imports_go_one_way(path: Path) -> None:
    """Ledger, then projections, then replay; projections see only the pure ledger; nothing imports tests or data."""
    imports = set(_imports(path))
    rooms = {name.split(".")[0] for name in imports}
    assert not rooms & {"tests", "data"}
    if path.parent.name != "replay":
        assert "replay" not in rooms
    if path.parent.name == "ledger":
        assert "projections" not in rooms
    if path.parent.name == "projections":
        assert {name.split(".")[1] for name in imports if name.startswith("ledger.")} <= PURE
    if path.parent.name == "replay" and _name(path) not in WRITERS | ON_A_BRANCH:
        assert not imports & {"ledger.ledger", "ledger.decider", "ledger.Ledger"}
    assert _name(path) in STORES or not any(name.startswith("eventsourcing") for name in imports)


@pytest.mark.parametrize("path", _pure(), ids=_name)
def test_pure_modules_name_no_clock_chance_environment_or_files(path: Path) -> None:
    """What decides and what projects depends on its arguments alone."""
    imports = set(_imports(path))
    roots = {name.split(".")[0] for name in imports}
    functions = {name for name in imports if name.startswith("math.")}
    assert functions <= {f"math.{name}" for name in INTEGER_MATH}
    assert not roots & IMPURE - ({"math"} if functions else set())
    called = {
        node.func.id for node in ast.walk(_tree(path)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"open", "print", "input", "eval", "exec", "float", "hash", "id"}


@pytest.mark.parametrize("path", [path for path in _pure() if path.stem not in {"limbs", "estimates"}], ids=_name)
def test_pure_modules_do_no_float_arithmetic(path: Path) -> None:
    """No float literal, no true division, no float type, but in the guarded logarithms, which prove what they round."""
    for node in ast.walk(_tree(path)):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), ast.dump(node)
        assert not isinstance(node, ast.Div), "true division"
        assert not (isinstance(node, ast.Attribute) and node.attr.startswith("float")), ast.dump(node)


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_files_and_functions_stay_small(path: Path) -> None:
    """400 lines a file, 60 a function: past that, there is a second idea in it."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef) and node.end_lineno:
            assert node.end_lineno - node.lineno < 60, node.name


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
