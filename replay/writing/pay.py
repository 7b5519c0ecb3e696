"""The prizes of a finalized contest, and their payment."""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Self

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import Instant
from forecast_ledger.ledger.model.canonical import normal_content
from forecast_ledger.ledger.model.commands import PayPrizes
from forecast_ledger.ledger.model.log import Recorded, fingerprint
from forecast_ledger.ledger.storing import writer
from forecast_ledger.projections.facts.from_log import facts
from forecast_ledger.projections.tables.catalogue import Projections


def prizes_from_log(pages: Iterable[Sequence[Recorded]], contest: str) -> dict[str, int]:
    """Return each winner's part of a contest's pool, 1e-6, from the pages of a log; for `Ledger.open`.

    Later events do not change the prizes of a sealed board. Raises Corrupt, KeyError (no such contest).
    """
    return {prize.participant: prize.prize for prize in Projections(facts(pages)).prizes(contest) if prize.prize}


class Ledger(writer.Ledger):
    """A ledger in a store, which can also pay prizes. Threads may share it; processes may open the same store.

    >>> from forecast_ledger import Ledger
    >>> with Ledger.open(":memory:") as ledger:
    ...     ledger.head().position
    0
    """

    @classmethod
    def open(  # noqa: PLR0913 - as in the ledger that it extends
        cls,
        location: str | PathLike[str],
        name: str = "main",
        *,
        clock: Callable[[], int] | None = None,
        prizes: writer.Prizes | None = prizes_from_log,
        segments: str | PathLike[str] | None = None,
        claims: str | None = None,
    ) -> Self:
        """Open or create a ledger in an SQLite file, in memory (":memory:"), or at a postgresql:// URL.

        Its arguments and errors are those of the ledger that it extends; prizes are computed from the log.
        """
        return super().open(location, name, clock=clock, prizes=prizes, segments=segments, claims=claims)


def open_ledger(
    location: str | PathLike[str],
    name: str = "main",
    *,
    clock: Callable[[], int] | None = None,
    segments: str | PathLike[str] | None = None,
    claims: str | None = None,
) -> Ledger:
    """Open or create a ledger. `Ledger.open` is the same, and `forecast_ledger.open`, which hides Python's own `open`.

    >>> from forecast_ledger import open_ledger
    >>> with open_ledger(":memory:") as ledger:
    ...     list(ledger.read())
    []
    """
    return Ledger.open(location, name, clock=clock, segments=segments, claims=claims)


def pay(ledger: writer.Ledger, contest: str, at: Instant | None = None) -> Receipt | None:
    """Record the prizes of a finalized contest that are not recorded yet; return None if all are.

    If a log ends between two prizes, the rest is recorded, although the log has the command's id already. The ledger
    must have been opened with `prizes`. at: by default, the instant at which it is recorded. Raises what
    `Ledger.handle` raises, except prizes_paid.
    """
    command = PayPrizes(at=at, contest=contest)
    name = first = f"pay {fingerprint(normal_content(command))}"
    try:
        while (receipt := ledger.handle(command, name)).duplicate:
            name = f"{first} {receipt.last}"  # the id of the command that pays the rest
    except Refused as refused:
        if refused.code != "prizes_paid":
            raise
        return None
    return receipt
