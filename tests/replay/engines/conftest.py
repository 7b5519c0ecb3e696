"""Fixtures of the tests of engines: a log with a folder of segments beside it."""

from pathlib import Path
from shutil import copyfile, copytree

import pytest

from forecast_ledger.replay.files.export import seal


@pytest.fixture(scope="session")
def sealed_story(recorded_story: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log of the first story and its segments, which no test writes to."""
    folder = tmp_path_factory.mktemp("sealed")
    copyfile(recorded_story, folder / "season.db")
    seal(folder / "season.db", folder / "season.db.segments", rows=10)
    return folder


@pytest.fixture
def season(sealed_story: Path, tmp_path: Path) -> Path:
    """The log of a tournament with a folder of segments beside it: copies, to be changed."""
    copytree(sealed_story, tmp_path, dirs_exist_ok=True)
    return tmp_path / "season.db"
