"""What a copy says of the options, times and answers of a question, compared with what is recorded."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import FIRST_INSTANT, format_instant, read_instant
from forecast_ledger.ledger.deciding.questions import resolve_question
from forecast_ledger.ledger.deciding.state import QuestionState, State
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AnnulQuestion,
    AnyCommand,
    CancelMarket,
    ChangeOutcomes,
    CloseQuestion,
    OpenQuestion,
    Quote,
    RescheduleQuestion,
    ResolveQuestion,
    RevokeResolution,
    SubmitForecast,
    WithdrawForecast,
)
from forecast_ledger.ledger.model.events import OutcomesChanged
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.recorded_copy import ANNULLED, RecordedQuestion, said, source_of
from forecast_ledger.replay.importing.source_items import KNOWN, SourceItem, fitting_id

Answering = ResolveQuestion | AnnulQuestion | CancelMarket | RevokeResolution
OfQuestion = (
    OpenQuestion | AddQuestion | ChangeOutcomes | SubmitForecast | WithdrawForecast | Quote
    | CloseQuestion | Answering
)  # fmt: skip
LocatedCommand = tuple[InputLocation, OfQuestion]
_Change = tuple[int, tuple[str, ...], tuple[str, ...], int | None]  # at, added, removed, the end of the grace period


class OptionHistory(NamedTuple):
    """The changes of a question's options: those recorded, and those that a copy has beside them.

    agrees: whether the copy says what is recorded, and perhaps more; if not, `new` is empty.
    """

    opened_with: tuple[str, ...]
    recorded: tuple[_Change, ...]
    new: tuple[_Change, ...]
    agrees: bool

    @property
    def changed_at(self) -> int | None:
        """When the options last changed in the ledger, µs: forecasts from before that cannot be recorded any more."""
        return self.recorded[-1][0] if self.recorded else None

    @property
    def new_at(self) -> int | None:
        """The instant of the first change that is new, µs."""
        return self.new[0][0] if self.new else None

    def question_at(self, question: QuestionState, at: int) -> QuestionState:
        """Return a question with the outcomes that a forecast gives which is made at an instant, µs.

        At the instant of a change, it gives what is left, and not yet what is added.
        """
        outcomes, gone = self.opened_with, set[str]()
        for since, added, removed, _ in (*self.recorded, *self.new):
            if since < at or (since == at and removed):
                outcomes += added
                gone |= {*removed}
        return question._replace(outcomes=outcomes, removed=frozenset(gone))

    def has_ended(self, at: int, now: int) -> bool:
        """Return whether a forecast that was made at an instant has ended with a grace period by another one, µs."""
        return any(at <= since and grace is not None and grace <= now for since, *_, grace in self.recorded)


def option_history(
    opened_with: tuple[str, ...],
    recorded: Sequence[OutcomesChanged],
    given: Sequence[ChangeOutcomes],
    *,
    latest: int,
    settled: bool,
) -> OptionHistory:
    """Return the changes of a question's options. given: those of a copy, in order of time.

    latest: the instant of the last forecast or withdrawal in the ledger that cannot be restated, µs. settled: whether
    it has an answer that stays. After either, no change can be recorded.
    """
    known = tuple((each.at, each.added, each.removed, each.grace_ends_at) for each in recorded)
    said = tuple(map(_change, given))
    new = said[len(known) :]
    agrees = said[: len(known)] == known and not (new and (settled or (new[0][0] < latest)))
    return OptionHistory(opened_with, known, new if agrees else (), agrees)


def options_of(known: RecordedQuestion, commands: Sequence[LocatedCommand], *, settled: bool) -> OptionHistory:
    """Return the changes of the options of a question, of which the copy says so."""
    changes = [item for _, item in commands if isinstance(item, ChangeOutcomes)]
    changed_at = known.changes[-1].at if known.changes else FIRST_INSTANT
    early = {  # who forecast before the last change, by the copy or the ledger: that cannot be restated
        item.participant
        for _, item in commands
        if isinstance(item, SubmitForecast) and read_instant(item.at) < changed_at
    }
    early |= {who for who, recorded in known.forecasts.items() if any(span.at < changed_at for span in recorded.spans)}
    stay = [
        span for who, recorded in known.forecasts.items() if recorded.by_hand or who in early for span in recorded.spans
    ]
    latest = max((max(span.at, span.until or span.at) for span in stay), default=FIRST_INSTANT)
    return option_history(known.opened.outcomes, known.changes, changes, latest=latest, settled=settled)


def _change(command: ChangeOutcomes) -> _Change:
    try:
        ends = None if command.grace_ends_at is None else read_instant(command.grace_ends_at)
        return read_instant(command.at), command.add or (), command.remove or (), ends
    except Refused:  # the command is refused for it
        return 0, command.add or (), command.remove or (), None


# --- times and answers


class Times:
    """The times of a question and its early close, as a copy has them."""

    def __init__(self, known: RecordedQuestion, commands: Sequence[LocatedCommand]) -> None:
        self._known = known
        openings = [(location, item) for location, item in commands if isinstance(item, OpenQuestion)]
        self._closings = [(location, item) for location, item in commands if isinstance(item, CloseQuestion)]
        was = known.said
        self._old = was.opens_at, was.closes_at, was.reveals_at
        self._new = _times_of(openings[-1][1], known) if openings else self._old
        self.moved = self._new != self._old
        closed = read_instant(self._closings[-1][1].at) if self._closings else None
        self._is_said = bool(openings)
        self._closed, self._recloses = closed, closed != known.said_closing and self._is_said
        self.differ = self.moved or self._recloses
        self.closes = self._new[1] if closed is None else closed

    def after(self, question: QuestionState) -> QuestionState:
        """Return a question with the times of the copy."""
        opens_at, closes_at, reveals_at = self._new if self.moved else (
            question.opens_at, question.closes_at, question.reveals_at
        )  # fmt: skip
        if not self.differ:
            return question
        closed_at = closes_at if self._closed is None else self._closed
        return question._replace(opens_at=opens_at, closes_at=closes_at, reveals_at=reveals_at, closed_at=closed_at)

    def commands(self, where: InputLocation) -> Iterator[SourceItem]:
        """Return the commands that give the question these times, and close it early again."""
        known, (opens, closes, reveals) = self._known, self._new
        if self.moved or known.closing is not None:
            location = where._replace(command="reschedule_question")
            yield (
                location,
                RescheduleQuestion(
                    id=fitting_id(f"{known.source} reschedule {known.opened.question} after {known.position}"),
                    at=format_instant(opens),
                    question=known.opened.question,
                    opens_at=format_instant(opens),
                    closes_at=format_instant(closes),
                    reveals_at=None if reveals is None else format_instant(reveals),
                    reason="the source has other times",
                ),
            )
        for location, item in self._closings:
            again = known.now is not known.opened or known.closing is not None or self.moved
            yield location, structs.replace(item, id=fitting_id(f"{item.id} after {known.position}")) if again else item

    def known(self) -> Iterator[SourceItem]:
        """Return the closings, which are known if the copy says all times of the question."""
        yield from ((location, KNOWN if self._is_said else item) for location, item in self._closings)


def _times_of(command: OpenQuestion, known: RecordedQuestion) -> tuple[int, int, int | None]:
    """Return the times that a copy has; without a reveal the one that it had, at the latest at the close."""
    try:
        opens, closes = read_instant(command.opens_at, "opens_at"), read_instant(command.closes_at, "closes_at")
        if command.reveals_at is not None:
            return opens, closes, read_instant(command.reveals_at, "reveals_at")
    except Refused:  # the command is refused for it
        return known.said.opens_at, known.said.closes_at, known.said.reveals_at
    before = known.said.reveals_at
    return opens, closes, None if before is None else min(before, closes)


class Answers:
    """The answers to a question in a copy, and those recorded.

    replaces: whether what stands is to be revoked for what the copy says, which is nothing if it is `gone`, and, if it
    `returns`, what an earlier copy said before its last answer. stands: whether an answer of the copy stands after it.
    by_hand: whether somebody else recorded what stands.
    """

    def __init__(self, known: RecordedQuestion, given: Sequence[LocatedCommand], alone: State) -> None:
        self._known, self.refused = known, list[SourceItem]()
        read = [(location, item, _answer_content(item, alone)) for location, item in given]
        self.refused += [(location, content) for location, _, content in read if isinstance(content, Refused)]
        self._given = [(location, item) for location, item, content in read if not isinstance(content, Refused)]
        contents = [content for *_, content in read if not isinstance(content, Refused)]
        earlier = [each.says for each in known.answers if source_of(each.command_id) == known.source]
        self._final, standing = _standing(contents), [each.says for each in known.standing]
        says = [contents[index] for index in self._final]
        last = known.answers[-1] if known.answers else None
        touched = last is not None and source_of(last.command_id) != known.source
        self.by_hand = touched and bool(standing)
        kept = touched and says == [earlier[index] for index in _standing(earlier)]  # by hand, since the source said so
        self._new = len(earlier) if not touched and earlier == contents[: len(earlier)] else len(contents)
        self.replaces = says != standing and not kept and self._new == len(contents)
        self.stands, self.gone = bool(says) and not kept, self.replaces and not says
        self.returns = self.replaces and len(contents) < len(earlier) and contents == earlier[: len(contents)]

    def commands(self, *, again: bool) -> Iterator[SourceItem]:
        """Return the answers to send; the others are known. again: whether what stood was revoked before."""
        sent = [*range(self._new, len(self._given))]
        if again or self.replaces:
            sent = self._final
        used = {each.command_id for each in self._known.answers}
        for number, (location, item) in enumerate(self._given):
            if number not in sent:
                yield location, KNOWN
            elif item.id in used:
                yield location, structs.replace(item, id=fitting_id(f"{item.id} after {self._known.position}"))
            else:
                yield location, item


def _answer_content(item: AnyCommand, alone: State) -> tuple[object, ...] | Refused:
    """Return what `said` returns of the event of an answer, or why the ledger refuses it."""
    if isinstance(item, ResolveQuestion):
        try:
            return said(resolve_question(item, alone))
        except Refused as refused:
            return refused
    return ANNULLED if isinstance(item, AnnulQuestion | CancelMarket) else ()


def _standing(contents: Sequence[tuple[object, ...]]) -> list[int]:
    """Return which of several answers, annulments and revocations stand after the last of them, by number.

    >>> _standing([("yes",), (), ("no",), ("annulled",)])
    [2, 3]
    """
    standing: list[int] = []
    for number, content in enumerate(contents):
        standing = standing[:-1] if not content else [*standing, number] if content == ANNULLED else [number]
    return standing
