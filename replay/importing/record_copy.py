"""Record a copy of a source in a ledger, which may have earlier copies of it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.model.commands import (
    AmendQuestion,
    AnnulQuestion,
    AnyCommand,
    EnrolParticipant,
    RenameParticipant,
    RescheduleQuestion,
    ResolveQuestion,
    RestateForecasts,
    RevokeResolution,
    WithdrawForecast,
)
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.follow_copy import Following, follow_copy
from forecast_ledger.replay.importing.recorded_copy import is_missed, takes_back_an_answer
from forecast_ledger.replay.importing.source_items import (
    FIRST_PLACES,
    SETUP,
    LeftOut,
    Source,
    carried,
    with_known_setup,
)
from forecast_ledger.replay.writing.append import OnProgress, OnRefusal, Outcome, append_batches, tally

REVOKED, REPLACED = "an answer revoked", "an answer replaced, or recorded again with other times"
_SHOWN = 1_000  # commands between two calls of `on_progress`


class FollowedCopy:
    """A copy that is recorded as it follows those before it.

    left_out: counts what is not sent, because it is known or not carried over. changes: how often what an earlier copy
    said was changed or taken back, in words. changed: the questions, or the participants, of each of these, in order.
    """

    def __init__(self, source: Source, following: Following) -> None:
        self._source, self._following = source, following
        self.left_out, self.changes = LeftOut(), Counter[str]()
        self.changed: dict[str, dict[str, None]] = {}

    def outcomes(
        self, ledger: Ledger, on_progress: OnProgress = lambda _: None, *, atomic: bool = False
    ) -> Iterator[Outcome]:
        """Append the commands that are to be sent; return the outcome of each. Raises what `Ledger.handle_many` raises.

        on_progress: called with the line of each transaction's last command. atomic: all are recorded, or none. Who
        edits the contest in a map is told that another one is recorded.
        """
        items = carried(follow_copy(self._source, ledger.read, self._following), self.left_out)
        appended = append_batches(ledger, items, on_progress, atomic=atomic)
        return self._counting(with_known_setup(appended, (EnrolParticipant,) if self._source.name else SETUP))

    def lines(self) -> list[str]:
        """Return what was not carried over, and what was changed or taken back, in words."""
        return [*self.left_out.lines(), *(self._line(what) for what in sorted(self.changes))]

    def _line(self, what: str) -> str:
        named = [*islice(self.changed[what], FIRST_PLACES)]
        names = "; ".join(named) + "; ..." * (len(self.changed[what]) > len(named))
        return f"changed since earlier copies: {self.changes[what]:,} x {what} ({names})"

    def _counting(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        for place, command, outcome in outcomes:
            if command is not None and isinstance(outcome, Receipt) and not outcome.duplicate:
                change, subject = _change(command), _subject(command)
                revoked = self.changed.get(REVOKED, {})
                if isinstance(command, ResolveQuestion | AnnulQuestion) and subject in revoked:
                    del revoked[subject]
                    self.changes[REVOKED] -= 1
                    change = REPLACED
                if change:
                    self.changes[change] += 1
                    self.changed.setdefault(change, {})[subject] = None
                self.changes += Counter()  # without zeros
            yield place, command, outcome


def record_copy(
    ledger: Ledger, copy: FollowedCopy, on_refusal: OnRefusal, *, on_progress: Callable[[int], None] = lambda _: None
) -> dict[str, int]:
    """Append what a copy has, as it follows the copies that are recorded; return the numbers of outcomes.

    on_refusal: called for each refusal. on_progress: called with the number of commands done. Raises what
    `Ledger.handle_many` raises; what was recorded before stays, and another import goes on from there.
    """
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    for number, _ in enumerate(tally(copy.outcomes(ledger), on_refusal, counts), 1):
        if not number % _SHOWN:
            on_progress(number + copy.left_out.known)
    return counts | {"duplicate": counts["duplicate"] + copy.left_out.known}


def _subject(command: AnyCommand) -> str:
    """Return what a command is about, in words; a participant by the former id."""
    question = getattr(command, "question", None)
    return f"question {question}" if question else f"participant {getattr(command, 'participant', '')}"


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
    RenameParticipant: "a participant renamed",
}
