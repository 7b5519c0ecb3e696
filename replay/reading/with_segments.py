"""A log together with the folder of segments that has its beginning, wherever the location of a log is given."""

from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, get_args

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Absent, Corrupt, Unavailable
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.core.remote_files import folder_at
from forecast_ledger.ledger.segments.segment_columns import pyarrow
from forecast_ledger.ledger.storing.sealed_log import SealedLog
from forecast_ledger.ledger.storing.store import Store, has_segments_beside, is_folder, segments_beside

Trust = Literal["files", "rows"]
TRUSTS: tuple[Trust, ...] = get_args(Trust)
Tell = Callable[[str], None]


class WithSegments(PathLike[str]):
    """A log whose beginning is read from a folder of segments: give it in place of the location of a log.

    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import WithSegments, commands, open, replay, seal
    >>> contest = commands.OpenContest(at="2026-03-01T00:00:00Z", contest="spring", rules="baseline")
    >>> with TemporaryDirectory() as folder, open(f"{folder}/season.db") as ledger:
    ...     receipt = ledger.handle(contest, command_id="open-spring")
    ...     sealed = seal(f"{folder}/season.db")
    ...     replay(WithSegments(f"{folder}/season.db")).checkpoint == sealed.checkpoint
    True
    """

    @checked()
    def __init__(
        self,
        log: str | PathLike[str],
        folder: str | PathLike[str] | None = None,
        trust: Trust = "files",
        *,
        tell: Tell | None = None,
    ) -> None:
        """log: its location, or a folder of segments, which is then the whole log. folder: of the segments; by default
        the one beside the log, with its name and `.segments`. trust: what is checked, as in `replay`. tell: called once
        with a line that says whether the segments are used; segments that do not fit, or are damaged, are then left
        out, and the log is read. Without it they are refused when the log is read.

        Raises ValueError: no such trust, or there is no folder.
        """
        self.log, self.trust, self._tell = fspath(log), trust, tell
        self.is_whole = is_folder(self.log)  # whether there are no other rows than those of the segments
        found = folder_at(folder) if folder is not None else _found(self.log)
        if trust not in TRUSTS or found is None:
            raise ValueError(f"trust {trust!r}: give {' or '.join(TRUSTS)}, and a folder of segments or a log with one")
        self.folder = found
        self._opened: dict[str, SealedLog | None] = {}  # by the name of the ledger

    def segments(self, store: Store) -> SealedLog | None:
        """Return the segments of a ledger; None if they are left out. Raises Absent, Unavailable, Corrupt."""
        if store.name not in self._opened:
            self._opened[store.name] = self._segments(store)
        return self._opened[store.name]

    def _segments(self, store: Store) -> SealedLog | None:
        try:
            sealed = SealedLog(self.folder, store.name)
            if self._tell is not None:
                pyarrow()
                sealed.check_same(store)
                sealed.check_files()
        except (Unavailable, Corrupt) as error:
            if self._tell is None:
                raise
            if not isinstance(error, Absent):  # those of another ledger of the store
                self._tell(f"segments are not used: {error.args[-1] if isinstance(error, Corrupt) else error}")
            return None
        if self._tell is not None:
            checked = "the SHA-256 of its files was checked, not every row; --trust rows reads the log"
            self._tell(
                f"up to log position {sealed.manifest.end.position}, read from {redacted(self.folder)}: {checked}"
            )
        return sealed

    def __fspath__(self) -> str:
        return self.log

    def __str__(self) -> str:
        return self.log


def _found(log: str) -> Path | None:
    """Return the folder of a log: itself, or the one beside it. None if there is none."""
    if is_folder(log):
        return folder_at(log)
    return segments_beside(log) if has_segments_beside(log) else None
