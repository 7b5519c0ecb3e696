"""The median of what stands, over time."""

import sys
import tracemalloc
from bisect import insort
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.values import format_fixed, format_instant
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.references import consensus
from tests.support import oracle
from tests.support.given import choices, closing, day, forecast, numeric, opened, resolution, revocation, withdrawal

LARGEST = 10**10
APART = 10**6  # how far the instants of one group lie from those of the next

Interval = tuple[int, int, int, int]  # start, end, group, value
Row = tuple[int, int, int, int]  # instant, how many stand, the two middle values

MOST = LARGEST * 3 // 2  # with half the uniform density added to the only bin
VALUES = st.sampled_from([0, 1, 2, 5, LARGEST - 1, LARGEST, MOST]) | st.integers(0, LARGEST)
INSTANTS = st.integers(0, 12)


def column(values: Sequence[int]) -> Int64Array:
    """Values as a column."""
    return np.array(values, np.int64)


def found(rows: Sequence[Interval]) -> consensus.Consensus:
    """The running median of these intervals."""
    start, end, group, value = (column([row[i] for row in rows]) for i in range(4))
    return consensus.medians(start, end, group, value)


def fast(rows: Sequence[Interval]) -> list[Row]:
    """What the code says."""
    return list(zip(*(part.tolist() for part in found(rows)[:4]), strict=True))


def slow(rows: Sequence[Interval]) -> list[Row]:
    """By definition: at each instant of change, sort what stands and look at its middle."""
    table = []
    for instant in sorted({row[0] for row in rows} | {row[1] for row in rows}):
        stands = sorted(value for start, end, _, value in rows if start <= instant < end)
        middle = (stands[(len(stands) - 1) // 2], stands[len(stands) // 2]) if stands else (0, 0)
        table.append((instant, len(stands), *middle))
    return table


@st.composite
def intervals(draw: st.DrawFn) -> list[Interval]:
    """Intervals of a few groups on few instants, so that many begin and end together."""
    rows = []
    for group in range(draw(st.integers(1, 3))):
        for _ in range(draw(st.integers(0, 9))):
            start, end = sorted(draw(st.lists(INSTANTS, min_size=2, max_size=2, unique=True)))
            rows.append((start + group * APART, end + group * APART, group, draw(VALUES)))
    return draw(st.permutations(rows))


@settings(max_examples=300, deadline=None)
@given(intervals())
def test_the_median_is_the_middle_of_what_stands(rows: list[Interval]) -> None:
    """The middle two of an even number, the same twice of an odd one, (0, 0) of nothing."""
    assert fast(rows) == slow(rows)


@given(st.lists(st.tuples(st.booleans(), st.lists(VALUES, min_size=1, max_size=9)), min_size=1, max_size=4))
def test_what_stands_all_at_once_has_the_median_of_its_values(groups: list[tuple[bool, list[int]]]) -> None:
    """Also where a group comes back, and so does not stand at once."""
    rows = [
        (2 * i, 2 * i + 1, i % 2 if again else i + 4, value) for i, (again, own) in enumerate(groups) for value in own
    ]
    assert fast(rows) == slow(rows)
    start, end, group, value = (column([row[i] for row in rows]) for i in range(4))
    near = consensus.neighbours(start, end, group, value)
    for place, own in enumerate(sorted(values) for _, values in groups):
        middle = (len(own) - 1) // 2
        beside = own[max(middle - 1, 0)], own[middle], own[min(middle + 1, len(own) - 1)]
        assert tuple(int(each[2 * place]) for each in near[1:]) == beside


@settings(max_examples=200, deadline=None)
@given(intervals(), st.booleans())
def test_neighbours_are_the_middle_of_what_stands_and_the_ones_beside_it(rows: list[Interval], told: bool) -> None:
    """Of an even number the middle is the lower one; beside the first or the last it is itself; told changes or not."""
    start, end, group, value = (column([row[i] for row in rows]) for i in range(4))
    near = consensus.neighbours(start, end, group, value, consensus.changes(start, end) if told and rows else None)
    table = []
    for instant in sorted({row[0] for row in rows} | {row[1] for row in rows}):
        stands = sorted(value for start, end, _, value in rows if start <= instant < end)
        middle = (len(stands) - 1) // 2
        places = (max(middle - 1, 0), middle, min(middle + 1, len(stands) - 1))
        table.append((instant, *((stands[place] for place in places) if stands else (0, 0, 0))))
    assert list(zip(*(part.tolist() for part in near), strict=True)) == table


@settings(max_examples=100, deadline=None)
@given(intervals())
def test_each_interval_knows_the_instants_where_it_begins_and_ends(rows: list[Interval]) -> None:
    """As places among the instants of change."""
    medians = found(rows)
    assert medians.instant[medians.begins].tolist() == [row[0] for row in rows]
    assert medians.instant[medians.ends].tolist() == [row[1] for row in rows]


@settings(max_examples=100, deadline=None)
@given(intervals())
def test_medians_may_be_told_the_changes_they_follow(rows: list[Interval]) -> None:
    """They come out the same; changes are in order of time, each instant with its last one."""
    if not rows:
        return
    start, end, group, value = (column([row[i] for row in rows]) for i in range(4))
    known = consensus.changes(start, end)
    told = consensus.medians(start, end, group, value, known)
    assert all(np.array_equal(one, other) for one, other in zip(told, found(rows), strict=True))
    times = np.concatenate([start, end])[known.order]
    assert times.tolist() == sorted(times.tolist())
    assert times[known.last].tolist() == known.instant.tolist() == sorted(set(times.tolist()))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_median_of_a_thousand_is_the_middle_of_what_stands(seed: int) -> None:
    """Three groups of random intervals, some values many times, against sorting at every instant."""
    choose = Random(seed)
    rows = []
    for _ in range(1_000):
        group = choose.randrange(3)
        start, end = sorted(choose.sample(range(700), 2))
        value = choose.choice([choose.randrange(LARGEST + 1), choose.randrange(4)])
        rows.append((start + group * APART, end + group * APART, group, value))
    assert fast(rows) == slow(rows)


def test_the_median_of_more_values_than_sixteen_bits_hold_is_in_their_middle() -> None:
    """One more than 32,768 values, a new one at each instant, against a sorted list of those there are."""
    values = Random(7).sample(range(LARGEST), 2**15 + 1)
    rows = fast([(i, len(values), 0, value) for i, value in enumerate(values)])
    there: list[int] = []
    for i, value in enumerate(values):
        insort(there, value)
        if i % 97 == 0:
            assert rows[i] == (i, i + 1, there[i // 2], there[(i + 1) // 2])


def test_nothing_has_no_median() -> None:
    """No interval, no instant of change."""
    assert fast([]) == []


def test_one_forecast_is_its_own_median() -> None:
    """Until it ends, when nothing stands."""
    assert fast([(3, 8, 0, 7)]) == [(3, 1, 7, 7), (8, 0, 0, 0)]


def test_the_median_of_two_is_between_them_and_of_equals_is_theirs() -> None:
    """Low and high; their mean is left to the reader."""
    assert fast([(0, 9, 0, 40), (0, 9, 0, 10)]) == [(0, 2, 10, 40), (9, 0, 0, 0)]
    assert fast([(0, 9, 0, 5)] * 4) == [(0, 4, 5, 5), (9, 0, 0, 0)]


def test_what_ends_and_what_begins_at_one_instant_change_the_median_once() -> None:
    """At the instant itself the new stand and the old do not."""
    assert fast([(0, 5, 0, 10), (0, 5, 0, 20), (5, 9, 0, 70)]) == [(0, 2, 10, 20), (5, 1, 70, 70), (9, 0, 0, 0)]


def test_a_gap_has_no_median() -> None:
    """From the last withdrawal to the next forecast nothing stands."""
    assert fast([(0, 2, 0, 10), (6, 9, 0, 20)]) == [(0, 1, 10, 10), (2, 0, 0, 0), (6, 1, 20, 20), (9, 0, 0, 0)]


def test_groups_do_not_see_each_other() -> None:
    """Each has its own values, and a group may be without any."""
    rows = [(0, 2, 0, LARGEST), (10, 12, 2, 3), (10, 12, 2, 4)]
    assert fast(rows) == [(0, 1, LARGEST, LARGEST), (2, 0, 0, 0), (10, 2, 3, 4), (12, 0, 0, 0)]


def cost(count: int) -> tuple[int, int]:
    """Calls made and most bytes held to find the medians of so many forecasts that replace one another at random."""
    values = np.random.default_rng(count).permutation(2 * count)
    start, end = np.arange(count), np.arange(count) + 1 + values[:count]
    calls = [0]

    def counted(*_: object) -> None:
        calls[0] += 1

    before = sys.getprofile()
    tracemalloc.start()
    sys.setprofile(counted)
    try:
        consensus.medians(start, end, np.zeros(count, np.int64), values[:count])
    finally:
        sys.setprofile(before)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return calls[0], peak


def test_four_times_the_forecasts_on_a_question_cost_little_more_than_four_times_as_much() -> None:
    """Whole columns at a time, in about log n rounds: nothing is done once a forecast, and nothing is n by n."""
    cost(10)
    (few_calls, few_bytes), (calls, size) = cost(1_000), cost(4_000)
    assert 0 < calls < 2 * few_calls
    assert 0 < size < 6 * few_bytes


def rows(*said: AnyCommand) -> list[tuple[str, ...]]:
    """The table of consensus: question, outcome, from, to, count, median."""
    table = oracle.projected(*said).table("consensus")
    return [tuple(str(value) for value in row.values()) for row in table.rows()]


def test_the_table_holds_the_median_of_every_outcome() -> None:
    """Of 0.1 and 0.4 it is 0.25; of an even number of odd billionths it keeps the half."""
    said: list[AnyCommand] = [
        opened(),
        forecast(probability="0.1", at=day(8)),
        forecast(participant="bob", probability="0.4", at=day(12)),
        forecast(probability="0.100000001", at=day(14)),
    ]
    assert rows(*said) == [
        ("rain", "no", "2026-03-10T00:00:00Z", "2026-03-12T00:00:00Z", "1", "0.9"),
        ("rain", "no", "2026-03-12T00:00:00Z", "2026-03-14T00:00:00Z", "2", "0.75"),
        ("rain", "no", "2026-03-14T00:00:00Z", "2026-03-20T00:00:00Z", "2", "0.7499999995"),
        ("rain", "yes", "2026-03-10T00:00:00Z", "2026-03-12T00:00:00Z", "1", "0.1"),
        ("rain", "yes", "2026-03-12T00:00:00Z", "2026-03-14T00:00:00Z", "2", "0.25"),
        ("rain", "yes", "2026-03-14T00:00:00Z", "2026-03-20T00:00:00Z", "2", "0.2500000005"),
    ]


def test_a_gap_in_which_nothing_stands_has_no_row() -> None:
    """And after an early close there is none either."""
    said: list[AnyCommand] = [forecast(at=day(11)), withdrawal(at=day(12)), forecast(at=day(14)), closing(at=day(15))]
    spans = [row[2:] for row in rows(opened(), *said) if row[1] == "yes"]
    assert spans == [
        ("2026-03-11T00:00:00Z", "2026-03-12T00:00:00Z", "1", "0.7"),
        ("2026-03-14T00:00:00Z", "2026-03-15T00:00:00Z", "1", "0.7"),
    ]


def test_each_outcome_of_several_has_its_own_median() -> None:
    """Medians of several outcomes need not add up to one."""
    said: list[AnyCommand] = [
        forecast("colour", who, probabilities={"red": red, "green": green, "blue": blue})
        for who, red, green, blue in [("ada", "0.6", "0.3", "0.1"), ("bob", "0.2", "0.7", "0.1"), ("cyd", 0, 0, 1)]
    ]
    medians = [(row[1], row[5]) for row in rows(choices(), *said)]
    assert medians == [("blue", "0.1"), ("green", "0.3"), ("red", "0.2")]


def test_a_numeric_question_has_the_median_of_the_bin_its_answer_is_in() -> None:
    """None before it is resolved, and none after the resolution is revoked; below the range the bin is 0."""
    said: list[AnyCommand] = [numeric(open_lower=True), forecast("depth", cdf=("0.05", "0.25", "0.5", "0.75", "1"))]
    assert rows(*said) == []
    first: list[AnyCommand] = [*said, resolution("depth", value="2.5")]
    assert [(row[1], row[5]) for row in rows(*first)] == [("3", "0.25")]
    assert rows(*first, revocation("depth")) == []
    again: list[AnyCommand] = [*first, revocation("depth"), resolution("depth", value="-1")]
    assert [(row[1], row[5]) for row in rows(*again)] == [("0", "0.05")]


def slowly(world: oracle.World) -> list[tuple[str, ...]]:
    """The same table by the slow definition."""
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


@settings(max_examples=100, deadline=None)
@given(oracle.logs(), st.sampled_from([1, 7, 1 << 20]))
def test_the_consensus_is_that_of_the_slow_definition(asked: list[AnyCommand], chunk: int) -> None:
    """One row while the same forecasts stand, over logs of all kinds, however many are looked at together."""
    recorded, _ = oracle.attempted(asked)
    table = Projections(oracle.told(recorded), chunk).table("consensus")
    assert [tuple(str(value) for value in row.values()) for row in table.rows()] == slowly(oracle.world(recorded))
