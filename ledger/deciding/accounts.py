"""Decide the commands of quotes and cash, and the events of positions that follow from a resolution."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import structs

from forecast_ledger.ledger.core import values
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.exact import half_even
from forecast_ledger.ledger.deciding.state import (
    AccountState,
    ContestState,
    Decide,
    Evolve,
    LastQuote,
    PositionState,
    QuestionState,
    State,
    Write,
)
from forecast_ledger.ledger.model import commands, events, given_values
from forecast_ledger.ledger.model.book import EndingEvent, change_of, outcome_of
from forecast_ledger.ledger.model.mismatch import probability_text

PositionKey = tuple[str, str, int]  # contest, participant, number


def quote_prices(command: commands.Quote, state: State) -> events.PricesQuoted:
    """Refuses, first that applies: malformed (neither one question and its prices, nor quotes), out_of_range,
    unknown_question, duplicate_question, wrong_fields_for_kind, unknown_outcome, crossed_quote,
    wrong_order_of_instants, out_of_order. With skip_bad, see `_good_quotes`.
    """
    if command.skip_bad:
        return _good_quotes(command, state)
    at, quoted_at = values.read_instant(command.at), values.read_instant(command.quoted_at)
    given = _sides_of(_prices_of(command))
    questions = [state.question(question) for question, _ in given]
    if len({question for question, _ in given}) < len(given):
        raise Refused("duplicate_question", "quotes", None, "a question is quoted twice")
    quotes = tuple(_quote(name, sides, question) for (name, sides), question in zip(given, questions, strict=True))
    for quote, question in zip(quotes, questions, strict=True):
        if quote.bids and quote.asks:
            _check_not_crossed(quote, question)
    if quoted_at > at:
        raise Refused("wrong_order_of_instants", "quoted_at", command.quoted_at, "quoted_at is after at")
    for quote in quotes:
        last = state.quotes.get(quote.question)
        if last is not None and quoted_at < last.quoted_at:
            detail = f"{quote.question!r} has a quote of {values.format_instant(last.quoted_at)}"
            raise Refused("out_of_order", "quoted_at", command.quoted_at, detail)
    for question in questions:
        if at < question.changed_at:
            detail = f"outcomes changed at {values.format_instant(question.changed_at)}"
            raise Refused("out_of_order", "at", command.at, detail)
    return events.PricesQuoted(at=at, source=command.source, quoted_at=quoted_at, quotes=quotes)


def _good_quotes(command: commands.Quote, state: State) -> events.PricesQuoted:
    """Return the quotes that are accepted, each decided by itself, and those that are refused.

    A question that is quoted twice has no quote that is good. Refuses: malformed (no quotes, or prices beside them);
    what the first quote is refused with, if none is good.
    """
    rows, alone = command.quotes or (), structs.replace(command, skip_bad=False)
    if not rows or any(getattr(command, field) is not None for field in ("question", *_READ_SIDE)):
        raise Refused("malformed", "skip_bad", None, "with skip_bad, give quotes, of which the good ones are recorded")
    times, quotes, skipped, first = Counter(row.question for row in rows), list[events.Quote](), [], None

    def quote_of(row: commands.Prices) -> events.Quote:
        if times[row.question] > 1:
            raise Refused("duplicate_question", "question", row.question, "a question is quoted twice")
        return quote_prices(structs.replace(alone, quotes=(row,)), state).quotes[0]

    for index, row in enumerate(rows):
        try:
            quotes.append(quote_of(row))
        except Refused:
            given = given_values.given_text(row)
            try:
                quotes.append(quote_of(given_values.read_given(given)))  # as it is read from the log
            except Refused as refused:
                first = first or refused
                skipped.append(_refused_quote(index, row.question, refused, given))
    if first is not None and not quotes:
        raise first.about(f"none of {len(rows):,} quotes is good; the first")
    return events.PricesQuoted(
        at=values.read_instant(command.at),
        source=command.source,
        quoted_at=values.read_instant(command.quoted_at),
        refused=tuple(skipped),
        quotes=tuple(quotes),
    )


def _refused_quote(index: int, question: str, refused: Refused, given: str) -> events.RefusedQuote:
    """Return a quote that is refused; its field names the outcome, if it is one that is wrong."""
    is_outcome = refused.code in {"unknown_outcome", "crossed_quote"}
    field = f"{refused.field}.{refused.value}" if is_outcome else str(refused.field)
    return events.RefusedQuote(place=index, question=question, code=refused.code, field=field, given=given)


def _prices_of(command: commands.Quote) -> tuple[commands.Prices, ...]:
    rows = {side: getattr(command, side) for side in _READ_SIDE}
    given = any(row is not None for row in rows.values())
    if command.question is not None and given and command.quotes is None:
        return (commands.Prices(question=command.question, **rows),)
    if command.question is not None or given or not command.quotes:
        raise Refused("malformed", "quotes", None, "give either question and prices, or one or more quotes")
    return command.quotes


def _read_size(size: values.Number, field: str) -> int:
    return values.read_fixed(size, values.MONEY, field, 0, values.LARGEST_HOLDING)


_READ_SIDE: dict[str, Callable[[values.Number, str], int]] = {
    **dict.fromkeys(["prices", "bids", "asks"], values.read_probability),
    **dict.fromkeys(["bid_sizes", "ask_sizes"], _read_size),
}


def _sides_of(rows: tuple[commands.Prices, ...]) -> list[tuple[str, dict[str, dict[str, int]]]]:
    """Return each question, and what `_sides` returns for it; prices are read together if no row has anything else."""
    read = given_values.read_prices(rows)
    if read is None or min(read) < 0 or max(read) > values.PROBABILITY:
        return [(row.question, _sides(row)) for row in rows]
    units = iter(read)
    return [(row.question, {"prices": dict(zip(row.prices or (), units, strict=False))}) for row in rows]


def _sides(row: commands.Prices) -> dict[str, dict[str, int]]:
    """Return the prices, bids and asks that are given, 1e-9 by outcome, and the sizes of bids and asks, 1e-6."""
    try:
        return {
            side: {name: read_side(number, f"{side}.{name}") for name, number in given.items()}
            for side, read_side in _READ_SIDE.items()
            if (given := getattr(row, side))
        }
    except Refused as refused:
        raise refused.about(f"the quote of {row.question!r}") from None


def _quote(name: str, sides: dict[str, dict[str, int]], question: QuestionState) -> events.Quote:
    """Return prices in the order of the outcomes; the price is the mean of bid and ask if only these are given.

    In a binary question, the price of no is 1 - yes, and who buys no at its ask sells yes at its bid.
    """
    prices, binary = sides.get("prices", {}), question.kind == "binary"
    if binary and len(sides) == 1 and prices.keys() == {"yes"}:  # mostly
        return events.Quote(question=name, prices=(prices["yes"], values.PROBABILITY - prices["yes"]))
    if question.range is not None or not sides.keys() & {"prices", "bids", "asks"}:
        detail = "give prices of one or more outcomes, of a question that is not numeric"
        raise Refused("wrong_fields_for_kind", "prices", name, detail)
    for side, given in sides.items():
        for outcome in given:
            if outcome not in question.current or (binary and outcome != "yes"):
                detail = f"not an outcome of {name!r}; give the price of yes alone if it is binary"
                raise Refused("unknown_outcome", side, outcome, detail)
    if len(sides) == 1 and prices:
        return events.Quote(question=name, prices=tuple(map(prices.get, question.outcomes)))
    bids, asks = sides.get("bids", {}), sides.get("asks", {})
    means = {outcome: half_even(bids[outcome] + asks[outcome], 2) for outcome in bids.keys() & asks.keys()}
    rows = [tuple(map(row.get, question.outcomes)) for row in (means | prices, bids, asks)]
    if binary:
        others = [None if row[0] is None else values.PROBABILITY - row[0] for row in rows]
        rows = [(row[0], other) for row, other in zip(rows, (others[0], others[2], others[1]), strict=True)]
    return events.Quote(
        question=name,
        prices=rows[0],
        bids=rows[1] * bool(bids or (binary and asks)),
        asks=rows[2] * bool(asks or (binary and bids)),
        **_sizes(sides, question),
    )


def _sizes(sides: dict[str, dict[str, int]], question: QuestionState) -> dict[str, tuple[int | None, ...]]:
    """Return sizes in the order of the outcomes; in a binary question, the bid of no is the ask of yes, of its size."""
    if question.kind == "binary":
        yes = sides.get("bid_sizes", {}).get("yes"), sides.get("ask_sizes", {}).get("yes")
        has_size = yes != (None, None)
        return {"bid_sizes": yes * has_size, "ask_sizes": yes[::-1] * has_size}
    rows = {side: sides.get(side, {}) for side in ("bid_sizes", "ask_sizes")}
    return {side: tuple(map(row.get, question.outcomes)) * bool(row) for side, row in rows.items()}


def _check_not_crossed(quote: events.Quote, question: QuestionState) -> None:
    for outcome, bid, ask in zip(question.outcomes, quote.bids, quote.asks, strict=True):
        if bid is not None and ask is not None and bid > ask:
            detail = f"{quote.question!r}: the bid is {probability_text(bid)}, the ask {probability_text(ask)}"
            raise Refused("crossed_quote", "bids", outcome, detail)


def deposit_cash(command: commands.DepositCash, state: State) -> events.CashDeposited:
    """Refuses, first that applies: out_of_range, unknown_contest, contest_finalized, not_trading, not_enrolled,
    no_recapitalisation.
    """
    amount = values.read_fixed(command.amount, values.MONEY, "amount", 1, values.LARGEST_CASH)
    account = _open_account(command, state)
    if account.deposited + amount > values.LARGEST_CASH:
        raise Refused(
            "no_recapitalisation", "amount", str(command.amount), "more than may be deposited in an account in all"
        )
    return events.CashDeposited(**_cash_fields(command, amount))


def withdraw_cash(command: commands.WithdrawCash, state: State) -> events.CashWithdrawn:
    """Refuses, first that applies: out_of_range, unknown_contest, contest_finalized, not_trading, not_enrolled,
    no_recapitalisation, not_enough_cash.
    """
    amount = values.read_fixed(command.amount, values.MONEY, "amount", 1, values.LARGEST_HOLDING)
    account = _open_account(command, state)
    if amount > account.cash:
        raise Refused("not_enough_cash", "amount", str(command.amount))
    return events.CashWithdrawn(**_cash_fields(command, amount))


def _cash_fields(command: commands.DepositCash | commands.WithdrawCash, amount: int) -> dict[str, Any]:
    """Return the fields of a deposit or withdrawal."""
    return {
        "at": values.read_instant(command.at),
        "contest": command.contest,
        "participant": command.participant,
        "amount": amount,
        "reason": command.reason,
    }


def trading_account(contest: str, participant: str, state: State) -> tuple[ContestState, AccountState]:
    """Refuses, first that applies: unknown_contest, contest_finalized, not_trading, not_enrolled."""
    contest_state = state.open_contest(contest)
    if contest_state.rules.trading is None:
        raise Refused("not_trading", "contest", contest)
    account = state.accounts.get(state.account_key(contest, participant))
    if account is None:
        raise Refused("not_enrolled", "participant", participant)
    return contest_state, account


def _open_account(command: commands.DepositCash | commands.WithdrawCash, state: State) -> AccountState:
    contest, account = trading_account(command.contest, command.participant, state)
    if contest.rules.trading is None or not contest.rules.trading.recapitalisation:
        raise Refused("no_recapitalisation", "contest", command.contest)
    return account


def settlements(event: events.QuestionResolved, state: State) -> Iterator[events.PositionSettled]:
    """Yield the settlement, rounded down, of every open position on the question."""
    for key, position in _positions(event.question, state):
        if position.is_open():
            yield _settlement(event, key, position)


def _settlement(
    event: events.QuestionResolved, key: tuple[str, str, int], position: PositionState
) -> events.PositionSettled:
    outcome, unit = outcome_of(position.share), event.payout_unit or values.PROBABILITY
    payout = event.payouts[outcome] if event.payouts else 0
    if outcome == event.outcome:
        payout = values.PROBABILITY
    if position.share < 0:
        payout = unit - payout
    proceeds = position.shares * payout // unit
    return events.PositionSettled(
        **_position_fields(event, key, position), payout_unit=event.payout_unit, payout=payout, proceeds=proceeds
    )


def cancellations(event: events.QuestionAnnulled, state: State) -> Iterator[events.AnyEvent]:
    """Yield the reversals of an earlier resolution, then the refund or voiding of every position on the question."""
    yield from reversals(event, state)
    for key, position in _positions(event.question, state):
        stake = position.paid - position.received
        if event.policy == "void_trades":
            amount, fee = stake + position.fees, position.fees
            yield events.TradesVoided(**_position_fields(event, key, position), amount=amount, fee=fee)
        elif event.policy == "refund_stake":
            yield events.TradesVoided(**_position_fields(event, key, position), amount=max(stake, 0))
        elif position.shares:
            yield events.PositionRefunded(**_position_fields(event, key, position))


def revocations(event: events.ResolutionRevoked, state: State) -> Iterator[events.AnyEvent]:
    """Yield the reversals of a resolution or annulment; after an annulment, also the resolution from before it, and its
    settlements.
    """
    yield from reversals(event, state)
    question = state.questions[event.question]
    if question.annulled and question.resolution is not None:
        resolved = structs.replace(question.resolution, at=event.at)
        yield resolved
        for key, position in _positions(event.question, state):
            if position.shares:  # open again, after the reversals
                yield _settlement(resolved, key, position)


def reversals(
    event: events.QuestionAnnulled | events.ResolutionRevoked, state: State
) -> Iterator[events.SettlementReversed]:
    """Yield the reversal of every settlement, refund and voiding on the question."""
    for key, position in _positions(event.question, state):
        if position.ended:
            fields = _position_fields(event, key, position)
            del fields["shares"], fields["cost"]
            yield events.SettlementReversed(**fields, reverses=position.ended, amount=position.brought)


def _positions(question: str, state: State) -> list[tuple[PositionKey, PositionState]]:
    """Return every position opened on a question, sorted by key, without those of finalized contests.

    The participant of a key is the id that its holder has now.
    """
    return sorted(
        ((contest, state.renamed.get(who) or who, number), state.positions[contest, who, number])
        for contest, who, number in state.holders.get(question, ())
        if not state.contests[contest].finalized
    )


def _position_fields(event: events.Event, key: PositionKey, position: PositionState) -> dict[str, Any]:
    contest, participant, number = key
    return {
        "at": event.at,
        "contest": contest,
        "participant": participant,
        "question": position.question,
        "outcome": outcome_of(position.share),
        "against": position.share < 0,
        "position": number,
        "shares": position.shares,
        "cost": position.cost,
    }


def prices_quoted(event: events.PricesQuoted, state: State, position: int) -> tuple[Write, ...]:
    """Replace the last quotes of the questions."""
    for quote in event.quotes:
        state.questions[quote.question]
    return tuple(
        (
            state.quotes,
            quote.question,
            LastQuote(position, event.quoted_at, *structs.astuple(quote)[1:]),
        )
        for quote in event.quotes
    )


def cash_granted(event: events.CashGranted, state: State, _: int) -> tuple[Write, ...]:
    """Open an account, and count the participant."""
    contest, completes = state.contests[event.contest], state.completes(event.contest, event.participant)
    return (
        (state.accounts, state.account_key(event.contest, event.participant), AccountState(event.amount)),
        (state.contests, event.contest, structs.replace(contest, enrolled=contest.enrolled + completes)),
    )


def cash_moved(event: events.CashDeposited | events.CashWithdrawn, state: State, _: int) -> tuple[Write, ...]:
    """Add cash to an account, or take it away."""
    key = state.account_key(event.contest, event.participant)
    account, cash = state.accounts[key], change_of(event).cash
    account = structs.replace(account, cash=account.cash + cash, deposited=account.deposited + max(cash, 0))
    return ((state.accounts, key, account),)


def position_ended(event: EndingEvent, state: State, position: int) -> tuple[Write, ...]:
    """End a position: settled, refunded or voided."""
    brought = change_of(event).cash
    held = state.positions[*state.account_key(event.contest, event.participant), event.position]
    return _update_position(event, state, structs.replace(held, ended=position, brought=brought), brought)


def settlement_reversed(event: events.SettlementReversed, state: State, _: int) -> tuple[Write, ...]:
    """Restore a position from before its end."""
    held = state.positions[*state.account_key(event.contest, event.participant), event.position]
    return _update_position(event, state, structs.replace(held, ended=0, brought=0), change_of(event).cash)


def _update_position(
    event: events.PositionEvent, state: State, after: PositionState, brought: int
) -> tuple[Write, ...]:
    key, contest = state.account_key(event.contest, event.participant), state.contests[event.contest]
    before, account = state.positions[*key, event.position], state.accounts[key]
    opened = (after.is_open() - before.is_open()) * state.completes(event.contest, event.participant)
    return (
        (state.positions, (*key, event.position), after),
        (state.accounts, key, structs.replace(account, cash=account.cash + brought)),
        (state.contests, event.contest, structs.replace(contest, open=contest.open + opened)),
    )


DECIDE: dict[type, Decide] = {
    commands.Quote: quote_prices,
    commands.DepositCash: deposit_cash,
    commands.WithdrawCash: withdraw_cash,
}
EVOLVE: dict[type, Evolve] = {
    events.PricesQuoted: prices_quoted,
    events.CashGranted: cash_granted,
    events.CashDeposited: cash_moved,
    events.CashWithdrawn: cash_moved,
    events.PositionSettled: position_ended,
    events.PositionRefunded: position_ended,
    events.TradesVoided: position_ended,
    events.SettlementReversed: settlement_reversed,
}
