"""The leaderboard of scores in a report: its rows with their intervals, what it shows, and what speaks against it."""

from collections.abc import Mapping, Sequence
from typing import Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.scores.score_policies import lower_is_better
from forecast_ledger.projections.tables.projection import Projections
from forecast_ledger.replay.report.chart_parts import count, percent, rows_of
from forecast_ledger.replay.report.page_parts import (
    NONE,
    Cell,
    Cells,
    Heading,
    Part,
    digits_of,
    kinds_of,
    row_anchor,
    short_table,
)
from forecast_ledger.replay.report.pictures import Row
from forecast_ledger.replay.report.score_charts import board_finding, how_often

CROWDED, MOST_BEYOND = 2, 10  # a scale leaves out up to one in ten numbers that would make it two times longer
FEW = 20  # questions
LARGEST_WRITTEN = 10**9  # a larger number has an exponent


def leaderboard_part(projections: Projections, name: str, anchor: str) -> tuple[Part, list[str]]:
    """Return the leaderboard of scores, with intervals if there are any, and what it shows, the main thing first."""
    try:
        intervals = rows_of(projections, "intervals", name)
    except Refused:  # `left_out` says why
        intervals = []
    board, adjusted = rows_of(projections, "leaderboard", name), _adjusted(projections, name)
    findings = _first_two(projections, name, board, intervals) or [board_finding(intervals or board)]
    findings += _paid(projections, name, board) + _doubts(board, adjusted)
    if intervals:
        return _board(projections, name, anchor, intervals, adjusted), findings
    prize = ["prize"] * any(float(row["prize"] or 0) for row in board)
    columns = ("participant", "rank", "score", "coverage", *prize)
    cells = short_table(kinds_of(projections, "leaderboard"), board, columns)
    return Part("Leaderboard", "", "Leaderboard, best first", cells), findings


def _first_two(projections: Projections, name: str, board: Sequence[Row], intervals: Sequence[Row]) -> list[str]:
    """Say which scores the first two of a board have, and how often the first is first in samples, if there are any.

    Nothing is said if these ranks are shared.
    """
    rows = [row for row in board if row["rank"] is not None][:2]
    if [row["rank"] for row in rows] != [1, 2]:
        return []
    digits = digits_of([float(row["score"]) for row in rows])
    (who, mine), (other, second) = ((row["participant"], f"{float(row['score']):,.{digits}f}") for row in rows)
    best = "least" if lower_is_better(projections.facts.contests[name].opened.rules) else "largest"
    findings = [f"{who} is first with {mine}, and {other} second with {second} (the {best} is best)"]
    shares = {row["participant"]: float(row["first"] or 0) for row in intervals}
    if shares:
        rival = max((each for each in shares if each != who), key=lambda each: shares[each])
        also = f", and {rival} {how_often(shares[rival])}" * (shares[rival] > shares[who])
        findings.append(f"If the questions are drawn again, {who} is first {how_often(shares[who])}{also}")
    return findings


def _paid(projections: Projections, name: str, board: Sequence[Row]) -> list[str]:
    """Say which share of the pool the largest prize is, if there are prizes."""
    prizes = {row["participant"]: float(row["prize"] or 0) for row in board}
    whole = sum(prizes.values())
    if not whole:
        return []
    most = max(prizes, key=lambda who: prizes[who])
    currency = projections.facts.contests[name].opened.currency
    return [f"The largest prize is {most}'s, {prizes[most]:,.2f} of {whole:,.2f} {currency}".rstrip()]


def _adjusted(projections: Projections, name: str) -> dict[str, Row]:
    """Return the adjusted scores of a contest by participant, where means are over different questions."""
    rules, board = projections.facts.contests[name].opened.rules, rows_of(projections, "leaderboard", name)
    if rules.total != "mean" or rules.imputation != "none" or len({row["completion"] for row in board}) == 1:
        return {}
    try:
        table = projections.table("adjusted_scores").only("by", "contest").only("name", name)
    except Refused:  # too many scores for an exact fit
        return {}
    rows = [row for row in table.rows() if row["rank"] is not None]
    return {row["participant"]: row for row in rows} if {row["part"] for row in rows} == {1} else {}


def _doubts(board: Sequence[Row], adjusted: Mapping[str, Row]) -> list[str]:
    """Say why the first of a board may not be the best."""
    first = next((row for row in board if row["rank"] == 1), None)
    if first is None:
        return []
    findings, (done, every) = list[str](), map(int, first["completion"].split("/"))
    top = {who: row["questions"] for who, row in adjusted.items() if row["rank"] == 1}
    best = next(iter(top.items()), None)
    if best is not None and first["participant"] not in top:
        findings.append(
            f"{first['participant']} forecast on {done:,} of {count(every, 'question')}; with the effects of questions "
            f"removed, {best[0]} is first, with forecasts on {best[1]:,}"
        )
    if every < FEW:
        findings.append("1 question says little" if every == 1 else f"{every:,} questions say little")
    return findings


def _board(
    projections: Projections, name: str, anchor: str, intervals: Sequence[Row], adjusted: Mapping[str, Row]
) -> Part:
    """Return the leaderboard with intervals. adjusted: what `_adjusted` returns."""
    board = rows_of(projections, "leaderboard", name)
    numbers = [float(row[end]) for row in intervals for end in ("score", "score_low", "score_high") if row[end]]
    scale = _scale(numbers)
    digits = digits_of(scale)
    columns = {
        Heading("participant", text=True): [
            Cell(row["participant"], link=row_anchor(anchor, "participant", number)) for number, row in enumerate(board)
        ],
        Heading("rank"): [Cell(NONE if row["rank"] is None else str(row["rank"])) for row in board],
        Heading("score"): [Cell(f"{float(row['score']):,.{digits}f}") for row in board],
        Heading("interval", text=True): [_span(sure, *scale, digits) for sure in intervals],
        Heading("possible ranks"): [Cell(_range(sure["rank_set_low"], sure["rank_set_high"])) for sure in intervals],
        Heading("first"): [Cell("" if sure["first"] is None else percent(float(sure["first"]))) for sure in intervals],
        Heading("coverage"): [Cell(percent(float(row["coverage"]))) for row in board],
    }
    if adjusted:
        found = [adjusted.get(row["participant"]) for row in board]
        columns[Heading("adjusted score")] = [
            Cell(f"{float(row['adjusted_score']):,.{digits}f}" if row else NONE) for row in found
        ]
        columns[Heading("adjusted rank")] = [Cell(str(row["rank"]) if row else NONE) for row in found]
    if any(row["take"] is not None for row in board):
        takes = [float(row["take"] or 0) for row in board]
        columns[Heading("take")] = [
            Cell(f"{take:.3e}" if take >= LARGEST_WRITTEN else f"{take:,.{digits_of(takes)}f}") for take in takes
        ]
    if any(float(row["prize"] or 0) for row in board):
        columns[Heading("prize")] = [Cell(f"{float(row['prize'] or 0):,.2f}") for row in board]
        columns[Heading("prize interval")] = [
            Cell(_range(*(sure[end] and f"{float(sure[end]):,.2f}" for end in ("prize_low", "prize_high"))))
            for sure in intervals
        ]
    shown = {heading: cells for heading, cells in columns.items() if any(cell.words for cell in cells)}
    note = _board_note(projections, name, board, intervals[0], shown, bool(adjusted))
    if scale != (min(numbers), max(numbers)):
        low, high = (f"{end:,.{digits}f}" for end in scale)
        note += f" Lines are drawn from {low} to {high}; those of scores beyond end there."
    cells = Cells([*shown], [[*row] for row in zip(*shown.values(), strict=True)])
    return Part("Leaderboard", note, "Leaderboard, best first", cells, intervals[0]["seed"])


def _board_note(  # noqa: PLR0913, PLR0917 - what a note depends on
    projections: Projections, name: str, board: Sequence[Row], sure: Row, shown: Mapping[Heading, Any], adjusted: bool
) -> str:
    """Explain the columns of a leaderboard. sure: a row of `intervals`. shown: the columns, by heading."""
    rules, names = projections.facts.contests[name].opened.rules, {heading.name for heading in shown}
    draws, level = sure["replicates"], percent(rules.level_ppm, 10**6)
    sampled = (
        f"The questions are drawn again {draws:,} times, some of them several times and others not: the interval has "
        f"{level} of the scores, and “first” is the share of these samples in which a participant has rank 1."
    )
    sentences = [sampled]
    if "possible ranks" in names:
        sentences.append(
            "“Possible ranks” are those that a test of all participants at once cannot rule out; it asks for "
            "more than the samples do, so it leaves many."
        )
    counted = sum(1 for weight in projections.scored(name).questions.weight.tolist() if weight)
    if counted < FEW:
        sentences.append(f"Of only {count(counted, 'question')}, intervals are narrower than they should be.")
    if adjusted:
        sentences.append(
            "A score is the mean over the questions that a participant forecast on, and some questions are easier than "
            "others: the adjusted score is the mean after the effect of each question, by least squares, is removed "
            "(`forecast-ledger table LOG adjusted_scores`). Intervals, possible ranks and “first” are of scores that "
            "are not adjusted."
        )
    if "take" in names and "prize" in names:
        sentences.append("Prizes follow from takes.")
    if float(board[0]["attainable"]) < 1:
        attainable = percent(float(board[0]["attainable"]))
        sentences.append(
            f"Coverage is of the whole time in which questions were open; on average, {attainable} of it was scored."
        )
    return " ".join(sentences)


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


def _range(low: Any, high: Any) -> str:
    if low is None:
        return ""
    return str(low) if low == high else f"{low} to {high}"
