"""What a refresh computes again: scores and boards question by question, trading tables account by account.

The scores on a question depend on that question and on the members of the contest. If the members or most of the
questions change, all questions of the contest are scored again.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from forecast_ledger.ledger.model.events import AccountEvent
from forecast_ledger.projections.boards import brier
from forecast_ledger.projections.boards.brier import BrierSums, Counts
from forecast_ledger.projections.boards.contest_groups import SummedSamples
from forecast_ledger.projections.boards.totals import consensus_label, reference_labels
from forecast_ledger.projections.core.arrays import int64_array
from forecast_ledger.projections.core.columns import plain_values
from forecast_ledger.projections.facts.accounts import AccountKey, Books
from forecast_ledger.projections.facts.columns import Contest, Facts, named_tuples
from forecast_ledger.projections.scores.scored_questions import non_members
from forecast_ledger.projections.tables.analysis import Analysis, CachedResults
from forecast_ledger.projections.tables.calibration import overall_values
from forecast_ledger.projections.tables.catalogue import Projections, TableUpdate, table_updates
from forecast_ledger.projections.trading.arena import TradingRecord
from forecast_ledger.projections.trading.mark_prices import Marks

# --- The cached scores of a contest: if the scores of one question change, the others need not be scored again.


def basis(facts: Facts, contest: Contest) -> tuple[object, ...]:
    """Return what the scores on all questions of a contest depend on; if it changes, all are scored again."""
    return non_members(contest), reference_labels(facts)


class ScoreCache:
    """The cached totals of a contest's scores.

    An owner's number is the participant code + 1, and 0 for the consensus: a new participant changes no number.
    """

    def __init__(self, analysis: Analysis, name: str) -> None:
        """Cache the totals of one contest of an analysis that has all of its questions."""
        contest = analysis.facts.contests[name]
        self.name = name
        self.basis = basis(analysis.facts, contest)
        self.entries = dict(contest.entries)
        self.tally = analysis.tally(name)
        self._sums = [_sums(analysis, name)]  # to be added up
        self.counts = brier.counts_by_owner(self._sums[0])

    def update(self, before: Analysis, after: Analysis) -> set[int]:
        """Replace the scores of some questions; return the numbers of the owners who forecast on them."""
        self.tally = self.tally.plus(before.tally(self.name), -1).plus(after.tally(self.name))
        earlier, now = (_sums(analysis, self.name) for analysis in (before, after))
        self._sums += [earlier.negated(), now]
        concerned = {*earlier.owners.owner.tolist(), *now.owners.owner.tolist()}
        counts = brier.counts_by_owner(self._of(concerned))
        self.counts |= {owner: counts.get(owner, Counts()) for owner in concerned}
        size, *others = (len(sums.groups.key) for sums in self._sums)
        if sum(others) > size:
            self._sums = [brier.added(self._sums)]
        return concerned

    def _of(self, owners: AbstractSet[int]) -> BrierSums:
        """Return the sums of some owners."""
        chosen = int64_array(sorted(owners))
        return brier.added([sums.of(chosen) for sums in self._sums])

    def sums(self, owners: int, chosen: AbstractSet[int]) -> SummedSamples:
        """Return the sums of some owners' samples. owners: the number of all owners."""
        return SummedSamples([self.name], owners, (np.arange(owners) - 1) % owners, self._of(chosen))


def _sums(analysis: Analysis, contest: str) -> BrierSums:
    """Return the sums of a contest's sample with the owners' numbers."""
    sample, owners, _ = analysis.brier_sample(contest)
    return brier.sums_of(sample._replace(owner=(sample.owner + 1) % owners))


_MOST = 2  # if more than 1 in _MOST questions of a contest change, all are scored again

FactsAbout = Callable[[dict[str, Contest], Iterable[int]], Facts]  # the facts about these contests and questions only


@dataclass(slots=True)
class TouchedScores:
    """The scores that can have changed.

    questions: codes of questions, by contest. boards: contests whose leaderboard can have changed. renamed: whether a
    reference forecaster has another name.
    """

    questions: dict[str, set[int]] = field(default_factory=dict)
    boards: set[str] = field(default_factory=set)
    renamed: bool = False

    @property
    def contests(self) -> set[str]:
        """All contests with a change."""
        return self.boards | self.questions.keys()


class IncrementalScores:
    """The cached scores of contests, as of the log position at which the tables were last current."""

    def __init__(self, facts_about: FactsAbout, tables: Collection[str]) -> None:
        """tables: those that `updates` yields."""
        self._facts_about, self._tables = facts_about, tables
        self._caches: dict[str, ScoreCache] = {}
        self._counts: dict[str, dict[int, Counts]] = {}  # of Brier scores, by contest and number of owner
        self._ahead: set[str] = set()  # contests whose cache has changes that the tables do not have yet

    def forget(self) -> None:
        """Note that the tables are current."""
        self._ahead.clear()

    def _drop(self, contests: Iterable[str]) -> None:
        for name in contests:
            self._caches.pop(name, None)
            self._counts.pop(name, None)

    def updates(self, facts: Facts, due: TouchedScores, before: int) -> Iterator[TableUpdate]:
        """Yield the parts of tables that can have changed. before: the log position at which tables were current."""
        if not due.contests:
            return
        self._drop(self._ahead)
        self._ahead |= due.contests
        whole = {name for name in due.contests if self._rescores_all(facts.contests[name], facts, due)}
        stored = self._stored_counts(facts, due, before)
        yield from self._rescore_contests(facts, sorted(whole))
        yield from self._rescore_questions(facts, sorted(due.contests - whole), due, before)
        yield from self._overall_updates(facts, stored)

    def _stored_counts(self, facts: Facts, due: TouchedScores, before: int) -> dict[str, dict[int, Counts]] | None:
        """Return the Brier counts of the changed contests that the tables have, or None if some are not cached."""
        new = {name for name in due.contests if facts.contests[name].position > before}
        if due.renamed or due.contests - new - self._counts.keys():
            return None
        return {name: {} if name in new else dict(self._counts[name]) for name in due.contests}

    def _rescores_all(self, contest: Contest, facts: Facts, due: TouchedScores) -> bool:
        name = contest.opened.contest
        changed = due.questions.get(name, ())
        cache = self._caches.get(name)
        return cache is None or cache.basis != basis(facts, contest) or _MOST * len(changed) > len(contest.entries)

    def _rescore_contests(self, facts: Facts, contests: list[str]) -> Iterator[TableUpdate]:
        if contests:
            rescored = {name: facts.contests[name] for name in contests}
            projections = Projections(self._facts_about(rescored, _questions(rescored)))
            projections.score_all()
            projections.sample_all()
            for name in contests:
                cache = self._caches[name] = ScoreCache(projections, name)
                self._counts[name] = cache.counts
            for division in ("scores", "brier_scores", "boards"):
                yield from table_updates(projections, division, [(name,) for name in contests], self._tables)

    def _rescore_questions(
        self, facts: Facts, contests: list[str], due: TouchedScores, before: int
    ) -> Iterator[TableUpdate]:
        """Yield the parts of contests of which few questions can have changed."""
        changed = {name: due.questions[name] for name in contests if due.questions.get(name)}
        boards = due.boards & {*contests}
        if changed:
            earlier, now = self._before_and_now(facts, changed, before)
            groups = (*earlier.scored_groups, *now.scored_groups)
            scored_contests = sorted({name for group in groups for name in group.contests_with_questions()})
            boards |= {*scored_contests}
            keys = [(name, facts.questions[code].question) for name in scored_contests for code in changed[name]]
            yield from table_updates(now, "scores", keys, self._tables)
            yield from self._brier_updates(facts, scored_contests, earlier, now)
            for name in changed:
                self._caches[name].entries |= now.facts.contests[name].entries
        if boards:
            narrowed = self._facts_about({name: facts.contests[name] for name in boards}, ())
            cached = CachedResults({name: self._caches[name].tally for name in boards})
            yield from table_updates(
                Projections(narrowed, cached=cached), "boards", [(name,) for name in boards], self._tables
            )

    def _brier_updates(
        self, facts: Facts, contests: list[str], before: Projections, now: Projections
    ) -> Iterator[TableUpdate]:
        """Update the caches with changed questions; yield the Brier parts of the participants concerned."""
        for projections in (before, now):
            projections.score_all()
            projections.sample_all()
        samples, keys, names = list[SummedSamples](), list[tuple[str, str]](), _owner_labels(facts)
        for name in contests:
            cache = self._caches[name]
            concerned = cache.update(before, now)
            samples.append(cache.sums(_owners(facts), concerned))
            keys += [(name, names[owner - 1]) for owner in concerned]
        narrowed = replace(now.facts, contests={name: now.facts.contests[name] for name in contests})
        projections = Projections(narrowed, cached=CachedResults(samples=samples))
        yield from table_updates(projections, "brier_scores", keys, self._tables)

    def _before_and_now(self, facts: Facts, due: dict[str, set[int]], before: int) -> tuple[Projections, Projections]:
        """Return the contests with only these questions, as of the log position `before` and as of now."""
        earlier, now = dict[str, Contest](), dict[str, Contest]()
        for name, questions in due.items():
            contest, entries = facts.contests[name], self._caches[name].entries
            now[name] = replace(contest, entries={code: contest.entries[code] for code in questions})
            sealed = contest.sealed if contest.sealed and contest.sealed.position <= before else None
            old = {code: entries[code] for code in questions if code in entries}
            earlier[name] = replace(contest, entries=old, sealed=sealed)
        due_facts = self._facts_about(now, set[int]().union(*due.values()))
        return Projections(replace(due_facts, contests=earlier, as_of=before)), Projections(due_facts)

    def _overall_updates(self, facts: Facts, stored: dict[str, dict[int, Counts]] | None) -> Iterator[TableUpdate]:
        """Yield Brier scores over all contests: all, or only the changed ones if the earlier counts are given."""
        if missing := {name: facts.contests[name] for name in facts.contests.keys() - self._counts.keys()}:
            projections = Projections(self._facts_about(missing, _questions(missing)))
            self._counts |= {name: {} for name in missing}
            owners = _owners(facts)
            for contest, owner, *columns in projections.brier_counts:
                rows = zip(plain_values(contest), plain_values(owner), named_tuples(Counts, *columns), strict=True)
                for name, code, counts in rows:
                    self._counts[name][(code + 1) % owners] = counts
        now, count = self._counts, _owners(facts)
        changed = {owner for counts in now.values() for owner in counts}
        if stored is not None:
            changed = {owner for name, old in stored.items() for owner in _differing(old, now[name])}
        scored = (
            ((owner - 1) % count, each.squares, each.n)
            for counts in now.values()
            for owner in counts.keys() & changed
            if (each := counts[owner]).n
        )
        cached = CachedResults(columns={"brier_overall": overall_values(facts, scored)})
        keys = [()] if stored is None else [(participant,) for participant in _names(facts, changed)]
        yield from table_updates(Projections(facts, cached=cached), "brier_overall", keys, self._tables)


def _questions(contests: dict[str, Contest]) -> set[int]:
    """Return the codes of the questions of some contests."""
    return {code for contest in contests.values() for code in contest.entries}


def _differing(old: dict[int, Counts], new: dict[int, Counts]) -> set[int]:
    """Return the owners whose counts differ."""
    return {owner for owner in old.keys() | new.keys() if old.get(owner) != new.get(owner)}


def _names(facts: Facts, owners: Iterable[int]) -> list[str]:
    """Return the labels of owners by number; the consensus has the last label."""
    names = _owner_labels(facts)
    return [names[owner - 1] for owner in owners]


def _owner_labels(facts: Facts) -> list[str]:
    """Return the labels of those who can have a Brier score, by code: the participants, then the consensus."""
    return [*facts.participant_codes.labels, consensus_label(facts)]


def _owners(facts: Facts) -> int:
    """Return the number of possible owners of a Brier score: the participants and the consensus."""
    return len(facts.participant_codes.codes) + 1


@dataclass(slots=True)
class TouchedAccounts:
    """The trading facts that new events can have changed.

    accounts: accounts with new events. marked: accounts whose value can have changed. quoted: questions with new
    quotes. ruled: questions closed, rescheduled, resolved, annulled or revoked. contests: those whose leaderboard can
    have changed. excluding: contests with new exclusions, which can be complete at another instant. renamed: accounts
    that have, or had, another participant.
    """

    accounts: set[AccountKey] = field(default_factory=set)
    marked: set[AccountKey] = field(default_factory=set)
    quoted: set[int] = field(default_factory=set)
    ruled: set[int] = field(default_factory=set)
    contests: set[str] = field(default_factory=set)
    excluding: set[str] = field(default_factory=set)
    renamed: set[AccountKey] = field(default_factory=set)


def _key(event: AccountEvent) -> AccountKey:
    return event.contest, event.participant


_ENTRIES: dict[str, Callable[[Any], AccountKey]] = {  # what the books list, and the account of each
    "movements": lambda movement: movement.key,
    "trades": lambda trade: _key(trade.event),
    "attempts": lambda attempt: _key(attempt.event),
    "refusals": lambda refusal: _key(refusal[1]),
    "failures": lambda failure: _key(failure[1]),
}


class BooksByAccount:
    """The entries of the books by account: their indexes, because the last attempt at a decision can still change."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self.keys: dict[str, set[AccountKey]] = {}  # by contest
        self._accounts = 0
        self._read = dict.fromkeys(_ENTRIES, 0)  # how many entries were read
        self._indexes = {name: defaultdict[AccountKey, list[int]](list) for name in _ENTRIES}

    def read(self) -> None:
        """Read the new entries."""
        for key in islice(self._books.accounts, self._accounts, None):
            self.keys.setdefault(key[0], set()).add(key)
        self._accounts = len(self._books.accounts)
        for name, key_of in _ENTRIES.items():
            entries, indexes, read = getattr(self._books, name), self._indexes[name], self._read[name]
            for index, entry in enumerate(entries[read:], read):
                indexes[key_of(entry)].append(index)
            self._read[name] = len(entries)

    def books_of(self, keys: Iterable[AccountKey]) -> Books:
        """Return the books of some accounts only, account after account."""
        books = self._books
        in_order = sorted(key for key in keys if key in books.accounts)
        entries: dict[str, Any] = {}
        for name, indexes in self._indexes.items():
            every = getattr(books, name)
            entries[name] = [every[index] for key in in_order for index in indexes.get(key, ())]
        return replace(books, accounts={key: books.accounts[key] for key in in_order}, **entries)


class IncrementalAccounts:
    """The results of all trading accounts, as of the current facts."""

    def __init__(self, facts: Facts, tables: Collection[str]) -> None:
        """tables: those that `updates` and `overall` yield."""
        self._facts, self._tables = facts, tables
        self._by_account = BooksByAccount(facts.books)
        self.marks = Marks(facts)
        self._records: dict[str, dict[AccountKey, TradingRecord]] = {}
        self._next_ticks: dict[AccountKey, int] = {}  # the tick at which the drawdown can change

    def _holders(self, question: int) -> set[AccountKey]:
        return {key[:2] for key in self._facts.books.holders.get(question, ())}

    def updates(self, due: TouchedAccounts, *, ticked: bool) -> Iterator[TableUpdate]:
        """Yield the parts of tables that can have changed. ticked: whether the latest instant in the log changed."""
        if due.renamed:
            self._forget_former()
        self._by_account.read()
        self._add_affected(due, ticked=ticked)
        contests = sorted(self._traded(due.contests))
        for division, keys in (("holdings", due.marked), ("account_entries", due.accounts)):
            yield from table_updates(self._projections_of_accounts(keys), division, keys, self._tables)
        if contests:
            self._update_records(due.marked | self._unrecorded(contests))
            keys_of_contests, projections = [(name,) for name in contests], self._projections_of_contests(contests)
            yield from table_updates(projections, "trading_boards", keys_of_contests, self._tables)

    def _forget_former(self) -> None:
        """Forget what is remembered of accounts under other ids."""
        accounts = self._facts.books.accounts
        self._by_account = BooksByAccount(self._facts.books)
        for contest, records in self._records.items():
            self._records[contest] = {key: record for key, record in records.items() if key in accounts}

    def _add_affected(self, due: TouchedAccounts, *, ticked: bool) -> None:
        """Add the holders of changed questions, and the accounts that wait for a resolution or a tick."""
        books = self._facts.books
        for question in due.ruled:
            due.accounts |= self._holders(question)
        for question in due.quoted:
            due.marked |= self._holders(question)
        if ticked:
            for question, holders in books.holders.items():
                if self.marks.closed_at(question) <= books.clock and question not in self._facts.settled:
                    due.marked |= {key[:2] for key in holders if books.accounts[key[:2]].holdings[key[2]].is_open()}
            due.marked |= {key for key, instant in self._next_ticks.items() if instant <= books.clock}
            due.contests |= {
                name
                for name in self._traded(self._facts.contests)
                if name not in self._records and books.progress(name).completed_at is None
            }
        for contest in due.excluding:
            due.marked |= self._by_account.keys.get(contest, set())
        due.marked |= due.accounts
        due.contests |= {contest for contest, _ in due.marked}

    def overall(self) -> Iterator[TableUpdate]:
        """Yield the results of families and releases over all contests."""
        contests = sorted(self._traded(self._facts.contests))
        self._update_records(self._unrecorded(contests))
        yield from table_updates(self._projections_of_contests(contests), "trading_overall", [()], self._tables)

    def _traded(self, contests: Iterable[str]) -> Iterator[str]:
        return (name for name in contests if self._facts.contests[name].opened.rules.trading is not None)

    def _projections_of_accounts(self, keys: Iterable[AccountKey]) -> Projections:
        books = self._by_account.books_of(keys)
        contests = {key[0]: self._facts.contests[key[0]] for key in books.accounts}
        projections = Projections(replace(self._facts, contests=contests, books=books))
        projections.marks = self.marks
        return projections

    def _unrecorded(self, contests: Iterable[str]) -> set[AccountKey]:
        """Return the accounts without a record."""
        return {
            key
            for name in contests
            for key in self._by_account.keys.get(name, set()) - self._records.get(name, {}).keys()
        }

    def _update_records(self, keys: set[AccountKey]) -> None:
        if keys:
            for contest, records in self._projections_of_accounts(keys).records.items():
                by_account = self._records.setdefault(contest, {})
                for record in records:
                    by_account[record.key] = record
                    self._note_next_tick(record.key)

    def _note_next_tick(self, key: AccountKey) -> None:
        """Note the next tick: the drawdown can change at it because of changes since the last one."""
        trading, opened = self._facts.trading(key[0]), self._facts.contests[key[0]].opened
        self._next_ticks.pop(key, None)
        if self._facts.books.progress(key[0]).completed_at is None:
            step, start = trading.snapshot_seconds * 10**6, opened.starts_at or 0
            self._next_ticks[key] = start + ((self._facts.books.clock - start) // step + 1) * step

    def _projections_of_contests(self, contests: list[str]) -> Projections:
        """Return projections of these contests with the records of all their accounts."""
        projections = Projections(
            replace(self._facts, contests={name: self._facts.contests[name] for name in contests})
        )
        projections.records = {
            name: [record for _, record in sorted(self._records.get(name, {}).items())] for name in contests
        }
        return projections
