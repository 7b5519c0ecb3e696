"""Ranges: what is wrong with numeric forecasts: parts of interval scores, coverages, tenths in which answers fell."""
