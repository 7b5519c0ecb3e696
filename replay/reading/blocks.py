"""Text: tables as JSON and CSV; blocks of a document as Markdown and for a terminal. `pages` has them as HTML."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from textwrap import wrap
from typing import Any, NamedTuple, Self

import msgspec

from forecast_ledger.projections.core.text_table import NUMBER, PrintedRow, as_table, escape

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")  # control characters
_CONTROLS_IN_LINES = re.compile(rf"(?!\n|\t|\r\n){_CONTROLS.pattern}")  # a text may have lines and tabs
_MARKS = '",\r\n'  # a cell with one of them is quoted
_QUOTED = re.compile(f"[{_MARKS}]")
_QUOTE = '"'
_EMPTY = _QUOTE * 2  # a line of one empty cell, which would be no row
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001 - a spreadsheet reads wide ones too


def as_json(names: Sequence[str], rows: Iterable[PrintedRow]) -> Iterator[str]:
    r"""Return one JSON array, one object per line; control characters are escaped as in JSON.

    >>> print("\n".join(as_json(["who"], [{"who": "ada"}, {"who": "bo"}])))
    [
    {"who":"ada"},
    {"who":"bo"}
    ]
    """
    del names  # each object has them
    yield "["
    waiting = ""
    for row in rows:
        if waiting:
            yield waiting + ","
        waiting = escape_json(msgspec.json.encode(row).decode())
    if waiting:
        yield waiting
    yield "]"


def as_csv(names: Sequence[str], rows: Iterable[PrintedRow]) -> Iterator[str]:
    r"""Return a header and one line per row; an apostrophe precedes a text that a spreadsheet would run as a formula.

    >>> print("\n".join(as_csv(["who", "score"], [{"who": "=1+1", "score": "-0.5"}])))
    who,score
    '=1+1,-0.5
    """
    for row in chain([names], ([row[name] for name in names] for row in rows)):
        yield from csv_lines([[csv_cell(cell)] for cell in row])


def csv_lines(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """Return the lines of rows whose cells are given column by column.

    >>> [*csv_lines([["ada", "bo"], ["-0.5", ""]])]
    ['ada,-0.5', 'bo,']
    """
    lines = map(",".join, zip(*columns, strict=True))
    return lines if len(columns) > 1 else (line or _EMPTY for line in lines)


def csv_cell(cell: Any) -> str:
    r"""Return a cell of CSV, as the module `csv` writes it after `escape_formula`; None is empty.

    >>> csv_cell("a\rb"), csv_cell(None), csv_cell(3), csv_cell("+1+1")
    ('"a\rb"', '', '3', "'+1+1")
    """
    text = "" if cell is None else str(escape_formula(cell))
    return f'"{text.replace(_QUOTE, _QUOTE * 2)}"' if _QUOTED.search(text) else text


def csv_cells(cells: Sequence[str | None]) -> list[str]:
    """Return texts as cells of CSV, each as `csv_cell` returns it.

    >>> csv_cells(["ada", None, "a,b"])
    ['ada', '', '"a,b"']
    """
    texts = ["" if cell is None else cell for cell in cells]
    if any(first in _FORMULA or first.isspace() for first in {text[:1] for text in texts}):
        return [*map(csv_cell, texts)]
    if all(_QUOTE in text for text in texts):  # such as rows of the log
        return [f'"{text.replace(_QUOTE, _QUOTE * 2)}"' for text in texts]
    joined = "".join(texts)
    if not any(mark in joined for mark in _MARKS):
        return texts
    return [f'"{text.replace(_QUOTE, _QUOTE * 2)}"' if _QUOTED.search(text) else text for text in texts]


def as_terminal_csv(names: Sequence[str], rows: Iterable[PrintedRow]) -> Iterator[str]:
    r"""Return the same for a terminal: control characters except line breaks and tabs are escaped as in Python.

    >>> print("\n".join(as_terminal_csv(["who"], [{"who": "a\x1b[2J"}])))
    who
    a\x1b[2J
    """
    for line in as_csv(names, rows):
        yield escape_controls(line)


def escape_controls(text: str) -> str:
    r"""Return a text of one or more lines with its other control characters, and changes of direction, escaped.

    >>> escape_controls("a\n\x1b[2J\u202e")
    'a\n\\x1b[2J\\u202e'
    """
    return text if text.isprintable() else _CONTROLS_IN_LINES.sub(lambda match: escape(match[0]), text)


def escape_json(text: str) -> str:
    r"""Return the same JSON with its control characters escaped.

    >>> print(escape_json('["a\x9b2J"]'))
    ["a\u009b2J"]
    """
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


TEXT_FORMATS: dict[str, Callable[[Sequence[str], Iterable[PrintedRow]], Iterator[str]]] = {
    "table": as_table,
    "json": as_json,
    "csv": as_terminal_csv,
}


def escape_formula(cell: Any) -> Any:
    """Return a cell of CSV; an apostrophe precedes a text that a spreadsheet would run as a formula.

    >>> escape_formula("=1+1"), escape_formula("-0.5"), escape_formula(3)
    ("'=1+1", '-0.5', 3)
    """
    risky = isinstance(cell, str) and cell.lstrip().startswith(_FORMULA) and not NUMBER.fullmatch(cell)
    return f"'{cell}" if risky else cell


# --- Blocks of a document, and how they are written as Markdown and for a terminal; `pages` writes them as HTML.


WIDTH = 120  # columns of a page in Markdown
_TERM = 24  # columns of a term that shares a line with its meaning
_MARKUP = re.compile(
    r"[\\`*\[\]<>#|~&$@]|(?<!\w)_|_(?!\w)|(?<=www)\.|:(?=//)|^[-+=](?=\s|$|[-=])",
    re.IGNORECASE,
)
_LIST_NUMBER = re.compile(r"[0-9]{1,9}[.)](?=\s|$)")
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Number(str):
    """The heading of a column of numbers, which are aligned to the right."""

    __slots__ = ()


class Cell(str):
    """A cell of a table with more than words. span: of an interval, low, middle and high, 0 … 100. link: an anchor."""

    __slots__ = ("link", "span")
    span: tuple[float, float, float] | None
    link: str

    def __new__(cls, words: str, span: tuple[float, float, float] | None = None, link: str = "") -> Self:
        """Return the cell."""
        cell = super().__new__(cls, words)
        cell.span, cell.link = span, link
        return cell


class Table(NamedTuple):
    """Rows of cells under the headings of their columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


class Pairs(NamedTuple):
    """Names, each with its value."""

    pairs: Sequence[tuple[str, str]]


class Code(NamedTuple):
    """Lines that are printed unchanged."""

    language: str
    text: str


class Heading(NamedTuple):
    """The title of the blocks that follow. level: 1 for that of the document."""

    text: str
    level: int = 2


class Entry(NamedTuple):
    """The description of one name; kind: what the name is, such as a command."""

    name: str
    kind: str
    blocks: "tuple[str | Table | Code, ...]"


Block = str | Table | Pairs | Code | Entry | Heading  # a str is a paragraph, or one item of a list


def as_markdown(blocks: Iterable[Block], *, authored: bool = True) -> str:
    r"""Return blocks as Markdown, with tables as the GitHub Flavored Markdown Spec has them, section 4.10.

    authored: their texts are Markdown themselves, without line breaks; else no text is markup.

    >>> print(as_markdown([Heading("a_b*", 1), Pairs([("at", "noon")])], authored=False))
    # a_b\*
    <BLANKLINE>
    - at: noon
    """
    return "\n\n".join(_joined(_markdown(block, _AUTHORED if authored else _PLAIN) for block in _flat(blocks)))


def as_text(blocks: Iterable[Block], width: int) -> str:
    """Return blocks, whose texts are Markdown, as text for a terminal of `width` columns.

    >>> print(as_text(["Of `ids`.", Table(("code", "means"), (("`none`", "nothing"),))], 40))
    Of ids.
    <BLANKLINE>
      code                      means
      none                      nothing
    """
    return "\n\n".join(_joined(_text(block, width) for block in _flat(blocks)))


def escaped(text: str) -> str:
    r"""Return a text on one line, with a backslash before whatever Markdown could read as markup.

    >>> escaped("a|b <script>\n# c"), escaped("recorded_at _x_"), escaped("www.example.org"), escaped("1. one")
    ('a\\|b \\<script\\> \\# c', 'recorded_at \\_x\\_', 'www\\.example.org', '1\\. one')
    """
    line = escape(_BREAKS.sub(" ", text).strip())
    number = _LIST_NUMBER.match(line)
    if number is not None:  # of a list
        return f"{number[0][:-1]}\\{number[0][-1]}{_MARKUP.sub(_backslash, line[number.end() :])}"
    return _MARKUP.sub(_backslash, line)


def _backslash(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


def _flat(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks with each entry replaced by its heading and its own blocks."""
    for block in blocks:
        if isinstance(block, Entry):
            yield Heading(f"`{block.name}`")
            yield from block.blocks
        else:
            yield block


def _joined(parts: Iterable[str]) -> list[str]:
    """Join the items of one list, without empty lines between them."""
    joined: list[str] = []
    for part in parts:
        if joined and part.startswith("- ") and joined[-1].startswith("- "):
            joined[-1] += "\n" + part
        else:
            joined.append(part)
    return joined


class _Style(NamedTuple):
    """How texts are written as Markdown: titles and names, paragraphs, and cells of tables."""

    words: Callable[[str], str]
    paragraph: Callable[[str], str]
    cell: Callable[[str], str]


def _paragraph(text: str) -> str:
    indent = "  " * text.startswith("- ")
    return "\n".join(wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


_AUTHORED = _Style(str, _paragraph, lambda text: text.replace("|", "\\|"))
_PLAIN = _Style(escaped, escaped, escaped)


def _markdown(block: Block, style: _Style) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {style.words(text)}"
        case Pairs(pairs):
            return "\n".join(f"- {style.words(name)}: {style.words(value)}" for name, value in pairs)
        case Table(columns, rows, caption):
            marks = ["---:" if isinstance(column, Number) else "---" for column in columns]
            head, *body = ([*map(style.cell, row)] for row in (columns, *rows))
            lines = [f"| {' | '.join(line)} |" for line in (head, marks, *body)]
            return "\n".join([f"{style.words(caption)}:", "", *lines] if caption else lines)
        case Code(language, text):
            return f"```{language}\n{text}\n```"
        case str():
            return style.paragraph(block)
        case Entry():
            raise TypeError("entries are flattened before")


def _text(block: Block, width: int) -> str:
    match block:
        case Heading(text):
            return text.replace("`", "")
        case Pairs(pairs):
            return "\n".join(line for pair in pairs for line in _row(pair, width))
        case Table(columns, rows):
            return "\n".join(line for row in (columns, *rows) for line in _row(row, width))
        case Code(_, text):
            return text
        case str():
            indent = "  " * block.startswith("- ")
            return "\n".join(wrap(block.replace("`", ""), width, subsequent_indent=indent, break_on_hyphens=False))
        case Entry():
            raise TypeError("entries are flattened before")


def _row(row: Sequence[str], width: int) -> list[str]:
    """Return the lines of a row: the term, and beside or below it the other cells."""
    term, *others = (cell.replace("`", "") for cell in row)
    meaning = "; ".join(filter(None, others))
    lines = wrap(meaning, max(width - _TERM - 4, 20), break_on_hyphens=False)
    beside = [f"  {'':{_TERM}}  {line}" for line in lines]
    if len(term) > _TERM or not lines:
        return [f"  {term}", *beside]
    return [f"  {term:{_TERM}}  {lines[0]}", *beside[1:]]
