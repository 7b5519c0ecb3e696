"""Clusters: the questions that are drawn together, because what happens to one of them may happen to all."""

import numpy as np

from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import ALONE, TAG, RuleSet
from forecast_ledger.ledger.model.task_ids import task_values
from forecast_ledger.projections.core.arrays import Int64Array, distinct, int64_array
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.scores.question_groups import mean_kind
from forecast_ledger.projections.scores.time_weighted import ContestScores
from forecast_ledger.projections.studies.resampling import Units


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
        text: str = getattr(question, field)
        return text
    name = field.removeprefix(TAG)
    values = [value for key, equals, value in (tag.partition("=") for tag in question.tags) if equals and key == name]
    return (*values, (task_values(question.question) or {}).get(name, ""))[0]


def clusters_of(facts: Facts, rules: RuleSet, question: Int64Array) -> Int64Array:
    """Return the number of the cluster of each question code, by the first field of the rules, from 0 on; shape (n,).

    Questions that stand alone come first, by id, and then clusters by name.
    """
    codes, code_index = distinct(question)
    names = [_name(facts.questions[code], rules.clusters[0]) for code in codes.tolist()]
    number = {name: index for index, name in enumerate(sorted({*names}))}
    return int64_array([number[name] for name in names])[code_index]


def _name(question: QuestionOpened, field: str) -> tuple[bool, str]:
    """Return the key of a question's cluster: questions that stand alone come first."""
    cluster = cluster_of(question, field)
    return bool(cluster), cluster or question.question


def units_of(rules: RuleSet, scored: ContestScores) -> Units:
    """Return what is drawn: the questions that count, those of a cluster together, by the fields of the rules."""
    counted = np.flatnonzero(scored.questions.weight > 0)
    clusters, strata = list[Int64Array](), list[list[int]]()
    for field in rules.clusters:
        cluster, counts = _clusters(scored, counted.tolist(), field)
        clusters.append(cluster + sum(map(sum, strata)))
        strata.append(counts)
    key = clusters[0]
    for cluster in clusters[1:]:
        key = key * sum(map(sum, strata)) + cluster
    units, which = distinct(key)
    member = np.empty_like(units)
    member[which] = np.arange(len(which))
    unit = np.full(len(scored.questions.answers), -1)
    unit[counted] = which
    return Units(
        unit, np.stack(clusters)[:, member], [each for counts in strata for each in counts], [*map(sum, strata)]
    )


def _clusters(scored: ContestScores, counted: list[int], field: str) -> tuple[Int64Array, list[int]]:
    """Return the cluster of each question that counts, and the number of clusters of each stratum: their kinds."""
    answers = scored.questions.answers
    members: dict[tuple[bool, str], list[int]] = {}
    for index, number in enumerate(counted):
        members.setdefault(_name(answers[number].question, field), []).append(index)
    strata: dict[tuple[str, ...], list[list[int]]] = {}
    for _, indices in sorted(members.items()):
        kinds = tuple(sorted({mean_kind(answers[counted[each]].question) for each in indices}))
        strata.setdefault(kinds, []).append(indices)
    cluster = np.zeros(len(counted), np.int64)
    for number, indices in enumerate(indices for _, parts in sorted(strata.items()) for indices in parts):
        cluster[indices] = number
    return cluster, [len(parts) for _, parts in sorted(strata.items())]
