"""What is said of a log that cannot be: what was expected and what was found, in the units that are printed."""

import re
from hashlib import sha256
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.events import AnyEvent
from forecast_ledger.ledger.model.mismatch import instant_text, money_text, probability_text, short_repr, short_reprs
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.replay.reading.replay import built
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
LONGEST = 250  # characters, where ids are as long as those that are shortened


def stopped_at(log: list[AnyEvent]) -> tuple[int, str]:
    """Where deciding a log again stops, and what is said of it."""
    with pytest.raises(Corrupt) as stopped:
        audited(enveloped(log))
    return stopped.value.position, str(stopped.value)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_whatever_is_found_is_said_with_what_was_expected_and_what_was_found(name: str) -> None:
    """In one form and on one line."""
    _, said = stopped_at(IMPOSSIBLE[name])
    assert SAYS_BOTH.fullmatch(said)
    assert len(said) <= LONGEST


def happened(*commands: Any) -> list[AnyEvent]:
    """What a ledger makes of commands."""
    return [recorded.event for recorded in oracle.history(*commands)]


def forged(log: list[AnyEvent], position: int, /, **fields: Any) -> list[AnyEvent]:
    """The log with other values in one of its events."""
    return [*log[: position - 1], structs.replace(log[position - 1], **fields), *log[position:]]


def carried_out(log: list[AnyEvent], leg: events.Event, **fields: Any) -> list[AnyEvent]:
    """The log, whose last leg was refused, as if that had been carried out, too, and as its decision then says."""
    refused, [made] = log[-1], [each for each in log if isinstance(each, events.DecisionRecorded)][-1:]
    assert isinstance(refused, events.LegRefused)
    said = structs.replace(made, executed=made.executed + 1)
    done = structs.replace(leg, at=refused.at, period=refused.period, leg=refused.leg, **fields)
    return [*(said if each is made else each for each in log[:-1]), done]  # type: ignore[list-item]


# Ada has 10,000. Quotes: at 8 rain, yes 0.40; at 9 colours. What comes then starts at log position 10.
FLOOR, COLOUR = happened(*trading_floor()), "colour"
FREE = RuleSet(name="free", trading=Trading(recapitalisation=True))
TINY = RuleSet(name="tiny", trading=Trading(least_bet=1))
BET = [*trading_floor(), decision(bet(500))]  # 10: the decision; 11: 1,250 shares
NEXT = [*BET, quote(at=day(9))]  # 12
BOUGHT, SOLD = happened(*BET), happened(*NEXT, decision(sale(50), period=2, at=day(9)))  # 13, 14: 625 shares at 0.40
TWICE = happened(*NEXT, decision(sale(100), sale(100), period=2, at=day(9)))  # 15: the second is refused
SETTLED = happened(*BET, resolution())  # 12, 13: a share pays 1
REVERSED = happened(*BET, resolution(), revocation())  # 14, 15
REFUNDED, VOIDED = happened(*BET, annulment()), happened(*BET, cancellation())  # 12, 13
MALFORMED = happened(*trading_floor(), replied("No."), replied("No.", attempt=2))  # 10 text, 11, 12, 13 by default
HELD = happened(*trading_floor(), decision())
BEYOND = happened(*trading_floor(), decision(bet(2_500), bet(2_500)))  # 11: the first; 12: the second is refused
AT_NOTHING = happened(*trading_floor(), decision(bet(500, "blue", COLOUR)))
AT_NEARLY_NOTHING = happened(*trading_floor(), quote(prices={"yes": "0.000000001"}), decision(bet(2_500)))  # 10, 11, 12
CASH = happened(*trading_floor(rules=FREE), deposit(1_000), cash_out(500))  # 10, 11
BITS = happened(
    *trading_floor(rules=TINY),
    decision(bet("0.000001")),
    quote(at=day(9)),
    decision(sale(1), period=2, at=day(9)),
)
PURCHASE, SALE = BOUGHT[10], SOLD[13]
OTHERS = structs.replace(FLOOR[0], question="hail")
DIGEST = sha256(b"No.").hexdigest()
RESOLVED = events.QuestionResolved(at=micros(2), question="rain", outcome=0, known_at=micros(2))
IN_PARTS = events.QuestionResolved(at=micros(2), question="rain", outcome=-1, known_at=micros(2), payouts=(HALF, HALF))


def quoted(*prices: int, **fields: Any) -> dict[str, Any]:
    """Prices of colours, or of another question, 1e-9."""
    return {"quotes": (events.Quote(**{"question": COLOUR, "prices": prices} | fields),)}


def enrolled(participant: str = "ada") -> events.ParticipantEnrolled:
    """Somebody in the week's contest."""
    return events.ParticipantEnrolled(at=micros(1), contest="week", participant=participant)


def deposited(amount: int) -> events.CashDeposited:
    """Ada's, 1e-6."""
    return events.CashDeposited(at=micros(2), contest="week", participant="ada", amount=amount, reason="")


OF_BOOKS: list[tuple[list[AnyEvent], str]] = [
    # quotes
    (forged(FLOOR, 9, quotes=()), "expected one quote or more, each question once; found 0 quotes of 0 questions"),
    (
        forged(FLOOR, 9, quoted_at=micros(2) + 1),
        "expected prices quoted by 2026-03-02T00:00:00Z; found 2026-03-02T00:00:00.000001Z",
    ),
    (
        forged(FLOOR, 9, **quoted(HALF, HALF)),
        "expected 3 prices of 'colour', not all missing; found 0.5, 0.5",
    ),
    (
        forged(FLOOR, 9, **quoted(HALF, HALF - 1, question="rain")),
        "expected two prices of 'rain' that sum to 1; found 0.5, 0.499999999",
    ),
    (
        forged(FLOOR, 9, **quoted(HALF, -HALF, 10**9 + 1)),
        "expected prices of 'colour' from 0 to 1; found 0.5, -0.5, 1.000000001",
    ),
    (
        forged(SOLD, 12, quoted_at=micros(1))[:12],
        "expected prices quoted from 2026-03-02T00:00:00Z on, of the question's last quote; found 2026-03-01T00:00:00Z",
    ),
    # cash and texts
    ([*FLOOR, enrolled()], "expected one enrolment of 'ada'; found one at 2026-03-01T00:00:00Z already"),
    (
        forged(FLOOR[:7], 7, amount=9_999_999_999),
        "expected an amount of 10000.00, what the contest starts with; found 9999.999999",
    ),
    ([*FLOOR, deposited(10**9)], "expected no cash in or out, which the rules do not allow; found 1000.00"),
    (forged(CASH, 10, amount=0)[:10], "expected an amount above 0 and up to 1000000000.00; found 0.00"),
    (forged(CASH, 11, amount=11 * 10**9 + 1), "expected an amount above 0 and up to 11000.00; found 11000.000001"),
    ([*CASH, deposited(10**15)], "expected deposits of at most 1000000000.00 in all; found 1000001000.00"),
    (
        forged(MALFORMED, 10, digest="0" * 64)[:10],
        f"expected digest {DIGEST}, of the text; found '{'0' * 64}'",
    ),
    ([*MALFORMED, MALFORMED[9]], f"expected a text not kept before; found digest '{DIGEST[:39]}… again"),
    # decisions
    (
        [*HELD, *forged(HELD, 10, attempt=2)[9:]],
        "expected contest 'week' to be incomplete; found everybody's decision, and nothing open",
    ),
    (
        [*BOUGHT, *forged(BOUGHT, 10, attempt=2)[9:10]],
        "expected one decision for period 1; found another, after it was taken",
    ),
    (forged(BOUGHT, 10, attempt=2)[:10], "expected attempt 1, the next; found 2"),
    (
        forged(BOUGHT, 10, at=micros(1) - 1)[:10],
        "expected a decision from 2026-03-01T00:00:00Z on, the start; found 2026-02-28T23:59:59.999999Z",
    ),
    (forged(BOUGHT, 10, period=2)[:10], "expected period 1 at 2026-03-02T00:00:00Z; found 2"),
    (
        forged(MALFORMED, 12, at=micros(2) - 1)[:12],
        (
            "expected an instant from 2026-03-02T00:00:00Z on, "
            "of the participant's last decision; found 2026-03-01T23:59:59.999999Z"
        ),
    ),
    (
        forged(BOUGHT, 10, prompt="why")[:10],
        "expected prompt and response to be digests of texts kept before; found 'why'",
    ),
    (
        forged(BOUGHT, 10, action="HOLD")[:10],
        "expected bets with BET alone, and sales with SELL alone; found HOLD, 1 bets, 0 sales",
    ),
    (forged(BOUGHT, 10, executed=2)[:10], "expected 0 to 1 legs carried out; found 2"),
    (
        forged(MALFORMED, 11, fault="odd")[:11],
        "expected a fault such as unreadable, of those that there are; found 'odd'",
    ),
    # what is due
    ([*FLOOR[:6], FLOOR[7]], "expected cash_granted.v1, which is due here; found prices_quoted.v1"),
    (
        forged(BOUGHT, 11, leg=2),
        "expected that of 'week', 'ada', 1, 1, 1, which is due here; found that of 'week', 'ada', 1, 1, 2",
    ),
    (
        forged(BOUGHT, 11, at=micros(2) + 1),
        "expected the instant 2026-03-02T00:00:00Z of what it follows from; found 2026-03-02T00:00:00.000001Z",
    ),
    ([*FLOOR, PURCHASE], "expected something before it that it follows from; found nothing"),
    # legs
    (forged(BEYOND, 12, code="odd"), "expected a reason such as no_quote, of those that there are; found 'odd'"),
    (forged(BOUGHT, 10, executed=0), "expected 0 legs carried out, as the decision says; found 1"),
    (
        [*FLOOR[:8], OTHERS, *forged(BOUGHT, 11, question="hail")[9:]],
        "expected a question of the contest; found 'hail'",
    ),
    (
        [*FLOOR, RESOLVED, *BOUGHT[9:]],
        "expected question 'rain' to be neither resolved nor annulled; found that it has been since log position 10",
    ),
    (forged(BOUGHT, 11, outcome=2), "expected an outcome from 0 to 1; found 2"),
    (
        forged(BOUGHT, 1, closes_at=micros(2)),
        "expected a leg from 2026-03-01T00:00:00Z on and before 2026-03-02T00:00:00Z; found 2026-03-02T00:00:00Z",
    ),
    ([*BOUGHT[:7], BOUGHT[8], *BOUGHT[8:]], "expected a quote of question 'rain' before; found none"),
    (forged(BOUGHT, 11, quote=9), "expected the quote of log position 8, the question's last; found 9"),
    (forged(BOUGHT, 11, price=400_000_001), "expected a price of 0.4, as quoted; found 0.400000001"),
    (
        forged(BOUGHT, 8, quoted_at=micros(1)),
        "expected a quote of at most 3600 s before 2026-03-02T00:00:00Z; found one of 2026-03-01T00:00:00Z",
    ),
    # purchases
    (
        forged(BOUGHT, 11, outcome=1, price=600_000_000),
        "expected 'rain', 'yes', the bet that was asked for; found 'rain', 'no'",
    ),
    (
        forged(BOUGHT, 11, amount=500_000_001),
        "expected an amount of 500.00, the bet that was asked for; found 500.000001",
    ),
    (carried_out(BEYOND, BEYOND[10]), "expected a bet of 50.00 to 1875.00; found 2500.00"),
    (forged(BOUGHT, 11, cash=10**10 - 1), "expected cash of 10000.00 before; found 9999.999999"),
    (
        carried_out(AT_NOTHING, PURCHASE, question=COLOUR, outcome=2, price=0, quote=9),
        "expected a price at which the amount buys shares; found 500.00 at 0",
    ),
    (forged(BOUGHT, 11, shares=1_250_000_001), "expected 1250.00 shares, what the amount buys; found 1250.000001"),
    (
        carried_out(AT_NEARLY_NOTHING, PURCHASE, price=1, quote=10, amount=25 * 10**8, shares=25 * 10**17),
        "expected at most 1000000000000.00 shares that one account buys; found 2500000000000.00",
    ),
    (
        forged(BOUGHT, 11, confidence=200_000_001),
        "expected a confidence of 0.2, as the amount implies; found 0.200000001",
    ),
    (forged(BOUGHT, 11, position=2), "expected position 1, the open one or the next; found 2"),
    # sales
    (
        forged(SOLD, 13, sells=(events.Sale(position="7", percentage=50 * 10**6),)),
        "expected position '7', the sale that was asked for; found '1'",
    ),
    (forged(SOLD, 14, position=7), "expected something opened, enrolled or bought before; found 7, which never was"),
    (carried_out(TWICE, TWICE[13]), "expected position 1 to be open; found it closed"),
    (
        forged(SOLD, 14, outcome=1, price=600_000_000),
        "expected question and outcome 'rain', 0, of the position; found 'rain', 1",
    ),
    (carried_out(BITS, SALE, shares=0), "expected a percentage that sells shares; found 1 of 0.000002"),
    (forged(SOLD, 14, shares=626_000_000), "expected 625.00 shares, the percentage asked for; found 626.00"),
    (forged(SOLD, 14, cost=249_999_999), "expected a cost of 250.00, of the shares sold; found 249.999999"),
    (
        forged(SOLD, 14, proceeds=250_000_001),
        "expected proceeds of 250.00, of the shares at the price; found 250.000001",
    ),
    # what ends a position
    (forged(SETTLED, 13, outcome=1), "expected outcome 0, of the position; found 1"),
    (forged(SETTLED, 13, shares=1), "expected 1250.00 shares, of the position; found 0.000001"),
    (forged(SETTLED, 13, cost=0), "expected a cost of 500.00, of the position; found 0.00"),
    (forged(SETTLED, 13, payout=HALF), "expected a payout of 1, as resolved; found 0.5"),
    (forged(SETTLED, 13, proceeds=10**9), "expected an amount of 1250.00, what the position is worth; found 1000.00"),
    (forged(REFUNDED, 13, cost=499_000_000), "expected a cost of 500.00, of the position; found 499.00"),
    (forged(VOIDED, 13, amount=499_000_000), "expected an amount of 500.00, what the position is worth; found 499.00"),
    (forged(REVERSED, 15, reverses=12), "expected to reverse log position 13, which ended the position; found 12"),
    (forged(REVERSED, 15, amount=0), "expected an amount of 1250.00, what the position was settled with; found 0.00"),
    (forged(REVERSED, 15, outcome=1), "expected outcome 0, of the position; found 1"),
    ([*FLOOR, structs.replace(IN_PARTS, outcome=0)], "expected outcome -1 beside payouts; found 0"),
    ([*FLOOR, structs.replace(IN_PARTS, payouts=(HALF, 0))], "expected 2 payouts that sum to 1; found 0.5, 0"),
    (
        [*FLOOR, structs.replace(IN_PARTS, payouts=(3 * HALF, -HALF))],
        "expected payouts from 0 to below 1; found 1.5, -0.5",
    ),
]


@pytest.mark.parametrize(("log", "wrong"), OF_BOOKS, ids=[wrong for _, wrong in OF_BOOKS])
def test_what_is_wrong_with_the_books_is_found(log: list[AnyEvent], wrong: str) -> None:
    """At the last event, or where its command begins; everything before it is fine."""
    position, said = stopped_at(log)
    assert SAYS_BOTH.fullmatch(said), wrong
    assert [each.command_id for each in enveloped(log)][position - 1] == enveloped(log)[-1].command_id


def test_a_question_opened_only_after_its_forecast_is_named() -> None:
    """With the log position at which it is."""
    with pytest.raises(Corrupt, match=r"^log position 1: expected .* before; found 'rain', opened at log position 2$"):
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
def test_no_text_and_no_number_of_a_hostile_log_gets_far(log: list[AnyEvent]) -> None:
    """What is shown of it is short and printable."""
    _, said = stopped_at(log)
    assert SAYS_BOTH.fullmatch(said)
    assert said.isprintable()
    assert len(said) <= LONGEST
    told = told_of_reading(log)
    assert told.isprintable()
    assert len(told) <= LONGEST


def told_of_reading(log: list[AnyEvent]) -> str:
    """What stops whoever makes tables of these events, if anything does."""
    try:
        built(read(*log))
    except Corrupt as stopped:
        return str(stopped)
    return ""


def test_figures_are_told_as_they_are_printed_elsewhere() -> None:
    """Money with two decimals or more, prices with as many as they need, instants in UTC, ids in quotes."""
    assert money_text(-500_000_001) == "-500.000001"
    assert probability_text(HALF) == "0.5"
    assert probability_text(None) == "none"
    assert instant_text(CLOSES) == "1970-01-01T00:00:09Z"
    assert instant_text(2**70) == "1180591620717411303424 µs since 1970"
    assert short_reprs(("ada", 7)) == "'ada', 7"
    assert short_repr(10**31) == money_text(10**31) == "a number of more than 30 digits"
