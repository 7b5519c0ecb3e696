"""Tests of questions, forecasts and resolutions: the recorded events, the refusals and their precedence."""

from datetime import UTC, datetime
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from msgspec import json

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding import questions
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand, Range
from tests.support.given import (
    AFTER,
    BEFORE,
    CLOSES,
    COLOURS,
    OPENS,
    REVEALS,
    annulment,
    bet,
    cancellation,
    choices,
    closing,
    day,
    decision,
    ensemble,
    forecast,
    given,
    micros,
    numeric,
    opened,
    quartiles,
    ran,
    resolution,
    revocation,
    trading_floor,
    withdrawal,
)
from tests.support.waiting import quick

BILLION = 10**9
CUMULATIVE = 10**10
BACKWARDS = {"opens_at": day(20), "closes_at": day(10)}
RAIN, COLOUR, DEPTH = opened(), choices(), numeric()
OPEN_DEPTH = numeric(open_lower=True, open_upper=True)
FLAT = ("0", "0.25", "0.5", "0.75", "1")  # the uniform cdf over four bins
DEPTHS = ensemble()
FLOW, OPEN_FLOW = quartiles(), quartiles(open_lower=True, open_upper=True)
FLOWED = resolution("flow", value="1.5")
BOUGHT = [*trading_floor(), decision(bet())]  # on March 2nd
DRY = resolution(outcome="no")
WET = resolution(outcome="yes")


def probabilities(*chances: Any) -> dict[str, Any]:
    """Return probabilities of red, green and blue."""
    return {"probabilities": dict(zip(COLOURS, chances, strict=False))}


def paying(question: str = "rain", *, outcome: Any = None, value: Any = None, **payouts: Any) -> AnyCommand:
    """Return a resolution with the payout of a share of each outcome."""
    return resolution(question, outcome=outcome, value=value, payouts=payouts)


def dated(question: str = "when", **span: Any) -> AnyCommand:
    """Return a date question over the first four days of May 2026 in four bins."""
    asked: dict[str, Any] = {"lower": "2026-05-01", "upper": "2026-05-05", "bins": 4}
    return opened(question, kind="date", range=Range(**(asked | span)))


def counted(question: str = "count", **span: Any) -> AnyCommand:
    """Return a discrete question with the values 0, 1, 2 and 3."""
    asked: dict[str, Any] = {"lower": "-0.5", "upper": "3.5", "bins": 4}
    return opened(question, kind="discrete", range=Range(**(asked | span)))


Promise = tuple[str, str, str, list[AnyCommand], AnyCommand]


def of_samples(code: str, question: AnyCommand, row: tuple[Any, ...]) -> Promise:
    """Return the case of a forecast that is refused for its samples alone."""
    return "submit_forecast", code, "samples", [question], forecast("depths", samples=row)


def of_quantiles(code: str, question: AnyCommand, row: tuple[Any, ...]) -> Promise:
    """Return the case of a forecast that is refused for its quantiles alone."""
    return "submit_forecast", code, "quantiles", [question], forecast("flow", quantiles=row)


# One row for each refusal in a docstring: the decider's function, the code and field, the history, the command.
REFUSED: list[Promise] = [
    ("open_question", "out_of_range", "range.upper", [], numeric(upper="0")),
    ("open_question", "out_of_range", "range.upper", [], numeric(upper="-1")),
    ("open_question", "out_of_range", "range.bins", [], numeric(bins=0)),
    ("open_question", "out_of_range", "range.bins", [], numeric(bins=-1)),
    ("open_question", "out_of_range", "range.bins", [], numeric(bins=10_001)),
    ("open_question", "out_of_range", "range.zero_point", [], numeric(zero_point=0)),
    ("open_question", "out_of_range", "range.zero_point", [], numeric(zero_point=2)),
    ("open_question", "out_of_range", "range.zero_point", [], numeric(zero_point=4)),
    ("open_question", "out_of_range", "range.bins", [], numeric(bins=0, open_upper=True)),
    ("open_question", "out_of_range", "range.bins", [], quartiles(bins=200)),
    ("open_question", "out_of_range", "range.bins", [], quartiles(bins=0)),
    ("open_question", "out_of_range", "range.bins", [], ensemble(bins=3)),
    ("open_question", "out_of_range", "range.samples", [], ensemble(levels=("0.5",))),
    *[("open_question", "out_of_range", "range.samples", [], ensemble(samples=many)) for many in (0, -1, 10_001)],
    ("open_question", "out_of_range", "range.decimals", [], ensemble(decimals=13)),
    ("open_question", "wrong_fields_for_kind", "range.samples", [], opened("depths", kind="date", range=DEPTHS.range)),
    ("open_question", "out_of_range", "range.bins", [], numeric(levels=("0.5",))),
    ("open_question", "out_of_range", "range.upper", [], quartiles(upper=0)),
    ("open_question", "out_of_range", "range.zero_point", [], quartiles(zero_point=4)),
    ("open_question", "out_of_range", "range.lower", [], quartiles(lower="-1e31")),
    ("open_question", "out_of_range", "range.decimals", [], numeric(decimals=6)),
    ("open_question", "out_of_range", "range.decimals", [], numeric(bins=None, decimals=0)),
    *[
        ("open_question", "out_of_range", "range.levels", [], quartiles(levels=levels))
        for levels in [
            *[(), ("0",), ("1",), ("-0.5",), ("1.5",), ("0.5", "0.5"), ("0.5", "0.25"), ("0.25", "0.5", "0.4")],
            *[("0.0000000004",), ("0.9999999996",), ("0.5", "0.5000000004"), ("1e31",)],
            tuple(f"0.{number:06}" for number in range(1, 10_002)),
        ]
    ],
    *[("open_question", "out_of_range", "range.decimals", [], quartiles(decimals=many)) for many in (-1, 13, 2**70)],
    ("open_question", "out_of_range", "range.decimals", [], quartiles(decimals=12, upper="10.000000000001")),
    ("open_question", "out_of_range", "range.decimals", [], quartiles(decimals=12, upper="10.0000000000000001")),
    ("open_question", "out_of_range", "range.decimals", [], quartiles(decimals=12, lower="-10.1")),
    ("open_question", "out_of_range", "range.decimals", [], quartiles(decimals=0, upper="10000000000001")),
    ("open_question", "out_of_range", "tags", [], opened(tags=("wet",) * 101)),
    ("open_question", "duplicate_question", "question", [RAIN], opened()),
    ("open_question", "duplicate_question", "question", [RAIN, annulment()], choices("rain")),
    ("open_question", "out_of_range", "range.upper", [], dated(upper="2026-05-01")),
    ("open_question", "out_of_range", "range.upper", [], dated(upper=10**12)),
    ("open_question", "out_of_range", "range.zero_point", [], dated(zero_point="2026-05-03")),
    ("open_question", "out_of_range", "range.bins", [], counted(lower=0, upper=1, bins=3)),
    ("open_question", "wrong_fields_for_kind", "range.levels", [], dated(bins=None, levels=("0.5",), decimals=0)),
    ("open_question", "wrong_fields_for_kind", "range.levels", [], counted(bins=None, levels=("0.5",))),
    ("open_question", "wrong_fields_for_kind", "range.zero_point", [], counted(zero_point=-1)),
    ("open_question", "wrong_fields_for_kind", "range", [], opened(kind="date")),
    ("open_question", "wrong_fields_for_kind", "outcomes", [], opened(kind="discrete", outcomes=("a", "b"))),
    ("open_question", "duplicate_outcome", "outcomes", [], choices(outcomes=("red", "green", "red"))),
    ("open_question", "duplicate_outcome", "outcomes", [], choices(outcomes=("red",))),
    ("open_question", "duplicate_outcome", "outcomes", [], choices(outcomes=())),
    ("open_question", "duplicate_outcome", "outcomes", [], opened(kind="multiple_choice")),
    ("open_question", "wrong_fields_for_kind", "outcomes", [], opened(outcomes=("yes", "no"))),
    ("open_question", "wrong_fields_for_kind", "outcomes", [], opened(outcomes=())),
    ("open_question", "wrong_fields_for_kind", "ordered", [], opened(ordered=True)),
    ("open_question", "wrong_fields_for_kind", "ordered", [], opened(kind="numeric", range=DEPTH.range, ordered=False)),
    ("open_question", "wrong_fields_for_kind", "range", [], opened(range=DEPTH.range)),
    ("open_question", "wrong_fields_for_kind", "range", [], choices(range=DEPTH.range)),
    ("open_question", "wrong_fields_for_kind", "range", [], opened(kind="numeric")),
    ("open_question", "wrong_fields_for_kind", "outcomes", [], opened(kind="numeric", outcomes=("a", "b"))),
    ("open_question", "wrong_order_of_instants", "closes_at", [], opened(closes_at=OPENS)),
    ("open_question", "wrong_order_of_instants", "closes_at", [], opened(closes_at=BEFORE)),
    ("open_question", "wrong_order_of_instants", "closes_at", [], opened(closes_at="2126-03-11T00:00:00.000001Z")),
    ("open_question", "wrong_order_of_instants", "reveals_at", [], opened(reveals_at=OPENS)),
    ("open_question", "wrong_order_of_instants", "reveals_at", [], opened(reveals_at=BEFORE)),
    ("open_question", "wrong_order_of_instants", "reveals_at", [], opened(reveals_at=AFTER)),
    ("submit_forecast", "out_of_range", "probability", [RAIN], forecast(probability="1.000000001")),
    ("submit_forecast", "out_of_range", "probability", [RAIN], forecast(probability="-0.000000001")),
    ("submit_forecast", "out_of_range", "probabilities.green", [COLOUR], forecast("colour", **probabilities(0, 2, -1))),
    ("submit_forecast", "out_of_range", "cdf", [DEPTH], forecast("depth", cdf=(*FLAT[:4], "1.0000000001"))),
    ("submit_forecast", "out_of_range", "quantiles", [FLOW], forecast("flow", quantiles=(1, 2, "1e31"))),
    ("submit_forecast", "out_of_range", "quantiles", [FLOW], forecast("flow", quantiles=(Decimal("-1e999999"), 2, 3))),
    (
        "submit_forecast",
        "out_of_range",
        "quantiles",
        [FLOW],
        forecast("flow", quantiles=(Decimal("0." + "3" * 1_001), 2, 3)),
    ),
    ("submit_forecast", "unknown_question", "question", [], forecast()),
    ("submit_forecast", "unknown_question", "question", [RAIN], forecast("Rain")),
    ("submit_forecast", "wrong_distribution", "question", [RAIN], forecast(probability=None)),
    ("submit_forecast", "wrong_distribution", "question", [RAIN], forecast(probabilities={"yes": 1, "no": 0})),
    ("submit_forecast", "wrong_distribution", "question", [RAIN], forecast(cdf=FLAT)),
    ("submit_forecast", "wrong_distribution", "question", [RAIN], forecast(probability=1, cdf=FLAT)),
    ("submit_forecast", "wrong_distribution", "question", [RAIN], forecast(probability=1, probabilities={})),
    ("submit_forecast", "wrong_distribution", "question", [COLOUR], forecast("colour")),
    ("submit_forecast", "wrong_distribution", "question", [COLOUR], forecast("colour", cdf=())),
    ("submit_forecast", "wrong_distribution", "question", [DEPTH], forecast("depth")),
    ("submit_forecast", "wrong_distribution", "question", [DEPTH], forecast("depth", probabilities={"1": 1})),
    ("submit_forecast", "wrong_distribution", "question", [DEPTH], forecast("depth", quantiles=(1, 2, 3))),
    ("submit_forecast", "wrong_distribution", "question", [RAIN], forecast(quantiles=(1,))),
    ("submit_forecast", "wrong_distribution", "question", [COLOUR], forecast("colour", quantiles=())),
    ("submit_forecast", "wrong_distribution", "question", [FLOW], forecast("flow")),
    ("submit_forecast", "wrong_distribution", "question", [FLOW], forecast("flow", cdf=FLAT)),
    ("submit_forecast", "wrong_distribution", "question", [FLOW], forecast("flow", cdf=(0, 1), quantiles=(1, 2, 3))),
    ("submit_forecast", "wrong_distribution", "question", [FLOW], forecast("flow", quantiles=None)),
    ("submit_forecast", "unknown_outcome", "probabilities", [COLOUR], forecast("colour", probabilities={"pink": 1})),
    ("submit_forecast", "wrong_length", "probabilities", [COLOUR], forecast("colour", **probabilities("0.5", "0.5"))),
    ("submit_forecast", "wrong_length", "probabilities", [COLOUR], forecast("colour", probabilities={})),
    ("submit_forecast", "wrong_length", "cdf", [DEPTH], forecast("depth", cdf=FLAT[:4])),
    ("submit_forecast", "wrong_length", "cdf", [DEPTH], forecast("depth", cdf=(*FLAT, "1"))),
    ("submit_forecast", "wrong_length", "cdf", [DEPTH], forecast("depth", cdf=())),
    *[of_quantiles("wrong_length", FLOW, row) for row in [(), (1,), (1, 2), (1, 2, 3, 4)]],
    of_quantiles("decreasing", FLOW, (2, 1, 3)),
    *[of_samples("wrong_length", DEPTHS, row) for row in [(), (1,), (1, 2), (1, 2, 3, 4)]],
    of_samples("out_of_range", DEPTHS, (1, 2, "1e31")),
    of_samples("open_end_needed", DEPTHS, (3, 2, "-0.001")),
    of_samples("open_end_needed", DEPTHS, ("4.0000000001", 1, 2)),
    of_samples("open_end_needed", ensemble(open_upper=True), ("10000000000.001", 1, 2)),
    ("submit_forecast", "wrong_distribution", "question", [DEPTHS], forecast("depths", quantiles=(1, 2, 3))),
    ("submit_forecast", "wrong_distribution", "question", [FLOW], forecast("flow", samples=(1, 2, 3))),
    (
        "submit_forecast",
        "wrong_distribution",
        "question",
        [DEPTHS],
        forecast("depths", samples=(1, 2, 3), quantiles=(1, 2, 3)),
    ),
    ("resolve_question", "wrong_resolution", "outcome", [DEPTHS], resolution("depths", outcome="above_upper_bound")),
    of_quantiles("decreasing", FLOW, (1, 2, "1.999")),
    of_quantiles("decreasing", OPEN_FLOW, (-1, -2, 3)),
    of_quantiles("open_end_needed", FLOW, ("-0.001", 1, 2)),
    of_quantiles("open_end_needed", FLOW, ("-1e-30", 1, 2)),  # rounds to 0, but is beyond the end
    of_quantiles("open_end_needed", FLOW, (1, 2, "4.001")),
    of_quantiles("open_end_needed", FLOW, (1, 2, "4.0000000001")),
    of_quantiles("open_end_needed", FLOW, (5, 5, 5)),
    of_quantiles("open_end_needed", quartiles(open_upper=True), (-1, 1, 2)),
    of_quantiles("open_end_needed", quartiles(open_lower=True), (1, 2, 5)),
    of_quantiles("open_end_needed", OPEN_FLOW, (1, 2, "10000000000.001")),  # at most 1e13 thousandths
    of_quantiles("open_end_needed", OPEN_FLOW, ("-10000000000.0001", 1, 2)),
    of_quantiles("open_end_needed", quartiles(decimals=12, open_upper=True), (1, 2, 11)),
    (
        "submit_forecast",
        "not_summing_to_one",
        "probabilities",
        [COLOUR],
        forecast("colour", **probabilities("0.5", "0.3", "0.200001001")),
    ),
    (
        "submit_forecast",
        "not_summing_to_one",
        "probabilities",
        [COLOUR],
        forecast("colour", **probabilities("0.5", "0.3", "0.199998999")),
    ),
    ("submit_forecast", "decreasing", "cdf", [DEPTH], forecast("depth", cdf=("0", "0.5", "0.4999999999", "1", "1"))),
    ("submit_forecast", "open_end_needed", "cdf", [DEPTH], forecast("depth", cdf=("0.0000000001", *FLAT[1:]))),
    ("submit_forecast", "open_end_needed", "cdf", [DEPTH], forecast("depth", cdf=(*FLAT[:4], "0.9999999999"))),
    (
        "submit_forecast",
        "open_end_needed",
        "cdf",
        [numeric(open_lower=True)],
        forecast("depth", cdf=("0.1", *FLAT[1:4], "0.9")),
    ),
    (
        "submit_forecast",
        "open_end_needed",
        "cdf",
        [numeric(open_upper=True)],
        forecast("depth", cdf=("0.1", *FLAT[1:])),
    ),
    ("submit_forecast", "question_resolved", "at", [RAIN, resolution(at=day(11))], forecast(at=day(11))),
    ("submit_forecast", "question_resolved", "at", [RAIN, annulment(at=day(11))], forecast(at=day(11))),
    ("submit_forecast", "question_closed", "at", [RAIN], forecast(at=CLOSES)),
    ("submit_forecast", "question_closed", "at", [RAIN, closing(at=day(15))], forecast(at=day(15))),
    ("submit_forecast", "wrong_order_of_instants", "until", [RAIN], forecast(at=day(12), until=day(12))),
    ("submit_forecast", "wrong_order_of_instants", "until", [RAIN], forecast(at=day(12), until=day(11))),
    ("submit_forecast", "out_of_order", "at", [RAIN, forecast(at=day(13))], forecast(at="2026-03-12T23:59:59.999999Z")),
    (
        "submit_forecast",
        "out_of_order",
        "at",
        [RAIN, forecast(at=day(11)), withdrawal(at=day(13))],
        forecast(at=day(12)),
    ),
    ("withdraw_forecast", "unknown_question", "question", [], withdrawal()),
    ("withdraw_forecast", "question_resolved", "at", [RAIN, forecast(), resolution(at=day(12))], withdrawal()),
    ("withdraw_forecast", "question_closed", "at", [RAIN, forecast()], withdrawal(at=CLOSES)),
    ("withdraw_forecast", "question_closed", "at", [RAIN, forecast(), closing(at=day(12))], withdrawal(at=day(12))),
    ("withdraw_forecast", "out_of_order", "at", [RAIN, forecast(at=day(14))], withdrawal(at=day(13))),
    ("withdraw_forecast", "nothing_standing", "participant", [RAIN], withdrawal()),
    ("withdraw_forecast", "nothing_standing", "participant", [RAIN, forecast(participant="bob")], withdrawal()),
    ("withdraw_forecast", "nothing_standing", "participant", [RAIN, forecast(), withdrawal()], withdrawal()),
    ("withdraw_forecast", "nothing_standing", "participant", [RAIN, forecast(until=day(13))], withdrawal()),
    ("withdraw_forecast", "nothing_standing", "participant", [RAIN, forecast(until=day(12))], withdrawal()),
    (
        "withdraw_forecast",
        "nothing_standing",
        "participant",
        [RAIN, COLOUR, forecast("colour", **probabilities(0, 0, 1))],
        withdrawal(),
    ),
    ("close_question", "unknown_question", "question", [], closing()),
    ("close_question", "question_resolved", "at", [RAIN, resolution(at=day(11))], closing()),
    ("close_question", "question_closed", "at", [RAIN], closing(at=CLOSES)),
    ("close_question", "question_closed", "at", [RAIN, closing()], closing()),
    ("close_question", "before_opening", "at", [RAIN], closing(at=OPENS)),
    ("close_question", "before_opening", "at", [RAIN], closing(at=BEFORE)),
    ("close_question", "out_of_order", "at", BOUGHT, closing(at=day(2))),
    ("close_question", "out_of_order", "at", BOUGHT, closing(at=day(1, 12))),
    ("resolve_question", "out_of_range", "value", [OPEN_DEPTH], resolution("depth", value="1e31")),
    ("resolve_question", "out_of_range", "value", [OPEN_DEPTH], resolution("depth", value=Decimal("-1e31"))),
    ("resolve_question", "unknown_question", "question", [], resolution()),
    ("resolve_question", "wrong_resolution", "question", [RAIN], resolution(value=1)),
    ("resolve_question", "wrong_resolution", "question", [RAIN], resolution(outcome="yes", value=1)),
    ("resolve_question", "wrong_resolution", "question", [RAIN], resolution(outcome=None)),
    ("resolve_question", "wrong_resolution", "question", [DEPTH], resolution("depth", outcome="1")),
    ("resolve_question", "wrong_resolution", "question", [DEPTH], resolution("depth", outcome=None)),
    ("resolve_question", "unknown_outcome", "outcome", [RAIN], resolution(outcome="Yes")),
    ("resolve_question", "unknown_outcome", "outcome", [RAIN], resolution(outcome="")),
    ("resolve_question", "unknown_outcome", "outcome", [COLOUR], resolution("colour", outcome="yes")),
    ("resolve_question", "open_end_needed", "value", [DEPTH], resolution("depth", value="-0.000000001")),
    ("resolve_question", "open_end_needed", "value", [DEPTH], resolution("depth", value="4.000000001")),
    ("resolve_question", "open_end_needed", "value", [numeric(open_upper=True)], resolution("depth", value=-1)),
    ("resolve_question", "open_end_needed", "value", [numeric(open_lower=True)], resolution("depth", value=5)),
    ("resolve_question", "open_end_needed", "value", [FLOW], resolution("flow", value="-0.0000000001")),
    ("resolve_question", "open_end_needed", "value", [FLOW], resolution("flow", value="4.0000000001")),
    ("resolve_question", "open_end_needed", "value", [OPEN_FLOW], resolution("flow", value="10000000000.0000001")),
    ("resolve_question", "open_end_needed", "value", [OPEN_FLOW], resolution("flow", value="-1e30")),
    ("resolve_question", "wrong_resolution", "question", [FLOW], resolution("flow", outcome="1")),
    *[
        ("resolve_question", "unknown_outcome", "value", [counted()], resolution("count", value=value))
        for value in ("0.5", "2.9999999999999", "-0.5", "3.5")
    ],
    ("resolve_question", "open_end_needed", "value", [counted()], resolution("count", value=4)),
    ("resolve_question", "open_end_needed", "value", [dated()], resolution("when", value="2026-04-30T23:59:59Z")),
    ("resolve_question", "open_end_needed", "outcome", [DEPTH], resolution("depth", outcome="below_lower_bound")),
    ("resolve_question", "open_end_needed", "outcome", [dated()], resolution("when", outcome="above_upper_bound")),
    ("resolve_question", "wrong_resolution", "outcome", [OPEN_FLOW], resolution("flow", outcome="above_upper_bound")),
    (
        "resolve_question",
        "wrong_resolution",
        "question",
        [OPEN_DEPTH],
        resolution("depth", outcome="above_upper_bound", value=5),
    ),
    ("resolve_question", "unknown_outcome", "outcome", [RAIN], resolution(outcome="above_upper_bound")),
    ("resolve_question", "out_of_range", "value", [dated()], resolution("when", value="1e12")),
    ("resolve_question", "question_resolved", "question", [RAIN, DRY], WET),
    ("resolve_question", "question_resolved", "question", [RAIN, WET], WET),
    ("resolve_question", "question_resolved", "question", [RAIN, annulment()], WET),
    ("resolve_question", "before_opening", "known_at", [RAIN], resolution(at=BEFORE)),
    ("resolve_question", "before_opening", "known_at", [RAIN], resolution(at="2026-03-09T23:59:59.999999Z")),
    ("resolve_question", "before_opening", "known_at", [RAIN], resolution(known_at=BEFORE)),
    ("resolve_question", "wrong_order_of_instants", "known_at", [RAIN], resolution(at=day(12), known_at=day(13))),
    ("resolve_question", "out_of_range", "payouts.yes", [RAIN], paying(yes="1.000000001", no=0)),
    ("resolve_question", "out_of_range", "payouts.no", [RAIN], paying(yes="0.5", no="-0.5")),
    ("resolve_question", "out_of_range", "payouts.yes", [RAIN], paying(yes="4/3", no=0)),
    ("resolve_question", "out_of_range", "payouts", [RAIN], paying(yes="1/2000000001", no="2000000000/2000000001")),
    ("resolve_question", "wrong_resolution", "question", [RAIN], paying(outcome="yes", yes=1, no=0)),
    ("resolve_question", "wrong_resolution", "question", [RAIN], paying(value=1, yes=1, no=0)),
    ("resolve_question", "wrong_resolution", "question", [DEPTH], paying("depth", yes=1, no=0)),
    ("resolve_question", "wrong_resolution", "question", [DEPTH], paying("depth", value=1, yes=1)),
    ("resolve_question", "unknown_outcome", "payouts", [RAIN], paying(yes="0.5", maybe="0.5")),
    ("resolve_question", "unknown_outcome", "payouts", [COLOUR], paying("colour", yes="0.5", no="0.5")),
    ("resolve_question", "wrong_length", "payouts", [RAIN], paying(yes=1)),
    ("resolve_question", "wrong_length", "payouts", [RAIN], paying()),
    ("resolve_question", "wrong_length", "payouts", [COLOUR], paying("colour", red="0.5", blue="0.5")),
    ("resolve_question", "not_summing_to_one", "payouts", [RAIN], paying(yes="0.5", no="0.499998")),
    ("resolve_question", "not_summing_to_one", "payouts", [RAIN], paying(yes=1, no=1)),
    ("resolve_question", "not_summing_to_one", "payouts", [RAIN], paying(yes="1/3", no="1/3")),
    ("resolve_question", "question_resolved", "question", [RAIN, WET], paying(yes="0.5", no="0.5")),
    ("resolve_question", "question_resolved", "question", [RAIN, paying(yes="0.5", no="0.5")], WET),
    ("annul_question", "unknown_question", "question", [], cancellation()),
    ("annul_question", "question_resolved", "question", [RAIN, annulment()], cancellation()),
    ("annul_question", "question_resolved", "question", [RAIN, cancellation()], annulment()),
    ("annul_question", "unknown_question", "question", [], annulment()),
    ("annul_question", "question_resolved", "question", [RAIN, annulment()], annulment()),
    ("revoke_resolution", "unknown_question", "question", [], revocation()),
    ("revoke_resolution", "not_resolved", "question", [RAIN], revocation()),
    ("revoke_resolution", "not_resolved", "question", [RAIN, WET, revocation()], revocation()),
    ("revoke_resolution", "wrong_order_of_instants", "at", [RAIN, WET, annulment()], revocation(at=day(19))),
]


FUNCTIONS = sorted({function for function, *_ in REFUSED})


# Two faults at once: history, command, and the two codes, the one to report first.
ORDER: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("out_of_range", "duplicate_question", [DEPTH], numeric(bins=0)),
    ("out_of_range", "duplicate_question", [RAIN], opened(tags=("wet",) * 101)),
    ("duplicate_question", "duplicate_outcome", [COLOUR], choices(outcomes=("a", "a"))),
    ("duplicate_outcome", "wrong_fields_for_kind", [], choices(outcomes=("a", "a"), range=DEPTH.range)),
    ("wrong_fields_for_kind", "wrong_order_of_instants", [], opened(outcomes=("a", "b"), **BACKWARDS)),
    ("duplicate_outcome", "wrong_order_of_instants", [], choices(outcomes=("a",), **BACKWARDS)),
    ("duplicate_question", "wrong_order_of_instants", [RAIN], opened(**BACKWARDS)),
    ("out_of_range", "wrong_fields_for_kind", [], opened(range=numeric(bins=0).range)),
    ("out_of_range", "duplicate_question", [FLOW], quartiles(levels=())),
    ("out_of_range", "duplicate_question", [FLOW], quartiles(decimals=13)),
    ("out_of_range", "wrong_fields_for_kind", [], opened(range=quartiles(levels=("0.5", "0.5")).range)),
    ("out_of_range", "unknown_question", [], forecast(probability=2)),
    ("out_of_range", "unknown_question", [], forecast("flow", quantiles=("1e31",))),
    ("out_of_range", "wrong_distribution", [RAIN], forecast(quantiles=("1e31",))),
    ("wrong_distribution", "wrong_length", [FLOW], forecast("flow", probability=1, quantiles=(1,))),
    ("wrong_distribution", "question_resolved", [FLOW, FLOWED], forecast("flow", cdf=FLAT)),
    ("out_of_range", "wrong_length", [FLOW], forecast("flow", quantiles=("1e31",))),
    ("wrong_length", "decreasing", [FLOW], forecast("flow", quantiles=(2, 1))),
    ("wrong_length", "open_end_needed", [FLOW], forecast("flow", quantiles=(-1, 9))),
    ("decreasing", "open_end_needed", [FLOW], forecast("flow", quantiles=(-1, -2, 9))),
    ("decreasing", "question_closed", [FLOW], forecast("flow", at=CLOSES, quantiles=(3, 2, 1))),
    ("open_end_needed", "question_closed", [FLOW], forecast("flow", at=CLOSES, quantiles=(1, 2, 9))),
    ("open_end_needed", "question_resolved", [OPEN_FLOW, FLOWED], forecast("flow", quantiles=(1, 2, "1e20"))),
    ("open_end_needed", "question_resolved", [OPEN_FLOW, FLOWED], resolution("flow", value="1e20")),
    ("open_end_needed", "before_opening", [OPEN_FLOW], resolution("flow", value="1e20", at=BEFORE)),
    (
        "open_end_needed",
        "wrong_order_of_instants",
        [OPEN_FLOW],
        resolution("flow", value="1e20", at=day(12), known_at=day(13)),
    ),
    ("wrong_resolution", "open_end_needed", [OPEN_FLOW], resolution("flow", value="1e20", outcome="1")),
    ("out_of_range", "open_end_needed", [OPEN_FLOW], resolution("flow", value="1e31")),
    ("unknown_question", "wrong_distribution", [], forecast(probability=None)),
    ("out_of_range", "wrong_distribution", [COLOUR], forecast("colour", probability=2)),
    ("wrong_distribution", "wrong_length", [DEPTH], forecast("depth", probability=1, cdf=FLAT[1:])),
    ("wrong_distribution", "unknown_outcome", [COLOUR], forecast("colour", probability=1, probabilities={"pink": 1})),
    ("wrong_distribution", "question_resolved", [RAIN, WET], forecast(cdf=FLAT)),
    ("unknown_outcome", "wrong_length", [COLOUR], forecast("colour", probabilities={"pink": 1})),
    ("unknown_outcome", "not_summing_to_one", [COLOUR], forecast("colour", probabilities={"pink": 0.5})),
    ("wrong_length", "not_summing_to_one", [COLOUR], forecast("colour", **probabilities("0.5", "0.1"))),
    ("wrong_length", "decreasing", [DEPTH], forecast("depth", cdf=("0", "0.5", "0.4"))),
    ("decreasing", "open_end_needed", [DEPTH], forecast("depth", cdf=("0.5", "0.4", "0.4", "0.4", "0.4"))),
    ("not_summing_to_one", "question_closed", [COLOUR], forecast("colour", at=CLOSES, **probabilities(1, 1, 1))),
    ("open_end_needed", "question_closed", [DEPTH], forecast("depth", at=CLOSES, cdf=("0.5",) * 5)),
    (
        "open_end_needed",
        "question_resolved",
        [DEPTH, resolution("depth", value=1)],
        forecast("depth", cdf=("0.5",) * 5),
    ),
    ("question_resolved", "question_closed", [RAIN, WET], forecast(at=CLOSES)),
    ("question_resolved", "out_of_order", [RAIN, forecast(at=day(13)), WET], forecast(at=day(12))),
    ("question_closed", "out_of_order", [RAIN, forecast(at=day(14)), closing(at=day(12))], forecast(at=day(13))),
    ("question_closed", "wrong_order_of_instants", [RAIN], forecast(at=CLOSES, until=OPENS)),
    ("wrong_order_of_instants", "out_of_order", [RAIN, forecast(at=day(14))], forecast(at=day(13), until=OPENS)),
    ("question_resolved", "question_closed", [RAIN, forecast(), WET], withdrawal(at=CLOSES)),
    ("question_resolved", "nothing_standing", [RAIN, WET], withdrawal()),
    ("question_closed", "nothing_standing", [RAIN], withdrawal(at=CLOSES)),
    ("question_closed", "out_of_order", [RAIN, forecast(at=day(14)), closing(at=day(12))], withdrawal(at=day(13))),
    ("out_of_order", "nothing_standing", [RAIN, forecast(at=day(13)), withdrawal(at=day(13))], withdrawal(at=day(12))),
    ("question_resolved", "question_closed", [RAIN, WET], closing(at=CLOSES)),
    ("question_resolved", "before_opening", [RAIN, WET], closing(at=BEFORE)),
    ("before_opening", "out_of_order", BOUGHT, closing(at=day(1))),
    ("out_of_range", "unknown_question", [], resolution("depth", value="1e31")),
    ("unknown_question", "wrong_resolution", [], resolution(outcome=None)),
    ("wrong_resolution", "unknown_outcome", [RAIN], resolution(outcome="maybe", value=1)),
    ("wrong_resolution", "question_resolved", [RAIN, WET], resolution(value=1)),
    ("unknown_outcome", "question_resolved", [RAIN, WET], resolution(outcome="maybe")),
    ("out_of_range", "unknown_question", [], paying(yes=2)),
    ("out_of_range", "wrong_resolution", [DEPTH], paying("depth", yes=2)),
    ("wrong_resolution", "unknown_outcome", [RAIN], paying(outcome="maybe", sun=1)),
    ("unknown_outcome", "wrong_length", [RAIN], paying(sun=1)),
    ("wrong_length", "not_summing_to_one", [RAIN], paying(yes="0.5")),
    ("wrong_length", "question_resolved", [RAIN, WET], paying(yes="0.5")),
    ("not_summing_to_one", "question_resolved", [RAIN, WET], paying(yes=1, no=1)),
    ("not_summing_to_one", "before_opening", [RAIN], resolution(at=BEFORE, payouts={"yes": 1, "no": 1})),
    ("unknown_outcome", "before_opening", [RAIN], resolution(outcome="maybe", at=BEFORE)),
    ("open_end_needed", "question_resolved", [DEPTH, resolution("depth", value=1)], resolution("depth", value=5)),
    ("question_resolved", "before_opening", [RAIN, WET], resolution(at=BEFORE)),
    ("before_opening", "wrong_order_of_instants", [RAIN], resolution(at=day(4), known_at=day(5))),
    ("before_opening", "wrong_order_of_instants", [RAIN], resolution(at=day(4), known_at=day(12))),
]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"probability": None}, "no forecast was given"),
        ({"probability": 1, "cdf": FLAT}, "given are probability, cdf; only one may be"),
        ({"probability": None, "cdf": FLAT}, ""),  # of another kind, as the meaning of the code says
    ],
)
def test_a_forecast_that_is_missing_is_not_called_one_of_another_kind(fields: dict[str, Any], says: str) -> None:
    """The participant has to give one, and not to change it."""
    outcome = given(RAIN).when(forecast(**fields)).outcome
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.detail) == ("wrong_distribution", says)


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (resolution("rain", outcome="Yes"), "unknown_outcome", "it has: no, yes"),
        (paying("colour", Red=1, green=0, blue=0), "unknown_outcome", "it has: blue, green, red"),
        (opened("snow", closes_at="2127-01-01T00:00:00Z"), "wrong_order_of_instants", "more than 100 years after"),
        (opened("snow", closes_at="2000-01-01T00:00:00Z"), "wrong_order_of_instants", "is not after opens_at"),
    ],
)
def test_a_refusal_says_which_outcomes_there_are_and_what_is_wrong_with_a_period(
    command: AnyCommand, code: str, says: str
) -> None:
    """An outcome in other capitals is another one; a period that is too long has its instants in the right order."""
    outcome = given(RAIN, COLOUR).when(command).outcome
    assert isinstance(outcome, Refused)
    assert (outcome.code, says in outcome.detail) == (code, True)


def test_an_opened_binary_question_is_recorded_with_yes_and_no() -> None:
    """The outcomes follow from the kind; instants are in µs."""
    given().when(opened(title="Rain?", reveals_at=REVEALS)).records(
        events.QuestionOpened(
            at=micros(5),
            question="rain",
            kind="binary",
            title="Rain?",
            outcomes=("yes", "no"),
            opens_at=micros(10),
            closes_at=micros(20),
            reveals_at=micros(12),
        )
    )


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"group": "weather", "category": "nature", "tags": ("wet", "Köln", "wet"), "url": "https://e.org/?q=1"},
        {"source": "the gauge on the bridge\nread at noon", "tags": tuple(f"tag {number}" for number in range(100))},
    ],
)
def test_the_details_of_a_question_are_recorded_as_given(details: dict[str, Any]) -> None:
    """A detail that is not given, or empty, is not written; order and repetitions of tags stay."""
    [question] = ran(opened(**details))
    assert isinstance(question, events.QuestionOpened)
    names = ("group", "category", "tags", "url", "source")
    assert {name: value for name in names if (value := getattr(question, name))} == details
    written = json.encode(question).decode()
    assert [name for name in names if f'"{name}":' in written] == [name for name in names if name in details]
    assert ran(opened(tags=(), url="", source="")) == ran(opened())


@pytest.mark.parametrize(("ordered", "written"), [(None, ""), (True, '"ordered":true'), (False, '"ordered":false')])
def test_a_question_says_whether_its_outcomes_have_an_order(ordered: bool | None, written: str) -> None:
    """Both answers are recorded, so that a question that does not say can be told from one that is ordered."""
    [question] = ran(choices(ordered=ordered))
    assert isinstance(question, events.QuestionOpened)
    assert question.ordered is ordered
    text = json.encode(question).decode()
    assert text.endswith(f"{written}}}")
    assert ("ordered" in text) == (ordered is not None)


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("ordered", "no", "malformed"),
        ("ordered", 0, "malformed"),
        ("group", "", "id_empty"),
        ("group", "g" * 201, "id_too_long"),
        ("category", "a\tb", "id_not_plain"),
        ("tags", ("wet", " wet"), "id_not_plain"),
        ("tags", ("t" * 201,), "id_too_long"),
        ("tags", "wet", "malformed"),
        ("url", "u" * 10_001, "text_too_long"),
        ("source", "s" * 10_001, "text_too_long"),
        ("url", 7, "malformed"),
    ],
)
def test_a_detail_that_cannot_be_kept_is_refused(field: str, value: Any, code: str) -> None:
    """A group, a category and a tag are ids; an address and a source are texts."""
    given().when(opened(**{field: value})).refuses(code, field)


def test_a_question_with_outcomes_called_yes_and_no_is_binary_only_if_its_kind_says_so() -> None:
    """The names of the outcomes do not matter."""
    polar = choices("polar", outcomes=("no", "yes"))
    given(polar).when(forecast("polar")).refuses("wrong_distribution", "question")
    given(polar).when(forecast("polar", probabilities={"yes": "0.7", "no": "0.3"})).records(
        events.ForecastMade(
            at=micros(11), question="polar", participant="ada", probabilities=(300_000_000, 700_000_000)
        )
    )


def test_an_opened_numeric_question_is_recorded_with_exact_bounds() -> None:
    """Bounds are recorded as the shortest decimal text; there are no named outcomes."""
    span: dict[str, Any] = {"lower": "-1.50", "upper": 1e3, "bins": 200, "open_upper": True, "zero_point": "-2.0"}
    given().when(numeric(**span)).records(
        events.QuestionOpened(
            at=micros(5),
            question="depth",
            kind="numeric",
            range=events.NumericRange(lower="-1.5", upper="1000", bins=200, open_upper=True, zero_point="-2"),
            opens_at=micros(10),
            closes_at=micros(20),
        )
    )


@pytest.mark.parametrize(
    "fields", [{"reveals_at": CLOSES}, {"closes_at": "2126-03-11T00:00:00Z"}, {"at": AFTER}, {"title": "x" * 10_000}]
)
def test_the_last_instant_that_a_rule_allows_is_allowed(fields: dict[str, Any]) -> None:
    """A question may be hidden up to the close, last 36,525 days (2100 has no leap day), or open in retrospect."""
    assert isinstance(given().when(opened(**fields)).outcome, list)


def test_a_question_with_levels_is_recorded_with_them_and_its_unit() -> None:
    """Levels are in 1e-9, there are no bins, and the decimals are the unit of the quantiles."""
    span: dict[str, Any] = {"lower": "-1.50", "upper": 1e3, "levels": [0.025, "0.5", Decimal("0.9750")], "decimals": 2}
    given().when(quartiles(**span, open_upper=True, zero_point=-2)).records(
        events.QuestionOpened(
            at=micros(5),
            question="flow",
            kind="numeric",
            range=events.NumericRange(
                lower="-1.5",
                upper="1000",
                open_upper=True,
                zero_point="-2",
                levels=(25_000_000, 500_000_000, 975_000_000),
                decimals=2,
            ),
            opens_at=micros(10),
            closes_at=micros(20),
        )
    )


@pytest.mark.parametrize(
    "span",
    [
        {"levels": ("0.000000001",)},
        {"levels": ("0.999999999",)},
        {"levels": ("0.000000001", "0.000000002", "0.999999998", "0.999999999")},
        {"levels": ("0.0000000006", "0.0000000015")},  # 1e-9 and 2e-9, half-even
        {"levels": tuple(f"0.{number:06}" for number in range(1, 10_001))},
        {"decimals": 0},
        {"decimals": 12},
        {"decimals": 12, "lower": -10, "upper": 10},
        {"decimals": 0, "lower": "-1e13", "upper": "1e13"},
        {"decimals": 0, "lower": "0.25", "upper": "0.75"},  # no quantile in the unit is within; that is allowed
    ],
    ids=lambda span: str(span)[:40],
)
def test_the_last_levels_and_decimals_that_a_rule_allows_are_allowed(span: dict[str, Any]) -> None:
    """There may be 10,000 levels between 0 and 1, twelve decimals, and bounds of 1e13 units."""
    assert isinstance(given().when(quartiles(**span)).outcome, list)


MAY = 20_574 * 86_400  # seconds to 2026-05-01: 20,454 days to January 1st, then 31, 28, 31 and 30


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("2026-05-01", "2026-05-05"),
        ("2026-05-01T02:00:00+02:00", "2026-05-05T00:00:00.0000001Z"),
        (MAY, f"{MAY + 4 * 86_400}.0"),
        (datetime(2026, 5, 1, tzinfo=UTC), "2026-05-05"),
    ],
)
def test_a_date_question_counts_seconds_since_the_epoch(lower: Any, upper: Any) -> None:
    """A date is its beginning in UTC; instants are rounded to µs."""
    [question] = ran(dated(lower=lower, upper=upper))
    assert isinstance(question, events.QuestionOpened)
    assert question.range == events.NumericRange(lower=str(MAY), upper=str(MAY + 4 * 86_400), bins=4)


@pytest.mark.parametrize(
    ("value", "outcome", "recorded"),
    [
        ("2026-05-01", 1, "2026-05-01T00:00:00Z"),
        ("2026-05-02", 1, "2026-05-02T00:00:00Z"),
        ("2026-05-02T00:00:00.000008Z", 1, "2026-05-02T00:00:00.000008Z"),  # 1e-10 of a bin is 8.64 µs
        ("2026-05-02T00:00:00.000009Z", 2, "2026-05-02T00:00:00.000009Z"),
        (MAY + 3 * 86_400 + 1, 4, "2026-05-04T00:00:01Z"),
        ("2026-05-05", 4, "2026-05-05T00:00:00Z"),
        ("1969-12-31", 0, "1969-12-31T00:00:00Z"),
        ("9999-12-31", 5, "9999-12-31T00:00:00Z"),
    ],
)
def test_the_answer_to_a_date_question_is_recorded_as_an_instant(value: Any, outcome: int, recorded: str) -> None:
    """It may be given as a date, an instant or seconds; an inner edge belongs to the bin below."""
    [_, resolved] = ran(dated(open_lower=True, open_upper=True), resolution("when", value=value))
    assert isinstance(resolved, events.QuestionResolved)
    assert (resolved.outcome, resolved.value) == (outcome, recorded)


@pytest.mark.parametrize("value", range(4))
def test_each_value_of_a_discrete_question_is_a_bin(value: int) -> None:
    """The edges lie half a step outside; Metaculus has so many bins as possible values."""
    given(counted()).when(resolution("count", value=value)).records(
        events.QuestionResolved(
            at=micros(25), question="count", outcome=value + 1, value=str(value), known_at=micros(20)
        )
    )


@pytest.mark.parametrize(("name", "outcome"), [("below_lower_bound", 0), ("above_upper_bound", 5)])
@pytest.mark.parametrize("asked", [dated, counted, numeric])
def test_an_answer_beyond_an_open_end_can_be_given_by_name(asked: Any, name: str, outcome: int) -> None:
    """The outcome is that of any value beyond the end; the name is recorded in place of the value."""
    [_, resolved] = ran(asked("depth", open_lower=True, open_upper=True), resolution("depth", outcome=name))
    assert isinstance(resolved, events.QuestionResolved)
    assert (resolved.outcome, resolved.value) == (outcome, name)


@pytest.mark.parametrize(
    ("question", "field", "value", "code"),
    [
        (DEPTH, "value", "2026-05-01", "bad_number"),
        (dated("depth"), "value", "2026-02-30", "bad_instant"),
        (dated("depth"), "value", "2026-05-01T00:00:00", "naive_instant"),
        (dated("depth"), "value", "May 1st", "bad_number"),
        (dated("depth"), "value", "2026-05", "bad_number"),
    ],
)
def test_an_answer_that_is_no_date_is_refused(question: AnyCommand, field: str, value: Any, code: str) -> None:
    """A numeric question takes no date, and a date question no instant without an offset."""
    given(question).when(resolution("depth", value=value)).refuses(code, field)


@pytest.mark.parametrize("bins", [1, 10_000])
def test_a_numeric_question_has_1_to_10_000_bins(bins: int) -> None:
    """Both limits are allowed."""
    assert isinstance(given().when(numeric(bins=bins)).outcome, list)


@pytest.mark.parametrize(
    ("probability", "yes"),
    [("0.7", 700_000_000), (0, 0), (1, BILLION), ("0.1234567895", 123_456_790), ("0.1234567885", 123_456_788)],
)
def test_a_binary_forecast_is_recorded_as_yes_and_no(probability: Any, yes: int) -> None:
    """Yes is rounded half-even to 1e-9, and no is 1 - yes."""
    given(RAIN).when(forecast(probability=probability)).records(
        events.ForecastMade(at=micros(11), question="rain", participant="ada", probabilities=(yes, BILLION - yes))
    )


@pytest.mark.parametrize(
    ("chances", "recorded"),
    [
        (("0.2", "0.3", "0.5"), (200_000_000, 300_000_000, 500_000_000)),
        (("0", "0", "1"), (0, 0, BILLION)),
        # the sum differs from 1 by 1e-6, the tolerance: the largest is adjusted
        (("0.2", "0.3", "0.499999"), (200_000_000, 300_000_000, 500_000_000)),
        (("0.2", "0.3", "0.500001"), (200_000_000, 300_000_000, 500_000_000)),
        (("0.6", "0.200001", "0.2"), (599_999_000, 200_001_000, 200_000_000)),
        # three rounded thirds lack 1e-9: the first of equals gets it
        (("0.333333333333", "0.333333333333", "0.333333333333"), (333_333_334, 333_333_333, 333_333_333)),
        (("0.1", "0.4500000006", "0.4500000006"), (100_000_000, 449_999_999, 450_000_001)),
        (("1.0", "0.000001", "0"), (999_999_000, 1_000, 0)),
    ],
)
def test_probabilities_are_brought_to_exactly_one(chances: tuple[str, ...], recorded: tuple[int, ...]) -> None:
    """Each is rounded to 1e-9; the difference to 1 is added to the largest, to the first of equals."""
    given(COLOUR).when(forecast("colour", **probabilities(*chances))).records(
        events.ForecastMade(at=micros(11), question="colour", participant="ada", probabilities=recorded)
    )


def test_probabilities_are_recorded_in_the_order_of_the_questions_outcomes() -> None:
    """The order in the command does not matter."""
    given(COLOUR).when(forecast("colour", probabilities={"blue": "0.5", "red": "0.2", "green": "0.3"})).records(
        events.ForecastMade(
            at=micros(11), question="colour", participant="ada", probabilities=(200_000_000, 300_000_000, 500_000_000)
        )
    )


@examples(st.lists(st.integers(0, 10**12), min_size=3, max_size=3).filter(any))
def test_a_recorded_distribution_sums_to_exactly_one(weights: list[int]) -> None:
    """Each probability is within the tolerance of the one in the command."""
    chances = [Fraction(weight, sum(weights)) for weight in weights]
    written = [str(Context(prec=12).divide(Decimal(share.numerator), Decimal(share.denominator))) for share in chances]
    outcome = given(COLOUR).when(forecast("colour", **probabilities(*written))).outcome
    assert isinstance(outcome, list)
    [event] = outcome
    assert isinstance(event, events.ForecastMade)
    assert sum(event.probabilities) == BILLION
    for recorded, share in zip(event.probabilities, chances, strict=True):
        assert abs(Fraction(recorded, BILLION) - share) <= Fraction(2, BILLION)


@pytest.mark.parametrize(
    ("question", "cdf", "heights"),
    [
        (DEPTH, FLAT, (0, 2_500_000_000, 5_000_000_000, 7_500_000_000, CUMULATIVE)),
        (DEPTH, ("0", "0", "0", "0", "1"), (0, 0, 0, 0, CUMULATIVE)),
        (DEPTH, (0, 1, 1, 1, 1), (0, CUMULATIVE, CUMULATIVE, CUMULATIVE, CUMULATIVE)),
        (OPEN_DEPTH, ("0.1", "0.1", "0.2", "0.3", "0.9"), (10**9, 10**9, 2 * 10**9, 3 * 10**9, 9 * 10**9)),
        (OPEN_DEPTH, FLAT, (0, 2_500_000_000, 5_000_000_000, 7_500_000_000, CUMULATIVE)),
        (OPEN_DEPTH, ("1",) * 5, (CUMULATIVE,) * 5),  # all probability is below the range
        # 1e-10, half-even; a closed end that rounds to 0 or 1 is at 0 or 1
        (
            DEPTH,
            ("0.00000000005", "0.00000000015", "0.5", "0.5", "0.99999999995"),
            (0, 2, 5 * 10**9, 5 * 10**9, 10**10),
        ),
    ],
)
def test_a_numeric_forecast_is_recorded_as_its_cdf(question: AnyCommand, cdf: Any, heights: tuple[int, ...]) -> None:
    """The event has bins + 1 values in 1e-10; probability lies outside the range only beyond an open end."""
    given(question).when(forecast("depth", cdf=cdf)).records(
        events.ForecastMade(at=micros(11), question="depth", participant="ada", cdf=heights)
    )


@pytest.mark.parametrize(
    ("question", "written", "recorded"),
    [
        (FLOW, ("1", "2.5", 3), (1_000, 2_500, 3_000)),
        (FLOW, (0, 0, 0), (0, 0, 0)),
        (FLOW, (4, "4.000", 4.0), (4_000, 4_000, 4_000)),
        (FLOW, ("0.0005", "0.0015", "0.0025"), (0, 2, 2)),  # half-even
        (FLOW, ("1.0004", "1.0003", 2), (1_000, 1_000, 2_000)),  # equal in thousandths
        (OPEN_FLOW, (-5, "2", "1e10"), (-5_000, 2_000, 10**13)),
        (OPEN_FLOW, ("-1e10", "-1e10", "1e-40"), (-(10**13), -(10**13), 0)),
        (quartiles(decimals=0), ("0.5", "1.5", "2.5"), (0, 2, 2)),
        (quartiles(decimals=12), ("0.0000000000015", 1, "3.9999999999995"), (2, 10**12, 4 * 10**12)),
        (quartiles(decimals=None), (1, 2, "3.0000015"), (10**6, 2 * 10**6, 3_000_002)),
        (quartiles(levels=("0.5",)), (1.1,), (1_100,)),
    ],
)
def test_quantiles_are_recorded_in_the_unit_of_the_question(
    question: AnyCommand, written: tuple[Any, ...], recorded: tuple[int, ...]
) -> None:
    """Each quantile is rounded half-even to 10^-decimals; it lies beyond an end only if that end is open."""
    given(question).when(forecast("flow", quantiles=written)).records(
        events.ForecastMade(at=micros(11), question="flow", participant="ada", quantiles=recorded)
    )


@examples(
    st.lists(st.decimals(-(10**9), 10**9, allow_nan=False), min_size=3, max_size=3).map(sorted), st.integers(0, 4)
)
def test_a_recorded_quantile_is_the_nearest_unit(written: list[Decimal], decimals: int) -> None:
    """It is within half a unit of the number in the command, and ties round to even."""
    question = quartiles(decimals=decimals, open_lower=True, open_upper=True)
    outcome = given(question).when(forecast("flow", quantiles=tuple(written))).outcome
    assert isinstance(outcome, list)
    [event] = outcome
    assert isinstance(event, events.ForecastMade)
    assert list(event.quantiles) == [round(Fraction(value) * 10**decimals) for value in written]  # round: half-even


DECLARED = events.Attestation(
    newest_source="2026-03-10",
    model_released="2025",
    training_cutoff="2024-10-01T00:00:00+02:00",
    restricted_sources=False,
    restricted_list="list of 2026-01",
    note="two\nlines",
)


@pytest.mark.parametrize("declared", [DECLARED, events.Attestation(), events.Attestation(restricted_sources=True)])
@pytest.mark.parametrize(
    ("question", "distribution"),
    [
        (RAIN, {"probability": 1}),
        (COLOUR, probabilities(0, 0, 1)),
        (DEPTH, {"cdf": FLAT}),
        (FLOW, {"quantiles": (1, 2, 3)}),
    ],
)
def test_an_attestation_is_recorded_as_it_was_given(
    question: Any, distribution: dict[str, Any], declared: events.Attestation
) -> None:
    """It may come with any distribution; stamps keep the precision with which they are written."""
    outcome = given(question).when(forecast(question.question, attestation=declared, **distribution)).outcome
    assert isinstance(outcome, list)
    assert [event.attestation for event in outcome if isinstance(event, events.ForecastMade)] == [declared]


@pytest.mark.parametrize("at", [BEFORE, OPENS, "2026-03-19T23:59:59.999999Z"])
def test_a_forecast_may_be_made_until_just_before_the_close(at: str) -> None:
    """A forecast may also be made before the opening; the rule set says whether it counts from the opening."""
    assert isinstance(given(RAIN).when(forecast(at=at)).outcome, list)


@pytest.mark.parametrize("until", ["2026-03-11T00:00:00.000001Z", CLOSES, AFTER, "9999-12-31T23:59:59.999999Z"])
def test_a_forecast_is_recorded_with_the_instant_at_which_it_ends(until: str) -> None:
    """The instant is later than `at`; it may be as late as the calendar goes, also beyond the close."""
    made: dict[str, Any] = {"question": "rain", "participant": "ada", "probabilities": (7 * 10**8, 3 * 10**8)}
    given(RAIN).when(forecast(until=until)).records(
        events.ForecastMade(at=micros(11), **made, until=values.read_instant(until))
    )
    given(RAIN).when(forecast(at=BEFORE, until=day(6))).records(
        events.ForecastMade(at=micros(5), **made, until=micros(6))
    )


def test_a_forecast_can_be_withdrawn_or_replaced_before_it_ends_by_itself() -> None:
    """An instant before its end is in time; the forecast that replaces it has its own end, or none."""
    history = [RAIN, forecast(at=day(11), until=day(14))]
    given(*history).when(withdrawal(at="2026-03-13T23:59:59.999999Z")).records(
        events.ForecastWithdrawn(at=micros(14) - 1, question="rain", participant="ada")
    )
    given(*history, forecast(at=day(12))).when(withdrawal(at=day(15))).records(
        events.ForecastWithdrawn(at=micros(15), question="rain", participant="ada")
    )


def test_after_a_forecast_has_ended_by_itself_another_may_be_made() -> None:
    """Only an instant before the forecast that has ended is out of order."""
    history = [RAIN, forecast(at=day(11), until=day(13))]
    assert isinstance(given(*history).when(forecast(at=day(15))).outcome, list)
    given(*history).when(forecast(at=day(10))).refuses("out_of_order", "at")


def test_two_forecasts_and_a_withdrawal_may_share_an_instant() -> None:
    """Their order in the log counts; only an earlier instant of the same participant is out of order."""
    same = {"at": day(13)}
    history = [RAIN, forecast(**same), withdrawal(**same)]
    assert isinstance(given(*history).when(forecast(probability=0, **same)).outcome, list)
    assert isinstance(given(*history).when(forecast(participant="bob", at=day(12))).outcome, list)
    given(RAIN, forecast(**same)).when(withdrawal(**same)).records(
        events.ForecastWithdrawn(at=micros(13), question="rain", participant="ada")
    )


def test_several_participants_may_withdraw_at_one_instant() -> None:
    """Each withdrawal ends the participant's own forecast."""
    history = [RAIN, forecast(participant="ada"), forecast(participant="bob"), withdrawal(participant="ada")]
    given(*history).when(withdrawal(participant="bob")).records(
        events.ForecastWithdrawn(at=micros(13), question="rain", participant="bob")
    )


def test_after_a_withdrawal_a_new_forecast_stands_again() -> None:
    """The forecasts before and after the gap both count, and the second can be withdrawn too."""
    history = [RAIN, forecast(at=day(11)), withdrawal(at=day(13)), forecast(at=day(14))]
    given(*history).when(withdrawal(at=day(15))).records(
        events.ForecastWithdrawn(at=micros(15), question="rain", participant="ada")
    )


def test_an_early_close_is_recorded_at_its_instant() -> None:
    """From that instant on, the question takes no forecasts; before it, it does."""
    given(RAIN).when(closing(at=day(15, 6))).records(events.QuestionClosed(at=micros(15, 6), question="rain"))
    history = [RAIN, closing(at=day(15, 6))]
    assert isinstance(given(*history).when(forecast(at=day(15, 5))).outcome, list)
    given(*history).when(forecast(at=day(15, 6))).refuses("question_closed", "at")


def test_a_forecast_made_from_the_close_on_does_not_prevent_it() -> None:
    """A close that is recorded late ends later forecasts, which then have no weight."""
    history = [RAIN, forecast(at=day(11)), forecast(participant="bob", at=day(14))]
    given(*history).when(closing(at=day(13))).records(events.QuestionClosed(at=micros(13), question="rain"))


def test_a_question_may_be_closed_once_more_at_an_earlier_instant() -> None:
    """The question then closed at the earlier instant."""
    history = [RAIN, closing(at=day(15)), closing(at=day(13))]
    given(*history).when(forecast(at=day(14))).refuses("question_closed", "at")


@pytest.mark.parametrize(
    ("fields", "known_at"),
    [
        ({"at": AFTER}, micros(20)),  # the scheduled close comes first
        ({"at": CLOSES}, micros(20)),
        ({"at": day(15)}, micros(15)),  # the command comes first
        ({"at": OPENS}, micros(10)),
        ({"at": AFTER, "known_at": day(12)}, micros(12)),
        ({"at": AFTER, "known_at": day(22)}, micros(22)),
        ({"at": AFTER, "known_at": AFTER}, micros(25)),
        ({"at": AFTER, "known_at": OPENS}, micros(10)),
    ],
)
def test_known_at_defaults_to_the_resolution_or_the_scheduled_close(fields: dict[str, Any], known_at: int) -> None:
    """The default of known_at is the earlier of `at` and `closes_at`."""
    at = micros(int(fields["at"][8:10]))
    given(RAIN).when(resolution(**fields)).records(
        events.QuestionResolved(at=at, question="rain", outcome=0, known_at=known_at)
    )


def test_an_early_close_does_not_move_when_the_answer_is_known_by_default() -> None:
    """The default uses the scheduled close."""
    given(RAIN, closing(at=day(15))).when(resolution(at=day(18))).records(
        events.QuestionResolved(at=micros(18), question="rain", outcome=0, known_at=micros(18))
    )


@pytest.mark.parametrize(
    ("question", "answer", "index"),
    [(RAIN, "yes", 0), (RAIN, "no", 1), (COLOUR, "red", 0), (COLOUR, "green", 1), (COLOUR, "blue", 2)],
)
def test_an_outcome_is_recorded_by_its_place(question: AnyCommand, answer: str, index: int) -> None:
    """Outcomes are numbered in the order of the question; in a binary question, yes is before no."""
    name = "rain" if question is RAIN else "colour"
    given(question).when(resolution(name, outcome=answer)).records(
        events.QuestionResolved(at=micros(25), question=name, outcome=index, known_at=micros(20))
    )


@pytest.mark.parametrize(
    ("question", "payouts", "recorded"),
    [
        (RAIN, {"yes": "0.5", "no": "0.5"}, (BILLION // 2, BILLION // 2)),
        (RAIN, {"no": "0.75", "yes": "0.25"}, (BILLION // 4, 3 * BILLION // 4)),
        (COLOUR, {"red": 0, "green": "0.5", "blue": "0.5"}, (0, BILLION // 2, BILLION // 2)),
        (COLOUR, {"red": "1/4", "green": "0.5", "blue": "2/8"}, (BILLION // 4, BILLION // 2, BILLION // 4)),
        (COLOUR, {"red": "0.4999998", "green": "0.4999998", "blue": 0}, (BILLION // 2, BILLION // 2, 0)),
        (
            COLOUR,
            {"red": "0.333333334", "green": "0.333333333", "blue": "0.333333333"},
            (333_333_334, *[333_333_333] * 2),
        ),
        (RAIN, {"yes": "0.999999999", "no": "0.000000001"}, (BILLION - 1, 1)),
    ],
)
def test_payouts_are_recorded_in_the_order_of_the_outcomes(
    question: AnyCommand, payouts: dict[str, Any], recorded: tuple[int, ...]
) -> None:
    """Payouts are for one share, in 1e-9 where that is exact; no outcome is recorded."""
    name = "rain" if question is RAIN else "colour"
    given(question).when(paying(name, **payouts)).records(
        events.QuestionResolved(at=micros(25), question=name, outcome=-1, known_at=micros(20), payouts=recorded)
    )


@pytest.mark.parametrize(
    ("payouts", "unit", "recorded"),
    [
        (("1/3", "1/3", "1/3"), 3, (1, 1, 1)),
        (("0.333333333",) * 3, 3, (1, 1, 1)),
        (("0.333333",) * 3, 3, (1, 1, 1)),
        (("0.3333333333333333",) * 3, 3, (1, 1, 1)),  # rounded to nine decimals first
        (("2/6", "0", "4/6"), 3, (1, 0, 2)),
        (("1/6", "0.5", "1/3"), 6, (1, 3, 2)),
    ],
)
def test_payouts_that_nine_decimals_cannot_tell_are_recorded_as_whole_numbers(
    payouts: tuple[str, ...], unit: int, recorded: tuple[int, ...]
) -> None:
    """The least whole numbers in that proportion, and their sum: what rounding leaves over goes to no outcome."""
    resolved = events.QuestionResolved(
        at=micros(25), question="colour", outcome=-1, known_at=micros(20), payout_unit=unit, payouts=recorded
    )
    given(COLOUR).when(paying("colour", **dict(zip(COLOURS, payouts, strict=True)))).records(resolved)


def test_payouts_that_are_no_shares_are_refused_with_the_way_to_write_them() -> None:
    """Equal weights are no shares, and the message says how to write thirds."""
    refused = given(COLOUR).when(paying("colour", red=1, green=1, blue=1))
    refused.refuses("not_summing_to_one", "payouts")
    assert "such as 1/3" in str(refused.outcome)
    assert "'3'" in str(refused.outcome)


@pytest.mark.parametrize(
    ("question", "payouts", "index"),
    [
        (RAIN, {"yes": 1, "no": 0}, 0),
        (RAIN, {"yes": "0.0", "no": "1.0"}, 1),
        (COLOUR, {"blue": 1, "red": 0, "green": 0}, 2),
        (RAIN, {"yes": "0.9999995", "no": 0}, 0),
        (RAIN, {"yes": "3/3", "no": 0}, 0),
    ],
)
def test_payouts_of_one_outcome_alone_are_that_outcome(
    question: AnyCommand, payouts: dict[str, Any], index: int
) -> None:
    """The event is the same as that of a resolution with the outcome."""
    name = "rain" if question is RAIN else "colour"
    given(question).when(paying(name, **payouts)).records(
        events.QuestionResolved(at=micros(25), question=name, outcome=index, known_at=micros(20))
    )


def test_a_cancelled_market_is_an_annulled_question_with_a_policy() -> None:
    """The default is a refund; an annulment records the same as a cancellation with refund_cost."""
    voided = events.QuestionAnnulled(at=micros(25), question="rain", reason="no source", policy="void_trades")
    refunded = events.QuestionAnnulled(at=micros(25), question="rain", reason="no source", policy="refund_cost")
    given(RAIN).when(cancellation()).records(voided)
    given(RAIN, WET).when(cancellation()).records(voided)
    given(RAIN).when(cancellation(policy="refund_cost")).records(refunded)
    given(RAIN).when(annulment()).records(refunded)


def test_a_numeric_answer_is_recorded_with_its_bin_and_its_exact_text() -> None:
    """2.50 lies in the third of four bins of 0..4."""
    given(DEPTH).when(resolution("depth", value="2.50")).records(
        events.QuestionResolved(at=micros(25), question="depth", outcome=3, value="2.5", known_at=micros(20))
    )


@pytest.mark.parametrize(
    ("question", "value", "outcome"),
    [
        (FLOW, "0", 1),
        (FLOW, "1.23456789", 1),
        (FLOW, "4", 1),
        (OPEN_FLOW, "-0.000000001", 0),
        (OPEN_FLOW, "-1e10", 0),
        (OPEN_FLOW, "4.000000001", 2),
        (OPEN_FLOW, "1e10", 2),
        (quartiles(open_upper=True, zero_point=-1), "4.1", 2),
        (quartiles(zero_point=5), "3.9", 1),
    ],
)
def test_an_answer_to_a_question_without_bins_is_below_inside_or_above(
    question: AnyCommand, value: str, outcome: int
) -> None:
    """The outcome is 0, 1 or 2; the exact text is recorded, even if it is finer than the unit of the quantiles."""
    given(question).when(resolution("flow", value=value)).records(
        events.QuestionResolved(
            at=micros(25), question="flow", outcome=outcome, value=f"{Decimal(value):f}", known_at=micros(20)
        )
    )


def test_a_resolved_question_can_be_resolved_otherwise_once_revoked() -> None:
    """Corrections are events: the resolution is revoked, then recorded again; in between, forecasts are possible."""
    given(RAIN, DRY).when(revocation(reason="misread")).records(
        events.ResolutionRevoked(at=micros(25), question="rain", reason="misread")
    )
    given(RAIN, DRY, revocation()).when(WET).records(
        events.QuestionResolved(at=micros(25), question="rain", outcome=0, known_at=micros(20))
    )
    assert isinstance(given(RAIN, DRY, revocation()).when(forecast()).outcome, list)


def test_revoking_does_not_reopen_what_was_closed_early() -> None:
    """A revocation undoes only the resolution."""
    history = [RAIN, closing(at=day(15)), WET, revocation()]
    given(*history).when(forecast(at=day(16))).refuses("question_closed", "at")


def test_a_question_can_be_annulled_resolved_or_not_and_that_revoked() -> None:
    """An annulled question counts nowhere; a revocation undoes the annulment, not the question."""
    event = events.QuestionAnnulled(at=micros(25), question="rain", reason="no source")
    given(RAIN).when(annulment()).records(event)
    given(RAIN, WET).when(annulment()).records(event)
    given(RAIN, annulment(), revocation()).when(annulment()).records(event)


def test_a_revoked_annulment_returns_to_the_resolution_before_it() -> None:
    """It is recorded again as it was, at the instant of the revocation; a second revocation undoes it too."""
    early = resolution(known_at=day(12))
    revoked = events.ResolutionRevoked(at=micros(26), question="rain", reason="misread")
    wet = events.QuestionResolved(at=micros(26), question="rain", outcome=0, known_at=micros(12))
    history = [RAIN, DRY, revocation(), early, annulment()]
    given(*history).when(revocation(at=day(26))).records(revoked, wet)
    given(*history, revocation(at=day(26))).when(DRY).refuses("question_resolved", "question")
    given(*history, revocation(at=day(26))).when(revocation(at=day(26))).records(revoked)
    given(*history, revocation(), revocation()).when(revocation()).refuses("not_resolved", "question")
    given(*history, revocation(), annulment()).when(revocation(at=day(26))).records(revoked, wet)
    given(RAIN, annulment(), revocation()).when(revocation()).refuses("not_resolved", "question")
    given(RAIN, WET, revocation(), annulment()).when(revocation(at=day(26))).records(revoked)


def test_a_resolution_cannot_stand_again_before_it_was_known() -> None:
    """A resolution known on the 12th cannot stand again from the 11th on."""
    history = [RAIN, resolution(known_at=day(12)), annulment()]
    refused = given(*history).when(revocation(at=day(11)))
    refused.refuses("wrong_order_of_instants", "at")
    assert "2026-03-12" in str(refused.outcome)
    assert isinstance(given(*history).when(revocation(at=day(12))).outcome, list)


LINEAR = events.NumericRange(lower="0", upper="4", bins=4)
OPEN_BOTH = events.NumericRange(lower="0", upper="4", bins=4, open_lower=True, open_upper=True)
DOUBLING = events.NumericRange(lower="1", upper="16", bins=4, zero_point="0")  # edges 1 2 4 8 16
FROM_ZERO = events.NumericRange(lower="0", upper="15", bins=4, zero_point="-1")  # edges 0 1 3 7 15
HALVING = events.NumericRange(lower="1", upper="16", bins=4, zero_point="17")  # edges 1 9 13 15 16
TENFOLD = events.NumericRange(lower="0.01", upper="100", bins=4, zero_point="0")  # edges 0.01 0.1 1 10 100
THIRDS = events.NumericRange(lower="0", upper="1", bins=3)
DATES = events.NumericRange(lower="1772323200", upper="1804204800", bins=200)  # a year of Unix seconds
FAR = events.NumericRange(lower="0", upper="1e-25", bins=2, zero_point="-1e30")  # straight to 55 digits
FARTHER = events.NumericRange(lower="0", upper="1e-28", bins=10_000, zero_point="1e30")  # straight to 58 digits
BINNED: list[tuple[events.NumericRange, str, int]] = [
    *[(LINEAR, value, place) for value, place in [("0", 1), ("0.5", 1), ("1", 1), ("2", 2), ("3", 3), ("4", 4)]],
    (LINEAR, "1.0000000001", 1),  # 1e-10 of a bin above an inner edge
    (LINEAR, "1.00000000011", 2),
    (LINEAR, "0.9999999999999999", 1),
    (LINEAR, "3.00000001", 4),
    (LINEAR, "0.00000000000001", 1),
    (LINEAR, "3.99999999999999", 4),
    *[(OPEN_BOTH, value, place) for value, place in [("-1e-30", 0), ("0", 1), ("4", 4), ("4.0000000000000001", 5)]],
    *[(OPEN_BOTH, value, place) for value, place in [("-1e29", 0), ("1e29", 5)]],
    *[(DOUBLING, value, place) for value, place in [("1", 1), ("2", 1), ("4", 2), ("8", 3), ("16", 4)]],
    *[(DOUBLING, value, place) for value, place in [("1.999", 1), ("2.001", 2), ("4.001", 3), ("8.001", 4)]],
    *[(FROM_ZERO, value, place) for value, place in [("0", 1), ("1", 1), ("3", 2), ("7", 3), ("15", 4)]],
    *[(FROM_ZERO, value, place) for value, place in [("1.001", 2), ("3.001", 3), ("7.001", 4), ("6.999", 3)]],
    *[(HALVING, value, place) for value, place in [("1", 1), ("9", 1), ("13", 2), ("15", 3), ("16", 4)]],
    *[(HALVING, value, place) for value, place in [("8.999", 1), ("9.001", 2), ("13.001", 3), ("15.001", 4)]],
    *[(TENFOLD, value, place) for value, place in [("0.1", 1), ("1", 2), ("10", 3), ("99", 4), ("0.11", 2)]],
    (THIRDS, "0.33333333333", 1),
    (THIRDS, "0.33333333334", 1),  # 2e-11 of a bin above a third
    (THIRDS, "0.3333333334", 2),  # 2e-10 of a bin
    (DATES, "1772323200", 1),
    (DATES, "1772482608", 1),  # a two-hundredth of 31,881,600 s is 159,408 s
    (DATES, "1772482609", 2),
    (DATES, "1804204800", 200),
    (FAR, "2.5e-26", 1),
    (FAR, "7.5e-26", 2),
    (FARTHER, "0.50003e-28", 5_001),
    (FARTHER, "0.50000e-28", 5_000),
    (FARTHER, "0.99999e-28", 10_000),
]


@pytest.mark.parametrize(("span", "value", "outcome"), BINNED)
def test_a_numeric_answer_falls_into_a_bin(span: events.NumericRange, value: str, outcome: int) -> None:
    """An inner edge belongs to the lower bin, to within 1e-10 of a bin; the bounds belong to the first and the last
    bin.

    Beyond an open end are the bins 0 and bins + 1. The edges were computed by hand: powers of a ratio times the
    distance from zero_point.
    """
    assert questions.bin_of(Decimal(value), span) == outcome


@pytest.mark.parametrize(("value", "open_end"), [("-0.1", "open_upper"), ("4.1", "open_lower")])
def test_a_numeric_answer_beyond_a_closed_end_is_refused(value: str, open_end: str) -> None:
    """It is refused even if the other end is open."""
    span = msgspec.structs.replace(LINEAR, **{open_end: True})
    with pytest.raises(Refused, match="open_end_needed"):
        questions.bin_of(Decimal(value), span)


@examples(st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.integers(1, 500), st.integers(0, 10**9))
def test_bins_of_a_straight_range_are_equal(lower: int, width: int, bins: int, part: int) -> None:
    """Bin k has the values above edge k - 1 and up to edge k, in exact fractions."""
    span = events.NumericRange(lower=str(lower), upper=str(lower + width), bins=bins)
    value = lower + Decimal(width * part).scaleb(-9)
    place = (Fraction(value) - lower) * bins / width - Fraction(1, 10**10)
    expected = max(-(-place.numerator // place.denominator), 1)
    assert questions.bin_of(value, span) == expected


@examples(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 300), st.integers(0, 10**9), st.booleans())
def test_bins_of_a_logarithmic_range_grow_in_proportion(
    distance: int, width: int, bins: int, part: int, above: bool
) -> None:
    """The position in the range is ln((v - z) / (min - z)) / ln((max - z) / (min - z)), to 80 digits; z is below or
    above.
    """
    wide = Context(prec=80)
    zero = width + distance if above else -distance
    span = events.NumericRange(lower="0", upper=str(width), bins=bins, zero_point=str(zero))
    value = Decimal(width * part).scaleb(-9)
    top = wide.ln(wide.divide(Decimal(width - zero), Decimal(-zero)))
    place = wide.divide(wide.ln(wide.divide(value - zero, Decimal(-zero))), top) * bins
    outcome = questions.bin_of(value, span)
    assert outcome - 1 <= place + Decimal("1e-9")
    assert place <= outcome + Decimal("1.1e-10")
    assert 1 <= outcome <= bins


def test_a_callers_decimal_context_moves_no_answer() -> None:
    """A context with three digits and a trap for every rounding, set by the calling program, gives the same bins."""
    with localcontext(Context(prec=3, traps=[Inexact])):
        assert [questions.bin_of(Decimal(value), span) for span, value, _ in BINNED] == [place for *_, place in BINNED]
        answer = given(numeric(lower="0.12345", upper="4.12345")).when(resolution("depth", value="1.123451")).outcome
        made = (
            given(quartiles(decimals=9, upper="4.12345"))
            .when(forecast("flow", quantiles=("1.123456789", 2, 3)))
            .outcome
        )
        wide = given().when(quartiles(decimals=12, upper="10.0000000000000001")).outcome
        far = given(OPEN_FLOW).when(resolution("flow", value="10000000000.0000001")).outcome
    assert isinstance(answer, list)
    assert [event.outcome for event in answer if isinstance(event, events.QuestionResolved)] == [2]
    assert isinstance(made, list)
    assert [event.quantiles for event in made if isinstance(event, events.ForecastMade)] == [
        (1_123_456_789, 2 * 10**9, 3 * 10**9)
    ]
    assert [refused.code for refused in (wide, far) if isinstance(refused, Refused)] == [
        "out_of_range",
        "open_end_needed",
    ]


@quick(1)
def test_an_answer_of_a_thousand_decimals_is_binned_at_once() -> None:
    """The number has as many decimals as allowed, in a range as wide as allowed; the result is exact, and not slow."""
    span = events.NumericRange(lower="0", upper="1e30", bins=10_000, zero_point="-1e-1000")
    assert questions.bin_of(Decimal("0." + "0" * 999 + "1"), span) == 3  # x = ln 2 / ln 1e1030, of 10,000: 2.92…


@pytest.mark.parametrize(
    ("span", "value", "outcome"),
    [
        ({"lower": 1, "upper": 16, "zero_point": 0}, 8, 3),
        ({"lower": 1, "upper": 16, "zero_point": 17}, 13, 2),
        ({"open_upper": True}, 400, 5),
        ({"open_lower": True}, -400, 0),
        ({"open_upper": True}, "1e30", 5),  # at any distance: only quantiles have a unit
        ({"lower": 0, "upper": "1e-25", "zero_point": "-1e30"}, "7.6e-26", 4),
    ],
    ids=str,
)
def test_a_question_resolves_on_every_kind_of_range(span: dict[str, Any], value: Any, outcome: int) -> None:
    """The range may be straight, logarithmic in both directions, open, or so slightly curved that it is straight."""
    answer = given(numeric(**span)).when(resolution("depth", value=value)).outcome
    assert isinstance(answer, list)
    assert [event.outcome for event in answer if isinstance(event, events.QuestionResolved)] == [outcome]
