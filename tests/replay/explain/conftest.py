"""Fixtures of the tests of explanations: the logs of the stories."""

from collections.abc import Callable
from functools import cache

import pytest

from tests.support.logs import commands_of, written


@pytest.fixture(scope="session")
def log_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The path of a story's log, which no test writes to."""
    folder = tmp_path_factory.mktemp("stories")
    return cache(lambda story: written(folder / f"{story}.db", commands_of(story)))
