"""Logs and tables as files: exports to CSV, JSON lines, Parquet and SQLite, and back."""
