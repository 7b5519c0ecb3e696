"""The legs of decisions, each worked out again from what was asked for, the quote it names and the account then."""

from collections.abc import Iterator

from ledger import events
from ledger.exact import half_even
from ledger.findings import chance, fixed, instant, money, named, several, unlike
from ledger.trading import LEG_CODES, PERCENT, WHOLE, cap, stale
from ledger.values import LARGEST_HOLDING, PROBABILITY
from projections.books import Holding, Quoted, Trade
from projections.checks import unanswered
from projections.columns import Facts

Leg = events.SharesBought | events.SharesSold | events.LegRefused


def leg(found: Facts, position: int, event: Leg) -> Iterator[str]:
    """A leg, held against what was asked for, the quote it names, and the account as the legs before left it."""
    books = found.books
    decision = books.attempts[-1].event
    assert isinstance(decision, events.DecisionRecorded)  # noqa: S101 - legs are due after nothing else
    if isinstance(event, events.LegRefused):
        books.refusals.append((position, event))
        if event.code not in LEG_CODES:
            yield unlike("a reason such as no_quote, of those that there are", named(event.code))
    else:
        books.executed += 1
        yield from _carried_out(found, position, event, decision)
    if event.leg == len(decision.bets) + len(decision.sells):
        executed, books.executed = books.executed, 0
        if executed != decision.executed:
            yield unlike(f"{named(decision.executed)} legs carried out, as the decision says", str(executed))


def _carried_out(
    found: Facts, position: int, event: events.SharesBought | events.SharesSold, decision: events.DecisionRecorded
) -> Iterator[str]:
    code = found.question_codes.codes[event.question]
    yield from _tradable(found, code, event)
    quoted = found.books.quotes[code][-1]
    if isinstance(event, events.SharesBought):
        yield from _bought(found, event, code, decision.bets[event.leg - 1])
        _trade(found, position, event, (code, quoted, event.shares, event.amount, -event.amount))
    else:
        yield from _sold(found, event, code, decision.sells[event.leg - 1])
        _trade(found, position, event, (code, quoted, -event.shares, -event.cost, event.proceeds))


def _tradable(found: Facts, code: int, event: events.SharesBought | events.SharesSold) -> Iterator[str]:
    """What is wrong about the question, its outcome, the instant and the price."""
    question, quoted = found.questions[code], found.books.quotes.get(code, [None])[-1]
    closed, last = found.books.closed.get(code, question.closes_at), len(question.outcomes) - 1
    if code not in found.contests[event.contest].entries:
        yield unlike("a question of the contest", named(event.question))
    if code in found.settled:
        yield unanswered(found, code)
    if not 0 <= event.outcome <= last:
        yield unlike(f"an outcome from 0 to {last}", named(event.outcome))
    if not question.opens_at <= event.at < closed:
        yield unlike(f"a leg from {instant(question.opens_at)} on and before {instant(closed)}", instant(event.at))
    if quoted is None:
        yield unlike(f"a quote of question {named(event.question)} before", "none")
        return
    if event.quote != quoted.position:
        yield unlike(f"the quote of log position {quoted.position}, the question's last", named(event.quote))
    if event.price != quoted.prices[event.outcome]:
        yield unlike(f"a price of {chance(quoted.prices[event.outcome])}, as quoted", chance(event.price))
    if quoted.quoted_at > event.at or stale(found.trading(event.contest), quoted.quoted_at, event.at):
        oldest = found.trading(event.contest).stale_after_seconds
        yield unlike(f"a quote of at most {oldest} s before {instant(event.at)}", f"one of {instant(quoted.quoted_at)}")


def _bought(found: Facts, event: events.SharesBought, code: int, bet: events.Bet) -> Iterator[str]:
    account, trading = found.books.accounts[event.contest, event.participant], found.trading(event.contest)
    question, most = found.questions[code], cap(trading, account.cash)
    side, outcome = bet.side.lower() if question.kind == "binary" else bet.side, question.outcomes[event.outcome]
    newest = account.newest.get((code, event.outcome), 0)
    there = newest and account.holdings[newest].is_open()
    account.bought += event.shares
    if (bet.question, side) != (event.question, outcome):
        yield unlike(f"{several((bet.question, side))}, the bet that was asked for", several((event.question, outcome)))
    if bet.amount != event.amount:
        yield unlike(f"an amount of {money(bet.amount)}, the bet that was asked for", money(event.amount))
    if not trading.least_bet <= event.amount <= most:
        yield unlike(f"a bet of {money(trading.least_bet)} to {money(most)}", money(event.amount))
    if event.cash != account.cash:
        yield unlike(f"cash of {money(account.cash)} before", money(event.cash))
    shares = event.amount * PROBABILITY // event.price if event.price else 0
    if not shares:
        yield unlike("a price at which the amount buys shares", f"{money(event.amount)} at {chance(event.price)}")
    if event.shares != shares:
        yield unlike(f"{money(shares)} shares, what the amount buys", money(event.shares))
    if account.bought > LARGEST_HOLDING:
        yield unlike(f"at most {money(LARGEST_HOLDING)} shares that one account buys", money(account.bought))
    if event.confidence != (confidence := half_even(event.amount * PROBABILITY, most or 1)):
        yield unlike(f"a confidence of {chance(confidence)}, as the amount implies", chance(event.confidence))
    if event.position != (number := newest if there else len(account.holdings) + 1):
        yield unlike(f"position {number}, the open one or the next", named(event.position))


def _sold(found: Facts, event: events.SharesSold, code: int, sale: events.Sale) -> Iterator[str]:
    holding = found.books.accounts[event.contest, event.participant].holdings[event.position]
    shares = holding.shares if sale.percentage == WHOLE else holding.shares * sale.percentage // WHOLE
    cost = holding.cost * shares // max(holding.shares, 1)
    if sale.position != str(event.position):
        yield unlike(f"position {named(sale.position)}, the sale that was asked for", named(str(event.position)))
    if not holding.is_open():
        yield unlike(f"position {event.position} to be open", f"it {holding.status}")
    if (code, event.outcome) != (holding.question, holding.outcome):
        held = several((found.questions[holding.question].question, holding.outcome))
        yield unlike(f"question and outcome {held}, of the position", several((event.question, event.outcome)))
    if not shares:
        yield unlike("a percentage that sells shares", f"{fixed(sale.percentage, PERCENT)} of {money(holding.shares)}")
    if event.shares != shares:
        yield unlike(f"{money(shares)} shares, the percentage asked for", money(event.shares))
    if event.cost != cost:
        yield unlike(f"a cost of {money(cost)}, of the shares sold", money(event.cost))
    if event.proceeds != (proceeds := shares * event.price // PROBABILITY):
        yield unlike(f"proceeds of {money(proceeds)}, of the shares at the price", money(event.proceeds))


def _trade(
    found: Facts,
    position: int,
    event: events.SharesBought | events.SharesSold,
    what: tuple[int, Quoted, int, int, int],
) -> None:
    """Enter a trade: the question, the quote, and what is added to shares, cost and cash."""
    code, quoted, shares, cost, cash = what
    books, bought = found.books, isinstance(event, events.SharesBought)
    account, number = books.accounts[event.contest, event.participant], event.position
    most = cap(found.trading(event.contest), account.cash) if bought else 0
    books.trades.append(Trade(position, event, code, quoted, most))
    if number not in account.holdings:
        account.holdings[number] = Holding(code, event.outcome, event.at)
        account.newest[code, event.outcome] = number
        books.holders.setdefault(code, set()).add((event.contest, event.participant, number))
        books.progress(event.contest).note(1, event.at)
    holding = account.holdings[number]
    holding.shares, holding.cost = holding.shares + shares, holding.cost + cost
    holding.paid, holding.received = holding.paid - min(cash, 0), holding.received + max(cash, 0)
    if not holding.shares:
        holding.status = "closed"
        books.progress(event.contest).note(-1, event.at)
    price = None if bought else event.price
    change = (code, event.outcome, number, cash, shares, cost, price)
    found.books.enter(position, event, "bought" if bought else "sold", change, quoted.told_at)
