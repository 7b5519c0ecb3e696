"""Rows become columns and come back byte for byte, whatever the rows are."""

from itertools import chain
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from msgspec import structs

from forecast_ledger.ledger.core.errors import Corrupt
from forecast_ledger.ledger.model import log
from forecast_ledger.ledger.model.commands import AnyCommand, Range
from forecast_ledger.ledger.model.events import AnyEvent, ContestFinalized, PricesQuoted, Quote
from forecast_ledger.ledger.model.log import START, Recorded
from forecast_ledger.ledger.segments import segment_columns
from forecast_ledger.ledger.segments.arrow_arrays import chosen, numpy_array, pyarrow, row_numbers
from forecast_ledger.ledger.segments.other_events import other_events
from forecast_ledger.ledger.segments.segment_columns import SegmentColumns, join, rebuild, to_columns
from tests.support import oracle
from tests.support.effort import times
from tests.support.exports import export_commands
from tests.support.given import forecast, opened
from tests.support.trading_seasons import Season as TradingSeason


def sealed(records: list[Recorded]) -> list[bytes]:
    """The rows of recorded events."""
    return [log.seal(recorded)[0] for recorded in records]


def columns_of(rows: list[bytes]) -> SegmentColumns:
    """The columns of the rows of a log from its beginning."""
    return to_columns(rows, log.unseal(rows, START))


def comes_back(records: list[Recorded]) -> bool:
    """Whether the rows come back from their columns, byte for byte."""
    rows = sealed(records)
    return [*chain.from_iterable(rebuild(columns_of(rows), START))] == rows


@given(oracle.logs())
@settings(max_examples=times(30), deadline=None)
def test_the_rows_of_any_log_come_back(commands: list[AnyCommand]) -> None:
    """Forecasts of every kind, withdrawals, and all other events."""
    assert comes_back(oracle.attempted(commands)[0])


@pytest.mark.parametrize("seed", range(2))
def test_the_rows_of_a_season_of_trading_come_back(seed: int) -> None:
    """Quotes, decisions, corrections, kept texts."""
    commands = TradingSeason(seed, 40).commands()
    assert comes_back(oracle.attempted(commands)[0])


def test_the_rows_of_stories_come_back_however_many_are_rebuilt_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd texts, attestations, forecasts that end by themselves; pages of one row, of seven, of all."""
    name = '"\\\x7f\u2028é🌧'
    odd: list[AnyCommand] = [opened(name), forecast(name, 'a"b', probability="0.1", until="2026-03-11T00:00:00Z")]
    records = oracle.attempted([*export_commands(), *odd])[0]
    for size in (1, 7, 1 << 16):
        monkeypatch.setattr(segment_columns, "AT_ONCE", size)
        assert comes_back(records)


def test_no_row_and_no_digest_is_kept() -> None:
    """Except the digest of a row that seals a contest, which its board states."""
    records = oracle.attempted(export_commands())[0]
    columns = columns_of(sealed(records))
    ends = [bytes.fromhex(each.digest) for each in records if type(each.event) is ContestFinalized]
    assert ends
    assert [digest for digest in columns.others["digest"].to_pylist() if digest is not None] == ends
    assert "digest" not in columns.forecasts.schema.names


def test_forecasts_are_in_order_of_their_question() -> None:
    """Each question's in log order, so that a question can be read without the others."""
    forecasts = columns_of(sealed(oracle.attempted(export_commands())[0])).forecasts
    rows = [*zip(forecasts["question"].to_pylist(), forecasts["position"].to_pylist(), strict=True)]
    names = [*dict.fromkeys(name for name, _ in rows)]
    assert rows == sorted(rows, key=lambda row: (names.index(row[0]), row[1]))


def test_a_forecast_in_another_form_is_kept_as_its_json() -> None:
    """Another program may have written it with other spaces; the row comes back as it was."""
    records = oracle.attempted([opened(), forecast()])[0]
    rows = sealed(records)
    body = log.digested_bytes(rows[1]).replace(b'"question":', b'"question": ')
    digest = log.compute_digest(body + b',"digest":"' + b"0" * 64 + b'"}').encode()
    rows[1] = body + b',"digest":"' + digest + b'"}'
    columns = columns_of(rows)
    assert (len(columns.forecasts), len(columns.others)) == (0, 2)
    assert [*chain.from_iterable(rebuild(columns, START))] == rows


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int32(), pa.int64()])
def test_arrays_of_any_part_become_those_of_numpy_and_back(kind: pa.DataType) -> None:
    """As pyarrow itself converts them: whole ones, parts that begin within a byte, and empty ones."""
    every = pa.array([number % 3 == 0 for number in range(20)]).cast(kind)
    for part in (every, every.slice(3, 9), every.slice(7, 0), every.slice(20), pa.array([], kind)):
        assert numpy_array(part).tolist() == part.to_pylist()
        rows = numpy_array(part)
        back = chosen(rows) if pa.types.is_boolean(kind) else row_numbers(rows)
        assert back.to_pylist() == part.to_pylist()


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.bool_()])
def test_a_missing_value_is_no_number(kind: pa.DataType) -> None:
    """What stands in the place of a missing value is never read; in a part without one, nothing is missing."""
    array = pa.array([1, None, 0], pa.int64()).cast(kind)
    with pytest.raises(ValueError, match="1 values are missing"):
        numpy_array(array)
    assert numpy_array(array[2:]).tolist() == [0]


def test_parts_are_joined_column_by_column() -> None:
    """Memory is given back as they are joined: joined at once, they took 3.3 times as much as the parts."""
    levels = [float(n) / 200 for n in range(201)]
    span = Range(lower=0, upper=4, bins=200)
    said: list[Any] = [
        opened("depth", kind="numeric", range=span),
        *(forecast("depth", f"p{n}", cdf=levels) for n in range(20)),
    ]
    rows = sealed(oracle.attempted(said)[0])
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        parts = [columns_of(rows) for _ in range(20)]
        size = pool.bytes_allocated()
        whole = join(parts)
        assert parts == []
        assert pool.max_memory() < 2.8 * size  # numbers are nearly all of it: as parts, joined, and in order
        assert len(whole.forecasts) == 20 * len(said) - 20
        del whole
    finally:
        pa.set_memory_pool(before)


QUOTED_AT = 5
HUGE = 2**63


def quoting(*quotes: Quote) -> PricesQuoted:
    """An event of quotes."""
    return PricesQuoted(at=QUOTED_AT, source='a "feed"', quoted_at=QUOTED_AT, quotes=quotes)


def recorded_events(*events: AnyEvent) -> list[Recorded]:
    """Events as the rows of a log, which need not make sense."""
    records, head = [], START
    for position, event in enumerate(events, 1):
        own = Recorded(
            position=position, recorded_at=0, command_id=f"c{position}", command="", previous=head.digest, event=event
        )
        own = structs.replace(own, command="0" * 32)
        row, digest = log.seal(own)
        head = log.Checkpoint(position, digest)
        records.append(log.decode_row(row, position))
    return records


ODD_QUOTES = {
    "no prices": quoting(Quote(question="q", prices=())),
    "a missing price": quoting(Quote(question="q", prices=(None, 3)), Quote(question="p", prices=(None, None))),
    "sides": quoting(
        Quote(question="q", prices=(1,), bids=(None,), ask_sizes=(0,)),
        Quote(question="p", prices=(1, 2), asks=(3, None), bid_sizes=(HUGE - 1, -HUGE)),
    ),
    "a question quoted twice": quoting(Quote(question="q", prices=(1,)), Quote(question="q", prices=(2,))),
    "odd ids": quoting(Quote(question='"\\\x7f\u2028é🌧', prices=(1,)), Quote(question="", prices=(2,))),
    "no quotes": quoting(),
    "beyond 64 bits": quoting(Quote(question="q", prices=(HUGE, 1)), Quote(question="p", prices=(1,))),
}


@pytest.mark.parametrize("case", ODD_QUOTES)
def test_quotes_of_any_shape_come_back(case: str) -> None:
    """Whatever a row of another program says; what columns cannot hold stays in the JSON."""
    odd = ODD_QUOTES[case]
    records = recorded_events(odd, *ODD_QUOTES.values(), odd)
    rows = sealed(records)
    columns = columns_of(rows)
    assert [*chain.from_iterable(rebuild(columns, START))] == rows
    assert [each.event for each in other_events(columns)] == [each.event for each in records]
    kept = [each for each in columns.others["event"].to_pylist() if not each.endswith('"quotes":[]}')]
    assert len(kept) == 1 + 2 * (case == "beyond 64 bits")


def test_quotes_are_typed_columns_in_order_of_their_question() -> None:
    """Each question's in log order; no price is in the JSON of an event."""
    commands = TradingSeason(1, 40).commands()
    records = oracle.attempted(commands)[0]
    columns = columns_of(sealed(records))
    expected = sorted(
        (quote.question, each.position, place, [*quote.prices], [*quote.bids] or None)
        for each in records
        if isinstance(each.event, PricesQuoted)
        for place, quote in enumerate(each.event.quotes)
    )
    names = ("question", "position", "place", "prices", "bids")
    assert len(expected) > 10
    assert [*zip(*(columns.quotes[name].to_pylist() for name in names), strict=True)] == expected
    assert not any('"prices"' in text for text in columns.others["event"].to_pylist() if "prices_quoted" in text)


def test_the_events_before_one_that_cannot_be_read_come_first() -> None:
    """So whoever finds a fault in one of them says that, and not what comes later."""
    records = recorded_events(quoting(Quote(question="q", prices=(1,))), quoting(), quoting())
    columns = columns_of(sealed(records))
    texts = columns.others["event"].to_pylist()
    field = columns.others.schema.field("event")
    damaged = pyarrow().array([texts[0], "{}", texts[2]], field.type)
    read = other_events(
        columns._replace(
            others=columns.others.set_column(columns.others.schema.get_field_index("event"), field, damaged)
        )
    )
    assert next(read).event == records[0].event
    with pytest.raises(Corrupt, match="log position 2: this version cannot read the event"):
        next(read)


@pytest.mark.parametrize(("column", "value", "fault"), [(0, 7, "no event of quotes"), (1, 1, "from 0 on")])
def test_a_quote_in_another_place_is_found(column: int, value: int, fault: str) -> None:
    """Somebody changed its log position to one where no event is, or its place among the quotes of its event."""
    columns = columns_of(sealed(recorded_events(quoting(Quote(question="q", prices=(1,))))))
    field = columns.quotes.schema.field(column)
    moved = columns.quotes.set_column(column, field, pyarrow().array([value], field.type))
    for read_again in (other_events, lambda changed: rebuild(changed, START)):
        with pytest.raises(Corrupt, match=fault) as corrupt:
            [*read_again(columns._replace(quotes=moved))]
        assert corrupt.value.position == (value if column == 0 else 1)


@pytest.mark.parametrize("column", ["position", "place", "question", "prices", "asks"])
def test_a_changed_column_of_quotes_changes_the_rows(column: str) -> None:
    """So the chain of digests proves every column."""
    quoted = [
        quoting(Quote(question="p", prices=(n, 2), asks=(3, n)), Quote(question="q", prices=(5, n), asks=(None, n)))
        for n in (8, 9)
    ]
    rows = sealed(recorded_events(*quoted))
    columns = columns_of(rows)
    table, at = columns.quotes, columns.quotes.schema.names.index(column)
    values = table[column].to_pylist()
    field = table.schema.field(at)
    rotated = pyarrow().array([*values[1:], values[0]], pyarrow().string() if column == "question" else field.type)
    changed = columns._replace(quotes=table.set_column(at, field, rotated.cast(field.type)))
    assert [*chain.from_iterable(rebuild(changed, START))] != rows


def test_a_form_that_no_forecast_has_is_refused() -> None:
    """Its name is in the row, and could hold the end of one list and the beginning of another."""
    columns = columns_of(sealed(oracle.attempted([opened(id="o"), forecast(id="f")])[0]))
    form = columns.forecasts["form"].cast(pa.string()).combine_chunks()
    other = pa.array(['cdf":[1],"probabilities'] * len(form)).dictionary_encode()
    at = columns.forecasts.schema.names.index("form")
    kind = columns.forecasts.schema.field(at).type
    forged = columns._replace(forecasts=columns.forecasts.set_column(at, "form", other.cast(kind)))
    with pytest.raises(Corrupt, match="the column form of the segment"):
        [*rebuild(forged, START)]
