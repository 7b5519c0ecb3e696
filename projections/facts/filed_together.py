"""Filing many questions together: those that are opened, added to contests and resolved, as most events of a frame are.

A check that gives the same answer for many of these events is made once, the others are made column by column. If one
event has a fault, none is filed; to file them one by one then names the fault.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import compress, repeat
from operator import attrgetter, is_, lt
from typing import Any, TypeVar

import numpy as np
from msgspec.structs import force_setattr

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import FIRST_INSTANT, LARGEST_WEIGHT, LAST_INSTANT, LONGEST_PERIOD
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.answers import exact_shares
from forecast_ledger.projections.core.arrays import Int64Array
from forecast_ledger.projections.facts.columns import Entry, Facts, named_tuples
from forecast_ledger.projections.facts.event_checks import check_event
from forecast_ledger.projections.facts.settlements import Settlement

_Value = TypeVar("_Value")
_ANY = 0  # the log position of an event whose fault nobody reads


class _FaultError(Exception):
    """An event has a fault."""


def file_together(facts: Facts, position: Sequence[int], several: Sequence[Any]) -> bool:
    """File consecutive events of the types of TOGETHER, or, if one has a fault, none; return whether they are filed.

    position: the log position of each.
    """
    kinds, before, codes = [*map(type, several)], len(facts.questions), facts.question_codes.codes
    opened, added, resolved = (_of(kind, kinds, position, several) for kind in TOGETHER)
    try:
        _check_openings(facts, opened[1])
        file_openings(facts, *opened)
        _require(len(codes) == len(facts.questions))  # each has an id of its own
        entered = _check_entries(facts, *added)
        answered = _check_answers(facts, *resolved)
    except (_FaultError, Corrupt, KeyError, OverflowError):
        del facts.questions[before:], facts.opened[before:]
        codes.clear()
        codes.update({question.question: code for code, question in enumerate(facts.questions)})
        return False
    file_entries(facts, *added, entered)
    file_answers(facts, *resolved, answered)
    return True


def _of(
    kind: type, kinds: list[type], position: Sequence[int], several: Sequence[Any]
) -> tuple[Sequence[int], Sequence[Any]]:
    """Return the events of a type, with the log position of each. kinds: the type of each event."""
    if (count := kinds.count(kind)) in {0, len(kinds)}:
        return position[:count], several[:count]
    every_other = slice(kinds.index(kind), None, 2)
    if kinds[every_other].count(kind) == count == len(kinds[every_other]):  # as if each question is opened, then added
        return position[every_other], several[every_other]
    chosen = [*map(is_, kinds, repeat(kind))]
    return [*compress(position, chosen)], [*compress(several, chosen)]


def _check_openings(facts: Facts, opened: Sequence[events.QuestionOpened]) -> None:
    instants = {name: [*map(attrgetter(name), opened)] for name in ("at", "opens_at", "closes_at")}
    _, opens_at, closes_at = map(_within, instants.values())
    for name, column in instants.items():  # equal values of different questions are held once
        deque(map(force_setattr, opened, repeat(name), _once(column)), maxlen=0)
    _require(((opens_at < closes_at) & (closes_at - opens_at <= LONGEST_PERIOD)).all())
    alike = dict[object, events.QuestionOpened]()
    for event in opened:
        first = alike.setdefault((event.kind, event.range, event.outcomes), event)
        if first is not event:
            force_setattr(event, "range", first.range)
            force_setattr(event, "outcomes", first.outcomes)
    for event in (*alike.values(), *[event for event in opened if event.reveals_at is not None]):
        check_event(facts, _ANY, event)


def _check_entries(facts: Facts, position: Sequence[int], added: Sequence[events.QuestionAdded]) -> Sequence[int]:
    """Return the code of the question of each."""
    _within([event.at for event in added])
    _within([event.weight for event in added], 0, LARGEST_WEIGHT)
    codes, questions, alike = _known(facts, position, added), facts.questions, dict[object, events.QuestionAdded]()
    for event, code in zip(added, codes, strict=True):
        question = questions[code]
        alike[event.contest, question.range, len(question.outcomes)] = event
        if event.spots or event.hidden_coverage_weight is not None:
            check_event(facts, _ANY, event)
        elif event.spot_at is not None and not question.opens_at <= event.spot_at <= question.closes_at:
            raise _FaultError
    for event in alike.values():
        check_event(facts, _ANY, event)
    return codes


def _check_answers(facts: Facts, position: Sequence[int], resolved: Sequence[events.QuestionResolved]) -> Sequence[int]:
    """Return the code of the question of each."""
    for instants in ([event.at for event in resolved], [event.known_at for event in resolved]):
        _within(instants)
    codes, questions = _known(facts, position, resolved), facts.questions
    for event, code in zip(resolved, codes, strict=True):
        question = questions[code]
        if event.payouts or event.payout_unit or question.range is not None:
            check_event(facts, _ANY, event)
        elif not (0 <= event.outcome < len(question.outcomes) and question.opens_at <= event.known_at):
            raise _FaultError
    return codes


def _once(values: Sequence[_Value]) -> Iterator[_Value]:
    """Yield values, equal ones as one object."""
    return map(dict[_Value, _Value]().setdefault, values, values)


def _known(facts: Facts, position: Sequence[int], named: Sequence[Any]) -> list[int]:
    """Return the codes of the questions that events name. Raises KeyError, _FaultError: one was not opened before."""
    codes, opened = _codes(facts, named), facts.opened
    if codes and opened[max(codes)] >= position[0]:  # the last of them was opened among these events
        _require(all(map(lt, map(opened.__getitem__, codes), position)))
    return codes


def _codes(facts: Facts, named: Sequence[Any]) -> list[int]:
    """Return the codes of the questions that events name. Raises KeyError: one is not known.

    Events often follow one another as their questions do; to compare the ids is then quicker than to look them up.
    """
    codes, names = facts.question_codes.codes, [event.question for event in named]
    first, last = (codes[names[0]], codes[names[-1]] + 1) if names else (0, 0)
    if last - first == len(names):
        opened = [question.question for question in facts.questions[first:last]]
        names = opened if opened == names else names  # their hashes are known
    return [*map(codes.__getitem__, names)]


def _within(numbers: Sequence[int], least: int = FIRST_INSTANT, greatest: int = LAST_INSTANT) -> Int64Array:
    """Return numbers as an array. Raises _FaultError, OverflowError: one is out of bounds."""
    column = np.fromiter(numbers, np.int64, len(numbers))
    _require(not numbers or (least <= column.min() and column.max() <= greatest))
    return column


def _require(holds: bool | np.bool_) -> None:
    if not holds:
        raise _FaultError


def file_openings(facts: Facts, position: Sequence[int], opened: Sequence[events.QuestionOpened]) -> None:
    """File questions that are opened, and were checked."""
    codes = facts.question_codes.codes
    codes.update(zip([event.question for event in opened], range(len(codes), len(codes) + len(opened)), strict=True))
    facts.questions += opened
    facts.opened += position


def file_entries(
    facts: Facts, position: Sequence[int], added: Sequence[events.QuestionAdded], codes: Sequence[int] | None = None
) -> None:
    """File questions that are added to contests, and were checked. codes: of the questions, if they are at hand."""
    codes = _codes(facts, added) if codes is None else codes
    entries = named_tuples(
        Entry,
        position,
        codes,
        [event.weight for event in added],
        [event.hidden_coverage_weight for event in added],
        [event.spot_at for event in added],
        [tuple([(spot.at, spot.weight) for spot in event.spots]) if event.spots else () for event in added],
    )
    contests = [event.contest for event in added]
    if contests and contests.count(contests[0]) == len(contests):  # as is mostly so
        facts.contests[contests[0]].entries.update(zip(codes, entries, strict=True))
        return
    for code, entry, contest in zip(codes, entries, contests, strict=True):
        facts.contests[contest].entries[code] = entry


def file_answers(
    facts: Facts,
    position: Sequence[int],
    resolved: Sequence[events.QuestionResolved],
    codes: Sequence[int] | None = None,
) -> None:
    """File answers that were checked. codes: of the questions, if they are at hand."""
    codes = _codes(facts, resolved) if codes is None else codes
    rows = named_tuples(
        Settlement,
        position,
        codes,
        [event.outcome for event in resolved],
        _once([event.known_at for event in resolved]),
        [event.value for event in resolved],
        repeat(True, len(codes)),
        [exact_shares(event.payouts, event.payout_unit) if event.payouts else () for event in resolved],
        _once([event.at for event in resolved]),
    )
    answers = [*rows]
    facts.settlements += answers
    facts.settled.update(zip(codes, answers, strict=True))


TOGETHER: dict[type, Callable[[Facts, Sequence[int], Sequence[Any]], None]] = {
    events.QuestionOpened: file_openings,
    events.QuestionAdded: file_entries,
    events.QuestionResolved: file_answers,
}
