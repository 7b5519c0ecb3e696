"""Pages of reference: their contents, and how they are printed as Markdown and for a terminal."""

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import NamedTuple

WIDTH = 120  # columns of a page in Markdown
_TERM = 24  # columns of a term that shares a line with its meaning


class Table(NamedTuple):
    """Rows of cells under a header; a cell is Markdown without line breaks. The first cell is the name of the row."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Code(NamedTuple):
    """Lines that are printed unchanged."""

    language: str
    text: str


class Entry(NamedTuple):
    """The description of one name; kind: what the name is, such as a command."""

    name: str
    kind: str
    blocks: "tuple[str | Table | Code, ...]"


class Heading(NamedTuple):
    """The title of the blocks that follow."""

    text: str


Block = str | Table | Code | Entry | Heading  # a str is a paragraph of Markdown, or one item of a list


class Page(NamedTuple):
    """A topic: its title, a summary of one line, and its blocks."""

    topic: str
    title: str
    summary: str
    blocks: tuple[Block, ...]


def bare(cell: str) -> str:
    """Return the name in a cell, without its marks.

    >>> bare("`title`?")
    'title'
    """
    return cell.rstrip("?").strip("`")


def names(page: Page) -> Iterator[str]:
    """Yield every name that has an entry on a page, or a row of a table, also within an entry."""
    for block in page.blocks:
        if isinstance(block, Entry):
            yield block.name
        for table in _tables(block):
            yield from (bare(row[0]) for row in table.rows)


def entries_of(page: Page, name: str, *, within: bool = False) -> list[Block]:
    """Return the entries of a name on a page, and its rows of tables; within: its rows within entries instead."""
    blocks: list[Block] = []
    for block in page.blocks:
        if isinstance(block, Entry) and not within:
            blocks += [block] * (block.name == name)
        elif isinstance(block, Entry) == within:
            rows = [part for table in _tables(block) if (part := _rows_of(table, name)).rows]
            blocks += [block._replace(blocks=tuple(rows))] * bool(rows) if isinstance(block, Entry) else rows
    return blocks


def _tables(block: "Block") -> list[Table]:
    parts = block.blocks if isinstance(block, Entry) else (block,)
    return [part for part in parts if isinstance(part, Table)]


def _rows_of(table: Table, name: str) -> Table:
    return table._replace(rows=tuple(row for row in table.rows if bare(row[0]) == name))


def as_markdown(page: Page) -> str:
    """Return the page as a file of Markdown."""
    parts = [f"# {page.title}", _paragraph(page.summary), *_joined(map(_markdown, _flat(page.blocks)))]
    return "\n\n".join(parts) + "\n"


def as_text(blocks: Iterable[Block], width: int) -> str:
    """Return blocks as text for a terminal of `width` columns.

    >>> print(as_text(["Of `ids`.", Table(("code", "means"), (("`none`", "nothing"),))], 40))
    Of ids.
    <BLANKLINE>
      code                      means
      none                      nothing
    """
    return "\n\n".join(_joined(_text(block, width) for block in _flat(blocks)))


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


def _paragraph(text: str) -> str:
    indent = "  " * text.startswith("- ")
    return "\n".join(wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


def _markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {text}"
        case Table(header, rows):
            lines = [header, ("---",) * len(header), *rows]
            return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)
        case Code(language, text):
            return f"```{language}\n{text}\n```"
        case str():
            return _paragraph(block)
        case Entry():
            raise TypeError("entries are flattened before")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _text(block: Block, width: int) -> str:
    match block:
        case Heading(text):
            return text.replace("`", "")
        case Table(header, rows):
            return "\n".join(line for row in (header, *rows) for line in _row(row, width))
        case Code(_, text):
            return text
        case str():
            indent = "  " * block.startswith("- ")
            return "\n".join(wrap(block.replace("`", ""), width, subsequent_indent=indent, break_on_hyphens=False))
        case Entry():
            raise TypeError("entries are flattened before")


def _row(row: tuple[str, ...], width: int) -> list[str]:
    """Return the lines of a row: the term, and beside or below it the other cells."""
    term, *others = (cell.replace("`", "") for cell in row)
    meaning = "; ".join(filter(None, others))
    lines = wrap(meaning, max(width - _TERM - 4, 20), break_on_hyphens=False)
    beside = [f"  {'':{_TERM}}  {line}" for line in lines]
    if len(term) > _TERM or not lines:
        return [f"  {term}", *beside]
    return [f"  {term:{_TERM}}  {lines[0]}", *beside[1:]]
