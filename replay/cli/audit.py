"""The commands of an auditor: whether a log is what it should be, and what is in it."""

import sys
from typing import IO, TYPE_CHECKING

import click

from forecast_ledger.replay.cli.shell import (
    DAMAGED,
    FINDINGS,
    USAGE,
    as_of_option,
    cut,
    emit,
    fail,
    format_option,
    log_argument,
    name_option,
    progress,
    reported,
    say,
    say_as_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecast_ledger.ledger.core.errors import Corrupt
    from forecast_ledger.replay.audit.checkpoint import Kept
    from forecast_ledger.replay.audit.compare import Parting
    from forecast_ledger.replay.audit.verify import Result

_LAST = 2**63 - 1  # no log position is greater


@click.command(epilog="Example: forecast-ledger verify season.db --only digests --only decided")
@log_argument
@click.option("--only", multiple=True, metavar="CHECK", help="Run this check, and what it rests on; repeatable.")
@click.option("--checkpoint", "file", type=click.File("rb"), help="Compare with what `checkpoint` printed once.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but what is wrong.")
@as_of_option
@name_option
@format_option
@reported
def verify(
    log: str, only: tuple[str, ...], file: IO[bytes] | None, quiet: bool, as_of: str | None, name: str, form: str
) -> None:
    """Check a log row by row, and what the rows add up to.

    Exits with 4 where the log is damaged, after saying at which log position and how to look closer; with 1 where it
    can be read and is not what it should be: a prize that the sealed board does not say, a checkpoint that differs, or
    no event at all, as in a ledger of another name.
    """
    from forecast_ledger.replay.audit.verify import CHECKS, verified

    if unknown := [check for check in only if check not in CHECKS]:
        fail(f"no check named {unknown[0]!r}; there are: {', '.join(CHECKS)}", USAGE)
    kept = None if file is None else _kept(file)
    with progress("verified") as watch:
        found = verified(log, name, cut(as_of), only, watch)
    again = [] if kept is None else [_compared(kept, log, name)]
    results = [*found.results, *(result for result, _ in again)]
    apart = [said for _, all_said in again for said in all_said]
    if found.head.position == 0 and as_of is None and not found.damage:
        apart.append(f"the ledger {name!r} has no events")
    if not quiet:
        columns = ["check", "found", "log_position", "says"]
        emit(columns, (dict(zip(columns, result, strict=True)) for result in results), form)
    for wrong in found.damage:
        say(f"forecast-ledger: the log is damaged: {wrong}")
        say(f"look closer: {_closer(log, name, wrong)}")
    for said in [*map(str, found.differences), *apart]:
        say(f"forecast-ledger: {said}")
    if found.damage:
        sys.exit(DAMAGED)
    if not quiet or found.differences or apart:
        say_as_of(found.head)
    if kept is None and not quiet:
        say(_unseen(log, name))
    if found.differences or apart:
        sys.exit(FINDINGS)


def _unseen(log: str, name: str) -> str:
    """What no check of a log can see, and the command that can."""
    from shlex import join

    from forecast_ledger.ledger.storing.store import shown

    ledger = [shown(log), *([] if name == "main" else ["--name", name])]
    keep, compare = join(["forecast-ledger", "checkpoint", *ledger]), join(["forecast-ledger", "verify", *ledger])
    return (
        "only a checkpoint that is kept elsewhere can tell whether the newest rows were removed: "
        f"`{keep} > FILE` makes one, `{compare} --checkpoint FILE` compares the log with it"
    )


def _kept(file: IO[bytes]) -> "Kept":
    """The checkpoint in a file; another file is wrong usage."""
    from forecast_ledger.replay.audit.checkpoint import LONGEST, read

    try:
        return read(file.read(LONGEST + 1))
    except ValueError as error:
        fail(f"{file.name}: not a checkpoint: {error}", USAGE)


def _compared(kept: "Kept", log: str, name: str) -> "tuple[Result, list[str]]":
    """What comes of a comparison with a checkpoint: one more result, and every difference."""
    from forecast_ledger.ledger.core.errors import Corrupt
    from forecast_ledger.replay.audit.checkpoint import compared
    from forecast_ledger.replay.audit.verify import Result

    at = kept.log_position
    try:
        found = compared(kept, log, name)
    except Corrupt as damage:
        return Result("checkpoint", "not checked", damage.position, f"{damage.check}: the reading stops there"), []
    for each in found.skipped:
        say(f"not compared: {each}")
    if found.apart:
        more = f" (and {len(found.apart) - 1} more)" if len(found.apart) > 1 else ""
        return Result("checkpoint", "differs", at, f"{found.apart[0]}{more}"), [f"checkpoint: {e}" for e in found.apart]
    tables = len(kept.projections) - len(found.skipped)
    return Result("checkpoint", "ok", at, f"log and {tables} projections as of {at} are what was kept"), []


def _closer(log: str, name: str, wrong: "Corrupt") -> str:
    """The command that shows the row."""
    from shlex import join

    from forecast_ledger.ledger.storing.store import shown

    ledger = [] if name == "main" else ["--name", name]
    return join(["forecast-ledger", "show", shown(log), str(wrong.position), "--raw", *ledger])


@click.command(epilog="Example: forecast-ledger checkpoint season.db > season.toml")
@log_argument
@as_of_option
@name_option
@reported
def checkpoint(log: str, as_of: str | None, name: str) -> None:
    """Print a small text to keep, against which `verify` can check the log again.

    TOML: ledger, log position, digest, the instant recorded there, the version of this code, and version, rows and
    digest of every projection but those that are only built when asked for.
    """
    from forecast_ledger.ledger.model.log import Checkpoint
    from forecast_ledger.replay.audit.checkpoint import keep, written

    with progress("read") as watch:
        kept = keep(log, name, cut(as_of), watch)
    print(written(kept), end="", flush=True)
    say_as_of(Checkpoint(kept.log_position, kept.digest))


@click.command("log", epilog="Example: forecast-ledger log season.db --type forecast_made --participant ada --limit 10")
@log_argument
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Of this type of event; repeatable.")
@click.option("--question", metavar="ID", help="That name this question.")
@click.option("--participant", metavar="ID", help="That name this participant.")
@click.option("--contest", metavar="ID", help="That name this contest.")
@click.option("--from", "since", metavar="INSTANT", help="Recorded then or later, by the ledger's own clock.")
@click.option("--until", metavar="INSTANT", help="Recorded before then, by the ledger's own clock.")
@click.option("--after", type=click.IntRange(0, _LAST), default=0, metavar="POSITION", help="After this log position.")
@click.option("--limit", type=click.IntRange(1, _LAST), metavar="COUNT", help="At most so many.")
@name_option
@format_option
@reported
def log_(
    log: str,
    types: tuple[str, ...],
    question: str | None,
    participant: str | None,
    contest: str | None,
    since: str | None,
    until: str | None,
    after: int,
    limit: int | None,
    name: str,
    form: str,
) -> None:
    """List the events of a log, one a line, in its order.

    An event is listed if every filter holds. Rows are printed as they are read; those after --after are checked
    against the digest of the row there, which is taken on trust.
    """
    from forecast_ledger.ledger.core import values
    from forecast_ledger.ledger.model.log import follow
    from forecast_ledger.replay.audit.browse import COLUMNS, Listing, Wanted, checkpoint, kinds, listed
    from forecast_ledger.replay.reading.replay import opened

    try:
        wanted = kinds(types)
    except KeyError as missing:
        from forecast_ledger.ledger.model.events import TAGS

        fail(f"no type of event named {missing}; there are: {', '.join(TAGS.values())}", USAGE)
    first = None if since is None else values.instant(since, "from")
    end = None if until is None else values.instant(until, "until")
    with opened(log, name) as store:
        start = checkpoint(store, after)
        listing = Listing(Wanted(wanted, question, participant, contest, first, end), limit, start)
        rows = listing.rows(follow(store.pages(after), start))
        if form == "table":
            for line in listed(rows):
                print(line)
            sys.stdout.flush()
        else:
            emit(COLUMNS, rows, form)
    more = "; --limit is reached, there may be more" * (listing.shown == limit)
    say(f"{listing.shown} {'event' if listing.shown == 1 else 'events'}{more}")
    say_as_of(listing.last)


@click.command(epilog="Example: forecast-ledger show season.db 12")
@log_argument
@click.argument("position", type=click.IntRange(1, _LAST))
@click.option("--raw", is_flag=True, help="Print the exact bytes of the row and nothing else.")
@name_option
@format_option
@reported
def show(log: str, position: int, raw: bool, name: str, form: str) -> None:
    """Show the row at a log POSITION.

    Field by field, and whether it matches its digest and follows the row before: `command` is the fingerprint of the
    command that led to it, `previous` the digest of the row before. --raw shows a row that is damaged too.
    """
    from forecast_ledger.ledger.model.log import Checkpoint, decoded_one, unseal
    from forecast_ledger.replay.audit.browse import checkpoint, fields, row
    from forecast_ledger.replay.reading.replay import opened

    with opened(log, name) as store:
        found = row(store, position)
        if raw:
            sys.stdout.buffer.write(found)
            sys.stdout.buffer.flush()
            say(f"{len(found)} bytes")
        else:
            recorded = decoded_one(found, position)
            emit(["field", "value"], fields(recorded), form)
            unseal([found], checkpoint(store, position - 1))
            say_as_of(Checkpoint(position, recorded.digest))


def compare(log: str, other: str, as_of: str | None, name: str, form: str) -> None:
    """Print the projections of two logs side by side, and say where the logs part; then exit with 1."""
    from forecast_ledger.replay.audit.compare import COLUMNS, Source, compared, source

    ours, theirs = Source(log, name, cut(as_of)), source(other, name, cut(as_of))
    with progress("read") as watch:
        found = compared(ours, theirs, watch)
    one, another = found.built
    rows = (
        dict(zip(COLUMNS, (name, "yes" if each == another[name] else "no", *each[1:], *another[name][1:]), strict=True))
        for name, each in one.items()
    )
    emit(COLUMNS, rows, form)
    for said in _parting(found.parting, str(ours), str(theirs)):
        say(said)
    say(f"projections that differ: {', '.join(found.apart()) or 'none'}")
    say_as_of(found.heads[0])
    say(f"compared with {theirs} as of log position {found.heads[1].position}, digest {found.heads[1].digest}")
    if found.parting is not None:
        sys.exit(FINDINGS)


def _parting(parting: "Parting | None", ours: str, theirs: str) -> "Iterator[str]":
    """Where two logs part, and what each has there."""
    from forecast_ledger.replay.audit.browse import line

    if parting is None:
        yield "the logs are the same"
        return
    if parting.one is None or parting.other is None:
        whole, longer = (ours, theirs) if parting.one is None else (theirs, ours)
        yield f"{whole} is the beginning of {longer}, which goes on at log position {parting.position}"
    else:
        yield f"the logs part at log position {parting.position}, in {', '.join(parting.fields()) or 'their bytes'}"
    for name, recorded in ((ours, parting.one), (theirs, parting.other)):
        if recorded is not None:
            shown = line(recorded)
            yield f"{name}: recorded at {shown['recorded_at']}, at {shown['at']}, {shown['type']}: {shown['says']}"


COMMANDS = (verify, checkpoint, log_, show)
