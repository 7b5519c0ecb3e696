"""The rules of the ledger: a state and a command give events or a refusal; an event gives the next state."""
