"""The command that keeps a read model up to date."""

import signal
from types import FrameType
from typing import TYPE_CHECKING

import click

from replay.shell import kept, log_argument, name_option, progress, reported, say

if TYPE_CHECKING:
    from replay.runner import Refreshed


@click.command(epilog="Example: forecast-ledger follow season.db tables.db --once")
@log_argument
@click.argument("readmodel", metavar="READMODEL", callback=kept)
@click.option("--once", is_flag=True, help="Bring it up to date and end.")
@name_option
@reported
def follow(log: str, readmodel: str, once: bool, name: str) -> None:
    """Keep the tables in READMODEL, an SQLite file, up to date with a log.

    One table a projection, as printed, but score_parts and portfolio_snapshots; `_tracking` says which log position and
    digest they speak of, and changes with them or not at all. Goes on where it was, until interrupted; each refresh is
    told on stderr, with the lag behind the log.
    """
    from replay.runner import Runner

    with progress("read") as watch, Runner(log, readmodel, name, watch) as runner:

        def told(done: "Refreshed") -> None:
            position, digest = done.reached
            lag = runner.lag()
            say(f"{done.events} events, {done.rows} rows changed; lag {lag.positions} positions, {lag.seconds:.3f} s")
            say(f"as of log position {position}, digest {digest}")

        def stop(number: int, _: FrameType | None) -> None:
            signal.signal(number, signal.SIG_DFL)  # the second time at once
            runner.stop()

        if once:
            told(runner.refresh())
        else:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, stop)
            runner.follow(told)
            say("stopped")


COMMANDS = (follow,)
