"""The build installs one package, the same from a checkout and from an sdist, with types, beside others."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from hatch_build import described
from tests.support.effort import LONG
from tests.support.paths import ROOT

TOPS = ("data", "ledger", "projections", "replay")
OWN = ("__init__.py", "__main__.py", "py.typed")

# A program that embeds the package beside two packages whose names our folders have.
EMBEDDING = """
from typing import reveal_type

import ledger
import replay as recommender
import replay.models
from forecast_ledger import CATALOGUE, PRESETS, Refused, Runner, append, commands, events, explain, export
from forecast_ledger import open as open_ledger
from forecast_ledger import replay as replayed
from forecast_ledger import rules, verify

rain = commands.CloseQuestion(at="2026-03-08T00:00:00Z", question="rain")
with reveal_type(open_ledger(":memory:")) as log:
    reveal_type(log.subscribe())
    reveal_type(log.handle_many([rain]))
    reveal_type(replayed)
    reveal_type(replayed(log))
    reveal_type(replayed(log).table("scores"))
reveal_type(rain)
reveal_type(PRESETS)
reveal_type(CATALOGUE["scores"].meaning)
reveal_type(events.ForecastMade)
reveal_type(rules.RuleSet(name="mine"))
reveal_type(Refused("id_empty").to_dict())
reveal_type(Runner)
reveal_type(verify)
reveal_type(export)
reveal_type(append)
assert (ledger.OWNER, recommender.OWNER, replay.models.OWNER) == ("others", "others", "others")
"""
REVEALED = [
    "forecast_ledger.replay.writing.store.Ledger",
    "forecast_ledger.ledger.storing.subscription.Subscription",
    "list[forecast_ledger.ledger.batching.batch.Receipt | forecast_ledger.ledger.core.errors.Refused]",
    "def (log: str | os.PathLike[str] | forecast_ledger.replay.reading.replay.Readable, ",
    "forecast_ledger.replay.reading.replay.Replay",
    "forecast_ledger.projections.core.table.Table",
    "forecast_ledger.ledger.model.commands.CloseQuestion",
    "dict[str, forecast_ledger.ledger.model.rules.RuleSet]",
    "str",
    "def (*, at: int, question: str, participant: str, ",
    "forecast_ledger.ledger.model.rules.RuleSet",
    "dict[str, str | int]",
    "def (location: str | os.PathLike[str] | forecast_ledger.ledger.storing.stored_log.StoredLog, path: str | ",
    "def (location: str | os.PathLike[str], ",
    "def (log: str | os.PathLike[str], out: str | os.PathLike[str], ",
    "def (ledger: forecast_ledger.ledger.storing.writer.Ledger, ",
]
# What mypy does not read, libraries and rooms of ours: a type of the door that comes from there would be "Any".
_LIBRARIES = "numpy pyarrow eventsourcing structlog click rich sqlite_utils jinja2 asyncio multiprocessing concurrent"
_ROOMS = [f"projections.{name}" for name in ("boards", "facts", "scores", "studies", "trading")]
_ROOMS += ["ledger.deciding", "ledger.segments"]
UNREAD = f"""[mypy]
[mypy-{",".join(f"{name}.*" for name in _LIBRARIES.split())}]
follow_imports = skip
follow_imports_for_stubs = True
[mypy-{",".join(f"forecast_ledger.{name}.*" for name in _ROOMS)}]
follow_imports = skip
"""
# And one with four mistakes that a type checker is to find: a name that is not offered, twice; a field; an argument.
MISTAKEN = """import forecast_ledger
from forecast_ledger import Ledgr, commands, replay
forecast_ledger.Ledgr
commands.CloseQuestion(at="2026-03-08T00:00:00Z", question=7)
replay("season.db", as_off=3)
"""


def _run(folder: Path, *call: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(call, check=False, cwd=folder, capture_output=True, text=True)


def _build(folder: Path, into: Path, *kinds: str) -> None:
    done = _run(folder, sys.executable, "-m", "hatchling", "build", "-d", into, *(f"-t{kind}" for kind in kinds))
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of this checkout."""
    folder = tmp_path_factory.mktemp("built")
    _build(ROOT, folder, "sdist", "wheel")
    return folder


def _wheel(folder: Path) -> Path:
    [path] = folder.glob("*.whl")
    return path


def _files(folder: Path) -> set[str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in paths}


def test_the_wheel_has_one_package_with_every_file_once(built: Path) -> None:
    """Nothing else lands beside it; each file is that of the checkout, the worked examples and `py.typed` too."""
    expected = {f"{top}/{name}": ROOT / top / name for top in TOPS for name in _files(ROOT / top)}
    expected |= {name: ROOT / "forecast_ledger" / name for name in OWN}
    expected |= {
        f"bench/{name}": ROOT / "forecast_ledger/bench" / name for name in _files(ROOT / "forecast_ledger/bench")
    }
    assert len(expected) > 200
    with ZipFile(_wheel(built)) as wheel:
        names = wheel.namelist()
        assert len(names) == len({*names})
        tops = {name.partition("/")[0] for name in names}
        assert {re.sub(r"-[0-9.]+\.dist-info", ".dist-info", top) for top in tops} == {
            "forecast_ledger",
            "forecast_ledger.dist-info",
        }
        inside = {name.removeprefix("forecast_ledger/") for name in names if name.startswith("forecast_ledger/")}
        assert inside == {*expected}
        assert [
            name for name, path in expected.items() if wheel.read(f"forecast_ledger/{name}") != path.read_bytes()
        ] == []


def test_the_wheel_of_an_sdist_is_that_of_the_checkout(built: Path, tmp_path: Path) -> None:
    """The wheels are equal byte for byte; the sdist has the folders of the checkout, and the tests."""
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        assert len(archive.getnames()) == len({*archive.getnames()})
        archive.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    assert _files(ROOT / "tests") <= _files(unpacked / "tests")
    assert all(_files(ROOT / top) == _files(unpacked / top) for top in TOPS)
    _build(unpacked, tmp_path, "wheel")
    assert _wheel(tmp_path).read_bytes() == _wheel(built).read_bytes()


def test_the_description_leads_into_the_repository_or_nowhere(built: Path) -> None:
    """An index of packages has no files of the repository: links are absolute, or text while there is no address."""
    page = "![A board](docs/a.svg)\n\n*What it\nshows.*\n\n[A guide](docs/a.md#b), [a site](https://example.org).\n"
    address = "https://example.org/ledger"
    assert described(page, "") == "A guide, [a site](https://example.org).\n"
    assert (
        described(page, f"{address}/")
        == described(page, address)
        == (
            f"![A board]({address}/raw/HEAD/docs/a.svg)\n\n*What it\nshows.*\n\n"
            f"[A guide]({address}/blob/HEAD/docs/a.md#b), [a site](https://example.org).\n"
        )
    )
    with ZipFile(_wheel(built)) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        description = wheel.read(name).decode().partition("\n\n")[2]
    assert re.findall(r"\]\((?!https?:)[^)]*\)", description) == []
    blocks = re.compile(r"(?ms)^```.*?^```$")
    assert blocks.findall(description) == blocks.findall((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a checkout knows which files are kept")
def test_the_sdist_has_every_file_that_is_kept(built: Path) -> None:
    """But for the links of the package, which an sdist cannot hold and does not need."""
    [sdist] = built.glob("*.tar.gz")
    call = ["git", "ls-files", "-z"]
    kept = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    with tarfile.open(sdist) as archive:
        there = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in kept if (ROOT / name).exists()} - there == {f"forecast_ledger/{top}" for top in TOPS}


@pytest.fixture(scope="module")
def environment(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel, a stranger's `ledger` and `replay`, and what the wheel needs."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=os.name != "nt")
    names = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", names))
    with ZipFile(_wheel(built)) as wheel:
        wheel.extractall(site)  # noqa: S202 - built here
    for name in ("ledger/__init__.py", "replay/__init__.py", "replay/models/__init__.py"):
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text('OWNER = "others"\n', encoding="utf-8")
        (site / name).with_name("py.typed").touch()
    needed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "needed.pth").write_text("\n".join(needed), encoding="utf-8")
    return Path(sysconfig.get_path("scripts", "venv", names)) / "python"


def test_a_program_that_embeds_it_sees_real_types(environment: Path, tmp_path: Path) -> None:
    """`mypy --strict` accepts it, tells the type of each thing of the door, and finds what is mistaken.

    In a short run, mypy does not read libraries and rooms of which the door shows no types: half of its time.
    """
    (tmp_path / "embedding.py").write_text(EMBEDDING, encoding="utf-8")
    (tmp_path / "mistaken.py").write_text(MISTAKEN, encoding="utf-8")
    if LONG == 1:
        (tmp_path / "mypy.ini").write_text(UNREAD, encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--strict", f"--config-file={'mypy.ini' if LONG == 1 else ''}"]
    mypy += [f"--python-executable={environment}", f"--cache-dir={os.devnull}"]
    mypy += ["--hide-error-context", "--no-color-output", "--no-error-summary", "embedding.py", "mistaken.py"]
    said = _run(tmp_path, *mypy).stdout
    revealed = re.findall(r'^embedding.py:\d+: note: Revealed type is "(.*)"$', said, re.MULTILINE)
    assert len(revealed) == len(REVEALED), said
    for revealed_type, expected in zip(revealed, REVEALED, strict=True):
        assert revealed_type.startswith(expected) if expected.startswith("def (") else revealed_type == expected
        assert "Any" not in revealed_type
    wrong = re.findall(r"^(\w+)\.py:(\d+): error: .*\[([a-z-]+)\]$", said, re.MULTILINE)
    names = [("mistaken", "2", "attr-defined"), ("mistaken", "3", "attr-defined")]
    assert wrong == [*names, ("mistaken", "4", "arg-type"), ("mistaken", "5", "call-arg")], said


def test_it_runs_beside_packages_that_have_our_folders_names(environment: Path, tmp_path: Path) -> None:
    """Installed, it imports and shows its demonstration in an empty folder; theirs are what they were."""
    (tmp_path / "embedding.py").write_text(EMBEDDING, encoding="utf-8")
    ran = _run(tmp_path, environment, "-W", "error", "embedding.py")
    assert ran.returncode == 0, ran.stderr
    (tmp_path / "embedding.py").unlink()
    shown = _run(tmp_path, environment, "-m", "forecast_ledger", "demo")
    assert shown.stdout.endswith("112 of 112 published figures agree to their last digit.\n"), shown.stderr
    where = _run(tmp_path, environment, "-c", "import forecast_ledger as f; print(f.__path__)").stdout
    assert str(ROOT) not in where
    assert [*tmp_path.iterdir()] == []
