"""Check the rows of a log one by one: five checks, each of which can fail independently."""

from collections.abc import Iterator, Sequence

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import TAGS
from forecast_ledger.ledger.model.log import UNREADABLE, Checkpoint, Envelope, Recorded
from forecast_ledger.replay.reading.replay import Cut

ROW_CHECKS = ("positions", "digests", "schemas", "clock", "store")  # the checks
INDEPENDENT_CHECKS = {"clock", "store"}  # the checks whose failure does not stop other checks
_SHOWN = 100  # characters of a value that may be long
_TAG_BYTES = {kind: tag.encode() for kind, tag in TAGS.items()}
LabelledRows = tuple[Sequence[bytes], Sequence[object]]  # rows, and the type of event that the store has for each


class RowChecker:
    """Checks every row up to a cut, and keeps the first damage that each check finds.

    last: the log position and digest of the last row checked. stopped: whether the store could not be read up to the
    cut.
    """

    def __init__(self, cut: Cut) -> None:
        self.found: dict[str, Corrupt] = {}
        self.last = log.START
        self.stopped = False
        self._cut = cut
        self._recorded_at = -(2**63)

    def pages(self, pages: Iterator[LabelledRows]) -> Iterator[list[Recorded]]:
        """Check page after page; pass the events on for as long as every row is correct."""
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
        """Return the events of a page that is correct and before the cut; else none: it is then checked row by row."""
        try:
            page = log.decode_rows(rows)
        except UNREADABLE:
            return []
        digests = [*map(log.compute_digest, rows)]
        clock = [self._recorded_at, *(said.recorded_at for said in page)]
        first = self.last.position + 1
        if (
            [log.encode_row(said) for said in page] != [*rows]
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
        """Check the next row, and add its event to a page if it can be read; return False if it is beyond the cut."""
        position = self.last.position + 1
        wrong: Corrupt | None = None
        said: Recorded | Envelope | None
        try:
            said = log.decode_row(row, position)
        except Corrupt as unreadable:
            said, wrong = log.decode_envelope(row), unreadable
        if not self._cut.includes(position, self._recorded_at if said is None else said.recorded_at):
            return False
        canonical, digest = log.seal(said) if isinstance(said, Recorded) else (None, "")
        if canonical != row:
            digest = self._digest(position, row)
            if canonical is not None and log.digested_bytes(canonical) != log.digested_bytes(row):
                wrong = Corrupt(position, "the row is not in canonical bytes", "schemas")
        if wrong is not None:
            self.note(wrong)
        if said is not None:
            self._place(position, said)
        if isinstance(said, Recorded):
            page.append(said)
        self.last = Checkpoint(position, digest)
        return True

    def _compare(self, after: int, page: Sequence[Recorded], topics: Sequence[object]) -> None:
        """Note the first event whose type differs from the store's column."""
        if [_TAG_BYTES[type(said.event)] for said in page] == topics:
            return
        for said in page:
            tag, place = TAGS[type(said.event)], said.position - after - 1
            if 0 <= place < len(topics) and topics[place] != tag.encode():
                topic = topics[place]
                shown = topic.decode(errors="replace") if isinstance(topic, bytes) else str(topic)
                wrong = f"the event has type {tag}, but the store's column has {shown[:_SHOWN]}"
                self.note(Corrupt(said.position, wrong, "store"))

    def _digest(self, position: int, row: bytes) -> str:
        """Return the digest of a row's bytes; note a damage if the row states another one."""
        digest, stated = log.compute_digest(row), log.stated_digest(row)
        if digest != stated:
            self.note(Corrupt(position, f"the row's bytes have digest {digest}, the row states {stated}", "digests"))
        return digest

    def _place(self, position: int, said: Recorded | Envelope) -> None:
        """Check a row against the row before it, and note each damage."""
        if said.position != position:
            self.note(Corrupt(position, f"the row states the log position {said.position}", "positions"))
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
        """Keep the first damage that a check finds."""
        self.found.setdefault(damage.check, damage)
