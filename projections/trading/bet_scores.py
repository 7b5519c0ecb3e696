"""Scores of an account's stakes over time: each counts from the resolution of its question until that is revoked.

A purchase scores (c - w)²: c is amount / largest bet at that time, w the payout of a share of its outcome.
Source: Forecaster Arena, Scoring Methodology, "Deriving Confidence from Bet Size" and "Brier Score".
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.projections.core.column_values import POINTS, round_to_points
from forecast_ledger.projections.facts.accounts import ENDING_KINDS, Movement, Ruling

NO_SCORE = -1
_BITS = 128  # binary places of the scores that are summed

Ratio = tuple[int, int]  # numerator, denominator


class Verdict(NamedTuple):
    """A change of the scores of a position's purchases: from this instant on they have these scores, or none.

    position: in the log. at: when it takes effect in the account, µs. scores: (c - w)², exact, by log position of the
    purchase; empty if the purchases no longer count.
    """

    position: int
    at: int
    scores: dict[int, Ratio]


class ScoredSpan(NamedTuple):
    """Scores that count on [begin, end) of a sequence of ticks or of movements."""

    begin: int
    end: int
    scores: dict[int, Ratio]


def verdicts(own: list[Movement], rulings: dict[int, list[Ruling]], caps: dict[int, int]) -> Iterator[list[Verdict]]:
    """Yield the changes of the scores of an account's purchases: one list for each position, in log order.

    own: the account's movements. rulings: by question. caps: the largest bet, 1e-6, by log position of each bet;
    trades of elsewhere have none, and no score.
    An open position is scored when it is settled. A position that was sold earlier is scored at the resolution: from
    its instant, or from the instant of the account's previous movement in the log if that is later.
    """
    positions = [move.position for move in own]
    by_number: dict[int, list[Movement]] = {}
    for move in own:
        if move.question in rulings:
            by_number.setdefault(move.number, []).append(move)
    for moves in by_number.values():
        yield list(_verdicts(moves, rulings[moves[0].question], own, positions, caps))


def _verdicts(
    moves: list[Movement], rulings: list[Ruling], own: list[Movement], positions: list[int], caps: dict[int, int]
) -> Iterator[Verdict]:
    """Yield the changes of one position; if it is open or settled, a movement of its own follows each ruling."""
    outcome, shares, ended = moves[0].outcome, 0, False
    bought: list[tuple[int, int, int]] = []
    entries: list[Movement | Ruling] = [*moves, *rulings]
    for entry in sorted(entries, key=lambda entry: entry.position):
        if isinstance(entry, Ruling):
            if bought and not shares and not ended:
                before = own[bisect_left(positions, entry.position) - 1].at
                payout = entry.payouts[outcome] if entry.payouts else None
                yield Verdict(entry.position, max(entry.at, before), _scores(bought, payout))
            continue
        shares += entry.shares
        if entry.kind == "bought" and entry.position in caps:
            bought.append((entry.position, -entry.cash, caps[entry.position]))
        elif entry.kind not in {"bought", "sold"}:
            ended = entry.kind in ENDING_KINDS
            settled = entry.price is not None and entry.kind == "settled"
            payout = Fraction(entry.price or 0, PROBABILITY) if settled else None
            yield Verdict(entry.position, entry.at, _scores(bought, payout))


def _scores(bought: list[tuple[int, int, int]], payout: Fraction | None) -> dict[int, Ratio]:
    """Return (amount / cap - payout)² of each purchase (log position, amount, cap); {} without a payout."""
    if payout is None:
        return {}
    paid, unit = payout.as_integer_ratio()
    return {position: ((amount * unit - paid * cap) ** 2, (cap * unit) ** 2) for position, amount, cap in bought}


def scored_spans(verdicts: list[Verdict], begins: list[int], end: int) -> Iterator[ScoredSpan]:
    """Yield the range in which each verdict on one position counts: at each place, the last in the log that has begun.

    begins: the place at which each verdict begins. end: the end of the sequence.

    >>> won, lost = {7: (0, 1)}, {7: (1, 1)}
    >>> list(scored_spans([Verdict(8, 0, won), Verdict(9, 0, lost)], [3, 5], 9))
    [ScoredSpan(begin=5, end=9, scores={7: (1, 1)}), ScoredSpan(begin=3, end=5, scores={7: (0, 1)})]
    """
    for verdict, begin in zip(reversed(verdicts), reversed(begins), strict=True):
        if begin < end:
            if verdict.scores:
                yield ScoredSpan(begin, end, verdict.scores)
            end = begin


def mean_changes(spans: list[ScoredSpan]) -> Iterator[tuple[int, int, int]]:
    """Yield each change of the mean of the scores that count: place, mean (1e-9, half-even) and number of scores.

    >>> list(mean_changes([ScoredSpan(2, 5, {7: (1, 4)}), ScoredSpan(3, 9, {8: (0, 1)})]))
    [(2, 250000000, 1), (3, 125000000, 2), (5, 0, 1), (9, -1, 0)]
    """
    changes = [(span.begin, True, span.scores) for span in spans]
    changes += [(span.end, False, span.scores) for span in spans]
    standing: dict[int, Ratio] = {}
    low = 0
    for place, group in groupby(sorted(changes, key=itemgetter(0, 1)), key=itemgetter(0)):
        for _, begins, scores in group:
            for purchase, score in scores.items():
                low += _low(score) if begins else -_low(score)
                if begins:
                    standing[purchase] = score
                else:
                    del standing[purchase]
        yield place, _mean(standing.values(), low), len(standing)


def _low(score: Ratio) -> int:
    """Return a score in 2^-128, rounded down."""
    return (score[0] << _BITS) // score[1]


def _mean(scores: Collection[Ratio], low: int) -> int:
    """Return the mean of scores, 1e-9, half-even.

    low: a lower bound of their sum, 2^-128; the error is less than one unit for each score. If the rounding depends on
    this error, the fractions themselves are summed, which is slower.
    """
    count = len(scores)
    if not count:
        return NO_SCORE
    least, most = (half_even(total * POINTS, count << _BITS) for total in (low, low + count))
    if least == most:
        return least
    return round_to_points(Fraction(sum((Fraction(*score) for score in scores), Fraction(0)), count))
