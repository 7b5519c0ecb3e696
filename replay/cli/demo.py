"""The worked example of `forecast-ledger demo`: a published tournament, compared with the numbers from its log."""

import csv
import shutil
import sys
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

import click

from forecast_ledger.ledger.core.values import DAY, format_instant
from forecast_ledger.projections.core.text_table import PrintedRow, as_table
from forecast_ledger.replay.cli.shell import fail, report_errors, say
from forecast_ledger.replay.reference.exit_codes import FINDINGS, USAGE

if TYPE_CHECKING:
    from forecast_ledger.projections.tables.catalogue import Projections

STORY = "metaculus-2022"
_CONTEST, _PARTICIPANT = "plain", "C"  # whose prize is explained
_FIGURES = ("score", "coverage", "take", "prize")
_BOARDS = {  # by contest: the title of its board, and the columns that are printed
    "plain": ("Coverage on every day: the bot that copies the median wins a little.", _FIGURES),
    "hidden-only": ("Coverage on the hidden days alone: it wins nothing.", _FIGURES[-1:]),
}
_ANSWER = 32  # the log position of the answer that is forged: from yes, the outcome 0, to no
_FORGED = (b'"outcome":0', b'"outcome":1')
_LATE = (
    "The answer to gdp-next-year was 2, to which C gave half the probability that the median gave. In another copy of "
    "the log, it is revoked two days later and given again as 3.9, to which both give the same"
)
_WIDTH = 100  # columns of a message; a digest has 64


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


def demonstrate(folder: Path, copies: Path) -> Demonstration:
    """Append the commands of the worked example to a new log in a folder, and show three things about it.

    copies: another folder, for the copies of the log that are changed; the log itself is not.
    """
    from forecast_ledger.replay.reading.replay import replay

    log = folder / "demo.db"
    accepted = _append(log, "commands.jsonl")
    season = replay(log)
    figures = list(compared_figures(season.projections, story_folder()))
    different = [figure for figure in figures if not figure.agrees]
    lines = [
        "1. The tournament that Metaculus published on April 6th, 2022, rebuilt from its event log.",
        f"{accepted} commands appended, then replayed as of log position {season.checkpoint.position}.",
        *_board_lines(season.projections),
        "",
        *forged_answer(log, copies / "forged.db"),
        "",
        *late_answer(log, copies / "late.db"),
        "",
        *(f"{figure.name}: published {figure.published}, here {figure.ours}" for figure in different),
        f"{len(figures) - len(different)} of {len(figures)} published figures agree to their last digit.",
    ]
    return Demonstration(lines, not different)


def _append(log: Path, name: str) -> int:
    """Append a file of the worked example to a log; return the number of its commands that are accepted."""
    from forecast_ledger.ledger.storing.writer import Ledger
    from forecast_ledger.replay.writing.append import append_lines

    with Ledger.open(str(log)) as ledger, (story_folder() / name).open("rb") as file:
        return append_lines(ledger, file)["accepted"]


def _board_lines(projections: "Projections") -> Iterator[str]:
    """Yield the boards under their titles; a board of one figure has the published one beside it, not below."""
    for contest, rows in boards(projections, story_folder()):
        title, figures = _BOARDS[contest]
        yield from ("", title)
        if len(figures) > 1:
            yield from as_table(list(rows[0]), rows)
        else:
            pairs = zip(rows[::2], rows[1::2], strict=True)
            beside = [ours | {"published": published[figures[0]]} for ours, published in pairs]
            yield from as_table(["rank", "participant", *figures, "published"], beside)


def forged_answer(log: Path, copy: Path) -> Iterator[str]:
    """Change one byte of one row in a copy of the log, and yield what `verify` finds in the copy."""
    from forecast_ledger.replay.audit.browse import row_bytes
    from forecast_ledger.replay.audit.verify import run_checks
    from forecast_ledger.replay.reading.log import Log

    with Log(log).opened() as store:
        row = row_bytes(store, _ANSWER)
    copy.write_bytes(log.read_bytes().replace(row, row.replace(*_FORGED)))
    yield "2. One byte forged in a copy of the log: olympics-2021 is answered no, not yes. `verify` finds:"
    for damage in run_checks(Log(copy)).damage:
        yield from wrap(f"the log is damaged: {damage}", _WIDTH)


def late_answer(log: Path, copy: Path) -> Iterator[str]:
    """Yield the explanation of a prize, and how another answer, appended to a copy of the log, changes it."""
    from forecast_ledger.replay.explain.diff import diff
    from forecast_ledger.replay.explain.numbers import explain
    from forecast_ledger.replay.reading.log import Log

    prize = explain(log, "prize", _CONTEST, _PARTICIPANT)
    copy.write_bytes(log.read_bytes())
    _append(copy, "what-if.jsonl")
    changes = diff(Log(copy, as_of=prize.checkpoint.position), None, "leaderboard").changes
    key = {"contest": _CONTEST, "participant": _PARTICIPANT}
    change = next(change for change in changes if change.difference.key == key)
    causes = ", ".join(f"#{cause.log_position} {cause.type}" for cause in change.causes)
    columns = [{"column": name, "old": old, "new": new} for name, (old, new) in change.difference.columns.items()]
    won = f"{_PARTICIPANT} wins {prize.number['prize']} of {prize.number['pool']}"
    yield from wrap(f"3. One prize explained: {won}. Rule: {prize.rule['words']}.", _WIDTH)
    yield from as_table(["participant", "take", "share", "prize"], prize.parts)
    yield ""
    yield from wrap(f"{_LATE} ({causes}). {_PARTICIPANT}'s row of the board:", _WIDTH)
    yield from as_table(["column", "old", "new"], columns)


def story_folder() -> Path:
    """Return the folder of the worked example."""
    return Path(__file__).parents[2] / "data" / STORY


def published_rows(name: str, folder: Path) -> list[dict[str, str]]:
    """Read a table of published figures of a worked example."""
    with (folder / "expected" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def boards(projections: "Projections", folder: Path) -> Iterator[tuple[str, list[PrintedRow]]]:
    """Yield each contest with the rows of its board: below each row of ours, the published figures."""
    by_key = {(row["contest"], row["participant"]): row for row in published_rows("published_leaderboard", folder)}
    for contest in dict.fromkeys(contest for contest, _ in by_key):
        rows: list[PrintedRow] = []
        for ours in projections.rows_of("leaderboard", contest):
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
        board_row = board[row["contest"], row["participant"]]
        for figure in _FIGURES:
            yield _figure(f"{row['contest']} {row['participant']} {figure}", row[figure], board_row[figure])
        yield _figure(f"{row['contest']} {row['participant']} percent", row["percent"], board_row["share"])


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
    compared with the published one. Then one byte is changed in a copy of the log, which is verified; and one prize is
    explained, before and after another answer in a second copy.
    """
    if keep is not None:
        _keep_files(keep)
    with TemporaryDirectory() as folder:
        demonstration = demonstrate(keep or Path(folder), Path(folder))
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
