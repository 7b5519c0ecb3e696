"""Boards in columns: floats decide what they can, and the rest is as plain fractions say, ties above all."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from forecast_ledger.ledger.core.values import WEIGHT
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import ParticipantEnrolled
from forecast_ledger.ledger.model.rules import LEVELS, PRESETS, Level, RuleSet
from forecast_ledger.projections.boards.contest_groups import ScoredGroup, score_group
from forecast_ledger.projections.boards.leaderboard import TAKES, published_take
from forecast_ledger.projections.boards.score_sums import COVERAGE, with_bounds
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.columns import plain_values
from forecast_ledger.projections.core.estimates import Estimated
from forecast_ledger.projections.core.powers import Magnitude
from forecast_ledger.projections.core.wide_int import WideInt
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores.time_weighted import Scores
from forecast_ledger.projections.tables.analysis import CachedResults
from forecast_ledger.projections.tables.catalogue import Projections
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import contest, day, entry, forecast, opened, resolution

NAMES, PEOPLE = ("cup", "day"), ("dan", "ada", "eve", "bob", "cyd")  # their codes are not in the order of ids
QUESTIONS = {"rain": ("cup", 1), "wind": ("cup", "2.5"), "fog": ("cup", 0), "snow": ("day", 1)}
RULES = structs.replace(
    PRESETS["brier-daily"], sampling="time", period="scheduled", coverage_period="scheduled", day_edges="both"
)
NANOS, CENT = 10**9, 10**4


@lru_cache
def _season() -> Facts:
    """Return two contests in which everybody forecasts on every question."""
    commands: list[AnyCommand] = [opened(name, closes_at=day(10 + len(name))) for name in QUESTIONS]
    commands += [contest(name, rules="baseline") for name in NAMES]
    commands += [entry(of, name, weight=weight) for name, (of, weight) in QUESTIONS.items()]
    commands += [forecast(name, who, probability="0.5") for name in QUESTIONS for who in PEOPLE]
    return oracle.facts_in(oracle.history(*commands, *map(resolution, QUESTIONS)))


def season(rules: RuleSet, pool: int, levels: dict[tuple[str, str], Level], entrants: dict[str, str]) -> Facts:
    """Return the season with these rules. levels: by contest and participant. entrants: in the first contest."""
    contests = {
        name: replace(
            held,
            opened=structs.replace(held.opened, rules=rules, pool=pool),
            levels={who: level for (of, who), level in levels.items() if of == name},
            enrolments={
                who: ParticipantEnrolled(at=0, contest=name, participant=who, entrant=entrant)
                for who, entrant in entrants.items()
                if name == NAMES[0]
            },
        )
        for name, held in _season().contests.items()
    }
    return replace(_season(), contests=contests)


class Cell(NamedTuple):
    """A score and a coverage, in units of time."""

    numerator: int
    covered: int


def totals(facts: Facts, group: ScoredGroup, cells: dict[tuple[int, int], Cell], number: int) -> dict[str, Any]:
    """Return total, coverage and number of questions of everyone in a contest, by definition."""
    rules, questions = group.rules, group.questions
    mine = [q for q in range(len(questions.code)) if questions.contest[q] == number and questions.weight[q]]
    every = sum(Fraction(int(questions.weight[q]), WEIGHT) for q in mine)
    results = {}
    for code, who in enumerate(facts.participant_codes.labels):
        own = [(q, cells[q, code]) for q in mine if (q, code) in cells]
        if not own:
            continue
        weights = {q: Fraction(int(questions.weight[q]), WEIGHT) for q, _ in own}
        total = sum(
            weights[q] * cell.numerator / (questions.per_point[q] * int(questions.length[q])) for q, cell in own
        )
        covered = sum(weights[q] * Fraction(cell.covered, int(questions.whole[q])) for q, cell in own)
        divisor = {"sum": Fraction(1), "mean": sum(weights.values()), "per_coverage": covered}.get(
            rules.total, len(own)
        )
        if rules.total.startswith("per"):
            divisor = max(divisor, rules.least_coverage)
        results[who] = (Fraction(total) / divisor, covered / every, len(own), len(mine))
    return results


def expected(facts: Facts, group: ScoredGroup, cells: dict[tuple[int, int], Cell]) -> Iterator[list[Any]]:
    """Yield the rows of the leaderboard, by plain fractions."""
    rules = group.rules
    worth = TAKES[rules.take].worth
    for number, name in enumerate(NAMES):
        of = facts.contests[name]
        every = totals(facts, group, cells, number)
        entrants = {who: of.enrolments[who].entrant or who if who in of.enrolments else who for who in PEOPLE}
        known = {*every, *of.enrolments}
        takes = {who: worth(total, share) if worth else None for who, (total, share, *_) in every.items()}
        sign = 1 if rules.rank_by == "take" or group.rules.kernel != "brier" else -1
        keys: dict[str, Any] = {
            who: takes[who] if rules.rank_by == "take" else sign * row[0] for who, row in every.items()
        }
        excluded = {}
        for who, (_, _, on, count) in every.items():
            level = of.levels.get(who, "")
            few = on < rules.least_questions or Fraction(on, count) < Fraction(rules.least_share_ppm, 10**6)
            excluded[who] = "too_few_questions" if few and level in {"", "no_prize"} else level
        shown = sorted(who for who in every if excluded[who] != "hidden")
        shown.sort(key=keys.__getitem__, reverse=True)
        if rules.best_of_entrant:
            best: dict[str, str] = {}
            for who in shown:
                if excluded[who] in {"", "no_prize"} and best.setdefault(entrants[who], who) != who:
                    excluded[who] = "not_best"
        ranked = [who for who in shown if excluded[who] in {"", "no_prize"}]
        prizes = divided(
            of.opened.pool // of.opened.payable_unit, {w: takes[w] for w in sorted(shown) if not excluded[w]}
        )
        for who in shown:
            total, coverage, on, count = every[who]
            take, (share, units) = takes[who], prizes.get(who, (0, 0))
            yield [
                name,
                1 + sum(keys[other] > keys[who] for other in ranked) if who in ranked else None,
                who,
                round(total * NANOS),
                round(coverage * NANOS),
                NANOS,
                None if take is None else published_take(take),
                share,
                units * of.opened.payable_unit,
                f"{on}/{count}",
                sum(entrants[other] == entrants[who] for other in known),
                excluded[who],
            ]


def divided(units: int, takes: dict[str, Magnitude | None]) -> dict[str, tuple[int, int]]:
    """Return the share and the units of everyone with a take; below 1e-60 of the largest, a take counts as 0."""
    if None in takes.values():
        return {}
    top = max((take.exponent for take in takes.values() if take and take.positive), default=0)
    worths = {
        who: take.mantissa * Fraction(10) ** (take.exponent - top)
        if take.positive and take.exponent > top - 60
        else Fraction(0)
        for who, take in takes.items()
        if take is not None
    }
    whole = sum(worths.values()) or Fraction(1)
    amounts = oracle.largest_remainder(units, worths)
    return {who: (round(worth * NANOS / whole), amounts[who]) for who, worth in worths.items()}


@st.composite
def drawn_rules(draw: st.DrawFn) -> RuleSet:
    """Rules with every total without kinds, every take, and thresholds."""
    take = draw(st.sampled_from([*TAKES]))
    return structs.replace(
        RULES,
        kernel=draw(st.sampled_from(["brier", "ln"])),
        total=draw(st.sampled_from(["sum", "mean", "per_coverage", "per_question"])),
        least_coverage=draw(st.integers(1, 3)),
        take=take,
        rank_by=draw(st.sampled_from(["total"] if take == "none" else ["total", "take"])),
        least_questions=draw(st.integers(0, 2)),
        least_share_ppm=draw(st.sampled_from([0, 500_000, 750_000])),
        best_of_entrant=draw(st.booleans()),
    )


@st.composite
def drawn_cells(draw: st.DrawFn, group: ScoredGroup) -> dict[tuple[int, int], Cell]:
    """Scores that are equal, next to each other, half a unit of the last published place, or near 134 bits."""
    cells = {}
    largest = draw(st.sampled_from([1, 10**3, 2**60, 2**70]))
    for question, (length, points) in enumerate(
        zip(group.questions.length.tolist(), group.questions.per_point, strict=True)
    ):
        half = points * length // (2 * NANOS)
        bases = st.sampled_from([0, half, 3 * half, points * length, largest * half])
        for person in range(len(PEOPLE)):
            if draw(st.integers(0, 4)):
                numerator = draw(st.sampled_from([1, -1])) * int(draw(bases)) + draw(st.integers(-1, 1))
                cells[question, person] = Cell(numerator, draw(st.sampled_from([0, 1, length // 3, length])))
    return cells


@settings(max_examples=times(60), deadline=None)
@given(st.data())
def test_columns_are_those_of_plain_fractions(data: st.DataObject) -> None:
    """Scores, coverages, takes, ranks, shares and prizes, whether from sums, from sums with bounds, or from tallies."""
    who, level = st.sampled_from(PEOPLE), st.sampled_from(LEVELS)
    levels = data.draw(st.dictionaries(st.tuples(st.sampled_from(NAMES), who), level, max_size=3))
    entrants = data.draw(st.dictionaries(who, st.sampled_from(["team", "club"]), max_size=3))
    pool = data.draw(st.sampled_from([0, 10**4, 10**8, 10**12]))
    facts = season(data.draw(drawn_rules()), pool, levels, entrants)
    group = score_group(facts, [*NAMES], 100)
    cells = dict(sorted(data.draw(drawn_cells(group)).items()))
    questions, people = (int64_array([key[place] for key in cells]) for place in (0, 1))
    numerators = WideInt.from_integers([cell.numerator for cell in cells.values()])
    covered = int64_array([cell.covered for cell in cells.values()])
    group = group._replace(rows=Scores(questions, people, numerators, covered, np.zeros_like(covered)))
    sums, rows = group.sums(facts), [*expected(facts, group, cells)]
    kept, bounds = with_bounds(
        group.rules, group.questions, sums.sums, sums.people, int64_array([0, 2, 3, sums.people + 1])
    )

    def terms(owner: int, slot: int) -> Iterator[tuple[int, int]]:
        """Yield the terms of a sum with bounds, which nobody asks for unless a tie has to be seen."""
        number, person = divmod(owner, sums.people)
        for (question, code), cell in cells.items():
            weight = int(group.questions.weight[question])
            if code == person and group.questions.contest[question] == number and weight:
                length, whole = (int(column[question]) for column in (group.questions.length, group.questions.whole))
                point = group.questions.per_point[question] * length * WEIGHT
                coverage = Fraction(cell.covered, whole * WEIGHT)
                part = coverage if slot == COVERAGE else cell.numerator / point if slot == 0 else Fraction(0)
                yield (weight * part).as_integer_ratio()

    bounded = sums._replace(sums=kept, bounds=bounds, terms=terms)
    for cached in (
        CachedResults(sums=dict.fromkeys(NAMES, sums)),
        CachedResults(sums=dict.fromkeys(NAMES, bounded)),
        CachedResults(tallies=sums.tallies()),
    ):
        projections = Projections(facts, cached=cached)
        columns = map(plain_values, projections.table("leaderboard").values)
        assert [*map(list, zip(*columns, strict=True))] == rows
        exact = {(name, row.participant): row.score for name in NAMES for row in projections.board(name)}
        every = {
            (name, who): row[0]
            for number, name in enumerate(NAMES)
            for who, row in totals(facts, group, cells, number).items()
        }
        assert exact == {key: every[key] for key in exact}
        assert len(exact) == len(rows)


NUMBERS = st.builds(
    lambda base, step: base + step,
    st.fractions(-3, 3, max_denominator=4) | st.sampled_from([Fraction(10) ** 40, Fraction(0)]),
    st.sampled_from([Fraction(0), Fraction(1, 2**70), Fraction(-1, 2**45), Fraction(1, 2)]),
)
GUARDS = st.sampled_from([0, 1e-15, 0.3, 5.0, np.inf])


def loosened(numbers: Sequence[Fraction], loose: Sequence[float], share: float = 0.5) -> Estimated:
    """Return numbers whose estimates are off by a share of their guards."""
    near, guards = [], []
    for number, guard in zip(numbers, loose, strict=True):
        value = float(number) + (guard * share if np.isfinite(guard) else 0)
        near.append(value)
        guards.append(guard + abs(value) * 2.0**-50 if guard or Fraction(value) != number else 0.0)
    columns = (np.array(near, np.float64), np.array(guards, np.float64))
    return Estimated(*columns, lambda chosen: [numbers[row] for row in chosen.tolist()])


@settings(max_examples=times(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), NUMBERS, GUARDS), max_size=12), st.booleans())
def test_however_loose_the_guards_are_order_and_digits_are_exact(
    rows: list[tuple[int, Fraction, float]], falling: bool
) -> None:
    """Estimates lie anywhere within their guards; equal numbers are in order of their tie-break."""
    part, numbers, loose = zip(*rows, strict=True) if rows else ((), (), ())
    estimated = loosened(numbers, loose)
    tie = int64_array([7 * row % 13 for row in range(len(rows))])
    order, first = estimated.in_order(int64_array(part), tie, falling=falling)
    sign = -1 if falling else 1
    keys = [(part[row], sign * numbers[row]) for row in range(len(rows))]
    assert order.tolist() == sorted(range(len(rows)), key=lambda row: (*keys[row], tie[row]))
    assert first.tolist() == [
        not at or keys[row] != keys[before]
        for at, (before, row) in enumerate(zip([0, *order.tolist()], order.tolist(), strict=False))
    ]
    assert estimated.rounded(NANOS) == [round(number * NANOS) for number in numbers]
    above = [number for number in numbers if number > 0]
    divisor = Estimated.of(above).rows(int64_array([at % len(above) for at in range(len(rows))])) if above else None
    if divisor is not None:
        expected = [round(100 * number / above[at % len(above)]) for at, number in enumerate(numbers)]
        assert estimated.divided_by(divisor).rounded(100) == expected


TOTALS = st.lists(st.tuples(st.fractions(-9, 9, max_denominator=50), st.fractions(0, 1, max_denominator=9)), min_size=1)
OFF = st.tuples(GUARDS, st.sampled_from([-1.0, -0.5, 0.9, 1.0]))  # guards, and by what share of them numbers are off


@settings(max_examples=times(60), deadline=None)
@given(TOTALS, st.sampled_from(["coverage_exp", "coverage_exp2", "positive_square"]), OFF, OFF)
def test_a_take_is_within_its_guard(
    rows: list[tuple[Fraction, Fraction]], name: str, off: tuple[float, float], coverage_off: tuple[float, float]
) -> None:
    """Whatever the errors of total and coverage are within theirs."""
    totals, coverages = (list(column) for column in zip(*rows, strict=True))
    near, other = (
        loosened(column, [guard] * len(rows), share)
        for column, (guard, share) in ((totals, off), (coverages, coverage_off))
    )
    takes = TAKES[name].of(near, other)
    assert takes is not None
    for row, (total, coverage) in enumerate(rows):
        base = Decimal(2) if name == "coverage_exp2" else Decimal(1).exp()
        power = Fraction(base ** (Decimal(total.numerator) / total.denominator))
        exact = max(total, Fraction(0)) ** 2 if name == "positive_square" else coverage * power
        assert np.isinf(takes.guards[row]) or abs(Fraction(takes.values[row]) - exact) <= Fraction(takes.guards[row])


TAKEN = st.tuples(
    st.sampled_from([Fraction(0), Fraction(1), Fraction(2), Fraction(1, 3)]) | st.fractions(0, 4, max_denominator=9),
    st.sampled_from([0, 1e-16, 1e-14, 1e-11, np.inf]),
)


@settings(max_examples=times(150), deadline=None)
@given(
    st.lists(st.lists(TAKEN, min_size=1, max_size=5), min_size=1, max_size=3),
    st.sampled_from([0, 1, 7, 100, 10**6, 10**11]),
)
@example([[(Fraction(1), 0), (Fraction(1), 1e-11), (Fraction(1), 0)]], 100)  # who gets the cent that is left over
@example([[(Fraction(1), 4e-12), (Fraction(1), 0), (Fraction(1), 2e-12)]], 3 * 10**12)  # off by a whole cent
@example([[(Fraction(1), 1e-15), (Fraction(2 * NANOS - 1), 0)]], 7)  # a share of half a unit
@example([[(Fraction(0), 1e-11)]], 7)  # a take that may be 0, and is
@example([[(Fraction(1), 2.0**-39), (1 - Fraction(1, 1 << 40), 0)]], 1 << 42)  # off by one, and none is left over
def test_shares_that_are_certain_are_those_of_plain_fractions(
    boards: list[list[tuple[Fraction, float]]], units: int
) -> None:
    """By largest remainder; a contest whose guards leave a doubt is said to be in doubt."""
    rows = [row for board in boards for row in board]
    starts = int64_array([sum(map(len, boards[:number])) for number in range(len(boards))])
    takes = loosened([take for take, _ in rows], [guard for _, guard in rows])
    shares = takes.shares(starts)
    share, doubtful = shares.nearest(NANOS)
    parts, certain = shares.apportioned(starts, np.full(len(boards), units))
    certain[np.searchsorted(starts, doubtful, "right") - 1] = False
    for first, board, is_certain in zip(starts.tolist(), boards, certain.tolist(), strict=True):
        exact = {str(number): take for number, (take, _) in enumerate(board)}
        whole, amounts = sum(exact.values()) or 1, oracle.largest_remainder(units, exact)
        if is_certain:
            assert share[first : first + len(board)].tolist() == [
                round(take * NANOS / whole) for take in exact.values()
            ]
            assert parts[first : first + len(board)].tolist() == [*amounts.values()]
        else:
            assert sum(take > 0 for take in exact.values()) > 1 or any(guard for _, guard in board)
