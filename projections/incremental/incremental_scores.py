"""Incremental updates of scores, leaderboards and Brier scores: only changed questions are scored again.

The scores on a question depend on that question and on the members of the contest. If the members or most of the
questions change, all questions of the contest are scored again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from forecast_ledger.projections.boards.brier import Aggregate
from forecast_ledger.projections.boards.totals import score_labels
from forecast_ledger.projections.catalogue.analysis import Known
from forecast_ledger.projections.catalogue.projection import Projections
from forecast_ledger.projections.facts.columns import Contest, Facts
from forecast_ledger.projections.incremental.deltas import Parts, parts
from forecast_ledger.projections.incremental.score_cache import ScoreCache, basis, by_participant

_MOST = 2  # if more than 1 in _MOST questions of a contest change, all are scored again

Only = Callable[[dict[str, Contest], Iterable[int]], Facts]  # contests, questions: the facts about them only


@dataclass(slots=True)
class TouchedScores:
    """The scores that can have changed: of questions (by code), of leaderboards, or the name of the consensus."""

    questions: dict[str, set[int]] = field(default_factory=dict)
    boards: set[str] = field(default_factory=set)
    renamed: bool = False

    @property
    def contests(self) -> set[str]:
        """All contests with a change."""
        return self.boards | self.questions.keys()


class IncrementalScores:
    """The cached scores of contests, as of the log position at which the tables were last current."""

    def __init__(self, only: Only) -> None:
        self._only = only
        self._kept: dict[str, ScoreCache] = {}
        self._aggregates: dict[str, dict[int, Aggregate]] = {}  # by contest and number of owner
        self._told: set[str] = set()  # contests whose cache is ahead of the tables

    def forget(self) -> None:
        """Note that the tables are current."""
        self._told.clear()

    def _drop(self, contests: Iterable[str]) -> None:
        for name in contests:
            self._kept.pop(name, None)
            self._aggregates.pop(name, None)

    def parts(self, facts: Facts, due: TouchedScores, before: int) -> Iterator[Parts]:
        """Yield the parts of tables that can have changed. before: the log position at which tables were current."""
        if not due.contests:
            return
        self._drop(self._told)
        self._told |= due.contests
        whole = {name for name in sorted(due.contests) if self._all_due(facts.contests[name], facts, due)}
        was = self._before(facts, due, before)
        yield from self._of_all_questions(facts, sorted(whole))
        yield from self._of_some(facts, sorted(due.contests - whole), due, before)
        yield from self._overall(facts, was)

    def _before(self, facts: Facts, due: TouchedScores, before: int) -> dict[str, dict[int, Aggregate]] | None:
        """Return the aggregates of the changed contests as in the tables, or None if some are not cached."""
        new = {name for name in due.contests if facts.contests[name].position > before}
        if due.renamed or due.contests - new - self._aggregates.keys():
            return None
        return {name: {} if name in new else dict(self._aggregates[name]) for name in due.contests}

    def _all_due(self, contest: Contest, facts: Facts, due: TouchedScores) -> bool:
        name = contest.opened.contest
        some = due.questions.get(name, ())
        kept = self._kept.get(name)
        return kept is None or kept.basis != basis(facts, contest) or _MOST * len(some) > len(contest.entries)

    def _of_all_questions(self, facts: Facts, contests: list[str]) -> Iterator[Parts]:
        if contests:
            own = {name: facts.contests[name] for name in contests}
            every = Projections(self._only(own, {code for contest in own.values() for code in contest.entries}))
            every.tally_all()
            every.judge_all()
            for name in contests:
                kept = self._kept[name] = ScoreCache(every, name)
                self._aggregates[name] = kept.aggregates
                every.known.add(kept.known(_owners(facts), kept.aggregates.keys()))
            for division in ("scores", "judgements", "boards"):
                yield from parts(every, division, [(name,) for name in contests])

    def _of_some(self, facts: Facts, contests: list[str], due: TouchedScores, before: int) -> Iterator[Parts]:
        """Yield the parts of contests of which few questions can have changed."""
        some = {name: due.questions[name] for name in contests if due.questions.get(name)}
        boards = due.boards & {*contests}
        if some:
            then, now = self._then_and_now(facts, some, before)
            counted = sorted({name for of in (then, now) for each in of.together for name in each.counted()})
            boards |= {*counted}
            keys = [(name, facts.questions[code].question) for name in counted for code in some[name]]
            yield from parts(now, "scores", keys)
            yield from self._judgements(facts, counted, then, now)
            for name in some:
                self._kept[name].entries |= now.facts.contests[name].entries
        if boards:
            own = self._only({name: facts.contests[name] for name in boards}, ())
            known = Known({name: self._kept[name].tally for name in boards})
            yield from parts(Projections(own, known=known), "boards", [(name,) for name in boards])

    def _judgements(self, facts: Facts, contests: list[str], then: Projections, now: Projections) -> Iterator[Parts]:
        """Update the caches with changed questions; yield the Brier parts of the participants concerned."""
        for of in (then, now):
            of.tally_all()
            of.judge_all()
        known, keys, names = Known(), list[tuple[str, str]](), score_labels(facts)
        for name in contests:
            kept = self._kept[name]
            concerned = kept.change(then, now)
            known.add(kept.known(_owners(facts), concerned))
            keys += [(name, names[owner - 1]) for owner in concerned]
        own = replace(now.facts, contests={name: now.facts.contests[name] for name in contests})
        yield from parts(Projections(own, known=known), "judgements", keys)

    def _then_and_now(self, facts: Facts, due: dict[str, set[int]], before: int) -> tuple[Projections, Projections]:
        """Return the contests with only these questions, as of the log position before and now."""
        then, now = dict[str, Contest](), dict[str, Contest]()
        for name, questions in due.items():
            contest, held = facts.contests[name], self._kept[name].entries
            now[name] = replace(contest, entries={code: contest.entries[code] for code in questions})
            sealed = contest.sealed if contest.sealed and contest.sealed.position <= before else None
            old = {code: held[code] for code in questions if code in held}
            then[name] = replace(contest, entries=old, sealed=sealed)
        due_facts = self._only(now, set[int]().union(*due.values()))
        return Projections(replace(due_facts, contests=then, as_of=before)), Projections(due_facts)

    def _overall(self, facts: Facts, was: dict[str, dict[int, Aggregate]] | None) -> Iterator[Parts]:
        """Yield Brier scores over all contests: all, or only the changed ones if the earlier aggregates are given."""
        if unknown := {name: facts.contests[name] for name in facts.contests.keys() - self._aggregates.keys()}:
            others = Projections(self._only(unknown, {code for each in unknown.values() for code in each.entries}))
            others.aggregate_all()
            owners = _owners(facts)
            for name in unknown:
                self._aggregates[name] = {(code + 1) % owners: each for code, each in others.aggregates(name).items()}
        own, now = self._only(facts.contests, ()), self._aggregates
        some = {owner for of in now.values() for owner in of}
        if was is not None:
            some = {owner for name, of in was.items() for owner in _differing(of, now[name])}
        known = Known(aggregates={name: by_participant(of, _owners(facts), some) for name, of in now.items()})
        keys = [()] if was is None else [(who,) for who in _names(facts, some)]
        yield from parts(Projections(own, known=known), "judgements_overall", keys)


def _differing(one: dict[int, Aggregate], other: dict[int, Aggregate]) -> set[int]:
    """Return the owners whose aggregates differ."""
    return {owner for owner in one.keys() | other.keys() if one.get(owner) != other.get(owner)}


def _names(facts: Facts, owners: Iterable[int]) -> list[str]:
    """Return the labels of owners by number; the consensus has the last label."""
    names = score_labels(facts)
    return [names[owner - 1] for owner in owners]


def _owners(facts: Facts) -> int:
    """Return the number of possible owners of a Brier score: the participants and the consensus."""
    return len(facts.participant_codes.codes) + 1
