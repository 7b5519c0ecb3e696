"""Imports go one way, and pure modules name nothing that could make two runs differ."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

import pytest

from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support.page_runner import command_folder, reader, run
from tests.support.paths import ROOT, SOURCES

PACKAGE = "forecast_ledger."
STORES = {
    "ledger.storing.stored_log",
    "ledger.storing.sqlite",
    "ledger.storing.sqlite_files",
    "ledger.storing.postgres",
}  # know the library that keeps rows
# What of the ledger reads a clock, waits, has files, or talks to a store.
SHELL = {
    "ledger.core.gc_pause",
    "ledger.core.parquet_files",
    "ledger.core.files",
    "ledger.core.systems",
    "ledger.core.version",
    "ledger.batching",
    "ledger.storing",
} | {f"ledger.segments.{name}" for name in ("sealing", "segment_files", "segment_manifest")}
# What projections may see of the ledger.
PURE = (
    {f"ledger.segments.{name}" for name in ("arrow_arrays", "other_events", "segment_columns")}
    | {
        f"ledger.core.{name}"
        for name in (
            "arguments",
            "errors",
            "exact",
            "extras",
            "hints",
            "values",
        )
    }
    | {
        f"ledger.model.{name}"
        for name in (
            "answers",
            "book",
            "events",
            "log",
            "mismatch",
            "plain_rows",
            "publication_stamps",
            "rules",
            "task_ids",
            "trading_rules",
        )
    }
)
IMPURE = {"time", "random", "secrets", "os", "socket", "threading", "subprocess", "pathlib", "sqlite3", "uuid", "math"}
INTEGER_MATH = {"ceil", "floor", "gcd", "isqrt", "lcm", "prod"}  # of integers and fractions: no float comes in or out
WRITERS = {
    "replay.importing.record_copy",
    "replay.importing.recorded_copy",
    "replay.writing.append",
    "replay.writing.store",
    "replay.writing.provisional_stores",
    "replay.cli.append",
    "replay.cli.demo",
    "replay.cli.record",
    "replay.cli.score",
    "replay.scoring.score",
    "replay.cli.main",
}
VOCABULARIES = {"ledger.model.commands", "ledger.model.events", "ledger.model.rules"}
ON_AN_OVERLAY = {"replay.writing.provisional_stores"}  # decides as a writer would, on rows that stay in memory
ROOMS = sorted({path.parent for path in SOURCES} - {ROOT / top for top in ("ledger", "projections", "replay")})


def _name(path: Path) -> str:
    """The dotted name of a module below the package; that of a package for its __init__."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = {_name(path) for path in SOURCES}
MODULES = {_name(path) for path in SOURCES if path.stem != "__init__"}


@cache
def _nodes(text: str) -> tuple[ast.AST, ...]:
    """What the source of a module is made of, itself first."""
    return (*ast.walk(ast.parse(text)),)


@pytest.fixture(autouse=True, scope="module")
def forgotten() -> Iterator[None]:
    """Every later search for garbage would look at these hundreds of thousands of nodes."""
    yield
    _nodes.cache_clear()


@cache
def _imported(text: str) -> tuple[str, ...]:
    """What the source of a module imports, without the name of our package; also imports that are late or for types."""
    names = list[str]()
    for node in _nodes(text):
        if isinstance(node, ast.Import):
            names += (alias.name.removeprefix(PACKAGE) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module.removeprefix(PACKAGE))
            names += (f"{node.module}.{alias.name}".removeprefix(PACKAGE) for alias in node.names)
    return tuple(names)


def _imports(path: Path) -> tuple[str, ...]:
    return _imported(path.read_text(encoding="utf-8"))


def _modules(path: Path) -> set[str]:
    """The modules of this project that a module imports, without their packages."""
    return MODULES.intersection(_imports(path))


def _within(name: str, places: set[str]) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)


def _circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of a circle of imports; none if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _graph() -> dict[str, set[str]]:
    """The modules that each module imports, for the program or for types alone, when it is loaded or later."""
    return {_name(path): _modules(path) for path in SOURCES}


def test_no_modules_import_each_other() -> None:
    """Not even round many corners, for types alone, or late: what stands on something is not stood on by it."""
    graph = _graph()
    assert sum(map(len, graph.values())) > 2 * len(graph)
    assert not _circle(graph)


@pytest.mark.parametrize("sort", ["plain", "for types", "late", "whole"])
def test_a_circle_is_found_however_it_is_made(sort: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more import of what stands above, of any sort, in what all tables are made of."""
    module, below = Projections.__module__, Analysis.__module__.removeprefix(PACKAGE)
    added = {
        "plain": f"from {module} import Projections\n",
        "for types": f"if TYPE_CHECKING:\n    from {module} import Projections\n",
        "late": f"def late() -> None:\n    from {module.rpartition('.')[0]} import {module.rpartition('.')[2]}\n",
        "whole": f"import {module}\n",
    }
    path, real = ROOT / Path(*below.split(".")).with_suffix(".py"), Path.read_text
    whole = path.read_text(encoding="utf-8") + added[sort]
    monkeypatch.setattr(Path, "read_text", lambda self, **how: whole if self == path else real(self, **how))
    assert {below, module.removeprefix(PACKAGE)} <= {*_circle(_graph())}


def _pure() -> list[Path]:
    return [path for path in SOURCES if _name(path).split(".")[0] != "replay" and not _within(_name(path), SHELL)]


def test_imports_go_one_way() -> None:
    """Ledger, then projections, then replay; projections see only the pure ledger; nothing imports tests or data."""
    above = {"ledger": {"projections", "replay"}, "projections": {"replay"}, "replay": set[str]()}
    for path in SOURCES:
        name, imports, modules = _name(path), set(_imports(path)), _modules(path)
        top, tops = name.split(".")[0], {each.split(".")[0] for each in imports}
        assert not tops & ({"tests", "data"} | above[top]), name
        if top == "projections":
            assert {each for each in modules if each.startswith("ledger.")} <= PURE, name
        if top == "replay" and name not in WRITERS | ON_AN_OVERLAY:
            assert not modules & {"ledger.storing.writer", "ledger.deciding.decider"}, name
        assert name in STORES or "eventsourcing" not in tops, name
        assert not any(each.startswith("forecast_ledger") for each in imports), f"{name}: the door is for those outside"


def test_rooms_say_what_they_are_for_and_form_no_circle() -> None:
    """One sentence at the door of a room, and one arrow at most between any two of them."""
    arrows: dict[str, set[str]] = {}
    for room in ROOMS:
        modules = [path for path in room.glob("*.py") if path.stem != "__init__"]
        assert ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))), (
            f"{_name(room)} does not say what it is for"
        )
        reached = {name.rpartition(".")[0] for path in modules for name in _modules(path)}
        arrows[_name(room)] = reached - {_name(room)}
    assert list(TopologicalSorter(arrows).static_order())


def test_pure_modules_name_no_clock_chance_environment_or_files() -> None:
    """Modules that decide and modules that project depend on their arguments alone."""
    for path in _pure():
        imports = set(_imports(path))
        roots = {name.split(".")[0] for name in imports}
        functions = {name for name in imports if name.startswith("math.")}
        assert functions <= {f"math.{name}" for name in INTEGER_MATH}, _name(path)
        assert not roots & IMPURE - ({"math"} if functions else set()), _name(path)
        calls = (node.func for node in _nodes(path.read_text("utf-8")) if isinstance(node, ast.Call))
        called = {function.id for function in calls if isinstance(function, ast.Name)}
        assert not called & {"open", "print", "input", "eval", "exec", "float", "hash", "id"}, _name(path)


def test_pure_modules_do_no_float_arithmetic() -> None:
    """No float literal, true division or float type, except in guarded estimates, which prove what they round."""
    for path in _pure():
        for node in _nodes(path.read_text("utf-8")) if path.stem != "estimates" else ():
            floating = isinstance(node, ast.Div) or isinstance(getattr(node, "value", None), float)
            named = isinstance(node, ast.Attribute) and node.attr.startswith("float")
            assert floating + named == 0, f"{_name(path)}: {ast.dump(node)}"


def test_files_and_functions_stay_small() -> None:
    """600 lines a file, 60 a function: past that, there is a second idea in it. A vocabulary may be longer."""
    for path in SOURCES:
        assert _name(path) in VOCABULARIES or len(path.read_text(encoding="utf-8").splitlines()) <= 600, _name(path)
        for node in _nodes(path.read_text("utf-8")):
            if isinstance(node, ast.FunctionDef) and node.end_lineno:
                assert node.end_lineno - node.lineno < 60, f"{_name(path)}.{node.name}"


WAY = ROOT / "docs/architecture.md"


def _steps() -> list[tuple[str, str]]:
    """The file and the name of each function in the tables of the way of a number."""
    tables = re.findall(
        r"(?m)^\| step \| where \| function \|\n\| --- \| --- \| --- \|\n((?:\|.*\|\n)+)", WAY.read_text("utf-8")
    )
    rows = [row.strip("| ").split(" | ") for table in tables for row in table.splitlines()]
    return [(where.strip("`"), name) for _, where, names in rows for name in re.findall("`(.*?)`", names)]


def _called(folder: Path) -> set[tuple[str, str]]:
    """The file and the name of each function that the commands of the way of a number call; each class for its methods.

    The body of a class, which is run when its module is loaded, is no call.
    """
    codes = set[tuple[str, CodeType]]()

    def note(frame: FrameType, what: str, _: object) -> None:
        if what == "call":
            codes.add((frame.f_globals.get("__name__", ""), frame.f_code))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run(WAY, reader(folder / "reader"), command_folder(folder / "bin"))
    finally:
        sys.setprofile(before)
    found = set[tuple[str, str]]()
    for module, code in codes:
        if module.startswith(PACKAGE) and code.co_flags & CO_OPTIMIZED and "<" not in code.co_qualname:
            file = f"{module.removeprefix(PACKAGE).replace('.', '/')}.py"
            found |= {(file, code.co_qualname), (file, code.co_qualname.partition(".")[0])}
    return found


def test_the_way_of_a_number_is_the_way_that_its_example_goes(tmp_path: Path) -> None:
    """The commands of docs/architecture.md call every function that its tables name, in the file that the row names."""
    steps, called = _steps(), _called(tmp_path)
    assert len(steps) > 50
    assert [step for step in steps if step not in called] == []
    assert not called & {  # what the page says is for other numbers
        ("ledger/deciding/questions.py", "submit_forecast"),
        ("projections/boards/prizes.py", "divide_pool"),
    }
