"""Incremental updates: the parts of tables that new events change, computed again."""
