"""Looking at the rows of a log one by one, whoever wrote them: five checks, each of which can fail by itself."""

from collections.abc import Iterator, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import TAGS
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.replay.reading.replay import Cut

ROWS = ("positions", "digests", "schemas", "clock", "store")  # the checks
ASIDE = {"clock", "store"}  # those whose damage keeps no other check from being made
_TAIL = b',"digest":"'
_SEAL = len(_TAIL) + 64 + len(b'"}')
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_SHOWN = 100  # characters of a digest that may be anything
_TOPICS = {kind: tag.encode() for kind, tag in TAGS.items()}
Labelled = tuple[Sequence[bytes], Sequence[object]]  # rows, and the type of event that is written beside each


class Envelope(Struct, frozen=True, gc=False):
    """What can be read of a row around an event that cannot."""

    position: int
    recorded_at: int
    previous: str


_recorded = msgspec.json.Decoder(Recorded)
_envelope = msgspec.json.Decoder(Envelope)


class Rows:
    """Every row up to a cut, and what each check found first.

    last: the log position and digest of the last row looked at. stopped: whether the store could not be read to the
    end or the cut.
    """

    def __init__(self, cut: Cut) -> None:
        self.found: dict[str, Corrupt] = {}
        self.last = log.START
        self.stopped = False
        self._cut = cut
        self._recorded_at = -(2**63)

    def pages(self, pages: Iterator[Labelled]) -> Iterator[list[Recorded]]:
        """Look at page after page, and pass on the events while every row is what it must be."""
        try:
            for rows, topics in pages:
                after = self.last.position
                page = self._as_it_must_be(rows)
                whole = bool(page) or all(self._looked(row, page) for row in rows)
                self._compare(after, page, topics)
                if page and not self.found.keys() & {"positions", "digests", "schemas"}:
                    yield page
                if not whole:
                    return
        except Corrupt as damage:
            self.note(damage)
            self.stopped = True

    def _as_it_must_be(self, rows: Sequence[bytes]) -> list[Recorded]:
        """The events of a page before the cut with nothing wrong; none where it has to be looked at row by row."""
        try:
            page = [*map(_recorded.decode, rows)]
        except _UNREADABLE:
            return []
        digests = [sha256(row[:-_SEAL]).hexdigest() for row in rows]
        clock = [self._recorded_at, *(said.recorded_at for said in page)]
        first = self.last.position + 1
        if (
            [log.encoded(said) for said in page] != [*rows]
            or [said.digest for said in page] != digests
            or [said.previous for said in page] != [self.last.digest, *digests[:-1]]
            or [said.position for said in page] != [*range(first, first + len(rows))]
            or clock != sorted(clock)
            or not self._cut.includes(page[-1].position, clock[-1])
        ):
            return []
        self.last, self._recorded_at = Checkpoint(page[-1].position, digests[-1]), clock[-1]
        return page

    def _looked(self, row: bytes, page: list[Recorded]) -> bool:
        """Look at the next row, and add its event to a page if it can be read; False if it lies beyond the cut."""
        position, wrong = self.last.position + 1, ""
        said: Recorded | Envelope | None
        try:
            said = _recorded.decode(row)
        except _UNREADABLE as error:
            said, wrong = _around(row), f"not a record that this version can read: {error}"
        if not self._cut.includes(position, self._recorded_at if said is None else said.recorded_at):
            return False
        canonical, digest = log.seal(said) if isinstance(said, Recorded) else (None, "")
        if canonical != row:
            digest = self._digest(position, row)
            if canonical is not None and canonical[:-_SEAL] != row[:-_SEAL]:
                wrong = "the row is not in canonical bytes"
        if wrong:
            self.note(Corrupt(position, wrong, "schemas"))
        if said is not None:
            self._place(position, said)
        if isinstance(said, Recorded):
            page.append(said)
        self.last = Checkpoint(position, digest)
        return True

    def _compare(self, after: int, page: Sequence[Recorded], topics: Sequence[object]) -> None:
        """Note the first event whose type is not what the store has beside its row."""
        if [_TOPICS[type(said.event)] for said in page] == topics:
            return
        for said in page:
            tag, place = TAGS[type(said.event)], said.position - after - 1
            if 0 <= place < len(topics) and topics[place] != tag.encode():
                topic = topics[place]
                shown = topic.decode(errors="replace") if isinstance(topic, bytes) else str(topic)
                wrong = f"the event is of type {tag}, the store's column beside it says {shown[:_SHOWN]}"
                self.note(Corrupt(said.position, wrong, "store"))

    def _digest(self, position: int, row: bytes) -> str:
        """What the digest of a row should be, whatever it says; what it says is compared with that."""
        digest = sha256(row[:-_SEAL]).hexdigest()
        if row[-_SEAL:] != _TAIL + digest.encode() + b'"}':
            self.note(
                Corrupt(position, f"the row's bytes have digest {digest}, the row says {_stated(row)}", "digests")
            )
        return digest

    def _place(self, position: int, said: Recorded | Envelope) -> None:
        """Note what is wrong between a row and the row before."""
        if said.position != position:
            self.note(Corrupt(position, f"the row here says it is log position {said.position}", "positions"))
        if said.previous != self.last.digest:
            before, follows = self.last.digest, said.previous[:_SHOWN]
            self.note(
                Corrupt(position, f"expected previous digest {before}, of the row before; found {follows}", "digests")
            )
        if said.recorded_at < self._recorded_at:
            expected = f"expected recorded_at {self._recorded_at}, of the row before, or later"
            self.note(Corrupt(position, f"{expected}; found {said.recorded_at}", "clock"))
        self._recorded_at = said.recorded_at

    def note(self, damage: Corrupt) -> None:
        """Keep what a check has found first."""
        self.found.setdefault(damage.check, damage)


def _around(row: bytes) -> Envelope | None:
    try:
        return _envelope.decode(row)
    except _UNREADABLE:
        return None


def _stated(row: bytes) -> str:
    """The digest that a row says it has."""
    tail = row[-_SEAL:]
    return tail[len(_TAIL) : -2].decode("ascii", "replace") if tail.startswith(_TAIL) else "none"
