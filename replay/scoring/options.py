"""What a caller settles of what a table leaves open, and the rule sets by which it can be scored."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet

Wide = Literal["forecasters", "questions", "options", "quantiles"]
WIDES: tuple[str, ...] = get_args(Wide)
Meaning = Literal["yes", "no", "none", "void"]  # of the text of an answer; none: not known yet
MEANINGS: tuple[str, ...] = get_args(Meaning)
KINDS = ("binary", "multiple_choice", "numeric")  # of questions, in the order in which they are recorded


class Options(NamedTuple):
    """What the caller says about the tables; everything else is recognised, or refused if it is ambiguous.

    rules: a name in `rule_names`, "" for the usual one. contest: its id, "" for the name of the table. columns: role ->
    the names of its columns, none for a role that no column has. percent: probabilities are in percent. number: how
    1234.5 is written. day_first: of dates such as 03/04/2026; None if not said. instant: a format of strptime. zone: a
    time zone, or an offset from UTC. wide: what the columns of a wide table are. forecaster: who made all forecasts.
    opens, closes: when all questions open and close, as RFC 3339 or a date. made_at: when all forecasts were made, if
    no column says it. answers: text -> what it means. normalize: how far a sum of probabilities may be from 1, by which
    they are then divided; "" if it may not. independent: each option is a yes-or-no question of its own. kinds: of the
    questions that are scored, if a table has several; none for all of them. delimiter, encoding, sheet: as in a map.
    answers_sheet: that of the answers, if it is another.
    """

    rules: str = ""
    contest: str = ""
    columns: Mapping[str, tuple[str, ...]] = {}
    percent: bool = False
    number: str = ""
    day_first: bool | None = None
    instant: str = ""
    zone: str = ""
    wide: str = ""
    forecaster: str = ""
    opens: str = ""
    closes: str = ""
    made_at: str = ""
    answers: Mapping[str, str] = {}
    normalize: str = ""
    independent: bool = False
    kinds: tuple[str, ...] = ()
    delimiter: str = ""
    encoding: str = ""
    sheet: str = ""
    answers_sheet: str = ""


class Ambiguous(Refused):
    """A table can be read in two ways. trial: options that choose one, so that the reading finds what else is open."""

    def __init__(self, field: str, value: str | None, detail: str, *, remedy: str, trial: Options) -> None:
        super().__init__("ambiguous", field, value, detail, remedy=remedy)
        self.trial = trial

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it as a refusal, which is all that others need."""
        return Refused, *super().__reduce__()[1:]


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
