"""Where a user may start no more processes or threads, a command does its work alone, and prints the same."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from forecast_ledger.replay.cli.main import FINE
from tests.replay.checking.test_side_by_side import FORECASTS
from tests.replay.cli.test_main import run
from tests.support.given import entry, resolution
from tests.support.logs import written
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE

USER = str(50_000 + os.getpid() % 10_000)  # runs nothing else; root has no such limit
SETPRIV = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
SETPRIV += [f"--{kind}-caps=+dac_override,+dac_read_search" for kind in ("inh", "ambient")]  # it reads what root may
COMMANDS = [
    ["leaderboard", "LOG", "cup"],
    ["verify", "LOG"],
    ["explain", "LOG", "score", "cup", "rain", "ada"],
    ["replay", "LOG"],
    ["replay", "LOG", "--engine", "processes"],
    ["export", "LOG", "OUT", "--format", "csv"],
]
LIMITED = """
import json, os, resource, sys
from importlib import import_module
from click.testing import CliRunner
from forecast_ledger.replay.checking import side_by_side
from forecast_ledger.replay.cli.main import main
from forecast_ledger.replay.cli.signals import end_in_time
from forecast_ledger.replay.engines import engines, row_pages
replaying = import_module("forecast_ledger.replay.reading.replay")
most, commands = json.loads(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
end_in_time()
row_pages.MANY = side_by_side.MANY = side_by_side.LEAST = replaying.MANY = 1
row_pages.PART = side_by_side.PART = 7
for module in (row_pages, side_by_side, engines):
    module.processors = lambda: 2
tried, fork = [], os.fork
def counted():
    tried.append(1)
    return fork()
os.fork = counted
for command in commands:
    done = CliRunner().invoke(main, command)
    print(json.dumps([len(tried), done.exit_code, done.stdout, done.stderr]))
"""


def commands(folder: Path, out: str) -> list[list[str]]:
    """The commands on a log in a folder, in which they export to this name."""
    return [
        [{"LOG": str(folder / "log.db"), "OUT": str(folder / out)}.get(word, word) for word in each]
        for each in COMMANDS
    ]


def ran(most: int, folder: Path) -> list[tuple[int, int, str, str]]:
    """For each command, how many forks were tried by then, its exit code and its output.

    most: processes and threads of the user, who has a log in the folder.
    """
    given = json.dumps([most, commands(folder, f"out-{most}")])
    program = [*SETPRIV, sys.executable, "-W", "ignore", "-c", LIMITED, given]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return [
        (tried, code, out, err.replace(f"out-{most}", "out"))
        for tried, code, out, err in map(json.loads, done.stdout.splitlines())
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux is the command line forked")
def test_where_no_process_can_be_started_each_command_does_its_work_alone() -> None:
    """With the process itself, and perhaps the thread that waits for signals, the user has as many as it may."""
    if os.geteuid() or subprocess.run([*SETPRIV, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs to be root, and setpriv, to run as a user who runs nothing else")
    with TemporaryDirectory() as name:  # which the user can reach
        folder = Path(name)
        written(folder / "log.db", [*FORECASTS[:2], entry(), *FORECASTS[2:], resolution()])
        for each in (folder, *folder.iterdir()):
            os.chown(each, int(USER), int(USER))
        done = [run(*command) for command in commands(folder, "out")]
        free = [(FINE, each.stdout, each.stderr) for each in done]
        limited, alone = ran(2, folder), ran(1, folder)
        assert [row[1:] for row in limited] == [row[1:] for row in alone] == free
        assert limited[-1][0] > alone[-1][0] == 0  # without its thread it does not try
        outs = [folder / name for name in ("out", "out-2", "out-1")]
        exported = [{file.name: file.read_bytes() for file in out.iterdir()} for out in outs]
        assert exported[0] == exported[1] == exported[2] != {}
