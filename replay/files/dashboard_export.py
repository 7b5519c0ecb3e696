"""Write scores as the dashboard of a hub reads them: a CSV file for each target and each task id, and the options.

A target is a contest with forecasts by quantiles. A row has the means of a model over its questions, each once.

Source: hubverse, hubPredEvalsData, `generate_eval_data` and `generate_predevals_options`: folders, columns, options.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.core.files import open_regular
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.columns import POINTS, plain_values, round_to_points
from forecast_ledger.projections.studies.difficulty import relative_skills, scaled
from forecast_ledger.projections.studies.two_way import Cells
from forecast_ledger.projections.tables.boards import narrowed
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.files.hub_export import HubExport, check_free, csv_text, hub_task, write_texts
from forecast_ledger.replay.files.manifest import MANIFEST_BYTES, clear_leftovers, move_into_place, scratch_folder
from forecast_ledger.replay.importing.source_files import MISSING
from forecast_ledger.replay.reading.replay import Replay

TABLES = ("wis_parts", "interval_coverage")  # that the scores are made of
METRICS = {  # the dashboard's name -> column of `wis_parts`
    "wis": "wis",
    "dispersion": "dispersion",
    "overprediction": "overprediction",
    "underprediction": "underprediction",
    "ae_median": "median_error",
}
RELATIVE = ("wis", "ae_median")  # metrics that are compared with those of the baseline
OPTIONS, _FOLDER, _FILE, _SET = "predevals-options.json", "scores", "scores.csv", "All rounds"
_QUANTILE, _MODEL, _SKILL = "quantile", "model_id", "_scaled_relative_skill"
_MADE_BY = "forecast-ledger"
_COLUMNS = {_MODEL, "n", *METRICS}  # names that no task id can have beside them
_NAME = re.compile(r'(?![ .])[^/\\:*?"<>|#%\x00-\x1f]+(?<![ .])')  # also in a URL
_NAME_BYTES = 255
_NO_SCORES = "a contest without scores of forecasts by quantiles"
_NO_NAME = "a target or task id whose name a folder or a column cannot have"


class _Scored(NamedTuple):
    """A row of `wis_parts`. numbers: by metric, 1e-9; None without a median."""

    question: str
    participant: str
    numbers: dict[str, int | None]


class _Target(NamedTuple):
    """A contest as a target. tasks: question -> its task ids. by: those to divide scores by. fitted: who are compared.

    Participants of the level `hidden` have no rows.
    """

    name: str
    contest: str
    tasks: Mapping[str, Mapping[str, str]]
    by: Sequence[str]
    rows: Sequence[_Scored]
    fitted: frozenset[str]

    def value(self, question: str, by: str) -> str:
        """Return the value of a task id; "" for none, of which all questions are."""
        return self.tasks[question].get(by, MISSING) if by else ""


def export_dashboard(
    season: Replay, out: str | PathLike[str], baseline: str | None = None, *, force: bool = False
) -> HubExport:
    """Export the scores of a log to a folder that the dashboard of a hub shows; the same log gives the same bytes.

    baseline: a participant; targets of which it has scores get relative skills, which are 1 for the baseline. force:
    replace a folder that was exported before.
    Raises, first that applies: FileExistsError (the path exists and may not be replaced), ValueError (nobody has scores
    of forecasts by quantiles, or not the baseline), OSError.
    """
    out = Path(os.path.abspath(out))  # noqa: PTH100 - links are not followed: a link at OUT is replaced itself
    clear_leftovers(out)
    names = (OPTIONS, _FOLDER)
    check_free(out, "an exported dashboard", names, _is_ours, force=force)
    left_out: dict[str, int] = {}
    targets = [*_targets(season.projections, left_out)]
    if not targets:
        raise ValueError("no contest has scores of forecasts by quantiles, which this format is made of")
    people = {row.participant for target in targets for row in target.rows}
    if baseline is not None and baseline not in people:
        raise ValueError(
            f"no scores of a participant named {baseline!r}; there are those of {listed(baseline, people)}"
        )
    texts, options, count = dict[str, str](), [], 0
    for target in targets:
        for by in ("", *target.by):
            rows = _table(season.projections, target, by, baseline)
            texts["/".join(filter(None, (_FOLDER, target.name, _SET, by, _FILE)))] = csv_text(rows)
            count += len(rows) - 1
            if not by:
                options.append(_options(target, rows[0][1:-1], baseline))
    with scratch_folder(out) as part:
        scores = write_texts(part / _FOLDER, texts)._replace(rows=count)
        content = {"made_by": _MADE_BY, "targets": options, "eval_sets": [{"eval_set_name": _SET}], "task_id_text": {}}
        text = msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"
        parts = {"scores": scores, "options": write_texts(part / _FOLDER, {OPTIONS: text})}
        check_free(out, "an exported dashboard", names, _is_ours, force=force)
        move_into_place(part / _FOLDER, out)
    return HubExport(season.checkpoint, parts, left_out)


def _options(target: _Target, metrics: Sequence[str], baseline: str | None) -> dict[str, Any]:
    """Return the options of a target. metrics: the columns of its files."""
    compared = [metric for metric in RELATIVE if f"{metric}{_SKILL}" in metrics]
    relative = {"relative_metrics": compared, "baseline": baseline} if compared else {}
    return {"target_id": target.name, "metrics": metrics, **relative, "disaggregate_by": target.by}


def _is_ours(out: Path) -> bool:
    try:
        with open_regular(out / OPTIONS, MANIFEST_BYTES) as file:
            content = msgspec.json.decode(file.read())
    except (OSError, Unavailable, msgspec.DecodeError):
        return False
    return isinstance(content, dict) and content.get("made_by") == _MADE_BY


def _targets(projections: Projections, left_out: dict[str, int]) -> Iterator[_Target]:
    """Yield the targets, by contest, and count what is left out."""
    rows: dict[str, list[_Scored]] = {}
    for contest, row in _scored(projections):
        rows.setdefault(contest, []).append(row)
    taken: set[str] = set()
    for contest in sorted(projections.facts.contests):
        target = _target(projections, contest, rows.get(contest, []))
        if not target.rows:
            left_out[_NO_SCORES] = left_out.get(_NO_SCORES, 0) + 1
            continue
        names = [each for each in (target.name, contest) if _is_name(each) and each.casefold() not in taken]
        by = {each.casefold(): each for each in target.by if _is_name(each) and each not in _COLUMNS}
        if unnamed := len(target.by) - len(by) + (not names):
            left_out[_NO_NAME] = left_out.get(_NO_NAME, 0) + unnamed
        if names:
            taken.add(names[0].casefold())
            yield target._replace(name=names[0], by=[*by.values()])


def _is_name(name: str) -> bool:
    """Return whether a folder can have this name, on any system."""
    return bool(_NAME.fullmatch(name)) and len(name.encode()) <= _NAME_BYTES and name != _FILE


def _scored(projections: Projections) -> Iterator[tuple[str, _Scored]]:
    table = projections.table("wis_parts")
    numbers = zip(*(plain_values(table.numbers(column)) for column in METRICS.values()), strict=True)
    for contest, question, who, row_numbers in zip(
        table["contest"], table["question"], table["participant"], numbers, strict=True
    ):
        yield contest, _Scored(question, who, dict(zip(METRICS, row_numbers, strict=True)))


def _target(projections: Projections, name: str, rows: Iterable[_Scored]) -> _Target:
    facts, contest = projections.facts, projections.facts.contests[name]
    tasks = {}
    for code, entry in contest.entries.items():
        question = facts.questions[code]
        if entry.weight and question.range is not None and question.range.levels:
            task = hub_task(question, contest.opened)
            if task.output_type == _QUANTILE:
                tasks[question.question] = task.values
    shown = [row for row in rows if row.question in tasks and contest.level_of(row.participant) != "hidden"]
    answered = [tasks[question] for question in dict.fromkeys(row.question for row in shown)]
    columns = dict.fromkeys(column for values in answered for column in values)
    by = [each for each in columns if len({values.get(each, MISSING) for values in answered}) > 1]
    people = facts.participant_codes.codes
    fitted = {each.participant for each in shown if each.participant in people}
    compared = frozenset(who for who in fitted if contest.level_of(who) != "no_rank")
    return _Target(name.removesuffix(f" {_QUANTILE}"), name, tasks, by, shown, compared)


def _table(projections: Projections, target: _Target, by: str, baseline: str | None) -> list[list[str]]:
    """Return the header and the rows of a file, by model and value of the task id."""
    cells: dict[tuple[str, str], list[_Scored]] = {}
    for row in target.rows:
        cells.setdefault((target.value(row.question, by), row.participant), []).append(row)
    coverages = _coverages(projections, target, by)
    probabilities = sorted({probability for _, _, probability in coverages})
    relative = RELATIVE if baseline in {row.participant for row in target.rows} else ()
    skills = {metric: _skills(target, by, metric, baseline) for metric in relative}
    metrics: list[str] = []
    for metric in METRICS:
        metrics += [f"{metric}{_SKILL}"] * (metric in relative) + [metric]
    metrics += [f"interval_coverage_{format_fixed(100 * each, POINTS)}" for each in probabilities]
    lines = []
    for (value, who), scored_rows in cells.items():
        line = [who, *([value] if by else [])]
        for metric in METRICS:
            line += [_number(skills[metric].get((value, who)))] if metric in relative else []
            line.append(_number(_mean([row.numbers[metric] for row in scored_rows])))
        lines.append(
            [*line, *(_number(coverages.get((value, who, each))) for each in probabilities), str(len(scored_rows))]
        )
    return [[_MODEL, *([by] if by else []), *metrics, "n"], *sorted(lines)]


def _mean(numbers: Sequence[int | None]) -> int | None:
    """Return the mean of numbers, None if one is missing."""
    whole = [number for number in numbers if number is not None]
    return round_to_points(Fraction(sum(whole), POINTS * len(whole))) if len(whole) == len(numbers) else None


def _number(points: int | None) -> str:
    return MISSING if points is None else format_fixed(points, POINTS)


def _skills(target: _Target, by: str, metric: str, baseline: str | None) -> dict[tuple[str, str], int | None]:
    """Return relative skills, divided by that of the baseline, by value of the task id and participant."""
    groups: dict[str, list[_Scored]] = {}
    for row in target.rows:
        if row.numbers[metric] is not None:
            groups.setdefault(target.value(row.question, by), []).append(row)
    ratios = {}
    for value, scored_rows in groups.items():
        people, questions = (
            sorted({row.participant for row in scored_rows}),
            sorted({row.question for row in scored_rows}),
        )
        if baseline not in people:
            continue
        who, which = ({name: code for code, name in enumerate(names)} for names in (people, questions))
        cells = Cells(
            int64_array([who[row.participant] for row in scored_rows]),
            int64_array([which[row.question] for row in scored_rows]),
            [row.numbers[metric] or 0 for row in scored_rows],
            np.ones(len(scored_rows), np.int64),
        )
        skills = relative_skills(cells, {who[name] for name in people if name in target.fitted})
        for skill in skills:
            ratios[value, people[skill.participant]] = scaled(skill, skills[who[baseline]])
    return ratios


def _coverages(projections: Projections, target: _Target, by: str) -> dict[tuple[str, str, int], int]:
    """Return how often intervals hold the answer, by value of the task id, participant and probability, 1e-9."""

    def values(question: QuestionOpened) -> list[str]:
        name = question.question
        return [target.value(name, by)] if name in target.tasks else []

    facts = projections.facts
    parts = dict(narrowed(facts, target.contest, values))
    table = Projections(replace(facts, contests=parts), projections.chunk).table("interval_coverage")
    columns = [plain_values(values) for values in (table.ids("contest"), table.ids("participant"))]
    numbers = [plain_values(table.numbers(column)) for column in ("probability", "coverage")]
    return {(value, who, each): share for value, who, each, share in zip(*columns, *numbers, strict=True)}
