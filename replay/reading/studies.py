"""Studies chosen after the fact: of some questions, by other clusters, or without people, questions or last hours."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.core.hints import listed
from forecast_ledger.ledger.core.values import format_count, read_duration
from forecast_ledger.ledger.model.events import QuestionOpened
from forecast_ledger.ledger.model.rules import ALONE, MOST_CLUSTERS, TAG, RuleSet, inconsistency
from forecast_ledger.ledger.model.task_ids import HORIZON, LOCATION, task_values
from forecast_ledger.projections.core.arrays import BoolArray, int64_array
from forecast_ledger.projections.core.columns import Column, Ids, ids
from forecast_ledger.projections.core.table import Table
from forecast_ledger.projections.facts.columns import Contest, Facts, present
from forecast_ledger.projections.facts.from_log import status
from forecast_ledger.projections.studies.clusters import units_of
from forecast_ledger.projections.studies.dependence import alike_by_day
from forecast_ledger.projections.studies.resampling import Units
from forecast_ledger.projections.tables.boards import narrowed
from forecast_ledger.projections.tables.catalogue import Projections
from forecast_ledger.replay.reading.log import find_contest

CLUSTERED = (  # these take the questions of a cluster together
    "intervals",
    "marginal_ranks",
    "resolution",
    "pairwise",
    "baseline_differences",
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
    studied = projections.table(table if cluster is None else _WITH_CLUSTERS.get(table, table))
    return studied if by is None else _divided(studied)


def _parts(facts: Facts, contests: Iterable[str], by: str) -> Iterable[tuple[str, Contest]]:
    """Yield the parts of contests: ids have no control characters, so that the order of lines is that of the parts."""
    for name in contests:
        for value, contest in narrowed(facts, name, DETAILS[by]):
            yield "\n".join((name, by, value)), contest


def _divided(table: Table) -> Table:
    """Return a table of parts of contests with the columns contest, by and name instead of the first."""
    parts = table.ids("contest")
    texts = [[label.split("\n")[part_index] for label in parts.labels] for part_index in range(1 + len(_ADDED))]
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


def describe_samples(rules: RuleSet, units: Units) -> str:
    """Return what is drawn in samples of questions, and what that assumes."""
    questions = int((units.unit >= 0).sum())
    if questions == 1:
        return "1 question, by itself"
    if units.size == questions and len(units.counts) == 1:
        named = "" if rules.clusters == (ALONE,) else f"; no two have the same {rules.clusters[0].removeprefix(TAG)}"
        return f"{questions:,} questions, each by itself, as if none had anything in common{named}"
    names = (field.removeprefix(TAG) for field in rules.clusters)
    by = [f"{format_count(count, 'cluster')} by {name}" for name, count in zip(names, units.counts, strict=True)]
    return f"{questions:,} questions in {' and '.join(by)}, as if no two clusters had anything in common"


def warn_of_dependence(projections: Projections, name: str) -> str:
    """Warn if the questions of a contest look dependent and none are drawn together; "" if not."""
    contest = projections.facts.contests[name]
    alike = alike_by_day(contest, projections.scored(name))
    if alike is None:
        return ""
    return (
        f"questions that count up to the same day have scores alike: over {alike.days:,} days, the means of "
        f"days vary {float(alike.ratio):,.1f} times as much as if questions had nothing in common. Intervals and ranks "
        "look surer than they are; name what is drawn together in the field `clusters` of the rules, or in "
        "`Replay.study(cluster=…)`"
    )


def sample_notes(projections: Projections, name: str) -> list[str]:
    """Say what the samples of a contest draw, and warn if questions look dependent; [] if no question counts."""
    scored, rules = projections.scored(name), projections.facts.contests[name].opened.rules
    if not (scored.questions.weight > 0).any():
        return []
    drawn = f"samples draw {describe_samples(rules, units_of(rules, scored))}"
    return [drawn, *filter(None, [warn_of_dependence(projections, name)])]


BOTS = "bots"  # of all contests, unless a participant has this id


def without(projections: Projections, names: Collection[str], before_close: str | None = None) -> Projections:
    """Return the projections of the same log as `Replay.without` says."""
    facts = projections.facts
    people, questions = _left_out(facts, names)
    contests = {name: _narrowed(contest, people, questions) for name, contest in facts.contests.items()}
    keep = ~_made_by(facts, people)
    if before_close is not None:
        keep &= _made_before(facts, read_duration(before_close))
    return Projections(replace(facts, contests=contests, held=facts.forecasts.rows(np.flatnonzero(keep))))


def _left_out(facts: Facts, names: Collection[str]) -> tuple[set[str], set[int]]:
    """Return the participants and the codes of the questions that names stand for."""
    people, questions = set[str](), set[int]()
    for name in names:
        detail, equals, value = name.partition("=")
        if name in _people(facts):
            people.add(_name_now(facts, name))
        elif name == BOTS:
            people |= _bots(facts)
        elif equals and detail in DETAILS:
            questions |= _with_detail(facts, detail, value)
        else:
            known = {*_people(facts), BOTS}
            details = ", ".join(f"{each}=…" for each in DETAILS)
            raise ValueError(
                f"no participant named {name!r}; there are {listed(name, known)}; for questions: {details}"
            )
    return people, questions


def _people(facts: Facts) -> set[str]:
    enrolled = {who for contest in facts.contests.values() for who in contest.enrolments}
    return {*facts.participant_codes.codes, *enrolled}


def _name_now(facts: Facts, name: str) -> str:
    """Return the id of now of a participant who may have had another."""
    if name not in facts.participant_codes.codes:
        return name
    codes = facts.participant_codes
    [code] = present(facts.renames, int64_array([codes.codes[name]]), facts.as_of)
    return codes.labels[int(code)]


def _bots(facts: Facts) -> set[str]:
    enrolled = (each for contest in facts.contests.values() for each in contest.enrolments.items())
    if bots := {who for who, enrolment in enrolled if enrolment.bot}:
        return bots
    raise ValueError("nobody is enrolled as a bot: name the participants")


def _with_detail(facts: Facts, detail: str, value: str) -> set[int]:
    values = [{*DETAILS[detail](question)} for question in facts.questions]
    if codes := {code for code, details in enumerate(values) if value in details}:
        return codes
    raise ValueError(f"no question has the {detail} {value!r}; there are {listed(value, set[str]().union(*values))}")


def _narrowed(contest: Contest, people: set[str], questions: set[int]) -> Contest:
    return replace(
        contest,
        entries={code: entry for code, entry in contest.entries.items() if code not in questions},
        enrolments={who: each for who, each in contest.enrolments.items() if who not in people},
    )


def _made_by(facts: Facts, people: set[str]) -> BoolArray:
    codes = [facts.participant_codes.codes[who] for who in people if who in facts.participant_codes.codes]
    mask: BoolArray = np.isin(facts.forecasts.named(facts.as_of).participant, codes)
    return mask


def _made_before(facts: Facts, duration: int) -> BoolArray:
    """Return which forecasts and withdrawals were made so long before the close, by the clock of the rules."""
    forecasts, rules = facts.forecasts, [(contest.opened.rules, contest.entries) for contest in facts.contests.values()]
    recorded = int64_array([code for rule_set, entries in rules if rule_set.clock == "recorded" for code in entries])
    at = np.where(np.isin(forecasts.question, recorded), forecasts.recorded_at, forecasts.at)
    mask: BoolArray = at <= status(facts).closed_at[forecasts.question] - duration
    return mask


def leave_one_out(projections: Projections, contest: str, table: str) -> Iterator[tuple[str, Table]]:
    """Yield each participant of a contest's board, in its order, and a table as it would be without them."""
    facts = projections.facts
    alone = Projections(replace(facts, contests={contest: find_contest(facts, contest)}))
    for row in alone.board(contest):
        if row.participant in _people(facts):
            yield row.participant, without(alone, [row.participant]).table(table).only("contest", contest)
