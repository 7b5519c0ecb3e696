"""The command that shows what would change."""

import sys
from typing import IO, TYPE_CHECKING

import click

from forecast_ledger.replay.console import completion
from forecast_ledger.replay.console.shell import (
    FINDINGS,
    FINE,
    USAGE,
    as_of_option,
    emit,
    errors_option,
    fail,
    known,
    log_argument,
    name_option,
    refusals,
    replayed,
    reported,
    say,
    say_as_of,
)
from forecast_ledger.replay.console.view import Look, View, table_options

if TYPE_CHECKING:
    from forecast_ledger.projections.catalogue.projection import Projections
    from forecast_ledger.projections.core.table import Table
    from forecast_ledger.replay.reading.replay import Replay


@click.command("what-if", epilog="Example: forecast-ledger what-if season.db resolve.jsonl --show leaderboard")
@log_argument
@click.argument("file", metavar="[COMMANDS]", type=click.File("rb"), required=False)
@click.option("--show", required=True, metavar="TABLE", shell_complete=completion.tables, help="Compare this table.")
@click.option("--rules", metavar="PRESET|JSON", help="Score --contest by these rules instead of its own.")
@click.option(
    "--contest",
    metavar="CONTEST",
    shell_complete=completion.ids("contest"),
    help="Print only the rows of this contest; with --rules, the contest to score.",
)
@as_of_option
@name_option
@table_options
@errors_option
@reported
def what_if(
    log: str,
    file: IO[bytes] | None,
    show: str,
    rules: str | None,
    contest: str | None,
    as_of: str | None,
    name: str,
    view: View,
    errors: str,
) -> None:
    """Show what would change in a table if more were recorded.

    COMMANDS has one JSON object per line. They are decided as `append` would decide them, but on a branch of the log
    that is kept in memory; nothing is written. With --rules, the contest is scored by other rules. Prints one line per
    value that would differ. Refusals are written to stderr as by `append`; then the exit code is 1.
    """
    from forecast_ledger.replay.reading import lookup

    known(show)
    if file is None and rules is None:
        fail("nothing to try: give a file of commands, or --rules", USAGE)
    if rules is not None and contest is None:
        fail("--rules needs --contest", USAGE)
    if contest is not None and rules is None and not _is_of_contests(show):
        fail(f"the table {show} has no column contest: leave out --contest", USAGE)
    before = replayed(log, name, as_of)
    after, refused = before.projections, 0
    if file is not None:
        after, refused = _appended(log, file, name, before, errors)
    if contest is not None:
        lookup.find_contest(after.facts, contest)
    if rules is not None and contest is not None:
        from forecast_ledger.replay.explain.what_if import parse_rule_set, under_rules

        after = under_rules(after, contest, parse_rule_set(rules))
    only = contest if rules is None or _is_of_contests(show) else None  # what sums up contests is shown whole
    _show(_table(before.projections, show, only), _table(after, show, only), view)
    say("nothing was written")
    say_as_of(before.checkpoint)
    sys.exit(FINDINGS if refused else FINE)


def _appended(log: str, file: IO[bytes], name: str, before: "Replay", errors: str) -> tuple["Projections", int]:
    """The projections as if the commands in a file had been appended, and how many were refused."""
    from forecast_ledger.projections.catalogue.projection import Projections
    from forecast_ledger.projections.facts import from_log
    from forecast_ledger.replay.writing.append import append_lines
    from forecast_ledger.replay.writing.overlay_store import open_overlay
    from forecast_ledger.replay.writing.pay import prizes_from_log

    with open_overlay(log, name, prizes_from_log, before.checkpoint) as (ledger, _):
        counts = append_lines(ledger, file, refusals(errors), lambda _: None)
        facts = from_log.facts(ledger.read())
    say(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return Projections(facts), counts["refused"]


def _is_of_contests(show: str) -> bool:
    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE

    return "contest" in [column.name for column in CATALOGUE[show].columns]


def _table(projections: "Projections", show: str, contest: str | None) -> "Table":
    table = projections.table(show)
    return table if contest is None else table.only("contest", contest)


def _show(old: "Table", new: "Table", view: View) -> None:
    """Print each value that differs, and say how many rows do and do not."""
    from collections import Counter

    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
    from forecast_ledger.replay.reading.table_difference import differences

    found = list(differences(old, new))
    rows = (
        {**each.key, "row": each.row, "column": column, "old": one, "new": other}
        for each in found
        for column, (one, other) in (each.columns or {"": (None, None)}).items()
    )
    emit([*CATALOGUE[old.name].key, "row", "column", "old", "new"], rows, view, Look(keep=("column", "old", "new")))
    told = Counter(each.row for each in found)
    counts = ", ".join(f"{told[row]} {row}" for row in ("changed", "new", "gone"))
    say(f"rows of {old.name}: {counts}, {len(old) - told['changed'] - told['gone']} unchanged")


COMMANDS = (what_if,)
