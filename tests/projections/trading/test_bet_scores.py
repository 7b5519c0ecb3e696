"""When the stakes of an account are scored, and their mean, against fractions."""

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.facts.accounts import Movement, Ruling
from forecast_ledger.projections.trading.bet_scores import (
    NO_SCORE,
    ScoredSpan,
    Verdict,
    mean_changes,
    scored_spans,
    verdicts,
)

KEY = ("week", "ada")
CAPS = st.integers(1, 10**18)
SCORES = st.builds(lambda cap, part: ((cap - part % (cap + 1)) ** 2, cap**2), CAPS, CAPS)
HALF = (1, 2 * PROBABILITY)  # of the unit in which a mean is published


def moved(position: int, at: int, kind: str, number: int, shares: int, **fields: int | None) -> Movement:
    """A movement on outcome 0 of question 0."""
    given = {"question": 0, "outcome": 0, "cash": 0, "cost": 0, "price": None} | fields
    return Movement(position=position, at=at, key=KEY, kind=kind, number=number, shares=shares, **given)  # type: ignore[arg-type]


def paid(position: int, at: int, *payouts: int) -> Ruling:
    """A resolution of question 0, or, without payouts, its end."""
    return Ruling(position, at, 0, payouts)


def told(own: list[Movement], *rulings: Ruling) -> list[list[tuple[int, int, list[int]]]]:
    """Of each position every verdict: log position, instant, and which purchases it scores; each cap is 4."""
    found = verdicts(own, {0: list(rulings)}, dict.fromkeys(range(100), 4))
    return [[(each.position, each.at, sorted(each.scores)) for each in position] for position in found]


BOUGHT = moved(1, 10, "bought", 1, 6, cash=-1)


def test_an_open_position_is_scored_when_it_is_settled() -> None:
    """By the movement, not by the resolution before it; and no longer from when that is reversed."""
    settled = moved(4, 20, "settled", 1, -6, price=PROBABILITY)
    undone = moved(7, 30, "reversed", 1, 6, price=PROBABILITY)
    rulings = [paid(3, 20, PROBABILITY, 0), paid(6, 30)]
    assert told([BOUGHT, settled, undone], *rulings) == [[(4, 20, [1]), (7, 30, [])]]


def test_a_position_sold_before_is_scored_at_the_resolution() -> None:
    """From its instant, or that of the account's movement before it in the log if that is later."""
    sold, other = moved(2, 15, "sold", 1, -6), moved(4, 25, "granted", 0, 0, question=-1)
    assert told([BOUGHT, sold, other], paid(3, 20, 0, PROBABILITY)) == [[(3, 20, [1])]]
    assert told([BOUGHT, sold, other], paid(5, 20, 0, PROBABILITY), paid(6, 40)) == [[(5, 25, [1]), (6, 40, [])]]


def test_a_verdict_is_on_what_had_been_bought_by_then() -> None:
    """Bought again after the revocation: the second resolution scores both purchases, the first only one."""
    settled, undone = moved(4, 20, "settled", 1, -6, price=0), moved(7, 30, "reversed", 1, 6, price=0)
    again, last = moved(8, 35, "bought", 1, 3, cash=-2), moved(10, 40, "settled", 1, -9, price=0)
    rulings = [paid(3, 20, 0, PROBABILITY), paid(6, 30), paid(9, 40, 0, PROBABILITY)]
    assert told([BOUGHT, settled, undone, again, last], *rulings) == [[(4, 20, [1]), (7, 30, []), (10, 40, [1, 8])]]


def test_a_refund_or_a_void_scores_nothing() -> None:
    """An annulled question is no question that was answered, nor is one whose annulment is revoked."""
    sold, undone = moved(2, 15, "sold", 1, -6), moved(6, 30, "reversed", 1, 0)
    refund, void = moved(4, 20, "refunded", 1, -6), moved(4, 20, "voided", 1, 0)
    for own in ([BOUGHT, refund, undone._replace(shares=6)], [BOUGHT, sold, void, undone]):
        [position] = told(own, paid(3, 20), paid(5, 30))
        assert not any(purchases for _, _, purchases in position)


def test_annulling_what_was_resolved_takes_the_score_of_a_sold_position_away() -> None:
    """From the annulment on; the void that follows finds nothing more to take."""
    sold, void = moved(2, 15, "sold", 1, -6), moved(5, 40, "voided", 1, 0)
    [position] = told([BOUGHT, sold, void], paid(3, 20, PROBABILITY, 0), paid(4, 40))
    assert position[:2] == [(3, 20, [1]), (4, 40, [])]
    assert not any(purchases for _, _, purchases in position[1:])


def test_the_score_is_the_square_of_the_distance_from_what_a_share_pays() -> None:
    """1 of a cap of 4 is 0.25; (0.25 - 0)², and (0.25 - 0.5)² where the question pays half."""
    lost, half = moved(4, 20, "settled", 1, -6, price=0), moved(4, 20, "settled", 1, -6, price=PROBABILITY // 2)
    for settled, score in (
        (lost, Fraction(1, 16)),
        (half, Fraction(1, 16)),
        (lost._replace(price=10**9), Fraction(9, 16)),
    ):
        [[verdict]] = list(verdicts([BOUGHT, settled], {0: [paid(3, 20, 0, 10**9)]}, {1: 4}))
        assert Fraction(*verdict.scores[1]) == score


def test_the_last_in_the_log_of_those_that_have_begun_counts() -> None:
    """A resolution said to be of the 8th, corrected by one said to be of the 5th: the first never counts."""
    late, early = Verdict(1, 8, {1: (0, 1)}), Verdict(2, 5, {1: (1, 1)})
    assert list(scored_spans([late, early], [8, 5], 10)) == [ScoredSpan(5, 10, {1: (1, 1)})]
    assert list(scored_spans([late], [10], 10)) == []
    assert list(scored_spans([late, Verdict(2, 9, {})], [8, 9], 10)) == [ScoredSpan(8, 9, {1: (0, 1)})]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), SCORES), max_size=8))
@example([(0, 1, HALF)])
@example([(0, 1, (3, 2 * PROBABILITY))])
@example([(0, 2, (3, 2 * PROBABILITY)), (1, 2, (0, 1))])
@example([(0, 2, (1, 3)), (0, 1, (2, 3)), (1, 2, (1, 7))])
def test_the_mean_is_that_of_the_fractions(drawn: list[tuple[int, int, tuple[int, int]]]) -> None:
    """At every place the exact mean of the scores that count there, rounded half-even once; ties too."""
    counting = [
        ScoredSpan(begin, begin + length, {number: score}) for number, (begin, length, score) in enumerate(drawn)
    ]
    steps = {place: (mean, count) for place, mean, count in mean_changes(counting)}
    here = (NO_SCORE, 0)
    for place in range(15):
        here = steps.get(place, here)
        scores = [Fraction(*score) for begin, length, score in drawn if begin <= place < begin + length]
        expected = round(sum(scores) / len(scores) * PROBABILITY) if scores else NO_SCORE
        assert here == (expected, len(scores))


def test_a_tie_is_found_however_long_the_fractions_are() -> None:
    """1/3 and 2/3 and three units of 1e-9 between them: half of it, 0.5000000015, goes to the even 0.500000002.

    Each of the two alone is rounded down where it is added up, so that their sum seems to be just below the tie.
    """
    scores = [Fraction(1, 3) + Fraction(1, 2 * PROBABILITY), Fraction(2, 3) + Fraction(5, 2 * PROBABILITY)]
    assert sum(scores) == 1 + Fraction(3, PROBABILITY)
    counting = [ScoredSpan(0, 1, {number: score.as_integer_ratio()}) for number, score in enumerate(scores)]
    assert next(mean_changes(counting)) == (0, 500_000_002, 2)
