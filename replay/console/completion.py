"""What a shell may complete: the names of tables, and the ids in the log on the command line.

The shell waits meanwhile, so the log is read for a moment only, and nothing that goes wrong is said. Only files are
read, as `log` reads them: none is created, and no writer waits. Logs on a database server are not read. An id that
would mean something to a shell, such as `$(reboot)`, is not suggested: a shell may put it on the line as it is.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_SECONDS = 0.5  # that are spent reading
_MOST = 1_000  # suggestions: nobody reads more
Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def logs(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """A log is a file, which the shell itself completes."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def tables(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The names of projections."""
    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE

    return _items(CATALOGUE, incomplete)


def checks(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The names of `verify`'s checks."""
    from forecast_ledger.replay.audit.verify import CHECKS

    return _items(CHECKS, incomplete)


def types(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The types of events, without their versions."""
    from forecast_ledger.ledger.model.events import TAGS

    names = (tag.partition(".")[0] for tag in TAGS.values())
    return _items(dict.fromkeys(names), incomplete)


def ids(field: str) -> Complete:
    """The ids in the log that events have in this field: "contest", "question" or "participant"."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        return _ids(ctx, field, incomplete)

    return complete


def explained(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The next part of the key of a number that is explained."""
    fields = (
        ["contest", "question", "participant"] if ctx.params.get("number") == "score" else ["contest", "participant"]
    )
    return _next(ctx, fields, incomplete)


def keys(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The next part of the key of a row of a table."""
    from forecast_ledger.projections.catalogue.catalogue import CATALOGUE

    try:
        fields = CATALOGUE[str(ctx.params.get("projection"))].key
    except KeyError:
        return []
    return _next(ctx, list(fields), incomplete)


def _next(ctx: click.Context, fields: list[str], incomplete: str) -> "list[CompletionItem]":
    given = len(ctx.params.get("key") or ())
    return _ids(ctx, fields[given], incomplete) if given < len(fields) else []


def _ids(ctx: click.Context, field: str, incomplete: str) -> "list[CompletionItem]":
    """The ids that begin so, sorted, as far as the log was read in time."""
    from shlex import quote

    from forecast_ledger.ledger.model.log import decode_row
    from forecast_ledger.replay.reading.replay import open_store

    found: dict[str, None] = {}
    given = ctx.params.get("log") or next(iter(ctx.args), "")  # the latter while an option waits for its value
    log, name = str(given).removeprefix("sqlite:///"), str(ctx.params.get("name") or "main")
    if not Path(log).is_file():
        return []

    def read() -> None:
        with suppress(Exception), open_store(log, name) as store:
            for position, row in enumerate(chain.from_iterable(store.pages()), 1):
                each: str = getattr(decode_row(row, position).event, field, "")
                if each.startswith(incomplete) and not each.startswith("-") and quote(each) == each:
                    found[each] = None
                if len(found) == _MOST:
                    return

    reader = Thread(target=read, daemon=True)  # a store that is locked is not waited for
    reader.start()
    reader.join(_SECONDS)
    return _items(sorted([*found]), incomplete)


def _items(names: Iterable[str], incomplete: str) -> "list[CompletionItem]":
    """The names that begin so."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
