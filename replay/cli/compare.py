"""The command that compares a published table with a log."""

import sys
from shlex import quote
from typing import IO, TYPE_CHECKING

import click

from forecast_ledger.replay.console import completion
from forecast_ledger.replay.console.colour import GREEN, RED
from forecast_ledger.replay.console.replaying import Location, replay_log, say_season, segments_options
from forecast_ledger.replay.console.shell import (
    FINDINGS,
    USAGE,
    as_of_option,
    emit,
    fail,
    log_argument,
    name_option,
    report_errors,
    require_columns,
    require_name,
    require_projection,
    say,
)
from forecast_ledger.replay.console.view import Look, View, table_options

if TYPE_CHECKING:
    from forecast_ledger.replay.audit.claims import Claim, Comparison


@click.command(epilog="Example: forecast-ledger compare season.db published.csv --table leaderboard")
@log_argument
@click.argument("claimed", metavar="CSV", type=click.File("rb"))
@click.option("--table", required=True, metavar="TABLE", shell_complete=completion.tables, help="Compare this table.")
@click.option(
    "--contest", metavar="CONTEST", shell_complete=completion.ids("contest"), help="CSV is about this contest only."
)
@click.option(
    "--rename",
    "renamed",
    multiple=True,
    metavar="THEIRS=COLUMN",
    help="The column THEIRS of CSV is this column of the table; repeatable.",
)
@click.option("--ignore", "ignored", multiple=True, metavar="THEIRS", help="Leave out this column of CSV; repeatable.")
@click.option("--partial", is_flag=True, help="CSV need not have every row of the table.")
@as_of_option
@segments_options(found=False)
@name_option
@table_options
@report_errors
def compare(
    log: Location,
    claimed: IO[bytes],
    table: str,
    contest: str | None,
    renamed: tuple[str, ...],
    ignored: tuple[str, ...],
    partial: bool,
    as_of: str | None,
    name: str,
    view: View,
) -> None:
    """Compare a published table, a CSV, with the same table of a log.

    Rows are matched by the table's key, and columns by name. Two numbers are equal if ours, rounded to the decimals
    that CSV prints, is the number in CSV; ties may be rounded either way. Each value that differs is one line, as is
    each row that is missing from CSV, extra in it, or repeated; the exit code is then 1. A column that the table does
    not have is wrong usage. Columns without a name are not compared.
    """
    from forecast_ledger.projections.tables.catalogue import CATALOGUE
    from forecast_ledger.replay.audit.claims import DIFFERENCE_COLUMNS, Comparison, read_claim
    from forecast_ledger.replay.reading import lookup

    columns = CATALOGUE[require_projection(table)].columns
    key = CATALOGUE[table].key
    header = [*key, *DIFFERENCE_COLUMNS]
    require_columns(view, header)
    if contest is not None and "contest" not in key:
        fail(f"the table {table} has no column contest: leave out --contest", USAGE)
    claim = read_claim(claimed, columns, _renamed(renamed, [column.name for column in columns]), ignored)
    season = replay_log(log, name, as_of)
    ours = season.projections.table(table)
    if contest is not None:
        lookup.find_contest(season.projections.facts, contest)
        ours = ours.only("contest", contest)
    comparison = Comparison(ours, claim, partial=partial)
    found = list(comparison.differences())
    rows = (dict(zip(header, (*difference.key, *difference[1:]), strict=True)) for difference in found)
    if found or view.form != "table":
        emit(header, rows, view, Look(keep=("row", "column", "claimed", "ours"), key=key))
    _say_compared(claim, comparison)
    _say_verdict([difference.row for difference in found])
    missing = [difference for difference in found if difference.row == "missing"]
    if len(comparison.contests) == 1 and any({*each.key}.isdisjoint(comparison.contests) for each in missing):
        say(f"the file has rows of one contest only; to compare no other: --contest {quote(*comparison.contests)}")
    say_season(season)
    if found:
        sys.exit(FINDINGS)


def _renamed(pairs: tuple[str, ...], columns: list[str]) -> dict[str, str]:
    """Read pairs THEIRS=COLUMN. THEIRS may have an equals sign; COLUMN has none."""
    renamed = {}
    for pair in pairs:
        theirs, sign, ours = pair.rpartition("=")
        if not sign:
            raise click.BadParameter(f"{pair!r} has no '='; write THEIRS=COLUMN")
        renamed[theirs.strip()] = require_name("column", ours.strip(), columns)
    return renamed


def _say_compared(claim: "Claim", comparison: "Comparison") -> None:
    """Say how many rows agree, to how many decimals numbers were compared, and what was not compared."""
    say(f"{comparison.agreeing:,} of {comparison.rows:,} rows of the file agree with the log")
    decimals = (
        f"{column} {least if least == most else f'{least} to {most}'}"
        for column, (least, most) in comparison.decimals.items()
    )
    if told := ", ".join(decimals):
        say(f"compared to the decimals in the file: {told}")
    if claim.skipped:
        say(f"not compared: {', '.join(repr(name) if name else 'a column without a name' for name in claim.skipped)}")


def _say_verdict(rows: list[str]) -> None:
    from collections import Counter

    counts = Counter(rows)
    words = {"differs": "values that differ", **{row: f"{row} rows" for row in ("missing", "extra", "repeated")}}
    told = ", ".join(f"{text}: {counts[row]:,}" for row, text in words.items() if counts[row])
    say(f" {told}" if told else " no differences", "not ok:" if told else "ok:", RED if told else GREEN)


COMMANDS = (compare,)
