"""From scores to boards: totals, ranks, takes, prizes, Brier aggregates, admissions."""
