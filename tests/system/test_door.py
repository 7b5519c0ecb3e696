"""The door of the package: what it offers, that it loads late, and that every name has an example."""

import ast
import doctest
import inspect
import json
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import forecast_ledger
from tests.support.effort import LONG
from tests.support.paths import ROOT

NAMES = sorted(forecast_ledger.__all__)
SLOWEST = 0.05  # s that the import may take, on one processor
HEAVY = {"numpy", "msgspec", "eventsourcing", "click", "structlog", "sqlite3", "logging", "decimal"}


def _python(code: str, *options: str) -> str:
    """The output of a new interpreter that runs this code, with the checkout as its folder."""
    done = subprocess.run([sys.executable, *options, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _typed() -> dict[str, tuple[str, str]]:
    """The names that type checkers see, each with its module and its name there."""
    tree = ast.parse(Path(forecast_ledger.__file__).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names}


def test_what_is_listed_is_what_is_offered() -> None:
    """`__all__`, `dir`, the names that type checkers see and those that the program finds are the same, each once."""
    assert NAMES == sorted({*forecast_ledger.__all__}) == sorted(_typed()) == sorted(vars(forecast_ledger)["_OFFERED"])
    assert {*NAMES} <= {*dir(forecast_ledger)}
    listed = _python("import forecast_ledger; print(*dir(forecast_ledger))").split()
    assert {*NAMES} <= {*listed}, "before anything is loaded"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_the_object_that_type_checkers_see(name: str) -> None:
    """The object may have another name there."""
    module, attribute = _typed()[name]
    try:
        seen = getattr(import_module(module), attribute)
    except AttributeError:
        seen = import_module(f"{module}.{attribute}")
    assert getattr(forecast_ledger, name) is seen


def test_importing_it_is_quick_and_loads_no_library() -> None:
    """The processor's time over that of an empty interpreter, best of a few; of ours, only a folder is loaded."""
    clock = "import time; print(time.process_time())"
    empty, ours = (min(float(_python(code)) for _ in range(5)) for code in (clock, f"import forecast_ledger; {clock}"))
    assert ours - empty < SLOWEST
    loaded = _python("import forecast_ledger, sys; print(*sys.modules)").split()
    assert not HEAVY & {*loaded}
    ours_loaded = sorted(name for name in loaded if name.startswith("forecast_ledger"))
    assert ours_loaded == ["forecast_ledger", "forecast_ledger.replay"]


CALLED = """
import inspect
import pydoc
import forecast_ledger
from forecast_ledger import open, replay
with open(":memory:") as ledger:
    print(replay(ledger).checkpoint.position, forecast_ledger.replay(log=ledger, as_of=0).checkpoint.position)
from forecast_ledger.replay.reading import replay as module
print(replay is forecast_ledger.replay is module.replay, *inspect.signature(replay).parameters)
print(pydoc.render_doc(forecast_ledger.replay).splitlines()[0])
"""
KEPT = """
import forecast_ledger as f
print(all(getattr(f, name) is f.__dict__[name] is getattr(f, name) for name in {names}))
"""
APART = """
import os, sys
import eventsourcing.sqlite, msgspec, numpy, pyarrow, structlog  # of others, which take most of the time
import calendar, concurrent.futures.process, csv, difflib, email.message, hashlib, importlib.metadata
import importlib.resources, multiprocessing.context, tempfile, tomllib, xml.parsers.expat, zipfile, zoneinfo
for program in {programs}:
    if not os.fork():  # of an interpreter that has imported nothing of ours
        exec(program, {{}})
        sys.stdout.flush()
        os._exit(0)  # at once: to end an interpreter takes longer than most of the programs
    print("ended with", os.wait()[1], flush=True)
"""


def _apart(programs: list[str]) -> list[str]:
    """The output of each program, which nothing of ours was imported for; they must end well."""
    told = _python(APART.format(programs=programs), "-W", "error")
    assert told.count("ended with 0") == len(programs), told
    return told.split("ended with 0")[:-1]


def test_every_name_loads_with_nothing_imported_before() -> None:
    """No name needs one of another module first, and each is kept: the second look finds the object itself.

    In a short run, the names of every third module; no module is in a circle of imports, as another test finds.
    Whatever was imported before, `replay` is the function's, with its signature and its help, though a folder of that
    name has the modules.
    """
    typed = _typed()
    every = [[*names] for _, names in groupby(sorted(NAMES, key=typed.__getitem__), lambda name: typed[name][0])]
    before = ["", "from forecast_ledger.replay.reading import log", "import forecast_ledger.replay"]
    named = [KEPT.format(names=names) for names in every[:: 3 if LONG == 1 else 1]]
    told = [text.splitlines() for text in _apart([*named, *(f"{first}{CALLED}" for first in before)])]
    assert [line[-1] for line in told[: len(named)]] == ["True"] * len(named)
    for lines in told[len(named) :]:
        assert lines[-3:] == [
            "0 0",
            "True log name as_of on_progress segments trust engine tables memory",
            "Python Library Documentation: function replay in module forecast_ledger.replay.reading.replay",
        ]


def test_a_name_that_is_not_offered_is_refused_with_the_nearest() -> None:
    """An AttributeError of this module, to which the interpreter adds what was perhaps meant."""
    with pytest.raises(AttributeError, match=r"module 'forecast_ledger' has no attribute 'Ledgr'"):
        _ = forecast_ledger.Ledgr  # type: ignore[attr-defined]
    with pytest.raises(subprocess.CalledProcessError) as failed:
        _python("import forecast_ledger; forecast_ledger.Ledgr")
    assert failed.value.stderr.strip().endswith("Did you mean: 'Ledger'?")
    with pytest.raises(ImportError, match="Ledgr"):
        from forecast_ledger import Ledgr  # type: ignore[attr-defined] # noqa: F401, PLC0415


def _examples(name: str) -> str:
    """The docstring that has the examples of a name: its own, or, of a constant, the door's."""
    if isinstance(vars(forecast_ledger).get(name), dict):
        return str(forecast_ledger.__doc__)
    return str(inspect.unwrap(getattr(forecast_ledger, name)).__doc__)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "open"])  # another name of open_ledger
def test_every_name_has_an_example_that_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its example imports it from the door and nothing of ours from elsewhere, and needs nothing else that is there."""
    getattr(forecast_ledger, name)
    text = _examples(name)
    examples = doctest.DocTestParser().get_examples(text)
    imports = [each.source for each in examples if "forecast_ledger" in each.source]
    assert any(re.search(rf"\bfrom forecast_ledger import .*\b{name}\b", source) for source in imports)
    assert not [source for source in imports if "forecast_ledger." in source]
    assert any(re.search(rf"\b{name}\b", each.source) for each in examples if each.source not in imports)
    monkeypatch.chdir(ROOT)
    doctests = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert doctest.DocTestRunner(verbose=False).run(doctests).failed == 0


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: page.name
)
def test_examples_in_prose_import_from_the_door(page: Path) -> None:
    """Pages for people who embed the package import only the names that `forecast_ledger` offers."""
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"(?m)^(?:>>> |\.\.\. )? *(?:from|import) forecast_ledger\..*$", text) == []
    names = re.findall(r"(?m)^(?:>>> |\.\.\. )? *from forecast_ledger import (.*)$", text)
    assert {name.split(" as ")[0].strip() for each in names for name in each.split(",")} <= {*NAMES}


def test_help_is_readable() -> None:
    """`help(forecast_ledger)` begins with what it is and an example, and lists the names."""
    text = pydoc.plain(pydoc.render_doc(forecast_ledger))
    lines = text.splitlines()
    assert any("An event-sourced ledger for forecasting tournaments" in line for line in lines[:6])
    assert "from forecast_ledger import commands, open_ledger, replay" in text
    missing = [name for name in NAMES if not re.search(rf"\b{name}\b", text)]
    assert not missing


def test_the_package_is_the_command_line() -> None:
    """`python -m forecast_ledger` runs `forecast-ledger`."""
    call = [sys.executable, "-m", "forecast_ledger", "--help"]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Usage: " in done.stdout
    assert " demo " in done.stdout


def _opened(path: Path) -> Iterator[Any]:
    """The result of each public function that takes a log, for this log, given as a path."""
    with forecast_ledger.open(path) as ledger, (ROOT / "data/metaculus-2022/commands.jsonl").open("rb") as file:
        yield forecast_ledger.append(ledger, file)["accepted"]
    yield forecast_ledger.replay(path).checkpoint.position
    yield forecast_ledger.verify(path).position
    yield forecast_ledger.explain(path, "prize", "plain", "B").checkpoint.position
    yield forecast_ledger.export(path, path.with_suffix(".csv")).log_position
    yield forecast_ledger.restore(path.with_suffix(".csv"), path.with_suffix(".copy"))
    with forecast_ledger.Runner(path, path.with_suffix(".tables")) as runner:
        yield runner.refresh().reached.position


def test_a_log_may_be_named_by_a_path(tmp_path: Path) -> None:
    """Every function that takes the location of a log or an export accepts a Path as well as text."""
    assert [*_opened(tmp_path / "season.db")] == [34] * 7


def test_a_checkout_without_links_can_be_imported(tmp_path: Path) -> None:
    """As from a zip file, an sdist or a Windows checkout, where the links are missing or are small text files."""
    (tmp_path / "forecast_ledger").mkdir()
    for path in (ROOT / "forecast_ledger").glob("*.py"):
        (tmp_path / "forecast_ledger" / path.name).write_bytes(path.read_bytes())
    for top in ("data", "ledger", "projections", "replay"):
        (tmp_path / top).symlink_to((ROOT / top).resolve())
        (tmp_path / "forecast_ledger" / top).write_text(f"../{top}", encoding="utf-8")
    call = [sys.executable, "-m", "forecast_ledger", "demo"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("112 of 112 published figures agree to their last digit.\n")


@pytest.mark.skipif(not (ROOT / "forecast_ledger" / "ledger").is_dir(), reason="here, the checkout's links are missing")
def test_the_links_of_the_checkout_lead_to_its_folders() -> None:
    """The import path has each folder once, and no module of ours can be imported under a second name."""
    package = Path(forecast_ledger.__file__).parent
    for top in ("data", "ledger", "projections", "replay"):
        assert (package / top).samefile(ROOT / top)
    assert [*forecast_ledger.__path__] == [str(package)]
    loaded = {name for name, module in sys.modules.items() if isinstance(module, ModuleType)}
    assert not {"ledger", "projections", "replay"} & loaded
    assert json.loads(_python("import json, forecast_ledger as f; print(json.dumps([*f.__path__]))")) == [str(package)]


def _returned() -> Iterator[tuple[str, Any]]:
    """The functions of the door, and the methods of its classes that open, follow and read logs."""
    for name in ("Ledger", "Receipt", "Replay", "Runner"):
        for method, function in inspect.getmembers(getattr(forecast_ledger, name), inspect.isfunction):
            if not method.startswith("_"):
                yield f"{name}.{method}", function
    yield from ((name, each) for name in NAMES if inspect.isfunction(each := getattr(forecast_ledger, name)))


def test_every_class_that_is_returned_is_offered() -> None:
    """So that a program can name it in its annotations; `facts` returns the records that tables are made of."""
    classes = re.compile(r"[A-Z]\w*[a-z]\w*")
    named = {
        (name, word)
        for name, function in _returned()
        for word in classes.findall(str(inspect.unwrap(function).__annotations__.get("return", "")).split(".")[-1])
    }
    missing = {(name, word) for name, word in named if word not in {*NAMES, "Iterator", "Iterable", "Sequence", "None"}}
    assert missing == {("facts", "Facts")}
    assert ("Ledger.subscribe", "Subscription") in named
