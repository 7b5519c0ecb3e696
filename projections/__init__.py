"""What a log means: pure functions from its events to tables."""
