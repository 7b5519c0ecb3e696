"""Commands, the decisions that turn them into events, and the log that keeps the events."""
