"""What every command of the command line has in common: options, exit codes, printing, errors as one line."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from threading import current_thread, main_thread
from typing import IO, TYPE_CHECKING, Any, NoReturn, ParamSpec

import click

from forecast_ledger.replay.console import completion
from forecast_ledger.replay.console.colour import RED, coloured, has_colour
from forecast_ledger.replay.console.view import Look, Selected, View

if TYPE_CHECKING:
    from forecast_ledger.ledger.core.errors import Refused
    from forecast_ledger.ledger.model.log import Checkpoint
    from forecast_ledger.projections.core.table import Table
    from forecast_ledger.replay.reading.replay import Replay
    from forecast_ledger.replay.writing.append import InputPlace

FINE, FINDINGS, USAGE, UNREADABLE, DAMAGED, UNCERTAIN = range(6)
EXITS = {
    FINE: "fine",
    FINDINGS: "findings: a command was refused, a figure or a read model differs",
    USAGE: "wrong usage, or a request that was refused",
    UNREADABLE: "the store cannot be opened, read, locked or written; or the output cannot",
    DAMAGED: "the log is damaged, or a newer version wrote it; the message names the log position",
    UNCERTAIN: "the store failed while it was recording: it is not known what is recorded; to send it again is safe",
}
SIGNALLED = 128  # and the signal's number, as shells have it
REMEDY = "; --wide shows everything, --columns A,B,C the columns you name"
_DIGITS = 1_000  # of a log position that are read

_P = ParamSpec("_P")


def kept(_: click.Context, __: click.Parameter, where: str | None) -> str | None:
    """Where a log or read model is; what nobody would find again, in memory or without a path, is wrong usage."""
    if where is not None and where.removeprefix("sqlite:///") in {"", ":memory:", "sqlite://"}:
        raise click.BadParameter(f"{where!r} keeps nothing; give the path of a file")
    return where


log_argument = click.argument("log", metavar="LOG", callback=kept, shell_complete=completion.logs)
name_option = click.option(
    "--name", default="main", show_default=True, metavar="NAME", help="Use this ledger of the store."
)
as_of_option = click.option(
    "--as-of",
    metavar="POSITION|INSTANT",
    help="Read only up to this log position, or to this instant by the ledger's own clock.",
)
errors_option = click.option(
    "--errors",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Write errors to stderr in words, or as one JSON object per line.",
)


def reported(command: Callable[_P, None]) -> Callable[_P, None]:
    """Turn what the project raises, what the system refuses, and signals into one line on stderr and an exit code."""

    @wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        from forecast_ledger.ledger.core.errors import Conflict, Corrupt, LedgerError, Refused, Unavailable, Uncertain

        def told(error: LedgerError, text: str, code: int) -> NoReturn:
            if kwargs.get("errors") != "json":
                fail(text, code)
            say(error.as_json())
            sys.exit(code)

        try:
            with _terminable():
                command(*args, **kwargs)
                sys.stdout.flush()
        except Refused as error:
            told(error, str(error), USAGE)
        except (Unavailable, Conflict) as error:
            told(error, str(error), UNREADABLE)
        except Corrupt as error:
            told(error, f"the log is damaged: {error}", DAMAGED)
        except Uncertain as error:
            told(error, str(error), UNCERTAIN)
        except BrokenPipeError:  # whoever reads the output has seen enough
            sys.exit(FINE)
        except OSError as error:
            what = error.filename or "reading the input or writing the output failed"
            failed = Unavailable(f"{what}: {error.strerror or error}")
            told(failed, str(failed), UNREADABLE)
        except KeyboardInterrupt as stopped:
            sys.unraisablehook = lambda _: None  # what a library had half made has nothing more to say
            number = signal.Signals(*stopped.args or [signal.SIGINT])
            fail(f"stopped by {number.name}", SIGNALLED + number)
        finally:
            _last_written(sys.stdout)

    return run


def streams() -> None:
    """Have each of the standard streams that is closed read nothing and write nowhere, and stdout take every character,
    in UTF-8 where no terminal has an encoding of its own.
    """
    sys.stdin = sys.stdin or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - open to the end
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends what is going on as SIGINT does, so that nothing half done is left; unless it is told otherwise."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number: int, _: object) -> None:
        raise KeyboardInterrupt(number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _last_written(stream: IO[str]) -> None:
    """Write what a stream still holds; where that fails, nothing more, for Python would try again as it ends."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def replayed(log: str, name: str, as_of: str | None) -> "Replay":
    """The projections over a log as of a cut, its reading shown."""
    from forecast_ledger.replay.reading.replay import replay

    with progress("read") as watch:
        return replay(log, name, cut(as_of), watch)


def known(projection: str) -> str:
    """The name of a projection; another is wrong usage."""
    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE

    return named("projection", projection, list(CATALOGUE))


def named(what: str, name: str, there: Sequence[str]) -> str:
    """A name that is there; another is wrong usage, and the nearest and all are named."""
    from forecast_ledger.ledger.core.hints import nearest

    if name not in there:
        near = nearest(name, there)
        fail(f"no {what} named {name!r}{f'; the nearest is {near}' * bool(near)}; there are: {', '.join(there)}", USAGE)
    return name


def checked(view: View, names: Sequence[str]) -> View:
    """A view of these columns; one that asks for another is wrong usage. Ask before anything is recorded."""
    for name in view.asked():
        named("column", name, names)
    return view


def cut(as_of: str | None) -> int | str | None:
    """A log position if it is written in digits, else an instant."""
    digits = "" if as_of is None else as_of.removeprefix("-")
    if not (digits.isdecimal() and digits.isascii()):
        return as_of
    position = int(digits.lstrip("0")[:_DIGITS] or 0)  # a longer one is beyond every log all the same
    return -position if as_of != digits else position


def emit_table(table: "Table", view: View, look: Look = Look()) -> None:  # noqa: B008
    """Print a table."""
    import numpy as np

    names = [column.name for column in table.columns]
    checked(view, names)
    look = look._replace(kinds={column.name: column.kind for column in table.columns})
    if view.limit is None or view.where or len(table) <= view.limit:
        emit(names, table.rows(), view, look)
        return
    emit(names, table.rows_at(np.arange(view.limit)).rows(), view._replace(limit=None), look)
    say(f"{view.limit:,} of {len(table):,} rows are shown")


def emit(names: Sequence[str], rows: Iterable[dict[str, Any]], view: View, look: Look = Look()) -> None:  # noqa: B008
    """Print rows of these columns to stdout, and what is to be said of those that are not printed to stderr."""
    selected, note = Selected(checked(view, names), rows), ""
    if view.form == "table":
        note = print_table(view.columns or names, selected, view, look)
    else:
        from forecast_ledger.replay.reading.text_tables import TEXT_FORMATS

        for line in TEXT_FORMATS[view.form](view.columns or names, selected):
            print(line)
    sys.stdout.flush()
    _say_all(selected.note(), note + REMEDY * bool(note))


def emit_list(
    names: list[str], rows: Iterator[dict[str, Any]], view: View, plain: Callable[..., Iterator[str]]
) -> None:
    """Print rows, each as soon as it is there. plain: the lines of all columns where no terminal needs them shorter."""
    from forecast_ledger.replay.console import terminal

    fits = view.form == "table" and sys.stdout.isatty() and not view.wide
    if not fits and (view.form != "table" or view.columns):
        emit(names, rows, view)
        return
    selected = Selected(checked(view, names), rows)
    lines, note = plain(iter(selected)), ""
    if fits:
        look = Look(keep=("says",), spare=("recorded_at", "at"), chosen=bool(view.columns))
        screen = terminal.screen(sys.stdout, wide=False)
        lines, note = terminal.listed(view.columns or names, iter(selected), look, screen)
    for line in lines:
        print(line)
    sys.stdout.flush()
    _say_all(selected.note() if selected.read else "", note + REMEDY * bool(note))


def print_table(names: Sequence[str], rows: Iterable[dict[str, Any]], view: View, look: Look) -> str:
    """Print a table: on a terminal as wide as it is, else whole. Returns what is not shown, in words."""
    from forecast_ledger.replay.console import terminal
    from forecast_ledger.replay.reading.text_tables import as_table

    lines, note = as_table(names, rows), ""
    if sys.stdout.isatty() and not view.wide:
        screen = terminal.screen(sys.stdout, wide=False)
        lines, note = terminal.fitted(names, list(rows), look._replace(chosen=bool(view.columns)), screen)
    elif has_colour(sys.stdout):
        lines = terminal.whole(names, list(rows))
    for line in lines:
        print(line)
    return note


def print_pairs(pairs: Mapping[str, Any], view: View) -> None:
    """Print a line for each name and value; a terminal breaks long values between words."""
    from forecast_ledger.replay.console import terminal

    for line in terminal.record(pairs, terminal.screen(sys.stdout, wide=view.wide)):
        print(line)


def _say_all(*notes: str | None) -> None:
    for note in notes:
        if note:
            say(note)


def say_as_of(checkpoint: "Checkpoint") -> None:
    """Say on stderr what an answer speaks about."""
    say(f"as of log position {checkpoint.position}, digest {checkpoint.digest}")


def refusals(errors: str) -> "Callable[[InputPlace, Refused], None]":
    """What tells each refusal on stderr, with its place: in words, or as a JSON object a line."""
    if errors != "json":
        return lambda place, refused: say(place.said(refused))
    import json

    return lambda place, refused: say(json.dumps(place.to_dict(refused)))


def say(text: str, start: str = "", colour: str = "") -> None:
    """Say something on stderr, so that nothing in it moves the cursor; if nobody listens, the work goes on.

    start: what comes before it, in this colour where stderr has colour.
    """
    from forecast_ledger.replay.reading.text_tables import escape

    try:
        shown = start and coloured(start, colour) if has_colour(sys.stderr) else start
        print(shown + escape(text), file=sys.stderr)
    except OSError:
        _last_written(sys.stderr)


def fail(text: str, code: int) -> NoReturn:
    """Say what went wrong and exit."""
    complain(text)
    sys.exit(code)


def complain(text: str) -> None:
    """Say what is wrong."""
    say(f" {text}", "forecast-ledger:", RED)


@contextmanager
def progress(done: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar with a running count on stderr, if that is a terminal; the bar only pulses where no total is known."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.completed:,} " + done), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.update(task, completed=count)
