"""Write a log as a hubverse hub: configuration, model output and oracle output, the same bytes for the same log.

A hub has one submission of each model for each round: the forecast that stands when the question closes.

Source: hubverse, Documentation, "Hub configuration files", "Model output" and "Target (observed) data".
"""

import csv
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Context, Decimal
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Unavailable
from forecast_ledger.ledger.core.files import open_regular
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Checkpoint
from forecast_ledger.ledger.model.task_ids import OUTPUT_TYPE, task_values
from forecast_ledger.projections.facts.columns import put_last
from forecast_ledger.projections.facts.event_checks import rescheduled
from forecast_ledger.replay.files.manifest import MANIFEST_BYTES, clear_leftovers, move_into_place, scratch_folder
from forecast_ledger.replay.importing.hub_questions import OUTPUT_TYPE_ID, ROUND_ID
from forecast_ledger.replay.importing.source_files import MISSING
from forecast_ledger.replay.reading.log import Log

PERIOD, QUESTION = "open_period", "question"  # the task ids of a question that no hub asked
SCHEMA = "https://raw.githubusercontent.com/hubverse-org/schemas/main/v6.0.0/tasks-schema.json"
_EXACT = Context(prec=40)
_TWELVE_DIGITS = Context(prec=12)  # digits of the steps of a cdf
_ROUND = re.compile(r'[^/\\:*?"<>|\x00-\x1f]+')
_MEDIAN = (values.PROBABILITY // 2,)  # the level of a median
Pair = tuple[str, str]  # output type id, value


class HubTask(NamedTuple):
    """A question as a hub has it.

    values: task id -> value, the round's first. ids: output type ids; with categories those of a pmf; of samples none.
    usual: whether most forecasts have these ids. opens, closes: the first and the last day of the submission window.
    target: the contest's name for what is asked.
    """

    values: Mapping[str, str]
    output_type: str
    ids: tuple[str, ...]
    span: events.NumericRange | None
    opens: date
    closes: date
    target: str
    target_type: str
    usual: bool = True

    @property
    def round_id(self) -> str:
        """Return the round."""
        return next(iter(self.values.values()))

    @property
    def shape(self) -> tuple[str, ...]:
        """Return the output type ids, or the number of samples."""
        return self.ids or (str(self.span.samples if self.span else 0),)

    @property
    def round_key(self) -> str:
        """Return the task id that names the round."""
        return next(iter(self.values))

    def forecast_rows(self, forecast: events.ForecastMade) -> Iterator[Pair]:
        """Return each output type id with its value; nothing if the forecast has other outcomes."""
        numbers, unit = forecast.probabilities, values.PROBABILITY
        if self.span is not None:
            numbers, unit = forecast.cdf, values.CUMULATIVE
            if self.span.measures:
                numbers, unit = forecast.quantiles or forecast.samples, 10**self.span.decimals
        ids = self.ids or tuple(str(number) for number in range(1, len(numbers) + 1))
        if len(numbers) == len(ids):
            yield from zip(ids, (values.format_fixed(number, unit) for number in numbers), strict=True)

    def answer_rows(self, answer: events.QuestionResolved) -> Iterator[Pair]:
        """Return the rows of the oracle; bin k is between the edges k - 1 and k, and 0 is below the first."""
        if self.span is None:
            yield from ((each, str(int(at == answer.outcome))) for at, each in enumerate(self.ids))
        elif self.span.measures:
            yield MISSING, answer.value
        else:
            yield from ((each, str(int(edge >= answer.outcome))) for edge, each in enumerate(self.ids))


def hub_task(question: events.QuestionOpened, contest: events.ContestOpened | None) -> HubTask:
    """Return the task of a question; of one that no hub asked, its id and the days on which it is open.

    A round is part of the name of a file: a question whose round cannot be was asked by no hub.
    """
    opens, closes = _day(question.opens_at), _day(question.closes_at - 1)
    task = task_values(question.question)
    if task and not _ROUND.fullmatch(next(iter(task.values()))):
        task = None
    output_type, ids = _output(question, (task or {}).get(OUTPUT_TYPE))
    usual = task is None or OUTPUT_TYPE_ID not in task
    if task is None:
        task = {PERIOD: f"{opens:%Y%m%d}_{closes:%Y%m%d}", QUESTION: question.question}
    task = {key: value for key, value in task.items() if key not in {OUTPUT_TYPE, OUTPUT_TYPE_ID}}
    name = contest.contest.removesuffix(f" {output_type}") if contest else "ledger"
    if output_type != "pmf":
        target_type = "continuous"
    elif question.kind == "binary":
        target_type = "binary"
    else:
        ordered = question.ordered
        if ordered is None:  # the question does not say: the kernel does
            ordered = contest is not None and contest.rules.kernel == "ordered_brier"
        target_type = "ordinal" if ordered else "nominal"
    return HubTask(task, output_type, ids, question.range, opens, closes, name, target_type, usual)


def _output(question: events.QuestionOpened, named: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the output type of a question, and its output type ids. named: the type that its id has, if any."""
    span = question.range
    if span is None:
        return "pmf", question.outcomes
    if span.samples:
        return ("mean", (MISSING,)) if span.samples == 1 else ("sample", ())
    if named == "median" and span.levels == _MEDIAN:
        return "median", (MISSING,)
    if span.levels:
        return "quantile", tuple(values.format_fixed(level, values.PROBABILITY) for level in span.levels)
    return "cdf", tuple(_edge(span, number) for number in range(span.bins + 1))


def _edge(span: events.NumericRange, number: int) -> str:
    """Return an edge of the bins, to twelve digits."""
    lower, upper, share = Decimal(span.lower), Decimal(span.upper), _EXACT.divide(Decimal(number), Decimal(span.bins))
    if span.zero_point is not None:
        zero = Decimal(span.zero_point)
        ratio = _EXACT.divide(upper - zero, lower - zero)
        share = _EXACT.divide(_EXACT.power(ratio, share) - 1, ratio - 1)
    return f"{_TWELVE_DIGITS.plus(_EXACT.fma(upper - lower, share, lower)).normalize() + 0:f}"


def _day(instant: int) -> date:
    return date(1970, 1, 1) + timedelta(days=instant // values.DAY)


# --- hub-config/tasks.json


def tasks_config(tasks: Sequence[HubTask]) -> str:
    """Return the configuration of tasks, as text."""
    rounds = [_round(window, tasks_of_round) for window, tasks_of_round in _windows(tasks).items()]
    content = {"schema_version": SCHEMA, "rounds": rounds}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _windows(tasks: Sequence[HubTask]) -> dict[tuple[Any, ...], list[HubTask]]:
    """Return the tasks of rounds that have one window: days from the round's date, or, without a date, two days."""
    rounds: dict[tuple[str, str], list[HubTask]] = {}
    for task in tasks:
        rounds.setdefault((task.round_key, task.round_id), []).append(task)
    windows: dict[tuple[Any, ...], list[HubTask]] = {}
    for (key, round_id), tasks_of_round in rounds.items():
        start, end = min(task.opens for task in tasks_of_round), max(task.closes for task in tasks_of_round)
        day = _as_date(round_id)
        if day is None or key == ROUND_ID:
            window: tuple[Any, ...] = (key, round_id, start.isoformat(), end.isoformat())
        else:
            window = (key, "", (start - day).days, (end - day).days)
        windows.setdefault(window, []).extend(tasks_of_round)
    return windows


def _round(window: tuple[Any, ...], tasks: Sequence[HubTask]) -> dict[str, Any]:
    key, round_id, start, end = window
    shapes: dict[tuple[Any, ...], tuple[str, ...]] = {
        (*task.values.items(), task.output_type): task.shape for task in tasks if task.usual
    }
    forms: dict[tuple[Any, ...], list[HubTask]] = {}
    for task in tasks:
        span = (task.span.lower, task.span.upper, task.span.open_lower, task.span.open_upper) if task.span else ()
        shape = task.shape if task.usual else shapes.get((*task.values.items(), task.output_type), task.shape)
        forms.setdefault((task.target, task.target_type, task.output_type, shape, span, *task.values), []).append(task)
    due = {"start": start, "end": end}
    return {
        "round_id_from_variable": key != ROUND_ID,
        "round_id": round_id if key == ROUND_ID else key,
        "model_tasks": [_model_task(tasks_of_form) for tasks_of_form in forms.values()],
        "submissions_due": due if round_id else {"relative_to": key, **due},
    }


def _model_task(tasks: Sequence[HubTask]) -> dict[str, Any]:
    first = tasks[0]
    task = {key: sorted({task.values[key] for task in tasks}) for key in first.values if key != ROUND_ID}
    by_column = first.values.get("target") == first.target
    return {
        "task_ids": {key: {"required": None, "optional": values} for key, values in task.items()},
        "output_type": {
            first.output_type: {
                **_ids(tasks),
                "is_required": True,
                "value": {"type": "double", **_bounds(first)},
            }
        },
        "target_metadata": [
            {
                "target_id": first.target,
                "target_name": first.target,
                "target_units": "unit",
                "target_keys": {"target": first.target} if by_column else None,
                "target_type": first.target_type,
                "is_step_ahead": False,
            }
        ],
    }


def _ids(tasks: Sequence[HubTask]) -> dict[str, Any]:
    """Return the output type ids of tasks of one form: required are those that all forecasts have."""
    first = tasks[0]
    if first.output_type == "sample":
        counts = [task.span.samples for task in tasks if task.span]
        return {"output_type_id_params": {"min_samples_per_task": min(counts), "max_samples_per_task": max(counts)}}
    if first.output_type in {"median", "mean"}:
        return {"output_type_id": {"required": None}}
    if first.output_type != "quantile":
        return {"output_type_id": {"required": list(map(_plain, first.ids)) if first.span else list(first.ids)}}
    every = sorted({each for task in tasks for each in task.ids}, key=Decimal)
    usual = {each for task in tasks if task.usual for each in task.ids} or {*every}
    required = usual if all(usual <= {*task.ids} for task in tasks) else set()
    optional = [each for each in every if each not in required]
    plain = {"required": [_plain(each) for each in every if each in required] or None}
    return {"output_type_id": plain | ({"optional": list(map(_plain, optional))} if optional else {})}


def _bounds(task: HubTask) -> dict[str, Any]:
    if task.span is None or not task.span.measures:
        return {"minimum": 0, "maximum": 1}
    closed = {
        "minimum": None if task.span.open_lower else task.span.lower,
        "maximum": None if task.span.open_upper else task.span.upper,
    }
    return {key: _plain(bound) for key, bound in closed.items() if bound is not None}


def _plain(number: str) -> msgspec.Raw:
    """Return a decimal as a JSON number of the same digits."""
    return msgspec.Raw(number.encode())


def _as_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == len("2026-03-01") else None
    except ValueError:
        return None


ADMIN = "hub-config/admin.json"
LABELS = ("output_type", "output_type_id")
MAINTAINER = "forecast-ledger"
_TOP = {"hub-config", "model-output", "model-metadata", "target-data"}
_MODEL = re.compile(r"[A-Za-z0-9_]+-[A-Za-z0-9_]+")


# The last forecast or withdrawal of each participant on a question, in log order.
_Standing = dict[str, events.ForecastMade | events.ForecastWithdrawn]


class HubPart(NamedTuple):
    """What a hub has of a sort: the number of rows, and the SHA-256 of its files, in order of their paths."""

    rows: int
    digest: str


class HubExport(NamedTuple):
    """An exported hub. left_out: reason -> how many forecasts or answers."""

    checkpoint: Checkpoint
    parts: dict[str, HubPart]
    left_out: dict[str, int]


class _Folded:
    """What of a log a hub has: questions, forecasts that stand, answers, and the contest of each question."""

    def __init__(self) -> None:
        self.questions: dict[str, events.QuestionOpened] = {}
        self.closed: dict[str, int] = {}
        self.standing: dict[str, _Standing] = {}
        self.answers: dict[str, events.QuestionResolved] = {}
        self.contests: dict[str, events.ContestOpened] = {}
        self.contest_of: dict[str, str] = {}
        self.changed: set[str] = set()  # questions whose outcomes changed, which a hub cannot have

    def add(self, event: events.AnyEvent) -> None:
        """Take an event in."""
        if isinstance(event, events.ForecastMade):
            put_last(self.standing.setdefault(event.question, {}), event.participant, event)
        elif isinstance(event, events.ForecastWithdrawn):
            put_last(self.standing[event.question], event.participant, event)
        elif isinstance(event, events.ForecastsRetracted | events.ParticipantRenamed):
            self._correct(event)
        elif isinstance(event, events.QuestionOpened):
            self.questions[event.question] = event
        elif isinstance(event, events.OutcomesChanged):
            self.changed.add(event.question)
        elif isinstance(event, events.QuestionClosed):
            self.closed[event.question] = event.at
        elif isinstance(event, events.QuestionRescheduled):
            self.questions[event.question] = rescheduled(self.questions[event.question], event)
            if event.closes_at is not None:
                self.closed.pop(event.question, None)
        elif isinstance(event, events.QuestionResolved):
            self.answers[event.question] = event
        elif isinstance(event, events.QuestionAnnulled | events.ResolutionRevoked):
            self.answers.pop(event.question, None)
        elif isinstance(event, events.ContestOpened):
            self.contests[event.contest] = event
        elif isinstance(event, events.QuestionAdded):
            self.contest_of.setdefault(event.question, event.contest)

    def _correct(self, event: events.ForecastsRetracted | events.ParticipantRenamed) -> None:
        if isinstance(event, events.ForecastsRetracted):
            self.standing.get(event.question, {}).pop(event.participant, None)
        else:
            self.standing = {question: _renamed(last, event) for question, last in self.standing.items()}

    def forecasters(self) -> set[str]:
        """Return the participants who have not withdrawn every forecast."""
        every = (each for standing in self.standing.values() for each in standing.values())
        return {last.participant for last in every if isinstance(last, events.ForecastMade)}

    def forecasts(self, question: str) -> Iterator[events.ForecastMade]:
        """Return the forecasts that stand when a question closes, by participant."""
        end = self.closed.get(question, self.questions[question].closes_at)
        for _, forecast in sorted(self.standing.get(question, {}).items()):
            if not isinstance(forecast, events.ForecastMade):
                continue
            if forecast.at < end and (forecast.until is None or forecast.until >= end):
                yield forecast


def _renamed(standing: _Standing, rename: events.ParticipantRenamed) -> _Standing:
    """Return what stands under another id of a participant; of two in order of time, the later."""
    if rename.participant not in standing:
        return standing
    forecasts: _Standing = {}
    for who, last in standing.items():
        name = rename.to if who == rename.participant else who
        if name not in forecasts or forecasts[name].at <= last.at:
            put_last(forecasts, name, structs.replace(last, participant=name))
    return forecasts


def export_hub(log: Log, out: str | PathLike[str], *, force: bool = False) -> HubExport:
    """Export a log as of its cut to a folder in the layout of a hub.

    force: replace a hub that was exported before.
    Raises, first that applies: FileExistsError (the path exists and may not be replaced), Refused (as_of), Unavailable,
    Corrupt, OSError.
    """
    out = Path(os.path.abspath(out))  # noqa: PTH100 - links are not followed: a link at OUT is replaced itself
    clear_leftovers(out)
    check_free(out, "an exported hub", _TOP, _is_ours, force=force)
    folded, cut = _Folded(), log.cut()
    with log.pages(cut) as pages:
        for page in pages:
            for recorded in page:
                folded.add(recorded.event)
    head = cut.reached()
    with scratch_folder(out) as part:
        parts, left_out = _write(part / "hub", folded)
        check_free(out, "an exported hub", _TOP, _is_ours, force=force)
        move_into_place(part / "hub", out)
    return HubExport(head, parts, left_out)


def _write(folder: Path, folded: _Folded) -> tuple[dict[str, HubPart], dict[str, int]]:
    tasks = {
        question.question: hub_task(question, folded.contests.get(folded.contest_of.get(question.question, "")))
        for _, question in sorted(folded.questions.items())
    }
    columns = list(dict.fromkeys(column for task in tasks.values() for column in task.values))
    models = _model_names(folded.forecasters())
    left_out: dict[str, int] = {}
    files: dict[str, list[list[str]]] = {}
    for question, task in tasks.items():
        for forecast in folded.forecasts(question):
            rows = [] if question in folded.changed else list(task.forecast_rows(forecast))
            if not rows:
                reason = "a forecast with other outcomes than the question was opened with"
                if question in folded.changed:
                    reason = "a forecast on a question whose outcomes changed"
                left_out[reason] = left_out.get(reason, 0) + 1
                continue
            model = models[forecast.participant]
            path = f"model-output/{model}/{task.round_id}-{model}.csv"
            lines = files.setdefault(path, [])
            if task.output_type == "sample":  # ids that no other task of the file has, since no paths are known
                rows = [(str(number), value) for number, (_, value) in enumerate(rows, len(lines) + 1)]
            lines.extend(_full(columns, task, rows))
    header = [*columns, *LABELS]
    parts = {"model-output": _write_tables(folder, files, [*header, "value"])}
    oracle = [row for question, task in tasks.items() for row in _oracle(columns, task, folded, question, left_out)]
    parts["oracle-output"] = _write_tables(folder, {"target-data/oracle-output.csv": oracle}, [*header, "oracle_value"])
    metadata = {f"model-metadata/{model}.yml": _metadata(who, model) for who, model in models.items()}
    parts["hub-config"] = write_texts(
        folder, {"hub-config/tasks.json": tasks_config(list(tasks.values())), ADMIN: _admin()}
    )
    parts["model-metadata"] = write_texts(folder, metadata)
    return parts, left_out


def _full(columns: Sequence[str], task: HubTask, rows: Iterable[tuple[str, str]]) -> Iterator[list[str]]:
    start = [task.values.get(column, MISSING) for column in columns]
    for identity, value in rows:
        yield [*start, task.output_type, identity, value]


def _oracle(
    columns: Sequence[str], task: HubTask, folded: _Folded, question: str, left_out: dict[str, int]
) -> Iterator[list[str]]:
    answer = folded.answers.get(question)
    if answer is None:
        return
    if answer.payouts or question in folded.changed:
        reason = "an answer of shares: an oracle has one outcome"
        if question in folded.changed:
            reason = "an answer to a question whose outcomes changed"
        left_out[reason] = left_out.get(reason, 0) + 1
        return
    yield from _full(columns, task, task.answer_rows(answer))


def _model_names(participants: Iterable[str]) -> dict[str, str]:
    """Return the hub's name of each participant: TEAM-MODEL of letters, digits and underscores, each once."""
    names: dict[str, str] = {who: who for who in sorted(participants) if _MODEL.fullmatch(who)}
    taken = set(names)
    for who in sorted(set(participants) - set(names)):
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", who).strip("_") or "model"
        name, number = f"ledger-{plain}", 1
        while name in taken:
            number += 1
            name = f"ledger-{plain}_{number}"
        taken.add(name)
        names[who] = name
    return names


def _metadata(who: str, model: str) -> str:
    """Return a model's metadata: YAML, as which JSON texts count too."""
    team, _, short = model.partition("-")
    fields = {"team_abbr": team, "model_abbr": short, "team_name": team, "model_name": who}
    return "".join(f"{key}: {msgspec.json.encode(value).decode()}\n" for key, value in fields.items())


def _admin() -> str:
    content = {
        "schema_version": "https://raw.githubusercontent.com/hubverse-org/schemas/main/v6.0.0/admin-schema.json",
        "name": "Forecast Ledger",
        "maintainer": MAINTAINER,
        "contact": {"name": MAINTAINER, "email": "nobody@example.org"},
        "repository": {"host": "github", "owner": MAINTAINER, "name": "hub"},
        "file_format": ["csv"],
        "timezone": "UTC",
        "model_output_dir": "model-output",
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _write_tables(folder: Path, files: dict[str, list[list[str]]], header: list[str]) -> HubPart:
    texts = {}
    for path, rows in files.items():
        texts[path] = csv_text([header, *rows])
    return write_texts(folder, texts)._replace(rows=sum(map(len, files.values())))


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write_texts(folder: Path, texts: dict[str, str]) -> HubPart:
    """Write files; return how many, and the digest of them all."""
    digest = sha256()
    for path, text in sorted(texts.items()):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
        digest.update(f"{path}\n".encode() + text.encode())
    return HubPart(len(texts), digest.hexdigest())


def check_free(out: Path, what: str, names: Collection[str], is_ours: Callable[[Path], bool], *, force: bool) -> None:
    """Raise FileExistsError unless the path is free, or has a folder that may be replaced.

    what: such a folder. names: what it has, and nothing else. is_ours: whether this program wrote it.
    """
    if not out.parent.is_dir():
        raise FileNotFoundError(f"{out}: the folder {out.parent} does not exist")
    if not os.path.lexists(out):
        return
    if not force:
        raise FileExistsError(f"{out}: exists already; --force replaces an export")
    if out.is_symlink() or not out.is_dir() or {path.name for path in out.iterdir()} - {*names} or not is_ours(out):
        raise FileExistsError(f"{out}: exists and is not {what}; it is not replaced")


def _is_ours(out: Path) -> bool:
    try:
        with open_regular(out / ADMIN, MANIFEST_BYTES) as file:
            return file.read() == _admin().encode()
    except (OSError, Unavailable):
        return False
