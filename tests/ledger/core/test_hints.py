"""Tests of hints: a refusal of a wrong word lists the allowed words and names the most similar one."""

from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from msgspec import json

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import vocabulary
from forecast_ledger.ledger.model.commands import AnyCommand, OpenContest, RecordDecision, read
from forecast_ledger.ledger.model.rules import RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.storing.writer import Ledger
from tests.support.given import NOW, cancellation, contest, day, exclusion, opened, traded


def literals(struct: type) -> dict[str, tuple[str, ...]]:
    """Return the fields of a struct that take one of a few words, with these words, as the type declares them."""
    hints = {
        name: get_args(kind)[0] if get_origin(kind) is tuple else kind for name, kind in get_type_hints(struct).items()
    }
    return {name: get_args(kind) for name, kind in hints.items() if get_origin(kind) is Literal}


OF_RULES = [(f"rules.{name}", words) for name, words in literals(RuleSet).items()]
OF_TRADING = [(f"rules.trading.{name}", words) for name, words in literals(Trading).items()]
METHODS = ("linear", "monotone_cubic", "metaculus-2026-04")
OF_COMMANDS = [
    ("kind", ("binary", "multiple_choice", "numeric", "date", "discrete")),
    ("level", ("no_prize", "no_rank", "hidden")),
    ("policy", ("refund_cost", "void_trades", "refund_stake")),
    ("action", ("buy", "sell")),
]
OF_POINTS = [(f"{path}.method", METHODS) for path in ("points", "forecasts.points")]
OF_SHARES = [(path, ("by_sum",)) for path in ("normalized", "forecasts.normalized")]
EVERY = [*OF_RULES, *OF_TRADING, *OF_COMMANDS]
BASE = {"kind": opened(), "level": exclusion(), "policy": cancellation(), "action": traded()}


def handled(command: Any) -> Refused:
    """Return the refusal of a command."""
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger, pytest.raises(Refused) as refused:
        ledger.handle(command, "c")
    return refused.value


def command_with(path: str, word: Any) -> dict[str, Any]:
    """Return a command as a dict with a word at a path."""
    command = BASE.get(path, contest())
    fields: dict[str, Any] = json.decode(json.encode(command))
    if path.startswith("rules"):
        *_, name = path.split(".")
        within = {name: [word] if name in {"scored_only_levels", "reference_rows"} else word}
        fields["rules"] = {"name": "x"} | ({"trading": within} if "trading." in path else within)
    else:
        fields[path] = word
    return fields


def test_the_vocabulary_has_every_field_with_a_choice_of_words() -> None:
    """The vocabulary has exactly the words of the types of commands, rule sets and trading rules."""
    values = vocabulary(AnyCommand).values
    assert {path: set(words) for path, words in EVERY + OF_POINTS + OF_SHARES} == {
        path: set(words) for path, words in values.items() if path != "type"
    }
    assert set(values["type"]) == {kind.__struct_config__.tag for kind in get_args(AnyCommand)}


@pytest.mark.parametrize(("path", "words"), EVERY, ids=[path for path, _ in EVERY])
@pytest.mark.parametrize("python", [False, True], ids=["JSON", "Python"])
def test_a_wrong_word_is_refused_with_the_nearest_one(path: str, words: tuple[str, ...], python: bool) -> None:
    """Every word with one letter added is refused; the refusal names the field and the word, and lists all words."""
    for word in words:
        fields = command_with(path, f"{word}x".upper() if word == words[0] else f"{word}x")
        if python:
            fields.pop("type")
            refused = handled(type(BASE.get(path, contest()))(**fields))
        else:
            with pytest.raises(Refused) as caught:
                read(json.encode(fields))
            refused = caught.value
        assert (refused.code, refused.field.partition("[")[0]) == ("malformed", path)
        assert f"; the nearest is {word}; choose from " in refused.detail
        assert set(refused.detail.partition("choose from ")[2].split(", ")) == set(words)


def test_a_wrong_word_that_resembles_none_is_refused_with_all() -> None:
    """If no word is similar, or the value is not a text, the refusal suggests no word and lists all of them."""
    for wrong in ("zzz", 5, None):
        refused = handled(OpenContest(at=day(1), contest="c", rules={"name": "x", "sampling": wrong}))
        assert "nearest" not in refused.detail
        assert refused.detail.endswith("; choose from day, spot, time")


@pytest.mark.parametrize(
    ("line", "field", "near"),
    [
        ('{"type": "open_contst", "at": "x"}', "type", "open_contest"),
        ('{"type": "close_question", "at": "x", "questn": "q"}', "line", "question"),
        ('{"type": "exclude_participant", "at": "x", "laevel": "q"}', "line", "level"),
        ('{"type": "open_contest", "at": "x", "contest": "c", "rules": {"kernl": "ln"}}', "rules", "kernel"),
        ('{"type": "open_contest", "at": "x", "rules": {"trading": {"leg": 1}}}', "rules.trading", "legs"),
        ('{"type": "open_question", "at": "x", "range": {"lowest": 1}}', "range", "lower"),
        ('{"type": "record_decision", "at": "x", "bets": [{"market": "q"}]}', "bets[0]", "market_id"),
        ('{"type": "quote", "at": "x", "quotes": [{"price": 1}]}', "quotes[0]", "prices"),
        ('{"type": "submit_forecast", "at": "x", "attestation": {"notes": 1}}', "attestation", "note"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(line: str, field: str, near: str) -> None:
    """A type of command or a field that does not exist is refused with the most similar name."""
    with pytest.raises(Refused) as refused:
        read(line)
    assert (refused.value.code, refused.value.field) == ("malformed", field)
    assert f"; the nearest is {near}; choose from " in refused.value.detail


def test_a_field_with_the_name_of_another_gets_no_hint_of_its_words() -> None:
    """The period of a decision is a number, the period of a rule set a word."""
    wrong: Any = 1.0
    refused = handled(RecordDecision(at=day(1), contest="c", participant="p", period=wrong))
    assert (refused.field, refused.detail) == ("period", "Expected `int`, got `float`")


# --- a rule set as a dict


WHOLE: dict[str, Any] = {"name": "own", "kernel": "brier", "period": "covered", "total": "mean"}


def test_rules_in_a_dict_are_those_in_an_object() -> None:
    """Both give the same event, and a retry in either form is a duplicate."""
    given: list[Any] = [WHOLE, RuleSet(**WHOLE), dict(reversed(WHOLE.items())) | {"take": "none"}]
    read_it = read(json.encode({"type": "open_contest", "at": day(1), "contest": "c", "rules": WHOLE}))
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        outcomes = [ledger.handle(OpenContest(at=day(1), contest="c", rules=rules), "same") for rules in given]
        outcomes.append(ledger.handle(read_it, "same"))
        [event] = [recorded.event for page in ledger.read() for recorded in page]
    assert [outcome.duplicate for outcome in outcomes] == [False, True, True, True]
    assert getattr(event, "rules", None) == RuleSet(**WHOLE)


def test_trading_rules_in_a_dict_are_those_in_an_object() -> None:
    """A dict of trading rules within a dict of rules gives the same event as the objects."""
    rules = {"name": "t", "trading": {"legs": "all_or_nothing", "attempts": 3}}
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        ledger.handle(OpenContest(at=day(1), contest="c", rules=rules), "c")
        [event] = [recorded.event for page in ledger.read() for recorded in page]
    assert getattr(event, "rules", None) == RuleSet(name="t", trading=Trading(legs="all_or_nothing", attempts=3))


def nested(depth: int) -> dict[str, Any]:
    """Return dicts nested in each other."""
    rules: dict[str, Any] = {}
    for _ in range(depth):
        rules = {"trading": rules}
    return rules


WRONG: dict[str, tuple[Any, str]] = {
    "no name": ({"kernel": "ln"}, "rules"),
    "nothing": ({}, "rules"),
    "an object": ({"name": object()}, "rules"),
    "an unknown field": ({"name": "x", "trading": {"fee": 1}}, "rules.trading"),
    "a number of text": ({"name": "x", "least_coverage": "30"}, "rules.least_coverage"),
    "trading in a dict in a RuleSet": (RuleSet(name="x", trading=nested(0)), "rules.trading"),  # type: ignore[arg-type]
    "very deep": (nested(100_000), "rules"),
    "text that is none": ({"name": "\ud800"}, "rules"),
    "a number": (5, "rules"),
    "bytes": (b"baseline", "rules"),
}


@pytest.mark.parametrize(("rules", "field"), WRONG.values(), ids=WRONG.keys())
def test_invalid_rules_are_refused_with_a_detail(rules: Any, field: str) -> None:
    """The refusal always has a detail, and a batch goes on with the next command."""
    bad = OpenContest(id="a", at=day(1), contest="c", rules=rules)
    with Ledger.open(":memory:", clock=lambda: NOW) as ledger:
        refused, receipt = ledger.handle_many([bad, opened(id="b")])
    assert isinstance(refused, Refused)
    assert (refused.code, refused.field) == ("malformed", field)
    assert refused.detail
    assert not isinstance(receipt, Refused)


def test_an_unknown_preset_is_refused_with_the_nearest_one() -> None:
    """The refusal names the preset with the most similar name."""
    refused = handled(contest(rules="peer-2024-3"))
    assert refused.code == "unknown_rules"
    assert refused.detail.startswith("no such preset; the nearest is peer-2024-03; the presets are relative-2021-11, ")
    for begun, near in (("peer", "peer-2024-03"), ("Brier", "brier-daily")):  # spot-peer is more similar to peer
        assert handled(contest(rules=begun)).detail.startswith(f"no such preset; the nearest is {near}; ")
