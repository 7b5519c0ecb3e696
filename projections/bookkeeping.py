"""Keeping the books of a log: every amount in it is worked out again from what came before; none is trusted."""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Any

from ledger import events
from ledger.errors import Corrupt
from ledger.findings import chance, fixed, instant, money, named, several, short, unlike
from ledger.trading import FAULTS, PERCENT, WHOLE, Trading, cap, period
from ledger.values import LARGEST_CASH, PROBABILITY
from projections.books import Account, Attempt, Attempts, Due, Holding, Quoted, Ruling
from projections.columns import Facts
from projections.dealings import leg

Ruled = events.QuestionResolved | events.QuestionAnnulled | events.ResolutionRevoked
Ending = events.PositionSettled | events.PositionRefunded | events.TradesVoided


def keep(found: Facts, position: int, event: Any) -> None:
    """Enter an event into the books. Raises Corrupt if it is not what the rules make of what came before it, KeyError
    if it names what never was.
    """
    tag, due = events.TAGS[type(event)], found.books.due.pop(position, None)
    if due is not None and (type(event) not in due.kinds or due[1:] != (_whose(event), event.at)):
        raise Corrupt(position, f"{tag}: {_not_due(due, event)}", "books")
    if due is None and isinstance(event, _ONLY_DUE):
        raise Corrupt(position, f"{tag}: {unlike('something before it that it follows from', 'nothing')}", "books")
    if type(event) in _KEEP:
        for what in _KEEP[type(event)](found, position, event):
            raise Corrupt(position, f"{tag}: {what}", "books")


def check_done(found: Facts) -> None:
    """Raise Corrupt where the log goes on without something that was due."""
    late = [position for position in found.books.due if position <= found.as_of]
    if late:
        due = found.books.due[min(late)]
        raise Corrupt(min(late), unlike(f"{_kinds(due)}, which is due here", "a forecast or a withdrawal"), "books")


def _not_due(due: Due, event: Any) -> str:
    """What is wrong about an event where another is due."""
    if type(event) not in due.kinds:
        return unlike(f"{_kinds(due)}, which is due here", events.TAGS[type(event)])
    if due.whose != _whose(event):
        return unlike(f"that of {several(due.whose)}, which is due here", f"that of {several(_whose(event))}")
    return unlike(f"the instant {instant(due.at)} of what it follows from", instant(event.at))


def _kinds(due: Due) -> str:
    return " or ".join(events.TAGS[kind] for kind in due.kinds)


def _whose(event: Any) -> tuple[Any, ...]:
    """What of an event is known before it happens."""
    own = ("contest", "participant", "period", "attempt", "leg", "question", "position")
    skipped = ("question", "position") if isinstance(event, events.OfLeg) else ()
    return tuple(getattr(event, name) for name in own if name not in skipped and hasattr(event, name))


def _founded(found: Facts, _: int, event: events.ContestOpened) -> Iterable[str]:
    trading = event.rules.trading
    if trading is not None and trading.cohorts == "weekly" and event.starts_at is not None:
        insort(found.books.cohorts.setdefault(event.series, []), event.starts_at)
    return ()


def _quoted(found: Facts, position: int, event: events.PricesQuoted) -> Iterator[str]:
    books, names = found.books, {quote.question for quote in event.quotes}
    if not names or len(names) < len(event.quotes):
        yield unlike("one quote or more, each question once", f"{len(event.quotes)} quotes of {len(names)} questions")
    if event.quoted_at > event.at:
        yield unlike(f"prices quoted by {instant(event.at)}", instant(event.quoted_at))
    for quote in event.quotes:
        code = found.question_codes.codes[quote.question]
        there = books.quotes.setdefault(code, [])
        yield from _prices(found.questions[code], quote.prices)
        if there and event.quoted_at < there[-1].quoted_at:
            last = instant(there[-1].quoted_at)
            yield unlike(f"prices quoted from {last} on, of the question's last quote", instant(event.quoted_at))
        told_at = max(event.at, there[-1].told_at) if there else event.at
        there.append(Quoted(position, told_at, event.quoted_at, event.source, quote.prices))


def _prices(question: events.QuestionOpened, quoted: tuple[int | None, ...]) -> Iterable[str]:
    """What is wrong about prices; one that is missing is None."""
    prices, outcomes = [price for price in quoted if price is not None], len(question.outcomes)
    if len(quoted) != outcomes or not prices:
        return (unlike(f"{outcomes} prices of {named(question.question)}, not all missing", _shown(quoted)),)
    if question.kind == "binary" and (len(prices) != 2 or sum(prices) != PROBABILITY):
        return (unlike(f"two prices of {named(question.question)} that sum to 1", _shown(quoted)),)
    if not all(0 <= price <= PROBABILITY for price in prices):
        return (unlike(f"prices of {named(question.question)} from 0 to 1", _shown(quoted)),)
    return ()


def _shown(numbers: Iterable[int | None]) -> str:
    return short(", ".join(map(chance, numbers))) or "none"


def _enrolled(found: Facts, position: int, event: events.ParticipantEnrolled) -> Iterator[str]:
    trading, key = found.contests[event.contest].opened.rules.trading, (event.contest, event.participant)
    if trading is None:
        return
    if (there := found.books.accounts.get(key)) is not None:
        yield unlike(f"one enrolment of {named(event.participant)}", f"one at {instant(there.enrolled.at)} already")
    found.books.expect(position + 1, event.at, key, events.CashGranted)
    found.books.accounts[key] = Account(event)


def _granted(found: Facts, position: int, event: events.CashGranted) -> Iterator[str]:
    trading = found.trading(event.contest)
    if event.amount != trading.starting_cash:
        yield unlike(f"an amount of {money(trading.starting_cash)}, what the contest starts with", money(event.amount))
    found.books.progress(event.contest).enrolled += 1
    _move(found, position, event, "granted", event.amount)


def _deposited(found: Facts, position: int, event: events.CashDeposited | events.CashWithdrawn) -> Iterator[str]:
    account, trading = found.books.accounts[event.contest, event.participant], found.trading(event.contest)
    if not trading.recapitalisation:
        yield unlike("no cash in or out, which the rules do not allow", money(event.amount))
    out = isinstance(event, events.CashWithdrawn)
    account.deposited += 0 if out else event.amount
    most = account.cash if out else LARGEST_CASH
    if not 0 < event.amount <= most:
        yield unlike(f"an amount above 0 and up to {money(most)}", money(event.amount))
    if account.deposited > LARGEST_CASH:
        yield unlike(f"deposits of at most {money(LARGEST_CASH)} in all", money(account.deposited))
    _move(found, position, event, "withdrawn" if out else "deposited", -event.amount if out else event.amount)


def _kept(found: Facts, _: int, event: events.TextKept) -> Iterator[str]:
    if event.digest in found.books.texts:
        yield unlike("a text not kept before", f"digest {named(event.digest)} again")
    if (digest := sha256(event.text.encode()).hexdigest()) != event.digest:
        yield unlike(f"digest {digest}, of the text", named(event.digest, 66))
    found.books.texts.add(event.digest)


def _attempted(found: Facts, position: int, event: events.DecisionRecorded | events.DecisionMalformed) -> Iterator[str]:
    """What both kinds of attempt have in common."""
    books, trading = found.books, found.trading(event.contest)
    account = books.accounts[event.contest, event.participant]
    attempts = account.attempts.setdefault(event.period, Attempts())
    starts_at = found.contests[event.contest].opened.starts_at or 0
    if books.progress(event.contest).complete():
        yield unlike(f"contest {named(event.contest)} to be incomplete", "everybody's decision, and nothing open")
    if attempts.taken:
        yield unlike(f"one decision for period {named(event.period)}", "another, after it was taken")
    if event.attempt != attempts.made + 1:
        yield unlike(f"attempt {attempts.made + 1}, the next", named(event.attempt))
    if event.at < starts_at:
        yield unlike(f"a decision from {instant(starts_at)} on, the start", instant(event.at))
    now = period(trading, starts_at, event.at) if trading.period_days else max(event.period, 1)
    if event.period != now:
        yield unlike(f"period {now} at {instant(event.at)}", named(event.period))
    if event.at < account.decided_at:
        last = instant(account.decided_at)
        yield unlike(f"an instant from {last} on, of the participant's last decision", instant(event.at))
    if lost := {event.prompt, event.response} - {""} - books.texts:
        yield unlike("prompt and response to be digests of texts kept before", named(min(lost)))
    attempts.made += 1
    account.decided_at = event.at
    books.attempts.append(Attempt(position, event))


def _beyond(trading: Trading, cash: int, event: events.DecisionRecorded) -> Iterator[str]:
    """What makes a reply malformed, or only some of its bets carried out where that must not be."""
    amounts, most, legs = [bet.amount for bet in event.bets], cap(trading, cash), len(event.bets) + len(event.sells)
    for amount in amounts:
        if not trading.least_bet <= amount <= most:
            yield unlike(f"bets of {money(trading.least_bet)} to {money(most)}", money(amount))
    if trading.sum_capped and sum(amounts) > most:
        yield unlike(f"bets of at most {money(most)} together", money(sum(amounts)))
    for sale in event.sells:
        if not trading.least_percentage <= sale.percentage <= WHOLE:
            least = fixed(trading.least_percentage, PERCENT)
            yield unlike(f"a sale of {least} to 100 percent", fixed(sale.percentage, PERCENT))
    if bool(event.bets) != (event.action == "BET") or bool(event.sells) != (event.action == "SELL"):
        both = f"{event.action}, {len(event.bets)} bets, {len(event.sells)} sales"
        yield unlike("bets with BET alone, and sales with SELL alone", both)
    if not 0 <= event.executed <= legs:
        yield unlike(f"0 to {legs} legs carried out", named(event.executed))
    if trading.legs == "all_or_nothing" and amounts and event.executed not in {0, legs}:
        yield unlike(f"0 or {legs} bets carried out, all or nothing", named(event.executed))


def _decided(found: Facts, position: int, event: events.DecisionRecorded) -> Iterator[str]:
    legs, cash = len(event.bets) + len(event.sells), found.books.accounts[event.contest, event.participant].cash
    yield from _attempted(found, position, event)
    yield from _beyond(found.trading(event.contest), cash, event)
    of = (event.contest, event.participant, event.period, event.attempt)
    done = events.SharesBought if event.action == "BET" else events.SharesSold
    for number in range(1, legs + 1):
        found.books.expect(position + number, event.at, (*of, number), done, events.LegRefused)
    if event.action == "HOLD" or event.executed:
        _taken(found, event)


def _malformed(found: Facts, position: int, event: events.DecisionMalformed) -> Iterator[str]:
    yield from _attempted(found, position, event)
    if event.fault not in FAULTS:
        yield unlike("a fault such as unreadable, of those that there are", named(event.fault))
    attempts = found.books.accounts[event.contest, event.participant].attempts[event.period]
    attempts.malformed += 1
    if attempts.malformed >= found.trading(event.contest).attempts:
        whose = (event.contest, event.participant, event.period)
        found.books.expect(position + 1, event.at, whose, events.DecisionDefaulted)


def _defaulted(found: Facts, _: int, event: events.DecisionDefaulted) -> Iterable[str]:
    found.books.attempts[-1] = found.books.attempts[-1]._replace(defaulted=True)
    _taken(found, event)
    return ()


def _taken(found: Facts, event: events.DecisionRecorded | events.DecisionDefaulted) -> None:
    attempts = found.books.accounts[event.contest, event.participant].attempts
    first = not any(each.taken for each in attempts.values())
    attempts[event.period].taken = True
    if first:
        progress = found.books.progress(event.contest)
        progress.decided += 1
        progress.note(0, event.at)


def _resolved(found: Facts, position: int, event: events.QuestionResolved) -> Iterator[str]:
    code = found.question_codes.codes[event.question]
    outcomes = len(found.questions[code].outcomes)
    if event.payouts:
        if event.outcome != -1:
            yield unlike("outcome -1 beside payouts", named(event.outcome))
        if len(event.payouts) != outcomes or sum(event.payouts) != PROBABILITY:
            yield unlike(f"{outcomes} payouts that sum to 1", _shown(event.payouts))
        if not all(0 <= payout < PROBABILITY for payout in event.payouts):
            yield unlike("payouts from 0 to below 1", _shown(event.payouts))
    payouts = event.payouts or tuple(PROBABILITY * (i == event.outcome) for i in range(outcomes))
    found.books.payouts[code] = payouts
    found.books.rulings.append(Ruling(position, event.at, code, payouts))
    _expect(
        found, position, event, [key for key, held in _holders(found, code) if held.is_open()], events.PositionSettled
    )


def _annulled(found: Facts, position: int, event: events.QuestionAnnulled) -> Iterable[str]:
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
    return ()


def _revoked(found: Facts, position: int, event: events.ResolutionRevoked) -> Iterable[str]:
    code = found.question_codes.codes[event.question]
    ended = [key for key, held in _holders(found, code) if held.ended]
    _expect(found, position, event, ended, events.SettlementReversed)
    found.books.payouts.pop(code, None)
    found.books.rulings.append(Ruling(position, event.at, code, ()))
    return ()


def _finalized(found: Facts, _: int, event: events.ContestFinalized) -> Iterable[str]:
    books, contest = found.books, found.contests[event.contest]
    if contest.opened.rules.trading is not None:
        own = {code: books.payouts[code] for code in contest.entries if code in books.payouts}
        books.sealed[event.contest] = own
    return ()


def _closed(found: Facts, _: int, event: events.QuestionClosed) -> Iterable[str]:
    found.books.closed[found.question_codes.codes[event.question]] = event.at
    return ()


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


def _ended(found: Facts, position: int, event: Ending) -> Iterator[str]:
    holding = found.books.accounts[event.contest, event.participant].holdings[event.position]
    code, shares, cost, price = holding.question, holding.shares, holding.cost, None
    was_open, worth = holding.is_open(), cost
    if isinstance(event, events.PositionSettled):
        kind, cash, price = "settled", event.proceeds, event.payout
        payout = found.books.payouts[code][holding.outcome]
        worth = shares * payout // PROBABILITY
        if event.payout != payout:
            yield unlike(f"a payout of {chance(payout)}, as resolved", chance(event.payout))
    elif isinstance(event, events.PositionRefunded):
        kind, cash = "refunded", event.cost
    else:
        kind, cash, worth = "voided", event.amount, holding.paid - holding.received
    if event.outcome != holding.outcome:
        yield unlike(f"outcome {holding.outcome}, of the position", named(event.outcome))
    if event.shares != shares:
        yield unlike(f"{money(shares)} shares, of the position", money(event.shares))
    if event.cost != cost:
        yield unlike(f"a cost of {money(cost)}, of the position", money(event.cost))
    if cash != worth:
        yield unlike(f"an amount of {money(worth)}, what the position is worth", money(cash))
    holding.status, holding.ended = kind, position
    found.books.progress(event.contest).note(-was_open, event.at)
    found.books.enter(position, event, kind, (code, holding.outcome, event.position, cash, -shares, -cost, price))


def _reversed(found: Facts, position: int, event: events.SettlementReversed) -> Iterator[str]:
    holding = found.books.accounts[event.contest, event.participant].holdings[event.position]
    undone = found.books.ends.get(event.reverses)
    if holding.ended != event.reverses or undone is None:
        yield unlike(f"to reverse log position {holding.ended}, which ended the position", named(event.reverses))
        return
    if undone.cash != event.amount:
        yield unlike(f"an amount of {money(undone.cash)}, what the position was settled with", money(event.amount))
    if event.outcome != holding.outcome:
        yield unlike(f"outcome {holding.outcome}, of the position", named(event.outcome))
    holding.status, holding.ended = "open" if holding.shares else "closed", 0
    found.books.progress(event.contest).note(int(holding.is_open()), event.at)
    change = (-undone.cash, -undone.shares, -undone.cost, undone.price)
    found.books.enter(position, event, "reversed", (holding.question, holding.outcome, event.position, *change))


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
_KEEP: dict[type, Callable[[Facts, int, Any], Iterable[str]]] = {
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
