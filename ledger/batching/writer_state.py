"""What a writer holds of the log up to a position: the state, where each command is, and forecasts moved out of memory.

The newest commands are known by id, the older ones by a hash of the id, confirmed in the log. What stands on resolved
questions is in a temporary file.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import shake_256
from operator import mul
from os import urandom
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded

if TYPE_CHECKING:
    import numpy as np
from tempfile import SpooledTemporaryFile
from weakref import finalize

from msgspec import msgpack

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.deciding.decider import evolve
from forecast_ledger.ledger.deciding.state import StandingOf, State
from forecast_ledger.ledger.model.commands import RecordDecision
from forecast_ledger.ledger.model.events import DecisionMalformed, DecisionRecorded

RECENT = 2**12  # commands that are held by id
PAGE = 500  # rows that are read at once
_HASHED = 200  # characters of an id, which has no more
AT_ONCE = 2**14  # ids that are hashed together
FEW = 16  # commands; fewer are looked up one by one
# Returns up to so many rows after a log position, as `StoredLog.read` does.
ReadRows = Callable[[int, int], Sequence[bytes]]


class RecordedCommand(Struct, frozen=True, gc=False):
    """The fingerprint of a command's content, and the first and last log position of its events."""

    fingerprint: str
    first: int
    last: int


class HashedIds(NamedTuple):
    """Ids of commands. hashes: in increasing order. order: for each hash, the index of its id."""

    ids: Sequence[str]
    hashes: "np.ndarray"
    order: "np.ndarray"

    def are_distinct(self) -> bool:
        """Return whether no two of the ids have the same hash, and so no two are equal."""
        return bool((self.hashes[1:] != self.hashes[:-1]).all())


def codes(ids: Sequence[str]) -> "np.ndarray":
    """Return the code points of ids, shape (ids, characters); zeros follow a shorter id."""
    import numpy as np  # noqa: PLC0415 - short logs do without

    return np.array(ids, np.str_).view(np.uint32).reshape(len(ids), -1)


class CommandIndex:
    """Finds recorded commands by id. An older command takes 12 bytes: a 64-bit hash, and its first log position.

    recent: the newest commands, which a batch may add to and take from. Two ids may have the same hash; the rows of the
    log decide which of them a command has. seed: of the hashes, so that nobody can choose ids that have the same one.
    runs: sorted hashes, and positions.
    """

    def __init__(self, seed: bytes | None = None) -> None:
        self.recent: dict[str, RecordedCommand] = {}
        self.runs: list[tuple[np.ndarray, np.ndarray]] = []
        self.seed = urandom(16) if seed is None else seed

    @cached_property
    def _factors(self) -> "np.ndarray":
        """An odd number below 2^64 for each character of an id."""
        import numpy as np  # noqa: PLC0415 - short logs do without

        return np.frombuffer(shake_256(self.seed).digest(8 * _HASHED), "<u8") | np.uint64(1)

    @cached_property
    def _integer_factors(self) -> list[int]:
        return [*map(int, self._factors)]

    def hashed(self, ids: Sequence[str]) -> HashedIds:
        """Hash ids, and sort their hashes: sorted hashes are found much faster.

        A hash is the sum of an id's characters, each multiplied by its position in the id, modulo 2^64: the same in
        every process, as Python's own is not, and computed for all ids at once.
        """
        return self.hashed_codes(ids, (codes(ids[begin : begin + AT_ONCE]) for begin in range(0, len(ids), AT_ONCE)))

    def hashed_codes(self, ids: Sequence[str], parts: "Iterable[np.ndarray]") -> HashedIds:
        """Hash ids as `hashed` does. parts: what `codes` returns of some ids after others, as integers of any type."""
        import numpy as np  # noqa: PLC0415 - short logs do without

        sums = [part[:, :_HASHED].astype(np.uint64) @ self._factors[: part.shape[1]] for part in parts]
        hashes = np.concatenate(sums) if sums else np.zeros(0, np.uint64)
        order = np.argsort(hashes)
        return HashedIds(ids, hashes[order], order)

    def settle(self) -> None:
        """Make older commands of the recent ones if they are many; call it only between two batches.

        The newest one stays recent: the next page of the log may go on with it.
        """
        if len(self.recent) <= RECENT:
            return
        import numpy as np  # noqa: PLC0415 - short logs do without

        newest = self.recent.popitem()
        firsts = np.fromiter((command.first for command in self.recent.values()), np.uint64, len(self.recent))
        self.add(self.hashed([*self.recent]), firsts)
        self.recent.clear()
        self.recent.update([newest])

    def add(self, commands: HashedIds, firsts: "np.ndarray") -> None:
        """Add older commands, with the log positions of their first events."""
        import numpy as np  # noqa: PLC0415 - short logs do without

        if not len(firsts):
            return
        hashes, positions = commands.hashes, firsts[commands.order]
        size, kept = len(firsts), len(self.runs)
        while kept and len(self.runs[kept - 1][0]) <= 2 * size:  # so that each run left is twice as long
            kept -= 1
            size += len(self.runs[kept][0])
        if joined := self.runs[kept:]:
            hashes, positions = (
                np.concatenate(column) for column in zip(*reversed(joined), (hashes, positions), strict=True)
            )
            order = np.argsort(hashes, kind="stable")  # which merges sorted parts
            hashes, positions = hashes[order], positions[order]
        small = np.uint32 if int(positions.max()) < 2**32 else np.uint64
        self.runs = [*self.runs[:kept], (hashes, positions.astype(small))]

    def older(self, ids: Sequence[str] | HashedIds, read: ReadRows) -> dict[str, RecordedCommand]:
        """Return those of these commands that are recorded, and are not recent. Raises Corrupt, Unavailable."""
        if not self.runs:
            return {}
        import numpy as np  # noqa: PLC0415 - short logs do without

        if not isinstance(ids, HashedIds) and len(ids) < FEW:
            return dict(_read_commands(sorted(self._places(ids)), read))
        wanted, hashes, order = ids if isinstance(ids, HashedIds) else self.hashed(ids)
        candidates: list[tuple[int, str]] = []
        for run, positions in self.runs:
            begins = np.searchsorted(run, hashes)
            for index in np.flatnonzero(run[np.minimum(begins, len(run) - 1)] == hashes).tolist():
                command_id, end = wanted[order[index]], np.searchsorted(run, hashes[index], "right")
                candidates += [(position, command_id) for position in positions[begins[index] : end].tolist()]
        return dict(_read_commands(sorted(candidates), read))

    def may_have(self, hashes: "np.ndarray") -> bool:
        """Return whether one of these hashes, in increasing order, is that of a command which is recorded."""
        import numpy as np  # noqa: PLC0415 - short logs do without

        runs = [run for run, _ in self.runs]
        if self.recent:
            runs.append(self.hashed([*self.recent]).hashes)
        return any((run[np.minimum(np.searchsorted(run, hashes), len(run) - 1)] == hashes).any() for run in runs)

    def _places(self, ids: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yield the log positions at which each of a few ids may be, one by one: NumPy's calls are for many."""
        import numpy as np  # noqa: PLC0415 - short logs do without

        for command_id in ids:
            hashed = np.uint64(sum(map(mul, map(ord, command_id), self._integer_factors)) % 2**64)
            for run, positions in self.runs:
                begin = run.searchsorted(hashed)
                if begin < len(run) and run[begin] == hashed:
                    end = run.searchsorted(hashed, "right")
                    yield from ((position, command_id) for position in positions[begin:end].tolist())

    def are_many(self, count: int) -> bool:
        """Return whether so many new commands are better hashed together than kept as recent ones."""
        return count >= FEW and (bool(self.runs) or count > RECENT)


def _read_commands(candidates: list[tuple[int, str]], read: ReadRows) -> Iterator[tuple[str, RecordedCommand]]:
    """Yield those of the commands whose events begin at these log positions, in increasing order."""
    rows: list[Recorded] = []
    for number, (first, command_id) in enumerate(candidates):
        at = first - rows[0].position if rows else 0
        if at + 1 >= len(rows):  # the row after a command tells where it ends
            rows, at = _rows_from(first, read, min(PAGE, 2 * (len(candidates) - number))), 0
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


IN_MEMORY = 2**20  # bytes that are kept in memory before there is a file
_decoder = msgpack.Decoder(StandingOf)


class StandingFile:
    """A temporary file without a name, which the system deletes with the process.

    >>> standing = StandingFile().unload({"ada": (5, 9)})
    >>> standing.load()
    {'ada': (5, 9)}
    """

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - it lives as long as its ledger
        self._finalizer = finalize(self, self._file.close)

    def unload(self, standing: StandingOf) -> "StandingInFile":
        """Write what stands on a question. Raises Unavailable: the temporary folder is full, or cannot be written."""
        return self.put(msgpack.encode(standing))

    def put(self, data: bytes) -> "StandingInFile":
        """Write what stands on a question, encoded. Raises Unavailable, as `unload` does."""
        try:
            begin = self._file.seek(0, 2)
            self._file.write(data)
        except OSError as error:
            raise _unavailable(error) from None
        return StandingInFile(self, begin, len(data))

    def get(self, begin: int, size: int) -> bytes:
        """Return so many bytes from an offset in the file. Raises Unavailable."""
        try:
            self._file.seek(begin)
            return self._file.read(size)
        except OSError as error:
            raise _unavailable(error) from None

    def close(self) -> None:
        """Delete the file, which also happens when nothing refers to this object."""
        self._finalizer()


class StandingInFile(NamedTuple):
    """The offset in the file of the forecasts that stand on one question."""

    file: StandingFile
    begin: int
    size: int

    def load(self) -> StandingOf:
        """Return it. Raises Unavailable."""
        return _decoder.decode(self.file.get(self.begin, self.size))


def _unavailable(error: OSError) -> Unavailable:
    return Unavailable(f"the temporary file of the ledger: {error}; set TMPDIR to a folder that has space")


_ATTEMPT_EVENTS = (DecisionRecorded, DecisionMalformed)
Attempt = tuple[str, str, int, int]  # contest, participant, period, attempt


class WriterState:
    """The state that commands are decided against, and which commands are recorded.

    attempts: the id of the command that recorded each attempt at a decision. head: the last row. recorded_at: its time,
    µs. is_imported: whether all rows so far were imported with their times, if there are any.
    """

    def __init__(self, seed: bytes | None = None) -> None:
        """seed: of the hashes of command ids; a new one by default."""
        self.state = State()
        self.commands = CommandIndex(seed)
        self.attempts: dict[Attempt, str] = {}
        self.head = log.START
        self.recorded_at = -(2**63)
        self.is_imported = True
        self.standing_file = StandingFile()
        self.state.unload = self.standing_file.unload

    def apply(self, page: Sequence[Recorded]) -> None:
        """Apply the rows after the head. Raises Corrupt; the head is then the row before the one that is at fault."""
        commands = self.commands.recent
        last = None
        try:
            for recorded in page:
                self.evolve(recorded)
                entry = commands.get(recorded.command_id)
                first = entry.first if entry else recorded.position
                commands[recorded.command_id] = RecordedCommand(recorded.command, first, recorded.position)
                last = recorded
        finally:
            if last is not None:
                self.head, self.recorded_at = Checkpoint(last.position, last.digest), last.recorded_at
                self.is_imported = last.imported is True
        self.commands.settle()

    def evolve(self, recorded: Recorded) -> None:
        """Apply an event to the state; its command is not noted. Raises Corrupt."""
        for table, key, value in evolve(recorded.event, self.state, recorded.position):
            table[key] = value
        if isinstance(recorded.event, _ATTEMPT_EVENTS):
            self.attempts[attempt_key(recorded.event)] = recorded.command_id

    def close(self) -> None:
        """Delete the temporary file."""
        self.standing_file.close()


def attempt_key(source: RecordDecision | DecisionRecorded | DecisionMalformed) -> Attempt:
    """Return the key of an attempt, which is recorded once, under one command id."""
    return source.contest, source.participant, source.period, source.attempt
