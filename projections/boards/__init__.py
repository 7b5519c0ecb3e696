"""Boards: totals, ranks, takes, prizes, Brier aggregates and the admission of forecasts."""
