"""Where in the log each command is: the newest ones by id, the older ones by a hash of the id, confirmed in the log."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded

if TYPE_CHECKING:
    import numpy as np

RECENT = 2**12  # commands that are held by id
PAGE = 500  # rows that are read at once
# Returns up to so many rows after a log position, as `Store.read` does.
ReadRows = Callable[[int, int], Sequence[bytes]]


class RecordedCommand(Struct, frozen=True, gc=False):
    """The fingerprint of a command's content, and the first and last log position of its events."""

    fingerprint: str
    first: int
    last: int


class CommandIndex:
    """Finds recorded commands by id. An older command takes 12 bytes: a 64-bit hash, and its first log position.

    recent: the newest commands, which a batch may add to and take from. Two ids may have the same hash; the rows of the
    log decide which of them a command has.
    """

    def __init__(self) -> None:
        self.recent: dict[str, RecordedCommand] = {}
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []  # sorted hashes, and positions; each run is the shorter

    def settle(self) -> None:
        """Make older commands of the recent ones if they are many; call it only between two batches.

        The newest one stays recent: the next page of the log may go on with it.
        """
        if len(self.recent) <= RECENT:
            return
        import numpy as np  # noqa: PLC0415 - short logs do without

        newest = self.recent.popitem()
        firsts = np.fromiter((command.first for command in self.recent.values()), np.uint64, len(self.recent))
        self.add(self.recent, firsts)
        self.recent.clear()
        self.recent.update([newest])

    def add(self, ids: Collection[str], firsts: "np.ndarray") -> None:
        """Add older commands, with the log positions of their first events."""
        import numpy as np  # noqa: PLC0415 - short logs do without

        if not len(ids):
            return
        hashes, positions = np.fromiter(map(hash, ids), np.int64, len(ids)), firsts
        while self._runs and len(self._runs[-1][0]) <= 2 * len(hashes):
            longer, places = self._runs.pop()
            hashes, positions = np.concatenate([longer, hashes]), np.concatenate([places, positions])
        order = np.argsort(hashes, kind="stable")
        small = np.uint32 if int(positions.max()) < 2**32 else np.uint64
        self._runs.append((hashes[order], positions[order].astype(small)))

    def older(self, ids: Iterable[str], read: ReadRows) -> dict[str, RecordedCommand]:
        """Return those of these commands that are recorded, and are not recent. Raises Corrupt, Unavailable."""
        if not self._runs:
            return {}
        import numpy as np  # noqa: PLC0415 - short logs do without

        wanted = [command_id for command_id in ids if command_id not in self.recent]
        hashes = np.fromiter(map(hash, wanted), np.int64, len(wanted))
        order = np.argsort(hashes)  # sorted hashes are found much faster
        hashes = hashes[order]
        places: list[tuple[int, str]] = []
        for run, positions in self._runs:
            begins = np.searchsorted(run, hashes)
            for index in np.flatnonzero(run[np.minimum(begins, len(run) - 1)] == hashes).tolist():
                command_id, end = wanted[order[index]], np.searchsorted(run, hashes[index], "right")
                places += [(position, command_id) for position in positions[begins[index] : end].tolist()]
        return dict(_read_commands(sorted(places), read))


def _read_commands(places: list[tuple[int, str]], read: ReadRows) -> Iterator[tuple[str, RecordedCommand]]:
    """Yield those of the commands whose events begin at these log positions, in increasing order."""
    rows: list[Recorded] = []
    for number, (first, command_id) in enumerate(places):
        at = first - rows[0].position if rows else 0
        if at + 1 >= len(rows):  # the row after a command tells where it ends
            rows, at = _rows_from(first, read, min(PAGE, 2 * (len(places) - number))), 0
        if rows[at].command_id != command_id:
            continue  # another id with this hash
        while rows[-1].command_id == command_id and (more := _rows_from(rows[-1].position, read, PAGE)[1:]):
            rows += more
        end = next((n for n in range(at, len(rows)) if rows[n].command_id != command_id), len(rows))
        yield command_id, RecordedCommand(rows[at].command, first, rows[end - 1].position)


def _rows_from(first: int, read: ReadRows, limit: int) -> list[Recorded]:
    """Return rows from a log position on. Raises Corrupt, Unavailable."""
    rows = read(first - 1, limit)
    if not rows:
        raise Corrupt(first, "the row is missing", "positions")
    return log.unseal(rows, Checkpoint(first - 1, log.decode_row(rows[0], first).previous))
