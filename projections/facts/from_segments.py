"""Reading the facts of sealed segments: forecasts are taken over as columns, other events are filed in pages."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import filterfalse, repeat
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.core.values import NEVER
from forecast_ledger.ledger.model import events, log
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.model.mismatch import mismatch, short_repr
from forecast_ledger.ledger.segments.arrow_arrays import (
    array_of_texts,
    chosen,
    integers,
    is_valid,
    labelled,
    numpy_array,
    only_labels,
    pyarrow,
    whole,
)
from forecast_ledger.ledger.segments.other_events import other_events, other_pages, provenances
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns
from forecast_ledger.projections.core.arrays import Codes, Int64Array
from forecast_ledger.projections.facts.columns import Facts, ForecastPage, Forecasts
from forecast_ledger.projections.facts.event_checks import check_attestation
from forecast_ledger.projections.facts.from_log import file_events, file_page, gather_forecasts, select_columns
from forecast_ledger.projections.facts.outcomes import laid_out

FRAME_UNREAD = frozenset({"made", "form", "numbers", "until"})  # columns of a segment that a frame does not need
_FEW = 4  # labels for each id: if there are as many, ids are found one by one
_QUESTION = ("a question opened earlier", "which was not")
_PARTICIPANT = ("a participant that the segments had before", "whom they did not have")
_attestation = msgspec.json.Decoder(events.Attestation)


def facts_of_segments(
    segments: Iterable[tuple[SegmentColumns, Checkpoint]], tail: Iterable[Sequence[Recorded]] = ()
) -> Facts:
    """Return the facts of a log whose beginning is sealed.

    segments: the columns of each segment, with the checkpoint of its last row; ids and digests of commands are not
    needed. tail: the events after the last segment. Raises Corrupt at an event that does not fit those before it.
    """
    facts, columns = Facts(), list[ForecastPage]()
    for segment, end in segments:
        columns += file_segment(facts, segment, end)
    columns += [forecasts for page in tail if (forecasts := file_page(facts, page)) is not None]
    facts.held = laid_out(facts, gather_forecasts(facts, columns))
    return facts


def file_segment(facts: Facts, columns: SegmentColumns, end: Checkpoint) -> list[ForecastPage]:
    """File the next segment of a log, which ends at a checkpoint; return the columns of its forecasts.

    Raises Corrupt at an event that does not fit those before it.
    """
    forecasts, filed = columns.forecasts, [*_file_others(facts, columns)]
    facts.as_of = end.position
    if len(forecasts):
        _file_forecasts(facts, forecasts)
        filed.append(_forecast_columns(facts, forecasts))
    return filed


def _file_others(facts: Facts, columns: SegmentColumns) -> Iterator[ForecastPage]:
    """File the events other than forecasts; yield the columns of forecasts that are among them. Raises Corrupt."""
    for page in other_pages(columns):
        if (filed := file_events(facts, page.position, page.event, page.rows)) is not None:
            yield filed


class FactsFrame(NamedTuple):
    """The facts of a log but for the forecasts in its segments, which are read for some questions at a time.

    facts: its `forecasts` are empty. counts: how many forecasts and withdrawals each question has, by code, shape
    (questions,). rest: forecasts that are not in the segments, or not as columns.
    """

    facts: Facts
    counts: Int64Array
    rest: list[ForecastPage]

    def rest_on(self, questions: Int64Array) -> list[ForecastPage]:
        """Return the forecasts of `rest` on these questions."""
        chosen = (select_columns(columns, np.isin(columns.question, questions)) for columns in self.rest)
        return [columns for columns in chosen if len(columns.position)]


def frame_of_segments(
    segments: Iterable[tuple[SegmentColumns, Checkpoint]], tail: Iterable[Sequence[Recorded]] = ()
) -> FactsFrame:
    """Return the facts of a log whose beginning is sealed, without the forecasts in segments.

    segments: as for `facts_of_segments`; the columns of `FRAME_UNREAD` are not needed either, and the counts of the
    forecasts can be in place of these. The forecasts in segments are not checked here: `forecasts_on` checks those that
    it returns. Raises Corrupt at an event that does not fit those before it; of counts, at the end of the segment.
    """
    facts, rest, counts = Facts(), list[ForecastPage](), np.zeros(0, np.int64)
    opened = _Labels(facts.question_codes)
    for columns, end in segments:
        forecasts = columns.forecasts
        rest += _file_others(facts, columns)
        facts.as_of = end.position
        if len(forecasts):
            is_counted = "rows" in forecasts.schema.names
            count = _file_counts(facts, forecasts, opened) if is_counted else _file_and_count(facts, forecasts)
            counts = np.pad(counts, (0, len(facts.questions) - len(counts))) + count
    rest += [forecasts for page in tail if (forecasts := file_page(facts, page)) is not None]
    counts = np.pad(counts, (0, len(facts.questions) - len(counts)))
    for unsealed in rest:
        counts += np.bincount(unsealed.question, minlength=len(counts))
    return FactsFrame(facts, counts, rest)


class _Labels:
    """The labels of codes, of which there are more with time, as columns, by which many ids are found quickly."""

    def __init__(self, codes: Codes) -> None:
        self._codes, self._chunks, self._count = codes, list[Any](), 0

    def find(self, ids: Any) -> Int64Array:
        """Return the code of each of some ids, a column; for those that have none, the number of codes or more."""
        labels, codes = self._codes.labels, self._codes.codes
        if len(labels) >= _FEW * len(ids):  # also if there are none
            return np.fromiter(map(codes.get, ids.to_pylist(), repeat(len(labels))), np.int64, len(ids))
        if self._count < len(labels):
            self._chunks.append(array_of_texts(labels[self._count :]))
            self._count = len(labels)
        numbered = pyarrow().chunked_array([*self._chunks, *ids.chunks]).dictionary_encode()
        found = [numpy_array(chunk.indices) for chunk in numbered.chunks[len(self._chunks) :]]
        return np.concatenate(found, dtype=np.int64)


def _file_counts(facts: Facts, table: Any, opened: _Labels) -> Int64Array:
    """File what the counts of the forecasts of a segment tell; return how many each question has, by code.

    opened: the questions. Raises Corrupt: a question was not opened earlier.
    """
    facts.books.clock = max(facts.books.clock, int(integers(table["claimed_at"]).max()))
    is_question = is_valid(whole(table["question"]))
    participants, known = table["participant"].filter(chosen(~is_question)).to_pylist(), facts.participant_codes
    for participant in filterfalse(known.codes.__contains__, participants):
        known.add(participant)
    questions, rows = table["question"].filter(chosen(is_question)), integers(table["rows"])[is_question]
    code, counts = opened.find(questions), np.zeros(len(facts.questions), np.int64)
    if len(unknown := np.flatnonzero(code >= len(counts))):
        fault = mismatch(_QUESTION[0], f"{short_repr(questions[unknown[0]].as_py())}, {_QUESTION[1]}")
        raise Corrupt(facts.as_of, fault)
    np.add.at(counts, code, rows)
    return counts


def _file_and_count(facts: Facts, table: Any) -> Int64Array:
    """File what the forecasts of a segment tell; return how many each question has, by code.

    Raises Corrupt: a question was not opened earlier.
    """
    _file_forecasts(facts, table)
    labels, index = labelled(table["question"])
    count, codes = np.bincount(index, minlength=len(labels)), facts.question_codes.codes
    known = np.fromiter(map(codes.get, labels, repeat(-1)), np.int64, len(labels))
    if (count[known < 0] > 0).any():
        _codes(table["question"], facts.question_codes, integers(table["position"]), _QUESTION)  # raises it
    counts = np.zeros(len(codes), np.int64)
    np.add.at(counts, known[known >= 0], count[known >= 0])
    return counts


def forecasts_on(facts: Facts, segments: Iterable[Any], rest: Iterable[ForecastPage]) -> Forecasts:
    """Return the checked forecasts on some questions.

    facts: of a `FactsFrame`. segments: all forecasts on these questions in each segment, as a pyarrow.Table, in log
    order. rest: as of `FactsFrame.rest_on`. Raises Corrupt at one that does not fit its question.
    """
    tables = [table for table in segments if len(table)]
    joined = [pyarrow().concat_tables(tables)] if tables else []
    return laid_out(facts, gather_forecasts(facts, [*(_forecast_columns(facts, table) for table in joined), *rest]))


def segment_events(columns: SegmentColumns, question: str | None = "") -> list[Recorded]:
    """Return events of a segment in log order; only rows that finalize a contest have a digest, and none a command id.

    question: the only one whose forecasts are returned; None for all, "" for none. Raises Corrupt.
    """
    forecasts, recorded = columns.forecasts, [*other_events(columns)]
    if question is not None:
        forecasts = _on_question(forecasts, question)
    recorded += _recorded_forecasts(forecasts)
    return sorted(recorded, key=attrgetter("position"))


def _on_question(forecasts: Any, question: str) -> Any:
    labels, index = labelled(forecasts["question"])
    if question not in labels:
        return forecasts.slice(0, 0)
    return forecasts.take(np.flatnonzero(index == labels.index(question)))


def _recorded_forecasts(table: Any) -> Iterable[Recorded]:
    """Yield the forecasts and withdrawals of a segment. Raises Corrupt."""
    names = ("question", "participant", "made", "form", "numbers", "attestation")
    instants = [integers(table[name]).tolist() for name in ("position", "recorded_at", "claimed_at")]
    until = table["until"].cast(pyarrow().int64()).to_pylist()
    columns = [table[name].to_pylist() for name in names]
    for position, recorded_at, at, end, question, participant, made, form, numbers, attested, said in zip(
        *instants, until, *columns, provenances(table), strict=True
    ):
        if made:
            fields: dict[str, Any] = {form: tuple(numbers)}
            if attested is not None:
                fields["attestation"] = _read_attestation(position, attested)
            event: events.AnyEvent = events.ForecastMade(
                at=at, question=question, participant=participant, until=end, **fields
            )
        else:
            event = events.ForecastWithdrawn(at=at, question=question, participant=participant)
        row = {"position": position, "recorded_at": recorded_at, "provenance": said, "event": event}
        yield Recorded(**row, command_id="", command="", previous="")


def _file_forecasts(facts: Facts, table: Any) -> None:
    """File what the forecasts of a segment tell beside the forecasts themselves."""
    facts.books.clock = max(facts.books.clock, int(integers(table["claimed_at"]).max()))
    if table["attestation"].null_count < len(table):
        _file_attestations(facts, integers(table["position"]), table["attestation"].to_pylist())
    for label in table["participant"].combine_chunks().dictionary.to_pylist():
        facts.participant_codes.add(label)


def _forecast_columns(facts: Facts, table: Any) -> ForecastPage:
    """Return the columns of the forecasts; their participants are known."""
    lists = table["numbers"].combine_chunks()
    ends = table["until"].null_count < len(table)
    begins = numpy_array(lists.offsets).astype(np.int64)
    position = integers(table["position"])
    return ForecastPage(
        position,
        integers(table["claimed_at"]),
        integers(table["recorded_at"])
        if "recorded_at" in table.schema.names
        else np.broadcast_to(position[:1], len(table)),
        _codes(table["question"], facts.question_codes, position, _QUESTION),
        _codes(table["participant"], facts.participant_codes, position, _PARTICIPANT),
        numpy_array(table["made"].combine_chunks()),
        integers(table["until"], NEVER) if ends else np.broadcast_to(np.int64(NEVER), len(table)),
        np.diff(begins),  # a list that is missing is empty
        numpy_array(lists.values)[begins[0] : begins[-1]],
    )


def _codes(column: Any, codes: Codes, position: Int64Array, expected: tuple[str, str]) -> Int64Array:
    """Return the codes of ids. Raises Corrupt at the first row with one that has none; `expected` says what it is."""
    count, has_few = len(codes.labels), len(codes.labels) > len(column) > 0
    # If the dictionary of all begins with the labels, their numbers are the codes; it takes less to look a few up.
    known = [] if has_few else [only_labels(codes.labels)]
    chunks = pyarrow().chunked_array([*known, *column.chunks]).unify_dictionaries().chunks
    code: Int64Array = np.concatenate([numpy_array(chunk.indices) for chunk in chunks], dtype=np.int64)
    if has_few:
        labels = chunks[0].dictionary.to_pylist()
        code = np.fromiter(map(codes.codes.get, labels, repeat(count)), np.int64, len(labels))[code]
    if code.max(initial=-1) >= count:
        row = int(np.argmin(np.where(code < count, NEVER, position)))
        fault = mismatch(expected[0], f"{short_repr(column[row].as_py())}, {expected[1]}")
        raise Corrupt(int(position[row]), fault)
    return code


def _file_attestations(facts: Facts, position: Int64Array, texts: list[str | None]) -> None:
    for at, text in zip(position.tolist(), texts, strict=True):
        if text is not None:
            attestation = _read_attestation(at, text)
            check_attestation(at, attestation)
            facts.attestations[at] = attestation


def _read_attestation(position: int, text: str) -> events.Attestation:
    try:
        return _attestation.decode(text)
    except log.UNREADABLE as error:
        raise log.unreadable(position, "attestation", error) from None
