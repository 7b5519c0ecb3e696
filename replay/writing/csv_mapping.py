"""Commands from a CSV file, with a map in TOML that describes its columns."""

import tomllib
from collections.abc import Iterator
from decimal import Decimal
from typing import IO, Any, NamedTuple, get_args

import msgspec
from msgspec import Struct, structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand, malformed_refusal
from forecast_ledger.replay.writing.append import InputPlace, ReadCommand
from forecast_ledger.replay.writing.csv_cells import (
    ROW_NUMBER,
    CellFormat,
    CsvRow,
    FieldValue,
    field_value,
    parse_template,
)
from forecast_ledger.replay.writing.csv_reader import SourceRecord, read_sources

COMMAND_TYPES: dict[str, type[AnyCommand]] = {kind.__struct_config__.tag: kind for kind in get_args(AnyCommand)}


class CommandMap(Struct, frozen=True, forbid_unknown_fields=True):
    """The description of one command of a row in a map.

    where: column -> the texts allowed; present: columns that must not be empty; a row that fails either has no such
    command. id: a template. fields: for each field a template, a constant, or a description as in `CellFormat`.
    """

    type: str
    id: str
    fields: dict[str, Any]
    where: dict[str, str | list[str]] = {}
    present: list[str] = []


class CsvMap(Struct, frozen=True, forbid_unknown_fields=True):
    """A map as it is written. instant, offset: the defaults for all fields that are instants."""

    command: list[CommandMap]
    delimiter: str = ","
    instant: str = ""
    offset: str = ""


class CommandReader:
    """Reads one command from each row, as a map describes it."""

    def __init__(self, description: CommandMap, path: str, usual: CellFormat) -> None:
        """Refuses: bad_map."""
        if description.type not in COMMAND_TYPES:
            raise Refused(
                "bad_map",
                f"{path}.type",
                description.type,
                f"no such command; the commands are {', '.join(COMMAND_TYPES)}",
            )
        self.type, self._kind = description.type, COMMAND_TYPES[description.type]
        _check_fields(description, f"{path}.fields", self._kind)
        self._values: dict[str, FieldValue] = {"id": parse_template(description.id, "id")}
        needed = {field.name: _needed_parts(field.type) for field in structs.fields(self._kind)}
        self._values |= {
            field: field_value(part, field, usual, needed[field]) for field, part in description.fields.items()
        }
        self._where = {
            column: {texts} if isinstance(texts, str) else {*texts} for column, texts in description.where.items()
        }
        self._present = description.present
        self.columns = {*self._where, *self._present}.union(*(value.columns for value in self._values.values()))
        self.places = {field: [*dict.fromkeys(value.columns)] for field, value in self._values.items()}

    def applies(self, row: CsvRow) -> bool:
        """Return whether the row has a command of this kind."""
        return all(row[column] for column in self._present) and all(
            row[column] in texts for column, texts in self._where.items()
        )

    def read(self, row: CsvRow) -> AnyCommand | Refused:
        """Return the command, or the refusal if the row does not have a valid one."""
        try:
            fields = {field: value.read(row) for field, value in self._values.items()}
            given = {field: part for field, part in fields.items() if part is not None}
            return msgspec.convert(given, self._kind, strict=False)
        except Refused as refused:
            return refused
        except msgspec.ValidationError as error:
            return malformed_refusal(error, "")


class CsvMapping:
    """A map that has been read and checked."""

    def __init__(self, description: CsvMap) -> None:
        """Refuses: bad_map."""
        if len(description.delimiter) != 1 or description.delimiter in '"\r\n':
            raise Refused(
                "bad_map",
                "delimiter",
                description.delimiter,
                "use one character, not a quotation mark or a line break",
            )
        usual = CellFormat("", instant=description.instant, offset=description.offset)
        self.delimiter = description.delimiter
        self.readers = [
            CommandReader(part, f"command[{number}]", usual) for number, part in enumerate(description.command)
        ]
        if not self.readers:
            raise Refused("bad_map", "command", None, "a map needs at least one [[command]]")
        self.columns = set().union(*(reader.columns for reader in self.readers))

    def check(self, header: list[str]) -> None:
        """Refuses: bad_csv (a column is missing, or appears twice)."""
        for column in sorted(self.columns):
            if column == ROW_NUMBER and column not in header:
                continue
            if header.count(column) != 1:
                fault = "appears twice" if column in header else f"is missing; the columns are: {', '.join(header)}"
                raise Refused("bad_csv", "column", column, f"the column {fault}")


def parse_map(text: bytes) -> CsvMapping:
    """Read a map. Refuses, first that applies: bad_map."""
    try:
        description = msgspec.convert(tomllib.loads(text.decode("utf-8-sig"), parse_float=Decimal), CsvMap)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$.")
        raise Refused("bad_map", path.rstrip("`"), None, message) from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or a number with more digits than Python reads
        raise Refused("bad_map", "", None, f"not TOML: {error}") from None
    return CsvMapping(description)


class MappedCommands(NamedTuple):
    """The commands of a CSV. header: the bytes before the first row; commands: those of each row, with their places."""

    header: bytes
    commands: Iterator[ReadCommand]


def read_rows(mapping: CsvMapping, file: IO[bytes]) -> MappedCommands:
    """Return the commands of each row, with their places.

    A row with another number of cells than the header is refused; a row that cannot be read is refused and is the last.
    Refuses, first that applies: bad_csv, unmapped_value. Raises Refused (bad_csv), before anything else is read, if the
    header does not match the map.
    """
    rows = read_sources(file, mapping.delimiter)
    _, header, source = next(rows, (1, Refused("bad_csv", "", None, "the file is empty"), b""))
    if isinstance(header, Refused):
        raise header
    mapping.check(header)
    return MappedCommands(source, _read_commands(mapping, header, rows))


def _read_commands(mapping: CsvMapping, header: list[str], rows: Iterator[SourceRecord]) -> Iterator[ReadCommand]:
    numbered = ROW_NUMBER in mapping.columns - {*header}
    for number, (line, cells, source) in enumerate(rows, 1):
        if isinstance(cells, Refused) or len(cells) != len(header):
            refused = cells if isinstance(cells, Refused) else _wrong_length(cells, header)
            yield InputPlace(line, source=source), refused
            continue
        row = dict(zip(header, cells, strict=True))
        if numbered:
            row[ROW_NUMBER] = str(number)
        for reader in mapping.readers:
            if reader.applies(row):
                yield InputPlace(line, reader.type, reader.places, source=source), reader.read(row)


def _wrong_length(cells: list[str], header: list[str]) -> Refused:
    return Refused("bad_csv", "", None, f"the row has {len(cells)} cells, the header has {len(header)}")


def _check_fields(description: CommandMap, path: str, kind: type[AnyCommand]) -> None:
    fields = {field.name: field.required for field in structs.fields(kind) if field.name != "id"}
    for name in description.fields:
        if name not in fields:
            raise Refused("bad_map", f"{path}.{name}", None, f"no such field; the fields are: {', '.join(fields)}")
    for name, required in fields.items():
        if required and name not in description.fields:
            raise Refused("bad_map", f"{path}.{name}", None, f"{description.type} needs this field")


def _needed_parts(kind: Any) -> set[str]:
    """Return the parts that an object must have, if a field of this type takes one."""
    found = [each for each in (kind, *get_args(kind)) if isinstance(each, type) and issubclass(each, Struct)]
    return {part.name for each in found for part in structs.fields(each) if part.required}
