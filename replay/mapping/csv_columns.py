"""Wide tables: the columns that each give commands of their own, and what their names say."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.mapping.csv_conditions import CellCondition, cell_test
from forecast_ledger.replay.mapping.csv_patterns import read_pattern, whole_match

CELL, COLUMN = "#cell", "#column"  # in a wide command, stand for the cell and the name of its column
_PART = re.compile(r"#(?:cell|column|[0-9]+)", re.ASCII)
_BREAK = re.compile(r"\s*[\r\n]\s*")


class ChosenColumn(NamedTuple):
    """A column that gives a command, or no column, for a command of the whole row.

    parts: what `#column`, `#1`, `#2` stand for. places: the columns that each field of the command uses.
    """

    name: str
    parts: Mapping[str, str]
    places: Mapping[str, Sequence[str]]


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
        found = {name: self._parts_of(_BREAK.sub(" ", name)) for name in header if self.reads(name)}
        if not found:
            detail = f"no column is as `columns` in the map asks; the columns are: {', '.join(header)}"
            raise Refused(
                "bad_csv", COLUMN, None, detail, remedy="correct `columns`, of which a pattern is of the whole name"
            )
        if taken := sorted(self.parts.intersection(header)):
            detail = (
                f"the header has a column {taken[0]!r}, which stands for something else beside `columns` in the map"
            )
            raise Refused("bad_csv", "column", taken[0], detail, remedy="give the column another name")
        return found

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


def places_of(name: str, parts: set[str], used: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the columns of each field, with the name of the chosen column for its parts.

    >>> places_of("Q1", {"#cell", "#1"}, {"id": ["Email", "#1"], "probability": ["#cell"]})
    {'id': ['Email', 'Q1'], 'probability': ['Q1']}
    """
    return {
        field: [*dict.fromkeys(name if column in parts else column for column in columns)]
        for field, columns in used.items()
    }
