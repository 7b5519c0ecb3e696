"""What forecasts and withdrawals must satisfy, checked column by column, for there are many."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ledger import events, spans
from ledger.errors import Corrupt, Refused
from ledger.findings import fixed, instant, named, unlike
from ledger.values import FIRST_INSTANT, LARGEST_MEASURE, LAST_INSTANT, PROBABILITY
from projections.checks import CALENDAR, unanswered
from projections.columns import Facts, Forecasts
from projections.limbs import BoolArray, Int64Array, chosen, column


class Asked(NamedTuple):
    """What a question asks a forecast for: how many numbers, none greater than this, of so many units in 1.

    greatest: PROBABILITY for named outcomes, CUMULATIVE for a cdf, LARGEST_MEASURE for quantiles.
    """

    width: int
    greatest: int
    unit: int


def check_attestation(position: int, attestation: events.Attestation) -> None:
    """Raise Corrupt unless every stamp says when."""
    for name in ("newest_source", "model_released", "training_cutoff"):
        if (text := getattr(attestation, name)) is not None:
            try:
                spans.span(text, name)
            except Refused:
                what = unlike(f"a year, month, day or instant as {name} of an attestation", named(text))
                raise Corrupt(position, what) from None


def check_forecasts(forecasts: Forecasts, lengths: Int64Array, questions: Sequence[Asked]) -> None:
    """Raise Corrupt at a forecast that is no distribution over its question's outcomes, or outside the calendar.

    forecasts: in log order. lengths: how many numbers each row has, shape (n,). questions: what they are asked for.
    """
    position, at, chances, asked = forecasts.position, forecasts.at, forecasts.chances, forecasts.question
    refute(position, (at < FIRST_INSTANT) | (at > LAST_INSTANT), lambda row: unlike(CALENDAR, instant(int(at[row]))))
    widths = column([each.width for each in questions])[asked] * forecasts.made
    refute(
        position,
        lengths != widths,
        lambda row: unlike(f"{widths[row]} numbers, one for each outcome, edge or level", str(lengths[row])),
    )
    some = chosen(lengths > 0)
    position, starts, asked = position[some], forecasts.start[some], asked[some]
    if not len(starts):
        return
    greatest = column([each.greatest for each in questions])[asked]
    least = np.where(greatest == LARGEST_MEASURE, -greatest, 0)
    lowest, highest = np.minimum.reduceat(chances, starts), np.maximum.reduceat(chances, starts)

    def numbers(row: int, *them: np.int64) -> list[str]:
        return [fixed(int(number), questions[asked[row]].unit) for number in them]

    def beyond(row: int) -> str:
        low, high, below, above = numbers(row, least[row], greatest[row], lowest[row], highest[row])
        return unlike(f"numbers from {low} to {high}", f"{below} to {above}")

    refute(position, (lowest < least) | (highest > greatest), beyond)
    sums = np.add.reduceat(chances, starts)
    named_outcomes = greatest == PROBABILITY
    refute(
        position,
        named_outcomes & (sums != PROBABILITY),
        lambda row: unlike("probabilities that sum to 1", numbers(row, sums[row])[0]),
    )
    steps = np.diff(chances, prepend=0)
    steps[starts] = 0

    def falling(row: int) -> str:
        place = int(starts[row]) + int(np.flatnonzero(steps[starts[row] :] < 0)[0])
        return unlike(
            "a cdf, or quantiles, that never fall", " and then ".join(numbers(row, *chances[place - 1 : place + 1]))
        )

    refute(position, ~named_outcomes & (np.minimum.reduceat(steps, starts) < 0), falling)


def check_open(found: Facts, forecasts: Forecasts) -> None:
    """Raise Corrupt where a forecast or withdrawal comes to a question that is settled by then, or closed at its at."""
    if not len(forecasts.position):
        return
    position, at = forecasts.position, forecasts.at
    scheduled = column([each.closes_at for each in found.questions])
    early = [(question, position, at) for position, question, at in found.closings]
    closed_at = _latest(scheduled, early, forecasts)
    refute(
        position,
        at >= closed_at,
        lambda row: unlike(
            f"a forecast or withdrawal before {instant(int(closed_at[row]))}, the close", instant(int(at[row]))
        ),
    )
    settled = [(each.question, each.position, int(each.settles)) for each in found.settlements]
    refute(
        position,
        _latest(np.zeros_like(scheduled), settled, forecasts) > 0,
        lambda row: unanswered(found, int(forecasts.question[row]), int(position[row])),
    )


def _latest(first: Int64Array, later: list[tuple[int, int, int]], forecasts: Forecasts) -> Int64Array:
    """The last number of each forecast's question before it: its first one, or a later (question code, log position,
    number).
    """
    before: Int64Array = first[forecasts.question]
    if later:
        question, position, number = (column(list(values)) for values in zip(*sorted(later), strict=True))
        wide = max(int(forecasts.position.max()), int(position.max())) + 1
        changed_at = np.full(len(first), wide)
        np.minimum.at(changed_at, question, position)
        rows = np.flatnonzero(forecasts.position > changed_at[forecasts.question])
        asked = forecasts.question[rows] * wide + forecasts.position[rows]
        before[rows] = number[np.searchsorted(question * wide + position, asked) - 1]
    return before


def check_order(position: Int64Array, same: BoolArray, at: Int64Array, made: BoolArray) -> None:
    """Raise Corrupt where a participant's forecast or withdrawal is earlier than the one before on that question, or
    where there is nothing to withdraw.

    made: whether each row is a forecast; shape (n,). same: whether each but the first has question and participant of
    the row before; shape (n - 1,).
    """
    refute(
        position[1:],
        same & (at[1:] < at[:-1]),
        lambda row: unlike(
            f"an instant from {instant(int(at[row]))} on, of the participant's last one on the question",
            instant(int(at[row + 1])),
        ),
    )
    stood = np.append(False, same & made[:-1])[: len(made)]
    nothing = unlike("a forecast of the participant's on the question to withdraw", "none that stands")
    refute(position, ~made & ~stood, lambda _: nothing)


def refute(position: Int64Array, wrong: BoolArray, what: Callable[[int], str]) -> None:
    """Raise Corrupt at the first position where something is wrong; what: of a row, by its place in the columns."""
    if wrong.any():
        rows = np.flatnonzero(wrong)
        row = int(rows[position[rows].argmin()])
        raise Corrupt(int(position[row]), what(row))
