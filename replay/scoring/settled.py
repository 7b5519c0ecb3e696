"""The outcomes of questions, the commands that record the answers, and the TOML of the map that has them."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import in_list, nearest
from forecast_ledger.replay.mapping.csv_cells import AS_ONE
from forecast_ledger.replay.scoring.options import Options
from forecast_ledger.replay.scoring.recognised import Answers, Forecasts, present, without
from forecast_ledger.replay.scoring.shapes import ANSWER_ROWS, RoleColumns
from forecast_ledger.replay.scoring.written import (
    answers_alike,
    distinct,
    general_meaning,
    is_absent,
    is_yes_or_no,
    meanings_of,
    numbers_of,
    value_of,
)

Fields = dict[str, Any]
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def cell(column: str) -> str:
    """Return what stands for the cell of a column in a map. Refuses: bad_csv (its name has a brace).

    >>> cell("Question ID")
    '{Question ID}'
    """
    if not column or "{" in column or "}" in column:
        fault = "a column that is read has a brace in its name, or no name"
        raise Refused("bad_csv", "column", column, fault, remedy="give the column another name")
    return f"{{{column}}}"


def constant(text: str) -> str:
    """Return a text as a constant of a map, in which braces stand for themselves.

    >>> constant("a{b}")
    'a{{b}}'
    """
    return text.replace("{", "{{").replace("}", "}}")


def field_of(column: str, keys: Mapping[str, Any]) -> Any:
    """Return a field that is read from a column: a template, or a description with these keys.

    >>> field_of("p", {}), field_of("p", {"percent": True})
    ('{p}', {'from': '{p}', 'percent': True})
    """
    return {"from": cell(column), **keys} if keys else cell(column)


def template(columns: Iterable[str]) -> str:
    """Return the template of a name that columns say together.

    >>> template(["city", "day"])
    '{city} {day}'
    """
    return " ".join(map(cell, columns))


def map_text(title: str, keys: Mapping[str, Any], commands: Sequence[Mapping[str, Any]]) -> str:
    """Return a map as TOML: a comment, the keys at the top, and each command with its fields.

    >>> print(map_text("A map.", {"sort": "at"}, [{"type": "close_question", "fields": {"question": "{q}"}}]), end="")
    # A map.
    sort = "at"
    <BLANKLINE>
    [[command]]
    type = "close_question"
    [command.fields]
    question = "{q}"
    """
    return "\n".join(_lines(title, keys, commands)) + "\n"


def _lines(title: str, keys: Mapping[str, Any], commands: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from (f"# {line}" for line in title.splitlines())
    yield from (f"{_key(key)} = {_value(value)}" for key, value in keys.items())
    for command in commands:
        yield from ("", "[[command]]")
        yield from (f"{_key(key)} = {_value(value)}" for key, value in command.items() if key != "fields")
        yield "[command.fields]"
        yield from (f"{_key(key)} = {_value(value)}" for key, value in command["fields"].items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    """Return a value of TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | Decimal):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(part)}" for key, part in value.items()) + " }"
    return f"[{', '.join(map(_value, value))}]"


class Way(NamedTuple):
    """How a row of a table gives an answer. question: a field of the map. answer: the field with the answer.

    allowed: command -> what the cell of the answer must be. chosen: the rows and the columns that the command is of.
    id: of the command.
    """

    question: Any
    answer: Fields
    allowed: Mapping[str, Any]
    chosen: Fields
    id: str


def independent(forecasts: Forecasts) -> Forecasts:
    """Return forecasts of options as forecasts of a question each, such as `cup red`. Refuses: ambiguous."""
    apart, named = defaultdict[str, dict[str, None]](dict), dict[str, tuple[str, str]]()
    for item in forecasts.items:
        apart[item.question][item.part] = None
        pair, name = (item.question, item.part), f"{item.question} {item.part}"
        if named.setdefault(name, pair) != pair:
            detail = f"{forecasts.table.name}: {named[name]} and {pair} would be one question"
            raise Refused("ambiguous", "question", name, detail, remedy="name a column of ids: --column question=NAME")
    items = [item._replace(question=f"{item.question} {item.part}", part="") for item in forecasts.items]
    roles = {role: each for role, each in forecasts.roles.items() if role != "option"}
    if not forecasts.shape.wide:
        question_columns = forecasts.roles["question"]
        roles["question"] = RoleColumns(
            (*question_columns.columns, *forecasts.columns("option")[:1]), question_columns.said
        )
    options = {question: tuple(names) for question, names in apart.items()}
    return forecasts._replace(kind="binary", items=items, roles=roles, apart=options)


def answers_beside(forecasts: Forecasts, options: Options) -> Answers:
    """Return the answers in the table of independent options: a row names the option, or says yes or no of its own."""
    if forecasts.shape.wide:
        return Answers(forecasts.table, forecasts.roles, named=True)
    [*columns, option] = forecasts.columns("question")
    texts = {*distinct(forecasts.table.columns[forecasts.columns("outcome")[0]])}
    if is_yes_or_no(texts, options) and not texts & {*forecasts.table.columns[option]}:
        return Answers(forecasts.table, forecasts.roles)
    return Answers(
        forecasts.table, {**forecasts.roles, "question": RoleColumns(tuple(columns), said=False)}, named=True
    )


def wide_columns(forecasts: Forecasts) -> Any:
    """Return how a map chooses the columns with the forecasts: all but the others, so that it reads new ones, too.

    Only those that there are if the caller named them, or if other kinds of questions have columns of their own. Of
    forecasters, an empty column may have forecasts later, and one with the name of an answer has answers.
    """
    table, shape = forecasts.table, forecasts.shape
    if "probability" in forecasts.roles or forecasts.where:
        return [*shape.columns]
    is_kept = {name: shape.wide == "forecasters" and not any(cells) for name, cells in table.columns.items()}
    others = [name for name in table.columns if name not in shape.columns and not is_kept[name]]
    answers = [] if shape.wide == "questions" else sorted({*ANSWER_ROWS, *map(str.title, ANSWER_ROWS)})
    return {"not": [*others, *(name for name in answers if name not in table.columns)]}


def option_columns(forecasts: Forecasts) -> Fields:
    """Return how a map chooses the columns of options, and of a row only the cells that have a value."""
    columns, prefix = forecasts.shape.columns, forecasts.shape.prefix
    names = "|".join(map(re.escape, map(forecasts.shape.label, columns)))
    chosen: Any = {"matches": f"{re.escape(prefix)}({names})"} if prefix else wide_columns(forecasts)
    absent = sorted(
        {text for column in columns for text in forecasts.table.columns[column] if text and is_absent(text)}
    )
    return {"columns": chosen, "where": {"#cell": {"not": ["", *absent]}}}


def option_question(forecasts: Forecasts) -> str:
    """Return the template of the question of an option, in the table of forecasts."""
    columns = [*forecasts.columns("question"), *[_option(forecasts)] * bool(forecasts.shape.wide)]
    return template(columns)


def _option(forecasts: Forecasts) -> str:
    """Return what has the option in a map: a column or, of a table with a column for each option, its name."""
    if not forecasts.shape.wide:
        return forecasts.columns("question")[-1]
    return "#1" if forecasts.shape.prefix else "#column"


class Apart(NamedTuple):
    """What makes one command of a row of a question, for one of its options. names: question -> this option.

    where: the condition that the question has so many options, if not all have. question: a field of the map.
    """

    names: Mapping[str, str]
    where: Fields
    question: Any
    id: str


def options_apart(forecasts: Forecasts, told: Answers) -> Iterator[Apart]:
    """Return how a map makes a command for each option of a row of a table of answers, which has none of them.

    There is one for each option if all questions have the same, or else for the first of each question, the second ...
    """
    columns = told.columns("question")
    source = template(columns)
    if len({*forecasts.apart.values()}) == 1:
        for name in next(iter(forecasts.apart.values())):
            question = f"{source} {constant(name)}"
            yield Apart(dict.fromkeys(forecasts.apart, name), {}, question, question)
        return
    for number, nth_options in enumerate(zip_longest(*forecasts.apart.values()), 1):
        names = {
            question: name for question, name in zip(forecasts.apart, nth_options, strict=True) if name is not None
        }
        where: Fields = {columns[0]: [*names]}
        if len(columns) > 1:  # no one column tells these questions apart
            where = {"#": [str(row) for row, key in enumerate(told.questions(), 1) if key in names]}
        named = {question: f"{question} {name}" for question, name in names.items()}
        yield Apart(names, where, {"from": source, "map": named}, f"{source}, option {number}")


def named_answers(
    forecasts: Forecasts, told: Answers, name: str, texts: Sequence[str], options: Options
) -> Iterator[Way]:
    """Return how the answers of options are made from answers that name an option: yes for it, no for the others.

    name: the column of the answer; texts: of the answers.
    Refuses: ambiguous (two answers of a question), unknown_outcome.
    """
    every = {option for names in forecasts.apart.values() for option in names}
    meaning = {text: "" if text in every else general_meaning(text, options) for text in texts}
    settled = dict[str, str]()
    for question, text in told.of("outcome").items():
        if question not in forecasts.apart or not text or meaning[text]:
            continue
        settled[question] = text
        if text not in forecasts.apart[question]:
            few = in_list(forecasts.apart[question])
            detail = f"{told.table.name}: the answer of {question!r} is none of its options {few}"
            remedy = f'correct it, or say that it is none or void: --answer "{text}=void"'
            remedy += "; if several came true, give a table with a row for each option, its answer yes or no"
            raise Refused("unknown_outcome", "outcome", text, detail, remedy=remedy)
    void, others = [text for text in texts if meaning[text] == "void"], [text for text in texts if meaning[text]]
    resolved = {"not": ["", *filter(None, others)]} if settled else {}
    allowed = {"resolve_question": resolved, "annul_question": void}
    for question, outcome, chosen, key in _outcomes(forecasts, told, name, settled):
        yield Way(question, {"outcome": outcome}, allowed, chosen, f"answer {key}")


def _outcomes(
    forecasts: Forecasts, told: Answers, name: str, settled: Mapping[str, str]
) -> Iterator[tuple[Any, Fields, Fields, str]]:
    """Return the question, the outcome, what is chosen and the id. settled: question -> the option that came true."""
    if told.table is forecasts.table:
        pairs = {(text, option) for question, text in settled.items() for option in forecasts.apart[question]}
        outcome = _yes_or_no(
            f"{{{_option(forecasts)}}} of {{{name}}}", {f"{b} of {a}": (a, b) for a, b in sorted(pairs)}
        )
        value = forecasts.columns("probability")
        chosen = (
            option_columns(forecasts) if forecasts.shape.wide else {"where": without(value, forecasts.table, value[0])}
        )
        yield option_question(forecasts), outcome, chosen, option_question(forecasts)
        return
    for apart in options_apart(forecasts, told):
        pairs_of_option = {
            question: (text, apart.names[question]) for question, text in settled.items() if question in apart.names
        }
        if apart.where:
            source = f"{template(told.columns('question'))}: {{{name}}}"
            outcome = _yes_or_no(source, {f"{question}: {pair[0]}": pair for question, pair in pairs_of_option.items()})
        else:
            outcome = _yes_or_no(f"{{{name}}}", {pair[0]: pair for pair in pairs_of_option.values()})
        yield apart.question, outcome, {"where": apart.where}, apart.id


def _yes_or_no(source: str, pairs: Mapping[str, tuple[str, str]]) -> Fields:
    """Return the field that is yes where both of a pair are the same."""
    return {"from": source, "map": {text: "yes" if one == other else "no" for text, (one, other) in pairs.items()}}


def outcomes_of(forecasts: Forecasts, options: Options) -> dict[str, list[str]]:
    """Return the outcomes of each multiple-choice question, in the order in which the table has them first.

    Refuses: not_summing_to_one, duplicate_outcome (a question has only one).
    """
    outcomes, sums = defaultdict[str, dict[str, None]](dict), defaultdict[tuple[str, str, str], Decimal](Decimal)
    first = dict[tuple[str, str, str], int]()
    for item in forecasts.items:
        key = (item.question, item.forecaster, item.time)
        outcomes[item.question][item.part] = None
        sums[key] += value_of(item.text, forecasts.numbers)
        first.setdefault(key, item.row)
    if forecasts.shape.wide == "options":
        every = dict.fromkeys(map(forecasts.shape.label, forecasts.shape.columns))
        outcomes = defaultdict(dict, dict.fromkeys(outcomes, every))
    lone = next((question for question, names in outcomes.items() if len(names) < 2), None)
    if lone is not None:
        detail = (
            f"{forecasts.table.name}: the table has only the option {next(iter(outcomes[lone]))!r} of this question"
        )
        raise Refused("duplicate_outcome", "question", lone, detail, remedy="give a row, or a column, for each option")
    off = {key: total for key, total in sums.items() if abs(total - 1) > AS_ONE}
    if off and not options.normalize:
        key = next(iter(off))
        most = max(abs(total - 1) for total in off.values())
        where = f"{forecasts.table.unit} {forecasts.table.lines[first[key]]}"
        detail = (
            f"{len(off):,} of {len(sums):,} forecasts do not sum to 1, first that of {key[1]!r} on {key[0]!r}, {where}"
        )
        remedy = f"correct them, or give --normalize {most:f}, to divide each by a sum that differs from 1 by no more"
        remedy += "; or --independent, if several options may come true: each is then a question of its own"
        raise Refused("not_summing_to_one", "probability", str(off[key]), detail, remedy=remedy)
    return {question: [*names] for question, names in outcomes.items()}


def outcome_field(outcomes: Mapping[str, Sequence[str]], question: str) -> Any:
    """Return the outcomes as a field of a map: one list for all questions, or one for each. question: its template."""
    lists = {question: sorted(names) for question, names in outcomes.items()}
    if len({*map(tuple, lists.values())}) == 1:
        return next(iter(outcomes.values()))
    return {"from": question, "map": dict(outcomes)}


def known_alone(forecasts: Forecasts, told: Answers) -> Fields:
    """Return the condition that leaves out the rows of questions which nobody forecast, if there are any."""
    unknown, columns = unforecast(forecasts, told), told.columns("question")
    if unknown and told.table is forecasts.table and not forecasts.shape.wide:
        [column] = forecasts.columns("value" if "quantile" in forecasts.roles else "probability")
        return {"where": without([column], forecasts.table, column)}
    if unknown and len(columns) > 1:  # no one column tells these questions apart
        left_out = {*unknown}
        return {"where": {"#": [str(row) for row, key in enumerate(told.questions(), 1) if key not in left_out]}}
    return {"where": {columns[0]: {"not": unknown}}} if unknown else {}


def unforecast(forecasts: Forecasts, told: Answers) -> list[str]:
    """Return the questions in a table of answers that no forecast is on. Refuses: ambiguous (all of them)."""
    if forecasts.answer_row:
        return []
    known = {item.question for item in forecasts.items} | forecasts.apart.keys()
    every = [*dict.fromkeys(key for key in told.questions() if key)]
    unknown = [key for key in every if key not in known]
    if len(unknown) == len(every) and not forecasts.elsewhere:
        near = nearest(min(known), every) or min(every)
        some = f"{min(known)!r} in {forecasts.table.name}, {near!r} in {told.table.name}"
        detail = f"no question of the two tables has the same name: {some}"
        remedy = "name the column that agrees, --column question=NAME; if its names differ, rename one"
        raise Refused("ambiguous", "question", None, detail, remedy=remedy)
    return unknown


def answer_commands(forecasts: Forecasts, told: Answers, at: Any, options: Options) -> list[Fields]:
    """Return the commands that record the answers, and those that annul questions. at: a field of a map.

    Refuses: ambiguous, bad_number, unknown_outcome.
    """
    name = "#cell" if forecasts.answer_row else told.columns("outcome")[0]
    where: Fields = {told.columns("forecaster")[0]: forecasts.answer_row} if forecasts.answer_row else {}
    where |= known_alone(forecasts, told).get("where", {})
    texts = answer_texts(forecasts, told)
    if told.named:
        ways = [*named_answers(forecasts, told, name, texts, options)]
    else:
        answer, allowed = _answer(forecasts, told, name, texts, options)
        chosen: Fields = {"columns": wide_columns(forecasts)} if forecasts.answer_row else present(told, ["question"])
        question = "{#column}" if forecasts.answer_row else template(told.columns("question"))
        ways = [Way(question, answer, allowed, chosen, f"answer {question}")]
    commands = list[Fields]()
    for way in ways:
        for kind, fields in (("resolve_question", way.answer), ("annul_question", {"reason": "{" + name + "}"})):
            if allowed := way.allowed[kind]:
                condition = {"where": {**where, **way.chosen.get("where", {}), name: allowed}}
                command = {"type": kind, "id": way.id, **way.chosen, **condition}
                commands.append({**command, "fields": {"at": at, "question": way.question, **fields}})
    return commands


def answer_texts(forecasts: Forecasts, told: Answers) -> list[str]:
    """Return each text of an answer once, also those that say that there is none."""
    if forecasts.answer_row:
        rows = zip(
            forecasts.table.texts(forecasts.columns("forecaster")),
            forecasts.table.rows(forecasts.shape.columns),
            strict=True,
        )
        return [*dict.fromkeys(text for who, row in rows for text in row if who == forecasts.answer_row)]
    known = {item.question for item in forecasts.items} | forecasts.apart.keys()
    cells = zip(told.questions(), told.table.columns[told.columns("outcome")[0]], strict=True)
    return [*dict.fromkeys(text for question, text in cells if question in known)]


def is_by_option(forecasts: Forecasts, told: Answers, options: Options) -> bool:
    """Return whether each row of an option says by yes or no whether it was the answer."""
    if not forecasts.columns("option") or told.table is not forecasts.table:
        return False
    names = {*forecasts.table.columns[forecasts.columns("option")[0]]}
    texts = answer_texts(forecasts, told)
    return is_yes_or_no(texts, options) and not names & {*texts}


def _answer(
    forecasts: Forecasts, told: Answers, name: str, texts: Collection[str], options: Options
) -> tuple[Fields, dict[str, Any]]:
    """Return the field with the answer; and, for both commands, what the cell of the answer must be."""
    if forecasts.kind == "binary" or is_by_option(forecasts, told, options):
        meanings = meanings_of(name, texts, options)
        known = answers_alike(meanings)
        yes, no = ([text for text, meaning in known.items() if meaning == each] for each in ("yes", "no"))
        void = [text for text in texts if meanings[text] == "void"]
        others = [text for text in texts if text and meanings[text] in {"none", "void"}]
        if forecasts.kind == "binary":
            if not forecasts.answer_row:
                told.of("outcome")  # refuses two for one question
            answer: Fields = {"outcome": {"from": "{" + name + "}", "map": known}}
            return answer, {"resolve_question": {"not": ["", *others]}, "annul_question": void}
        which = f"{{{name}}}: {cell(forecasts.columns('option')[0])}"
        answer = {"outcome": {"from": which, "matches": f"(?:{'|'.join(map(re.escape, yes))}): (.*)"}}
        return answer, {"resolve_question": {"not": ["", *others, *no]}, "annul_question": void}
    outcomes = outcomes_of(forecasts, options) if forecasts.kind == "multiple_choice" else {}
    names = {each for names in outcomes.values() for each in names}
    meaning = {text: "" if text in names else general_meaning(text, options) for text in texts}
    other = [text for text in texts if meaning[text]]
    void = [text for text in texts if meaning[text] == "void"]
    conditions = {"resolve_question": {"not": ["", *(text for text in other if text)]}, "annul_question": void}
    if forecasts.kind == "multiple_choice":
        for key, text in told.of("outcome").items():
            if key in outcomes and text and not meaning[text] and text not in outcomes[key]:
                detail = f"{told.table.name}: the answer of {key!r} is none of its options {in_list(outcomes[key])}"
                remedy = f'correct it, or say that it is none or void: --answer "{text}=void"'
                raise Refused("unknown_outcome", "outcome", text, detail, remedy=remedy)
        return {"outcome": field_of(name, {}) if name != "#cell" else "{#cell}"}, conditions
    told.of("outcome")
    written = numbers_of(name, [*distinct(text for text in texts if not meaning[text])], options)
    return {"value": field_of(name, written.keys)}, conditions
