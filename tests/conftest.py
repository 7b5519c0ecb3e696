"""Settings of pytest that take code."""

import os

import pytest


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """How many files run at once: one more than there are processors, because tests of faults wait for others."""
    return (os.cpu_count() or 1) + 1
