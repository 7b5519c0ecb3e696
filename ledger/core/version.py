"""The name and version of this package, as `pyproject.toml` states them."""

import tomllib
from functools import cache
from pathlib import Path

DISTRIBUTION = "forecast-ledger"
UNKNOWN_VERSION = "unknown"  # if the files were copied without pyproject.toml


@cache
def code_version() -> str:
    """Return the version of the installed distribution or, if none is installed, of this checkout; read once."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - late: it takes 10 ms

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return _checkout_version()


def _checkout_version() -> str:
    for folder in Path(__file__).parents:
        try:
            project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        except (OSError, ValueError, KeyError):
            continue
        if project.get("name") == DISTRIBUTION:
            return str(project["version"])
    return UNKNOWN_VERSION
