"""Readings of the model's log: postings, marks, Brier rows, snapshots, board figures; each read anew from the log.

Sources: Forecaster Arena, Scoring Methodology, sections 1 to 3; Forecaster Arena, Methodology v1, sections 11 and 12.
"""

import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple

from tests.support.trading_model import Book
from tests.support.trading_parts import MOVEMENTS, ONE, SECOND, Account, Event, Position, Question

Posting = tuple[str, str, str, int]  # account, contest, participant (or none), amount in 1e-15

# --- double entry


def postings(book: Book, number: int) -> list[Posting]:
    """The postings of the event at a log position, from first principles: quantities and prices."""
    event = book.log[number - 1]
    if event["type"] == "contest_opened.v1":
        pool = event["pool"] * ONE
        return _posted(event["contest"], "", external=-pool, prize_pool=pool)
    if event["type"] not in MOVEMENTS:
        return []
    kind, contest, participant = MOVEMENTS[event["type"]], event["contest"], event["participant"]
    if kind == "reversed":
        return [(name, where, who, -amount) for name, where, who, amount in postings(book, event["reverses"])]
    return _posted(contest, participant, **_moves(kind, event))


def _moves(kind: str, event: Event) -> dict[str, int]:
    """Account and amount in 1e-15; money is 1e-6, a share of 1e-6 at a price of 1e-9 is 1e-15."""
    money = {name: event[name] * ONE for name in ("amount", "cost", "proceeds", "fee") if name in event}
    if kind in {"granted", "deposited"}:
        return {"external": -money["amount"], "cash": money["amount"]}
    if kind == "withdrawn":
        return {"cash": -money["amount"], "external": money["amount"]}
    if kind == "bought":
        return {"cash": -money["amount"] - money["fee"], "positions": money["amount"], "fees": money["fee"]}
    cost = money["cost"]
    if kind == "refunded":
        return {"cash": cost, "positions": -cost}
    if kind == "voided":
        fee = money["fee"]
        return {"cash": money["amount"], "positions": -cost, "house": cost - money["amount"] + fee, "fees": -fee}
    worth = event["shares"] * event["price" if kind == "sold" else "payout"]
    proceeds, fee = money["proceeds"], money.get("fee", 0)
    moves = {"cash": proceeds - fee, "positions": -cost, "house": cost - worth, "rounding": worth - proceeds}
    return moves | {"fees": fee}


def _posted(contest: str, participant: str, **moves: int) -> list[Posting]:
    whose = {"cash": participant, "positions": participant, "prizes": participant}
    return [(name, contest, whose.get(name, ""), amount) for name, amount in moves.items()]


def balances(book: Book, after: int | None = None) -> dict[tuple[str, str, str], int]:
    """The balance of each account, in 1e-15."""
    sums: dict[tuple[str, str, str], int] = {}
    for number in range(1, len(book.log[:after]) + 1):
        for name, contest, participant, amount in postings(book, number):
            key = name, contest, participant
            sums[key] = sums.get(key, 0) + amount
    return sums


# --- time, fates and marks


def clock(book: Book) -> int:
    """The latest instant that an event claims."""
    return max((int(event["at"]) for event in book.log), default=0)


def sealed(book: Book, contest: str) -> int | None:
    """The log position that froze a contest's board, if it is frozen."""
    finalized = (event["type"] == "contest_finalized.v1" and event["contest"] == contest for event in book.log)
    return next((number for number, is_seal in enumerate(finalized, 1) if is_seal), None)


def fates(book: Book, after: int | None = None, at: int | None = None) -> dict[str, tuple[int, ...]]:
    """The payouts of each resolved question as of a log position and an instant; annulled questions have none."""
    paid: dict[str, tuple[int, ...]] = {}
    for event in book.log[:after]:
        if at is None or event["at"] <= at:
            if event["type"] in {"question_annulled.v1", "resolution_revoked.v1"}:
                paid.pop(event["question"], None)
            if event["type"] == "question_resolved.v1":
                asked = book.questions[event["question"]]
                paid[event["question"]] = event["payouts"] or tuple(
                    ONE * (outcome == event["outcome"]) for outcome in asked.outcomes
                )
    return paid


class Mark(NamedTuple):
    """The last price of an outcome, from when, and whether it is stale."""

    price: Fraction
    quoted_at: int
    stale: bool


def mark(book: Book, contest: str, position: Position, at: int, after: int | None = None) -> Mark | None:
    """The mark price of a share: the last price known by then, if it and all the question's prices before it had been
    recorded by then; under the rule "prior" no price that is quoted from the close on. Under the rule "bid" the bid of
    a quote is its price, if it has one. Of a share against an outcome, 1 less the price, or less what is asked.
    """
    rules = book.contests[contest].trading
    assert rules is not None
    asked: Question = book.questions[position.question]
    until_close = rules["closed_marks"] == "prior"
    newest, in_order = None, True
    place, against = asked.place(position.outcome)
    for _, event, quote in book.quotes(position.question, after):
        in_order = in_order and event["at"] <= at
        on, price, bids = event["quoted_at"], quote["prices"][place], quote.get("asks" if against else "bids")
        if rules["marks"] == "bid" and bids and bids[place] is not None:
            price = bids[place]
        if price is not None and in_order and not (until_close and on >= asked.closes):
            old = at - on > rules["stale_after_seconds"] * SECOND or at >= asked.closes
            newest = Mark(Fraction(ONE - price if against else price, ONE), on, old)
    return newest


# --- Brier rows


class Row(NamedTuple):
    """One purchase on a resolved question, at a log position; f_yes and o_yes of a binary one."""

    number: int
    confidence: Fraction
    f_yes: Fraction | None
    o_yes: Fraction | None
    side_won: Fraction
    brier: Fraction
    market: Fraction


def brier_rows(
    book: Book, contest: str, participant: str, after: int | None = None, at: int | None = None
) -> list[Row]:
    """A row for each purchase whose question is resolved, sold since or not."""
    seal = sealed(book, contest) or len(book.log)
    rules, paid = book.contests[contest].trading, fates(book, min(after or seal, seal), at)
    assert rules is not None
    rows = []
    for number, counts_from, event in book.movements(contest, participant, after):
        counts = at is None or counts_from <= at
        if counts and event["type"] == "shares_bought.v1" and event["question"] in paid:
            rows.append(_row(book, number, event, rules["cap_divisor"], paid[event["question"]]))
    return rows


def _row(book: Book, number: int, event: Event, divisor: int, paid: tuple[int, ...]) -> Row:
    """The Brier row of a forecast: by the probability of yes, or by that of the named outcome."""
    asked = book.questions[event["question"]]
    confidence = Fraction(event["requested"] or event["amount"], event["cash"] // divisor)
    place, against = asked.place(event["outcome"])
    won = Fraction(ONE - paid[place] if against else paid[place], ONE)
    market = (Fraction(event["price"], ONE) - won) ** 2
    if asked.kind != "binary":
        return Row(number, confidence, None, None, won, (confidence - won) ** 2, market)
    f_yes = confidence if event["outcome"] == "yes" else 1 - confidence
    o_yes = Fraction(paid[0], ONE)
    return Row(number, confidence, f_yes, o_yes, won, (f_yes - o_yes) ** 2, market)


# --- snapshots


@dataclass
class Snapshot:
    """A portfolio at an instant; money in 1e-6, exact."""

    at: int
    number: int | None  # the log position of the movement; none at a tick
    cash: int
    value: Fraction
    total: Fraction
    profit: Fraction
    profit_percent: Fraction | None
    brier: Fraction | None
    resolved_bets: int
    realised: int
    unrealised: Fraction
    stale_marks: int
    stale_age: int | None  # µs


def snapshot(book: Book, contest: str, participant: str, at: int, after: int | None = None) -> Snapshot:
    """With a log position, right after it; without, with all that counts from that instant or before."""
    account = book.account(contest, participant, after, None if after else at)
    rows = brier_rows(book, contest, participant, after, None if after else at)
    marks = [(position, mark(book, contest, position, at, after)) for position in account.open()]
    valued = [each for _, each in marks if each is not None]
    value = sum((position.shares * each.price for position, each in marks if each is not None), Fraction(0))
    total = account.cash + value
    profit = total - account.net_deposits
    return Snapshot(
        at=at,
        number=after,
        cash=account.cash,
        value=value,
        total=total,
        profit=profit,
        profit_percent=profit / account.net_deposits * 100 if account.net_deposits else None,
        brier=mean([row.brier for row in rows]),
        resolved_bets=len(rows),
        realised=sum(position.realised for position in account.positions),
        unrealised=value - sum(position.cost for position in account.open()),
        stale_marks=sum(each.stale for each in valued),
        stale_age=max((at - each.quoted_at for each in valued), default=None),
    )


def snapshots(book: Book, contest: str, participant: str) -> list[Snapshot]:
    """A row at each movement, and one at each tick that can differ from the one before in more than the age of prices;
    at one instant a tick comes last.
    """
    rows = [
        snapshot(book, contest, participant, counts_from, number)
        for number, counts_from, _ in book.movements(contest, participant)
    ]
    rows += [snapshot(book, contest, participant, tick) for tick in turns(book, contest)]
    return sorted(rows, key=lambda row: (row.at, row.number is None, row.number or 0))


def ticks(book: Book, contest: str) -> Iterator[int]:
    """Every so many seconds from the start to the clock, or to the last decision or movement of a complete contest."""
    asked = book.contests[contest]
    assert asked.trading is not None
    last = clock(book)
    if book.complete(contest):
        last = max(event["at"] for event in book.log if event.get("contest") == contest and "participant" in event)
    yield from range(asked.start, last + 1, asked.trading["snapshot_seconds"] * SECOND)


def turns(book: Book, contest: str) -> Iterator[int]:
    """The first tick after each instant of the log: until the next instant an account holds and is worth the same."""
    instants = sorted({int(event["at"]) for event in book.log})
    for _, same in groupby(ticks(book, contest), lambda tick: bisect_right(instants, tick)):
        yield next(same)


def mean(numbers: list[Fraction]) -> Fraction | None:
    """Nothing of nothing."""
    return sum(numbers, Fraction(0)) / len(numbers) if numbers else None


# --- the board


def figures(book: Book, contest: str, participant: str) -> dict[str, Any]:
    """One line of the contest's board but for the ranks; money in 1e-6, all exact."""
    rules = book.contests[contest].trading
    assert rules is not None
    account, rows = book.account(contest, participant), brier_rows(book, contest, participant)
    now = snapshot(book, contest, participant, clock(book), len(book.log))
    score, market = mean([row.brier for row in rows]), mean([row.market for row in rows])
    keys = {key for key in book.taken if key[:2] == (contest, participant)}
    events = [each for each in book.log if each["type"] == "decision_defaulted.v1"]
    return {
        "total": now.total,
        "profit": now.profit,
        "return_percent": now.profit_percent,
        "fees": sum(Fraction(amount, ONE) for amount in fee_postings(book, contest, participant)),
        "interpretation": "" if now.profit_percent is None or account.net_deposits <= 0 else words(now.profit_percent),
        "n": len(rows),
        "brier": score,
        "skill_against_even_odds": None if score is None else 1 - score / Fraction(1, 4),
        "skill_against_market": 1 - score / market if score is not None and market else None,
        "win_rate": mean([Fraction(row.side_won == 1) for row in rows]),
        "turnover": Fraction(account.bought + account.sold, rules["starting_cash"]) if rules["starting_cash"] else None,
        "sharpe_ratio": sharpe_ratio(account),
        "drawdown": drawdown(snapshots(book, contest, participant)),
        "decided": len(keys),
        "defaulted": sum((each["contest"], each["participant"]) == (contest, participant) for each in events),
        "state": state(account, rules),
    }


def sharpe_ratio(account: Account) -> Fraction | None:
    """The mean return of what has been closed or settled over its sample standard deviation, to nine decimals."""
    spent: Counter[int] = Counter()
    for event in account.trades:
        beyond = max(event["fee"] - event["proceeds"], 0) if "proceeds" in event else event["amount"] + event["fee"]
        spent[event["position"]] += beyond
    ended = [position for position in account.positions if position.status in {"closed", "settled"}]
    returns = [Fraction(position.realised, spent[position.number]) for position in ended]
    if len({*returns}) < 2:
        return None
    average, variance = statistics.mean(returns), statistics.variance(returns)
    with localcontext(prec=60):
        deviation = (Decimal(variance.numerator) / variance.denominator).sqrt()
        ratio = Decimal(average.numerator) / average.denominator / deviation
        return Fraction(ratio.quantize(Decimal("1e-9")))


def fee_postings(book: Book, contest: str, participant: str) -> Iterator[int]:
    """What each movement of an account adds to the fees, in 1e-15."""
    for number, _, _ in book.movements(contest, participant):
        yield from (amount for name, _, _, amount in postings(book, number) if name == "fees")


def words(percent: Fraction) -> str:
    """The word for a return. Source: Forecaster Arena, Scoring Methodology, "Appendix B: Reference Values"."""
    if percent > 5:
        return "Exceptional" if percent > 50 else "Excellent" if percent > 20 else "Good"
    return "Neutral" if percent > -5 else "Poor" if percent >= -20 else "Very Poor"


def drawdown(rows: list[Snapshot]) -> Fraction:
    """The largest fall from a peak before it, as a share of the peak, of an index that cash from outside does not move.

    From row to row the index grows as the total does without what came in; who has nothing before, or after, begins
    anew.
    """
    index, peak, deepest = Fraction(1), Fraction(0), Fraction(0)  # the index a unit of the total
    put_in = Fraction(0)
    for row in rows:
        net_deposits = row.total - row.profit
        inflow, put_in = net_deposits - put_in, net_deposits
        before = row.total - inflow
        if inflow:
            deepest = max(deepest, (peak - index * before) / peak if peak else Fraction(0))
            peak = max(peak, index * before)
            begins = before <= 0 or row.total <= 0
            index, peak = (Fraction(1), Fraction(0)) if begins else (index * before / row.total, peak)
        peak = max(peak, index * row.total)
        deepest = max(deepest, (peak - index * row.total) / peak if peak else Fraction(0))
    return deepest


def state(account: Account, rules: dict[str, Any]) -> str:
    """The state of an account, which depends on whether it has anything left to trade with."""
    if account.cash < 0:
        return "debt"
    ruined = account.cash // rules["cap_divisor"] < rules["least_bet"] and not account.open()
    return "ruined" if ruined else "active"


def ranks(worths: list[Fraction]) -> list[int]:
    """The place of each, the greatest first: 1, 2, 2, 4."""
    return [1 + sum(other > worth for other in worths) for worth in worths]
