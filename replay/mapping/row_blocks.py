"""The rows of a CSV or Parquet file by blocks, which are recorded as columns where each row is a forecast."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from msgspec import msgpack

from forecast_ledger.ledger.batching.forecasts import ForecastColumns
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.replay.mapping.csv_cells import ROW_NUMBER
from forecast_ledger.replay.mapping.csv_left_out import LeftOut
from forecast_ledger.replay.mapping.csv_mapping import (
    CsvMap,
    CsvMapping,
    read_commands,
    read_header,
)
from forecast_ledger.replay.mapping.csv_order import LOOKED_AT, refuse_falling
from forecast_ledger.replay.mapping.csv_reader import SourceRecord
from forecast_ledger.replay.writing.command_lines import InputPlace, ReadCommand

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
        """mapping: one of which each row is a forecast. keep: places have the bytes of rows. unit: of places."""
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
        found = read_commands(
            [self._reader.bound(self._names)],
            self._names,
            rows,
            keep=self._keep,
            received=_never,
            left_out=LeftOut(),
        )
        return ((place._replace(unit=self._unit), command) for row in found for place, command in row.commands)

    def placed(self, rows: Sequence[NumberedRow], commands: Sequence[AnyCommand]) -> list[ReadCommand]:
        """Return the commands of a block with their places."""
        whole = InputPlace(0, self._reader.type, self._reader.places, unit=self._unit)
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


def _never(_: object) -> None:
    """The time at which a row was received, which is not given."""
