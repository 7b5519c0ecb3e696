"""Read a hubverse hub: model output, target data and oracle output become questions, forecasts and answers.

A question is one combination of task ids and output type; each model has at most one forecast on it. A hub does not say
when a file was submitted: its forecasts are made at the beginning of the last day of the submission window, in UTC.

Source: hubverse, Documentation, "Model output" and "Target (observed) data" (docs.hubverse.io): an oracle value is what
a model would have given had it known the answer; for a pmf 1 at the category that happened, for a cdf 1 from the answer
on.
"""

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from itertools import chain, count, pairwise
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import LARGEST_MEASURE, read_instant
from forecast_ledger.ledger.model.commands import (
    AnyCommand,
    OpenContest,
    ResolveQuestion,
    RevokeResolution,
    SubmitForecast,
)
from forecast_ledger.projections.core.columns import pyarrow
from forecast_ledger.projections.facts.task_ids import HORIZON
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
    VALUES,
    HubQuestion,
    hub_question,
    later,
    target_names,
)
from forecast_ledger.replay.importing.source_files import (
    MISSING,
    TABLE_ENDINGS,
    SourceFiles,
    check_columns,
    is_readme,
    place_in,
    read_table,
)
from forecast_ledger.replay.importing.source_items import (
    Columns,
    NotCarried,
    Scope,
    Source,
    SourceItem,
    Unread,
    fitting_id,
    instant_of,
    label_of,
    start_of_day,
)
from forecast_ledger.replay.mapping.shares import divided_by_sum
from forecast_ledger.replay.writing.command_lines import InputPlace

LABELS = ["output_type", "output_type_id", "value"]
CONFIG_FILES = {  # that are read, or say only how models are described and submissions checked
    *(TASKS, ADMIN, TARGET_DATA),
    *("hub-config/model-metadata-schema.json", "hub-config/validations.yml"),
}
SNAPSHOT = "a dated snapshot of target data: the latest values count, and their earlier versions are not recorded"
OTHER_TARGET_DATA = "target data other than time-series and oracle-output, or, without these, the uppermost latest-*"
SUM_TOLERANCE = Decimal("0.001")  # a pmf whose sum differs from 1 by at most this is divided by it
_FIELDS = {"quantile": "quantiles", "median": "quantiles", "mean": "samples", "sample": "samples", "cdf": "cdf"}
_HubFile = tuple[str, str, str]  # round, model, path
_Given = tuple[int, str, str]  # line, output type id, value
_Asked = HubQuestion | NotCarried | Refused
_Part = tuple[InputPlace, HubQuestion | None, AnyCommand | Refused | NotCarried]


class _Hub(NamedTuple):
    """A hub. unread: label of a round, or None for all -> models that have a file or rows there that are not read."""

    files: SourceFiles
    config: HubConfig
    found: Sequence[_HubFile]
    truth: "HubTruth"
    unread: dict[str | None, set[str]]


def read_hub(files: SourceFiles, rules: str | None) -> Source:
    """Return the commands of a hub, round by round, each answer when its time has come.

    rules: the preset of the contests; if None, the Brier score, the ranked probability score, the weighted interval
    score or the CRPS, by output type. Raises, before anything is returned, Refused (bad_source); Unavailable (a Parquet
    file, and no pyarrow).
    """
    config = read_config(files)
    found, others = _model_files(files, config)
    if any(file[-1].endswith(".parquet") for file in found):
        pyarrow()  # say that it is missing before anything is recorded
    truth = HubTruth(files, config)
    left = ((place_in(name, 0), reason) for name, reason in others)
    rounds, targets = {label_of(each[0]) for each in found}, set(target_names(config))
    folder = f"{config.model_output}/"
    strays = {name.removeprefix(folder).partition("/")[0] for name, _ in others if name.startswith(folder)}
    hub = _Hub(files, config, found, truth, {None: strays})
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
    )
    return Source(chain(left, unread_fields(files), truth.faults, _items(hub, rules)), scope)


def _items(hub: _Hub, rules: str | None) -> Iterator[SourceItem]:
    waiting: list[tuple[int, int, InputPlace, AnyCommand | Refused]] = []  # answers whose time has not come
    opened: set[str] = set()
    number = count()
    for file in hub.found:
        asked = hub.config.round_of(file[0])
        if asked is None:
            hub.unread.setdefault(label_of(file[0]), set()).add(file[1])
            yield place_in(file[2], 0), NotCarried("a file of a round that hub-config/tasks.json does not have")
            continue
        for place, question, item in _file_parts(hub.files, asked, file):
            if question is None and (place.command or isinstance(item, Refused)):
                hub.unread.setdefault(label_of(file[0]), set()).add(file[1])
            if question is not None and question.id not in opened:
                yield from _answers_until(waiting, read_instant(question.at))
                opened.add(question.id)
                for each in _openings(question, opened, rules):
                    yield place._replace(command=str(each.__struct_config__.tag)), each
                for at, where, answer in hub.truth.commands(question):
                    heapq.heappush(waiting, (read_instant(at), next(number), where, answer))
            yield place, item
    yield from _answers_until(waiting, None)


def _openings(question: HubQuestion, opened: set[str], rules: str | None) -> Iterator[AnyCommand]:
    for command in question.commands(rules):
        if not isinstance(command, OpenContest):
            yield command
        elif command.id not in opened:
            opened.add(command.id)
            yield command


def _answers_until(
    waiting: list[tuple[int, int, InputPlace, AnyCommand | Refused]], instant: int | None
) -> Iterator[SourceItem]:
    while waiting and (instant is None or waiting[0][0] < instant):
        _, _, place, command = heapq.heappop(waiting)
        yield place, command


def _model_files(files: SourceFiles, config: HubConfig) -> tuple[list[_HubFile], list[tuple[str, NotCarried]]]:
    """Return the files of model output by round and model, and why the others are left out."""
    found: list[_HubFile] = []
    others = [(name, NotCarried("a link, which is not followed")) for name in files.links]
    prefix, targets = f"{config.model_output}/", target_files(files.names)
    for name in files.names:
        if not name.startswith(prefix):
            if name.startswith("hub-config/") and name not in CONFIG_FILES and not is_readme(name):
                others.append((name, NotCarried("a file of hub-config that is not read")))
            if name.startswith("target-data/") and name not in targets and name.endswith(TABLE_ENDINGS):
                snapshot = "/snapshots/" in name
                others.append((name, NotCarried(SNAPSHOT if snapshot else OTHER_TARGET_DATA)))
            continue
        model, _, file = name.removeprefix(prefix).partition("/")
        round_id = file.rpartition(".")[0].removesuffix(f"-{model}")
        if file.endswith(TABLE_ENDINGS) and round_id and "/" not in file and f"{round_id}-{model}." in file:
            found.append((round_id, model, name))
        elif file and not is_readme(file):
            others.append((name, NotCarried("a file of model output that is not named ROUND-MODEL.csv or .parquet")))
    if not found:
        others.append((config.model_output, NotCarried("a folder that has no file of a model")))
    return sorted(found), others


def _file_parts(files: SourceFiles, asked: Round, file: _HubFile) -> Iterator[_Part]:
    """Return each forecast of a file, with its question; refusals and what is left out have none."""
    round_id, model, name = file
    try:
        columns, rows = read_table(files, name, LABELS)
    except Refused as refused:
        yield place_in(name, 0), None, refused
        return
    ids = asked.values()
    others = [column for column in columns if column not in (*LABELS, "model_id", *ids)]
    for column in others:
        reason = f"a column that is no task id: {column!r}" if column else "a column without a name"
        yield place_in(name, 1), None, NotCarried(reason)
    keys = [(at, spellings(ids[column])) for at, column in enumerate(columns) if column in ids]
    of_type, of_id, of_value = (columns.index(label) for label in LABELS)
    groups: dict[tuple[str, ...], tuple[int, list[_Given]]] = {}
    lacking = [column for column in ids if column not in columns and column != asked.round_id and ids[column]]
    if lacking:
        yield place_in(name, 1, "submit_forecast"), None, NotCarried(f"a file without the task id {lacking[0]!r}")
    for line, cells in rows:
        if isinstance(cells, Refused):
            yield place_in(name, line), None, cells
            continue
        key = (cells[of_type], *[as_spelled[cells[at]] for at, as_spelled in keys])
        groups.setdefault(key, (line, []))[1].append((line, cells[of_id], cells[of_value]))
    for (output_type, *values), (line, given) in groups.items():
        place = place_in(name, line, "submit_forecast")
        row = {columns[at]: value for (at, _), value in zip(keys, values, strict=True)}
        if asked.round_id_from_variable:
            row.setdefault(asked.round_id, round_id)
        question = _question(asked, round_id, row, output_type, [name for _, name, _ in given])
        if isinstance(question, HubQuestion):
            forecast = _forecast(question, model, given)
            if output_type == "quantile" and isinstance(forecast, SubmitForecast):
                for at, level, _ in given:
                    if spelled(level, question.ids) not in question.ids:
                        reason = "a level that hub-config/tasks.json does not have for its task"
                        yield place_in(name, at), None, NotCarried(reason)
            yield place, question, forecast
        else:
            yield place, None, question


def _question(asked: Round, round_id: str, row: Mapping[str, str], output_type: str, given: Sequence[str]) -> _Asked:
    if asked.round_id_from_variable and row[asked.round_id] != round_id:
        return Refused("bad_source", asked.round_id, row[asked.round_id], f"the file's name says {round_id}")
    try:
        return hub_question(asked, round_id, row, output_type, given)
    except Refused as refused:
        return refused


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
        return row  # the ledger refuses it with its place


# --- target data: the observed values, as of each of their versions

AS_OF = "as_of"
ORACLE, SERIES = "target-data/oracle-output", "target-data/time-series"
_FOLDER, _LATEST = "target-data/", "latest-"
_VALUE = {ORACLE: "oracle_value", SERIES: "observation"}
_LABELS = ("output_type", "output_type_id")
_DATES = ("target_end_date", "target_date", "time_idx", "date")  # of target data, if the configuration does not say it
_SYNONYMS = {"truth_date": _DATES[:2], "value": ("observation",)}  # of columns in files of the latest values


class Observed(NamedTuple):
    """A row of target data: the version ("" if it has none), the output type id, the value, and its place."""

    as_of: str
    id: str
    value: str
    place: InputPlace


class _Observations:
    """The rows of one file, by task ids, and by date if that is none of these. labelled: each row says its output type.

    A model's date is then that of its round and horizon.
    """

    def __init__(self, kind: str, columns: Sequence[str], *, labelled: bool, dated: bool) -> None:
        self.kind, self.columns, self.labelled, self.dated = kind, columns, labelled, dated
        self.rows: dict[tuple[str, ...], list[Observed]] = {}

    def of(self, question: HubQuestion) -> list[Observed]:
        """Return the rows that are about a question, oldest version first."""
        key = tuple(question.row.get(column, MISSING) for column in self.columns)
        if self.dated:
            key = (*key, question.target_date)
        types = [question.output_type] * self.labelled
        if self.labelled and question.output_type in VALUES:
            types += VALUES  # the value that was observed is the same for each of them
        keys = [(*key, each) for each in types] or [key]
        found = next((rows for each in keys if (rows := self.rows.get(each))), [])
        return sorted(found, key=lambda row: (row.as_of == "", row.as_of))


class HubTruth:
    """All target data of a hub. is_there: whether there are files of them. is_cut: whether some cannot be read."""

    def __init__(self, files: SourceFiles, config: HubConfig) -> None:
        self._tables: dict[tuple[str, str, tuple[str, ...], bool], _Observations] = {}
        self.faults: list[SourceItem] = []
        self.is_cut = False
        self._config = config
        keys = {
            key for each in config.rounds for task in each.model_tasks for key in _target_keys(task.target_metadata)
        }
        found = target_files(files.names)
        self.is_there = bool(found)
        for name, kind in found.items():
            begun = len(self.faults)
            if not self._read(files, name, kind, keys) or any(isinstance(x, Refused) for _, x in self.faults[begun:]):
                self.is_cut = True

    def commands(self, question: HubQuestion) -> Iterator[tuple[str, InputPlace, AnyCommand | Refused]]:
        """Return each version of the answer to a question with its instant; one that replaces another revokes it."""
        before, at = None, question.closes_at
        day = question.row.get(self._config.date_column or "target_end_date", question.target_date)
        rows = self._versions(question)
        for row, after in pairwise(rows):
            if row.as_of == after.as_of and not _agree(question, row, after):
                detail = f"{row.place.where()} says otherwise for the same task ids and version; neither counts"
                remedy = "take the row that is wrong out, or ask the hub which one that is"
                yield at, after.place, Refused("bad_source", "value", after.value, detail, remedy=remedy)
                return
        for row in rows:
            try:
                answer = _answer(question, row.id, row.value)
                since = instant_of(row.as_of, AS_OF) if row.as_of else _day_after(day)
            except Refused as refused:
                yield at, row.place, refused
                continue
            if answer == before:
                continue
            at = later(at, since or at)
            name = f"{row.value if question.range else row.id} {row.as_of}".strip()
            if before is not None:
                revoke = fitting_id(f"hub revoke before {name} {question.id}")
                reason = f"revised as of {row.as_of}" if row.as_of else "revised"
                yield at, row.place, RevokeResolution(id=revoke, at=at, question=question.id, reason=reason)
            resolve = fitting_id(f"hub answer {name} {question.id}")
            fields = {"value": answer} if isinstance(answer, Decimal) else {"outcome": answer}
            yield at, row.place, ResolveQuestion(id=resolve, at=at, question=question.id, **fields)
            before = answer

    def _versions(self, question: HubQuestion) -> list[Observed]:
        """Return the rows to believe: the oracle's, after a time series with versions if the oracle has none."""
        oracle = [row for table in self._tables.values() if table.kind == ORACLE for row in table.of(question)]
        oracle = _happened(question, oracle)
        if oracle and oracle[0].as_of:
            return oracle
        numeric = question.output_type in VALUES
        series = [
            row for table in self._tables.values() if table.kind == SERIES and numeric for row in table.of(question)
        ]
        series = [row for row in series if row.value != MISSING]
        return [*(row for row in series if row.as_of), *oracle] if oracle else series

    def _read(self, files: SourceFiles, name: str, kind: str, target_keys: set[str]) -> bool:
        """Read a file; return whether it has rows, and its columns say what they are about."""
        value, is_latest = _VALUE[kind], _is_latest(name)
        columns, rows = read_table(files, name, [])
        if kind == ORACLE and value not in columns:  # some hubs write it as in their time series
            columns = [value if column == _VALUE[SERIES] else column for column in columns]
        check_columns(name, columns, [] if is_latest else [value])
        if is_latest:
            columns = self._renamed(columns)
            if lacking := self._lacking(columns, target_keys):
                said = f"files of the latest values without a column {lacking}, which a question is told by"
                remedy = (
                    "give the values as target-data/time-series.csv, with a column for each task id, and observation"
                )
                self.faults.append((place_in(name, 1), NotCarried(f"{said}; {remedy}")))
                return False
        keys = tuple(column for column in self._config.task_ids() if column in columns)
        labelled = kind == ORACLE and all(label in columns for label in _LABELS)
        date = next((each for each in (self._config.date_column, *_DATES) if each in columns and each not in keys), "")
        if reason := self._not_told(columns, date, target_keys if kind == SERIES else None, labelled=labelled):
            self.faults.append((place_in(name, 0), NotCarried(reason)))
            return False
        table = _Observations(kind, keys, labelled=labelled, dated=bool(date))
        table = self._tables.setdefault((kind, name, keys, labelled), table)
        places = [columns.index(key) for key in (*keys, *[date] * bool(date), *_LABELS[:1] * labelled)]
        at_value, at_version = columns.index(value), columns.index(AS_OF) if AS_OF in columns else None
        at_id = columns.index(_LABELS[1]) if labelled else None
        known = [(columns.index(key), values, spellings(values)) for key in keys if (values := self._asked(key))]
        read, unread = {*keys, date, value, AS_OF, *_LABELS * labelled} - {""}, Unread(Columns((), {}))
        others, has_rows = [at for at, column in enumerate(columns) if column not in read], False
        for line, cells in rows:
            if isinstance(cells, Refused):
                self.faults.append((place_in(name, line), cells))
                continue
            has_rows = True
            plain = [*cells]
            for at, _, as_spelled in known:
                plain[at] = as_spelled[cells[at]]
            if any(plain[at] not in values for at, values, _ in known):
                continue  # of a place or date that no task asks for
            self.faults += unread.of(place_in(name, line), {columns[at]: cells[at] for at in others}) if others else ()
            version = "" if at_version is None else cells[at_version]
            row = Observed(version, MISSING if at_id is None else cells[at_id], cells[at_value], place_in(name, line))
            kept = table.rows.setdefault(tuple([plain[place] for place in places]), [])
            if labelled or not kept or (kept[-1].value, kept[-1].as_of) != (row.value, row.as_of):
                kept.append(row)
        return has_rows

    def _not_told(self, columns: Sequence[str], date: str, series_by: set[str] | None, *, labelled: bool) -> str:
        """Return why the rows of a file do not say what they are about; "" if they do.

        date: the column of dates, unless it is a task id. series_by: of a time series, the keys of the targets.
        """
        types = {output for each in self._config.rounds for task in each.model_tasks for output in task.output_type}
        if series_by is None and not (labelled or types <= {*VALUES}):
            return "oracle output without output_type and output_type_id, in a hub of categories or steps"
        if series_by is not None and not series_by <= {*columns} and self._several_targets():
            return "a time series without the column that names the target, in a hub of several targets"
        dates = {self._config.date_column, *_DATES[:2]} & {*self._config.task_ids()}
        if series_by is not None and dates and {*columns}.isdisjoint((self._config.date_column, *_DATES)):
            return f"a time series without the column {min(dates)}"
        if date and not self._steps_ahead():
            return (
                f"target data by the column {date}, which is no task id, in a hub that does not say the steps of rounds"
            )
        return ""

    def _renamed(self, columns: Sequence[str]) -> list[str]:
        """Return the columns of a file of the latest values under the names that a time series has for them."""
        known = {*self._config.task_ids(), *_VALUE.values()}
        renamed = []
        for column in columns:
            names = [name for name in _SYNONYMS.get(column, ()) if name in known and name not in columns]
            renamed.append(next(iter(names), _DATES[-1] if column == "truth_date" else column))
        return renamed

    def _lacking(self, columns: Sequence[str], target_keys: set[str]) -> str:
        """Return the first column that a file lacks, and without which rows do not say what they are about, if any."""
        rounds = {each.round_id for each in self._config.rounds}
        told = {*rounds, HORIZON, *_DATES, self._config.date_column, *(() if self._several_targets() else target_keys)}
        needed = [*(task_id for task_id in self._config.task_ids() if task_id not in told), _VALUE[SERIES]]
        if not {*columns} & {self._config.date_column, *_DATES}:
            needed.append(self._config.date_column or _DATES[0])
        return next((column for column in needed if column not in columns), "")

    def _asked(self, key: str) -> set[str]:
        """Return the values of a task id in all tasks; empty if one of them takes any value."""
        found = [task.values[key] for each in self._config.rounds for task in each.model_tasks if key in task.values]
        return {value for values in found for value in values} if all(found) else set()

    def _steps_ahead(self) -> bool:
        """Return whether the date of some target follows from its round and horizon."""
        tasks = [task for each in self._config.rounds for task in each.model_tasks if HORIZON in task.task_ids]
        return any(target.is_step_ahead for task in tasks for target in task.target_metadata)

    def _several_targets(self) -> bool:
        numeric = {
            target.target_id
            for each in self._config.rounds
            for task in each.model_tasks
            if {*VALUES} & {*task.output_type}
            for target in task.target_metadata
        }
        return len(numeric) > 1


def _target_keys(targets: Sequence[object]) -> Iterator[str]:
    for target in targets:
        yield from getattr(target, "target_keys", None) or ()


def _happened(question: HubQuestion, rows: list[Observed]) -> list[Observed]:
    """Return one row for each version of an oracle: of a pmf or cdf, that of the answer."""
    if question.output_type in VALUES:
        return [row for row in rows if row.value != MISSING]
    by_version: dict[str, list[Observed]] = {}
    for row in rows:
        by_version.setdefault(row.as_of, []).append(row)
    found = []
    for versions in by_version.values():
        ones = [row for row in versions if as_number(row.value) == 1]
        if ones and question.output_type == "pmf":
            found += ones
        elif ones:
            found.append(min(ones, key=lambda row: (as_number(row.id) or Decimal(0), row.place.line)))
        elif question.output_type == "cdf" and versions:
            found.append(versions[-1]._replace(id="beyond"))
    return found


def _agree(question: HubQuestion, first: Observed, second: Observed) -> bool:
    """Return whether two rows say the same of a question."""
    if question.output_type in VALUES:
        return same_number(first.value, second.value)
    return same_number(first.id, second.id)


def _answer(question: HubQuestion, named: str, value: str) -> Decimal | str:
    """Return the outcome or the value of an answer. Refuses: bad_number.

    The oracle of a cdf says only between which two steps the answer lies: the upper one stands for it, and a step more
    than the last, or one less than the first, for an answer beyond them.
    """
    if question.range is None:
        return spelled(named, question.ids)
    if question.output_type in VALUES:
        number = as_number(value)
        if number is None:
            raise Refused("bad_number", "value", value)
        return number
    steps = sorted(question.numbers)
    step = as_number(named)
    if step is None:
        return 2 * steps[-1] - steps[-2]
    return 2 * steps[0] - steps[1] if step == steps[0] else step


def _day_after(day: str) -> str | None:
    """Return the beginning of the day after a date; None if the text is not a date."""
    try:
        return start_of_day(day, "date", 1)
    except Refused:
        return None


def target_files(names: Collection[str]) -> dict[str, str]:
    """Return the files of a hub that are read as target data, and the kind of each.

    A hub without a time series and oracle output may have its latest values in files such as `latest-cases.csv`. If
    several have one name, those in the uppermost folder count: the folders below have the sources of these.

    >>> target_files(["target-data/time-series.csv", "target-data/latest-cases.csv"])
    {'target-data/time-series.csv': 'target-data/time-series'}
    >>> target_files(["target-data/latest-cases.csv", "target-data/who/latest-cases.csv", "target-data/notes.csv"])
    {'target-data/latest-cases.csv': 'target-data/time-series'}
    """
    usual = {name: kind for kind in (SERIES, ORACLE) for name in names if _is_of(kind, name)}
    latest = sorted((name for name in names if _is_latest(name)), key=lambda name: (name.count("/"), name))
    depths = {name.rpartition("/")[2]: name.count("/") for name in reversed(latest)}
    return usual or {name: SERIES for name in latest if name.count("/") == depths[name.rpartition("/")[2]]}


def _is_of(kind: str, name: str) -> bool:
    return name.startswith((f"{kind}.", f"{kind}/")) and name.endswith(TABLE_ENDINGS)


def _is_latest(name: str) -> bool:
    return name.startswith(_FOLDER) and name.rpartition("/")[2].startswith(_LATEST) and name.endswith(TABLE_ENDINGS)
