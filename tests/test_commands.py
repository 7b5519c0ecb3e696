"""Commands at the edge: reading a line, spelling a command, and callers who fill a field with anything."""

import inspect
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from ledger import Ledger, Refused
from ledger import commands as said
from ledger.commands import AnyCommand, read
from ledger.rules import PRESETS, RuleSet
from ledger.spelling import content
from tests import given
from tests.given import BEFORE, COLOURS, NOW, day

KEYWORD = inspect.Parameter.KEYWORD_ONLY
CLOSE = '{"id": "c1", "type": "close_question", "at": "2026-03-15T00:00:00Z", "question": "rain"}'
LINES: dict[str, dict[str, Any]] = {
    "open_question": {"question": "rain", "kind": "binary", "opens_at": day(10), "closes_at": day(20)},
    "submit_forecast": {"question": "rain", "participant": "ada", "probability": 0.7},
    "withdraw_forecast": {"question": "rain", "participant": "ada"},
    "close_question": {"question": "rain"},
    "resolve_question": {"question": "rain", "outcome": "yes"},
    "annul_question": {"question": "rain", "reason": "no source"},
    "revoke_resolution": {"question": "rain", "reason": "misread"},
    "open_contest": {"contest": "cup", "rules": "relative-2022-04"},
    "add_question": {"contest": "cup", "question": "rain"},
    "exclude_participant": {"contest": "cup", "participant": "ada", "level": "no_prize", "reason": "staff"},
    "finalize_contest": {"contest": "cup"},
}


def line(kind: str, /, **fields: Any) -> bytes:
    """A line of the command file, with fields changed."""
    return json.dumps({"id": "c1", "type": kind, "at": day(15)} | LINES[kind] | fields).encode()


def test_every_command_is_read_from_a_line_of_its_type() -> None:
    """The vocabulary is fixed: these types, and no others."""
    commands = [read(line(kind)) for kind in LINES]
    assert {type(command) for command in commands} == set(get_args(AnyCommand))
    assert all((command.id, command.at) == ("c1", day(15)) for command in commands)


@pytest.mark.parametrize("kind", [*get_args(AnyCommand), said.Range], ids=lambda kind: kind.__name__)
def test_a_command_does_not_change_once_it_is_made(kind: type[msgspec.Struct]) -> None:
    """Frozen, and filled by name: what was decided is what was asked."""
    assert kind.__struct_config__.frozen
    assert not [name for name, found in inspect.signature(kind).parameters.items() if found.kind is not KEYWORD]


@pytest.mark.parametrize(
    ("kind", "field", "default"),
    [
        ("open_question", "title", ""),
        ("open_contest", "payable_unit", Decimal("0.01")),
        ("open_contest", "title", ""),
        ("open_contest", "currency", ""),
        ("add_question", "weight", Decimal(1)),
        ("add_question", "hidden_coverage_weight", None),
        ("resolve_question", "known_at", None),
    ],
)
def test_a_field_that_may_be_left_out_has_its_documented_default(kind: str, field: str, default: Any) -> None:
    """The table of commands says which, and what it is then."""
    assert getattr(read(line(kind)), field) == default


def test_a_numeric_range_has_200_bins_and_closed_ends_by_default() -> None:
    """Bins = 200; an end is open only if it says so."""
    command = read(line("open_question", kind="numeric", range={"lower": 0, "upper": "1e3"}))
    assert isinstance(command, said.OpenQuestion)
    assert command.range
    assert (command.range.bins, command.range.open_lower, command.range.open_upper) == (200, False, False)
    assert command.range.zero_point is None


def test_a_whole_rule_set_is_read_from_an_object() -> None:
    """Rules are a preset's name, or all of them."""
    command = read(line("open_contest", rules={"name": "own", "kernel": "log2"}))
    assert isinstance(command, said.OpenContest)
    assert command.rules == RuleSet(name="own", kernel="log2")


REQUIRED = [(kind, field) for kind, fields in LINES.items() for field in ["at", "type", *fields]]
OPTIONAL = {("submit_forecast", "probability"), ("resolve_question", "outcome")}


@pytest.mark.parametrize(("kind", "field"), [pair for pair in REQUIRED if pair not in OPTIONAL])
def test_a_line_without_a_required_field_is_malformed(kind: str, field: str) -> None:
    """Nothing that decides is guessed."""
    fields = json.loads(line(kind))
    del fields[field]
    with pytest.raises(Refused, match=r"^malformed: .*missing required field"):
        read(json.dumps(fields))


@pytest.mark.parametrize("kind", LINES)
def test_a_line_with_an_unknown_field_is_malformed(kind: str) -> None:
    """A misspelt field is never ignored."""
    with pytest.raises(Refused, match=r"^malformed: .*unknown field"):
        read(line(kind, probabilty="0.5"))


NUMBERS_OF = {"submit_forecast": ["probability"], "open_contest": ["pool", "payable_unit"], "add_question": ["weight"]}
WRONG_TYPES = [
    (kind, field) for kind, fields in LINES.items() for field in ["id", "at", *fields] if field != "probability"
]


@pytest.mark.parametrize(("kind", "field"), WRONG_TYPES)
@pytest.mark.parametrize("value", [[], True, [[1]]], ids=str)
def test_a_field_of_the_wrong_json_type_is_malformed(kind: str, field: str, value: Any) -> None:
    """The refusal names the field."""
    with pytest.raises(Refused) as caught:
        read(line(kind, **{field: value}))
    assert (caught.value.code, caught.value.field.partition("[")[0]) == ("malformed", field)


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in NUMBERS_OF.items() for field in fields])
@pytest.mark.parametrize("value", [[], True, [[1]], {}, {"a": 1}, "", "one"], ids=str)
def test_a_json_value_that_is_no_number_is_refused(kind: str, field: str, value: Any) -> None:
    """When the line is read or when the command is handled: it has one of the codes for what cannot be read."""
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
    "kernel": line("open_contest", rules={"name": "x", "kernel": "log10"}),
    "rules without kernel": line("open_contest", rules={"name": "x"}),
    "unknown field of rules": line("open_contest", rules={"name": "x", "kernel": "ln", "fee": 1}),
    "least probability": line("open_contest", rules={"name": "x", "kernel": "ln", "least_probability_ppm": 0}),
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_line_that_is_no_command_is_malformed(text: bytes | str) -> None:
    """Whatever the line holds, reading it ends in this refusal, soon, and in no other exception."""
    started = time.monotonic()
    with pytest.raises(Refused) as caught:
        read(text)
    assert caught.value.code == "malformed"
    assert "\n" not in str(caught.value)
    assert time.monotonic() - started < 1


@examples(st.binary(max_size=200) | st.text(st.characters(), max_size=200))
def test_any_line_at_all_is_a_command_or_malformed(text: bytes | str) -> None:
    """No other exception escapes, whatever the bytes."""
    with pytest.raises(Refused, match=r"^malformed"):
        read(text)


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x1b[31mb", "a\rb", "\u2028", "x" * 100_000], ids=lambda name: ascii(name)[:20]
)
def test_a_refusal_is_one_short_printable_line_whatever_the_line_said(name: str) -> None:
    """What a line says cannot forge another line of a report, nor steer a terminal, nor flood it."""
    for text in [line("close_question", **{name: 1}), line("close_question", type=name)]:
        with pytest.raises(Refused) as caught:
            read(text)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 1_000


NUMBERS = [
    ("0.25", None),
    ("1e-999999999", None),  # a finite decimal; rounds to 0
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
TEXTS = [
    ("nan", "not_finite"),
    ("NaN", "not_finite"),
    ("-Infinity", "not_finite"),
    ("inf", "not_finite"),
]
NO_DECIMALS = ["", " 0.5", "0.5 ", "1_0e-1", "\u0660.\u0665", "\uff10", "sNaN", "NaN123", "0x1", "1,5", "half"]


def handled(*lines: bytes) -> str | None:
    """The code with which the last line is refused, if it is; other exceptions fail the test, as does a slow answer."""
    started = time.monotonic()
    try:
        with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
            for text in lines:
                ledger.handle(read(text))
    except Refused as refused:
        return refused.code
    finally:
        assert time.monotonic() - started < 2
    return None


@pytest.mark.parametrize(("number", "code"), NUMBERS, ids=lambda value: str(value)[:15])
@pytest.mark.parametrize("quote", [b"", b'"'], ids=["number", "text"])
def test_a_number_in_a_line_is_taken_or_refused_at_once(number: str, code: str | None, quote: bytes) -> None:
    """A JSON number and a decimal text are one number; none hangs, crashes, or is clamped."""
    forecast = line("submit_forecast", id="c2").replace(b"0.7", quote + number.encode() + quote)
    assert handled(line("open_question"), forecast) == code


@pytest.mark.parametrize(
    "number",
    ["9" * 100_000, "0." + "3" * 100_000, "1" + "0" * 10**6, "1e-" + "9" * 1_000],
    ids=lambda number: number[:5],
)
@pytest.mark.parametrize("quote", [b"", b'"'], ids=["number", "text"])
def test_a_number_of_absurd_length_is_refused_at_once(number: str, quote: bytes) -> None:
    """Nobody writes so many digits: which of the codes for bad numbers it gets does not matter, the time does."""
    forecast = line("submit_forecast", id="c2").replace(b"0.7", quote + number.encode() + quote)
    assert handled(line("open_question"), forecast) in {"malformed", "bad_number", "out_of_range"}


@pytest.mark.parametrize(("number", "code"), TEXTS)
def test_a_text_that_names_no_finite_number_is_refused(number: str, code: str) -> None:
    """JSON has no literal for it, but a text may say it."""
    assert handled(line("open_question"), line("submit_forecast", id="c2", probability=number)) == code


@pytest.mark.parametrize("number", NO_DECIMALS, ids=ascii)
def test_a_text_that_is_no_plain_decimal_is_refused(number: str) -> None:
    """The same digits, point and exponent as for a caller in Python: no underscore, space, or other script."""
    code = handled(line("open_question"), line("submit_forecast", id="c2", probability=number))
    assert code in {"malformed", "bad_number"}


SPELLINGS = ["0.25", "0.2500", "25e-2", "+0.25", "2.5E-1", 0.25, Decimal("0.250"), Decimal("25E-2")]


@pytest.mark.parametrize("number", SPELLINGS, ids=repr)
def test_equal_numbers_say_the_same(number: Any) -> None:
    """A retry may spell a number otherwise: it is the same command."""
    one = given.forecast(probability=Decimal("0.25"))
    assert content(given.forecast(probability=number)) == content(one)
    bids = given.forecast(probabilities={"yes": number, "no": "0.75"})
    assert content(bids) == content(given.forecast(probabilities={"no": 0.75, "yes": Decimal("0.25")}))
    assert content(given.forecast(cdf=[0, number])) == content(given.forecast(cdf=(Decimal("0.0"), "0.25")))


@pytest.mark.parametrize("zero", [0, "0", "-0", "0.00", "-0.0", 0.0, -0.0, Decimal("-0"), Decimal("0E+9"), "0e-9"])
def test_every_zero_says_the_same(zero: Any) -> None:
    """Minus nothing is nothing."""
    assert content(given.forecast(probability=zero)) == content(given.forecast(probability=Decimal(0)))


SAME_INSTANTS = [day(15), "2026-03-15T05:30:00+05:30", "2026-03-15t00:00:00.000z"]
SAME_INSTANTS += ["2026-03-15 00:00:00Z", "2026-03-15T00:00:00.0000000004Z"]


@pytest.mark.parametrize("instant", [*SAME_INSTANTS, datetime(2026, 3, 15, tzinfo=UTC)], ids=str)
def test_equal_instants_say_the_same(instant: Any) -> None:
    """However the offset and the fraction are written, to the µs that is recorded."""
    assert content(given.closing(at=instant)) == content(given.closing(at=day(15)))
    known = given.resolution(known_at=instant)
    assert content(known) == content(given.resolution(known_at=day(15)))


def test_the_id_is_not_part_of_what_a_command_says() -> None:
    """The id names the command; the content is compared under it."""
    assert content(msgspec.structs.replace(given.closing(), id="other")) == content(given.closing())


def test_a_field_left_out_says_its_default() -> None:
    """A retry may write the default out."""
    written = given.contest(pool=None, currency="", payable_unit="0.010", title="")
    assert content(written) == content(given.contest())
    assert content(given.entry(weight=1.0, hidden_coverage_weight=None)) == content(given.entry())
    spelt = given.numeric(bins=4, open_lower=False, open_upper=False, zero_point=None)
    assert content(spelt) == content(given.numeric())


RANGE = said.Range(lower=0, upper=4, bins=4)
OWN = RuleSet(name="own", kernel="ln")
OTHERS: list[tuple[AnyCommand, dict[str, Any]]] = [
    (
        given.opened(kind="numeric", range=RANGE, title="t"),
        {
            "at": day(6),
            "question": "snow",
            "kind": "binary",
            "title": "u",
            "outcomes": ("a", "b"),
            "range": None,
            "opens_at": day(11),
            "closes_at": day(21),
            "reveals_at": day(12),
        },
    ),
    (
        given.forecast(probability="0.5"),
        {
            "at": day(12),
            "question": "snow",
            "participant": "bob",
            "probability": "0.500000000000001",
            "probabilities": {"yes": 1},
            "cdf": (0, 1),
        },
    ),
    (given.withdrawal(), {"at": day(14), "question": "snow", "participant": "bob"}),
    (given.closing(), {"at": "2026-03-15T00:00:00.000001Z", "question": "snow"}),
    (given.resolution(), {"at": day(26), "question": "snow", "outcome": "no", "value": 1, "known_at": day(12)}),
    (given.annulment(), {"at": day(26), "question": "snow", "reason": "other"}),
    (given.revocation(), {"at": day(26), "question": "snow", "reason": "other"}),
    (
        given.contest(rules=OWN),
        {
            "at": day(6),
            "contest": "league",
            "rules": msgspec.structs.replace(OWN, least_density_ppm=9_999),
            "pool": 1,
            "currency": "EUR",
            "payable_unit": 1,
            "title": "t",
        },
    ),
    (
        given.entry(),
        {"at": day(6), "contest": "league", "question": "snow", "weight": 2, "hidden_coverage_weight": 0},
    ),
    (
        given.exclusion(),
        {"at": day(26), "contest": "league", "participant": "bob", "level": "hidden", "reason": "other"},
    ),
    (given.finalization(), {"at": day(26), "contest": "league"}),
]
CHANGES = [(command, field, value) for command, fields in OTHERS for field, value in fields.items()]


@pytest.mark.parametrize(
    ("command", "field", "value"), CHANGES, ids=lambda value: value if isinstance(value, str) else type(value).__name__
)
def test_another_value_of_any_field_says_something_else(command: AnyCommand, field: str, value: Any) -> None:
    """Each field of each command is part of what it says, so that a reused id is always found out."""
    assert content(msgspec.structs.replace(command, **{field: value})) != content(command)


def test_those_are_all_the_fields_there_are() -> None:
    """The table above forgets no field of no command."""
    for command, changed in OTHERS:
        assert set(changed) == {field.name for field in msgspec.structs.fields(command)} - {"id"}
    assert {type(command) for command, _ in OTHERS} == set(get_args(AnyCommand))


@pytest.mark.parametrize(
    "span",
    [
        {"lower": -1},
        {"upper": 5},
        {"bins": 5},
        {"open_lower": True},
        {"open_upper": True},
        {"zero_point": -1},
        {"open_lower": True, "open_upper": True},
    ],
    ids=str,
)
def test_another_range_says_something_else(span: dict[str, Any]) -> None:
    """Each part of a range counts, and each in its place."""
    assert content(given.numeric(**span)) != content(given.numeric())
    assert content(given.numeric(open_lower=True)) != content(given.numeric(open_upper=True))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (given.annulment(reason="x"), given.revocation(reason="x")),
        (given.closing("x", at=day(1)), given.finalization("x", at=day(1))),
        (given.forecast(probability=1), given.forecast(cdf=(1,))),
        (given.forecast(cdf=("1", "11")), given.forecast(cdf=("11", "1"))),
        (given.forecast(probabilities={"a": 0, "b": 1}), given.forecast(probabilities={"a": 1, "b": 0})),
        (given.forecast("a", "bc"), given.forecast("ab", "c")),
        (given.resolution(outcome="1"), given.resolution(value="1")),
        (given.contest(rules="relative-2022-04"), given.contest(rules=PRESETS["relative-2022-04"])),
        (given.contest(pool=None), given.contest(pool=0)),
        (given.choices(outcomes=("a", "b")), given.choices(outcomes=("b", "a"))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_commands_that_differ_say_something_else(one: AnyCommand, other: AnyCommand) -> None:
    """In type, in the order of a row, or in which field holds the same text."""
    assert content(one) != content(other)


@examples(st.decimals(-(10**9), 10**9, places=12), st.decimals(-(10**9), 10**9, places=12))
def test_numbers_say_the_same_only_if_they_are_equal(one: Decimal, other: Decimal) -> None:
    """Compared as exact decimals, whatever is recorded of them."""
    same = content(given.resolution(value=one)) == content(given.resolution(value=other))
    assert same == (Fraction(one) == Fraction(other))


class Odd:
    """An object of no type that JSON has."""


LOOP: list[Any] = []
LOOP.append(LOOP)
HISTORY: list[AnyCommand] = [given.opened(), given.choices(), given.numeric(bins=1), given.contest()]
WRONG: list[tuple[Callable[..., AnyCommand], str, list[Any]]] = [
    (given.opened, "question", [None, 7, b"q", ["q"], {"q": 1}, ("q",), Odd(), 1.5, True]),
    (given.opened, "kind", ["foo", "", None, 7, b"binary", ["binary"], Odd(), True, LOOP]),
    (given.opened, "title", [None, 7, b"t", ["t"], Odd(), "\ud800"]),
    (given.opened, "at", [None, 7, 1.5, b"2026", ["2026"], Odd(), True, datetime(2026, 3, 1).date()]),
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
    (given.numeric, "bins", ["4", 4.5, 4.0, None, True, [4], Odd(), 2**70, -(2**70)]),
    (given.numeric, "open_lower", [1, 0, "yes", None, Odd()]),
    (given.numeric, "open_upper", [1, 0, "yes", None, Odd()]),
    (given.numeric, "zero_point", [True, "x", [], Odd()]),
    (given.forecast, "participant", [None, 7, b"a", ["a"], Odd(), "\ud800"]),
    (given.forecast, "probability", [True, b"1", [0.5], {"yes": 0.5}, (0.5,), Odd(), 1 + 0j, "half"]),
    (given.withdrawal, "participant", [None, 7, ["a"], Odd()]),
    (given.closing, "question", [None, ["rain"], Odd()]),
    (given.resolution, "outcome", [7, b"yes", ["yes"], Odd(), True, Decimal(1), "\ud800"]),
    (given.resolution, "value", [True, [1], {"a": 1}, Odd(), "one"]),
    (given.resolution, "known_at", [7, [], "", Odd()]),
    (given.annulment, "reason", [None, 7, b"r", ["r"], Odd(), "\ud800"]),
    (given.revocation, "reason", [None, 7, Odd()]),
    (given.contest, "contest", [None, 7, ["cup"], Odd()]),
    (given.contest, "rules", [None, 7, b"x", ["x"], Odd(), Decimal(1), datetime(2026, 3, 1), "\ud800", {"name": "x"}]),
    (given.contest, "rules", [RuleSet(name="x", kernel="lg"), RuleSet(name="", kernel="ln")]),  # type: ignore[arg-type]
    (given.contest, "rules", [RuleSet(name="x", kernel="ln", least_probability_ppm=0)]),
    (given.contest, "rules", [RuleSet(name="x", kernel="ln", least_density_ppm="1")]),  # type: ignore[arg-type]
    (given.contest, "rules", [RuleSet(name="x", kernel="ln", early_forecasts=1)]),  # type: ignore[arg-type]
    (given.contest, "rules", [RuleSet(name="x", kernel="ln", take="all")]),  # type: ignore[arg-type]
    (given.contest, "rules", [RuleSet(name="\ud800", kernel="ln")]),
    (given.contest, "pool", [True, [], [1], {}, {"a": 1}, Odd(), ""]),
    (given.contest, "payable_unit", [None, True, [1], Odd()]),
    (given.contest, "currency", [None, 7, Odd()]),
    (given.contest, "title", [None, 7, Odd()]),
    (given.entry, "weight", [None, True, [1], Odd()]),
    (given.entry, "hidden_coverage_weight", [True, [], Odd()]),
    (given.exclusion, "level", ["x", "", None, 7, ["hidden"], Odd()]),
    (given.exclusion, "reason", [None, 7, Odd()]),
    (given.finalization, "contest", [None, ["cup"], Odd()]),
]
WRONG_CALLS = [(make, field, value) for make, field, values in WRONG for value in values]
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


NEW: dict[Callable[..., AnyCommand], dict[str, Any]] = {
    given.opened: {"question": "new"},
    given.choices: {"question": "new"},
    given.numeric: {"question": "new"},
    given.contest: {"contest": "new"},
}
EDGE = {"malformed", "id_empty", "id_too_long", "id_not_plain", "bad_instant", "bad_number", "out_of_range"}
EDGE |= {"unknown_rules", "unknown_outcome", "wrong_distribution", "wrong_resolution"}


def refused_without_a_trace(make: Callable[[], AnyCommand], command_id: Any = "wrong") -> None:
    """Whether built or handled, the command ends in Refused, and the log holds what it held, readably."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle_many([msgspec.structs.replace(earlier, id=f"c{i}") for i, earlier in enumerate(HISTORY)])
        before = ledger.head()
        with pytest.raises(Refused) as caught:
            ledger.handle(make(), command_id)
        assert caught.value.code in EDGE
        assert str(caught.value).isprintable()
        assert ledger.head() == before
        assert sum(len(page) for page in ledger.read()) == before.position == len(HISTORY)


def shown(value: Any) -> str:
    """A short name for a parameter, the same in every run."""
    if isinstance(value, set | Odd):
        return type(value).__name__
    return value if isinstance(value, str) and value.isidentifier() else getattr(value, "__name__", ascii(value)[:24])


@pytest.mark.parametrize(("make", "field", "value"), WRONG_CALLS, ids=shown)
def test_a_field_of_the_wrong_python_type_is_refused(make: Callable[..., AnyCommand], field: str, value: Any) -> None:
    """Structs do not check what Python puts into them: what JSON could not say is refused, and nothing recorded."""
    refused_without_a_trace(lambda: make(**(NEW.get(make, {}) | {field: value})))


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (given.numeric("new", bins="4"), "range"),
        (given.numeric("new", open_lower=1), "range"),
        (given.numeric("new", lower="low"), "range"),
        (given.contest("new", rules=RuleSet(name="x", kernel="lg")), "rules"),  # type: ignore[arg-type]
        (given.choices("new", outcomes=("a", "b\n")), "outcomes"),
        (given.opened("new", kind="ternary"), "kind"),
    ],
    ids=["bins", "open_lower", "lower", "kernel", "outcome", "kind"],
)
def test_a_refusal_names_the_field_that_holds_the_fault(command: AnyCommand, field: str) -> None:
    """Of the command, with a path into it where there is one: the same names as in a line."""
    with pytest.raises(Refused) as caught:
        content(command)
    assert caught.value.field.partition(".")[0].partition("[")[0] == field


@pytest.mark.parametrize(("question", "distribution"), WRONG_FORECASTS, ids=shown)
def test_a_distribution_of_the_wrong_python_type_is_refused(question: str, distribution: dict[str, Any]) -> None:
    """Probabilities are by outcome, a cdf is a row: nothing else that happens to be iterable."""
    refused_without_a_trace(lambda: given.forecast(question, **distribution))


@pytest.mark.parametrize("span", [{"lower": 0, "upper": 1}, "0..1", 5, (0, 1), Odd()], ids=shown)
def test_a_range_of_the_wrong_python_type_is_refused(span: Any) -> None:
    """A range is a Range."""
    refused_without_a_trace(lambda: given.opened("new", kind="numeric", range=span))


@pytest.mark.parametrize("command_id", [7, b"c", ["c"], {"c": 1}, "", "x" * 201, "a\n", "\ud800", " c"], ids=shown)
def test_a_command_id_that_is_no_id_is_refused(command_id: Any) -> None:
    """The command id is an id like any other."""
    refused_without_a_trace(lambda: given.opened("new"), command_id)


def test_rules_given_as_a_mapping_are_refused_or_recorded_whole() -> None:
    """A contest carries its whole rule set: what a caller left out must not be filled in by a later reader."""
    command = given.contest(rules={"name": "own", "kernel": "ln"})
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        [outcome] = ledger.handle_many([msgspec.structs.replace(command, id="c1")])
        [*rows] = ledger._store.read(0)
    assert isinstance(outcome, Refused) or all(field.encode() in rows[0] for field in RuleSet.__struct_fields__)


def test_a_list_in_place_of_a_tuple_is_the_same_command() -> None:
    """JSON has one kind of row, and Python callers may use either."""
    listed = given.choices(outcomes=list(COLOURS))  # type: ignore[arg-type]
    assert content(listed) == content(given.choices())
    assert content(given.forecast(cdf=[0, 1])) == content(given.forecast(cdf=(0, 1)))


def test_a_line_and_its_struct_are_the_same_command() -> None:
    """What the command file says and what a caller in Python says have one content."""
    text = line("open_question", at=BEFORE, title="Rain?", reveals_at=day(12))
    assert content(read(text)) == content(given.opened(title="Rain?", reveals_at=day(12)))
    assert content(read(text.decode())) == content(read(text))
