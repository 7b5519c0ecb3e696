"""The presets, and the fields of a rule set with their values, as rows."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from forecast_ledger.ledger.model.rules import PRESET_SOURCES, PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.ledger.model.written_rules import own_fields, written_fields
from forecast_ledger.replay.reference.rule_fields import RULES

PRESET_COLUMNS = ["preset", "source", "differs"]
FIELD_COLUMNS = ["field", "value", "default", "meaning"]


def presets() -> Iterator[dict[str, Any]]:
    """Yield each preset: its name, its source, and, as JSON, the fields that differ from their defaults."""
    for name, rules in PRESETS.items():
        differs = _json(own_fields(rules))
        yield dict(zip(PRESET_COLUMNS, (name, PRESET_SOURCES[name], differs), strict=True))


def fields_of(rules: RuleSet) -> Iterator[dict[str, Any]]:
    """Yield each field of a rule set: its value, its default, and its meaning; those of trading rules come last."""
    whole, default = written_fields(rules), written_fields(RuleSet(name=""))
    del whole["trading"], default["name"]
    yield from _rows("", whole, default)
    if rules.trading is not None:
        yield from _rows("trading.", written_fields(rules.trading), written_fields(Trading()))


def _rows(prefix: str, whole: Mapping[str, Any], default: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for field, value in whole.items():
        usual = _text(default[field]) if field in default else None
        yield dict(zip(FIELD_COLUMNS, (f"{prefix}{field}", _text(value), usual, RULES[field]), strict=True))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
