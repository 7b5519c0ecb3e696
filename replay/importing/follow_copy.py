"""Follow a source that changes: the commands that bring a ledger with earlier copies to what the newest copy says.

A question that the ledger has from the same source is compared with its commands in the copy, all at once: other times,
other answers, forecasts that are new, corrected, gone or back again. What is the same is not sent again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import (
    LARGEST_WEIGHT,
    WEIGHT,
    format_instant,
    read_fixed,
    read_instant,
)
from forecast_ledger.ledger.deciding.distributions import numeric_range
from forecast_ledger.ledger.deciding.state import QuestionState
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
    RevokeResolution,
    SubmitForecast,
    WithdrawForecast,
)
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.new_names import Bots, renamings
from forecast_ledger.replay.importing.question_changes import (
    Answering,
    Answers,
    LocatedCommand,
    OfQuestion,
    Times,
)
from forecast_ledger.replay.importing.question_forecasts import Following, Forecasts, alone
from forecast_ledger.replay.importing.recorded_copy import (
    ReadLog,
    RecordedCopy,
    RecordedQuestion,
    source_of,
)
from forecast_ledger.replay.importing.source_items import KNOWN, NotCarried, Scope, Source, SourceItem, fitting_id

BY_HAND_TIMES = "other times of a question whose answer was recorded by hand: revoke that answer to take the times over"
CHANGED = "the source says otherwise"
OTHER_GROUP = "another group or category of a question: that of the ledger stays"
OTHER_CONTEST = "another contest of a question: it stays in the one that it was in, too"
SEALED_QUESTION = (
    "a question that is new in a contest that is finalized: it is recorded, and its board stays without it"
)
SEALED = "another weight in a contest that is finalized: its board stays"
OLD_PRICE = "a price from before the last quote: quotes are recorded in order of time, and stay"
ANSWER_MISSED = "an answer that an earlier copy had: it stays, as --keep-missing says"
ANSWER_TIMES = "other times of a question whose answer this copy does not have: the answer and the times stay"
TRADE_MISSED = (
    "a trade that an earlier copy had: money moved, so that it stays; to be without it, import this copy into a new "
    "ledger"
)
TRADE_UNREAD = "a trade that an earlier copy had; this one has a part that cannot be read: it stays"
ANSWER_UNREAD = "an answer that an earlier copy had; this one has a part that cannot be read: it stays"


def follow_copy(source: Source, read: ReadLog, following: Following) -> Iterator[SourceItem]:
    """Return the items of a copy, with those about questions that the ledger has from the same source as they follow
    what is recorded.

    read: returns the pages of the log. Raises, before anything is returned, Refused (bad_source): the copy does not
    have more than half of the forecasts that the ledger has of it, as one of another source would; of a source with a
    name, of the forecasts and answers.
    """
    copy = RecordedCopy(read(), source.name, source.person_of)
    by_question: dict[str, list[LocatedCommand]] = {}
    items, renames = source.items, list[SourceItem]()
    if copy.people.present:
        items = [*items]
        renames = [*renamings(copy, items, source.person_of)]
    bots = Bots(copy)
    new: list[SourceItem] = []
    forecasts, traded = bool(source.name), set[str]()
    for location, given in items:
        item = bots.followed(location, given)
        forecasts |= isinstance(item, SubmitForecast)
        question = getattr(item, "question", None) or ""  # none is a command about several
        known = copy.questions.get(question)
        if isinstance(item, OfQuestion) and known is not None and _is_followed(item, known):
            by_question.setdefault(question, []).append((location, item))
            continue
        if isinstance(item, RecordTrade):
            traded.add(item.id)
        placed_item = (
            location,
            _under_present_id(item, copy) if known is None or isinstance(item, RecordTrade) else item,
        )
        if copy.questions:
            new.append(placed_item)
        else:
            yield placed_item  # nothing is compared, and nothing has to be held
    unasked = (name for name, known in copy.questions.items() if source.scope.questions(known.opened))
    about = {name: by_question.get(name, []) for name in (*by_question, *unasked)}
    questions = {name: _Question(copy, copy.questions[name], source.scope, following) for name in about}
    if forecasts and not (following.keep_missing or following.take_back):
        losses = [questions[name].forecasts.losses(commands) for name, commands in about.items()]
        losses += [questions[name].lost_answer(commands) for name, commands in about.items() if source.name]
        _check_losses(losses, source.name)
    yield from renames
    yield from new
    if source.scope.trades:
        yield from _missed_trades(copy, traded, source.scope)
    if source.scope.bots:
        yield from bots.none_any_more()
    for name, commands in about.items():
        yield from questions[name].followed(commands)
    yield from _not_compared(copy, about, source.scope)


def _not_compared(
    copy: RecordedCopy, about: Mapping[str, Sequence[LocatedCommand]], scope: Scope
) -> Iterator[SourceItem]:
    """Return the questions with forecasts that stay because the copy does not say whether they are gone.

    about: the questions that the copy has, or would have if the source did, with its commands.
    """
    for name, known in copy.questions.items():
        said = name in about and scope.forecasts(known.opened)
        stays = "" if said else scope.bare if name in about else scope.absent(known.opened)
        given = {getattr(item, "participant", "") for _, item in about.get(name, ())} if stays else set[str]()
        given |= {copy.renamed.get(who, who) for who in given}
        if any(each.of_source and each.spans and who not in given for who, each in known.forecasts.items() if stays):
            yield InputLocation(0, file=f"question {name}"), NotCarried(stays)


def _is_followed(item: OfQuestion, known: RecordedQuestion) -> bool:
    """Return whether a command is compared with what is recorded; one that opens the question of another is not."""
    is_of_opener = isinstance(item, OpenQuestion | AddQuestion | ChangeOutcomes | CloseQuestion)
    return known.source == source_of(item.id) and (known.is_of_source or not is_of_opener)


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
            yield InputLocation(0, file=name), NotCarried(TRADE_UNREAD if unread else TRADE_MISSED)


def _under_present_id(item: AnyCommand | Refused | NotCarried, copy: RecordedCopy) -> AnyCommand | Refused | NotCarried:
    """Return a command on a new question, or of an account, under the id that its participant has in the ledger.

    What an earlier copy said of an account stays under the id that it was recorded with. A contest that is finalized
    takes no question.
    """
    if isinstance(item, AddQuestion) and item.contest in copy.sealed:
        return NotCarried(SEALED_QUESTION)
    if isinstance(item, RecordTrade) and item.id in copy.traded:
        return structs.replace(item, participant=copy.traded[item.id].participant)
    if not isinstance(item, SubmitForecast | WithdrawForecast | RecordTrade | EnrolParticipant):
        return item
    if isinstance(item, EnrolParticipant) and (item.contest, item.participant) in copy.enrolled:
        return item
    return structs.replace(item, participant=copy.renamed.get(item.participant, item.participant))


def _other_form(item: OpenQuestion, opened: QuestionOpened) -> Refused | None:
    """Return why a copy cannot be followed of which the same forecasts say something else: of levels, say."""
    if item.range is None or opened.range is None:
        return None
    try:
        new, old = numeric_range(item.range, opened.kind), opened.range
    except Refused:  # as the command is
        return None
    counts = [len(span.levels) or span.samples or span.bins for span in (old, new)]
    if (old.levels, old.samples, old.bins) != (new.levels, new.samples, new.bins):
        noun = "levels" if old.levels and new.levels else "samples" if old.samples and new.samples else "values"
        others = f"{counts[1]}{' others' * (counts[0] == counts[1])}"
        detail = f"an earlier copy asked for {counts[0]} {noun}, and this one for {others}"
    elif old.bins and (old.lower, old.upper, old.zero_point) != (new.lower, new.upper, new.zero_point):
        detail = (
            f"it had the range {old.lower} to {old.upper} in an earlier copy, and has {new.lower} to {new.upper} now"
        )
        detail += ", or another scale" * ((old.lower, old.upper) == (new.lower, new.upper))
    else:
        return None
    remedy = "it stays as it is, with its forecasts and its answer; import this copy into a new ledger, as with --name"
    return Refused("bad_source", "range", None, f"{opened.question[:80]}: {detail}", remedy=remedy)


class _Question:
    """A question of the ledger, and what a copy says of it."""

    def __init__(self, copy: RecordedCopy, known: RecordedQuestion, scope: Scope, following: Following) -> None:
        self._known, self._scope = known, scope
        self._sealed, self._open = copy.sealed, copy.state_of(known.opened.question)
        self.forecasts = Forecasts(copy, known, scope, following)
        self._where = InputLocation(0, file=f"question {known.opened.question}")  # of what the copy does not have

    def followed(self, commands: Sequence[LocatedCommand]) -> Iterator[SourceItem]:
        """Return the commands that bring the question to what the copy says. commands: those of the copy."""
        known = self._known
        self._where = commands[0][0] if commands else self._where
        openings = [
            (location, _other_form(item, known.opened)) for location, item in commands if isinstance(item, OpenQuestion)
        ]
        others = [(location, refused) for location, refused in openings if refused is not None]
        if others:
            yield from others[:1]
            return
        changes = [item for _, item in commands if isinstance(item, ChangeOutcomes)]
        self._open = _with_outcomes(self._open, changes)
        times = Times(known, commands)
        answers = [(location, item) for location, item in commands if isinstance(item, Answering)]
        answering, moves = Answers(known, answers, alone(known, self._open)), times.differ
        if moves and answering.by_hand and not answering.replaces:
            moves = False
            yield self._where, NotCarried(BY_HAND_TIMES)
        elif moves:
            answering = Answers(known, answers, alone(known, times.after(self._open)))
        yield from answering.refused
        replaces = answering.replaces
        stays: NotCarried | None = NotCarried("")
        if self._scope.answers(known.opened):
            stays = self.forecasts.stays("", ANSWER_UNREAD, ANSWER_MISSED)
        gone = answering.gone or (answering.returns and self._scope.unread(known.opened, ""))  # the last may be unread
        if gone and stays is not None:
            if moves or stays.reason:
                yield self._where, NotCarried(ANSWER_TIMES) if moves else stays
            replaces = moves = False
        unsettles = bool(known.standing) and (moves or replaces)
        yield from self._openings(commands)
        if unsettles:
            yield from self._revocations()
        yield from times.commands(self._where) if moves else times.known()
        yield from self._quotes(commands)
        settled = bool(known.standing) and not unsettles
        question = times.after(self._open) if moves else self._open
        answered = settled or answering.stands
        yield from self.forecasts.followed(commands, question, times.closes, settled=settled, answered=answered)
        yield from answering.commands(again=unsettles) if replaces or unsettles or not gone else ()

    def _openings(self, commands: Sequence[LocatedCommand]) -> Iterator[SourceItem]:
        """Return the commands that open the question, as they are recorded, and those that amend it.

        Copies from before importers said whether outcomes have an order did not say it, and it stays so.
        """
        known, opened = self._known, self._known.opened
        for location, item in commands:
            if isinstance(item, OpenQuestion):
                reveals_at = None if opened.reveals_at is None else format_instant(opened.reveals_at)
                times = {name: format_instant(getattr(opened, name)) for name in ("at", "opens_at", "closes_at")}
                recorded: dict[str, Any] = {
                    name: getattr(opened, name) or None for name in ("tags", "url", "source", "group", "category")
                }
                recorded["ordered"] = None if opened.ordered is None else item.ordered
                yield location, structs.replace(item, reveals_at=reveals_at, title=opened.title, **times, **recorded)
                yield from self._described(location, item)
            elif isinstance(item, AddQuestion) and item.contest in known.entries:
                entry = known.entries[item.contest]
                weight = Decimal(entry.weight).scaleb(-6)
                yield location, structs.replace(self._entry(item), at=format_instant(entry.at), weight=weight)
                yield from self._weighted(location, item) if self._scope.weights(opened) else ()
            elif isinstance(item, AddQuestion) and item.contest in self._sealed:
                yield location, NotCarried(SEALED_QUESTION)
            elif isinstance(item, AddQuestion):
                yield location, self._entry(item)
                if known.entries:
                    yield location, NotCarried(OTHER_CONTEST)

    def _entry(self, item: AddQuestion) -> AddQuestion:
        """Return the command that puts the question into a contest, with an id that no entry into another one has."""
        name, ids = fitting_id(f"{item.id} to {item.contest}"), self._known.ids
        is_taken = item.id in ids and item.contest not in self._known.entries
        return structs.replace(item, id=name) if is_taken or name in ids else item

    def _described(self, location: InputLocation, item: OpenQuestion) -> Iterator[SourceItem]:
        """Return the amendment of what describes the question, if the source says something else than before."""
        known, before = self._known, self._known.said
        new = {"title": item.title, "tags": tuple(item.tags or ()), "url": item.url or "", "source": item.source or ""}
        changed: dict[str, Any] = {name: text for name, text in new.items() if text != getattr(before, name)}
        if changed:
            name = fitting_id(f"{known.source} amend {known.opened.question} after {known.position}")
            command = AmendQuestion(id=name, question=known.opened.question, **changed, reason=CHANGED)
            yield location._replace(command="amend_question"), command
        if (item.group or "", item.category or "") != (before.group, before.category):
            yield location, NotCarried(OTHER_GROUP)

    def _weighted(self, location: InputLocation, item: AddQuestion) -> Iterator[SourceItem]:
        """Return the amendment of the weight in a contest, if the source has another one than before."""
        known = self._known
        try:
            weight = read_fixed(item.weight, WEIGHT, "weight", 0, LARGEST_WEIGHT)
        except Refused as refused:
            yield location, refused
            return
        if weight == known.weights[item.contest]:
            return
        if item.contest in self._sealed:
            yield location, NotCarried(SEALED)
            return
        name = fitting_id(f"{known.source} weigh {known.opened.question} in {item.contest} after {known.position}")
        question, contest = known.opened.question, item.contest
        command = AmendQuestion(id=name, question=question, contest=contest, weight=item.weight, reason=CHANGED)
        yield location._replace(command="amend_question"), command

    def _quotes(self, commands: Sequence[LocatedCommand]) -> Iterator[SourceItem]:
        """Return the quotes after the last one that is recorded; those that an earlier copy had are known."""
        for location, item in commands:
            if isinstance(item, Quote):
                is_known = item.id in self._known.ids
                late = KNOWN if is_known else NotCarried(OLD_PRICE)
                yield location, late if is_known or read_instant(item.quoted_at) < self._known.quoted_at else item

    def _revocations(self) -> Iterator[SourceItem]:
        """Return the revocations of what settles the question, the last one first."""
        for settled in reversed(self._known.standing):
            source, question = self._known.source, self._known.opened.question
            name = fitting_id(f"{source} revoke {settled.position} for {settled.command_id}")
            at = format_instant(max(self._open.closes_at, getattr(self._open.resolution, "known_at", 0)))
            reason = "the source has another answer, or other times"
            yield self._where, RevokeResolution(id=name, at=at, question=question, reason=reason)

    def lost_answer(self, commands: Sequence[LocatedCommand]) -> tuple[int, int]:
        """Return how many answers of the source stand, and how many of them the copy does not have: 0 or 1."""
        known = self._known
        is_in_force = any(source_of(each.command_id) == known.source for each in known.standing)
        if not is_in_force or not self._scope.answers(known.opened) or self._scope.unread(known.opened, ""):
            return 0, 0
        answers = [(location, item) for location, item in commands if isinstance(item, Answering)]
        return 1, int(Answers(known, answers, alone(known, self._open)).gone)


def _with_outcomes(question: QuestionState, changes: Iterable[ChangeOutcomes]) -> QuestionState:
    """Return a question after changes of its outcomes, some of which may be recorded."""
    for change in changes:
        added = tuple(name for name in change.add or () if name not in question.outcomes)
        removed = question.removed | {*(change.remove or ())}
        question = question._replace(outcomes=question.outcomes + added, removed=removed)
    return question
