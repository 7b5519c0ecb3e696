"""The commands for auditors: verify, checkpoint, balance, log, show, and the sheets of tie-out and sample."""

import json
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from shlex import join
from typing import IO, TYPE_CHECKING

import click

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Corrupt, NewerVersion
from forecast_ledger.ledger.core.hints import in_list
from forecast_ledger.ledger.core.redaction import redacted
from forecast_ledger.ledger.core.values import format_count, format_instant
from forecast_ledger.ledger.model.events import TAGS
from forecast_ledger.ledger.model.log import Checkpoint, decode_row, unseal
from forecast_ledger.replay.cli import completion
from forecast_ledger.replay.cli.shell import (
    Location,
    as_of_option,
    complain,
    damage_text,
    emit,
    emit_list,
    emit_table,
    fail,
    log_argument,
    name_option,
    parse_cut,
    progress,
    read_checkpoint_file,
    replay_log,
    report_errors,
    require_columns,
    require_name,
    say,
    say_as_of,
    say_season,
    segments_options,
)
from forecast_ledger.replay.cli.terminal import GREEN, RED, Look, View, listing_options, table_options
from forecast_ledger.replay.reference.exit_codes import DAMAGED, FINDINGS, USAGE

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from forecast_ledger.replay.audit.verify import CheckResult, SavedCheckpoint
    from forecast_ledger.replay.reading.log import Log


_LAST = 2**63 - 1  # no log position is greater
RESULT = ["check", "found", "log_position", "says"]


def _about(field: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option for events about one question, participant or contest."""
    return click.option(
        f"--{field}", metavar="ID", shell_complete=completion.ids(field), help=f"Only events about this {field}."
    )


def _checks(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Suggest names of checks."""
    from forecast_ledger.replay.audit.verify import CHECKS

    return completion.items(CHECKS, incomplete)


@click.command(epilog="Example: forecast-ledger verify season.db --only digests --only decided")
@log_argument
@click.option(
    "--only",
    multiple=True,
    metavar="CHECK",
    shell_complete=_checks,
    help="Run only this check and those that it needs; repeatable.",
)
@click.option("--checkpoint", "file", type=click.File("rb"), help="Compare the log with this output of `checkpoint`.")
@click.option("--strict", is_flag=True, help="Without --checkpoint, the exit code is 1 even if no fault is found.")
@click.option("--quiet", "-q", is_flag=True, help="Print only problems.")
@as_of_option
@name_option
@table_options
@report_errors
def verify(
    log: str,
    only: tuple[str, ...],
    file: IO[bytes] | None,
    strict: bool,
    quiet: bool,
    as_of: str | None,
    name: str,
    view: View,
) -> None:
    """Check every row of a log, every decision and every prize.

    The last line is the verdict. If the log is damaged, the exit code is 4; each damaged row is printed with its log
    position and the command that shows it. If the log can be read but there are other findings, the exit code is 1: a
    prize differs from the sealed board, the checkpoint differs, or there are no events, perhaps because --name is
    mistyped.

    No log can show by itself that it was rewritten as a whole, with new digests, or that its newest rows were
    removed. With --strict, a log that is not compared with a checkpoint is a finding, and the exit code is 1.
    """
    from forecast_ledger.replay.audit.verify import CHECKS, run_checks
    from forecast_ledger.replay.reading.log import Log

    require_columns(view, RESULT)
    for check in only:
        require_name("check", check, list(CHECKS))
    earlier = None if file is None else read_checkpoint_file(file)
    with progress("verified") as on_progress, gc_pause.paused():  # up to here: what it leaves is no garbage either
        report = run_checks(Log(log, name, parse_cut(as_of), on_progress), only, side_by_side=True)
    comparisons = [] if earlier is None else [_compare_checkpoint(earlier, Log(log, name))]
    results = [*report.results, *(result for result, _ in comparisons)]
    findings = [*map(str, report.differences), *(finding for _, findings in comparisons for finding in findings)]
    if report.head.position == 0 and as_of is None and not report.damage:
        findings.append(f"the ledger {name!r} has no events")
    if strict and earlier is None and not report.damage:
        findings.append(
            "the log was not compared with a checkpoint: give one that was kept elsewhere with --checkpoint"
        )
    if not quiet:
        emit(
            RESULT, (dict(zip(RESULT, result, strict=True)) for result in results), view, Look(keep=("check", "found"))
        )
    for damage in report.damage:
        complain(damage_text(damage))
        say(f"to see the row: {_show_command(log, name, damage)}")
    for finding in findings:
        complain(finding)
    if report.damage:
        say(f" {format_count(len(report.damage) + len(findings), 'finding')}", _verdict(report.damage), RED)
        sys.exit(DAMAGED)
    if not quiet or findings:
        say_as_of(report.head)
    if earlier is None and not quiet:
        for line in _checkpoint_advice(log, name):
            say(line)
    if findings:
        say(f" {format_count(len(findings), 'finding')}; the log can be read", "not ok:", RED)
        sys.exit(FINDINGS)
    if not quiet:
        say(f" {format_count(report.head.position, 'event')}, {format_count(len(results), 'check')}", "ok:", GREEN)


def _verdict(damage: Sequence[Corrupt]) -> str:
    """Return what a log that cannot be read to its end is."""
    return "too new:" if all(isinstance(each, NewerVersion) for each in damage) else "damaged:"


def _checkpoint_advice(log: str, name: str) -> tuple[str, ...]:
    """Return what the log alone cannot show, and the commands that make and use a checkpoint, which can."""
    ledger = [redacted(log), *([] if name == "main" else ["--name", name])]
    keep, compare = join(["forecast-ledger", "checkpoint", *ledger]), join(["forecast-ledger", "verify", *ledger])
    return (
        "a log cannot show by itself whether it was rewritten with new digests, or its newest rows were removed",
        f"to keep a checkpoint elsewhere: {keep} > FILE",
        f"to find removed or rewritten rows with it: {compare} --checkpoint FILE",
    )


def _compare_checkpoint(earlier: "SavedCheckpoint", log: "Log") -> "tuple[CheckResult, list[str]]":
    """Compare a log with a checkpoint. Returns a row of the report, and every difference."""
    from forecast_ledger.replay.audit.verify import CheckResult, compare_with_checkpoint

    at = earlier.log_position
    try:
        comparison = compare_with_checkpoint(earlier, log)
    except Corrupt as damage:
        return CheckResult(
            "checkpoint", "not checked", damage.position, f"the check {damage.check} stops the reading there"
        ), []
    for skipped in comparison.skipped:
        say(f"not compared: {skipped}")
    if differences := comparison.apart:
        more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        result = CheckResult("checkpoint", "differs", at, f"{differences[0]}{more}")
        return result, [f"checkpoint: {difference}" for difference in differences]
    tables = len(earlier.projections) - len(comparison.skipped)
    return CheckResult("checkpoint", "ok", at, f"the log and {tables} projections as of {at} match the checkpoint"), []


def _show_command(log: str, name: str, damage: Corrupt) -> str:
    """Return the command that shows the damaged row."""
    ledger = [] if name == "main" else ["--name", name]
    return join(["forecast-ledger", "show", redacted(log), str(damage.position), "--raw", *ledger])


@click.command(epilog="Example: forecast-ledger checkpoint season.db > season.toml")
@log_argument
@as_of_option
@segments_options(use_beside=False)
@name_option
@report_errors
def checkpoint(log: Location, as_of: str | None, name: str) -> None:
    """Print a checkpoint, for `verify --checkpoint`.

    Keep the output out of reach of people who can change the log. It is TOML, with the ledger's name, the log
    position, the digest and instant of the row there, the version of this code, and the version, number of rows and
    digest of every projection that `replay` prints.
    """
    from forecast_ledger.replay.audit.verify import checkpoint_text, take_checkpoint
    from forecast_ledger.replay.reading.log import Log

    with progress("read") as on_progress:
        made = take_checkpoint(Log(log, name, parse_cut(as_of), on_progress))
    print(checkpoint_text(made), end="", flush=True)
    say_as_of(Checkpoint(made.log_position, made.digest))


@click.command(epilog="Example: forecast-ledger ledgers season.db")
@log_argument
@table_options
@report_errors
def ledgers(log: str, view: View) -> None:
    """List the ledgers of a store with their size and head.

    Each has the number of its events, the digest of the last one and the instant of its recording. Give the name of one
    of them to other commands with --name. The digests are those that the last rows state; `verify`
    checks them.
    """
    from forecast_ledger.ledger.storing.stored_log import LedgerSize, ledger_sizes

    require_columns(view, LedgerSize._fields)
    sizes = [*ledger_sizes(log)]
    rows = [
        each._asdict() | {"recorded_at": None if each.recorded_at is None else format_instant(each.recorded_at)}
        for each in sizes
    ]
    emit(LedgerSize._fields, rows, view, Look(keep=LedgerSize._fields))
    say(format_count(len(sizes), "ledger"))


@click.command("log", epilog="Example: forecast-ledger log season.db --type forecast_made --participant ada --limit 10")
@log_argument
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    shell_complete=completion.types,
    help="Only events of this type; repeatable.",
)
@_about("question")
@_about("participant")
@_about("contest")
@click.option("--by", metavar="WHO", help="Only events of commands that say that this one asked for them.")
@click.option(
    "--from",
    "since",
    metavar="INSTANT",
    help="Only events recorded at this instant or later, or from this day on (UTC).",
)
@click.option(
    "--until", metavar="INSTANT", help="Only events recorded before this instant, or up to the end of this day (UTC)."
)
@click.option(
    "--after", type=click.IntRange(0, _LAST), default=0, metavar="POSITION", help="Only events after this log position."
)
@click.option("--limit", type=click.IntRange(1, _LAST), metavar="COUNT", help="Print at most this many events.")
@click.option(
    "--rows", "whole", is_flag=True, help="Print each row whole, as a JSON object with decimals and instants."
)
@name_option
@listing_options
@report_errors
def log_(
    log: str,
    types: tuple[str, ...],
    question: str | None,
    participant: str | None,
    contest: str | None,
    by: str | None,
    since: str | None,
    until: str | None,
    after: int,
    limit: int | None,
    whole: bool,
    name: str,
    view: View,
) -> None:
    """List the events of a log in their order, one per line.

    An event is listed if it passes every filter. --from and --until compare the instants at which the ledger recorded
    events. Events are printed as they are read. With --after, the row at that position is trusted, and later rows are
    checked against its digest. JSON and CSV also have the columns contest, question, participant, by, reason and
    evidence, for filters and joins; --columns prints them in a table. They are empty where an event has none, or can
    have several (quotes, decisions). `by` is who asked for the event, as its command says; nobody has checked it.

    --rows prints every field of a row and its event on one line of JSON, for other programs. Decimals and instants are
    as in commands; `to_json` in Python writes the same.
    """
    from forecast_ledger.replay.audit.browse import (
        EVENT_LIST_COLUMNS,
        SENTENCE_COLUMNS,
        EventFilter,
        EventList,
        event_types,
        format_rows,
        read_pages,
        unchecked_checkpoint,
    )
    from forecast_ledger.replay.reading.event_text import OutcomeNames, openings
    from forecast_ledger.replay.reading.log import Log, read_span

    require_columns(view, EVENT_LIST_COLUMNS)
    if whole and view != View():
        fail("--rows cannot be used with --format, --columns, --where or --wide: leave them out", USAGE)
    try:
        selected = event_types(types)
    except KeyError as missing:
        require_name("type of event", missing.args[0], list(TAGS.values()))
    first, end = read_span(since, until)
    with Log(log, name).opened() as store:
        start = unchecked_checkpoint(store, after)
        filters = EventFilter(selected, question, participant, contest, first, end, by)
        listing = EventList(filters, limit, start, OutcomeNames(openings(store, after)))
        pages = read_pages(store, log, start, filters, limit)
        if whole:
            for recorded in listing.events(pages):
                print(json.dumps(json.loads(recorded.to_json())))  # in ASCII, so that no terminal obeys it
        else:
            emit_list(EVENT_LIST_COLUMNS, listing.rows(pages), view, format_rows, SENTENCE_COLUMNS)
    more = "; --limit is reached, and there may be more" * (listing.shown == limit)
    say(f"{format_count(listing.shown, 'event')}{more}")
    say_as_of(listing.last)


@click.command(epilog="Example: forecast-ledger show season.db 12")
@log_argument
@click.argument("position", type=click.IntRange(1, _LAST))
@click.option("--raw", is_flag=True, help="Print the exact bytes of the row, and nothing else.")
@name_option
@table_options
@report_errors
def show(log: str, position: int, raw: bool, name: str, view: View) -> None:
    """Show the row at a log POSITION, field by field.

    It also checks that the row matches its digest and follows the row before it. `command` is the digest of the command
    that led to the event, `previous` the digest of the row before. Names of outcomes are those of the event that opened
    the question. --raw shows a damaged row too.
    """
    from forecast_ledger.replay.audit.browse import event_fields, row_bytes, unchecked_checkpoint
    from forecast_ledger.replay.reading.event_text import OutcomeNames, openings
    from forecast_ledger.replay.reading.log import Log

    require_columns(view, ["field", "value"])

    with Log(log, name).opened() as store:
        stored = row_bytes(store, position)
        if raw:
            sys.stdout.buffer.write(stored)
            sys.stdout.buffer.flush()
            say(f"{len(stored)} bytes")
        else:
            recorded = decode_row(stored, position)
            names = OutcomeNames(openings(store, position))
            emit(["field", "value"], event_fields(recorded, names.of), view, Look(keep=("field", "value")))
            unseal([stored], unchecked_checkpoint(store, position - 1))
            say_as_of(Checkpoint(position, recorded.digest))


@click.command(epilog="Example: forecast-ledger balance season.db")
@log_argument
@as_of_option
@segments_options(use_beside=False)
@name_option
@table_options
@report_errors
def balance(log: Location, as_of: str | None, name: str, view: View) -> None:
    """Print the trial balance: accounts by contest.

    An account is one of the journal's, over all its owners: cash, positions at cost, prizes, and what they are booked
    against. The balances of each contest add up to 0, which is checked here from the rows that are printed; the exit
    code is 1 if one does not. --where contest=… selects a contest.
    """
    season = replay_log(log, name, as_of)
    table = season.projections.table("trial_balance")
    sums: dict[str, Fraction] = {}
    for row in table.rows():
        sums[row["contest"]] = sums.get(row["contest"], Fraction(0)) + Fraction(row["balance"])
    emit_table(table, view)
    wrong = [contest for contest, total in sums.items() if total]
    say_as_of(season.checkpoint)
    if wrong:
        complain(f"the balances do not add up to 0 in: {in_list(wrong)}")
        sys.exit(FINDINGS)
    say(f"the balances of each of {format_count(len(sums), 'contest')} add up to 0")


@click.command("tie-out", epilog="Example: forecast-ledger tie-out season.db spring-cup --format csv > prizes.csv")
@log_argument
@click.argument("contest", metavar="CONTEST", shell_complete=completion.ids("contest"))
@click.option(
    "--bank", type=click.File("rb"), metavar="STATEMENT", help="Match the payments with the lines of a bank statement."
)
@click.option("--decimal-comma", is_flag=True, help="Read the amounts of STATEMENT with a decimal comma, as 1.234,50.")
@as_of_option
@segments_options(use_beside=False)
@name_option
@table_options
@report_errors
def tie_out(
    log: Location,
    contest: str,
    bank: IO[bytes] | None,
    decimal_comma: bool,
    as_of: str | None,
    name: str,
    view: View,
) -> None:
    """Print a sheet from documents to prizes, to tie to the bank.

    One row for each participant of CONTEST with a prize: where its questions are described, the log positions of its
    forecasts, of the answers, of the seal and of the payment, its score and take, the prize, and what is paid and owed.
    The columns of the bank are empty, to be filled in from a statement. The last row has the totals. They are compared
    with the journal and the pool; the exit code is 1 if two totals that must be equal are not.

    STATEMENT is a CSV with the columns payee and amount, and date and text if it has them. With it, the columns of the
    bank are filled in, and the column `bank` says matched, missing, different amount or surplus; the exit code is 1 if
    one is not matched. A line is of the participant whose id is its payee or, if no id is, whose id alone is a word of
    its payee or text. The lines of a participant are added up; capitals and the sign of the sum do not matter.
    """
    from forecast_ledger.replay.audit.trails import BANKED, LARGEST_STATEMENT, TIE_OUT, matched, read_statement, summary
    from forecast_ledger.replay.audit.trails import tie_out as tied_out
    from forecast_ledger.replay.reading.descriptions import money

    columns = TIE_OUT if bank is None else BANKED
    require_columns(view, columns)
    try:
        said = None if bank is None else bank.read(LARGEST_STATEMENT + 1)
        lines = None if said is None else read_statement(said, decimal_comma=decimal_comma)
    except ValueError as wrong_statement:
        fail(str(wrong_statement), USAGE)
    season = replay_log(log, name, as_of)
    rows, ties = tied_out(season.projections, contest)
    rows = rows if lines is None else matched(rows, lines)
    emit(columns, rows, view, Look(keep=("row", "participant", "prize", "paid")))
    wrong = [tie for tie in ties if tie.one != tie.other]
    for tie in ties:
        one, other = (money(int(total * 10**6)) for total in (tie.one, tie.other))
        (complain if tie in wrong else say)(f"{tie.what}: {one} {'and' if tie in wrong else '='} {other}")
    counts = {} if lines is None else dict(summary(rows))
    if counts:
        unmatched = sum(counts.values()) > counts["matched"]
        (complain if unmatched else say)(f"bank: {', '.join(f'{count} {what}' for what, count in counts.items())}")
    else:
        unmatched = False
    say_season(season, [contest])
    if wrong or unmatched:
        sys.exit(FINDINGS)


@click.command(
    epilog="Example: forecast-ledger sample season.db --contest spring-cup --by amount --format csv > sheet.csv"
)
@log_argument
@click.option("--size", type=click.IntRange(1, 2_000), default=20, show_default=True, help="Draw so many.")
@click.option(
    "--by",
    type=click.Choice(["chance", "amount"]),
    default="chance",
    show_default=True,
    help="Draw scores, all alike, or prizes and movements of cash, each as likely as it is large.",
)
@click.option(
    "--contest", metavar="CONTEST", shell_complete=completion.ids("contest"), help="Draw from this contest only."
)
@click.option(
    "--evaluate", "sheet", type=click.File("rb"), metavar="SHEET", help="Evaluate a sheet that was filled in."
)
@click.option(
    "--confidence",
    type=click.IntRange(50, 99),
    default=95,
    show_default=True,
    metavar="PERCENT",
    help="The confidence of the upper limit of the rate of error, with --evaluate.",
)
@as_of_option
@name_option
@table_options
@report_errors
def sample(
    log: Location,
    size: int,
    by: str,
    contest: str | None,
    sheet: IO[bytes] | None,
    confidence: int,
    as_of: str | None,
    name: str,
    view: View,
) -> None:
    """Draw numbers to examine by hand, or evaluate what was found.

    The sample follows from the digest of the log, so that anybody draws the same. The sheet has a row for each number,
    with the log positions that it rests on, and the empty columns found and remark. Fill in the values that you find,
    save it as CSV, and give it to --evaluate: it draws the sample again, compares, and prints how many are wrong and
    the upper limit of the rate of error. An empty cell counts as wrong. The exit code is then 1 if any is.
    """
    from forecast_ledger.replay.audit.sampling import EVALUATED, SHEET, draw, evaluate

    require_columns(view, EVALUATED if sheet else [column.name for column in SHEET])
    try:
        if sheet is None:
            season = replay_log(log, name, as_of)
            drawn = draw(season, by, size, contest)
            emit([column.name for column in SHEET], drawn.rows, view, Look(keep=("item", "score", "amount")))
            of = "scores" if drawn.by == "score" else "prizes and movements of cash"
            say(f"{drawn.size:,} drawn from {drawn.items:,} {of}, {len(drawn.rows):,} to examine")
            say_season(season, () if contest is None else [contest])
            return
        evaluated = evaluate(sheet, lambda position: replay_log(log, name, str(position)), confidence, contest)
    except ValueError as wrong:
        fail(str(wrong), USAGE)
    emit(EVALUATED, [evaluated.row(confidence)], view, Look(keep=EVALUATED))
    for finding in evaluated.findings:
        complain(finding)
    if evaluated.wrong:
        sys.exit(FINDINGS)
