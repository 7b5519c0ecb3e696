"""The command that packs a log with what follows from it, and checks packs."""

import sys

import click

from forecast_ledger.replay.console.replaying import as_of_option
from forecast_ledger.replay.console.shell import (
    fail,
    log_argument,
    name_option,
    parse_cut,
    progress,
    report_errors,
    say,
    say_as_of,
)
from forecast_ledger.replay.console.signals import FINDINGS, USAGE


@click.command(epilog="Example: forecast-ledger pack season.db season.zip")
@log_argument
@click.argument("out", metavar="[OUT.zip]", type=click.Path(dir_okay=False), required=False)
@click.option("--check", "is_check", is_flag=True, help="LOG is a pack: check it, and write nothing.")
@as_of_option
@name_option
@report_errors
def pack(log: str, out: str | None, is_check: bool, as_of: str | None, name: str) -> None:
    """Pack a log in a zip that can be checked without this program.

    The zip has the log and all tables as `export --format jsonl` writes them, a checkpoint, the working paper of
    `audit`, the versions of everything, the SHA-256 of every file, a text that says how to check all of this, and a
    script that does so with Python alone. The same log gives the same bytes. The exit codes are those of `verify`; a
    damaged log is not packed.

    `pack --check OUT.zip` makes the checks of that script, without running anything that is in the zip; then it imports
    the log, decides each command again, and computes the checkpoint and the paper again. The exit code is 1 if
    something is wrong.
    """
    if is_check:
        if out is not None or as_of is not None:
            fail("--check takes one pack, and neither OUT.zip nor --as-of", USAGE)
        _check(log)
        return
    if out is None:
        fail("give the name of the zip to write, or --check and a pack", USAGE)
    from forecast_ledger.replay.pages.pack import pack as packed

    with progress("read") as on_progress:
        made = packed(log, out, name, parse_cut(as_of), on_progress)
    say(made.verdict)
    say(f"wrote {out}: {made.files} files, SHA-256 {made.sha256}")
    say_as_of(made.checkpoint)
    if made.found:
        sys.exit(FINDINGS)


def _check(path: str) -> None:
    from forecast_ledger.replay.pages.pack import check

    with progress("imported") as on_progress:
        found = check(path, on_progress)
    for what, wrong in found:
        print(f"{'WRONG' if wrong else 'ok'}  {what}{': ' * bool(wrong)}{wrong}")
    if any(wrong for _, wrong in found):
        sys.exit(FINDINGS)
