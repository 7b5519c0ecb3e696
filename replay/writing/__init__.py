"""Commands from files of JSON lines, trial runs, prize payments."""
