"""Score tables, files, data frames or rows as dicts, in one step: recognise, record by a map, and replay."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.input_locations import InputLocation, ReadCommand
from forecast_ledger.ledger.storing import writer
from forecast_ledger.replay.mapping.csv_mapping import map_records, parse_map
from forecast_ledger.replay.mapping.row_blocks import commands_once
from forecast_ledger.replay.reading.replay import Replay, replay
from forecast_ledger.replay.scoring.options import KINDS, MEANINGS, WIDES, Options
from forecast_ledger.replay.scoring.plan import Plan, Step, plan
from forecast_ledger.replay.scoring.tables import Table, read_table, table_of
from forecast_ledger.replay.writing.append import OnProgress, OnRefusal, append_batches, tally
from forecast_ledger.replay.writing.provisional_stores import open_overlay
from forecast_ledger.replay.writing.store import Ledger, prizes_from_log

_LOG_OF_ITS_OWN = (
    "keep it in a log of its own; a table that changes is followed by a map with `source` (the guide to CSV files, 4)"
)


def check_fits(location: str, plan: Plan) -> None:
    """Refuse tables that a log cannot take, because it has rows of another table or of another copy of this one.

    Nothing is recorded. location: a log that may not exist yet. Refuses with the code of the first command that the log
    has with other content (command_id_reused), or of the contest that cannot be opened; and as `open_overlay` raises.
    """

    def refuse(row_location: InputLocation, refused: Refused) -> None:
        if refused.code == "command_id_reused" or row_location.command == "open_contest":
            where = ", ".join(filter(None, (row_location.where(), row_location.command)))
            detail = f"it has rows of another table, or of another copy of this one: {where}: {refused.meaning}"
            raise Refused(refused.code, "log", None, f"{detail}; nothing is recorded", remedy=_LOG_OF_ITS_OWN)

    with open_overlay(location, "main", prizes_from_log) as (branch, head):
        if head.position:
            record(branch, plan, refuse)


def record(
    ledger: writer.Ledger, plan: Plan, on_refusal: OnRefusal, on_progress: OnProgress = lambda _: None
) -> dict[str, int]:
    """Append what the tables of a plan have, by its maps; return the numbers of outcomes.

    A question is opened by the first of its rows. on_refusal: called for each refusal. on_progress: called with the
    number of the last line that is done.
    """
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    for step in plan.steps:
        for _ in tally(append_batches(ledger, _commands(step), on_progress), on_refusal, counts):
            pass
    return counts


def _commands(step: Step) -> Iterator[ReadCommand]:
    several = step.part != ""
    for location, command in commands_once(parse_map(step.text.encode()), step.table.records()):
        yield location._replace(unit=step.table.unit, file=step.table.name if several else ""), command


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


@checked()
def score(  # noqa: PLR0913 - two tables, and what settles their readings, by name
    forecasts: Any,
    answers: Any = None,
    rules: str = "",
    *,
    contest: str = "",
    columns: Mapping[str, Any] | None = None,
    columns_are: str = "",
    meanings: Mapping[str, str] | None = None,
    forecaster: str = "",
    percent: bool = False,
    number: str = "",
    normalize: str | float | Decimal = "",
    independent: bool = False,
    kinds: Sequence[str] = (),
    day_first: bool | None = None,
    instant: str = "",
    zone: str = "",
    opens: str = "",
    closes: str = "",
    made_at: str = "",
    location: str | PathLike[str] = ":memory:",
    on_message: Callable[[str], object] = lambda _: None,
    on_refusal: OnRefusal | None = None,
) -> Replay:
    """Score forecasts in one step, as `forecast-ledger score` does, and return the replay of their log.

    forecasts, answers: each a data frame of pandas, Polars or PyArrow, a list of dicts, or the path of a file; answers
    may be a column of the forecasts. rules: brier, log, pinball, peer or a preset; "" for brier, of quantiles pinball.
    columns: role -> the name of its column, or several; meanings: text of an answer -> yes, no, none or void; kinds:
    binary, multiple_choice or numeric, none for all. The other arguments are the options of that command. location:
    where the log is kept, if it is. on_message: called with each line that says how the tables were read. on_refusal:
    called for each row that is refused, so that the others count; without it, the first is raised. Frames need pyarrow,
    lists do not.
    Raises, first that applies: TypeError (no table), Unavailable, Refused, and what `Ledger.open` raises.

    >>> from forecast_ledger import score
    >>> season = score([{"question": "rain", "user": "ada", "probability": 0.8, "outcome": True}])
    >>> [(row["participant"], row["score"]) for row in season.table("leaderboard").rows()]
    [('ada', '0.040000000')]
    """
    _check_choice("columns_are", columns_are, ("", *WIDES))
    for meaning in (meanings or {}).values():
        _check_choice("meanings", meaning, MEANINGS)
    for kind in kinds:
        _check_choice("kinds", kind, KINDS)
    named = {role: _names(role, names) for role, names in (columns or {}).items()}
    settled = (percent, number, day_first, instant, zone, columns_are, forecaster, opens, closes, made_at)
    options = Options(rules, contest, named, *settled, meanings or {}, str(normalize), independent, tuple(kinds))
    table = _table(forecasts, "forecasts", options)
    made = plan(table, None if answers is None else _table(answers, "answers", options), options)
    for line in made.words:
        on_message(line)
    return _recorded(made, location, on_refusal)


def _recorded(made: Plan, location: str | PathLike[str], on_refusal: OnRefusal | None) -> Replay:
    """Record what tables have, and replay it. Raises the first refusal, if nobody is told of refusals."""
    first = list[Refused]()

    def keep(row_location: InputLocation, refused: Refused) -> None:
        first.append(refused.about(", ".join(filter(None, (row_location.where(), row_location.command)))))

    check_fits(fspath(location), made)
    with Ledger.open(location) as ledger:
        record(ledger, made, on_refusal or keep)
        if first:
            raise first[0]
        return replay(ledger)


@checked()
def append_frame(  # noqa: PLR0913 - a ledger, a table, how it is read, and two reports that have defaults
    ledger: Ledger,
    frame: Any,
    map: str | PathLike[str],  # noqa: A002 - as the option is called
    on_refusal: OnRefusal = lambda *_: None,
    on_progress: OnProgress = lambda _: None,
    *,
    atomic: bool = False,
) -> dict[str, int]:
    """Append the rows of a data frame, or a list of dicts, by the map in a TOML file, as `append --map` does a CSV's.

    on_refusal, on_progress, atomic, and what it returns: as of `append`. A row has its number from 1 as its location.
    Raises, first that applies: TypeError (no table), OSError (no such map), Unavailable (no pyarrow), Refused (bad_map,
    bad_csv, out_of_order), and what `Ledger.handle_many` raises.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import append_frame, open_ledger
    >>> written = '''
    ... [[command]]
    ... type = "withdraw_forecast"
    ... id = "{who}"
    ... fields = { at = "2026-03-01T00:00:00Z", question = "rain", participant = "{who}" }
    ... '''
    >>> with TemporaryDirectory() as folder, open_ledger(":memory:") as ledger:
    ...     path = Path(folder, "own.toml")
    ...     _ = path.write_text(written)
    ...     append_frame(ledger, [{"who": "ada"}], path, lambda at, refused: print(at.where(), refused.code))
    row 1 unknown_question
    {'accepted': 0, 'duplicate': 0, 'refused': 1}
    """
    table, path = table_of(frame, "append_frame", "frame"), Path(map)
    rows = map_records(parse_map(path.read_bytes(), path.parent), table.records())
    commands = ((location._replace(unit=table.unit), command) for location, command in rows.commands)
    counts = {"accepted": 0, "duplicate": 0, "refused": 0}
    for _ in tally(append_batches(ledger, commands, on_progress, atomic=atomic), on_refusal, counts):
        pass
    return counts


def _table(given: Any, name: str, options: Options) -> Table:
    return (
        read_table(Path(fspath(given)), options)
        if isinstance(given, str | PathLike)
        else table_of(given, "score", name)
    )


def _names(role: str, names: Any) -> tuple[str, ...]:
    """Return the names of the columns of a role. Raises TypeError."""
    several = (names,) if isinstance(names, str) else names
    if not isinstance(several, Sequence) or not all(isinstance(name, str) for name in several):
        raise TypeError(f"score: columns takes names of columns for {role}, not {type(names).__name__}")
    return tuple(several)


def _check_choice(argument: str, given: str, allowed: Sequence[str]) -> None:
    """Refuse (ambiguous) a text that is none of these."""
    if given not in allowed:
        detail = f"it is one of {', '.join(filter(None, allowed))}"
        raise Refused("ambiguous", argument, given, detail, remedy="give one of these")
