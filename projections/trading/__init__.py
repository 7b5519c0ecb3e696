"""From movements of cash and shares to portfolios, bet scores and the boards of trading contests."""
