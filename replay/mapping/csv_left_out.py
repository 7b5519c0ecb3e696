"""The rows and cells of which a map makes no command, so that none is lost in silence."""

from dataclasses import dataclass, field

_NAMED = 5  # rows, and cells, without a command whose places are named


@dataclass(slots=True)
class LeftOut:
    """The rows of which a map makes no command: how many have been read so far, and the lines of the first.

    cells: those of other rows, in columns that give commands, that have a text and no command; with their places.
    are_empty: whether a row is among them whose command would be a forecast, or an answer, and has nothing.

    >>> left_out = LeftOut()
    >>> for line in (3, 4):
    ...     left_out.add(line)
    >>> left_out.words("line")
    'the map makes no command of 2 rows, which fail `where`, `present` or `above` of every command: line 3, 4'
    >>> left_out.add_cell(7, "Q1")
    >>> left_out.words("line").partition("; ")[2]
    "the map makes no command of 1 cell, which fails `where`, `present` or `above` of every command: line 7 in 'Q1'"
    """

    rows: int = 0
    first: list[int] = field(default_factory=list)
    cells: int = 0
    first_cells: list[tuple[int, str]] = field(default_factory=list)
    are_empty: bool = False

    def add(self, line: int, *, is_empty: bool = False) -> None:
        """Count a row. is_empty: whether it has no forecast or answer."""
        self.are_empty |= is_empty
        self.rows += 1
        if len(self.first) < _NAMED:
            self.first.append(line)

    def add_cell(self, line: int, column: str) -> None:
        """Count a cell."""
        self.cells += 1
        if len(self.first_cells) < _NAMED:
            self.first_cells.append((line, column))

    def words(self, unit: str) -> str:
        """Say how many rows and cells there are, and where the first are; "" if none. unit: of a place in the file."""
        rows = [f"{unit} {', '.join(map(str, self.first))}"] if self.first else []
        cells = [f"{unit} {line} in {column!r}" for line, column in self.first_cells]
        has = "has" if self.rows == 1 else "have"
        empty = f", or {has} no forecast or answer" * self.are_empty
        parts = [
            _without_commands("row", self.rows, self.rows - len(self.first), f"{empty}: {', '.join(rows)}"),
            _without_commands("cell", self.cells, self.cells - len(cells), f": {', '.join(cells)}"),
        ]
        return "; ".join(filter(None, parts))


def _without_commands(noun: str, count: int, more: int, places: str) -> str:
    if not count:
        return ""
    fail = f"{noun}, which fails" if count == 1 else f"{noun}s, which fail"
    return (
        f"the map makes no command of {count:,} {fail} `where`, `present` or `above` of every command{places}"
        + f" and {more:,} more" * bool(more)
    )
