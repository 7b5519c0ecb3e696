"""Difficulty: scores compared though participants forecast on different questions: adjusted scores, relative skill."""
