"""Batches of commands, each read once and decided against the state after the one before it, and their receipts."""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import UNSET, Struct, UnsetType, structs

from forecast_ledger.ledger.batching.chances import Choices
from forecast_ledger.ledger.batching.checks import (
    FREE,
    Claims,
    check_new_contests,
    check_new_ids,
    check_required,
    fault_of,
)
from forecast_ledger.ledger.batching.forecasts import (
    ForecastColumns,
    Numbers,
    QuickForecasts,
    ids_of,
    read_quick_forecasts,
)
from forecast_ledger.ledger.batching.measures import Takes, takes
from forecast_ledger.ledger.batching.writer_state import HashedIds, ReadRows, RecordedCommand, WriterState, attempt_key
from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused, first_by_precedence
from forecast_ledger.ledger.core.values import FIRST_INSTANT
from forecast_ledger.ledger.deciding.decider import decide, evolve
from forecast_ledger.ledger.deciding.normal_forms import as_recorded, command_digest, needs_question, without_fields
from forecast_ledger.ledger.deciding.questions import unsettled_question
from forecast_ledger.ledger.deciding.state import Standing, StandingOf, State, Write
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import canonical_content, normal_content
from forecast_ledger.ledger.model.commands import AnyCommand, Quote, RecordDecision, SubmitForecast
from forecast_ledger.ledger.model.events import TAGS, AnyEvent, DecisionMalformed, ForecastMade, RefusedQuote
from forecast_ledger.ledger.model.log import Checkpoint, ForecastFields, NewRows, Recorded
from forecast_ledger.ledger.model.provenance import Provenance, provenance_of

if TYPE_CHECKING:
    from forecast_ledger.ledger.batching.sent_forecasts import SentForecasts

_ROWS = frozenset({tuple, list})
_READ_AS_DECIMALS = frozenset({float, str})
# The types of a field that has no list and no struct in it for which a tuple is to stand.
_FLAT = frozenset({str, int, float, bool, Decimal, type(None), UnsetType, tuple, dict})


def with_tuples(part: Any) -> Any:
    """Return a command, or a field of one, with a tuple in place of each list that a caller gave for a tuple.

    >>> from forecast_ledger.ledger.model.commands import ChangeOutcomes
    >>> with_tuples(ChangeOutcomes(at="2026-03-01T00:00:00Z", question="q1", remove=["a"])).remove
    ('a',)
    """
    if type(part) is list:
        return tuple(part)
    if not isinstance(part, Struct) or _FLAT.issuperset(map(type, structs.astuple(part))):
        return part
    fields = [(name, getattr(part, name)) for name in part.__struct_fields__]
    deeper = [(name, value) for name, value in fields if type(value) is list or isinstance(value, Struct)]
    changed = {name: new for name, value in deeper if (new := with_tuples(value)) is not value}
    return structs.replace(part, **changed) if changed else part


def with_decimals(command: AnyCommand) -> AnyCommand:
    """Return the command with floats and texts of a cdf, quantiles or samples as decimals, so that each is read once.

    If one of them is not a number, return the command unchanged.
    """
    if type(command) is not SubmitForecast:
        return command
    forms = {"cdf": command.cdf, "quantiles": command.quantiles, "samples": command.samples}
    field, numbers = next(((name, given) for name, given in forms.items() if given is not None), ("", None))
    if type(numbers) not in _ROWS or not numbers or type(numbers[0]) not in _READ_AS_DECIMALS:
        return command
    try:
        return structs.replace(command, **{field: tuple(values.read_decimals(numbers, field))})
    except Refused:  # `canonical_content` raises the refusal that comes first
        return command


class Receipt(Struct, frozen=True, gc=False):
    """The first and last log position of a command's events; `duplicate` if the command was recorded before.

    refused: of a quote with skip_bad, the prices that were not recorded, also on a retry.

    >>> from forecast_ledger import Receipt, commands, open_ledger
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with open_ledger(":memory:") as ledger:
    ...     receipts: list[Receipt] = [ledger.handle(contest, command_id="open-spring") for _ in range(2)]
    >>> [(receipt.first, receipt.last, receipt.duplicate) for receipt in receipts]
    [(1, 1, False), (1, 1, True)]
    """

    command_id: str
    first: int
    last: int
    duplicate: bool = False
    refused: tuple[RefusedQuote, ...] = ()


_NOTHING = State()
MAX_COMMAND_BYTES = 16 * 2**20  # of a command's content, so that each of its rows has at most MAX_ROW_BYTES


class Request(NamedTuple):
    """A command to record, under an id. `known_by`: the digest of its normal form, or the refusal of its fields.

    If the normal form depends on its question, the batch computes the digest again, when the question is known.
    """

    id: str
    command: AnyCommand
    known_by: str | Refused


class Requests:
    """Commands to record, in order. quick: the forecasts that need no other way. slow: the requests of all others."""

    def __init__(self, commands: Sequence[AnyCommand], ids: Sequence[str] | None = None) -> None:
        """ids: `command.id` of each by default."""
        self.ids = ids if ids is not None else ids_of(commands)
        self.quick, self._commands = read_quick_forecasts(self.ids, commands), commands
        has_slow = (not isinstance(commands, ForecastColumns) or commands.quick is None) and None in self.quick.at
        is_slow = [index for index, at in enumerate(self.quick.at) if at is None] if has_slow else ()
        self.slow = {index: _read_request(self.ids[index], commands[index]) for index in is_slow}

    @property
    def skips(self) -> bool:
        """Whether the receipt of one says more than where it is in the log: which quotes it skipped."""
        return any(getattr(request.command, "skip_bad", False) for request in self.slow.values())

    def __len__(self) -> int:
        return len(self._commands)

    def __getitem__(self, index: int) -> Request:
        if index in self.slow:
            return self.slow[index]
        if self.quick.measures[index] is not None:  # a question may round its numbers
            return _read_request(self.ids[index], self._commands[index])
        return Request(self.ids[index], self._commands[index], self.quick.fingerprint[index])

    def known(self, most: int | None = None) -> list[tuple[str, str | Refused]]:
        """Return the id of each, or of so many of the first, and what it is known by."""
        known: list[tuple[str, str | Refused]] = [*zip(self.ids[:most], self.quick.fingerprint[:most], strict=True)]
        for index, request in self.slow.items():
            if index < len(known):
                known[index] = request.id, request.known_by
        return known


def _read_request(command_id: str, command: AnyCommand) -> Request:
    command = with_decimals(with_tuples(command))
    return Request(command_id, command, _fingerprint(command_id, command))


def _fingerprint(command_id: str, command: AnyCommand) -> str | Refused:
    """Return the fingerprint of a command's content, or the first refusal of its id and fields by precedence."""
    recorded: AnyCommand | None = None
    try:
        values.check_id(command_id, "id")
        recorded = as_recorded(command, _NOTHING)
        content = normal_content(recorded)
        if len(content) <= MAX_COMMAND_BYTES:
            return log.fingerprint(content)
        too_long = f"its content has more than {MAX_COMMAND_BYTES} bytes"
        return Refused("malformed", "command", None, too_long, remedy="split it into several commands")
    except Refused as refused:
        if recorded is command:
            return refused
        fault = refused
    try:
        normal_content(command)
    except Refused as content_fault:
        return first_by_precedence([content_fault, fault])
    return fault


_FORECAST = TAGS[ForecastMade]
_MISSING = object()
# One (time, question, participant, numbers) for each request. The time is None if the command is in the log, or might
# be; the numbers are None of a probability.
_Remaining = Iterator[tuple[int | None, str, str, Numbers | None]]


class Batch:
    """Commands decided together: the rows to append, and the changes of the state, to undo them.

    read: reads rows of the log. now: by the ledger's clock, µs; never before the newest row. times: of receipt of
    each command, if imported. claims: the instants that commands may claim.
    """

    def __init__(
        self,
        known: WriterState,
        read: ReadRows,
        now: int,
        times: Sequence[int] | None = None,
        claims: Claims = FREE,
    ) -> None:
        self.state, self.commands, self.attempts = known.state, known.commands, known.attempts
        self._read, self._claims = read, claims
        self._older: Mapping[str, RecordedCommand] = {}  # those of the commands that are recorded, and not recent
        self._now, self._times, self._in_use = now, times, not known.is_imported
        self._began_at = self.recorded_at = now if times is None else known.recorded_at
        self.head = known.head
        self.position, self.digest = self.head
        self.rows: list[NewRows] = []
        self._undo: list[Iterable[Write]] = []  # what to write again, in the opposite order
        self._new: list[str] = []  # ids of the commands that the batch has added to the recent ones
        self._hashed: HashedIds | None = None  # the ids of the commands, if all are quick forecasts, and many
        self._is_whole = False  # whether these commands are all recorded, by one run of rows
        self._sent: SentForecasts | None = None  # the forecasts of `record_sent`

    def receipts(self, known: Sequence[tuple[str, str | Refused]]) -> list[Receipt | Refused] | None:
        """Return the receipts of commands that are all recorded; None if one is not, or has other content.

        known: the id of each, and what it is known by.
        """
        receipts: list[Receipt | Refused] = []
        self._look_up(known)
        for command_id, known_by in known:
            command = None if isinstance(known_by, Refused) else self._recorded(command_id)
            if command is None or command.fingerprint != known_by:
                return None
            receipts.append(Receipt(command_id, command.first, command.last, duplicate=True))
        return receipts

    def decide_all(self, requests: Requests, *, atomic: bool) -> list[Receipt | Refused]:
        """Return the outcome of each command; if atomic, one refusal refuses all."""
        if requests.slow or not self.commands.are_many(len(requests)):
            self._look_up(requests.known())
        else:
            self._hashed = self.commands.hashed(requests.ids)
            self._older = self.commands.older(self._hashed, self._read)
        outcomes: list[Receipt | Refused] = []
        if self._times is None:
            quick = requests.quick.stamped(self.recorded_at)
            instants = self._instants(requests.ids, quick.at)
            remaining = zip(instants, quick.question, quick.participant, quick.measures, strict=True)
            while (index := self._record_quick(requests.ids, quick, remaining, outcomes)) is not None:
                outcomes.append(self._outcome(requests[index], None))
        else:
            outcomes += [self._outcome(requests[index], time) for index, time in enumerate(self._times)]
        if atomic and any(isinstance(outcome, Refused) for outcome in outcomes):
            self.undo()
            return [
                Refused("batch_refused", "id", outcome.command_id)
                if isinstance(outcome, Receipt) and outcome.last > self.position
                else outcome
                for outcome in outcomes
            ]
        return outcomes

    def undo(self) -> None:
        """Restore the state from before the batch."""
        for table, key, value in chain.from_iterable(reversed(self._undo)):
            if value is _MISSING:
                table.pop(key, None)
            else:
                table[key] = value
        for command_id in self._new:
            self.commands.recent.pop(command_id, None)
        self._undo.clear()
        self._new.clear()
        self.rows.clear()
        self.position, self.digest = self.head
        self.recorded_at = self._began_at

    def settle(self) -> None:
        """Index the commands of the batch, once its rows are recorded."""
        if self._hashed is not None and self._is_whole:
            import numpy as np  # noqa: PLC0415 - short logs do without

            self.commands.add(self._hashed, np.arange(self.head.position + 1, self.position + 1, dtype=np.uint64))
        if self._sent is not None:
            from forecast_ledger.ledger.batching.sent_forecasts import pending_forecasts  # noqa: PLC0415 - as above

            pending_forecasts(self.state).add(self._sent)
        self.commands.settle()

    def pages(self) -> list[list[bytes]]:
        """Return the rows so far as a page of the log; no page if there are none."""
        return [[log.row_bytes(row) for group in self.rows for row in group.rows]] if self.rows else []

    def _look_up(self, known: Sequence[tuple[str, str | Refused]]) -> None:
        """Look up the commands that are recorded, and not recent. The id of a refused one may not even be a text."""
        ids = [command_id for command_id, known_by in known if type(known_by) is str]
        self._older = self.commands.older(ids, self._read)

    def _instants(self, ids: Sequence[str], instants: Sequence[int | None]) -> Sequence[int | None]:
        """Return the instant of each quick forecast; None if it is recorded, refused, or another has its id."""
        recent = self.commands.recent
        if self._claims != FREE:
            within = self._claims.is_within
            instants = [at if at is not None and within(at, self.recorded_at) else None for at in instants]
        try:
            are_distinct = len({*ids}) == len(ids) if self._hashed is None else self._hashed.are_distinct()
            if are_distinct and recent.keys().isdisjoint(ids) and not self._older:
                return instants
        except TypeError:  # an id that cannot be one; its request is a refusal
            return [None] * len(ids)
        count = Counter(ids)
        are_known = [count[each] > 1 or self._recorded(each) is not None for each in ids]
        return [None if known else at for known, at in zip(are_known, instants, strict=True)]

    def _recorded(self, command_id: str) -> RecordedCommand | None:
        return self.commands.recent.get(command_id) or self._older.get(command_id)

    def _outcome(self, request: Request, time: int | None) -> Receipt | Refused:
        """Return the outcome of a command; append its rows, and apply its events, if it is new and accepted."""
        earlier = self._earlier_outcome(request)
        if earlier is not None:
            return earlier
        command_id, command, _ = request
        first = self.position + 1
        try:
            events = self._decide(command, time)
        except Refused as refused:
            return refused
        is_malformed = any(type(event) is DecisionMalformed for event in events)
        digest = self._digest(request) if not is_malformed else command_digest(without_fields(command), self.state)
        provenance = provenance_of(command)
        for event in events:
            self._record(command_id, digest, event, provenance)
        self.commands.recent[command_id] = RecordedCommand(digest, first, self.position)
        self._new.append(command_id)
        if type(command) is RecordDecision:
            self._write([(self.attempts, attempt_key(command), command_id)])
        return Receipt(command_id, first, self.position, refused=getattr(events[0], "refused", ()))

    def _earlier_outcome(self, request: Request) -> Receipt | Refused | None:
        """Return the outcome of a command that has a fault or is recorded; None if it is still to be decided."""
        command_id, command, known_by = request
        if isinstance(known_by, Refused):
            return known_by
        if (recorded := self._recorded(command_id)) is not None:
            if not self._is_same(recorded, request):
                return Refused("command_id_reused", "id", command_id)
            refused = self._refused_quotes(command, recorded.first)
            return Receipt(command_id, recorded.first, recorded.last, duplicate=True, refused=refused)
        if type(command) is not RecordDecision or (earlier := self.attempts.get(attempt_key(command))) is None:
            return None
        recorded = self.commands.recent.get(earlier) or self.commands.older([earlier], self._read)[earlier]
        if not self._is_same(recorded, request):
            detail = f"command {earlier!r} has recorded this attempt, with other content"
            return Refused("decision_taken", "attempt", command.attempt, detail)
        return Receipt(command_id, recorded.first, recorded.last, duplicate=True)

    def _refused_quotes(self, command: AnyCommand, position: int) -> tuple[RefusedQuote, ...]:
        """Return the quotes that a recorded command skipped. position: of its event."""
        if type(command) is not Quote or not command.skip_bad:
            return ()
        new = [row for group in self.rows for row in group.rows][position - self.head.position - 1 :]
        [row] = [log.row_bytes(new[0])] if position > self.head.position else self._read(position - 1, 1)
        event: Any = log.unseal_row(row, position).event
        refused: tuple[RefusedQuote, ...] = event.refused
        return refused

    def _digest(self, request: Request) -> str:
        """Return the digest of the normal form of a command without a fault."""
        command = request.command
        recorded = as_recorded(command, self.state) if needs_question(command) else command
        return str(request.known_by) if recorded is command else log.fingerprint(normal_content(recorded))

    def _is_same(self, recorded: RecordedCommand, request: Request) -> bool:
        """Return whether a command is the one that is recorded, perhaps by the digest of the first form."""
        command = request.command
        return (
            recorded.fingerprint == self._digest(request)
            or recorded.fingerprint == log.fingerprint(canonical_content(command))
            or (
                without_fields(command) is not command
                and recorded.fingerprint == command_digest(without_fields(command), self.state)
            )
        )

    def _decide(self, command: AnyCommand, time: int | None) -> Sequence[AnyEvent]:
        """Decide a command; a time of receipt is then the time of its rows. Raises Refused."""
        is_imported = self._times is not None
        fault = fault_of(time, self.recorded_at, self._now, in_use=self._in_use) if is_imported else None
        recorded_at = self._now if fault is not None else self.recorded_at if time is None else time
        fault = fault or self._claims.fault_of(command, recorded_at)
        try:
            check_new_ids(command, self.state)
            check_required(command)
            events = decide(command, self.state, recorded_at)
            check_new_contests(events)
        except Refused as refused:
            raise first_by_precedence([refused, fault] if fault else [refused]) from None
        if fault is not None:
            raise fault
        self.recorded_at = recorded_at
        return events

    def _record(self, command_id: str, fingerprint: str, event: AnyEvent, provenance: Provenance | UnsetType) -> None:
        self.position = position = self.position + 1
        recorded = Recorded(
            position=position,
            recorded_at=self.recorded_at,
            imported=UNSET if self._times is None else True,
            normal=True,
            provenance=provenance,
            command_id=command_id,
            command=fingerprint,
            previous=self.digest,
            event=event,
        )
        row, self.digest = log.seal(recorded)
        log.read_back(row, position)
        if self.rows and self.rows[-1].type == TAGS[type(event)] and self.rows[-1].fields is None:
            cast("list[bytes]", self.rows[-1].rows).append(row)
        else:
            self.rows.append(NewRows(position, TAGS[type(event)], [row]))
        self._write(evolve(event, self.state, position))

    def _record_quick(
        self, ids: Sequence[str], quick: QuickForecasts, remaining: _Remaining, outcomes: list[Receipt | Refused]
    ) -> int | None:
        """Record forecasts up to the first request that may be refused or recorded, or is no quick forecast.

        remaining: of the requests without an outcome. Return the index of that request; None at the end. It does what
        `_outcome` does; only forecasts are recorded in it, so the questions that take them stay the same.
        """
        begin = len(outcomes)
        recorded_numbers: dict[int, tuple[str, Sequence[int]]] = {}
        end = self._accept_quick(quick, remaining, begin, recorded_numbers)
        if begin in {end, len(ids)}:
            return end
        new_ids, new = ids[begin:end], quick.part(begin, end)
        numbers = {at - begin: each for at, each in recorded_numbers.items()} if begin else recorded_numbers
        events = log.with_numbers(new.event, numbers) if numbers else new.event
        rows = self._sealed(zip(log.command_texts(new.id, new.fingerprint), events, strict=True))
        span = range(self.position + 1, self.position + len(new_ids) + 1)
        fields = ForecastFields(
            recorded_at=self.recorded_at,
            command_ids=new_ids,
            commands=new.fingerprint,
            at=cast("Sequence[int]", new.at),
            question=new.question,
            participant=new.participant,
            units=new.units,
            measured=numbers,
        )
        made: Iterable[str] = rows if end is None else [*rows]
        self.rows.append(NewRows(self.position + 1, _FORECAST, made, lambda: fields, len(span)))
        self.position += len(span)
        self._is_whole = len(span) == len(ids)
        if self._hashed is None or not self._is_whole:
            self._new += new_ids
            recorded = map(RecordedCommand, new.fingerprint, span, span)
            self.commands.recent.update(zip(new_ids, recorded, strict=True))
        outcomes += map(Receipt, new_ids, span, span)
        return end

    def _sealed(self, texts: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Return the next rows, which are made one by one while they are recorded: they are then still in a processor's
        caches. The first is read back.
        """
        sealing = log.seal_texts(Checkpoint(self.position, self.digest), self.recorded_at, texts)
        first = next(sealing)
        log.read_back(first, self.position + 1)
        return chain([first], self._to_end(sealing))

    def _to_end(self, rows: Generator[str, None, str]) -> Iterator[str]:
        self.digest = yield from rows

    def record_sent(self, sent: "SentForecasts") -> bool:
        """Record all of some forecasts, if it is certain that each is new and accepted; return whether it is.

        What stands is changed by `settle`.
        """
        commands = self.commands
        if self._claims != FREE or not commands.are_many(sent.size) or not sent.are_accepted(self.state):
            return False
        hashed = commands.hashed_codes((), [sent.ids])
        if commands.may_have(hashed.hashes) or not hashed.are_distinct():
            return False
        fields = partial(sent.fields, self.recorded_at)
        self.rows.append(NewRows(self.position + 1, _FORECAST, self._sealed(sent.texts()), fields, sent.size))
        self.position += sent.size
        self._hashed, self._is_whole, self._sent = hashed, True, sent
        return True

    def _accept_quick(
        self, quick: QuickForecasts, remaining: _Remaining, begin: int, numbers: dict[int, tuple[str, Sequence[int]]]
    ) -> int | None:
        """Make forecasts stand, from the one at `begin` up to the first request that needs another way.

        Return the index of that request; None at the end. numbers: where the field and the numbers of each forecast but
        those of a probability are written, in the unit of its question, by index.
        """
        taking: dict[str, _Taking] = {}
        lasts: list[Standing | None] = []  # what stood before each forecast
        replaced, several = lasts.append, self.state.several_ids()
        self._undo.append(_replaced(quick, begin, lasts, taking))
        for at, question, participant, measures in remaining:
            if at is None or participant in several:
                return begin + len(lasts)
            if (of := taking.get(question)) is None:
                of = taking[question] = self._taking(question)
            standing, taken = of.standing, of.numbers
            last = standing.get(participant)
            if at >= of.closes_at or (last is not None and at < (last if isinstance(last, int) else last[0])):
                return begin + len(lasts)
            if taken is not None or measures is not None:
                if taken is None or measures is None or (units := taken.units(measures)) is None:
                    return begin + len(lasts)
                numbers[begin + len(lasts)] = taken.field, units
            replaced(last)
            standing[participant] = at
        return None

    def _taking(self, name: str) -> "_Taking":
        question = unsettled_question(name, self.state)
        if question is None:
            return _Taking(FIRST_INSTANT, {}, None)
        if question.range is not None:
            numbers: Takes | Choices | None = takes(question.range)
        else:
            numbers = Choices(question.outcomes) if question.kind == "multiple_choice" else None
        return _Taking(question.closed_at, self.state.standing_on(name), numbers)

    def _write(self, writes: Sequence[Write]) -> None:
        self._undo.append([(table, key, table.get(key, _MISSING)) for table, key, _ in writes])
        for table, key, value in writes:
            table[key] = value


class _Taking(Struct, frozen=True, gc=False):  # else a batch on many questions makes the garbage collector run
    """Until when a question takes forecasts, µs, what stands on it, and which numbers, if no probability."""

    closes_at: int
    standing: StandingOf
    numbers: Takes | Choices | None


def _replaced(
    quick: QuickForecasts, begin: int, lasts: Sequence[Standing | None], taking: Mapping[str, _Taking]
) -> Iterator[Write]:
    """Return what stood before quick forecasts from an index on, the newest first."""
    for index in range(begin + len(lasts) - 1, begin - 1, -1):
        last = lasts[index - begin]
        yield taking[quick.question[index]].standing, quick.participant[index], _MISSING if last is None else last
