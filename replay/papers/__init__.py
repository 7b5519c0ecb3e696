"""Working papers: what was checked in a log, what was found, and what was not checked."""
