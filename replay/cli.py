"""The command line: the only place that reads arguments, prints, and configures logging.

Exit codes: 0 fine, 1 findings, 2 wrong usage, 3 store unreadable or locked, 4 log damaged.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import IO, TYPE_CHECKING, Any, NoReturn, ParamSpec

import click

if TYPE_CHECKING:
    from ledger.log import Checkpoint, Recorded
    from projections.table import Table
    from replay.replay import Replay

FINE, FINDINGS, USAGE, UNREADABLE, DAMAGED = range(5)
_DIGITS = 1_000  # of a log position that are read

_P = ParamSpec("_P")
_log = click.argument("log", metavar="LOG")
_name = click.option("--name", default="main", show_default=True, metavar="NAME", help="Which ledger of the store.")
_as_of = click.option(
    "--as-of", metavar="POSITION|INSTANT", help="Read up to this log position, or to this instant of the log's clock."
)
_format = click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True
)


def _reported(command: Callable[_P, None]) -> Callable[_P, None]:
    """Turn what the project raises into one line on stderr and an exit code."""

    @wraps(command)
    def reported(*args: _P.args, **kwargs: _P.kwargs) -> None:
        from ledger.errors import Conflict, Corrupt, Refused, Unavailable

        try:
            command(*args, **kwargs)
        except Refused as error:
            _fail(str(error), USAGE)
        except (Unavailable, Conflict) as error:
            _fail(str(error), UNREADABLE)
        except Corrupt as error:
            _fail(f"the log is damaged: {error}", DAMAGED)
        except BrokenPipeError:  # whoever reads the output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(FINE)

    return reported


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="forecast-ledger")
def main() -> None:
    """Keep forecasts in an event-sourced ledger; score, rank and pay from its log, exactly.

    LOG is an SQLite file or a postgresql:// URL. Data goes to stdout, everything else to stderr.

    \b
    forecast-ledger demo
    forecast-ledger append season.db commands.jsonl
    forecast-ledger leaderboard season.db spring-cup
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character


@main.command(epilog="Example: forecast-ledger append season.db commands.jsonl")
@_log
@click.argument("file", type=click.File("rb"))
@click.option("--atomic", is_flag=True, help="Record all commands of the file or none.")
@click.option("--verbose", "-v", is_flag=True, help="Tell on stderr what the ledger does.")
@_name
@_format
@_reported
def append(log: str, file: IO[bytes], atomic: bool, verbose: bool, name: str, form: str) -> None:
    """Append the commands in FILE.

    One JSON object a line; - is stdin. Commands recorded before are counted as duplicates and change nothing. Each
    refusal is told on stderr with its line, code, field and remedy; then the exit code is 1.
    """
    from ledger import Ledger
    from replay.append import appended

    _configure_logging(verbose=verbose)
    with Ledger.open(log, name, prizes=_prizes) as ledger, _progress("lines", _lines_in(file)) as watch:
        counts = appended(ledger, file, lambda line, refused: _say(f"line {line}: {refused}"), watch, atomic=atomic)
        head = ledger.head()
    row = {**counts, "log_position": head.position, "digest": head.digest}
    _emit(list(row), [row], form)
    if counts["refused"]:
        sys.exit(FINDINGS)


@main.command(epilog="Example: forecast-ledger leaderboard season.db spring-cup --as-of 2026-03-01T00:00:00Z")
@_log
@click.argument("contest")
@_as_of
@_name
@_format
@_reported
def leaderboard(log: str, contest: str, as_of: str | None, name: str, form: str) -> None:
    """Print the board of a CONTEST, best first."""
    found = _holding(contest, _replayed(log, name, as_of))
    _emit_table(found.projections.table("leaderboard").only("contest", contest), form)
    _say_as_of(found.checkpoint)


@main.command(epilog="Example: forecast-ledger table season.db scores --format csv")
@_log
@click.argument("projection")
@_as_of
@_name
@_format
@_reported
def table(log: str, projection: str, as_of: str | None, name: str, form: str) -> None:
    """Print the table of a PROJECTION.

    One of contests, standing, consensus, score_parts, scores, leaderboard, kind_means, prizes, brier, brier_overall,
    calibration, admissions.
    """
    from projections.projection import CATALOGUE

    if projection not in CATALOGUE:
        _fail(f"no projection named {projection!r}; there are: {', '.join(CATALOGUE)}", USAGE)
    found = _replayed(log, name, as_of)
    _emit_table(found.projections.table(projection), form)
    _say_as_of(found.checkpoint)


@main.command(epilog="Example: forecast-ledger replay season.db --as-of 1200")
@_log
@_as_of
@_name
@_format
@_reported
def replay(log: str, as_of: str | None, name: str, form: str) -> None:
    """Rebuild every projection but score_parts.

    Prints how many rows each has and its digest: the same for the same log, wherever it is read. score_parts can have
    far more rows than the log; `table` prints it.
    """
    from projections.projection import CATALOGUE

    found = _replayed(log, name, as_of)
    names = (name for name, projection in CATALOGUE.items() if not projection.asked_for)
    tables = ((projection, found.projections.table(projection)) for projection in names)
    rows = ({"projection": projection, "rows": len(table), "digest": table.digest()} for projection, table in tables)
    _emit(["projection", "rows", "digest"], rows, form)
    _say_as_of(found.checkpoint)


@main.command(epilog="Example: forecast-ledger verify season.db")
@_log
@_as_of
@_name
@_format
@_reported
def verify(log: str, as_of: str | None, name: str, form: str) -> None:
    """Check a log row by row.

    On damage, says at which log position, and exits with 4.
    """
    from replay.verify import CHECKS
    from replay.verify import verify as verified

    with _progress("verified") as watch:
        head = verified(log, name, _cut(as_of), watch)
    rows = [{"check": check, "found": "ok", "meaning": meaning} for check, meaning in CHECKS.items()]
    _emit(["check", "found", "meaning"], rows, form)
    _say_as_of(head)


@main.command(epilog="Example: forecast-ledger pay season.db spring-cup")
@_log
@click.argument("contest")
@_name
@_format
@_reported
def pay(log: str, contest: str, name: str, form: str) -> None:
    """Pay the winners of a finalized CONTEST.

    Records what its sealed board says, once: sent again, it changes nothing.
    """
    from datetime import UTC, datetime

    from ledger import Ledger
    from replay.pay import pay as paid

    _holding(contest, _replayed(log, name, None))  # a log that is not there is not started
    with Ledger.open(log, name, prizes=_prizes) as ledger:
        receipt = paid(ledger, contest, datetime.now(UTC))
    found = _replayed(log, name, None)
    table = found.projections.table("prizes").only("contest", contest)
    _emit_table(table, form)
    _say("paid before; nothing was recorded" if receipt is None else f"paid from log position {receipt.first} on")
    _say_as_of(found.checkpoint)
    apart = [row["participant"] for row in table.rows() if row["prize"] != row["paid"]]
    if apart:
        _say(f"what was paid is not what the sealed board says: {', '.join(apart)}; `verify` says where")
        sys.exit(FINDINGS)


@main.command(epilog="Example: forecast-ledger demo")
@_reported
def demo() -> None:
    """Rebuild a published tournament.

    Appends its commands to a temporary log, replays it, and compares every figure with the published one.
    """
    from tempfile import TemporaryDirectory

    from replay import demo as story

    with TemporaryDirectory() as folder:
        shown = story.told(folder)
        for line in shown.lines:
            print(line)
    if not shown.agrees:
        sys.exit(FINDINGS)


def _replayed(log: str, name: str, as_of: str | None) -> "Replay":
    from replay.replay import replay as replayed

    with _progress("read") as watch:
        return replayed(log, name, _cut(as_of), watch)


def _holding(contest: str, found: "Replay") -> "Replay":
    """The same replay. Raises Refused: it has no such contest; the message names those that it has."""
    from ledger.errors import Refused

    if contest not in found.projections.facts.contests:
        there = ", ".join(found.projections.contests) or "none"
        raise Refused("unknown_contest", "contest", contest, f"no such contest here; there are: {there}")
    return found


def _prizes(pages: "Iterable[Sequence[Recorded]]", contest: str) -> dict[str, int]:
    """What a sealed board is worth; what works it out is imported only where prizes are paid."""
    from replay.pay import prizes

    return prizes(pages, contest)


def _cut(as_of: str | None) -> int | str | None:
    """A log position if it is written in digits, else an instant."""
    if as_of is None or not (as_of.isdecimal() and as_of.isascii()):
        return as_of
    return int(as_of.lstrip("0")[:_DIGITS] or 0)  # a longer one is beyond every log all the same


def _emit_table(table: "Table", form: str) -> None:
    _emit([column.name for column in table.columns], table.rows(), form)


def _emit(names: list[str], rows: Iterable[dict[str, Any]], form: str) -> None:
    from replay.render import FORMATS

    for line in FORMATS[form](names, rows):
        print(line)
    sys.stdout.flush()


def _say_as_of(checkpoint: "Checkpoint") -> None:
    _say(f"as of log position {checkpoint.position}, digest {checkpoint.digest}")


def _say(text: str) -> None:
    from replay.render import visible

    print(visible(text), file=sys.stderr)


def _fail(text: str, code: int) -> NoReturn:
    _say(f"forecast-ledger: {text}")
    sys.exit(code)


@contextmanager
def _progress(done: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
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


def _lines_in(file: IO[bytes]) -> int | None:
    """How many lines a file has, if somebody watches and it can be read twice."""
    if not sys.stderr.isatty() or not file.seekable():
        return None
    lines = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(2**20), b""))
    file.seek(0)
    return lines


def _configure_logging(*, verbose: bool) -> None:
    import logging

    level = logging.DEBUG if verbose else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
