"""Follow a source that changes: the commands that bring a ledger with earlier copies to what the newest copy says.

A question that the ledger has from the same source is compared with its commands in the copy, all at once: other times,
other answers, forecasts that are new, corrected, gone or back again. What is the same is not sent again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
from forecast_ledger.ledger.deciding.questions import forecast_event
from forecast_ledger.ledger.deciding.state import QuestionState, State
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AmendQuestion,
    AnyCommand,
    ChangeOutcomes,
    CloseQuestion,
    EnrolParticipant,
    OpenQuestion,
    Quote,
    RecordTrade,
    RestatedForecast,
    RestateForecasts,
    RevokeResolution,
    SubmitForecast,
    WithdrawForecast,
)
from forecast_ledger.replay.importing.new_names import Bots, renamings
from forecast_ledger.replay.importing.question_changes import (
    Answering,
    Answers,
    OfQuestion,
    Placed,
    Times,
    options_of,
)
from forecast_ledger.replay.importing.recorded_copy import (
    ReadLog,
    RecordedCopy,
    RecordedForecasts,
    RecordedQuestion,
    Span,
    add_forecast,
    end_forecast,
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
    "stay; if only the name of the forecaster is new, rename_participant moves them to it"
)
OTHER_OPTIONS = "other changes of the options of a question than those recorded: those of the ledger stay"
SEALED = "another weight in a contest that is finalized: its board stays"
OLD_PRICE = "a price from before the last quote: quotes are recorded in order of time, and stay"
ANSWER_MISSED = "an answer that an earlier copy had: it stays, as --keep-missing says"
UNREAD = "forecasts that an earlier copy had; this one has a part that cannot be read: they stay"
ANSWER_TIMES = "other times of a question whose answer this copy does not have: the answer and the times stay"
TRADE_MISSED = (
    "a trade that an earlier copy had: money moved, so that it stays; to be without it, import this copy into a new "
    "ledger"
)
TRADE_UNREAD = "a trade that an earlier copy had; this one has a part that cannot be read: it stays"
ANSWER_UNREAD = "an answer that an earlier copy had; this one has a part that cannot be read: it stays"

_PlacedForecast = tuple[InputPlace, SubmitForecast | WithdrawForecast]


class Following(NamedTuple):
    """How a copy is followed. now: the instant of the import, µs. keep_missing: whether what is gone stays.

    take_back: whether also more than half of the forecasts may be gone. on_correction: called with the id of each
    forecast that is to replace one of its own instant.
    """

    now: int
    keep_missing: bool = False
    take_back: bool = False
    on_correction: Callable[[str], None] = lambda _: None


def follow_copy(source: Source, read: ReadLog, following: Following) -> Iterator[SourceItem]:
    """Return the items of a copy, with those about questions that the ledger has from the same source as they follow
    what is recorded.

    read: returns the pages of the log. Raises, before anything is returned, Refused (bad_source): the copy does not
    have more than half of the forecasts that the ledger has of it, as one of another source would; of a source with a
    name, of the forecasts and answers.
    """
    copy = RecordedCopy(read(), source.name, source.person_of)
    asked: dict[str, list[Placed]] = {}
    items, renames = source.items, list[SourceItem]()
    if copy.people.present:
        items = [*items]
        renames = [*renamings(copy, items, source.person_of)]
    bots = Bots(copy)
    new: list[SourceItem] = []
    forecasts, traded = bool(source.name), set[str]()
    for place, given in items:
        item = bots.followed(place, given)
        forecasts |= isinstance(item, SubmitForecast)
        question = getattr(item, "question", None) or ""  # none is a command about several
        known = copy.questions.get(question)
        if isinstance(item, OfQuestion) and known is not None and _is_followed(item, known):
            asked.setdefault(question, []).append((place, item))
            continue
        if isinstance(item, RecordTrade):
            traded.add(item.id)
        found = place, _under_present_id(item, copy) if known is None or isinstance(item, RecordTrade) else item
        if copy.questions:
            new.append(found)
        else:
            yield found  # nothing is compared, and nothing has to be held
    unasked = (name for name, known in copy.questions.items() if source.scope.questions(known.opened))
    about = {name: asked.get(name, []) for name in (*asked, *unasked)}
    questions = {name: _Question(copy, copy.questions[name], source.scope, following) for name in about}
    if forecasts and not (following.keep_missing or following.take_back):
        losses = [questions[name].losses(own) for name, own in about.items()]
        losses += [questions[name].lost_answer(own) for name, own in about.items() if source.name]
        _check_losses(losses, source.name)
    yield from renames
    yield from new
    if source.scope.trades:
        yield from _missed_trades(copy, traded, source.scope)
    if source.scope.bots:
        yield from bots.none_any_more()
    for name, own in about.items():
        yield from questions[name].followed(own)
    for name, known in copy.questions.items():
        absent = "" if name in about else source.scope.absent(known.opened)
        if absent and any(forecasts.own and forecasts.spans for forecasts in known.forecasts.values()):
            yield InputPlace(0, file=f"question {name}"), NotCarried(absent)


def _is_followed(item: OfQuestion, known: RecordedQuestion) -> bool:
    """Return whether a command is compared with what is recorded; one that opens the question of another is not."""
    is_of_opener = isinstance(item, OpenQuestion | AddQuestion | ChangeOutcomes | CloseQuestion)
    return known.source == source_of(item.id) and (known.is_own or not is_of_opener)


def _check_losses(losses: Sequence[tuple[int, int]], source: str) -> None:
    """Refuse (bad_source) a copy that lacks more than half of what the ledger has of it.

    losses: what `losses` returns of each question. source: its name, if it has one.
    """
    recorded, gone = (sum(column) for column in zip(*losses, strict=True)) if losses else (0, 0)
    if 2 * gone > recorded:
        of_it = (
            "forecasts and answers that the ledger has of it"
            if source
            else "forecasts that the ledger has on its questions"
        )
        detail = (
            f"of the {recorded:,} {of_it}, each of a participant on a question, "
            f"it lacks {gone:,}, as a copy of another source does; nothing was recorded"
        )
        another = (
            "give another source another name, `source` in its map"
            if source
            else "keep another source in a ledger of its own with --name"
        )
        remedy = (
            f"{another}; if this one adds to what is recorded, use "
            "--keep-missing; if it is the newest copy, and the others are gone, use --take-back"
        )
        raise Refused("bad_source", "file" if source else "path", None, detail, remedy=remedy)


def _missed_trades(copy: RecordedCopy, traded: Collection[str], scope: Scope) -> Iterator[SourceItem]:
    """Return the trades that earlier copies had. traded: the ids of those that this one has."""
    for name, event in copy.traded.items():
        if name not in traded and source_of(name) == scope.trades:
            unread = scope.unread(copy.questions[event.question].opened, event.participant)
            yield InputPlace(0, file=name), NotCarried(TRADE_UNREAD if unread else TRADE_MISSED)


def _under_present_id(item: AnyCommand | Refused | NotCarried, copy: RecordedCopy) -> AnyCommand | Refused | NotCarried:
    """Return a command on a new question, or of an account, under the id that its participant has in the ledger.

    What an earlier copy said of an account stays under the id that it was recorded with.
    """
    if isinstance(item, RecordTrade) and item.id in copy.traded:
        return structs.replace(item, participant=copy.traded[item.id].participant)
    if not isinstance(item, SubmitForecast | WithdrawForecast | RecordTrade | EnrolParticipant):
        return item
    if isinstance(item, EnrolParticipant) and (item.contest, item.participant) in copy.enrolled:
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
        self._unread: list[list[tuple[object, ...]]] = []  # those of whoever may be in a part that is not read
        self._options, self._asked = options_of(known, [], settled=False), False
        self._where = InputPlace(0, file=f"question {known.opened.question}")  # of what the copy does not have

    def followed(self, asked: Sequence[Placed]) -> Iterator[SourceItem]:
        """Return the commands that bring the question to what the copy says; `asked` are those of the copy."""
        known = self._known
        self._where = asked[0][0] if asked else self._where
        changes = [item for _, item in asked if isinstance(item, ChangeOutcomes)]
        self._open = _with_outcomes(self._open, changes)
        times = Times(known, asked)
        self._closes = times.closes
        answers = [(place, item) for place, item in asked if isinstance(item, Answering)]
        answering, moves = Answers(known, answers, self._alone(self._open)), times.differ
        if moves and answering.by_hand and not answering.replaces:
            moves = False
            yield self._where, NotCarried(BY_HAND_TIMES)
        elif moves:
            answering = Answers(known, answers, self._alone(times.after(self._open)))
        yield from answering.refused
        replaces = answering.replaces
        stays = (
            NotCarried("") if not self._scope.answers(known.opened) else self._stays("", ANSWER_UNREAD, ANSWER_MISSED)
        )
        gone = answering.gone or (answering.returns and self._scope.unread(known.opened, ""))  # the last may be unread
        if gone and stays is not None:
            if moves or stays.reason:
                yield self._where, NotCarried(ANSWER_TIMES) if moves else stays
            replaces = moves = False
        unsettles = bool(known.standing) and (moves or replaces)
        yield from self._openings(asked)
        if unsettles:
            yield from self._revocations()
        yield from times.commands(self._where) if moves else times.known()
        yield from self._quotes(asked)
        settled = bool(known.standing) and not unsettles
        self._options, self._asked = options_of(known, asked, settled=settled), bool(asked)
        if not self._options.agrees and asked:
            yield self._where, NotCarried(OTHER_OPTIONS)
        yield from self._forecasts(asked, times.after(self._open) if moves else self._open, settled=settled)
        yield from answering.commands(again=unsettles) if replaces or unsettles or not gone else ()

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
            if isinstance(item, Quote):
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

    def losses(self, asked: Sequence[Placed]) -> tuple[int, int]:
        """Return how many participants have forecasts that the copy can take back, and of how many it has none.

        One who has the same forecasts under another name in the copy is not gone.
        """
        given, opened = self._given(asked), self._known.opened
        if not self._scope.forecasts(opened):
            return 0, 0
        recorded = {
            who: [*map(_content, own.spans)]
            for who, own in self._known.forecasts.items()
            if who != opened.source and own.spans and not (own.by_hand or own.merged or own.spans[-1].missed)
        }
        gone = [who for who in recorded if who not in given and not self._scope.unread(opened, who)]
        if gone:
            self._options = options_of(self._known, asked, settled=False)
            renamed = [[*map(_content, spans)] for spans in self._new(given, self._open)]
            gone = [who for who in gone if recorded[who] not in renamed]
        return len(recorded), len(gone)

    def lost_answer(self, asked: Sequence[Placed]) -> tuple[int, int]:
        """Return how many answers of the source stand, and how many of them the copy does not have: 0 or 1."""
        known = self._known
        stands = any(source_of(each.command_id) == known.source for each in known.standing)
        if not stands or not self._scope.answers(known.opened) or self._scope.unread(known.opened, ""):
            return 0, 0
        answers = [(place, item) for place, item in asked if isinstance(item, Answering)]
        return 1, int(Answers(known, answers, self._alone(self._open)).gone)

    def _given(self, asked: Sequence[Placed]) -> dict[str, list[_PlacedForecast]]:
        """Return the forecasts of the copy by participant, under the ids of the ledger."""
        given: dict[str, list[_PlacedForecast]] = {}
        for place, command in asked:
            if isinstance(command, SubmitForecast | WithdrawForecast):
                who = self._now.get(command.participant, command.participant)
                given.setdefault(who, []).append((place, structs.replace(command, participant=who)))
        return given

    def _new(self, given: dict[str, list[_PlacedForecast]], question: QuestionState) -> list[list[Span]]:
        """Return the forecasts of each participant whom the ledger does not have on the question."""
        return [self._spans(own, question)[0] for who, own in given.items() if who not in self._known.forecasts]

    def _forecasts(self, asked: Sequence[Placed], question: QuestionState, *, settled: bool) -> Iterator[SourceItem]:
        """Return the commands of the forecasts in order of time. question: with the times of the copy."""
        given = self._given(asked)
        for spans in self._new(given, question):
            renamed = self._stuck if self._too_early(spans, [], None) else self._renamed
            renamed.append([*map(_content, spans)])
        self._unread = [
            [*map(_content, own.spans)]
            for who, own in self._known.forecasts.items()
            if who not in given and own.spans and self._scope.unread(self._known.opened, who)
        ]
        commands: list[tuple[int, int, int, SourceItem]] = []
        for number, (place, item) in enumerate(each for each in asked if isinstance(each[1], ChangeOutcomes)):
            found = item if number >= len(self._options.recorded) and self._options.agrees else KNOWN
            side = 1 if isinstance(item, ChangeOutcomes) and item.add else -1  # after the forecasts of its instant
            commands.append((read_instant(item.at), side, len(commands), (place, found)))
        others = (who for who, recorded in self._known.forecasts.items() if recorded.own and who not in given)
        for who in [*given, *others]:
            for each in self._of_participant(who, given.get(who, []), question, settled=settled):
                at = getattr(each[1], "at", None)
                commands.append((FIRST_INSTANT if at is None else read_instant(at), 0, len(commands), each))
        yield from (found for *_, found in sorted(commands, key=lambda each: each[:3]))

    def _of_participant(
        self, who: str, given: Sequence[_PlacedForecast], question: QuestionState, *, settled: bool
    ) -> Iterator[SourceItem]:
        recorded = self._known.forecasts.get(who, RecordedForecasts())
        if recorded.merged:
            yield self._about(who), NotCarried(MERGED)
            return
        spans, made, refused = self._spans_before_close(given, recorded, question)
        if refused and not self._options.agrees:
            yield from ((place, NotCarried(OTHER_OPTIONS)) for _, (place, _) in refused)
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
            yield from ((place, KNOWN) for place, _ in given)
        elif recorded.by_hand:
            yield self._about(who), NotCarried(BY_HAND)
        elif not spans and not given and not overtaken:
            yield from self._missing(who, recorded, question, settled=settled)
        elif ((first := _first_new(spans, recorded.spans)) is None and self._scope.unread(self._known.opened, who)) or (
            not recorded.spans and [*map(_content, spans)] in self._unread  # perhaps somebody whose name is not read
        ):
            yield self._about(who), NotCarried(UNREAD)
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

    def _spans_before_close(
        self, given: Sequence[Placed], recorded: RecordedForecasts, question: QuestionState
    ) -> tuple[list[Span], dict[int, SubmitForecast], list[tuple[str, SourceItem]]]:
        """Return what `_spans` does; what was recorded before somebody closed the question by hand is not late."""
        spans, made, refused = self._spans(given, question)
        if refused:
            said, _, still = self._spans(given, question._replace(closed_at=self._closes))
            if [*map(_content, said)] == [*map(_content, recorded.spans)]:
                spans, refused = said, still
        return spans, made, refused

    def _spans(
        self, given: Sequence[Placed], question: QuestionState
    ) -> tuple[list[Span], dict[int, SubmitForecast], list[tuple[str, SourceItem]]]:
        """Return the forecasts of a copy, the command of each by its instant, and the ids that the ledger refuses."""
        alone, history = self._alone(question), self._options
        has_changed = bool(history.recorded or history.new) or not history.agrees
        spans, made, refused = list[Span](), dict[int, SubmitForecast](), list[tuple[str, SourceItem]]()
        for place, item in given:
            if isinstance(item, WithdrawForecast):
                end_forecast(spans, read_instant(item.at))
            elif isinstance(item, SubmitForecast):
                try:
                    if has_changed:
                        alone = self._alone(history.question_at(question, read_instant(item.at)))
                    event = forecast_event(item, alone, FIRST_INSTANT)
                except Refused as fault:
                    refused.append((item.id, (place, fault)))
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

    def _about(self, who: str) -> InputPlace:
        """Return what names the forecasts of a participant, which may be nowhere in the copy."""
        return InputPlace(0, file=f"{who} on {self._known.opened.question}")

    def _missing(
        self, who: str, recorded: RecordedForecasts, question: QuestionState, *, settled: bool
    ) -> Iterator[SourceItem]:
        """Return what becomes of forecasts that the copy does not have: withdrawn while open, else never made."""
        if self._asked and not self._options.agrees:  # they may be there, with options that the ledger does not have
            yield self._about(who), NotCarried(OTHER_OPTIONS)
            return
        last = recorded.spans[-1]
        if last.missed or not self._scope.forecasts(self._known.opened):
            return
        if [*map(_content, recorded.spans)] in self._stuck:
            return
        stays, renamed = self._stays(who, UNREAD, MISSED), [*map(_content, recorded.spans)] in self._renamed
        if stays is not None and not (renamed and stays.reason == MISSED):
            yield self._about(who), stays
        elif renamed or settled or self._following.now >= question.closed_at:  # renamed: they are of another name
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
            begins = at == since and isinstance(item, SubmitForecast)
            if at < since or (begins and is_same):
                yield place, KNOWN
                continue
            taken = item.id in self._known.ids  # perhaps of another name of the participant
            name = fitting_id(f"{item.id} after {recorded.position} of {item.participant}") if taken else item.id
            if begins and first < len(recorded.spans):
                self._following.on_correction(name)
            yield place, structs.replace(item, id=name)


def _with_outcomes(question: QuestionState, changes: Iterable[ChangeOutcomes]) -> QuestionState:
    """Return a question after changes of its outcomes, some of which may be recorded."""
    for change in changes:
        added = tuple(name for name in change.add or () if name not in question.outcomes)
        removed = question.removed | {*(change.remove or ())}
        question = question._replace(outcomes=question.outcomes + added, removed=removed)
    return question


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
