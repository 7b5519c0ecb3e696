"""The types of the ledger: commands, events, rule sets, and the row of the log that holds an event."""
