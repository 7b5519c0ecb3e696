"""A contest as if it had other rules, and its board under several rule sets side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.arguments import checked
from forecast_ledger.ledger.core.errors import Refused
from forecast_ledger.ledger.core.values import format_fixed
from forecast_ledger.ledger.deciding.contests import check_rule_set
from forecast_ledger.ledger.model.answers import why_unscorable
from forecast_ledger.ledger.model.commands import read_rule_set
from forecast_ledger.ledger.model.rules import PRESETS, RuleSet
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.columns import POINTS
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.tables.catalogue import CATALOGUE, Projections
from forecast_ledger.replay.reading.log import find_contest

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
    >>> from forecast_ledger import PRESETS, append, open_ledger, replay, under_rules
    >>> with TemporaryDirectory() as folder, open_ledger(f"{folder}/season.db") as ledger:
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
    current = find_contest(facts, contest)
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
    shows_prizes = table == "prizes" or (
        before.take != "none" and any(column.name in _PRIZE for column in shown.columns)
    )
    if rules.take == "none" and shows_prizes:
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


OWN = "own"  # the contest's own rules


class RuleComparison(NamedTuple):
    """columns: of the rows. rows: a participant each, in the order of the first board. correlations: see COMPARED."""

    columns: list[str]
    rows: list[dict[str, Any]]
    correlations: list[dict[str, Any]]


COMPARED = ["one", "other", "ranked", "kendall_tau_b", "spearman_rho"]


def compare_rules(
    before: Projections, after: Projections, contest: str, rule_sets: Mapping[str, RuleSet]
) -> RuleComparison:
    """Return the board of a contest under its own rules, in `before`, and under each of these rule sets, in `after`.

    A rank is empty for a participant without one; a correlation is that of the participants whom both boards rank.
    Raises what `under_rules` raises.
    """
    boards = {OWN: _board(before, contest)}
    boards |= {label: _board(under_rules(after, contest, rules), contest) for label, rules in rule_sets.items()}
    participants = list(dict.fromkeys(who for board in boards.values() for who in board))
    columns = ["participant", *(f"{part}:{label}" for label in boards for part in ("rank", "score"))]
    rows = []
    for who in participants:
        cells = [board.get(who, (None, None)) for board in boards.values()]
        rows.append(dict(zip(columns, [who, *(value for pair in cells for value in pair)], strict=True)))
    pairs = combinations(boards, 2)
    return RuleComparison(columns, rows, [_compared(one, other, rows) for one, other in pairs])


def _board(projections: Projections, contest: str) -> dict[str, tuple[int | None, str]]:
    rows = projections.rows_of("leaderboard", contest)
    return {row["participant"]: (row["rank"], row["score"]) for row in rows}


def _compared(one: str, other: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    ranks = [(row[f"rank:{one}"], row[f"rank:{other}"]) for row in rows]
    ranked = [pair for pair in ranks if None not in pair]
    ours, theirs = [pair[0] for pair in ranked], [pair[1] for pair in ranked]
    values = (one, other, len(ranked), kendall_tau_b(ours, theirs), spearman_rho(ours, theirs))
    return dict(zip(COMPARED, values, strict=True))


def kendall_tau_b(one: Sequence[int], other: Sequence[int]) -> str | None:
    """Kendall's tau-b of two lists of ranks, ties included: (C - D) / sqrt((P - T) (P - U)).

    C, D: pairs in the same and in opposite order. P: all pairs. T, U: pairs tied in one and in the other list.
    Units:   from -1 to 1, exact, rounded once to 9 decimals; None if a list has no two different ranks.
    Source:  Kendall (1945), Biometrika 33(3):239-251, doi:10.1093/biomet/33.3.239.

    >>> kendall_tau_b([1, 2, 3], [1, 3, 2]), kendall_tau_b([1, 1], [1, 2])
    ('0.333333333', None)
    """
    ours, theirs = int64_array([*one]), int64_array([*other])
    concordance = untied = others_untied = 0
    for index in range(len(ours) - 1):
        here, there = np.sign(ours[index + 1 :] - ours[index]), np.sign(theirs[index + 1 :] - theirs[index])
        concordance += int((here * there).sum())
        untied += int(np.count_nonzero(here))
        others_untied += int(np.count_nonzero(there))
    return _over_root(concordance, untied * others_untied)


def spearman_rho(one: Sequence[int], other: Sequence[int]) -> str | None:
    """Spearman's rho of two lists of ranks: the correlation of their mid-ranks, so that ties are included.

    Units:   from -1 to 1, exact, rounded once to 9 decimals; None if a list has no two different ranks.
    Source:  Spearman (1904), American Journal of Psychology 15(1):72-101, doi:10.2307/1412159.

    >>> spearman_rho([1, 2, 3], [1, 3, 2]), spearman_rho([1, 1, 3], [1, 1, 3])
    ('0.500000000', '1.000000000')
    """
    ours, theirs = _centred(one), _centred(other)
    product = sum(here * there for here, there in zip(ours, theirs, strict=True))
    return _over_root(product, sum(here**2 for here in ours) * sum(there**2 for there in theirs))


def _centred(ranks: Sequence[int]) -> list[int]:
    """Return twice the mid-rank of each, less twice their mean: whole numbers."""
    ordered = np.sort(int64_array([*ranks]))
    below, upto = (np.searchsorted(ordered, int64_array([*ranks]), side) for side in ("left", "right"))
    return [*map(int, (below + upto - len(ranks)).tolist())]


def _over_root(number: int, squared: int) -> str | None:
    """Return number / sqrt(squared) as decimal text, rounded half-even once; None if the divisor is 0."""
    if squared == 0:
        return None
    scaled = (2 * POINTS * number) ** 2
    doubled = isqrt(scaled // squared)  # twice the quotient, rounded down
    units, odd = divmod(doubled, 2)
    exact = doubled**2 * squared == scaled
    units += odd and (not exact or units % 2)
    return format_fixed(-units if number < 0 else units, POINTS, least=9)
