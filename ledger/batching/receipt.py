"""The receipt of a command that is recorded."""

from msgspec import Struct

from forecast_ledger.ledger.model.events import RefusedQuote


class Receipt(Struct, frozen=True, gc=False):
    """The first and last log position of a command's events; `duplicate` if the command was recorded before.

    refused: of a quote with skip_bad, the prices that were not recorded, also on a retry.

    >>> from forecast_ledger import Receipt, commands, open
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with open(":memory:") as ledger:
    ...     receipts: list[Receipt] = [ledger.handle(contest, command_id="open-spring") for _ in range(2)]
    >>> [(receipt.first, receipt.last, receipt.duplicate) for receipt in receipts]
    [(1, 1, False), (1, 1, True)]
    """

    command_id: str
    first: int
    last: int
    duplicate: bool = False
    refused: tuple[RefusedQuote, ...] = ()
