"""The fit in two ways, compared with NumPy's least squares, and with sums by hand."""

from collections.abc import Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from forecast_ledger.projections.studies.two_way import Cells, Part, fit
from tests.support.effort import times


def cells(rows: Sequence[tuple[int, int, int, int]]) -> Cells:
    """Return the scores of participant, question, score and weight."""
    participant, question, score, weight = zip(*rows, strict=True)
    who, which, heavy = (np.array(each, np.int64) for each in (participant, question, weight))
    return Cells(who, which, [*score], heavy)


def effects(part: Part) -> dict[int, Fraction]:
    """Return the effect of each question."""
    return {question: Fraction(effect, part.denominator) for question, effect in part.effects.items()}


def by_least_squares(rows: Sequence[tuple[int, int, int, int]]) -> dict[int, float]:
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
    [part] = fit(cells(rows))
    expected = by_least_squares(rows)
    assert effects(part).keys() == expected.keys()
    for which, effect in effects(part).items():
        assert abs(float(effect) - expected[which]) < 1e-6


def test_parts_that_nothing_connects_are_fitted_apart() -> None:
    """Ada and Bob share question 1, Cem is alone on question 5; a chain through others connects, too."""
    rows = [(0, 0, 10, 1), (0, 1, 30, 1), (1, 1, 50, 1), (2, 5, 70, 1), (3, 2, 1, 1), (1, 2, 3, 1)]
    first, second = sorted(fit(cells(rows)), key=lambda part: -len(part.effects))
    assert effects(first).keys() == {0, 1, 2}
    assert effects(second) == {5: 0}


def test_a_score_less_the_effects_is_the_participants_own() -> None:
    """Where everybody has a score on every question, it is the mean score, as all meet the same questions."""
    rows = [(0, 0, 10, 2), (0, 1, 40, 1), (1, 0, 30, 2), (1, 1, 90, 1)]
    [part] = fit(cells(rows))
    adjusted = [part.adjusted(cells([row for row in rows if row[0] == who])) for who in (0, 1)]
    assert adjusted == [Fraction(20 + 40, 3), Fraction(60 + 90, 3)]


def test_the_order_of_scores_does_not_matter() -> None:
    """Nor do the codes of participants and questions."""
    rows = [(who, which, (who * 7 + which * 5) ** 2 % 101, 1) for who in range(4) for which in range(5) if who != which]
    [part], [again] = (
        fit(cells(rows)),
        fit(cells([(9 - who, 50 - which, score, one) for who, which, score, one in rows[::-1]])),
    )
    assert {50 - which: effect for which, effect in effects(again).items()} == effects(part)
