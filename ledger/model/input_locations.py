"""The location of a command in the input that it is read from: a line, a row of a table or an item of an array."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AnyCommand

_NO_COLUMNS: Mapping[str, Sequence[str]] = MappingProxyType({})


class InputLocation(NamedTuple):
    """The location of a command in a file: its line; for a CSV also its type, and the columns that each field uses.

    file: the file, if there are several. unit: what `line` counts: lines, or the items of a JSON array. others: how
    many other rows the command is made of. records: the lines it was read from with their bytes, if these are kept.
    recorded_at: when it was received, µs, if that is imported.
    """

    line: int
    command: str = ""
    columns: Mapping[str, Sequence[str]] = _NO_COLUMNS
    file: str = ""
    unit: str = "line"
    others: int = 0
    records: Sequence[tuple[int, bytes]] = ()
    recorded_at: int | None = None

    def where(self) -> str:
        """Return the file and the line, as far as they are known.

        >>> InputLocation(3, file="a.csv").where(), InputLocation(0, file="a.csv").where()
        ('a.csv, line 3', 'a.csv')
        """
        line = f"{self.unit} {self.line}{f' and {self.others:,} more' * bool(self.others)}"
        return ", ".join(filter(None, (self.file, line if self.line or not self.file else "")))

    def columns_of(self, refused: Refused) -> Sequence[str]:
        """Return the columns that a refused field uses, if any."""
        field = str(refused.field)
        return self.columns.get(field.partition(".")[0].partition("[")[0], ())

    def describe(self, refused: Refused) -> str:
        """Return a refusal as text, after its location.

        >>> InputLocation(3, "submit_forecast", {"id": ["User"]}).describe(Refused("id_empty", "id"))[:46]
        "line 3, submit_forecast, column 'User': id_emp"
        """
        columns = ", ".join(map(repr, self.columns_of(refused)))
        parts = (self.where(), self.command, columns and f"column {columns}")
        return f"{', '.join(filter(None, parts))}: {refused}"

    def to_dict(self, refused: Refused) -> dict[str, Any]:
        """Return the line, the command and its columns, then the items of `Refused.to_dict`."""
        parts = {"file": self.file, "command": self.command, "columns": list(self.columns_of(refused))}
        return {"line": self.line} | {key: part for key, part in parts.items() if part} | refused.to_dict()


ReadCommand = tuple[InputLocation, AnyCommand | Refused]  # a command as it is read, or why it is refused
