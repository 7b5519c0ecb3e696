"""Scores of questions: which questions and instants count, scoring kernels, time-weighted scores and coverage."""
