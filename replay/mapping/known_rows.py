"""Rows of which earlier ones have said all but the forecast, such as how their question is opened: read as columns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from forecast_ledger.ledger.batching.forecasts import ForecastColumns
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.mapping.csv_cells import ROW_NUMBER
from forecast_ledger.replay.mapping.csv_left_out import LeftOut
from forecast_ledger.replay.mapping.csv_mapping import BoundReader, CsvMapping, map_records, read_commands, read_header
from forecast_ledger.replay.mapping.csv_order import RowCommands, first_of_each, refuse_falling, sort_commands
from forecast_ledger.replay.mapping.csv_reader import SourceRecord
from forecast_ledger.replay.writing.command_lines import InputPlace, ReadCommand

_BLOCK = 2_000  # rows that are looked at together
_FORECAST = "submit_forecast"
_NumberedRow = tuple[int, SourceRecord]  # the first row has number 1
_Cells = str | tuple[str, ...]  # what a row says beside its forecast


def commands_once(mapping: CsvMapping, records: Iterator[SourceRecord]) -> Iterator[ReadCommand]:
    """Return the commands that `map_records` returns, each once. Refuses, and raises Refused, as it does.

    Where each row has a forecast, many rows say nothing else that is new, and are read together. If the map sorts, a
    command that several of them have is on the line of the first.
    """
    forecasts = [reader for reader in mapping.readers if reader.type == _FORECAST]
    if len(forecasts) != 1 or not forecasts[0].is_of_forecasts:
        return map_records(mapping, records, once=True).commands
    header, _ = read_header(mapping, records)
    bound = [reader.bound(header, once=True) for reader in mapping.readers]
    runs = _runs(bound, header, enumerate(records, 1))
    if mapping.sort:
        return first_of_each(sort_commands(_whole_rows(runs, bound, header), mapping.sort))
    return first_of_each(refuse_falling(_new_commands(runs, bound, header)))


class _Run(NamedTuple):
    """Rows that follow each other. cells: of each, as `_cells_of` returns them.

    forecasts: of each row, if a row before it has said everything else; None if they are to be read one by one.
    """

    rows: Sequence[_NumberedRow]
    cells: Sequence[_Cells | None]
    forecasts: ForecastColumns | None


def _runs(bound: Sequence[BoundReader], header: list[str], rows: Iterator[_NumberedRow]) -> Iterator[_Run]:
    [made] = [each for each in bound if each.reader.type == _FORECAST]
    cells_of, seen = _cells_of([each for each in bound if each is not made], header), set[_Cells]()

    def with_cells(row: _NumberedRow) -> tuple[bool, _Cells | None, _NumberedRow]:
        cells = cells_of(row)
        is_said = cells in seen
        if cells is not None:
            seen.add(cells)
        return is_said, cells, row

    while block := [*islice(rows, _BLOCK)]:
        for is_said, several in groupby([*map(with_cells, block)], itemgetter(0)):
            _, cells, run = zip(*several, strict=True)
            yield _Run(run, cells, made.reader.read_columns(_columns(header, run), len(run)) if is_said else None)


def _new_commands(runs: Iterable[_Run], bound: Sequence[BoundReader], header: list[str]) -> Iterator[ReadCommand]:
    """Return the commands of rows, without most of those that a row before has said."""
    place = _place_of_forecasts(bound)
    for run in runs:
        if run.forecasts is None:
            yield from (each for row in _one_by_one(run.rows, bound, header) for each in row.commands)
        else:
            lines = (line for _, (line, _, _) in run.rows)
            yield from ((place._replace(line=line), each) for line, each in zip(lines, run.forecasts, strict=True))


def _whole_rows(runs: Iterable[_Run], bound: Sequence[BoundReader], header: list[str]) -> Iterator[RowCommands]:
    """Return all commands of each row, by which it is sorted; of those that a row before has said, the same objects."""
    place, around = _place_of_forecasts(bound), dict[_Cells | None, tuple[list[ReadCommand], list[ReadCommand]]]()
    for run in runs:
        if run.forecasts is not None:
            for cells, (_, (line, _, _)), forecast in zip(run.cells, run.rows, run.forecasts, strict=True):
                before, after = around[cells]
                yield RowCommands(line, [*before, (place._replace(line=line), forecast), *after])
            continue
        for cells, found in zip(run.cells, _one_by_one(run.rows, bound, header), strict=True):
            if cells is not None and cells not in around:
                at = next(number for number, (place_, _) in enumerate(found.commands) if place_.command == _FORECAST)
                around[cells] = [*found.commands[:at]], [*found.commands[at + 1 :]]
            yield found


def _place_of_forecasts(bound: Sequence[BoundReader]) -> InputPlace:
    [made] = [each for each in bound if each.reader.type == _FORECAST]
    return InputPlace(0, _FORECAST, made.columns[0].places)


def _one_by_one(rows: Sequence[_NumberedRow], bound: Sequence[BoundReader], header: list[str]) -> Iterator[RowCommands]:
    """Return the commands of each row, which has one at least: that of its forecast, or a refusal."""
    return read_commands(bound, header, rows, keep=False, received=lambda _: None, left_out=LeftOut())


def _cells_of(others: Sequence[BoundReader], header: Sequence[str]) -> Callable[[_NumberedRow], _Cells | None]:
    """Return the function that returns what a row says to these readers; rows with the same have the same commands.

    It returns None if a row cannot be read, or if one of the readers asks for the number of the row, and applies.
    """
    once = [each for each in others if each.said is not None]
    by_number = [each.reader for each in others if each.said is None]
    used = sorted(set[str]().union(*(each.reader.columns for each in once)))
    if not used or ROW_NUMBER in header or any(reader.columns != {ROW_NUMBER} for reader in by_number):
        return lambda _: None
    cells_of = itemgetter(*map(header.index, used))

    def read(row: _NumberedRow) -> _Cells | None:
        number, (_, cells, _) = row
        if isinstance(cells, Refused) or len(cells) != len(header):
            return None
        is_numbered = any(reader.applies({ROW_NUMBER: str(number)}) for reader in by_number)
        return None if is_numbered else cells_of(cells)

    return read


def _columns(header: Sequence[str], rows: Sequence[_NumberedRow]) -> dict[str, Sequence[str]]:
    """Return the cells of rows by column, with the numbers of the rows."""
    columns = zip(*(cells for _, (_, cells, _) in rows), strict=True)
    return {**dict(zip(header, columns, strict=True)), ROW_NUMBER: [str(number) for number, _ in rows]}
