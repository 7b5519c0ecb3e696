"""The rows of a log as columns, and back.

Forecasts, withdrawals and quotes are typed columns, question after question; every other event, and an event of quotes
without them, is its JSON. Neither the rows nor their digests are kept: rows are rebuilt from the columns byte for byte,
so that the chain of digests proves the columns too. pyarrow is optional, and imported when columns are made.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from forecast_ledger.ledger.core.errors import Unavailable, installing
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Recorded

_FORECASTS = {events.ForecastMade, events.ForecastWithdrawn}
_QUOTES = {events.PricesQuoted}
SIDES = events.Quote.__struct_fields__[1:]
_FORMS = ("probabilities", "cdf", "quantiles", "samples")
_encode = msgspec.json.Encoder().encode


class SegmentColumns(NamedTuple):
    """Consecutive rows of a log as pyarrow.Tables, of the schemas that `schemas` returns.

    quotes: of events in `others`, whose JSON there has none.
    """

    forecasts: Any
    others: Any
    quotes: Any

    @property
    def rows(self) -> tuple[Any, Any]:
        """The tables that have a row for each row of the log."""
        return self.forecasts, self.others


def pyarrow() -> Any:
    """Return the pyarrow module. Raises Unavailable if it is not installed."""
    try:
        import pyarrow as module  # noqa: PLC0415 - late: optional
        import pyarrow.compute  # noqa: PLC0415
    except ImportError:
        raise Unavailable(f"segments need pyarrow; {installing('columnar')}") from None
    return module


def give_back_memory() -> None:
    """Give the memory that pyarrow holds for later back to the system. Raises Unavailable (no pyarrow)."""
    pyarrow().default_memory_pool().release_unused()


def schemas() -> tuple[Any, Any, Any]:
    """Return the Arrow schemas of the forecasts, of the other events and of the quotes of a segment.

    Instants are timestamps in µs, UTC. `claimed_at` is the event's `at`. Raises Unavailable (no pyarrow).
    """
    pa = pyarrow()
    names = pa.dictionary(pa.int32(), pa.string())
    frame = [
        ("position", pa.int64()),
        ("recorded_at", pa.timestamp("us", "UTC")),
        ("imported", pa.bool_()),
        ("normal", pa.bool_()),
        ("command_id", pa.string()),
        ("command", pa.binary(16)),
    ]
    forecasts = [
        *frame,
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
        *frame,
        ("type", names),
        ("claimed_at", pa.timestamp("us", "UTC")),
        ("event", pa.string()),
        ("digest", pa.binary(32)),
    ]
    sides = [(side, pa.list_(pa.int64())) for side in SIDES]
    quotes = [("position", pa.int64()), ("place", pa.int32()), ("question", names), *sides]
    optional = {"form", "numbers", "until", "attestation", "digest", *SIDES} - {"prices"}

    def schema(columns: list[tuple[str, Any]]) -> Any:
        return pa.schema([pa.field(name, kind, nullable=name in optional) for name, kind in columns])

    return schema(forecasts), schema(others), schema(quotes)


def to_columns(rows: Sequence[bytes], records: Sequence[Recorded]) -> SegmentColumns:
    """Return consecutive rows of a log as columns; records: the same rows, unsealed.

    A forecast with points, and a forecast or quotes whose JSON is not the canonical one, are kept as JSON, as other
    events are. Raises Unavailable (no pyarrow).
    """
    of_forecasts, of_others, of_quotes = schemas()
    made, quoted, other = [], [], []
    for row, recorded in zip(rows, records, strict=True):
        kind = type(recorded.event)
        if kind in _FORECASTS and _has_columns(recorded.event) and row.endswith(log.canonical_end(recorded)):
            made.append(recorded)
        elif kind in _QUOTES and _within_64_bits(recorded.event) and row.endswith(log.canonical_end(recorded)):
            quoted.append(recorded)
            other.append((recorded, _encode(replace(recorded.event, quotes=())).decode()))
        else:
            other.append((recorded, log.event_text(row.decode())))
    return SegmentColumns(_forecasts(made, of_forecasts), _others(other, of_others), _quotes(quoted, of_quotes))


def join(parts: list[SegmentColumns]) -> SegmentColumns:
    """Return the columns of consecutive rows from those of their parts, at least one, in log order.

    The list is emptied, and the parts are joined column by column, so that memory holds only one column more than once.
    """
    tables = [[[*table.columns] for table in of_kind] for of_kind in zip(*parts, strict=True)]
    parts.clear()
    return SegmentColumns(*map(_joined_columns, tables, schemas()))


def _joined_columns(parts: list[list[Any]], schema: Any) -> Any:
    """Return the columns of parts joined, as a table, question after question; the parts lose their columns."""
    order, joined = None, []
    if "question" in schema.names:
        order = _question_order(_joined_column([columns[schema.names.index("question")] for columns in parts]))
    for _ in schema:
        column = _joined_column([columns.pop(0) for columns in parts])
        joined.append(column if order is None else column.take(order))
    return pyarrow().Table.from_arrays(joined, schema=schema)


def _joined_column(parts: list[Any]) -> Any:
    """Return chunked columns as one array."""
    pa = pyarrow()
    column = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    return column.unify_dictionaries().combine_chunks()


def _by_question(table: Any) -> Any:
    """Return a table question after question."""
    return table.take(_question_order(table["question"].combine_chunks()))


def _question_order(column: Any) -> Any:
    """Return the order of rows by the id of their question, so that some questions are read without the others."""
    labels = column.dictionary.to_pylist()
    place = np.empty(len(labels), np.int64)
    place[sorted(range(len(labels)), key=labels.__getitem__)] = np.arange(len(labels))
    return pyarrow().array(np.argsort(place[column.indices.to_numpy()], kind="stable"))


def _frame(records: Sequence[Recorded]) -> list[Any]:
    pa = pyarrow()
    return [
        pa.array([recorded.position for recorded in records], pa.int64()),
        _instants([recorded.recorded_at for recorded in records]),
        pa.array([recorded.imported is True for recorded in records], pa.bool_()),
        pa.array([recorded.normal is True for recorded in records], pa.bool_()),
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


def _has_columns(event: Any) -> bool:
    """Return whether a forecast or a withdrawal has only what the columns of forecasts have."""
    return getattr(event, "points", None) is None


def _within_64_bits(event: Any) -> bool:
    sides = (getattr(quote, side) for quote in event.quotes for side in SIDES)
    return all(number is None or -(2**63) <= number < 2**63 for side in sides for number in side)


def _quotes(records: Sequence[Recorded], schema: Any) -> Any:
    """Return the columns of quotes, question after question in order of ids."""
    pa = pyarrow()
    events_of: list[Any] = [recorded.event for recorded in records]
    quotes = [quote for event in events_of for quote in event.quotes]
    counts = [len(event.quotes) for event in events_of]
    columns = [
        pa.array(np.repeat(np.array([recorded.position for recorded in records], np.int64), counts)),
        pa.array([place for count in counts for place in range(count)], pa.int32()),
        _names([quote.question for quote in quotes]),
        *(_lists([getattr(quote, side) for quote in quotes], schema.field(side)) for side in SIDES),
    ]
    return _by_question(pa.Table.from_arrays(columns, schema=schema))


def _lists(numbers: Sequence[Sequence[int | None]], field: Any) -> Any:
    """Return lists of numbers as an array; empty ones are null if the field may be."""
    return pyarrow().array([each or None for each in numbers] if field.nullable else numbers, field.type)


def _others(rows: Sequence[tuple[Recorded, str]], schema: Any) -> Any:
    pa = pyarrow()
    records = [recorded for recorded, _ in rows]
    sealed = [recorded.digest if type(recorded.event) is events.ContestFinalized else None for recorded in records]
    columns = [
        *_frame(records),
        _names([events.TAGS[type(recorded.event)] for recorded in records]),
        _instants([recorded.event.at for recorded in records]),
        pa.array([text for _, text in rows], pa.string()),
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
