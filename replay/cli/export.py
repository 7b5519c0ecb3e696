"""Out and in again: a log and its tables as files, and an exported log back into a ledger."""

from pathlib import Path

import click

from forecast_ledger.replay.cli.shell import (
    UNREADABLE,
    USAGE,
    as_of_option,
    cut,
    emit,
    fail,
    format_option,
    known,
    log_argument,
    name_option,
    progress,
    reported,
    say_as_of,
)

_ANYWAY = ("events", "contests", "questions", "participants", "data_dictionary")
_FORMS = ["sqlite", "csv", "jsonl", "parquet", "arrow"]


@click.command(epilog="Example: forecast-ledger export season.db season-csv --format csv")
@log_argument
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(_FORMS), required=True)
@click.option(
    "--tables",
    metavar="A,B",
    help="Only these projections; `all` stands for those that an export has anyway. The events and what the tables are "
    "about (contests, questions, participants) are always there.",
)
@click.option("--force", is_flag=True, help="Replace the export that is at OUT.")
@as_of_option
@name_option
@reported
def export(log: str, out: Path, form: str, tables: str | None, force: bool, as_of: str | None, name: str) -> None:
    """Write the events and all tables to OUT.

    OUT is a new folder with a file a table, or an SQLite file with its metadata for datasette beside it. Prints how
    many rows each table has and its digest. score_parts and portfolio_snapshots, which can be far larger than the log,
    are exported if --tables names them.
    """
    from forecast_ledger.ledger.model.log import Checkpoint
    from forecast_ledger.replay.files.export import export as exported

    names = None if tables is None else _named(tables)
    try:
        with progress("read") as watch:
            manifest = exported(log, out, form, name, cut(as_of), tables=names, force=force, watch=watch)
    except FileExistsError as error:
        fail(str(error), USAGE)
    except OSError as error:
        fail(f"{out}: {error.strerror or error}", UNREADABLE)
    rows = [{"table": name, "rows": part.rows, "digest": part.digest} for name, part in manifest.tables.items()]
    emit(["table", "rows", "digest"], rows, "table")
    say_as_of(Checkpoint(manifest.log_position, manifest.log_digest))


@click.command(name="import", epilog="Example: forecast-ledger import season-csv copy.db")
@click.argument("exported", metavar="EXPORT", type=click.Path(path_type=Path))
@log_argument
@name_option
@format_option
@reported
def restore(exported: Path, log: str, name: str, form: str) -> None:
    """Copy the log in EXPORT into a new ledger.

    Rows, instants, ids and digests stay as they are. A ledger that is not empty must be the beginning of what was
    exported; then the rest is appended. All of EXPORT is checked first.
    """
    from forecast_ledger.ledger.model.log import Checkpoint
    from forecast_ledger.replay.files.manifest import read_manifest
    from forecast_ledger.replay.files.restore import restore as restored

    try:
        with progress("imported") as watch:
            appended = restored(exported, log, name, watch)
    except FileExistsError as error:
        fail(f"{log}: {error}", USAGE)
    manifest = read_manifest(exported)
    row = {"appended": appended, "log_position": manifest.log_position, "digest": manifest.log_digest}
    emit(list(row), [row], form)
    say_as_of(Checkpoint(manifest.log_position, manifest.log_digest))


def _named(tables: str) -> list[str]:
    """The projections in a list with commas; what is there anyway may be named; another is wrong usage."""
    from forecast_ledger.replay.files.export import default_tables

    stands: dict[str, list[str]] = {"all": default_tables(), **{name: [] for name in _ANYWAY}}
    names = [name.strip() for name in tables.split(",")]
    return [each for name in names for each in (stands[name] if name in stands else [known(name)])]


COMMANDS = (export, restore)
