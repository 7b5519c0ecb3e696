"""Tests of rule sets as people write them: amounts are texts in their unit, and the log holds integers."""

import json
from decimal import Decimal
from functools import partial
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.model import commands
from forecast_ledger.ledger.model.canonical import canonical_content
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet, recorded_fields, written_fields
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.replay.explain.what_if import parse_rule_set
from forecast_ledger.replay.mapping.csv_mapping import parse_map, read_rows
from tests.support.effort import times
from tests.support.given import day

AMOUNTS = {
    "rules.least_prize": 10**18,
    "rules.trading.starting_cash": 10**15,
    "rules.trading.least_bet": 10**15,
    "rules.trading.least_percentage": 10**8,
    "rules.trading.fee_unit": 10**9,
}  # each with its upper bound, 1e-6
PRIZED = {"name": "cup", "kernel": "ln", "reference": "peers", "take": "positive_square"}


def with_amount(path: str, amount: Any) -> dict[str, Any]:
    """A rule set with one amount, as JSON gives it."""
    name = path.rpartition(".")[2]
    if "trading" in path:
        return PRIZED | {"trading": {name: amount, "fee_rate_ppm": 1}}
    return PRIZED | {name: amount}


def contest(rules: Any) -> str:
    """A line that opens a contest."""
    return json.dumps({"type": "open_contest", "at": day(1), "contest": "cup", "pool": 2000, "rules": rules})


def recorded(path: str, rules: RuleSet) -> int:
    """The amount as the log holds it."""
    held: Any = recorded_fields(rules)
    for name in path.split(".")[1:]:
        held = held.get(name, 1)  # a unit of a fee of 1 is its default, which is left out
    return int(held)


def written(rules: RuleSet) -> str:
    """A whole rule set in JSON, as it is printed."""
    fields = written_fields(rules)
    return json.dumps({name: value for name, value in fields.items() if value is not None})


@pytest.mark.parametrize("path", AMOUNTS)
@given(micros=st.integers(1, 10**8))
@settings(max_examples=times(20))
def test_an_amount_is_a_text_in_its_unit(path: str, micros: int) -> None:
    """The log holds an amount in 1e-6, however the rule set was given: as a line, a dict, or a text for what-if."""
    text = str(Decimal(micros) / 10**6)
    rules = with_amount(path, text)
    command = commands.read(contest(rules))
    assert isinstance(command, commands.OpenContest)
    assert isinstance(command.rules, RuleSet)
    assert recorded(path, command.rules) == micros
    assert commands.read_rule_set(rules, "rules") == command.rules == parse_rule_set(json.dumps(rules))


@pytest.mark.parametrize("path", AMOUNTS)
@pytest.mark.parametrize("number", [50, 50_000_000, 0, -1, 12.5, 50.0, 10**30])
def test_a_number_is_refused_in_place_of_an_amount(path: str, number: float) -> None:
    """A number was 1e-6 of the unit before: it is refused, and the message gives both readings as texts."""
    rules = with_amount(path, number)
    for read in (
        lambda: commands.read(contest(rules)),
        lambda: commands.read_rule_set(rules, "rules"),
        lambda: parse_rule_set(json.dumps(rules)),
    ):
        with pytest.raises(Refused) as refused:
            read()
        assert (refused.value.code, refused.value.field) == ("amount_not_text", path)
        if number == 50_000_000:
            assert 'write "50000000" for 50000000, or "50" for what 50000000 was before' in str(refused.value)


@pytest.mark.parametrize(("path", "most"), AMOUNTS.items())
def test_an_amount_keeps_within_its_limits(path: str, most: int) -> None:
    """The upper bound is that of the recorded number, and a text that is no number has its own code."""
    text = f"{Decimal(most).scaleb(-6):f}"
    assert recorded(path, commands.read_rule_set(with_amount(path, text), "rules")) == most
    wrong = {f"{Decimal(most + 1).scaleb(-6):f}": "out_of_range", "-1": "out_of_range", "nan": "not_finite"}
    for amount, code in {**wrong, "fifty": "bad_number", "": "bad_number"}.items():
        with pytest.raises(Refused) as refused:
            commands.read_rule_set(with_amount(path, amount), "rules")
        assert (refused.value.code, refused.value.field) == (code, path)


@pytest.mark.parametrize("wrong", [None, True, [], {}])
def test_a_value_of_another_type_is_no_amount(wrong: Any) -> None:
    """A value that is neither a text nor a number is refused."""
    with pytest.raises(Refused, match="bad_number"):
        commands.read(contest(with_amount("rules.least_prize", wrong)))


@pytest.mark.parametrize("rules", PRESETS.values(), ids=PRESETS)
def test_a_rule_set_as_it_is_printed_is_read_as_the_same(rules: RuleSet) -> None:
    """What `rules` prints can be given back, and opens the same contest."""
    assert parse_rule_set(written(rules)) == rules


def test_a_rule_set_as_an_event_holds_it_is_refused() -> None:
    """The fields of `contest_opened` hold 1e-6: copied into a command, they are refused and not read as a fortune."""
    held = json.dumps(recorded_fields(PRESETS["peer-2025-06"]))
    assert '"least_prize": 50000000' in held
    with pytest.raises(Refused, match="amount_not_text"):
        parse_rule_set(held)


def test_the_content_of_a_command_has_amounts_as_before() -> None:
    """A command that gives an amount as text has the content, and so the digest, that the number in 1e-6 had."""
    line = commands.read(contest(with_amount("rules.least_prize", "50")))
    assert b'"least_prize":50000000' in canonical_content(line)
    same = commands.OpenContest(
        at=day(1),
        contest="cup",
        pool=2000,
        rules=RuleSet(**PRIZED, least_prize_micros=50_000_000),  # type: ignore[arg-type]
    )
    assert canonical_content(line) == canonical_content(same)


def test_python_says_the_unit_in_the_name() -> None:
    """A field of `RuleSet` or `Trading` that holds an amount cannot be given without its unit."""
    for kind, field in ((partial(RuleSet, name="x"), "least_prize"), (Trading, "least_bet")):
        build: Any = kind
        with pytest.raises(TypeError, match=field):
            build(**{field: 50})


@pytest.mark.parametrize(("amount", "code"), [('"50"', ""), ("50", "amount_not_text"), ("50.0", "amount_not_text")])
def test_a_map_writes_amounts_in_the_same_way(amount: str, code: str) -> None:
    """A constant of a map is checked like a line: a text is an amount, and a number is refused."""
    rules = f'{{ name = "cup", kernel = "ln", reference = "peers", take = "positive_square", least_prize = {amount} }}'
    fields = f'at = "{day(1)}"\ncontest = "{{contest}}"\nrules = {rules}'
    mapping = f'[[command]]\ntype = "open_contest"\nid = "{{contest}}"\n[command.fields]\n{fields}\n'
    [(_, made)] = read_rows(parse_map(mapping.encode()), BytesIO(b"contest\ncup\n")).commands
    if code:
        assert isinstance(made, Refused)
        assert (made.code, made.field) == (code, "rules.least_prize")
    else:
        assert isinstance(made, commands.OpenContest)
        assert isinstance(made.rules, RuleSet)
        assert made.rules.least_prize_micros == 50_000_000
