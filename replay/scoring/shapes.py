"""The shape of a table of forecasts: a row for each, or a column for each forecaster, question, option or quantile."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.scoring.options import WIDES, Options
from forecast_ledger.replay.scoring.roles import Found, plain, unnamed
from forecast_ledger.replay.scoring.tables import Table
from forecast_ledger.replay.scoring.written import Numbers, distinct, is_absent, numbers_of, value_of

_LEVEL = re.compile(r"(?:q|quantile|p|percentile)?[_ ]?(0?\.[0-9]+)", re.IGNORECASE)
_PERCENTILE = re.compile(r"(?:p|percentile|perc)[_ ]?([0-9]{1,2}(?:\.[0-9]+)?)", re.IGNORECASE)
_PREFIX = re.compile(r"(prob|probability|p|pred|prediction|forecast)[ _:.-]+(.+)", re.IGNORECASE)
ANSWER_ROWS = {"answer", "answers", "outcome", "outcomes", "result", "results", "resolution", "truth", "actual"}
_ID = re.compile(r"(^|_)(id|index|number|count|year|rank)$")  # of columns that have numbers, and no forecasts
_HUNDRED = 100
_NEARLY = Decimal("0.001")  # from 1, of a sum of shares


class Shape(NamedTuple):
    """What the columns with the forecasts are: "" for a row each, else a name in WIDES; and these columns.

    levels: of quantiles, in the order of their columns. prefix: of every name of an option's column.
    """

    wide: str
    columns: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    prefix: str = ""

    def label(self, column: str) -> str:
        """Return the forecaster, the question or the option of a column."""
        return column.removeprefix(self.prefix)


def shape_of(table: Table, roles: Mapping[str, Found], options: Options, needed: Sequence[str] = ()) -> Shape:
    """Return the shape of a table, in which these roles are found. Refuses: ambiguous.

    needed: the other roles that a row for each forecast needs, to be named together with that of its number.
    """
    role = "value" if "quantile" in roles else "probability"
    named = roles[role].columns if role in roles else ()
    if len(named) == 1:
        return Shape("")
    if options.wide and options.wide not in WIDES:
        raise Refused("ambiguous", "wide", options.wide, f"columns are {', '.join(WIDES)}", remedy="give one of these")
    taken = {column for found in roles.values() for column in found.columns} - {*named}
    table = _without_answers(table, roles)
    rest = named or _numeric(table, [name for name in table.columns if name not in taken])
    if not rest or (len(rest) == 1 and not options.wide):
        raise unnamed(table, roles, [role, *needed], *rest)
    wide = options.wide or _wide(table, roles, rest)
    needs = {"forecasters": "question", "questions": "forecaster"}.get(wide, "question")
    if needs not in roles:
        raise unnamed(table, roles, [needs])
    levels = _levels(rest) if wide == "quantiles" else ()
    if wide == "quantiles" and not levels:
        detail = f"the names of the columns {', '.join(rest)} are no levels of quantiles"
        raise Refused("ambiguous", "wide", wide, detail, remedy="name them like 0.1, q0.1 or p10")
    return Shape(wide, rest, levels, _prefix(rest) if wide == "options" else "")


def answer_row(table: Table, roles: Mapping[str, Found]) -> str:
    """Return the name in the row that has the answers, of a table with a column for each question; "" if none has.

    Refuses: ambiguous (several).
    """
    if "question" in roles or "forecaster" not in roles:
        return ""
    cells = table.texts(roles["forecaster"].columns)
    found = [cell for cell in cells if cell.lower() in ANSWER_ROWS]
    if len(found) > 1:
        detail = f"{table.name}: the rows {', '.join(map(repr, found))} may each have the answers"
        raise Refused("ambiguous", "outcome", None, detail, remedy="leave all but one out of the table")
    return "".join(found)


def _without_answers(table: Table, roles: Mapping[str, Found]) -> Table:
    name = answer_row(table, roles)
    if not name:
        return table
    kept = [row for row, who in enumerate(table.texts(roles["forecaster"].columns)) if who != name]
    return table._replace(
        columns={column: [cells[row] for row in kept] for column, cells in table.columns.items()},
        lines=[table.lines[row] for row in kept],
    )


def _wide(table: Table, roles: Mapping[str, Found], rest: Sequence[str]) -> str:
    """Return what the columns are, which nobody said. Refuses: ambiguous."""
    if "question" not in roles:
        return "questions"
    if _levels(rest) and _is_rising(table, rest):
        return "quantiles"
    if "forecaster" in roles:
        return "options"
    prefix = _prefix(rest)
    answers = [*distinct(table.columns[roles["outcome"].columns[0]])] if "outcome" in roles else []
    if answers and {*answers} <= {name.removeprefix(prefix) for name in rest}:
        return "options"
    if _sums_to_one(table, rest):
        detail = (
            f"{table.name}: each row sums to 1, so that the columns {', '.join(rest)} may be forecasters or options"
        )
        raise Refused(
            "ambiguous", "wide", None, detail, remedy="give --columns-are options, or --columns-are forecasters"
        )
    return "forecasters"


def _numeric(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that may have forecasts: those named like quantiles, or all with numbers up to 1, or to 100.

    Refuses: ambiguous (some columns have numbers up to 1, others up to 100).
    """
    most = {name: _greatest(table.columns[name]) for name in names if not _ID.search(plain(name))}
    numeric = {name: number for name, number in most.items() if number is not None}
    levels = tuple(name for name in numeric if _levels([name]))
    if len(levels) > 1 and _levels(levels):
        return levels
    shares = [name for name, number in numeric.items() if number <= 1]
    others = [name for name, number in numeric.items() if 1 < number <= _HUNDRED]
    if shares and others and not any("%" in cell for name in shares for cell in table.columns[name]):
        detail = f"{table.name}: the columns {', '.join(shares)} have numbers up to 1, {', '.join(others)} up to 100"
        remedy = "name those with forecasts: --column probability=A,B,C"
        raise Refused("ambiguous", "probability", None, detail, remedy=remedy)
    return tuple(name for name in numeric if name in {*shares, *others})


def _greatest(cells: Sequence[str]) -> Decimal | None:
    """Return the greatest number of a column, % signs left out; None if a cell has no number, or one is below 0."""
    texts = [*distinct(cells)]
    written = _written(texts) if texts else None
    if written is None:
        return None
    numbers = [value_of(text.rstrip("% "), written) for text in texts]
    scale = _HUNDRED if all(text.endswith("%") for text in texts) else 1
    return max(numbers) / scale if min(numbers) >= 0 else None


def _written(texts: Sequence[str]) -> Numbers | None:
    try:
        return numbers_of("", texts, Options())
    except Refused:
        return None


def _levels(names: Sequence[str]) -> tuple[str, ...]:
    """Return the levels that names say, if all of them say one and the levels rise.

    >>> _levels(["q0.1", "q.5"]), _levels(["p10", "p50", "p90"]), _levels(["p1", "p0"]), _levels(["ada", "bo"])
    (('0.1', '0.5'), ('0.1', '0.5', '0.9'), (), ())
    """
    levels = [Decimal(found[1]) for name in names if (found := _LEVEL.fullmatch(name))]
    if not levels:
        levels = [Decimal(found[1]) / 100 for name in names if (found := _PERCENTILE.fullmatch(name))]
    rises = all(before < after for before, after in pairwise(levels)) and all(0 < level < 1 for level in levels)
    return tuple(f"{level:f}" for level in levels) if rises and len(levels) == len(names) else ()


def _is_rising(table: Table, names: Sequence[str]) -> bool:
    """Return whether no number is below the one before it, in each row that has all of them."""
    return all(all(a <= b for a, b in pairwise(row)) for row in _numbers(table, names))


def _sums_to_one(table: Table, names: Sequence[str]) -> bool:
    rows = _numbers(table, names)
    return bool(rows) and all(
        any(abs(sum(row, Decimal(0)) - whole) <= _NEARLY * whole for whole in (1, 100)) for row in rows
    )


def _numbers(table: Table, names: Sequence[str]) -> list[list[Decimal]]:
    """Return the numbers of the rows in which no cell is empty; % signs count as part of the unit."""
    written = numbers_of("", [*distinct(cell for name in names for cell in table.columns[name])], Options())
    rows = (row for row in table.rows(names) if not any(map(is_absent, row)))
    return [[value_of(cell.rstrip("% "), written) for cell in row] for row in rows]


def _prefix(names: Sequence[str]) -> str:
    """Return what stands before the option in every name; "" if it is not the same in all.

    >>> _prefix(["p_red", "p_blue"]), _prefix(["red", "p_blue"])
    ('p_', '')
    """
    found = [match for name in names if (match := _PREFIX.fullmatch(name))]
    prefixes = {name[: match.start(2)] for name, match in zip(names, found, strict=False)}
    return prefixes.pop() if len(found) == len(names) and len(prefixes) == 1 else ""
