"""Deciding a log again: the command that each event follows from is rebuilt, and must lead to the same events.

Whoever wrote the log, what passes here is what the decider answers to commands, one after another.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from forecast_ledger.ledger.auditing.command_readings import CommandReading
from forecast_ledger.ledger.auditing.quick_check import ForecastCheck
from forecast_ledger.ledger.auditing.rebuild import rebuilt_commands
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.core.values import check_id
from forecast_ledger.ledger.deciding.decider import decide, evolve
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model.canonical import canonical_content
from forecast_ledger.ledger.model.events import TAGS, AnyEvent, ForecastMade, PrizePaid, TextKept
from forecast_ledger.ledger.model.log import Recorded, fingerprint
from forecast_ledger.ledger.model.mismatch import first_difference, mismatch, money_text, short_repr, shorten

_DIGEST = re.compile("[0-9a-f]{32}", re.ASCII)


class Audit:
    """Follows a log from its first row on. Raises Corrupt at the first event that no decider would have recorded.

    text: the event that keeps a text, by its log position; asked where a text that was kept before counts again. If it
    is left out, all texts are remembered.
    rounded: how many commands said more than their events keep, so that the digest of it cannot be rebuilt.
    """

    def __init__(self, text: Callable[[int], TextKept] | None = None) -> None:
        self.state = State()
        self.lossy_commands = 0
        self._remembered: dict[int, TextKept] = {}  # by log position
        self._text = text or self._remembered.__getitem__
        self._remembers = text is None
        self._kept: dict[str, int] = {}  # log position by digest
        self._commands: dict[str, int] = {}  # first log position by id
        self._paid: dict[str, dict[str, int]] = {}  # by contest and winner, 1e-6
        self._forecasts = ForecastCheck(self.state)
        self._pending: list[Recorded] = []  # the rows of the last command, of which there may be more

    def pages(self, pages: Iterator[Sequence[Recorded]], *, cut: bool) -> Iterator[Sequence[Recorded]]:
        """Pass on page after page, each command once it is decided.

        cut: whether the log may end before its last command does.
        """
        for page in pages:
            if decided := self._page(page):
                yield decided
        if self._pending:
            self._command(self._pending, None, cut=cut)
            yield self._pending

    def _page(self, page: Sequence[Recorded]) -> Sequence[Recorded]:
        """Decide the commands that end in a page; returns their rows."""
        pending, start, end = self._pending, 0, len(page)
        if pending:
            start = _until_another(page, 0, pending[0].command_id)
            pending += page[:start]
            if start == end:
                return ()
            self._command(pending, page[start])
        rest = start
        while rest < end:
            recorded = page[rest]
            after = rest + 1
            if after < end and page[after].command_id == recorded.command_id:
                after = _until_another(page, after, recorded.command_id)
            if after == end:
                break
            if after > rest + 1 or type(recorded.event) is not ForecastMade or not self._is_forecast(recorded):
                self._command(page[rest:after], page[after])
            rest = after
        self._pending = [*page[rest:]]
        return [*pending, *page[start:rest]]

    def _is_forecast(self, recorded: Recorded) -> bool:
        """Whether a row is, at a quick look, what the decider records of a forecast; then it is taken in."""
        command_id = recorded.command_id
        if command_id in self._commands or (said := self._forecasts.content(recorded)) is None:
            return False
        if fingerprint(said) != recorded.command:
            if not _DIGEST.fullmatch(recorded.command):
                return False
            self.lossy_commands += 1
        self._commands[command_id] = recorded.position
        self._take_in(recorded)
        return True

    def _take_in(self, recorded: Recorded) -> None:
        for table, key, value in evolve(recorded.event, self.state, recorded.position):
            table[key] = value

    def _command(self, rows: Sequence[Recorded], after: Recorded | None, *, cut: bool = False) -> None:
        """Decide a command again. after: the row that follows its own, none at the end of the log."""
        self._check_envelope(rows)
        happened = [recorded.event for recorded in rows]
        texts = {event.digest: event for event in happened if isinstance(event, TextKept)}
        main = next((place for place, event in enumerate(happened) if not isinstance(event, TextKept)), len(rows))
        if main == len(rows):
            if cut:
                return
            raise self._missing(rows, after, "a decision that the text belongs to")
        readings = rebuilt_commands(happened[main], self.state, lambda digest: self._text_of(digest, texts))
        if not readings:
            what = mismatch("the first event of a command", "what follows from another, by itself")
            raise _corrupt(rows[main], what)
        said, digest = self._read(readings, rows[0].command)
        decided = self._decided(said, rows, happened, main)
        self._compare(decided, rows, after, cut=cut)
        if digest and not said.lossy:
            expected = f"command digest {digest}, of what the event says"
            raise _corrupt(rows[0], mismatch(expected, short_repr(rows[0].command)))
        if digest and not _DIGEST.fullmatch(rows[0].command):
            raise _corrupt(
                rows[0], mismatch("a digest of 32 hexadecimal digits as command", short_repr(rows[0].command))
            )
        self.lossy_commands += bool(digest)
        for recorded in rows:
            self._take_in(recorded)
            if isinstance(recorded.event, PrizePaid):
                self._paid.setdefault(recorded.event.contest, {})[recorded.event.participant] = recorded.event.amount
            elif isinstance(recorded.event, TextKept):
                self._kept[recorded.event.digest] = recorded.position
                if self._remembers:
                    self._remembered[recorded.position] = recorded.event

    def _check_envelope(self, rows: Sequence[Recorded]) -> None:
        """Check that a command's rows agree on what they share, and that its id is new."""
        first = rows[0]
        try:
            check_id(first.command_id, "id")
        except Refused as refused:
            raise _corrupt(first, mismatch("a command id that a command may have", _reason(refused))) from None
        if (before := self._commands.get(first.command_id)) is not None:
            expected = "a command id not used before"
            raise _corrupt(first, mismatch(expected, f"{short_repr(first.command_id)}, of log position {before}"))
        self._commands[first.command_id] = first.position
        for recorded in rows:
            for name in ("recorded_at", "command"):
                expected, found = getattr(first, name), getattr(recorded, name)
                if expected != found:
                    of = f"{name} {short_repr(expected)} of the command's first event"
                    raise _corrupt(recorded, mismatch(of, short_repr(found)))

    def _read(self, readings: Sequence[CommandReading], command: str) -> tuple[CommandReading, str]:
        """The reading that a digest is of, and ""; else the last, and the digest of that."""
        digest = ""
        for said in readings:
            for spelling in said.spellings:
                try:
                    digest = fingerprint(canonical_content(spelling))
                except Refused:
                    break  # said of the command that is decided
                if digest == command:
                    return said, ""
        return readings[-1], digest or "none"

    def _decided(
        self, said: CommandReading, rows: Sequence[Recorded], happened: Sequence[AnyEvent], main: int
    ) -> Sequence[AnyEvent]:
        """Decide a command, with prizes as they were recorded: `payouts` compares them with the board."""
        paid = {event.participant: event.amount for event in happened if isinstance(event, PrizePaid)}
        self.state.prizes = lambda contest: paid | self._paid.get(contest, {})
        try:
            canonical_content(said.command)
            return decide(said.command, self.state)
        except Refused as refused:
            kind = str(said.command.__struct_config__.tag)
            raise _corrupt(rows[main], mismatch(f"{kind} to be allowed", _reason(refused))) from None
        except ValueError:  # not what a board is worth, which is for who knows the board to say
            self._check_payable(rows[main], paid, len(happened))
            return happened
        finally:
            self.state.prizes = None

    def _check_payable(self, recorded: Recorded, paid: dict[str, int], count: int) -> None:
        """Raise Corrupt unless prizes are one a winner, in payable units, of what is left of the pool."""
        name: str = recorded.event.contest  # type: ignore[union-attr]
        contest, before = self.state.contests[name], self._paid.get(name, {})
        unit, left = contest.payable_unit, contest.pool - contest.paid
        payable = all(amount > 0 and amount % unit == 0 for amount in paid.values())
        if not payable or sum(paid.values()) > left or len(paid) < count or before.keys() & paid.keys():
            expected = (
                f"prizes above 0, one a winner, in units of {money_text(unit)}, at most {money_text(left)} in all"
            )
            found = f"{count} of {money_text(sum(paid.values()))} in all, the least {money_text(min(paid.values()))}"
            raise _corrupt(recorded, mismatch(expected, found))

    def _compare(
        self, decided: Sequence[AnyEvent], rows: Sequence[Recorded], after: Recorded | None, *, cut: bool
    ) -> None:
        for recorded, expected in zip(rows, decided, strict=False):
            if recorded.event != expected:
                raise _corrupt(recorded, self._difference(expected, recorded.event))
        if len(rows) > len(decided):
            what = mismatch(f"no more events of command {short_repr(rows[0].command_id)}", "one more")
            raise _corrupt(rows[len(decided)], what)
        if len(rows) < len(decided) and not cut:
            raise self._missing(rows, after, f"{TAGS[type(decided[len(rows)])]}, which is due here")

    def _difference(self, expected: AnyEvent, found: AnyEvent) -> str:
        if type(expected) is not type(found):
            return mismatch(f"{TAGS[type(expected)]}, which is due here", TAGS[type(found)])
        question = self.state.questions.get(getattr(found, "question", ""))
        span = question.range if question else None
        return first_difference(expected, found, 10 ** (span.decimals if span else 0))

    def _missing(self, rows: Sequence[Recorded], after: Recorded | None, expected: str) -> Corrupt:
        """An error that names the event that is missing after a command's last one."""
        if after is None:
            return Corrupt(rows[-1].position, mismatch(f"{expected} after this", "the end of the log"))
        return _corrupt(after, mismatch(expected, f"another command, {short_repr(after.command_id)}"))

    def _text_of(self, digest: str, own: dict[str, TextKept]) -> str | None:
        if digest in own:
            return own[digest].text
        return self._text(self._kept[digest]).text if digest in self._kept else None


def _until_another(rows: Sequence[Recorded], start: int, command_id: str) -> int:
    """Where in a page the rows of a command end."""
    for place in range(start, len(rows)):
        if rows[place].command_id != command_id:
            return place
    return len(rows)


def _corrupt(recorded: Recorded, what: str) -> Corrupt:
    return Corrupt(recorded.position, f"{TAGS[type(recorded.event)]}: {what}")


def _reason(refused: Refused) -> str:
    """Why a command is refused, without the remedy, which is for whoever sends one."""
    field = f"{refused.field} = {short_repr(refused.value)}: " if refused.field and refused.value is not None else ""
    return shorten(f"{refused.code}: {field}{short_repr(refused.detail, 200)[1:-1] or refused.meaning}", 115)
