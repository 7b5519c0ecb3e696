"""The command that keeps a read model up to date or checks it."""

import signal
import time
from types import FrameType
from typing import TYPE_CHECKING

import click

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Absent
from forecast_ledger.replay.console.exits import FINDINGS, USAGE
from forecast_ledger.replay.console.shell import (
    fail,
    log_argument,
    name_option,
    progress,
    report_errors,
    require_name,
    require_path,
    say,
    say_as_of,
)
from forecast_ledger.replay.reading.text_tables import escape

if TYPE_CHECKING:
    from forecast_ledger.replay.readmodel.consistency import Drift
    from forecast_ledger.replay.readmodel.runner import Refreshed

_POLL = 0.2  # s between looks for a ledger that does not exist yet
_MOST = 80  # characters of a value that are shown


@click.command(epilog="Example: forecast-ledger follow season.db tables.db --once")
@log_argument
@click.argument("readmodel", metavar="READMODEL", callback=require_path)
@click.option("--once", is_flag=True, help="Bring the tables up to date, then exit.")
@click.option("--check", is_flag=True, help="Change nothing: compare every row with the log, then exit.")
@click.option(
    "--segments",
    metavar="FOLDER",
    help="Read the beginning of LOG from this folder, which `seal` made of it, as far as the tables have it already.",
)
@click.option("--wait", is_flag=True, help="If the ledger does not exist yet, wait for it.")
@click.option(
    "--with",
    "optional",
    multiple=True,
    metavar="TABLE",
    help="Keep this table too, from now on: consensus, portfolio_snapshots, quotes, scores or standing. Repeatable.",
)
@name_option
@report_errors
def follow(
    log: str,
    readmodel: str,
    once: bool,
    check: bool,
    segments: str | None,
    wait: bool,
    optional: tuple[str, ...],
    name: str,
) -> None:
    """Keep tables in an SQLite file up to date with a log.

    READMODEL has the tables that `replay` lists. Those with a row for each forecast, which are standing, consensus and
    scores, are kept only if --with names them. --with can also name quotes and portfolio_snapshots, which every refresh
    computes again.

    The table `_tracking` has the log position and digest of the last refresh, and is updated in the same transaction.
    `follow` continues from there until it is interrupted. It reports each refresh and the lag behind the log on
    stderr. If READMODEL is damaged, or another program changed it, it is refused.

    --check rebuilds the tables as of that log position and prints the values that differ; if there are any, the exit
    code is 1.
    """
    from forecast_ledger.replay.readmodel.part_store import OPTIONAL

    for table in optional:
        require_name("table for --with", table, OPTIONAL)
    if check:
        if once or wait or optional or segments is not None:
            fail("--check cannot be used with --once, --wait, --with or --segments: leave them out", USAGE)
        _check(log, readmodel, name)
        return
    try:
        while not _is_there(log, name, wait):
            time.sleep(_POLL)
    except KeyboardInterrupt:
        if once:
            raise
        say("stopped")
    else:
        _follow(log, readmodel, name, once, segments=segments, optional=optional)


def _is_there(log: str, name: str, wait: bool) -> bool:
    """Report whether a store has a ledger of this name. If not, and without --wait, that is wrong usage."""
    from forecast_ledger.ledger.storing.store import Store

    try:
        store = Store.open(log, values.check_id(name, "name"), read_only=True)
    except Absent as absent:
        if wait:
            return False
        raise Absent(f"{absent}; name another, or wait for its first event with --wait") from None
    try:
        there = bool(store.read(0, limit=1))
    finally:
        store.close()
    if not there and not wait:
        fail(f"{log} has no ledger named {name!r}: name another, or wait for its first event with --wait", USAGE)
    return there


def _follow(log: str, readmodel: str, name: str, once: bool, segments: str | None, optional: tuple[str, ...]) -> None:

    from forecast_ledger.replay.readmodel.runner import Runner

    with (
        progress("read") as on_progress,
        Runner(log, readmodel, name, on_progress, segments, optional=optional) as runner,
    ):

        def report(done: "Refreshed") -> None:
            position, digest = done.reached
            lag = runner.lag()
            behind = f"lag {lag.positions:,} positions, {lag.seconds:.3f} s"
            say(f"{done.events:,} events, {done.rows:,} rows changed; {behind}")
            say(f"as of log position {position}, digest {digest}")

        def stop(number: int, _: FrameType | None) -> None:
            signal.signal(number, signal.SIG_DFL)  # a second signal ends the process at once
            runner.stop()

        if once:
            report(runner.refresh())
        else:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, stop)
            runner.follow(report)
            say("stopped")


def _check(log: str, readmodel: str, name: str) -> None:

    from forecast_ledger.replay.reading.log import Log
    from forecast_ledger.replay.readmodel.consistency import check_model

    with progress("read") as on_progress:
        result = check_model(Log(log, name, on_progress=on_progress), readmodel)
    for drift in result.drifts:
        print(_describe(drift))
    if more := result.total - len(result.drifts):
        print(f"and {more:,} more")
    say_as_of(result.reached)
    if result.total:
        fail(f"{readmodel}: differs from its log in {result.total:,} places", FINDINGS)
    say(f"{readmodel}: every table agrees with the log")


def _describe(drift: "Drift") -> str:

    where = [drift.table, *([repr(drift.key)] if drift.key else []), *([drift.column] if drift.column else [])]
    values = (f"{word} {repr(value)[:_MOST]}" for word, value in (("expected", drift.expected), ("found", drift.found)))
    return escape(f"{' '.join(where)}: {', '.join(values)}")
