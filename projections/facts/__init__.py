"""The facts of a log as columns: events are checked and filed; nothing is scored here."""
