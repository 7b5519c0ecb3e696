"""Tests of the canonical content of a command: the same for a retry in any notation, different for other commands."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from forecast_ledger.ledger.core.exact import shortest_text
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.canonical import (
    _number_text,
    canonical_content,
    cdf_content,
    forecast_contents,
    measures_content,
    normal_content,
    probabilities_content,
    probability_content,
)
from forecast_ledger.ledger.model.commands import (
    AmendQuestion,
    AnyCommand,
    ModelCall,
    RecordFailedCall,
    RenameParticipant,
    RequireVersion,
    RestatedForecast,
    RestateForecasts,
    read,
)
from forecast_ledger.ledger.model.events import Attestation
from forecast_ledger.ledger.model.provenance import optional_names
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from tests.ledger.model.test_commands import LINES, OWN, line
from tests.support import given
from tests.support.given import BEFORE, COLOURS, day

TWO = [('"a"', 750_000_000), ('"b"', 250_000_000)]  # outcomes as JSON and their probabilities, in 1e-9
SPELLINGS = ["0.25", "0.2500", "25e-2", "+0.25", "2.5E-1", 0.25, Decimal("0.250"), Decimal("25E-2")]


@pytest.mark.parametrize("number", SPELLINGS, ids=repr)
def test_equal_numbers_give_the_same_content(number: Any) -> None:
    """A retry may write a number in another notation."""
    one = given.forecast(probability=Decimal("0.25"))
    assert canonical_content(given.forecast(probability=number)) == canonical_content(one)
    bids = given.forecast(probabilities={"yes": number, "no": "0.75"})
    assert canonical_content(bids) == canonical_content(
        given.forecast(probabilities={"no": 0.75, "yes": Decimal("0.25")})
    )
    assert canonical_content(given.forecast(cdf=[0, number])) == canonical_content(
        given.forecast(cdf=(Decimal("0.0"), "0.25"))
    )
    assert canonical_content(given.forecast(quantiles=[0, number])) == canonical_content(
        given.forecast(quantiles=(Decimal("0.0"), "0.25"))
    )
    assert canonical_content(given.quartiles(levels=[number])) == canonical_content(given.quartiles(levels=("0.25",)))
    assert canonical_content(given.quote(prices={"yes": number})) == canonical_content(
        given.quote(prices={"yes": "0.25"})
    )
    legs = given.decision(given.bet(number)), given.decision(given.sale(number))
    assert [canonical_content(leg) for leg in legs] == [
        canonical_content(given.decision(kind("0.25"))) for kind in (given.bet, given.sale)
    ]
    assert canonical_content(given.deposit(number)) == canonical_content(given.deposit("0.25"))
    payouts = given.resolution(payouts={"yes": number, "no": "0.75"})
    assert canonical_content(payouts) == canonical_content(given.resolution(payouts={"no": 0.75, "yes": "0.25"}))


@pytest.mark.parametrize("zero", [0, "0", "-0", "0.00", "-0.0", 0.0, -0.0, Decimal("-0"), Decimal("0E+9"), "0e-9"])
def test_every_zero_gives_the_same_content(zero: Any) -> None:
    """Minus 0 is 0."""
    assert canonical_content(given.forecast(probability=zero)) == canonical_content(
        given.forecast(probability=Decimal(0))
    )
    assert canonical_content(given.forecast(quantiles=(zero, 1))) == canonical_content(
        given.forecast(quantiles=(Decimal(0), 1))
    )


SAME_INSTANTS = [day(15), "2026-03-15T05:30:00+05:30", "2026-03-15t00:00:00.000z"]
SAME_INSTANTS += ["2026-03-15 00:00:00Z", "2026-03-15T00:00:00.0000000004Z"]


@pytest.mark.parametrize("instant", [*SAME_INSTANTS, datetime(2026, 3, 15, tzinfo=UTC)], ids=str)
def test_equal_instants_give_the_same_content(instant: Any) -> None:
    """The offset and the fraction may be written in any way; the instant counts to the recorded µs."""
    assert canonical_content(given.closing(at=instant)) == canonical_content(given.closing(at=day(15)))
    known = given.resolution(known_at=instant)
    assert canonical_content(known) == canonical_content(given.resolution(known_at=day(15)))
    assert canonical_content(given.entry(spot_at=instant)) == canonical_content(given.entry(spot_at=day(15)))
    assert canonical_content(given.quote(quoted_at=instant)) == canonical_content(given.quote(quoted_at=day(15)))
    assert canonical_content(given.cohort(starts_at=instant)) == canonical_content(given.cohort(starts_at=day(15)))


def test_the_id_is_not_part_of_the_content() -> None:
    """The id names the command; contents are compared for the same id."""
    assert canonical_content(msgspec.structs.replace(given.closing(), id="other")) == canonical_content(given.closing())


def test_a_field_left_out_has_the_content_of_its_default() -> None:
    """A retry may give the default of a field."""
    written = given.contest(pool=None, currency="", payable_unit="0.010", title="")
    assert canonical_content(written) == canonical_content(given.contest())
    assert canonical_content(given.entry(weight=1.0, hidden_coverage_weight=None)) == canonical_content(given.entry())
    assert canonical_content(given.entry(spot_at=None)) == canonical_content(given.entry())
    assert canonical_content(given.enrolment(entrant=None, bot=False)) == canonical_content(given.enrolment())
    unsaid: dict[str, Any] = {
        "bins": 4,
        "open_lower": False,
        "open_upper": False,
        "zero_point": None,
        "levels": None,
        "decimals": None,
    }
    assert canonical_content(given.numeric(**unsaid)) == canonical_content(given.numeric())
    assert canonical_content(given.numeric(bins=None)) == canonical_content(given.numeric(bins=200))
    assert canonical_content(given.quartiles(decimals=None)) == canonical_content(given.quartiles(decimals=6))
    assert canonical_content(given.quartiles(bins=None)) == canonical_content(given.quartiles())
    assert canonical_content(given.forecast(probability="0.7", quantiles=None, attestation=None)) == canonical_content(
        given.forecast()
    )
    declared = Attestation(newest_source="2026-03", restricted_sources=None, note="", restricted_list="")
    assert canonical_content(given.forecast(attestation=declared)) == canonical_content(
        given.forecast(attestation=Attestation(newest_source="2026-03"))
    )
    assert canonical_content(given.cohort(starts_at=None, series=None)) == canonical_content(given.cohort())
    assert canonical_content(given.enrolment(family=None, release=None)) == canonical_content(given.enrolment())
    assert canonical_content(given.resolution(outcome="yes", payouts=None)) == canonical_content(given.resolution())
    refunded = commands.CancelMarket(at=day(25), question="rain", reason="no source")
    assert canonical_content(given.cancellation(policy="refund_cost")) == canonical_content(refunded)
    held = commands.RecordDecision(
        at=given.TRADES, contest="week", participant="ada", period=1, action="HOLD", reasoning="It will."
    )
    assert canonical_content(given.decision(attempt=1, prompt=None, response=None)) == canonical_content(held)
    staked = [RuleSet(name="x", trading=rules) for rules in (Trading(), Trading(attempts=2, legs="independent"))]
    assert canonical_content(given.cohort(rules=staked[0])) == canonical_content(given.cohort(rules=staked[1]))
    whole = RuleSet(**{field: getattr(OWN, field) for field in RuleSet.__struct_fields__})
    assert canonical_content(given.contest(rules=whole)) == canonical_content(given.contest(rules=OWN))


# The canonical content of each command without its optional fields, as first recorded; put together by hand.
AT = "1772928000000000"  # 2026-03-08: seven days after 2026-03-01, 20513 days after the epoch
CURVED = {"lower": 1, "upper": 4, "bins": 3, "open_upper": True, "zero_point": 0}
FIRST_CONTENTS: list[tuple[dict[str, Any], str]] = [
    (LINES["submit_forecast"], '["submit_forecast","rain","ada",AT,"0.7",null,null]'),
    (
        {"question": "rain", "participant": "ada", "probabilities": {"b": 1, "a": 0}},
        '["submit_forecast","rain","ada",AT,null,{"a":"0","b":"1"},null]',
    ),
    (
        {"question": "rain", "participant": "ada", "cdf": [0, "0.70", 1]},
        '["submit_forecast","rain","ada",AT,null,null,["0","0.7","1"]]',
    ),
    (LINES["add_question"], '["add_question","cup","rain",AT,"1",null]'),
    (LINES["add_question"] | {"hidden_coverage_weight": 0.5}, '["add_question","cup","rain",AT,"1","0.5"]'),
    (LINES["resolve_question"], '["resolve_question","rain",AT,null,null,"yes"]'),
    (LINES["open_contest"], '["open_contest","cup","","",AT,null,"0.01","relative-2022-04"]'),
    (LINES["enrol_participant"], '["enrol_participant","cup","ada",null,AT,false]'),
    (LINES["annul_question"], '["annul_question","rain","no source",AT]'),
    (
        {
            "question": "q",
            "kind": "numeric",
            "range": {"lower": 0, "upper": 4},
            "opens_at": day(8),
            "closes_at": day(8),
        },
        '["open_question","q",null,"",AT,AT,AT,null,["0","4",[200,false,false]],"numeric"]',
    ),
    (
        {"question": "q", "kind": "numeric", "range": CURVED, "opens_at": day(8), "closes_at": day(8)},
        '["open_question","q",null,"",AT,AT,AT,null,["1","4","0",[3,false,true]],"numeric"]',
    ),
]


@pytest.mark.parametrize(("fields", "content"), FIRST_CONTENTS)
def test_a_field_added_later_does_not_change_commands_without_it(fields: dict[str, Any], content: str) -> None:
    """A retry of a command that was recorded before the field existed is still recognized."""
    kind = content.split('"')[1]
    command = read(json.dumps({"id": "c1", "type": kind, "at": day(8)} | fields))
    assert canonical_content(command).decode() == content.replace("AT", AT)


def test_the_content_of_a_rule_set_has_no_defaults() -> None:
    """So a rule that is added later does not change the content of older commands."""
    rules = RuleSet(name="own", kernel="brier", total="mean", scored_only_levels=("hidden",))
    content = canonical_content(given.contest(rules=rules)).decode()
    assert content.endswith('{"kernel":"brier","name":"own","scored_only_levels":["hidden"],"total":"mean"}]')
    rules = RuleSet(name="own", trading=Trading(attempts=3))
    assert canonical_content(given.contest(rules=rules)).decode().endswith('{"name":"own","trading":{"attempts":3}}]')
    rules = RuleSet(name="own", trading=Trading())
    assert canonical_content(given.contest(rules=rules)).decode().endswith('{"name":"own","trading":{}}]')


RANGE = commands.Range(lower=0, upper=4, bins=4)
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
            "group": "g",
            "category": "c",
            "tags": ("t",),
            "url": "u",
            "source": "s",
            "ordered": False,
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
            "quantiles": (0, 1),
            "samples": (0, 1),
            "attestation": Attestation(),
            "until": day(15),
            "points": commands.Points(levels=("0.5",), quantiles=(1,), method="linear"),
            "normalized": "by_sum",
        },
    ),
    (given.withdrawal(), {"at": day(14), "question": "snow", "participant": "bob"}),
    (
        given.addition(),
        {"at": day(12), "question": "snow", "add": ("violet", "grey"), "remove": ("red",), "grace_ends_at": day(16)},
    ),
    (given.closing(), {"at": "2026-03-15T00:00:00.000001Z", "question": "snow"}),
    (
        given.rescheduling(),
        {
            "at": day(26),
            "question": "snow",
            "opens_at": day(9),
            "closes_at": day(24),
            "reveals_at": day(13),
            "reason": "postponed",
        },
    ),
    (
        given.resolution(),
        {
            "at": day(26),
            "question": "snow",
            "outcome": "no",
            "value": 1,
            "known_at": day(12),
            "payouts": {"yes": 1, "no": 0},
        },
    ),
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
            "starts_at": day(8),
            "series": "cups",
        },
    ),
    (
        given.entry(),
        {
            "at": day(6),
            "contest": "league",
            "question": "snow",
            "weight": 2,
            "hidden_coverage_weight": 0,
            "spot_at": day(12),
            "spots": (commands.Spot(at=day(12), weight=2),),
        },
    ),
    (
        given.enrolment(),
        {
            "at": day(6),
            "contest": "league",
            "participant": "bob",
            "entrant": "ada",
            "bot": True,
            "family": "gpt",
            "release": "gpt-5",
        },
    ),
    (
        given.exclusion(),
        {"at": day(26), "contest": "league", "participant": "bob", "level": "hidden", "reason": "other"},
    ),
    (given.finalization(), {"at": day(26), "contest": "league"}),
    (given.payment(), {"at": day(26), "contest": "league"}),
    (given.cancellation(), {"at": day(26), "question": "snow", "policy": "refund_cost", "reason": "other"}),
    (
        given.quote(),
        {
            "at": day(3),
            "question": "snow",
            "prices": {"yes": "0.400000000001"},
            "bids": {"yes": "0.39"},
            "asks": {"yes": "0.41"},
            "bid_sizes": {"yes": 100},
            "ask_sizes": {"yes": "0.5"},
            "quotes": (commands.Prices(question="rain", prices={"yes": 1}),),
            "source": "wire",
            "quoted_at": day(1),
            "skip_bad": True,
        },
    ),
    (
        given.decision(given.bet(), given.sale()),
        {
            "at": day(3),
            "contest": "other",
            "participant": "bob",
            "period": 2,
            "attempt": 2,
            "action": "bet",
            "bets": (given.bet("500.000000001"),),
            "sells": (given.sale("99.999999999"),),
            "reasoning": "It might.",
            "prompt": "Decide.",
            "response": "{}",
            "call": ModelCall(cost=1),
        },
    ),
    (
        AmendQuestion(at=day(2), question="rain", contest="week", weight=1),
        {
            "at": day(3),
            "question": "other",
            "title": "Rain?",
            "tags": ("Weather",),
            "url": "https://example.org",
            "source": "a gauge",
            "contest": "other",
            "weight": 2,
            "reason": "other",
        },
    ),
    (RequireVersion(at=day(2), version="0.2.0"), {"at": day(3), "version": "0.2"}),
    (
        RenameParticipant(at=day(2), participant="ada", to="bo", reason="one person"),
        {"at": day(3), "participant": "bob", "to": "other", "reason": "other"},
    ),
    (
        RestateForecasts(
            at=day(2),
            question="rain",
            participant="ada",
            forecasts=(RestatedForecast(at=day(1), probability="0.5"),),
            reason="mistyped",
        ),
        {
            "at": day(3),
            "question": "other",
            "participant": "bob",
            "forecasts": (RestatedForecast(at=day(1), probability="0.5", until=day(2)),),
            "reason": "other",
        },
    ),
    (
        RecordFailedCall(at=day(2), contest="week", participant="ada", period=1, error="503"),
        {
            "at": day(3),
            "contest": "other",
            "participant": "bob",
            "period": 2,
            "error": "timeout",
            "prompt": "Decide.",
            "call": ModelCall(latency_ms=1),
        },
    ),
    (
        given.traded(),
        {
            "at": day(3),
            "contest": "other",
            "participant": "bob",
            "question": "other",
            "outcome": "no",
            "all_but": "no",
            "action": "sell",
            "shares": "100.0000001",
            "amount": "40.0000001",
            "fee": "0.0000001",
        },
    ),
    *[
        (money, {"at": day(3), "contest": "other", "participant": "bob", "amount": "1000.0000001", "reason": "other"})
        for money in (given.deposit(), given.cash_out())
    ],
]
SAID: dict[str, Any] = {"by": "ada", "reason": "the gauge", "evidence": commands.Evidence(text="6.2 mm")}
CHANGES = [
    (command, field, value)
    for command, fields in OTHERS
    for field, value in ({name: SAID[name] for name in optional_names(type(command)) if name in SAID} | fields).items()
]


def test_another_value_of_any_field_is_other_content() -> None:
    """Every field of every command is part of the content, so that a reused id is always detected."""
    for command, field, value in CHANGES:
        changed = msgspec.structs.replace(command, **{field: value})
        assert canonical_content(changed) != canonical_content(command), (type(command), field)


def test_those_are_all_fields_of_all_commands() -> None:
    """The table above has every field of every command."""
    for command, changed in OTHERS:
        fields = {field.name for field in msgspec.structs.fields(command)} - {"id", *optional_names(type(command))}
        assert set(changed) == fields, f"OTHERS needs another value of each field of {type(command).__name__}"
    assert {type(command) for command, _ in OTHERS} == set(get_args(AnyCommand)), "OTHERS needs a row for each command"


LEGS: list[tuple[AnyCommand, AnyCommand]] = [
    *[
        (given.decision(given.bet()), given.decision(other))
        for other in (given.bet(501), given.bet(side="yes"), given.bet(market_id="Rain"), given.sale())
    ],
    *[
        (given.decision(given.sale()), given.decision(other))
        for other in (given.sale(99), given.sale(position_id="01"), given.sale(position_id=2))
    ],
]


@pytest.mark.parametrize(("one", "other"), LEGS)
def test_another_leg_is_other_content(one: AnyCommand, other: AnyCommand) -> None:
    """Every part of a leg is part of the content, as it is written, so that a changed decision is detected."""
    assert canonical_content(one) != canonical_content(other)


def test_legs_in_another_order_are_other_content() -> None:
    """Legs are carried out one after another, so their order is part of the decision."""
    bets, sales = (given.bet(50), given.bet(60)), (given.sale(50, 1), given.sale(50, 2))
    assert canonical_content(given.decision(*bets)) != canonical_content(given.decision(*reversed(bets)))
    assert canonical_content(given.decision(*sales)) != canonical_content(given.decision(*reversed(sales)))
    assert canonical_content(given.decision(given.bet(), bets=())) != canonical_content(
        given.decision(given.bet(), bets=None)
    )


def test_a_position_by_number_and_by_text_gives_the_same_content() -> None:
    """A position may be written as a number or as a text."""
    assert canonical_content(given.decision(given.sale(position_id=7))) == canonical_content(
        given.decision(given.sale(position_id="7"))
    )


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
        {"bins": None},
        {"levels": ("0.25",)},
        {"decimals": 6},
        {"decimals": 0},
    ],
    ids=str,
)
def test_another_range_is_other_content(span: dict[str, Any]) -> None:
    """Every part of a range is part of the content, in its place."""
    assert canonical_content(given.numeric(**span)) != canonical_content(given.numeric())
    assert canonical_content(given.numeric(open_lower=True)) != canonical_content(given.numeric(open_upper=True))


@pytest.mark.parametrize(
    "span",
    [{"upper": 5}, {"samples": 2}, {"samples": None}, {"decimals": 2}, {"decimals": None}, {"bins": 3}, {"levels": ()}],
    ids=str,
)
def test_another_range_of_samples_is_other_content(span: dict[str, Any]) -> None:
    """Their number and the decimals are part of the question."""
    assert canonical_content(given.ensemble(**span)) != canonical_content(given.ensemble())


@pytest.mark.parametrize(
    "span",
    [
        *[{"lower": -1}, {"upper": 5}, {"open_lower": True}, {"open_upper": True}, {"zero_point": -1}],
        *[{"levels": None}, {"levels": ()}, {"levels": ("0.5",)}, {"levels": ("0.75", "0.5", "0.25")}],
        *[{"levels": ("0.25", "0.5", "0.75000000001")}, {"levels": ("0.25", "0.5")}],
        *[{"decimals": 2}, {"decimals": 0}, {"decimals": None}, {"bins": 200}, {"bins": 4}],
    ],
    ids=str,
)
def test_another_range_of_quantiles_is_other_content(span: dict[str, Any]) -> None:
    """The levels, in their order, and the decimals are part of the question."""
    assert canonical_content(given.quartiles(**span)) != canonical_content(given.quartiles())


@pytest.mark.parametrize(
    ("part", "value"),
    [
        *[("newest_source", stamp) for stamp in ("2026-03", "2026-03-02", "2026-03-01T00:00:00Z")],
        *[("model_released", "2025"), ("training_cutoff", "2025"), ("restricted_sources", False)],
        *[("restricted_list", "list 3"), ("note", "by hand")],
    ],
)
def test_another_attestation_is_other_content(part: str, value: Any) -> None:
    """Every part of an attestation counts; stamps count as they are written, because their precision matters."""
    declared = Attestation(newest_source="2026-03-01")
    other = msgspec.structs.replace(declared, **{part: value})
    assert canonical_content(given.forecast(attestation=declared)) != canonical_content(
        given.forecast(attestation=other)
    )


@pytest.mark.parametrize("field", [field for field in RuleSet.__struct_fields__ if field != "name"])
def test_another_rule_is_other_content(field: str) -> None:
    """Every field of a rule set is part of the content."""
    now = getattr(OWN, field)
    number = int(now) - 1 if type(now) is int and now else 1
    several = {"reference_rows": ("market",), "clusters": ("tag:round",)}.get(field, ("hidden",))
    other: dict[type, Any] = {int: number, bool: not now, tuple: several, type(None): Trading()}
    choices = {*get_args(get_type_hints(RuleSet)[field])} - {now}
    value = other[type(now)] if str not in map(type, choices) else min(choices)
    changed = msgspec.structs.replace(OWN, **{field: value})
    assert canonical_content(given.contest(rules=changed)) != canonical_content(given.contest(rules=OWN))


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
        (given.forecast(cdf=(0, 1)), given.forecast(quantiles=(0, 1))),
        (given.forecast(quantiles=(0, 1)), given.forecast(quantiles=(1, 0))),
        (given.forecast(points=given.points(0, 1, 2)), given.forecast(points=given.points(0, 2, 1))),
        (
            given.forecast(points=given.points(0, 1, 2)),
            given.forecast(points=given.points(0, 1, 2, method="monotone_cubic")),
        ),
        (given.forecast(probabilities={"a": 1}, normalized="by_sum"), given.forecast(probabilities={"a": 1})),
        (given.payment(), given.finalization()),
        (given.enrolment(participant="a", entrant="b"), given.enrolment(participant="b", entrant="a")),
        (given.enrolment(entrant="ada"), given.enrolment()),
        (given.entry(spot_at=day(12)), given.entry(hidden_coverage_weight=1)),
        (given.contest(rules=PRESETS["peer-2024-03"]), given.contest(rules=PRESETS["peer-2025-06"])),
        (given.contest(rules=PRESETS["arena-v1"]), given.contest(rules=PRESETS["arena-v2"])),
        (given.annulment(), given.cancellation(policy="refund_cost")),
        (given.deposit(reason="x"), given.cash_out(reason="x")),
        (given.decision(), given.replied('{"action": "HOLD", "reasoning": "It will."}')),
        (given.replied("x", prompt="y"), given.replied("y", prompt="x")),
        (given.enrolment(family="x"), given.enrolment(release="x")),
        (given.resolution(outcome="yes"), given.resolution(payouts={"yes": 1, "no": 0})),
        (given.quote("rain"), given.quotes(commands.Prices(question="rain", prices={"yes": "0.4"}))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_commands_that_differ_have_other_content(one: AnyCommand, other: AnyCommand) -> None:
    """Commands differ by type, by the order of an array, or by which field has a text."""
    assert canonical_content(one) != canonical_content(other)


@examples(st.decimals(-(10**9), 10**9, places=12), st.decimals(-(10**9), 10**9, places=12))
def test_numbers_give_the_same_content_only_if_they_are_equal(one: Decimal, other: Decimal) -> None:
    """Numbers are compared as exact decimals, even if events record fewer digits."""
    same = canonical_content(given.resolution(value=one)) == canonical_content(given.resolution(value=other))
    assert same == (Fraction(one) == Fraction(other))


def test_a_list_in_place_of_a_tuple_is_the_same_command() -> None:
    """JSON has one type of array, and callers in Python may use a list or a tuple."""
    listed = given.choices(outcomes=list(COLOURS))  # type: ignore[arg-type]
    assert canonical_content(listed) == canonical_content(given.choices())
    assert canonical_content(given.forecast(cdf=[0, 1])) == canonical_content(given.forecast(cdf=(0, 1)))
    assert canonical_content(given.forecast(quantiles=[0, 1])) == canonical_content(given.forecast(quantiles=(0, 1)))
    assert canonical_content(given.quartiles(levels=["0.25", "0.5", "0.75"])) == canonical_content(given.quartiles())
    several = {"scored_only_levels": ["hidden"], "reference_rows": ["market"], "clusters": ["category"]}
    both: list[dict[str, Any]] = [several, {field: (*names,) for field, names in several.items()}]
    rows = [msgspec.structs.replace(OWN, **fields) for fields in both]
    assert canonical_content(given.contest(rules=rows[0])) == canonical_content(given.contest(rules=rows[1]))


def test_a_line_and_its_struct_are_the_same_command() -> None:
    """A line of the command file and the command built in Python have the same content."""
    text = line("open_question", at=BEFORE, title="Rain?", reveals_at=day(12))
    assert canonical_content(read(text)) == canonical_content(given.opened(title="Rain?", reveals_at=day(12)))
    assert canonical_content(read(text.decode())) == canonical_content(read(text))


@pytest.mark.parametrize("field", Trading.__struct_fields__)
def test_another_trading_rule_is_other_content(field: str) -> None:
    """Every field of the trading rules is part of the content."""
    rules = Trading()
    value = getattr(rules, field)
    names = {
        "legs": "all_or_nothing",
        "cohorts": "none",
        "closed_marks": "last",
        "replies": "lenient",
        "completed_by": "shown",
        "fee_rounding": "down",
        "fills": "bid_ask",
        "marks": "bid",
        "depth": "partial",
    }
    other: Any = names.get(field, not value if isinstance(value, bool) else None)
    changed = msgspec.structs.replace(rules, **{field: value + 1 if other is None else other})
    one, two = (given.cohort(rules=RuleSet(name="x", trading=trading)) for trading in (rules, changed))
    assert canonical_content(one) != canonical_content(two)


@examples(
    st.integers(-(10**13), 10**13) | st.sampled_from([0, 1, 999, 1_000, 10**9 - 1, 10**9, 10**9 + 1]),
    st.integers(0, 12),
)
def test_the_quick_way_writes_numbers_in_canonical_form(units: int, places: int) -> None:
    """Both ways use the shortest decimal text, of a number alone and of those of a forecast."""
    text = f'"{shortest_text(Decimal(units).scaleb(-places))}"'
    assert _number_text(units, places) == text
    assert measures_content("samples", [units, 5], places).endswith(f"[{text},{_number_text(5, places)}]")


@pytest.mark.parametrize("at", [None, 1_772_323_200_000_000])
@pytest.mark.parametrize(
    ("fields", "is_normal", "numbers"),
    [
        ({"probability": "0.25"}, True, probability_content(250_000_000, True)),
        ({"probability": "0.25"}, False, probability_content(250_000_000, False)),
        ({"probabilities": {"b": "0.25", "a": "0.75"}}, True, probabilities_content(TWO, True)),
        ({"probabilities": {"b": "0.25", "a": "0.75"}}, False, probabilities_content(TWO, False)),
        ({"cdf": ["0", "0.5", "1"]}, True, cdf_content([0, 5 * 10**9, 10**10], True)),
        ({"cdf": ["0", "0.5", "1"]}, False, cdf_content([0, 5 * 10**9, 10**10], False)),
        ({"quantiles": ["-1.5", "20"]}, True, measures_content("quantiles", [-15, 200], 1)),
        ({"samples": ["-1.5", "20"]}, False, measures_content("samples", [-15, 200], 1)),
    ],
)
def test_the_quick_way_writes_the_content_of_a_forecast(
    fields: dict[str, Any], is_normal: bool, numbers: str, at: int | None
) -> None:
    """It gives the bytes of the long way, of each kind of numbers, in both forms, with an instant and without."""
    command = commands.SubmitForecast(
        question="q", participant="ada", at=None if at is None else "2026-03-01T00:00:00Z", **fields
    )
    content = (normal_content if is_normal else canonical_content)(command)
    instant = "null" if at is None else at
    assert forecast_contents(['"q"'], ['"ada"'], [instant], [numbers], is_normal=is_normal) == [content]


def test_the_quick_way_writes_normal_forms_of_many_forecasts() -> None:
    """One for each column of values, stamped or not."""
    sent = [
        commands.SubmitForecast(question="q", participant=who, at=at, probability="0.5")
        for who, at in (("ada", "2026-03-01T00:00:00Z"), ("bob", None))
    ]
    contents = forecast_contents(['"q"'] * 2, ['"ada"', '"bob"'], [1_772_323_200_000_000, "null"], [5 * 10**8] * 2)
    assert contents == [*map(normal_content, sent)]
