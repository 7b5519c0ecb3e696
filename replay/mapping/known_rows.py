"""Rows of which earlier ones have said all but the forecast, such as how their question is opened: read as columns."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.mapping.csv_cells import ROW_NUMBER
from forecast_ledger.replay.mapping.csv_left_out import LeftOut
from forecast_ledger.replay.mapping.csv_mapping import BoundReader, CsvMapping, map_records, read_commands, read_header
from forecast_ledger.replay.mapping.csv_order import first_of_each, refuse_falling
from forecast_ledger.replay.mapping.csv_reader import SourceRecord
from forecast_ledger.replay.writing.command_lines import InputPlace, ReadCommand

_BLOCK = 2_000  # rows that are looked at together
_NumberedRow = tuple[int, SourceRecord]  # the first row has number 1


def commands_once(mapping: CsvMapping, records: Iterator[SourceRecord]) -> Iterator[ReadCommand]:
    """Return the commands that `map_records` returns, each once. Refuses, and raises Refused, as it does.

    Where each row has a forecast, many rows say nothing else that is new, and are read together.
    """
    forecasts = [reader for reader in mapping.readers if reader.is_of_forecasts]
    if mapping.sort or len(forecasts) != 1:
        return map_records(mapping, records, once=True).commands
    header, _ = read_header(mapping, records)
    bound = [reader.bound(header, once=True) for reader in mapping.readers]
    return first_of_each(refuse_falling(_commands(bound, header, enumerate(records, 1))))


def _commands(bound: Sequence[BoundReader], header: list[str], rows: Iterator[_NumberedRow]) -> Iterator[ReadCommand]:
    [made] = [each for each in bound if each.reader.is_of_forecasts]
    is_said = _said_before([each for each in bound if each is not made], header)
    place = InputPlace(0, made.reader.type, made.columns[0].places)
    while block := [*islice(rows, _BLOCK)]:
        for said, several in groupby([(is_said(row), row) for row in block], itemgetter(0)):
            run = [row for _, row in several]
            forecasts = made.reader.read_columns(_columns(header, run), len(run)) if said else None
            if forecasts is not None:
                lines = (line for _, (line, _, _) in run)
                yield from ((place._replace(line=line), each) for line, each in zip(lines, forecasts, strict=True))
                continue
            for row in read_commands(bound, header, run, keep=False, received=lambda _: None, left_out=LeftOut()):
                yield from row.commands


def _said_before(others: Sequence[BoundReader], header: Sequence[str]) -> Callable[[_NumberedRow], bool]:
    """Return the function that says whether a row has nothing for these readers that no row before it has."""
    once = [each for each in others if each.said is not None]
    by_number = [each.reader for each in others if each.said is None]
    used = sorted(set[str]().union(*(each.reader.columns for each in once)))
    if not used or ROW_NUMBER in header or any(reader.columns != {ROW_NUMBER} for reader in by_number):
        return lambda _: False
    cells_of, seen = itemgetter(*map(header.index, used)), set[str | tuple[str, ...]]()

    def is_said(row: _NumberedRow) -> bool:
        number, (_, cells, _) = row
        if isinstance(cells, Refused) or len(cells) != len(header):
            return False
        key = cells_of(cells)
        is_new = key not in seen
        seen.add(key)
        return not is_new and not any(reader.applies({ROW_NUMBER: str(number)}) for reader in by_number)

    return is_said


def _columns(header: Sequence[str], rows: Sequence[_NumberedRow]) -> dict[str, Sequence[str]]:
    """Return the cells of rows by column, with the numbers of the rows."""
    columns = zip(*(cells for _, (_, cells, _) in rows), strict=True)
    return {**dict(zip(header, columns, strict=True)), ROW_NUMBER: [str(number) for number, _ in rows]}
