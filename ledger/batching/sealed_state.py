"""The state of a writer at the end of the sealed part of a log, from its columns."""

from typing import Any

import numpy as np

from forecast_ledger.ledger.batching.writer_state import AT_ONCE, RecordedCommand, WriterState, codes
from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import NEVER
from forecast_ledger.ledger.deciding.state import to_standing
from forecast_ledger.ledger.model import events
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.segments.arrow_arrays import (
    chosen,
    compute_functions,
    integers,
    labelled,
    log_order,
    numpy_array,
    pyarrow,
    row_numbers,
    whole,
)
from forecast_ledger.ledger.segments.other_events import other_events
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns

# Columns that a writer does not need.
UNREAD = frozenset({"form", "numbers", "attestation", "imported", "normal", "provenance", "command"})
# Events that read or change what stands on their question: the forecasts before them are to be there.
_READ_STANDING = (
    events.ForecastMade,
    events.ForecastWithdrawn,
    events.ForecastsRetracted,
    events.OutcomesChanged,
    events.QuestionResolved,
    events.QuestionAnnulled,
)


def apply_segment(known: WriterState, columns: SegmentColumns, last: Recorded) -> None:
    """Apply the rows of the next segment. last: its last row, from the log.

    Raises Corrupt: an event does not fit those before it; the state is then not to be used.
    """
    forecasts = _Forecasts(columns.forecasts)
    for recorded in other_events(columns):
        if isinstance(recorded.event, events.QuestionOpened):
            forecasts.check_after(recorded)
        if isinstance(recorded.event, _READ_STANDING):
            forecasts.stand(known, recorded.event.question, recorded.position)
        if isinstance(recorded.event, events.ParticipantRenamed):
            forecasts.note_ids(known, recorded.event, recorded.position)
        known.evolve(recorded)
    for question in [*forecasts.waiting]:
        forecasts.stand(known, question, last.position)
    _index(known, columns, last)
    known.head, known.recorded_at = Checkpoint(last.position, last.digest), last.recorded_at
    known.is_imported = last.imported is True


class _Forecasts:
    """The forecasts and withdrawals of a segment, question after question, that are still to be applied."""

    def __init__(self, table: Any) -> None:
        labels, question = labelled(table["question"])
        people, self._participant = labelled(table["participant"])
        self._people = np.array(people, np.object_)
        self._position, self._at = integers(table["position"]), integers(table["claimed_at"])
        self._former: dict[str, list[tuple[int, tuple[str, ...]]]] = {}  # by id: up to each rename, the former ones
        self._made = numpy_array(whole(table["made"]))
        self._ends = np.where(self._made, integers(table["until"], NEVER), self._at)
        self._are_made, self._never_end = bool(self._made.all()), bool((self._ends == NEVER).all())
        begins, follows = question[1:] > question[:-1], self._position[1:] > self._position[:-1]
        is_ordered = bool((begins | ((question[1:] == question[:-1]) & follows)).all())  # as it is in a file
        self._order = np.arange(len(question)) if is_ordered else np.lexsort((self._position, question))
        self._ordered = self._position[self._order]
        ends = np.cumsum(np.bincount(question, minlength=len(labels)))
        begins = ends - np.bincount(question, minlength=len(labels))
        self.waiting = {
            label: (begin, end)
            for label, begin, end in zip(labels, begins.tolist(), ends.tolist(), strict=True)
            if begin < end
        }

    def note_ids(self, known: WriterState, event: events.ParticipantRenamed, position: int) -> None:
        """Note which former ids two participants had before they were renamed, for the forecasts before that."""
        for who in (event.participant, event.to):
            self._former.setdefault(who, []).append((position, known.state.former.get(who, ())))

    def check_after(self, opening: Recorded) -> None:
        """Raise Corrupt at a forecast that is before the event that opens its question."""
        question = getattr(opening.event, "question", "")
        begin, end = self.waiting.get(question, (0, 0))
        if begin < end and (first := int(self._position[self._order[begin]])) < opening.position:
            raise Corrupt(first, f"the forecast names {question!r}, which was never opened")

    def stand(self, known: WriterState, question: str, until: int) -> None:
        """Apply the forecasts on a question up to a log position. Raises Corrupt: it was never opened, or no forecast
        stood that could be withdrawn.
        """
        begin, end = self.waiting.pop(question, (0, 0))
        count = end - begin
        if count and self._ordered[end - 1] > until:
            count = int(np.searchsorted(self._ordered[begin:end], until, "right"))
        if begin + count < end:
            self.waiting[question] = begin + count, end
        if not count:
            return
        rows = self._order[begin : begin + count]
        if question not in known.state.standing:
            raise Corrupt(int(self._position[rows[0]]), f"the forecast names {question!r}, which was never opened")
        people = self._people[self._participant[rows]].tolist()
        standing = known.state.standing_on(question)
        if not (self._are_made or self._made[rows].all()):
            self._check_withdrawals(rows, people, {*standing}, known)
        made, ends = self._at[rows].tolist(), self._ends[rows]
        lasts = made if self._never_end or (ends == NEVER).all() else map(to_standing, made, ends.tolist())
        standing.update(zip(people, lasts, strict=True))

    def _check_withdrawals(self, rows: Any, people: list[str], seen: set[str], known: WriterState) -> None:
        """Raise Corrupt at a withdrawal of somebody who is not among those seen, and has no forecast before it."""
        now = known.state.former
        for row, who in zip(rows.tolist(), people, strict=True):
            then = (ids for position, ids in self._former.get(who, ()) if self._position[row] < position)
            if not self._made[row] and seen.isdisjoint((who, *next(then, now.get(who, ())))):
                raise Corrupt(int(self._position[row]), f"{who!r} withdraws a forecast and never made one")
            seen.add(who)


def _index(known: WriterState, columns: SegmentColumns, last: Recorded) -> None:
    """Index the commands of the rows; the last one stays recent, because the next rows may go on with it."""
    pa = pyarrow()
    position = np.concatenate([integers(table["position"]) for table in columns.rows])
    chunks = [chunk.cast(pa.large_string()) for table in columns.rows for chunk in table["command_id"].chunks]
    order = log_order(position)
    ids, position = pa.concat_arrays(chunks).take(row_numbers(order)), position[order]
    begins = np.ones(len(ids), bool)
    begins[1:] = numpy_array(compute_functions().not_equal(ids[1:], ids[:-1]))
    ids, firsts = ids.filter(chosen(begins)), position[begins].astype(np.uint64)
    recent = known.commands.recent
    if (command := recent.pop(ids[0].as_py(), None)) is not None:  # the segment before ends within this command
        firsts[0] = command.first
    known.commands.add(known.commands.hashed([*recent]), np.array([each.first for each in recent.values()], np.uint64))
    parts = (_codes(ids[begin : min(begin + AT_ONCE, len(ids) - 1)]) for begin in range(0, len(ids) - 1, AT_ONCE))
    known.commands.add(known.commands.hashed_codes((), parts), firsts[:-1])
    recent.clear()
    recent[ids[-1].as_py()] = RecordedCommand(last.command, int(firsts[-1]), last.position)


def _codes(ids: Any) -> Any:
    """Return what `codes` returns of an array of ids."""
    begin, (_, ends, data) = ids.offset, ids.buffers()
    ends = np.frombuffer(ends, np.int64)[begin : begin + len(ids) + 1]
    characters = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    if (characters >= 0x80).any():  # not ASCII: more bytes than characters
        return codes(ids.to_pylist())
    sizes = np.diff(ends)
    found = np.zeros((len(ids), max(int(sizes.max()), 1)), np.uint8)
    found[np.arange(found.shape[1]) < sizes[:, None]] = characters
    return found
