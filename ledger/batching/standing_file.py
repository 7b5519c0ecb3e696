"""A temporary file with the forecasts that stand on resolved questions, so that they take no memory."""

from tempfile import SpooledTemporaryFile
from typing import NamedTuple
from weakref import finalize

from msgspec import msgpack

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.deciding.state import StandingOf

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
        data = msgpack.encode(standing)
        try:
            begin = self._file.seek(0, 2)
            self._file.write(data)
        except OSError as error:
            raise _unavailable(error) from None
        return StandingInFile(self, begin, len(data))

    def read(self, begin: int, size: int) -> StandingOf:
        """Return what was written at a place. Raises Unavailable."""
        try:
            self._file.seek(begin)
            return _decoder.decode(self._file.read(size))
        except OSError as error:
            raise _unavailable(error) from None

    def close(self) -> None:
        """Delete the file, which also happens when nothing refers to this object."""
        self._finalizer()


class StandingInFile(NamedTuple):
    """The place in the file of the forecasts that stand on one question."""

    file: StandingFile
    begin: int
    size: int

    def load(self) -> StandingOf:
        """Return it. Raises Unavailable."""
        return self.file.read(self.begin, self.size)


def _unavailable(error: OSError) -> Unavailable:
    return Unavailable(f"the temporary file of the ledger: {error}; set TMPDIR to a folder that has space")
