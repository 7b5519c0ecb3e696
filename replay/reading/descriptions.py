"""What a rule set and an event say, in words."""

from typing import Any

import msgspec
from msgspec import structs

from forecast_ledger.ledger.core.values import MONEY, PROBABILITY, format_fixed, format_instant
from forecast_ledger.ledger.model.events import Event, ForecastMade
from forecast_ledger.ledger.model.log import Recorded
from forecast_ledger.ledger.model.rules import PRESETS, SOURCES, RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.boards.leaderboard import TAKES, TOTALS
from forecast_ledger.projections.references.community import AGGREGATIONS
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.sampling import SAMPLINGS
from forecast_ledger.projections.scores.score_policies import SCALES
from forecast_ledger.projections.scores.score_terms import REFERENCES

_LONGEST = 160  # characters of what an event said
_EDGES = {"both": "", "opening": ", but a last one that is cut short", "none": " that is not cut short"}
_PERIODS = {
    "scheduled": "over the scheduled period",
    "actual": "over the period until the answer",
    "covered": "over what its forecasts covered",
}


def rule(rules: RuleSet, position: int, words: str, kernel: str = "none") -> dict[str, Any]:
    """A rule set: its name, what is said of it in words, the fields that are not the default, and its source.

    position: of the event that carries it, in the log. kernel: by which a score was worked out; if the rule set is not
    a preset, the source of the kernel is named.
    """
    source = "the contest's own"
    if PRESETS.get(rules.name) == rules:
        source = SOURCES[rules.name]
    elif kernel != "none":
        source += f"; its kernel: {KERNELS[kernel].source}"
    return {"name": rules.name, "words": words, "fields": _own(rules), "log_position": position, "source": source}


def score_words(rules: RuleSet, kernel: str) -> str:
    """How a score comes about.

    >>> score_words(PRESETS["baseline"], "ln").split(", ")[1]
    'less that of the uniform distribution'
    """
    average = f"{'recency-weighted ' * (rules.consensus_weights == 'recency')}{AGGREGATIONS[rules.consensus].words}"
    others = " of the other members" if rules.consensus_of == "others" else ""
    clauses = [
        KERNELS[kernel].words,
        REFERENCES[rules.reference].words.format(average=average, others=others),
        SAMPLINGS[rules.sampling].words + _EDGES[rules.day_edges],
        _PERIODS[rules.period],
        SCALES[rules.scale].words,
    ]
    return ", ".join(clause for clause in clauses if clause)


def board_words(rules: RuleSet) -> str:
    """How a board comes about.

    >>> board_words(PRESETS["relative-2022-04"])
    'total: the sum of weight x score; take: coverage x e^total; ranked by take'
    """
    return f"total: {TOTALS[rules.total].words}; take: {TAKES[rules.take].words}; ranked by {rules.rank_by}"


def occurrence(recorded: Recorded) -> dict[str, Any]:
    """An event: where, when by either clock, what kind, and what it said."""
    return {
        "log_position": recorded.position,
        "recorded_at": format_instant(recorded.recorded_at),
        "at": format_instant(recorded.event.at),
        "type": kind_of(recorded.event),
        "said": said(recorded.event),
    }


def kind_of(event: Event) -> str:
    """The name of an event's kind, without its version."""
    return str(event.__struct_config__.tag).partition(".")[0]


def said(event: Event) -> str:
    """The fields of an event that say something, as decimals where they have a unit of their own; cut to one line."""
    if isinstance(event, ForecastMade):
        numbers = event.probabilities or event.cdf or event.quantiles
        shown = (
            [format_fixed(each, PROBABILITY) for each in numbers] if event.probabilities else list(map(str, numbers))
        )
        name = next(
            name for name in ("probabilities", "cdf", "quantiles") if getattr(event, name) or name == "quantiles"
        )
        texts = [f"question={event.question}", f"participant={event.participant}", f"{name}={'/'.join(shown)}"]
    else:
        defaults = {field.name: field.default for field in structs.fields(event)}
        texts = [f"{name}={text}" for name, value in _plain(event).items() if (text := _text(name, value, defaults))]
    text = " ".join(texts)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _plain(event: Event) -> dict[str, Any]:
    return {field.name: getattr(event, field.name) for field in structs.fields(event) if field.name != "at"}


_MONEY = {"amount", "cash", "shares", "cost", "proceeds", "pool", "payable_unit", "weight"}
_RATIO = {"price", "payout", "confidence"}


def _text(name: str, value: Any, defaults: dict[str, Any]) -> str:
    if value is None or (value == defaults[name] and not isinstance(value, int)):
        return ""
    if name in _MONEY:
        return format_fixed(value, MONEY)
    if name in _RATIO:
        return format_fixed(value, PROBABILITY)
    if name.endswith("_at") and isinstance(value, int):
        return format_instant(value)
    if isinstance(value, RuleSet):
        return value.name
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _own(rules: RuleSet) -> dict[str, Any]:
    """The fields that are not the default, but for the name."""
    usual = RuleSet(name=rules.name)
    found = {name: value for name, value in structs.asdict(rules).items() if value != getattr(usual, name)}
    trading = found.pop("trading", None)
    if isinstance(trading, Trading):
        found["trading"] = {
            name: value for name, value in structs.asdict(trading).items() if value != getattr(Trading(), name)
        }
    return found
