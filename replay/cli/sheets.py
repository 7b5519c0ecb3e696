"""The commands that write sheets for auditors to fill in: tie-out, sample."""

import sys

import click

from forecast_ledger.replay.console import completion
from forecast_ledger.replay.console.replaying import Location, as_of_option, replay_log, say_season, segments_options
from forecast_ledger.replay.console.shell import (
    complain,
    emit,
    log_argument,
    name_option,
    report_errors,
    require_columns,
    say,
)
from forecast_ledger.replay.console.signals import FINDINGS
from forecast_ledger.replay.console.terminal import Look, View, table_options


@click.command("tie-out", epilog="Example: forecast-ledger tie-out season.db cup --format csv > prizes.csv")
@log_argument
@click.argument("contest", metavar="CONTEST", shell_complete=completion.ids("contest"))
@as_of_option
@segments_options(found=False)
@name_option
@table_options
@report_errors
def tie_out(log: Location, contest: str, as_of: str | None, name: str, view: View) -> None:
    """Print a sheet from documents to prizes, to tie to the bank.

    One row for each participant of CONTEST with a prize: where its questions are described, the log positions of its
    forecasts, of the answers, of the seal and of the payment, its score and take, the prize, and what is paid and owed.
    The columns of the bank are empty, to be filled in from a statement. The last row has the totals. They are compared
    with the journal and the pool; the exit code is 1 if two totals that must be equal are not.
    """
    from forecast_ledger.replay.audit.trails import TIE_OUT
    from forecast_ledger.replay.audit.trails import tie_out as tied_out
    from forecast_ledger.replay.reading.descriptions import money

    require_columns(view, TIE_OUT)
    season = replay_log(log, name, as_of)
    rows, ties = tied_out(season.projections, contest)
    emit(TIE_OUT, rows, view, Look(keep=("row", "participant", "prize", "paid")))
    wrong = [tie for tie in ties if tie.one != tie.other]
    for tie in ties:
        one, other = (money(int(total * 10**6)) for total in (tie.one, tie.other))
        (complain if tie in wrong else say)(f"{tie.what}: {one} {'and' if tie in wrong else '='} {other}")
    say_season(season, [contest])
    if wrong:
        sys.exit(FINDINGS)
