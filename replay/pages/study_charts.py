"""Pictures of studies: options, tenths, intervals, scores beside those of others and on a log scale, and over time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import format_count, format_fixed
from forecast_ledger.projections.boards.contest_groups import answered_at
from forecast_ledger.projections.core.columns import POINTS, round_to_points
from forecast_ledger.projections.scores.range_kernels import TRANSFORMS
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.studies.grounds import ERRORS, LEAST_HEAVY
from forecast_ledger.projections.studies.resampling import LEAST_CLUSTERS
from forecast_ledger.projections.tables.catalogue import Projections, Row
from forecast_ledger.projections.tables.ranges import MeanParts, mean_wis_parts
from forecast_ledger.projections.tables.scores import relative_skill_values
from forecast_ledger.replay.explain.what_if import under_rules
from forecast_ledger.replay.pages.charts import (
    CHARTS,
    CURVE,
    FEWEST,
    MOST_COMPARED,
    SHARE,
    Chart,
    board,
    dots,
    reliability,
)
from forecast_ledger.replay.pages.pictures import (
    COLOURS,
    FAINT,
    MOST_LINES,
    MOST_ROWS,
    PLAIN,
    STEP,
    WIDTH,
    WORSE,
    KnownTables,
    Picture,
    chosen,
    completed,
    counts_of,
    in_board_order,
    leaderboard_rows,
    left_out,
    names_axis,
    names_legend,
    numbered,
    percent,
    specify,
)
from forecast_ledger.replay.pages.task_charts import TASK_CHARTS

PARTS, LEAST_PART = 10, 2  # of the questions, in the order of their answers; questions of a part
_TOO_FEW = ", too few to say whether they are calibrated"
_AIM = 0.9  # the central interval that a title is about, if there are forecasts with it


def options(projections: Projections, contest: str) -> Picture | None:
    """How often outcomes of multiple-choice questions happened, for the first of the board with many forecasts."""
    rows = projections.rows_of("calibration_by_option", contest)
    counts = counts_of(rows)
    if not counts:
        return None
    who = in_board_order(projections, contest, counts)[0]
    note = (
        f"{format_count(counts[who], 'probability', 'probabilities')}, one for each outcome of each forecast on a "
        "multiple-choice question, grouped. A point on the dashed line: outcomes happened as often as forecast. Lines "
        "are 95% Wilson intervals, as if outcomes were independent; bars count probabilities."
    )
    note += f" The table calibration_by_option also has {format_count(len(counts) - 1, 'other')}." * (len(counts) > 1)
    title = f"How often outcomes happened to which {who} gave a probability"
    return reliability(title, note, rows, who, [])


def pit(projections: Projections, contest: str) -> Picture | None:
    """In which tenth of numeric forecasts the answers fell, for the first of the board with many forecasts."""
    rows = projections.rows_of("pit_counts", contest)
    counts = _counts(rows, "n")
    if not counts:
        return None
    who = in_board_order(projections, contest, counts)[0]
    columns = ("from_probability", "to_probability", "n")
    shown = [chosen(row, columns) for row in rows if row["participant"] == who]
    values, total = numbered(shown, *columns), counts[who]
    outer = sum(row["n"] for row in values if row["from_probability"] == 0 or row["to_probability"] == 1)
    answers = format_count(round(total), "answer")
    title = f"{percent(outer, total)} of {answers} fall in the first and the last tenth of forecasts by {who}"
    title = title if total >= LEAST_CLUSTERS else f"Forecasts of {who}: {answers}{_TOO_FEW}"
    note = (
        f"{answers}. If forecasts are calibrated, a tenth of the answers falls in each tenth, up "
        "to the dashed line, and 20% in the outer two: more there suggests that forecasts are too narrow, or, if they "
        "are at one end, too low or too high; fewer, that they are too wide."
    )
    note += f" The table pit_counts also has {format_count(len(counts) - 1, 'other')}." * (len(counts) > 1)
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
    """How often answers fell within the central intervals of the first of the board with many numeric forecasts."""
    rows = projections.rows_of("interval_coverage", contest)
    counts = _counts(rows, "n")
    names = in_board_order(projections, contest, counts)[:MOST_LINES]
    if not names:
        return None
    columns = ("participant", "probability", "n", "inside", "inside_share")  # on a page, coverage is of time
    named = [row | {"inside": row["covered"], "inside_share": row["coverage"]} for row in rows]
    shown = [chosen(row, columns) for name in names for row in named if row["participant"] == name]
    values = [
        {"row": names.index(row["participant"])} | {each: float(row[each]) for each in ("probability", "inside_share")}
        for row in shown
    ]
    rows_of_first = [row for row in shown if row["participant"] == names[0]]
    told = min(rows_of_first, key=lambda row: abs(float(row["probability"]) - _AIM))
    probability, held = (percent(float(told[name])) for name in ("probability", "inside_share"))
    answers = format_count(told["n"], "answer")
    title = f"The {probability} intervals of {names[0]} hold {held} of {answers}"
    title = title if told["n"] >= LEAST_CLUSTERS else f"Intervals of {names[0]}: {answers}{_TOO_FEW}"
    note = (
        "On the dashed line, intervals hold as many answers as their probability says; a line below it suggests that "
        "they are too narrow, or too low or too high."
    )
    left = f" The first {len(names)} of the board with half of the most answers or more are shown, of {len(counts):,}."
    note += left * (len(counts) > len(names))
    lines = {
        "mark": {"type": "line", "point": True, "strokeWidth": 1.8},
        "encoding": {
            "x": {"field": "probability", "title": "probability of the interval", **SHARE},
            "y": {"field": "inside_share", "title": "answers inside it", **SHARE},
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


def relative_skill(projections: Projections, contest: str) -> Picture | None:
    """The scores of forecasts by quantiles beside those of others on the same questions."""
    board_rows = {row["participant"]: row for row in leaderboard_rows(projections, contest)}
    if not _by_quantiles(projections, contest) or not FEWEST <= len(board_rows) <= MOST_COMPARED:
        return None
    table = projections.as_table("relative_skill", relative_skill_values(projections, contest, first=True))
    rows = [row for row in table.rows() if row["participant"] in board_rows and row["relative_skill"] is not None]
    rows.sort(key=lambda row: (float(row["relative_skill"]), row["participant"]))
    if not rows:
        return None
    columns = ("participant", "compared", "relative_skill")
    shown = [chosen(row, columns) for row in rows[:MOST_ROWS]]
    title = {"title": "relative skill, lower is better", "labelFlush": False}
    x = {"field": "relative_skill", "type": "quantitative", "scale": {"zero": False}, "axis": title}
    line = {"mark": {"type": "rule", "color": FAINT}, "encoding": {"x": x, "x2": {"datum": 1}}}
    values = numbered(shown, "relative_skill")
    note = (
        "The relative skill, for which hubs also say relative WIS, is the geometric mean of the ratios of the own mean "
        "score to each other's, each on the questions that both have forecast on. Scores are those of this board; the "
        "number is not divided by that of a baseline, as hubs do (the table relative_skill has both). Lines are drawn "
        "from 1; below it, scores are better than those of others. There are no intervals, so the order is not sure."
    )
    specification = dots(values, completed(projections, contest, shown), "relative_skill", line)
    return Picture(_least_skill(rows, board_rows), note + left_out(rows, shown), columns, shown, specification)


def _least_skill(rows: Sequence[Row], board_rows: Mapping[str, Row]) -> str:
    """Say who has the least relative skill of those with a rank and forecasts on half of the questions or more."""
    enough = []
    for row in rows:
        done, every = map(int, board_rows[row["participant"]]["completion"].split("/"))
        if 2 * done >= every and board_rows[row["participant"]]["rank"] is not None:
            enough.append(row)
    if len(enough) < FEWEST or enough[0]["relative_skill"] == enough[1]["relative_skill"]:
        return "Relative skill of forecasts by quantiles"
    among = " of those who forecast on at least half of the questions" * (len(enough) < len(rows))
    return f"{enough[0]['participant']} has the best relative skill{among}, {float(enough[0]['relative_skill']):.3f}"


_WIS_PARTS = ("dispersion", "underprediction", "overprediction")  # in the order in which bars are stacked


def sharpness(projections: Projections, contest: str) -> Picture | None:
    """The parts of the mean WIS of forecasts by quantiles: how wide they are, and the penalties for missed answers."""
    rows = leaderboard_rows(projections, contest) if _by_quantiles(projections, contest) else []
    means = mean_wis_parts(projections, contest, {row["participant"] for row in rows[:MOST_ROWS]}) if rows else {}
    if not means:
        return None
    drawn = [row for row in rows[:MOST_ROWS] if row["participant"] in means]
    columns = ("participant", "questions", "mean_wis", *_WIS_PARTS)
    shown = [_mean_row(columns, row["participant"], means[row["participant"]]) for row in drawn]
    transform = projections.facts.contests[contest].opened.rules.transform
    scale = "in the unit of the answers" if transform == "none" else f"of transformed values ({transform})"
    note = (
        "A bar is the mean WIS, the sum of three parts. Dispersion is the sharpness of forecasts, what narrow ones "
        "keep small; underprediction is the penalty for answers above them, overprediction for answers below them. "
        "Narrow is good only if answers are not missed: little dispersion beside large penalties suggests that "
        "forecasts are too narrow, or too low or too high."
    )
    if transform != "none":
        note += f" As the rules say, all numbers are {TRANSFORMS[transform].words}, not in the unit of the answers."
    if any(row["score"] != mean["mean_wis"] for row, mean in zip(drawn, shown, strict=True)):
        note += (
            " Scores on the board are other numbers: a bar is a mean over the questions that a participant forecast on "
            "and the time in which forecasts stood, without a reference and without what is imputed. Questions whose "
            "levels are not symmetric about 0.5 have no parts."
        )
    note += left_out(rows, shown)
    first = means[shown[0]["participant"]]
    title = "Sharpness and misses"
    if first.wis:
        share = percent(float(first.dispersion), float(first.wis))
        title += f": {share} of the mean WIS of {shown[0]['participant']} is dispersion"
    return Picture(title, note, columns, shown, _stacked(shown, completed(projections, contest, shown), scale))


def _mean_row(columns: Sequence[str], who: str, mean: MeanParts) -> Row:
    numbers = (mean.wis, mean.dispersion, mean.underprediction, mean.overprediction)
    printed = (format_fixed(round_to_points(number), POINTS, least=9) for number in numbers)
    return dict(zip(columns, (who, mean.questions, *printed), strict=True))


def _stacked(shown: Sequence[Row], names: Sequence[Row], scale: str) -> dict[str, Any]:
    """Return a bar of parts in each row. names: the labels of the rows. scale: what the numbers are of."""
    values = [
        {"row": number, "part": part, "mean": float(row[name])}
        for number, row in enumerate(shown)
        for part, name in enumerate(_WIS_PARTS)
    ]
    axis = {"title": f"mean WIS, {scale}; lower is better", "labelFlush": False}
    colours = {"domain": [*range(len(_WIS_PARTS))], "range": [PLAIN, COLOURS[4], WORSE]}
    return specify(
        values,
        width=WIDTH,
        height={"step": STEP},
        mark={"type": "bar", "height": 11},
        encoding={
            "y": {"field": "row", "type": "ordinal", "axis": names_axis(names), "title": None},
            "x": {"field": "mean", "type": "quantitative", "axis": axis},
            "color": {
                "field": "part",
                "type": "nominal",
                "scale": colours,
                "legend": {**names_legend(_WIS_PARTS), "columns": len(_WIS_PARTS)},
            },
            "order": {"field": "part"},
        },
    )


def log_scale(projections: Projections, contest: str) -> Picture | None:
    """Scores of the logarithms of forecasts and answers, where those of the board are of the values themselves."""
    facts = projections.facts
    rules = facts.contests[contest].opened.rules
    if not _by_quantiles(projections, contest) or rules.transform != "none":
        return None
    alone = Projections(replace(facts, contests={contest: facts.contests[contest]}))
    try:
        other = under_rules(alone, contest, structs.replace(rules, transform="log_shifted"))
    except Refused:  # values below 0 have no logarithm
        return None
    picture = board(KnownTables(other), contest, "on this scale")
    if picture is None:
        return None
    note = (
        "Scores as they would be if ln(x + 1) of each quantile and answer were scored (transform "
        "log_shifted). In scores of the values themselves, as on the board, questions with large values count most. "
        f"That is why those need {LEAST_HEAVY[ERRORS]} clusters for an interval, and errors of logarithms, of which no "
        f"few make most of the sum, {LEAST_CLUSTERS}, as in simulated contests."
    )
    return picture._replace(title=f"On a logarithmic scale: {picture.title}", note=f"{note} {picture.note}")


def _by_quantiles(projections: Projections, contest: str) -> bool:
    """Return whether a contest has only questions that are forecast by quantiles or samples, scored by all of them."""
    facts = projections.facts
    rules, spans = (
        facts.contests[contest].opened.rules,
        [facts.questions[code].range for code in facts.contests[contest].entries],
    )
    return rules.quantile_kernel == "pinball" and all(span is not None and span.measures for span in spans)


def learning(projections: Projections, contest: str) -> Picture | None:
    """The mean scores of the best participants on consecutive parts of the questions, in the order of their answers."""
    names = [row.participant for row in projections.board(contest) if row.rank is not None][:MOST_LINES]
    parts = _parts(projections, contest)
    if len(parts) < LEAST_PART or not names:
        return None
    scores = {(row["participant"], row["question"]): row["score"] for row in projections.rows_of("scores", contest)}
    columns, shown = ("part", "questions", "participant", "forecast_on", "mean_score"), list[Row]()
    for number, questions in enumerate(parts, start=1):
        for name in names:
            scored = [Fraction(scores[name, question]) for question in questions if (name, question) in scores]
            if scored:
                mean = format_fixed(round_to_points(sum(scored, Fraction(0)) / len(scored)), POINTS, least=9)
                shown.append(dict(zip(columns, (number, len(questions), name, len(scored), mean), strict=True)))
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
    line = [row for row in rows if row["participant"] == names[0]]
    first, last = (float(row["mean_score"]) for row in (line[0], line[-1]))
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
    "relative_skill": Chart("scores of forecasts by quantiles beside those of others", relative_skill),
    "sharpness": Chart("how wide forecasts by quantiles are, and what their misses cost", sharpness),
    **TASK_CHARTS,
    "log_scale": Chart("scores of forecasts by quantiles on a logarithmic scale", log_scale),
}
PLOTS: dict[str, Chart] = REPORTED | {  # every kind of picture
    "options": Chart("how often outcomes of multiple-choice questions happened", options),
    "learning": Chart("mean scores on consecutive parts of the questions", learning),
}
