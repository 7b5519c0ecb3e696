"""What of a table is printed, and as what: its form, columns, rows, and how many of them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

import click

Row = dict[str, Any]
_Option = Callable[[Callable[..., None]], Callable[..., None]]


class Condition(NamedTuple):
    """What a row must have in a column, or, if it is negated, must not have."""

    column: str
    value: str
    negated: bool = False

    def holds(self, row: Row) -> bool:
        """Whether a row is so: its value is compared as it is printed, with or without the zeros at its end."""
        value = row[self.column]
        text = "" if value is None else str(value)
        return (self.value in {text, without_zeros(text)}) != self.negated


class View(NamedTuple):
    """How a table is printed.

    columns: those to print, in this order; all if empty. where: what every printed row meets. limit: how many rows are
    printed at most. wide: whether a terminal shows every column, and every value whole.
    """

    form: str = "table"
    columns: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    limit: int | None = None
    wide: bool = False

    def asked(self) -> list[str]:
        """The columns that it names."""
        return [*self.columns, *(condition.column for condition in self.where)]


class Look(NamedTuple):
    """What is known of a table's columns. kinds: as in a projection's schema, by the column's name. keep: columns that
    are shown though all rows agree in them. spare: columns that are left out first where room is short. chosen: whether
    somebody chose the columns, so that none is left out.
    """

    kinds: Mapping[str, str] = {}
    keep: Collection[str] = ()
    spare: Collection[str] = ()
    chosen: bool = False


class Selected:
    """The rows of a view, as they are read. `read`, `met` and `printed` count all rows, those that meet every
    condition, and those that are printed; they are complete once every row was read.
    """

    def __init__(self, view: View, rows: Iterable[Row]) -> None:
        self.read = self.met = self.printed = 0
        self._view, self._rows = view, rows

    def __iter__(self) -> Iterator[Row]:
        """Every row is read, also past the limit: what reads them may have more to do than to print."""
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
        """What is to be said about the rows that are not printed, and about a table without rows."""
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
    """The options of every command that prints a table; the command is given them as its `view`."""
    return _decorated(command, _OPTIONS)


def listing_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same without --limit, for a command that has its own."""
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
    """A decimal without the zeros at its end; any other text as it is.

    >>> without_zeros("0.500"), without_zeros("-3.00"), without_zeros("100"), without_zeros("1.0.0")
    ('0.5', '-3', '100', '1.0.0')
    """
    whole, point, fraction = text.partition(".")
    is_decimal = point and fraction.isdigit() and whole.removeprefix("-").isdigit()
    return f"{whole}.{fraction.rstrip('0')}".rstrip(".") if is_decimal else text


def _names(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """The names in a list with commas, each once."""
    return () if text is None else tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def _conditions(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[Condition, ...]:
    """Conditions as they are written: COLUMN=VALUE, COLUMN!=VALUE."""
    found = []
    for text in texts:
        column, sign, value = text.partition("=")
        if not sign:
            raise click.BadParameter(f"{text!r} has no '='; write COLUMN=VALUE or COLUMN!=VALUE")
        found.append(Condition(column.removesuffix("!").strip(), value, column.endswith("!")))
    return tuple(found)


_LIMIT = click.option("--limit", "most", type=click.IntRange(1), metavar="COUNT", help="Print at most this many rows.")
_OPTIONS: list[_Option] = [
    click.option(
        "--format",
        "form",
        type=click.Choice(["table", "json", "csv"]),
        default="table",
        show_default=True,
        help="Print an aligned table, one JSON array of objects, or CSV.",
    ),
    click.option(
        "--columns", "shown", metavar="A,B,C", callback=_names, help="Print only these columns, in this order."
    ),
    click.option(
        "--where",
        multiple=True,
        metavar="COLUMN=VALUE",
        callback=_conditions,
        help="Print only rows with this value, or with COLUMN!=VALUE without it; repeatable.",
    ),
    _LIMIT,
    click.option("--wide", is_flag=True, help="On a terminal, print every column and value in full."),
]
