"""Where in the log each command is: the newest ones by id, the older ones by a hash of the id, confirmed in the log."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

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


class HashedIds(NamedTuple):
    """Ids of commands. hashes: in increasing order. order: for each hash, the place of its id."""

    ids: Sequence[str]
    hashes: "np.ndarray"
    order: "np.ndarray"

    @classmethod
    def of(cls, ids: Sequence[str]) -> Self:
        """Hash ids, and sort their hashes: sorted hashes are found much faster."""
        import numpy as np  # noqa: PLC0415 - short logs do without

        hashes = np.fromiter(map(hash, ids), np.int64, len(ids))
        order = np.argsort(hashes)
        return cls(ids, hashes[order], order)

    def are_distinct(self) -> bool:
        """Return whether no two of the ids have the same hash, and so no two are equal."""
        return bool((self.hashes[1:] != self.hashes[:-1]).all())


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
        self.add(HashedIds.of([*self.recent]), firsts)
        self.recent.clear()
        self.recent.update([newest])

    def add(self, commands: HashedIds, firsts: "np.ndarray") -> None:
        """Add older commands, with the log positions of their first events."""
        import numpy as np  # noqa: PLC0415 - short logs do without

        if not len(firsts):
            return
        hashes, positions = commands.hashes, firsts[commands.order]
        if joined := self._take_shorter(len(firsts)):
            hashes, positions = (np.concatenate(column) for column in zip(*joined, (hashes, positions), strict=True))
            order = np.argsort(hashes, kind="stable")  # which merges sorted parts
            hashes, positions = hashes[order], positions[order]
        small = np.uint32 if int(positions.max()) < 2**32 else np.uint64
        self._runs.append((hashes, positions.astype(small)))

    def _take_shorter(self, count: int) -> "list[tuple[np.ndarray, np.ndarray]]":
        """Take the runs that a run of so many commands is joined with, so that each run left is twice as long."""
        joined: list[tuple[np.ndarray, np.ndarray]] = []
        while self._runs and len(self._runs[-1][0]) <= 2 * count:
            joined.append(self._runs.pop())
            count += len(joined[-1][0])
        return joined

    def older(self, ids: Sequence[str] | HashedIds, read: ReadRows) -> dict[str, RecordedCommand]:
        """Return those of these commands that are recorded, and are not recent. Raises Corrupt, Unavailable."""
        if not self._runs:
            return {}
        import numpy as np  # noqa: PLC0415 - short logs do without

        wanted, hashes, order = ids if isinstance(ids, HashedIds) else HashedIds.of(ids)
        places: list[tuple[int, str]] = []
        for run, positions in self._runs:
            begins = np.searchsorted(run, hashes)
            for index in np.flatnonzero(run[np.minimum(begins, len(run) - 1)] == hashes).tolist():
                command_id, end = wanted[order[index]], np.searchsorted(run, hashes[index], "right")
                places += [(position, command_id) for position in positions[begins[index] : end].tolist()]
        return dict(_read_commands(sorted(places), read))

    def are_many(self, count: int) -> bool:
        """Return whether there are older commands, or would be after so many more."""
        return bool(self._runs) or count > RECENT


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
