"""The first page of help: commands in groups, each with a summary, of the same width on every terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from forecast_ledger.replay.console.signals import signal_of

WIDTH = 80  # characters of a line of help, on every terminal


class Menu(click.Group):
    """Commands that the first page of help lists by group.

    groups: title -> names of commands, in the order of the page.
    """

    groups: dict[str, tuple[str, ...]]

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
        longest = max(map(len, self.commands))
        for title, names in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{longest}}", summary(self.commands[name])) for name in names])


@contextmanager
def _plain_ends() -> Iterator[None]:
    try:
        yield
    except click.ClickException as error:
        from forecast_ledger.ledger.core.redaction import redacted_text
        from forecast_ledger.replay.reading.text_tables import escape

        vars(error)["message"] = "\n".join(map(escape, redacted_text(error.message).split("\n")))
        raise
    except KeyboardInterrupt as stopped:  # before or after the work of a command, which reports its own
        number = signal_of(stopped)
        click.echo(f"forecast-ledger: stopped by {number.name}", err=True)
        sys.exit(128 + number)


def summary(command: click.Command) -> str:
    """Return the first line of a command's help without its full stop."""
    return (command.help or "").partition("\n")[0].removesuffix(".")
