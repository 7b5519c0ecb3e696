"""What a rule set says, in words."""

from typing import Any

from msgspec import structs

from forecast_ledger.ledger.model.rules import PRESET_SOURCES, PRESETS, RuleSet
from forecast_ledger.ledger.model.trading_rules import Trading
from forecast_ledger.projections.boards.leaderboard import TAKES, TOTALS
from forecast_ledger.projections.references.community import AGGREGATIONS
from forecast_ledger.projections.scores.kernels import KERNELS
from forecast_ledger.projections.scores.sampling import SAMPLINGS
from forecast_ledger.projections.scores.score_policies import SCALES
from forecast_ledger.projections.scores.score_terms import REFERENCES

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
        source = PRESET_SOURCES[rules.name]
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
