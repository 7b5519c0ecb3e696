"""Studies of a part of the questions, or with other clusters, chosen after the fact: as if a contest had been so."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import ALONE, MOST_CLUSTERS, TAG, inconsistency
from forecast_ledger.projections.core.columns import Column, Ids, ids
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.facts.task_ids import HORIZON, LOCATION, task_values
from forecast_ledger.projections.tables.boards import narrowed
from forecast_ledger.projections.tables.catalogue import Projections

CLUSTERED = (  # these take the questions of a cluster together
    "intervals",
    "resolution",
    "pairwise",
    "calibration",
    "calibration_by_cluster",
    "calibration_time_weighted",
    "calibration_test",
    "corp_band",
)
STUDIES = (
    *CLUSTERED,
    "brier",
    "calibration_by_option",
    "corp",
    "corp_blocks",
    "murphy_curve",
    "interval_coverage",
    "pit_counts",
)
DETAILS: dict[str, Callable[[QuestionOpened], Iterable[str]]] = {  # of a question: the values that it has
    "group": lambda question: filter(None, [question.group]),
    "category": lambda question: filter(None, [question.category]),
    "tag": lambda question: question.tags,
    "location": lambda question: _task(question, LOCATION),
    "horizon": lambda question: _task(question, HORIZON),
}
_CLUSTERS = {  # name -> field in a rule set's clusters
    **{name: name for name in (ALONE, "group", "category")},
    **{name: f"{TAG}{name}" for name in (LOCATION, HORIZON)},
}
_TAG = f"{TAG}NAME"
Clusters = str | Sequence[str] | Mapping[str, str]  # of questions: by a field, by two, or a cluster for each
_WITH_CLUSTERS = {"calibration": "calibration_by_cluster"}  # table -> the one that allows for clusters, if another
_ADDED = (
    Column("by", "id", "the detail of questions that the table is divided by"),
    Column("name", "id", "its value; only questions with it count"),
)


def _task(question: QuestionOpened, name: str) -> Iterable[str]:
    values = task_values(question.question) or {}
    return [values[name]] if name in values else []


def study(projections: Projections, table: str, contest: str | None, by: str | None, cluster: Clusters | None) -> Table:
    """Return a table as `Replay.study` does."""
    if table not in STUDIES:
        raise ValueError(f"no study named {table!r}; there are {listed(table, STUDIES)}")
    if by is not None and by not in DETAILS:
        raise ValueError(f"no detail named {by!r} to divide by; there are {listed(by, DETAILS)}")
    if cluster is not None and table not in CLUSTERED:
        raise ValueError(f"{table} has no clusters; these tables have: {', '.join(CLUSTERED)}")
    facts = projections.facts
    if contest is not None and contest not in facts.contests:
        raise ValueError(f"no contest named {contest!r}; there are {listed(contest, facts.contests)}")
    contests = {name: each for name, each in facts.contests.items() if contest in {None, name}}
    if by is not None:
        contests = dict(_parts(facts, contests, by))
    facts = replace(facts, contests=contests)
    projections = Projections(facts if cluster is None else _clustered(facts, cluster), projections.chunk)
    found = projections.table(table if cluster is None else _WITH_CLUSTERS.get(table, table))
    return found if by is None else _divided(found)


def _parts(facts: Facts, contests: Iterable[str], by: str) -> Iterable[tuple[str, Contest]]:
    """Yield the parts of contests: ids have no control characters, so that the order of lines is that of the parts."""
    for name in contests:
        for value, contest in narrowed(facts, name, DETAILS[by]):
            yield "\n".join((name, by, value)), contest


def _divided(table: Table) -> Table:
    """Return a table of parts of contests with the columns contest, by and name in place of the first."""
    parts = table.ids("contest")
    texts = [[label.split("\n")[place] for label in parts.labels] for place in range(1 + len(_ADDED))]
    values = [Ids(each.codes[parts.codes], each.labels) for each in map(ids, texts)]
    columns = (table.columns[0], *_ADDED, *table.columns[1:])
    return replace(table, columns=columns, values=(*values, *table.values[1:]))


def _clustered(facts: Facts, cluster: Clusters) -> Facts:
    """Return facts in which the rules of contests have other clusters, or questions other groups."""
    if isinstance(cluster, Mapping):
        if unknown := sorted(cluster.keys() - facts.question_codes.codes.keys()):
            choices = listed(unknown[0], facts.question_codes.codes)
            raise ValueError(f"no question named {unknown[0]!r}; there are {choices}")
        facts, fields = _regrouped(facts, cluster), ["group"]
    else:
        fields = [*map(_field, [cluster] if isinstance(cluster, str) else cluster)]
    return replace(facts, contests={name: _with_clusters(each, fields) for name, each in facts.contests.items()})


def _field(cluster: str) -> str:
    """Return the field of a rule set's clusters."""
    if cluster in _CLUSTERS or (cluster.startswith(TAG) and cluster != TAG):
        return _CLUSTERS.get(cluster, cluster)
    choices = listed(cluster, [*_CLUSTERS, _TAG])
    raise ValueError(f"no clusters named {cluster!r}; there are {choices}, two of these, or a dict by question")


def _with_clusters(contest: Contest, fields: Sequence[str]) -> Contest:
    """Return a contest by whose rules clusters are others. Raises ValueError: its rules then contradict themselves."""
    rules = structs.replace(contest.opened.rules, clusters=(*fields,))
    if not 1 <= len(fields) <= MOST_CLUSTERS:
        raise ValueError(f"clusters are by one field or two, not by {len(fields)}")
    if wrong := inconsistency(rules):
        raise ValueError(wrong)
    return replace(contest, opened=structs.replace(contest.opened, rules=rules))


def _regrouped(facts: Facts, cluster: Mapping[str, str]) -> Facts:
    """Return facts in which the group of a question is its cluster."""

    def regrouped(question: QuestionOpened) -> QuestionOpened:
        return structs.replace(question, group=cluster.get(question.question, ""))

    former = {code: [(at, regrouped(each)) for at, each in rows] for code, rows in facts.former.items()}
    return replace(facts, questions=[*map(regrouped, facts.questions)], former=former)
