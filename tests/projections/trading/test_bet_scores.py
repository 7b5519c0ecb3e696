"""The scores of an account's purchases over time, and their mean, compared with exact fractions."""

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.facts.accounts import Movement
from forecast_ledger.projections.trading.portfolios import (
    NO_SCORE,
    Ruling,
    ScoredSpan,
    Verdict,
    mean_changes,
    scored_spans,
    verdicts,
)

KEY = ("week", "ada")
CAPS = st.integers(1, 10**18)
SCORES = st.builds(lambda cap, part: ((cap - part % (cap + 1)) ** 2, cap**2), CAPS, CAPS)
HALF = (1, 2 * PROBABILITY)  # half of the unit in which a mean is published


def movement(position: int, at: int, kind: str, number: int, shares: int, **fields: int | None) -> Movement:
    """A movement of shares of outcome 0 of question 0."""
    given = {"question": 0, "share": 0, "cash": 0, "cost": 0, "price": None} | fields
    return Movement(position=position, at=at, key=KEY, kind=kind, number=number, shares=shares, **given)  # type: ignore[arg-type]


def ruling(position: int, at: int, *payouts: int) -> Ruling:
    """A resolution of question 0, with payouts in 1e-9; without payouts, an annulment or revocation."""
    return Ruling(position, at, 0, tuple(Fraction(payout, 10**9) for payout in payouts))


def scored_purchases(own: list[Movement], *rulings: Ruling) -> list[list[tuple[int, int, list[int]]]]:
    """Return the verdicts of each position: log position, instant and the purchases that it scores; each cap is 4."""
    by_position = verdicts(own, {0: list(rulings)}, dict.fromkeys(range(100), 4))
    return [
        [(verdict.position, verdict.at, sorted(verdict.scores)) for verdict in position] for position in by_position
    ]


BOUGHT = movement(1, 10, "bought", 1, 6, cash=-1)


def test_an_open_position_is_scored_when_it_is_settled() -> None:
    """The settlement scores it, not the resolution before; the score ends when the settlement is reversed."""
    settled = movement(4, 20, "settled", 1, -6, price=PROBABILITY)
    undone = movement(7, 30, "reversed", 1, 6, price=PROBABILITY)
    rulings = [ruling(3, 20, PROBABILITY, 0), ruling(6, 30)]
    assert scored_purchases([BOUGHT, settled, undone], *rulings) == [[(4, 20, [1]), (7, 30, [])]]


def test_a_position_sold_before_is_scored_at_the_resolution() -> None:
    """The score counts from the resolution, or from the account's previous movement in the log if that is later."""
    sold, granted = movement(2, 15, "sold", 1, -6), movement(4, 25, "granted", 0, 0, question=-1)
    assert scored_purchases([BOUGHT, sold, granted], ruling(3, 20, 0, PROBABILITY)) == [[(3, 20, [1])]]
    assert scored_purchases([BOUGHT, sold, granted], ruling(5, 20, 0, PROBABILITY), ruling(6, 40)) == [
        [(5, 25, [1]), (6, 40, [])]
    ]


def test_a_verdict_scores_the_purchases_recorded_before_it() -> None:
    """After a revocation the account buys again: the first resolution scores one purchase, the second both."""
    settled, undone = movement(4, 20, "settled", 1, -6, price=0), movement(7, 30, "reversed", 1, 6, price=0)
    again, last = movement(8, 35, "bought", 1, 3, cash=-2), movement(10, 40, "settled", 1, -9, price=0)
    rulings = [ruling(3, 20, 0, PROBABILITY), ruling(6, 30), ruling(9, 40, 0, PROBABILITY)]
    assert scored_purchases([BOUGHT, settled, undone, again, last], *rulings) == [
        [(4, 20, [1]), (7, 30, []), (10, 40, [1, 8])]
    ]


def test_a_refund_or_a_void_scores_nothing() -> None:
    """An annulled question has no score, nor has one whose annulment is revoked."""
    sold, undone = movement(2, 15, "sold", 1, -6), movement(6, 30, "reversed", 1, 0)
    refund, void = movement(4, 20, "refunded", 1, -6), movement(4, 20, "voided", 1, 0)
    for own in ([BOUGHT, refund, undone._replace(shares=6)], [BOUGHT, sold, void, undone]):
        [position] = scored_purchases(own, ruling(3, 20), ruling(5, 30))
        assert not any(purchases for _, _, purchases in position)


def test_an_annulment_removes_the_score_of_a_sold_position() -> None:
    """The score ends at the annulment; the void that follows changes nothing."""
    sold, void = movement(2, 15, "sold", 1, -6), movement(5, 40, "voided", 1, 0)
    [position] = scored_purchases([BOUGHT, sold, void], ruling(3, 20, PROBABILITY, 0), ruling(4, 40))
    assert position[:2] == [(3, 20, [1]), (4, 40, [])]
    assert not any(purchases for _, _, purchases in position[1:])


def test_the_score_is_the_squared_distance_of_the_confidence_from_the_payout() -> None:
    """1 of a cap of 4 is a confidence of 0.25: (0.25 - 0)²; (0.25 - 0.5)² if it pays half, (1/4 - 1/3)² if a third."""
    lost, half = movement(4, 20, "settled", 1, -6, price=0), movement(4, 20, "settled", 1, -6, price=PROBABILITY // 2)
    for settled, score in (
        (lost, Fraction(1, 16)),
        (half, Fraction(1, 16)),
        (lost._replace(price=10**9), Fraction(9, 16)),
        (lost._replace(price=Fraction(10**9, 3)), Fraction(1, 144)),
    ):
        [[verdict]] = list(verdicts([BOUGHT, settled], {0: [ruling(3, 20, 0, 10**9)]}, {1: 4}))
        assert Fraction(*verdict.scores[1]) == score


def test_the_last_verdict_in_the_log_that_has_begun_counts() -> None:
    """A resolution of the 8th is corrected by one of the 5th: the first never counts."""
    late, early = Verdict(1, 8, {1: (0, 1)}), Verdict(2, 5, {1: (1, 1)})
    assert list(scored_spans([late, early], [8, 5], 10)) == [ScoredSpan(5, 10, {1: (1, 1)})]
    assert list(scored_spans([late], [10], 10)) == []
    assert list(scored_spans([late, Verdict(2, 9, {})], [8, 9], 10)) == [ScoredSpan(8, 9, {1: (0, 1)})]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), SCORES), max_size=8))
@example([(0, 1, HALF)])
@example([(0, 1, (3, 2 * PROBABILITY))])
@example([(0, 2, (3, 2 * PROBABILITY)), (1, 2, (0, 1))])
@example([(0, 2, (1, 3)), (0, 1, (2, 3)), (1, 2, (1, 7))])
def test_the_mean_equals_the_mean_of_fractions(drawn: list[tuple[int, int, tuple[int, int]]]) -> None:
    """At every place the exact mean of the scores that count there is rounded half-even once, also for ties."""
    spans = [ScoredSpan(begin, begin + length, {number: score}) for number, (begin, length, score) in enumerate(drawn)]
    steps = {place: (mean, count) for place, mean, count in mean_changes(spans)}
    current = (NO_SCORE, 0)
    for place in range(15):
        current = steps.get(place, current)
        scores = [Fraction(*score) for begin, length, score in drawn if begin <= place < begin + length]
        expected = round(sum(scores) / len(scores) * PROBABILITY) if scores else NO_SCORE
        assert current == (expected, len(scores))


def test_a_tie_of_long_fractions_is_rounded_half_even() -> None:
    """The scores are 1/3 and 2/3 plus three units of 1e-9; the mean 0.5000000015 is rounded to the even 0.500000002.

    Each score is rounded down before the sum, so that the approximate sum is just below the tie.
    """
    scores = [Fraction(1, 3) + Fraction(1, 2 * PROBABILITY), Fraction(2, 3) + Fraction(5, 2 * PROBABILITY)]
    assert sum(scores) == 1 + Fraction(3, PROBABILITY)
    spans = [ScoredSpan(0, 1, {number: score.as_integer_ratio()}) for number, score in enumerate(scores)]
    assert next(mean_changes(spans)) == (0, 500_000_002, 2)
