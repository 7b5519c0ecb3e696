"""The commands that a map makes of a CSV file."""

from typing import IO, Any

from forecast_ledger.replay.mapping.csv_mapping import CsvMapping, MappedCommands, map_records
from forecast_ledger.replay.mapping.csv_reader import read_sources


def read_rows(mapping: CsvMapping, file: IO[bytes], **how: Any) -> MappedCommands:
    """Return what `map_records` makes of a file."""
    return map_records(mapping, read_sources(file, mapping.delimiter, mapping.encoding), **how)
