"""Benchmarks: python -m forecast_ledger.bench. Each ratio compares two measurements within one run."""
