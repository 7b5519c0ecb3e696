"""Fixtures of the tests of reading a log: the log of the first story."""

from pathlib import Path
from shutil import copyfile

import pytest

from tests.support.logs import commands_of, written


@pytest.fixture(scope="session")
def recorded_story(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log of the first story, which no test writes to."""
    return written(tmp_path_factory.mktemp("story") / "log.db", commands_of("metaculus-2022"))


@pytest.fixture
def log(recorded_story: str, tmp_path: Path) -> str:
    """A copy of it, to be written to."""
    return str(copyfile(recorded_story, tmp_path / "story.db"))
