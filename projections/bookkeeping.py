"""Keeping the books of a log: every amount in it is worked out again from what came before; none is trusted."""

from bisect import insort
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from ledger import events
from ledger.errors import Corrupt
from ledger.trading import FAULTS, WHOLE, Trading, cap, period
from ledger.values import LARGEST_CASH, PROBABILITY
from projections.books import Account, Attempt, Attempts, Holding, Quoted, Ruling, first
from projections.columns import Facts
from projections.dealings import leg

Ruled = events.QuestionResolved | events.QuestionAnnulled | events.ResolutionRevoked
Ending = events.PositionSettled | events.PositionRefunded | events.TradesVoided


def keep(found: Facts, position: int, event: Any) -> None:
    """Enter an event into the books. Raises Corrupt if it is not what the rules make of what came before it, KeyError
    if it names what never was.
    """
    books = found.books
    due = books.due.pop(position, None)
    if due is not None and (type(event) not in due.kinds or due[1:] != (_whose(event), event.at)):
        raise Corrupt(position, f"{events.TAGS[type(event)]} where {' or '.join(map(_tag, due.kinds))} is due", "books")
    if due is None and isinstance(event, _ONLY_DUE):
        raise Corrupt(position, f"{events.TAGS[type(event)]} without what it follows from", "books")
    if type(event) in _KEEP and (wrong := _KEEP[type(event)](found, position, event)):
        raise Corrupt(position, f"{events.TAGS[type(event)]}: {wrong}", "books")


def check_done(found: Facts) -> None:
    """Raise Corrupt where the log goes on without something that was due."""
    late = [position for position in found.books.due if position <= found.as_of]
    if late:
        kinds = " or ".join(map(_tag, found.books.due[min(late)].kinds))
        raise Corrupt(min(late), f"{kinds} is due here", "books")


def _tag(kind: type) -> str:
    return events.TAGS[kind]


def _whose(event: Any) -> tuple[Any, ...]:
    """What of an event is known before it happens."""
    own = ("contest", "participant", "period", "attempt", "leg", "question", "position")
    skipped = ("question", "position") if isinstance(event, events.OfLeg) else ()
    return tuple(getattr(event, name) for name in own if name not in skipped and hasattr(event, name))


def _founded(found: Facts, _: int, event: events.ContestOpened) -> str:
    trading = event.rules.trading
    if trading is not None and trading.cohorts == "weekly" and event.starts_at is not None:
        insort(found.books.cohorts.setdefault(event.series, []), event.starts_at)
    return ""


def _quoted(found: Facts, position: int, event: events.PricesQuoted) -> str:
    books, named = found.books, [quote.question for quote in event.quotes]
    if not named or len(set(named)) < len(named) or event.quoted_at > event.at:
        return "no quotes, a question twice, or quotes of a later instant"
    for quote in event.quotes:
        code = found.question_codes.codes[quote.question]
        question, there = found.questions[code], books.quotes.setdefault(code, [])
        prices = [price for price in quote.prices if price is not None]
        binary = question.kind == "binary" and (len(prices) != 2 or sum(prices) != PROBABILITY)
        if len(quote.prices) != len(question.outcomes) or not prices or binary:
            return "prices that do not belong to the question"
        if not all(0 <= price <= PROBABILITY for price in prices):
            return "a price beyond 0 or 1"
        if there and event.quoted_at < there[-1].quoted_at:
            return "earlier than the question's last quote"
        there.append(Quoted(position, event.quoted_at, event.source, quote.prices))
    books.clock = max(books.clock, event.quoted_at)
    return ""


def _enrolled(found: Facts, position: int, event: events.ParticipantEnrolled) -> str:
    trading, key = found.contests[event.contest].opened.rules.trading, (event.contest, event.participant)
    if trading is None:
        return ""
    if key in found.books.accounts:
        return "enrolled already"
    found.books.expect(position + 1, event.at, key, events.CashGranted)
    found.books.accounts[key] = Account(event)
    return ""


def _granted(found: Facts, position: int, event: events.CashGranted) -> str:
    trading = found.trading(event.contest)
    found.books.progress(event.contest).enrolled += 1
    _move(found, position, event, "granted", event.amount)
    return "" if event.amount == trading.starting_cash else "not what the contest starts with"


def _deposited(found: Facts, position: int, event: events.CashDeposited | events.CashWithdrawn) -> str:
    account, trading = found.books.accounts[event.contest, event.participant], found.trading(event.contest)
    if not trading.recapitalisation:
        return "cash that the rules let neither in nor out"
    out = isinstance(event, events.CashWithdrawn)
    account.deposited += 0 if out else event.amount
    if not 0 < event.amount <= (account.cash if out else LARGEST_CASH) or account.deposited > LARGEST_CASH:
        return "an amount out of range"
    _move(found, position, event, "withdrawn" if out else "deposited", -event.amount if out else event.amount)
    return ""


def _kept(found: Facts, _: int, event: events.TextKept) -> str:
    if event.digest in found.books.texts or sha256(event.text.encode()).hexdigest() != event.digest:
        return "a text kept already, or under a digest that is not its own"
    found.books.texts.add(event.digest)
    return ""


def _attempted(found: Facts, position: int, event: events.DecisionRecorded | events.DecisionMalformed) -> str:
    """What both kinds of attempt have in common."""
    books, trading = found.books, found.trading(event.contest)
    account = books.accounts[event.contest, event.participant]
    attempts = account.attempts.setdefault(event.period, Attempts())
    starts_at = found.contests[event.contest].opened.starts_at or 0
    texts = {event.prompt, event.response} - {""}
    wrong = {
        "the contest is complete": books.progress(event.contest).complete(),
        "the decision is taken": attempts.taken,
        "not the attempt that comes next": event.attempt != attempts.made + 1,
        "not in its period": event.period < 1
        or event.at < starts_at
        or bool(trading.period_days and event.period != period(trading, starts_at, event.at)),
        "earlier than the participant's last decision": event.at < account.decided_at,
        "a text that is not kept": not texts <= books.texts,
    }
    attempts.made += 1
    account.decided_at = event.at
    books.clock = max(books.clock, event.at)
    books.attempts.append(Attempt(position, event))
    return first(wrong)


def _beyond(trading: Trading, cash: int, event: events.DecisionRecorded) -> bool:
    """Whether a decision asks for what makes a reply malformed, or has only some of its bets where it must not."""
    amounts, most = [bet.amount for bet in event.bets], cap(trading, cash)
    return (
        not all(trading.least_bet <= amount <= most for amount in amounts)
        or (trading.sum_capped and sum(amounts) > most)
        or not all(trading.least_percentage <= sale.percentage <= WHOLE for sale in event.sells)
        or (trading.legs == "all_or_nothing" and bool(amounts) and event.executed not in {0, len(amounts)})
    )


def _decided(found: Facts, position: int, event: events.DecisionRecorded) -> str:
    legs, cash = len(event.bets) + len(event.sells), found.books.accounts[event.contest, event.participant].cash
    wrong = _attempted(found, position, event)
    if _beyond(found.trading(event.contest), cash, event):
        return "bets or sales that the rules do not let stand"
    if bool(event.bets) != (event.action == "BET") or bool(event.sells) != (event.action == "SELL"):
        return "legs that do not belong to the action"
    of = (event.contest, event.participant, event.period, event.attempt)
    done = events.SharesBought if event.action == "BET" else events.SharesSold
    for number in range(1, legs + 1):
        found.books.expect(position + number, event.at, (*of, number), done, events.LegRefused)
    if event.action == "HOLD" or event.executed:
        _taken(found, event)
    return wrong or "more legs than there are" * (not 0 <= event.executed <= legs)


def _malformed(found: Facts, position: int, event: events.DecisionMalformed) -> str:
    wrong = _attempted(found, position, event)
    attempts = found.books.accounts[event.contest, event.participant].attempts[event.period]
    attempts.malformed += 1
    if attempts.malformed >= found.trading(event.contest).attempts:
        whose = (event.contest, event.participant, event.period)
        found.books.expect(position + 1, event.at, whose, events.DecisionDefaulted)
    return wrong or "an unknown fault" * (event.fault not in FAULTS)


def _defaulted(found: Facts, _: int, event: events.DecisionDefaulted) -> str:
    found.books.attempts[-1] = found.books.attempts[-1]._replace(defaulted=True)
    _taken(found, event)
    return ""


def _taken(found: Facts, event: events.DecisionRecorded | events.DecisionDefaulted) -> None:
    attempts = found.books.accounts[event.contest, event.participant].attempts
    first = not any(each.taken for each in attempts.values())
    attempts[event.period].taken = True
    if first:
        progress = found.books.progress(event.contest)
        progress.decided += 1
        progress.note(0, event.at)


def _resolved(found: Facts, position: int, event: events.QuestionResolved) -> str:
    code = found.question_codes.codes[event.question]
    outcomes = len(found.questions[code].outcomes)
    if event.payouts and (
        event.outcome != -1
        or len(event.payouts) != outcomes
        or sum(event.payouts) != PROBABILITY
        or not all(0 <= payout < PROBABILITY for payout in event.payouts)
    ):
        return "payouts that are none"
    payouts = event.payouts or tuple(PROBABILITY * (i == event.outcome) for i in range(outcomes))
    found.books.payouts[code] = payouts
    found.books.rulings.append(Ruling(position, event.at, code, payouts))
    _expect(
        found, position, event, [key for key, held in _holders(found, code) if held.is_open()], events.PositionSettled
    )
    return ""


def _annulled(found: Facts, position: int, event: events.QuestionAnnulled) -> str:
    code = found.question_codes.codes[event.question]
    holders = _holders(found, code)
    ended = [key for key, held in holders if held.ended]
    _expect(found, position, event, ended, events.SettlementReversed)
    found.books.payouts.pop(code, None)
    found.books.rulings.append(Ruling(position, event.at, code, ()))
    if event.policy == "void_trades":
        _expect(found, position + len(ended), event, [key for key, _ in holders], events.TradesVoided)
    else:
        open_ = [key for key, held in holders if held.shares]
        _expect(found, position + len(ended), event, open_, events.PositionRefunded)
    return ""


def _revoked(found: Facts, position: int, event: events.ResolutionRevoked) -> str:
    code = found.question_codes.codes[event.question]
    ended = [key for key, held in _holders(found, code) if held.ended]
    _expect(found, position, event, ended, events.SettlementReversed)
    found.books.payouts.pop(code, None)
    found.books.rulings.append(Ruling(position, event.at, code, ()))
    return ""


def _finalized(found: Facts, _: int, event: events.ContestFinalized) -> str:
    books, contest = found.books, found.contests[event.contest]
    if contest.opened.rules.trading is not None:
        own = {code: books.payouts[code] for code in contest.entries if code in books.payouts}
        books.sealed[event.contest] = own
    return ""


def _closed(found: Facts, _: int, event: events.QuestionClosed) -> str:
    found.books.closed[found.question_codes.codes[event.question]] = event.at
    return ""


def _holders(found: Facts, code: int) -> list[tuple[tuple[str, str, int], Holding]]:
    """Every position on a question, by contest, participant and number, but for contests that are sealed."""
    return [
        (key, found.books.accounts[key[:2]].holdings[key[2]])
        for key in sorted(found.books.holders.get(code, ()))
        if found.contests[key[0]].sealed is None
    ]


def _expect(found: Facts, after: int, event: Ruled, keys: Iterable[tuple[str, str, int]], kind: type) -> None:
    for place, (contest, participant, number) in enumerate(keys, after + 1):
        found.books.expect(place, event.at, (contest, participant, event.question, number), kind)


def _ended(found: Facts, position: int, event: Ending) -> str:
    holding = found.books.accounts[event.contest, event.participant].holdings[event.position]
    code, shares, cost, price = holding.question, holding.shares, holding.cost, None
    wrong = (event.shares, event.cost, event.outcome) != (shares, cost, holding.outcome)
    was_open = holding.is_open()
    if isinstance(event, events.PositionSettled):
        kind, cash, price = "settled", event.proceeds, event.payout
        payout = found.books.payouts[code][holding.outcome]
        wrong = wrong or (event.payout, cash) != (payout, shares * payout // PROBABILITY)
    elif isinstance(event, events.PositionRefunded):
        kind, cash = "refunded", cost
    else:
        kind, cash = "voided", event.amount
        wrong = wrong or cash != holding.paid - holding.received
    holding.status, holding.ended = kind, position
    found.books.progress(event.contest).note(-was_open, event.at)
    found.books.enter(position, event, kind, (code, holding.outcome, event.position, cash, -shares, -cost, price))
    return "not what the position is worth" * wrong


def _reversed(found: Facts, position: int, event: events.SettlementReversed) -> str:
    holding = found.books.accounts[event.contest, event.participant].holdings[event.position]
    undone = found.books.ends.get(event.reverses)
    if holding.ended != event.reverses or undone is None or undone.cash != event.amount:
        return "not what settled the position"
    holding.status, holding.ended = "open" if holding.shares else "closed", 0
    found.books.progress(event.contest).note(int(holding.is_open()), event.at)
    change = (-undone.cash, -undone.shares, -undone.cost, undone.price)
    found.books.enter(position, event, "reversed", (holding.question, holding.outcome, event.position, *change))
    return "" if event.outcome == holding.outcome else "another outcome"


def _move(found: Facts, position: int, event: events.OfAccount, kind: str, cash: int) -> None:
    found.books.accounts[event.contest, event.participant].deposits += cash
    found.books.enter(position, event, kind, (-1, -1, 0, cash, 0, 0, None))


_ONLY_DUE = (
    events.CashGranted,
    events.DecisionDefaulted,
    events.SharesBought,
    events.SharesSold,
    events.LegRefused,
    events.PositionSettled,
    events.PositionRefunded,
    events.TradesVoided,
    events.SettlementReversed,
)
_KEEP: dict[type, Callable[[Facts, int, Any], str]] = {
    events.ContestOpened: _founded,
    events.PricesQuoted: _quoted,
    events.ParticipantEnrolled: _enrolled,
    events.CashGranted: _granted,
    events.CashDeposited: _deposited,
    events.CashWithdrawn: _deposited,
    events.TextKept: _kept,
    events.DecisionRecorded: _decided,
    events.DecisionMalformed: _malformed,
    events.DecisionDefaulted: _defaulted,
    events.SharesBought: leg,
    events.SharesSold: leg,
    events.LegRefused: leg,
    events.ContestFinalized: _finalized,
    events.QuestionClosed: _closed,
    events.QuestionResolved: _resolved,
    events.QuestionAnnulled: _annulled,
    events.ResolutionRevoked: _revoked,
    events.PositionSettled: _ended,
    events.PositionRefunded: _ended,
    events.TradesVoided: _ended,
    events.SettlementReversed: _reversed,
}
