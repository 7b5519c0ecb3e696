"""Read a hubverse hub: model output, target data and oracle output become questions, forecasts and answers.

A question is one combination of task ids and output type; each model has at most one forecast on it. A hub does not say
when a file was submitted: its forecasts are made at the beginning of the last day of the submission window, in UTC.

Source: hubverse, Documentation, "Model output" and "Target (observed) data" (docs.hubverse.io): an oracle value is what
a model would have given had it known the answer; for a pmf 1 at the category that happened, for a cdf 1 from the answer
on.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from itertools import chain, count
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.extras import pyarrow
from forecast_ledger.ledger.core.values import LARGEST_MEASURE, read_instant
from forecast_ledger.ledger.model.commands import (
    AnyCommand,
    OpenContest,
    SubmitForecast,
)
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.hub_config import (
    ADMIN,
    TARGET_DATA,
    TASKS,
    HubConfig,
    Round,
    as_number,
    read_config,
    same_number,
    spelled,
    spellings,
    unread_fields,
    written_out,
)
from forecast_ledger.replay.importing.hub_questions import (
    SOURCE,
    HubQuestion,
    hub_question,
    target_names,
)
from forecast_ledger.replay.importing.hub_truth import HubTruth, unread_target_files
from forecast_ledger.replay.importing.source_files import (
    MISSING,
    TABLE_ENDINGS,
    SourceFiles,
    is_readme,
    location_in,
    read_table,
)
from forecast_ledger.replay.importing.source_items import (
    NotCarried,
    Scope,
    Source,
    SourceItem,
    fitting_id,
    label_of,
)
from forecast_ledger.replay.mapping.csv_cells import divided_by_sum

LABELS = ["output_type", "output_type_id", "value"]
CONFIG_FILES = {  # that are read, or say only how models are described and submissions checked
    *(TASKS, ADMIN, TARGET_DATA),
    *("hub-config/model-metadata-schema.json", "hub-config/validations.yml"),
}
NO_FILES = (
    "a question with forecasts of a round that this copy has no file of: they stay; if the files were deleted, "
    "restate_forecasts takes them back"
)
SUM_TOLERANCE = Decimal("0.001")  # a pmf whose sum differs from 1 by at most this is divided by it
_FIELDS = {"quantile": "quantiles", "median": "quantiles", "mean": "samples", "sample": "samples", "cdf": "cdf"}
_HubFile = tuple[str, str, str]  # round, model, path
_Given = tuple[int, str, str]  # line, output type id, value
_Question = HubQuestion | NotCarried | Refused
_Part = tuple[InputLocation, HubQuestion | None, AnyCommand | Refused | NotCarried]


class _Hub(NamedTuple):
    """A hub. unread: label of a round, or None for all -> models that have a file or rows there that are not read."""

    files: SourceFiles
    config: HubConfig
    model_files: Sequence[_HubFile]
    truth: HubTruth
    unread: dict[str | None, set[str]]


def read_hub(files: SourceFiles, rules: str | None) -> Source:
    """Return the commands of a hub, round by round, each answer when its time has come.

    rules: the preset of the contests; if None, the Brier score, the ranked probability score, the weighted interval
    score or the CRPS, by output type. Raises, before anything is returned, Refused (bad_source); Unavailable (a Parquet
    file, and no pyarrow).
    """
    config = read_config(files)
    model_files, others = _model_files(files, config)
    if any(file[-1].endswith(".parquet") for file in model_files):
        pyarrow()  # say that it is missing before anything is recorded
    truth = HubTruth(files, config)
    left = ((location_in(name, 0), reason) for name, reason in others)
    rounds, targets = {label_of(each[0]) for each in model_files}, set(target_names(config))
    folder = f"{config.model_output}/"
    strays = {name.removeprefix(folder).partition("/")[0] for name, _ in others if name.startswith(folder)}
    hub = _Hub(files, config, model_files, truth, {None: strays})
    scope = Scope(
        questions=lambda opened: (
            (opened.source, opened.group in rounds, opened.category in targets) == (SOURCE, True, True)
        ),
        answers=lambda _: truth.is_there,
        unread=lambda opened, who: (
            any(who in hub.unread.get(each, ()) for each in (opened.group, None))
            if who
            else truth.is_cut or opened.group in hub.unread
        ),
        absent=lambda opened: (
            NO_FILES
            if (opened.source, opened.category in targets, opened.group in rounds) == (SOURCE, True, False)
            else ""
        ),
    )
    return Source(chain(left, unread_fields(files), truth.faults, _items(hub, rules)), scope)


def _items(hub: _Hub, rules: str | None) -> Iterator[SourceItem]:
    waiting: list[tuple[int, int, InputLocation, AnyCommand | Refused]] = []  # answers whose time has not come
    opened: set[str] = set()
    number = count()
    questions: _RoundQuestions | None = None
    for file in hub.model_files:
        if questions is None or questions.round_id != file[0]:
            hub_round = hub.config.round_of(file[0])
            questions = None if hub_round is None else _RoundQuestions(hub_round, file[0])
        if questions is None:
            hub.unread.setdefault(label_of(file[0]), set()).add(file[1])
            yield location_in(file[2], 0), NotCarried("a file of a round that hub-config/tasks.json does not have")
            continue
        for location, question, item in _file_parts(hub.files, questions, file):
            if question is None and (location.command or isinstance(item, Refused)):
                hub.unread.setdefault(label_of(file[0]), set()).add(file[1])
            if question is not None and question.id not in opened:
                yield from _answers_until(waiting, read_instant(question.at))
                opened.add(question.id)
                for command in _openings(question, opened, rules):
                    yield location._replace(command=str(command.__struct_config__.tag)), command
                for at, where, answer in hub.truth.commands(question):
                    heapq.heappush(waiting, (read_instant(at), next(number), where, answer))
            yield location, item
    yield from _answers_until(waiting, None)


def _openings(question: HubQuestion, opened: set[str], rules: str | None) -> Iterator[AnyCommand]:
    for command in question.commands(rules):
        if not isinstance(command, OpenContest):
            yield command
        elif command.id not in opened:
            opened.add(command.id)
            yield command


def _answers_until(
    waiting: list[tuple[int, int, InputLocation, AnyCommand | Refused]], instant: int | None
) -> Iterator[SourceItem]:
    while waiting and (instant is None or waiting[0][0] < instant):
        _, _, location, command = heapq.heappop(waiting)
        yield location, command


def _model_files(files: SourceFiles, config: HubConfig) -> tuple[list[_HubFile], list[tuple[str, NotCarried]]]:
    """Return the files of model output by round and model, and why the others are left out."""
    model_files: list[_HubFile] = []
    others = [(name, NotCarried("a link, which is not followed")) for name in files.links]
    others += unread_target_files(files.names)
    prefix = f"{config.model_output}/"
    for name in files.names:
        if not name.startswith(prefix):
            if name.startswith("hub-config/") and name not in CONFIG_FILES and not is_readme(name):
                others.append((name, NotCarried("a file of hub-config that is not read")))
            continue
        model, _, file = name.removeprefix(prefix).partition("/")
        round_id = file.rpartition(".")[0].removesuffix(f"-{model}")
        if file.endswith(TABLE_ENDINGS) and round_id and "/" not in file and f"{round_id}-{model}." in file:
            model_files.append((round_id, model, name))
        elif file and not is_readme(file):
            others.append((name, NotCarried("a file of model output that is not named ROUND-MODEL.csv or .parquet")))
    if not model_files:
        others.append((config.model_output, NotCarried("a folder that has no file of a model")))
    return sorted(model_files), others


class _RoundQuestions:
    """What a round asks. Most models answer the same questions: each is made once."""

    def __init__(self, hub_round: Round, round_id: str) -> None:
        self.round, self.round_id = hub_round, round_id
        self._questions: dict[tuple[tuple[str, ...], ...], _Question] = {}

    def question(self, row: Mapping[str, str], output_type: str, given: tuple[str, ...]) -> _Question:
        """Return the question of some rows. row: task id -> value. given: their output type ids."""
        key = (*row,), (*row.values(), output_type), given
        question = self._questions.get(key)
        if question is None:
            question = self._questions[key] = self._made(row, output_type, given)
        return question

    def _made(self, row: Mapping[str, str], output_type: str, given: tuple[str, ...]) -> _Question:
        said = row.get(self.round.round_id, self.round_id)
        if self.round.round_id_from_variable and said != self.round_id:
            return Refused("bad_source", self.round.round_id, said, f"the file's name says {self.round_id}")
        try:
            return hub_question(self.round, self.round_id, row, output_type, given)
        except Refused as refused:
            return refused


def _file_parts(files: SourceFiles, questions: _RoundQuestions, file: _HubFile) -> Iterator[_Part]:
    """Return each forecast of a file, with its question; refusals and what is left out have none."""
    round_id, model, name = file
    try:
        columns, rows = read_table(files, name, LABELS)
    except Refused as refused:
        yield location_in(name, 0), None, refused
        return
    ids = questions.round.values()
    others = [column for column in columns if column not in (*LABELS, "model_id", *ids)]
    for column in others:
        reason = f"a column that is no task id: {column!r}" if column else "a column without a name"
        yield location_in(name, 1), None, NotCarried(reason)
    keys = [(at, spellings(ids[column])) for at, column in enumerate(columns) if column in ids]
    of_type, of_id, of_value = (columns.index(label) for label in LABELS)
    groups: dict[tuple[str, ...], tuple[int, list[_Given]]] = {}
    lacking = [column for column in ids if column not in columns and column != questions.round.round_id and ids[column]]
    if lacking:
        yield location_in(name, 1, "submit_forecast"), None, NotCarried(f"a file without the task id {lacking[0]!r}")
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield location_in(name, line), None, cells
            continue
        key = (cells[of_type], *[as_spelled[cells[at]] for at, as_spelled in keys])
        groups.setdefault(key, (line, []))[1].append((line, cells[of_id], cells[of_value]))
    for (output_type, *values), (line, given) in groups.items():
        location = location_in(name, line, "submit_forecast")
        row = {columns[at]: value for (at, _), value in zip(keys, values, strict=True)}
        if questions.round.round_id_from_variable:
            row.setdefault(questions.round.round_id, round_id)
        question = questions.question(row, output_type, tuple(name for _, name, _ in given))
        if isinstance(question, HubQuestion):
            forecast = _forecast(question, model, given)
            if output_type == "quantile" and isinstance(forecast, SubmitForecast):
                for at, level, _ in given:
                    if spelled(level, question.ids) not in question.ids:
                        reason = "a level that hub-config/tasks.json does not have for its task"
                        yield location_in(name, at), None, NotCarried(reason)
            yield location, question, forecast
        else:
            yield location, None, question


def _forecast(question: HubQuestion, model: str, given: Sequence[_Given]) -> SubmitForecast | Refused | NotCarried:
    """Return the forecast of a model."""
    numbers: dict[str, str] = {}
    for line, name, value in given:
        known = spelled(name, question.ids)
        if known not in question.ids and question.output_type == "quantile":
            continue  # the caller says so
        if known not in question.ids and question.output_type != "sample":
            return Refused("bad_source", "output_type_id", name, "hub-config/tasks.json does not have it for this task")
        if known in numbers and not same_number(numbers[known], value):
            detail = f"line {line} has another value for it than a line before; nothing of this forecast is taken"
            return Refused("bad_source", "output_type_id", name, detail)
        numbers.setdefault(known, written_out(value))
    if numbers and {*numbers.values()} <= {MISSING, ""}:
        return NotCarried("a forecast whose values are all missing")
    missing = [each for each in question.ids if each not in numbers]
    if missing and question.range is not None:
        detail = f"{len(missing)} of {len(question.ids)} output type ids are missing"
        return Refused("bad_source", "output_type_id", missing[0], detail)
    row = [numbers.get(each, "0") for each in question.ids] or [*numbers.values()]
    if (refused := _too_large(question, row)) is not None:
        return refused
    digest = sha256("\n".join(row).encode()).hexdigest()[:12]
    fields: dict[str, Any]
    if question.output_type == "pmf":
        fields = {"probabilities": dict(zip(question.ids, _whole(row), strict=True))}
    else:
        fields = {_FIELDS[question.output_type]: tuple(row)}
    name = fitting_id(f"hub forecast {model} {digest} {question.id}")
    return SubmitForecast(id=name, at=question.at, question=question.id, participant=model, **fields)


def _too_large(question: HubQuestion, row: Sequence[str]) -> Refused | None:
    """Return why a value is beyond what the ledger keeps; None if none is."""
    if question.range is None or question.output_type == "cdf":
        return None
    decimals = question.range.decimals or 0
    most = Decimal(LARGEST_MEASURE).scaleb(-decimals)
    for text in row:
        number = as_number(text)
        if number is not None and abs(number) > most:
            limit = f"{decimals} decimals and are at most {most.normalize():,f}"
            detail = f"values of this question have {limit}; nothing of this forecast is taken"
            remedy = "ask the team for a corrected file, or take the forecast out of this one"
            return Refused("out_of_range", "value", text, detail, remedy=remedy)
    return None


def _whole(row: Sequence[str]) -> Sequence[str | Decimal]:
    """Return probabilities whose sum is 1, if it nearly was."""
    numbers = [number for text in row if (number := as_number(text)) is not None]
    if len(numbers) < len(row):
        return row
    try:
        return divided_by_sum(numbers, SUM_TOLERANCE)
    except Refused:
        return row  # the ledger refuses it with its location
