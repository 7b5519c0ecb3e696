"""The columns of a table of forecasts: what each is, the shape of the table, and its questions of several kinds."""

import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import in_list, listed
from forecast_ledger.replay.scoring.options import KINDS, WIDES, Ambiguous, Options
from forecast_ledger.replay.scoring.tables import Table
from forecast_ledger.replay.scoring.written import Numbers, distinct, is_absent, numbers_of, value_of

# Role -> the names of its columns, those of a later group only if no column has one of an earlier group.
USUAL: dict[str, tuple[str, ...]] = {
    "question": (
        "question_id qid ifp_id market_id contract_id problem_id event_id item_id task_id",
        "question ifp market problem event item task statement claim",
        "question_title question_text q_text title",
        "match_id game_id fixture_id condition_id market_ticker",
        "id",
        "ticker slug",
    ),
    "forecaster": (
        "forecaster forecaster_id forecaster_name forecaster_username",
        """user user_id userid user_name username
        participant participant_id participant_name player player_id player_name model model_id model_name bot agent
        agent_id agent_name expert expert_id respondent respondent_id analyst predictor member person who name email
        email_address""",
        "team team_id team_name organization source author",
    ),
    "time": (
        """made_at forecast_time forecast_date forecast_timestamp forecast_at forecasted_at fcast_date fcast_time
        prediction_date prediction_time predicted_at submitted_at submission_date submission_time""",
        "time date timestamp datetime at forecast_due_date start_time completion_time",
        "created_at created created_time",
        "reference_date origin_date",
    ),
    "quantile": ("quantile quantile_level tau",),
    "option": ("option option_name answer_option choice alternative candidate",),
    "probability": (
        "probability prob p probability_yes prob_yes p_yes forecast_probability predicted_probability forecast_prob",
        """forecast prediction predicted pred estimate credence confidence yes guess
        predicted_prob prediction_probability binary_prob binary_probability win_prob win_probability""",
        "value",
    ),
    "value": ("value quantile_value forecast_value", "prediction forecast predicted estimate"),
    "outcome": (
        """outcome resolution answer result resolved_to resolved_value resolved_outcome actual truth ground_truth
        actual_outcome true_value label y_true correct_answer observed observation oracle_value happened came_true""",
        "y target value",
    ),
    "opens": ("opens opens_at open_time open_date opening_date opened_at date_start",),
    "closes": (
        """closes closes_at close_time close_date closing_date closing_time closed_at date_closed deadline
        question_close_time scheduled_close_time actual_close_time""",
    ),
    "kind": ("question_type qtype question_kind forecast_type", "type kind"),
    "title": ("question_title question_text q_text title question",),
}
_LISTED = 12
_OF_PROBABILITIES = {"probability", "option"}
OF_ANSWERS = ("question", "outcome", "opens", "closes", "title")
_GROUPS = {role: [{*group.split()} for group in groups] for role, groups in USUAL.items()}


class RoleColumns(NamedTuple):
    """The columns of a role: several for a question that is told by several. said: the caller named them."""

    columns: tuple[str, ...]
    said: bool


Roles = Mapping[str, RoleColumns]


def plain(name: str) -> str:
    """Return a name in the form of the usual names.

    >>> plain("Question ID"), plain("userName"), plain("P (yes)")
    ('question_id', 'user_name', 'p_yes')
    """
    divided = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", divided.lower()).strip("_")


def check_named(tables: Collection[Table], options: Options) -> None:
    """Refuse (ambiguous) a role that there is not, or a column that no table has."""
    every = [column for table in tables for column in table.columns]
    for role, columns in options.columns.items():
        if role not in USUAL:
            detail = f"there is no such role; there are: {', '.join(USUAL)}"
            raise Refused("ambiguous", "column", role, detail, remedy="name a role, as in --column forecaster=User")
        for column in columns:
            if column not in every:
                detail = f"no column has this name; the columns are: {listed(column, every)}"
                raise Refused("ambiguous", role, column, detail, remedy="correct the name after --column")


def roles_of(table: Table, roles: Collection[str], options: Options) -> dict[str, RoleColumns]:
    """Return the columns of a table that have one of these roles. Refuses: ambiguous (two columns may be one of them).

    A column has one role: the first, in the order of USUAL, whose names it has; one that the caller names has no other.
    """
    given = {role: tuple(each for each in options.columns.get(role, ()) if each in table.columns) for role in roles}
    columns_by_role = {role: RoleColumns(columns, said=True) for role, columns in given.items() if columns}
    taken = {column for each in columns_by_role.values() for column in each.columns}
    for role in USUAL:
        if role not in roles or role in options.columns or _is_of_other_form(role, columns_by_role):
            continue
        candidates = _candidates(role, [name for name in table.columns if name not in taken])
        if len(candidates) > 1:
            detail = f"{table.name}: each of the columns {', '.join(map(repr, candidates))} may be the {role}"
            remedy = f"name one: --column {role}={_shell(candidates[0])}"
            trial = options._replace(columns={**options.columns, role: (candidates[0],)})
            raise Ambiguous(role, None, detail, remedy=remedy, trial=trial)
        if candidates:
            columns_by_role[role] = RoleColumns(tuple(candidates), said=False)
            taken.add(candidates[0])
    return columns_by_role


def listed_columns(table: Table) -> str:
    """Return the columns of a table in words, to choose from.

    >>> from forecast_ledger.replay.scoring.tables import table_of_rows
    >>> listed_columns(table_of_rows([{"who": "ada", "p": 0.5}], "f"))
    "; the columns are 'who', 'p'"
    """
    names = [*map(repr, table.columns)]
    more = f" and {len(names) - _LISTED} more" * (len(names) > _LISTED)
    return f"; the columns are {', '.join(names[:_LISTED])}{more}"


def unnamed(table: Table, roles: Roles, needed: Sequence[str], likely: str = "") -> Refused:
    """Return the refusal of a table that lacks the columns of some needed roles; it names all of them.

    likely: the column that may have the first of them, "" if none may.

    >>> from forecast_ledger.replay.scoring.tables import table_of_rows
    >>> refused = unnamed(table_of_rows([{"wer": "ada", "p": 0.5}], "f"), {}, ["question", "outcome"])
    >>> print(refused)  # doctest: +NORMALIZE_WHITESPACE
    ambiguous: question: f: no column is known to have the question, the answer;
    name each: --column question=NAME --column outcome=NAME; the columns are 'wer', 'p'
    """
    missing = [role for role in needed if role not in roles]
    words = [{"outcome": "answer", "probability": "probability of a forecast"}.get(role, role) for role in missing]
    words[0] += f" (perhaps {likely!r})" if likely else ""
    detail = f"{table.name}: no column is known to have the {', the '.join(words)}"
    options = " ".join(f"--column {role}=NAME" for role in missing)
    remedy = f"name {'it' if len(missing) == 1 else 'each'}: {options}{listed_columns(table)}"
    return Refused("ambiguous", missing[0], None, detail, remedy=remedy)


def _is_of_other_form(role: str, roles: Roles) -> bool:
    """Return whether a role is one of another form of forecast: quantiles have values, and no probabilities."""
    return role in _OF_PROBABILITIES if "quantile" in roles else role == "value"


def _candidates(role: str, names: Sequence[str]) -> list[str]:
    for group in _GROUPS[role]:
        if candidates := [name for name in names if plain(name) in group]:
            return candidates
    return []


def _shell(name: str) -> str:
    return name if re.fullmatch(r"[\w.-]+", name) else f"'{name}'"


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


def shape_of(table: Table, roles: Mapping[str, RoleColumns], options: Options, needed: Sequence[str] = ()) -> Shape:
    """Return the shape of a table, in which these roles are found. Refuses: ambiguous.

    needed: the other roles that a row for each forecast needs, to be named together with that of its number.
    """
    role = "value" if "quantile" in roles else "probability"
    named = roles[role].columns if role in roles else ()
    if len(named) == 1:
        return Shape("")
    if options.wide and options.wide not in WIDES:
        raise Refused("ambiguous", "wide", options.wide, f"columns are {', '.join(WIDES)}", remedy="give one of these")
    taken = {column for role_columns in roles.values() for column in role_columns.columns} - {*named}
    table = _without_answers(table, roles)
    numeric = named or _numeric(table, [name for name in table.columns if name not in taken])
    if not numeric or (len(numeric) == 1 and not options.wide):
        raise unnamed(table, roles, [role, *needed], *numeric)
    wide = options.wide or _wide(table, roles, numeric)
    needs = {"forecasters": "question", "questions": "forecaster"}.get(wide, "question")
    if needs not in roles:
        if needs == "question" or options.wide:
            raise unnamed(table, roles, [needs])
        named_each = " ".join(f"--column {name}=NAME" for name in (role, *needed) if name not in roles)
        remedy = f"of a table with a row for each forecast, name its columns: {named_each}"
        if not options.forecaster:
            remedy += "; of one with a column for each question, name the forecasters': --column forecaster=NAME"
        detail = f"{table.name}: no column is known to have the question or the forecaster"
        raise Refused("ambiguous", needs, None, detail, remedy=f"{remedy}{listed_columns(table)}")
    levels = _levels(numeric) if wide == "quantiles" else ()
    if wide == "quantiles" and not levels:
        detail = f"the names of the columns {in_list(numeric)} are no levels of quantiles"
        raise Refused("ambiguous", "wide", wide, detail, remedy="name them like 0.1, q0.1 or p10")
    return Shape(wide, numeric, levels, _prefix(numeric) if wide == "options" else "")


def answer_row(table: Table, roles: Mapping[str, RoleColumns]) -> str:
    """Return the name in the row that has the answers, of a table with a column for each question; "" if none has.

    Refuses: ambiguous (several).
    """
    if "question" in roles or "forecaster" not in roles:
        return ""
    cells = table.texts(roles["forecaster"].columns)
    answers = [cell for cell in cells if cell.lower() in ANSWER_ROWS]
    if len(answers) > 1:
        detail = f"{table.name}: the rows {', '.join(map(repr, answers))} may each have the answers"
        raise Refused("ambiguous", "outcome", None, detail, remedy="leave all but one out of the table")
    return "".join(answers)


def _without_answers(table: Table, roles: Mapping[str, RoleColumns]) -> Table:
    name = answer_row(table, roles)
    if not name:
        return table
    kept = [row for row, who in enumerate(table.texts(roles["forecaster"].columns)) if who != name]
    return table._replace(
        columns={column: [cells[row] for row in kept] for column, cells in table.columns.items()},
        lines=[table.lines[row] for row in kept],
    )


def _wide(table: Table, roles: Mapping[str, RoleColumns], numeric: Sequence[str]) -> str:
    """Return what the columns are, which nobody said. Refuses: ambiguous."""
    if "question" not in roles:
        return "questions"
    if _levels(numeric) and _is_rising(table, numeric):
        return "quantiles"
    if "forecaster" in roles:
        return "options"
    prefix = _prefix(numeric)
    answers = [*distinct(table.columns[roles["outcome"].columns[0]])] if "outcome" in roles else []
    if answers and {*answers} <= {name.removeprefix(prefix) for name in numeric}:
        return "options"
    if _sums_to_one(table, numeric):
        detail = (
            f"{table.name}: each row sums to 1, so that the columns {in_list(numeric)} may be forecasters or options"
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
        detail = f"{table.name}: the columns {in_list(shares)} have numbers up to 1, {in_list(others)} up to 100"
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
    levels = [Decimal(match[1]) for name in names if (match := _LEVEL.fullmatch(name))]
    if not levels:
        levels = [Decimal(match[1]) / 100 for name in names if (match := _PERCENTILE.fullmatch(name))]
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
    matches = [match for name in names if (match := _PREFIX.fullmatch(name))]
    prefixes = {name[: match.start(2)] for name, match in zip(names, matches, strict=False)}
    return prefixes.pop() if len(matches) == len(names) and len(prefixes) == 1 else ""


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
    present_kinds = [kind for kind in KINDS if kind in kinds]
    chosen = [kind for kind in present_kinds if not options.kinds or kind in options.kinds]
    if present_kinds and not chosen:
        detail = f"{table.name} has none of these kinds of questions; it has {', '.join(present_kinds)}"
        raise Refused("ambiguous", "kinds", ", ".join(options.kinds), detail, remedy=f"give --kinds {present_kinds[0]}")
    if len(present_kinds) < 2:
        return [Part("", table, {}, "")]
    return [Part(kind, _rows_of(table, kinds, kind, options), wheres[kind], words) for kind in chosen]


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
    columns_alone = {role: roles_of(table, [role], options).get(role) for role in ("quantile", "option")}
    columns = {
        role: role_columns.columns[0] for role, role_columns in columns_alone.items() if role_columns is not None
    }
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
        for role_columns in roles_of(table, [role], options).values()
        for name in role_columns.columns
        if all(map(is_absent, columns[name]))
    }
    return table._replace(
        columns={name: cells for name, cells in columns.items() if name not in unused},
        lines=[table.lines[row] for row in kept],
    )
