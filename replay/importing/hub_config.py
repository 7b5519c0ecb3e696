"""The configuration of a hubverse hub: rounds, tasks, output types and due dates, from `hub-config`.

Source: hubverse, Documentation, "Hub configuration files" and "Defining modeling tasks" (docs.hubverse.io); the schemas
of `tasks.json` and `target-data.json`, versions 2.0.0 to 6.0.0 (github.com/hubverse-org/schemas).
"""

import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.input_locations import InputLocation
from forecast_ledger.replay.importing.source_files import MISSING, SourceFiles, text_of
from forecast_ledger.replay.importing.source_items import Columns, NotCarried, Unread
from forecast_ledger.replay.writing.command_lines import UTF_8_MARK

DOUBLE_DIGITS = 15  # that every double keeps
CONFIG_BYTES = 2**26
TASKS, ADMIN, TARGET_DATA = (f"hub-config/{name}.json" for name in ("tasks", "admin", "target-data"))
_Form = TypeVar("_Form")


class Ids(Struct):
    """The values that a task id or an output type id takes."""

    required: list[Any] | None = None
    optional: list[Any] | None = None

    def texts(self) -> list[str]:
        """Return the values as texts, the required ones first, each once."""
        return list(dict.fromkeys(text_of(value) for value in [*(self.required or ()), *(self.optional or ())]))


class Values(Struct):
    """The bounds of an output type's values."""

    minimum: Decimal | None = None
    maximum: Decimal | None = None


class Samples(Struct):
    """How many samples a forecast of a task has."""

    min_samples_per_task: int = 1
    max_samples_per_task: int | None = None


class Output(Struct):
    """An output type of a task."""

    output_type_id: Ids | None = None
    output_type_id_params: Samples = msgspec.field(default_factory=Samples)
    value: Values = msgspec.field(default_factory=Values)

    def required(self) -> list[str]:
        """Return the ids that every forecast has."""
        return [] if self.output_type_id is None else Ids(self.output_type_id.required).texts()

    def every(self) -> list[str]:
        """Return the ids that a forecast may have."""
        return [] if self.output_type_id is None else self.output_type_id.texts()


class Target(Struct):
    """What a task is about. is_step_ahead, time_unit: whether it is a horizon ahead of its round, and in what unit."""

    target_id: str = ""
    target_name: str = ""
    target_keys: dict[str, Any] | None = None
    target_type: str = ""
    is_step_ahead: bool = False
    time_unit: str = ""

    def texts(self, key: str) -> list[str]:
        """Return the values of a target key."""
        return _texts((self.target_keys or {})[key])


class Task(Struct, dict=True):
    """A model task: the task ids with their values, the output types, the targets."""

    task_ids: dict[str, Ids]
    output_type: dict[str, Output]
    target_metadata: list[Target] = []

    @cached_property
    def values(self) -> dict[str, dict[str, str]]:
        """Task id -> each value that it takes, as it may be written -> as the hub writes it."""
        return {name: {text: text for text in ids.texts()} for name, ids in self.task_ids.items()}

    def takes(self, row: Mapping[str, str]) -> bool:
        """Return whether a row's task ids have values of this task."""
        return all(row.get(name, MISSING) in values or not values for name, values in self.values.items())

    def target_of(self, row: Mapping[str, str]) -> Target:
        """Return the target that a row is about; of several without keys, the one whose id the row has.

        If it has none of their ids, it is about one without a name, which has what all of them have.
        """
        alike = [target for target in self.target_metadata if not target.target_keys]
        for target in self.target_metadata:
            keys = target.target_keys or {}
            is_told = bool(keys) or len(alike) == 1 or target.target_id in row.values()
            if is_told and all(row.get(name) in _texts(value) for name, value in keys.items()):
                return target
        forms = {(each.target_type, each.is_step_ahead, each.time_unit) for each in alike}
        return Target("", "", None, *forms.pop()) if len(forms) == 1 else Target()


class Due(Struct):
    """When submissions of a round are due: dates, or days after the date of a task id."""

    start: str | int
    end: str | int
    relative_to: str | None = None


class Round(Struct):
    """A round, or, if its id is a task id, all rounds of one form."""

    round_id: str
    model_tasks: list[Task]
    submissions_due: Due
    round_id_from_variable: bool = False

    def values(self) -> dict[str, set[str]]:
        """Return the values of each task id, in all its tasks, as the hub writes them."""
        by_task_id: dict[str, set[str]] = {self.round_id: set()} if self.round_id_from_variable else {}
        for task in self.model_tasks:
            for name, values in task.values.items():
                by_task_id.setdefault(name, set()).update(values)
        return by_task_id


class _Tasks(Struct):
    rounds: list[Round]


class _Admin(Struct):
    model_output_dir: str = "model-output"


class _TargetData(Struct):
    date_col: str = ""


_NO_SCORE, _SUBMITTING = "a note, which changes no score", "a rule of submissions, which changes no score"
_SAME = "the files of target data have the same in their columns"
FIELDS = {
    "tasks": Columns(
        used=_Tasks.__struct_fields__,
        ignored={
            "schema_version": _NO_SCORE,
            "output_type_id_datatype": "ids that are numbers are compared as numbers, whatever their type",
            "derived_task_ids": "task ids that follow from others are in a question's id, as all are",
        },
    ),
    "round": Columns(
        used=Round.__struct_fields__,
        ignored={
            "round_name": _NO_SCORE,
            "last_data_date": _SUBMITTING,
            "file_format": _SUBMITTING,
            "derived_task_ids": "task ids that follow from others are in a question's id, as all are",
            "additional_metadata": _NO_SCORE,
        },
    ),
    "due": Columns(used=Due.__struct_fields__, ignored={}),
    "task": Columns(used=Task.__struct_fields__, ignored={}),
    "ids": Columns(used=Ids.__struct_fields__, ignored={}),
    "output": Columns(
        used=Output.__struct_fields__,
        ignored={"is_required": _SUBMITTING},
    ),
    "samples": Columns(
        used=Samples.__struct_fields__,
        ignored={
            **dict.fromkeys(("is_required", "type", "max_length"), _SUBMITTING),
        },
        lost={
            "compound_taskid_set": "which samples of several tasks are one path ('compound_taskid_set'): each task is "
            "scored by its own samples, so that no score depends on it",
        },
    ),
    "value": Columns(used=Values.__struct_fields__, ignored={"type": "values are recorded as they are written"}),
    "target": Columns(
        used=Target.__struct_fields__,
        ignored={"target_units": _NO_SCORE, "description": _NO_SCORE, "additional_metadata": _NO_SCORE},
        only={
            "target_type": ["continuous", "discrete", "date", "binary", "nominal", "ordinal"],
            "time_unit": ["day", "week"],
        },
    ),
    "admin": Columns(
        used=_Admin.__struct_fields__,
        ignored={
            **dict.fromkeys(("schema_version", "name", "maintainer", "contact", "citation", "cloud"), _NO_SCORE),
            **dict.fromkeys(("repository", "repository_host", "repository_url", "zoltar_project_id"), _NO_SCORE),
            **dict.fromkeys(("hub_models", "additional_metadata"), _NO_SCORE),
            "file_format": _SUBMITTING,
            "timezone": "forecasts are made when a day begins in UTC",
        },
    ),
    "target-data": Columns(
        used=_TargetData.__struct_fields__,
        ignored={
            "schema_version": _NO_SCORE,
            "additional_metadata": _NO_SCORE,
            **dict.fromkeys(("observable_unit", "versioned", "time-series", "oracle-output"), _SAME),
        },
    ),
}


class HubConfig(NamedTuple):
    """What the configuration says. date_column: of the target data, empty if it is not said."""

    rounds: list[Round]
    model_output: str
    date_column: str

    def task_ids(self) -> list[str]:
        """Return the names of all task ids, in the order of the file."""
        tasks = [task for each in self.rounds for task in each.model_tasks]
        return list(dict.fromkeys(name for task in tasks for name in task.task_ids))

    def round_of(self, round_id: str) -> Round | None:
        """Return the round with this id."""
        for hub_round in self.rounds:
            if not hub_round.round_id_from_variable:
                if hub_round.round_id == round_id:
                    return hub_round
            elif any(round_id in task.values.get(hub_round.round_id, {}) for task in hub_round.model_tasks):
                return hub_round
        return None


def read_config(files: SourceFiles) -> HubConfig:
    """Read the configuration of a hub. Refuses: bad_source (a file is missing or does not have its form)."""
    tasks = _read(files, TASKS, _Tasks)
    admin = _read(files, ADMIN, _Admin) if ADMIN in files.names else _Admin()
    target = _read(files, TARGET_DATA, _TargetData) if TARGET_DATA in files.names else _TargetData()
    return HubConfig(tasks.rounds, admin.model_output_dir.strip("/"), target.date_col)


def unread_fields(files: SourceFiles) -> Iterator[tuple[InputLocation, NotCarried]]:
    """Yield the fields of the configuration that are not read, each once; the configuration was read before."""
    unread = {kind: Unread(columns, "field") for kind, columns in FIELDS.items()}
    for kind, name in (("tasks", TASKS), ("admin", ADMIN), ("target-data", TARGET_DATA)):
        if name in files.names:
            content = _read(files, name, dict[str, Any])
            for of, part in [(kind, content), *(_objects(content) if kind == "tasks" else ())]:
                yield from unread[of].of(InputLocation(0, file=name), part)


def _objects(tasks: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the objects of tasks.json, and what each is."""
    for hub_round in tasks["rounds"]:
        yield from (("round", hub_round), ("due", hub_round["submissions_due"]))
        for task in hub_round["model_tasks"]:
            yield "task", task
            yield from (("ids", ids) for ids in task["task_ids"].values())
            yield from (("target", target) for target in task.get("target_metadata", ()))
            for output in task["output_type"].values():
                yield "output", output
                yield from (("ids", output.get("output_type_id") or {}), ("value", output.get("value", {})))
                yield "samples", output.get("output_type_id_params") or {}


def as_number(text: str) -> Decimal | None:
    """Return a text as a number, if it is one.

    >>> as_number("0.10") == as_number("0.1"), as_number("large")
    (True, None)
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def written_out(text: str) -> str:
    """Return a number with a digit before its point and one after it; any other text as it is.

    >>> written_out(".8"), written_out("-.8"), written_out("8."), written_out("NA")
    ('0.8', '-0.8', '8.0', 'NA')
    """
    if not text.endswith(".") and text.lstrip("+-")[:1] != ".":
        return text
    return text if as_number(text) is None else re.sub(r"(?<![0-9])(?=\.)|(?<=\.)$", "0", text)


def spelled(text: str, values: Collection[str]) -> str:
    """Return the one of several texts that a text is, or that is the same number; the text itself if there is none.

    A number of more than 15 digits is the double nearest to it, as R and Python write them.

    >>> spelled("1", ["US", "01"]), spelled("0.90000000000000002", ["0.9"]), spelled("0.0", ["0"]), spelled("x", ["0"])
    ('01', '0.9', '0', 'x')
    """
    if text in values or (number := as_number(text)) is None:
        return text
    if len(number.as_tuple().digits) > DOUBLE_DIGITS:
        number = Decimal(repr(float(text)))
    return next((value for value in values if as_number(value) == number), text)


def spellings(values: Collection[str]) -> dict[str, str]:
    """Return a dict that has, for any text, what `spelled` returns of it."""

    class _Spellings(dict[str, str]):
        def __missing__(self, text: str) -> str:
            spelling = self[text] = spelled(text, values)
            return spelling

    return _Spellings()


def same_number(first: str, second: str) -> bool:
    """Return whether two texts are the same, or the same number.

    >>> same_number("20", "2e1"), same_number("NA", "20")
    (True, False)
    """
    return first == second or (as_number(first) or first) == (as_number(second) or second)


def _texts(value: Any) -> list[str]:
    return [text_of(each) for each in (value if isinstance(value, list) else [value])]


def _read(files: SourceFiles, name: str, form: type[_Form]) -> _Form:
    if name not in files.names:
        remedy = "give the folder of a hub, which has hub-config and model-output, or a zip of it"
        raise Refused("bad_source", name, None, "the hub has no such file", remedy=remedy)
    try:
        return msgspec.json.decode(files.read(name, CONFIG_BYTES).removeprefix(UTF_8_MARK), type=form)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Refused("bad_source", name, None, str(error)) from None
