"""The commands that explain numbers: explain, diff, blame."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from forecast_ledger.replay.console import completion
from forecast_ledger.replay.console.shell import (
    REMEDY,
    USAGE,
    as_of_option,
    checked,
    cut,
    emit,
    fail,
    kept,
    known,
    log_argument,
    name_option,
    print_pairs,
    print_table,
    progress,
    reported,
    say,
    say_as_of,
)
from forecast_ledger.replay.console.view import Look, Selected, View, table_options
from forecast_ledger.replay.explain.numbers import NUMBERS
from forecast_ledger.replay.explain.numbers import explain as explained

if TYPE_CHECKING:
    from forecast_ledger.replay.explain.diff import Diff
    from forecast_ledger.replay.explain.explain_scores import Explanation

_LEAST_TOLD = (
    "recorded_at",
    "made_at",
    "parts",
    "weight",
    "ended",
    "to_at",
    "from_at",
    "of_coverage",
)  # what a part can lack
_PARTS = Look(keep=("contribution", "points"), spare=_LEAST_TOLD)
_COMPARED = {
    "none": "nothing",
    "uniform": "the uniform distribution",
    "peers": "the peers",
    "consensus": "the consensus",
}


@click.command(epilog="Example: forecast-ledger explain season.db score plain olympics-2021 A")
@log_argument
@click.argument("number", type=click.Choice(list(NUMBERS)))
@click.argument("key", nargs=-1, metavar="CONTEST [QUESTION] PARTICIPANT", shell_complete=completion.explained)
@click.option("--parts", "every_part", is_flag=True, help="Print every part of a score, not one row per forecast.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--model",
    metavar="READMODEL",
    callback=kept,
    help="Find the rows of a score in this read model, instead of reading the whole log; see `follow`.",
)
@as_of_option
@name_option
@table_options
@reported
def explain(
    log: str,
    number: str,
    key: tuple[str, ...],
    every_part: bool,
    view: View,
    as_json: bool,
    model: str | None,
    as_of: str | None,
    name: str,
) -> None:
    """Explain a number: its parts, its rule, its events.

    \b
    explain LOG score CONTEST QUESTION PARTICIPANT
    explain LOG take|prize|rank|balance CONTEST PARTICIPANT

    The parts add up to the number exactly: `contribution` to the numerator, `points` to the published decimals;
    numerator / denominator is the score before it is rounded. A #number is a log position. Outcomes are numbered from
    0; if the text of an event ends in "…", `show` prints all of it. A balance is the cash of a participant who trades.
    --columns, --where and --limit choose among the parts. --format json prints one object, --format csv the parts.
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    if len(key) != len(NUMBERS[number]):
        fail(f"explain LOG {number} takes {' '.join(NUMBERS[number]).upper()}", USAGE)
    if model is not None and number != "score":
        fail("--model can only be used with a score; for other numbers the whole log is read: leave it out", USAGE)
    with progress("read") as watch:
        at = cut(as_of)
        found = explained(log, number, *key, name=name, as_of=at, watch=watch, model=model, every_part=every_part)
    _emit(found, view._replace(form="json") if as_json else view)
    say_as_of(found.checkpoint)


@click.command(epilog="Example: forecast-ledger diff season.db @31 @34 --table leaderboard")
@log_argument
@click.argument("old", metavar="@FROM")
@click.argument("new", metavar="@TO")
@click.option(
    "--table",
    "projection",
    default="leaderboard",
    show_default=True,
    metavar="TABLE",
    shell_complete=completion.tables,
    help="Compare this table.",
)
@name_option
@table_options
@reported
def diff(log: str, old: str, new: str, projection: str, name: str, view: View) -> None:
    """Compare a table as of two log positions or instants.

    The earlier one comes first. Prints one line per value that differs, in rows that were added, removed or changed,
    with the events in between that can have caused the change: first those that settled a question, then those of the
    contest, then forecasts and movements of cash. At most five events are named per row; `events` counts all of them.
    JSON has one object per row.
    """
    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
    from forecast_ledger.replay.explain.diff import diff as compared
    from forecast_ledger.replay.explain.explain_scores import LogSource

    known(projection)
    with progress("read") as watch:
        found = compared(LogSource(log, name, _at(old), watch), _at(new), projection)
    in_json = view.form == "json"
    rows = _changes(found) if in_json else _changed_values(found, every=view.form == "csv" or bool(view.where))
    names = ["columns", "because", "events"] if in_json else ["column", "old", "new", "events", "because"]
    emit(
        [*CATALOGUE[projection].key, "change", *names],
        rows,
        view,
        Look(keep=("column", "old", "new"), spare=("events",)),
    )
    count = len(found.changes)
    say(f"{count:,} {'row differs' if count == 1 else 'rows differ'}, {found.equal:,} equal")
    say_as_of(found.old)
    say_as_of(found.new)


@click.command(epilog="Example: forecast-ledger blame season.db leaderboard plain A")
@log_argument
@click.argument("projection", metavar="TABLE", shell_complete=completion.tables)
@click.argument("key", nargs=-1, required=True, metavar="KEY...", shell_complete=completion.keys)
@click.option(
    "--column", "columns", multiple=True, metavar="COLUMN", help="Look only for what changed this column; repeatable."
)
@as_of_option
@name_option
@table_options
@reported
def blame(
    log: str, projection: str, key: tuple[str, ...], columns: tuple[str, ...], as_of: str | None, name: str, view: View
) -> None:
    """Find the event that last changed each column of a row.

    KEY is the key of the row, one value per key column in the table's order, as `table` prints it. The row is
    calculated before and after each event that can have changed it, the newest event first, so recent changes are found
    soonest. An event that adds the row counts as a change of every column, including those left empty.
    """
    from forecast_ledger.replay.explain.blame import LastChange
    from forecast_ledger.replay.explain.blame import blame as blamed
    from forecast_ledger.replay.explain.explain_scores import LogSource

    known(projection)
    checked(view, LastChange._fields)
    with progress("events") as watch:
        found = blamed(LogSource(log, name, cut(as_of), watch), projection, key, columns)
    look = Look(keep=("column", "log_position", "old", "new"), spare=("recorded_at",))
    emit(list(LastChange._fields), (each._asdict() for each in found.columns), view, look)
    say(f"looked at {found.looked_at:,} of the {found.candidates:,} events that can have changed the row")
    say_as_of(found.checkpoint)


COMMANDS = (explain, diff, blame)


def _at(text: str) -> int | str | None:
    """A cut as it is written: @31, 31 or an instant."""
    return cut(text.removeprefix("@"))


def _changes(found: "Diff") -> Iterator[dict[str, Any]]:
    """An object a row."""
    for change in found.changes:
        of = change.difference
        columns = {column: {"old": old, "new": new} for column, (old, new) in of.columns.items()}
        because = [cause._asdict() for cause in change.causes]
        yield {**of.key, "change": of.row, "columns": columns, "because": because, "events": change.events}


def _changed_values(found: "Diff", *, every: bool) -> Iterator[dict[str, Any]]:
    """A line a value, those left out that are empty before and after; every: whether the events are on each line."""
    for change in found.changes:
        of = change.difference
        because = ", ".join(f"#{cause.log_position} {cause.type}" for cause in change.causes)
        more = {"events": change.events, "because": because}
        pairs = {column: pair for column, pair in of.columns.items() if any(each not in {None, ""} for each in pair)}
        for column, (old, new) in (pairs or {"": (None, None)}).items():
            yield {**of.key, "change": of.row, "column": column, "old": old, "new": new, **more}
            more = more if every else dict.fromkeys(more)


def _emit(found: "Explanation", view: View) -> None:
    """Print what explains a number: in words, as one JSON object, or its parts as CSV."""
    names = list(found.parts[0]) if found.parts else []
    if view.form == "csv":
        emit(names, found.parts, view)
        return
    parts = Selected(checked(view, names), found.parts)
    chosen = found._replace(parts=list(parts))
    if view.form == "json":
        for line in _as_json(chosen):
            print(line)
    else:
        _print(chosen, view)
    if parts.read and (note := parts.note()):
        say(note)


def _as_json(found: "Explanation") -> Iterable[str]:
    from msgspec import json

    from forecast_ledger.replay.reading.text_tables import escape_json

    plain = {
        **found.number,
        "rule": found.rule,
        "parts": found.parts,
        "others": found.others,
        "events": found.events,
        "as_of": found.checkpoint._asdict(),
    }
    yield json.format(escape_json(json.encode(plain).decode()), indent=2)


def _print(found: "Explanation", view: View) -> None:
    """Print the number, its parts, its rule, whom else it depends on, and the events."""
    print_pairs({name: _numbered(name, value) for name, value in found.number.items()}, view)
    print()
    parts = [{name: _numbered(name, value) for name, value in part.items()} for part in found.parts]
    note = print_table(list(parts[0]), parts, view, _PARTS) if parts else print("no parts")
    print()
    rule = found.rule
    fields = " ".join(f"{name}={value}" for name, value in rule["fields"].items())
    print_pairs({"rule": f"{rule['name']}, #{rule['log_position']}: {rule['words']}"}, view)
    print_pairs({"fields": fields, "source": rule["source"]}, view)
    print_pairs({"depends on": _dependence(found.others)}, view)
    print()
    look = Look(keep=("log_position", "type"), spare=("recorded_at",))
    events = print_table(
        ["log_position", "recorded_at", "at", "type", "said"], found.events, View(wide=view.wide), look
    )
    sys.stdout.flush()
    if note:
        say(f"parts: {note}{REMEDY}")
    if events:
        say(f"events: {events}; --wide shows everything")


def _numbered(name: str, value: Any) -> Any:
    """The value; where that is a log position, with its sign before it."""
    return f"#{value}" if name in {"resolved", "forecast", "because"} and isinstance(value, int) else value


def _dependence(others: dict[str, Any]) -> str:
    """Whom else a number depends on, in words."""
    said = f"compared with {_COMPARED[others['compared_with']]}"
    if "count" not in others:
        return f"{said}, " + ", ".join(f"{others[name]} {name}" for name in ("questions", "enrolled", "excluded"))
    if not others["count"]:
        return f"{said}, nobody else"
    count, forecasts = _counted(others["count"], "other"), _counted(others["forecasts"], "forecast")
    named = ", ".join(others["named"]) + ", …" * (others["count"] > len(others["named"]))
    return f"{said}: {count} ({named}), {forecasts} from #{others['first']} to #{others['last']}"


def _counted(count: int, of: str) -> str:
    return f"{count:,} {of}{'s' * (count != 1)}"
