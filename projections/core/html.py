"""A table in a notebook: as HTML, and as a chart. Its texts come from a log: none is taken for HTML."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from forecast_ledger.projections.core.column_values import Column

SHOWN_ROWS = 50
MOST_CHARTED = 5_000  # rows of a chart, as in Altair
VEGA_LITE = "https://vega.github.io/schema/vega-lite/v5.json"
_MEASURED = ("points", "take", "money", "fine_money", "share", "probability", "measure", "term", "seconds", "count")
_TEXTS = {"id", "text", "instant"}  # kinds of columns that are aligned to the left
_IGNORED = "tex2jax_ignore mathjax_ignore"  # a text with dollar signs is not typeset as mathematics


def html_table(columns: Sequence[Column], rows: Iterable[Sequence[Any]], count: int) -> str:
    """Return rows as printed, under the names of their columns; what a column means is the title of its name.

    count: the number of rows of the whole table, which the last line says.

    >>> html_table([Column("who", "id", "the forecaster")], [("<b>",)], 1).splitlines()[-3]
    '<tr><td style="text-align:left">&lt;b&gt;</td></tr>'
    """
    aligned = ["left" if column.kind in _TEXTS else "right" for column in columns]
    names = "".join(f'<th title="{_text(column.meaning)}">{_text(column.name)}</th>' for column in columns)
    lines = [f'<table class="{_IGNORED}">', f"<tr>{names}</tr>"]
    shown = 0
    for row in rows:
        shown += 1
        cells = zip(aligned, row, strict=True)
        row_cells = "".join(f'<td style="text-align:{side}">{_text(each)}</td>' for side, each in cells)
        lines.append(f"<tr>{row_cells}</tr>")
    told = f"{shown:,} of {count:,} rows" if shown < count else f"{count:,} row{'s' * (count != 1)}"
    return "\n".join([*lines, "</table>", f"<p>{told}</p>"])


class Chart(dict[str, Any]):
    """A Vega-Lite specification with its data, as `altair.Chart.from_dict` reads it; a notebook draws it."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"application/vnd.vegalite.v5+json": dict(self), "text/plain": f"{self['mark']['type']} chart"}


def chart(columns: Sequence[Column], rows: Sequence[Sequence[Any]], value: str, by: str) -> Chart:
    """Return a chart of one column by another, empty texts for the default; see `Table.chart`."""
    kinds = {column.name: column.kind for column in columns}
    value, by = value or _first_number(kinds), by or _last_name(kinds)
    if len(rows) > MOST_CHARTED:
        raise ValueError(f"{len(rows):,} rows are too many for a chart, which has {MOST_CHARTED:,} at most: see `only`")
    names = [column.name for column in columns]
    ids = [name for name, kind in kinds.items() if kind == "id" and name != by]
    several = [name for name in ids if len({row[names.index(name)] for row in rows}) > 1][:1]
    shown = dict.fromkeys([by, value, *several])
    values = [{name: row[names.index(name)] for name in shown} for row in rows]
    is_time = kinds[by] == "instant"
    sides = {"x": _axis(by, kinds), "y": _axis(value, kinds)}
    if not is_time:  # bars, one below the other, in the order of the rows
        sides = {"y": _axis(by, kinds) | {"sort": None}, "x": sides["y"]}
    divided = {"color" if is_time else "row": {"field": name, "type": "nominal"} for name in several}
    return Chart(
        {
            "$schema": VEGA_LITE,
            "data": {"values": values, "format": {"parse": {value: "number"} | ({by: "date"} if is_time else {})}},
            "mark": {"type": "line", "point": True} if is_time else {"type": "bar"},
            "encoding": sides | divided,
        }
    )


def _axis(name: str, kinds: Mapping[str, str]) -> dict[str, Any]:
    kind = "temporal" if kinds[name] == "instant" else "quantitative" if kinds[name] in _MEASURED else "nominal"
    return {"field": name, "type": kind}


def _first_number(kinds: Mapping[str, str]) -> str:
    """Return the name of the first column with numbers, of a kind that comes first in _MEASURED."""
    for wanted in _MEASURED:
        for name, kind in kinds.items():
            if kind == wanted and name != "rank":
                return name
    raise ValueError("the table has no column with numbers")


def _last_name(kinds: Mapping[str, str]) -> str:
    """Return the name of the last column of ids; the first column, if there is none."""
    named = [name for name, kind in kinds.items() if kind == "id"]
    return named[-1] if named else next(iter(kinds))


def _text(value: Any) -> str:
    """Return a value as text in HTML, with control characters escaped as in Python."""
    text = "" if value is None else str(value)
    return escape(text if text.isprintable() else text.encode("unicode_escape").decode())
