"""Builders of the tables of accounts: positions, cash, trades, decisions, journal and marks."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.core.values import PROBABILITY
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.trading_rules import Trading, bet_cap
from forecast_ledger.projections.core.arrays import Int64Array, int64_array
from forecast_ledger.projections.core.codes import Codes
from forecast_ledger.projections.core.column_values import (
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
from forecast_ledger.projections.trading import arena
from forecast_ledger.projections.trading.account_histories import ALL, Selection, check_tick_rows
from forecast_ledger.projections.trading.portfolios import Snapshots


def positions_values(analysis: Analysis) -> list[Values]:
    """One row for each position."""
    rows = [
        [*key, number, *_position(analysis, analysis.facts.trading(key[0]), holding)]
        for key, account in analysis.facts.books.accounts.items()
        for number, holding in account.holdings.items()
    ]
    return columns_of_rows(rows, "id id count id id text money points money points money money money seconds")


def _position(analysis: Analysis, trading: Trading, holding: Holding) -> list[Any]:
    facts, clock = analysis.facts, analysis.facts.books.clock
    question, closed_at = facts.questions[holding.question], analysis.marks.closed_at(holding.question)
    pending = holding.is_open() and closed_at <= clock and holding.question not in facts.settled
    counts = holding.status != "voided"
    shares, cost = holding.shares * counts, holding.cost * counts
    price = analysis.marks.last(trading, holding.question, holding.outcome, clock)[0] if holding.is_open() else NO_PRICE
    value = half_even(shares * max(price, 0), PROBABILITY)
    return [
        question.question,
        question.outcomes[holding.outcome],
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
    return columns_of_rows(rows, "id id count instant text id count money money text")


def fees_values(analysis: Analysis) -> list[Values]:
    """One row for each movement of an account that has a fee."""
    totals: dict[AccountKey, int] = {}
    rows = []
    for movement in analysis.facts.books.movements:
        if movement.fee:
            total = totals[movement.key] = totals.get(movement.key, 0) + movement.fee
            place = (*movement.key, movement.position, movement.at, movement.kind)
            question = analysis.facts.questions[movement.question].question
            rows.append([*place, question, movement.number, movement.fee, total])
    return columns_of_rows(rows, "id id count instant text id count money money")


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
    return columns_of_rows(rows, "id id id id money money money money money money money money money text")


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


def trades_values(analysis: Analysis) -> list[Values]:
    """One row for each executed leg, and for each trade of elsewhere."""
    rows = [_trade(analysis.facts, trade) for trade in analysis.facts.books.trades]
    kinds = "id id count instant count count count text id id count points count instant text"
    return columns_of_rows(rows, f"{kinds} money money money money money share share share share")


def _trade(facts: Facts, trade: Trade) -> list[Any]:
    event, question = trade.event, facts.questions[trade.question]
    payouts, binary = facts.books.payouts_of(event.contest, trade.question), question.kind == "binary"
    share = (question.question, question.outcomes[event.outcome], event.position)
    return [
        event.contest,
        event.participant,
        trade.position,
        event.at,
        *(_elsewhere(event, share) if isinstance(event, events.TradeRecorded) else _leg(trade, event, share, binary)),
        round_to_points(payouts[0]) if payouts and binary else None,
        round_to_points(payouts[event.outcome]) if payouts else None,
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
    return columns_of_rows(rows, "id id count count count instant text text count count text text text")


def model_calls_values(analysis: Analysis) -> list[Values]:
    """One row for each attempt at a decision, and one for each call that failed."""
    books = analysis.facts.books
    rows = [_model_call(position, event, event.attempt) for position, event, _ in books.attempts]
    rows += [_model_call(position, event, None) for position, event in books.failures]
    return columns_of_rows(rows, "id id count count count instant text text count count money seconds text text")


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


def refused_legs_values(analysis: Analysis) -> list[Values]:
    """One row for each refused leg."""
    rows = [
        [event.contest, event.participant, position, event.period, event.attempt, event.leg, event.code]
        for position, event in analysis.facts.books.refusals
    ]
    return columns_of_rows(rows, "id id count count count count text")


def journal_values(analysis: Analysis) -> list[Values]:
    """One row for each posting; the amounts are Python integers, because they may need more than 64 bits."""
    rows = [
        [posting.position, posting.account, posting.contest, posting.participant, posting.amount]
        for posting in _postings(analysis.facts)
    ]
    return columns_of_rows(rows, "count id id id fine_money")


def trial_balance_values(analysis: Analysis) -> list[Values]:
    """One row for each account of each contest."""
    sums: dict[tuple[str, str], list[int]] = {}
    for posting in _postings(analysis.facts):
        own = sums.setdefault((posting.contest, posting.account), [0, 0, 0])
        own[0] += 1
        own[1 if posting.amount > 0 else 2] += abs(posting.amount)
    rows = [[*key, count, added, taken, added - taken] for key, (count, added, taken) in sums.items()]
    return columns_of_rows(rows, "id id count fine_money fine_money fine_money")


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


def marks_values(analysis: Analysis) -> list[Values]:
    """One row for each outcome that ever had a price: the last price, regardless of a contest's rules."""
    facts, rows = analysis.facts, []
    for code in facts.books.quotes:
        question, payouts = facts.questions[code], facts.books.payouts.get(code)
        for outcome, label in enumerate(question.outcomes):
            series = analysis.marks.series(code, outcome)
            if len(series.price):
                price, _, quoted_at, position = (int(column[-1]) for column in series)
                source = facts.books.quotes.last(code, position + 1).source
                brier = payouts and round_to_points((Fraction(price, PROBABILITY) - payouts[outcome]) ** 2)
                age = facts.books.clock - quoted_at
                rows.append([question.question, label, price, quoted_at, age, source, position, brier])
    return columns_of_rows(rows, "id id points instant seconds text count points")


def quotes_values(analysis: Analysis) -> list[Values]:
    """One row for each outcome of each quote that has a price, a bid or an ask for it."""
    facts, labels = analysis.facts, Codes()
    pages = [_quotes_of(facts, code, labels) for code in facts.books.quotes]
    columns = [np.concatenate(column) for column in zip(*pages, strict=True)] or [int64_array([])] * 9
    question, outcome, *times, source, price, bid, ask = columns
    sources = facts.books.quotes.sources.labels
    return [
        Ids(question, [asked.question for asked in facts.questions]),
        Ids(outcome, labels.labels),
        *(column.tolist() for column in times),  # lists, of which the table's digest was first computed
        [sources[code] for code in source.tolist()],
        *([None if number == NO_PRICE else number for number in side.tolist()] for side in (price, bid, ask)),
    ]


def _quotes_of(facts: Facts, code: int, labels: Codes) -> list[Int64Array]:
    """Return the rows of a question's quotes: its code, that of the outcome's label, and the columns that follow."""
    quotes, names = facts.books.quotes.of(code), facts.questions[code].outcomes
    none = np.full_like(quotes.prices, NO_PRICE)
    sides = np.stack([none if side is None else side for side in (quotes.prices, quotes.bids, quotes.asks)])
    row, outcome = np.nonzero((sides != NO_PRICE).any(axis=0))
    label = int64_array([labels.add(name) for name in names])[outcome]
    own = (quotes.position, quotes.known_from, quotes.quoted_at, quotes.source)
    prices = sides[:, row, outcome].astype(np.int64)
    return [np.full(len(row), code), label, *(column[row] for column in own), *prices]
