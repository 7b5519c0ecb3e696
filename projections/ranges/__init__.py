"""Ranges: what is wrong with numeric forecasts: the parts of interval scores, and in which tenth answers fell."""
