"""The commands that read a log: leaderboard, table, columns, replay."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from forecast_ledger.replay.cli import completion
from forecast_ledger.replay.cli.shell import (
    Location,
    as_of_option,
    emit,
    emit_table,
    fail,
    log_argument,
    memory_option,
    name_option,
    parse_cut,
    progress,
    replay_log,
    report_errors,
    require_columns,
    require_contest,
    require_name,
    require_projection,
    say,
    say_as_of,
    say_season,
    segments_options,
)
from forecast_ledger.replay.cli.terminal import Look, View, table_options
from forecast_ledger.replay.reference.exit_codes import FINDINGS, USAGE

if TYPE_CHECKING:
    from forecast_ledger.projections.core.table import Table
    from forecast_ledger.projections.tables.catalogue import Projections
    from forecast_ledger.replay.audit.compare import FirstDifference
    from forecast_ledger.replay.engines.engines import Choice
    from forecast_ledger.replay.reading.replay import Replay


@click.command(epilog="Example: forecast-ledger leaderboard season.db spring-cup --as-of 2026-03-01T00:00:00Z")
@log_argument
@click.argument("contest", required=False, shell_complete=completion.ids("contest"))
@as_of_option
@segments_options(use_beside=True)
@name_option
@table_options
@report_errors
def leaderboard(log: Location, contest: str | None, as_of: str | None, name: str, view: View) -> None:
    """Print the leaderboard of a CONTEST, best first.

    CONTEST can be left out if there is only one. For a contest in which participants trade, this prints the trading
    board; the scores of forecasts on its questions are in the table `leaderboard`.
    """
    from forecast_ledger.ledger.storing.stored_log import is_folder
    from forecast_ledger.replay.reading.log import only_contest

    engine: Choice | None = None if isinstance(log, str) and not is_folder(log) else "auto"  # for segments
    season = replay_log(log, name, as_of, engine, ["leaderboard"])
    if contest is None:
        contest = only_contest(season.projections.facts)
    print_board(require_contest(contest, season), [contest], view)


def print_board(season: "Replay", contests: Sequence[str], view: View) -> None:
    """Print the board of contests of one kind, and say what it leaves out and up to where it goes."""
    import numpy as np

    from forecast_ledger.replay.reading.board_notes import left_out

    trading = contests[0] in season.projections.traded
    whole = season.projections.table("arena_leaderboard" if trading else "leaderboard")
    ids = whole.ids("contest")
    board = whole.rows_at(np.array([ids.labels[code] in contests for code in ids.codes.tolist()], bool).nonzero()[0])
    emit_table(board, view, Look(keep=("rank", "participant"), spare=("family", "release", "attainable")))
    if trading:
        say("this is the trading board; the scores of forecasts are in the table leaderboard")
    for contest in contests:
        for note in left_out(season.projections, contest):
            say(note)
    say_season(season, [*contests])


@click.command(epilog="Example: forecast-ledger table season.db scores --format csv")
@log_argument
@click.argument("projection", shell_complete=completion.tables)
@click.option(
    "--from", "since", metavar="INSTANT", help="Only rows `at` this instant or later, or from this day on (UTC)."
)
@click.option(
    "--until", metavar="INSTANT", help="Only rows `at` an instant before this, or up to the end of this day (UTC)."
)
@as_of_option
@segments_options(use_beside=True)
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
    _say_samples(season, projection, view)
    say_season(season, None if "contest" in names else ())


def _say_samples(season: "Replay", projection: str, view: View) -> None:
    """Say what is drawn for a table of one contest, if it is a table that samples are drawn for."""
    from forecast_ledger.replay.reading.studies import CLUSTERED, sample_notes

    contests = season.projections.facts.contests
    chosen = _chosen(view, {"contest"})[0].get("contest", next(iter(contests), None) if len(contests) == 1 else None)
    if projection in CLUSTERED and chosen in contests:
        for note in sample_notes(season.projections, chosen):
            say(note)


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


@click.command(epilog="Example: forecast-ledger columns leaderboard")
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


@click.command(epilog="Example: forecast-ledger replay season.db --as-of 1200")
@log_argument
@click.option(
    "--compare",
    metavar="LOG",
    help="Find where LOG differs from another log: a LOG, LOG@POSITION, an export, or a file of rows as JSON lines.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "threads", "processes", "spark"]),
    help="Score some questions at a time: in this process, in a thread or a process for each processor, or with "
    "Apache Spark. Default: all at once; if --only names boards alone, threads from 262,144 forecasts on (under Linux, "
    "processes from 8,388,608 on, with more processors sooner), and local below. The digests are the same.",
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
@segments_options(use_beside=False)
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
    from forecast_ledger.projections.tables.catalogue import BUILT, CATALOGUE
    from forecast_ledger.projections.tables.question_parts import SUMS, needed
    from forecast_ledger.replay.reading.replay import summarize_parts, summarize_tables

    if compare is not None:
        if not isinstance(log, str):
            fail("--compare reads every row of both logs: leave --segments and --trust out", USAGE)
        if engine is not None or only or memory is not None:
            fail("--compare builds all projections at once: leave --engine, --only and --memory out", USAGE)
        _compare(log, compare, as_of, name, view)
        return

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


def _compare(log: str, other: str, as_of: str | None, name: str, view: View) -> None:
    """Print the projections of two logs side by side, and where the logs differ; if they do, exit with 1."""
    from forecast_ledger.replay.audit.compare import COMPARISON_COLUMNS, ComparedLog, compare_logs, parse_log

    ours, theirs = ComparedLog(log, name, parse_cut(as_of)), parse_log(other, name, parse_cut(as_of))
    with progress("read") as on_progress:
        comparison = compare_logs(ours, theirs, on_progress)
    built, other_built = comparison.built
    rows = (
        dict(zip(COMPARISON_COLUMNS, (table, "yes" if a == b else "no", *a[1:], *b[1:]), strict=True))
        for table, a, b in ((table, ours_built, other_built[table]) for table, ours_built in built.items())
    )
    emit(COMPARISON_COLUMNS, rows, view, Look(keep=("projection", "same")))
    for line in _describe_first_difference(comparison.first_difference, str(ours), str(theirs)):
        say(line)
    say(f"projections that differ: {', '.join(comparison.apart()) or 'none'}")
    say_as_of(comparison.heads[0])
    other_head = comparison.heads[1]
    say(f"compared with {theirs} as of log position {other_head.position}, digest {other_head.digest}")
    if comparison.first_difference is not None:
        sys.exit(FINDINGS)


def _describe_first_difference(first_difference: "FirstDifference | None", ours: str, theirs: str) -> Iterator[str]:
    """Yield lines that say at which log position two logs first differ, and which event each has there."""
    from forecast_ledger.replay.audit.browse import event_row

    if first_difference is None:
        yield "the logs are the same"
        return
    if first_difference.one is None or first_difference.other is None:
        shorter, longer = (ours, theirs) if first_difference.one is None else (theirs, ours)
        yield f"{shorter} is the beginning of {longer}, which continues at log position {first_difference.position}"
    else:
        fields = ", ".join(first_difference.fields()) or "their bytes"
        yield f"the logs first differ at log position {first_difference.position}, in {fields}"
    for name, recorded in ((ours, first_difference.one), (theirs, first_difference.other)):
        if recorded is not None:
            shown = event_row(recorded, first_difference.outcomes)
            yield f"{name}: recorded at {shown['recorded_at']}, at {shown['at']}, {shown['type']}: {shown['says']}"
