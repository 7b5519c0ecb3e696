"""What all commands of the command line share: options, exit codes, printing to files and terminals, completion."""
