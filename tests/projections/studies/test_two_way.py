"""The fit in two ways, compared with elimination in fractions, NumPy's least squares, and sums by hand."""

from collections.abc import Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.projections.studies import two_way
from forecast_ledger.projections.studies.two_way import Cells, Part, fit, fit_exactly, peeled
from tests.support.effort import times

Row = tuple[int, int, int, int]  # participant, question, score, weight
FINE = 10**60


def cells(rows: Sequence[Row]) -> Cells:
    """Return the scores of participant, question, score and weight."""
    participant, question, score, weight = zip(*rows, strict=True)
    who, which, heavy = (np.array(each, np.int64) for each in (participant, question, weight))
    return Cells(who, which, [*score], heavy)


def effects(part: Part) -> dict[int, Fraction]:
    """Return the effect of each question."""
    return {question: Fraction(effect, part.denominator) for question, effect in part.effects.items()}


def exactly(rows: Sequence[Row]) -> Part:
    """Return the exact fit of scores that are one part."""
    [part] = fit(cells(rows))
    return fit_exactly(part.cells)


def random_rows(random: Random, size: tuple[int, int], density: float, weights: Sequence[int], most: int) -> list[Row]:
    """Return scores at random, of a first participant on all questions and of others on some, in any order."""
    people, questions = size
    weight = [random.choice(weights) for _ in range(questions)]
    rows = [
        (who, which, random.randint(0, most), weight[which])
        for who in range(people)
        for which in range(questions)
        if not who or random.random() < density
    ]
    random.shuffle(rows)
    return rows


def by_elimination(rows: Sequence[Row]) -> dict[int, Fraction]:
    """Return the effects of questions by the equations of least squares, solved by Gauss's elimination in fractions."""
    people, questions = (sorted({row[place] for row in rows}) for place in (0, 1))
    size = len(people) + len(questions)
    lines = [[Fraction(0)] * (size + 1) for _ in range(size)]
    for who, which, score, weight in rows:
        places = people.index(who), len(people) + questions.index(which)
        for place in places:
            lines[place][-1] += weight * score
            for other in places:
                lines[place][other] += weight
    for line in lines:  # the effect of the first question is 0
        line[len(people)] = Fraction(0)
    lines[len(people)] = [Fraction(0)] * len(people) + [Fraction(1)] + [Fraction(0)] * len(questions)
    for place in range(size):
        pivot = next(number for number in range(place, size) if lines[number][place])
        lines[place], lines[pivot] = lines[pivot], lines[place]
        lines[place] = [each / lines[place][place] for each in lines[place]]
        for number in {*range(size)} - {place}:
            if factor := lines[number][place]:
                lines[number] = [own - factor * each for own, each in zip(lines[number], lines[place], strict=True)]
    found = {which: lines[len(people) + number][-1] for number, which in enumerate(questions)}
    heavy = {which: weight for _, which, _, weight in rows}
    mean = sum((each * heavy[which] for which, each in found.items()), Fraction(0)) / sum(heavy.values())
    return {which: each - mean for which, each in found.items()}


def by_least_squares(rows: Sequence[Row]) -> dict[int, float]:
    """Return the effects of questions by NumPy's least squares, moved to a weighted mean of 0."""
    people, questions = (sorted({row[place] for row in rows}) for place in (0, 1))
    design = np.zeros((len(rows), len(people) + len(questions)))
    for number, (who, which, _, _) in enumerate(rows):
        design[number, people.index(who)] = design[number, len(people) + questions.index(which)] = 1
    root = np.sqrt([weight for *_, weight in rows])
    scores = np.array([score for _, _, score, _ in rows])
    found = np.linalg.lstsq(design * root[:, None], scores * root, rcond=None)[0][len(people) :]
    weight = {which: weight for _, which, _, weight in rows}
    mean = sum(each * weight[which] for which, each in zip(questions, found, strict=True)) / sum(weight.values())
    return {which: each - mean for which, each in zip(questions, found, strict=True)}


@pytest.mark.parametrize("seed", range(times(15)))
def test_the_effects_are_those_of_least_squares(seed: int) -> None:
    """Each score is weighted by its question; who has scores on the same questions need not be alike otherwise."""
    random = Random(seed)
    weight = [random.randint(1, 4) for _ in range(9)]
    present = {(0, which) for which in range(9)} | {
        (who, which) for who in range(1, 7) for which in range(9) if random.random() < 0.5
    }
    rows = [(who, which, random.randint(0, 1_000), weight[which]) for who, which in sorted(present)]
    random.shuffle(rows)
    found, expected = effects(exactly(rows)), by_least_squares(rows)
    assert found.keys() == expected.keys()
    for which, effect in found.items():
        assert abs(float(effect) - expected[which]) < 1e-6


def test_parts_that_nothing_connects_are_fitted_apart() -> None:
    """Ada and Bob share question 1, Cem is alone on question 5; a chain through others connects, too."""
    rows = [(0, 0, 10, 1), (0, 1, 30, 1), (1, 1, 50, 1), (2, 5, 70, 1), (3, 2, 1, 1), (1, 2, 3, 1)]
    first, second = sorted(fit(cells(rows)), key=lambda part: -len(part.effects))
    assert second.off == 0
    assert effects(first).keys() == {0, 1, 2}
    assert effects(second) == {5: 0}


def test_a_score_less_the_effects_is_the_participants_own() -> None:
    """Where everybody has a score on every question, it is the mean score, as all meet the same questions."""
    rows = [(0, 0, 10, 2), (0, 1, 40, 1), (1, 0, 30, 2), (1, 1, 90, 1)]
    part = exactly(rows)
    adjusted = [part.adjusted(cells([row for row in rows if row[0] == who])) for who in (0, 1)]
    assert adjusted == [Fraction(20 + 40, 3), Fraction(60 + 90, 3)]


def test_the_order_of_scores_does_not_matter() -> None:
    """Nor do the codes of participants and questions."""
    rows = [(who, which, (who * 7 + which * 5) ** 2 % 101, 1) for who in range(4) for which in range(5) if who != which]
    again = exactly([(9 - who, 50 - which, score, one) for who, which, score, one in rows[::-1]])
    assert {50 - which: effect for which, effect in effects(again).items()} == effects(exactly(rows))


@pytest.mark.parametrize("weights", [(1,), (1, 2, 7), (500_000, 1_000_000), (1, 10**12)], ids=str)
@pytest.mark.parametrize("seed", range(times(40)))
def test_exact_effects_are_those_of_elimination_and_others_are_as_near_as_they_say(
    seed: int, weights: Sequence[int]
) -> None:
    """Whatever the weights, from few whole scores to numbers of 200 bits; scores may be less than a unit too low."""
    random = Random(seed)
    size, most = (random.randint(2, 7), random.randint(2, 9)), random.choice((2, 10**9, FINE))
    rows = random_rows(random, size, random.choice((0.2, 0.6)), weights, most)
    expected = by_elimination(rows)
    assert effects(exactly(rows)) == expected
    for rounding, unit in ((0, 1), (1, 16)):
        [near] = fit(cells([(who, which, score // unit, weight) for who, which, score, weight in rows]), rounding)
        for which, effect in effects(near).items():
            assert abs(effect * unit - expected[which]) <= near.off * unit


def test_a_crowd_is_fitted_to_many_digits() -> None:
    """200 people and 600 questions; equations that the effects leave nothing of, but for what they say is open."""
    rows = random_rows(Random(5), (200, 600), 0.04, range(1, 9), FINE)
    [part] = fit(cells(rows))
    assert part.off < FINE >> 120
    found, own = effects(part), dict[int, list[Row]]()
    for row in rows:
        own.setdefault(row[0], []).append(row)
    mean = {who: part.adjusted(cells(theirs)) for who, theirs in own.items()}
    rest = dict.fromkeys(found, Fraction(0))
    for who, which, score, weight in rows:
        rest[which] += weight * (score - found[which] - mean[who])
    assert max(map(abs, rest.values())) <= 2 * part.off * sum(row[-1] for row in rows)


def test_a_fit_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """If only an exact one decides; the message says how large it is."""
    monkeypatch.setattr(two_way, "MOST_WORK", 1_000)
    rows = random_rows(Random(1), (20, 30), 0.3, (1,), FINE)
    [part] = fit(cells(rows))
    with pytest.raises(Refused, match=f"for {len(rows)} scores") as refused:
        fit_exactly(part.cells)
    assert refused.value.code == "out_of_range"


@pytest.mark.parametrize("seed", range(times(40)))
def test_what_is_peeled_away_tells_nothing(seed: int) -> None:
    """Participants' effects are those that the rest of the questions give, or differ as two scores do."""
    random = Random(seed)
    rows = random_rows(random, (random.randint(3, 9), random.randint(3, 9)), 0.15, (1, 3), 5)
    part = exactly(rows)
    own = {who: {row[1]: row for row in rows if row[0] == who} for who, *_ in rows}
    effect = {who: part.adjusted(cells([*scores.values()])) for who, scores in own.items()}
    found = peeled(part.cells)
    for who, questions in found.questions.items():
        assert effect[who] == part.adjusted(cells([own[who][which] for which in questions or own[who]]))
    for who, (which, other) in found.same.items():
        assert effect[who] - effect[other] == own[who][which][2] - own[other][which][2]
