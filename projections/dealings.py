"""The legs of decisions, each worked out again from what was asked for, the quote it names and the account then."""

from ledger import events
from ledger.exact import half_even
from ledger.trading import LEG_CODES, WHOLE, cap, stale
from ledger.values import LARGEST_HOLDING, PROBABILITY
from projections.books import Holding, Quoted, Trade, first
from projections.columns import Facts

Leg = events.SharesBought | events.SharesSold | events.LegRefused


def leg(found: Facts, position: int, event: Leg) -> str:
    """A leg, held against what was asked for, the quote it names, and the account as the legs before left it."""
    books = found.books
    decision = books.attempts[-1].event
    assert isinstance(decision, events.DecisionRecorded)  # noqa: S101 - legs are due after nothing else
    if isinstance(event, events.LegRefused):
        books.refusals.append((position, event))
        wrong = "an unknown code" * (event.code not in LEG_CODES)
    else:
        books.executed += 1
        wrong = _carried_out(found, position, event, decision)
    if event.leg == len(decision.bets) + len(decision.sells):
        executed, books.executed = books.executed, 0
        return wrong or "not as many legs carried out as the decision says" * (executed != decision.executed)
    return wrong


def _carried_out(
    found: Facts, position: int, event: events.SharesBought | events.SharesSold, decision: events.DecisionRecorded
) -> str:
    code, trading = found.question_codes.codes[event.question], found.trading(event.contest)
    question, quoted = found.questions[code], found.books.quotes.get(code, [None])[-1]
    closed = found.books.closed.get(code, question.closes_at)
    if code not in found.contests[event.contest].entries or code in found.settled:
        return "a question that is not traded"
    if not 0 <= event.outcome < len(question.outcomes) or not question.opens_at <= event.at < closed:
        return "no such outcome, or a question that is not open"
    if quoted is None or (event.quote, event.price) != (quoted.position, quoted.prices[event.outcome]):
        return "not the price of the question's last quote"
    if quoted.quoted_at > event.at or stale(trading, quoted.quoted_at, event.at):
        return "a quote of a later instant, or too old"
    if isinstance(event, events.SharesBought):
        wrong = _bought(found, event, code, decision.bets[event.leg - 1])
        _trade(found, position, event, (code, quoted, event.shares, event.amount, -event.amount))
    else:
        wrong = _sold(found, event, code, decision.sells[event.leg - 1])
        _trade(found, position, event, (code, quoted, -event.shares, -event.cost, event.proceeds))
    return wrong


def _bought(found: Facts, event: events.SharesBought, code: int, bet: events.Bet) -> str:
    account, trading = found.books.accounts[event.contest, event.participant], found.trading(event.contest)
    question, most = found.questions[code], cap(trading, account.cash)
    side = bet.side.lower() if question.kind == "binary" else bet.side
    newest = account.newest.get((code, event.outcome), 0)
    there = newest and account.holdings[newest].is_open()
    account.bought += event.shares
    return first(
        {
            "not the bet that was asked for": (bet.question, side, bet.amount)
            != (event.question, question.outcomes[event.outcome], event.amount),
            "a bet out of range": not trading.least_bet <= event.amount <= most,
            "not the cash there is": event.cash != account.cash,
            "not the shares that the amount buys": not event.price
            or not event.shares
            or event.shares != event.amount * PROBABILITY // event.price,
            "more shares than an account may buy": account.bought > LARGEST_HOLDING,
            "not the confidence that the amount implies": event.confidence
            != half_even(event.amount * PROBABILITY, most or 1),
            "not the open position, or the next": event.position != (newest if there else len(account.holdings) + 1),
        }
    )


def _sold(found: Facts, event: events.SharesSold, code: int, sale: events.Sale) -> str:
    holding = found.books.accounts[event.contest, event.participant].holdings[event.position]
    shares = holding.shares if sale.percentage == WHOLE else holding.shares * sale.percentage // WHOLE
    return first(
        {
            "not the sale that was asked for": sale.position != str(event.position),
            "not an open position on the outcome": not holding.is_open()
            or (code, event.outcome) != (holding.question, holding.outcome),
            "not the percentage of the shares": event.shares != shares or not shares,
            "not the cost of the shares": event.cost != holding.cost * shares // max(holding.shares, 1),
            "not the proceeds of the shares": event.proceeds != shares * event.price // PROBABILITY,
        }
    )


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
    found.books.enter(position, event, "bought" if bought else "sold", change)
