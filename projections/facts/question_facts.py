"""The facts about some questions, apart from those that all questions share, so that a part needs only some."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from forecast_ledger.ledger.model import events
from forecast_ledger.projections.core.arrays import Codes, int64_array, stable_order
from forecast_ledger.projections.facts.accounts import Books
from forecast_ledger.projections.facts.columns import (
    ChangedOutcomes,
    Entry,
    Facts,
    join_pages,
    named_tuples,
)
from forecast_ledger.projections.facts.quotes import Quotes
from forecast_ledger.projections.facts.settlements import Settlement

_Value = TypeVar("_Value")
_Row = TypeVar("_Row", bound=Entry | Settlement)
_NO_FORECASTS, _ = join_pages([])
_Closing = tuple[int, int, int]  # see `Facts.closings`


class QuestionFacts(NamedTuple):
    """The facts about some questions, renumbered; the fields are those of `Facts`.

    entries: those in each contest that has some of the questions, by its id. quotes: see `Books`.
    """

    questions: list[events.QuestionOpened]
    opened: list[int]
    former: dict[int, list[tuple[int, events.QuestionOpened]]]
    closings: list[_Closing]
    settlements: list[Settlement]
    settled: dict[int, Settlement]
    changed: dict[int, ChangedOutcomes]
    retractions: dict[int, list[tuple[int, int]]]
    entries: dict[str, dict[int, Entry]]
    quotes: Quotes

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle rows as columns: of each named tuple, pickle would have Python return the fields."""
        entries = {name: _columns(each.values()) for name, each in self.entries.items()}
        fields = self._replace(settlements=_columns(self.settlements), settled={}, entries=entries)
        return _of_columns, tuple(fields)


def _of_columns(*fields: Any) -> QuestionFacts:
    sent: Any = QuestionFacts._make(fields)
    settlements = [*named_tuples(Settlement, *sent.settlements)]
    entries = {name: _by_question(named_tuples(Entry, *each)) for name, each in sent.entries.items()}
    facts: QuestionFacts = sent._replace(settlements=settlements, settled=_settled(settlements), entries=entries)
    return facts


def _columns(rows: Iterable[tuple[Any, ...]]) -> Any:
    return [*zip(*rows, strict=True)]


def _by_question(rows: Iterable[_Row]) -> dict[int, _Row]:
    return {row.question: row for row in rows}


def _settled(settlements: Iterable[Settlement]) -> dict[int, Settlement]:
    """Return the last of the settlements of each question that settles it. settlements: of a question, in log order."""
    return {number: answer for number, answer in _by_question(settlements).items() if answer.settles}


class FactsByQuestion:
    """The facts about each question of a log, but for its forecasts, found by its code."""

    def __init__(self, facts: Facts) -> None:
        contests, count = facts.contests, len(facts.questions)
        self._facts = facts
        self._closings = _RowsOf((code for _, code, _ in facts.closings), count)
        self._settlements = _RowsOf((settlement.question for settlement in facts.settlements), count)
        self._entries = _RowsOf((code for contest in contests.values() for code in contest.entries), count)
        self._contests = [name for name, contest in contests.items() for _ in contest.entries]

    def on(self, codes: Sequence[int], contest: str | None = None) -> QuestionFacts:
        """Return the facts about some questions, numbered in this order. contest: the only one that they are in."""
        facts, numbers = self._facts, {code: number for number, code in enumerate(codes)}
        closed = [(number, facts.closings[row]) for number, row in self._closings.of(codes)]
        answers = [(number, facts.settlements[row]) for number, row in self._settlements.of(codes)]
        settlements = _renumbered(Settlement, answers)
        return QuestionFacts(
            questions=[*map(facts.questions.__getitem__, codes)],
            opened=[*map(facts.opened.__getitem__, codes)],
            former=_numbered(facts.former, numbers),
            closings=sorted((position, number, at) for number, (position, _, at) in closed),
            settlements=sorted(settlements, key=attrgetter("position")),
            settled=_settled(settlements),
            changed=_numbered(facts.changed, numbers),
            retractions=_numbered(facts.retractions, numbers),
            entries=self._entries_of(codes, contest),
            quotes=facts.books.quotes.on(numbers),
        )

    def _entries_of(self, codes: Sequence[int], contest: str | None) -> dict[str, dict[int, Entry]]:
        chosen = defaultdict[str, list[tuple[int, Entry]]](list)
        for number, row in self._entries.of(codes):
            name = self._contests[row]
            if contest is None or contest == name:
                chosen[name].append((number, self._facts.contests[name].entries[codes[number]]))
        entries = {name: _renumbered(Entry, chosen[name]) for name in self._facts.contests if name in chosen}
        return {name: _by_question(each) for name, each in entries.items()}


class _RowsOf:
    """The rows of a table in which each has a question, found by its code, in their order."""

    def __init__(self, questions: Iterable[int], count: int) -> None:
        """questions: the code of each row's question; count: of all questions."""
        codes = np.fromiter(questions, np.int64)
        self._rows = stable_order(codes)
        self._begins = np.searchsorted(codes[self._rows], np.arange(count + 1))

    def of(self, codes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the rows of some questions, by number, each after the number of its question among these."""
        code = int64_array(codes)
        begins, ends = self._begins[code], self._begins[code + 1]
        number = np.arange(len(code)).repeat(ends - begins)
        row = np.arange(len(number)) + (ends - np.cumsum(ends - begins))[number]
        return zip(number.tolist(), self._rows[row].tolist(), strict=True)


def _renumbered(kind: type[_Row], rows: list[tuple[int, _Row]]) -> list[_Row]:
    """Return rows with other numbers of their questions, which come after the log position. rows: each with its own."""
    columns: list[Any] = _columns(row for _, row in rows)
    columns[1:2] = [[number for number, _ in rows]]
    return [*named_tuples(kind, *columns)]


def _numbered(table: dict[int, _Value], numbers: dict[int, int]) -> dict[int, _Value]:
    """Return the entries of a table of questions that are numbered, by their numbers."""
    return {number: table[code] for code, number in numbers.items() if code in table} if table else {}


def without_questions(facts: Facts) -> Facts:
    """Return the facts that all questions share."""
    return replace(
        facts,
        questions=[],
        opened=[],
        former={},
        question_codes=Codes(),
        closings=[],
        settlements=[],
        settled={},
        changed={},
        retractions={},
        contests={name: replace(contest, entries={}) for name, contest in facts.contests.items()},
        statuses={},
        held=_NO_FORECASTS,
        books=Books(clock=facts.books.clock),
    )


def with_questions(shared: Facts, question_facts: QuestionFacts) -> Facts:
    """Return facts with questions. shared: what `without_questions` returns.

    Contests without any of the questions are left out; forecasts and accounts are not among the facts.
    """
    names = Codes()
    for question in question_facts.questions:
        names.add(question.question)
    contests = {
        name: replace(shared.contests[name], entries=entries) for name, entries in question_facts.entries.items()
    }
    return replace(
        shared,
        questions=question_facts.questions,
        opened=question_facts.opened,
        former=question_facts.former,
        question_codes=names,
        closings=question_facts.closings,
        settlements=question_facts.settlements,
        settled=question_facts.settled,
        changed=question_facts.changed,
        retractions=question_facts.retractions,
        contests=contests,
        statuses={},
        books=Books(clock=shared.books.clock, quotes=question_facts.quotes),
    )
