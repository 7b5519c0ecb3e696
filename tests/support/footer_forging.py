"""Segments whose Parquet files say something else than their rows: each field changed in several ways, and each byte.

Run by a process of its own, so that its end by a signal is seen: with the arguments FOLDER and EVERY, `run` changes the
files of the segment in a folder in every EVERYth way. It prints each change before it is tried, a line for each that is
accepted and changes what a reader finds, and at the end the number of changes, and of those accepted.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace
from pyarrow import parquet

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.parquet_files import (
    BYTES,
    FALSE,
    INT,
    LIST,
    LONG,
    SHORT,
    STRUCT,
    TRUE,
    Struct,
    read_struct,
    write_struct,
)
from forecast_ledger.ledger.model.log import stated_digest
from forecast_ledger.ledger.segments.segment_columns import rebuild
from forecast_ledger.ledger.segments.segment_files import read_checked, read_columns, read_forecasts
from forecast_ledger.ledger.segments.segment_manifest import Segment, describe_file, read_manifest
from tests.support.late import duckdb, polars

KINDS = ("forecasts", "others", "quotes")
Change = tuple[str, Any]
_LARGEST = {SHORT: 2**15 - 1, INT: 2**31 - 1, LONG: 2**63 - 1}
_MORE: list[
    tuple[int, int, Any]
] = [  # fields that Parquet has and a segment's file does not: the field, kind and value
    (4, LONG, 1),  # distinct_count, or where a column index is
    (5, INT, 9),
    (8, STRUCT, {}),  # encryption
    (9, BYTES, b"x"),
    (10, LONG, 4),  # index_page_offset
    (14, LONG, 4),  # bloom_filter_offset
    (17, STRUCT, {}),
    (99, LONG, 1),  # of a later version of Parquet
]


def parts(data: bytes) -> tuple[bytes, Struct]:
    """Return what a Parquet file has before its footer, and its footer."""
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return data[:begin], read_struct(data[begin:])[0]


def whole(body: bytes, footer: bytes) -> bytes:
    """Return a Parquet file."""
    return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _structs(fields: Struct, path: str) -> Iterator[tuple[str, Struct]]:
    """Yield every struct in a struct, and itself."""
    yield path, fields
    for number, (kind, value) in [*fields.items()]:
        if kind == STRUCT:
            yield from _structs(value, f"{path}.{number}")
        elif kind == LIST and value[0] == STRUCT:
            for place, each in enumerate(value[1]):
                yield from _structs(each, f"{path}.{number}[{place}]")


def _others(kind: int, value: Any) -> list[Any]:
    """Return other values of a kind, and other kinds: pairs of both."""
    if kind in {TRUE, FALSE}:
        return [(TRUE + FALSE - kind, not value)]
    if kind in _LARGEST:
        more = [*{value + 1, value - 1, 0, -1, value * 2, _LARGEST[kind]} - {value}]
        return [*((kind, each) for each in more), (INT if kind == LONG else LONG, value)]
    if kind == BYTES:
        changed = value[:-1] + bytes([value[-1] ^ 1]) if value else b"a"
        return [(kind, each) for each in {b"", changed, b"\0" + value, value + b"\xff", b"zzzzzzzz"} - {value}]
    if kind == LIST:
        of, items = value
        numbers = [each for each in (0, 1, 7) if of in _LARGEST]
        lists = [
            items[:-1],
            items[::-1],
            [*items, *items[-1:]],
            [*items, *numbers],
            [each + 1 for each in items if numbers],
        ]
        return [(kind, (of, each)) for each in lists if each != items]
    return [(STRUCT, {})] if value else []


def changes(footer: Struct) -> Iterator[str]:
    """Make every change of a footer, one at a time, and yield what it is; until the next one the footer has it."""
    for path, fields in _structs(footer, "footer"):
        before = [*fields.items()]
        for number, (kind, value) in before:
            for other in _others(kind, value):
                fields[number] = other
                yield f"{path}.{number} is {str(other)[:60]}"
            del fields[number]
            yield f"{path}.{number} is missing"
            fields.clear()
            fields.update(before)
        for number, kind, value in _MORE:
            if number not in fields:
                fields[number] = kind, value
                yield f"{path}.{number} is new"
                del fields[number]


def forged(data: bytes, every: int) -> Iterator[tuple[str, bytes]]:
    """Yield a file with every change of its footer, then with each byte of the footer changed in three ways.

    every: how many changes from one that is yielded to the next.
    """
    body, footer = parts(data)
    for number, what in enumerate(changes(footer)):
        if number % every == 0:
            yield what, whole(body, write_struct(footer))
    bytes_of = [
        (place, byte) for place in range(len(body), len(data)) for byte in {data[place] ^ 1, data[place] ^ 128, 0}
    ]
    for place, byte in bytes_of[::every]:
        what = f"byte {place - len(body)} of the footer is {byte}"
        yield what, data[:place] + bytes([byte]) + data[place + 1 :]


def others_find(path: Path) -> list[Any]:
    """Return what other readers find in a file: all of it, and the rows with the first value of each column."""
    table = parquet.read_table(path)
    found: list[Any] = [table.schema, table.to_pylist()]
    sql = duckdb.connect()
    found += [sql.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()]
    scan = polars.scan_parquet(path)
    found += [scan.collect().to_dicts()]
    for name in table.column_names:
        value = next((each for each in table[name].to_pylist() if each is not None), None)
        if not isinstance(value, list | None):
            for sign in ("=", "!=", ">", "<="):
                query = f"SELECT * FROM read_parquet(?) WHERE {name} {sign} ?"  # noqa: S608 - our own names
                found.append(sql.execute(query, [str(path), value]).fetchall())
                found.append(
                    parquet.read_table(path, filters=[(name, "==" if sign == "=" else sign, value)]).to_pylist()
                )
            found.append(scan.filter(polars.col(name) == value).collect().to_dicts())
        found.append(sql.execute(f"SELECT count({name}) FROM read_parquet(?)", [str(path)]).fetchall())  # noqa: S608
    return found


def ours_find(folder: Path, segment: Segment) -> Any:
    """Return what this package finds in a segment, as a whole and for some questions."""
    columns = read_columns(folder, segment)
    first, *rest = sorted({*columns.forecasts["question"].to_pylist()})
    of_some = [read_forecasts(folder, segment, questions).to_pylist() for questions in ([first], rest)]
    return [table.to_pylist() for table in columns], of_some


def accepted(folder: Path, segment: Segment) -> bool:
    """Return whether full verification accepts the files of a segment."""
    try:
        columns = read_checked(folder, segment)
        *_, last = (row for page in rebuild(columns, segment.before) for row in page)
    except Corrupt:
        return False
    return stated_digest(last) == segment.digest


def _attempt(read: Any, *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except Exception as error:  # what another reader raises is what it finds
        return repr(type(error))


def main(folder: Path, every: int) -> None:
    """See the module."""
    [segment] = read_manifest(folder).segments
    tried = passed = 0
    for kind in KINDS:
        entry = getattr(segment, kind)
        path = folder / entry.name
        data, right = path.read_bytes(), (others_find(path), ours_find(folder, segment))
        for what, changed in forged(data, every):
            sys.stdout.write(f"trying {kind} {what}\n")
            sys.stdout.flush()
            path.write_bytes(changed)
            now = replace(segment, **{kind: describe_file(path, entry.rows)})
            ours, tried = _attempt(ours_find, folder, now), tried + 1
            if accepted(folder, now):
                passed += 1
                if (_attempt(others_find, path), ours) != right:
                    sys.stdout.write(f"misleads: {kind} {what}\n")
        path.write_bytes(data)
    sys.stdout.write(f"tried {tried}, accepted {passed}\n")


def run() -> None:
    """Forge the files of a copy of the folder that the first argument names; the second is `every`."""
    with TemporaryDirectory() as copy:
        for file in Path(sys.argv[1]).iterdir():
            (Path(copy) / file.name).write_bytes(file.read_bytes())
        main(Path(copy), int(sys.argv[2]))
