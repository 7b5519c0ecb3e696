"""The rule sets that a table is scored by: the presets, and three that need no times."""

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet

_LAST = {"sampling": "spot", "period": "covered", "total": "mean"}  # the last forecast before the close, by question
# Name -> the fields of the rule set, which a map has in full.
PLAIN: dict[str, dict[str, str | int]] = {
    "brier": {"name": "brier", "kernel": "brier", "least_probability_ppm": 0, **_LAST},
    "log": {"name": "log", "kernel": "ln", **_LAST},
    "pinball": {"name": "pinball", "quantile_kernel": "pinball", **_LAST},
}
SHORT = {"peer": "peer-2024-03", "relative": "relative-2022-04"}  # other names of presets


def rule_names() -> list[str]:
    """Return every name that `--rules` takes."""
    return [*PLAIN, *SHORT, *PRESETS]


def written_rules(name: str, kind: str) -> str | dict[str, str | int]:
    """Return the rules as a map has them: the name of a preset, or the fields of a rule set.

    name: "" for the usual rules of questions of this kind. Refuses: unknown_rules.
    """
    name = name or ("pinball" if kind == "numeric" else "brier")
    if name in PLAIN:
        return PLAIN[name]
    if (preset := SHORT.get(name, name)) not in PRESETS:
        detail = f"there are no such rules; there are: {listed(name, rule_names(), 8)}"
        raise Refused(
            "unknown_rules", "rules", name, detail, remedy="give one of these; `forecast-ledger rules` lists all"
        )
    return preset


def rule_set(written: str | dict[str, str | int]) -> RuleSet:
    """Return the rule set that a map's rules are.

    >>> rule_set(written_rules("", "binary")).kernel, rule_set(written_rules("peer", "binary")).scale
    ('brier', 'peer')
    """
    return PRESETS[written] if isinstance(written, str) else RuleSet(**written)  # type: ignore[arg-type]


def check_rules(rules: RuleSet, kind: str, *, has_times: bool, has_opens: bool, has_closes: bool) -> None:
    """Refuse rules that cannot score questions of a kind, or that need times which the table lacks.

    has_times: of forecasts. Refuses: unscorable_question, ambiguous.
    """
    kernel = rules.quantile_kernel if kind == "numeric" else rules.kernel
    if kernel == "none":
        usual = "pinball" if kind == "numeric" else "brier"
        detail = f"the rules {rules.name} have no score for {'quantiles' if kind == 'numeric' else 'probabilities'}"
        raise Refused("unscorable_question", "rules", rules.name, detail, remedy=f"give --rules {usual}, or others")
    if not has_times or rules.sampling == "spot":
        return
    if not has_closes:
        detail = (
            f"the rules {rules.name} weigh forecasts by the time that they stand, so they need the close of questions"
        )
        remedy = "name its column, --column closes=NAME, or give --closes INSTANT for all questions"
        raise Refused("ambiguous", "closes", None, detail, remedy=remedy)
    if rules.period != "covered" and not has_opens:
        detail = f"the rules {rules.name} count the time before a first forecast, so they need the opening of questions"
        remedy = "name its column, --column opens=NAME, or give --opens INSTANT for all questions"
        raise Refused("ambiguous", "opens", None, detail, remedy=remedy)
