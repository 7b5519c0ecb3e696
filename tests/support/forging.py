"""Logs whose digests are all right, whatever a decider would say of them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from msgspec import UNSET, structs

from forecast_ledger.ledger.auditing.audit import Audit
from forecast_ledger.ledger.auditing.rebuild import REBUILDERS, rebuilt_commands
from forecast_ledger.ledger.core.errors import LedgerError
from forecast_ledger.ledger.deciding.decider import evolve
from forecast_ledger.ledger.deciding.normal_forms import command_digest
from forecast_ledger.ledger.deciding.state import State
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import canonical_content
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import TAGS, AnyEvent, ContestOpened, PrizePaid, TextKept
from forecast_ledger.ledger.model.log import START, Checkpoint, Recorded
from forecast_ledger.ledger.storing.stored_log import StoredLog

NOTHING = "0" * 32  # the digest of a command that says nothing


def begins(event: AnyEvent, before: AnyEvent | None) -> bool:
    """Return whether an event is the first of a command, if the one before it is as it must be."""
    if isinstance(before, TextKept):
        return False
    if isinstance(event, PrizePaid) and isinstance(before, PrizePaid):
        return event.contest != before.contest
    return isinstance(event, TextKept) or type(event) in REBUILDERS


def enveloped(
    happened: Iterable[AnyEvent], recorded_at: int = 0, step: int = 0, after: Sequence[Recorded] = ()
) -> list[Recorded]:
    """Events as a ledger would record them: those of one command under one id, with the digest of what it said.

    recorded_at: of what is before the first. step: from one position to the next, µs; a command is recorded at once.
    after: what was recorded before.
    """
    rows, state = [*after], State()
    for row in after:
        took(state, row.event, row.position)
    happened = [*happened]
    texts = {event.digest: event.text for event in happened if isinstance(event, TextKept)}
    for place, event in enumerate(happened):
        position, before = len(rows) + 1, rows[-1] if rows else None
        if before is None or not place or begins(event, before.event):
            normal = after[-1].normal if after else UNSET  # as what was recorded before
            said = digest_of(islice(happened, place, None), texts, state, is_normal=normal is True)
            at = after[-1].recorded_at if after else recorded_at + step * position
            name, about = (
                f"c{position}" if not after else f"forged {position}",
                {"previous": "", "event": event, "normal": normal},
            )
            before = Recorded(position=position, recorded_at=at, command_id=name, command=said, **about)  # type: ignore[arg-type]
        rows.append(structs.replace(before, position=position, event=event))
        took(state, event, position)
    return chained(rows)


def digest_of(happened: Iterable[AnyEvent], texts: Mapping[str, str], state: State, *, is_normal: bool) -> str:
    """The digest of what the first command of these events said, if one can have led to them. texts: by digest."""
    main = next((event for event in happened if not isinstance(event, TextKept)), None)
    place = -1 if isinstance(main, ContestOpened) else 0  # under rules given whole
    try:
        if main is None:
            return NOTHING
        command = rebuilt_commands([main], state, texts.get)[place].variants[0]
        return command_digest(command, state) if is_normal else log.fingerprint(canonical_content(command))
    except (LedgerError, LookupError):
        return NOTHING


def in_first_form(rows: Sequence[Recorded], commands: Sequence[AnyCommand]) -> list[Recorded]:
    """The rows of commands `c0`, `c1` and so on, as they were before there were normal forms."""
    said = {f"c{place}": log.fingerprint(canonical_content(command)) for place, command in enumerate(commands)}
    return chained([structs.replace(row, normal=UNSET, command=said[row.command_id]) for row in rows])


def took(state: State, event: AnyEvent, position: int) -> None:
    """Take an event in, if it can be."""
    try:
        for table, key, value in evolve(event, state, position):
            table[key] = value
    except LedgerError:
        pass


def chained(rows: Iterable[Recorded]) -> list[Recorded]:
    """The same rows, numbered, each following the one before."""
    head, linked = START, []
    for position, row in enumerate(rows, 1):
        following = structs.replace(row, position=position, previous=head.digest, digest="")
        head = Checkpoint(position, log.seal(following)[1])
        linked.append(structs.replace(following, digest=head.digest))
    return linked


def audited(rows: Sequence[Recorded], *, cut: bool = False, page: int = 500) -> Audit:
    """Decide a log again. Raises Corrupt."""
    audit = Audit()
    for _ in audit.pages((rows[first : first + page] for first in range(0, len(rows), page)), cut=cut):
        pass
    return audit


def written(path: Path | str, rows: Iterable[Recorded]) -> str:
    """A store of these rows, chained."""
    store = StoredLog.open(str(path), "main")
    try:
        store.append([(row.position, TAGS[type(row.event)], log.seal(row)[0]) for row in chained(rows)])
    finally:
        store.close()
    return str(path)
