"""Checks of rows by themselves: each is whole, follows the one before, and is an event in canonical bytes."""

from collections.abc import Iterator, Sequence

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.events import TAGS
from forecast_ledger.ledger.model.log import UNREADABLE, Checkpoint, Envelope, Recorded
from forecast_ledger.ledger.storing.database import UNTYPED
from forecast_ledger.replay.reading.log import Cut

ROW_CHECKS = ("positions", "digests", "schemas", "clock", "store")
INDEPENDENT_CHECKS = {"clock", "store"}  # a failure of these does not stop other checks
_LONGEST = 100  # characters of a value that may be long
_TAG_BYTES = {kind: tag.encode() for kind, tag in TAGS.items()}
LabelledRows = tuple[Sequence[bytes], Sequence[object]]  # rows, and the type of event that the store has for each


class RowChecker:
    """Checks every row up to a cut, and keeps the first damage that each check finds.

    damage: that damage, by check. imported: how many rows have imported times. last: the log position
    and digest of the last row checked. recorded_at: of that row, µs. stopped: the damage at which the store could not
    be read further; None if it was read up to the cut.
    """

    def __init__(self, cut: Cut) -> None:
        self.damage: dict[str, Corrupt] = {}
        self.last, self.recorded_at, self.imported = log.START, -(2**63), 0
        self.stopped: Corrupt | None = None
        self._cut = cut

    def pages(self, pages: Iterator[LabelledRows]) -> Iterator[list[Recorded]]:
        """Check page after page; pass the events on for as long as every row is correct."""
        try:
            for rows, topics in pages:
                after = self.last.position
                page = self._correct_page(rows)
                whole = bool(page) or all(self._check_row(row, page) for row in rows)
                self._compare_types(after, page, topics)
                if page and not self.damage.keys() & {"positions", "digests", "schemas"}:
                    yield page
                if not whole:
                    return
        except Corrupt as damage:
            self.note(damage)
            self.stopped = damage

    def _correct_page(self, rows: Sequence[bytes]) -> list[Recorded]:
        """Return the events of a page that is correct and before the cut; else none: it is then checked row by row."""
        try:
            page = log.decode_rows(rows)
        except UNREADABLE:
            return []
        digests = log.compute_digests(rows)
        clock = [self.recorded_at, *(decoded.recorded_at for decoded in page)]
        first = self.last.position + 1
        if (
            [log.encode_row(decoded) for decoded in page] != [*rows]
            or [decoded.digest for decoded in page] != digests
            or [decoded.previous for decoded in page] != [self.last.digest, *digests[:-1]]
            or [decoded.position for decoded in page] != [*range(first, first + len(rows))]
            or clock != sorted(clock)
            or (imported := [decoded.imported is True for decoded in page]) != sorted(imported, reverse=True)
            or (imported[0] and self.imported < self.last.position)
            or not self._cut.includes(page[-1].position, clock[-1])
        ):
            return []
        self.last, self.recorded_at = Checkpoint(page[-1].position, digests[-1]), clock[-1]
        self.imported += sum(imported)
        return page

    def _check_row(self, row: bytes, page: list[Recorded]) -> bool:
        """Check the next row, and add its event to a page if it can be read; return False if it is beyond the cut."""
        position = self.last.position + 1
        wrong: Corrupt | None = None
        decoded: Recorded | Envelope | None
        try:
            decoded = log.decode_row(row, position)
        except Corrupt as unreadable:
            decoded, wrong = log.decode_envelope(row), unreadable
        if not self._cut.includes(position, self.recorded_at if decoded is None else decoded.recorded_at):
            return False
        canonical, digest = log.seal(decoded) if isinstance(decoded, Recorded) else (None, "")
        if canonical != row:
            digest = self._digest(position, row)
            if canonical is not None and log.digested_bytes(canonical) != log.digested_bytes(row):
                wrong = Corrupt(position, "the row is not in canonical bytes", "schemas")
        if wrong is not None:
            self.note(wrong)
        if decoded is not None:
            self._check_order(position, decoded)
        if isinstance(decoded, Recorded):
            page.append(decoded)
        self.last = Checkpoint(position, digest)
        return True

    def _compare_types(self, after: int, page: Sequence[Recorded], topics: Sequence[object]) -> None:
        """Note the first event whose type differs from the store's column, if it has one."""
        if topics and topics[0] is UNTYPED:
            return
        if [_TAG_BYTES[type(decoded.event)] for decoded in page] == topics:
            return
        for decoded in page:
            tag, index = TAGS[type(decoded.event)], decoded.position - after - 1
            if 0 <= index < len(topics) and topics[index] != tag.encode():
                topic = topics[index]
                shown = topic.decode(errors="replace") if isinstance(topic, bytes) else str(topic)
                wrong = f"the event has type {tag}, but the store's column has {shown[:_LONGEST]}"
                self.note(Corrupt(decoded.position, wrong, "store"))

    def _digest(self, position: int, row: bytes) -> str:
        """Return the digest of a row's bytes; note a damage if the row states another one."""
        digest, stated = log.compute_digest(row), log.stated_digest(row)
        if digest != stated:
            self.note(Corrupt(position, f"the row's bytes have digest {digest}, the row states {stated}", "digests"))
        return digest

    def _check_order(self, position: int, decoded: Recorded | Envelope) -> None:
        """Check a row against the row before it, and note each damage."""
        if decoded.position != position:
            self.note(Corrupt(position, f"the row states the log position {decoded.position}", "positions"))
        if decoded.previous != self.last.digest:
            before, follows = self.last.digest, decoded.previous[:_LONGEST]
            self.note(
                Corrupt(position, f"expected previous digest {before}, of the row before; found {follows}", "digests")
            )
        if decoded.recorded_at < self.recorded_at:
            expected = f"expected recorded_at {self.recorded_at}, of the row before, or later"
            self.note(Corrupt(position, f"{expected}; found {decoded.recorded_at}", "clock"))
        if decoded.imported is True and self.imported < self.last.position:
            detail = "the row says that it was imported, and follows a row that the ledger's clock has stamped"
            self.note(Corrupt(position, detail, "clock"))
        self.imported += decoded.imported is True
        self.recorded_at = decoded.recorded_at

    def note(self, damage: Corrupt) -> None:
        """Keep the first damage that a check finds."""
        self.damage.setdefault(damage.check, damage)
