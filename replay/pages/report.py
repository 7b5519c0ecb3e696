"""Reports: one page of HTML that shows the contests of a log, and single pictures."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from msgspec import json

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Refused, Unavailable, installing
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.core.values import format_count
from forecast_ledger.ledger.core.version import code_version
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.replay.audit.verify import SavedCheckpoint
from forecast_ledger.replay.files.manifest import clear_leftovers, move_into_place, scratch_folder
from forecast_ledger.replay.pages.findings import HOUR
from forecast_ledger.replay.pages.page_parts import Contest
from forecast_ledger.replay.pages.pictures import (
    VEGA_LITE,
    KnownTables,
    Picture,
    titled,
    to_png,
    to_svg,
    visible,
)
from forecast_ledger.replay.pages.sections import contest_section
from forecast_ledger.replay.pages.study_charts import PLOTS
from forecast_ledger.replay.pages.working_paper import Audit, Paper, working_paper
from forecast_ledger.replay.reading.blocks import Heading, Number, as_markdown, escape_controls, escaped
from forecast_ledger.replay.reading.board_notes import seal_notes, sentences
from forecast_ledger.replay.reading.log import AsOf, Log, OnProgress, find_contest, only_contest
from forecast_ledger.replay.reading.replay import Replay, replay

if TYPE_CHECKING:
    from jinja2 import Environment


@checked("name", "as_of")
def report(  # noqa: PLR0913 - the arguments with a default are keywords
    log: str | PathLike[str],
    out: str | PathLike[str],
    *,
    contests: Sequence[str] = (),
    specs: str | PathLike[str] | None = None,
    name: str = "main",
    as_of: AsOf = None,
    on_progress: OnProgress = lambda _: None,
) -> Replay:
    """Write one page of HTML that shows contests: their rules, boards, pictures and participants.

    out: the page, which replaces a file of that name at once, or not at all. It needs no other file, and asks for none.
    contests: ids of those to show, in this order; all of them if there are none. specs: a folder for the Vega-Lite
    specification of each picture, with its data. log, name, as_of, on_progress: as in `replay`. The same log gives the
    same bytes.

    Raises, first that applies: Unavailable (the extra `report` is not installed), the errors of `replay`,
    Refused(unknown_contest), OSError.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import append, open_ledger, report
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     season = report(f"{folder}/season.db", f"{folder}/season.html", contests=["plain"])
    ...     page = Path(folder, "season.html").read_text()
    >>> page.splitlines()[0], "B is first" in page
    ('<!DOCTYPE html>', True)
    """
    environment = template_environment()
    season = replay(log, name, as_of, on_progress)
    facts = season.projections.facts
    names = [*contests] or sorted(facts.contests)
    for each in names:
        find_contest(facts, each)
    sections, pictures, projections = [], dict[str, Picture](), KnownTables(season.projections)
    same = _same_questions(facts, names)
    for number, contest in enumerate(names):
        section, charts = contest_section(projections, contest, f"contest-{number + 1}", same[contest])
        sections.append(section)
        pictures |= {f"contest-{number + 1}-{kind}": picture for kind, picture in charts.items()}
    page = _page(season, sections, Path(redacted(fspath(log))).name, Path(out).name, contests)
    page |= {"ledger": name, "vega": VEGA_LITE if pictures else "", "shared": any(same.values())}
    html = environment.get_template("page.html.jinja").render(page=page)
    if specs is not None:
        _write_specifications(Path(specs), pictures)
    write_file(Path(out), html.encode())
    return season


def _same_questions(facts: Facts, names: Sequence[str]) -> dict[str, list[str]]:
    """Return, for each of some contests, the others with the same questions."""
    groups: dict[frozenset[int], list[str]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(frozenset(facts.contests[name].entries), []).append(name)
    return {
        name: [other for other in group if other != name] if questions else []
        for questions, group in groups.items()
        for name in group
    }


def _page(season: Replay, sections: Sequence[Contest], log: str, out: str, contests: Sequence[str]) -> dict[str, Any]:
    """Return what the page says of the whole log."""
    position, questions = season.checkpoint.position, len(season.projections.facts.questions)
    options = [part for each in contests for part in ("--contest", each)]
    command = ["forecast-ledger", "report", log, out, *options, "--as-of", str(position)]
    return {
        "title": sections[0].title if len(sections) == 1 else f"{format_count(len(sections), 'contest')} of {log}",
        "state": f"{format_count(questions, 'question')} in the log, as of log position {position:,}",
        "contests": sections,
        "position": position,
        "digest": season.checkpoint.digest,
        "version": code_version(),
        "command": join(command),
        "check": join(["forecast-ledger", "verify", log, "--as-of", str(position)]),
    }


@checked("name", "as_of")
def plot(  # noqa: PLR0913 - the arguments with a default are keywords
    log: str | PathLike[str],
    kind: str,
    out: str | PathLike[str],
    *,
    contest: str | None = None,
    name: str = "main",
    as_of: AsOf = None,
    on_progress: OnProgress = lambda _: None,
) -> Picture:
    """Draw one picture of a contest, and return it.

    kind: one of `PLOTS`. out: a file whose name ends in .svg or .png, with title and note above the picture, or in
    .json, the Vega-Lite specification with its data. contest: its id; it can be left out if the log has only one. log,
    name, as_of, on_progress: as in `replay`.

    Raises, first that applies: KeyError (no such kind), ValueError (another ending), the errors of `replay`,
    Refused(unknown_contest; malformed: there are several contests; nothing_standing: nothing to draw), Unavailable (the
    extra `report` is not installed), OSError.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import append, open_ledger, plot
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     plot(f"{folder}/season.db", "prizes", f"{folder}/prizes.svg", contest="plain").title
    'B gets 78% of what is paid out'
    """
    draw, write = PLOTS[kind].draw, FORMATS.get(Path(out).suffix)
    if write is None:
        raise ValueError(f"{Path(out).name} ends in none of {', '.join(FORMATS)}")
    season = replay(log, name, as_of, on_progress)
    chosen = only_contest(season.projections.facts) if contest is None else contest
    find_contest(season.projections.facts, chosen)
    picture = draw(season.projections, chosen)
    if picture is None:
        raise Refused("nothing_standing", "contest", chosen, f"it has nothing to show as {kind}")
    if notes := seal_notes(season.projections, chosen):
        picture = picture._replace(note=f"{picture.note} {sentences(notes)}".strip())
    write_file(Path(out), write(picture))
    return picture


def specification(picture: Picture) -> bytes:
    """Return the Vega-Lite specification of a picture, with its data, title and note, as JSON."""
    whole: Mapping[str, Any] = visible(picture.specification | {"title": picture.title, "description": picture.note})
    return json.format(json.encode(whole), indent=1) + b"\n"


FORMATS: dict[str, Callable[[Picture], bytes]] = {
    ".svg": lambda picture: to_svg(titled(picture)).encode(),
    ".png": lambda picture: to_png(titled(picture)),
    ".json": specification,
}


def write_file(out: Path, content: bytes) -> None:
    """Write a file that replaces another at once, or not at all."""
    clear_leftovers(out)
    with scratch_folder(out) as scratch:
        part = scratch / out.name
        part.write_bytes(content)
        move_into_place(part, out)


def _write_specifications(folder: Path, pictures: Mapping[str, Picture]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        write_file(folder / f"{name}.vl.json", specification(picture))


@cache
def template_environment() -> "Environment":
    """Return what fills the templates of pages; a process compiles each once.

    Raises Unavailable: the extra `report` is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - late: optional
    except ImportError as missing:
        raise Unavailable(f"reports are made by Jinja, which is not installed; {installing('report')}") from missing
    from forecast_ledger.replay.pages.html_rows import table_rows  # noqa: PLC0415 - late: it needs the same

    loader = FileSystemLoader(Path(__file__).parent)

    def finalize(value: object) -> object:
        is_picture = hasattr(value, "__html__")  # it is marked as safe
        return escape_controls(value) if isinstance(value, str) and not is_picture else value

    environment = Environment(loader=loader, autoescape=True, finalize=finalize, undefined=StrictUndefined)
    environment.globals["table_rows"] = table_rows
    environment.tests["of_numbers"] = lambda column: isinstance(column, Number)
    return environment


# --- Working papers as files: Markdown and HTML.


@checked("name", "as_of")
def audit(  # noqa: PLR0913 - the arguments with a default are keywords
    log: str | PathLike[str],
    out: str | PathLike[str],
    *,
    late: int = HOUR,
    checkpoint: SavedCheckpoint | None = None,
    contest: str | None = None,
    name: str = "main",
    as_of: AsOf = None,
    on_progress: OnProgress = lambda _: None,
) -> Audit:
    """Check a log, and write the working paper of it: what was checked, what was found, and what was not checked.

    out: a file whose name ends in .html or .md, which it replaces at once, or not at all. late: how long after the
    instant that it claims an entry may be recorded, µs. checkpoint: an earlier one to compare the log with. contest:
    what follows the checks is about this contest alone. log, name, as_of, on_progress: as in `replay`. The paper of a
    damaged log says where the damage is, and gives no numbers.

    Raises, first that applies: ValueError (another ending), Refused (as_of is not an instant, or beyond the log;
    unknown_contest), Unavailable (also: HTML needs the extra `report`), OSError.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import append, audit, open_ledger
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     audited = audit(f"{folder}/season.db", f"{folder}/paper.md")
    >>> audited.paper.verdict
    'All 7 checks of 34 events found no fault.'
    """
    write = PAPER_FORMATS.get(Path(out).suffix)
    if write is None:
        raise ValueError(f"{Path(out).name} ends in none of {', '.join(PAPER_FORMATS)}")
    source = Log(log, name, as_of, on_progress)
    audited = working_paper(source, out, late=int(late), checkpoint=checkpoint, contest=contest)
    write_file(Path(out), write(audited.paper).encode("utf-8", "replace"))
    return audited


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


PAPER_FORMATS: dict[str, Callable[[Paper], str]] = {".html": to_html, ".md": to_markdown}
