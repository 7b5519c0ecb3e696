"""The command that imports the field's own formats."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forecast_ledger.replay.cli.append import opened
from forecast_ledger.replay.console.shell import (
    FINDINGS,
    emit,
    errors_option,
    log_argument,
    name_option,
    progress,
    report_errors,
    require_columns,
    require_name,
    say,
    summed_refusals,
)
from forecast_ledger.replay.console.view import View, table_options

if TYPE_CHECKING:
    from forecast_ledger.ledger.storing.writer import Ledger
    from forecast_ledger.replay.writing.append import LineWatch, OnRefusal
    from forecast_ledger.replay.writing.command_lines import ReadCommand

COUNT_COLUMNS = ["accepted", "duplicate", "refused", "not_carried_over", "log_position", "digest"]
_KINDS = ["forecastbench", "hubverse", "metaculus"]
_SHOWN = 1_000  # commands between two steps of the progress bar


@click.command("import-from", epilog="Example: forecast-ledger import-from hubverse season.db FluSight-forecast-hub")
@click.argument("kind", type=click.Choice(_KINDS))
@log_argument
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--rules", metavar="PRESET", help="Open contests under this preset instead of the usual rules.")
@click.option("--dry-run", is_flag=True, help="Print the counts only, and record nothing.")
@name_option
@table_options
@errors_option
@report_errors
def import_from(
    kind: str, log: str, path: Path, rules: str | None, dry_run: bool, name: str, view: View, errors: str
) -> None:
    """Append the contents of PATH, in a published format.

    metaculus: the folder of a data download. hubverse: the folder of a hub, with hub-config and model-output.
    forecastbench: a folder of question, forecast and resolution sets. PATH may also be a zip of it. Nothing is
    downloaded, and the files are only read. Items that are already recorded count as duplicates, so that a newer copy
    adds only new items. Refusals and items that are not carried over are counted by reason on stderr; if a command is
    refused, the exit code is 1.
    """
    from forecast_ledger.ledger.model.rules import PRESETS
    from forecast_ledger.replay.importing.kinds import KINDS
    from forecast_ledger.replay.importing.source_files import SourceFiles
    from forecast_ledger.replay.importing.source_items import LeftOut, carried, with_changed_times

    require_columns(view, COUNT_COLUMNS)
    if rules is not None:
        require_name("preset", rules, list(PRESETS))
    files, left_out = SourceFiles(path), LeftOut()
    try:
        source = KINDS[kind].read(files, rules)
        with (
            summed_refusals(errors) as tell,
            opened(log, name, dry_run=dry_run) as (ledger, _),
            progress("commands") as watch,
        ):
            commands = carried(with_changed_times(source, ledger.read), left_out)
            counts = _append_all(ledger, commands, watch, tell)
            head = ledger.head()
    finally:
        files.close()
    for line in left_out.lines():
        say(line)
    if dry_run:
        say("nothing was written")
    position = {} if dry_run else {"log_position": head.position, "digest": head.digest}
    row = {**counts, "not_carried_over": sum(left_out.counts.values()), **position}
    emit(COUNT_COLUMNS[: len(row)], [row], view)
    if counts["refused"]:
        sys.exit(FINDINGS)


def _append_all(
    ledger: "Ledger", source: "Iterable[ReadCommand]", watch: "LineWatch", tell: "OnRefusal"
) -> dict[str, int]:
    """Append the commands, then the answers that replace others.

    Returns the numbers of outcomes.
    """
    from forecast_ledger.replay.importing.source_items import Settled
    from forecast_ledger.replay.writing.append import append_batches, tally

    counts, settled = {"accepted": 0, "duplicate": 0, "refused": 0}, Settled()
    for each in (source, None):
        found = settled.corrections(ledger.read) if each is None else each
        outcomes = settled.pass_on(append_batches(ledger, found, lambda _: None))
        for number, _ in enumerate(tally(outcomes, tell, counts), 1):
            if not number % _SHOWN:
                watch(sum(counts.values()))
    return counts


COMMANDS = (import_from,)
