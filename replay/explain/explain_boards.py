"""Explain takes, prizes, ranks, balances and adjusted scores: the parts that add up to each of them exactly."""

from collections.abc import Collection, Iterator
from fractions import Fraction
from math import lcm
from typing import Any

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.core.values import MONEY, WEIGHT, format_fixed
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import KIND_TOTALS, RuleSet
from forecast_ledger.projections.boards import leaderboard, totals
from forecast_ledger.projections.boards.leaderboard import TAKES, TOO_FEW, BoardRow
from forecast_ledger.projections.boards.prizes import PASSES
from forecast_ledger.projections.boards.totals import missing_scores
from forecast_ledger.projections.core.columns import POINTS, round_to_points
from forecast_ledger.projections.core.powers import Magnitude
from forecast_ledger.projections.core.proportions import magnitudes_to_integers
from forecast_ledger.projections.facts.columns import Contest
from forecast_ledger.projections.scores import time_weighted
from forecast_ledger.projections.scores.question_groups import mean_kind
from forecast_ledger.projections.scores.scored_questions import lower_is_better
from forecast_ledger.projections.studies.difficulty import CONTEST
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.projections.tables.schemas import SETTLING
from forecast_ledger.replay.explain.explain_scores import Explanation, LogReading, read_log, rounded_parts
from forecast_ledger.replay.reading.board_notes import ids_of, says_ids, says_present_id, seal_notes, subsequent_events
from forecast_ledger.replay.reading.descriptions import (
    describe_board,
    describe_rules,
    describe_total,
    least_forecasts,
    money,
)
from forecast_ledger.replay.reading.log import Log, find_contest

NEIGHBOURS = 3  # rows on either side of a rank
SUBSEQUENT = ["log_position", "after", "says"]  # of an event after a seal
_WIDEST = 5_000  # digits of the largest take of which a difference is computed


def take(source: Log, contest: str, participant: str) -> Explanation:
    """Explain a take: the total and the coverage that it is computed from, by question.

    A question without a forecast adds nothing, the worst score if the total is of kind means, or what the rules impute.
    Raises, first that
    applies: what `read_log` raises; Refused: unknown_contest, nothing_standing.
    """
    reading = read_contest(source, contest, participant)
    projections, participant_row = board_row(reading, contest, participant)
    opened = reading.facts.contests[contest]
    rules = opened.opened.rules
    rows = list(_by_question(projections, contest, participant))
    common = lcm(*(row["exact"].denominator for row in rows))
    points = rounded_parts([row["exact"] for row in rows], participant_row.score)
    covered = rounded_parts([row["covering"] for row in rows], participant_row.coverage)
    parts = []
    for row, point, share in zip(rows, points, covered, strict=True):
        exact, _ = row.pop("exact"), row.pop("covering")
        contribution = str(exact.numerator * (common // exact.denominator))
        parts.append(row | {"contribution": contribution, "points": point, "of_coverage": share})
    numerator = participant_row.score * common
    number = {
        **number_key("take", contest, participant),
        "take": None if participant_row.take is None else leaderboard.published_take(participant_row.take),
        "total": nine(participant_row.score),
        "coverage": nine(participant_row.coverage),
        "attainable": nine(participant_row.attainable),
        "numerator": str(int(numerator)),
        "denominator": str(common),
    }
    words = f"{describe_total(rules)}; {TAKES[rules.take].words}"
    return explanation(reading, opened, number, parts, words)


def prize(source: Log, contest: str, participant: str) -> Explanation:
    """Explain a prize: take / sum of the takes, whole payable units, and who gets one unit more.

    Raises, first that applies: what `read_log` raises; Refused: unknown_contest, nothing_standing.
    """
    reading = read_contest(source, contest, participant)
    projections, participant_row = board_row(reading, contest, participant)
    opened = reading.facts.contests[contest]
    rows_by_participant = {
        participant_row.participant: participant_row for participant_row in projections.board(contest)
    }
    winners = projections.prizes(contest)
    rules, unit, pool = opened.opened.rules, opened.opened.payable_unit, opened.opened.pool
    takes = [take for winner in winners if (take := rows_by_participant[winner.participant].take)]
    counted_takes = PASSES[rules.least_prize_passes](magnitudes_to_integers(takes), pool, rules.least_prize_micros)
    total, parts = sum(counted_takes) or 1, []
    divided = [divmod(pool // unit * counted_take, total) for counted_take in counted_takes]
    for winner, counted_take, (units, remainder) in zip(winners, counted_takes, divided, strict=True):
        worth = rows_by_participant[winner.participant].take
        parts.append(
            {
                "participant": winner.participant,
                "take": leaderboard.published_take(worth) if worth else None,
                "share": nine(Fraction(counted_take, total)),
                "units": units,
                "remainder": nine(Fraction(remainder, total)),
                "one_more": winner.prize // unit - units,
                "prize": money(winner.prize),
                "because": ""
                if winner.prize
                else why_nothing(opened, rows_by_participant[winner.participant], counted_take),
            }
        )
    for part in parts if all(part["because"] == "" for part in parts) else ():
        del part["because"]
    worth = dict(zip([winner.participant for winner in winners], counted_takes, strict=True)).get(participant, 0)
    mine = next(
        (part for part in parts if part["participant"] == participant), {"prize": "0.00", "share": nine(Fraction(0))}
    )
    payment = opened.paid.get(participant)
    number = {
        **number_key("prize", contest, participant),
        "prize": mine["prize"],
        "share": mine["share"],
        **({} if Fraction(mine["prize"]) else {"because": why_nothing(opened, participant_row, worth)}),
        "pool": money(pool),
        "payable_unit": money(unit),
        "least_prize": money(rules.least_prize_micros),
        "sum_of_units": pool // unit,
        "left_over": pool // unit - sum(units for units, _ in divided),
        "paid": None if payment is None else money(payment.amount),
        "paid_at": None if payment is None else payment.position,
    }
    words = f"the pool in proportion to takes ({TAKES[rules.take].words})"
    words += ", in payable units by largest remainder, ties by id"
    return explanation(reading, opened, number, parts, words)


def why_nothing(contest: Contest, row: BoardRow, counted: int) -> str:
    """Say why somebody's prize is 0. counted: the take that counts, 0 if it is dropped."""
    rules, pool, least = contest.opened.rules, contest.opened.pool, money(contest.opened.rules.least_prize_micros)
    on = f"it has forecasts on {row.forecast_on:,} of the {row.questions:,} questions that count so far"
    needed = " and ".join(least_forecasts(rules))
    reasons = {
        f"the rules {rules.name} have no take": rules.take == "none",
        "the contest has no pool": pool == 0,
        f"excluded as {row.excluded}: {on}, and a prize needs {needed}": row.excluded == TOO_FEW,
        f"excluded as {row.excluded}, so that there is no prize": bool(row.excluded),
        "the take is 0": row.take is None or not row.take.positive,
        f"the pool is below the least prize of {least}": pool < rules.least_prize_micros,
        f"its share of the pool is below the least prize of {least}": counted == 0,
        f"its share of the pool is below the payable unit of {money(contest.opened.payable_unit)}": True,
    }
    return next(reason for reason, holds in reasons.items() if holds)


def rank(source: Log, contest: str, participant: str) -> Explanation:
    """Explain a rank: its neighbours on the board, and the differences between them.

    With trading, it is the rank by profit, unless the participant has only forecasts there. Raises, first that
    applies: what `read_log` raises; Refused: unknown_contest, nothing_standing.
    """
    reading = read_contest(source, contest, participant)
    opened = find_contest(reading.facts, contest)
    if (contest, participant) in reading.facts.books.accounts:
        return _rank_by_profit(reading, contest, participant)
    projections, participant_row = board_row(reading, contest, participant)
    rules, board = opened.opened.rules, projections.board(contest)
    by_take, index = rules.rank_by == "take", board.index(participant_row)
    number = {
        **number_key("rank", contest, participant),
        "rank": participant_row.rank,
        "of": sum(row.rank is not None for row in board),
        "ranked_by": rules.rank_by,
        "worth": _worth(participant_row, by_take=by_take),
        "excluded": participant_row.excluded,
        "best": "least" if lower_is_better(rules) else "greatest",
    }
    parts = [
        {
            "rank": row.rank,
            "participant": row.participant,
            "worth": _worth(row, by_take=by_take),
            "ahead_by": _difference(row, participant_row, by_take=by_take),
            "excluded": row.excluded,
        }
        for row in board[max(index - NEIGHBOURS, 0) : index + NEIGHBOURS + 1]
    ]
    return explanation(reading, opened, number, parts, describe_board(rules))


def balance(source: Log, contest: str, participant: str) -> Explanation:
    """Explain the cash of an account, movement by movement.

    Raises, first that applies: what `read_log` raises; Refused: unknown_contest, not_trading, not_enrolled.
    """
    reading = read_contest(source, contest, participant)
    facts, opened = reading.facts, find_contest(reading.facts, contest)
    if opened.opened.rules.trading is None:
        raise Refused("not_trading", "contest", contest, remedy="`table LOG accounts` lists the accounts")
    account = facts.books.accounts.get((contest, participant))
    if account is None:
        names = [who for name, who in facts.books.accounts if name == contest]
        wrong = says_present_id(facts, participant, opened.as_of(facts)) or (
            f"the participant is not enrolled in the contest; it has: {listed(participant, names)}"
        )
        remedy = "`table LOG accounts` lists the participants that are"
        raise Refused("not_enrolled", "participant", participant, wrong, remedy=remedy)
    rows = Projections(facts).table("cash").only("contest", contest).only("participant", participant).rows()
    by_position = {recorded.position: recorded for recorded in reading.selected}
    parts = []
    for row in rows:
        recorded = by_position[row["log_position"]]
        event = reading.summary(recorded)
        details = {
            "recorded_at": event["recorded_at"],
            "because": _cause(reading.selected, recorded),
            "says": event["says"],
        }
        columns = {name: row[name] for name in ("log_position", "at", "movement", "question", "position")}
        parts.append(columns | {"amount": row["amount"], "balance": row["balance"]} | details)
    number = {
        **number_key("balance", contest, participant),
        "balance": money(account.cash),
        "movements": len(parts),
        "deposits": money(account.deposits),
        "currency": opened.opened.currency,
    }
    words = "the sum of the amounts of all movements of the account's cash"
    return explanation(reading, opened, number, parts, words)


def read_contest(source: Log, contest: str, participant: str) -> LogReading:
    """Read a log, and select the events of a contest and those that settle its questions."""
    reading = _read_contest(source, contest, {participant})
    names = ids_of(reading.facts, participant, reading.facts.contests[contest].as_of(reading.facts))
    return reading if names == {participant} else _read_contest(source, contest, names)


def _read_contest(source: Log, contest: str, names: Collection[str]) -> LogReading:
    """Read a log, and select the events that belong to a contest, of participants only those with these ids."""
    always = (*SETTLING, events.ParticipantRenamed)

    def select(event: Any) -> bool:
        """Return whether an event can change the boards of the contest: those of its participants, and answers."""
        if isinstance(event, always):
            return True
        is_of_participants = not hasattr(event, "participant") or event.participant in names
        return getattr(event, "contest", None) == contest and is_of_participants

    reading = read_log(source, select)
    opened = find_contest(reading.facts, contest)
    codes = reading.facts.question_codes.codes
    selected = [
        recorded
        for recorded in reading.selected
        if (not isinstance(recorded.event, SETTLING) or codes[recorded.event.question] in opened.entries)
        and (not isinstance(recorded.event, events.ParticipantRenamed) or recorded.event.participant in names)
    ]
    return reading._replace(selected=selected)


def board_row(reading: LogReading, contest: str, participant: str) -> tuple[Projections, BoardRow]:
    """Return the projections, and the participant's row of the board. Raises Refused if there is none."""
    find_contest(reading.facts, contest)
    projections = Projections(reading.facts)
    board = {row.participant: row for row in projections.board(contest)}
    participant_row = board.get(participant)
    if participant_row is None:
        as_of = reading.facts.contests[contest].as_of(reading.facts)
        detail = says_present_id(reading.facts, participant, as_of) or (
            "not on the board: hidden, or without a forecast on a question that counts"
            if participant in reading.facts.participant_codes.labels
            else f"no such participant made a forecast; on the board are: {listed(participant, board)}"
        )
        remedy = "`table LOG leaderboard` lists the participants on it"
        raise Refused("nothing_standing", "participant", participant, detail, remedy=remedy)
    return projections, participant_row


def explanation(
    reading: LogReading, contest: Contest, number: dict[str, Any], parts: list[dict[str, Any]], words: str
) -> Explanation:
    """Return the explanation of a number that depends on a whole board, with the events that settled its questions."""
    about = [
        reading.summary(recorded)
        for recorded in reading.selected
        if not isinstance(recorded.event, events.AccountEvent | events.QuestionAdded)
        and (
            contest.sealed is None
            or recorded.position <= contest.sealed.position
            or isinstance(recorded.event, events.PrizePaid)
        )
    ]
    others = {
        "compared_with": contest.opened.rules.reference,
        "questions": len(contest.entries),
        "enrolled": len(contest.enrolments),
        "excluded": len(contest.levels),
    }
    rule = describe_rules(contest.opened.rules, contest.position, words)
    since = says_ids(reading.facts, number["participant"], contest.as_of(reading.facts))
    since += seal_notes(Projections(reading.facts), contest.opened.contest, number["participant"])
    later = (dict(zip(SUBSEQUENT, each, strict=True)) for each in subsequent_events(reading.facts, contest))
    return Explanation(number, rule, parts, others, about, reading.checkpoint, (*since,), (*later,))


def _by_question(projections: Projections, contest: str, participant: str) -> Iterator[dict[str, Any]]:
    """Yield each question that counts: its score, and the exact amounts that it adds to the total and the coverage."""
    facts, opened = projections.facts, projections.facts.contests[contest]
    (questions, rows), rules = projections.scored(contest), opened.opened.rules
    imputed = scores_without_forecast(projections, contest, participant)
    rows = rows.of(totals.score_labels(facts).index(participant))
    indices = rows.question.tolist()
    scores = dict(zip(indices, time_weighted.points(rules, questions, rows).exact(), strict=True))
    coverages = dict(zip(indices, time_weighted.coverages(questions, rows).exact(), strict=True))
    weights = [Fraction(weight, WEIGHT) for weight in questions.weight.tolist()]
    factors = _factors(projections, contest, participant, weights)
    every = sum(weights) or Fraction(1)
    settled = {row.question: row.position for row in facts.settlements if row.position <= opened.as_of(facts)}
    for i, code in enumerate(questions.code.tolist()):
        score, question = scores.get(i), questions.answers[i].question
        missing = imputed.get(i, Fraction(0))
        covering = coverages.get(i, Fraction(0))
        yield {
            "question": question.question,
            "kind": question.kind,
            "resolved": settled[code],
            "weight": format_fixed(int(questions.weight[i]), WEIGHT),
            "score": None if score is None else nine(score),
            **imputed_column(rules, None if score is not None else imputed.get(i)),
            "coverage": nine(covering),
            "exact": (missing if score is None else score) * factors[i],
            "covering": covering * weights[i] / every,
        }


def scores_without_forecast(projections: Projections, contest: str, participant: str) -> dict[int, Fraction]:
    """Return what counts for somebody on the board where there is no forecast, by the index of the question."""
    facts, (questions, rows) = projections.facts, projections.scored(contest)
    rules, people = facts.contests[contest].opened.rules, facts.participant_codes
    if participant not in people.codes and rules.total not in KIND_TOTALS:
        return {}
    return missing_scores(rules, questions, rows, len(people.labels))


def imputed_column(rules: RuleSet, score: Fraction | None) -> dict[str, str | None]:
    """Return the column that says what is imputed on a question, if the rules impute anything."""
    return {} if rules.imputation == "none" else {"imputed": None if score is None else nine(score)}


def _factors(projections: Projections, contest: str, participant: str, weights: list[Fraction]) -> list[Fraction]:
    """Return the factor of each question's score in the total."""
    facts, opened = projections.facts, projections.facts.contests[contest]
    questions, rules = projections.scored(contest).questions, opened.opened.rules
    participant_sums = next(
        sums
        for sums in totals.participant_sums(facts, opened, projections.tally(contest))
        if sums.participant == participant
    )
    over = leaderboard.total_divisor(rules, participant_sums)
    if rules.total in KIND_TOTALS:
        by_kind = {kind.kind: 100 / kind.weight for kind in participant_sums.kinds}  # of questions that count
        kinds = [mean_kind(answer.question) for answer in questions.answers]
        return [weight * by_kind.get(kind, Fraction(0)) / over for weight, kind in zip(weights, kinds, strict=True)]
    return [weight / over for weight in weights]


def _worth(row: BoardRow, *, by_take: bool) -> str | None:
    if by_take:
        return None if row.take is None else leaderboard.published_take(row.take)
    return nine(row.score)


def _difference(left: BoardRow, right: BoardRow, *, by_take: bool) -> str | None:
    """Return the worth of the left row less that of the right; None if it has too many digits."""
    if not by_take:
        return nine(left.score - right.score)
    values = [_value(side.take) for side in (left, right)]
    return None if values[0] is None or values[1] is None else nine(values[0] - values[1])


def _value(take: Magnitude | None) -> Fraction | None:
    if take is None or abs(take.exponent) > _WIDEST:
        return None
    return take.mantissa * Fraction(10) ** take.exponent if take.positive else Fraction(0)


def _rank_by_profit(reading: LogReading, contest: str, participant: str) -> Explanation:
    board = Projections(reading.facts).rows_of("arena_leaderboard", contest)
    [index] = [i for i, row in enumerate(board) if row["participant"] == participant]
    participant_row = board[index]
    number = {
        **number_key("rank", contest, participant),
        "rank": participant_row["rank"],
        "of": len(board),
        "ranked_by": "profit",
        "worth": participant_row["profit"],
        "excluded": "",
        "best": "greatest",
    }
    parts = [
        {
            "rank": row["rank"],
            "participant": row["participant"],
            "worth": row["profit"],
            "ahead_by": money(int((Fraction(row["profit"]) - Fraction(participant_row["profit"])) * MONEY)),
            "excluded": "",
        }
        for row in board[max(index - NEIGHBOURS, 0) : index + NEIGHBOURS + 1]
    ]
    unit = money(reading.facts.contests[contest].opened.payable_unit)
    words = f"ranked by profit, rounded to {unit}: cash and the value of positions, less net deposits"
    return explanation(reading, reading.facts.contests[contest], number, parts, words)


def _cause(selected: list[Recorded], recorded: Recorded) -> int | None:
    """Return the log position of a movement's cause: its quote, the settlement of its question, or what it reverses.

    A trade of elsewhere has none.
    """
    event = recorded.event
    if isinstance(event, events.SharesBought | events.SharesSold):
        return event.quote
    if isinstance(event, events.SettlementReversed):
        return event.reverses
    if not isinstance(event, events.PositionEvent) or isinstance(event, events.TradeRecorded):
        return None
    return max(
        earlier.position
        for earlier in selected
        if isinstance(earlier.event, SETTLING)
        and earlier.event.question == event.question
        and earlier.position < recorded.position
    )


def number_key(kind: str, contest: str, participant: str) -> dict[str, Any]:
    """Return the fields that name an explained number of a participant."""
    return {"explained": kind, "contest": contest, "participant": participant}


def nine(number: Fraction) -> str:
    """Return a number with nine decimals, rounded half-even once."""
    return format_fixed(round_to_points(number), POINTS, least=9)


_WORDS = "the weighted mean of score - effect, where the effects of the questions are fitted by least squares"


def adjusted(source: Log, contest: str, participant: str) -> Explanation:
    """Explain an adjusted score: the participant's scores, and what each question adds to a score.

    A part is a question. The numbers are those of the tables `adjusted_scores`, `difficulty` and `scores`; the effects
    are shown to nine decimals, and the adjusted score is computed from exact ones. If somebody who has no rank is in
    several parts of the design, it is the first. Raises, first that applies: what `read_log` raises; Refused:
    unknown_contest, nothing_standing (not on the board, or no score of theirs counts), out_of_range (a fit would take
    too long).
    """
    reading = read_contest(source, contest, participant)
    projections, _ = board_row(reading, contest, participant)

    def rows(table: str) -> list[dict[str, str]]:
        rows_of_contest = (
            row for row in projections.table(table).rows() if row["by"] == CONTEST and row["name"] == contest
        )
        return [*rows_of_contest]

    adjusted_row = next((row for row in rows("adjusted_scores") if row["participant"] == participant), None)
    if adjusted_row is None:
        detail = "no score of theirs counts, or nobody whose scores are fitted has a score on the same questions"
        remedy = "`table LOG adjusted_scores` lists the scores that are adjusted"
        raise Refused("nothing_standing", "participant", participant, detail, remedy=remedy)
    effects = {row["question"]: row for row in rows("difficulty") if row["part"] == adjusted_row["part"]}
    opened, codes = reading.facts.contests[contest], reading.facts.question_codes.codes
    score_rows = projections.table("scores").only("contest", contest).only("participant", participant).rows()
    scores = {row["question"]: row["score"] for row in score_rows if row["question"] in effects}
    parts = [
        {
            "question": question,
            "weight": format_fixed(opened.entries[codes[question]].weight, WEIGHT),
            "participants": effects[question]["participants"],
            "mean_score": effects[question]["mean_score"],
            "score": score,
            "effect": effects[question]["effect"],
            "adjusted": nine(Fraction(score) - Fraction(effects[question]["effect"])),
        }
        for question, score in scores.items()
    ]
    described = {**number_key("adjusted", contest, participant), **adjusted_row}
    return explanation(reading, opened, described, parts, _WORDS)
