"""How tables were read, in words: every column, how it is written, and what the rules count.

The maps by which tables of forecasts and answers are recorded, and what was recognised, in words.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from forecast_ledger.ledger.core import gc_pause
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import DAY, format_count, format_instant
from forecast_ledger.ledger.model.commands import DEFAULT_DECIMALS
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.replay.scoring.options import KINDS, Ambiguous, Options, check_rules, rule_set, written_rules
from forecast_ledger.replay.scoring.recognised import (
    Answers,
    Forecasts,
    Period,
    largest_decimals,
    period_of,
    present,
    published_form,
    understand,
    understand_answers,
    without,
)
from forecast_ledger.replay.scoring.settled import (
    Fields,
    answer_commands,
    answer_texts,
    answers_beside,
    cell,
    constant,
    field_of,
    independent,
    is_by_option,
    known_alone,
    map_text,
    option_columns,
    option_question,
    options_apart,
    outcome_field,
    outcomes_of,
    template,
    unforecast,
    wide_columns,
)
from forecast_ledger.replay.scoring.shapes import Part, Roles, check_named, listed_columns, parts_of
from forecast_ledger.replay.scoring.tables import Table, with_line
from forecast_ledger.replay.scoring.written import Instants, distinct, general_meaning, instants_of, meanings_of

_KINDS = {"binary": "binary", "multiple_choice": "multiple-choice", "numeric": "numeric"}
_SAID = {"yes": "yes", "no": "no", "none": "no answer yet", "void": "void: the question does not count"}
_MOST = 5  # names in a line


def words_of(
    forecasts: Forecasts, told: Answers, period: Period, boundaries: Mapping[str, Instants | None], options: Options
) -> list[str]:
    """Return what was recognised, a line for each column and decision.

    boundaries: how the columns opens and closes are written; None if none is used.
    """
    how = {role: written.words for role, written in boundaries.items() if written is not None}
    if (closes := boundaries["closes"]) is not None and closes.day:
        how["closes"] += "; questions close at the end of the day"
    return [
        *_forecast_words(forecasts, how),
        *_answer_words(forecasts, told, how, options),
        *_question_words(forecasts),
        *_period_words(forecasts, period, how),
    ]


def rule_words(rules: RuleSet, kind: str) -> str:
    """Return what rules count of questions of a kind, in words."""
    kernel = KERNELS[rules.quantile_kernel if kind == "numeric" else rules.kernel]
    better = "lower is better" if kernel.lower_is_better and rules.reference == "none" else "higher is better"
    last = "the last forecast before the close counts; " if rules.sampling == "spot" else ""
    return f"rules {rules.name}: {kernel.words}; {last}{better}"


def _forecast_words(forecasts: Forecasts, boundaries: Mapping[str, str]) -> Iterator[str]:
    table, shape = forecasts.table, forecasts.shape
    of_kind = f" of {_KINDS[forecasts.kind]} questions" * bool(forecasts.where)
    yield f"{table.title}: {format_count(len(table.lines), 'row')}{of_kind}"
    how = {"probability": forecasts.numbers.words, "value": forecasts.numbers.words, **boundaries}
    how["time"] = "" if forecasts.times is None else forecasts.times.words
    yield from _role_words(forecasts.roles, how)
    if shape.wide:
        names = [*map(repr, map(shape.label, shape.columns))]
        yield _line(shape.wide, f"the columns {_some(names)}", forecasts.numbers.words)
    if forecasts.apart:
        some = next(item.question for item in forecasts.items)
        yield f"  each option is a yes-or-no question of its own, such as {some!r}: several may come true, or none"
    if not forecasts.names_forecaster:
        yield f"  no column names the forecaster: all forecasts are of {forecasts.forecaster!r}"
    if forecasts.answer_row:
        yield f"  the row {forecasts.answer_row!r} has the answers"
    yield from _unused(table, forecasts.roles, [*shape.columns, *forecasts.where])


def _answer_words(
    forecasts: Forecasts, told: Answers, boundaries: Mapping[str, str], options: Options
) -> Iterator[str]:
    if told.table is not forecasts.table:
        yield f"{told.table.title}: {format_count(len(told.table.lines), 'row')}"
        yield from _role_words(told.roles, boundaries)
        yield from _unused(told.table, told.roles, ())
    texts = answer_texts(forecasts, told)
    if (forecasts.kind == "binary" and not told.named) or is_by_option(forecasts, told, options):
        meanings = meanings_of("outcome", texts, options)
    else:
        meanings = {text: general_meaning(text, options) for text in texts}
    for meaning, words in _SAID.items():
        if some := [repr(text) for text in texts if meanings[text] == meaning]:
            yield _line("", f"{_some(some)}", words)
    if unknown := [name for name in unforecast(forecasts, told) if name not in forecasts.elsewhere]:
        yield _line("left out", _some([*map(repr, unknown)]), "on which there is no forecast")


def _question_words(forecasts: Forecasts) -> Iterator[str]:
    items = forecasts.items
    questions, people = ({getattr(item, name) for item in items} for name in ("question", "forecaster"))
    apart = forecasts.kind == "binary"  # other forecasts are made of several rows or cells
    made = {(item.question, item.forecaster, item.time, item.row if apart else 0) for item in items}
    counts = {f"{_KINDS[forecasts.kind]} question": questions, "forecaster": people, "forecast": made}
    yield ", ".join(format_count(len(each), noun) for noun, each in counts.items())
    rows, who = {item.row for item in items}, forecasts.table.texts(forecasts.columns("forecaster"))
    answers = {row for row, name in enumerate(who) if forecasts.answer_row and name == forecasts.answer_row}
    read = rows | answers
    blank = [line for row, line in enumerate(forecasts.table.lines) if row not in read]
    if blank:
        rows_left, first = format_count(len(blank), "row"), f"{forecasts.table.unit} {blank[0]}"
        yield f"no forecast is made of {rows_left} without a number, a question or a forecaster; the first is {first}"


def _period_words(forecasts: Forecasts, period: Period, boundaries: Mapping[str, str]) -> Iterator[str]:
    first, last = period.words()
    if forecasts.times is None:
        yield f"no column says when forecasts were made: all count as made at {first}, a day before every close"
        return
    if "closes" not in boundaries:
        yield f"all questions close at {last}"
    if "opens" not in boundaries:
        yield f"all questions open at {first}"


def _role_words(roles: Roles, how: Mapping[str, str]) -> Iterator[str]:
    for role, role_columns in roles.items():
        yield _line(role, " and ".join(map(repr, role_columns.columns)), how.get(role, ""))


def _unused(table: Table, roles: Roles, wide: Sequence[str]) -> Iterator[str]:
    used = {*wide, *(column for role_columns in roles.values() for column in role_columns.columns)}
    if others := [repr(name) for name in table.columns if name not in used]:
        yield _line("not used", _some(others), "")


def _line(role: str, columns: str, how: str) -> str:
    return f"  {role:<12} {columns}" + f": {how}" * bool(how)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST]) + f" and {len(names) - _MOST:,} more" * (len(names) > _MOST)


class Step(NamedTuple):
    """A table, and the map by which its rows are recorded. part: what it records, "" if it is all."""

    part: str
    table: Table
    text: str


class Plan(NamedTuple):
    """The steps in their order, what was recognised, and the contests that are opened, each with its own rules."""

    steps: list[Step]
    words: list[str]
    contests: list[str]


class _Making(NamedTuple):
    """What the commands are made from. source: of the questions. first: whether they are the first of their contest."""

    forecasts: Forecasts
    answers: Answers
    source: Forecasts | Answers
    period: Period
    opens: Instants | None
    closes: Instants | None
    contest: str
    rules: str | dict[str, str | int]
    options: Options
    first: bool = True

    @property
    def boundaries(self) -> dict[str, Instants | None]:
        """How the columns opens and closes are written; None if none is used."""
        return {"opens": self.opens, "closes": self.closes}


def plan(forecasts: Table, answers: Table | None, options: Options) -> Plan:
    """Return how tables are recorded; answers: None if the forecasts' table has them.

    Refuses: ambiguous, bad_csv, bad_instant, bad_number, duplicate_outcome, id_too_long, not_summing_to_one,
    unknown_outcome, unknown_rules, unscorable_question.
    """
    tables = [forecasts, *([] if answers is None else [answers])]
    check_named(tables, options)
    try:
        with gc_pause.paused():
            return _planned(forecasts, answers, options)
    except Refused as refused:
        first = with_line(refused, tables)
        if form := published_form(forecasts):
            remedy = f"{first.remedy}; or read the whole download: forecast-ledger import-from {form} LOG FOLDER"
            first = Refused(first.code, first.field, first.value, first.detail, remedy=remedy)
        for other in _others(forecasts, answers, options, refused):
            first.add_note(f"also {with_line(other, tables)}")
        raise first from None


def _others(forecasts: Table, answers: Table | None, options: Options, refused: Refused) -> Iterator[Ambiguous]:
    """Yield what else is ambiguous, found by going on in one of the ways in which a table can be read.

    What may be due to this way is left out: refusals that no option settles, and how a column that may be another one
    is written.
    """
    while isinstance(refused, Ambiguous):
        trial = refused.trial
        roles = trial.columns.keys() - options.columns.keys()
        guessed = roles.union(*map(trial.columns.__getitem__, roles))
        try:
            _planned(forecasts, answers, trial)
            return
        except Refused as other:
            refused = other
        if isinstance(refused, Ambiguous) and refused.field not in guessed:
            yield refused


def _planned(forecasts: Table, answers: Table | None, options: Options) -> Plan:
    parts = parts_of(forecasts, options)
    several = bool(parts[0].kind)
    made = [_making(part, answers, options) for part in parts]
    if options.independent and not any(making.forecasts.apart for making in made):
        detail = f"{forecasts.name}: no question has options that could be questions of their own"
        raise Refused("ambiguous", "independent", None, detail, remedy="leave --independent out")
    steps, words = list[Step](), list[str]()
    if several:
        made = [*_together(made)]
        kinds = ", ".join(part.kind for part in parts)
        words.append(f"{forecasts.name}: questions of several kinds, {parts[0].words}: {kinds}")
    for part, making in zip(parts, made, strict=True):
        recognised = making.forecasts
        kind = f"{part.kind}-" * several
        with _of_kind(part):
            steps += [step._replace(part=f"{kind}{step.part}".removesuffix("-")) for step in _steps(making)]
        words += words_of(recognised, making.answers, making.period, making.boundaries, options)
        words.append(rule_words(rule_set(making.rules), recognised.kind))
    return Plan(steps, words, [*dict.fromkeys(making.contest for making in made)])


def _making(part: Part, answers: Table | None, options: Options) -> _Making:
    """Return what the commands of the questions of one kind are made from. Refuses as `plan`, with the kind."""
    with _of_kind(part):
        return _made(part, answers, options)


@contextmanager
def _of_kind(part: Part) -> Iterator[None]:
    """Name the kind of the questions in what is refused of them, and how to leave them out."""
    try:
        yield
    except Refused as refused:
        if not part.kind:
            raise
        others = ",".join(kind for kind in KINDS if kind != part.kind)
        remedy = f"{refused.remedy}; or leave these questions out: --kinds {others}"
        detail = f"{part.kind} questions: {refused.detail or refused.meaning}"
        if isinstance(refused, Ambiguous):
            raise Ambiguous(refused.field, refused.value, detail, remedy=remedy, trial=refused.trial) from None
        raise Refused(refused.code, refused.field, refused.value, detail, remedy=remedy) from None


def _made(part: Part, answers: Table | None, options: Options) -> _Making:
    forecasts = understand(part.table, options, alone=answers is None, known=part.kind)._replace(where=part.where)
    if options.independent and forecasts.kind == "multiple_choice":
        forecasts = independent(forecasts)
    told = (
        _answers_within(forecasts, options)
        if answers is None
        else understand_answers(answers, options, apart=bool(forecasts.apart))
    )
    timed = forecasts.times is not None
    source: Forecasts | Answers = told if timed and answers is not None and _has_times(told) else forecasts
    opens, closes = (_instants(source, role, options) if timed else None for role in ("opens", "closes"))
    opening = [] if opens is None else [opens.read(text) for text in _cells(source, "opens")]
    period = period_of(forecasts, [at for at in opening if at is not None], options)
    rules = written_rules(options.rules, forecasts.kind)
    check_rules(
        rule_set(rules),
        forecasts.kind,
        has_times=timed,
        has_opens=bool(opens or options.opens),
        has_closes=bool(closes or options.closes),
    )
    return _Making(forecasts, told, source, period, opens, closes, options.contest or part.table.stem, rules, options)


def _together(made: Sequence[_Making]) -> Iterator[_Making]:
    """Return the kinds of questions of one table, with one period; those with the same rules are of one contest.

    Refuses: ambiguous (a question is of two kinds).
    """
    period = Period(min(each.period.opens for each in made), max(each.period.closes for each in made))
    questions = [frozenset(item.question for item in each.forecasts.items) for each in made]
    rules = list[Any]()
    for index, of_kind in enumerate(made):
        recognised = of_kind.forecasts
        others = frozenset[str]().union(*questions[:index], *questions[index + 1 :])
        if both := sorted(questions[index] & others):
            detail = (
                f"{recognised.table.name}: some of its rows are those of a {recognised.kind} question, and some are not"
            )
            remedy = "correct them, or name the column that says the kind: --column kind=NAME"
            raise Refused("ambiguous", "kind", both[0], detail, remedy=remedy)
        forecasts, first = recognised._replace(elsewhere=others), of_kind.rules not in rules
        making = of_kind._replace(forecasts=forecasts, period=period, first=first)
        if of_kind.source is recognised:
            making = making._replace(source=forecasts)
        yield making._replace(contest=f"{of_kind.contest} {recognised.kind}") if rules and first else making
        rules.append(of_kind.rules)


def _answers_within(forecasts: Forecasts, options: Options) -> Answers:
    """Return the answers in the forecasts' own table. Refuses: ambiguous (it has none)."""
    if forecasts.apart and "outcome" in forecasts.roles:
        return answers_beside(forecasts, options)
    if forecasts.answer_row or "outcome" in forecasts.roles:
        return Answers(forecasts.table, forecasts.roles)
    detail = f"{forecasts.table.name}: no column is known to have the answers, and there is no second table"
    columns = listed_columns(forecasts.table)
    remedy = f"give a table of answers, or name the column: --column outcome=NAME{columns}"
    raise Refused("ambiguous", "outcome", None, detail, remedy=remedy)


def _has_times(told: Answers) -> bool:
    return "closes" in told.roles or "opens" in told.roles


def _instants(source: Forecasts | Answers, role: str, options: Options) -> Instants | None:
    """Return how the opening or the close of questions is written; None if no column has it, or the caller says it."""
    if getattr(options, role) or not source.columns(role):
        return None
    texts = [*distinct(_cells(source, role))]
    return instants_of(source.columns(role)[0], texts, options) if texts else None


def _cells(source: Forecasts | Answers, role: str) -> Sequence[str]:
    return source.table.columns[source.columns(role)[0]]


def _steps(making: _Making) -> Iterator[Step]:
    """Return the steps: questions, forecasts and answers, each from its table; of one table all at once."""
    table, answers = making.forecasts.table, making.answers.table
    forecasts, setup, settled = making.forecasts, [*_setup(making)], _settled(making)
    made = _of_part(_forecast(making), forecasts)
    if making.source is forecasts:
        setup = [_of_part(command, forecasts) for command in setup]
    if answers is table:
        settled = [_of_part(command, forecasts) for command in settled]
    sort = {"sort": "at"}
    if answers is table:
        title = f"Forecasts and answers of {_title(table)}."
        yield Step("", table, map_text(title, {**sort, **table.keys}, [*setup, made, *settled]))
        return
    order = {} if _is_ordered(making.forecasts) else sort
    if making.source is making.answers:
        yield Step("questions", answers, map_text(f"Questions of {_title(answers)}.", answers.keys, setup))
        setup = []
    title = f"Forecasts of {_title(table)}."
    yield Step("forecasts", table, map_text(title, {**order, **table.keys}, [*setup, made]))
    yield Step("answers", answers, map_text(f"Answers of {_title(answers)}.", answers.keys, settled))


def _of_part(command: Fields, forecasts: Forecasts) -> Fields:
    """Return a command that a map makes only of the rows of these forecasts."""
    if not forecasts.where or command["type"] == "open_contest":
        return command
    return {**command, "where": {**forecasts.where, **command.get("where", {})}}


def _settled(making: _Making) -> list[Fields]:
    """Return the commands of the answers, which are recorded as of the close."""
    told, forecasts, at = making.answers, making.forecasts, making.period.words()[1]
    if making.closes is not None and making.source.table is told.table:
        return answer_commands(forecasts, told, _boundary(told, "closes", making.closes, at), making.options)
    if making.closes is not None:
        ends = [making.closes.read(text) for text in distinct(_cells(making.source, "closes"))]
        at = format_instant(max([making.period.closes, *(end + DAY for end in ends if end is not None)]))
    return answer_commands(forecasts, told, at, making.options)


def _title(table: Table) -> str:
    return "".join(mark for mark in table.name if mark.isprintable())


def _is_ordered(forecasts: Forecasts) -> bool:
    """Return whether no forecast is earlier than the one before it of the same forecaster on the same question."""
    times, last = forecasts.times, dict[tuple[str, str], int]()
    if times is None:
        return True
    read = {text: times.read(text) or 0 for text in distinct(_cells(forecasts, "time"))}
    for item in forecasts.items:
        key, at = (item.question, item.forecaster), read.get(item.time, 0)
        if at < last.get(key, at):
            return False
        last[key] = at
    return True


def _setup(making: _Making) -> Iterator[Fields]:
    """Return the commands that open the contest and its questions."""
    contest = constant(making.contest)
    opening = {"at": making.period.words()[0], "contest": contest, "rules": making.rules}
    if making.first:
        usual = making.options.contest or making.forecasts.table.stem
        name = "contest" if making.contest == usual else f"contest {contest}"
        yield {"type": "open_contest", "id": name, "fields": opening}  # of every row; those with one id are one command
    for question, key, chosen in _questions(making):
        yield from _opening(making, question, key, chosen)


def _questions(making: _Making) -> Iterator[tuple[Any, str, Fields]]:
    """Return each question of a row: a field of the map, its name in the ids of commands, and what is chosen."""
    source, forecasts = making.source, making.forecasts
    question, filled = template(source.columns("question")), present(source, ["question"])
    if isinstance(source, Forecasts) and source.shape.wide == "questions":
        yield "{#column}", "{#column}", {"columns": wide_columns(forecasts)}
    elif isinstance(source, Forecasts) and source.apart and source.shape.wide:
        yield option_question(source), option_question(source), {**filled, **option_columns(source)}
    elif isinstance(source, Answers) and source.named:
        known = known_alone(forecasts, source).get("where", {})
        for option in options_apart(forecasts, source):
            yield option.question, option.id, {**filled, **_where({**known, **option.where})}
    else:
        yield question, question, {**filled, **known_alone(forecasts, Answers(source.table, source.roles))}


def _where(condition: Fields) -> Fields:
    return {"where": condition} if condition else {}


def _opening(making: _Making, question: Any, key: str, chosen: Fields) -> Iterator[Fields]:
    """Return the commands that open a question and add it to the contest."""
    source, (opens_at, closes_at) = making.source, making.period.words()
    fields: Fields = {"at": opens_at, "question": question, "kind": making.forecasts.kind}
    if title := _title_column(source):
        fields["title"] = cell(title)
    if making.forecasts.kind == "multiple_choice":
        fields["outcomes"] = outcome_field(outcomes_of(making.forecasts, making.options), question)
    if making.forecasts.kind == "numeric":
        fields["range"] = _range(making)
    fields["opens_at"] = _boundary(source, "opens", making.opens, opens_at)
    fields["closes_at"] = _boundary(source, "closes", making.closes, closes_at)
    yield {"type": "open_question", "id": f"open {key}", **chosen, "fields": fields}
    added = {"at": opens_at, "contest": constant(making.contest), "question": question}
    yield {"type": "add_question", "id": f"add {key}", **chosen, "fields": added}


def _boundary(source: Forecasts | Answers, role: str, written: Instants | None, usual: str) -> Any:
    """Return when questions open or close: as a column says, or the same for all."""
    if written is None:
        return usual
    Answers(source.table, source.roles).of(role)  # refuses two for one question
    days = {"end_of_day": True} if role == "closes" and written.day else {}
    return field_of(source.columns(role)[0], {**written.keys, **days})


def _title_column(source: Forecasts | Answers) -> str:
    """Return the column of titles, if it says the same in every row of a question; "" if there is none."""
    if not source.columns("title") or not source.columns("question"):
        return ""
    try:
        Answers(source.table, source.roles).of("title")
    except Refused:
        return ""
    return source.columns("title")[0]


def _range(making: _Making) -> Fields:
    """Return the range of a numeric question that takes quantiles, open at both ends."""
    forecasts = making.forecasts
    numbers = {*(item.text for item in forecasts.items), *distinct(answer_texts(forecasts, making.answers))}
    decimals, least, most = largest_decimals(
        [text for text in numbers if _is_number(text, forecasts)], forecasts.numbers
    )
    levels = [*forecasts.shape.levels] or sorted(distinct(_cells(forecasts, "quantile")), key=_level)
    return {
        "lower": f"{least:f}",
        "upper": f"{most if most > least else least + 1:f}",
        "open_lower": True,
        "open_upper": True,
        "levels": [*map(_level, levels)],
        **({"decimals": decimals} if decimals > DEFAULT_DECIMALS else {}),
    }


def _is_number(text: str, forecasts: Forecasts) -> bool:
    try:
        largest_decimals([text], forecasts.numbers)
    except Refused:
        return False
    return True


def _level(text: str) -> Any:
    return _number(text, "quantile")


def _number(text: str, field: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise Refused("bad_number", field, text) from None


def _forecast(making: _Making) -> Fields:
    """Return the command of a forecast."""
    forecasts, shape = making.forecasts, making.forecasts.shape
    question = (
        "{#column}"
        if shape.wide == "questions"
        else option_question(forecasts)
        if forecasts.apart
        else template(forecasts.columns("question"))
    )
    who = template(forecasts.columns("forecaster")) or constant(forecasts.forecaster)
    who = "{#column}" if shape.wide == "forecasters" else who
    time = forecasts.columns("time")[:1] if forecasts.times is not None else ()
    at = field_of(time[0], forecasts.times.keys) if forecasts.times is not None else format_instant(forecasts.made_at)
    command: Fields = {"type": "submit_forecast", "id": " ".join([question, who, *map(cell, time)])}
    fields: Fields = {"at": at, "question": question, "participant": who}
    grouped = [*forecasts.columns("question"), *forecasts.columns("forecaster"), *time]
    keys, part = forecasts.numbers.keys, forecasts.columns("option") or forecasts.columns("quantile")
    where: Fields = {}
    if forecasts.answer_row:
        where |= {column: {"not": [forecasts.answer_row]} for column in forecasts.columns("forecaster")[:1]}
    command |= present(forecasts, ["question", "forecaster"])
    if shape.wide in {"quantiles", "options"} and not forecasts.apart:
        for column in shape.columns:
            where |= without([column], forecasts.table, column)
        parts = {shape.label(column): field_of(column, keys) for column in shape.columns}
        fields |= {"probabilities": parts} if shape.wide == "options" else {"quantiles": [*parts.values()]}
    elif shape.wide:
        chosen = (
            option_columns(forecasts)
            if forecasts.apart
            else {"columns": wide_columns(forecasts), **_where(without(shape.columns, forecasts.table, "#cell"))}
        )
        where |= chosen.pop("where", {})
        command |= chosen
        fields["probability"] = {"from": "{#cell}", **keys} if keys else "{#cell}"
    else:
        [column] = forecasts.columns("value" if "quantile" in forecasts.roles else "probability")
        where |= without([column], forecasts.table, column)
        value = field_of(column, keys)
        if part:
            command["group"] = grouped
            long = {"level": cell(part[0]), "value": value}
            levels = sorted(map(_level, distinct(_cells(forecasts, "quantile")))) if forecasts.kind == "numeric" else []
            fields |= {"quantiles": {**long, "levels": levels}} if levels else {"probabilities": long}
        else:
            fields["probability"] = value
    if "group" not in command and _repeats(forecasts):
        command["id"] = " ".join(["row {#}", *["{#column}"] * ("columns" in command)])
    if where:
        command["where"] = where
    if making.options.normalize and "probabilities" in fields:
        command["normalize"] = {"within": _number(making.options.normalize, "normalize")}
        fields["normalized"] = "by_sum"
    return {**command, "fields": fields}


def _repeats(forecasts: Forecasts) -> bool:
    """Return whether two forecasts have the same question, forecaster and time."""
    keys = [(item.question, item.forecaster, item.time, item.part) for item in forecasts.items]
    return len({*keys}) < len(keys) or any(sum(map(len, key)) > _LONGEST for key in keys)


_LONGEST = 190  # characters of a question, a forecaster and a time in the id of a command
