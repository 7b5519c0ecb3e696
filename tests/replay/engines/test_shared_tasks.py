"""Tasks that this process and others share."""

import sys
from unittest.mock import Mock

from forecast_ledger.replay.engines.pool import Pool
from forecast_ledger.replay.engines.shared_tasks import SharedTasks


def test_a_thread_that_serves_a_process_is_let_in_sooner_until_the_tasks_are_closed() -> None:
    """Python lets another thread wait 5 ms, in which the process that this thread serves has no task."""
    usual = sys.getswitchinterval()
    tasks = SharedTasks(None, Mock(), Mock(Pool))
    assert sys.getswitchinterval() < usual
    tasks.close()
    assert sys.getswitchinterval() == usual


def test_without_other_processes_threads_change_as_before() -> None:
    """No thread serves one."""
    usual = sys.getswitchinterval()
    tasks = SharedTasks(None, Mock(), None)
    assert sys.getswitchinterval() == usual
    tasks.close()
    assert sys.getswitchinterval() == usual
