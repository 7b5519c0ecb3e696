"""Commands from a CSV file, with a map in TOML that describes its columns."""

import heapq
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import msgspec
from msgspec import Struct, structs

from forecast_ledger.ledger.batching.forecasts import ForecastColumns
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import in_list
from forecast_ledger.ledger.core.values import is_instant, read_instant
from forecast_ledger.ledger.model.commands import (
    AnyCommand,
    ResolveQuestion,
    SubmitForecast,
    malformed_refusal,
    with_recorded_rules,
)
from forecast_ledger.ledger.model.input_locations import InputLocation, ReadCommand
from forecast_ledger.ledger.model.provenance import NAMES as PROVENANCE_NAMES
from forecast_ledger.replay.mapping.csv_cells import (
    ROW_NUMBER,
    UNRESOLVED,
    CellFormat,
    CsvRow,
    CsvTable,
    FieldValue,
    Normalize,
    field_value,
    normalized,
    number_of,
    or_left_out,
    parse_template,
    within_of,
)
from forecast_ledger.replay.mapping.csv_columns import (
    CELL,
    CellCondition,
    ChosenColumn,
    Group,
    GroupedRows,
    LongField,
    WideColumns,
    cell_test,
    columns_by_field,
    is_part,
)
from forecast_ledger.replay.mapping.csv_reader import (
    RECEIVED,
    LeftOut,
    RowCommands,
    SourceRecord,
    first_of_each,
    is_byte_encoding,
    refuse_falling,
    sort_commands,
    with_value_maps,
)
from forecast_ledger.replay.mapping.csv_texts import InstantFormat, instant_reader
from forecast_ledger.replay.mapping.map_parts import (
    check_names,
    fields_of,
    is_long,
    is_optional_list,
    needed_parts,
    read_part,
    unknown_name,
    with_path,
)

NOTHING = "the map makes no command of the row, which has no forecast and no answer"
_NAME = re.compile(r"[\w.-]{1,40}")  # of a source
_SAID = {"probability", "probabilities", "cdf", "quantiles", "samples", "points", "outcome", "value", "payouts"}
_FORECAST_FIELDS = {"id", "question", "participant", "probability"}
_FORMATS = CellFormat.__struct_encode_fields__
COMMAND_TYPES: dict[str, type[AnyCommand]] = {kind.__struct_config__.tag: kind for kind in get_args(AnyCommand)}


class CommandMap(Struct, frozen=True, forbid_unknown_fields=True):
    """The description of one command of a row in a map.

    where: column -> the texts allowed, or a condition; present: columns that must not be empty; above: column -> a
    template of a number that its own is above; a row that fails any of these has no such command. id: a template.
    fields: for each field a template, a constant, or a description as in `CellFormat`. group: rows with the same cells
    in these columns are one command; one of its fields is described as in `LongFormat`. columns: names of columns, or a
    condition on them; each such column of a row has a command, in which `#cell`, `#column` and `#1` are of this column.
    normalize: how far the sum of the probabilities may be from 1, by which they are then divided; with the field
    `normalized`, by the ledger, which records both.
    """

    type: str
    id: str
    fields: dict[str, Any]
    where: dict[str, Any] = {}
    present: list[str] = []
    above: dict[str, str | int] = {}
    group: list[str] = []
    columns: str | list[str] | CellCondition | None = None
    normalize: Normalize | None = None


class CsvMap(Struct, frozen=True, forbid_unknown_fields=True):
    """A map as it is written.

    encoding: of the file; "" for UTF-8. sheet: of a workbook; "" for its only one. instant, offset, zone: the defaults
    for all fields that are instants. sort: one of these. source: the name of the source of which each file is a copy;
    "" if files are not compared with those before them.
    """

    command: list[CommandMap]
    delimiter: str = ","
    encoding: str = ""
    sheet: str = ""
    instant: str = ""
    offset: str = ""
    zone: str = ""
    sort: str = ""
    source: str = ""


class CommandReader:
    """Reads one command from each row, as a map describes it."""

    def __init__(self, description: CommandMap, path: str, usual: CellFormat, *, is_copy: bool = False) -> None:
        """Refuses: bad_map. is_copy: whether a forecast without a value is none, because the file is a copy."""
        if description.type not in COMMAND_TYPES:
            detail = unknown_name(description.type, COMMAND_TYPES, "command")
            raise Refused("bad_map", f"{path}.type", description.type, detail)
        self.type, self._kind = description.type, COMMAND_TYPES[description.type]
        _check_fields(description, f"{path}.fields", self._kind)
        fields = {field.name: field for field in fields_of(self._kind)}
        long = [name for name, part in description.fields.items() if description.group and is_long(part)]
        if bool(description.group) != (len(long) == 1):
            raise Refused("bad_map", f"{path}.group", None, "a group needs one field that has `level` and `value`")
        self._values: dict[str, FieldValue] = {"id": with_path(path, lambda: parse_template(description.id, "id"))}
        self._long = None
        for name, part in description.fields.items():
            kind = fields[name].type
            if name in long:
                read_long = partial(LongField, part, name, kind, usual, is_copy=is_copy)
                self._long = with_path(f"{path}.fields", read_long)
                continue
            check_names(part, name, kind, _FORMATS, f"{path}.fields.{name}")
            missing = UNRESOLVED if self._kind is ResolveQuestion and name in _SAID else frozenset[str]()
            read_value = partial(field_value, part, name, usual, needed_parts(kind), missing)
            value = with_path(f"{path}.fields", read_value)
            self._values[name] = or_left_out(value) if is_optional_list(self._kind, fields[name]) else value
        self._group = description.group
        self._where = {
            column: cell_test(wanted, column, f"{path}.where.{column}") for column, wanted in description.where.items()
        }
        self._present = description.present
        self._above = {
            column: parse_template(str(than), f"{path}.above.{column}") for column, than in description.above.items()
        }
        said = {name: value for name, value in self._values.items() if name in _SAID}
        is_comparable = self._kind is ResolveQuestion or (self._kind is SubmitForecast and is_copy and not long)
        self._says = {*said} if is_comparable and all(value.columns for value in said.values()) else set[str]()
        self._within = within_of(description.normalize, description.fields, f"{path}.normalize")
        self._reads = [(field, value.read) for field, value in self._values.items()]
        self.columns = {*self._where, *self._present, *self._group, *self._above}
        self.columns |= {column for than in self._above.values() for column in than.columns}
        self.columns |= {column for value in self._values.values() for column in value.columns}
        self.field_columns = {field: [*dict.fromkeys(value.columns)] for field, value in self._values.items()}
        if self._long is not None:
            self.columns |= {*self._long.columns}
            self.field_columns[self._long.field] = [*dict.fromkeys(self._long.columns)]
        self.wide = None if description.columns is None else self._wide(description.columns, description, path)
        self.reads_cell = self.wide is not None and CELL in self.columns
        self._skips_empty = self.reads_cell and CELL not in self._where
        self._is_of_every_row = not (self._where or self._present or self._above or self._skips_empty)
        self.columns -= self.wide.parts if self.wide is not None else set()

    def _wide(self, columns: str | list[str] | CellCondition, description: CommandMap, path: str) -> WideColumns:
        """Return the columns that each give a command. Refuses: bad_map."""
        wide = WideColumns(columns, f"{path}.columns", self.columns)
        if not any(map(is_part, [*self._values["id"].columns, *description.group])):
            detail = "all columns of a row would have one id; use {#column} or, of a pattern with a group, {#1}"
            raise Refused("bad_map", f"{path}.id", description.id, detail)
        return wide

    def columns_in(self, header: Sequence[str]) -> list[ChosenColumn]:
        """Return the columns of a header that each give a command; one without a name if it is of the row.

        Refuses: bad_csv, as `WideColumns.chosen` does.
        """
        if self.wide is None:
            return [ChosenColumn("", {}, self.field_columns)]
        return [
            ChosenColumn(name, parts, columns_by_field(name, self.wide.parts, self.field_columns))
            for name, parts in self.wide.chosen(header).items()
        ]

    def applies(self, row: CsvRow) -> bool:
        """Return whether the row has a command of this kind.

        Refuses: bad_csv (a cell is too long for a pattern), bad_number (no number to compare).
        """
        return self._is_of_every_row or (
            not (self._skips_empty and not row[CELL])
            and all(row[column] for column in self._present)
            and all(test(row[column]) for column, test in self._where.items())
            and all(_is_above(row, column, than) for column, than in self._above.items())
        )

    @property
    def is_of_forecasts(self) -> bool:
        """Whether every row is a forecast of a probability, which `read_columns` can read."""
        odd = [value for value in self._values.values() if value.columns and value.read_column is None]
        is_whole = (
            self._is_of_every_row
            and self._long is None
            and self.wide is None
            and self._values.keys() - {"at"} == _FORECAST_FIELDS
        )
        return self._kind is SubmitForecast and is_whole and not odd

    def read_columns(self, table: CsvTable, rows: int) -> ForecastColumns | None:
        """Return the forecasts of several rows; None if one of them may have none, or be refused."""
        columns = {}
        try:
            for field, value in self._values.items():
                column = value.read_column(table) if value.read_column is not None else [value.read({})] * rows
                if column is None or (field != "probability" and {*map(type, column)} != {str}):
                    return None
                columns[field] = column
        except Refused:
            return None
        return ForecastColumns(**columns)

    def bound(self, header: Sequence[str], *, once: bool = False) -> "BoundReader":
        """Return the reader for rows with this header. once: rows with the same cells are read once."""
        groups = None if self._long is None else GroupedRows(self._group, self._values, self._long)
        repeats = self._kind is not SubmitForecast and ROW_NUMBER not in self.columns
        is_held = once and repeats and groups is None and self.wide is None
        return BoundReader(self, self.columns_in(header), groups, {} if is_held else None)

    def read_group(self, group: Group, whole: list[Any] | dict[str, Any] | Refused) -> ReadCommand:
        """Return the command of a group, whose field that is put together is this or a refusal."""
        others = len({item.line for item in group.items} - {group.line})
        location = InputLocation(group.line, self.type, group.field_columns, others=others, records=group.records)
        location = location._replace(recorded_at=group.recorded_at)
        known = {} if self._long is None else {self._long.field: whole}
        read = whole if isinstance(whole, Refused) else self.read(group.first, known)
        return location, Refused("no_command", detail=NOTHING) if read is None else read

    def read(self, row: CsvRow, known: Mapping[str, Any] = MappingProxyType({})) -> AnyCommand | Refused | None:
        """Return the command, or the refusal if the row does not have a valid one. known: fields that are read.

        It is None if all cells of the answer are empty, or, of a copy, of the forecast.
        """
        try:
            given = {field: part for field, read in self._reads if (part := read(row)) is not None}
            given |= {field: part for field, part in known.items() if part is not None}
            if self._says and self._says.isdisjoint(given):
                return None
            if self._within is not None and isinstance(given.get("probabilities"), dict):
                divided = normalized(given["probabilities"], self._within)
                if "normalized" not in given:  # otherwise the ledger divides them, and records both
                    given["probabilities"] = divided
            if "at" in self._values and "at" not in given:  # a row that has lost it is not of now
                raise Refused("bad_instant", "at", "", "the map has a column for it, and the row has nothing there")
            return with_recorded_rules(msgspec.convert(given, self._kind, strict=False))
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
        if description.encoding and not is_byte_encoding(description.encoding):
            detail = "no encoding of text that is known here and writes ASCII as it is"
            remedy = "use one such as cp1252, latin-1 or mac_roman, or convert the file to UTF-8"
            raise Refused("bad_map", "encoding", description.encoding, detail, remedy=remedy)
        usual = CellFormat("", instant=description.instant, offset=description.offset, zone=description.zone)
        self.description, self.delimiter, self.encoding = description, description.delimiter, description.encoding
        self.instants = InstantFormat(description.instant, description.offset, description.zone)
        instant_reader(self.instants, "")  # a fault of the whole map is reported there, not in each field
        self.readers = [
            CommandReader(part, f"command[{number}]", usual, is_copy=bool(description.source))
            for number, part in enumerate(description.command)
        ]
        if not self.readers:
            raise Refused("bad_map", "command", None, "a map needs at least one [[command]]")
        self.columns = set().union(*(reader.columns for reader in self.readers))
        self.sort = description.sort
        if description.source:
            self.sort = _check_source(description)
        for part in description.command if self.sort not in {"", RECEIVED} else ():
            if not is_instant(self.sort) or self.sort not in part.fields:
                detail = f"sort needs a field that is an instant, such as at, in every command; {part.type} lacks it"
                raise Refused("bad_map", "sort", self.sort, detail)

    @property
    def is_of_forecasts(self) -> bool:
        """Whether each row is a forecast of a probability, recorded in the order of the rows."""
        return len(self.readers) == 1 and self.readers[0].is_of_forecasts and not self.sort

    def reads(self, column: str) -> bool:
        """Return whether a column of a file is used."""
        return column in self.columns or any(reader.wide.reads(column) for reader in self.readers if reader.wide)

    def check(self, header: list[str], recorded_at: str) -> None:
        """Refuses: bad_map (it sorts by a time that is not given), bad_csv (a column is missing, or appears twice).

        recorded_at: the column that says when a row was received, "" if there is none.
        """
        wide = {column.name for reader in self.readers if reader.wide for column in reader.columns_in(header)}
        if self.sort == RECEIVED and not recorded_at:
            raise Refused("bad_map", "sort", RECEIVED, "name the column of these times with --recorded-at")
        for column in sorted(self.columns | wide | ({recorded_at} if recorded_at else set())):
            if column == ROW_NUMBER and column not in header:
                continue
            if header.count(column) != 1:
                fault = "appears twice" if column in header else f"is missing; the columns are: {in_list(header)}"
                if column not in header and is_part(column):
                    fault = "is missing; only a command that has `columns` in the map can use it without such a column"
                if not column and column in header:
                    fault = "has no name, as others; name it, or leave such columns out by `empty = false` in `columns`"
                raise Refused("bad_csv", "column", column, f"the column {fault}")


def parse_map(text: bytes, folder: Path | None = None) -> CsvMapping:
    """Read a map. folder: of the map, in which its maps of values are. Refuses, first that applies: bad_map."""
    try:
        description = read_part(tomllib.loads(text.decode("utf-8-sig"), parse_float=Decimal), CsvMap, "")
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or a number with more digits than Python reads
        raise Refused("bad_map", "", None, f"not TOML: {error}") from None
    commands = [
        structs.replace(part, fields=with_value_maps(part.fields, f"command[{number}].fields", folder))
        for number, part in enumerate(description.command)
    ]
    return CsvMapping(structs.replace(description, command=commands))


class MappedCommands(NamedTuple):
    """The commands of a CSV, with their locations.

    header: the bytes before the first row. left_out: rows without a command, counted as the commands are read. total:
    how many commands there are, if all have been read.
    """

    header: bytes
    commands: Iterator[ReadCommand]
    left_out: LeftOut
    total: int | None = None


def map_records(  # noqa: PLR0913 - the rows, and how they are read
    mapping: CsvMapping,
    rows: Iterator[SourceRecord],
    *,
    keep: bool = False,
    recorded_at: str = "",
    strict: bool = False,
    once: bool = False,
) -> MappedCommands:
    """Return the commands of each row, or of each group of rows; the first record is the header.

    keep: their locations have the bytes of the rows. recorded_at: the column that says when a row was received;
    locations have it. strict: a row of which the map makes no command is refused; otherwise it is counted. once: leave
    out what a row says like a row before it, such as the opening of its question: it would be a duplicate.
    A row with another number of cells than the header is refused; a row that cannot be read is refused and is the last.
    If the map sorts, or has groups, all rows are read first, and kept in memory.
    Refuses, first that applies: bad_csv, unmapped_value, no_command, out_of_order. Raises Refused, before anything else
    is read, if the header does not match the map (bad_csv), or the first rows are mostly in falling order
    (out_of_order).
    """
    header, source = read_header(mapping, rows, recorded_at)
    bound = [reader.bound(header, once=once) for reader in mapping.readers]
    left_out = LeftOut()
    by_row: Iterable[RowCommands] = read_commands(
        bound,
        header,
        enumerate(rows, 1),
        keep=keep,
        received=_received(mapping, recorded_at),
        left_out=None if strict else left_out,
    )
    if any(each.groups is not None for each in bound):
        by_row = heapq.merge([*by_row], _read_groups(bound, None if strict else left_out), key=attrgetter("line"))
    if mapping.sort:
        ordered = sort_commands(by_row, mapping.sort)
        return MappedCommands(source, first_of_each(ordered) if once else iter(ordered), left_out, len(ordered))
    commands = refuse_falling(each for row in by_row for each in row.commands)
    return MappedCommands(source, first_of_each(commands) if once else commands, left_out)


def read_header(mapping: CsvMapping, rows: Iterator[SourceRecord], recorded_at: str = "") -> tuple[list[str], bytes]:
    """Return the names of the columns and the bytes of the header, the first record. Refuses: bad_map, bad_csv."""
    _, header, source = next(rows, (1, Refused("bad_csv", "", None, "the file is empty"), b""))
    if isinstance(header, Refused):
        raise header
    mapping.check(header, recorded_at)
    return header, source


def _received(mapping: CsvMapping, column: str) -> Callable[[CsvRow], int | Refused | None]:
    """Return the function that reads when a row was received: None if there is no such column, or the refusal."""
    if not column:
        return lambda _: None
    rewrite = instant_reader(mapping.instants, RECEIVED)

    def read(row: CsvRow) -> int | Refused:
        try:
            return read_instant(rewrite(row[column]), RECEIVED)
        except Refused as refused:
            return refused

    return read


class BoundReader(NamedTuple):
    """A reader, the columns of a file that each give a command, and the groups of its rows, if it has groups.

    said: cells -> the command of the first row that has them, by which those with the same are known; None if every row
    is read.
    """

    reader: CommandReader
    columns: Sequence[ChosenColumn]
    groups: GroupedRows | None = None
    said: dict[tuple[str, ...], AnyCommand | Refused | None] | None = None

    def read(self, row: CsvRow) -> AnyCommand | Refused | None:
        """Return the command of a row, None if it has no forecast or answer, or the refusal."""
        if self.said is None:
            return self.reader.read(row)
        cells = tuple([row[column] for column in self.reader.columns])
        if cells not in self.said:
            self.said[cells] = self.reader.read(row)
        return self.said[cells]


def read_commands(  # noqa: PLR0913 - the rows, and what is kept and counted of them
    readers: Sequence[BoundReader],
    header: list[str],
    rows: Iterable[tuple[int, SourceRecord]],
    *,
    keep: bool,
    received: Callable[[CsvRow], int | Refused | None],
    left_out: LeftOut | None,
) -> Iterator[RowCommands]:
    """Return the commands of each row; rows of groups are collected. rows: each with its number, from 1.

    left_out: counts the rows, and cells, that no reader applies to; None if they are refused.
    """
    for number, (line, cells, source) in rows:
        records = ((line, source),) if keep else ()
        if isinstance(cells, Refused) or len(cells) != len(header):
            refused = cells if isinstance(cells, Refused) else _wrong_length(cells, header)
            yield RowCommands(line, [(InputLocation(line, records=records), refused)])
            continue
        row = dict(zip(header, cells, strict=True))
        row.setdefault(ROW_NUMBER, str(number))
        location, time = InputLocation(line, records=records), received(row)
        commands, is_grouped, untaken, is_empty = _read_row(readers, row, location, time)
        if not commands and not is_grouped:
            if left_out is None:
                commands.append((location, Refused("no_command", detail=NOTHING * is_empty)))
            else:
                left_out.add(line, is_empty=is_empty)
        elif left_out is None:
            commands += [(location._replace(columns={CELL: [name]}), _without_command(row[name])) for name in untaken]
        else:
            for name in untaken:
                left_out.add_cell(line, name)
        if commands:
            yield RowCommands(line, commands)


def _read_row(
    readers: Sequence[BoundReader], row: dict[str, str], row_location: InputLocation, time: int | Refused | None
) -> tuple[list[ReadCommand], bool, list[str], bool]:
    """Return the commands of a row, whether it is of a group, the columns of cells that have a text and no command, and
    whether a command was none because it has no forecast or answer.
    """
    commands, is_grouped, is_empty = list[ReadCommand](), False, False
    taken = dict[str, bool]()
    for bound in readers:
        reader, columns, groups, _ = bound
        for column in columns:
            location = row_location._replace(command=reader.type, columns=column.field_columns)
            if column.name:
                row |= column.parts
                row[CELL] = row[column.name]
            try:
                applies = reader.applies(row)
            except Refused as refused:
                name = str(refused.field)
                at = column.name if column.name and is_part(name) else name
                commands.append((location._replace(columns={name: [at]}), refused))
                applies = None
            if reader.reads_cell:
                taken[column.name] = taken.get(column.name, not row[CELL]) or applies is not False
            if applies and groups is not None:
                groups.add(row_location.line, row, row_location.records, time, column)
                is_grouped = True
            elif applies:
                command = time if isinstance(time, Refused) else bound.read(row)
                is_empty |= command is None
                if isinstance(time, int):
                    location = location._replace(recorded_at=time)
                commands += [] if command is None else [(location, command)]
    return commands, is_grouped, [name for name, is_taken in taken.items() if not is_taken], is_empty


def _without_command(text: str) -> Refused:
    detail = "the map makes no command of the cell, which fails `where`, `present` or `above` of every command"
    remedy = "correct the cell, give the map a command for such cells, or leave out --strict"
    return Refused("no_command", CELL, text, detail, remedy=remedy)


def _read_groups(readers: Sequence[BoundReader], left_out: LeftOut | None) -> list[RowCommands]:
    """Return the commands of the groups, in the order of their first rows. left_out: as in `read_commands`."""
    by_group = []
    for reader in readers:
        for group, whole in reader.groups.groups() if reader.groups is not None else ():
            if whole is not None or left_out is None:
                known = Refused("no_command", detail=NOTHING) if whole is None else whole
                by_group.append(RowCommands(group.line, [reader.reader.read_group(group, known)]))
            else:
                for line in dict.fromkeys(item.line for item in group.items):
                    left_out.add(line, is_empty=True)
    return sorted(by_group, key=attrgetter("line"))


def _is_above(row: CsvRow, column: str, than: FieldValue) -> bool:
    """Return whether a row's number is above another; not if either is empty. Refuses: bad_number."""
    texts = row[column], than.read(row)
    return all(texts) and number_of(texts[0], column) > number_of(texts[1], column)


def _wrong_length(cells: list[str], header: list[str]) -> Refused:
    return Refused("bad_csv", "", None, f"the row has {len(cells)} cells, the header has {len(header)}")


def _check_fields(description: CommandMap, path: str, kind: type[AnyCommand]) -> None:
    fields = {field.name: field.required for field in fields_of(kind) if field.name != "id"}
    for name in description.fields:
        if name not in fields:
            names = sorted(fields, key=PROVENANCE_NAMES.__contains__)  # those of every command last
            raise Refused("bad_map", f"{path}.{name}", None, unknown_name(name, names))
    for name, required in fields.items():
        if required and name not in description.fields:
            raise Refused("bad_map", f"{path}.{name}", None, f"{description.type} needs this field")


def _check_source(description: CsvMap) -> str:
    """Return the field by which the commands of a copy are sorted. Refuses: bad_map."""
    if not _NAME.fullmatch(description.source):
        remedy = "use one word of up to 40 letters, digits, points, hyphens or underscores, such as weekly-form"
        raise Refused("bad_map", "source", description.source, "this is no name of a source", remedy=remedy)
    if description.sort not in {"", "at"}:
        detail = "copies of a source are compared in the order of `at`; leave sort out, or leave source out"
        raise Refused("bad_map", "sort", description.sort, detail)
    for number, part in enumerate(description.command):
        if "at" not in part.fields:
            detail = f"copies of a source are compared by their instants, so that {part.type} needs the field `at`"
            raise Refused("bad_map", f"command[{number}].fields", None, detail)
    return "at"
