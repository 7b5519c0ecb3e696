"""Out and in again: a log and its tables as files, and an exported log back into a ledger."""

from pathlib import Path

import click

from forecast_ledger.replay.console.shell import (
    UNREADABLE,
    USAGE,
    as_of_option,
    checked,
    cut,
    emit,
    fail,
    known,
    log_argument,
    name_option,
    progress,
    reported,
    say_as_of,
)
from forecast_ledger.replay.console.view import View, table_options

_ANYWAY = ("events", "contests", "questions", "participants", "data_dictionary")
IMPORTED = ["appended", "log_position", "digest"]
_FORMS = ["sqlite", "csv", "jsonl", "parquet", "arrow"]


@click.command(epilog="Example: forecast-ledger export season.db season-csv --format csv")
@log_argument
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(_FORMS), required=True, help="Write files of this kind.")
@click.option(
    "--tables",
    metavar="A,B",
    help="Write only these projections; `all` stands for those that are written by default. Events, contests, "
    "questions and participants are always written.",
)
@click.option("--force", is_flag=True, help="Replace the export that is at OUT.")
@click.option("--wide", is_flag=True, help="On a terminal, print every digest in full.")
@as_of_option
@name_option
@reported
def export(
    log: str, out: Path, form: str, tables: str | None, force: bool, wide: bool, as_of: str | None, name: str
) -> None:
    """Write the events and all tables to OUT.

    OUT is a new folder with one file per table, or an SQLite file with metadata for datasette beside it. Prints the
    number of rows and the digest of each table. score_parts and portfolio_snapshots can be far larger than the log;
    they are written only if --tables names them.
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
    emit(["table", "rows", "digest"], rows, View(wide=wide))
    say_as_of(Checkpoint(manifest.log_position, manifest.log_digest))


@click.command(name="import", epilog="Example: forecast-ledger import season-csv copy.db")
@click.argument("exported", metavar="EXPORT", type=click.Path(path_type=Path))
@log_argument
@name_option
@table_options
@reported
def restore(exported: Path, log: str, name: str, view: View) -> None:
    """Copy the log in EXPORT into a new ledger.

    Rows, instants, ids and digests stay as they are. If the ledger is not empty, its log must be the beginning of the
    exported one; the rest is appended. All of EXPORT is checked first.
    """
    from forecast_ledger.ledger.model.log import Checkpoint
    from forecast_ledger.replay.files.manifest import read_manifest
    from forecast_ledger.replay.files.restore import restore as restored

    checked(view, IMPORTED)
    try:
        with progress("imported") as watch:
            appended = restored(exported, log, name, watch)
    except FileExistsError as error:
        fail(f"{log}: {error}", USAGE)
    manifest = read_manifest(exported)
    row = dict(zip(IMPORTED, (appended, manifest.log_position, manifest.log_digest), strict=True))
    emit(IMPORTED, [row], view)
    say_as_of(Checkpoint(manifest.log_position, manifest.log_digest))


def _named(tables: str) -> list[str]:
    """The projections in a list with commas; what is there anyway may be named; another is wrong usage."""
    from forecast_ledger.replay.files.export import default_tables

    stands: dict[str, list[str]] = {"all": default_tables(), **{name: [] for name in _ANYWAY}}
    names = [name.strip() for name in tables.split(",")]
    return [each for name in names for each in (stands[name] if name in stands else [known(name)])]


COMMANDS = (export, restore)
