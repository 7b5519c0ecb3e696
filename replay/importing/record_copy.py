"""Record a copy of a source in a ledger, which may have earlier copies of it."""

from collections.abc import Callable

from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.follow_copy import Following, follow_copy
from forecast_ledger.replay.importing.source_items import LeftOut, Source, carried, with_known_setup
from forecast_ledger.replay.writing.append import OnRefusal, append_batches, tally

_SHOWN = 1_000  # commands between two calls of `watch`


def record_copy(  # noqa: PLR0913 - a ledger, a source, how it is followed, and three reports
    ledger: Ledger,
    source: Source,
    following: Following,
    left_out: LeftOut,
    tell: OnRefusal,
    *,
    watch: Callable[[int], None] = lambda _: None,
) -> dict[str, int]:
    """Append what a copy has, as it follows the copies that are recorded; return the numbers of outcomes.

    tell: called for each refusal. watch: called with the number of commands done. Raises what `Ledger.handle_many`
    raises; what was recorded before stays, and another import goes on from there.
    """
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    items = carried(follow_copy(source, ledger.read, following), left_out)
    outcomes = with_known_setup(append_batches(ledger, items, lambda _: None))
    for number, _ in enumerate(tally(outcomes, tell, counts), 1):
        if not number % _SHOWN:
            watch(number + left_out.known)
    return counts | {"duplicate": counts["duplicate"] + left_out.known}
