"""Parts of a log in segments, checked by their columns: the rows are rebuilt and hashed, but few of them are read.

A forecast of a probability, or of cumulative ones, whose columns are right makes a row that reads as these columns, in
canonical bytes: it is built so. Every other row is read from its bytes, as in any other log.
"""

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from forecast_ledger.ledger.auditing.quick_check import QuestionForm, asked_heights, asks_probability, valid_ids
from forecast_ledger.ledger.auditing.taken_forecasts import bytes_of
from forecast_ledger.ledger.core.values import CUMULATIVE, FIRST_INSTANT, ID_LENGTH, NEVER, PROBABILITY
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.canonical import content_parts, numbers_content
from forecast_ledger.ledger.model.log import fingerprint_bytes
from forecast_ledger.ledger.segments.arrow_arrays import (
    array_of_texts,
    compute_functions,
    fixed_texts,
    integers,
    is_valid,
    numpy_array,
    pyarrow,
    row_numbers,
    text_bytes,
    text_scalar,
    whole,
)
from forecast_ledger.ledger.segments.arrow_arrays import chosen as as_chosen
from forecast_ledger.ledger.segments.segment_columns import AT_ONCE, joined, number_lists
from forecast_ledger.ledger.storing.segment_rows import SegmentPart
from forecast_ledger.projections.core.arrays import BoolArray, Codes, Int64Array
from forecast_ledger.projections.facts.columns import ForecastPage
from forecast_ledger.replay.checking.checked_parts import CheckedPage, CheckedPart, Reader, plain_rows

_MOST_BYTES = 4 * ID_LENGTH  # of an id
_CHANCES, _HEIGHTS = "probabilities", "cdf"  # the fields of a probability, and of cumulative ones
_PartsOf = Callable[[Int64Array], tuple[Any, ...]]


class _Frame(NamedTuple):
    """The columns that rows of every kind have, in log order. order: of each row, its index in the columns, where those
    of forecasts come first. command_ids: their bytes, also of the row before them and of the row after them.
    """

    order: Int64Array
    recorded_at: Int64Array
    imported: BoolArray
    command_ids: Any

    @classmethod
    def of(cls, part: SegmentPart) -> "_Frame | None":
        """Return the frame of the rows of a part; None if there is a gap, or their times are wrong."""
        columns, first = part.columns, part.before.position + 1
        position, order = np.concatenate([integers(table["position"]) for table in columns.rows]), part.order()
        recorded_at = np.concatenate([integers(table["recorded_at"]) for table in columns.rows])[order]
        imported = np.concatenate([numpy_array(whole(table["imported"])) for table in columns.rows])[order]
        if (position[order] != np.arange(first, first + len(order))).any() or (np.diff(recorded_at) < 0).any():
            return None
        if (np.diff(imported.astype(np.int8)) > 0).any():
            return None
        ids, (before, after) = fixed_texts(part.command_ids(), _MOST_BYTES), part.beside
        # The command of a row may go on where another segment begins or ends: it counts as one that does.
        first, last = (
            ids[:1] if before is None else bytes_of([before]),
            ids[-1:] if after is None else bytes_of([after]),
        )
        return cls(order, recorded_at, imported, np.concatenate([first, ids, last]))

    def alone(self) -> BoolArray:
        """Return which rows, as ordered by the columns, are alone in their command."""
        ids, alone = self.command_ids, np.zeros(len(self.order), bool)
        differ = ids[1:] != ids[:-1]
        alone[self.order] = differ[1:] & differ[:-1]
        return alone


class _Names(NamedTuple):
    """The ids of a column that its rows have, and the index of each row's."""

    labels: list[str]
    of_rows: Any

    @classmethod
    def of(cls, column: Any) -> "_Names":
        array = whole(column)
        indices, is_used = numpy_array(array.indices), np.zeros(len(array.dictionary), bool)
        is_used[indices] = True
        labels = array.dictionary.take(row_numbers(np.flatnonzero(is_used))).to_pylist()
        return cls(labels, (np.cumsum(is_used) - 1)[indices])


def checked_columns(reader: Reader, after: int, end: int) -> CheckedPart | None:
    """Return the rows after a log position up to another; None if anything is wrong with them, or in doubt.

    Raises Corrupt, ValueError for some.
    """
    assert reader.segments is not None  # noqa: S101 - see `Reader`
    recorded_at, imported = reader.segments.clock_of(after) if after else (-(2**63), False)
    participants, pages, started = Codes(), list[CheckedPage](), ""
    last, count = log.START, after if imported else 0
    for part in reader.segments.parts(after, end):
        frame = _Frame.of(part)
        if frame is None or frame.recorded_at[0] < recorded_at:
            return None
        if frame.imported[0] and count < part.before.position:
            return None
        started = started or part.before.digest
        last = part.end
        recorded_at, count = int(frame.recorded_at[-1]), count + int(frame.imported.sum())
        page = _page(reader, participants, part, frame)
        if page is None:
            return None
        pages.append(page)
    if last.position != end:
        return None
    return CheckedPart(started, last, recorded_at, count, participants.labels, pages)


def _page(reader: Reader, participants: Codes, part: SegmentPart, frame: _Frame) -> CheckedPage | None:
    """Return the rows of a part as a page; None if one is wrong, or in doubt. participants: more are added."""
    made, order = part.columns.forecasts, frame.order
    names = _Names.of(made["question"]), _Names.of(made["participant"])
    said = np.zeros(len(order), bool)
    said[: len(made)] = _said(reader, made, *names, frame.alone()[: len(made)])
    plain = said[order]
    places = np.flatnonzero(~plain)
    rows = part.rows(places.tolist())
    is_plain = _read(reader, rows, frame, places.tolist())
    if is_plain is None:
        return None
    plain[places] = is_plain
    plain &= order < len(made)
    return CheckedPage(
        plain.astype(np.uint8).tobytes(),
        [*compress(rows, (~plain[places]).tolist())],
        frame.command_ids[1:-1][plain],
        _forecasts(reader, participants, made, names, order[plain]),
    )


def _said(reader: Reader, made: Any, questions: _Names, participants: _Names, is_alone: BoolArray) -> BoolArray:
    """Return which forecasts are plain by their columns alone: probabilities of yes, and cumulative probabilities.

    A few that are plain may be left out. is_alone: which of them are alone in their command.
    """
    forms = [reader.forms.get(label) for label in questions.labels]
    written = [reader.checks.participant(label) for label in participants.labels]
    is_known = np.array(
        [bool(text) and label not in reader.several for label, text in zip(participants.labels, written, strict=True)],
        bool,
    )
    at, said = integers(made["claimed_at"]), np.zeros(len(made), bool)
    possible: BoolArray = is_alone & is_known[participants.of_rows] & (at >= FIRST_INSTANT)
    possible &= numpy_array(whole(made["normal"])) & _are_ids(whole(made["command_id"]))
    for name in ("provenance", "until", "attestation"):
        possible &= ~is_valid(whole(made[name]))
    texts = array_of_texts([form.text if form else "" for form in forms]), array_of_texts(written)
    for is_right, parts_of in (_chances(made, questions, forms), _heights(made, questions, forms)):
        chosen = np.flatnonzero(possible & is_right)
        for rows in (chosen[begin : begin + AT_ONCE] for begin in range(0, len(chosen), AT_ONCE)):
            question, participant = (
                pyarrow().DictionaryArray.from_arrays(row_numbers(of.of_rows[rows]), labels)
                for of, labels in zip((questions, participants), texts, strict=True)
            )
            instants = _instants(at[rows], at[rows] == integers(made["recorded_at"])[rows])
            contents = joined(*content_parts(question, participant, instants, *parts_of(rows))).to_pylist()
            commands = whole(made["command"].take(row_numbers(rows))).buffers()[1]
            computed, stated = (
                np.frombuffer(each or b"", np.uint8).reshape(-1, 16) for each in (fingerprint_bytes(contents), commands)
            )
            said[rows] = (computed == stated).all(1)
    return said


def _chances(made: Any, questions: _Names, forms: Sequence[QuestionForm | None]) -> tuple[BoolArray, _PartsOf]:
    """Return which forecasts are a probability, as their question asks; and the part of it in the contents of some."""
    yes, is_asked = _yes(made), np.array([form is not None and asks_probability(form) for form in forms], bool)
    return is_asked[questions.of_rows] & (yes >= 0), lambda rows: (row_numbers(yes[rows]),)


def _heights(made: Any, questions: _Names, forms: Sequence[QuestionForm | None]) -> tuple[BoolArray, _PartsOf]:
    """Return which forecasts are cumulative probabilities, as `_chances` does."""
    is_right = _has_form(made, _HEIGHTS)
    if not is_right.any():
        return is_right, lambda _: ()
    lists, asked = whole(made["numbers"]), [asked_heights(form) if form else (0, 0, 0) for form in forms]
    count, most, least = np.array(asked, np.int64).reshape(-1, 3)[questions.of_rows].T
    ends = numpy_array(lists.offsets) if len(lists) else np.zeros(1, np.int32)
    begin, numbers = ends[:-1], numpy_array(lists.values)
    is_right &= (count > 0) & (np.diff(ends) == count)
    rows = np.flatnonzero(is_right)
    first, last = numbers[begin[rows]], numbers[begin[rows] + count[rows] - 1]
    falls = np.flatnonzero(numbers[1:] < numbers[:-1]) + 1
    falls = falls[np.isin(falls, begin, invert=True)]
    is_right[rows] = (first >= 0) & (first <= most[rows]) & (last >= least[rows]) & (last <= CUMULATIVE)
    is_right[np.searchsorted(begin, falls, "right") - 1] = False
    content = numbers_content(_HEIGHTS, "[")
    return is_right, lambda rows: (content, number_lists(made["numbers"].take(row_numbers(rows))), "]")


def _has_form(made: Any, name: str) -> BoolArray:
    """Return which forecasts have their numbers in a field."""
    form = whole(made["form"])
    labels = np.array([label == name for label in form.dictionary.to_pylist()], bool)
    found: BoolArray = is_valid(form)
    found[found] = labels[numpy_array(form.indices.drop_null())]
    found &= is_valid(whole(made["numbers"]))
    return found


def _instants(at: Int64Array, is_stamped: BoolArray) -> Any:
    """Return the instants of commands as texts: null where the ledger has stamped it."""
    if is_stamped.all() or not is_stamped.any():
        return "null" if len(at) and is_stamped[0] else row_numbers(at)
    return compute_functions().if_else(as_chosen(is_stamped), text_scalar("null"), row_numbers(at).cast("string"))


def _are_ids(texts: Any) -> BoolArray:
    """Return which texts are valid ids."""
    characters, sizes = text_bytes(texts)
    if ((characters > 0x20) & (characters < 0x7F)).all() and ((sizes > 0) & (sizes <= ID_LENGTH)).all():
        return np.ones(len(texts), bool)
    valid = valid_ids(ids := texts.to_pylist())
    return np.array([each in valid for each in ids], bool)


def _yes(made: Any) -> Int64Array:
    """Return the probability of yes of each forecast, 1e-9; -1 if it says anything else."""
    lists, found = whole(made["numbers"]), np.full(len(made), -1)
    ends, numbers = numpy_array(lists.offsets) if len(lists) else np.zeros(1, np.int32), numpy_array(lists.values)
    rows = np.flatnonzero(_has_form(made, _CHANCES) & (np.diff(ends) == 2))
    yes, no = numbers[ends[rows]], numbers[ends[rows] + 1]
    is_right = (yes >= 0) & (yes <= PROBABILITY) & (no == PROBABILITY - yes)
    found[rows[is_right]] = yes[is_right]
    return found


def _read(reader: Reader, rows: list[bytes], frame: _Frame, places: list[int]) -> bytearray | None:
    """Return which rows are plain by their bytes; None if one is not canonical. places: of the rows in their part."""
    read, at = log.decode_rows(rows), np.array(places, np.int64)
    if [*map(log.encode_row, read)] != rows:
        return None
    before, after = ([*map(bytes.decode, frame.command_ids[beside].tolist())] for beside in (at, at + 2))
    return plain_rows(read, before, after, reader)


def _forecasts(
    reader: Reader, participants: Codes, made: Any, names: tuple[_Names, _Names], rows: Int64Array
) -> ForecastPage:
    """Return some forecasts as columns. names: of the questions, and of the participants, who get codes."""
    questions, others = names
    codes = np.array([reader.codes.get(label, -1) for label in questions.labels], np.int64)
    who, participant = others.of_rows[rows], np.zeros(len(others.labels), np.int64)
    used = np.flatnonzero(np.bincount(who))
    participant[used] = [participants.add(others.labels[name]) for name in used.tolist()]
    lists = whole(made["numbers"]).take(row_numbers(rows))
    return ForecastPage(
        integers(made["position"])[rows],
        integers(made["claimed_at"])[rows],
        integers(made["recorded_at"])[rows],
        codes[questions.of_rows[rows]],
        participant[who],
        np.ones(len(rows), np.int64),
        np.full(len(rows), NEVER),
        numpy_array(lists.value_lengths()).astype(np.int64),
        numpy_array(lists.flatten()),
    )
