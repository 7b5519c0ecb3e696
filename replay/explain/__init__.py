"""The origin of numbers: explanations, differences between two points of a log, blame, other rules."""
