"""Audit a log: verify it, keep checkpoints, compare logs, look at single rows."""
