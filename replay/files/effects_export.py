"""Write the effects of questions as ForecastBench publishes those of its leaderboards: a JSON file of objects.

Source: ForecastBench, leaderboards, `write_question_fixed_effects`: the folder, the name, the keys and their order.
"""

import os
import re
from collections.abc import Iterator
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from forecast_ledger.ledger.core.values import format_instant
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.files.hub_export import HubExport, check_free, write_texts
from forecast_ledger.replay.files.manifest import clear_leftovers, move_into_place, scratch_folder
from forecast_ledger.replay.reading.replay import Replay

TABLES = ("difficulty",)
FOLDER = "question-fixed-effects"
LEADERBOARD = "tournament"  # ForecastBench's word for a board of all forecast sets
_FILE = re.compile(r"question_fixed_effects\.\d{4}-\d{2}-\d{2}\.tournament_leaderboard\.json")
_SOURCE, _SORTS = "ForecastBench", {"dataset", "market"}
_DATE = len("2026-03-01")
_OTHER = "a question that is none of ForecastBench's data sets or markets"
_APART = "a question that no forecaster joins to most others, so that its effect cannot be compared with theirs"


class _SetQuestion(NamedTuple):
    """A question of ForecastBench. horizon: days from the due date to the resolution; None for a market."""

    due: str
    source: str
    id: str
    horizon: int | None


def export_effects(season: Replay, out: str | PathLike[str], *, force: bool = False) -> HubExport:
    """Export the effects of ForecastBench's questions to a folder; the same log gives the same bytes.

    force: replace a folder that was exported before. Raises, first that applies: FileExistsError (the path exists and
    may not be replaced), ValueError (no question has an effect), Refused (out_of_range: a fit would take too long),
    OSError.
    """
    out = Path(os.path.abspath(out))  # noqa: PTH100 - links are not followed: a link at OUT is replaced itself
    clear_leftovers(out)
    check_free(out, "an export of effects", [FOLDER], _is_ours, force=force)
    left_out: dict[str, int] = {}
    rows = sorted(_rows(season.projections, left_out), key=lambda row: [str(value) for value in row.values()])
    if not rows:
        raise ValueError("no question of ForecastBench's data sets or markets has an effect: import its sets first")
    day = format_instant(season.projections.facts.books.clock)[:_DATE]
    text = "[" + ",\n".join(msgspec.json.encode(row).decode() for row in rows) + "]\n"
    name = f"{FOLDER}/question_fixed_effects.{day}.{LEADERBOARD}_leaderboard.json"
    with scratch_folder(out) as part:
        written = write_texts(part / out.name, {name: text})._replace(rows=len(rows))
        check_free(out, "an export of effects", [FOLDER], _is_ours, force=force)
        move_into_place(part / out.name, out)
    return HubExport(season.checkpoint, {"effects": written}, left_out)


def _is_ours(out: Path) -> bool:
    return (out / FOLDER).is_dir() and all(_FILE.fullmatch(path.name) for path in (out / FOLDER).iterdir())


def _rows(projections: Projections, left_out: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Yield an object for each question: from the fit of its category if there is one, as else from its contest's."""
    questions = {question.question: question for question in projections.facts.questions}
    table = [*projections.table("difficulty").rows()]
    pooled = {row["name"] for row in table if row["by"] == "category"}
    for row in table:
        question = questions[row["question"]]
        if row["by"] == "contest" and question.category in pooled:
            continue
        set_question = _set_question(question)
        if set_question is None or row["part"] != 1:
            reason = _OTHER if set_question is None else _APART
            left_out[reason] = left_out.get(reason, 0) + 1
            continue
        yield {
            "forecast_due_date": set_question.due,
            "source": set_question.source,
            "id": set_question.id,
            "horizon": set_question.horizon,
            "leaderboard_type": LEADERBOARD,
            "question_fixed_effect": msgspec.Raw(row["effect"].encode()),
        }


def _set_question(question: QuestionOpened) -> _SetQuestion | None:
    """Return what an imported question is in ForecastBench's sets; None if it is none of a data set or a market."""
    due, remainder = question.question[:_DATE], question.question[_DATE + 1 :]
    if (question.source, question.category in _SORTS) != (_SOURCE, True) or not remainder.startswith(
        f"{question.group} "
    ):
        return None
    remainder = remainder.removeprefix(f"{question.group} ")
    if question.category == "market":
        return _SetQuestion(due, question.group, remainder, None)
    key, _, resolved = remainder.rpartition(" ")
    return _SetQuestion(due, question.group, key, (date.fromisoformat(resolved) - date.fromisoformat(due)).days)
