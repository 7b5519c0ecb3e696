"""From facts to scores: which questions and instants count, what a forecast is worth, and coverage."""
