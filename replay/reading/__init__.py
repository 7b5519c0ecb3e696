"""Read a log up to a cut; print its events, rule sets and tables as text; the blocks that documents are made of."""
