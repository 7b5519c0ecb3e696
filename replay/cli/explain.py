"""The command line's numbers taken apart: explain, diff, blame."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from forecast_ledger.replay.cli.shell import (
    USAGE,
    as_of_option,
    cut,
    emit,
    fail,
    format_option,
    kept,
    known,
    log_argument,
    name_option,
    progress,
    reported,
    say,
    say_as_of,
)
from forecast_ledger.replay.explain.numbers import NUMBERS
from forecast_ledger.replay.explain.numbers import explain as explained

if TYPE_CHECKING:
    from forecast_ledger.replay.explain.diff import Diff
    from forecast_ledger.replay.explain.explain_scores import Explained

_COMPARED = {
    "none": "nothing",
    "uniform": "the uniform distribution",
    "peers": "the peers",
    "consensus": "the consensus",
}


@click.command(epilog="Example: forecast-ledger explain season.db score plain olympics-2021 A")
@log_argument
@click.argument("number", type=click.Choice(list(NUMBERS)))
@click.argument("key", nargs=-1, metavar="CONTEST [QUESTION] PARTICIPANT")
@click.option("--parts", "every_part", is_flag=True, help="Every part of a score, not one row a forecast.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json: one JSON object.")
@click.option(
    "--model",
    metavar="READMODEL",
    callback=kept,
    help="Of a score: read only the rows that it stands on; see `follow`.",
)
@as_of_option
@name_option
@reported
def explain(
    log: str,
    number: str,
    key: tuple[str, ...],
    every_part: bool,
    form: str,
    as_json: bool,
    model: str | None,
    as_of: str | None,
    name: str,
) -> None:
    """Take a number apart, down to the events it stands on.

    \b
    explain LOG score CONTEST QUESTION PARTICIPANT
    explain LOG take|prize|rank|balance CONTEST PARTICIPANT

    The parts add up to the number exactly, and as printed: `contribution` to the numerator, `points` to the published
    decimals; numerator / denominator is the score before it is rounded. A #number is a log position; `show` prints all
    of what an event said, where … ends it here; its outcomes are numbered from 0. A balance is the cash of who trades.
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    if len(key) != len(NUMBERS[number]):
        fail(f"explain LOG {number} takes {' '.join(NUMBERS[number]).upper()}", USAGE)
    if model is not None and number != "score":
        fail("--model serves scores; of other numbers the whole log is read", USAGE)
    with progress("read") as watch:
        how = {"every_part": every_part, "model": model, "watch": watch}
        found = explained(log, number, *key, name=name, as_of=cut(as_of), **how)
    for line in _as_json(found) if as_json or form == "json" else _as_text(found):
        click.echo(line)
    say_as_of(found.checkpoint)


@click.command(epilog="Example: forecast-ledger diff season.db @31 @34 --table leaderboard")
@log_argument
@click.argument("old", metavar="@FROM")
@click.argument("new", metavar="@TO")
@click.option("--table", "projection", default="leaderboard", show_default=True, help="Which projection.")
@name_option
@format_option
@reported
def diff(log: str, old: str, new: str, projection: str, name: str, form: str) -> None:
    """Compare a table as of two log positions or instants, the earlier first.

    Prints a line for each value that is other, of rows that came, went or changed, and the events between that can have
    caused it, the foremost first: what settled a question, what was said of the contest, forecasts and movements. Five
    a row are named, all are counted. JSON has an object a row.
    """
    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
    from forecast_ledger.replay.explain.diff import diff as compared
    from forecast_ledger.replay.explain.explain_scores import Source

    known(projection)
    with progress("read") as watch:
        found = compared(Source(log, name, _at(old), watch), _at(new), projection)
    rows = _changes(found) if form == "json" else _changed_values(found, every=form == "csv")
    emit([*CATALOGUE[projection].key, "change", "column", "old", "new", "events", "because"], rows, form)
    count = len(found.changes)
    say(f"{count} {'row differs' if count == 1 else 'rows differ'}, {found.equal} equal")
    say_as_of(found.old)
    say_as_of(found.new)


@click.command(epilog="Example: forecast-ledger blame season.db leaderboard plain A")
@log_argument
@click.argument("projection", metavar="TABLE")
@click.argument("key", nargs=-1, required=True, metavar="KEY...")
@click.option("--column", "columns", multiple=True, metavar="COLUMN", help="Only this one; may be given again.")
@as_of_option
@name_option
@format_option
@reported
def blame(
    log: str, projection: str, key: tuple[str, ...], columns: tuple[str, ...], as_of: str | None, name: str, form: str
) -> None:
    """Say which event last changed each column of a row.

    KEY is the row's, part by part in the order of the table's key, as `table` prints it. The row is worked out again
    before and after each event that can have changed it, the newest first: what changed lately is found soon. A row
    that comes changes every column, also to nothing.
    """
    from forecast_ledger.replay.explain.blame import Blame
    from forecast_ledger.replay.explain.blame import blame as blamed
    from forecast_ledger.replay.explain.explain_scores import Source

    known(projection)
    with progress("events") as watch:
        found = blamed(Source(log, name, cut(as_of), watch), projection, key, columns)
    emit(list(Blame._fields), (each._asdict() for each in found.columns), form)
    say(f"{found.looked_at} of {found.candidates} events that can have changed the row were looked at")
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


def _as_json(found: "Explained") -> Iterable[str]:
    from msgspec import json

    from forecast_ledger.replay.reading.text_tables import inert_json

    plain = {
        **found.number,
        "rule": found.rule,
        "parts": found.parts,
        "others": found.others,
        "events": found.events,
        "as_of": found.checkpoint._asdict(),
    }
    yield json.format(inert_json(json.encode(plain).decode()), indent=2)


def _as_text(found: "Explained") -> Iterable[str]:
    """The number, its rule, its parts, whom else it depends on, and the events."""
    from forecast_ledger.replay.reading.text_tables import as_table, visible

    yield from _pairs({name: _numbered(name, value) for name, value in found.number.items()})
    yield ""
    parts = [{name: _numbered(name, value) for name, value in part.items()} for part in found.parts]
    yield from as_table(list(parts[0]), parts) if parts else ["no parts"]
    yield ""
    rule = found.rule
    fields = " ".join(f"{name}={value}" for name, value in rule["fields"].items())
    yield from _pairs({"rule": f"{rule['name']}, #{rule['log_position']}: {rule['words']}"})
    yield from _pairs({"fields": fields, "source": rule["source"]})
    yield from _pairs({"depends on": _dependence(found.others)})
    yield ""
    yield from (visible(line) for line in as_table(["log_position", "recorded_at", "at", "type", "said"], found.events))


def _pairs(of: dict[str, Any]) -> Iterable[str]:
    from forecast_ledger.replay.reading.text_tables import visible

    width = max(map(len, of))
    return [visible(f"{name:{width}}  {'' if value is None else value}".rstrip()) for name, value in of.items()]


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
