"""The sections of a report: what each contest is, its board, its pictures and its participants."""

from collections.abc import Iterable, Sequence
from math import floor, log10
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.boards.leaderboard import TAKES
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.replay.reading.descriptions import describe_board, describe_score
from forecast_ledger.replay.report.chart_parts import count, percent, rows_of
from forecast_ledger.replay.report.charts import CHARTS
from forecast_ledger.replay.report.pictures import Picture, Row, to_svg
from forecast_ledger.replay.report.score_charts import board_finding

CROWDED, MOST_BEYOND = 2, 10  # a scale leaves out up to one in ten numbers that would make it two times longer
BEST = 3  # questions of a participant, at either end
FEW = 20  # questions
LEAST_FORECASTS = 5  # of a picture of calibration
MOST_PARTICIPANTS = 500
_OF_ACCOUNTS = (
    "The total is cash and the value of open positions. The Sharpe ratio is the mean return of the positions that have "
    "ended over its standard deviation. A drawdown is the largest fall from a peak, above 100% in debt; the turnover "
    "is the amounts bought and sold over the starting cash."
)


class Cell(NamedTuple):
    """A cell of a table. span: low, middle and high of an interval, 0 … 100. link: of an anchor on the page."""

    words: str
    span: tuple[float, float, float] | None = None
    link: str = ""


class Heading(NamedTuple):
    """The heading of a column. text: aligned to the left."""

    name: str
    text: bool = False


class Cells(NamedTuple):
    """A table of a page."""

    columns: list[Heading]
    rows: list[list[Cell]]


class Part(NamedTuple):
    """A table with a title. seed: from which the samples that it rests on follow."""

    title: str
    note: str
    caption: str
    table: Cells
    seed: str = ""


class Figure(NamedTuple):
    """A picture, and the table that it is drawn from."""

    title: str
    note: str
    svg: str
    table: Cells


class Participant(NamedTuple):
    """What a page says of one participant."""

    anchor: str
    name: str
    words: str
    caption: str
    table: Cells


class Contest(NamedTuple):
    """What a page says of one contest. left_out: what cannot be shown, and why."""

    anchor: str
    title: str
    finding: str
    left_out: list[str]
    facts: list[tuple[str, str]]
    parts: list[Part]
    figures: list[Figure]
    participants: list[Participant]


def contest_section(projections: Projections, name: str, anchor: str) -> tuple[Contest, dict[str, Picture]]:
    """Return the section of a contest, and its pictures by kind. Raises Unavailable: pictures cannot be drawn."""
    pictures, left_out = _pictures(projections, name)
    [row] = rows_of(projections, "contests", name)
    try:
        intervals, board = rows_of(projections, "intervals", name), []
    except Refused:  # `left_out` says why
        intervals, board = [], rows_of(projections, "leaderboard", name)
    traded = name in projections.traded
    finding = "Nothing has been scored"
    if intervals or board:
        finding = board_finding(intervals or board) + _lead(projections, name)
    if traded and "profit" in pictures:
        finding = pictures["profit"].title
    figures = [
        Figure(picture.title, picture.note, to_svg(picture), _table(picture.columns, picture.rows))
        for kind, picture in pictures.items()
        if kind not in {"board", "prizes"}  # they are in the board's own rows
        and not _says_little(kind, picture)
    ]
    parts = _trading(projections, name) if traded else []
    if intervals:
        parts.append(_board(projections, name, anchor, intervals))
    elif board:
        columns = (
            "participant",
            "rank",
            "score",
            "coverage",
            *["prize"] * any(float(row["prize"] or 0) for row in board),
        )
        cells = _short(projections, "leaderboard", board, columns)
        parts.append(Part("Leaderboard", "", "Leaderboard, best first", cells))
    section = Contest(
        anchor, row["title"] or f"Contest {name}", finding, left_out, contest_facts(projections, row), parts, figures,
        _participants(projections, name, anchor),
    )  # fmt: skip
    return section, pictures


def _lead(projections: Projections, name: str) -> str:
    """Say which scores the first two of a board have."""
    rows = [row for row in rows_of(projections, "leaderboard", name) if row["rank"] is not None][:2]
    if [row["rank"] for row in rows] != [1, 2]:
        return ""
    digits = _digits([float(row["score"]) for row in rows])
    mine, other = (f"{float(row['score']):,.{digits}f}" for row in rows)
    best = " (the least is best)" if lower_is_better(projections.facts.contests[name].opened.rules) else ""
    return f": it has the score {mine}, and {rows[1]['participant']} {other}{best}"


def _pictures(projections: Projections, name: str) -> tuple[dict[str, Picture], list[str]]:
    """Return the pictures of a contest by kind, and why others are left out: a contest is too large for some tables."""
    pictures: dict[str, Picture] = {}
    left_out = []
    for kind, chart in CHARTS.items():
        try:
            picture = chart.draw(projections, name)
        except Refused as error:
            left_out.append(f"Not shown: {chart.words}. Reason: {error.detail}.")
        else:
            pictures |= {} if picture is None else {kind: picture}
    return pictures, left_out


def _says_little(kind: str, picture: Picture) -> bool:
    """Return whether a page is better without a picture, because it is drawn from few numbers."""
    if kind == "calibration":
        return sum(int(row["n"]) for row in picture.rows) < LEAST_FORECASTS
    return kind == "coverage" and len(picture.rows) == 1


def contest_facts(projections: Projections, row: Row) -> list[tuple[str, str]]:
    """Return what a contest is, and its rules in words."""
    facts = projections.facts
    contest = facts.contests[row["contest"]]
    rules = contest.opened.rules
    scored = len(projections.scored(row["contest"]).questions.answers)
    told = [("Contest", row["contest"]), ("State", row["state"])]
    told.append(("Questions", f"{len(contest.entries):,}, {scored:,} of them resolved and counted"))
    if float(row["pool"] or 0):
        told.append(("Pool", f"{float(row['pool']):,.2f} {row['currency']}".rstrip()))
    if row["sealed_at"]:
        told.append(("Sealed", f"at log position {row['sealed_at']}, digest {row['sealed_digest']}"))
    told.append(("Rules", rules.name))
    if rules.trading is not None:
        cash = f"{rules.trading.starting_cash / 10**6:,.2f} {row['currency']}".rstrip()
        told.append(("Accounts", f"start with {cash} and are ranked by profit: cash and positions, less net deposits"))
        if not scored:
            return told
    kernels = {"A score is": rules.kernel, "On a range": rules.cdf_kernel, "By quantiles": rules.quantile_kernel}
    told += [(form, describe_score(rules, kernel)) for form, kernel in kernels.items() if kernel != "none"]
    told.append(("The board", describe_board(rules) + (", the least first" if lower_is_better(rules) else "")))
    if rules.take != "none":
        told.append(("A take is", TAKES[rules.take].words))
    return told


def _board(projections: Projections, name: str, anchor: str, intervals: Sequence[Row]) -> Part:
    """Return the leaderboard with intervals."""
    board = rows_of(projections, "leaderboard", name)
    numbers = [float(row[end]) for row in intervals for end in ("score", "score_low", "score_high") if row[end]]
    low, high = _scale(numbers)
    digits = _digits([low, high])
    prizes = any(float(row["prize"] or 0) for row in board)
    columns = [Heading("participant", text=True), Heading("rank"), Heading("score"), Heading("interval", text=True),
               Heading("possible ranks"), Heading("first"), Heading("coverage")]  # fmt: skip
    columns += [Heading("prize"), Heading("prize interval")] if prizes else []
    rows = []
    for number, (row, sure) in enumerate(zip(board, intervals, strict=True)):
        cells = [
            Cell(row["participant"], link=_anchor(anchor, number)),
            Cell("-" if row["rank"] is None else str(row["rank"])),
            Cell(f"{float(row['score']):,.{digits}f}"),
            _span(sure, low, high, digits),
            Cell(_range(sure["rank_set_low"], sure["rank_set_high"])),
            Cell("" if sure["first"] is None else percent(float(sure["first"]))),
            Cell(percent(float(row["coverage"]))),
        ]
        if prizes:
            ends = [None if sure[end] is None else f"{float(sure[end]):,.2f}" for end in ("prize_low", "prize_high")]
            cells += [Cell(f"{float(row['prize'] or 0):,.2f}"), Cell(_range(*ends))]
        rows.append(cells)
    rules = projections.facts.contests[name].opened.rules
    if (low, high) != (min(numbers), max(numbers)):
        beyond = f" Lines are drawn from {low:,.{digits}f} to {high:,.{digits}f}; those of scores beyond end there."
    else:
        beyond = ""
    level = percent(rules.level_ppm, 10**6)
    draws, seed = intervals[0]["replicates"], intervals[0]["seed"]
    note = (
        f"The questions are sampled {draws:,} times: a line covers {level} of the scores, and “first” is the share "
        "of these samples in which a participant has rank 1. “Possible ranks” are those that the questions leave open, "
        f"for all participants at once.{beyond}"
    )
    if rules.total == "mean" and rules.imputation == "none" and len({row["coverage"] for row in board}) > 1:
        note += (
            " Coverages differ: a score is the mean over the questions that a participant forecast on, and some are "
            "easier than others. The table adjusted_scores allows for this."
        )
    counted = sum(1 for weight in projections.scored(name).questions.weight.tolist() if weight)
    if counted < FEW:
        note = f"With {count(counted, 'question')}, intervals are too narrow, and say little. {note}"
    if float(board[0]["attainable"]) < 1:
        attainable = percent(float(board[0]["attainable"]))
        note += (
            f" Coverage is of the whole time in which questions were open; on average, {attainable} of it was scored."
        )
    return Part("Leaderboard", note, "Leaderboard, best first", Cells(columns, rows), seed)


def _scale(numbers: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest of some numbers, without a few that would leave the others no room.

    >>> _scale([1.0, 2.0, 3.0]), _scale([*map(float, range(20)), 1e9])
    ((1.0, 3.0), (0.0, 18.0))
    """
    ordered, few = sorted(numbers), len(numbers) // MOST_BEYOND
    low, high = ordered[0], ordered[-1]
    near, far = ordered[few], ordered[-1 - few]
    room = CROWDED * (far - near)
    return (near if near - low > room else low), (far if high - far > room else high)


def _span(sure: Row, low: float, high: float, digits: int) -> Cell:
    """Return an interval as a line on a scale from low to high."""
    if sure["score_low"] is None:
        return Cell("")
    ends = [float(sure[end]) for end in ("score_low", "score", "score_high")]
    inside = [min(max(end, low), high) for end in ends]
    places = [1 + 98 * (end - low) / (high - low) if high > low else 50.0 for end in inside]
    words = f"{ends[0]:,.{digits}f} to {ends[2]:,.{digits}f}"
    return Cell(words, span=(round(places[0], 2), round(places[1], 2), round(places[2], 2)))


def _trading(projections: Projections, name: str) -> list[Part]:
    """Return the board of a trading contest, and its open positions."""
    board = (
        "participant",
        "rank",
        "total",
        "profit",
        "return_percent",
        "sharpe_ratio",
        "drawdown",
        "turnover",
        "win_rate",
    )
    held = ("participant", "question", "outcome", "shares", "average_entry", "cost", "value", "unrealised")
    accounts = _short(projections, "arena_leaderboard", rows_of(projections, "arena_leaderboard", name), board)
    still = [row for row in rows_of(projections, "positions", name) if row["status"] == "open"]
    parts = [Part("Trading", _OF_ACCOUNTS, "Accounts, the largest profit first", accounts)]
    if still:
        parts.append(Part("Open positions", "", "Open positions", _short(projections, "positions", still, held)))
    return parts


def _short(projections: Projections, table: str, rows: Sequence[Row], columns: Iterable[str]) -> Cells:
    """Return columns of a table with few digits, by the kind of each column."""
    kinds = {column.name: column.kind for column in projections.table(table).columns}
    names = [*columns]
    headings = [Heading(name.replace("_", " "), text=kinds[name] in {"id", "text"}) for name in names]
    digits = {name: _digits([float(row[name]) for row in rows if row[name] is not None]) for name in names
              if kinds[name] == "points"}  # fmt: skip

    def text(name: str, value: Any) -> str:
        if value is None or kinds[name] in {"id", "text", "count"}:
            return "" if value is None else str(value)
        if kinds[name] == "share":
            return percent(float(value))
        return f"{float(value):,.{digits.get(name, 2)}f}"

    return Cells(headings, [[Cell(text(name, row[name])) for name in names] for row in rows])


def _participants(projections: Projections, name: str, anchor: str) -> list[Participant]:
    """Return a section for each row of the board: the questions on which most was gained and lost, and the coverage."""
    reviewed = _by_participant(projections, "participant_review", name)
    scored = _by_participant(projections, "scores", name)
    sign = 1 if lower_is_better(projections.facts.contests[name].opened.rules) else -1
    titles = {row["question"]: row["title"] for row in projections.table("questions").rows()}
    found = []
    for number, row in enumerate(rows_of(projections, "leaderboard", name)[:MOST_PARTICIPANTS]):
        who, of_scores = row["participant"], scored.get(row["participant"], [])
        counted = [each for each in reviewed.get(who, []) if each["gained"] is not None]
        own = counted or sorted(of_scores, key=lambda each: sign * float(each["score"]))
        digits = _digits([float(each["score"]) for each in of_scores])
        done, every = row["completion"].split("/")
        rank = "has no rank" if row["rank"] is None else f"has rank {row['rank']}"
        words = (
            f"{rank} with a score of {float(row['score']):,.{digits}f}; forecasts on {done} of "
            f"{count(int(every), 'question')}, coverage {percent(float(row['coverage']))} of "
            f"{percent(float(row['attainable']))} attainable"
        )
        words += f"; excluded: {row['excluded']}." if row["excluded"] else "."
        ends = own if len(own) <= 2 * BEST else own[:BEST] + own[-BEST:]
        table = _questions(ends, titles, digits, bool(counted))
        caption = "All questions, the best first" if ends is own else f"The best {BEST} and the worst {BEST} questions"
        found.append(Participant(_anchor(anchor, number), who, words, caption, table))
    return found


def _by_participant(projections: Projections, table: str, contest: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows_of(projections, table, contest):
        found.setdefault(row["participant"], []).append(row)
    return found


def _questions(rows: Sequence[Row], titles: dict[str, str], digits: int, reviewed: bool) -> Cells:
    """Return questions of a participant. reviewed: whether the rows are of `participant_review`, not of `scores`."""

    def number(value: str | None) -> Cell:
        return Cell("-" if value is None else f"{float(value):,.{digits}f}")

    cells = []
    for row in rows:
        name = Cell(": ".join(filter(None, (row["question"], titles.get(row["question"])))))
        line = [name, number(row["score"]), Cell(percent(float(row["coverage"])))]
        if reviewed:
            place = Cell("no forecast" if row["rank"] is None else f"{row['rank']} of {row['forecasters']}")
            line[2:2] = [place, number(row["median"]), number(row["gained"])]
        cells.append(line)
    names = ["score", *(["rank", "median", "gained"] if reviewed else []), "coverage"]
    return Cells([Heading("question", text=True), *map(Heading, names)], cells)


def _anchor(contest: str, number: int) -> str:
    return f"{contest}-participant-{number + 1}" if number < MOST_PARTICIPANTS else contest


def _table(columns: Iterable[str], rows: Sequence[Row]) -> Cells:
    """Return rows as they are printed."""
    names = [*columns]
    texts = {name for name in names if any(isinstance(row[name], str) and not _is_number(row[name]) for row in rows)}
    headings = [Heading(name.replace("_", " "), text=name in texts) for name in names]
    return Cells(headings, [[Cell("" if row[name] is None else str(row[name])) for name in names] for row in rows])


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(".", "", 1).isdecimal()


def _range(low: Any, high: Any) -> str:
    if low is None:
        return ""
    return str(low) if low == high else f"{low} to {high}"


def _digits(numbers: Sequence[float]) -> int:
    """Return how many decimals show four digits of the largest of some numbers."""
    largest = max((abs(number) for number in numbers), default=0)
    return min(max(3 - floor(log10(largest)), 0), 6) if largest else 0
