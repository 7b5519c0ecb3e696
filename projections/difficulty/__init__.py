"""Difficulty: the effects of questions and participants on scores, by exact least squares in two ways."""
