"""The tasks of an exported hub: what a question, its forecasts and its answer are in the hub's words."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Context, Decimal
from typing import Any, NamedTuple

import msgspec

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.model import events
from forecast_ledger.replay.importing.hub_questions import OUTPUT_TYPE, OUTPUT_TYPE_ID, ROUND_ID, task_values
from forecast_ledger.replay.importing.source_files import MISSING

PERIOD, QUESTION = "open_period", "question"  # the task ids of a question that no hub asked
SCHEMA = "https://raw.githubusercontent.com/hubverse-org/schemas/main/v6.0.0/tasks-schema.json"
_EXACT = Context(prec=40)
_PLACES = Context(prec=12)  # digits of the steps of a cdf
_MEDIAN = (values.PROBABILITY // 2,)  # the level of a median
_DAY = 86_400 * 10**6  # µs
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
    """Return the task of a question; of one that no hub asked, its id and the days on which it is open."""
    opens, closes = _day(question.opens_at), _day(question.closes_at - 1)
    task = task_values(question.question)
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
    return f"{_PLACES.plus(_EXACT.fma(upper - lower, share, lower)).normalize() + 0:f}"


def _day(instant: int) -> date:
    return date(1970, 1, 1) + timedelta(days=instant // _DAY)


# --- hub-config/tasks.json


def tasks_config(tasks: Sequence[HubTask]) -> str:
    """Return the configuration of tasks, as text."""
    rounds = [_round(window, own) for window, own in _windows(tasks).items()]
    content = {"schema_version": SCHEMA, "rounds": rounds}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _windows(tasks: Sequence[HubTask]) -> dict[tuple[Any, ...], list[HubTask]]:
    """Return the tasks of rounds that have one window: days from the round's date, or, without a date, two days."""
    rounds: dict[tuple[str, str], list[HubTask]] = {}
    for task in tasks:
        rounds.setdefault((task.round_key, task.round_id), []).append(task)
    windows: dict[tuple[Any, ...], list[HubTask]] = {}
    for (key, round_id), own in rounds.items():
        start, end = min(task.opens for task in own), max(task.closes for task in own)
        day = _as_date(round_id)
        if day is None or key == ROUND_ID:
            window: tuple[Any, ...] = (key, round_id, start.isoformat(), end.isoformat())
        else:
            window = (key, "", (start - day).days, (end - day).days)
        windows.setdefault(window, []).extend(own)
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
        "model_tasks": [_model_task(own) for own in forms.values()],
        "submissions_due": due if round_id else {"relative_to": key, **due},
    }


def _model_task(tasks: Sequence[HubTask]) -> dict[str, Any]:
    first = tasks[0]
    task = {key: sorted({task.values[key] for task in tasks}) for key in first.values if key != ROUND_ID}
    by_column = first.values.get("target") == first.target
    return {
        "task_ids": {key: {"required": None, "optional": found} for key, found in task.items()},
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
