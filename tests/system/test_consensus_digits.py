"""Every published digit of a score against an average, by its formula with 50 digits: nothing is rounded on the way."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.rules import RuleSet
from tests.support import oracle
from tests.support.given import choices, contest, day, entry, forecast, numeric, resolution
from tests.support.oracle import EXACT

# A published score is rounded to 1e-9; two logarithms, each rounded to 1e-12, are multiplied by 50 or 100.
NINE = Decimal("5e-10") + Decimal("1e-10")
NAMES = ("red", "green", "blue", "grey")
SEEDS = range(12)


def weights(count: int, kind: str) -> list[Decimal]:
    """The oldest first; e^(√i - √n) where the newest count most, unless they are two or fewer."""
    if kind == "equal" or count <= 2:
        return [Decimal(1)] * count
    return [EXACT.exp(EXACT.subtract(EXACT.sqrt(Decimal(i)), EXACT.sqrt(Decimal(count)))) for i in range(1, count + 1)]


def mean(values: Sequence[Decimal], kind: str) -> Decimal:
    """By weight."""
    weighs = weights(len(values), kind)
    total = sum((EXACT.multiply(v, w) for v, w in zip(values, weighs, strict=True)), Decimal(0))
    return EXACT.divide(total, sum(weighs, Decimal(0)))


def middle(values: Sequence[Decimal], kind: str) -> Decimal:
    """By weight: halfway between the first value with half of it up to there, and the first with more."""
    pairs = sorted(zip(values, weights(len(values), kind), strict=True))
    half, upto, low = sum((w for _, w in pairs), Decimal(0)) / 2, Decimal(0), None
    for value, weight in pairs:
        upto += weight
        low = value if low is None and upto >= half else low
        if upto > half and low is not None:
            return (low + value) / 2
    raise AssertionError


def published(rules: RuleSet, question: Any, made: Sequence[AnyCommand], answer: AnyCommand) -> dict[str, Decimal]:
    """Everyone's score."""
    said = [question, contest(rules=rules), entry(question=question.question), *made, answer]
    return {row["participant"]: Decimal(row["score"]) for row in oracle.projected(*said).table("scores").rows()}


def own(kind: str, average: str) -> RuleSet:
    """Rules that score forecasts at one instant against an average."""
    fields: dict[str, Any] = {"consensus": average, "consensus_weights": kind, "sampling": "spot", "scale": "peer"}
    return RuleSet(name="own", kernel="ln", cdf_kernel="ln", reference="consensus", **fields)


def agrees(scores: dict[str, Decimal], chances: Sequence[Decimal], average: Decimal, points: int) -> None:
    """To the last digit."""
    for who, chance in enumerate(chances):
        exact = points * EXACT.subtract(EXACT.ln(chance), EXACT.ln(average))
        assert abs(scores[f"p{who}"] - exact) <= NINE, (who, exact)


@pytest.mark.parametrize("kind", ["equal", "recency"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nine_decimals_against_a_mean_of_cdfs_are_right(seed: int, kind: str) -> None:
    """Up to thirty random cdfs of four bins; the bin of the answer has between 0.01 and 1e-4 of each."""
    random = Random(seed)
    steps = [random.randint(10**6, 10**8) for _ in range(random.randint(2, 30))]
    made = [
        forecast(
            "depth", f"p{who}", cdf=(0, "0.3", Decimal(3 * 10**9 + step).scaleb(-10), "0.9", 1), at=day(10, who % 24)
        )
        for who, step in enumerate(steps)
    ]
    rules = own(kind, random.choice(["mean", "community", "squeezed"]))
    rules = RuleSet(**({name: getattr(rules, name) for name in rules.__struct_fields__} | {"least_density_ppm": 1}))
    ages = sorted(range(len(steps)), key=lambda who: (who % 24, f"p{who}"))
    chances = [Decimal(step).scaleb(-10) for step in steps]
    scores = published(rules, numeric(), made, resolution("depth", value="1.5"))
    agrees(scores, chances, mean([chances[who] for who in ages], kind), 50)


@pytest.mark.parametrize("kind", ["equal", "recency"])
@pytest.mark.parametrize("average", ["mean", "community", "squeezed"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nine_decimals_against_an_average_of_multiple_choice_are_right(seed: int, average: str, kind: str) -> None:
    """Up to thirty random forecasts of four outcomes, none below 0.001."""
    random = Random(f"{seed} {average}")
    rows = []
    for _ in range(random.randint(1, 30)):
        cuts = sorted(random.randint(0, 996_000_000) for _ in NAMES[1:])
        rows.append([Decimal(b - a + 10**6).scaleb(-9) for a, b in zip([0, *cuts], [*cuts, 996_000_000], strict=True)])
    made = [
        forecast("colour", f"p{who:02}", probabilities=dict(zip(NAMES, row, strict=True)), at=day(10, who % 24))
        for who, row in enumerate(rows)
    ]
    ages = sorted(range(len(rows)), key=lambda who: (who % 24, who))
    columns = [[rows[who][place] for who in ages] for place in range(len(NAMES))]
    if average == "mean":
        expected = mean(columns[1], kind)
    else:
        less = Decimal("0.001") if average == "squeezed" else Decimal(0)
        medians = [middle(column, kind) - less for column in columns]
        expected = EXACT.divide(medians[1], sum(medians, Decimal(0))) * (1 - 4 * less) + less
    actual = published(own(kind, average), choices(outcomes=NAMES), made, resolution("colour", outcome="green"))
    scores = {f"p{who}": actual[f"p{who:02}"] for who in range(len(rows))}
    agrees(scores, [row[1] for row in rows], expected, 100)


def test_the_mean_of_three_thirds_is_not_rounded_before_its_logarithm() -> None:
    """A mean of 1.1 / 3: ln is -1.003302108864; of 0.3666666667 it is -1.003302108773, 9.1e-9 points off."""
    exact = oracle.picos("ln", Fraction(11, 30))
    assert oracle.picos("ln", Fraction(3_666_666_667, 10**10)) - exact == 91
    made = [
        forecast("colour", f"p{who}", probabilities={"red": p, "green": 1 - p}, at=day(10))
        for who, p in enumerate(map(Decimal, ("0.3", "0.7", "0.1")))
    ]
    question = choices(outcomes=("red", "green"))
    scores = published(own("equal", "mean"), question, made, resolution("colour", outcome="red"))
    assert scores["p0"] == oracle.nine(100 * Fraction(oracle.picos("ln", Fraction(3, 10)) - exact, 10**12))
