"""Run the demo and a part of the tests with this Python, on any system: stores, command line, scores.

The environment needs the extras columnar, report and sheets, and hypothesis, pytest and pytest-xdist. Arguments are
files of tests to run in place of these.
"""

import subprocess
import sys

ANYWHERE = ("tests/ledger/deciding/test_contests.py", "tests/projections/scores/test_kernels.py")
POSIX = ("tests/ledger/storing/test_stored_log.py", "tests/replay/cli/test_main.py")


def main() -> None:
    """End with the exit code of what fails first."""
    python = sys.executable
    tests = tuple(sys.argv[1:]) or ANYWHERE + (() if sys.platform == "win32" else POSIX)
    print(f"Python {sys.version.split()[0]} on {sys.platform}", flush=True)
    for command in (
        [python, "-W", "error", "-m", "forecast_ledger", "demo"],
        [python, "-m", "pytest", "-n", "0", "-rs", *tests],
    ):
        done = subprocess.run(command, check=False)
        if done.returncode:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main()
