"""The parts that all commands share: options, exit codes, printing to files and terminals, completion."""
