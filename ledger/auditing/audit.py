"""Decide a log again: each command is rebuilt from its events, and the decider must answer it with the same events.

A log that passes has only events that the decider records, no matter which program wrote it.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import UNSET, UnsetType, json, structs

from forecast_ledger.ledger.auditing.quick_check import DIGEST, ForecastCheck
from forecast_ledger.ledger.auditing.rebuild import CommandReading, rebuilt_commands
from forecast_ledger.ledger.auditing.taken_forecasts import PlainForecasts
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.core.values import check_id
from forecast_ledger.ledger.deciding.decider import decide, evolve
from forecast_ledger.ledger.deciding.normal_forms import command_digest
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model.canonical import canonical_content
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import (
    TAGS,
    AnyEvent,
    ForecastMade,
    ForecastsRetracted,
    PrizePaid,
    TextKept,
    TradeRecorded,
)
from forecast_ledger.ledger.model.log import Recorded, fingerprint
from forecast_ledger.ledger.model.mismatch import first_difference, mismatch, money_text, short_repr, shorten
from forecast_ledger.ledger.model.provenance import NOTHING, Provenance, provenance_of

MOST_LISTED = 10  # commands whose digest cannot be rebuilt


class Audit:
    """Checks a log from its first row on. Raises Corrupt at the first event that the decider would not record.

    text: returns the text_kept event at a log position, when a later command has the same text again. If it is left
    out, the audit keeps all texts in memory. state: of the rows before the first one, if they are not audited.
    is_cut: whether the log ends within its last command, which is allowed if `pages` has cut.
    first_forms: the number of commands that have a digest of the first form, and the last log position of one of them.
    lossy_commands: the number of those whose digest cannot be rebuilt, because their events do not record all of their
    content; lossy_positions: of the first of them.
    """

    def __init__(self, text: Callable[[int], TextKept] | None = None, state: State | None = None) -> None:
        self.state = State() if state is None else state
        self.lossy_commands = 0
        self.lossy_positions: list[int] = []
        self.is_cut = False  # whether the log ends within its last command
        self._texts: dict[int, TextKept] = {}  # by log position
        self._text = text or self._texts.__getitem__
        self._keeps_texts = text is None
        self._commands: dict[str, int] = {}  # first log position by id
        self._paid: dict[str, dict[str, int]] = {}  # by contest and winner, 1e-6
        self._forecasts = ForecastCheck(self.state)
        self._pending: list[Recorded] = []  # the rows of the last command, which the next page may continue

    def pages(self, pages: Iterator[Sequence[Recorded]], *, cut: bool) -> Iterator[Sequence[Recorded]]:
        """Yield the rows of all pages, after their commands are decided.

        cut: True if the log may end within its last command.
        """
        for page in pages:
            if decided := self.decide(page):
                yield decided
        if self._pending:
            self._command(self._pending, None, cut=cut)
            yield self._pending

    def decide(self, page: Sequence[Recorded]) -> Sequence[Recorded]:
        """Decide the commands that certainly end in the next rows; return their rows. `pages` decides the last one."""
        pending, start = self._pending, 0
        if len(pending) == 1:  # most often a forecast, which is checked quickly
            pending, page = [], [*pending, *page]
        end = len(page)
        if pending:
            start = _until_another(page, 0, pending[0].command_id)
            pending += page[:start]
            if start == end:
                return ()
            self._command(pending, page[start])
        at = start
        while at < end:
            at += self._forecasts.accept(page, at, self._commands, self._note_lossy)
            after = _until_another(page, at + 1, page[at].command_id)
            if after == end:
                break
            self._command(page[at:after], page[after])
            at = after
        self._pending = [*page[at:]]
        return [*pending, *page[start:at]]

    def take(self, forecasts: PlainForecasts) -> Sequence[Recorded] | None:
        """Apply the next rows, which are forecasts; return the rows of the command before them, which is then decided.

        None if the decider might not record one of them, or Corrupt, now or later, up to `check_taken`: then decide the
        whole log by `pages` alone. Raises Corrupt: it would not record the command before them; the rows after it are
        not named as `pages` names them.
        """
        decided, self._pending = self._pending, []
        if decided:
            self._command(decided, None)
        return decided if self._forecasts.take(forecasts, self._commands) else None

    def check_taken(self) -> None:
        """Check what is left to check of all forecasts taken. Raises Corrupt: the decider would not record one."""
        self._forecasts.check_taken(self._commands)

    def _apply(self, recorded: Recorded) -> None:
        for table, key, value in evolve(recorded.event, self.state, recorded.position):
            table[key] = value

    def _command(self, rows: Sequence[Recorded], after: Recorded | None, *, cut: bool = False) -> None:
        """Decide a command again, and apply its events. after: the row after its rows; None at the end of the log."""
        self._check(rows, after, cut=cut)
        if self.is_cut:
            return
        for recorded in rows:
            self._apply(recorded)
            if isinstance(recorded.event, PrizePaid):
                self._paid.setdefault(recorded.event.contest, {})[recorded.event.participant] = recorded.event.amount
            elif isinstance(recorded.event, TextKept) and self._keeps_texts:
                self._texts[recorded.position] = recorded.event
        if not all(type(recorded.event) is ForecastMade for recorded in rows):
            self._forecasts.renew()

    def is_whole(self, rows: Sequence[Recorded]) -> bool:
        """Return whether these rows, the last of a log, are all of their command; the state stays as it is."""
        self._check(rows, None, cut=True)
        return not self.is_cut

    def _check(self, rows: Sequence[Recorded], after: Recorded | None, *, cut: bool) -> None:
        self._check_envelope(rows)
        recorded_events = [recorded.event for recorded in rows]
        texts = {event.digest: event for event in recorded_events if isinstance(event, TextKept)}
        main = next(
            (index for index, event in enumerate(recorded_events) if not isinstance(event, TextKept)), len(rows)
        )
        if main == len(rows):
            if cut:
                self.is_cut = True
                return
            raise self._missing(rows, after, "the decision that has the text")
        if cut and _is_begun(recorded_events[main:]):
            self.is_cut = True
            return
        readings = rebuilt_commands(recorded_events[main:], self.state, lambda digest: self._text_of(digest, texts))
        if not readings:
            what = mismatch("the first event of a command", "an event that only follows another one")
            raise _corrupt(rows[main], what)
        readings = [reading.said(rows[0].provenance) for reading in readings]
        is_normal = rows[0].normal is True
        reading, digest = self._choose(readings, rows[0].command, is_normal=is_normal)
        decided = self._decided(reading, rows, recorded_events, main)
        if (said := provenance_of(reading.command)) != rows[0].provenance:
            raise _corrupt(rows[0], mismatch(f"the provenance {_json(said)}", _json(rows[0].provenance)))
        self._compare(decided, rows, after, cut=cut)
        self.is_cut |= cut and self._is_unpaid(recorded_events[main:])
        if digest and (is_normal or not reading.lossy):
            expected = f"the command digest {digest}, computed from the event"
            raise _corrupt(rows[0], mismatch(expected, short_repr(rows[0].command)))
        if digest and not DIGEST.fullmatch(rows[0].command):
            raise _corrupt(
                rows[0], mismatch("a digest of 32 hexadecimal digits as command", short_repr(rows[0].command))
            )
        if digest:
            self._note_lossy(rows[0].position)

    def _note_lossy(self, position: int) -> None:
        """Count a command whose digest cannot be rebuilt."""
        self.lossy_commands += 1
        if len(self.lossy_positions) < MOST_LISTED:
            self.lossy_positions.append(position)

    @property
    def first_forms(self) -> tuple[int, int]:
        """The number of commands with a digest of the first form, and the last log position of one of them."""
        return self._forecasts.first_forms

    def _check_envelope(self, rows: Sequence[Recorded]) -> None:
        """Check that the rows of a command share its fields, that its id is valid and new, and its digest's form."""
        first = rows[0]
        try:
            check_id(first.command_id, "id")
        except Refused as refused:
            raise _corrupt(first, mismatch("a valid command id", _reason(refused))) from None
        before = self._commands.get(first.command_id) or self._forecasts.taken_at(first.command_id)
        if before is not None:
            expected = "a command id that is not in use"
            raise _corrupt(first, mismatch(expected, f"{short_repr(first.command_id)}, as at log position {before}"))
        self._commands[first.command_id] = first.position
        if not self._forecasts.note_form(first):
            expected = "a digest of the normal form, as in the commands before"
            raise _corrupt(first, mismatch(expected, "one of the first form"))
        for recorded in rows[1:]:
            for name in ("recorded_at", "imported", "normal", "provenance", "command"):
                expected, actual = getattr(first, name), getattr(recorded, name)
                if expected != actual:
                    shared = f"{name} {short_repr(expected)}, as in the command's first event"
                    raise _corrupt(recorded, mismatch(shared, short_repr(actual)))

    def _choose(
        self, readings: Sequence[CommandReading], command: str, *, is_normal: bool
    ) -> tuple[CommandReading, str]:
        """Return the reading with the command's digest, and ""; if there is none, the last reading and its digest."""
        digest = ""
        digest_of = partial(command_digest, state=self.state) if is_normal else _first_digest
        for reading in readings:
            for variant in reading.variants:
                try:
                    digest = digest_of(variant)
                    if digest == command:
                        return reading, ""
                    if digest_of(structs.replace(variant, at=None)) == command:
                        return reading._replace(command=structs.replace(reading.command, at=None)), ""
                except Refused:
                    break  # `_decided` raises Corrupt for it
        return readings[-1], digest or "none"

    def _decided(
        self, reading: CommandReading, rows: Sequence[Recorded], recorded_events: Sequence[AnyEvent], main: int
    ) -> Sequence[AnyEvent]:
        """Decide a command, with prizes as they are recorded; the check `payouts` compares them with the board."""
        paid = {event.participant: event.amount for event in recorded_events if isinstance(event, PrizePaid)}
        self.state.prizes = lambda contest: paid | self._paid.get(contest, {})
        self.state.null_lists = getattr(recorded_events[main], "fault", "") != "unreadable"
        try:
            canonical_content(reading.command)
            return decide(reading.command, self.state, rows[main].recorded_at)
        except Refused as refused:
            kind = str(reading.command.__struct_config__.tag)
            raise _corrupt(rows[main], mismatch(f"{kind} to be allowed", _reason(refused))) from None
        except ValueError:  # amounts that differ from the board, which the check `payouts` reports
            self._check_payable(rows[main], paid, len(recorded_events))
            return recorded_events
        finally:
            self.state.prizes, self.state.null_lists = None, True

    def _check_payable(self, recorded: Recorded, paid: dict[str, int], count: int) -> None:
        """Raise Corrupt unless each winner has one prize, in payable units, and the rest of the pool is enough."""
        name: str = recorded.event.contest  # type: ignore[union-attr]
        contest, before = self.state.contests[name], self._paid.get(name, {})
        unit, unpaid = contest.payable_unit, contest.pool - contest.paid
        payable = all(amount > 0 and amount % unit == 0 for amount in paid.values())
        if not payable or sum(paid.values()) > unpaid or len(paid) < count or before.keys() & paid.keys():
            most = money_text(unpaid)
            expected = f"one prize above 0 for each winner, in units of {money_text(unit)}, at most {most} in all"
            total, least = money_text(sum(paid.values())), money_text(min(paid.values()))
            raise _corrupt(recorded, mismatch(expected, f"{count} of {total} in all, the smallest {least}"))

    def _is_unpaid(self, recorded_events: Sequence[AnyEvent]) -> bool:
        """Return whether these are payments of prizes that leave a part of the pool: a command pays all of it."""
        paid = [event for event in recorded_events if isinstance(event, PrizePaid)]
        if not paid:
            return False
        contest = self.state.contests[paid[0].contest]
        return contest.paid + sum(event.amount for event in paid) < contest.pool

    def _compare(
        self, decided: Sequence[AnyEvent], rows: Sequence[Recorded], after: Recorded | None, *, cut: bool
    ) -> None:
        for recorded, expected in zip(rows, decided, strict=False):
            if recorded.event != expected:
                raise _corrupt(recorded, self._difference(expected, recorded.event))
        if len(rows) > len(decided):
            what = mismatch(f"no more events of command {short_repr(rows[0].command_id)}", "one more")
            raise _corrupt(rows[len(decided)], what)
        if len(rows) < len(decided):
            if not cut:
                raise self._missing(rows, after, TAGS[type(decided[len(rows)])])
            self.is_cut = True

    def _difference(self, expected: AnyEvent, actual: AnyEvent) -> str:
        if type(expected) is not type(actual):
            return mismatch(f"{TAGS[type(expected)]} here", TAGS[type(actual)])
        question = self.state.questions.get(getattr(actual, "question", ""))
        span = question.range if question else None
        return first_difference(expected, actual, 10 ** (span.decimals if span else 0))

    def _missing(self, rows: Sequence[Recorded], after: Recorded | None, expected: str) -> Corrupt:
        """Return an error that names the event that is missing after a command's last one."""
        if after is None:
            return Corrupt(rows[-1].position, mismatch(f"{expected} after this", "the end of the log"))
        return _corrupt(after, mismatch(f"{expected} here", f"another command, {short_repr(after.command_id)}"))

    def _text_of(self, digest: str, texts: dict[str, TextKept]) -> str | None:
        if digest in texts:
            return texts[digest].text
        return self._text(self.state.texts[digest]).text if digest in self.state.texts else None


def _is_begun(recorded_events: Sequence[AnyEvent]) -> bool:
    """Return whether fewer forecasts follow a retraction than it says, or fewer parts of a trade."""
    first = recorded_events[0]
    if isinstance(first, TradeRecorded):
        return len(recorded_events) < first.parts
    return isinstance(first, ForecastsRetracted) and len(recorded_events) <= first.restated


def _first_digest(command: AnyCommand) -> str:
    """Return the digest of a command's content, as rows had it before its normal form. Raises Refused."""
    return fingerprint(canonical_content(command))


def _json(provenance: Provenance | UnsetType) -> str:
    """Return what rows say about where their command came from, as one short text."""
    return shorten(json.encode(NOTHING if provenance is UNSET else provenance).decode(), 60)


def _until_another(rows: Sequence[Recorded], start: int, command_id: str) -> int:
    """Return the index of the first row from `start` on that belongs to another command."""
    for index in range(start, len(rows)):
        if rows[index].command_id != command_id:
            return index
    return len(rows)


def _corrupt(recorded: Recorded, what: str) -> Corrupt:
    return Corrupt(recorded.position, f"{TAGS[type(recorded.event)]}: {what}")


def _reason(refused: Refused) -> str:
    """Return why a command is refused, without the remedy, which is for the sender of a command."""
    field = f"{refused.field} = {short_repr(refused.value)}: " if refused.field and refused.value is not None else ""
    return shorten(f"{refused.code}: {field}{short_repr(refused.detail, 200)[1:-1] or refused.meaning}", 115)
