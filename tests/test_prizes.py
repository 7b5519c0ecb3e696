"""From takes to payouts: the whole pool, to the payable unit, by largest remainder."""

from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import events
from ledger.commands import AnyCommand
from ledger.rules import PRESETS
from projections.columns import Contest
from projections.leaderboard import Place, coverage_power
from projections.prizes import Prize, prizes
from projections.projection import Projections
from tests import oracle
from tests.given import OPENS, contest, day, entry, forecast, opened, resolution, withdrawal

CENT = 10_000  # in 1e-6
SCORES = st.fractions(-4, 4, max_denominator=1_000) | st.integers(-3_000, 3).map(Fraction)
COVERAGES = st.fractions(0, 1, max_denominator=50)
BOARDS = st.lists(st.tuples(SCORES, COVERAGES), max_size=12)


def cup(pool: int, unit: int = CENT) -> Contest:
    """A contest with a pool, in 1e-6."""
    rules = PRESETS["relative-2022-04"]
    return Contest(events.ContestOpened(at=0, contest="cup", rules=rules, pool=pool, payable_unit=unit))


def place(who: str, score: Fraction, coverage: Fraction, level: events.Level | None = None) -> Place:
    """A place on the board of a contest under the natural logarithm."""
    return Place(None, who, score, coverage, coverage_power(score, coverage, "e"), level, 1, 1)


def worths(places: list[Place]) -> dict[str, Fraction]:
    """Takes in proportion, by the slow definition."""
    slow = [
        oracle.Place(None, each.participant, each.score, each.coverage, Decimal(0), Fraction(0), 0, "", "")
        for each in places
    ]
    return oracle.worths(slow, "ln")


def even(*coverages: int, level: events.Level | None = None) -> list[Place]:
    """Places with a score of nought, so that takes are coverages: so many hundredths each."""
    return [place(f"p{i}", Fraction(0), Fraction(each, 100), level) for i, each in enumerate(coverages)]


def money(pool: int, places: list[Place], unit: int = CENT) -> list[int]:
    """What is paid, by id, in units."""
    return [prize.prize // unit for prize in prizes(cup(pool, unit), places)]


@settings(deadline=None)
@given(BOARDS, st.integers(0, 10**6), st.sampled_from([1, CENT, 10**6, 5 * 10**6]))
def test_prizes_sum_to_the_pool_each_within_one_unit_of_its_share(
    board: list[tuple[Fraction, Fraction]], units: int, unit: int
) -> None:
    """Whatever the takes, down to e^-3000; nothing is paid in parts of a unit."""
    places = [place(f"p{i:02}", score, coverage) for i, (score, coverage) in enumerate(board)]
    found = prizes(cup(units * unit, unit), places)
    takes = worths(places)
    total = sum(takes.values())
    assert sum(prize.prize for prize in found) == (units * unit if total else 0)
    assert [prize.participant for prize in found] == list(takes)
    for prize in found:
        assert prize.prize % unit == 0
        assert abs(prize.prize - units * unit * takes[prize.participant] / (total or 1)) < unit


@settings(deadline=None)
@given(BOARDS, st.integers(0, 1_000), st.randoms(use_true_random=False))
def test_prizes_do_not_depend_on_the_order_of_the_board(
    board: list[tuple[Fraction, Fraction]], cents: int, choose: Random
) -> None:
    """They come by id."""
    places = [place(f"p{i:02}", score, coverage) for i, (score, coverage) in enumerate(board)]
    ordered = prizes(cup(cents * CENT), places)
    choose.shuffle(places)
    assert prizes(cup(cents * CENT), places) == ordered
    assert [prize.participant for prize in ordered] == sorted(prize.participant for prize in ordered)


def test_units_left_over_go_to_the_largest_remainders() -> None:
    """10 units over takes of 25, 33 and 42: 2.5, 3.3 and 4.2 leave one, which the first has."""
    assert money(10 * CENT, even(25, 33, 42)) == [3, 3, 4]
    assert money(10 * CENT, even(42, 33, 25)) == [4, 3, 3]


def test_of_equal_remainders_the_first_id_has_the_unit() -> None:
    """Three equal takes share a hundred; two remainders of 2/3 and 2/3 beside one of 2/3."""
    assert money(100 * CENT, even(50, 50, 50)) == [34, 33, 33]
    assert money(2 * CENT, even(50, 50, 50)) == [1, 1, 0]
    assert money(1 * CENT, list(reversed(even(50, 50, 50)))) == [1, 0, 0]


@pytest.mark.parametrize(
    ("unit", "units"),
    [(CENT, [3333, 6667]), (1_000_000, [33, 67]), (5_000_000, [7, 13]), (1, [33_333_333, 66_666_667])],
)
def test_prizes_are_whole_payable_units(unit: int, units: list[int]) -> None:
    """A third and two thirds of 100: 33.33, 33, 35 and 33.333333."""
    assert money(100_000_000, even(50, 100), unit) == units


def test_nobody_is_paid_where_nobody_has_a_take() -> None:
    """The pool stays where it is."""
    assert prizes(cup(100 * CENT), even(0, 0)) == [Prize("p0", 0, 0), Prize("p1", 0, 0)]
    assert prizes(cup(100 * CENT), []) == []


def test_without_a_pool_there_are_shares_but_no_money() -> None:
    """A quarter and three quarters of nothing."""
    assert prizes(cup(0), even(25, 75)) == [Prize("p0", 250_000_000, 0), Prize("p1", 750_000_000, 0)]


@pytest.mark.parametrize("level", ["no_prize", "no_rank", "hidden"])
def test_who_is_excluded_is_not_paid_and_has_no_part_in_the_sum(level: events.Level) -> None:
    """The others share the whole pool."""
    excluded = place("p9", Fraction(2), Fraction(1), level)
    assert prizes(cup(100 * CENT), [excluded, *even(50, 50)]) == prizes(cup(100 * CENT), even(50, 50))


def test_a_share_is_the_take_over_the_sum_of_takes_in_billionths() -> None:
    """2/3 is 0.666666667, 1/3 is 0.333333333; a tie goes to the even digit: 1/1024 is 0.0009765625."""
    assert [prize.share for prize in prizes(cup(0), even(100, 50))] == [666_666_667, 333_333_333]
    places = [place("a", Fraction(0), Fraction(1, 1024)), place("b", Fraction(0), Fraction(1023, 1024))]
    assert [prize.share for prize in prizes(cup(0), places)] == [976_562, 999_023_438]


def test_takes_of_many_magnitudes_are_compared_exactly() -> None:
    """The ratio of e^-3000 to e^-3001 is that of e to 1: 73.1 and 26.9 of a hundred."""
    places = [place("a", Fraction(-3_000), Fraction(1)), place("b", Fraction(-3_001), Fraction(1))]
    assert money(100 * CENT, places) == [73, 27]
    assert money(100 * CENT, [*places, place("c", Fraction(3_000), Fraction(1))]) == [0, 0, 100]


def test_equal_remainders_of_unequal_takes_go_by_id_too() -> None:
    """Coverages 1/2, 1/2, 1/14 and scores of nought: 46.666…, 46.666…, 6.666… of 100, two cents for the first two."""
    people = {"ada": 17, "bob": 17, "cyd": 11}  # withdrawn on that day of 14
    made = [forecast(participant=who, probability="0.5", at=OPENS) for who in people]
    gone = [withdrawal(participant=who, at=day(until)) for who, until in people.items()]
    start = opened(closes_at=day(24)), contest(pool=100), entry()
    table = oracle.projected(*start, *made, *gone, resolution()).table("prizes")
    assert [tuple(row.values()) for row in table.rows()] == [
        ("cup", "ada", "46.67"),
        ("cup", "bob", "46.67"),
        ("cup", "cyd", "6.66"),
    ]


@settings(max_examples=150, deadline=None)
@given(oracle.logs())
def test_prizes_and_shares_are_those_of_the_slow_definition(asked: list[AnyCommand]) -> None:
    """Over logs of all kinds, in units of 0.01, 1 and 5."""
    recorded, _ = oracle.attempted(asked)
    projections = Projections(oracle.told(recorded))
    for name in projections.contests:
        board = [row for row in projections.table("leaderboard").rows() if row["contest"] == name]
        fast = [(row["participant"], Fraction(row["share"]), Fraction(row["prize"]) * 10**6) for row in board]
        slow = oracle.board(recorded, name)
        assert fast == [(each.participant, Fraction(oracle.nine(each.share)), Fraction(each.prize)) for each in slow]
        paid = {row["participant"]: row["prize"] for row in projections.table("prizes").only("contest", name).rows()}
        assert paid == {row["participant"]: row["prize"] for row in board if not row["excluded"]}
