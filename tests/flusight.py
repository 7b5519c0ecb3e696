"""The 2025-26 FluSight season's trend questions as commands; the source's format is not the project's.

Every question is open from a week before its round's deadline until the season's truth was published, because
ensembles and retrospective models were handed in long after the deadline. `at` is the team's own clock for forecasts,
the hub's for the removal of a file. One distribution of the source misses one by 7.4e-5; it is divided by its sum.
"""

import gzip
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent.parent / "shared" / "data" / "flusight_2025_26.jsonl.gz"
CONTEST = "flusight-2025-26-trend"
CLOSES_AT = "2026-07-01T00:00:00Z"

Command = dict[str, Any]


def rows() -> list[dict[str, Any]]:
    """The lines of the source, decimals kept as text."""
    with gzip.open(SOURCE, "rt", encoding="utf-8") as file:
        return [json.loads(line, parse_float=str) for line in file]


def commands(source: list[dict[str, Any]]) -> Iterator[Command]:
    """Questions and contest, then what the teams did in the source's order, then the resolutions."""
    questions = {row["qid"]: row for row in source if row["kind"] == "question" and row["qid"].startswith("trend-")}
    deadlines = {row["round"]: row["deadline_at"] for row in source if row["kind"] == "round"}
    first = min(deadlines.values())
    yield _command("contest", "open_contest", first, contest=CONTEST, rules="relative-2022-04", pool=10_000)
    for qid, question in questions.items():
        yield from _opened(qid, question, deadlines[question["round"]])
    handed_in: dict[tuple[str, str], dict[str, None]] = {}
    for number, row in enumerate(source):
        if row["kind"] == "forecast" and row["qid"] in questions:
            handed_in.setdefault((row["forecaster"], row["round"]), {})[row["qid"]] = None
            yield _forecast(row)
        elif row["kind"] == "withdrawal":
            for qid in handed_in.get((row["forecaster"], row["round"]), {}):
                at, who = row["received_at"], row["forecaster"]
                yield _command(f"{number}/{qid}", "withdraw_forecast", at, question=qid, participant=who)
        elif row["kind"] == "resolution" and row["qid"] in questions:
            yield _command(f"{number}", "resolve_question", row["at"], question=row["qid"], outcome=row["outcome"])


def _opened(qid: str, question: dict[str, Any], deadline: str) -> Iterator[Command]:
    opens_at = (datetime.fromisoformat(deadline) - timedelta(days=7)).isoformat()
    fields = {"kind": "multiple_choice", "outcomes": question["options"], "opens_at": opens_at, "closes_at": CLOSES_AT}
    yield _command(f"{qid}/open", "open_question", opens_at, question=qid, **fields)
    yield _command(f"{qid}/add", "add_question", opens_at, contest=CONTEST, question=qid)


def _forecast(row: dict[str, Any]) -> Command:
    who, qid = row["forecaster"], row["qid"]
    chances = {outcome: Fraction(chance) for outcome, chance in row["probs"].items()}
    total = sum(chances.values(), Fraction(0))
    probabilities: dict[str, Any] = row["probs"]
    if abs(total - 1) > Fraction(1, 10**6):
        probabilities = {outcome: float(chance / total) for outcome, chance in chances.items()}
    identity = f"{who}/{qid}/{row['file_version']}"
    at = row["claimed_at"]
    return _command(
        identity, "submit_forecast", at, question=qid, participant=who, probabilities=probabilities
    )  # fmt: skip


def _command(identity: str, type_: str, at: str, **fields: Any) -> Command:
    return {"id": identity, "type": type_, "at": at, **fields}
