"""Lines of JSON with forecasts of a probability, read at once if all of them are written as the first one is."""

import re
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.batching.forecasts import read_lines
from forecast_ledger.ledger.batching.text_columns import read_fraction_signs, read_utc_signs

_QUOTE = ord('"')
_WORD = 8  # bytes that are compared or copied at once
_LONGEST = 64  # bytes of a value
_MASKS = np.array([2 ** (8 * count) - 1 for count in range(_WORD + 1)], np.uint64)  # of the first bytes of a word
_FIELDS = ("id", "at", "question", "participant", "probability")
_NUMBER = re.compile(rb"(\s*:\s*)[0-9.]+([\s,}].*)", re.DOTALL).fullmatch  # without an exponent
_DECIMALS = 9  # of a probability in the log


class PlainLines(NamedTuple):
    """The values of lines. ids, questions, participants: bytes, and zeros after them, shape (n, bytes). at: µs.

    units: the probability of yes, 1e-9.
    """

    ids: Any
    at: Any
    questions: Any
    participants: Any
    units: Any


class _Place(NamedTuple):
    """Where a value is in a line: from a quotation mark, by its number, to another, less some bytes at both ends."""

    begin: int
    after: int
    end: int
    before: int


def read_alike(data: bytes) -> PlainLines | None:
    r"""Return the values of lines; None if one of them differs from the first but in its values, or may have a fault.

    The first must be a forecast of a probability, with an id and an instant. Ids of any kind may still be refused.

    >>> line = '{"type":"submit_forecast","id":"f1","at":"2026-03-02T00:00:00Z","question":"q","participant":"ada",'
    >>> lines = read_alike(f'{line}"probability":0.25}}\n'.encode() * 2)
    >>> lines.ids.view("S8")[:, 0].tolist(), lines.units.tolist()
    ([b'f1', b'f1'], [250000000, 250000000])
    """
    first = data[: data.find(b"\n") + 1]
    is_plain = data.isascii() and data.endswith(b"\n") and b"\\" not in data and b"\0" not in data
    if not is_plain or len(places := _places(first)) < len(_FIELDS):
        return None
    spans = _spans(data, first, sorted(places.values()))
    if spans is None:
        return None
    signs, words, found = spans
    values: dict[str, Any] = {}
    for name in _FIELDS[:-1]:
        begins, lengths = found[places[name]]
        if int(lengths.max()) > _LONGEST:
            return None
        values[name] = _bytes_at(words, begins, lengths)
    _, lengths = found[places["at"]]
    at = read_utc_signs(values["at"].T[: int(lengths[0])]) if (lengths == lengths[0]).all() else None
    units = read_fraction_signs(signs, *found[places["probability"]], _DECIMALS)
    if at is None or units is None:
        return None
    return PlainLines(values["id"], at, values["question"], values["participant"], units)


def _places(line: bytes) -> dict[str, _Place]:
    """Return where the values of a forecast are in its line; none of a line that is no such forecast."""
    pieces, places, number = line.split(b'"'), dict[str, _Place](), 1
    if len(pieces) < 2 or read_lines(line) is None:
        return {}
    while number < len(pieces) - 1:
        name, after = pieces[number].decode(), pieces[number + 1]
        if after.strip() == b":":
            places[name] = _Place(number + 1, 1, number + 2, 0)
            number += 4
        else:
            if name == _FIELDS[-1] and (found := _NUMBER(after)):
                is_last = number + 2 == len(pieces)
                places[name] = _Place(number, 1 + len(found[1]), number + 1, len(found[2]) + is_last * len(pieces[0]))
            number += 2
    return {name: places[name] for name in _FIELDS if name in places}


def _spans(data: bytes, first: bytes, places: list[_Place]) -> tuple[Any, Any, dict[_Place, tuple[Any, Any]]] | None:
    """Return the bytes of lines, the word that begins at each, and where each value begins, and its length.

    None if what is between the values is not as in the first line. places: in their order in a line.
    """
    count, marks = data.count(b"\n"), first.count(b'"')
    quotes = np.flatnonzero(np.frombuffer(data, np.uint8) == _QUOTE)
    if len(quotes) != count * marks:
        return None
    head = first[: quotes[places[0].begin] + places[0].after]
    padded = data + head + bytes(len(first) + _LONGEST + _WORD)  # the last line is followed by the head of another
    signs, quotes = np.frombuffer(padded, np.uint8), np.append(quotes, len(data) + quotes[:1])
    lines = np.arange(count) * marks
    begins = [quotes[lines + each.begin] + each.after for each in places]
    ends = [quotes[lines + each.end] - each.before for each in places]
    words: Any = np.ndarray((len(padded) - _WORD + 1,), "<u8", padded, 0, (1,))
    for end, begin in zip(ends, [*begins[1:], np.append(begins[0][1:], len(data) + len(head))], strict=True):
        between = padded[int(end[0]) : int(begin[0])]
        for offset in range(0, len(between), _WORD):
            part = between[offset : offset + _WORD]
            if ((words[end + offset] & _MASKS[len(part)]) != int.from_bytes(part, "little")).any():
                return None
    return signs, words, {place: (begin, end - begin) for place, begin, end in zip(places, begins, ends, strict=True)}


def _bytes_at(words: Any, begins: Any, lengths: Any) -> Any:
    """Return so many bytes from each beginning, and zeros after them. Shape (n, bytes), these a multiple of _WORD."""
    parts = [
        words[begins + offset] & _MASKS[np.clip(lengths - offset, 0, _WORD)]
        for offset in range(0, max(int(lengths.max()), 1), _WORD)
    ]
    return np.stack(parts, axis=1).view(np.uint8)
