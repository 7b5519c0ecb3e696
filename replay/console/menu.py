"""The first page of help: commands in groups, each with a summary, of the same width on every terminal."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from forecast_ledger.replay.console.exits import SIGNALLED
from forecast_ledger.replay.console.signals import signal_of

WIDTH = 80  # characters of a line of help, on every terminal


class Place(NamedTuple):
    """Where a command is, as `module:name` of a module of this package, and the first line of its help."""

    command: str
    summary: str


class Menu(click.Group):
    """Commands that the first page of help lists by group, and that are loaded when they are asked for.

    places: title of a group -> names of commands, in the order of the page, each with its place.
    """

    def __init__(self, *args: Any, places: Mapping[str, Mapping[str, Place]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = places
        self._places = {name: place for group in places.values() for name, place in group.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, loaded or not."""
        return sorted({*super().list_commands(ctx), *self._places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, loaded now if it has not been; None if there is none of this name."""
        if cmd_name in self._places and cmd_name not in self.commands:
            module, _, name = self._places[cmd_name].command.partition(":")
            self.add_command(getattr(import_module(f"{__package__.rpartition('.')[0]}.{module}"), name), cmd_name)
        return super().get_command(ctx, cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Suggest options and commands, without loading these."""
        items = [CompletionItem(name, help=_short(self._places[name].summary)) for name in sorted(self._places)]
        own = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in items if item.value.startswith(incomplete)] + own

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
        longest = max(map(len, self._places))
        for title, group in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{longest}}", place.summary) for name, place in group.items()])


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
        sys.exit(SIGNALLED + number)


def _short(summary: str) -> str:
    """Return a summary as click shortens that of a command for shells."""
    return click.Command(None, help=f"{summary}.").get_short_help_str()
