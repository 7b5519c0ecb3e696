"""The rows of a table by blocks, recorded as columns where each is a forecast, or says no more than one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from msgspec import msgpack

from forecast_ledger.ledger.batching.forecasts import ForecastColumns
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.input_locations import InputLocation, ReadCommand
from forecast_ledger.replay.mapping.csv_cells import ROW_NUMBER
from forecast_ledger.replay.mapping.csv_mapping import (
    BoundReader,
    CsvMap,
    CsvMapping,
    map_records,
    read_commands,
    read_header,
)
from forecast_ledger.replay.mapping.csv_reader import (
    LOOKED_AT,
    LeftOut,
    RowCommands,
    SourceRecord,
    first_of_each,
    refuse_falling,
    sort_commands,
)

NumberedRow = tuple[int, SourceRecord]  # the first row has number 1
_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(tuple[int, list[list[str]]]).decode


class RowBlocks:
    """Reads rows by blocks. header: the bytes before the first row. number: of the last line of the blocks done.

    Raises Refused, as `map_records` does, before anything is recorded.
    """

    def __init__(
        self, mapping: CsvMapping, records: Iterator[SourceRecord], *, keep: bool = False, unit: str = "line"
    ) -> None:
        """mapping: one of which each row is a forecast. keep: locations have the bytes of rows. unit: of locations."""
        self._names, self.header = read_header(mapping, records)
        self._forecasts = SentRows(mapping.description, self._names)
        self.reader: Callable[[bytes], ForecastColumns | None] = self._forecasts
        [self._reader] = mapping.readers
        self._keep, self._unit, self.number = keep, unit, 0
        self._needed = [name in mapping.columns for name in self._names]
        self._rows, self._returned = enumerate(map(self._needed_part, records), 1), list[NumberedRow]()
        first = self.take(LOOKED_AT)
        refuse_falling(self.again(first))
        self.give_back(first)

    def _needed_part(self, record: SourceRecord) -> SourceRecord:
        """Return a row with the cells that the map reads and, to keep, its bytes: rows of a block are in memory."""
        line, cells, source = record
        if not all(self._needed) and not isinstance(cells, Refused) and len(cells) == len(self._needed):
            cells = [cell if needed else "" for cell, needed in zip(cells, self._needed, strict=True)]
        return line, cells, source if self._keep else b""

    def take(self, count: int) -> list[NumberedRow]:
        """Return up to this many rows."""
        rows, self._returned = self._returned[:count], self._returned[count:]
        return rows or [*islice(self._rows, count)]

    def give_back(self, rows: Sequence[NumberedRow]) -> None:
        """Take back the newest rows."""
        self._returned[:0] = rows

    def send(self, rows: Sequence[NumberedRow]) -> bytes:
        """Return rows as bytes: the number of the first, and the cells of each; no cells for a row with a fault."""
        return _encode((rows[0][0], _cells(rows)))

    def read(self, rows: Sequence[NumberedRow]) -> ForecastColumns | None:
        """Return the forecasts of the rows; None if one of them may have none, or be refused."""
        return self._forecasts.read(rows[0][0], _cells(rows))

    def again(self, rows: Sequence[NumberedRow]) -> Iterator[ReadCommand]:
        """Return the command or the refusal of each row."""
        by_row = _one_by_one(rows, [self._reader.bound(self._names)], self._names, keep=self._keep)
        return ((location._replace(unit=self._unit), command) for row in by_row for location, command in row.commands)

    def with_locations(self, rows: Sequence[NumberedRow], commands: Sequence[AnyCommand]) -> list[ReadCommand]:
        """Return the commands of a block with their locations."""
        whole = InputLocation(0, self._reader.type, self._reader.field_columns, unit=self._unit)
        return [
            (whole._replace(line=line, records=((line, source),) if self._keep else ()), command)
            for (_, (line, _, source)), command in zip(rows, commands, strict=True)
        ]

    def finish(self, rows: Sequence[NumberedRow], _: Sequence[ReadCommand]) -> None:
        """Count the rows of a block that is done."""
        self.number = rows[-1][1][0]


def _cells(rows: Sequence[NumberedRow]) -> list[list[str]]:
    """Return the cells of each row; none for a row with a fault."""
    return [[] if isinstance(cells, Refused) else cells for _, (_, cells, _) in rows]


class SentRows:
    """Reads the forecasts of rows, in any process."""

    def __init__(self, description: CsvMap, names: list[str]) -> None:
        """description: of a map of which each row is a forecast. names: of the columns."""
        self._given, self._names = (description, names), names
        [self._reader] = CsvMapping(description).readers

    def __reduce__(self) -> tuple[type["SentRows"], tuple[CsvMap, list[str]]]:
        return SentRows, self._given

    def __call__(self, sent: bytes) -> ForecastColumns | None:
        """Return what `read` returns, of rows that were sent."""
        return self.read(*_decode(sent))

    def read(self, first: int, rows: list[list[str]]) -> ForecastColumns | None:
        """Return the forecasts of rows; None if one of them may have none, or be refused. first: the first's number."""
        if {*map(len, rows)} != {len(self._names)}:
            return None
        table = {ROW_NUMBER: [*map(str, range(first, first + len(rows)))]}
        return self._reader.read_columns(
            table | dict(zip(self._names, zip(*rows, strict=True), strict=True)), len(rows)
        )


_BLOCK = 2_000  # rows that are looked at together
_FORECAST = "submit_forecast"
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

    rows: Sequence[NumberedRow]
    cells: Sequence[_Cells | None]
    forecasts: ForecastColumns | None


def _runs(bound: Sequence[BoundReader], header: list[str], rows: Iterator[NumberedRow]) -> Iterator[_Run]:
    [made] = [each for each in bound if each.reader.type == _FORECAST]
    cells_of, seen = _cells_of([each for each in bound if each is not made], header), set[_Cells]()

    def with_cells(row: NumberedRow) -> tuple[bool, _Cells | None, NumberedRow]:
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
    location = _forecast_location(bound)
    for run in runs:
        if run.forecasts is None:
            yield from (each for row in _one_by_one(run.rows, bound, header) for each in row.commands)
        else:
            lines = (line for _, (line, _, _) in run.rows)
            yield from ((location._replace(line=line), each) for line, each in zip(lines, run.forecasts, strict=True))


def _whole_rows(runs: Iterable[_Run], bound: Sequence[BoundReader], header: list[str]) -> Iterator[RowCommands]:
    """Return all commands of each row, by which it is sorted; of those that a row before has said, the same objects."""
    location, around = _forecast_location(bound), dict[_Cells | None, tuple[list[ReadCommand], list[ReadCommand]]]()
    for run in runs:
        if run.forecasts is not None:
            for cells, (_, (line, _, _)), forecast in zip(run.cells, run.rows, run.forecasts, strict=True):
                before, after = around[cells]
                yield RowCommands(line, [*before, (location._replace(line=line), forecast), *after])
            continue
        for cells, row in zip(run.cells, _one_by_one(run.rows, bound, header), strict=True):
            if cells is not None and cells not in around:
                at = next(
                    number for number, (location_, _) in enumerate(row.commands) if location_.command == _FORECAST
                )
                around[cells] = [*row.commands[:at]], [*row.commands[at + 1 :]]
            yield row


def _forecast_location(bound: Sequence[BoundReader]) -> InputLocation:
    [made] = [each for each in bound if each.reader.type == _FORECAST]
    return InputLocation(0, _FORECAST, made.columns[0].field_columns)


def _one_by_one(
    rows: Sequence[NumberedRow], bound: Sequence[BoundReader], header: list[str], *, keep: bool = False
) -> Iterator[RowCommands]:
    """Return the commands of each row, which has one at least: that of its forecast, or a refusal."""
    return read_commands(bound, header, rows, keep=keep, received=lambda _: None, left_out=LeftOut())


def _cells_of(others: Sequence[BoundReader], header: Sequence[str]) -> Callable[[NumberedRow], _Cells | None]:
    """Return the function that returns what a row says to these readers; rows with the same have the same commands.

    It returns None if a row cannot be read, or if one of the readers asks for the number of the row, and applies.
    """
    once = [each for each in others if each.said is not None]
    by_number = [each.reader for each in others if each.said is None]
    used = sorted(set[str]().union(*(each.reader.columns for each in once)))
    if not used or ROW_NUMBER in header or any(reader.columns != {ROW_NUMBER} for reader in by_number):
        return lambda _: None
    cells_of = itemgetter(*map(header.index, used))

    def read(row: NumberedRow) -> _Cells | None:
        number, (_, cells, _) = row
        if isinstance(cells, Refused) or len(cells) != len(header):
            return None
        is_numbered = any(reader.applies({ROW_NUMBER: str(number)}) for reader in by_number)
        return None if is_numbered else cells_of(cells)

    return read


def _columns(header: Sequence[str], rows: Sequence[NumberedRow]) -> dict[str, Sequence[str]]:
    """Return the cells of rows by column, with the numbers of the rows."""
    columns = zip(*(cells for _, (_, cells, _) in rows), strict=True)
    return {**dict(zip(header, columns, strict=True)), ROW_NUMBER: [str(number) for number, _ in rows]}
