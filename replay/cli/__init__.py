"""The command line: the only place that reads arguments, prints, and configures logging."""
