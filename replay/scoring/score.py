"""Score tables of forecasts and answers in one step: recognise them, record them by their maps, and replay."""

from collections.abc import Iterator
from pathlib import Path

from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.mapping.csv_mapping import parse_map
from forecast_ledger.replay.mapping.known_rows import commands_once
from forecast_ledger.replay.scoring.plan import Plan, Step
from forecast_ledger.replay.writing.append import OnProgress, OnRefusal, append_batches, tally
from forecast_ledger.replay.writing.command_lines import ReadCommand


def record(ledger: Ledger, plan: Plan, tell: OnRefusal, on_progress: OnProgress = lambda _: None) -> dict[str, int]:
    """Append what the tables of a plan have, by its maps; return the numbers of outcomes.

    A question is opened by the first of its rows. tell: called for each refusal. on_progress: called with the number of
    the last line that is done.
    """
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    for step in plan.steps:
        for _ in tally(append_batches(ledger, _commands(step), on_progress), tell, counts):
            pass
    return counts


def _commands(step: Step) -> Iterator[ReadCommand]:
    several = step.part != ""
    for place, command in commands_once(parse_map(step.text.encode()), step.table.records()):
        yield place._replace(unit=step.table.unit, file=step.table.name if several else ""), command


def map_files(plan: Plan, path: Path | None) -> dict[Path, str]:
    """Return the files that have the maps of a plan; of several, the name says what each records.

    >>> from forecast_ledger.replay.scoring.tables import table_of_rows
    >>> steps = [Step(part, table_of_rows([{"q": 1}], "f"), "") for part in ("forecasts", "answers")]
    >>> [str(file) for file in map_files(Plan(steps, [], "c"), Path("maps/own.toml"))]
    ['maps/own-forecasts.toml', 'maps/own-answers.toml']
    """
    if path is None:
        return {}
    return {
        path.with_name(f"{path.stem}{f'-{step.part}' * bool(step.part)}{path.suffix}"): step.text for step in plan.steps
    }
