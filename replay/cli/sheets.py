"""The commands that write sheets for auditors to fill in: tie-out, sample."""

import sys
from typing import IO

import click

from forecast_ledger.replay.console import completion
from forecast_ledger.replay.console.replaying import Location, as_of_option, replay_log, say_season, segments_options
from forecast_ledger.replay.console.shell import (
    complain,
    emit,
    fail,
    log_argument,
    name_option,
    report_errors,
    require_columns,
    say,
)
from forecast_ledger.replay.console.signals import FINDINGS, USAGE
from forecast_ledger.replay.console.terminal import Look, View, table_options


@click.command("tie-out", epilog="Example: forecast-ledger tie-out season.db spring-cup --format csv > prizes.csv")
@log_argument
@click.argument("contest", metavar="CONTEST", shell_complete=completion.ids("contest"))
@click.option(
    "--bank", type=click.File("rb"), metavar="STATEMENT", help="Match the payments with the lines of a bank statement."
)
@click.option("--decimal-comma", is_flag=True, help="Read the amounts of STATEMENT with a decimal comma, as 1.234,50.")
@as_of_option
@segments_options(found=False)
@name_option
@table_options
@report_errors
def tie_out(
    log: Location,
    contest: str,
    bank: IO[bytes] | None,
    decimal_comma: bool,
    as_of: str | None,
    name: str,
    view: View,
) -> None:
    """Print a sheet from documents to prizes, to tie to the bank.

    One row for each participant of CONTEST with a prize: where its questions are described, the log positions of its
    forecasts, of the answers, of the seal and of the payment, its score and take, the prize, and what is paid and owed.
    The columns of the bank are empty, to be filled in from a statement. The last row has the totals. They are compared
    with the journal and the pool; the exit code is 1 if two totals that must be equal are not.

    STATEMENT is a CSV with the columns payee and amount, and date and text if it has them. With it, the columns of the
    bank are filled in, and the column `bank` says matched, missing, different amount or surplus; the exit code is 1 if
    one is not matched. A line is of the participant whose id is its payee or, if no id is, whose id alone is a word of
    its payee or text. The lines of a participant are added up; capitals and the sign of the sum do not matter.
    """
    from forecast_ledger.replay.audit.bank import BANKED, LARGEST_STATEMENT, matched, read_statement, summary
    from forecast_ledger.replay.audit.trails import TIE_OUT
    from forecast_ledger.replay.audit.trails import tie_out as tied_out
    from forecast_ledger.replay.reading.descriptions import money

    columns = TIE_OUT if bank is None else BANKED
    require_columns(view, columns)
    try:
        said = None if bank is None else bank.read(LARGEST_STATEMENT + 1)
        lines = None if said is None else read_statement(said, decimal_comma=decimal_comma)
    except ValueError as wrong_statement:
        fail(str(wrong_statement), USAGE)
    season = replay_log(log, name, as_of)
    rows, ties = tied_out(season.projections, contest)
    rows = rows if lines is None else matched(rows, lines)
    emit(columns, rows, view, Look(keep=("row", "participant", "prize", "paid")))
    wrong = [tie for tie in ties if tie.one != tie.other]
    for tie in ties:
        one, other = (money(int(total * 10**6)) for total in (tie.one, tie.other))
        (complain if tie in wrong else say)(f"{tie.what}: {one} {'and' if tie in wrong else '='} {other}")
    found = {} if lines is None else dict(summary(rows))
    if found:
        unmatched = sum(found.values()) > found["matched"]
        (complain if unmatched else say)(f"bank: {', '.join(f'{count} {what}' for what, count in found.items())}")
    else:
        unmatched = False
    say_season(season, [contest])
    if wrong or unmatched:
        sys.exit(FINDINGS)


@click.command(
    epilog="Example: forecast-ledger sample season.db --contest spring-cup --by amount --format csv > sheet.csv"
)
@log_argument
@click.option("--size", type=click.IntRange(1, 2_000), default=20, show_default=True, help="Draw so many.")
@click.option(
    "--by",
    type=click.Choice(["chance", "amount"]),
    default="chance",
    show_default=True,
    help="Draw scores, all alike, or prizes and movements of cash, each as likely as it is large.",
)
@click.option(
    "--contest", metavar="CONTEST", shell_complete=completion.ids("contest"), help="Draw from this contest only."
)
@click.option(
    "--evaluate", "sheet", type=click.File("rb"), metavar="SHEET", help="Evaluate a sheet that was filled in."
)
@click.option(
    "--confidence",
    type=click.IntRange(50, 99),
    default=95,
    show_default=True,
    metavar="PERCENT",
    help="The confidence of the upper limit of the rate of error, with --evaluate.",
)
@as_of_option
@name_option
@table_options
@report_errors
def sample(
    log: Location,
    size: int,
    by: str,
    contest: str | None,
    sheet: IO[bytes] | None,
    confidence: int,
    as_of: str | None,
    name: str,
    view: View,
) -> None:
    """Draw numbers to examine by hand, or evaluate what was found.

    The sample follows from the digest of the log, so that anybody draws the same. The sheet has a row for each number,
    with the log positions that it rests on, and the empty columns found and remark. Fill in the values that you find,
    save it as CSV, and give it to --evaluate: it draws the sample again, compares, and prints how many are wrong and
    the upper limit of the rate of error. An empty cell counts as wrong. The exit code is then 1 if any is.
    """
    from forecast_ledger.replay.audit.sampling import EVALUATED, SHEET, draw, evaluate

    require_columns(view, EVALUATED if sheet else [column.name for column in SHEET])
    try:
        if sheet is None:
            season = replay_log(log, name, as_of)
            drawn = draw(season, by, size, contest)
            emit([column.name for column in SHEET], drawn.rows, view, Look(keep=("item", "score", "amount")))
            of = "scores" if drawn.by == "score" else "prizes and movements of cash"
            say(f"{drawn.size:,} drawn from {drawn.items:,} {of}, {len(drawn.rows):,} to examine")
            say_season(season, () if contest is None else [contest])
            return
        found = evaluate(sheet, lambda position: replay_log(log, name, str(position)), confidence, contest)
    except ValueError as wrong:
        fail(str(wrong), USAGE)
    emit(EVALUATED, [found.row(confidence)], view, Look(keep=EVALUATED))
    for finding in found.findings:
        complain(finding)
    if found.wrong:
        sys.exit(FINDINGS)
