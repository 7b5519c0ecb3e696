"""Working papers as files: Markdown and HTML."""

import re
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.replay.audit.checkpoint import SavedCheckpoint
from forecast_ledger.replay.papers.evidence import HOUR
from forecast_ledger.replay.papers.working_paper import Audit, Paper, Section, Sheet, working_paper
from forecast_ledger.replay.reading.log import AsOf, Log, Watch
from forecast_ledger.replay.reading.text_tables import escape
from forecast_ledger.replay.report.report import template_environment, write_file

_MARKUP = re.compile(
    r"[\\`*\[\]<>#|~&$@]|(?<!\w)_|_(?!\w)|(?<=www)\.|:(?=//)|^[-+=](?=\s|$|[-=])",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[0-9]{1,9}[.)](?=\s|$)")
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@checked("name", "as_of")
def audit(  # noqa: PLR0913 - the arguments with a default are keywords
    log: str | PathLike[str],
    out: str | PathLike[str],
    *,
    late: int = HOUR,
    checkpoint: SavedCheckpoint | None = None,
    name: str = "main",
    as_of: AsOf = None,
    watch: Watch = lambda _: None,
) -> Audit:
    """Check a log, and write the working paper of it: what was checked, what was found, and what was not checked.

    out: a file whose name ends in .html or .md, which it replaces at once, or not at all. late: how long after the
    instant that it claims an entry may be recorded, µs. checkpoint: an earlier one to compare the log with. log, name,
    as_of, watch: as in `replay`. The paper of a damaged log says where the damage is, and gives no numbers.

    Raises, first that applies: ValueError (another ending), Refused (as_of is not an instant, or beyond the log),
    Unavailable (also: HTML needs the extra `report`), OSError.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import append, audit, open
    >>> with TemporaryDirectory() as folder, open(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     found = audit(f"{folder}/season.db", f"{folder}/paper.md")
    >>> found.paper.verdict
    'All 7 checks of 34 events found no fault.'
    """
    write = FORMATS.get(Path(out).suffix)
    if write is None:
        raise ValueError(f"{Path(out).name} ends in none of {', '.join(FORMATS)}")
    found = working_paper(Log(log, name, as_of, watch), out, late=int(late), checkpoint=checkpoint)
    write_file(Path(out), write(found.paper).encode("utf-8", "replace"))
    return found


def to_html(paper: Paper) -> str:
    """Return a paper as one page of HTML. Raises Unavailable: the extra `report` is not installed."""
    return template_environment(Path(__file__).parent).get_template("paper.html.jinja").render(paper=paper)


def to_markdown(paper: Paper) -> str:
    """Return a paper as Markdown, with tables as the GitHub Flavored Markdown Spec has them, section 4.10.

    No text of the log is markup.
    """
    lines = [f"# {escaped(paper.title)}", "", f"**{escaped(paper.verdict)}**"]
    for section in paper.sections:
        lines += ["", *_section(section)]
    lines += ["", f"The same log gives the same paper: `{paper.command.replace('`', '')}`"]
    return "\n".join(lines) + "\n"


def _section(section: Section) -> Iterator[str]:
    yield f"{'#' * section.level} {escaped(section.title)}"
    for sentence in section.words:
        yield from ("", escaped(sentence))
    if section.facts:
        yield ""
        yield from (f"- {escaped(name)}: {escaped(value)}" for name, value in section.facts)
    for sheet in section.sheets:
        yield from ("", f"{escaped(sheet.caption)}:", "", *_table(sheet))


def _table(sheet: Sheet) -> Iterator[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    yield line([escaped(column) for column in sheet.columns])
    yield line(["---:" if column in sheet.numbers else "---" for column in sheet.columns])
    for row in sheet.rows:
        yield line([escaped(cell) for cell in row])


def escaped(text: str) -> str:
    r"""Return a text on one line, with a backslash before whatever Markdown could read as markup.

    >>> escaped("a|b <script>\n# c"), escaped("recorded_at _x_"), escaped("www.example.org"), escaped("1. one")
    ('a\\|b \\<script\\> \\# c', 'recorded_at \\_x\\_', 'www\\.example.org', '1\\. one')
    """
    line = escape(_BREAKS.sub(" ", text).strip())
    number = _NUMBER.match(line)
    if number is not None:  # of a list
        return f"{number[0][:-1]}\\{number[0][-1]}{_MARKUP.sub(_backslash, line[number.end() :])}"
    return _MARKUP.sub(_backslash, line)


def _backslash(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


FORMATS: dict[str, Callable[[Paper], str]] = {".html": to_html, ".md": to_markdown}
