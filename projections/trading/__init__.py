"""Marks, portfolios, bet scores and leaderboards of trading contests, from movements of cash and shares."""
