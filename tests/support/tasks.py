"""Tasks of processes that a test starts. They import no more than a task needs, because each process imports them."""

from forecast_ledger.ledger.core.errors import Corrupt


def twice(number: int) -> int:
    """A task."""
    return 2 * number


def much(_: int) -> bytes:
    """A task whose result does not go into a pipe at once."""
    return bytes(10**8)


def damaged(_: int) -> None:
    """A task that finds damage."""
    raise Corrupt(7, "found")


def nothing(_: object) -> None:
    """How a process begins that needs nothing."""
