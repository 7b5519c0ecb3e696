"""The rows of a log as columns, and back.

Forecasts, withdrawals and quotes are typed columns, question after question; every other event, and an event of quotes
without them, is its JSON. Neither the rows nor their digests are kept: rows are rebuilt from the columns byte for byte,
so that the chain of digests proves the columns too.
"""

import re
from binascii import hexlify
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, ForecastFields, Recorded
from forecast_ledger.ledger.segments.arrow_arrays import (
    array_of_bytes,
    array_of_integers,
    array_of_lists,
    array_of_texts,
    chosen,
    compute_functions,
    integers,
    is_valid,
    labelled,
    log_order,
    no_rows,
    numpy_array,
    pyarrow,
    row_numbers,
    taken,
    text_scalar,
    whole,
)

_FORECASTS = {events.ForecastMade, events.ForecastWithdrawn}
_QUOTES = {events.PricesQuoted}
SIDES = events.Quote.__struct_fields__[1:]
_FORMS = ("probabilities", "cdf", "quantiles", "samples")
_COMMAND = 16  # bytes of a command's digest
_DIGEST = 32  # bytes of a row's digest
_FINALIZED = events.TAGS[events.ContestFinalized]
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


@cache
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
        ("provenance", pa.string()),
        ("command_id", pa.string()),
        ("command", pa.binary(_COMMAND)),
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
        ("digest", pa.binary(_DIGEST)),
    ]
    sides = [(side, pa.list_(pa.int64())) for side in SIDES]
    quotes = [("position", pa.int64()), ("place", pa.int32()), ("question", names), *sides]
    optional = {"provenance", "form", "numbers", "until", "attestation", "digest", *SIDES} - {"prices"}

    def schema(columns: list[tuple[str, Any]]) -> Any:
        return pa.schema([pa.field(name, kind, nullable=name in optional) for name, kind in columns])

    return schema(forecasts), schema(others), schema(quotes)


def all_but(*names: str) -> set[str]:
    """Return the names of the columns of a segment, without some."""
    return {name for schema in schemas() for name in schema.names}.difference(names)


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


def made_columns(first: int, fields: ForecastFields) -> SegmentColumns:
    """Return forecasts as columns, in log order, from the fields that their rows were made of.

    first: the log position of the first one. Raises Unavailable (no pyarrow).
    """
    pa, count = pyarrow(), len(fields.at)
    of_forecasts, *of_nothing = schemas()
    nothing, digests = pa.nulls(count, pa.string()), "".join(fields.commands)
    columns = [
        row_numbers(np.arange(first, first + count)),
        _instants(np.full(count, fields.recorded_at)),
        chosen(np.zeros(count)),
        chosen(np.ones(count)),
        nothing,
        array_of_texts(fields.command_ids),
        pa.Array.from_buffers(pa.binary(_COMMAND), count, [None, pa.py_buffer(bytes.fromhex(digests))]),
        _names(fields.question),
        _names(fields.participant),
        _instants(fields.at),
        chosen(np.ones(count)),
        *_made_numbers(fields, of_forecasts.field("numbers").type),
        pa.nulls(count, of_forecasts.field("until").type),
        nothing,
    ]
    return SegmentColumns(pa.Table.from_arrays(columns, schema=of_forecasts), *map(no_rows, of_nothing))


def _made_numbers(fields: ForecastFields, kind: Any) -> tuple[Any, Any]:
    """Return the form and the numbers of each forecast. kind: of the numbers."""
    pa, count, yes = pyarrow(), len(fields.at), np.array(fields.units, np.int64)
    if not fields.measured:
        both = row_numbers(np.stack([yes, PROBABILITY - yes], 1).reshape(-1))
        offsets = row_numbers(np.arange(0, 2 * count + 1, 2)).cast(pa.int32())
        form = _names([_FORMS[0]]).take(row_numbers(np.zeros(count, np.int64)))
        return form, pa.ListArray.from_arrays(offsets, both, kind)
    given = [
        fields.measured.get(index, (_FORMS[0], (each, PROBABILITY - each))) for index, each in enumerate(fields.units)
    ]
    forms, numbers = zip(*given, strict=True)
    return _names(forms), array_of_lists(numbers, kind)


def join(parts: list[SegmentColumns]) -> SegmentColumns:
    """Return the columns of consecutive rows from those of their parts, at least one, in log order.

    The list is emptied, and the parts are joined column by column, so that memory holds only one column more than once.
    """
    tables = [[[*table.columns] for table in of_kind] for of_kind in zip(*parts, strict=True)]
    parts.clear()
    return SegmentColumns(*map(_joined_columns, tables, schemas()))


def _joined_columns(parts: list[list[Any]], schema: Any) -> Any:
    """Return the columns of parts joined, as a table, question after question; the parts lose their columns."""
    order, columns = None, []
    if "question" in schema.names:
        order = _question_order(_joined_column([part[schema.names.index("question")] for part in parts]))
    for _ in schema:
        column = _joined_column([part.pop(0) for part in parts])
        columns.append(column if order is None else column.take(order))
    return pyarrow().Table.from_arrays(columns, schema=schema)


def _joined_column(parts: list[Any]) -> Any:
    """Return chunked columns as one array."""
    pa = pyarrow()
    column = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    return column.unify_dictionaries().combine_chunks()


def _by_question(table: Any) -> Any:
    """Return a table question after question."""
    return table.take(_question_order(whole(table["question"])))


def _question_order(column: Any) -> Any:
    """Return the order of rows by the id of their question, so that some questions are read without the others."""
    labels = column.dictionary.to_pylist()
    rank = np.empty(len(labels), np.int64)
    rank[sorted(range(len(labels)), key=labels.__getitem__)] = np.arange(len(labels))
    return row_numbers(np.argsort(rank[numpy_array(column.indices)], kind="stable"))


def _frame(records: Sequence[Recorded]) -> list[Any]:
    said = [recorded.provenance for recorded in records]
    return [
        array_of_integers([recorded.position for recorded in records], pyarrow().int64()),
        _instants([recorded.recorded_at for recorded in records]),
        chosen([recorded.imported is True for recorded in records]),
        chosen([recorded.normal is True for recorded in records]),
        array_of_texts([None if each is UNSET else _encode(each).decode() for each in said]),
        array_of_texts([recorded.command_id for recorded in records]),
        array_of_bytes([bytes.fromhex(recorded.command) for recorded in records], _COMMAND),
    ]


def _forecasts(records: Sequence[Recorded], schema: Any) -> Any:
    """Return the columns of forecasts and withdrawals, question after question in order of ids."""
    made: list[Any] = [recorded.event for recorded in records]
    forms = [_form_of(event) for event in made]
    attested = [getattr(event, "attestation", None) for event in made]
    columns = [
        *_frame(records),
        _names([event.question for event in made]),
        _names([event.participant for event in made]),
        _instants([event.at for event in made]),
        chosen([type(event) is events.ForecastMade for event in made]),
        _names(forms),
        array_of_lists(
            [None if form is None else getattr(event, form) for form, event in zip(forms, made, strict=True)],
            schema.field("numbers").type,
        ),
        _instants([getattr(event, "until", None) for event in made]),
        array_of_texts([None if each is None else _encode(each).decode() for each in attested]),
    ]
    return _by_question(pyarrow().Table.from_arrays(columns, schema=schema))


def _form_of(event: Any) -> str | None:
    """Return the field that has the numbers of a forecast; None of a withdrawal."""
    is_plain = type(event) is events.ForecastMade and event.probabilities
    return _FORMS[0] if is_plain else next((form for form in _FORMS if getattr(event, form, ())), None)


def _has_columns(event: Any) -> bool:
    """Return whether a forecast or a withdrawal has only what the columns of forecasts have."""
    return type(event) is not events.ForecastMade or (event.points is None and event.normalized is None)


def _within_64_bits(event: Any) -> bool:
    sides = (getattr(quote, side) for quote in event.quotes for side in SIDES)
    return all(number is None or -(2**63) <= number < 2**63 for side in sides for number in side)


def _quotes(records: Sequence[Recorded], schema: Any) -> Any:
    """Return the columns of quotes, question after question in order of ids."""
    events_of: list[Any] = [recorded.event for recorded in records]
    quotes = [quote for event in events_of for quote in event.quotes]
    counts = [len(event.quotes) for event in events_of]
    columns = [
        row_numbers(np.repeat(np.array([recorded.position for recorded in records], np.int64), counts)),
        row_numbers([index for count in counts for index in range(count)]).cast(schema.field("place").type),
        _names([quote.question for quote in quotes]),
        *(_lists([getattr(quote, side) for quote in quotes], schema.field(side)) for side in SIDES),
    ]
    return _by_question(pyarrow().Table.from_arrays(columns, schema=schema))


def _lists(numbers: Sequence[Sequence[int | None]], field: Any) -> Any:
    """Return lists of numbers as an array; empty ones are null if the field may be."""
    return array_of_lists([each or None for each in numbers] if field.nullable else numbers, field.type)


def _others(rows: Sequence[tuple[Recorded, str]], schema: Any) -> Any:
    records = [recorded for recorded, _ in rows]
    sealed = [recorded.digest if type(recorded.event) is events.ContestFinalized else None for recorded in records]
    columns = [
        *_frame(records),
        _names([events.TAGS[type(recorded.event)] for recorded in records]),
        _instants([recorded.event.at for recorded in records]),
        array_of_texts([text for _, text in rows]),
        array_of_bytes([None if digest is None else bytes.fromhex(digest) for digest in sealed], _DIGEST),
    ]
    return pyarrow().Table.from_arrays(columns, schema=schema)


def _names(texts: Sequence[str | None]) -> Any:
    """Return texts as a dictionary array; its labels are in order of their first use."""
    return array_of_texts(texts).dictionary_encode()


def _instants(micros: Any) -> Any:
    """Return µs, an array or a list in which None is null, as instants."""
    return array_of_integers(micros, pyarrow().timestamp("us", "UTC"))


AT_ONCE = 1 << 13  # rows, and quotes in them, rebuilt together: more leave the caches of a processor
_OTHERS_AT_ONCE = 1 << 11  # rows, and quotes in them, of other events that are read together, for the same reason
_WITHOUT_EVENT = "the segment has a quote there, and no event of quotes"
_ESCAPED = r'["\\\x00-\x1f]'  # what JSON writes with a backslash
_IS_ESCAPED = np.array([re.fullmatch(_ESCAPED, chr(byte)) is not None for byte in range(256)])
_TYPES = events.TAGS[events.ForecastMade], events.TAGS[events.ForecastWithdrawn]
_event = msgspec.json.Decoder(events.AnyEvent)
# Chains rows: the digest before the first one, and their bytes before and after the digest of the row before each.
Chain = Callable[[str, Sequence[bytes], Sequence[bytes]], tuple[list[bytes], str]]


def with_their_quotes(others: Any, quotes: Any) -> Iterator[tuple[Any, Any]]:
    """Yield pages of other events, and the quotes in each page, for `with_quotes`."""
    position, quotes = integers(others["position"]), _with_quoted_ids(quotes)
    log_order = _log_order(quotes)
    for begin, end, quoted in _pages(position, quotes, log_order, _OTHERS_AT_ONCE):
        yield others.slice(begin, end - begin), quotes.take(row_numbers(quoted)) if len(quoted) else quotes.slice(0, 0)


def rebuild(columns: SegmentColumns, before: Checkpoint, chain: Chain = log.chain_rows) -> Iterator[list[bytes]]:
    """Yield the rows in log order, page by page, as they follow a checkpoint: byte for byte those of the log.

    chain: with `chain_digests`, their digests instead.
    Raises Corrupt at a row whose columns say something else than its bytes, such as another type.
    """
    pa = pyarrow()
    forecasts, others, quotes = map(_with_quoted_ids, columns)
    position = np.concatenate([integers(table["position"]) for table in columns.rows])
    order, previous = log_order(position), before.digest
    for begin, last, quoted in _pages(position[order], quotes, _log_order(quotes)):
        page = order[begin:last]
        typed = page < len(forecasts)
        made, page_others = taken(forecasts, page[typed]), others.slice(0, 0)
        heads, ends = _heads(made), _forecast_ends(made)
        if len(made) < len(page) or len(quoted):  # quotes without an event are refused
            page_others = taken(others, page[~typed] - len(forecasts))
            page_quotes = quotes.take(row_numbers(quoted))
            row_order = row_numbers(np.argsort(np.argsort(~typed, kind="stable"), kind="stable"))
            others_end = joined(*log.event_parts(with_quotes(page_others, page_quotes)["event"]))
            heads = pa.concat_arrays([heads, _heads(page_others)]).take(row_order)
            ends = pa.concat_arrays([ends, others_end]).take(row_order)
        rows, previous = chain(previous, heads.to_pylist(), ends.to_pylist())
        _check_forecasts(made)
        _check_others(page_others)
        yield rows


def _with_quoted_ids(table: Any) -> Any:
    """Return a table in one piece, of which rows are taken quickly, with the ids of its names as JSON."""
    if not len(table):
        return table
    pa, table = pyarrow(), table.combine_chunks()
    for name in {"question", "participant"} & {*table.schema.names}:
        ids = whole(table[name])
        labels = array_of_texts([_encode(label).decode() for label in ids.dictionary.to_pylist()])
        quoted = pa.DictionaryArray.from_arrays(ids.indices, labels)
        table = table.set_column(table.schema.names.index(name), name, quoted)
    return table


def _check_forecasts(made: Any) -> None:
    """Check the columns of which the rows of forecasts and withdrawals are not made. Raises Corrupt."""
    form = whole(made["form"])
    labels = np.array([label in _FORMS for label in form.dictionary.to_pylist()], bool)
    valid = is_valid(form)
    known = ~valid
    known[valid] = labels[numpy_array(form.indices.drop_null())]
    right = known & (numpy_array(whole(made["made"])) == valid)
    if not right.all():
        row = int(right.argmin())
        raise _says_another(made, row, "form" if not known[row] else "made")


def _check_others(others: Any) -> None:
    """Check the columns of which the rows of other events are not made, but for digests. Raises Corrupt."""
    (labels, label), instants = labelled(others["type"]), integers(others["claimed_at"]).tolist()
    types = map(labels.__getitem__, label.tolist())
    for row, (tag, at, text) in enumerate(zip(types, instants, others["event"].to_pylist(), strict=True)):
        if not text.startswith(f'{{"type":"{tag}","at":{at},') and (tag, at) != _type_and_instant(text):
            raise _says_another(others, row, "type or claimed_at")


def sealed_digests(columns: SegmentColumns) -> dict[int, str]:
    """Return the digest that the columns state for each row which finalizes a contest; empty for one without.

    A row of another type is among them if its columns state a digest.
    """
    compute, table = compute_functions(), columns.others
    finalizes = compute.equal(table["type"].cast(pyarrow().string()), text_scalar(_FINALIZED))
    sealed = table.filter(compute.or_(finalizes, compute.is_valid(table["digest"])))
    digests = [b"" if digest is None else digest for digest in sealed["digest"].to_pylist()]
    return {at: digest.hex() for at, digest in zip(integers(sealed["position"]).tolist(), digests, strict=True)}


def _type_and_instant(text: str) -> tuple[str, int]:
    """Return the type and the instant of an event that is not written as this version writes it."""
    try:
        event = _event.decode(text)
    except log.UNREADABLE:  # whoever reads the row says so
        return "", 0
    return events.TAGS[type(event)], event.at


def _says_another(table: Any, row: int, column: str) -> Corrupt:
    return says_another(int(integers(table["position"])[row]), column)


def says_another(position: int, column: str) -> Corrupt:
    """Return the damage that a column states something else than the row."""
    return Corrupt(position, f"the column {column} of the segment says something else than the row", "store")


def _log_order(quotes: Any) -> Any:
    """Return the rows of quotes in log order."""
    return np.lexsort((integers(quotes["place"]), integers(quotes["position"])))


def _pages(position: Any, quotes: Any, log_order: Any, most: int = AT_ONCE) -> Iterator[tuple[int, int, Any]]:
    """Yield the bounds of pages of rows, each of so many rows and quotes or of one row, and the rows of its quotes.

    position: of the rows in log order, shape (n,). Raises Corrupt: a quote is after the last row.
    """
    quoted = integers(quotes["position"])[log_order]
    until = np.searchsorted(quoted, position, "right")  # the number of quotes up to each row
    done, end, used = until + np.arange(1, len(until) + 1), 0, 0
    while (begin := end) < len(until):
        end = max(int(np.searchsorted(done, begin + used + most, "right")), begin + 1)
        yield begin, end, log_order[used : until[end - 1]]
        used = int(until[end - 1])
    if used < len(quoted):
        raise Corrupt(int(quoted[used]), _WITHOUT_EVENT, "store")


def with_quotes(others: Any, quotes: Any) -> Any:
    """Return other events with their quotes, which are in log order.

    Raises Corrupt: a quote is of none of the events, or the places in an event are not 0, 1, 2 and so on.
    """
    if not len(quotes):
        return others
    pa, position = pyarrow(), integers(quotes["position"])
    begins = np.flatnonzero(np.diff(position, prepend=position[0] - 1))
    numbers = np.arange(len(position)) - np.repeat(begins, np.diff(begins, append=len(position)))
    if (misplaced := np.flatnonzero(integers(quotes["place"]) != numbers)).size:
        raise Corrupt(int(position[misplaced[0]]), "the places of its quotes do not go from 0 on", "store")
    ends = row_numbers(np.append(begins, len(position))).cast(pa.int32())
    groups = pa.ListArray.from_arrays(ends, _quote_texts(quotes))
    texts = others["event"].to_pylist()
    rows = {at: row for row, at in enumerate(integers(others["position"]).tolist())}
    for at, text in zip(
        position[begins].tolist(), compute_functions().binary_join(groups, text_scalar(",")).to_pylist(), strict=True
    ):
        if at not in rows:
            raise Corrupt(at, _WITHOUT_EVENT, "store")
        texts[rows[at]] = log.with_quotes(texts[rows[at]], text)
    return others.set_column(others.schema.names.index("event"), "event", array_of_texts(texts))


def _quote_texts(quotes: Any) -> Any:
    """Return the JSON of each quote, whose ids are JSON."""
    sides = {side: number_lists(quotes[side]) for side in SIDES}
    return joined(*log.quote_parts(quotes["question"], sides)).cast(pyarrow().string())


def _heads(table: Any) -> Any:
    """Return the bytes of each row that come before the previous digest."""
    of = {
        "position": table["position"],
        "recorded_at": table["recorded_at"],
        "imported": _either(table["imported"], log.IMPORTED, ""),
        "normal": _either(table["normal"], log.NORMAL, ""),
        "provenance": table["provenance"],
        "command_id": _quoted(table["command_id"]),
        "command": _hexadecimal(table["command"]),
    }
    return joined(*log.head_parts(of))


def _forecast_ends(table: Any) -> Any:
    """Return the bytes of each row of a forecast or withdrawal from the previous digest on; its ids are JSON."""
    of = {
        "type": _either(compute_functions().is_valid(table["form"]), *_TYPES),
        "at": table["claimed_at"],
        "question": table["question"],
        "participant": table["participant"],
        "form": table["form"],
        "numbers": number_lists(table["numbers"]),
        "attestation": table["attestation"],
        "until": table["until"].cast(pyarrow().int64()).cast(pyarrow().string()),
    }
    return joined(*log.forecast_parts(of))


def _either(column: Any, text: str, other: str) -> Any:
    """Return a text where a column is true and another one elsewhere; the text itself if it is the same in all rows."""
    compute = compute_functions()
    if compute.all(column, min_count=0).as_py():
        return text
    return compute.if_else(column, text_scalar(text), text_scalar(other)) if compute.any(column).as_py() else other


def joined(*parts: Any) -> Any:
    """Return the bytes of each row's parts, one after the other; numbers in decimals, instants in µs.

    A part that is a tuple is joined first, and is empty where one of its own parts is missing.
    """
    pa, texts, literal = pyarrow(), list[Any](), ""
    for part in _present(parts):
        if isinstance(part, str):
            literal += part  # texts next to each other are joined once, not in each row
        else:
            texts += [text_scalar(literal), _text(part)]
            literal = ""
    rows = compute_functions().binary_join_element_wise(*texts, text_scalar(literal), text_scalar(""))
    return (whole(rows) if isinstance(rows, pa.ChunkedArray) else rows).cast(pa.binary())


def _present(parts: Sequence[Any]) -> Iterator[Any]:
    """Yield the parts that `joined` joins, without those that no row has; of a tuple that all rows have, its own."""
    for part in parts:
        if not isinstance(part, tuple):
            yield part
        elif columns := [each for each in part if not isinstance(each, str)]:
            if not any(column.null_count for column in columns):
                yield from part
            elif all(column.null_count < len(column) for column in columns):
                yield _optional(*part)


def _optional(*parts: Any) -> Any:
    """Return the joined texts of each row; "" if one is missing."""
    compute = compute_functions()
    return compute.fill_null(compute.binary_join_element_wise(*map(_text, parts), text_scalar("")), text_scalar(""))


def _text(part: Any) -> Any:
    """Return a column, or a text, as pyarrow's functions take it."""
    pa = pyarrow()
    if isinstance(part, str):
        return text_scalar(part)
    if pa.types.is_timestamp(part.type):
        part = part.cast(pa.int64())
    return part.cast(pa.string())


def _quoted(column: Any) -> tuple[Any, ...]:
    """Return texts as JSON, as a part that `joined` takes."""
    column = whole(column)
    odd = compute_functions().match_substring_regex(column, _ESCAPED) if _has_escaped(column) else None
    if odd is None or not compute_functions().any(odd).as_py():
        return '"', column, '"'
    written = array_of_texts([_encode(text).decode() for text in column.filter(odd).to_pylist()])
    plain = compute_functions().binary_join_element_wise(text_scalar('"'), column, text_scalar('"'), text_scalar(""))
    return (compute_functions().replace_with_mask(plain, odd, written),)


def _has_escaped(texts: Any) -> bool:
    """Return whether JSON may write one of some texts with a backslash; texts beside them in memory count too."""
    data = texts.buffers()[2]
    return data is not None and bool(_IS_ESCAPED[np.frombuffer(data, np.uint8)].any())


def _hexadecimal(column: Any) -> Any:
    """Return bytes of fixed length as hexadecimal digits."""
    pa = pyarrow()
    column = whole(column)
    width, size = column.type.byte_width, len(column)
    raw = memoryview(column.buffers()[1])[column.offset * width : (column.offset + size) * width]
    offsets = pa.py_buffer(np.arange(0, 2 * width * (size + 1), 2 * width, dtype=np.int32).tobytes())
    return pa.StringArray.from_buffers(size, offsets, pa.py_buffer(hexlify(raw)))


def number_lists(column: Any) -> Any:
    """Return each list of numbers as JSON without its brackets."""
    pa = pyarrow()
    column = whole(column)
    ends = numpy_array(column.offsets) if len(column) else np.zeros(1, np.int32)
    values = column.values.slice(int(ends[0]), int(ends[-1] - ends[0]))  # of these lists alone
    numbers = compute_functions().fill_null(values.cast(pa.string()), text_scalar("null"))
    offsets = row_numbers(ends - ends[0]).cast(pa.int32())
    texts = pa.ListArray.from_arrays(offsets, numbers, mask=column.is_null())
    return compute_functions().binary_join(texts, text_scalar(","))
