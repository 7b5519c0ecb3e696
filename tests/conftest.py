"""Settings of pytest and Hypothesis that take code."""

import os

import pytest
from hypothesis import settings

settings.register_profile("any machine", deadline=None)  # a loaded machine may take longer for an example than another
settings.load_profile("any machine")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """How many files run at once: one more than there are processors, because tests of faults wait for others."""
    return (os.cpu_count() or 1) + 1
