"""The projections of a log as if a contest had other rules."""

from dataclasses import replace

from msgspec import structs

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.contests import check_rule_set
from forecast_ledger.ledger.model.commands import read_rule_set
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.model.scorability import why_unscorable
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.tables.projection import CATALOGUE, Projections
from forecast_ledger.replay.reading import lookup

_PRIZE = {"take", "prize"}  # columns that are empty without a take


def parse_rule_set(text: str) -> RuleSet:
    """Read a rule set: the name of a preset, or a whole rule set as a JSON object.

    Refuses, first that applies: malformed, bad_number, amount_not_text, not_finite, out_of_range,
    unknown_rules, rules_not_consistent.

    >>> parse_rule_set("baseline").kernel, parse_rule_set('{"name": "mine", "kernel": "ln"}').kernel
    ('ln', 'ln')
    """
    rules = PRESETS.get(text)
    if text.lstrip().startswith("{"):
        rules = read_rule_set(text, "rules")
    return check_rule_set(rules, text)


@checked()
def under_rules(projections: Projections, contest: str, rules: RuleSet) -> Projections:
    """Return the projections of the same log, as if a contest, sealed or not, had been opened with these rules.

    Refuses, first that applies: unknown_contest, rules_not_consistent (other trading rules: the trades in the log
    were decided by the contest's own), unscorable_question.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import PRESETS, append, open, replay, under_rules
    >>> with TemporaryDirectory() as folder, open(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     projections = replay(ledger).projections
    >>> other = under_rules(projections, "plain", PRESETS["peer-2024-03"])
    >>> for rebuilt in (projections, other):
    ...     print({row["participant"]: row["prize"] for row in rebuilt.table("prizes").only("contest", "plain").rows()})
    {'A': '108.00', 'B': '779.30', 'C': '44.80', 'bot': '67.90'}
    {'A': '0.00', 'B': '1000.00', 'C': '0.00', 'bot': '0.00'}
    """
    facts = projections.facts
    current = lookup.find_contest(facts, contest)
    if current.opened.rules.trading != rules.trading:
        wrong = "its trading rules differ from those that trades were decided by; give the contest's own in `trading`"
        raise Refused("rules_not_consistent", "rules", rules.name, wrong)
    _check_scorable(facts, current, rules)
    opened = structs.replace(current.opened, rules=rules)
    return Projections(replace(facts, contests=facts.contests | {contest: replace(current, opened=opened)}))


def what_is_missing(before: RuleSet, rules: RuleSet, contest: str, shown: Table) -> str:
    """Say what a table does not have of a contest under other rules, "" if it lacks nothing.

    before: the contest's own rules. shown: the rows of the contest under the other rules.
    """
    table = shown.name
    asked = table == "prizes" or (before.take != "none" and any(column.name in _PRIZE for column in shown.columns))
    if rules.take == "none" and asked:
        with_take = ", ".join(name for name, preset in PRESETS.items() if preset.take != "none")
        return f"the rules {rules.name} have no take, so nobody has a prize; presets with a take: {with_take}"
    if len(shown):
        return ""
    return f"the table {table} has no rows of {contest} under the rules {rules.name}; it has {CATALOGUE[table].meaning}"


def _check_scorable(facts: Facts, contest: Contest, rules: RuleSet) -> None:
    for code in contest.entries:
        question = facts.questions[code]
        if wrong := why_unscorable(question.range, rules, len(question.outcomes)):
            raise Refused("unscorable_question", "question", question.question, wrong.replace("its", "the", 1))
