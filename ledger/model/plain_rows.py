"""Rows of forecasts of a probability, most rows of most logs, read as columns, thousands at a time.

A row is read so only if it has, field by field, the bytes that this program writes for such a forecast; every other one
is decoded. So whatever is read as columns, the decoder would read, too, and would read the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from forecast_ledger.ledger.core.errors import LedgerError
from forecast_ledger.ledger.model.events import TAGS, ForecastMade
from forecast_ledger.ledger.model.log import (
    EVENT,
    IMPORTED,
    NORMAL,
    START,
    UNREADABLE,
    Checkpoint,
    Recorded,
    compute_digests,
    decode_rows,
    digest_bytes,
    forecast_parts,
    head_parts,
    unseal_pages,
)

_Bytes = NDArray[np.uint8]
_Integers = NDArray[np.int64]
_Texts = NDArray[np.bytes_]
IsWanted = Callable[[bytes], bool]  # whether an id is
_TOGETHER = 8  # pages
_BYTES = 8 * 2**20  # of rows read ahead; more are no forecasts of a probability
_ENOUGH = 256  # rows: fewer are decoded in less time
_SHARE = 2  # one plain row in as many is enough
_AGAIN = 8  # groups of pages at most, until the next attempt after some that found few plain rows
_DIGITS, _DIGEST = 16, 64  # of a number at most, and of a digest
_ID = 64  # characters of an id, and one more, at most
_TENS = 10 ** np.arange(_DIGITS + 1)[::-1]
_BEGINS = (np.arange(_ID) < np.arange(_ID + 1)[:, None]).astype(np.uint8)  # row i: i ones, then zeros
_PAIRS = ((1, 10), (2, 100), (4, 10**4))  # bytes of a number, and the unit of the one before it
_QUOTE, _BACKSLASH, _ZERO, _SPACE, _DELETE = b'"\\0 \x7f'


class CodedTexts(Sequence[bytes]):
    """Texts in ASCII, many of them several times: a code for each, shape (n,), and the texts by code.

    >>> texts = CodedTexts([b"bo", b"ada", b"bo"])
    >>> texts.codes.tolist(), texts.labels, texts[1]
    ([0, 1, 0], ['bo', 'ada'], b'ada')
    """

    def __init__(self, texts: Iterable[bytes]) -> None:
        known: dict[bytes, int] = {}
        self.codes = np.array([known.setdefault(text, len(known)) for text in texts], np.int32)
        self.labels = [*map(bytes.decode, known)]

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self.labels[code].encode() for code in self.codes[index].tolist()]
        return self.labels[int(self.codes[index])].encode()


class ForecastRows(NamedTuple):
    """Forecasts of a probability, in log order; shape (n,) each.

    at, recorded_at: µs. command_id, question, participant: ids in ASCII. yes, no: 1e-9. command_at, command_end,
    event_at: where in the row the id of its command begins and ends, and its event begins.
    """

    position: _Integers
    recorded_at: _Integers
    at: _Integers
    question: Sequence[bytes]
    participant: Sequence[bytes]
    yes: _Integers
    no: _Integers
    command_id: NDArray[np.bytes_]
    command_at: _Integers
    command_end: _Integers
    event_at: _Integers


class ScannedRows(NamedTuple):
    """Consecutive rows, of which the plain ones are read as columns.

    digests: that before the first row, and the computed one of each. is_plain: shape (n,), of which rows `forecasts`
    are; the digests that they state are right, too. commands: returns the fingerprints of their commands, in ASCII.
    """

    digests: list[str]
    is_plain: NDArray[np.bool_]
    forecasts: ForecastRows
    commands: Callable[[], _Texts]


class ReadPage(Sequence[Recorded]):
    """Consecutive rows, read and checked: forecasts as columns, and the events of all others.

    As a sequence it has the event of each row, which is decoded whenever it is asked for.
    """

    def __init__(self, rows: Sequence[bytes], forecasts: ForecastRows, others: Sequence[Recorded]) -> None:
        self._rows, self.forecasts, self.others = rows, forecasts, others

    def on(self, question: str) -> list[Recorded]:
        """Return its events but for forecasts on other questions, in log order; "" for forecasts on none."""
        return self.where(is_id(question)) if question else [*self.others]

    def where(self, question: IsWanted | None, participant: IsWanted | None = None) -> list[Recorded]:
        """Return its events but for forecasts on other questions and by other participants, in log order."""
        made, wanted = self.forecasts, np.zeros(len(self.forecasts.position), bool)
        for ids, are_wanted in ((made.question, question), (made.participant, participant)):
            if are_wanted is not None:
                wanted |= _are(ids, are_wanted)
        before = self[-1].position - len(self)
        picked = decode_rows([self._rows[at - before - 1] for at in made.position[wanted].tolist()])
        return sorted([*self.others, *picked], key=attrgetter("position"))

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Recorded: ...

    @overload
    def __getitem__(self, index: slice) -> list[Recorded]: ...

    def __getitem__(self, index: int | slice) -> Recorded | list[Recorded]:
        if isinstance(index, slice):
            return decode_rows(self._rows[index])
        [recorded] = decode_rows([self._rows[index]])
        return recorded


def is_id(given: str) -> IsWanted:
    """Return what tells whether an id is this one, which may be any text."""
    return given.encode(errors="surrogatepass").__eq__


def _are(texts: Sequence[bytes], wanted: IsWanted) -> NDArray[np.bool_]:
    """Return which of some texts are wanted, shape (n,)."""
    if isinstance(texts, CodedTexts):
        return np.array([wanted(label.encode()) for label in texts.labels], bool)[texts.codes]
    return np.fromiter(map(wanted, texts), bool, len(texts))


def unseal_columns(pages: Iterator[Sequence[bytes]], before: Checkpoint = START) -> Iterator[Sequence[Recorded]]:
    """Unseal page after page, as `unseal_pages` does; pages with enough forecasts of a probability are a ReadPage.

    Some pages are read ahead; what reading them raises is raised after the events before it. Raises Corrupt.
    """
    waits, failed = 0, 0  # groups of pages, attempts
    while True:
        group, size, more, damage = list[Sequence[bytes]](), 0, False, None
        try:
            for rows in pages:
                group.append(rows)
                size += sum(map(len, rows))
                more = len(group) == _TOGETHER or size > _BYTES
                if more:
                    break
        except LedgerError as error:
            damage = error
        few = waits > 0 or size > _BYTES or sum(map(len, group)) < _ENOUGH
        read = None if few else _read(group, before)
        if few:
            waits = max(waits - 1, 0)
        else:
            failed = 0 if read is not None else failed + 1
            waits = min((1 << failed) - 1, _AGAIN)
        for page in unseal_pages(iter(group), before) if read is None else read:
            yield page
            before = Checkpoint(page[-1].position, page[-1].digest)
        if damage is not None:
            raise damage
        if not more:
            return
        del group, read, rows, page  # before more is read


def _read(group: Sequence[Sequence[bytes]], before: Checkpoint) -> list[ReadPage] | None:
    """Return pages that were checked; None if they have few plain rows, or a row is damaged."""
    rows = [*chain(*group)]
    digests, is_plain, forecasts, _ = scan_rows(rows, before)
    if _SHARE * np.count_nonzero(is_plain) < len(rows):
        return None
    others = np.flatnonzero(~is_plain).tolist()
    try:
        events = decode_rows([rows[index] for index in others])
    except UNREADABLE:
        return None
    for index, recorded in zip(others, events, strict=True):
        stated = recorded.position, recorded.previous, recorded.digest
        if stated != (before.position + 1 + index, *digests[index : index + 2]):
            return None
    read, ends = list[ReadPage](), np.cumsum([0, *map(len, group)])
    found = np.append(0, np.cumsum(is_plain))[ends].tolist()
    for page, (begin, end), (first, last) in zip(group, pairwise(ends.tolist()), pairwise(found), strict=True):
        columns = ForecastRows._make(column[first:last] for column in forecasts)
        read.append(ReadPage(page, columns, events[begin - first : end - last]))
    return read


def read_page(rows: Sequence[bytes], before: Checkpoint) -> ReadPage | None:
    """Return the rows after a checkpoint, checked; None if few of them are plain, or one is damaged."""
    read = _read([rows], before)
    return read[0] if read else None


def no_forecasts() -> ForecastRows:
    """Return the forecasts of rows of which none is read as columns."""
    three = (none := np.zeros(0, np.int64), none, none)
    return ForecastRows(*three, [], [], none, none, np.zeros(0, "S1"), *three)


def joined_forecasts(pages: Sequence[ForecastRows]) -> ForecastRows:
    """Return the forecasts of pages as those of one, with coded ids, and without what tells of their commands.

    They are question after question, each in log order: so those of many pages are gathered in less time.
    """

    def coded(name: str) -> CodedTexts:
        return CodedTexts(chain.from_iterable(getattr(each, name) for each in pages))

    def joined(name: str) -> _Integers:
        return np.concatenate([getattr(each, name) for each in pages])[order]

    question, participant = coded("question"), coded("participant")
    order = question.codes.astype(np.min_scalar_type(len(question))).argsort(kind="stable")  # by counting
    for texts in (question, participant):
        texts.codes = texts.codes[order]
    return ForecastRows(
        position=joined("position"),
        recorded_at=joined("recorded_at"),
        at=joined("at"),
        question=question,
        participant=participant,
        yes=joined("yes"),
        no=joined("no"),
        command_id=np.zeros(0, "S1"),
        command_at=(none := np.zeros(0, np.int64)),
        command_end=none,
        event_at=none,
    )


def scan_rows(rows: Sequence[bytes], before: Checkpoint) -> ScannedRows:
    """Read consecutive rows, at least one, as columns: those that are plain and follow the row before them."""
    computed = [before.digest, *compute_digests(rows)]
    texts = iter(_texts_between([flag if flag.encode() in rows[0] else "" for flag in (IMPORTED, NORMAL)]))
    scan, digests, first = _Scan(rows), "".join(computed).encode(), before.position + 1

    def after_text(read: Callable[..., Any], *given: bytes) -> Any:
        scan.skip(next(texts))
        return read(*given)

    position, recorded_at = after_text(scan.number), after_text(scan.number)
    command_at, command_id, command_end = after_text(scan.place), scan.text(), scan.place()
    command = after_text(scan.text)
    after_text(scan.digest, digests[:-_DIGEST])
    event_at = scan.place() + len(EVENT)
    at, question, participant = after_text(scan.number), after_text(scan.text), after_text(scan.text)
    yes, no = after_text(scan.number), after_text(scan.number)
    after_text(scan.digest, digests[_DIGEST:])
    plain = after_text(scan.end) & (position == np.arange(first, first + len(rows)))
    chosen = slice(None) if plain.all() else plain
    ids = (text()[chosen].tolist() for text in (question, participant))
    others = (each[chosen] for each in (yes, no, command_id(), command_at, command_end, event_at))
    forecasts = ForecastRows(*(each[chosen] for each in (position, recorded_at, at)), *ids, *others)
    return ScannedRows(computed, plain, forecasts, lambda: command()[chosen])


def unscanned(rows: Sequence[bytes], before: Checkpoint) -> ScannedRows:
    """Return consecutive rows of which none is read as columns."""
    digests = [before.digest, *compute_digests(rows)]
    return ScannedRows(digests, np.zeros(len(rows), bool), no_forecasts(), lambda: np.zeros(0, "S1"))


def _texts_between(flags: Sequence[str]) -> list[bytes]:
    """Return the bytes of a plain row around its values: before the first, between two of them, after the last.

    flags: `imported` and `normal`, each empty if rows have it not.
    """
    value, none = "\0", ""
    imported, normal = flags
    head = {"imported": imported, "normal": normal, "provenance": none, "command_id": f'"{value}"', "command": value}
    event = {"type": TAGS[ForecastMade], "at": value, "question": f'"{value}"', "participant": f'"{value}"'}
    numbers = {"form": "probabilities", "numbers": f"{value},{value}", "attestation": none, "until": none}
    parts: tuple[Any, ...] = (
        *head_parts({"position": value, "recorded_at": value, **head}),
        value,
        *forecast_parts(event | numbers),
        digest_bytes(value).decode(),
    )
    row = "".join([part if isinstance(part, str) else "".join(part) * all(part) for part in parts])
    return row.encode().split(value.encode())


class _Scan:
    """Rows that are read side by side, from left to right; those that are not as expected are not plain."""

    def __init__(self, rows: Sequence[bytes]) -> None:
        self._joined = b"".join([*rows, b" " * _ID])
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        self._ends = np.cumsum(sizes)
        self._begins = self._at = self._ends - sizes
        self._plain = np.ones(len(rows), bool)

    def end(self) -> NDArray[np.bool_]:
        """Return which rows are plain, and end here.

        Their texts are as they are written: no control character is among them, and nothing has a backslash before it.
        """
        signs = np.frombuffer(self._joined, np.uint8)
        if b"\\" in self._joined or not self._joined.isascii() or signs.min() < _SPACE:
            odd = np.flatnonzero((signs < _SPACE) | (signs >= _DELETE) | (signs == _BACKSLASH))
            self._plain[np.searchsorted(self._ends, odd, "right")] = False
        plain: NDArray[np.bool_] = self._plain & (self._at == self._ends)
        return plain

    def place(self) -> _Integers:
        """Return how many bytes of each row were read."""
        place: _Integers = self._at - self._begins
        return place

    def skip(self, text: bytes) -> None:
        """Expect a text."""
        self._expect(text, len(text))

    def digest(self, expected: bytes) -> None:
        """Expect the digest of each row."""
        self._expect(expected, _DIGEST)

    def text(self) -> Callable[[], _Texts]:
        """Pass over a text up to the next quotation mark; return a function that returns the texts."""
        signs = self._next(_ID)
        lengths = (signs == _QUOTE).argmax(axis=1)
        self._at = self._at + lengths
        most = max(int(lengths.max()), 1)
        return lambda: (signs[:, :most] * _BEGINS[:, :most].take(lengths, axis=0)).view(f"S{most}").ravel()

    def number(self) -> _Integers:
        """Read a number without a sign."""
        digits = self._next(_DIGITS + 1) - np.uint8(_ZERO)  # any other sign is above 9
        lengths = (digits > 9).argmax(axis=1)
        self._plain &= (lengths > 0) & ((digits[:, 0] > 0) | (lengths == 1))
        self._at = self._at + lengths
        number: Any = digits[:, :_DIGITS] * _BEGINS[:, :_DIGITS].take(lengths, axis=0)
        for size, unit in _PAIRS:  # of digits, of pairs, of pairs of pairs
            both = number.view(f"<u{2 * size}")
            number = (both & both.dtype.type(256**size - 1)) * both.dtype.type(unit) + (
                both >> both.dtype.type(8 * size)
            )
        whole: _Integers = (number[:, 0] * np.uint64(10**8) + number[:, 1]).astype(np.int64) // _TENS[lengths]
        return whole

    def _next(self, size: int) -> _Bytes:
        """Return the next bytes of each row, shape (n, size)."""
        last = len(self._joined) - size
        everywhere = np.ndarray(last + 1, f"V{size}", self._joined, 0, 1)
        following: _Bytes = everywhere[np.minimum(self._at, last)].view(np.uint8).reshape(-1, size)
        return following

    def _expect(self, texts: bytes, size: int) -> None:
        """Expect the same text of this size in each row, or one for each."""
        following = self._next(size)
        if following.tobytes() != texts * (len(following) * size // len(texts)):
            same = following == np.frombuffer(texts, np.uint8).reshape(-1, size)
            self._plain &= same.all(axis=1)
        self._at = self._at + size
