"""Replaying a log for a command, with or without the segments of its beginning."""

import re
from collections.abc import Callable, Collection
from functools import wraps
from os import PathLike
from typing import TYPE_CHECKING, Any

import click

from forecast_ledger.replay.console.shell import USAGE, fail, parse_cut, progress, report_errors, say, say_as_of

if TYPE_CHECKING:
    from forecast_ledger.replay.engines.engines import Choice
    from forecast_ledger.replay.reading.log import Trust
    from forecast_ledger.replay.reading.replay import Replay

Location = str | PathLike[str]  # of a log; a `WithSegments` if its beginning is read from segments
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
    from forecast_ledger.ledger.storing.store import has_segments_beside, is_folder

    if segments is None and (trust == "rows" or (trust is None and (not found or is_folder(log)))):
        return log
    from forecast_ledger.replay.reading.log import WithSegments

    if segments is not None:
        return WithSegments(log, segments, trust or "files")
    beside = has_segments_beside(log)
    if trust is None:
        return WithSegments(log, tell=say) if beside else log
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
    "segments are read in parts with --trust files.",
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

    with progress("read") as watch:
        return replay(log, name, parse_cut(as_of), watch, engine=engine, tables=tables, memory=memory)


def say_season(season: "Replay", contests: Collection[str] | None = None) -> None:
    """Say on stderr which answers changed after a board was sealed, and up to which row of the log the season goes.

    contests: those that were printed; by default all.
    """
    from forecast_ledger.replay.reading.board_notes import every_seal_note

    for note in every_seal_note(season.projections, contests):
        say(note)
    say_as_of(season.checkpoint)
