"""The parts that all commands share: options, exit codes, printing, errors on one line, and the replay of a log."""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from os import PathLike
from threading import enumerate as threads
from typing import IO, TYPE_CHECKING, Any, NoReturn, ParamSpec

import click

from forecast_ledger.ledger.core.errors import (
    Conflict,
    Corrupt,
    LedgerError,
    NewerVersion,
    Refused,
    Unavailable,
    Uncertain,
)
from forecast_ledger.ledger.core.files import path_in
from forecast_ledger.ledger.core.hints import in_list, nearest
from forecast_ledger.ledger.core.redaction import redacted_text
from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.storing.forks import holds_nothing
from forecast_ledger.projections.core.text_table import as_table, escape
from forecast_ledger.replay.cli import terminal
from forecast_ledger.replay.cli.signals import reported, signal_of, terminable, write_last
from forecast_ledger.replay.cli.terminal import RED, Look, Selected, View, colour_text, has_colour
from forecast_ledger.replay.reading.blocks import TEXT_FORMATS
from forecast_ledger.replay.reference.exit_codes import DAMAGED, FINE, SIGNALLED, UNCERTAIN, UNREADABLE, USAGE

if TYPE_CHECKING:
    from forecast_ledger.ledger.model.input_locations import InputLocation
    from forecast_ledger.ledger.model.log import Checkpoint
    from forecast_ledger.projections.core.table import Table
    from forecast_ledger.replay.audit.verify import SavedCheckpoint
    from forecast_ledger.replay.engines.engines import Choice
    from forecast_ledger.replay.reading.log import Trust
    from forecast_ledger.replay.reading.replay import Replay


_DIGITS = 1_000  # digits of a log position that are read
_NO_THREAD = ("can't start new thread", "Failed to launch worker thread")  # as Python and pyarrow say it
REMEDY = "; --wide shows everything, --columns A,B,C only those columns"

_P = ParamSpec("_P")


def require_path(_: click.Context, __: click.Parameter, where: str | None) -> str | None:
    """Return the location of a log or read model; of a file:// URL, its path.

    An empty path, or a database in memory, is wrong usage.
    """
    if where is not None and where.removeprefix("sqlite:///") in {"", ":memory:", "sqlite://"}:
        raise click.BadParameter(f"{where!r} would not be kept; give the path of a file")
    if where is not None and "://" in where:
        return path_in(where)
    return where


log_argument = click.argument("log", metavar="LOG", type=click.Path(readable=False), callback=require_path)
name_option = click.option(
    "--name", default="main", show_default=True, metavar="NAME", help="Use the ledger of this name in the store."
)
errors_option = click.option(
    "--errors",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Write errors to stderr in words, or as one JSON object per line.",
)


def report_errors(command: Callable[_P, None]) -> Callable[_P, None]:
    """Turn errors of the project and of the system, and signals, into a line on stderr and an exit code.

    An error with notes has a line more for each.
    """

    @wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        """Run the command, and end the process with the code of its error."""

        def report(error: LedgerError, text: str, code: int) -> NoReturn:
            if kwargs.get("errors") == "json":
                say(error.as_json())
            else:
                complain(text)
                for note in getattr(error, "__notes__", ()):
                    say(note)
            sys.exit(code)

        try:
            with terminable():
                command(*args, **kwargs)
                sys.stdout.flush()
        except Refused as error:
            report(error, str(error), USAGE)
        except (Unavailable, Conflict) as error:
            report(error, str(error), UNREADABLE)
        except Corrupt as error:
            report(error, damage_text(error), DAMAGED)
        except Uncertain as error:
            report(error, str(error), UNCERTAIN)
        except BrokenPipeError:  # the reader of the output has closed it
            sys.exit(FINE)
        except OSError as error:
            subject = error.filename or "reading the input or writing the output failed"
            failed = Unavailable(f"{subject}: {error.strerror or error}")
            report(failed, str(failed), UNREADABLE)
        except MemoryError:
            failed = Unavailable("there is not enough memory for this; `replay` and `export` take less with --memory")
            report(failed, str(failed), UNREADABLE)
        except Exception as error:
            if not any(text in str(error) for text in _NO_THREAD):
                raise
            failed = Unavailable("no thread can be started: end processes of this user, or raise the limit (ulimit -u)")
            report(failed, str(failed), UNREADABLE)
        except KeyboardInterrupt as stopped:
            sys.unraisablehook = lambda _: None  # objects that a library leaves half made print nothing
            number = signal_of(stopped)
            complain(f"stopped by {number.name}")
            reported.set()
            sys.exit(SIGNALLED + number)
        finally:
            write_last(sys.stdout)

    return run


def damage_text(error: Corrupt) -> str:
    """Return the line about what stops a reader of the log: damage, or a row of a newer version."""
    return str(error) if isinstance(error, NewerVersion) else f"the log is damaged: {error}"


def require_name(kind: str, name: str, names: Sequence[str]) -> str:
    """Return the name if it is one of these; any other is wrong usage, and the message has the nearest and all."""
    if name not in names:
        near = nearest(name, names)
        first = f"; the nearest is {in_list([near])}" * bool(near)
        fail(f"no {kind} named {name!r}{first}; there are: {in_list(names)}", USAGE)
    return name


def require_columns(view: View, names: Sequence[str]) -> View:
    """Return the view if the table has every column that it names; else it is wrong usage.

    A command that writes calls this before it records anything.
    """
    for name in view.named_columns():
        require_name("column", name, names)
    return view


def emit(names: Sequence[str], rows: Iterable[dict[str, Any]], view: View, look: Look = Look()) -> None:  # noqa: B008
    """Print rows of these columns to stdout, and notes on the rows and columns left out to stderr."""
    selected, note = Selected(require_columns(view, names), rows), ""
    if view.form == "table":
        note = print_table(view.columns or names, selected, view, look)
    else:
        for line in TEXT_FORMATS[view.form](view.columns or names, selected):
            print(line)
    sys.stdout.flush()
    _say_all(selected.note(), note + REMEDY * bool(note))


def emit_list(
    names: list[str], rows: Iterator[dict[str, Any]], view: View, plain: Callable[..., Iterator[str]], some: list[str]
) -> None:
    """Print each row as soon as it is read.

    plain: yields the lines of rows, for output that need not fit. some: the columns of an aligned table.
    """
    fits = view.form == "table" and sys.stdout.isatty() and not view.wide
    if not fits and (view.form != "table" or view.columns):
        emit(names, rows, view)
        return
    selected = Selected(require_columns(view, names), rows)
    lines, note = plain(iter(selected)), ""
    if fits:
        look = Look(keep=("says",), spare=("recorded_at", "at"), chosen=bool(view.columns))
        screen = terminal.screen_of(sys.stdout, wide=False)
        lines, note = terminal.stream_rows(view.columns or some, iter(selected), look, screen)
    for line in lines:
        print(line)
    sys.stdout.flush()
    _say_all(selected.note() if selected.read else "", note + REMEDY * bool(note))


def print_table(names: Sequence[str], rows: Iterable[dict[str, Any]], view: View, look: Look) -> str:
    """Print a table, on a terminal no wider than it. Returns a note on what is not shown, "" if nothing."""
    lines, note = as_table(names, rows), ""
    if sys.stdout.isatty() and not view.wide:
        screen = terminal.screen_of(sys.stdout, wide=False)
        lines, note = terminal.fit_table(names, list(rows), look._replace(chosen=bool(view.columns)), screen)
    elif has_colour(sys.stdout):
        lines = terminal.full_table(names, list(rows))
    for line in lines:
        print(line)
    return note


def print_pairs(pairs: Mapping[str, Any], view: View) -> None:
    """Print a line for each name and value; on a terminal, long values are wrapped between words."""
    for line in terminal.vertical_table(pairs, terminal.screen_of(sys.stdout, wide=view.wide)):
        print(line)


def _say_all(*notes: str | None) -> None:
    for note in notes:
        if note:
            say(note)


def refusal_printer(errors: str) -> "Callable[[InputLocation, Refused], None]":
    """Return a function that prints a refusal with its location to stderr, in words or as one JSON object."""
    if errors != "json":
        return lambda location, refused: say(location.describe(refused))
    return lambda location, refused: say(json.dumps(location.to_dict(refused)))


def parse_cut(as_of: str | None) -> int | str | None:
    """Return a log position if the text has digits only, else the text, which is an instant."""
    digits = "" if as_of is None else as_of.removeprefix("-")
    if not (digits.isdecimal() and digits.isascii()):
        return as_of
    position = int(digits.lstrip("0")[:_DIGITS] or 0)  # a longer number is beyond every log
    return -position if as_of != digits else position


def say_as_of(checkpoint: "Checkpoint") -> None:
    """Say on stderr up to which row of the log an answer goes."""
    say(f"as of log position {checkpoint.position}, digest {checkpoint.digest}")


def say(text: str, start: str = "", colour: str = "") -> None:
    """Print a text to stderr, with control characters escaped and secrets of locations left out.

    An error while writing is ignored.

    start: a text to print before it, in this colour if stderr has colour.
    """
    try:
        shown = start and colour_text(start, colour) if has_colour(sys.stderr) else start
        print(shown + escape(redacted_text(text)), file=sys.stderr)
    except OSError:
        write_last(sys.stderr)


def fail(text: str, code: int) -> NoReturn:
    """Print an error and exit."""
    complain(text)
    sys.exit(code)


def complain(text: str) -> None:
    """Print an error, after the name of the program."""
    say(f" {text}", "forecast-ledger:", RED)


@contextmanager
def progress(
    done: str, total: int | None = None, reached: Callable[[], int] | None = None
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar with a count on stderr if that is a terminal; without a total, the bar only pulses.

    reached: returns how much of the total is done, if that is not the count.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    counted = TextColumn("{task.fields[count]:,} " + done)
    columns = (BarColumn(), *[TaskProgressColumn()] * (total is not None), counted, TimeElapsedColumn())
    before = {*threads()}
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        for painter in {*threads()} - before:
            holds_nothing(painter)
        task = progress.add_task("", total=total, count=0)
        yield lambda count: progress.update(task, completed=reached() if reached else count, count=count)


Location = str | PathLike[str]  # of a log; a `WithSegments` if its beginning is read from segments


def as_of_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that cut a log; the command gets them as its argument `as_of`."""

    @wraps(command)
    def run(*args: Any, as_of: str | None, as_of_claimed: str | None, **kwargs: Any) -> None:
        """Replace both options by one cut, and run the command."""
        cuts = [as_of]

        def resolve(**_: Any) -> None:
            if as_of is not None and as_of_claimed is not None:
                fail("give --as-of or --as-of-claimed, not both", USAGE)
            cuts[:] = [_resolved(as_of, as_of_claimed, kwargs["log"], kwargs["name"])]

        report_errors(resolve)(errors=kwargs.get("errors"))
        command(*args, as_of=cuts[0], **kwargs)

    claimed = click.option(
        "--as-of-claimed",
        metavar="INSTANT",
        help="Read only up to the first event that claims a later instant. A date means the end of that day, UTC.",
    )
    option = click.option(
        "--as-of",
        metavar="POSITION|INSTANT",
        help="Read only up to this log position, or to this instant or day (UTC) by the ledger's own clock.",
    )
    return option(claimed(run))


def _resolved(as_of: str | None, as_of_claimed: str | None, log: str, name: str) -> str | None:
    """Return the cut as a log position or an instant of the ledger's clock; say what is not plain from the options."""
    from forecast_ledger.replay.reading.log import Log, cut_as_claimed, cut_instant, end_of_date, first_event

    if as_of_claimed is not None:
        instant = end_of_date(as_of_claimed)
        cut = cut_as_claimed(Log(log, name), instant)
        left_out = f"; later events left out that claim an earlier instant: {cut.earlier:,}" * bool(cut.earlier)
        say(f"cut by the claimed clock at {instant}{left_out}")
        nothing, instants = cut.position == 0, str(cut.position)
    elif as_of is not None and isinstance(parse_cut(as_of), str):
        micros, instants = cut_instant(as_of), end_of_date(as_of)
        if instants != as_of:
            say(f"cut by the ledger's clock at {instants}")
        first = first_event(Log(log, name))
        nothing = first is not None and first.recorded_at > micros
    else:
        return as_of
    if nothing and (first := first_event(Log(log, name))):
        recorded, claimed = format_instant(first.recorded_at), format_instant(first.event.at)
        other = "; --as-of-claimed cuts by the claimed instants" * (as_of_claimed is None)
        say(f"nothing is left: the log begins with an event recorded at {recorded}, claimed for {claimed}{other}")
    return instants


def require_projection(projection: str) -> str:
    """Return the name if a projection has it; any other name is wrong usage."""
    from forecast_ledger.projections.tables.catalogue import CATALOGUE

    return require_name("projection", projection, list(CATALOGUE))


_segments_option = click.option(
    "--segments", metavar="FOLDER", help="Read the beginning of LOG from this folder, which `seal` made of it."
)


def segments_options(*, use_beside: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options for segments; the command's argument `log` then has them.

    use_beside: use a folder beside the log, unless the options say otherwise, and say so. Only for commands whose
    answer is read together with what they say: those that prove something, or write what others will read, do so only
    if an option says it.
    """
    default = "files with --segments or for a folder beside LOG" if use_beside else "files with --segments"
    trust_option = click.option(
        "--trust",
        type=click.Choice(["files", "rows"]),
        help=f"Check the SHA-256 of the files of segments, or every row. Default: {default}, otherwise rows.",
    )

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        """Return the command with the options, which name its log together."""

        @wraps(command)
        def run(*args: Any, log: str, segments: str | None, trust: "Trust | None", **kwargs: Any) -> None:
            located: list[Location] = []

            def locate(**_: Any) -> None:
                located.append(_located(log, segments, trust, use_beside=use_beside))

            report_errors(locate)(errors=kwargs.get("errors"))
            command(*args, log=located[0], **kwargs)

        return _segments_option(trust_option(run))

    return decorate


def _located(log: str, segments: str | None, trust: "Trust | None", *, use_beside: bool) -> Location:
    """Return the location of a log, with its segments if they are to be read."""
    from forecast_ledger.ledger.storing.stored_log import has_segments_beside, is_folder
    from forecast_ledger.replay.reading.log import WithSegments

    if segments is None and (trust == "rows" or (trust is None and (not use_beside or is_folder(log)))):
        return log

    if segments is not None:
        return WithSegments(log, segments, trust or "files")
    beside = has_segments_beside(log)
    if trust is None:
        return WithSegments(log, on_message=say) if beside else log
    if not beside and not is_folder(log):
        fail("--trust files is for segments: give their folder as LOG, or with --segments", USAGE)
    return WithSegments(log)


class _Bytes(click.ParamType):  # type: ignore[type-arg] # generic from click 8.4.0 on
    """A number of bytes with a unit."""

    name = "size"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of bytes. Fails: it has another form."""
        match = re.fullmatch(r"([0-9]{1,6})(MiB|GiB|MB|GB)", str(value).strip(), re.IGNORECASE | re.ASCII)
        if match is None:
            self.fail(f"{value!r} is not a size: write it like 2GiB or 500MB", param, ctx)
        return int(match[1]) * _UNITS[match[2].lower()]


_UNITS = {"mib": 1 << 20, "gib": 1 << 30, "mb": 10**6, "gb": 10**9}
memory_option = click.option(
    "--memory",
    type=_Bytes(),
    metavar="SIZE",
    help="Compute large tables in parts, in about so much memory, such as 2GiB; they are the same. Forecasts in "
    "segments are read in parts.",
)


def replay_log(
    log: Location,
    name: str,
    as_of: str | None,
    engine: "Choice | None" = None,
    tables: Collection[str] = (),
    memory: int | None = None,
) -> "Replay":
    """Replay a log as of a cut, showing progress. engine, tables, memory: see `reading.replay.replay`."""
    from forecast_ledger.replay.reading.replay import replay

    with progress("read") as on_progress:
        return replay(log, name, parse_cut(as_of), on_progress, engine=engine, tables=tables, memory=memory)


def say_season(season: "Replay", contests: Collection[str] | None = None) -> None:
    """Say on stderr which answers changed after a board was sealed, and up to which row of the log the season goes.

    contests: those that were printed; by default all.
    """
    from forecast_ledger.replay.reading.board_notes import every_seal_note

    for note in every_seal_note(season.projections, contests):
        say(note)
    say_as_of(season.checkpoint)


def emit_table(table: "Table", view: View, look: Look = Look()) -> None:  # noqa: B008
    """Print a table."""
    names = [column.name for column in table.columns]
    require_columns(view, names)
    look = look._replace(kinds={column.name: column.kind for column in table.columns})
    if view.limit is None or view.where or len(table) <= view.limit:
        emit(names, table.rows(), view, look)
        return
    import numpy as np

    emit(names, table.rows_at(np.arange(view.limit)).rows(), view._replace(limit=None), look)
    say(f"{view.limit:,} of {len(table):,} rows are shown")


def require_contest(contest: str, season: "Replay") -> "Replay":
    """Return the replay. Raises Refused if it has no such contest; the message names the contests that it has."""
    from forecast_ledger.replay.reading.log import find_contest

    find_contest(season.projections.facts, contest)
    return season


def read_checkpoint_file(file: IO[bytes]) -> "SavedCheckpoint":
    """Read a checkpoint; any other file is wrong usage."""
    from forecast_ledger.replay.audit.verify import LARGEST_CHECKPOINT, read_checkpoint

    try:
        return read_checkpoint(file.read(LARGEST_CHECKPOINT + 1))
    except ValueError as error:
        fail(f"{file.name}: not a checkpoint: {error}", USAGE)
