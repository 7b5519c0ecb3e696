"""The command line: python -m forecast_ledger."""

import atexit
import gc
import sys

try:
    from forecast_ledger.replay.cli.main import main
    from forecast_ledger.replay.cli.signals import end_in_time
except (KeyboardInterrupt, RuntimeError) as stopped:  # before 3.12, Python makes the other one of it in `__set_name__`
    if not isinstance(stopped.__cause__ or stopped, KeyboardInterrupt):
        raise
    sys.exit(130)

__all__ = ["main", "run"]


def run() -> None:
    """Run the command line as a program of its own, which one SIGINT or SIGTERM ends within two seconds."""
    # Hardly anything that a command makes is garbage: most of it is modules. The searches for it, at the end too, would
    # take a fifth of the time of a short command.
    gc.set_threshold(100_000, 50, 100)
    atexit.register(gc.freeze)
    try:
        end_in_time()
        main()
    except KeyboardInterrupt:  # before the command has begun, or after its end
        sys.exit(130)


if __name__ == "__main__":
    run()
