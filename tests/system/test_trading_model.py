"""The engine and a plain model of the trading book agree, command by command; the model keeps the books' promises."""

import json
from collections.abc import Iterator
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from functools import cache
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.events import TAGS, AnyEvent
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support import trading_readings as readings
from tests.support.effort import LONG
from tests.support.trading_model import Book
from tests.support.trading_parts import (
    DAY,
    MONEY,
    MOVEMENTS,
    ONE,
    Account,
    Again,
    Event,
    Outcome,
    Refusal,
    micros,
    written,
)
from tests.support.trading_seasons import SUNDAY, Season, Told

# Together these meet every code and event of each command that 24 seasons meet; a long run has all of those. From 24 on
# seasons have shares against outcomes and refunds of stakes.
SEEDS = (1, 2, 6, 7, 8, 18, 20, 36, 47, 51) if LONG == 1 else range(52)
NEW = {  # of these events the model knows every field
    "prices_quoted.v1",
    "cash_granted.v1",
    "cash_deposited.v1",
    "cash_withdrawn.v1",
    "text_kept.v1",
    "decision_recorded.v1",
    "decision_malformed.v1",
    "decision_defaulted.v1",
    "shares_bought.v1",
    "shares_sold.v1",
    "leg_refused.v1",
    "position_settled.v1",
    "position_refunded.v1",
    "trades_voided.v1",
    "settlement_reversed.v1",
}


@cache
def random_season(seed: int) -> Season:
    """A history; tests do not change it."""
    return Season(seed, fees=seed % 2 == 1, sides=seed % 4 > 1, later=seed >= 24)


# --- engine and model


def meaning(value: Any) -> Any:
    """The content of a stored reply, however its numbers are written."""
    if isinstance(value, dict):
        return {name: meaning(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [meaning(item) for item in value]
    number = written(value)
    return value if number is None else str(number)


def kept(text: str) -> Any:
    """A text, or what it says where it is one JSON object."""
    try:
        reply = json.loads(text, parse_float=Decimal)
    except ValueError:
        return text
    return meaning(reply) if isinstance(reply, dict) else text


def alike(event: Event, texts: dict[str, Any]) -> Event:
    """An event with the texts it names instead of their digests; a text must have the digest it is kept under."""
    said = dict(event)
    if said["type"] == "text_kept.v1":
        assert said.pop("digest") == sha256(said["text"].encode()).hexdigest()
        texts[sha256(said["text"].encode()).hexdigest()] = said["text"] = kept(said["text"])
    for name in ("prompt", "response"):
        if said.get(name):
            said[name] = texts[said[name]]
    plain: Event = msgspec.json.decode(msgspec.json.encode(said))  # lists and tuples alike
    return plain


def recorded(event: AnyEvent, book: Book) -> Event:
    """An event of the engine as the model words it: outcomes by name."""
    said = {"type": TAGS[type(event)]} | {name: getattr(event, name) for name in event.__struct_fields__}
    if not said.get("refused", True):
        del said["refused"]  # it is left out of the row
    if isinstance(said.get("outcome"), int):
        outcomes = book.questions[said["question"]].outcomes
        said["outcome"] = (
            None if said["outcome"] < 0 else "not " * said.pop("against", False) + outcomes[said["outcome"]]
        )
    return said


def answer(ledger: Ledger, command: Told) -> Receipt | Refused:
    """The engine's result for a line of JSON."""
    try:
        return ledger.handle(commands.read(json.dumps(command)))
    except Refused as refused:
        return refused


def agree(
    outcome: Outcome, receipt: Receipt | Refused, ledger: Ledger, book: Book, texts: list[dict[str, Any]]
) -> None:
    """The same code, or the same log positions with the same events."""
    if isinstance(outcome, Refusal):
        assert isinstance(receipt, Refused), receipt
        assert receipt.code == outcome.code, receipt
        return
    assert isinstance(receipt, Receipt), receipt
    if isinstance(outcome, Again):
        assert (receipt.first, receipt.last, receipt.duplicate) == (*outcome, True)
        return
    assert not receipt.duplicate
    events = [each.event for page in ledger.read(receipt.first - 1) for each in page]
    said = [alike(recorded(each, book), texts[0]) for each in events]
    expected = [alike(each, texts[1]) for each in outcome]
    whole = [
        each if each["type"] in NEW else {name: each.get(name) for name in due} for each, due in _pairs(said, expected)
    ]
    assert whole == expected


def _pairs(said: list[Event], expected: list[Event]) -> Iterator[tuple[Event, Event]]:
    assert [each["type"] for each in said] == [each["type"] for each in expected]
    yield from zip(said, expected, strict=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_engine_says_what_the_model_says(seed: int) -> None:
    """Every command leads to the same events with the same fields at the same log positions, or to the same refusal."""
    played = random_season(seed)
    texts: list[dict[str, Any]] = [{}, {}]
    with Ledger.open(":memory:", clock=lambda: SUNDAY) as ledger:
        for number, (command, outcome) in enumerate(played.attempts):
            try:
                agree(outcome, answer(ledger, command), ledger, played.book, texts)
            except AssertionError as error:
                error.add_note(f"command {number}: {json.dumps(command, ensure_ascii=False)}\nmodel: {outcome}")
                raise
        assert ledger.head().position == len(played.book.log)


def test_the_seasons_meet_every_rule() -> None:
    """The random seasons meet every code of the documented lists."""
    met: set[str] = set()
    for seed in SEEDS:
        for _, outcome in random_season(seed).attempts:
            if isinstance(outcome, Refusal):
                met.add(outcome.code)
            elif not isinstance(outcome, Again):
                met |= {str(event.get("code", event.get("fault", event["type"]))) for event in outcome}
    decisions = """unknown_contest not_trading contest_finalized not_enrolled contest_complete wrong_period
        cohort_not_deciding decision_taken wrong_attempt out_of_order"""
    faults = """unreadable unknown_action no_reasoning no_legs mixed_legs blank_leg bad_amount below_least_bet above_cap
        above_sum_cap bad_percentage"""
    legs = """unknown_market unknown_side market_closed no_quote quote_too_new stale_quote no_bid no_ask no_price
        above_cap no_shares sibling_refused no_position"""
    others = "duplicate_cohort enrolled_already contest_not_complete out_of_range crossed_quote"
    assert {*decisions.split(), *faults.split(), *legs.split(), *others.split()} | NEW - {
        "leg_refused.v1",
        "decision_malformed.v1",
    } <= met


# --- promises of the books


@pytest.mark.parametrize("seed", SEEDS)
def test_the_books_balance_after_every_event(seed: int) -> None:
    """Every event's postings sum to zero, and what is rounded away is below one unit of money."""
    book = random_season(seed).book
    for number, event in enumerate(book.log, 1):
        moved = readings.postings(book, number)
        assert sum(amount for *_, amount in moved) == 0, event
        assert all(abs(amount) < ONE for name, *_, amount in moved if name == "rounding")
        assert bool(moved) == (event["type"] in MOVEMENTS or event["type"] == "contest_opened.v1")


@pytest.mark.parametrize("seed", SEEDS)
def test_the_accounts_of_the_books_are_those_of_the_participants(seed: int) -> None:
    """Cash is what the journal has on cash, the cost of open positions what it has on positions."""
    book = random_season(seed).book
    balances = readings.balances(book)
    for contest, person, account in accounts(book):
        assert balances["cash", contest, person] == account.cash * ONE
        assert balances.get(("positions", contest, person), 0) == sum(each.cost for each in account.open()) * ONE
    assert sum(balances.values()) == 0


def accounts(book: Book) -> Iterator[tuple[str, str, Account]]:
    """Every account as it stands."""
    for name, contest in sorted(book.contests.items()):
        if contest.trading is not None:
            yield from ((name, person, book.account(name, person)) for person in sorted(contest.participants))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_one_has_less_what_one_put_in_is_what_one_made(seed: int) -> None:
    """Cash + value - net deposits = realised + unrealised, after every movement and at every other moment."""
    book = random_season(seed).book
    for contest, person, account in accounts(book):
        moves = list(book.movements(contest, person))
        rows = [readings.snapshot(book, contest, person, counts_from, number) for number, counts_from, _ in moves]
        last = readings.clock(book)
        first = min(moves[0][1], last)
        rows += [readings.snapshot(book, contest, person, first + (last - first) * part // 7) for part in range(8)]
        for row in rows:
            assert row.profit == row.realised + row.unrealised
            assert row.total == row.cash + row.value
        assert rows[len(moves) - 1].cash == account.cash


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_falls_below_zero_but_by_a_correction(seed: int) -> None:
    """Shares and costs are never negative; cash is negative only after a reversal or a voiding."""
    book = random_season(seed).book
    for contest, person, account in accounts(book):
        assert all(each.shares >= 0 and each.cost >= 0 for each in account.positions)
        assert all((each.shares > 0) for each in account.open())
        kinds = [event["type"] for *_, event in book.movements(contest, person)]
        if not {"settlement_reversed.v1", "trades_voided.v1"} & set(kinds):
            assert account.cash >= 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_revocation_leaves_everything_as_it_was(seed: int) -> None:
    """After an answer and its revocation, every account of a running contest has its earlier cash and positions."""
    book = deepcopy(random_season(seed).book)
    for question, asked in sorted(book.questions.items()):
        if not asked.payouts and not asked.annulled:
            before = list(accounts(book))
            at = asked.closes + DAY
            book.resolve(at, question, payouts={each: int(each == asked.outcomes[1]) for each in asked.outcomes})
            book.revoke(at, question, "misread")
            book.resolve(at, question, outcome=asked.outcomes[0])
            answered = list(accounts(book))
            for policy in ("void_trades", "refund_cost", "refund_stake"):
                book.cancel(at, question, policy, "no source")
                book.revoke(at, question, "there is one")
                assert list(accounts(book)) == answered
            book.revoke(at, question, "misread")
            assert list(accounts(book)) == before


@pytest.mark.parametrize("seed", SEEDS)
def test_voided_trades_leave_nothing_made_or_lost(seed: int) -> None:
    """All that was paid for a position and got from it is undone; only what refunded questions brought stays."""
    book = deepcopy(random_season(seed).book)
    refunded = {name for name, asked in book.questions.items() if asked.annulled.startswith("refund_")}
    for question in sorted(book.questions.keys() - refunded):
        book.cancel(book.questions[question].closes + DAY, question, "void_trades", "no source")
    for contest, _, account in accounts(book):
        if not book.contests[contest].finalized:
            kept_gains = sum(each.realised for each in account.positions if each.question in refunded)
            assert account.cash == account.net_deposits + kept_gains


# --- figures of the documents


def arena(*bets: Told, prices: dict[str, str] | None = None) -> Book:
    """One participant in a first cohort, with these decisions, a week apart, at these prices of yes."""
    book = Book()
    book.open_contest(0, "week", {"period_days": 0})
    book.enrol(0, "week", "ada")
    for question, price in (prices or {"rain": "0.4"}).items():
        book.open_question(0, question, "binary", opens=0, closes=30 * DAY)
        book.add_question(0, "week", question)
        book.quoted(1, [(question, {"prices": {"yes": price}})], "gamma", on=1)
    for period, bet in enumerate(bets, 1):
        legs = [{"market_id": "rain", "side": "YES"} | bet]
        book.record_decision(1, "week", "ada", period, action="BET", bets=legs, reasoning="Clouds.")
    return book


def test_five_hundred_at_forty_cents_gain_seven_hundred_and_fifty() -> None:
    """500 / 0.40 = 1,250 shares; each pays 1; 1,250 - 500 = +750. Forecaster Arena, Scoring Methodology, sections 2.1
    and 2.3.
    """
    book = arena({"amount": 500})
    [held] = book.account("week", "ada").open()
    assert held.shares == 1_250 * MONEY
    book.resolve(2, "rain", "yes")
    [settled] = book.account("week", "ada").positions
    assert settled.realised == 750 * MONEY
    assert book.account("week", "ada").cash == 10_750 * MONEY


@pytest.mark.parametrize(("amount", "confidence"), [(2_500, "1"), (1_250, "0.5"), (500, "0.2"), (50, "0.02")], ids=str)
def test_confidence_is_the_share_of_the_largest_bet(amount: int, confidence: str) -> None:
    """At a cash of 10,000 the largest bet is 2,500. Forecaster Arena, Scoring Methodology, section 1.2."""
    book = arena({"amount": amount})
    assert book.log[-1]["confidence"] == micros(confidence, ONE)


def test_cash_left_by_a_bet_sets_the_next_cap() -> None:
    """After 2,000 of 10,000 the cash is 8,000: 500 of 2,000 are 25 %, 2,000 of it would be 100 %."""
    assert arena({"amount": 2_000}, {"amount": 500}).log[-1]["confidence"] == ONE // 4
    assert arena({"amount": 2_000}, {"amount": 2_000}).log[-1]["confidence"] == ONE


@pytest.mark.parametrize(
    ("side", "outcome", "score"),
    [("YES", "yes", "0.04"), ("YES", "no", "0.64"), ("NO", "yes", "0.64"), ("NO", "no", "0.04")],
)
def test_a_bet_is_scored_by_the_probability_of_yes(side: str, outcome: str, score: str) -> None:
    """Confidence 0.80: 2,000 of 2,500. Forecaster Arena, Scoring Methodology, section 1.3."""
    book = arena({"amount": 2_000, "side": side})
    book.resolve(2, "rain", outcome)
    [row] = readings.brier_rows(book, "week", "ada")
    assert row.brier == Fraction(score) == (row.confidence - row.side_won) ** 2


def test_skill_compares_with_even_odds_and_with_the_market() -> None:
    """One bet of 20 % confidence at 0.4 that wins: 0.64; 1 - 0.64 / 0.25 = -1.56; 1 - 0.64 / 0.36 = -7/9."""
    book = arena({"amount": 500})
    book.resolve(2, "rain", "yes")
    line = readings.figures(book, "week", "ada")
    assert line["skill_against_even_odds"] == Fraction("-1.56")
    assert line["skill_against_market"] == Fraction(-7, 9)
    assert (line["win_rate"], line["return_percent"], line["turnover"]) == (1, Fraction("7.5"), Fraction("0.05"))


def test_a_loss_shows_as_drawdown() -> None:
    """A loss of 500 of 10,000 is 5 % of the peak; a participant who only gained has no drawdown."""
    book = arena({"amount": 500})
    book.resolve(2, "rain", "no")
    assert readings.figures(book, "week", "ada")["drawdown"] == Fraction("0.05")
    won = arena({"amount": 500})
    won.resolve(2, "rain", "yes")
    assert readings.figures(won, "week", "ada")["drawdown"] == 0


def test_two_sales_of_half_leave_a_quarter() -> None:
    """Percent are of the shares left; cost falls alike. Forecaster Arena, Scoring Methodology, "Position Mechanics"."""
    book = arena({"amount": 500})
    for period in (2, 3):
        sells = [{"position_id": "1", "percentage": 50}]
        book.record_decision(1, "week", "ada", period, action="SELL", sells=sells, reasoning="Enough.")
    [held] = book.account("week", "ada").open()
    assert (held.shares, held.cost) == (312_500_000, 125 * MONEY)


def test_three_sales_of_a_third_leave_dust_and_an_open_position() -> None:
    """1,250 shares: 416.66625 go, then of 833.33375 277.777638 (…8 rounded down), of 555.556112 185.185185."""
    book = arena({"amount": 500})
    for period in (2, 3, 4):
        sells = [{"position_id": "1", "percentage": "33.3333"}]
        book.record_decision(1, "week", "ada", period, action="SELL", sells=sells, reasoning="Enough.")
    sold = [event["shares"] for event in book.log if event["type"] == "shares_sold.v1"]
    assert sold == [416_666_250, 277_777_638, 185_185_185]
    assert book.account("week", "ada").open()


@pytest.mark.parametrize(("second", "code"), [(2_500, "above_cap"), (1_875, None)])
def test_each_leg_meets_the_cash_the_leg_before_left(second: int, code: str | None) -> None:
    """A quarter of the 7,500 left is 1,875. Forecaster Arena, Scoring Methodology, "Position Mechanics"."""
    book = arena()
    bets = [{"market_id": "rain", "side": "yes", "amount": amount} for amount in (2_500, second)]
    book.record_decision(1, "week", "ada", 1, action="BET", bets=bets, reasoning="All in.")
    assert book.log[-1].get("code") == code
    assert code or book.log[-1]["confidence"] == book.log[-2]["confidence"] == ONE
