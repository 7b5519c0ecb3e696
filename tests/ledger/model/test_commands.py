"""Tests of commands as they are written: reading a line, canonical content, and fields that hold any object."""

import inspect
import json
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands as command_types
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.canonical import canonical_content
from forecast_ledger.ledger.model.commands import AnyCommand, SubmitForecast, WithdrawForecast, read, read_from
from forecast_ledger.ledger.model.events import Attestation
from forecast_ledger.ledger.model.rules import RuleSet, recorded_fields, written_fields
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.writing.store import prizes_from_log
from tests.support import given
from tests.support.effort import LONG
from tests.support.given import NOW, day
from tests.support.waiting import quick

OWN = RuleSet(name="own", kernel="ln")
KEYWORD = inspect.Parameter.KEYWORD_ONLY
CLOSE = '{"id": "c1", "type": "close_question", "at": "2026-03-15T00:00:00Z", "question": "rain"}'
LINES: dict[str, dict[str, Any]] = {
    "open_question": {"question": "rain", "kind": "binary", "opens_at": day(10), "closes_at": day(20)},
    "submit_forecast": {"question": "rain", "participant": "ada", "probability": 0.7},
    "withdraw_forecast": {"question": "rain", "participant": "ada"},
    "restate_forecasts": {
        "question": "rain",
        "participant": "ada",
        "forecasts": [{"at": day(12), "probability": 0.4}],
        "reason": "mistyped",
    },
    "rename_participant": {"participant": "ada", "to": "bo", "reason": "one person"},
    "close_question": {"question": "rain"},
    "amend_question": {"question": "rain", "contest": "cup", "weight": 2},
    "reschedule_question": {"question": "rain", "closes_at": day(22)},
    "resolve_question": {"question": "rain", "outcome": "yes"},
    "annul_question": {"question": "rain", "reason": "no source"},
    "revoke_resolution": {"question": "rain", "reason": "misread"},
    "open_contest": {"contest": "cup", "rules": "relative-2022-04"},
    "add_question": {"contest": "cup", "question": "rain"},
    "enrol_participant": {"contest": "cup", "participant": "ada"},
    "exclude_participant": {"contest": "cup", "participant": "ada", "level": "no_prize", "reason": "staff"},
    "finalize_contest": {"contest": "cup"},
    "pay_prizes": {"contest": "cup"},
    "cancel_market": {"question": "rain", "reason": "no source"},
    "change_outcomes": {"question": "colour", "remove": ["red"]},
    "quote": {"question": "rain", "prices": {"yes": 0.4}, "source": "feed", "quoted_at": day(15)},
    "record_decision": {"contest": "cup", "participant": "ada", "period": 1, "action": "HOLD", "reasoning": "."},
    "record_failed_call": {"contest": "cup", "participant": "ada", "period": 1, "error": "503"},
    "deposit_cash": {"contest": "cup", "participant": "ada", "amount": 50, "reason": "more"},
    "withdraw_cash": {"contest": "cup", "participant": "ada", "amount": 50, "reason": "less"},
    "record_trade": {
        "contest": "cup",
        "participant": "ada",
        "question": "rain",
        "action": "buy",
        "shares": 10,
        "amount": 4,
    },
    "require_version": {"version": "0.1.0"},
}


def line(kind: str, /, **fields: Any) -> bytes:
    """Return a line of the command file, with some fields changed."""
    return json.dumps({"id": "c1", "type": kind, "at": day(15)} | LINES[kind] | fields).encode()


def test_every_command_is_read_from_a_line_of_its_type() -> None:
    """The vocabulary has exactly these types."""
    commands = [read(line(kind)) for kind in LINES]
    assert {type(command) for command in commands} == set(get_args(AnyCommand)), "LINES needs a line for each command"
    assert all((command.id, command.at) == ("c1", day(15)) for command in commands)


PARTS_OF_COMMANDS = [
    command_types.Range,
    Attestation,
    command_types.Spot,
    command_types.Points,
    command_types.Prices,
    command_types.Bet,
    command_types.Sale,
    command_types.ModelCall,
]


@pytest.mark.parametrize("kind", [*get_args(AnyCommand), *PARTS_OF_COMMANDS], ids=lambda kind: kind.__name__)
def test_a_command_does_not_change_once_it_is_made(kind: type[msgspec.Struct]) -> None:
    """A command is frozen, and its fields are given by name, so that the decided command is the one that was sent."""
    assert kind.__struct_config__.frozen
    assert not [name for name, parameter in inspect.signature(kind).parameters.items() if parameter.kind is not KEYWORD]


@pytest.mark.parametrize(
    ("kind", "field", "default"),
    [
        ("open_question", "title", ""),
        ("open_contest", "payable_unit", Decimal("0.01")),
        ("open_contest", "title", ""),
        ("open_contest", "currency", ""),
        ("add_question", "weight", Decimal(1)),
        ("add_question", "hidden_coverage_weight", None),
        ("add_question", "spot_at", None),
        ("enrol_participant", "entrant", None),
        ("enrol_participant", "bot", False),
        ("submit_forecast", "quantiles", None),
        ("submit_forecast", "attestation", None),
        ("submit_forecast", "points", None),
        ("submit_forecast", "normalized", None),
        ("resolve_question", "known_at", None),
        ("resolve_question", "payouts", None),
        ("cancel_market", "policy", "refund_cost"),
        ("open_contest", "starts_at", None),
        ("open_contest", "series", None),
        ("enrol_participant", "family", None),
        ("enrol_participant", "release", None),
        ("quote", "quotes", None),
        ("quote", "bids", None),
        ("quote", "asks", None),
        ("record_decision", "attempt", 1),
        ("record_decision", "bets", None),
        ("record_decision", "sells", None),
        ("record_decision", "prompt", None),
        ("record_decision", "response", None),
        ("record_decision", "call", None),
        ("record_failed_call", "prompt", None),
        ("record_failed_call", "call", None),
        ("record_trade", "outcome", None),
        ("record_trade", "all_but", None),
        ("record_trade", "fee", 0),
    ],
)
def test_a_field_that_may_be_left_out_has_its_documented_default(kind: str, field: str, default: Any) -> None:
    """The table of commands says which fields are optional, and their defaults."""
    assert getattr(read(line(kind)), field) == default


def test_a_numeric_range_has_200_bins_and_closed_ends_by_default() -> None:
    """A range has 200 bins; an end is open only if the command says so; without levels, there are no decimals."""
    command = read(line("open_question", kind="numeric", range={"lower": 0, "upper": "1e3"}))
    given.given().when(command).records(
        events.QuestionOpened(
            at=given.micros(15),
            question="rain",
            kind="numeric",
            range=events.NumericRange(lower="0", upper="1000", bins=200),
            opens_at=given.micros(10),
            closes_at=given.micros(20),
        )
    )


def test_a_range_with_levels_has_no_bins_and_six_decimals_by_default() -> None:
    """A range with levels has no bins."""
    command = read(line("open_question", kind="numeric", range={"lower": 0, "upper": "1e3", "levels": [0.5, "0.90"]}))
    given.given().when(command).records(
        events.QuestionOpened(
            at=given.micros(15),
            question="rain",
            kind="numeric",
            range=events.NumericRange(lower="0", upper="1000", levels=(500_000_000, 900_000_000), decimals=6),
            opens_at=given.micros(10),
            closes_at=given.micros(20),
        )
    )


def test_an_attestation_is_read_from_an_object() -> None:
    """Every field of an attestation is optional; a given field is recorded as it is written."""
    declared = {"newest_source": "2026-03", "restricted_sources": False, "note": "by hand"}
    command = read(line("submit_forecast", attestation=declared))
    assert isinstance(command, command_types.SubmitForecast)
    assert command.attestation == Attestation(newest_source="2026-03", restricted_sources=False, note="by hand")
    assert command.attestation.model_released is None
    assert command.attestation.restricted_list == ""


def test_a_whole_rule_set_is_read_from_an_object() -> None:
    """`rules` is the name of a preset or a whole rule set."""
    command = read(line("open_contest", rules={"name": "own", "kernel": "log2"}))
    assert isinstance(command, command_types.OpenContest)
    assert command.rules == RuleSet(name="own", kernel="log2")


REQUIRED = [(kind, field) for kind, fields in LINES.items() for field in ["at", "type", *fields]]
OPTIONAL = {("submit_forecast", "probability"), ("resolve_question", "outcome"), ("quote", "question")}
OPTIONAL |= {
    ("reschedule_question", "closes_at"),
    ("change_outcomes", "remove"),
    ("amend_question", "contest"),
    ("amend_question", "weight"),
    ("quote", "prices"),
    ("record_decision", "action"),
    ("record_decision", "reasoning"),
    *((kind, "at") for kind in LINES),
}


def test_a_line_without_a_required_field_is_malformed() -> None:
    """A required field has no default."""
    for kind, field in (pair for pair in REQUIRED if pair not in OPTIONAL):
        fields = json.loads(line(kind))
        del fields[field]
        with pytest.raises(Refused, match=rf"^malformed: .*missing required field `{field}`"):
            read(json.dumps(fields))


@pytest.mark.parametrize("kind", LINES)
def test_a_line_with_an_unknown_field_is_malformed(kind: str) -> None:
    """A misspelt field is refused, not ignored."""
    with pytest.raises(Refused, match=r"^malformed: .*unknown field"):
        read(line(kind, probabilty="0.5"))


NUMBERS_OF = {"submit_forecast": ["probability"], "open_contest": ["pool", "payable_unit"], "add_question": ["weight"]}
NUMBERS_OF |= {"deposit_cash": ["amount"], "withdraw_cash": ["amount"], "amend_question": ["weight"]}
NUMBERS_OF |= {"record_trade": ["shares", "amount", "fee"]}
WRONG_TYPES = [
    (kind, field)
    for kind, fields in LINES.items()
    for field in ["id", "at", *fields]
    if field not in {"probability", "amount", "weight", "shares"}
]
WRONG_TYPES += [("open_question", "range"), ("submit_forecast", "attestation"), ("add_question", "spot_at")]
WRONG_TYPES += [("enrol_participant", "entrant"), ("resolve_question", "payouts"), ("open_contest", "series")]
WRONG_TYPES += [("record_decision", field) for field in ("attempt", "bets", "sells", "prompt", "response")]
WRONG_TYPES += [("quote", "quotes"), ("cancel_market", "policy"), ("enrol_participant", "family")]


@pytest.mark.parametrize("value", [7.5, True, [[1]]], ids=str)
def test_a_field_of_the_wrong_json_type_is_malformed(value: Any) -> None:
    """The refusal names the field."""
    for kind, field in WRONG_TYPES:
        with pytest.raises(Refused) as caught:
            read(line(kind, **{field: value}))
        assert (caught.value.code, caught.value.field.partition("[")[0]) == ("malformed", field), kind


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in NUMBERS_OF.items() for field in fields])
@pytest.mark.parametrize("value", [[], True, [[1]], {}, {"a": 1}, "", "one"], ids=str)
def test_a_json_value_that_is_not_a_number_is_refused(kind: str, field: str, value: Any) -> None:
    """The number is refused when the line is read or when the command is handled, with a code for unreadable values."""
    before = [line("open_question"), line("open_contest", id="c2")] if kind != "open_contest" else []
    assert handled(*before, line(kind, id="c3", **{field: value})) in {"malformed", "bad_number"}


MALFORMED: dict[str, bytes | str] = {
    "empty": b"",
    "blank": b"   ",
    "newline": b"\n",
    "empty text": "",
    "words": b"hello",
    "unfinished": CLOSE[:-1].encode(),
    "two objects": (CLOSE + CLOSE).encode(),
    "comma after": (CLOSE + ",").encode(),
    "array": f"[{CLOSE}]".encode(),
    "number": b"7",
    "null": b"null",
    "text": b'"close_question"',
    "unknown type": CLOSE.replace("close_", "shut_").encode(),
    "type in another case": CLOSE.replace('"close_question"', '"Close_question"').encode(),
    "type null": CLOSE.replace('"close_question"', "null").encode(),
    "single quotes": CLOSE.replace('"', "'").encode(),
    "byte order mark": b"\xef\xbb\xbf" + CLOSE.encode(),
    "utf-16": CLOSE.encode("utf-16"),
    "invalid utf-8": CLOSE.encode().replace(b"rain", b"r\xff"),
    "overlong utf-8": CLOSE.encode().replace(b"rain", b"\xc0\xaf"),
    "surrogate in utf-8": CLOSE.encode().replace(b"rain", b"\xed\xa0\x80"),
    "surrogate in a text": CLOSE.replace("rain", "\ud800"),
    "control character": CLOSE.encode().replace(b"rain", b"r\x01"),
    "high surrogate escape": CLOSE.replace("rain", "\\ud800").encode(),
    "low surrogate escape": CLOSE.replace("rain", "\\udc00x").encode(),
    "surrogates in the wrong order": CLOSE.replace("rain", "\\udc00\\ud800").encode(),
    "nan literal": line("submit_forecast").replace(b"0.7", b"NaN"),
    "infinity literal": line("submit_forecast").replace(b"0.7", b"-Infinity"),
    "bare point": line("submit_forecast").replace(b"0.7", b".7"),
    "plus sign": line("submit_forecast").replace(b"0.7", b"+0.7"),
    "leading zero": line("submit_forecast").replace(b"0.7", b"007"),
    "hexadecimal": line("submit_forecast").replace(b"0.7", b"0x7"),
    "deep array": b"[" * 100_000,
    "deep object": b'{"type":' * 100_000,
    "deep unknown field": b'{"x":' + b"[" * 100_000,
    "deep rules": line("open_contest").replace(b'"relative-2022-04"', b"[" * 100_000),
    "deep range": line("open_question", range=1).replace(b'"range": 1', b'"range": ' + b'{"a":' * 100_000),
    "kind": line("open_question", kind="ternary"),
    "level": line("exclude_participant", level="banned"),
    "fractional bins": line("open_question", range={"lower": 0, "upper": 1, "bins": 2.5}),
    "unknown field of a range": line("open_question", range={"lower": 0, "upper": 1, "step": 1}),
    "range without end": line("open_question", range={"lower": 0}),
    "fractional decimals": line("open_question", range={"lower": 0, "upper": 1, "levels": [0.5], "decimals": 2.5}),
    "decimals in words": line("open_question", range={"lower": 0, "upper": 1, "levels": [0.5], "decimals": "six"}),
    "one level": line("open_question", range={"lower": 0, "upper": 1, "levels": 0.5}),
    "levels by name": line("open_question", range={"lower": 0, "upper": 1, "levels": {"median": 0.5}}),
    "deep levels": line("open_question", range=1).replace(
        b'"range": 1', b'"range": {"lower": 0, "upper": 1, "levels": ' + b"[" * 100_000
    ),
    "one quantile": line("submit_forecast", quantiles=1),
    "quantiles by level": line("submit_forecast", quantiles={"0.5": 1}),
    "deep quantiles": line("submit_forecast", quantiles=1).replace(b'"quantiles": 1', b'"quantiles": ' + b"[" * 10**5),
    "unknown field of an attestation": line("submit_forecast", attestation={"author": "ada"}),
    "stamp as a number": line("submit_forecast", attestation={"newest_source": 2022}),
    "restricted by a number": line("submit_forecast", attestation={"restricted_sources": 1}),
    "note null": line("submit_forecast", attestation={"note": None}),
    "note of surrogates": line("submit_forecast", attestation={"note": 1}).replace(b'"note": 1', b'"note": "\\ud800"'),
    "bot as a number": line("enrol_participant", bot=1),
    "bot null": line("enrol_participant", bot=None),
    "policy": line("cancel_market", policy="refund"),
    "policy null": line("cancel_market", policy=None),
    "payouts in a row": line("resolve_question", payouts=[1, 0]),
    "prices in a row": line("quote", prices=[0.4, 0.6]),
    "unknown field of prices": line("quote", quotes=[{"question": "q", "prices": {"yes": 1}, "bid": 1}]),
    "quotes by question": line("quote", quotes={"rain": {"yes": 0.4}}),
    "prices without question": line("quote", quotes=[{"prices": {"yes": 1}}]),
    "fractional period": line("record_decision", period=1.5),
    "period in words": line("record_decision", period="1"),
    "attempt null": line("record_decision", attempt=None),
    "unknown field of a bet": line(
        "record_decision", bets=[{"market_id": "q", "side": "YES", "amount": 1, "limit": 1}]
    ),
    "bet without side": line("record_decision", bets=[{"market_id": "q", "amount": 1}]),
    "sale of a fractional position": line("record_decision", sells=[{"position_id": 1.5, "percentage": 1}]),
    "sale without percentage": line("record_decision", sells=[{"position_id": "1"}]),
    "deep bets": line("record_decision", bets=1).replace(b'"bets": 1', b'"bets": ' + b"[" * 10**5),
    "response of surrogates": line("record_decision", response=1).replace(b'"response": 1', b'"response": "\\ud800"'),
    "trading": line("open_contest", rules={"name": "x", "trading": "arena-v1"}),
    "unknown field of trading": line("open_contest", rules={"name": "x", "trading": {"fee": 1}}),
    "no cap": line("open_contest", rules={"name": "x", "trading": {"cap_divisor": 0}}),
    "payouts": line("pay_prizes", payouts={"ada": 10}),
    "payouts null": line("pay_prizes", payouts=None),
    "contest in a row": line("pay_prizes", contest=["cup"]),
    "kernel": line("open_contest", rules={"name": "x", "kernel": "log10"}),
    "kernel of another form": line("open_contest", rules={"name": "x", "cdf_kernel": "pinball"}),
    "rules without name": line("open_contest", rules={"kernel": "ln"}),
    "unknown field of rules": line("open_contest", rules={"name": "x", "kernel": "ln", "fee": 1}),
    "least probability": line("open_contest", rules={"name": "x", "kernel": "ln", "least_probability_ppm": 500_001}),
    "minutes of a day": line("open_contest", rules={"name": "x", "kernel": "ln", "day_minutes": 1_441}),
    "level of scored only": line("open_contest", rules={"name": "x", "kernel": "ln", "scored_only_levels": ["all"]}),
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED.keys())
@quick(1)
def test_a_line_that_is_not_a_command_is_malformed(text: bytes | str) -> None:
    """Any content of the line gives this refusal, in short time, and no other exception."""
    with pytest.raises(Refused) as caught:
        read(text)
    assert caught.value.code == "malformed"
    assert "\n" not in str(caught.value)


@examples(st.binary(max_size=200) | st.text(st.characters(), max_size=200))
def test_any_line_at_all_is_a_command_or_malformed(text: bytes | str) -> None:
    """Any bytes give a command or this refusal, and no other exception."""
    with pytest.raises(Refused, match=r"^malformed"):
        read(text)


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x1b[31mb", "a\rb", "\u2028", "x" * 100_000], ids=lambda name: ascii(name)[:20]
)
def test_a_refusal_is_one_short_printable_line(name: str) -> None:
    """The content of a line cannot forge another line of a report, control a terminal, or flood it."""
    for text in [line("close_question", **{name: 1}), line("close_question", type=name)]:
        with pytest.raises(Refused) as caught:
            read(text)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 1_000


NUMBERS = [
    ("0.25", None),
    ("1e-999999999", None),  # a finite decimal that rounds to 0
    ("0e999999999", None),
    ("1e999", "out_of_range"),
    ("1e9999999", "out_of_range"),
    ("1e999999999", "out_of_range"),
    ("-1e999999999", "out_of_range"),
    ("9" * 400, "out_of_range"),
    ("0." + "0" * 400, None),
    ("0." + "3" * 400, None),
    ("2", "out_of_range"),
    ("-0.1", "out_of_range"),
]
TEXTS = [("nan", "not_finite"), ("NaN", "not_finite"), ("-Infinity", "not_finite"), ("inf", "not_finite")]
NO_DECIMALS = ["", " 0.5", "0.5 ", "1_0e-1", "\u0660.\u0665", "\uff10", "sNaN", "NaN123", "0x1", "1,5", "half"]


@quick(2)
def handled(*lines: bytes) -> str | None:
    """Return the code with which the last line is refused, if any; other exceptions and slow answers fail the test."""
    try:
        with Ledger.open(":memory:", clock=lambda: NOW, prizes=prizes_from_log) as ledger:
            for text in lines:
                ledger.handle(read(text))
    except Refused as refused:
        return refused.code
    return None


@pytest.mark.parametrize(("number", "code"), NUMBERS, ids=lambda value: str(value)[:15])
@pytest.mark.parametrize("quote", [b"", b'"'], ids=["number", "text"])
def test_a_number_in_a_line_is_taken_or_refused_at_once(number: str, code: str | None, quote: bytes) -> None:
    """A JSON number and a decimal text are the same number; none hangs, crashes, or is clamped."""
    forecast = line("submit_forecast", id="c2").replace(b"0.7", quote + number.encode() + quote)
    assert handled(line("open_question"), forecast) == code


@pytest.mark.parametrize(
    "number",
    ["9" * 100_000, "0." + "3" * 100_000, "1" + "0" * 10**6, "1e-" + "9" * 1_000],
    ids=lambda number: number[:5],
)
@pytest.mark.parametrize("quote", [b"", b'"'], ids=["number", "text"])
def test_a_number_of_absurd_length_is_refused_at_once(number: str, quote: bytes) -> None:
    """The refusal may have any code for numbers that cannot be read, but it must come at once."""
    forecast = line("submit_forecast", id="c2").replace(b"0.7", quote + number.encode() + quote)
    assert handled(line("open_question"), forecast) in {"malformed", "bad_number", "out_of_range"}


@pytest.mark.parametrize(("number", "code"), TEXTS)
def test_a_text_that_names_an_infinite_number_is_refused(number: str, code: str) -> None:
    """JSON has no literal for such a number, but a text may have its name."""
    assert handled(line("open_question"), line("submit_forecast", id="c2", probability=number)) == code


@pytest.mark.parametrize("number", NO_DECIMALS, ids=ascii)
def test_a_text_that_is_not_a_plain_decimal_is_refused(number: str) -> None:
    """A text has the same digits, point and exponent as a number in Python: no underscore, space, or other script."""
    code = handled(line("open_question"), line("submit_forecast", id="c2", probability=number))
    assert code in {"malformed", "bad_number"}


OPEN_FLOW = line("open_question", id="q", question="flow", kind="numeric", range="@").replace(
    b'"@"', b'{"lower": 0, "upper": 4, "levels": [0.25, 0.5, 0.75], "open_upper": true}'
)
OPEN_DEPTH = line("open_question", id="q", question="depth", kind="numeric", range="@").replace(
    b'"@"', b'{"lower": 0, "upper": 4, "bins": 4, "open_upper": true}'
)
OPEN_COLOUR = line("open_question", id="q", question="colour", kind="multiple_choice", outcomes=["red", "blue"])
OPEN_CUP = line("open_contest", id="k", pool=10)
WON_CUP = [line("open_question", id="q"), OPEN_CUP, line("add_question", id="e"), line("submit_forecast", id="s")]
WON_CUP += [line("resolve_question", id="r", at=day(25)), line("finalize_contest", id="f")]
OPEN_STAKES = line("open_contest", id="k", rules={"name": "x", "trading": {"recapitalisation": True}})
TRADED = [line("open_question", id="q"), OPEN_STAKES, line("add_question", id="e"), line("enrol_participant", id="n")]
TRADED += [line("quote", id="p")]
# By the name of a field: a line with a place for a value, and the lines before it that make it valid.
PLACES: dict[str, tuple[bytes, list[bytes]]] = {
    "levels": (
        line("open_question", kind="numeric", range="@").replace(b'"@"', b'{"lower": 0, "upper": 4, "levels": @}'),
        [],
    ),
    "level": (
        line("open_question", kind="numeric", range="@").replace(
            b'"@"', b'{"lower": 0, "upper": 4, "levels": [0.5, @]}'
        ),
        [],
    ),
    "decimals": (
        line("open_question", kind="numeric", range="@").replace(
            b'"@"', b'{"lower": 0, "upper": 4, "levels": [0.5], "decimals": @}'
        ),
        [],
    ),
    "quantiles": (
        line("submit_forecast", question="flow", probability=None, quantiles="@").replace(b'"@"', b"@"),
        [OPEN_FLOW],
    ),
    "quantile": (
        line("submit_forecast", question="flow", probability=None, quantiles="@").replace(b'"@"', b"[1, 2, @]"),
        [OPEN_FLOW],
    ),
    "points": (
        line("submit_forecast", question="depth", probability=None, points="@").replace(b'"@"', b"@"),
        [OPEN_DEPTH],
    ),
    "point": (
        line("submit_forecast", question="depth", probability=None, points="@").replace(
            b'"@"', b'{"levels": [0.1, 0.5], "quantiles": [1, @], "method": "linear"}'
        ),
        [OPEN_DEPTH],
    ),
    "level of a point": (
        line("submit_forecast", question="depth", probability=None, points="@").replace(
            b'"@"', b'{"levels": [0.1, @], "quantiles": [1, 2], "method": "linear"}'
        ),
        [OPEN_DEPTH],
    ),
    "normalized": (
        line(
            "submit_forecast",
            question="colour",
            probability=None,
            probabilities={"red": 0.5, "blue": 0.5},
            normalized="@",
        ).replace(b'"@"', b"@"),
        [OPEN_COLOUR],
    ),
    "answer": (
        line("resolve_question", question="flow", outcome=None, value="@", known_at=day(12)).replace(b'"@"', b"@"),
        [OPEN_FLOW],
    ),
    "attestation": (line("submit_forecast", attestation="@").replace(b'"@"', b"@"), [line("open_question", id="q")]),
    **{
        part: (line("submit_forecast", attestation={part: "@"}).replace(b'"@"', b"@"), [line("open_question", id="q")])
        for part in Attestation.__struct_fields__
    },
    "spot_at": (line("add_question", spot_at="@").replace(b'"@"', b"@"), [line("open_question", id="q"), OPEN_CUP]),
    "entrant": (line("enrol_participant", entrant="@").replace(b'"@"', b"@"), [OPEN_CUP]),
    "bot": (line("enrol_participant", bot="@").replace(b'"@"', b"@"), [OPEN_CUP]),
    "paid_at": (line("pay_prizes", at="@").replace(b'"@"', b"@"), WON_CUP),
    "payout": (
        line("resolve_question", outcome=None, payouts={"yes": "@", "no": 0.5}).replace(b'"@"', b"@"),
        [line("open_question", id="q")],
    ),
    "starts_at": (line("open_contest", rules="arena-v1", starts_at="@").replace(b'"@"', b"@"), []),
    "series": (line("open_contest", rules="arena-v1", series="@").replace(b'"@"', b"@"), []),
    "family": (line("enrol_participant", family="@").replace(b'"@"', b"@"), [OPEN_CUP]),
    "quoted_at": (line("quote", quoted_at="@").replace(b'"@"', b"@"), TRADED),
    "price": (line("quote", prices={"yes": "@"}).replace(b'"@"', b"@"), TRADED),
    "prices": (line("quote", prices="@").replace(b'"@"', b"@"), TRADED),
    "quotes": (line("quote", question=None, prices=None, quotes="@").replace(b'"@"', b"@"), TRADED),
    "source": (line("quote", source="@").replace(b'"@"', b"@"), TRADED),
    "deposit": (line("deposit_cash", amount="@").replace(b'"@"', b"@"), TRADED),
    "taken out": (line("withdraw_cash", amount="@").replace(b'"@"', b"@"), TRADED),
    **{
        f"rules.{field}": (
            line("open_contest", rules={"name": "x", "kernel": "ln", field: "@"}).replace(b'"@"', b"@"),
            [],
        )
        for field in RuleSet.__struct_encode_fields__
    },
}
# A valid value for each place, so that only the hostile value can be the reason of a refusal.
GOOD: dict[str, bytes] = {
    "levels": b"[0.25, 0.5]",
    "level": b"0.75",
    "decimals": b"12",
    "quantiles": b"[1, 2, 3]",
    "quantile": b"10000000",
    "points": b'{"levels": [0.1, 0.9], "quantiles": [1, 2], "method": "linear"}',
    "point": b"10000000",
    "level of a point": b"0.75",
    "normalized": b'"by_sum"',
    "answer": b"10000000",
    "attestation": b"{}",
    **dict.fromkeys(["newest_source", "model_released", "training_cutoff"], b'"2022-03-22 12:00:00"'),
    "restricted_sources": b"true",
    **dict.fromkeys(["restricted_list", "note"], b'"list 3\\n"'),
    "spot_at": b'"2026-03-12T00:00:00Z"',
    "entrant": b'"team"',
    "bot": b"true",
    "paid_at": b'"2026-03-12T00:00:00Z"',
    "payout": b"0.5",
    "starts_at": b'"2026-03-12T00:00:00Z"',
    **dict.fromkeys(["series", "family", "source"], b'"team"'),
    "quoted_at": b'"2026-03-15T00:00:00Z"',
    "price": b"0.5",
    "prices": b'{"yes": 0.5}',
    "quotes": b'[{"question": "rain", "prices": {"yes": 0.5}}]',
    **dict.fromkeys(["deposit", "taken out"], b"0.000001"),
    **{f"rules.{field}": msgspec.json.encode(value) for field, value in written_fields(OWN).items()},
}
HUGE = [b"9" * 400, b"1e999999999", b"-1e999999999", b"1e400", b"-" + b"9" * 100_000, b"0." + b"3" * 100_000 + b"e400"]
BARE = [b"NaN", b"-Infinity", b"0x1", b"+1", b"007", b".5", b"", b"@", b"'1'", b"\x00"]
NESTED = [b"[[[1]]]", b'[{"a": [1]}]', b'{"a": {"b": 1}}', b"[null]", b"[true]", b'[""]', b"[1,]", b"{1: 1}"]
NESTED += [b"[" * 100_000, b'{"a":' * 100_000]
NO_TEXTS = [b'"\\ud800"', b'"\\udc00\\ud800"', b'"\xed\xa0\x80"', b'"\xff"', b'"' + b"x" * 10_001 + b'"']
QUOTED = [b'"' + number + b'"' for number in [*HUGE, b"NaN", b"-Infinity", b"sNaN", b"1_0", b"0x1", b"\\u0000"]]
TAKES_TEXT = {"note", "restricted_list", "entrant", "rules.name"}  # in these, a number in quotes is a valid text
TAKES_TEXT |= {"series", "family", "source"}
ANYTHING = {"malformed", "id_empty", "id_too_long", "id_not_plain", "text_too_long", "bad_instant", "naive_instant"}
ANYTHING |= {"bad_number", "amount_not_text", "not_finite", "out_of_range"}
NULLABLE = {"attestation", "spot_at", "entrant", "restricted_sources", "decimals", "levels"}
NULLABLE |= {"newest_source", "model_released", "training_cutoff", "paid_at"}
NULLABLE |= {"rules.trading", "starts_at", "series", "family", "normalized"}


@pytest.mark.parametrize("place", PLACES)
def test_a_good_value_is_taken_in_every_place_of_the_test_below(place: str) -> None:
    """If these good values were refused, the test below would prove nothing."""
    text, before = PLACES[place]
    assert handled(*before, text.replace(b"@", GOOD[place])) is None


@pytest.mark.parametrize("place", PLACES)
@quick(5)
def test_a_hostile_value_in_a_field_is_refused_at_once(place: str) -> None:
    """A huge, infinite or nested value, or one of another type, is refused at once as unreadable."""
    text, before = PLACES[place]
    with Ledger.open(":memory:", clock=lambda: NOW, prizes=prizes_from_log) as ledger:
        for earlier in before:
            ledger.handle(read(earlier))
        head = ledger.head()
        for value in [*HUGE, *BARE, *NESTED, *NO_TEXTS, *([] if place in TAKES_TEXT else QUOTED)]:
            with pytest.raises(Refused) as caught:
                ledger.handle(read(text.replace(b"@", value)))
            assert caught.value.code in ANYTHING, value[:80]
            assert str(caught.value).isprintable()
            assert len(str(caught.value)) < 1_000
        assert ledger.head() == head


@pytest.mark.parametrize("place", PLACES)
def test_null_means_that_a_field_is_left_out_or_is_refused(place: str) -> None:
    """A null is never a value of its own."""
    text, before = PLACES[place]
    code = handled(*before, text.replace(b"@", b"null"))
    refused = {"malformed", "bad_number", "wrong_distribution", "wrong_resolution"}
    assert code is None if place in NULLABLE else code in refused


MANY, MANY_MORE = (2 * 10**4, 4 * 10**4) if LONG == 1 else (4 * 10**4, 8 * 10**4)
LONG_ROWS: list[tuple[str, Callable[[], bytes], set[str]]] = [  # built when they are needed
    ("levels", lambda: b"[" + b",".join(b"0.%06d" % each for each in range(1, MANY_MORE)) + b"]", {"out_of_range"}),
    ("levels", lambda: b"[" + b"0.5," * MANY_MORE + b"0.5]", {"out_of_range"}),
    ("levels", lambda: b"[" + b"0.5," * MANY + b"null]", {"bad_number"}),
    ("quantiles", lambda: b"[" + b"1," * MANY + b"1]", {"wrong_length"}),
    ("quantiles", lambda: b"[" + b"1," * MANY + b'"x"]', {"bad_number"}),
    (
        "points",
        lambda: b'{"levels": [' + b"0.5," * MANY + b'0.5], "quantiles": [' + b"1," * MANY + b'1], "method": "linear"}',
        {"out_of_range"},
    ),
    ("rules.scored_only_levels", lambda: b"[" + b'"hidden",' * MANY + b'"x"]', {"malformed"}),
    ("note", lambda: b'"' + b"x" * MANY + b'"', {"text_too_long"}),
    ("newest_source", lambda: b'"2022-03-22T' + b"1" * MANY + b'"', {"bad_instant"}),
    ("entrant", lambda: b'"' + b"x" * MANY + b'"', {"id_too_long"}),
]


@pytest.mark.parametrize(("place", "made", "codes"), LONG_ROWS, ids=range(len(LONG_ROWS)))
@quick(MANY / 10**4)
def test_a_row_without_end_is_refused(place: str, made: Callable[[], bytes], codes: set[str]) -> None:
    """The refusal names the fault, in the time that it takes to read the array."""
    (text, before), value = PLACES[place], made()
    with Ledger.open(":memory:", clock=lambda: NOW, prizes=prizes_from_log) as ledger:
        for earlier in before:
            ledger.handle(read(earlier))
        with pytest.raises(Refused) as caught:
            ledger.handle(read(text.replace(b"@", value)))
    assert caught.value.code in codes
    assert len(str(caught.value)) < 1_000


ruled: Callable[..., Any] = RuleSet  # types whose fields are given any value
declared: Callable[..., Any] = Attestation
staked: Callable[..., Any] = Trading
priced: Callable[..., Any] = command_types.Prices


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
EVERY_FIELD = [
    (kind, field.name)
    for kind in get_args(AnyCommand)
    for field in msgspec.structs.fields(kind)
    if field.name not in {"id", "type"}
]
PARTS = {"range": command_types.Range, "attestation": Attestation, "rules": RuleSet}


@st.composite
def mutilated(draw: st.DrawFn) -> bytes:
    """Return a line with any JSON value in one of its fields, or in one field of an object in it."""
    kind, field = draw(st.sampled_from(EVERY_FIELD))
    value = draw(JSON)
    if field in PARTS:
        part = draw(st.sampled_from(PARTS[field].__struct_fields__))
        base: list[dict[str, Any]] = [{"name": "x", "kernel": "ln"}, {"lower": 0, "upper": 1}, {}]
        value = draw(st.sampled_from(base)) | {part: value}
    return line(kind.__struct_config__.tag, **{field: value})


@examples(mutilated())
def test_any_json_value_in_a_field_gives_a_receipt_or_a_refusal(text: bytes) -> None:
    """There is no other exception, and a refused command leaves nothing behind."""
    with Ledger.open(":memory:", clock=lambda: NOW, prizes=prizes_from_log) as ledger:
        for number, earlier in enumerate([line("open_question"), line("open_contest"), line("submit_forecast")]):
            ledger.handle(read(earlier), f"before-{number}")
        head = ledger.head()
        try:
            command = read(text)
        except Refused:
            return
        [outcome] = ledger.handle_many([command])
        if isinstance(outcome, Refused):
            assert str(outcome).isprintable()
            assert ledger.head() == head
        else:
            assert outcome.first == head.position + 1


class Odd:
    """An object whose type JSON does not have."""


def paying(**fields: Any) -> command_types.PayPrizes:
    """Return the prizes of a contest that is finalized and not yet paid."""
    return command_types.PayPrizes(**({"contest": "done", "at": day(25)} | fields))


LOOP: list[Any] = []
LOOP.append(LOOP)
NO_BOOLEANS: list[Any] = [0, 1, "no", [], Odd()]
NO_TEXT: list[Any] = [7, b"t", ["t"], Odd(), True, "\ud800"]
NO_NUMBERS: list[Any] = [True, None, "x", b"1", [1], {"a": 1}, Odd(), LOOP, 1 + 0j, float("nan"), Decimal("sNaN")]
NO_POSITIONS: list[Any] = [None, 1.0, True, [1], Odd(), "x" * 10_001]
NO_INSTANTS: list[Any] = [7, 1.5, b"2026", [], "", Odd(), True, datetime(2026, 3, 12).date()]
NO_ROWS: list[Any] = [7, "rain", b"r", {"a": 1}, {"a"}, Odd(), True, iter([])]
NO_LEVELS: list[Any] = [{"hidden"}, "hidden", ("x",), (None,), Odd(), LOOP, {"hidden": 1}, frozenset()]
HISTORY: list[AnyCommand] = [
    given.opened(),
    given.choices(),
    given.numeric(bins=1),
    given.quartiles(open_upper=True),
    given.contest(pool=10),
    given.contest("done", pool=10),
    given.entry("done"),
    given.forecast(),
    given.resolution(),
    given.finalization("done"),
]
WRONG: list[tuple[Callable[..., AnyCommand], str, list[Any]]] = [
    (given.opened, "question", [None, 7, b"q", ["q"], {"q": 1}, ("q",), Odd(), 1.5, True]),
    (given.opened, "kind", ["foo", "", None, 7, b"binary", ["binary"], Odd(), True, LOOP]),
    (given.opened, "title", [None, 7, b"t", ["t"], Odd(), "\ud800"]),
    (given.opened, "at", [7, 1.5, b"2026", ["2026"], Odd(), True, datetime(2026, 3, 1).date()]),
    (given.opened, "opens_at", [None, 7, Odd()]),
    (given.opened, "closes_at", [None, 7, Odd()]),
    (given.opened, "reveals_at", [7, "", Odd(), []]),
    (given.choices, "question", [["q"], {"q"}]),
    (
        given.choices,
        "outcomes",
        ["ab", b"ab", 5, Odd(), LOOP, {"a", "b"}, {"a": 1, "b": 2}, ("a", 1), ("a", None), ("a", ["b"])],
    ),
    (given.numeric, "lower", [None, True, "x", [0], Odd()]),
    (given.numeric, "upper", [None, False, b"4", {"a": 4}, Odd()]),
    (given.numeric, "bins", ["4", 4.5, 4.0, True, [4], Odd(), 2**70, -(2**70)]),
    (given.quartiles, "bins", ["4", 4.5, True, [4], Odd(), 2**70]),
    (
        given.quartiles,
        "levels",
        [0.5, "0.5", b"5", {0.5}, {0.5: 1}, Odd(), LOOP, (None,), ("x",), (True,), ([0.5],), ()],
    ),
    (given.quartiles, "levels", [("nan",), (Decimal("inf"),), (float("nan"),), (1 + 0j,), (0,), (1,), iter([0.5])]),
    (given.quartiles, "decimals", ["4", 4.5, 4.0, True, [4], Odd(), 2**70, -(2**70), -1, 13]),
    (given.numeric, "open_lower", [1, 0, "yes", None, Odd()]),
    (given.numeric, "open_upper", [1, 0, "yes", None, Odd()]),
    (given.numeric, "zero_point", [True, "x", [], Odd()]),
    (given.forecast, "participant", [None, 7, b"a", ["a"], Odd(), "\ud800"]),
    (given.forecast, "probability", [True, b"1", [0.5], {"yes": 0.5}, (0.5,), Odd(), 1 + 0j, "half"]),
    *[
        (
            given.forecast,
            "attestation",
            [declared(**{stamp: wrong}) for wrong in (7, b"2022", ["2022"], Odd(), "", True)],
        )
        for stamp in ("newest_source", "model_released", "training_cutoff")
    ],
    (given.forecast, "attestation", [declared(restricted_sources=wrong) for wrong in NO_BOOLEANS]),
    *[
        (
            given.forecast,
            "attestation",
            [declared(**{text: wrong}) for wrong in (None, 7, b"n", ["n"], Odd(), "\ud800", "x" * 10_001)],
        )
        for text in ("restricted_list", "note")
    ],
    (given.forecast, "attestation", [{}, {"note": "x"}, "by hand", 7, True, Odd(), ["2022"], LOOP]),
    (given.withdrawal, "participant", [None, 7, ["a"], Odd()]),
    (given.closing, "question", [None, ["rain"], Odd()]),
    (given.resolution, "outcome", [7, b"yes", ["yes"], Odd(), True, Decimal(1), "\ud800"]),
    (given.resolution, "value", [True, [1], {"a": 1}, Odd(), "one"]),
    (given.resolution, "known_at", [7, [], "", Odd()]),
    (given.annulment, "reason", [None, 7, b"r", ["r"], Odd(), "\ud800"]),
    (given.revocation, "reason", [None, 7, Odd()]),
    (given.contest, "contest", [None, 7, ["cup"], Odd()]),
    (given.contest, "rules", [None, 7, b"x", ["x"], Odd(), Decimal(1), datetime(2026, 3, 1), "\ud800", {}]),
    (given.contest, "rules", [ruled(name="x", kernel="lg"), ruled(name="", kernel="ln")]),
    (given.contest, "rules", [ruled(name="x", kernel="ln", least_probability_ppm=-1), ruled(name="x" * 201)]),
    (given.contest, "rules", [ruled(name="x", kernel="ln", day_minutes=2**70), ruled(name=None)]),
    (
        given.contest,
        "rules",
        [
            ruled(name="x", **{field: wrong})
            for wrong in NO_LEVELS
            for field in ("scored_only_levels", "reference_rows")
        ],
    ),
    (given.contest, "rules", [ruled(name="x", kernel=wrong) for wrong in (None, 7, ["ln"], Odd(), LOOP, b"ln")]),
    (given.contest, "rules", [ruled(name="x", score_consensus=wrong) for wrong in (None, *NO_BOOLEANS)]),
    (given.contest, "rules", [ruled(name="x", kernel="ln", least_density_ppm="1")]),
    (given.contest, "rules", [ruled(name="x", kernel="ln", early_forecasts=1)]),
    (given.contest, "rules", [ruled(name="x", kernel="ln", take="all")]),
    (given.contest, "rules", [ruled(name="\ud800", kernel="ln")]),
    (given.contest, "pool", [True, [], [1], {}, {"a": 1}, Odd(), ""]),
    (given.contest, "payable_unit", [None, True, [1], Odd()]),
    (given.contest, "currency", [None, 7, Odd()]),
    (given.contest, "title", [None, 7, Odd()]),
    (given.entry, "weight", [None, True, [1], Odd()]),
    (given.entry, "hidden_coverage_weight", [True, [], Odd()]),
    (given.entry, "spot_at", [7, [], "", Odd(), datetime(2026, 3, 12).date(), True]),
    (given.enrolment, "participant", [None, 7, ["a"], Odd(), "\ud800"]),
    (given.enrolment, "entrant", ["", 7, ["a"], Odd(), True, "\ud800", "a\n"]),
    (given.enrolment, "bot", [None, 0, 1, "no", [], Odd()]),
    (given.exclusion, "level", ["x", "", None, 7, ["hidden"], Odd()]),
    (given.exclusion, "reason", [None, 7, Odd()]),
    (given.finalization, "contest", [None, ["cup"], Odd()]),
    (
        given.resolution,
        "payouts",
        [*NO_ROWS[:3], [1, 0], ("yes", 1), Odd(), True, LOOP, {1: 1}, {"": 1}, {"\ud800": 1}],
    ),
    (given.resolution, "payouts", [{"yes": wrong, "no": 1} for wrong in NO_NUMBERS]),
    (given.cancellation, "policy", ["refund", "", None, 7, ["refund_cost"], Odd(), LOOP]),
    (given.cancellation, "reason", [None, *NO_TEXT]),
    (given.cohort, "starts_at", NO_INSTANTS),
    (given.cohort, "series", ["", "a\n", *NO_TEXT]),
    (given.cohort, "rules", [ruled(name="x", trading=wrong) for wrong in (7, "arena-v1", {}, {"fee": 1}, Odd(), LOOP)]),
    (given.cohort, "rules", [ruled(name="x", trading=staked(attempts=wrong)) for wrong in (0, 101, "2", None, 2.0)]),
    (given.cohort, "rules", [ruled(name="x", trading=staked(legs=wrong)) for wrong in ("any", None, 7, Odd(), LOOP)]),
    (given.cohort, "rules", [ruled(name="x", trading=staked(sum_capped=wrong)) for wrong in (None, *NO_BOOLEANS)]),
    *[(given.enrolment, field, ["", "a\n", *NO_TEXT]) for field in ("family", "release")],
    (given.quote, "question", ["", "a\n", *NO_TEXT]),
    (given.quote, "prices", [*NO_ROWS[:3], ["yes", 1], Odd(), True, LOOP, {1: 1}, {"": 1}]),
    (given.quote, "prices", [{"yes": wrong} for wrong in NO_NUMBERS]),
    (given.quote, "source", [None, "x" * 10_001, *NO_TEXT]),
    (given.quote, "quoted_at", [None, *NO_INSTANTS]),
    (given.quote, "quotes", [*NO_ROWS, [7], [None], ["rain"], [{"question": "rain", "prices": {"yes": 1}}], LOOP]),
    (given.quote, "quotes", [[priced(question="rain", prices=wrong)] for wrong in ({"yes": "x"}, None, [1], Odd())]),
    (given.quote, "quotes", [[priced(question=wrong, prices={"yes": 1})] for wrong in (None, "", *NO_TEXT)]),
    *[(given.decision, field, [None, "", "a\n", *NO_TEXT]) for field in ("contest", "participant")],
    *[(given.decision, field, [None, "1", 1.0, True, [1], Odd(), LOOP]) for field in ("period", "attempt")],
    *[(given.decision, field, NO_TEXT) for field in ("action", "reasoning", "prompt", "response")],
    *[(given.decision, field, ["x" * 10**6 + "x"]) for field in ("action", "reasoning", "prompt", "response")],
    *[(given.decision, field, [*NO_ROWS, [7], [None], [{}], LOOP]) for field in ("bets", "sells")],
    (given.decision, "bets", [[given.sale()], [given.bet(), None], [given.bet(), given.sale()]]),
    (given.decision, "bets", [[given.bet(wrong)] for wrong in NO_NUMBERS]),
    (given.decision, "bets", [[given.bet(side=wrong)] for wrong in [None, "x" * 10_001, *NO_TEXT]]),
    (given.decision, "bets", [[given.bet(market_id=wrong)] for wrong in [None, "x" * 10_001, *NO_TEXT]]),
    (given.decision, "sells", [[given.bet()], [given.sale(), None]]),
    (given.decision, "sells", [[given.sale(wrong)] for wrong in NO_NUMBERS]),
    (given.decision, "sells", [[given.sale(position_id=wrong)] for wrong in NO_POSITIONS]),
    *[(make, "amount", NO_NUMBERS) for make in (given.deposit, given.cash_out)],
    *[(make, "participant", [None, "", "a\n", *NO_TEXT]) for make in (given.deposit, given.cash_out)],
    *[(make, "reason", [None, "x" * 10_001, *NO_TEXT]) for make in (given.deposit, given.cash_out)],
    (paying, "contest", [None, 7, b"done", ["done"], {"done": 10}, ("done",), Odd(), LOOP, "", "d\n", "\ud800"]),
    (paying, "at", [7, 1.5, b"2026", ["2026"], Odd(), True, datetime(2026, 3, 1).date()]),
]
POINTS: Callable[..., Any] = command_types.Points
WRONG_FORECASTS = [
    ("colour", {"probabilities": value})
    for value in [
        [0.2, 0.3, 0.5],
        (0.2, 0.3, 0.5),
        "red",
        1,
        b"1",
        Odd(),
        {1: 1},
        {"red": None},
        {"red": [1]},
        {None: 1},
    ]
] + [
    ("depth", {"cdf": value})
    for value in ["01", b"01", 1, 0.5, {"0": 0, "1": 1}, {0, 1}, Odd(), (None, 1), ([0], [1]), ("", 1), (True, 1)]
]
WRONG_FORECASTS += [
    ("flow", {"quantiles": value})
    for value in ["123", b"123", 1, 0.5, {"0.5": 1}, {1, 2, 3}, Odd(), LOOP, iter([1, 2, 3]), (1, 2, None), (1, 2, [3])]
]
WRONG_FORECASTS += [
    ("depth", {"points": value})
    for value in [(1, 2), {"levels": ("0.5",), "quantiles": (1,), "method": "linear"}, Odd(), 1, "linear"]
    + [given.points(value) for value in (None, True, "x", "nan", Decimal("sNaN"), "1e31", (1,), Odd())]
    + [
        POINTS(levels=levels, quantiles=(1,), method="linear")
        for levels in ("0.5", 0.5, ((0.5,),), (None,), ("1.5",), ("nan",), (), Odd())
    ]
    + [given.points(1, levels=("0.5",), method=method) for method in (None, "spline", 1, ["linear"], Odd())]
]
WRONG_FORECASTS += [
    ("flow", {"quantiles": (1, 2, value)})
    for value in ["", "x", True, 1 + 0j, "nan", float("inf"), Decimal("sNaN"), "1e31"]
]


NEW: dict[Callable[..., AnyCommand], dict[str, Any]] = {
    given.opened: {"question": "new"},
    given.choices: {"question": "new"},
    given.numeric: {"question": "new"},
    given.quartiles: {"question": "new"},
    given.contest: {"contest": "new"},
}
EDGE = ANYTHING | {"unknown_rules", "unknown_outcome", "wrong_distribution", "wrong_resolution"}


def refused_without_a_trace(make: Callable[..., AnyCommand], *wrong: dict[str, Any], command_id: Any = "wrong") -> None:
    """Check that each of the commands with a wrong field raises a printable Refused, and that the log does not change.

    It may be raised where the command is made, or where it is handled.
    """
    with Ledger.open(":memory:", clock=lambda: NOW, prizes=prizes_from_log) as ledger:
        ledger.handle_many([msgspec.structs.replace(earlier, id=f"c{i}") for i, earlier in enumerate(HISTORY)])
        before = ledger.head()
        for fields in wrong:
            with pytest.raises(Refused) as caught:
                ledger.handle(make(**fields), command_id)
            assert caught.value.code in EDGE, fields
            assert str(caught.value).isprintable(), fields
            assert ledger.head() == before, fields
        assert sum(len(page) for page in ledger.read()) == before.position == len(HISTORY)


def shown(value: Any) -> str:
    """Return a short name for a parameter, the same in every run."""
    if isinstance(value, set | Odd):
        return type(value).__name__
    return value if isinstance(value, str) and value.isidentifier() else getattr(value, "__name__", ascii(value)[:24])


@pytest.mark.parametrize("make", {make: None for make, *_ in WRONG}, ids=lambda make: make.__name__)
def test_a_field_of_the_wrong_python_type_is_refused(make: Callable[..., AnyCommand]) -> None:
    """Python does not check the types of a struct's fields; a value outside JSON is refused, and nothing recorded."""
    wrong = [(field, value) for each, field, values in WRONG if each == make for value in values]
    refused_without_a_trace(make, *(NEW.get(make, {}) | {field: value} for field, value in wrong))


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (given.numeric("new", bins="4"), "range"),
        (given.numeric("new", open_lower=1), "range"),
        (given.numeric("new", lower="low"), "range"),
        (given.quartiles("new", levels=("0.5", "half")), "range"),
        (given.quartiles("new", levels=5), "range"),
        (given.quartiles("new", decimals="6"), "range"),
        (given.forecast(attestation=Attestation(newest_source="today")), "attestation"),
        (given.forecast(attestation=declared(note=7)), "attestation"),
        (given.payment("a\n"), "contest"),
        (given.payment(at="noon"), "at"),
        (given.enrolment(entrant="a\n"), "entrant"),
        (given.entry(spot_at="noon"), "spot_at"),
        (given.forecast(quantiles=(1, "x")), "quantiles"),
        (given.forecast("depth", points=given.points(1, "x", 3)), "points"),
        (given.forecast("depth", points=given.points(1, 2, 3, levels=("0.1", "half", "0.9"))), "points"),
        (given.forecast("depth", points=given.points(1, 2, 3, method="spline")), "points"),
        (given.contest("new", rules=ruled(name="x", kernel="lg")), "rules"),
        (given.choices("new", outcomes=("a", "b\n")), "outcomes"),
        (given.quote(prices={"yes": "half"}), "prices"),
        (given.quotes(command_types.Prices(question="a\n", prices={})), "quotes"),
        (given.quote(quoted_at="noon"), "quoted_at"),
        (given.decision(given.bet("half")), "bets"),
        (given.decision(given.sale("half")), "sells"),
        (given.decision(given.sale(position_id=ruled(name="x"))), "sells"),
        (given.decision(period="first"), "period"),
        (given.replied("\ud800"), "response"),
        (given.cancellation(policy="refund"), "policy"),
        (given.resolution(payouts={"yes": "half"}), "payouts"),
        (given.cohort(starts_at="noon"), "starts_at"),
        (given.cohort(rules=ruled(name="x", trading=staked(attempts=0))), "rules"),
        (given.opened("new", kind="ternary"), "kind"),
    ],
)
def test_a_refusal_names_the_field_that_holds_the_fault(command: AnyCommand, field: str) -> None:
    """The refusal names a field of the command, with the path into it, by the same names as in a line."""
    with pytest.raises(Refused) as caught:
        canonical_content(command)
    assert caught.value.field.partition(".")[0].partition("[")[0] == field


@pytest.mark.parametrize(("question", "distribution"), WRONG_FORECASTS, ids=shown)
def test_a_distribution_of_the_wrong_python_type_is_refused(question: str, distribution: dict[str, Any]) -> None:
    """Probabilities are a dict by outcome and a cdf is an array; no other iterable is accepted."""
    refused_without_a_trace(given.forecast, {"question": question, **distribution})


@pytest.mark.parametrize("span", [{"lower": 0, "upper": 1}, "0..1", 5, (0, 1), Odd()], ids=shown)
def test_a_range_of_the_wrong_python_type_is_refused(span: Any) -> None:
    """A range must be a Range."""
    refused_without_a_trace(given.opened, {"question": "new", "kind": "numeric", "range": span})


@pytest.mark.parametrize("command_id", [7, b"c", ["c"], {"c": 1}, "", "x" * 201, "a\n", "\ud800", " c"], ids=shown)
def test_a_command_id_that_is_not_an_id_is_refused(command_id: Any) -> None:
    """The command id is checked like any other id."""
    refused_without_a_trace(given.opened, {"question": "new"}, command_id=command_id)


def test_rules_given_as_a_dict_are_recorded_whole() -> None:
    """The event has the whole rule set, so that a later version cannot fill in other defaults."""
    command = given.contest(rules={"name": "own", "kernel": "ln"})
    with Ledger.open(":memory:", clock=lambda: NOW, prizes=prizes_from_log) as ledger:
        [outcome] = ledger.handle_many([msgspec.structs.replace(command, id="c1")])
        [*rows] = ledger._store.read(0)
    assert not isinstance(outcome, Refused)
    assert all(field.encode() in rows[0] for field in recorded_fields(RuleSet(name="own", kernel="ln")))


FORECAST: dict[str, Any] = {"type": "submit_forecast", "question": "rain", "probability": 0.7}


def test_a_participant_sends_forecasts_and_withdrawals_of_its_own() -> None:
    """Who it is comes from the caller; a body that names the same participant is fine. Numbers stay decimals."""
    expected = SubmitForecast(question="rain", participant="ada", probability=Decimal("0.7"))
    assert read_from("ada", json.dumps(FORECAST)) == expected
    assert read_from("ada", json.dumps(FORECAST | {"participant": "ada"}).encode()) == expected
    withdrawal = json.dumps({"type": "withdraw_forecast", "question": "rain"})
    assert read_from("ada", withdrawal) == WithdrawForecast(question="rain", participant="ada")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (json.dumps(FORECAST | {"at": "2026-03-01T00:00:00Z"}), "at"),
        (json.dumps(FORECAST | {"at": None}), "at"),
        (json.dumps(FORECAST).replace('"question"', '"\\u0061t": "2026-03-01T00:00:00Z", "question"'), "at"),
        (json.dumps(FORECAST | {"id": "c1"}), "id"),
        (json.dumps(FORECAST | {"participant": "bo"}), "participant"),
        (json.dumps(FORECAST | {"participant": None}), "participant"),
        (json.dumps(FORECAST)[:-1] + ', "participant": "ada", "participant": "bo"}', "participant"),
        (json.dumps(FORECAST)[:-1] + ', "type": "resolve_question"}', "type"),
        (json.dumps(FORECAST)[:-1] + ', "participant": 1e999}', "participant"),
        (json.dumps(FORECAST | {"contest": "cup"}), "line"),
        (json.dumps([FORECAST]), "line"),
        (json.dumps(FORECAST) * 2, "line"),
        ("", "line"),
        (b"\xff", "line"),
        ("[" * 100_000, "line"),
    ],
)
def test_a_participant_sends_no_more(body: str | bytes, field: str) -> None:
    """No instant, no id, nothing for another participant, however it is written: the last of two fields counts."""
    with pytest.raises(Refused) as caught:
        read_from("ada", body)
    assert (caught.value.code, caught.value.field) == ("malformed", field)


@pytest.mark.parametrize("kind", sorted({*LINES} - {"submit_forecast", "withdraw_forecast"}))
def test_a_participant_sends_no_other_command(kind: str) -> None:
    """Each of them is a matter of those who run the contest."""
    with pytest.raises(Refused, match="a participant sends submit_forecast or withdraw_forecast"):
        read_from("ada", json.dumps({"type": kind}))


@pytest.mark.parametrize("participant", [None, "", 3, " ada"])
def test_nobody_is_no_participant(participant: Any) -> None:
    """A caller that does not know who sends a command reads none, whatever the body says."""
    with pytest.raises(Refused) as caught:
        read_from(participant, json.dumps(FORECAST | {"participant": participant}))
    assert caught.value.field == "participant"
