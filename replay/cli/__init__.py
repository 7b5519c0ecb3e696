"""The command line: the only room that reads arguments, prints, and configures logging; commands share `shell`."""
