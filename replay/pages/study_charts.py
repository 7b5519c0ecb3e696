"""Pictures of studies, drawn on request and in no report: options, tenths, intervals, and scores as answers come."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.projections.boards.contest_groups import answered_at
from forecast_ledger.projections.core.columns import POINTS, round_to_points
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.pages.charts import CHARTS, CURVE, SHARE, Chart, reliability
from forecast_ledger.replay.pages.pictures import (
    MOST_LINES,
    PLAIN,
    Picture,
    Row,
    chosen,
    count,
    counts_of,
    names_legend,
    numbered,
    percent,
    rows_of,
    specify,
)

PARTS, LEAST_PART = 10, 2  # of the questions, in the order of their answers; questions of a part
_AIM = 0.9  # the central interval that a title is about, if there are forecasts with it


def options(projections: Projections, contest: str) -> Picture | None:
    """How often outcomes of multiple-choice questions happened, for whoever has most forecasts."""
    rows = rows_of(projections, "calibration_by_option", contest)
    counts = counts_of(rows)
    if not counts:
        return None
    who = max(counts, key=lambda name: counts[name])
    note = (
        f"{count(counts[who], 'probability', 'probabilities')}, one for each outcome of each forecast on a "
        "multiple-choice question, grouped. A point on the dashed line: outcomes happened as often as forecast. Lines "
        "are 95% Wilson intervals, as if outcomes were independent; bars count probabilities."
    )
    note += f" The table calibration_by_option also has {count(len(counts) - 1, 'other')}." * (len(counts) > 1)
    title = f"How often outcomes happened to which {who} gave a probability"
    return reliability(title, note, rows, who, [])


def pit(projections: Projections, contest: str) -> Picture | None:
    """In which tenth of numeric forecasts the answers fell, for whoever has most."""
    rows = rows_of(projections, "pit_counts", contest)
    counts = _counts(rows, "n")
    if not counts:
        return None
    who = max(counts, key=lambda name: counts[name])
    columns = ("from_probability", "to_probability", "n")
    shown = [chosen(row, columns) for row in rows if row["participant"] == who]
    values, total = numbered(shown, *columns), counts[who]
    outer = sum(row["n"] for row in values if row["from_probability"] == 0 or row["to_probability"] == 1)
    title = f"{percent(outer, total)} of the answers fall in the first and the last tenth of forecasts by {who}"
    note = (
        f"{count(round(total), 'answer')}. If forecasts are calibrated, a tenth of the answers falls in each tenth, up "
        "to the dashed line, and 20% in the outer two: more there means that forecasts are too narrow, fewer that they "
        "are too wide."
    )
    note += f" The table pit_counts also has {count(len(counts) - 1, 'other')}." * (len(counts) > 1)
    x = {"field": "from_probability", "title": "forecast", "bin": {"binned": True, "step": 0.1}, **SHARE}
    bars = {
        "mark": {"type": "bar", "color": PLAIN},
        "encoding": {
            "x": x,
            "x2": {"field": "to_probability"},
            "y": {"field": "n", "type": "quantitative", "title": "answers"},
        },
    }
    expected = {
        "data": {"values": [{"n": total / 10}]},
        "mark": {"type": "rule", "color": "#888", "strokeDash": [4, 4]},
        "encoding": {"y": {"field": "n", "type": "quantitative"}},
    }
    return Picture(title, note, columns, shown, specify(values, width=CURVE, height=200, layer=[bars, expected]))


def intervals(projections: Projections, contest: str) -> Picture | None:
    """How often answers fell within the central intervals of those with most numeric forecasts."""
    rows = rows_of(projections, "interval_coverage", contest)
    counts = _counts(rows, "n")
    names = sorted(counts, key=lambda name: (-counts[name], name))[:MOST_LINES]
    if not names:
        return None
    columns = ("participant", "probability", "n", "covered", "coverage")
    shown = [chosen(row, columns) for name in names for row in rows if row["participant"] == name]
    values = [
        {"row": names.index(row["participant"])} | {each: float(row[each]) for each in ("probability", "coverage")}
        for row in shown
    ]
    first = [row for row in values if row["row"] == 0]
    told = min(first, key=lambda row: abs(row["probability"] - _AIM))
    title = (
        f"The {percent(told['probability'])} intervals of {names[0]} hold {percent(told['coverage'])} of the answers"
    )
    note = (
        "On the dashed line, intervals hold as many answers as their probability says; below it, they are too narrow."
    )
    note += f" The {len(names)} with most forecasts are shown, of {len(counts):,}." * (len(counts) > len(names))
    lines = {
        "mark": {"type": "line", "point": True, "strokeWidth": 1.8},
        "encoding": {
            "x": {"field": "probability", "title": "probability of the interval", **SHARE},
            "y": {"field": "coverage", "title": "answers within it", **SHARE},
            "color": {"field": "row", "type": "nominal", "legend": names_legend(names)},
        },
    }
    layers = [_diagonal(), lines]
    return Picture(title, note, columns, shown, specify(values, width=CURVE, height=CURVE, layer=layers))


def _diagonal() -> dict[str, Any]:
    """Return the line of calibration."""
    return {
        "data": {"values": [{"p": 0}, {"p": 1}]},
        "mark": {"type": "line", "color": "#888", "strokeDash": [4, 4]},
        "encoding": {"x": {"field": "p", **SHARE}, "y": {"field": "p", **SHARE}},
    }


def learning(projections: Projections, contest: str) -> Picture | None:
    """The mean scores of the best participants on consecutive parts of the questions, in the order of their answers."""
    names = [row.participant for row in projections.board(contest) if row.rank is not None][:MOST_LINES]
    parts = _parts(projections, contest)
    if len(parts) < LEAST_PART or not names:
        return None
    scores = {(row["participant"], row["question"]): row["score"] for row in rows_of(projections, "scores", contest)}
    columns, shown = ("part", "questions", "participant", "forecast_on", "mean_score"), list[Row]()
    for number, questions in enumerate(parts, start=1):
        for name in names:
            own = [Fraction(scores[name, question]) for question in questions if (name, question) in scores]
            if own:
                mean = format_fixed(round_to_points(sum(own, Fraction(0)) / len(own)), POINTS, least=9)
                shown.append(dict(zip(columns, (number, len(questions), name, len(own), mean), strict=True)))
    values = [
        {"row": names.index(row["participant"]), "part": row["part"], "score": float(row["mean_score"])}
        for row in shown
    ]
    rules = projections.facts.contests[contest].opened.rules
    better = "lower" if lower_is_better(rules) else "higher"
    note = (
        f"Mean scores, {better} is better, on {len(parts)} parts of the questions, in the order in which answers were "
        "recorded; each question counts once. A line of a forecaster who learns moves to better scores."
    )
    specification = specify(
        values,
        width=CURVE,
        height=CURVE,
        mark={"type": "line", "point": True, "strokeWidth": 1.8},
        encoding={
            "x": {"field": "part", "type": "ordinal", "title": "part of the questions", "axis": {"labelAngle": 0}},
            "y": {"field": "score", "type": "quantitative", "title": "mean score", "scale": {"zero": False}},
            "color": {"field": "row", "type": "nominal", "legend": names_legend(names)},
        },
    )
    return Picture(_learned(shown, names), note, columns, shown, specification)


def _parts(projections: Projections, contest: str) -> list[list[str]]:
    """Return the ids of the questions that count in parts of nearly equal size, in the order of their answers."""
    facts, questions = projections.facts, projections.scored(contest).questions
    counted = np.flatnonzero(questions.weight > 0)
    at = answered_at(facts, facts.contests[contest], questions)[counted]
    ordered = [facts.question_codes.labels[code] for code in questions.code[counted][np.argsort(at, kind="stable")]]
    number = min(PARTS, len(ordered) // LEAST_PART)
    return [[*part] for part in np.array_split(np.array(ordered, object), number)] if number else []


def _learned(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Say how the scores of the best participant changed from the first part to the last."""
    own = [row for row in rows if row["participant"] == names[0]]
    first, last = (float(row["mean_score"]) for row in (own[0], own[-1]))
    return f"{names[0]} has a mean score of {first:.3f} on the first part of the questions, {last:.3f} on the last"


def _counts(rows: Sequence[Mapping[str, Any]], column: str) -> dict[str, float]:
    """Return the sum of a column by participant."""
    counts: dict[str, float] = {}
    for row in rows:
        counts[row["participant"]] = counts.get(row["participant"], 0) + float(row[column])
    return counts


REPORTED: dict[str, Chart] = CHARTS | {  # of a report
    "pit": Chart("in which tenth of numeric forecasts the answers fell", pit),
    "intervals": Chart("how often answers fell within central intervals", intervals),
}
PLOTS: dict[str, Chart] = REPORTED | {  # every kind of picture
    "options": Chart("how often outcomes of multiple-choice questions happened", options),
    "learning": Chart("mean scores on consecutive parts of the questions", learning),
}
