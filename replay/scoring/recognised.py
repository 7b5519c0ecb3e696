"""What a table of forecasts says: its columns, its shape, the kind of its questions, and how its cells are written."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import in_list
from forecast_ledger.ledger.core.values import (
    DAY,
    ID_LENGTH,
    LARGEST_MEASURE,
    MOST_DECIMALS,
    format_instant,
    read_instant,
)
from forecast_ledger.ledger.model.commands import DEFAULT_DECIMALS
from forecast_ledger.replay.scoring.options import Options
from forecast_ledger.replay.scoring.shapes import (
    OF_ANSWERS,
    USUAL,
    RoleColumns,
    Shape,
    answer_row,
    listed_columns,
    roles_of,
    shape_of,
    unnamed,
)
from forecast_ledger.replay.scoring.tables import Table
from forecast_ledger.replay.scoring.written import (
    Instants,
    Numbers,
    distinct,
    instants_of,
    is_absent,
    numbers_of,
    probabilities_of,
    value_of,
)

WITHOUT_TIME = "2000-01-01T00:00:00Z"  # at which forecasts without a time count as made


class Item(NamedTuple):
    """A number of a forecast: its row, its question and forecaster, its time and its option or level, as texts."""

    row: int
    question: str
    forecaster: str
    time: str
    part: str
    text: str


class Forecasts(NamedTuple):
    """A table of forecasts that is understood.

    kind: of its questions. times: None if it has none. answer_row: the name in the row that has the answers, "" if no
    row has. made_at: of forecasts without a time. items: every number of a forecast, row by row.
    where: the condition by which a map chooses the rows, if the table has questions of other kinds, too; elsewhere:
    these questions. apart: question -> its options, of which each is a question of its own; none if they are not.
    """

    table: Table
    roles: Mapping[str, RoleColumns]
    shape: Shape
    kind: str
    times: Instants | None
    numbers: Numbers
    forecaster: str
    answer_row: str
    made_at: int
    items: Sequence[Item] = ()
    where: Mapping[str, Any] = {}
    elsewhere: frozenset[str] = frozenset()
    apart: Mapping[str, Sequence[str]] = {}

    def columns(self, role: str) -> tuple[str, ...]:
        """Return the columns of a role; none if it has none."""
        return self.roles[role].columns if role in self.roles else ()

    @property
    def names_forecaster(self) -> bool:
        """Whether a cell or the name of a column says whose a forecast is."""
        return "forecaster" in self.roles or self.shape.wide == "forecasters"


def _items(forecasts: Forecasts) -> Iterator[Item]:
    """Return every number of a forecast, row by row.

    Those of cells without a value are left out, and rows whose cell of the question or of the forecaster is empty.
    """
    table, shape = forecasts.table, forecasts.shape
    cells = shape.columns or forecasts.columns("value" if "quantile" in forecasts.roles else "probability")
    names = [*map(shape.label, cells)]
    part = forecasts.columns("option") or forecasts.columns("quantile")
    shared = [table.texts(columns) for columns in (*map(forecasts.columns, ("question", "forecaster", "time")), part)]
    for row, (question, forecaster, time, part_text, *numbers) in enumerate(
        zip(*shared, *(table.columns[name] for name in cells), strict=True)
    ):
        if forecasts.answer_row and forecaster == forecasts.answer_row:
            continue
        for label, text in zip(names, numbers, strict=True):
            of = label if shape.wide == "questions" else question
            who = (
                label
                if shape.wide == "forecasters"
                else forecaster
                if forecasts.names_forecaster
                else forecasts.forecaster
            )
            if not is_absent(text) and of and who:
                yield Item(row, of, who, time, label if shape.wide in {"options", "quantiles"} else part_text, text)


# The columns by which a published format is known, and what reads it.
_PUBLISHED = {
    "forecastbench": {"organization", "forecasts"},
    "hubverse": {"output_type", "output_type_id", "value"},
    "metaculus": {"Forecaster Username", "Probability Yes", "Continuous CDF"},
}


def published_form(table: Table) -> str:
    """Return the published format whose columns a table has; "" if it has those of none."""
    return next((form for form, columns in _PUBLISHED.items() if columns <= {*table.columns}), "")


def understand(table: Table, options: Options, *, alone: bool, known: str = "") -> Forecasts:
    """Return what a table of forecasts says. alone: it has the answers, too. known: the kind of its questions, or "".

    Refuses: ambiguous, bad_instant, bad_number.
    """
    roles = roles_of(table, [role for role in USUAL if role != "kind" and (alone or role != "outcome")], options)
    if options.forecaster and "forecaster" in roles:
        detail = f"{table.name}: the column {roles['forecaster'].columns[0]!r} may say who made each forecast"
        remedy = "leave --forecaster out, or say that no column says it: --column forecaster="
        raise Refused("ambiguous", "forecaster", options.forecaster, detail, remedy=remedy)
    needed = ["question", *["outcome"] * alone]
    shape = shape_of(table, roles, options, needed)
    if options.forecaster and shape.wide == "forecasters":
        detail = f"{table.name}: the columns {in_list(shape.columns)} may be those of the forecasters"
        remedy = "leave --forecaster out, or name the column of the probabilities: --column probability=NAME"
        raise Refused("ambiguous", "forecaster", options.forecaster, detail, remedy=remedy)
    if "question" not in roles and shape.wide != "questions":
        raise unnamed(table, roles, needed)
    if shape.wide == "quantiles" or "quantile" in roles:
        kind = "numeric"
    else:
        kind = "multiple_choice" if shape.wide == "options" or "option" in roles else "binary"
    if known not in {"", kind}:
        needs = {"multiple_choice": "options", "numeric": "quantiles"}
        detail = f"their rows have {needs.get(kind, 'probabilities')}, and no {needs.get(known, 'probabilities alone')}"
        remedy = "say that no column has the kind: --column kind="
        if known == "binary" and shape.wide:
            detail = (
                f"the columns {in_list(shape.columns)} may be their options, and none is known as their probability"
            )
            remedy = f"name it, --column probability=NAME, or {remedy}"
        raise Refused("ambiguous", "kind", known, detail, remedy=remedy)
    times = _times(table, roles, options)
    answers_in = answer_row(table, roles) if shape.wide == "questions" else ""
    made_at = read_instant(_instant(options.made_at), "made_at") if options.made_at else read_instant(WITHOUT_TIME)
    forecaster = options.forecaster or table.stem
    forecasts = Forecasts(table, roles, shape, kind, times, Numbers({}, ""), forecaster, answers_in, made_at)
    forecasts = forecasts._replace(items=[*_items(forecasts)])
    texts = [*dict.fromkeys(item.text for item in forecasts.items)]
    if not texts:
        raise Refused("bad_csv", table.name, None, "the table has no forecast that is a number")
    column = " ".join(shape.columns[:1] or forecasts.columns("value") or forecasts.columns("probability"))
    written = (numbers_of if kind == "numeric" else probabilities_of)(column, texts, options)
    return _checked(forecasts._replace(numbers=written))


def _times(table: Table, roles: Mapping[str, RoleColumns], options: Options) -> Instants | None:
    if "time" not in roles:
        return None
    [column] = roles["time"].columns[:1]
    texts = [*distinct(table.columns[column])]
    return instants_of(column, texts, options) if texts else None


def _instant(text: str) -> str:
    """Return an instant of an option, which may be a date, in UTC."""
    return f"{text}T00:00:00Z" if len(text) == len("2026-03-01") else text


def instant_of(text: str, field: str) -> int:
    """Return an instant of an option in µs: RFC 3339, or a date in UTC. Refuses: bad_instant, naive_instant."""
    return read_instant(_instant(text), field)


def _checked(forecasts: Forecasts) -> Forecasts:
    """Refuse forecasts of which two say something of the same, or whose names are too long for an id."""
    seen, unit = dict[tuple[str, ...], int](), forecasts.table.unit
    for item in forecasts.items:
        key = (item.question, item.forecaster, item.part)
        if forecasts.times is None and key in seen:
            lines = f"{unit}s {forecasts.table.lines[seen[key]]} and {forecasts.table.lines[item.row]}"
            detail = f"{forecasts.table.name}: {lines} both have a forecast of {item.forecaster!r} on {item.question!r}"
            who = "" if forecasts.names_forecaster else "who made each, --column forecaster=NAME, or "
            when = f"when each was made, --column time=NAME, or leave one out{listed_columns(forecasts.table)}"
            remedy = f"name the column that says {who}{when}"
            if forecasts.shape.wide == "questions":
                remedy = (
                    f"if the columns are no questions, name that of the question, --column question=NAME; or {remedy}"
                )
            raise Refused("ambiguous", "time", None, detail, remedy=remedy)
        seen[key] = item.row
        if len(item.question) > ID_LENGTH - len("answer "):
            detail = (
                f"{forecasts.table.name}: {unit} {forecasts.table.lines[item.row]}: the question is too long for an id"
            )
            remedy = f"name a column with ids of questions: --column question=NAME{listed_columns(forecasts.table)}"
            raise Refused("id_too_long", "question", item.question, detail, remedy=remedy)
    return forecasts


class Answers(NamedTuple):
    """A table that has the answers, with the columns of its questions, and what it says of each of them.

    named: an answer names an option of a question, whose options are questions of their own.
    """

    table: Table
    roles: Mapping[str, RoleColumns]
    named: bool = False

    def columns(self, role: str) -> tuple[str, ...]:
        """Return the columns of a role; none if it has none."""
        return self.roles[role].columns if role in self.roles else ()

    def of(self, role: str) -> dict[str, str]:
        """Return question -> what a column says of it, "" if nothing. Refuses: ambiguous (two rows differ)."""
        [column] = self.columns(role)
        texts, lines = dict[str, str](), dict[str, int]()
        cells = self.table.columns[column]
        for key, text, line in zip(self.questions(), cells, self.table.lines, strict=True):
            if is_absent(text) or not key:
                texts.setdefault(key, "")
            elif texts.get(key):
                if texts[key] != text:
                    where = f"{self.table.name}: {self.table.unit}s {lines[key]} and {line}"
                    detail = f"{where} say {texts[key]!r} and {text!r}"
                    remedy = f"correct one of them, or name another column: --column {role}=NAME"
                    raise Refused("ambiguous", role, key, detail, remedy=remedy)
            else:
                texts[key], lines[key] = text, line
        return texts

    def questions(self) -> Sequence[str]:
        """Return the question of each row."""
        return self.table.texts(self.columns("question"))


def understand_answers(table: Table, options: Options, *, apart: bool) -> Answers:
    """Return what a table of answers says. apart: options are questions of their own. Refuses: ambiguous."""
    roles = roles_of(table, (*OF_ANSWERS, *["option"] * apart), options)
    if not {"question", "outcome"} <= {*roles}:
        raise unnamed(table, roles, ["question", "outcome"])
    if apart and "option" in roles:
        question, option = roles["question"], roles.pop("option")
        return Answers(
            table, {**roles, "question": RoleColumns((*question.columns, *option.columns[:1]), question.said)}
        )
    return Answers(table, roles, named=apart)


def present(source: Forecasts | Answers, roles: Sequence[str]) -> dict[str, Any]:
    """Return the condition that the columns of roles are not empty, for those that are in some row."""
    columns = [column for role in roles for column in source.columns(role)]
    some = [column for column in columns if "" in source.table.columns[column]]
    return {"present": some} if some else {}


def without(columns: Sequence[str], table: Table, name: str) -> dict[str, Any]:
    """Return the condition that a cell is a value, if some cell of these columns is none. name: of the cell."""
    texts = {text for column in columns for text in table.columns[column] if is_absent(text)}
    is_needed = texts - {""} if name == "#cell" else texts  # of an empty cell, no command is made
    return {name: {"not": ["", *sorted(texts - {""})]}} if is_needed else {}


class Period(NamedTuple):
    """When questions open and close, in µs, if no column says it; opens is at or before every instant of the table."""

    opens: int
    closes: int

    def words(self) -> tuple[str, str]:
        """Return both as RFC 3339."""
        return format_instant(self.opens), format_instant(self.closes)


def period_of(forecasts: Forecasts, opening: Sequence[int], options: Options) -> Period:
    """Return when questions open and close. opening: instants of a column that says it."""
    times = forecasts.times
    if times is None:
        return Period(forecasts.made_at, forecasts.made_at + DAY)
    [column] = forecasts.columns("time")[:1]
    made = [at for text in distinct(forecasts.table.columns[column]) if (at := times.read(text)) is not None]
    if not made:
        text = next(distinct(forecasts.table.columns[column]), None)
        raise Refused("bad_instant", column, text, "no time of the column can be read")
    opens = instant_of(options.opens, "opens") if options.opens else min([*made, *opening]) // DAY * DAY
    closes = instant_of(options.closes, "closes") if options.closes else (max(made) // DAY + 1) * DAY
    return Period(opens, closes)


def largest_decimals(numbers: Sequence[str], written: Numbers) -> tuple[int, Decimal, Decimal]:
    """Return how many decimals a question keeps of numbers, and the least and the greatest of them.

    It keeps all that they have, up to 12, if the numbers with so many decimals are not beyond what a ledger takes.

    >>> largest_decimals(["1.25", "-3"], Numbers({}, ""))
    (2, Decimal('-3'), Decimal('1.25'))
    """
    values = [value_of(text, written) for text in numbers]
    needed = max(0, *(-int(value.normalize().as_tuple().exponent) for value in values))
    least, most = min(values), max(values)
    decimals = min(needed, MOST_DECIMALS)
    while decimals > DEFAULT_DECIMALS and max(abs(least), abs(most)).scaleb(decimals) >= LARGEST_MEASURE:
        decimals -= 1
    return decimals, least, most
