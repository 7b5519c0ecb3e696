"""The commands that explain numbers: explain, diff, blame."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click
from msgspec import json

from forecast_ledger.ledger.core.hints import in_list
from forecast_ledger.ledger.core.values import format_count
from forecast_ledger.replay.cli import completion
from forecast_ledger.replay.cli.shell import (
    REMEDY,
    Location,
    as_of_option,
    emit,
    fail,
    log_argument,
    name_option,
    parse_cut,
    print_pairs,
    print_table,
    progress,
    report_errors,
    require_columns,
    require_path,
    require_projection,
    say,
    say_as_of,
    segments_options,
)
from forecast_ledger.replay.cli.terminal import Look, Selected, View, table_options
from forecast_ledger.replay.explain.numbers import NUMBERS
from forecast_ledger.replay.explain.numbers import explain as explained
from forecast_ledger.replay.reading.blocks import escape_json
from forecast_ledger.replay.reference.exit_codes import USAGE

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from forecast_ledger.replay.explain.diff import Diff
    from forecast_ledger.replay.explain.explain_scores import Explanation

_SPARE = (
    "recorded_at",
    "made_at",
    "parts",
    "weight",
    "ended",
    "to_at",
    "from_at",
    "of_coverage",
)  # columns of parts that are left out first
_PARTS = Look(keep=("contribution", "points", "prize"), spare=_SPARE)
_COMPARED = {
    "none": "nothing",
    "uniform": "the uniform distribution",
    "peers": "the peers",
    "consensus": "the consensus",
    "median_score": "the median score",
    "mean_score": "the mean score",
}


def _next_id(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Suggest the next id of the key of a number."""
    key = NUMBERS.get(str(ctx.params.get("number")), ("contest", "participant"))
    return completion.next_id(ctx, ["participant" if field == "other" else field for field in key], incomplete)


@click.command(epilog="Example: forecast-ledger explain season.db score plain olympics-2021 A")
@log_argument
@click.argument("number", type=click.Choice(list(NUMBERS)))
@click.argument("key", nargs=-1, metavar="CONTEST [QUESTION] PARTICIPANT [OTHER]", shell_complete=_next_id)
@click.option("--parts", "every_part", is_flag=True, help="Print every part of a score, not one row per forecast.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--model",
    metavar="READMODEL",
    callback=require_path,
    help="Find the rows of a score by this read model instead of reading the whole log; see `follow`.",
)
@as_of_option
@segments_options(use_beside=True)
@name_option
@table_options
@report_errors
def explain(
    log: Location,
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
    explain LOG take|prize|rank|interval|adjusted|balance CONTEST PARTICIPANT
    explain LOG pair CONTEST PARTICIPANT OTHER

    The parts add up exactly: their `contribution` to the numerator, their `points` to the published score.
    numerator / denominator is the score before rounding. A #number is a log position. If the text of an event ends
    in "…", `show` prints all of it. A balance is the cash of a participant who trades. An interval names its seed,
    and the replicates that are its limits. An adjusted score shows the effects of its questions. --columns, --where
    and --limit choose among the parts. --format json prints one object, --format csv only the parts.
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    if len(key) != len(NUMBERS[number]):
        fail(f"`explain LOG {number}` needs {' '.join(NUMBERS[number]).upper()}", USAGE)
    if model is not None and number != "score":
        fail("--model can only be used with a score: leave it out; for other numbers the whole log is read", USAGE)
    with progress("read") as on_progress:
        at = parse_cut(as_of)
        answer = explained(
            log, number, *key, name=name, as_of=at, on_progress=on_progress, model=model, every_part=every_part
        )
    _emit(answer, view._replace(form="json") if as_json else view)
    say_as_of(answer.checkpoint)


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
@segments_options(use_beside=True)
@name_option
@table_options
@report_errors
def diff(log: Location, old: str, new: str, projection: str, name: str, view: View) -> None:
    """Compare a table as of two log positions or instants.

    @FROM is the earlier one. A date means the end of that day, UTC, by the ledger's own clock. Each value that differs
    is one line, with the events in between that can have caused the change: first those that settled a question, then
    those of the contest, then forecasts and movements of cash. At most five events per row are named; `events` counts
    all of them. JSON has one object per row.
    """
    from forecast_ledger.projections.tables.catalogue import CATALOGUE
    from forecast_ledger.replay.explain.diff import diff as compared
    from forecast_ledger.replay.reading.board_notes import unmoved_note
    from forecast_ledger.replay.reading.log import Log

    require_projection(projection)
    with progress("read") as on_progress:
        difference = compared(Log(log, name, _at(old), on_progress), _at(new), projection)
    in_json = view.form == "json"
    every = view.form == "csv" or bool(view.where)
    rows = _changed_rows(difference) if in_json else _changed_values(difference, every=every)
    names = ["columns", "because", "events"] if in_json else ["column", "old", "new", "events", "because"]
    emit(
        [*CATALOGUE[projection].key, "change", *names],
        rows,
        view,
        Look(keep=("column", "old", "new"), spare=("events",), key=CATALOGUE[projection].key),
    )
    count = len(difference.changes)
    say(f"{count:,} {'row differs' if count == 1 else 'rows differ'}, {difference.equal:,} equal")
    if difference.unmoved:
        say(unmoved_note(difference.unmoved, ""))
    say_as_of(difference.old)
    say_as_of(difference.new)


@click.command(epilog="Example: forecast-ledger blame season.db leaderboard plain A")
@log_argument
@click.argument("projection", metavar="TABLE", shell_complete=completion.tables)
@click.argument("key", nargs=-1, required=True, metavar="KEY...", shell_complete=completion.row_key)
@click.option("--column", "columns", multiple=True, metavar="COLUMN", help="Print only this column; repeatable.")
@as_of_option
@segments_options(use_beside=True)
@name_option
@table_options
@report_errors
def blame(
    log: Location,
    projection: str,
    key: tuple[str, ...],
    columns: tuple[str, ...],
    as_of: str | None,
    name: str,
    view: View,
) -> None:
    """Find the event that last changed each column of a row.

    KEY is the key of the row: one value for each key column, in the table's order, as `table` prints it. The row is
    calculated before and after each event that can have changed it, from the newest event back, so recent changes are
    found first. An event that adds the row counts as a change of every column, even of those that stay empty. `by` and
    `reason` are what the command of the event says.
    """
    from forecast_ledger.replay.explain.blame import LastChange
    from forecast_ledger.replay.explain.blame import blame as blamed
    from forecast_ledger.replay.reading.log import Log

    require_projection(projection)
    require_columns(view, LastChange._fields)
    with progress("events") as on_progress:
        answer = blamed(Log(log, name, parse_cut(as_of), on_progress), projection, key, columns)
    look = Look(keep=("column", "log_position", "old", "new"), spare=("recorded_at", "reason"))
    in_table = view.form == "table" and not view.columns
    unsaid = {name for name in _SAID if in_table and not any(getattr(change, name) for change in answer.columns)}
    names = [name for name in LastChange._fields if name not in unsaid]
    emit(names, (column._asdict() for column in answer.columns), view, look)
    say(f"looked at {answer.looked_at:,} of the {answer.candidates:,} events that can have changed the row")
    say_as_of(answer.checkpoint)


_SAID = ("by", "reason")  # columns that a printed table has only if a command said so


def _at(text: str) -> int | str | None:
    """Read a cut written as @31, 31, an instant or a date; for a date, say which instant it means."""
    from forecast_ledger.replay.reading.log import end_of_date

    cut = text.removeprefix("@")
    instant = end_of_date(cut)
    if instant != cut:
        say(f"{cut}: cut by the ledger's clock at {instant}")
    return parse_cut(instant)


def _changed_rows(diff: "Diff") -> Iterator[dict[str, Any]]:
    """Yield an object for each row that differs."""
    for change in diff.changes:
        row = change.difference
        columns = {column: {"old": old, "new": new} for column, (old, new) in row.columns.items()}
        because = [cause._asdict() for cause in change.causes]
        yield {**row.key, "change": row.row, "columns": columns, "because": because, "events": change.events}


def _changed_values(diff: "Diff", *, every: bool) -> Iterator[dict[str, Any]]:
    """Yield a line for each value that differs, unless it is empty before and after. every: repeat events on each."""
    for change in diff.changes:
        row = change.difference
        because = ", ".join(f"#{cause.log_position} {cause.type}" for cause in change.causes)
        because += f" and {change.events - len(change.causes):,} more" * (change.events > len(change.causes))
        more = {"events": change.events, "because": because}
        pairs = {column: pair for column, pair in row.columns.items() if any(value not in {None, ""} for value in pair)}
        for column, (old, new) in (pairs or {"": (None, None)}).items():
            yield {**row.key, "change": row.row, "column": column, "old": old, "new": new, **more}
            more = more if every else dict.fromkeys(more)


def _emit(answer: "Explanation", view: View) -> None:
    """Print an explanation: in words, as one JSON object, or its parts as CSV."""
    names = list(answer.parts[0]) if answer.parts else []
    if view.form == "csv":
        emit(names, answer.parts, view)
        return
    parts = Selected(require_columns(view, names), answer.parts)
    chosen = answer._replace(parts=list(parts))
    if view.form == "json":
        for line in _as_json(chosen):
            print(line)
    else:
        _print(chosen, view)
    if parts.read and (note := parts.note()):
        say(note)


def _as_json(answer: "Explanation") -> Iterable[str]:

    plain = {
        **answer.number,
        "rule": answer.rule,
        "parts": answer.parts,
        "others": answer.others,
        "events": answer.events,
        "since": [*answer.since],
        "subsequent": [*answer.subsequent],
        "as_of": answer.checkpoint._asdict(),
    }
    yield json.format(escape_json(json.encode(plain).decode()), indent=2)


def _print(answer: "Explanation", view: View) -> None:
    """Print the number, its parts, its rule, the participants it depends on, and the events."""
    print_pairs({name: _mark_position(name, value) for name, value in answer.number.items()}, view)
    print()
    for words in answer.since:
        print_pairs({"changed since": words}, view)
    if answer.since:
        print()
    parts = [{name: _mark_position(name, value) for name, value in part.items()} for part in answer.parts]
    note = print_table(list(parts[0]), parts, view, _PARTS) if parts else print("no parts")
    print()
    rule = answer.rule
    fields = " ".join(f"{name}={value}" for name, value in rule["fields"].items())
    print_pairs({"rule": f"{rule['name']}, #{rule['log_position']}: {rule['words']}"}, view)
    if rule["also"]:
        print_pairs({"also": "; ".join(rule["also"])}, view)
    print_pairs({"fields": fields, "source": rule["source"]}, view)
    print_pairs({"depends on": _dependence(answer.others)}, view)
    print()
    look = Look(keep=("log_position", "type"), spare=("recorded_at",))
    events = print_table(
        ["log_position", "recorded_at", "at", "type", "says"], answer.events, View(wide=view.wide), look
    )
    if answer.subsequent:
        print()
        later = (
            {"subsequent": row["log_position"], "after": row["after"], "says": row["says"]} for row in answer.subsequent
        )
        print_table(["subsequent", "after", "says"], [*later], View(wide=True), Look())
    sys.stdout.flush()
    if note:
        say(f"parts: {note}{REMEDY}")
    if events:
        say(f"events: {events}; --wide shows everything")


def _mark_position(name: str, value: Any) -> Any:
    """Put # before a log position; return any other value as it is."""
    return f"#{value}" if name in {"resolved", "forecast", "because"} and isinstance(value, int) else value


def _dependence(others: dict[str, Any]) -> str:
    """Say on whose forecasts a number depends."""
    comparison = f"compared with {_COMPARED[others['compared_with']]}"
    if "count" not in others:
        questions = format_count(others["questions"], "question")
        return f"{questions}, {others['enrolled']:,} enrolled, {others['excluded']:,} excluded; {comparison}"
    if not others["count"]:
        return f"no other participant; {comparison}"
    count, forecasts = format_count(others["count"], "other participant"), format_count(others["forecasts"], "forecast")
    names = in_list(others["named"]) + ", …" * (others["count"] > len(others["named"]))
    return f"{count} ({names}), {forecasts} from #{others['first']} to #{others['last']}; {comparison}"
