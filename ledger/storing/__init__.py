"""The writer, and the stores that keep a log: SQLite, PostgreSQL or memory; subscriptions to new events."""
