"""The rows of tables as HTML: a page has tens of thousands of cells, which take a template several times as long."""

from collections.abc import Iterator, Sequence

from markupsafe import escape

from forecast_ledger.replay.reading.blocks import Cell, Number, Table, escape_controls


def table_rows(table: Table, *, cards: bool) -> str:
    """Return the rows of the body of a table. cards: where there is little room, each row becomes a card.

    >>> print(table_rows(Table(["who", Number("score")], [["<a>", "1"], ["b", ""]]), cards=False))
    <tr><th scope="row"><bdi>&lt;a&gt;</bdi></th><td><bdi>1</bdi></td></tr>
    <tr><th scope="row"><bdi>b</bdi></th><td class="empty"><bdi></bdi></td></tr>
    """
    begin = '<tr role="row">' if cards else "<tr>"
    first = '<th scope="row" role="rowheader">' if cards else '<th scope="row">'
    others = [f'<td role="cell" data-column="{_safe(column)}"' if cards else "<td" for column in table.columns[1:]]
    classes = ["" if isinstance(column, Number) else ' class="text"' for column in table.columns[1:]]
    return "\n".join(f"{begin}{first}{''.join(_cells(row, others, classes))}</tr>" for row in table.rows)


def _cells(row: Sequence[str], others: Sequence[str], classes: Sequence[str]) -> Iterator[str]:
    """Yield the cells of a row without the tag that begins it. others, classes: of the columns but the first."""
    yield f"{_content(row[0])}</th>"
    for cell, tag, plain in zip(row[1:], others, classes, strict=True):
        kind = plain if cell else ' class="empty"'
        if isinstance(cell, Cell) and cell.span:
            kind = ' class="span"'
        yield f"{tag}{kind}>{_content(cell)}</td>"


def _content(cell: str) -> str:
    words = _safe(cell)
    if not isinstance(cell, Cell):
        return f"<bdi>{words}</bdi>"
    if cell.span:
        return f'{_line(words, *cell.span)}<span class="ends" aria-hidden="true">{words}</span>'
    return f'<a href="#{_safe(cell.link)}"><bdi>{words}</bdi></a>' if cell.link else f"<bdi>{words}</bdi>"


def _line(words: str, low: float, middle: float, high: float) -> str:
    """Return the picture of an interval, with an arrow at an end that is beyond the scale."""
    head = '<svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img"'
    line = f'<line x1="{low}" x2="{high}" y1="5" y2="5" stroke="#2b7a9b" stroke-width="3" opacity=".4"/>'
    line += '<path d="M3 0L0 5L3 10z" fill="#2b7a9b"/>' * (low == 0)
    line += '<path d="M97 0L100 5L97 10z" fill="#2b7a9b"/>' * (high == 100)
    if 0 < middle < 100:
        line += f'<line x1="{middle}" x2="{middle}" y1="0" y2="10" stroke="#2b7a9b" stroke-width="1.6"/>'
    return f'{head} aria-label="{words}">{line}</svg>'


def _safe(text: str) -> str:
    return escape(escape_controls(text))
