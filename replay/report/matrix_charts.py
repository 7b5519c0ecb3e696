"""Charts of participants against participants, and of participants against questions."""

from collections.abc import Sequence

from forecast_ledger.projections.studies.pairs import PERMUTATIONS
from forecast_ledger.projections.tables.projection import Projections
from forecast_ledger.replay.report.chart_parts import (
    LEVEL,
    MOST_ROWS,
    STEP,
    chosen,
    count,
    in_order,
    left_out,
    names_axis,
    percent,
    rows_of,
)
from forecast_ledger.replay.report.pictures import BETTER, FAINT, PLAIN, WIDTH, WORSE, Picture, Row, specify

MOST_PAIRED = 20
MOST_COLUMNS = 60
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
    pairs = rows_of(projections, "pairwise", contest)
    names = [row["participant"] for row in rows_of(projections, "leaderboard", contest)]
    if not pairs:
        return None
    first = names[:MOST_PAIRED]
    shown = [row for row in pairs if row["participant"] in first and row["other"] in first]
    columns = ("participant", "other", "questions", "won_share", "difference", "p", "p_adjusted")  # fmt: skip
    values = []
    for row in shown:
        certain, ahead = _certain(row), float(row["difference"]) > 0
        places = (first.index(row["participant"]), first.index(row["other"]))
        for (one, other), better in ((places, ahead), (places[::-1], not ahead)):
            share = float(row["won_share"]) if (one, other) == places else 1 - float(row["won_share"])
            verdict = ("better" if better else "worse") if certain else "not certain"
            values.append({"row": one, "column": other, "verdict": verdict, "share": f"{100 * share:.0f}"})
    axis = names_axis([{"participant": name} for name in first])
    specification = specify(
        values,
        padding={"left": 20, "right": 110, "top": 5, "bottom": 5},  # for the slanted names
        width={"step": 26},
        height={"step": 26},
        encoding={
            "y": {"field": "row", "type": "ordinal", "axis": axis, "title": None},
            "x": {
                "field": "column",
                "type": "ordinal",
                "axis": {**axis, "orient": "top", "labelAngle": -60, "labelLimit": 130},
                "title": None,
            },
        },
        layer=_CELLS,
    )
    title, note = _told_apart(pairs)
    if len(first) < len(names):
        note += f" The first {len(first)} of {len(names):,} are shown."
    return Picture(title, note, columns, [chosen(row, columns) for row in shown], specification)


def _told_apart(pairs: Sequence[Row]) -> tuple[str, str]:
    """Say how many pairs the test tells apart, and how to read the picture."""
    tests, adjusted = count(len(pairs), "pair"), sum(float(row["p_adjusted"]) <= LEVEL for row in pairs)
    apart = f"{sum(map(_certain, pairs))} of {tests} of participants"
    is_too_many = len(pairs) > LEVEL * (PERMUTATIONS + 1)
    together = "so many tests tell nothing together" if is_too_many else f"all pairs together, {adjusted or 'none'}"
    title = f"One pair at a time, {apart} can be told apart; {together}"
    note = (
        "Numbers are the percentage of common questions on which the row has the better score. A colour: a permutation "
        "test of the mean difference tells the two apart at 5%; a few large differences can outweigh many small ones. "
        f"All pairs together: after Holm's adjustment for {tests}. A pair without a cell has no common questions."
    )
    most = max(int(row["questions"]) for row in pairs)
    if 2 / 2**most > LEVEL:
        note += f" With {count(most, 'question')}, no test can tell a pair apart at 5%."
    elif is_too_many:
        note += f" With {PERMUTATIONS} permutations, no p-value of so many tests can be 5% or less after it."
    return title, note


def _certain(pair: Row) -> bool:
    """Return whether the permutation test tells a pair apart."""
    return float(pair["p"]) <= LEVEL


def coverage(projections: Projections, contest: str) -> Picture | None:
    """How much of the time each participant had a forecast on each question."""
    board = rows_of(projections, "leaderboard", contest)
    names, scored = [row["participant"] for row in board], projections.scored(contest).questions
    counted = scored.code[scored.weight > 0].tolist()
    questions = in_order(projections, {projections.facts.questions[code].question for code in counted})
    if not names or not questions:
        return None
    size = -(-len(questions) // MOST_COLUMNS)
    first, widths = names[:MOST_ROWS], [questions[begin : begin + size] for begin in range(0, len(questions), size)]
    shown = _cover(rows_of(projections, "scores", contest), first, widths)
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
    title = f"Participants had a forecast for {percent(whole)} of the time that counts"
    note = f"{count(len(questions), 'question')}; the stronger the colour, the longer a forecast stood." + (
        f" {size} questions a column." * (size > 1)
    )
    return Picture(title, note + left_out(names, first), ("participant", "questions", "coverage"), shown, specification)


def _cover(scores: Sequence[Row], participants: Sequence[str], columns: Sequence[Sequence[str]]) -> list[Row]:
    """Return the mean coverage of each participant on the questions of each column."""
    column = {question: number for number, own in enumerate(columns) for question in own}
    sums: dict[tuple[str, int], float] = {}
    for row in scores:
        if row["question"] in column:  # else it has no weight
            key = (row["participant"], column[row["question"]])
            sums[key] = sums.get(key, 0) + float(row["coverage"])
    return [
        {
            "participant": who,
            "questions": own[0] if len(own) == 1 else f"{own[0]} to {own[-1]}",
            "coverage": f"{sums.get((who, number), 0) / len(own):.3f}",
        }
        for who in participants
        for number, own in enumerate(columns)
    ]
