"""How tables were read, in words: every column, how it is written, and what the rules count."""

from collections.abc import Iterator, Mapping, Sequence

from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.replay.scoring.options import Options
from forecast_ledger.replay.scoring.recognised import Answers, Forecasts, Period
from forecast_ledger.replay.scoring.roles import Roles
from forecast_ledger.replay.scoring.settled import answer_texts, is_by_option, unforecast
from forecast_ledger.replay.scoring.tables import Table
from forecast_ledger.replay.scoring.written import Instants, general_meaning, meanings_of

_KINDS = {"binary": "binary", "multiple_choice": "multiple-choice", "numeric": "numeric"}
_SAID = {"yes": "yes", "no": "no", "none": "no answer yet", "void": "void: the question does not count"}
_MOST = 5  # names in a line


def words_of(
    found: Forecasts, told: Answers, period: Period, boundaries: Mapping[str, Instants | None], options: Options
) -> list[str]:
    """Return what was recognised, a line for each column and decision.

    boundaries: how the columns opens and closes are written; None if none is used.
    """
    how = {role: written.words for role, written in boundaries.items() if written is not None}
    return [
        *_forecast_words(found, how),
        *_answer_words(found, told, how, options),
        *_question_words(found),
        *_period_words(found, period, how),
    ]


def rule_words(rules: RuleSet, kind: str) -> str:
    """Return what rules count of questions of a kind, in words."""
    kernel = KERNELS[rules.quantile_kernel if kind == "numeric" else rules.kernel]
    better = "lower is better" if kernel.lower_is_better and rules.reference == "none" else "higher is better"
    last = "the last forecast before the close counts; " if rules.sampling == "spot" else ""
    return f"rules {rules.name}: {kernel.words}; {last}{better}"


def _forecast_words(found: Forecasts, boundaries: Mapping[str, str]) -> Iterator[str]:
    table, shape = found.table, found.shape
    of_kind = f" of {_KINDS[found.kind]} questions" * bool(found.where)
    yield f"{table.place}: {_count(len(table.lines), 'row')}{of_kind}"
    how = {"probability": found.numbers.words, "value": found.numbers.words, **boundaries}
    how["time"] = "" if found.times is None else found.times.words
    yield from _role_words(found.roles, how)
    if shape.wide:
        names = [*map(repr, map(shape.label, shape.columns))]
        yield _line(shape.wide, f"the columns {_some(names)}", found.numbers.words)
    if found.apart:
        some = next(item.question for item in found.items)
        yield f"  each option is a yes-or-no question of its own, such as {some!r}: several may come true, or none"
    if not found.names_forecaster:
        yield f"  no column names the forecaster: all forecasts are of {found.forecaster!r}"
    if found.answer_row:
        yield f"  the row {found.answer_row!r} has the answers"
    yield from _unused(table, found.roles, [*shape.columns, *found.where])


def _answer_words(found: Forecasts, told: Answers, boundaries: Mapping[str, str], options: Options) -> Iterator[str]:
    if told.table is not found.table:
        yield f"{told.table.place}: {_count(len(told.table.lines), 'row')}"
        yield from _role_words(told.roles, boundaries)
        yield from _unused(told.table, told.roles, ())
    texts = answer_texts(found, told)
    if (found.kind == "binary" and not told.named) or is_by_option(found, told, options):
        meanings = meanings_of("outcome", texts, options)
    else:
        meanings = {text: general_meaning(text, options) for text in texts}
    for meaning, words in _SAID.items():
        if some := [repr(text) for text in texts if meanings[text] == meaning]:
            yield _line("", f"{_some(some)}", words)
    if unknown := [name for name in unforecast(found, told) if name not in found.elsewhere]:
        yield _line("left out", _some([*map(repr, unknown)]), "on which there is no forecast")


def _question_words(found: Forecasts) -> Iterator[str]:
    items = found.items
    questions, people = ({getattr(item, name) for item in items} for name in ("question", "forecaster"))
    apart = found.kind == "binary"  # other forecasts are made of several rows or cells
    forecasts = {(item.question, item.forecaster, item.time, item.row if apart else 0) for item in items}
    kind = f"{_KINDS[found.kind]} question"
    yield f"{_count(len(questions), kind)}, {_count(len(people), 'forecaster')}, {_count(len(forecasts), 'forecast')}"
    rows, who = {item.row for item in items}, found.table.texts(found.columns("forecaster"))
    answers = {row for row, name in enumerate(who) if found.answer_row and name == found.answer_row}
    blank = [line for row, line in enumerate(found.table.lines) if row not in rows | answers]
    if blank:
        rest, first = _count(len(blank), "row"), f"{found.table.unit} {blank[0]}"
        yield f"no forecast is made of {rest} without a number, a question or a forecaster; the first is {first}"


def _period_words(found: Forecasts, period: Period, boundaries: Mapping[str, str]) -> Iterator[str]:
    first, last = period.words()
    if found.times is None:
        yield f"no column says when forecasts were made: all count as made at {first}, a day before every close"
        return
    if "closes" not in boundaries:
        yield f"all questions close at {last}"
    if "opens" not in boundaries:
        yield f"all questions open at {first}"


def _role_words(roles: Roles, how: Mapping[str, str]) -> Iterator[str]:
    for role, found in roles.items():
        yield _line(role, " and ".join(map(repr, found.columns)), how.get(role, ""))


def _unused(table: Table, roles: Roles, wide: Sequence[str]) -> Iterator[str]:
    used = {*wide, *(column for found in roles.values() for column in found.columns)}
    if rest := [repr(name) for name in table.columns if name not in used]:
        yield _line("not used", _some(rest), "")


def _line(role: str, columns: str, how: str) -> str:
    return f"  {role:<12} {columns}" + f": {how}" * bool(how)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST]) + f" and {len(names) - _MOST:,} more" * (len(names) > _MOST)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
