"""The parts of a table with questions of several kinds: by a column that says the kind, or by what a row fills."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.scoring.options import KINDS, Options
from forecast_ledger.replay.scoring.roles import plain, roles_of
from forecast_ledger.replay.scoring.tables import Table
from forecast_ledger.replay.scoring.written import is_absent

_WORDS: dict[str, set[str]] = {
    "binary": {"binary", "boolean", "bool", "yes_no", "t_f", "true_false"},
    "multiple_choice": {"multiple_choice", "multiplechoice", "multi_choice", "mc", "mcq", "categorical"},
    "numeric": {"numeric", "numerical", "num", "continuous", "quantile", "quantiles", "discrete", "date"},
}
# Of the columns with these roles, a kind of questions fills some and leaves others empty.
_FILLED = ("option", "quantile", "probability", "value")


class Part(NamedTuple):
    """The rows of questions of one kind. kind: "" if the table has questions of one kind, which its shape says.

    where: the condition by which a map chooses these rows. words: how the kind is known.
    """

    kind: str
    table: Table
    where: Mapping[str, Any]
    words: str


def parts_of(table: Table, options: Options) -> list[Part]:
    """Return the rows of each kind of question that is asked for, in the order of KINDS. Refuses: ambiguous."""
    kinds, wheres, words = _by_column(table, options) or _by_cells(table, options) or ([], {}, "")
    found = [kind for kind in KINDS if kind in kinds]
    asked = [kind for kind in found if not options.kinds or kind in options.kinds]
    if found and not asked:
        detail = f"{table.name} has none of these kinds of questions; it has {', '.join(found)}"
        raise Refused("ambiguous", "kinds", ", ".join(options.kinds), detail, remedy=f"give --kinds {found[0]}")
    if len(found) < 2:
        return [Part("", table, {}, "")]
    return [Part(kind, _rows_of(table, kinds, kind, options), wheres[kind], words) for kind in asked]


_Kinds = tuple[Sequence[str], Mapping[str, Mapping[str, Any]], str]  # of each row, the conditions, how they are known


def _by_column(table: Table, options: Options) -> _Kinds | None:
    """Return the kinds that a column says; None if no column does. Refuses: ambiguous (a text that is no kind)."""
    role = roles_of(table, ["kind"], options).get("kind")
    if role is None:
        return None
    [column] = role.columns[:1]
    meant = {text: _kind(text) for text in dict.fromkeys(table.columns[column])}
    unknown = next((text for text, kind in meant.items() if not kind), None)
    if unknown is not None:
        if not role.said:
            return None
        detail = f"{table.name}: {unknown!r} is no kind of question; there are: {', '.join(KINDS)}"
        raise Refused(
            "ambiguous",
            "kind",
            unknown,
            detail,
            remedy="correct the cell, or say that no column has it: --column kind=",
        )
    wheres = {kind: {column: [text for text, each in meant.items() if each == kind]} for kind in meant.values()}
    return [meant[text] for text in table.columns[column]], wheres, f"by the column {column!r}"


def _kind(text: str) -> str:
    return next((kind for kind, words in _WORDS.items() if plain(text) in words), "")


def _by_cells(table: Table, options: Options) -> _Kinds | None:
    """Return the kinds that rows have by what they fill: a level, an option or neither; None if no column has them."""
    found_alone = {role: roles_of(table, [role], options).get(role) for role in ("quantile", "option")}
    columns = {role: found.columns[0] for role, found in found_alone.items() if found is not None}
    if not columns:
        return None
    kinds = {"quantile": "numeric", "option": "multiple_choice"}
    cells = {role: [not is_absent(text) for text in table.columns[column]] for role, column in columns.items()}
    said = [next((kinds[role] for role in columns if cells[role][row]), "binary") for row in range(len(table.lines))]
    absent = {
        column: ["", *sorted({text for text in table.columns[column] if text and is_absent(text)})]
        for column in columns.values()
    }
    wheres: dict[str, dict[str, Any]] = {"binary": dict(absent)}
    for role, column in columns.items():
        others = {} if role == "quantile" else {other: texts for other, texts in absent.items() if other != column}
        wheres[kinds[role]] = {column: {"not": absent[column]}, **others}
    return said, wheres, f"by the column{'s' * (len(columns) > 1)} {' and '.join(map(repr, columns.values()))}"


def _rows_of(table: Table, kinds: Sequence[str], kind: str, options: Options) -> Table:
    """Return the rows of a kind, without the columns that only other kinds fill."""
    kept = [row for row, each in enumerate(kinds) if each == kind]
    columns = {name: [cells[row] for row in kept] for name, cells in table.columns.items()}
    unused = {
        name
        for role in _FILLED
        for found in roles_of(table, [role], options).values()
        for name in found.columns
        if all(map(is_absent, columns[name]))
    }
    return table._replace(
        columns={name: cells for name, cells in columns.items() if name not in unused},
        lines=[table.lines[row] for row in kept],
    )
