"""Scores of questions: what counts and when, kernels, what forecasts are compared with, terms, scores and coverage."""
