"""Working papers as files: Markdown and HTML."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.replay.audit.checkpoint import SavedCheckpoint
from forecast_ledger.replay.pages.evidence import HOUR
from forecast_ledger.replay.pages.report import template_environment, write_file
from forecast_ledger.replay.pages.working_paper import Audit, Paper, working_paper
from forecast_ledger.replay.reading.blocks import Heading, as_markdown, escaped
from forecast_ledger.replay.reading.log import AsOf, Log, OnProgress


@checked("name", "as_of")
def audit(  # noqa: PLR0913 - the arguments with a default are keywords
    log: str | PathLike[str],
    out: str | PathLike[str],
    *,
    late: int = HOUR,
    checkpoint: SavedCheckpoint | None = None,
    name: str = "main",
    as_of: AsOf = None,
    on_progress: OnProgress = lambda _: None,
) -> Audit:
    """Check a log, and write the working paper of it: what was checked, what was found, and what was not checked.

    out: a file whose name ends in .html or .md, which it replaces at once, or not at all. late: how long after the
    instant that it claims an entry may be recorded, µs. checkpoint: an earlier one to compare the log with. log, name,
    as_of, on_progress: as in `replay`. The paper of a damaged log says where the damage is, and gives no numbers.

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
    found = working_paper(Log(log, name, as_of, on_progress), out, late=int(late), checkpoint=checkpoint)
    write_file(Path(out), write(found.paper).encode("utf-8", "replace"))
    return found


def to_html(paper: Paper) -> str:
    """Return a paper as one page of HTML. Raises Unavailable: the extra `report` is not installed."""
    return template_environment().get_template("paper.html.jinja").render(paper=paper)


def to_markdown(paper: Paper) -> str:
    """Return a paper as Markdown. No text of the log is markup."""
    blocks = [block for section in paper.sections for block in section.blocks()]
    parts = [
        as_markdown([Heading(paper.title, 1)], authored=False),
        f"**{escaped(paper.verdict)}**",
        as_markdown(blocks, authored=False),
        f"The same log gives the same paper: `{paper.command.replace('`', '')}`",
    ]
    return "\n\n".join(parts) + "\n"


FORMATS: dict[str, Callable[[Paper], str]] = {".html": to_html, ".md": to_markdown}
