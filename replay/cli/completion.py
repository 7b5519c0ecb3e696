"""Completion for shells: the names of tables, and the ids in the log that the command line names.

The shell waits for the answer, so a log is read for half a second at most, and errors are not reported. Only files
are read, in the same way as by `log`: no file is created, and no writer waits. Logs on a database server are not read.
An id that a shell would interpret, such as `$(reboot)`, is not suggested, because a shell may insert it without quotes.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from threading import Thread

import click
from click.shell_completion import CompletionItem, get_completion_class

from forecast_ledger.replay.cli.shell import report_errors

_SECONDS = 0.5  # for reading a log
_MOST = 1_000  # suggestions
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@click.command("completion", epilog="Example: forecast-ledger completion bash")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@report_errors
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that lets a SHELL complete commands and ids.

    \b
    bash: put eval "$(forecast-ledger completion bash)" in ~/.bashrc
    zsh:  put eval "$(forecast-ledger completion zsh)" in ~/.zshrc, after compinit
    fish: forecast-ledger completion fish > ~/.config/fish/completions/forecast-ledger.fish

    The shell then completes the names of tables, and the contests, questions and participants in the log that the line
    names before them. The log is read for half a second at most, and never changed. Logs on a database server are not
    read.
    """  # noqa: D301 - click keeps the lines of a paragraph that starts with this character
    script = get_completion_class(shell)
    if script is not None:
        print(script(ctx.find_root().command, {}, "forecast-ledger", "_FORECAST_LEDGER_COMPLETE").source())


def tables(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Suggest names of projections."""
    from forecast_ledger.projections.tables.catalogue import CATALOGUE

    return items(CATALOGUE, incomplete)


def types(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Suggest types of events, without their versions."""
    from forecast_ledger.ledger.model.events import TAGS

    names = (tag.partition(".")[0] for tag in TAGS.values())
    return items(dict.fromkeys(names), incomplete)


def ids(field: str) -> Complete:
    """Return a completion by the ids that events of the log have in a field: contest, question or participant."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _ids(ctx, field, incomplete)

    return complete


def row_key(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Suggest the next part of the key of a row."""
    from forecast_ledger.projections.tables.catalogue import CATALOGUE

    try:
        fields = CATALOGUE[str(ctx.params.get("projection"))].key
    except KeyError:
        return []
    return next_id(ctx, list(fields), incomplete)


def next_id(ctx: click.Context, fields: list[str], incomplete: str) -> list[CompletionItem]:
    """Suggest the next id of a key, of which the command line may already have some. fields: those of its ids."""
    given = len(ctx.params.get("key") or ())
    return _ids(ctx, fields[given], incomplete) if given < len(fields) else []


def _ids(ctx: click.Context, field: str, incomplete: str) -> list[CompletionItem]:
    """Suggest ids with this beginning, sorted, from the part of the log that can be read in time."""
    from shlex import quote

    from forecast_ledger.ledger.model.log import decode_row
    from forecast_ledger.replay.reading.log import Log

    suggested: dict[str, None] = {}
    given = ctx.params.get("log") or next(iter(ctx.args), "")  # the latter if an option is being completed
    log, name = str(given).removeprefix("sqlite:///"), str(ctx.params.get("name") or "main")
    if not (Path(log).is_file() or Path(log, "segments.json").is_file()):
        return []

    def read() -> None:
        """Collect the values of the field in the log that begin with the incomplete word."""
        with suppress(Exception), Log(log, name).opened() as store:
            for position, row in enumerate(chain.from_iterable(store.pages()), 1):
                value: str = getattr(decode_row(row, position).event, field, "")
                if value.startswith(incomplete) and not value.startswith("-") and quote(value) == value:
                    suggested[value] = None
                if len(suggested) == _MOST:
                    return

    reader = Thread(target=read, daemon=True)  # do not wait for a store that is locked
    reader.start()
    reader.join(_SECONDS)
    return items(sorted([*suggested]), incomplete)


def items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Suggest those names that have this beginning."""
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
