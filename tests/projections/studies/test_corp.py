"""Recalibrated forecasts, compared with the definition of isotonic regression, and with numbers worked out by hand."""

from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.projections.boards.brier import Sample
from forecast_ledger.projections.studies import calibration
from forecast_ledger.projections.studies.calibration import Recalibrated, recalibrate
from tests.support import oracle
from tests.support.effort import times
from tests.support.given import asked, contest

ONE = 10**9


def sampled(rows: list[tuple[int, int, bool]]) -> Sample:
    """Return a sample of owner, probability in 1e-9, and whether the answer was yes."""
    owner, probability, happened = zip(*rows, strict=True)
    numbers = [np.array(each, np.int64) for each in (owner, probability)]
    return Sample(numbers[0], numbers[1], np.full(len(rows), -1), np.array(happened, bool))


def isotonic(rows: list[tuple[int, bool]]) -> dict[int, Fraction]:
    """Return the isotonic regression at each probability: the greatest of the least means, over all spans around it."""
    places = sorted({place for place, _ in rows})
    counts = [[yes for place, yes in rows if place == each] for each in places]

    def mean(first: int, last: int) -> Fraction:
        every = [yes for own in counts[first : last + 1] for yes in own]
        return Fraction(sum(every), len(every))

    return {
        place: max(min(mean(a, b) for b in range(i, len(places))) for a in range(i + 1))
        for i, place in enumerate(places)
    }


def of_blocks(own: Recalibrated, place: int) -> Fraction:
    """Return the recalibrated probability of a forecast."""
    [block] = [each for each in own.blocks if each.lower <= place <= each.upper]
    return Fraction(block.happened, block.n)


@pytest.mark.parametrize("seed", range(times(15)))
def test_recalibrated_forecasts_are_those_of_the_definition(seed: int) -> None:
    """Of every owner, with equal forecasts; what the parts say of the Brier score adds up exactly."""
    random = Random(seed)
    rows = [
        (random.randrange(3), random.randrange(0, 11) * ONE // 10, random.random() < 0.5)
        for _ in range(random.randint(1, 40))
    ]
    random.shuffle(rows)
    found = {own.owner: own for own in recalibrate(sampled(rows))}
    assert [*found] == sorted({owner for owner, *_ in rows})
    for owner, own in found.items():
        mine = [(place, yes) for each, place, yes in rows if each == owner]
        expected = isotonic(mine)
        assert {place: of_blocks(own, place) for place in expected} == expected
        shares = [Fraction(each.happened, each.n) for each in own.blocks]
        assert all(low < high for low, high in pairwise(shares))
        assert all(low.upper < high.lower for low, high in pairwise(own.blocks))
        base = Fraction(sum(yes for _, yes in mine), len(mine))

        def mean(guess: Any, mine: list[tuple[int, bool]] = mine) -> Fraction:
            return sum(((guess(place) - yes) ** 2 for place, yes in mine), Fraction(0)) / len(mine)

        raw, new, flat = (
            mean(lambda place: Fraction(place, ONE)), mean(expected.__getitem__), mean(lambda _, base=base: base)
        )  # fmt: skip
        assert (own.brier, own.miscalibration, own.discrimination) == (raw, raw - new, flat - new)
        assert own.uncertainty == flat
        assert own.brier == own.miscalibration - own.discrimination + own.uncertainty
        assert min(own.miscalibration, own.discrimination) >= 0


@pytest.mark.parametrize("few", [1, 10**9])
def test_forecasts_are_joined_at_once_or_one_after_the_other(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two owners with many distinct forecasts; of a third, of whom each falls below the block before it."""
    random = Random(few)
    rows = [(owner, random.randrange(ONE), random.random() < 0.5) for owner in (0, 1) for _ in range(700)]
    rows += [(2, level * 10**7, number < level) for level in range(1, 40) for number in range(40)]
    rows += [(2, 40 * 10**7 + level, False) for level in range(300)]
    plain = [*recalibrate(sampled(rows))]
    monkeypatch.setattr(calibration, "_FEW_FALLS", few)
    assert [*recalibrate(sampled(rows))] == plain
    shares = [Fraction(each.happened, each.n) for each in plain[2].blocks]
    joined = Fraction(sum(range(22, 40)), 18 * 40 + 300)  # more than 21 / 40, less than 22 / 40
    assert shares == [*(Fraction(level, 40) for level in range(1, 22)), joined]


def test_the_tables_have_the_forecasts_of_brier_scores() -> None:
    """Ada said 0.1, 0.3, 0.5, 0.7, and no, yes, no, yes came: 0.21 = 0.085 - 0.125 + 0.25."""
    rules = RuleSet(name="plain-brier", kernel="brier", period="covered", total="mean")
    story: list[AnyCommand] = [contest(rules=rules)]
    for number, (said, came) in enumerate((("0.1", "no"), ("0.3", "yes"), ("0.5", "no"), ("0.7", "yes"))):
        story += asked(f"q{number}", {"ada": said}, came)
    projections = oracle.projected(*story)
    [own] = [row for row in projections.table("corp").rows() if row["participant"] == "ada"]
    assert own == {
        "contest": "cup",
        "participant": "ada",
        "n": 4,
        "brier": "0.210000000",
        "miscalibration": "0.085000000",
        "discrimination": "0.125000000",
        "uncertainty": "0.250000000",
    }
    [brier] = [row for row in projections.table("brier").rows() if row["participant"] == "ada"]
    assert brier["brier"] == own["brier"]
    blocks = [[*row.values()][2:] for row in projections.table("corp_blocks").rows() if row["participant"] == "ada"]
    assert blocks == [
        ["0.100000000", "0.100000000", 1, 0, "0.000000000"],
        ["0.300000000", "0.500000000", 2, 1, "0.500000000"],
        ["0.700000000", "0.700000000", 1, 1, "1.000000000"],
    ]
