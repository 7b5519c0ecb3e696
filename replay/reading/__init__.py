"""Replay a log as of a cut; print tables, events and rule sets."""
