"""Checks of forecasts and withdrawals, whole columns at a time because there are many."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LARGEST_MEASURE, LAST_INSTANT, NEVER
from forecast_ledger.ledger.model import events, publication_stamps
from forecast_ledger.ledger.model.mismatch import decimal_text, instant_text, mismatch, short_repr
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array, int64_array
from forecast_ledger.projections.core.sorting import index_where
from forecast_ledger.projections.facts.columns import Forecasts
from forecast_ledger.projections.facts.event_checks import CALENDAR


class RequiredNumbers(NamedTuple):
    """The numbers that a question requires of a forecast.

    width: how many. unit: how many units make 1.
    greatest: PROBABILITY for named outcomes, CUMULATIVE for a cdf, LARGEST_MEASURE for quantiles and samples.
    """

    width: int
    greatest: int
    unit: int

    @property
    def least(self) -> int:
        """The least number: a quantile or sample may be negative."""
        return -self.greatest if self.greatest == LARGEST_MEASURE else 0


def check_attestation(position: int, attestation: events.Attestation) -> None:
    """Check that every stamp is a year, month, day or instant. Raises Corrupt if one is not."""
    for name in ("newest_source", "model_released", "training_cutoff"):
        if (text := getattr(attestation, name)) is not None:
            try:
                publication_stamps.stamp_span(text, name)
            except Refused:
                fault = mismatch(f"a year, month, day or instant as {name} of an attestation", short_repr(text))
                raise Corrupt(position, fault) from None


def check_forecasts(
    forecasts: Forecasts, lengths: Int64Array, questions: Mapping[int, RequiredNumbers], widths: Int64Array
) -> None:
    """Check that forecasts have the numbers that their questions require, and instants on the calendar.

    Raises Corrupt at the first that does not.
    lengths: how many numbers each row has, shape (n,). questions: what each question requires that has forecasts, by
    code. widths: how many numbers each row must have if it is a forecast, shape (n,). The least and the greatest of a
    column mostly show that no row is wrong.
    """
    if not len(lengths):
        return
    position, at, until = forecasts.position, forecasts.at, forecasts.until
    if at.min() < FIRST_INSTANT or at.max() > LAST_INSTANT:
        raise_at_first(
            position,
            (at < FIRST_INSTANT) | (at > LAST_INSTANT),
            lambda row: mismatch(CALENDAR, instant_text(int(at[row]))),
        )
    if until.min() != NEVER:
        raise_at_first(
            position,
            (until != NEVER) & ((until <= at) | (until > LAST_INSTANT)),
            lambda row: mismatch(
                f"an end after {instant_text(int(at[row]))}, within the years 1 to 9999", instant_text(int(until[row]))
            ),
        )
    widths = widths * forecasts.made
    raise_at_first(
        position,
        lengths != widths,
        lambda row: mismatch(f"{widths[row]} numbers, one for each outcome, edge, level or sample", str(lengths[row])),
    )
    _check_numbers(forecasts, lengths, questions)


def _check_numbers(forecasts: Forecasts, lengths: Int64Array, questions: Mapping[int, RequiredNumbers]) -> None:
    """Check that the numbers of each forecast are those that its question can have. Raises Corrupt."""
    chances, bounds = forecasts.chances, [(question.least, question.greatest) for question in questions.values()]
    if not len(chances):
        return
    lows, highs = zip(*bounds, strict=True)
    if max(lows) <= chances.min() and chances.max() <= min(highs):
        return
    made = index_where(lengths > 0)
    position, starts, codes = forecasts.position[made], forecasts.start[made], forecasts.question[made]
    place = np.searchsorted(int64_array([*questions]), codes)
    least, greatest = int64_array(lows)[place], int64_array(highs)[place]
    lowest, highest = np.minimum.reduceat(chances, starts), np.maximum.reduceat(chances, starts)

    def texts(row: int, *numbers: np.int64) -> list[str]:
        return [decimal_text(int(number), questions[int(codes[row])].unit) for number in numbers]

    def out_of_bounds(row: int) -> str:
        low, high, below, above = texts(row, least[row], greatest[row], lowest[row], highest[row])
        return mismatch(f"numbers from {low} to {high}", f"{below} to {above}")

    raise_at_first(position, (lowest < least) | (highest > greatest), out_of_bounds)


def raise_at_first(position: Int64Array, wrong: BoolArray, fault: Callable[[int], str]) -> None:
    """Raise Corrupt at the first position where `wrong` is true; fault: returns the message for a row."""
    if wrong.any():
        rows = np.flatnonzero(wrong)
        row = int(rows[position[rows].argmin()])
        raise Corrupt(int(position[row]), fault(row))
