"""The commands that write a log and its tables as files, seal it, and import an exported log."""

import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from os import fspath
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Absent
from forecast_ledger.ledger.core.files import folder_at
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.projections.core.text_table import escape
from forecast_ledger.replay.cli.shell import (
    Location,
    as_of_option,
    emit,
    fail,
    log_argument,
    memory_option,
    name_option,
    parse_cut,
    progress,
    report_errors,
    require_columns,
    require_name,
    require_path,
    require_projection,
    say,
    say_as_of,
    segments_options,
)
from forecast_ledger.replay.cli.terminal import View, table_options
from forecast_ledger.replay.reference.exit_codes import FINDINGS, UNREADABLE, USAGE

if TYPE_CHECKING:
    from forecast_ledger.replay.files.hub_export import HubExport
    from forecast_ledger.replay.reading.log import Log
    from forecast_ledger.replay.readmodel.runner import Drift, Refreshed

_ALWAYS_WRITTEN = ("events", "contests", "questions", "participants", "data_dictionary")
IMPORTED = ["appended", "log_position", "digest"]
SEALED = ["segments", "bytes", "log_position", "digest"]
_HUB, _DASHBOARD, _EFFECTS, SEGMENTS = "hub", "hubpredevals", "forecastbench", "segments"
_OF_TABLES = ["sqlite", "csv", "jsonl", "parquet", "arrow"]
_FORMS = [*_OF_TABLES, SEGMENTS, _HUB, _DASHBOARD, _EFFECTS]
_SUFFIXES = {f".{form}": form for form in _OF_TABLES} | {".db": "sqlite"}


@click.command(epilog="Example: forecast-ledger export season.db season-csv --format csv")
@log_argument
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMS),
    help="Write files of this kind. Default: as the name of OUT ends, such as .db, .csv or .parquet.",
)
@click.option(
    "--tables",
    metavar="A,B",
    help="Write only these projections; `all` means the default ones. Events, contests, questions and participants are "
    "always written.",
)
@click.option("--force", is_flag=True, help="Replace an existing export at OUT.")
@click.option("--baseline", metavar="PARTICIPANT", help="With hubpredevals: who has the relative skill 1.")
@click.option("--floats", is_flag=True, help="Write decimals as the nearest floats, which other programs compute with.")
@click.option("--wide", is_flag=True, help="Print digests in full on a terminal too.")
@memory_option
@as_of_option
@segments_options(use_beside=False)
@name_option
@report_errors
def export(
    log: Location,
    out: Path,
    form: str | None,
    tables: str | None,
    force: bool,
    baseline: str | None,
    floats: bool,
    wide: bool,
    memory: int | None,
    as_of: str | None,
    name: str,
) -> None:
    """Write the events and all tables to OUT.

    OUT is a new folder with one file per table, or an SQLite file with metadata for datasette beside it. The number of
    rows and the digest of each table are printed, and which answers changed after a board was sealed that rests on
    them; the manifest has these notes too. The projections score_parts and portfolio_snapshots can have far more
    rows than the log; they are written only if --tables names them.

    With --format hub, OUT is a folder in the layout of a hubverse hub instead: model output, oracle output and the
    configuration, without tables. With --format hubpredevals, it is the scores that a hub's dashboard shows, and its
    options. With --format forecastbench, it is the effects of ForecastBench's questions, as its leaderboards publish
    them. With --format segments, it is the log alone, as `seal` writes it.
    """
    from forecast_ledger.replay.files.export import export as exported

    form = form or _form_of(out)
    _check_options(form, log, tables, baseline, memory, floats=floats)
    if form in {_HUB, _DASHBOARD, _EFFECTS}:
        write = partial(_dashboard, baseline=baseline) if form == _DASHBOARD else _WRITERS[form]
        _export_hub(write, fspath(log), out, View(wide=wide), as_of, name, force=force)
        return
    names = None if tables is None else _table_names(tables)
    if form == "sqlite":
        _import_sqlite_utils()
    try:
        with progress("read") as watch:
            cut = parse_cut(as_of)
            manifest = exported(
                log, out, form, name, cut, tables=names, force=force, floats=floats, memory=memory, on_progress=watch
            )
    except FileExistsError as error:
        fail(str(error), USAGE)
    except OSError as error:
        fail(f"{out}: {error.strerror or error}", UNREADABLE)
    rows = [{"table": name, "rows": part.rows, "digest": part.digest} for name, part in manifest.tables.items()]
    if form == SEGMENTS:
        rows = [{"table": "events", "rows": manifest.log_position, "digest": manifest.log_digest}]
    emit(["table", "rows", "digest"], rows, View(wide=wide))
    for note in manifest.notes:
        say(note)
    say_as_of(Checkpoint(manifest.log_position, manifest.log_digest))


def _import_sqlite_utils() -> None:
    """Import sqlite-utils as if pandas were not installed: it would import that, for a type that no table has."""
    if "pandas" in sys.modules:
        return
    sys.modules["pandas"] = None  # type: ignore[assignment] # so that to import it is an ImportError
    try:
        import_module("sqlite_utils")
    finally:
        del sys.modules["pandas"]


def _form_of(out: Path) -> str:
    """Return the format that the name of OUT says, and say if it is no file. Wrong usage: it says none."""
    form = _SUFFIXES.get(out.suffix.lower(), "")
    if not form:
        forms = ", ".join(_FORMS)
        fail(f"{out}: its name does not say what to write, as out.db or out.csv do; give --format: {forms}", USAGE)
    if form != "sqlite":
        say(f"{out} is a folder with a file for each table; `forecast-ledger table LOG TABLE --format csv` prints one")
    return form


def _check_options(
    form: str, log: Location, tables: str | None, baseline: str | None, memory: int | None, *, floats: bool
) -> None:
    """Refuse options that a format has no use for."""
    if baseline is not None and form != _DASHBOARD:
        fail(f"--baseline goes with --format {_DASHBOARD}, not with {form}: leave it out", USAGE)
    if form not in {_HUB, _DASHBOARD, _EFFECTS, SEGMENTS}:
        return
    if tables is not None:
        fail(f"--tables does not go with --format {form}, which has no tables", USAGE)
    if memory is not None:
        fail(f"--format {form} has no large tables: leave --memory out", USAGE)
    if not isinstance(log, str):
        fail(f"--format {form} reads every row of the log: leave --segments and --trust out", USAGE)
    if floats:
        fail(f"--format {form} has no tables: leave --floats out", USAGE)


@click.command(name="import", epilog="Example: forecast-ledger import season-csv copy.db")
@click.argument("exported", metavar="EXPORT", type=click.Path())
@log_argument
@name_option
@table_options
@report_errors
def restore(exported: str, log: str, name: str, view: View) -> None:
    """Copy the log in EXPORT into a new ledger.

    EXPORT is what `export` or `seal` wrote, or the URL of a folder of segments. Rows, instants, ids and digests stay
    the same. If the ledger is not empty, its log must be the beginning of the exported log; the rest is appended. All
    of EXPORT is checked before anything is written.
    """
    from forecast_ledger.replay.files.manifest import read_manifest
    from forecast_ledger.replay.files.restore import restore as restored

    require_columns(view, IMPORTED)
    try:
        with progress("imported") as on_progress:
            appended = restored(exported, log, name, on_progress, side_by_side=True)
    except FileExistsError as error:
        fail(f"{log}: {error}", USAGE)
    manifest = read_manifest(folder_at(exported))
    row = dict(zip(IMPORTED, (appended, manifest.log_position, manifest.log_digest), strict=True))
    emit(IMPORTED, [row], view)
    say_as_of(Checkpoint(manifest.log_position, manifest.log_digest))


def _export_hub(
    write: "Callable[..., HubExport]", log: str, out: Path, view: View, as_of: str | None, name: str, *, force: bool
) -> None:
    """Write a hub or its dashboard, and print what it has."""
    from forecast_ledger.replay.reading.log import Log

    try:
        with progress("read") as on_progress:
            hub = write(Log(log, name, parse_cut(as_of), on_progress), out, force=force)
    except FileExistsError as error:
        fail(str(error), USAGE)
    except OSError as error:
        fail(f"{out}: {error.strerror or error}", UNREADABLE)
    for reason, count in hub.left_out.items():
        say(f"left out: {count:,} x {reason}")
    rows = [{"part": part, **counted._asdict()} for part, counted in hub.parts.items()]
    emit(["part", "rows", "digest"], rows, view)
    say_as_of(hub.checkpoint)


def _hub(log: "Log", out: Path, *, force: bool) -> "HubExport":

    from forecast_ledger.replay.files.hub_export import export_hub

    return export_hub(log, out, force=force)


def _dashboard(log: "Log", out: Path, *, baseline: str | None, force: bool) -> "HubExport":

    from forecast_ledger.replay.files.dashboard_export import TABLES, export_dashboard
    from forecast_ledger.replay.reading.replay import replay

    season = replay(log.location, log.name, log.as_of, log.on_progress, tables=TABLES)
    try:
        return export_dashboard(season, out, baseline, force=force)
    except ValueError as error:
        fail(str(error), USAGE)


def _effects(log: "Log", out: Path, *, force: bool) -> "HubExport":

    from forecast_ledger.replay.files.effects_export import TABLES, export_effects
    from forecast_ledger.replay.reading.replay import replay

    season = replay(log.location, log.name, log.as_of, log.on_progress, tables=TABLES)
    try:
        return export_effects(season, out, force=force)
    except ValueError as error:
        fail(str(error), USAGE)


_WRITERS: dict[str, Callable[..., "HubExport"]] = {_HUB: _hub, _EFFECTS: _effects}


def _table_names(tables: str) -> list[str]:
    """Read a list of projections. Tables that are always written may be in it; any other name is wrong usage."""
    from forecast_ledger.replay.files.export import default_tables

    meanings: dict[str, list[str]] = {"all": default_tables(), **{name: [] for name in _ALWAYS_WRITTEN}}
    names = [name.strip() for name in tables.split(",")]
    return [table for name in names for table in (meanings[name] if name in meanings else [require_projection(name)])]


@click.command(epilog="Example: forecast-ledger seal season.db season-segments")
@log_argument
@click.argument("folder", type=click.Path(), required=False)
@click.option(
    "--rows",
    type=click.IntRange(1, 1 << 24),
    default=1 << 20,
    show_default=True,
    help="Events of a segment; the last one may have fewer.",
)
@name_option
@table_options
@report_errors
def seal(log: str, folder: str | None, rows: int, name: str, view: View) -> None:
    """Write the log as Parquet files to FOLDER, in segments.

    By default, FOLDER is beside the log, with its name and `.segments`; leaderboard, table, explain, diff, blame and
    what-if use it from then on, and say so. It is created, or, if it has the beginning of the log, completed; the log
    is not changed. Every segment is read
    back and compared with the log before FOLDER lists it, so that sealing can be interrupted and run again. Commands
    that read a LOG read FOLDER too; it takes about a tenth of the log's space.
    """
    from forecast_ledger.ledger.storing.stored_log import segments_beside
    from forecast_ledger.replay.files.export import seal as sealed

    require_columns(view, SEALED)
    if folder is None and segments_beside(log) is None:
        fail(f"{redacted(log)}: there is no place beside it; give a FOLDER", USAGE)
    with progress("sealed") as on_progress:
        result = sealed(log, folder, name, rows, on_progress)
    row = dict(zip(SEALED, (result.segments, result.bytes, *result.checkpoint), strict=True))
    emit(SEALED, [row], view)


# --- The command that keeps a read model up to date or checks it.


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
@click.option("--all", "every", is_flag=True, help="Follow every ledger of LOG, into a READMODEL with {name} in it.")
@click.option("--rebuild", is_flag=True, help="Make all tables again; readers see the old ones until these are done.")
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
    every: bool,
    rebuild: bool,
    optional: tuple[str, ...],
    name: str,
) -> None:
    """Keep tables in SQLite or PostgreSQL up to date with a log.

    READMODEL is the path of a file, or postgresql://USER@HOST/DATABASE?schema=NAME. It has the tables that `replay`
    lists. Those with a row for each forecast, which are standing, consensus and scores, are kept only if --with names
    them. --with can also name quotes and portfolio_snapshots, which every refresh computes again.

    The table `_tracking` has the log position and digest of the last refresh, and is updated in the same transaction.
    `follow` continues from there until it is interrupted. It reports each refresh and the lag behind the log on
    stderr. While another `follow` keeps READMODEL, it waits, and takes over when the other one ends; with --once, it is
    refused. If READMODEL is damaged, or another program changed it, it is refused, and --rebuild makes it again.

    --check rebuilds the tables as of that log position and prints the values that differ; if there are any, the exit
    code is 1.

    --all follows every ledger of LOG, also those that come later, in one process: READMODEL is then such as
    boards/{name}.db or postgresql://HOST/DATABASE?schema={name}. An error is printed with the name of its ledger, the
    others go on, and it is tried again; with --once, the exit code is 3. Several such processes share the ledgers.
    """
    from forecast_ledger.replay.readmodel.part_store import OPTIONAL

    for table in optional:
        require_name("table for --with", table, OPTIONAL)
    if every:
        if check or wait or rebuild or segments is not None or name != "main":
            fail("--all cannot be used with --check, --wait, --rebuild, --segments or --name: leave them out", USAGE)
        if "{name}" not in readmodel:
            fail("--all: write {name} in READMODEL for the name of a ledger, as in boards/{name}.db", USAGE)
        _follow_all(log, readmodel, once, optional)
        return
    if check:
        if once or wait or rebuild or optional or segments is not None:
            fail("--check cannot be used with --once, --wait, --rebuild, --with or --segments: leave them out", USAGE)
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
        _follow(log, readmodel, name, once, segments=segments, optional=optional, rebuild=rebuild)


def _is_there(log: str, name: str, wait: bool) -> bool:
    """Report whether a store has a ledger of this name. If not, and without --wait, that is wrong usage."""
    from forecast_ledger.ledger.storing.stored_log import StoredLog

    try:
        store = StoredLog.open(log, values.check_id(name, "name"), read_only=True)
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


def _follow(
    log: str, readmodel: str, name: str, once: bool, *, segments: str | None, optional: tuple[str, ...], rebuild: bool
) -> None:

    from forecast_ledger.replay.readmodel.runner import Runner

    with (
        progress("read") as on_progress,
        Runner(
            log, readmodel, name, on_progress, segments, optional=optional, standby=not once, rebuild=rebuild
        ) as runner,
    ):

        def report(done: "Refreshed") -> None:
            """Print what a refresh did, and how far the read model is behind the log."""
            position, digest = done.reached
            lag = runner.lag()
            behind = f"lag {lag.positions:,} positions, {lag.seconds:.3f} s"
            say(f"{done.events:,} events, {done.rows:,} rows changed; {behind}")
            say(f"as of log position {position}, digest {digest}")

        if once:
            report(runner.refresh())
        else:
            _stop_by_signal(runner.stop)
            runner.follow(report, say)
            say("stopped")


def _stop_by_signal(stop: Callable[[], None]) -> None:
    """Call this at the first signal that is to end the process."""

    def on_signal(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second signal ends the process at once
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)


def _follow_all(log: str, models: str, once: bool, optional: tuple[str, ...]) -> None:
    from forecast_ledger.replay.readmodel.runners import Runners

    def report(name: str, done: "Refreshed") -> None:
        say(f"{name}: {done.events:,} events, {done.rows:,} rows changed; as of log position {done.reached.position}")

    def on_error(name: str, error: Exception) -> None:
        say(f"{name}: {error}" if name else f"waiting for the store, which is tried again each second: {error}")

    with Runners(log, models, optional=optional) as runners:
        if once:
            done = runners.refresh()
            for name, refreshed in done.refreshed.items():
                report(name, refreshed)
            for name, error in done.failed.items():
                on_error(name, error)
            if done.failed:
                fail(f"{len(done.failed)} of the ledgers could not be followed", UNREADABLE)
        else:
            _stop_by_signal(runners.stop)
            runners.follow(report, on_error)
            say("stopped")


def _check(log: str, readmodel: str, name: str) -> None:

    from forecast_ledger.replay.reading.log import Log
    from forecast_ledger.replay.readmodel.runner import check_model

    with progress("read") as on_progress:
        result = check_model(Log(log, name, on_progress=on_progress), readmodel)
    for drift in result.drifts:
        print(_describe(drift))
    if more := result.total - len(result.drifts):
        print(f"and {more:,} more")
    say_as_of(result.reached)
    if result.total:
        fail(f"{redacted(readmodel)}: differs from its log in {result.total:,} places", FINDINGS)
    say(f"{redacted(readmodel)}: every table agrees with the log")


def _describe(drift: "Drift") -> str:

    where = [drift.table, *([repr(drift.key)] if drift.key else []), *([drift.column] if drift.column else [])]
    values = (f"{word} {repr(value)[:_MOST]}" for word, value in (("expected", drift.expected), ("found", drift.found)))
    return escape(f"{' '.join(where)}: {', '.join(values)}")
