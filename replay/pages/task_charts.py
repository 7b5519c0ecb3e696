"""Pictures of a hub's tasks: how good each model is at one horizon, and at one location."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import log2
from statistics import median
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.values import format_count
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.task_ids import HORIZON, LOCATION, task_values
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.tables.boards import narrowed
from forecast_ledger.projections.tables.catalogue import Projections, Row
from forecast_ledger.projections.tables.scores import relative_skill_values
from forecast_ledger.replay.pages.charts import FEWEST, MOST_COLUMNS, MOST_COMPARED, Chart
from forecast_ledger.replay.pages.page_parts import digits_of, number_text
from forecast_ledger.replay.pages.pictures import (
    BETTER,
    MOST_ROWS,
    STEP,
    WIDTH,
    WORSE,
    Picture,
    leaderboard_rows,
    left_out,
    names_axis,
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
    """The relative skill of each participant on the questions of each value of a task id, or else the score.

    field: the task id. None without two values. Under some rules nobody has a relative skill, and scores are drawn.
    """
    rules = projections.facts.contests[contest].opened.rules
    parts = dict(narrowed(projections.facts, contest, partial(_values, field)))
    names = [row["participant"] for row in leaderboard_rows(projections, contest)] if len(parts) > 1 else []
    if not FEWEST <= len(names) <= MOST_COMPARED:
        return None
    alone = Projections(replace(projections.facts, contests=parts), projections.chunk)
    cells = {(each.participant, each.value): each for each in _cells(alone)}
    values = sorted({value for _, value in cells}, key=_in_order)
    if len(values) < FEWEST:
        return None
    columns = ("participant", field, "questions", "forecast_on", "score", "relative_skill")
    shown = [
        dict(zip(columns, (who, value, cell.questions, cell.done, cell.score, cell.skill), strict=True))
        for who in names[:MOST_ROWS]
        for value in values[:MOST_COLUMNS]
        if (cell := cells.get((who, value))) is not None
    ]
    by_skill, lower = any(cell.skill is not None for cell in cells.values()), lower_is_better(rules)
    kind, better = "mean scores" if rules.total == "mean" else "scores", "lower" if lower else "higher"
    what = f"Colours{' and numbers' * (len(values) <= MOST_NUMBERED)} are"
    words = (
        f"{what} the relative skill on the questions of one {field} alone: below 1, the mean score is better than "
        "those of others on common questions. At ½ and 2 a colour is full."
    )
    if not by_skill:
        words = (
            f"{what} {kind} on the questions of one {field} alone, {better} is better, of participants who may have "
            f"forecast on different ones: by these rules, nobody has a relative skill. Colours say whether a score is "
            f"better or worse than the median of its {field}."
        )
    note = f"{words} {_question_counts(cells.values())} There are no intervals, so the order is not sure."
    note += left_out(names, names[:MOST_ROWS])
    note += f" Of {len(values):,} {field}s, the first {MOST_COLUMNS} are shown." * (len(values) > MOST_COLUMNS)
    numbers = _by_skill(shown) if by_skill else _by_score(field, shown, -1 if lower else 1)
    specification = _grid(field, names[:MOST_ROWS], values[:MOST_COLUMNS], numbers)
    title = _best(field, cells, values) if by_skill else f"{kind.capitalize()} by {field}"
    return Picture(title, note, columns, shown, specification)


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
    return (
        f"Each has {format_count(most, 'question')}." if least == most else f"Each has {least:,} to {most:,} questions."
    )


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
    return f"{first[0]} has the best relative skill for {won[first[0]]:,} of {format_count(len(values), field)}"


def _by_skill(shown: Sequence[Row]) -> Iterator[tuple[Row, str, float, str]]:
    """Yield rows with a relative skill, each with its verdict, how strong its colour is, and its number."""
    for row in shown:
        if row["relative_skill"] is not None:
            skill = float(row["relative_skill"])
            yield row, "better" if skill < 1 else "worse", min(abs(log2(skill)), 1.0), f"{skill:.2f}"


def _by_score(field: str, shown: Sequence[Row], sign: int) -> Iterator[tuple[Row, str, float, str]]:
    """Yield the same of scores, beside the median of each value. sign: 1 if the highest score is the best, else -1."""
    scores: dict[str, list[float]] = {}
    for row in shown:
        scores.setdefault(row[field], []).append(float(row["score"]))
    middle = {value: median(every) for value, every in scores.items()}
    far = {value: max(abs(score - middle[value]) for score in every) or 1 for value, every in scores.items()}
    digits = digits_of([score for every in scores.values() for score in every])
    for row in shown:
        score, value = float(row["score"]), row[field]
        gained = sign * (score - middle[value])
        yield row, "better" if gained > 0 else "worse", abs(gained) / far[value], number_text(score, min(digits, 3))


def _grid(
    field: str, names: Sequence[str], values: Sequence[str], shown: Iterable[tuple[Row, str, float, str]]
) -> dict[str, Any]:
    """Return a cell for each participant and value. shown: what `_by_skill` yields."""
    many = len(values) > MOST_NUMBERED
    numbers: list[Row] = [
        {"row": names.index(row["participant"]), "column": values.index(row[field])}
        | {"verdict": verdict, "far": round(far, 3), "skill": number}
        for row, verdict, far, number in shown
    ]
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
