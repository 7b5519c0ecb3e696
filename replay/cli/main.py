"""The entry point of the command line, and the commands that write and read logs.

Exit codes: 0 fine, 1 findings, 2 wrong usage, 3 store unreadable or locked, 4 log damaged, 5 unknown whether it was
recorded, 128 + N stopped by signal N.
"""

import os
import sys
from typing import TYPE_CHECKING

import click

from forecast_ledger.replay.cli import (
    append,
    audit,
    compare,
    explain,
    export,
    follow,
    importing,
    reference,
    report,
    what_if,
)
from forecast_ledger.replay.console import completion
from forecast_ledger.replay.console.menu import WIDTH, Menu
from forecast_ledger.replay.console.replaying import Location, memory_option, replay_log, say_season, segments_options
from forecast_ledger.replay.console.shell import (
    DAMAGED,
    FINDINGS,
    FINE,
    UNCERTAIN,
    UNREADABLE,
    USAGE,
    as_of_option,
    emit,
    emit_table,
    fail,
    log_argument,
    name_option,
    prepare_streams,
    report_errors,
    require_columns,
    require_name,
    require_projection,
    say,
    say_as_of,
)
from forecast_ledger.replay.console.view import Look, View, table_options

if TYPE_CHECKING:
    from forecast_ledger.projections.core.table import Table
    from forecast_ledger.projections.tables.projection import Projections
    from forecast_ledger.replay.engines.engines import Choice
    from forecast_ledger.replay.reading.replay import Replay

__all__ = ["DAMAGED", "FINDINGS", "FINE", "UNCERTAIN", "UNREADABLE", "USAGE", "main"]

_SHELLS = ["bash", "zsh", "fish"]


def _version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    if requested and not ctx.resilient_parsing:
        from forecast_ledger.replay.reading.version import DISTRIBUTION, code_version

        click.echo(f"{DISTRIBUTION} {code_version()}")
        ctx.exit()


@click.group(
    cls=Menu,
    context_settings={"help_option_names": ["-h", "--help"], "terminal_width": WIDTH},
    epilog="`forecast-ledger COMMAND --help` explains a command and shows an example. `forecast-ledger completion "
    "--help` explains how to make the shell complete commands, options, tables and the ids in a log.",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
def main() -> None:
    """Record forecasts in an event-sourced log, and compute exact scores, ranks and prizes from it.

    LOG is an SQLite file, a postgresql:// URL, or a folder that `seal` made. Data goes to stdout, everything else to
    stderr.

    \b
    forecast-ledger demo
    forecast-ledger append season.db commands.jsonl
    forecast-ledger leaderboard season.db spring-cup
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    prepare_streams()
    # NumPy would start threads for products of matrices when it is imported, which costs more than they save here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@main.command(epilog="Example: forecast-ledger leaderboard season.db spring-cup --as-of 2026-03-01T00:00:00Z")
@log_argument
@click.argument("contest", shell_complete=completion.ids("contest"))
@as_of_option
@segments_options(found=True)
@name_option
@table_options
@report_errors
def leaderboard(log: Location, contest: str, as_of: str | None, name: str, view: View) -> None:
    """Print the leaderboard of a CONTEST, best first.

    For a contest in which participants trade, this prints the trading board; the scores of forecasts on its questions
    are in the table `leaderboard`.
    """
    from forecast_ledger.replay.reading.board_notes import left_out

    season = _require_contest(contest, replay_log(log, name, as_of))
    trading = contest in season.projections.traded
    board = season.projections.table("arena_leaderboard" if trading else "leaderboard").only("contest", contest)
    emit_table(board, view, Look(keep=("rank", "participant"), spare=("family", "release", "attainable")))
    if trading:
        say("this is the trading board; the scores of forecasts are in the table leaderboard")
    for note in left_out(season.projections, contest):
        say(note)
    say_season(season, [contest])


@main.command(epilog="Example: forecast-ledger table season.db scores --format csv")
@log_argument
@click.argument("projection", shell_complete=completion.tables)
@click.option(
    "--from", "since", metavar="INSTANT", help="Only rows `at` this instant or later, or from this day on (UTC)."
)
@click.option(
    "--until", metavar="INSTANT", help="Only rows `at` an instant before this, or up to the end of this day (UTC)."
)
@as_of_option
@segments_options(found=True)
@name_option
@table_options
@report_errors
def table(
    log: Location,
    projection: str,
    since: str | None,
    until: str | None,
    as_of: str | None,
    name: str,
    view: View,
) -> None:
    """Print the table of a PROJECTION.

    `forecast-ledger columns` lists the projections, and explains their columns. --from and --until select rows by their
    column `at`. For portfolio_snapshots, --from, --until, --where contest=… and --where participant=… select which
    portfolios are computed; for score_parts, --where contest=…, --where question=… and --where participant=… select
    which parts.
    """
    from forecast_ledger.projections.tables.catalogue import CATALOGUE
    from forecast_ledger.replay.reading.log import read_span

    names = [column.name for column in CATALOGUE[require_projection(projection)].columns]
    require_columns(view, names)
    first, end = read_span(since, until)
    if "at" not in names and (since is not None or until is not None):
        fail(f"{projection} has no column `at`: leave out --from and --until", USAGE)
    season = replay_log(log, name, as_of)
    if projection == "portfolio_snapshots":
        built, view = _portfolios(season.projections, view, first, end)
    elif projection == "score_parts":
        built, view = _score_parts(season.projections, view)
    else:
        built = season.projections.table(projection)
        if since is not None or until is not None:
            built = built.between("at", first, end)
    emit_table(built, view)
    say_season(season, None if "contest" in names else ())


def _portfolios(projections: "Projections", view: View, since: int | None, until: int | None) -> "tuple[Table, View]":
    """Return the portfolios that a view and a span select, and the view with the conditions that are left to test."""
    from forecast_ledger.projections.trading.account_histories import Selection

    chosen, view = _chosen(view, {"contest", "participant"})
    names = {"contest": projections.traded, "participant": projections.traders}
    for column, label in chosen.items():
        require_name(f"{column} with accounts", label, names[column])
    selection = Selection(chosen.get("contest"), chosen.get("participant"), since, until)
    return projections.selected_portfolios(selection), view


def _score_parts(projections: "Projections", view: View) -> "tuple[Table, View]":
    """Return the parts of scores that a view selects, and the view with the conditions that are left to test."""
    from forecast_ledger.projections.tables.scores import names_in_parts

    names = names_in_parts(projections.facts)
    chosen, view = _chosen(view, {*names})
    for column, label in chosen.items():
        require_name(column, label, names[column])
    return projections.score_parts(**chosen), view


def _chosen(view: View, columns: set[str]) -> tuple[dict[str, str], View]:
    """Return the one value that a view asks for in each of some columns, and the view with its other conditions."""
    chosen: dict[str, str] = {}
    left = []
    for condition in view.where:
        if condition.column in columns and not (condition.negated or condition.column in chosen):
            chosen[condition.column] = condition.value
        else:
            left.append(condition)
    return chosen, view._replace(where=tuple(left))


@main.command(epilog="Example: forecast-ledger columns leaderboard")
@click.argument("projection", required=False, shell_complete=completion.tables)
@table_options
@report_errors
def columns(projection: str | None, view: View) -> None:
    """Explain the columns of every projection, or of one PROJECTION."""
    from forecast_ledger.projections.tables.catalogue import CATALOGUE

    names = CATALOGUE if projection is None else [require_projection(projection)]
    rows = (
        {"projection": name, "column": column.name, "kind": column.kind, "meaning": column.meaning}
        for name in names
        for column in CATALOGUE[name].columns
    )
    emit(["projection", "column", "kind", "meaning"], rows, view)


@main.command(epilog="Example: forecast-ledger replay season.db --as-of 1200")
@log_argument
@click.option(
    "--compare",
    metavar="LOG",
    help="Find where LOG differs from another log: a LOG, LOG@POSITION, an export, or a file of rows as JSON lines.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "processes", "spark"]),
    help="Score some questions at a time: in this process, in one for each processor, or with Apache Spark. Default: "
    "all at once; if --only names boards alone, processes from 4,194,304 forecasts on, and local below. The digests "
    "are the same.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="PROJECTION",
    shell_complete=completion.tables,
    help="Rebuild only this projection; repeatable. What no other needs is not computed.",
)
@memory_option
@as_of_option
@segments_options(found=False)
@name_option
@table_options
@report_errors
def replay(
    log: Location,
    compare: str | None,
    engine: "Choice | None",
    only: tuple[str, ...],
    memory: int | None,
    as_of: str | None,
    name: str,
    view: View,
) -> None:
    """Rebuild every projection and print its digest.

    The same log gives the same digests on every machine. The projections forecasts, quotes, score_parts
    and portfolio_snapshots are left out, because they can have more rows than the log; `table` prints them. --compare
    prints the first log position at which the logs differ, the event that each has there, and which projections
    differ; if the logs differ, the exit code is 1.
    """
    if compare is not None:
        if not isinstance(log, str):
            fail("--compare reads every row of both logs: leave --segments and --trust out", USAGE)
        if engine is not None or only or memory is not None:
            fail("--compare builds all projections at once: leave --engine, --only and --memory out", USAGE)
        audit.compare(log, compare, as_of, name, view)
        return
    from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE
    from forecast_ledger.projections.tables.question_parts import SUMS, needed
    from forecast_ledger.replay.reading.replay import summarize_parts, summarize_tables

    chosen = {require_projection(each) for each in only} or BUILT
    names = [each for each in CATALOGUE if each in chosen]
    if engine is None and needed(chosen) == {SUMS}:
        engine = "auto"
    projections = (season := replay_log(log, name, as_of, engine, names, memory)).projections
    if memory is None:
        tables = summarize_tables(projections.facts, projections.cached, names)
    else:
        tables = summarize_parts(projections, names)
    rows = ({"projection": table, "rows": size.rows, "digest": size.digest} for table, size in tables.items())
    emit(["projection", "rows", "digest"], rows, view)
    say_as_of(season.checkpoint)


@main.command(epilog="Example: forecast-ledger pay season.db spring-cup")
@log_argument
@click.argument("contest", shell_complete=completion.ids("contest"))
@name_option
@table_options
@report_errors
def pay(log: str, contest: str, name: str, view: View) -> None:
    """Pay the winners of a finalized CONTEST.

    Each prize of the sealed board is recorded once; running the command again changes nothing. If only some prizes are
    recorded, because a log was cut short, the others are recorded.
    """
    from forecast_ledger.ledger.storing.writer import Ledger
    from forecast_ledger.projections.tables.catalogue import CATALOGUE
    from forecast_ledger.replay.writing.pay import pay as paid

    require_columns(view, [column.name for column in CATALOGUE["prizes"].columns])
    _require_contest(contest, replay_log(log, name, None))  # this does not create a log that does not exist
    with Ledger.open(log, name, prizes=append.board_prizes) as ledger:
        receipt = paid(ledger, contest)
    season = replay_log(log, name, None)
    table = season.projections.table("prizes").only("contest", contest)
    emit_table(table, view, Look(keep=("participant", "prize", "paid")))
    say("already paid; nothing was recorded" if receipt is None else f"paid from log position {receipt.first} on")
    say_season(season, [contest])
    different = [row["participant"] for row in table.rows() if row["prize"] != row["paid"]]
    if different:
        say(f"paid amounts differ from the sealed board for {', '.join(different)}; `verify` names the log positions")
        sys.exit(FINDINGS)


@main.command(epilog="Example: forecast-ledger demo")
@report_errors
def demo() -> None:
    """Rebuild a published tournament and check every figure.

    The commands of the tournament are appended to a temporary log, the log is replayed, and each resulting figure is
    compared with the published one.
    """
    from tempfile import TemporaryDirectory

    from forecast_ledger.replay.cli.demo import demonstrate

    with TemporaryDirectory() as folder:
        demonstration = demonstrate(folder)
        for line in demonstration.lines:
            print(line)
    if not demonstration.agrees:
        sys.exit(FINDINGS)


@main.command("completion", epilog="Example: forecast-ledger completion bash")
@click.argument("shell", type=click.Choice(_SHELLS))
@report_errors
def completion_(shell: str) -> None:
    """Print a script that lets a SHELL complete commands and ids.

    \b
    bash: put eval "$(forecast-ledger completion bash)" in ~/.bashrc
    zsh:  put eval "$(forecast-ledger completion zsh)" in ~/.zshrc, after compinit
    fish: forecast-ledger completion fish > ~/.config/fish/completions/forecast-ledger.fish

    The shell then completes the names of tables, and the contests, questions and participants in the log that the line
    names before them. The log is read for half a second at most, and never changed. Logs on a database server are not
    read.
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    if script is not None:
        print(script(main, {}, "forecast-ledger", "_FORECAST_LEDGER_COMPLETE").source())


def _require_contest(contest: str, season: "Replay") -> "Replay":
    """Return the replay. Raises Refused if it has no such contest; the message names the contests that it has."""
    from forecast_ledger.replay.reading import lookup

    lookup.find_contest(season.projections.facts, contest)
    return season


for _command in (
    *append.COMMANDS,
    *audit.COMMANDS,
    *compare.COMMANDS,
    *explain.COMMANDS,
    *export.COMMANDS,
    *follow.COMMANDS,
    *importing.COMMANDS,
    *reference.COMMANDS,
    *report.COMMANDS,
    *what_if.COMMANDS,
):
    main.add_command(_command)
main.groups = {
    "Record": ("append", "import-from", "pay", "import"),
    "Read": ("leaderboard", "table", "columns", "rules", "log", "show", "report", "plot"),
    "Audit": ("verify", "audit", "checkpoint", "balance", "replay", "compare"),
    "Research": ("explain", "diff", "blame", "what-if", "export", "seal"),
    "Operate": ("follow", "schema", "help", "completion", "demo"),
}
