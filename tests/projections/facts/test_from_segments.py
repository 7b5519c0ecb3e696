"""The facts of segments, and of segments and a tail, are those of the log."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecast_ledger.ledger.core.errors import Corrupt, NewerVersion
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand
from forecast_ledger.ledger.model.events import ContestFinalized, ForecastMade, ForecastWithdrawn
from forecast_ledger.ledger.model.log import Checkpoint, Recorded
from forecast_ledger.ledger.segments.arrow_arrays import pyarrow
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, to_columns
from forecast_ledger.ledger.storing.sealed_log import UNREAD
from forecast_ledger.projections.core.arrays import Codes, int64_array
from forecast_ledger.projections.facts import from_segments
from forecast_ledger.projections.facts.columns import Facts
from forecast_ledger.projections.facts.from_segments import facts_of_segments, frame_of_segments, segment_events
from forecast_ledger.replay.reading.replay import summarize_tables
from tests.support import oracle
from tests.support.effort import times
from tests.support.exports import export_commands
from tests.support.given import forecast, opened
from tests.support.logs import VARIED
from tests.support.trading_seasons import Season as TradingSeason
from tests.system.test_stories import recorded


def columns_of(records: list[Recorded]) -> tuple[SegmentColumns, Checkpoint]:
    """The columns of consecutive events, those that facts need, and the checkpoint of the last."""
    rows = [log.seal(recorded)[0] for recorded in records]
    whole = to_columns(rows, records)
    used = SegmentColumns(*(table.drop_columns([*UNREAD & {*table.schema.names}]) for table in whole))
    return used, Checkpoint(records[-1].position, records[-1].digest)


def sealed_facts(records: list[Recorded], size: int, sealed: int) -> Facts:
    """The facts of events of which the first `sealed` are in segments of this size, and the rest in a tail."""
    parts = [records[begin : min(begin + size, sealed)] for begin in range(0, sealed, size)]
    tail = [records[begin : begin + 5] for begin in range(sealed, len(records), 5)]
    return facts_of_segments(map(columns_of, parts), tail)


@given(oracle.logs(), st.data())
@settings(max_examples=times(20), deadline=None)
def test_every_table_of_any_log_is_the_same(commands: list[AnyCommand], data: st.DataObject) -> None:
    """Wherever the log is cut into segments and a tail."""
    records = oracle.attempted(commands)[0]
    size, sealed = data.draw(st.integers(1, len(records))), data.draw(st.integers(0, len(records)))
    assert summarize_tables(sealed_facts(records, size, sealed)) == summarize_tables(oracle.facts_in(records))


@pytest.mark.parametrize("size", [3, 40, 10_000])
def test_every_table_of_stories_and_trading_is_the_same(size: int) -> None:
    """Attestations, sealed contests, quotes and decisions."""
    trading = TradingSeason(5, 30).commands()
    for commands in (export_commands(), trading):
        records = oracle.attempted(commands)[0]
        expected = summarize_tables(oracle.facts_in(records))
        for sealed in (Random(size).randrange(len(records)), len(records) if size == 40 else 0):
            assert summarize_tables(sealed_facts(records, size, sealed)) == expected


@pytest.mark.parametrize("story", VARIED)
def test_every_table_of_every_story_is_the_same(story: str) -> None:
    """All that events can say: outcomes that change, other times, groups, replies, failed calls."""
    records = recorded(story)
    expected = summarize_tables(oracle.facts_in(records))
    for size, sealed in ((7, len(records) // 2), (len(records), len(records))):
        assert summarize_tables(sealed_facts(records, size, sealed)) == expected


def test_the_events_of_a_segment_are_those_of_the_log() -> None:
    """In log order; on request without forecasts, or with those on one question only."""
    for records in (*map(recorded, VARIED), oracle.attempted(export_commands())[0]):
        columns = columns_of(records)[0]
        expected = [(row.position, row.recorded_at, row.event) for row in records]
        assert [(row.position, row.recorded_at, row.event) for row in segment_events(columns, None)] == expected
        made = [row.event for row in records if isinstance(row.event, ForecastMade | ForecastWithdrawn)]
        rest = [each for each in expected if each[2] not in made]
        assert [row.position for row in segment_events(columns)] == [position for position, *_ in rest]
        for question in {event.question for event in made} | {"none"}:
            some = [row for row in segment_events(columns, question) if row.event in made]
            assert [row.event for row in some] == [event for event in made if event.question == question]
        sealing = [row for row in records if isinstance(row.event, ContestFinalized)]
        assert [row.digest for row in segment_events(columns) if row.digest] == [row.digest for row in sealing]


def test_a_forecast_on_a_question_that_was_not_opened_is_found() -> None:
    """In segments as in a log, with its log position."""
    records = oracle.attempted([opened("dry"), opened("rain"), forecast("rain")])[0]
    for read in (facts_of_segments, frame_of_segments):
        with pytest.raises(Corrupt, match="a question opened earlier; found 'rain', which was not") as corrupt:
            read([columns_of([records[0], *records[2:]])])
        assert corrupt.value.position == 3


@pytest.mark.parametrize(("first", "error"), [("{}", Corrupt), ('{"type":"new.v9","at":1}', NewerVersion)])
@pytest.mark.parametrize("read", [facts_of_segments, frame_of_segments])
def test_a_first_event_that_cannot_be_read_is_named(read: Any, first: str, error: type[Exception]) -> None:
    """There is no event before it."""
    columns, end = columns_of(oracle.attempted([opened("dry"), opened("rain")])[0])
    number, field = columns.others.schema.get_field_index("event"), columns.others.schema.field("event")
    texts = pyarrow().array([first, *columns.others["event"].to_pylist()[1:]], field.type)
    with pytest.raises(error, match="log position 1: ") as found:
        read([(columns._replace(others=columns.others.set_column(number, field, texts)), end)])
    assert type(found.value) is error


@pytest.mark.parametrize("count", [3, 4, 9])
def test_ids_get_their_codes_whether_the_log_has_fewer_or_more_than_a_column(count: int) -> None:
    """Of two chunks with dictionaries of their own; at the first row in log order whose id is not known it stops."""
    codes = Codes()
    for number in range(count):
        codes.add(f"id{number}")
    pa = pyarrow()
    column = pa.chunked_array(
        [pa.array(texts).dictionary_encode() for texts in (["id2", "id0"], ["id1", "id2"])],
        pa.dictionary(pa.int32(), pa.string()),
    )
    position = int64_array([7, 5, 8, 6])
    assert from_segments._codes(column, codes, position, ("question", "a question")).tolist() == [2, 0, 1, 2]
    fewer = Codes()
    for number in range(2, count + 2):
        fewer.add(f"id{number}")
    with pytest.raises(Corrupt) as caught:
        from_segments._codes(column, fewer, position, ("question", "a question"))
    assert caught.value.position == 5
