"""Read Metaculus's data download: question_data.csv and forecast_data.csv become questions, forecasts and answers.

A download may be in any order; commands are given in order of time. A forecast that ends without being replaced is
withdrawn at its end, once that is past: until then, a newer download may have another end, or another forecast.
A download without forecasters has its aggregates instead.

Source: Metaculus's published code, `utils/csv_utils.py`, the columns of the data download, commit 969629dd; those of
older downloads (`MC Options`, no `Is Bot`) are read too.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import Number, format_instant, read_instant
from forecast_ledger.ledger.model.commands import (
    AnyCommand,
    EnrolParticipant,
    OpenContest,
    SubmitForecast,
    WithdrawForecast,
)
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.metaculus_questions import (
    COLUMNS_OF_QUESTIONS,
    WEIGHT,
    DownloadedQuestion,
    read_question,
    split_numbers,
)
from forecast_ledger.replay.importing.source_files import SourceFiles, check_columns, is_readme, location_in, read_csv
from forecast_ledger.replay.importing.source_items import (
    AGGREGATES_ALONE,
    BARE,
    Columns,
    NotCarried,
    Scope,
    Source,
    SourceItem,
    Unread,
    fitting_id,
    instant_of,
)

QUESTIONS, FORECASTS = "question_data.csv", "forecast_data.csv"
NEEDED_OF_QUESTIONS = (
    "Question ID",
    "Question Title",
    "Question Type",
    "Open Time",
    "Scheduled Close Time",
    "Resolution",
    "Resolution Known Time",
)
_ANONYMOUS, _BOT = "Forecaster (Anonymized)", "Is Bot"
NEEDED_OF_FORECASTS = (
    *("Question ID", "Start Time", "End Time"),
    *("Probability Yes", "Probability Yes Per Category", "Continuous CDF"),
)
_NAMED = ("Forecaster ID", "Forecaster Username")  # who forecasts, unless the download is anonymized
_FROM_FORECAST = "computed from the forecast of its row"
COLUMNS_OF_FORECASTS = Columns(
    used=(
        *NEEDED_OF_FORECASTS,
        *_NAMED,
        _ANONYMOUS,
        _BOT,
    ),
    ignored={
        "Forecaster Count": "the number of forecasters in an aggregate",
        "Probability Below Lower Bound": _FROM_FORECAST,
        "Probability Above Upper Bound": _FROM_FORECAST,
        "5th Percentile": _FROM_FORECAST,
        "25th Percentile": _FROM_FORECAST,
        "Median": _FROM_FORECAST,
        "75th Percentile": _FROM_FORECAST,
        "95th Percentile": _FROM_FORECAST,
        "Probability of Resolution": _FROM_FORECAST,
        "PDF at Resolution": _FROM_FORECAST,
    },
)
OTHER_FILES = {
    "comment_data.csv": "comments",
    "score_data.csv": "published scores, which can be compared with the table `scores`",
    "key_factor_data.csv": "key factors",
    "question_link_data.csv": "links between questions",
}
FUTURE_END = "an end in the future of the download: a newer download has what became of the forecast"
FUTURE_START = "a forecast that begins in the future of the download: a newer download has what became of it"
NO_WEIGHTS = (
    f"the weights of questions: no column is {WEIGHT!r}, so that new questions have the weight 1, and those of earlier "
    "copies keep theirs"
)
EARLY = "a forecast that ended before its question opened, whose options changed before that, too"
README_BYTES = 2**24
LACKING = 1  # Metaculus writes no last cell, `PDF at Resolution`, in forecasts on questions without an answer
_EXPORTED = re.compile(rb"exported on ([0-9T:. +-]+[0-9])")
BOTS_DIFFER = "other bots in aggregates than of the first question of its contest, whose rules hold"
SAME_NAME = "a project with the name of another: their questions are in one contest"
AGGREGATE = "a forecast of an aggregate: the ledger computes its own"
_PERSON = re.compile(r"metaculus (?:(?:forecast|end) \S+|rename) ([0-9]+) .*")  # in the id of a command
_DIGEST_LENGTH = 64  # of an anonymized forecaster; an aggregate has its method's name there
# The order of what happens at one instant: a forecast gives the options that are left, and none that begins to count
# later.
_STAGES = ("open", "withdraw", "enrol", "remove", "forecast", "add", "close", "answer")

Row = Mapping[str, str]


class _Given(NamedTuple):
    """A row of forecast_data.csv: instants in µs."""

    location: InputLocation
    question: str
    who: str
    identity: str
    bot: bool
    start: int
    end: int | None
    distribution: tuple[str, str, str]
    aggregate: bool


class _Step(NamedTuple):
    """A command or a forecast, and its instant, µs; the rest of the order is the stage and the order of the files."""

    at: int
    stage: int
    number: int
    location: InputLocation
    what: AnyCommand | _Given


def read_download(files: SourceFiles, rules: str | None) -> Source:
    """Return the commands of a download in order of time.

    rules: the preset of the contests; if None, peer scores. Raises, before anything is returned, Refused (bad_source):
    a file or a column is missing.
    """
    tables = {
        name: [each for each in files.names if each.rpartition("/")[2] == name] for name in (QUESTIONS, FORECASTS)
    }
    if not tables[QUESTIONS]:
        remedy = "give the zip of a data download, or the folder it was unpacked to"
        raise Refused("bad_source", QUESTIONS, None, "there is no such file", remedy=remedy)
    items: list[SourceItem] = []
    question_rows = [
        (location, row)
        for name in tables[QUESTIONS]
        for location, row in _rows(files, name, NEEDED_OF_QUESTIONS, items)
    ]
    items += _same_names(question_rows)
    given = _of_forecasters(
        [
            forecast
            for name in tables[FORECASTS]
            for location, row in _rows(files, name, NEEDED_OF_FORECASTS, items, LACKING)
            if (forecast := _given(location, row, items)) is not None
        ],
        items,
    )
    for name in (*files.names, *files.links):
        known = OTHER_FILES.get(name.rpartition("/")[2])
        if name not in tables[QUESTIONS] + tables[FORECASTS] and not is_readme(name):
            items.append((location_in(name, 0), NotCarried(known or "a file that is not part of a data download")))
    now = _exported_at(files) or max(
        [each.start for each in given]
        + [read_instant(instant) for _, row in question_rows if (instant := _known(row))],
        default=0,
    )
    for at, each in enumerate(given):
        if each.end is not None and each.end > now:
            given[at] = each._replace(end=None)
            items.append((each.location, NotCarried(FUTURE_END)))
    items += [(each.location, NotCarried(FUTURE_START)) for each in given if each.start > now]
    whole = any(not each.aggregate for each in given)
    made = [each for each in given if each.start <= now]
    weighed = {row["Question ID"] for _, row in question_rows if WEIGHT in row}
    scope = Scope(
        forecasts=lambda _: whole,
        unread=lambda _, who: bool(who) and not files.partial.isdisjoint(tables[FORECASTS]),
        bots=any(_BOT in read_csv(files, name, LACKING)[0] for name in tables[FORECASTS]),
        weights=lambda opened: opened.question in weighed,
        bare="" if whole else AGGREGATES_ALONE if given else BARE,
    )
    return Source(_noting(files, _commands(question_rows, made, items, (rules, now))), scope, person_of=_person_of)


def _person_of(command_id: str) -> str:
    """Return the `Forecaster ID` in the id of a command; "" if it has none.

    >>> _person_of("metaculus forecast 501 7 2026-03-01T00:00:00Z"), _person_of("metaculus open 501")
    ('7', '')
    """
    match = _PERSON.fullmatch(command_id)
    return match[1] if match else ""


def _noting(files: SourceFiles, items: Iterable[SourceItem]) -> Iterator[SourceItem]:
    """Return the items; a file of which a row is refused is partial."""
    for location, item in items:
        if isinstance(item, Refused):
            files.partial.add(location.file)
        yield location, item


def _exported_at(files: SourceFiles) -> int | None:
    """Return when a download was made, µs, as its README says; None if it does not."""
    for name in files.names:
        if name.rpartition("/")[2] == "README.md":
            match = _EXPORTED.search(files.read(name, README_BYTES))
            if match:
                try:
                    return read_instant(instant_of(match[1].decode(), "README.md"))
                except Refused:
                    return None
    return None


def _known(row: Row) -> str:
    """Return when an answer was known, "" if that is not said or cannot be read, which is refused elsewhere."""
    try:
        return instant_of(row.get("Resolution Known Time", ""), "")
    except Refused:
        return ""


def _rows(
    files: SourceFiles, name: str, needed: Sequence[str], items: list[SourceItem], lacking: int = 0
) -> Iterator[tuple[InputLocation, Row]]:
    columns, rows = read_csv(files, name, lacking)
    if needed is NEEDED_OF_FORECASTS and _ANONYMOUS not in columns:
        needed = (*needed, *_NAMED)
    check_columns(name, columns, needed)
    known = COLUMNS_OF_QUESTIONS if needed is NEEDED_OF_QUESTIONS else COLUMNS_OF_FORECASTS
    unread = Unread(known)
    if WEIGHT in {*known.used} - {*columns} and not {*columns} <= {*known.used, *known.ignored}:
        items.append((location_in(name, 1), NotCarried(NO_WEIGHTS)))
    for line, cells in rows:
        location = location_in(name, line)
        if isinstance(cells, Refused):
            items.append((location, cells))
            continue
        row = dict(zip(columns, cells, strict=True))
        items += unread.of(location, row)
        yield location, row


def _same_names(question_rows: Sequence[tuple[InputLocation, Row]]) -> Iterator[SourceItem]:
    """Yield the projects whose name another project has, too."""
    ids: dict[str, str] = {}
    for location, row in question_rows:
        name, number = row.get("Default Project", ""), row.get("Default Project ID", "")
        if number and ids.setdefault(name, number) != number:
            yield location, NotCarried(SAME_NAME)


def _of_forecasters(given: list[_Given], items: list[SourceItem]) -> list[_Given]:
    """Return the forecasts without those of aggregates, which are among the items; all if no forecaster has any."""
    if all(each.aggregate for each in given):
        return given
    items += [(each.location, NotCarried(AGGREGATE)) for each in given if each.aggregate]
    return [each for each in given if not each.aggregate]


def _given(location: InputLocation, row: Row, items: list[SourceItem]) -> _Given | None:
    """Return a forecast of a row; None if it cannot be read, which is then among the items.

    An aggregate has no id of a forecaster, but the name of its method; it counts as a bot, so that it is no peer.
    """
    anonymous, username = row.get(_ANONYMOUS, ""), row.get("Forecaster Username", "")
    identity = anonymous or row.get("Forecaster ID", "")
    aggregate = not identity or (bool(anonymous) and len(anonymous) != _DIGEST_LENGTH)
    identity = identity or username or "aggregate"
    try:
        if not row["Question ID"]:
            raise Refused("bad_source", "Question ID", "", "the cell is empty")
        start = read_instant(instant_of(row["Start Time"], "Start Time"))
        ends = row.get("End Time", "")
        end = read_instant(instant_of(ends, "End Time")) if ends else None
    except Refused as refused:
        items.append((location, refused))
        return None
    who = username or anonymous or f"user {identity}"
    distribution = (row["Probability Yes"], row["Probability Yes Per Category"], row["Continuous CDF"])
    bot = aggregate or row.get(_BOT, "") == "True"
    return _Given(location, row["Question ID"], who, identity, bot, start, end, distribution, aggregate)


def _commands(
    question_rows: Sequence[tuple[InputLocation, Row]],
    given: Sequence[_Given],
    items: list[SourceItem],
    setting: tuple[str | None, int],
) -> Iterator[SourceItem]:
    """Return the commands in order of time. setting: the preset of the contests, and when the download was made, µs."""
    rules, now = setting
    lengths: dict[str, Counter[int]] = {}  # question -> how many heights the cdfs of its forecasts have
    firsts: dict[str, int] = {}  # question -> the start of its first forecast, which may be before it opens
    for forecast in given:
        firsts[forecast.question] = min(forecast.start, firsts.get(forecast.question, forecast.start))
        if forecast.distribution[2]:
            lengths.setdefault(forecast.question, Counter())[forecast.distribution[2].count(",") + 1] += 1
    points = {question: max(counts, key=lambda n: (counts[n], -n)) for question, counts in lengths.items()}
    questions: dict[str, DownloadedQuestion] = {}
    steps: list[_Step] = []
    for location, row in question_rows:
        question = _question(row, points.get(row["Question ID"]), now)
        if isinstance(question, DownloadedQuestion):
            questions[question.id] = question
            items += [(location, reason) for reason in (*question.left_out, *question.cut())]
            first = min(question.opened_at, firsts.get(question.id, question.opened_at))
            steps += _question_steps(location, question, (len(steps), first), rules)
        else:
            items.append((location, question))
    yield from items
    steps += _forecast_steps(given, questions, len(steps))
    known = {each["Question ID"] for _, each in question_rows}
    for forecast in given:
        if forecast.question not in questions:
            where = "that is not carried over" if forecast.question in known else f"that {QUESTIONS} does not have"
            yield forecast.location, NotCarried(f"a forecast on a question {where}")
        elif _with_other_options(forecast, questions[forecast.question]):
            yield forecast.location, NotCarried(EARLY)
    opened: dict[str, AnyCommand] = {}
    for step in sorted(steps, key=lambda step: step[:3]):
        command = (
            step.what if not isinstance(step.what, _Given) else _forecast(step.what, questions[step.what.question])
        )
        if isinstance(command, Refused) or command.id not in opened:
            yield step.location, command
        elif isinstance(command, OpenContest) and command.rules != getattr(opened[command.id], "rules", None):
            yield step.location, NotCarried(BOTS_DIFFER)
        if not isinstance(command, Refused) and step.stage in _ONCE:
            opened.setdefault(command.id, command)


_PLACEHOLDERS = {"None", "0.0", "0"}  # of options that a forecast does not have
_ONCE = {_STAGES.index("open"), _STAGES.index("enrol")}


def _question(row: Row, points: int | None, now: int) -> DownloadedQuestion | NotCarried | Refused:
    try:
        return read_question(row, points, now)
    except Refused as refused:
        return refused


def _question_steps(
    location: InputLocation, question: DownloadedQuestion, start: tuple[int, int], rules: str | None
) -> Iterator[_Step]:
    """Return what happens to a question. start: the number of its first step, and the instant by which it is open."""
    number, first = start
    parts = (("open", question.openings(rules)), ("close", question.closings()), ("answer", question.answers()))
    for change, change_outcomes in zip(question.changes, question.outcome_changes(), strict=True):
        step_location = location._replace(command="change_outcomes")
        yield _Step(
            change.at, _STAGES.index("add" if change.added else "remove"), number, step_location, change_outcomes
        )
        number += 1
    for stage, commands in parts:
        for command in commands:
            step_location = location._replace(command=str(command.__struct_config__.tag))
            at = first if stage == "open" else read_instant(command.at)
            yield _Step(at, _STAGES.index(stage), number, step_location, command)
            number += 1


def _forecast_steps(
    given: Sequence[_Given], questions: Mapping[str, DownloadedQuestion], number: int
) -> Iterator[_Step]:
    """Return the forecasts, the enrolments of bots, and the withdrawals of forecasts that end without a new one."""
    starts = {(each.question, each.who, each.start) for each in given}
    for at, forecast in enumerate(given, number):
        question = questions.get(forecast.question)
        if question is None or _with_other_options(forecast, question):
            continue
        yield _Step(
            forecast.start,
            _STAGES.index("forecast"),
            at,
            forecast.location._replace(command="submit_forecast"),
            forecast,
        )
        if forecast.bot:
            location = forecast.location._replace(command="enrol_participant")
            enrol = EnrolParticipant(
                id=fitting_id(f"metaculus enrol {question.contest} {forecast.who}"),
                at=format_instant(forecast.start),
                contest=question.contest,
                participant=forecast.who,
                bot=True,
            )
            yield _Step(forecast.start, _STAGES.index("enrol"), at, location, enrol)
        if (
            forecast.end is None
            or forecast.end >= question.ends_at
            or (forecast.question, forecast.who, forecast.end) in starts
        ):
            continue
        if any(change.added and change.counts_from == forecast.end for change in question.changes):
            continue  # it ends with the grace period
        location = forecast.location._replace(command="withdraw_forecast")
        end = format_instant(forecast.end)
        name = fitting_id(f"metaculus end {forecast.question} {forecast.identity} {format_instant(forecast.start)}")
        withdraw = WithdrawForecast(id=name, at=end, question=forecast.question, participant=forecast.who)
        yield _Step(forecast.end, _STAGES.index("withdraw"), at, location, withdraw)


def _with_other_options(given: _Given, question: DownloadedQuestion) -> bool:
    """Return whether a forecast ended before its question opened, perhaps with options that it did not open with."""
    return question.changed_early and given.end is not None and given.end <= question.opened_at


def _forecast(given: _Given, question: DownloadedQuestion) -> SubmitForecast | Refused:
    """Return the forecast of a row, made when it is needed: a cdf has 201 heights."""
    yes, categories, heights = given.distribution
    at = format_instant(given.start)
    name = fitting_id(f"metaculus forecast {given.question} {given.identity} {at}")
    probabilities: dict[str, Number] | None = None
    if question.options and categories:
        numbers = split_numbers(categories)
        if len(numbers) != len(question.options):
            detail = f"it has {len(numbers)} probabilities, the question {len(question.options)} options"
            return Refused("bad_source", "Probability Yes Per Category", None, detail)
        now = question.options_at(given.start)
        for option, number in zip(question.options, numbers, strict=True):
            if option not in now and number not in _PLACEHOLDERS:
                detail = f"it has a probability of {option!r}, which was not an option then"
                return Refused("bad_source", "Probability Yes Per Category", None, detail)
        each = zip(question.options, numbers, strict=True)
        probabilities = {option: number for option, number in each if option in now}
    return SubmitForecast(
        id=name,
        at=at,
        question=given.question,
        participant=given.who,
        probability=yes or None,
        probabilities=probabilities,
        cdf=tuple(split_numbers(heights)) if heights else None,
    )
