"""The exit codes of the command line, and what each means."""

FINE, FINDINGS, USAGE, UNREADABLE, DAMAGED, UNCERTAIN = range(6)
EXITS = {
    FINE: "fine",
    FINDINGS: "findings: a command was refused, or a figure, a prize, a checkpoint, a log or a read model differs",
    USAGE: "wrong usage, or a request that was refused",
    UNREADABLE: "the store cannot be opened, read, locked or written, or the input or output failed",
    DAMAGED: "the log is damaged, or a newer version wrote it; the message names the log position",
    UNCERTAIN: "the store failed while recording: perhaps the commands are recorded; it is safe to send them again",
}
SIGNALLED = 128  # plus the number of the signal, as in shells
