"""Which rows and columns give a command: conditions, wide tables, and long tables whose rows are put together."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import count, groupby
from typing import Any, NamedTuple, get_args, get_origin

from msgspec import Struct

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import in_list
from forecast_ledger.ledger.core.values import WRITTEN_NUMBER
from forecast_ledger.ledger.model.commands import Points
from forecast_ledger.replay.mapping.csv_cells import ROW_NUMBER, CellFormat, CsvRow, FieldValue, field_value
from forecast_ledger.replay.mapping.csv_texts import read_pattern, whole_match
from forecast_ledger.replay.mapping.map_parts import read_part


class CellCondition(Struct, frozen=True, forbid_unknown_fields=True, rename={"none_of": "not"}):
    """What a cell must be, where a list of the texts allowed is not enough; all that is given must hold.

    none_of (`not` in a map): the texts that it must not be. empty: whether it is empty. matches: a pattern of the whole
    cell.
    """

    none_of: str | list[str] | None = None
    empty: bool | None = None
    matches: str | None = None


def cell_test(written: Any, column: str, path: str) -> Callable[[str], bool]:
    """Return whether a cell of a column is as a map asks. written: as `where` has it. path: where it is in the map.

    Refuses: bad_map; the function, for a cell that is too long for a pattern: bad_csv.

    >>> [*map(cell_test(CellCondition(none_of=["", "NA"]), "answer", ""), ("yes", "", "NA", "na"))]
    [True, False, False, True]
    """
    condition = read_part(written, str | list[str] | CellCondition, path)
    if not isinstance(condition, CellCondition):
        return _texts(condition).__contains__
    tests = list[Callable[[str], bool]]()
    if condition.empty is not None:
        tests.append(lambda text: (not text) is condition.empty)
    if condition.none_of is not None:
        forbidden = _texts(condition.none_of)
        tests.append(lambda text: text not in forbidden)
    if condition.matches is not None:
        pattern = read_pattern(condition.matches, f"{path}.matches")
        tests.append(lambda text: whole_match(pattern, text, column) is not None)
    if not tests:
        raise Refused("bad_map", path, None, "a condition has `not`, `empty` or `matches`")
    return lambda text: all(test(text) for test in tests)


def _texts(given: str | list[str]) -> set[str]:
    return {given} if isinstance(given, str) else {*given}


CELL, COLUMN = "#cell", "#column"  # in a wide command, stand for the cell and the name of its column
_PART = re.compile(r"#(?:cell|column|[0-9]+)", re.ASCII)
_BREAK = re.compile(r"\s*[\r\n]\s*")


class ChosenColumn(NamedTuple):
    """A column that gives a command, or no column, for a command of the whole row.

    parts: what `#column`, `#1`, `#2` stand for. field_columns: the columns that each field of the command uses.
    """

    name: str
    parts: Mapping[str, str]
    field_columns: Mapping[str, Sequence[str]]


class WideColumns:
    """The columns of a wide command, as its map chooses them."""

    def __init__(self, condition: str | list[str] | CellCondition, path: str, used: set[str]) -> None:
        """used: the names of columns that the command uses. Refuses: bad_map."""
        matches = condition.matches if isinstance(condition, CellCondition) else None
        self._pattern = None if matches is None else read_pattern(matches, f"{path}.matches")
        groups = 0 if self._pattern is None else self._pattern.groups
        self.parts = {CELL, COLUMN, *(f"#{number}" for number in range(1, groups + 1))}
        self._is_chosen = cell_test(condition, COLUMN, path)
        for name in sorted(used - self.parts):
            if _PART.fullmatch(name):
                has = "group" if groups == 1 else "groups"
                raise Refused("bad_map", path, None, f"the command uses {{{name}}}, and `matches` has {groups} {has}")

    def chosen(self, header: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the chosen columns, each with what its parts stand for; a line break in a name counts as a space.

        Refuses: bad_csv (no column is chosen, a column has the name of a part, or a name is too long for a pattern).

        >>> wide = WideColumns(CellCondition(matches=r"(Q[0-9]+) .*"), "command[0].columns", set())
        >>> wide.chosen(["Email", "Q08 Rain?"])
        {'Q08 Rain?': {'#column': 'Q08 Rain?', '#1': 'Q08'}}
        """
        parts_by_column = {name: self._parts_of(_BREAK.sub(" ", name)) for name in header if self.reads(name)}
        if not parts_by_column:
            detail = f"no column is as `columns` in the map asks; the columns are: {in_list(header)}"
            raise Refused(
                "bad_csv", COLUMN, None, detail, remedy="correct `columns`, of which a pattern is of the whole name"
            )
        if taken := sorted(self.parts.intersection(header)):
            detail = (
                f"the header has a column {taken[0]!r}, which stands for something else beside `columns` in the map"
            )
            raise Refused("bad_csv", "column", taken[0], detail, remedy="give the column another name")
        return parts_by_column

    def reads(self, name: str) -> bool:
        """Return whether a column is chosen. Refuses: bad_csv (a name that is too long for a pattern)."""
        return self._is_chosen(_BREAK.sub(" ", name))

    def _parts_of(self, name: str) -> dict[str, str]:
        match = None if self._pattern is None else whole_match(self._pattern, name, COLUMN)
        groups = () if match is None else match.groups()
        return {COLUMN: name} | {f"#{number}": (text or "").strip() for number, text in enumerate(groups, 1)}


def is_part(name: str) -> bool:
    """Return whether a name stands for a part of a column in a wide command.

    >>> is_part("#cell"), is_part("#1"), is_part("#"), is_part("cell")
    (True, True, False, False)
    """
    return _PART.fullmatch(name) is not None


def columns_by_field(name: str, parts: set[str], used: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the columns of each field, with the name of the chosen column for its parts.

    >>> columns_by_field("Q1", {"#cell", "#1"}, {"id": ["Email", "#1"], "probability": ["#cell"]})
    {'id': ['Email', 'Q1'], 'probability': ['Q1']}
    """
    return {
        field: [*dict.fromkeys(name if column in parts else column for column in columns)]
        for field, columns in used.items()
    }


_UNORDERED = frozenset({"samples"})  # lists whose items have no order, so that any levels will do
_MOST_RANGES = 5  # of lines, in a message
_NUMBER = re.compile(WRITTEN_NUMBER, re.ASCII)


class LongFormat(Struct, frozen=True, forbid_unknown_fields=True):
    """A field that takes one item of each row. level, value: made like fields. levels: all levels, in their order.

    Samples need no levels: each row has a sample of its own.
    method: of points, which are those that the rows have, in the order of their levels.
    """

    level: Any
    value: Any
    levels: list[Any] | None = None
    method: str = ""


class LongItem(NamedTuple):
    """The item of one row, or of one cell of a row. column: that of the cell, "" for a row."""

    line: int
    level: str | None
    value: Any
    column: str = ""

    def where(self) -> str:
        """Return the line, and the column of a cell.

        >>> LongItem(3, "0.5", 7).where(), LongItem(3, "red", 7, "Q3 [red]").where()
        ('line 3', "line 3 in 'Q3 [red]'")
        """
        return f"line {self.line}" + f" in {self.column!r}" * bool(self.column)


class LongField:
    """A field that is put together from the rows of a group: a list in the order of the levels, or a value by level."""

    def __init__(self, description: Any, field: str, kind: Any, usual: CellFormat, *, is_copy: bool = False) -> None:
        """Refuses: bad_map. kind: the type of the field in its command. is_copy: whether the file is a copy."""
        self._is_copy = is_copy
        written = read_part(description, LongFormat, field)
        origins = {get_origin(each) for each in (kind, *get_args(kind))}
        self.field, self._is_list, self._method = field, tuple in origins, written.method
        self._level = field_value(written.level, f"{field}.level", usual)
        self._value = field_value(written.value, f"{field}.value", usual)
        self.columns = self._level.columns + self._value.columns
        self._levels = None if written.levels is None else {_key(str(each)): str(each) for each in written.levels}
        fault, are_points = "", Points in get_args(kind)
        if are_points != bool(written.method):
            fault = "give `method`, which makes the cdf" if are_points else "only `points` have a `method`"
        elif not are_points and not origins & {tuple, dict}:
            fault = "the field takes neither a list nor values by name; only such fields are put together from rows"
        elif self._levels is None and self._is_list and field not in _UNORDERED:
            fault = "give `levels`, the levels of the list in their order"
        elif self._levels is not None and len(self._levels) != len(written.levels or ()):
            fault = "a level is there twice"
        if fault:
            raise Refused("bad_map", field, None, fault)

    def read(self, line: int, row: CsvRow, column: str = "") -> LongItem:
        """Return the item of a row, or of its cell in a column. Refuses: as its cells do, with the line."""
        try:
            level = self._level.read(row)
            return LongItem(line, None if level is None else str(level), self._value.read(row), column)
        except Refused as fault:
            detail = f"{LongItem(line, None, None, column).where()}: {fault.detail or fault.meaning}"
            raise Refused(fault.code, fault.field, fault.value, detail, remedy=fault.remedy) from None

    def whole(self, items: Sequence[LongItem]) -> list[Any] | dict[str, Any] | None:
        """Return the field; None if no item has a value, and a copy may say so.

        Refuses: bad_csv (a level is missing, unknown or there twice, or a row is not complete).
        """
        if self._is_copy and all(item.value is None for item in items):
            return None
        by_level_key: dict[Any, LongItem] = {}
        for item in items:
            if item.level is None or item.value is None:
                raise self._fault(f"{item.where()} has no {'level' if item.level is None else 'value'}")
            key = _key(item.level)
            if self._levels is not None and key not in self._levels:
                raise self._fault(f"{item.where()} has the level {item.level}, which the map's `levels` lack")
            if key in by_level_key:
                raise self._fault(f"{by_level_key[key].where()} and {item.where()} both have the level {item.level}")
            by_level_key[key] = item
        missing = [label for key, label in (self._levels or {}).items() if key not in by_level_key]
        if missing:
            raise self._fault(f"{lines_text([item.line for item in items])}: no level {', '.join(missing)}")
        if self._method:
            ordered = [by_level_key[key] for key in sorted(by_level_key, key=self._number)]
            levels, quantiles = [item.level for item in ordered], [item.value for item in ordered]
            return {"levels": levels, "quantiles": quantiles, "method": self._method}
        if self._levels is None:
            by_level = {str(item.level): item.value for item in items}
            return [*by_level.values()] if self._is_list else by_level
        values = {label: by_level_key[key].value for key, label in self._levels.items()}
        return [*values.values()] if self._is_list else values

    def _number(self, key: Any) -> Decimal:
        if not isinstance(key, Decimal):
            raise self._fault(f"the level {key!r} is not a number")
        return key

    def _fault(self, detail: str) -> Refused:
        return Refused(
            "bad_csv",
            self.field,
            None,
            detail,
            remedy="give the command one row, or one column, for each of its levels",
        )


class Group:
    """The rows of one command. first: the cells of the first row that the command uses. field_columns: by field."""

    def __init__(self, line: int, first: CsvRow, field_columns: Mapping[str, Sequence[str]]) -> None:
        self.line, self.first, self.field_columns = line, first, field_columns
        self.items: list[LongItem] = []
        self.records: list[tuple[int, bytes]] = []
        self.recorded_at: int | None = None
        self.fault: Refused | None = None


class GroupedRows:
    """The rows of a `[[command]]` by group, in the order of their first rows. The rows of a group need not be adjacent.

    All are kept until the end of the file: about 300 bytes a row.
    """

    def __init__(self, columns: Sequence[str], values: Mapping[str, FieldValue], long: LongField) -> None:
        self._columns, self._long = columns, long
        shared = {column for value in values.values() for column in value.columns} - {*columns, ROW_NUMBER}
        self._shared, self._used = sorted(shared), sorted(shared | {*columns})
        self._groups: dict[tuple[str, ...], Group] = {}

    def add(
        self,
        line: int,
        row: CsvRow,
        records: Sequence[tuple[int, bytes]],
        received: int | Refused | None,
        column: ChosenColumn,
    ) -> None:
        """Add a row, or its cell in a column, to its group, which is received with its last row."""
        key = tuple([row[column] for column in self._columns])
        group = self._groups.get(key)
        if group is None:
            used = [*self._used, *([ROW_NUMBER] if ROW_NUMBER in row else [])]
            group = self._groups[key] = Group(line, {name: row[name] for name in used}, column.field_columns)
        group.records += [each for each in records if each not in group.records[-1:]]
        if isinstance(received, int):
            group.recorded_at = max(received, group.recorded_at or received)
        try:
            if isinstance(received, Refused):
                raise received
            self._check_same(line, row, group)
            group.items.append(self._long.read(line, row, column.name))
        except Refused as refused:
            group.fault = group.fault or refused

    def groups(self) -> Iterator[tuple[Group, list[Any] | dict[str, Any] | Refused | None]]:
        """Return each group with its field, None if that has no value, or the refusal of the group."""
        for group in self._groups.values():
            try:
                yield group, group.fault or self._long.whole(group.items)
            except Refused as refused:
                yield group, refused

    def _check_same(self, line: int, row: CsvRow, group: Group) -> None:
        """Refuse (bad_csv) a row that says something else than the first of its group."""
        for column in self._shared:
            if row[column] != group.first[column]:
                detail = f"line {line} has another value than line {group.line}, which is of the same group"
                remedy = "correct the cell, or add the column to `group` in the map"
                raise Refused("bad_csv", column, row[column], detail, remedy=remedy)


def lines_text(lines: Sequence[int]) -> str:
    """Return lines in words.

    >>> lines_text([2, 3, 4, 9]), lines_text([7])
    ('lines 2-4, 9', 'line 7')
    """
    steps = count()
    ranges = [[*group] for _, group in groupby(sorted(lines), lambda line: line - next(steps))]
    texts = [str(each[0]) if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in ranges]
    more = f" and {sum(map(len, ranges[_MOST_RANGES:]))} more" * (len(ranges) > _MOST_RANGES)
    return f"line{'s' * (len(lines) > 1)} {', '.join(texts[:_MOST_RANGES])}{more}"


def _key(level: str) -> Any:
    """Return what two texts of one level share: a number however it is written, or the text.

    >>> _key("0.50") == _key("5e-1"), _key("red") == _key("Red")
    (True, False)
    """
    return Decimal(level) if _NUMBER.fullmatch(level) else level
