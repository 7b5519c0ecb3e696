"""The tables of accounts: balances, positions, cash, fees, portfolios over time, trades, and the journal."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.book import share_name, share_of, share_payout
from forecast_ledger.ledger.model.trading_rules import Trading, bet_cap
from forecast_ledger.projections.core.arrays import Codes, int64_array
from forecast_ledger.projections.core.columns import (
    Ids,
    Values,
    columns_of_rows,
    none_where_negative,
    round_to_points,
)
from forecast_ledger.projections.facts.accounts import FINE_PER_MICRO, AccountKey, Holding, Posting, Trade, postings
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.quotes import NO_PRICE
from forecast_ledger.projections.tables.analysis import Analysis
from forecast_ledger.projections.tables.schemas import Projection, schema
from forecast_ledger.projections.trading import arena
from forecast_ledger.projections.trading.account_histories import ALL, Selection, check_tick_rows
from forecast_ledger.projections.trading.portfolios import Snapshots

_ACCOUNTS = schema("""
    the balance of every account, at the latest instant in the log

    contest*
    participant*  id     the trader
    family        id     the competitor that the participant stands for across contests
    release       id     the exact version of the competitor
    cash          money  cash; negative (a debt) if a corrected resolution took back a payout, or with overdrafts
    cap           money  the largest bet allowed now, rounded down
    invested      money  cost of the open positions
    value         money  value of the open positions at their marks
    total         money  cash + value
    net_deposits  money  cash granted + deposited - withdrawn
    profit        money  total - net_deposits
    realised      money  realised profit or loss, after fees
    unrealised    money  value - cost of open positions
    state         text   active, debt, or ruined (no bet is possible and no position is open); with overdrafts, active
""")


def accounts_values(analysis: Analysis) -> list[Values]:
    """One row for each account, at the latest instant in the log."""
    rows = []
    for key, account in analysis.facts.books.accounts.items():
        trading, enrolled = analysis.facts.trading(key[0]), account.enrolled
        exact = arena.open_value(analysis.facts, analysis.marks, key)
        total, cost = account.cash * FINE_PER_MICRO + exact, account.cost()
        rows.append(
            [
                *key,
                enrolled.family,
                enrolled.release,
                account.cash,
                bet_cap(trading, account.cash),
                cost,
                half_even(exact, FINE_PER_MICRO),
                half_even(total, FINE_PER_MICRO),
                account.deposits,
                half_even(total - account.deposits * FINE_PER_MICRO, FINE_PER_MICRO),
                account.realised,
                half_even(exact - cost * FINE_PER_MICRO, FINE_PER_MICRO),
                arena.account_state(trading, account),
            ]
        )
    return columns_of_rows(rows, _ACCOUNTS.columns)


_POSITIONS = schema("""
    every position, open or not

    contest*
    participant*   id       the trader
    position*      count    number of the position: 1, 2, 3 … for each participant of a contest
    question
    outcome        id       the outcome
    status         text     open, pending (its question is closed, not resolved), closed, settled, refunded, voided
    shares         money    shares held, below 0 if owed; after a settlement or refund, the shares held at that time
    average_entry  points   cost / shares
    cost           money    cost of these shares
    mark           points   last price that counts; empty unless the position is open
    value          money    shares x mark
    realised       money    realised profit or loss, after fees
    unrealised     money    value - cost of open positions
    pending_for    seconds  time since the question closed, while pending
""")


def positions_values(analysis: Analysis) -> list[Values]:
    """One row for each position."""
    rows = [
        [*key, number, *_position(analysis, analysis.facts.trading(key[0]), holding)]
        for key, account in analysis.facts.books.accounts.items()
        for number, holding in account.holdings.items()
    ]
    return columns_of_rows(rows, _POSITIONS.columns)


def _position(analysis: Analysis, trading: Trading, holding: Holding) -> list[Any]:
    facts, clock = analysis.facts, analysis.facts.books.clock
    question, closed_at = facts.questions[holding.question], analysis.marks.closed_at(holding.question)
    pending = holding.is_open() and closed_at <= clock and holding.question not in facts.settled
    counts = holding.status != "voided"
    shares, cost = holding.shares * counts, holding.cost * counts
    price = analysis.marks.last(trading, holding.question, holding.share, clock)[0] if holding.is_open() else NO_PRICE
    value = half_even(shares * max(price, 0), PROBABILITY)
    return [
        question.question,
        share_name(holding.share, question.outcomes),
        "pending" if pending else holding.status,
        shares,
        round_to_points(Fraction(cost, shares)) if shares else None,
        cost,
        None if price == NO_PRICE else price,
        value,
        holding.realised,
        half_even(shares * max(price, 0) - cost * PROBABILITY, PROBABILITY) if holding.is_open() else 0,
        clock - closed_at if pending else None,
    ]


_CASH = schema("""
    every cash movement of every account

    contest*
    participant*   id       the trader
    log_position*  count    log position of the event
    at             instant  when it takes effect: not before the previous movement or the price used
    movement       text     granted, bought, sold, settled, refunded, voided, reversed, deposited, withdrawn
    question
    position       count    number of the position: 1, 2, 3 … for each participant of a contest
    amount         money    amount added to the cash
    balance        money    cash after the movement
    debt           text     debt if the balance is negative
""")


def cash_values(analysis: Analysis) -> list[Values]:
    """One row for each movement of an account."""
    balances: dict[AccountKey, int] = {}
    rows = []
    for movement in analysis.facts.books.movements:
        balance = balances[movement.key] = balances.get(movement.key, 0) + movement.cash
        question = analysis.facts.questions[movement.question].question if movement.number else ""
        owed = "debt" if balance < 0 else ""
        position = (question, movement.number or None)
        rows.append(
            [*movement.key, movement.position, movement.at, movement.kind, *position, movement.cash, balance, owed]
        )
    return columns_of_rows(rows, _CASH.columns)


_FEES = schema("""
    every fee of a trade, paid or given back

    contest*
    participant*   id       the trader
    log_position*  count    log position of the event
    at             instant  when it takes effect, as in the table `cash`
    movement       text     bought or sold; voided if the trades of the position are undone; or reversed
    question
    position       count    number of the position: 1, 2, 3 … for each participant of a contest
    fee            money    fee paid, of the movement's amount; negative if it is given back
    fees           money    fees paid in the account so far, less those given back
""")


def fees_values(analysis: Analysis) -> list[Values]:
    """One row for each movement of an account that has a fee."""
    totals: dict[AccountKey, int] = {}
    rows = []
    for movement in analysis.facts.books.movements:
        if movement.fee:
            total = totals[movement.key] = totals.get(movement.key, 0) + movement.fee
            key = (*movement.key, movement.position, movement.at, movement.kind)
            question = analysis.facts.questions[movement.question].question
            rows.append([*key, question, movement.number, movement.fee, total])
    return columns_of_rows(rows, _FEES.columns)


_PORTFOLIO_SNAPSHOTS = schema("""
    every portfolio at each tick of its contest and after each of its movements

    contest*
    participant*     id       the trader
    at*              instant  instant of the row
    log_position*    count    log position of the movement; empty at a tick
    cash             money    cash at that instant
    positions_value  money    shares x marks of the open positions
    total            money    cash + positions_value
    profit           money    total - net deposits
    profit_percent   points   100 x profit / net deposits
    brier            points   mean Brier score of the purchases resolved by then
    resolved_bets    count    number of these purchases
    realised         money    realised profit or loss, after fees
    unrealised       money    value - cost of open positions
    stale_marks      count    open positions with a mark that is missing, old, or of a closed question
    stale_age        seconds  age of the oldest mark of an open position
""")


def snapshots_values(analysis: Analysis, selection: Selection = ALL) -> list[Values]:
    """One row for each selected tick and movement of every account. Raises Refused(out_of_range): too many ticks."""
    contests = selection.contests(analysis.traded)
    check_tick_rows(analysis.facts, contests, selection)
    by_contest = [analysis.snapshots(name, selection) for name in contests]
    counts = [len(portfolios.at) for portfolios in by_contest]
    position = np.concatenate([portfolios.log_position for portfolios in by_contest] or [int64_array([])])
    columns = (
        "cash positions_value total profit profit_percent brier resolved_bets realised unrealised stale_marks stale_age"
    )
    return [
        Ids(np.repeat(np.arange(len(by_contest)), counts), contests),
        _participants(by_contest),
        np.concatenate([portfolios.at for portfolios in by_contest] or [int64_array([])]),
        none_where_negative(position),
        *(_joined([getattr(portfolios, name) for portfolios in by_contest], name) for name in columns.split()),
    ]


def _participants(by_contest: list[Snapshots]) -> Ids:
    codes = Codes()
    columns = [
        int64_array([codes.add(participant) for participant in portfolios.participants])[portfolios.participant]
        for portfolios in by_contest
    ]
    return Ids(np.concatenate(columns or [int64_array([])]), codes.labels)


def _joined(columns: list[Any], name: str) -> Values:
    """Join one column of several contests; a missing score or mark is empty."""
    if any(isinstance(column, list) for column in columns):
        return [value for column in columns for value in (column if isinstance(column, list) else column.tolist())]
    numbers = np.concatenate(columns or [int64_array([])])
    return none_where_negative(numbers) if name in {"brier", "stale_age"} else numbers


_TRADES = schema("""
    every executed leg of a decision, and every trade of elsewhere, which has no decision, quote or cap

    contest*
    participant*   id       the trader
    log_position*  count    log position of the event
    at             instant  when the leg was executed
    period         count    number of the decision period
    attempt        count    number of the attempt at the decision
    leg            count    number of the leg within the decision
    type           text     buy or sell
    question
    outcome        id       the outcome
    position       count    number of the position: 1, 2, 3 … for each participant of a contest
    price          points   price of a share
    quote          count    log position of the quote
    quoted_at      instant  when the price was quoted
    source         text     source of the quote
    amount         money    amount paid or received, without the fee
    shares         money    shares bought or sold, rounded down
    cost           money    cost of those shares
    realised       money    amount - cost of a sale, before its fee; of shares bought back, cost - amount
    cap            money    the largest bet allowed at that time
    confidence     share    amount of the bet, also if it was filled in part, / cap
    f_yes          share    implied probability of yes; binary questions only
    o_yes          share    payout of a share of yes
    side_won       share    payout of a share of the outcome traded
""")


def trades_values(analysis: Analysis) -> list[Values]:
    """One row for each executed leg, and for each trade of elsewhere."""
    rows = [_trade(analysis.facts, trade) for trade in analysis.facts.books.trades]
    return columns_of_rows(rows, _TRADES.columns)


def _trade(facts: Facts, trade: Trade) -> list[Any]:
    event, question = trade.event, facts.questions[trade.question]
    payouts, binary = facts.payouts_of(event.contest, trade.question), question.kind == "binary"
    kind = share_of(event)
    share = (question.question, share_name(kind, question.outcomes), event.position)
    return [
        event.contest,
        event.participant,
        trade.position,
        event.at,
        *(_elsewhere(event, share) if isinstance(event, events.TradeRecorded) else _leg(trade, event, share, binary)),
        round_to_points(payouts[0]) if payouts and binary else None,
        round_to_points(share_payout(kind, payouts)) if payouts else None,
    ]


def _leg(
    trade: Trade, event: events.SharesBought | events.SharesSold, share: tuple[str, str, int], binary: bool
) -> list[Any]:
    """Return the cells of a leg from its period on. share: question, outcome and position."""
    number, quote = (event.period, event.attempt, event.leg), trade.quote
    quoted = (event.price, event.quote, quote and quote.quoted_at, quote and quote.source)
    if isinstance(event, events.SharesSold):
        sold = (event.proceeds, event.shares, event.cost, event.proceeds - event.cost, None, None, None)
        return [*number, "sell", *share, *quoted, *sold]
    confidence = arena.confidence_of(trade)
    f_yes = round_to_points(arena.yes_probability(confidence, event.outcome)) if binary else None
    cells = (event.amount, event.shares, event.amount, None, trade.cap, round_to_points(confidence), f_yes)
    return [*number, "buy", *share, *quoted, *cells]


def _elsewhere(event: events.TradeRecorded, share: tuple[str, str, int]) -> list[Any]:
    """Return the cells of a trade of elsewhere, at the price that its amount and its shares give."""
    sign, shares = 1 if event.shares > 0 else -1, abs(event.shares)
    price = round_to_points(Fraction(event.amount, shares))
    cells = (event.amount, shares, sign * event.cost, event.cost - sign * event.amount, None, None, None)
    return [None, None, None, "buy" if sign > 0 else "sell", *share, price, None, None, "", *cells]


_JOURNAL = schema("""
    double-entry journal of all movements of money; the amounts of each event sum to 0

    log_position*  count       log position of the event
    account*       id          cash, positions (at cost), prizes, house, external, prize_pool, fees or rounding
    contest*
    participant*   id          owner of the account; empty for accounts without one
    amount         fine_money  amount added to the account
""")


def journal_values(analysis: Analysis) -> list[Values]:
    """One row for each posting; the amounts are Python integers, because they may need more than 64 bits."""
    return columns_of_rows([*_postings(analysis.facts)], _JOURNAL.columns)


_TRIAL_BALANCE = schema("""
    the balance of each account of the journal by contest; the balances of a contest add up to 0

    contest*
    account*  id          an account of the journal, over all its owners
    postings  count       number of its rows in the journal
    added     fine_money  sum of the amounts above 0
    taken     fine_money  sum of the amounts below 0, without their sign
    balance   fine_money  added less taken
""")


def trial_balance_values(analysis: Analysis) -> list[Values]:
    """One row for each account of each contest."""
    sums: dict[tuple[str, str], list[int]] = {}
    for posting in _postings(analysis.facts):
        totals = sums.setdefault((posting.contest, posting.account), [0, 0, 0])
        totals[0] += 1
        totals[1 if posting.amount > 0 else 2] += abs(posting.amount)
    rows = [[*key, count, added, taken, added - taken] for key, (count, added, taken) in sums.items()]
    return columns_of_rows(rows, _TRIAL_BALANCE.columns)


def _postings(facts: Facts) -> Iterator[Posting]:
    """Yield the postings of all movements of money: accounts, pools and prizes."""
    for movement in facts.books.movements:
        yield from postings(movement)
    for name, contest in facts.contests.items():
        if pool := contest.opened.pool * FINE_PER_MICRO:
            yield Posting(contest.position, "external", name, "", -pool)
            yield Posting(contest.position, "prize_pool", name, "", pool)
        for winner, payment in contest.paid.items():
            yield Posting(payment.position, "prize_pool", name, "", -payment.amount * FINE_PER_MICRO)
            yield Posting(payment.position, "prizes", name, winner, payment.amount * FINE_PER_MICRO)


BALANCE: dict[str, Projection] = {
    "trial_balance": Projection(
        1,
        _TRIAL_BALANCE,
        trial_balance_values,
        reads=("accounts", "contests"),
        division="contests",
        on_request=True,
        exported=True,
    ),
}


ACCOUNTS: dict[str, Projection] = {
    "accounts": Projection(
        1, _ACCOUNTS, accounts_values, reads=("own_account", "quotes", "questions", "contests"), division="holdings"
    ),
    "positions": Projection(
        2,
        _POSITIONS,
        positions_values,
        reads=("own_account", "quotes", "questions", "resolutions", "clock"),
        division="holdings",
    ),
    "cash": Projection(2, _CASH, cash_values, reads=("own_account",), division="account_entries", final=True),
    "fees": Projection(1, _FEES, fees_values, reads=("own_account",), division="account_entries", final=True),
    "portfolio_snapshots": Projection(
        2,
        _PORTFOLIO_SNAPSHOTS,
        snapshots_values,
        reads=("accounts", "quotes", "questions", "resolutions", "contests", "clock"),
        division="portfolios",
        as_built=True,
        on_request=True,
    ),
    "trades": Projection(1, _TRADES, trades_values, reads=("own_account", "resolutions"), division="account_entries"),
}


JOURNAL: dict[str, Projection] = {
    "journal": Projection(
        1, _JOURNAL, journal_values, reads=("accounts", "contests"), division="movements", final=True
    ),
}


# --- The tables of decisions: every attempt, every call of a model, and every leg that was refused.


_DECISIONS = schema("""
    every attempt at a decision

    contest*
    participant*  id       the trader
    period*       count    number of the decision period
    attempt*      count    number of the attempt at the decision
    log_position  count    log position of the event
    at            instant  when the attempt was made
    outcome       text     BET, SELL, HOLD, malformed, or defaulted (malformed, and HOLD by default)
    fault         text     why the reply is malformed
    legs          count    number of legs requested
    executed      count    number of legs executed
    prompt        text     digest of the prompt
    response      text     digest of the response
    reasoning     text     the stated reasoning
""")


def decisions_values(analysis: Analysis) -> list[Values]:
    """One row for each attempt at a decision."""
    rows = []
    for position, event, defaulted in analysis.facts.books.attempts:
        row: list[Any] = [event.contest, event.participant, event.period, event.attempt, position, event.at]
        if isinstance(event, events.DecisionMalformed):
            row += ["defaulted" if defaulted else "malformed", event.fault, 0, 0, event.prompt, event.response, ""]
        else:
            legs = len(event.bets) + len(event.sells)
            row += [event.action, "", legs, event.executed, event.prompt, event.response, event.reasoning]
        rows.append(row)
    return columns_of_rows(rows, _DECISIONS.columns)


_MODEL_CALLS = schema("""
    every call of a model: each attempt at a decision, and each call that failed

    contest*
    participant*   id       the trader
    log_position*  count    log position of the event
    period         count    number of the decision period
    attempt        count    number of the attempt at the decision; empty if the call failed
    at             instant  when the attempt was made, or the call failed
    outcome        text     BET, SELL, HOLD, malformed, or failed
    error          text     why the call failed
    input_tokens   count    tokens of the input; like the columns after it, empty if not recorded
    output_tokens  count    tokens of the output
    cost           money    cost of the call
    latency        seconds  time that the call took
    settings       text     settings of the model
    shown          text     digest of the text that lists the ids of the markets shown
""")


def model_calls_values(analysis: Analysis) -> list[Values]:
    """One row for each attempt at a decision, and one for each call that failed."""
    books = analysis.facts.books
    rows = [_model_call(position, event, event.attempt) for position, event, _ in books.attempts]
    rows += [_model_call(position, event, None) for position, event in books.failures]
    return columns_of_rows(rows, _MODEL_CALLS.columns)


def _model_call(position: int, event: Any, attempt: int | None) -> list[Any]:
    call: events.ModelCall = event.call or events.ModelCall()
    return [
        event.contest,
        event.participant,
        position,
        event.period,
        attempt,
        event.at,
        getattr(event, "action", "failed" if attempt is None else "malformed"),
        getattr(event, "error", ""),
        call.input_tokens,
        call.output_tokens,
        call.cost,
        None if call.latency_ms is None else call.latency_ms * 1_000,
        ", ".join(f"{name}={value}" for name, value in call.settings.items()),
        call.shown,
    ]


_REFUSED_LEGS = schema("""
    every leg that was refused

    contest*
    participant*   id     the trader
    log_position*  count  log position of the event
    period         count  number of the decision period
    attempt        count  number of the attempt at the decision
    leg            count  number of the leg within the decision
    code           text   refusal code
""")


def refused_legs_values(analysis: Analysis) -> list[Values]:
    """One row for each refused leg."""
    rows = [
        [event.contest, event.participant, position, event.period, event.attempt, event.leg, event.code]
        for position, event in analysis.facts.books.refusals
    ]
    return columns_of_rows(rows, _REFUSED_LEGS.columns)


DECISIONS: dict[str, Projection] = {
    "decisions": Projection(1, _DECISIONS, decisions_values, reads=("own_account",), division="account_entries"),
    "model_calls": Projection(
        1, _MODEL_CALLS, model_calls_values, reads=("own_account",), division="account_entries", final=True
    ),
    "refused_legs": Projection(
        1, _REFUSED_LEGS, refused_legs_values, reads=("own_account",), division="account_entries", final=True
    ),
}
