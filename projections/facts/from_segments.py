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
    compute_functions,
    integers,
    is_valid,
    labelled,
    numpy_array,
    only_labels,
    pyarrow,
    taken,
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
_TOGETHER = 8  # counts of segments whose questions are found together
_MANY = 1 << 18  # ids; to find fewer one by one takes less time than the import of pyarrow's functions of columns
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
    facts, rest = Facts(), list[ForecastPage]()
    counted = _Counts(facts)
    try:
        for columns, end in segments:
            forecasts, *others = columns
            are_counts = "rows" in forecasts.schema.names
            if not are_counts or any(map(len, others)):
                counted.file()
            rest += _file_others(facts, columns)
            facts.as_of = end.position
            if len(forecasts) and are_counts:
                counted.wait(forecasts, end.position)
            elif len(forecasts):
                counted.add(_file_and_count(facts, forecasts))
    finally:  # what is wrong with earlier counts comes first
        counted.file()
    rest += [forecasts for page in tail if (forecasts := file_page(facts, page)) is not None]
    counted.add(np.zeros(len(facts.questions), np.int64))
    for unsealed in rest:
        counted.add(np.bincount(unsealed.question, minlength=len(facts.questions)))
    return FactsFrame(facts, counted.counts, rest)


class _Counts:
    """How many forecasts each question has, by code.

    Counts of segments wait until several are filed together: to find the questions of many takes little more time.
    """

    def __init__(self, facts: Facts) -> None:
        self.counts = np.zeros(0, np.int64)
        self._facts, self._waiting = facts, list[tuple[Any, int]]()
        self._labels, self._labelled = list[Any](), 0  # of the codes of questions, as columns, and how many these have

    def add(self, counts: Int64Array) -> None:
        """Add to the counts. counts: one for each question."""
        self.counts = np.pad(self.counts, (0, len(counts) - len(self.counts))) + counts

    def wait(self, table: Any, position: int) -> None:
        """File the counts of a segment, not empty, before another event is filed. position: its last."""
        self._waiting.append((table, position))
        if len(self._waiting) == _TOGETHER:
            self.file()

    def file(self) -> None:
        """File what the counts that wait tell. Raises Corrupt at the end of a segment: a question was not opened."""
        if not self._waiting:
            return
        facts, (tables, positions) = self._facts, zip(*self._waiting, strict=True)
        self._waiting, columns, counts = [], list[Any](), list[Int64Array]()
        for table in tables:
            facts.books.clock = max(facts.books.clock, int(integers(table["claimed_at"]).max()))
            is_question, known = is_valid(whole(table["question"])), facts.participant_codes
            participants = taken(table["participant"], np.flatnonzero(~is_question)).to_pylist()
            for participant in filterfalse(known.codes.__contains__, participants):
                known.add(participant)
            columns.append(whole(taken(table["question"], np.flatnonzero(is_question))))
            counts.append(integers(table["rows"])[is_question])
        code = self._find(pyarrow().chunked_array(columns, pyarrow().string()))
        if len(unknown := np.flatnonzero(code < 0)):
            segment = int(np.searchsorted(np.cumsum([*map(len, columns)]), unknown[0], "right"))
            name = columns[segment][unknown[0] - sum(map(len, columns[:segment]))].as_py()
            fault = mismatch(_QUESTION[0], f"{short_repr(name)}, {_QUESTION[1]}")
            raise Corrupt(positions[segment], fault)
        of_questions = np.zeros(len(facts.questions), np.int64)
        np.add.at(of_questions, code, np.concatenate(counts))
        self.add(of_questions)

    def _find(self, ids: Any) -> Int64Array:
        """Return the code of each of some questions, a column of ids; -1 for those that have none."""
        labels, codes = self._facts.question_codes.labels, self._facts.question_codes.codes
        if len(ids) < _MANY or len(labels) >= _FEW * len(ids):  # also if there are none
            return np.fromiter(map(codes.get, ids.to_pylist(), repeat(-1)), np.int64, len(ids))
        if self._labelled < len(labels):
            self._labels.append(array_of_texts(labels[self._labelled :]))
            self._labelled = len(labels)
        every = pyarrow().chunked_array(self._labels, pyarrow().string())
        found: Int64Array = integers(compute_functions().index_in(ids, value_set=every), -1)
        return found


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
