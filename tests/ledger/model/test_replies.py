"""Tests of replies: how a text is read, which fault is recorded, and texts made to break the reader."""

import itertools
import json
from decimal import Decimal
from hashlib import sha256
from typing import Any, get_args

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import events, replies
from forecast_ledger.ledger.model.commands import Bet, RecordDecision, Sale
from forecast_ledger.ledger.model.commands import read as command_of
from forecast_ledger.ledger.model.events import (
    DecisionDefaulted,
    DecisionMalformed,
    DecisionRecorded,
    LegRefused,
    SharesBought,
    TextKept,
)
from forecast_ledger.ledger.model.replies import first_fault, read_reply, reply_text
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import REPLY_FAULTS, Replies, Trading
from tests.support.effort import times
from tests.support.given import TRADES, bet, decision, given, ran, replied, sale, trading_floor
from tests.support.waiting import quick

CASH = 10_000 * 10**6
WHOLE = 100 * 10**6  # 1e-6 of a percent
V1, V2 = Trading(), Trading(legs="all_or_nothing", sum_capped=True)


def text(action: Any = "BET", **fields: Any) -> str:
    """Return a reply as a forecaster writes it; a field that is None is left out."""
    fields_given = {"action": action, "reasoning": "It will."} | fields
    return json.dumps({name: value for name, value in fields_given.items() if value is not None})


def betting(amount: Any = 500, side: Any = "YES", market_id: Any = "rain", **fields: Any) -> str:
    """Return a reply with one bet."""
    return text(bets=[{"market_id": market_id, "side": side, "amount": amount}], **fields)


def selling(percentage: Any = 100, position_id: Any = "1", **fields: Any) -> str:
    """Return a reply with one sale."""
    return text(**({"action": "SELL"} | fields), sells=[{"position_id": position_id, "percentage": percentage}])


def bare(reply: str, number: str) -> str:
    """Return the reply with a number inserted as it is written."""
    return reply.replace('"@"', number)


# Forecaster Arena, Methodology v1, "BET format", "SELL format", "HOLD format", word for word except for the ids.
FORMS = [
    """{
  "action": "BET",
  "bets": [
    { "market_id": "uuid", "side": "YES", "amount": 500.0 }
  ],
  "reasoning": "Why this trade should be made."
}""",
    """{
  "action": "SELL",
  "sells": [
    { "position_id": "uuid", "percentage": 100 }
  ],
  "reasoning": "Why this position should be reduced or exited."
}""",
    """{
  "action": "HOLD",
  "reasoning": "Why the current portfolio should remain unchanged."
}""",
]


def test_the_forms_of_the_document_are_read() -> None:
    """Each form is a decision; amounts are in 1e-6, percentages in 1e-6 of a percent."""
    bets = [events.Bet(question="uuid", side="YES", amount=500_000_000)]
    sales = [events.Sale(position="uuid", percentage=WHOLE)]
    assert [read_reply(form) for form in FORMS] == [
        ("BET", tuple(bets), (), "Why this trade should be made."),
        ("SELL", (), tuple(sales), "Why this position should be reduced or exited."),
        ("HOLD", (), (), "Why the current portfolio should remain unchanged."),
    ]
    assert [first_fault(read_reply(form), V1, CASH) for form in FORMS] == ["", "", ""]


@pytest.mark.parametrize("action", ["BET", "bet", "Bet", "bEt"])
def test_an_action_is_read_in_any_case(action: str) -> None:
    """The action is recorded in capitals."""
    reply = read_reply(betting(action=action))
    assert reply is not None
    assert reply.action == "BET"


def test_other_fields_of_a_reply_are_ignored() -> None:
    """A model may add other fields, in the reply or in a leg."""
    legs = [{"market_id": "rain", "side": "YES", "amount": 500, "confidence": 0.9}]
    assert read_reply(text(bets=legs, mood="sure", notes={"a": [1]})) == read_reply(betting())


def test_a_position_may_be_named_by_its_number() -> None:
    """A JSON integer is the same as its text."""
    assert read_reply(selling(position_id=7)) == read_reply(selling(position_id="7"))


# Each fault of a reply: the reply, and the rules.
FAULTY: list[tuple[str, str, Trading]] = [
    *[
        ("unreadable", reply, V1)
        for reply in [
            *["", " ", "HOLD", "null", "7", '"HOLD"', "[]", "{}", f"[{text('HOLD')}]", text("HOLD")[:-1]],
            *[text("HOLD") * 2, text("HOLD") + ".", "Sure! " + text("HOLD"), f"```json\n{text('HOLD')}\n```"],
            *[text("HOLD").replace('"', "'"), text("HOLD")[:-1] + ",}", "\ufeff" + text("HOLD")],
            *[text(None), text(1), text(["BET"]), text("HOLD", reasoning=7), text("HOLD", reasoning=["."])],
            *[text(bets="rain"), text(bets={"market_id": "rain"}), text(bets=["rain"]), text(bets=[None])],
            *[text(bets=[{"market_id": "rain", "side": "YES"}]), text(bets=[{"side": "YES", "amount": 500}])],
            *[betting(side=None), betting(side=True), betting(market_id=7)],
            *[selling(position_id=None), selling(position_id=1.5), selling(position_id=True), selling(position_id=[1])],
            text("SELL", sells=[{"position_id": "1"}]),
            *[bare(betting("@"), number) for number in ("NaN", "Infinity", "-Infinity", "0x1F4", "+500", ".5", "5e")],
            *[text("HOLD").replace("It will.", wrong) for wrong in ("\\ud800", "\\udc00\\ud800", "\n", "\x00", "\\x")],
            '{"action": null, "reasoning": "."}',
            '{"action": "HOLD", "reasoning": null}',
        ]
    ],
    *[("unknown_action", text(action), V1) for action in ("", "BUY", "HOLD ", " BET", "BETS", "SKIP", "B\u0415T")],
    ("unknown_action", text("SHORT", reasoning="", bets=[]), V1),
    *[("no_reasoning", betting(reasoning=blank), V1) for blank in ("", " ", "\n\t ", "\u2003", None)],
    ("no_reasoning", text("HOLD", reasoning=None), V1),
    ("no_legs", text("BET"), V1),
    ("no_legs", text("BET", bets=[]), V1),
    ("no_legs", text("SELL", sells=[]), V1),
    ("no_legs", '{"action": "BET", "reasoning": ".", "bets": null}', V1),
    ("no_legs", text("SELL", bets=[{"market_id": "rain", "side": "YES", "amount": 500}]), V1),
    ("mixed_legs", betting(sells=[{"position_id": "1", "percentage": 50}]), V1),
    ("mixed_legs", selling(bets=[{"market_id": "rain", "side": "YES", "amount": 500}]), V1),
    ("mixed_legs", betting(action="HOLD"), V1),
    ("mixed_legs", selling(action="HOLD"), V1),
    ("blank_leg", betting(side=""), V1),
    ("blank_leg", betting(side=" \t"), V1),
    ("blank_leg", betting(market_id="\n"), V1),
    ("blank_leg", selling(position_id=" "), V1),
    *[("bad_amount", betting(amount), V1) for amount in (True, False, None, "500", "", [500], {"usd": 500})],
    *[("bad_amount", bare(betting("@"), number), V1) for number in ("1e999", "-1e999", "1e400", "9" * 400)],
    ("bad_amount", betting(10**12 + 1), V1),
    ("bad_amount", bare(betting("@"), "-1000000000000.000001"), V1),
    *[("below_least_bet", betting(amount), V1) for amount in (49, 0, -500, -(10**12), 1e-9)],
    ("below_least_bet", bare(betting("@"), "49.9999994"), V1),
    ("below_least_bet", bare(betting("@"), "1e-999999"), V1),
    ("above_cap", betting(2_501), V1),
    ("above_cap", bare(betting("@"), "2500.000001"), V1),
    ("above_cap", betting(10**12), V1),
    ("above_sum_cap", text(bets=[{"market_id": "rain", "side": "YES", "amount": 1_250.000001}] * 2), V2),
    *[("bad_percentage", selling(share), V1) for share in (0, 0.999999, -50, 100.000001, 101, "50", None, True, [50])],
    *[("bad_percentage", bare(selling("@"), number), V1) for number in ("1e999", "9" * 400, "0.9999994")],
]


@pytest.mark.parametrize(("code", "reply", "rules"), FAULTY)
def test_a_reply_that_is_not_a_decision_has_a_fault(code: str, reply: str, rules: Trading) -> None:
    """The first fault that applies is recorded, for a participant with 10,000 in cash."""
    assert first_fault(read_reply(reply), rules, CASH) == code


def test_every_fault_is_reached_above() -> None:
    """Every fault in the table can occur."""
    assert {code for code, *_ in FAULTY} == set(REPLY_FAULTS)


@pytest.mark.parametrize(
    "reply",
    [
        betting(50),
        betting(2_500),
        bare(betting("@"), "2500.0000004"),  # half-even to 1e-6 is 2,500
        bare(betting("@"), "49.9999996"),
        bare(betting("@"), "5E+2"),
        betting(side="yes", market_id="unknown"),  # a fault of the leg, not of the reply
        text(bets=[{"market_id": "rain", "side": "YES", "amount": 2_500}] * 4),  # each alone is within the cap
        selling(1),
        selling(100),
        selling(33.3333),
        bare(selling("@"), "0.9999996"),
        text("HOLD", bets=[], sells=[]),
        '{"action": "HOLD", "reasoning": ".", "bets": null, "sells": null}',
    ],
)
def test_the_last_amounts_that_a_rule_allows_are_allowed(reply: str) -> None:
    """The limits themselves are allowed; numbers are rounded to 1e-6 first."""
    assert first_fault(read_reply(reply), V1, CASH) == ""


def test_two_bets_may_make_up_the_cap_together() -> None:
    """If the cap is for all bets together, their sum may reach it."""
    halves = text(bets=[{"market_id": "rain", "side": "YES", "amount": 1_250}] * 2)
    assert first_fault(read_reply(halves), V2, CASH) == ""


@pytest.mark.parametrize(
    ("cash", "amount", "wrong"),
    [
        ("7333.35", "1833.3375", ""),
        ("7333.35", "1833.34", "above_cap"),  # as a prompt shows it that rounds up
        ("8975.87", "2243.9675", ""),  # 10,000 - 1,024.13, which is slightly less in floats
        ("6848.80", "1712.20", ""),  # 10,000 - 1,576.11 - 1,575.09
        ("6848.80", "1712.200001", "above_cap"),
        ("8000", "2000", ""),
        ("200", "50", ""),  # the least cash that allows a bet
        ("199.999999", "50", "above_cap"),
        ("0", "50", "above_cap"),
        ("-100", "50", "above_cap"),
    ],
)
def test_the_cap_is_that_of_the_cash_at_the_start_exactly(cash: str, amount: str, wrong: str) -> None:
    """The cap is rounded down to 1e-6, without floats."""
    assert first_fault(read_reply(bare(betting("@"), amount)), V1, int(Decimal(cash) * 10**6)) == wrong


# A reply with each fault and no earlier one; later faults may apply too.
MARRED: dict[str, dict[str, Any]] = {
    "unknown_action": {"action": "BUY"},
    "no_reasoning": {"reasoning": " "},
    "mixed_legs": {"sells": [{"position_id": "1", "percentage": 200}]},
}
LEGS: dict[str, dict[str, Any]] = {
    "blank_leg": {"market_id": "rain", "side": " ", "amount": 500},
    "bad_amount": {"market_id": "rain", "side": "YES", "amount": "500"},
    "below_least_bet": {"market_id": "rain", "side": "YES", "amount": 49},
    "above_cap": {"market_id": "rain", "side": "YES", "amount": 2_501},
}


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations([*MARRED, *LEGS], 2)))
def test_the_earlier_of_two_faults_is_recorded(first: str, second: str) -> None:
    """The earlier fault is recorded whichever leg has it: a reply is checked as a whole, fault by fault."""
    fields = {name: value for code in (second, first) for name, value in MARRED.get(code, {}).items()}
    legs = [LEGS[code] for code in (second, first) if code in LEGS] or [LEGS["bad_amount"]]
    assert first_fault(read_reply(text(**({"bets": legs} | fields))), V1, CASH) == first


@pytest.mark.parametrize(
    ("first", "reply", "rules"),
    [
        ("unknown_action", text("BUY"), V1),  # it has no legs either
        ("no_reasoning", text("BET", reasoning=""), V1),
        ("no_legs", text("BET", sells=[{"position_id": "1", "percentage": 50}]), V1),  # it has legs of the other action
        ("mixed_legs", selling(0, bets=[LEGS["above_cap"]]), V1),
        ("blank_leg", selling(0, position_id=""), V1),
        ("above_cap", text(bets=[LEGS["above_cap"]] * 2), V2),
        ("below_least_bet", text(bets=[LEGS["below_least_bet"], LEGS["above_cap"]]), V2),
    ],
)
def test_the_earlier_of_two_faults_of_different_kinds_is_recorded(first: str, reply: str, rules: Trading) -> None:
    """The earlier fault is recorded also for pairs that cannot be in one reply with all others."""
    assert first_fault(read_reply(reply), rules, CASH) == first


HOLD = text("HOLD")
# Texts with the reply HOLD, as setrf/forecasterarena's lib/openrouter/parser/clean.ts takes it out of them: trim,
# fence, quotes, and, unless the text begins with a brace, the first balanced braces that have "action" in them.
LENIENT = {
    "the object alone": HOLD,
    "white space": f" \n\t{HOLD}\r\n",
    "a byte order mark": f"\ufeff{HOLD}",
    "a fence": f"```\n{HOLD}\n```",
    "a fence with a language": f"```json\n{HOLD}\n```\n",
    "a fence on one line": f"```JSON {HOLD} ```",
    "a fence of another language": f"```javascript\n{HOLD}\n```",
    "a byte order mark and a fence": f"\ufeff```json\r\n{HOLD}\r\n```",
    "a fence that stays open": f"```json\n{HOLD}",
    "text before the object": f"I have {{little}} cash. {HOLD}",
    "text before a fence": f"My decision:\n```json\n{HOLD}\n```",
    "text before and after": f"My decision: {HOLD} Good luck!",
    "an object without an action before": f'I have {{"cash": 7}}, so {HOLD}',
    "an array of one object": f"[{HOLD}]",
    "double quotes": f'"{HOLD}"',
    "single quotes": f"'{HOLD}'",
    "braces in strings": "So: " + text("HOLD", reasoning='Wait. }{ "Yes."'),
    "an object in the object": "So: " + text("HOLD", reasoning="It will.", state={"cash": {"usd": 5}}),
    "null lists": "So: " + text("HOLD")[:-1] + ', "bets": null, "sells": null}',
    "lists that HOLD does not use": text("HOLD", bets="none", sells=[{"position_id": "1", "percentage": 500}]),
}
REFUSED = {
    "text after the object": f"{HOLD} Good luck!",
    "a full stop after the object": f"{HOLD}.",
    "the object twice": HOLD * 2,
    "text after a fence": f"```json\n{HOLD}\n```\nGood luck!",
    "no object": "I hold.",
    "an object without an action": 'I say {"hold": true}',
    "braces that stay open": f"I: {{ {HOLD[:-1]}",
    "an object that is in another one": f'So: {{"decision": {HOLD}}}',
    "nothing": "",
    "only a fence": "``````",
    "a lone quote": '"',
    "another form": "So: " + text("HOLD", reasoning=7),
    "single quotes inside": "So: " + HOLD.replace('"', "'"),
}


@pytest.mark.parametrize("reply", LENIENT.values(), ids=LENIENT.keys())
def test_a_lenient_reader_finds_the_object_in_a_reply(reply: str) -> None:
    """The rule `lenient` reads what Forecaster Arena's parser reads; the rule `strict` only the object alone."""
    found = read_reply(reply, "lenient")
    assert found is not None
    assert (found.action, found.bets, found.sells) == ("HOLD", (), ())
    assert first_fault(found, V1, CASH) == ""
    assert (read_reply(reply) is not None) == (reply.strip() == HOLD)


@pytest.mark.parametrize("reply", REFUSED.values(), ids=REFUSED.keys())
def test_a_lenient_reader_does_not_guess(reply: str) -> None:
    """Text after an object that the reply begins with makes it unreadable, as for Forecaster Arena's parser."""
    assert read_reply(reply, "lenient") is None
    assert read_reply(reply) is None


def test_a_lenient_reader_reads_bets_and_sales_as_a_strict_one() -> None:
    """Only the text around the object differs; a list of the wrong form is unreadable if the action uses it."""
    for reply in [betting(), betting("500"), selling(), betting(49), text("BET"), text("SELL", sells=None)]:
        assert read_reply(f"So: {reply}", "lenient") == read_reply(reply)
    assert read_reply(text(bets="rain"), "lenient") is None
    assert read_reply(betting(sells="none"), "lenient") == read_reply(betting())


@pytest.mark.parametrize("rule", ["strict", "lenient"])
def test_the_rule_set_says_how_replies_are_read(rule: str) -> None:
    """The same reply is a decision under one rule, and malformed under the other; the text is kept as it was sent."""
    fenced = f"```json\n{HOLD}\n```"
    story = ran(*trading_floor(rules=RuleSet(name="x", trading=Trading(replies=rule))), replied(fenced))  # type: ignore[arg-type]
    assert isinstance(story[-2], TextKept)
    assert story[-2].text == fenced
    assert isinstance(story[-1], DecisionRecorded if rule == "lenient" else DecisionMalformed)


@pytest.mark.parametrize(
    "reply",
    [
        "a" + "{" * 10**6,
        "a" + '{"action"' * 10**5,
        "a" + "{}" * (10**6 // 2) + '"action"',
        "a" + "{" * 300_000 + '"action"' + "}" * 300_000,
        "a" + "\\" * (10**6 - 20) + '{"action"}',
        "```" + " " * 10**6 + "x",
        "`" * 10**6,
        '"' * 10**6,
        "a" + " " * 10**6 + "b",
    ],
    ids=str.__len__,
)
@quick(5)
def test_a_lenient_reader_reads_a_hostile_text_once(reply: str) -> None:
    """A million braces, quotes, fences or spaces take no more than a pass over the text."""
    assert read_reply(reply, "lenient") is None


def slow_object_text(text: str) -> str:
    """The first balanced braces with "action" in them, tried one opening brace after another."""
    for start in [place for place, character in enumerate(text) if character == "{"]:
        depth, quoted, escaped = 0, False, False
        for end in range(start, len(text)):
            character = text[end]
            if escaped:
                escaped = False
            elif character == "\\" and quoted:
                escaped = True
            elif character == '"':
                quoted = not quoted
            elif not quoted:
                depth += (character == "{") - (character == "}")
                if not depth:
                    if '"action"' in text[start : end + 1]:
                        return text[start : end + 1]
                    break
    return text


@examples(st.lists(st.sampled_from(["{", "}", '"', "\\", '"action"', "a", "[", ":"]), max_size=14))
@settings(max_examples=times(250))
def test_the_object_in_a_text_is_the_first_in_balanced_braces(parts: list[str]) -> None:
    """One pass from the end finds what a trial of every opening brace finds."""
    found = "x" + "".join(parts)
    assert replies._embedded_object(found) == slow_object_text(found)


MILLION = 10**6
HOSTILE: dict[str, str] = {
    "deep array": "[" * 100_000,
    "deep object": '{"action":' * 100_000,
    "deep field": '{"action": "HOLD", "reasoning": ".", "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep amount": bare(betting("@"), "[" * 100_000 + "]" * 100_000),
    "deep legs": '{"action": "BET", "reasoning": ".", "bets": ' + "[" * 100_000,
    "marks in a text that does not end": '{"x": "' + '\\"' * (MILLION // 2 - 500) + "[" * 600,
    "a million characters": "x" * MILLION,
    "a million brackets": "[]" * (MILLION // 2),
    "a million spaces": " " * MILLION,
    "a number of a million digits": bare(betting("@"), "9" * (MILLION - 200)),
    "a fraction of a million digits": bare(betting("@"), "0." + "3" * (MILLION - 200)),
    "an exponent of a million digits": bare(betting("@"), "1e" + "9" * (MILLION - 200)),
    "not a number": bare(betting("@"), "NaN"),
    "infinity": bare(selling("@"), "1e999"),
    "nearly nothing": bare(selling("@"), "1e-999999999"),
    "true as an amount": betting(amount=True),
    "true as a percentage": selling(percentage=True),
    "lone surrogate": text("HOLD").replace("It will.", "\\ud83d"),
    "no text at all": "\x00",
    "twice another action": text("HOLD")[:-1] + ', "action": "BUY"}',
    "position of 5,000 digits": bare(selling(position_id="@"), "9" * 5_000),
    "negative percentage": selling(-100),
}
CARRIED: dict[str, str] = {  # valid replies whose legs are refused
    "a market of a million characters": betting(market_id="m" * (MILLION - 200)),
    "a side of many characters": betting(side="\u00df" * (MILLION // 7)),  # six characters each in the text
    "position in text of 5,000 digits": selling(position_id="9" * 5_000),
    "position of 4,000 digits": bare(selling(position_id="@"), "9" * 4_000),
    "position beyond 64 bits": selling(position_id=2**64),
    "position 0": selling(position_id=0),
    "position -1": selling(position_id=-1),
    "position 01": selling(position_id="01"),
    "position +1": selling(position_id="+1"),
    "position in another script": selling(position_id="\u0661"),
    "position with spaces": selling(position_id=" 1 "),
    "twenty thousand legs": text("SELL", sells=[{"position_id": "1", "percentage": 50}] * 20_000),
    "control characters": betting(market_id="\x00\x1b[2J", side="\u202e"),
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE.keys())
@quick(5)
def test_a_hostile_reply_is_recorded_as_malformed(reply: str) -> None:
    """The reply is stored unchanged, at once and without an exception; after the second one, the decision is HOLD."""
    story = ran(*trading_floor(), replied(reply), replied(reply, attempt=2))
    assert [type(event) for event in story[-4:]] == [TextKept, DecisionMalformed, DecisionMalformed, DecisionDefaulted]
    text_kept = story[-4]
    assert isinstance(text_kept, TextKept)
    assert (text_kept.text, text_kept.digest) == (reply, sha256(reply.encode()).hexdigest())


@pytest.mark.parametrize("rule", get_args(Replies))
def test_lists_and_objects_have_at_most_500_levels(rule: Replies) -> None:
    """Else it would depend on Python's version and stack whether a reply is read. Texts have no levels."""
    told = '{"action": "HOLD", "reasoning": "' + r"\"[{" * 600 + '", "x": @}'
    assert read_reply(told.replace("@", "[" * 499 + "]" * 499), rule)
    assert read_reply(told.replace("@", '{"x":' * 499 + "0" + "}" * 499), rule)
    assert read_reply(told.replace("@", f"[{'[{},{}],' * 600}0]"), rule)
    assert read_reply(told.replace("@", "[" * 500 + "]" * 500), rule) is None


@pytest.mark.parametrize("reply", CARRIED.values(), ids=CARRIED.keys())
@quick(5)
def test_a_hostile_leg_is_refused(reply: str) -> None:
    """The reply is a decision, but the things that it names do not exist."""
    story = ran(*trading_floor(), replied(reply))
    codes = {event.code for event in story if isinstance(event, LegRefused)}
    assert codes <= {"unknown_market", "unknown_side", "no_position"}
    [recorded] = [event for event in story if isinstance(event, DecisionRecorded)]
    assert recorded.executed == 0
    assert codes


def test_the_last_of_two_values_of_a_field_counts() -> None:
    """Common JSON readers do the same; the text is stored for readers that differ."""
    twice = text("HOLD")[:-1] + ', "action": "BET", "bets": [{"market_id": "rain", "side": "no", "amount": 50}]}'
    reply = read_reply(twice)
    assert reply is not None
    assert (reply.action, len(reply.bets)) == ("BET", 1)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (replied("x" * (MILLION + 1)), "text_too_long"),
        (replied("\ud800"), "id_not_plain"),
        (replied("{}", prompt="p" * (MILLION + 1)), "text_too_long"),
        (decision(reasoning="\udfff"), "id_not_plain"),
        (decision(reasoning="x" * (MILLION + 1)), "text_too_long"),
        (decision(bet(market_id="m" * 10_001)), "text_too_long"),
        (decision(bet(side="\ud800")), "id_not_plain"),
        (decision(bet(True)), "bad_number"),
        (decision(bet(None)), "bad_number"),
        (decision(bet("five hundred")), "bad_number"),
        (decision(bet(float("nan"))), "not_finite"),
        (decision(bet("inf")), "not_finite"),
        (decision(sale(True)), "bad_number"),
        (decision(sale(position_id=10**5_000)), "malformed"),
        (decision(sale(position_id=True)), "malformed"),
    ],
)
def test_a_value_that_a_field_cannot_have_is_refused(command: RecordDecision, code: str) -> None:
    """Nothing is recorded, and no attempt is used up."""
    outcome = given(*trading_floor()).when(command).outcome
    assert isinstance(outcome, Refused)
    assert outcome.code == code


def test_a_decision_in_fields_is_the_same_as_its_text() -> None:
    """The events are the same, except for the text that is stored and its digest."""
    bets = [{"market_id": "rain", "side": "YES", "amount": 500}, {"market_id": "colour", "side": "red", "amount": 50}]
    fields = ran(*trading_floor(), decision(bet(), bet(50, "red", "colour")))
    texts = ran(*trading_floor(), replied(text(bets=bets)))
    text_kept = texts.pop(-4)
    assert isinstance(text_kept, TextKept)
    recorded = texts.pop(-3)
    assert isinstance(recorded, DecisionRecorded)
    assert recorded.response == text_kept.digest
    assert texts == fields[:-3] + fields[-2:]
    assert (recorded.bets, recorded.executed) == (fields[-3].bets, 2)  # type: ignore[union-attr]


def test_an_action_counts_and_a_response_beside_it_is_stored() -> None:
    """A sender that gives both has already read the reply."""
    story = ran(*trading_floor(), decision(bet(), response="I bet 500 on rain."))
    assert [type(event) for event in story[-3:]] == [TextKept, DecisionRecorded, SharesBought]


def test_a_malformed_decision_in_fields_is_stored_as_canonical_json() -> None:
    """The stored text has the given fields only, in order of their names; it was written by hand."""
    story = ran(*trading_floor(), decision(bet("49.5"), bet("1e3", "no")))
    text_kept, malformed = story[-2:]
    stored = (
        '{"action":"BET","bets":[{"amount":"49.5","market_id":"rain","side":"YES"},'
        '{"amount":"1e3","market_id":"rain","side":"no"}],"reasoning":"It will."}'
    )
    assert isinstance(text_kept, TextKept)
    assert text_kept.text == stored
    assert isinstance(malformed, DecisionMalformed)
    assert (malformed.fault, malformed.response) == ("below_least_bet", sha256(stored.encode()).hexdigest())


def test_a_malformed_decision_of_a_line_is_stored_with_its_numbers_as_written() -> None:
    """Numbers of the line are stored as numbers."""
    line = {"type": "record_decision", "at": TRADES, "contest": "week", "participant": "ada", "period": 1}
    fields = {"action": "SELL", "sells": [{"position_id": 1, "percentage": "@"}], "reasoning": "."}
    command = command_of(json.dumps(line | fields).replace('"@"', "0.50"))
    assert isinstance(command, RecordDecision)
    assert reply_text(command) == '{"action":"SELL","reasoning":".","sells":[{"percentage":0.50,"position_id":1}]}'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
LEG = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(["market_id", "side", "amount", "position_id", "percentage"], JSON)
)
OFFERED = st.fixed_dictionaries(
    {},
    optional={
        "action": st.sampled_from(["BET", "SELL", "HOLD"]) | JSON,
        "reasoning": st.just(".") | JSON,
        "bets": st.lists(LEG, max_size=3) | JSON,
        "sells": st.lists(LEG, max_size=3) | JSON,
    },
)


@examples(OFFERED.map(json.dumps) | st.text(st.characters(), max_size=100))
def test_every_text_is_a_decision_or_has_a_fault(reply: str) -> None:
    """Any text is a decision or has a fault, without an exception."""
    assert first_fault(read_reply(reply), V1, CASH) in {"", *REPLY_FAULTS}


@examples(
    st.lists(st.builds(Bet, market_id=st.just("rain"), side=st.just("no"), amount=st.decimals(-9, 9999, places=8))),
    st.lists(st.builds(Sale, position_id=st.text() | st.integers(), percentage=st.decimals(-9, 999, places=8))),
)
def test_a_number_of_a_leg_is_the_nearest_unit(bets: list[Bet], sells: list[Sale]) -> None:
    """In fields or in a text, a number is rounded half-even to 1e-6 of the currency or of a percent."""
    legs: Any = {"bets": tuple(bets), "sells": tuple(sells)}
    reply = read_reply(reply_text(decision(action="BET", **legs)))
    assert reply is not None
    for read_as, given_as in zip(reply.bets, bets, strict=True):
        assert read_as.amount == round(Decimal(given_as.amount) * 10**6)
    for read_out, given_out in zip(reply.sells, sells, strict=True):
        assert read_out.percentage == round(Decimal(given_out.percentage) * 10**6)


def test_rules_of_their_own_have_limits_of_their_own() -> None:
    """A rule set may have another least bet, cap and least percentage than the arena's presets."""
    rules = Trading(least_bet_micros=10**6, cap_divisor=1, least_percentage_micros=50 * 10**6)
    assert [first_fault(read_reply(betting(amount)), rules, CASH) for amount in (0.99, 1, 10_000, 10_001)] == [
        *["below_least_bet", "", "", "above_cap"]
    ]
    assert [first_fault(read_reply(selling(share)), rules, CASH) for share in (49.999999, 50)] == ["bad_percentage", ""]
    story = ran(*trading_floor(rules=RuleSet(name="own", trading=rules)), decision(bet(10_000)))
    assert isinstance(story[-1], SharesBought)
