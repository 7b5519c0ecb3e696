"""The presets, and the fields of a rule set with their values, as rows."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from forecast_ledger.ledger.model.rules import PRESET_SOURCES, PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.replay.reference.rule_fields import RULES

PRESET_COLUMNS = ["preset", "source", "differs"]
FIELD_COLUMNS = ["field", "value", "default", "meaning"]


def presets() -> Iterator[dict[str, Any]]:
    """Yield each preset: its name, its source, and, as JSON, the fields that differ from their defaults."""
    for name, rules in PRESETS.items():
        differs = _json(own_fields(rules))
        yield dict(zip(PRESET_COLUMNS, (name, PRESET_SOURCES[name], differs), strict=True))


def own_fields(rules: RuleSet) -> dict[str, object]:
    """Return the fields of a rule set that differ from their defaults, without its name."""
    own = _differing(rules, RuleSet(name=rules.name))
    return own | ({} if rules.trading is None else {"trading": _differing(rules.trading, Trading())})


def fields_of(rules: RuleSet) -> Iterator[dict[str, Any]]:
    """Yield each field of a rule set: its value, its default, and its meaning; those of trading rules come last."""
    whole, default = _plain(rules), _plain(RuleSet(name=""))
    del whole["trading"], default["name"]
    yield from _rows("", whole, default)
    if rules.trading is not None:
        yield from _rows("trading.", _plain(rules.trading), _plain(Trading()))


def _rows(prefix: str, whole: Mapping[str, Any], default: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for field, value in whole.items():
        usual = _text(default[field]) if field in default else None
        yield dict(zip(FIELD_COLUMNS, (f"{prefix}{field}", _text(value), usual, RULES[field]), strict=True))


def _differing(rules: RuleSet | Trading, default: RuleSet | Trading) -> dict[str, object]:
    plain = _plain(default)
    return {field: value for field, value in _plain(rules).items() if value != plain[field]}


def _plain(rules: RuleSet | Trading) -> dict[str, Any]:
    """Return every field with its value, also where that is the default."""
    return {field: msgspec.to_builtins(getattr(rules, field)) for field in rules.__struct_fields__}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
