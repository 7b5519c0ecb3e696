"""The worked example of `forecast-ledger demo`: a published tournament, compared with the numbers from its log."""

import csv
import shutil
import sys
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import click

from forecast_ledger.ledger.core.values import DAY, format_instant
from forecast_ledger.replay.console.shell import fail, report_errors, say
from forecast_ledger.replay.console.signals import FINDINGS, USAGE
from forecast_ledger.replay.reading.blocks import PrintedRow, as_table

if TYPE_CHECKING:
    from forecast_ledger.projections.tables.catalogue import Projections

STORY = "metaculus-2022"
_TITLES = {
    "plain": "Coverage on every day: the bot that copies the median wins a little.",
    "hidden-only": "Coverage on the hidden days alone: it wins nothing.",
}
_FIGURES = ("score", "coverage", "take", "prize")


class Figure(NamedTuple):
    """A published figure, and ours rounded to as many decimals."""

    name: str
    published: str
    ours: str

    @property
    def agrees(self) -> bool:
        """Report whether both are the same number."""
        return Decimal(self.published) == Decimal(self.ours)


class Demonstration(NamedTuple):
    """The lines to print, and whether every figure agrees."""

    lines: list[str]
    agrees: bool


def demonstrate(folder: str) -> Demonstration:
    """Append the commands of the worked example to a new log in a folder, replay it, and compare."""
    from forecast_ledger.ledger.storing.writer import Ledger
    from forecast_ledger.replay.reading.replay import replay
    from forecast_ledger.replay.writing.append import append_lines

    log = str(Path(folder) / "demo.db")
    with Ledger.open(log) as ledger, (story_folder() / "commands.jsonl").open("rb") as file:
        counts = append_lines(ledger, file, lambda *_: None, lambda _: None)
    season = replay(log)
    figures = list(compared_figures(season.projections, story_folder()))
    different = [figure for figure in figures if not figure.agrees]
    lines = [
        "The tournament that Metaculus published on April 6th, 2022, rebuilt from its event log.",
        f"{counts['accepted']} commands appended, then replayed as of log position {season.checkpoint.position}.",
    ]
    for contest, rows in boards(season.projections, story_folder()):
        lines += ["", _TITLES[contest], "", *as_table(list(rows[0]), rows)]
    lines += ["", *(f"{figure.name}: published {figure.published}, here {figure.ours}" for figure in different)]
    lines += [f"{len(figures) - len(different)} of {len(figures)} published figures agree to their last digit."]
    return Demonstration(lines, not different)


def story_folder(name: str = STORY) -> Path:
    """Return the folder of a worked example."""
    return Path(__file__).parents[2] / "data" / name


def published_rows(name: str, folder: Path) -> list[dict[str, str]]:
    """Read a table of published figures of a worked example."""
    with (folder / "expected" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def boards(projections: "Projections", folder: Path) -> Iterator[tuple[str, list[PrintedRow]]]:
    """Yield each contest with the rows of its board: below each row of ours, the published figures."""
    by_key = {(row["contest"], row["participant"]): row for row in published_rows("published_leaderboard", folder)}
    for contest in dict.fromkeys(contest for contest, _ in by_key):
        rows: list[PrintedRow] = []
        for ours in projections.table("leaderboard").only("contest", contest).rows():
            published = by_key[contest, ours["participant"]]
            rows.append({name: ours[name] for name in ("rank", "participant", *_FIGURES)})
            rows.append({"rank": "", "participant": "published"} | {name: published[name] for name in _FIGURES})
        yield contest, rows


def compared_figures(projections: "Projections", folder: Path) -> Iterator[Figure]:
    """Yield every figure that the document prints, with ours."""
    yield from _daily(projections, folder)
    scores = {(row["question"], row["participant"]): row for row in _plain(projections, "scores")}
    for row in published_rows("published_scores", folder):
        ours = scores.get((row["question"], row["participant"]), {"score": "0", "coverage": "0"})
        for figure in ("score", "coverage"):
            yield _figure(f"{row['question']} {row['participant']} {figure}", row[figure], ours[figure])
    board = {(row["contest"], row["participant"]): row for row in projections.table("leaderboard").rows()}
    for row in published_rows("published_leaderboard", folder):
        place = board[row["contest"], row["participant"]]
        for figure in _FIGURES:
            yield _figure(f"{row['contest']} {row['participant']} {figure}", row[figure], place[figure])
        yield _figure(f"{row['contest']} {row['participant']} percent", row["percent"], place["share"])


def _daily(projections: "Projections", folder: Path) -> Iterator[Figure]:
    """Yield the score of each day: the term of the part that contains its first instant, or 0."""
    parts = _plain(projections, "score_parts")
    opens_at = {question.question: question.opens_at for question in projections.facts.questions}
    for row in published_rows("published_daily", folder):
        begins = format_instant(opens_at[row["question"]] + (int(row["day"]) - 1) * DAY)
        terms = [
            part["term"]
            for part in parts
            if (part["question"], part["participant"]) == (row["question"], row["participant"])
            and part["from_at"] <= begins < part["to_at"]
        ]
        yield _figure(f"{row['question']} {row['participant']} day {row['day']}", row["score"], [*terms, "0"][0])


def _plain(projections: "Projections", table: str) -> list[PrintedRow]:
    return [row for row in projections.table(table).rows() if row["contest"] == "plain"]


def _figure(name: str, printed: str, ours: str) -> Figure:
    """Round ours half-even to the decimals of a printed figure such as -0.41, $108 or 83%."""
    figure = printed.strip("$%")
    value = Decimal(ours) * (100 if printed.endswith("%") else 1)
    return Figure(name, figure, str(value.quantize(Decimal(figure), ROUND_HALF_EVEN)))


@click.command(epilog="Example: forecast-ledger demo")
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the log in this new folder, beside the files of the guides, whose commands then work in it.",
)
@report_errors
def demo(keep: Path | None) -> None:
    """Rebuild a published tournament and check every figure.

    The commands of the tournament are appended to a temporary log, the log is replayed, and each resulting figure is
    compared with the published one.
    """
    if keep is not None:
        _keep_files(keep)
    with TemporaryDirectory() as folder:
        demonstration = demonstrate(folder if keep is None else str(keep))
        for line in demonstration.lines:
            print(line)
    if keep is not None:
        say(f"kept in {keep}: demo.db, the log of the tournament; data, the files of the guides")
    if not demonstration.agrees:
        sys.exit(FINDINGS)


def _keep_files(folder: Path) -> None:
    """Copy the files of the guides to a new or empty folder; another one is wrong usage."""
    if folder.exists() and any(folder.iterdir()):
        fail(f"{folder} is not empty: name a new folder", USAGE)
    shutil.copytree(story_folder().parent, folder / "data", ignore=shutil.ignore_patterns("__pycache__"))
