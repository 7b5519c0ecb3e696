"""Where a number comes from: explanations, differences between two cuts, blame, trial rules."""
