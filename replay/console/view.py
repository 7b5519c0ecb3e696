"""The view of a table that is printed: its format, columns, rows, and how many of them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from forecast_ledger.replay.reading.text_tables import PrintedRow

_Option = Callable[[Callable[..., None]], Callable[..., None]]


class Condition(NamedTuple):
    """A value that a row must have in a column or, if negated, must not have."""

    column: str
    value: str
    negated: bool = False

    def holds(self, row: "PrintedRow") -> bool:
        """Report whether a row meets it. Values are compared as printed, with or without trailing zeros."""
        value = row[self.column]
        text = "" if value is None else str(value)
        return (self.value in {text, without_zeros(text)}) != self.negated


class View(NamedTuple):
    """How a table is printed.

    form: table, json or csv. columns: the columns to print, in this order; all if empty. where: conditions that every
    printed row meets. limit: the greatest number of rows. wide: print every column and value in full on a terminal too.
    """

    form: str = "table"
    columns: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    limit: int | None = None
    wide: bool = False

    def named_columns(self) -> list[str]:
        """Return the columns that the view names, to print or in conditions."""
        return [*self.columns, *(condition.column for condition in self.where)]


class Look(NamedTuple):
    """How to fit the columns of a table into a terminal.

    kinds: column -> its kind in the projection's schema. keep: columns that are shown even if all rows have the same
    value. key: columns that are left out only if all rows have the same value. spare: columns to leave out first.
    chosen: the user chose the columns, so none is left out.
    """

    kinds: Mapping[str, str] = {}
    keep: Collection[str] = ()
    key: Collection[str] = ()
    spare: Collection[str] = ()
    chosen: bool = False


class Selected:
    """The rows of a view, as they are read.

    read, met, printed: counts of all rows, of the rows that meet every condition, and of the rows to print; complete
    after the last row was read.
    """

    def __init__(self, view: View, rows: Iterable["PrintedRow"]) -> None:
        self.read = self.met = self.printed = 0
        self._view, self._rows = view, rows

    def __iter__(self) -> Iterator["PrintedRow"]:
        """Yield the rows to print. Rows past the limit are read too, because reading them may do other work."""
        _, columns, where, limit, _ = self._view
        for row in self._rows:
            self.read += 1
            if not all(condition.holds(row) for condition in where):
                continue
            self.met += 1
            if limit is None or self.met <= limit:
                self.printed += 1
                yield {name: row[name] for name in columns} if columns else row

    def note(self) -> str | None:
        """Return a note on rows that are not printed, or on a table without rows; None if there is nothing to say."""
        if not self.read:
            return "no rows"
        if not self.met:
            return f"no rows meet --where; there are {self.read:,} in all"
        among = f", of {self.read:,} in all" if self.met < self.read else ""
        if self.printed < self.met:
            met = "that meet --where are" if among else "are"
            return f"{self.printed:,} of {self.met:,} rows {met} shown{among}"
        return f"{self.met:,} {'row meets' if self.met == 1 else 'rows meet'} --where{among}" if among else None


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that print a table; the command gets them as its argument `view`."""
    return _decorated(command, _OPTIONS)


def listing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the same options without --limit, for a command that has its own."""
    return _decorated(command, [option for option in _OPTIONS if option is not _LIMIT])


def _decorated(command: Callable[..., None], options: Sequence[_Option]) -> Callable[..., None]:
    @wraps(command)
    def run(*args: Any, form: str, shown: tuple[str, ...], where: tuple[Condition, ...], **kwargs: Any) -> None:
        view = View(form, shown, where, kwargs.pop("most", None), kwargs.pop("wide"))
        command(*args, view=view, **kwargs)

    decorated: Callable[..., None] = run
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def without_zeros(text: str) -> str:
    """Remove trailing zeros from a decimal; any other text is returned as it is.

    >>> without_zeros("0.500"), without_zeros("-3.00"), without_zeros("100"), without_zeros("1.0.0")
    ('0.5', '-3', '100', '1.0.0')
    """
    whole, point, fraction = text.partition(".")
    is_decimal = point and fraction.isdigit() and whole.removeprefix("-").isdigit()
    return f"{whole}.{fraction.rstrip('0')}".rstrip(".") if is_decimal else text


def _names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Split a list at its commas, and drop repeated names."""
    return () if text is None else tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def _conditions(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[Condition, ...]:
    """Read conditions written as COLUMN=VALUE or COLUMN!=VALUE."""
    conditions = []
    for text in texts:
        column, sign, value = text.partition("=")
        if not sign:
            raise click.BadParameter(f"{text!r} has no '='; write COLUMN=VALUE or COLUMN!=VALUE")
        conditions.append(Condition(column.removesuffix("!").strip(), value, column.endswith("!")))
    return tuple(conditions)


_LIMIT = click.option("--limit", "most", type=click.IntRange(1), metavar="COUNT", help="Print at most this many rows.")
_OPTIONS: list[_Option] = [
    click.option(
        "--format",
        "form",
        type=click.Choice(["table", "json", "csv"]),
        default="table",
        show_default=True,
        help="Print an aligned table, a JSON array of objects, or CSV.",
    ),
    click.option(
        "--columns", "shown", metavar="A,B,C", callback=_names, help="Print only these columns, in this order."
    ),
    click.option(
        "--where",
        multiple=True,
        metavar="COLUMN=VALUE",
        callback=_conditions,
        help="Print only rows with this value in this column; COLUMN!=VALUE excludes them. Repeatable.",
    ),
    _LIMIT,
    click.option("--wide", is_flag=True, help="Print every column and value in full on a terminal too."),
]
