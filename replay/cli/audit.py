"""The commands of an auditor: whether a log is what it should be, and what is in it."""

import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING

import click

from forecast_ledger.replay.console import completion
from forecast_ledger.replay.console.colour import GREEN, RED
from forecast_ledger.replay.console.shell import (
    DAMAGED,
    FINDINGS,
    USAGE,
    as_of_option,
    checked,
    complain,
    cut,
    emit,
    emit_list,
    fail,
    log_argument,
    name_option,
    named,
    progress,
    reported,
    say,
    say_as_of,
)
from forecast_ledger.replay.console.view import Look, View, listing_options, table_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecast_ledger.ledger.core.errors import Corrupt
    from forecast_ledger.replay.audit.checkpoint import SavedCheckpoint
    from forecast_ledger.replay.audit.compare import FirstDifference
    from forecast_ledger.replay.audit.verify import CheckResult

_LAST = 2**63 - 1  # no log position is greater
RESULT = ["check", "found", "log_position", "says"]


def _about(field: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The option that asks for the events about a question, participant or contest."""
    return click.option(
        f"--{field}", metavar="ID", shell_complete=completion.ids(field), help=f"Only events about this {field}."
    )


@click.command(epilog="Example: forecast-ledger verify season.db --only digests --only decided")
@log_argument
@click.option(
    "--only",
    multiple=True,
    metavar="CHECK",
    shell_complete=completion.checks,
    help="Run only this check, and those that it needs; repeatable.",
)
@click.option("--checkpoint", "file", type=click.File("rb"), help="Compare the log with what `checkpoint` printed.")
@click.option("--quiet", "-q", is_flag=True, help="Print only what is wrong.")
@as_of_option
@name_option
@table_options
@reported
def verify(
    log: str, only: tuple[str, ...], file: IO[bytes] | None, quiet: bool, as_of: str | None, name: str, view: View
) -> None:
    """Check every row of a log, every decision and every prize.

    The last line is the verdict. The exit code is 4 if the log is damaged; each damage is printed with its log
    position and the command that shows the row. The exit code is 1 if the log can be read, but something in it is not
    as it should be: a prize that differs from the sealed board, a checkpoint that differs, or no event at all, as when
    --name is mistyped.
    """
    from forecast_ledger.replay.audit.verify import CHECKS, run_checks

    checked(view, RESULT)
    for check in only:
        named("check", check, list(CHECKS))
    kept = None if file is None else _kept(file)
    with progress("verified") as watch:
        found = run_checks(log, name, cut(as_of), only, watch)
    again = [] if kept is None else [_compared(kept, log, name)]
    results = [*found.results, *(result for result, _ in again)]
    apart = [said for _, all_said in again for said in all_said]
    if found.head.position == 0 and as_of is None and not found.damage:
        apart.append(f"the ledger {name!r} has no events")
    if not quiet:
        emit(
            RESULT, (dict(zip(RESULT, result, strict=True)) for result in results), view, Look(keep=("check", "found"))
        )
    for wrong in found.damage:
        complain(f"the log is damaged: {wrong}")
        say(f"look closer: {_closer(log, name, wrong)}")
    for said in [*map(str, found.differences), *apart]:
        complain(said)
    if found.damage:
        say(f" {_counted(len(found.damage) + len(found.differences) + len(apart), 'finding')}", "damaged:", RED)
        sys.exit(DAMAGED)
    if not quiet or found.differences or apart:
        say_as_of(found.head)
    if kept is None and not quiet:
        say(_unseen(log, name))
    if found.differences or apart:
        say(f" {_counted(len(found.differences) + len(apart), 'finding')}; the log can be read", "not ok:", RED)
        sys.exit(FINDINGS)
    if not quiet:
        say(f" {_counted(found.head.position, 'event')}, {_counted(len(results), 'check')}", "ok:", GREEN)


def _counted(count: int, of: str) -> str:
    return f"{count:,} {of}{'s' * (count != 1)}"


def _unseen(log: str, name: str) -> str:
    """What no check of a log can see, and the command that can."""
    from shlex import join

    from forecast_ledger.ledger.storing.store import redacted

    ledger = [redacted(log), *([] if name == "main" else ["--name", name])]
    keep, compare = join(["forecast-ledger", "checkpoint", *ledger]), join(["forecast-ledger", "verify", *ledger])
    return (
        "the log alone cannot show whether its newest rows were removed; a checkpoint that you keep elsewhere can: "
        f"`{keep} > FILE` makes one, `{compare} --checkpoint FILE` compares the log with it"
    )


def _kept(file: IO[bytes]) -> "SavedCheckpoint":
    """The checkpoint in a file; another file is wrong usage."""
    from forecast_ledger.replay.audit.checkpoint import LARGEST_CHECKPOINT, read_checkpoint

    try:
        return read_checkpoint(file.read(LARGEST_CHECKPOINT + 1))
    except ValueError as error:
        fail(f"{file.name}: not a checkpoint: {error}", USAGE)


def _compared(kept: "SavedCheckpoint", log: str, name: str) -> "tuple[CheckResult, list[str]]":
    """What comes of a comparison with a checkpoint: one more result, and every difference."""
    from forecast_ledger.ledger.core.errors import Corrupt
    from forecast_ledger.replay.audit.checkpoint import compare_with_checkpoint
    from forecast_ledger.replay.audit.verify import CheckResult

    at = kept.log_position
    try:
        found = compare_with_checkpoint(kept, log, name)
    except Corrupt as damage:
        return CheckResult(
            "checkpoint", "not checked", damage.position, f"the check {damage.check} stops the reading there"
        ), []
    for each in found.skipped:
        say(f"not compared: {each}")
    if found.apart:
        more = f" (and {len(found.apart) - 1} more)" if len(found.apart) > 1 else ""
        return CheckResult("checkpoint", "differs", at, f"{found.apart[0]}{more}"), [
            f"checkpoint: {e}" for e in found.apart
        ]
    tables = len(kept.projections) - len(found.skipped)
    return CheckResult("checkpoint", "ok", at, f"log and {tables} projections as of {at} are what was kept"), []


def _closer(log: str, name: str, wrong: "Corrupt") -> str:
    """The command that shows the row."""
    from shlex import join

    from forecast_ledger.ledger.storing.store import redacted

    ledger = [] if name == "main" else ["--name", name]
    return join(["forecast-ledger", "show", redacted(log), str(wrong.position), "--raw", *ledger])


@click.command(epilog="Example: forecast-ledger checkpoint season.db > season.toml")
@log_argument
@as_of_option
@name_option
@reported
def checkpoint(log: str, as_of: str | None, name: str) -> None:
    """Print a text to keep elsewhere, which `verify` compares.

    The text is TOML. It has the ledger's name, the log position, the digest and the instant recorded there, the version
    of this code, and the version, number of rows and digest of every projection that `replay` prints.
    """
    from forecast_ledger.ledger.model.log import Checkpoint
    from forecast_ledger.replay.audit.checkpoint import checkpoint_text, take_checkpoint

    with progress("read") as watch:
        kept = take_checkpoint(log, name, cut(as_of), watch)
    print(checkpoint_text(kept), end="", flush=True)
    say_as_of(Checkpoint(kept.log_position, kept.digest))


@click.command("log", epilog="Example: forecast-ledger log season.db --type forecast_made --participant ada --limit 10")
@log_argument
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    shell_complete=completion.types,
    help="Only events of this type; repeatable.",
)
@_about("question")
@_about("participant")
@_about("contest")
@click.option("--from", "since", metavar="INSTANT", help="Only events recorded at this instant or later.")
@click.option("--until", metavar="INSTANT", help="Only events recorded before this instant.")
@click.option(
    "--after", type=click.IntRange(0, _LAST), default=0, metavar="POSITION", help="Only events after this log position."
)
@click.option("--limit", type=click.IntRange(1, _LAST), metavar="COUNT", help="Print at most this many events.")
@name_option
@listing_options
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
    view: View,
) -> None:
    """List the events of a log in their order, one per line.

    An event is listed if it passes every filter; instants are by the ledger's own clock. Events are printed as they are
    read. With --after, the digest of the row at that position is trusted, and later rows are checked against it.
    """
    from forecast_ledger.ledger.core import values
    from forecast_ledger.ledger.model.log import unseal_pages
    from forecast_ledger.replay.audit.browse import (
        EVENT_LIST_COLUMNS,
        EventFilter,
        EventList,
        event_types,
        format_rows,
        unchecked_checkpoint,
    )
    from forecast_ledger.replay.reading.replay import open_store

    checked(view, EVENT_LIST_COLUMNS)
    try:
        wanted = event_types(types)
    except KeyError as missing:
        from forecast_ledger.ledger.model.events import TAGS

        named("type of event", missing.args[0], list(TAGS.values()))
    first = None if since is None else values.read_instant(since, "from")
    end = None if until is None else values.read_instant(until, "until")
    with open_store(log, name) as store:
        start = unchecked_checkpoint(store, after)
        listing = EventList(EventFilter(wanted, question, participant, contest, first, end), limit, start)
        rows = listing.rows(unseal_pages(store.pages(after), start))
        emit_list(EVENT_LIST_COLUMNS, rows, view, format_rows)
    more = "; --limit is reached, there may be more" * (listing.shown == limit)
    say(f"{_counted(listing.shown, 'event')}{more}")
    say_as_of(listing.last)


@click.command(epilog="Example: forecast-ledger show season.db 12")
@log_argument
@click.argument("position", type=click.IntRange(1, _LAST))
@click.option("--raw", is_flag=True, help="Print the exact bytes of the row, and nothing else.")
@name_option
@table_options
@reported
def show(log: str, position: int, raw: bool, name: str, view: View) -> None:
    """Show the row at a log POSITION, field by field.

    Also checks that the row matches its digest and follows the row before it. `command` is the fingerprint of the
    command that led to the event, `previous` the digest of the row before. --raw shows a damaged row too.
    """
    from forecast_ledger.ledger.model.log import Checkpoint, decode_row, unseal
    from forecast_ledger.replay.audit.browse import event_fields, row_bytes, unchecked_checkpoint
    from forecast_ledger.replay.reading.replay import open_store

    checked(view, ["field", "value"])

    with open_store(log, name) as store:
        found = row_bytes(store, position)
        if raw:
            sys.stdout.buffer.write(found)
            sys.stdout.buffer.flush()
            say(f"{len(found)} bytes")
        else:
            recorded = decode_row(found, position)
            emit(["field", "value"], event_fields(recorded), view, Look(keep=("field", "value")))
            unseal([found], unchecked_checkpoint(store, position - 1))
            say_as_of(Checkpoint(position, recorded.digest))


def compare(log: str, other: str, as_of: str | None, name: str, view: View) -> None:
    """Print the projections of two logs side by side, and say where the logs part; then exit with 1."""
    from forecast_ledger.replay.audit.compare import COMPARISON_COLUMNS, ComparedLog, compare_logs, parse_log

    ours, theirs = ComparedLog(log, name, cut(as_of)), parse_log(other, name, cut(as_of))
    with progress("read") as watch:
        found = compare_logs(ours, theirs, watch)
    one, another = found.built
    rows = (
        dict(
            zip(
                COMPARISON_COLUMNS,
                (name, "yes" if each == another[name] else "no", *each[1:], *another[name][1:]),
                strict=True,
            )
        )
        for name, each in one.items()
    )
    emit(COMPARISON_COLUMNS, rows, view, Look(keep=("projection", "same")))
    for said in _parting(found.parting, str(ours), str(theirs)):
        say(said)
    say(f"projections that differ: {', '.join(found.apart()) or 'none'}")
    say_as_of(found.heads[0])
    say(f"compared with {theirs} as of log position {found.heads[1].position}, digest {found.heads[1].digest}")
    if found.parting is not None:
        sys.exit(FINDINGS)


def _parting(parting: "FirstDifference | None", ours: str, theirs: str) -> "Iterator[str]":
    """Where two logs part, and what each has there."""
    from forecast_ledger.replay.audit.browse import event_row

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
            shown = event_row(recorded)
            yield f"{name}: recorded at {shown['recorded_at']}, at {shown['at']}, {shown['type']}: {shown['says']}"


COMMANDS = (verify, checkpoint, log_, show)
