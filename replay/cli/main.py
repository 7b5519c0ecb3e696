"""The entry point of the command line: the commands by group, each loaded when it is asked for.

Exit codes: 0 fine, 1 findings, 2 wrong usage, 3 store unreadable or locked, 4 log damaged, 5 unknown whether it was
recorded, 128 + N stopped by signal N.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from forecast_ledger.replay.cli.signals import prepare_streams, signal_of, unwrapped_interrupts
from forecast_ledger.replay.reference.exit_codes import DAMAGED, FINDINGS, FINE, SIGNALLED, UNCERTAIN, UNREADABLE, USAGE

# --- The first page of help: commands in groups, each with a summary, of the same width on every terminal.


WIDTH = 80  # characters of a line of help, on every terminal


class Entry(NamedTuple):
    """A command of the menu, as `module:name` of a module of this package, and the first line of its help."""

    command: str
    summary: str


class Menu(click.Group):
    """Commands that the first page of help lists by group, and that are loaded when they are asked for.

    entries: title of a group -> names of commands, in the order of the page, each with its entry.
    """

    def __init__(self, *args: Any, entries: Mapping[str, Mapping[str, Entry]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = entries
        self._entries = {name: entry for group in entries.values() for name, entry in group.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, loaded or not."""
        return sorted({*super().list_commands(ctx), *self._entries})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, loaded now if it has not been; None if there is none of this name."""
        if cmd_name in self._entries and cmd_name not in self.commands:
            module, _, name = self._entries[cmd_name].command.partition(":")
            self.add_command(getattr(import_module(f"{__package__.rpartition('.')[0]}.{module}"), name), cmd_name)
        return super().get_command(ctx, cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Suggest options and commands, without loading these."""
        items = [CompletionItem(name, help=_short(self._entries[name].summary)) for name in sorted(self._entries)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in items if item.value.startswith(incomplete)] + options

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """As in click, but with plain messages: no control characters, no secrets of locations, and signals named."""
        with _plain_ends():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """As in click, but with plain messages; see `make_context`."""
        with _plain_ends():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group; the summaries of all sections are aligned and never cut."""
        del ctx
        longest = max(map(len, self._entries))
        for title, group in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{longest}}", entry.summary) for name, entry in group.items()])


@contextmanager
def _plain_ends() -> Iterator[None]:
    try:
        with unwrapped_interrupts():
            yield
    except click.ClickException as error:
        # Late: only an error needs them.
        from forecast_ledger.ledger.core.redaction import redacted_text
        from forecast_ledger.projections.core.text_table import escape

        if isinstance(error, click.NoSuchOption) and error.option_name in {"-o", "--out", "--output"}:
            _tell_where_it_goes(error)
        vars(error)["message"] = "\n".join(map(escape, redacted_text(error.message).split("\n")))
        raise
    except KeyboardInterrupt as stopped:  # before or after the work of a command, which reports its own
        number = signal_of(stopped)
        click.echo(f"forecast-ledger: stopped by {number.name}", err=True)
        sys.exit(SIGNALLED + number)


def _tell_where_it_goes(error: click.NoSuchOption) -> None:
    """Say how a command is told what to write, instead of naming the option that is spelled most like this one."""
    names = {parameter.name for parameter in error.ctx.command.params} if error.ctx else set()
    remedies = {
        "out": " Name what is to be written as the last argument.",
        "most": " To write what is printed to a file, add: > FILE",
    }
    remedy = "".join(text for name, text in remedies.items() if name in names)
    vars(error).update(message=error.message + remedy, possibilities=None)


def _short(summary: str) -> str:
    """Return a summary as click shortens that of a command for shells."""
    return click.Command(None, help=f"{summary}.").get_short_help_str()


__all__ = ["DAMAGED", "FINDINGS", "FINE", "UNCERTAIN", "UNREADABLE", "USAGE", "main"]

COMMANDS = {
    "Record": {
        "score": Entry("cli.score:score", "Score a table of forecasts in one step, and print its board"),
        "append": Entry("cli.append:append", "Append the commands in FILE to a log"),
        "import-from": Entry("cli.record:import_from", "Append the contents of PATH, in a published format"),
        "pay": Entry("cli.record:pay", "Pay the winners of a finalized CONTEST"),
        "import": Entry("cli.export:restore", "Copy the log in EXPORT into a new ledger"),
    },
    "Read": {
        "leaderboard": Entry("cli.read:leaderboard", "Print the leaderboard of a CONTEST, best first"),
        "table": Entry("cli.read:table", "Print the table of a PROJECTION"),
        "columns": Entry("cli.read:columns", "Explain the columns of every projection, or of one PROJECTION"),
        "rules": Entry("cli.reference:rules_", "List the presets of rules, or every field of one rule set"),
        "log": Entry("cli.audit:log_", "List the events of a log in their order, one per line"),
        "show": Entry("cli.audit:show", "Show the row at a log POSITION, field by field"),
        "report": Entry("cli.report:report", "Write a page of boards, pictures and participants"),
        "plot": Entry("cli.report:plot", "Draw one picture of a contest as SVG, PNG or Vega-Lite"),
    },
    "Audit": {
        "verify": Entry("cli.audit:verify", "Check every row of a log, every decision and every prize"),
        "audit": Entry("cli.report:audit", "Check a log, and write an auditor's working paper"),
        "checkpoint": Entry("cli.audit:checkpoint", "Print a checkpoint, for `verify --checkpoint`"),
        "balance": Entry("cli.audit:balance", "Print the trial balance: accounts by contest"),
        "replay": Entry("cli.read:replay", "Rebuild every projection and print its digest"),
        "tie-out": Entry("cli.audit:tie_out", "Print a sheet from documents to prizes, to tie to the bank"),
        "sample": Entry("cli.audit:sample", "Draw numbers to examine by hand, or evaluate what was found"),
        "pack": Entry("cli.report:pack", "Pack a log in a zip that can be checked without this program"),
        "compare": Entry("cli.compare:compare", "Compare a published table, a CSV, with the same table of a log"),
    },
    "Research": {
        "explain": Entry("cli.explain:explain", "Explain a number: its parts, its rule, its events"),
        "diff": Entry("cli.explain:diff", "Compare a table as of two log positions or instants"),
        "blame": Entry("cli.explain:blame", "Find the event that last changed each column of a row"),
        "what-if": Entry("cli.compare:what_if", "Show what more commands or other rules would change in a table"),
        "export": Entry("cli.export:export", "Write the events and all tables to OUT"),
        "seal": Entry("cli.export:seal", "Write the log as Parquet files to FOLDER, in segments"),
    },
    "Operate": {
        "ledgers": Entry("cli.audit:ledgers", "List the ledgers of a store with their size and head"),
        "follow": Entry("cli.export:follow", "Keep tables in SQLite or PostgreSQL up to date with a log"),
        "schema": Entry("cli.reference:schema", "Print JSON Schemas of commands, events, rules, errors or tables"),
        "help": Entry("cli.reference:help_", "Explain a topic, command, event, refusal, rule, table or word"),
        "completion": Entry("cli.completion:completion", "Print a script that lets a SHELL complete commands and ids"),
        "demo": Entry("cli.demo:demo", "Rebuild a published tournament and check every figure"),
    },
}


def _version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    if requested and not ctx.resilient_parsing:
        # Late: what reads the version takes half as long as the whole help.
        from forecast_ledger.ledger.core.version import DISTRIBUTION, code_version

        click.echo(f"{DISTRIBUTION} {code_version()}")
        ctx.exit()


@click.group(
    cls=Menu,
    entries=COMMANDS,
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
    forecast-ledger score forecasts.csv answers.csv
    forecast-ledger append season.db commands.jsonl
    forecast-ledger leaderboard season.db spring-cup
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    prepare_streams()
    # NumPy would start threads for products of matrices when it is imported, which costs more than they save here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
