"""The commands that compare: with a published table, and with other rules or further commands."""

import sys
from collections import Counter
from os import fspath
from shlex import quote
from typing import IO, TYPE_CHECKING

import click

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.replay.cli import completion
from forecast_ledger.replay.cli.reference import read_rules
from forecast_ledger.replay.cli.shell import (
    Location,
    as_of_option,
    emit,
    errors_option,
    fail,
    log_argument,
    name_option,
    refusal_printer,
    replay_log,
    report_errors,
    require_columns,
    require_name,
    require_projection,
    say,
    say_season,
    segments_options,
)
from forecast_ledger.replay.cli.terminal import GREEN, RED, Look, View, table_options
from forecast_ledger.replay.reference.exit_codes import FINDINGS, FINE, USAGE

if TYPE_CHECKING:
    from forecast_ledger.projections.core.table import Table
    from forecast_ledger.projections.tables.catalogue import Projections
    from forecast_ledger.replay.audit.compare import Claim, Comparison
    from forecast_ledger.replay.reading.replay import Replay


@click.command("what-if", epilog="Example: forecast-ledger what-if season.db resolve.jsonl --show leaderboard")
@log_argument
@click.argument("file", metavar="[COMMANDS]", type=click.File("rb"), required=False)
@click.option(
    "--show", metavar="TABLE", shell_complete=completion.tables, help="Compare this table; by default the leaderboard."
)
@click.option(
    "--rules",
    "rule_sets",
    multiple=True,
    metavar="PRESET|JSON|@FILE",
    help="Score --contest by these rules instead of its own; repeat it to see the board under each.",
)
@click.option("--correlations", is_flag=True, help="With several --rules: print how alike the ranks are, as a table.")
@click.option(
    "--without",
    "left_out",
    multiple=True,
    metavar="WHO",
    help="As if this participant had made no forecast; `bots` for all bots, group=NAME or tag=NAME for such questions. "
    "Repeatable.",
)
@click.option(
    "--before-close",
    metavar="TIME",
    help="As if nothing had been forecast later than so long before the close of a question, such as 30m, 24h or 7d.",
)
@click.option(
    "--unsealed", "unseal", is_flag=True, help="Show --contest as if it were not sealed: with the answers of now."
)
@click.option(
    "--contest",
    metavar="CONTEST",
    shell_complete=completion.ids("contest"),
    help="Print only rows of this contest; with --rules, the contest to score.",
)
@as_of_option
@segments_options(use_beside=True)
@name_option
@table_options
@errors_option
@report_errors
def what_if(
    log: Location,
    file: IO[bytes] | None,
    show: str | None,
    rule_sets: tuple[str, ...],
    correlations: bool,
    left_out: tuple[str, ...],
    before_close: str | None,
    unseal: bool,
    contest: str | None,
    as_of: str | None,
    name: str,
    view: View,
    errors: str,
) -> None:
    """Show what more commands or other rules would change in a table.

    COMMANDS has one JSON object per line. They are decided as by `append`, but on a copy of the log in memory; nothing
    is written. With --rules, the contest is scored by other rules; with --without or --before-close, without some
    forecasts, also in consensus and peers; with --unsealed, a sealed contest by the answers of now. Each value that
    would differ is one line. Refusals are written to stderr as by `append`, and the exit code is then 1.

    With several --rules, the board of the contest is printed instead: rank and score of each participant under its own
    rules and under each of these, and how alike the ranks are. @FILE is a JSON file; `rules` lists the presets.
    """
    from forecast_ledger.replay.explain.what_if import under_rules
    from forecast_ledger.replay.reading.board_notes import unsealed
    from forecast_ledger.replay.reading.log import find_contest

    several = len(rule_sets) > 1
    _check_usage(show, several=several, correlations=correlations)
    show = require_projection(show or "leaderboard")
    if file is None and not any((rule_sets, unseal, left_out, before_close)):
        fail("give a file of commands, --rules, --without, --before-close or --unsealed, or several of them", USAGE)
    _check_contest(show, contest, rule_sets, unseal=unseal)
    before = replay_log(log, name, as_of)
    after, refused = before.projections, 0
    if file is not None:
        after, refused = _appended(log, file, name, before, errors)
    if left_out or before_close:
        after = _left_out(after, left_out, before_close)
    if contest is not None:
        find_contest(after.facts, contest)
        if unseal:
            after = unsealed(after, contest)
    if several and contest is not None:
        _compare_rules(before.projections, after, contest, rule_sets, correlations, view)
    else:
        if rule_sets and contest is not None:
            after = under_rules(after, contest, read_rules(rule_sets[0]))
        only = contest if not rule_sets or _has_contest_column(show) else None  # other tables are shown whole
        old, new = _table(before.projections, show, only), _table(after, show, only)
        _show(old, new, view)
        _say_missing(before.projections, after, contest, new)
    say("nothing was written")
    if not unseal and _has_contest_column(show):
        _say_unmoved(before, after, contest)
    say_season(before, () if contest is None else [contest])
    sys.exit(FINDINGS if refused else FINE)


def _check_usage(show: str | None, *, several: bool, correlations: bool) -> None:
    """Refuse options that do not go with the number of rule sets. several: whether there is more than one."""
    if several and show not in {None, "leaderboard"}:
        fail("several --rules print the leaderboard: leave out --show", USAGE)
    if correlations and not several:
        fail("--correlations needs several --rules", USAGE)


def _check_contest(show: str, contest: str | None, rule_sets: tuple[str, ...], *, unseal: bool) -> None:
    """Refuse a contest that is missing, or that the table cannot be about."""
    if (rule_sets or unseal) and contest is None:
        fail(f"{'--rules' if rule_sets else '--unsealed'} needs --contest", USAGE)
    if contest is not None and not rule_sets and not _has_contest_column(show):
        fail(f"the table {show} has no column contest: leave out --contest", USAGE)


def _say_missing(before: "Projections", after: "Projections", contest: str | None, shown: "Table") -> None:
    """Say what the table does not have of a contest under its other rules. shown: its rows."""
    from forecast_ledger.replay.explain.what_if import what_is_missing

    if contest is not None and contest in before.facts.contests:
        before_rules, after_rules = (each.facts.contests[contest].opened.rules for each in (before, after))
        if note := what_is_missing(before_rules, after_rules, contest, shown):
            say(note)


def _say_unmoved(before: "Replay", after: "Projections", contest: str | None) -> None:
    """Say which sealed boards do not count what the commands recorded. contest: the only one that is printed."""
    from forecast_ledger.replay.reading.board_notes import unmoved, unmoved_note

    if names := unmoved(after.facts, before.checkpoint.position, None if contest is None else [contest]):
        say(unmoved_note(names, "COMMANDS "))


def _compare_rules(
    before: "Projections",
    after: "Projections",
    contest: str,
    texts: tuple[str, ...],
    correlations: bool,
    view: View,
) -> None:
    """Print the board of a contest under each rule set, and how alike the ranks are."""
    from forecast_ledger.replay.explain.what_if import COMPARED, OWN, compare_rules

    rule_sets: dict[str, RuleSet] = {}
    for rules in map(read_rules, texts):
        label, number = rules.name, 1
        while label in {OWN, *rule_sets}:
            number += 1
            label = f"{rules.name} ({number})"
        rule_sets[label] = rules
    compared = compare_rules(before, after, contest, rule_sets)
    if correlations:
        emit(COMPARED, compared.correlations, view)
        return
    emit(compared.columns, compared.rows, view, Look(keep=compared.columns))
    for row in compared.correlations:
        likeness = f"Kendall's tau-b {row['kendall_tau_b'] or 'none'}, Spearman's rho {row['spearman_rho'] or 'none'}"
        say(f"ranks by {row['one']} and {row['other']}: {likeness}; {row['ranked']:,} ranked by both")


def _appended(log: Location, file: IO[bytes], name: str, before: "Replay", errors: str) -> "tuple[Projections, int]":
    """Return the projections as if the commands in a file had been appended, and the number of refusals."""
    from forecast_ledger.projections.facts import from_log
    from forecast_ledger.projections.tables.catalogue import Projections
    from forecast_ledger.replay.writing.append import append_lines
    from forecast_ledger.replay.writing.provisional_stores import open_overlay
    from forecast_ledger.replay.writing.store import prizes_from_log

    with open_overlay(fspath(log), name, prizes_from_log, before.checkpoint) as (ledger, _):
        counts = append_lines(ledger, file, refusal_printer(errors), lambda _: None)
        facts = from_log.facts(ledger.read())
    say(", ".join(f"{count:,} {outcome}" for outcome, count in counts.items()))
    return Projections(facts), counts["refused"]


def _left_out(projections: "Projections", names: tuple[str, ...], before_close: str | None) -> "Projections":
    """Return the projections without some participants, questions and late forecasts; a wrong name is wrong usage."""
    from forecast_ledger.replay.reading.studies import without

    try:
        return without(projections, names, before_close)
    except ValueError as error:
        fail(str(error), USAGE)


def _has_contest_column(show: str) -> bool:

    from forecast_ledger.projections.tables.catalogue import CATALOGUE

    return "contest" in [column.name for column in CATALOGUE[show].columns]


def _table(projections: "Projections", show: str, contest: str | None) -> "Table":
    table = projections.table(show)
    return table if contest is None else table.only("contest", contest)


def _show(old: "Table", new: "Table", view: View) -> None:
    """Print each value that differs, and how many rows do and do not."""
    from forecast_ledger.projections.tables.catalogue import CATALOGUE
    from forecast_ledger.replay.explain.diff import differences

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
@segments_options(use_beside=False)
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
    that CSV prints, is the number in CSV; ties may be rounded either way. If a number of CSV can only be read with a
    decimal comma (779,30), all are read so; a dash is an empty cell. Each value that differs is one line, as is
    each row that is missing from CSV, extra in it, or repeated; the exit code is then 1. A column that the table does
    not have is wrong usage. Columns without a name are not compared.
    """
    from forecast_ledger.projections.tables.catalogue import CATALOGUE
    from forecast_ledger.replay.audit.compare import DIFFERENCE_COLUMNS, Comparison, read_claim
    from forecast_ledger.replay.reading.log import find_contest

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
        find_contest(season.projections.facts, contest)
        ours = ours.only("contest", contest)
    comparison = Comparison(ours, claim, partial=partial)
    differences = list(comparison.differences())
    rows = (dict(zip(header, (*difference.key, *difference[1:]), strict=True)) for difference in differences)
    if differences or view.form != "table":
        emit(header, rows, view, Look(keep=("row", "column", "claimed", "ours"), key=key))
    _say_compared(claim, comparison)
    _say_verdict([difference.row for difference in differences])
    missing = [difference for difference in differences if difference.row == "missing"]
    if len(comparison.contests) == 1 and any({*each.key}.isdisjoint(comparison.contests) for each in missing):
        say(f"the file has rows of one contest only; to compare no other: --contest {quote(*comparison.contests)}")
    say_season(season)
    if differences:
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
    if claim.decimal_comma:
        say("the commas in the numbers of the file are read as decimal points")
    if claim.skipped:
        say(f"not compared: {', '.join(repr(name) if name else 'a column without a name' for name in claim.skipped)}")


def _say_verdict(rows: list[str]) -> None:

    counts = Counter(rows)
    words = {"differs": "values that differ", **{row: f"{row} rows" for row in ("missing", "extra", "repeated")}}
    told = ", ".join(f"{text}: {counts[row]:,}" for row, text in words.items() if counts[row])
    say(f" {told}" if told else " no differences", "not ok:" if told else "ok:", RED if told else GREEN)
