"""The version: said in one place, and known with and without an installed distribution."""

import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from forecast_ledger.ledger.core import version
from tests.replay.cli.test_main import run
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(autouse=True)
def read_anew() -> Iterator[None]:
    """What a test finds as the version is not kept, nor is what was found before."""
    version.code_version.cache_clear()
    yield
    version.code_version.cache_clear()


def _missing(name: str) -> str:
    raise metadata.PackageNotFoundError(name)


def test_the_version_is_that_of_the_installed_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--version` prints its name and version, and so does a checkpoint."""
    monkeypatch.setattr(metadata, "version", lambda name: f"9.8.7 of {name}")
    assert run("--version").stdout == "forecast-ledger 9.8.7 of forecast-ledger\n"


def test_a_checkout_that_is_not_installed_has_the_version_of_its_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read from pyproject.toml, which is the only place that says it."""
    monkeypatch.setattr(metadata, "version", _missing)
    assert run("--version").stdout == f"{PROJECT['name']} {PROJECT['version']}\n"


def test_files_without_a_project_have_an_unknown_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a distribution nor a pyproject.toml of this name: it is said, and nothing fails."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\nversion = "3"\n', encoding="utf-8")
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "pyproject.toml").write_text("no [toml", encoding="utf-8")
    monkeypatch.setattr(metadata, "version", _missing)
    monkeypatch.setattr(version, "__file__", str(tmp_path / "room" / "version.py"))
    assert run("--version").stdout == "forecast-ledger unknown\n"
