"""Calibration: how often what was forecast happened, by option and by open time; bands; thresholds of action."""
