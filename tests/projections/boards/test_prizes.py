"""Prizes: the whole pool, divided by takes into payable units, by largest remainder."""

from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.boards.leaderboard import BoardRow, coverage_exp, positive_square
from forecast_ledger.projections.boards.prizes import PASSES, Prize, divide_pool
from forecast_ledger.projections.core import late_fractions
from forecast_ledger.projections.core.late_fractions import BITS, sum_of_terms, sum_within
from forecast_ledger.projections.core.powers import Magnitude
from forecast_ledger.projections.facts.columns import Contest
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import (
    OPENS,
    contest,
    day,
    entry,
    finalization,
    forecast,
    opened,
    prizes_paid,
    resolution,
    withdrawal,
)

CENT = 10_000  # in 1e-6
SCORES = st.fractions(-4, 4, max_denominator=1_000) | st.integers(-3_000, 3).map(Fraction)
COVERAGES = st.fractions(0, 1, max_denominator=50)
BOARDS = st.lists(st.tuples(SCORES, COVERAGES), max_size=12)


def cup(pool: int, unit: int = CENT, least: int = 0, passes: str = "many") -> Contest:
    """Return a contest with a pool and a least prize, in 1e-6."""
    rules = structs.replace(PRESETS["relative-2022-04"], least_prize_micros=least, least_prize_passes=passes)
    return Contest(events.ContestOpened(at=0, contest="cup", rules=rules, pool=pool, payable_unit=unit))


def place(who: str, score: Fraction, coverage: Fraction, level: str = "") -> BoardRow:
    """Return a place on the board of a contest with the take coverage x e^score."""
    return BoardRow(None, who, score, coverage, Fraction(1), coverage_exp(score, coverage), level, 1, 1, 1)


def squared(*scores: str) -> list[BoardRow]:
    """Return places on the board of a contest with the take max(score, 0)²."""
    places = [place(f"p{i}", Fraction(score), Fraction(1)) for i, score in enumerate(scores)]
    return [row._replace(take=positive_square(row.score, row.coverage)) for row in places]


def worths(places: list[BoardRow]) -> dict[str, Fraction]:
    """Return takes in proportion, by definition."""
    slow = [
        oracle.Place(None, row.participant, row.score, row.coverage, Decimal(0), Fraction(0), 0, "", "")
        for row in places
    ]
    return oracle.worths(slow, "ln")


def even(*coverages: int, level: str = "") -> list[BoardRow]:
    """Return places with the score 0, so that takes are coverages, in hundredths."""
    return [place(f"p{i}", Fraction(0), Fraction(coverage, 100), level) for i, coverage in enumerate(coverages)]


def money(pool: int, places: list[BoardRow], unit: int = CENT) -> list[int]:
    """Return the prizes by id, in units."""
    return [prize.prize // unit for prize in divide_pool(cup(pool, unit), places)]


@settings(deadline=None)
@given(BOARDS, st.integers(0, 10**6), st.sampled_from([1, CENT, 10**6, 5 * 10**6]))
def test_prizes_sum_to_the_pool_each_within_one_unit_of_its_share(
    board: list[tuple[Fraction, Fraction]], units: int, unit: int
) -> None:
    """It holds for all takes down to e^-3000; no prize has a part of a unit."""
    places = [place(f"p{i:02}", score, coverage) for i, (score, coverage) in enumerate(board)]
    actual = divide_pool(cup(units * unit, unit), places)
    takes = worths(places)
    total = sum(takes.values())
    assert sum(prize.prize for prize in actual) == (units * unit if total else 0)
    assert [prize.participant for prize in actual] == list(takes)
    for prize in actual:
        assert prize.prize % unit == 0
        assert abs(prize.prize - units * unit * takes[prize.participant] / (total or 1)) < unit


@settings(deadline=None)
@given(BOARDS, st.integers(0, 1_000), st.randoms(use_true_random=False))
def test_prizes_do_not_depend_on_the_order_of_the_board(
    board: list[tuple[Fraction, Fraction]], cents: int, choose: Random
) -> None:
    """Prizes are in order of id."""
    places = [place(f"p{i:02}", score, coverage) for i, (score, coverage) in enumerate(board)]
    ordered = divide_pool(cup(cents * CENT), places)
    choose.shuffle(places)
    assert divide_pool(cup(cents * CENT), places) == ordered
    assert [prize.participant for prize in ordered] == sorted(prize.participant for prize in ordered)


def test_units_left_over_go_to_the_largest_remainders() -> None:
    """10 units over takes of 25, 33 and 42: 2.5, 3.3 and 4.2 leave one, which the first gets."""
    assert money(10 * CENT, even(25, 33, 42)) == [3, 3, 4]
    assert money(10 * CENT, even(42, 33, 25)) == [4, 3, 3]


def test_the_first_id_of_equal_remainders_gets_the_unit() -> None:
    """Three equal takes share 100; the remainders are equal."""
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


def test_nobody_is_paid_if_nobody_has_a_take() -> None:
    """The pool is not paid."""
    assert divide_pool(cup(100 * CENT), even(0, 0)) == [Prize("p0", 0, 0), Prize("p1", 0, 0)]
    assert divide_pool(cup(100 * CENT), []) == []


def test_without_a_pool_there_are_shares_but_no_money() -> None:
    """The shares are a quarter and three quarters of 0."""
    assert divide_pool(cup(0), even(25, 75)) == [Prize("p0", 250_000_000, 0), Prize("p1", 750_000_000, 0)]


@pytest.mark.parametrize("level", ["no_prize", "no_rank", "hidden", "consensus", "not_best"])
def test_an_excluded_participant_is_not_paid_and_not_in_the_sum(level: str) -> None:
    """The others share the whole pool."""
    excluded = place("p9", Fraction(2), Fraction(1), level)
    assert divide_pool(cup(100 * CENT), [excluded, *even(50, 50)]) == divide_pool(cup(100 * CENT), even(50, 50))


def test_a_share_is_the_take_over_the_sum_of_takes_in_billionths() -> None:
    """2/3 is 0.666666667, 1/3 is 0.333333333; a tie goes to the even digit: 1/1024 is 0.0009765625."""
    assert [prize.share for prize in divide_pool(cup(0), even(100, 50))] == [666_666_667, 333_333_333]
    places = [place("a", Fraction(0), Fraction(1, 1024)), place("b", Fraction(0), Fraction(1023, 1024))]
    assert [prize.share for prize in divide_pool(cup(0), places)] == [976_562, 999_023_438]


def test_takes_of_many_magnitudes_are_compared_exactly() -> None:
    """The ratio of e^-3000 to e^-3001 is e: 73.1 and 26.9 of 100."""
    places = [place("a", Fraction(-3_000), Fraction(1)), place("b", Fraction(-3_001), Fraction(1))]
    assert money(100 * CENT, places) == [73, 27]
    assert money(100 * CENT, [*places, place("c", Fraction(3_000), Fraction(1))]) == [0, 0, 100]


def test_equal_remainders_of_unequal_takes_go_by_id_too() -> None:
    """Coverages 1/2, 1/2, 1/14 and scores of 0: 46.666…, 46.666…, 6.666… of 100; two cents go to the first two."""
    people = {"ada": 17, "bob": 17, "cyd": 11}  # withdrawn on that day of 14
    made = [forecast(participant=who, probability="0.5", at=OPENS) for who in people]
    gone = [withdrawal(participant=who, at=day(until)) for who, until in people.items()]
    start = opened(closes_at=day(24)), contest(pool=100), entry()
    table = oracle.projected(*start, *made, *gone, resolution()).table("prizes")
    assert [tuple(row.values()) for row in table.rows()] == [
        ("cup", "ada", "46.67", "0.00"),
        ("cup", "bob", "46.67", "0.00"),
        ("cup", "cyd", "6.66", "0.00"),
    ]


# --- the least prize

FIFTY = 50 * 10**6


def worth_paying(pool: int, least: int, places: list[BoardRow], passes: str = "many") -> list[str]:
    """Return the prizes by id, in the currency."""
    contest = cup(pool * 10**6, least=least * 10**6, passes=passes)
    return [f"{Decimal(prize.prize).scaleb(-6):.2f}" for prize in divide_pool(contest, places)]


@pytest.mark.parametrize(
    ("scores", "pool", "paid"),
    [
        (("0.9", "0.3"), 500, ["450.00", "50.00"]),
        (("3.1", "2.2", "1.7"), 300, ["166.26", "83.74", "50.00"]),
        (("0.9", "0.2999999999"), 500, ["500.00", "0.00"]),
        (("0.3", "-0.9", "0.9"), 500, ["50.00", "0.00", "450.00"]),
    ],
)
def test_a_share_of_exactly_the_least_prize_is_paid(scores: tuple[str, ...], pool: int, paid: list[str]) -> None:
    """By hand: .81 and .09 are 90% and 10%; of 9.61, 4.84 and 2.89, in all 17.34, the last is a sixth."""
    assert worth_paying(pool, 50, squared(*scores)) == paid


def test_a_removed_take_raises_other_shares_above_the_least_prize() -> None:
    """Coverages 30, 27, 24, 19 share 200: the last would get 38 and is left out; then 24 of 81 get 59.26, not 48."""
    assert worth_paying(200, 50, even(30, 27, 24, 19)) == ["74.07", "66.67", "59.26", "0.00"]
    assert worth_paying(200, 50, even(24, 30, 19, 27)) == ["59.26", "74.07", "0.00", "66.67"]


@pytest.mark.parametrize(
    ("coverages", "pool", "together", "one_by_one"),
    [
        ((40, 10, 10), 300, ["300.00", "0.00", "0.00"], ["240.00", "60.00", "0.00"]),
        ((60, 20, 20), 275, ["165.00", "55.00", "55.00"], ["165.00", "55.00", "55.00"]),
        ((60, 20, 20, 5), 275, ["165.00", "55.00", "55.00", "0.00"], ["165.00", "55.00", "55.00", "0.00"]),
        ((25, 25, 25, 25), 165, ["41.25"] * 4, ["55.00", "55.00", "55.00", "0.00"]),
        ((25, 25, 25, 24), 110, ["36.67", "36.67", "36.66", "0.00"], ["55.00", "55.00", "0.00", "0.00"]),
        ((25, 25), 55, ["27.50", "27.50"], ["55.00", "0.00"]),
        ((25, 25), 54, ["0.00", "0.00"], ["0.00", "0.00"]),
    ],
)
def test_equal_takes_stay_or_are_removed_together(
    coverages: tuple[int, ...], pool: int, together: list[str], one_by_one: list[str]
) -> None:
    """The least prize is 55; the largest takes stay if the pool is not below it; one by one, the last id goes."""
    places = even(*coverages)
    assert worth_paying(pool, 55, places) == together
    assert worth_paying(pool, 55, places, "one_by_one") == one_by_one


@given(st.lists(st.integers(0, 12), max_size=8), st.integers(0, 400), st.integers(0, 100))
def test_equal_takes_differ_by_a_cent_at_most_and_the_pool_is_paid(coverages: list[int], pool: int, least: int) -> None:
    """Ids do not matter; nobody is paid only if nobody has a take or the pool is below the least prize."""
    paid = [Decimal(each) for each in worth_paying(pool, least, even(*coverages))]
    assert sum(paid) == (pool if any(coverages) and pool >= least else 0)
    for coverage in set(coverages):
        equal = [own for one, own in zip(coverages, paid, strict=True) if one == coverage]
        assert max(equal) - min(equal) <= Decimal("0.01")


def test_a_pool_below_the_least_prize_is_paid_to_nobody() -> None:
    """It holds also for a single take; a pool of exactly the least prize goes to the largest share."""
    assert worth_paying(49, 50, even(100)) == ["0.00"]
    assert worth_paying(50, 50, even(40, 60)) == ["0.00", "50.00"]
    assert [prize.share for prize in divide_pool(cup(FIFTY - CENT, least=FIFTY), even(40, 60))] == [0, 0]


def test_shares_count_only_paid_participants() -> None:
    """The shares are a third and two thirds once the smallest is left out."""
    actual = divide_pool(cup(150 * 10**6, least=FIFTY), even(25, 50, 10))
    assert [prize.share for prize in actual] == [333_333_333, 666_666_667, 0]


def slowly(pool: int, least: int, takes: dict[str, Fraction], passes: str) -> dict[str, Fraction]:
    """Leave out the smallest shares, equal ones together, while they are below the least prize; the largest stay if the
    pool is enough for one; or one by one, the last id first.
    """
    remaining = {who: take for who, take in takes.items() if take}
    while remaining:
        smallest = min(remaining.values())
        if pool * smallest / sum(remaining.values()) >= least:
            break
        equal = [who for who, take in remaining.items() if take == smallest]
        if passes == "many" and len(equal) == len(remaining) and pool >= least:
            break
        for who in equal if passes == "many" else [max(equal)]:
            del remaining[who]
    return {who: remaining.get(who, Fraction(0)) for who in takes}


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 12) | st.integers(0, 10**6), max_size=12),
    st.integers(0, 10**4),
    st.integers(0, 10**4),
    st.sampled_from([1, CENT, 10**6]),
    st.sampled_from(["many", "one_by_one"]),
)
def test_prizes_with_a_least_prize_agree_with_the_slow_definition(
    coverages: list[int], units: int, least: int, unit: int, passes: str
) -> None:
    """The rest is divided by largest remainder."""
    places = [place(f"p{i:02}", Fraction(0), Fraction(coverage, 10**6)) for i, coverage in enumerate(coverages)]
    pool = units * unit
    remaining = slowly(pool, least * unit, {row.participant: row.coverage for row in places}, passes)
    expected = {who: parts * unit for who, parts in oracle.largest_remainder(units, remaining).items()}
    assert {
        prize.participant: prize.prize for prize in divide_pool(cup(pool, unit, least * unit, passes), places)
    } == expected


@pytest.mark.parametrize(
    ("coverages", "pool", "paid"),
    [
        ((30, 27, 24, 19), 200, ["105.26", "94.74", "0.00", "0.00"]),
        ((60, 30, 10), 100, ["100.00", "0.00", "0.00"]),
        ((50, 50), 100, ["50.00", "50.00"]),
        ((25, 25, 25, 25), 150, ["0.00"] * 4),
        ((100,), 49, ["0.00"]),
        ((100,), 50, ["50.00"]),
        ((), 100, []),
    ],
)
def test_one_pass_removes_all_smaller_shares_at_once(coverages: tuple[int, ...], pool: int, paid: list[str]) -> None:
    """Shares of 200 are 60, 54, 48 and 38: the last two are left out, although either could stay; equals go together.

    Source: Metaculus's published code: one pass from June 2025, iterative since October 4th, 2025.
    """
    assert worth_paying(pool, 50, even(*coverages), "one") == paid


@given(st.lists(st.integers(0, 12), max_size=8), st.integers(0, 400), st.integers(0, 100))
def test_one_pass_agrees_with_the_slow_definition(coverages: list[int], pool: int, least: int) -> None:
    """Shares count among everybody; the rest divide the pool in proportion, by largest remainder."""
    every = sum(coverages)
    takes = {f"p{i}": Fraction(coverage, 100) for i, coverage in enumerate(coverages) if coverage}
    remaining = {who: take for who, take in takes.items() if pool * 100 * take / every >= least}
    units = oracle.largest_remainder(pool * 100, remaining)
    expected = [f"{Decimal(units.get(f'p{i}', 0)).scaleb(-2):.2f}" for i in range(len(coverages))]
    places = even(*coverages)
    assert worth_paying(pool, least, places, "one") == expected


def test_the_presets_since_june_2025_pay_fifty_at_least() -> None:
    """Metaculus, Scores FAQ has no least prize; Metaculus's published code has it from
    2025-06-01 on.
    """
    assert PRESETS["peer-2025-06"].least_prize_micros == FIFTY
    assert PRESETS["peer-2024-03"].least_prize_micros == 0


def test_a_contest_without_takes_has_no_prizes() -> None:
    """A total without a take wins nothing."""
    rules = RuleSet(name="own", kernel="ln")
    start = opened(), contest(rules=rules, pool=100), entry(), forecast(), resolution()
    projections = oracle.projected(*start)
    assert len(projections.table("prizes")) == 0
    [row] = projections.table("leaderboard").rows()
    assert (row["take"], row["share"], row["prize"], row["rank"]) == (None, "0.000000000", "0.00", 1)


# --- what has been paid


def test_a_payment_is_shown_beside_what_the_board_is_worth() -> None:
    """They are the payments of one contest to anybody, in its own currency."""
    start: list[AnyCommand] = [
        opened(),
        contest(pool=10),
        entry(),
        *(forecast(participant=who) for who in ("ada", "bob")),
    ]
    sealed: list[AnyCommand] = [*start, resolution(), finalization()]
    paid = prizes_paid(ada="7.5", zoe="2.5")  # by somebody who wrote to the store
    recorded = oracle.history(*sealed, contest("league", pool=1))
    projections = Projections(oracle.facts_in(oracle.followed(recorded, *paid)))
    assert [tuple(row.values()) for row in projections.table("prizes").rows()] == [
        ("cup", "ada", "5.00", "7.50"),
        ("cup", "bob", "5.00", "0.00"),
        ("cup", "zoe", "0.00", "2.50"),
    ]
    assert [(row["contest"], row["pool"], row["paid"]) for row in projections.table("contests").rows()] == [
        ("cup", "10.00", "10.00"),
        ("league", "1.00", "0.00"),
    ]


@settings(max_examples=times(50), deadline=None)
@given(oracle.logs())
def test_prizes_and_shares_agree_with_the_slow_definition(commands: list[AnyCommand]) -> None:
    """They agree for logs of all kinds, in units of 0.01, 1 and 5."""
    recorded, _ = oracle.attempted(commands)
    projections = Projections(oracle.facts_in(recorded))
    for name in projections.contests:
        board = [row for row in projections.table("leaderboard").rows() if row["contest"] == name]
        fast = [(row["participant"], Fraction(row["share"]), Fraction(row["prize"]) * 10**6) for row in board]
        slow = oracle.board(recorded, name)
        assert fast == [(each.participant, Fraction(oracle.nine(each.share)), Fraction(each.prize)) for each in slow]
        paid = {row["participant"]: row["prize"] for row in projections.table("prizes").only("contest", name).rows()}
        assert paid == {row["participant"]: row["prize"] for row in board if not row["excluded"]}


def late(number: Fraction, places: int) -> Fraction:
    """Return a number that has bounds of so many binary places, and is exact only in full."""
    low = number * (1 << places) // 1 << BITS - places
    return sum_within((low, low + (1 << BITS - places)), lambda: [number.as_integer_ratio()])


MANTISSAS = st.fractions(1, Fraction(99, 10), max_denominator=20)


@settings(max_examples=times(75), deadline=None)
@given(
    st.lists(st.tuples(MANTISSAS, st.sampled_from([0, 0, 0, -1, -59, -70]), st.integers(1, 3)), min_size=1, max_size=6),
    st.integers(0, 10**9),
    st.sampled_from([0, 5 * CENT, 10**6, 10**8]),
    st.sampled_from([*PASSES]),
    st.sampled_from([3, 40, 200]),
)
@example([(Fraction(1), 0, 1), (Fraction(5), 0, 1)], 10**9, 0, "many", 3)
@example([(Fraction(1), 0, 2), (Fraction(1), -70, 1)], 5 * CENT, 0, "many", 200)
@example([(Fraction(2), 0, 1), (Fraction(1), 0, 2)], 3 * CENT, CENT, "one", 200)
@example([(Fraction(3), 0, 1)], 7, 0, "one_by_one", 200)
def test_bounds_of_takes_divide_a_pool_as_exact_takes_do(
    takes: list[tuple[Fraction, int, int]], pool: int, least: int, passes: str, places: int
) -> None:
    """Equal takes, takes of 0 or in simple proportions, least prizes that are just met; bounds tight and loose."""
    exact: list[BoardRow] = []
    bounded: list[BoardRow] = []
    for mantissa, exponent, count in takes:
        for _ in range(count):
            row = place(f"p{len(exact)}", Fraction(1), Fraction(1))
            exact.append(row._replace(take=Magnitude(True, exponent, mantissa)))
            bounded.append(row._replace(take=Magnitude(True, exponent, late(mantissa, places))))
    assert divide_pool(cup(pool, least=least, passes=passes), bounded) == divide_pool(
        cup(pool, least=least, passes=passes), exact
    )


@pytest.mark.parametrize("shares", [(30, 20, 30, 0, 10), (30, 0, 30), (30,)])
def test_a_certain_division_computes_no_take_in_full(monkeypatch: pytest.MonkeyPatch, shares: tuple[int, ...]) -> None:
    """Winners of unlike takes, two of them equal, and one with a take of 0; equal ones only; one alone."""
    numbers = [sum_of_terms([(share, 40 * p) for p in range(1_001, 1_101)]) for share in shares]
    takes = [coverage_exp(Fraction(1), number) for number in numbers]
    places = [place(f"p{i}", Fraction(1), Fraction(1))._replace(take=take) for i, take in enumerate(takes)]
    expected = divide_pool(cup(10**9), places)
    monkeypatch.setattr(late_fractions, "added_in_pairs", _few)
    assert divide_pool(cup(10**9), places) == expected
    assert sum(prize.prize for prize in expected) == 10**9


def _few(terms: list[tuple[int, int]]) -> tuple[int, int]:
    assert not terms, "spelled out"
    return 0, 1
