"""Clusters: the questions that are drawn together, because what happens to one of them may happen to all."""

from typing import NamedTuple

import numpy as np

from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import ALONE, TAG, RuleSet
from forecast_ledger.projections.boards.contest_groups import ContestScores
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.facts.task_ids import task_values
from forecast_ledger.projections.scores.time_weighted import mean_kind


class Units(NamedTuple):
    """What is drawn: questions, or all questions of a cluster together.

    unit: of each question, shape (q,); -1 if it does not count. strata: the number of units of each stratum; the units
    of a stratum are adjacent.
    """

    unit: Int64Array
    strata: list[int]


def cluster_of(question: QuestionOpened, field: str) -> str:
    """Return the cluster of a question, by a field as in the rule set's `clusters`; "" if it stands alone.

    That of tag:NAME is the value of its first tag NAME=VALUE, or else of the task id NAME of a hub's question.

    >>> rain = QuestionOpened(
    ...     at=0, question="rain", kind="binary", opens_at=0, closes_at=1, tags=("place=Rome",)
    ... )
    >>> cluster_of(rain, "tag:place"), cluster_of(rain, "group")
    ('Rome', '')
    """
    if field == ALONE:
        return ""
    if not field.startswith(TAG):
        found: str = getattr(question, field)
        return found
    name = field.removeprefix(TAG)
    values = [value for key, equals, value in (tag.partition("=") for tag in question.tags) if equals and key == name]
    return (*values, (task_values(question.question) or {}).get(name, ""))[0]


def units_of(rules: RuleSet, scored: ContestScores) -> Units:
    """Return what is drawn: the questions that count, those of a cluster together; strata are the kinds of a unit."""
    questions = scored.questions
    members: dict[tuple[bool, str], list[int]] = {}
    for number in np.flatnonzero(questions.weight > 0).tolist():
        opened = questions.answers[number].question
        cluster = cluster_of(opened, rules.clusters[0])
        members.setdefault((bool(cluster), cluster or opened.question), []).append(number)
    strata: dict[tuple[str, ...], list[list[int]]] = {}
    for _, own in sorted(members.items()):
        strata.setdefault(tuple(sorted({mean_kind(questions.answers[each].question) for each in own})), []).append(own)
    unit = np.full(len(questions.answers), -1)
    for number, own in enumerate(own for _, parts in sorted(strata.items()) for own in parts):
        unit[own] = number
    return Units(unit, [len(parts) for _, parts in sorted(strata.items())])
