"""Other ids of participants: as whose each forecast counts, as of a log position."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import structs

from forecast_ledger.ledger.model.events import ParticipantEnrolled
from forecast_ledger.projections.core.arrays import Int64Array

_Value = TypeVar("_Value")


class Rename(NamedTuple):
    """From a log position on, all of participant `old` counts as of participant `new`; codes."""

    position: int
    old: int
    new: int


def present(renames: Sequence[Rename], participant: Int64Array, as_of: Int64Array | int) -> Int64Array:
    """Return as whose each row counts. participant: as recorded, shape (n,). as_of: one log position, or one a row.

    >>> renames = [Rename(5, old=0, new=1), Rename(9, old=1, new=2)]
    >>> [present(renames, np.array([0, 1, 2, 3]), as_of).tolist() for as_of in (4, 5, 9)]
    [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3]]
    """
    rows = np.flatnonzero(np.isin(participant, [rename.old for rename in renames]))
    found, last = participant[rows], np.broadcast_to(as_of, len(participant))[rows]
    for rename in renames:
        found[(found == rename.old) & (rename.position <= last)] = rename.new
    counting = participant.copy()
    counting[rows] = found
    return counting


def codes_of(renames: Sequence[Rename], participant: int) -> list[int]:
    """Return every code of a participant, that of the present id first.

    >>> codes_of([Rename(5, old=0, new=1), Rename(9, old=1, new=2)], 2)
    [2, 1, 0]
    >>> codes_of([Rename(5, old=0, new=1), Rename(9, old=1, new=0)], 0)
    [0, 1]
    """
    found = [participant]
    for rename in reversed(renames):
        if rename.new in found and rename.old not in found:
            found.append(rename.old)
    return found


def moved(table: dict[str, _Value], old: str, new: str) -> dict[str, _Value]:
    """Return a table by participant, in the order of recording, with one id in place of another: the later row counts.

    >>> moved({"ada": 1, "bo": 2, "al": 3}, "al", "ada")
    {'bo': 2, 'ada': 3}
    >>> moved({"ada": 1, "bo": 2, "al": 3}, "ada", "al")
    {'bo': 2, 'al': 3}
    """
    found: dict[str, _Value] = {}
    for name, value in table.items():
        put_last(found, new if name == old else name, value)
    return found


def enrolled_as(enrolments: dict[str, ParticipantEnrolled], old: str, new: str) -> dict[str, ParticipantEnrolled]:
    """Return enrolments with one id in place of another, also where it is that of an entrant; see `moved`."""
    renamed = {
        who: structs.replace(enrolment, entrant=new) if enrolment.entrant == old else enrolment
        for who, enrolment in enrolments.items()
    }
    return moved(renamed, old, new)


def put_last(table: dict[str, _Value], name: str, value: _Value) -> None:
    """Give a participant another row, which is then the last."""
    table.pop(name, None)
    table[name] = value


def time_order(
    renames: Sequence[Rename], question: Int64Array, participant: Int64Array, at: Int64Array, position: Int64Array
) -> Int64Array:
    """Return the order of rows in which those of a participant with several ids are in order of time on each question.

    Of two rows at one instant, the one with the later log position comes later; all others stay. Shape (n,) each.

    >>> forecasts = [np.array(column) for column in ([0, 0, 0], [1, 2, 1], [7, 3, 5], [1, 2, 3])]
    >>> time_order([Rename(4, old=0, new=1)], *forecasts).tolist()
    [2, 1, 0]
    """
    order = np.arange(len(at))
    rows = np.flatnonzero(np.isin(participant, [rename.new for rename in renames]))
    in_time = np.lexsort((position[rows], at[rows], participant[rows], question[rows]))
    places = np.lexsort((rows, participant[rows], question[rows]))
    order[rows[places]] = rows[in_time]
    return order
