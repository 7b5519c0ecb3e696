"""The entry point of the command line: the commands by group, each loaded when it is asked for.

Exit codes: 0 fine, 1 findings, 2 wrong usage, 3 store unreadable or locked, 4 log damaged, 5 unknown whether it was
recorded, 128 + N stopped by signal N.
"""

import os

import click

from forecast_ledger.replay.console.exits import (
    DAMAGED,
    FINDINGS,
    FINE,
    UNCERTAIN,
    UNREADABLE,
    USAGE,
    prepare_streams,
)
from forecast_ledger.replay.console.menu import WIDTH, Menu, Place

__all__ = ["DAMAGED", "FINDINGS", "FINE", "UNCERTAIN", "UNREADABLE", "USAGE", "main"]

COMMANDS = {
    "Record": {
        "append": Place("cli.append:append", "Append the commands in FILE to a log"),
        "import-from": Place("cli.record:import_from", "Append the contents of PATH, in a published format"),
        "pay": Place("cli.record:pay", "Pay the winners of a finalized CONTEST"),
        "import": Place("cli.export:restore", "Copy the log in EXPORT into a new ledger"),
    },
    "Read": {
        "leaderboard": Place("cli.read:leaderboard", "Print the leaderboard of a CONTEST, best first"),
        "table": Place("cli.read:table", "Print the table of a PROJECTION"),
        "columns": Place("cli.read:columns", "Explain the columns of every projection, or of one PROJECTION"),
        "rules": Place("cli.reference:rules_", "List the presets of rules, or every field of one rule set"),
        "log": Place("cli.audit:log_", "List the events of a log in their order, one per line"),
        "show": Place("cli.audit:show", "Show the row at a log POSITION, field by field"),
        "report": Place("cli.report:report", "Write a page of boards, pictures and participants"),
        "plot": Place("cli.report:plot", "Draw one picture of a contest as SVG, PNG or Vega-Lite"),
    },
    "Audit": {
        "verify": Place("cli.audit:verify", "Check every row of a log, every decision and every prize"),
        "audit": Place("cli.report:audit", "Check a log, and write an auditor's working paper"),
        "checkpoint": Place("cli.audit:checkpoint", "Print a checkpoint, for `verify --checkpoint`"),
        "balance": Place("cli.audit:balance", "Print the trial balance: accounts by contest"),
        "replay": Place("cli.read:replay", "Rebuild every projection and print its digest"),
        "compare": Place("cli.compare:compare", "Compare a published table, a CSV, with the same table of a log"),
    },
    "Research": {
        "explain": Place("cli.explain:explain", "Explain a number: its parts, its rule, its events"),
        "diff": Place("cli.explain:diff", "Compare a table as of two log positions or instants"),
        "blame": Place("cli.explain:blame", "Find the event that last changed each column of a row"),
        "what-if": Place("cli.compare:what_if", "Show what more commands or other rules would change in a table"),
        "export": Place("cli.export:export", "Write the events and all tables to OUT"),
        "seal": Place("cli.export:seal", "Write the log as Parquet files to FOLDER, in segments"),
    },
    "Operate": {
        "follow": Place("cli.follow:follow", "Keep tables in an SQLite file up to date with a log"),
        "schema": Place("cli.reference:schema", "Print the JSON Schema of commands, events, rule sets or errors"),
        "help": Place("cli.reference:help_", "Explain a topic, command, event, refusal, rule, table or word"),
        "completion": Place("cli.completion:completion", "Print a script that lets a SHELL complete commands and ids"),
        "demo": Place("cli.demo:demo", "Rebuild a published tournament and check every figure"),
    },
}


def _version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    if requested and not ctx.resilient_parsing:
        from forecast_ledger.replay.reading.version import DISTRIBUTION, code_version

        click.echo(f"{DISTRIBUTION} {code_version()}")
        ctx.exit()


@click.group(
    cls=Menu,
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "terminal_width": WIDTH},
    epilog="`forecast-ledger COMMAND --help` explains a command and shows an example. `forecast-ledger completion "
    "--help` explains how to make the shell complete commands, options, tables and the ids in a log.",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
def main() -> None:
    """Record forecasts in an event-sourced log, and compute exact scores, ranks and prizes from it.

    LOG is an SQLite file, a postgresql:// URL, or a folder that `seal` made. Data goes to stdout, everything else to
    stderr.

    \b
    forecast-ledger demo
    forecast-ledger append season.db commands.jsonl
    forecast-ledger leaderboard season.db spring-cup
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    prepare_streams()
    # NumPy would start threads for products of matrices when it is imported, which costs more than they save here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
