"""Record a copy of a source in a ledger, which may have earlier copies of it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.values import format_count
from forecast_ledger.ledger.model.commands import (
    AmendQuestion,
    AnnulQuestion,
    AnyCommand,
    CancelMarket,
    EnrolParticipant,
    RenameParticipant,
    RescheduleQuestion,
    ResolveQuestion,
    RestateForecasts,
    RevokeResolution,
    WithdrawForecast,
)
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.follow_copy import follow_copy
from forecast_ledger.replay.importing.question_forecasts import Following
from forecast_ledger.replay.importing.recorded_copy import is_missed, source_of, takes_back_an_answer
from forecast_ledger.replay.importing.source_items import (
    FIRST_LOCATIONS,
    SETUP,
    LeftOut,
    Source,
    SourceItem,
    carried,
    with_known_setup,
)
from forecast_ledger.replay.writing.append import OnProgress, OnRefusal, Outcome, append_batches, tally

OTHERS = "another writer recorded events of this source, or on its questions, during this import"
AGAIN = "import the newest copy again"
CORRECTED = "a forecast corrected"
REVOKED, REPLACED = "an answer revoked", "an answer replaced, or recorded again with other times"
_SHOWN = 1_000  # commands between two calls of `on_progress`


class FollowedCopy:
    """A copy that is recorded as it follows those before it.

    left_out: counts what is not sent, because it is known or not carried over. changes: how often what an earlier copy
    said was changed or taken back, in words. changed: the questions, or the participants, of each of these, in order.
    others: how many events another writer recorded, of this source or on a question of this copy, after the log was
    read to be compared with it; without those that this copy says, too.
    """

    def __init__(self, source: Source, following: Following) -> None:
        self._corrected, self._first = set[str](), set[str]()  # ids of commands, as `Following` names them
        self._source = source
        self._following = following._replace(on_correction=self._corrected.add, on_first=self._first.add)
        self.left_out, self.changes = LeftOut(), Counter[str]()
        self.changed: dict[str, dict[str, None]] = {}
        self.others = 0
        self._compared_at = self._recorded = 0  # a log position; how many events this import recorded
        self._said: list[range] = []  # positions after that of events that this copy says, whoever recorded them
        self._sources, self._questions = set[str](), set[str]()  # of the commands of the copy

    def outcomes(
        self, ledger: Ledger, on_progress: OnProgress = lambda _: None, *, atomic: bool = False
    ) -> Iterator[Outcome]:
        """Append the commands that are to be sent; return the outcome of each. Raises what `Ledger.handle_many` raises.

        on_progress: called with the line of each transaction's last command. atomic: all are recorded, or none. Who
        edits the contest in a map is told that another one is recorded.
        """
        source = self._source._replace(items=self._noted())
        items = carried(follow_copy(source, lambda: self._read(ledger), self._following), self.left_out)
        appended = append_batches(ledger, items, on_progress, atomic=atomic)
        yield from self._counting(with_known_setup(appended, (EnrolParticipant,) if self._source.name else SETUP))
        self.others = self._count_others(ledger)

    def lines(self) -> list[str]:
        """Return what was not carried over, what was changed or taken back, and that others wrote, in words."""
        changes = [self._line(what) for what in sorted(self.changes)]
        count = format_count(self.others, "event")
        return [*self.left_out.lines(), *changes, *[f"{OTHERS}: {count}; {AGAIN}"] * bool(self.others)]

    def _read(self, ledger: Ledger) -> Iterator[list[Recorded]]:
        for page in ledger.read():
            yield page
            self._compared_at = page[-1].position

    def _noted(self) -> Iterator[SourceItem]:
        """Return the items of the copy; note what they are about."""
        for location, item in self._source.items:
            if name := getattr(item, "id", ""):
                self._sources.add(source_of(name))
            if question := getattr(item, "question", ""):
                self._questions.add(question)
            yield location, item

    def _count_others(self, ledger: Ledger) -> int:
        if ledger.head().position == self._compared_at + self._recorded:
            return 0
        positions = {position for each in self._said for position in each}
        since = (each for page in ledger.read(self._compared_at) for each in page)
        return sum(each.position not in positions and self._concerns(each) for each in since)

    def _concerns(self, recorded: Recorded) -> bool:
        question = getattr(recorded.event, "question", "")
        return source_of(recorded.command_id) in self._sources or question in self._questions

    def _keep(self, receipt: Receipt) -> None:
        """Note the events of a command; another writer may have recorded it since the log was read."""
        self._recorded += 0 if receipt.duplicate else receipt.last - receipt.first + 1
        if receipt.first > self._compared_at:
            follows = bool(self._said) and self._said[-1].stop == receipt.first
            begin = self._said.pop().start if follows else receipt.first
            self._said.append(range(begin, receipt.last + 1))

    def _line(self, what: str) -> str:
        named = [*islice(self.changed[what], FIRST_LOCATIONS)]
        names = "; ".join(named) + "; ..." * (len(self.changed[what]) > len(named))
        return f"changed since earlier copies: {self.changes[what]:,} x {what} ({names})"

    def _counting(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        for location, command, outcome in outcomes:
            if isinstance(outcome, Receipt):
                self._keep(outcome)
            if command is not None and isinstance(outcome, Receipt) and not outcome.duplicate:
                change, subject = "" if command.id in self._first else _change(command), _subject(command)
                if command.id in self._corrected:
                    change = CORRECTED
                revoked = self.changed.get(REVOKED, {})
                if isinstance(command, ResolveQuestion | AnnulQuestion | CancelMarket) and subject in revoked:
                    del revoked[subject]
                    self.changes[REVOKED] -= 1
                    change = REPLACED
                if change:
                    self.changes[change] += 1
                    self.changed.setdefault(change, {})[subject] = None
                self.changes += Counter()  # without zeros
            yield location, command, outcome


def record_copy(
    ledger: Ledger,
    copy: FollowedCopy,
    on_refusal: OnRefusal,
    *,
    on_progress: Callable[[int], None] = lambda _: None,
    noted: Callable[[Iterator[Outcome]], Iterator[Outcome]] = iter,
) -> dict[str, int]:
    """Append what a copy has, as it follows the copies that are recorded; return the numbers of outcomes.

    on_refusal: called for each refusal. on_progress: called with the number of commands done. noted: passes the
    outcomes on. Raises what
    `Ledger.handle_many` raises; what was recorded before stays, and another import goes on from there.
    """
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    for number, _ in enumerate(tally(noted(copy.outcomes(ledger)), on_refusal, counts), 1):
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
