"""Tests of forecasts that are given as points: what is recorded, what is refused, and that it is decided again."""

from itertools import chain
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching.sealed_state import apply_segment
from forecast_ledger.ledger.batching.writer_state import WriterState
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.deciding.distributions import cdf_of_points, read_points
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.commands import AnyCommand, Points, Range, SubmitForecast
from forecast_ledger.ledger.model.log import START
from forecast_ledger.ledger.segments.segment_columns import rebuild, to_columns
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import oracle
from tests.support.forging import audited, chained
from tests.support.given import (
    NOW,
    choices,
    day,
    forecast,
    given,
    numeric,
    opened,
    points,
    promised,
    quartiles,
    restatement,
    withdrawal,
)

DEPTH = numeric()
LOG_SCALE = numeric(lower=1, upper=100, zero_point=0, open_lower=True)
WHEN = opened(
    "when",
    kind="date",
    range=Range(lower="2026-01-01", upper="2026-01-05", bins=4, open_upper=True),
)


def made(stated: Points, question: str = "depth", **fields: Any) -> SubmitForecast:
    """A forecast that is given as points."""
    return forecast(question, points=stated, **fields)


REFUSED: list[tuple[str, str, AnyCommand, Points]] = [
    ("out_of_range", "points.levels", DEPTH, points(1, levels=(0,))),
    ("out_of_range", "points.levels", DEPTH, points(1, levels=("1",))),
    ("out_of_range", "points.levels", DEPTH, points(1, levels=("0.9999999996",))),
    ("out_of_range", "points.levels", DEPTH, points(levels=())),
    ("out_of_range", "points.levels", DEPTH, points(1, 2, levels=("0.5", "0.2"))),
    ("out_of_range", "points.levels", DEPTH, points(1, 2, levels=("0.5", "0.50"))),
    ("out_of_range", "points.levels", DEPTH, points(1, 2, levels=("0.5", "0.5000000004"))),
    ("out_of_range", "points.levels", DEPTH, points(1, levels=tuple(f"0.{each:04}" for each in range(1, 1_002)))),
    ("wrong_length", "points.quantiles", DEPTH, points(1, 2)),
    ("wrong_length", "points.quantiles", DEPTH, points()),
    ("decreasing", "points.quantiles", DEPTH, points(1, 3, 2)),
    ("open_end_needed", "points.quantiles", DEPTH, points("-0.1", 1, 2)),
    ("open_end_needed", "points.quantiles", DEPTH, points(1, 2, "4.000001")),
    ("open_end_needed", "points.quantiles", numeric(open_lower=True), points(1, 2, 5)),
    ("open_end_needed", "points.quantiles", numeric(open_upper=True), points(-1, 2, 3)),
    ("open_end_needed", "points.quantiles", LOG_SCALE, points(0, 2, 3)),
    ("open_end_needed", "points.quantiles", LOG_SCALE, points(-1, 2, 3)),
    ("open_end_needed", "points.quantiles", numeric(upper=3, zero_point=4, open_upper=True), points(1, 2, 4)),
]


@pytest.mark.parametrize(("code", "field", "question", "stated"), REFUSED)
def test_points_that_break_one_rule_are_refused_for_it(
    code: str, field: str, question: AnyCommand, stated: Points
) -> None:
    """The refusal has the code and the field, and the log does not change; a restatement refuses the same."""
    given(question).when(made(stated)).refuses(code, field)
    given(question).when(restatement(made(stated), question="depth")).refuses(code, field)


def test_every_refusal_the_docstrings_promise_is_tested_above_and_no_other() -> None:
    """The docstrings list exactly the refusals that can happen, in their order."""
    listed = [*promised(read_points), *promised(cdf_of_points)]
    assert [*dict.fromkeys(code for code, *_ in REFUSED)] == listed


@pytest.mark.parametrize(
    "question", [opened("depth"), choices("depth"), quartiles("depth"), numeric(bins=None, samples=3)]
)
def test_only_a_question_with_bins_takes_points(question: AnyCommand) -> None:
    """A question with levels takes `quantiles`, which are recorded as they are given."""
    given(question).when(made(points(1, 2, 3))).refuses("wrong_distribution", "question")
    given(DEPTH).when(made(points(1, 2, 3), cdf=(0, 0, 0, 0, 1))).refuses("wrong_distribution", "question")
    given().when(made(points(1, 2, 3))).refuses("unknown_question", "question")


def test_the_event_has_the_cdf_and_the_points_that_it_was_made_from() -> None:
    """Levels in 1e-9, quantiles as exact text: linear between (0, 0), (1, 0.25), (2, 0.5), (3.5, 0.75) and (4, 1)."""
    [event] = oracle_events(DEPTH, made(points(1, "2.00", 3.5)))
    third = round(10**10 * (0.5 + 0.25 / 1.5))
    assert event.cdf == (0, 2_500_000_000, 5_000_000_000, third, 10**10)
    assert event.points == events.StatedPoints(
        levels=(250_000_000, 500_000_000, 750_000_000), quantiles=("1", "2", "3.5"), method="linear"
    )


def test_points_of_a_date_question_are_dates() -> None:
    """A date, an instant or seconds since 1970: 3/4 by the end of the range."""
    stated = points("2026-01-02", "2026-01-04T00:00:00Z", levels=("0.25", "0.5"))
    [event] = oracle_events(WHEN, made(stated, "when"))
    assert event.cdf == (0, 2_500_000_000, 3_750_000_000, 5_000_000_000, 7_500_000_000)
    assert event.points is not None
    assert event.points.quantiles == ("2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z")
    [same] = oracle_events(WHEN, made(points(1_767_312_000, 1_767_484_800, levels=("0.25", "0.5")), "when"))
    assert same == event


def oracle_events(question: AnyCommand, *sent: AnyCommand) -> list[events.ForecastMade]:
    """The forecasts that are recorded, in a log that `verify` accepts."""
    recorded = oracle.history(question, *sent)
    audited(recorded)
    return [each.event for each in recorded if isinstance(each.event, events.ForecastMade)]


@pytest.mark.parametrize(
    "changed",
    [
        {"cdf": (0, 2_500_000_001, 5_000_000_000, 7_500_000_000, 10**10)},
        {"points": None},
        {"points": events.StatedPoints(levels=(25 * 10**7,), quantiles=("1",), method="linear")},
        {"points": events.StatedPoints(levels=(25 * 10**7,), quantiles=("1.0",), method="monotone_cubic")},
        {"points": events.StatedPoints(levels=(5 * 10**8,), quantiles=("one",), method="linear")},
    ],
    ids=["the cdf", "no points", "a point less", "another method", "no number"],
)
def test_a_row_whose_cdf_and_points_do_not_agree_is_a_fault(changed: dict[str, Any]) -> None:
    """`verify` makes the cdf again, and compares the digest of the command."""
    recorded = oracle.history(DEPTH, made(points(1, 2, 3)))
    assert audited(recorded).lossy_commands == 0
    forged = structs.replace(recorded[-1], event=structs.replace(recorded[-1].event, **changed))
    with pytest.raises(Corrupt) as stopped:
        audited([*chained([*recorded[:-1], forged])])
    assert stopped.value.position == 2


def test_the_same_points_in_other_digits_are_the_same_command() -> None:
    """A retry is harmless; another quantile or method is another command."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(DEPTH, "q")
        ledger.handle(made(points(1, 2, 3)), "f")
        assert ledger.handle(made(points("1.0", 2.0, "3e0", levels=(0.25, "0.50", "7.5e-1"))), "f").duplicate
        for other in (points(1, 2, "3.1"), points(1, 2, 3, method="monotone_cubic")):
            with pytest.raises(Refused) as refused:
                ledger.handle(made(other), "f")
            assert refused.value.code == "command_id_reused"


def test_the_rows_come_back_from_a_segment_and_a_writer_holds_the_same() -> None:
    """In whatever order forecasts with and without points replace each other, the last one stands."""
    sent: list[AnyCommand] = [
        DEPTH,
        made(points(1, 2, 3), at=day(11)),
        forecast("depth", cdf=(0, 0, 0, 0, 1), at=day(12)),
        made(points(1, 2, 3), at=day(13)),
        forecast("depth", "bob", cdf=(0, 0, 0, 0, 1), at=day(11)),
        made(points(1, 2, 3), participant="bob", at=day(12), until=day(14)),
        made(points(1, 2, 3), participant="cy", at=day(11)),
        withdrawal("depth", "cy", at=day(12)),
        restatement(made(points(1, 1, 3), at=day(11)), question="depth", participant="bob"),
        forecast("depth", "bob", cdf=(0, 0, 0, 0, 1), at=day(14)),
    ]
    recorded = oracle.history(*sent)
    for end in range(1, len(recorded) + 1):
        part = recorded[:end]
        rows = [log.seal(each)[0] for each in part]
        columns = to_columns(rows, part)
        assert [*chain.from_iterable(rebuild(columns, START))] == rows
        read, sealed = WriterState(), WriterState()
        read.apply(part)
        apply_segment(sealed, columns, part[-1])
        assert sealed.state.peek_standing("depth") == read.state.peek_standing("depth")


def test_points_are_quick_to_decide_at_their_limits() -> None:
    """1,000 points with 400 decimals on 10,000 bins of a log scale: a second or two, not minutes."""
    wide = numeric(lower="1" + "." + "0" * 390 + "1", upper=100, zero_point=0, bins=10_000)
    stated = points(
        *(f"{2 + each // 20}.{each:04}{'3' * 396}" for each in range(1_000)),
        levels=tuple(f"0.{each:04}" for each in range(1, 1_001)),
        method="monotone_cubic",
    )
    [event] = oracle_events(wide, made(stated))
    assert len(event.cdf) == 10_001
