"""What a source gives: commands with their places, and what is not carried over, counted by reason.

A newer copy of a source may have other answers and other times for questions that the ledger already has.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from msgspec import structs

from forecast_ledger.ledger.batching.receipt import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import ID_LENGTH, format_instant, read_instant
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AnnulQuestion,
    AnyCommand,
    CloseQuestion,
    EnrolParticipant,
    OpenContest,
    OpenQuestion,
    RescheduleQuestion,
    ResolveQuestion,
    RevokeResolution,
)
from forecast_ledger.ledger.model.events import (
    QuestionAdded,
    QuestionAnnulled,
    QuestionClosed,
    QuestionOpened,
    QuestionRescheduled,
    QuestionResolved,
    ResolutionRevoked,
)
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.projections.facts.schedules import rescheduled
from forecast_ledger.replay.writing.append import Outcome
from forecast_ledger.replay.writing.command_lines import InputPlace, ReadCommand

FIRST_PLACES = 3  # of each reason, that are kept
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SETUP = (OpenContest, EnrolParticipant)  # what every import of a source sends again, with other words perhaps


class NotCarried(NamedTuple):
    """Something that the source has and the ledger does not take, and why."""

    reason: str


def cut_off(most: int, **texts: str) -> Iterator[NotCarried]:
    """Yield, for each text that is longer than so many characters, that its end is not carried over.

    >>> [each.reason for each in cut_off(3, title="rain", url="r")]
    ['the end of a title of more than 3 characters']
    """
    return (
        NotCarried(f"the end of a {name} of more than {most:,} characters")
        for name, text in texts.items()
        if len(text) > most
    )


SourceItem = tuple[InputPlace, AnyCommand | Refused | NotCarried]


class LeftOut:
    """What was not carried over: for each reason how many, and the first places."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.places: dict[str, list[InputPlace]] = {}

    def add(self, place: InputPlace, reason: str) -> None:
        """Count one."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        first = self.places.setdefault(reason, [])
        if len(first) < FIRST_PLACES:
            first.append(place)

    def lines(self) -> list[str]:
        """Return a line for each reason: how many, why, and where the first are."""
        return [
            f"not carried over: {count:,} x {reason} ({'; '.join(place.where() for place in self.places[reason])}"
            f"{'; ...' * (count > FIRST_PLACES)})"
            for reason, count in self.counts.items()
        ]


def carried(items: Iterable[SourceItem], left_out: LeftOut) -> Iterator[ReadCommand]:
    """Return the commands and refusals; count the rest in `left_out`."""
    for place, item in items:
        if isinstance(item, NotCarried):
            left_out.add(place, item.reason)
        else:
            yield place, item


class Settled:
    """The outcomes of an import, as a user means them.

    A contest or an enrolment that is there already counts as a duplicate, whatever its words. An answer that replaces
    one that stands, or to which the source has returned, is kept for `corrections`, which revokes the standing one.
    """

    def __init__(self) -> None:
        self._refused: dict[str, tuple[InputPlace, _Answer, Refused]] = {}  # by question: its last answer
        self._known: dict[str, tuple[InputPlace, _Answer, Receipt]] = {}  # by question: its last answer, if a duplicate

    def pass_on(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Return the outcomes, except those of answers that `corrections` sends again."""
        for place, command, outcome in outcomes:
            if isinstance(command, ResolveQuestion | AnnulQuestion):
                self._known.pop(command.question, None)
                if command.question in self._refused:  # another answer has come after it
                    yield self._refused.pop(command.question)
                if isinstance(outcome, Receipt) and outcome.duplicate:
                    self._known[command.question] = place, command, outcome
                elif isinstance(outcome, Refused) and outcome.code == "question_resolved":
                    self._refused[command.question] = place, command, outcome
                    continue
            if isinstance(outcome, Refused) and isinstance(command, _SETUP) and outcome.code in _THERE:
                yield place, command, Receipt(command.id, 0, 0, duplicate=True)
            else:
                yield place, command, outcome

    def corrections(self, read: Callable[[], Iterable[Sequence[Recorded]]]) -> Iterator[ReadCommand]:
        """Return, for each answer that is kept, the revocations of those that stand, and the answer.

        An answer that is recorded and was replaced is given again under another id, but only if an answer of the same
        source replaced it: corrections by hand stay. read: returns the pages of the log.
        """
        if not self._refused and not self._known:
            return
        standing: dict[str, list[_Settlement]] = {}  # question -> its resolution, and an annulment of that
        recorded: dict[int, _Settlement] = {}  # by log position
        for each in (each for page in read() for each in page):
            if isinstance(each.event, QuestionResolved | QuestionAnnulled):
                found = recorded[each.position] = _Settlement(each.position, each.command_id, each.event)
                below = standing.get(each.event.question, []) if isinstance(each.event, QuestionAnnulled) else []
                standing[each.event.question] = [*below, found]
            elif isinstance(each.event, ResolutionRevoked):
                standing[each.event.question].pop()
        for place, command, _ in self._refused.values():
            yield from _instead(place, command, standing.pop(command.question, []))
        for question, (place, command, receipt) in self._known.items():
            above, own = standing.get(question, []), recorded[receipt.first].said()
            if above and above[-1].said() != own and source_of(above[-1].command_id) == source_of(command.id):
                again = structs.replace(command, id=fitting_id(f"{command.id} after {above[-1].position}"))
                yield from _instead(place, again, above)
        self._refused, self._known = {}, {}


_Answer = ResolveQuestion | AnnulQuestion


class _Settlement(NamedTuple):
    """An event that settles a question, with its log position and its command."""

    position: int
    command_id: str
    event: QuestionResolved | QuestionAnnulled

    def said(self) -> tuple[object, ...]:
        """Return the answer, without its instants."""
        event = self.event
        if isinstance(event, QuestionResolved):
            return event.outcome, event.value, event.payouts
        return ("annulled",)


def _instead(place: InputPlace, answer: _Answer, above: Sequence[_Settlement]) -> Iterator[ReadCommand]:
    """Return the revocations of settlements, the last one first, and an answer in their place."""
    for settled in reversed(above):
        name = fitting_id(f"{source_of(answer.id)} revoke {settled.position} for {settled.command_id}")
        reason = "the source has another answer"
        yield place, RevokeResolution(id=name, at=answer.at, question=answer.question, reason=reason)
    yield place, answer


def source_of(command_id: str) -> str:
    """Return the first word of a command's id, which names the source in an import."""
    return command_id.partition(" ")[0]


# --- other times of questions that are there

Times = tuple[int, int, int | None]  # opening, close and reveal, µs


@dataclass(slots=True)
class _Known:
    """A question of the ledger. opened: as it was opened. now: with its times. said: with those of its source.

    command_id: of its opening. position: of the event that last gave it times. closing: the command and instant of an
    early close. settled: how many events settle it: a resolution, and an annulment of that.
    """

    opened: QuestionOpened
    now: QuestionOpened
    said: QuestionOpened
    command_id: str
    position: int
    closing: tuple[str, int] | None = None
    settled: int = 0


SETTLED = "other times of a question that is answered: its scores stay; revoke the answer first to take the times over"


def with_changed_times(
    source: Iterable[SourceItem], read: Callable[[], Iterable[Sequence[Recorded]]]
) -> Iterator[SourceItem]:
    """Return the items of a source; a question that is there with other times is rescheduled, unless it is answered.

    The source is compared with what it said last: times that were changed by hand stay until the source changes them.
    A source does not say when it changed them, so that the command claims the new opening. read: returns the pages of
    the log.
    """
    ledger: _Ledger | None = None
    for place, command in source:
        if isinstance(command, OpenQuestion | AddQuestion | CloseQuestion):
            ledger = ledger or _Ledger(read())
            for each in ledger.adapted(command):
                tag = "" if isinstance(each, NotCarried) else str(each.__struct_config__.tag)
                yield place._replace(command=tag), each
        else:
            yield place, command


class _Ledger:
    """The questions of a log, as far as their times go."""

    def __init__(self, pages: Iterable[Sequence[Recorded]]) -> None:
        self._questions: dict[str, _Known] = {}
        self._added: dict[tuple[str, str], int] = {}  # contest and question -> at, µs
        for recorded in (each for page in pages for each in page):
            self._take_in(recorded)

    def _take_in(self, recorded: Recorded) -> None:
        event, position = recorded.event, recorded.position
        if isinstance(event, QuestionOpened):
            self._questions[event.question] = _Known(event, event, event, recorded.command_id, position)
        elif isinstance(event, QuestionAdded):
            self._added[event.contest, event.question] = event.at
        elif isinstance(event, QuestionClosed):
            self._questions[event.question].closing = recorded.command_id, event.at
        elif isinstance(event, QuestionRescheduled):
            known = self._questions[event.question]
            known.now, known.position = rescheduled(known.now, event), position
            if source_of(recorded.command_id) == source_of(known.command_id):
                known.said = known.now
            if event.closes_at is not None:
                known.closing = None
        elif isinstance(event, QuestionResolved | QuestionAnnulled):
            self._questions[event.question].settled += 1
        elif isinstance(event, ResolutionRevoked):
            self._questions[event.question].settled -= 1

    def adapted(self, command: OpenQuestion | AddQuestion | CloseQuestion) -> Iterator[AnyCommand | NotCarried]:
        """Return a command as it follows what is recorded, and a rescheduling after an opening with other times."""
        known = self._questions.get(command.question)
        if known is None:
            yield command
        elif isinstance(command, AddQuestion):
            at = self._added.get((command.contest, command.question))
            yield command if at is None else structs.replace(command, at=format_instant(at))
        elif isinstance(command, CloseQuestion):
            closing = structs.replace(command, id=_closing_id(command, known))
            there = known.closing is not None and known.closing[0] == closing.id
            yield closing if there or not known.settled else NotCarried(SETTLED)
        else:
            yield from _opening(command, known)


def _closing_id(command: CloseQuestion, known: _Known) -> str:
    """Return the id of the early close that is recorded; of another close after other times, an id of its own."""
    if known.closing is not None and known.closing[1] == read_instant(command.at):
        return known.closing[0]
    return command.id if known.now is known.opened else fitting_id(f"{command.id} after {known.position}")


def _opening(command: OpenQuestion, known: _Known) -> Iterator[AnyCommand | NotCarried]:
    """Return an opening with the times that are recorded, and a rescheduling if the source has others."""
    try:
        asked = _times(command, known)
    except Refused:
        yield command  # which is refused for it
        return
    was = known.opened
    if source_of(command.id) != source_of(known.command_id):
        yield command
        return
    reveals_at = None if was.reveals_at is None else format_instant(was.reveals_at)
    opens_at, closes_at = format_instant(was.opens_at), format_instant(was.closes_at)
    yield structs.replace(
        command, at=format_instant(was.at), opens_at=opens_at, closes_at=closes_at, reveals_at=reveals_at
    )
    if asked != (known.said.opens_at, known.said.closes_at, known.said.reveals_at):
        if known.settled:
            yield NotCarried(SETTLED)
            return
        opens, closes, reveals = asked
        yield RescheduleQuestion(
            id=fitting_id(f"{source_of(command.id)} reschedule {command.question} after {known.position}"),
            at=format_instant(opens),
            question=command.question,
            opens_at=format_instant(opens),
            closes_at=format_instant(closes),
            reveals_at=None if reveals is None else format_instant(reveals),
            reason="the source has other times",
        )
        known.closing, known.now = None, structs.replace(known.now, opens_at=opens, closes_at=closes)


def _times(command: OpenQuestion, known: _Known) -> Times:
    """Return the times that a source has; without a reveal the one that it had, at the latest at the close.

    Refuses: bad_instant, naive_instant.
    """
    opens, closes = read_instant(command.opens_at, "opens_at"), read_instant(command.closes_at, "closes_at")
    if command.reveals_at is not None:
        return opens, closes, read_instant(command.reveals_at, "reveals_at")
    before = known.said.reveals_at
    return opens, closes, None if before is None else min(before, closes)


# --- ids and texts

_THERE = {"duplicate_contest", "command_id_reused", "enrolled_already"}


def fitting_id(text: str) -> str:
    """Return a text of at most 200 characters that stands for this one: it, or its beginning and a digest of it.

    >>> fitting_id("short"), len(fitting_id("long" * 100))
    ('short', 200)
    """
    if len(text) <= ID_LENGTH:
        return text
    digest = sha256(text.encode()).hexdigest()[:32]
    return f"{text[: ID_LENGTH - 33].rstrip()} {digest}".ljust(ID_LENGTH, "-")


def label_of(text: str) -> str | None:
    r"""Return a text as a group, category or tag: in form NFC, on one line, at most 200 characters; None if empty.

    >>> label_of(" Climate \n& weather "), label_of(" ")
    ('Climate & weather', None)
    """
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    return "".join(letter for letter in plain if letter.isprintable())[:ID_LENGTH].strip() or None


def start_of_day(text: str, field: str, days: int = 0) -> str:
    """Return the beginning, in UTC, of the day so many days after a date. Refuses: bad_instant.

    >>> start_of_day("2026-02-28", "end", 1)
    '2026-03-01T00:00:00Z'
    """
    try:
        if not _DATE.fullmatch(text):
            raise ValueError
        return f"{date.fromisoformat(text) + timedelta(days=days)}T00:00:00Z"
    except (ValueError, OverflowError):
        raise Refused("bad_instant", field, text, "not a date", remedy="write it as 2026-03-01") from None


def instant_of(text: str, field: str) -> str:
    """Return a date, or a date and time, as an instant in UTC; a date stands for its beginning. Refuses: bad_instant.

    >>> instant_of("2026-03-01 12:00:00.5+00:00", "at"), instant_of("2026-03-01", "at")
    ('2026-03-01T12:00:00.500000Z', '2026-03-01T00:00:00Z')
    """
    if _DATE.fullmatch(text):
        return start_of_day(text, field)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Refused("bad_instant", field, text) from None
    if found.tzinfo is None:
        raise Refused("naive_instant", field, text)
    try:
        return found.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise Refused("bad_instant", field, text) from None
