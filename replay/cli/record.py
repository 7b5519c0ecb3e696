"""The commands that record what a log or a source says: import-from and pay."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forecast_ledger.ledger.core.hints import in_list
from forecast_ledger.ledger.model.rules import PRESETS
from forecast_ledger.replay.cli import completion
from forecast_ledger.replay.cli.append import board_prizes, opened, say_lines, summed_refusals
from forecast_ledger.replay.cli.shell import (
    emit,
    emit_table,
    errors_option,
    log_argument,
    name_option,
    progress,
    replay_log,
    report_errors,
    require_columns,
    require_contest,
    require_name,
    say,
    say_season,
)
from forecast_ledger.replay.cli.terminal import Look, View, table_options
from forecast_ledger.replay.reference.exit_codes import FINDINGS

if TYPE_CHECKING:
    from forecast_ledger.replay.importing.source_files import SourceFiles
    from forecast_ledger.replay.importing.source_items import Source

COUNT_COLUMNS = ["accepted", "duplicate", "refused", "not_carried_over", "log_position", "digest"]
_KINDS = ["forecastbench", "hubverse", "kalshi", "manifold", "metaculus", "polymarket"]


@click.command("import-from", epilog="Example: forecast-ledger import-from hubverse season.db FluSight-forecast-hub")
@click.argument("kind", type=click.Choice(_KINDS))
@log_argument
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--rules", metavar="PRESET", help="Open contests under this preset instead of the usual rules.")
@click.option("--keep-missing", is_flag=True, help="Keep what PATH does not have any more, and only count it.")
@click.option("--take-back", is_flag=True, help="Take back what PATH does not have, also if it is more than half.")
@click.option("--prices-only", is_flag=True, help="manifold: record the prices, and no forecasts of those who bet.")
@click.option(
    "--trades", is_flag=True, help="polymarket, manifold, kalshi: record trades, and compare published profits."
)
@click.option("--strict", is_flag=True, help="Exit with 1 if a published result is not the one that comes out.")
@click.option("--dry-run", is_flag=True, help="Print the counts only, and record nothing.")
@name_option
@table_options
@errors_option
@report_errors
def import_from(
    kind: str,
    log: str,
    path: Path,
    rules: str | None,
    keep_missing: bool,
    take_back: bool,
    prices_only: bool,
    trades: bool,
    strict: bool,
    dry_run: bool,
    name: str,
    view: View,
    errors: str,
) -> None:
    """Append the contents of PATH, in a published format.

    metaculus: the folder of a data download. hubverse: the folder of a hub, with hub-config and model-output.
    forecastbench: a folder of question, forecast and resolution sets. polymarket, manifold, kalshi: a folder, or one
    file, of saved answers of the platform's API, as JSON or JSON lines. PATH may also be a zip of it. Nothing is
    downloaded, and the files are only read. With --trades, what people bought and sold is recorded in their accounts,
    and profits that the files publish are compared with those that come out. A newer copy brings the ledger to what it
    says: what is the same counts as a duplicate, what is new or corrected is recorded, and what is gone is taken back,
    unless --keep-missing. Refusals and items that are not carried over are counted by reason on stderr; if a command is
    refused, or another writer recorded events of the same source meanwhile, the exit code is 1.
    """
    from forecast_ledger.replay.importing.published_results import compare_published
    from forecast_ledger.replay.importing.question_forecasts import Following
    from forecast_ledger.replay.importing.record_copy import FollowedCopy, record_copy
    from forecast_ledger.replay.importing.source_files import SourceFiles
    from forecast_ledger.replay.writing.append import Uncounted

    require_columns(view, COUNT_COLUMNS)
    if strict and not trades:
        raise click.UsageError("--strict is about published results, which are compared with --trades")
    read = _reader(kind, rules, prices_only=prices_only, trades=trades)
    files = SourceFiles(path)
    try:
        source = read(files)
        following = Following(time.time_ns() // 1_000, keep_missing=keep_missing, take_back=take_back)
        copy = FollowedCopy(source, following)
        with (
            summed_refusals(errors) as on_refusal,
            opened(log, name, dry_run=dry_run) as (ledger, _),
            progress("commands") as on_progress,
        ):
            uncounted = Uncounted(ledger)
            counts = record_copy(ledger, copy, on_refusal, on_progress=on_progress, noted=uncounted.noted)
            head, boards = ledger.head(), uncounted.boards()
            compared = compare_published(ledger.read(), source.published)
    finally:
        files.close()
    say_lines((*copy.lines(), *compared.lines(), *["nothing was written"] * dry_run), boards)
    position = {} if dry_run else {"log_position": head.position, "digest": head.digest}
    row = {**counts, "not_carried_over": sum(copy.left_out.counts.values()), **position}
    emit(COUNT_COLUMNS[: len(row)], [row], view)
    if counts["refused"] or copy.others or (strict and compared.differences):
        sys.exit(FINDINGS)


def _reader(kind: str, rules: str | None, *, prices_only: bool, trades: bool) -> "Callable[[SourceFiles], Source]":
    """Return what reads the files of a format, as the options say. Raises UsageError: they do not fit."""
    from forecast_ledger.replay.importing.kinds import KINDS
    from forecast_ledger.replay.importing.market_items import prices_alone

    of_kind = KINDS[kind]
    if rules is not None:
        require_name("preset", rules, list(PRESETS))
    if prices_only and not of_kind.bettors_of:
        raise click.UsageError(f"--prices-only is for manifold; {kind} has no bets of people")
    trading = PRESETS[rules].trading if rules is not None else None
    if trades and rules is not None and not (trading and trading.recorded_trades):
        raise click.UsageError(
            f"--trades needs rules that take trades of elsewhere, such as market-trades; {rules} does not"
        )
    read = of_kind.traded if trades else of_kind.read
    if read is None:
        raise click.UsageError(f"--trades is for polymarket, manifold and kalshi; {kind} has no trades")

    def source(files: "SourceFiles") -> "Source":
        copy = read(files, rules)
        return copy._replace(items=prices_alone(copy.items, of_kind.bettors_of)) if prices_only else copy

    return source


@click.command(epilog="Example: forecast-ledger pay season.db spring-cup")
@log_argument
@click.argument("contest", shell_complete=completion.ids("contest"))
@name_option
@table_options
@report_errors
def pay(log: str, contest: str, name: str, view: View) -> None:
    """Pay the winners of a finalized CONTEST.

    Each prize of the sealed board is recorded once; running the command again changes nothing. If only some prizes are
    recorded, because a log was cut short, the others are recorded.
    """
    from forecast_ledger.ledger.storing.writer import Ledger
    from forecast_ledger.projections.tables.catalogue import CATALOGUE
    from forecast_ledger.replay.writing.store import pay as paid

    require_columns(view, [column.name for column in CATALOGUE["prizes"].columns])
    require_contest(contest, replay_log(log, name, None))  # this does not create a log that does not exist
    with Ledger.open(log, name, prizes=board_prizes) as ledger:
        receipt = paid(ledger, contest)
    season = replay_log(log, name, None)
    table = season.projections.table("prizes").only("contest", contest)
    emit_table(table, view, Look(keep=("participant", "prize", "paid")))
    say("already paid; nothing was recorded" if receipt is None else f"paid from log position {receipt.first} on")
    say_season(season, [contest])
    different = [row["participant"] for row in table.rows() if row["prize"] != row["paid"]]
    if different:
        say(f"paid amounts differ from the sealed board for {in_list(different)}; `verify` names the log positions")
        sys.exit(FINDINGS)
