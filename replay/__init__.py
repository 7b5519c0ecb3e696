"""Questions put to a log, and everything that talks to files, databases and people."""
