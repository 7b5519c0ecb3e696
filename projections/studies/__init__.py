"""Studies of scores: calibration, ranges, difficulty, and how sure boards are."""
