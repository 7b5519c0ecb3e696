"""The forecasts on a question in a copy, compared with those that are recorded: new, corrected or gone."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import FIRST_INSTANT, format_instant, read_instant
from forecast_ledger.ledger.deciding.questions import forecast_event
from forecast_ledger.ledger.deciding.state import QuestionState, State
from forecast_ledger.ledger.model.commands import (
    ChangeOutcomes,
    RestatedForecast,
    RestateForecasts,
    SubmitForecast,
    WithdrawForecast,
)
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.question_changes import LocatedCommand, options_of
from forecast_ledger.replay.importing.recorded_copy import (
    RecordedCopy,
    RecordedForecasts,
    RecordedQuestion,
    Span,
    add_forecast,
    end_forecast,
)
from forecast_ledger.replay.importing.source_items import KNOWN, NotCarried, Scope, SourceItem, fitting_id

MERGED = "forecasts of ids that the ledger made one participant: those of the ledger stay"
BY_HAND = "forecasts that were also recorded by hand, and differ: those of the ledger stay"
MISSED = "forecasts that an earlier copy had: they stay, as --keep-missing says"
BEFORE_CHANGE = (
    "forecasts from before a change of their question's options that an earlier copy did not have: those of the ledger "
    "stay; if only the name of the forecaster is new, rename_participant moves them to it"
)
OTHER_OPTIONS = "other changes of the options of a question than those recorded: those of the ledger stay"
UNREAD = "forecasts that an earlier copy had; this one has a part that cannot be read: they stay"

_LocatedForecast = tuple[InputLocation, SubmitForecast | WithdrawForecast]


class Following(NamedTuple):
    """How a copy is followed. now: the instant of the import, µs. keep_missing: whether what is gone stays.

    take_back: whether also more than half of the forecasts may be gone. on_correction: called with the id of each
    forecast that is to replace one of its own instant. on_first: with that of each command that restates the forecasts
    of a participant on a question on which it had none.
    """

    now: int
    keep_missing: bool = False
    take_back: bool = False
    on_correction: Callable[[str], None] = lambda _: None
    on_first: Callable[[str], None] = lambda _: None


class Forecasts:
    """The forecasts on a question of the ledger, and what a copy says of them."""

    def __init__(self, copy: RecordedCopy, known: RecordedQuestion, scope: Scope, following: Following) -> None:
        self._known, self._scope, self._following = known, scope, following
        self._open, self._now = copy.state_of(known.opened.question), copy.renamed
        self._closes = known.said.closes_at  # as the copy says it, also if that is not in force
        self._renamed: list[list[tuple[object, ...]]] = []  # the forecasts of each new participant
        self._stuck: list[list[tuple[object, ...]]] = []  # those that cannot be recorded
        self._unread: list[list[tuple[object, ...]]] = []  # those of whoever may be in a part that is not read
        self._options, self._has_commands = options_of(known, [], settled=False), False
        self._answered = False
        self._where = InputLocation(0, file=f"question {known.opened.question}")  # of what the copy does not have

    def losses(self, commands: Sequence[LocatedCommand]) -> tuple[int, int]:
        """Return how many participants have forecasts that the copy can take back, and of how many it has none.

        One who has the same forecasts under another name in the copy is not gone.
        """
        given, opened = self._given(commands), self._known.opened
        if not self._scope.forecasts(opened):
            return 0, 0
        recorded = {
            who: [*map(_content, forecasts.spans)]
            for who, forecasts in self._known.forecasts.items()
            if who != opened.source
            and forecasts.spans
            and not (forecasts.by_hand or forecasts.merged or forecasts.spans[-1].missed)
        }
        gone = [who for who in recorded if who not in given and not self._scope.unread(opened, who)]
        if gone:
            self._options = options_of(self._known, commands, settled=False)
            renamed = [[*map(_content, spans)] for spans in self._new(given, self._open)]
            gone = [who for who in gone if recorded[who] not in renamed]
        return len(recorded), len(gone)

    def _given(self, commands: Sequence[LocatedCommand]) -> dict[str, list[_LocatedForecast]]:
        """Return the forecasts of the copy by participant, under the ids of the ledger."""
        given: dict[str, list[_LocatedForecast]] = {}
        for location, command in commands:
            if isinstance(command, SubmitForecast | WithdrawForecast):
                who = self._now.get(command.participant, command.participant)
                given.setdefault(who, []).append((location, structs.replace(command, participant=who)))
        return given

    def _new(self, given: dict[str, list[_LocatedForecast]], question: QuestionState) -> list[list[Span]]:
        """Return the forecasts of each participant whom the ledger does not have on the question."""
        return [
            self._spans(commands, question)[0] for who, commands in given.items() if who not in self._known.forecasts
        ]

    def followed(
        self,
        commands: Sequence[LocatedCommand],
        question: QuestionState,
        closes: int,
        *,
        settled: bool,
        answered: bool,
    ) -> Iterator[SourceItem]:
        """Return the commands of the forecasts in order of time.

        commands: those of the copy on the question. question: with the times of the copy. closes: when the question
        closes as the copy says it, µs. settled: whether an answer stands. answered: whether one does after this copy.
        """
        self._where, self._closes = commands[0][0] if commands else self._where, closes
        self._answered = answered
        self._options, self._has_commands = options_of(self._known, commands, settled=settled), bool(commands)
        if not self._options.agrees and commands:
            yield self._where, NotCarried(OTHER_OPTIONS)
        given = self._given(commands)
        for spans in self._new(given, question):
            renamed = self._stuck if self._too_early(spans, [], None) else self._renamed
            renamed.append([*map(_content, spans)])
        self._unread = [
            [*map(_content, forecasts.spans)]
            for who, forecasts in self._known.forecasts.items()
            if who not in given and forecasts.spans and self._scope.unread(self._known.opened, who)
        ]
        timed: list[tuple[int, int, int, SourceItem]] = []
        for number, (location, item) in enumerate(each for each in commands if isinstance(each[1], ChangeOutcomes)):
            result = item if number >= len(self._options.recorded) and self._options.agrees else KNOWN
            side = 1 if isinstance(item, ChangeOutcomes) and item.add else -1  # after the forecasts of its instant
            timed.append((read_instant(item.at), side, len(timed), (location, result)))
        others = (who for who, recorded in self._known.forecasts.items() if recorded.of_source and who not in given)
        for who in [*given, *others]:
            for sourced in self._of_participant(who, given.get(who, []), question, settled=settled):
                at = getattr(sourced[1], "at", None)
                timed.append((FIRST_INSTANT if at is None else read_instant(at), 0, len(timed), sourced))
        yield from (result for *_, result in sorted(timed, key=lambda each: each[:3]))

    def _of_participant(
        self, who: str, given: Sequence[_LocatedForecast], question: QuestionState, *, settled: bool
    ) -> Iterator[SourceItem]:
        recorded = self._known.forecasts.get(who, RecordedForecasts())
        if recorded.merged:
            yield self._about(who), NotCarried(MERGED)
            return
        spans, made, refused = self._spans_before_close(given, recorded, question)
        if refused and not self._options.agrees:
            yield from ((location, NotCarried(OTHER_OPTIONS)) for _, (location, _) in refused)
            return
        yield from (fault for _, fault in refused)
        if refused and not spans:
            return
        faulty = {name for name, _ in refused}
        given = [each for each in given if each[1].id not in faulty]
        new_at = self._options.new_at
        before = spans if new_at is None else [span for span in spans if span.at < new_at]
        overtaken = new_at is not None and any(max(span.at, span.until or 0) >= new_at for span in recorded.spans)
        if [*map(_content, spans)] == [*map(_content, recorded.spans)] and not overtaken:
            yield from ((location, KNOWN) for location, _ in given)
        elif recorded.by_hand:
            yield self._about(who), NotCarried(BY_HAND)
        elif not spans and not given and not overtaken:
            yield from self._missing(who, recorded, question)
        elif ((first := _first_new(spans, recorded.spans)) is None and self._scope.unread(self._known.opened, who)) or (
            not recorded.spans and [*map(_content, spans)] in self._unread  # perhaps somebody whose name is not read
        ):
            yield self._about(who), NotCarried(UNREAD)
        elif early := self._too_early(
            spans,
            recorded.spans,
            None if (restates := overtaken or settled or first is None or _is_late(spans, first, question)) else first,
        ):
            yield from ((location, NotCarried(BEFORE_CHANGE)) for location, _ in given[:early])
        elif first is None or restates:
            yield self._restated(who, recorded, before, made)
            if len(before) < len(spans):
                yield from self._added(given, spans, len(before), RecordedForecasts(position=recorded.position))
        else:
            yield from self._added(given, spans, first, recorded)

    def _spans_before_close(
        self, given: Sequence[LocatedCommand], recorded: RecordedForecasts, question: QuestionState
    ) -> tuple[list[Span], dict[int, SubmitForecast], list[tuple[str, SourceItem]]]:
        """Return what `_spans` does; what was recorded before somebody closed the question by hand is not late."""
        spans, made, refused = self._spans(given, question)
        if refused:
            said, _, still = self._spans(given, question._replace(closed_at=self._closes))
            if [*map(_content, said)] == [*map(_content, recorded.spans)]:
                spans, refused = said, still
        return spans, made, refused

    def _spans(
        self, given: Sequence[LocatedCommand], question: QuestionState
    ) -> tuple[list[Span], dict[int, SubmitForecast], list[tuple[str, SourceItem]]]:
        """Return the forecasts of a copy, the command of each by its instant, and the ids that the ledger refuses."""
        state, history = alone(self._known, question), self._options
        has_changed = bool(history.recorded or history.new) or not history.agrees
        spans, made, refused = list[Span](), dict[int, SubmitForecast](), list[tuple[str, SourceItem]]()
        for location, item in given:
            if isinstance(item, WithdrawForecast):
                end_forecast(spans, read_instant(item.at))
            elif isinstance(item, SubmitForecast):
                try:
                    if has_changed:
                        state = alone(self._known, history.question_at(question, read_instant(item.at)))
                    event = forecast_event(item, state, FIRST_INSTANT)
                except Refused as fault:
                    refused.append((item.id, (location, fault)))
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

    def stays(self, who: str, unread: str, missed: str) -> NotCarried | None:
        """Return why the forecasts of a participant, or the answer, stay although the copy does not have them."""
        if self._scope.unread(self._known.opened, who):
            return NotCarried(unread)
        return NotCarried(missed) if self._following.keep_missing else None

    def _about(self, who: str) -> InputLocation:
        """Return what names the forecasts of a participant, which may be nowhere in the copy."""
        return InputLocation(0, file=f"{who} on {self._known.opened.question}")

    def _missing(self, who: str, recorded: RecordedForecasts, question: QuestionState) -> Iterator[SourceItem]:
        """Return what becomes of forecasts that the copy does not have: withdrawn while open, else never made."""
        # They may be there, with options that the ledger does not have.
        if self._has_commands and not self._options.agrees:
            yield self._about(who), NotCarried(OTHER_OPTIONS)
            return
        last = recorded.spans[-1]
        if last.missed or not self._scope.forecasts(self._known.opened):
            return
        if [*map(_content, recorded.spans)] in self._stuck:
            return
        stays, renamed = self.stays(who, UNREAD, MISSED), [*map(_content, recorded.spans)] in self._renamed
        if stays is not None and not (renamed and stays.reason == MISSED):
            yield self._about(who), stays
        # If they are renamed, they are there under another name.
        elif renamed or self._answered or self._following.now >= question.closed_at:
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
        if not recorded.position:
            self._following.on_first(command.id)
        return self._where._replace(command="restate_forecasts"), command

    def _added(
        self, given: Sequence[_LocatedForecast], spans: Sequence[Span], first: int, recorded: RecordedForecasts
    ) -> Iterator[SourceItem]:
        """Return the commands of the copy that go on from what is recorded; those before it are known."""
        since = spans[first].at
        is_same = first < len(recorded.spans) and recorded.spans[first][:2] == spans[first][:2]
        for location, item in given:
            at = read_instant(item.at)
            begins = at == since and isinstance(item, SubmitForecast)
            if at < since or (begins and is_same):
                yield location, KNOWN
                continue
            taken = item.id in self._known.ids  # perhaps of another name of the participant
            name = fitting_id(f"{item.id} after {recorded.position} of {item.participant}") if taken else item.id
            if begins and first < len(recorded.spans):
                self._following.on_correction(name)
            yield location, structs.replace(item, id=name)


def alone(known: RecordedQuestion, question: QuestionState) -> State:
    """Return a state of this question alone, as if it were not resolved."""
    state = State()
    state.questions[known.opened.question] = question._replace(settled=False)
    state.standing[known.opened.question] = {}
    return state


def _content(span: Span) -> tuple[object, ...]:
    return span[:3]


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
