"""The writer and the stores: what appends to a log, in SQLite or PostgreSQL, and what waits for new rows."""
