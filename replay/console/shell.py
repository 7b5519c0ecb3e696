"""The parts that all commands of the command line share: options, exit codes, printing, errors on one line."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

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
from forecast_ledger.ledger.core.hints import nearest
from forecast_ledger.ledger.core.redaction import redacted_text
from forecast_ledger.projections.core.text_table import as_table, escape
from forecast_ledger.replay.console import terminal
from forecast_ledger.replay.console.signals import (
    DAMAGED,
    FINE,
    SIGNALLED,
    UNCERTAIN,
    UNREADABLE,
    USAGE,
    reported,
    signal_of,
    terminable,
    write_last,
)
from forecast_ledger.replay.console.terminal import RED, Look, Selected, View, colour_text, has_colour
from forecast_ledger.replay.reading.blocks import TEXT_FORMATS

if TYPE_CHECKING:
    from forecast_ledger.ledger.model.log import Checkpoint
    from forecast_ledger.replay.writing.command_lines import InputPlace

_DIGITS = 1_000  # digits of a log position that are read
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
    """Turn errors of the project and of the system, and signals, into one line on stderr and an exit code."""

    @wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        """Run the command, and end the process with the code of its error."""

        def report(error: LedgerError, text: str, code: int) -> NoReturn:
            if kwargs.get("errors") != "json":
                fail(text, code)
            say(error.as_json())
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
        fail(f"no {kind} named {name!r}{f'; the nearest is {near}' * bool(near)}; there are: {', '.join(names)}", USAGE)
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


def refusal_printer(errors: str) -> "Callable[[InputPlace, Refused], None]":
    """Return a function that prints a refusal with its place to stderr, in words or as one JSON object."""
    if errors != "json":
        return lambda place, refused: say(place.describe(refused))
    return lambda place, refused: say(json.dumps(place.to_dict(refused)))


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
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total, count=0)
        yield lambda count: progress.update(task, completed=reached() if reached else count, count=count)
