"""Commands from files: JSON lines, CSV by a map, trial runs, payments."""
