"""The commands that write documents: report, plot, audit, and pack, which adds the log to its working paper."""

import sys
from typing import IO

import click

from forecast_ledger.ledger.core.values import read_duration
from forecast_ledger.replay.cli import completion
from forecast_ledger.replay.cli.shell import (
    Location,
    as_of_option,
    fail,
    log_argument,
    name_option,
    parse_cut,
    progress,
    read_checkpoint_file,
    report_errors,
    say,
    say_as_of,
    say_season,
    segments_options,
)
from forecast_ledger.replay.reference.exit_codes import DAMAGED, FINDINGS, USAGE

KINDS = (
    "board",
    "calibration",
    "coverage",
    "horizon",
    "intervals",
    "learning",
    "location",
    "log_scale",
    "options",
    "pairwise",
    "pit",
    "prizes",
    "profit",
    "relative_skill",
    "score",
    "sharpness",
)


@click.command(epilog="Example: forecast-ledger report season.db season.html")
@log_argument
@click.argument("out", metavar="OUT.html", type=click.Path(dir_okay=False))
@click.option(
    "--contest",
    "contests",
    multiple=True,
    metavar="CONTEST",
    shell_complete=completion.ids("contest"),
    help="Show only this contest. Repeatable.",
)
@click.option(
    "--specs",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="Write the Vega-Lite specification of each picture, with its data, to this folder.",
)
@as_of_option
@segments_options(use_beside=True)
@name_option
@report_errors
def report(log: Location, out: str, contests: tuple[str, ...], specs: str | None, as_of: str | None, name: str) -> None:
    """Write a page of boards, pictures and participants.

    The page is HTML, and needs no other file: open it in any browser, print it, send it. It says for each contest what
    it is and by which rules it is scored; the board with intervals; how sure the ranks are; calibration, pairs,
    coverage, prizes and trading; and each participant's best and worst questions. The same log gives the same page.
    """
    from forecast_ledger.replay.pages.report import report as written

    with progress("read") as on_progress:
        season = written(
            log, out, contests=contests, specs=specs, name=name, as_of=parse_cut(as_of), on_progress=on_progress
        )
    say(f"wrote {out}")
    say_season(season, contests or None)


@click.command(epilog="Example: forecast-ledger plot season.db board board.svg --contest plain")
@log_argument
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("out", metavar="OUT.svg|png|json", type=click.Path(dir_okay=False))
@click.option(
    "--contest",
    metavar="CONTEST",
    shell_complete=completion.ids("contest"),
    help="Draw this contest; it can be left out if there is only one.",
)
@as_of_option
@segments_options(use_beside=True)
@name_option
@report_errors
def plot(log: Location, kind: str, out: str, contest: str | None, as_of: str | None, name: str) -> None:
    """Draw one picture of a contest as SVG, PNG or Vega-Lite.

    \b
    board        scores in the order of the leaderboard, with their intervals
    calibration  how often what was forecast happened
    coverage     how much of the time each participant had a forecast
    intervals    how often answers fell within central intervals
    learning     mean scores on consecutive parts of the questions
    options      how often outcomes of multiple-choice questions happened
    pairwise     which of two participants is better on common questions
    pit          in which tenth of numeric forecasts the answers fell
    prizes       how the pool is divided
    profit       the profit of each account over time
    score        the scores of the best participants after each answer

    The finding, and how to read the picture, are above it and on stderr.
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    from forecast_ledger.replay.pages.report import plot as drawn

    try:
        with progress("read") as on_progress:
            picture = drawn(log, kind, out, contest=contest, name=name, as_of=parse_cut(as_of), on_progress=on_progress)
    except ValueError as wrong:
        fail(f"{wrong}: name a file that does", USAGE)
    say(picture.title)
    say(picture.note)
    say(f"wrote {out}")


@click.command(epilog="Example: forecast-ledger audit season.db paper.md --late 2h")
@log_argument
@click.argument("out", metavar="OUT.html|md", type=click.Path(dir_okay=False))
@click.option(
    "--late",
    metavar="DURATION",
    default="1h",
    show_default=True,
    help="Count entries recorded longer than this after the instant that they claim: a number and s, m, h or d.",
)
@click.option("--checkpoint", "file", type=click.File("rb"), help="Compare the log with this output of `checkpoint`.")
@click.option(
    "--contest",
    metavar="CONTEST",
    shell_complete=completion.ids("contest"),
    help="Check the whole log, and write about this contest only.",
)
@as_of_option
@name_option
@report_errors
def audit(
    log: str, out: str, late: str, file: IO[bytes] | None, contest: str | None, as_of: str | None, name: str
) -> None:
    """Check a log, and write an auditor's working paper.

    The paper begins with the verdict of `verify`. Then come the checkpoint; each contest with its rules, seal, board
    and prizes, paid and owed; the trial balance; late and back-dated entries; answers that were revoked, and what they
    moved; exclusions; what was not checked; and a line to sign. The exit codes are those of `verify`.
    """
    from forecast_ledger.replay.pages.report import audit as audited

    try:
        limit = read_duration(late)
    except ValueError as wrong:
        fail(f"--late {wrong}", USAGE)
    earlier = None if file is None else read_checkpoint_file(file)
    cut = parse_cut(as_of)
    try:
        with progress("verified") as on_progress:
            result = audited(
                log,
                out,
                late=limit,
                checkpoint=earlier,
                contest=contest,
                name=name,
                as_of=cut,
                on_progress=on_progress,
            )
    except ValueError as wrong:
        fail(f"{wrong}: name a file that does", USAGE)
    say(result.paper.verdict)
    say(f"wrote {out}")
    if result.verification.damage:
        sys.exit(DAMAGED)
    say_as_of(result.verification.head)
    if result.verification.differences or not result.verification.head.position:
        sys.exit(FINDINGS)


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
    if made.has_findings:
        sys.exit(FINDINGS)


def _check(path: str) -> None:
    from forecast_ledger.replay.pages.pack import check

    with progress("imported") as on_progress:
        results = check(path, on_progress)
    for what, wrong in results:
        print(f"{'WRONG' if wrong else 'ok'}  {what}{': ' * bool(wrong)}{wrong}")
    if any(wrong for _, wrong in results):
        sys.exit(FINDINGS)
