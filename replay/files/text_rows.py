"""The rows of a text file from columns: numbers and ids are joined as rows of characters, many at once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.projections.core.arrays import BoolArray
from forecast_ledger.projections.core.columns import (
    Ids,
    Values,
    all_missing,
    printed_characters,
    row_count,
    slice_rows,
    used_ids,
    written_values,
)
from forecast_ledger.projections.core.number_texts import (
    Characters,
    join_characters,
    join_parts,
    lines,
    text_characters,
)
from forecast_ledger.projections.core.table import Table

_AT_ONCE = 4_096  # rows written together
_MANY = 64  # rows that are faster written together

Part = Characters | bytes | list[str]  # some cells of a column, or of each the same part; bytes are those of all cells


class Cells(NamedTuple):
    """How the cells of a column are written.

    write: from printed values. around, missing: of a number, what is before and after its text, and what is written
    where it is missing; None if only `write` writes it.
    """

    write: Callable[[list[Any]], list[str]]
    around: bytes | None = None
    missing: bytes = b""


def text_rows(table: Table, cells: Sequence[Cells], before: Sequence[bytes], end: bytes) -> Iterator[bytes]:
    """Yield the rows of a table as text in UTF-8, some at a time.

    cells, before: of each column, how it is written, and what is before each of its cells. end: of a row.
    """
    columns = zip(table.values, table.columns, cells, strict=True)
    written = [_written(values, column.kind, how) for values, column, how in columns]
    for begin in range(0, len(table), _AT_ONCE):
        rows = slice(begin, min(begin + _AT_ONCE, len(table)))
        parts = [(text, *page(rows)) for text, page in zip(before, written, strict=True)]
        yield _joined([*chain.from_iterable(parts)], end, rows.stop - begin)


def _written(values: Values, kind: str, cells: Cells) -> Callable[[slice], Sequence[Part]]:
    """Return a function that returns some cells of a column; each id of the table is written once."""
    if not isinstance(values, Ids):
        return lambda rows: _written_page(slice_rows(values, rows), kind, cells)
    codes, labels = used_ids(values)
    texts = cells.write([*labels])
    characters = text_characters(texts) if len(codes) > _MANY else None
    if characters is not None:
        return lambda rows: [characters.take(codes[rows], axis=0)]
    return lambda rows: [[*map(texts.__getitem__, codes[rows].tolist())]]


def _written_page(values: Values, kind: str, cells: Cells) -> Sequence[Part]:
    if all_missing(values):
        return [cells.write([None])[0].encode()]
    is_many = row_count(values) > _MANY
    if is_many and cells.around is not None and (printed := printed_characters(values, kind)) is not None:
        characters, is_there = printed
        if is_there.all():
            return cells.around, characters, cells.around
        return [
            _with_missing(join_parts([cells.around, characters, cells.around], len(values)), is_there, cells.missing)
        ]
    if kind in {"id", "text"} and isinstance(values, list):
        return [cells.write(values)]
    return [written_values(values, kind, cells.write)]


def _with_missing(characters: Characters, is_there: BoolArray, missing: bytes) -> Characters:
    """Return characters with those of a missing value where it is."""
    cells = np.zeros((len(characters), max(characters.shape[1], len(missing))), np.uint8)
    cells[is_there, : characters.shape[1]] = characters[is_there]
    cells[~is_there, : len(missing)] = np.frombuffer(missing, np.uint8)
    return cells


def _joined(parts: Sequence[Part], end: bytes, count: int) -> bytes:
    """Return the text of rows, each made of parts. end: of a row."""
    run, columns = list[Characters | bytes](), list[Iterable[str]]()
    for part in parts:
        if isinstance(part, list):
            columns += [_lines(run, count), part]
            run = []
        else:
            run.append(part)
    if not columns:
        return join_characters([*run, end], count)
    return "".join(chain.from_iterable(zip(*columns, _lines(run, count), repeat(end.decode())))).encode()


def _lines(run: Sequence[Characters | bytes], count: int) -> Iterable[str]:
    """Return the text of each row of a run of parts, none of which has the end of a line."""
    texts = [part for part in run if isinstance(part, bytes)]
    if len(texts) == len(run):
        return repeat(b"".join(texts).decode(), count)
    return lines(join_parts(run, count))
