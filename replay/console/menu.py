"""The first page of help: commands in groups, each with one whole sentence, the same on every terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

WIDTH = 80  # characters of a line of help, whatever the terminal


class Menu(click.Group):
    """Commands that the first page of help lists by group.

    groups: title -> names of commands, in the order of the page.
    """

    groups: dict[str, tuple[str, ...]]

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """As click does, but no error repeats what a terminal would obey."""
        with _inert():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """As click does, but no error repeats what a terminal would obey."""
        with _inert():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group; summaries are not cut, and stand one below the other in all of them."""
        del ctx
        longest = max(map(len, self.commands))
        for title, names in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{longest}}", summary(self.commands[name])) for name in names])


@contextmanager
def _inert() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        from forecast_ledger.replay.reading.text_tables import escape

        vars(error)["message"] = "\n".join(map(escape, error.message.split("\n")))
        raise


def summary(command: click.Command) -> str:
    """The first paragraph of a command's help, which is one line, without its full stop."""
    return (command.help or "").partition("\n")[0].removesuffix(".")
