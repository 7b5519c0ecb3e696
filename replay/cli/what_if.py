"""The command that shows what would change after other commands or under other rules."""

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
    log_argument,
    name_option,
    refusal_printer,
    replay_log,
    report_errors,
    require_projection,
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
    help="Print only rows of this contest; with --rules, the contest to score.",
)
@as_of_option
@name_option
@table_options
@errors_option
@report_errors
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
    """Show what more commands or other rules would change in a table.

    COMMANDS has one JSON object per line. They are decided as by `append`, but on a copy of the log in memory; nothing
    is written. With --rules, the contest is scored by other rules. Each value that would differ is one line. Refusals
    are written to stderr as by `append`, and the exit code is then 1.
    """
    from forecast_ledger.replay.reading import lookup

    require_projection(show)
    if file is None and rules is None:
        fail("give a file of commands, or --rules, or both", USAGE)
    if rules is not None and contest is None:
        fail("--rules needs --contest", USAGE)
    if contest is not None and rules is None and not _has_contest_column(show):
        fail(f"the table {show} has no column contest: leave out --contest", USAGE)
    before = replay_log(log, name, as_of)
    after, refused = before.projections, 0
    if file is not None:
        after, refused = _appended(log, file, name, before, errors)
    if contest is not None:
        lookup.find_contest(after.facts, contest)
    if rules is not None and contest is not None:
        from forecast_ledger.replay.explain.what_if import parse_rule_set, under_rules

        after = under_rules(after, contest, parse_rule_set(rules))
    only = contest if rules is None or _has_contest_column(show) else None  # other tables are shown whole
    _show(_table(before.projections, show, only), _table(after, show, only), view)
    say("nothing was written")
    say_as_of(before.checkpoint)
    sys.exit(FINDINGS if refused else FINE)


def _appended(log: str, file: IO[bytes], name: str, before: "Replay", errors: str) -> tuple["Projections", int]:
    """Return the projections as if the commands in a file had been appended, and the number of refusals."""
    from forecast_ledger.projections.catalogue.projection import Projections
    from forecast_ledger.projections.facts import from_log
    from forecast_ledger.replay.writing.append import append_lines
    from forecast_ledger.replay.writing.overlay_store import open_overlay
    from forecast_ledger.replay.writing.pay import prizes_from_log

    with open_overlay(log, name, prizes_from_log, before.checkpoint) as (ledger, _):
        counts = append_lines(ledger, file, refusal_printer(errors), lambda _: None)
        facts = from_log.facts(ledger.read())
    say(", ".join(f"{count:,} {outcome}" for outcome, count in counts.items()))
    return Projections(facts), counts["refused"]


def _has_contest_column(show: str) -> bool:
    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE

    return "contest" in [column.name for column in CATALOGUE[show].columns]


def _table(projections: "Projections", show: str, contest: str | None) -> "Table":
    table = projections.table(show)
    return table if contest is None else table.only("contest", contest)


def _show(old: "Table", new: "Table", view: View) -> None:
    """Print each value that differs, and how many rows do and do not."""
    from collections import Counter

    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE
    from forecast_ledger.replay.reading.table_difference import differences

    key, changed_rows = CATALOGUE[old.name].key, list(differences(old, new))
    rows = (
        {**row.key, "row": row.row, "column": column, "old": before, "new": after}
        for row in changed_rows
        for column, (before, after) in (row.columns or {"": (None, None)}).items()
    )
    emit([*key, "row", "column", "old", "new"], rows, view, Look(keep=("column", "old", "new"), key=key))
    numbers = Counter(row.row for row in changed_rows)
    counts = ", ".join(f"{numbers[kind]:,} {kind}" for kind in ("changed", "new", "gone"))
    say(f"rows of {old.name}: {counts}, {len(old) - numbers['changed'] - numbers['gone']:,} unchanged")


COMMANDS = (what_if,)
