"""What every command of the command line has in common: options, exit codes, printing, errors as one line."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from threading import current_thread, main_thread
from typing import IO, TYPE_CHECKING, Any, NoReturn, ParamSpec

import click

if TYPE_CHECKING:
    from forecast_ledger.ledger.core.errors import Refused
    from forecast_ledger.ledger.model.log import Checkpoint
    from forecast_ledger.projections.core.table import Table
    from forecast_ledger.replay.reading.replay import Replay
    from forecast_ledger.replay.writing.append import Place

FINE, FINDINGS, USAGE, UNREADABLE, DAMAGED, UNCERTAIN = range(6)
SIGNALLED = 128  # and the signal's number, as shells have it
_DIGITS = 1_000  # of a log position that are read

_P = ParamSpec("_P")


def kept(_: click.Context, __: click.Parameter, where: str | None) -> str | None:
    """Where a log or read model is; what nobody would find again, in memory or without a path, is wrong usage."""
    if where is not None and where.removeprefix("sqlite:///") in {"", ":memory:", "sqlite://"}:
        raise click.BadParameter(f"{where!r} keeps nothing; give the path of a file")
    return where


log_argument = click.argument("log", metavar="LOG", callback=kept)
name_option = click.option(
    "--name", default="main", show_default=True, metavar="NAME", help="Which ledger of the store."
)
as_of_option = click.option(
    "--as-of", metavar="POSITION|INSTANT", help="Read up to this log position, or to this instant of the log's clock."
)
format_option = click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)
errors_option = click.option(
    "--errors",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How refusals are told on stderr: in words, or as a JSON object a line.",
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

    if projection not in CATALOGUE:
        fail(f"no projection named {projection!r}; there are: {', '.join(CATALOGUE)}", USAGE)
    return projection


def cut(as_of: str | None) -> int | str | None:
    """A log position if it is written in digits, else an instant."""
    digits = "" if as_of is None else as_of.removeprefix("-")
    if not (digits.isdecimal() and digits.isascii()):
        return as_of
    position = int(digits.lstrip("0")[:_DIGITS] or 0)  # a longer one is beyond every log all the same
    return -position if as_of != digits else position


def emit_table(table: "Table", form: str) -> None:
    """Print a table."""
    emit([column.name for column in table.columns], table.rows(), form)


def emit(names: list[str], rows: Iterable[dict[str, Any]], form: str) -> None:
    """Print rows of these columns, in a format, to stdout."""
    from forecast_ledger.replay.reading.text_tables import FORMATS

    for line in FORMATS[form](names, rows):
        print(line)
    sys.stdout.flush()


def say_as_of(checkpoint: "Checkpoint") -> None:
    """Say on stderr what an answer speaks about."""
    say(f"as of log position {checkpoint.position}, digest {checkpoint.digest}")


def refusals(errors: str) -> "Callable[[Place, Refused], None]":
    """What tells each refusal on stderr, with its place: in words, or as a JSON object a line."""
    if errors != "json":
        return lambda place, refused: say(place.said(refused))
    import json

    return lambda place, refused: say(json.dumps(place.to_dict(refused)))


def say(text: str) -> None:
    """Say something on stderr, so that nothing in it moves the cursor; if nobody listens, the work goes on."""
    from forecast_ledger.replay.reading.text_tables import visible

    try:
        print(visible(text), file=sys.stderr)
    except OSError:
        _last_written(sys.stderr)


def fail(text: str, code: int) -> NoReturn:
    """Say what went wrong and exit."""
    say(f"forecast-ledger: {text}")
    sys.exit(code)


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
