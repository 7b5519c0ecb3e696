"""Parts of a log in a database, checked by its rows: forecasts of a probability as columns, every other one by itself.

What is read as columns has the bytes that this program writes for such a forecast; see `plain_rows` in `ledger.model`.
"""

from binascii import hexlify
from collections.abc import Iterator, Sequence
from itertools import chain, compress, pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from forecast_ledger.ledger.auditing.quick_check import asks_probability
from forecast_ledger.ledger.auditing.taken_forecasts import bytes_of
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import forecast_contents
from forecast_ledger.ledger.model.events import TAGS, ForecastMade
from forecast_ledger.ledger.model.log import IMPORTED, NORMAL, Checkpoint, Recorded
from forecast_ledger.ledger.model.plain_rows import ForecastRows, ScannedRows, scan_rows, unscanned
from forecast_ledger.ledger.storing.database import UNTYPED
from forecast_ledger.projections.core.arrays import BoolArray, Codes, Int64Array
from forecast_ledger.projections.facts.columns import Facts, ForecastPage
from forecast_ledger.projections.facts.from_log import columns_of_rows, forecast_columns
from forecast_ledger.replay.checking.checked_parts import CheckedPage, CheckedPart, Reader, plain_rows

_TOGETHER = 1 << 12  # rows: more leave the caches of a processor
_BYTES = 8 * 2**20  # of rows that are scanned together; more are no forecasts of a probability
_SHARE = 2  # rows are scanned while one in as many is plain
_FORECAST = TAGS[ForecastMade].encode()
_Typed = tuple[list[bytes], list[object]]  # rows, and the type of event that the store has for each


class _Rows(NamedTuple):
    """Consecutive rows, each right by itself, and their columns. others: the events that are not read as columns."""

    rows: list[bytes]
    scanned: ScannedRows
    others: dict[int, Recorded]
    recorded_at: Int64Array
    imported: BoolArray
    command_ids: Any

    @classmethod
    def of(cls, typed: _Typed, before: Checkpoint, *, scans: bool) -> Self | None:
        """Read rows that follow a checkpoint; None if one is wrong, or the store has another type for it."""
        rows, topics = typed
        scanned = (scan_rows if scans and NORMAL.encode() in rows[0] else unscanned)(rows, before)
        is_plain, digests = scanned.is_plain, scanned.digests
        places = np.flatnonzero(~is_plain).tolist()
        others = log.decode_rows(texts := [rows[place] for place in places])
        types: list[object] = [_FORECAST] * len(rows)
        for place, recorded in zip(places, others, strict=True):
            stated = recorded.position, recorded.previous, recorded.digest
            if stated != (before.position + 1 + place, *digests[place : place + 2]):
                return None
            types[place] = TAGS[type(recorded.event)].encode()
        if [*map(log.encode_row, others)] != texts or (topics[0] is not UNTYPED and topics != types):
            return None
        ids, of_others = scanned.forecasts.command_id, bytes_of([recorded.command_id for recorded in others])
        recorded_at, imported = np.zeros(len(rows), np.int64), np.full(len(rows), IMPORTED.encode() in rows[0])
        command_ids = np.zeros(len(rows), max(ids.dtype, of_others.dtype))
        recorded_at[is_plain], recorded_at[places] = scanned.forecasts.recorded_at, [row.recorded_at for row in others]
        command_ids[is_plain], command_ids[places] = ids, of_others
        imported[places] = [recorded.imported is True for recorded in others]
        return cls(rows, scanned, dict(zip(places, others, strict=True)), recorded_at, imported, command_ids)

    def in_order(self, recorded_at: int, *, all_imported: bool) -> bool:
        """Return whether their clock goes on, and imported ones come first. all_imported: whether all before were."""
        clock, imported = np.append(recorded_at, self.recorded_at), np.append(all_imported, self.imported)
        return bool((clock[1:] >= clock[:-1]).all() and (imported[1:] <= imported[:-1]).all())

    def decoded(self, places: Sequence[int]) -> list[Recorded]:
        """Return the events of some rows."""
        missing = [place for place in places if place not in self.others]
        events = self.others | dict(zip(missing, log.decode_rows([self.rows[at] for at in missing]), strict=True))
        return [events[place] for place in places]


class _Part:
    """A part of a log that is checked. last, recorded_at, imported, command_id: of the rows before the next one."""

    def __init__(self, reader: Reader, before: Recorded | None) -> None:
        self.last, self.recorded_at, self.imported, self.command_id = log.START, -(2**63), 0, ""
        if before is not None:
            self.last, self.recorded_at = Checkpoint(before.position, before.digest), before.recorded_at
            self.imported, self.command_id = before.position if before.imported is True else 0, before.command_id
        self.facts, self._reader, self._scans = Facts(), reader, True
        self.facts.question_codes.codes = reader.codes
        self._names, self._questions, self._participants = Codes(), list[str](), list[str]()  # texts by code

    def together(self, pages: Iterator[_Typed]) -> Iterator[_Typed]:
        """Yield the rows of pages; many at once while they are scanned."""
        rows, topics = list[bytes](), list[object]()
        for page, types in pages:
            rows, topics = rows + page, topics + types
            if len(rows) >= _TOGETHER or not self._scans:
                yield rows, topics
                rows, topics = [], []
        if rows:
            yield rows, topics

    def page(self, typed: _Typed, following: list[bytes]) -> CheckedPage | None:
        """Check the next rows; None if one is wrong. following: rows after them: if none, a command may go on."""
        self._scans = self._scans and sum(map(len, typed[0])) <= _BYTES
        read = _Rows.of(typed, self.last, scans=self._scans)
        if read is None or not read.in_order(self.recorded_at, all_imported=self.imported == self.last.position):
            return None
        ids = read.command_ids
        after = bytes_of([log.command_id_of(following[0])]) if following else ids[-1:]
        page = self._page(read, np.concatenate([bytes_of([self.command_id]), ids, after]))
        self._scans = self._scans and _SHARE * int(np.count_nonzero(read.scanned.is_plain)) >= len(ids)
        self.last = Checkpoint(self.last.position + len(ids), read.scanned.digests[-1])
        self.recorded_at, self.imported = int(read.recorded_at[-1]), self.imported + int(read.imported.sum())
        self.command_id = ids[-1].decode()
        return page

    def _page(self, read: _Rows, ids: Any) -> CheckedPage:
        """Return rows as a page. ids: of their commands, also of the row before them and of the row after them."""
        plain, differ = read.scanned.is_plain.copy(), ids[1:] != ids[:-1]
        made, said = self._said(read.scanned)
        plain[plain] = said = said & (differ[1:] & differ[:-1])[plain]
        places = np.flatnonzero(~plain)
        before, after = ([*map(bytes.decode, ids[beside].tolist())] for beside in (places, places + 2))
        others = read.decoded(places.tolist())
        plain[places] = are_plain = plain_rows(others, before, after, self._reader)
        columns = ForecastPage._make([*(column[said] for column in made[:-1]), made.numbers[np.repeat(said, 2)]])
        if any(are_plain):
            columns = _in_log_order(columns, forecast_columns(self.facts, [*compress(others, are_plain)]))
        left = [*compress(read.rows, (~plain).tolist())]
        return CheckedPage(plain.astype(np.uint8).tobytes(), left, ids[1:-1][plain], columns)

    def _said(self, scanned: ScannedRows) -> tuple[ForecastPage, BoolArray]:
        """Return the scanned forecasts as columns, and which are what their question asks for and their command said.

        A few may be left out, and those of participants with several ids are.
        """
        made, names = scanned.forecasts, self.facts.participant_codes
        question = self._names.of_bytes(made.question, self._names.add)
        participant = names.of_bytes(made.participant, names.add)
        self._questions += map(self._question_text, self._names.labels[len(self._questions) :])
        self._participants += map(self._participant_text, names.labels[len(self._participants) :])
        coded, said = ((question, self._questions), (participant, self._participants)), _are_ids(made.command_id)
        for codes, texts in coded:
            said &= np.array([*map(bool, texts)], bool)[codes]
        questions, participants = ([*map(texts.__getitem__, codes.tolist())] for codes, texts in coded)
        contents = forecast_contents(questions, participants, _instants(made), made.yes.tolist())
        said &= np.frombuffer(hexlify(log.fingerprint_bytes(contents)), "S32") == scanned.commands()
        said &= made.yes + made.no == PROBABILITY
        known = np.array([self._reader.codes.get(label, -1) for label in self._names.labels], np.int64)
        return columns_of_rows(made, known[question], participant), said

    def _question_text(self, name: str) -> str:
        """Return the id of a question that asks for a probability as JSON; else empty."""
        form = self._reader.forms.get(name)
        return form.text if form is not None and asks_probability(form) else ""

    def _participant_text(self, participant: str) -> str:
        """Return a valid id as JSON; empty for one that is not, and if the participant has several."""
        return "" if participant in self._reader.several else self._reader.checks.participant(participant)


def _instants(made: ForecastRows) -> list[object]:
    """Return the instants of commands as texts: null where the ledger has stamped it."""
    stamped, instants = made.at == made.recorded_at, list[object](made.at.tolist())
    if not stamped.any():
        return instants
    return ["null" if is_stamped else at for at, is_stamped in zip(instants, stamped.tolist(), strict=True)]


def _are_ids(texts: Any) -> BoolArray:
    """Return which texts, in printable ASCII, are valid ids."""
    signs = texts.view(np.uint8).reshape(-1, texts.itemsize)
    found: BoolArray = (signs[:, 0] > 0) & ((signs == 0) | ((signs > 0x20) & (signs < 0x7F))).all(axis=1)
    return found


def _in_log_order(some: ForecastPage, more: ForecastPage) -> ForecastPage:
    """Return the forecasts of both pages."""
    both = ForecastPage(*map(np.concatenate, zip(some, more, strict=True)))
    order, begins = np.argsort(both.position), np.cumsum(both.lengths) - both.lengths
    sorted_rows = ForecastPage._make([*(column[order] for column in both[:-1]), both.numbers])
    ends = np.cumsum(sorted_rows.lengths)
    shift = begins[order] - (ends - sorted_rows.lengths)
    return sorted_rows._replace(numbers=both.numbers[np.arange(ends[-1]) + np.repeat(shift, sorted_rows.lengths)])


def checked_rows(reader: Reader, after: int, end: int) -> CheckedPart | None:
    """Return the rows after a log position up to another; None if anything is wrong with them, or in doubt."""
    before = None
    if after:
        [([row], _)] = reader.store.pages_with_types(after=after - 1, end=after)
        before = log.unseal_row(row, after)
    part, pages = _Part(reader, before), list[CheckedPage]()
    started = part.last.digest
    read = part.together(reader.store.pages_with_types(after=after, end=end))
    for typed, (following, _) in pairwise(chain(read, [(list[bytes](), list[object]())])):
        page = part.page(typed, following)
        if page is None:
            return None
        pages.append(page)
    if part.last.position != end:
        return None
    participants = part.facts.participant_codes.labels
    return CheckedPart(started, part.last, part.recorded_at, part.imported, participants, [CheckedPage.joined(pages)])
