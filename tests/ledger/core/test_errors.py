"""Tests of errors: every code can happen, codes are in order of precedence, and every message says what to do."""

import itertools
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from forecast_ledger.ledger.core.errors import (
    ERRORS,
    REFUSALS,
    Absent,
    Behind,
    Conflict,
    Corrupt,
    LedgerError,
    NewerVersion,
    Refused,
    Unavailable,
    Uncertain,
)
from forecast_ledger.ledger.deciding import decider
from forecast_ledger.ledger.deciding.decider import decide
from forecast_ledger.ledger.model import canonical, commands
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import Attestation
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.storing.writer import Ledger
from forecast_ledger.replay.importing.source_files import read_table
from forecast_ledger.replay.mapping.csv_mapping import map_records, parse_map
from tests.ledger.deciding.test_refusals import DECIDERS
from tests.support.given import (
    AFTER,
    BEFORE,
    CLOSES,
    NOW,
    OPENS,
    bet,
    cancellation,
    choices,
    closing,
    cohort,
    contest,
    decision,
    deposit,
    enrolment,
    entry,
    finalization,
    forecast,
    numeric,
    opened,
    payment,
    promised,
    quartiles,
    quote,
    quotes,
    replied,
    resolution,
    sale,
    trading_floor,
    withdrawal,
)

ORDER = list(REFUSALS)
LONG_ID, LONG_TEXT = "x" * 201, "x" * 10_001
declared: Callable[..., Any] = Attestation  # a type whose fields are given any value


def code_of(*commands_sent: tuple[str, AnyCommand]) -> str | None:
    """Return the code with which the last of some commands is refused; None if it is accepted."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        try:
            for command_id, command in commands_sent:
                ledger.handle(command, command_id)
        except Refused as refused:
            return refused.code
    return None


EDGE: dict[str, list[tuple[str, AnyCommand]]] = {
    "malformed": [("c1", opened(kind="ternary"))],
    "id_empty": [("c1", opened(""))],
    "id_too_long": [("c1", opened(LONG_ID))],
    "id_not_plain": [("c1", opened("rain\n"))],
    "text_too_long": [("c1", opened(title="x" * 10_001))],
    "bad_instant": [("c1", opened(at="today"))],
    "naive_instant": [("c1", opened(at="2026-03-01T00:00:00"))],
    "bad_number": [("c1", numeric(lower="low"))],
    "amount_not_text": [("c1", commands.OpenContest(at=OPENS, contest="cup", rules={"name": "x", "least_prize": 50}))],
    "not_finite": [("c1", numeric(upper="inf"))],
    "out_of_range": [("c1", numeric(bins=0))],
    "command_id_reused": [("c1", opened()), ("c1", opened("snow"))],
    "id_not_visible": [("c1", opened("rain\ufe0f"))],
}


@pytest.mark.parametrize("code", EDGE)
def test_a_fault_at_the_edge_has_its_code(code: str) -> None:
    """A fault in how a command is written is refused with its own code, before the rules of the ledger are checked."""
    assert code_of(*EDGE[code]) == code


def test_every_code_can_happen() -> None:
    """Every code can occur: at the edge, in a map, a format, a decider, an atomic batch, by limits, or in an import."""
    decided = {code for function in (parse_map, map_records, read_table, *DECIDERS) for code in promised(function)}
    limits = {"ledger_in_use", "claimed_too_late", "claimed_too_early", "version_too_new"}
    elsewhere = {"ambiguous", "batch_refused"} | limits
    assert set(EDGE) | decided | elsewhere == set(REFUSALS)


@pytest.mark.parametrize("function", [canonical.canonical_content, *DECIDERS], ids=lambda function: function.__name__)
def test_the_table_lists_the_codes_in_the_order_in_which_they_apply(function: Callable[..., Any]) -> None:
    """If two codes apply, the earlier in the table is reported, so every function checks in that order."""
    codes = promised(function)
    assert codes
    assert codes == sorted(codes, key=ORDER.index)


@pytest.mark.parametrize("function", DECIDERS, ids=lambda function: function.__name__)
def test_the_codes_of_deciders_come_after_a_command_id_that_is_used_again(function: Callable[..., Any]) -> None:
    """A retry is recognized before the command is decided; but fields that exclude each other make it malformed."""
    assert min(map(ORDER.index, {*promised(function)} - {"malformed"})) > ORDER.index("command_id_reused")


def test_every_decider_promises_its_refusals() -> None:
    """Every decider lists its refusals in its docstring, and DECIDERS has every decider."""
    assert decide.__doc__
    rooms = decider._ROOMS
    deciders = {
        name for room in rooms for name, member in vars(room).items() if "Refuses, first" in (member.__doc__ or "")
    }
    assert deciders == {function.__name__ for function in DECIDERS}


# Fields that break each rule about how a command is written; any two can be broken in one command.
BREAKS: dict[str, dict[str, Any]] = {
    "malformed": {"kind": "ternary"},
    "id_empty": {"question": ""},
    "id_too_long": {"outcomes": (LONG_ID, "a")},
    "text_too_long": {"title": "x" * 10_001},
    "bad_instant": {"at": "today"},
    "naive_instant": {"closes_at": "2026-03-20T00:00:00"},
    "bad_number": {"lower": "low"},
    "not_finite": {"upper": "inf"},
}
RANGE_FIELDS = {"lower", "upper", "bins"}


def broken(*codes: str) -> AnyCommand:
    """Return a command that breaks these rules."""
    fields: dict[str, Any] = {"at": BEFORE, "question": "depth", "kind": "numeric"}
    fields |= {"opens_at": OPENS, "closes_at": CLOSES, "lower": 0, "upper": 4, "bins": 4}
    for code in codes:
        fields |= BREAKS[code]
    span = commands.Range(**{name: fields.pop(name) for name in RANGE_FIELDS})
    return commands.OpenQuestion(**fields, range=span)


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(BREAKS, 2)))
def test_the_earlier_of_two_faults_of_writing_is_reported(first: str, second: str) -> None:
    """The table decides, not the order of the fields."""
    assert ORDER.index(first) < ORDER.index(second)
    assert code_of(("c1", broken(first, second))) == first


SAME_KIND: list[tuple[str, AnyCommand]] = [
    ("id_empty", forecast(LONG_ID, "")),
    ("id_empty", forecast("rain\n", "")),
    ("id_too_long", forecast("rain\n", LONG_ID)),
    ("bad_instant", opened(at="2026-03-01T00:00:00", closes_at="today")),
    ("bad_number", numeric(lower="inf", upper="high")),
    ("bad_number", forecast(cdf=("nan", "high"))),
    ("bad_number", forecast(quantiles=("nan", "high"))),
    ("bad_number", quartiles(lower="inf", levels=("nan", "half"))),
    ("bad_number", quartiles(levels=("half",), upper="nan")),
    ("malformed", quartiles(levels=("half",), decimals="six")),
    ("malformed", quartiles(lower="low", levels={0.5})),
    ("malformed", quartiles(levels=(True,), open_upper=1)),
    ("bad_number", forecast(probabilities={"red": "nan", "green": "ten"})),
    ("id_empty", forecast("c\n", probabilities={LONG_ID: 1, "": 2})),
    ("id_too_long", forecast(at="today", probabilities={LONG_ID: "ten"})),
    ("id_not_plain", payment("c\n", at="today")),
    ("id_empty", enrolment(participant=LONG_ID, entrant="")),
    ("id_too_long", enrolment(participant="a\n", entrant=LONG_ID)),
    ("bad_instant", entry(at="2026-03-01T00:00:00", spot_at="noon")),
    ("naive_instant", entry(spot_at="2026-03-12T00:00:00", weight="x")),
    ("text_too_long", forecast(attestation=Attestation(newest_source="today", note=LONG_TEXT))),
    ("text_too_long", forecast(attestation=Attestation(restricted_list=LONG_TEXT), at="2026-03-11T00:00:00")),
    ("id_not_plain", forecast(attestation=Attestation(training_cutoff="x", note="\ud800"))),
    ("bad_instant", forecast(attestation=Attestation(model_released="soon"), probability="nan")),
    ("malformed", forecast(attestation=declared(newest_source="x", note=LONG_TEXT, restricted_sources=1))),
    ("not_finite", numeric(lower="1e31", upper="nan")),
    ("id_empty", quote("c\n", prices={"": 1})),
    ("bad_instant", quote(quoted_at="noon", at="2026-03-01T00:00:00")),
    ("naive_instant", quote(quoted_at="2026-03-01T00:00:00", prices={"yes": "nan"})),
    ("bad_number", quotes(*[commands.Prices(question="q", prices={"yes": price}) for price in ("nan", "x")])),
    ("id_empty", quotes(commands.Prices(question="q\n", prices={"": 1}))),
    ("bad_number", quotes(commands.Prices(question="q", prices={"red": "nan", "green": "x"}))),
    ("id_not_plain", decision(bet(market_id=LONG_TEXT, side="\ud800"))),
    ("text_too_long", quote(source=LONG_TEXT, at="today")),
    ("id_empty", cohort(series="", title=LONG_TEXT)),
    ("bad_number", decision(bet("nan"), bet("x"))),
    ("text_too_long", decision(bet("x"), reasoning="x" * 1_000_001)),
    ("text_too_long", decision(bet("nan", side=LONG_TEXT))),
    ("id_not_plain", decision(bet("nan", side="\ud800"))),
    ("text_too_long", decision(sale("nan", LONG_TEXT))),
    ("bad_number", decision(sale("nan"), sale("half"))),
    ("malformed", replied("x" * 1_000_001, period="first")),
    ("not_finite", deposit("inf", reason="x")),
    ("bad_number", resolution(payouts={"yes": "nan", "no": "none"})),
    ("malformed", cancellation(policy="refund", reason=LONG_TEXT)),
]


@pytest.mark.parametrize(("first", "command"), SAME_KIND)
def test_the_table_decides_between_faults_of_one_kind_too(first: str, command: AnyCommand) -> None:
    """Two ids, two instants, two numbers: the earlier code is reported, even if its field comes later."""
    assert code_of(("c1", command)) == first


@pytest.mark.parametrize(
    ("first", "command_id", "command"),
    [
        ("malformed", "", opened(kind="ternary")),
        ("id_empty", "c\n", opened("")),
        ("id_too_long", "c\n", opened(LONG_ID)),
        ("id_empty", "", opened(title="x" * 10_001)),
    ],
)
def test_the_table_decides_between_faults_of_the_command_and_of_its_id(
    first: str, command_id: str, command: AnyCommand
) -> None:
    """The command id is checked like the other ids, in the same order."""
    assert code_of((command_id, command)) == first


def test_a_reused_command_id_is_reported_after_what_cannot_be_read_and_before_the_rules() -> None:
    """A command is parsed before it is compared with the recorded one; the rules are checked for new commands only."""
    first = ("c1", opened())
    assert code_of(first, ("c1", forecast("snow", at="today"))) == "bad_instant"
    assert code_of(first, ("c1", forecast("snow", probability="nan"))) == "not_finite"
    assert code_of(first, ("c1", forecast("snow"))) == "command_id_reused"
    assert code_of(first, ("c1", forecast("snow", probability=2))) == "command_id_reused"
    assert code_of(first, ("c1", forecast("snow", probability="1e31"))) == "command_id_reused"
    order = [ORDER.index(code) for code in ("bad_instant", "not_finite", "command_id_reused", "out_of_range")]
    assert order == sorted(order)


TWO_ROOMS: list[tuple[str, str, list[AnyCommand], AnyCommand]] = [
    ("unknown_question", "unknown_contest", [], entry()),
    ("unknown_outcome", "wrong_distribution", [choices()], forecast("colour", probability=1, probabilities={"x": 1})),
    ("unknown_outcome", "wrong_resolution", [opened()], resolution(outcome="maybe", value=1)),
    ("wrong_order_of_instants", "question_resolved", [opened(), resolution()], resolution(at=OPENS, known_at=CLOSES)),
    ("wrong_order_of_instants", "before_opening", [opened()], resolution(at="2026-03-01T00:00:00Z", known_at=BEFORE)),
    ("duplicate_question", "duplicate_outcome", [choices()], choices(outcomes=("a", "a"))),
    ("duplicate_contest", "pool_not_payable", [contest()], contest(pool="0.001")),
    ("duplicate_contest", "rules_not_consistent", [contest()], contest(rules=RuleSet(name="x"))),
    ("wrong_length", "decreasing", [quartiles()], forecast("flow", quantiles=(2, 1))),
    ("question_in_contest", "wrong_order_of_instants", [opened(), contest(), entry()], entry(spot_at=AFTER)),
    ("prizes_unknown", "nobody_wins", [contest(pool=10), finalization()], payment()),
    ("contest_not_finalized", "prizes_unknown", [contest(pool=10)], payment()),
    ("open_end_needed", "before_opening", [quartiles()], resolution("flow", value=5, at=BEFORE)),
    ("question_closed", "nothing_standing", [opened()], withdrawal(at=CLOSES)),
    ("question_resolved", "question_closed", [opened(), resolution()], closing(at=CLOSES)),
    ("unknown_contest", "unknown_question", [], decision(bet(market_id="hail"))),
    ("duplicate_contest", "duplicate_cohort", [cohort()], cohort()),
    ("contest_finalized", "contest_not_complete", [contest(), finalization()], finalization()),
    ("enrolled_already", "contest_complete", [*trading_floor(), decision()], enrolment("week")),
    ("wrong_order_of_instants", "out_of_order", [*trading_floor()], quote(at=BEFORE, quoted_at=AFTER)),
    ("decision_taken", "wrong_attempt", [*trading_floor("ada", "bob"), decision()], decision(attempt=3)),
    ("not_enrolled", "no_recapitalisation", trading_floor(), deposit(participant="bob")),
]


@pytest.mark.parametrize(("first_code", "second_code", "history", "command"), TWO_ROOMS)
def test_the_earlier_of_two_rules_of_the_ledger_is_reported(
    first_code: str, second_code: str, history: list[AnyCommand], command: AnyCommand
) -> None:
    """Both rules are broken; the earlier code in the table is reported."""
    commands_sent = [(f"c{number}", earlier) for number, earlier in enumerate([*history, command])]
    assert code_of(*commands_sent) == min(first_code, second_code, key=ORDER.index)


def test_a_refusal_says_its_code_the_field_and_the_remedy() -> None:
    """The message is one line: code, field = value, what is wrong, what to do."""
    for code, (meaning, remedy) in REFUSALS.items():
        assert str(Refused(code, "question", "q9")) == f"{code}: question = 'q9': {meaning}; {remedy}"
        assert str(Refused(code, "question")) == f"{code}: question: {meaning}; {remedy}"
        assert str(Refused(code)) == f"{code}: {meaning}; {remedy}"
        assert str(Refused(code, "pool", 0, "too small")) == f"{code}: pool = 0: too small; {remedy}"


def test_a_case_can_have_a_remedy_of_its_own() -> None:
    """A reader cannot enrol or open anything, so a refusal can have its own remedy, in both forms."""
    refused = Refused("not_enrolled", "participant", "ada", remedy="name another")
    assert str(refused).endswith("is not enrolled in the contest; name another")
    assert refused.to_dict()["remedy"] == "name another"


@pytest.mark.parametrize("value", ["x" * 10**6, ["a"] * 10**5, 10**1_000], ids=lambda value: type(value).__name__)
def test_a_very_long_value_is_shortened(value: Any) -> None:
    """The message has the beginning of the value; the refusal keeps all of it."""
    refused = Refused("out_of_range", "value", value)
    assert len(str(refused)) < 300
    assert str(refused).startswith(f"out_of_range: value = {repr(value)[:20]}")
    assert "..." in str(refused)
    assert refused.value == value


@pytest.mark.parametrize("value", ["a\nb", "a\x1b[2Jb", "a\u202eb", "\ud800", b"\xff", "\u2028"], ids=ascii)
def test_a_refusal_is_printable_for_every_value(value: Any) -> None:
    """A message has no line break, no control sequence and nothing that cannot be encoded."""
    assert str(Refused("id_not_plain", "question", value)).isprintable()


def test_every_meaning_and_remedy_is_one_plain_phrase() -> None:
    """They stand between colons and semicolons, so they have no full stop at the end and no line break."""
    for phrase in itertools.chain.from_iterable(REFUSALS.values()):
        assert phrase.isprintable()
        assert phrase
        assert not phrase.endswith(".")


@pytest.mark.parametrize(
    "error",
    [
        Refused("out_of_range", "pool", "-1", "must lie between 0 and 1"),
        Refused("not_enrolled", "participant", "ada", "not in spring", remedy="name another"),
        Conflict("lost"),
        Unavailable("gone"),
        Uncertain("gone"),
        Corrupt(7, "digest"),
        NewerVersion(7, "an unknown field"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_is_a_ledger_error_and_survives_the_way_between_processes(error: LedgerError) -> None:
    """An error keeps all its parts when it is pickled."""
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert isinstance(error, LedgerError)
    assert type(back) is type(error)
    assert (str(back), vars(back)) == (str(error), vars(error))


def test_damage_is_named_with_its_log_position() -> None:
    """The log position comes first, then the message."""
    assert str(Corrupt(88_213, "the row is missing")) == "log position 88213: the row is missing"
    assert Corrupt(88_213, "the row is missing").position == 88_213


def test_an_absent_ledger_is_one_that_is_unavailable() -> None:
    """A program that catches Unavailable catches Absent too."""
    assert isinstance(Absent("no such ledger"), Unavailable)
    assert Absent("no such ledger").to_dict()["error"] == "unavailable"


def test_a_refusal_has_a_form_for_programs() -> None:
    """The JSON has the kind, code, field, value as text, detail, meaning and remedy, in this order."""
    for code, (meaning, remedy) in REFUSALS.items():
        plain = json.loads(Refused(code, "question", "q9", "not here").as_json())
        assert list(plain.items()) == [
            ("error", "refused"),
            ("code", code),
            ("field", "question"),
            ("value", "q9"),
            ("detail", "not here"),
            ("meaning", meaning),
            ("remedy", remedy),
        ]
        assert Refused(code).to_dict() == {"error": "refused", "code": code, "meaning": meaning, "remedy": remedy}


def test_the_other_errors_have_the_same_form() -> None:
    """Every kind of error has its name, a detail, a meaning and a remedy."""
    assert Corrupt(7, "the row is missing").to_dict() | {"remedy": ""} == {
        "error": "corrupt",
        "position": 7,
        "detail": "the row is missing",
        "meaning": "the log is damaged",
        "remedy": "",
    }
    for error, kind in ((Conflict("lost"), "conflict"), (Unavailable("gone"), "unavailable")):
        plain = json.loads(error.as_json())
        assert list(plain) == ["error", "detail", "meaning", "remedy"]
        assert (plain["error"], plain["detail"]) == (kind, str(error))


def test_what_a_newer_version_wrote_is_never_to_be_restored() -> None:
    """The remedy is another version of the program: a copy of the log would be the same."""
    error = NewerVersion(2, "the row has an unknown field")
    assert error.to_dict() == {
        "error": "newer_version",
        "position": 2,
        "detail": "the row has an unknown field",
        "meaning": "a newer version wrote to the log, which is not damaged",
        "remedy": "upgrade this process",
    }
    assert str(error).endswith("; upgrade this process: a newer version wrote this row")


def test_an_unknown_outcome_says_that_it_is_unknown_and_what_is_safe() -> None:
    """The text and the JSON both say that it is unknown, and that it is safe to send it again."""
    error = Uncertain("a.db: disk I/O error")
    text = "a.db: disk I/O error: it is not known whether this was recorded; send it again, which is safe"
    assert str(error) == text
    assert error.to_dict() == {
        "error": "uncertain",
        "detail": "a.db: disk I/O error",
        "meaning": "it is not known whether this was recorded",
        "remedy": "send it again, which is safe",
    }


@pytest.mark.parametrize("value", ["x" * 10**6, "a\x1b[2J\n", "\ud800", b"\xff", ["a"] * 10**5, 0, ""], ids=ascii)
def test_the_form_for_programs_is_one_short_line_for_every_value(value: Any) -> None:
    """The line is ASCII, so that nothing in it ends the line, moves a cursor, or cannot be encoded."""
    line = Refused("out_of_range", "value", value).as_json()
    assert line.isascii()
    assert line.isprintable()
    assert len(line) < 500
    assert isinstance(json.loads(line).get("value", ""), str)


@pytest.mark.parametrize(
    ("error", "status", "retryable"),
    [
        (Refused("id_empty"), 422, False),  # RFC 9110, section 15.5.21: unprocessable content
        (Conflict("lost"), 409, True),  # 15.5.10
        (Unavailable("gone"), 503, True),  # 15.6.4
        (Behind("late"), 503, True),
        (Absent("none"), 404, False),  # 15.5.5
        (Uncertain("the disk"), 503, True),
        (Corrupt(3, "gone"), 500, False),  # 15.6.1
        (NewerVersion(3, "an unknown field"), 503, False),
    ],
)
def test_an_error_says_how_a_service_answers(error: LedgerError, status: int, retryable: bool) -> None:
    """The status is the client's fault from 400 on, and the service's from 500 on."""
    assert (error.http_status, error.retryable) == (status, retryable)
    assert type(error) in ERRORS
