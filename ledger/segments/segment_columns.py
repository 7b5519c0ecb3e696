"""The rows of a log as columns, and back.

Forecasts and withdrawals are typed columns, question after question; every other event is its JSON. Neither the rows
nor their digests are kept: rows are rebuilt from the columns byte for byte, so that the chain of digests proves the
columns too. pyarrow is an optional dependency, which is imported when columns are made.
"""

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import msgspec
import numpy as np

from forecast_ledger.ledger.core.errors import Corrupt, Unavailable
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded

AT_ONCE = 1 << 16  # rows rebuilt together
_FORECASTS = {events.ForecastMade, events.ForecastWithdrawn}
_FORMS = ("probabilities", "cdf", "quantiles")
_ESCAPED = r'["\\\x00-\x1f]'  # what JSON writes with a backslash
_DIGITS = np.array([f"{byte:02x}".encode() for byte in range(256)])
_BEFORE_EVENT = log.BEFORE_EVENT.decode()
_encode = msgspec.json.Encoder().encode
_event = msgspec.json.Decoder(events.AnyEvent)


class SegmentColumns(NamedTuple):
    """Consecutive rows of a log as two pyarrow.Tables, of the schemas that `schemas` returns."""

    forecasts: Any
    others: Any


def pyarrow() -> Any:
    """Return the pyarrow module. Raises Unavailable if it is not installed."""
    try:
        import pyarrow as module  # noqa: PLC0415 - late: optional
        import pyarrow.compute  # noqa: PLC0415
    except ImportError:
        raise Unavailable("segments need pyarrow; pip install 'forecast-ledger[columnar]'") from None
    return module


def schemas() -> tuple[Any, Any]:
    """Return the Arrow schemas of the forecasts and of the other events of a segment.

    Instants are timestamps in µs, UTC. `claimed_at` is the event's `at`. Raises Unavailable (no pyarrow).
    """
    pa = pyarrow()
    names = pa.dictionary(pa.int32(), pa.string())
    frame = [
        ("position", pa.int64()),
        ("recorded_at", pa.timestamp("us", "UTC")),
        ("imported", pa.bool_()),
        ("command_id", pa.string()),
        ("command", pa.binary(16)),
    ]
    forecasts = [
        ("question", names),
        ("participant", names),
        ("claimed_at", pa.timestamp("us", "UTC")),
        ("made", pa.bool_()),
        ("form", names),
        ("numbers", pa.list_(pa.field("item", pa.int64(), nullable=False))),
        ("until", pa.timestamp("us", "UTC")),
        ("attestation", pa.string()),
    ]
    others = [
        ("type", names),
        ("claimed_at", pa.timestamp("us", "UTC")),
        ("event", pa.string()),
        ("digest", pa.binary(32)),
    ]
    optional = {"form", "numbers", "until", "attestation", "digest"}

    def schema(columns: list[tuple[str, Any]]) -> Any:
        return pa.schema([pa.field(name, kind, nullable=name in optional) for name, kind in [*frame, *columns]])

    return schema(forecasts), schema(others)


def to_columns(rows: Sequence[bytes], records: Sequence[Recorded]) -> SegmentColumns:
    """Return consecutive rows of a log as columns; records: the same rows, unsealed.

    A forecast whose JSON is not the canonical one is kept as JSON, as other events are. Raises Unavailable (no
    pyarrow).
    """
    of_forecasts, of_others = schemas()
    typed = [
        type(recorded.event) in _FORECASTS and row.endswith(_canonical_end(recorded))
        for row, recorded in zip(rows, records, strict=True)
    ]
    made = [*compress(records, typed)]
    other = [(row, recorded) for row, recorded, kept in zip(rows, records, typed, strict=True) if not kept]
    return SegmentColumns(_forecasts(made, of_forecasts), _others(other, of_others))


def join(parts: list[SegmentColumns]) -> SegmentColumns:
    """Return the columns of consecutive rows from those of their parts, at least one, in log order.

    The list is emptied, and the parts are joined column by column, so that memory holds only one column more than once.
    """
    forecasts, others = ([[*table.columns] for table in tables] for tables in zip(*parts, strict=True))
    parts.clear()
    of_forecasts, of_others = schemas()
    asked = _joined_column([columns[of_forecasts.names.index("question")] for columns in forecasts])
    return SegmentColumns(
        _joined_columns(forecasts, of_forecasts, _question_order(asked)), _joined_columns(others, of_others, None)
    )


def _joined_columns(parts: list[list[Any]], schema: Any, order: Any) -> Any:
    """Return the columns of parts joined, as a table in an order, or as it is; the parts lose their columns."""
    joined = []
    for _ in schema:
        column = _joined_column([columns.pop(0) for columns in parts])
        joined.append(column if order is None else column.take(order))
    return pyarrow().Table.from_arrays(joined, schema=schema)


def _joined_column(parts: list[Any]) -> Any:
    """Return chunked columns as one array."""
    pa = pyarrow()
    column = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    return column.unify_dictionaries().combine_chunks()


def _by_question(forecasts: Any) -> Any:
    """Return forecasts question after question."""
    return forecasts.take(_question_order(forecasts["question"].combine_chunks()))


def _question_order(column: Any) -> Any:
    """Return the order of rows by the id of their question, so that some questions are read without the others."""
    labels = column.dictionary.to_pylist()
    place = np.empty(len(labels), np.int64)
    place[sorted(range(len(labels)), key=labels.__getitem__)] = np.arange(len(labels))
    return pyarrow().array(np.argsort(place[column.indices.to_numpy()], kind="stable"))


def _canonical_end(recorded: Recorded) -> bytes:
    """Return the end of the row of an event that has the canonical JSON."""
    return log.BEFORE_EVENT + _encode(recorded.event) + log.digest_bytes(recorded.digest)


def _frame(records: Sequence[Recorded]) -> list[Any]:
    pa = pyarrow()
    return [
        pa.array([recorded.position for recorded in records], pa.int64()),
        _instants([recorded.recorded_at for recorded in records]),
        pa.array([recorded.imported is True for recorded in records], pa.bool_()),
        pa.array([recorded.command_id for recorded in records], pa.string()),
        pa.array([bytes.fromhex(recorded.command) for recorded in records], pa.binary(16)),
    ]


def _forecasts(records: Sequence[Recorded], schema: Any) -> Any:
    """Return the columns of forecasts and withdrawals, question after question in order of ids."""
    pa = pyarrow()
    made: list[Any] = [recorded.event for recorded in records]
    forms = [next((form for form in _FORMS if getattr(event, form, ())), None) for event in made]
    attested = [getattr(event, "attestation", None) for event in made]
    columns = [
        *_frame(records),
        _names([event.question for event in made]),
        _names([event.participant for event in made]),
        _instants([event.at for event in made]),
        pa.array([type(event) is events.ForecastMade for event in made], pa.bool_()),
        _names(forms),
        pa.array(
            [None if form is None else getattr(event, form) for form, event in zip(forms, made, strict=True)],
            pa.list_(pa.int64()),
        ).cast(schema.field("numbers").type),
        _instants([getattr(event, "until", None) for event in made]),
        pa.array([None if each is None else _encode(each).decode() for each in attested], pa.string()),
    ]
    return _by_question(pa.Table.from_arrays(columns, schema=schema))


def _others(rows: Sequence[tuple[bytes, Recorded]], schema: Any) -> Any:
    pa = pyarrow()
    records = [recorded for _, recorded in rows]
    sealed = [recorded.digest if type(recorded.event) is events.ContestFinalized else None for recorded in records]
    columns = [
        *_frame(records),
        _names([events.TAGS[type(recorded.event)] for recorded in records]),
        _instants([recorded.event.at for recorded in records]),
        pa.array([log.event_text(row.decode()) for row, _ in rows], pa.string()),
        pa.array([None if digest is None else bytes.fromhex(digest) for digest in sealed], pa.binary(32)),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _names(texts: Sequence[str | None]) -> Any:
    """Return texts as a dictionary array; its labels are in order of their first use."""
    pa = pyarrow()
    return pa.array(texts, pa.string()).dictionary_encode()


def _instants(micros: Sequence[int | None]) -> Any:
    pa = pyarrow()
    return pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))


def other_events(others: Any) -> Iterator[Recorded]:
    """Yield the events that are kept as JSON, with the id of their command if it was read.

    Those that seal a contest have their digest. Raises Corrupt: this version cannot read one.
    """
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


def rebuild(columns: SegmentColumns, before: Checkpoint) -> Iterator[list[bytes]]:
    """Yield the rows in log order, page by page, as they follow a checkpoint: byte for byte those of the log."""
    pa = pyarrow()
    forecasts, others = columns
    position = np.concatenate([integers(forecasts["position"]), integers(others["position"])])
    order, previous = np.argsort(position, kind="stable"), before.digest
    for begin in range(0, len(order), AT_ONCE):
        page = order[begin : begin + AT_ONCE]
        typed = page < len(forecasts)
        made, rest = forecasts.take(pa.array(page[typed])), others.take(pa.array(page[~typed] - len(forecasts)))
        heads = pa.concat_arrays([_heads(made), _heads(rest)])
        ends = pa.concat_arrays([_forecast_events(made), _joined(_BEFORE_EVENT, rest["event"])])
        place = pa.array(np.argsort(np.argsort(~typed, kind="stable"), kind="stable"))
        rows = []
        for head, end in zip(heads.take(place).to_pylist(), ends.take(place).to_pylist(), strict=True):
            row, previous = log.with_digest(head + previous.encode() + end)
            rows.append(row)
        yield rows


def _heads(table: Any) -> Any:
    """Return the bytes of each row that come before the previous digest."""
    imported = pyarrow().compute.if_else(table["imported"], ',"imported":true', "")
    return _joined(
        '{"position":',
        table["position"],
        ',"recorded_at":',
        table["recorded_at"],
        imported,
        ',"command_id":',
        _quoted(table["command_id"]),
        ',"command":"',
        _hexadecimal(table["command"]),
        '","previous":"',
    )


def _forecast_events(table: Any) -> Any:
    """Return the JSON of each forecast or withdrawal, after the bytes that come before an event."""
    compute = pyarrow().compute
    made = compute.is_valid(table["form"])
    until = table["until"].cast(pyarrow().int64()).cast(pyarrow().string())
    kind = compute.if_else(made, "forecast_made.v1", "forecast_withdrawn.v1")
    return _joined(
        _BEFORE_EVENT + '{"type":"',
        kind,
        '","at":',
        table["claimed_at"],
        ',"question":',
        _quoted(table["question"]),
        ',"participant":',
        _quoted(table["participant"]),
        _optional(',"', table["form"], '":['),
        _optional(_number_lists(table["numbers"]), "]"),
        _optional(',"attestation":', table["attestation"]),
        _optional(',"until":', until),
        "}",
    )


def _joined(*parts: Any) -> Any:
    """Return the bytes of each row's parts, one after the other; numbers in decimals, instants in µs."""
    pa = pyarrow()
    texts = [part if isinstance(part, str) else _text(part) for part in parts]
    joined = pa.compute.binary_join_element_wise(*texts, "")
    return (joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined).cast(pa.binary())


def _optional(*parts: Any) -> Any:
    """Return the joined texts of each row; "" if one is missing."""
    compute = pyarrow().compute
    return compute.fill_null(
        compute.binary_join_element_wise(*(p if isinstance(p, str) else _text(p) for p in parts), ""), ""
    )


def _text(column: Any) -> Any:
    """Return a column as text."""
    pa = pyarrow()
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.cast(pa.string())


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
    texts = pa.ListArray.from_arrays(column.offsets, column.values.cast(pa.string()), mask=column.is_null())
    return pa.compute.binary_join(texts, ",")


def integers(column: Any, missing: int | None = None) -> Any:
    """Return a column as an array of int64; instants in µs. missing: in place of nulls, if it can have any."""
    numbers = column.combine_chunks().cast(pyarrow().int64())  # a chunked column's own `to_numpy` imports pandas
    return (numbers if missing is None else numbers.fill_null(missing)).to_numpy()


def labelled(column: Any) -> tuple[list[str], Any]:
    """Return the labels of a column of names, and the label of each row by number, an array of int32."""
    chunk = column.combine_chunks()
    if not len(chunk):
        return [], np.zeros(0, np.int32)
    return chunk.dictionary.to_pylist(), chunk.indices.to_numpy()
