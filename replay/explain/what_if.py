"""What the tables would be if something else were recorded next, or if a contest had other rules."""

from dataclasses import replace

import msgspec
from msgspec import structs

from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.deciding.contests import check_rule_set
from forecast_ledger.ledger.model.commands import malformed_refusal
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.ledger.model.scorability import why_unscorable
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.replay.reading import lookup


def rule_set(text: str) -> RuleSet:
    """A preset by its name, or a whole rule set as a JSON object.

    Refuses, first that applies: malformed, unknown_rules, rules_not_consistent.

    >>> rule_set("baseline").kernel, rule_set('{"name": "mine", "kernel": "ln"}').kernel
    ('ln', 'ln')
    """
    rules = PRESETS.get(text)
    if text.lstrip().startswith("{"):
        try:
            rules = msgspec.json.decode(text, type=RuleSet)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise malformed_refusal(error, "rules") from None
    return check_rule_set(rules, text)


def under(projections: Projections, contest: str, rules: RuleSet) -> Projections:
    """The projections over the same log, as if a contest had been opened with these rules; a sealed one, too.

    Refuses, first that applies: unknown_contest, rules_not_consistent (other trading rules: what was traded was
    decided by them, and would have been other), unscorable_question.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from forecast_ledger import PRESETS, append, open, replay, under_rules
    >>> with TemporaryDirectory() as folder, open(f"{folder}/season.db") as ledger:
    ...     with Path("data/metaculus-2022/commands.jsonl").open("rb") as file:
    ...         counts = append(ledger, file)
    ...     projections = replay(ledger).projections
    >>> other = under_rules(projections, "plain", PRESETS["peer-2024-03"])
    >>> for each in (projections, other):
    ...     print({row["participant"]: row["prize"] for row in each.table("prizes").only("contest", "plain").rows()})
    {'A': '108.00', 'B': '779.30', 'C': '44.80', 'bot': '67.90'}
    {'A': '0.00', 'B': '1000.00', 'C': '0.00', 'bot': '0.00'}
    """
    facts = projections.facts
    held = lookup.contest(facts, contest)
    if held.opened.rules.trading != rules.trading:
        said = "other trading rules: trades were decided by the contest's own; give those in `trading`, or none"
        raise Refused("rules_not_consistent", "rules", rules.name, said)
    _check_scorable(facts, held, rules)
    opened = structs.replace(held.opened, rules=rules)
    return Projections(replace(facts, contests=facts.contests | {contest: replace(held, opened=opened)}))


def _check_scorable(facts: Facts, contest: Contest, rules: RuleSet) -> None:
    for code in contest.entries:
        question = facts.questions[code]
        if wrong := why_unscorable(question.range, rules, len(question.outcomes)):
            raise Refused("unscorable_question", "question", question.question, wrong.replace("its", "the", 1))
