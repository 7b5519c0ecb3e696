"""Export logs and tables to CSV, JSON lines, Parquet, Arrow or SQLite, and import exported logs."""
