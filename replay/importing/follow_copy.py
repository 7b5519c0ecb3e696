"""Follow a source that changes: the commands that bring a ledger with earlier copies to what the newest copy says.

A question that the ledger has from the same source is compared with its commands in the copy, all at once: other times,
other answers, forecasts that are new, corrected, gone or back again. What is the same is not sent again.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import (
    FIRST_INSTANT,
    LARGEST_WEIGHT,
    WEIGHT,
    format_instant,
    read_fixed,
    read_instant,
)
from forecast_ledger.ledger.deciding.questions import forecast_event, resolve_question
from forecast_ledger.ledger.deciding.state import QuestionState, State
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AmendQuestion,
    AnnulQuestion,
    AnyCommand,
    ChangeOutcomes,
    CloseQuestion,
    OpenQuestion,
    QuotePrices,
    RescheduleQuestion,
    ResolveQuestion,
    RestatedForecast,
    RestateForecasts,
    RevokeResolution,
    SubmitForecast,
    WithdrawForecast,
)
from forecast_ledger.replay.importing.bots import Bots
from forecast_ledger.replay.importing.changed_options import OptionHistory, option_history
from forecast_ledger.replay.importing.recorded_copy import (
    ANNULLED,
    ReadLog,
    RecordedCopy,
    RecordedForecasts,
    RecordedQuestion,
    Span,
    add_forecast,
    end_forecast,
    said,
    source_of,
)
from forecast_ledger.replay.importing.source_items import KNOWN, NotCarried, Scope, Source, SourceItem, fitting_id
from forecast_ledger.replay.writing.command_lines import InputPlace

MERGED = "forecasts of ids that the ledger made one participant: those of the ledger stay"
BY_HAND = "forecasts that were also recorded by hand, and differ: those of the ledger stay"
BY_HAND_TIMES = "other times of a question whose answer was recorded by hand: revoke that answer to take the times over"
MISSED = "forecasts that an earlier copy had: they stay, as --keep-missing says"
CHANGED = "the source says otherwise"
OTHER_GROUP = "another group or category of a question: that of the ledger stays"
OTHER_CONTEST = "another contest of a question: it stays in the one that it was in, too"
BEFORE_CHANGE = (
    "forecasts from before a change of their question's options that an earlier copy did not have: those of the ledger "
    "stay"
)
OTHER_OPTIONS = "other changes of the options of a question than those recorded: those of the ledger stay"
SEALED = "another weight in a contest that is finalized: its board stays"
OLD_PRICE = "a price from before the last quote: quotes are recorded in order of time, and stay"
ANSWER_MISSED = "an answer that an earlier copy had: it stays, as --keep-missing says"
UNREAD = "forecasts that an earlier copy had; this one has a file that cannot be read whole: they stay"
ANSWER_UNREAD = "an answer that an earlier copy had; this one has a file that cannot be read whole: it stays"

_Answering = ResolveQuestion | AnnulQuestion | RevokeResolution
_OfQuestion = (
    OpenQuestion | AddQuestion | ChangeOutcomes | SubmitForecast | WithdrawForecast | QuotePrices
    | CloseQuestion | _Answering
)  # fmt: skip
Placed = tuple[InputPlace, _OfQuestion]
_PlacedForecast = tuple[InputPlace, SubmitForecast | WithdrawForecast]


class Following(NamedTuple):
    """How a copy is followed. now: the instant of the import, µs. keep_missing: whether what is gone stays."""

    now: int
    keep_missing: bool = False


def follow_copy(source: Source, read: ReadLog, following: Following) -> Iterator[SourceItem]:
    """Return the items of a copy, with those about questions that the ledger has from the same source as they follow
    what is recorded.

    read: returns the pages of the log.
    """
    copy = RecordedCopy(read())
    asked: dict[str, list[Placed]] = {}
    bots = Bots(copy)
    for place, given in source.items:
        item = bots.followed(place, given)
        if isinstance(item, NotCarried | Refused) or not isinstance(item, _OfQuestion):
            yield place, item
            continue
        question = item.question or ""  # none is a command about several
        known = copy.questions.get(question)
        if known is None or known.source != source_of(item.id):
            yield place, item if known is not None else _under_present_id(item, copy)
        else:
            asked.setdefault(question, []).append((place, item))
    yield from bots.none_any_more()
    for question, own in asked.items():
        yield from _Question(copy, copy.questions[question], source.scope, following).followed(own)
    for question, known in copy.questions.items():
        if question not in asked and source.scope.questions(known.opened):
            yield from _Question(copy, known, source.scope, following).followed([])


def _under_present_id(item: _OfQuestion, copy: RecordedCopy) -> _OfQuestion:
    """Return a command on a new question, under the id that its participant has in the ledger."""
    if not isinstance(item, SubmitForecast | WithdrawForecast):
        return item
    return structs.replace(item, participant=copy.renamed.get(item.participant, item.participant))


class _Question:
    """A question of the ledger, and what a copy says of it."""

    def __init__(self, copy: RecordedCopy, known: RecordedQuestion, scope: Scope, following: Following) -> None:
        self._known, self._scope, self._following = known, scope, following
        self._sealed, self._open = copy.sealed, copy.state_of(known.opened.question)
        self._now = copy.renamed
        self._closes = known.said.closes_at  # as the copy says it, also if that is not in force
        self._renamed: list[list[tuple[object, ...]]] = []  # the forecasts of each new participant
        self._stuck: list[list[tuple[object, ...]]] = []  # those that cannot be recorded
        self._options, self._asked = _options(known, [], settled=False), False
        self._where = InputPlace(0, file=f"question {known.opened.question}")  # of what the copy does not have

    def followed(self, asked: Sequence[Placed]) -> Iterator[SourceItem]:
        """Return the commands that bring the question to what the copy says; `asked` are those of the copy."""
        known = self._known
        self._where = asked[0][0] if asked else self._where
        changes = [item for _, item in asked if isinstance(item, ChangeOutcomes)]
        self._open = _with_outcomes(self._open, changes)
        times = _Times(known, asked)
        self._closes = times.closes
        answers = [(place, item) for place, item in asked if isinstance(item, _Answering)]
        answering, moves = _Answers(known, answers, self._alone(self._open)), times.differ
        if moves and answering.by_hand and not answering.replaces:
            moves = False
            yield self._where, NotCarried(BY_HAND_TIMES)
        elif moves:
            answering = _Answers(known, answers, self._alone(times.after(self._open)))
        yield from answering.refused
        replaces = answering.replaces
        if answering.gone and not self._scope.answers(known.opened):
            replaces = False
        elif answering.gone and (stays := self._stays("", ANSWER_UNREAD, ANSWER_MISSED)) is not None:
            replaces = False
            yield self._where, stays
        unsettles = bool(known.standing) and (moves or replaces)
        yield from self._openings(asked)
        if unsettles:
            yield from self._revocations()
        yield from times.commands(self._where) if moves else times.known()
        yield from self._quotes(asked)
        settled = bool(known.standing) and not unsettles
        self._options, self._asked = _options(known, asked, settled=settled), bool(asked)
        if not self._options.agrees and asked:
            yield self._where, NotCarried(OTHER_OPTIONS)
        yield from self._forecasts(asked, times.after(self._open) if moves else self._open, settled=settled)
        yield from answering.commands(again=unsettles) if replaces or unsettles or not answering.gone else ()

    def _openings(self, asked: Sequence[Placed]) -> Iterator[SourceItem]:
        """Return the commands that open the question, as they are recorded, and those that amend it.

        Copies from before importers said whether outcomes have an order did not say it, and it stays so.
        """
        known, opened = self._known, self._known.opened
        for place, item in asked:
            if isinstance(item, OpenQuestion):
                reveals_at = None if opened.reveals_at is None else format_instant(opened.reveals_at)
                times = {name: format_instant(getattr(opened, name)) for name in ("at", "opens_at", "closes_at")}
                recorded: dict[str, Any] = {
                    name: getattr(opened, name) or None for name in ("tags", "url", "source", "group", "category")
                }
                recorded["ordered"] = None if opened.ordered is None else item.ordered
                yield place, structs.replace(item, reveals_at=reveals_at, title=opened.title, **times, **recorded)
                yield from self._described(place, item)
            elif isinstance(item, AddQuestion) and item.contest in known.entries:
                entry = known.entries[item.contest]
                weight = Decimal(entry.weight).scaleb(-6)
                yield place, structs.replace(item, at=format_instant(entry.at), weight=weight)
                yield from self._weighted(place, item)
            elif isinstance(item, AddQuestion):
                yield place, item
                if known.entries:
                    yield place, NotCarried(OTHER_CONTEST)

    def _described(self, place: InputPlace, item: OpenQuestion) -> Iterator[SourceItem]:
        """Return the amendment of what describes the question, if the source says something else than before."""
        known, before = self._known, self._known.said
        new = {"title": item.title, "tags": tuple(item.tags or ()), "url": item.url or "", "source": item.source or ""}
        changed: dict[str, Any] = {name: text for name, text in new.items() if text != getattr(before, name)}
        if changed:
            name = fitting_id(f"{known.source} amend {known.opened.question} after {known.position}")
            command = AmendQuestion(id=name, question=known.opened.question, **changed, reason=CHANGED)
            yield place._replace(command="amend_question"), command
        if (item.group or "", item.category or "") != (before.group, before.category):
            yield place, NotCarried(OTHER_GROUP)

    def _weighted(self, place: InputPlace, item: AddQuestion) -> Iterator[SourceItem]:
        """Return the amendment of the weight in a contest, if the source has another one than before."""
        known = self._known
        try:
            weight = read_fixed(item.weight, WEIGHT, "weight", 0, LARGEST_WEIGHT)
        except Refused as refused:
            yield place, refused
            return
        if weight == known.weights[item.contest]:
            return
        if item.contest in self._sealed:
            yield place, NotCarried(SEALED)
            return
        name = fitting_id(f"{known.source} weigh {known.opened.question} in {item.contest} after {known.position}")
        question, contest = known.opened.question, item.contest
        command = AmendQuestion(id=name, question=question, contest=contest, weight=item.weight, reason=CHANGED)
        yield place._replace(command="amend_question"), command

    def _quotes(self, asked: Sequence[Placed]) -> Iterator[SourceItem]:
        """Return the quotes after the last one that is recorded; those that an earlier copy had are known."""
        for place, item in asked:
            if isinstance(item, QuotePrices):
                is_known = item.id in self._known.ids
                late = KNOWN if is_known else NotCarried(OLD_PRICE)
                yield place, late if is_known or read_instant(item.quoted_at) < self._known.quoted_at else item

    def _revocations(self) -> Iterator[SourceItem]:
        """Return the revocations of what settles the question, the last one first."""
        for settled in reversed(self._known.standing):
            source, question = self._known.source, self._known.opened.question
            name = fitting_id(f"{source} revoke {settled.position} for {settled.command_id}")
            at = format_instant(max(self._open.closes_at, getattr(self._open.resolution, "known_at", 0)))
            reason = "the source has another answer, or other times"
            yield self._where, RevokeResolution(id=name, at=at, question=question, reason=reason)

    # --- forecasts

    def _forecasts(self, asked: Sequence[Placed], question: QuestionState, *, settled: bool) -> Iterator[SourceItem]:
        """Return the commands of the forecasts in order of time. question: with the times of the copy."""
        given: dict[str, list[_PlacedForecast]] = {}
        for place, command in asked:
            if isinstance(command, SubmitForecast | WithdrawForecast):
                who = self._now.get(command.participant, command.participant)
                given.setdefault(who, []).append((place, structs.replace(command, participant=who)))
        new = [self._spans(own, question)[0] for who, own in given.items() if who not in self._known.forecasts]
        for spans in new:
            renamed = self._stuck if self._too_early(spans, [], None) else self._renamed
            renamed.append([*map(_content, spans)])
        commands: list[tuple[int, int, int, SourceItem]] = []
        for number, (place, item) in enumerate(each for each in asked if isinstance(each[1], ChangeOutcomes)):
            found = item if number >= len(self._options.recorded) and self._options.agrees else KNOWN
            side = 1 if isinstance(item, ChangeOutcomes) and item.add else -1  # after the forecasts of its instant
            commands.append((read_instant(item.at), side, len(commands), (place, found)))
        for who in [*given, *(who for who in self._known.forecasts if who not in given)]:
            for each in self._of_participant(who, given.get(who, []), question, settled=settled):
                at = getattr(each[1], "at", None)
                commands.append((FIRST_INSTANT if at is None else read_instant(at), 0, len(commands), each))
        yield from (found for *_, found in sorted(commands, key=lambda each: each[:3]))

    def _of_participant(
        self, who: str, given: Sequence[_PlacedForecast], question: QuestionState, *, settled: bool
    ) -> Iterator[SourceItem]:
        recorded = self._known.forecasts.get(who, RecordedForecasts())
        if recorded.merged:
            yield self._where, NotCarried(MERGED)
            return
        spans, made, refused = self._spans(given, question)
        if refused:  # perhaps because they were recorded before somebody closed the question by hand
            said = self._spans(given, question._replace(closed_at=self._closes))[0]
            refused = [] if [*map(_content, said)] == [*map(_content, recorded.spans)] else refused
            spans = spans if refused else said
        if refused and not self._options.agrees:
            yield from ((place, NotCarried(OTHER_OPTIONS)) for place, _ in refused)
            return
        yield from refused
        if refused and not spans:
            return
        new_at = self._options.new_at
        before = spans if new_at is None else [span for span in spans if span.at < new_at]
        overtaken = new_at is not None and any(max(span.at, span.until or 0) >= new_at for span in recorded.spans)
        if [*map(_content, spans)] == [*map(_content, recorded.spans)] and not overtaken:
            yield from ((place, KNOWN) for place, _ in given)
        elif recorded.by_hand:
            yield self._where, NotCarried(BY_HAND)
        elif not spans and not given and not overtaken:
            yield from self._missing(who, recorded, question, settled=settled)
        elif (first := _first_new(spans, recorded.spans)) is None and self._scope.unread(self._known.opened, who):
            yield self._where, NotCarried(UNREAD)
        elif early := self._too_early(
            spans,
            recorded.spans,
            None if (restates := overtaken or settled or first is None or _is_late(spans, first, question)) else first,
        ):
            yield from ((place, NotCarried(BEFORE_CHANGE)) for place, _ in given[:early])
        elif first is None or restates:
            yield self._restated(who, recorded, before, made)
            if len(before) < len(spans):
                yield from self._added(given, spans, len(before), RecordedForecasts(position=recorded.position))
        else:
            yield from self._added(given, spans, first, recorded)

    def _spans(
        self, given: Sequence[Placed], question: QuestionState
    ) -> tuple[list[Span], dict[int, SubmitForecast], list[SourceItem]]:
        """Return the forecasts of a copy, the command of each by its instant, and those that the ledger refuses."""
        alone, history = self._alone(question), self._options
        has_changed = bool(history.recorded or history.new) or not history.agrees
        spans, made, refused = list[Span](), dict[int, SubmitForecast](), list[SourceItem]()
        for place, item in given:
            if isinstance(item, WithdrawForecast):
                end_forecast(spans, read_instant(item.at))
            elif isinstance(item, SubmitForecast):
                try:
                    if has_changed:
                        alone = self._alone(history.question_at(question, read_instant(item.at)))
                    event = forecast_event(item, alone, FIRST_INSTANT)
                except Refused as fault:
                    refused.append((place, fault))
                    continue
                add_forecast(spans, event)
                made[event.at] = item
        return spans, made, refused

    def _too_early(self, spans: Sequence[Span], recorded: Sequence[Span], first: int | None) -> int:
        """Return how many forecasts cannot be recorded: those from before the options last changed.

        first: the first of them that is not recorded, or of which only the end is not; None if all are to be.
        """
        changed_at = self._options.changed_at
        if changed_at is None:
            return 0
        new = [span.at for span in spans]
        if first is not None and first < len(recorded) and recorded[first][:2] == spans[first][:2]:
            new[first] = spans[first].until or spans[first].at
        return sum(at < changed_at for at in new[first:])

    def _alone(self, question: QuestionState) -> State:
        """Return a state of this question alone, as if it were not resolved."""
        alone = State()
        alone.questions[self._known.opened.question] = question._replace(settled=False)
        alone.standing[self._known.opened.question] = {}
        return alone

    def _stays(self, who: str, unread: str, missed: str) -> NotCarried | None:
        """Return why the forecasts of a participant, or the answer, stay although the copy does not have them."""
        if self._scope.unread(self._known.opened, who):
            return NotCarried(unread)
        return NotCarried(missed) if self._following.keep_missing else None

    def _missing(
        self, who: str, recorded: RecordedForecasts, question: QuestionState, *, settled: bool
    ) -> Iterator[SourceItem]:
        """Return what becomes of forecasts that the copy does not have: withdrawn while open, else never made."""
        if self._asked and not self._options.agrees:  # they may be there, with options that the ledger does not have
            yield self._where, NotCarried(OTHER_OPTIONS)
            return
        last = recorded.spans[-1]
        if last.missed or not self._scope.forecasts(self._known.opened):
            return
        if [*map(_content, recorded.spans)] in self._stuck:
            return
        if [*map(_content, recorded.spans)] in self._renamed:  # somebody of another name made them
            yield self._restated(who, recorded, [], {})
        elif (stays := self._stays(who, UNREAD, MISSED)) is not None:
            yield self._where, stays
        elif settled or self._following.now >= question.closed_at:
            yield self._restated(who, recorded, [], {})
        elif last.until is None and not self._options.has_ended(last.at, self._following.now):
            name = fitting_id(f"{self._known.source} missed {recorded.position} {who}")
            yield (
                self._where._replace(command="withdraw_forecast"),
                WithdrawForecast(id=name, question=self._known.opened.question, participant=who),
            )

    def _restated(
        self, who: str, recorded: RecordedForecasts, spans: Sequence[Span], made: dict[int, SubmitForecast]
    ) -> SourceItem:
        """Return the command that puts the forecasts of the copy in the place of those recorded."""
        source, question = self._known.source, self._known.opened.question
        forecasts = []
        for span in spans:
            fields = {name: getattr(made[span.at], name) for name in RestatedForecast.__struct_fields__}
            until = None if span.until is None else format_instant(span.until)
            forecasts.append(RestatedForecast(**fields | {"until": until}))
        command = RestateForecasts(
            id=fitting_id(f"{source} restate {max(recorded.position, self._known.position)} {who} on {question}"),
            question=question,
            participant=who,
            forecasts=tuple(forecasts),
            reason="the source has other forecasts" if spans else "the source has no forecast any more",
        )
        return self._where._replace(command="restate_forecasts"), command

    def _added(
        self, given: Sequence[_PlacedForecast], spans: Sequence[Span], first: int, recorded: RecordedForecasts
    ) -> Iterator[SourceItem]:
        """Return the commands of the copy that go on from what is recorded; those before it are known."""
        since = spans[first].at
        is_same = first < len(recorded.spans) and recorded.spans[first][:2] == spans[first][:2]
        for place, item in given:
            at = read_instant(item.at)
            if at < since or (at == since and is_same and isinstance(item, SubmitForecast)):
                yield place, KNOWN
                continue
            taken = item.id in self._known.ids  # perhaps of another name of the participant
            name = fitting_id(f"{item.id} after {recorded.position} of {item.participant}")
            yield place, structs.replace(item, id=name) if taken else item


def _with_outcomes(question: QuestionState, changes: Iterable[ChangeOutcomes]) -> QuestionState:
    """Return a question after changes of its outcomes, some of which may be recorded."""
    for change in changes:
        added = tuple(name for name in change.add or () if name not in question.outcomes)
        removed = question.removed | {*(change.remove or ())}
        question = question._replace(outcomes=question.outcomes + added, removed=removed)
    return question


def _content(span: Span) -> tuple[object, ...]:
    return span[:3]


def _options(known: RecordedQuestion, asked: Sequence[Placed], *, settled: bool) -> OptionHistory:
    """Return the changes of the options of a question, of which the copy says so."""
    changes = [item for _, item in asked if isinstance(item, ChangeOutcomes)]
    changed_at = known.changes[-1].at if known.changes else FIRST_INSTANT
    early = {  # who forecast before the last change, by the copy or the ledger: that cannot be restated
        item.participant for _, item in asked if isinstance(item, SubmitForecast) and read_instant(item.at) < changed_at
    }
    early |= {who for who, own in known.forecasts.items() if any(span.at < changed_at for span in own.spans)}
    stay = [span for who, own in known.forecasts.items() if own.by_hand or who in early for span in own.spans]
    latest = max((max(span.at, span.until or span.at) for span in stay), default=FIRST_INSTANT)
    return option_history(known.opened.outcomes, known.changes, changes, latest=latest, settled=settled)


def _first_new(spans: Sequence[Span], recorded: Sequence[Span]) -> int | None:
    """Return the first forecast that can be added to those recorded, or changes the last; None if none can be."""
    last = len(recorded) - 1
    if any(_content(new) != _content(old) for new, old in zip(spans, recorded[:last], strict=False)):
        return None
    if len(spans) <= last:
        return None
    if last < 0 or _content(spans[last]) == _content(recorded[last]):
        return last + 1
    return last if spans[last].at == recorded[last].at and recorded[last].until is None else None


def _is_late(spans: Sequence[Span], first: int, question: QuestionState) -> bool:
    """Return whether one of the new forecasts is not before the close."""
    return any(span.at >= question.closed_at for span in spans[first:])


class _Times:
    """The times of a question and its early close, as a copy has them."""

    def __init__(self, known: RecordedQuestion, asked: Sequence[Placed]) -> None:
        self._known = known
        openings = [(place, item) for place, item in asked if isinstance(item, OpenQuestion)]
        self._closings = [(place, item) for place, item in asked if isinstance(item, CloseQuestion)]
        was = known.said
        self._old = was.opens_at, was.closes_at, was.reveals_at
        self._new = _times_of(openings[-1][1], known) if openings else self._old
        self.moved = self._new != self._old
        closed = read_instant(self._closings[-1][1].at) if self._closings else None
        self._closed, self._recloses = closed, closed != known.said_closing and bool(openings)
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

    def commands(self, where: InputPlace) -> Iterator[SourceItem]:
        """Return the commands that give the question these times, and close it early again."""
        known, (opens, closes, reveals) = self._known, self._new
        if self.moved or known.closing is not None:
            place = where._replace(command="reschedule_question")
            yield (
                place,
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
        for place, item in self._closings:
            again = known.now is not known.opened or known.closing is not None or self.moved
            yield place, structs.replace(item, id=fitting_id(f"{item.id} after {known.position}")) if again else item

    def known(self) -> Iterator[SourceItem]:
        """Return that the closings are known."""
        yield from ((place, KNOWN) for place, _ in self._closings)


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


class _Answers:
    """The answers to a question in a copy, and those recorded.

    replaces: whether what stands is to be revoked for what the copy says, which is nothing if it is `gone`. by_hand:
    whether somebody else recorded what stands.
    """

    def __init__(self, known: RecordedQuestion, given: Sequence[Placed], alone: State) -> None:
        self._known, self.refused = known, list[SourceItem]()
        read = [(place, item, _answer_content(item, alone)) for place, item in given]
        self.refused += [(place, content) for place, _, content in read if isinstance(content, Refused)]
        self._given = [(place, item) for place, item, content in read if not isinstance(content, Refused)]
        contents = [content for *_, content in read if not isinstance(content, Refused)]
        own = [each.says for each in known.answers if source_of(each.command_id) == known.source]
        self._final, standing = _standing(contents), [each.says for each in known.standing]
        says = [contents[place] for place in self._final]
        last = known.answers[-1] if known.answers else None
        touched = last is not None and source_of(last.command_id) != known.source
        self.by_hand = touched and bool(standing)
        kept = touched and says == [own[place] for place in _standing(own)]  # by hand, since the source said so
        self._new = len(own) if not touched and own == contents[: len(own)] else len(contents)
        self.replaces = says != standing and not kept and self._new == len(contents)
        self.gone = self.replaces and not says

    def commands(self, *, again: bool) -> Iterator[SourceItem]:
        """Return the answers to send; the others are known. again: whether what stood was revoked before."""
        sent = [*range(self._new, len(self._given))]
        if again or self.replaces:
            sent = self._final
        used = {each.command_id for each in self._known.answers}
        for number, (place, item) in enumerate(self._given):
            if number not in sent:
                yield place, KNOWN
            elif item.id in used:
                yield place, structs.replace(item, id=fitting_id(f"{item.id} after {self._known.position}"))
            else:
                yield place, item


def _answer_content(item: AnyCommand, alone: State) -> tuple[object, ...] | Refused:
    """Return what `said` returns of the event of an answer, or why the ledger refuses it."""
    if isinstance(item, ResolveQuestion):
        try:
            return said(resolve_question(item, alone))
        except Refused as refused:
            return refused
    return ANNULLED if isinstance(item, AnnulQuestion) else ()


def _standing(contents: Sequence[tuple[object, ...]]) -> list[int]:
    """Return which of several answers, annulments and revocations stand after the last of them, by number.

    >>> _standing([("yes",), (), ("no",), ("annulled",)])
    [2, 3]
    """
    found: list[int] = []
    for number, each in enumerate(contents):
        found = found[:-1] if not each else [*found, number] if each == ANNULLED else [number]
    return found
