"""Commands from files: JSON lines, CSV with a map, trial runs, prize payments."""
