"""What a writer hands back for a command that is recorded."""

from msgspec import Struct


class Receipt(Struct, frozen=True, gc=False):
    """Where a command's events are in the log; `duplicate` if they had been recorded before."""

    command_id: str
    first: int
    last: int
    duplicate: bool = False
