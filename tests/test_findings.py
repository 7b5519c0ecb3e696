"""What is said of a log that cannot be: what was expected and what was found, in the units that are printed."""

import re
from hashlib import sha256
from typing import Any

import pytest
from msgspec import structs

from ledger import events
from ledger.errors import Corrupt
from ledger.events import AnyEvent
from ledger.findings import chance, instant, money, named, several
from ledger.rules import RuleSet
from ledger.trading import Trading
from projections.projection import Projections
from tests import oracle
from tests.given import (
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
from tests.test_checks import CLOSES, HALF, IMPOSSIBLE, OPENS, added, binary, contest, forecast, read

SAYS_BOTH = re.compile(r"log position \d+: (\w+\.v1: )?expected .+; found .{1,120}")
LONGEST = 250  # characters, where ids are as long as those that are shortened

# Of the logs of test_checks: they open at the first second of 1970 and close at the ninth; the pool is 100.
OF_CHECKS = {
    "a question opened twice": "question_opened.v1: expected a question id not used before; "
    "found 'rain', opened at log position 1",
    "a binary question with a range": "question_opened.v1: expected outcomes and no range of a binary question; "
    "found a range, 2 outcomes",
    "a numeric question with outcomes": "question_opened.v1: expected a range and no outcomes of a numeric question; "
    "found a range, 2 outcomes",
    "an outcome named twice": "question_opened.v1: expected two outcomes or more, each once; "
    "found 2, of which 1 differ",
    "a range of too many bins": "question_opened.v1: expected 1 to 10000 bins, or levels instead; "
    "found 10001 bins, 0 levels",
    "bins and levels": "question_opened.v1: expected 1 to 10000 bins, or levels instead; found 2 bins, 3 levels",
    "a close at the opening": "question_opened.v1: expected a close after 1970-01-01T00:00:01Z, the opening, "
    "and at most at 2070-01-01T00:00:01Z; found 1970-01-01T00:00:01Z",
    "a close a µs beyond the calendar": "question_opened.v1: expected an instant of the years 1 to 9999 for the "
    "opening, and one after it for the close; found 9999-12-31T23:59:59.999999Z, 253402300800000000 µs since 1970",
    "a hidden period beyond the close": "question_opened.v1: expected a reveal after 1970-01-01T00:00:01Z "
    "and until 1970-01-01T00:00:09Z; found 1970-01-01T00:00:09.000001Z",
    "an event beyond the calendar": "question_opened.v1: expected an instant of the years 1 to 9999; "
    "found 4611686018427387904 µs since 1970",
    "a close of an unknown question": "question_closed.v1: expected something opened, enrolled or bought before; "
    "found 'rain', which never was",
    "a forecast on an unknown question": "expected a question opened before; found 'rain', which never was",
    "a forecast of three outcomes on two": "expected 2 numbers, one for each outcome, edge or level; found 3",
    "a forecast that sums to less than one": "expected probabilities that sum to 1; found 0.999999999",
    "a negative probability": "expected numbers from 0 to 1; found -0.000000001 to 1.000000001",
    "a cdf beyond one": "expected numbers from 0 to 1; found 0 to 1.0000000001",
    "a cdf that decreases": "expected a cdf, or quantiles, that never fall; found 0.0000000005 and then 0.0000000004",
    "quantiles that decrease": "expected a cdf, or quantiles, that never fall; found 0.3 and then 0.2",
    "a quantile too large": "expected numbers from -1000000000000 to 1000000000000; found 0.1 to 1000000000000.1",
    "a quantile of more than 64 bits": "expected numbers of at most 64 bits, here and soon after; found a larger one",
    "a forecast a µs before the calendar": "expected an instant of the years 1 to 9999; "
    "found -62135596800000001 µs since 1970",
    "a forecast at the early close": "expected a forecast or withdrawal before 1970-01-01T00:00:08.999998Z, the close; "
    "found 1970-01-01T00:00:08.999998Z",
    "a forecast after an answer, taken back and given again": "expected question 'rain' to be neither resolved nor "
    "annulled; found that it has been since log position 4",
    "an outcome that is not there": "question_resolved.v1: expected an outcome from 0 to 1; found 2",
    "a bin beyond the open end": "question_resolved.v1: expected an outcome from 0 to 3; found 4",
    "an answer known before the opening": "question_resolved.v1: expected an answer known from 1970-01-01T00:00:01Z, "
    "the opening, on; found 1970-01-01T00:00:00.999999Z",
    "an answer known after it was given": "question_resolved.v1: expected an answer known by 1970-01-01T00:00:09Z, "
    "when it was given; found 1970-01-01T00:00:09.000001Z",
    "a numeric answer that is no number": "question_resolved.v1: expected a plain number as the answer; found 'much'",
    "an answer beyond what the unit of its question can count": "question_resolved.v1: expected a plain number "
    "within 1000000000000 of 0 as the answer; found '1000000000000.1'",
    "a second resolution": "question_resolved.v1: expected question 'rain' to be neither resolved nor annulled; "
    "found that it has been since log position 2",
    "a second annulment": "question_annulled.v1: expected question 'rain' not to be annulled; "
    "found that it has been since log position 2",
    "a revocation of nothing": "resolution_revoked.v1: expected question 'rain' to be resolved or annulled; "
    "found nothing to revoke",
    "an early close at the close": "question_closed.v1: expected an early close after 1970-01-01T00:00:01Z "
    "and before 1970-01-01T00:00:09Z; found 1970-01-01T00:00:09Z",
    "an early close of a resolved question": "question_closed.v1: expected question 'rain' to be neither resolved nor "
    "annulled; found that it has been since log position 2",
    "a contest opened twice": "contest_opened.v1: expected a contest id not used before; "
    "found 'cup', opened at log position 1",
    "a pool that its unit does not divide": "contest_opened.v1: expected a pool of 0 to 1000000000000.00, "
    "in whole units of 0.01; found 0.015",
    "a negative payable unit": "contest_opened.v1: expected a payable unit above 0; found -0.000001",
    "a question added twice": "question_added.v1: expected question 'rain' not to be in the contest; "
    "found that it has been since log position 3",
    "a weight beyond a million": "question_added.v1: expected a weight above 0 and up to 1000000; found 1000000.000001",
    "a spot after the close": "question_added.v1: expected a spot from 1970-01-01T00:00:01Z to 1970-01-01T00:00:09Z; "
    "found 1970-01-01T00:00:09.000001Z",
    "a hidden weight without a hidden period": "question_added.v1: expected no hidden coverage weight, "
    "for there is no hidden period; found 1",
    "a hidden weight beyond one": "question_added.v1: expected a hidden coverage weight of 0 to 1; found 1.000001",
    "a hidden weight below one with nothing after it": "question_added.v1: expected a hidden coverage weight of 1, "
    "for all of the period is hidden; found 0.999999",
    "a question added to a finalized contest": "question_added.v1: expected contest 'cup' not to be finalized; "
    "found that it has been since log position 3",
    "a prize of a contest not finalized": "prize_paid.v1: expected contest 'cup' to be finalized; found that it is not",
    "bounds that are one": "question_opened.v1: expected bounds that are plain numbers, the lower first; "
    "found '1', '1.0'",
    "a zero point within the range": "question_opened.v1: expected a number outside the bounds '1', '3' as zero point; "
    "found '2'",
    "decimals of a cdf": "question_opened.v1: expected no decimals beside bins; found 1",
    "too many decimals": "question_opened.v1: expected 0 to 12 decimals; found 13",
    "levels that decrease": "question_opened.v1: expected levels above 0 that rise to below 1; "
    "found 0.5 and then 0.000000001",
    "a bound beyond what its unit can count": "question_opened.v1: expected bounds within 1000000000000 of 0; "
    "found '0', '1000000000000.1'",
    "rules without a kernel": "contest_opened.v1: expected rules that fit together: no kernel and no trading: nothing "
    "could be scored; found kernel none",
    "a logarithm without a floor": "contest_opened.v1: expected rules that fit together: a logarithm needs "
    "least_probability_ppm, least_density_ppm and open_end_ppm above 0; "
    "found kernel ln, least_probability_ppm 0, least_density_ppm 10000, open_end_ppm 50000",
    "quantiles where a cdf is scored": "question_added.v1: expected a question that its contest can score; "
    "found 'flow': its rule set has no quantile_kernel",
    "a prize paid twice": "prize_paid.v1: expected one prize of 'ada'; found one paid at log position 3 already",
    "prizes that add up beyond the pool": "prize_paid.v1: expected a prize of at most 0.01, what is left of the pool; "
    "found 0.02",
    "a prize that is not payable": "prize_paid.v1: expected a prize above 0, in whole units of 0.01; found 0.015",
    "an attested release of no date": "expected a year, month, day or instant as model_released of an attestation; "
    "found '2022-13'",
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_every_refusal_of_the_checks_names_what_was_expected_and_found(name: str) -> None:
    """In one form and on one line."""
    with pytest.raises(Corrupt) as stopped:
        read(*IMPOSSIBLE[name])
    said = str(stopped.value)
    assert SAYS_BOTH.fullmatch(said)
    assert len(said) <= LONGEST
    assert name not in OF_CHECKS or said == f"log position {len(IMPOSSIBLE[name])}: {OF_CHECKS[name]}"


def test_every_message_that_is_written_out_is_tried() -> None:
    """No name above is of a log that there is not."""
    assert OF_CHECKS.keys() <= IMPOSSIBLE.keys()


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


@pytest.mark.parametrize(("log", "says"), OF_BOOKS, ids=[says for _, says in OF_BOOKS])
def test_what_is_wrong_with_the_books_is_said_in_figures(log: list[AnyEvent], says: str) -> None:
    """At the last event, after its name; everything before it is fine."""
    read(*log[:-1])
    with pytest.raises(Corrupt) as stopped:
        read(*log)
    said = str(stopped.value)
    assert said == f"log position {len(log)}: {events.TAGS[type(log[-1])]}: {says}"
    assert SAYS_BOTH.fullmatch(said)


def test_what_is_due_where_the_log_goes_on_with_forecasts_is_named() -> None:
    """They are no part of the books."""
    said = events.ForecastMade(at=micros(2), question="rain", participant="ada", probabilities=(HALF, HALF))
    with pytest.raises(Corrupt) as stopped:
        read(*BOUGHT[:10], said)
    assert str(stopped.value) == (
        "log position 11: expected shares_bought.v1 or leg_refused.v1, which is due here; "
        "found a forecast or a withdrawal"
    )


@pytest.mark.parametrize(
    ("log", "says"),
    [
        (
            [binary(), forecast(at=OPENS + 2, probabilities=(HALF, HALF)), forecast(probabilities=(HALF, HALF))],
            (
                "expected an instant from 1970-01-01T00:00:01.000002Z on, of the participant's last one on the "
                "question; found 1970-01-01T00:00:01Z"
            ),
        ),
        (
            [binary(), events.ForecastWithdrawn(at=OPENS, question="rain", participant="ada")],
            "expected a forecast of the participant's on the question to withdraw; found none that stands",
        ),
    ],
)
def test_what_is_wrong_between_forecasts_of_one_participant_is_said(log: list[AnyEvent], says: str) -> None:
    """It is found where forecasts are put in order."""
    with pytest.raises(Corrupt) as stopped:
        Projections(read(*log)).table("standing")
    assert str(stopped.value) == f"log position {len(log)}: {says}"


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
    with pytest.raises(Corrupt) as stopped:
        read(*log)
    said = str(stopped.value)
    assert SAYS_BOTH.fullmatch(said)
    assert said.isprintable()
    assert len(said) <= LONGEST


def test_figures_are_told_as_they_are_printed_elsewhere() -> None:
    """Money with two decimals or more, prices with as many as they need, instants in UTC, ids in quotes."""
    assert money(-500_000_001) == "-500.000001"
    assert chance(HALF) == "0.5"
    assert chance(None) == "none"
    assert instant(CLOSES) == "1970-01-01T00:00:09Z"
    assert instant(2**70) == "1180591620717411303424 µs since 1970"
    assert several(("ada", 7)) == "'ada', 7"
    assert named(10**31) == money(10**31) == "a number of more than 30 digits"
