"""Tests of decisions: which are accepted, what each attempt records, and an attempt that is sent again."""

from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.batching.batch import Receipt
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.commands import AnyCommand, ModelCall, RecordDecision
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import (
    AFTER,
    NOW,
    SUNDAY,
    TRADES,
    bet,
    cancellation,
    cohort,
    contest,
    day,
    decision,
    enrolment,
    entry,
    failed_call,
    finalization,
    given,
    market,
    micros,
    quote,
    ran,
    remembered,
    replied,
    resolution,
    revocation,
    sale,
    trading_floor,
)

TRADED, BOTH_TRADE = trading_floor(), trading_floor("ada", "bob")
DONE: list[AnyCommand] = [*TRADED, decision(), finalization("week")]
CUP: list[AnyCommand] = [contest(), enrolment()]
NOTHING = RecordDecision(at=TRADES, contest="week", participant="ada", period=1)
FAILED = decision(bet(side="up"))  # its only leg is refused
SUNDAYS = [day(8), day(15), day(22), day(29), "2026-04-05T00:00:00Z"]
RACE = [cohort(f"race {number}", rules="arena-v2", at=start) for number, start in enumerate(SUNDAYS, 1)]
FIFTH: list[AnyCommand] = [*trading_floor("ada", "bob", rules="arena-v2"), *RACE]
APRIL = "2026-04-05T00:05:00Z"  # in the sixth week from March 1
ANY_TIME = trading_floor("ada", "bob", rules=RuleSet(name="own", trading=Trading(period_days=0)))
LATER: list[AnyCommand] = [market(), cohort(starts_at=day(8)), entry("week", at=SUNDAY), enrolment("week")]


def of_period(period: int, at: str, **fields: Any) -> AnyCommand:
    """Return a decision for a period."""
    return decision(period=period, at=at, **fields)


def called(name: str, value: Any) -> ModelCall:
    """Return a call with one field."""
    return ModelCall(**{name: value})


Promise = tuple[str, str, str, list[AnyCommand], AnyCommand]
REFUSED: list[Promise] = [
    ("record_decision", *row)
    for row in [
        ("malformed", "response", TRADED, NOTHING),
        ("malformed", "response", TRADED, structs.replace(NOTHING, prompt="Decide.")),
        ("malformed", "call", TRADED, decision(call=ModelCall())),
        ("malformed", "call", TRADED, decision(call=ModelCall(settings={}, shown=()))),
        *[
            ("out_of_range", f"call.{name}", TRADED, decision(call=called(name, number)))
            for name in ("input_tokens", "output_tokens", "cost", "latency_ms")
            for number in (-1, 10**12 + 1)
        ],
        ("unknown_contest", "contest", TRADED, decision(contest="month")),
        ("contest_finalized", "contest", DONE, of_period(2, day(9))),
        ("not_trading", "contest", CUP, decision(contest="cup")),
        ("not_enrolled", "participant", TRADED, decision(participant="bob")),
        ("contest_complete", "contest", [*TRADED, decision()], of_period(2, day(9))),
        ("contest_complete", "contest", [*TRADED, decision(bet()), resolution(at=day(8))], of_period(2, day(9))),
        *[("wrong_period", "period", TRADED, of_period(number, TRADES)) for number in (-1, 0, 2, 2**40)],
        ("wrong_period", "period", TRADED, of_period(1, day(8))),
        ("wrong_period", "period", TRADED, of_period(2, "2026-03-07T23:59:59.999999Z")),
        ("wrong_period", "period", TRADED, of_period(0, "2026-02-28T23:59:59Z")),
        ("wrong_period", "period", TRADED, of_period(1, "2026-02-28T23:59:59Z")),
        ("wrong_period", "period", LATER, of_period(0, day(7))),  # the contest has not started
        ("wrong_period", "period", LATER, of_period(1, day(7))),
        ("wrong_period", "period", ANY_TIME, of_period(0, TRADES)),
        ("wrong_period", "period", ANY_TIME, of_period(1, "2026-02-28T23:59:59Z")),
        ("cohort_not_deciding", "contest", FIFTH, of_period(6, APRIL)),
        (
            "cohort_not_deciding",
            "contest",
            FIFTH,
            of_period(1, TRADES),
        ),  # newer cohorts in the log count, not their instants
        ("decision_taken", "period", [*BOTH_TRADE, decision()], decision(attempt=2)),
        ("decision_taken", "period", [*BOTH_TRADE, decision(bet())], decision(attempt=2)),
        ("decision_taken", "period", [*BOTH_TRADE, decision(bet(), bet(side="up"))], decision(attempt=2)),
        ("decision_taken", "period", [*BOTH_TRADE, replied("?"), replied("?", attempt=2)], decision(attempt=3)),
        ("decision_taken", "period", [*BOTH_TRADE, FAILED, decision(attempt=2)], decision(attempt=3)),
        ("decision_taken", "attempt", [*BOTH_TRADE, decision()], decision(bet())),  # that attempt, with other content
        ("decision_taken", "attempt", [*BOTH_TRADE, decision()], decision(at=day(3))),
        ("decision_taken", "attempt", [*BOTH_TRADE, FAILED], decision()),
        ("decision_taken", "attempt", [*BOTH_TRADE, replied("?")], replied("!")),
        *[("wrong_attempt", "attempt", TRADED, decision(attempt=number)) for number in (-1, 0, 2, 3, 2**40)],
        ("wrong_attempt", "attempt", [*TRADED, FAILED], decision(attempt=3)),
        ("wrong_attempt", "attempt", [*TRADED, replied("?")], decision(attempt=3)),
        ("wrong_attempt", "attempt", [*BOTH_TRADE, decision()], of_period(2, day(9), attempt=2)),
        ("out_of_order", "at", [*TRADED, FAILED], decision(at="2026-03-01T23:59:59Z", attempt=2)),
        ("out_of_order", "at", [*TRADED, replied("?")], decision(at=day(1, 23), attempt=2)),
        ("out_of_order", "at", [*ANY_TIME, decision(at=day(9))], of_period(2, day(8))),
    ]
]
REFUSED += [
    ("record_failed_call", *row)
    for row in [
        ("malformed", "call", TRADED, failed_call(call=ModelCall())),
        ("out_of_range", "call.cost", TRADED, failed_call(call=ModelCall(cost="-0.01"))),
        ("unknown_contest", "contest", TRADED, failed_call(contest="month")),
        ("contest_finalized", "contest", DONE, failed_call(period=2, at=day(9))),
        ("not_trading", "contest", CUP, failed_call(contest="cup")),
        ("not_enrolled", "participant", TRADED, failed_call("bob")),
        ("contest_complete", "contest", [*TRADED, decision()], failed_call(period=2, at=day(9))),
        ("wrong_period", "period", TRADED, failed_call(period=2)),
        ("cohort_not_deciding", "contest", FIFTH, failed_call(period=6, at=APRIL)),
        ("decision_taken", "period", [*BOTH_TRADE, decision()], failed_call()),
    ]
]
FUNCTIONS = ["record_decision", "record_failed_call"]


def test_a_failed_call_is_recorded_and_uses_up_no_attempt() -> None:
    """However often the provider fails, the first reply is attempt 1, and malformed replies are counted as before."""
    failures = [failed_call(error=error, at=TRADES) for error in ("503", "timeout", "503")]
    call = ModelCall(input_tokens=5_200, cost="0.0187", settings={"temperature": 0.7}, shown=("rain", "colour"))
    story = ran(*BOTH_TRADE, *failures, replied("?", call=call), failed_call(call=call), replied("?", attempt=2))
    kept = [event.text for event in story if isinstance(event, events.TextKept)]
    assert kept == ["?", "rain\ncolour"]
    failed = [event for event in story if isinstance(event, events.CallFailed)]
    assert [event.error for event in failed] == ["503", "timeout", "503", "503"]
    shown = sha256(b"rain\ncolour").hexdigest()
    recorded = events.ModelCall(input_tokens=5_200, cost=18_700, settings={"temperature": "0.7"}, shown=shown)
    assert [event.call for event in failed] == [None, None, None, recorded]
    malformed = [event for event in story if isinstance(event, events.DecisionMalformed)]
    assert [(event.attempt, event.call) for event in malformed] == [(1, recorded), (2, None)]
    assert isinstance(story[-1], events.DecisionDefaulted)


def test_the_same_failure_twice_is_recorded_twice_and_a_retry_once() -> None:
    """A failure has no number: its command id tells a retry from another failure."""
    with Ledger.open(":memory:", clock=lambda: 0) as ledger:
        for number, command in enumerate(TRADED):
            ledger.handle(command, f"c{number}")
        before = ledger.head().position
        for command_id in ("f1", "f2", "f1"):
            ledger.handle(failed_call(), command_id)
        assert ledger.head().position == before + 2


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ({"settings": {"temperature": None}}, "malformed"),
        ({"settings": {"tools": ["search"]}}, "malformed"),
        ({"settings": {"x": "y" * 10_001}}, "text_too_long"),
        ({"settings": {f"x{number}": "y" * 1_000 for number in range(11)}}, "text_too_long"),
        ({"settings": {"temperature": float("nan")}}, "not_finite"),
        ({"settings": {"temperature": 10**31}}, "out_of_range"),
        ({"shown": ("rain", " ")}, "id_not_plain"),
        ({"shown": ("rain\ncolour",)}, "id_not_plain"),
        ({"shown": ("",)}, "id_empty"),
        ({"cost": "much"}, "bad_number"),
        ({"cost": True}, "bad_number"),
        ({"input_tokens": 1.5}, "malformed"),
        ({"latency_ms": "1"}, "malformed"),
    ],
)
@pytest.mark.parametrize("command", [decision(), failed_call()], ids=["decision", "failed call"])
def test_a_field_of_a_call_that_is_not_what_it_should_be_is_refused(
    command: AnyCommand, call: dict[str, Any], code: str
) -> None:
    """Nothing is recorded; ids are listed one a line, so that no id may have a line break."""
    outcome = given(*TRADED).when(structs.replace(command, call=ModelCall(**call))).outcome
    assert isinstance(outcome, Refused)
    assert outcome.code == code


def test_a_setting_is_recorded_as_its_text() -> None:
    """A number is the same setting as its decimal text, so that both are one command; its digits are kept."""
    for value, text in [
        (0.7, "0.7"),
        ("0.70", "0.70"),
        (Decimal("1E+2"), "100"),
        (True, "true"),
        (0, "0"),
        (-0.5, "-0.5"),
    ]:
        [recorded] = ran(*TRADED, decision(call=ModelCall(settings={"x": value})))[-1:]
        assert isinstance(recorded, events.DecisionRecorded)
        assert recorded.call == events.ModelCall(settings={"x": text})


# Two faults at once: the two codes, the one to report first, the history and the command.
ORDER: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("malformed", "unknown_contest", [], NOTHING),
    ("malformed", "contest_complete", [*TRADED, decision()], structs.replace(NOTHING, attempt=2)),
    ("contest_finalized", "not_enrolled", DONE, decision(participant="bob")),
    ("contest_finalized", "contest_complete", DONE, of_period(2, day(9))),
    ("not_trading", "not_enrolled", CUP, decision(contest="cup", participant="bob")),
    ("not_trading", "wrong_period", CUP, decision(contest="cup", period=0)),
    ("not_enrolled", "contest_complete", [*TRADED, decision()], decision(participant="bob")),
    ("not_enrolled", "wrong_period", TRADED, decision(participant="bob", period=0)),
    ("contest_complete", "wrong_period", [*TRADED, decision()], of_period(3, day(9))),
    ("contest_complete", "decision_taken", [*TRADED, decision()], decision(attempt=2)),
    ("contest_complete", "wrong_attempt", [*TRADED, decision()], of_period(2, day(9), attempt=2)),
    ("wrong_period", "cohort_not_deciding", FIFTH, of_period(5, APRIL)),
    ("wrong_period", "decision_taken", [*BOTH_TRADE, decision()], of_period(1, day(9), attempt=2)),
    ("wrong_period", "wrong_attempt", TRADED, of_period(2, TRADES, attempt=2)),
    ("wrong_period", "out_of_order", [*BOTH_TRADE, of_period(2, day(9))], of_period(2, TRADES, attempt=2)),
    ("cohort_not_deciding", "decision_taken", [*FIFTH[:-5], decision(), *RACE], decision(attempt=2)),
    ("cohort_not_deciding", "wrong_attempt", FIFTH, of_period(6, APRIL, attempt=2)),
    ("decision_taken", "wrong_attempt", [*BOTH_TRADE, decision()], decision(attempt=7)),
    ("decision_taken", "out_of_order", [*BOTH_TRADE, decision()], decision(attempt=2, at=day(1, 1))),
    ("wrong_attempt", "out_of_order", [*TRADED, FAILED], decision(attempt=3, at=day(1, 1))),
]


OF_KEY: dict[str, Any] = {"contest": "week", "participant": "ada", "period": 1}


def test_to_hold_is_recorded_and_takes_the_decision() -> None:
    """The event has the reasoning, and the attempt 1 by default; there is no other event."""
    held = events.DecisionRecorded(at=micros(2), **OF_KEY, attempt=1, action="HOLD", reasoning="It will.")
    given(*BOTH_TRADE).when(decision()).records(held)
    given(*BOTH_TRADE).when(decision(action="Hold")).records(held)


def test_the_periods_of_a_week_run_from_sunday_to_saturday() -> None:
    """Each period has one decision, from its first instant to its last."""
    story = [of_period(1, SUNDAY), of_period(2, day(8)), of_period(4, day(22)), of_period(5, day(29))]
    late = of_period(3, "2026-03-21T23:59:59.999999Z")
    assert len(ran(*BOTH_TRADE, *story[:2], late, *story[2:])) == len(ran(*BOTH_TRADE)) + 5


def test_a_period_without_days_is_just_a_number() -> None:
    """Periods may be in any order, at any instant from the start on, but instants must not decrease."""
    story = [of_period(7, TRADES), of_period(2, TRADES), of_period(1, day(9)), of_period(10**9, day(9))]
    assert len(ran(*ANY_TIME, *story)) == len(ran(*ANY_TIME)) + 4
    given(*ANY_TIME).when(of_period(10**9 + 1, TRADES)).refuses("wrong_period", "period")


def test_the_five_newest_cohorts_decide_where_the_rules_say_five() -> None:
    """With four newer cohorts, a cohort is the fifth; other series, and earlier weeks, do not count.

    Source: Forecaster Arena's published code.
    """
    others = [cohort(f"b {number}", rules="arena-v2", at=at, series="b") for number, at in enumerate(SUNDAYS)]
    earlier = cohort("earlier", rules="arena-v2", at="2026-02-22T00:00:00Z")
    history = [*FIFTH[:-1], *others, earlier]
    assert isinstance(given(*history).when(of_period(6, APRIL)).outcome, list)
    enrolled = enrolment("race 1")
    assert isinstance(given(*FIFTH, enrolled).when(of_period(5, APRIL, contest="race 1")).outcome, list)


def test_every_cohort_decides_where_the_rules_do_not_say() -> None:
    """In the first methodology, a cohort decides until it is complete."""
    newer = [cohort(f"race {number}", at=at) for number, at in enumerate(SUNDAYS)]
    assert isinstance(given(*BOTH_TRADE, *newer).when(of_period(6, APRIL)).outcome, list)


PROMPT, SAID = "Decide.", '{"action": "HOLD", "reasoning": "Wait."}'


def text_kept(text: str, at: int = micros(2)) -> events.TextKept:
    """Return the event that stores a text under its digest."""
    return events.TextKept(at=at, digest=sha256(text.encode()).hexdigest(), text=text)


def held_after(prompt: str, response: str, **fields: Any) -> events.DecisionRecorded:
    """Return the event of a HOLD that names the digests of its prompt and response."""
    texts = {"prompt": sha256(prompt.encode()).hexdigest(), "response": sha256(response.encode()).hexdigest()}
    defaults = {"at": micros(2), **OF_KEY, "attempt": 1, "action": "HOLD", "reasoning": "Wait."}
    return events.DecisionRecorded(**(defaults | texts | fields))


def test_prompt_and_reply_are_stored_before_the_decision_that_names_them() -> None:
    """Texts are stored whole, under the SHA-256 of their UTF-8.

    Source: Forecaster Arena, Methodology v1, "Reproducibility and Auditability".
    """
    given(*BOTH_TRADE).when(replied(SAID, prompt=PROMPT)).records(
        text_kept(PROMPT), text_kept(SAID), held_after(PROMPT, SAID)
    )


def test_a_text_is_stored_once() -> None:
    """A text that the log already has, from any participant and in any role, is named and not stored again."""
    history = [*BOTH_TRADE, replied(SAID, prompt=PROMPT)]
    given(*history).when(replied(SAID, "bob", prompt=PROMPT)).records(held_after(PROMPT, SAID, participant="bob"))
    given(*history).when(replied(SAID, "bob", prompt="?")).records(
        text_kept("?"), held_after("?", SAID, participant="bob")
    )
    given(*BOTH_TRADE).when(replied(SAID, prompt=SAID)).records(text_kept(SAID), held_after(SAID, SAID))


def test_a_reply_that_is_not_a_decision_is_recorded_with_its_fault() -> None:
    """The attempt is used up, and no shares are bought."""
    malformed = events.DecisionMalformed(
        at=micros(2), **OF_KEY, attempt=1, fault="unreadable", response=text_kept("No.").digest
    )
    given(*BOTH_TRADE).when(replied("No.")).records(text_kept("No."), malformed)


def test_after_two_malformed_attempts_one_holds_by_default() -> None:
    """The default is an event of its own in the same transaction, so that it differs from a chosen HOLD."""
    second = events.DecisionMalformed(
        at=micros(2),
        **OF_KEY,
        attempt=2,
        fault="no_reasoning",
        response=text_kept('{"action":"HOLD","reasoning":""}').digest,
    )
    defaulted = events.DecisionDefaulted(at=micros(2), **OF_KEY)
    given(*BOTH_TRADE, replied("No.")).when(decision(attempt=2, reasoning="")).records(
        text_kept('{"action":"HOLD","reasoning":""}'), second, defaulted
    )


def test_a_malformed_attempt_may_be_followed_by_a_good_one() -> None:
    """Both attempts stay in the log."""
    outcome = given(*BOTH_TRADE, replied("No.")).when(decision(bet(), attempt=2)).outcome
    assert isinstance(outcome, list)
    assert [type(event) for event in outcome] == [events.DecisionRecorded, events.SharesBought]


def test_only_malformed_attempts_count_towards_the_default() -> None:
    """An attempt whose legs were all refused was a decision; the default comes with the second malformed attempt."""
    outcome = given(*BOTH_TRADE, FAILED).when(replied("No.", attempt=2)).outcome
    assert isinstance(outcome, list)
    assert [type(event) for event in outcome] == [events.TextKept, events.DecisionMalformed]
    story = [*BOTH_TRADE, replied("No."), structs.replace(FAILED, attempt=2)]
    outcome = given(*story).when(replied("No.", attempt=3)).outcome
    assert isinstance(outcome, list)
    assert [type(event) for event in outcome] == [events.DecisionMalformed, events.DecisionDefaulted]


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_the_rules_say_after_how_many_malformed_attempts_one_holds(most: int) -> None:
    """The number may be 1."""
    rules = RuleSet(name="own", trading=Trading(attempts=most))
    story = ran(*trading_floor(rules=rules), *[replied("No.", attempt=number) for number in range(1, most + 1)])
    kinds = [type(event) for event in story if isinstance(event, events.DecisionMalformed | events.DecisionDefaulted)]
    assert kinds == [events.DecisionMalformed] * most + [events.DecisionDefaulted]


def test_attempts_whose_legs_were_all_refused_may_be_followed_by_others_without_end() -> None:
    """All of them stay in the log, so that attempts and their texts can be counted."""
    tries = [decision(bet(side="up"), attempt=number) for number in range(1, 6)]
    story = ran(*BOTH_TRADE, *tries, decision(bet(), attempt=6))
    recorded = [event for event in story if isinstance(event, events.DecisionRecorded)]
    assert [(event.attempt, event.executed) for event in recorded] == [(n, 0) for n in range(1, 6)] + [(6, 1)]


def test_one_leg_carried_out_takes_the_decision_though_others_were_refused() -> None:
    """Any leg may be the one; `executed` is the number of legs that were carried out."""
    outcome = given(*BOTH_TRADE).when(decision(bet(side="up"), bet(), bet(amount=2_500))).outcome
    assert isinstance(outcome, list)
    first, *legs = outcome
    assert isinstance(first, events.DecisionRecorded)
    assert first.executed == 1
    assert [type(leg) for leg in legs] == [events.LegRefused, events.SharesBought, events.LegRefused]


def test_a_decision_is_recorded_as_it_was_written() -> None:
    """Sides and ids are recorded as written, even if they do not exist."""
    outcome = given(*BOTH_TRADE).when(decision(bet("99.9999995", "yEs", "Rain "))).outcome
    assert isinstance(outcome, list)
    assert isinstance(outcome[0], events.DecisionRecorded)
    assert outcome[0].bets == (events.Bet(question="Rain ", side="yEs", amount=100_000_000),)
    outcome = given(*BOTH_TRADE).when(decision(sale("0.9999996", 12), sale(50, "twelve"))).outcome
    assert isinstance(outcome, list)
    assert isinstance(outcome[0], events.DecisionRecorded)
    sales = (events.Sale(position="12", percentage=1_000_000), events.Sale(position="twelve", percentage=50_000_000))
    assert outcome[0].sells == sales


def test_a_reopened_contest_takes_decisions_again() -> None:
    """A revoked resolution opens positions, so the contest is not complete any more."""
    history = [*TRADED, decision(bet()), resolution(at=day(8))]
    given(*history).when(of_period(2, day(9))).refuses("contest_complete", "contest")
    assert isinstance(given(*history, revocation(at=day(9))).when(of_period(2, day(9))).outcome, list)
    history = [*TRADED, decision(bet()), cancellation(at=day(8)), revocation(at=day(9))]
    assert isinstance(given(*history).when(of_period(2, day(9))).outcome, list)


def test_one_enrolled_in_two_contests_decides_in_each() -> None:
    """Keys are contest, participant and period, and the order of instants is checked in each contest alone."""
    other: list[AnyCommand] = [cohort("other", series="b"), entry("other"), enrolment("other")]
    story = ran(*BOTH_TRADE, *other, decision(at=day(3)), decision(bet(), contest="other"))
    assert isinstance(story[-1], events.SharesBought)


def with_id(command_id: str, command: AnyCommand) -> AnyCommand:
    """Return the command with an id."""
    return structs.replace(command, id=command_id)


SETTING = [with_id(f"c{number}", command) for number, command in enumerate(BOTH_TRADE)]
BETTING = decision(bet(), bet(50, "no"), bet(50, "up"), prompt=PROMPT)  # a text, the decision, and three legs


def summary(outcome: Receipt | Refused) -> tuple[Any, ...]:
    """Return the outcome of a command in short form."""
    if isinstance(outcome, Refused):
        return outcome.code, outcome.field
    return outcome.command_id, outcome.first, outcome.last, outcome.duplicate


@pytest.mark.parametrize("batched", [False, True])
def test_a_recorded_attempt_sent_again_under_another_id_is_a_duplicate(tmp_path: Path, batched: bool) -> None:
    """Overlapping runs must not trade twice: the first receipt is returned, also in the same batch or after a restart.

    Numbers may be in another notation; other content is refused. Source: Forecaster Arena, Methodology v1, "Idempotency
    and claim-before-call".
    """
    again = decision(bet("500.00"), bet(5e1, "no"), bet("50", "up"), prompt=PROMPT, at="2026-03-02T01:00:00+01:00")
    other = decision(bet("500.000001"), bet(50, "no"), bet(50, "up"), prompt=PROMPT)
    calls = [with_id("first", BETTING), with_id("second", again), with_id("third", other), with_id("first", again)]
    first = len(ran(*BOTH_TRADE)) + 1
    expected: list[Any] = [("first", first, first + 4, False), ("second", first, first + 4, True)]
    expected += [("decision_taken", "attempt"), ("first", first, first + 4, True)]
    with Ledger.open(tmp_path / "a.db", clock=lambda: NOW) as ledger:
        ledger.handle_many(SETTING)
        outcomes = ledger.handle_many(calls) if batched else [ledger.handle_many([call])[0] for call in calls]
        assert [summary(outcome) for outcome in outcomes] == expected
        before = remembered(ledger)
    with Ledger.open(tmp_path / "a.db", clock=lambda: NOW) as reopened:
        assert reopened.head().position == first + 4
        assert remembered(reopened) == before
        assert [summary(outcome) for outcome in reopened.handle_many(calls[1:])] == expected[1:]


def test_every_attempt_is_recognized() -> None:
    """A malformed, defaulted, refused or taken attempt is recognized, whatever was recorded since."""
    attempts = [replied("No."), structs.replace(FAILED, attempt=2), replied("No.", attempt=3)]
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle_many(SETTING)
        first = [ledger.handle(command, f"a{number}") for number, command in enumerate(attempts)]
        ledger.handle(resolution(at=AFTER), "r")
        for number, command in enumerate(attempts):
            receipt = ledger.handle(command, f"again-{number}")
            assert summary(receipt) == (f"again-{number}", first[number].first, first[number].last, True)


def test_an_attempt_that_was_undone_with_its_batch_is_not_recognized() -> None:
    """A refused atomic batch leaves cash, positions, texts, attempts, cohorts and quotes unchanged."""
    batch: list[AnyCommand] = [
        *[with_id("b1", BETTING), with_id("b2", replied("No.", "bob", prompt="?")), with_id("b3", quote(at=day(3)))],
        *[with_id("b4", cohort("next", at=day(8))), with_id("b5", cohort("other", series="new"))],
        *[
            with_id("b6", resolution()),
            with_id("b7", revocation()),
            with_id("b8", cancellation()),
            with_id("b9", BETTING),
        ],
    ]
    bad = with_id("bad", decision(participant="nobody"))
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle_many(SETTING)
        before, head = remembered(ledger), ledger.head()
        outcomes = ledger.handle_many([*batch, bad], atomic=True)
        codes = [outcome.code for outcome in outcomes if isinstance(outcome, Refused)]
        assert codes == ["batch_refused"] * 9 + ["not_enrolled"]
        assert remembered(ledger) == before
        assert ledger.head() == head
        outcomes = ledger.handle_many(batch, atomic=True)
        assert [outcome.duplicate for outcome in outcomes if isinstance(outcome, Receipt)] == [False] * 8 + [True]


def test_two_writers_of_one_file_take_a_decision_once(tmp_path: Path) -> None:
    """The second writer finds it recorded, although it was not when that writer last read the log."""
    path = tmp_path / "a.db"
    with Ledger.open(path, clock=lambda: NOW) as one, Ledger.open(path, clock=lambda: NOW) as other:
        one.handle_many(SETTING)
        other.head()
        first = one.handle(BETTING, "one")
        assert summary(other.handle(BETTING, "other")) == ("other", first.first, first.last, True)
        with pytest.raises(Refused, match="decision_taken"):
            other.handle(decision(), "third")
        assert one.head() == other.head()


def test_a_participant_who_misses_the_first_period_decides_later() -> None:
    """The first decision of a participant counts in any period; otherwise a missed week would keep a contest open
    forever.
    """
    story: list[AnyCommand] = [*BOTH_TRADE, decision(), decision(participant="bob", period=2, at=day(9))]
    given(*BOTH_TRADE, decision()).when(finalization("week")).refuses("contest_not_complete", "contest")
    assert isinstance(ran(*story, finalization("week"))[-1], events.ContestFinalized)
    given(*story).when(decision(participant="bob", period=3, at=day(16))).refuses("contest_complete", "contest")
