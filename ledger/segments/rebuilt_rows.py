"""The rows of the log rebuilt from the columns of a segment, byte for byte, and the events in them."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.segments.segment_columns import SIDES, SegmentColumns, integers, pyarrow

AT_ONCE = 1 << 13  # rows, and quotes in them, rebuilt together: more leave the caches of a processor
_WITHOUT_EVENT = "the segment has a quote there, and no event of quotes"
_ESCAPED = r'["\\\x00-\x1f]'  # what JSON writes with a backslash
_DIGITS = np.array([f"{byte:02x}".encode() for byte in range(256)])
_TYPES = events.TAGS[events.ForecastMade], events.TAGS[events.ForecastWithdrawn]
_encode = msgspec.json.Encoder().encode
_event = msgspec.json.Decoder(events.AnyEvent)


def other_events(columns: SegmentColumns) -> Iterator[Recorded]:
    """Yield the events other than forecasts, with the id of their command if it was read.

    Those that seal a contest have their digest. Raises Corrupt: this version cannot read one.
    """
    for page, quotes in _with_their_quotes(columns.others, columns.quotes):
        others = _with_quotes(page, quotes)
        read = [others[name].to_pylist() for name in ("position", "event", "digest")]
        ids = others["command_id"].to_pylist() if "command_id" in others.schema.names else [""] * len(others)
        recorded_at = integers(others["recorded_at"]).tolist()
        for position, text, digest, command_id, at in zip(*read, ids, recorded_at, strict=True):
            try:
                event = _event.decode(text)
            except log.UNREADABLE as error:
                raise Corrupt(position, f"this version cannot read the event: {error}", "schemas") from None
            yield Recorded(
                position=position,
                recorded_at=at,
                command_id=command_id,
                command="",
                previous="",
                event=event,
                digest="" if digest is None else digest.hex(),
            )


def _with_their_quotes(others: Any, quotes: Any) -> Iterator[tuple[Any, Any]]:
    """Yield pages of other events, and the quotes in each page."""
    position, log_order = integers(others["position"]), _log_order(quotes)
    for begin, end, quoted in _pages(position, quotes, log_order):
        yield others.slice(begin, end - begin), quotes.take(pyarrow().array(quoted))


def rebuild(columns: SegmentColumns, before: Checkpoint) -> Iterator[list[bytes]]:
    """Yield the rows in log order, page by page, as they follow a checkpoint: byte for byte those of the log."""
    pa = pyarrow()
    forecasts, others, quotes = columns
    position = np.concatenate([integers(table["position"]) for table in columns.rows])
    order, previous = np.argsort(position, kind="stable"), before.digest
    for begin, last, quoted in _pages(position[order], quotes, _log_order(quotes)):
        own, page = quotes.take(pa.array(quoted)), order[begin:last]
        typed = page < len(forecasts)
        made, rest = forecasts.take(pa.array(page[typed])), others.take(pa.array(page[~typed] - len(forecasts)))
        heads, ends = _heads(made), _forecast_ends(made)
        if len(rest) or len(own):  # quotes without an event are refused
            place = pa.array(np.argsort(np.argsort(~typed, kind="stable"), kind="stable"))
            others_end = _joined(*log.event_parts(_with_quotes(rest, own)["event"]))
            heads = pa.concat_arrays([heads, _heads(rest)]).take(place)
            ends = pa.concat_arrays([ends, others_end]).take(place)
        rows, previous = log.chain_rows(previous, heads.to_pylist(), ends.to_pylist())
        yield rows


def _log_order(quotes: Any) -> Any:
    """Return the rows of quotes in log order."""
    return np.lexsort((integers(quotes["place"]), integers(quotes["position"])))


def _pages(position: Any, quotes: Any, log_order: Any) -> Iterator[tuple[int, int, Any]]:
    """Yield the bounds of pages of rows, each of AT_ONCE rows and quotes or of one row, and the rows of its quotes.

    position: of the rows in log order, shape (n,). Raises Corrupt: a quote is after the last row.
    """
    quoted = integers(quotes["position"])[log_order]
    until = np.searchsorted(quoted, position, "right")  # the number of quotes up to each row
    done, end, used = until + np.arange(1, len(until) + 1), 0, 0
    while (begin := end) < len(until):
        end = max(int(np.searchsorted(done, begin + used + AT_ONCE, "right")), begin + 1)
        yield begin, end, log_order[used : until[end - 1]]
        used = int(until[end - 1])
    if used < len(quoted):
        raise Corrupt(int(quoted[used]), _WITHOUT_EVENT, "store")


def _with_quotes(others: Any, quotes: Any) -> Any:
    """Return other events with their quotes, which are in log order.

    Raises Corrupt: a quote is of none of the events, or the places in an event are not 0, 1, 2 and so on.
    """
    if not len(quotes):
        return others
    pa, position = pyarrow(), integers(quotes["position"])
    begins = np.flatnonzero(np.diff(position, prepend=position[0] - 1))
    places = np.arange(len(position)) - np.repeat(begins, np.diff(begins, append=len(position)))
    if (misplaced := np.flatnonzero(integers(quotes["place"]) != places)).size:
        raise Corrupt(int(position[misplaced[0]]), "the places of its quotes do not go from 0 on", "store")
    groups = pa.ListArray.from_arrays(pa.array([*begins, len(position)], pa.int32()), _quote_texts(quotes))
    texts = others["event"].to_pylist()
    rows = {at: row for row, at in enumerate(integers(others["position"]).tolist())}
    for at, text in zip(position[begins].tolist(), pa.compute.binary_join(groups, ",").to_pylist(), strict=True):
        if at not in rows:
            raise Corrupt(at, _WITHOUT_EVENT, "store")
        texts[rows[at]] = log.with_quotes(texts[rows[at]], text)
    return others.set_column(others.schema.names.index("event"), "event", pa.array(texts, pa.string()))


def _quote_texts(quotes: Any) -> Any:
    """Return the JSON of each quote."""
    sides = {side: _number_lists(quotes[side]) for side in SIDES}
    return _joined(*log.quote_parts(_quoted(quotes["question"]), sides)).cast(pyarrow().string())


def _heads(table: Any) -> Any:
    """Return the bytes of each row that come before the previous digest."""
    choose = pyarrow().compute.if_else
    of = {
        "position": table["position"],
        "recorded_at": table["recorded_at"],
        "imported": choose(table["imported"], log.IMPORTED, ""),
        "normal": choose(table["normal"], log.NORMAL, ""),
        "command_id": _quoted(table["command_id"]),
        "command": _hexadecimal(table["command"]),
    }
    return _joined(*log.head_parts(of))


def _forecast_ends(table: Any) -> Any:
    """Return the bytes of each row of a forecast or withdrawal from the previous digest on."""
    compute = pyarrow().compute
    of = {
        "type": compute.if_else(compute.is_valid(table["form"]), *_TYPES),
        "at": table["claimed_at"],
        "question": _quoted(table["question"]),
        "participant": _quoted(table["participant"]),
        "form": table["form"],
        "numbers": _number_lists(table["numbers"]),
        "attestation": table["attestation"],
        "until": table["until"].cast(pyarrow().int64()).cast(pyarrow().string()),
    }
    return _joined(*log.forecast_parts(of))


def _joined(*parts: Any) -> Any:
    """Return the bytes of each row's parts, one after the other; numbers in decimals, instants in µs.

    A part that is a tuple is joined first, and is empty where one of its own parts is missing.
    """
    pa = pyarrow()
    texts = [_optional(*part) if isinstance(part, tuple) else _text(part) for part in parts]
    joined = pa.compute.binary_join_element_wise(*texts, "")
    return (joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined).cast(pa.binary())


def _optional(*parts: Any) -> Any:
    """Return the joined texts of each row; "" if one is missing."""
    compute = pyarrow().compute
    return compute.fill_null(compute.binary_join_element_wise(*map(_text, parts), ""), "")


def _text(part: Any) -> Any:
    """Return a column as text, and a text as it is."""
    pa = pyarrow()
    if isinstance(part, str):
        return part
    if pa.types.is_timestamp(part.type):
        part = part.cast(pa.int64())
    return part.cast(pa.string())


def _quoted(column: Any) -> Any:
    """Return each text as JSON."""
    pa = pyarrow()
    if pa.types.is_dictionary(column.type):
        column = column.combine_chunks()
        labels = pa.array([_encode(label).decode() for label in column.dictionary.to_pylist()], pa.string())
        return labels.take(column.indices)
    odd = pa.compute.match_substring_regex(column, _ESCAPED)
    plain = pa.compute.binary_join_element_wise('"', column, '"', "")
    if not pa.compute.any(odd).as_py():
        return plain
    written = pa.array([_encode(text).decode() for text in column.filter(odd).to_pylist()], pa.string())
    return pa.compute.replace_with_mask(plain.combine_chunks(), odd.combine_chunks(), written)


def _hexadecimal(column: Any) -> Any:
    """Return bytes of fixed length as hexadecimal digits."""
    pa = pyarrow()
    column = column.combine_chunks()
    width, size = column.type.byte_width, len(column)
    raw = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * width : (column.offset + size) * width]
    digits = pa.py_buffer(_DIGITS[raw].tobytes())
    offsets = pa.py_buffer(np.arange(0, 2 * width * (size + 1), 2 * width, dtype=np.int32).tobytes())
    return pa.StringArray.from_buffers(size, offsets, digits)


def _number_lists(column: Any) -> Any:
    """Return each list of numbers as JSON without its brackets."""
    pa = pyarrow()
    column = column.combine_chunks()
    numbers = pa.compute.fill_null(column.values.cast(pa.string()), "null")
    texts = pa.ListArray.from_arrays(column.offsets, numbers, mask=column.is_null())
    return pa.compute.binary_join(texts, ",")
