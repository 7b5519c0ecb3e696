"""Record a copy of a source in a ledger, which may have earlier copies of it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from forecast_ledger.ledger.batching.receipt import Receipt
from forecast_ledger.ledger.model.commands import (
    AmendQuestion,
    AnnulQuestion,
    AnyCommand,
    RescheduleQuestion,
    ResolveQuestion,
    RestateForecasts,
    RevokeResolution,
    WithdrawForecast,
)
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.follow_copy import Following, follow_copy
from forecast_ledger.replay.importing.recorded_copy import is_missed, takes_back_an_answer
from forecast_ledger.replay.importing.source_items import LeftOut, Source, carried, with_known_setup
from forecast_ledger.replay.writing.append import OnRefusal, Outcome, append_batches, tally

REVOKED, REPLACED = "an answer revoked", "an answer replaced, or recorded again with other times"
_SHOWN = 1_000  # commands between two calls of `on_progress`


def record_copy(  # noqa: PLR0913 - a ledger, a source, how it is followed, and three reports
    ledger: Ledger,
    source: Source,
    following: Following,
    left_out: LeftOut,
    on_refusal: OnRefusal,
    *,
    on_progress: Callable[[int], None] = lambda _: None,
) -> tuple[dict[str, int], Counter[str]]:
    """Append what a copy has, as it follows the copies that are recorded.

    Return the numbers of outcomes, and how often what an earlier copy said was changed or taken back, in words.

    on_refusal: called for each refusal. on_progress: called with the number of commands done. Raises what
    `Ledger.handle_many` raises; what was recorded before stays, and another import goes on from there.
    """
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    items = carried(follow_copy(source, ledger.read, following), left_out)
    changes = Counter[str]()
    outcomes = _counting(with_known_setup(append_batches(ledger, items, lambda _: None)), changes)
    for number, _ in enumerate(tally(outcomes, on_refusal, counts), 1):
        if not number % _SHOWN:
            on_progress(number + left_out.known)
    return counts | {"duplicate": counts["duplicate"] + left_out.known}, changes


def _counting(outcomes: Iterable[Outcome], changes: Counter[str]) -> Iterator[Outcome]:
    revoked = set[str]()  # questions without an answer since
    for place, command, outcome in outcomes:
        if command is not None and isinstance(outcome, Receipt) and not outcome.duplicate:
            change = _change(command)
            if change == REVOKED:
                revoked.add(getattr(command, "question", ""))
            elif isinstance(command, ResolveQuestion | AnnulQuestion) and command.question in revoked:
                revoked.remove(command.question)
                changes[REVOKED] -= 1
                change = REPLACED
            changes.update(filter(None, [change]))
            changes += Counter()  # without zeros
        yield place, command, outcome


def _change(command: AnyCommand) -> str:
    """Return what a command changes or takes back of earlier copies, in words; "" if it takes nothing back."""
    if isinstance(command, RestateForecasts):
        return f"the forecasts of a participant on a question {'restated' if command.forecasts else 'retracted'}"
    if isinstance(command, WithdrawForecast):
        return "a forecast withdrawn" if is_missed(command.id) else ""
    if isinstance(command, RevokeResolution):
        return REVOKED if takes_back_an_answer(command.id) else ""
    return _CHANGES.get(type(command), "")


_CHANGES: dict[type, str] = {
    RescheduleQuestion: "a question rescheduled",
    AmendQuestion: "a question amended",
}
