"""The worked example that `forecast-ledger demo` shows: a published tournament beside its own log's numbers."""

import csv
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import NamedTuple

from forecast_ledger.ledger.core.values import DAY, format_instant
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.replay.reading.replay import replay
from forecast_ledger.replay.reading.text_tables import PrintedRow, as_table
from forecast_ledger.replay.writing.append import append_lines

STORY = "metaculus-2022"
_TITLES = {
    "plain": "Coverage on every day: the bot that copies the median wins a little.",
    "hidden-only": "Coverage on the hidden days alone: it wins nothing.",
}
_FIGURES = ("score", "coverage", "take", "prize")


class Agreement(NamedTuple):
    """One published figure and ours, rounded to as many decimals."""

    what: str
    published: str
    ours: str

    @property
    def agrees(self) -> bool:
        """Whether they are the same figure."""
        return Decimal(self.published) == Decimal(self.ours)


class Told(NamedTuple):
    """What the demonstration says, and whether every figure agrees."""

    lines: list[str]
    agrees: bool


def told(folder: str) -> Told:
    """Append the story's commands to a new log in a folder, replay it, and compare."""
    log = str(Path(folder) / "demo.db")
    with Ledger.open(log) as ledger, (story() / "commands.jsonl").open("rb") as file:
        counts = append_lines(ledger, file, lambda *_: None, lambda _: None)
    found = replay(log)
    figures = list(agreements(found.projections, story()))
    apart = [figure for figure in figures if not figure.agrees]
    lines = [
        "The tournament that Metaculus published on April 6th, 2022, rebuilt from its event log.",
        f"{counts['accepted']} commands appended, then replayed as of log position {found.checkpoint.position}.",
    ]
    for contest, rows in boards(found.projections, story()):
        lines += ["", _TITLES[contest], "", *as_table(list(rows[0]), rows)]
    lines += ["", *(f"{figure.what}: published {figure.published}, here {figure.ours}" for figure in apart)]
    lines += [f"{len(figures) - len(apart)} of {len(figures)} published figures agree to their last digit."]
    return Told(lines, not apart)


def story(name: str = STORY) -> Path:
    """The folder of a worked example."""
    return Path(__file__).parents[2] / "data" / name


def published(name: str, folder: Path) -> list[dict[str, str]]:
    """An expected table of a story."""
    with (folder / "expected" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def boards(projections: Projections, folder: Path) -> Iterator[tuple[str, list[PrintedRow]]]:
    """Each contest's board with the published figures beside ours."""
    printed = {(row["contest"], row["participant"]): row for row in published("published_leaderboard", folder)}
    for contest in dict.fromkeys(contest for contest, _ in printed):
        rows = []
        for row in projections.table("leaderboard").only("contest", contest).rows():
            theirs = printed[contest, row["participant"]]
            shown: PrintedRow = {"rank": row["rank"], "participant": row["participant"]}
            for spaces, figure in enumerate(_FIGURES):
                shown[figure] = row[figure]
                shown["published" + " " * spaces] = theirs[figure]  # names of columns differ
            rows.append(shown)
        yield contest, rows


def agreements(projections: Projections, folder: Path) -> Iterator[Agreement]:
    """Every figure that the document prints, beside ours."""
    yield from _daily(projections, folder)
    scores = {(row["question"], row["participant"]): row for row in _plain(projections, "scores")}
    for row in published("published_scores", folder):
        ours = scores.get((row["question"], row["participant"]), {"score": "0", "coverage": "0"})
        for figure in ("score", "coverage"):
            yield _compared(f"{row['question']} {row['participant']} {figure}", row[figure], ours[figure])
    board = {(row["contest"], row["participant"]): row for row in projections.table("leaderboard").rows()}
    for row in published("published_leaderboard", folder):
        place = board[row["contest"], row["participant"]]
        for figure in _FIGURES:
            yield _compared(f"{row['contest']} {row['participant']} {figure}", row[figure], place[figure])
        yield _compared(f"{row['contest']} {row['participant']} percent", row["percent"], place["share"])


def _daily(projections: Projections, folder: Path) -> Iterator[Agreement]:
    """The score of each day: the term of the part that its first instant lies in, or 0."""
    parts = _plain(projections, "score_parts")
    opens_at = {question.question: question.opens_at for question in projections.facts.questions}
    for row in published("published_daily", folder):
        begins = format_instant(opens_at[row["question"]] + (int(row["day"]) - 1) * DAY)
        terms = [
            part["term"]
            for part in parts
            if (part["question"], part["participant"]) == (row["question"], row["participant"])
            and part["from_at"] <= begins < part["to_at"]
        ]
        yield _compared(f"{row['question']} {row['participant']} day {row['day']}", row["score"], [*terms, "0"][0])


def _plain(projections: Projections, table: str) -> list[PrintedRow]:
    return [row for row in projections.table(table).rows() if row["contest"] == "plain"]


def _compared(what: str, printed: str, ours: str) -> Agreement:
    """Ours, rounded half-even to the decimals of a printed figure such as -0.41, $108 or 83%."""
    figure = printed.strip("$%")
    value = Decimal(ours) * (100 if printed.endswith("%") else 1)
    return Agreement(what, figure, str(value.quantize(Decimal(figure), ROUND_HALF_EVEN)))
