"""The commands of an auditor: whether a log is what it should be, and what is in it."""

import sys
from typing import TYPE_CHECKING

import click

from replay.shell import (
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
    from ledger.errors import Corrupt


@click.command(epilog="Example: forecast-ledger verify season.db --only digests --only books")
@log_argument
@click.option("--only", multiple=True, metavar="CHECK", help="Run this check, and what it rests on; repeatable.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but what is wrong.")
@as_of_option
@name_option
@format_option
@reported
def verify(log: str, only: tuple[str, ...], quiet: bool, as_of: str | None, name: str, form: str) -> None:
    """Check a log row by row, and what the rows add up to.

    Exits with 4 where the log is damaged, after saying at which log position and how to look closer; with 1 where it
    can be read and is not what it should be: a prize that the sealed board does not say.
    """
    from replay.verify import CHECKS, verified

    if unknown := [check for check in only if check not in CHECKS]:
        fail(f"no check named {unknown[0]!r}; there are: {', '.join(CHECKS)}", USAGE)
    with progress("verified") as watch:
        found = verified(log, name, cut(as_of), only, watch)
    if not quiet:
        columns = ["check", "found", "log_position", "says"]
        emit(columns, (dict(zip(columns, result, strict=True)) for result in found.results), form)
    for wrong in found.damage:
        say(f"forecast-ledger: the log is damaged: {wrong}")
        say(f"look closer: {_closer(log, name, wrong)}")
    for wrong in found.differences:
        say(f"forecast-ledger: {wrong}")
    if found.damage:
        sys.exit(DAMAGED)
    if not quiet or found.differences:
        say_as_of(found.head)
    if found.differences:
        sys.exit(FINDINGS)


def _closer(log: str, name: str, wrong: "Corrupt") -> str:
    """The command that shows the row."""
    from shlex import join

    from ledger.store import shown

    ledger = [] if name == "main" else ["--name", name]
    return join(["forecast-ledger", "show", shown(log), str(wrong.position), "--raw", *ledger])


COMMANDS = (verify,)
