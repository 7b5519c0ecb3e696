"""What a log says, as columns: events are checked and filed; nothing is scored here."""
