"""The median of the standing forecasts, over time."""

import sys
import tracemalloc
from bisect import insort
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.values import format_fixed, format_instant
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.scores import consensus
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import choices, closing, day, forecast, numeric, opened, resolution, revocation, withdrawal

LARGEST = 10**10
APART = 10**6  # how far the instants of one group lie from those of the next

Interval = tuple[int, int, int, int]  # start, end, group, value
Row = tuple[int, int, int, int]  # instant, number of standing forecasts, the two middle values

MOST = LARGEST * 3 // 2  # with half the uniform density added to the only bin
VALUES = st.sampled_from([0, 1, 2, 5, LARGEST - 1, LARGEST, MOST]) | st.integers(0, LARGEST)
INSTANTS = st.integers(0, 12)


def column(values: Sequence[int]) -> Int64Array:
    """Return values as a column."""
    return np.array(values, np.int64)


def medians_of(rows: Sequence[Interval]) -> consensus.Consensus:
    """Return the running median of these intervals."""
    start, end, group, value = (column([row[i] for row in rows]) for i in range(4))
    return consensus.medians(start, end, group, value)


def fast(rows: Sequence[Interval]) -> list[Row]:
    """Return the rows that the module computes."""
    return list(zip(*(part.tolist() for part in medians_of(rows)[:4]), strict=True))


def slow(rows: Sequence[Interval]) -> list[Row]:
    """Return the rows by definition: sort the standing values at each instant of change."""
    table = []
    for instant in sorted({row[0] for row in rows} | {row[1] for row in rows}):
        stands = sorted(value for start, end, _, value in rows if start <= instant < end)
        middle = (stands[(len(stands) - 1) // 2], stands[len(stands) // 2]) if stands else (0, 0)
        table.append((instant, len(stands), *middle))
    return table


@st.composite
def intervals(draw: st.DrawFn) -> list[Interval]:
    """Draw intervals of a few groups on few instants, so that many begin and end together."""
    rows = []
    for group in range(draw(st.integers(1, 3))):
        for _ in range(draw(st.integers(0, 9))):
            start, end = sorted(draw(st.lists(INSTANTS, min_size=2, max_size=2, unique=True)))
            rows.append((start + group * APART, end + group * APART, group, draw(VALUES)))
    return draw(st.permutations(rows))


@settings(max_examples=times(150), deadline=None)
@given(intervals())
def test_the_median_is_the_middle_of_the_standing_values(rows: list[Interval]) -> None:
    """An even number has two middle values, an odd one the same value twice, none (0, 0)."""
    assert fast(rows) == slow(rows)


@given(st.lists(st.tuples(st.booleans(), st.lists(VALUES, min_size=1, max_size=9)), min_size=1, max_size=4))
@example([(False, [10]), (True, [40])])
def test_a_group_that_stands_at_once_has_the_median_of_its_values(groups: list[tuple[bool, list[int]]]) -> None:
    """A group may return, and then it does not stand at once."""
    rows = [
        (2 * i, 2 * i + 1, i % 2 if again else i + 4, value) for i, (again, own) in enumerate(groups) for value in own
    ]
    assert fast(rows) == slow(rows)
    start, end, group, value = (column([row[i] for row in rows]) for i in range(4))
    near = consensus.neighbours(start, end, group, value)
    for place, own in enumerate(sorted(values) for _, values in groups):
        middle = (len(own) - 1) // 2
        beside = own[max(middle - 1, 0)], own[middle], own[min(middle + 1, len(own) - 1)]
        assert tuple(int(values[2 * place]) for values in near[1:]) == beside


@settings(max_examples=times(100), deadline=None)
@given(intervals(), st.booleans())
def test_neighbours_are_the_middle_value_and_the_values_next_to_it(rows: list[Interval], reuse: bool) -> None:
    """The middle of an even number is the lower one; without a value next to it, it is its own neighbour."""
    start, end, group, value = (column([row[i] for row in rows]) for i in range(4))
    near = consensus.neighbours(start, end, group, value, consensus.changes(start, end) if reuse and rows else None)
    table = []
    for instant in sorted({row[0] for row in rows} | {row[1] for row in rows}):
        stands = sorted(value for start, end, _, value in rows if start <= instant < end)
        middle = (len(stands) - 1) // 2
        places = (max(middle - 1, 0), middle, min(middle + 1, len(stands) - 1))
        table.append((instant, *((stands[place] for place in places) if stands else (0, 0, 0))))
    assert list(zip(*(part.tolist() for part in near), strict=True)) == table


@settings(max_examples=times(50), deadline=None)
@given(intervals())
def test_each_interval_has_the_instants_at_which_it_begins_and_ends(rows: list[Interval]) -> None:
    """They are indices of the instants of change."""
    medians = medians_of(rows)
    assert medians.instant[medians.begins].tolist() == [row[0] for row in rows]
    assert medians.instant[medians.ends].tolist() == [row[1] for row in rows]


@settings(max_examples=times(50), deadline=None)
@given(intervals())
def test_medians_from_given_changes_are_the_same(rows: list[Interval]) -> None:
    """The changes are in order of time, and each instant has its last change."""
    if not rows:
        return
    start, end, group, value = (column([row[i] for row in rows]) for i in range(4))
    ordered = consensus.changes(start, end)
    reused = consensus.medians(start, end, group, value, ordered)
    assert all(np.array_equal(*columns) for columns in zip(reused, medians_of(rows), strict=True))
    times = np.concatenate([start, end])[ordered.order]
    assert times.tolist() == sorted(times.tolist())
    assert times[ordered.last].tolist() == ordered.instant.tolist() == sorted(set(times.tolist()))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_median_of_a_thousand_is_their_middle(seed: int) -> None:
    """Three groups of random intervals, with repeated values, are compared with sorting at every instant."""
    choose = Random(seed)
    rows = []
    for _ in range(1_000):
        group = choose.randrange(3)
        start, end = sorted(choose.sample(range(700), 2))
        value = choose.choice([choose.randrange(LARGEST + 1), choose.randrange(4)])
        rows.append((start + group * APART, end + group * APART, group, value))
    assert fast(rows) == slow(rows)


def test_the_median_of_more_values_than_sixteen_bits_hold_is_their_middle() -> None:
    """32,769 values, a new one at each instant, are compared with a sorted list."""
    values = Random(7).sample(range(LARGEST), 2**15 + 1)
    rows = fast([(i, len(values), 0, value) for i, value in enumerate(values)])
    standing: list[int] = []
    for i, value in enumerate(values):
        insort(standing, value)
        if i % 97 == 0:
            assert rows[i] == (i, i + 1, standing[i // 2], standing[(i + 1) // 2])


def test_without_intervals_there_is_no_median() -> None:
    """There is no instant of change."""
    assert fast([]) == []


def test_one_forecast_is_its_own_median() -> None:
    """It is the median until it ends, when nothing stands."""
    assert fast([(3, 8, 0, 7)]) == [(3, 1, 7, 7), (8, 0, 0, 0)]


def test_two_values_are_low_and_high_and_equal_values_are_both() -> None:
    """The caller computes the mean of low and high."""
    assert fast([(0, 9, 0, 40), (0, 9, 0, 10)]) == [(0, 2, 10, 40), (9, 0, 0, 0)]
    assert fast([(0, 9, 0, 5)] * 4) == [(0, 4, 5, 5), (9, 0, 0, 0)]


def test_an_end_and_a_begin_at_one_instant_change_the_median_once() -> None:
    """At that instant the new forecast stands and the old ones do not."""
    assert fast([(0, 5, 0, 10), (0, 5, 0, 20), (5, 9, 0, 70)]) == [(0, 2, 10, 20), (5, 1, 70, 70), (9, 0, 0, 0)]


def test_a_gap_has_no_median() -> None:
    """From the last withdrawal to the next forecast nothing stands."""
    assert fast([(0, 2, 0, 10), (6, 9, 0, 20)]) == [(0, 1, 10, 10), (2, 0, 0, 0), (6, 1, 20, 20), (9, 0, 0, 0)]


def test_groups_have_separate_medians() -> None:
    """A group may have no values."""
    rows = [(0, 2, 0, LARGEST), (10, 12, 2, 3), (10, 12, 2, 4)]
    assert fast(rows) == [(0, 1, LARGEST, LARGEST), (2, 0, 0, 0), (10, 2, 3, 4), (12, 0, 0, 0)]


def cost(count: int) -> tuple[int, int]:
    """Return the calls and the peak of memory for the medians of `count` forecasts with random ends."""
    values = np.random.default_rng(count).permutation(2 * count)
    start, end = np.arange(count), np.arange(count) + 1 + values[:count]
    calls = [0]

    def count_call(*_: object) -> None:
        calls[0] += 1

    before = sys.getprofile()
    tracemalloc.start()
    sys.setprofile(count_call)
    try:
        consensus.medians(start, end, np.zeros(count, np.int64), values[:count])
    finally:
        sys.setprofile(before)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return calls[0], peak


def test_four_times_the_forecasts_cost_little_more_than_four_times_as_much() -> None:
    """Whole columns are processed in about log n rounds; no call is made for each forecast, no table is n by n."""
    cost(10)
    (few_calls, few_bytes), (calls, size) = cost(1_000), cost(4_000)
    assert 0 < calls < 2 * few_calls
    assert 0 < size < 6 * few_bytes


def rows(*commands: AnyCommand) -> list[tuple[str, ...]]:
    """Return the table `consensus`: question, outcome, from, to, count, median."""
    table = oracle.projected(*commands).table("consensus")
    return [tuple(str(value) for value in row.values()) for row in table.rows()]


def test_the_table_holds_the_median_of_every_outcome() -> None:
    """The median of 0.1 and 0.4 is 0.25; halves of a billionth are kept."""
    commands: list[AnyCommand] = [
        opened(),
        forecast(probability="0.1", at=day(8)),
        forecast(participant="bob", probability="0.4", at=day(12)),
        forecast(probability="0.100000001", at=day(14)),
    ]
    assert rows(*commands) == [
        ("rain", "no", "2026-03-10T00:00:00Z", "2026-03-12T00:00:00Z", "1", "0.9"),
        ("rain", "no", "2026-03-12T00:00:00Z", "2026-03-14T00:00:00Z", "2", "0.75"),
        ("rain", "no", "2026-03-14T00:00:00Z", "2026-03-20T00:00:00Z", "2", "0.7499999995"),
        ("rain", "yes", "2026-03-10T00:00:00Z", "2026-03-12T00:00:00Z", "1", "0.1"),
        ("rain", "yes", "2026-03-12T00:00:00Z", "2026-03-14T00:00:00Z", "2", "0.25"),
        ("rain", "yes", "2026-03-14T00:00:00Z", "2026-03-20T00:00:00Z", "2", "0.2500000005"),
    ]


def test_a_gap_has_no_row() -> None:
    """There is no row after an early close either."""
    commands: list[AnyCommand] = [
        forecast(at=day(11)),
        withdrawal(at=day(12)),
        forecast(at=day(14)),
        closing(at=day(15)),
    ]
    spans = [row[2:] for row in rows(opened(), *commands) if row[1] == "yes"]
    assert spans == [
        ("2026-03-11T00:00:00Z", "2026-03-12T00:00:00Z", "1", "0.7"),
        ("2026-03-14T00:00:00Z", "2026-03-15T00:00:00Z", "1", "0.7"),
    ]


def test_each_outcome_of_several_has_its_own_median() -> None:
    """Medians of several outcomes need not add up to one."""
    commands: list[AnyCommand] = [
        forecast("colour", who, probabilities={"red": red, "green": green, "blue": blue})
        for who, red, green, blue in [("ada", "0.6", "0.3", "0.1"), ("bob", "0.2", "0.7", "0.1"), ("cyd", 0, 0, 1)]
    ]
    medians = [(row[1], row[5]) for row in rows(choices(), *commands)]
    assert medians == [("blue", "0.1"), ("green", "0.3"), ("red", "0.2")]


def test_a_numeric_question_has_the_median_of_the_bin_with_its_answer() -> None:
    """There is none before it is resolved or after the resolution is revoked; below the range the bin is 0."""
    commands: list[AnyCommand] = [numeric(open_lower=True), forecast("depth", cdf=("0.05", "0.25", "0.5", "0.75", "1"))]
    assert rows(*commands) == []
    first: list[AnyCommand] = [*commands, resolution("depth", value="2.5")]
    assert [(row[1], row[5]) for row in rows(*first)] == [("3", "0.25")]
    assert rows(*first, revocation("depth")) == []
    again: list[AnyCommand] = [*first, revocation("depth"), resolution("depth", value="-1")]
    assert [(row[1], row[5]) for row in rows(*again)] == [("0", "0.05")]


def slow_table(world: oracle.World) -> list[tuple[str, ...]]:
    """Return the table by definition."""
    table: list[tuple[str, ...]] = []
    for name, question in sorted(world.questions.items()):
        outcomes = {label: outcome for outcome, label in enumerate(question.opened.outcomes)}
        if question.opened.range and question.resolved:
            outcomes = {str(question.resolved.outcome): question.resolved.outcome}
        for label in sorted(outcomes):
            for start, end, count, middle in oracle.consensus(question, outcomes[label]):
                printed = format_fixed(int(middle * 10**11), 10**11)
                table.append((name, label, format_instant(start), format_instant(end), str(count), printed))
    return table


@settings(max_examples=times(50), deadline=None)
@given(oracle.logs(), st.sampled_from([1, 7, 1 << 20]))
def test_the_table_agrees_with_the_slow_definition(commands: list[AnyCommand], chunk: int) -> None:
    """There is one row while the same forecasts stand, for logs of all kinds and chunks of any size."""
    recorded, _ = oracle.attempted(commands)
    table = Projections(oracle.facts_in(recorded), chunk).table("consensus")
    assert [tuple(str(value) for value in row.values()) for row in table.rows()] == slow_table(oracle.world(recorded))
