"""What the ledger speaks of: commands, events, rule sets, and the row of the log that holds an event."""
