"""Tests of probabilities by outcome, read for many forecasts at once."""

import random
from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching.chances import Chances
from forecast_ledger.ledger.batching.forecasts import read_quick_forecasts
from forecast_ledger.ledger.model import commands
from tests.ledger.batching.test_forecasts import IDS, INSTANTS, WRONG, both_ways, random_command, written
from tests.support.given import choices, day, forecast, numeric, opened

OUTCOMES = ("red", "a b", "é", 'q"t', "back\\s", "Z", "z", "0", "%s", "\U0001f600", "x" * 200)
DIFFERENCES = [*("1e-6", "-1e-6", "1.0005e-6", "-1.0006e-6", "1e-9", "-5e-10", "1e-3", "-2")]


def random_shares(dice: random.Random, count: int) -> list[Decimal]:
    """Decimals that sum to 1 or nearly so, of which several may be equal."""
    weights = dice.choice([[1] * count, [0] * (count - 1) + [1], [dice.randrange(1, 99) for _ in range(count)]])
    unit = Decimal(1).scaleb(-dice.choice([3, 6, 7, 9, 9, 12]))
    shares = [(Decimal(weight) / sum(weights)).quantize(unit) for weight in weights]
    if dice.random() < 0.7:
        shares[dice.randrange(count)] += 1 - sum(shares)
    if dice.random() < 0.1:
        shares[dice.randrange(count)] += Decimal(dice.choice(DIFFERENCES))
    return shares


def random_chances(dice: random.Random, question: commands.OpenQuestion) -> Any:
    """A forecast of every outcome, in any order, written in one way or in several; a few have a fault."""
    outcomes = [*(question.outcomes or ())]
    if dice.random() < 0.3:
        dice.shuffle(outcomes)
    shares, among = random_shares(dice, len(outcomes)), dice.random()
    alike = dice.choice([Decimal, Decimal, str, float])
    numbers = [alike(share) if among < 0.8 else written(share, dice) for share in shares]
    given: dict[Any, Any] = dict(zip(outcomes, numbers, strict=True))
    if among < 0.1:
        given |= {dice.choice([*IDS[:-1], "odd", 5, True, dice.choice(outcomes)]): dice.choice([0, "0", *WRONG])}
    elif among < 0.13:
        del given[outcomes[0]]
    fields: dict[str, Any] = {"probabilities": given if dice.random() < 0.98 else dice.choice([{}, [], (), 5, "0.5"])}
    fields |= {"normalized": "divide"} if dice.random() < 0.03 else {"by": "ann"} if dice.random() < 0.03 else {}
    at = day(dice.randrange(1, 8)) if dice.random() < 0.95 else dice.choice(INSTANTS)
    return forecast(question=question.question, participant=f"p{dice.randrange(60)}", at=at, **fields)


@pytest.mark.parametrize("seed", range(3))
def test_random_probabilities_by_outcome_have_the_same_outcome_both_ways(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With differences from 1 that one of several equal ones takes, in other orders, digits and types, and refused.

    Outcomes of some questions change.
    """
    dice = random.Random(seed)
    asked = [
        choices(f"q{number}", tuple(dice.sample(OUTCOMES, dice.choice([2, 3, 3, 4, 7]))), closes_at=day(20))
        for number in range(8)
    ]
    history: list[Any] = [*asked, opened(question="rain"), numeric()]
    for number in range(350):
        sent, odd = dice.choice(history), dice.random()
        if odd < 0.05:
            history.append(random_command(dice))
        elif odd < 0.06:
            history.append(commands.ChangeOutcomes(at=day(3), question=f"q{dice.randrange(4)}", add=(f"new{number}",)))
        elif odd < 0.13 and getattr(sent, "probabilities", None):
            history.append(sent)
        else:
            history.append(random_chances(dice, dice.choice(asked)))
    ids = [f"c{number if dice.random() < 0.95 else dice.randrange(number + 1)}" for number in range(len(history))]
    history = [structs.replace(each, id=own) for each, own in zip(history, ids, strict=True)]
    quick, long = both_ways([*history, *history[::3]], dice.choice([1, 40, 600]), monkeypatch)
    assert quick == long
    assert 100 < sum("Receipt" in said for said in quick[0]) < 450
    read = read_quick_forecasts(ids, history)
    taken = [each for at, each in zip(read.at, read.measures, strict=True) if at is not None and each is not None]
    assert len(taken) > 150
    assert {each.is_in_doubt for each in taken if isinstance(each, Chances)} == {False, True}


def test_equal_probabilities_take_the_difference_in_the_order_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever order they are given, the first outcome of the question gets what is missing of 1."""
    third = Decimal("0.333333333")
    orders: list[tuple[str, ...]] = [("x", "y", "z"), ("z", "y", "x"), ("y", "x", "z")]
    sent = [
        forecast("q", f"p{number}", at=day(1), probabilities=dict.fromkeys(order, third), id=f"f{number}")
        for number, order in enumerate(orders)
    ]
    quick, long = both_ways([choices("q", orders[0], id="o"), *sent], 4, monkeypatch)
    assert quick == long
    assert [row.count(b'"probabilities":[333333334,333333333,333333333]') for row in quick[1]] == [0, 1, 1, 1]


def test_probabilities_of_more_outcomes_than_are_read_together_are_left_to_the_other_way() -> None:
    """So that no command has more bytes than one may have."""
    few, many = ({f"o{number}": int(not number) for number in range(count)} for count in (10_000, 10_001))
    read = [forecast("q", at=day(2), probabilities=each) for each in (few, many, few)]
    assert [each is None for each in read_quick_forecasts(["f"] * 3, read).at] == [False, True, False]
