"""The questions of a hub: one for each combination of task ids, and output type, that a model gives an answer to."""

from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from itertools import pairwise, product
from typing import Any, NamedTuple

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model.commands import AddQuestion, OpenContest, OpenQuestion, Range
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.task_ids import HORIZON, OUTPUT_TYPE, task_text
from forecast_ledger.replay.importing.hub_config import (
    Due,
    HubConfig,
    Output,
    Round,
    Target,
    as_number,
    spelled,
)
from forecast_ledger.replay.importing.source_files import MISSING
from forecast_ledger.replay.importing.source_items import NotCarried, fitting_id, label_of, start_of_day

ROUND_ID, OUTPUT_TYPE_ID = "round_id", "output_type_id"
VALUES = ("quantile", "median", "mean", "sample")  # output types that are scored by the observed value itself
SOURCE = "hubverse"
_ORDERED = {"ordinal": True, "nominal": False}  # by target type
_DAYS = {"day": 1, "week": 7}  # of a time unit
DECIMALS, FINE_DECIMALS, FINE_UPTO = 4, 9, 1_000  # of values; finer where none is above FINE_UPTO
MEAN_DECIMALS = 6  # of means whose bounds are not known: their squared errors are exact to 0.001
WIDTH = Decimal(10**6)  # of a range that the hub does not bound; both its ends are open
RULES = RuleSet(
    name="hubverse",
    kernel="brier",
    quantile_kernel="pinball",
    cdf_kernel="crps",
    period="covered",
    total="mean",
    least_probability_ppm=0,
)
ORDINAL_RULES = RuleSet(
    name="hubverse-ordinal", kernel="ordered_brier", period="covered", total="mean", least_probability_ppm=0
)


MEAN_RULES = RuleSet(
    name="hubverse-mean", quantile_kernel="squared", period="covered", total="mean", least_probability_ppm=0
)


class HubQuestion(NamedTuple):
    """A question. row: task id -> value. ids: output type ids, as the hub writes them, but of samples none.

    numbers: those of them that are numbers. at: of its forecasts.

    target_date: the date that the round and the horizon make; "" if the configuration does not say how. ordered: as the
    target type says.
    """

    id: str
    contest: str
    round_id: str
    output_type: str
    row: Mapping[str, str]
    ids: tuple[str, ...]
    numbers: Mapping[Decimal, str]
    range: Range | None
    opens_at: str
    at: str
    closes_at: str
    title: str
    rules: RuleSet
    target_date: str = ""
    ordered: bool | None = None

    def commands(self, rules: str | None) -> list[OpenContest | OpenQuestion | AddQuestion]:
        """Return the commands that open the contest and the question, and put it there."""
        outcomes = self.ids if self.range is None else None
        kind: Any = "multiple_choice" if self.range is None else "numeric"
        return [
            OpenContest(
                id=fitting_id(f"hub contest {self.contest}"),
                at=self.opens_at,
                contest=self.contest,
                rules=rules or self.rules,
            ),
            OpenQuestion(
                id=fitting_id(f"hub open {self.id}"),
                at=self.opens_at,
                question=self.id,
                kind=kind,
                title=self.title,
                outcomes=outcomes,
                range=self.range,
                opens_at=self.opens_at,
                closes_at=self.closes_at,
                group=label_of(self.round_id),
                category=label_of(self.contest.removesuffix(f" {self.output_type}")),
                source=SOURCE,
                ordered=self.ordered,
            ),
            AddQuestion(id=fitting_id(f"hub add {self.id}"), at=self.opens_at, contest=self.contest, question=self.id),
        ]


def hub_question(
    hub_round: Round, round_id: str, row: Mapping[str, str], output_type: str, given: Collection[str]
) -> HubQuestion | NotCarried:
    """Return the question of some rows of model output. given: their output type ids.

    Forecasts of other levels than those that every forecast has, or of another number of samples, are on a question of
    their own: their scores are those of another distribution. Nothing is carried over if no task of the round asks for
    it, or if the ledger has no forecast of its form. Refuses: bad_source (due dates, number of samples).
    """
    task = next((each for each in hub_round.model_tasks if output_type in each.output_type and each.takes(row)), None)
    if task is None:
        return NotCarried("no task of the round in hub-config/tasks.json has these task ids and this output type")
    form = _form(task.output_type[output_type], output_type, given)
    if isinstance(form, NotCarried):
        return form
    ids, span, distinction = form
    start, end = (_due(hub_round.submissions_due, each, row) for each in ("start", "end"))
    closes_at = start_of_day(end, "submissions_due", 1)
    if not start <= end:
        raise Refused("bad_source", "hub-config/tasks.json", None, "submissions_due ends before it starts")
    target = task.target_of(row)
    name = " ".join(row[key] for key in target.target_keys or () if key in row) or target.target_id or "hub"
    first = hub_round.round_id if hub_round.round_id_from_variable else ROUND_ID
    said = {key: row[key] for key in task.task_ids if key in row and key != first}
    values = {first: round_id} | {key: value for key, value in said.items() if task.values[key] or value != MISSING}
    title = f"{target.target_name or name}: " + ", ".join(f"{key} {value}" for key, value in values.items())
    ordered = _ORDERED.get(target.target_type) if output_type == "pmf" else None
    return HubQuestion(
        id=question_id({**values, OUTPUT_TYPE: output_type} | ({OUTPUT_TYPE_ID: distinction} if distinction else {})),
        contest=f"{name} {output_type}",
        round_id=round_id,
        output_type=output_type,
        row=row,
        ids=ids,
        numbers={number: text for text in ids if (number := as_number(text)) is not None},
        range=span,
        opens_at=start_of_day(start, "submissions_due"),
        at=start_of_day(end, "submissions_due"),
        closes_at=closes_at,
        title=title,
        rules=ORDINAL_RULES if ordered else MEAN_RULES if output_type == "mean" else RULES,
        target_date=_target_date(target, round_id, row.get(HORIZON, "")) if hub_round.round_id_from_variable else "",
        ordered=ordered,
    )


def target_names(config: HubConfig) -> Iterator[str | None]:
    """Yield the category of the questions about each target of a hub."""
    for task in (task for each in config.rounds for task in each.model_tasks):
        for target in [*task.target_metadata, Target()]:  # of no target: a row that has the id of none
            values = [target.texts(key) for key in target.target_keys or ()]
            for names in product(*values):
                yield label_of(" ".join(names) or target.target_id or "hub")


def question_id(values: Mapping[str, str]) -> str:
    """Return the id of a question, from which `task_values` reads the task ids again.

    >>> question_id({"location": "US", "target": "a & b"})
    'location=US&target=a %26 b'
    """
    return fitting_id(task_text(values))


def _target_date(target: Target, round_id: str, horizon: str) -> str:
    """Return the date that is so many days or weeks after the round's; "" if that cannot be told."""
    steps = as_number(horizon)
    if not target.is_step_ahead or target.time_unit not in _DAYS or steps is None or steps != int(steps):
        return ""
    try:
        return start_of_day(round_id, "round_id", int(steps) * _DAYS[target.time_unit])[:10]
    except Refused:
        return ""


def _due(due: Due, side: str, row: Mapping[str, str]) -> str:
    """Return the first or last date of a submission window, UTC."""
    value = due.start if side == "start" else due.end
    if due.relative_to is None or isinstance(value, str):
        return start_of_day(str(value), f"submissions_due.{side}")[:10]
    return start_of_day(row.get(due.relative_to, MISSING), f"submissions_due.relative_to {due.relative_to}", value)[:10]


_Form = tuple[tuple[str, ...], Range | None, str]


def _form(output: Output, output_type: str, given: Collection[str]) -> _Form | NotCarried:
    """Return the output type ids, the range of numbers, and what sets the question apart from others of its task."""
    form = _FORMS.get(output_type)
    return NotCarried(f"output type {output_type!r}, which is not known") if form is None else form(output, given)


def _pmf(output: Output, _: Collection[str]) -> _Form | NotCarried:
    every = output.every()
    return (tuple(every), None, "") if len(every) > 1 else NotCarried("a pmf of fewer than two categories")


def _median(output: Output, _: Collection[str]) -> _Form:
    return (MISSING,), _value_range(output, levels=(Decimal("0.5"),)), ""


def _mean(output: Output, _: Collection[str]) -> _Form:
    return (MISSING,), _value_range(output, samples=1), ""


def _quantiles(output: Output, given: Collection[str]) -> _Form | NotCarried:
    levels, distinction = _levels(output, given)
    if not levels:
        return NotCarried("output type quantile without output type ids that are numbers")
    return tuple(levels.values()), _value_range(output, levels=tuple(levels)), distinction


def _cdf(output: Output, given: Collection[str]) -> _Form | NotCarried:
    levels, distinction = _levels(output, given)
    steps = [*levels]
    if len({after - before for before, after in pairwise(steps)}) != 1:
        return NotCarried("a cdf whose output type ids are not numbers in equal steps")
    span = Range(lower=steps[0], upper=steps[-1], bins=len(steps) - 1, open_lower=True, open_upper=True)
    return tuple(levels.values()), span, distinction


def _levels(output: Output, given: Collection[str]) -> tuple[Mapping[Decimal, str], str]:
    """Return the levels or steps of a forecast in increasing order, none if one is no number, and what sets them apart.

    Usually a forecast has those that are required, or, if none is, all. It is taken to have these, too, if a required
    one is missing, which is a fault of the forecast.
    """
    required, every = output.required(), output.every()
    usual, given_ids = required or every, {spelled(name, every) for name in given}
    ids = [each for each in every if each in given_ids]
    if not ids or not given_ids >= {*required}:
        ids = usual
    numbers = {number: text for text in ids if (number := as_number(text)) is not None}
    levels = {number: numbers[number] for number in sorted(numbers)} if len(numbers) == len(ids) else {}
    return levels, "" if {*ids} == {*usual} else ",".join(levels.values())


def _samples(output: Output, given: Collection[str]) -> _Form:
    """Return the form of samples. Refuses: bad_source (fewer or more than the hub takes)."""
    count = len({*given})
    least, most = output.output_type_id_params.min_samples_per_task, output.output_type_id_params.max_samples_per_task
    if count < least or (most is not None and count > most):
        required = f"{least} or more" if most is None else f"{least} to {most}"
        detail = f"it has {count}; hub-config/tasks.json asks for {required} samples"
        raise Refused("bad_source", OUTPUT_TYPE_ID, None, detail)
    return (), _value_range(output, samples=count), "" if count == (most or least) else f"{count} samples"


_FORMS: dict[str, Callable[[Output, Collection[str]], _Form | NotCarried]] = {
    "pmf": _pmf,
    "median": _median,
    "mean": _mean,
    "sample": _samples,
    "quantile": _quantiles,
    "cdf": _cdf,
}


def _value_range(output: Output, levels: tuple[Decimal, ...] | None = None, samples: int | None = None) -> Range:
    """Return the range of a question by values: the hub's bounds are closed ends, others are open."""
    least, most = output.value.minimum, output.value.maximum
    lower = least if least is not None else (Decimal(0) if most is None else most) - WIDTH
    fine = least is not None and most is not None and max(abs(least), abs(most)) <= FINE_UPTO
    return Range(
        lower=lower,
        upper=most if most is not None else max(lower, Decimal(0)) + WIDTH,
        open_lower=least is None,
        open_upper=most is None,
        levels=levels,
        samples=samples,
        decimals=FINE_DECIMALS if fine else MEAN_DECIMALS if samples == 1 else DECIMALS,
    )
