"""The rows of a CSV or Parquet file by blocks, which are recorded as columns where each row is a forecast."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from forecast_ledger.ledger.batching.forecast_columns import ForecastColumns
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.replay.mapping.csv_cells import ROW_NUMBER
from forecast_ledger.replay.mapping.csv_mapping import CsvMapping, read_commands, read_header
from forecast_ledger.replay.mapping.csv_order import LOOKED_AT, refuse_falling
from forecast_ledger.replay.mapping.csv_reader import SourceRecord
from forecast_ledger.replay.writing.append import InputPlace, ReadCommand


class RowBlocks:
    """Reads rows by blocks. header: the bytes before the first row. number: of the last line of the blocks done.

    Raises Refused, as `map_records` does, before anything is recorded.
    """

    def __init__(
        self, mapping: CsvMapping, records: Iterator[SourceRecord], *, keep: bool = False, unit: str = "line"
    ) -> None:
        """mapping: one of which each row is a forecast. keep: places have the bytes of rows. unit: of places."""
        self._names, self.header = read_header(mapping, records)
        [self._reader] = mapping.readers
        self._keep, self._unit, self._rows, self.number = keep, unit, 0, 0
        self._needed = [name in mapping.columns for name in self._names]
        needed = map(self._needed_part, records)
        first = [*islice(needed, LOOKED_AT)]
        refuse_falling(self.again(first))
        self._records = chain(first, needed)

    def _needed_part(self, record: SourceRecord) -> SourceRecord:
        """Return a row with the cells that the map reads and, to keep, its bytes: rows of a block are in memory."""
        line, cells, source = record
        if not all(self._needed) and not isinstance(cells, Refused) and len(cells) == len(self._needed):
            cells = [cell if needed else "" for cell, needed in zip(cells, self._needed, strict=True)]
        return line, cells, source if self._keep else b""

    def take(self, count: int) -> list[SourceRecord]:
        """Return up to this many rows."""
        return [*islice(self._records, count)]

    def read(self, rows: Sequence[SourceRecord]) -> ForecastColumns | None:
        """Return the forecasts of the rows; None if one of them may have none, or be refused."""
        cells = [cells for _, cells, _ in rows if not isinstance(cells, Refused)]
        if len(cells) < len(rows) or {*map(len, cells)} != {len(self._names)}:
            return None
        numbers = map(str, range(self._rows + 1, self._rows + len(rows) + 1))
        table = {ROW_NUMBER: [*numbers]} | dict(zip(self._names, zip(*cells, strict=True), strict=True))
        return self._reader.read_columns(table, len(rows))

    def again(self, rows: Sequence[SourceRecord]) -> Iterator[ReadCommand]:
        """Return the command or the refusal of each row."""
        readers, numbered = [(self._reader, None)], enumerate(rows, self._rows + 1)
        found = read_commands(readers, self._names, numbered, keep=self._keep, received=_never)
        return ((place._replace(unit=self._unit), command) for row in found for place, command in row.commands)

    def placed(self, rows: Sequence[SourceRecord], commands: Sequence[AnyCommand]) -> list[ReadCommand]:
        """Return the commands of a block with their places."""
        whole = InputPlace(0, self._reader.type, self._reader.places, unit=self._unit)
        return [
            (whole._replace(line=line, records=((line, source),) if self._keep else ()), command)
            for (line, _, source), command in zip(rows, commands, strict=True)
        ]

    def finish(self, rows: Sequence[SourceRecord], _: Sequence[ReadCommand]) -> None:
        """Count the rows of a block that is done."""
        self.number, self._rows = rows[-1][0], self._rows + len(rows)


def _never(_: object) -> None:
    """The time at which a row was received, which is not given."""
