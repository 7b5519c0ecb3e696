"""Options of which several may come true: each is a yes-or-no question of its own, whose answer may name an option."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.replay.scoring.map_text import constant, template
from forecast_ledger.replay.scoring.options import Options
from forecast_ledger.replay.scoring.recognised import Answers, Forecasts, without
from forecast_ledger.replay.scoring.roles import Found
from forecast_ledger.replay.scoring.written import distinct, general_meaning, is_absent, is_yes_or_no

Fields = dict[str, Any]


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


def independent(found: Forecasts) -> Forecasts:
    """Return forecasts of options as forecasts of a question each, such as `cup red`. Refuses: ambiguous."""
    apart, named = defaultdict[str, dict[str, None]](dict), dict[str, tuple[str, str]]()
    for item in found.items:
        apart[item.question][item.part] = None
        pair, name = (item.question, item.part), f"{item.question} {item.part}"
        if named.setdefault(name, pair) != pair:
            detail = f"{found.table.name}: {named[name]} and {pair} would be one question"
            raise Refused("ambiguous", "question", name, detail, remedy="name a column of ids: --column question=NAME")
    items = [item._replace(question=f"{item.question} {item.part}", part="") for item in found.items]
    roles = {role: each for role, each in found.roles.items() if role != "option"}
    if not found.shape.wide:
        own = found.roles["question"]
        roles["question"] = Found((*own.columns, *found.columns("option")[:1]), own.said)
    options = {question: tuple(names) for question, names in apart.items()}
    return found._replace(kind="binary", items=items, roles=roles, apart=options)


def answers_beside(found: Forecasts, options: Options) -> Answers:
    """Return the answers in the table of independent options: a row names the option, or says yes or no of its own."""
    if found.shape.wide:
        return Answers(found.table, found.roles, named=True)
    [*columns, option] = found.columns("question")
    texts = {*distinct(found.table.columns[found.columns("outcome")[0]])}
    if is_yes_or_no(texts, options) and not texts & {*found.table.columns[option]}:
        return Answers(found.table, found.roles)
    return Answers(found.table, {**found.roles, "question": Found(tuple(columns), said=False)}, named=True)


def own_columns(found: Forecasts) -> Fields:
    """Return how a map chooses the columns of options, and of a row only the cells that have a value."""
    columns, prefix = found.shape.columns, found.shape.prefix
    names = "|".join(map(re.escape, map(found.shape.label, columns)))
    chosen: Any = {"matches": f"{re.escape(prefix)}({names})"} if prefix else [*columns]
    absent = sorted({text for column in columns for text in found.table.columns[column] if text and is_absent(text)})
    return {"columns": chosen, "where": {"#cell": {"not": ["", *absent]}}}


def own_question(found: Forecasts) -> str:
    """Return the template of the question of an option, in the table of forecasts."""
    columns = [*found.columns("question"), *[_option(found)] * bool(found.shape.wide)]
    return template(columns)


def _option(found: Forecasts) -> str:
    """Return what has the option in a map: a column or, of a table with a column for each option, its name."""
    if not found.shape.wide:
        return found.columns("question")[-1]
    return "#1" if found.shape.prefix else "#column"


class Apart(NamedTuple):
    """What makes one command of a row of a question, for one of its options. names: question -> this option.

    where: the condition that the question has so many options, if not all have. question: a field of the map.
    """

    names: Mapping[str, str]
    where: Fields
    question: Any
    id: str


def options_apart(found: Forecasts, told: Answers) -> Iterator[Apart]:
    """Return how a map makes a command for each option of a row of a table of answers, which has none of them.

    There is one for each option if all questions have the same, or else for the first of each question, the second ...
    """
    columns = told.columns("question")
    source = template(columns)
    if len({*found.apart.values()}) == 1:
        for name in next(iter(found.apart.values())):
            question = f"{source} {constant(name)}"
            yield Apart(dict.fromkeys(found.apart, name), {}, question, question)
        return
    for number, place in enumerate(zip_longest(*found.apart.values()), 1):
        names = {question: name for question, name in zip(found.apart, place, strict=True) if name is not None}
        where: Fields = {columns[0]: [*names]}
        if len(columns) > 1:  # no one column tells these questions apart
            where = {"#": [str(row) for row, key in enumerate(told.questions(), 1) if key in names]}
        named = {question: f"{question} {name}" for question, name in names.items()}
        yield Apart(names, where, {"from": source, "map": named}, f"{source}, option {number}")


def named_answers(found: Forecasts, told: Answers, name: str, texts: Sequence[str], options: Options) -> Iterator[Way]:
    """Return how the answers of options are made from answers that name an option: yes for it, no for the others.

    name: the column of the answer; texts: of the answers.
    Refuses: ambiguous (two answers of a question), unknown_outcome.
    """
    every = {option for names in found.apart.values() for option in names}
    meaning = {text: "" if text in every else general_meaning(text, options) for text in texts}
    settled = dict[str, str]()
    for question, text in told.of("outcome").items():
        if question not in found.apart or not text or meaning[text]:
            continue
        settled[question] = text
        if text not in found.apart[question]:
            few = ", ".join(found.apart[question])
            detail = f"{told.table.name}: the answer of {question!r} is none of its options {few}"
            remedy = f'correct it, or say that it is none or void: --answer "{text}=void"'
            remedy += "; if several came true, give a table with a row for each option, its answer yes or no"
            raise Refused("unknown_outcome", "outcome", text, detail, remedy=remedy)
    known = [text for text in texts if text and not meaning[text]]
    allowed = {"resolve_question": known, "annul_question": [text for text in texts if meaning[text] == "void"]}
    for question, outcome, chosen, key in _outcomes(found, told, name, settled):
        yield Way(question, {"outcome": outcome}, allowed, chosen, f"answer {key}")


def _outcomes(
    found: Forecasts, told: Answers, name: str, settled: Mapping[str, str]
) -> Iterator[tuple[Any, Fields, Fields, str]]:
    """Return the question, the outcome, what is chosen and the id. settled: question -> the option that came true."""
    if told.table is found.table:
        pairs = {(text, option) for question, text in settled.items() for option in found.apart[question]}
        outcome = _yes_or_no(f"{{{_option(found)}}} of {{{name}}}", {f"{b} of {a}": (a, b) for a, b in sorted(pairs)})
        value = found.columns("probability")
        chosen = own_columns(found) if found.shape.wide else {"where": without(value, found.table, value[0])}
        yield own_question(found), outcome, chosen, own_question(found)
        return
    for each in options_apart(found, told):
        own = {question: (text, each.names[question]) for question, text in settled.items() if question in each.names}
        if each.where:
            source = f"{template(told.columns('question'))}: {{{name}}}"
            outcome = _yes_or_no(source, {f"{question}: {pair[0]}": pair for question, pair in own.items()})
        else:
            outcome = _yes_or_no(f"{{{name}}}", {pair[0]: pair for pair in own.values()})
        yield each.question, outcome, {"where": each.where}, each.id


def _yes_or_no(source: str, pairs: Mapping[str, tuple[str, str]]) -> Fields:
    """Return the field that is yes where both of a pair are the same."""
    return {"from": source, "map": {text: "yes" if one == other else "no" for text, (one, other) in pairs.items()}}
