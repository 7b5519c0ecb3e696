"""Whether a log is what it should be: verification, checkpoints, comparison, single rows."""
