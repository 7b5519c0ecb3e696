"""Replaying a log for a command, with or without the segments of its beginning."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forecast_ledger.replay.console.shell import USAGE, fail, parse_cut, progress

if TYPE_CHECKING:
    from forecast_ledger.replay.reading.replay import Replay, Trust

_segments_option = click.option(
    "--segments", metavar="FOLDER", help="Read the beginning of LOG from this folder, which `seal` made of it."
)
_trust_option = click.option(
    "--trust",
    type=click.Choice(["files", "rows"]),
    help="Check the SHA-256 of the files of segments, or every row. Default: files with --segments, otherwise rows.",
)


def trust_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for segments; the command gets them as its arguments `segments` and `trust`."""
    return _segments_option(_trust_option(command))


def replay_log(
    log: str, name: str, as_of: str | None, segments: str | None = None, trust: "Trust | None" = None
) -> "Replay":
    """Replay a log as of a cut, showing progress; segments, trust: as `trust_options` has them."""
    from forecast_ledger.replay.reading.replay import replay

    trust = trust or ("rows" if segments is None else "files")
    if trust == "files" and segments is None and not Path(log).is_dir():
        fail("--trust files is for segments: give their folder as LOG, or with --segments", USAGE)
    with progress("read") as watch:
        return replay(log, name, parse_cut(as_of), watch, segments=segments, trust=trust)
