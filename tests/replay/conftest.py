"""Fixtures of the tests of reading a log: the log of the first story; segments that are not read as they are sealed."""

from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile

import pytest

from forecast_ledger.ledger.segments import sealing
from tests.support.logs import commands_of, log_fixture

recorded_story = log_fixture(lambda: commands_of("metaculus-2022"), "session")  # no test writes to it


@pytest.fixture
def log(recorded_story: str, tmp_path: Path) -> str:
    """A copy of it, to be written to."""
    return str(copyfile(recorded_story, tmp_path / "story.db"))


@pytest.fixture(scope="module")
def quickly_sealed() -> Iterator[None]:
    """Segments are not read again as they are sealed: for tests that read them and compare what is there with rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing, "_check_written", lambda *_: None)
        yield
