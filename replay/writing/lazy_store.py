"""A ledger that is not there until it accepts a command: what is refused leaves no file behind."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.storing.store import PAGE, Store, Turn, is_there
from forecast_ledger.ledger.storing.writer import Ledger, Prizes, system_clock


class Unstarted(Store):
    """No rows, until some are appended, which starts the store, or somebody else has started it."""

    def __init__(self, location: str, name: str) -> None:
        super().__init__(":memory:", name)
        self._location = location

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """As of a store; where there is none, nobody else writes."""
        if self._is_started():
            with super().turn() as turn:
                yield turn
        else:
            yield self

    def append(self, rows: Sequence[tuple[int, str, bytes]]) -> None:
        """As of a store; nothing is deleted if it fails, for others may have the file open by then."""
        self._start()
        super().append(rows)

    def read(self, after: int, limit: int = PAGE) -> list[bytes]:
        """As of a store."""
        self._is_started()
        return super().read(after, limit)

    def _is_started(self) -> bool:
        if self._location and is_there(self._location):
            self._start()
        return not self._location

    def _start(self) -> None:
        if self._location:
            in_memory, location = self._database, self._location
            super().__init__(location, self.name)
            in_memory.close()
            self._location = ""


def opened(location: str, name: str, prizes: Prizes) -> Ledger:
    """A ledger to append to, started by the first command that it accepts. Raises what `Ledger.open` raises."""
    values.identifier(name, "name")
    if is_there(location):
        return Ledger.open(location, name, prizes=prizes)
    return Ledger(Unstarted(location, name), system_clock, prizes)
