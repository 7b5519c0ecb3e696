"""The command line: the only place that reads arguments, prints, and configures logging.

Exit codes: 0 fine, 1 findings, 2 wrong usage, 3 store unreadable or locked, 4 log damaged, 5 not known whether it was
recorded; stopped by a signal, 128 and its number.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

import click

from forecast_ledger.replay.cli import audit, explain, export, follow, reference, what_if
from forecast_ledger.replay.console import completion
from forecast_ledger.replay.console.menu import WIDTH, Menu
from forecast_ledger.replay.console.shell import (
    DAMAGED,
    FINDINGS,
    FINE,
    UNCERTAIN,
    UNREADABLE,
    USAGE,
    as_of_option,
    checked,
    emit,
    emit_table,
    errors_option,
    fail,
    known,
    log_argument,
    name_option,
    progress,
    refusals,
    replayed,
    reported,
    say,
    say_as_of,
    streams,
)
from forecast_ledger.replay.console.view import Look, View, table_options

if TYPE_CHECKING:
    from forecast_ledger.ledger.model.log import Recorded
    from forecast_ledger.ledger.storing.writer import Ledger
    from forecast_ledger.replay.reading.replay import Replay
    from forecast_ledger.replay.writing.append import ReadCommand

__all__ = ["DAMAGED", "FINDINGS", "FINE", "UNCERTAIN", "UNREADABLE", "USAGE", "main"]


COUNTED = ["accepted", "duplicate", "refused", "log_position", "digest"]
TRIED = ["line", "id", "type", "outcome", "code", "field"]
_SHELLS = ["bash", "zsh", "fish"]


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from forecast_ledger.replay.reading.version import DISTRIBUTION, code_version

        click.echo(f"{DISTRIBUTION} {code_version()}")
        ctx.exit()


@click.group(
    cls=Menu,
    context_settings={"help_option_names": ["-h", "--help"], "terminal_width": WIDTH},
    epilog="`forecast-ledger COMMAND --help` explains a command and shows an example. To let the shell complete "
    "commands, options, tables and the ids in a log, see `forecast-ledger completion --help`.",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
def main() -> None:
    """Keep forecasts in an event-sourced ledger; score, rank and pay from its log, exactly.

    LOG is an SQLite file or a postgresql:// URL. Data goes to stdout, everything else to stderr.

    \b
    forecast-ledger demo
    forecast-ledger append season.db commands.jsonl
    forecast-ledger leaderboard season.db spring-cup
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    streams()


@main.command(epilog="Example: forecast-ledger append season.db commands.jsonl --dry-run")
@log_argument
@click.argument("file", type=click.File("rb"))
@click.option("--map", "map_", type=click.Path(dir_okay=False), help="Read FILE as a CSV, by this map (TOML).")
@click.option("--dry-run", is_flag=True, help="Print what each command would lead to, and record nothing.")
@click.option("--atomic", is_flag=True, help="Record all commands of FILE, or none.")
@click.option("--verbose", "-v", is_flag=True, help="Log what the ledger does to stderr.")
@name_option
@table_options
@errors_option
@reported
def append(
    log: str,
    file: IO[bytes],
    map_: str | None,
    dry_run: bool,
    atomic: bool,
    verbose: bool,
    name: str,
    view: View,
    errors: str,
) -> None:
    """Append the commands in FILE to a log, new or old.

    FILE has one JSON object per line, or is a CSV if --map is given; - is stdin. Commands that are recorded already
    count as duplicates and change nothing. Each refusal is written to stderr with its line, code, field and remedy;
    then the exit code is 1.
    """
    from forecast_ledger.replay.writing.append import append_batches, count_outcomes, read_lines

    checked(view, TRIED if dry_run else COUNTED)
    _configure_logging(verbose=verbose)
    total = _lines_in(file)
    source = read_lines(file) if map_ is None else _mapped(map_, file)
    if dry_run:
        from forecast_ledger.replay.writing.overlay_store import open_overlay

        with open_overlay(log, name, _prizes) as (branch, head):
            refused = _tried(branch, source, atomic, view, errors)
        say("nothing was written")
        say_as_of(head)
    else:
        from forecast_ledger.replay.writing.lazy_store import open_lazily

        with open_lazily(log, name, _prizes) as ledger, progress("lines", total) as watch:
            counts = count_outcomes(append_batches(ledger, source, watch, atomic=atomic), refusals(errors))
            head = ledger.head()
        row = {**counts, "log_position": head.position, "digest": head.digest}
        emit(COUNTED, [row], view)
        refused = counts["refused"]
    if refused:
        sys.exit(FINDINGS)


@main.command(epilog="Example: forecast-ledger leaderboard season.db spring-cup --as-of 2026-03-01T00:00:00Z")
@log_argument
@click.argument("contest", shell_complete=completion.ids("contest"))
@as_of_option
@name_option
@table_options
@reported
def leaderboard(log: str, contest: str, as_of: str | None, name: str, view: View) -> None:
    """Print the leaderboard of a CONTEST, best first.

    If participants of the contest trade, this is the trading board; the table `leaderboard` then has the scores of
    forecasts on the same questions.
    """
    found = _holding(contest, replayed(log, name, as_of))
    trading = contest in found.projections.traded
    board = found.projections.table("arena_leaderboard" if trading else "leaderboard").only("contest", contest)
    emit_table(board, view, Look(keep=("rank", "participant"), spare=("family", "release", "attainable")))
    if trading:
        say("this is the trading board; the scores of forecasts are in the table leaderboard")
    say_as_of(found.checkpoint)


@main.command(epilog="Example: forecast-ledger table season.db scores --format csv")
@log_argument
@click.argument("projection", shell_complete=completion.tables)
@as_of_option
@name_option
@table_options
@reported
def table(log: str, projection: str, as_of: str | None, name: str, view: View) -> None:
    """Print the table of a PROJECTION.

    `forecast-ledger columns` lists the projections and explains their columns.
    """
    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE

    checked(view, [column.name for column in CATALOGUE[known(projection)].columns])
    found = replayed(log, name, as_of)
    emit_table(found.projections.table(projection), view)
    say_as_of(found.checkpoint)


@main.command(epilog="Example: forecast-ledger columns leaderboard")
@click.argument("projection", required=False, shell_complete=completion.tables)
@table_options
@reported
def columns(projection: str | None, view: View) -> None:
    """Explain the columns of every projection, or of one PROJECTION."""
    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE

    names = CATALOGUE if projection is None else [known(projection)]
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
    help="Find where the log differs from another LOG, which may be LOG@POSITION, an export, or rows as JSON lines.",
)
@as_of_option
@name_option
@table_options
@reported
def replay(log: str, compare: str | None, as_of: str | None, name: str, view: View) -> None:
    """Rebuild every projection; print its number of rows and digest.

    The same log gives the same digests on every machine. Two projections are left out, score_parts and
    portfolio_snapshots, because they can have far more rows than the log; `table` prints them. --compare prints the log
    position from which another log differs, what each log has there, and which projections differ; if the logs differ,
    the exit code is 1.
    """
    if compare is not None:
        audit.compare(log, compare, as_of, name, view)
        return
    from forecast_ledger.replay.reading.replay import summarize_tables

    found = replayed(log, name, as_of)
    tables = summarize_tables(found.projections.facts).items()
    rows = ({"projection": table, "rows": each.rows, "digest": each.digest} for table, each in tables)
    emit(["projection", "rows", "digest"], rows, view)
    say_as_of(found.checkpoint)


@main.command(epilog="Example: forecast-ledger pay season.db spring-cup")
@log_argument
@click.argument("contest", shell_complete=completion.ids("contest"))
@name_option
@table_options
@reported
def pay(log: str, contest: str, name: str, view: View) -> None:
    """Pay the winners of a finalized CONTEST.

    Records each prize of the sealed board once; running it again changes nothing. If only some prizes are recorded, as
    in a log that was cut short, it records the others.
    """
    from datetime import UTC, datetime

    from forecast_ledger.ledger.storing.writer import Ledger
    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
    from forecast_ledger.replay.writing.pay import pay as paid

    checked(view, [column.name for column in CATALOGUE["prizes"].columns])
    _holding(contest, replayed(log, name, None))  # a log that is not there is not started
    with Ledger.open(log, name, prizes=_prizes) as ledger:
        receipt = paid(ledger, contest, datetime.now(UTC))
    found = replayed(log, name, None)
    table = found.projections.table("prizes").only("contest", contest)
    emit_table(table, view, Look(keep=("participant", "prize", "paid")))
    say("paid before; nothing was recorded" if receipt is None else f"paid from log position {receipt.first} on")
    say_as_of(found.checkpoint)
    apart = [row["participant"] for row in table.rows() if row["prize"] != row["paid"]]
    if apart:
        say(f"what was paid is not what the sealed board says: {', '.join(apart)}; `verify` says where")
        sys.exit(FINDINGS)


@main.command(epilog="Example: forecast-ledger demo")
@reported
def demo() -> None:
    """Rebuild a published tournament and check every figure.

    The commands of the tournament are appended to a temporary log, which is replayed; each figure that follows is
    compared with the published one.
    """
    from tempfile import TemporaryDirectory

    from forecast_ledger.replay.cli import demo as story

    with TemporaryDirectory() as folder:
        shown = story.told(folder)
        for line in shown.lines:
            print(line)
    if not shown.agrees:
        sys.exit(FINDINGS)


@main.command("completion", epilog="Example: forecast-ledger completion bash")
@click.argument("shell", type=click.Choice(_SHELLS))
@reported
def completion_(shell: str) -> None:
    """Print a script that lets a SHELL complete commands and ids.

    \b
    bash: put eval "$(forecast-ledger completion bash)" in ~/.bashrc
    zsh:  put eval "$(forecast-ledger completion zsh)" in ~/.zshrc, after compinit
    fish: forecast-ledger completion fish > ~/.config/fish/completions/forecast-ledger.fish

    The shell then completes the names of tables, and the contests, questions and participants in the log that is named
    before them on the line. The log is read for half a second at most, and never changed. Logs on a database server
    are not read.
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    if script is not None:
        print(script(main, {}, "forecast-ledger", "_FORECAST_LEDGER_COMPLETE").source())


def _holding(contest: str, found: "Replay") -> "Replay":
    """The same replay. Raises Refused: it has no such contest; the message names those that it has."""
    from forecast_ledger.replay.reading import lookup

    lookup.find_contest(found.projections.facts, contest)
    return found


def _prizes(pages: "Iterable[Sequence[Recorded]]", contest: str) -> dict[str, int]:
    """What a sealed board is worth; what works it out is imported only where prizes are paid."""
    from forecast_ledger.replay.writing.pay import prizes_from_log

    return prizes_from_log(pages, contest)


def _mapped(path: str, file: IO[bytes]) -> "Iterable[ReadCommand]":
    """The commands in a CSV, by a map."""
    from pathlib import Path

    from forecast_ledger.replay.reading.input_files import MAP_BYTES
    from forecast_ledger.replay.writing.csv_mapping import parse_map, read_rows

    try:
        with Path(path).open("rb") as opened:
            said = opened.read(MAP_BYTES + 1)
    except OSError as error:
        fail(f"{path}: {error.strerror}", USAGE)
    if len(said) > MAP_BYTES:
        fail(f"{path}: more than {MAP_BYTES} bytes, which no map has", USAGE)
    return read_rows(parse_map(said), file)


def _tried(ledger: "Ledger", source: "Iterable[ReadCommand]", atomic: bool, view: View, errors: str) -> int:
    """Print what becomes of each command; returns how many are refused."""
    from forecast_ledger.replay.writing.append import append_batches, outcome_row, tally

    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    tried = tally(append_batches(ledger, source, lambda _: None, atomic=atomic), refusals(errors), counts)
    emit(TRIED, map(outcome_row, tried), view, Look(keep=("line", "outcome")))
    say(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return counts["refused"]


def _lines_in(file: IO[bytes]) -> int | None:
    """How many lines a file has, if somebody watches and it can be read twice."""
    if not sys.stderr.isatty() or not file.seekable():
        return None
    lines = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(2**20), b""))
    file.seek(0)
    return lines


def _configure_logging(*, verbose: bool) -> None:
    """Lines on stderr: warnings; if verbose all, each with its fields."""
    import logging

    if not verbose:
        logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
        return
    from structlog import processors, stdlib

    before: list[Any] = [stdlib.add_log_level, stdlib.ExtraAdder(), processors.TimeStamper("iso")]
    shown = processors.KeyValueRenderer(key_order=["timestamp", "event"])
    last: list[Any] = [stdlib.ProcessorFormatter.remove_processors_meta, shown]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(stdlib.ProcessorFormatter(foreign_pre_chain=before, processors=last))
    logging.basicConfig(handlers=[handler], level=logging.DEBUG)


for _command in (
    *audit.COMMANDS,
    *explain.COMMANDS,
    *export.COMMANDS,
    *follow.COMMANDS,
    *reference.COMMANDS,
    *what_if.COMMANDS,
):
    main.add_command(_command)
main.groups = {
    "Record": ("append", "pay", "import"),
    "Read": ("leaderboard", "table", "columns", "log", "show"),
    "Audit": ("verify", "checkpoint", "replay"),
    "Research": ("explain", "diff", "blame", "what-if", "export"),
    "Operate": ("follow", "schema", "help", "completion", "demo"),
}
