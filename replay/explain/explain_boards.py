"""Takes, prizes, ranks and balances taken apart; the parts of each add up to it exactly."""

from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from typing import Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import Magnitude, magnitudes_to_integers
from forecast_ledger.ledger.core.values import MONEY, WEIGHT, format_fixed
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import KIND_TOTALS
from forecast_ledger.projections.boards import leaderboard, totals
from forecast_ledger.projections.boards.leaderboard import TAKES, TOTALS, Place
from forecast_ledger.projections.boards.prizes import PASSES
from forecast_ledger.projections.boards.totals import worst
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.core.column_values import POINTS, published
from forecast_ledger.projections.facts.columns import Contest
from forecast_ledger.projections.scores import coverage
from forecast_ledger.projections.scores.score_policies import kernel_of, lower_is_better
from forecast_ledger.replay.explain.explain_scores import Explained, Reading, Source, fitted, read
from forecast_ledger.replay.reading import lookup
from forecast_ledger.replay.reading.descriptions import board_words, rule
from forecast_ledger.replay.reading.event_text import occurrence

NEIGHBOURS = 3  # on either side of a rank
_WIDEST = 5_000  # digits of a take that a difference is worked out of
_SETTLING = (events.QuestionResolved, events.QuestionAnnulled, events.ResolutionRevoked)


def take(source: Source, contest: str, participant: str) -> Explained:
    """The total that a take is made of, by question, and its coverage.

    A question without a forecast adds nothing, or the worst score where a total of kind means has it so. Raises, first
    that applies: what `read` raises; Refused: unknown_contest, nothing_standing.
    """
    reading = _of_contest(source, contest, participant)
    projections, place = _placed(reading, contest, participant)
    opened = reading.facts.contests[contest]
    rules = opened.opened.rules
    rows = list(_by_question(projections, contest, participant))
    common = lcm(*(row["exact"].denominator for row in rows))
    points = fitted([row["exact"] for row in rows], place.score)
    covered = fitted([row["covering"] for row in rows], place.coverage)
    parts = []
    for row, point, share in zip(rows, points, covered, strict=True):
        exact, _ = row.pop("exact"), row.pop("covering")
        contribution = str(exact.numerator * (common // exact.denominator))
        parts.append(row | {"contribution": contribution, "points": point, "of_coverage": share})
    numerator = place.score * common
    number = {
        **_who("take", contest, place),
        "take": None if place.take is None else leaderboard.published(place.take),
        "total": _nine(place.score),
        "coverage": _nine(place.coverage),
        "attainable": _nine(place.attainable),
        "numerator": str(int(numerator)),
        "denominator": str(common),
    }
    words = f"{TOTALS[rules.total].words}; {TAKES[rules.take].words}"
    return _explained(reading, opened, number, parts, words)


def prize(source: Source, contest: str, participant: str) -> Explained:
    """A prize, as what it is of the pool: take / sum of the takes, whole payable units, and who has one unit more.

    Raises, first that applies: what `read` raises; Refused: unknown_contest, nothing_standing.
    """
    reading = _of_contest(source, contest, participant)
    projections, place = _placed(reading, contest, participant)
    opened = reading.facts.contests[contest]
    places = {each.participant: each for each in projections.board(contest)}
    won = projections.prizes(contest)
    rules, unit, pool = opened.opened.rules, opened.opened.payable_unit, opened.opened.pool
    every = [each.take for who in won if (each := places[who.participant]).take]
    counted = PASSES[rules.least_prize_passes](
        magnitudes_to_integers([take for take in every if take]), pool, rules.least_prize
    )
    total, parts = sum(counted) or 1, []
    divided = [divmod(pool // unit * own, total) for own in counted]
    for winner, own, (units, rest) in zip(won, counted, divided, strict=True):
        worth = places[winner.participant].take
        parts.append(
            {
                "participant": winner.participant,
                "take": leaderboard.published(worth) if worth else None,
                "share": _nine(Fraction(own, total)),
                "units": units,
                "remainder": _nine(Fraction(rest, total)),
                "one_more": winner.prize // unit - units,
                "prize": _money(winner.prize),
            }
        )
    mine = next(
        (part for part in parts if part["participant"] == participant), {"prize": "0.00", "share": _nine(Fraction(0))}
    )
    payment = opened.paid.get(participant)
    number = {
        **_who("prize", contest, place),
        "prize": mine["prize"],
        "share": mine["share"],
        "pool": _money(pool),
        "payable_unit": _money(unit),
        "least_prize": _money(rules.least_prize),
        "sum_of_units": pool // unit,
        "left_over": pool // unit - sum(units for units, _ in divided),
        "paid": None if payment is None else _money(payment.amount),
        "paid_at": None if payment is None else payment.position,
    }
    words = f"the pool in proportion to takes ({TAKES[rules.take].words})"
    words += ", in payable units by largest remainder, ties by id"
    return _explained(reading, opened, number, parts, words)


def rank(source: Source, contest: str, participant: str) -> Explained:
    """A rank: who stands around it, and by how much they are apart.

    Where one trades, it is that of the board of profits, unless the participant only has forecasts there. Raises, first
    that applies: what `read` raises; Refused: unknown_contest, nothing_standing.
    """
    reading = _of_contest(source, contest, participant)
    opened = lookup.contest(reading.facts, contest)
    if (contest, participant) in reading.facts.books.accounts:
        return _rank_by_profit(reading, contest, participant)
    projections, place = _placed(reading, contest, participant)
    rules, board = opened.opened.rules, projections.board(contest)
    by_take = rules.rank_by == "take"
    number = {
        **_who("rank", contest, place),
        "rank": place.rank,
        "of": sum(each.rank is not None for each in board),
        "ranked_by": rules.rank_by,
        "worth": _worth(place, by_take=by_take),
        "excluded": place.excluded,
        "best": "least" if lower_is_better(rules) else "greatest",
    }
    parts = [
        {
            "rank": each.rank,
            "participant": each.participant,
            "worth": _worth(each, by_take=by_take),
            "ahead_by": _apart(each, place, by_take=by_take),
            "excluded": each.excluded,
        }
        for each in _around(board, board.index(place))
    ]
    return _explained(reading, opened, number, parts, board_words(rules))


def balance(source: Source, contest: str, participant: str) -> Explained:
    """The cash of an account, movement by movement.

    Raises, first that applies: what `read` raises; Refused: unknown_contest, not_trading, not_enrolled.
    """
    reading = _of_contest(source, contest, participant)
    found, opened = reading.facts, lookup.contest(reading.facts, contest)
    if opened.opened.rules.trading is None:
        raise Refused("not_trading", "contest", contest, remedy="`table LOG accounts` lists where one has a balance")
    account = found.books.accounts.get((contest, participant))
    if account is None:
        raise Refused("not_enrolled", "participant", participant, remedy="`table LOG accounts` lists who is")
    rows = Projections(found).table("cash").only("contest", contest).only("participant", participant).rows()
    by_position = {each.position: each for each in reading.kept}
    parts = []
    for row in rows:
        recorded = by_position[row["log_position"]]
        event = occurrence(recorded)
        stands = {
            "recorded_at": event["recorded_at"],
            "because": _because(reading.kept, recorded),
            "said": event["said"],
        }
        kept = {name: row[name] for name in ("log_position", "at", "movement", "question", "position")}
        parts.append(kept | {"amount": row["amount"], "balance": row["balance"]} | stands)
    number = {
        "explained": "balance",
        "contest": contest,
        "participant": participant,
        "balance": _money(account.cash),
        "movements": len(parts),
        "deposits": _money(account.deposits),
        "currency": opened.opened.currency,
    }
    words = "the sum of what every movement added to the account's cash"
    return _explained(reading, opened, number, parts, words)


def _of_contest(source: Source, contest: str, participant: str) -> Reading:
    """Everything the log says, and of its events those of the contest, and what settles questions."""

    def wanted(event: Any) -> bool:
        if isinstance(event, _SETTLING):
            return True
        named = getattr(event, "participant", participant) == participant
        return getattr(event, "contest", None) == contest and named

    reading = read(source, wanted)
    opened = lookup.contest(reading.facts, contest)
    codes = reading.facts.question_codes.codes
    of_contest = [
        each
        for each in reading.kept
        if not isinstance(each.event, _SETTLING) or codes[each.event.question] in opened.entries
    ]
    return reading._replace(kept=of_contest)


def _placed(reading: Reading, contest: str, participant: str) -> tuple[Projections, Place]:
    """The projections, and the participant's row on the board. Raises Refused: there is none."""
    lookup.contest(reading.facts, contest)
    projections = Projections(reading.facts)
    place = next((each for each in projections.board(contest) if each.participant == participant), None)
    if place is None:
        detail = "not on the board: hidden, or no forecast on a question that counts"
        remedy = "`table LOG leaderboard` lists who is on it"
        raise Refused("nothing_standing", "participant", participant, detail, remedy=remedy)
    return projections, place


def _explained(
    reading: Reading, contest: Contest, number: dict[str, Any], parts: list[dict[str, Any]], words: str
) -> Explained:
    """A number of a contest: it depends on the whole board, whose questions were settled by these events."""
    about = [
        occurrence(each)
        for each in reading.kept
        if not isinstance(each.event, events.AccountEvent | events.QuestionAdded)
        and (
            contest.sealed is None
            or each.position <= contest.sealed.position
            or isinstance(each.event, events.PrizePaid)
        )
    ]
    others = {
        "compared_with": contest.opened.rules.reference,
        "questions": len(contest.entries),
        "enrolled": len(contest.enrolments),
        "excluded": len(contest.levels),
    }
    return Explained(
        number, rule(contest.opened.rules, contest.position, words), parts, others, about, reading.checkpoint
    )


def _by_question(projections: Projections, contest: str, participant: str) -> Iterator[dict[str, Any]]:
    """Each question that counts: its score, and exactly what it adds to the total and the coverage."""
    found, opened = projections.facts, projections.facts.contests[contest]
    (questions, rows), rules = projections.scored(contest), opened.opened.rules
    rows = rows.of(totals.labels(found).index(participant))
    places = rows.question.tolist()
    scores = dict(zip(places, coverage.points(rules, questions, rows).exact(), strict=True))
    coverages = dict(zip(places, coverage.coverages(questions, rows).exact(), strict=True))
    weights = [Fraction(weight, WEIGHT) for weight in questions.weight.tolist()]
    factors = _factors(projections, contest, participant, weights)
    every = sum(weights) or Fraction(1)
    settled = {each.question: each.position for each in found.settlements if each.position <= opened.as_of(found)}
    for i, code in enumerate(questions.code.tolist()):
        score, asked = scores.get(i), questions.answers[i].question
        missing = Fraction(worst(kernel_of(rules, asked))) if rules.total in KIND_TOTALS else Fraction(0)
        covering = coverages.get(i, Fraction(0))
        yield {
            "question": asked.question,
            "kind": asked.kind,
            "resolved": settled[code],
            "weight": format_fixed(int(questions.weight[i]), WEIGHT),
            "score": None if score is None else _nine(score),
            "coverage": _nine(covering),
            "exact": (missing if score is None else score) * factors[i],
            "covering": covering * weights[i] / every,
        }


def _factors(projections: Projections, contest: str, participant: str, weights: list[Fraction]) -> list[Fraction]:
    """What each question's score is multiplied by in the total."""
    found, opened = projections.facts, projections.facts.contests[contest]
    questions, rules = projections.scored(contest).questions, opened.opened.rules
    own = next(
        each for each in totals.sums(found, opened, projections.tally(contest)) if each.participant == participant
    )
    over = leaderboard.divided_by(rules, own)
    if rules.total in KIND_TOTALS:
        by_kind = {kind.kind: 100 / kind.weight for kind in own.kinds}
        kinds = [answer.question.kind for answer in questions.answers]
        return [weight * by_kind[kind] / over for weight, kind in zip(weights, kinds, strict=True)]
    return [weight / over for weight in weights]


def _around(board: list[Place], index: int) -> list[Place]:
    """The neighbours on a board, whether ranked or not."""
    return board[max(index - NEIGHBOURS, 0) : index + NEIGHBOURS + 1]


def _worth(place: Place, *, by_take: bool) -> str | None:
    if by_take:
        return None if place.take is None else leaderboard.published(place.take)
    return _nine(place.score)


def _apart(one: Place, other: Place, *, by_take: bool) -> str | None:
    """By how much one is worth more than another; None where that has too many digits."""
    if not by_take:
        return _nine(one.score - other.score)
    values = [_value(each.take) for each in (one, other)]
    return None if values[0] is None or values[1] is None else _nine(values[0] - values[1])


def _value(of: Magnitude | None) -> Fraction | None:
    if of is None or abs(of.exponent) > _WIDEST:
        return None
    return of.mantissa * Fraction(10) ** of.exponent if of.positive else Fraction(0)


def _rank_by_profit(reading: Reading, contest: str, participant: str) -> Explained:
    board = list(Projections(reading.facts).table("arena_leaderboard").only("contest", contest).rows())
    [index] = [i for i, row in enumerate(board) if row["participant"] == participant]
    own = board[index]
    number = {
        "explained": "rank",
        "contest": contest,
        "participant": participant,
        "rank": own["rank"],
        "of": len(board),
        "ranked_by": "profit",
        "worth": own["profit"],
        "excluded": "",
        "best": "greatest",
    }
    parts = [
        {
            "rank": row["rank"],
            "participant": row["participant"],
            "worth": row["profit"],
            "ahead_by": _money(int((Fraction(row["profit"]) - Fraction(own["profit"])) * MONEY)),
            "excluded": "",
        }
        for row in board[max(index - NEIGHBOURS, 0) : index + NEIGHBOURS + 1]
    ]
    words = "ranked by profit: cash and the value of positions, less net deposits"
    return _explained(reading, reading.facts.contests[contest], number, parts, words)


def _because(kept: list[Recorded], recorded: Recorded) -> int | None:
    """The log position of what a movement rests on: its quote, what settled the question, what it reverses."""
    event = recorded.event
    if isinstance(event, events.SharesBought | events.SharesSold):
        return event.quote
    if isinstance(event, events.SettlementReversed):
        return event.reverses
    if not isinstance(event, events.PositionEvent):
        return None
    return max(
        each.position
        for each in kept
        if isinstance(each.event, _SETTLING)
        and each.event.question == event.question
        and each.position < recorded.position
    )


def _who(what: str, contest: str, place: Place) -> dict[str, Any]:
    return {"explained": what, "contest": contest, "participant": place.participant}


def _nine(number: Fraction) -> str:
    return format_fixed(published(number), POINTS, least=9)


def _money(amount: int) -> str:
    return format_fixed(amount, MONEY, least=2)


__all__ = ["balance", "prize", "rank", "take"]
