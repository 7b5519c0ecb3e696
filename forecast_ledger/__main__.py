"""The command line: python -m forecast_ledger."""

import sys

try:
    from forecast_ledger.replay.cli.main import main
    from forecast_ledger.replay.console.signals import end_in_time
except KeyboardInterrupt:
    sys.exit(130)

__all__ = ["main", "run"]


def run() -> None:
    """Run the command line as a program of its own, which one SIGINT or SIGTERM ends within two seconds."""
    end_in_time()
    main()


if __name__ == "__main__":
    run()
