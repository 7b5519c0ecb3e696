"""The outcomes of questions, and the commands that record the answers."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.replay.mapping.shares import AS_ONE
from forecast_ledger.replay.scoring.map_text import cell, field_of, template
from forecast_ledger.replay.scoring.marginals import Way, named_answers
from forecast_ledger.replay.scoring.options import Options
from forecast_ledger.replay.scoring.recognised import Answers, Forecasts, present, without
from forecast_ledger.replay.scoring.written import (
    distinct,
    general_meaning,
    is_yes_or_no,
    meanings_of,
    numbers_of,
    value_of,
)

Fields = dict[str, Any]


def outcomes_of(found: Forecasts, options: Options) -> dict[str, list[str]]:
    """Return the outcomes of each multiple-choice question, in the order in which the table has them first.

    Refuses: not_summing_to_one, duplicate_outcome (a question has only one).
    """
    outcomes, sums = defaultdict[str, dict[str, None]](dict), defaultdict[tuple[str, str, str], Decimal](Decimal)
    first = dict[tuple[str, str, str], int]()
    for item in found.items:
        key = (item.question, item.forecaster, item.time)
        outcomes[item.question][item.part] = None
        sums[key] += value_of(item.text, found.numbers)
        first.setdefault(key, item.row)
    if found.shape.wide == "options":
        every = dict.fromkeys(map(found.shape.label, found.shape.columns))
        outcomes = defaultdict(dict, dict.fromkeys(outcomes, every))
    lone = next((question for question, names in outcomes.items() if len(names) < 2), None)
    if lone is not None:
        detail = f"{found.table.name}: the table has only the option {next(iter(outcomes[lone]))!r} of this question"
        raise Refused("duplicate_outcome", "question", lone, detail, remedy="give a row, or a column, for each option")
    off = {key: total for key, total in sums.items() if abs(total - 1) > AS_ONE}
    if off and not options.normalize:
        key = next(iter(off))
        most = max(abs(total - 1) for total in off.values())
        place = f"{found.table.unit} {found.table.lines[first[key]]}"
        detail = (
            f"{len(off):,} of {len(sums):,} forecasts do not sum to 1, first that of {key[1]!r} on {key[0]!r}, {place}"
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


def known_alone(found: Forecasts, told: Answers) -> Fields:
    """Return the condition that leaves out the rows of questions which nobody forecast, if there are any."""
    unknown, columns = unforecast(found, told), told.columns("question")
    if unknown and told.table is found.table and not found.shape.wide:
        [column] = found.columns("value" if "quantile" in found.roles else "probability")
        return {"where": without([column], found.table, column)}
    if unknown and len(columns) > 1:  # no one column tells these questions apart
        rest = {*unknown}
        return {"where": {"#": [str(row) for row, key in enumerate(told.questions(), 1) if key not in rest]}}
    return {"where": {columns[0]: {"not": unknown}}} if unknown else {}


def unforecast(found: Forecasts, told: Answers) -> list[str]:
    """Return the questions in a table of answers that no forecast is on. Refuses: ambiguous (all of them)."""
    if found.answer_row:
        return []
    known = {item.question for item in found.items} | found.apart.keys()
    every = [*dict.fromkeys(key for key in told.questions() if key)]
    unknown = [key for key in every if key not in known]
    if len(unknown) == len(every) and not found.elsewhere:
        some = f"{min(known)!r} in {found.table.name}, {listed(min(known), every, 1)!r} in {told.table.name}"
        detail = f"no question of the two tables has the same name: {some}"
        raise Refused(
            "ambiguous", "question", None, detail, remedy="name the columns that agree: --column question=NAME"
        )
    return unknown


def answer_commands(found: Forecasts, told: Answers, at: Any, options: Options) -> list[Fields]:
    """Return the commands that record the answers, and those that annul questions. at: a field of a map.

    Refuses: ambiguous, bad_number, unknown_outcome.
    """
    name = "#cell" if found.answer_row else told.columns("outcome")[0]
    where: Fields = {told.columns("forecaster")[0]: found.answer_row} if found.answer_row else {}
    where |= known_alone(found, told).get("where", {})
    texts = answer_texts(found, told)
    if told.named:
        ways = [*named_answers(found, told, name, texts, options)]
    else:
        answer, allowed = _answer(found, told, name, texts, options)
        chosen: Fields = {"columns": [*found.shape.columns]} if found.answer_row else present(told, ["question"])
        question = "{#column}" if found.answer_row else template(told.columns("question"))
        ways = [Way(question, answer, allowed, chosen, f"answer {question}")]
    commands = list[Fields]()
    for way in ways:
        for kind, fields in (("resolve_question", way.answer), ("annul_question", {"reason": "{" + name + "}"})):
            if allowed := way.allowed[kind]:
                condition = {"where": {**where, **way.chosen.get("where", {}), name: allowed}}
                command = {"type": kind, "id": way.id, **way.chosen, **condition}
                commands.append({**command, "fields": {"at": at, "question": way.question, **fields}})
    return commands


def answer_texts(found: Forecasts, told: Answers) -> list[str]:
    """Return each text of an answer once, also those that say that there is none."""
    if found.answer_row:
        rows = zip(found.table.texts(found.columns("forecaster")), found.table.rows(found.shape.columns), strict=True)
        return [*dict.fromkeys(text for who, row in rows for text in row if who == found.answer_row)]
    known = {item.question for item in found.items} | found.apart.keys()
    cells = zip(told.questions(), told.table.columns[told.columns("outcome")[0]], strict=True)
    return [*dict.fromkeys(text for question, text in cells if question in known)]


def is_by_option(found: Forecasts, told: Answers, options: Options) -> bool:
    """Return whether each row of an option says by yes or no whether it was the answer."""
    if not found.columns("option") or told.table is not found.table:
        return False
    names = {*found.table.columns[found.columns("option")[0]]}
    texts = answer_texts(found, told)
    return is_yes_or_no(texts, options) and not names & {*texts}


def _answer(
    found: Forecasts, told: Answers, name: str, texts: Collection[str], options: Options
) -> tuple[Fields, dict[str, Any]]:
    """Return the field with the answer; and, for both commands, what the cell of the answer must be."""
    if found.kind == "binary" or is_by_option(found, told, options):
        meanings = meanings_of(name, texts, options)
        by = {meaning: [text for text in texts if meanings[text] == meaning] for meaning in meanings.values()}
        if found.kind == "binary":
            if not found.answer_row:
                told.of("outcome")  # refuses two for one question
            table = {text: meanings[text] for text in [*by.get("yes", []), *by.get("no", [])]}
            answer: Fields = {"outcome": {"from": "{" + name + "}", "map": table}}
            return answer, {"resolve_question": [*table], "annul_question": by.get("void", [])}
        answer = {"outcome": cell(found.columns("option")[0])}
        return answer, {"resolve_question": by.get("yes", []), "annul_question": by.get("void", [])}
    outcomes = outcomes_of(found, options) if found.kind == "multiple_choice" else {}
    names = {each for names in outcomes.values() for each in names}
    meaning = {text: "" if text in names else general_meaning(text, options) for text in texts}
    other = [text for text in texts if meaning[text]]
    void = [text for text in texts if meaning[text] == "void"]
    conditions = {"resolve_question": {"not": ["", *(text for text in other if text)]}, "annul_question": void}
    if found.kind == "multiple_choice":
        for key, text in told.of("outcome").items():
            if key in outcomes and text and not meaning[text] and text not in outcomes[key]:
                detail = f"{told.table.name}: the answer of {key!r} is none of its options {', '.join(outcomes[key])}"
                remedy = f'correct it, or say that it is none or void: --answer "{text}=void"'
                raise Refused("unknown_outcome", "outcome", text, detail, remedy=remedy)
        return {"outcome": field_of(name, {}) if name != "#cell" else "{#cell}"}, conditions
    told.of("outcome")
    written = numbers_of(name, [*distinct(text for text in texts if not meaning[text])], options)
    return {"value": field_of(name, written.keys)}, conditions
