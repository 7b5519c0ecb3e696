"""A read model: tables in an SQLite file, kept up to date with a log, and checked against it."""
