"""Tests of deciding a log again: logs of the decider pass, and logs that it cannot have written do not."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from forecast_ledger.ledger.auditing.quick_check import ForecastCheck
from forecast_ledger.ledger.auditing.rebuild import LOST_DETAILS, REBUILDERS
from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import events, replies
from forecast_ledger.ledger.model.commands import AnyCommand, ModelCall, Prices, Range, read
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import FORMER_PRESETS, PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import REPLY_FAULTS, Trading
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.writing.store import pay, prizes_from_log
from tests.ledger.model.test_mismatch import SAYS_BOTH
from tests.support import oracle
from tests.support.effort import LONG, times
from tests.support.forging import audited, chained, in_first_form, written
from tests.support.given import (
    AFTER,
    annulment,
    bet,
    cancellation,
    cash_out,
    choices,
    closing,
    contest,
    day,
    decision,
    deposit,
    enrolment,
    ensemble,
    entry,
    exclusion,
    failed_call,
    finalization,
    forecast,
    micros,
    numeric,
    opened,
    payment,
    quartiles,
    quote,
    quotes,
    renaming,
    replied,
    resolution,
    revocation,
    sale,
    sold,
    traded,
    trading_floor,
    withdrawal,
    won,
)
from tests.support.seasons import Season, drawn_rules
from tests.support.trading_seasons import Season as TradingSeason
from tests.system.test_stories import STORIES, recorded

SEEDS = range(4)
CUTS = 12 if LONG == 1 else 10**9  # the most positions at which a log is cut
YES = 10**9


def of_season(seed: int) -> list[Recorded]:
    """Return the rows that a ledger records for forecasts under random rules."""
    random = Random(seed)
    return Season(
        random,
        *(drawn_rules(random) for _ in range(2)),
        ending=0.2,
        uncounted=0.2,
        quoted=0.5,
        paid=0.3,
        restated=0.5,
        moved=0.4,
        changing=0.5,
    ).recorded()


def of_trading(seed: int, steps: int = 60) -> list[Recorded]:
    """Return the rows that a ledger records for trading: in batches, each sent twice, with a clock that jumps."""
    random, now = Random(seed), [0]
    commands_sent = TradingSeason(seed, steps, fees=True, sides=True).commands()
    with Ledger.open(":memory:", clock=lambda: now[0], prizes=prizes_from_log) as ledger:
        while commands_sent:
            size = random.randint(1, 9)
            now[0] += random.choice([-7, 0, 11])
            for _ in range(random.choice([1, 2])):
                ledger.handle_many(commands_sent[:size])
            commands_sent = commands_sent[size:]
        return [recorded for page in ledger.read() for recorded in page]


def cuts_of(log: Sequence[Recorded], first: int) -> range:
    """Return the positions at which a log is cut, from the first on."""
    return range(first, len(log), max(1, len(log) // CUTS))


# --- honest logs


@pytest.mark.parametrize("story", STORIES)
def test_a_story_is_decided_as_it_was(story: str) -> None:
    """Every command digest is rebuilt, in pages of any size and up to any position."""
    log = recorded(story)
    for page in (1, 3, 500):
        assert audited(log, page=page).lossy_commands == 0
    for end in cuts_of(log, len(log) % 3):
        audited(log[:end], cut=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_season_is_decided_as_it_was(seed: int) -> None:
    """Random questions, rules, refusals, corrections and seals pass; so does trading."""
    audited(of_season(seed), page=7)
    log = of_trading(seed)
    audited(log, page=7)
    for end in cuts_of(log, seed):
        audited(log[:end], cut=True)


CALL = ModelCall(
    input_tokens=5_200,
    output_tokens=0,
    cost="0.0187",
    latency_ms=8_250,
    settings={"temperature": 0.70, "seed": 7, "tools": False, "effort": "high"},
    shown=("rain", "colour"),
)
RED = Prices(question="colour", prices={"red": "0.25", "blue": "0.7"})
OF_ELSEWHERE = RuleSet(name="elsewhere", trading=Trading(recorded_trades=True))
RECAPITALISED = RuleSet(name="open", trading=Trading(recapitalisation=True))
EXACT: dict[str, list[AnyCommand]] = {
    "questions of every kind": [opened(), choices(), numeric(bins=4), quartiles(), numeric("log", zero_point="-1")],
    "questions with details": [
        opened(group="g", category="c", tags=("t",), url="u", source="s"),
        opened("no tags", tags=()),
        opened("no address", url=""),
        opened("nothing", tags=(), url="", source=""),
    ],
    "questions that say whether there is an order": [choices(ordered=True), choices("c", ordered=False), choices("d")],
    "a value and a name": [
        numeric(open_upper=True),
        resolution("depth", outcome="above_upper_bound"),
        opened("count", kind="discrete", range=Range(lower="-0.5", upper="2.5", bins=3)),
        resolution("count", value=2),
    ],
    "a withdrawal": [opened(), forecast(), withdrawal()],
    "forecasts with an end": [opened(), forecast(until=day(12)), forecast(at=day(13), until=day(25))],
    "an early close": [opened(), closing()],
    "an answer": [opened(), resolution()],
    "an answer known before": [opened(), resolution(known_at=day(14))],
    "an answer as payouts": [opened(), resolution(outcome=None, payouts={"yes": "0.4", "no": "0.6"})],
    "an answer as payouts of one": [opened(), resolution(outcome=None, payouts={"yes": "0", "no": "1.0"})],
    "a number": [numeric(bins=4), resolution("depth", outcome=None, value="1.50")],
    "a stake refunded": [*trading_floor(), decision(bet(500)), cancellation(policy="refund_stake"), revocation()],
    "an annulment revoked": [opened(), annulment(), revocation(), cancellation(policy="void_trades")],
    "an annulment with refunds": [opened(), cancellation(policy="refund_cost")],
    "contests": [contest(), contest("b", pool=0), contest("c", pool="12.50", currency="EUR", title="C")],
    "a contest and its questions": [opened(reveals_at=day(12)), contest(), entry(hidden_coverage_weight="0.5")],
    "names": [contest(), enrolment(entrant="team", bot=True, family="f"), exclusion(), finalization()],
    "prizes": [*won(), payment()],
    "trading": [*trading_floor(), quotes(RED), decision(bet(500)), decision(sale(50), period=2, at=day(8))],
    "cash": [*trading_floor(rules=RECAPITALISED), deposit("12.5"), cash_out("0.000001")],
    "trades of elsewhere": [
        *trading_floor(rules=OF_ELSEWHERE),
        traded(),
        sold("0.000001", 0, "yes", fee="0.25"),
        traded(10, "9.999999", None),
        sold(5, 5, None),
        *(traded(10, 7, None, all_but=name, question="colour") for name in ("red", "green", "blue")),
        traded(10, "10.000001", None, question="colour"),
        traded(10, 3, None, all_but="no"),
        resolution(),
    ],
    "a decision in words": [*trading_floor(), replied('{"action": "hold", "reasoning": "wait"}', prompt="?")],
    "a call": [*trading_floor(), replied('{"action": "hold", "reasoning": "wait"}', prompt="?", call=CALL)],
    "a malformed reply with a call": [*trading_floor(), decision(reasoning=" ", call=CALL)],
    "failed calls": [*trading_floor(), failed_call(call=CALL, prompt="?"), failed_call(), decision(call=CALL)],
    "fields without legs": [*trading_floor(), decision(bets=(), sells=None)],
}


@pytest.mark.parametrize("name", EXACT)
def test_the_digest_of_a_command_is_rebuilt(name: str) -> None:
    """The digest is rebuilt if numbers have no more decimals than their units, in any of the equivalent notations."""
    assert audited(oracle.history(*EXACT[name])).lossy_commands == 0


ROUNDED: dict[str, list[AnyCommand]] = {
    "open_question": [quartiles(levels=("0.25", "0.5000000001"))],
    "submit_forecast": [opened(), forecast(probability=0.1 + 0.2)],
    "resolve_question": [opened(), resolution(outcome=None, payouts={"yes": "0.9999999999", "no": 0})],
    "open_contest": [contest(pool="10.0000001")],
    "add_question": [opened(), contest(), entry(weight="0.3333333")],
    "quote": [opened(), quote(prices={"yes": "0.3333333333"})],
    "record_decision": [*trading_floor(), decision(action="hold")],
    "record_failed_call": [*trading_floor(), failed_call(call=ModelCall(cost="0.00000012"))],
    "deposit_cash": [*trading_floor(rules=RECAPITALISED), deposit("12.50000001")],
    "withdraw_cash": [*trading_floor(rules=RECAPITALISED), cash_out("12.50000001")],
    "record_trade": [*trading_floor(rules=OF_ELSEWHERE), traded("12.50000001")],
}


@pytest.mark.parametrize("kind", ROUNDED)
def test_the_digest_of_a_lossy_command_is_not_compared(kind: str) -> None:
    """Every detail that is lost is tried. By the normal form, the digest of such a command is compared; by the first
    form, it was not: such commands are counted, and their events are decided again.
    """
    recorded = oracle.history(*ROUNDED[kind])
    assert audited(recorded).lossy_commands == 0
    audit = audited(in_first_form(recorded, ROUNDED[kind]))
    last = in_first_form(recorded, ROUNDED[kind])[-1].command_id
    positions = [row.position for row in recorded if row.command_id == last]
    assert (audit.lossy_commands, audit.lossy_positions) == (1, positions[:1])
    assert audit.first_forms == (len(ROUNDED[kind]), positions[0])
    assert ROUNDED.keys() == LOST_DETAILS.keys()


@pytest.mark.parametrize(
    "commands_sent",
    [
        [numeric(bins=2), forecast("depth", probability=None, cdf=(0, 0.1 + 0.2, 1))],
        [choices(), forecast("colour", probability=None, probabilities={"red": 1 / 3, "green": 1 / 3, "blue": 1 / 3})],
        [
            quartiles(lower="0.04", upper="0.96", decimals=1),
            forecast("flow", probability=None, quantiles=("0.04", "0.5", "0.96")),
        ],
        [ensemble(lower="0.04", upper="0.96", decimals=1), forecast("depths", samples=("0.96", "0.04", "0.55"))],
        [numeric(lower="1e-99"), resolution("depth", outcome=None, value="1e-98")],
        [*trading_floor(), decision(bet("50.0000001")), decision(sale("33.33333333"), period=2, at=day(8))],
        [*trading_floor(rules="arena-v2", starts_at=day(4))],
    ],
    ids=["cdf", "thirds", "quantiles that a closed end rounds to", "samples", "next to nothing", "legs", "a Wednesday"],
)
def test_rounding_is_not_taken_for_forgery(commands_sent: list[AnyCommand]) -> None:
    """A rounded number is in its unit, and does not change when it is decided again."""
    audited(oracle.history(*commands_sent))


MALFORMED: dict[str, dict[str, Any]] = {
    "unreadable": {"action": None, "reasoning": None, "response": "?"},
    "unknown_action": {"action": "WAIT"},
    "no_reasoning": {"reasoning": " "},
    "no_legs": {"action": "BET"},
    "mixed_legs": {"action": "HOLD", "bets": (bet(500),)},
    "blank_leg": {"bets": (bet(500, side=" "),), "action": "BET"},
    "bad_amount": {"bets": (bet("1e30"),), "action": "BET"},
    "below_least_bet": {"bets": (bet(1),), "action": "BET"},
    "above_cap": {"bets": (bet(2_501),), "action": "BET"},
    "above_sum_cap": {"bets": (bet(2_500), bet(2_500)), "action": "BET"},
    "bad_percentage": {"sells": (sale(101),), "action": "SELL"},
}


@pytest.mark.parametrize("fault", REPLY_FAULTS)
@pytest.mark.parametrize("response", [None, "I would rather wait."])
def test_a_reply_that_is_not_a_decision_is_decided_again(fault: str, response: str | None) -> None:
    """The reply is given in fields, from which its text is made, or in fields beside a text; these are lost, but not
    the fault.
    """
    floor = trading_floor(rules="arena-v2")
    fields = {"response": response} | MALFORMED[fault] if response else MALFORMED[fault]
    log = oracle.history(*floor, decision(**fields))
    [malformed] = [recorded.event for recorded in log if isinstance(recorded.event, events.DecisionMalformed)]
    assert malformed.fault == fault
    assert audited(log).lossy_commands == 0
    first = in_first_form(log, [*floor, decision(**fields)])
    assert audited(first).lossy_commands == (response is not None and fault != "unreadable")


def test_a_digest_of_the_first_form_does_not_cover_numbers_that_are_none() -> None:
    """Such a digest need not be the one of the event, which still has to be one that the decider records."""
    commands: list[AnyCommand] = [opened(), forecast(), forecast(participant="bob")]
    rows = in_first_form(oracle.history(*commands), commands)
    event = structs.replace(rows[1].event, probabilities=(10**8, 10**8))
    with pytest.raises(Corrupt) as found:
        audited(chained([rows[0], structs.replace(rows[1], event=event), rows[2]]))
    assert found.value.position == rows[1].position


def test_a_reply_with_null_lists_that_an_earlier_version_did_not_read_is_decided_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a reply was recorded as unreadable; now it is read. A reply without null lists was read in any version."""
    reply = '{"action": "HOLD", "reasoning": "Wait.", "bets": null}'
    read_reply = replies.read_reply
    with monkeypatch.context() as former:
        former.setattr(replies, "read_reply", lambda text, rule, **_: read_reply(text, rule, null_lists=False))
        log = oracle.history(*trading_floor(), replied(reply), replied(reply, attempt=2))
    assert [type(row.event) for row in log[-2:]] == [events.DecisionMalformed, events.DecisionDefaulted]
    assert audited(log).lossy_commands == 0
    read_today = oracle.history(*trading_floor(), replied(reply))
    assert isinstance(read_today[-1].event, events.DecisionRecorded)
    assert audited(read_today).lossy_commands == 0
    readable = oracle.history(*trading_floor(), replied(reply.replace(', "bets": null', "")))
    recorded_hold = readable[-1].event
    assert isinstance(recorded_hold, events.DecisionRecorded)
    fields = {name: getattr(recorded_hold, name) for name in ("at", "contest", "participant", "period", "attempt")}
    refused = events.DecisionMalformed(**fields, fault="unreadable", response=recorded_hold.response)
    position, _ = stops(chained([*readable[:-1], structs.replace(readable[-1], event=refused)]))
    assert position == len(readable)


# --- forged logs


def stops(log: Sequence[Recorded], *, cut: bool = False) -> tuple[int, str]:
    """Return where deciding a log again stops and the message, which must not depend on the size of the pages."""
    results = set()
    for page in (2, 500):
        with pytest.raises(Corrupt) as stopped:
            audited(log, cut=cut, page=page)
        assert SAYS_BOTH.fullmatch(str(stopped.value)), stopped.value
        results.add((stopped.value.position, str(stopped.value).partition(": ")[2]))
    [only] = results
    return only


def index_of(log: Sequence[Recorded], kind: type[Any]) -> int:
    """Return the index of the first event of a type."""
    return next(place for place, recorded in enumerate(log) if isinstance(recorded.event, kind))


def another(log: Sequence[Recorded], kind: type[Any], **fields: Any) -> list[Recorded]:
    """Return the log with the first event of a type changed."""
    place = index_of(log, kind)
    changed = structs.replace(log[place], event=structs.replace(log[place].event, **fields))
    return chained([*log[:place], changed, *log[place + 1 :]])


CUT = [numeric(bins=5, lower=0, upper=10), resolution("depth", outcome=None, value=9)]
FLOOR = [*trading_floor("ada", "bob"), decision(bet(2_500), bet(2_500), prompt="?", response="{}")]


@pytest.mark.parametrize(
    ("commands_sent", "kind", "fields", "says"),
    [
        (CUT, events.QuestionResolved, {"outcome": 1}, "expected outcome 5; found 1"),
        (CUT, events.QuestionResolved, {"value": "11", "outcome": 6}, "found open_end_needed: value = '11': "),
        (
            [CUT[0], forecast("depth", probability=None, cdf=("0", "0.1", "0.1", "0.5", "0.6", "1"))],
            events.ForecastMade,
            {"cdf": (1, *[10**9] * 4, 10**10)},
            "found open_end_needed: ",
        ),
        (
            [quartiles(), forecast("flow", probability=None, quantiles=(1, 2, 3))],
            events.ForecastMade,
            {"quantiles": (-1, 2, 3)},
            "found open_end_needed: ",
        ),
        (
            [ensemble(), forecast("depths", samples=(1, 2, 3))],
            events.ForecastMade,
            {"samples": (1, 2, 4001)},
            "found open_end_needed: ",
        ),
        (
            [ensemble(), forecast("depths", samples=(1, 2, 3))],
            events.ForecastMade,
            {"samples": (2000, 1000, 3000)},
            "expected samples[0] 1; found 2",
        ),
        (
            [quartiles(), forecast("flow", quantiles=(1, 2, 3))],
            events.ForecastMade,
            {"quantiles": (), "samples": (1000, 2000, 3000)},
            "found wrong_distribution: ",
        ),
        ([opened()], events.QuestionOpened, {"outcomes": ("ja", "nein")}, "expected outcomes[0] 'yes'; found 'ja'"),
        ([opened(), forecast()], events.ForecastMade, {"until": micros(11)}, "found wrong_order_of_instants: until = "),
        ([opened()], events.QuestionOpened, {"outcomes": ("no", "yes")}, "expected outcomes[0] 'yes'; found 'no'"),
        ([opened()], events.QuestionOpened, {"title": "x" * 10_001}, "found text_too_long: "),
        ([opened()], events.QuestionOpened, {"question": "a\tb"}, "found id_not_plain: "),
        ([opened()], events.QuestionOpened, {"question": "e\u0301"}, "found id_not_plain: "),
        ([opened()], events.QuestionOpened, {"question": "q" * 201}, "found id_too_long: "),
        ([opened()], events.QuestionOpened, {"question": ""}, "found id_empty: "),
        ([opened(), forecast()], events.ForecastMade, {"participant": " ada"}, "found id_not_plain: "),
        ([opened(), forecast()], events.ForecastMade, {"participant": ""}, "found id_empty: "),
        (FLOOR, events.TextKept, {"at": 0}, "expected at 2026-03-02T00:00:00Z; found 1970-01-01T00:00:00Z"),
        (FLOOR, events.LegRefused, {"code": "no_quote"}, "expected code 'above_cap'; found 'no_quote'"),
        (FLOOR, events.LegRefused, {"leg": 1}, "expected leg 2; found 1"),
        (FLOOR, events.DecisionRecorded, {"executed": 2}, "expected executed 1; found 2"),
        (FLOOR, events.DecisionRecorded, {"attempt": 2}, "found wrong_attempt: attempt = 2: "),
        ([contest()], events.ContestOpened, {"pool": -1}, "found out_of_range: "),
        ([contest()], events.ContestOpened, {"currency": "x" * 10_001}, "found text_too_long: "),
    ],
)
def test_a_field_that_the_decider_does_not_record_is_found(
    commands_sent: list[AnyCommand], kind: type[Any], fields: dict[str, Any], says: str
) -> None:
    """The message has the expected and the actual value of the first field that differs, or the refusal."""
    log = oracle.history(*commands_sent, opened("more follows"))
    audited(log)
    position, message = stops(another(log, kind, **fields))
    assert says in message
    assert position == index_of(log, kind) + 1 or kind is events.TextKept


REPLY = '{"action": "BET", "bets": [{"market_id": "rain", "side": "YES", "amount": 500}], "reasoning": "It will."}'


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"reasoning": "It may."}, "expected reasoning 'It will.'; found 'It may.'"),
        ({"action": "HOLD"}, "expected action 'BET'; found 'HOLD'"),
        ({"bets": (events.Bet(question="rain", side="yes", amount=5 * 10**8),)}, "bets[0].side 'YES'; found 'yes'"),
        ({"sells": (events.Sale(position="1", percentage=1),)}, "expected sells of 0 items; found of 1 items"),
    ],
)
def test_a_decision_has_the_content_of_its_response(fields: dict[str, Any], says: str) -> None:
    """The command digest shows that only the text was given, even if the text was already stored for another
    participant.
    """
    for commands_sent in ([replied(REPLY)], [replied(REPLY, "bob"), replied(REPLY)]):
        log = oracle.history(*trading_floor("ada", "bob"), *commands_sent)
        audited(log)
        place = len(log) - 2
        changed = structs.replace(log[place].event, **fields)
        position, message = stops(
            chained([*log[:place], structs.replace(log[place], event=changed), *log[place + 1 :]])
        )
        assert (position, says in message) == (place + 1, True), message


def test_a_lossless_command_has_the_rebuilt_digest() -> None:
    """The decider records such an event only for another command."""
    log = oracle.history(opened(), forecast(), withdrawal())
    for fields in ({"command": log[1].command}, {"event": structs.replace(log[2].event, at=micros(14))}):
        position, message = stops(chained([*log[:2], structs.replace(log[2], **fields)]))
        assert (position, message.startswith("forecast_withdrawn.v1: expected the command digest ")) == (3, True)


@pytest.mark.parametrize("digest", ["", "0" * 31, "0" * 33, "X" * 32, "é" * 32])
def test_a_command_digest_has_the_form_of_a_digest(digest: str) -> None:
    """A value that is not a digest is found even if the content cannot be rebuilt, by the quick check or in full."""
    log = oracle.history(opened(), forecast(), forecast(participant="bob", probability="0.4"))
    for place in (0, 1, 2):
        forged = chained([*log[:place], structs.replace(log[place], command=digest), *log[place + 1 :]])
        assert stops(forged)[0] == place + 1


# --- envelopes


def test_a_contest_keeps_the_preset_as_it_was_when_it_was_opened() -> None:
    """The preset had other rules before; a name with rules that the preset never had is found."""
    fields = {"type": "open_contest", "at": "2026-03-02T00:00:00Z", "contest": "cup", "rules": "brier-daily"}
    with Ledger.open(":memory:", clock=lambda: 0) as ledger:
        ledger.handle(read(json.dumps(fields)), "c1")
        [[opened]] = ledger.read()
    assert isinstance(opened.event, events.ContestOpened)

    def under(rules: RuleSet) -> list[Recorded]:
        return chained([structs.replace(opened, event=structs.replace(opened.event, rules=rules))])

    [former] = FORMER_PRESETS["brier-daily"]
    assert former.day_edges == "both"
    assert former != PRESETS["brier-daily"] == opened.event.rules
    assert audited(under(former)).lossy_commands == 0
    assert stops(under(structs.replace(former, day_edges="opening")))[0] == 1


def test_a_command_id_is_used_once() -> None:
    """Only one command may use an id, for the same content or other content."""
    log = oracle.history(opened(), forecast(), forecast(at=day(13)), opened("wind"))
    for place in (1, 2, 3):
        again = chained([*log[:place], structs.replace(log[place], command_id=log[0].command_id), *log[place + 1 :]])
        assert stops(again)[0] == place + 1
    position, message = stops(chained([*log[:3], structs.replace(log[3], command_id=log[1].command_id)]))
    assert (position, message) == (
        4,
        "question_opened.v1: expected a command id that is not in use; found 'c1', as at log position 2",
    )


@pytest.mark.parametrize("command_id", ["", " a", "a\n", "e\u0301", "x" * 201])
def test_a_command_id_is_an_id(command_id: str) -> None:
    """The rules for ids are those of the decider."""
    log = oracle.history(opened(), forecast())
    for place in (0, 1):
        forged = chained([*log[:place], structs.replace(log[place], command_id=command_id), *log[place + 1 :]])
        assert stops(forged)[0] == place + 1
        assert "expected a valid command id; found id_" in stops(forged)[1]


def test_the_rows_of_a_command_have_one_instant_and_one_digest() -> None:
    """All rows of a command have one recorded instant and one digest."""
    log = oracle.history(*trading_floor())
    place = index_of(log, events.CashGranted)
    for fields in ({"recorded_at": 1}, {"command": "0" * 32}):
        position, message = stops(chained([*log[:place], structs.replace(log[place], **fields), *log[place + 1 :]]))
        assert (position, f"{next(iter(fields))} " in message) == (place + 1, True)


def test_a_command_is_there_to_its_last_event() -> None:
    """A grant follows its enrolment, and a leg its decision.

    A log that ends within a command is cut, which a reader up to a log position may accept.
    """
    log = oracle.history(*FLOOR)
    grant = index_of(log, events.CashGranted)
    assert stops(chained([*log[:grant], *log[grant + 1 :]])) == (
        grant + 1,
        "participant_enrolled.v1: expected cash_granted.v1 here; found another command, 'c6'",
    )
    assert stops(log[:grant]) == (grant, "expected cash_granted.v1 after this; found the end of the log")
    audited(log[:grant], cut=True)
    text_index = index_of(log, events.TextKept)
    assert stops(log[: text_index + 1])[0] == text_index + 1
    audited(log[: text_index + 1], cut=True)
    assert stops(chained([*log[: text_index + 2], opened_later(log)]))[0] == text_index + 3


def opened_later(log: Sequence[Recorded]) -> Recorded:
    """Return a question opened in a command of its own."""
    [row] = oracle.history(opened("later"))
    return structs.replace(row, command_id="later", recorded_at=log[-1].recorded_at)


def test_an_event_that_follows_another_does_not_stand_alone() -> None:
    """Such an event cannot be the first of a command, and a command has no more events than the decider gives it."""
    log = oracle.history(*FLOOR)
    grant = index_of(log, events.CashGranted)
    alone = structs.replace(log[grant], command_id="alone")
    message = "cash_granted.v1: expected the first event of a command; found an event that only follows another one"
    assert stops(chained([*log, alone])) == (len(log) + 1, message)
    position, message = stops(chained([*log[: grant + 1], *log[grant:]]))
    assert position == grant + 2
    assert message == "cash_granted.v1: expected no more events of command 'c5'; found one more"


def test_a_command_of_many_pages_is_read_once() -> None:
    """Rows of a single command are read once each, however many pages they fill."""
    first, *_ = oracle.history(opened())
    rows = [structs.replace(first, position=position) for position in range(1, 20_001)]
    with pytest.raises(Corrupt, match=r"log position 2: .*found one more"):
        audited(rows, page=1)


# --- the quick check of forecasts


@pytest.mark.parametrize("seed", SEEDS)
def test_the_quick_check_accepts_only_what_the_decider_records(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without the quick check, the same logs pass with as many digests rebuilt, and others stop at the same
    row.
    """
    random, log = Random(seed), of_season(seed)
    made = [place for place, recorded in enumerate(log) if isinstance(recorded.event, events.ForecastMade)]
    logs = [log, *(nudged(random, log, random.choice(made)) for _ in range(times(320)))]
    quick = [outcome(season) for season in logs]
    monkeypatch.setattr(ForecastCheck, "accept", lambda *_: 0)
    assert [outcome(season) for season in logs] == quick
    assert len(set(quick)) > 10


def test_the_quick_check_refuses_forecasts_out_of_time() -> None:
    """A forecast is not accepted after the resolution, at the close, or before the participant's last forecast."""
    log = oracle.history(opened(), forecast(), forecast(at=day(13)), resolution(), opened("more follows"))
    late = [log[0], log[1], log[3], log[2], log[4]]
    position, message = stops(chained(late))
    assert (position, "found question_resolved: at = '2026-03-13T00:00:00Z': " in message) == (4, True)
    assert "found out_of_order: " in stops(chained([log[0], log[2], log[1], *log[3:]]))[1]


def test_the_quick_check_leaves_participants_of_several_ids_to_the_decider() -> None:
    """A forecast under the former id is not accepted, nor one of the new id before the last under the former one."""
    told = oracle.history(
        opened(), forecast(at=day(13)), renaming(), forecast("rain", "bo", at=day(14)), opened("more")
    )
    assert audited(told).lossy_commands == 0
    old = chained([*told[:3], told[1], told[4]])
    assert "found participant_renamed: " in stops(with_ids(old))[1]
    early = oracle.history(opened(), forecast("rain", "bo", at=day(11)), opened("more"))
    assert "found out_of_order: " in stops(with_ids(chained([*told[:3], *early[1:]])))[1]


def with_ids(log: Sequence[Recorded]) -> list[Recorded]:
    """The same rows, each of a command of its own."""
    return chained([structs.replace(row, command_id=f"own {place}") for place, row in enumerate(log)])


def outcome(log: Sequence[Recorded]) -> tuple[int, str]:
    """Return the number of digests that could not be rebuilt, or where and why deciding stopped."""
    try:
        return audited(log).lossy_commands, ""
    except Corrupt as stopped:
        return stopped.position, str(stopped)


def nudged(random: Random, log: list[Recorded], place: int) -> list[Recorded]:
    """Return the log with one number, name or instant of a forecast changed."""
    event: Any = log[place].event
    numbers = next(name for name in ("probabilities", "cdf", "quantiles", "samples") if getattr(event, name))
    several = [*getattr(event, numbers)]
    several[random.randrange(len(several))] += random.choice([1, -1, 10**9, -(10**10), 2**70])
    fields = random.choice(
        [
            {numbers: tuple(several)},
            {numbers: tuple(several[:-1])},
            {numbers: (), random.choice(["probabilities", "cdf", "quantiles", "samples"]): tuple(several)},
            {"at": event.at + random.choice([-1, 1, -(10**12), 10**12, 2**62])},
            {"participant": random.choice(["a", "zoe", "", " a", "x" * 201])},
            {"question": random.choice(["q0", "q1", "q9"])},
            {"attestation": events.Attestation(newest_source="lately")},
            {"until": random.choice([event.at - 1, event.at, event.at + 1, 2**62])},
        ]
    )
    forged = structs.replace(log[place], event=structs.replace(event, **fields))
    return [*log[:place], forged, *log[place + 1 :]]


def test_every_event_that_begins_a_command_has_its_row() -> None:
    """The other events follow from an event, store a text for one, or begin a command that is rebuilt from several."""
    assert {kind for kind in events.TAGS if kind not in REBUILDERS} == {
        events.ForecastsRetracted,
        events.TradeRecorded,
        events.TextKept,
        events.CashGranted,
        events.DecisionDefaulted,
        events.SharesBought,
        events.SharesSold,
        events.LegRefused,
        events.PositionSettled,
        events.PositionRefunded,
        events.TradesVoided,
        events.SettlementReversed,
    }


def test_prizes_that_are_paid_in_two_commands_are_decided_as_they_were(tmp_path: Path) -> None:
    """The check `payouts` reports an unfinished payment; the second command pays the rest, and nobody is paid twice."""
    log = oracle.history(*won(chances={"ada": "0.5", "bob": "0.8"}), payment())
    half = log[:-1]
    audited(half)
    path = written(tmp_path / "log.db", half)
    with Ledger.open(path, prizes=prizes_from_log) as ledger:
        assert pay(ledger, "cup", AFTER)
        whole = [recorded for page in ledger.read() for recorded in page]
    assert len(whole) == len(log)
    audited(whole)
    assert "found prizes_paid: " in stops(chained([*whole, structs.replace(whole[-1], command_id="again")]))[1]
    twice = [structs.replace(recorded, command_id="again") for recorded in log[-2:]]
    assert stops(chained([*half, *twice])) == (9, "prize_paid.v1: expected participant 'bob'; found 'ada'")
