"""Relative skill: the geometric mean of the ratios of mean scores, each on the questions that two participants share.

Source: Cramer et al. (2022), doi:10.1073/pnas.2113561119, "Evaluation methodology"; as scoringutils computes it, Bosse
et al. (2022), arXiv:2205.07090.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.core.exact import WIDE
from forecast_ledger.projections.core.arrays import BoolArray, Int64Array
from forecast_ledger.projections.core.column_values import POINTS
from forecast_ledger.projections.core.estimates import matrix_product, wide_matrix_product
from forecast_ledger.projections.core.sorting import distinct
from forecast_ledger.projections.difficulty.two_way import Cells

_ZERO = Decimal(0)


class RelativeSkill(NamedTuple):
    """A participant's relative skill, by the code of the participant.

    compared: with how many participants, themselves included. logarithm: of the geometric mean; None if it is not
    defined, because a mean is 0.
    """

    participant: int
    compared: int
    logarithm: Decimal | None


def relative_skills(cells: Cells, fitted: set[int]) -> list[RelativeSkill]:
    """Return the relative skill of every participant, by code; lower is better.

    cells: scores that are not below 0, of which lower ones are better. fitted: whom others are compared with; who is
    not is compared with these, and with themselves, and changes nobody's number. Two participants without a common
    question are not compared.

    >>> codes = [np.array(each) for each in ([0, 1, 2], [0, 0, 0], [1, 1, 1])]
    >>> skills = relative_skills(Cells(codes[0], codes[1], [4, 2, 1], codes[2]), {0, 1, 2})
    >>> [scaled(each, skills[1]) for each in skills]
    [2000000000, 1000000000, 500000000]
    """
    participants, sums, common = _sums(cells)
    against = [number for number, code in enumerate(participants.tolist()) if code in fitted]
    return [
        RelativeSkill(code, *_geometric_mean([*_ratios(sums, common[number], number, against)]))
        for number, code in enumerate(participants.tolist())
    ]


def scaled(own: RelativeSkill, baseline: RelativeSkill | None = None) -> int | None:
    """Return the relative skill in 1e-9, divided by that of a baseline, rounded half-even; None if not defined."""
    below = _ZERO if baseline is None else baseline.logarithm
    if own.logarithm is None or below is None:
        return None
    skill = WIDE.exp(WIDE.subtract(own.logarithm, below))
    return int(WIDE.to_integral_value(WIDE.multiply(skill, Decimal(POINTS))))


def _sums(cells: Cells) -> tuple[Int64Array, list[list[int]], BoolArray]:
    """Return the codes of participants; Σ weight x score of each on the questions of each; and who shares questions."""
    participants, who = distinct(cells.participant)
    questions, which = distinct(cells.question)
    present = np.zeros((len(participants), len(questions)), np.int64)
    present[who, which] = 1
    weighted = np.zeros(present.shape, object)
    weighted[who, which] = [score * weight for score, weight in zip(cells.score, cells.weight.tolist(), strict=True)]
    sums = wide_matrix_product(weighted, present.T).tolist()
    return participants, sums, matrix_product(present, present.T) > 0


def _ratios(sums: list[list[int]], common: BoolArray, own: int, against: list[int]) -> Iterator[Decimal | None]:
    """Yield the logarithm of each ratio of the own mean to another's; that of the own to itself is 0."""
    yield _ZERO
    for other in against:
        if other != own and common[other]:
            mean, their = sums[own][other], sums[other][own]
            yield WIDE.ln(WIDE.divide(Decimal(mean), Decimal(their))) if mean and their else None


def _geometric_mean(ratios: list[Decimal | None]) -> tuple[int, Decimal | None]:
    total = _ZERO
    for ratio in ratios:
        if ratio is None:
            return len(ratios), None
        total = WIDE.add(total, ratio)
    return len(ratios), WIDE.divide(total, Decimal(len(ratios)))
