"""A table as HTML, for notebooks. Its texts come from a log, and so from strangers: none is taken for HTML."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from forecast_ledger.projections.core.column_values import Column

SHOWN_ROWS = 50
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


def _text(value: Any) -> str:
    """Return a value as text in HTML, with control characters escaped as in Python."""
    text = "" if value is None else str(value)
    return escape(text if text.isprintable() else text.encode("unicode_escape").decode())
