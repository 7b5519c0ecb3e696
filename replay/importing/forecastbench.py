"""Read ForecastBench's question sets, forecast sets and resolution sets.

A question of a data set is one question for each of its resolution dates; a combination is one for each of the four
ways in which its two parts can turn out, too. A forecast set does not say when it came: its forecasts are made when the
due date begins, and the questions of a round are open on that day alone, in UTC.

Source: ForecastBench, Datasets (github.com/forecastingresearch/forecastbench-datasets); wiki, "How to submit to
ForecastBench"; Karger et al. (2025), arXiv:2409.19839, sections 3 and 4.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, product
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import TEXT_LENGTH
from forecast_ledger.ledger.model.commands import (
    AddQuestion,
    AnnulQuestion,
    AnyCommand,
    OpenContest,
    OpenQuestion,
    ResolveQuestion,
    SubmitForecast,
)
from forecast_ledger.ledger.model.events import Attestation
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.json_files import read_json_text
from forecast_ledger.replay.importing.source_files import SourceFiles, is_readme
from forecast_ledger.replay.importing.source_items import (
    BARE,
    KNOWN,
    Columns,
    NotCarried,
    Scope,
    Source,
    SourceItem,
    Unread,
    cut_off,
    fitting_id,
    label_of,
    start_of_day,
)

SET_BYTES = 2**30  # of one set
RULES = "forecastbench"
OTHER_JSON = NotCarried("a JSON file that is no question, forecast or resolution set")
MARKET_SOURCES = {"infer", "kalshi", "manifold", "metaculus", "polymarket"}  # where no question set is at hand
_DATE = len("2026-03-01")  # of a round, with which the id of a question begins
_SIGNS = {1: "+", -1: "-"}
_Id = str | list[str]
_Content = dict[str, Any]
_Form = TypeVar("_Form", bound=Struct)


class _Question(Struct):
    id: _Id
    source: str
    question: str = ""
    url: str = ""
    resolution_dates: list[str] | str | None = None


class _Forecast(Struct):
    id: _Id
    source: str
    forecast: Decimal | None
    resolution_date: str | None = None
    direction: list[int] | str | None = None
    imputed: bool = False
    user_id: str | None = None


class _Resolution(Struct):
    id: _Id
    source: str
    resolution_date: str
    resolved: bool
    resolved_to: Decimal | None
    direction: list[int] | str | None = None


class _Forecaster(Struct):
    """What a forecast set says before its forecasts."""

    organization: str
    model: str


_DUE = ("forecast_due_date", "question_set", "question-set")  # the keys of a set, one of which begins with the date
_KINDS = ("questions", "forecasts", "resolutions")  # the keys of the items of each set


_WORDS, _PRICE = "words about the question", "the price of a market is no forecast of a participant"
_DAY_ALONE = "questions are open on the due date alone"
COLUMNS = {
    "set": Columns(
        used=(*_KINDS, *_Forecaster.__struct_fields__, *_DUE),
        ignored={"model_organization": "a participant is `ORGANIZATION: MODEL`"},
    ),
    "questions": Columns(
        used=_Question.__struct_fields__,
        ignored={
            "combination_of": "the parts of a combination, whose ids are its own",
            "resolution_criteria": _WORDS,
            "background": _WORDS,
            "source_intro": _WORDS,
            "market_info_open_datetime": _DAY_ALONE,
            "market_info_close_datetime": _DAY_ALONE,
            "market_info_resolution_criteria": _WORDS,
            "freeze_datetime": _DAY_ALONE,
            "freeze_datetime_value": _PRICE,
            "freeze_datetime_value_explanation": _WORDS,
        },
    ),
    "forecasts": Columns(
        used=_Forecast.__struct_fields__,
        ignored=dict.fromkeys(("reasoning", "searches", "consulted_urls"), "how a forecaster came to a forecast"),
    ),
    "resolutions": Columns(used=_Resolution.__struct_fields__, ignored={}),
}


class _SetFile(NamedTuple):
    """A file: the key of its items, the due date of its round, its path, and, of a forecast set, whose it is."""

    kind: str
    due: str
    name: str
    who: str = ""


class _Said(NamedTuple):
    """What a row says: of what, in which field which value. order: the first of the rows that agree is recorded."""

    name: str
    field: str
    value: Decimal | None
    order: str
    location: InputLocation
    command: AnyCommand


class _QuestionSets(NamedTuple):
    """What the question sets of a source ask.

    first: round, source and id -> the first item with them, and its location. contests: those that are opened.
    """

    first: dict[tuple[str, str, str], tuple[InputLocation, _Question]]
    questions: set[str]
    rounds: set[str]
    contests: set[str]


def read_forecastbench(files: SourceFiles, rules: str | None) -> Source:
    """Return the commands of the sets: round by round the questions and forecasts, then all answers by date.

    rules: the preset of the contests; if None, the mean Brier score. Raises, before anything is returned, Refused
    (bad_source): no set is there.
    """
    set_files: list[_SetFile] = []
    reason = "a link, which is not followed"
    others: list[SourceItem] = [(InputLocation(0, file=name), NotCarried(reason)) for name in files.links]
    for name in (each for each in files.names if not is_readme(each)):
        item = _set_file(files, name)
        if isinstance(item, _SetFile):
            set_files.append(item)
        else:
            others.append((InputLocation(0, file=name), item))
    if not set_files:
        remedy = "give a folder of question_sets, forecast_sets and resolution_sets, a zip of it, or one set"
        for _, refused in others:
            if isinstance(refused, Refused):
                raise refused
        raise Refused("bad_source", "path", str(files.path), "no set of ForecastBench is there", remedy=remedy)
    rounds = {kind: {each.due for each in set_files if each.kind == kind} for kind in _KINDS}
    whole = rounds["questions"] & rounds["forecasts"]
    files.partial |= {location.file for location, item in others if isinstance(item, Refused) or item == OTHER_JSON}
    scope = Scope(
        forecasts=lambda opened: opened.question[:_DATE] in whole,
        answers=lambda opened: opened.question[:_DATE] in rounds["resolutions"],
        unread=lambda *_: bool(files.partial),
        bare=BARE if rounds["questions"] - rounds["forecasts"] else "",
    )
    return Source(chain(others, _items(files, set_files, rules)), scope)


def _set_file(files: SourceFiles, name: str) -> _SetFile | NotCarried | Refused:
    """Return which set a file is, or why it is none."""
    if not name.lower().endswith(".json"):
        return NotCarried("a file that is not JSON")
    try:
        kind, content = _read(files, name)
        if kind:
            if not content[kind]:
                raise Refused("bad_source", kind, None, "the set has none")
            who = _forecasters(content, name) if kind == "forecasts" else ""
            return _SetFile(kind, _due_date(content, name), name, who)
    except Refused as refused:
        return refused
    return OTHER_JSON


def _items(files: SourceFiles, set_files: Sequence[_SetFile], rules: str | None) -> Iterator[SourceItem]:
    question_sets = _QuestionSets({}, set(), set(), set())
    for due in sorted({each.due for each in set_files}):
        for file in sorted(each for each in set_files if (each.kind, each.due) == ("questions", due)):
            yield from _questions(files, file, question_sets, rules)
        by_forecaster: dict[str, list[_SetFile]] = {}
        for file in sorted(each for each in set_files if (each.kind, each.due) == ("forecasts", due)):
            by_forecaster.setdefault(file.who, []).append(file)
        for sets in by_forecaster.values():
            yield from _said_once(each for file in sets for each in _forecasts(files, file, question_sets))
    resolved = sorted(each for each in set_files if each.kind == "resolutions")
    answers = _said_once(each for file in resolved for each in _answers(files, file, question_sets))
    yield from sorted(answers, key=lambda item: getattr(item[1], "at", ""))


def _said_once(rows: Iterable[SourceItem | _Said]) -> Iterator[SourceItem]:
    """Return what rows say, once; rows that say it again are known, those that contradict each other are refused."""
    by_name: dict[str, list[_Said]] = {}
    for row in rows:
        if isinstance(row, _Said):
            by_name.setdefault(row.name, []).append(row)
        else:
            yield row
    for said in by_name.values():
        first, *others = sorted(said, key=lambda each: each.order)
        against = [each for each in others if each.value != first.value]
        for refused_row in against:
            value = "no value" if first.value is None else first.value
            detail = f"{first.location.where()} says {value} for the same question; neither counts"
            yield refused_row.location, Refused("bad_source", refused_row.field, refused_row.value, detail)
        if not against:
            yield first.location, first.command
            yield from ((each.location, KNOWN) for each in others)


def _questions(
    files: SourceFiles, file: _SetFile, question_sets: _QuestionSets, rules: str | None
) -> Iterator[SourceItem]:
    question_sets.rounds.add(file.due)
    for location, item in _each(files, file, _Question):
        if isinstance(item, Refused | NotCarried):
            yield location, item
            continue
        question, dates = item, item.resolution_dates
        market = not isinstance(dates, list)
        said = question_sets.first.setdefault((file.due, question.source, _key(question.id)), (location, question))
        if market == isinstance(said[1].resolution_dates, list):
            detail = f"{said[0].where()}, which counts, says otherwise whether the question is a market's"
            yield location, Refused("bad_source", "resolution_dates", dates, detail)
            continue
        if (said[1].question, said[1].url) != (question.question, question.url):
            yield location, NotCarried("other words or another address of a question that an item before it has")
            question = structs.replace(question, question=said[1].question, url=said[1].url)
        parts = ["market" if market else "dataset", *["combination"] * isinstance(question.id, list)]
        for direction in product((1, -1), repeat=len(question.id)) if isinstance(question.id, list) else [()]:
            for date in dates if isinstance(dates, list) else [""]:
                name = _question_id(file.due, question.source, question.id, direction, date)
                if name in question_sets.questions:
                    yield location, KNOWN
                    continue
                question_sets.questions.add(name)
                title = _title(question, direction, file.due, date)
                yield from ((location, each) for each in cut_off(TEXT_LENGTH, title=title, url=question.url))
                for command in _openings(_Opened(name, file.due, title, question), parts, rules):
                    if not isinstance(command, OpenContest) or command.contest not in question_sets.contests:
                        yield location._replace(command=str(command.__struct_config__.tag)), command
                question_sets.contests.add(" ".join([file.due, *parts]))


class _Opened(NamedTuple):
    """A question of the ledger, and the one that it was made of."""

    name: str
    due: str
    title: str
    question: _Question


def _openings(opened: _Opened, parts: list[str], rules: str | None) -> Iterator[AnyCommand]:
    """Return the commands that open a question and put it into the contest of its round and sort."""
    name, due, title, question = opened
    at, contest = start_of_day(due, "forecast_due_date"), " ".join([due, *parts])
    yield OpenContest(id=f"forecastbench contest {contest}", at=at, contest=contest, rules=rules or RULES)
    yield OpenQuestion(
        id=fitting_id(f"forecastbench open {name}"),
        at=at,
        question=name,
        kind="binary",
        title=title[:TEXT_LENGTH],
        opens_at=at,
        closes_at=start_of_day(due, "forecast_due_date", 1),
        group=label_of(question.source),
        category=" ".join(parts),
        url=question.url[:TEXT_LENGTH] if question.url not in {"", "N/A"} else None,
        source="ForecastBench",
    )
    yield AddQuestion(id=fitting_id(f"forecastbench add {name}"), at=at, contest=contest, question=name)


def _forecasters(content: _Content, name: str) -> str:
    """Return whose a forecast set is, so that all sets of one participant have the same. Refuses: bad_source."""
    try:
        msgspec.convert(content, _Forecaster)
    except msgspec.ValidationError as error:
        raise Refused("bad_source", name, None, str(error)) from None
    people = any(isinstance(each, dict) and each.get("user_id") for each in content["forecasts"])
    return str([content.get("organization"), None if people else content.get("model")])


def _forecasts(files: SourceFiles, file: _SetFile, question_sets: _QuestionSets) -> Iterator[SourceItem | _Said]:
    """Return the forecasts of a set; one is taken for imputed if all its rows are."""
    head = msgspec.convert(_read(files, file.name)[1], _Forecaster)
    for location, forecast in _each(files, file, _Forecast):
        if isinstance(forecast, Refused | NotCarried):
            yield location, forecast
            continue
        if forecast.forecast is None:
            yield location, NotCarried("a forecast without a number")
            continue
        who = f"{head.organization}: {forecast.user_id or head.model}"
        name, is_market = _question_of(file.due, forecast, question_sets)
        if not (is_market or forecast.resolution_date):
            files.partial.add(file.name)
            yield location, Refused("bad_source", "resolution_date", None, "a question of a data set has one")
            continue
        if file.due in question_sets.rounds and name not in question_sets.questions:
            yield location, NotCarried("a forecast on a question that the round's question sets do not have")
            continue
        command = SubmitForecast(
            id=fitting_id(f"forecastbench forecast {who} {name}"),
            at=start_of_day(file.due, "forecast_due_date"),
            question=name,
            participant=who,
            probability=forecast.forecast,
            attestation=Attestation(note="imputed") if forecast.imputed else None,
        )
        order, command_location = str(forecast.imputed), location._replace(command="submit_forecast")
        yield _Said(command.id, "forecast", forecast.forecast, order, command_location, command)


def _answers(files: SourceFiles, file: _SetFile, question_sets: _QuestionSets) -> Iterator[SourceItem | _Said]:
    """Return the answers of a resolution set; a market's is known on the first date that it is listed with."""
    for location, answer in _each(files, file, _Resolution):
        if isinstance(answer, Refused | NotCarried):
            yield location, answer
            continue
        if not answer.resolved:
            yield location, NotCarried("a market that is not resolved: its price is no answer")
            continue
        (name, _), day = _question_of(file.due, answer, question_sets), answer.resolution_date[:10]
        try:
            at = max(start_of_day(day, "resolution_date"), start_of_day(file.due, "forecast_due_date", 1))
        except Refused as refused:
            files.partial.add(file.name)
            yield location, refused
            continue
        if file.due in question_sets.rounds and name not in question_sets.questions:
            yield location, NotCarried("an answer to a question that the round's question sets do not have")
            continue
        command = _answer(name, at, answer.resolved_to)
        command_location = location._replace(command=str(command.__struct_config__.tag))
        yield _Said(name, "resolved_to", answer.resolved_to, at, command_location, command)


def _answer(name: str, at: str, value: Decimal | None) -> AnnulQuestion | ResolveQuestion:
    """Return the command of an answer: yes, no, a share of each, or, without a value, an annulment."""
    if value is None:
        reason = "resolved without a value"
        return AnnulQuestion(id=fitting_id(f"forecastbench annul {name}"), at=at, question=name, reason=reason)
    identity = fitting_id(f"forecastbench answer {value.normalize()} {name}")
    if value in {0, 1}:
        return ResolveQuestion(id=identity, at=at, question=name, outcome="yes" if value else "no")
    return ResolveQuestion(id=identity, at=at, question=name, payouts={"yes": value, "no": 1 - value})


def _question_of(due: str, item: _Forecast | _Resolution, question_sets: _QuestionSets) -> tuple[str, bool]:
    """Return the question of a forecast or an answer, and whether it is a market's, whose date has no meaning."""
    direction = tuple(item.direction) if isinstance(item.direction, list) else ()
    first = question_sets.first.get((due, item.source, _key(item.id)))
    market = item.source in MARKET_SOURCES if first is None else not isinstance(first[1].resolution_dates, list)
    date = "" if market else (item.resolution_date or "")[:10]
    return _question_id(due, item.source, item.id, direction, date), market


def _question_id(due: str, source: str, name: _Id, direction: Sequence[int], date: str) -> str:
    signs = "".join(_SIGNS.get(each, "?") for each in direction)
    return fitting_id(" ".join(part for part in (due, source, _key(name), signs, date) if part))


def _key(name: _Id) -> str:
    return name if isinstance(name, str) else " & ".join(name)


def _title(question: _Question, direction: Sequence[int], due: str, date: str) -> str:
    text = question.question.replace("{forecast_due_date}", due).replace("{resolution_date}", date or "its end")
    parts = [f"{name} {'yes' if each > 0 else 'no'}" for name, each in zip(question.id, direction, strict=False)]
    return f"{text} ({', '.join(parts)})" if direction else text


def _each(
    files: SourceFiles, file: _SetFile, form: type[_Form]
) -> Iterator[tuple[InputLocation, _Form | Refused | NotCarried]]:
    """Return each item of a set with its number, or why it cannot be read; and what of the set is not read."""
    content = _read(files, file.name)[1]
    yield from Unread(COLUMNS["set"], "field").of(InputLocation(0, file=file.name), content)
    unread = Unread(COLUMNS[file.kind], "field")
    for number, item in enumerate(content[file.kind], 1):
        location = InputLocation(number, file=file.name, unit=f"{file.kind} item")
        try:
            converted = msgspec.convert(item, form, strict=False)
            _check_parts(converted)
            yield location, converted
            yield from unread.of(location, item)
        except Refused as refused:
            files.partial.add(file.name)
            yield location, refused
        except msgspec.ValidationError as error:
            files.partial.add(file.name)
            message, _, path = str(error).partition(" - at `$")
            yield location, Refused("bad_source", path.rstrip("`").lstrip("."), None, message)


def _check_parts(item: Struct) -> None:
    """Refuse (bad_source) a combination without parts, and what does not say which way each of its parts goes."""
    if isinstance(item, _Question | _Forecast | _Resolution) and isinstance(item.id, list):
        if not item.id:
            raise Refused("bad_source", "id", item.id, "a combination of no questions")
        direction = [] if isinstance(item, _Question) else item.direction
        if not isinstance(item, _Question) and (not isinstance(direction, list) or len(direction) != len(item.id)):
            raise Refused("bad_source", "direction", direction, "not a 1 or -1 for each question of the combination")


def _read(files: SourceFiles, name: str) -> tuple[str, _Content]:
    """Return which set a file is ("" if it is none), and its content. Refuses: bad_source."""
    content = read_json_text(files.read(name, SET_BYTES), name)
    if not isinstance(content, dict):
        return "", {}
    kind = next((key for key in _KINDS if isinstance(content.get(key), list)), "")
    return kind, content


def _due_date(content: _Content, name: str) -> str:
    """Return the due date of a set's round: as the set says it, or as its question set or file is named."""
    said_in = [content.get(key) for key in _DUE]
    for said in (*said_in, name.rpartition("/")[2]):
        try:
            return start_of_day(str(said)[:10], "forecast_due_date")[:10]
        except Refused:
            continue
    raise Refused("bad_source", name, None, "neither the set nor the name of the file says the due date")
