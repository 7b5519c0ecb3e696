"""Scores, boards and Brier scores of contests kept up: of whatever a question's scores are added up in, the rest stays.

The scores of a contest's questions follow from each question alone, given who counts as a member: where that changes,
or most questions, all are scored again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from projections.brier import Aggregate
from projections.columns import Contest, Facts
from projections.kept import Kept, basis, listed
from projections.parts import Parts, parts
from projections.projection import Known, Projections
from projections.sums import labels

_MOST = 2  # one in so many of a contest's questions are scored by themselves, if there are no more

Only = Callable[[dict[str, Contest], Iterable[int]], Facts]  # contests, questions: the facts about them


@dataclass(slots=True)
class Due:
    """What of contests' scores can have changed: those of questions, by code; and the boards."""

    questions: dict[str, set[int]] = field(default_factory=dict)
    boards: set[str] = field(default_factory=set)

    @property
    def contests(self) -> set[str]:
        """All that are named."""
        return self.boards | self.questions.keys()


class Boards:
    """What is known of contests' scores, as of the log position at which the tables were last right."""

    def __init__(self, only: Only) -> None:
        self._only = only
        self._kept: dict[str, Kept] = {}
        self._aggregates: dict[str, dict[int, Aggregate]] = {}  # by contest and number of owner
        self._told: set[str] = set()  # contests that are ahead of the tables

    def forget(self) -> None:
        """The tables are right now."""
        self._told.clear()

    def _drop(self, contests: Iterable[str]) -> None:
        for name in contests:
            self._kept.pop(name, None)
            self._aggregates.pop(name, None)

    def parts(self, found: Facts, due: Due, before: int) -> Iterator[Parts]:
        """The parts of tables that can have changed. before: the log position at which the tables were right."""
        if not due.contests:
            return
        self._drop(self._told)
        self._told |= due.contests
        whole = {name for name in sorted(due.contests) if self._all_due(found.contests[name], found, due)}
        was = {name: dict(self._aggregates[name]) for name in due.contests - whole}
        yield from self._of_all_questions(found, sorted(whole))
        for name in sorted(due.contests - whole):
            yield from self._of_some(found, name, due, before)
        yield from self._overall(found, None if whole else was)

    def _all_due(self, contest: Contest, found: Facts, due: Due) -> bool:
        name = contest.opened.contest
        some = due.questions.get(name, ())
        kept = self._kept.get(name)
        return kept is None or kept.basis != basis(found, contest) or _MOST * len(some) > len(contest.entries)

    def _of_all_questions(self, found: Facts, contests: list[str]) -> Iterator[Parts]:
        if contests:
            own = {name: found.contests[name] for name in contests}
            every = Projections(self._only(own, {code for contest in own.values() for code in contest.entries}))
            for name in contests:
                kept = self._kept[name] = Kept(every, name)
                self._aggregates[name] = kept.aggregates
                known = kept.known(_owners(found), kept.aggregates)
                every.known.aggregates |= known.aggregates
                every.known.calibration |= known.calibration
            for division in ("scores", "judgements", "boards"):
                yield from parts(every, division, [(name,) for name in contests])

    def _of_some(self, found: Facts, name: str, due: Due, before: int) -> Iterator[Parts]:
        contest, kept = found.contests[name], self._kept[name]
        board = name in due.boards
        if questions := due.questions.get(name):
            then, now = self._then_and_now(contest, questions, before)
            if any(len(of.scored(name).questions.code) for of in (then, now)):
                board = True
                yield from parts(now, "scores", [(name, found.questions[code].question) for code in questions])
                concerned = kept.change(then, now)
                judged = Projections(now.facts, known=kept.known(_owners(found), concerned))
                yield from parts(judged, "judgements", [(name, who) for who in _names(found, concerned)])
            kept.entries |= now.facts.contests[name].entries
        if board:
            own = self._only({name: contest}, ())
            yield from parts(Projections(own, known=Known({name: kept.tally})), "boards", [(name,)])

    def _then_and_now(self, contest: Contest, questions: set[int], before: int) -> tuple[Projections, Projections]:
        """The contest as if it had only these questions, as of the log position before and now."""
        name = contest.opened.contest
        entries = {code: contest.entries[code] for code in questions}
        now = self._only({name: replace(contest, entries=entries)}, questions)
        held = self._kept[name].entries
        sealed = contest.sealed if contest.sealed and contest.sealed.position <= before else None
        old = replace(contest, entries={code: held[code] for code in questions if code in held}, sealed=sealed)
        return Projections(replace(now, contests={name: old}, as_of=before)), Projections(now)

    def _overall(self, found: Facts, was: dict[str, dict[int, Aggregate]] | None) -> Iterator[Parts]:
        """Brier scores over all contests: all, or, given some contests' aggregates as they were, what has changed."""
        if unknown := {name: found.contests[name] for name in found.contests.keys() - self._aggregates.keys()}:
            others = Projections(self._only(unknown, {code for each in unknown.values() for code in each.entries}))
            for name in unknown:
                owners = _owners(found)
                self._aggregates[name] = {(code + 1) % owners: each for code, each in others.aggregates(name).items()}
        own, now = self._only(found.contests, ()), self._aggregates
        some = {owner for of in now.values() for owner in of}
        if was is not None:
            some = {owner for name, of in was.items() for owner, each in now[name].items() if each != of.get(owner)}
        known = Known(aggregates={name: listed(of, _owners(found), some) for name, of in now.items()})
        keys = [()] if was is None else [(who,) for who in _names(found, some)]
        yield from parts(Projections(own, known=known), "judgements_overall", keys)


def _names(found: Facts, owners: Iterable[int]) -> list[str]:
    """What owners are called, by their numbers; the consensus is the last of the labels."""
    names = labels(found)
    return [names[owner - 1] for owner in owners]


def _owners(found: Facts) -> int:
    """How many can have a Brier score: the participants and the consensus."""
    return len(found.participant_codes.codes) + 1
