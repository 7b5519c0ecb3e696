"""Fixtures of the tests of reading a log: the log of the first story."""

from pathlib import Path
from shutil import copyfile

import pytest

from tests.support.logs import commands_of, log_fixture

recorded_story = log_fixture(lambda: commands_of("metaculus-2022"), "session")  # no test writes to it


@pytest.fixture
def log(recorded_story: str, tmp_path: Path) -> str:
    """A copy of it, to be written to."""
    return str(copyfile(recorded_story, tmp_path / "story.db"))
