"""An event-sourced ledger for forecasting tournaments and paper-trading benchmarks."""
