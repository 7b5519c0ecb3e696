"""The name and version of this code, which are said in one place: `pyproject.toml`."""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

NAME = "forecast-ledger"
UNKNOWN = "unknown"  # of files that were copied without their project


def code_version() -> str:
    """That of the installed distribution; if there is none, that of the checkout which this file is in."""
    try:
        return version(NAME)
    except PackageNotFoundError:
        return _checkout_version()


def _checkout_version() -> str:
    for folder in Path(__file__).parents:
        try:
            project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        except (OSError, ValueError, KeyError):
            continue
        if project.get("name") == NAME:
            return str(project["version"])
    return UNKNOWN
