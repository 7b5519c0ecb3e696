"""A log that is exported in every format."""

import pytest

from tests.support.exports import export_log


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The stories' log, which no test writes to."""
    return export_log(tmp_path_factory.mktemp("stories") / "log.db")
