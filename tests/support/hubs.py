"""Hubs as files: the FluSight season written as its hub has it, one question for each week, place and horizon."""

import json
from collections.abc import Iterable
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from typing import Any

from msgspec import structs

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.task_ids import task_text
from tests.support.flusight import Row
from tests.support.given import contest, day, entry, forecast, quartiles, resolution

PLACES = {"California": "06", "Florida": "12", "New York": "36", "Texas": "48", "US": "US"}
TREND, ADMISSIONS = "wk flu hosp rate change", "wk inc flu hosp"
OPTIONS = ["large_decrease", "decrease", "stable", "increase", "large_increase"]
COLUMNS = "reference_date,target,horizon,location,target_end_date,output_type,output_type_id,value"


def write_flusight(source: list[Row], folder: Path, families: tuple[str, ...] = ("hosp", "trend")) -> None:
    """Write the configuration, the last version of each file of model output, and the published values."""
    questions = {row["qid"]: row for row in source if row["kind"] == "question"}
    last: dict[tuple[str, str], dict[str, Row]] = {}  # team and round -> question -> forecast
    version: dict[tuple[str, str], int] = {}
    for row in source:
        if row["kind"] != "forecast" or row["qid"].partition("-")[0] not in families:
            continue
        file = row["forecaster"], row["round"]
        if row["file_version"] > version.get(file, 0):
            version[file], last[file] = row["file_version"], {}
        last[file][_key(row)] = row
    rounds = sorted(row["round"] for row in source if row["kind"] == "round")
    _write_json(folder / "hub-config" / "tasks.json", tasks(rounds, next(iter(questions.values()))["levels"]))
    for (team, round_id), forecasts in last.items():
        lines = [line for forecast in forecasts.values() for line in _lines(forecast, questions[forecast["qid"]])]
        _write_lines(folder / "model-output" / team / f"{round_id}-{team}.csv", [COLUMNS, *lines])
    _write_truth(source, questions, folder / "target-data")


def tasks(rounds: list[str], levels: list[str]) -> dict[str, Any]:
    """The configuration of the two targets, as the hub's own has it."""
    ends = sorted({_after(each, weeks) for each in rounds for weeks in range(4)})
    shared: dict[str, list[Any]] = {
        "reference_date": rounds,
        "horizon": [0, 1, 2, 3],
        "location": _places(),
        "target_end_date": ends,
    }
    return {
        "rounds": [
            {
                "round_id_from_variable": True,
                "round_id": "reference_date",
                "model_tasks": [
                    _task({**shared, "target": [TREND]}, "pmf", OPTIONS, "ordinal"),
                    _task(
                        {**shared, "target": [ADMISSIONS]}, "quantile", [float(each) for each in levels], "continuous"
                    ),
                ],
                "submissions_due": {"relative_to": "reference_date", "start": -6, "end": -3},
            }
        ]
    }


def _task(task_ids: dict[str, list[Any]], output_type: str, ids: list[Any], target_type: str) -> dict[str, Any]:
    [target] = task_ids["target"]
    return {
        "task_ids": {name: {"required": None, "optional": values} for name, values in task_ids.items()},
        "output_type": {
            output_type: {
                "output_type_id": {"required": ids, "optional": None},
                "value": {"type": "double", "minimum": 0} | ({"maximum": 1} if output_type == "pmf" else {}),
            }
        },
        "target_metadata": [
            {
                "target_id": target,
                "target_name": target,
                "target_keys": {"target": [target]},
                "target_type": target_type,
            }
        ],
    }


def _places() -> list[str]:
    return ["US", *(f"{number:02}" for number in range(1, 73))]


def _after(day: str, weeks: int) -> str:
    return (date.fromisoformat(day) + timedelta(weeks=weeks)).isoformat()


def _key(row: Row) -> str:
    return f"{row['qid']} {row.get('horizon_weeks', '')}"


def _lines(forecast: Row, question: Row) -> Iterable[str]:
    """The rows of a forecast."""
    place, round_id = forecast["qid"].split("-")[1], forecast["round"]
    if "probs" in forecast:
        weeks = question["horizon_weeks"]
        start = f"{round_id},{TREND},{weeks},{place},{_after(round_id, weeks)},pmf"
        return (f"{start},{option},{chance}" for option, chance in forecast["probs"].items())
    weeks = forecast["horizon_weeks"]
    start = f"{round_id},{ADMISSIONS},{weeks},{place},{_after(round_id, weeks)},quantile"
    return (f"{start},{level},{value}" for level, value in zip(question["levels"], forecast["values"], strict=True))


def _write_truth(source: list[Row], questions: dict[str, Row], folder: Path) -> None:
    """The admissions as of each publication, and the category of each trend."""
    series, oracle = [], []
    for row in source:
        if row["kind"] != "resolution" or row.get("void"):
            continue
        question = questions[row["qid"]]
        place = row["qid"].split("-")[1]
        if row["qid"].startswith("hosp-"):
            series.append(f"{row['at']},{question['period_end']},{ADMISSIONS},{place},{row['value']}")
        elif row["qid"].startswith("trend-"):
            end = _after(question["round"], question["horizon_weeks"])
            start = f"{question['round']},{question['horizon_weeks']},{place},{end},{TREND},pmf"
            oracle += [f"{start},{option},{int(option == row['outcome'])}" for option in OPTIONS]
    _write_lines(folder / "time-series.csv", ["as_of,target_end_date,target,location,observation", *series])
    columns = "reference_date,horizon,location,target_end_date,target,output_type,output_type_id,oracle_value"
    _write_lines(folder / "oracle-output.csv", [columns, *oracle])


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _write_json(path: Path, content: Any) -> None:
    _write_lines(path, [json.dumps(content, indent=1)])


_RULES = RuleSet(
    name="hub", kernel="brier", cdf_kernel="crps", quantile_kernel="pinball", total="mean", period="covered"
)
_SAID = {"0": {"ada": "1.5", "bo": "1"}, "2": {"ada": "4", "bo": "1"}, "10": {"ada": "1.8", "bo": "1", "cy": "2.5"}}


def by_task(*places: str) -> list[AnyCommand]:
    """A question for each horizon and place, of which the answer is 2; "" is no place.

    A forecast of three equal quantiles scores its distance from the answer.
    """
    story: list[AnyCommand] = [contest(rules=_RULES)]
    for (horizon, given), place in product(_SAID.items(), places):
        name = task_text({"horizon": horizon} | ({"location": place} if place else {}) | {"output_type": "quantile"})
        story += [structs.replace(quartiles(name), title=f"flow: horizon {horizon}"), entry(question=name)]
        story += [forecast(name, who, quantiles=(value,) * 3) for who, value in given.items()]
        story.append(resolution(name, value="2", at=day(27)))
    return story
