"""The command line: python -m forecast_ledger."""

from forecast_ledger.replay.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
