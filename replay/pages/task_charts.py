"""Pictures of a hub's tasks: how good each model is at one horizon, and at one location."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import log2
from typing import Any, NamedTuple

from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.projections.facts.task_ids import HORIZON, LOCATION, task_values
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.tables.boards import narrowed
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.projections.tables.scores import relative_skill_values
from forecast_ledger.replay.pages.charts import FEWEST, MOST_COLUMNS, MOST_COMPARED, Chart
from forecast_ledger.replay.pages.pictures import (
    BETTER,
    MOST_ROWS,
    STEP,
    WIDTH,
    WORSE,
    Picture,
    Row,
    count,
    left_out,
    names_axis,
    rows_of,
    specify,
)

MOST_NUMBERED = 12  # columns with a number in each cell
LEAST_STEP = 9  # pixels of a column
DARK = 0.75  # colours on which text is white


class _Cell(NamedTuple):
    """A participant's board and relative skill on the questions of one value. asked: how many count."""

    value: str
    participant: str
    ranked: bool
    done: int
    questions: int
    score: str
    skill: str | None


def by_task(field: str, projections: Projections, contest: str) -> Picture | None:
    """The relative skill of each participant on the questions of each value of a task id.

    field: the task id. None without two values, or by rules under which nobody has a relative skill.
    """
    rules = projections.facts.contests[contest].opened.rules
    if not lower_is_better(rules) or rules.reference != "none":
        return None
    parts = dict(narrowed(projections.facts, contest, partial(_values, field)))
    names = [row["participant"] for row in rows_of(projections, "leaderboard", contest)] if len(parts) > 1 else []
    if not FEWEST <= len(names) <= MOST_COMPARED:
        return None
    alone = Projections(replace(projections.facts, contests=parts), projections.chunk)
    cells = {(each.participant, each.value): each for each in _cells(alone)}
    values = sorted({value for _, value in cells}, key=_in_order)
    if len(values) < FEWEST or all(cell.skill is None for cell in cells.values()):
        return None
    columns = ("participant", field, "questions", "forecast_on", "score", "relative_skill")
    shown = [
        dict(zip(columns, (who, value, cell.questions, cell.done, cell.score, cell.skill), strict=True))
        for who in names[:MOST_ROWS]
        for value in values[:MOST_COLUMNS]
        if (cell := cells.get((who, value))) is not None
    ]
    note = (
        f"Colours{' and numbers' * (len(values) <= MOST_NUMBERED)} are the relative skill on the questions of one "
        f"{field} alone: below 1, the mean score is better than those of others on common questions. At ½ and 2 a "
        f"colour is full. {_question_counts(cells.values())} There are no intervals, so the order is not sure."
    )
    note += left_out(names, names[:MOST_ROWS])
    note += f" Of {len(values):,} {field}s, the first {MOST_COLUMNS} are shown." * (len(values) > MOST_COLUMNS)
    specification = _grid(field, names[:MOST_ROWS], values[:MOST_COLUMNS], shown)
    return Picture(_best(field, cells, values), note, columns, shown, specification)


def _values(field: str, question: QuestionOpened) -> list[str]:
    return [value for name, value in (task_values(question.question) or {}).items() if name == field]


def _in_order(value: str) -> tuple[bool, int, str]:
    """Return the key by which values are sorted: numbers by size, then texts."""
    number = value.removeprefix("-")
    return (False, int(value), value) if number.isascii() and number.isdecimal() else (True, 0, value)


def _cells(alone: Projections) -> list[_Cell]:
    """Return the rows of the boards of contests whose ids are values of a task id."""
    table = alone.as_table("relative_skill", relative_skill_values(alone, first=True))
    skills = {(row["contest"], row["participant"]): row["relative_skill"] for row in table.rows()}
    cells = []
    for row in alone.table("leaderboard").rows():
        done, questions = map(int, row["completion"].split("/"))
        value, who, ranked = row["contest"], row["participant"], row["rank"] is not None
        cells.append(_Cell(value, who, ranked, done, questions, row["score"], skills.get((value, who))))
    return cells


def _question_counts(cells: Any) -> str:
    """Say how many questions each value has."""
    counts = {cell.questions for cell in cells}
    least, most = min(counts), max(counts)
    return f"Each has {count(most, 'question')}." if least == most else f"Each has {least:,} to {most:,} questions."


def _best(field: str, cells: Mapping[tuple[str, str], _Cell], values: Sequence[str]) -> str:
    """Say who has the best relative skill for most values, of those with a rank and half of the questions or more."""
    won: dict[str, int] = {}
    for value in values:
        skills = [
            (float(cell.skill), who)
            for (who, each), cell in cells.items()
            if each == value and cell.skill is not None and cell.ranked and 2 * cell.done >= cell.questions
        ]
        best = [who for skill, who in skills if skill == min(skills)[0]]
        if len(skills) >= FEWEST and len(best) == 1:
            won[best[0]] = won.get(best[0], 0) + 1
    first = [who for who, number in won.items() if number == max(won.values())]
    if len(first) != 1:
        return f"Relative skill by {field}"
    return f"{first[0]} has the best relative skill for {won[first[0]]:,} of {count(len(values), field)}"


def _grid(field: str, names: Sequence[str], values: Sequence[str], shown: Sequence[Row]) -> dict[str, Any]:
    """Return a cell for each participant and value."""
    numbers, many = list[Row](), len(values) > MOST_NUMBERED
    for row in shown:
        if row["relative_skill"] is not None:
            skill = float(row["relative_skill"])
            far = min(abs(log2(skill)), 1.0)
            cell = {"row": names.index(row["participant"]), "column": values.index(row[field])}
            verdict = "better" if skill < 1 else "worse"
            numbers.append(cell | {"verdict": verdict, "far": round(far, 3), "skill": f"{skill:.2f}"})
    scale = {"domain": ["better", "worse"], "range": [BETTER, WORSE]}
    strength = {"field": "far", "type": "quantitative", "scale": {"domain": [0, 1], "range": [0, 1]}, "legend": None}
    rect = {
        "mark": {"type": "rect", "stroke": "#8883"},
        "encoding": {
            "color": {
                "field": "verdict",
                "type": "nominal",
                "title": None,
                "scale": scale,
                "legend": {"orient": "bottom"},
            },
            "opacity": strength,
        },
    }
    white = {"condition": {"test": f"datum.far > {DARK}", "value": "white"}, "value": "currentColor"}
    text = {"mark": {"type": "text", "fontSize": 10}, "encoding": {"text": {"field": "skill"}, "color": white}}
    axis = {**names_axis([{"participant": value} for value in values]), "orient": "top", "labelAngle": -90 * many}
    return specify(
        numbers,
        width={"step": max(min(WIDTH // len(values), 44), LEAST_STEP)},
        height={"step": STEP},
        encoding={
            "y": {
                "field": "row",
                "type": "ordinal",
                "axis": names_axis([{"participant": name} for name in names]),
                "title": None,
            },
            "x": {"field": "column", "type": "ordinal", "axis": axis, "title": field},
        },
        layer=[rect] if many else [rect, text],
    )


TASK_CHARTS: dict[str, Chart] = {
    name: Chart(f"relative skill by the task id {name} of a hub", partial(by_task, name))
    for name in (HORIZON, LOCATION)
}
