"""Tests of distributions given as points, and of the interpolation between them."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.batching.sealed_state import apply_segment
from forecast_ledger.ledger.batching.writer_state import WriterState
from forecast_ledger.ledger.core.errors import Corrupt, Refused
from forecast_ledger.ledger.core.values import CUMULATIVE
from forecast_ledger.ledger.deciding.distributions import METHODS, cdf_of_points, cdf_through, read_points
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.commands import AnyCommand, Points, Range, SubmitForecast
from forecast_ledger.ledger.model.events import NumericRange
from forecast_ledger.ledger.model.forms import Method
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
WHEN = opened("when", kind="date", range=Range(lower="2026-01-01", upper="2026-01-05", bins=4, open_upper=True))


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


Pairs = Sequence[tuple[Any, Any]]
EXACT: tuple[Method, ...] = ("linear", "monotone_cubic")  # methods that pass through the points


def units(height: Any) -> int:
    """A height in 1e-10, rounded half-even by Python."""
    return round(Fraction(height) * CUMULATIVE)


def span(lower: Any = 0, upper: Any = 4, bins: int = 4, zero_point: str | None = None, ends: str = "") -> NumericRange:
    """A range; ends: which are open, of "lower" and "upper"."""
    return NumericRange(
        lower=str(lower),
        upper=str(upper),
        bins=bins,
        open_lower="lower" in ends,
        open_upper="upper" in ends,
        zero_point=zero_point,
    )


def cdf(method: Method, points: Pairs, of: NumericRange) -> list[int]:
    """The cdf of points, each a value and a level."""
    return cdf_through([(Decimal(str(value)), units(level)) for value, level in points], of, method)


BETWEEN = [(1, "0.2"), (3, "0.6")]
BY_HAND: dict[str, tuple[Pairs, NumericRange, list[str]]] = {
    "closed ends have 0 and 1": (BETWEEN, span(), ["0", "0.2", "0.4", "0.6", "1"]),
    "half of what is left lies beyond an open end": (
        BETWEEN,
        span(ends="lower upper"),
        ["0.1", "0.2", "0.4", "0.6", "0.8"],
    ),
    "one open end": (BETWEEN, span(ends="upper"), ["0", "0.2", "0.4", "0.6", "0.8"]),
    "a point beyond an open end is joined across it": (
        [(-1, "0.1"), (1, "0.5"), (3, "0.9")],
        span(ends="lower"),
        ["0.3", "0.5", "0.7", "0.9", "1"],
    ),
    "a point on an open end says what lies beyond it": (
        [(0, "0.3"), (4, "0.7")],
        span(ends="lower upper"),
        ["0.3", "0.4", "0.5", "0.6", "0.7"],
    ),
    "all points beyond one end": ([(6, "0.5"), (8, "0.6")], span(ends="upper"), ["0", "1/12", "2/12", "3/12", "4/12"]),
    "one point": ([(1, "0.5")], span(), ["0", "0.5", "2/3", "5/6", "1"]),
    "a point mass on an edge is in the bin below": (
        [(2, "0.3"), (2, "0.7")],
        span(),
        ["0", "0.15", "0.7", "0.85", "1"],
    ),
    "a point mass inside a bin": ([("1.5", "0.3"), ("1.5", "0.9")], span(), ["0", "0.2", "0.92", "0.96", "1"]),
    "three equal values": ([(2, "0.3"), (2, "0.4"), (2, "0.7")], span(), ["0", "0.15", "0.7", "0.85", "1"]),
    "a point mass on a closed lower bound is in the first bin": (
        [(0, "0.3"), (2, "0.5")],
        span(),
        ["0", "0.4", "0.5", "0.75", "1"],
    ),
    "a point mass on an open lower bound is in the first bin": (
        [(0, "0.1"), (0, "0.3"), (2, "0.5")],
        span(ends="lower"),
        ["0.1", "0.4", "0.5", "0.75", "1"],
    ),
    "a point mass on a closed upper bound is in the last bin": (
        [(2, "0.5"), (4, "0.9")],
        span(),
        ["0", "0.25", "0.5", "0.7", "1"],
    ),
    "a point mass on an open upper bound is in the last bin": (
        [(2, "0.5"), (4, "0.6"), (4, "0.9")],
        span(ends="upper"),
        ["0", "0.25", "0.5", "0.55", "0.9"],
    ),
    "bins of a log scale are equal in the logarithm": (
        [(10, "0.2"), (1000, "0.6")],
        span(1, 10_000, 4, zero_point="0"),
        ["0", "0.2", "0.4", "0.6", "1"],
    ),
    "a log scale that is far from its zero point is nearly linear": (
        BETWEEN,
        span(zero_point="-3" + "0" * 25),
        ["0", "0.2", "0.4", "0.6", "1"],
    ),
    "a log scale beyond its open end": (
        [("0.1", "0.1"), (10, "0.5")],
        span(1, 100, 2, zero_point="0", ends="lower"),
        ["0.3", "0.5", "1"],
    ),
    "a log scale below its zero point": (
        [(9_000, "0.2"), (9_900, "0.6")],
        span(0, 9_990, 3, zero_point="10000"),
        ["0", "0.2", "0.6", "1"],
    ),
    "a point on a discrete value divides it": ([(1, "0.5")], span("-0.5", "2.5", 3), ["0", "1/3", "2/3", "1"]),
    "equal points on a discrete value are its probability": (
        [(1, "0.2"), (1, "0.8")],
        span("-0.5", "2.5", 3),
        ["0", "2/15", "13/15", "1"],
    ),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_lines_join_the_points(case: str) -> None:
    """The quantile function is linear between the points: each height is worked out by hand."""
    points, of, expected = BY_HAND[case]
    assert cdf("linear", points, of) == [units(height) for height in expected]


def test_a_value_on_a_log_scale_lies_at_its_logarithm() -> None:
    """With half below 20 on a scale from 1 to 10,000, log10(20) bins have that half; 10 is one bin away."""
    [_, first, *_] = cdf("linear", [(20, "0.5")], span(1, 10_000, 4, zero_point="0"))
    assert first == units(Fraction(1, 2) / Fraction(Decimal(20).log10()))


def test_a_cubic_has_weighted_harmonic_means_as_slopes() -> None:
    """The points (0, 0), (1, 0.2), (3, 0.6), (4, 1) have lines of slopes 0.2, 0.2, 0.4.

    The slope at 1 is 0.2. At 3, with widths 2 and 1, the weights are 4 and 5: 9 / (4/0.2 + 5/0.4) = 18/65. At the ends,
    the parabola through three points has (4 x 0.2 - 0.2) / 3 = 0.2 and (4 x 0.4 - 0.2) / 3 = 7/15. In the middle of
    an interval, a cubic is the mean of its ends and an eighth of the width times the difference of the slopes.
    """
    middle = Fraction(2, 5) + Fraction(2, 8) * (Fraction(1, 5) - Fraction(18, 65))
    last = Fraction(4, 5) + Fraction(1, 8) * (Fraction(18, 65) - Fraction(7, 15))
    assert cdf("monotone_cubic", BETWEEN, span()) == [*map(units, ("0", "0.2", middle, "0.6", "1"))]
    assert cdf("monotone_cubic", BETWEEN, span(bins=8))[7] == units(last)
    # at 3.25, a quarter of the way: the four polynomials of Hermite are 27/32, 5/32, 9/64 and -3/64
    quarter = Fraction(27, 32) * Fraction(3, 5) + Fraction(5, 32) + Fraction(9, 64) * Fraction(18, 65)
    quarter -= Fraction(3, 64) * Fraction(7, 15)
    assert cdf("monotone_cubic", BETWEEN, span(bins=16))[13] == units(quarter)


def test_a_slope_at_an_end_is_never_below_0() -> None:
    """Lines of slopes 0.1 and 0.8: the parabola would begin with (3 x 0.1 - 0.8) / 2 = -0.25.

    The slope at 1 is 6 / (3/0.1 + 3/0.8) = 8/45; at 0.5 the height is 0.05 + (0 - 8/45) / 8.
    """
    steep = cdf("monotone_cubic", [(1, "0.1"), (2, "0.9")], span(bins=8))
    assert steep[1] == units(Fraction(1, 20) - Fraction(1, 45))


def test_two_points_are_joined_by_a_line() -> None:
    """One point on a closed end, and the other end: there is no third point for a parabola."""
    assert cdf("monotone_cubic", [(0, "0.2")], span()) == [*map(units, ("0", "0.4", "0.6", "0.8", "1"))]


def test_a_point_mass_begins_a_new_cubic() -> None:
    """What lies above the mass does not bend the curve below it: half of the range is the cubic of that half."""
    below = [(1, "0.1"), (2, "0.4")]
    whole = cdf("monotone_cubic", [*below, (2, "0.8"), (3, "0.85")], span(bins=8))
    other = cdf("monotone_cubic", [*below, (2, "0.6"), ("3.5", "0.9")], span(bins=8))
    assert whole[:4] == other[:4]
    assert (whole[4], other[4]) == (units("0.8"), units("0.6"))
    # (0, 0), (1, 0.1), (2, 0.4): slopes (3 x 0.1 - 0.3) / 2 = 0 and 6 / (3/0.1 + 3/0.3) = 0.15
    assert whole[1] == units(Fraction(1, 20) - Fraction(15, 800))


def test_metaculus_spreads_a_hundredth_over_the_range_and_a_thousandth_beyond_each_open_end() -> None:
    """0.988 F(x) + 0.01 x + 0.001 with two open ends, x from 0 to 1; F is linear: 0.1, 0.2, 0.4, 0.6, 0.8."""
    expected = ["0.0998", "0.2011", "0.4012", "0.6013", "0.8014"]
    assert cdf("metaculus-2026-04", BETWEEN, span(ends="lower upper")) == [*map(units, expected)]
    one_open = [Fraction(989, 1000) * Fraction(height) for height in ("0", "0.2", "0.4", "0.6", "0.8")]
    even = [Fraction(place, 400) for place in range(5)]
    expected_of_one = [units(height + part) for height, part in zip(one_open, even, strict=True)]
    assert cdf("metaculus-2026-04", BETWEEN, span(ends="upper")) == expected_of_one


@pytest.mark.parametrize(("upper", "margin"), [(200, 1), (100, 1), (40, Fraction(2, 5))])
def test_metaculus_keeps_points_away_from_closed_ends(upper: int, margin: Fraction) -> None:
    """By 1, or by 1% of a range up to 100. At a quarter of the range, F is on the line from there to the median."""
    made = cdf("metaculus-2026-04", [(0, "0.1"), (upper // 2, "0.5"), (upper, "0.9")], span(0, upper, 4))
    along = (Fraction(upper, 4) - margin) / (Fraction(upper, 2) - margin)
    line = Fraction(1, 10) + Fraction(4, 10) * along
    quarter = Fraction(99, 100) * line + Fraction(1, 400)
    assert made == [0, units(quarter), units("0.5"), CUMULATIVE - units(quarter), CUMULATIVE]


def test_metaculus_bounds_the_greatest_step() -> None:
    """Of 200 bins, one that has more than 0.19 has 0.19, and the others more, in proportion."""
    made = cdf("metaculus-2026-04", [("100.2", "0.1"), ("100.8", "0.9")], span(0, 200, 200))
    below = Fraction(99, 100) * Fraction(1, 10) * Fraction(1000, 1002) + Fraction(1, 200)
    above = Fraction(99, 100) * Fraction(1, 10) * Fraction(990, 992) + Fraction(99, 20_000)
    scale = Fraction(81, 100) / (below + above)
    assert (made[100], made[101] - made[100]) == (units(below * scale), units("0.19"))
    assert (made[0], made[200]) == (0, CUMULATIVE)


def test_metaculus_bounds_a_step_that_grows_beyond_the_bound() -> None:
    """0.6 in one bin is cut to 0.19; then 0.15 in another would be more than twice that, and is cut to 0.19 too."""
    points = [("50.2", "0.1"), ("50.8", "0.7"), ("150.2", "0.8"), ("150.8", "0.95")]
    made = cdf("metaculus-2026-04", points, span(0, 200, 200))
    steps = sorted(after - before for before, after in pairwise(made))
    assert [round(step, -1) for step in steps[-2:]] == [units("0.19")] * 2
    assert steps[-3] < units("0.19") // 10
    assert (made[0], made[200]) == (0, CUMULATIVE)


@st.composite
def ranges(draw: st.DrawFn) -> tuple[list[tuple[int, int]], NumericRange]:
    """Points on edges of bins: the number of an edge, also beyond open ends, and a level in 1e-9; and a range."""
    bins, open_lower, open_upper = draw(st.integers(2, 30)), draw(st.booleans()), draw(st.booleans())
    least, most = -5 if open_lower else 0, bins + 5 if open_upper else bins
    places = sorted(draw(st.lists(st.integers(least, most), min_size=1, max_size=9)))
    level = st.integers(1, 10**9 - 1)
    levels = sorted(draw(st.lists(level, min_size=len(places), max_size=len(places), unique=True)))
    of = span(0, bins, bins, ends="lower" * open_lower + "upper" * open_upper)
    return [*zip(places, levels, strict=True)], of


@examples(ranges(), st.sampled_from(tuple(METHODS)))
def test_every_cdf_rises_between_its_ends(case: tuple[list[tuple[int, int]], NumericRange], method: Method) -> None:
    """A cdf does not fall, is 0 and 1 at closed ends, and within 0 and 1 at open ones."""
    points, of = case
    made = cdf_through([(Decimal(place), 10 * level) for place, level in points], of, method)
    assert made == sorted(made)
    assert len(made) == of.bins + 1
    assert made[0] == 0 or of.open_lower
    assert made[-1] == CUMULATIVE or of.open_upper
    assert 0 <= made[0] <= made[-1] <= CUMULATIVE
    if method == "metaculus-2026-04":
        assert all(after - before > 0 for before, after in pairwise(made))


@examples(ranges(), st.sampled_from(EXACT))
def test_a_cdf_passes_through_its_points(case: tuple[list[tuple[int, int]], NumericRange], method: Method) -> None:
    """On an edge it has the greatest level there, on the lower bound the least; an open end has half."""
    points, of = case
    made = cdf_through([(Decimal(place), 10 * level) for place, level in points], of, method)
    by_place = {place: level for place, level in points if 0 < place < of.bins}
    assert {place: made[place] for place in by_place} == {place: 10 * level for place, level in by_place.items()}
    if of.open_lower and points[0][0] >= 0:
        assert made[0] == (10 if points[0][0] == 0 else 5) * points[0][1]
    if of.open_upper and points[-1][0] <= of.bins:
        beyond = 10**9 - points[-1][1]
        assert CUMULATIVE - made[-1] == (10 if points[-1][0] == of.bins else 5) * beyond


@examples(ranges(), st.sampled_from(EXACT), st.integers(-(10**6), 10**6), st.decimals("0.001", 1000, places=3))
def test_a_cdf_does_not_depend_on_the_unit(
    case: tuple[list[tuple[int, int]], NumericRange], method: Method, zero: int, factor: Decimal
) -> None:
    """Degrees Celsius or Fahrenheit, kilometres or miles: the same places in the range give the same cdf."""
    points, of = case
    other = NumericRange(
        lower=str(zero),
        upper=str(zero + factor * of.bins),
        bins=of.bins,
        open_lower=of.open_lower,
        open_upper=of.open_upper,
    )
    moved = [(zero + factor * place, 10 * level) for place, level in points]
    assert cdf_through(moved, other, method) == cdf_through(
        [(Decimal(p), 10 * level) for p, level in points], of, method
    )


@examples(ranges(), st.sampled_from(EXACT))
def test_a_cdf_turns_with_its_range(case: tuple[list[tuple[int, int]], NumericRange], method: Method) -> None:
    """Counted from the other end, the same distribution has the same heights, if no two points share a place."""
    points, of = case
    places = [place for place, _ in points]
    if len({*places}) < len(places) or {0, of.bins} & {*places}:
        return
    turned = NumericRange(lower="0", upper=of.upper, bins=of.bins, open_lower=of.open_upper, open_upper=of.open_lower)
    back = [(Decimal(of.bins - place), 10 * (10**9 - level)) for place, level in reversed(points)]
    made = cdf_through([(Decimal(place), 10 * level) for place, level in points], of, method)
    assert cdf_through(back, turned, method) == [CUMULATIVE - height for height in reversed(made)]
