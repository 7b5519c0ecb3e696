"""Audit a log: rebuild each command from its events, and decide it again; the events must be the same."""
