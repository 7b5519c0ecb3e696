"""Parts of charts: rows of a contest, axes with names, numbers and shares in words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.tables.projection import Projections
from forecast_ledger.replay.reading.text_tables import escape_controls
from forecast_ledger.replay.report.pictures import COLOURS, Row

MOST_ROWS = 40  # of a picture
MOST_LINES = len(COLOURS)  # so that no two have the same colour
STEP = 19  # pixels of a row
LEVEL = 0.05  # of a test
HALF = 0.5


class KnownTables(Projections):
    """Projections that compute each table once, for a page that shows every contest of it."""

    def __init__(self, projections: Projections) -> None:
        super().__init__(projections.facts, projections.chunk, projections.cached)
        self._tables: dict[str, Table] = {}

    def table(self, name: str) -> Table:
        """Return the table of a projection."""
        if name not in self._tables:
            self._tables[name] = super().table(name)
        return self._tables[name]


def rows_of(projections: Projections, table: str, contest: str) -> list[Row]:
    """Return the rows of a contest in a table, as printed."""
    return [*projections.table(table).only("contest", contest).rows()]


def chosen(row: Mapping[str, Any], columns: Iterable[str]) -> Row:
    """Return some columns of a row."""
    return {name: row[name] for name in columns}


def numbered(rows: Sequence[Row], *columns: str) -> list[Row]:
    """Return rows with the number of each, from 0, and some columns as floats."""
    return [{"row": number} | {name: float(row[name]) for name in columns} for number, row in enumerate(rows)]


def names_axis(rows: Sequence[Row]) -> dict[str, Any]:
    """Return an axis whose labels are the names of participants, with their ranks, in the order of the rows."""
    names = [_label(row) for row in rows]
    # the names are an array in an expression: as data they could not be looked up by number
    return {"labelExpr": f"{quoted(names)}[datum.value]", "ticks": False, "domain": False}


def names_legend(names: Sequence[str]) -> dict[str, Any]:
    """Return a legend whose entries are numbers from 0, labelled with names."""
    return {"labelExpr": f"{quoted(names)}[datum.value]", "orient": "bottom", "columns": 3, "title": None}


def _label(row: Row) -> str:
    rank = row.get("rank", "")
    return f"{'-' if rank is None else rank} {row['participant']}".strip()


def quoted(names: Sequence[str]) -> str:
    """Return texts as an array in Vega's language of expressions, in which no text can be anything but a text.

    A control character is escaped before: a raw NUL would end the process in what draws the picture.
    """
    units = (_units(escape_controls(name)) for name in names)
    return "[" + ",".join('"' + "".join(f"\\u{ord(unit):04x}" for unit in each) + '"' for each in units) + "]"


def _units(text: str) -> str:
    """Return a text as UTF-16 code units."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(int.from_bytes(encoded[at : at + 2], "big")) for at in range(0, len(encoded), 2))


def in_order(projections: Projections, names: set[str]) -> list[str]:
    """Return questions in the order of their openings."""
    rows = projections.table("questions").rows()
    return [row["question"] for row in sorted(rows, key=lambda row: row["log_position"]) if row["question"] in names]


def left_out(every: Sequence[Any], shown: Sequence[Any]) -> str:
    """Say how many rows of a picture are left out, if any are."""
    return f" The first {len(shown)} of {len(every):,} are shown." if len(shown) < len(every) else ""


def percent(share: float, whole: float = 1) -> str:
    """Return a share in percent.

    >>> percent(1, 3)
    '33%'
    """
    return f"{100 * share / whole:.0f}%"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number of things. plural: of the noun; with an s, if it is not given.

    >>> count(1, "question"), count(1_000, "question"), count(2, "entry", "entries")
    ('1 question', '1,000 questions', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
