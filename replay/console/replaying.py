"""Replaying a log for a command, up to a cut, with or without the segments of its beginning."""

import re
from collections.abc import Callable, Collection
from functools import wraps
from os import PathLike
from typing import IO, TYPE_CHECKING, Any

import click

from forecast_ledger.ledger.core.values import format_instant, read_instant
from forecast_ledger.replay.console.shell import (
    emit,
    fail,
    parse_cut,
    progress,
    report_errors,
    require_columns,
    require_name,
    say,
    say_as_of,
)
from forecast_ledger.replay.console.signals import USAGE
from forecast_ledger.replay.console.terminal import Look, View

if TYPE_CHECKING:
    from forecast_ledger.projections.core.table import Table
    from forecast_ledger.replay.audit.verify import SavedCheckpoint
    from forecast_ledger.replay.engines.engines import Choice
    from forecast_ledger.replay.reading.log import Trust
    from forecast_ledger.replay.reading.replay import Replay

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
    own = click.option(
        "--as-of",
        metavar="POSITION|INSTANT",
        help="Read only up to this log position, or to this instant or day (UTC) by the ledger's own clock.",
    )
    return own(claimed(run))


def _resolved(as_of: str | None, as_of_claimed: str | None, log: str, name: str) -> str | None:
    """Return the cut as a log position or an instant of the ledger's clock; say what is not plain from the options."""
    from forecast_ledger.replay.reading.log import Log, cut_as_claimed, end_of_date, first_event

    if as_of_claimed is not None:
        instant = end_of_date(as_of_claimed)
        cut = cut_as_claimed(Log(log, name), instant)
        left_out = f"; later events left out that claim an earlier instant: {cut.earlier:,}" * bool(cut.earlier)
        say(f"cut by the claimed clock at {instant}{left_out}")
        nothing, instants = cut.position == 0, str(cut.position)
    elif as_of is not None and isinstance(parse_cut(as_of), str):
        instants = end_of_date(as_of)
        if instants != as_of:
            say(f"cut by the ledger's clock at {instants}")
        first, micros = first_event(Log(log, name)), read_instant(instants, "as_of")
        nothing = first is not None and first.recorded_at > micros
    else:
        return as_of
    if nothing and (first := first_event(Log(log, name))):
        recorded, claimed = format_instant(first.recorded_at), format_instant(first.event.at)
        say(f"nothing is left: the log begins with an event recorded at {recorded}, claimed for {claimed}")
    return instants


def require_projection(projection: str) -> str:
    """Return the name if a projection has it; any other name is wrong usage."""
    from forecast_ledger.projections.tables.catalogue import CATALOGUE

    return require_name("projection", projection, list(CATALOGUE))


_segments_option = click.option(
    "--segments", metavar="FOLDER", help="Read the beginning of LOG from this folder, which `seal` made of it."
)


def segments_options(*, found: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options for segments; the command's argument `log` then has them.

    found: use a folder beside the log, unless the options say otherwise, and say so. Only for commands whose answer is
    read together with what they say: those that prove something, or write what others will read, are asked to.
    """
    default = "files with --segments or for a folder beside LOG" if found else "files with --segments"
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
                located.append(_located(log, segments, trust, found=found))

            report_errors(locate)(errors=kwargs.get("errors"))
            command(*args, log=located[0], **kwargs)

        return _segments_option(trust_option(run))

    return decorate


def _located(log: str, segments: str | None, trust: "Trust | None", *, found: bool) -> Location:
    """Return the location of a log, with its segments if they are to be read."""
    from forecast_ledger.ledger.storing.stored_log import has_segments_beside, is_folder
    from forecast_ledger.replay.reading.log import WithSegments

    if segments is None and (trust == "rows" or (trust is None and (not found or is_folder(log)))):
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
        found = re.fullmatch(r"([0-9]{1,6})(MiB|GiB|MB|GB)", str(value).strip(), re.IGNORECASE | re.ASCII)
        if found is None:
            self.fail(f"{value!r} is not a size: write it like 2GiB or 500MB", param, ctx)
        return int(found[1]) * _UNITS[found[2].lower()]


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
