"""Incremental updates of trading tables: account by account, and the leaderboards of all accounts of a contest."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from forecast_ledger.projections.facts.accounts import AccountKey, Books, Movement, Trade
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.tables.catalogue import Projections, TableUpdate, table_updates
from forecast_ledger.projections.trading.arena import TradingRecord
from forecast_ledger.projections.trading.mark_prices import Marks


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


class BooksByAccount:
    """The entries of the books by account."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self.keys: dict[str, set[AccountKey]] = {}  # by contest
        self._accounts = 0
        self._movements: dict[AccountKey, list[Movement]] = defaultdict(list)
        self._trades: dict[AccountKey, list[Trade]] = defaultdict(list)
        self._attempts: dict[AccountKey, list[int]] = defaultdict(
            list
        )  # indexes in the books; the last attempt can still change
        self._refusals: dict[AccountKey, list[int]] = defaultdict(list)
        self._failures: dict[AccountKey, list[int]] = defaultdict(list)
        self._counts = (0, 0, 0, 0, 0)  # movements, trades, attempts, refusals and failures read

    def read(self) -> None:
        """Read the new entries."""
        books = self._books
        for key in islice(books.accounts, self._accounts, None):
            self.keys.setdefault(key[0], set()).add(key)
        self._accounts = len(books.accounts)
        movements, trades, attempts, refusals, failures = self._counts
        for movement in islice(books.movements, movements, None):
            self._movements[movement.key].append(movement)
        for trade in islice(books.trades, trades, None):
            self._trades[trade.event.contest, trade.event.participant].append(trade)
        for place, (_, attempt, _) in enumerate(islice(books.attempts, attempts, None), attempts):
            self._attempts[attempt.contest, attempt.participant].append(place)
        for place, (_, refused) in enumerate(islice(books.refusals, refusals, None), refusals):
            self._refusals[refused.contest, refused.participant].append(place)
        for place, (_, failed) in enumerate(islice(books.failures, failures, None), failures):
            self._failures[failed.contest, failed.participant].append(place)
        counts = len(books.movements), len(books.trades), len(books.attempts), len(books.refusals)
        self._counts = (*counts, len(books.failures))

    def books_of(self, keys: Iterable[AccountKey]) -> Books:
        """Return the books of some accounts only, account after account."""
        books = self._books
        in_order = sorted(key for key in keys if key in books.accounts)
        return replace(
            books,
            accounts={key: books.accounts[key] for key in in_order},
            movements=[movement for key in in_order for movement in self._movements.get(key, ())],
            trades=[trade for key in in_order for trade in self._trades.get(key, ())],
            attempts=[books.attempts[place] for key in in_order for place in self._attempts.get(key, ())],
            refusals=[books.refusals[place] for key in in_order for place in self._refusals.get(key, ())],
            failures=[books.failures[place] for key in in_order for place in self._failures.get(key, ())],
        )


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
