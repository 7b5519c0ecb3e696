"""Libraries that few tests need: every run imports the modules of all tests, and each of these takes a while."""

from importlib import import_module
from typing import Any


class _Late:
    """A library, imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):  # pytest asks every object of a module of tests what it is
            raise AttributeError(name)
        return getattr(import_module(self._name), name)


def late(name: str) -> Any:
    """A library by its name."""
    return _Late(name)


duckdb = late("duckdb")
openpyxl = late("openpyxl")
pandas = late("pandas")
polars = late("polars")
sqlite_utils = late("sqlite_utils")
