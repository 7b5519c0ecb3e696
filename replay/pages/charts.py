"""The pictures of a contest: what each shows, its finding, and how to read it."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.core.values import format_count, format_fixed, format_instant
from forecast_ledger.projections.boards import leaderboard
from forecast_ledger.projections.boards.contest_groups import answered_at, standings_over_time
from forecast_ledger.projections.boards.totals import score_labels
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.columns import POINTS, plain_values
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.studies.grounds import reasons_of
from forecast_ledger.projections.studies.resampling import LEAST_CLUSTERS
from forecast_ledger.projections.tables.boards import pairwise_values
from forecast_ledger.projections.tables.calibration import owner_band, owner_test
from forecast_ledger.projections.tables.catalogue import Projections, Row
from forecast_ledger.projections.trading.account_histories import Selection
from forecast_ledger.replay.pages.pictures import (
    BETTER,
    FAINT,
    LEVEL,
    MOST_LINES,
    MOST_ROWS,
    PLAIN,
    STEP,
    WIDTH,
    WORSE,
    Picture,
    chosen,
    completed,
    counts_of,
    in_board_order,
    in_order,
    leaderboard_rows,
    left_out,
    names_axis,
    names_legend,
    numbered,
    percent,
    specify,
    without_intervals,
)
from forecast_ledger.replay.pages.possible_ranks import (
    HARDLY,
    NARROW,
    OFTEN,
    board_finding,
    interval_rows,
    possible_ranks,
    questions_differ,
)

CURVE = 320  # pixels
FEWEST = 2  # answers of a line, and lines of a picture
MOST_ANSWERS = 60  # of a line
MOST_PLACES = 20_000  # on the boards of a line, one for each of its answers
MOST_TICKS = 10
SHORT = timedelta(days=5)  # a span of time whose axis has hours: from there on, the six marks are whole days


def board(projections: Projections, contest: str, where: str = "on the board") -> Picture | None:
    """Scores in the order of the leaderboard, with their intervals; those without a rank are last.

    where: as in `board_finding`.
    """
    ranks = possible_ranks(projections, contest, interval_rows(projections, contest))
    rows = sorted(ranks.rows, key=lambda row: row["rank"] is None)
    if not rows:
        return None
    columns = ("rank", "participant", "score", "score_low", "score_high")
    shown = [chosen(row, columns) for row in rows[:MOST_ROWS]]
    values = numbered(shown, "score", "score_low", "score_high")
    rules = projections.facts.contests[contest].opened.rules
    better = "lower" if lower_is_better(rules) else "higher"
    direction = {"title": f"score, {better} is better", "labelFlush": False}
    line = {"type": "rule", "strokeWidth": 4, "color": PLAIN, "opacity": 0.35}
    ends = {
        "x": {"field": "score_low", "type": "quantitative", "scale": {"zero": False}, "axis": direction},
        "x2": {"field": "score_high"},
    }
    specification = dots(values, completed(projections, contest, shown), "score", {"mark": line, "encoding": ends})
    level, reasons = percent(rules.level_ppm, 10**6), reasons_of(rules, projections.scored(contest))
    drawn = f"; lines are the {level} intervals of scores, from resamples of the questions"
    has_lines = any(row["score_low"] is not None for row in rows)
    note = f"Points are scores{drawn * has_lines}."
    note += left_out(rows, shown) + "".join(f" {each}" for each in without_intervals(rows, reasons))
    note += f" {ranks.withheld}" * bool(ranks.withheld)
    if ranks.sure or has_lines:
        note += f" All this assumes that clusters of questions are independent; {HARDLY} {NARROW}."
    return Picture(board_finding(rows, ranks, where), note, columns, shown, specification)


def dots(values: list[Row], names: Sequence[Row], field: str, line: dict[str, Any]) -> dict[str, Any]:
    """Return the specification of a dot in each row, and of a line behind it. names: the labels of the rows."""
    dot = {"type": "point", "filled": True, "size": 45, "color": PLAIN, "opacity": 1}
    return specify(
        values,
        width=WIDTH,
        height={"step": STEP},
        encoding={"y": {"field": "row", "type": "ordinal", "axis": names_axis(names), "title": None}},
        layer=[line, {"mark": dot, "encoding": {"x": {"field": field, "type": "quantitative"}}}],
    )


def score_over_time(projections: Projections, contest: str) -> Picture | None:
    """The scores of the best participants after each answer, as the board would be without later ones."""
    facts, scored, final = projections.facts, projections.scored(contest), projections.board(contest)
    names = [row.participant for row in final if row.rank is not None][:MOST_LINES]
    opened, answers = facts.contests[contest], int((scored.questions.weight > 0).sum())
    if answers < FEWEST or len(names) < FEWEST:
        return None
    most = min(MOST_ANSWERS, max(MOST_PLACES // len(final), FEWEST))
    size, led = -(-answers // most), dict.fromkeys(names, 0)
    columns, shown, values = ("answered", "participant", "score", "rank"), list[Row](), list[Row]()
    boards = leaderboard.boards(facts, standings_over_time(facts, opened, scored, size))
    places = list[dict[str, int]]()  # the rows of the names on each board
    for index in range(len(boards.names)):
        row_of = {boards.labels[boards.person[row]]: row for row in boards.span(index).tolist()}
        places.append({name: row_of[name] for name in names if name in row_of})
    drawn = [row for rows in places for row in rows.values()]
    scores = dict(zip(drawn, boards.total.rows(int64_array(drawn)).rounded(POINTS), strict=True))
    for number, rows in zip([*range(size, answers, size), answers], places, strict=True):
        for line, name in enumerate(names):
            rank = int(boards.rank[rows[name]]) or None if name in rows else None
            led[name] = led[name] or number if rank == 1 else 0
            if name in rows:
                score = format_fixed(scores[rows[name]], POINTS, least=9)
                shown.append({"answered": number, "participant": name, "score": score, "rank": rank})
                values.append({"row": line, "answered": number, "score": float(score)})
    steps = (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
    step = next(step for step in steps if step * MOST_TICKS >= answers)
    axis = {"values": [*range(step, answers + 1, step)], "format": ",d"}
    x = {
        "field": "answered",
        "type": "quantitative",
        "title": "questions answered",
        "axis": axis,
        "scale": {"nice": False},
    }
    specification = specify(
        values,
        width=WIDTH,
        height=CURVE,
        mark={"type": "line", "strokeWidth": 1.8},
        encoding={
            "x": x,
            "y": {"field": "score", "type": "quantitative", "title": "score", "scale": {"zero": False}},
            "color": {"field": "row", "type": "nominal", "legend": names_legend(names)},
        },
    )
    note = (
        "After each answer, the board as it would be without later ones; questions are scored as they are now. The "
        "order is that in which answers were recorded, which need not be that of their dates."
    )
    more = sum(row.rank is not None for row in final) - len(names)
    left = f" The best {len(names)} are shown, of {len(names) + more}." * bool(more)
    best = " The lowest score is the best." * lower_is_better(opened.opened.rules)
    every = f" Every {size} answers there is a point." * (size > 1)
    at = sorted(answered_at(facts, opened, scored.questions)[scored.questions.weight > 0].tolist())
    together = at[-1] - at[0] == len(at) - 1  # nothing is between them, so that they were recorded at about one time
    title = f"Scores after each of {format_count(answers, 'answer')}, in the order of their recording"
    title = title if together or questions_differ(projections, contest) else _leading(led, answers, size)
    return Picture(title, note + best + every + left, columns, shown, specification)


def _leading(led: Mapping[str, int], answers: int, size: int) -> str:
    """Say since when the first has led without a break, as far as boards were looked at.

    led: since which answer; 0 for who is not first. size: a board was made every so many answers.
    """
    first = [name for name, since in led.items() if since]
    if len(first) != 1:
        return f"{len(first) or 'No'} participants share the first rank after {format_count(answers, 'answer')}"
    about = "about " * (size > 1)
    order = "in the order in which answers were recorded"
    return f"{first[0]} has led since {about}answer {led[first[0]]:,} of {answers:,}, {order}"


def calibration(projections: Projections, contest: str) -> Picture | None:
    """How often what was forecast happened, for the consensus or the first of the board with many forecasts."""
    rows = projections.rows_of("calibration", contest)
    counts = counts_of(rows)
    if not counts:
        return None
    who = "[consensus]" if "[consensus]" in counts else in_board_order(projections, contest, counts)[0]
    name = "the consensus" if who == "[consensus]" else who
    note = (
        f"{format_count(counts[who], 'forecast')}. The line, of the table corp_band, is isotonic regression: how often "
        "what was forecast happened, without groups. If forecasts are calibrated, it is near the dashed line, and "
        "seldom outside the grey band at a forecast. Points are groups of forecasts, each with its 95% Wilson "
        "interval; bars count forecasts. The p-value, of the table calibration_test, is how often calibrated forecasts "
        "would be as miscalibrated by chance."
    )
    note += f" The table calibration also has {format_count(len(counts) - 1, 'other')}." * (len(counts) > 1)
    labels = score_labels(projections.facts)
    owners = np.unique(projections.brier_sample(contest).sample.owner).tolist()
    owner = next(code for code in owners if labels[code] == who)
    title = _verdict(f"Forecasts of {name}", projections, contest, owner)
    return reliability(title, note, rows, who, _band(projections, contest, owner))


def _verdict(forecasts: str, projections: Projections, contest: str, owner: int) -> str:
    """Say whether one participant's forecasts are miscalibrated, if there are enough clusters of questions."""
    test = owner_test(projections, contest, owner)
    clusters = format_count(test.clusters, "question" if test.clusters == test.n else "cluster")
    if test.clusters < LEAST_CLUSTERS:
        return f"{forecasts}: {clusters}, too few to say whether they are calibrated"
    sure = test.p <= Fraction(10**6 - projections.facts.contests[contest].opened.rules.level_ppm, 10**6)
    verdict = "are miscalibrated" if sure else f"show no miscalibration that {clusters} can tell"
    return f"{forecasts} {verdict} (p = {float(test.p):.3f})"


def reliability(title: str, note: str, rows: Sequence[Mapping[str, Any]], who: str, band: Sequence[Row]) -> Picture:
    """Return the picture of one participant's rows of a calibration table."""
    columns = ("from_probability", "to_probability", "n", "happened", "mean_forecast", "observed_frequency",
               "wilson_low", "wilson_high")  # fmt: skip
    shown = [chosen(row, columns) for row in rows if row["participant"] == who]
    values = numbered(shown, *columns)
    most = max(row["n"] for row in values)
    return Picture(title, note, columns, shown, specify(values, vconcat=[curve(band), histogram(most)]))


SHARE = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {"format": "%", "tickCount": 5}}


def _band(projections: Projections, contest: str, owner: int) -> list[Row]:
    """Return the recalibrated probability and its band at each probability that one participant forecast."""
    *_, band = owner_band(projections, contest, owner)
    shown = [{"p": at.probability, "happened": at.recalibrated, "low": at.low, "high": at.high} for at in band]
    return [{name: float(format_fixed(share, POINTS)) for name, share in each.items()} for each in shown]


def curve(band: Sequence[Row]) -> dict[str, Any]:
    """Return what happened against what was forecast: a curve in its band, and points with their intervals."""
    x = {"field": "mean_forecast", "title": "forecast", **SHARE}
    low = {"field": "wilson_low", "title": "happened", **SHARE}
    line = {"x": {"field": "p", **SHARE}, "y": {"field": "p", **SHARE}}
    return {
        "width": CURVE,
        "height": CURVE,
        "layer": [
            {
                "data": {"values": band},
                "mark": {"type": "area", "color": "#888", "opacity": 0.25},
                "encoding": {
                    "x": {"field": "p", **SHARE},
                    "y": {"field": "low", **SHARE},
                    "y2": {"field": "high"},
                },
            },
            {
                "data": {"values": [{"p": 0}, {"p": 1}]},
                "mark": {"type": "line", "color": "#888", "strokeDash": [4, 4]},
                "encoding": line,
            },
            {
                "data": {"values": band},
                "mark": {"type": "line", "color": "#444", "strokeWidth": 1.5},
                "encoding": {"x": {"field": "p", **SHARE}, "y": {"field": "happened", **SHARE}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 4, "color": PLAIN, "opacity": 0.35},
                "encoding": {"x": x, "y": low, "y2": {"field": "wilson_high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60, "color": PLAIN, "opacity": 1},
                "encoding": {"x": x, "y": {"field": "observed_frequency", **SHARE}},
            },
        ],
    }


def histogram(most: float) -> dict[str, Any]:
    """Return how many forecasts there are at each probability. most: of one bar."""
    counts = {"field": "n", "type": "quantitative", "title": "forecasts", "axis": {"values": [0, most], "format": ",d"}}
    return {
        "width": CURVE,
        "height": 60,
        "mark": {"type": "bar", "color": PLAIN},
        "encoding": {
            "x": {"field": "from_probability", "title": None, "bin": {"binned": True, "step": 0.1}, **SHARE},
            "x2": {"field": "to_probability"},
            "y": counts,
        },
    }


def prizes(projections: Projections, contest: str) -> Picture | None:
    """How the pool is divided."""
    rows = [row for row in leaderboard_rows(projections, contest) if float(row["prize"] or 0) > 0]
    if not rows:
        return None
    columns = ("rank", "participant", "prize", "share")
    shown = [chosen(row, columns) for row in rows[:MOST_ROWS]]
    currency = projections.facts.contests[contest].opened.currency
    specification = specify(
        numbered(shown, "prize"),
        width=WIDTH,
        height={"step": STEP},
        mark={"type": "bar", "color": PLAIN, "height": 11},
        encoding={
            "y": {"field": "row", "type": "ordinal", "axis": names_axis(shown), "title": None},
            "x": {"field": "prize", "type": "quantitative", "title": f"prize {currency}".strip()},
        },
    )
    best = max(rows, key=lambda row: float(row["prize"]))
    total = sum(float(row["prize"]) for row in rows)
    title = f"{best['participant']} gets {percent(float(best['prize']) / total)} of what is paid out"
    note = f"{format_count(len(rows), 'prize')}, {total:,.2f} {currency}".rstrip() + "."
    return Picture(title, note + left_out(rows, shown), columns, shown, specification)


MOST_PAIRED = 20
MOST_COLUMNS = 60
MOST_COMPARED = 200  # participants whose relative skill is computed for a picture
LEAST_WIDTH = 280  # for the title of an axis

_CELLS = [  # the colour and the number of a pair
    {
        "mark": {"type": "rect", "stroke": "#8883"},
        "encoding": {
            "color": {
                "field": "verdict",
                "type": "nominal",
                "title": "row against column",
                "scale": {"domain": ["better", "not certain", "worse"], "range": [BETTER, FAINT, WORSE]},
                "legend": {"orient": "bottom"},
            }
        },
    },
    {
        "mark": {"type": "text", "fontSize": 10},
        "encoding": {
            "text": {"field": "share"},
            "color": {
                "condition": {"test": "datum.verdict != 'not certain'", "value": "white"},
                "value": "currentColor",
            },
        },
    },
]


def pairwise(projections: Projections, contest: str) -> Picture | None:
    """Which of two participants is better on the questions that both have forecast on."""
    names = [row["participant"] for row in leaderboard_rows(projections, contest)]
    first = names[:MOST_PAIRED]
    tested = pairwise_values(projections, contest, MOST_PAIRED, tests_only=True)
    pairs = [*projections.as_table("pairwise", tested).rows()]
    if not pairs:
        return None
    columns = ("participant", "other", "questions", "won_share", "difference", "p", "p_adjusted")  # fmt: skip
    values = []
    for row in pairs:
        certain, ahead = _certain(row), float(row["difference"]) > 0
        cell = (first.index(row["participant"]), first.index(row["other"]))
        for (one, other), better in ((cell, ahead), (cell[::-1], not ahead)):
            share = float(row["won_share"]) if (one, other) == cell else 1 - float(row["won_share"])
            verdict = ("better" if better else "worse") if certain else "not certain"
            values.append({"row": one, "column": other, "verdict": verdict, "share": f"{100 * share:.0f}"})
    axis = names_axis([{"participant": name} for name in first])
    specification = specify(
        values,
        padding={"left": 20, "right": 140, "top": 5, "bottom": 5},  # for the slanted names
        width={"step": 26},
        height={"step": 26},
        encoding={
            "y": {"field": "row", "type": "ordinal", "axis": axis, "title": None},
            "x": {
                "field": "column",
                "type": "ordinal",
                "axis": {**axis, "orient": "top", "labelAngle": -60},
                "title": None,
            },
        },
        layer=_CELLS,
    )
    title, note = _told_apart(pairs)
    if len(first) < len(names):
        note += f" Only the first {len(first)} of {len(names):,} are compared, as if they had been named beforehand."
    return Picture(title, note, columns, [chosen(row, columns) for row in pairs], specification)


def _told_apart(pairs: Sequence[Row]) -> tuple[str, str]:
    """Say how many pairs differ significantly, and how to read the picture."""
    certain, every = sum(map(_certain, pairs)), len(pairs)
    title = f"{certain or 'none'} of {every:,} pairs of participants {'differs' if certain == 1 else 'differ'}"
    if every == 1:
        title = f"the only pair of participants {'differs' if certain else 'does not differ'}"
    note = (
        "Numbers are the percentage of common questions on which the row has the better score. A colour: a permutation "
        "test of the mean difference is significant at 5%, corrected for all pairs shown; a few large differences can "
        "outweigh many small ones. A pair without a cell has no common questions."
    )
    most = max(int(row["questions"]) for row in pairs)
    if 2 / 2**most > LEVEL:
        note += f" With {format_count(most, 'question')}, no test can be significant."
    else:
        note += f" The tests assume that clusters of questions are independent; {HARDLY} {OFTEN}."
    few = f", if their {format_count(most, 'question')} are independent" if certain and most < LEAST_CLUSTERS else ""
    return f"{title[0].upper()}{title[1:]} significantly{few}", note


def _certain(pair: Row) -> bool:
    """Return whether the permutation test of a pair is significant, beside those of all others."""
    return float(pair["p_adjusted"]) <= LEVEL


def coverage(projections: Projections, contest: str) -> Picture | None:
    """How much of the time each participant had a forecast on each question."""
    board = leaderboard_rows(projections, contest)
    names, scored = [row["participant"] for row in board], projections.scored(contest).questions
    counted = scored.code[scored.weight > 0].tolist()
    questions = in_order(projections, {projections.facts.questions[code].question for code in counted})
    if not names or not questions:
        return None
    size = -(-len(questions) // MOST_COLUMNS)
    first, widths = names[:MOST_ROWS], [questions[begin : begin + size] for begin in range(0, len(questions), size)]
    shown = _cover(projections.table("scores").only("contest", contest), first, widths)
    values = [
        {"row": index // len(widths), "column": index % len(widths), "coverage": float(row["coverage"])}
        for index, row in enumerate(shown)
    ]
    specification = specify(
        values,
        width={"step": max(min(WIDTH, max(40 * len(widths), LEAST_WIDTH)) // len(widths), 9)},
        height={"step": STEP},
        mark={"type": "rect", "stroke": "#8883", "color": PLAIN},
        encoding={
            "y": {
                "field": "row",
                "type": "ordinal",
                "axis": names_axis([{"participant": name} for name in first]),
                "title": None,
            },
            "x": {
                "field": "column",
                "type": "ordinal",
                "axis": {"labels": False, "ticks": False},
                "title": "questions, in the order of their openings",
            },
            "opacity": {
                "field": "coverage",
                "type": "quantitative",
                "scale": {"domain": [0, 1], "range": [0, 1]},
                "legend": {"format": "%", "orient": "bottom", "values": [0.25, 0.5, 0.75, 1]},
            },
        },
    )
    whole = sum(float(row["coverage"]) for row in board) / len(board)
    title = f"On average, a participant had a forecast for {percent(whole)} of the scored time"
    note = f"{format_count(len(questions), 'question')}; the stronger the colour, the longer a forecast stood." + (
        f" {size} questions a column." * (size > 1)
    )
    return Picture(title, note + left_out(names, first), ("participant", "questions", "coverage"), shown, specification)


def _cover(scores: Table, participants: Sequence[str], columns: Sequence[Sequence[str]]) -> list[Row]:
    """Return the mean coverage of each participant on the questions of each column. scores: of that table."""
    column = {question: number for number, questions in enumerate(columns) for question in questions}
    row = {name: number * len(columns) for number, name in enumerate(participants)}
    who, question = scores.ids("participant"), scores.ids("question")
    begins = int64_array([row.get(label, -1) for label in who.labels])[who.codes]
    places = int64_array([column.get(label, -1) for label in question.labels])[question.codes]  # -1: it has no weight
    kept = np.flatnonzero((begins >= 0) & (places >= 0))
    shares = int64_array([*plain_values(scores.numbers("coverage"))])[kept] / POINTS
    sums = iter(np.bincount((begins + places)[kept], shares, len(row) * len(columns)).tolist())
    return [
        {
            "participant": name,
            "questions": questions[0] if len(questions) == 1 else f"{questions[0]} to {questions[-1]}",
            "coverage": f"{next(sums) / len(questions):.3f}",
        }
        for name in participants
        for questions in columns
    ]


MOST_POINTS = 200  # of a line
COLUMNS = ("participant", "at", "profit", "below_peak")


def profit(projections: Projections, contest: str) -> Picture | None:
    """The profit of each account over time, and how far below its peak it is."""
    if contest not in projections.traded:
        return None
    every = projections.rows_of("arena_leaderboard", contest)
    board = every[:MOST_LINES]
    names = sorted(row["participant"] for row in board)  # so that a participant has one colour in several contests
    points = _points(projections, contest, board)
    if not points:
        return None
    shown = [point for name in names for point in _thinned(points[name])]
    values = [
        {"row": names.index(point["participant"]), "at": point["at"]}
        | {name: float(point[name]) for name in ("profit", "below_peak")}
        for point in shown
    ]
    currency = projections.facts.contests[contest].opened.currency
    instants = [datetime.fromisoformat(point["at"]) for point in shown]
    time = "%-d %b" if max(instants) - min(instants) >= SHORT else "%-d %b %H:%M"
    panels = [
        _panel(names, field, f"{title} {currency}".strip(), height, time)
        for field, title, height in (("profit", "profit", 240), ("below_peak", "below peak", 90))
    ]
    note = "Profit is cash and the value of positions, less net deposits. The lower part is the distance to the peak."
    note += left_out(every, board).replace("first", "best")
    every_point = sum(map(len, points.values()))
    note += f" Of {every_point:,} changes of profit, {len(shown):,} are drawn." * (len(shown) < every_point)
    steps = {name: [(point["at"], Decimal(point["profit"])) for point in line] for name, line in points.items()}
    [contest_row] = projections.rows_of("contests", contest)
    title = _largest_profit(board, steps, currency, so_far=contest_row["state"] == "open")
    return Picture(title, note, COLUMNS, shown, specify(values, vconcat=panels))


def _points(projections: Projections, contest: str, board: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows at which the profit of each account became another, and the last one."""
    portfolios = projections.selected_portfolios(Selection(contest)).only("contest", contest)
    latest = format_instant(projections.facts.books.clock)
    points: dict[str, list[Row]] = {}
    for last in board:  # the board may be later than the last tick
        rows = [*portfolios.only("participant", last["participant"]).rows(), last | {"at": latest}]
        points_of_account, peak, before = points.setdefault(last["participant"], []), Decimal(0), None
        for row in rows:
            amount = Decimal(row["profit"])
            peak = max(peak, amount)
            if amount != before or row is rows[-1]:
                points_of_account.append(chosen(row, COLUMNS[:3]) | {"below_peak": str(amount - peak)})
            before = amount
    return points


def _thinned(points: Sequence[Row]) -> list[Row]:
    """Return some of the points of a line, and the last one."""
    size = -(-len(points) // MOST_POINTS)
    return [point for index, point in enumerate(points) if index % size == 0 or index == len(points) - 1]


def _panel(names: Sequence[str], field: str, title: str, height: int, time: str) -> dict[str, Any]:
    """Return a line for each account. field: the column of the values. time: how an instant is written."""
    axis = {"format": time, "tickCount": 6}
    x = {"field": "at", "type": "temporal", "title": None, "scale": {"type": "utc"}, "axis": axis}
    y = {"field": field, "type": "quantitative", "title": title, "axis": {"titlePadding": 12}}
    colour = {"field": "row", "type": "nominal", "legend": names_legend(names)}
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8}
    return {"width": WIDTH, "height": height, "mark": mark, "encoding": {"x": x, "y": y, "color": colour}}


def _largest_profit(
    board: Sequence[Row], steps: Mapping[str, Sequence[tuple[str, Decimal]]], currency: str, *, so_far: bool = False
) -> str:
    """Say whose profit is the largest, since when, and what the second one is.

    board: the largest profit first. steps: when the profit of each participant became another, and which one.
    """
    best, *others = ((row["participant"], f"{float(row['profit']):,.2f} {currency}".rstrip()) for row in board)
    if not others:
        return f"{best[0]} has a profit of {best[1]}"
    first = board[0]
    sharing = sum(row["profit"] == first["profit"] or (row["rank"] or 0) == first["rank"] for row in board)
    if sharing > 1:
        return f"{sharing} participants share the largest profit, {best[1]}"
    now, since = dict.fromkeys(steps, Decimal(0)), ""
    changes = sorted(
        (at, who, amount) for who, changes_of_account in steps.items() for at, amount in changes_of_account
    )
    for at, together in groupby(changes, itemgetter(0)):
        now |= {who: amount for _, who, amount in together}
        is_ahead = all(now[best[0]] > other for name, other in now.items() if name != best[0])
        since = (since or at) if is_ahead else ""
    largest = f"{best[0]} has the largest profit{' so far' * so_far}, {best[1]}, since {since[:10]}"
    return f"{largest}; {others[0][0]} has {others[0][1]}"


class Chart(NamedTuple):
    """A kind of chart. words: what it shows. draw: returns None if a contest has nothing to show."""

    words: str
    draw: Callable[[Projections, str], Picture | None]


CHARTS: dict[str, Chart] = {
    "board": Chart("scores in the order of the leaderboard, with their intervals", board),
    "score": Chart("the scores of the best participants after each answer", score_over_time),
    "pairwise": Chart("which of two participants is better on common questions", pairwise),
    "calibration": Chart("how often what was forecast happened", calibration),
    "coverage": Chart("how much of the time each participant had a forecast on each question", coverage),
    "prizes": Chart("how the pool is divided", prizes),
    "profit": Chart("the profit of each account over time, and how far below its peak it is", profit),
}
