"""Deciding a log again: each command is rebuilt from its events and must lead to the same events."""
