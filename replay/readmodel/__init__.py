"""A read model: tables in SQLite or PostgreSQL, kept up to date with a log, and checked against it."""
