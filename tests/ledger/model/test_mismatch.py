"""Tests of the messages about impossible logs: the expected and the actual value, in printed units."""

import re
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.events import AnyEvent
from forecast_ledger.ledger.model.mismatch import (
    first_difference,
    instant_text,
    money_text,
    probability_text,
    short_repr,
    short_reprs,
)
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.replay.reading.replay import summarize_tables
from tests.projections.facts.test_event_checks import (
    CLOSES,
    HALF,
    IMPOSSIBLE,
    OPENS,
    added,
    binary,
    contest,
    forecast,
    read,
)
from tests.support import oracle
from tests.support.forging import audited, enveloped
from tests.support.given import (
    annulment,
    bet,
    cancellation,
    cash_out,
    day,
    decision,
    deposit,
    micros,
    quote,
    replied,
    resolution,
    revocation,
    sale,
    trading_floor,
)

SAYS_BOTH = re.compile(r"log position \d+: (\w+\.v1: )?expected .+; found .{1,120}")
LONGEST = 250  # characters of a message whose ids are all shortened


def stopped_at(log: list[AnyEvent]) -> tuple[int, str]:
    """Return the log position at which deciding a log again stops, and the message."""
    with pytest.raises(Corrupt) as stopped:
        audited(enveloped(log))
    return stopped.value.position, str(stopped.value)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_every_message_has_the_expected_and_the_found_value(name: str) -> None:
    """All messages have one form and are on one line."""
    _, message = stopped_at(IMPOSSIBLE[name])
    assert SAYS_BOTH.fullmatch(message)
    assert len(message) <= LONGEST


def happened(*commands: Any) -> list[AnyEvent]:
    """Return the events that a ledger records for commands."""
    return [recorded.event for recorded in oracle.history(*commands)]


def forged(log: list[AnyEvent], position: int, /, **fields: Any) -> list[AnyEvent]:
    """Return the log with other values in one of its events."""
    return [*log[: position - 1], structs.replace(log[position - 1], **fields), *log[position:]]


def carried_out(log: list[AnyEvent], leg: events.Event, **fields: Any) -> list[AnyEvent]:
    """Return a log whose last leg was refused as if that leg had been carried out, and its decision said so."""
    refused, [made] = log[-1], [event for event in log if isinstance(event, events.DecisionRecorded)][-1:]
    assert isinstance(refused, events.LegRefused)
    decided = structs.replace(made, executed=made.executed + 1)
    done = structs.replace(leg, at=refused.at, period=refused.period, leg=refused.leg, **fields)
    return [*(decided if event is made else event for event in log[:-1]), done]  # type: ignore[list-item]


# Ada has 10,000. Quotes: at 8 rain, yes 0.40; at 9 colours. Later events start at log position 10.
FLOOR, COLOUR = happened(*trading_floor()), "colour"
FREE = RuleSet(name="free", trading=Trading(recapitalisation=True))
TINY = RuleSet(name="tiny", trading=Trading(least_bet_micros=1))
BET = [*trading_floor(), decision(bet(500))]  # 10: the decision; 11: 1,250 shares
NEXT = [*BET, quote(at=day(9))]  # 12
BOUGHT, SOLD = happened(*BET), happened(*NEXT, decision(sale(50), period=2, at=day(9)))  # 13, 14: 625 shares at 0.40
TWICE = happened(*NEXT, decision(sale(100), sale(100), period=2, at=day(9)))  # 15: the second is refused
SETTLED = happened(*BET, resolution())  # 12, 13: a share pays 1
REVERSED = happened(*BET, resolution(), revocation())  # 14, 15
REFUNDED, VOIDED = happened(*BET, annulment()), happened(*BET, cancellation())  # 12, 13
MALFORMED = happened(*trading_floor(), replied("No."), replied("No.", attempt=2))  # 10: text; 11, 12; 13: the default
HELD = happened(*trading_floor(), decision())
BEYOND = happened(*trading_floor(), decision(bet(2_500), bet(2_500)))  # 11: the first; 12: the second is refused
AT_NOTHING = happened(*trading_floor(), decision(bet(500, "blue", COLOUR)))
AT_NEARLY_NOTHING = happened(*trading_floor(), quote(prices={"yes": "0.000000001"}), decision(bet(2_500)))  # 10, 11, 12
CASH = happened(*trading_floor(rules=FREE), deposit(1_000), cash_out(500))  # 10, 11
BITS = happened(
    *trading_floor(rules=TINY), decision(bet("0.000001")), quote(at=day(9)), decision(sale(1), period=2, at=day(9))
)
PURCHASE, SALE = BOUGHT[10], SOLD[13]
OTHERS = structs.replace(FLOOR[0], question="hail")
RESOLVED = events.QuestionResolved(at=micros(2), question="rain", outcome=0, known_at=micros(2))
IN_PARTS = events.QuestionResolved(at=micros(2), question="rain", outcome=-1, known_at=micros(2), payouts=(HALF, HALF))


def quoted(*prices: int, **fields: Any) -> dict[str, Any]:
    """Return the fields of an event that quotes prices of colours, or of another question, 1e-9."""
    return {"quotes": (events.Quote(**{"question": COLOUR, "prices": prices} | fields),)}


def enrolled(participant: str = "ada") -> events.ParticipantEnrolled:
    """Return the enrolment of a participant in the week's contest."""
    return events.ParticipantEnrolled(at=micros(1), contest="week", participant=participant)


def deposited(amount: int) -> events.CashDeposited:
    """Return a deposit of Ada's, 1e-6."""
    return events.CashDeposited(at=micros(2), contest="week", participant="ada", amount=amount, reason="")


BROKEN_ACCOUNTS: list[tuple[list[AnyEvent], str, str]] = [  # a log, the rule that it breaks, the difference found
    # quotes
    (forged(FLOOR, 9, quotes=()), "one quote or more, each question once", "quote to be allowed; found malformed"),
    (
        forged(FLOOR, 9, quoted_at=micros(2) + 1),
        "prices quoted by 2026-03-02T00:00:00Z",
        "quote to be allowed; found wrong_order_of_instants: quoted_at = '2026-03-02T00:00:00.000001Z'",
    ),
    (
        forged(FLOOR, 9, **quoted(HALF, HALF)),
        "3 prices of 'colour', not all missing",
        "quote to be allowed; found unknown_outcome: prices = '0'",
    ),
    (
        forged(FLOOR, 9, **quoted(HALF, HALF - 1, question="rain")),
        "two prices of 'rain' that sum to 1",
        "quotes[0].prices[1] 0.5; found 0.499999999",
    ),
    (
        forged(FLOOR, 9, **quoted(HALF, -HALF, 10**9 + 1)),
        "prices of 'colour' from 0 to 1",
        "quote to be allowed; found out_of_range: prices.green = '-0.500000000'",
    ),
    (
        forged(SOLD, 12, quoted_at=micros(1))[:12],
        "prices quoted after those before",
        "quote to be allowed; found out_of_order: quoted_at = '2026-03-01T00:00:00Z'",
    ),
    # cash and texts
    (
        [*FLOOR, enrolled()],
        "one enrolment of 'ada'",
        "enrol_participant to be allowed; found enrolled_already: participant = 'ada'",
    ),
    (forged(FLOOR[:7], 7, amount=9_999_999_999), "the contest's starting cash", "amount 10000.00; found 9999.999999"),
    (
        [*FLOOR, deposited(10**9)],
        "no deposits, which the rules do not allow",
        "deposit_cash to be allowed; found no_recapitalisation: contest = 'week'",
    ),
    (
        forged(CASH, 10, amount=0)[:10],
        "an amount above 0 and up to 1000000000.00",
        "deposit_cash to be allowed; found out_of_range: amount = '0.000000'",
    ),
    (
        forged(CASH, 11, amount=11 * 10**9 + 1),
        "an amount above 0 and up to 11000.00",
        "withdraw_cash to be allowed; found not_enough_cash: amount = '11000.000001'",
    ),
    (
        [*CASH, deposited(10**15)],
        "deposits of at most 1000000000.00 in all",
        "deposit_cash to be allowed; found no_recapitalisation: amount = '1000000000.000000'",
    ),
    (
        forged(MALFORMED, 10, digest="0" * 64)[:10],
        "the digest of the text",
        "the decision that has the text after this; found the end of the log",
    ),
    (
        [*MALFORMED, MALFORMED[9]],
        "a text that is not recorded yet",
        "the decision that has the text after this; found the end of the log",
    ),
    # decisions
    (
        [*HELD, *forged(HELD, 10, attempt=2)[9:]],
        "contest 'week' to be incomplete",
        "record_decision to be allowed; found contest_complete: contest = 'week'",
    ),
    (
        [*BOUGHT, *forged(BOUGHT, 10, attempt=2)[9:10]],
        "one decision for period 1",
        "record_decision to be allowed; found decision_taken: period = 1",
    ),
    (
        forged(BOUGHT, 10, attempt=2)[:10],
        "the number of the next attempt",
        "record_decision to be allowed; found wrong_attempt: attempt = 2",
    ),
    (
        forged(BOUGHT, 10, at=micros(1) - 1)[:10],
        "a decision after the start",
        "record_decision to be allowed; found wrong_period: period = 1",
    ),
    (
        forged(BOUGHT, 10, period=2)[:10],
        "period 1 at 2026-03-02T00:00:00Z",
        "record_decision to be allowed; found wrong_period: period = 2",
    ),
    (
        forged(MALFORMED, 12, at=micros(2) - 1)[:12],
        ("an instant after the participant's last decision"),
        "record_decision to be allowed; found out_of_order: at = '2026-03-01T23:59:59.999999Z'",
    ),
    (forged(BOUGHT, 10, prompt="why")[:10], "a prompt whose text is recorded", "prompt ''; found 'why'"),
    (forged(BOUGHT, 10, action="HOLD")[:10], "no bets with HOLD", "text_kept.v1 here; found decision_recorded.v1"),
    (forged(BOUGHT, 10, executed=2)[:10], "0 to 1 legs carried out", "executed 1; found 2"),
    (forged(MALFORMED, 11, fault="odd")[:11], "a known fault", "fault 'unreadable'; found 'odd'"),
    # events that are missing or too many
    (
        [*FLOOR[:6], FLOOR[7]],
        "the starting cash after an enrolment",
        "cash_granted.v1 here; found another command, 'c7'",
    ),
    (forged(BOUGHT, 11, leg=2), "the number of the next leg", "leg 1; found 2"),
    (
        forged(BOUGHT, 11, at=micros(2) + 1),
        "the instant of the decision",
        "at 2026-03-02T00:00:00Z; found 2026-03-02T00:00:00.000001Z",
    ),
    ([*FLOOR, PURCHASE], "a decision before its leg", "no more events of command 'c9'; found one more"),
    # legs
    (forged(BEYOND, 12, code="odd"), "a known reason of a refused leg", "code 'above_cap'; found 'odd'"),
    (forged(BOUGHT, 10, executed=0), "as many legs as the decision says", "executed 1; found 0"),
    (
        [*FLOOR[:8], OTHERS, *forged(BOUGHT, 11, question="hail")[9:]],
        "a question of the contest",
        "question 'rain'; found 'hail'",
    ),
    ([*FLOOR, RESOLVED, *BOUGHT[9:]], "question 'rain' to be neither resolved nor annulled", "executed 0; found 1"),
    (forged(BOUGHT, 11, outcome=2), "an outcome from 0 to 1", "outcome 0; found 2"),
    (
        forged(BOUGHT, 1, closes_at=micros(2)),
        "a leg from 2026-03-01T00:00:00Z on and before 2026-03-02T00:00:00Z",
        "executed 0; found 1",
    ),
    ([*BOUGHT[:7], BOUGHT[8], *BOUGHT[8:]], "a quote of question 'rain' before", "executed 0; found 1"),
    (forged(BOUGHT, 11, quote=9), "the question's last quote", "quote 8; found 9"),
    (forged(BOUGHT, 11, price=400_000_001), "a price of 0.4, as quoted", "price 0.4; found 0.400000001"),
    (
        forged(BOUGHT, 8, quoted_at=micros(1)),
        "a quote of at most 3600 s before 2026-03-02T00:00:00Z",
        "executed 0; found 1",
    ),
    # purchases
    (forged(BOUGHT, 11, outcome=1, price=600_000_000), "the question and side of the bet", "outcome 0; found 1"),
    (forged(BOUGHT, 11, amount=500_000_001), "the amount of the bet", "amount 500.00; found 500.000001"),
    (carried_out(BEYOND, BEYOND[10]), "a bet of 50.00 to 1875.00", "executed 1; found 2"),
    (forged(BOUGHT, 11, cash=10**10 - 1), "cash of 10000.00 before", "cash 10000.00; found 9999.999999"),
    (
        carried_out(AT_NOTHING, PURCHASE, question=COLOUR, outcome=2, price=0, quote=9),
        "a price at which the amount buys shares",
        "executed 0; found 1",
    ),
    (
        forged(BOUGHT, 11, shares=1_250_000_001),
        "1250.00 shares, what the amount buys",
        "shares 1250.00; found 1250.000001",
    ),
    (
        carried_out(AT_NEARLY_NOTHING, PURCHASE, price=1, quote=10, amount=25 * 10**8, shares=25 * 10**17),
        "at most 1000000000000.00 shares that one account buys",
        "executed 0; found 1",
    ),
    (
        forged(BOUGHT, 11, confidence=200_000_001),
        "a confidence of 0.2, as the amount implies",
        "confidence 0.2; found 0.200000001",
    ),
    (forged(BOUGHT, 11, position=2), "the number of the open position or the next one", "position 1; found 2"),
    # sales
    (
        forged(SOLD, 13, sells=(events.Sale(position="7", percentage=50 * 10**6),)),
        "the position of the sale",
        "executed 0; found 1",
    ),
    (forged(SOLD, 14, position=7), "a position that was bought before", "position 1; found 7"),
    (carried_out(TWICE, TWICE[13]), "position 1 to be open", "executed 1; found 2"),
    (
        forged(SOLD, 14, outcome=1, price=600_000_000),
        "question and outcome 'rain', 0, of the position",
        "outcome 0; found 1",
    ),
    (carried_out(BITS, SALE, shares=0), "a percentage that sells shares", "executed 0; found 1"),
    (forged(SOLD, 14, shares=626_000_000), "625.00 shares, the percentage asked for", "shares 625.00; found 626.00"),
    (forged(SOLD, 14, cost=249_999_999), "a cost of 250.00, of the shares sold", "cost 250.00; found 249.999999"),
    (
        forged(SOLD, 14, proceeds=250_000_001),
        "proceeds of 250.00, of the shares at the price",
        "proceeds 250.00; found 250.000001",
    ),
    # ends of positions
    (forged(SETTLED, 13, outcome=1), "outcome 0, of the position", "outcome 0; found 1"),
    (forged(SETTLED, 13, shares=1), "1250.00 shares, of the position", "shares 1250.00; found 0.000001"),
    (forged(SETTLED, 13, cost=0), "a cost of 500.00, of the position", "cost 500.00; found 0.00"),
    (forged(SETTLED, 13, payout=HALF), "a payout of 1, as resolved", "payout 1; found 0.5"),
    (
        forged(SETTLED, 13, proceeds=10**9),
        "an amount of 1250.00, what the position is worth",
        "proceeds 1250.00; found 1000.00",
    ),
    (forged(REFUNDED, 13, cost=499_000_000), "a cost of 500.00, of the position", "cost 500.00; found 499.00"),
    (
        forged(VOIDED, 13, amount=499_000_000),
        "an amount of 500.00, what the position is worth",
        "amount 500.00; found 499.00",
    ),
    (
        forged(REVERSED, 15, reverses=12),
        "to reverse log position 13, which ended the position",
        "reverses 13; found 12",
    ),
    (
        forged(REVERSED, 15, amount=0),
        "an amount of 1250.00, what the position was settled with",
        "amount 1250.00; found 0.00",
    ),
    (forged(REVERSED, 15, outcome=1), "outcome 0, of the position", "outcome 0; found 1"),
    ([*FLOOR, structs.replace(IN_PARTS, outcome=0)], "outcome -1 beside payouts", "outcome -1; found 0"),
    (
        [*FLOOR, structs.replace(IN_PARTS, payout_unit=6, payouts=(2, 4))],
        "payouts in lowest terms",
        "payout_unit 3; found 6",
    ),
    (
        [*FLOOR, structs.replace(IN_PARTS, payout_unit=-3, payouts=(-1, -2))],
        "payouts in a unit above 0",
        "payout_unit 3; found -3",
    ),
    (
        [*FLOOR, structs.replace(IN_PARTS, payouts=(HALF, 0))],
        "2 payouts that sum to 1",
        "resolve_question to be allowed; found not_summing_to_one: payouts = '0.5'",
    ),
    (
        [*FLOOR, structs.replace(IN_PARTS, payouts=(3 * HALF, -HALF))],
        "payouts from 0 to below 1",
        "resolve_question to be allowed; found out_of_range: payouts.yes = '1.5'",
    ),
]


@pytest.mark.parametrize(("log", "rule", "difference"), BROKEN_ACCOUNTS, ids=[rule for _, rule, _ in BROKEN_ACCOUNTS])
def test_an_event_that_breaks_a_rule_of_accounts_is_found(log: list[AnyEvent], rule: str, difference: str) -> None:
    """The message names the mismatch; the position is that of the last event or of its command's first event."""
    position, message = stopped_at(log)
    assert SAYS_BOTH.fullmatch(message), rule
    assert message.partition("expected ")[2].startswith(difference), rule
    assert [recorded.command_id for recorded in enveloped(log)][position - 1] == enveloped(log)[-1].command_id


def test_a_question_opened_only_after_its_forecast_is_named() -> None:
    """The message names the log position at which the question is opened."""
    with pytest.raises(
        Corrupt, match=r"^log position 1: expected a question opened earlier; found 'rain', opened at log position 2$"
    ):
        read(forecast(probabilities=(HALF, HALF)), binary())


HOSTILE = "\x1b[2J\n" + "\u202e" * 300


@pytest.mark.parametrize(
    "log",
    [
        [binary(HOSTILE), binary(HOSTILE)],
        [events.QuestionClosed(at=OPENS, question=HOSTILE)],
        [forecast(HOSTILE)],
        [contest(contest=HOSTILE), contest(contest=HOSTILE)],
        [binary(HOSTILE), contest(contest=HOSTILE), *[added(contest=HOSTILE, question=HOSTILE)] * 2],
        [binary(opens_at=-(10**400))],
        [contest(pool=10**400)],
        [binary(), contest(), added(weight=10**4000)],
        forged(BOUGHT, 11, question=HOSTILE),
        forged(BOUGHT, 11, contest=HOSTILE, participant=HOSTILE),
        forged(BOUGHT, 11, shares=10**4000),
        forged(BOUGHT, 11, quote=-(10**4000)),
        forged(BOUGHT, 10, bets=(events.Bet(question=HOSTILE, side=HOSTILE, amount=500_000_000),)),
        forged(MALFORMED, 11, fault=HOSTILE),
        forged(MALFORMED, 10, digest=HOSTILE),
        forged(FLOOR, 9, **quoted(*[10**4000] * 3)),
    ],
)
def test_messages_about_a_hostile_log_are_short_and_printable(log: list[AnyEvent]) -> None:
    """Texts are escaped and shortened, and long numbers are not printed."""
    _, message = stopped_at(log)
    assert SAYS_BOTH.fullmatch(message)
    assert message.isprintable()
    assert len(message) <= LONGEST
    message = message_of_reading(log)
    assert message.isprintable()
    assert len(message) <= LONGEST


def message_of_reading(log: list[AnyEvent]) -> str:
    """Return the error that tables of these events raise, as text; empty if there is none."""
    try:
        summarize_tables(read(*log))
    except Corrupt as stopped:
        return str(stopped)
    return ""


def test_figures_are_printed_as_in_tables() -> None:
    """Money with two decimals or more, prices with as many as they need, instants in UTC, ids in quotes."""
    assert money_text(-500_000_001) == "-500.000001"
    assert probability_text(HALF) == "0.5"
    assert probability_text(None) == "none"
    assert instant_text(CLOSES) == "1970-01-01T00:00:09Z"
    assert instant_text(2**70) == "1180591620717411303424 µs since 1970"
    assert short_reprs(("ada", 7)) == "'ada', 7"
    assert short_repr(10**31) == money_text(10**31) == "a number of more than 30 digits"


def test_a_payout_that_differs_is_printed_as_the_share_that_it_is() -> None:
    """In the unit of its event: a third, and not 1e-9."""
    settled = events.PositionSettled(
        at=0, contest="week", participant="ada", question="rain", outcome=0, position=1, shares=3_000_000, cost=0,
        payout_unit=3, payout=1, proceeds=1_000_000,
    )  # fmt: skip
    assert first_difference(settled, structs.replace(settled, payout=2)) == "expected payout 1/3; found 2/3"
