"""References, which scores compare forecasts with: the uniform distribution, the peers, or the consensus."""
