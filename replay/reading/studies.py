"""Studies of a part of the questions, or with other clusters, chosen after the fact: as if a contest had been so."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from msgspec import structs

from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.projections.core.columns import Column, Ids, ids
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.tables.boards import narrowed
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.reading.task_ids import HORIZON, LOCATION, task_values

CLUSTERED = ("intervals", "resolution", "pairwise")  # the draws of these take the questions of a cluster together
STUDIES = (
    *CLUSTERED,
    "brier",
    "calibration",
    "calibration_by_option",
    "calibration_time_weighted",
    "corp",
    "corp_blocks",
    "corp_band",
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
ALONE = "question"  # each question is a cluster
_CLUSTERS = {ALONE, *DETAILS} - {"tag"}  # a question has several tags
_ADDED = (
    Column("by", "id", "the detail of questions that the table is divided by"),
    Column("name", "id", "its value; only questions with it count"),
)


def _task(question: QuestionOpened, name: str) -> Iterable[str]:
    values = task_values(question.question) or {}
    return [values[name]] if name in values else []


def study(
    projections: Projections, table: str, contest: str | None, by: str | None, cluster: str | Mapping[str, str]
) -> Table:
    """Return a table as `Replay.study` does."""
    if table not in STUDIES:
        raise ValueError(f"no study named {table!r}; there are {listed(table, STUDIES)}")
    if by is not None and by not in DETAILS:
        raise ValueError(f"no detail named {by!r} to divide by; there are {listed(by, DETAILS)}")
    if cluster != "group" and table not in CLUSTERED:
        raise ValueError(f"{table} draws no clusters; these tables do: {', '.join(CLUSTERED)}")
    facts = projections.facts
    if contest is not None and contest not in facts.contests:
        raise ValueError(f"no contest named {contest!r}; there are {listed(contest, facts.contests)}")
    contests = {name: each for name, each in facts.contests.items() if contest in {None, name}}
    if by is not None:
        contests = dict(_parts(facts, contests, by))
    found = Projections(replace(_clustered(facts, cluster), contests=contests), projections.chunk).table(table)
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


def _clustered(facts: Facts, cluster: str | Mapping[str, str]) -> Facts:
    """Return facts in which the group of a question is its cluster; a question without one is its own."""
    if cluster == "group":
        return facts
    if not isinstance(cluster, str):
        if unknown := sorted(cluster.keys() - facts.question_codes.codes.keys()):
            raise ValueError(
                f"no question named {unknown[0]!r}; there are {listed(unknown[0], facts.question_codes.codes)}"
            )
    elif cluster not in {ALONE, *DETAILS} - {"tag"}:
        choices = {ALONE, *DETAILS} - {"tag"}
        raise ValueError(f"no clusters named {cluster!r}; there are {listed(cluster, choices)}, or a dict by question")

    def regrouped(question: QuestionOpened) -> QuestionOpened:
        return structs.replace(question, group=_cluster(question, cluster))

    former = {code: [(at, regrouped(each)) for at, each in rows] for code, rows in facts.former.items()}
    return replace(facts, questions=[*map(regrouped, facts.questions)], former=former)


def _cluster(question: QuestionOpened, cluster: str | Mapping[str, str]) -> str:
    if not isinstance(cluster, str):
        return cluster.get(question.question, "")
    return "" if cluster == ALONE else next(iter(DETAILS[cluster](question)), "")
